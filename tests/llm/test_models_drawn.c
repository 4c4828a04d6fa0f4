/* test_models_drawn.c: an answer that is drawn from the device's candidates is, token for token, the one that is drawn from
 * whole rows of scores; and how many bytes come back from the device for each token. */
#include "llm/model_reference.h"
#include "llm/sample.h"
#include "llm/graph.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { ANSWER = 20 };

static hd_context *context;
static hd_model *model;
static model_reference reference;

#define CHECK(call) check((call), #call, __LINE__)
static void check(hd_status status, const char *call, int line) {
    if (status) fail_msg("line %d: %s: %s", line, call, hd_context_error(context));
}

static int begin(void **state) {
    (void)state;
    if (hd_context_create(NULL, &context) || model_reference_read("qwen3_q4_0", &reference)) return -1;
    return hd_model_open(context, reference.path, NULL, &model) ? -1 : 0;
}
static int end(void **state) {
    (void)state;
    hd_model_close(model);
    hd_context_destroy(context);
    free(reference.bytes);
    return 0;
}

static uint64_t downloaded(hd_session *session) {
    hd_device_stats stats;
    CHECK(hd_device_get_stats(hd_session_device(session), &stats));
    return stats.download_bytes;
}

/* Step by step, out of whole rows. */
static void draw_from_rows(hd_session *session, const hd_sampling *sampling, int32_t *out) {
    hdl_sampler *sampler;
    hd_error error = { 0 };
    assert_int_equal(hdl_sampler_create(NULL, sampling, reference.vocabulary, &sampler, &error), HD_OK);
    for (uint32_t i = 0; i < reference.prompt_count; i++) hdl_sampler_accept(sampler, reference.prompt[i]);
    CHECK(hd_session_rewind(session, 0, 0));
    CHECK(hd_session_feed(session, 0, reference.prompt, reference.prompt_count));
    for (uint32_t i = 0; i < ANSWER; i++) {
        const float *logits;
        CHECK(hd_session_logits(session, 0, &logits));
        if (hdl_sampler_draw(sampler, logits, &out[i], &error)) fail_msg("%s", error.text);
        hdl_sampler_accept(sampler, out[i]);
        CHECK(hd_session_feed(session, 0, &out[i], 1));
    }
    hdl_sampler_destroy(sampler);
}

static const struct { hd_sampling sampling; bool candidates; } wishes[] = {
    { { .seed = 1, .temperature = 1.5f, .top_k = 40, .top_p = 0.95f, .min_p = 0.01f }, true },
    { { .seed = 2, .temperature = 3, .top_k = 64, .repeat_penalty = 1.3f }, true },
    { { .seed = 3, .temperature = 2, .top_k = 1 }, true },
    { { .repeat_penalty = 2, .frequency_penalty = 0.5f, .presence_penalty = 1 }, true },
    { { .seed = 4, .temperature = 1 }, false },
    { { .seed = 5, .temperature = 1, .top_k = 40, .frequency_penalty = -0.5f }, false },
    { { .seed = 6, .temperature = 4, .top_k = 200 }, false },
};

static void drawn_on(hd_session *session, const char *where, bool streamed) {
    const uint64_t row = reference.vocabulary * sizeof(float), best = sizeof(int32_t) + sizeof(float);
    const uint64_t candidates = HDL_CANDIDATES * (sizeof(int32_t) + sizeof(float));
    for (size_t w = 0; w < sizeof wishes / sizeof *wishes; w++) {
        int32_t wanted[ANSWER], given[ANSWER];
        hd_generated result;
        draw_from_rows(session, &wishes[w].sampling, wanted);
        CHECK(hd_session_rewind(session, 0, 0));
        const uint64_t before = downloaded(session);
        CHECK(hd_generate(session, &(hd_generate_desc){ .tokens = reference.prompt, .token_count = reference.prompt_count, .max_tokens = ANSWER,
                                                        .sampling = wishes[w].sampling, .ignore_end = 1 }, given, &result));
        assert_int_equal(result.token_count, ANSWER);
        for (uint32_t i = 0; i < ANSWER; i++)
            if (given[i] != wanted[i]) fail_msg("%s, wish %zu: token %u is %d, and %d out of the whole row", where, w, i, given[i], wanted[i]);
        if (streamed) continue; /* what goes from layer to layer comes back too */
        /* The prompt's, and what each token but the first is drawn from; the last token is fed too. */
        const uint64_t bytes = downloaded(session) - before, told = row + (ANSWER + 1) * best + (ANSWER - 1) * (wishes[w].candidates ? candidates : row);
        if (bytes > told || bytes + 64 < told) fail_msg("%s, wish %zu: %llu bytes came back, not %llu", where, w, (unsigned long long)bytes, (unsigned long long)told);
    }
}

static void candidates_give_the_same_answer(void **state) {
    (void)state;
    static const struct { const char *backend, *name; int device_layers, stream; } places[] = {
        { "cpu", "the CPU", 0, 0 }, { "vulkan", "Vulkan", 0, 0 }, { "vulkan", "Vulkan and the CPU", 1, 0 }, { "vulkan", "streamed", 1, 1 },
    };
    assert_true(reference.vocabulary > 2 * HDL_CANDIDATES);
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        hd_device *device;
        hd_session *session;
        if (hd_device_open(context, &(hd_device_desc){ .id = places[p].backend }, &device)) {
            (void)hd_context_error(context);
            continue;
        }
        CHECK(hd_session_create(model, &(hd_session_desc){ .device = device, .context = 128, .chunk = 16, .device_layers = places[p].device_layers, .stream = places[p].stream }, &session));
        drawn_on(session, places[p].name, places[p].stream);
        hd_session_destroy(session);
        hd_device_close(device);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(candidates_give_the_same_answer) };
    return cmocka_run_group_tests(tests, begin, end);
}
