/* layout.c: where a model's layers go, and what that takes, in bytes, before anything is loaded. */
#include "llm/session.h"

enum { DEFAULT_CONTEXT = 4096, DEFAULT_CHUNK = 512, LEAST_BUCKET = HDL_PAGE_TOKENS, LEAST_TOKENS = 8 };

/* ---- sizes ---- */

/* Prompts run in pieces of `chunk`, a quarter of it, a sixteenth, ..., so that few plans are made; the last piece is padded, by
 * less than what it holds. */
static uint32_t smaller(uint32_t tokens) { return tokens == LEAST_TOKENS ? 0 : tokens < 4 * LEAST_TOKENS ? LEAST_TOKENS : tokens / 4; }
uint32_t hdl_layout_tokens(const hdl_layout *layout, uint64_t left) {
    uint32_t tokens = layout->chunk;
    if (left == 1) return 1;
    while (tokens > LEAST_TOKENS && left <= tokens / 2) tokens = smaller(tokens);
    return tokens;
}

uint32_t hdl_layout_bucket(const hdl_layout *layout, uint32_t position) {
    uint32_t bucket = LEAST_BUCKET;
    while (bucket <= position) bucket *= 2;
    return bucket < layout->rows ? bucket : layout->rows;
}

/* Sizes double up to a row for each sequence, and grow by four from there. Every row is a sequence of its own to the plan. */
hdl_size hdl_layout_step(const hdl_layout *layout, uint32_t rows) {
    const uint32_t most = hdl_layout_step_rows(layout), sequences = layout->sequences;
    uint32_t size = 2;
    while (size < rows) size = size >= sequences ? 4 * size : 2 * size < sequences ? 2 * size : sequences;
    if (size > most) size = most;
    return (hdl_size){ size, 1, layout->rows, layout->pages, size < sequences ? size : sequences, 0 };
}

/* ---- bytes ---- */

/* What a plan takes beside weights and cache: intermediates, tables, outputs, and inputs that are written for each run. */
static hd_status plan_bytes(const hd_model *model, hd_device *device, const hdl_layout *layout, hdl_part part,
                            hdl_size size, uint64_t *inout_bytes) {
    const uint64_t rows = (uint64_t)size.sequences * size.tokens;
    hd_program *program;
    hd_plan_memory memory;
    hd_status status = hdl_graph_build(model, part, size, &program);
    if (status) return status;
    status = hd_plan_estimate(device, program, &(hd_plan_desc){ .math = layout->math }, &memory);
    hd_program_destroy(program);
    if (status) return status;
    *inout_bytes += memory.scratch_bytes + memory.constant_bytes + memory.output_bytes;
    *inout_bytes += hdl_aligned(rows * sizeof(int32_t)) * (part.embeds ? 2 : 1); /* positions, tokens */
    *inout_bytes += hdl_aligned(size.sequences * sizeof(int32_t)) + hdl_aligned(size.results * sizeof(int32_t)); /* past, last */
    if (!part.embeds && !part.nameless) *inout_bytes += hdl_aligned(rows * model->figures.hidden * sizeof(float));
    return HD_OK;
}

/* The same of a decode step. An answer that is drawn has a second plan for it: as large, with candidates and scores. */
static hd_status decode_bytes(const hd_model *model, hd_device *device, const hdl_layout *layout, hdl_part part,
                              uint32_t bucket, uint64_t *inout_bytes) {
    const uint64_t before = *inout_bytes;
    const hd_status status = plan_bytes(model, device, layout, part, (hdl_size){ 1, 1, bucket, layout->pages, 1, 0 }, inout_bytes);
    if (part.heads) *inout_bytes += *inout_bytes - before + 2 * hdl_aligned(hdl_candidates(model) * sizeof(float));
    return status;
}

/* The same of all plans that a session may come to make. */
static hd_status scratch_bytes(const hd_model *model, hd_device *device, const hdl_layout *layout, hdl_part part, uint64_t *out_bytes) {
    const uint32_t pages = layout->pages, most = hdl_layout_step_rows(layout);
    hd_status status = HD_OK;
    *out_bytes = 0;
    for (uint32_t rows = 1; rows < most && !status;) {
        const hdl_size size = hdl_layout_step(layout, rows + 1);
        status = plan_bytes(model, device, layout, part, size, out_bytes);
        rows = size.sequences;
    }
    for (uint32_t bucket = hdl_layout_bucket(layout, 0), last = 0; !status && bucket != last;) {
        status = decode_bytes(model, device, layout, part, bucket, out_bytes);
        last = bucket;
        bucket = hdl_layout_bucket(layout, bucket);
    }
    for (uint32_t tokens = layout->chunk; tokens && !status; tokens = smaller(tokens))
        status = plan_bytes(model, device, layout, part, (hdl_size){ 1, tokens, layout->rows, pages, 1, 0 }, out_bytes);
    return status;
}

typedef struct need { uint64_t weights, cache, scratch; } need;
static uint64_t total(need n) { return n.weights + n.cache + n.scratch; }

static uint64_t table_bytes(const hdl_layout *layout) {
    return hdl_table_bytes(hdl_layout_step_rows(layout), layout->rows / HDL_PAGE_TOKENS);
}

/* What a stage takes that is not streamed. */
static hd_status need_of(const hd_model *model, hd_device *device, const hdl_layout *layout, hdl_part part, need *out) {
    out->weights = hdl_part_weight_bytes(model, part);
    out->cache = hdl_cache_bytes(model, part.layer_count, layout->pages);
    const hd_status status = scratch_bytes(model, device, layout, part, &out->scratch);
    out->scratch += table_bytes(layout);
    return status;
}

/* ---- places ---- */

static hdl_part first_layers(uint32_t count) { return (hdl_part){ 0, count, true, false, false }; }
static hdl_part last_layers(const hd_model *model, uint32_t count) {
    const uint32_t layers = model->figures.layers;
    return (hdl_part){ layers - count, count, count == layers, true, false };
}

static bool is_cpu(hd_device *device) { return hd_device_get_info(device)->kind == HD_DEVICE_CPU; }

/* Everything on one device, which has so much memory. */
static hd_status whole(const hd_model *model, hdl_layout *layout, hd_device *device, uint64_t has) {
    need n = { 0 };
    const hd_status status = need_of(model, device, layout, last_layers(model, model->figures.layers), &n);
    layout->stage_count = 1;
    layout->devices[0] = device;
    layout->parts[0] = last_layers(model, model->figures.layers);
    hd_fit *fit = &layout->fit;
    fit->fits = total(n) <= has;
    if (is_cpu(device)) {
        fit->cpu_layers = model->figures.layers;
        fit->cpu_weight_bytes = n.weights, fit->cpu_cache_bytes = n.cache, fit->cpu_scratch_bytes = n.scratch, fit->cpu_bytes = total(n);
    } else {
        fit->device_layers = model->figures.layers;
        fit->device_weight_bytes = n.weights, fit->device_cache_bytes = n.cache, fit->device_scratch_bytes = n.scratch,
        fit->device_bytes = total(n);
    }
    return status;
}

/* The last `count` layers on the device, the first ones on the CPU. */
static hd_status split(const hd_model *model, hdl_layout *layout, hd_device *device, hd_device *cpu, uint32_t count) {
    need below = { 0 }, above = { 0 };
    const uint32_t layers = model->figures.layers;
    hd_status status = need_of(model, device, layout, last_layers(model, count), &above);
    if (!status) status = need_of(model, cpu, layout, first_layers(layers - count), &below);
    layout->stage_count = 2;
    layout->devices[0] = cpu, layout->parts[0] = first_layers(layers - count);
    layout->devices[1] = device, layout->parts[1] = last_layers(model, count);
    hd_fit *fit = &layout->fit;
    fit->device_layers = count, fit->cpu_layers = layers - count;
    fit->device_weight_bytes = above.weights, fit->device_cache_bytes = above.cache,
    fit->device_scratch_bytes = above.scratch, fit->device_bytes = total(above);
    fit->cpu_weight_bytes = below.weights, fit->cpu_cache_bytes = below.cache, fit->cpu_scratch_bytes = below.scratch,
    fit->cpu_bytes = total(below);
    fit->fits = total(above) <= fit->device_memory_bytes;
    return status;
}

/* Kinds of layers among the first `count`: each has plans of its own when it travels. */
static uint32_t kinds_of_layers(const hd_model *model, uint32_t count) {
    uint32_t kinds = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t k = 0;
        while (k < i && !hdl_layers_alike(model, k, i)) k++;
        kinds += k == i;
    }
    return kinds;
}

/* The last `count` layers stay on the device, the first ones travel; the embedding stays, and the cache of all layers. */
static hd_status stream_with(const hd_model *model, hdl_layout *layout, hd_device *device, uint32_t count) {
    const uint32_t layers = model->figures.layers;
    const hdl_part embedding = { .embeds = true }, travelling = { .layer_count = layers - count },
                   staying = { layers - count, count, false, true, false };
    const hdl_part one = { 0, 1, false, false, true };
    const uint64_t rows = hdl_layout_most(layout);
    hd_fit *fit = &layout->fit;
    need a, c;
    uint64_t each; /* of the plans for a kind of layers */
    hd_status status = need_of(model, device, layout, embedding, &a);
    if (!status) status = scratch_bytes(model, device, layout, one, &each);
    if (!status) status = need_of(model, device, layout, staying, &c);
    if (status) return status;
    fit->device_layers = count, fit->streamed_layers = layers - count;
    fit->device_weight_bytes = c.weights + hdl_part_slot_bytes(model, travelling) + a.weights;
    fit->device_cache_bytes = hdl_cache_bytes(model, layers, layout->pages);
    fit->device_scratch_bytes = a.scratch + kinds_of_layers(model, layers - count) * each + table_bytes(layout) +
                                c.scratch + 2 * hdl_aligned(rows * model->figures.hidden * sizeof(float));
    fit->device_bytes = fit->device_weight_bytes + fit->device_cache_bytes + fit->device_scratch_bytes;
    fit->fits = fit->device_bytes <= fit->device_memory_bytes;
    layout->stage_count = 3;
    layout->parts[0] = embedding, layout->parts[1] = travelling, layout->parts[2] = staying;
    layout->streamed[1] = true;
    for (int i = 0; i < 3; i++) layout->devices[i] = device;
    return HD_OK;
}

/* As many of the last layers as fit stay on the device; the more stay the more it takes, so halving finds them. */
static hd_status stream(const hd_model *model, hdl_layout *layout, hd_device *device) {
    uint32_t fits = 0;
    for (uint32_t above = model->figures.layers; above - fits > 1;) {
        const uint32_t count = fits + (above - fits) / 2;
        const hd_status status = stream_with(model, layout, device, count);
        if (status) return status;
        *(layout->fit.fits ? &fits : &above) = count;
    }
    return stream_with(model, layout, device, fits);
}

/* The same beside the CPU. */
static hd_status as_many_as_fit(const hd_model *model, hdl_layout *layout, hd_device *device, hd_device *cpu) {
    uint32_t fits = 0;
    for (uint32_t above = model->figures.layers; above - fits > 1;) {
        const uint32_t count = fits + (above - fits) / 2;
        const hd_status status = split(model, layout, device, cpu, count);
        if (status) return status;
        *(layout->fit.fits ? &fits : &above) = count;
    }
    if (fits) return split(model, layout, device, cpu, fits);
    layout->fit = (hd_fit){ .device_memory_bytes = layout->fit.device_memory_bytes };
    return whole(model, layout, cpu, hd_device_get_info(cpu)->memory_bytes);
}

/* ---- wishes ---- */

static hd_status resolve(const hd_model *model, const hd_session_desc *desc, hd_device *device, hdl_layout *out) {
    const uint32_t made_for = model->figures.context, layers = model->figures.layers;
    *out = (hdl_layout){ .context = desc->context ? desc->context : made_for < DEFAULT_CONTEXT ? made_for : DEFAULT_CONTEXT,
                         .sequences = desc->sequences ? desc->sequences : 1, .chunk = DEFAULT_CHUNK, .math = desc->math };
    if (out->context > 1u << 24 || out->sequences > HDL_MOST_SEQUENCES)
        return hdl_model_fail(model, HD_STATUS_INVALID_ARGUMENT, "a session has at most 2^24 tokens and 256 sequences");
    if (desc->chunk > 1u << 16) return hdl_model_fail(model, HD_STATUS_INVALID_ARGUMENT, "a chunk has at most 65536 tokens");
    if (desc->device_layers < -1 || desc->device_layers > (int)layers)
        return hdl_model_fail(model, HD_STATUS_INVALID_ARGUMENT,
                              "device_layers is -1, 0, or a number of layers that the model has");
    const uint32_t most = (out->context + HDL_PAGE_TOKENS - 1) / HDL_PAGE_TOKENS; /* pages of a sequence */
    const uint64_t wished = desc->cache_tokens / HDL_PAGE_TOKENS + (desc->cache_tokens % HDL_PAGE_TOKENS != 0);
    out->rows = most * HDL_PAGE_TOKENS;
    out->pages = wished && wished < (uint64_t)out->sequences * most ? (uint32_t)wished : out->sequences * most;
    while (out->chunk > LEAST_TOKENS && (out->chunk > out->rows || (desc->chunk && out->chunk > desc->chunk))) out->chunk /= 2;
    const uint64_t has = hd_device_get_info(device)->memory_bytes;
    out->fit.device_memory_bytes = desc->memory_bytes && desc->memory_bytes < has ? desc->memory_bytes : has;
    return HD_OK;
}

hd_status hdl_layout_make(const hd_model *model, const hd_session_desc *desc, hd_device *device, hd_device *cpu, hdl_layout *out) {
    hd_status status = resolve(model, desc, device, out);
    if (status) return status;
    const uint32_t layers = model->figures.layers;
    const uint64_t has = out->fit.device_memory_bytes;
    if (is_cpu(device)) return whole(model, out, device, has);
    if (desc->device_layers == 0 || desc->device_layers == (int)layers) {
        status = whole(model, out, device, has);
        if (status || out->fit.fits || desc->device_layers) return status;
    }
    if (desc->stream && desc->device_layers)
        return stream_with(model, out, device, desc->device_layers > 0 ? (uint32_t)desc->device_layers : 0);
    if (desc->stream) return stream(model, out, device);
    if (!cpu) return HD_STATUS_NO_DEVICE;
    out->fit = (hd_fit){ .device_memory_bytes = has };
    if (desc->device_layers == -1) return whole(model, out, cpu, hd_device_get_info(cpu)->memory_bytes);
    return desc->device_layers ? split(model, out, device, cpu, (uint32_t)desc->device_layers) : as_many_as_fit(model, out, device, cpu);
}
