/* plan.h: a plan for n devices: a list of segments, each planned for its device, and of the values that cross between
 * them. Pure like the rest of this room: it reads the facts of each device and calls none. A plan on one device is one
 * segment. Stages, in order: the placement is settled, shared operations are split (program/split.c), the program is
 * cut (program/segments.c), each segment is planned, and what they share and exchange is linked (plan.c). */
#ifndef HDI_PLAN_H
#define HDI_PLAN_H

#include "plan/schedule.h"
#include "program/segments.h"

/* Where a slot of a segment stands among all segments. */
typedef struct hdi_plan_slot {
    uint32_t home_segment, home_slot; /* whose memory it is: that of an earlier segment on the device, or its own */
    bool     shared;  /* later segments use its memory too */
    bool     inside;  /* of a value that crosses: not the caller's */
    bool     arrives; /* of an input that lies on another device; the caller may bind memory for it here too */
    bool     reuses;  /* memory of an earlier value of the device that nothing needs any more, */
    uint32_t reused_segment, reused_slot, after; /* namely this slot's; the last segment that used it is `after` */
    uint32_t port;    /* of the program, + 1; 0: none */
    uint64_t port_at; /* where its bytes begin within the port's */
} hdi_plan_slot;

typedef struct hdi_plan_segment {
    uint32_t        device;
    hdi_schedule   *schedule;
    hdi_plan_slot *slots; /* for schedule->slots */
} hdi_plan_segment;

/* A value that travels to another device, into the first segment there that reads it. */
typedef struct hdi_crossing {
    uint32_t from, from_slot, to, to_slot; /* segments, and slots of theirs */
    uint64_t bytes;
} hdi_crossing;

/* A named value of the program, as the caller writes and reads it. */
typedef struct hdi_plan_port {
    const char  *name; /* in the arena */
    hd_port_kind kind;
    uint64_t     bytes;
} hdi_plan_port;

typedef struct hdi_plan {
    hdi_arena          arena;
    uint32_t           device_count;
    hdi_plan_options   options; /* what it was made from: these, */
    const char        *route;   /* the settled placement as text, */
    hdi_caps          *caps;    /* and the facts of each device */
    hdi_plan_segment *segments;  uint32_t segment_count; /* in the order in which they run */
    hdi_crossing      *crossings; uint32_t crossing_count, crossing_capacity; /* by the segment that they go to */
    hdi_plan_port    *ports;     uint32_t port_count;
    uint64_t           crossing_bytes;
    const char        *text;      /* which operations are in which segment; "" where there is one */
    hd_plan_memory     memory;    /* of all devices */
    hd_plan_memory     on[HDI_MOST_DEVICES];
} hdi_plan;

/* Of what callers wish. */
hdi_plan_options hdi_plan_options_of(const hd_plan_desc *desc);
/* What a plan is made from. `caps` and `ids` have an entry for each device. */
typedef struct hdi_plan_wish {
    const hd_program    *program;
    const hdi_placement *placement;
    const hdi_caps      *caps;
    const char *const   *ids;
    hdi_plan_options     options; /* the budget holds on each device */
} hdi_plan_wish;
/* Statuses: those of hdi_schedule_make and of the stages; UNSUPPORTED: exact mode and terms of sums on several devices.
 * hdi_plan_free ends the plan. */
hd_status hdi_plan_make(const hd_allocator *allocator, const hdi_plan_wish *wish, hdi_plan **out_plan, hd_error *error);
void hdi_plan_free(hdi_plan *plan);
void hdi_plan_memory_add(hd_plan_memory *sum, const hd_plan_memory *more);
/* All segments with their steps and commands, which memory they share, and what crosses. */
void hdi_plan_print(const hdi_plan *plan, hdi_text *out_text);
/* The same without words about them: the same text whatever the devices are called. */
void hdi_plan_print_segments(const hdi_plan *plan, hdi_text *out_text);
/* A device that it is for, and why that was taken (NULL: nobody asked). */
void hdi_plan_print_device(const hdi_caps *caps, const char *id, const char *why, hdi_text *out_text);

/* As hd_explain: what a program would be on a device of which this text tells (caps.h). */
hd_status hdi_schedule_explain(const hd_program *program, const char *caps_text, const hd_plan_desc *desc,
                               hdi_text *out_text, hd_error *error);

/* ---- plans as files (save.c) ---- */

/* What a plan was made from, and a digest of what came out. Planning is pure, so a plan that is read back is made
 * again, to the byte; and nothing in a file but a checked program, placement and facts ever reaches a device. `ids` are
 * the devices' names, and `program` is the program's text. */
void hdi_plan_save(const hdi_plan *plan, const char *const *ids, const hdi_text *program, hdi_text *out_text);
/* The parts of such a file; they lie in its text. */
typedef struct hdi_saved_plan {
    hdi_plan_options options;
    uint32_t device_count;
    hdi_span route, caps[HDI_MOST_DEVICES], program;
    uint64_t digest;
} hdi_saved_plan;
/* Statuses: PARSE with the line. */
hd_status hdi_saved_plan_read(const char *text, size_t bytes, hdi_saved_plan *out_saved, hd_error *error);
/* INVALID_ARGUMENT: `desc` wishes for what is in the file, or has another number of devices. */
hd_status hdi_saved_plan_check(const hdi_saved_plan *saved, const hd_plan_desc *desc, hd_error *error);
/* Makes the plan again. `program` is that of the file, and `caps` and `ids` are those of the devices now: they must be
 * able to do what the file's could; what was chosen and judged on them is the file's. Statuses: PARSE, UNSUPPORTED
 * (other devices, or another version of heddle), those of hdi_plan_make. */
hd_status hdi_saved_plan_make(const hdi_saved_plan *saved, const hd_program *program, const hdi_caps *caps,
                              const char *const *ids, hdi_plan **out_plan, hd_error *error);
#endif
