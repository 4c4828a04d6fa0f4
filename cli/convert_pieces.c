/* convert_pieces.c: what SentencePiece's vocabularies have in tokenizer.json, as GGUF has it: scores in place of
 * merges, and spaces as U+2581. */
#include "cli/convert.h"
#include "cli/text.h"
#include <stdlib.h>
#include <string.h>

#define SPACE "\xE2\x96\x81"

/* One step of what is done to a text: spaces become SPACE, one is put before, or nothing at all. */
static bool read_step(const json_t *step, bool *spaces, bool *prefix) {
    if (cli_convert_is(step, "type", "Prepend")) return *prefix = cli_convert_is(step, "prepend", SPACE);
    if (cli_convert_is(step, "type", "Replace"))
        return *spaces = cli_convert_is(json_object_get(step, "pattern"), "String", " ") &&
                         cli_convert_is(step, "content", SPACE);
    if (cli_convert_is(step, "type", "Metaspace")) {
        const json_t *adds = json_object_get(step, "add_prefix_space"); /* of older files */
        const bool never = cli_convert_is(step, "prepend_scheme", "never");
        *prefix = *prefix || (!never && !json_is_false(adds));
        return *spaces = cli_convert_is(step, "replacement", SPACE);
    }
    /* No space is left when it looks for one. */
    return cli_convert_is(step, "type", "Split") && *spaces &&
           cli_convert_is(json_object_get(step, "pattern"), "String", " ");
}

static bool read_steps(const json_t *from, const char *list, bool *spaces, bool *prefix) {
    const json_t *steps = json_object_get(from, list);
    if (!from || json_is_null(from)) return true;
    if (!json_is_array(steps)) return read_step(from, spaces, prefix);
    bool known = true;
    for (size_t i = 0; i < json_array_size(steps); i++)
        known = known && read_step(json_array_get(steps, i), spaces, prefix);
    return known;
}

bool cli_convert_spaces(const json_t *tokenizer, bool *out_prefix) {
    bool spaces = false;
    *out_prefix = false;
    return read_steps(json_object_get(tokenizer, "normalizer"), "normalizers", &spaces, out_prefix) &&
           read_steps(json_object_get(tokenizer, "pre_tokenizer"), "pretokenizers", &spaces, out_prefix) && spaces;
}

/* What a merge makes: both of its parts in one. False: it is no merge. */
static bool join(const json_t *merge, text *out) {
    const char *both = json_string_value(merge), *space = both ? strchr(both, ' ') : NULL;
    const char *left = json_string_value(json_array_get(merge, 0)),
               *right = json_string_value(json_array_get(merge, 1));
    out->length = 0;
    if (both && space && !strchr(space + 1, ' ')) text_add(out, "%.*s%s", (int)(space - both), both, space + 1);
    else if (left && right && json_array_size(merge) == 2) text_add(out, "%s%s", left, right);
    else return false;
    return !out->failed;
}

/* SentencePiece merges what makes the piece of the highest score: the sooner a merge comes here, the higher it is. */
int cli_convert_scores(const cli_conversion *c, cli_vocabulary *v) {
    const json_t *model = json_object_get(c->tokenizer, "model"), *merges = json_object_get(model, "merges"),
                 *vocab = json_object_get(model, "vocab");
    const size_t count = json_array_size(merges);
    bool *made = calloc(v->count, sizeof *made);
    size_t rank = 0;
    text both = { 0 };
    int code = !made   ? cli_fail(c->command, "no memory is left")
               : count ? CLI_OK
                       : cli_convert_bad_tokenizer(c, "model.merges is missing");
    for (size_t i = 0; i < count && !code; i++) {
        const json_t *id = join(json_array_get(merges, i), &both) ? json_object_get(vocab, both.data) : NULL;
        const json_int_t at = id ? json_integer_value(id) : -1; /* ids were looked at when they were taken */
        if (at < 0 || at >= (json_int_t)v->count) code = cli_convert_bad_tokenizer(c, "a merge is no pair of tokens");
        else if (!made[at]) {
            made[at] = true;
            v->scores[at] = -(float)++rank;
        }
    }
    for (size_t i = 0; i < v->count && !code; i++) {
        if (made[i]) continue;
        v->scores[i] = -(float)(rank + 1);
        if (v->types[i] == CLI_NORMAL && text_characters(v->texts[i]) > 1) v->types[i] = CLI_UNUSED;
    }
    text_free(&both);
    free(made);
    return code;
}
