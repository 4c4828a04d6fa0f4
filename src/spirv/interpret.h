/* interpret.h: a kernel run instruction by instruction: slow, and right. Internal to src/spirv/.
 *   interpret.c         making it ready, and running a workgroup
 *   interpret_flow.c    one invocation from instruction to instruction: branches, phis, calls
 *   interpret_ops.c     instructions on values; interpret_numbers.c: numbers; interpret_glsl.c: those of GLSL.std.450
 *   interpret_memory.c  pointers, loads, stores, atomics
 *   interpret_groups.c  what the lanes of a subgroup do together
 * A value is a row of *cells*, one for each number in it, with its bits in the low end: bools are 0 or 1, narrow
 * numbers have zeros above. A pointer is four cells. Memory is cells too, but for buffers and push constants, which are
 * bytes. */
#ifndef HDI_SPIRV_INTERPRET_H
#define HDI_SPIRV_INTERPRET_H

#include "spirv/module.h"

/* A kernel made ready: only read while it runs, by any number of threads. */
struct hdi_spirv_machine {
    hdi_spirv_module m;
    hdi_spirv_info   info;
    uint32_t  entry_function;
    uint32_t  invocations, lanes;  /* of a workgroup, of a subgroup */
    uint32_t  slice;               /* steps of each between two looks at the clock */
    uint64_t *type_cells;          /* by type number */
    /* by def: the first of its cells, in an invocation's or, with CONSTANT, in `constants` */
    uint32_t *at;
    uint32_t *memory;              /* by def of a variable: the first cell of what it holds */
    uint32_t *loop;                /* by block: number of the loop that it heads; HDI_SPIRV_NONE: it heads none */
    uint64_t *constants;
    uint32_t  constant_cells, own_cells, shared_cells, phi_cells, loops;
};
#define HDI_INTERPRET_CONSTANT (1u << 31)

/* The cells of a pointer: the variable's def; how far into it, in bytes or cells; bytes from one component of what is
 * there to the next (0: as wide as they are); the stride of the matrix that it leads to, with BY_ROWS. */
enum { HDI_POINTER_ROOT, HDI_POINTER_OFFSET, HDI_POINTER_STEP, HDI_POINTER_MATRIX, HDI_POINTER_CELLS };
#define HDI_POINTER_BY_ROWS (UINT64_C(1) << 32)

typedef enum hdi_invocation_state {
    HDI_INVOCATION_RUNS, HDI_INVOCATION_MEETS, HDI_INVOCATION_WAITS, HDI_INVOCATION_DONE
} hdi_invocation_state;

/* One invocation. It meets the others of its subgroup at an instruction of theirs, and waits for all at a barrier. */
typedef struct hdi_invocation {
    uint64_t *cells;
    uint32_t *rounds;  /* by loop: since it was entered */
    hdi_invocation_state state;
    uint32_t  inst;    /* where it is */
    uint32_t  block;
    uint32_t  depth, calls[HDI_SPIRV_MAX_CALLS + 1]; /* calls that it is within */
} hdi_invocation;

/* A workgroup being run. */
typedef struct hdi_interpreter {
    const hdi_spirv_machine *machine;
    const hdi_spirv_module  *m;
    const hdi_spirv_launch  *launch;
    uint32_t        group[3];
    hdi_invocation *invocations;
    uint64_t       *shared, *phis;
    hdi_invocation *self;   /* the one that runs; NULL: constants are made */
} hdi_interpreter;

static inline uint64_t hdi_interpret_cells_of(const hdi_spirv_machine *machine, uint32_t type_def) {
    return machine->type_cells[machine->m.defs[type_def].detail];
}
/* The cells of a value, of the invocation that runs. */
static inline uint64_t *hdi_interpret_value(const hdi_interpreter *x, uint32_t def) {
    const uint32_t at = x->machine->at[def];
    if (at & HDI_INTERPRET_CONSTANT) return x->machine->constants + (at & ~HDI_INTERPRET_CONSTANT);
    return x->self->cells + at;
}
static inline uint64_t *hdi_interpret_id(const hdi_interpreter *x, uint32_t id) {
    return hdi_interpret_value(x, hdi_spirv_find(x->m, id));
}
static inline const hdi_spirv_type *hdi_interpret_type(const hdi_interpreter *x, uint32_t id) {
    return hdi_spirv_type_of(x->m, hdi_spirv_find(x->m, id));
}

/* ---- interpret_flow.c ---- */
void hdi_interpret_step(hdi_interpreter *x); /* one instruction of `self`, which runs */
/* Makes the entry point the next to run. */
void hdi_interpret_enter(hdi_interpreter *x, hdi_invocation *invocation);

/* ---- interpret_ops.c: the instruction's result, from operand words, into `out`. A constant expression's too. ---- */
void hdi_interpret_operation(hdi_interpreter *x, uint32_t opcode, uint32_t type_def, const uint32_t *words,
                             uint32_t count, uint64_t *out);
/* How many cells stand in front of part `index` of a value of the type; `*inout_type` becomes the part's. */
uint64_t hdi_interpret_part(const hdi_spirv_machine *machine, uint32_t *inout_type, uint64_t index);

/* ---- interpret_numbers.c ---- */
uint64_t hdi_number_mask(uint32_t width);
int64_t  hdi_number_signed(uint64_t bits, uint32_t width);
double   hdi_number_float(uint64_t bits, uint32_t width);
uint64_t hdi_number_bits(double value, uint32_t width); /* rounded to nearest even */
uint64_t hdi_number_from_integer(uint64_t bits, uint32_t width, bool is_signed, uint32_t to_width);
/* what does not fit becomes the nearest that does */
uint64_t hdi_number_to_integer(double value, uint32_t width, bool is_signed);

/* ---- interpret_glsl.c ---- */
void hdi_interpret_glsl(hdi_interpreter *x, uint32_t type_def, const uint32_t *words, uint32_t count, uint64_t *out);

/* ---- interpret_memory.c ---- */
void hdi_interpret_store(hdi_interpreter *x, const uint64_t *pointer, uint32_t type_def, const uint64_t *value);
void hdi_interpret_memory(hdi_interpreter *x, uint32_t inst); /* any instruction that goes through pointers */
void hdi_interpret_inputs(hdi_interpreter *x, uint32_t number); /* fills in the built-ins of invocation `number` */

/* ---- interpret_groups.c ---- */
/* Of a subgroup whose lanes all stopped: those that are furthest behind go on together; false: none meets the
 * others. */
bool hdi_interpret_meet(hdi_interpreter *x, uint32_t first, uint32_t count);
bool hdi_interpret_is_meeting(const hdi_interpreter *x, uint32_t inst);
#endif
