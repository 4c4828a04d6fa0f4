/* stage.c: weights and cache on a device, and the plans that use them. A GPU gets the weights in slabs, since a device has
 * few allocations to give; the CPU uses them where the file is mapped, so that loading costs nothing. */
#include "llm/i2s.h"
#include "llm/stage.h"
#include <stdio.h>

#define SLAB_BYTES  (UINT64_C(512) << 20)
#define LAST_WAIT_NS UINT64_C(3600000000000) /* an hour: what the CPU does ends, however slow the machine */
#define PIECE_BYTES (UINT64_C(16) << 20) /* between two calls of the progress function */

static bool is_cpu(const hdl_stage *stage) { return hd_device_get_info(stage->device)->kind == HD_DEVICE_CPU; }
/* Is the weight used where the file is mapped? */
static bool borrows(const hdl_stage *stage, const hdl_weight *w) { return is_cpu(stage) && w->tensor.type != HDL_GGUF_TYPE_I2_S; }

/* ---- bytes ---- */

uint64_t hdl_part_weight_bytes(const hd_model *model, hdl_part part) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < model->weight_count; i++)
        if (hdl_part_needs(model, part, i)) bytes += hdl_aligned(hdl_weight_bytes(&model->weights[i]));
    return bytes;
}

uint64_t hdl_part_slot_bytes(const hd_model *model, hdl_part part) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < part.layer_count; i++) {
        const uint64_t bytes = hdl_part_weight_bytes(model, (hdl_part){ part.first_layer + i, 1, false, false, false });
        if (bytes > most) most = bytes;
    }
    return 2 * most;
}

uint64_t hdl_cache_bytes(const hd_model *model, uint32_t layers, uint32_t pages) {
    const uint64_t row = UINT64_C(4) * model->figures.kv_heads * model->figures.head_size; /* keys and values of 2 bytes */
    uint64_t bytes;
    return hdl_mul(row * layers, (uint64_t)pages * HDL_PAGE_TOKENS, &bytes) && bytes < HDL_MOST_BYTES ? bytes : HDL_MOST_BYTES;
}

uint64_t hdl_table_bytes(uint32_t rows, uint32_t width) { return hdl_aligned((uint64_t)rows * width * sizeof(int32_t)); }

/* ---- weights ---- */

hd_status hdl_stage_buffer(hdl_stage *stage, const hd_buffer_desc *desc, hd_buffer **out) {
    const hd_allocator *allocator = &stage->model->allocator;
    if (stage->buffer_count == stage->buffer_capacity) {
        const uint32_t wanted = stage->buffer_capacity ? 2 * stage->buffer_capacity : 64;
        if (!hdl_resize(allocator, &stage->buffers, stage->buffer_capacity * sizeof *stage->buffers, wanted * sizeof *stage->buffers))
            return hdl_model_fail(stage->model, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the list of buffers");
        stage->buffer_capacity = wanted;
    }
    const hd_status status = hd_buffer_create(stage->device, desc, out);
    if (!status) stage->buffers[stage->buffer_count++] = *out;
    return status;
}

static void tell(hdl_loading *loading, uint64_t bytes) {
    if (!loading) return;
    loading->done += bytes;
    if (loading->progress) loading->progress(loading->user, loading->done, loading->total);
}

/* Writes a weight into a buffer: as it is, or unpacked where the device's type is another one. */
hd_status hdl_stage_fill(hdl_stage *stage, const hdl_weight *w, hd_buffer *buffer, uint64_t offset, hdl_loading *loading) {
    const hd_model *model = stage->model;
    hd_error error = { 0 };
    hdl_span data;
    if (hdl_gguf_data(model->gguf, &w->tensor, &data, &error)) return hd_context_put_error(model->context, &error);
    if (w->tensor.type != HDL_GGUF_TYPE_I2_S) {
        hd_status status = HD_OK;
        for (uint64_t at = 0; at < data.count && !status;) {
            const uint64_t piece = data.count - at < PIECE_BYTES ? data.count - at : PIECE_BYTES;
            status = hd_buffer_write(buffer, offset + at, data.bytes + at, piece);
            tell(loading, piece);
            at += piece;
        }
        return status;
    }
    const uint64_t bytes = hdl_weight_bytes(w);
    float scale; /* known since the model was opened: it is the weight's factor */
    void *blocks = hdl_alloc(&model->allocator, bytes);
    if (!blocks) return hdl_model_fail(stage->model, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to unpack a weight");
    hd_error inner = { 0 };
    char quoted[HDL_QUOTE];
    hd_status status = hdl_i2s_unpack(data.bytes, data.count, w->shape, blocks, bytes, &scale, &inner);
    if (status) hdl_fail(&error, status, "tensor %s: %s", hdl_quote(w->tensor.name, quoted), inner.text);
    status = status ? hd_context_put_error(model->context, &error) : hd_buffer_write(buffer, offset, blocks, bytes);
    hdl_free(&model->allocator, blocks, bytes);
    tell(loading, bytes);
    return status;
}

/* Bytes of the slab that begins with weight `first`: of all weights up to the limit, so that no slab ends in unused room. */
static uint64_t slab_bytes(const hdl_stage *stage, uint32_t first) {
    uint64_t bytes = 0;
    for (uint32_t i = first; i < stage->model->weight_count; i++) {
        const hdl_weight *w = &stage->model->weights[i];
        if (!hdl_part_needs(stage->model, stage->part, i) || borrows(stage, w)) continue;
        const uint64_t more = hdl_aligned(hdl_weight_bytes(w));
        if (bytes && bytes + more > SLAB_BYTES) break;
        bytes += more;
    }
    return bytes;
}

/* The CPU's way: every weight is a buffer over the mapped file. */
static hd_status borrow(hdl_stage *stage, uint32_t index, hdl_loading *loading) {
    const hdl_weight *w = &stage->model->weights[index];
    hd_error error = { 0 };
    hdl_span data;
    if (hdl_gguf_data(stage->model->gguf, &w->tensor, &data, &error)) return hd_context_put_error(stage->model->context, &error);
    void *memory = (void *)(uintptr_t)data.bytes; /* kernels only read weights */
    const hd_status status = hdl_stage_buffer(stage, &(hd_buffer_desc){ .bytes = data.count, .memory = memory },
                                              &stage->places[index].buffer);
    tell(loading, data.count);
    return status;
}

static hd_status load_weights(hdl_stage *stage, hdl_loading *loading) {
    const hd_model *model = stage->model;
    hd_buffer *slab = NULL;
    uint64_t used = 0, room = 0;
    for (uint32_t i = 0; i < model->weight_count; i++) {
        const hdl_weight *w = &model->weights[i];
        const uint64_t bytes = hdl_aligned(hdl_weight_bytes(w));
        hd_status status;
        if (!hdl_part_needs(model, stage->part, i)) continue;
        if (borrows(stage, w)) {
            if ((status = borrow(stage, i, loading))) return status;
            continue;
        }
        if (used + bytes > room) {
            room = slab_bytes(stage, i);
            used = 0;
            if ((status = hdl_stage_buffer(stage, &(hd_buffer_desc){ .bytes = room, .label = "weights" }, &slab))) return status;
        }
        stage->places[i] = (hdl_place){ slab, used };
        if ((status = hdl_stage_fill(stage, w, slab, used, loading))) return status;
        hdl_gguf_rest(model->gguf, &w->tensor); /* the device has it: the host need not keep it too */
        used += bytes;
    }
    return HD_OK;
}

hd_status hdl_stage_load(hdl_stage *stage, hdl_loading *loading) {
    const hd_model *model = stage->model;
    stage->places = hdl_alloc(&model->allocator, model->weight_count * sizeof *stage->places);
    if (!stage->places) return hdl_model_fail(stage->model, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the list of weights");
    hd_status status = stage->streamed ? hdl_streamed_load(stage) : load_weights(stage, loading);
    const uint64_t cache = hdl_cache_bytes(model, stage->part.layer_count, stage->pages->count);
    const hd_buffer_desc table = { .bytes = hdl_table_bytes(stage->pages->rows, stage->pages->width), .label = "table of pages" };
    if (!status) status = hdl_stage_buffer(stage, &table, &stage->table);
    if (!status && cache) status = hd_buffer_create(stage->device, &(hd_buffer_desc){ .bytes = cache, .label = "cache" }, &stage->cache);
    return status;
}

void hdl_stage_end(hdl_stage *stage) {
    const hd_allocator *allocator = &stage->model->allocator;
    if (is_cpu(stage)) (void)hd_device_wait(stage->device, LAST_WAIT_NS); /* a run that timed out still reads the mapped file */
    for (uint32_t i = 0; i < stage->plan_count; i++) hd_plan_destroy(stage->plans[i].plan);
    for (uint32_t i = 0; i < stage->buffer_count; i++) hd_buffer_destroy(stage->buffers[i]);
    hd_buffer_destroy(stage->cache);
    hdl_free(allocator, stage->plans, stage->plan_capacity * sizeof *stage->plans);
    hdl_free(allocator, stage->buffers, stage->buffer_capacity * sizeof *stage->buffers);
    if (stage->places) hdl_free(allocator, stage->places, stage->model->weight_count * sizeof *stage->places);
    memset(stage, 0, sizeof *stage);
}

/* ---- plans ---- */

/* Binds the cache; a streamed stage's plan gets that of `layer`. */
hd_status hdl_stage_bind_cache(hdl_stage *stage, hd_plan *plan, uint32_t layer) {
    const uint64_t each = hdl_cache_bytes(stage->model, 1, stage->pages->count) / 2; /* keys or values */
    const uint32_t first = stage->streamed ? layer : stage->part.first_layer, count = stage->streamed ? 1 : stage->part.layer_count;
    hd_status status = HD_OK;
    for (uint32_t i = first; i < first + count && !status; i++)
        for (uint32_t which = 0; which < 2 && !status; which++) {
            char name[HDL_CACHE_NAME];
            hdl_cache_name(stage->streamed ? HDL_NO_LAYER : i, which, name);
            status = hd_plan_bind(plan, name, stage->cache, (2 * (uint64_t)(i - stage->part.first_layer) + which) * each);
        }
    return status;
}

static hd_status bind_weights(hdl_stage *stage, hd_plan *plan) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < stage->model->weight_count && !status; i++) {
        char name[HDL_WEIGHT_NAME];
        if (!stage->places[i].buffer) continue;
        hdl_weight_name(i / stage->model->layer_weights, stage->model->weights[i].row, name);
        status = hd_plan_bind(plan, name, stage->places[i].buffer, stage->places[i].offset);
    }
    return status;
}

static hd_status make_plan(hdl_stage *stage, hdl_size size, uint32_t layer, hdl_sized *sized) {
    hd_program *program;
    const hdl_part part = stage->streamed ? (hdl_part){ layer, 1, false, false, true } : stage->part;
    hd_status status = hdl_graph_build(stage->model, part, size, &program);
    if (status) return status;
    status = hd_plan_create(stage->device, program, &(hd_plan_desc){ .math = stage->math }, &sized->plan);
    hd_program_destroy(program);
    if (status) return status;
    sized->size = size;
    sized->layer = layer;
    status = hd_plan_bind(sized->plan, "pages", stage->table, 0);
    if (!status && !stage->streamed) status = bind_weights(stage, sized->plan);
    if (!status && !stage->streamed) status = hdl_stage_bind_cache(stage, sized->plan, layer);
    if (status) hd_plan_destroy(sized->plan);
    return status;
}

/* Room for one more plan. A streamed stage may need one for each layer: factors of weights are part of a plan. */
static hd_status reserve_plan(hdl_stage *stage) {
    if (stage->plan_count < stage->plan_capacity) return HD_OK;
    const uint32_t wanted = stage->plan_capacity ? 2 * stage->plan_capacity : 16;
    if (!hdl_resize(&stage->model->allocator, &stage->plans, stage->plan_capacity * sizeof *stage->plans, wanted * sizeof *stage->plans))
        return hdl_model_fail(stage->model, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the list of plans");
    stage->plan_capacity = wanted;
    return HD_OK;
}

hd_status hdl_stage_plan(hdl_stage *stage, hdl_size size, uint32_t layer, hd_plan **out_plan) {
    hdl_sized *sized = NULL;
    if (!stage->part.heads) size.candidates = 0;
    for (uint32_t i = 0; i < stage->plan_count && !sized; i++) {
        hdl_sized *one = &stage->plans[i];
        if (memcmp(&one->size, &size, sizeof size) == 0 &&
            (!stage->streamed || hdl_layers_alike(stage->model, one->layer, layer)))
            sized = one;
    }
    hd_status status = HD_OK;
    if (!sized) {
        if ((status = reserve_plan(stage))) return status;
        sized = &stage->plans[stage->plan_count];
        status = make_plan(stage, size, layer, sized);
        stage->plan_count += status == HD_OK;
    }
    if (!status) *out_plan = sized->plan;
    return status;
}

/* ---- running ---- */

/* The table of pages that the run reads: it lies on the device, since every layer's attention begins with it, and is written
 * anew only where pages were taken or given back, or the rows are other sequences'. */
static hd_status write_table(hdl_stage *stage) {
    const hdl_pages *pages = stage->pages;
    if (stage->table_version == pages->version) return HD_OK;
    stage->table_version = 0;
    const uint64_t bytes = (uint64_t)pages->shown_count * pages->width * sizeof *pages->shown;
    const hd_status status = hd_buffer_write(stage->table, 0, pages->shown, bytes);
    if (!status) stage->table_version = pages->version;
    return status;
}

hd_status hdl_stage_write(hdl_stage *stage, const hdl_run *run, hd_plan *plan) {
    const uint64_t rows = (uint64_t)run->size.sequences * run->size.tokens;
    hd_status status = write_table(stage);
    if (!status) status = hd_plan_write(plan, "positions", run->positions, rows * sizeof *run->positions);
    if (!status) status = hd_plan_write(plan, "past", run->past, run->size.sequences * sizeof *run->past);
    if (!status && stage->part.heads && run->size.results != rows)
        status = hd_plan_write(plan, "last", run->last, run->size.results * sizeof *run->last);
    return status;
}

hd_status hdl_stage_run(hdl_stage *stage, const hdl_run *run, hd_plan **out_plan, uint64_t *inout_recorded) {
    const uint64_t rows = (uint64_t)run->size.sequences * run->size.tokens,
                   bytes = rows * stage->model->figures.hidden * sizeof *run->hidden;
    if (stage->streamed) return hdl_streamed_run(stage, run, inout_recorded);
    hd_plan *plan;
    hd_plan_stats before, after;
    hd_status status = hdl_stage_plan(stage, run->size, stage->part.first_layer, &plan);
    if (!status) status = hd_plan_get_stats(plan, &before);
    if (!status) status = hdl_stage_write(stage, run, plan);
    if (!status)
        status = stage->part.embeds ? hd_plan_write(plan, "tokens", run->tokens, rows * sizeof *run->tokens)
                                    : hd_plan_write(plan, "hidden", run->hidden, bytes);
    if (!status) status = hd_plan_run(plan, NULL);
    if (!status) status = hd_plan_get_stats(plan, &after);
    if (!status && !stage->part.heads) status = hd_plan_read(plan, "next", run->hidden, bytes);
    if (status) return status;
    *inout_recorded += after.records - before.records;
    *out_plan = plan;
    return HD_OK;
}
