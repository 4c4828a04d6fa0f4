/* schedule.h: what one device does, and in which order. A plan has a schedule for each of its segments (plan.h). It is
 * a pure function of (program, caps, options): same inputs, same bytes out; no device is asked, nothing is allocated on
 * one. The stages, in order, each reading only what the one before left:
 *   fuse.c      nodes -> steps: views resolved, element-wise chains fused, kernels picked by the kernels room
 *   order.c     steps -> levels: steps of one level do not touch each other's bytes
 *   allocate.c  storages -> slots and offsets: intermediates share memory by lifetime
 *   emit.c      all of it -> cmds: one barrier a level, long work cut into slices
 *   check.c     whether the memory and the commands are right, where contracts are asked for
 *   print.c     all of it as text, each choice with its "because" */
#ifndef HDI_SCHEDULE_H
#define HDI_SCHEDULE_H

#include "facts/facts.h"
#include "cmds/cmds.h"
#include "kernels/kernel.h"
#include "program/program.h"
#include "spirv/spirv.h"

/* Inputs up to so many bytes lie in the host's memory where the host cannot write the device's. */
#define HDI_ACROSS_BYTES (UINT64_C(64) << 10)
/* What has more uses than that is fetched once: on an H100 the waits for positions were a fifth of a prompt. */
#define HDI_ACROSS_USES  8
/* But where the workgroups of a step together read so much of one, it lies in the device's memory: that takes longer
 * than a copy of its own, some 8 us. */
#define HDI_ACROSS_TRAFFIC (UINT64_C(256) << 10)

/* What the steps do that compute a node: for choosing a device (choose.h). */
typedef struct hdi_schedule_work {
    hdi_work work;   /* of all nodes of the kernel, at its last one */
    hd_value kernel; /* its last node; 0: no kernel computes the node */
    bool     cannot; /* no kernel of the device does */
} hdi_schedule_work;

typedef struct hdi_plan_options {
    hd_math  math;         /* fast or exact */
    uint64_t budget_bytes; /* 0: no limit */
    bool     no_fusion;
    bool     in_order;     /* a step never runs before the one in front of it, but may at once with it */
    uint32_t slice_us;     /* 0: 100,000 */
    bool     one_by_one;   /* a step waits for the one before, but where both read the same first: for measuring */
    hdi_offer *offer;      /* gets the options of the kernels; NULL: nobody asks */
    hdi_schedule_work *works;  /* gets the work of each node, and planning ends with the steps; NULL: nobody asks */
} hdi_plan_options;

/* A piece of memory that values are views of. */
typedef enum hdi_storage_kind {
    HDI_STORAGE_SCRATCH = 0, HDI_STORAGE_INPUT, HDI_STORAGE_STATE, HDI_STORAGE_OUTPUT, HDI_STORAGE_CONSTANT
} hdi_storage_kind;
typedef struct hdi_storage {
    hdi_storage_kind kind;
    uint64_t    bytes;
    const char *name;                  /* of an input, state or output */
    const void *data;                  /* of a constant; in the plan's arena */
    uint32_t    parent;                /* a part of another storage, or HDI_NO_INDEX */
    uint64_t    parent_offset;
    uint32_t    first_level, last_level; /* of its uses; first > last: unused */
    bool        read;                  /* by a step */
    bool        read_everywhere;       /* by all workgroups of one, much altogether */
    uint32_t    slot;                  /* where allocate.c put it */
    uint64_t    offset;
} hdi_storage;

/* One thing for the device to do. */
typedef struct hdi_schedule_step {
    hdi_cmd_kind kind;                 /* dispatch, copy (uses[0] to uses[1]) or fill (uses[0]) */
    hdi_kernel  kernel;
    hdi_use     uses[HDI_MAX_BINDINGS];
    uint32_t    use_count;
    uint32_t    everywhere;            /* hdi_launch's */
    uint32_t    push[HDI_MAX_PUSH_WORDS];
    uint32_t    groups[3];
    uint32_t    fill;
    uint64_t    flops, bytes;
    const char *label;                 /* "v5 matmul + v6 relu"; in the arena */
    const char *because;
    uint32_t    option;      /* id of the kernel's (kernel.h), where one was chosen by what was measured; else 0 */
    uint32_t    level;
} hdi_schedule_step;

/* What a slot of the schedule's commands is to be bound to. */
typedef struct hdi_schedule_slot {
    hdi_storage_kind kind;
    const char *name;
    uint64_t    bytes;                 /* whole words */
    uint64_t    tensor_bytes;          /* what the caller writes and reads */
    bool        read;                  /* by a step */
    bool        read_everywhere;       /* by all workgroups of one, much altogether */
    const void *data;                  /* constants, `bytes` of them */
} hdi_schedule_slot;

typedef struct hdi_schedule {
    hdi_arena      arena;
    hdi_plan_options options;          /* resolved */
    hdi_caps       caps;
    hdi_storage   *storages;  uint32_t storage_count,  storage_capacity;
    hdi_schedule_step *steps;     uint32_t step_count,     step_capacity;
    hdi_schedule_slot *slots;     uint32_t slot_count,     slot_capacity;
    hdi_user_kernel **kernels; uint32_t kernel_count,  kernel_capacity; /* held */
    uint32_t       level_count;
    hdi_names      constants;          /* tables that were made, by their bytes: storage + 1 */
    uint32_t       zeros;              /* the storage of hdi_lowering's zeros + 1; 0: none yet */
    uint32_t       zeros_step;         /* which fills it; ordering moves it */
    uint32_t       ahead[16], ahead_count; /* the latest steps that make something ready for others, in a ring */
    bool           tight;              /* planned anew, one step a level, to fit a budget */
    uint32_t       slices;             /* pieces beyond one a step */
    hd_plan_memory memory;
    hdi_cmds       cmds;
} hdi_schedule;

/* Statuses: those of the program, UNSUPPORTED, OVER_BUDGET, LIMIT, OUT_OF_HOST_MEMORY. */
hd_status hdi_schedule_make(const hd_allocator *allocator, const hd_program *program, const hdi_caps *caps,
                        const hdi_plan_options *options, hdi_schedule **out_schedule, hd_error *error);
/* What must hold of it (check.c). INTERNAL: it does not. */
hd_status hdi_schedule_check(const hdi_schedule *schedule, hd_error *error);
void hdi_schedule_free(hdi_schedule *schedule);
void hdi_schedule_print(const hdi_schedule *schedule, hdi_text *out_text);
/* Name of a module id of this schedule, for hdi_cmds_print: `schedule` is an hdi_schedule. */
const char *hdi_schedule_module_name(void *schedule, uint32_t module);

/* The stages; each leaves its part of the plan filled in. */
hd_status hdi_schedule_fuse(hdi_schedule *schedule, const hd_program *program, hd_error *error);
hd_status hdi_schedule_order(hdi_schedule *schedule, hd_error *error);
hd_status hdi_schedule_allocate(hdi_schedule *schedule, hd_error *error);
hd_status hdi_schedule_emit(hdi_schedule *schedule, hd_error *error);

/* A new storage; HDI_NO_INDEX without memory. */
uint32_t hdi_schedule_storage(hdi_schedule *schedule, hdi_storage_kind kind, uint64_t bytes, const char *name);
/* What named values and intermediates begin at a multiple of. */
uint64_t hdi_schedule_alignment(const hdi_schedule *schedule);
/* Follows parts to the whole storage; adds up their offsets (NULL: nobody asks). */
uint32_t hdi_schedule_root(const hdi_schedule *schedule, uint32_t storage, uint64_t *inout_offset);
#endif
