/* test_arch.c: families of models that are others written differently. A model of phi3 is one of qwen2 without biases
 * whose weights stand together: made from it here, it gives the same bits. What cannot be run is refused by the name of
 * its key. */
#include "fixture.h"
#include "llm/model.h"
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

/* The model of qwen2 as one of phi3. */
static fixture fused(const fixture *whole, uint32_t window) {
    memory_files memory = { .files = { { "m.gguf", whole->bytes, whole->count } }, .file_count = 1 };
    const hdl_files files = memory_table(&memory);
    fixture out = { 0 };
    hdl_gguf *g;
    void *kept[MOST_FUSED];
    assert_int_equal(hdl_gguf_open("m.gguf", &(hdl_gguf_desc){ .files = &files }, &g, NULL), HD_OK);
    hdl_gguf_writer *w = must(hdl_gguf_writer_create(NULL, 0));
    hdl_gguf_put_text(w, "general.architecture", hdl_text("phi3"));
    hdl_gguf_put_u32(w, "phi3.attention.sliding_window", window);
    static char names[64][64];
    for (uint32_t i = 0; i < hdl_gguf_get_info(g).key_count; i++) {
        hdl_gguf_value value = hdl_gguf_key(g, i);
        if (hdl_same(value.name, hdl_text("general.architecture"))) continue;
        if (value.name.count > 6 && memcmp(value.name.bytes, "qwen2.", 6) == 0) {
            snprintf(names[i % 64], sizeof *names, "phi3.%.*s", (int)(value.name.count - 6),
                     (const char *)value.name.bytes + 6);
            value.name = hdl_text(names[i % 64]);
        }
        hdl_gguf_put_value(w, &value);
    }
    for (uint32_t i = 0; i < hdl_gguf_get_info(g).tensor_count; i++) {
        const hdl_gguf_tensor tensor = hdl_gguf_tensor_at(g, i);
        if (!is_replaced(tensor.name))
            hdl_gguf_put_tensor(w, tensor.name, tensor.type, tensor.shape, whole->bytes + tensor.offset);
    }
    for (unsigned layer = 0; layer < LAYERS; layer++) {
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

/* Exact logits after a prompt and one more token. */
static float *logits_of(const fixture *f, uint32_t *out_vocabulary) {
    static const int32_t tokens[TOKENS] = { 5, 17, 300, 42, 8, 111, 256, 3, 77 };
    hd_model *model;
    hd_session *session;
    hd_model_info info;
    const float *logits;
    CHECK(open_fixture(f, &model));
    CHECK(hd_model_get_info(model, &info));
    CHECK(hd_session_create(model, &(hd_session_desc){ .math = HD_MATH_EXACT, .context = 64, .chunk = 8 }, &session));
    CHECK(hd_session_feed(session, 0, tokens, TOKENS - 1));
    CHECK(hd_session_feed(session, 0, &tokens[TOKENS - 1], 1));
    CHECK(hd_session_logits(session, 0, &logits));
    float *copy = must(malloc(info.vocabulary * sizeof *copy));
    memcpy(copy, logits, info.vocabulary * sizeof *copy);
    *out_vocabulary = info.vocabulary;
    hd_session_destroy(session);
    hd_model_close(model);
    return copy;
}

static void fused_weights_change_no_bit(void **state) {
    (void)state;
    uint32_t vocabulary = 0, same = 0;
    fixture apart = plain(), together = fused(&apart, 0);
    float *wanted = logits_of(&apart, &vocabulary), *got = logits_of(&together, &same);
    assert_int_equal(vocabulary, same);
    assert_memory_equal(got, wanted, vocabulary * sizeof *got);
    free(wanted);
    free(got);
    fixture_free(&apart);
    fixture_free(&together);
}

static void what_cannot_be_run_is_refused_by_name(void **state) {
    (void)state;
    hd_model *model;
    fixture apart = plain(), windowed = fused(&apart, 2047);
    assert_int_equal(open_fixture(&windowed, &model), HD_STATUS_UNSUPPORTED);
    const char *text = hd_context_error(context);
    if (!strstr(text, "phi3.attention.sliding_window is 2047")) fail_msg("%s", text);
    fixture unknown = fixture_edited("qwen2_f32",
                                     &(edit){ .kind = EDIT_TEXT, .name = "general.architecture", .text = "qwen9" }, 1);
    assert_int_equal(open_fixture(&unknown, &model), HD_STATUS_UNSUPPORTED);
    text = hd_context_error(context);
    if (!strstr(text, "'qwen9'; heddle runs llama, ") || !strstr(text, ", phi3")) fail_msg("%s", text);
    fixture_free(&apart);
    fixture_free(&windowed);
    fixture_free(&unknown);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fused_weights_change_no_bit), cmocka_unit_test(what_cannot_be_run_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
