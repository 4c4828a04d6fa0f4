/* reflect.c: what one entry point needs of the outside: workgroup size, push constants, storage buffers and which of
 * them it writes, specialisation constants, shared memory. Only what the entry point reaches through calls counts, so
 * other entry points of the module do not matter; resources that heddle does not bind are refused by name. Relies on
 * all the checks. */
#include "spirv/module.h"
#include "cmds/cmds.h"
#include <stdio.h>

/* A kernel is at most this large once all its calls are inlined, as drivers do. */
enum { MAX_INLINED = 4 << 20 };

typedef struct reach {
    uint8_t  *used, *written; /* for each def: the entry point reaches it */
    uint8_t  *state;          /* for each function: 0 not met, 1 being walked, 2 done */
    uint32_t *stack, *next;   /* functions being walked, and the instruction where each goes on */
    uint64_t *inlined;        /* instructions with all calls inlined */
} reach;

/* ---- choosing ---- */

static hd_status choose_entry(const hdi_spirv_module *m, const char *name, uint32_t *out_entry, hd_error *error) {
    for (uint32_t i = 0; i < m->entry_count; i++) {
        *out_entry = m->entries[i];
        if (hdi_spirv_text_is(hdi_spirv_words(m, *out_entry) + 3, name ? name : "main")) return HD_OK;
    }
    if (!name && m->entry_count == 1) return HD_OK;
    char first[64];
    hdi_spirv_quote(hdi_spirv_words(m, m->entries[0]) + 3, first, sizeof first);
    return hdi_fail(error, HD_STATUS_KERNEL_NOT_FOUND,
                    "the module has no entry point \"%s\"; it has %u, the first is \"%s\"", name ? name : "main",
                    m->entry_count, first);
}

/* The name that the source gave an id, or "": searched only for messages. */
static const char *name_of(const hdi_spirv_module *m, uint32_t id, char *out, size_t room) {
    out[0] = 0;
    for (uint32_t i = 0; i < m->inst_count && !out[0]; i++)
        if (hdi_spirv_opcode(m, i) == SpvOpName && hdi_spirv_words(m, i)[1] == id)
            hdi_spirv_quote(hdi_spirv_words(m, i) + 2, out, room);
    return out;
}

/* ---- what the entry point reaches ---- */

/* The pointer that the instruction writes through; 0 for none. */
static uint32_t written_pointer(const hdi_spirv_module *m, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t opcode = words[0] & 0xFFFF;
    switch (opcode) {
    case SpvOpStore: case SpvOpCopyMemory: case SpvOpAtomicStore: case HDI_SPIRV_COOPERATIVE_MATRIX_STORE:
        return hdi_spirv_find(m, words[1]);
    case SpvOpExtInst: return hdi_spirv_glsl_writes(m, words) ? hdi_spirv_find(m, words[6]) : 0;
    case SpvOpAtomicLoad: return 0;
    default: return hdi_spirv_is_atomic(opcode) ? hdi_spirv_find(m, words[3]) : 0;
    }
}

static void note_uses(const hdi_spirv_module *m, uint32_t inst, reach *r) {
    for (hdi_spirv_operands o = hdi_spirv_operands_of(m, inst); hdi_spirv_next(&o);)
        if (o.letter == 'i' || o.letter == 'a') r->used[hdi_spirv_find(m, o.word)] = 1;
    uint32_t pointer = written_pointer(m, inst);
    if (pointer) r->written[hdi_spirv_root(m, pointer)] = 1;
}

/* Walks the calls from `entry` on, each function once. Recursion is not allowed in SPIR-V; depth and size are bounded,
 * for drivers inline everything. */
static bool walk_calls(hdi_spirv_module *m, uint32_t entry, reach *r) {
    uint32_t depth = 0;
    r->stack[depth++] = entry;
    r->state[entry] = 1;
    r->next[entry] = m->functions[entry].inst_first;
    while (depth) {
        uint32_t f = r->stack[depth - 1];
        const hdi_spirv_function *function = &m->functions[f];
        bool went_in = false;
        while (!went_in && r->next[f] <= function->inst_end) {
            uint32_t i = r->next[f];
            if (hdi_spirv_opcode(m, i) == SpvOpFunctionCall) {
                uint32_t callee = hdi_spirv_called(m, i);
                if (r->state[callee] == 1) return hdi_spirv_bad(m, i, "functions call each other in a circle");
                if (r->state[callee] == 0) {
                    if (depth == HDI_SPIRV_MAX_CALLS)
                        return hdi_spirv_beyond(m, i, "calls nested more than %u deep", HDI_SPIRV_MAX_CALLS);
                    r->state[callee] = 1;
                    r->next[callee] = m->functions[callee].inst_first;
                    r->stack[depth++] = callee;
                    went_in = true;
                    continue;
                }
                r->inlined[f] += r->inlined[callee];
            }
            if (++r->inlined[f] > MAX_INLINED)
                return hdi_spirv_beyond(m, i, "more than %d instructions once calls are inlined", MAX_INLINED);
            note_uses(m, i, r);
            r->next[f]++;
        }
        if (went_in) continue;
        r->state[f] = 2;
        depth--;
    }
    return true;
}

/* ---- variables ---- */

static bool refuse_variable(hdi_spirv_module *m, uint32_t def, const char *what, const char *advice) {
    const hdi_spirv_decor *decor = hdi_spirv_decor_of(m, def);
    char name[64];
    return hdi_spirv_bad(m, m->defs[def].inst, "%s \"%s\" at set %d, binding %d: %s", what,
                         name_of(m, m->defs[def].id, name, sizeof name), (int)decor->set, (int)decor->binding, advice);
}

static bool note_buffer(hdi_spirv_module *m, uint32_t def, const reach *r, hdi_spirv_info *info) {
    const hdi_spirv_decor *decor = hdi_spirv_decor_of(m, def);
    if (decor->set == HDI_SPIRV_NONE || decor->binding == HDI_SPIRV_NONE)
        return refuse_variable(m, def, "buffer", "it needs both");
    if (decor->set != 0) return refuse_variable(m, def, "buffer", "put it in set 0, the only one that is bound");
    if (decor->binding >= HDI_SPIRV_MAX_BINDINGS)
        return hdi_spirv_beyond(m, m->defs[def].inst, "a buffer at binding %u; they go up to %d", decor->binding,
                                HDI_SPIRV_MAX_BINDINGS - 1);
    hdi_spirv_binding *binding = &info->bindings[decor->binding];
    binding->used = true;
    binding->written |= r->written[def] != 0;
    info->binding_count = HDI_MAX(info->binding_count, decor->binding + 1);
    return true;
}

static bool note_variable(hdi_spirv_module *m, uint32_t def, const reach *r, hdi_spirv_info *info,
                          uint64_t *shared_bytes) {
    uint32_t inst = m->defs[def].inst;
    const hdi_spirv_type *pointer = hdi_spirv_type_of(m, def), *type = hdi_spirv_type_at(m, pointer->element);
    switch (pointer->storage) {
    case SpvStorageClassUniform:
        if (m->defs[pointer->element].flags & HDI_SPIRV_BUFFER_BLOCK) return note_buffer(m, def, r, info);
        return refuse_variable(m, def, "uniform buffer", "make it push constants or a readonly storage buffer");
    case SpvStorageClassStorageBuffer: return note_buffer(m, def, r, info);
    case SpvStorageClassPushConstant:
        if (info->push_bytes) return hdi_spirv_bad(m, inst, "a second block of push constants");
        if (type->bytes > HDI_MAX_PUSH_WORDS * 4)
            return hdi_spirv_beyond(m, inst, "%llu bytes of push constants; at most %d are taken",
                                    (unsigned long long)type->bytes, HDI_MAX_PUSH_WORDS * 4);
        info->push_bytes = (uint32_t)hdi_divide_up(type->bytes, 4) * 4;
        return true;
    case SpvStorageClassWorkgroup:
        *shared_bytes = hdi_divide_up(*shared_bytes, type->plain_align) * type->plain_align + type->plain_bytes;
        info->shared_bytes = (uint32_t)*shared_bytes;
        return *shared_bytes <= UINT32_MAX || hdi_spirv_beyond(m, inst, "more than 4 GiB of shared memory");
    default: return true;
    }
}

/* Every global variable that is used; those of the interface have to be listed by the entry point. */
static bool note_variables(hdi_spirv_module *m, uint32_t entry, reach *r, hdi_spirv_info *info) {
    enum { LISTED = 2 };
    uint32_t met[32], met_count = 0; /* built-ins; fewer are taken */
    for (hdi_spirv_operands o = hdi_spirv_operands_of(m, entry); hdi_spirv_next(&o);) {
        if (o.letter != 'a' || o.at <= 2) continue;
        uint32_t def = hdi_spirv_find(m, o.word), builtin = hdi_spirv_decor_of(m, def)->builtin;
        r->used[def] |= LISTED;
        for (uint32_t i = 0; i < met_count; i++)
            if (met[i] == builtin) return hdi_spirv_bad(m, entry, "it lists built-in %u twice", builtin);
        if (builtin != HDI_SPIRV_NONE && met_count < HDI_COUNT(met)) met[met_count++] = builtin;
    }
    uint64_t shared_bytes = 0;
    for (uint32_t def = 1; def < m->def_count; def++) {
        if (!(r->used[def] & 1) || hdi_spirv_def_opcode(m, def) != SpvOpVariable) continue;
        uint32_t storage = hdi_spirv_type_of(m, def)->storage;
        bool listed = storage == SpvStorageClassInput || (m->version >= 0x10400 && storage != SpvStorageClassFunction);
        if (listed && !(r->used[def] & LISTED))
            return hdi_spirv_bad(m, entry, "it uses variable %u, but does not list it", m->defs[def].id);
        if (!note_variable(m, def, r, info, &shared_bytes)) return false;
    }
    return true;
}

/* ---- constants and modes ---- */

static bool note_constants(hdi_spirv_module *m, hdi_spirv_info *info, uint32_t *out_workgroup_size) {
    for (uint32_t def = 1; def < m->def_count; def++) {
        if (!m->defs[def].decor) continue;
        uint32_t inst = m->defs[def].inst, opcode = hdi_spirv_opcode(m, inst);
        const hdi_spirv_decor *decor = hdi_spirv_decor_of(m, def);
        if (hdi_spirv_is_constant(opcode) && decor->builtin != HDI_SPIRV_NONE) {
            const hdi_spirv_type *type = hdi_spirv_type_of(m, def);
            bool composite = opcode == SpvOpConstantComposite || opcode == SpvOpSpecConstantComposite;
            if (decor->builtin != SpvBuiltInWorkgroupSize || *out_workgroup_size || !composite || type->kind != 'i' ||
                type->width != 32 || type->count != 3)
                return hdi_spirv_bad(m, inst, "built-in %u on it is not the one workgroup size", decor->builtin);
            *out_workgroup_size = def;
        }
        if (decor->spec_id == HDI_SPIRV_NONE) continue;
        uint32_t known = 0;
        while (known < info->spec_count && info->spec[known].id != decor->spec_id) known++;
        if (known < info->spec_count) continue;
        if (known == HDI_SPIRV_MAX_SPEC)
            return hdi_spirv_beyond(m, inst, "more than %d specialisation constants", HDI_SPIRV_MAX_SPEC);
        uint32_t value = opcode == SpvOpSpecConstant ? hdi_spirv_words(m, inst)[3] : opcode == SpvOpSpecConstantTrue;
        info->spec[info->spec_count++] = (hdi_spirv_spec){ decor->spec_id, value };
    }
    return true;
}

/* The size along one axis from the constant `def`. */
static bool note_size(hdi_spirv_module *m, uint32_t inst, uint32_t def, uint32_t axis, hdi_spirv_info *info) {
    uint64_t size;
    const hdi_spirv_type *type = hdi_spirv_type_of(m, def);
    if (type->kind != 'i' || type->width != 32 || type->count != 1 || !hdi_spirv_known(m, def, &size))
        return hdi_spirv_bad(m, inst, "the workgroup size along axis %u is no 32-bit integer heddle can work out",
                             axis);
    uint32_t spec_id = hdi_spirv_decor_of(m, def)->spec_id;
    info->workgroup[axis] = (uint32_t)size;
    info->workgroup_spec[axis] = spec_id > INT32_MAX ? -1 : (int32_t)spec_id;
    return true;
}

/* By rising precedence: LocalSize, LocalSizeId, a constant decorated as the workgroup size. */
static bool note_workgroup(hdi_spirv_module *m, uint32_t entry, uint32_t workgroup_size, hdi_spirv_info *info) {
    uint32_t met = 0, function = hdi_spirv_words(m, entry)[2];
    for (uint32_t i = entry; i < m->front_count; i++) {
        uint32_t opcode = hdi_spirv_opcode(m, i);
        const uint32_t *words = hdi_spirv_words(m, i);
        if ((opcode != SpvOpExecutionMode && opcode != SpvOpExecutionModeId) || words[1] != function) continue;
        bool by_id = words[2] == SpvExecutionModeLocalSizeId;
        if (words[2] != SpvExecutionModeLocalSize && !by_id) continue;
        if (met++) return hdi_spirv_bad(m, i, "a second workgroup size");
        for (uint32_t axis = 0; axis < 3; axis++) {
            info->workgroup[axis] = words[3 + axis];
            if (by_id && !note_size(m, i, hdi_spirv_find(m, words[3 + axis]), axis, info)) return false;
        }
    }
    if (workgroup_size) {
        const uint32_t *parts = hdi_spirv_def_words(m, workgroup_size) + 3;
        for (uint32_t axis = 0; axis < 3; axis++)
            if (!note_size(m, m->defs[workgroup_size].inst, hdi_spirv_find(m, parts[axis]), axis, info)) return false;
    }
    uint64_t size = (uint64_t)info->workgroup[0] * info->workgroup[1];
    if ((!met && !workgroup_size) || size == 0 || size > UINT32_MAX || !hdi_mul_u64(size, info->workgroup[2], &size) ||
        size == 0 || size > UINT32_MAX)
        return hdi_spirv_bad(m, entry, "a workgroup of %u x %u x %u; check the specialisation constants",
                             info->workgroup[0], info->workgroup[1], info->workgroup[2]);
    return true;
}

static bool note_capabilities(hdi_spirv_module *m, hdi_spirv_info *info) {
    for (uint32_t i = 0; i < m->inst_count && hdi_spirv_opcode(m, i) <= SpvOpCapability; i++) {
        if (hdi_spirv_opcode(m, i) != SpvOpCapability) continue;
        uint32_t capability = hdi_spirv_words(m, i)[1], known = 0;
        while (known < info->capability_count && info->capabilities[known] != capability) known++;
        if (known < info->capability_count) continue;
        if (known == HDI_COUNT(info->capabilities))
            return hdi_spirv_beyond(m, i, "more than %zu capabilities", HDI_COUNT(info->capabilities));
        info->capabilities[info->capability_count++] = capability;
    }
    return true;
}

/* ---- all of it ---- */

static bool reflect(hdi_spirv_module *m, uint32_t entry, hdi_spirv_info *info) {
    reach r = { 0 };
    size_t functions = m->function_count;
    r.used = hdi_arena_alloc(&m->arena, m->def_count);
    r.written = hdi_arena_alloc(&m->arena, m->def_count);
    r.state = hdi_arena_alloc(&m->arena, functions);
    r.stack = hdi_arena_alloc(&m->arena, HDI_SPIRV_MAX_CALLS * sizeof *r.stack);
    r.next = hdi_arena_alloc(&m->arena, functions * sizeof *r.next);
    r.inlined = hdi_arena_alloc(&m->arena, functions * sizeof *r.inlined);
    if (!r.used || !r.written || !r.state || !r.stack || !r.next || !r.inlined) return hdi_spirv_no_memory(m);
    const uint32_t *name = hdi_spirv_words(m, entry) + 3;
    hdi_spirv_quote(name, info->entry, sizeof info->entry);
    if (!hdi_spirv_text_is(name, info->entry))
        return hdi_spirv_beyond(m, entry, "its name is longer than %zu letters, or not printable",
                                sizeof info->entry - 1);
    info->version = m->version;
    uint32_t workgroup_size = 0, function = hdi_spirv_find(m, hdi_spirv_words(m, entry)[2]);
    return note_capabilities(m, info) && note_constants(m, info, &workgroup_size) &&
           note_workgroup(m, entry, workgroup_size, info) && walk_calls(m, m->defs[function].detail, &r) &&
           note_variables(m, entry, &r, info);
}

hd_status hdi_spirv_reflect(hdi_spirv_module *m, const char *name, hdi_spirv_info *out_info, uint32_t *out_entry_inst) {
    hdi_spirv_info info = { .workgroup_spec = { -1, -1, -1 } };
    hd_status status = choose_entry(m, name, out_entry_inst, m->error);
    if (status == HD_OK && !reflect(m, *out_entry_inst, &info)) status = m->status;
    if (status == HD_OK) *out_info = info;
    return status;
}

hd_status hdi_spirv_inspect(const hd_allocator *allocator, const hdi_spirv_input *input, hdi_spirv_info *out_info,
                            hd_error *error) {
    *out_info = (hdi_spirv_info){ .workgroup_spec = { -1, -1, -1 } };
    if (input->spec_count > HDI_SPIRV_MAX_SPEC)
        return hdi_fail(error, HD_STATUS_LIMIT, "%u specialisation constants; at most %d are taken", input->spec_count,
                        HDI_SPIRV_MAX_SPEC);
    hdi_spirv_module m;
    uint32_t chosen;
    hd_status status = hdi_spirv_module_read(allocator, input, &m, error);
    if (status == HD_OK) status = hdi_spirv_reflect(&m, input->entry, out_info, &chosen);
    hdi_spirv_module_free(&m);
    return status;
}
