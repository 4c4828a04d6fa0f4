/* build.c: a model as a part of a caller's program, its weights as inputs, and these on a device. */
#include "llm/arch/arch.h"
#include "llm/store.h"
#include <stdio.h>

bool hdl_is_product(const hdl_weight *w) {
    const char *name = w->row->name, *kind = strrchr(name, '.');
    return w->row->where == HDL_LAYER && w->shape.rank == 2 && !w->data && kind && strcmp(kind, ".weight") == 0 &&
           strncmp(name, "ffn_gate_inp", strlen("ffn_gate_inp")) != 0; /* which chooses experts */
}

bool hd_model_get_weight(const hd_model *model, size_t index, hd_model_weight *out_weight) {
    if (hdl_model_find(&model) || !out_weight) return false;
    for (uint32_t i = 0; i < model->weight_count; i++) {
        const hdl_weight *w = &model->weights[i];
        if (!w->present || index-- > 0) continue;
        *out_weight = (hd_model_weight){ .dtype = w->dtype, .shape = w->shape, .product = hdl_is_product(w) };
        hdl_weight_name(i / model->layer_weights, w->row, out_weight->name);
        return true;
    }
    return false;
}

hd_status hd_model_build(const hd_model *model, hd_program *p, const hd_model_graph_desc *desc, hd_value *out_layers,
                         hd_value *out_scores) {
    enum { MOST_SEQUENCES = 1 << 20 };
    const hd_status status = hdl_model_find(&model);
    if (status || !p || !desc || !out_scores) return status ? status : HD_STATUS_NULL_POINTER;
    *out_scores = 0;
    if (hdl_need_speech(model)) return HD_STATUS_UNSUPPORTED;
    if (desc->sequences < 1 || desc->sequences > MOST_SEQUENCES || desc->length < 1)
        return hdl_model_fail(model, HD_STATUS_INVALID_ARGUMENT, "%u sequences of %u tokens cannot be built",
                              desc->sequences, desc->length);
    if (desc->length > model->figures.context)
        return hdl_model_fail(model, HD_STATUS_LIMIT,
                              "sequences of %u tokens are longer than the model's context of %u", desc->length,
                              model->figures.context);
    if (desc->starts && !model->figures.causal)
        return hdl_model_fail(model, HD_STATUS_UNSUPPORTED,
                              "an encoder's tokens see all of their sequence: starts are a decoder's");
    const int64_t rows = (int64_t)desc->sequences * desc->length, each = desc->score_rows ? desc->score_rows : rows;
    if (rows % each != 0)
        return hdl_model_fail(model, HD_STATUS_INVALID_ARGUMENT, "%lld rows are no whole pieces of %lld",
                              (long long)rows, (long long)each);
    hdl_graph g = { .model = model, .program = p, .desc = desc, .positions = desc->positions,
                    .ports = hd_program_port_count(p),
                    .size = { .sequences = desc->sequences, .tokens = desc->length, .context = desc->length } };
    hd_value x = hdl_embed(&g, desc->tokens);
    if (out_layers) out_layers[0] = x;
    for (g.layer = 0; g.layer < model->figures.layers; g.layer++) {
        x = hdl_layer(&g, x);
        if (out_layers) out_layers[g.layer + 1] = x;
    }
    for (int64_t i = 0; i < rows / each; i++) {
        const int64_t begin[] = { i * each, 0 }, end[] = { (i + 1) * each, model->figures.hidden };
        const hd_value some = each == rows ? x : hd_slice(p, x, begin, end, 2);
        out_scores[i] = desc->headless ? hdl_hidden(&g, some) : hdl_logits(&g, some);
        if (desc->on_scores) desc->on_scores(desc->user, p, some, out_scores[i]);
        g.ports = hd_program_port_count(p); /* the next ones read the same weights */
    }
    return *out_scores ? HD_OK : hd_program_check(p); /* which also asks for outputs, that the caller may yet name */
}

/* ---- weights on a device ---- */

struct hd_weights {
    hd_model *model;
    void     *handle;
    hdl_store store;
    hdl_pages none;   /* there is no cache */
};
static const char kind[] = "weights";

hd_status hd_weights_load(hd_model *model, hd_device *device, hd_weights **out_weights) {
    if (out_weights) *out_weights = NULL;
    hd_status status = hdl_model_find(&model);
    if (status || !device || !out_weights) return status ? status : HD_STATUS_NULL_POINTER;
    hd_weights *weights = hdl_alloc(&model->allocator, sizeof *weights);
    hdl_loading loading = { 0 };
    if (!weights) return hdl_model_fail(model, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a list of weights");
    weights->model = hdl_model_hold(model);
    weights->store = (hdl_store){ .model = model, .device = device, .pages = &weights->none,
                                  .alone = true, .part = hdl_part_on_device(model, (hdl_split){ 0 }) };
    status = hdl_store_load(&weights->store, &loading);
    if (!status) status = hd_handle_new(model->context, kind, weights, &weights->handle);
    if (status) hd_weights_destroy(weights);
    else *out_weights = weights->handle;
    return status;
}

hd_status hd_weights_bind(hd_weights *weights, hd_plan *plan) {
    hd_weights *found = hd_handle_find(weights, kind);
    if (!found) return hd_handle_refuse(weights, kind);
    return plan ? hdl_store_bind(&found->store, plan, false, true) : HD_STATUS_NULL_POINTER;
}

void hd_weights_destroy(hd_weights *weights) {
    weights = hd_handle_find(weights, kind);
    if (!weights || (weights->handle && !hd_handle_end(weights->handle))) return;
    const hd_allocator allocator = weights->model->allocator;
    hdl_store_end(&weights->store);
    hdl_model_release(weights->model);
    hdl_free(&allocator, weights, sizeof *weights);
}
