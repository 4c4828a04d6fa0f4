/* flavour.h: a module that was read becomes SPIR-V of OpenCL's flavour: a kernel with physical addresses, for Level
 * Zero and OpenCL drivers. The second output beside the text (print.h), with the same folding, places and arguments. In
 * this order:
 *   flavour_types.c   words being written; types and constants, each stated once
 *   flavour_memory.c  pointers, loads, stores, atomics, built-in inputs
 *   flavour_ops.c     instructions on values; flavour_glsl.c is a part of it
 *   flavour.c         blocks, functions, the entry point, the module
 * Branches and phis stay as they are, apart from what is never reached; merges are Vulkan's and left out. Integers are
 * without a sign, as OpenCL asks. A pointer is made where it is used. Buffers are bytes: an access adds an offset to
 * the argument and casts. What belongs to the entry point here, buffers, words, private variables and the workgroup's,
 * other functions are given by parameters of their own. */
#ifndef HDI_SPIRV_FLAVOUR_H
#define HDI_SPIRV_FLAVOUR_H

#include "spirv/print.h"

#define HDI_FLAVOUR_MAX_WORDS (4u << 20) /* of a kernel's module */

typedef struct hdi_flavour_words {
    uint32_t *items;
    uint32_t  count, capacity;
} hdi_flavour_words;

enum { HDI_FLAVOUR_MAX_INPUTS = 16 };
/* What is being written. Once `stop` is set nothing more is, and ids are anything. */
typedef struct hdi_flavour {
    hdi_spirv_module  *m;
    hdi_spirv_printer *p;          /* what folding found */
    const hd_allocator *allocator;
    hdi_flavour_words decorations, globals, code;
    hdi_spirv_stated stated;
    uint32_t bound;
    uint32_t extended;             /* the import of OpenCL.std */
    uint32_t inputs[HDI_FLAVOUR_MAX_INPUTS], input_builtins[HDI_FLAVOUR_MAX_INPUTS], input_count;
    /* functions that add to an f32 atomically: of buffers, of shared memory; 0: not needed */
    uint32_t adders[2];
    uint8_t  capabilities[1024];   /* a bit for each number below 8192 */
    uint32_t *ids, *labels, *functions; /* by def, block, function; 0: none yet */
    uint8_t  *closes;              /* by block: it stands behind a loop that a barrier ends */
    uint32_t buffers[HDI_SPIRV_MAX_BINDINGS], launch; /* parameters of the function being written */
    uint32_t last;                 /* where in the code the instruction made last stands */
    bool     stop;
} hdi_flavour;

/* ---- flavour_types.c ---- */
void hdi_flavour_add(hdi_flavour *w, hdi_flavour_words *to, uint32_t opcode, const uint32_t *operands, uint32_t count);
/* An instruction with a result, in the code: its id. */
uint32_t hdi_flavour_make(hdi_flavour *w, uint32_t opcode, uint32_t type, const uint32_t *operands, uint32_t count);
#define HDI_FLAVOUR_IDS(...)                                                                                           \
    (const uint32_t[]){ __VA_ARGS__ }, (uint32_t)(sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))
#define HDI_FLAVOUR_MAKE(w, opcode, type, ...) hdi_flavour_make(w, opcode, type, HDI_FLAVOUR_IDS(__VA_ARGS__))
/* a value of these parts */
uint32_t hdi_flavour_compose(hdi_flavour *w, uint32_t type, const uint32_t *parts, uint32_t count);
/* An instruction of OpenCL.std with up to three operands; 0: no more. */
uint32_t hdi_flavour_extended(hdi_flavour *w, uint32_t number, uint32_t type, uint32_t a, uint32_t b, uint32_t c);
void hdi_flavour_decorate(hdi_flavour *w, uint32_t id, uint32_t decoration, uint32_t value);
void hdi_flavour_use(hdi_flavour *w, uint32_t capability);
/* type 0: it is a type */
uint32_t hdi_flavour_once(hdi_flavour *w, uint32_t opcode, uint32_t type, const uint32_t *operands, uint32_t count);
uint32_t hdi_flavour_vector(hdi_flavour *w, char kind, uint32_t width, uint32_t count); /* count 1: the scalar */
static inline uint32_t hdi_flavour_scalar(hdi_flavour *w, char kind, uint32_t width) {
    return hdi_flavour_vector(w, kind, width, 1);
}
uint32_t hdi_flavour_pointer(hdi_flavour *w, uint32_t storage, uint32_t type); /* storage: Vulkan's, or OpenCL's */
uint32_t hdi_flavour_type(hdi_flavour *w, uint32_t type_def);
/* A constant of `count` components that are all the same. */
uint32_t hdi_flavour_number(hdi_flavour *w, char kind, uint32_t width, uint32_t count, uint64_t bits);
static inline uint32_t hdi_flavour_u32(hdi_flavour *w, uint32_t bits) {
    return hdi_flavour_number(w, 'i', 32, 1, bits);
}
/* A value's id; also of one that is still to come. */
uint32_t hdi_flavour_value(hdi_flavour *w, uint32_t def);
/* Component `i` of a value whose type is `type`; a scalar is its own. */
uint32_t hdi_flavour_component(hdi_flavour *w, const hdi_spirv_type *type, uint32_t value, uint32_t i);
/* An integer made `width` bits wide, without regard to its sign. */
uint32_t hdi_flavour_widen(hdi_flavour *w, const hdi_spirv_type *type, uint32_t value, uint32_t width);

/* Floats of another width, number by number: those of vectors are library functions, which are not everywhere for
 * halves. */
uint32_t hdi_flavour_convert(hdi_flavour *w, uint32_t count, uint32_t value, uint32_t from_width, uint32_t width);

/* ---- flavour_memory.c ---- */
uint32_t hdi_flavour_load(hdi_flavour *w, uint32_t inst);
void hdi_flavour_store(hdi_flavour *w, uint32_t inst); /* and copies */
uint32_t hdi_flavour_array_length(hdi_flavour *w, uint32_t inst);
uint32_t hdi_flavour_atomic(hdi_flavour *w, uint32_t inst, uint32_t opcode);
void hdi_flavour_barrier(hdi_flavour *w, uint32_t inst, uint32_t opcode);
void hdi_flavour_close_loop(hdi_flavour *w); /* a barrier of the workgroup */
void hdi_flavour_adders(hdi_flavour *w); /* the functions that `adders` counts on */

/* ---- flavour_ops.c, flavour_glsl.c ---- */
/* gives its operand's very value, types being alike here */
bool hdi_flavour_is_alias(const hdi_flavour *w, uint32_t inst);
void hdi_flavour_instruction(hdi_flavour *w, uint32_t inst);
uint32_t hdi_flavour_glsl(hdi_flavour *w, uint32_t inst);
#endif
