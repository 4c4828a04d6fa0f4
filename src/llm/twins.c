/* twins.c: weights that hold the same bytes, found on the host: by length, type and first bytes, and then by all of
 * them. */
#include "llm/store.h"

hd_status hdl_weight_key(const hd_model *model, const hdl_weight *weight, uint64_t *out_key, hd_error *error) {
    const hdl_twin *twins = atomic_load(&model->twins);
    uint64_t key = HDL_HASH_START ^ weight->tensor.type;
    hdl_span data;
    if (twins) {
        *out_key = twins[weight - model->weights].key;
        return HD_OK;
    }
    const hd_status status = hdl_weight_data(model, weight, &data, error);
    if (status) return status;
    for (uint64_t i = 0; i < data.count && i < HDL_HEAD_BYTES; i++) key = hdl_hash(key, data.bytes[i]);
    *out_key = hdl_hash(key, data.count);
    return HD_OK;
}

/* What is known of each weight of a model while equal ones are looked for. */
typedef struct seen {
    hdl_span data;
    uint64_t key;
    bool     first; /* no weight in front of it is equal */
} seen;

static hd_status look(const hd_model *model, seen *all, hd_error *error) {
    for (uint32_t i = 0; i < model->weight_count; i++) {
        if (!model->weights[i].present) continue;
        hd_status status = hdl_weight_data(model, &model->weights[i], &all[i].data, error);
        if (!status) status = hdl_weight_key(model, &model->weights[i], &all[i].key, error);
        if (status) return status;
    }
    return HD_OK;
}

/* Do equal bytes stand for equal values? Those that lie in tiles need equal tiles, as many of them in a row. */
static bool lie_alike(const hdl_weight *a, const hdl_weight *b) {
    return a->tiles.rows == 0 || (memcmp(&a->tiles, &b->tiles, sizeof a->tiles) == 0 &&
                                  memcmp(a->shape.dims, b->shape.dims, sizeof a->shape.dims) == 0);
}

/* The first of a model's weights that is equal to `w`, or `count`. */
static uint32_t twin_among(const hd_model *model, const seen *all, uint32_t count, const hdl_weight *w,
                           const seen *of) {
    for (uint32_t i = 0, looks = 0; i < count && looks < HDL_MOST_LOOKS; i++) {
        const hdl_weight *other = &model->weights[i];
        if (!all[i].first || all[i].key != of->key) continue;
        if (other->tensor.type != w->tensor.type || other->dtype != w->dtype || !lie_alike(other, w)) continue;
        if (hdl_same(all[i].data, of->data)) return i;
        looks++;
    }
    return count;
}

static hd_status find(hd_model *model) {
    const uint64_t count = model->weight_count;
    hdl_twin *none = NULL;
    hd_error error = { 0 };
    if (atomic_load(&model->twins)) return HD_OK;
    seen *all = hdl_alloc(&model->allocator, count * sizeof *all);
    hdl_twin *twins = hdl_alloc(&model->allocator, count * sizeof *twins);
    hd_status status = all && twins ? look(model, all, &error)
                                    : hdl_fail(&error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a list of weights");
    for (uint32_t i = 0; i < count && !status; i++) {
        twins[i] = (hdl_twin){ all[i].key, i };
        if (!model->weights[i].present) continue;
        twins[i].first = twin_among(model, all, i, &model->weights[i], &all[i]);
        all[i].first = twins[i].first == i;
    }
    hdl_free(&model->allocator, all, count * sizeof *all);
    /* where two threads find them, the first one's are taken */
    if (status || !atomic_compare_exchange_strong(&model->twins, &none, twins))
        hdl_free(&model->allocator, twins, count * sizeof *twins);
    return status ? hd_context_put_error(model->context, &error) : HD_OK;
}

hd_status hdl_twins_find(hd_model *model, hd_device *device) {
    const hd_device_info *info = hd_device_get_info(device);
    return info && info->kind == HD_DEVICE_CPU ? HD_OK : find(model);
}

void hdl_twins_forget(hd_model *model) {
    hdl_free(&model->allocator, atomic_exchange(&model->twins, NULL), model->weight_count * sizeof(hdl_twin));
}

uint32_t hdl_twin_of(const hd_model *model, hdl_part part, uint32_t index) {
    const hdl_twin *twins = atomic_load(&model->twins);
    for (uint32_t i = twins ? twins[index].first : index; i < index; i++)
        if (twins[i].first == twins[index].first && hdl_part_needs(model, part, i)) return i;
    return index;
}

hd_status hd_model_shared_bytes(hd_model *model, hd_model *other, uint64_t *out_bytes) {
    hd_status status = hdl_model_find(&model);
    if (!status) status = hdl_model_find(&other);
    if (status || !out_bytes) return status ? status : HD_STATUS_NULL_POINTER;
    if (hdl_need_whole(model) || hdl_need_whole(other)) return HD_STATUS_UNSUPPORTED;
    const hd_allocator *allocator = &model->allocator;
    const uint64_t counts[2] = { model->weight_count, other->weight_count };
    const hdl_part whole = hdl_part_on_device(model, (hdl_split){ 0 });
    hd_error error = { 0 };
    seen *mine = hdl_alloc(allocator, counts[0] * sizeof *mine);
    seen *others = hdl_alloc(allocator, counts[1] * sizeof *others);
    status = find(model);
    if (!status && !(mine && others))
        status = hdl_fail(&error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a list of weights");
    if (!status) status = look(model, mine, &error);
    if (!status) status = look(other, others, &error);
    if (error.status) status = hd_context_put_error(model->context, &error);
    *out_bytes = 0;
    for (uint32_t i = 0; i < counts[1] && !status; i++) others[i].first = other->weights[i].present;
    for (uint32_t i = 0; i < counts[0] && !status; i++) {
        const hdl_weight *w = &model->weights[i];
        if (!w->present || hdl_twin_of(model, whole, i) != i) continue;
        if (twin_among(other, others, other->weight_count, w, &mine[i]) < other->weight_count)
            *out_bytes += hdl_aligned(hdl_weight_bytes(w));
    }
    hdl_free(allocator, mine, counts[0] * sizeof *mine);
    hdl_free(allocator, others, counts[1] * sizeof *others);
    return status;
}
