/* print.c: a kernel as text: the dialect's prelude, types, and one function whose arguments spirv.h describes. The body
 * is printed first, because what it needs of prelude and types is known only then. */
#include "cmds/cmds.h"
#include "spirv/print.h"

/* ---- the function's head ---- */

static bool is_used(const hdi_spirv_printer *p, uint32_t def) { return p->facts[def] & HDI_SPIRV_NEEDED; }

static uint32_t storage_of(const hdi_spirv_printer *p, uint32_t def) {
    return hdi_spirv_def_opcode(p->m, def) == SpvOpVariable ? hdi_spirv_type_of(p->m, def)->storage : UINT32_MAX;
}

void hdi_spirv_find_arguments(hdi_spirv_printer *p) {
    hdi_spirv_printed *out = p->printed;
    uint32_t bindings = p->has_length;
    for (uint32_t def = 1; def < p->m->def_count; def++) {
        uint32_t storage = storage_of(p, def);
        if (is_used(p, def) && (storage == SpvStorageClassStorageBuffer || storage == SpvStorageClassUniform))
            bindings |= 1u << hdi_spirv_decor_of(p->m, def)->binding;
    }
    for (uint32_t b = 0; b < HDI_SPIRV_MAX_BINDINGS; b++) {
        if (bindings >> b & 1) out->buffers[out->buffer_count++] = b;
        if (p->has_length >> b & 1) out->lengths[out->length_count++] = b;
    }
    out->push_words = out->info.push_bytes / 4;
    out->argument_words = (hdi_spirv_is_wgsl(p) ? 4 : 3) + out->push_words +
                          (p->target->offsets ? 2 * out->buffer_count : 0) + 2 * out->length_count;
}

static void put_head(hdi_spirv_printer *p) {
    const hdi_spirv_printed *out = p->printed;
    const uint32_t *size = out->info.workgroup;
    hdi_spirv_put(p, "typedef struct { u32 w[%u]; } launch_words;\n", out->argument_words);
    hdi_spirv_put(p, p->spelling->kernel, size[0], size[1], size[2]);
    hdi_spirv_put(p, " " HDI_SPIRV_PRINTED_ENTRY "(");
    for (uint32_t i = 0; i < out->buffer_count; i++) hdi_spirv_put(p, "GLOBAL u8 *b%u, ", out->buffers[i]);
    hdi_spirv_put(p, "const launch_words launch) {\n");
    uint32_t at = 3 + out->push_words;
    for (uint32_t i = 0; i < out->buffer_count && p->target->offsets; i++, at += 2)
        hdi_spirv_put(p, "  b%u += (u64)launch.w[%u] | (u64)launch.w[%u] << 32u;\n", out->buffers[i], at, at + 1);
    for (uint32_t i = 0; i < out->length_count; i++, at += 2) {
        hdi_spirv_put(p, "  const u64 length%u = (u64)launch.w[%u] | (u64)launch.w[%u] << 32u;\n", out->lengths[i], at,
                      at + 1);
    }
}

/* ---- built-in inputs ---- */

static bool put_input(hdi_spirv_printer *p, uint32_t def) {
    uint32_t builtin = hdi_spirv_decor_of(p->m, def)->builtin;
    const char *value = NULL; /* of those about subgroups */
    switch (builtin) {
    case SpvBuiltInSubgroupSize: value = "SG_SIZE"; break;
    case SpvBuiltInNumSubgroups: value = "SG_COUNT"; break;
    case SpvBuiltInSubgroupId: value = "SG_ID"; break;
    case SpvBuiltInSubgroupLocalInvocationId: value = "SG_LANE"; break;
    case SpvBuiltInSubgroupEqMask: value = "sg_mask_up_to() & ~sg_mask_below()"; break;
    case SpvBuiltInSubgroupGeMask: value = "~sg_mask_below()"; break;
    case SpvBuiltInSubgroupGtMask: value = "~sg_mask_up_to()"; break;
    case SpvBuiltInSubgroupLeMask: value = "sg_mask_up_to()"; break;
    case SpvBuiltInSubgroupLtMask: value = "sg_mask_below()"; break;
    default: break;
    }
    uint32_t type = hdi_spirv_type_of(p->m, def)->element;
    if (hdi_spirv_is_wgsl(p)) return hdi_spirv_wgsl_put_input(p, def);
    if (value) hdi_spirv_use_part(p, HDI_SPIRV_PART_SUBGROUPS);
    hdi_spirv_put(p, "  const %t l%u = ", type, def);
    switch (builtin) {
    case SpvBuiltInNumWorkgroups: hdi_spirv_put(p, "make_%t(GROUPS_X, GROUPS_Y, GROUPS_Z)", type); break;
    case SpvBuiltInWorkgroupId: hdi_spirv_put(p, "make_%t(GROUP_X, GROUP_Y, GROUP_Z)", type); break;
    case SpvBuiltInLocalInvocationId: hdi_spirv_put(p, "make_%t(LOCAL_X, LOCAL_Y, LOCAL_Z)", type); break;
    case SpvBuiltInGlobalInvocationId:
        hdi_spirv_put(p,
                      "make_%t(GROUP_X * WORKGROUP_X + LOCAL_X, GROUP_Y * WORKGROUP_Y + LOCAL_Y, GROUP_Z * "
                      "WORKGROUP_Z + LOCAL_Z)", type);
        break;
    case SpvBuiltInLocalInvocationIndex: hdi_spirv_put(p, "LOCAL_INDEX"); break;
    default:
        if (hdi_spirv_type_at(p->m, type)->count == 1) hdi_spirv_put(p, "%s", value);
        else hdi_spirv_put(p, "make_%t((u32)(%s), (u32)((%s) >> 32u), 0u, 0u)", type, value, value);
        break;
    }
    hdi_spirv_end(p);
    return true;
}

/* ---- what stands in front of the body ---- */

/* Global variables, and constants that are no literals. */
static bool put_globals(hdi_spirv_printer *p) {
    const hdi_spirv_module *m = p->m;
    p->indent = 1;
    for (uint32_t def = 1; def < m->def_count; def++) {
        if (!is_used(p, def) || p->same[def] != def) continue;
        uint32_t opcode = hdi_spirv_def_opcode(m, def), storage = storage_of(p, def);
        const hdi_spirv_type *type = hdi_spirv_type_of(m, def);
        if (storage == SpvStorageClassInput && !put_input(p, def)) return false;
        /* of the function; else in its head */
        const bool inside = storage != SpvStorageClassWorkgroup || !hdi_spirv_is_wgsl(p);
        if (inside && (storage == SpvStorageClassWorkgroup || storage == SpvStorageClassPrivate) &&
            !hdi_spirv_put_variable(p, def))
            return false;
        if (m->defs[def].block != HDI_SPIRV_NONE || !(hdi_spirv_is_constant(opcode) || opcode == SpvOpUndef)) continue;
        bool plain = hdi_spirv_is_plain(type) && (opcode != SpvOpSpecConstantOp || p->facts[def] & HDI_SPIRV_KNOWN);
        if (!plain && !hdi_spirv_put_constant(p, def)) return false;
    }
    return true;
}

/* Are there subgroups that go through shared memory? */
static bool shares_subgroups(const hdi_spirv_printer *p) {
    return p->parts >> HDI_SPIRV_PART_SUBGROUPS & 1 && p->target->dialect == HDI_SPIRV_OPENCL_C &&
           !(p->target->offers & (HDI_SPIRV_OFFERS_SUBGROUPS | HDI_SPIRV_OFFERS_PTX));
}

/* The subgroups of a device that has none: as many lanes as divide the workgroup, up to 32. */
static bool choose_subgroup(hdi_spirv_printer *p) {
    const uint32_t *size = p->printed->info.workgroup;
    uint32_t workgroup = size[0] * size[1] * size[2], lanes = 1, wanted = p->target->subgroup;
    if (!shares_subgroups(p)) {
        const bool used = p->parts >> HDI_SPIRV_PART_SUBGROUPS & 1, ptx = hdi_spirv_is_ptx(p->target);
        p->printed->subgroup = !used ? 0 : ptx || p->target->dialect == HDI_SPIRV_CUDA ? 32 : wanted;
        return !ptx || !used || !wanted || wanted == 32 ||
               hdi_spirv_unsupported(p->m, HDI_SPIRV_NONE, "subgroups of %u lanes, the device has 32", wanted);
    }
    if (!hdi_spirv_check_uniform(p)) return false;
    while (lanes < (wanted ? wanted : 32) && workgroup % (2 * lanes) == 0) lanes *= 2;
    if (wanted && lanes != wanted)
        return hdi_spirv_unsupported(p->m, HDI_SPIRV_NONE, "subgroups of %u lanes in workgroups of %u", wanted,
                                     workgroup);
    p->printed->subgroup = lanes;
    p->printed->shared_bytes += 4 * workgroup;
    return true;
}

static bool put_parts(hdi_spirv_printer *p) {
    for (uint32_t part = 0; part < HDI_SPIRV_PART_COUNT; part++) {
        const char *const *line = hdi_spirv_prelude(p->target, (hdi_spirv_part)part);
        for (; p->parts >> part & 1 && *line; line++) hdi_spirv_put(p, "%s\n", *line);
    }
    return !p->stop;
}

static bool put_prelude(hdi_spirv_printer *p) {
    const uint32_t *size = p->printed->info.workgroup;
    if (hdi_spirv_is_wgsl(p)) return put_parts(p);
    if (shares_subgroups(p))
        hdi_spirv_put(p, "#define SG_SIZE %uu\n", p->printed->subgroup);
    hdi_spirv_put(p, "#define WORKGROUP_X %uu\n#define WORKGROUP_Y %uu\n#define WORKGROUP_Z %uu\n", size[0], size[1],
                  size[2]);
    hdi_spirv_put(p, "#define WORKGROUP (WORKGROUP_X * WORKGROUP_Y * WORKGROUP_Z)\n"
                     "#define LOCAL_INDEX (LOCAL_X + WORKGROUP_X * (LOCAL_Y + WORKGROUP_Y * LOCAL_Z))\n");
    return put_parts(p);
}

/* ---- what the target lacks ---- */

static bool is_offered(const hdi_spirv_printer *p, uint32_t offer) {
    return !hdi_spirv_is_wgsl(p) && (p->target->dialect != HDI_SPIRV_OPENCL_C || p->target->offers & offer);
}

static bool check_offers(hdi_spirv_printer *p) {
    if (p->parts >> HDI_SPIRV_PART_DOUBLE & 1 && !is_offered(p, HDI_SPIRV_OFFERS_FP64))
        return hdi_spirv_unsupported(p->m, HDI_SPIRV_NONE, "numbers of type f64, which the device does not have");
    if (p->parts >> HDI_SPIRV_PART_ATOMICS64 & 1 && !is_offered(p, HDI_SPIRV_OFFERS_INT64_ATOMICS))
        return hdi_spirv_unsupported(p->m, HDI_SPIRV_NONE,
                                     "atomic operations on 64 bits, which the device does not have");
    /* What a kernel of HIP may declare; elsewhere the limit is the driver's. */
    const uint32_t most = p->target->dialect == HDI_SPIRV_HIP ? 64u << 10 : UINT32_MAX;
    if (p->printed->shared_bytes > most)
        return hdi_spirv_beyond(p->m, HDI_SPIRV_NONE, "%u bytes of shared memory; at most %u can be declared",
                                p->printed->shared_bytes, most);
    return true;
}

static bool check_modes(hdi_spirv_printer *p, uint32_t entry) {
    uint32_t function = hdi_spirv_words(p->m, entry)[2];
    for (uint32_t i = entry; i < p->m->front_count; i++) {
        const uint32_t *words = hdi_spirv_words(p->m, i);
        bool mode = hdi_spirv_opcode(p->m, i) == SpvOpExecutionMode && words[1] == function;
        if (mode && words[2] == SpvExecutionModeRoundingModeRTZ)
            return hdi_spirv_unsupported(p->m, i, "rounding towards zero");
    }
    return true;
}

/* ---- all of it ---- */

static bool allocate(hdi_spirv_printer *p) {
    hdi_arena *arena = &p->m->arena;
    size_t defs = p->m->def_count, blocks = p->m->block_count, functions = p->m->function_count;
    p->bits = hdi_arena_alloc(arena, defs * sizeof *p->bits);
    p->facts = hdi_arena_alloc(arena, defs);
    p->same = hdi_arena_alloc(arena, defs * sizeof *p->same);
    p->mark = hdi_arena_alloc(arena, defs * sizeof *p->mark);
    p->stack = hdi_arena_alloc(arena, defs * sizeof *p->stack);
    p->reached = hdi_arena_alloc(arena, blocks);
    p->done = hdi_arena_alloc(arena, blocks);
    p->needs_flag = hdi_arena_alloc(arena, blocks);
    p->only_way = hdi_arena_alloc(arena, blocks * sizeof *p->only_way);
    p->called = hdi_arena_alloc(arena, functions);
    p->calls = hdi_arena_alloc(arena, functions * sizeof *p->calls);
    p->declared = hdi_arena_alloc(arena, p->m->type_count);
    bool all = p->bits && p->facts && p->same && p->mark && p->stack && p->reached && p->done && p->needs_flag &&
               p->only_way && p->called && p->calls && p->declared;
    return all || hdi_spirv_no_memory(p->m);
}

bool hdi_spirv_begin(hdi_spirv_printer *p, uint32_t entry) { return allocate(p) && check_modes(p, entry); }

uint64_t hdi_spirv_shared_place(const hdi_spirv_printer *p, uint32_t def, uint64_t after) {
    enum { MOST_ALIGN = 16 };
    const hdi_spirv_type *type = hdi_spirv_type_at(p->m, hdi_spirv_type_of(p->m, def)->element);
    const uint64_t align = p->target->dialect == HDI_SPIRV_CUDA ? MOST_ALIGN : type->plain_align;
    return hdi_divide_up(after, align) * align;
}

void hdi_spirv_sum_shared(hdi_spirv_printer *p) {
    uint64_t bytes = 0;
    for (uint32_t def = 1; def < p->m->def_count; def++) {
        if (!is_used(p, def) || storage_of(p, def) != SpvStorageClassWorkgroup) continue;
        bytes = hdi_spirv_shared_place(p, def, bytes) +
                hdi_spirv_type_at(p->m, hdi_spirv_type_of(p->m, def)->element)->plain_bytes;
    }
    p->printed->shared_bytes = (uint32_t)HDI_MIN(bytes, (uint64_t)UINT32_MAX / 2);
    p->printed->shared_at_launch = p->target->dialect == HDI_SPIRV_CUDA && bytes > 48u << 10;
}

/* Does the module say where it waits for what comes earlier? */
static bool knows_early(const hdi_spirv_info *info) {
    for (uint32_t i = 0; i < info->spec_count; i++)
        if (info->spec[i].id == HDI_SPEC_EARLY) return true;
    return false;
}

/* Body, globals, then everything in its order into `out`. */
static bool put_kernel(hdi_spirv_printer *p, uint32_t entry, hdi_text *globals, hdi_text *body, hdi_text *out) {
    uint32_t function = hdi_spirv_entry_function(p->m, entry);
    hdi_spirv_scope scope = {
        .kind = 'f', .header = HDI_SPIRV_NONE, .merge = HDI_SPIRV_NONE, .continue_to = HDI_SPIRV_NONE
    };
    /* PoCL has clang mark each loop as not to be unrolled, and then works through it for several work-items at once;
     * but clang drops the mark of a loop that is left where the life of a variable ends. */
    p->declares_first = p->target->dialect == HDI_SPIRV_OPENCL_C;
    p->printed->waits = p->target->offers & HDI_SPIRV_OFFERS_EARLY_START && knows_early(&p->printed->info);
    hdi_spirv_fold(p, function);
    if (p->target->closes_loops && !hdi_spirv_find_barriers(p)) return false;
    hdi_spirv_use_part(p, HDI_SPIRV_PART_CORE);
    if (p->m->no_contraction) hdi_spirv_use_part(p, HDI_SPIRV_PART_NO_CONTRACTION);
    p->text = body;
    p->indent = 1;
    if (hdi_spirv_is_wgsl(p) && !hdi_spirv_wgsl_find_atomics(p)) return false;
    if (!hdi_spirv_put_function(p, function, &scope)) return false;
    p->text = globals;
    hdi_spirv_sum_shared(p);
    if (!put_globals(p)) return false;
    hdi_spirv_find_arguments(p);
    p->text = out;
    if (hdi_spirv_is_wgsl(p) && !hdi_spirv_wgsl_put_shared(p)) return false;
    hdi_spirv_find_types(p);
    if (!check_offers(p) || !choose_subgroup(p)) return false;
    if (!put_prelude(p)) return false;
    hdi_spirv_put_types(p);
    if (!hdi_spirv_is_wgsl(p)) put_head(p);
    else hdi_spirv_wgsl_put_head(p);
    if (shares_subgroups(p)) hdi_spirv_put(p, "  SHARED u32 sg_room[WORKGROUP];\n");
    if (p->printed->shared_at_launch) hdi_spirv_put(p, "  alignas(16) extern __shared__ u8 shared_room[];\n");
    hdi_spirv_put(p, "%s%s}\n", globals->count ? globals->bytes : "", body->count ? body->bytes : "");
    return !p->stop;
}

hd_status hdi_spirv_print(const hd_allocator *allocator, const hdi_spirv_input *input,
                          const hdi_spirv_print_target *target, hdi_text *out_text, hdi_spirv_printed *out_printed,
                          hd_error *error) {
    hdi_spirv_module m;
    hdi_spirv_printer p = {
        .m = &m, .target = target, .spelling = hdi_spirv_spelling_of(target), .printed = out_printed
    };
    hdi_text globals = { .allocator = allocator }, body = globals;
    uint32_t entry = 0;
    *out_printed = (hdi_spirv_printed){ 0 };
    hd_status status = hdi_spirv_module_read(allocator, input, &m, error);
    if (status == HD_OK) status = hdi_spirv_reflect(&m, input->entry, &out_printed->info, &entry);
    if (status == HD_OK && !(hdi_spirv_begin(&p, entry) && put_kernel(&p, entry, &globals, &body, out_text)))
        status = m.status;
    hdi_text_free(&globals);
    hdi_text_free(&body);
    hdi_spirv_module_free(&m);
    return status;
}
