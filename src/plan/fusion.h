/* fusion.h: private to the plan room: what the parts of fusion share while they walk a program (fuse.c, fuse_heads.c,
 * fuse_products.c). */
#ifndef HDI_PLAN_FUSION_H
#define HDI_PLAN_FUSION_H

#include "plan/task.h"

#define HDI_NO_TASK UINT32_MAX

/* What is known of a value while walking the program. */
typedef struct value_state {
    hdi_tensor view;
    uint32_t   uses;      /* by living nodes and outputs */
    uint32_t   last_use;  /* the last node that reads it; UINT32_MAX: an output does */
    uint32_t   pending;   /* its task, not yet emitted, or HDI_NO_TASK */
    hdi_norm   left_norm; /* present: the view is of the norm's operand, and each reader makes the norm itself */
    bool       alive;
    bool       coded;     /* its memory holds it in 8 bits, for the one product that reads it */
    bool       absorbed;  /* made by the kernel of a later node: nothing is emitted here */
    hd_value   rope;      /* the rope that ends as this node, or as what this node, an attention, does first; or 0 */
    hd_value   norm;      /* of a rope: the rms_norm before it, or 0 */
    hd_value   rows;      /* of a write_rows: the f32 value that it rounds itself, or 0 */
    uint32_t   readers;   /* of an rms_norm: index + 1 of its first reader; 0: none */
} value_state;

/* A living node that reads an rms_norm. */
typedef struct norm_reader {
    hd_value node;
    uint32_t next; /* the one behind it: index + 1; 0: none */
} norm_reader;

/* Values that may show rows of a state which are yet to be overwritten, ascending. */
typedef struct witnesses {
    hd_value *values;
    uint32_t  count, capacity;
} witnesses;

typedef struct fusion {
    hdi_schedule         *schedule;
    const hd_program *program;
    value_state      *values; /* by id */
    hdi_task         *tasks;  /* pending ones, */
    uint32_t         *unused; /* and places among them that are free again */
    uint32_t          task_count, task_capacity, unused_count, unused_capacity;
    norm_reader      *readers;
    uint32_t          reader_count, reader_capacity;
    witnesses        *witnesses; /* of storages; those of states have some */
    uint32_t          witnesses_capacity;
    hd_error         *error;
} fusion;

static inline const hdi_node *node_of(const fusion *f, hd_value value) { return &f->program->nodes[value - 1]; }
/* The one node that reads the value, looking through reshapes, or 0; `out_read` is what it reads. */
hd_value hdi_fusion_only_reader(const fusion *f, hd_value value, hd_value *out_read);

/* ---- pending tasks ---- */

/* The value's pending task, which is so no longer; it lies there until another one is held. */
const hdi_task *hdi_fusion_let_go(fusion *f, hd_value value);

/* ---- tensors ---- */

/* A dense one in memory of its own. */
hd_status hdi_fusion_tensor(fusion *f, hd_dtype dtype, hd_shape shape, hdi_tensor *out);
/* The value as a tensor that lies dense from the start of its storage, copied if it is a view. */
hd_status hdi_fusion_dense(fusion *f, hd_value value, hdi_tensor *out);
/* The value as a dense tensor of another shape, wherever its first element lies. */
hd_status hdi_fusion_shaped(fusion *f, hd_value value, hd_shape shape, hdi_tensor *out);
/* Rows of a state are about to be overwritten in place: whatever still shows the old rows is made, or copied, now. */
hd_status hdi_fusion_save_old_rows(fusion *f, hd_value state, hd_value writer);

/* ---- heads (fuse_heads.c) ---- */

/* Finds the ropes that end as a later node, casts that become rows of a state, and attentions that do all of it. */
void hdi_fusion_join_heads(fusion *f);
/* The kernel of a rope and what was joined to it, at the place of its last node: the rope itself, a cast or a
 * write_rows. */
hd_status hdi_fuse_head(fusion *f, const hdi_node *node, hd_value id);
/* The kernel of an attention of one query a sequence, of the ropes of queries and keys, and of the rows that keys and
 * values become. */
hd_status hdi_fuse_turning(fusion *f, const hdi_node *node, hd_value id);

/* ---- what products do to their rows, or have done by the step that makes them (fuse_products.c) ---- */

/* Leaves an rms_norm to its readers where all of them are products that make it on the way; a state's rows may be
 * overwritten before they do. */
bool hdi_fusion_leave_norm(fusion *f, const hdi_node *node, hd_value id, const hdi_task *task);
/* Do only products read the value that a norm or attention makes, and would each make f16 of it first? Then its step
 * stores it so. */
bool hdi_fusion_is_rounded(const fusion *f, const hdi_node *node, hd_value id);
/* The same for rows that a pending task makes, for the product `node` alone: emits the task, which rounds them. To 8
 * bits where that is how the product multiplies. */
hd_status hdi_fusion_round_rows(fusion *f, const hdi_node *node);
#endif
