/* test_draft.c: guesses (hd_draft) change how fast an answer comes and nothing of what it says: rows have the bits that they have alone, and
 * answers drawn every way are, token for token, those without. On the CPU; or arguments name devices. */
#include "llm/model_reference.h"
#include "llm/session.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static hd_context *context;
static const char *const *names;
static int name_count;

#define CHECK(call) check((call), #call, __LINE__)
static void check(hd_status status, const char *call, int line) {
    if (status) fail_msg("line %d: %s: %s", line, call, hd_context_error(context));
}

static hd_device *open_device(const char *id) {
    hd_device *device = NULL;
    CHECK(hd_device_open(context, &(hd_device_desc){ .id = id }, &device));
    return device;
}
static int device_count(void) { return name_count ? name_count : 1; }
static hd_device *device_of(int i) { return open_device(name_count ? names[i] : "cpu"); }

static hd_session *open_session(hd_model *model, hd_device *device, const hd_session_desc *desc) {
    hd_session_desc wishes = *desc;
    hd_session *session;
    wishes.device = device;
    CHECK(hd_session_create(model, &wishes, &session));
    return session;
}

/* ---- rows ---- */

/* Scores after each of 8 tokens behind a prompt: one by one, then as steps of 2, 4 and 8 rows. */
static unsigned rows_differ(hd_model *model, hd_device *device, const model_reference *r, hd_math math) {
    hd_session *handle = open_session(model, device, &(hd_session_desc){ .context = 128, .chunk = 16, .math = math, .draft = HD_DRAFT_LOOKUP }),
               *session = handle;
    assert_int_equal(hdl_session_find(&session), HD_OK);
    const size_t row = r->vocabulary * sizeof(float);
    float *alone = malloc(HDL_DRAFT_ROWS * row);
    const float *logits;
    int32_t tokens[HDL_DRAFT_ROWS];
    unsigned wrong = 0;
    assert_non_null(alone);
    for (uint32_t i = 0; i < HDL_DRAFT_ROWS; i++) tokens[i] = r->prompt[(3 * i + 1) % r->prompt_count];
    CHECK(hd_session_feed(handle, 0, r->prompt, r->prompt_count));
    for (uint32_t i = 0; i < HDL_DRAFT_ROWS; i++) {
        CHECK(hd_session_feed(handle, 0, &tokens[i], 1));
        CHECK(hd_session_logits(handle, 0, &logits));
        memcpy((char *)alone + i * row, logits, row);
    }
    for (uint32_t rows = 2; rows <= HDL_DRAFT_ROWS; rows *= 2) {
        CHECK(hd_session_rewind(handle, 0, r->prompt_count));
        for (uint32_t i = 0; i < HDL_DRAFT_ROWS; i++) {
            if (i % rows == 0) CHECK(hdl_session_feed_guesses(session, 0, tokens + i, rows));
            else assert_true(hdl_session_accept(session, 0, tokens[i]));
            CHECK(hd_session_logits(handle, 0, &logits));
            wrong += memcmp((char *)alone + i * row, logits, row) != 0;
        }
        assert_false(hdl_session_accept(session, 0, tokens[0]));
    }
    free(alone);
    hd_session_destroy(handle);
    return wrong;
}

static void rows_are_the_same_alone(void **state) {
    (void)state;
    static const struct { const char *name; bool everywhere; } models[] = {
        { "qwen3_q4_0", true }, { "llama_q8_0", false }, { "qwen3_f32", false }, { "llama_wide_iq", false }, { "gemma3_f32", false },
        { "mixtral_q8_0", false }, { "qwen3moe_f32", false }, { "gpt_oss_mxfp4", false }, { "gemma2_f32", false }, { "phi3_f32", false },
        { "bitnet_wide_tq2_0", false }, { "falcon_f32", false }, { "gpt2_f32", false }, { "starcoder2_f32", false },
    };
    unsigned wrong = 0;
    for (int d = 0; d < device_count(); d++) {
        hd_device *device = device_of(d);
        for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
            model_reference reference;
            hd_model *model;
            if (!models[m].everywhere && hd_device_get_info(device)->kind != HD_DEVICE_CPU) continue;
            if (model_reference_read(models[m].name, &reference)) fail_msg("%s is not there", models[m].name);
            CHECK(hd_model_open(context, reference.path, NULL, &model));
            for (int exact = 0; exact < (hd_device_get_info(device)->kind == HD_DEVICE_CPU ? 2 : 1); exact++) {
                const unsigned differ = rows_differ(model, device, &reference, exact ? HD_MATH_EXACT : HD_MATH_DEFAULT);
                if (differ)
                    print_error("%s, %s, %s: %u of 24 rows differ\n", hd_device_get_info(device)->name, models[m].name,
                                exact ? "exact" : "fast", differ);
                wrong += differ;
            }
            hd_model_close(model);
            free(reference.bytes);
        }
        hd_device_close(device);
    }
    assert_int_equal(wrong, 0);
}

/* ---- answers ---- */

static bool said(void *user, const hd_said_token *token) {
    double *sum = user;
    *sum = 0.75 * *sum + token->log_probability + 1e-3 * token->token;
    for (uint32_t i = 0; i < token->likeliest; i++) *sum += 1e-4 * token->likeliest_tokens[i] * token->likeliest_log_probabilities[i];
    return true;
}
static void lower(void *user, float *scores, uint32_t count) {
    (void)user;
    for (uint32_t i = 0; i < count; i += 7) scores[i] -= 0.25f;
}

enum { ANSWER = 48, CONTEXT = 640 };
static const char *const stops[] = { "\n\n", "nothing else says this" };

/* Ways of drawing an answer: what guesses must not see. */
static hd_generate_desc way(uint32_t number, hd_grammar *grammar) {
    hd_generate_desc d = { .max_tokens = ANSWER, .ignore_end = 1 };
    switch (number % 6) {
    case 0: break; /* the likeliest */
    case 1: d.sampling = (hd_sampling){ .seed = number, .temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f }; break;
    case 2: d.sampling = (hd_sampling){ .seed = number, .temperature = 0.7f }; break;
    case 3:
        d.sampling = (hd_sampling){ .repeat_penalty = 1.1f, .presence_penalty = 0.2f };
        d.on_scores = lower;
        break;
    case 4:
        d.likeliest = 3;
        d.on_token = said;
        d.stop_texts = stops;
        d.stop_count = 2;
        break;
    default: d.grammar = grammar;
    }
    return d;
}

static void answer(hd_session *session, const hd_generate_desc *way, const int32_t *prompt, size_t count, int32_t *out, hd_generated *result,
                   double *heard) {
    hd_generate_desc desc = *way;
    desc.tokens = prompt;
    desc.token_count = count;
    desc.user = heard;
    *heard = 0;
    memset(out, 0, ANSWER * sizeof *out);
    CHECK(hd_session_rewind(session, 0, 0));
    CHECK(hd_generate(session, &desc, out, result));
}

/* A prompt that repeats itself, as `number` says. */
static size_t prompt_of(hd_model *model, uint32_t number, int32_t *out, size_t room) {
    static const char *const words[] = { "the king ", "said unto ", "David, ", "and all ", "the people ", "went up ", "in the morning. ", "of the house ",
                                         "\"Arise!\" ", "1, 2, 3, " };
    char text[2048] = "";
    uint32_t seed = number * 2654435761u + 1;
    char line[128] = "";
    for (int i = 0; i < 7; i++) {
        seed = seed * 1664525u + 1013904223u;
        strcat(line, words[(seed >> 16) % 10]);
    }
    for (uint32_t i = 0; i < 2 + number % 3; i++) strcat(text, line);
    size_t count = room;
    CHECK(hd_model_tokenize(model, text, strlen(text), HD_TOKENIZE_ADD_SPECIAL, out, &count));
    return count;
}

static void answers_are_the_same(void **state) {
    (void)state;
    static const char form[] = "root ::= ([a-z, ]+ \".\" | [A-Z0-9;:' ] | \"\\n\")+";
    for (int d = 0; d < device_count(); d++) {
        hd_device *device = device_of(d);
        hd_model *model;
        hd_grammar *grammar;
        hd_session_stats stats;
        const bool cpu = hd_device_get_info(device)->kind == HD_DEVICE_CPU;
        CHECK(hd_model_open(context, HEDDLE_TESTS_DIR "/../models/demo.gguf", NULL, &model));
        CHECK(hd_grammar_create(model, HD_GRAMMAR_GBNF, form, strlen(form), &grammar));
        hd_session *plain = open_session(model, device, &(hd_session_desc){ .context = CONTEXT }),
                   *drafts = open_session(model, device, &(hd_session_desc){ .context = CONTEXT, .draft = HD_DRAFT_LOOKUP });
        for (uint32_t i = 0; i < (cpu ? 100 : 6); i += cpu ? 1 : 2) { /* every second way needs no plans of its own */
            int32_t prompt[CONTEXT], wanted[ANSWER], given[ANSWER];
            const size_t count = prompt_of(model, i, prompt, CONTEXT);
            hd_generate_desc w = way(i, grammar);
            hd_generated a, b;
            double heard[2];
            if (!cpu) w.max_tokens = ANSWER / 2;
            answer(plain, &w, prompt, count, wanted, &a, &heard[0]);
            answer(drafts, &w, prompt, count, given, &b, &heard[1]);
            assert_int_equal(b.stop, a.stop);
            assert_int_equal(b.token_count, a.token_count);
            assert_memory_equal(given, wanted, sizeof given);
            assert_memory_equal(&heard[0], &heard[1], sizeof heard[0]);
            assert_int_equal(hd_session_position(drafts, 0), hd_session_position(plain, 0));
        }
        CHECK(hd_session_get_stats(drafts, &stats));
        assert_true(stats.draft_steps > 0 && stats.accepted_tokens > 0 && stats.accepted_tokens <= stats.drafted_tokens);
        CHECK(hd_session_get_stats(plain, &stats));
        assert_int_equal(stats.draft_steps, 0);
        hd_session_destroy(plain);
        hd_session_destroy(drafts);
        hd_grammar_destroy(grammar);
        hd_model_close(model);
        hd_device_close(device);
    }
}

/* ---- at the edges ---- */

/* An adapter of small random numbers for a weight of the demo model. */
static void adapt(hd_model *model) {
    enum { RANK = 4, SIDE = 256 };
    static float a[RANK * SIDE], b[SIDE * RANK];
    const hd_adapter_pair pair = { "blk.1.attn_q.weight", RANK, SIDE, SIDE, a, b };
    hd_adapter *adapter;
    uint32_t seed = 1;
    for (uint32_t i = 0; i < RANK * SIDE; i++) {
        seed = seed * 1664525u + 1013904223u;
        a[i] = (float)(seed >> 8) / (float)(1u << 26) - 0.125f;
        b[i] = (float)(seed >> 12) / (float)(1u << 22) - 0.125f;
    }
    CHECK(hd_adapter_create(context, "qwen3", 8, &pair, 1, &adapter));
    CHECK(hd_model_adapt(model, (const hd_adapter *const *)&adapter, NULL, 1));
    hd_adapter_destroy(adapter);
}

/* A context that fills and is shifted, over the ends of pages; a second answer; a sequence that is saved and goes on elsewhere; all with
 * an adapter. */
static void sequences_are_the_same(void **state) {
    (void)state;
    enum { LONG = 700 };
    static const hd_math maths[] = { HD_MATH_DEFAULT, HD_MATH_EXACT };
    hd_model *model;
    hd_device *device = open_device("cpu");
    CHECK(hd_model_open(context, HEDDLE_TESTS_DIR "/../models/demo.gguf", NULL, &model));
    adapt(model);
    for (int m = 0; m < 2; m++) {
        int32_t *tokens[2];
        size_t counts[2];
        for (int drafts = 0; drafts < 2; drafts++) {
            const hd_session_desc desc = { .context = 300, .sequences = 2, .cache_tokens = 1024, .math = maths[m],
                                           .draft = drafts ? HD_DRAFT_LOOKUP : HD_DRAFT_NONE };
            hd_session *session = open_session(model, device, &desc);
            int32_t prompt[CONTEXT];
            const size_t count = prompt_of(model, 5, prompt, CONTEXT);
            hd_generate_desc wish = { .sequence = 1, .tokens = prompt, .token_count = count, .max_tokens = m ? 300 : LONG, .shift = 1,
                                      .keep = (uint32_t)count, .ignore_end = 1 };
            hd_generated result;
            tokens[drafts] = calloc(3 * LONG, sizeof(int32_t));
            CHECK(hd_generate(session, &wish, tokens[drafts], &result));
            counts[drafts] = result.token_count;
            CHECK(hd_session_save(session, 1, "test_draft.session"));
            CHECK(hd_session_load(session, 0, "test_draft.session"));
            wish = (hd_generate_desc){ .max_tokens = 40, .ignore_end = 1, .shift = 1, .sampling = { .seed = 3, .temperature = 0.5f } };
            CHECK(hd_generate(session, &wish, tokens[drafts] + counts[drafts], &result));
            counts[drafts] += result.token_count;
            hd_session_destroy(session);
        }
        assert_int_equal(counts[0], counts[1]);
        assert_memory_equal(tokens[0], tokens[1], counts[0] * sizeof(int32_t));
        free(tokens[0]);
        free(tokens[1]);
    }
    remove("test_draft.session");
    hd_model_close(model);
    hd_device_close(device);
}

/* What memory it takes is known before; wishes that there are not are refused. */
static void wishes_are_checked(void **state) {
    (void)state;
    hd_model *model;
    hd_device *device = open_device("cpu");
    hd_fit plain, drafts;
    CHECK(hd_model_open(context, HEDDLE_TESTS_DIR "/../models/demo.gguf", NULL, &model));
    CHECK(hd_model_fit(model, &(hd_session_desc){ .device = device }, &plain));
    CHECK(hd_model_fit(model, &(hd_session_desc){ .device = device, .draft = HD_DRAFT_LOOKUP }, &drafts));
    assert_true(drafts.cpu_scratch_bytes + drafts.device_scratch_bytes > plain.cpu_scratch_bytes + plain.device_scratch_bytes);
    assert_int_equal(hd_model_fit(model, &(hd_session_desc){ .device = device, .draft = (hd_draft)7 }, &drafts), HD_STATUS_INVALID_ARGUMENT);
    hd_model_close(model);
    hd_device_close(device);
}

/* ---- when it pays ---- */

static void guesses_are_what_came_before(void **state) {
    (void)state;
    static const int32_t text[] = { 9, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 9, 9, 2, 3, 4 };
    int32_t guesses[HDL_DRAFT_ROWS];
    hdl_drafter *d = hdl_drafter_create(&hdl_default_allocator, 64);
    assert_non_null(d);
    memcpy(d->text, text, sizeof text);
    d->count = sizeof text / sizeof *text;
    assert_int_equal(hdl_drafter_guess(d, 7, guesses), 0); /* no plain step was measured yet */
    hdl_drafter_ran(d, 1, 100);
    assert_int_equal(hdl_drafter_guess(d, 7, guesses), 7);
    assert_memory_equal(guesses, ((int32_t[]){ 5, 6, 7, 8, 1, 2, 9 }), 7 * sizeof *guesses);
    assert_int_equal(hdl_drafter_guess(d, 5, guesses), 3);
    assert_int_equal(hdl_drafter_guess(d, 0, guesses), 0);
    d->count = 11; /* 1, 2: as at the beginning */
    assert_int_equal(hdl_drafter_guess(d, 1, guesses), 1);
    assert_int_equal(guesses[0], 3);
    d->count = 9; /* 8 has never been there */
    assert_int_equal(hdl_drafter_guess(d, 7, guesses), 0);
    for (uint32_t i = 0; i < 6; i++) d->text[i] = i & 1; /* goes on as it is */
    d->count = 6;
    assert_int_equal(hdl_drafter_guess(d, 7, guesses), 7);
    assert_memory_equal(guesses, ((int32_t[]){ 0, 1, 0, 1, 0, 1, 0 }), 7 * sizeof *guesses);
    hdl_drafter_destroy(d);
}

/* Steps of 8 rows that take as long as 3 tokens, of which `gives` come: how many of 2,000 steps have guesses. */
static uint32_t steps_with_guesses(uint32_t gives, uint64_t ns) {
    hdl_drafter *d = hdl_drafter_create(&hdl_default_allocator, 64);
    uint32_t tried = 0;
    assert_non_null(d);
    for (uint32_t i = 0; i < 16; i++) d->text[i] = i & 1;
    d->count = 16;
    hdl_drafter_ran(d, 1, 100);
    for (uint32_t i = 0; i < 2000; i++) {
        int32_t guesses[HDL_DRAFT_ROWS];
        const uint32_t rows = 1 + hdl_drafter_guess(d, 7, guesses);
        hdl_drafter_ran(d, rows, rows == 1 ? 100 : ns);
        hdl_drafter_gave(d, rows == 1 ? 1 : gives < rows ? gives : rows);
        tried += rows > 1;
    }
    hdl_drafter_destroy(d);
    return tried;
}

static void guesses_rest_where_they_lose(void **state) {
    (void)state;
    assert_int_equal(steps_with_guesses(4, 300), 2000);
    assert_true(steps_with_guesses(1, 300) < 60);
    assert_true(steps_with_guesses(2, 150) == 2000);
    assert_true(steps_with_guesses(1, 101) > 1000); /* it costs next to nothing */
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(rows_are_the_same_alone), cmocka_unit_test(answers_are_the_same),
                                        cmocka_unit_test(sequences_are_the_same), cmocka_unit_test(wishes_are_checked),
                                        cmocka_unit_test(guesses_are_what_came_before), cmocka_unit_test(guesses_rest_where_they_lose) };
    names = (const char *const *)argv + 1;
    name_count = argc - 1;
    if (hd_context_create(NULL, &context)) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hd_context_destroy(context);
    return failed;
}
