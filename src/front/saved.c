/* saved.c: plans as files (plan/save.c). */
#include "front/front.h"

hd_status hd_plan_save(const hd_plan *plan, char *out_text, size_t room, size_t *out_needed) {
    if (!HDI_FIND(plan)) return HDI_REFUSE(plan);
    const char *ids[HDI_MOST_DEVICES] = { 0 };
    hdi_text text = { .allocator = &plan->context->allocator };
    for (uint32_t d = 0; d < plan->device_count; d++) ids[d] = plan->devices[d]->found.info.id;
    hdi_plan_save(plan->loaded->plan, ids, &plan->program_text, &text);
    const hd_status status = hdi_text_out(&text, out_text, room, out_needed);
    hdi_text_free(&text);
    return status;
}

/* All but the devices is in the text. */
static hd_status check(const hd_plan_desc *desc, const hdi_saved_plan *saved, hd_error *error) {
    if (desc->math || desc->budget_bytes || desc->no_fusion || desc->in_order || desc->slice_us || desc->route ||
        desc->failover || desc->follow || desc->resident_count)
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "a saved plan's wishes are in its text: only `beside` and "
                                                           "`timestamps` are taken from hd_plan_desc");
    if (saved->device_count == 1 + desc->beside_count) return HD_OK;
    return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "the plan was saved for %u devices, not for %u",
                    saved->device_count, 1 + desc->beside_count);
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
    if (!status) status = check(&wishes, &saved, &error);
    if (status) return hdi_context_keep(device->context, &error);
    status =
        hdi_program_read(device->context, saved.program.at, (size_t)(saved.program.end - saved.program.at), &program);
    if (status) return status;
    wishes.math = saved.options.math;
    status = hdi_plan_new(device, program, &wishes, &saved, out_plan);
    hd_program_destroy(program);
    return status;
}
