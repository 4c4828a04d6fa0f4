/* session.h: a model ready to run, and what each sequence holds. */
#ifndef HDL_SESSION_H
#define HDL_SESSION_H

#include "llm/draft.h"
#include "llm/stage.h"

enum { HDL_MOST_SEQUENCES = 256 };

/* A session's wishes with every default filled in, and where the layers go. */
typedef struct hdl_layout {
    uint32_t    context, rows;       /* tokens of a sequence; the same in whole pages */
    uint32_t    sequences;
    uint32_t    pieces[HD_MAX_PIECES]; /* rows of the runs that prompts go in, the most first; 0 behind the last one */
    uint32_t    run_rows;            /* what a run takes beside its rows (hd_piece_run_rows) */
    uint32_t    pages;               /* of the cache, for all sequences */
    uint32_t    image_rows;          /* of an image; 0: none comes */
    uint32_t    half_rows;           /* runs of so many rows or more read copies of weights in f16; 0: there are none */
    hd_math     math;
    hd_draft    draft;
    hd_dtype    cache_type;
    hd_device  *device, *cpu;        /* the CPU is NULL where nothing of the model is there beside the device */
    hdl_split   split;
    hd_fit      fit;
} hdl_layout;

#define HDL_NAN_TOKEN (-2) /* among the scores is one that is no number: none of them is the best */

/* One conversation. */
typedef struct hdl_sequence {
    uint32_t position;               /* tokens it holds */
    int32_t  best;                   /* the most likely next token, HDL_NO_TOKEN, or HDL_NAN_TOKEN */
    uint32_t row;                    /* of "logits" in the last run, where `run` is the session's */
    uint64_t run;                    /* which run computed them */
} hdl_sequence;

/* Rows of a step with guesses: tokens of one sequence, of which it has the first `taken`. */
enum { HDL_DRAFT_ROWS = 8 };
typedef struct hdl_drafted {
    uint32_t sequence, position;     /* where they stand: the first at `position` */
    uint32_t count, taken;           /* 0: there are none */
    uint64_t run;                    /* that computed them */
    int32_t  tokens[HDL_DRAFT_ROWS], best[HDL_DRAFT_ROWS];
} hdl_drafted;

struct hd_session {
    hd_model     *model;
    hd_model     *model_handle;        /* the model may be closed before the session */
    void         *handle;              /* that the caller has */
    hdl_layout    layout;
    hd_device    *own_device, *own_cpu; /* opened for the session, or NULL */
    hdl_stage     stage;
    hdl_sequence *sequences;
    hdl_pages     pages;               /* a sequence holds those that its tokens need */
    int32_t      *tokens, *positions;  /* of one run: hdl_layout_room of each */
    uint32_t     *rows;                /* of one step: whose row each is */
    const float  *image;               /* while one is run */
    float        *logits;              /* of the last run, when asked for */
    uint64_t      logits_bytes;
    hd_plan      *last_plan;           /* holds the outputs of the last run */
    uint32_t      last_results, last_candidates;
    uint32_t      candidates;          /* that decode steps give, while an answer is drawn from them */
    uint64_t      run, logits_run, candidates_run;
    int32_t       candidate_ids[HDL_DRAFT_ROWS * HDL_CANDIDATES]; /* of the last run's results, when asked for */
    float         candidate_scores[HDL_DRAFT_ROWS * HDL_CANDIDATES];
    hdl_drafted   drafted;
    hdl_drafter  *drafter;             /* NULL: nobody guesses */
    hd_session_stats stats;
};

/* Puts the session in the place of its handle, of which `session_at` is the address, if it, its model, its device and
 * their context live. */
hd_status hdl_session_find(void *session_at);
/* The likeliest tokens of the last run and their scores, for hdl_sampler_draw_from. @param out_count 0 where that run
 * gave none. */
hd_status hdl_session_candidates(hd_session *session, uint32_t sequence, int32_t ids[HDL_CANDIDATES],
                                 float scores[HDL_CANDIDATES], uint32_t *out_count);
/* Feeds one token, and with it what the session's drafter guesses to come, `most` tokens at most. */
hd_status hdl_session_feed_drafted(hd_session *session, uint32_t sequence, int32_t token, uint32_t most);
/* Feeds a token and guesses behind it, `count` in all: 2, 4 or 8. They have room in the token's page and the context;
 * the sequence has the token only. */
hd_status hdl_session_feed_guesses(hd_session *session, uint32_t sequence, const int32_t *tokens, uint32_t count);
/* Is the token the guess that comes next in the last run? The sequence has it then, as if it had been fed. */
bool hdl_session_accept(hd_session *session, uint32_t sequence, int32_t token);
/* Runs once, with the pages of `sequences`; afterwards last_plan holds the outputs. */
hd_status hdl_session_run(hd_session *session, hdl_size size, const uint32_t *sequences, const int32_t *past,
                          const int32_t *last);
/* The best tokens of the last run's results. */
hd_status hdl_session_read_best(hd_session *session, int32_t *out, uint32_t count);
/* HD_OK, or INVALID_ARGUMENT kept on the context. */
hd_status hdl_session_check_sequence(const hd_session *session, uint32_t sequence);
/* Has the sequence, and the cache, room for one more token? */
bool hdl_session_has_room(const hd_session *session, uint32_t sequence);

/* ---- layout.c ---- */
/* Resolves the wishes and decides where the layers go. `device` is the one to use, `cpu` may be NULL until it is known
 * to be needed: HD_STATUS_NO_DEVICE then, and nothing is kept on the context. */
hd_status hdl_layout_make(const hd_model *model, const hd_session_desc *desc, hd_device *device, hd_device *cpu,
                          hdl_layout *out_layout);
/* Does without copies of weights in f16. */
void hdl_layout_leave_halves(hdl_layout *layout);
/* Most rows of any run of tokens, and of any run. */
static inline uint32_t hdl_layout_most(const hdl_layout *layout) {
    return layout->pieces[0] > layout->sequences ? layout->pieces[0] : layout->sequences;
}
static inline uint32_t hdl_layout_room(const hdl_layout *layout) {
    const uint32_t most = hdl_layout_most(layout);
    return layout->image_rows > most ? layout->image_rows : most;
}
/* Most rows of a run for several sequences, whose rows each have a table of pages; for one sequence: 1. */
enum { HDL_STEP_ROWS = 512 };
static inline uint32_t hdl_layout_step_rows(const hdl_layout *layout) {
    const uint32_t most = hdl_layout_most(layout);
    return layout->sequences == 1 ? 1 : most < HDL_STEP_ROWS ? most : HDL_STEP_ROWS;
}
/* The size of a run for at least `rows` rows of several sequences. */
hdl_size hdl_layout_step(const hdl_layout *layout, uint32_t rows);
/* The size of a run for tokens of one sequence. */
hdl_size hdl_layout_one(const hdl_layout *layout, uint32_t tokens, uint32_t bucket, uint32_t candidates);
/* The same where every row's scores are wanted: tokens and guesses. The sizes are 2, 4 and 8 rows. */
hdl_size hdl_layout_draft(const hdl_layout *layout, uint32_t rows, uint32_t bucket, uint32_t candidates);
/* The size of a run for an image. */
hdl_size hdl_layout_image(const hdl_layout *layout);
/* The tokens that a decode step at `position` has room for: the smallest bucket. */
uint32_t hdl_layout_bucket(const hdl_layout *layout, uint32_t position);

/* ---- piece.c ---- */
enum { HDL_MOST_PIECE = 2048 }; /* rows */
/* The sizes of pieces that are wished for, or those that the wished chunk makes. @param context 0: it is not known.
 * @return NULL; or what is wrong with desc->pieces[*out_at], to be read behind it. */
const char *hdl_pieces_of(const hd_session_desc *desc, uint32_t context, uint32_t out_sizes[HD_MAX_PIECES],
                          uint32_t *out_at);
/* The rows of the run that comes next when `left` tokens of one sequence wait, as hd_session_desc.pieces says. */
uint32_t hdl_piece_next(const uint32_t sizes[HD_MAX_PIECES], uint32_t run_rows, uint64_t left);

#endif
