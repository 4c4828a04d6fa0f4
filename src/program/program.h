/* program.h: WHAT to compute. A program is an arena of nodes; every node gives one value, whose id is its index + 1.
 * No pointer to data, no stride, no device in here. Built by build.c, checked as it is built, read-only afterwards. */
#ifndef HDI_PROGRAM_H
#define HDI_PROGRAM_H

#include "base/base.h"

typedef enum hdi_op {
    HDI_OP_NONE = 0,
#define HDI_OP(code, ...) HDI_OP_##code,
#include "program/op_table.inc"
#undef HDI_OP
    HDI_OP_COUNT
} hdi_op;

/* X(KIND, "name", what it is): operations that are alike, so that their time follows from their arithmetic and bytes by
 * the same figures. */
#define HDI_KIND_LIST(X) \
    X(ELEMENTWISE, "elementwise", "each element by itself, and chains of such") \
    X(FUNCTION,    "function",    "the same with quotients, roots, exponentials and what is made of them") \
    X(MATMUL,      "matmul",      "matrix products of more than 8 rows") \
    X(MATVEC,      "matvec",      "matrix products of at most 8 rows: the weights are most of what is read") \
    X(REDUCE,      "reduce",      "sums and picks along an axis") \
    X(SOFTMAX,     "softmax",     "softmax and cross entropy: a row at a time, read more than once") \
    X(NORM,        "norm",        "norms, likewise") \
    X(TABLE,       "table",       "rows from and to tables and states") \
    X(ROPE,        "rope",        "rotary embedding") \
    X(ATTENTION,   "attention",   "attention") \
    X(COPY,        "copy",        "moves elements: copies, views made dense, joining, padding") \
    X(USER,        "user",        "kernels of the caller's own")
typedef enum hdi_op_kind {
    HDI_KIND_NONE = 0, /* takes no time */
#define HDI_KIND_ENUM(code, name, text) HDI_KIND_##code,
    HDI_KIND_LIST(HDI_KIND_ENUM)
#undef HDI_KIND_ENUM
    HDI_KIND_COUNT,    /* of kinds with figures; a row of the table may also say: */
    HDI_KIND_SOURCE,   /* an input or a state: takes no time */
    HDI_KIND_VIEW,     /* the same elements in another order or shape: takes no time by itself */
    HDI_KIND_STATE     /* writes a state; takes the time of a table or a copy */
} hdi_op_kind;
const char *hdi_op_kind_name(hdi_op_kind kind); /* of those with figures */

typedef struct hdi_op_facts {
    const char *name;
    uint32_t    least_operands, most_operands;
    bool        may_lack; /* operands beyond the least may be absent */
    hdi_op_kind kind;
    const char *attributes, *types, *formula, *bound;
} hdi_op_facts;
/* Facts of an operation; name NULL for an unknown one. */
hdi_op_facts hdi_op_get(hdi_op op);
hdi_op_kind hdi_op_kind_of(hdi_op op); /* as its row says */
uint32_t hdi_op_floats(hdi_op op); /* how many of its attributes are floats: these are floats[0] on */
static inline bool hdi_op_is_source(hdi_op op) { return hdi_op_kind_of(op) == HDI_KIND_SOURCE; }
static inline bool hdi_op_is_view(hdi_op op) { return hdi_op_kind_of(op) == HDI_KIND_VIEW; }
/* Its first operand is a state, and its result the state's new content: it is computed whether or not something reads
 * that. */
static inline bool hdi_op_writes_state(hdi_op op) { return hdi_op_kind_of(op) == HDI_KIND_STATE; }
/* Is its result what a state holds? */
static inline bool hdi_op_shows_state(hdi_op op) { return op == HDI_OP_STATE || hdi_op_writes_state(op); }

/* The launch of a user's kernel. `kernel` is counted by whoever made it; the program room only carries it, and knows of
 * it what the kernel_... fields say. */
struct hdi_user_kernel;
/* What one of its bindings holds: an operand, a part of the result, or a part that begins as the operand. */
typedef struct hdi_custom_binding {
    uint32_t operand;       /* one more than its number; 0: none */
    uint64_t offset, bytes; /* of the result; 0 bytes: it is not written */
} hdi_custom_binding;
#define HDI_PART_ALIGN 256 /* of a part's offset */
/* A binding that its module has as an image: texels of so many numbers, along `axes` axes (0: a buffer), whose lengths
 * stand in the push constants from word `push_word` on, the innermost first. */
typedef struct hdi_custom_image {
    uint32_t axes, channels, push_word;
    hd_dtype dtype;
} hdi_custom_image;
typedef struct hdi_custom {
    struct hdi_user_kernel *kernel;
    uint64_t kernel_hash;
    uint32_t kernel_bindings, kernel_push_bytes; /* as its module says, */
    uint32_t kernel_uses, kernel_writes;         /* and which bindings, as bits, */
    uint32_t kernel_own_push_bytes;              /* without the lengths of images, */
    hdi_custom_image kernel_images[16];          /* and which are images */
    uint32_t push_words[32];
    uint32_t push_bytes;
    uint32_t groups[3];
    hdi_custom_binding bindings[16];
    uint32_t binding_count; /* 0: the operands in their order, and then the result */
} hdi_custom;

/* Attributes, as named in the operation's row. Unused ones are zero, and zeros that stand for a default (attention's
 * scale; rope's theta, frequency_scale, magnitude and dims) are replaced by it. */
typedef struct hdi_attrs {
    int64_t ints[2 * HD_MAX_RANK]; /* axis: ints[0]; axes: ints[0..rank); begin, before: ints[0..rank); end, after:
                                      ints[HD_MAX_RANK..); matmul: ints[0] the flags; cumsum: ints[1] the flags;
                                      windows: ints[1..3] size, stride, dilation; rope: dims, pairing; attention:
                                      not_causal, window, bf16; random: stream. Axes and bounds are resolved: never
                                      negative. */
    uint32_t list_count;            /* entries of axes, begin, end, before, after: the operand's rank */
    float    floats[4];             /* in the row's order */
    uint32_t factor_count;          /* rope */
    const float *factors;           /* in the program's arena */
    const hdi_custom *custom;       /* dispatch; in the program's arena */
} hdi_attrs;

/* The operands of write_rows as its batch form's, B 1 for the plain form (heddle.h tells them apart). `pages` NULL:
 * none. */
typedef struct hdi_rows_place {
    uint64_t B, T, S, n; /* sequences, rows written and rows there are of each, elements of a row */
    uint64_t N, R;       /* pages of the pool and rows of a page; 0 without pages */
} hdi_rows_place;
hdi_rows_place hdi_write_rows_place(hd_shape state, hd_shape rows, hd_shape position, const hd_shape *pages);
#define HDI_LEAST_PAGE_ROWS 64 /* and a power of two: so that what a kernel reads at once lies in one page */

#define HDI_MAX_OPERANDS 64

/* The value of the caller's program that a node computes, or a piece of it along an axis. */
typedef struct hdi_origin {
    hd_value value;      /* 0: the program is the caller's own */
    uint32_t axis;
    uint64_t begin, end; /* end 0: all */
} hdi_origin;

typedef struct hdi_node {
    hdi_op    op;
    hd_dtype  dtype; /* of the result */
    hd_shape  shape; /* of the result */
    uint32_t  operand_count;
    const hd_value *operands; /* in the arena; absent ones are 0, and zeros follow up to the operation's most, or 5 */
    hdi_attrs attrs;
    const char *name; /* of an input or state, else NULL */
    bool      overwritten; /* a state's value that a later operation replaced: may not be used any more */
    bool      is_output;   /* named by hd_output: may not be overwritten any more */
    hd_value  whole;       /* in a segment: its value in the program that was cut (segments.h); else 0 */
    bool      arrives;     /* in a segment: an input that lies on another device */
    hdi_origin origin;     /* in a segment, and in a program that was split: what the caller knows of it */
} hdi_node;

typedef struct hdi_output {
    const char *name;
    hd_value    value;
} hdi_output;

struct hd_program {
    hd_context *context; /* owner; opaque here */
    hdi_held    held;
    uint32_t    tag;     /* in the values that callers see */
    const hd_allocator *allocator;
    hdi_arena   arena;
    hdi_node   *nodes;   /* value v is nodes[v - 1] */
    uint32_t    node_count, node_capacity;
    hdi_output *outputs;
    uint32_t    output_count, output_capacity;
    hd_port    *ports;   /* every named value, in the order of declaration */
    uint32_t    port_count, port_capacity;
    hdi_names   names;   /* of the ports */
    hd_error    error;   /* the first failure of a build call; status HD_OK: well formed so far */
    bool        foreign_kernels; /* holds dispatch nodes */
    bool        split;           /* by rows (segments.h): two inputs, or two outputs, may be pieces of one port */
};

/* The node of a value, or NULL for an id that the program never gave out. */
const hdi_node *hdi_program_node(const hd_program *program, hd_value value);
/* An empty program over an allocator; NULL without memory. hdi_program_free ends it. */
hd_program *hdi_program_new(const hd_allocator *allocator, hd_context *context);
void hdi_program_free(hd_program *program);
/* What callers see of a program's ids: a hd_value has the program's tag above the id, so that no other program takes
 * it. */
enum { HDI_ID_BITS = 21 };
uint32_t hdi_program_new_tag(void);
/* Puts the program in the place of its handle, and gives the tag of the values that come with it: 0 for the library's
 * own rooms, which have the program itself and ids as they are. False: HDI_REFUSE says why. */
bool hdi_program_see(hd_program **program_at, uint32_t *out_tag);
static inline hd_value hdi_value_shown(uint32_t tag, hd_value id) { return id ? tag << HDI_ID_BITS | id : 0; }
/* The id of a value that a caller gave; one that no program has where it is another program's. */
static inline hd_value hdi_value_id(uint32_t tag, hd_value value) {
    return value == 0 || value >> HDI_ID_BITS == tag ? value & ((1u << HDI_ID_BITS) - 1) : UINT32_MAX;
}
/* As hdi_program_add, with a handle, operands as callers see them, and so the result. */
hd_value hdi_program_put(hd_program *program, const hdi_node *node);
/* Adds a node after checking operands and attributes against the operation's rule, which also gives type and shape: of
 * `node` only the operation, operands and attributes are read, of input, state, cast, reshape and dispatch type and
 * shape too, and of the first two the name. 0 on failure, which sticks. */
hd_value hdi_program_add(hd_program *program, const hdi_node *node);
/* Names a value as an output. False on failure, which sticks. */
bool hdi_program_add_output(hd_program *program, const char *name, hd_value value);
/* Type and shape of a result (infer.c); fails with the reason. The nodes' attrs may be normalised (axis, bounds). */
hd_status hdi_program_infer(const hd_program *program, hdi_node *node, hd_error *error);
/* The operands of which a row of the node's value needs the same row only, as a set of bits: of the others it may need
 * all. Empty: rows depend on each other. The value has an axis (rows.c). */
uint64_t hdi_op_row_operands(const hd_program *program, const hdi_node *node);
/* Whole-program check: the sticky error, at least one output. */
hd_status hdi_program_check(const hd_program *program, hd_error *error);

/* hd_gradients (grad.c), desc not NULL. `find_kernel` tells the gradient that the desc has for a user's kernel; NULL:
 * there are none. */
typedef const hd_kernel_gradient *(*hdi_kernel_gradient_fn)(const hd_gradients_desc *desc,
                                                            const struct hdi_user_kernel *kernel);
hd_status hdi_program_gradients(hd_program *program, hd_value loss, const hd_value *wanted, size_t wanted_count,
                                const hd_gradients_desc *desc, hdi_kernel_gradient_fn find_kernel,
                                hd_value *out_gradients);

/* hd_gradients with values as callers see them. OUT_OF_HOST_MEMORY may leave no error in the program. */
hd_status hdi_gradients(hd_program *program, hd_value loss, const hd_value *wanted, size_t wanted_count,
                        const hd_gradients_desc *desc, hdi_kernel_gradient_fn find_kernel, hd_value *out_gradients);

/* hd_dispatch and hd_dispatch_all of a kernel of which the kernel_... fields tell (dispatch.c); values as callers see
 * them. 0 or false on failure, which sticks; else the caller holds the kernel. */
hd_value hdi_dispatch(hd_program *program, const hdi_custom *kernel, const hd_dispatch_desc *desc);
bool hdi_dispatch_all(hd_program *program, const hdi_custom *kernel, const hd_dispatch_desc *desc,
                      hd_value *out_values);

/* What the kernel_... fields tell, for another launch. */
void hdi_custom_take_kernel(hdi_custom *custom, const hdi_custom *from);
/* Do operands, result, push constants and groups fit the kernel? Statuses: those that hd_dispatch names. */
hd_status hdi_dispatch_check(const hd_program *program, const hdi_node *node, hd_error *error);

/* Text form (print.c, parse.c; docs/ops.md tells how it is written). The parser asks `find_kernel` for the kernel of a
 * dispatch node by its 16-digit hash: it fills in what hdi_custom_take_kernel does, or returns false. It only lends the
 * kernel: whoever parses then holds the kernels of the program's nodes. */
typedef bool (*hdi_find_kernel)(void *user, uint64_t hash, hdi_custom *out_custom);
/* One for the text of another program, `user`: its launches know kernels that their makers may have ended already. */
bool hdi_dispatch_find(void *program, uint64_t hash, hdi_custom *out_custom);
void hdi_program_print(const hd_program *program, hdi_text *out_text);
/* "v12", or "v12 rows 0-383": the value as the caller knows it. */
void hdi_origin_print(const hd_program *program, hd_value value, hdi_text *out_text);
/* `program` is empty at first; after a failure it stays failed. `find_kernel` NULL: there are none. */
hd_status hdi_program_parse(hd_program *program, const char *text, size_t bytes, hdi_find_kernel find_kernel,
                            void *user, hd_error *error);
/* Where NaN come from (watch.c). The step adds to a program that was not watched yet one output of i32 [3] for each
 * value of floats, named HDI_WATCH_NAME and the value; failures stick to the program. */
#define HDI_WATCH_NAME "not finite: v"
enum { HDI_WATCH_ROOM = 32 };
/* elements, and the first: of NaN, or of both */
typedef struct hdi_watched { int32_t nan, not_finite, first; } hdi_watched;
void hdi_program_watch(hd_program *program, bool infinities);
/* By what a run told of each value: NOT_FINITE names the first that holds what no operand of it does. */
hd_status hdi_watch_tell(const hd_program *program, const hdi_watched *told, bool infinities, hd_error *error);
/* Integers that no kernel knows, i8, u32 and i64, by those that kernels have (words.c): the same program over u8 and
 * i32, whose inputs and outputs are the same bytes; an i64's shape [...] is [n,2] then. NULL: there are none. The
 * kernels of its launches are those of `program`, before which it is ended by hdi_program_free. */
hd_status hdi_program_in_words(const hd_program *program, hd_program **out_words, hd_error *error);
/* Equal for equal text forms (hash.c). */
uint64_t hdi_program_hash(const hd_program *program);
#endif
