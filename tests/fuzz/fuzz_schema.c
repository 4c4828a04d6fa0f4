/* fuzz_schema.c: any bytes as a JSON Schema. What is taken must become rules that are read, and an answer in them that ends must be
 * JSON again. The first byte chooses tokens of the answer.
 * options: -max_len=4096 */
#include "form_twin.h"
#include "llm/form/json.h"
#include "llm/form/schema.h"

static const char *const words[] = { "{\"", "\": ", "\", \"", "\"}", "true", "null", "12", "\xC3\xA9" };

/* A short answer; only one that ends is looked at. */
static void say(hdl_matcher *m, const twin_vocabulary *v, uint32_t chance) {
    char answer[256];
    size_t count = 0;
    for (;;) {
        const uint32_t *bits;
        uint32_t allowed[TWIN_TOKENS];
        if (hdl_matcher_mask(m, &bits, NULL)) return;
        const uint32_t set = twin_allowed(bits, v->count, allowed);
        if (!set && !hdl_matcher_complete(m)) abort();
        if (!set || count + 16 > sizeof answer) break;
        chance = chance * 1664525 + 1013904223;
        const int32_t token = (int32_t)allowed[(chance >> 8) % set];
        const hdl_span text = hdl_token_text(v->tokenizer, token);
        if (hdl_matcher_accept(m, token, NULL)) return;
        memcpy(answer + count, text.bytes, text.count);
        count += text.count;
    }
    hdl_json json;
    uint32_t value;
    if (hdl_matcher_complete(m) && hdl_json_read(&hdl_default_allocator, (hdl_span){ (const uint8_t *)answer, count }, &json, &value, NULL)) abort();
    if (hdl_matcher_complete(m)) hdl_json_free(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static twin_vocabulary v;
    if (!v.count) v = twin_vocabulary_make(words, sizeof words / sizeof words[0]);
    if (!size) return 0;
    hdl_rules_text text;
    hdl_grammar rules = { 0 };
    hdl_automaton automaton = { 0 };
    hdl_matcher *matcher = NULL;
    hd_error error = { 0 };
    hd_status status = hdl_schema_rules(&hdl_default_allocator, (hdl_span){ data + 1, size - 1 }, &text, &error);
    if (!status) status = hdl_gbnf_read(NULL, (hdl_span){ (const uint8_t *)text.text, text.count }, &rules, &error);
    if (status == HD_STATUS_PARSE && strstr(error.text, "grammar")) abort(); /* what a schema becomes is a grammar */
    if (!status) status = hdl_automaton_make(&rules, v.trie, &automaton, &error);
    if (!status) status = hdl_matcher_create(&hdl_default_allocator, &automaton, v.trie, v.tokenizer, &matcher, &error);
    if (status != error.status || (status && !error.text[0])) abort();
    if (!status) say(matcher, &v, data[0]);
    hdl_matcher_destroy(matcher);
    hdl_automaton_free(&automaton);
    hdl_grammar_free(&rules);
    hdl_free(&hdl_default_allocator, text.text, text.room);
    return 0;
}
