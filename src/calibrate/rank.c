/* rank.c: a fixed piece of work by which devices are ranked, and the routes to one GPU: many small steps that wait for
 * each other, as a decoder's do, bytes on their way to the device, and a large product. */
#include "calibrate/calibrate.h"
#include "run/run.h"

enum { STEPS = 1024, ELEMENTS = 256, TIMES = 3, LEAST_SIDE = 256, MOST_SIDE = 2048, PRODUCT_SIDE = 4096 };
#define COPIED_BYTES (UINT64_C(64) << 20)
/* Runs take about a second together, so that all stays below 2 s where kernels were compiled before: no run is begun
 * that would end behind these, by the one before. */
#define STEPS_NS   UINT64_C(200000000)
#define COPY_NS    UINT64_C(200000000)
#define PRODUCT_NS UINT64_C(600000000)

hd_status hdi_best_of(const hdi_timed *work, uint64_t *out_ns, hd_error *error) {
    const uint64_t until = work->now() + work->budget_ns;
    for (int i = 0; i <= TIMES; i++) {
        const uint64_t begun = work->now();
        if (i > 0 && (begun > until || *out_ns > until - begun)) break;
        const hd_status status = work->run(work->job, error);
        if (status) return status;
        const uint64_t took = work->now() - begun;
        if (i < 2 || took < *out_ns) *out_ns = took; /* the first one prepares what is kept, and counts alone only */
    }
    return HD_OK;
}

/* ---- programs: what they read is "x", zeros ---- */

static hd_status run_core(void *job, hd_error *error) {
    hdi_core *core = job;
    uint64_t records;
    const hd_status status = hdi_core_submit(core, &(hdi_core_run){ .timestamps = false }, &records, error);
    return status ? status : hdi_device_wait(core->device, core->last_ticket, 0, error);
}

static hd_status write_zeros(hdi_core *core, hd_error *error) {
    const hd_allocator *allocator = core->device->host->allocator;
    uint32_t slot;
    if (!hdi_core_find(core, "x", HDI_KIND(INPUT), &slot))
        return hdi_fail(error, HD_STATUS_INTERNAL, "no input to measure with");
    const uint64_t bytes = core->schedule->slots[slot].bytes;
    void *zeros = hdi_alloc(allocator, (size_t)bytes);
    hd_status status = zeros ? hdi_core_memory(core, slot, error)
                             : hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for numbers to measure with");
    if (!status)
        status = hdi_device_write(core->device, core->slots[slot].memory, 0, zeros, bytes, &core->last_ticket, error);
    core->slots[slot].written = !status;
    hdi_free(allocator, zeros, (size_t)bytes);
    return status;
}

static hd_status time_program(hd_device *device, const hd_program *program, uint64_t budget_ns, uint64_t *out_ns,
                              hd_error *error) {
    hdi_schedule *schedule = NULL;
    hdi_core *core = NULL;
    hd_status status =
        hdi_calibrate_schedule(device, program, &(hdi_plan_options){ .no_fusion = true }, &schedule, error);
    if (!status) status = hdi_core_make(device, schedule, &core, error);
    if (!status) status = write_zeros(core, error);
    if (!status) status = hdi_best_of(&(hdi_timed){ run_core, core, budget_ns, hdi_now_ns }, out_ns, error);
    if (core) hdi_core_end(core);
    return status;
}

static hd_status measure_steps(hd_device *device, uint64_t *inout_ns, hd_error *error) {
    uint64_t ns = 0;
    hd_program *program = hdi_program_new(device->host->allocator, device->context);
    if (!program) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a program to measure");
    hd_value x = hd_input(program, "x", HD_F32, HD_SHAPE(ELEMENTS));
    for (int i = 0; i < STEPS; i++) x = hd_scale(program, x, 0.5f, 1.0f);
    hd_output(program, "y", x);
    const hd_status status = time_program(device, program, STEPS_NS, &ns, error);
    hdi_program_free(program);
    *inout_ns += ns;
    return status;
}

/* A product of PRODUCT_SIDE, by the time of the largest one that the budget allows. */
static hd_status measure_product(hd_device *device, uint64_t *inout_ns, hd_error *error) {
    const uint64_t begun = hdi_now_ns();
    uint64_t ns = 0, scale = PRODUCT_SIDE / LEAST_SIDE;
    hd_status status = HD_OK;
    for (int64_t side = LEAST_SIDE; !status; side *= 2, scale /= 2) {
        const uint64_t spent = hdi_now_ns() - begun, left = spent < PRODUCT_NS ? PRODUCT_NS - spent : 0;
        hd_program *program = hdi_program_new(device->host->allocator, device->context);
        if (!program) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a program to measure");
        const hd_value x = hd_input(program, "x", HD_F32, HD_SHAPE(side, side));
        hd_output(program, "y", hd_matmul(program, x, x));
        status = time_program(device, program, left, &ns, error);
        hdi_program_free(program);
        if (side == MOST_SIDE || hdi_now_ns() - begun + 8 * ns > PRODUCT_NS) break;
    }
    *inout_ns += scale * scale * scale * ns;
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
    uint64_t ns = 0;
    if (!status) status = hdi_best_of(&(hdi_timed){ run_copy, &c, COPY_NS, hdi_now_ns }, &ns, error);
    *inout_ns += ns;
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
    if (!status) status = measure_product(device, out_ns, error);
    if (status) return status;
    hdi_store_lock(device->facts)->rank_ns = *out_ns;
    (void)hdi_store_keep(device->facts, HD_FACT_RANK, NULL); /* else it is measured another time */
    hdi_store_unlock(device->facts);
    return HD_OK;
}
