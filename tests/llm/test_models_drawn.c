/* test_models_drawn.c: an answer that is drawn from the device's candidates is, token for token, the one that is drawn from
 * whole rows of scores; how many bytes come back from the device for each token; and what penalties know of a sequence. */
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

/* The answer to `held`, step by step out of whole rows, drawn by a sampler that was told the last `told` of them. */
static void draw_told(hd_session *session, const hd_sampling *sampling, const int32_t *held, uint32_t count, uint32_t told, int32_t *out) {
    hdl_sampler *sampler;
    hd_error error = { 0 };
    assert_int_equal(hdl_sampler_create(NULL, sampling, reference.vocabulary, &sampler, &error), HD_OK);
    for (uint32_t i = count - told; i < count; i++) hdl_sampler_accept(sampler, held[i]);
    CHECK(hd_session_rewind(session, 0, 0));
    CHECK(hd_session_feed(session, 0, held, count));
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
        draw_told(session, &wishes[w].sampling, reference.prompt, reference.prompt_count, reference.prompt_count, wanted);
        CHECK(hd_session_rewind(session, 0, 0));
        const uint64_t before = downloaded(session);
        CHECK(hd_generate(session,
                          &(hd_generate_desc){ .tokens = reference.prompt,
                                               .token_count = reference.prompt_count,
                                               .max_tokens = ANSWER,
                                               .sampling = wishes[w].sampling,
                                               .ignore_end = 1 },
                          given, &result));
        assert_int_equal(result.token_count, ANSWER);
        for (uint32_t i = 0; i < ANSWER; i++)
            if (given[i] != wanted[i])
                fail_msg("%s, wish %zu: token %u is %d, and %d out of the whole row", where, w, i, given[i], wanted[i]);
        if (streamed) continue; /* what goes from layer to layer comes back too */
        /* The prompt's, and what each token but the first is drawn from; the last token is fed too. */
        const uint64_t bytes = downloaded(session) - before,
                       told = row + (ANSWER + 1) * best + (ANSWER - 1) * (wishes[w].candidates ? candidates : row);
        if (bytes > told || bytes + 64 < told)
            fail_msg("%s, wish %zu: %llu bytes came back, not %llu", where, w, (unsigned long long)bytes,
                     (unsigned long long)told);
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
        CHECK(hd_session_create(model,
                                &(hd_session_desc){ .device = device,
                                                    .context = 128,
                                                    .chunk = 16,
                                                    .device_layers = places[p].device_layers,
                                                    .stream = places[p].stream },
                                &session));
        drawn_on(session, places[p].name, places[p].stream);
        hd_session_destroy(session);
        hd_device_close(device);
    }
}

static void go_on(hd_session *session, const hd_sampling *sampling, const int32_t *tokens, size_t count, int32_t *out) {
    hd_generated result;
    CHECK(hd_generate(
        session,
        &(hd_generate_desc){
            .tokens = tokens, .token_count = count, .max_tokens = ANSWER, .sampling = *sampling, .ignore_end = 1 },
        out, &result));
    assert_int_equal(result.token_count, ANSWER);
}

/* Penalties go by all that the sequence holds: tokens that were fed before, an earlier turn and its answer, what a rewind left; as far
 * back as the window reaches, and over the edge of a page. */
static void penalties_know_the_whole_sequence(void **state) {
    (void)state;
    enum { TURN = 7, FILL = 250, HELD = FILL + 2 * TURN + ANSWER };
    static const uint32_t windows[] = { 0, 1, TURN, TURN + ANSWER, HELD, 4 * HELD };
    hd_device *device;
    hd_session *session;
    CHECK(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device));
    CHECK(hd_session_create(model, &(hd_session_desc){ .device = device, .math = HD_MATH_EXACT, .context = 512, .chunk = 16 }, &session));
    uint32_t differ = 0;
    for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
        const hd_sampling wish = {
            .repeat_penalty = 1.8f, .frequency_penalty = 0.25f, .presence_penalty = 0.5f, .penalty_window = windows[w]
        };
        int32_t held[HELD], wanted[ANSWER], given[ANSWER], forgetful[ANSWER];
        for (uint32_t i = 0; i < HELD; i++)
            held[i] =
                (int32_t)(((uint32_t)reference.prompt[i % reference.prompt_count] + i / 9) % reference.vocabulary);
        const int32_t other[3] = { held[5], held[5], held[6] };
        CHECK(hd_session_rewind(session, 0, 0));
        CHECK(hd_session_feed(session, 0, held, FILL));
        CHECK(hd_session_feed(session, 0, other, 3)); /* which is taken back */
        CHECK(hd_session_rewind(session, 0, FILL));
        CHECK(hd_session_step(session, &(hd_step){ 0, held[FILL] }, 1));
        go_on(session, &wish, held + FILL + 1, TURN - 1, held + FILL + TURN); /* a turn and its answer, */
        go_on(session, &wish, held + FILL + TURN + ANSWER, TURN, given); /* and another */
        const uint32_t window = windows[w] == 0 ? 64 : windows[w], told = window < HELD ? window : HELD;
        draw_told(session, &wish, held, HELD, told, wanted);
        for (uint32_t i = 0; i < ANSWER; i++)
            if (given[i] != wanted[i]) fail_msg("window %u: token %u is %d, not %d", windows[w], i, given[i], wanted[i]);
        draw_told(session, &wish, held, HELD, told < TURN ? told : TURN, forgetful);
        differ += memcmp(forgetful, wanted, sizeof wanted) != 0;
    }
    assert_true(differ >= 3); /* it matters */
    hd_session_destroy(session);
    hd_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(candidates_give_the_same_answer),
                                        cmocka_unit_test(penalties_know_the_whole_sequence) };
    return cmocka_run_group_tests(tests, begin, end);
}
