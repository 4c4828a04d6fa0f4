/* cost.c: what each node of a program takes on one device, by the planner's own steps: what it fuses is one kernel
 * here, and what it refuses cannot be computed there. */
#include "plan/choose.h"

hd_status hdi_schedule_work_of(const hdi_plan_wish *wish, uint32_t device, hdi_schedule_work *out_works,
                               hd_error *error) {
    hdi_schedule *schedule = NULL;
    hdi_plan_options options = wish->options;
    memset(out_works, 0, wish->program->node_count * sizeof *out_works);
    options.works = out_works;
    const hd_status status =
        hdi_schedule_make(wish->program->allocator, wish->program, &wish->caps[device], &options, &schedule, error);
    hdi_schedule_free(schedule);
    return status;
}

hd_status hdi_schedule_costs(const hdi_plan_wish *wish, uint32_t device, const hdi_figures *figures,
                             hdi_node_cost *out_costs, hd_error *error) {
    const uint32_t count = wish->program->node_count;
    hdi_schedule_work *works = hdi_alloc(wish->program->allocator, count * sizeof *works);
    if (!works) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the work of %u nodes", count);
    const hd_status status = hdi_schedule_work_of(wish, device, works, error);
    for (uint32_t i = 0; i < count && !status; i++) {
        const hdi_schedule_work *work = &works[i];
        out_costs[i] = (hdi_node_cost){ .kernel = work->kernel,
                                        .cannot = work->cannot,
                                        .work = work->kernel ? works[work->kernel - 1].work : work->work };
        if (work->kernel == i + 1) out_costs[i].ns = hdi_cost_work(figures, &work->work);
        out_costs[i].assumed = hdi_figures_find(figures, out_costs[i].work.kind, out_costs[i].work.width)->samples == 0;
    }
    hdi_free(wish->program->allocator, works, count * sizeof *works);
    return status;
}
