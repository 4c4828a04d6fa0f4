/* drive.c: a run of a plan, from segment to segment. They are handed over in their order, each as soon as the values that it
 * needs from the other device are done and carried over; so what does not wait for one another runs at the same time. */
#include "front/front.h"

/* ---- values that cross ---- */

/* Straight from or to memory that the host sees; else by a buffer of the plan's. */
static hd_status carry(hd_plan *plan, hdi_crossing *crossing, hd_error *error) {
    const hdi_part *from = &plan->parts[crossing->from];
    hdi_core *to = plan->parts[crossing->to].core;
    hd_status status = hdi_core_memory(to, crossing->to_slot, error);
    if (status) return status;
    hdi_memory *source = from->core->slots[crossing->from_slot].memory, *target = to->slots[crossing->to_slot].memory;
    void *pointer = hdi_device_map(to->device, target);
    if (pointer) {
        status = hdi_device_wait(to->device, to->last_ticket, 0, error); /* the last run may still read what lies there */
        if (!status) status = hdi_device_read(from->core->device, source, 0, pointer, crossing->bytes, from->ticket, error);
        return status;
    }
    pointer = hdi_device_map(from->core->device, source);
    if (pointer) status = hdi_device_wait(from->core->device, from->ticket, 0, error);
    else {
        if (!crossing->host && crossing->bytes <= SIZE_MAX) crossing->host = hdi_alloc(&plan->context->allocator, (size_t)crossing->bytes);
        if (!crossing->host) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a value between two devices");
        pointer = crossing->host;
        status = hdi_device_read(from->core->device, source, 0, pointer, crossing->bytes, from->ticket, error);
    }
    return status ? status : hdi_device_write(to->device, target, 0, pointer, crossing->bytes, &to->last_ticket, error);
}

/* ---- tickets ---- */

void hdi_drive_last(const hd_plan *plan, hdi_last out_last[2]) {
    out_last[0] = out_last[1] = (hdi_last){ NULL, 0 };
    for (uint32_t p = 0; p < plan->part_count; p++) {
        const hdi_core *core = plan->parts[p].core;
        hdi_last *of = &out_last[core->device != plan->device];
        *of = (hdi_last){ core->device, HDI_MAX(of->ticket, core->last_ticket) };
    }
}

/* Open tickets of the plan's run learn what to wait for, or that there is nothing. */
static void close_tickets(hd_plan *plan, const hdi_last last[2], hd_status status) {
    hd_context *context = plan->context;
    hdi_mutex_lock(&context->lock);
    for (hdi_link *at = context->tickets.next; at != &context->tickets; at = at->next) {
        hd_ticket *ticket = HDI_OBJECT(at, hd_ticket, link);
        if (ticket->plan != plan || !ticket->open) continue;
        ticket->open = false;
        ticket->failed = status;
        memcpy(ticket->last, last, sizeof ticket->last);
    }
    hdi_mutex_unlock(&context->lock);
}

/* The run is handed over, or given up: memory that segments share is in use as long as the last of them on the device runs. */
static void end_run(hd_plan *plan, hd_status status) {
    hdi_last last[2];
    plan->begun = plan->part_count;
    if (plan->part_count == 1) return; /* it never had an open ticket */
    if (status) plan->ran = false; /* some outputs are new and some are not */
    hdi_drive_last(plan, last);
    for (uint32_t p = 0; p < plan->part_count; p++) plan->parts[p].core->last_ticket = last[plan->parts[p].core->device != plan->device].ticket;
    close_tickets(plan, last, status);
}

void hdi_drive_stop(hd_plan *plan, hd_status status) {
    if (plan->begun < plan->part_count) end_run(plan, status);
}

/* ---- handing over ---- */

/* Several waits share a timeout; 0: there is one wait only, and no need of the clock. */
static uint64_t deadline(const hd_plan *plan, uint64_t timeout_ns) {
    return plan->part_count == 1 ? 0 : hdi_now_ns() + (timeout_ns ? timeout_ns : plan->device->host->wait_ns);
}

static uint64_t left_ns(uint64_t until_ns, uint64_t timeout_ns) {
    const uint64_t now_ns = until_ns ? hdi_now_ns() : 0;
    return until_ns == 0 ? timeout_ns : until_ns > now_ns ? until_ns - now_ns : 1; /* 0 would be the context's own wait */
}

/* Carries over what the part needs; `*out_ready` is false where that is not made yet and `wait` is. */
static hd_status bring(hd_plan *plan, uint32_t part, bool wait, uint64_t until_ns, bool *out_ready, hd_error *error) {
    *out_ready = true;
    for (; plan->crossed < plan->crossing_count && plan->crossings[plan->crossed].to == part; plan->crossed++) {
        const hdi_part *from = &plan->parts[plan->crossings[plan->crossed].from];
        hd_status status = wait ? hdi_device_wait(from->core->device, from->ticket, left_ns(until_ns, 0), error)
                                : hdi_device_poll(from->core->device, from->ticket, out_ready, error);
        if (status || !*out_ready) return status;
        status = carry(plan, &plan->crossings[plan->crossed], error);
        if (status) return status;
    }
    return HD_OK;
}

static hd_status hand_over(hd_plan *plan, hdi_part *part, hd_error *error) {
    const uint64_t began_ns = hdi_now_ns();
    uint64_t recorded = 0;
    hd_status status = hdi_core_submit(part->core, &(hdi_core_run){ .timestamps = plan->desc.timestamps != 0 }, &recorded, error);
    if (status) return status;
    part->ticket = part->core->last_ticket;
    plan->stats.last_submit_ns += hdi_now_ns() - began_ns;
    plan->stats.records += recorded > 0;
    return HD_OK;
}

hd_status hdi_drive(hd_plan *plan, bool wait, uint64_t timeout_ns, hd_error *error) {
    if (plan->begun == plan->part_count) return HD_OK;
    const uint64_t until_ns = deadline(plan, timeout_ns);
    hd_status status = HD_OK;
    bool ready = true;
    while (plan->begun < plan->part_count && ready && !status) {
        status = bring(plan, plan->begun, wait, until_ns, &ready, error);
        if (!status && ready) status = hand_over(plan, &plan->parts[plan->begun], error);
        plan->begun += !status && ready;
    }
    if (status == HD_STATUS_TIMEOUT) return status; /* the next call goes on */
    if (!status && plan->begun == plan->part_count) plan->ran = true;
    if (status || plan->begun == plan->part_count) end_run(plan, status);
    return status;
}

hd_status hdi_drive_start(hd_plan *plan, hd_error *error) {
    hd_status status = hdi_drive(plan, true, 0, error);
    for (uint32_t p = 0; p < plan->part_count && !status; p++) status = hdi_core_check_inputs(plan->parts[p].core, NULL, error);
    if (status) return status;
    plan->begun = plan->crossed = 0;
    plan->stats.last_submit_ns = 0;
    status = hdi_drive(plan, false, 0, error);
    plan->stats.runs += status == HD_OK;
    return status;
}

hd_status hdi_drive_measure(hd_plan *plan, uint64_t timeout_ns, uint64_t out_ns[2], hd_error *error) {
    hd_status status = hdi_drive(plan, true, 0, error);
    for (uint32_t p = 0; p < plan->part_count && !status; p++) status = hdi_core_check_inputs(plan->parts[p].core, NULL, error);
    if (status) return status;
    const uint64_t until_ns = hdi_now_ns() + (timeout_ns ? timeout_ns : plan->device->host->wait_ns);
    out_ns[0] = out_ns[1] = 0;
    plan->begun = plan->crossed = 0;
    plan->stats.last_submit_ns = 0;
    plan->stats.runs++;
    while (plan->begun < plan->part_count && !status) {
        hdi_part *part = &plan->parts[plan->begun];
        bool ready;
        status = bring(plan, plan->begun, true, until_ns, &ready, error);
        const uint64_t began_ns = hdi_now_ns();
        if (!status) status = hand_over(plan, part, error);
        if (status) break;
        plan->begun++;
        status = hdi_device_wait(part->core->device, part->ticket, left_ns(until_ns, 0), error);
        out_ns[part->core->device != plan->device] += hdi_now_ns() - began_ns;
    }
    const bool goes_on = status == HD_STATUS_TIMEOUT;
    if (goes_on && plan->begun < plan->part_count) return status; /* the next call hands over the rest */
    if (!status || goes_on) plan->ran = true;
    end_run(plan, goes_on ? HD_OK : status);
    return status;
}

/* The CPU's segments first: short ones run on the thread that waits for them, while the other device runs its own. */
hd_status hdi_drive_wait(hd_plan *plan, uint64_t timeout_ns, hd_error *error) {
    const uint64_t until_ns = deadline(plan, timeout_ns);
    hd_status status = hdi_drive(plan, true, timeout_ns, error);
    for (uint32_t native = 2; native-- > 0;)
        for (uint32_t p = 0; p < plan->part_count && !status; p++) {
            hd_device *device = plan->parts[p].core->device;
            if ((device->found.caps.native_kernels != 0) == native) status = hdi_device_wait(device, plan->parts[p].ticket, left_ns(until_ns, timeout_ns), error);
        }
    return status;
}
