/* module.h: a SPIR-V module that was read and checked, for those who look inside: reflection now, printers of other
 * languages later. Internal to src/spirv/. Built in this order, each step standing on the ones before it:
 *   trim.c   of a module of others only what its entry point reaches, in heddle's kind
 *   read.c   words -> instructions and result ids      declare.c  decorations, types, constants, variables
 *   check.c  the module as a whole                      blocks.c   functions and their blocks
 *   flow.c   dominance, structured control flow         typing.c, memory.c  operand types inside of functions
 *   reflect.c what one entry point needs       variant.c  the same of a module that was checked before, sooner
 *   print.h   and from there on, other languages
 * A *def* is the index of a result id's record in module->defs, in order of definition; 0 stands for "none". */
#ifndef HDI_SPIRV_MODULE_H
#define HDI_SPIRV_MODULE_H

#include "spirv/spirv.h"
#include <spirv/unified1/spirv.h>

/* Numbers that older headers lack. */
#define HDI_SPIRV_COOPERATIVE_MATRIX 6022u      /* capabilities */
#define HDI_SPIRV_BFLOAT16 5116u
#define HDI_SPIRV_BFLOAT16_MATRIX 5118u
#define HDI_SPIRV_MATRIX_REDUCTIONS 5430u
#define HDI_SPIRV_MATRIX_CONVERSIONS 5431u
#define HDI_SPIRV_TYPE_COOPERATIVE_MATRIX 4456u /* opcodes from here on */
#define HDI_SPIRV_COOPERATIVE_MATRIX_LOAD 4457u
#define HDI_SPIRV_COOPERATIVE_MATRIX_STORE 4458u
#define HDI_SPIRV_COOPERATIVE_MATRIX_MUL_ADD 4459u
#define HDI_SPIRV_COOPERATIVE_MATRIX_LENGTH 4460u
#define HDI_SPIRV_COOPERATIVE_MATRIX_REDUCE 5366u

/* Stated limits; more is refused with LIMIT. */
#define HDI_SPIRV_MAX_BYTES (16u << 20)
#define HDI_SPIRV_MAX_BOUND (4u << 20)
#define HDI_SPIRV_MAX_ENTRIES 64u
#define HDI_SPIRV_MAX_TYPES 16384u
#define HDI_SPIRV_MAX_TYPE_DEPTH 32u     /* types within types */
#define HDI_SPIRV_MAX_NEST 256u          /* ifs and loops within each other */
#define HDI_SPIRV_MAX_CALLS 64u          /* functions that call each other in a row */
#define HDI_SPIRV_MAX_LOCAL_BYTES (1u << 20) /* of one value, and of all private and function variables together */

#define HDI_SPIRV_NONE UINT32_MAX
#define HDI_SPIRV_HEADER_WORDS 5u

/* What op_table.inc says of an opcode. */
typedef struct hdi_spirv_op {
    uint32_t    number;
    const char *name; /* "OpNop" */
    char        section;
    const char *operands, *types;
    uint32_t    capability, minor;
} hdi_spirv_op;
/* The table: by opcode, one more than its row; looked at many times for each instruction. */
#define HDI_SPIRV_MAX_OPCODE 6035u
extern const hdi_spirv_op hdi_spirv_ops[];
extern const uint8_t      hdi_spirv_row_of[HDI_SPIRV_MAX_OPCODE + 1];
static inline const hdi_spirv_op *hdi_spirv_op_row(uint32_t opcode) { /* NULL: outside of the subset */
    return opcode <= HDI_SPIRV_MAX_OPCODE && hdi_spirv_row_of[opcode] ? &hdi_spirv_ops[hdi_spirv_row_of[opcode] - 1]
                                                                      : NULL;
}

typedef struct hdi_spirv_def {
    uint32_t id;
    uint32_t inst;   /* index in insts */
    uint32_t type;   /* def of its type; of itself where it is one; 0: a label, text or import */
    uint32_t flags;  /* its decorations without a value */
    uint32_t decor;  /* index in decors; 0: none has a value */
    /* index in types, values, functions or blocks, as its instruction says; def of a pointer's variable */
    uint32_t detail;
    uint32_t block;  /* that it stands in; HDI_SPIRV_NONE: outside of functions, or a parameter */
} hdi_spirv_def;

enum hdi_spirv_flag {
    HDI_SPIRV_BLOCK = 1, HDI_SPIRV_BUFFER_BLOCK = 2, HDI_SPIRV_NON_WRITABLE = 4, HDI_SPIRV_NON_READABLE = 8,
    HDI_SPIRV_NO_CONTRACTION = 16, HDI_SPIRV_ROW_MAJOR = 32, HDI_SPIRV_COL_MAJOR = 64, HDI_SPIRV_RELAXED = 128,
    HDI_SPIRV_RESTRICT = 256, HDI_SPIRV_ALIASED = 512, HDI_SPIRV_VOLATILE = 1024, HDI_SPIRV_COHERENT = 2048,
    HDI_SPIRV_NO_SIGNED_WRAP = 4096, HDI_SPIRV_NO_UNSIGNED_WRAP = 8192
};
typedef struct hdi_spirv_member {
    uint32_t flags, offset, matrix_stride; /* HDI_SPIRV_NONE: not decorated so */
} hdi_spirv_member;
/* The decorations of one id that have a value; HDI_SPIRV_NONE where one is absent. */
typedef struct hdi_spirv_decor {
    uint32_t set, binding, builtin, spec_id, array_stride, rounding;
    hdi_spirv_member *members; /* of a struct; NULL: none is decorated */
} hdi_spirv_decor;

enum hdi_spirv_narrow { HDI_SPIRV_INT8 = 1, HDI_SPIRV_INT16 = 2, HDI_SPIRV_FLOAT16 = 4 };
/* `kind`: 'f' float, 'i' int, 'b' bool, each scalar or vector; 'm' matrix, 'a' array, 'r' run-time array, 's' struct,
 * 'p' pointer, 'v' void, 'n' function, 'c' cooperative matrix; 'h' bf16, which only elements of such matrices are. */
typedef struct hdi_spirv_type {
    char     kind;
    bool     is_signed, has_run_time_array, has_bool, has_cooperative, laid_out;
    bool     read_only; /* a struct of which no member is writable */
    uint8_t  depth;
    uint8_t  narrow;  /* HDI_SPIRV_INT8 | ...: kinds of narrow numbers in it */
    uint32_t width;   /* bits of a scalar, and of a vector's component */
    uint32_t count;   /* components (1 for a scalar), columns, elements (specialised), members, parameters */
    uint32_t element; /* def: component, column, element, pointee, result; 0 for a scalar */
    uint32_t storage; /* of a pointer */
    uint32_t alike;   /* def of the first type that is the same apart from decorations */
    uint64_t bytes;   /* by offsets and strides, up to the last byte; 0 where it is not laid out */
    uint32_t align;   /* of its widest scalar, in bytes */
    uint64_t plain_bytes, plain_align; /* by the rules of std430: what shared memory counts */
} hdi_spirv_type;

/* A constant, specialised. `known`: a scalar whose bits are known. Floats keep their own bits. */
typedef struct hdi_spirv_value {
    uint64_t bits;
    bool     known, spec;
} hdi_spirv_value;

typedef struct hdi_spirv_function {
    uint32_t def, inst_first, inst_end;    /* OpFunction .. OpFunctionEnd, both included */
    uint32_t block_first, block_count;     /* the first one is the entry */
    uint32_t parameter_first;              /* def of the first; they follow each other */
    uint32_t parameter_count;
} hdi_spirv_function;

typedef struct hdi_spirv_block {
    uint32_t function;
    uint32_t inst_first, inst_end;  /* OpLabel .. terminator, both included */
    uint32_t merge_inst;            /* OpSelectionMerge or OpLoopMerge before the terminator; 0: none */
    uint32_t merge, continue_to;    /* blocks named there; HDI_SPIRV_NONE */
    /* the one block that it leads to, as variant.c found; HDI_SPIRV_NONE: by its branch */
    uint32_t only;
    uint32_t construct;             /* header of the innermost construct around it; HDI_SPIRV_NONE: none */
    uint32_t nest;                  /* how many constructs that is */
    /* of the first block of a switch's case: the case that it goes on to, or comes from */
    uint32_t falls_into, falls_from;
} hdi_spirv_block;

/* Dominators of all functions, for each block. */
typedef struct hdi_spirv_tree {
    uint32_t *parent; /* immediate dominator; itself for an entry; HDI_SPIRV_NONE: never reached */
    uint32_t *depth;  /* below the entry */
    uint32_t *jump;   /* an ancestor further up, so that a walk up takes O(log n) steps */
    uint32_t *order;  /* blocks function by function, each after all that lead to it but for its own loop's end */
    uint32_t *place;  /* in `order`; HDI_SPIRV_NONE: never reached */
} hdi_spirv_tree;

typedef struct hdi_spirv_module {
    hdi_arena           arena;  /* of everything here */
    hd_error           *error;  /* NULL is fine */
    hd_status           status; /* the first failure */
    const uint32_t     *words;
    uint32_t            word_count;
    uint32_t            version, bound;
    uint32_t           *insts, inst_count;     /* first word of each instruction */
    uint32_t            front_count;           /* of them, those in front of the functions */
    uint32_t           *def_of_id;             /* `bound` of them */
    hdi_spirv_def      *defs;      uint32_t def_count;
    hdi_spirv_decor    *decors;    uint32_t decor_count;
    hdi_spirv_type     *types;     uint32_t type_count;  /* [0]: no type at all */
    hdi_spirv_value    *values;    uint32_t value_count; /* [0]: not known */
    hdi_spirv_function *functions; uint32_t function_count;
    hdi_spirv_block    *blocks;    uint32_t block_count;
    hdi_spirv_tree      tree;      /* by the branches that there are */
    hdi_spirv_tree      structure; /* and as if each header led to its merge and continue blocks */
    uint32_t            entries[HDI_SPIRV_MAX_ENTRIES], entry_count; /* OpEntryPoint instructions */
    uint8_t             capabilities[1024]; /* a bit for each number below 8192 */
    uint32_t            extensions;         /* a bit for each one in check.c's list */
    bool                no_contraction;     /* some instruction is decorated so */
    uint32_t            glsl_set;           /* def of the import of GLSL.std.450, or 0 */
    const hdi_spirv_input *input;           /* borrowed while the module is read */
} hdi_spirv_module;

/* Reads and checks a whole module. On success every fact below can be relied on: ids are defined, of the right kind and
 * type, functions are structured. A module that was checked before is borrowed, and not copied.
 * hdi_spirv_module_free in any case. Statuses: MODULE, LIMIT, OUT_OF_HOST_MEMORY. */
hd_status hdi_spirv_module_read(const hd_allocator *allocator, const hdi_spirv_input *input,
                                hdi_spirv_module *out_module, hd_error *error);
void hdi_spirv_module_free(hdi_spirv_module *module);

/* ---- looking around; all take any number and answer "none" for what is not there ---- */
static inline const uint32_t *hdi_spirv_words(const hdi_spirv_module *m, uint32_t inst) {
    return m->words + m->insts[inst];
}
static inline uint32_t hdi_spirv_length(const hdi_spirv_module *m, uint32_t inst) {
    return hdi_spirv_words(m, inst)[0] >> 16;
}
static inline uint32_t hdi_spirv_opcode(const hdi_spirv_module *m, uint32_t inst) {
    return hdi_spirv_words(m, inst)[0] & 0xFFFF;
}
static inline uint32_t hdi_spirv_find(const hdi_spirv_module *m, uint32_t id) {
    return id < m->bound ? m->def_of_id[id] : 0;
}
static inline uint32_t hdi_spirv_def_opcode(const hdi_spirv_module *m, uint32_t def) {
    return def ? hdi_spirv_opcode(m, m->defs[def].inst) : (uint32_t)SpvOpNop;
}
static inline const uint32_t *hdi_spirv_def_words(const hdi_spirv_module *m, uint32_t def) {
    return hdi_spirv_words(m, m->defs[def].inst);
}
static inline const hdi_spirv_decor *hdi_spirv_decor_of(const hdi_spirv_module *m, uint32_t def) {
    return &m->decors[m->defs[def].decor];
}
static inline bool hdi_spirv_is_type(uint32_t opcode) {
    return (opcode >= SpvOpTypeVoid && opcode <= SpvOpTypeFunction) || opcode == HDI_SPIRV_TYPE_COOPERATIVE_MATRIX;
}
static inline bool hdi_spirv_is_constant(uint32_t opcode) {
    return opcode >= SpvOpConstantTrue && opcode <= SpvOpSpecConstantOp;
}
static inline bool hdi_spirv_ends_block(uint32_t opcode) {
    return opcode >= SpvOpBranch && opcode <= SpvOpUnreachable && opcode != SpvOpKill;
}
static inline bool hdi_spirv_is_group(uint32_t opcode) {
    return opcode >= SpvOpGroupNonUniformElect && opcode <= SpvOpGroupNonUniformQuadSwap;
}
static inline bool hdi_spirv_is_atomic(uint32_t opcode) {
    return (opcode >= SpvOpAtomicLoad && opcode <= SpvOpAtomicXor) || opcode == SpvOpAtomicFAddEXT;
}
/* Of a pointer: is it made of the one that is its first operand? */
static inline bool hdi_spirv_is_chain(uint32_t opcode) {
    return opcode == SpvOpAccessChain || opcode == SpvOpInBoundsAccessChain || opcode == SpvOpCopyObject;
}
/* Does the instruction define something that others calculate with? */
static inline bool hdi_spirv_is_value(uint32_t opcode) {
    const hdi_spirv_op *row = hdi_spirv_op_row(opcode);
    return row && row->operands[0] == 't' && opcode != SpvOpFunction;
}
/* The facts of a type (def of the type), and of a value's type (def of the value). */
static inline const hdi_spirv_type *hdi_spirv_type_at(const hdi_spirv_module *m, uint32_t type) {
    return &m->types[hdi_spirv_is_type(hdi_spirv_def_opcode(m, type)) ? m->defs[type].detail : 0];
}
static inline const hdi_spirv_type *hdi_spirv_type_of(const hdi_spirv_module *m, uint32_t def) {
    return hdi_spirv_type_at(m, m->defs[def].type);
}
static inline const hdi_spirv_value *hdi_spirv_value_of(const hdi_spirv_module *m, uint32_t def) {
    return &m->values[hdi_spirv_is_constant(hdi_spirv_def_opcode(m, def)) ? m->defs[def].detail : 0];
}
static inline bool hdi_spirv_has(const hdi_spirv_module *m, uint32_t capability) {
    return capability < 8192 && (m->capabilities[capability / 8] >> (capability % 8) & 1);
}
/* A scalar or vector; and of those a vector. */
static inline bool hdi_spirv_is_plain(const hdi_spirv_type *type) {
    return type->kind == 'f' || type->kind == 'i' || type->kind == 'b';
}
static inline bool hdi_spirv_is_vector(const hdi_spirv_type *type) {
    return type->count > 1 && hdi_spirv_is_plain(type);
}
/* Does it hold 8- or 16-bit numbers that the module may only store and convert, but not calculate with? */
static inline bool hdi_spirv_is_storage_only(const hdi_spirv_module *m, const hdi_spirv_type *type) {
    return ((type->narrow & HDI_SPIRV_INT8) && !hdi_spirv_has(m, SpvCapabilityInt8)) ||
           ((type->narrow & HDI_SPIRV_INT16) && !hdi_spirv_has(m, SpvCapabilityInt16)) ||
           ((type->narrow & HDI_SPIRV_FLOAT16) && !hdi_spirv_has(m, SpvCapabilityFloat16));
}
/* The variable or parameter that a pointer leads into, through any access chains. */
static inline uint32_t hdi_spirv_root(const hdi_spirv_module *m, uint32_t pointer) { return m->defs[pointer].detail; }
/* The index of the function that a call leads to; that of an entry point. */
/* An instruction of cooperative matrices alone? */
static inline bool hdi_spirv_is_matrix(uint32_t opcode) {
    return (opcode >= HDI_SPIRV_COOPERATIVE_MATRIX_LOAD && opcode <= HDI_SPIRV_COOPERATIVE_MATRIX_LENGTH) ||
           opcode == HDI_SPIRV_COOPERATIVE_MATRIX_REDUCE;
}
static inline uint32_t hdi_spirv_called(const hdi_spirv_module *m, uint32_t call) {
    return m->defs[hdi_spirv_find(m, hdi_spirv_words(m, call)[3])].detail;
}
static inline uint32_t hdi_spirv_entry_function(const hdi_spirv_module *m, uint32_t entry) {
    return m->defs[hdi_spirv_find(m, hdi_spirv_words(m, entry)[2])].detail;
}
/* Does block `a` dominate block `b`? O(log n). */
bool hdi_spirv_dominates(const hdi_spirv_tree *tree, uint32_t a, uint32_t b);
/* Target number `n` of the block's branch; HDI_SPIRV_NONE: it has no more, or variant.c left it out. */
uint32_t hdi_spirv_target(const hdi_spirv_module *m, uint32_t block, uint32_t n);
/* Is it GLSL.std.450's Modf or Frexp, which write through their second operand? */
static inline bool hdi_spirv_glsl_writes(const hdi_spirv_module *m, const uint32_t *words) {
    return (words[0] & 0xFFFF) == SpvOpExtInst && hdi_spirv_find(m, words[3]) == m->glsl_set &&
           (words[4] == 35 || words[4] == 51);
}
/* A scalar constant's value; false where it is not known. */
bool hdi_spirv_known(const hdi_spirv_module *m, uint32_t def, uint64_t *out_value);

/* ---- operands, one by one, as op_table.inc describes them ---- */
typedef struct hdi_spirv_operands {
    const uint32_t *words;
    char            letter;   /* of the operand that was met */
    uint32_t        at, word; /* where in the instruction it begins, and its first word */
    uint32_t        then, end; /* where the next one begins, and where the instruction ends */
    const char     *next, *loop;
    bool            bad; /* the words do not fit the opcode */
} hdi_spirv_operands;
hdi_spirv_operands hdi_spirv_operands_of(const hdi_spirv_module *m, uint32_t inst);
/* Goes on to the next operand; false at the end. */
bool hdi_spirv_next_of_any(hdi_spirv_operands *operands);
static inline bool hdi_spirv_next(hdi_spirv_operands *o) {
    const uint32_t one_word = 1u << ('t' - 'a') | 1u << ('r' - 'a') | 1u << ('i' - 'a') | 1u << ('a' - 'a') |
                              1u << ('c' - 'a') | 1u << ('n' - 'a');
    const char letter = *o->next;
    if (letter < 'a' || !(one_word >> (letter - 'a') & 1) || o->then >= o->end || o->bad)
        return hdi_spirv_next_of_any(o);
    o->next++;
    o->letter = letter;
    o->at = o->then++;
    o->word = o->words[o->at];
    return true;
}
/* The flag of a decoration that has no value; 0 for any other. */
uint32_t hdi_spirv_flag_of(uint32_t decoration);

/* ---- the steps; false: refused, m->status says how ---- */
bool hdi_spirv_read_checked(hdi_spirv_module *m); /* all steps, of a module that was checked before (variant.c) */
bool hdi_spirv_header(hdi_spirv_module *m); /* read's parts: the words themselves */
bool hdi_spirv_define(hdi_spirv_module *m, uint32_t inst_first, uint32_t inst_end); /* and results, more at each call */
bool hdi_spirv_check(hdi_spirv_module *m);
/* Does nothing that is taken need the capability, nor change by it? Is the extension, a text within so many words,
 * taken? */
bool hdi_spirv_may_drop_capability(uint32_t capability);
bool hdi_spirv_takes_extension(const uint32_t *text, uint32_t words);
bool hdi_spirv_declare(hdi_spirv_module *m);
/* ids that were not defined yet when declare saw them */
bool hdi_spirv_decorate_from(hdi_spirv_module *m, uint32_t def_first);
bool hdi_spirv_blocks(hdi_spirv_module *m);
bool hdi_spirv_flow(hdi_spirv_module *m);
bool hdi_spirv_typing(hdi_spirv_module *m);
/* The type rule of one instruction, a constant expression's included. */
bool hdi_spirv_typing_rule(hdi_spirv_module *m, uint32_t inst, uint32_t opcode, uint32_t first_word);
/* The rules of instructions that go through pointers (memory.c); `*out_known` false: it is none of those. */
bool hdi_spirv_typing_memory(hdi_spirv_module *m, uint32_t inst, uint32_t def, bool *out_known);
/* Is it a scope that is taken? `execution`: the scope of a barrier, else of memory. */
bool hdi_spirv_scope_fits(const hdi_spirv_module *m, uint32_t id, bool execution);
/* May the pointer be written through? */
bool hdi_spirv_may_write(const hdi_spirv_module *m, uint32_t pointer);
/* The constant's value, in declare.c's order (constant.c). */
bool hdi_spirv_constant(hdi_spirv_module *m, uint32_t inst, uint32_t def);
/* The result of an integer or bool instruction on numbers of `width` bits; bits beyond the result's width are anything.
 * False where it is not defined, or the opcode is none of those. */
bool hdi_spirv_calculate(uint32_t opcode, uint64_t a, uint64_t b, uint32_t width, uint64_t *out);
/* Likewise of instructions of GLSL.std.450 that choose among or search in integers; those of one operand have it
 * twice. */
bool hdi_spirv_calculate_glsl(uint32_t number, uint64_t a, uint64_t b, uint32_t width, uint64_t *out);
/* What OpCompositeExtract finds in a constant; 0 where that is no constant of its own. */
uint32_t hdi_spirv_constant_part(const hdi_spirv_module *m, uint32_t def, const uint32_t *path, uint32_t count);
/* What the entry point called `name` needs (reflect.c): the second half of hdi_spirv_inspect. Also KERNEL_NOT_FOUND. */
hd_status hdi_spirv_reflect(hdi_spirv_module *m, const char *name, hdi_spirv_info *out_info, uint32_t *out_entry_inst);
/* Refuse: "SPIR-V word 12, OpLoad: ..." with MODULE, LIMIT, UNSUPPORTED, or OUT_OF_HOST_MEMORY. Always false. */
bool hdi_spirv_refuse(hdi_spirv_module *m, hd_status status, uint32_t inst, const char *format, ...) HDI_PRINTF(4, 5);
#define hdi_spirv_bad(m, inst, ...) hdi_spirv_refuse(m, HD_STATUS_MODULE, inst, __VA_ARGS__)
#define hdi_spirv_beyond(m, inst, ...) hdi_spirv_refuse(m, HD_STATUS_LIMIT, inst, __VA_ARGS__)
#define hdi_spirv_unsupported(m, inst, ...) hdi_spirv_refuse(m, HD_STATUS_UNSUPPORTED, inst, \
                                                             __VA_ARGS__) /* by a printer */
bool hdi_spirv_no_memory(hdi_spirv_module *m);
/* Does a text of the module begin with `count` bytes of another? Is it that text, up to the ending zero? */
bool hdi_spirv_begins(const uint32_t *words, const char *text, size_t count);
static inline bool hdi_spirv_text_is(const uint32_t *words, const char *text) {
    return hdi_spirv_begins(words, text, strlen(text) + 1);
}
/* A text of the module with everything unprintable replaced, for messages; into `out` of `room` bytes. */
const char *hdi_spirv_quote(const uint32_t *text, char *out, size_t room);


/* ---- stated.c: types and constants of a module that is being written, each stated once ---- */
typedef struct hdi_spirv_stated {
    hdi_names ids;  /* by opcode, type and operands; hdi_names_free ends them */
    uint32_t *key;  /* where the next one's go, in an arena, */
    size_t    room; /* and how many words there are */
} hdi_spirv_stated;
/* The id by which it is stated already, or else `id` (not 0), by which it is from now on; 0: no memory. `type`: of a
 * constant; else 0. */
uint32_t hdi_spirv_state(hdi_arena *arena, hdi_spirv_stated *stated, uint32_t opcode, uint32_t type,
                         const uint32_t *operands, uint32_t count, uint32_t id);
#endif
