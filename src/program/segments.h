/* segments.h: a program for several devices. A placement says where each operation runs (places.c). Operations that
 * devices compute together become one operation for each of them (split.c). The program is then cut into programs that
 * each run on one device (segments.c). Pure, like all of this room; devices are numbers, from 0. */
#ifndef HDI_PROGRAM_SEGMENTS_H
#define HDI_PROGRAM_SEGMENTS_H

#include "program/program.h"

#define HDI_MOST_DEVICES 16

/* ---- placement ---- */

/* Which axis devices divide among themselves. */
typedef enum hdi_share_axis {
    HDI_SHARE_ROWS,    /* the first axis of the result */
    HDI_SHARE_COLUMNS, /* the last axis of the result */
    HDI_SHARE_TERMS,   /* the terms of a product's sums: each device gives a sum, and these are added */
    HDI_SHARE_AXES
} hdi_share_axis;

/* How much of an axis each device has, as one part to another: {3, 1} is three quarters and one quarter. */
typedef struct hdi_share {
    hdi_share_axis axis;
    uint32_t parts[HDI_MOST_DEVICES];
} hdi_share;

/* Where one operation runs. Those of inputs say nothing, since inputs lie where they are read; but for inputs that
 * arrive: these lie on `device`, and cross in every run to the device that reads them. */
typedef struct hdi_place {
    uint32_t device;
    uint32_t arrives; /* of an input: above 0; those of one number arrive together, into a segment that begins there */
    uint32_t share; /* number + 1 of the share by which devices compute it together; 0: `device` alone does */
    bool     named; /* the route asked for it by name: it is not moved */
} hdi_place;

typedef struct hdi_placement {
    const hd_allocator *allocator;
    uint32_t   device_count, node_count;
    bool       in_turn; /* its devices are one, which computes their pieces one after the other: ports stay whole */
    hdi_place *of;     /* of each node */
    hdi_share *shares;
    uint32_t   share_count, share_capacity;
} hdi_placement;
/* All on device 0. Statuses: OUT_OF_HOST_MEMORY. hdi_placement_free ends it, also after a failure. */
hd_status hdi_placement_new(const hd_program *program, uint32_t device_count, hdi_placement *out, hd_error *error);
void hdi_placement_free(hdi_placement *placement);
hd_status hdi_placement_copy(const hdi_placement *from, hdi_placement *out, hd_error *error);
/* Finds or adds a share; `out_share` is what hdi_place.share takes. Statuses: OUT_OF_HOST_MEMORY. */
hd_status hdi_placement_share(hdi_placement *placement, const hdi_share *share, uint32_t *out_share, hd_error *error);

/* A placement from a text such as "matmul=1,v3-v9=rows:60:40,rest=0". The first item that fits an operation counts;
 * what none fits, or cannot be shared, is on device 0. `ids` are the devices' names, which may stand for their numbers.
 * Statuses: PARSE (with the byte), LIMIT, UNSUPPORTED (one value that cannot be shared), OUT_OF_HOST_MEMORY. */
hd_status hdi_placement_parse(const hd_program *program, const char *text, const char *const *ids,
                              uint32_t device_count, hdi_placement *out, hd_error *error);
/* As such a text, with devices by number. What is on device 0 is left out. */
void hdi_placement_print(const hd_program *program, const hdi_placement *placement, hdi_text *out_text);
/* Moves what cannot stay. All that touches a state goes to one device: where it was asked for by name, else where most
 * of it is. A user's kernel goes to a device that runs such fast. No place is named any more after it. Statuses:
 * UNSUPPORTED (what was asked for by name contradicts that), OUT_OF_HOST_MEMORY. */
hd_status hdi_placement_settle(const hd_program *program, const bool *fast_with_user_kernels, hdi_placement *inout,
                               hd_error *error);
/* The bytes that name a placement: equal placements, equal hashes. */
uint64_t hdi_placement_hash(uint64_t hash, const hdi_placement *placement);

/* ---- shares ---- */

/* Why devices cannot divide a node's value along this axis; NULL: they can. */
const char *hdi_share_why_not(const hd_program *program, hd_value value, hdi_share_axis axis);
/* Where each device's piece of an axis of this length begins; out_begin[device_count] is the length. Pieces of long
 * axes are multiples of what kernels like. A device whose part is 0 has an empty piece. */
void hdi_share_bounds(const hdi_share *share, uint32_t device_count, uint64_t length, uint64_t *out_begin);
/* Do pieces along this axis keep the bits of the whole in exact mode? Sums of terms do not. */
static inline bool hdi_share_is_exact(hdi_share_axis axis) { return axis != HDI_SHARE_TERMS; }

/* Shares the rows of everything that has as many as the largest value that can be shared, by `pieces` that one device
 * computes in turn: of what lies between them it then holds one piece at a time. Statuses: UNSUPPORTED (nothing can be
 * shared), OUT_OF_HOST_MEMORY. hdi_placement_free ends it, also after a failure. */
hd_status hdi_placement_in_turn(const hd_program *program, uint32_t pieces, hdi_placement *out, hd_error *error);

/* A program in which every operation is on one device. What reads a shared value by the same pieces takes them where
 * they are; for what reads it whole they are joined there. An input that is only read by pieces of its rows becomes one
 * input a device, and an output in pieces of rows one output a device, of one name: pieces of a port. */
typedef struct hdi_split {
    hd_program   *program;   /* NULL: nothing is shared */
    hdi_placement placement;
} hdi_split;
/* Splits a program by a settled placement; user kernels are borrowed. Statuses: OUT_OF_HOST_MEMORY, LIMIT.
 * hdi_split_free ends it, also after a failure. */
hd_status hdi_split_make(const hd_program *program, const hdi_placement *placement, hdi_split *out_split,
                         hd_error *error);
void hdi_split_free(hdi_split *split);

/* ---- segments ---- */

/* The nodes of one segment as a program. A value that crosses from one segment to another is an output of the one and
 * an input of the other, by a name that the whole program does not have. Each node knows its value in the whole
 * program. User kernels are borrowed from it. */
typedef struct hdi_segment {
    uint32_t    device;
    hd_program *program;
} hdi_segment;
typedef struct hdi_segments {
    const hd_allocator *allocator;
    hdi_segment *items;
    uint32_t     count; /* at least 1 */
} hdi_segments;
#define HDI_MAX_SEGMENTS 1024

/* Cuts a program by a settled placement without shares, into as few segments as a device can be stayed on for: each one
 * holds all that is ready when it begins. Values come from earlier segments only. Statuses: LIMIT, OUT_OF_HOST_MEMORY.
 * hdi_segments_free ends them. */
hd_status hdi_segments_cut(const hd_program *program, const hdi_placement *placement, hdi_segments *out_segments,
                           hd_error *error);
void hdi_segments_free(hdi_segments *segments);
/* The segment that each living operation is in: the rule by which hdi_segments_cut cuts, for those who only count.
 * Returns how many there are. `out_segment` has a number for each node, HDI_NO_SEGMENT for what nothing needs, states,
 * and inputs that do not arrive; `room` has a number for each node and device. */
#define HDI_NO_SEGMENT UINT32_MAX
uint32_t hdi_segments_number(const hd_program *program, const hdi_placement *placement, const bool *alive,
                             uint32_t *out_segment, uint32_t *room);
/* Marks the nodes that an output or a written state needs. */
void hdi_program_find_alive(const hd_program *program, bool *out_alive);
/* Is this node of a segment a value that an earlier one made, or an input that lies elsewhere? */
bool hdi_segments_is_crossing(const hd_program *whole, const hdi_node *node);
/* Which operations are where and what crosses, with bytes; `devices` names the devices. Statuses: OUT_OF_HOST_MEMORY
 * as out_text->failed. */
void hdi_segments_print(const hd_program *whole, const hdi_segments *segments, const char *const *devices,
                        hdi_text *out_text);
#endif
