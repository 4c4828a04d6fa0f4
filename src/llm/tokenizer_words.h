/* tokenizer_words.h: the words that a byte-level vocabulary merges within, cut as its training pattern cuts them. */
#ifndef HDL_TOKENIZER_WORDS_H
#define HDL_TOKENIZER_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum hdl_pattern {
    HDL_PATTERN_NONE = 0,
    HDL_PATTERN_GPT2,
    HDL_PATTERN_DIGITS_GPT2,
    HDL_PATTERN_LLAMA3,
    HDL_PATTERN_QWEN2
} hdl_pattern;

/* The pattern that GGUF calls `name`, or HDL_PATTERN_NONE. */
hdl_pattern hdl_pattern_find(const char *name);

/* A text being cut. Set pattern, text and bytes; the rest begins as zero. */
typedef struct hdl_words {
    hdl_pattern    pattern;
    const uint8_t *text;
    size_t         bytes, at, part_end;
} hdl_words;
/* The next word's end, its begin being the end before; false when the text is used up. */
bool hdl_words_next(hdl_words *words, size_t *out_end);

#endif
