/* test_fault_models.c: a model's life from the file to an answer, while every host allocation fails once and from there on,
 * and every fallible driver call fails in every way that Vulkan allows it. Whatever was under way says so, nothing leaks or
 * hangs; what failed for once is called again and gives the very tokens of an undisturbed life: nothing was lost. */
#define _POSIX_C_SOURCE 200809L
#include "conform/driver_leaks.h"
#include <heddle_llm.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include "failing.h"
#include "sweep.h"

enum { ANSWER = 3 };
static const int32_t prompt[] = { 5, 70, 9, 33, 120, 8, 250, 1, 77, 61 }; /* two pieces: 8 tokens, and 2 that are padded */
enum { PROMPT = sizeof prompt / sizeof *prompt };

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- a life ---- */

typedef struct life {
    hd_context *context;
    hd_device  *device;
    hd_model   *model;
    hd_session *session;
    int32_t     answer[ANSWER];
    bool        again;          /* a call that failed is made once more */
    void      (*calm)(void);    /* ends the faults */
    hd_status   failed;         /* what the first failure was */
} life;

static bool shown(void *user, const char *text, size_t bytes) {
    (void)text;
    *(size_t *)user += bytes;
    return true;
}

/* The prompt in two halves, and an answer; a failed one starts over from the first position. */
static hd_status answer(life *l) {
    static const char *const stops[] = { "no model says this", "" };
    size_t bytes = 0;
    hd_status status = hd_session_rewind(l->session, 0, 0);
    if (!status) status = hd_session_feed(l->session, 0, prompt, PROMPT - 1);
    if (status && l->again) { /* all or nothing, and then all */
        assert_int_equal(hd_session_position(l->session, 0), 0);
        if (!l->failed) l->failed = status;
        l->calm();
        status = hd_session_feed(l->session, 0, prompt, PROMPT - 1);
    }
    const hd_generate_desc desc = { .tokens = &prompt[PROMPT - 1], .token_count = 1, .max_tokens = ANSWER, .stop_texts = stops, .stop_count = 2,
                                    .sampling = { .temperature = 1.5f, .top_k = 40, .seed = 7, .repeat_penalty = 1.1f }, .ignore_end = 1, .on_text = shown, .user = &bytes };
    if (!status) status = hd_generate(l->session, &desc, l->answer, NULL);
    return status;
}

#define TRY(call) \
    do { \
        status = (call); \
        if (!status) break; \
        if (!l->failed) l->failed = status; \
        if (!l->again) return status; \
        l->calm(); \
        status = (call); \
        if (status) return status; \
    } while (0)

static hd_status run_life(life *l) {
    hd_status status;
    const hd_session_desc desc = { .device = l->device, .context = 64, .chunk = 8, .math = HD_MATH_EXACT };
    hd_fit fit;
    TRY(hd_model_open(l->context, HEDDLE_TESTS_DIR "/llm/models/llama_q8_0.gguf", &(hd_model_desc){ .check_weights = 1 }, &l->model));
    TRY(hd_model_fit(l->model, &desc, &fit));
    TRY(hd_session_create(l->model, &desc, &l->session));
    TRY(answer(l));
    return HD_OK;
}

static void end_life(life *l) {
    hd_session_destroy(l->session);
    hd_model_close(l->model);
    l->session = NULL;
    l->model = NULL;
}

static int32_t undisturbed[ANSWER];
static void check_answer(const life *l, const char *what, long long n) {
    if (memcmp(l->answer, undisturbed, sizeof undisturbed) != 0) fail_msg("%s %lld: another answer", what, n);
}

static void open_life(life *l, const char *backend) {
    const hd_context_desc desc = { .allocator = { resize, NULL }, .backend = backend, .cpu_threads = 1, .cache_dir = "" };
    assert_int_equal(hd_context_create(&desc, &l->context), HD_OK);
    assert_int_equal(hd_device_open(l->context, &(hd_device_desc){ .id = backend }, &l->device), HD_OK);
}

/* ---- host memory ---- */

static void sweep_memory(bool forever) {
    uint32_t faults = 0;
    for (long long n = 0;; n += forever ? 5 : SWEEP_STEP) {
        life l = { .again = !forever, .calm = calm_memory };
        atomic_store(&memory.left, NEVER);
        memory.forever = forever;
        open_life(&l, "cpu");
        const long long before = atomic_load(&memory.alive);
        atomic_store(&memory.left, n);
        const hd_status status = run_life(&l);
        const bool hit = atomic_load(&memory.left) < 0 || l.failed;
        if (status && (!forever || (status != HD_STATUS_OUT_OF_HOST_MEMORY && status != HD_STATUS_OUT_OF_DEVICE_MEMORY))) fail_msg("allocation %lld: %s", n, hd_status_name(status));
        if (l.failed && l.failed != HD_STATUS_OUT_OF_HOST_MEMORY && l.failed != HD_STATUS_OUT_OF_DEVICE_MEMORY)
            fail_msg("allocation %lld: %s", n, hd_status_name(l.failed));
        if (!status) check_answer(&l, "allocation", n);
        end_life(&l);
        assert_true(atomic_load(&memory.alive) >= before);
        calm_memory();
        if (forever && n % 20 == 0) { /* and the same context is as good as new */
            l.again = false;
            assert_int_equal(run_life(&l), HD_OK);
            check_answer(&l, "after allocation", n);
            end_life(&l);
        }
        hd_context_destroy(l.context);
        assert_int_equal(atomic_load(&memory.alive), 0);
        if (!hit) break;
        faults++;
        assert_true(n < 20000);
    }
    assert_int_equal(atomic_load(&memory.alive), 0);
    print_message("cpu, %s: %u allocation faults\n", forever ? "from there on" : "once", faults);
    assert_true(faults > 100 / SWEEP_STEP);
}
static void allocations_fail_once(void **state) { (void)state; sweep_memory(false); }
static void allocations_fail_from_there_on(void **state) { (void)state; sweep_memory(true); }

/* ---- a wait that is too short ---- */

/* A session and its model end while a run that timed out is still under way: it reads the mapped file, which must not go before. */
static void ended_under_way(void **state) {
    (void)state;
    uint32_t timeouts = 0;
    calm_memory();
    for (int round = 0; round < 12; round++) {
        int32_t tokens[64];
        life l = { 0 };
        const hd_context_desc desc = { .allocator = { resize, NULL }, .backend = "cpu", .cpu_threads = 2, .cache_dir = "", .wait_ns = 1 };
        for (int i = 0; i < 64; i++) tokens[i] = i + 3;
        assert_int_equal(hd_context_create(&desc, &l.context), HD_OK);
        assert_int_equal(hd_device_open(l.context, &(hd_device_desc){ .id = "cpu" }, &l.device), HD_OK);
        assert_int_equal(hd_model_open(l.context, HEDDLE_TESTS_DIR "/../models/demo.gguf", NULL, &l.model), HD_OK);
        if (hd_session_create(l.model, &(hd_session_desc){ .device = l.device, .context = 256 }, &l.session) == HD_OK) {
            const hd_status status = hd_session_feed(l.session, 0, tokens, 64);
            assert_true(status == HD_OK || status == HD_STATUS_TIMEOUT);
            assert_int_equal(hd_session_position(l.session, 0), status ? 0 : 64);
            timeouts += status != HD_OK;
        }
        end_life(&l);
        hd_context_destroy(l.context);
    }
    assert_int_equal(atomic_load(&memory.alive), 0);
    print_message("%u runs timed out\n", timeouts);
    assert_true(timeouts > 0);
}

/* ---- the driver ---- */

#ifdef HEDDLE_VULKAN
static void count_calls(life *l) {
    fault = (struct fault){ 0 };
    assert_int_equal(run_life(l), HD_OK);
    check_answer(l, "counting", 0);
    end_life(l);
}

/* One fault; a device that was lost is closed and opened anew. */
static void one_fault(life *l, uint32_t at, hdvk_result_row row, const char *name) {
    static uint8_t kept[sizeof fault.trace];
    memcpy(kept, fault.trace, sizeof kept);
    fault = (struct fault){ .at = at, .row = row };
    l->failed = HD_OK;
    l->again = row != HDVK_ROW_ERROR_DEVICE_LOST;
    const double begun = seconds();
    const hd_status status = run_life(l);
    if (status && !fault.lost) fail_msg("%s gives row %d at call %u: %s after %s: %s", name, (int)row, at, hd_status_name(status), hd_status_name(l->failed), hd_context_error(l->context));
    if (status && status != HD_STATUS_DEVICE_LOST) fail_msg("%s is lost at call %u: %s", name, at, hd_status_name(status));
    if (row == HDVK_ROW_TIMEOUT && l->failed && l->failed != HD_STATUS_TIMEOUT) fail_msg("%s times out at call %u: %s", name, at, hd_status_name(l->failed));
    if (!status) check_answer(l, name, at);
    end_life(l);
    if (fault.lost) {
        hd_device_close(l->device);
        fault = (struct fault){ 0 };
        assert_int_equal(hd_device_open(l->context, &(hd_device_desc){ .id = "vulkan" }, &l->device), HD_OK);
    }
    if (seconds() - begun > 20) fail_msg("%s gives row %d at call %u: took %.1f s", name, (int)row, at, seconds() - begun);
    (void)hd_context_error(l->context);
    memcpy(fault.trace, kept, sizeof kept);
}

static void driver_calls_fail(void **state) {
    (void)state;
    life l = { .calm = calm_driver };
    calm_memory();
    const hd_context_desc desc = { .allocator = { resize, NULL }, .backend = "vulkan", .cache_dir = "" };
    assert_int_equal(hd_context_create(&desc, &l.context), HD_OK);
    if (hd_device_open(l.context, &(hd_device_desc){ .id = "vulkan" }, &l.device)) {
        hd_context_destroy(l.context);
        skip();
    }
    hdvk_fault_set(inject);
    count_calls(&l); /* the first life compiles */
    const uint32_t first = fault.calls;
    count_calls(&l); /* the next ones take idle plans */
    const uint32_t calls = fault.calls;
    uint32_t faults = 0, losses = 0;
    const double begun = seconds();
    for (uint32_t at = 1; at <= calls && at < sizeof fault.trace; at += SWEEP_STEP)
        for (uint32_t row = 0; row < HDVK_ROW_COUNT; row++) {
            const hdvk_function function = (hdvk_function)fault.trace[at];
            if (!allows(function, (hdvk_result_row)row)) continue;
            if (row == HDVK_ROW_ERROR_DEVICE_LOST && (at % 4 || losses > 40)) continue; /* each opens a device anew */
            one_fault(&l, at, (hdvk_result_row)row, hdvk_function_get(function)->name);
            losses += row == HDVK_ROW_ERROR_DEVICE_LOST;
            faults++;
        }
    fault = (struct fault){ 0 };
    l.again = false;
    assert_int_equal(run_life(&l), HD_OK);
    check_answer(&l, "at the end", 0);
    end_life(&l);
    hd_context_destroy(l.context);
    hdvk_fault_set(NULL);
    assert_int_equal(atomic_load(&memory.alive), 0);
    print_message("vulkan: %u fallible calls in a first life, %u in a later one; %u faults, %u of them losses, %.0f ms each\n", first, calls, faults, losses,
                  1e3 * (seconds() - begun) / faults);
    assert_true(faults > 50 / SWEEP_STEP);
}
#endif

static int find_answer(void **state) {
    (void)state;
    life l = { .calm = calm_memory };
    calm_memory();
    open_life(&l, "cpu");
    if (run_life(&l)) return -1;
    memcpy(undisturbed, l.answer, sizeof undisturbed);
    end_life(&l);
    hd_context_destroy(l.context);
    return atomic_load(&memory.alive) ? -1 : 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_fail_once), cmocka_unit_test(allocations_fail_from_there_on), cmocka_unit_test(ended_under_way),
#ifdef HEDDLE_VULKAN
        cmocka_unit_test(driver_calls_fail),
#endif
    };
    return cmocka_run_group_tests(tests, find_answer, NULL);
}
