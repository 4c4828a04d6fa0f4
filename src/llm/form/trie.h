/* trie.h: the tokens of a vocabulary by their bytes, so that what begins alike is looked at once. Read-only once
 * made. */
#ifndef HDL_TRIE_H
#define HDL_TRIE_H

#include "llm/form/grammar.h"
#include "llm/tokenizer.h"

/* Longer tokens are left out: no answer in a form holds one. */
enum { HDL_TRIE_DEPTH = 256 };

/* In the order of a walk: behind a node come those below it, then, at `skip`, the one beside it. */
typedef struct hdl_trie_node {
    uint32_t skip;
    int32_t  token;    /* that ends here, or HDL_NO_TOKEN */
    uint8_t  byte;
    uint8_t  depth;    /* bytes above it */
} hdl_trie_node;

typedef struct hdl_trie {
    hd_allocator   allocator;
    hdl_trie_node *nodes;
    uint32_t       count;
    int32_t       *same;       /* [tokens]: another token with the same bytes, HDL_NO_TOKEN, or why it is not there */
    uint32_t       tokens;
    bool           spells_all; /* every character can be said */
    bool           ends_inside; /* whatever character a token begins can be ended by others */
    /* where spells_all is false: the characters that can be said, by themselves or byte by byte */
    hdl_range     *spelled;
    uint32_t       spelled_count;
    size_t         spelled_room;
} hdl_trie;

/* Tokens that are not in a trie: one that no reader of an answer sees, and one that no answer holds. */
enum { HDL_TOKEN_HIDDEN = -2, HDL_TOKEN_LEFT_OUT = -3 };

/* Of the first `tokens` tokens those that stand for text, and of the control tokens `marks`, `mark_count` of them.
 * Statuses: OUT_OF_HOST_MEMORY. */
hd_status hdl_trie_create(const hd_allocator *allocator, const hdl_tokenizer *tokenizer, uint32_t tokens,
                          const int32_t *marks, uint32_t mark_count, hdl_trie **out_trie, hd_error *error);
void hdl_trie_destroy(hdl_trie *trie);
/* Does the token stand for text that is in the trie? */
static inline bool hdl_trie_has(const hdl_trie *trie, int32_t token) {
    return token >= 0 && (uint32_t)token < trie->tokens && trie->same[token] >= HDL_NO_TOKEN;
}

#endif
