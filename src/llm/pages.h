/* pages.h: which pages of the cache each sequence holds. A page has room for 256 tokens in every layer, under one
 * number in all of them. Pages are taken as a sequence grows and given back as it is rewound, so that what one sequence
 * does not use is there for the others. Sequences that begin alike may hold the same full pages: nobody writes them. */
#ifndef HDL_PAGES_H
#define HDL_PAGES_H

#include "llm/support.h"

enum { HDL_PAGE_TOKENS = 256, HDL_NO_PAGE = -1 };
#define HDL_NO_SEQUENCE UINT32_MAX

typedef struct hdl_pages {
    uint32_t sequences, width; /* pages that one sequence can come to hold */
    uint32_t count, free_count;
    int32_t *table;            /* [sequences][width], HDL_NO_PAGE behind what a sequence holds */
    uint32_t *holders;         /* [count]: how many sequences hold each page */
    int32_t *free;             /* numbers of the pages that nobody holds; the last one goes first */
    int32_t *tokens;           /* [count][HDL_PAGE_TOKENS]: those that stand in each page */
    int32_t *shown;            /* [rows][width]: the pages of each row of a run */
    uint32_t *shown_sequences; /* [rows]: whose they are */
    uint32_t rows, shown_count;
    uint64_t shown_version;    /* of `shown`; it is up to date while this is `version` */
    uint64_t version;          /* above 0, another one whenever what a run reads changes */
} hdl_pages;

/* All pages free; `sequences`, `width`, `count` and `rows` of the most that a run may have are set. False without
 * memory; hdl_pages_end in any case. */
bool hdl_pages_make(const hd_allocator *allocator, hdl_pages *pages);
void hdl_pages_end(const hd_allocator *allocator, hdl_pages *pages);
/* How many more pages a sequence of `tokens` takes to hold `more` tokens beside them. */
uint32_t hdl_pages_needed(uint32_t tokens, uint32_t more);
/* Takes them; so many must be free. */
void hdl_pages_take(hdl_pages *pages, uint32_t sequence, uint32_t tokens, uint32_t more);
/* Gives back what a sequence that held `held` tokens does not need to hold `tokens`. */
void hdl_pages_give(hdl_pages *pages, uint32_t sequence, uint32_t held, uint32_t tokens);
/* Has `sequence`, which holds none, hold the first `count` pages of another too. */
void hdl_pages_share(hdl_pages *pages, uint32_t from, uint32_t count, uint32_t sequence);
/* Does another sequence hold the page of the token at a position, too? */
bool hdl_pages_are_shared(const hdl_pages *pages, uint32_t sequence, uint32_t position);
/* How many pages would be free if the sequence gave all of its own back. */
uint32_t hdl_pages_free_without(const hdl_pages *pages, uint32_t sequence);
/* Notes the tokens that a sequence holds from `position` on, in pages that it took. */
void hdl_pages_note(hdl_pages *pages, uint32_t sequence, uint32_t position, const int32_t *tokens, uint32_t count);
/* The token at a position that was noted. */
int32_t hdl_pages_token(const hdl_pages *pages, uint32_t sequence, uint32_t position);
/* The first `count` of its tokens. */
void hdl_pages_tokens(const hdl_pages *pages, uint32_t sequence, uint32_t count, int32_t *out_tokens);
/* Has the rows of a run in `shown`: row i sees the pages of sequences[i], or none where that is HDL_NO_SEQUENCE. */
void hdl_pages_show(hdl_pages *pages, const uint32_t *sequences, uint32_t count);

#endif
