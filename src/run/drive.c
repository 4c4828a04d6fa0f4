/* drive.c: a run of a plan, from segment to segment. They are handed over in their order, each as soon as the values
 * that it needs from other devices are done and carried over; so what does not wait for one another runs at the same
 * time. */
#include "run/run.h"

/* ---- values that cross ---- */

/* The last submission that may still use what a value is carried into: of the run before, or of the segment whose
 * memory it takes, or of another plan that the caller's buffer is bound to. */
static uint64_t last_use(const hdi_loaded *loaded, const hdi_crossing *crossing) {
    const hdi_core *to = loaded->segments[crossing->to];
    const hdi_plan_slot *at = &loaded->plan->segments[crossing->to].slots[crossing->to_slot];
    const hdi_core_slot *slot = &to->slots[crossing->to_slot];
    uint64_t ticket = to->last_ticket;
    if (at->reuses) ticket = HDI_MAX(ticket, loaded->segments[at->after]->last_ticket);
    if (slot->bound) ticket = HDI_MAX(ticket, atomic_load(&slot->bound->last_ticket));
    return ticket;
}

/* Straight from or to memory that the host sees; else by bytes of the plan's. */
static hd_status carry(hdi_loaded *loaded, uint32_t c, hd_error *error) {
    const hdi_crossing *crossing = &loaded->plan->crossings[c];
    hdi_core *from = loaded->segments[crossing->from], *to = loaded->segments[crossing->to];
    hd_buffer *bound = to->slots[crossing->to_slot].bound;
    hd_status status = hdi_core_memory(to, crossing->to_slot, error);
    if (status) return status;
    const hdi_slot source = hdi_core_where(from, crossing->from_slot), target = hdi_core_where(to, crossing->to_slot);
    uint64_t ticket = last_use(loaded, crossing);
    char *pointer = hdi_device_map(to->device, target.memory);
    if (pointer) {
        status = hdi_device_wait(to->device, ticket, 0, error);
        if (!status)
            status = hdi_device_read(from->device, source.memory, source.offset, pointer + target.offset,
                                     crossing->bytes, from->run_ticket, error);
        return status;
    }
    pointer = hdi_device_map(from->device, source.memory);
    if (pointer) {
        pointer += source.offset;
        status = hdi_device_wait(from->device, from->run_ticket, 0, error);
    } else {
        if (!loaded->carried[c] && crossing->bytes <= SIZE_MAX)
            loaded->carried[c] = hdi_alloc(loaded->allocator, (size_t)crossing->bytes);
        if (!loaded->carried[c])
            return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a value between two devices");
        pointer = loaded->carried[c];
        status = hdi_device_read(from->device, source.memory, source.offset, pointer, crossing->bytes, from->run_ticket,
                                 error);
    }
    if (!status)
        status = hdi_device_write(to->device, target.memory, target.offset, pointer, crossing->bytes, &ticket, error);
    to->last_ticket = HDI_MAX(to->last_ticket, ticket);
    if (bound) atomic_store(&bound->last_ticket, ticket);
    return status;
}

/* ---- tickets ---- */

/* The last submission on each device. */
static void find_last(const hdi_loaded *loaded, hdi_run *run) {
    run->count = 0;
    for (uint32_t s = 0; s < loaded->plan->segment_count; s++) {
        const hdi_core *core = loaded->segments[s];
        uint32_t at = 0;
        while (at < run->count && run->last[at].device != core->device) at++;
        if (at == run->count) run->last[run->count++] = (hdi_last){ core->device, 0 };
        run->last[at].ticket = HDI_MAX(run->last[at].ticket, core->last_ticket);
    }
}

void hdi_run_open(hdi_loaded *loaded, hdi_run *run) {
    hdi_list_init(&run->link);
    run->failed = HD_OK;
    run->open = loaded->begun < loaded->plan->segment_count;
    find_last(loaded, run);
    if (run->open) hdi_list_add(&loaded->open_runs, &run->link);
}

/* The run is handed over, or given up. Memory that segments share is in use as long as the last of them on the device
 * runs. */
static void end_run(hdi_loaded *loaded, hd_status status) {
    hdi_run last;
    loaded->begun = loaded->plan->segment_count;
    if (loaded->plan->segment_count == 1) return; /* it never had an open ticket */
    if (status) loaded->ran = false; /* some outputs are new and some are not */
    find_last(loaded, &last);
    for (uint32_t s = 0; s < loaded->plan->segment_count; s++)
        for (uint32_t d = 0; d < last.count; d++)
            if (loaded->segments[s]->device == last.last[d].device)
                loaded->segments[s]->last_ticket = last.last[d].ticket;
    while (!hdi_list_empty(&loaded->open_runs)) {
        hdi_run *run = HDI_OBJECT(loaded->open_runs.next, hdi_run, link);
        hdi_list_remove(&run->link);
        run->open = false;
        run->failed = status;
        /* the devices stay the same ones */
        for (uint32_t d = 0; d < run->count; d++) run->last[d].ticket = last.last[d].ticket;
    }
}

void hdi_drive_stop(hdi_loaded *loaded, hd_status status) {
    if (loaded->begun < loaded->plan->segment_count) end_run(loaded, status);
}

/* ---- handing over ---- */

/* Several waits share a timeout; 0: there is one wait only, or each has the context's own. */
static uint64_t deadline(const hdi_loaded *loaded, uint64_t timeout_ns) {
    return loaded->plan->segment_count == 1 || timeout_ns == 0 ? 0 : hdi_now_ns() + timeout_ns;
}

static uint64_t left_ns(uint64_t until_ns, uint64_t timeout_ns) {
    const uint64_t now_ns = until_ns ? hdi_now_ns() : 0;
    /* 0 would be the context's own wait */
    return until_ns == 0 ? timeout_ns : until_ns > now_ns ? until_ns - now_ns : 1;
}

/* Carries over what the segment needs; `*out_ready` is false where that is not made yet and `wait` is. */
static hd_status bring(hdi_loaded *loaded, uint32_t segment, bool wait, uint64_t until_ns, bool *out_ready,
                       hd_error *error) {
    const hdi_plan *plan = loaded->plan;
    *out_ready = true;
    for (; loaded->crossed < plan->crossing_count && plan->crossings[loaded->crossed].to == segment;
         loaded->crossed++) {
        const hdi_core *from = loaded->segments[plan->crossings[loaded->crossed].from];
        hd_status status = wait ? hdi_device_wait(from->device, from->run_ticket, left_ns(until_ns, 0), error)
                                : hdi_device_poll(from->device, from->run_ticket, out_ready, error);
        if (status || !*out_ready) return status;
        status = carry(loaded, loaded->crossed, error);
        if (status) return status;
    }
    return HD_OK;
}

static hd_status hand_over(hdi_loaded *loaded, hdi_core *core, hd_error *error) {
    const uint64_t began_ns = hdi_now_ns();
    uint64_t recorded = 0;
    hd_status status = hdi_core_submit(core, &(hdi_core_run){ .timestamps = loaded->timestamps }, &recorded, error);
    if (status) return status;
    core->run_ticket = core->last_ticket;
    loaded->submit_ns += hdi_now_ns() - began_ns;
    loaded->records += recorded > 0;
    return HD_OK;
}

hd_status hdi_drive(hdi_loaded *loaded, bool wait, uint64_t timeout_ns, hd_error *error) {
    const uint32_t count = loaded->plan->segment_count;
    if (loaded->begun == count) return HD_OK;
    const uint64_t until_ns = deadline(loaded, timeout_ns);
    hd_status status = HD_OK;
    bool ready = true;
    while (loaded->begun < count && ready && !status) {
        status = bring(loaded, loaded->begun, wait, until_ns, &ready, error);
        if (!status && ready) status = hand_over(loaded, loaded->segments[loaded->begun], error);
        loaded->begun += !status && ready;
    }
    if (status == HD_STATUS_TIMEOUT) return status; /* the next call goes on */
    if (!status && loaded->begun == count) loaded->ran = true;
    if (status || loaded->begun == count) end_run(loaded, status);
    return status;
}

hd_status hdi_drive_start(hdi_loaded *loaded, hd_error *error) {
    hd_status status = hdi_drive(loaded, true, 0, error);
    for (uint32_t s = 0; s < loaded->plan->segment_count && !status; s++)
        status = hdi_core_check_inputs(loaded->segments[s], NULL, error);
    if (status) return status;
    loaded->begun = loaded->crossed = 0;
    loaded->submit_ns = 0;
    status = hdi_drive(loaded, false, 0, error);
    loaded->runs += status == HD_OK;
    return status;
}

/* The CPU's segments first: short ones run on the thread that waits for them, while other devices run theirs. */
hd_status hdi_drive_wait(hdi_loaded *loaded, uint64_t timeout_ns, hd_error *error) {
    const uint64_t until_ns = deadline(loaded, timeout_ns);
    hd_status status = hdi_drive(loaded, true, timeout_ns, error);
    for (uint32_t native = 2; native-- > 0;)
        for (uint32_t s = 0; s < loaded->plan->segment_count && !status; s++) {
            const hdi_core *core = loaded->segments[s];
            if ((core->device->found.caps.native_kernels != 0) == native)
                status = hdi_device_wait(core->device, core->run_ticket, left_ns(until_ns, timeout_ns), error);
        }
    return status;
}
