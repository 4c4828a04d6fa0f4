/* vocabulary.c: a file's tokenizer keys as a tokenizer, the tokens that end an answer, and the chat template. */
#include "llm/model.h"
#include "llm/tokenizer_words.h"

/* The lists of a vocabulary while its tokenizer is made. */
typedef struct lists {
    const hd_allocator *allocator;
    hdl_span *tokens, *merges;
    float    *scores;
    int32_t  *types;
    hdl_vocab_desc desc;
} lists;

static void free_lists(lists *l) {
    hdl_free(l->allocator, l->tokens, l->desc.token_count * sizeof *l->tokens);
    hdl_free(l->allocator, l->merges, l->desc.merge_count * sizeof *l->merges);
    hdl_free(l->allocator, l->scores, l->desc.score_count * sizeof *l->scores);
    hdl_free(l->allocator, l->types, l->desc.type_count * sizeof *l->types);
}

static hd_status no_memory(hd_error *error) {
    return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the vocabulary");
}

/* An array of texts as spans; none where the key is missing. */
static hd_status read_texts(const hd_model *model, const hd_allocator *allocator, const char *key, uint64_t most,
                            hdl_span **out, size_t *out_count, hd_error *error) {
    hdl_gguf_value value;
    uint64_t at = 0;
    hd_status status = hdl_gguf_get_array(model->gguf, key, HDL_GGUF_STRING, 0, most, &value, error);
    if (status || value.count == 0) return status;
    if (!(*out = hdl_alloc(allocator, value.count * sizeof **out))) return no_memory(error);
    *out_count = (size_t)value.count;
    for (uint64_t i = 0; i < value.count; i++) hdl_gguf_next_text(&value, &at, &(*out)[i]);
    return HD_OK;
}

static hd_status read_scores(const hd_model *model, lists *l, hd_error *error) {
    hdl_gguf_value value;
    hd_status status =
        hdl_gguf_get_array(model->gguf, "tokenizer.ggml.scores", HDL_GGUF_F32, 0, HDL_MAX_TOKENS, &value, error);
    if (status || value.count == 0) return status;
    if (!(l->scores = hdl_alloc(l->allocator, value.count * sizeof *l->scores))) return no_memory(error);
    l->desc.score_count = (size_t)value.count;
    for (uint64_t i = 0; i < value.count; i++) l->scores[i] = (float)hdl_gguf_float(&value, i);
    return HD_OK;
}

static hd_status read_types(const hd_model *model, lists *l, hd_error *error) {
    hdl_gguf_value value;
    hd_status status =
        hdl_gguf_get_array(model->gguf, "tokenizer.ggml.token_type", HDL_GGUF_I32, 0, HDL_MAX_TOKENS, &value, error);
    if (status || value.count == 0) return status;
    if (!(l->types = hdl_alloc(l->allocator, value.count * sizeof *l->types))) return no_memory(error);
    l->desc.type_count = (size_t)value.count;
    for (uint64_t i = 0; i < value.count; i++) l->types[i] = (int32_t)hdl_gguf_integer(&value, i);
    return HD_OK;
}

static hd_status read_id(const hd_model *model, const char *key, int64_t *out, hd_error *error) {
    hdl_gguf_value value;
    int32_t id;
    *out = HDL_NO_TOKEN;
    if (hdl_gguf_find(model->gguf, key, &value) && value.kind == HDL_GGUF_U32 &&
        hdl_gguf_integer(&value, 0) == UINT32_MAX)
        return HD_OK; /* -1 as some write it: none */
    const hd_status status =
        hdl_gguf_get_i32(model->gguf, key, -1, (int32_t)model->figures.vocabulary - 1, HDL_NO_TOKEN, &id, error);
    *out = id;
    return status;
}

/* The figures of the description. What a missing key means depends on the kind of vocabulary. */
static hd_status read_desc(const hd_model *model, hdl_span kind, lists *l, hd_error *error) {
    hdl_vocab_desc *d = &l->desc;
    const bool bytes = hdl_same(kind, hdl_text("gpt2")), pieces = hdl_same(kind, hdl_text("llama"));
    d->kind = bytes ? HDL_VOCAB_BYTES : pieces ? HDL_VOCAB_PIECES : HDL_VOCAB_UNIGRAM;
    const bool begins = pieces || (bytes && hdl_words_begin(d->pre));
    hd_status status = read_id(model, "tokenizer.ggml.bos_token_id", &d->bos, error);
    if (!status) status = read_id(model, "tokenizer.ggml.eos_token_id", &d->eos, error);
    if (!status) status = read_id(model, "tokenizer.ggml.unknown_token_id", &d->unknown, error);
    if (!status) status = hdl_gguf_get_bool(model->gguf, "tokenizer.ggml.add_bos_token", begins, &d->add_bos, error);
    if (!status)
        status = hdl_gguf_get_bool(model->gguf, "tokenizer.ggml.add_eos_token", d->kind == HDL_VOCAB_UNIGRAM,
                                   &d->add_eos, error);
    if (!status)
        status = hdl_gguf_get_bool(model->gguf, "tokenizer.ggml.add_space_prefix", !bytes, &d->add_space_prefix, error);
    return status;
}

static hd_status read_lists(hd_model *model, hdl_span kind, lists *l, hd_error *error) {
    static const char squeeze[] = "tokenizer.ggml.remove_extra_whitespaces"; /* the other kinds do not */
    hdl_gguf_value value;
    bool squeezes;
    hd_status status = hdl_gguf_get_bool(model->gguf, squeeze, false, &squeezes, error);
    if (status) return status;
    if (squeezes && hdl_same(kind, hdl_text("t5")))
        return hdl_fail(error, HD_STATUS_UNSUPPORTED, "%s: a tokenizer that rewrites its text is not supported",
                        squeeze);
    if (hdl_gguf_find(model->gguf, "tokenizer.ggml.precompiled_charsmap", &value) && value.count > 0)
        return hdl_fail(error, HD_STATUS_UNSUPPORTED,
                        "tokenizer.ggml.precompiled_charsmap: a tokenizer that rewrites its text is not supported");
    status = read_texts(model, l->allocator, "tokenizer.ggml.tokens", HDL_MAX_TOKENS, &l->tokens, &l->desc.token_count,
                        error);
    if (!status)
        status = read_texts(model, l->allocator, "tokenizer.ggml.merges", HDL_MAX_MERGES, &l->merges,
                            &l->desc.merge_count, error);
    if (!status) status = read_scores(model, l, error);
    if (!status) status = read_types(model, l, error);
    if (!status && l->desc.token_count != model->figures.vocabulary)
        status = hdl_fail(error, HD_STATUS_SHAPE, "tokenizer.ggml.tokens has %zu tokens, token_embd.weight %u rows",
                          l->desc.token_count, model->figures.vocabulary);
    if (!status) status = read_desc(model, kind, l, error);
    l->desc.tokens = l->tokens;
    l->desc.merges = l->merges;
    l->desc.scores = l->scores;
    l->desc.types = l->types;
    return status;
}

static void add_end(hd_model *model, int64_t id) {
    if (id < 0 || model->end_count == sizeof model->ends / sizeof *model->ends) return;
    for (uint32_t i = 0; i < model->end_count; i++)
        if (model->ends[i] == id) return;
    model->ends[model->end_count++] = (int32_t)id;
}

/* The ends that the file names, and those that chat models use whatever the file says. */
static hd_status find_ends(hd_model *model, hd_error *error) {
    static const char *const keys[] = { "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                        "tokenizer.ggml.eom_token_id" };
    static const char *const texts[] = { "<|eot_id|>",    "<|im_end|>", "<|end|>",        "<end_of_turn>",
                                         "<|endoftext|>", "<|eom_id|>", "<|end_of_text|>" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        int64_t id;
        const hd_status status = read_id(model, keys[i], &id, error);
        if (status) return status;
        add_end(model, id);
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const int32_t id = hdl_token_find(model->tokenizer, texts[i], strlen(texts[i]));
        if (id >= 0 && hdl_token_type_of(model->tokenizer, id) == HDL_TOKEN_CONTROL) add_end(model, id);
    }
    return HD_OK;
}

hd_status hdl_vocabulary_read(hd_model *model, hd_error *error) {
    char quoted[HDL_QUOTE], pre[64] = "";
    hdl_span kind, pattern;
    lists l = { .allocator = &model->allocator };
    hd_status status =
        hdl_gguf_get_text(model->gguf, "tokenizer.chat_template", hdl_text(""), &model->chat_template, error);
    if (!status) status = hdl_gguf_get_text(model->gguf, "tokenizer.ggml.model", hdl_text("none"), &kind, error);
    if (!status) status = hdl_gguf_get_text(model->gguf, "tokenizer.ggml.pre", hdl_text("default"), &pattern, error);
    if (status || hdl_same(kind, hdl_text("none")) || hdl_same(kind, hdl_text("no_vocab")))
        return status; /* a model without a vocabulary takes and gives ids */
    if (!hdl_same(kind, hdl_text("gpt2")) && !hdl_same(kind, hdl_text("llama")) && !hdl_same(kind, hdl_text("t5")))
        return hdl_fail(error, HD_STATUS_UNSUPPORTED, "tokenizer.ggml.model is %s; heddle knows gpt2, llama and t5",
                        hdl_quote(kind, quoted));
    if (pattern.count >= sizeof pre)
        return hdl_fail(error, HD_STATUS_UNSUPPORTED, "tokenizer.ggml.pre is %s, which no one knows",
                        hdl_quote(pattern, quoted));
    memcpy(pre, pattern.bytes, (size_t)pattern.count);
    l.desc.pre = pre;
    status = read_lists(model, kind, &l, error);
    if (!status) status = hdl_tokenizer_create(&model->allocator, &l.desc, &model->tokenizer, error);
    free_lists(&l);
    return status ? status : find_ends(model, error);
}
