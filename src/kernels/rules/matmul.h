/* matmul.h: a matrix product in the form that its rules and its launches work on. */
#ifndef HDI_KERNELS_MATMUL_H
#define HDI_KERNELS_MATMUL_H

#include "kernels/kernel.h"

enum { BATCH_AXES = 3, SOURCES = HDI_CHAIN_INPUTS - 1, BINDINGS = 3 + SOURCES + 1, FEW_ROWS = 8 };

/* One operand: strides along its lines (rows of A, columns of B), along K and along the batch axes. */
typedef struct side {
    const hdi_tensor *tensor;
    uint64_t first, line, depth, batch[BATCH_AXES];
    bool along_k, wide; /* HDI_MM_A_ALONG_K, HDI_MM_A_WIDE */
} side;

/* A chain's source beside the sum. */
typedef struct source {
    const hdi_tensor *tensor;
    uint64_t batch, m, n;
} source;

typedef struct product {
    const hdi_request *request;
    hd_dtype type; /* of the product, before the chain */
    uint64_t m, n, k, batch, lengths[BATCH_AXES]; /* axis 2 is the innermost */
    side     a, b;
    uint64_t most; /* rows that a batch may have: m, but of groups, of which m is what is usual */
    source   sources[SOURCES];
    uint32_t source_count, free_axis; /* batch axes below free_axis are unused */

    /* Batches that are groups of rows by the matrix of B that they chose (abi.h): of `pairs` rows of C, each lengths[1]
     * of them of one row of A. NULL: there are no groups. */
    const hdi_tensor *chosen;
    bool       single;  /* each row is a group by itself, and `groups` is what was chosen */
    uint64_t   pairs, experts, packed; /* packed: rows of A where they are, all groups in whole lines */
    hdi_tensor groups;
} product;

static inline bool is_exact(const product *p) { return p->request->math == HD_MATH_EXACT; }
/* Sets how an operand lies in memory, from its strides. */
void hdi_product_finish_side(side *s, uint64_t lines, uint64_t depths);
/* Rows of A of all batches; of groups, each once. */
static inline uint64_t hdi_product_rows(const product *p) {
    return p->chosen ? p->pairs / p->lengths[1] : p->batch * p->m;
}
/* Brings both operands of the request to lines along K and at most three batch axes. UNSUPPORTED where these are not
 * enough. */
hd_status hdi_product_read(const hdi_request *request, product *out_product, hd_error *error);
/* Is the norm, if any, one that a kernel can make while it reads A: of whole lines of f32? And does a second B lie as
 * the first one does? */
bool hdi_product_merges(const product *p);
/* Do B's columns lie in whole octets of eight runs, one behind the other, of types whose octets begin at sixteens of
 * bytes? */
bool hdi_product_has_octets(const product *p);
/* Are runs dealt out to the lanes of matvec_dot, eight to each? Of one row, where dispatches begin early: on an H100 of
 * q4_0 651 tokens of Qwen3-4B a second so and 482 by strands, through Vulkan 361 and 420. */
bool hdi_product_dealt(const product *p);
/* Then the columns of a workgroup: two workgroups for each unit of the device, which all units end together. */
uint32_t hdi_product_dealt_columns(const product *p);
/* And the shared memory of one that takes `part_n` columns at a time. */
uint64_t hdi_product_dealt_bytes(const product *p, uint64_t part_n);
/* The shared memory of a workgroup of matvec_matrix that takes `part_n` columns at a time. */
uint64_t hdi_product_few_unit_bytes(const product *p, uint64_t part_n);
/* How a product is launched: an option's numbers, and what its kernel adds to them for this product. */
typedef struct config {
    const hdi_kernel_option *option;
    bool     measured;  /* the option was chosen by what was measured */
    uint32_t tile_m, tile_n, part_m, part_n, workgroup, subgroup, scratch_bytes;
    uint32_t parts;     /* of K, each with sums of its own; 0: not divided */
    uint32_t ahead;     /* HDI_MM_AHEAD */
    bool     merges;
    /* module that makes rows of A ready in a launch of its own; HDI_MODULE_COUNT: A is read as it is */
    uint32_t packs;
    bool     in_strands; /* both operands are packed so (CODES) */
    bool     staged;     /* whole blocks go through shared memory (MATVEC); runs are dealt out (MATVEC_DOT) */
    bool     halves[2]; /* operands that a launch of their own makes f16 first; codes beside bf16, bf16 */
    bool     bf16;      /* what is multiplied is bf16, not f16 (MATMUL_MATRIX) */
    uint64_t split;     /* both operands are split by launches of their own (SPLIT_FLOATS), so much of K at a time */
    const char *because;
} config;
/* What is chosen for a product: the option if it fits, else by the rules; and the workgroups along N, M, and the batch
 * with its parts of K. */
bool hdi_product_choose(const product *p, const hdi_kernel_option *option, config *out);
bool hdi_product_grid(const product *p, const config *c, uint64_t out_groups[3]); /* false: more than the device has */
/* Is there a kernel for the product, with the norm and the pair that its request asks for? */
bool hdi_product_fits(const product *p);
/* Adds the launches of a product (matmul_launch.c): by an option if it fits, else as the rules choose. */
hd_status hdi_product_lower(const product *p, const hdi_kernel_option *option, hdi_lowering *lowering, hd_error *error);

/* One call of the device's library and what follows it (matmul_library.c). @param option the id of what was measured,
 * or 0 */
hd_status hdi_product_launch_library(const product *p, const char *because, uint32_t option, hdi_lowering *lowering,
                                     hd_error *error);

/* ---- matrices that are more than a binding sees (matmul_slices.c) ---- */

/* Columns of the result that a binding sees the weights of, where it does not see all; else 0, as where the matrix does
 * not lie so that they can be told apart. */
uint64_t hdi_product_columns_at_once(const hdi_request *request);
hd_status hdi_product_lower_slices(const hdi_request *request, uint64_t columns, hdi_lowering *lowering,
                                   hd_error *error);

/* ---- what follows a product (matmul_behind.c) ---- */

/* The sum of the parts of K, from `partial` [batch, parts, M, N] on (one part: the product itself), and the product's
 * chain behind it: one element-wise launch over [batch, M, N]. False where a chain cannot hold them. */
bool hdi_product_chain(const product *p, uint32_t parts, uint32_t partial, hdi_chain *out_chain, hdi_tensor *out);
hd_status hdi_product_launch_chain(const product *p, uint32_t parts, const hdi_tensor *partial, hdi_lowering *lowering,
                                   hd_error *error);

/* ---- rows that chose a matrix (matmul_groups.c) ---- */

/* x [T,K] or [T,U,K] times those of w [E,N,K] that i32 chosen [T,U] names; all dense. Operands: x, w, chosen, and of a
 * pair the second w. */
hd_status hdi_lower_groups(const hdi_request *request, const hdi_tensor *operands, hdi_lowering *lowering,
                           hd_error *error);
/* Adds the launch that makes a product's groups, of at most so many rows each. */
hd_status hdi_product_group(product *p, uint32_t rows, hdi_lowering *lowering, hd_error *error);

/* ---- what is made ready ahead of a product (matmul_ahead.c) ---- */

/* Bytes that `lines` rows of A or columns of B have in memory, repeated batches once. */
uint64_t hdi_product_side_bytes(const product *p, const side *s, uint64_t lines);
/* Fills in the family's push words up to the chain's attributes; returns how many these are. */
uint32_t hdi_product_words(const product *p, hdi_launch *launch);
/* Rows of A as a product asks for them: as bf16 tiles (PACK_BF16), rounded to 8 bits side by side in vectors
 * (PACK_INT8), or rounded to 8 bits row by row (CODES, abi.h), in the strands' order if `in_strands`. */
hd_status hdi_product_pack_rows(const product *p, uint32_t module, bool in_strands, hdi_lowering *lowering,
                                hdi_tensor *out_packed, hd_error *error);
/* Columns of quantised B as codes in the strands' order; the bytes of codes in a form (HDI_CODES_..., abi.h); bytes of
 * shared memory that a tile of matmul_codes_matrix takes. */
hd_status hdi_product_pack_columns(const product *p, hdi_lowering *lowering, hdi_tensor *out_codes, hd_error *error);
uint64_t hdi_product_codes_bytes(const product *p, uint32_t form);
uint64_t hdi_product_unit_bytes(const product *p, uint64_t tile_m, uint64_t tile_n);
/* A float tensor as f16, dense; finite numbers that f16 does not hold become its largest. */
hd_status hdi_product_floats_as_halves(const hdi_request *request, const hdi_tensor *from, hdi_lowering *lowering,
                                       hdi_tensor *out_halves, hd_error *error);
/* How much of K is split at a time where operands of f32 may be split into bf16; else 0. */
uint64_t hdi_product_split_depth(const product *p);
/* The product of both operands' parts, which adds the launches that split them. The tensors are the caller's. */
hd_status hdi_product_split(const product *p, hdi_lowering *lowering, hdi_tensor out_parts[2], product *out_product,
                            hd_error *error);
/* A quantised tensor without gaps as f16 or bf16, in the order in which it lies. */
hd_status hdi_product_codes_as_halves(const hdi_caps *caps, const hdi_tensor *from, hd_dtype type,
                                      hdi_lowering *lowering, hdi_tensor *out_halves, hd_error *error);
#endif
