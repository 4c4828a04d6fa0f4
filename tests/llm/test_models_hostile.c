/* test_models_hostile.c: hostile models, from hd_model_open to the first token: figures, weights and vocabularies that are
 * wrong one at a time, mutations from fixed seeds, the demo model cut short, and files that shrink. A refusal names the
 * field, within a second and the file's size + 64 MiB; what is accepted runs. */
#define _POSIX_C_SOURCE 200809L
#include "fixture.h"
#include "llm/model.h"
#include "spent.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MUTATIONS = 10000, CUT_STEP = 997 };

static meter counted;
static hd_context *context, *contexts[2]; /* not strict, strict */
static hd_device *device, *devices[2];

static char logged[512]; /* the last line of the model's */
static void keep_log(void *user, hd_log_level level, const char *part, const char *line) {
    (void)user;
    if (level <= HD_LOG_INFO && strcmp(part, "model") == 0) snprintf(logged, sizeof logged, "%s", line);
}

static int open_contexts(void **state) {
    (void)state;
    for (int strict = 0; strict < 2; strict++) {
        const hd_context_desc desc = { .allocator = meter_allocator(&counted), .backend = "cpu", .cpu_threads = 1, .cache_dir = "", .strict = strict ? 1 : -1, .log = keep_log, .log_level = HD_LOG_INFO };
        if (hd_context_create(&desc, &contexts[strict]) || hd_device_open(contexts[strict], &(hd_device_desc){ .id = "cpu" }, &devices[strict])) return -1;
    }
    context = contexts[0];
    device = devices[0];
    return 0;
}
static int close_contexts(void **state) {
    (void)state;
    for (int strict = 0; strict < 2; strict++) hd_context_destroy(contexts[strict]);
    return counted.live_bytes ? -1 : 0;
}

/* ---- one life ---- */

typedef struct outcome {
    hd_status open, create, feed;
    char      text[512];    /* of the first failure */
    double    open_seconds, run_seconds;
    uint64_t  open_peak;    /* bytes beyond what was there before */
    bool      finite;       /* all scores are numbers */
} outcome;

static hd_status keep_text(outcome *o, hd_status status) {
    const char *text = hd_context_error(context);
    if (status && !o->text[0]) snprintf(o->text, sizeof o->text, "%s", text);
    return status;
}

/* The vector of two tokens, by a model that answers with such. */
static void run_embedder(hd_model *model, uint32_t hidden, outcome *o) {
    static const int32_t tokens[2] = { 0, 1 };
    hd_embedder *embedder = NULL;
    float *vector = calloc(hidden, sizeof *vector);
    assert_non_null(vector);
    o->create = keep_text(o, hd_embedder_create(model, &(hd_embedder_desc){ .device = device, .pooling = HD_POOLING_MEAN }, &embedder));
    assert_int_equal(!embedder, o->create != HD_OK);
    if (!o->create) o->feed = hd_embedder_run(embedder, &(hd_embedder_text){ tokens, 2 }, 1, vector);
    if (o->feed && strstr(hd_context_error(context), "not a number")) o->feed = HD_OK; /* as broken weights make it */
    else (void)keep_text(o, o->feed);
    hd_embedder_destroy(embedder);
    free(vector);
}

static void run(hd_model *model, outcome *o) {
    hd_session *session = NULL;
    const float *logits;
    hd_model_info info;
    int32_t token = 0;
    assert_int_equal(hd_model_get_info(model, &info), HD_OK);
    if (info.embeds_only) {
        run_embedder(model, info.hidden, o);
        return;
    }
    o->create = keep_text(o, hd_session_create(model, &(hd_session_desc){ .device = device, .context = 64, .chunk = 8 }, &session));
    if (o->create) {
        assert_null(session);
        return;
    }
    o->feed = keep_text(o, hd_session_feed(session, 0, &token, 1));
    if (!o->feed) {
        bool numbers = true;
        assert_int_equal(hd_session_logits(session, 0, &logits), HD_OK);
        o->finite = true;
        for (uint32_t i = 0; i < info.vocabulary; i++) {
            o->finite = o->finite && isfinite(logits[i]);
            numbers = numbers && !isnan(logits[i]);
        }
        assert_int_equal(hd_session_best(session, 0, &token), numbers ? HD_OK : HD_STATUS_INVALID_ARGUMENT);
        assert_in_range(token, 0, info.vocabulary - 1);
        (void)hd_context_error(context);
    }
    hd_session_destroy(session);
}

/* Opens, and where that does runs one token. The bytes are memory of exactly their number. */
static outcome live(const fixture *f, bool strict) {
    outcome o = { 0 };
    context = contexts[strict];
    device = devices[strict];
    hd_model *model = NULL;
    uint8_t *bytes = malloc(f->count ? f->count : 1);
    assert_non_null(bytes);
    if (f->count) memcpy(bytes, f->bytes, f->count);
    memory_files memory = { .files = { { "m.gguf", bytes, f->count } }, .file_count = 1 };
    const hdl_files files = memory_table(&memory);
    const uint64_t before = counted.live_bytes;
    double begin = spent_seconds();
    counted.peak_bytes = before;
    (void)hd_context_error(context);
    o.open = keep_text(&o, hdl_model_open(context, "m.gguf", &(hd_model_desc){ .check_weights = 1 }, &files, &model));
    o.open_seconds = spent_seconds() - begin;
    o.open_peak = counted.peak_bytes - before;
    assert_int_equal(!model, o.open != HD_OK);
    if (o.open) assert_int_equal(counted.live_bytes, before);
    begin = spent_seconds();
    if (model) run(model, &o);
    o.run_seconds = spent_seconds() - begin;
    hd_model_close(model);
    context = contexts[0];
    device = devices[0];
    assert_int_equal(memory.open_files + memory.maps, 0);
    free(bytes);
    return o;
}

static void judge(const char *name, const outcome *o, uint64_t bytes) {
    if (o->open && !o->text[0]) fail_msg("%s: refused without a word", name);
    for (const char *at = o->text; *at; at++)
        if (*at < ' ' || *at > '~') fail_msg("%s: the error is not one printing line: %s", name, o->text);
    if (o->open_seconds > 1) fail_msg("%s: opening took %.2f s", name, o->open_seconds);
    if (o->run_seconds > 5) fail_msg("%s: running took %.2f s", name, o->run_seconds);
    if (o->open_peak > bytes + (64 << 20)) fail_msg("%s: opening took %.1f MB for %.1f MB", name, (double)o->open_peak * 1e-6, (double)bytes * 1e-6);
}

/* ---- variants ---- */

enum { EDITS = 12 };
typedef struct variant {
    const char *name, *fixture;
    edit        edits[EDITS];
    hd_status   status;   /* of opening; HD_OK: it runs */
    const char *expected; /* in the error */
} variant;

#define U32(key, value) { .kind = EDIT_U32, .name = (key), .number = (value) }
#define F32(key, value) { .kind = EDIT_F32, .name = (key), .number = (value) }
#define TEXTS(key, count_, value) { .kind = EDIT_TEXTS, .name = (key), .count = (count_), .text = (value) }
#define BOOL(key, value) { .kind = EDIT_BOOL, .name = (key), .number = (value) }
#define TEXT(key, value) { .kind = EDIT_TEXT, .name = (key), .text = (value) }
#define DROP(key) { .kind = EDIT_DROP_KEY, .name = (key) }
#define U32S(key, count_, value, uneven_) { .kind = EDIT_U32S, .name = (key), .count = (count_), .number = (value), .uneven = (uneven_) }
#define NO_TENSOR(tensor) { .kind = EDIT_DROP_TENSOR, .name = (tensor) }
#define TENSOR(tensor, type_, number_, ...) { .kind = EDIT_TENSOR, .name = (tensor), .type = HDL_GGUF_TYPE_##type_, .number = (number_), .shape = { __VA_ARGS__ } }
#define LLAMA "llama_q8_0"
#define LATENT "glm4_lite_f32"
#define OSS "gpt_oss_mxfp4"
#define BERT "bert_f32"

static const variant variants[] = {
    /* figures */
    { "no architecture", LLAMA, { DROP("general.architecture") }, HD_STATUS_NAME_NOT_FOUND, "general.architecture" },
    { "architecture unknown", LLAMA, { TEXT("general.architecture", "mamba\n\x1b[2J") }, HD_STATUS_UNSUPPORTED, "general.architecture is 'mamba" },
    { "architecture no text", LLAMA, { U32("general.architecture", 1) }, HD_STATUS_TYPE, "general.architecture" },
    { "no block_count", LLAMA, { DROP("llama.block_count") }, HD_STATUS_NAME_NOT_FOUND, "llama.block_count" },
    { "block_count 0", LLAMA, { U32("llama.block_count", 0) }, HD_STATUS_LIMIT, "llama.block_count" },
    { "block_count 3", LLAMA, { U32("llama.block_count", 3) }, HD_STATUS_NAME_NOT_FOUND, "blk.2.attn_norm.weight" },
    { "block_count 1025", LLAMA, { U32("llama.block_count", 1025) }, HD_STATUS_LIMIT, "llama.block_count" },
    { "block_count 2^32-1", LLAMA, { U32("llama.block_count", 4294967295.0) }, HD_STATUS_LIMIT, "llama.block_count" },
    { "block_count negative", LLAMA, { { .kind = EDIT_I64, .name = "llama.block_count", .number = -1 } }, HD_STATUS_LIMIT, "llama.block_count" },
    { "block_count f32", LLAMA, { F32("llama.block_count", 2) }, HD_STATUS_TYPE, "llama.block_count" },
    { "embedding_length 0", LLAMA, { U32("llama.embedding_length", 0) }, HD_STATUS_LIMIT, "llama.embedding_length" },
    { "embedding_length huge", LLAMA, { U32("llama.embedding_length", 1 << 30) }, HD_STATUS_LIMIT, "llama.embedding_length" },
    { "embedding_length other", LLAMA, { U32("llama.embedding_length", 64) }, HD_STATUS_SHAPE, "attn_norm.weight" },
    { "context 0", LLAMA, { U32("llama.context_length", 0) }, HD_STATUS_LIMIT, "llama.context_length" },
    { "context 2^31", LLAMA, { U32("llama.context_length", 2147483648.0) }, HD_STATUS_LIMIT, "llama.context_length" },
    { "context 2^32-1", LLAMA, { U32("llama.context_length", 4294967295.0) }, HD_STATUS_LIMIT, "llama.context_length" },
    { "no feed_forward", LLAMA, { DROP("llama.feed_forward_length") }, HD_STATUS_NAME_NOT_FOUND, "llama.feed_forward_length" },
    { "feed_forward 0", LLAMA, { U32("llama.feed_forward_length", 0) }, HD_STATUS_LIMIT, "llama.feed_forward_length" },
    { "feed_forward other", LLAMA, { U32("llama.feed_forward_length", 96) }, HD_STATUS_SHAPE, "ffn_gate.weight" },
    { "feed_forward uneven", LLAMA, { U32S("llama.feed_forward_length", 2, 64, true) }, HD_STATUS_UNSUPPORTED, "llama.feed_forward_length" },
    { "feed_forward for 3 layers", LLAMA, { U32S("llama.feed_forward_length", 3, 64, false) }, HD_STATUS_SHAPE, "llama.feed_forward_length" },
    { "feed_forward for no layer", LLAMA, { U32S("llama.feed_forward_length", 0, 64, false) }, HD_STATUS_SHAPE, "llama.feed_forward_length" },
    { "feed_forward floats", LLAMA, { { .kind = EDIT_F32S, .name = "llama.feed_forward_length", .count = 2, .number = 64 } }, HD_STATUS_TYPE, "llama.feed_forward_length" },
    { "heads 0", LLAMA, { U32("llama.attention.head_count", 0) }, HD_STATUS_LIMIT, "llama.attention.head_count" },
    { "heads 2^31", LLAMA, { U32("llama.attention.head_count", 2147483648.0) }, HD_STATUS_LIMIT, "llama.attention.head_count" },
    { "heads missing", LLAMA, { DROP("llama.attention.head_count") }, HD_STATUS_NAME_NOT_FOUND, "llama.attention.head_count" },
    { "heads for 1 layer", LLAMA, { U32S("llama.attention.head_count", 1, 4, false) }, HD_STATUS_SHAPE, "llama.attention.head_count" },
    { "kv heads 0", LLAMA, { U32("llama.attention.head_count_kv", 0) }, HD_STATUS_LIMIT, "llama.attention.head_count_kv" },
    { "kv heads 3 of 4", LLAMA, { U32("llama.attention.head_count_kv", 3) }, HD_STATUS_PARSE, "head_count_kv" },
    { "kv heads 8 of 4", LLAMA, { U32("llama.attention.head_count_kv", 8) }, HD_STATUS_PARSE, "head_count_kv" },
    { "kv heads missing", LLAMA, { DROP("llama.attention.head_count_kv") }, HD_STATUS_SHAPE, "attn_k.weight" },
    { "kv heads uneven", LLAMA, { U32S("llama.attention.head_count_kv", 2, 1, true) }, HD_STATUS_UNSUPPORTED, "llama.attention.head_count_kv" },
    { "key_length odd", LLAMA, { U32("llama.attention.key_length", 41) , U32("llama.attention.value_length", 41) }, HD_STATUS_PARSE, "41 elements" },
    { "key_length 0", LLAMA, { U32("llama.attention.key_length", 0) }, HD_STATUS_LIMIT, "llama.attention.key_length" },
    { "key_length huge", LLAMA, { U32("llama.attention.key_length", 1 << 20) }, HD_STATUS_LIMIT, "llama.attention.key_length" },
    { "value_length other", LLAMA, { U32("llama.attention.value_length", 20) }, HD_STATUS_UNSUPPORTED, "llama.attention.value_length" },
    { "no key_length", LLAMA, { DROP("llama.attention.key_length"), DROP("llama.attention.value_length") }, HD_STATUS_LIMIT, "llama.rope.dimension_count" },
    { "rope dims 42 of 40", LLAMA, { U32("llama.rope.dimension_count", 42) }, HD_STATUS_LIMIT, "llama.rope.dimension_count" },
    { "rope dims odd", LLAMA, { U32("llama.rope.dimension_count", 39) }, HD_STATUS_PARSE, "llama.rope.dimension_count" },
    { "rope dims 0", LLAMA, { U32("llama.rope.dimension_count", 0) }, HD_STATUS_LIMIT, "llama.rope.dimension_count" },
    { "theta 0", LLAMA, { F32("llama.rope.freq_base", 0) }, HD_STATUS_LIMIT, "llama.rope.freq_base" },
    { "theta NaN", LLAMA, { F32("llama.rope.freq_base", NAN) }, HD_STATUS_LIMIT, "llama.rope.freq_base" },
    { "theta infinite", LLAMA, { F32("llama.rope.freq_base", INFINITY) }, HD_STATUS_LIMIT, "llama.rope.freq_base" },
    { "theta negative", LLAMA, { F32("llama.rope.freq_base", -10000) }, HD_STATUS_LIMIT, "llama.rope.freq_base" },
    { "theta u32", LLAMA, { U32("llama.rope.freq_base", 10000) }, HD_STATUS_TYPE, "llama.rope.freq_base" },
    { "factor infinite", LLAMA, { F32("llama.rope.scaling.factor", INFINITY) }, HD_STATUS_LIMIT, "llama.rope.scaling.factor" },
    { "factor NaN", LLAMA, { F32("llama.rope.scaling.factor", NAN) }, HD_STATUS_LIMIT, "llama.rope.scaling.factor" },
    { "factor negative", LLAMA, { F32("llama.rope.scaling.factor", -2) }, HD_STATUS_LIMIT, "llama.rope.scaling.factor" },
    { "factor 0 is none", LLAMA, { F32("llama.rope.scaling.factor", 0) }, HD_OK, "" },
    { "scale_linear 0", LLAMA, { F32("llama.rope.scale_linear", 0) }, HD_STATUS_LIMIT, "llama.rope.scale_linear" },
    { "scaling unknown", LLAMA, { TEXT("llama.rope.scaling.type", "dynamic") }, HD_STATUS_UNSUPPORTED, "llama.rope.scaling.type" },
    { "yarn of everything", LLAMA, { TEXT("llama.rope.scaling.type", "yarn"), F32("llama.rope.scaling.factor", 1e6) }, HD_OK, "" },
    { "yarn trained on 0", LLAMA, { TEXT("llama.rope.scaling.type", "yarn"), U32("llama.rope.scaling.original_context_length", 0) }, HD_STATUS_LIMIT, "original_context_length" },
    { "epsilon negative", LLAMA, { F32("llama.attention.layer_norm_rms_epsilon", -1e-6) }, HD_STATUS_LIMIT, "layer_norm_rms_epsilon" },
    { "epsilon NaN", LLAMA, { F32("llama.attention.layer_norm_rms_epsilon", NAN) }, HD_STATUS_LIMIT, "layer_norm_rms_epsilon" },
    { "epsilon 1e30", LLAMA, { F32("llama.attention.layer_norm_rms_epsilon", 1e30) }, HD_STATUS_LIMIT, "layer_norm_rms_epsilon" },
    { "no epsilon", LLAMA, { DROP("llama.attention.layer_norm_rms_epsilon") }, HD_STATUS_NAME_NOT_FOUND, "layer_norm_rms_epsilon" },
    { "experts", LLAMA, { U32("llama.expert_count", 8) }, HD_STATUS_UNSUPPORTED, "llama.expert_count" },
    /* weights */
    { "no token_embd", LLAMA, { NO_TENSOR("token_embd.weight") }, HD_STATUS_NAME_NOT_FOUND, "token_embd.weight" },
    { "token_embd of rank 1", LLAMA, { TENSOR("token_embd.weight", F32, 1, 1, { 320 }) }, HD_STATUS_SHAPE, "token_embd.weight" },
    { "token_embd of rank 3", LLAMA, { TENSOR("token_embd.weight", F32, 1, 3, { 1, 320, 32 }) }, HD_STATUS_SHAPE, "token_embd.weight" },
    { "token_embd turned", LLAMA, { TENSOR("token_embd.weight", F32, 1, 2, { 32, 320 }) }, HD_STATUS_SHAPE, "token_embd.weight" },
    { "token_embd of 2^20+1 tokens", LLAMA, { TENSOR("token_embd.weight", Q8_0, 1, 2, { (1 << 20) + 1, 32 }) }, HD_STATUS_SHAPE, "token_embd.weight" },
    { "token_embd i8", LLAMA, { TENSOR("token_embd.weight", I8, 1, 2, { 320, 32 }) }, HD_STATUS_UNSUPPORTED, "token_embd.weight" },
    { "token_embd i32", LLAMA, { TENSOR("token_embd.weight", I32, 1, 2, { 320, 32 }) }, HD_STATUS_UNSUPPORTED, "token_embd.weight" },
    { "token_embd f64", LLAMA, { TENSOR("token_embd.weight", F64, 1, 2, { 320, 32 }) }, HD_STATUS_UNSUPPORTED, "token_embd.weight" },
    { "token_embd i2_s", LLAMA, { TENSOR("token_embd.weight", I2_S, 1, 2, { 320, 32 }) }, HD_STATUS_UNSUPPORTED, "token_embd.weight" },
    { "no attn_q", LLAMA, { NO_TENSOR("blk.1.attn_q.weight") }, HD_STATUS_NAME_NOT_FOUND, "blk.1.attn_q.weight" },
    { "no output_norm", LLAMA, { NO_TENSOR("output_norm.weight") }, HD_STATUS_NAME_NOT_FOUND, "output_norm.weight" },
    { "no output is tied", LLAMA, { NO_TENSOR("output.weight") }, HD_OK, "" },
    { "attn_q turned", LLAMA, { TENSOR("blk.0.attn_q.weight", F32, 1, 2, { 32, 160 }) }, HD_STATUS_SHAPE, "blk.0.attn_q.weight" },
    { "attn_q of rank 1", LLAMA, { TENSOR("blk.0.attn_q.weight", F32, 1, 1, { 5120 }) }, HD_STATUS_SHAPE, "blk.0.attn_q.weight" },
    { "attn_q of rank 4", LLAMA, { TENSOR("blk.0.attn_q.weight", F32, 1, 4, { 1, 2, 80, 32 }) }, HD_STATUS_SHAPE, "blk.0.attn_q.weight" },
    { "attn_norm q8_0", LLAMA, { TENSOR("blk.0.attn_norm.weight", Q8_0, 1, 1, { 32 }) }, HD_STATUS_UNSUPPORTED, "blk.0.attn_norm.weight" },
    { "attn_norm of 16", LLAMA, { TENSOR("blk.0.attn_norm.weight", F32, 1, 1, { 16 }) }, HD_STATUS_SHAPE, "blk.0.attn_norm.weight" },
    { "bias of 8", LLAMA, { TENSOR("blk.0.attn_q.bias", F32, 1, 1, { 8 }) }, HD_STATUS_SHAPE, "blk.0.attn_q.bias" },
    { "attn_q nvfp4", "bitnet_wide_tq2_0", { TENSOR("blk.0.attn_q.weight", NVFP4, 1, 2, { 256, 256 }) }, HD_STATUS_UNSUPPORTED, "blk.0.attn_q.weight" },
    { "output of other rows", LLAMA, { TENSOR("output.weight", F32, 1, 2, { 319, 32 }) }, HD_STATUS_SHAPE, "output.weight" },
    { "scale of two", LLAMA, { TENSOR("blk.0.attn_q.scale", F32, 1, 1, { 2 }) }, HD_STATUS_SHAPE, "blk.0.attn_q.scale" },
    { "scale i32", LLAMA, { TENSOR("blk.0.attn_q.scale", I32, 1, 1, { 1 }) }, HD_STATUS_SHAPE, "blk.0.attn_q.scale" },
    { "scale NaN", LLAMA, { TENSOR("blk.0.attn_q.scale", F32, NAN, 1, { 1 }) }, HD_STATUS_PARSE, "blk.0.attn_q.scale" },
    { "no head norm", "qwen3_q8_0", { NO_TENSOR("blk.0.attn_q_norm.weight") }, HD_STATUS_NAME_NOT_FOUND, "blk.0.attn_q_norm.weight" },
    { "rope_freqs 0", "llama3_f32", { TENSOR("rope_freqs.weight", F32, 0, 1, { 20 }) }, HD_STATUS_PARSE, "rope_freqs.weight[0]" },
    { "rope_freqs NaN", "llama3_f32", { TENSOR("rope_freqs.weight", F32, NAN, 1, { 20 }) }, HD_STATUS_PARSE, "rope_freqs.weight[0]" },
    { "rope_freqs infinite", "llama3_f32", { { .kind = EDIT_SET_F32, .name = "rope_freqs.weight", .count = 19, .number = INFINITY } }, HD_STATUS_PARSE, "rope_freqs.weight[19]" },
    { "rope_freqs of 19", "llama3_f32", { TENSOR("rope_freqs.weight", F32, 1, 1, { 19 }) }, HD_STATUS_SHAPE, "rope_freqs.weight" },
    { "rope_freqs f16", "llama3_f32", { TENSOR("rope_freqs.weight", F16, 1, 1, { 20 }) }, HD_STATUS_TYPE, "rope_freqs.weight" },
    { "rope_freqs and factors", "llama3_f32", { TENSOR("rope_factors_long.weight", F32, 1, 1, { 20 }) }, HD_STATUS_UNSUPPORTED, "rope_factors_long.weight" },
    { "long factors alone", LLAMA, { TENSOR("rope_factors_long.weight", F32, 1, 1, { 20 }) }, HD_STATUS_NAME_NOT_FOUND, "rope_factors_short.weight" },
    { "short factors alone", LLAMA, { TENSOR("rope_factors_short.weight", F32, 1, 1, { 20 }) }, HD_STATUS_NAME_NOT_FOUND, "rope_factors_long.weight" },
    { "long factors of 19", LLAMA, { TENSOR("rope_factors_long.weight", F32, 1, 1, { 19 }), TENSOR("rope_factors_short.weight", F32, 1, 1, { 20 }) },
      HD_STATUS_SHAPE, "rope_factors_long.weight" },
    { "long factors NaN", LLAMA, { TENSOR("rope_factors_long.weight", F32, NAN, 1, { 20 }), TENSOR("rope_factors_short.weight", F32, 1, 1, { 20 }) },
      HD_STATUS_PARSE, "rope_factors_long.weight[0]" },
    /* tensors that nothing takes */
    { "norm bias", LLAMA, { TENSOR("blk.0.attn_norm.bias", F32, 1, 1, { 32 }) }, HD_STATUS_UNSUPPORTED, "'blk.0.attn_norm.bias'" },
    { "norm bias of the gates", LLAMA, { TENSOR("blk.1.ffn_norm.bias", F32, 1, 1, { 32 }) }, HD_STATUS_UNSUPPORTED, "'blk.1.ffn_norm.bias'" },
    { "norm bias of the output", LLAMA, { TENSOR("output_norm.bias", F32, 1, 1, { 32 }) }, HD_STATUS_UNSUPPORTED, "'output_norm.bias'" },
    { "norm of the embedding", LLAMA, { TENSOR("token_embd_norm.weight", F32, 1, 1, { 32 }) }, HD_STATUS_UNSUPPORTED, "'token_embd_norm.weight'" },
    { "head norms in llama", LLAMA, { TENSOR("blk.0.attn_q_norm.weight", F32, 1, 1, { 40 }) }, HD_STATUS_UNSUPPORTED, "'blk.0.attn_q_norm.weight'" },
    { "norm behind attention", LLAMA, { TENSOR("blk.0.post_attention_norm.weight", F32, 1, 1, { 32 }) }, HD_STATUS_UNSUPPORTED, "post_attention_norm" },
    { "norm behind the gates", LLAMA, { TENSOR("blk.0.post_ffw_norm.weight", F32, 1, 1, { 32 }) }, HD_STATUS_UNSUPPORTED, "post_ffw_norm" },
    { "sub-norm in llama", LLAMA, { TENSOR("blk.0.attn_sub_norm.weight", F32, 1, 1, { 160 }) }, HD_STATUS_UNSUPPORTED, "attn_sub_norm" },
    { "sinks", LLAMA, { TENSOR("blk.1.attn_sinks.weight", F32, 1, 1, { 4 }) }, HD_STATUS_UNSUPPORTED, "'blk.1.attn_sinks.weight'" },
    { "experts' gate", LLAMA, { TENSOR("blk.0.ffn_gate_inp.weight", F32, 1, 2, { 8, 32 }) }, HD_STATUS_UNSUPPORTED, "ffn_gate_inp" },
    { "a fused weight in llama", LLAMA, { TENSOR("blk.0.attn_qkv.weight", F32, 1, 2, { 320, 32 }) }, HD_STATUS_UNSUPPORTED, "attn_qkv" },
    { "a layer too many", LLAMA, { TENSOR("blk.2.attn_norm.weight", F32, 1, 1, { 32 }) }, HD_STATUS_UNSUPPORTED, "'blk.2.attn_norm.weight'" },
    { "a layer spelled otherwise", LLAMA, { TENSOR("blk.00.attn_q.bias", F32, 1, 1, { 160 }) }, HD_STATUS_UNSUPPORTED, "'blk.00.attn_q.bias'" },
    { "a layer without a number", LLAMA, { TENSOR("blk.", F32, 1, 1, { 32 }) }, HD_STATUS_UNSUPPORTED, "'blk.'" },
    { "a layer's tensor outside", LLAMA, { TENSOR("attn_q.bias", F32, 1, 1, { 160 }) }, HD_STATUS_UNSUPPORTED, "'attn_q.bias'" },
    { "scale of the table", LLAMA, { TENSOR("token_embd.scale", F32, 1, 1, { 1 }) }, HD_STATUS_UNSUPPORTED, "'token_embd.scale'" },
    { "scale of no output", LLAMA, { NO_TENSOR("output.weight"), TENSOR("output.scale", F32, 2, 1, { 1 }) }, HD_STATUS_UNSUPPORTED, "'output.scale'" },
    { "scale of an output", LLAMA, { TENSOR("output.scale", F32, 2, 1, { 1 }) }, HD_OK, "" },
    { "scale of a norm", LLAMA, { TENSOR("blk.0.attn_norm.scale", F32, 1, 1, { 1 }) }, HD_STATUS_UNSUPPORTED, "'blk.0.attn_norm.scale'" },
    { "a head for classes", "qwen3_q8_0", { TENSOR("cls.output.weight", F32, 1, 2, { 2, 64 }) }, HD_STATUS_UNSUPPORTED, "'cls.output.weight'" },
    { "the table turned around", LLAMA, { TENSOR("token_types.weight", F32, 1, 2, { 2, 32 }) }, HD_STATUS_UNSUPPORTED, "'token_types.weight'" },
    /* keys that nothing reads */
    { "not causal", LLAMA, { BOOL("llama.attention.causal", 0) }, HD_OK, "" }, /* it answers with a vector */
    { "causal", LLAMA, { BOOL("llama.attention.causal", 1) }, HD_OK, "" },
    { "causal as a number", LLAMA, { F32("llama.attention.causal", 1) }, HD_STATUS_TYPE, "llama.attention.causal" },
    { "a window, and later tokens", BERT, { U32("bert.attention.sliding_window", 8) }, HD_STATUS_UNSUPPORTED, "bert.attention.sliding_window is 8" },
    { "an encoder that looks back alone", BERT, { BOOL("bert.attention.causal", 1) }, HD_OK, "" },
    { "pooling nobody knows", BERT, { U32("bert.pooling_type", 4294967295.0) }, HD_OK, "" },
    { "pooling in words", BERT, { TEXT("bert.pooling_type", "mean") }, HD_STATUS_TYPE, "bert.pooling_type" },
    { "positions for another context", BERT, { U32("bert.context_length", 64) }, HD_STATUS_SHAPE, "position_embd.weight" },
    { "no positions", BERT, { NO_TENSOR("position_embd.weight") }, HD_STATUS_NAME_NOT_FOUND, "position_embd.weight" },
    { "no types of tokens", BERT, { NO_TENSOR("token_types.weight") }, HD_OK, "" },
    { "types of tokens in q8_0", BERT, { TENSOR("token_types.weight", Q8_0, 1, 2, { 2, 32 }) }, HD_STATUS_UNSUPPORTED, "token_types.weight is of type q8_0" },
    { "types of other tokens", BERT, { TENSOR("token_types.weight", F32, 1, 2, { 2, 64 }) }, HD_STATUS_SHAPE, "token_types.weight" },
    { "types in a line", BERT, { TENSOR("token_types.weight", F32, 1, 1, { 32 }) }, HD_STATUS_SHAPE, "token_types.weight" },
    { "no norm of the embedding", BERT, { NO_TENSOR("token_embd_norm.bias") }, HD_STATUS_NAME_NOT_FOUND, "token_embd_norm.bias" },
    { "a head for classes", BERT, { TENSOR("cls.weight", F32, 1, 2, { 32, 32 }) }, HD_STATUS_UNSUPPORTED, "'cls.weight'" },
    { "[CLS] outside", BERT, { U32("tokenizer.ggml.bos_token_id", 300) }, HD_STATUS_LIMIT, "tokenizer.ggml.bos_token_id" },
    { "[SEP] outside", BERT, { U32("tokenizer.ggml.seperator_token_id", 300) }, HD_STATUS_LIMIT, "tokenizer.ggml.seperator_token_id" },
    { "no [UNK]", BERT, { U32("tokenizer.ggml.unknown_token_id", 4294967295.0) }, HD_STATUS_PARSE, "tokenizer.ggml.unknown_token_id is missing" },
    { "lowercase as a number", BERT, { U32("tokenizer.ggml.normalizer.lowercase", 1) }, HD_STATUS_TYPE, "tokenizer.ggml.normalizer.lowercase" },
    { "with capitals", BERT, { BOOL("tokenizer.ggml.normalizer.lowercase", 0) }, HD_OK, "" },
    { "no experts", LLAMA, { U32("llama.expert_count", 0), U32("llama.expert_used_count", 0) }, HD_OK, "" },
    { "more experts used than there are", "mixtral_f32", { U32("llama.expert_used_count", 5) }, HD_STATUS_UNSUPPORTED, "llama.expert_used_count is 5" },
    { "experts of another size", "mixtral_f32", { U32("llama.expert_feed_forward_length", 31) }, HD_STATUS_SHAPE, "blk.0.ffn_gate_exps.weight" },
    { "an expert by itself", "mixtral_f32", { TENSOR("blk.0.ffn_gate.0.weight", F32, 1, 2, { 32, 32 }) }, HD_STATUS_UNSUPPORTED, "'blk.0.ffn_gate.0.weight'" },
    { "keys and values of all heads in one tensor", LATENT, { DROP("deepseek2.attention.key_length_mla"), TENSOR("blk.0.attn_kv_b.weight", F32, 1, 2, { 224, 16 }) },
      HD_STATUS_UNSUPPORTED, "blk.0.attn_kv_b.weight" },
    { "no length of a head's keys", LATENT, { DROP("deepseek2.attention.key_length_mla") }, HD_STATUS_NAME_NOT_FOUND, "deepseek2.attention.key_length_mla" },
    { "keys of a head that all turn", LATENT, { U32("deepseek2.attention.key_length_mla", 8) }, HD_STATUS_PARSE, "not made of 16 elements and 8 that turn" },
    { "keys of a head that are longer", LATENT, { U32("deepseek2.attention.key_length_mla", 64) }, HD_STATUS_SHAPE, "blk.0.attn_q_b.weight" },
    { "values of another length", LATENT, { U32("deepseek2.attention.value_length", 24) }, HD_STATUS_PARSE, "values of 24" },
    { "many heads of short vectors", LATENT, { U32("deepseek2.attention.head_count_kv", 4) }, HD_STATUS_PARSE, "for 4 heads" },
    { "a short vector of nothing", LATENT, { U32("deepseek2.attention.kv_lora_rank", 0) }, HD_STATUS_LIMIT, "deepseek2.attention.kv_lora_rank" },
    { "queries made at once", LATENT, { DROP("deepseek2.attention.q_lora_rank") }, HD_STATUS_NAME_NOT_FOUND, "blk.0.attn_q.weight" },
    { "experts chosen by groups", LATENT, { U32("deepseek2.expert_group_count", 2) }, HD_STATUS_UNSUPPORTED, "deepseek2.expert_group_count is 2" },
    { "experts in one group", LATENT, { U32("deepseek2.expert_group_count", 1), U32("deepseek2.expert_group_used_count", 1) }, HD_OK, "" },
    { "another chance of experts", LATENT, { U32("deepseek2.expert_gating_func", 3) }, HD_STATUS_LIMIT, "deepseek2.expert_gating_func" },
    { "experts in a layer that has none", LATENT, { U32("deepseek2.leading_dense_block_count", 2) }, HD_STATUS_NAME_NOT_FOUND, "blk.1.ffn_gate.weight" },
    { "a layer without its experts", LATENT, { U32("deepseek2.leading_dense_block_count", 0) }, HD_STATUS_NAME_NOT_FOUND, "blk.0.ffn_gate_inp.weight" },
    { "gates beside experts", LATENT, { TENSOR("blk.1.ffn_gate.weight", F32, 1, 2, { 64, 32 }) }, HD_STATUS_UNSUPPORTED, "'blk.1.ffn_gate.weight'" },
    { "more shared experts", LATENT, { U32("deepseek2.expert_shared_count", 2) }, HD_STATUS_SHAPE, "blk.1.ffn_gate_shexp.weight" },
    { "a key's part of other heads", LATENT, { TENSOR("blk.0.attn_k_b.weight", F32, 1, 3, { 5, 16, 24 }) }, HD_STATUS_SHAPE, "blk.0.attn_k_b.weight" },
    { "short vectors in llama", LLAMA, { U32("llama.attention.kv_lora_rank", 16) }, HD_STATUS_UNSUPPORTED, "llama.attention.kv_lora_rank" },
    { "a norm of one layer", "falcon_f32", { TENSOR("blk.1.attn_norm_2.weight", F32, 1, 1, { 32 }) }, HD_STATUS_UNSUPPORTED, "blk.1.attn_norm_2.weight" },
    { "the bias of a norm that is not there", "falcon_f32", { TENSOR("blk.0.attn_norm_2.bias", F32, 1, 1, { 32 }) }, HD_STATUS_UNSUPPORTED, "'blk.0.attn_norm_2.bias'" },
    { "an expert of all tokens", "granitemoe_f32", { TENSOR("blk.0.ffn_up_shexp.weight", F32, 1, 2, { 32, 24 }) }, HD_STATUS_UNSUPPORTED, "'blk.0.ffn_up_shexp.weight'" },
    { "a cap below 0", "gemma2_f32", { F32("gemma2.attn_logit_softcapping", -1) }, HD_STATUS_LIMIT, "gemma2.attn_logit_softcapping" },
    { "sinks", "gemma3_f32", { TENSOR("blk.0.attn_sinks.weight", F32, 1, 1, { 4 }) }, HD_STATUS_UNSUPPORTED, "'blk.0.attn_sinks.weight'" },
    { "no sinks", OSS, { NO_TENSOR("blk.1.attn_sinks.weight") }, HD_STATUS_NAME_NOT_FOUND, "blk.1.attn_sinks.weight" },
    { "sinks of key heads", OSS, { TENSOR("blk.0.attn_sinks.weight", F32, 1, 1, { 2 }) }, HD_STATUS_SHAPE, "blk.0.attn_sinks.weight" },
    { "whole sinks", OSS, { TENSOR("blk.0.attn_sinks.weight", I32, 1, 1, { 4 }) }, HD_STATUS_UNSUPPORTED, "blk.0.attn_sinks.weight" },
    { "infinite sinks", OSS, { TENSOR("blk.0.attn_sinks.weight", F32, INFINITY, 1, { 4 }) }, HD_OK, "" },
    { "no biases of experts", OSS, { NO_TENSOR("blk.0.ffn_down_exps.bias") }, HD_STATUS_NAME_NOT_FOUND, "blk.0.ffn_down_exps.bias" },
    { "one bias for all experts", OSS, { TENSOR("blk.0.ffn_down_exps.bias", F32, 1, 1, { 32 }) }, HD_STATUS_SHAPE, "blk.0.ffn_down_exps.bias" },
    { "biases turned", OSS, { TENSOR("blk.0.ffn_up_exps.bias", F32, 1, 2, { 32, 8 }) }, HD_STATUS_SHAPE, "blk.0.ffn_up_exps.bias" },
    { "quantised biases", OSS, { TENSOR("blk.0.ffn_up_exps.bias", Q8_0, 1, 2, { 8, 32 }) }, HD_STATUS_UNSUPPORTED, "blk.0.ffn_up_exps.bias" },
    { "biases in f16", OSS, { TENSOR("blk.0.ffn_up_exps.bias", F16, 1, 2, { 8, 32 }), TENSOR("blk.1.ffn_down_exps.bias", BF16, 1, 2, { 8, 32 }) }, HD_OK, "" },
    { "biases of other experts", "mixtral_f32", { TENSOR("blk.0.ffn_up_exps.bias", F32, 1, 2, { 4, 32 }) }, HD_STATUS_UNSUPPORTED, "'blk.0.ffn_up_exps.bias'" },
    { "no bias that chooses", OSS, { NO_TENSOR("blk.1.ffn_gate_inp.bias") }, HD_STATUS_NAME_NOT_FOUND, "blk.1.ffn_gate_inp.bias" },
    { "no norm between", OSS, { NO_TENSOR("blk.1.post_attention_norm.weight") }, HD_STATUS_NAME_NOT_FOUND, "post_attention_norm" },
    { "two norms between", OSS, { TENSOR("blk.1.ffn_norm.weight", F32, 1, 1, { 32 }) }, HD_STATUS_UNSUPPORTED, "'blk.1.ffn_norm.weight'" },
    { "gpt-oss without experts", OSS, { U32("gpt-oss.expert_count", 0), U32("gpt-oss.expert_used_count", 0) }, HD_STATUS_UNSUPPORTED, "gpt-oss.expert_count is 0" },
    { "another gate", OSS, { TEXT("gpt-oss.hidden_activation", "silu") }, HD_OK, "" },
    { "windows in all layers", OSS, { U32("gpt-oss.attention.sliding_window_pattern", 1) }, HD_STATUS_LIMIT, "gpt-oss.attention.sliding_window_pattern" },
    { "positions that are fewer", "gpt2_f32", { U32("gpt2.context_length", 512) }, HD_STATUS_SHAPE, "position_embd.weight" },
    { "experts used", LLAMA, { U32("llama.expert_used_count", 2) }, HD_STATUS_UNSUPPORTED, "llama.expert_used_count is 2" },
    { "logit scale", LLAMA, { F32("llama.logit_scale", 0.5) }, HD_STATUS_UNSUPPORTED, "llama.logit_scale is 0.5, not 1" },
    { "logit scale 1", LLAMA, { F32("llama.logit_scale", 1) }, HD_OK, "" },
    { "logit scale NaN", LLAMA, { F32("llama.logit_scale", NAN) }, HD_STATUS_UNSUPPORTED, "llama.logit_scale" },
    { "embedding scale", "qwen3_q8_0", { F32("qwen3.embedding_scale", 12) }, HD_STATUS_UNSUPPORTED, "qwen3.embedding_scale is 12" },
    { "residual scale", LLAMA, { F32("llama.residual_scale", 0.2) }, HD_STATUS_UNSUPPORTED, "llama.residual_scale" },
    { "scale of scores", LLAMA, { F32("llama.attention.scale", 0.1) }, HD_STATUS_UNSUPPORTED, "llama.attention.scale" },
    { "soft cap of scores", LLAMA, { F32("llama.attn_logit_softcapping", 50) }, HD_STATUS_UNSUPPORTED, "llama.attn_logit_softcapping is 50" },
    { "soft cap of logits", LLAMA, { F32("llama.final_logit_softcapping", 30) }, HD_STATUS_UNSUPPORTED, "llama.final_logit_softcapping is 30" },
    { "clamped", LLAMA, { F32("llama.attention.clamp_kqv", 8) }, HD_STATUS_UNSUPPORTED, "llama.attention.clamp_kqv" },
    { "alibi", LLAMA, { F32("llama.attention.max_alibi_bias", 8) }, HD_STATUS_UNSUPPORTED, "llama.attention.max_alibi_bias" },
    { "side by side", LLAMA, { BOOL("llama.use_parallel_residual", 1) }, HD_STATUS_UNSUPPORTED, "llama.use_parallel_residual" },
    { "layers that differ in windows", LLAMA, { U32("llama.attention.sliding_window_pattern", 6) }, HD_STATUS_UNSUPPORTED, "'llama.attention.sliding_window_pattern'" },
    { "windows of layers", LLAMA, { U32S("llama.attention.sliding_window", 2, 8, false) }, HD_STATUS_TYPE, "llama.attention.sliding_window" },
    { "three angles", LLAMA, { U32S("llama.rope.dimension_sections", 4, 5, false) }, HD_STATUS_UNSUPPORTED, "'llama.rope.dimension_sections'" },
    { "a key of tomorrow", LLAMA, { U32("llama.attention.frobnicate", 1) }, HD_STATUS_UNSUPPORTED, "'llama.attention.frobnicate'" },
    { "a key without a name", LLAMA, { U32("llama.", 1) }, HD_STATUS_UNSUPPORTED, "'llama.'" },
    { "yarn bounds", LLAMA, { F32("llama.rope.scaling.yarn_beta_fast", 8) }, HD_STATUS_UNSUPPORTED, "llama.rope.scaling.yarn_beta_fast is 8, not 32" },
    { "yarn bounds between pairs", LLAMA, { TEXT("llama.rope.scaling.type", "yarn"), BOOL("llama.rope.scaling.yarn_truncate", 0) }, HD_OK, "" },
    { "yarn bounds somewhere", LLAMA, { U32("llama.rope.scaling.yarn_truncate", 0) }, HD_STATUS_TYPE, "llama.rope.scaling.yarn_truncate" },
    { "yarn bounds as ever", LLAMA, { F32("llama.rope.scaling.yarn_beta_fast", 32), F32("llama.rope.scaling.yarn_beta_slow", 1) }, HD_OK, "" },
    { "scaling ntk", LLAMA, { TEXT("llama.rope.scaling.type", "ntk") }, HD_STATUS_UNSUPPORTED, "llama.rope.scaling.type is 'ntk'" },
    { "scaling llama3", LLAMA, { TEXT("llama.rope.scaling.type", "llama3"), F32("llama.rope.scaling.factor", 8) }, HD_STATUS_UNSUPPORTED, "llama.rope.scaling.type is 'llama3'" },
    { "longrope without factors", LLAMA, { TEXT("llama.rope.scaling.type", "longrope") }, HD_STATUS_NAME_NOT_FOUND, "rope_factors_long.weight" },
    { "factor 1e-9", LLAMA, { F32("llama.rope.scaling.factor", 1e-9) }, HD_STATUS_LIMIT, "llama.rope.scaling.factor" },
    { "attn_factor 0", LLAMA, { F32("llama.rope.scaling.attn_factor", 0) }, HD_STATUS_LIMIT, "llama.rope.scaling.attn_factor" },
    { "activation unknown", LLAMA, { TEXT("llama.hidden_activation", "gelu") }, HD_STATUS_UNSUPPORTED, "llama.hidden_activation is 'gelu'" },
    { "notes of writers", LLAMA,
      { U32("llama.vocab_size", 320), U32("llama.pooling_type", 0), TEXT("quantize.imatrix.file", "x"), TEXT("mradermacher.quantized_by", "x"),
        TEXT("llama.tensor_data_layout", "Meta AI original pth"), TEXT("general.source.url", "x") }, HD_OK, "" },
    { "as ollama writes it", LLAMA,
      { U32("general.parameter_count", 8000000), F32("llama.attention.layer_norm_epsilon", 1e-5), U32("llama.vocab_size", 320),
        F32("llama.rope.scaling.factor", 1), TEXT("llama.rope.scaling.type", "linear"), U32S("tokenizer.ggml.eos_token_ids", 2, 3, false) }, HD_OK, "" },
    { "as llama.cpp writes it, long contexts", "qwen3_q8_0",
      { TEXT("qwen3.rope.scaling.type", "yarn"), F32("qwen3.rope.scaling.factor", 4), U32("qwen3.rope.scaling.original_context_length", 64),
        F32("qwen3.rope.scaling.yarn_ext_factor", 1), F32("qwen3.rope.scaling.yarn_attn_factor", 1), F32("qwen3.rope.scaling.yarn_beta_fast", 32),
        F32("qwen3.rope.scaling.yarn_beta_slow", 1), BOOL("qwen3.rope.scaling.finetuned", 1), U32("qwen3.expert_count", 0),
        U32("qwen3.pooling_type", 3) }, HD_OK, "" },
    { "as many write it", LLAMA,
      { TEXT("general.type", "model"), TEXT("general.size_label", "8B"), U32("general.base_model.count", 1), TEXT("general.base_model.0.name", "x"),
        TEXTS("general.tags", 3, "tag"), TEXT("quantize.imatrix.dataset", "x"), U32("quantize.imatrix.chunks_count", 7), U32("split.count", 0),
        TEXT("imatrix.datasets", "x"), U32("tokenizer.ggml.padding_token_id", 0), BOOL("tokenizer.ggml.add_sep_token", 0),
        BOOL("tokenizer.ggml.normalizer.nfc", 1) }, HD_OK, "" },
    { "mxfp4 that says tl2", OSS, { U32("general.file_type", 39) }, HD_STATUS_PARSE, "type tl2 is for matrices" },
    { "as Microsoft writes it", "bitnet_b158_i2_s",
      { U32("bitnet-b1.58.vocab_size", 320), TEXT("bitnet-b1.58.rope.scaling.type", "linear"), F32("bitnet-b1.58.rope.scaling.factor", 1),
        F32("bitnet-b1.58.rope.freq_base", 500000) }, HD_OK, "" },
    { "a model turned around", LLAMA, { U32("prism.hadamard.version", 1) }, HD_STATUS_UNSUPPORTED, "'prism.hadamard.version'" },
    { "an adapter", LLAMA, { TEXT("adapter.type", "lora") }, HD_STATUS_UNSUPPORTED, "'adapter.type'" },
    { "text rewritten", LLAMA, { BOOL("tokenizer.ggml.normalizer.lowercase", 1) }, HD_STATUS_UNSUPPORTED, "tokenizer.ggml.normalizer.lowercase" },
    { "token 0 never answered", LLAMA, { U32S("tokenizer.ggml.suppress_tokens", 1, 0, false) }, HD_STATUS_UNSUPPORTED, "tokenizer.ggml.suppress_tokens: " },
    { "text squeezed", LLAMA, { TEXT("tokenizer.ggml.model", "t5"), BOOL("tokenizer.ggml.remove_extra_whitespaces", 1) },
      HD_STATUS_UNSUPPORTED, "tokenizer.ggml.remove_extra_whitespaces" },
    { "text squeezed by another kind", LLAMA, { BOOL("tokenizer.ggml.remove_extra_whitespaces", 1) }, HD_OK, "" },
    { "tokens never answered", LLAMA, { U32S("tokenizer.ggml.suppress_tokens", 2, 5, false) }, HD_STATUS_UNSUPPORTED, "tokenizer.ggml.suppress_tokens" },
    /* vocabulary and template */
    { "no tokens", LLAMA, { DROP("tokenizer.ggml.tokens") }, HD_STATUS_SHAPE, "tokenizer.ggml.tokens" },
    { "319 tokens", LLAMA, { { .kind = EDIT_TEXTS, .name = "tokenizer.ggml.tokens", .count = 319, .text = "t" } }, HD_STATUS_SHAPE, "tokenizer.ggml.tokens" },
    { "tokens all alike", LLAMA, { { .kind = EDIT_TEXTS, .name = "tokenizer.ggml.tokens", .count = 320, .text = "t", .uneven = true } }, HD_STATUS_PARSE, "tokenizer.ggml.tokens[" },
    { "tokens without bytes", LLAMA, { { .kind = EDIT_TEXTS, .name = "tokenizer.ggml.tokens", .count = 320, .text = "t" } }, HD_STATUS_PARSE, "tokenizer.ggml." },
    { "tokens are numbers", LLAMA, { U32S("tokenizer.ggml.tokens", 320, 1, false) }, HD_STATUS_TYPE, "tokenizer.ggml.tokens" },
    { "types for 319", LLAMA, { { .kind = EDIT_I8S, .name = "tokenizer.ggml.token_type", .count = 319, .number = 1 } }, HD_STATUS_TYPE, "tokenizer.ggml.token_type" },
    { "types u32", LLAMA, { U32S("tokenizer.ggml.token_type", 320, 1, false) }, HD_STATUS_TYPE, "tokenizer.ggml.token_type" },
    { "scores of 1 byte", LLAMA, { { .kind = EDIT_I8S, .name = "tokenizer.ggml.scores", .count = 320, .number = 1 } }, HD_STATUS_TYPE, "tokenizer.ggml.scores" },
    { "scores for 319", LLAMA, { { .kind = EDIT_F32S, .name = "tokenizer.ggml.scores", .count = 319, .number = 1 } }, HD_STATUS_PARSE, "tokenizer.ggml.scores" },
    { "merges nonsense", LLAMA, { { .kind = EDIT_TEXTS, .name = "tokenizer.ggml.merges", .count = 40, .text = "no such pair", .uneven = true } }, HD_STATUS_PARSE, "tokenizer.ggml.merges[0]" },
    { "merges without a space", LLAMA, { { .kind = EDIT_TEXTS, .name = "tokenizer.ggml.merges", .count = 4, .text = "x" } }, HD_STATUS_PARSE, "tokenizer.ggml.merges[0]" },
    { "bos of 320", LLAMA, { U32("tokenizer.ggml.bos_token_id", 320) }, HD_STATUS_LIMIT, "tokenizer.ggml.bos_token_id" },
    { "eos of 2^31", LLAMA, { U32("tokenizer.ggml.eos_token_id", 2147483648.0) }, HD_STATUS_LIMIT, "tokenizer.ggml.eos_token_id" },
    { "eos -2", LLAMA, { { .kind = EDIT_I64, .name = "tokenizer.ggml.eos_token_id", .number = -2 } }, HD_STATUS_LIMIT, "tokenizer.ggml.eos_token_id" },
    { "eos none", LLAMA, { U32("tokenizer.ggml.eos_token_id", 4294967295.0) }, HD_OK, "" },
    { "eot of 999", LLAMA, { U32("tokenizer.ggml.eot_token_id", 999) }, HD_STATUS_LIMIT, "tokenizer.ggml.eot_token_id" },
    { "bos a text", LLAMA, { TEXT("tokenizer.ggml.bos_token_id", "<s>") }, HD_STATUS_TYPE, "tokenizer.ggml.bos_token_id" },
    { "bos wanted and missing", LLAMA, { DROP("tokenizer.ggml.bos_token_id"), DROP("tokenizer.ggml.add_bos_token") }, HD_OK, "" },
    { "tokenizer unknown", LLAMA, { TEXT("tokenizer.ggml.model", "rwkv") }, HD_STATUS_UNSUPPORTED, "tokenizer.ggml.model" },
    { "no tokenizer", LLAMA, { DROP("tokenizer.ggml.model") }, HD_OK, "" },
    { "pre unknown", LLAMA, { TEXT("tokenizer.ggml.pre", "gpt-3") }, HD_STATUS_UNSUPPORTED, "tokenizer.ggml.pre" },
    { "pre of 1 MB", LLAMA, { { .kind = EDIT_TEXT, .name = "tokenizer.ggml.pre", .count = 1 << 20 } }, HD_STATUS_UNSUPPORTED, "tokenizer.ggml.pre" },
    { "a million merges", LLAMA, { { .kind = EDIT_TEXTS, .name = "tokenizer.ggml.merges", .count = 1 << 20, .text = "t h", .uneven = true } }, HD_STATUS_PARSE, "tokenizer.ggml.merges[1]" },
    { "two million merges", LLAMA, { { .kind = EDIT_TEXTS, .name = "tokenizer.ggml.merges", .count = 2 << 20, .text = "t h", .uneven = true } }, HD_STATUS_LIMIT, "tokenizer.ggml.merges" },
    { "a million tokens of pieces", LLAMA,
      { { .kind = EDIT_TEXTS, .name = "tokenizer.ggml.tokens", .count = 1 << 20, .text = "t" }, { .kind = EDIT_F32S, .name = "tokenizer.ggml.scores", .count = 1 << 20 },
        TEXT("tokenizer.ggml.model", "t5"), DROP("tokenizer.ggml.token_type"), TENSOR("token_embd.weight", Q4_0, 0, 2, { 1 << 20, 32 }),
        TENSOR("output.weight", Q4_0, 0, 2, { 1 << 20, 32 }) }, HD_STATUS_PARSE, "tokenizer.ggml." },
    { "a million tokens, one given", LLAMA,
      { { .kind = EDIT_TEXTS, .name = "tokenizer.ggml.tokens", .count = 1, .text = "t" }, TENSOR("token_embd.weight", Q4_0, 0, 2, { 1 << 20, 32 }),
        TENSOR("output.weight", Q4_0, 0, 2, { 1 << 20, 32 }) }, HD_STATUS_SHAPE, "tokenizer.ggml.tokens has 1 tokens" },
    { "charsmap", LLAMA, { { .kind = EDIT_I8S, .name = "tokenizer.ggml.precompiled_charsmap", .count = 3 } }, HD_STATUS_UNSUPPORTED, "precompiled_charsmap" },
    { "template of 10 MB", LLAMA, { { .kind = EDIT_TEXT, .name = "tokenizer.chat_template", .count = 10 << 20 } }, HD_OK, "" },
    { "template a number", LLAMA, { U32("tokenizer.chat_template", 1) }, HD_STATUS_TYPE, "tokenizer.chat_template" },
    { "general.name of 1 MB", LLAMA, { { .kind = EDIT_TEXT, .name = "general.name", .count = 1 << 20 } }, HD_OK, "" },
};
enum { VARIANTS = sizeof variants / sizeof *variants };

static void variants_are_refused_by_name(void **state) {
    (void)state;
    uint32_t wrong = 0;
    uint64_t most = 0;
    double longest = 0;
    for (size_t i = 0; i < VARIANTS; i++) {
        const variant *v = &variants[i];
        fixture f = fixture_edited(v->fixture, v->edits, EDITS);
        const outcome o = live(&f, false);
        judge(v->name, &o, f.count);
        most = o.open_peak > f.count && o.open_peak - f.count > most ? o.open_peak - f.count : most;
        longest = o.open_seconds > longest ? o.open_seconds : longest;
        if (o.open != v->status || !strstr(o.text, v->expected) || (!v->status && (o.create || o.feed))) {
            print_message("%s: open %s, session %s, feed %s: \"%s\"; expected %s and \"%s\"\n", v->name, hd_status_name(o.open), hd_status_name(o.create),
                          hd_status_name(o.feed), o.text, hd_status_name(v->status), v->expected);
            wrong++;
        }
        const outcome strict = live(&f, true); /* what is refused is refused there too */
        if (v->status && (strict.open != v->status || !strstr(strict.text, v->expected))) {
            print_message("%s, strict: open %s: \"%s\"\n", v->name, hd_status_name(strict.open), strict.text);
            wrong++;
        }
        fixture_free(&f);
    }
    print_message("%d variants, %u wrong, the longest opening took %.3f s, the most memory was the file's size + %.1f MB\n", VARIANTS, wrong, longest, (double)most * 1e-6);
    assert_int_equal(wrong, 0);
    assert_true(VARIANTS >= 60);
}

static bool append(void *user, const void *bytes, uint64_t count) {
    fixture *f = user;
    if (f->count + count > f->room) f->bytes = realloc(f->bytes, f->room = 2 * (f->count + count));
    assert_non_null(f->bytes);
    if (count) memcpy(f->bytes + f->count, bytes, count);
    f->count += count;
    return true;
}

/* Many keys and tensors: looking at each of them takes no time for each of the others. */
static void many_names_take_no_time(void **state) {
    (void)state;
    enum { MANY_KEYS = HDL_GGUF_MAX_KEYS / 4, MANY_TENSORS = HDL_GGUF_MAX_TENSORS / 4, NAME = 16 };
    fixture whole = fixture_read(LLAMA), f = { 0 };
    memory_files memory = { .files = { { "m.gguf", whole.bytes, whole.count } }, .file_count = 1 };
    const hdl_files files = memory_table(&memory);
    hdl_gguf *g;
    static const float number = 1;
    char *names = calloc(MANY_KEYS, NAME);
    assert_non_null(names);
    assert_int_equal(hdl_gguf_open("m.gguf", &(hdl_gguf_desc){ .files = &files }, &g, NULL), HD_OK);
    hdl_gguf_writer *w = hdl_gguf_writer_create(NULL, 0);
    const hdl_gguf_info info = hdl_gguf_get_info(g);
    for (uint32_t i = 0; i < info.key_count; i++) {
        const hdl_gguf_value value = hdl_gguf_key(g, i);
        hdl_gguf_put_value(w, &value);
    }
    for (uint32_t i = 0; i < MANY_KEYS; i++) {
        snprintf(names + NAME * i, NAME, "x.%u", i);
        hdl_gguf_put_u32(w, names + NAME * i, i);
    }
    for (uint32_t i = 0; i < info.tensor_count; i++) {
        const hdl_gguf_tensor tensor = hdl_gguf_tensor_at(g, i);
        hdl_gguf_put_tensor(w, tensor.name, tensor.type, tensor.shape, whole.bytes + tensor.offset);
    }
    for (uint32_t i = 0; i < MANY_TENSORS; i++)
        hdl_gguf_put_tensor(w, hdl_text(names + NAME * i), HDL_GGUF_TYPE_F32, HD_SHAPE(1), &number);
    assert_int_equal(hdl_gguf_write(w, append, &f, NULL), HD_OK);
    const outcome o = live(&f, false);
    if (o.open != HD_STATUS_UNSUPPORTED || !strstr(o.text, "tensor 'x.0'")) fail_msg("%s", o.text);
    judge("many names", &o, f.count);
    print_message("%u keys and %u tensors: %.2f s\n", MANY_KEYS, MANY_TENSORS, o.open_seconds);
    hdl_gguf_writer_destroy(w);
    hdl_gguf_close(g);
    free(names);
    fixture_free(&whole);
    fixture_free(&f);
}

/* A key that stands for itself, and is none of a model's: a note, that only a strict context refuses. */
static void unknown_notes_are_told(void **state) {
    (void)state;
    const edit e = { .kind = EDIT_TEXT, .name = "acme.frobnicated", .text = "twice" };
    fixture f = fixture_edited(LLAMA, &e, 1);
    logged[0] = 0;
    outcome o = live(&f, false);
    if (o.open || o.create || o.feed) fail_msg("%s", o.text);
    if (!strstr(logged, "'acme.frobnicated' is not known and not used (1 such keys)")) fail_msg("logged is \"%s\"", logged);
    o = live(&f, true);
    if (o.open != HD_STATUS_UNSUPPORTED || !strstr(o.text, "'acme.frobnicated'")) fail_msg("strict: \"%s\"", o.text);
    fixture_free(&f);
}

/* ---- weights that are no numbers ---- */

static void weights_without_numbers_are_named(void **state) {
    (void)state;
    static const struct { const char *name, *fixture; edit e; const char *expected; } cases[] = {
        { "a NaN in f32", "llama_f32", { .kind = EDIT_SET_F32, .name = "blk.1.ffn_up.weight", .count = 33, .number = NAN }, "'blk.1.ffn_up.weight' row 1 holds NaN" },
        { "an infinity in f32", "llama_f32", { .kind = EDIT_SET_F32, .name = "token_embd.weight", .count = 0, .number = INFINITY }, "'token_embd.weight' row 0 holds NaN or infinity" },
        { "a NaN scale in q8_0", LLAMA, { .kind = EDIT_SET_F16, .name = "blk.0.attn_q.weight", .count = 2 * 34, .number = 0x7e00 }, "'blk.0.attn_q.weight' row 2 holds NaN" },
        { "an infinite scale in q4_0", "llama_q4_0", { .kind = EDIT_SET_F16, .name = "output.weight", .count = 0, .number = 0x7c00 }, "'output.weight' row 0 holds NaN" },
        { "rows of zeros", "llama_f32", { .kind = EDIT_TENSOR, .name = "blk.0.attn_v.weight", .type = HDL_GGUF_TYPE_F32, .shape = { 2, { 80, 32 } } }, "'blk.0.attn_v.weight' row 0 is all zero (80 of its 80 rows" },
        { "a NaN in a norm", LLAMA, { .kind = EDIT_SET_F32, .name = "output_norm.weight", .count = 3, .number = NAN }, "'output_norm.weight' row 0 holds NaN" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f = fixture_edited(cases[i].fixture, &cases[i].e, 1);
        outcome o = live(&f, true);
        if (o.open != HD_STATUS_PARSE || !strstr(o.text, cases[i].expected)) fail_msg("%s, strict: %s \"%s\"", cases[i].name, hd_status_name(o.open), o.text);
        logged[0] = 0;
        o = live(&f, false);
        if (o.open || o.create || o.feed) fail_msg("%s: \"%s\"", cases[i].name, o.text);
        if (!strstr(logged, cases[i].expected)) fail_msg("%s: logged is \"%s\"", cases[i].name, logged);
        fixture_free(&f);
    }
}

/* Scores that are NaN are no choice: the sampler says so. */
static void answers_of_nan_are_refused(void **state) {
    (void)state;
    const edit e = { .kind = EDIT_SET_F32, .name = "output_norm.weight", .count = 3, .number = NAN };
    fixture f = fixture_edited(LLAMA, &e, 1);
    memory_files memory = { .files = { { "m.gguf", f.bytes, f.count } }, .file_count = 1 };
    const hdl_files files = memory_table(&memory);
    const int32_t token = 1;
    hd_model *model;
    hd_session *session;
    assert_int_equal(hdl_model_open(context, "m.gguf", NULL, &files, &model), HD_OK);
    assert_int_equal(hd_session_create(model, &(hd_session_desc){ .device = device, .context = 64 }, &session), HD_OK);
    for (int temperature = 0; temperature <= 1; temperature++) { /* the best one, and one by chance */
        const hd_generate_desc desc = { .tokens = &token, .token_count = 1, .max_tokens = 4, .sampling = { .temperature = (float)temperature } };
        (void)hd_context_error(context);
        assert_int_equal(hd_generate(session, &desc, NULL, NULL), HD_STATUS_INVALID_ARGUMENT);
        const char *text = hd_context_error(context);
        if (!strstr(text, "not a number")) fail_msg("%s", text);
    }
    hd_session_destroy(session);
    hd_model_close(model);
    fixture_free(&f);
}

/* The template of a model's file, through the public calls: one that makes no text, one that asks for the date. */
static void templates_of_files(void **state) {
    (void)state;
    static const struct { const char *source; hd_status status; const char *words; } cases[] = {
        { "{% for m in messages %}{% endfor %}", HD_STATUS_UNSUPPORTED, "the chat template makes no text of these messages; name one of chatml" },
        { "{{ messages[0].nothing }}", HD_STATUS_UNSUPPORTED, "makes no text" },
        { "{{ strftime_now('%Y')[:2] }}{{ messages[0].content }}", HD_OK, "20Hi" },
    };
    for (size_t i = 0; i < 3; i++) {
        const edit e = { .kind = EDIT_TEXT, .name = "tokenizer.chat_template", .text = cases[i].source, .count = strlen(cases[i].source) };
        fixture f = fixture_edited("llama_q8_0", &e, 1);
        memory_files memory = { .files = { { "m.gguf", f.bytes, f.count } }, .file_count = 1 };
        const hdl_files files = memory_table(&memory);
        const hd_message messages = { .role = "user", .content = "Hi" };
        hd_model *model;
        char text[64] = "";
        int32_t tokens[64];
        size_t count = 64;
        assert_int_equal(hdl_model_open(context, "m.gguf", NULL, &files, &model), HD_OK);
        assert_int_equal(hd_model_chat_tokens(model, NULL, &messages, 1, tokens, &count), cases[i].status);
        if (cases[i].status) assert_non_null(strstr(hd_context_error(context), cases[i].words));
        assert_int_equal(hd_model_render_chat(model, NULL, &messages, 1, text, sizeof text, NULL), cases[i].status);
        assert_string_equal(text, cases[i].status ? "" : cases[i].words);
        hd_model_close(model);
        fixture_free(&f);
    }
}

/* ---- mutations ---- */

static uint64_t pick(uint64_t *random, uint64_t below) { return hostile_random(random) % below; }

/* The places of values and of tensors' fields, so that not only letters of the vocabulary change. */
typedef struct places { uint64_t header, values[256]; uint32_t count; } places;
static places find_places(const fixture *f) {
    places p = { 0 };
    hdl_gguf *g;
    memory_files memory = { .files = { { "m.gguf", f->bytes, f->count } }, .file_count = 1 };
    const hdl_files files = memory_table(&memory);
    assert_int_equal(hdl_gguf_open("m.gguf", &(hdl_gguf_desc){ .files = &files }, &g, NULL), HD_OK);
    for (uint32_t i = 0; i < hdl_gguf_get_info(g).key_count && p.count < 256; i++) p.values[p.count++] = hdl_gguf_key(g, i).offset;
    p.header = hdl_gguf_tensor_at(g, 0).offset;
    hdl_gguf_close(g);
    return p;
}

static void mutate(fixture *f, const places *p, uint64_t *random) {
    static const uint64_t numbers[] = { 0, 1, 2, 3, 5, 7, 31, 33, 64, 255, 256, 1024, 65536, 1u << 20, 0x7fffffff, 0x80000000, 0xffffffff,
                                        0x100000000, 0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffff, 0x7fc00000, 0xff800000, 0x3f800000 };
    for (uint64_t steps = 1 + pick(random, 3); steps; steps--) {
        const uint64_t tail = p->header - 2048 < p->header ? p->header - 2048 : 0; /* where the tensors' fields are */
        const uint64_t how = pick(random, 16);
        uint64_t at = how < 6 ? p->values[pick(random, p->count)] : how < 10 ? tail + pick(random, p->header - tail) : how < 14 ? pick(random, p->header) : pick(random, f->count);
        uint64_t number = numbers[pick(random, sizeof numbers / sizeof *numbers)];
        const uint64_t width = how % 2 ? 1u << pick(random, 4) : 4;
        if (pick(random, 4) == 0) number = hostile_random(random);
        if (pick(random, 64) == 0) f->count = 1 + pick(random, f->count);
        if (at + width > f->count) continue;
        if (pick(random, 3) == 0) f->bytes[at] ^= (uint8_t)(1u << pick(random, 8));
        else memcpy(f->bytes + at, &number, width);
    }
}

static void mutations_are_refused_or_run(void **state) {
    (void)state;
    static const char *const names[] = { "llama_q4_0", "qwen3_q4_0", "llama_q8_0", "bitnet_b158_i2_s", BERT, "nomic_bert_f32", OSS };
    enum { NAMES = sizeof names / sizeof *names };
    fixture whole[NAMES];
    places p[NAMES];
    uint32_t accepted = 0, refused = 0, later = 0;
    double longest_open = 0, longest_run = 0;
    for (uint32_t i = 0; i < NAMES; i++) {
        whole[i] = fixture_read(names[i]);
        p[i] = find_places(&whole[i]);
    }
    for (uint64_t seed = 0; seed < MUTATIONS; seed++) {
        uint64_t random = seed;
        const uint64_t which = pick(&random, 16) % NAMES;
        char name[32];
        fixture f = { malloc(whole[which].count), whole[which].count, whole[which].count };
        assert_non_null(f.bytes);
        memcpy(f.bytes, whole[which].bytes, f.count);
        mutate(&f, &p[which], &random);
        snprintf(name, sizeof name, "mutation %u", (unsigned)seed);
        const outcome o = live(&f, seed % 2 == 1);
        judge(name, &o, f.count);
        accepted += !o.open && !o.create && !o.feed;
        refused += o.open != HD_OK;
        later += !o.open && (o.create || o.feed);
        longest_open = o.open_seconds > longest_open ? o.open_seconds : longest_open;
        longest_run = o.run_seconds > longest_run ? o.run_seconds : longest_run;
        if (!o.open && (o.create || o.feed) && !strstr(o.text, "tensor '")) fail_msg("%s: session %s, feed %s: %s", name, hd_status_name(o.create), hd_status_name(o.feed), o.text);
        fixture_free(&f);
    }
    for (uint32_t i = 0; i < NAMES; i++) fixture_free(&whole[i]);
    print_message("%d mutations: %u refused, %u ran, %u refused by the session; longest %.3f s and %.3f s\n", MUTATIONS, refused, accepted, later, longest_open, longest_run);
    assert_in_range(accepted, MUTATIONS / 100, MUTATIONS * 9 / 10);
}

/* ---- real files ---- */

/* A copy in a file of its own; the descriptor can cut it. */
static int copy_file(const fixture *f, char path[32]) {
    strcpy(path, "/tmp/heddle-model-XXXXXX");
    const int file = mkstemp(path);
    assert_true(file >= 0);
    for (uint64_t at = 0; at < f->count;) {
        const ssize_t written = write(file, f->bytes + at, f->count - at);
        assert_true(written > 0);
        at += (uint64_t)written;
    }
    return file;
}

static void demo_cut_short(void **state) {
    (void)state;
    char path[32];
    fixture f = fixture_read(HEDDLE_TESTS_DIR "/../models/demo.gguf");
    const int file = copy_file(&f, path);
    hd_model *model;
    uint32_t cuts = 0;
    assert_int_equal(hd_model_open(context, path, NULL, &model), HD_OK);
    hd_model_close(model);
    for (uint64_t count = (f.count - 1) / CUT_STEP * CUT_STEP + CUT_STEP; count >= CUT_STEP; cuts++) {
        count -= CUT_STEP;
        assert_int_equal(ftruncate(file, (off_t)count), 0);
        const double begin = spent_seconds();
        const hd_status status = hd_model_open(context, path, NULL, &model);
        if (status != HD_STATUS_PARSE || model) fail_msg("cut at %llu: %s", (unsigned long long)count, hd_status_name(status));
        const char *text = hd_context_error(context);
        if (!strstr(text, path + 5)) fail_msg("cut at %llu: \"%s\"", (unsigned long long)count, text);
        if (spent_seconds() - begin > 1) fail_msg("cut at %llu: took %.2f s", (unsigned long long)count, spent_seconds() - begin);
    }
    print_message("%u cuts refused\n", cuts);
    close(file);
    unlink(path);
    fixture_free(&f);
}

static void shrunk_between_open_and_session(void **state) {
    (void)state;
    static const char *const names[] = { LLAMA, "bitnet_b158_i2_s" };
    for (uint32_t i = 0; i < 2; i++) {
        char path[32];
        fixture f = fixture_read(names[i]);
        const int file = copy_file(&f, path);
        hd_model *model;
        hd_session *session;
        assert_int_equal(hd_model_open(context, path, NULL, &model), HD_OK);
        assert_int_equal(ftruncate(file, (off_t)(f.count / 2)), 0);
        assert_int_equal(hd_session_create(model, &(hd_session_desc){ .device = device, .context = 64 }, &session), HD_STATUS_IO);
        const char *text = hd_context_error(context);
        if (!strstr(text, path + 5)) fail_msg("\"%s\"", text);
        hd_model_close(model);
        close(file);
        unlink(path);
        fixture_free(&f);
    }
}

static void no_files(void **state) {
    (void)state;
    static const char *const paths[] = { "", "/", "/dev/null", "/dev/zero", "/nowhere/model.gguf", "/proc/self/mem" };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        hd_model *model;
        const hd_status status = hd_model_open(context, paths[i], NULL, &model);
        if (!status) fail_msg("%s was opened", paths[i]);
        assert_true(strlen(hd_context_error(context)) > 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variants_are_refused_by_name), cmocka_unit_test(unknown_notes_are_told), cmocka_unit_test(many_names_take_no_time), cmocka_unit_test(weights_without_numbers_are_named), cmocka_unit_test(answers_of_nan_are_refused),
        cmocka_unit_test(templates_of_files),
        cmocka_unit_test(mutations_are_refused_or_run), cmocka_unit_test(demo_cut_short), cmocka_unit_test(shrunk_between_open_and_session), cmocka_unit_test(no_files),
    };
    return cmocka_run_group_tests(tests, open_contexts, close_contexts);
}
