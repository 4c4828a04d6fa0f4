/* test_models_fit.c: what hd_model_fit tells before anything is loaded is what a session takes, within 5 %: on the CPU the
 * process' resident memory, on a GPU the bytes that the device counts. The models are made for the test, of q8_0 weights that
 * are all alike, but for the experts of one of them; their answers mean nothing. */
#define _POSIX_C_SOURCE 200809L
#include "fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

enum { EXPERTS = 8, CHOSEN = 2, EXPERT_FORWARD = 128 };
enum { LAYERS = 12, HIDDEN = 1024, HEADS = 16, KV_HEADS = 8, HEAD = 64, FORWARD = 3072, VOCABULARY = 16000, CONTEXT = 1024, PROMPT = 682 };

static char dense[] = "/tmp/heddle-fit-XXXXXX", mixture[] = "/tmp/heddle-fit-XXXXXX";

/* ---- the model ---- */

static void put(hdl_gguf_writer *w, const char *name, uint32_t type, int64_t rows, int64_t columns, const void *data) {
    hdl_gguf_put_tensor(w, hdl_text(name), type, rows ? HD_SHAPE(rows, columns) : HD_SHAPE(columns), data);
}

/* Experts of each layer and kind are others: they begin elsewhere in the blocks. */
static void put_experts(hdl_gguf_writer *w, unsigned layer, const uint8_t *blocks, const float *router) {
    static const char *const stems[] = { "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps" };
    char name[64];
    snprintf(name, sizeof name, "blk.%u.ffn_gate_inp.weight", layer);
    hdl_gguf_put_tensor(w, hdl_text(name), HDL_GGUF_TYPE_F32, HD_SHAPE(EXPERTS, HIDDEN), router);
    for (unsigned i = 0; i < 3; i++) {
        const bool down = i == 2;
        snprintf(name, sizeof name, "blk.%u.%s.weight", layer, stems[i]);
        hdl_gguf_put_tensor(w, hdl_text(name), HDL_GGUF_TYPE_Q8_0,
                            HD_SHAPE(EXPERTS, down ? HIDDEN : EXPERT_FORWARD, down ? EXPERT_FORWARD : HIDDEN),
                            blocks + (uint64_t)(3 * layer + i) * 34);
    }
}

static void put_layer(hdl_gguf_writer *w, unsigned layer, uint32_t experts, const void *blocks, const float *ones) {
    static const struct { const char *name; int64_t rows, columns;
    } weights[] = {
        { "attn_q", HEADS * HEAD, HIDDEN },
        { "attn_k", KV_HEADS * HEAD, HIDDEN },
        { "attn_v", KV_HEADS * HEAD, HIDDEN },
        { "attn_output", HIDDEN, HEADS * HEAD },
        { "ffn_gate", FORWARD, HIDDEN },
        { "ffn_up", FORWARD, HIDDEN },
        { "ffn_down", HIDDEN, FORWARD },
        { "attn_norm", 0, HIDDEN },
        { "ffn_norm", 0, HIDDEN },
    };
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
        char name[64];
        if (experts && strstr(weights[i].name, "ffn_") && weights[i].rows) continue;
        snprintf(name, sizeof name, "blk.%u.%s.weight", layer, weights[i].name);
        put(w, name, weights[i].rows ? HDL_GGUF_TYPE_Q8_0 : HDL_GGUF_TYPE_F32, weights[i].rows, weights[i].columns,
            weights[i].rows ? blocks : (const void *)ones);
    }
}

/* `experts`: of a layer; 0: it has one feed-forward. */
static int make_model(char *path, uint32_t experts) {
    const uint64_t bytes = (uint64_t)VOCABULARY * HIDDEN / 32 * 34;
    uint8_t *blocks = malloc(bytes);
    float ones[HIDDEN], router[EXPERTS * HIDDEN];
    if (!blocks) return -1;
    for (uint64_t i = 0; i < bytes; i++) blocks[i] = i % 34 == 0 ? 0 : i % 34 == 1 ? 0x10 : (uint8_t)(i * 37 % 251); /* a scale of 2^-11 */
    for (int i = 0; i < HIDDEN; i++) ones[i] = 1;
    for (int i = 0; i < EXPERTS * HIDDEN; i++) router[i] = (float)(i * 37 % 251 - 125) / 2048;
    hdl_gguf_writer *w = hdl_gguf_writer_create(NULL, 0);
    hdl_gguf_put_text(w, "general.architecture", hdl_text("llama"));
    hdl_gguf_put_u32(w, "llama.block_count", LAYERS);
    hdl_gguf_put_u32(w, "llama.embedding_length", HIDDEN);
    hdl_gguf_put_u32(w, "llama.feed_forward_length", FORWARD);
    hdl_gguf_put_u32(w, "llama.attention.head_count", HEADS);
    hdl_gguf_put_u32(w, "llama.attention.head_count_kv", KV_HEADS);
    hdl_gguf_put_u32(w, "llama.attention.key_length", HEAD);
    hdl_gguf_put_u32(w, "llama.attention.value_length", HEAD);
    if (experts) {
        hdl_gguf_put_u32(w, "llama.expert_count", experts);
        hdl_gguf_put_u32(w, "llama.expert_used_count", CHOSEN);
        hdl_gguf_put_u32(w, "llama.expert_feed_forward_length", EXPERT_FORWARD);
    }
    hdl_gguf_put_f32(w, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    put(w, "token_embd.weight", HDL_GGUF_TYPE_Q8_0, VOCABULARY, HIDDEN, blocks);
    for (unsigned layer = 0; layer < LAYERS; layer++) {
        put_layer(w, layer, experts, blocks, ones);
        if (experts) put_experts(w, layer, blocks, router);
    }
    put(w, "output_norm.weight", HDL_GGUF_TYPE_F32, 0, HIDDEN, ones);
    const int file = mkstemp(path);
    if (file >= 0) close(file);
    hd_error error = { 0 };
    const hd_status status = hdl_gguf_write_file(w, path, &error);
    hdl_gguf_writer_destroy(w);
    free(blocks);
    return status;
}
static int make_models(void **state) {
    (void)state;
    return make_model(dense, 0) || make_model(mixture, EXPERTS);
}
static int remove_models(void **state) {
    (void)state;
    return unlink(dense) | unlink(mixture);
}

/* ---- measuring ---- */

/* Kilobytes from /proc/self/status; 0 where there is none. */
static uint64_t status_kb(const char *field) {
    char line[256];
    unsigned long kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, field, strlen(field)) == 0) kb = strtoul(line + strlen(field) + 1, NULL, 10);
    if (file) fclose(file);
    return kb;
}
static bool forget_peak(void) {
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (!file) return false;
    const bool done = fputs("5", file) >= 0;
    return fclose(file) == 0 && done;
}

#define CHECK(call) check(context, (call), #call)
static void check(hd_context *context, hd_status status, const char *call) {
    if (status) fail_msg("%s: %s", call, hd_context_error(context));
}

/* A prompt in pieces of several sizes, and single tokens through the buckets of the cache. */
static void use(hd_context *context, hd_model *model, const hd_session_desc *desc, uint32_t prompt, hd_fit *out_fit) {
    hd_session *session;
    int32_t tokens[PROMPT];
    for (uint32_t i = 0; i < prompt; i++) tokens[i] = (int32_t)(i * 7 % 256);
    CHECK(hd_session_create(model, desc, &session));
    CHECK(hd_session_feed(session, 0, tokens, prompt));
    for (uint32_t at = prompt; at > 0; at /= 2) { /* a token here and there is enough to use a bucket */
        CHECK(hd_session_rewind(session, 0, at - 1));
        CHECK(hd_session_feed(session, 0, tokens, 1));
    }
    CHECK(hd_session_get_fit(session, out_fit));
    hd_session_destroy(session);
}

static void judge(const char *where, uint64_t told, uint64_t taken) {
    const double ratio = (double)taken / (double)told;
    print_message("%s: told %.2f MB, taken %.2f MB: %+.2f %%\n", where, (double)told * 1e-6, (double)taken * 1e-6, 100 * (ratio - 1));
    if (ratio > 1.05 || ratio < 0.95) fail_msg("%s: told %llu, taken %llu", where, (unsigned long long)told, (unsigned long long)taken);
}

static void taken_on(const char *backend, const char *where, const char *path, uint32_t prompt, const hd_session_desc *wishes) {
    hd_context *context;
    hd_device *device;
    hd_model *model, *small;
    hd_device_stats stats;
    hd_fit told, used;
    const char *alone = strcmp(backend, "cpu") == 0 ? backend : NULL; /* other back ends' memory would be measured too */
    assert_int_equal(hd_context_create(&(hd_context_desc){ .backend = alone, .cpu_threads = 2 }, &context), HD_OK);
    if (hd_device_open(context, &(hd_device_desc){ .id = backend }, &device)) {
        hd_context_destroy(context);
        return;
    }
    hd_session_desc desc = *wishes;
    desc.device = device;
    CHECK(hd_model_open(context, HEDDLE_TESTS_DIR "/llm/models/llama_q8_0.gguf", NULL, &small)); /* code and threads are there before */
    use(context, small, &(hd_session_desc){ .device = device, .context = 64 }, 8, &used);
    hd_model_close(small);
    CHECK(hd_model_open(context, path, NULL, &model));
    CHECK(hd_device_get_stats(device, &stats));
    CHECK(hd_model_fit(model, &desc, &told));
    if (desc.memory_bytes) assert_true(told.device_layers < LAYERS); /* too little for all */
    const uint64_t before = status_kb("VmRSS:"), held = stats.device_bytes;
    const bool measured = forget_peak();
    use(context, model, &desc, prompt, &used);
    const uint64_t peak = status_kb("VmHWM:");
    CHECK(hd_device_get_stats(device, &stats));
    assert_memory_equal(&told, &used, sizeof told);
    if (told.device_bytes) judge(where, told.device_bytes, stats.device_bytes_peak - held);
    else if (measured) judge(where, told.cpu_bytes, (peak - before) * 1024);
    if (told.device_bytes)
        print_message("%s: told %.2f + %.2f + %.2f MB; resident %.2f MB\n", where,
                      (double)told.device_weight_bytes * 1e-6, (double)told.device_cache_bytes * 1e-6,
                      (double)told.device_scratch_bytes * 1e-6, (double)(peak - before) * 1024e-6);
    else
        print_message("%s: told %.2f + %.2f + %.2f MB\n", where, (double)told.cpu_weight_bytes * 1e-6,
                      (double)told.cpu_cache_bytes * 1e-6, (double)told.cpu_scratch_bytes * 1e-6);
    hd_model_close(model);
    hd_context_destroy(context);
}

static void told_and_taken(void **state) {
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* a sanitizer's own memory would be measured */
#endif
    taken_on("cpu", "cpu", dense, PROMPT, &(hd_session_desc){ .context = CONTEXT });
    taken_on("vulkan", "vulkan", dense, 8, &(hd_session_desc){ .context = CONTEXT, .chunk = 8 });
    taken_on("vulkan", "vulkan, beside the cpu", dense, 8, &(hd_session_desc){ .context = CONTEXT, .chunk = 8, .memory_bytes = 40 << 20 });
    taken_on("vulkan", "vulkan, streamed", mixture, 8, &(hd_session_desc){ .context = CONTEXT, .chunk = 8, .stream = 1, .memory_bytes = 70 << 20 });
    taken_on("vulkan", "vulkan, some experts apart", mixture, 8, &(hd_session_desc){ .context = CONTEXT, .chunk = 8, .cpu_experts = 5 });
    taken_on("vulkan", "vulkan, all experts apart", mixture, 8, &(hd_session_desc){ .context = CONTEXT, .chunk = 8, .cpu_experts = LAYERS });
    taken_on("vulkan", "vulkan, layers and experts apart", mixture, 8,
             &(hd_session_desc){ .context = CONTEXT, .chunk = 8, .memory_bytes = 40 << 20 });
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(told_and_taken) };
    return cmocka_run_group_tests(tests, make_models, remove_models);
}
