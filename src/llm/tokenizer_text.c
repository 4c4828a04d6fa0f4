/* tokenizer_text.c: single tokens: the text and the type of an id, which may be any number, and the id of a text. */
#include "llm/tokenizer_inside.h"

static bool valid(const hdl_tokenizer *t, int32_t id) { return id >= 0 && (size_t)id < t->token_count; }

int32_t hdl_token_bos(const hdl_tokenizer *t) { return t->bos; }
int32_t hdl_token_eos(const hdl_tokenizer *t) { return t->eos; }

hdl_span hdl_token_text(const hdl_tokenizer *t, int32_t id) {
    return valid(t, id) ? hdl_pool_text(t, id) : hdl_text("");
}

hdl_token_type hdl_token_type_of(const hdl_tokenizer *t, int32_t id) {
    return valid(t, id) ? (hdl_token_type)t->types[id] : (hdl_token_type)0;
}

int32_t hdl_token_find(const hdl_tokenizer *t, const void *bytes, size_t count) {
    int32_t id = hdl_text_table_find(t, &t->sought, bytes, count);
    return id != HDL_NO_TOKEN ? id : hdl_text_table_find(t, &t->texts, bytes, count);
}
