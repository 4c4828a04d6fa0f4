/* blocks.c: the words between OpFunction and OpFunctionEnd become functions and blocks: parameters, then blocks that
 * begin with a label and end with exactly one terminator; phis and variables first, a merge right before the
 * terminator; branches stay in their function. Relies on read.c and declare.c. */
#include "spirv/module.h"

static bool is_merge(uint32_t opcode) { return opcode == SpvOpSelectionMerge || opcode == SpvOpLoopMerge; }

uint32_t hdi_spirv_target(const hdi_spirv_module *m, uint32_t block, uint32_t n) {
    uint32_t inst = m->blocks[block].inst_end, at;
    switch (hdi_spirv_opcode(m, inst)) {
    case SpvOpBranch: at = n == 0 ? 1 : HDI_SPIRV_NONE; break;
    case SpvOpBranchConditional: at = n < 2 ? n + 2 : HDI_SPIRV_NONE; break;
    case SpvOpSwitch: at = n < HDI_SPIRV_NONE / 4 ? 2 + 2 * n : HDI_SPIRV_NONE; break;
    default: return HDI_SPIRV_NONE;
    }
    if (at >= hdi_spirv_length(m, inst)) return HDI_SPIRV_NONE;
    return m->defs[hdi_spirv_find(m, hdi_spirv_words(m, inst)[at])].detail;
}

static bool allocate(hdi_spirv_module *m) {
    size_t functions = 0, blocks = 0;
    for (uint32_t i = m->front_count; i < m->inst_count; i++) {
        functions += hdi_spirv_opcode(m, i) == SpvOpFunction;
        blocks += hdi_spirv_opcode(m, i) == SpvOpLabel;
    }
    m->functions = hdi_arena_alloc(&m->arena, functions * sizeof *m->functions);
    m->blocks = hdi_arena_alloc(&m->arena, blocks * sizeof *m->blocks);
    return (m->functions && m->blocks) || hdi_spirv_no_memory(m);
}

static bool begin_function(hdi_spirv_module *m, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t def = hdi_spirv_find(m, words[2]);
    const hdi_spirv_type *type = hdi_spirv_type_at(m, hdi_spirv_find(m, words[4]));
    if (type->kind != 'n' || type->element != m->defs[def].type)
        return hdi_spirv_bad(m, inst, "its type is not that of a function with its result");
    if (words[3] > 15) return hdi_spirv_bad(m, inst, "function control 0x%x", words[3]);
    m->defs[def].detail = m->function_count;
    m->functions[m->function_count++] = (hdi_spirv_function){
        .def = def, .inst_first = inst, .block_first = m->block_count, .parameter_first = def + 1
    };
    return true;
}

static bool add_parameter(hdi_spirv_module *m, uint32_t inst, hdi_spirv_function *function) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    const uint32_t *type = hdi_spirv_def_words(m, hdi_spirv_find(m, hdi_spirv_words(m, function->inst_first)[4]));
    uint32_t index = function->parameter_count++, def = hdi_spirv_find(m, words[2]);
    m->defs[def].detail = def; /* its own root, where it is a pointer */
    if (function->block_count) return hdi_spirv_bad(m, inst, "parameters stand before the first block");
    if (index >= (type[0] >> 16) - 3 || type[3 + index] != words[1])
        return hdi_spirv_bad(m, inst, "parameter %u is not the one of the function's type", index);
    const hdi_spirv_type *pointer = hdi_spirv_type_of(m, def);
    if (pointer->kind == 'p' && pointer->storage != SpvStorageClassFunction &&
        pointer->storage != SpvStorageClassPrivate && pointer->storage != SpvStorageClassWorkgroup)
        return hdi_spirv_bad(m, inst, "a buffer is passed to a function; have the compiler inline it (glslc -O)");
    return true;
}

static bool begin_block(hdi_spirv_module *m, uint32_t inst, hdi_spirv_function *function) {
    uint32_t def = hdi_spirv_find(m, hdi_spirv_words(m, inst)[1]);
    m->defs[def].detail = m->block_count;
    m->blocks[m->block_count++] = (hdi_spirv_block){ .function = m->function_count - 1, .inst_first = inst,
                                                     .inst_end = HDI_SPIRV_NONE,
                                                     .merge = HDI_SPIRV_NONE, .continue_to = HDI_SPIRV_NONE,
                                                     .only = HDI_SPIRV_NONE, .construct = HDI_SPIRV_NONE,
                                                     .falls_into = HDI_SPIRV_NONE, .falls_from = HDI_SPIRV_NONE };
    function->block_count++;
    return true;
}

/* A loop control's literals, one for each of its bits that wants one. */
static bool loop_control_fits(const uint32_t *words) {
    uint32_t bits = words[3], wanted = 0;
    for (uint32_t bit = 8; bit <= 256; bit *= 2) wanted += (bits & bit) != 0;
    return bits < 512 && (bits & 3) != 3 && (words[0] >> 16) == 4 + wanted;
}

/* One instruction of a block. `*busy` once something other than phis and variables was met. */
static bool add_to_block(hdi_spirv_module *m, uint32_t inst, hdi_spirv_function *function, hdi_spirv_block *block,
                         bool *busy) {
    uint32_t opcode = hdi_spirv_opcode(m, inst);
    const uint32_t *words = hdi_spirv_words(m, inst);
    bool entry = function->block_count == 1;
    if (block->merge_inst && !hdi_spirv_ends_block(opcode))
        return hdi_spirv_bad(m, inst, "a merge is followed by its branch");
    if (opcode == SpvOpPhi && (*busy || entry))
        return hdi_spirv_bad(m, inst, "a phi stands first in its block, and not in the first block");
    if (opcode == SpvOpVariable && (*busy || !entry))
        return hdi_spirv_bad(m, inst, "variables stand first in the first block");
    bool mute = opcode == SpvOpPhi || opcode == SpvOpVariable || opcode == SpvOpLine || opcode == SpvOpNoLine ||
                opcode == SpvOpNop || (opcode == SpvOpExtInst && hdi_spirv_find(m, words[3]) != m->glsl_set);
    *busy |= !mute;
    if (is_merge(opcode)) {
        block->merge_inst = inst;
        bool fits = opcode == SpvOpLoopMerge ? loop_control_fits(words) : words[2] < 3;
        if (!fits) return hdi_spirv_bad(m, inst, "its control word is not of the format");
    }
    if (!hdi_spirv_ends_block(opcode)) return true;
    if (block->merge_inst) {
        bool loop = hdi_spirv_opcode(m, block->merge_inst) == SpvOpLoopMerge;
        if (opcode != SpvOpBranchConditional && opcode != (loop ? SpvOpBranch : SpvOpSwitch))
            return hdi_spirv_bad(m, inst, "it does not go with the merge before it");
    } else if (opcode == SpvOpSwitch) {
        return hdi_spirv_bad(m, inst, "a switch needs a merge before it");
    }
    if (opcode == SpvOpBranchConditional && m->version >= 0x10600 && words[2] == words[3])
        return hdi_spirv_bad(m, inst, "its two labels are the same, which version 1.6 forbids");
    if (opcode == SpvOpBranchConditional && words[0] >> 16 == 5)
        return hdi_spirv_bad(m, inst, "one branch weight instead of two");
    block->inst_end = inst;
    return true;
}

/* The labels of merges and branches, now that every block is known. */
static bool resolve(hdi_spirv_module *m) {
    for (uint32_t b = 0; b < m->block_count; b++) {
        hdi_spirv_block *block = &m->blocks[b];
        const hdi_spirv_function *function = &m->functions[block->function];
        uint32_t last = block->inst_end;
        if (block->merge_inst) {
            const uint32_t *words = hdi_spirv_words(m, block->merge_inst);
            block->merge = m->defs[hdi_spirv_find(m, words[1])].detail;
            if (hdi_spirv_opcode(m, block->merge_inst) == SpvOpLoopMerge)
                block->continue_to = m->defs[hdi_spirv_find(m, words[2])].detail;
            uint32_t other = block->continue_to != HDI_SPIRV_NONE ? block->continue_to : block->merge;
            if (m->blocks[block->merge].function != block->function || m->blocks[other].function != block->function)
                return hdi_spirv_bad(m, block->merge_inst, "it names a block of another function");
            if (block->merge == b || block->merge == block->continue_to || block->merge == function->block_first)
                return hdi_spirv_bad(m, block->merge_inst, "its blocks are not apart from each other");
        }
        for (uint32_t n = 0, to; (to = hdi_spirv_target(m, b, n)) != HDI_SPIRV_NONE; n++)
            if (m->blocks[to].function != block->function || to == function->block_first)
                return hdi_spirv_bad(m, last, "it branches to another function, or to the first block");
    }
    return true;
}

bool hdi_spirv_blocks(hdi_spirv_module *m) {
    if (!allocate(m)) return false;
    hdi_spirv_function *function = NULL;
    hdi_spirv_block *block = NULL;
    bool busy = false;
    for (uint32_t i = 0; !m->input->checked && i < m->front_count; i++)
        if (hdi_spirv_op_row(hdi_spirv_opcode(m, i))->section == 'C')
            return hdi_spirv_bad(m, i, "it belongs in a function");
    for (uint32_t i = m->front_count; i < m->inst_count; i++) {
        uint32_t opcode = hdi_spirv_opcode(m, i);
        const hdi_spirv_op *row = hdi_spirv_op_row(opcode);
        bool silent = opcode == SpvOpLine || opcode == SpvOpNoLine || opcode == SpvOpNop;
        bool fine = true;
        if (opcode == SpvOpFunction) {
            if (function) return hdi_spirv_bad(m, i, "the function before it has no end");
            fine = begin_function(m, i);
            function = &m->functions[m->function_count - 1];
        } else if (block) {
            if (opcode == SpvOpLabel || opcode == SpvOpFunctionEnd || opcode == SpvOpFunctionParameter)
                return hdi_spirv_bad(m, i, "the block before it has no terminator");
            fine = add_to_block(m, i, function, block, &busy);
            if (row->operands[0] == 't')
                m->defs[hdi_spirv_find(m, hdi_spirv_words(m, i)[2])].block = m->block_count - 1;
            if (hdi_spirv_ends_block(opcode)) block = NULL;
        } else if (!function) {
            fine = silent || hdi_spirv_bad(m, i, "it belongs in a function");
        } else if (opcode == SpvOpLabel) {
            fine = begin_block(m, i, function);
            block = &m->blocks[m->block_count - 1];
            busy = false;
        } else if (opcode == SpvOpFunctionParameter) {
            fine = add_parameter(m, i, function);
        } else if (opcode == SpvOpFunctionEnd) {
            const hdi_spirv_type *type =
                hdi_spirv_type_at(m, hdi_spirv_find(m, hdi_spirv_words(m, function->inst_first)[4]));
            if (function->block_count == 0)
                return hdi_spirv_bad(m, i, "the function has no body: imported functions are not taken");
            if (function->parameter_count != type->count)
                return hdi_spirv_bad(m, i, "the function has %u parameters, its type %u", function->parameter_count,
                                     type->count);
            function->inst_end = i;
            function = NULL;
        } else if (!silent) {
            return hdi_spirv_bad(m, i, "it stands outside of a block");
        }
        if (!fine) return false;
    }
    if (function || block) return hdi_spirv_bad(m, HDI_SPIRV_NONE, "its last function has no end");
    return resolve(m);
}
