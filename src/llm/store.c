/* store.c: weights and cache on a device. A GPU gets them in slabs, since a device has few allocations to give and none
 * may be larger than its driver allows; the CPU uses the weights where the file is mapped, so that loading costs
 * nothing. */
#include "llm/store.h"

#define SLAB_BYTES  (UINT64_C(512) << 20)
#define LAST_WAIT_NS UINT64_C(3600000000000) /* an hour: what the CPU does ends, however slow the machine */
#define PIECE_BYTES (UINT64_C(16) << 20) /* between two calls of the progress function */

static bool is_cpu(const hdl_store *store) {
    const hd_device_info *info = hd_device_get_info(store->device); /* NULL: it was closed before its session */
    return info && info->kind == HD_DEVICE_CPU;
}
/* Is the weight used where the file is mapped? */
static bool borrows(const hdl_store *store, const hdl_weight *w) {
    return is_cpu(store) && !hdl_is_ternary(w->tensor.type);
}

/* ---- bytes ---- */

uint64_t hdl_part_weight_bytes(const hd_model *model, hdl_part part, bool in_place) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < model->weight_count; i++) {
        const bool each = in_place && !hdl_is_ternary(model->weights[i].tensor.type);
        if (hdl_part_needs(model, part, i) && (each || hdl_twin_of(model, part, i) == i))
            bytes += hdl_aligned(hdl_weight_bytes(&model->weights[i]));
    }
    return bytes;
}

/* Of all weights of a layer: equal ones have places of their own in a slot. */
static uint64_t layer_bytes(const hd_model *model, uint32_t layer) {
    uint64_t bytes = 0;
    for (uint32_t i = layer * model->layer_weights; i < (layer + 1) * model->layer_weights; i++)
        bytes += hdl_aligned(hdl_weight_bytes(&model->weights[i]));
    return bytes;
}

uint64_t hdl_slot_bytes(const hd_model *model, uint32_t layers) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < layers; i++) {
        const uint64_t bytes = layer_bytes(model, i);
        if (bytes > most) most = bytes;
    }
    return 2 * most;
}

uint64_t hdl_cache_bytes(const hd_model *model, hd_dtype type, uint32_t layers, uint32_t pages) {
    const uint64_t row = hdl_cache_parts(model) * hdl_cache_row_bytes(model, type);
    uint64_t bytes;
    return hdl_mul(row * layers, (uint64_t)pages * HDL_PAGE_TOKENS, &bytes) && bytes < HDL_MOST_BYTES ? bytes
                                                                                                      : HDL_MOST_BYTES;
}

uint64_t hdl_table_bytes(uint32_t rows, uint32_t width) {
    return hdl_aligned((uint64_t)rows * width * sizeof(int32_t));
}

/* ---- weights ---- */

static hd_status make_buffer(hdl_store *store, const hd_buffer_desc *desc, hd_buffer **out) {
    if (!hdl_grow(&store->model->allocator, &store->buffers, &store->buffer_capacity, store->buffer_count + 1,
                  sizeof *store->buffers))
        return hdl_model_fail(store->model, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the list of buffers");
    const hd_status status = hd_buffer_create(store->device, desc, out);
    if (!status) store->buffers[store->buffer_count++] = *out;
    return status;
}

static void tell(hdl_loading *loading, uint64_t bytes) {
    loading->done += bytes;
    if (loading->progress) loading->progress(loading->user, loading->done, loading->total);
}

/* Writes a weight into a buffer: as it is, or unpacked where the device's type is another one. */
static hd_status fill(hdl_store *store, const hdl_weight *w, hd_buffer *buffer, uint64_t offset, hdl_loading *loading) {
    const hd_model *model = store->model;
    hd_error error = { 0 };
    hdl_span data;
    if (hdl_weight_data(model, w, &data, &error)) return hd_context_put_error(model->context, &error);
    if (!hdl_is_ternary(w->tensor.type)) {
        hd_status status = HD_OK;
        for (uint64_t at = 0; at < data.count && !status;) {
            const uint64_t piece = data.count - at < PIECE_BYTES ? data.count - at : PIECE_BYTES;
            status = hd_buffer_write(buffer, offset + at, data.bytes + at, piece);
            tell(loading, piece);
            at += piece;
        }
        return status;
    }
    float scale; /* known since the model was opened: it is the weight's factor */
    hdl_span blocks;
    const hdl_ternary packed = { w->tensor.type, w->shape, w->tiles, data };
    hd_status status = hdl_ternary_blocks(&model->allocator, w->tensor.name, &packed, &blocks, &scale, &error);
    status = status ? hd_context_put_error(model->context, &error)
                    : hd_buffer_write(buffer, offset, blocks.bytes, blocks.count);
    hdl_free(&model->allocator, (void *)(uintptr_t)blocks.bytes, blocks.count);
    tell(loading, blocks.count);
    return status;
}

/* Bytes of the slab that begins with weight `first`: of all weights up to the limit, so that no slab ends in unused
 * room. */
static uint64_t slab_bytes(const hdl_store *store, const hdl_slabs *slabs, uint32_t first) {
    uint64_t bytes = 0;
    for (uint32_t i = first; i < store->model->weight_count; i++) {
        const uint64_t more = slabs->bytes_of(store, i);
        if (bytes && bytes + more > SLAB_BYTES) break;
        bytes += more;
    }
    return bytes;
}

static hd_status no_list(const hdl_store *store) {
    return hdl_model_fail(store->model, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the list of weights");
}

static bool grow_contents(hdl_store *store) {
    return hdl_grow(&store->model->allocator, &store->contents, &store->content_capacity, store->content_count + 1,
                    sizeof *store->contents);
}

static void hold(hdl_store *store, hdl_content *content, hdl_place *out_place) {
    store->contents[store->content_count++] = content;
    out_place->buffer = hdl_content_buffer(content, &out_place->offset);
}

hd_status hdl_store_find(hdl_store *store, hdl_slabs *slabs, uint32_t index, const hdl_sought *sought) {
    hdl_content *content = NULL;
    if (!grow_contents(store)) return no_list(store);
    const hd_status status = hdl_shared_find(&store->model->allocator, sought, &content);
    if (status == HD_STATUS_OUT_OF_HOST_MEMORY)
        return hdl_model_fail(store->model, status, "no memory to compare weights");
    if (!content) return status;
    store->shared_bytes += slabs->bytes_of(store, index);
    hold(store, content, &slabs->places[index]);
    return HD_OK;
}

hd_status hdl_store_take(hdl_store *store, hdl_slabs *slabs, uint32_t index, const hdl_sought *as) {
    const uint64_t bytes = slabs->bytes_of(store, index);
    if (!grow_contents(store)) return no_list(store);
    if (slabs->used + bytes > slabs->room) {
        slabs->room = slab_bytes(store, slabs, index);
        slabs->used = 0;
        const hd_buffer_desc desc = { .bytes = slabs->room, .label = slabs->label };
        const hd_status status = hdl_slab_create(&store->model->allocator, store->device, &desc, &slabs->slab);
        if (status == HD_STATUS_OUT_OF_HOST_MEMORY) (void)no_list(store); /* unless a first failure is kept already */
        if (status) return status;
    }
    hdl_content *content = hdl_content_create(slabs->slab, slabs->used, as);
    if (!content) return no_list(store);
    hold(store, content, &slabs->places[index]);
    slabs->used += bytes;
    return HD_OK;
}

void hdl_store_show(hdl_store *store, uint32_t first) {
    for (uint32_t i = first; i < store->content_count && !store->alone; i++) hdl_content_whole(store->contents[i]);
}

/* The weight of the part whose place `index` has: itself where none in front of it is equal. */
static uint32_t lies_as(const hdl_store *store, uint32_t index) {
    return store->alone ? index : hdl_twin_of(store->model, store->part, index);
}

/* Of a weight that has to be brought here. */
static uint64_t bytes_of(const hdl_store *store, uint32_t index) {
    const hdl_weight *w = &store->model->weights[index];
    if (!hdl_part_needs(store->model, store->part, index) || borrows(store, w)) return 0;
    return lies_as(store, index) != index || store->places[index].buffer ? 0 : hdl_aligned(hdl_weight_bytes(w));
}

/* How a weight is known. One that is unpacked has other bytes on the device than in the file: only its model has it. */
static hd_status describe(const hd_model *model, const hdl_weight *w, hd_device *device, hdl_sought *out) {
    const bool packed = hdl_is_ternary(w->tensor.type);
    hd_error error = { 0 };
    hdl_span data;
    *out = (hdl_sought){ .device = device };
    if (hdl_weight_data(model, w, &data, &error) || hdl_weight_key(model, w, &out->key, &error))
        return hd_context_put_error(model->context, &error);
    out->origin = (hdl_origin){ model->number, (uintptr_t)data.bytes };
    out->bytes = packed ? hdl_weight_bytes(w) : data.count;
    out->data = packed ? NULL : data.bytes;
    return HD_OK;
}

/* What of the weights lies on the device already: all of it is found before room is made for the others. */
static hd_status find_weights(hdl_store *store, hdl_slabs *slabs) {
    const hd_model *model = store->model;
    hd_status status = HD_OK;
    hdl_sought sought;
    for (uint32_t i = 0; i < model->weight_count && !store->alone && !status; i++) {
        if (!bytes_of(store, i)) continue;
        status = describe(model, &model->weights[i], store->device, &sought);
        if (!status) status = hdl_store_find(store, slabs, i, &sought);
    }
    return status;
}

/* Of a weight that is the first of its kind here. */
static hd_status bring(hdl_store *store, hdl_slabs *slabs, uint32_t index, hdl_loading *loading) {
    const hdl_weight *w = &store->model->weights[index];
    const hdl_place *place = &store->places[index];
    hdl_sought as;
    hd_status status = describe(store->model, w, store->device, &as);
    if (!status) status = hdl_store_take(store, slabs, index, &as);
    if (!status) status = fill(store, w, place->buffer, place->offset, loading);
    /* the device has it: the host need not keep it too */
    if (!status && !w->data) hdl_gguf_rest(store->model->gguf, &w->tensor);
    return status;
}

/* The CPU's way: every weight is a buffer over the mapped file. */
static hd_status borrow(hdl_store *store, uint32_t index, hdl_loading *loading) {
    const hdl_weight *w = &store->model->weights[index];
    hd_error error = { 0 };
    hdl_span data;
    if (hdl_weight_data(store->model, w, &data, &error)) return hd_context_put_error(store->model->context, &error);
    void *memory = (void *)(uintptr_t)data.bytes; /* kernels only read weights */
    const hd_status status = make_buffer(store, &(hd_buffer_desc){ .bytes = data.count, .memory = memory },
                                              &store->places[index].buffer);
    tell(loading, data.count);
    return status;
}

static hd_status load_weights(hdl_store *store, hdl_loading *loading) {
    const hd_model *model = store->model;
    hdl_slabs slabs = { .label = "weights", .places = store->places, .bytes_of = bytes_of };
    hd_status status = find_weights(store, &slabs);
    const uint32_t found = store->content_count;
    for (uint32_t i = 0; i < model->weight_count && !status; i++) {
        hdl_place *place = &store->places[i];
        if (!hdl_part_needs(model, store->part, i)) continue;
        const bool borrowed = borrows(store, &model->weights[i]);
        const uint32_t as = borrowed ? i : lies_as(store, i);
        if (borrowed) status = borrow(store, i, loading);
        else if (as == i && !place->buffer) status = bring(store, &slabs, i, loading);
        else { /* it is there */
            *place = store->places[as];
            tell(loading, hdl_aligned(hdl_weight_bytes(&model->weights[i])));
        }
    }
    if (!status) hdl_store_show(store, found);
    return status;
}

hd_status hdl_part_shared_bytes(const hd_model *model, hdl_part part, hd_device *device, bool halves,
                                uint64_t *out_bytes) {
    hdl_store store = { .model = model, .device = device, .part = part };
    hdl_slabs slabs = { .bytes_of = bytes_of };
    store.places = slabs.places = hdl_alloc(&model->allocator, model->weight_count * sizeof *store.places);
    hd_status status = store.places ? find_weights(&store, &slabs) : no_list(&store);
    if (!status && halves) status = hdl_store_find_halves(&store);
    *out_bytes = store.shared_bytes;
    hdl_store_end(&store);
    return status;
}

/* ---- making and ending ---- */

/* Of keys or values of one layer. */
static uint64_t tensor_bytes(const hdl_store *store) {
    return hdl_cache_bytes(store->model, store->cache_type, 1, store->pages->count) / hdl_cache_parts(store->model);
}

/* Layers that are streamed have their weights in two slots in turn. */
static hd_status make_slots(hdl_store *store) {
    const hd_model *model = store->model;
    const uint64_t bytes = hdl_slot_bytes(model, store->streamed_layers) / 2;
    hd_buffer *slots[2] = { NULL, NULL };
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < 2 && i < store->streamed_layers && !status; i++)
        status = make_buffer(store, &(hd_buffer_desc){ .bytes = bytes, .label = "streamed weights" }, &slots[i]);
    for (uint32_t layer = 0; layer < store->streamed_layers; layer++) {
        uint64_t used = 0;
        for (uint32_t i = layer * model->layer_weights; i < (layer + 1) * model->layer_weights; i++) {
            if (!model->weights[i].present) continue;
            store->places[i] = (hdl_place){ slots[layer & 1], used };
            used += hdl_aligned(hdl_weight_bytes(&model->weights[i]));
        }
    }
    return status;
}

static uint32_t cache_count(const hdl_store *store) { return hdl_cache_parts(store->model) * store->layer_count; }

/* Keys and values of all layers, as many tensors a slab as it holds. */
static hd_status make_cache(hdl_store *store) {
    const uint32_t count = cache_count(store);
    const uint64_t each = tensor_bytes(store);
    uint64_t fit = SLAB_BYTES / each;
    hd_buffer *slab = NULL;
    if (!fit) fit = 1;
    store->caches = hdl_alloc(&store->model->allocator, count * sizeof *store->caches);
    if (!store->caches)
        return hdl_model_fail(store->model, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the list of caches");
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t in_slab = fit < count - i ? fit : count - i;
        const hd_buffer_desc desc = { .bytes = in_slab * each, .label = "cache" };
        const hd_status status = i % fit ? HD_OK : make_buffer(store, &desc, &slab);
        if (status) return status;
        store->caches[i] = (hdl_place){ slab, i % fit * each };
    }
    return HD_OK;
}

hd_status hdl_store_load(hdl_store *store, hdl_loading *loading) {
    const hd_model *model = store->model;
    store->places = hdl_alloc(&model->allocator, model->weight_count * sizeof *store->places);
    if (!store->places) return no_list(store);
    hd_status status = load_weights(store, loading);
    if (status || store->layer_count == 0) return status;
    const hd_buffer_desc table = { .bytes = hdl_table_bytes(store->pages->rows, store->pages->width),
                                   .label = "table of pages" };
    status = make_slots(store);
    if (!status) status = make_buffer(store, &table, &store->table);
    return status ? status : make_cache(store);
}

void hdl_store_end(hdl_store *store) {
    if (!store->model) return;
    const hd_allocator *allocator = &store->model->allocator;
    /* a run that timed out still reads the mapped file */
    if (is_cpu(store)) (void)hd_device_wait(store->device, LAST_WAIT_NS);
    for (uint32_t i = 0; i < store->buffer_count; i++) hd_buffer_destroy(store->buffers[i]);
    for (uint32_t i = 0; i < store->content_count; i++) hdl_content_release(store->contents[i]);
    hdl_free(allocator, store->contents, store->content_capacity * sizeof *store->contents);
    hdl_free(allocator, store->buffers, store->buffer_capacity * sizeof *store->buffers);
    if (store->places) hdl_free(allocator, store->places, store->model->weight_count * sizeof *store->places);
    if (store->halves) hdl_free(allocator, store->halves, store->model->weight_count * sizeof *store->halves);
    if (store->caches) hdl_free(allocator, store->caches, cache_count(store) * sizeof *store->caches);
    memset(store, 0, sizeof *store);
}

/* ---- plans ---- */

hd_status hdl_store_bind(hdl_store *store, hd_plan *plan, bool halves, bool embeds) {
    const hdl_layers all = { 0, store->model->figures.layers };
    const hdl_part read = { all, all, store->part.embeds && embeds, store->part.heads, store->part.vectors };
    hd_status status = store->table ? hd_plan_bind(plan, "pages", store->table, 0) : HD_OK;
    for (uint32_t i = 0; i < store->model->weight_count && !status; i++) {
        char name[HDL_WEIGHT_NAME];
        const hdl_place *place = &store->places[i];
        if (!place->buffer || !hdl_part_needs(store->model, read, i)) continue;
        if (halves && store->halves && store->halves[i].buffer) place = &store->halves[i];
        hdl_weight_name(i / store->model->layer_weights, store->model->weights[i].row, name);
        status = hd_plan_bind(plan, name, place->buffer, place->offset);
    }
    const uint32_t parts = hdl_cache_parts(store->model);
    for (uint32_t i = 0; i < cache_count(store) && !status; i++) {
        char name[HDL_CACHE_NAME];
        hdl_cache_name(store->first_layer + i / parts, i % parts != 0, name);
        status = hd_plan_bind(plan, name, store->caches[i].buffer, store->caches[i].offset);
    }
    return status;
}

/* The table lies on the device, since every layer's attention begins with it, and is written anew only where pages were
 * taken or given back, or the rows are other sequences'. */
hd_status hdl_store_write_table(hdl_store *store) {
    const hdl_pages *pages = store->pages;
    if (!store->table || store->table_version == pages->version) return HD_OK;
    store->table_version = 0;
    const uint64_t bytes = (uint64_t)pages->shown_count * pages->width * sizeof *pages->shown;
    const hd_status status = hd_buffer_write(store->table, 0, pages->shown, bytes);
    if (!status) store->table_version = pages->version;
    return status;
}
