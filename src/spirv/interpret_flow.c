/* interpret_flow.c: one invocation from instruction to instruction. A value has one place, as no function can call
 * itself. Relies on flow.c: every value was made before it is used. */
#include "spirv/interpret.h"

/* ---- branches ---- */

/* The values that come with the way from `from`: all are read before one is written. */
static void take_phis(hdi_interpreter *x, uint32_t from, uint32_t to) {
    const hdi_spirv_module *m = x->m;
    const hdi_spirv_block *block = &m->blocks[to];
    uint64_t *room = x->phis;
    for (int writing = 0; writing < 2; writing++, room = x->phis)
        for (uint32_t i = block->inst_first + 1; i < block->inst_end; i++) {
            const uint32_t *words = hdi_spirv_words(m, i), opcode = words[0] & 0xFFFF;
            if (opcode != SpvOpPhi) {
                if (opcode == SpvOpLine || opcode == SpvOpNoLine || opcode == SpvOpNop) continue;
                break;
            }
            const uint64_t cells = hdi_interpret_cells_of(x->machine, hdi_spirv_find(m, words[1]));
            uint32_t way = 3;
            while (way + 2 < words[0] >> 16 && m->defs[hdi_spirv_find(m, words[way + 1])].detail != from) way += 2;
            if (writing) memcpy(hdi_interpret_id(x, words[2]), room, cells * sizeof *room);
            else memcpy(room, hdi_interpret_id(x, words[way]), cells * sizeof *room);
            room += cells;
        }
}

/* Is the block within the construct of that header? */
static bool is_inside(const hdi_spirv_module *m, uint32_t block, uint32_t header) {
    while (block != header && block != HDI_SPIRV_NONE) block = m->blocks[block].construct;
    return block == header;
}

static void go_to(hdi_interpreter *x, uint32_t to) {
    hdi_invocation *self = x->self;
    take_phis(x, self->block, to);
    const uint32_t loop = x->machine->loop[to];
    if (loop != HDI_SPIRV_NONE) self->rounds[loop] = is_inside(x->m, self->block, to) ? self->rounds[loop] + 1 : 0;
    self->block = to;
    self->inst = x->m->blocks[to].inst_first;
}

static void choose_case(hdi_interpreter *x, const uint32_t *words) {
    const uint32_t label = words[0] >> 16 > 2 ? words[2] : 0, width = hdi_interpret_type(x, words[1])->width;
    const uint32_t number_words = width > 32 ? 2 : 1;
    const uint64_t value = *hdi_interpret_id(x, words[1]);
    uint32_t to = label;
    for (uint32_t at = 3; at + number_words < words[0] >> 16; at += number_words + 1) {
        const uint64_t number = words[at] | (number_words == 2 ? (uint64_t)words[at + 1] << 32 : 0);
        if (((number ^ value) & hdi_number_mask(width)) != 0) continue;
        to = words[at + number_words];
        break;
    }
    go_to(x, x->m->defs[hdi_spirv_find(x->m, to)].detail);
}

/* ---- calls ---- */

void hdi_interpret_enter(hdi_interpreter *x, hdi_invocation *invocation) {
    invocation->block = x->m->functions[x->machine->entry_function].block_first;
    invocation->inst = x->m->blocks[invocation->block].inst_first;
}

/* Arguments are copied to the parameters. */
static void call(hdi_interpreter *x, const uint32_t *words) {
    const hdi_spirv_function *function = &x->m->functions[hdi_spirv_called(x->m, x->self->inst)];
    for (uint32_t i = 0; i < function->parameter_count; i++) {
        const uint32_t parameter = function->parameter_first + i;
        const uint64_t cells = hdi_interpret_cells_of(x->machine, x->m->defs[parameter].type);
        memcpy(hdi_interpret_value(x, parameter), hdi_interpret_id(x, words[4 + i]), cells * sizeof(uint64_t));
    }
    x->self->calls[x->self->depth++] = x->self->inst; /* reflect.c bounds how deep calls go */
    x->self->block = function->block_first;
    x->self->inst = x->m->blocks[function->block_first].inst_first;
}

static void end_function(hdi_interpreter *x, uint32_t value_id) {
    hdi_invocation *self = x->self;
    if (self->depth == 0) {
        self->state = HDI_INVOCATION_DONE;
        return;
    }
    const uint32_t inst = self->calls[--self->depth], def = hdi_spirv_find(x->m, hdi_spirv_words(x->m, inst)[2]);
    if (value_id)
        memcpy(hdi_interpret_value(x, def), hdi_interpret_id(x, value_id),
               hdi_interpret_cells_of(x->machine, x->m->defs[def].type) * sizeof(uint64_t));
    self->block = x->m->defs[def].block;
    self->inst = inst + 1;
}

/* ---- one instruction ---- */

/* Branches, calls and what stops an invocation; false: it is none of those. */
static bool flow(hdi_interpreter *x, const uint32_t *words, uint32_t opcode) {
    const hdi_spirv_module *m = x->m;
    switch (opcode) {
    case SpvOpBranch: go_to(x, m->defs[hdi_spirv_find(m, words[1])].detail); return true;
    case SpvOpBranchConditional:
        go_to(x, m->defs[hdi_spirv_find(m, words[*hdi_interpret_id(x, words[1]) ? 2 : 3])].detail);
        return true;
    case SpvOpSwitch: choose_case(x, words); return true;
    case SpvOpFunctionCall: call(x, words); return true;
    case SpvOpReturn: case SpvOpUnreachable: end_function(x, 0); return true;
    case SpvOpReturnValue: end_function(x, words[1]); return true;
    case SpvOpControlBarrier:
        x->self->state = hdi_interpret_is_meeting(x, x->self->inst) ? HDI_INVOCATION_MEETS : HDI_INVOCATION_WAITS;
        return true;
    default:
        if (!hdi_interpret_is_meeting(x, x->self->inst)) return false;
        x->self->state = HDI_INVOCATION_MEETS;
        return true;
    }
}

static void calculate(hdi_interpreter *x, uint32_t inst, const uint32_t *words, uint32_t opcode) {
    switch (opcode) {
    case SpvOpLabel:
    case SpvOpLine: case SpvOpNoLine: case SpvOpNop: case SpvOpPhi: case SpvOpSelectionMerge: case SpvOpLoopMerge:
    case SpvOpMemoryBarrier: break;
    case SpvOpLoad: case SpvOpStore: case SpvOpCopyMemory: case SpvOpAccessChain: case SpvOpInBoundsAccessChain:
    case SpvOpArrayLength: case SpvOpVariable: hdi_interpret_memory(x, inst); break;
    default:
        if (hdi_spirv_is_atomic(opcode)) hdi_interpret_memory(x, inst);
        else if (hdi_spirv_is_value(opcode) && hdi_spirv_type_at(x->m, hdi_spirv_find(x->m, words[1]))->kind != 'v')
            hdi_interpret_operation(x, opcode, hdi_spirv_find(x->m, words[1]), words + 3, (words[0] >> 16) - 3,
                                    hdi_interpret_id(x, words[2]));
        break;
    }
}

void hdi_interpret_step(hdi_interpreter *x) {
    hdi_invocation *self = x->self;
    const uint32_t *words = hdi_spirv_words(x->m, self->inst), opcode = words[0] & 0xFFFF;
    if (flow(x, words, opcode)) return;
    calculate(x, self->inst, words, opcode);
    self->inst++;
}
