/* vocabulary.c: a file's tokenizer keys as a tokenizer, the tokens that end an answer, and the chat template. */
#include "llm/calls.h"
#include "llm/model.h"
#include "llm/tokenizer_words.h"

static const char LOWERCASE[] = "tokenizer.ggml.normalizer.lowercase",
                  STRIP_ACCENTS[] = "tokenizer.ggml.normalizer.strip_accents";

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

static hd_status read_id(const hd_model *model, const char *key, int32_t fallback, int64_t *out, hd_error *error) {
    hdl_gguf_value value;
    int32_t id;
    *out = HDL_NO_TOKEN;
    if (hdl_gguf_find(model->gguf, key, &value) && value.kind == HDL_GGUF_U32 &&
        hdl_gguf_integer(&value, 0) == UINT32_MAX)
        return HD_OK; /* -1 as some write it: none */
    const hd_status status =
        hdl_gguf_get_i32(model->gguf, key, -1, (int32_t)model->figures.vocabulary - 1, fallback, &id, error);
    *out = id;
    return status;
}

/* What BERT's vocabularies have: [CLS] before a text and [SEP] behind it, at the places of the first one where the file
 * does not say. */
static hd_status read_wordpiece(const hd_model *model, hdl_vocab_desc *d, hd_error *error) {
    enum { UNK = 100, CLS, SEP };
    const bool knows_bos = hdl_gguf_find(model->gguf, "tokenizer.ggml.bos_token_id", &(hdl_gguf_value){ 0 });
    const char *const first = knows_bos ? "tokenizer.ggml.bos_token_id" : "tokenizer.ggml.cls_token_id";
    hd_status status = read_id(model, first, CLS, &d->bos, error);
    if (!status) status = read_id(model, "tokenizer.ggml.seperator_token_id", SEP, &d->eos, error);
    if (!status) status = read_id(model, "tokenizer.ggml.unknown_token_id", UNK, &d->unknown, error);
    if (!status) status = hdl_gguf_get_bool(model->gguf, "tokenizer.ggml.add_bos_token", true, &d->add_bos, error);
    if (!status) status = hdl_gguf_get_bool(model->gguf, "tokenizer.ggml.add_sep_token", true, &d->add_eos, error);
    if (!status) status = hdl_gguf_get_bool(model->gguf, LOWERCASE, true, &d->lowercase, error);
    if (!status) status = hdl_gguf_get_bool(model->gguf, STRIP_ACCENTS, d->lowercase, &d->strip_accents, error);
    return status;
}

/* The figures of the description. What a missing key means depends on the kind of vocabulary. */
static hd_status read_desc(const hd_model *model, hdl_vocab_kind kind, lists *l, hd_error *error) {
    hdl_vocab_desc *d = &l->desc;
    const bool bytes = kind == HDL_VOCAB_BYTES;
    const bool begins = kind == HDL_VOCAB_PIECES || (bytes && hdl_words_begin(d->pre));
    d->kind = kind;
    if (kind == HDL_VOCAB_WORDPIECE) return read_wordpiece(model, d, error);
    hd_status status = read_id(model, "tokenizer.ggml.bos_token_id", HDL_NO_TOKEN, &d->bos, error);
    if (!status) status = read_id(model, "tokenizer.ggml.eos_token_id", HDL_NO_TOKEN, &d->eos, error);
    if (!status) status = read_id(model, "tokenizer.ggml.unknown_token_id", HDL_NO_TOKEN, &d->unknown, error);
    if (!status) status = hdl_gguf_get_bool(model->gguf, "tokenizer.ggml.add_bos_token", begins, &d->add_bos, error);
    if (!status)
        status = hdl_gguf_get_bool(model->gguf, "tokenizer.ggml.add_eos_token", kind == HDL_VOCAB_UNIGRAM,
                                   &d->add_eos, error);
    if (!status)
        status = hdl_gguf_get_bool(model->gguf, "tokenizer.ggml.add_space_prefix", !bytes, &d->add_space_prefix, error);
    return status;
}

/* Refuses a vocabulary whose texts would have to be rewritten in a way that its kind does not know here. */
static hd_status check_rewriting(const hd_model *model, hdl_vocab_kind kind, hd_error *error) {
    static const struct { const char *key; hdl_vocab_kind of, but; } flags[] = {
        { "tokenizer.ggml.remove_extra_whitespaces", HDL_VOCAB_UNIGRAM, HDL_VOCAB_NONE }, /* the other kinds do not */
        { LOWERCASE, HDL_VOCAB_NONE, HDL_VOCAB_WORDPIECE },
        { STRIP_ACCENTS, HDL_VOCAB_NONE, HDL_VOCAB_WORDPIECE },
    };
    static const char map[] = "tokenizer.ggml.precompiled_charsmap";
    hdl_gguf_value value;
    const char *refused = hdl_gguf_find(model->gguf, map, &value) && value.count > 0 ? map : NULL;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        bool rewrites;
        const hd_status status = hdl_gguf_get_bool(model->gguf, flags[i].key, false, &rewrites, error);
        if (status) return status;
        if (rewrites && kind != flags[i].but && (!flags[i].of || kind == flags[i].of)) refused = flags[i].key;
    }
    if (!refused) return HD_OK;
    return hdl_fail(error, HD_STATUS_UNSUPPORTED, "%s: a tokenizer that rewrites its text is not supported", refused);
}

static hd_status read_lists(hd_model *model, hdl_vocab_kind kind, lists *l, hd_error *error) {
    hd_status status = check_rewriting(model, kind, error);
    if (!status)
        status = read_texts(model, l->allocator, "tokenizer.ggml.tokens", HDL_MAX_TOKENS, &l->tokens,
                            &l->desc.token_count, error);
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

/* A control token by its text; HDL_NO_TOKEN: there is none. */
static int32_t control(const hd_model *model, const char *text) {
    const int32_t id = hdl_token_find(model->tokenizer, text, strlen(text));
    return id >= 0 && hdl_token_type_of(model->tokenizer, id) == HDL_TOKEN_CONTROL ? id : HDL_NO_TOKEN;
}

/* The ends that the file names, and those that chat models use whatever the file says. */
static hd_status find_ends(hd_model *model, hd_error *error) {
    static const char *const keys[] = { "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                        "tokenizer.ggml.eom_token_id" };
    static const char *const texts[] = { "<|eot_id|>",    "<|im_end|>", "<|end|>",         "<end_of_turn>", "<|call|>",
                                         "<|endoftext|>", "<|eom_id|>", "<|end_of_text|>", "<|return|>" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        int64_t id;
        const hd_status status = read_id(model, keys[i], HDL_NO_TOKEN, &id, error);
        if (status) return status;
        add_end(model, id);
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) add_end(model, control(model, texts[i]));
    return HD_OK;
}

static int32_t add_mark(hd_model *model, const char *text) {
    const int32_t id = control(model, text);
    if (id != HDL_NO_TOKEN && model->mark_count < sizeof model->marks / sizeof *model->marks)
        model->marks[model->mark_count++] = id;
    return id;
}

/* An answer of gpt-oss is several messages: <|return|> and <|call|> end it, and <|end|> a message of it. */
static void find_marks(hd_model *model) {
    static const char *const texts[] = { "<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>" };
    for (const char *const *text = hdl_call_marks; *text; text++) add_mark(model, *text);
    if (control(model, "<|return|>") == HDL_NO_TOKEN || control(model, "<|call|>") == HDL_NO_TOKEN) return;
    model->channels = true;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const int32_t id = add_mark(model, texts[i]);
        for (uint32_t k = 0; k < model->end_count; k++)
            if (model->ends[k] == id) model->ends[k--] = model->ends[--model->end_count];
    }
}

/* The kind that a file calls so; HDL_VOCAB_NONE: nobody knows it. */
static hdl_vocab_kind find_kind(hdl_span name) {
    static const struct { const char *name; hdl_vocab_kind kind; } kinds[] = {
        { "gpt2", HDL_VOCAB_BYTES }, { "llama", HDL_VOCAB_PIECES }, { "t5", HDL_VOCAB_UNIGRAM },
        { "bert", HDL_VOCAB_WORDPIECE },
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (hdl_same(name, hdl_text(kinds[i].name))) return kinds[i].kind;
    return HDL_VOCAB_NONE;
}

hd_status hdl_vocabulary_read(hd_model *model, hd_error *error) {
    char quoted[HDL_QUOTE], pre[64] = "";
    hdl_span name, pattern;
    lists l = { .allocator = &model->allocator };
    hd_status status =
        hdl_gguf_get_text(model->gguf, "tokenizer.chat_template", hdl_text(""), &model->chat_template, error);
    if (!status)
        status = hdl_gguf_get_text(model->gguf, "tokenizer.chat_template.tool_use", hdl_text(""), &model->tool_template,
                                   error);
    if (!status) status = hdl_gguf_get_text(model->gguf, "tokenizer.ggml.model", hdl_text("none"), &name, error);
    if (!status) status = hdl_gguf_get_text(model->gguf, "tokenizer.ggml.pre", hdl_text("default"), &pattern, error);
    if (status || hdl_same(name, hdl_text("none")) || hdl_same(name, hdl_text("no_vocab")))
        return status; /* a model without a vocabulary takes and gives ids */
    const hdl_vocab_kind kind = find_kind(name);
    if (kind == HDL_VOCAB_NONE)
        return hdl_fail(error, HD_STATUS_UNSUPPORTED,
                        "tokenizer.ggml.model is %s; heddle knows gpt2, llama, t5 and bert", hdl_quote(name, quoted));
    if (pattern.count >= sizeof pre)
        return hdl_fail(error, HD_STATUS_UNSUPPORTED, "tokenizer.ggml.pre is %s, which no one knows",
                        hdl_quote(pattern, quoted));
    memcpy(pre, pattern.bytes, (size_t)pattern.count);
    l.desc.pre = pre;
    status = read_lists(model, kind, &l, error);
    if (!status) status = hdl_tokenizer_create(&model->allocator, &l.desc, &model->tokenizer, error);
    free_lists(&l);
    if (!status) status = find_ends(model, error);
    if (!status) find_marks(model);
    return status;
}

hd_status hdl_vocabulary_read_alone(hd_model *model, hd_error *error) {
    hdl_gguf_value value;
    hd_status status = hdl_gguf_get_array(model->gguf, "tokenizer.ggml.tokens", HDL_GGUF_STRING, 0, HDL_MAX_TOKENS,
                                          &value, error);
    if (status) return status;
    model->arch_name = "tokenizer";
    model->figures.vocabulary = (uint32_t)value.count;
    status = hdl_vocabulary_read(model, error);
    return status || model->tokenizer ? status : hdl_fail(error, HD_STATUS_NAME_NOT_FOUND, "the file has no tokenizer");
}
