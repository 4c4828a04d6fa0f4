/* devices.c: listing, choosing, opening and closing devices. */
#include "front/front.h"
#include <stdio.h>

hd_status hd_devices(hd_context *context, hd_device_info *out_infos, size_t *count) {
    if (!HDI_FIND(context)) return HDI_REFUSE(context);
    if (!count) return HD_STATUS_NULL_POINTER;
    const hd_status status = hdi_context_probe(context);
    if (status) return status;
    const size_t room = out_infos ? *count : SIZE_MAX;
    *count = context->registry.ranked_count;
    for (size_t i = 0; out_infos && i < HDI_MIN(room, *count); i++) out_infos[i] = context->registry.ranked[i]->info;
    return room < *count ? HD_STATUS_LIMIT : HD_OK;
}

hd_status hd_backends(hd_context *context, hd_backend_info *out_infos, size_t *count) {
    if (!HDI_FIND(context)) return HDI_REFUSE(context);
    if (!count) return HD_STATUS_NULL_POINTER;
    const hd_status status = hdi_context_probe(context);
    if (status) return status;
    const size_t room = out_infos ? *count : SIZE_MAX;
    *count = context->registry.count;
    for (uint32_t i = 0; out_infos && i < HDI_MIN(room, *count); i++)
        out_infos[i] = hdi_registry_tell(&context->registry.rows[i]);
    return room < *count ? HD_STATUS_LIMIT : HD_OK;
}

hd_status hd_device_caps_text(hd_context *context, const char *id, char *out_text, size_t room, size_t *out_needed) {
    hd_error error = { 0 };
    const hdi_found *found;
    char why[HDI_WHY];
    if (!HDI_FIND(context)) return HDI_REFUSE(context);
    const hd_status status = hdi_context_probe(context);
    if (status) return status;
    if (hdi_registry_select(&context->registry, id, false, &found, why, sizeof why, &error))
        return hdi_context_keep(context, &error);
    hdi_text text = { .allocator = &context->allocator };
    hdi_caps_print(&found->caps, &text);
    return hdi_text_out(&text, out_text, room, out_needed);
}

/* ---- opening ---- */

static void relieve(hd_device *device) { hdi_idle_drop(&device->context->shared.idle, device); }

hd_status hdi_open_found(hd_context *context, const hdi_found *found, const hdi_foreign *foreign, const char *why,
                         hd_device **out_device, hd_error *error) {
    hd_device *device;
    hd_status status = hdi_device_open(&context->host, hdi_registry_backend(&context->registry, found), found, foreign,
                                       &device, error);
    if (status) return status;
    device->context = context;
    status = hdi_calibrate_open(device, error);
    if (!status && (status = HDI_ADD(context, &context->devices, device, error))) hdi_calibrate_close(device);
    if (status) {
        hdi_device_close(device);
        return status;
    }
    device->relieve = relieve;
    snprintf(device->selection, sizeof device->selection, "%s", why);
    hdi_log_line(&context->log, found->info.kind == HD_DEVICE_SOFTWARE ? HD_LOG_WARNING : HD_LOG_INFO, "device", "%s",
                 why);
    *out_device = device;
    return HD_OK;
}

hd_status hd_device_open(hd_context *context, const hd_device_desc *desc, hd_device **out_device) {
    const hd_device_desc defaults = { 0 };
    hd_error error = { 0 };
    const hdi_found *found;
    char why[HDI_WHY];
    if (!HDI_FIND(context)) return HDI_REFUSE(context);
    if (!out_device) return HD_STATUS_NULL_POINTER;
    *out_device = NULL;
    if (!desc) desc = &defaults;
    const char *request = desc->id ? desc->id : desc->vulkan_device ? "vulkan" : context->device[0] ? context->device
                          : NULL;
    hdi_foreign foreign = { desc->vulkan_instance,     desc->vulkan_physical_device,
                            desc->vulkan_device,       desc->vulkan_get_instance_proc_addr,
                            desc->vulkan_queue_family, desc->vulkan_queue_index };
    if (foreign.device && !(foreign.instance && foreign.physical_device))
        return hdi_context_fail(context, HD_STATUS_INVALID_ARGUMENT,
                                "a Vulkan device was handed in without its instance or its physical device");
    hd_status status = hdi_context_probe(context);
    if (status) return status;
    if (hdi_registry_select(&context->registry, request, context->shared.strict, &found, why, sizeof why, &error))
        return hdi_context_keep(context, &error);
    status = hdi_open_found(context, found, desc->vulkan_device ? &foreign : NULL, why, out_device, &error);
    /* A device that cannot be opened is passed over for the next best when none was named. */
    for (uint32_t i = 0; status && !request && !context->shared.strict && i < context->registry.ranked_count; i++) {
        const hdi_found *next = context->registry.ranked[i];
        if (next == found || next->info.kind == HD_DEVICE_SOFTWARE || next->info.kind == HD_DEVICE_NULL) continue;
        snprintf(why, sizeof why, "requested=best selected=%s because=\"%s could not be opened: %.200s\"",
                 next->info.id, found->info.id, error.text);
        status = hdi_open_found(context, next, NULL, why, out_device, NULL);
    }
    if (status) return hdi_context_keep(context, &error);
    *out_device = (*out_device)->held.handle;
    return HD_OK;
}

static bool is_ticket_of(const hdi_link *link, const void *user) {
    const hdi_run *run = &HDI_OBJECT(link, hd_ticket, held.link)->run;
    bool of = false;
    for (uint32_t d = 0; d < run->count; d++) of |= run->last[d].device == user;
    return of;
}

static bool is_plan_of(const hdi_link *link, const void *user) {
    return hdi_plan_has(HDI_OBJECT(link, hd_plan, held.link), user);
}

static bool is_buffer_of(const hdi_link *link, const void *user) {
    return HDI_OBJECT(link, hd_buffer, held.link)->device == user;
}

void hd_device_close(hd_device *device) {
    if (!HDI_FIND(device)) return;
    hd_context *context = device->context;
    hdi_held *found;
    if (!hdi_held_remove(&context->holder, &device->held)) return;
    while ((found = hdi_held_claim(&context->holder, &context->tickets, is_ticket_of, device)))
        hdi_ticket_end(HDI_OBJECT(found, hd_ticket, held));
    while ((found = hdi_held_claim(&context->holder, &context->plans, is_plan_of, device)))
        hdi_plan_end(HDI_OBJECT(found, hd_plan, held));
    hdi_idle_drop(&context->shared.idle, device);
    while ((found = hdi_held_claim(&context->holder, &context->buffers, is_buffer_of, device)))
        hdi_buffer_end(HDI_OBJECT(found, hd_buffer, held));
    hdi_calibrate_close(device);
    hdi_device_close(device);
}

const hd_device_info *hd_device_get_info(const hd_device *device) {
    return HDI_FIND(device) ? &device->found.info : NULL;
}
const char *hd_device_selection(const hd_device *device) { return HDI_FIND(device) ? device->selection : ""; }
hd_context *hd_device_context(const hd_device *device) {
    return HDI_FIND(device) ? device->context->holder.handle : NULL;
}

hd_status hd_device_get_stats(hd_device *device, hd_device_stats *out_stats) {
    if (!HDI_FIND(device)) return HDI_REFUSE(device);
    if (!out_stats) return HD_STATUS_NULL_POINTER;
    hdi_mutex_lock(&device->lock);
    *out_stats = device->stats;
    hdi_mutex_unlock(&device->lock);
    return HD_OK;
}

hd_status hd_device_memory(hd_device *device, hd_memory_info *out_infos, size_t *count) {
    if (!HDI_FIND(device)) return HDI_REFUSE(device);
    if (!count) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    const hd_status status = hdi_device_memory(device, out_infos, count, &error);
    return status == HD_STATUS_LIMIT ? status : hdi_context_done(device->context, status, &error);
}

hd_status hd_device_heaps(hd_device *device, hd_heap *out_heaps, size_t *count) {
    if (!HDI_FIND(device)) return HDI_REFUSE(device);
    if (!count) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    const hd_status status = hdi_device_list_heaps(device, out_heaps, count, &error);
    return status == HD_STATUS_LIMIT ? status : hdi_context_done(device->context, status, &error);
}

hd_status hd_device_wait(hd_device *device, uint64_t timeout_ns) {
    if (!HDI_FIND(device)) return HDI_REFUSE(device);
    hd_error error = { 0 };
    return hdi_context_done(device->context, hdi_device_wait_all(device, timeout_ns, &error), &error);
}

hd_status hd_device_trace(hd_device *device, hd_trace_fn receive, void *user) {
    if (!HDI_FIND(device)) return HDI_REFUSE(device);
    hd_error error = { 0 };
    return hdi_context_done(device->context, hdi_trace_set(device, receive, user, &error), &error);
}

/* ---- what is known ---- */

hd_status hd_device_calibrate(hd_device *device, const hd_calibrate_desc *desc) {
    const hd_calibrate_desc defaults = { 0 };
    hd_error error = { 0 };
    if (!HDI_FIND(device)) return HDI_REFUSE(device);
    return hdi_context_done(device->context, hdi_calibrate(device, desc ? desc : &defaults, &error), &error);
}

hd_status hd_device_facts(hd_device *device, hd_fact *out_facts, size_t *count) {
    if (!HDI_FIND(device)) return HDI_REFUSE(device);
    if (!count) return HD_STATUS_NULL_POINTER;
    const size_t room = *count;
    *count = hdi_calibrate_known(device, out_facts, room);
    if (!out_facts || *count <= room) return HD_OK;
    return hdi_context_fail(device->context, HD_STATUS_LIMIT, "%zu facts and room for %zu", *count, room);
}

hd_status hd_device_predict(hd_device *device, const hd_program *program, uint64_t *out_run_ns,
                            uint64_t *out_transfers_ns) {
    if (!HDI_FIND(device)) return HDI_REFUSE(device);
    if (!HDI_FIND(program)) return HDI_REFUSE(program);
    hd_error error = { 0 };
    hdi_placement_time time = { 0 };
    const hd_status status = hdi_prepare_predict(device, program, &time, &error);
    if (!status && out_run_ns) *out_run_ns = (uint64_t)(time.total_ns - time.transfers_ns);
    if (!status && out_transfers_ns) *out_transfers_ns = (uint64_t)time.transfers_ns;
    return hdi_context_done(device->context, status, &error);
}
