/* test_perplexity.c: what exact mode loses by rounding activations, in models drawn by chance: the perplexity of
 * quantised weights beside that of the same weights in f32. "test_perplexity --all" measures all of them, in fast mode
 * and over a second text too, and prints the table of docs/models.md; it fails where a model is beyond 0.2 percent, as
 * that page says that some are.
 *
 * How they are drawn was chosen by what trained models look like, before anything was measured. The vocabulary is the
 * demo model's. Matrices are normal, with a deviation of 0.02 as most families begin with, or of 1 / sqrt(columns), by
 * which what a layer computes has the size of what goes in; embeddings have 0.02, norms are 1 +- 0.1, biases 0 +- 0.02.
 * The last norm is as large as it takes for scores to have a deviation of 2 to 4, as trained models' have (3.7 in the
 * demo model): without that all tokens were nearly as likely. Each has an output of its own: by a drawn one that is its
 * embedding too, the likeliest token is the one that was just read.
 *
 * The text is what the model says itself, which it foretells as well as a trained one does its language; the second one
 * the demo model says, and no drawn one foretells it. They are said, and weights in f32 are multiplied, in exact mode:
 * so what is judged are the same bits on every processor. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "hostile.h"
#include "llm/arch/arch.h"
#include <heddle_llm.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

enum { CONTEXT = 256, CHUNKS = 32, TOKENS = CHUNKS * CONTEXT, EACH = CONTEXT / 2 - 1, FORETOLD = CHUNKS * EACH };
enum { USED = 2, HEAD = 64 }; /* experts that a token uses; elements of a head */
static const double most_percent = 0.2;

typedef enum deviation { SMALL, BY_WIDTH } deviation;
typedef struct drawn_model {
    const char *arch, *type;
    uint32_t    hidden, layers, heads, kv_heads, forward, experts; /* forward: of each expert, where there are any */
    deviation   deviation;
    float       spread; /* the deviation of scores */
    uint32_t    window;
    bool        divides; /* scores by "logit_scale", and what else Granite has; Command R multiplies by it */
    float       logit_scale;
    bool        quick;   /* measured without --all too */
} drawn_model;

static const drawn_model models[] = {
    { .arch = "demo", .type = "q4_0" }, /* is trained, and measured beside them */
    { "llama", "q4_0", 256, 4, 4, 2, 768, 0, SMALL, 2, 0, false, 0, true },
    { "qwen3", "q4_k_m", 256, 6, 4, 2, 768, 0, BY_WIDTH, 3, 0, false, 0, false },
    { "gpt2", "q8_0", 256, 4, 4, 4, 1024, 0, SMALL, 2.5f, 0, false, 0, true },
    { "qwen3moe", "q6_k", 256, 4, 4, 2, 256, 8, BY_WIDTH, 3.5f, 0, false, 0, false },
    { "gemma", "q8_0", 512, 3, 8, 1, 1024, 0, BY_WIDTH, 4, 0, false, 0, false },
    { "gemma2", "q4_k_s", 256, 6, 4, 2, 1024, 0, SMALL, 3, 64, false, 0, true },
    { "gemma3", "q5_0", 512, 2, 8, 1, 1024, 0, SMALL, 2, 64, false, 0, false },
    { "qwen2", "q5_1", 512, 3, 8, 2, 1536, 0, BY_WIDTH, 2.5f, 0, false, 0, false },
    { "phi3", "q4_k_m", 512, 2, 8, 8, 1536, 0, SMALL, 3.5f, 0, false, 0, false },
    { "granite", "q6_k", 512, 4, 8, 4, 1024, 0, BY_WIDTH, 3, 0, true, 8, false },
    { "gptneox", "q4_1", 256, 6, 4, 4, 1024, 0, BY_WIDTH, 4, 0, false, 0, true },
    { "olmo2", "q5_k_m", 512, 3, 8, 8, 1536, 0, SMALL, 2, 0, false, 0, false },
    { "starcoder2", "q4_0", 512, 3, 8, 2, 2048, 0, BY_WIDTH, 3, 0, false, 0, false },
    { "stablelm", "q3_k_m", 512, 2, 8, 8, 1536, 0, SMALL, 2.5f, 0, false, 0, false },
    { "falcon", "q5_0", 512, 4, 8, 1, 2048, 0, BY_WIDTH, 3.5f, 0, false, 0, false },
    { "command-r", "q8_0", 512, 2, 8, 4, 1536, 0, SMALL, 4, 0, false, 0.0625f, false },
    { "smollm3", "q2_k", 256, 5, 4, 2, 768, 0, BY_WIDTH, 2, 0, false, 0, false },
    { "glm4", "q5_k_s", 512, 2, 8, 2, 1536, 0, SMALL, 3, 0, false, 0, false },
    { "granitemoe", "q4_0", 256, 4, 4, 2, 512, 8, BY_WIDTH, 2.5f, 0, true, 6, false },
    { "llama", "q4_k_m", 256, 4, 4, 2, 512, 8, SMALL, 4, 0, false, 0, false },
};

static hd_context *context;
static hd_device *device;
static hd_model *demo;
static uint32_t vocabulary;
static const char demo_path[] = HEDDLE_TESTS_DIR "/../models/demo.gguf";
static char folder[] = "/tmp/heddle-perplexity-XXXXXX";
static bool all;

#define CHECK(call) check((call), #call, __LINE__)
static void check(hd_status status, const char *call, int line) {
    if (status) fail_msg("line %d: %s: %s", line, call, hd_context_error(context));
}

/* ---- a model ---- */

static int64_t length_of(const drawn_model *m, hdl_length length) {
    const int64_t queries = (int64_t)m->heads * HEAD, keys = (int64_t)m->kv_heads * HEAD;
    switch (length) {
    case HDL_LEN_HIDDEN: return m->hidden;
    case HDL_LEN_QUERIES: return queries;
    case HDL_LEN_KEYS: return keys;
    case HDL_LEN_QKV: return queries + 2 * keys;
    case HDL_LEN_HEAD: return HEAD;
    case HDL_LEN_FORWARD: case HDL_LEN_EXPERT: return m->forward;
    case HDL_LEN_GATE_UP: return 2 * (int64_t)m->forward;
    case HDL_LEN_EXPERTS: return m->experts;
    case HDL_LEN_CONTEXT: return CONTEXT;
    case HDL_LEN_VOCABULARY: return vocabulary;
    default: return 0; /* of what these models do not have */
    }
}

typedef struct drawn_tensor {
    char     name[64];
    uint64_t random;
    double   mean, deviation;
} drawn_tensor;

/* Normal numbers: sums of twelve even ones, so that no processor's logarithm decides about them. */
static bool fill(void *user, uint64_t from, uint64_t bytes, void *out) {
    drawn_tensor *t = user;
    (void)from; /* pieces are asked for in order */
    for (uint64_t at = 0; at < bytes; at += sizeof(float)) {
        int64_t sum = -6 * 65535;
        for (int i = 0; i < 3; i++)
            for (uint64_t bits = hostile_random(&t->random), k = 0; k < 4; k++, bits >>= 16)
                sum += (int64_t)(bits & 65535);
        const float value = (float)(t->mean + t->deviation * (double)sum / 65536);
        memcpy((uint8_t *)out + at, &value, sizeof value);
    }
    return true;
}

static drawn_tensor draw_tensor(const drawn_model *m, const hdl_tensor_row *row) {
    drawn_tensor t = { .mean = 0, .deviation = 0.02 };
    const double scale = !m->logit_scale ? 1 : m->divides ? 1 / (double)m->logit_scale : (double)m->logit_scale;
    if (row->columns != HDL_LEN_NONE) {
        if (row->where == HDL_LAYER && m->deviation == BY_WIDTH)
            t.deviation = 1 / sqrt((double)length_of(m, row->columns));
    } else if (!strstr(row->name, ".bias")) {
        const double last = (double)m->spread / (0.02 * sqrt(m->hidden) * scale);
        t.mean = strcmp(row->name, "output_norm.weight") ? 1 : last;
        t.deviation = 0.1 * t.mean;
    }
    return t;
}

static void put_tensor(hd_model_writer *w, const drawn_model *m, const hdl_tensor_row *row, uint32_t layer,
                       drawn_tensor *out) {
    const uint64_t seed = (uint64_t)(m - models) << 32;
    char name[HDL_WEIGHT_NAME];
    *out = draw_tensor(m, row);
    out->random = seed;
    hdl_weight_name(layer, row, name);
    snprintf(out->name, sizeof out->name, "%s", name);
    for (const char *c = out->name; *c; c++) out->random = (out->random + (uint8_t)*c) * 31;
    const int64_t rows = length_of(m, row->rows), columns = length_of(m, row->columns), each = length_of(m, row->each);
    hd_shape shape = row->columns ? HD_SHAPE(rows, columns) : HD_SHAPE(rows);
    if (row->each) shape = HD_SHAPE(each, rows, columns);
    hd_model_writer_tensor(w, out->name, HD_F32, shape, fill, out);
}

static void put_u32(hd_model_writer *w, const drawn_model *m, const char *rest, uint32_t value) {
    char key[96];
    snprintf(key, sizeof key, "%s.%s", m->arch, rest);
    hd_model_writer_u32(w, key, value);
}
static void put_f32(hd_model_writer *w, const drawn_model *m, const char *rest, float value) {
    char key[96];
    snprintf(key, sizeof key, "%s.%s", m->arch, rest);
    hd_model_writer_f32(w, key, value);
}

static void put_keys(hd_model_writer *w, const drawn_model *m, const hdl_arch *arch) {
    hd_model_writer_text(w, "general.architecture", m->arch, strlen(m->arch));
    put_u32(w, m, "block_count", m->layers);
    put_u32(w, m, "embedding_length", m->hidden);
    put_u32(w, m, "context_length", CONTEXT);
    put_u32(w, m, "feed_forward_length", m->forward);
    put_u32(w, m, "attention.head_count", m->heads);
    put_u32(w, m, "attention.head_count_kv", m->kv_heads);
    put_u32(w, m, "attention.key_length", HEAD);
    put_u32(w, m, "attention.value_length", HEAD);
    put_f32(w, m, arch->layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", 1e-6f);
    if (m->window) put_u32(w, m, "attention.sliding_window", m->window);
    if (m->logit_scale) put_f32(w, m, "logit_scale", m->logit_scale);
    if (m->divides) {
        put_f32(w, m, "embedding_scale", 12);
        put_f32(w, m, "residual_scale", 0.22f);
        put_f32(w, m, "attention.scale", 1.0f / HEAD);
    }
    if (m->experts) {
        put_u32(w, m, "expert_count", m->experts);
        put_u32(w, m, "expert_used_count", USED);
        put_u32(w, m, "expert_feed_forward_length", m->forward);
    }
    hd_model_writer_tokenizer(w, demo);
}

static void write_model(const drawn_model *m, const char *path) {
    enum { MOST_TENSORS = 128 };
    static drawn_tensor tensors[MOST_TENSORS];
    uint32_t count = 0;
    const char *name;
    const hdl_arch *arch = hdl_arch_find(hdl_text(m->arch), &name);
    hd_model_writer *w;
    assert_non_null(arch);
    CHECK(hd_model_writer_create(context, &w));
    put_keys(w, m, arch);
    for (const hdl_tensor_row *row = m->experts ? arch->with_experts : arch->tensors; row->name; row++) {
        const bool empty = !length_of(m, row->rows) || (row->columns && !length_of(m, row->columns));
        if (empty || (row->optional && strcmp(row->name, "output.weight"))) continue;
        for (uint32_t layer = 0; layer < (row->where == HDL_LAYER ? m->layers : 1); layer++) {
            assert_true(count < MOST_TENSORS);
            put_tensor(w, m, row, layer, &tensors[count++]);
        }
    }
    CHECK(hd_model_writer_write(w, path));
    hd_model_writer_destroy(w);
}

/* ---- texts, and how well they are foretold ---- */

static hd_session *open_session(hd_model *model, hd_math math) {
    hd_session *session;
    const hd_session_desc desc = { .device = device, .math = math, .context = CONTEXT, .sequences = CHUNKS };
    CHECK(hd_session_create(model, &desc, &session));
    return session;
}

/* Token number `at` of every chunk. */
static void step(hd_session *session, const int32_t *tokens, uint32_t at) {
    hd_step steps[CHUNKS];
    for (uint32_t i = 0; i < CHUNKS; i++) steps[i] = (hd_step){ .sequence = i, .token = tokens[i * CONTEXT + at] };
    CHECK(hd_session_step(session, steps, CHUNKS));
}

/* The logarithm of the sum of exp of the scores. */
static double log_sum(const float *scores) {
    double largest = (double)scores[0], sum = 0;
    for (uint32_t i = 1; i < vocabulary; i++)
        if ((double)scores[i] > largest) largest = (double)scores[i];
    for (uint32_t i = 0; i < vocabulary; i++) sum += exp((double)scores[i] - largest);
    return largest + log(sum);
}

static int32_t draw_token(const float *scores, uint64_t *random) {
    const double whole = log_sum(scores);
    double left = (double)(hostile_random(random) >> 11) * 0x1p-53;
    for (uint32_t i = 0; i < vocabulary; i++)
        if ((left -= exp((double)scores[i] - whole)) < 0) return (int32_t)i;
    return (int32_t)vocabulary - 1;
}

/* What a model makes of the tokens in the second half of each chunk, which `heddle perplexity` judges it by. */
typedef struct foretold {
    double losses[FORETOLD]; /* -log of the probability of the token that came */
    float *scores;           /* [FORETOLD][vocabulary] */
} foretold;

/* The scores of token number `at` of a chunk, which came. */
static void note(foretold *f, uint32_t chunk, uint32_t at, const float *scores, int32_t token) {
    const size_t n = (size_t)chunk * EACH + at - (CONTEXT - EACH);
    f->losses[n] = log_sum(scores) - (double)scores[token];
    memcpy(f->scores + n * vocabulary, scores, vocabulary * sizeof *scores);
}

/* What a model says behind tokens by chance, and how well it foretold that. */
static void say(hd_model *model, int32_t *out_tokens, foretold *out) {
    hd_session *session = open_session(model, HD_MATH_EXACT);
    uint64_t random = 1;
    for (uint32_t i = 0; i < CHUNKS; i++) out_tokens[i * CONTEXT] = (int32_t)(hostile_random(&random) % vocabulary);
    for (uint32_t at = 1; at < CONTEXT; at++) {
        step(session, out_tokens, at - 1);
        for (uint32_t i = 0; i < CHUNKS; i++) {
            int32_t *token = &out_tokens[i * CONTEXT + at];
            const float *scores;
            CHECK(hd_session_logits(session, i, &scores));
            *token = draw_token(scores, &random);
            if (at >= CONTEXT - EACH) note(out, i, at, scores, *token);
        }
    }
    hd_session_destroy(session);
}

static void foretell(hd_model *model, hd_math math, const int32_t *tokens, foretold *out) {
    hd_session *session = open_session(model, math);
    for (uint32_t i = 0; i < CHUNKS; i++) CHECK(hd_session_feed(session, i, tokens + i * CONTEXT, CONTEXT - EACH - 1));
    for (uint32_t at = CONTEXT - EACH; at < CONTEXT; at++) {
        step(session, tokens, at - 1);
        for (uint32_t i = 0; i < CHUNKS; i++) {
            const float *scores;
            CHECK(hd_session_logits(session, i, &scores));
            note(out, i, at, scores, tokens[i * CONTEXT + at]);
        }
    }
    hd_session_destroy(session);
}

static double mean_of(const double *losses) {
    double sum = 0;
    for (uint32_t i = 0; i < FORETOLD; i++) sum += losses[i];
    return sum / FORETOLD;
}

/* The deviation of scores within a row. */
static double spread_of(const foretold *f) {
    double spread = 0;
    for (size_t n = 0; n < FORETOLD; n++) {
        double sum = 0, square = 0;
        for (uint32_t k = 0; k < vocabulary; k++) {
            const double score = (double)f->scores[n * vocabulary + k];
            sum += score, square += score * score;
        }
        spread += sqrt(square / vocabulary - sum / vocabulary * (sum / vocabulary)) / FORETOLD;
    }
    return spread;
}

/* By how many percent a perplexity is greater, and what of that the choice of tokens may be; by how many it would be
 * over an endless text that `of` says, which is the divergence of the probabilities. */
typedef struct difference { double percent, error, endless; } difference;
static difference differ(const foretold *f, const foretold *of) {
    const double mean = mean_of(f->losses) - mean_of(of->losses);
    double square = 0, divergence = 0;
    for (size_t n = 0; n < FORETOLD; n++) {
        const float *scores = f->scores + n * vocabulary, *wanted = of->scores + n * vocabulary;
        const double whole = log_sum(scores), wanted_whole = log_sum(wanted);
        square += pow(f->losses[n] - of->losses[n] - mean, 2);
        for (uint32_t k = 0; k < vocabulary; k++) {
            const double odds = (double)wanted[k] - wanted_whole;
            divergence += exp(odds) * (odds - ((double)scores[k] - whole)) / FORETOLD;
        }
    }
    return (difference){ 100 * (exp(mean) - 1), 100 * sqrt(square) / FORETOLD, 100 * (exp(divergence) - 1) };
}

/* ---- the models ---- */

static foretold base, rounded;

typedef struct files { char drawn[64], quantised[64], floats[64]; } files;
static files make(const drawn_model *m) {
    files f;
    snprintf(f.drawn, sizeof f.drawn, "%s/drawn.gguf", folder);
    snprintf(f.quantised, sizeof f.quantised, "%s/quantised.gguf", folder);
    snprintf(f.floats, sizeof f.floats, "%s/floats.gguf", folder);
    if (m->hidden) write_model(m, f.drawn);
    const hd_quantize_desc quantised = { .type = m->type }, floats = { .type = "f32" };
    CHECK(hd_model_quantize(context, m->hidden ? f.drawn : demo_path, f.quantised, &quantised));
    CHECK(hd_model_quantize(context, f.quantised, f.floats, &floats));
    return f;
}

/* Is the perplexity near that of `base`? So must be, of the model's own text, what it would be without an end. */
static bool judge(hd_model *quantised, const int32_t *tokens, bool own) {
    foretell(quantised, HD_MATH_EXACT, tokens, &rounded);
    const difference exact = differ(&rounded, &base);
    if (own) print_message(" %.1f | %.2f |", spread_of(&base), exp(mean_of(base.losses)));
    print_message(" %+.3f +- %.3f |", exact.percent, exact.error);
    if (own) print_message(" %.3f |", exact.endless);
    if (all) {
        foretell(quantised, HD_MATH_FAST, tokens, &rounded);
        print_message(" %+.3f |", differ(&rounded, &base).percent);
    }
    return fabs(exact.percent) <= most_percent && (!own || exact.endless <= most_percent);
}

static bool is_near(const drawn_model *m) {
    static int32_t tokens[TOKENS];
    hd_model *quantised, *floats;
    const files f = make(m);
    CHECK(hd_model_open(context, f.quantised, NULL, &quantised));
    CHECK(hd_model_open(context, f.floats, NULL, &floats));
    print_message("| %s%s | %s |", m->arch, m->experts ? ", experts" : "", m->type);
    if (m->hidden) print_message(" %u of %u | %s |", m->layers, m->hidden, m->deviation == SMALL ? "0.02" : "by width");
    else print_message(" | trained |");
    say(floats, tokens, &base);
    bool near = judge(quantised, tokens, true);
    if (all) {
        say(demo, tokens, &base);
        foretell(floats, HD_MATH_EXACT, tokens, &base);
        near = judge(quantised, tokens, false) && near;
    }
    print_message("\n");
    hd_model_close(quantised);
    hd_model_close(floats);
    remove(f.drawn);
    remove(f.quantised);
    remove(f.floats);
    return near;
}

static void exact_is_near_f32(void **state) {
    unsigned measured = 0, beyond = 0;
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        if (!all && !models[i].quick) continue;
        measured++;
        beyond += !is_near(&models[i]);
    }
    print_message("%u of %u models are beyond %g percent\n", beyond, measured, most_percent);
    assert_int_equal(beyond, 0);
}

static int begin(void **state) {
    hd_model_info info;
    (void)state;
    if (!mkdtemp(folder) || hd_context_create(NULL, &context)) return -1;
    if (hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device)) return -1;
    if (hd_model_open(context, demo_path, NULL, &demo) || hd_model_get_info(demo, &info)) return -1;
    vocabulary = info.vocabulary;
    base.scores = malloc((size_t)FORETOLD * vocabulary * sizeof(float));
    rounded.scores = malloc((size_t)FORETOLD * vocabulary * sizeof(float));
    if (!base.scores || !rounded.scores) return -1;
    return 0;
}
static int end(void **state) {
    (void)state;
    free(base.scores);
    free(rounded.scores);
    hd_model_close(demo);
    hd_device_close(device);
    hd_context_destroy(context);
    return rmdir(folder);
}

int main(int count, char **words) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(exact_is_near_f32) };
    all = count > 1 && !strcmp(words[1], "--all");
    return cmocka_run_group_tests(tests, begin, end);
}
