/* convert_pre.c: how tokenizer.json cuts text into words, as the name that GGUF has for it. */
#include "cli/convert.h"
#include "cli/text.h"
#include <string.h>

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define WORDS "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define TAIL "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define OPEN "[^\\r\\n\\p{L}\\p{N}]?"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define MARKED "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+" \
    "|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CASED_TAIL "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* What the steps of pre_tokenizer say, and GGUF's name for it. The name in `whole` is for models that take a word which
 * is a token as it is. */
static const struct { const char *steps, *name, *whole;
} patterns[] = {
    { "words;", "gpt-2", NULL },
    { "digits;words;", "smollm", NULL },
    { "marks;words;numbers;split:[0-9][0-9][0-9];", "falcon", NULL },
    { "split:" CONTRACTIONS "|" WORDS "|\\p{N}{1,3}" TAIL ";bytes;", "dbrx", "llama-bpe" },
    { "split:" CONTRACTIONS "|" WORDS "|\\p{N}" TAIL ";bytes;", "qwen2", NULL },
    { "split:" OPEN UPPER "*" LOWER "+" CONTRACTIONS "?|" OPEN UPPER "+" LOWER "*" CONTRACTIONS
      "?|\\p{N}{1,3}" CASED_TAIL ";bytes;",
      "gpt-4o", NULL },
    { "split:\\p{N}{1,3};split:[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+;split:" MARKED ";bytes;",
      "deepseek-v3", NULL },
    { "split:" OPEN UPPER "*" LOWER "+|" OPEN UPPER "+" LOWER "*|\\p{N}" CASED_TAIL ";bytes;", NULL, "tekken" },
};

/* Adds a step's words; false for one that is not known. */
static bool add_step(const json_t *step, text *out) {
    if (cli_convert_is(step, "type", "ByteLevel")) {
        if (json_is_true(json_object_get(step, "add_prefix_space"))) return false;
        text_add(out, json_is_false(json_object_get(step, "use_regex")) ? "bytes;" : "words;");
        return true;
    }
    if (cli_convert_is(step, "type", "Digits")) {
        text_add(out, json_is_true(json_object_get(step, "individual_digits")) ? "digits;" : "numbers;");
        return true;
    }
    if (cli_convert_is(step, "type", "Punctuation") && cli_convert_is(step, "behavior", "Contiguous")) {
        text_add(out, "marks;");
        return true;
    }
    /* What matches is a word; these patterns leave nothing between their matches that could be removed. */
    const char *regex = json_string_value(json_object_get(json_object_get(step, "pattern"), "Regex"));
    const bool inverted = json_is_true(json_object_get(step, "invert"));
    if (!cli_convert_is(step, "type", "Split") || !regex ||
        !cli_convert_is(step, "behavior", inverted ? "Removed" : "Isolated"))
        return false;
    text_add(out, "split:%s;", regex);
    return true;
}

const char *cli_convert_pattern(const json_t *tokenizer) {
    const json_t *pre = json_object_get(tokenizer, "pre_tokenizer"), *steps = json_object_get(pre, "pretokenizers");
    const bool whole = json_is_true(json_object_get(json_object_get(tokenizer, "model"), "ignore_merges"));
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

bool cli_convert_is_plain(const json_t *normalizer) {
    const json_t *steps = json_object_get(normalizer, "normalizers");
    if (!normalizer || json_is_null(normalizer) || cli_convert_is(normalizer, "type", "NFC")) return true;
    bool plain = json_is_array(steps);
    for (size_t i = 0; i < json_array_size(steps); i++)
        plain = plain && cli_convert_is(json_array_get(steps, i), "type", "NFC");
    return plain;
}
