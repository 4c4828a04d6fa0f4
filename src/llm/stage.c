/* stage.c: the plans of a model, over what its stores hold. */
#include "llm/stage.h"

hd_status hdl_stage_load(hdl_stage *stage, hd_progress_fn progress, void *user) {
    const hdl_split split = stage->split;
    const hdl_part here = hdl_part_on_device(stage->model, split), there = hdl_part_on_cpu(split);
    const hd_model *model = stage->model;
    const uint64_t bytes = hdl_part_weight_bytes(model, here, true) + hdl_part_weight_bytes(model, there, true);
    hdl_loading loading = { progress, user, 0, bytes };
    stage->here = (hdl_store){ .model = model, .device = stage->device, .part = here, .pages = stage->pages,
                               .cache_type = stage->cache_type, .first_layer = split.cpu_layers,
                               .layer_count = model->figures.layers - split.cpu_layers,
                               .streamed_layers = split.streamed_layers };
    hd_status status = hdl_store_load(&stage->here, &loading);
    if (status) return status;
    if (stage->cpu) {
        stage->there = (hdl_store){ .model = model, .device = stage->cpu, .part = there, .pages = stage->pages,
                                    .cache_type = stage->cache_type, .layer_count = split.cpu_layers };
        status = hdl_store_load(&stage->there, &loading);
    }
    if (!status && stage->halves) status = hdl_store_make_halves(&stage->here);
    if (!status && progress) progress(user, loading.total, loading.total);
    return status;
}

void hdl_stage_end(hdl_stage *stage) {
    for (uint32_t i = 0; i < stage->plan_count; i++) hd_plan_destroy(stage->plans[i].plan);
    if (stage->model) hdl_free(&stage->model->allocator, stage->plans, stage->plan_capacity * sizeof *stage->plans);
    hdl_store_end(&stage->there);
    hdl_store_end(&stage->here);
    memset(stage, 0, sizeof *stage);
}

/* ---- plans ---- */

static hd_status make_plan(hdl_stage *stage, hdl_size size, hdl_sized *sized) {
    hdl_placed placed;
    hd_status status = hdl_graph_build(stage->model, stage->split, size, &placed);
    if (status) return status;
    const hd_plan_desc wish = hdl_placed_wish(&placed, &stage->cpu, stage->math);
    status = hd_plan_create(stage->device, placed.program, &wish, &sized->plan);
    hdl_placed_end(stage->model, &placed);
    if (status) return status;
    sized->size = size;
    status = hdl_store_bind(&stage->here, sized->plan, size.halves, !size.is_image);
    if (!status && stage->cpu) status = hdl_store_bind(&stage->there, sized->plan, false, !size.is_image);
    if (status) hd_plan_destroy(sized->plan);
    return status;
}

hd_status hdl_stage_plan(hdl_stage *stage, hdl_size size, hd_plan **out_plan) {
    for (uint32_t i = 0; i < stage->plan_count; i++) {
        *out_plan = stage->plans[i].plan;
        if (memcmp(&stage->plans[i].size, &size, sizeof size) == 0) return HD_OK;
    }
    if (!hdl_grow(&stage->model->allocator, &stage->plans, &stage->plan_capacity, stage->plan_count + 1,
                  sizeof *stage->plans))
        return hdl_model_fail(stage->model, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the list of plans");
    const hd_status status = make_plan(stage, size, &stage->plans[stage->plan_count]);
    if (!status) *out_plan = stage->plans[stage->plan_count++].plan;
    return status;
}

/* ---- running ---- */

static hd_status write_inputs(hdl_stage *stage, const hdl_run *run, hd_plan *plan) {
    const uint64_t rows = (uint64_t)run->size.sequences * run->size.tokens;
    hd_status status = hdl_store_write_table(&stage->here);
    if (!status && stage->cpu) status = hdl_store_write_table(&stage->there);
    if (!status && run->size.is_image)
        status = hd_plan_write(plan, "image", run->image, rows * stage->model->figures.hidden * sizeof *run->image);
    else if (!status) status = hd_plan_write(plan, "tokens", run->tokens, rows * sizeof *run->tokens);
    if (!status) status = hd_plan_write(plan, "positions", run->positions, rows * sizeof *run->positions);
    if (!status) status = hd_plan_write(plan, "past", run->past, run->size.sequences * sizeof *run->past);
    if (!status && run->size.results != rows)
        status = hd_plan_write(plan, "last", run->last, run->size.results * sizeof *run->last);
    return status;
}

hd_status hdl_stage_run(hdl_stage *stage, const hdl_run *run, hd_session_stats *inout_stats, hd_plan **out_plan) {
    hd_plan_stats before, after;
    hd_status status = hdl_stage_plan(stage, run->size, out_plan);
    if (!status) status = hd_plan_get_stats(*out_plan, &before);
    if (!status) status = write_inputs(stage, run, *out_plan);
    if (!status) status = hd_plan_run(*out_plan, NULL);
    if (!status) status = hd_plan_get_stats(*out_plan, &after);
    if (status) return status;
    inout_stats->recorded += after.records - before.records;
    inout_stats->submissions += after.segments;
    return HD_OK;
}
