/* trainer.h: a trainer's parts, for the files that implement it. */
#ifndef HDT_TRAINER_H
#define HDT_TRAINER_H

#include "train/gpt.h"

/* What a group keeps, each a flat state of its own buffer, which all plans share. And on the host the weights that did
 * best. */
enum { HDT_WEIGHTS, HDT_FIRST, HDT_SECOND, HDT_KEPT, HDT_BEST = HDT_KEPT, HDT_ALL };

/* A step that was begun and not told of yet. */
typedef struct hdt_flight {
    hd_ticket      *ticket;
    hd_train_report report; /* loss and norm arrive with the ticket */
} hdt_flight;

struct hd_trainer {
    hd_context     *context;
    hd_device      *device;
    hd_trainer_desc desc;
    hdt_layout      layout;
    char            architecture[24]; /* of the base */
    hd_weights     *base;       /* those of the model whose adapters learn; NULL: a model learns whole */
    hd_buffer      *states[HDT_GROUPS][HDT_KEPT];
    hd_plan        *step, *loss, *next;
    hd_stream      *stream;     /* of steps */
    hdt_flight      flights[2]; /* of steps with an even and with an odd number */
    uint64_t        steps;
    float          *best[HDT_GROUPS]; /* NULL: nothing did best yet */
    hd_train_best   of_best;
    uint32_t      (*keys)[4];   /* [batch], with dropout */
    int32_t        *starts, *positions; /* [batch, length], of packed sequences */
    int32_t        *room;       /* [length] tokens, for hd_trainer_next */
};

/* The plans (graphs.c). A plan's states are bound to the trainer's buffers. */
hd_status hdt_plan_step(hd_trainer *trainer);
hd_status hdt_plan_loss(hd_trainer *trainer);
hd_status hdt_plan_next(hd_trainer *trainer);
/* Draws the first weights. */
hd_status hdt_draw_weights(hd_trainer *trainer);
/* The memory of a step and of the first weights. */
hd_status hdt_estimate(hd_trainer *trainer, hd_plan_memory *out_memory);
/* Room for the weights that did best, where there is none. */
hd_status hdt_make_best(hd_trainer *trainer);
/* Whether a group keeps it, and as what; the weights that did best are checkpointed as weights are. */
bool hdt_keeps(const hd_trainer *trainer, int group, int kept);
hd_dtype hdt_kept_type(const hd_trainer *trainer, int group, int kept);
/* `count` of a group's elements from `first` on, from or to its buffer. */
hd_status hdt_read_kept(const hd_trainer *trainer, int group, int kept, float *out_values);
hd_status hdt_write_kept(hd_trainer *trainer, int group, int kept, uint64_t first, const float *values, uint64_t count);
/* What all groups keep of one kind, on the host. Freed in any case. */
hd_status hdt_read_groups(const hd_trainer *trainer, int kept, float *out_groups[HDT_GROUPS]);
/* The same of the weights as they compute, with ternary ones rounded; positions are those that a sequence has. */
hd_status hdt_read_rounded(hd_trainer *trainer, float *out_groups[HDT_GROUPS]);
void hdt_free_groups(const hd_trainer *trainer, float *groups[HDT_GROUPS]);
/* The key of hd_random for a sequence of a step's batch. */
void hdt_key(const hd_trainer *trainer, uint64_t step, uint32_t sequence, uint32_t out_key[4]);

/* Fields of a desc that are outside of what can be trained, by name; fills in defaults. */
hd_status hdt_check_desc(hd_context *context, hd_trainer_desc *desc);
hd_status hdt_check_decoder(hd_context *context, hd_gpt *model);

#endif
