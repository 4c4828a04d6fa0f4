/* merge.c: a model file with adapters added to its weights. Weights go through in pieces of whole rows, as in
 * quantize.c. */
#include "llm/adapter.h"
#include "llm/gguf_write.h"
#include <math.h>
#include <stdio.h>

enum { PIECE = 1 << 16 }; /* elements, or one row that is longer */

typedef struct work {
    const hd_merge_desc *desc;
    hd_model            *model;
    const hd_adapter   **adapters;
    hdl_gguf_writer     *writer;
    uint32_t             type;    /* of weights that change; HDL_GGUF_TYPE_COUNT: their own */
    float               *values;
    uint8_t             *from, *to;
    uint64_t             room;    /* elements in each of these */
} work;

static hd_status no_memory(hd_error *error) {
    return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to merge a model");
}

static bool changes(const work *w, hdl_span name) {
    bool has = false;
    for (size_t i = 0; i < w->desc->count; i++) has = has || hdl_adapter_pair_of(w->adapters[i], name);
    return has;
}

static uint32_t new_type(const work *w, const hdl_gguf_tensor *tensor) {
    return changes(w, tensor->name) && w->type != HDL_GGUF_TYPE_COUNT ? w->type : tensor->type;
}

static hd_status find_type(work *w, hd_error *error) {
    w->type = HDL_GGUF_TYPE_COUNT;
    if (!w->desc->type) return HD_OK;
    for (uint32_t i = 0; i < HDL_GGUF_TYPE_COUNT; i++) {
        if (hdl_gguf_dtype(i) == HD_DTYPE_NONE) continue;
        if (strcmp(hdl_gguf_type_info(i).name, w->desc->type) == 0) w->type = i;
    }
    if (w->type != HDL_GGUF_TYPE_COUNT) return HD_OK;
    return hdl_fail(error, HD_STATUS_NAME_NOT_FOUND,
                    "no type is called %.40s; there are f32, f16, bf16, q8_0, q4_0, q4_k and more", w->desc->type);
}

/* Weights that change can be read and written, and nothing but the product follows from them. */
static hd_status check(work *w, hd_error *error) {
    char quoted[HDL_QUOTE];
    for (uint32_t i = 0; i < w->model->weight_count; i++) {
        const hdl_weight *weight = &w->model->weights[i];
        if (!weight->present || !changes(w, weight->tensor.name)) continue;
        const uint64_t row = (uint64_t)weight->shape.dims[1];
        if (hdl_gguf_dtype(weight->tensor.type) == HD_DTYPE_NONE || weight->scale != 1)
            return hdl_fail(error, HD_STATUS_UNSUPPORTED,
                            "%s is of type %s, or has a scale of its own: nothing can be merged into it",
                            hdl_quote(weight->tensor.name, quoted), hdl_gguf_type_info(weight->tensor.type).name);
        const uint32_t type = new_type(w, &weight->tensor);
        if (hd_quantize(hdl_gguf_dtype(type), NULL, 0, NULL) != HD_OK)
            return hdl_fail(error, HD_STATUS_UNSUPPORTED,
                            "%s would be of type %s, which is read only: name another type",
                            hdl_quote(weight->tensor.name, quoted), hdl_gguf_type_info(type).name);
        if (row % hdl_gguf_type_info(type).block_elements != 0)
            return hdl_fail(error, HD_STATUS_SHAPE, "%s has rows of %llu, which are no whole blocks of %s",
                            hdl_quote(weight->tensor.name, quoted), (unsigned long long)row,
                            hdl_gguf_type_info(w->type).name);
        if (row > w->room) w->room = row;
    }
    return HD_OK;
}

static void put_all(const work *w) {
    static const char *const dropped[] = { "split.no", "split.count", "split.tensors.count" };
    const hdl_gguf *gguf = w->model->gguf;
    const hdl_gguf_info info = hdl_gguf_get_info(gguf);
    for (uint32_t i = 0; i < info.key_count; i++) {
        const hdl_gguf_value value = hdl_gguf_key(gguf, i);
        bool drops = w->desc->type && hdl_same(value.name, hdl_text("general.file_type"));
        for (size_t k = 0; k < sizeof dropped / sizeof *dropped; k++)
            drops = drops || hdl_same(value.name, hdl_text(dropped[k]));
        if (!drops) hdl_gguf_put_value(w->writer, &value);
    }
    for (uint32_t i = 0; i < info.tensor_count; i++) {
        const hdl_gguf_tensor tensor = hdl_gguf_tensor_at(gguf, i);
        hdl_gguf_put_tensor(w->writer, tensor.name, new_type(w, &tensor), tensor.shape, NULL);
    }
}

/* Adds scale * B A to rows of a weight. */
static void add_rows(const work *w, hdl_span name, uint64_t first, uint64_t rows) {
    for (size_t i = 0; i < w->desc->count; i++) {
        const hd_adapter_pair *pair = hdl_adapter_pair_of(w->adapters[i], name);
        if (!pair) continue;
        const float scale = hdl_adapter_scale(w->adapters[i], pair, w->desc->strengths ? w->desc->strengths[i] : 1);
        for (uint64_t row = 0; row < rows; row++)
            for (uint32_t r = 0; r < pair->rank; r++) {
                const float factor = scale * pair->b[(first + row) * pair->rank + r];
                const float *a = pair->a + (uint64_t)r * pair->columns;
                float *to = w->values + row * pair->columns;
                for (uint32_t k = 0; k < pair->columns; k++) to[k] += factor * a[k];
            }
    }
}

static hd_status merge_rows(work *w, const hdl_gguf_tensor *tensor, uint64_t first, uint64_t rows, uint64_t *out_bytes,
                            hd_error *error) {
    const uint64_t columns = (uint64_t)tensor->shape.dims[1], count = rows * columns;
    const hd_dtype was = hdl_gguf_dtype(tensor->type), is = hdl_gguf_dtype(new_type(w, tensor));
    char quoted[HDL_QUOTE];
    hd_status status = hdl_gguf_read(w->model->gguf, tensor, hd_dtype_bytes(was, first * columns),
                                     hd_dtype_bytes(was, count), w->from, error);
    if (status) return status;
    status = hd_dequantize(was, w->from, count, w->values);
    if (!status) add_rows(w, tensor->name, first, rows);
    for (uint64_t i = 0; i < count && !status; i++)
        if (!isfinite(w->values[i]))
            return hdl_fail(error, HD_STATUS_PARSE, "%s becomes NaN or infinity", hdl_quote(tensor->name, quoted));
    if (!status) status = hd_quantize(is, w->values, count, w->to);
    *out_bytes = hd_dtype_bytes(is, count);
    return status ? hdl_fail(error, status, "%s cannot be merged", hdl_quote(tensor->name, quoted)) : HD_OK;
}

static hd_status fill(void *user, uint32_t number, hdl_gguf_sink sink, void *to, hd_error *error) {
    work *w = user;
    const hdl_gguf_tensor tensor = hdl_gguf_tensor_at(w->model->gguf, number);
    const uint64_t piece = w->room * sizeof(float);
    if (!changes(w, tensor.name)) {
        for (uint64_t at = 0; at < tensor.bytes; at += piece) {
            const uint64_t bytes = tensor.bytes - at < piece ? tensor.bytes - at : piece;
            const hd_status status = hdl_gguf_read(w->model->gguf, &tensor, at, bytes, w->from, error);
            if (status || !sink(to, w->from, bytes)) return status;
        }
        return HD_OK;
    }
    const uint64_t rows = (uint64_t)tensor.shape.dims[0], step = w->room / (uint64_t)tensor.shape.dims[1];
    for (uint64_t first = 0; first < rows; first += step) {
        uint64_t bytes = 0;
        const hd_status status =
            merge_rows(w, &tensor, first, rows - first < step ? rows - first : step, &bytes, error);
        if (status || !sink(to, w->to, bytes)) return status;
    }
    hdl_gguf_rest(w->model->gguf, &tensor);
    return HD_OK;
}

static hd_status run(work *w, const char *out_path, hd_error *error) {
    const hd_allocator *allocator = &w->model->allocator;
    hd_status status = find_type(w, error);
    for (size_t i = 0; i < w->desc->count && !status; i++) status = hdl_adapter_check(w->model, w->adapters[i], error);
    w->room = PIECE;
    if (!status) status = check(w, error);
    if (status) return status;
    w->values = hdl_alloc(allocator, w->room * sizeof *w->values);
    w->from = hdl_alloc(allocator, w->room * sizeof *w->values);
    w->to = hdl_alloc(allocator, w->room * sizeof *w->values);
    w->writer = hdl_gguf_writer_create(allocator, 0);
    if (!w->values || !w->from || !w->to || !w->writer) return no_memory(error);
    put_all(w);
    hdl_gguf_fill_by(w->writer, fill, w);
    return hdl_gguf_write_file(w->writer, out_path, error);
}

hd_status hd_model_merge(hd_context *context, const char *path, const char *out_path, const hd_merge_desc *desc) {
    if (!context || !path || !out_path || !desc || !desc->adapters) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    work w = { .desc = desc };
    hd_status status = hdl_model_open(context, path, NULL, NULL, &w.model);
    if (status) return status;
    const hd_allocator allocator = w.model->allocator;
    status = hdl_adapters_take(context, desc->adapters, desc->strengths, desc->count, &w.adapters);
    if (!status) status = run(&w, out_path, &error);
    hdl_gguf_writer_destroy(w.writer);
    hdl_free(&allocator, w.values, w.room * sizeof *w.values);
    hdl_free(&allocator, w.from, w.room * sizeof *w.values);
    hdl_free(&allocator, w.to, w.room * sizeof *w.values);
    hdl_free(&allocator, w.adapters, desc->count * sizeof *w.adapters);
    hd_model_close(w.model);
    return error.status ? hd_context_put_error(context, &error) : status;
}
