/* samples.c: what a device takes for its work: read from the tuning file when it is first asked for, learned from measurements,
 * asked by those who choose a device. */
#include "front/front.h"
#include <stdio.h>

struct hdi_tuned {
    hdi_mutex   lock;
    bool        known; /* the file was read, if there is one */
    hdi_tuning  tuning;
    uint64_t    choices_hash; /* of tuning.choices */
};

/* The processor and how much of it is used: what ran on another one says nothing here. */
static void name_machine(const hd_device *device, char out[HDI_TUNING_NAME]) {
    const hdi_registry *registry = &device->context->registry;
    char text[HDI_TUNING_NAME];
    snprintf(text, sizeof text, "unknown");
    for (uint32_t i = 0; i < registry->ranked_count; i++)
        if (registry->ranked[i]->caps.native_kernels)
            snprintf(text, sizeof text, "%.100s, %llu threads", registry->ranked[i]->info.name, (unsigned long long)registry->ranked[i]->caps.threads);
    hdi_tuning_name(text, out);
}

static void assume(const hd_device *device, hdi_tuning *tuning) {
    const hd_device_info *info = &device->found.info;
    memset(tuning, 0, sizeof *tuning);
    name_machine(device, tuning->machine);
    hdi_tuning_name(info->id, tuning->device);
    hdi_tuning_name(info->driver, tuning->driver);
    hdi_tuning_assume(&device->found.caps, info->kind == HD_DEVICE_DISCRETE_GPU, tuning);
    tuning->choices.table = hdi_kernel_options_digest();
}

hd_status hdi_tuned_open(hd_device *device, hd_error *error) {
    hdi_tuned *tuned = hdi_alloc(device->host->allocator, sizeof *tuned);
    if (!tuned || !hdi_mutex_init(&tuned->lock)) {
        hdi_free(device->host->allocator, tuned, sizeof *tuned);
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a device");
    }
    device->tuned = tuned;
    return HD_OK;
}

void hdi_tuned_close(hd_device *device) {
    hdi_mutex_free(&device->tuned->lock);
    hdi_free(device->host->allocator, device->tuned, sizeof *device->tuned);
    device->tuned = NULL;
}

/* Locks what is known of the device, for the caller to unlock. Most devices are opened and never asked: the file is read now. */
static hdi_tuned *lock(hd_device *device) {
    hdi_tuned *tuned = device->tuned;
    uint32_t refused;
    hdi_mutex_lock(&tuned->lock);
    if (tuned->known) return tuned;
    assume(device, &tuned->tuning);
    if (hdi_tuning_load(device->host->allocator, device->host->cache_dir, &tuned->tuning, &refused) && refused > 0)
        hdi_log_line(device->host->log, HD_LOG_WARNING, "tune", "%s: %u lines of its tuning file are not well formed, or choose among options of another version, and were left out; "
                     "run `heddle tune`", device->found.info.id, refused);
    tuned->choices_hash = hdi_choices_hash(&tuned->tuning.choices);
    tuned->known = true;
    return tuned;
}

void hdi_tuned_get(hd_device *device, hdi_tuning *out_tuning) {
    const hdi_tuned *tuned = lock(device);
    *out_tuning = tuned->tuning;
    hdi_mutex_unlock(&device->tuned->lock);
}

uint64_t hdi_tuned_choices(hd_device *device, hdi_choices *out_choices) {
    const hdi_tuned *tuned = lock(device);
    const uint64_t hash = tuned->choices_hash;
    if (out_choices) *out_choices = tuned->tuning.choices;
    hdi_mutex_unlock(&device->tuned->lock);
    return hash;
}

hd_status hdi_tuned_choose(hd_device *device, hdi_class of, const hdi_choice *choice, hd_error *error) {
    const hdi_host *host = device->host;
    hd_status status = HD_OK;
    hdi_tuned *tuned = lock(device);
    hdi_tuning *tuning = &tuned->tuning;
    if (!choice) hdi_choices_remove(&tuning->choices, of);
    else if (!hdi_choices_put(&tuning->choices, choice)) status = hdi_fail(error, HD_STATUS_LIMIT, "more than %d choices of kernels", HDI_CHOICES);
    tuned->choices_hash = hdi_choices_hash(&tuning->choices);
    if (!status && host->cache_dir && !hdi_tuning_save(host->allocator, host->cache_dir, tuning))
        status = hdi_fail(error, HD_STATUS_IO, "the tuning file could not be written in %s", host->cache_dir);
    hdi_mutex_unlock(&device->tuned->lock);
    atomic_fetch_add(&device->facts_version, 1); /* plans of before may hold another choice */
    return status;
}

/* What a program takes on the device alone, `program->node_count` of them; yours, also after a failure. */
static hd_status work_of(hd_device *device, const hd_program *program, hdi_plan_work **out_works, hd_error *error) {
    hdi_caps *caps = hdi_alloc(program->allocator, sizeof *caps);
    hd_status status = hdi_program_check(program, error);
    *out_works = status ? NULL : hdi_alloc(program->allocator, program->node_count * sizeof **out_works);
    if (!status && (!caps || !*out_works)) status = hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the work of %u nodes", program->node_count);
    if (!status) {
        hdi_verdicts_caps(device, caps);
        status = hdi_plan_work_of(&(hdi_whole_wish){ .program = program, .caps = caps }, 0, *out_works, error);
    }
    hdi_free(program->allocator, caps, sizeof *caps);
    return status;
}

/* ---- samples ---- */

/* Every kernel of the program is of one kind of work and type. */
static hd_status read_program(hd_device *device, const hd_program *program, hdi_sample *out, hd_error *error) {
    hdi_plan_work *works;
    hd_status status = work_of(device, program, &works, error);
    for (uint32_t i = 0; i < program->node_count && !status; i++) {
        const hdi_work *work = &works[i].work;
        if (works[i].kernel != i + 1 || work->kind == HDI_KIND_NONE) continue;
        if (out->work != HDI_KIND_NONE && (out->work != work->kind || out->width != work->width))
            status = hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "a sample of %s %s and %s %s at once; measure one kind of work at a time", hdi_op_kind_name(out->work),
                              hdi_width_name(out->width), hdi_op_kind_name(work->kind), hdi_width_name(work->width));
        out->work = work->kind;
        out->width = work->width;
        out->kernels += work->kernels;
        out->flops += (double)work->flops;
        out->bytes += (double)work->bytes;
    }
    if (!status && out->work == HDI_KIND_NONE) status = hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "a sample in which nothing is computed");
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

static hd_status read_sample(hd_device *device, const hd_tune_sample *from, hdi_sample *out, hd_error *error) {
    static const hdi_sample_kind kinds[] = { HDI_SAMPLE_RUN, HDI_SAMPLE_UPLOAD, HDI_SAMPLE_DOWNLOAD };
    if ((unsigned)from->part > HD_TUNE_READ || (!from->program && from->part == HD_TUNE_RUN)) return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "a sample of no program that ran");
    *out = (hdi_sample){ .kind = kinds[from->part], .ns = (double)from->ns };
    hd_status status = from->program ? read_program(device, from->program, out, error) : HD_OK;
    if (status) return status;
    if (!from->program) {
        out->kernels = 1;
        out->bytes = (double)from->transfer_bytes;
    } else if (from->part != HD_TUNE_RUN) count_transfers(from->program, from->part == HD_TUNE_WRITE ? HD_PORT_INPUT : HD_PORT_OUTPUT, out);
    return HD_OK;
}

hd_status hd_device_tune(hd_device *device, const hd_tune_sample *samples, size_t count) {
    if (!device || (!samples && count > 0)) return HD_STATUS_NULL_POINTER;
    const hd_allocator *allocator = device->host->allocator;
    hd_error error = { 0 };
    hdi_sample *read = count > SIZE_MAX / sizeof *read ? NULL : hdi_alloc(allocator, count * sizeof *read);
    hd_status status = read || count == 0 ? HD_OK : hdi_fail(&error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for %zu samples", count);
    for (size_t i = 0; i < count && !status; i++) status = read_sample(device, &samples[i], &read[i], &error);
    hdi_tuning *tuning = &lock(device)->tuning;
    if (!status) status = hdi_fit_device(allocator, read, count, tuning, &error);
    if (!status && device->host->cache_dir && !hdi_tuning_save(allocator, device->host->cache_dir, tuning))
        status = hdi_fail(&error, HD_STATUS_IO, "the tuning file could not be written in %s", device->host->cache_dir);
    hdi_mutex_unlock(&device->tuned->lock);
    atomic_fetch_add(&device->facts_version, 1);
    hdi_free(allocator, read, count * sizeof *read);
    return status ? hdi_context_keep(device->context, &error) : HD_OK;
}

hd_status hd_device_untune(hd_device *device) {
    char path[1024];
    if (!device) return HD_STATUS_NULL_POINTER;
    hdi_tuned *tuned = lock(device);
    assume(device, &tuned->tuning);
    tuned->choices_hash = hdi_choices_hash(&tuned->tuning.choices);
    bool left = false;
    if (hdi_tuning_path(device->host->cache_dir, &tuned->tuning, path, sizeof path)) {
        FILE *file = fopen(path, "rb");
        if (file) fclose(file);
        left = file && remove(path) != 0;
    }
    hdi_mutex_unlock(&device->tuned->lock);
    return left ? hdi_context_fail(device->context, HD_STATUS_IO, "%s could not be removed", path) : HD_OK;
}

/* ---- answers ---- */

static hd_device_figure figure_of(const char *work, const char *type, const hdi_figure *f) {
    return (hd_device_figure){ work, type, f->fixed_ns, f->ns_per_flop > 0 ? 1e9 / f->ns_per_flop : 0, f->ns_per_byte > 0 ? 1e9 / f->ns_per_byte : 0, f->error, f->samples };
}

hd_status hd_device_figures(hd_device *device, hd_device_figure *out_figures, size_t *count) {
    enum { ALL = 3 + (HDI_KIND_COUNT - 1) * HDI_WIDTH_COUNT };
    hd_device_figure all[ALL];
    hdi_tuning tuning;
    size_t at = 0;
    if (!device || !count) return HD_STATUS_NULL_POINTER;
    hdi_tuned_get(device, &tuning);
    all[at++] = figure_of("submit", "", &tuning.submit);
    all[at++] = figure_of("upload", "", &tuning.upload);
    all[at++] = figure_of("download", "", &tuning.download);
    for (int kind = HDI_KIND_NONE + 1; kind < HDI_KIND_COUNT; kind++)
        for (int width = 0; width < HDI_WIDTH_COUNT; width++)
            all[at++] = figure_of(hdi_op_kind_name((hdi_op_kind)kind), hdi_width_name((hdi_width)width), &tuning.ops[kind][width]);
    const size_t room = *count;
    *count = at;
    if (!out_figures) return HD_OK;
    memcpy(out_figures, all, HDI_MIN(room, at) * sizeof *all);
    return room < at ? hdi_context_fail(device->context, HD_STATUS_LIMIT, "%zu figures and room for %zu", at, room) : HD_OK;
}

hd_status hd_device_predict(hd_device *device, const hd_program *program, uint64_t *out_run_ns, uint64_t *out_transfers_ns) {
    if (!device || !program) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    hdi_caps caps;
    hdi_tuning tuning;
    hdi_timing timing = { 0 };
    hdi_placement placement = { 0 };
    const char *const id = device->found.info.id;
    const bool software = true;
    hd_status status = hdi_program_check(program, &error);
    hdi_tuned_get(device, &tuning);
    hdi_verdicts_caps(device, &caps);
    const hdi_choose_wish wish = { { .program = program, .caps = &caps, .ids = &id }, 1, &tuning, &software, NULL };
    if (!status) status = hdi_timing_make(&wish, program, &timing, &error);
    if (!status) status = hdi_placement_new(program, 1, &placement, &error);
    if (!status) {
        const hdi_placement_time time = hdi_timing_of(&timing, &placement);
        if (out_run_ns) *out_run_ns = (uint64_t)(time.total_ns - time.transfers_ns);
        if (out_transfers_ns) *out_transfers_ns = (uint64_t)time.transfers_ns;
    }
    hdi_placement_free(&placement);
    hdi_timing_end(&timing);
    return status ? hdi_context_keep(device->context, &error) : HD_OK;
}
