/* layout.c: where a model's layers go, and what that takes, in bytes, before anything is loaded. */
#include "llm/session.h"

enum { DEFAULT_CONTEXT = 4096, DEFAULT_CHUNK = 512, LEAST_BUCKET = 256, LEAST_TOKENS = 8 };

static hd_status fail(const hd_model *model, hd_status status, const char *text) {
    hd_error error = { 0 };
    hdl_fail(&error, status, "%s", text);
    return hd_context_put_error(model->context, &error);
}

/* ---- sizes ---- */

/* Prompts run in pieces of `chunk`, a quarter of it, a sixteenth, ..., so that few plans are made; the last piece is padded, by
 * less than what it holds. */
uint32_t hdl_layout_tokens(const hdl_layout *layout, uint64_t left) {
    uint32_t tokens = layout->chunk;
    if (left == 1) return 1;
    while (tokens > LEAST_TOKENS && left <= tokens / 2) tokens /= 4;
    return tokens < LEAST_TOKENS ? LEAST_TOKENS : tokens;
}

uint32_t hdl_layout_bucket(const hdl_layout *layout, uint32_t position) {
    uint32_t bucket = LEAST_BUCKET;
    while (bucket <= position) bucket *= 2;
    return bucket < layout->rows ? bucket : layout->rows;
}

/* ---- bytes ---- */

/* What plans of a part take beside weights and cache: intermediates, tables, inputs and outputs. */
static hd_status scratch_bytes(const hd_model *model, hd_device *device, const hdl_layout *layout, hdl_part part, uint64_t *out_bytes) {
    hdl_size sizes[16] = { { layout->sequences, 1, layout->rows } };
    uint32_t count = 1;
    for (uint32_t tokens = layout->chunk; tokens >= LEAST_TOKENS && count < 16; tokens /= 4) sizes[count++] = (hdl_size){ 1, tokens, layout->rows };
    *out_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        hd_program *program;
        hd_plan_memory memory;
        hd_status status = hdl_graph_build(model, part, sizes[i], &program);
        if (status) return status;
        status = hd_plan_estimate(device, program, &(hd_plan_desc){ .math = layout->math }, &memory);
        hd_program_destroy(program);
        if (status) return status;
        *out_bytes += memory.scratch_bytes + memory.constant_bytes + memory.output_bytes;
    }
    return HD_OK;
}

typedef struct need { uint64_t weights, cache, scratch; } need;
static uint64_t total(need n) { return n.weights + n.cache + n.scratch; }

static hd_status need_of(const hd_model *model, hd_device *device, const hdl_layout *layout, hdl_part part, need *out) {
    out->weights = hdl_part_weight_bytes(model, part);
    out->cache = hdl_cache_bytes(model, part.layer_count, layout->sequences, layout->rows);
    return scratch_bytes(model, device, layout, part, &out->scratch);
}

/* ---- places ---- */

static hdl_part first_layers(uint32_t count) { return (hdl_part){ 0, count, true, false, false }; }
static hdl_part last_layers(const hd_model *model, uint32_t count) {
    const uint32_t layers = model->figures.layers;
    return (hdl_part){ layers - count, count, count == layers, true, false };
}

static bool is_cpu(hd_device *device) { return hd_device_get_info(device)->kind == HD_DEVICE_CPU; }

/* Everything on one device. */
static hd_status whole(const hd_model *model, hdl_layout *layout, hd_device *device) {
    need n;
    const hd_status status = need_of(model, device, layout, last_layers(model, model->figures.layers), &n);
    layout->stage_count = 1;
    layout->devices[0] = device;
    layout->parts[0] = last_layers(model, model->figures.layers);
    hd_fit *fit = &layout->fit;
    fit->fits = total(n) <= fit->device_memory_bytes;
    if (is_cpu(device)) {
        fit->cpu_layers = model->figures.layers;
        fit->cpu_weight_bytes = n.weights, fit->cpu_cache_bytes = n.cache, fit->cpu_scratch_bytes = n.scratch, fit->cpu_bytes = total(n);
    } else {
        fit->device_layers = model->figures.layers;
        fit->device_weight_bytes = n.weights, fit->device_cache_bytes = n.cache, fit->device_scratch_bytes = n.scratch, fit->device_bytes = total(n);
    }
    return status;
}

/* The last `count` layers on the device, the first ones on the CPU. */
static hd_status split(const hd_model *model, hdl_layout *layout, hd_device *device, hd_device *cpu, uint32_t count) {
    need below, above;
    const uint32_t layers = model->figures.layers;
    hd_status status = need_of(model, device, layout, last_layers(model, count), &above);
    if (!status) status = need_of(model, cpu, layout, first_layers(layers - count), &below);
    layout->stage_count = 2;
    layout->devices[0] = cpu, layout->parts[0] = first_layers(layers - count);
    layout->devices[1] = device, layout->parts[1] = last_layers(model, count);
    hd_fit *fit = &layout->fit;
    fit->device_layers = count, fit->cpu_layers = layers - count;
    fit->device_weight_bytes = above.weights, fit->device_cache_bytes = above.cache, fit->device_scratch_bytes = above.scratch, fit->device_bytes = total(above);
    fit->cpu_weight_bytes = below.weights, fit->cpu_cache_bytes = below.cache, fit->cpu_scratch_bytes = below.scratch, fit->cpu_bytes = total(below);
    fit->fits = total(above) <= fit->device_memory_bytes;
    return status;
}

/* As many of the last layers as fit stay on the device, the first ones travel; so does the embedding's share of the work, which is
 * little. The cache of all layers stays. */
static hd_status stream(const hd_model *model, hdl_layout *layout, hd_device *device) {
    const uint32_t layers = model->figures.layers;
    hd_fit *fit = &layout->fit;
    hd_status status = HD_OK;
    for (uint32_t count = layers - 1; count + 1 > 0 && !status; count--) {
        const hdl_part embedding = { .embeds = true }, travelling = { .layer_count = layers - count }, staying = { layers - count, count, false, true, false };
        const hdl_part one = { 0, 1, false, false, true };
        need a, b, c;
        const uint64_t hidden = 2 * hdl_aligned((uint64_t)(layout->chunk > layout->sequences ? layout->chunk : layout->sequences) * model->figures.hidden * sizeof(float));
        status = need_of(model, device, layout, embedding, &a);
        if (!status) status = need_of(model, device, layout, one, &b);
        if (!status) status = need_of(model, device, layout, staying, &c);
        fit->device_layers = count, fit->streamed_layers = layers - count;
        fit->device_weight_bytes = hdl_part_weight_bytes(model, staying) + hdl_part_slot_bytes(model, travelling) + a.weights;
        fit->device_cache_bytes = hdl_cache_bytes(model, layers, layout->sequences, layout->rows);
        fit->device_scratch_bytes = a.scratch + b.scratch + c.scratch + hidden;
        fit->device_bytes = fit->device_weight_bytes + fit->device_cache_bytes + fit->device_scratch_bytes;
        fit->fits = fit->device_bytes <= fit->device_memory_bytes;
        layout->stage_count = 3;
        layout->parts[0] = embedding, layout->parts[1] = travelling, layout->parts[2] = staying;
        layout->streamed[1] = true;
        for (int i = 0; i < 3; i++) layout->devices[i] = device;
        if (fit->fits) break;
    }
    return status;
}

/* The most layers that fit on the device beside the CPU; layers differ little, so the search goes down from an estimate. */
static hd_status as_many_as_fit(const hd_model *model, hdl_layout *layout, hd_device *device, hd_device *cpu) {
    for (uint32_t count = model->figures.layers - 1; count > 0; count--) {
        const hdl_part part = last_layers(model, count);
        const uint64_t least = hdl_part_weight_bytes(model, part) + hdl_cache_bytes(model, count, layout->sequences, layout->rows);
        if (least > layout->fit.device_memory_bytes) continue;
        const hd_status status = split(model, layout, device, cpu, count);
        if (status || layout->fit.fits) return status;
    }
    return whole(model, layout, cpu);
}

/* ---- wishes ---- */

static hd_status resolve(const hd_model *model, const hd_session_desc *desc, hd_device *device, hdl_layout *out) {
    const uint32_t made_for = model->figures.context, layers = model->figures.layers;
    *out = (hdl_layout){ .context = desc->context ? desc->context : made_for < DEFAULT_CONTEXT ? made_for : DEFAULT_CONTEXT,
                         .sequences = desc->sequences ? desc->sequences : 1, .chunk = DEFAULT_CHUNK, .math = desc->math };
    if (out->context > 1u << 24 || out->sequences > 256) return fail(model, HD_STATUS_INVALID_ARGUMENT, "a session has at most 2^24 tokens and 256 sequences");
    if (desc->chunk > 1u << 16) return fail(model, HD_STATUS_INVALID_ARGUMENT, "a chunk has at most 65536 tokens");
    if (desc->device_layers < -1 || desc->device_layers > (int)layers) return fail(model, HD_STATUS_INVALID_ARGUMENT, "device_layers is -1, 0, or a number of layers that the model has");
    out->rows = (out->context + 255) / 256 * 256;
    while (out->chunk > LEAST_TOKENS && (out->chunk > out->rows || (desc->chunk && out->chunk > desc->chunk))) out->chunk /= 2;
    const uint64_t has = hd_device_get_info(device)->memory_bytes;
    out->fit.device_memory_bytes = desc->memory_bytes && desc->memory_bytes < has ? desc->memory_bytes : has;
    return HD_OK;
}

hd_status hdl_layout_make(const hd_model *model, const hd_session_desc *desc, hd_device *device, hd_device *cpu, hdl_layout *out) {
    hd_status status = resolve(model, desc, device, out);
    if (status) return status;
    const uint32_t layers = model->figures.layers;
    if (is_cpu(device)) return whole(model, out, device);
    if (desc->device_layers == 0 || desc->device_layers == (int)layers) {
        status = whole(model, out, device);
        if (status || out->fit.fits || desc->device_layers) return status;
    }
    if (desc->stream) return stream(model, out, device);
    if (!cpu) return HD_STATUS_NO_DEVICE;
    const uint64_t has = out->fit.device_memory_bytes;
    out->fit = (hd_fit){ .device_memory_bytes = has };
    if (desc->device_layers == -1) return whole(model, out, cpu);
    return desc->device_layers ? split(model, out, device, cpu, (uint32_t)desc->device_layers) : as_many_as_fit(model, out, device, cpu);
}
