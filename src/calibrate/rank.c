/* rank.c: a fixed piece of work by which the routes to one GPU are compared: many small steps that wait for each other,
 * as a decoder's do, and bytes on their way to the device. */
#include "calibrate/calibrate.h"
#include "run/run.h"

enum { STEPS = 1024, ELEMENTS = 256, TIMES = 3 };
#define COPIED_BYTES (UINT64_C(64) << 20)

/* The best of a few runs, behind one that prepares what is kept. */
static hd_status best_of(hd_status (*run)(void *job, hd_error *error), void *job, uint64_t *inout_ns, hd_error *error) {
    uint64_t best = UINT64_MAX;
    for (int i = 0; i <= TIMES; i++) {
        const uint64_t begun = hdi_now_ns();
        hd_status status = run(job, error);
        if (status) return status;
        if (i > 0) best = HDI_MIN(best, hdi_now_ns() - begun);
    }
    *inout_ns += best;
    return HD_OK;
}

/* ---- steps ---- */

static hd_status run_steps(void *job, hd_error *error) {
    hdi_core *core = job;
    uint64_t records;
    const hd_status status = hdi_core_submit(core, &(hdi_core_run){ .timestamps = false }, &records, error);
    return status ? status : hdi_device_wait(core->device, core->run_ticket, 0, error);
}

static hd_status write_zeros(hdi_core *core, hd_error *error) {
    const float zeros[ELEMENTS] = { 0 };
    uint32_t slot;
    if (!hdi_core_find(core, "x", HDI_KIND(INPUT), &slot))
        return hdi_fail(error, HD_STATUS_INTERNAL, "no input to measure with");
    hd_status status = hdi_core_memory(core, slot, error);
    if (!status)
        status =
            hdi_device_write(core->device, core->slots[slot].memory, 0, zeros, sizeof zeros, &core->last_ticket, error);
    core->slots[slot].written = !status;
    return status;
}

static hd_status measure_steps(hd_device *device, uint64_t *inout_ns, hd_error *error) {
    hdi_schedule *schedule = NULL;
    hdi_core *core = NULL;
    hd_program *program = hdi_program_new(device->host->allocator, device->context);
    if (!program) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a program to measure");
    hd_value x = hd_input(program, "x", HD_F32, HD_SHAPE(ELEMENTS));
    for (int i = 0; i < STEPS; i++) x = hd_scale(program, x, 0.5f, 1.0f);
    hd_output(program, "y", x);
    hd_status status =
        hdi_calibrate_schedule(device, program, &(hdi_plan_options){ .no_fusion = true }, &schedule, error);
    if (!status) status = hdi_core_make(device, schedule, &core, error);
    if (!status) status = write_zeros(core, error);
    if (!status) status = best_of(run_steps, core, inout_ns, error);
    if (core) hdi_core_end(core);
    hdi_program_free(program);
    return status;
}

/* ---- copies ---- */

typedef struct copying {
    hd_device  *device;
    hdi_memory *memory;
    void       *bytes;
} copying;

static hd_status run_copy(void *job, hd_error *error) {
    copying *c = job;
    uint64_t ticket = 0;
    const hd_status status = hdi_device_write(c->device, c->memory, 0, c->bytes, COPIED_BYTES, &ticket, error);
    return status ? status : hdi_device_wait(c->device, ticket, 0, error);
}

static hd_status measure_copy(hd_device *device, uint64_t *inout_ns, hd_error *error) {
    const hd_allocator *allocator = device->host->allocator;
    const hdi_alloc_desc desc = { COPIED_BYTES, HD_BUFFER_STORAGE, "measured copy", NULL, HD_MEMORY_SCRATCH };
    copying c = { .device = device, .bytes = hdi_alloc(allocator, (size_t)COPIED_BYTES) };
    if (!c.bytes) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for bytes to copy");
    hd_status status = hdi_device_alloc(device, &desc, &c.memory, error);
    if (!status) status = best_of(run_copy, &c, inout_ns, error);
    if (c.memory) hdi_device_free(device, c.memory, COPIED_BYTES);
    hdi_free(allocator, c.bytes, (size_t)COPIED_BYTES);
    return status;
}

void hdi_calibrate_order(hdi_registry *registry) {
    const hdi_host *host = registry->host;
    uint32_t refused;
    hdi_facts *facts = host->cache_dir ? hdi_alloc(host->allocator, sizeof *facts) : NULL;
    for (uint32_t i = 0; i < registry->ranked_count && facts; i++) {
        hdi_found *found = registry->ranked[i];
        hdi_calibrate_assume(host, found, facts);
        if (hdi_facts_load(host->allocator, host->cache_dir, facts, &refused)) found->info.measured_ns = facts->rank_ns;
    }
    hdi_free(host->allocator, facts, sizeof *facts);
    hdi_registry_rank(registry);
}

hd_status hdi_calibrate_rank(hd_device *device, uint64_t *out_ns, hd_error *error) {
    *out_ns = 0;
    hd_status status = measure_steps(device, out_ns, error);
    if (!status) status = measure_copy(device, out_ns, error);
    if (status) return status;
    hdi_store_lock(device->facts)->rank_ns = *out_ns;
    (void)hdi_store_keep(device->facts, HD_FACT_RANK, NULL); /* else it is measured another time */
    hdi_store_unlock(device->facts);
    return HD_OK;
}
