/* test_shared_weights.c: equal weights lie once on a device: of two models, of one, with more threads; what one session ends is
 * whole for the other; weights that only begin alike, or that their owner may write, are shared by nobody. Bytes are counted on the
 * null device, whose memory is real; answers are compared on Vulkan and CUDA. */
#define _POSIX_C_SOURCE 200809L
#include "fixture.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

enum { TOKENS = 12, THREADS = 4, ROUNDS = 8, MOST_LISTED = 256 };

#define CHECK(call) check((call), #call, __LINE__)
static hd_context *context;
static hd_device *device;
static void check(hd_status status, const char *call, int line) {
    if (status) fail_msg("line %d: %s: %s: %s", line, call, hd_status_name(status), hd_context_error(context));
}

static int open_context(void **state) {
    (void)state;
    CHECK(hd_context_create(&(hd_context_desc){ .cache_dir = "" }, &context));
    CHECK(hd_device_open(context, &(hd_device_desc){ .id = "null" }, &device));
    return 0;
}
static int close_context(void **state) {
    (void)state;
    hd_context_destroy(context);
    return 0;
}

/* Bytes of weights on a device now. */
static uint64_t weights_on(hd_device *on) {
    hd_memory_info infos[MOST_LISTED];
    size_t count = MOST_LISTED;
    uint64_t bytes = 0;
    CHECK(hd_device_memory(on, infos, &count));
    for (size_t i = 0; i < count; i++)
        if (strncmp(infos[i].label, "weights", 7) == 0) bytes += infos[i].bytes;
    return bytes;
}

/* With the last session nothing is left there. */
static void end_two(hd_device *on, hd_session *one, hd_session *two, hd_model *a, hd_model *b) {
    hd_session_destroy(one);
    hd_session_destroy(two);
    assert_int_equal(weights_on(on), 0);
    hd_model_close(a);
    hd_model_close(b);
}

/* ---- models ---- */

static const char LLAMA[] = "llama_q8_0", DEMO[] = HEDDLE_TESTS_DIR "/../models/demo.gguf";

/* A fixture, with changes one after the other, as a file of its own. */
static hd_model *model_of(const char *name, const edit *edits, uint32_t count) {
    char path[] = "/tmp/heddle-shared-XXXXXX";
    fixture f = fixture_read(name);
    for (uint32_t i = 0; i < count; i++) f = fixture_changed(f, &edits[i], 1);
    hd_model *model = NULL;
    const int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, f.bytes, f.count), f.count);
    close(file);
    CHECK(hd_model_open(context, path, NULL, &model));
    unlink(path); /* it stays while it is mapped */
    fixture_free(&f);
    return model;
}
static hd_model *plain_model(void) { return model_of(LLAMA, NULL, 0); }

static hd_session *session_of(hd_model *model, hd_device *on, hd_fit *out_fit) {
    const hd_session_desc desc = { .device = on, .context = 64, .chunk = 16, .math = HD_MATH_EXACT };
    hd_session *session = NULL;
    hd_fit told;
    CHECK(hd_model_fit(model, &desc, &told));
    CHECK(hd_session_create(model, &desc, &session));
    CHECK(hd_session_get_fit(session, out_fit));
    assert_memory_equal(out_fit, &told, sizeof told);
    return session;
}

/* ---- bytes ---- */

static void share_a_model(const char *name) {
    hd_model *a = model_of(name, NULL, 0), *b = model_of(name, NULL, 0);
    hd_fit fit;
    uint64_t shared;
    hd_session *one = session_of(a, device, &fit);
    const uint64_t whole = fit.device_weight_bytes;
    assert_int_equal(fit.device_shared_bytes, 0);
    assert_int_equal(weights_on(device), whole);
    assert_int_equal(hd_model_shared_bytes(a, b, &shared), HD_OK);
    assert_int_equal(shared, whole);
    hd_session *two = session_of(b, device, &fit), *three = session_of(a, device, &fit);
    assert_int_equal(fit.device_weight_bytes, whole);
    assert_int_equal(fit.device_shared_bytes, whole);
    assert_int_equal(weights_on(device), whole);
    hd_session_destroy(one);
    hd_session_destroy(three);
    hd_model_close(a);
    assert_int_equal(weights_on(device), whole);
    hd_session_destroy(two);
    assert_int_equal(weights_on(device), 0);
    /* the same memory is not found once it is gone */
    two = session_of(b, device, &fit);
    assert_int_equal(fit.device_shared_bytes, 0);
    hd_session_destroy(two);
    hd_model_close(b);
}

static void two_files(void **state) {
    (void)state;
    share_a_model(LLAMA);
    share_a_model(DEMO);
}

/* One tensor is another one. */
static void almost_equal(void **state) {
    (void)state;
    const edit edits[] = { { .kind = EDIT_SET_F32, .name = "output_norm.weight", .number = 3.5, .count = 31 },
                           { .kind = EDIT_TENSOR, .name = "blk.1.ffn_up.weight", .type = HDL_GGUF_TYPE_F32, .shape = HD_SHAPE(64, 32), .number = 2 } };
    hd_model *a = plain_model();
    hd_fit fit;
    hd_session *one = session_of(a, device, &fit);
    const uint64_t whole = fit.device_weight_bytes;
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        hd_model *b = model_of(LLAMA, &edits[i], 1);
        hd_session *two = session_of(b, device, &fit);
        const uint64_t own = fit.device_weight_bytes - fit.device_shared_bytes;
        uint64_t shared;
        assert_int_equal(own, i ? 64 * 32 * sizeof(float) : 256);
        assert_int_equal(weights_on(device), whole + own);
        CHECK(hd_model_shared_bytes(b, a, &shared));
        assert_int_equal(shared, fit.device_shared_bytes);
        hd_session_destroy(two);
        assert_int_equal(weights_on(device), whole);
        hd_model_close(b);
    }
    hd_session_destroy(one);
    hd_model_close(a);
}

/* Tensors of more than what is looked at first, equal but for their last element. */
static void long_heads(void **state) {
    (void)state;
    enum { ELEMENTS = 64 * 32 };
    const edit same[] = { { .kind = EDIT_TENSOR, .name = "blk.0.ffn_up.weight", .type = HDL_GGUF_TYPE_F32, .shape = HD_SHAPE(64, 32), .number = 2 },
                          { .kind = EDIT_TENSOR, .name = "blk.1.ffn_up.weight", .type = HDL_GGUF_TYPE_F32, .shape = HD_SHAPE(64, 32), .number = 2 },
                          { .kind = EDIT_SET_F32, .name = "blk.1.ffn_up.weight", .number = 7, .count = ELEMENTS - 1 } };
    hd_fit equal, apart;
    hd_model *a = model_of(LLAMA, same, 2), *b = model_of(LLAMA, same, 3);
    hd_session *one = session_of(a, device, &equal);
    assert_int_equal(weights_on(device), equal.device_weight_bytes); /* which has them once */
    hd_session *two = session_of(b, device, &apart);
    assert_int_equal(apart.device_weight_bytes, equal.device_weight_bytes + ELEMENTS * sizeof(float));
    assert_int_equal(apart.device_weight_bytes - apart.device_shared_bytes, ELEMENTS * sizeof(float));
    assert_int_equal(weights_on(device), apart.device_weight_bytes);
    end_two(device, one, two, a, b);
}

/* Weights of a caller's own plans, which may write them, and those on the CPU, which lie in the file. */
static void not_shared(void **state) {
    (void)state;
    hd_model *a = plain_model();
    hd_weights *mine, *yours;
    hd_fit fit;
    hd_session *one = session_of(a, device, &fit);
    CHECK(hd_weights_load(a, device, &mine));
    CHECK(hd_weights_load(a, device, &yours));
    assert_int_equal(weights_on(device), 3 * fit.device_weight_bytes);
    hd_weights_destroy(mine);
    hd_weights_destroy(yours);
    hd_session_destroy(one);
    hd_device *cpu;
    CHECK(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &cpu));
    one = session_of(a, cpu, &fit);
    hd_session *two = session_of(a, cpu, &fit);
    assert_int_equal(fit.device_shared_bytes, 0);
    assert_int_equal(weights_on(cpu), 0);
    hd_session_destroy(one);
    hd_session_destroy(two);
    hd_device_close(cpu);
    hd_model_close(a);
}

/* ---- answers ---- */

static void logits_of(hd_session *session, uint32_t vocabulary, float *out) {
    const float *logits;
    int32_t tokens[TOKENS];
    for (int i = 0; i < TOKENS; i++) tokens[i] = (int32_t)((uint32_t)(i * 37 + 11) % vocabulary);
    CHECK(hd_session_rewind(session, 0, 0));
    CHECK(hd_session_feed(session, 0, tokens, TOKENS));
    CHECK(hd_session_logits(session, 0, &logits));
    memcpy(out, logits, vocabulary * sizeof *out);
}

static void answers_on(const char *id) {
    hd_device *on;
    hd_model_info info;
    hd_fit fit;
    if (hd_device_open(context, &(hd_device_desc){ .id = id }, &on)) return;
    hd_model *a = plain_model(), *b = plain_model();
    CHECK(hd_model_get_info(a, &info));
    const size_t bytes = info.vocabulary * sizeof(float);
    float *alone = malloc(bytes), *shared = malloc(bytes);
    hd_session *one = session_of(a, on, &fit);
    logits_of(one, info.vocabulary, alone);
    hd_session *two = session_of(b, on, &fit);
    assert_int_equal(fit.device_shared_bytes, fit.device_weight_bytes);
    assert_int_equal(weights_on(on), fit.device_weight_bytes);
    logits_of(two, info.vocabulary, shared);
    assert_memory_equal(shared, alone, bytes);
    hd_session_destroy(one);
    hd_model_close(a);
    logits_of(two, info.vocabulary, shared);
    assert_memory_equal(shared, alone, bytes);
    hd_session_destroy(two);
    assert_int_equal(weights_on(on), 0);
    hd_model_close(b);
    hd_device_close(on);
    free(alone);
    free(shared);
}

static void the_same_answers(void **state) {
    (void)state;
    answers_on("vulkan");
    answers_on("cuda");
}

/* ---- threads ---- */

static void *come_and_go(void *argument) {
    const hd_session_desc desc = { .device = device, .context = 64, .chunk = 16 };
    for (int i = 0; i < ROUNDS; i++) {
        hd_session *session = NULL;
        const hd_status status = hd_session_create(argument, &desc, &session);
        if (status) return argument;
        hd_session_destroy(session);
    }
    return NULL;
}

static void threads(void **state) {
    (void)state;
    hd_model *models[2] = { plain_model(), plain_model() };
    pthread_t running[THREADS];
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&running[i], NULL, come_and_go, models[i % 2]), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(running[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(weights_on(device), 0);
    hd_model_close(models[0]);
    hd_model_close(models[1]);
}

/* ---- host memory that fails ---- */

static atomic_llong left, alive; /* allocations that still succeed; blocks that are held */

static void *resize(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    (void)user;
    (void)old_bytes;
    if (new_bytes == 0) {
        if (old) atomic_fetch_sub(&alive, 1);
        free(old);
        return NULL;
    }
    if (atomic_fetch_sub(&left, 1) == 0) return NULL;
    void *pointer = realloc(old, new_bytes);
    if (pointer && !old) atomic_fetch_add(&alive, 1);
    return pointer;
}

static hd_status tell_and_make(hd_model *a, hd_model *b, const hd_session_desc *desc, hd_session **out) {
    hd_fit fit;
    uint64_t shared;
    hd_status status = hd_model_shared_bytes(b, a, &shared);
    if (!status) status = hd_model_fit(b, desc, &fit);
    return status ? status : hd_session_create(b, desc, out);
}

/* One allocation fails while a second session finds its weights: it says so, nothing is lost, and again all is well. */
static void memory_fails(void **state) {
    (void)state;
    hd_context *const kept_context = context;
    hd_device *const kept_device = device;
    bool failed = true;
    unsigned failures = 0;
    for (long long n = 0; failed; n += 1 + n / 24) {
        const hd_context_desc desc = { .cache_dir = "", .allocator = { resize, NULL } };
        hd_fit fit;
        hd_session *two = NULL;
        atomic_store(&left, 1LL << 60);
        CHECK(hd_context_create(&desc, &context));
        CHECK(hd_device_open(context, &(hd_device_desc){ .id = "null" }, &device));
        hd_model *a = plain_model(), *b = plain_model();
        hd_session *one = session_of(a, device, &fit);
        const hd_session_desc wish = { .device = device, .context = 64, .chunk = 16, .math = HD_MATH_EXACT };
        atomic_store(&left, n);
        const hd_status status = tell_and_make(a, b, &wish, &two);
        failed = atomic_exchange(&left, 1LL << 60) < 0;
        if (!failed) assert_int_equal(status, HD_OK);
        if (status) {
            assert_int_equal(status, HD_STATUS_OUT_OF_HOST_MEMORY);
            assert_int_equal(weights_on(device), fit.device_weight_bytes);
            CHECK(tell_and_make(a, b, &wish, &two));
            failures++;
        }
        assert_int_equal(weights_on(device), fit.device_weight_bytes);
        end_two(device, one, two, a, b);
        hd_context_destroy(context);
        assert_int_equal(atomic_load(&alive), 0);
    }
    assert_true(failures > 20);
    context = kept_context;
    device = kept_device;
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(two_files),  cmocka_unit_test(almost_equal),     cmocka_unit_test(long_heads),
                                        cmocka_unit_test(not_shared), cmocka_unit_test(the_same_answers), cmocka_unit_test(threads),
                                        cmocka_unit_test(memory_fails) };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
