/* test_broken_steps.c: steps of training, and the checkpoint behind them, while every host allocation fails once, and every fallible driver
 * call in every way that Vulkan allows it. Who trains is told; the weights are then those of a number of whole steps, from which, or
 * else from the last checkpoint, the run goes on and comes to the very bits of an undisturbed one. */
#define _XOPEN_SOURCE 700
#include "conform/driver_leaks.h"
#include "devices.h"
#include "failing.h"
#include "sweep.h"
#include <unistd.h>

enum { BATCH = 2, LENGTH = 8, VOCABULARY = 16, FIRST = 1, LAST = 4 };
static char folder[] = "/tmp/heddle-broken-XXXXXX";
static uint64_t undisturbed[LAST + 1]; /* hashes after so many steps */

static const hd_trainer_desc desc = { .model = { .layers = 1, .width = 16, .heads = 2, .context = LENGTH, .vocabulary = VOCABULARY },
                                      .batch = BATCH, .micro_batch = 1, .seed = 7, .schedule = { .rate = 3e-3 }, .clip = 1, .dropout = 0.1f,
                                      .math = HD_MATH_EXACT };

static char *path_of(const char *name, char out[64]) {
    snprintf(out, 64, "%s/%s", folder, name);
    return out;
}

static hd_status one_step(hd_trainer *trainer) {
    int32_t tokens[BATCH * LENGTH], targets[BATCH * LENGTH];
    const int step = (int)hd_trainer_steps(trainer);
    hd_train_report report;
    bool told;
    for (int i = 0; i < BATCH * LENGTH; i++) {
        tokens[i] = (i * i + step) % VOCABULARY;
        targets[i] = ((i + 1) * (i + 1) + step) % VOCABULARY;
    }
    const hd_status status = hd_trainer_step(trainer, tokens, targets, &report, &told);
    return status || step + 1 < LAST ? status : hd_trainer_finish(trainer, &report, &told);
}

/* ---- a run ---- */

typedef struct run {
    place       at;
    hd_trainer *trainer;
    void      (*calm)(void); /* ends the faults */
    hd_status   failed;      /* what the first failure was */
    uint32_t    faults, went_on, went_back; /* after a failure: from where it stood, from the checkpoint */
} run;

static void from_checkpoint(run *r) {
    char path[64];
    hd_trainer_destroy(r->trainer);
    check_on(&r->at, hd_trainer_create(r->at.context, r->at.device, &desc, &r->trainer));
    check_on(&r->at, hd_trainer_load(r->trainer, path_of("start", path)));
}

/* After a failure: from where the trainer stands, if that is whole. */
static void recover(run *r) {
    uint64_t hash = 0;
    hd_train_report report;
    bool told;
    (void)hd_context_error(r->at.context);
    r->calm();
    hd_status status = hd_trainer_finish(r->trainer, &report, &told); /* of a step that failed while it was under way */
    if (!status) status = hd_trainer_hash(r->trainer, &hash);
    const uint64_t steps = hd_trainer_steps(r->trainer);
    assert_true(steps >= FIRST && steps <= LAST);
    if (!status && hash == undisturbed[steps]) r->went_on++;
    else {
        r->went_back++;
        from_checkpoint(r);
    }
}

/* Steps, a checkpoint, and what it holds. A device that was lost ends it; else it comes to the end. */
static hd_status steps_to_the_end(run *r) {
    char path[64];
    uint64_t hash = 0, step;
    hd_trainer_desc read;
    while (hd_trainer_steps(r->trainer) < LAST) {
        const hd_status status = one_step(r->trainer);
        if (!status) continue;
        if (r->failed) return status; /* it fails once */
        r->failed = status;
        if (status == HD_STATUS_DEVICE_LOST) return status;
        recover(r);
    }
    hd_status status = hd_trainer_save(r->trainer, path_of("end", path));
    if (status) {
        if (r->failed) return status;
        r->failed = status;
        if (status == HD_STATUS_DEVICE_LOST) return status;
        assert_true(access(path, F_OK) != 0); /* whole or not at all */
        recover(r);
        if (hd_trainer_steps(r->trainer) < LAST) return steps_to_the_end(r);
        status = hd_trainer_save(r->trainer, path);
    }
    if (status) return status;
    r->calm();
    check_on(&r->at, hd_trainer_hash(r->trainer, &hash));
    assert_true(hash == undisturbed[LAST]);
    check_on(&r->at, hd_trainer_read(r->at.context, path, &read, &step));
    assert_int_equal(step, LAST);
    return remove_folder(path) ? HD_STATUS_IO : HD_OK;
}

static void open_run(run *r, const char *backend) {
    const hd_context_desc wishes = { .allocator = { resize, NULL }, .backend = backend, .cpu_threads = 1, .cache_dir = "" };
    snprintf(r->at.name, sizeof r->at.name, "%s", backend);
    assert_int_equal(hd_context_create(&wishes, &r->at.context), HD_OK);
}

static void close_run(run *r) {
    hd_trainer_destroy(r->trainer);
    close_place(&r->at);
    assert_int_equal(atomic_load(&memory.alive), 0);
    print_message("%s: %u faults, after %u of them on from there, after %u from the checkpoint\n", r->at.name, r->faults, r->went_on, r->went_back);
}

/* ---- host memory ---- */

static void allocations_fail(void **state) {
    (void)state;
    run r = { .calm = calm_memory };
    open_run(&r, "cpu");
    check_on(&r.at, hd_device_open(r.at.context, NULL, &r.at.device));
    for (long long n = 0;; n += SWEEP_STEP) {
        r.failed = HD_OK;
        from_checkpoint(&r);
        atomic_store(&memory.hit, false);
        atomic_store(&memory.left, n);
        const hd_status status = steps_to_the_end(&r);
        calm_memory();
        if (status || (r.failed && r.failed != HD_STATUS_OUT_OF_HOST_MEMORY))
            fail_msg("allocation %lld: %s, then %s: %s", n, hd_status_name(r.failed), hd_status_name(status), hd_context_error(r.at.context));
        if (!atomic_load(&memory.hit)) break;
        r.faults++;
        assert_true(n < 20000);
    }
    close_run(&r);
    assert_true(r.faults > 20 / SWEEP_STEP);
}

/* ---- the driver ---- */

#ifdef HEDDLE_VULKAN
/* One fault; a device that was lost is closed and opened anew, and the run goes on from its checkpoint. */
static void one_fault(run *r, uint32_t at, hdvk_result_row row, const char *name) {
    static uint8_t kept[sizeof fault.trace];
    memcpy(kept, fault.trace, sizeof kept);
    r->failed = HD_OK;
    from_checkpoint(r);
    fault = (struct fault){ .at = at, .row = row };
    hd_status status = steps_to_the_end(r);
    if (status && (!fault.lost || status != HD_STATUS_DEVICE_LOST))
        fail_msg("%s gives row %d at call %u: %s, then %s: %s", name, (int)row, at, hd_status_name(r->failed), hd_status_name(status), hd_context_error(r->at.context));
    if (fault.lost) {
        hd_trainer_destroy(r->trainer);
        r->trainer = NULL;
        hd_device_close(r->at.device);
        fault = (struct fault){ 0 };
        (void)hd_context_error(r->at.context);
        check_on(&r->at, hd_device_open(r->at.context, &(hd_device_desc){ .id = "vulkan" }, &r->at.device));
        from_checkpoint(r);
        r->went_back++;
        check_on(&r->at, steps_to_the_end(r));
    }
    (void)hd_context_error(r->at.context);
    memcpy(fault.trace, kept, sizeof kept);
}

static void driver_calls_fail(void **state) {
    (void)state;
    enum { MOST_LOSSES = 8 }; /* after each of which all kernels are compiled anew */
    run r = { .calm = calm_driver };
    uint32_t losses = 0;
    open_run(&r, "vulkan");
    if (hd_device_open(r.at.context, &(hd_device_desc){ .id = "vulkan" }, &r.at.device)) {
        hd_context_destroy(r.at.context);
        skip();
    }
    hdvk_fault_set(inject);
    for (int i = 0; i < 2; i++) { /* later trainers take the idle plans of the first */
        from_checkpoint(&r);
        fault = (struct fault){ 0 };
        check_on(&r.at, steps_to_the_end(&r));
    }
    const uint32_t calls = fault.calls;
    for (uint32_t at = 1; at <= calls && at < sizeof fault.trace; at += SWEEP_STEP)
        for (uint32_t row = 0; row < HDVK_ROW_COUNT; row++) {
            const hdvk_function function = (hdvk_function)fault.trace[at];
            const bool loses = row == HDVK_ROW_ERROR_DEVICE_LOST;
            if (!allows(function, (hdvk_result_row)row) || (loses && (at % 4 || losses == MOST_LOSSES))) continue;
            one_fault(&r, at, (hdvk_result_row)row, hdvk_function_get(function)->name);
            losses += loses;
            r.faults++;
        }
    hdvk_fault_set(NULL);
    print_message("%u fallible calls, %u losses\n", calls, losses);
    close_run(&r);
    assert_true(r.faults > 20 / SWEEP_STEP);
}
#endif

/* An undisturbed run, and the checkpoint from which the others go on. */
static int begin(void **state) {
    (void)state;
    char path[64];
    run r = { .calm = calm_memory };
    if (!mkdtemp(folder)) return 1;
    calm_memory();
    open_run(&r, "cpu");
    check_on(&r.at, hd_device_open(r.at.context, NULL, &r.at.device));
    check_on(&r.at, hd_trainer_create(r.at.context, r.at.device, &desc, &r.trainer));
    for (int step = 0; step <= LAST; step++) {
        if (step) check_on(&r.at, one_step(r.trainer));
        check_on(&r.at, hd_trainer_finish(r.trainer, NULL, NULL));
        check_on(&r.at, hd_trainer_hash(r.trainer, &undisturbed[step]));
        if (step == FIRST) check_on(&r.at, hd_trainer_save(r.trainer, path_of("start", path)));
    }
    hd_trainer_destroy(r.trainer);
    close_place(&r.at);
    return atomic_load(&memory.alive) != 0;
}
static int end(void **state) {
    (void)state;
    return remove_folder(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(allocations_fail),
#ifdef HEDDLE_VULKAN
                                        cmocka_unit_test(driver_calls_fail),
#endif
    };
    return cmocka_run_group_tests(tests, begin, end);
}
