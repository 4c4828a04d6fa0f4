/* interpret.c: a kernel is made ready to be interpreted, and a workgroup of it is run: its invocations one after the
 * other, each one step, until all have stopped at a barrier, at something that a subgroup does together, or at the end.
 * So the lanes of a subgroup go in step, which kernels lean on that share memory within one without a barrier, and
 * those that wait for others in a loop let them come by. */
#include "spirv/interpret.h"

enum { SLICE_CELLS = 1 << 22 }; /* touched between two looks at the clock, at most */
#define MOST_CELLS (UINT64_C(1) << 27) /* of a workgroup: 1 GiB */

/* ---- room for values ---- */

static bool find_type_cells(hdi_spirv_machine *machine) {
    hdi_spirv_module *m = &machine->m;
    machine->type_cells = hdi_arena_alloc(&m->arena, m->type_count * sizeof *machine->type_cells);
    if (!machine->type_cells) return hdi_spirv_no_memory(m);
    for (uint32_t def = 1; def < m->def_count; def++) { /* parts stand in front of what is made of them */
        if (!hdi_spirv_is_type(hdi_spirv_def_opcode(m, def))) continue;
        const hdi_spirv_type *type = hdi_spirv_type_at(m, def);
        uint64_t cells = 0;
        switch (type->kind) {
        case 'f': case 'i': case 'b': cells = type->count; break;
        case 'm': case 'a': cells = type->count * hdi_interpret_cells_of(machine, type->element); break;
        case 's':
            for (uint32_t i = 0; i < type->count; i++)
                cells += hdi_interpret_cells_of(machine, hdi_spirv_find(m, hdi_spirv_def_words(m, def)[2 + i]));
            break;
        case 'p': cells = HDI_POINTER_CELLS; break;
        default: break; /* nothing, or without a size */
        }
        machine->type_cells[m->defs[def].detail] = HDI_MIN(cells, MOST_CELLS); /* of values that is refused below */
    }
    return true;
}

static bool take(hdi_spirv_machine *machine, uint32_t *inout_sum, uint64_t cells, uint32_t *out_at) {
    if (cells > MOST_CELLS - *inout_sum)
        return hdi_spirv_beyond(&machine->m, HDI_SPIRV_NONE, "it needs more than %u MiB for each invocation",
                                (unsigned)(MOST_CELLS >> 17));
    *out_at = *inout_sum;
    *inout_sum += (uint32_t)cells;
    return true;
}

/* Constants, pointers to variables and what those hold, and what instructions give. */
static bool place_values(hdi_spirv_machine *machine) {
    hdi_spirv_module *m = &machine->m;
    uint64_t largest = 16;
    for (uint32_t def = 1; def < m->def_count; def++) {
        const uint32_t opcode = hdi_spirv_def_opcode(m, def);
        if (hdi_spirv_is_type(opcode) || !(hdi_spirv_is_value(opcode) || opcode == SpvOpFunctionParameter)) continue;
        const hdi_spirv_type *type = hdi_spirv_type_of(m, def);
        const bool variable = opcode == SpvOpVariable, constant = variable || hdi_spirv_is_constant(opcode) ||
                              (opcode == SpvOpUndef && m->defs[def].block == HDI_SPIRV_NONE);
        if (type->kind == 'c' || (type->kind == 'p' && hdi_spirv_type_at(m, type->element)->has_cooperative))
            return hdi_spirv_unsupported(m, m->defs[def].inst, "the interpreter has no cooperative matrices");
        largest = HDI_MAX(largest, hdi_interpret_cells_of(machine, m->defs[def].type));
        if (!take(machine, constant ? &machine->constant_cells : &machine->own_cells,
                  hdi_interpret_cells_of(machine, m->defs[def].type), &machine->at[def]))
            return false;
        if (constant) machine->at[def] |= HDI_INTERPRET_CONSTANT;
        if (!variable || type->storage == SpvStorageClassStorageBuffer || type->storage == SpvStorageClassUniform ||
            type->storage == SpvStorageClassPushConstant)
            continue;
        if (!take(machine, type->storage == SpvStorageClassWorkgroup ? &machine->shared_cells : &machine->own_cells,
                  hdi_interpret_cells_of(machine, type->element), &machine->memory[def]))
            return false;
    }
    machine->slice = (uint32_t)HDI_MAX(SLICE_CELLS / largest / machine->invocations, 1u);
    return true;
}

/* Numbers of loops, and the most that phis or a copy of memory put aside. */
static void find_loops(hdi_spirv_machine *machine) {
    const hdi_spirv_module *m = &machine->m;
    for (uint32_t b = 0; b < m->block_count; b++)
        machine->loop[b] = m->blocks[b].continue_to != HDI_SPIRV_NONE ? machine->loops++ : HDI_SPIRV_NONE;
    uint64_t phis = 0, most = 0;
    for (uint32_t i = m->front_count; i < m->inst_count; i++) {
        const uint32_t *words = hdi_spirv_words(m, i), opcode = words[0] & 0xFFFF;
        if (opcode == SpvOpLabel) phis = 0;
        if (opcode == SpvOpPhi) phis += hdi_interpret_cells_of(machine, hdi_spirv_find(m, words[1]));
        if (opcode == SpvOpCopyMemory)
            most = HDI_MAX(most,
                           hdi_interpret_cells_of(machine, hdi_spirv_type_of(m, hdi_spirv_find(m, words[1]))->element));
        most = HDI_MAX(most, phis);
    }
    machine->phi_cells = (uint32_t)HDI_MIN(most, MOST_CELLS);
}

/* ---- constants ---- */

static void make_constant(hdi_interpreter *x, uint32_t def) {
    const hdi_spirv_module *m = x->m;
    const uint32_t *words = hdi_spirv_def_words(m, def), opcode = words[0] & 0xFFFF, length = words[0] >> 16,
                   type = m->defs[def].type;
    uint64_t value, *out = hdi_interpret_value(x, def);
    switch (opcode) {
    case SpvOpVariable: out[HDI_POINTER_ROOT] = def; break;
    case SpvOpConstantComposite: case SpvOpSpecConstantComposite:
        hdi_interpret_operation(x, SpvOpCompositeConstruct, type, words + 3, length - 3, out);
        break;
    case SpvOpSpecConstantOp:
        if (hdi_spirv_known(m, def, &value)) *out = value;
        else hdi_interpret_operation(x, words[3], type, words + 4, length - 4, out);
        break;
    case SpvOpConstantNull: case SpvOpUndef: break; /* zeros */
    default: *out = hdi_spirv_value_of(m, def)->bits; break;
    }
}

static bool make_constants(hdi_spirv_machine *machine) {
    hdi_spirv_module *m = &machine->m;
    machine->constants = hdi_arena_alloc(&m->arena, ((size_t)machine->constant_cells + 1) * sizeof *machine->constants);
    if (!machine->constants) return hdi_spirv_no_memory(m);
    hdi_interpreter x = { .machine = machine, .m = m };
    for (uint32_t def = 1; def < m->def_count; def++)
        if (machine->at[def] & HDI_INTERPRET_CONSTANT) make_constant(&x, def);
    return true;
}

/* ---- making it ready ---- */

static bool make(hdi_spirv_machine *machine, uint32_t lanes) {
    hdi_spirv_module *m = &machine->m;
    const uint32_t *size = machine->info.workgroup;
    machine->invocations = size[0] * size[1] * size[2];
    machine->lanes = 1;
    while (machine->lanes < lanes && machine->invocations % (2 * machine->lanes) == 0) machine->lanes *= 2;
    machine->at = hdi_arena_alloc(&m->arena, m->def_count * sizeof *machine->at);
    machine->memory = hdi_arena_alloc(&m->arena, m->def_count * sizeof *machine->memory);
    machine->loop = hdi_arena_alloc(&m->arena, m->block_count * sizeof *machine->loop);
    if (!machine->at || !machine->memory || !machine->loop) return hdi_spirv_no_memory(m);
    if (!find_type_cells(machine) || !place_values(machine)) return false;
    find_loops(machine);
    const uint64_t each = (uint64_t)machine->own_cells + machine->loops / 2 + 1 + sizeof(hdi_invocation) / 8;
    if (each * machine->invocations + machine->shared_cells > MOST_CELLS)
        return hdi_spirv_beyond(m, HDI_SPIRV_NONE,
                                "%u invocations of %llu bytes each; the interpreter takes %u MiB for a workgroup",
                                machine->invocations, (unsigned long long)each * 8, (unsigned)(MOST_CELLS >> 17));
    return make_constants(machine);
}

hd_status hdi_spirv_machine_new(const hd_allocator *allocator, const hdi_spirv_input *input, uint32_t lanes,
                                hdi_spirv_machine **out_machine, hd_error *error) {
    *out_machine = NULL;
    hdi_spirv_input whole = *input;
    whole.checked = false; /* which leaves nothing out, and trusts nothing */
    hdi_spirv_machine *machine = hdi_alloc(allocator, sizeof *machine);
    if (!machine) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no host memory to interpret a kernel");
    uint32_t entry = 0;
    hd_status status = hdi_spirv_module_read(allocator, &whole, &machine->m, error);
    if (!status) status = hdi_spirv_reflect(&machine->m, input->entry, &machine->info, &entry);
    if (!status) machine->entry_function = hdi_spirv_entry_function(&machine->m, entry);
    if (!status && !make(machine, HDI_MIN(lanes, 64u))) status = machine->m.status;
    machine->m.input = NULL;
    machine->m.error = NULL;
    if (status) hdi_spirv_machine_free(allocator, machine);
    else *out_machine = machine;
    return status;
}

void hdi_spirv_machine_free(const hd_allocator *allocator, hdi_spirv_machine *machine) {
    if (!machine) return;
    hdi_spirv_module_free(&machine->m);
    hdi_free(allocator, machine, sizeof *machine);
}

/* ---- running a workgroup ---- */

/* Those that can go on do so, step by step together; false: the time is up. */
static bool run_slice(hdi_interpreter *x) {
    bool any = true;
    for (uint32_t round = 0; round < x->machine->slice && any; round++) {
        any = false;
        for (uint32_t i = 0; i < x->machine->invocations; i++) {
            x->self = &x->invocations[i];
            if (x->self->state != HDI_INVOCATION_RUNS) continue;
            hdi_interpret_step(x);
            any = true;
        }
    }
    return !x->launch->deadline_ns || hdi_now_ns() <= x->launch->deadline_ns;
}

/* Subgroups that have stopped meet; where all have and none meets, the barrier opens. False: all are done. */
static bool go_on(hdi_interpreter *x) {
    const uint32_t count = x->machine->invocations, lanes = x->machine->lanes;
    bool any = false;
    for (uint32_t first = 0; first < count; first += lanes) {
        const uint32_t there = HDI_MIN(lanes, count - first);
        bool runs = false;
        for (uint32_t i = first; i < first + there; i++) runs |= x->invocations[i].state == HDI_INVOCATION_RUNS;
        if (!runs) runs = hdi_interpret_meet(x, first, there);
        any |= runs;
    }
    bool opens = false;
    for (uint32_t i = 0; i < count && !any; i++) {
        hdi_invocation *invocation = &x->invocations[i];
        if (invocation->state != HDI_INVOCATION_WAITS) continue;
        invocation->state = HDI_INVOCATION_RUNS;
        invocation->inst++;
        opens = true;
    }
    return any || opens;
}

hd_status hdi_spirv_interpret(const hd_allocator *allocator, const hdi_spirv_machine *machine,
                              const hdi_spirv_launch *launch, const uint32_t group[3], hd_error *error) {
    hdi_arena arena = { .allocator = allocator };
    const size_t count = machine->invocations, own = machine->own_cells, loops = machine->loops;
    hdi_interpreter x = {
        .machine = machine, .m = &machine->m, .launch = launch, .group = { group[0], group[1], group[2] }
    };
    x.invocations = hdi_arena_alloc(&arena, count * sizeof *x.invocations);
    x.shared = hdi_arena_alloc(&arena, ((size_t)machine->shared_cells + 1) * sizeof *x.shared);
    x.phis = hdi_arena_alloc(&arena, ((size_t)machine->phi_cells + 1) * sizeof *x.phis);
    uint64_t *cells = hdi_arena_alloc(&arena, (count * own + 1) * sizeof *cells);
    uint32_t *rounds = hdi_arena_alloc(&arena, (count * loops + 1) * sizeof *rounds);
    hd_status status = HD_OK;
    if (!x.invocations || !x.shared || !x.phis || !cells || !rounds)
        status =
            hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no host memory for a workgroup of %zu invocations", count);
    for (uint32_t i = 0; i < count && !status; i++) {
        x.self = &x.invocations[i];
        x.self->cells = cells + i * own;
        x.self->rounds = rounds + i * loops;
        hdi_interpret_inputs(&x, i);
        for (uint32_t def = 1; def < machine->m.def_count; def++) { /* private variables may begin with a value */
            const uint32_t *words = hdi_spirv_def_words(x.m, def);
            if (words[0] == (5u << 16 | SpvOpVariable) && words[3] == SpvStorageClassPrivate)
                hdi_interpret_store(&x, hdi_interpret_value(&x, def), hdi_spirv_type_of(x.m, def)->element,
                                    hdi_interpret_id(&x, words[4]));
        }
        hdi_interpret_enter(&x, x.self);
    }
    while (!status) {
        if (!run_slice(&x))
            status = hdi_fail(error, HD_STATUS_TIMEOUT, "the kernel's time was up in workgroup (%u,%u,%u)", group[0],
                              group[1], group[2]);
        else if (!go_on(&x)) break;
    }
    hdi_arena_free(&arena);
    return status;
}
