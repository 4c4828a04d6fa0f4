/* convert_tokenizer.c: tokenizer.json as keys of a GGUF file: a BPE of bytes, one of pieces with bytes to fall back on,
 * a unigram or WordPiece; the tokens that begin and end a text; the chat template. */
#include "cli/convert.h"
#include "cli/text.h"
#include <stdlib.h>
#include <string.h>

bool cli_convert_is(const json_t *of, const char *key, const char *wanted) {
    const char *own = json_string_value(json_object_get(of, key));
    return own && strcmp(own, wanted) == 0;
}

int cli_convert_bad_tokenizer(const cli_conversion *c, const char *what) {
    return cli_fail(c->command, "%.200s/tokenizer.json: %s", c->folder, what);
}

static void put_text(const cli_conversion *c, const char *key, const char *value) {
    hd_model_writer_text(c->writer, key, value, strlen(value));
}

/* ---- kinds ---- */

/* Merges are "left right", or pairs. */
static int put_merges(const cli_conversion *c) {
    const json_t *merges = json_object_get(json_object_get(c->tokenizer, "model"), "merges");
    const size_t count = json_array_size(merges);
    text all = { 0 };
    const char **texts = calloc(count + 1, sizeof *texts);
    size_t *starts = calloc(count + 1, sizeof *starts);
    int code = !texts || !starts ? cli_fail(c->command, "no memory is left")
               : count == 0      ? cli_convert_bad_tokenizer(c, "model.merges is missing")
                                 : CLI_OK;
    for (size_t i = 0; i < count && !code; i++) {
        const json_t *merge = json_array_get(merges, i);
        const char *left = json_string_value(json_array_get(merge, 0)),
                   *right = json_string_value(json_array_get(merge, 1));
        const char *both = json_string_value(merge);
        starts[i] = all.length;
        if (both) text_append(&all, both, strlen(both) + 1);
        else if (left && right && json_array_size(merge) == 2) {
            text_append(&all, left, strlen(left));
            text_append(&all, " ", 1);
            text_append(&all, right, strlen(right) + 1);
        } else code = cli_convert_bad_tokenizer(c, "a merge is no pair of tokens");
    }
    if (!code && all.failed) code = cli_fail(c->command, "no memory is left");
    for (size_t i = 0; i < count && !code; i++) texts[i] = all.data + starts[i];
    if (!code) hd_model_writer_texts(c->writer, "tokenizer.ggml.merges", texts, count);
    text_free(&all);
    free(texts);
    free(starts);
    return code;
}

static int byte_level(const cli_conversion *c, cli_vocabulary *v) {
    const char *pattern = cli_convert_pattern(c->tokenizer);
    (void)v;
    if (!pattern) return cli_convert_bad_tokenizer(c, "pre_tokenizer is none that heddle knows");
    if (!cli_convert_is_plain(json_object_get(c->tokenizer, "normalizer")))
        return cli_convert_bad_tokenizer(c, "normalizer is none that heddle knows");
    put_text(c, "tokenizer.ggml.model", "gpt2");
    put_text(c, "tokenizer.ggml.pre", pattern);
    return put_merges(c);
}

/* Of pieces: BPE by scores, or a unigram. */
static int pieces(const cli_conversion *c, cli_vocabulary *v, const char *model) {
    bool prefix;
    if (!cli_convert_spaces(c->tokenizer, &prefix))
        return cli_convert_bad_tokenizer(c, "normalizer and pre_tokenizer are not SentencePiece's, or rewrite text");
    put_text(c, "tokenizer.ggml.model", model);
    put_text(c, "tokenizer.ggml.pre", "default");
    hd_model_writer_bool(c->writer, "tokenizer.ggml.add_space_prefix", prefix);
    const int code = strcmp(model, "llama") == 0 ? cli_convert_scores(c, v) : CLI_OK;
    if (!code) hd_model_writer_f32s(c->writer, "tokenizer.ggml.scores", v->scores, v->count);
    return code;
}
static int fallback(const cli_conversion *c, cli_vocabulary *v) { return pieces(c, v, "llama"); }
static int unigram(const cli_conversion *c, cli_vocabulary *v) { return pieces(c, v, "t5"); }

static bool says(const json_t *of, const char *key, const char *wanted) {
    const char *own = json_string_value(json_object_get(of, key));
    return own && strcmp(own, wanted) == 0;
}

/* BERT's: what begins a word has U+2581 in front here, and what goes on has nothing. */
static int wordpiece(const cli_conversion *c, cli_vocabulary *v) {
    const json_t *model = json_object_get(c->tokenizer, "model"), *rules = json_object_get(c->tokenizer, "normalizer"),
                 *accents = json_object_get(rules, "strip_accents"),
                 *most = json_object_get(model, "max_input_chars_per_word");
    const bool lowercase = json_is_true(json_object_get(rules, "lowercase"));
    if (!says(rules, "type", "BertNormalizer") || !json_is_true(json_object_get(rules, "clean_text")) ||
        !json_is_true(json_object_get(rules, "handle_chinese_chars")) ||
        !says(model, "continuing_subword_prefix", "##") ||
        !says(json_object_get(c->tokenizer, "pre_tokenizer"), "type", "BertPreTokenizer") ||
        (most && json_integer_value(most) != 100))
        return cli_convert_bad_tokenizer(c, "WordPiece has other rules than BERT's");
    put_text(c, "tokenizer.ggml.model", "bert");
    put_text(c, "tokenizer.ggml.pre", "default");
    hd_model_writer_bool(c->writer, "tokenizer.ggml.normalizer.lowercase", lowercase);
    hd_model_writer_bool(c->writer, "tokenizer.ggml.normalizer.strip_accents",
                         json_is_boolean(accents) ? json_is_true(accents) : lowercase);
    text all = { 0 };
    size_t *starts = calloc(v->count, sizeof *starts);
    for (size_t i = 0; i < v->count && starts; i++) {
        const char *own = v->texts[i];
        const size_t bytes = strlen(own);
        const bool goes_on = strncmp(own, "##", 2) == 0, whole = own[0] == '[' && own[bytes - 1] == ']';
        starts[i] = all.length;
        if (!goes_on && !whole) text_append(&all, "\xE2\x96\x81", 3);
        text_append(&all, own + (goes_on ? 2 : 0), strlen(own + (goes_on ? 2 : 0)) + 1);
    }
    const int code = !starts || all.failed ? cli_fail(c->command, "no memory is left") : CLI_OK;
    const char **texts = calloc(v->count, sizeof *texts);
    for (size_t i = 0; i < v->count && !code && texts; i++) texts[i] = all.data + starts[i];
    if (texts && !code) hd_model_writer_texts(c->writer, "tokenizer.ggml.tokens", texts, v->count);
    hd_model_writer_u32(c->writer, "tokenizer.ggml.token_type_count",
                        (uint32_t)json_integer_value(json_object_get(c->config.root, "type_vocab_size")));
    free(texts);
    free(starts);
    text_free(&all);
    return code;
}

static const struct kind {
    const char *type;
    bool        bytes; /* to fall back on */
    int (*put)(const cli_conversion *c, cli_vocabulary *v);
    bool        own_texts;
} kinds[] = {
    { "BPE", false, byte_level, false }, { "BPE", true, fallback, false },    { "Unigram", false, unigram, false },
    { "Unigram", true, unigram, false }, { "WordPiece", false, wordpiece, true },
};

/* ---- tokens that have a part ---- */

/* A token's text in tokenizer_config.json, as such or in an object. */
static const char *named(const cli_conversion *c, const char *key) {
    const json_t *value = json_object_get(c->tokenizer_config, key);
    return json_string_value(json_is_object(value) ? json_object_get(value, "content") : value);
}

/* The token that tokenizer_config.json names, else config.json, there the first one of a list; -1 for none. */
static int find_id(const cli_conversion *c, const cli_vocabulary *v, const char *what, int64_t *out) {
    char key[32];
    snprintf(key, sizeof key, "%s_token", what);
    const char *name = named(c, key);
    *out = name ? cli_convert_find(v, name) : -1;
    if (*out >= 0) return CLI_OK;
    snprintf(key, sizeof key, "%s_token_id", what);
    const json_t *value = json_object_get(c->config.root, key);
    if (json_is_array(value)) value = json_array_get(value, 0);
    if (!value || json_is_null(value)) return CLI_OK;
    *out = json_is_integer(value) ? json_integer_value(value) : -1;
    if (*out >= 0 && *out < (int64_t)c->vocabulary) return CLI_OK;
    return cli_fail(c->command, "%.200s/config.json: %s is no token", c->folder, key);
}

/* The list by which special tokens go around a text, or NULL. */
static const json_t *find_template(const cli_conversion *c) {
    const json_t *processor = json_object_get(c->tokenizer, "post_processor"),
                 *steps = json_object_get(processor, "processors");
    for (size_t i = 0; i < json_array_size(steps) && !says(processor, "type", "TemplateProcessing"); i++)
        processor = json_array_get(steps, i);
    return says(processor, "type", "TemplateProcessing") ? json_object_get(processor, "single") : NULL;
}

/* Whether the token goes before a text, or behind it: tokenizer_config.json says so, else the template does. */
static bool is_added(const cli_conversion *c, const cli_vocabulary *v, int64_t token, const char *key, bool first) {
    const json_t *config = json_object_get(c->tokenizer_config, key), *list = find_template(c);
    const size_t count = json_array_size(list);
    if (token < 0) return false;
    if (json_is_boolean(config)) return json_is_true(config);
    const json_t *special = json_object_get(json_array_get(list, first || count == 0 ? 0 : count - 1), "SpecialToken");
    return says(special, "id", v->texts[token]);
}

static int put_ids(const cli_conversion *c, const cli_vocabulary *v) {
    /* What they are called in the folder, in GGUF, and in a folder with WordPiece. */
    static const struct { const char *what, *key, *words, *added; } parts[] = {
        { "bos", "bos", "cls", "add_bos_token" }, { "eos", "eos", "sep", "add_eos_token" },
        { "unk", "unknown", "unk", NULL },        { "pad", "padding", "pad", NULL },
        { "sep", "seperator", "sep", NULL }, /* as GGUF spells it */
        { "mask", "mask", "mask", NULL },
    };
    int code = CLI_OK;
    const bool words = says(json_object_get(c->tokenizer, "model"), "type", "WordPiece"); /* which adds its own */
    for (size_t i = 0; i < CLI_COUNT(parts) && !code; i++) {
        char key[64];
        int64_t id;
        code = find_id(c, v, words ? parts[i].words : parts[i].what, &id);
        snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", parts[i].key);
        if (!code && id >= 0) hd_model_writer_u32(c->writer, key, (uint32_t)id);
        snprintf(key, sizeof key, "tokenizer.ggml.%s", parts[i].added ? parts[i].added : "");
        if (!code && parts[i].added && !words)
            hd_model_writer_bool(c->writer, key, is_added(c, v, id, parts[i].added, i == 0));
    }
    return code;
}

/* More tokens that end an answer: GGUF has places for two beside eos. */
static int put_ends(const cli_conversion *c, const cli_vocabulary *v) {
    static const char *const keys[] = { "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id" };
    int64_t eos;
    size_t used = 0;
    int code = find_id(c, v, "eos", &eos);
    json_t *generation = code ? NULL : cli_convert_json(c, "generation_config.json", false, &code);
    const json_t *ends = json_object_get(generation, "eos_token_id");
    if (!json_is_array(ends)) ends = json_object_get(c->config.root, "eos_token_id");
    for (size_t i = 0; i < json_array_size(ends) && !code && used < CLI_COUNT(keys); i++) {
        const json_t *end = json_array_get(ends, i);
        const json_int_t id = json_is_integer(end) ? json_integer_value(end) : -1;
        if (id < 0 || id >= (json_int_t)v->count)
            code = cli_fail(c->command, "%.200s: eos_token_id has what is no token", c->folder);
        else if (id != eos) hd_model_writer_u32(c->writer, keys[used++], (uint32_t)id);
    }
    json_decref(generation);
    return code;
}

/* tokenizer_config.json has one template, or several with names; or it lies in a file of its own. */
static int put_chat(const cli_conversion *c) {
    static const char own[] = "chat_template.jinja", key[] = "tokenizer.chat_template";
    enum { MOST = 1 << 20 };
    const json_t *chat = json_object_get(c->tokenizer_config, "chat_template"), *several = chat;
    char path[4096];
    size_t bytes;
    for (size_t i = 0; i < json_array_size(several); i++)
        if (says(json_array_get(several, i), "name", "default"))
            chat = json_object_get(json_array_get(several, i), "template");
    if (json_is_string(chat)) hd_model_writer_text(c->writer, key, json_string_value(chat), json_string_length(chat));
    if (json_is_string(chat) || snprintf(path, sizeof path, "%s/%s", c->folder, own) >= (int)sizeof path ||
        !system_is_there(path))
        return CLI_OK;
    char *template = cli_read_text(c->command, path, MOST, &bytes);
    if (!template) return CLI_FAILED;
    hd_model_writer_text(c->writer, key, template, bytes);
    free(template);
    return CLI_OK;
}

int cli_convert_tokenizer(cli_conversion *c) {
    const json_t *model = json_object_get(c->tokenizer, "model");
    const char *type = json_string_value(json_object_get(model, "type"));
    const bool bytes = json_is_true(json_object_get(model, "byte_fallback"));
    const struct kind *kind = NULL;
    for (size_t i = 0; i < CLI_COUNT(kinds); i++) /* old files do not say that they are BPE */
        if (strcmp(kinds[i].type, type ? type : "BPE") == 0 && kinds[i].bytes == bytes) kind = &kinds[i];
    if (!kind) return cli_convert_bad_tokenizer(c, "model is none of BPE, Unigram and WordPiece");
    cli_vocabulary v;
    int code = cli_convert_vocabulary(c, &v);
    if (!code) code = kind->put(c, &v);
    if (!code && !kind->own_texts) hd_model_writer_texts(c->writer, "tokenizer.ggml.tokens", v.texts, v.count);
    if (!code) hd_model_writer_i32s(c->writer, "tokenizer.ggml.token_type", v.types, v.count);
    if (!code) code = put_ids(c, &v);
    if (!code) code = put_ends(c, &v);
    cli_convert_vocabulary_free(&v);
    return code ? code : put_chat(c);
}
