/* samples.c: what a device takes for its work, from measurements of the caller's. */
#include "front/front.h"

hd_status hdi_work_of_checked(const hd_program *program, hdi_work **out_work, hd_error *error) {
    hd_status status = hdi_program_check(program, error);
    *out_work = status ? NULL : hdi_alloc(program->allocator, program->node_count * sizeof **out_work);
    if (!status && !*out_work)
        status = hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the work of %u nodes",
            program->node_count);
    return status ? status : hdi_work_of(program, true, *out_work, error);
}

/* Every node of the program that takes time is of one family and type. */
static hd_status read_program(const hd_program *program, hdi_sample *out, hd_error *error) {
    hdi_work *work;
    hd_status status = hdi_work_of_checked(program, &work, error);
    for (uint32_t i = 0; i < program->node_count && !status; i++) {
        if (work[i].family == HDI_FAMILY_NONE) continue;
        if (out->family != HDI_FAMILY_NONE && (out->family != work[i].family || out->width != work[i].width))
            status = hdi_fail(error, HD_STATUS_INVALID_ARGUMENT,
                "a sample of %s %s and %s %s at once; measure one kind of work at a time", hdi_family_name(out->family),
                hdi_width_name(out->width), hdi_family_name(work[i].family), hdi_width_name(work[i].width));
        out->family = work[i].family;
        out->width = work[i].width;
        out->kernels += work[i].launch;
        out->flops += (double)work[i].flops;
        out->bytes += (double)work[i].bytes;
    }
    if (!status && out->family == HDI_FAMILY_NONE)
        status = hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "a sample in which nothing is computed");
    hdi_free(program->allocator, work, program->node_count * sizeof *work);
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

static hd_status read_sample(const hd_sample *from, hdi_sample *out, hd_error *error) {
    static const hdi_sample_kind kinds[] = { HDI_SAMPLE_RUN, HDI_SAMPLE_UPLOAD, HDI_SAMPLE_DOWNLOAD };
    if ((unsigned)from->part > HD_SAMPLE_READ || (!from->program && from->part == HD_SAMPLE_RUN))
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "a sample of no program that ran");
    *out = (hdi_sample){ .kind = kinds[from->part], .ns = (double)from->ns };
    hd_status status = from->program ? read_program(from->program, out, error) : HD_OK;
    if (status) return status;
    if (!from->program) {
        out->kernels = 1;
        out->bytes = (double)from->transfer_bytes;
    } else if (from->part != HD_SAMPLE_RUN)
        count_transfers(from->program, from->part == HD_SAMPLE_WRITE ? HD_PORT_INPUT : HD_PORT_OUTPUT, out);
    return HD_OK;
}

hd_status hdi_calibrate_figures(hd_device *device, const hd_sample *samples, size_t count, hd_error *error) {
    const hd_allocator *allocator = device->host->allocator;
    if (!samples && count > 0) return HD_STATUS_NULL_POINTER;
    hdi_sample *read = count > SIZE_MAX / sizeof *read ? NULL : hdi_alloc(allocator, count * sizeof *read);
    hd_status status = read || count == 0 ? HD_OK
        : hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for %zu samples", count);
    for (size_t i = 0; i < count && !status; i++) status = read_sample(&samples[i], &read[i], error);
    hdi_figures *figures = &hdi_store_lock(device->facts)->figures;
    if (!status) status = hdi_fit_device(allocator, read, count, figures, error);
    if (!status) status = hdi_store_keep(device->facts, HD_FACT_FIGURE, error);
    hdi_store_unlock(device->facts);
    hdi_free(allocator, read, count * sizeof *read);
    return status;
}
