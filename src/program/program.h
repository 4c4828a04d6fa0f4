/* program.h: WHAT to compute. A program is an arena of nodes; every node gives one value, whose id is its index + 1.
 * No pointer to data, no stride, no device in here. Built by build.c, checked as it is built, read-only afterwards. */
#ifndef HDI_PROGRAM_H
#define HDI_PROGRAM_H

#include "base/base.h"

typedef enum hdi_op {
    HDI_OP_NONE = 0,
#define HDI_OP(code, name, least, most, attributes, types, formula, bound) HDI_OP_##code,
#include "program/op_table.inc"
#undef HDI_OP
    HDI_OP_COUNT
} hdi_op;

typedef struct hdi_op_facts {
    const char *name;
    uint32_t    least_operands, most_operands;
    const char *attributes, *types, *formula, *bound;
} hdi_op_facts;
/* Facts of an operation; name NULL for an unknown one. */
hdi_op_facts hdi_op_get(hdi_op op);

/* The launch of a user's kernel. `kernel` is counted by whoever made it; the program room only carries it. */
struct hdi_user_kernel;
typedef struct hdi_custom {
    struct hdi_user_kernel *kernel;
    uint32_t push_words[32];
    uint32_t push_bytes;
    uint32_t groups[3];
} hdi_custom;

/* Attributes, as named in the operation's row. Unused ones are zero. */
typedef struct hdi_attrs {
    int64_t  ints[2 * HD_MAX_RANK]; /* axis: ints[0]; axes: ints[0..rank); begin, before: ints[0..rank); end, after:
                                       ints[HD_MAX_RANK..); matmul: ints[0] the flags; rope: dims, pairing;
                                       attention: not_causal. Axes and bounds are resolved: never negative. */
    float    floats[4];             /* in the row's order */
    uint32_t factor_count;          /* rope */
    const float *factors;           /* in the program's arena */
    const hdi_custom *custom;       /* dispatch; in the program's arena */
} hdi_attrs;

#define HDI_MAX_OPERANDS 64

typedef struct hdi_node {
    hdi_op    op;
    hd_dtype  dtype; /* of the result */
    hd_shape  shape; /* of the result */
    uint32_t  operand_count;
    const hd_value *operands; /* in the arena; optional ones that are absent are 0 */
    hdi_attrs attrs;
    const char *name; /* of an input or state, else NULL */
} hdi_node;

typedef struct hdi_output {
    const char *name;
    hd_value    value;
} hdi_output;

struct hd_program {
    hd_context *context; /* owner; opaque here */
    hdi_arena   arena;
    hdi_node   *nodes;   /* value v is nodes[v - 1] */
    uint32_t    node_count, node_capacity;
    hdi_output *outputs;
    uint32_t    output_count, output_capacity;
    hd_value   *overwritten; /* states' values that hdi_write_rows has replaced, indexed by value: 1 = may not be used */
    hd_error    error;   /* the first failure of a build call; status HD_OK: well formed so far */
    bool        foreign_kernels; /* holds dispatch nodes */
};

/* The node of a value, or NULL for an id that the program never gave out. */
const hdi_node *hdi_program_node(const hd_program *program, hd_value value);
/* An empty program over an allocator; NULL without memory. hdi_program_free ends it. */
hd_program *hdi_program_new(const hd_allocator *allocator, hd_context *context);
void hdi_program_free(hd_program *program);
/* Adds a node after checking operands and attributes against the operation's rule, which also gives type and shape
 * (for input, state, cast, reshape and dispatch they are given in `dtype` and `shape`). 0 on failure, which sticks. */
hd_value hdi_program_add(hd_program *program, hdi_op op, const hd_value *operands, uint32_t operand_count,
                         const hdi_attrs *attrs, hd_dtype dtype, hd_shape shape, const char *name);
/* Type and shape of a result (infer.c); fails with the reason. The nodes' attrs may be normalised (axis, bounds). */
hd_status hdi_program_infer(const hd_program *program, hdi_node *node, hd_error *error);
/* Whole-program check: the sticky error, at least one output. */
hd_status hdi_program_check(const hd_program *program, hd_error *error);

/* Text form (print.c, parse.c). The parser asks `find_kernel` for the kernel of a dispatch node by its 16-digit hash. */
typedef struct hdi_user_kernel *(*hdi_find_kernel)(void *user, uint64_t hash);
void hdi_program_print(const hd_program *program, hdi_text *out_text);
hd_status hdi_program_parse(hd_program *empty_program, const char *text, size_t bytes, hdi_find_kernel find_kernel,
                            void *user, hd_error *error);
/* Equal for equal text forms. */
uint64_t hdi_program_hash(const hd_program *program);
/* The hash and push size of a user's kernel, read by print and check; defined in the spirv room's user.c. */
#endif
