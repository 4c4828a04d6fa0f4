/* rank.c: a fixed piece of work by which the routes to one GPU are compared: many small steps that wait for each other,
 * as a decoder's do, and bytes on their way to the device. */
#include "front/front.h"

enum { STEPS = 1024, ELEMENTS = 256, TIMES = 3 };
#define COPIED_BYTES (UINT64_C(64) << 20)

/* The best of a few runs, behind one that prepares what is kept. */
static hd_status best_of(hd_status (*run)(void *job, hd_device *device), void *job, hd_device *device,
    uint64_t *inout_ns) {
    uint64_t best = UINT64_MAX;
    for (int i = 0; i <= TIMES; i++) {
        const uint64_t begun = hdi_now_ns();
        hd_status status = run(job, device);
        if (status) return status;
        if (i > 0) best = HDI_MIN(best, hdi_now_ns() - begun);
    }
    *inout_ns += best;
    return HD_OK;
}

static hd_status run_plan(void *plan, hd_device *device) {
    (void)device;
    return hd_plan_run(plan, NULL);
}

static hd_status measure_steps(hd_device *device, uint64_t *inout_ns) {
    const float zeros[ELEMENTS] = { 0 };
    hd_plan *plan = NULL;
    hd_program *program = hd_program_create(device->context);
    if (!program) return HD_STATUS_OUT_OF_HOST_MEMORY;
    hd_value x = hd_input(program, "x", HD_F32, HD_SHAPE(ELEMENTS));
    for (int i = 0; i < STEPS; i++) x = hd_scale(program, x, 0.5f, 1.0f);
    hd_output(program, "y", x);
    hd_status status = hd_plan_create(device, program, &(hd_plan_desc){ .no_fusion = 1 }, &plan);
    if (!status) status = hd_plan_write(plan, "x", zeros, sizeof zeros);
    if (!status) status = best_of(run_plan, plan, device, inout_ns);
    hd_plan_destroy(plan);
    hd_program_destroy(program);
    return status;
}

typedef struct copying {
    hd_buffer *buffer;
    void      *bytes;
} copying;

static hd_status run_copy(void *job, hd_device *device) {
    const copying *c = job;
    hd_status status = hd_buffer_write(c->buffer, 0, c->bytes, COPIED_BYTES);
    return status ? status : hd_device_wait(device, 0);
}

static hd_status measure_copy(hd_device *device, uint64_t *inout_ns) {
    const hd_allocator *allocator = device->host->allocator;
    copying c = { .bytes = hdi_alloc(allocator, (size_t)COPIED_BYTES) };
    if (!c.bytes) return hdi_context_fail(device->context, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for bytes to copy");
    hd_status status = hd_buffer_create(device, &(hd_buffer_desc){ .bytes = COPIED_BYTES, .label = "measured copy" },
        &c.buffer);
    if (!status) status = best_of(run_copy, &c, device, inout_ns);
    hd_buffer_destroy(c.buffer);
    hdi_free(allocator, c.bytes, (size_t)COPIED_BYTES);
    return status;
}

hd_status hdi_calibrate_rank(hd_device *device, uint64_t *out_ns) {
    *out_ns = 0;
    hd_status status = measure_steps(device, out_ns);
    if (!status) status = measure_copy(device, out_ns);
    if (status) return status;
    hdi_store_lock(device->facts)->rank_ns = *out_ns;
    (void)hdi_store_keep(device->facts, HD_FACT_RANK, NULL); /* else it is measured another time */
    hdi_store_unlock(device->facts);
    return HD_OK;
}
