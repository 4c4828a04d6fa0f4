/* stage.c: the plans of a stage, over what its stores hold. */
#include "llm/stage.h"

hd_status hdl_stage_load(hdl_stage *stage, hdl_loading *loading) {
    hd_status status = hdl_store_make(&stage->here);
    if (!status) status = stage->streamed ? hdl_streamed_load(stage) : hdl_store_load(&stage->here, loading);
    if (stage->part.cpu_layers == 0) return status;
    if (!status) status = hdl_store_make(&stage->cpu);
    return status ? status : hdl_store_load(&stage->cpu, loading);
}

void hdl_stage_end(hdl_stage *stage) {
    for (uint32_t i = 0; i < stage->plan_count; i++) hd_plan_destroy(stage->plans[i].plan);
    if (stage->model) hdl_free(&stage->model->allocator, stage->plans, stage->plan_capacity * sizeof *stage->plans);
    hdl_store_end(&stage->cpu);
    hdl_store_end(&stage->here);
    memset(stage, 0, sizeof *stage);
}

/* ---- plans ---- */

static hd_status make_plan(hdl_stage *stage, hdl_size size, uint32_t layer, hdl_sized *sized) {
    hdl_placed placed;
    const hdl_part part = stage->streamed ? (hdl_part){ .first_layer = layer, .layer_count = 1, .nameless = true } : stage->part;
    hd_status status = hdl_graph_build(stage->model, part, size, &placed);
    if (status) return status;
    const hd_plan_desc wish = hdl_placed_wish(&placed, &stage->cpu.device, stage->math);
    status = hd_plan_create(stage->here.device, placed.program, &wish, &sized->plan);
    hd_program_destroy(placed.program);
    if (status) return status;
    sized->size = size;
    sized->layer = layer;
    status = stage->streamed ? hd_plan_bind(sized->plan, "pages", stage->here.table, 0) : hdl_store_bind(&stage->here, sized->plan);
    if (!status && part.cpu_layers) status = hdl_store_bind(&stage->cpu, sized->plan);
    if (status) hd_plan_destroy(sized->plan);
    return status;
}

/* Room for one more plan. A streamed stage may need one for each layer: factors of weights are part of a plan. */
static hd_status reserve_plan(hdl_stage *stage) {
    if (stage->plan_count < stage->plan_capacity) return HD_OK;
    const uint32_t wanted = stage->plan_capacity ? 2 * stage->plan_capacity : 16;
    if (!hdl_resize(&stage->model->allocator, &stage->plans, stage->plan_capacity * sizeof *stage->plans,
                    wanted * sizeof *stage->plans))
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

hd_status hdl_stage_write(hdl_stage *stage, const hdl_run *run, hd_plan *plan) {
    const uint64_t rows = (uint64_t)run->size.sequences * run->size.tokens;
    hd_status status = hdl_store_write_table(&stage->here);
    if (!status && stage->part.cpu_layers) status = hdl_store_write_table(&stage->cpu);
    if (!status) status = hd_plan_write(plan, "positions", run->positions, rows * sizeof *run->positions);
    if (!status) status = hd_plan_write(plan, "past", run->past, run->size.sequences * sizeof *run->past);
    if (!status && stage->part.heads && run->size.results != rows)
        status = hd_plan_write(plan, "last", run->last, run->size.results * sizeof *run->last);
    return status;
}

hd_status hdl_stage_count(const hd_plan *plan, const hd_plan_stats *before, hd_session_stats *inout_stats) {
    hd_plan_stats after;
    const hd_status status = hd_plan_get_stats(plan, &after);
    if (status) return status;
    inout_stats->recorded += after.records - before->records;
    inout_stats->submissions += after.segments;
    return HD_OK;
}

hd_status hdl_stage_run(hdl_stage *stage, const hdl_run *run, hd_session_stats *inout_stats, hd_plan **out_plan) {
    const uint64_t rows = (uint64_t)run->size.sequences * run->size.tokens,
                   bytes = rows * stage->model->figures.hidden * sizeof *run->hidden;
    if (stage->streamed) return hdl_streamed_run(stage, run, inout_stats);
    hd_plan *plan;
    hd_plan_stats before;
    hd_status status = hdl_stage_plan(stage, run->size, stage->part.first_layer, &plan);
    if (!status) status = hd_plan_get_stats(plan, &before);
    if (!status) status = hdl_stage_write(stage, run, plan);
    if (!status)
        status = stage->part.embeds ? hd_plan_write(plan, "tokens", run->tokens, rows * sizeof *run->tokens)
                                    : hd_plan_write(plan, "hidden", run->hidden, bytes);
    if (!status) status = hd_plan_run(plan, NULL);
    if (!status) status = hdl_stage_count(plan, &before, inout_stats);
    if (!status && !stage->part.heads) status = hd_plan_read(plan, "next", run->hidden, bytes);
    if (!status) *out_plan = plan;
    return status;
}
