/* lost.c: other devices that plans go on to: the CPU, for what another device has no kernel for, and those that come in
 * place of lost ones; there a plan is planned anew, and goes on with its host copies (run/shadow.c). */
#include "front/front.h"

/* The device, opened already or opened now; NULL: it cannot be, or, unless `again`, was lost. */
static hd_device *open_once(hd_context *context, const hdi_found *found, bool again, const char *why) {
    hd_device *open = NULL;
    bool lost = false;
    hdi_mutex_lock(&context->holder.lock);
    for (hdi_link *at = context->devices.next; at != &context->devices; at = at->next) {
        hd_device *device = HDI_OBJECT(at, hd_device, held.link);
        if (strcmp(device->found.info.id, found->info.id) != 0) continue;
        lost |= device->lost != HD_OK;
        if (!device->lost) open = device;
    }
    hdi_mutex_unlock(&context->holder.lock);
    if (!open && (again || !lost)) hdi_open_found(context, found, NULL, why, &open, NULL);
    return open;
}

hd_device *hdi_open_cpu(hd_context *context) {
    const hdi_registry *registry = &context->registry;
    for (uint32_t i = 0; i < registry->ranked_count; i++)
        if (registry->ranked[i]->info.kind == HD_DEVICE_CPU)
            return open_once(context, registry->ranked[i], true,
                             "requested=cpu because=\"another device lacks kernels\"");
    return NULL;
}

/* ---- after a loss ---- */

/* What takes a lost device's place: the best device that the plan has not and that was not lost; else one that the plan
 * has; NULL: there is none. */
static hd_device *find_next(const hd_plan *plan, const hd_device *lost) {
    const hdi_registry *registry = &plan->context->registry;
    for (uint32_t i = 0; i < registry->ranked_count; i++) {
        const hdi_found *found = registry->ranked[i];
        if (found->info.kind == HD_DEVICE_NULL || strcmp(found->info.id, lost->found.info.id) == 0) continue;
        hd_device *device = open_once(plan->context, found, false,
                                      "requested=fail-over because=\"another device was lost\"");
        if (device && !hdi_plan_has(plan, device)) return device;
    }
    for (uint32_t d = 0; d < plan->device_count; d++)
        if (!plan->devices[d]->lost) return plan->devices[d];
    return NULL;
}

static hd_status replace_lost(hd_plan *plan, hd_error *error) {
    for (uint32_t d = 0; d < plan->device_count; d++) {
        hd_device *const lost = plan->devices[d];
        if (!lost->lost) continue;
        hd_device *next = find_next(plan, lost);
        if (!next)
            return hdi_fail(error, HD_STATUS_DEVICE_LOST, "%s was lost and no other device is left",
                            lost->found.info.id);
        hdi_mutex_lock(&plan->context->holder.lock); /* those who close devices look at the plan's */
        plan->devices[d] = next;
        hdi_mutex_unlock(&plan->context->holder.lock);
        hdi_log_line(&plan->context->log, HD_LOG_WARNING, "plan", "%s was lost: the plan goes on on %s",
                     lost->found.info.id, next->found.info.id);
    }
    return HD_OK;
}

hd_status hdi_plan_move(hd_plan *plan, hd_error *error) {
    hd_status status;
    do { /* the next device may be lost, too */
        *error = (hd_error){ 0 };
        hdi_drive_stop(plan->loaded, HD_STATUS_DEVICE_LOST);
        status = replace_lost(plan, error);
        if (status) return status;
        status = hdi_prepare_again(plan, error);
        if (!status) status = hdi_shadows_bring(plan->shadows, plan->loaded, error);
    } while (status == HD_STATUS_DEVICE_LOST);
    plan->stats.failovers += status == HD_OK;
    atomic_fetch_add(&plan->context->failovers, status == HD_OK);
    return status;
}
