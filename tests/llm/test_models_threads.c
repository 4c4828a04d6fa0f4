/* test_models_threads.c: one model and one device, used from four threads at once, each with sessions of its own: everyone gets
 * the answer that a session alone gets. */
#include "fixture.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdarg.h>
#include <cmocka.h>

enum { THREADS = 4, ROUNDS = 3, ANSWER = 12 };

static hd_context *context;
static hd_device *device;

static int open_context(void **state) {
    (void)state;
    const hd_context_desc desc = { .backend = "cpu", .cpu_threads = 3, .cache_dir = "" };
    return hd_context_create(&desc, &context) || hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device) ? -1 : 0;
}
static int close_context(void **state) {
    (void)state;
    hd_context_destroy(context);
    return 0;
}

typedef struct task {
    hd_model   *model;
    const char *text;
    int32_t     answer[ANSWER];
    hd_status   status;
    char        error[512];
} task;

/* A session from its making to its end; its text in pieces of 8 tokens. */
static hd_status one_session(task *t) {
    int32_t tokens[64];
    size_t count = 64;
    hd_session *session = NULL;
    hd_fit fit;
    const hd_session_desc desc = { .device = device, .context = 64, .chunk = 8, .math = HD_MATH_EXACT };
    hd_status status = hd_model_tokenize(t->model, t->text, strlen(t->text), 0, tokens, &count);
    if (!status) status = hd_model_fit(t->model, &desc, &fit);
    if (!status) status = hd_session_create(t->model, &desc, &session);
    const hd_generate_desc wish = { .tokens = tokens,
                                    .token_count = count,
                                    .max_tokens = ANSWER,
                                    .ignore_end = 1,
                                    .sampling = { .temperature = 1, .seed = 3 } };
    if (!status) status = hd_generate(session, &wish, t->answer, NULL);
    hd_session_destroy(session);
    return status;
}

static void *many_sessions(void *argument) {
    task *t = argument;
    int32_t first[ANSWER];
    for (int round = 0; round < ROUNDS && !t->status; round++) {
        hd_error error = { 0 };
        t->status = one_session(t);
        if (t->status) {
            hd_context_take_error(context, &error);
            memcpy(t->error, error.text, sizeof t->error < sizeof error.text ? sizeof t->error : sizeof error.text);
            t->error[sizeof t->error - 1] = 0;
        } else if (round && memcmp(first, t->answer, sizeof first) != 0) t->status = HD_STATUS_INTERNAL;
        memcpy(first, t->answer, sizeof first);
    }
    return NULL;
}

static void threads_share_a_model(void **state) {
    (void)state;
    static const char *const names[] = { "llama_q8_0", "bitnet_b158_i2_s" };
    static const char *const texts[THREADS] = { "one", "two and more", "three of them, which is a longer text", "4" };
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        char path[512];
        hd_model *model;
        task tasks[THREADS], alone[THREADS];
        pthread_t threads[THREADS];
        snprintf(path, sizeof path, "%s/llm/models/%s.gguf", HEDDLE_TESTS_DIR, names[n]);
        assert_int_equal(hd_model_open(context, path, NULL, &model), HD_OK);
        for (int i = 0; i < THREADS; i++) {
            tasks[i] = alone[i] = (task){ .model = model, .text = texts[i] };
            assert_int_equal(one_session(&alone[i]), HD_OK);
        }
        for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, many_sessions, &tasks[i]), 0);
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
        for (int i = 0; i < THREADS; i++) {
            if (tasks[i].status) fail_msg("%s, thread %d: %s: %s", names[n], i, hd_status_name(tasks[i].status), tasks[i].error);
            assert_memory_equal(tasks[i].answer, alone[i].answer, sizeof alone[i].answer);
        }
        hd_model_close(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(threads_share_a_model) };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
