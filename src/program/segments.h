/* segments.h: a program for two devices: a place for each operation (places.c), operations that both share by rows made two
 * (split.c), and the program cut by places into programs that run one after another, each on one device (segments.c). Pure,
 * like all of this room. */
#ifndef HDI_PROGRAM_SEGMENTS_H
#define HDI_PROGRAM_SEGMENTS_H

#include "program/program.h"

/* ---- places: one byte for each node, the device 0 or 1, or a share. Those of inputs say nothing: they lie where they are read ---- */

/* Both devices compute the operation: device 0 the first so many percent of its rows (1 to 99), device 1 the rest. */
#define HDI_PLACE_SHARED 128u
#define HDI_PLACE_SHARE(percent) ((uint8_t)(HDI_PLACE_SHARED | (percent)))

#define HDI_PLACE_NAMED 2u /* set beside the device: it was asked for by name, and is not moved */

/* Places from a text such as "matmul=beside,v3-v9=60%,rest=beside": the first match of an operation counts, and what none
 * matches, or is to be shared and cannot be, is on device 0. Statuses: PARSE (with the byte), LIMIT, UNSUPPORTED (a share of a value
 * that cannot be shared). */
hd_status hdi_places_parse(const hd_program *program, const char *text, uint8_t *out_places, hd_error *error);
/* Moves what cannot stay: all that touches a state goes to one device (where it was asked for by name, else where most of it
 * is), and a user's kernel to a device that runs such. Then no place is HDI_PLACE_NAMED any more. Statuses: UNSUPPORTED (what
 * was asked for by name contradicts that), OUT_OF_HOST_MEMORY. */
hd_status hdi_places_settle(const hd_program *program, const bool runs_user_kernels[2], uint8_t *inout_places, hd_error *error);

/* ---- rows: along the first axis ---- */

/* Why the rows of a node's value cannot be computed on two devices; NULL: they can. */
const char *hdi_rows_why_not(const hd_program *program, hd_value value);
/* How many of so many rows (2 or more) a share gives to device 0: at least one, and not all; of many a multiple of what kernels like. */
uint64_t hdi_rows_of_share(uint64_t rows, uint8_t place);

/* A program whose shared operations are two of their kind, one on each device, and its settled places. What reads a shared value by
 * the same rows takes them where they are; for what reads it whole they are joined there. An input that is only read by such rows
 * becomes two inputs, and a shared output two outputs, of one name: pieces of a port, of which device 1 has the last rows. */
typedef struct hdi_split {
    hd_program *program; /* NULL: nothing is shared */
    uint8_t    *places;
    uint32_t    place_capacity;
} hdi_split;
/* Splits a program by settled places; user kernels are borrowed. Statuses: OUT_OF_HOST_MEMORY, LIMIT. hdi_split_free ends it, also after a
 * failure. */
hd_status hdi_split_make(const hd_program *program, const uint8_t *places, hdi_split *out_split, hd_error *error);
void hdi_split_free(hdi_split *split);

/* ---- segments ---- */

/* A program with the nodes of one segment. A value that crosses from one segment to another is an output of the one and an
 * input of the other, by a name that the whole program does not have. Each node knows its value in the whole program. User
 * kernels are borrowed from it. */
typedef struct hdi_segment {
    uint32_t    device; /* 0 or 1 */
    hd_program *program;
} hdi_segment;
typedef struct hdi_segments {
    const hd_allocator *allocator;
    hdi_segment *items;
    uint32_t     count; /* at least 1 */
} hdi_segments;
#define HDI_MAX_SEGMENTS 1024

/* Cuts a program by settled places, into as few segments as a device can be stayed on for: each one holds all that is ready
 * when it begins. Values come from earlier segments only. Statuses: LIMIT, OUT_OF_HOST_MEMORY. hdi_segments_free ends them. */
hd_status hdi_segments_cut(const hd_program *program, const uint8_t *places, hdi_segments *out_segments, hd_error *error);
void hdi_segments_free(hdi_segments *segments);
/* Is this node of a segment a value that an earlier one made? */
bool hdi_segments_is_crossing(const hd_program *whole, const hdi_node *node);
/* Which operations are where and what crosses, with bytes; `devices` names both devices. */
void hdi_segments_print(const hd_program *whole, const hdi_segments *segments, const char *const devices[2], hdi_text *out_text);
#endif
