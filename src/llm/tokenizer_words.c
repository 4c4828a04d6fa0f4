/* tokenizer_words.c: cuts text into words with hand-made forms of the patterns that GPT-2, Llama 3 and Qwen 2 were trained with.
 * It takes any bytes in linear time: every step looks at most twice at a byte, whatever the text. A byte that is not UTF-8 is
 * a character that is no letter, number or space. The patterns themselves stand above their functions. */
#include "llm/tokenizer_words.h"
#include "llm/utf8.h"
#include <string.h>

#include "llm/unicode_classes.inc"

typedef enum char_class { OTHER = 0, LETTER, NUMBER, SPACE, NOTHING } char_class;

static const struct {
    const char *name;
    hdl_pattern pattern;
} names[] = {
    { "gpt-2", HDL_PATTERN_GPT2 },           { "gpt2", HDL_PATTERN_GPT2 },        { "phi-2", HDL_PATTERN_GPT2 },
    { "smollm", HDL_PATTERN_DIGITS_GPT2 },   { "starcoder", HDL_PATTERN_DIGITS_GPT2 },
    { "llama-bpe", HDL_PATTERN_LLAMA3 },     { "llama3", HDL_PATTERN_LLAMA3 },    { "llama-v3", HDL_PATTERN_LLAMA3 },
    { "falcon3", HDL_PATTERN_LLAMA3 },       { "qwen2", HDL_PATTERN_QWEN2 },      { "deepseek-r1-qwen", HDL_PATTERN_QWEN2 },
};

hdl_pattern hdl_pattern_find(const char *name) {
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i].name) == 0) return names[i].pattern;
    return HDL_PATTERN_NONE;
}

/* The class of the character at `at` and its bytes; NOTHING and 0 at the end. */
static char_class look(const uint8_t *text, size_t at, size_t end, size_t *out_bytes) {
    *out_bytes = 0;
    if (at >= end) return NOTHING;
    uint32_t code;
    *out_bytes = hdl_utf8_read(text + at, end - at, &code);
    if (code >= CLASS_END) return OTHER;
    uint32_t four = class_pages[class_index[code / CLASS_PAGE]][code % CLASS_PAGE / 4];
    return (char_class)(four >> 2 * (code % 4) & 3);
}

/* The end of at most `most` characters of one class from `at` on. */
static size_t run(const uint8_t *text, size_t at, size_t end, char_class wanted, size_t most) {
    size_t bytes;
    while (most-- && look(text, at, end, &bytes) == wanted) at += bytes;
    return at;
}

static bool newline(uint8_t byte) { return byte == '\r' || byte == '\n'; }

/* Bytes of 's 't 're 've 'm 'll 'd at `at`, or 0. With `fold`, capitals count, and the long s (U+017F) is an s too. */
static size_t contraction(const uint8_t *text, size_t at, size_t end, bool fold) {
    if (text[at] != '\'' || end - at < 2) return 0;
    uint8_t bits = fold ? 0x20 : 0, a = text[at + 1] | bits, b = end - at > 2 ? text[at + 2] | bits : 0;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return 3;
    return fold && end - at > 2 && text[at + 1] == 0xC5 && text[at + 2] == 0xBF ? 3 : 0;
}

/* \s+(?!\S)|\s+ : all spaces at the end of the text, else all but the last one, which goes to the next word. */
static size_t spaces(const uint8_t *text, size_t at, size_t end) {
    size_t last = at, next = at, bytes;
    while (look(text, next, end, &bytes) == SPACE) {
        last = next;
        next += bytes;
    }
    return next < end && last > at ? last : next;
}

/* 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static size_t gpt2(const uint8_t *text, size_t at, size_t end) {
    size_t bytes = contraction(text, at, end, false);
    if (bytes) return at + bytes;
    size_t first = at + (text[at] == ' ');
    char_class class = look(text, first, end, &bytes);
    return class == SPACE || class == NOTHING ? spaces(text, at, end) : run(text, first, end, class, SIZE_MAX);
}

/* (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ */
static size_t llama3(const uint8_t *text, size_t at, size_t end, size_t digits) {
    size_t bytes = contraction(text, at, end, true), unused;
    if (bytes) return at + bytes;
    char_class class = look(text, at, end, &bytes);
    if (class == NUMBER) return run(text, at, end, NUMBER, digits);
    if (class == LETTER) return run(text, at, end, LETTER, SIZE_MAX);
    if (!newline(text[at]) && look(text, at + bytes, end, &unused) == LETTER) return run(text, at + bytes, end, LETTER, SIZE_MAX);
    size_t first = at + (text[at] == ' ');
    if (look(text, first, end, &unused) == OTHER) {
        size_t next = run(text, first, end, OTHER, SIZE_MAX);
        while (next < end && newline(text[next])) next++;
        return next;
    }
    size_t after_newline = at;
    for (size_t next = at; look(text, next, end, &bytes) == SPACE; next += bytes)
        if (newline(text[next])) after_newline = next + 1;
    return after_newline > at ? after_newline : spaces(text, at, end);
}

/* Every number character is a part by itself, and the text between two of them is a part, cut by GPT-2's pattern. */
static size_t digits_gpt2(hdl_words *words) {
    if (words->at == words->part_end) {
        size_t bytes;
        if (look(words->text, words->at, words->bytes, &bytes) == NUMBER) return words->part_end = words->at + bytes;
        for (size_t at = words->at; at < words->bytes; at += bytes, words->part_end = at)
            if (look(words->text, at, words->bytes, &bytes) == NUMBER) break;
    }
    return gpt2(words->text, words->at, words->part_end);
}

bool hdl_words_next(hdl_words *words, size_t *out_end) {
    if (words->at >= words->bytes) return false;
    switch (words->pattern) {
    case HDL_PATTERN_LLAMA3: words->at = llama3(words->text, words->at, words->bytes, 3); break;
    case HDL_PATTERN_QWEN2: words->at = llama3(words->text, words->at, words->bytes, 1); break;
    case HDL_PATTERN_DIGITS_GPT2: words->at = digits_gpt2(words); break;
    default: words->at = gpt2(words->text, words->at, words->bytes); break;
    }
    *out_end = words->at;
    return true;
}
