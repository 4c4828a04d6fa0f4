/* test_kernels.c: kernels of a batch compile side by side, beside the device's lock. The null back end stands in for a driver,
 * with a compiler that takes its time, counts those inside of it and refuses what it is told to. Then the same with the drivers
 * that are here: two threads make a plan of several kernels at once, and its results are the CPU's. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include "device/device.h"

enum { KERNELS = 24, COMPILE_MS = 10, ASKERS = 4 };

static hdi_backend slow;
static hd_device  *device;
static atomic_int  inside, most_inside, loads, frees;
static uint64_t    refused; /* kernels by number, as bits */

static hd_status load(hdi_backend_device *handle, const hdi_module *module, const hdi_kernel *kernel, hdi_loaded_kernel **out_kernel, bool *out_from_cache, hd_error *error) {
    const int now = atomic_fetch_add(&inside, 1) + 1;
    for (int most = atomic_load(&most_inside); now > most && !atomic_compare_exchange_weak(&most_inside, &most, now);) {}
    nanosleep(&(struct timespec){ .tv_nsec = COMPILE_MS * 1000000 }, NULL);
    atomic_fetch_sub(&inside, 1);
    if (refused >> kernel->spec[0] & 1) return hdi_fail(error, HD_STATUS_MODULE, "kernel %u is refused", (unsigned)kernel->spec[0]);
    atomic_fetch_add(&loads, 1);
    return hdi_backend_null.kernel_load(handle, module, kernel, out_kernel, out_from_cache, error);
}

static void unload(hdi_backend_device *handle, hdi_loaded_kernel *kernel) {
    atomic_fetch_add(&frees, 1);
    hdi_backend_null.kernel_free(handle, kernel);
}

static hdi_host host;

static void open_device(uint32_t threads) {
    static const hdi_log log;
    hdi_probe probe = { 0 };
    hd_error error = { 0 };
    host = (hdi_host){ .allocator = &hdi_default_allocator, .log = &log, .cpu_threads = threads, .wait_ns = UINT64_C(10000000000) };
    slow = hdi_backend_null;
    slow.kernel_load = load;
    slow.kernel_free = unload;
    slow.probe(&host, &probe);
    assert_int_equal(hdi_device_open(&host, &slow, &probe.found[0], NULL, &device, &error), HD_OK);
    refused = 0;
    inside = most_inside = loads = frees = 0;
}

/* Each kernel twice, so that twins meet. */
typedef struct batch {
    hdi_kernel        kernels[KERNELS];
    hdi_wanted_kernel wanted[2 * KERNELS];
} batch;
static void fill(batch *b) {
    static const hdi_module module = { .name = "test" };
    memset(b, 0, sizeof *b);
    for (uint32_t i = 0; i < KERNELS; i++) {
        b->kernels[i].spec_count = 1;
        b->kernels[i].spec[0] = i;
    }
    for (uint32_t i = 0; i < 2 * KERNELS; i++) b->wanted[i] = (hdi_wanted_kernel){ .module = &module, .kernel = &b->kernels[i % KERNELS] };
}

static void check_loaded(const batch *b) {
    for (uint32_t i = 0; i < KERNELS; i++) {
        assert_non_null(b->wanted[i].loaded);
        assert_ptr_equal(b->wanted[i].loaded, b->wanted[i + KERNELS].loaded);
        for (uint32_t j = 0; j < i; j++) assert_ptr_not_equal(b->wanted[i].loaded, b->wanted[j].loaded);
    }
}

static void many_threads_compile(void **state) {
    (void)state;
    static batch first, again;
    open_device(8);
    fill(&first);
    fill(&again);
    hd_error error = { 0 };
    assert_int_equal(hdi_device_kernels(device, first.wanted, 2 * KERNELS, &error), HD_OK);
    check_loaded(&first);
    assert_true(most_inside > 1 && most_inside <= 8);
    assert_int_equal(loads, KERNELS);
    assert_int_equal(device->stats.kernels_compiled, KERNELS);
    assert_int_equal(device->stats.kernel_requests, 2 * KERNELS);
    assert_int_equal(device->stats.kernel_hits, KERNELS);
    assert_int_equal(hdi_device_kernels(device, again.wanted, 2 * KERNELS, &error), HD_OK);
    assert_int_equal(loads, KERNELS);
    assert_int_equal(device->stats.kernel_hits, 3 * KERNELS);
    for (uint32_t i = 0; i < KERNELS; i++) assert_ptr_equal(first.wanted[i].loaded, again.wanted[i].loaded);
    hdi_device_close(device);
    assert_int_equal(frees, KERNELS);
}

static void one_thread_compiles_in_order(void **state) {
    (void)state;
    static batch b;
    open_device(1);
    fill(&b);
    hd_error error = { 0 };
    refused = 1u << 5;
    assert_int_equal(hdi_device_kernels(device, b.wanted, 2 * KERNELS, &error), HD_STATUS_MODULE);
    assert_int_equal(most_inside, 1);
    assert_int_equal(loads, 5);
    hdi_device_close(device);
    assert_int_equal(frees, 5);
}

/* The first in order is told, whichever was refused first in time; the rest stays and the batch can be had later. */
static void the_first_failure_is_told(void **state) {
    (void)state;
    static batch b;
    open_device(6);
    refused = 1u << 3 | 1u << 4 | 1u << 7;
    for (int round = 0; round < 4; round++) {
        hd_error error = { 0 };
        fill(&b);
        assert_int_equal(hdi_device_kernels(device, b.wanted, 2 * KERNELS, &error), HD_STATUS_MODULE);
        assert_string_equal(error.text, "kernel 3 is refused");
        assert_true(b.wanted[3].failed && !b.wanted[2].failed && b.wanted[2].loaded);
    }
    refused = 0;
    hd_error error = { 0 };
    fill(&b);
    assert_int_equal(hdi_device_kernels(device, b.wanted, 2 * KERNELS, &error), HD_OK);
    check_loaded(&b);
    assert_int_equal(loads, KERNELS);
    hdi_device_close(device);
    assert_int_equal(frees, KERNELS);
}

static void *ask(void *argument) {
    batch *b = argument;
    hd_error error = { 0 };
    return hdi_device_kernels(device, b->wanted, 2 * KERNELS, &error) ? argument : NULL;
}

/* Who asks for the same at the same time gets the same; what was compiled twice is freed once. */
static void several_askers_share(void **state) {
    (void)state;
    static batch batches[ASKERS];
    pthread_t threads[ASKERS];
    void *failed;
    open_device(3);
    for (int i = 0; i < ASKERS; i++) fill(&batches[i]);
    for (int i = 0; i < ASKERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, ask, &batches[i]), 0);
    for (int i = 0; i < ASKERS; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    for (int i = 0; i < ASKERS; i++) {
        check_loaded(&batches[i]);
        for (uint32_t k = 0; k < KERNELS; k++) assert_ptr_equal(batches[i].wanted[k].loaded, batches[0].wanted[k].loaded);
    }
    assert_int_equal(loads - frees, KERNELS);
    hdi_device_close(device);
    assert_int_equal(loads, frees);
}

/* ---- real drivers ---- */

enum { ROWS = 6, COLUMNS = 40, MAKERS = 2 };
static const char program_text[] =
    "heddle 1\nx = input f32[6,40] \"x\"\nw = input f32[24,40] \"w\"\nn = rms_norm x eps=1e-05\np = matmul n w transpose_b\ns = softmax p axis=1\n"
    "t = permute s axes=[1,0]\nr = sum t axis=1\ne = exp r\noutput s \"s\"\noutput e \"e\"\n";

typedef struct results {
    hd_context *context;
    hd_device  *device;
    hd_status   status;
    float       s[ROWS * 24], e[24];
} results;

static void *make_and_run(void *argument) {
    results *out = argument;
    hd_program *program = NULL;
    hd_plan *plan = NULL;
    float x[ROWS * COLUMNS], w[24 * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = (float)(i * 37 % 101) / 50 - 1;
    for (int i = 0; i < 24 * COLUMNS; i++) w[i] = (float)(i * 53 % 89) / 44 - 1;
    out->status = hd_program_parse(out->context, program_text, strlen(program_text), &program);
    if (!out->status) out->status = hd_plan_create(out->device, program, &(hd_plan_desc){ .math = HD_MATH_EXACT }, &plan);
    if (!out->status) out->status = hd_plan_write(plan, "x", x, sizeof x);
    if (!out->status) out->status = hd_plan_write(plan, "w", w, sizeof w);
    if (!out->status) out->status = hd_plan_run(plan, NULL);
    if (!out->status) out->status = hd_plan_read(plan, "s", out->s, sizeof out->s);
    if (!out->status) out->status = hd_plan_read(plan, "e", out->e, sizeof out->e);
    hd_plan_destroy(plan);
    hd_program_destroy(program);
    return NULL;
}

/* False where there is no such device. */
static bool run_on(const char *name, results all[MAKERS]) {
    hd_context *context;
    hd_device *opened;
    pthread_t threads[MAKERS];
    const hd_context_desc desc = { .backend = name, .cache_dir = "", .cpu_threads = 4 };
    assert_int_equal(hd_context_create(&desc, &context), HD_OK);
    const bool there = hd_device_open(context, &(hd_device_desc){ .id = name }, &opened) == HD_OK;
    for (int i = 0; i < MAKERS && there; i++) {
        all[i].context = context;
        all[i].device = opened;
        assert_int_equal(pthread_create(&threads[i], NULL, make_and_run, &all[i]), 0);
    }
    for (int i = 0; i < MAKERS && there; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    hd_context_destroy(context);
    return there;
}

static void drivers_compile_side_by_side(void **state) {
    (void)state;
    static const char *const names[] = { "null", "vulkan", "opencl" };
    static results right[MAKERS], given[MAKERS];
    assert_true(run_on("cpu", right) && right[0].status == HD_OK);
    for (size_t i = 0; i < HDI_COUNT(names); i++) {
        memset(given, 0, sizeof given);
        if (!run_on(names[i], given)) continue;
        for (int maker = 0; maker < MAKERS; maker++) {
            assert_int_equal(given[maker].status, HD_OK);
            if (i == 0) continue; /* computes nothing */
            assert_memory_equal(given[maker].s, right[0].s, sizeof right[0].s);
            assert_memory_equal(given[maker].e, right[0].e, sizeof right[0].e);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_threads_compile), cmocka_unit_test(one_thread_compiles_in_order), cmocka_unit_test(the_first_failure_is_told),
        cmocka_unit_test(several_askers_share), cmocka_unit_test(drivers_compile_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
