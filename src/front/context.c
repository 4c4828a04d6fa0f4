/* context.c: the root. Resolves wishes against the environment, keeps the first error, holds every object in a list. */
#include "front/front.h"
#include "os/os.h"
#include <stdio.h>

/* ---- errors ---- */

hd_status hdi_context_fail(hd_context *context, hd_status status, const char *format, ...) {
    hd_error error = { 0 };
    va_list args;
    va_start(args, format);
    hdi_fail_v(&error, status, format, args);
    va_end(args);
    return hdi_context_keep(context, &error);
}

hd_status hd_context_put_error(hd_context *context, const hd_error *error) {
    if (!HDI_FIND(context)) return HDI_REFUSE(context);
    return error ? hdi_context_keep(context, error) : HD_STATUS_NULL_POINTER;
}

void hd_context_log(hd_context *context, hd_log_level level, const char *part, const char *line) {
    if (HDI_FIND(context) && part && line) hdi_log_line(&context->log, level, part, "%s", line);
}

bool hd_context_strict(const hd_context *context) { return HDI_FIND(context) && context->shared.strict; }

const char *hd_context_cache_dir(const hd_context *context) { return HDI_FIND(context) ? context->cache_dir : ""; }

hd_allocator hd_context_allocator(const hd_context *context) {
    return HDI_FIND(context) ? context->allocator : hdi_default_allocator;
}

typedef struct shared_calls {
    void (*run)(void *user, uint64_t index);
    void *user;
} shared_calls;

static void run_calls(void *user, uint32_t worker, uint64_t first, uint64_t count) {
    const shared_calls *calls = user;
    (void)worker;
    for (uint64_t i = first; i < first + count; i++) calls->run(calls->user, i);
}

void hd_context_share(hd_context *context, void (*run)(void *user, uint64_t index), void *user, uint64_t count) {
    enum { LEAST_NS = 100000 }; /* of a call */
    hdi_thread_pool *const threads = HDI_FIND(context) ? context->host.thread_pool : NULL;
    shared_calls calls = { run, user };
    if (!run) return;
    hdi_thread_pool_call(threads, hdi_thread_pool_most(threads));
    hdi_thread_pool_run(threads, run_calls, &calls, count, LEAST_NS * count);
}

void hd_context_take_error(hd_context *context, hd_error *out_error) {
    if (!out_error) return;
    memset(out_error, 0, sizeof *out_error);
    if (!HDI_FIND(context)) return;
    hdi_mutex_lock(&context->holder.lock);
    *out_error = context->holder.error;
    context->holder.error = (hd_error){ 0 };
    hdi_mutex_unlock(&context->holder.lock);
}

const char *hd_context_error(hd_context *context) {
    if (!HDI_FIND(context)) return "";
    hd_error error;
    hd_context_take_error(context, &error);
    context->error_line[0] = 0;
    if (error.status) hdi_error_line(&error, context->error_line, sizeof context->error_line);
    return context->error_line;
}

/* ---- objects ---- */

uint64_t hd_context_live_objects(const hd_context *context) {
    if (!HDI_FIND(context)) return 0;
    hd_context *writable = (hd_context *)(uintptr_t)context; /* only its lock is touched */
    hdi_mutex_lock(&writable->holder.lock);
    uint64_t live = context->holder.count;
    hdi_mutex_unlock(&writable->holder.lock);
    return live;
}

hd_status hdi_context_probe(hd_context *context) {
    hd_error error = { 0 };
    hdi_mutex_lock(&context->holder.lock);
    hd_status status = HD_OK;
    if (!context->probed) {
        status = hdi_registry_probe(&context->registry, &context->host, context->backend[0] ? context->backend : NULL,
                                    &error);
        context->probed = status == HD_OK;
        if (status) hdi_registry_free(&context->registry);
        else hdi_calibrate_order(&context->registry);
        for (uint32_t i = 0; !status && i < context->registry.ranked_count; i++)
            context->registry.ranked[i]->info.half_rows = hdi_matmul_half_rows(&context->registry.ranked[i]->caps);
    }
    hdi_mutex_unlock(&context->holder.lock);
    return hdi_context_done(context, status, &error);
}

hd_status hd_context_metrics(hd_context *context, char *out_text, size_t room, size_t *out_needed) {
    if (!HDI_FIND(context)) return HDI_REFUSE(context);
    hdi_text text = { .allocator = &context->allocator };
    hdi_mutex_lock(&context->holder.lock); /* no device is closed meanwhile */
    hdi_metrics_version(&text);
    hdi_metrics_one(&text, "objects", "gauge", "objects of the context alive", context->holder.count);
    hdi_metrics_one(&text, "plans", "gauge", "plans alive", hdi_list_count(&context->plans));
    hdi_metrics_one(&text, "failures_total", "counter", "calls that failed", context->holder.failures);
    hdi_metrics_one(&text, "failovers_total", "counter", "times that a plan moved to another device",
                    atomic_load(&context->failovers));
    hdi_metrics_devices(&text, &context->devices);
    hdi_mutex_unlock(&context->holder.lock);
    return hdi_text_out(&text, out_text, room, out_needed);
}

/* ---- wishes ---- */

static bool copy_wish(const char *wish, hdi_option option, char *out, size_t room) {
    const char *text = wish ? wish : hdi_option_get(option);
    return (size_t)snprintf(out, room, "%s", text ? text : "") < room;
}

/* Fills the context in from the desc and the environment. */
static hd_status resolve(hd_context *context, const hd_context_desc *desc, hd_error *error) {
    const char *levels = desc->log_levels ? desc->log_levels : desc->log_level ? NULL : hdi_option_get(HDI_OPTION_LOG);
    const char *faults = desc->faults ? desc->faults : hdi_option_get(HDI_OPTION_FAULT);
    uint64_t strict, validation, threads, wait_ms, verify, queues, find_nan;
    context->log = (hdi_log){ .write = desc->log, .user = desc->log_user, .level = HD_LOG_WARNING };
    if (levels && !hdi_log_read(&context->log, levels)) hdi_option_refuse(HDI_OPTION_LOG, error);
    if (desc->log_level) context->log.level = desc->log_level;
    if (hdi_set_last() == HDI_SET_COUNT) hdi_option_refuse(HDI_OPTION_CPU, error);
    hdi_option_number(HDI_OPTION_STRICT, 0, &strict, error);
    hdi_option_number(HDI_OPTION_VALIDATION, 0, &validation, error);
    hdi_option_number(HDI_OPTION_THREADS, hdi_os_processor_count(), &threads, error);
    hdi_option_number(HDI_OPTION_WAIT_MS, 0, &wait_ms, error);
    hdi_option_number(HDI_OPTION_VERIFY, 0, &verify, error);
    hdi_option_number(HDI_OPTION_QUEUES, HDI_QUEUE_COUNT, &queues, error);
    hdi_option_number(HDI_OPTION_FIND_NAN, 0, &find_nan, error);
    if (queues == 2) hdi_option_refuse(HDI_OPTION_QUEUES, error);
    if (faults && !hdi_faults_read(&context->faults, faults)) hdi_option_refuse(HDI_OPTION_FAULT, error);
    context->shared.strict = desc->strict ? desc->strict > 0 : strict != 0;
    if (context->faults.count && context->shared.strict)
        hdi_fail(error, HD_STATUS_STRICT, "strict mode takes no faults on purpose; unset HEDDLE_FAULT");
    if (!copy_wish(desc->backend, HDI_OPTION_BACKEND, context->backend, sizeof context->backend) ||
        !copy_wish(desc->device, HDI_OPTION_DEVICE, context->device, sizeof context->device))
        hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "the name of a back end or a device is too long");
    if (error->status) {
        hdi_log_line(&context->log, HD_LOG_ERROR, "heddle", "%s", error->text);
        return error->status;
    }
    context->shared.find_nan = desc->find_nan > 0 ? (uint32_t)HDI_MIN(desc->find_nan, 2) : (uint32_t)find_nan;
    if (context->faults.count)
        hdi_log_line(&context->log, HD_LOG_WARNING, "fault", "calls fail on purpose: %s; nothing is kept on disk",
                     faults);
    char why[128] = "";
    bool cached =
        !context->faults.count && hdi_option_cache_dir(desc->cache_dir, context->cache_dir, sizeof context->cache_dir);
    if (cached) cached = hdi_folder_open(context->cache_dir, why, sizeof why);
    if (why[0])
        hdi_log_line(&context->log, HD_LOG_WARNING, "cache",
                     "%s: %s; until then compiled kernels and what is measured are not kept", context->cache_dir, why);
    if (!cached) context->cache_dir[0] = 0;
    context->host = (hdi_host){ .allocator = &context->allocator, .log = &context->log,
                                .cache_dir = cached ? context->cache_dir : NULL,
                                .validation = desc->validation > 0 || validation != 0,
                                .contracts = HDI_CHECKED_BUILD || desc->validation > 0 || validation != 0,
                                .one_queue = desc->one_queue > 0 || queues == 1,
                                .faults = context->faults.count ? &context->faults : NULL,
                                .cpu_threads = desc->cpu_threads ? desc->cpu_threads : (uint32_t)threads,
                                .wait_ns = desc->wait_ns ? desc->wait_ns : wait_ms * 1000000,
                                .verify = desc->verify == 0 ? (uint32_t)verify
                                          : desc->verify < 0 ? 0 : (uint32_t)HDI_MIN(desc->verify, 2) };
    return HD_OK;
}

hd_status hd_context_create(const hd_context_desc *desc, hd_context **out_context) {
    const hd_context_desc defaults = { 0 };
    if (!desc) desc = &defaults;
    if (!out_context) return HD_STATUS_NULL_POINTER;
    *out_context = NULL;
    const hd_allocator allocator = desc->allocator.resize ? desc->allocator : hdi_default_allocator;
    hd_context *context = hdi_alloc(&allocator, sizeof *context);
    if (!context) return HD_STATUS_OUT_OF_HOST_MEMORY;
    context->allocator = allocator;
    context->holder.log = &context->log;
    context->shared.lock = &context->holder.lock;
    context->shared.open_cpu = hdi_open_cpu;
    context->shared.move = hdi_plan_move;
    hd_error error = { 0 };
    hd_status status = hd_handle_new(NULL, hdi_kind_context, context, &context->holder.handle);
    if (!status) status = resolve(context, desc, &error);
    if (!status) context->host.thread_pool = hdi_thread_pool_new(&context->allocator, context->host.cpu_threads);
    if (!status && (!context->host.thread_pool || !hdi_mutex_init(&context->holder.lock) ||
                    !hdi_idle_init(&context->shared.idle) || !hdi_runs_init(&context->shared.runs)))
        status = HD_STATUS_OUT_OF_HOST_MEMORY;
    if (status) {
        hd_handle_end(context->holder.handle);
        hdi_thread_pool_free(context->host.thread_pool);
        hdi_free(&allocator, context, sizeof *context);
        return status;
    }
    hdi_link *lists[] = { &context->devices, &context->programs, &context->kernels,
                          &context->buffers, &context->plans,    &context->tickets };
    for (size_t i = 0; i < HDI_COUNT(lists); i++) hdi_list_init(lists[i]);
    *out_context = context->holder.handle;
    return HD_OK;
}

void hd_context_destroy(hd_context *context) {
    if (!HDI_FIND(context) || !hd_handle_end(context->holder.handle)) return;
    while (!hdi_list_empty(&context->devices)) hd_device_close(HDI_OBJECT(context->devices.next, hd_device, held.link));
    while (!hdi_list_empty(&context->programs))
        hd_program_destroy(HDI_OBJECT(context->programs.next, hd_program, held.link));
    while (!hdi_list_empty(&context->kernels))
        hd_kernel_destroy(HDI_OBJECT(context->kernels.next, hd_kernel, held.link));
    hdi_registry_free(&context->registry);
    hdi_idle_free(&context->shared.idle);
    hdi_runs_free(&context->shared.runs);
    hdi_mutex_free(&context->holder.lock);
    hdi_thread_pool_free(context->host.thread_pool);
    hd_allocator allocator = context->allocator;
    hdi_free(&allocator, context, sizeof *context);
}
