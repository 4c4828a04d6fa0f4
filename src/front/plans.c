/* plans.c: plans as the caller sees them: made, estimated, saved, explained, written, read and ended. How they are made
 * is the plan room's and prepare.c's, how they run is run/plan.c's. */
#include "front/front.h"

/* ---- making and ending ---- */

static void free_plan(hd_plan *plan, bool reusable) {
    hdi_plan_unload(plan, reusable);
    if (plan->program) hdi_program_end(plan->program);
    hdi_text_free(&plan->program_text);
    hdi_text_free(&plan->route_text);
    hdi_text_free(&plan->route);
    hdi_free(&plan->context->allocator, plan, sizeof *plan);
}

/* What the wishes say before anything is planned. */
static hd_status begin(hd_device *device, const hd_program *program, const hd_plan_desc *desc, hd_plan **out_plan,
                       hd_error *error) {
    hd_context *context = device->context;
    if (program->context && program->context != context)
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "the program is of another context than the device");
    hd_status status = hdi_program_check(program, error);
    if (status) return status;
    hd_plan *plan = hdi_alloc(&context->allocator, sizeof *plan);
    if (!plan) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a plan");
    plan->context = context;
    plan->shared = &context->shared;
    if (desc) plan->desc = *desc;
    plan->devices[0] = device;
    plan->device_count = 1 + HDI_MIN(desc && desc->beside ? desc->beside_count : 0, (uint32_t)HDI_MOST_DEVICES - 1);
    for (uint32_t d = 1; d < plan->device_count; d++) {
        hd_device *beside = desc->beside[d - 1];
        plan->devices[d] = HDI_FIND(beside) ? beside : NULL;
    }
    plan->program_text.allocator = plan->route_text.allocator = plan->route.allocator = &context->allocator;
    hdi_list_init(&plan->streams);
    status = hdi_prepare_check(plan, error);
    if (status) free_plan(plan, false);
    else *out_plan = plan;
    return status;
}

/* What is needed again after a loss, or where a NaN is found: the program, and the route's words. */
static hd_status keep(hd_plan *plan, const hd_program *program, bool watched, hd_error *error) {
    hd_status status = HD_OK;
    if (watched || plan->desc.failover) status = hdi_program_copy(plan->context, program, &plan->program, error);
    if (!status && watched) {
        hdi_program_watch(plan->program, plan->shared->find_nan > 1);
        status = hdi_program_check(plan->program, error);
    }
    if (plan->desc.route && plan->desc.failover) hdi_text_add(&plan->route, "%s", plan->desc.route);
    if (plan->route.failed) status = hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a route");
    return status;
}

static hd_status make(hd_plan *plan, const hd_program *program, const hdi_saved_plan *saved, hd_error *error) {
    hd_status status = keep(plan, program, plan->shared->find_nan && !saved, error);
    if (status) return status;
    if (plan->program) program = plan->program;
    hdi_program_print(program, &plan->program_text);
    if (plan->program_text.failed)
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the program's text");
    status = saved ? hdi_prepare_load(plan, program, saved, error) : hdi_prepare_make(plan, program, NULL, error);
    if (!status && plan->desc.failover && !(plan->shadows = hdi_shadows_new(plan->loaded, error)))
        status = HD_STATUS_OUT_OF_HOST_MEMORY;
    return status;
}

/* As hd_plan_create; `saved`: it is that plan, and `desc` says what is not in it. */
static hd_status create(hd_device *device, const hd_program *program, const hd_plan_desc *desc,
                        const hdi_saved_plan *saved, hd_plan **out_plan, hd_error *error) {
    hd_plan *plan = NULL;
    hd_status status = begin(device, program, desc, &plan, error);
    if (status) return status;
    status = make(plan, program, saved, error);
    plan->desc.route = NULL; /* borrowed for the call */
    plan->desc.resident = NULL;
    plan->desc.beside = NULL;
    if (!status) status = HDI_ADD(plan->context, &plan->context->plans, plan, error);
    if (status) free_plan(plan, false);
    else *out_plan = plan->held.handle;
    return status;
}

hd_status hd_plan_create(hd_device *device, const hd_program *program, const hd_plan_desc *desc, hd_plan **out_plan) {
    if (!HDI_FIND(device)) return HDI_REFUSE(device);
    if (!HDI_FIND(program)) return HDI_REFUSE(program);
    if (!out_plan) return HD_STATUS_NULL_POINTER;
    *out_plan = NULL;
    hd_error error = { 0 };
    return hdi_context_done(device->context, create(device, program, desc, NULL, out_plan, &error), &error);
}

void hdi_plan_end(hd_plan *plan) {
    hd_context *context = plan->context;
    hdi_drive_stop(plan->loaded, HD_STATUS_WRONG_STATE);
    while (!hdi_list_empty(&plan->streams)) hd_stream_destroy(HDI_OBJECT(plan->streams.next, hd_stream, held.link));
    hdi_mutex_lock(&context->holder.lock);
    for (hdi_link *at = context->tickets.next; at != &context->tickets; at = at->next)
        if (HDI_OBJECT(at, hd_ticket, held.link)->plan == plan) HDI_OBJECT(at, hd_ticket, held.link)->plan = NULL;
    hdi_mutex_unlock(&context->holder.lock);
    free_plan(plan, !plan->desc.failover);
}

void hd_plan_destroy(hd_plan *plan) {
    if (HDI_FIND(plan) && hdi_held_remove(&plan->context->holder, &plan->held)) hdi_plan_end(plan);
}

/* One of both is asked for. */
static hd_status estimate(hd_device *device, const hd_program *program, const hd_plan_desc *desc,
                          hd_plan_memory *out_memory, hd_plan_memory *out_each) {
    if (!HDI_FIND(device)) return HDI_REFUSE(device);
    if (!HDI_FIND(program)) return HDI_REFUSE(program);
    if (!out_memory && !out_each) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    hd_plan *plan = NULL;
    hdi_plan *made = NULL;
    hd_status status = begin(device, program, desc, &plan, &error);
    if (!status && out_each) plan->desc.alone = 1; /* they are of the caller's devices */
    if (!status) status = hdi_prepare_make(plan, program, &made, &error);
    if (!status && out_memory) *out_memory = made->memory;
    if (!status && out_each) memcpy(out_each, made->on, made->device_count * sizeof *out_each);
    hdi_plan_free(made);
    if (plan) free_plan(plan, false);
    return hdi_context_done(device->context, status, &error);
}

hd_status hd_plan_estimate(hd_device *device, const hd_program *program, const hd_plan_desc *desc,
                           hd_plan_memory *out_memory) {
    return estimate(device, program, desc, out_memory, NULL);
}

hd_status hd_plan_estimate_each(hd_device *device, const hd_program *program, const hd_plan_desc *desc,
                                hd_plan_memory *out_memories) {
    return estimate(device, program, desc, NULL, out_memories);
}

/* ---- plans as files (plan/save.c) ---- */

hd_status hd_plan_save(const hd_plan *plan, char *out_text, size_t room, size_t *out_needed) {
    if (!HDI_FIND(plan)) return HDI_REFUSE(plan);
    const char *ids[HDI_MOST_DEVICES] = { 0 };
    hdi_text text = { .allocator = &plan->context->allocator };
    for (uint32_t d = 0; d < plan->device_count; d++) ids[d] = plan->devices[d]->found.info.id;
    hdi_plan_save(plan->loaded->plan, ids, &plan->program_text, &text);
    return hdi_text_out(&text, out_text, room, out_needed);
}

hd_status hd_plan_load(hd_device *device, const char *text, size_t bytes, const hd_plan_desc *desc,
                       hd_plan **out_plan) {
    if (!HDI_FIND(device)) return HDI_REFUSE(device);
    if (!text || !out_plan) return HD_STATUS_NULL_POINTER;
    *out_plan = NULL;
    hd_plan_desc wishes = desc ? *desc : (hd_plan_desc){ 0 };
    hdi_saved_plan saved;
    hd_program *program = NULL;
    hd_error error = { 0 };
    hd_status status = hdi_saved_plan_read(text, bytes, &saved, &error);
    if (!status) status = hdi_saved_plan_check(&saved, &wishes, &error);
    if (!status)
        status = hdi_program_read(device->context, saved.program.at, (size_t)(saved.program.end - saved.program.at),
                                  &program, &error);
    wishes.math = saved.options.math;
    if (!status) status = create(device, program, &wishes, &saved, out_plan, &error);
    if (program) hdi_program_end(program);
    return hdi_context_done(device->context, status, &error);
}

/* ---- what is known of a plan ---- */

hd_status hd_plan_explain(const hd_plan *plan, char *out_text, size_t room, size_t *out_needed) {
    if (!HDI_FIND(plan)) return HDI_REFUSE(plan);
    hdi_text text = { .allocator = &plan->context->allocator };
    hdi_plan_explain(plan, &text);
    return hdi_text_out(&text, out_text, room, out_needed);
}

hd_status hd_explain(hd_context *context, const hd_program *program, const char *caps_text, const hd_plan_desc *desc,
                     char *out_text, size_t room, size_t *out_needed) {
    if (!HDI_FIND(context)) return HDI_REFUSE(context);
    if (!HDI_FIND(program)) return HDI_REFUSE(program);
    if (!caps_text) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    hdi_text text = { .allocator = &context->allocator };
    const hd_status status = hdi_schedule_explain(program, caps_text, desc, &text, &error);
    return status ? hdi_context_keep(context, &error) : hdi_text_out(&text, out_text, room, out_needed);
}

hd_status hd_plan_get_memory(const hd_plan *plan, hd_plan_memory *out_memory) {
    if (!HDI_FIND(plan)) return HDI_REFUSE(plan);
    if (!out_memory) return HD_STATUS_NULL_POINTER;
    *out_memory = plan->memory;
    return HD_OK;
}

hd_status hd_plan_get_stats(const hd_plan *plan, hd_plan_stats *out_stats) {
    if (!HDI_FIND(plan)) return HDI_REFUSE(plan);
    if (!out_stats) return HD_STATUS_NULL_POINTER;
    *out_stats = hdi_plan_count(plan);
    return HD_OK;
}

hd_status hd_plan_timings(hd_plan *plan, hd_timing *out_timings, size_t *count) {
    if (!HDI_FIND(plan)) return HDI_REFUSE(plan);
    if (!count) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    const size_t room = *count;
    const hd_status status = hdi_plan_timings(plan, out_timings, room, count, &error);
    if (!status && out_timings && room < *count) return HD_STATUS_LIMIT;
    return hdi_context_done(plan->context, status, &error);
}

hd_device *hd_plan_device(const hd_plan *plan) { return HDI_FIND(plan) ? plan->devices[0]->held.handle : NULL; }

/* ---- bytes in and out ---- */

hd_status hd_plan_write(hd_plan *plan, const char *name, const void *data, uint64_t bytes) {
    if (!HDI_FIND(plan)) return HDI_REFUSE(plan);
    if (!name || !data) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    return hdi_context_done(plan->context, hdi_plan_write(plan, name, data, bytes, &error), &error);
}

hd_status hd_plan_read(hd_plan *plan, const char *name, void *out_data, uint64_t bytes) {
    if (!HDI_FIND(plan)) return HDI_REFUSE(plan);
    if (!name || !out_data) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    return hdi_context_done(plan->context, hdi_plan_read(plan, name, out_data, bytes, &error), &error);
}

hd_status hd_plan_bind(hd_plan *plan, const char *name, hd_buffer *buffer, uint64_t offset) {
    if (!HDI_FIND(plan)) return HDI_REFUSE(plan);
    if (!HDI_FIND(buffer)) return HDI_REFUSE(buffer);
    if (!name) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    return hdi_context_done(plan->context, hdi_plan_bind(plan, name, buffer, offset, &error), &error);
}
