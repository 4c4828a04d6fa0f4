/* explain.c: program, plan, commands and device as text, each choice with its "because"; and the times of a run. */
#include "front/front.h"

static void print_device(const hdi_caps *caps, const char *id, const char *selection, hdi_text *out) {
    hdi_text_add(out, "\ndevice %s  %s\n", id, caps->name);
    if (selection) hdi_text_add(out, "%s\n", selection);
    uint32_t refused = 0;
    while (refused < HDI_CAPS_REFUSED && caps->refused[refused]) refused++;
    if (refused > 0)
        hdi_text_add(out, "its library of matrix products refuses %u %s, made by the next best kernel%s\n", refused,
                     refused > 1 ? "shapes" : "shape", caps->product_library ? "" : "; it is asked no more");
}

static hd_status give(hdi_text *text, char *out_text, size_t room, size_t *out_needed) {
    const hd_status status = hdi_text_out(text, out_text, room, out_needed);
    hdi_text_free(text);
    return status;
}

hd_status hd_plan_explain(const hd_plan *plan, char *out_text, size_t room, size_t *out_needed) {
    if (!HDI_FIND(plan)) return HDI_REFUSE(plan);
    const hdi_loaded *loaded = plan->loaded;
    hdi_text text = { .allocator = &plan->context->allocator };
    hdi_text_add(&text, "program\n%s", plan->program_text.bytes);
    if (plan->route_text.count > 0) hdi_text_add(&text, "\nroute\n%s", plan->route_text.bytes);
    if (plan->alternative_count > 1)
        hdi_text_add(&text, "it follows the load: %u finished plans, number %u runs now, %llu switches so far\n",
                     plan->alternative_count, plan->follow.at, (unsigned long long)plan->stats.switches);
    hdi_plan_print(loaded->plan, &text);
    for (uint32_t d = 0; d < plan->device_count; d++)
        if (loaded->plan->on[d].total_bytes > 0 || plan->device_count == 1)
            print_device(&loaded->plan->caps[d], plan->devices[d]->found.info.id, plan->devices[d]->selection, &text);
    return give(&text, out_text, room, out_needed);
}

hd_status hd_explain(hd_context *context, const hd_program *program, const char *caps_text, const hd_plan_desc *desc,
                     char *out_text, size_t room, size_t *out_needed) {
    const hd_plan_desc defaults = { 0 };
    if (!HDI_FIND(context)) return HDI_REFUSE(context);
    if (!HDI_FIND(program)) return HDI_REFUSE(program);
    if (!caps_text) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    hdi_caps caps;
    hdi_schedule *plan = NULL;
    if (!desc) desc = &defaults;
    if (desc->beside_count || desc->route)
        return hdi_context_fail(context, HD_STATUS_UNSUPPORTED,
                                "a described device runs a program alone; for a route take hd_plan_explain");
    hdi_plan_options options = hdi_plan_options_of(desc);
    hd_status status = hdi_caps_parse(caps_text, strlen(caps_text), &caps, &error);
    if (!status) status = hdi_schedule_make(&context->allocator, program, &caps, &options, &plan, &error);
    if (status) return hdi_context_keep(context, &error);
    hdi_text text = { .allocator = &context->allocator };
    hdi_text_add(&text, "program\n");
    hdi_program_print(program, &text);
    hdi_schedule_print_all(plan, &text);
    print_device(&plan->caps, "described", NULL, &text);
    hdi_schedule_free(plan);
    return give(&text, out_text, room, out_needed);
}

hd_status hd_plan_timings(hd_plan *plan, hd_timing *out_timings, size_t *count) {
    if (!HDI_FIND(plan)) return HDI_REFUSE(plan);
    if (!count) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    hd_status status = hdi_drive(plan->loaded, true, 0, &error);
    if (status) return hdi_context_keep(plan->context, &error);
    const hdi_loaded *ran = plan->outputs ? plan->outputs : plan->loaded;
    if (!plan->desc.timestamps || !ran->ran)
        return hdi_context_fail(plan->context, HD_STATUS_WRONG_STATE,
                                "times need a plan made with timestamps, and a run");
    const size_t room = *count;
    status = hdi_loaded_timings(ran, out_timings, room, count, &error);
    if (status) return hdi_context_keep(plan->context, &error);
    return out_timings && room < *count ? HD_STATUS_LIMIT : HD_OK;
}
