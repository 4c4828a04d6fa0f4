/* convert_vocabulary.c: the tokens of tokenizer.json by id, with their types. */
#include "cli/convert.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int set(const cli_conversion *c, cli_vocabulary *v, json_int_t at, const char *content, cli_token type) {
    if (at < 0 || at >= (json_int_t)v->count)
        return cli_convert_bad_tokenizer(c, "a token's id is none, or not below vocab_size of config.json");
    if (v->texts[at] && (type == CLI_NORMAL || strcmp(v->texts[at], content) != 0))
        return cli_convert_bad_tokenizer(c, "two tokens have the same id");
    v->texts[at] = content;
    v->types[at] = (int32_t)type;
    return CLI_OK;
}

/* A unigram's: pairs of text and score, in the order of their ids. */
static int take_scored(const cli_conversion *c, cli_vocabulary *v, const json_t *vocab) {
    int code = CLI_OK;
    for (size_t i = 0; i < json_array_size(vocab) && !code; i++) {
        const json_t *piece = json_array_get(vocab, i), *name = json_array_get(piece, 0),
                     *score = json_array_get(piece, 1);
        if (!json_is_string(name) || !json_is_number(score) || !isfinite((float)json_number_value(score)) ||
            strlen(json_string_value(name)) != json_string_length(name))
            return cli_convert_bad_tokenizer(c, "model.vocab has what is no piece and its score");
        code = set(c, v, (json_int_t)i, json_string_value(name), CLI_NORMAL);
        if (!code) v->scores[i] = (float)json_number_value(score);
    }
    return code;
}

static int take_added(const cli_conversion *c, cli_vocabulary *v) {
    const json_t *added = json_object_get(c->tokenizer, "added_tokens");
    int code = CLI_OK;
    for (size_t i = 0; i < json_array_size(added) && !code; i++) {
        const json_t *token = json_array_get(added, i), *content = json_object_get(token, "content"),
                     *id = json_object_get(token, "id");
        if (!json_is_string(content) || strlen(json_string_value(content)) != json_string_length(content))
            return cli_convert_bad_tokenizer(c, "an added token has no text");
        code = set(c, v, json_is_integer(id) ? json_integer_value(id) : -1, json_string_value(content),
                   json_is_true(json_object_get(token, "special")) ? CLI_CONTROL : CLI_USER);
    }
    return code;
}

/* Tokens of single bytes, and the one that stands for what is unknown. */
static void mark(const cli_conversion *c, cli_vocabulary *v) {
    const json_t *model = json_object_get(c->tokenizer, "model"), *number = json_object_get(model, "unk_id");
    const char *unknown = json_string_value(json_object_get(model, "unk_token"));
    const bool bytes = json_is_true(json_object_get(model, "byte_fallback"));
    for (size_t i = 0; i < v->count; i++) {
        unsigned byte;
        int used = 0;
        if (bytes && strlen(v->texts[i]) == 6 && sscanf(v->texts[i], "<0x%2X>%n", &byte, &used) == 1 && used == 6)
            v->types[i] = CLI_BYTE;
        if ((unknown && strcmp(unknown, v->texts[i]) == 0) ||
            (json_is_integer(number) && json_integer_value(number) == (json_int_t)i))
            v->types[i] = CLI_UNKNOWN;
    }
}

int cli_convert_vocabulary(const cli_conversion *c, cli_vocabulary *v) {
    json_t *vocab = json_object_get(json_object_get(c->tokenizer, "model"), "vocab"), *id;
    const char *name;
    *v = (cli_vocabulary){ calloc(c->vocabulary, sizeof *v->texts), calloc(c->vocabulary, sizeof *v->pads),
                           calloc(c->vocabulary, sizeof *v->types), calloc(c->vocabulary, sizeof *v->scores),
                           c->vocabulary };
    if (!v->texts || !v->pads || !v->types || !v->scores) return cli_fail(c->command, "no memory is left");
    int code = json_is_object(vocab) || json_is_array(vocab) ? CLI_OK
                                                             : cli_convert_bad_tokenizer(c, "model.vocab is missing");
    json_object_foreach(vocab, name, id)
        if (!code) code = set(c, v, json_is_integer(id) ? json_integer_value(id) : -1, name, CLI_NORMAL);
    if (!code) code = take_scored(c, v, vocab);
    if (!code) code = take_added(c, v);
    for (size_t i = 0; i < v->count && !code; i++) {
        if (v->texts[i]) continue; /* rows of the embedding that no token has */
        snprintf(v->pads[i], sizeof v->pads[i], "[PAD%zu]", i);
        v->texts[i] = v->pads[i];
        v->types[i] = CLI_UNUSED;
    }
    if (!code) mark(c, v);
    return code;
}

void cli_convert_vocabulary_free(cli_vocabulary *v) {
    free(v->texts);
    free(v->pads);
    free(v->types);
    free(v->scores);
}

int64_t cli_convert_find(const cli_vocabulary *v, const char *text) {
    for (size_t i = 0; i < v->count; i++)
        if (strcmp(v->texts[i], text) == 0) return (int64_t)i;
    return -1;
}
