/* lost.c: moving on when a device is lost. After a loss a plan is planned anew with other devices in place of the lost
 * ones, and goes on with its host copies (run/shadow.c). */
#include "front/front.h"

/* Has the plan the device already? */
static bool has(const hd_plan *plan, const hd_device *device) {
    bool found = false;
    for (uint32_t d = 0; d < plan->device_count; d++) found |= plan->devices[d] == device;
    return found;
}

hd_device *hdi_device_open_already(hd_context *context, const char *id, bool *out_lost) {
    hd_device *open = NULL;
    *out_lost = false;
    hdi_mutex_lock(&context->lock);
    for (hdi_link *at = context->devices.next; at != &context->devices; at = at->next) {
        hd_device *device = HDI_OBJECT(at, hd_device, held.link);
        if (strcmp(device->found.info.id, id) != 0) continue;
        *out_lost |= device->lost != HD_OK;
        if (!device->lost) open = device;
    }
    hdi_mutex_unlock(&context->lock);
    return open;
}

/* What takes a lost device's place: the best device that the plan has not and that was not lost, opened already or
 * opened now; else one that the plan has. */
static hd_status find_next(const hd_plan *plan, const hd_device *lost, hd_device **out_device, hd_error *error) {
    hd_context *context = plan->context;
    for (uint32_t i = 0; i < context->registry.ranked_count; i++) {
        const hdi_found *found = context->registry.ranked[i];
        bool failed;
        if (found->info.kind == HD_DEVICE_NULL || strcmp(found->info.id, lost->found.info.id) == 0) continue;
        *out_device = hdi_device_open_already(context, found->info.id, &failed);
        if (*out_device && !has(plan, *out_device)) return HD_OK;
        if (*out_device || failed) continue;
        if (!hdi_front_open(context, found, NULL, "requested=fail-over because=\"another device was lost\"", out_device,
                            NULL))
            return HD_OK;
    }
    for (uint32_t d = 0; d < plan->device_count; d++)
        if (!plan->devices[d]->lost) {
            *out_device = plan->devices[d];
            return HD_OK;
        }
    return hdi_fail(error, HD_STATUS_DEVICE_LOST, "%s was lost and no other device is left", lost->found.info.id);
}

static hd_status replace_lost(hd_plan *plan, hd_error *error) {
    hd_status status = HD_OK;
    for (uint32_t d = 0; d < plan->device_count && !status; d++) {
        hd_device *const lost = plan->devices[d];
        hd_device *next = NULL;
        if (!lost->lost) continue;
        status = find_next(plan, lost, &next, error);
        if (status) return status;
        hdi_mutex_lock(&plan->context->lock); /* those who close devices look at the plan's */
        plan->devices[d] = next;
        hdi_mutex_unlock(&plan->context->lock);
        hdi_log_line(&plan->context->log, HD_LOG_WARNING, "plan", "%s was lost: the plan goes on on %s",
                     lost->found.info.id, next->found.info.id);
    }
    return status;
}

/* Plans the program anew; what was there before is ended. */
static hd_status plan_anew(hd_plan *plan, hd_error *error) {
    hd_program *program = NULL;
    hdi_loaded *const old = plan->loaded;
    hd_status status = hdi_program_read(plan->context, plan->program_text.bytes, plan->program_text.count, &program);
    if (status) return hdi_fail(error, status, "the program could not be read again for another device");
    plan->desc.route = plan->route;
    status = hdi_planning_make(plan, program, error);
    plan->desc.route = NULL;
    hd_program_destroy(program);
    if (status) return status;
    plan->runs += old->runs;
    plan->records += old->records;
    hdi_loaded_end(old);
    return HD_OK;
}

hd_status hdi_plan_move(hd_plan *plan, hd_error *error) {
    hd_status status;
    do { /* the next device may be lost, too */
        memset(error, 0, sizeof *error);
        hdi_drive_stop(plan->loaded, HD_STATUS_DEVICE_LOST);
        status = replace_lost(plan, error);
        if (status) return status;
        status = plan_anew(plan, error);
        if (!status) status = hdi_shadows_bring(plan->shadows, plan->loaded, error);
    } while (status == HD_STATUS_DEVICE_LOST);
    plan->stats.failovers += status == HD_OK;
    atomic_fetch_add(&plan->context->failovers, status == HD_OK);
    return status;
}
