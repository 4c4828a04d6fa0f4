/* differences.h: a program with gradients against central differences. The program is computed in float64 by the oracle of
 * tests/ops, forward part and gradients alike; along a direction u of all its inputs at once, the loss at x + h u and at
 * x - h u tells what the sum of gradient * u has to be. */
#ifndef TESTS_GRAD_DIFFERENCES_H
#define TESTS_GRAD_DIFFERENCES_H

#include "program/program.h"

typedef enum fill {
    FILL_UNIT,     /* -1..1 */
    FILL_POSITIVE, /* 0.5..2 */
    FILL_ZEROS     /* a third are 0, else -1..1 */
} fill;

/* A case under way: inputs of it, then one value that judge makes a loss of, weighted at random, over all of its elements. */
void begin(const char *name);
hd_program *program(void);
hd_value floats(hd_shape shape, fill with);               /* an input of f32 whose gradient is wanted */
hd_value typed(hd_dtype dtype, hd_shape shape, fill with);/* the same of another type, of which nothing is rounded */
hd_value fixed(hd_shape shape, fill with);                /* an input that stays as it is */
hd_value weights(hd_dtype dtype, hd_shape shape);         /* quantised, likewise */
hd_value state(hd_shape shape, fill with);                /* a state whose gradient is wanted */
hd_value whole(hd_shape shape, int64_t low, int64_t high);/* i32 */
hd_value bits(hd_shape shape);                            /* u8, 0 or 1 */
hd_value numbers(hd_shape shape, const int64_t *values);  /* i32 */
uint32_t chance(uint32_t below);                          /* at random, the same in every run */
/* Compares along two directions; ends the process where they differ. */
void judge(hd_value y);
extern uint32_t judged; /* cases so far */
extern bool judged_ops[HDI_OP_COUNT]; /* which operations the last case has, with its gradients */
#endif
