/* ops.h: the suite that judges every device. A test makes groups; a group is one program whose outputs are the cases, so
 * that one plan, and few kernels, serve dozens of them. Every group runs on every device that is here, in fast and in
 * exact mode, through heddle.h alone: each element is compared with float64 (oracle.h), and in exact mode each bit with
 * the plain C reference, which itself is compared with float64. Each case counts once, for the operation it tests.
 *
 *   int main(int argc, char **argv) { return ops_main("rows", tests, count, argc, argv); }
 *
 * Arguments name the devices ("cpu:8", "vulkan"); without any they are cpu:1, cpu:2, cpu:8 and, where there, vulkan. With
 * --short before them every n-th case runs, as case_table.inc says, for devices whose compiler takes its time; without
 * names they then are cpu:2 and, where there, vulkan and opencl. --options: in fast mode only, with the usual kernels and then with every
 * other option that there is for them (kernel.h); --options-in-turn: with one other option, the next one in each group. --results FILE
 * appends what came out (results.h). --update writes the number of cases of each operation into case_table.inc. */
#ifndef TESTS_OPS_H
#define TESTS_OPS_H

#include "oracle.h"

/* What an input holds. Floats of a narrow type hold the nearest value. */
typedef enum ops_fill {
    OPS_UNIT,     /* -1..1; i32 -100..100; u8 any */
    OPS_MIDDLE,   /* -6..6 */
    OPS_POSITIVE, /* 0.01..8 */
    OPS_WIDE,     /* either sign, 2^-12 .. 2^12; i32 any */
    OPS_WHOLE,    /* whole numbers -4..4: many are equal */
    OPS_BITS,     /* u8: 0 or 1 */
    OPS_SPECIAL,  /* zeros, infinities, NaN, the largest and the least normal numbers among others */
    OPS_TINY      /* subnormals among others: for exact mode */
} ops_fill;

enum {
    OPS_EXACT_ONLY = 1,  /* fast mode may treat such values otherwise */
    OPS_UNFUSED = 2,     /* also planned without fusion: same bits in exact mode */
    OPS_UNJUDGED = 4     /* where the oracle cannot tell: within 1/64 (bf16: 1/8) of the largest element, if finite */
};

/* A group under way. */
void ops_begin(const char *name, unsigned flags);
hd_program *ops_program(void);
hd_value ops_input(hd_dtype dtype, hd_shape shape, ops_fill fill);
hd_value ops_given(hd_dtype dtype, hd_shape shape, const void *bytes);
hd_value ops_indices(hd_shape shape, int32_t low, int32_t high); /* i32 in low..high */
hd_value ops_state(hd_dtype dtype, hd_shape shape, ops_fill fill);
void ops_case(hd_value value);               /* a case of the value's own operation */
void ops_case_of(hdi_op op, hd_value value); /* a case of another one, of which it is made */
void ops_end(void);
/* Begins a new group of the same name and flags once this one has `cases` cases. */
void ops_split(uint32_t cases);

/* Random numbers, the same in every run; the group's name is the seed. */
uint32_t ops_random(uint32_t below);
int64_t ops_pick(const int64_t *from, uint32_t count);

typedef struct ops_test {
    const char *name;
    void      (*run)(void);
} ops_test;
int ops_main(const char *family, const ops_test *tests, uint32_t count, int argc, char **argv);

/* Types with a code book, of which there are many, differ in how a weight is unpacked and in nothing else: few cases show it. */
static inline bool ops_has_book(hd_dtype dtype) { return dtype >= HD_IQ2_XXS && dtype <= HD_IQ1_M; }

/* Every case there is, by operation, and of how many one is in the short run (case_table.inc). */
typedef struct ops_count {
    const char *family;
    hdi_op      op;
    uint32_t    cases;
} ops_count;
extern const ops_count ops_counts[];
extern const uint32_t ops_count_rows;
typedef struct ops_share {
    const char *family;
    uint32_t    every;
} ops_share;
extern const ops_share ops_shares[];
extern const uint32_t ops_share_rows;
#endif
