/* lower.h: a module of others, trimmed, becomes one that knows buffers only. Internal to src/spirv/. In this order:
 *   lower.c         what the module is made of; words being written; its functions, instruction by instruction
 *   lower_spell.c   what extensions say in one instruction is spelled out
 *   lower_memory.c  addresses that are kept, computed or chosen become numbers
 *   lower_calls.c   functions that are given images become copies that know them
 *   lower_images.c  images become buffers of texels (lower_texels.c), samplers arithmetic on them (lower_samplers.c)
 *   lower_arrays.c  arrays of buffers become buffers by themselves
 *   lower_addresses.c  and so do buffers whose addresses stand in the push constants
 *   lower_pointers.c  pointers that are chosen become numbers
 *   lower_given.c   what the functions are given that these make of an instruction
 *   lower_groups.c  what vendors and old extensions let subgroups do becomes what all do
 *   lower_shared.c  shared memory that begins with zeros is set to zeros
 * An instruction that has to go is replaced by a call of a function that is made for it, so that the control flow
 * around it stays as it is. Trusts nothing: what does not fit is left as it was, for the checks, which see the module
 * afterwards; what is understood and not taken is refused by name. */
#ifndef HDI_SPIRV_LOWER_H
#define HDI_SPIRV_LOWER_H

#include "spirv/module.h"

/* Words being written, in the lowering's arena. */
typedef struct hdi_lower_words {
    uint32_t *items;
    size_t    count, capacity;
} hdi_lower_words;

enum {
    HDI_LOWER_MAX_FUNCTIONS = 2048, /* that are made */
    HDI_LOWER_MAX_OPERANDS = 40,   /* of an instruction that is made */
    HDI_LOWER_MAX_CASES = 64,      /* of a switch that is made */
    HDI_LOWER_MAX_LOOKS = 2048,    /* through the whole module for what is said of a member */
    HDI_LOWER_MAX_INPUTS = 3,      /* built-in ones that are looked at */
    HDI_LOWER_MAX_CAPABILITIES = 8 /* that are made */
};

/* An image: a buffer of texels, one after the other along the axes, the first of which is the innermost. */
typedef struct hdi_lower_image {
    uint32_t variable, type;     /* ids; the OpTypeImage */
    uint32_t set, binding;
    /* ids of types: of a texel's component as the kernel sees it, of the buffer's elements */
    uint32_t component, element;
    uint32_t axes, layers;       /* layers: how many of the axes count layers, or a cube's faces: 0 or 1 */
    bool     cube, cubes;        /* cubes: an array of them */
    uint32_t samples;            /* how many of the axes count samples, in front of the others: 0 or 1 */
    hd_dtype dtype;              /* of the tensor, and its last axis */
    uint32_t channels;
    uint32_t coding, bits, components; /* of a texel: what a component is (lower_texels.c), of how many bits */
    uint32_t element_bytes, texel_elements;
    uint32_t number;             /* in an array of images */
    bool     aliased;            /* another image is the same tensor */
    uint32_t length;             /* which word behind the module's own push constants is its first length */
} hdi_lower_image;
/* An array of images, which are some of the images one after the other. */
typedef struct hdi_lower_image_array { uint32_t variable, first, count; } hdi_lower_image_array;
typedef struct hdi_lower_sampler { uint32_t variable, set, binding; } hdi_lower_sampler;

/* A function that was made, and what for. */
typedef struct hdi_lower_made {
    uint32_t opcode, image, sampler, coordinates, offset, moved, component, value, function;
    uint32_t sample; /* the type of a sample's number; 0: there is one */
} hdi_lower_made;

/* An array of buffers, and a pointer into one that is chosen at run time. */
typedef struct hdi_lower_array {
    uint32_t variable, count, elements[HDI_SPIRV_MAX_BINDINGS];
    bool     images; /* those of an array of images, as they are */
} hdi_lower_array;
typedef struct hdi_lower_chosen {
    uint32_t array, count, indices[HDI_SPIRV_MAX_TYPE_DEPTH + 2]; /* the first one chooses */
    uint32_t texel; /* the number of one, which is among the indices; 0: none is */
} hdi_lower_chosen;

/* A buffer whose address stands at a byte of the push constants. */
typedef struct hdi_lower_address {
    uint32_t offset, type, variable; /* type: of the pointer */
    uint32_t depth; /* how many structs and arrays were put around what it points to */
} hdi_lower_address;

typedef struct hdi_lowering {
    hdi_arena       arena;
    hd_error       *error;
    hd_status       status;  /* the first failure; then nothing more is written */
    const hd_image_desc *wishes;
    uint32_t        wish_count;
    const uint32_t *words;
    size_t          count, functions; /* functions: where the first one begins */
    uint32_t        bound, next;      /* ids as they come, and the next new one */
    uint32_t       *at;               /* by id: where it is defined; 0: nowhere */
    uint8_t        *gone;             /* by id: it is not in the new module, or is written anew behind the others */
    hdi_spirv_stated stated;          /* of both modules */
    hdi_lower_words decorations, globals, code, made;
    uint32_t        glsl, new_glsl;   /* the import of GLSL.std.450; it is new */
    hdi_lower_image   images[HDI_SPIRV_MAX_BINDINGS];   uint32_t image_count;
    hdi_lower_sampler samplers[HDI_SPIRV_MAX_BINDINGS]; uint32_t sampler_count;
    hdi_lower_image_array image_arrays[HDI_SPIRV_MAX_BINDINGS]; uint32_t image_array_count;
    hdi_lower_made    functions_made[HDI_LOWER_MAX_FUNCTIONS]; uint32_t made_count;
    hdi_lower_array   arrays[HDI_SPIRV_MAX_BINDINGS];   uint32_t array_count;
    hdi_lower_chosen *chosen;                           uint32_t chosen_count, chosen_capacity;
    uint32_t       *chosen_of;        /* by id: 1 + its index in `chosen` */
    struct hdi_lower_pointers *pointers; /* NULL: the module has none that are values */
    uint32_t        element_bytes;    /* those of images' elements, or-ed */
    bool            addressed;        /* the module says that it has addresses */
    hdi_lower_address addresses[HDI_SPIRV_MAX_BINDINGS]; uint32_t address_count;
    uint32_t        looks;            /* for members of structs, of which there are not too many */
    uint32_t        push, push_struct, push_members, push_bytes, length_words; /* the block, as the module has it */
    struct { uint32_t builtin, variable, type; } inputs[HDI_LOWER_MAX_INPUTS]; uint32_t input_count;
    uint32_t        entry;            /* the function of the entry point */
    uint32_t        shared_count;     /* variables in shared memory that begin with zeros */
    bool            groups;           /* some instruction is lower_groups.c's, or some built-in of subgroups */
    bool            linear_quads;     /* four invocations in a row are a quad */
    uint32_t        ballots;          /* AMD's set of instructions about subgroups; 0: it is not there */
    uint32_t        capabilities[HDI_LOWER_MAX_CAPABILITIES], capability_count; /* new ones, of subgroups */
} hdi_lowering;

/* ---- lower.c ---- */
static inline uint32_t hdi_lower_opcode(const uint32_t *words) { return words[0] & SpvOpCodeMask; }
static inline uint32_t hdi_lower_length(const uint32_t *words) { return words[0] >> SpvWordCountShift; }
/* The id's instruction, where it is of this opcode and at least so long; else NULL. */
const uint32_t *hdi_lower_def(const hdi_lowering *l, uint32_t id, uint32_t opcode, uint32_t length);
bool hdi_lower_refuse(hdi_lowering *l, const uint32_t *words, const char *format, ...) HDI_PRINTF(3, 4);
/* The value that an id is decorated with; HDI_SPIRV_NONE: it is not. */
uint32_t hdi_lower_decorated(const hdi_lowering *l, uint32_t id, uint32_t decoration);
/* What the caller said of what is bound there; NULL: nothing. */
const hd_image_desc *hdi_lower_wish(const hdi_lowering *l, uint32_t set, uint32_t binding);
/* How many elements the array of a variable has, a type: as the module says, or as the caller wishes. 0: it was
 * refused. */
uint32_t hdi_lower_elements(hdi_lowering *l, const uint32_t *variable, const uint32_t *array);
void hdi_lower_add(hdi_lowering *l, hdi_lower_words *to, uint32_t opcode, const uint32_t *operands, uint32_t count);
/* An instruction with a result, among the functions that are made: its id. */
uint32_t hdi_lower_make(hdi_lowering *l, uint32_t opcode, uint32_t type, const uint32_t *operands, uint32_t count);
#define HDI_LOWER_IDS(...)                                                                                             \
    (const uint32_t[]){ __VA_ARGS__ }, (uint32_t)(sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))
#define HDI_LOWER_MAKE(l, opcode, type, ...) hdi_lower_make(l, opcode, type, HDI_LOWER_IDS(__VA_ARGS__))
#define HDI_LOWER_ADD(l, to, opcode, ...) hdi_lower_add(l, to, opcode, HDI_LOWER_IDS(__VA_ARGS__))
/* A type (`type` 0) or constant, stated once: its id. */
uint32_t hdi_lower_once(hdi_lowering *l, uint32_t opcode, uint32_t type, const uint32_t *operands, uint32_t count);
#define HDI_LOWER_ONCE(l, opcode, type, ...) hdi_lower_once(l, opcode, type, HDI_LOWER_IDS(__VA_ARGS__))
static inline uint32_t hdi_lower_uint(hdi_lowering *l) { return HDI_LOWER_ONCE(l, SpvOpTypeInt, 0, 32, 0); }
static inline uint32_t hdi_lower_float(hdi_lowering *l) { return HDI_LOWER_ONCE(l, SpvOpTypeFloat, 0, 32); }
static inline uint32_t hdi_lower_pointer(hdi_lowering *l, uint32_t storage, uint32_t type) {
    return HDI_LOWER_ONCE(l, SpvOpTypePointer, 0, storage, type);
}
static inline uint32_t hdi_lower_number(hdi_lowering *l, uint32_t type, uint32_t bits) {
    return HDI_LOWER_ONCE(l, SpvOpConstant, type, bits);
}
/* What a built-in input of one unsigned number holds, in the function that is being made. */
uint32_t hdi_lower_input(hdi_lowering *l, uint32_t builtin);
/* The function that was made for the same before; 0: none was. */
uint32_t hdi_lower_made_before(const hdi_lowering *l, const hdi_lower_made *key);
/* Begins a function that is made, up to its first label: its id, and those of its parameters. */
uint32_t hdi_lower_begin(hdi_lowering *l, uint32_t result, const uint32_t *types, uint32_t count, uint32_t *parameters);

/* ---- lower_spell.c ---- */
/* The operands of instructions that are spelled out there, as hdi_spirv_lowered_operands gives them. */
const char *hdi_lower_spelled_operands(uint32_t opcode);
/* The id of a set of extended instructions; 0: the module has no such one. */
uint32_t hdi_lower_set(const hdi_lowering *l, const char *name);
bool hdi_lower_any_short(const hdi_lowering *l);
/* Another module in place of the lowering's words, in which they are. Knows `at`, `functions` and what is stated.
 * False: no memory. */
bool hdi_lower_spell(hdi_lowering *l);

/* ---- lower_calls.c ---- */
/* Another module in place of the lowering's words, where its functions are given images. Knows `at` and `functions`.
 * False: no memory. */
bool hdi_lower_copy_functions(hdi_lowering *l);

/* ---- lower_memory.c ---- */
/* Another module in place of the lowering's words, in which addresses are numbers of bytes into one buffer. Knows `at`,
 * `functions` and what is stated. False: no memory. */
bool hdi_lower_put_memory(hdi_lowering *l);

/* ---- lower_images.c ---- */
/* The operands, in op_table.inc's letters, of an instruction that is none of its rows, but may be lowered; NULL: it is
 * no such one. */
const char *hdi_spirv_lowered_operands(uint32_t opcode);
/* The operands of either kind of instruction; none of others. */
static inline hdi_spirv_operands hdi_lower_operands(const uint32_t *words) {
    const hdi_spirv_op *row = hdi_spirv_op_row(hdi_lower_opcode(words));
    const char *form = row ? row->operands : hdi_spirv_lowered_operands(hdi_lower_opcode(words));
    return (hdi_spirv_operands){ .words = words, .then = 1, .end = hdi_lower_length(words), .next = form ? form : "" };
}
void hdi_lower_find_image(hdi_lowering *l, const uint32_t *variable); /* an image or sampler, if it is one */
void hdi_lower_put_images(hdi_lowering *l);                           /* the buffers */
bool hdi_lower_image_use(hdi_lowering *l, const uint32_t *words);     /* false: the instruction is about no image */

/* ---- lower_arrays.c ---- */
void hdi_lower_find_array(hdi_lowering *l, const uint32_t *variable);
void hdi_lower_put_arrays(hdi_lowering *l);
bool hdi_lower_array_use(hdi_lowering *l, const uint32_t *words);
/* A pointer to a texel of an image that `index` chooses among `count`. */
bool hdi_lower_choose_texel(hdi_lowering *l, const uint32_t *words, const hdi_lower_image *first, uint32_t count,
                            uint32_t index, uint32_t texel);

/* ---- lower_given.c ---- */
/* The word of the pointer that the instruction reads or writes through; 0: it does neither, or is too short. */
uint32_t hdi_lower_used_pointer(const uint32_t *words);
/* Does an instruction that is one of op_table.inc's have a result? */
bool hdi_lower_gives(const uint32_t *words);
/* Values that a function is given which is made for an instruction, and its parameters for them. */
typedef struct hdi_lower_given {
    uint32_t count, values[HDI_LOWER_MAX_OPERANDS], types[HDI_LOWER_MAX_OPERANDS], ids[HDI_LOWER_MAX_OPERANDS];
} hdi_lower_given;
/* Gives it a value, unless it is a constant or has it; false: there are too many. */
bool hdi_lower_give(const hdi_lowering *l, uint32_t id, hdi_lower_given *given);
/* All that the instruction needs but for the pointer at word `at`. */
bool hdi_lower_give_operands(const hdi_lowering *l, const uint32_t *words, uint32_t at, hdi_lower_given *given);
/* What stands for the value in the function. */
uint32_t hdi_lower_given_as(const hdi_lower_given *given, uint32_t id);
/* The instruction with this pointer at word `at`, in the function, which returns what comes of it. */
void hdi_lower_put_use(hdi_lowering *l, const uint32_t *words, uint32_t at, uint32_t pointer,
                       const hdi_lower_given *given);
/* A call of the function in the instruction's place. */
void hdi_lower_call(hdi_lowering *l, uint32_t type, uint32_t result, uint32_t function, const hdi_lower_given *given);
/* A switch in the function: case `labels[i]` for number i, or numbers[i]; the last one for all others, too. Ends at the
 * label `merge`, which nothing goes on from. */
void hdi_lower_begin_switch(hdi_lowering *l, uint32_t merge, uint32_t selector, const uint32_t *numbers,
                            uint32_t count, uint32_t *out_labels);
void hdi_lower_end_switch(hdi_lowering *l, uint32_t merge);

/* ---- lower_addresses.c ---- */
bool hdi_lower_is_address(const hdi_lowering *l, uint32_t type); /* a type of pointers that are addresses */
/* Such types as members of structs, in front of all other types. */
void hdi_lower_put_address_types(hdi_lowering *l, hdi_lower_words *to);
void hdi_lower_decorate_addresses(hdi_lowering *l);
bool hdi_lower_address_use(hdi_lowering *l, const uint32_t *words);

/* ---- lower_pointers.c ---- */
bool hdi_lower_any_pointers(const hdi_lowering *l); /* that are values */
/* Where they may lead; before anything is written. False: no memory. */
bool hdi_lower_find_pointers(hdi_lowering *l);
/* Types of vectors, in front of all that holds them. */
void hdi_lower_put_pointer_types(hdi_lowering *l, hdi_lower_words *to);
/* What is said of such pointers in front of the functions. False: the instruction is about none. */
bool hdi_lower_pointer_front(hdi_lowering *l, hdi_lower_words *to, const uint32_t *words);
void hdi_lower_put_variables(hdi_lowering *l); /* that are chosen as a whole */
bool hdi_lower_pointer_use(hdi_lowering *l, const uint32_t *words);

/* ---- lower_groups.c ---- */
/* The operands of instructions that are taken here, as hdi_spirv_lowered_operands gives them. */
const char *hdi_lower_group_operands(uint32_t opcode);
void hdi_lower_find_groups(hdi_lowering *l); /* is there anything to do? */
/* Is it said there that four invocations in a row are a quad? */
bool hdi_lower_is_linear_mode(const uint32_t *words);
bool hdi_lower_group_use(hdi_lowering *l, const uint32_t *words);

/* ---- lower_shared.c ---- */
/* Is it a variable in shared memory that begins with zeros? */
bool hdi_lower_begins_with_zeros(const hdi_lowering *l, const uint32_t *variable);
/* In the block with this label, in which nothing else was made: sets them all, and meets the workgroup. */
void hdi_lower_put_zeros(hdi_lowering *l, uint32_t label);
#endif
