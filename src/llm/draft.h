/* draft.h: guesses of the tokens to come. Those that came after the sequence's last tokens, where these stood before,
 * come again; how many of them are computed at once follows what that was measured to save. */
#ifndef HDL_DRAFT_H
#define HDL_DRAFT_H

#include "llm/support.h"

/* Steps with guesses have 2, 4 or 8 rows, of which the first is no guess. */
enum { HDL_DRAFT_SIZES = 3 };

/* What a session knows of one size of step. */
typedef struct hdl_draft_size {
    double   saved;         /* by the last steps, in times of a plain token; below 0: lost */
    uint64_t resting;       /* steps for which it is not tried */
    uint64_t rest;          /* for how many it will not be when it has lost too much */
} hdl_draft_size;

typedef struct hdl_drafter {
    hd_allocator allocator;
    int32_t *text;          /* what the sequence holds, and the token to be fed */
    uint32_t count, room;
    double   plain_ns;      /* of steps of one token, of which there were so many; 0: no such step was measured */
    uint64_t plain_count;
    hdl_draft_size sizes[HDL_DRAFT_SIZES];
    uint32_t size;          /* of the step that is not accounted for yet; HDL_DRAFT_SIZES: there is none */
    uint64_t step_ns;       /* that it took; 0: that tells nothing */
} hdl_drafter;

/* For sequences of up to `context` tokens; NULL without memory. */
hdl_drafter *hdl_drafter_create(const hd_allocator *allocator, uint32_t context);
void hdl_drafter_destroy(hdl_drafter *drafter);
/* Guesses what comes behind the text, whose last token is to be fed: at most `most` tokens. Returns how many: 0, 1, 3
 * or 7. */
uint32_t hdl_drafter_guess(hdl_drafter *drafter, uint32_t most, int32_t *out_tokens);
/* A step of `rows` rows took so long; 0: what it took tells nothing. */
void hdl_drafter_ran(hdl_drafter *drafter, uint32_t rows, uint64_t ns);
/* The last step gave so many tokens to the sequence, and no more come of it. */
void hdl_drafter_gave(hdl_drafter *drafter, uint32_t tokens);

#endif
