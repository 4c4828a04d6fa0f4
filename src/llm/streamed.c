/* streamed.c: layers that travel to the device as they are needed. Two slots take turns: while layer i computes out of one, layer
 * i + 1 is written into the other. What goes from layer to layer stays on the device, in two buffers that take turns too. */
#include "llm/stage.h"

hd_status hdl_streamed_load(hdl_stage *stage) {
    const hd_model *model = stage->model;
    const uint64_t bytes = hdl_part_slot_bytes(model, stage->part) / 2;
    hdl_store *store = &stage->here;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < 2 && !status; i++) {
        stage->held[i] = HDL_NO_LAYER;
        status = hdl_store_buffer(store, &(hd_buffer_desc){ .bytes = bytes, .label = "streamed weights" }, &stage->slots[i]);
        const hd_buffer_desc hidden = { .bytes = hdl_aligned(stage->hidden_bytes), .label = "hidden" };
        if (!status) status = hdl_store_buffer(store, &hidden, &stage->hidden[i]);
    }
    for (uint32_t layer = stage->part.first_layer; layer < stage->part.first_layer + stage->part.layer_count; layer++) {
        uint64_t used = 0;
        for (uint32_t i = layer * model->layer_weights; i < (layer + 1) * model->layer_weights; i++) {
            stage->here.places[i].offset = used;
            used += hdl_aligned(hdl_weight_bytes(&model->weights[i]));
        }
    }
    return status;
}

/* Writes a layer's weights into its slot, unless they are there. */
static hd_status bring(hdl_stage *stage, uint32_t layer) {
    const uint32_t slot = layer & 1, count = stage->model->layer_weights;
    hd_status status = HD_OK;
    if (stage->held[slot] == layer) return HD_OK;
    stage->held[slot] = HDL_NO_LAYER;
    for (uint32_t i = layer * count; i < (layer + 1) * count && !status; i++) {
        const hdl_weight *w = &stage->model->weights[i];
        if (w->present) status = hdl_store_fill(&stage->here, w, stage->slots[slot], stage->here.places[i].offset, NULL);
    }
    if (!status) stage->held[slot] = layer;
    return status;
}

static hd_status bind(hdl_stage *stage, hd_plan *plan, uint32_t layer) {
    const uint32_t count = stage->model->layer_weights;
    hd_status status = HD_OK;
    for (uint32_t i = layer * count; i < (layer + 1) * count && !status; i++) {
        char name[HDL_WEIGHT_NAME];
        if (!stage->model->weights[i].present) continue;
        hdl_weight_name(HDL_NO_LAYER, stage->model->weights[i].row, name);
        status = hd_plan_bind(plan, name, stage->slots[layer & 1], stage->here.places[i].offset);
    }
    if (!status) status = hdl_store_bind_cache(&stage->here, plan, layer, HDL_NO_LAYER);
    if (!status) status = hd_plan_bind(plan, "hidden", stage->hidden[layer & 1], 0);
    return status ? status : hd_plan_bind(plan, "next", stage->hidden[~layer & 1], 0);
}

/* Starts a layer; its weights are in place. */
static hd_status start(hdl_stage *stage, const hdl_run *run, uint32_t layer, hd_ticket **out_ticket, hd_session_stats *inout_stats) {
    hd_plan *plan;
    hd_plan_stats before;
    hd_status status = hdl_stage_plan(stage, run->size, layer, &plan);
    if (!status) status = hd_plan_get_stats(plan, &before);
    if (!status) status = hdl_stage_write(stage, run, plan);
    if (!status) status = bind(stage, plan, layer);
    if (!status) status = hd_plan_submit(plan, out_ticket);
    return status ? status : hdl_stage_count(plan, &before, inout_stats);
}

hd_status hdl_streamed_run(hdl_stage *stage, const hdl_run *run, hd_session_stats *inout_stats) {
    const uint32_t first = stage->part.first_layer, end = first + stage->part.layer_count;
    const uint64_t bytes = (uint64_t)run->size.sequences * run->size.tokens * stage->model->figures.hidden * sizeof *run->hidden;
    hd_status status = hd_buffer_write(stage->hidden[first & 1], 0, run->hidden, bytes);
    if (!status) status = bring(stage, first);
    for (uint32_t layer = first; layer < end && !status; layer++) {
        hd_ticket *ticket = NULL;
        status = start(stage, run, layer, &ticket, inout_stats);
        if (!status && layer + 1 < end) status = bring(stage, layer + 1);
        if (ticket) {
            const hd_status done = hd_ticket_wait(ticket, 0);
            status = status ? status : done;
        }
        hd_ticket_destroy(ticket);
    }
    return status ? status : hd_buffer_read(stage->hidden[end & 1], 0, run->hidden, bytes);
}
