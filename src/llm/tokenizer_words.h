/* tokenizer_words.h: the words that a byte-level vocabulary merges within, cut as its training cut them. */
#ifndef HDL_TOKENIZER_WORDS_H
#define HDL_TOKENIZER_WORDS_H

#include "llm/pattern.h"

enum { HDL_WORDS_STAGES = 6 };

/* How a vocabulary's words are found: each pattern cuts the parts that the one before left. */
typedef struct hdl_word_rule {
    hdl_pattern patterns[HDL_WORDS_STAGES];
    uint32_t    count;
    bool        whole_words; /* a word that is a token is taken as it is, whatever the merges say */
} hdl_word_rule;

/* The rule that GGUF calls `pre`, or false. */
bool hdl_words_find(const char *pre, hdl_word_rule *out_rule);

/* Do texts of such a vocabulary begin with BOS where the file does not say? */
bool hdl_words_begin(const char *pre);

/* One stage's part of the text, and the match that was found last. */
typedef struct hdl_words_stage {
    size_t begin, end, match, match_end;
} hdl_words_stage;

/* A text being cut. Set rule, text and bytes; the rest begins as zero. */
typedef struct hdl_words {
    const hdl_word_rule *rule;
    const uint8_t       *text;
    size_t               bytes, at;
    hdl_words_stage      stages[HDL_WORDS_STAGES];
} hdl_words;
/* The next word's end, its begin being the end before; false when the text is used up. */
bool hdl_words_next(hdl_words *words, size_t *out_end);

#endif
