/* test_embeddings.c: vectors of texts by tiny encoders, and by decoders that are asked for them, against Hugging Face transformers
 * (tools/fixtures/embeddings_fixture.py) on the CPU, Vulkan and OpenCL; that exact mode gives the same bits everywhere, whatever
 * other texts run beside; and that models which answer with vectors have no sessions. */
#include "llm/model_reference.h"
#include "validation.h"
#include <heddle_llm.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const char *const names[] = { "bert_f32", "nomic_bert_f32", "gemma_embedding_f32", "qwen3_embedding_f32", "qwen3_sees_all_f32" };
enum { NAMES = sizeof names / sizeof *names, MOST_TEXTS = 16, MOST_TOKENS = 128, POOLINGS = 3, SHORT = 16, ENCODERS = 3 };
static const hd_pooling poolings[NAMES] = { HD_POOLING_CLS, HD_POOLING_MEAN, HD_POOLING_MEAN, HD_POOLING_LAST, HD_POOLING_MEAN };
/* On the CPU all of it; on the others, which compile a kernel in its time, the encoders' own pooling of short texts in exact mode. */
static const char *const places[] = { "cpu", "vulkan", "opencl" };
enum { PLACES = sizeof places / sizeof *places };

static hd_context *context;

#define CHECK(call) check((call), #call, __LINE__)
static void check(hd_status status, const char *call, int line) {
    if (status) fail_msg("line %d: %s: %s", line, call, hd_context_error(context));
}
#define REFUSED(call, wanted, words) refused((call), HD_STATUS_##wanted, words, __LINE__)
static void refused(hd_status status, hd_status wanted, const char *words, int line) {
    const char *error = hd_context_error(context);
    if (status != wanted || !strstr(error, words)) fail_msg("line %d: status %d: %s", line, status, error);
}

static int open_context(void **state) {
    (void)state;
    return hd_context_create(NULL, &context) ? -1 : 0;
}
static int close_context(void **state) {
    (void)state;
    hd_context_destroy(context);
    return validation_messages() > 0;
}

/* ---- what transformers computed ---- */

typedef struct reference {
    uint8_t         *bytes;
    uint32_t         count, hidden;
    struct { const char *text; uint32_t bytes; } strings[MOST_TEXTS];
    hd_embedder_text texts[MOST_TEXTS];
    int32_t          tokens[MOST_TEXTS][MOST_TOKENS];
    float            vectors[POOLINGS][MOST_TEXTS][64];
    hd_model        *model;
} reference;

static uint32_t take(const uint8_t **at) {
    uint32_t number;
    memcpy(&number, *at, 4);
    *at += 4;
    return number;
}

static reference *open_reference(const char *name) {
    char path[512];
    reference *r = calloc(1, sizeof *r);
    snprintf(path, sizeof path, "%s/llm/models/%s.emb", HEDDLE_TESTS_DIR, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    r->bytes = calloc(1, 1 << 16);
    assert_true(fread(r->bytes, 1, 1 << 16, file) > 0);
    fclose(file);
    const uint8_t *at = r->bytes;
    r->count = take(&at);
    r->hidden = take(&at);
    assert_true(r->count <= MOST_TEXTS && r->hidden <= 64);
    for (uint32_t i = 0; i < r->count; i++) {
        r->strings[i].bytes = take(&at);
        r->strings[i].text = (const char *)at;
        at += r->strings[i].bytes;
        r->texts[i] = (hd_embedder_text){ r->tokens[i], take(&at) };
        assert_true(r->texts[i].count <= MOST_TOKENS);
        memcpy(r->tokens[i], at, r->texts[i].count * 4);
        at += r->texts[i].count * 4;
    }
    for (uint32_t p = 0; p < POOLINGS; p++)
        for (uint32_t i = 0; i < r->count; i++, at += r->hidden * 4) memcpy(r->vectors[p][i], at, r->hidden * 4);
    snprintf(path, sizeof path, "%s/llm/models/%s.gguf", HEDDLE_TESTS_DIR, name);
    CHECK(hd_model_open(context, path, &(hd_model_desc){ .check_weights = 1 }, &r->model));
    return r;
}
static void close_reference(reference *r) {
    hd_model_close(r->model);
    free(r->bytes);
    free(r);
}

/* ---- the tests ---- */

/* Vectors by one pooling, raw, one behind the other; zeros behind the last. */
static void compare(reference *r, uint32_t model, hd_device *device, hd_math math, hd_pooling pooling, bool only_short, float out[MOST_TEXTS * 64]) {
    const char *backend = hd_device_get_info(device)->backend;
    hd_embedder *embedder;
    CHECK(hd_embedder_create(r->model, &(hd_embedder_desc){ .device = device, .pooling = pooling, .raw = 1, .math = math }, &embedder));
    hd_embedder_text texts[MOST_TEXTS];
    uint32_t which[MOST_TEXTS], count = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        if (only_short && r->texts[i].count > SHORT) continue;
        which[count] = i;
        texts[count++] = r->texts[i];
    }
    memset(out, 0, MOST_TEXTS * 64 * sizeof *out);
    CHECK(hd_embedder_run(embedder, texts, count, out));
    hd_embedder_destroy(embedder);
    for (uint32_t i = 0; i < count; i++) {
        const float *got = out + i * r->hidden, *wanted = r->vectors[pooling - HD_POOLING_MEAN][which[i]];
        const double cosine = model_cosine(got, wanted, r->hidden);
        double off = 0, size = 0;
        for (uint32_t k = 0; k < r->hidden; k++) {
            off += ((double)got[k] - (double)wanted[k]) * ((double)got[k] - (double)wanted[k]);
            size += (double)wanted[k] * (double)wanted[k];
        }
        if (!(cosine > 0.9999) || !(sqrt(off / size) < 1e-3))
            fail_msg("%s on %s, pooling %d, text %u: cosine %.7f, %.2g off", names[model], backend, (int)pooling, which[i], cosine, sqrt(off / size));
    }
}

static void vectors_are_those_of_transformers(void **state) {
    (void)state;
    static float exact[NAMES][MOST_TEXTS * 64], got[MOST_TEXTS * 64];
    uint32_t devices = 0;
    for (uint32_t at = 0; at < PLACES; at++) {
        hd_device *device = NULL;
        if (hd_device_open(context, &(hd_device_desc){ .id = places[at] }, &device)) {
            (void)hd_context_error(context);
            continue;
        }
        for (uint32_t i = 0; i < (at == 0 ? NAMES : ENCODERS); i++) {
            reference *r = open_reference(names[i]);
            for (int p = HD_POOLING_MEAN; p <= HD_POOLING_LAST && at == 0; p++)
                for (int math = HD_MATH_FAST; math <= HD_MATH_EXACT; math++) compare(r, i, device, (hd_math)math, (hd_pooling)p, false, got);
            compare(r, i, device, HD_MATH_EXACT, poolings[i], true, got);
            if (at == 0) memcpy(exact[i], got, sizeof got);
            else if (memcmp(exact[i], got, sizeof got) != 0) fail_msg("%s: %s has other bits than the CPU in exact mode", names[i], places[at]);
            close_reference(r);
        }
        devices++;
        hd_device_close(device);
    }
    print_message("%u devices\n", devices);
    assert_true(devices > 0);
}

/* By the file's own pooling, of length 1; each text alone; and the texts as their makers' tokenizers cut them. */
static void texts_do_not_touch_each_other(void **state) {
    (void)state;
    hd_device *device = NULL;
    CHECK(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device));
    for (uint32_t n = 0; n < NAMES; n++) {
        reference *r = open_reference(names[n]);
        hd_model_info info;
        hd_embedder *embedder;
        float all[MOST_TEXTS * 64], alone[64];
        CHECK(hd_model_get_info(r->model, &info));
        assert_int_equal(info.pooling, poolings[n]);
        assert_int_equal(info.embeds_only, n != 3);
        CHECK(hd_embedder_create(r->model, &(hd_embedder_desc){ .device = device, .math = HD_MATH_EXACT }, &embedder));
        CHECK(hd_embedder_run(embedder, r->texts, r->count, all));
        for (uint32_t i = 0; i < r->count; i++) {
            int32_t tokens[MOST_TOKENS];
            size_t count = MOST_TOKENS;
            double length = 0;
            CHECK(hd_model_tokenize(r->model, r->strings[i].text, r->strings[i].bytes, HD_TOKENIZE_ADD_SPECIAL, tokens, &count));
            assert_int_equal(count, r->texts[i].count);
            assert_memory_equal(tokens, r->tokens[i], count * sizeof *tokens);
            CHECK(hd_embedder_run(embedder, &r->texts[i], 1, alone));
            if (memcmp(alone, all + i * r->hidden, r->hidden * sizeof *alone) != 0) fail_msg("%s: text %u has other bits alone", names[n], i);
            for (uint32_t k = 0; k < r->hidden; k++) length += (double)alone[k] * (double)alone[k];
            assert_true(fabs(length - 1) < 1e-6);
            assert_true(model_cosine(alone, r->vectors[poolings[n] - HD_POOLING_MEAN][i], r->hidden) > 0.9999);
        }
        hd_embedder_destroy(embedder);
        close_reference(r);
    }
    hd_device_close(device);
}

/* More texts, and more of a length, than run at once, and more sizes than plans are kept. */
static void many_texts(void **state) {
    (void)state;
    enum { MANY = 300 };
    reference *r = open_reference("bert_f32");
    hd_device *device = NULL;
    hd_embedder *embedder;
    hd_embedder_text *texts = calloc(MANY, sizeof *texts);
    float *all = calloc(MANY, 32 * sizeof *all), alone[32];
    CHECK(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device));
    CHECK(hd_embedder_create(r->model, &(hd_embedder_desc){ .device = device, .math = HD_MATH_EXACT }, &embedder));
    for (uint32_t i = 0; i < MANY; i++) texts[i] = (hd_embedder_text){ r->tokens[8], 1 + i * 7 % r->texts[8].count };
    for (uint32_t count = 1; count <= MANY; count = count * 3 + 1) {
        CHECK(hd_embedder_run(embedder, texts, count, all));
        for (uint32_t i = 0; i < count; i += 11) {
            CHECK(hd_embedder_run(embedder, &texts[i], 1, alone));
            assert_memory_equal(alone, all + 32 * i, sizeof alone);
        }
    }
    hd_model_close(r->model); /* the embedder keeps what it needs */
    r->model = NULL;
    CHECK(hd_embedder_run(embedder, texts, 1, all));
    hd_embedder_destroy(embedder);
    hd_device_close(device);
    free(all);
    free(texts);
    close_reference(r);
}

static void misuse_is_told(void **state) {
    (void)state;
    reference *r = open_reference("bert_f32");
    hd_device *device = NULL;
    hd_embedder *embedder = NULL;
    hd_session *session;
    hd_fit fit;
    float vector[64];
    int32_t tokens[MOST_TOKENS] = { 0 }, wrong = 1000;
    model_reference decoder;
    hd_model *model;
    CHECK(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device));
    REFUSED(hd_session_create(r->model, &(hd_session_desc){ .device = device }, &session), UNSUPPORTED, "this bert answers with a vector, not with text: use heddle embed");
    REFUSED(hd_model_fit(r->model, &(hd_session_desc){ .device = device }, &fit), UNSUPPORTED, "heddle embed");
    hd_program *program = hd_program_create(context);
    const hd_model_graph_desc graph = { .sequences = 1, .length = 4, .tokens = hd_input(program, "tokens", HD_I32, HD_SHAPE(4)), .positions = 1 };
    hd_value scores;
    REFUSED(hd_model_build(r->model, program, &graph, NULL, &scores), UNSUPPORTED, "heddle embed");
    hd_program_destroy(program);
    assert_int_equal(hd_embedder_create(NULL, NULL, &embedder), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_embedder_create(r->model, NULL, NULL), HD_STATUS_NULL_POINTER);
    REFUSED(hd_embedder_create(r->model, &(hd_embedder_desc){ .device = device, .pooling = (hd_pooling)4 }, &embedder), INVALID_ARGUMENT, "4 is no pooling");
    assert_int_equal(model_reference_read("llama_q4_0", &decoder), 0);
    CHECK(hd_model_open(context, decoder.path, NULL, &model));
    REFUSED(hd_embedder_create(model, &(hd_embedder_desc){ .device = device }, &embedder), UNSUPPORTED, "llama.pooling_type is 0");
    hd_model_close(model);
    free(decoder.bytes);
    CHECK(hd_embedder_create(r->model, &(hd_embedder_desc){ .device = device }, &embedder));
    assert_int_equal(hd_embedder_run(embedder, NULL, 1, vector), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_embedder_run(embedder, r->texts, 1, NULL), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_embedder_run(embedder, &(hd_embedder_text){ NULL, 3 }, 1, vector), HD_STATUS_NULL_POINTER);
    REFUSED(hd_embedder_run(embedder, r->texts, 0, vector), ZERO_SIZE, "no texts");
    REFUSED(hd_embedder_run(embedder, &(hd_embedder_text){ tokens, 0 }, 1, vector), ZERO_SIZE, "text 0 has no tokens");
    REFUSED(hd_embedder_run(embedder, &(hd_embedder_text){ tokens, 121 }, 1, vector), LIMIT, "text 0 has 121 tokens, and the model was made for 120");
    REFUSED(hd_embedder_run(embedder, &(hd_embedder_text){ &wrong, 1 }, 1, vector), INVALID_ARGUMENT, "token 1000 in text 0");
    CHECK(hd_embedder_run(embedder, &(hd_embedder_text){ tokens, 120 }, 1, vector)); /* to the last place */
    hd_device_close(device);
    assert_int_equal(hd_embedder_run(embedder, r->texts, 1, vector), HD_STATUS_STALE_HANDLE);
    hd_embedder_destroy(embedder);
    assert_int_equal(hd_embedder_run(embedder, r->texts, 1, vector), HD_STATUS_STALE_HANDLE);
    hd_embedder_destroy(NULL);
    (void)hd_context_error(context);
    close_reference(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_are_those_of_transformers),
        cmocka_unit_test(texts_do_not_touch_each_other),
        cmocka_unit_test(many_texts),
        cmocka_unit_test(misuse_is_told),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
