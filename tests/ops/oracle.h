/* oracle.h: what each operation should give, in float64, and how far from it a device may be. Written from the formulas
 * of heddle.h and op_table.inc with straight loops and libm, knowing nothing of orders, tiles or kernels. */
#ifndef TESTS_OPS_ORACLE_H
#define TESTS_OPS_ORACLE_H

#include "program/program.h"

enum { ORACLE_FAST, ORACLE_EXACT, ORACLE_MODES };

/* A tensor in float64. error[mode][i] is the most that element i of a device's result may differ from value[i], rounding
 * to the tensor's type included; 0: not at all. Infinite: not judged. */
typedef struct oracle_tensor {
    hd_dtype dtype;
    hd_shape shape;
    double  *value, *error[ORACLE_MODES];
} oracle_tensor;

/* Set: no value of a float type is rounded to it, so that a whole program is computed in float64. */
extern bool oracle_in_float64;

/* A tensor of the type and shape, all zeros; free with oracle_free. Ends the process without memory. */
oracle_tensor oracle_new(hd_dtype dtype, hd_shape shape);
void oracle_free(oracle_tensor *tensor);
/* The elements of `bytes`, of any type, with no error. */
void oracle_unpack(const void *bytes, oracle_tensor *out);
/* The nearest value of the type, ties to even; integers are held at their ends. Quantised types: as f32. */
double oracle_round(hd_dtype dtype, double value);
/* One value of an unquantised type, to and from its bytes. */
void oracle_store(hd_dtype dtype, double value, void *out_bytes);
double oracle_load(hd_dtype dtype, const void *bytes);
/* Half the distance between neighbours of the type at `value`, gradual underflow included. */
double oracle_half_ulp(hd_dtype dtype, double value);
/* Beyond this size a value of the type is infinite. */
double oracle_overflow(hd_dtype dtype);

/* Computes a node from its operands (NULL: absent). Errors of operands are carried on by element-wise operations, by
 * those that move elements, by sums and by matrix products; behind others results are not judged. */
void oracle_node(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out);

/* oracle_rows.c */
void oracle_reduce(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out);
void oracle_cumsum(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out);
void oracle_hash(const oracle_tensor *x, oracle_tensor *out);
void oracle_top_k(const oracle_tensor *const *operands, oracle_tensor *out);
void oracle_softmax(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out);
void oracle_cross_entropy(const oracle_tensor *const *operands, oracle_tensor *out);
void oracle_cross_entropy_gradient(const oracle_tensor *const *operands, oracle_tensor *out);
void oracle_norm_gradient(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out);
void oracle_norm_sums(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out);
void oracle_norm(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out);
void oracle_rope(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out);
void oracle_attention(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out);
void oracle_attention_gradient(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out);

#define ORACLE_U 0x1p-24 /* half an ulp of 1 in f32 */
static inline double oracle_ulp(double value) { return 2 * oracle_half_ulp(HD_F32, value); }
/* Sets one element: `fast` and `exact` are the bounds in f32, to which the rounding of a narrower type is added. */
void oracle_set(oracle_tensor *out, uint64_t at, double value, double fast, double exact);
#endif
