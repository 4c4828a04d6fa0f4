/* flavour.c: a kernel as a module of OpenCL's flavour: functions and blocks, the entry point, and everything in the
 * order that SPIR-V asks for. The code is written first: what it needs of types, constants and capabilities is known
 * only then. */
#include "spirv/flavour.h"

/* ---- what folding left ---- */

static bool is_needed(const hdi_flavour *w, uint32_t def) { return w->p->facts[def] & HDI_SPIRV_NEEDED; }

static bool is_variable(const hdi_flavour *w, uint32_t def, uint32_t storage) {
    return hdi_spirv_def_opcode(w->m, def) == SpvOpVariable && hdi_spirv_type_of(w->m, def)->storage == storage &&
           is_needed(w, def);
}

/* Values that are another one by themselves, and bindings whose length is asked for. In the order of the blocks. */
static void look_ahead(hdi_flavour *w) {
    hdi_spirv_module *m = w->m;
    for (uint32_t i = 0; i < m->block_count; i++) {
        const uint32_t b = m->tree.order[i];
        if (b == HDI_SPIRV_NONE || !w->p->reached[b]) continue;
        for (uint32_t k = m->blocks[b].inst_first; k <= m->blocks[b].inst_end; k++) {
            const uint32_t *words = hdi_spirv_words(m, k);
            const uint32_t opcode = words[0] & 0xFFFF,
                           def = hdi_spirv_op_row(opcode)->operands[0] == 't' ? hdi_spirv_find(m, words[2]) : 0;
            if (!def || !is_needed(w, def)) continue;
            if (hdi_flavour_is_alias(w, k) && w->p->same[def] == def) w->p->same[def] = hdi_spirv_find(m, words[3]);
            if (opcode != SpvOpArrayLength) continue;
            const uint32_t root = hdi_spirv_root(m, hdi_spirv_find(m, words[3]));
            w->p->has_length |= 1u << hdi_spirv_decor_of(m, root)->binding;
        }
    }
}

/* ---- loops that hold barriers ---- */

/* PoCL 3.1, on which this flavour is tested, runs what stands behind a loop with barriers before the loop is over,
 * unless a barrier stands there as well. One more barrier costs a GPU nothing, so every driver gets the code that is
 * tested. The whole workgroup reaches it: all met at the loop's barrier in each round, and none returned. */
static void close_loops(hdi_flavour *w) {
    const hdi_spirv_block *blocks = w->m->blocks;
    for (uint32_t b = 0; b < w->m->block_count; b++)
        if (w->p->reached[b] && blocks[b].continue_to != HDI_SPIRV_NONE &&
            (w->p->holds[b] & (HDI_SPIRV_HOLDS_BARRIER | HDI_SPIRV_HOLDS_RETURN)) == HDI_SPIRV_HOLDS_BARRIER)
            w->closes[blocks[b].merge] = 1;
}

/* ---- variables ---- */

static void put_workgroup_variables(hdi_flavour *w) {
    for (uint32_t def = 1; def < w->m->def_count; def++) {
        if (!is_variable(w, def, SpvStorageClassWorkgroup)) continue;
        const uint32_t type = hdi_flavour_type(w, w->m->defs[def].type), id = hdi_flavour_value(w, def);
        hdi_flavour_add(w, &w->globals, SpvOpVariable, HDI_FLAVOUR_IDS(type, id, SpvStorageClassWorkgroup));
    }
}

/* Those of one function, in its first block: first all of them, then what they begin with. */
static void put_variables(hdi_flavour *w, const hdi_spirv_function *function, bool is_entry) {
    const hdi_spirv_module *m = w->m;
    for (int initial = 0; initial < 2; initial++)
        for (uint32_t def = 1; def < m->def_count; def++) {
            const uint32_t block = m->defs[def].block, *words = hdi_spirv_def_words(m, def);
            const bool own = is_variable(w, def, SpvStorageClassFunction) && block != HDI_SPIRV_NONE &&
                             &m->functions[m->blocks[block].function] == function;
            if (!own && !(is_entry && is_variable(w, def, SpvStorageClassPrivate))) continue;
            const uint32_t type = hdi_flavour_type(w, m->defs[def].type), id = hdi_flavour_value(w, def);
            if (!initial)
                hdi_flavour_add(w, &w->code, SpvOpVariable, HDI_FLAVOUR_IDS(type, id, SpvStorageClassFunction));
            else if (words[0] >> 16 > 4)
                hdi_flavour_add(w, &w->code, SpvOpStore,
                                HDI_FLAVOUR_IDS(id, hdi_flavour_value(w, hdi_spirv_find(m, words[4]))));
        }
}

/* ---- blocks ---- */

static void put_phi(hdi_flavour *w, uint32_t block, uint32_t inst) {
    const hdi_spirv_module *m = w->m;
    const uint32_t *words = hdi_spirv_words(m, inst), def = hdi_spirv_find(m, words[2]);
    if (!is_needed(w, def) || w->p->same[def] != def || w->p->facts[def] & HDI_SPIRV_KNOWN) return;
    uint32_t count = 2, *out = hdi_arena_alloc(&w->m->arena, (words[0] >> 16) * sizeof *out);
    if (!out) {
        w->stop = !hdi_spirv_no_memory(w->m);
        return;
    }
    out[0] = hdi_flavour_type(w, m->defs[def].type);
    out[1] = hdi_flavour_value(w, def);
    for (uint32_t i = 3; i < words[0] >> 16; i += 2) {
        const uint32_t from = m->defs[hdi_spirv_find(m, words[i + 1])].detail;
        if (!hdi_spirv_leads(w->p, from, block)) continue;
        out[count++] = hdi_flavour_value(w, hdi_spirv_find(m, words[i]));
        out[count++] = w->labels[from];
    }
    hdi_flavour_add(w, &w->code, SpvOpPhi, out, count);
}

static void put_terminator(hdi_flavour *w, uint32_t block) {
    const hdi_spirv_module *m = w->m;
    const uint32_t inst = m->blocks[block].inst_end, *words = hdi_spirv_words(m, inst), opcode = words[0] & 0xFFFF,
                   length = words[0] >> 16;
    const uint32_t only = opcode == SpvOpBranch ? hdi_spirv_target(m, block, 0) : w->p->only_way[block];
    if (only != HDI_SPIRV_NONE) {
        hdi_flavour_add(w, &w->code, SpvOpBranch, &w->labels[only], 1);
        return;
    }
    const uint32_t def = length > 1 ? hdi_spirv_find(m, words[1]) : 0, value = def ? hdi_flavour_value(w, def) : 0;
    if (opcode == SpvOpBranchConditional) {
        hdi_flavour_add(w, &w->code, opcode,
                        HDI_FLAVOUR_IDS(value, w->labels[hdi_spirv_target(m, block, 0)],
                                        w->labels[hdi_spirv_target(m, block, 1)]));
    } else if (opcode == SpvOpSwitch) {
        const uint32_t width = hdi_spirv_type_of(m, def)->width, mask = width < 32 ? (1u << width) - 1 : UINT32_MAX;
        uint32_t *out = hdi_arena_alloc(&w->m->arena, length * sizeof *out);
        if (!out) {
            w->stop = !hdi_spirv_no_memory(w->m);
            return;
        }
        out[0] = value;
        for (uint32_t at = 2; at < length; at++)
            out[at - 1] = at % 2 ? words[at] & mask : w->labels[hdi_spirv_target(m, block, (at - 2) / 2)];
        hdi_flavour_add(w, &w->code, opcode, out, length - 1);
    } else {
        hdi_flavour_add(w, &w->code, opcode, &value, length - 1); /* return, with or without a value; unreachable */
    }
}

static void put_call(hdi_flavour *w, uint32_t inst);

static void put_block(hdi_flavour *w, const hdi_spirv_function *function, uint32_t block, bool is_entry) {
    const hdi_spirv_module *m = w->m;
    hdi_flavour_add(w, &w->code, SpvOpLabel, &w->labels[block], 1);
    for (uint32_t i = m->blocks[block].inst_first; i < m->blocks[block].inst_end; i++)
        if (hdi_spirv_opcode(m, i) == SpvOpPhi) put_phi(w, block, i);
    if (block == function->block_first) put_variables(w, function, is_entry);
    if (w->closes[block]) hdi_flavour_close_loop(w);
    for (uint32_t i = m->blocks[block].inst_first; i < m->blocks[block].inst_end && !w->stop; i++) {
        if (hdi_spirv_opcode(m, i) == SpvOpFunctionCall) put_call(w, i);
        else hdi_flavour_instruction(w, i);
    }
    put_terminator(w, block);
}

/* ---- functions ---- */

/* The words that the kernel is given, as a type. */
static uint32_t launch_type(hdi_flavour *w) {
    const uint32_t count = hdi_flavour_u32(w, w->p->printed->argument_words);
    const uint32_t words =
        hdi_flavour_once(w, SpvOpTypeArray, 0, HDI_FLAVOUR_IDS(hdi_flavour_scalar(w, 'i', 32), count));
    return hdi_flavour_once(w, SpvOpTypeStruct, 0, &words, 1);
}

enum { MAX_PARAMETERS = 255 }; /* of a function; OpenCL asks for no more */

/* What every function is given: buffers, words, private variables. With `ids`, as arguments of a call; else their
 * types. */
static uint32_t put_common(hdi_flavour *w, bool ids, uint32_t *out) {
    const hdi_spirv_printed *printed = w->p->printed;
    const uint32_t bytes = hdi_flavour_pointer(w, SpvStorageClassCrossWorkgroup, hdi_flavour_scalar(w, 'i', 8));
    uint32_t count = 0;
    for (uint32_t i = 0; i < printed->buffer_count; i++) out[count++] = ids ? w->buffers[printed->buffers[i]] : bytes;
    out[count++] = ids ? w->launch : hdi_flavour_pointer(w, SpvStorageClassFunction, launch_type(w));
    return count;
}

/* Variables that are the entry point's and parameters of the functions it calls. The workgroup's are among them for
 * PoCL 3.1, which gives each of its threads only those a kernel names itself: its threads share the rest. */
static bool is_given(const hdi_flavour *w, uint32_t def) {
    return is_variable(w, def, SpvStorageClassPrivate) || is_variable(w, def, SpvStorageClassWorkgroup);
}

static uint32_t put_given(hdi_flavour *w, bool ids, uint32_t at, uint32_t *out) {
    for (uint32_t def = 1; def < w->m->def_count && at < MAX_PARAMETERS; def++)
        if (is_given(w, def))
            out[at++] = ids ? hdi_flavour_value(w, def) : hdi_flavour_type(w, w->m->defs[def].type);
    return at;
}

static bool check_room(hdi_flavour *w, uint32_t inst, uint32_t count) {
    if (count >= MAX_PARAMETERS && !w->stop)
        w->stop = !hdi_spirv_beyond(w->m, inst, "a function of more than %d parameters", MAX_PARAMETERS);
    return !w->stop;
}

static void put_call(hdi_flavour *w, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(w->m, inst), def = hdi_spirv_find(w->m, words[2]);
    uint32_t operands[MAX_PARAMETERS + 1] = { w->functions[hdi_spirv_called(w->m, inst)] };
    uint32_t count = put_common(w, true, operands + 1);
    count = put_given(w, true, count, operands + 1);
    if (!check_room(w, inst, count + (words[0] >> 16) - 4)) return;
    for (uint32_t i = 4; i < words[0] >> 16; i++)
        operands[1 + count++] = hdi_flavour_value(w, hdi_spirv_find(w->m, words[i]));
    const uint32_t type = hdi_flavour_type(w, w->m->defs[def].type), id = hdi_flavour_value(w, def);
    uint32_t all[MAX_PARAMETERS + 3] = { type, id };
    memcpy(all + 2, operands, (count + 1) * sizeof *all);
    hdi_flavour_add(w, &w->code, SpvOpFunctionCall, all, count + 3);
}

static void put_function(hdi_flavour *w, uint32_t index, bool is_entry) {
    const hdi_spirv_module *m = w->m;
    const hdi_spirv_function *function = &m->functions[index];
    const hdi_spirv_printed *printed = w->p->printed;
    uint32_t types[MAX_PARAMETERS + 1] = { hdi_flavour_type(w, m->defs[function->def].type) };
    uint32_t count = put_common(w, false, types + 1);
    const uint32_t common = count;
    if (!is_entry) count = put_given(w, false, count, types + 1);
    const uint32_t own = count;
    if (!check_room(w, function->inst_first, count + function->parameter_count)) return;
    for (uint32_t i = 0; i < function->parameter_count; i++)
        types[1 + count++] = hdi_flavour_type(w, m->defs[function->parameter_first + i].type);
    const uint32_t type = hdi_flavour_once(w, SpvOpTypeFunction, 0, types, count + 1);
    hdi_flavour_add(w, &w->code, SpvOpFunction, HDI_FLAVOUR_IDS(types[0], w->functions[index], 0, type));
    for (uint32_t def = 1; def < m->def_count && !is_entry; def++)
        if (is_given(w, def)) w->ids[def] = 0;
    for (uint32_t i = 0, given = 1; i < count; i++) {
        uint32_t id;
        if (i >= own) {
            id = hdi_flavour_value(w, function->parameter_first + i - own);
        } else if (i >= common) {
            while (!is_given(w, given)) given++;
            id = hdi_flavour_value(w, given++);
        } else {
            id = w->bound++;
            *(i + 1 < common ? &w->buffers[printed->buffers[i]] : &w->launch) = id;
        }
        hdi_flavour_add(w, &w->code, SpvOpFunctionParameter, HDI_FLAVOUR_IDS(types[1 + i], id));
    }
    if (is_entry) {
        hdi_flavour_decorate(w, w->launch, SpvDecorationFuncParamAttr, SpvFunctionParameterAttributeByVal);
        hdi_flavour_decorate(w, w->launch, SpvDecorationAlignment, 4);
    }
    for (uint32_t i = function->block_first; i < function->block_first + function->block_count && !w->stop; i++)
        if (m->tree.order[i] != HDI_SPIRV_NONE && w->p->reached[m->tree.order[i]])
            put_block(w, function, m->tree.order[i], is_entry);
    hdi_flavour_add(w, &w->code, SpvOpFunctionEnd, NULL, 0);
}

/* ---- the module ---- */

static bool check_offers(hdi_flavour *w) {
    static const struct { uint32_t capability, offer; const char *what; } needs[] = {
        { SpvCapabilityFloat16, HDI_SPIRV_OFFERS_FP16, "numbers of type f16" },
        { SpvCapabilityFloat64, HDI_SPIRV_OFFERS_FP64, "numbers of type f64" },
        { SpvCapabilityInt64Atomics, HDI_SPIRV_OFFERS_INT64_ATOMICS, "atomic operations on 64 bits" },
    };
    for (size_t i = 0; i < HDI_COUNT(needs); i++)
        if (w->capabilities[needs[i].capability / 8] >> needs[i].capability % 8 & 1 &&
            !(w->p->target->offers & needs[i].offer))
            return hdi_spirv_unsupported(w->m, HDI_SPIRV_NONE, "%s, which the device does not have", needs[i].what);
    return true;
}

/* A text as words: at most 27 letters and their end. */
static uint32_t text_words(const char *text, uint32_t *out) {
    const uint32_t count = (uint32_t)strlen(text) / 4 + 1;
    memset(out, 0, count * sizeof *out);
    for (uint32_t i = 0; text[i]; i++) out[i / 4] |= (uint32_t)(unsigned char)text[i] << i % 4 * 8;
    return count;
}

/* Everything in front of decorations, types and code, with the header; version 1.3 where there are subgroups. */
static void put_front(hdi_flavour *w, uint32_t entry_id, hdi_flavour_words *out) {
    const uint32_t *size = w->p->printed->info.workgroup, lanes = w->p->printed->subgroup;
    const bool groups = w->capabilities[SpvCapabilityGroupNonUniform / 8] >> SpvCapabilityGroupNonUniform % 8 & 1;
    const bool dots = w->capabilities[SpvCapabilityDotProductKHR / 8] >> SpvCapabilityDotProductKHR % 8 & 1;
    uint32_t words[32], count;
    for (uint32_t i = 0; i < 8 * sizeof w->capabilities; i++)
        if (w->capabilities[i / 8] >> i % 8 & 1) hdi_flavour_add(w, out, SpvOpCapability, &i, 1);
    if (dots) hdi_flavour_add(w, out, SpvOpExtension, words, text_words("SPV_KHR_integer_dot_product", words));
    words[0] = w->extended;
    hdi_flavour_add(w, out, SpvOpExtInstImport, words, 1 + text_words("OpenCL.std", words + 1));
    hdi_flavour_add(w, out, SpvOpMemoryModel, HDI_FLAVOUR_IDS(SpvAddressingModelPhysical64, SpvMemoryModelOpenCL));
    words[0] = SpvExecutionModelKernel;
    words[1] = entry_id;
    count = 2 + text_words(HDI_SPIRV_PRINTED_ENTRY, words + 2);
    for (uint32_t i = 0; i < w->input_count; i++) words[count++] = w->inputs[i];
    hdi_flavour_add(w, out, SpvOpEntryPoint, words, count);
    hdi_flavour_add(w, out, SpvOpExecutionMode,
                    HDI_FLAVOUR_IDS(entry_id, SpvExecutionModeLocalSize, size[0], size[1], size[2]));
    if (w->m->no_contraction)
        hdi_flavour_add(w, out, SpvOpExecutionMode, HDI_FLAVOUR_IDS(entry_id, SpvExecutionModeContractionOff));
    if (lanes)
        hdi_flavour_add(w, out, SpvOpExecutionMode, HDI_FLAVOUR_IDS(entry_id, SpvExecutionModeSubgroupSize, lanes));
    if (w->stop) return;
    out->items[0] = SpvMagicNumber;
    out->items[1] = groups ? 0x00010300 : 0x00010200;
    out->items[2] = out->items[4] = 0;
    out->items[3] = w->bound;
}

/* Code, then all of it in its order into `out`. */
static bool put_module(hdi_flavour *w, uint32_t entry, hdi_text *out) {
    static const uint32_t always[] = { SpvCapabilityAddresses, SpvCapabilityKernel, SpvCapabilityInt64,
                                       SpvCapabilityInt16, SpvCapabilityInt8 };
    hdi_flavour_words front = { 0 };
    const uint32_t function = hdi_spirv_entry_function(w->m, entry);
    for (size_t i = 0; i < HDI_COUNT(always); i++) hdi_flavour_use(w, always[i]);
    hdi_spirv_fold(w->p, function);
    look_ahead(w);
    if (!hdi_spirv_find_barriers(w->p)) return false;
    close_loops(w);
    hdi_spirv_find_arguments(w->p);
    hdi_spirv_sum_shared(w->p);
    w->extended = w->bound++;
    for (uint32_t b = 0; b < w->m->block_count; b++) w->labels[b] = w->bound++;
    for (uint32_t f = 0; f < w->m->function_count; f++) w->functions[f] = w->bound++;
    put_workgroup_variables(w);
    put_function(w, function, true);
    for (uint32_t f = 0; f < w->m->function_count && !w->stop; f++)
        if (w->p->called[f] && f != function) put_function(w, f, false);
    hdi_flavour_adders(w);
    const bool groups = w->p->parts >> HDI_SPIRV_PART_SUBGROUPS & 1;
    w->p->printed->subgroup = groups ? w->p->target->subgroup : 0;
    if (w->p->printed->subgroup) hdi_flavour_use(w, SpvCapabilitySubgroupDispatch);
    if (groups) hdi_flavour_use(w, SpvCapabilityGroupNonUniform);
    if (w->stop || !check_offers(w)) return false;
    hdi_flavour_add(w, &front, SpvOpNop, HDI_FLAVOUR_IDS(0, 0, 0, 0)); /* the header's room */
    put_front(w, w->functions[function], &front);
    const hdi_flavour_words *parts[] = { &front, &w->decorations, &w->globals, &w->code };
    size_t count = 0;
    for (size_t i = 0; i < HDI_COUNT(parts); i++) count += parts[i]->count * sizeof(uint32_t);
    bool fine = !w->stop;
    if (fine && !hdi_grow(out->allocator, &out->bytes, &out->capacity, count, 1)) fine = hdi_spirv_no_memory(w->m);
    for (size_t i = 0; i < HDI_COUNT(parts) && fine; i++) {
        if (parts[i]->count) memcpy(out->bytes + out->count, parts[i]->items, parts[i]->count * sizeof(uint32_t));
        out->count += parts[i]->count * sizeof(uint32_t);
    }
    hdi_free(w->allocator, front.items, front.capacity * sizeof(uint32_t));
    return fine;
}

static void free_words(const hdi_flavour *w, hdi_flavour_words *words) {
    hdi_free(w->allocator, words->items, words->capacity * sizeof(uint32_t));
}

static bool allocate(hdi_flavour *w) {
    hdi_arena *arena = &w->m->arena;
    w->ids = hdi_arena_alloc(arena, w->m->def_count * sizeof *w->ids);
    w->labels = hdi_arena_alloc(arena, w->m->block_count * sizeof *w->labels);
    w->functions = hdi_arena_alloc(arena, w->m->function_count * sizeof *w->functions);
    w->closes = hdi_arena_alloc(arena, w->m->block_count);
    return (w->ids && w->labels && w->functions && w->closes) || hdi_spirv_no_memory(w->m);
}

hd_status hdi_spirv_kernel_module(const hd_allocator *allocator, const hdi_spirv_input *input,
                                  const hdi_spirv_print_target *target, hdi_text *out_module,
                                  hdi_spirv_printed *out_printed, hd_error *error) {
    hdi_spirv_module m;
    hdi_spirv_printer p = { .m = &m, .target = target, .printed = out_printed };
    hdi_flavour w = { .m = &m, .p = &p, .allocator = allocator, .bound = 1 };
    uint32_t entry = 0;
    *out_printed = (hdi_spirv_printed){ 0 };
    hd_status status = hdi_spirv_module_read(allocator, input, &m, error);
    if (status == HD_OK) status = hdi_spirv_reflect(&m, input->entry, &out_printed->info, &entry);
    if (status == HD_OK && !(hdi_spirv_begin(&p, entry) && allocate(&w) && put_module(&w, entry, out_module)))
        status = m.status;
    free_words(&w, &w.decorations);
    free_words(&w, &w.globals);
    free_words(&w, &w.code);
    hdi_names_free(&w.stated.ids);
    hdi_spirv_module_free(&m);
    return status;
}
