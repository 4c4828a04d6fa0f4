/* samples.c: what a device takes for its work, from measurements of the caller's. */
#include "calibrate/calibrate.h"

/* What a program takes on the device alone, `program->node_count` of them; yours, also after a failure. */
static hd_status work_of(hd_device *device, const hd_program *program, hdi_schedule_work **out_works, hd_error *error) {
    hdi_caps *caps = hdi_alloc(program->allocator, sizeof *caps);
    hd_status status = hdi_program_check(program, error);
    *out_works = status ? NULL : hdi_alloc(program->allocator, program->node_count * sizeof **out_works);
    if (!status && (!caps || !*out_works))
        status =
            hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the work of %u nodes", program->node_count);
    if (!status) {
        hdi_store_caps(device->facts, caps);
        status = hdi_schedule_work_of(&(hdi_plan_wish){ .program = program, .caps = caps }, 0, *out_works, error);
    }
    hdi_free(program->allocator, caps, sizeof *caps);
    return status;
}

/* Every kernel of the program is of one kind of work and type. */
static hd_status read_program(hd_device *device, const hd_program *program, hdi_sample *out, hd_error *error) {
    hdi_schedule_work *works;
    hd_status status = work_of(device, program, &works, error);
    for (uint32_t i = 0; i < program->node_count && !status; i++) {
        const hdi_work *work = &works[i].work;
        if (works[i].kernel != i + 1 || work->kind == HDI_KIND_NONE) continue;
        if (out->work != HDI_KIND_NONE && (out->work != work->kind || out->width != work->width))
            status = hdi_fail(error, HD_STATUS_INVALID_ARGUMENT,
                              "a sample of %s %s and %s %s at once; measure one kind of work at a time",
                              hdi_op_kind_name(out->work), hdi_width_name(out->width), hdi_op_kind_name(work->kind),
                              hdi_width_name(work->width));
        out->work = work->kind;
        out->width = work->width;
        out->kernels += work->kernels;
        out->flops += (double)work->flops;
        out->bytes += (double)work->bytes;
    }
    if (!status && out->work == HDI_KIND_NONE)
        status = hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "a sample in which nothing is computed");
    hdi_free(program->allocator, works, program->node_count * sizeof *works);
    return status;
}

/* A transfer of all inputs or outputs is as many as the largest one goes into them. */
static void count_transfers(const hd_program *program, hd_port_kind kind, hdi_sample *out) {
    double largest = 1;
    out->flops = out->bytes = 0;
    for (uint32_t i = 0; i < program->port_count; i++) {
        if (program->ports[i].kind != kind) continue;
        const double bytes = (double)hd_tensor_bytes(program->ports[i].dtype, program->ports[i].shape);
        out->bytes += bytes;
        largest = HDI_MAX(largest, bytes);
    }
    out->kernels = out->bytes / largest;
}

static hd_status read_sample(hd_device *device, const hd_sample *from, hdi_sample *out, hd_error *error) {
    static const hdi_sample_kind kinds[] = { HDI_SAMPLE_RUN, HDI_SAMPLE_UPLOAD, HDI_SAMPLE_DOWNLOAD };
    const hd_program *program = from->program;
    if (program && !HDI_FIND(program))
        return hdi_fail(error, HD_STATUS_STALE_HANDLE, "a sample of a program that was ended, or is none");
    if ((unsigned)from->part > HD_SAMPLE_READ || (!program && from->part == HD_SAMPLE_RUN))
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "a sample of no program that ran");
    *out = (hdi_sample){ .kind = kinds[from->part], .ns = (double)from->ns };
    hd_status status = program ? read_program(device, program, out, error) : HD_OK;
    if (status) return status;
    if (!program) {
        out->kernels = 1;
        out->bytes = (double)from->transfer_bytes;
    } else if (from->part != HD_SAMPLE_RUN)
        count_transfers(program, from->part == HD_SAMPLE_WRITE ? HD_PORT_INPUT : HD_PORT_OUTPUT, out);
    return HD_OK;
}

hd_status hdi_calibrate_figures(hd_device *device, const hd_sample *samples, size_t count, hd_error *error) {
    const hd_allocator *allocator = device->host->allocator;
    if (!samples && count > 0) return hdi_fail(error, HD_STATUS_NULL_POINTER, "%zu samples at NULL", count);
    hdi_sample *read = count > SIZE_MAX / sizeof *read ? NULL : hdi_alloc(allocator, count * sizeof *read);
    hd_status status = read || count == 0 ? HD_OK
        : hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for %zu samples", count);
    for (size_t i = 0; i < count && !status; i++) status = read_sample(device, &samples[i], &read[i], error);
    hdi_figures *figures = &hdi_store_lock(device->facts)->figures;
    if (!status) status = hdi_fit_device(allocator, read, count, figures, error);
    if (!status) status = hdi_store_keep(device->facts, HD_FACT_FIGURE, error);
    hdi_store_unlock(device->facts);
    hdi_store_changed(device->facts);
    hdi_free(allocator, read, count * sizeof *read);
    return status;
}
