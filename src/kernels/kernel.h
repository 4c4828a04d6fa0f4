/* kernel.h: the kernels room. A table of kernels, and for each op family the rules that turn one request into launches.
 * All of it is pure: same request, same launches; no device is asked. */
#ifndef HDI_KERNEL_H
#define HDI_KERNEL_H

#include "facts/caps.h"
#include "cmds/cmds.h"
#include "kernels/abi.h"
#include "program/program.h"

/* ---- the table (table.c): every built-in module; a kernel's `module` is an index into it ---- */
typedef enum hdi_module_id {
#define HDI_MODULE(code, file, gpu, cpu) HDI_MODULE_##code,
#include "kernels/module_table.inc"
#undef HDI_MODULE
    HDI_MODULE_COUNT
} hdi_module_id;
const hdi_module *hdi_module_get(uint32_t id); /* NULL outside of the table */

/* ---- variants (variant.c): what is judged as one, and avoided as one where a known answer shows it to be wrong
 * ---- */

/* A module in fast or exact arithmetic, with a bit for each of its forms that a kernel has: the steps of an
 * element-wise chain (steps.h); operation and type of a reduction or of rows; else the type of the weights, the keys or
 * the table. */
typedef struct hdi_variant {
    uint32_t module;
    bool     exact;
    uint64_t forms;
} hdi_variant;
hdi_variant hdi_variant_of(const hdi_kernel *kernel); /* of a built-in module */
static inline bool hdi_variant_is_wrong(const hdi_caps *caps, hdi_variant variant) {
    return (caps->wrong[variant.module % HDI_CAPS_MODULES][variant.exact] & variant.forms) != 0;
}
/* The data type of a form (of the first one), HD_DTYPE_NONE for a step. */
hd_dtype hdi_variant_type(hdi_variant variant);
/* "matvec_dot q4_0, fast" of the first form; returns `out`. */
#define HDI_VARIANT_TEXT 64
char *hdi_variant_text(hdi_variant variant, char *out);

/* ---- what the planner asks for ---- */

/* A tensor as a kernel sees it: a view of a storage. Storages are numbered by the planner. */
typedef struct hdi_tensor {
    uint32_t storage;
    hd_dtype dtype;
    hd_shape shape;
    int64_t  strides[HD_MAX_RANK]; /* in elements; 0 repeats */
    uint64_t first;                /* element that index 0,0,... names */
} hdi_tensor;
hdi_tensor hdi_tensor_dense(uint32_t storage, hd_dtype dtype, hd_shape shape);
bool hdi_tensor_is_dense(const hdi_tensor *tensor); /* strides are those of hdi_tensor_dense, whatever `first` is */
/* The same elements in the same order as `shape`, where axes are only split; false where some are to be joined. */
bool hdi_tensor_split(const hdi_tensor *tensor, hd_shape shape, hdi_tensor *out);
/* Do several of its indices name one element, as those of windows do? */
bool hdi_tensor_overlaps(const hdi_tensor *tensor);
/* Does it fill the memory between its first and its last element, each once? */
bool hdi_tensor_is_gapless(const hdi_tensor *tensor);

/* An element-wise chain (abi.h). Source 0 is `inputs[0]` for an element-wise request, and the value just produced for
 * the epilogue of another one; extra inputs are views with the output's shape (stride 0 where they broadcast). */
typedef struct hdi_step {
    uint8_t  code, a, b, c; /* HDI_STEP_..., sources */
    hd_dtype type;          /* of the result */
    uint32_t attr_first;    /* in `attrs` */
} hdi_step;
typedef struct hdi_chain {
    hdi_step   steps[HDI_CHAIN_STEPS];
    uint32_t   step_count;
    hdi_tensor inputs[HDI_CHAIN_INPUTS]; /* [0] unused in an epilogue */
    uint32_t   input_count;              /* source 0 counted */
    uint32_t   parts;                    /* above 1: input 0 is the sum of so many tensors of f32 */
    uint64_t   apart;                    /* elements from one of them to the next */
    float      attrs[2 * HDI_CHAIN_STEPS];
    uint32_t   attr_count;
} hdi_chain;

/* An rms_norm that a matrix product does to A's rows on the way, instead of reading rows that are normalised
 * already. */
typedef struct hdi_norm {
    bool       present, weighted;
    hdi_tensor weight; /* along A's last axis */
    float      eps;
} hdi_norm;

typedef struct hdi_request {
    hdi_op            op;      /* element-wise and copying ops all come as HDI_OP_COPY with a chain */
    const hdi_attrs  *attrs;
    const hdi_tensor *inputs;  /* of the operation; for a chain they are in the chain */
    uint32_t          input_count;
    hdi_tensor        out;     /* of the operation, after the epilogue; may be strided for HDI_OP_COPY only */
    const hdi_chain  *chain;   /* NULL: none */
    hdi_norm          a_norm;  /* of a matrix product */
    bool              pair;    /* of a matrix product: inputs[2], with experts inputs[3], is a second B, and chain
                                  source 1 is A times it */
    bool              a_rounded; /* of a matrix product: A is f32, but what made it stored it as f16 */
    /* Of a matrix product: A, or what it makes, is f32, but lies in its memory in 8 bits (HDI_CODES_ROWS). */
    bool              a_coded, out_coded;
    bool              b_given; /* of a matrix product: nothing in the plan writes B, nor the second one */
    const hdi_caps   *caps;
    hd_math           math;    /* fast or exact */
    const hdi_attrs  *norm;    /* HDI_OP_ROPE: of the rms_norm before it; its weight is inputs[2]. NULL: none */
    const hdi_attrs  *turn;    /* HDI_OP_ATTENTION: of the rope that it does itself, behind `norm`. NULL: none */
} hdi_request;
/* HDI_OP_ROPE may also be the whole step of a head: inputs x, positions, the norm's weight, and position[B] and
 * pages[B,P] of the rows of `out`, a state of any float type, that the turned heads of each token become. Absent inputs
 * have no type.
 * HDI_OP_ATTENTION with `turn` is a whole step of its heads: q is what the rope turns, or its norm takes, and behind
 * the operation's own operands come positions, the weight of the queries' norm, the tokens' keys as q, the weight of
 * their norm, and the tokens' values. Keys and values become rows of k and v, states, at `past`. */
enum {
    HDI_TURN_POSITIONS = 8, HDI_TURN_QUERY_WEIGHT, HDI_TURN_KEYS, HDI_TURN_KEY_WEIGHT, HDI_TURN_VALUES, HDI_TURN_INPUTS
};

/* ---- options (option.c): several right ways of computing one request ---- */

/* A kernel's rules choose a module and constants for a request. Where others compute it too, these are its options:
 * rows of one table. Which one is fastest differs from device to device; what was measured is a fact of the device
 * (hdi_caps.choices). In exact mode the rules alone decide, so that choices change no bit. A choice that does not fit a
 * request, or is known to be wrong, is passed over for what the rules choose. */
typedef struct hdi_kernel_option {
    uint16_t id;        /* not 0 */
    uint16_t module;    /* hdi_module_id */
    uint16_t native;    /* 1: of the C kernel, not of the GPU's */
    uint16_t by_rules;  /* 1: fits only where its module's rules would choose it */
    /* What the module takes, else 0: */
    uint16_t workgroup; /* its width */
    uint16_t subgroups; /* of a workgroup */
    uint16_t tile_m, tile_n, part_m, part_n; /* of a workgroup; of a subgroup or an invocation of it */
    uint16_t parts;     /* of K */
    uint16_t groups;    /* workgroups for a unit of the device */
    uint16_t keys;      /* read at once by an invocation */
    uint16_t rate;      /* of a tile, in percent of the largest ones' */
    uint16_t beside;    /* percent of a workgroup's time that another one on the same unit of the device adds */
} hdi_kernel_option;
/* Most lanes of a workgroup of matvec_dot to which runs are dealt out. */
enum { HDI_DEALT_LANES = 256 };
const hdi_kernel_option *hdi_kernel_option_get(uint32_t id); /* NULL: there is none */
/* The module's next row of the table; NULL begins, and ends. */
const hdi_kernel_option *hdi_kernel_option_next(hdi_module_id module, const hdi_kernel_option *after);
uint32_t hdi_kernel_options_digest(void); /* of the table: ids mean something only beside it */
/* "matrix_128x160_k2", for people; returns `out`. */
#define HDI_KERNEL_OPTION_TEXT 24
char *hdi_kernel_option_text(const hdi_kernel_option *option, char out[HDI_KERNEL_OPTION_TEXT]);

/* The options of requests of one class; the first is what the rules choose. */
typedef struct hdi_class_options {
    hdi_class of;
    uint32_t  count;
    const hdi_kernel_option *options[48];
} hdi_class_options;
/* Of all classes of a plan, as far as there is room. */
typedef struct hdi_offer {
    uint32_t count;
    hdi_class_options items[32];
} hdi_offer;
typedef bool (*hdi_kernel_option_fits)(const void *user, const hdi_kernel_option *option);
/* The option to take: the one that is chosen for the class where it fits, else the rules' own (NULL: it is no row of
 * the table). Adds all that fit to `offer` (NULL: nobody asks). */
const hdi_kernel_option *hdi_kernel_option_choose(const hdi_request *request, hdi_class of,
                                                  const hdi_kernel_option *own, hdi_kernel_option_fits fits,
                                                  const void *user, hdi_offer *offer);
/* The same for kernels of which only the width of a workgroup varies, up to `most`. NULL: the usual width. */
const hdi_kernel_option *hdi_kernel_width_choose(const hdi_request *request, hdi_class of, hdi_module_id module,
                                                 uint32_t usual, uint32_t most, hdi_offer *offer);

/* ---- what comes back ---- */
typedef struct hdi_use {
    uint32_t storage;
    uint64_t offset, bytes; /* the whole tensor's bytes: planner adds where the storage lies */
    uint32_t access;        /* HDI_READ | HDI_WRITE */
} hdi_use;
typedef struct hdi_launch {
    hdi_kernel  kernel;
    hdi_use     uses[HDI_MAX_BINDINGS];
    uint32_t    everywhere;     /* a bit for each of them that every workgroup reads most of */
    uint32_t    push[HDI_MAX_PUSH_WORDS];
    uint32_t    groups[3];
    uint64_t    flops, bytes;   /* least work, for timings and for cutting long work */
    const char *because;        /* static text: why this kernel */
    uint32_t    option;         /* id of the one that was chosen by what was measured; 0: what the rules took */
} hdi_launch;

/* Collects launches in order; each may depend on the ones before. Temporaries and constant tables get storages of
 * their own from the planner's call-backs, which give HDI_NO_INDEX without memory. */
typedef struct hdi_lowering {
    const hd_allocator *allocator;
    hdi_launch *launches;
    uint32_t    count, capacity;
    uint32_t  (*temporary)(void *user, uint64_t bytes);
    uint32_t  (*constant)(void *user, const void *data, uint64_t bytes);
    uint32_t  (*zeros)(void *user, uint64_t bytes); /* zero when a launch begins, and left zero by it: all share it */
    void       *user;
    hdi_offer  *offer;         /* gets the options of each request; NULL: nobody asks */
} hdi_lowering;
/* Of a plan, and so of one request: bindings that see next to nothing would ask for millions. */
#define HDI_MOST_LAUNCHES (1u << 16)
/* A zeroed launch to be filled in, or NULL: then hdi_no_launch says why. */
hdi_launch *hdi_lowering_add(hdi_lowering *lowering);
/* LIMIT where there are HDI_MOST_LAUNCHES, else OUT_OF_HOST_MEMORY. */
hd_status hdi_no_launch(const hdi_lowering *lowering, hd_error *error);
/* A launch's bindings: appends a whole tensor, with its `first` left to the kernel's push words. */
void hdi_launch_bind(hdi_launch *launch, const hdi_tensor *tensor, uint32_t access);
/* Spec constants and attribute words of a chain: fills spec ids HDI_SPEC_CHAIN.., returns the number of attribute words
 * written to `push_at`. For an epilogue, set spec[HDI_SPEC_CHAIN_TYPE], the type of the value produced, before, and
 * round that value to it in the kernel; where there is no chain, spec[HDI_SPEC_OUT_TYPE] is the caller's too. */
uint32_t hdi_launch_chain(hdi_launch *launch, const hdi_chain *chain, uint32_t *push_at);
/* May the chain be one launch of the element-wise kernel? It has at most HDI_CHAIN_STEPS steps, one costly step, and
 * views whose words the device's push constants hold. */
bool hdi_chain_fits(const hdi_chain *chain, const hdi_tensor *out, const hdi_caps *caps);
/* Adds the step that makes f16 of the chain's result as a product wants it: finite numbers that f16 does not hold
 * become its largest. False where there is no room. */
bool hdi_chain_add_halves(hdi_chain *chain);
/* Is it nothing but that? */
bool hdi_chain_is_halves(const hdi_chain *chain);
/* How many of a chain's steps are costly functions (steps.inc): at most one may be in a kernel. */
uint32_t hdi_chain_costly_steps(const hdi_chain *chain);
/* The step that an element-wise operation is: code, operands 0, 1, 2 as sources, attributes; the type is the caller's.
 * False for operations that are none. `out_attrs` has room for 2. */
bool hdi_op_step(hdi_op op, const hdi_attrs *attrs, hdi_step *out_step, float *out_attrs, uint32_t *out_attr_count);
/* A one-dimensional grid (abi.h). */
void hdi_launch_grid(hdi_launch *launch, uint64_t groups);

/* Lowers one request: the family's rules choose the table's row that fits caps, types, sizes and math, and leave out
 * the variants that are wrong on the device; where fast mode has none left, the exact form takes its place. UNSUPPORTED
 * names what the device lacks, or the last kernel that was left and is wrong. */
hd_status hdi_kernels_lower(const hdi_request *request, hdi_lowering *lowering, hd_error *error);
/* May this operand come as a view with any strides? Otherwise the planner copies it to a dense one first. */
bool hdi_kernels_take_view(hdi_op op, uint32_t operand);
/* Does the operation's kernel round f32 to any float as it stores it? */
bool hdi_kernels_round(hdi_op op);
/* May the chain follow the operation in its own kernel? */
bool hdi_kernels_take_epilogue(hdi_op op, const hdi_chain *chain);
/* Is there a kernel for the attention that turns its heads and writes their rows? */
bool hdi_attention_turns(const hdi_request *request);
/* Is there a kernel for the matrix product with the norm and the pair that it asks for? */
bool hdi_matmul_fits(const hdi_request *request);
/* The same of the product with experts, whose second B is inputs[3], and with its chain. */
bool hdi_groups_fit(const hdi_request *request);
/* Would the product make f16 of its A ahead of it, in a launch of its own? */
bool hdi_matmul_rounds(const hdi_request *request);
/* Would the product be made by a kernel of few rows in 8 bits, and can that read or store codes as the request says? */
bool hdi_matmul_takes_codes(const hdi_request *request);
/* The least rows of A with which products are faster by f16 weights than by quantised ones, in fast mode; 0: none. */
uint32_t hdi_matmul_half_rows(const hdi_caps *caps);
/* The shape that a kernel of the device's library of products has, as one number above zero (hdi_caps.refused). */
uint64_t hdi_product_shape(const hdi_kernel *kernel);
bool hdi_product_is_refused(const hdi_caps *caps, const uint64_t sizes[4]); /* M, N, K, batch */
/* May a matrix product's chain read the view? Its strides along the batch axes must be those of one axis. */
bool hdi_matmul_takes_source(const hdi_tensor *view);

/* One function for each family (rules/), named in the operations' rows, called by hdi_kernels_lower. Operations that
 * one of them takes are said in its file. */
#define HDI_OP(code, name, least, most, lack, kind, rows, work, rule, takes, builder, reference, lower, ...) \
    hd_status hdi_lower_##lower(const hdi_request *request, hdi_lowering *lowering, hd_error *error);
#include "program/op_table.inc"
#undef HDI_OP
/* What each pair turns a position, as 64-bit fractions of a turn (abi.h): dims / 2 pairs of words. The same bits on
 * every host. False where one is not finite, or more than 2^31 turns. 0 for theta and frequency_scale means their
 * defaults. */
bool hdi_rope_frequencies(float theta, float frequency_scale, const float *factors, uint32_t dims, uint32_t *out_words);

/* ---- CPU forms (kernels/cpu/), found through the table ---- */
/* The level of the kernels that this process takes: 0 portable, 1 AVX2 + FMA, 2 AVX-512, 3 with VNNI and bf16. The
 * files cpu/<module>.c are built once for each level with HDCPU_LEVEL defined; HDCPU_KERNEL names and suffixes their
 * entry; table.c picks at run time. */
uint32_t hdcpu_level(void);
#define HDCPU_JOIN2(a, b) a##b
#define HDCPU_JOIN(a, b) HDCPU_JOIN2(a, b)
#define HDCPU_KERNEL(file)                                                                                             \
    void HDCPU_JOIN(hdcpu_##file##_l, HDCPU_LEVEL)(const hdi_cpu_call *call, uint32_t group_x, uint32_t group_y,       \
                                                   uint32_t group_z);                                                  \
    void HDCPU_JOIN(hdcpu_##file##_l, HDCPU_LEVEL)(const hdi_cpu_call *call, uint32_t group_x, uint32_t group_y,       \
                                                   uint32_t group_z)

/* ---- the reference (reference.c): op by op in plain C on dense tensors, slow and right ---- */
typedef struct hdi_reference_tensor {
    hd_dtype dtype;
    hd_shape shape;
    void    *data; /* dense, of hd_tensor_bytes */
} hdi_reference_tensor;
/* Computes one node from its operands in exact arithmetic, in the orders that abi.h states. */
hd_status hdi_reference(const hdi_node *node, const hdi_reference_tensor *operands, hdi_reference_tensor *out,
                        hd_error *error);
#endif
