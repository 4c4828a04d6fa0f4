/* layout.c: where a model's layers go, and what that takes, in bytes, before anything is loaded. */
#include "llm/session.h"

enum { DEFAULT_CONTEXT = 4096, LEAST_BUCKET = HDL_PAGE_TOKENS };

/* ---- sizes ---- */

uint32_t hdl_layout_bucket(const hdl_layout *layout, uint32_t position) {
    uint32_t bucket = LEAST_BUCKET;
    while (bucket <= position) bucket *= 2;
    return bucket < layout->rows ? bucket : layout->rows;
}

static bool reads_halves(const hdl_layout *layout, uint32_t rows) {
    return layout->half_rows && rows >= layout->half_rows;
}

/* Sizes double up to a row for each sequence, and grow by four from there. Every row is a sequence of its own to the
 * plan. */
hdl_size hdl_layout_step(const hdl_layout *layout, uint32_t rows) {
    const uint32_t most = hdl_layout_step_rows(layout), sequences = layout->sequences;
    uint32_t size = 2;
    while (size < rows) size = size >= sequences ? 4 * size : 2 * size < sequences ? 2 * size : sequences;
    if (size > most) size = most;
    return (hdl_size){ size, 1, layout->rows, layout->pages, size < sequences ? size : sequences, 0, layout->context,
                       reads_halves(layout, size), layout->cache_type, 0 };
}

hdl_size hdl_layout_one(const hdl_layout *layout, uint32_t tokens, uint32_t bucket, uint32_t candidates) {
    return (hdl_size){ 1, tokens, bucket, layout->pages, 1, candidates, layout->context, reads_halves(layout, tokens),
                       layout->cache_type, 0 };
}

hdl_size hdl_layout_draft(const hdl_layout *layout, uint32_t rows, uint32_t bucket, uint32_t candidates) {
    return (hdl_size){ 1, rows, bucket, layout->pages, rows, candidates, layout->context, reads_halves(layout, rows),
                       layout->cache_type, 0 };
}

hdl_size hdl_layout_image(const hdl_layout *layout) {
    hdl_size size = hdl_layout_one(layout, layout->image_rows, layout->rows, 0);
    size.is_image = 1;
    return size;
}

/* ---- bytes ---- */

static bool is_cpu(hd_device *device) { return hd_device_get_info(device)->kind == HD_DEVICE_CPU; }

/* Where a model is. */
typedef struct where {
    const hd_model   *model;
    const hdl_layout *layout;
    hd_device        *device, *cpu;
    hdl_split         split;
} where;
enum { DEVICE, CPU, BOTH };

/* What a plan takes beside weights and cache: intermediates, tables, outputs, and inputs that are written for each
 * run. */
static hd_status plan_bytes(const where *w, hdl_size size, uint64_t inout_bytes[BOTH]) {
    const uint64_t rows = (uint64_t)size.sequences * size.tokens, each = size.is_image ? w->model->figures.hidden : 1;
    hdl_placed placed;
    hd_plan_memory memory[BOTH];
    hd_status status = hdl_graph_build(w->model, w->split, size, &placed);
    if (status) return status;
    const hd_plan_desc wish = hdl_placed_wish(&placed, &w->cpu, w->layout->math);
    status = hd_plan_estimate_each(w->device, placed.program, &wish, memory);
    hdl_placed_end(w->model, &placed);
    for (uint32_t at = 0; at <= wish.beside_count && !status; at++) {
        const bool embeds = at == (w->split.cpu_layers ? CPU : DEVICE);
        inout_bytes[at] += memory[at].scratch_bytes + memory[at].constant_bytes + memory[at].output_bytes;
        if (at == CPU && !w->split.cpu_layers) continue; /* experts read none of these inputs */
        inout_bytes[at] += hdl_aligned(rows * sizeof(int32_t)); /* positions */
        if (embeds) inout_bytes[at] += hdl_aligned(rows * each * sizeof(int32_t)); /* tokens, or rows of an image */
        inout_bytes[at] += hdl_aligned(size.sequences * sizeof(int32_t)); /* past */
        inout_bytes[at] += hdl_aligned(size.results * sizeof(int32_t)); /* last */
    }
    return status;
}

/* The same of a decode step, and of those with guesses. An answer that is drawn has a second plan for each: as large,
 * with candidates and scores. */
static hd_status decode_bytes(const where *w, uint32_t bucket, uint64_t inout_bytes[BOTH]) {
    const uint32_t most = w->layout->draft ? HDL_DRAFT_ROWS : 1;
    uint64_t all[BOTH] = { 0 };
    hd_status status = HD_OK;
    for (uint32_t rows = 1; rows <= most && !status; rows *= 2) {
        status = plan_bytes(w, hdl_layout_draft(w->layout, rows, bucket, 0), all);
        inout_bytes[DEVICE] += 2 * hdl_aligned(rows * hdl_candidates(w->model) * sizeof(float));
    }
    for (uint32_t at = 0; at < BOTH; at++) inout_bytes[at] += 2 * all[at];
    return status;
}

/* The same of all plans that a session may come to make. */
static hd_status scratch_bytes(const where *w, uint64_t out_bytes[BOTH]) {
    const hdl_layout *layout = w->layout;
    const uint32_t most = hdl_layout_step_rows(layout);
    hd_status status = HD_OK;
    out_bytes[DEVICE] = out_bytes[CPU] = 0;
    for (uint32_t rows = 1; rows < most && !status;) {
        const hdl_size size = hdl_layout_step(layout, rows + 1);
        status = plan_bytes(w, size, out_bytes);
        rows = size.sequences;
    }
    for (uint32_t bucket = hdl_layout_bucket(layout, 0), last = 0; !status && bucket != last;) {
        status = decode_bytes(w, bucket, out_bytes);
        last = bucket;
        bucket = hdl_layout_bucket(layout, bucket);
    }
    for (uint32_t at = 0; at < HD_MAX_PIECES && layout->pieces[at] && !status; at++)
        status = plan_bytes(w, hdl_layout_one(layout, layout->pieces[at], layout->rows, 0), out_bytes);
    if (layout->image_rows && !status) status = plan_bytes(w, hdl_layout_image(layout), out_bytes);
    return status;
}

typedef struct need { uint64_t weights, cache, scratch; } need;
static uint64_t total(need n) { return n.weights + n.cache + n.scratch; }

static uint64_t table_bytes(const hdl_layout *layout) {
    return hdl_table_bytes(hdl_layout_step_rows(layout), layout->rows / HDL_PAGE_TOKENS);
}

/* What the device takes, and the CPU where layers or experts run there. */
static hd_status need_of(const where *w, need out[BOTH]) {
    const hdl_split split = w->split;
    const uint32_t layers = w->model->figures.layers, pages = w->layout->pages;
    const hd_dtype type = w->layout->cache_type;
    uint64_t scratch[BOTH];
    const hd_status status = scratch_bytes(w, scratch);
    const hdl_part part = hdl_part_on_device(w->model, split);
    const uint64_t here = hdl_part_weight_bytes(w->model, part, is_cpu(w->device)),
                   halves = w->layout->half_rows ? hdl_part_half_bytes(w->model, part) : 0,
                   slots = hdl_slot_bytes(w->model, split.streamed_layers);
    out[DEVICE] = (need){ here + halves + slots, hdl_cache_bytes(w->model, type, layers - split.cpu_layers, pages),
                          scratch[DEVICE] + table_bytes(w->layout) };
    if (split.cpu_layers || split.cpu_experts)
        out[CPU] = (need){ hdl_part_weight_bytes(w->model, hdl_part_on_cpu(split), true),
                           hdl_cache_bytes(w->model, type, split.cpu_layers, pages),
                           scratch[CPU] + (split.cpu_layers ? table_bytes(w->layout) : 0) };
    return status;
}

/* ---- places ---- */

static void tell_device(hd_fit *fit, need n) {
    fit->device_weight_bytes = n.weights, fit->device_cache_bytes = n.cache;
    fit->device_scratch_bytes = n.scratch, fit->device_bytes = total(n);
}

static void tell_cpu(hd_fit *fit, need n) {
    fit->cpu_weight_bytes = n.weights, fit->cpu_cache_bytes = n.cache;
    fit->cpu_scratch_bytes = n.scratch, fit->cpu_bytes = total(n);
}

/* Everything on the device, which has so much memory, but for what the split says. */
static hd_status place(const hd_model *model, hdl_layout *layout, hd_device *cpu, hdl_split split, uint64_t has) {
    const uint32_t layers = model->figures.layers;
    const bool on_cpu = is_cpu(layout->device), beside = split.cpu_layers || split.streamed_layers || split.cpu_experts;
    hd_fit *fit = &layout->fit;
    need n[BOTH] = { 0 };
    fit->chunk = layout->pieces[0];
    layout->cpu = beside ? cpu : NULL;
    layout->split = split;
    const hd_status status = need_of(&(where){ model, layout, layout->device, cpu, split }, n);
    fit->device_layers = on_cpu ? 0 : layers - split.cpu_layers - split.streamed_layers;
    fit->cpu_layers = on_cpu ? layers : split.cpu_layers;
    fit->streamed_layers = split.streamed_layers;
    fit->cpu_experts = split.cpu_experts;
    if (!on_cpu) tell_device(fit, n[DEVICE]);
    fit->device_half_bytes = layout->half_rows ? hdl_part_half_bytes(model, hdl_part_on_device(model, split)) : 0;
    tell_cpu(fit, n[on_cpu ? DEVICE : CPU]);
    fit->fits = total(n[DEVICE]) <= has;
    return status;
}

/* Everything on the CPU, though there is another device. */
static hd_status move_to_cpu(const hd_model *model, hdl_layout *layout, hd_device *cpu) {
    layout->fit = (hd_fit){ .device_memory_bytes = layout->fit.device_memory_bytes };
    layout->device = cpu;
    return place(model, layout, NULL, (hdl_split){ 0 }, hd_device_get_info(cpu)->memory_bytes);
}

/* Do experts leave the device by themselves before whole layers do? */
static bool experts_go_first(const hd_model *model, const hd_session_desc *desc) {
    return model->figures.experts && !desc->stream && !desc->device_layers && !desc->cpu_experts;
}

/* Where all is once so many steps away from the device were made. Layers leave it from the first on, and so do experts,
 * which a run needs least of: a step takes one of them. */
static hdl_split split_after(const hd_model *model, const hd_session_desc *desc, uint32_t steps) {
    const uint32_t layers = model->figures.layers;
    uint32_t gone = steps, experts = desc->cpu_experts > 0 ? (uint32_t)desc->cpu_experts : 0;
    if (desc->stream) return (hdl_split){ .streamed_layers = gone };
    if (experts_go_first(model, desc)) {
        gone = steps > layers ? steps - layers : 0;
        experts = steps > layers ? layers : steps;
    }
    return (hdl_split){ .cpu_layers = gone, .cpu_experts = experts > gone ? experts - gone : 0 };
}

/* As few steps as the rest needs to fit, or as many as are wished for. The more there are the less it takes, so halving
 * finds how many. */
static hd_status divide(const hd_model *model, hdl_layout *layout, hd_device *cpu, const hd_session_desc *desc) {
    const uint32_t layers = model->figures.layers, all = experts_go_first(model, desc) ? 2 * layers : layers;
    const uint32_t wished = desc->device_layers > 0 ? (uint32_t)desc->device_layers : 0;
    const uint64_t has = layout->fit.device_memory_bytes;
    uint32_t steps = all - wished;
    for (uint32_t least = desc->device_layers ? steps : 0; least < steps;) {
        const uint32_t middle = least + (steps - least) / 2;
        const hd_status status = place(model, layout, cpu, split_after(model, desc, middle), has);
        if (status) return status;
        if (layout->fit.fits) steps = middle;
        else least = middle + 1;
    }
    return steps < all || desc->stream ? place(model, layout, cpu, split_after(model, desc, steps), has)
                                       : move_to_cpu(model, layout, cpu);
}

/* The wish, with everything on the device, in place of the layout, where all takes no more than half of the memory. */
static hd_status place_if_half(const hd_model *model, hdl_layout *wish, hdl_layout *inout) {
    const uint64_t has = inout->fit.device_memory_bytes;
    const hd_status status = place(model, wish, NULL, (hdl_split){ 0 }, has);
    if (!status && wish->fit.device_bytes <= has / 2) *inout = *wish;
    return status;
}

/* With copies of weights in f16, where runs of many rows would read them and all takes no more than half of the
 * device's memory; else the layout has no half_rows. */
static hd_status place_halves(const hd_model *model, hdl_layout *layout) {
    const uint32_t rows = hd_device_get_info(layout->device)->half_rows;
    const uint64_t most = layout->fit.device_memory_bytes / 2;
    const hdl_part all = hdl_part_on_device(model, (hdl_split){ 0 });
    const uint64_t bytes = hdl_part_half_bytes(model, all);
    if (layout->math == HD_MATH_EXACT || !rows || hdl_layout_most(layout) < rows) return HD_OK;
    if (!bytes || bytes + hdl_part_weight_bytes(model, all, false) > most) return HD_OK; /* spares estimates of plans */
    hdl_layout with = *layout;
    with.half_rows = rows;
    return place_if_half(model, &with, layout);
}

/* With pieces as large as there are, which a GPU of its own memory fills better, where all takes no more than half of
 * that; else the layout keeps its pieces. */
static hd_status place_large_pieces(const hd_model *model, const hd_session_desc *desc, hdl_layout *layout) {
    const hd_session_desc large = { .chunk = HDL_MOST_PIECE };
    const bool is_discrete = hd_device_get_info(layout->device)->kind == HD_DEVICE_DISCRETE_GPU;
    hdl_layout with = *layout;
    uint32_t at;
    if (desc->chunk || desc->pieces[0] || !is_discrete) return HD_OK;
    if (layout->fit.device_bytes > layout->fit.device_memory_bytes / 2) return HD_OK; /* spares estimates of plans */
    if (hdl_pieces_of(&large, layout->context, with.pieces, &at) || with.pieces[0] == layout->pieces[0]) return HD_OK;
    return place_if_half(model, &with, layout);
}

void hdl_layout_leave_halves(hdl_layout *layout) {
    layout->fit.device_weight_bytes -= layout->fit.device_half_bytes;
    layout->fit.device_bytes -= layout->fit.device_half_bytes;
    layout->fit.device_half_bytes = layout->half_rows = 0;
}

/* ---- wishes ---- */

static hd_status check_cache_type(const hd_model *model, hd_dtype type) {
    const bool blocks = type == HD_Q8_0 || type == HD_Q4_0;
    if (!blocks && type != HD_F32 && type != HD_F16)
        return hdl_model_fail(model, HD_STATUS_INVALID_ARGUMENT, "a cache is of f32, f16, q8_0 or q4_0");
    if (!blocks || model->figures.head_size % 32 == 0) return HD_OK;
    return hdl_model_fail(model, HD_STATUS_UNSUPPORTED,
                          "the model's heads have %u elements, and a cache of %s takes blocks of 32; take one of f16",
                          model->figures.head_size, hd_dtype_name(type));
}

static hd_status check_places(const hd_model *model, const hd_session_desc *desc) {
    const int layers = (int)model->figures.layers;
    if (desc->device_layers < -1 || desc->device_layers > layers)
        return hdl_model_fail(model, HD_STATUS_INVALID_ARGUMENT,
                              "device_layers is -1, 0, or a number of layers that the model has");
    if (desc->cpu_experts < -1 || desc->cpu_experts > layers)
        return hdl_model_fail(model, HD_STATUS_INVALID_ARGUMENT,
                              "cpu_experts is -1, 0, or a number of layers that the model has");
    if (desc->cpu_experts > 0 && !model->figures.experts)
        return hdl_model_fail(model, HD_STATUS_INVALID_ARGUMENT,
                              "the model has no experts that could be left to the CPU; do not ask for that");
    if (desc->cpu_experts > 0 && desc->stream)
        return hdl_model_fail(model, HD_STATUS_INVALID_ARGUMENT,
                              "layers that travel take their experts along; ask for one of the two");
    return HD_OK;
}

static hd_status resolve(const hd_model *model, const hd_session_desc *desc, hd_device *device, hdl_layout *out) {
    const uint32_t made_for = model->figures.context;
    *out = (hdl_layout){ .context = desc->context ? desc->context : made_for < DEFAULT_CONTEXT ? made_for
                         : DEFAULT_CONTEXT, .sequences = desc->sequences ? desc->sequences : 1,
                         .math = desc->math, .draft = desc->draft, .image_rows = desc->image_rows,
                         .cache_type = desc->cache_type == HD_DTYPE_NONE ? HD_F16 : desc->cache_type };
    if (out->context > 1u << 24 || out->sequences > HDL_MOST_SEQUENCES)
        return hdl_model_fail(model, HD_STATUS_INVALID_ARGUMENT, "a session has at most 2^24 tokens and 256 sequences");
    if (out->context > made_for && hdl_weight_of(model, 0, "position_embd.weight")->present)
        return hdl_model_fail(model, HD_STATUS_UNSUPPORTED,
                              "the model knows positions of %u tokens; give a context of at most as many", made_for);
    if (desc->image_rows && !model->figures.sees)
        return hdl_model_fail(model, HD_STATUS_UNSUPPORTED, "this %s does not see; take a gemma3", model->arch_name);
    if (desc->image_rows > out->context)
        return hdl_model_fail(model, HD_STATUS_LIMIT, "an image of %u rows does not fit into a context of %u",
                              desc->image_rows, out->context);
    if (desc->draft != HD_DRAFT_NONE && desc->draft != HD_DRAFT_LOOKUP)
        return hdl_model_fail(model, HD_STATUS_INVALID_ARGUMENT, "a session's draft is none that there is");
    if (desc->chunk > 1u << 16)
        return hdl_model_fail(model, HD_STATUS_INVALID_ARGUMENT, "a chunk has at most 65536 tokens");
    const uint32_t most = (out->context + HDL_PAGE_TOKENS - 1) / HDL_PAGE_TOKENS; /* pages of a sequence */
    const uint64_t wished = desc->cache_tokens / HDL_PAGE_TOKENS + (desc->cache_tokens % HDL_PAGE_TOKENS != 0);
    out->rows = most * HDL_PAGE_TOKENS;
    out->pages = wished && wished < (uint64_t)out->sequences * most ? (uint32_t)wished : out->sequences * most;
    uint32_t at;
    out->run_rows = hd_piece_run_rows(device);
    const char *wrong = hdl_pieces_of(desc, out->context, out->pieces, &at);
    if (wrong)
        return hdl_model_fail(model, HD_STATUS_INVALID_ARGUMENT, "pieces[%u], %u, %s", at, desc->pieces[at], wrong);
    const uint64_t has = hd_device_get_info(device)->memory_bytes;
    out->fit.device_memory_bytes = desc->memory_bytes && desc->memory_bytes < has ? desc->memory_bytes : has;
    const hd_status status = check_places(model, desc);
    return status ? status : check_cache_type(model, out->cache_type);
}

hd_status hdl_layout_make(const hd_model *model, const hd_session_desc *desc, hd_device *device, hd_device *cpu,
                          hdl_layout *out) {
    hd_status status = resolve(model, desc, device, out);
    if (status) return status;
    const int wished = desc->device_layers;
    const uint64_t has = out->fit.device_memory_bytes;
    out->device = device;
    if (is_cpu(device)) return place(model, out, NULL, (hdl_split){ 0 }, has);
    if (desc->cpu_experts <= 0 && (wished == 0 || wished == (int)model->figures.layers)) {
        status = place_halves(model, out);
        if (!status && !out->half_rows) status = place(model, out, NULL, (hdl_split){ 0 }, has);
        if (!status) status = place_large_pieces(model, desc, out);
        if (status || out->fit.fits || wished) return status;
    }
    return cpu ? divide(model, out, cpu, desc) : HD_STATUS_NO_DEVICE;
}
