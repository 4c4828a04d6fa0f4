/* test_learn.c: a vocabulary that is learned from a text. Its merges are those of Hugging Face's BpeTrainer, one by one, and so is how many
 * tokens it makes of the text; what ends a document is a token of its own, across which nothing is learned; all bytes come back; texts that are one word, one letter or nothing are learned in time; what is left over is
 * unused; a file that has a tokenizer and nothing else is one; what only whole models can do is refused; without memory nothing is left. */
#define _XOPEN_SOURCE 700
#include "llm/gguf.h"
#include "llm/model.h"
#include "learn_fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

enum { MERGES = sizeof learn_merges / sizeof *learn_merges, BYTES = sizeof learn_text - 1 };
static hd_context *context;

static hd_model *learn(const void *text, size_t bytes, uint32_t vocabulary) {
    hd_model *model = NULL;
    if (hd_tokenizer_learn(context, text, bytes, vocabulary, NULL, &model)) fail_msg("%s", hd_context_error(context));
    return model;
}

/* Tokens of a text; and they are the text. */
static size_t there_and_back(const hd_model *model, const void *text, size_t bytes) {
    size_t count = bytes, at = 0;
    int32_t *tokens = malloc(bytes * sizeof *tokens + 1);
    assert_int_equal(hd_model_tokenize(model, text, bytes, HD_TOKENIZE_ADD_SPECIAL, tokens, &count), HD_OK);
    for (size_t i = 0; i < count; i++) {
        size_t length;
        const char *spelled = hd_model_token_text(model, tokens[i], &length);
        assert_true(spelled && at + length <= bytes && memcmp((const char *)text + at, spelled, length) == 0);
        at += length;
    }
    assert_int_equal(at, bytes);
    free(tokens);
    return count;
}

static void as_others(void **state) {
    (void)state;
    hd_model *handle = learn(learn_text, BYTES, LEARN_VOCABULARY), *model = handle;
    hdl_gguf_value merges;
    hdl_span merge;
    uint64_t at = 0;
    assert_int_equal(hdl_model_find(&model), HD_OK);
    assert_true(hdl_gguf_find(model->gguf, "tokenizer.ggml.merges", &merges));
    assert_int_equal(merges.count, MERGES);
    for (size_t i = 0; i < MERGES; i++) {
        hdl_gguf_next_text(&merges, &at, &merge);
        if (!hdl_same(merge, hdl_text(learn_merges[i])))
            fail_msg("merge %zu is %.*s, not %s", i, (int)merge.count, (const char *)merge.bytes, learn_merges[i]);
    }
    assert_int_equal(there_and_back(handle, learn_text, BYTES), LEARN_TOKENS);
    there_and_back(handle, "\xff\xfe no UTF-8 \x80 \0 at all", 23);
    hd_model_close(handle);
}

static void any_text(void **state) {
    (void)state;
    enum { MANY = 300000 };
    static uint8_t text[MANY];
    uint32_t chance = 1;
    for (int kind = 0; kind < 4; kind++) {
        for (size_t i = 0; i < MANY; i++) {
            chance = chance * 1664525u + 1013904223u;
            text[i] = (uint8_t)(kind == 0 ? 'a' : kind == 1 ? 'a' + (chance >> 31) : kind == 2 ? chance >> 24 : ' ');
        }
        hd_model *model = learn(text, MANY, 600);
        assert_true(there_and_back(model, text, MANY) <= MANY);
        hd_model_close(model);
    }
    hd_model *model = learn("", 0, 300); /* 256 bytes, of which nothing is merged, and tokens that are unused */
    hd_model_info info;
    assert_int_equal(hd_model_get_info(model, &info), HD_OK);
    assert_int_equal(info.vocabulary, 300);
    assert_int_equal(there_and_back(model, "[PAD299] abab", 13), 13);
    hd_model_close(model);
}

static void ends_of_documents(void **state) {
    (void)state;
    static const char end_text[] = "<|endoftext|>";
    const char *cut = strchr(learn_text, '\n') + 1; /* between two words */
    char text[BYTES + 2 * sizeof end_text];
    const int bytes = snprintf(text, sizeof text, "%.*s%s%s%s", (int)(cut - learn_text), learn_text, end_text, cut, end_text);
    hd_model *handle, *model;
    int32_t tokens[BYTES];
    size_t count = BYTES;
    assert_int_equal(hd_tokenizer_learn(context, text, (size_t)bytes, LEARN_VOCABULARY + 1, end_text, &handle), HD_OK);
    model = handle;
    hdl_gguf_value merges;
    hdl_span merge;
    uint64_t at = 0;
    assert_int_equal(hdl_model_find(&model), HD_OK);
    assert_true(hdl_gguf_find(model->gguf, "tokenizer.ggml.merges", &merges));
    assert_int_equal(merges.count, MERGES); /* as of a text without them */
    for (size_t i = 0; i < MERGES; i++) {
        hdl_gguf_next_text(&merges, &at, &merge);
        assert_true(hdl_same(merge, hdl_text(learn_merges[i])));
    }
    assert_int_equal(hd_model_tokenize(handle, text, (size_t)bytes, HD_TOKENIZE_PARSE_SPECIAL, tokens, &count), HD_OK);
    assert_int_equal(count, LEARN_TOKENS + 2);
    assert_int_equal(tokens[count - 1], LEARN_VOCABULARY);
    for (int32_t i = 0; i <= LEARN_VOCABULARY; i++) assert_int_equal(hd_model_token_ends(handle, i), i == LEARN_VOCABULARY);
    there_and_back(handle, text, (size_t)bytes); /* of strangers: it is letters */
    hd_model_close(handle);
    assert_int_equal(hd_tokenizer_learn(context, "a", 1, 256, end_text, &handle), HD_STATUS_LIMIT); /* no room for it */
    assert_int_equal(hd_tokenizer_learn(context, "<|end<|endoftext|", 17, 257, end_text, &handle), HD_OK); /* none is whole */
    hd_model_close(handle);
}

static void alone(void **state) {
    (void)state;
    char path[] = "/tmp/heddle-learn-XXXXXX";
    const int file = mkstemp(path);
    hd_model_writer *writer;
    hd_model *model = learn(learn_text, BYTES, LEARN_VOCABULARY), *again;
    hd_session *session;
    assert_true(file >= 0);
    close(file);
    assert_int_equal(hd_model_writer_create(context, &writer), HD_OK);
    hd_model_writer_tokenizer(writer, model);
    assert_int_equal(hd_model_writer_write(writer, path), HD_OK);
    hd_model_writer_destroy(writer);
    assert_int_not_equal(hd_model_open(context, path, NULL, &again), HD_OK); /* it is no model */
    hd_context_error(context);
    assert_int_equal(hd_model_open(context, path, &(hd_model_desc){ .tokenizer_only = 1 }, &again), HD_OK);
    assert_int_equal(there_and_back(again, learn_text, BYTES), LEARN_TOKENS);
    assert_int_equal(hd_session_create(again, NULL, &session), HD_STATUS_UNSUPPORTED);
    assert_non_null(strstr(hd_context_error(context), "nothing was read of this model but its tokenizer"));
    hd_embedder *embedder;
    assert_int_equal(hd_embedder_create(again, NULL, &embedder), HD_STATUS_UNSUPPORTED);
    hd_context_error(context);
    hd_model_close(again);
    hd_model_close(model);
    unlink(path);
}

static void refused(void **state) {
    (void)state;
    hd_model *model;
    assert_int_equal(hd_tokenizer_learn(context, "a", 1, 255, NULL, &model), HD_STATUS_LIMIT);
    assert_true(hd_context_error(context)[0] && !model);
    assert_int_equal(hd_tokenizer_learn(context, "a", 1, (1u << 20) + 1, NULL, &model), HD_STATUS_LIMIT);
    assert_int_equal(hd_tokenizer_learn(context, NULL, 1, 300, NULL, &model), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_tokenizer_learn(context, "a", 1, 300, NULL, NULL), HD_STATUS_NULL_POINTER);
    hd_context_error(context);
}

static uint64_t calls, fails_at; /* 0: none fails */
static int64_t alive;
static void *resize(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    (void)user, (void)old_bytes;
    if (new_bytes > 0 && fails_at && ++calls == fails_at) return NULL;
    alive += (new_bytes > 0) - (old != NULL);
    if (new_bytes > 0) return realloc(old, new_bytes);
    free(old);
    return NULL;
}

static void without_memory(void **state) {
    (void)state;
    hd_context *own;
    hd_model *model;
    bool reached = true;
    assert_int_equal(hd_context_create(&(hd_context_desc){ .backend = "cpu", .allocator = { resize, NULL } }, &own), HD_OK);
    const int64_t before = alive;
    for (uint64_t n = 1; reached; n++) {
        calls = 0;
        fails_at = n;
        const hd_status status = hd_tokenizer_learn(own, learn_text, BYTES, LEARN_VOCABULARY, NULL, &model);
        reached = calls >= n;
        fails_at = 0;
        if (status && (status != HD_STATUS_OUT_OF_HOST_MEMORY || model)) fail_msg("allocation %u: %s", (unsigned)n, hd_context_error(own));
        hd_context_error(own);
        hd_model_close(model);
        assert_int_equal(alive, before);
    }
    hd_context_destroy(own);
}

static int begin(void **state) {
    (void)state;
    return hd_context_create(&(hd_context_desc){ .backend = "cpu" }, &context) != HD_OK;
}
static int end(void **state) {
    (void)state;
    hd_context_destroy(context);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(as_others), cmocka_unit_test(ends_of_documents), cmocka_unit_test(any_text),
                                        cmocka_unit_test(alone), cmocka_unit_test(refused),
                                        cmocka_unit_test(without_memory) };
    return cmocka_run_group_tests(tests, begin, end);
}
