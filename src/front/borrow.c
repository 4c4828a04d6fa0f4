/* borrow.c: what a device has no kernel for runs on the CPU beside it: the plan gets a second device and a route that
 * names these operations, as if the caller had. */
#include "front/front.h"

/* The CPU of the context, opened where it is not yet; NULL: there is none. It stays open as long as the context. */
static hd_device *cpu_of(hd_context *context) {
    const hdi_found *found = NULL;
    hd_device *device;
    bool lost;
    for (uint32_t i = 0; i < context->registry.ranked_count && !found; i++)
        if (context->registry.ranked[i]->info.kind == HD_DEVICE_CPU) found = context->registry.ranked[i];
    device = found ? hdi_device_open_already(context, found->info.id, &lost) : NULL;
    if (!found || device) return device;
    return hdi_front_open(context, found, NULL, "requested=cpu because=\"another device lacks kernels\"", &device, NULL)
           ? NULL : device;
}

/* "v3=1,v7=1" for what the device cannot compute, and words about it, and counts it; false where it could all of it, or
 * on failure. */
static bool find_lacking(hd_plan *plan, const hd_program *program, hdi_text *out_route, hdi_text *out_words) {
    const hd_allocator *allocator = &plan->context->allocator;
    const char *id = plan->devices[0]->found.info.id;
    hdi_node_cost *costs = hdi_alloc(allocator, program->node_count * sizeof *costs);
    hdi_caps *caps = hdi_alloc(allocator, sizeof *caps);
    hdi_figures *figures = hdi_alloc(allocator, sizeof *figures);
    bool good = costs && caps && figures;
    if (good) {
        hdi_store_caps(plan->devices[0]->facts, caps);
        hdi_store_figures(plan->devices[0]->facts, figures);
        const hdi_plan_wish wish = { program, NULL, caps, &id, hdi_plan_options_of(&plan->desc) };
        good = hdi_schedule_costs(&wish, 0, figures, costs, NULL) == HD_OK;
    }
    for (uint32_t i = 0; i < program->node_count && good; i++) {
        if (!costs[i].cannot || hdi_op_is_source(program->nodes[i].op)) continue;
        if (program->nodes[i].op == HDI_OP_DISPATCH) good = false; /* a caller's kernel is run where he said */
        plan->stats.borrowed++;
        hdi_text_add(out_route, "%sv%u=1", out_route->count ? "," : "", i + 1);
        hdi_text_add(out_words, "%sv%u %s", out_words->count ? ", " : "", i + 1, hdi_op_get(program->nodes[i].op).name);
    }
    hdi_free(allocator, costs, program->node_count * sizeof *costs);
    hdi_free(allocator, caps, sizeof *caps);
    hdi_free(allocator, figures, sizeof *figures);
    return good && out_route->count > 0 && !out_route->failed && !out_words->failed;
}

static bool may_borrow(const hd_plan *plan) {
    return !plan->context->strict && !plan->desc.alone && plan->device_count == 1 && !plan->desc.route &&
           !plan->route && plan->devices[0]->found.info.kind != HD_DEVICE_CPU &&
           plan->devices[0]->found.info.kind != HD_DEVICE_NULL;
}

bool hdi_borrow_cpu(hd_plan *plan, const hd_program *program) {
    const hd_allocator *allocator = &plan->context->allocator;
    hdi_text route = { .allocator = allocator }, words = { .allocator = allocator };
    hd_device *cpu = NULL;
    if (may_borrow(plan) && find_lacking(plan, program, &route, &words)) cpu = cpu_of(plan->context);
    if (cpu && (plan->route = hdi_alloc(allocator, route.count + 1))) {
        memcpy(plan->route, route.bytes, route.count + 1);
        plan->route_bytes = route.count + 1;
        plan->desc.route = plan->route;
        plan->devices[1] = cpu;
        plan->device_count = 2;
        hdi_text_add(&plan->route_text, "on the CPU, since %s has no kernel for them: %s\n",
                     plan->devices[0]->found.info.id, words.bytes);
        hdi_log_line(&plan->context->log, HD_LOG_WARNING, "plan", "%s has no kernel for %.200s: the CPU computes that",
                     plan->devices[0]->found.info.id, words.bytes);
    }
    hdi_text_free(&route);
    hdi_text_free(&words);
    return plan->device_count == 2 && plan->desc.route && plan->desc.route == plan->route;
}

void hdi_borrow_end(hd_plan *plan) {
    hdi_free(&plan->context->allocator, plan->route, plan->route_bytes);
    hdi_text_free(&plan->route_text);
    plan->route = NULL;
    plan->desc.route = NULL;
    plan->device_count = 1;
    plan->stats.borrowed = 0;
}
