/* adapt.c: adapters on a model. What they add becomes weights of the model's layers, so that these lie, travel and are
 * counted as all others do. Several adapters of a weight are one of their ranks together: A one below the other, B side
 * by side. */
#include "llm/adapter.h"
#include "llm/arch/arch.h"
#include "llm/shared.h"
#include <math.h>
#include <stdio.h>

hd_status hdl_adapters_take(hd_context *context, const hd_adapter *const *adapters, const float *strengths,
                            size_t count, const hd_adapter ***out_adapters) {
    const hd_allocator allocator = hd_context_allocator(context);
    hd_error error = { 0 };
    *out_adapters = hdl_alloc(&allocator, count * sizeof **out_adapters);
    hd_status status =
        *out_adapters ? HD_OK : hdl_fail(&error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for %zu adapters", count);
    for (size_t i = 0; i < count && !status; i++) {
        (*out_adapters)[i] = adapters[i];
        status = hdl_adapter_find(&(*out_adapters)[i]);
        if (!status && strengths && !isfinite(strengths[i]))
            status = hdl_fail(&error, HD_STATUS_INVALID_ARGUMENT, "the strength of adapter %zu is no number", i);
    }
    return error.status ? hd_context_put_error(context, &error) : status;
}

hd_status hdl_adapter_check(const hd_model *model, const hd_adapter *adapter, hd_error *error) {
    if (adapter->architecture[0] && strcmp(adapter->architecture, model->arch_name) != 0)
        return hdl_fail(error, HD_STATUS_UNSUPPORTED, "the adapter is for %s, and the model is a %s",
                        adapter->architecture, model->arch_name);
    if (adapter->count > model->weight_count)
        return hdl_fail(error, HD_STATUS_UNSUPPORTED, "the adapter has %zu weights, more than the model",
                        adapter->count);
    for (size_t i = 0; i < adapter->count; i++) {
        const hd_adapter_pair *pair = &adapter->pairs[i];
        hd_model_weight weight;
        bool found = false;
        for (size_t k = 0; !found && hd_model_get_weight(model, k, &weight); k++)
            found = strcmp(weight.name, pair->weight) == 0;
        if (!found || !weight.product)
            return hdl_fail(error, HD_STATUS_UNSUPPORTED,
                            "the adapter has '%s', which is no weight of a layer that this model multiplies with",
                            pair->weight);
        if (weight.shape.dims[0] != pair->rows || weight.shape.dims[1] != pair->columns)
            return hdl_fail(
                error, HD_STATUS_SHAPE,
                "the adapter is for '%s' of [%u,%u], and the model has [%lld,%lld]: it belongs to another one",
                pair->weight, pair->rows, pair->columns, (long long)weight.shape.dims[0],
                (long long)weight.shape.dims[1]);
    }
    return HD_OK;
}

typedef struct work {
    hd_model          *model;
    const hd_adapter **adapters;
    const float       *strengths;
    size_t             count;
    hdl_weight        *weights;   /* the model's new ones */
    uint32_t           weight_count, layer_weights, names;
    hdl_adapted        adapted;
    hd_error           error;
} work;

/* The rows of a layer's list that any adapter has a pair for, in any layer: `out[i]` tells of row i. */
static bool is_adapted(const work *w, uint32_t row) {
    char name[HDL_WEIGHT_NAME];
    for (uint32_t layer = 0; layer < w->model->figures.layers; layer++)
        for (size_t i = 0; i < w->count; i++) {
            hdl_weight_name(layer, w->model->weights[row].row, name);
            if (hdl_adapter_pair_of(w->adapters[i], hdl_text(name))) return true;
        }
    return false;
}

/* The joint A and B of a weight, B times the scale. */
static void join(const work *w, hdl_span name, uint64_t rank, float *a, float *b) {
    uint64_t before = 0;
    for (size_t i = 0; i < w->count; i++) {
        const hd_adapter_pair *pair = hdl_adapter_pair_of(w->adapters[i], name);
        if (!pair) continue;
        const float scale = hdl_adapter_scale(w->adapters[i], pair, w->strengths ? w->strengths[i] : 1);
        memcpy(a + before * pair->columns, pair->a, (uint64_t)pair->rank * pair->columns * sizeof *a);
        for (uint64_t k = 0; k < (uint64_t)pair->rows * pair->rank; k++)
            b[k / pair->rank * rank + before + k % pair->rank] = scale * pair->b[k];
        before += pair->rank;
    }
}

/* The two weights of a name in a layer; none where no adapter has it. */
static hd_status fill(work *w, uint32_t layer, const hdl_weight *base, hdl_weight *down) {
    char name[HDL_WEIGHT_NAME];
    uint64_t rank = 0;
    hdl_weight_name(layer, base->row, name);
    for (size_t i = 0; i < w->count; i++) {
        const hd_adapter_pair *pair = hdl_adapter_pair_of(w->adapters[i], hdl_text(name));
        rank += pair ? pair->rank : 0;
    }
    if (rank == 0) return HD_OK;
    const hd_shape shapes[2] = { HD_SHAPE((int64_t)rank, base->shape.dims[1]),
                                 HD_SHAPE(base->shape.dims[0], (int64_t)rank) };
    float *data[2] = { NULL, NULL };
    for (int half = 0; half < 2; half++) {
        const uint64_t bytes = hd_tensor_bytes(HD_F32, shapes[half]);
        data[half] = bytes ? hdl_alloc(&w->model->allocator, bytes) : NULL;
        if (!data[half]) {
            if (half) hdl_free(&w->model->allocator, data[0], hd_tensor_bytes(HD_F32, shapes[0]));
            return hdl_fail(&w->error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the adapters of %s", name);
        }
    }
    for (int half = 0; half < 2; half++) {
        down[half].tensor = (hdl_gguf_tensor){ .name = hdl_text(down[half].row->name),
                                               .type = HDL_GGUF_TYPE_F32,
                                               .shape = shapes[half],
                                               .bytes = hd_tensor_bytes(HD_F32, shapes[half]) };
        down[half].data = data[half];
        down[half].dtype = HD_F32;
        down[half].shape = shapes[half];
        down[half].scale = 1;
        down[half].present = true;
    }
    join(w, hdl_text(name), rank, data[0], data[1]);
    return HD_OK;
}

/* Lists of rows and weights with two more for each name. */
static hd_status extend(work *w) {
    const hd_model *m = w->model;
    const uint32_t old = m->layer_weights;
    for (uint32_t i = 0; i < old; i++) w->names += is_adapted(w, i);
    w->adapted.row_count = 2 * w->names;
    w->layer_weights = old + w->adapted.row_count;
    w->weight_count = m->weight_count + m->figures.layers * w->adapted.row_count;
    w->adapted.rows = hdl_alloc(&m->allocator, w->adapted.row_count * sizeof *w->adapted.rows);
    w->adapted.names = hdl_alloc(&m->allocator, w->adapted.row_count * sizeof *w->adapted.names);
    w->weights = hdl_alloc(&m->allocator, w->weight_count * sizeof *w->weights);
    if (!w->adapted.rows || !w->adapted.names || !w->weights)
        return hdl_fail(&w->error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a model's adapters");
    const uint32_t outside = m->figures.layers * old;
    for (uint32_t i = 0; i < m->weight_count; i++)
        w->weights[i < outside ? i / old * w->layer_weights + i % old
                               : i - outside + m->figures.layers * w->layer_weights] = m->weights[i];
    uint32_t row = 0;
    for (uint32_t i = 0; i < old; i++) {
        if (!is_adapted(w, i)) continue;
        for (int half = 0; half < 2; half++, row++) {
            snprintf(w->adapted.names[row], sizeof *w->adapted.names, "%s%s", m->weights[i].row->name,
                     half ? HDL_LORA_B : HDL_LORA_A);
            w->adapted.rows[row] =
                (hdl_tensor_row){ .name = w->adapted.names[row], .optional = true, .where = HDL_LAYER };
        }
        for (uint32_t layer = 0; layer < m->figures.layers; layer++) {
            hdl_weight *down = &w->weights[layer * w->layer_weights + old + row - 2];
            down[0].row = &w->adapted.rows[row - 2];
            down[1].row = &w->adapted.rows[row - 1];
            const hd_status status = fill(w, layer, &m->weights[layer * old + i], down);
            if (status) return status;
        }
    }
    return HD_OK;
}

static void free_weights(const hd_allocator *allocator, hdl_weight *weights, uint32_t count) {
    for (uint32_t i = 0; i < count && weights; i++)
        hdl_free(allocator, (void *)(uintptr_t)weights[i].data, weights[i].tensor.bytes);
    hdl_free(allocator, weights, count * sizeof *weights);
}
static void free_adapted(const hd_allocator *allocator, hdl_adapted *adapted) {
    hdl_free(allocator, adapted->rows, adapted->row_count * sizeof *adapted->rows);
    hdl_free(allocator, adapted->names, adapted->row_count * sizeof *adapted->names);
}

void hdl_weights_free(hd_model *model) {
    free_weights(&model->allocator, model->weights, model->weight_count);
    free_adapted(&model->allocator, &model->adapted);
}

hd_status hd_model_adapt(hd_model *model, const hd_adapter *const *adapters, const float *strengths, size_t count) {
    hd_status status = hdl_model_find(&model);
    if (status || !adapters) return status ? status : HD_STATUS_NULL_POINTER;
    work w = { .model = model, .strengths = strengths, .count = count };
    status = hdl_adapters_take(model->context, adapters, strengths, count, &w.adapters);
    if (!status && (model->adapted.rows || atomic_load(&model->holders) > 1))
        status = hdl_fail(&w.error, HD_STATUS_WRONG_STATE,
                          "adapters are put onto a model once, and before its first session");
    for (size_t i = 0; i < count && !status; i++) status = hdl_adapter_check(model, w.adapters[i], &w.error);
    if (!status) status = extend(&w);
    if (!status) {
        hdl_twins_forget(model);
        hdl_free(&model->allocator, model->weights, model->weight_count * sizeof *model->weights);
        model->weights = w.weights;
        model->weight_count = w.weight_count;
        model->layer_weights = w.layer_weights;
        model->adapted = w.adapted;
    } else {
        free_weights(&model->allocator, w.weights, w.weight_count);
        free_adapted(&model->allocator, &w.adapted);
    }
    hdl_free(&model->allocator, w.adapters, count * sizeof *w.adapters);
    return w.error.status ? hd_context_put_error(model->context, &w.error) : status;
}
