/* test_arch.c: what the families of models compute. A model of phi3 is one of qwen2 without biases whose weights stand
 * together: made from it here, it gives the same bits. Each bias, factor and key that changes the answers gives the
 * logits of llama.cpp, which tools/fixtures/arch_fixture.py stored ("test_arch --write FOLDER" writes the models for it).
 * What cannot be run is refused by its name (and in test_models_hostile.c). */
#include "fixture.h"
#include "llm/model.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { LAYERS = 2, MOST_FUSED = 2 * LAYERS, TOKENS = 9 };

static hd_context *context;

static void *must(void *pointer) {
    assert_non_null(pointer);
    return pointer;
}
#define CHECK(call) check((call), #call)
static void check(hd_status status, const char *call) {
    if (status) fail_msg("%s: %s", call, hd_context_error(context));
}

static int open_context(void **state) {
    (void)state;
    return hd_context_create(&(hd_context_desc){ .backend = "cpu" }, &context) ? -1 : 0;
}
static int close_context(void **state) {
    (void)state;
    hd_context_destroy(context);
    return 0;
}

/* qwen2 with biases of zero. */
static fixture plain(void) {
    edit edits[3 * LAYERS];
    static char names[3 * LAYERS][32];
    for (unsigned i = 0; i < 3 * LAYERS; i++) {
        snprintf(names[i], sizeof names[i], "blk.%u.attn_%c.bias", i / 3, "qkv"[i % 3]);
        edits[i] = (edit){ .kind = EDIT_TENSOR, .name = names[i], .type = HDL_GGUF_TYPE_F32,
                           .shape = HD_SHAPE(i % 3 == 0 ? 3 * 24 : 24) };
    }
    return fixture_edited("qwen2_f32", edits, 3 * LAYERS);
}

static bool take(void *user, const void *bytes, uint64_t count) {
    fixture *f = user;
    f->bytes = must(realloc(f->bytes, f->count + count));
    memcpy(f->bytes + f->count, bytes, count);
    f->count += count;
    return true;
}

/* The tensors `from` of a layer, one behind the other, as one. */
static void *put_fused(hdl_gguf_writer *w, hdl_gguf *g, const char *name, const char *const *from, uint32_t count,
                       unsigned layer) {
    char full[64];
    uint8_t *rows = NULL;
    uint64_t bytes = 0;
    hd_shape shape = { .rank = 2 };
    for (uint32_t i = 0; i < count; i++) {
        hdl_gguf_tensor tensor;
        snprintf(full, sizeof full, "blk.%u.%s.weight", layer, from[i]);
        assert_true(hdl_gguf_find_tensor(g, full, &tensor));
        rows = must(realloc(rows, bytes + tensor.bytes));
        assert_int_equal(hdl_gguf_read(g, &tensor, 0, tensor.bytes, rows + bytes, NULL), HD_OK);
        bytes += tensor.bytes;
        shape.dims[0] += tensor.shape.dims[0];
        shape.dims[1] = tensor.shape.dims[1];
    }
    snprintf(full, sizeof full, "blk.%u.%s.weight", layer, name);
    hdl_gguf_put_tensor(w, hdl_text(full), HDL_GGUF_TYPE_F32, shape, rows);
    return rows;
}

static bool is_replaced(hdl_span name) {
    static const char *const stems[] = { ".attn_q.", ".attn_k.", ".attn_v.", ".ffn_gate.", ".ffn_up." };
    char text[64] = "";
    memcpy(text, name.bytes, name.count < sizeof text - 1 ? name.count : sizeof text - 1);
    for (size_t i = 0; i < sizeof stems / sizeof *stems; i++)
        if (strstr(text, stems[i])) return true;
    return false;
}

/* The model of family `from` as one of `to`; of phi3 with fused weights. */
static fixture as_family(const fixture *whole, const char *from, const char *to) {
    const bool fuse = strcmp(to, "phi3") == 0;
    const size_t prefix = strlen(from);
    memory_files memory = { .files = { { "m.gguf", whole->bytes, whole->count } }, .file_count = 1 };
    const hdl_files files = memory_table(&memory);
    fixture out = { 0 };
    hdl_gguf *g;
    void *kept[MOST_FUSED] = { NULL };
    assert_int_equal(hdl_gguf_open("m.gguf", &(hdl_gguf_desc){ .files = &files }, &g, NULL), HD_OK);
    hdl_gguf_writer *w = must(hdl_gguf_writer_create(NULL, 0));
    hdl_gguf_put_text(w, "general.architecture", hdl_text(to));
    static char names[64][64];
    for (uint32_t i = 0; i < hdl_gguf_get_info(g).key_count; i++) {
        hdl_gguf_value value = hdl_gguf_key(g, i);
        if (hdl_same(value.name, hdl_text("general.architecture"))) continue;
        if (value.name.count > prefix && memcmp(value.name.bytes, from, prefix) == 0) {
            snprintf(names[i % 64], sizeof *names, "%s%.*s", to, (int)(value.name.count - prefix),
                     (const char *)value.name.bytes + prefix);
            value.name = hdl_text(names[i % 64]);
        }
        hdl_gguf_put_value(w, &value);
    }
    for (uint32_t i = 0; i < hdl_gguf_get_info(g).tensor_count; i++) {
        const hdl_gguf_tensor tensor = hdl_gguf_tensor_at(g, i);
        if (!fuse || !is_replaced(tensor.name))
            hdl_gguf_put_tensor(w, tensor.name, tensor.type, tensor.shape, whole->bytes + tensor.offset);
    }
    for (unsigned layer = 0; fuse && layer < LAYERS; layer++) {
        kept[2 * layer] = put_fused(w, g, "attn_qkv", (const char *const[]){ "attn_q", "attn_k", "attn_v" }, 3, layer);
        kept[2 * layer + 1] = put_fused(w, g, "ffn_up", (const char *const[]){ "ffn_gate", "ffn_up" }, 2, layer);
    }
    assert_int_equal(hdl_gguf_write(w, take, &out, NULL), HD_OK);
    hdl_gguf_writer_destroy(w);
    hdl_gguf_close(g);
    for (int i = 0; i < MOST_FUSED; i++) free(kept[i]);
    return out;
}

/* One model at a time: its file stays until the next one. */
static hd_status open_fixture(const fixture *f, hd_model **out) {
    static memory_files memory;
    memory = (memory_files){ .files = { { "m.gguf", f->bytes, f->count } }, .file_count = 1 };
    const hdl_files files = memory_table(&memory);
    return hdl_model_open(context, "m.gguf", NULL, &files, out);
}

/* Exact logits after tokens, the last of which comes alone. */
static float *logits_of(const fixture *f, uint32_t room, const int32_t *tokens, size_t count, uint32_t *out_vocabulary) {
    hd_model *model;
    hd_session *session;
    hd_model_info info;
    const float *logits;
    CHECK(open_fixture(f, &model));
    CHECK(hd_model_get_info(model, &info));
    const hd_session_desc desc = { .math = HD_MATH_EXACT, .context = room, .chunk = 8 };
    CHECK(hd_session_create(model, &desc, &session));
    CHECK(hd_session_feed(session, 0, tokens, count - 1));
    CHECK(hd_session_feed(session, 0, &tokens[count - 1], 1));
    CHECK(hd_session_logits(session, 0, &logits));
    float *copy = must(malloc(info.vocabulary * sizeof *copy));
    memcpy(copy, logits, info.vocabulary * sizeof *copy);
    *out_vocabulary = info.vocabulary;
    hd_session_destroy(session);
    hd_model_close(model);
    return copy;
}

static const int32_t some_tokens[TOKENS] = { 5, 17, 300, 42, 8, 111, 256, 3, 77 };

static void fused_weights_change_no_bit(void **state) {
    (void)state;
    uint32_t vocabulary = 0, same = 0;
    fixture apart = plain(), together = as_family(&apart, "qwen2", "phi3");
    float *wanted = logits_of(&apart, 64, some_tokens, TOKENS, &vocabulary),
          *got = logits_of(&together, 64, some_tokens, TOKENS, &same);
    assert_int_equal(vocabulary, same);
    assert_memory_equal(got, wanted, vocabulary * sizeof *got);
    free(wanted);
    free(got);
    fixture_free(&apart);
    fixture_free(&together);
}

/* ---- as llama.cpp computes it ---- */

enum { EDITS = 6, ROOM = 256 };
typedef struct change {
    const char *name, *base; /* base: a fixture, or "phi3" */
    bool        is_none;     /* it changes nothing */
    edit        edits[EDITS];
} change;

#define F32(key, value) { .kind = EDIT_F32, .name = (key), .number = (value) }
#define U32(key, value) { .kind = EDIT_U32, .name = (key), .number = (value) }
#define BOOL(key, value) { .kind = EDIT_BOOL, .name = (key), .number = (value) }
#define TEXT(key, value) { .kind = EDIT_TEXT, .name = (key), .text = (value) }
/* n numbers that go up and down: 1, 2, ... 7 times `value` */
#define VECTOR(tensor, value, n)                                                                                       \
    { .kind = EDIT_TENSOR, .name = (tensor), .type = HDL_GGUF_TYPE_F32, .number = (value), .uneven = true,             \
      .shape = { 1, { n } } }
/* the same for each of `experts` */
#define BIASES(tensor, experts, n)                                                                                     \
    { .kind = EDIT_TENSOR, .name = (tensor), .type = HDL_GGUF_TYPE_F32, .number = 1, .uneven = true,                   \
      .shape = { 2, { experts, n } } }
#define YARN(arch, factor)                                                                                             \
    TEXT(arch ".rope.scaling.type", "yarn"), F32(arch ".rope.scaling.factor", factor),                                 \
    U32(arch ".rope.scaling.original_context_length", 16)
#define FACTORS(n) VECTOR("rope_factors_short.weight", 0.5, n), VECTOR("rope_factors_long.weight", 2, n)

static const change changes[] = {
    { "llama", "llama_f32", true, { { 0 } } },
    { "llama_q_bias", "llama_f32", false, { VECTOR("blk.0.attn_q.bias", 0.2, 160) } },
    { "llama_k_bias", "llama_f32", false, { VECTOR("blk.0.attn_k.bias", 0.2, 80) } },
    { "llama_v_bias", "llama_f32", false, { VECTOR("blk.1.attn_v.bias", 0.2, 80) } },
    { "llama_out_bias", "llama_f32", false, { VECTOR("blk.0.attn_output.bias", 0.2, 32) } },
    { "llama_gate_bias", "llama_f32", false, { VECTOR("blk.0.ffn_gate.bias", 0.2, 64) } },
    { "llama_up_bias", "llama_f32", false, { VECTOR("blk.1.ffn_up.bias", 0.2, 64) } },
    { "llama_down_bias", "llama_f32", false, { VECTOR("blk.0.ffn_down.bias", 0.2, 32) } },
    { "llama_scale", "llama_f32", false, { VECTOR("blk.0.attn_q.scale", 1.5, 1), VECTOR("blk.1.ffn_up.scale", 0.5, 1) } },
    { "llama_freqs", "llama_f32", false, { VECTOR("rope_freqs.weight", 1, 20) } },
    { "llama_attn_factor", "llama_f32", false, { F32("llama.rope.scaling.attn_factor", 1.4) } },
    { "llama_linear", "llama_f32", false, { F32("llama.rope.scaling.factor", 0.5), TEXT("llama.rope.scaling.type", "linear") } },
    { "llama_old_linear", "llama_f32", false, { F32("llama.rope.scale_linear", 4) } },
    { "llama_none", "llama_f32", true, { F32("llama.rope.scaling.factor", 4), TEXT("llama.rope.scaling.type", "none") } },
    { "llama_freqs_linear", "llama_f32", false, { VECTOR("rope_freqs.weight", 1, 20), F32("llama.rope.scaling.factor", 2) } },
    { "llama_yarn", "llama_f32", false, { YARN("llama", 4) } },
    { "llama_yarn_below_1", "llama_f32", false, { YARN("llama", 0.5) } },
    { "llama_yarn_of_1", "llama_f32", true, { TEXT("llama.rope.scaling.type", "yarn") } },
    { "llama_yarn_factor", "llama_f32", false, { YARN("llama", 4), F32("llama.rope.scaling.attn_factor", 0.8) } },
    { "llama_yarn_freqs", "llama_f32", false, { YARN("llama", 4), VECTOR("rope_freqs.weight", 1, 20) } },
    { "llama_longrope", "llama_f32", false, { TEXT("llama.rope.scaling.type", "longrope"), FACTORS(20),
      U32("llama.rope.scaling.original_context_length", 64), F32("llama.rope.scaling.factor", 2) } },
    { "qwen2", "qwen2_f32", true, { { 0 } } },
    { "qwen2_output_bias", "qwen2_f32", false, { VECTOR("output.bias", 0.5, 320) } },
    { "qwen2_yarn_factor", "qwen2_f32", false, { YARN("qwen2", 4), F32("qwen2.rope.scaling.attn_factor", 1.2) } },
    { "qwen3", "qwen3_f32", true, { { 0 } } },
    { "qwen3_bias", "qwen3_f32", false, { VECTOR("blk.0.attn_q.bias", 0.2, 96), VECTOR("blk.0.attn_k.bias", 0.2, 48),
      VECTOR("blk.1.attn_v.bias", 0.2, 48) } },
    { "qwen3_yarn_below_1", "qwen3_f32", false, { YARN("qwen3", 0.5) } },
    { "qwen3_scale", "qwen3_f32", false, { VECTOR("blk.0.ffn_up.scale", 0.7, 1), VECTOR("blk.1.attn_output.scale", 1.3, 1) } },
    { "bitnet", "bitnet_f32", true, { { 0 } } },
    { "bitnet_yarn_factor", "bitnet_f32", false, { YARN("bitnet", 4), F32("bitnet.rope.scaling.attn_factor", 1.2) } },
    { "bitnet_scale", "bitnet_f32", false, { VECTOR("blk.0.attn_q.scale", 1.5, 1), VECTOR("blk.1.ffn_down.scale", 0.5, 1) } },
    { "phi3", "phi3", true, { { 0 } } },
    { "phi3_bias", "phi3", false, { VECTOR("blk.0.attn_qkv.bias", 0.2, 120) } },
    { "phi3_near", "phi3", false, { FACTORS(12), U32("phi3.rope.scaling.original_context_length", 256),
      F32("phi3.rope.scaling.attn_factor", 1.19) } },
    { "phi3_far", "phi3", false, { FACTORS(12), U32("phi3.rope.scaling.original_context_length", 64),
      F32("phi3.rope.scaling.attn_factor", 1.19), TEXT("phi3.rope.scaling.type", "longrope") } },
    { "phi3_partial", "phi3", false, { U32("phi3.rope.dimension_count", 12), FACTORS(6) } },
    { "phi3_window", "phi3", true, { U32("phi3.attention.sliding_window", ROOM) } },
    { "gpt_oss", "gpt_oss_f32", true, { { 0 } } },
    { "gpt_oss_sinks", "gpt_oss_f32", false, { VECTOR("blk.0.attn_sinks.weight", 2, 4), VECTOR("blk.1.attn_sinks.weight", 2, 4) } },
    { "gpt_oss_window", "gpt_oss_f32", false, { U32("gpt-oss.attention.sliding_window", 3) } },
    { "gpt_oss_expert_biases", "gpt_oss_f32", false, { BIASES("blk.0.ffn_up_exps.bias", 8, 32) } },
    { "gpt_oss_truncated", "gpt_oss_between_f32", true, { BOOL("gpt-oss.rope.scaling.yarn_truncate", 1) } },
};
enum { CHANGES = sizeof changes / sizeof *changes };

static fixture changed(const change *c) {
    if (strcmp(c->base, "phi3") != 0) return fixture_edited(c->base, c->edits, EDITS);
    fixture apart = plain(), together = as_family(&apart, "qwen2", "phi3");
    fixture_free(&apart);
    return fixture_changed(together, c->edits, EDITS);
}

/* What llama.cpp gave: of each change char name[32], u32 tokens T and vocabulary V, i32 tokens[T], f32 logits[V], which
 * are those after the last token. */
static fixture references(void) { return fixture_read(HEDDLE_TESTS_DIR "/llm/fixtures/arch.ref"); }

/* How far `a` is from `b`, as a part of its length. */
static double distance(const float *a, const float *b, uint32_t count) {
    double apart = 0, length = 0;
    for (uint32_t i = 0; i < count; i++) {
        apart += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        length += (double)b[i] * (double)b[i];
    }
    return sqrt(apart / length);
}

static void changes_give_the_logits_of_llama_cpp(void **state) {
    (void)state;
    fixture all = references();
    const uint8_t *at = all.bytes;
    const float *plainly = NULL; /* what the unchanged model of the family gives: the first one of each is it */
    const char *family = "";
    double most = 0;
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < CHANGES; i++) {
        const change *c = &changes[i];
        uint32_t counts[2], vocabulary;
        assert_string_equal((const char *)at, c->name);
        memcpy(counts, at + 32, sizeof counts);
        const int32_t *tokens = (const int32_t *)(const void *)(at + 40);
        const float *wanted = (const float *)(const void *)(tokens + counts[0]);
        at = (const uint8_t *)(wanted + counts[1]);
        if (strcmp(family, c->base) != 0) plainly = wanted;
        family = c->base;
        const bool is_none = distance(plainly, wanted, counts[1]) < 0.02;
        if (is_none != c->is_none) fail_msg("%s changes %s", c->name, is_none ? "nothing" : "the logits");
        fixture f = changed(c);
        float *got = logits_of(&f, ROOM, tokens, counts[0], &vocabulary);
        assert_int_equal(vocabulary, counts[1]);
        const double apart = distance(got, wanted, vocabulary);
        most = apart > most ? apart : most;
        if (!(apart < 0.002)) { /* the cache is f16 here */
            print_message("%s: %.4f apart from llama.cpp's logits\n", c->name, apart);
            wrong++;
        }
        free(got);
        fixture_free(&f);
    }
    assert_true(at == all.bytes + all.count);
    print_message("%u changes, at most %.5f apart\n", CHANGES, most);
    assert_int_equal(wrong, 0);
    fixture_free(&all);
}

/* A model that learned its positions has no more of them. */
static void positions_bound_the_context(void **state) {
    (void)state;
    fixture f = fixture_read("gpt2_f32");
    hd_model *model;
    hd_session *session;
    CHECK(open_fixture(&f, &model));
    assert_int_equal(hd_session_create(model, &(hd_session_desc){ .context = 257 }, &session), HD_STATUS_UNSUPPORTED);
    const char *text = hd_context_error(context);
    if (!strstr(text, "positions of 256 tokens")) fail_msg("%s", text);
    CHECK(hd_session_create(model, &(hd_session_desc){ .context = 256 }, &session));
    hd_session_destroy(session);
    hd_model_close(model);
    fixture_free(&f);
}

/* A window as long as what is seen changes nothing, and a shorter one does. */
static void windows_are_used(void **state) {
    (void)state;
    float logits[3][320];
    static const uint32_t windows[] = { 0, 40, 12 };
    for (uint32_t i = 0; i < 3; i++) {
        const edit window = U32("llama.attention.sliding_window", windows[i]);
        fixture f = fixture_edited("llama_f32", &window, 1);
        hd_model *model;
        hd_session *session;
        const float *found;
        CHECK(open_fixture(&f, &model));
        CHECK(hd_session_create(model, &(hd_session_desc){ .context = 100, .math = HD_MATH_EXACT }, &session));
        for (int32_t k = 0; k < 40; k++) CHECK(hd_session_feed(session, 0, &some_tokens[k % TOKENS], 1));
        CHECK(hd_session_logits(session, 0, &found));
        memcpy(logits[i], found, sizeof logits[i]);
        hd_session_destroy(session);
        hd_model_close(model);
        fixture_free(&f);
    }
    assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
    assert_memory_not_equal(logits[0], logits[2], sizeof logits[0]);
}

/* The file says what a gate is put through. */
static void activations_are_those_of_the_file(void **state) {
    (void)state;
    const edit relu = TEXT("bitnet.hidden_activation", "relu2"), own = TEXT("bitnet.hidden_activation", "silu");
    uint32_t vocabulary;
    fixture silu = fixture_edited("bitnet_f32", NULL, 0), said = fixture_edited("bitnet_f32", &own, 1),
            squared = fixture_edited("bitnet_f32", &relu, 1), family = as_family(&silu, "bitnet", "bitnet-25");
    float *a = logits_of(&silu, 64, some_tokens, TOKENS, &vocabulary),
          *b = logits_of(&said, 64, some_tokens, TOKENS, &vocabulary),
          *c = logits_of(&squared, 64, some_tokens, TOKENS, &vocabulary),
          *d = logits_of(&family, 64, some_tokens, TOKENS, &vocabulary);
    assert_memory_equal(a, b, vocabulary * sizeof *a);
    assert_memory_equal(c, d, vocabulary * sizeof *c); /* as the family whose own it is */
    assert_true(distance(a, c, vocabulary) > 0.1);
    free(a);
    free(b);
    free(c);
    free(d);
    fixture_free(&family);
    fixture_free(&silu);
    fixture_free(&said);
    fixture_free(&squared);
}

static bool count_text(void *user, const char *text, size_t bytes) {
    (void)text;
    *(size_t *)user += bytes;
    return true;
}

/* How many bytes are shown of an answer that is four times the same token: a bias makes it the likeliest one for ever. */
static size_t shown_of(const char *base, int64_t vocabulary, int32_t token) {
    const edit bias = { .kind = EDIT_TENSOR, .name = "output.bias", .type = HDL_GGUF_TYPE_F32, .shape = { 1, { vocabulary } } };
    const edit likeliest = { .kind = EDIT_SET_F32, .name = "output.bias", .count = (uint64_t)token, .number = 1e6 };
    fixture f = fixture_changed(fixture_edited(base, &bias, 1), &likeliest, 1);
    hd_model *model;
    hd_session *session;
    hd_generated made;
    int32_t answer[4];
    size_t shown = 0;
    CHECK(open_fixture(&f, &model));
    CHECK(hd_session_create(model, &(hd_session_desc){ .context = 64 }, &session));
    const hd_generate_desc desc = { .tokens = some_tokens, .token_count = TOKENS, .max_tokens = 4, .ignore_end = 1,
                                    .on_text = count_text, .user = &shown };
    CHECK(hd_generate(session, &desc, answer, &made));
    assert_int_equal(made.token_count, 4);
    for (int i = 0; i < 4; i++) assert_int_equal(answer[i], token);
    hd_session_destroy(session);
    hd_model_close(model);
    fixture_free(&f);
    return shown;
}

/* A token that is no text for a reader is answered and not shown. */
static void control_tokens_are_not_shown(void **state) {
    (void)state;
    assert_int_equal(shown_of("llama_f32", 320, 0), 0); /* <|endoftext|> */
    assert_int_equal(shown_of("llama_f32", 320, 33), 4); /* a letter */
}

/* What gpt-oss answers is messages, whose marks are shown: some tokens end the answer, <|end|> a message of it. Told to the
 * model again, the last message counts. */
static void an_answer_may_be_messages(void **state) {
    (void)state;
    static const struct { const char *text; bool ends; } tokens[] = {
        { "<|return|>", true }, { "<|call|>", true }, { "<|endoftext|>", true }, { "<|end|>", false }, { "<|start|>", false },
        { "<|channel|>", false }, { "<|message|>", false }, { "<|constrain|>", false },
    };
    static const struct { const char *said, *told; } answers[] = {
        { "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.", "Yes." },
        { "<|channel|>final<|message|>Yes.<|end|>", "Yes." }, { "Yes.", "Yes." }, { "<|channel|>final<|message|>", "" }, { "", "" },
    };
    const edit source = TEXT("tokenizer.chat_template",
                             "{% for m in messages %}{% if '<|channel|>' in m.content %}{{ raise_exception('a mark') }}{% endif %}"
                             "<{{ m.role }}>{{ m.content }}{% endfor %}");
    fixture f = fixture_edited("gpt_oss_f32", &source, 1);
    hd_model *model;
    CHECK(open_fixture(&f, &model));
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        const hd_message messages[] = { { .role = "user", .content = "Hi" },
                                        { .role = "assistant", .content = answers[i].said },
                                        { .role = "user", .content = "So<|end|>" } };
        char text[128], wanted[128];
        snprintf(wanted, sizeof wanted, "<user>Hi<assistant>%s<user>So<|end|>", answers[i].told);
        CHECK(hd_model_render_chat(model, NULL, messages, 3, text, sizeof text, NULL));
        assert_string_equal(text, wanted);
    }
    int32_t ids[sizeof tokens / sizeof *tokens];
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        size_t count = 1;
        CHECK(hd_model_tokenize(model, tokens[i].text, strlen(tokens[i].text), HD_TOKENIZE_PARSE_SPECIAL, &ids[i], &count));
        if (hd_model_token_ends(model, ids[i]) != tokens[i].ends) fail_msg("%s", tokens[i].text);
    }
    hd_model_close(model);
    fixture_free(&f);
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
        assert_int_equal(shown_of("gpt_oss_f32", 308, ids[i]), tokens[i].ends ? 0 : 4 * strlen(tokens[i].text));
}

static void what_cannot_be_run_is_refused_by_name(void **state) {
    (void)state;
    hd_model *model;
    fixture unknown = fixture_edited("qwen2_f32",
                                     &(edit){ .kind = EDIT_TEXT, .name = "general.architecture", .text = "qwen9" }, 1);
    assert_int_equal(open_fixture(&unknown, &model), HD_STATUS_UNSUPPORTED);
    const char *text = hd_context_error(context);
    if (!strstr(text, "'qwen9'; heddle runs llama, ") || !strstr(text, ", phi3")) fail_msg("%s", text);
    fixture_free(&unknown);
}

static int write_changes(const char *folder) {
    for (uint32_t i = 0; i < CHANGES; i++) {
        char path[512];
        fixture f = changed(&changes[i]);
        snprintf(path, sizeof path, "%s/%s.gguf", folder, changes[i].name);
        FILE *file = must(fopen(path, "wb"));
        fwrite(f.bytes, 1, f.count, file);
        fclose(file);
        fixture_free(&f);
        printf("%s\n", changes[i].name);
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--write") == 0) return write_changes(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fused_weights_change_no_bit), cmocka_unit_test(changes_give_the_logits_of_llama_cpp),
        cmocka_unit_test(positions_bound_the_context), cmocka_unit_test(windows_are_used), cmocka_unit_test(activations_are_those_of_the_file),
        cmocka_unit_test(control_tokens_are_not_shown), cmocka_unit_test(an_answer_may_be_messages),
        cmocka_unit_test(what_cannot_be_run_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
