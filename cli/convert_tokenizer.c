/* convert_tokenizer.c: tokenizer.json as keys of a GGUF file: the vocabulary and merges of a byte-level BPE, its
 * pattern's name, and the tokens that begin and end a text. */
#include "cli/convert.h"
#include "cli/text.h"
#include <stdlib.h>
#include <string.h>

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define WORDS "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define TAIL "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define OPEN "[^\\r\\n\\p{L}\\p{N}]?"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED_TAIL "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* What the steps of pre_tokenizer say, and GGUF's name for it. The name in `whole` is for models that take a word which
 * is a token as it is. */
static const struct { const char *steps, *name, *whole;
} patterns[] = {
    { "words;", "gpt-2", NULL },
    { "digits;words;", "smollm", NULL },
    { "split:" CONTRACTIONS "|" WORDS "|\\p{N}{1,3}" TAIL ";bytes;", "dbrx", "llama-bpe" },
    { "split:" CONTRACTIONS "|" WORDS "|\\p{N}" TAIL ";bytes;", "qwen2", NULL },
    { "split:" OPEN UPPER "*" LOWER "+" CONTRACTIONS "?|" OPEN UPPER "+" LOWER "*" CONTRACTIONS
      "?|\\p{N}{1,3}" CASED_TAIL ";bytes;",
      "gpt-4o", NULL },
    { "split:" OPEN UPPER "*" LOWER "+|" OPEN UPPER "+" LOWER "*|\\p{N}" CASED_TAIL ";bytes;", NULL, "tekken" },
};

enum { TYPE_NORMAL = 1, TYPE_CONTROL = 3, TYPE_USER = 4, TYPE_UNUSED = 5 };

static int bad(const cli_conversion *c, const char *what) {
    return cli_fail(c->command, "%.200s/tokenizer.json: %s", c->folder, what);
}

/* Adds a step's words; false for one that is not known. */
static bool add_step(const json_t *step, text *out) {
    const char *type = json_string_value(json_object_get(step, "type"));
    if (!type) return false;
    if (strcmp(type, "ByteLevel") == 0) {
        if (json_is_true(json_object_get(step, "add_prefix_space"))) return false;
        text_add(out, json_is_false(json_object_get(step, "use_regex")) ? "bytes;" : "words;");
        return true;
    }
    if (strcmp(type, "Digits") == 0 && json_is_true(json_object_get(step, "individual_digits"))) {
        text_add(out, "digits;");
        return true;
    }
    const char *regex = json_string_value(json_object_get(json_object_get(step, "pattern"), "Regex"));
    const char *behavior = json_string_value(json_object_get(step, "behavior"));
    if (strcmp(type, "Split") != 0 || !regex || !behavior || strcmp(behavior, "Isolated") != 0) return false;
    if (json_is_true(json_object_get(step, "invert"))) return false;
    text_add(out, "split:%s;", regex);
    return true;
}

/* The pattern's name in GGUF, or NULL. */
static const char *find_pattern(const cli_conversion *c) {
    const json_t *pre = json_object_get(c->tokenizer, "pre_tokenizer"), *steps = json_object_get(pre, "pretokenizers");
    const bool whole = json_is_true(json_object_get(json_object_get(c->tokenizer, "model"), "ignore_merges"));
    text words = { 0 };
    const char *name = NULL;
    bool known = json_is_object(pre);
    if (json_is_array(steps))
        for (size_t i = 0; i < json_array_size(steps) && i < 8; i++)
            known = known && add_step(json_array_get(steps, i), &words);
    else known = known && add_step(pre, &words);
    for (size_t i = 0; i < CLI_COUNT(patterns) && known && !words.failed && words.length; i++)
        if (strcmp(patterns[i].steps, words.data) == 0) name = whole ? patterns[i].whole : patterns[i].name;
    text_free(&words);
    return name;
}

/* Tokens by id, and their types. */
typedef struct vocabulary {
    const char **texts;
    char       (*pads)[16];
    int32_t     *types;
    size_t       count;
} vocabulary;

static int set(const cli_conversion *c, vocabulary *v, const json_t *id, const char *content, int32_t type) {
    const json_int_t at = json_is_integer(id) ? json_integer_value(id) : -1;
    if (at < 0 || at >= (json_int_t)v->count)
        return bad(c, "a token's id is none, or not below vocab_size of config.json");
    if (v->texts[at] && (type == TYPE_NORMAL || strcmp(v->texts[at], content) != 0))
        return bad(c, "two tokens have the same id");
    v->texts[at] = content;
    v->types[at] = type;
    return CLI_OK;
}

static int take_tokens(const cli_conversion *c, vocabulary *v) {
    json_t *vocab = json_object_get(json_object_get(c->tokenizer, "model"), "vocab"), *id;
    const json_t *added = json_object_get(c->tokenizer, "added_tokens");
    const char *token_text;
    int code = json_is_object(vocab) ? CLI_OK : bad(c, "model.vocab is missing");
    json_object_foreach(vocab, token_text, id) if (!code) code = set(c, v, id, token_text, TYPE_NORMAL);
    for (size_t i = 0; i < json_array_size(added) && !code; i++) {
        const json_t *token = json_array_get(added, i), *content = json_object_get(token, "content");
        if (!json_is_string(content) || strlen(json_string_value(content)) != json_string_length(content))
            return bad(c, "an added token has no text");
        code = set(c, v, json_object_get(token, "id"), json_string_value(content),
                   json_is_true(json_object_get(token, "special")) ? TYPE_CONTROL : TYPE_USER);
    }
    for (size_t i = 0; i < v->count && !code; i++) {
        if (v->texts[i]) continue; /* rows of the embedding that no token has */
        snprintf(v->pads[i], sizeof v->pads[i], "[PAD%zu]", i);
        v->texts[i] = v->pads[i];
        v->types[i] = TYPE_UNUSED;
    }
    return code;
}

/* Merges are "left right", or pairs. */
static int put_merges(const cli_conversion *c) {
    const json_t *merges = json_object_get(json_object_get(c->tokenizer, "model"), "merges");
    const size_t count = json_array_size(merges);
    text all = { 0 };
    const char **texts = calloc(count + 1, sizeof *texts);
    size_t *starts = calloc(count + 1, sizeof *starts);
    int code = !texts || !starts ? cli_fail(c->command, "no memory is left")
               : count == 0      ? bad(c, "model.merges is missing")
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
        } else code = bad(c, "a merge is no pair of tokens");
    }
    if (!code && all.failed) code = cli_fail(c->command, "no memory is left");
    for (size_t i = 0; i < count && !code; i++) texts[i] = all.data + starts[i];
    if (!code) hd_model_writer_texts(c->writer, "tokenizer.ggml.merges", texts, count);
    text_free(&all);
    free(texts);
    free(starts);
    return code;
}

/* A token that config.json names, the first one of a list; none is fine. */
static int put_id(const cli_conversion *c, const char *from, const char *to) {
    const json_t *value = json_object_get(c->config.root, from);
    if (json_is_array(value)) value = json_array_get(value, 0);
    if (!value || json_is_null(value)) return CLI_OK;
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        json_integer_value(value) >= (json_int_t)c->vocabulary)
        return cli_fail(c->command, "%.200s/config.json: %s is no token", c->folder, from);
    hd_model_writer_u32(c->writer, to, (uint32_t)json_integer_value(value));
    return CLI_OK;
}

/* The chat template of tokenizer_config.json, and whether texts begin with BOS. */
static int put_chat(const cli_conversion *c) {
    const json_t *chat = json_object_get(c->tokenizer_config, "chat_template"),
                 *bos = json_object_get(c->config.root, "bos_token_id");
    const json_t *begins = json_object_get(c->tokenizer_config, "add_bos_token");
    if (json_is_string(chat))
        hd_model_writer_text(c->writer, "tokenizer.chat_template", json_string_value(chat), json_string_length(chat));
    if (json_is_boolean(begins) && json_is_integer(bos))
        hd_model_writer_bool(c->writer, "tokenizer.ggml.add_bos_token", json_is_true(begins));
    return CLI_OK;
}

static int put_vocabulary(const cli_conversion *c, const char *pattern) {
    vocabulary v = { calloc(c->vocabulary, sizeof *v.texts), calloc(c->vocabulary, sizeof *v.pads),
                     calloc(c->vocabulary, sizeof *v.types), c->vocabulary };
    int code = v.texts && v.pads && v.types ? CLI_OK : cli_fail(c->command, "no memory is left");
    if (!code) code = take_tokens(c, &v);
    if (!code) {
        hd_model_writer_text(c->writer, "tokenizer.ggml.model", "gpt2", 4);
        hd_model_writer_text(c->writer, "tokenizer.ggml.pre", pattern, strlen(pattern));
        hd_model_writer_texts(c->writer, "tokenizer.ggml.tokens", v.texts, v.count);
        hd_model_writer_i32s(c->writer, "tokenizer.ggml.token_type", v.types, v.count);
    }
    free(v.texts);
    free(v.pads);
    free(v.types);
    return code;
}

int cli_convert_tokenizer(cli_conversion *c) {
    const json_t *model = json_object_get(c->tokenizer, "model");
    const char *type = json_string_value(json_object_get(model, "type"));
    if ((type && strcmp(type, "BPE") != 0) || json_is_true(json_object_get(model, "byte_fallback")))
        return bad(c, "only byte-level BPE is converted");
    const char *pattern = find_pattern(c);
    if (!pattern) return bad(c, "pre_tokenizer is none that heddle knows");
    int code = put_vocabulary(c, pattern);
    if (!code) code = put_merges(c);
    if (!code) code = put_id(c, "bos_token_id", "tokenizer.ggml.bos_token_id");
    if (!code) code = put_id(c, "eos_token_id", "tokenizer.ggml.eos_token_id");
    return code ? code : put_chat(c);
}
