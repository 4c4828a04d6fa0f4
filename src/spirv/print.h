/* print.h: a module that was read becomes text in a language of the C family. Internal to src/spirv/. In this order:
 *   fold.c         with the constants given: which values are known, which blocks are reached, what is still needed
 *   barriers.c     which loops hold barriers
 *   uniform.c      for devices without subgroups: do all invocations come along?
 *   place.c        where pointers lead
 *   print_flow.c   functions: constructs, branches, phis, calls inlined
 *   print_ops.c    instructions on values: a table of templates; print_glsl.c and print_groups.c are parts of it
 *   print_memory.c pointers, loads, stores, atomics
 *   print_types.c  names and declarations of types, literals
 *   print_wgsl.c   what WGSL does another way: memory, the head
 *   print.c        all of it around the prelude of the dialect (dialect.c)
 * The body is written in names that no dialect owns (u32, f32, make_u32x4, bits_f32, ...); preludes give them their
 * meaning.
 *   Every integer is unsigned, signed instructions convert; so nothing overflows.
 *   Every instruction is a statement of its own, and works component by component: dialects need no operators on
 *   vectors. Buffers are bytes: an access computes its address from the offsets and strides that the module states, so
 *   that views of any type may share a buffer. Everything else lies in variables of plain types; arrays and matrices
 *   are structs around an array, so that values of any type can be assigned. A pointer is no value: where it is used,
 *   its variable and indices are printed.
 * WGSL is no language of that family, but near enough: statements, names and order are the same; declarations, casts,
 * choices and memory differ, and it stands beside the other where they do. */
#ifndef HDI_SPIRV_PRINT_H
#define HDI_SPIRV_PRINT_H

#include "spirv/module.h"

#define HDI_SPIRV_MAX_TEXT (16u << 20)   /* bytes of a kernel's text */
#define HDI_SPIRV_MAX_PRINT_DEPTH 600u   /* constructs and calls within each other */
#define HDI_SPIRV_MAX_CASES 1024u        /* of a switch */
#define HDI_SPIRV_MAX_COPIED 1024u       /* numbers that one load or store of a buffer moves */

/* Parts of a prelude beyond the one that is always there; the order is that of the text. */
typedef enum hdi_spirv_part {
    HDI_SPIRV_PART_CORE, HDI_SPIRV_PART_NO_CONTRACTION, HDI_SPIRV_PART_HALF, HDI_SPIRV_PART_DOUBLE, HDI_SPIRV_PART_BITS,
    HDI_SPIRV_PART_MATH, HDI_SPIRV_PART_ATOMICS, HDI_SPIRV_PART_ATOMICS64, HDI_SPIRV_PART_SUBGROUPS, HDI_SPIRV_PART_DOT,
    HDI_SPIRV_PART_SPACES, HDI_SPIRV_PART_MATRIX, HDI_SPIRV_PART_FRAGMENTS, HDI_SPIRV_PART_HALF_PAIRS,
    HDI_SPIRV_PART_COUNT
} hdi_spirv_part;

/* How a dialect says what the preludes cannot. */
typedef struct hdi_spirv_spelling {
    const char        *name;
    /* names of u8 u16 u32 u64 f32 f64 that a component count makes a vector; NULL: vectors are structs */
    const char        *scalar[6];
    const char        *aligned;       /* struct keyword for a vector: with its alignment, %u */
    const char        *kernel;        /* the kernel's head: workgroup size %u %u %u */
    const char *const *parts[HDI_SPIRV_PART_COUNT]; /* lines up to a NULL; NULL: the dialect lacks it */
} hdi_spirv_spelling;
const hdi_spirv_spelling *hdi_spirv_spelling_of(const hdi_spirv_print_target *target);
const char *const *hdi_spirv_prelude(const hdi_spirv_print_target *target, hdi_spirv_part part); /* NULL: lacking */
/* dialect_ptx.c; spaces of memory that matrices may lie in, and their names in PTX, come before the matrices */
extern const char *const hdi_spirv_ptx_half[], *const hdi_spirv_cuda_spaces[], *const hdi_spirv_nvidia_spaces[],
    *const hdi_spirv_ptx_matrix[], *const hdi_spirv_ptx_fragments[], *const hdi_spirv_cuda_half_pairs[];
static inline bool hdi_spirv_is_ptx(const hdi_spirv_print_target *target) { /* OpenCL C with PTX */
    return target->dialect == HDI_SPIRV_OPENCL_C && target->offers & HDI_SPIRV_OFFERS_PTX;
}

enum hdi_spirv_fact {
    HDI_SPIRV_KNOWN = 1,  /* a scalar whose bits are in `bits` */
    HDI_SPIRV_NEEDED = 2, /* something that is printed depends on it */
    /* declared at the top of its function: also needed outside of its own block, or the dialect wants it so */
    HDI_SPIRV_FAR = 4,
    HDI_SPIRV_ATOMIC = 8  /* a variable of atomics, for WGSL */
};

/* What a construct holds, those within it and functions that are called included. */
enum hdi_spirv_hold {
    HDI_SPIRV_HOLDS_BARRIER = 1,
    HDI_SPIRV_HOLDS_RETURN = 2,
    HDI_SPIRV_MISSES_BARRIER = 4 /* of a loop or function: not in each round, or call, it holds */
};

/* A construct being printed; the ones around it by `outer`. */
typedef struct hdi_spirv_scope {
    char     kind; /* 'i' selection, 's' switch, 'l' loop, 'f' function */
    uint32_t header, merge, continue_to;
    /* its continue part stands at the top of the loop, guarded by a flag, not where it is reached */
    bool     continue_first;
    uint32_t continue_label; /* or at its end, behind a label of this number; 0: it does not */
    bool     in_continue;
    bool     left_by_break, left_by_return; /* from inside of a construct within it, on the way to one around it */
    uint32_t call;           /* of a function: def of the call; 0 for the entry point */
    struct hdi_spirv_scope *outer;
} hdi_spirv_scope;

typedef struct hdi_spirv_printer {
    hdi_spirv_module         *m;
    const hdi_spirv_print_target *target;
    const hdi_spirv_spelling *spelling;
    hdi_spirv_printed        *printed;
    hdi_text  *text;     /* being written to */
    uint32_t   indent, depth;
    bool       stop;     /* refused: the rest prints nothing */
    bool       declares_first; /* nothing is declared inside of loops */
    uint64_t   shared_at; /* in the room that a launch gives: behind what was declared so far */
    /* by def */
    uint64_t  *bits;
    uint8_t   *facts;
    uint32_t  *same;     /* the value that it equals, mostly itself */
    uint32_t  *mark;     /* scratch, with a number from `next_mark` that no one used before */
    uint32_t   next_mark;
    uint32_t  *stack, stack_count; /* needed values whose operands were not looked at yet */
    /* by block */
    uint8_t   *reached, *done;
    uint32_t  *only_way; /* where a known condition leads; HDI_SPIRV_NONE */
    uint8_t   *needs_flag; /* of a loop's header: it is left from inside of a switch */
    uint8_t   *holds;    /* hdi_spirv_hold of the construct that it heads */
    /* by function, by type */
    uint8_t   *called;
    uint8_t   *function_holds; /* hdi_spirv_hold */
    uint32_t  *calls, call_count; /* functions that were not looked at yet */
    bool      *declared; /* of types by number: the text needs a declaration */
    uint8_t    vectors[36]; /* by kind, width and count: vector types that the text needs */
    uint32_t   parts;    /* a bit for each part of the prelude */
    uint32_t   labels;   /* of the text, so far */
    uint32_t   has_length; /* a bit for each binding whose length is asked for */
    uint32_t   atomic_bindings; /* WGSL: a bit for each binding whose words are atomics */
    uint8_t    helpers[HDI_SPIRV_MAX_BINDINGS]; /* WGSL: functions that the text needs for each binding */
} hdi_spirv_printer;

/* ---- print.c: what both outputs begin and end with ---- */
static inline bool hdi_spirv_is_wgsl(const hdi_spirv_printer *p) {
    return p->target && p->target->dialect == HDI_SPIRV_WGSL;
}
bool hdi_spirv_begin(hdi_spirv_printer *p, uint32_t entry_inst); /* room, and no execution mode that is not honoured */
/* buffers, words and lengths that the kernel is given */
void hdi_spirv_find_arguments(hdi_spirv_printer *p);
void hdi_spirv_sum_shared(hdi_spirv_printer *p);
/* Where a shared variable begins behind `after` bytes of others. */
uint64_t hdi_spirv_shared_place(const hdi_spirv_printer *p, uint32_t def, uint64_t after);

/* ---- fold.c ---- */
void hdi_spirv_fold(hdi_spirv_printer *p, uint32_t entry_function);
static inline bool hdi_spirv_is_known(const hdi_spirv_printer *p, uint32_t def) {
    return p->facts[p->same[def]] & HDI_SPIRV_KNOWN;
}
static inline uint64_t hdi_spirv_bits(const hdi_spirv_printer *p, uint32_t def) { return p->bits[p->same[def]]; }
/* Target number `n` of the block's branch, as far as known conditions let it be taken; HDI_SPIRV_NONE: no more. */
uint32_t hdi_spirv_way(const hdi_spirv_printer *p, uint32_t block, uint32_t n);
/* Of two blocks that the module lets one lead to the other: does it still, with what is known? HDI_SPIRV_NONE leads
 * nowhere. */
bool hdi_spirv_leads(const hdi_spirv_printer *p, uint32_t from, uint32_t to);

/* ---- barriers.c ---- */
bool hdi_spirv_find_barriers(hdi_spirv_printer *p); /* fills `holds` and `function_holds` */

/* ---- uniform.c ---- */
/* Does every invocation of a workgroup reach each instruction about subgroups? Else UNSUPPORTED. */
bool hdi_spirv_check_uniform(hdi_spirv_printer *p);

/* ---- place.c ---- */
/* Where a pointer leads. */
typedef struct hdi_spirv_place {
    uint32_t root;      /* the variable */
    uint32_t storage;
    uint32_t type;      /* of what is there */
    uint32_t index_count, index[HDI_SPIRV_MAX_TYPE_DEPTH + 4]; /* from the root on */
    /* of a buffer or push constants: the offset is `bytes` + the sum of index * stride */
    uint64_t bytes;
    uint32_t term_count, term[HDI_SPIRV_MAX_TYPE_DEPTH + 4], stride[HDI_SPIRV_MAX_TYPE_DEPTH + 4];
    uint32_t align;           /* what divides every such offset, up to BUFFER_ALIGN */
    uint32_t matrix_stride;   /* of the matrix that this is or is in */
    bool     by_rows, is_volatile;
    uint32_t step;            /* bytes from one component to the next; 0: as wide as they are */
} hdi_spirv_place;
/* Buffers and push constants are bytes; what is in another storage class is a variable of its type. */
static inline bool hdi_spirv_is_bytes(uint32_t storage) {
    return storage == SpvStorageClassStorageBuffer || storage == SpvStorageClassUniform ||
           storage == SpvStorageClassPushConstant;
}
bool hdi_spirv_find_place(hdi_spirv_printer *p, uint32_t pointer, hdi_spirv_place *at);
/* May a vector be moved as a whole, `more` bytes on? */
bool hdi_spirv_is_whole(const hdi_spirv_place *at, const hdi_spirv_type *type, uint64_t more);
/* How many numbers a value of the type is made of; at most limit + 1. */
uint32_t hdi_spirv_number_count(const hdi_spirv_module *m, uint32_t type, uint32_t limit);
/* Offset of part `i` of what is at the place, from its beginning; the matrix facts go with it. */
uint64_t hdi_spirv_part_offset(const hdi_spirv_module *m, hdi_spirv_place *at, uint32_t i);

/* ---- print_types.c ---- */
/* Adds to the text: %s text, %u number, %U 64-bit number, %x hexadecimal, %v a value (def), %t a type's name (def),
 * %n what makes a value of the vector type (def), %c a letter, %% a percent sign. */
void hdi_spirv_put(hdi_spirv_printer *p, const char *format, ...);
void hdi_spirv_add(hdi_spirv_printer *p, const char *bytes, size_t count); /* as they are */
void hdi_spirv_line(hdi_spirv_printer *p); /* begins one: indentation */
/* "u32 v12", "var v12: u32": a variable's name is a letter and a number. */
void hdi_spirv_put_declared(hdi_spirv_printer *p, uint32_t type, char letter, uint32_t number);
/* A value of the type, from its parts that stand in between with commas. */
void hdi_spirv_open_value(hdi_spirv_printer *p, uint32_t type);
void hdi_spirv_close_value(hdi_spirv_printer *p, uint32_t type);
/* Component `i` of a value: of a vector; a scalar is its own. */
void hdi_spirv_put_component(hdi_spirv_printer *p, uint32_t def, uint32_t i);
/* u32, i32, f32 ... */
void hdi_spirv_put_scalar_name(hdi_spirv_printer *p, const hdi_spirv_type *type, bool as_signed);
void hdi_spirv_put_zero(hdi_spirv_printer *p, uint32_t type);
/* the types that declared types are made of; then they can be printed */
void hdi_spirv_find_types(hdi_spirv_printer *p);
void hdi_spirv_put_types(hdi_spirv_printer *p);
static inline void hdi_spirv_use_part(hdi_spirv_printer *p, hdi_spirv_part part) { p->parts |= 1u << part; }
/* The type of a part of an aggregate, by index; of a vector its component. */
uint32_t hdi_spirv_part_type(const hdi_spirv_module *m, uint32_t type, uint64_t index);
/* ".x", ".m1", ".e[2]", ".c[0]": the part of a value of the type. */
void hdi_spirv_put_part(hdi_spirv_printer *p, uint32_t type, uint32_t index);

/* ---- print_flow.c ---- */
bool hdi_spirv_put_function(hdi_spirv_printer *p, uint32_t function, hdi_spirv_scope *scope);

/* ---- print_ops.c ---- */
/* One instruction that is no branch, phi or call: a statement, or nothing where its result is not needed. */
bool hdi_spirv_put_instruction(hdi_spirv_printer *p, uint32_t inst);
bool hdi_spirv_put_constant(hdi_spirv_printer *p, uint32_t def); /* one that is no literal: a variable of its own */
/* "u32 v12 = " or "v12 = ", and what the statement ends with. */
void hdi_spirv_put_result(hdi_spirv_printer *p, uint32_t def);
void hdi_spirv_end(hdi_spirv_printer *p);
/* A template over operands' components: $0 .. $3 operands, @0 .. @3 as signed numbers, $T $S the result's scalar type
 * and its signed form, $C the type that floats are computed in. One expression for each component of the result. */
bool hdi_spirv_put_template(hdi_spirv_printer *p, uint32_t type, const char *format, const uint32_t *operands);
/* What follows give a value; hdi_spirv_put_barrier, and stores of matrices, whole statements. */
bool hdi_spirv_put_glsl(hdi_spirv_printer *p, uint32_t inst);
bool hdi_spirv_put_barrier(hdi_spirv_printer *p, uint32_t inst, uint32_t opcode);
bool hdi_spirv_put_group(hdi_spirv_printer *p, uint32_t inst, uint32_t opcode);
void hdi_spirv_put_matrix_type(hdi_spirv_printer *p, uint32_t type);
bool hdi_spirv_put_matrix(hdi_spirv_printer *p, uint32_t inst, uint32_t opcode);

/* ---- print_memory.c ---- */
bool hdi_spirv_put_memory(hdi_spirv_printer *p, uint32_t inst, uint32_t opcode);
bool hdi_spirv_put_atomic(hdi_spirv_printer *p, uint32_t inst, uint32_t opcode);
bool hdi_spirv_put_variable(hdi_spirv_printer *p, uint32_t def); /* of a function, private or shared: its declaration */
/* The value that a store writes, or the part of it that `path` leads to. */
typedef struct hdi_spirv_source {
    uint32_t value, depth, path[HDI_SPIRV_MAX_TYPE_DEPTH + 2];
} hdi_spirv_source;
void hdi_spirv_put_source(hdi_spirv_printer *p, const hdi_spirv_source *from);
/* "(GLOBAL f16 *)(address)": a pointer to numbers of the pointee's scalar type. */
bool hdi_spirv_put_pointer(hdi_spirv_printer *p, uint32_t pointer, const char *qualifier, const char *type);
static inline void hdi_spirv_put_name(hdi_spirv_printer *p, uint32_t variable) {
    hdi_spirv_put(p, "%c%u", hdi_spirv_type_of(p->m, variable)->storage == SpvStorageClassWorkgroup ? 's' : 'l',
                  variable);
}

/* ---- print_wgsl.c ---- */
/* before the body: variables and bindings that have to be atomics */
bool hdi_spirv_wgsl_find_atomics(hdi_spirv_printer *p);
/* Of a place that was found: the expression that it is, its value, and a whole statement that writes one. */
void hdi_spirv_wgsl_put_lvalue(hdi_spirv_printer *p, const hdi_spirv_place *at);
bool hdi_spirv_wgsl_read(hdi_spirv_printer *p, uint32_t inst, const hdi_spirv_place *at);
bool hdi_spirv_wgsl_store(hdi_spirv_printer *p, uint32_t inst, const hdi_spirv_place *at, uint32_t value);
bool hdi_spirv_wgsl_put_atomic(hdi_spirv_printer *p, uint32_t inst, uint32_t opcode);
bool hdi_spirv_wgsl_put_variable(hdi_spirv_printer *p, uint32_t def);
bool hdi_spirv_wgsl_put_input(hdi_spirv_printer *p, uint32_t def);
/* shared memory; what stands outside of functions has no order there */
bool hdi_spirv_wgsl_put_shared(hdi_spirv_printer *p);
void hdi_spirv_wgsl_put_head(hdi_spirv_printer *p);   /* bindings, and the function's head */
#endif
