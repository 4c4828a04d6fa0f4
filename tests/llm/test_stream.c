/* The stream of an answer: every cutting of texts with stop strings, beside a twin that sees the whole at once. */
#include "llm/sample.h"
#include "llm/stream_twin.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static uint64_t random_state;
static uint32_t below(uint32_t limit) { return (uint32_t)(hdl_random(5, random_state++) % limit); }

static hdl_stream *make(const hdl_stream_desc *desc) {
    hdl_stream *stream;
    hd_error error = { 0 };
    if (hdl_stream_create(NULL, desc, &stream, &error)) fail_msg("%s", error.text);
    return stream;
}

/* Whether all of `text` is whole characters. */
static bool valid(hdl_span text) {
    for (uint64_t i = 0; i < text.count;) {
        uint32_t code;
        i += hdl_utf8_read(text.bytes + i, text.count - i, &code);
        if (code == HDL_UTF8_INVALID) return false;
    }
    return true;
}

/* The pieces between cuts go in one by one; a cut lies after byte i where `cuts` has bit i % 64. */
static void check(const hdl_stream_desc *desc, const uint8_t *text, size_t count, uint64_t cuts) {
    uint8_t wanted[2000], got[2000];
    bool stops;
    const size_t wanted_count = twin_show(text, count, desc, wanted, &stops);
    size_t got_count = 0;
    hdl_span piece;
    hdl_stream *stream = make(desc);
    for (size_t from = 0; from < count;) {
        size_t to = from + 1;
        while (to < count && !(cuts >> (to - 1) % 64 & 1)) to++;
        assert_int_equal(hdl_stream_push(stream, (hdl_span){ text + from, to - from }, &piece, NULL), HD_OK);
        assert_true(valid(piece) && piece.count + got_count <= wanted_count);
        memcpy(got + got_count, piece.bytes, piece.count);
        got_count += piece.count;
        from = to;
    }
    assert_int_equal(hdl_stream_end(stream, &piece, NULL), HD_OK);
    assert_true(valid(piece) && piece.count + got_count == wanted_count);
    memcpy(got + got_count, piece.bytes, piece.count);
    assert_memory_equal(got, wanted, wanted_count);
    assert_int_equal(hdl_stream_stopped(stream), stops);
    hdl_stream_destroy(stream);
}

static size_t some_text(uint8_t *out, size_t most, uint32_t form) {
    static const char *const words[] = { "a", "b", "ab", "aab", "\n", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "</s>", "<",
                                         "\xE2\x82", "\xF0\x9F", "\xFF", "\x80", "\xED\xA0\x80", "\xC0\xAF" };
    size_t count = 0;
    while (count + 4 <= most && below(40)) {
        const char *word = words[below(form == 0 ? 4 : form == 1 ? 10 : 16)];
        memcpy(out + count, word, strlen(word));
        count += strlen(word);
    }
    return count;
}

static void every_cutting(void **state) {
    (void)state;
    for (int round = 0; round < 3000; round++) {
        uint8_t text[64], stop_texts[4][8];
        hdl_span stops[4];
        hdl_stream_desc desc = { .stops = stops, .stop_count = below(5) };
        const uint32_t form = below(3);
        for (size_t i = 0; i < desc.stop_count; i++)
            do stops[i] = (hdl_span){ stop_texts[i], some_text(stop_texts[i], 8, form) };
            while (!stops[i].count);
        const size_t count = some_text(text, sizeof text, form);
        check(&desc, text, count, 0);
        check(&desc, text, count, UINT64_MAX);
        for (size_t i = 0; i < count; i++) check(&desc, text, count, UINT64_C(1) << i);
        for (int i = 0; i < 20; i++) check(&desc, text, count, hdl_random(6, random_state++));
    }
}

static void assert_span(hdl_span got, const char *wanted) {
    assert_int_equal(got.count, strlen(wanted));
    assert_memory_equal(got.bytes, wanted, got.count);
}
#define PUSH(bytes, wanted) do { \
        assert_int_equal(hdl_stream_push(stream, hdl_text(bytes), &piece, NULL), HD_OK); \
        assert_span(piece, wanted); \
    } while (0)

static void pieces(void **state) {
    (void)state;
    hdl_span piece, stops[] = { hdl_text("\nUser:"), hdl_text("###") };
    hdl_stream *stream = make(&(hdl_stream_desc){ stops, 2 });
    PUSH("Hi\n", "Hi");
    PUSH("Us", "");
    PUSH("ers\xF0\x9F", "\nUsers");
    PUSH("\x98\x80#", "\xF0\x9F\x98\x80");
    PUSH("#!\xC3", "##!");
    assert_int_equal(hdl_stream_end(stream, &piece, NULL), HD_OK);
    assert_span(piece, "\xEF\xBF\xBD");
    hdl_stream_destroy(stream);
    stream = make(&(hdl_stream_desc){ stops, 2 });
    PUSH("one##", "one");
    assert_false(hdl_stream_stopped(stream));
    PUSH("# two", "");
    assert_true(hdl_stream_stopped(stream));
    PUSH("more", "");
    assert_int_equal(hdl_stream_end(stream, &piece, NULL), HD_OK);
    assert_span(piece, "");
    hdl_stream_destroy(stream);
    stream = make(&(hdl_stream_desc){ stops, 2 });
    PUSH("#\n", "#");
    assert_int_equal(hdl_stream_end(stream, &piece, NULL), HD_OK);
    assert_span(piece, "\n");
    hdl_stream_destroy(stream);
}

static void long_stops(void **state) {
    (void)state;
    static uint8_t text[3000], stop_text[HDL_MAX_STOP_BYTES];
    memset(stop_text, 'a', sizeof stop_text);
    memset(text, 'a', sizeof text);
    hdl_span piece, stops[] = { { stop_text, sizeof stop_text } };
    hdl_stream *stream = make(&(hdl_stream_desc){ .stops = stops, .stop_count = 1 });
    assert_int_equal(hdl_stream_push(stream, (hdl_span){ text, 255 }, &piece, NULL), HD_OK);
    assert_int_equal(piece.count, 0);
    assert_int_equal(hdl_stream_push(stream, hdl_text("\xF0\x9F\x98"), &piece, NULL), HD_OK);
    assert_int_equal(piece.count, 255);
    assert_int_equal(hdl_stream_push(stream, (hdl_span){ text, sizeof text }, &piece, NULL), HD_OK);
    assert_span(piece, "\xEF\xBF\xBD");
    assert_true(hdl_stream_stopped(stream));
    hdl_stream_destroy(stream);
}

static void refuse(hdl_stream_desc desc, hd_status status, const char *words) {
    hdl_stream *stream;
    hd_error error = { 0 };
    assert_int_equal(hdl_stream_create(NULL, &desc, &stream, &error), status);
    if (!strstr(error.text, words)) fail_msg("no \"%s\" in: %s", words, error.text);
    assert_null(stream);
}

static void refusals(void **state) {
    (void)state;
    static uint8_t bytes[HDL_MAX_STOP_BYTES + 1];
    hdl_span empty = hdl_text(""), too_long = { bytes, sizeof bytes };
    refuse((hdl_stream_desc){ .stops = &empty, .stop_count = 1 }, HD_STATUS_ZERO_SIZE, "stop string 0 is empty");
    refuse((hdl_stream_desc){ .stops = &too_long, .stop_count = 1 }, HD_STATUS_LIMIT, "257 bytes");
    refuse((hdl_stream_desc){ .stops = &empty, .stop_count = 1000 }, HD_STATUS_LIMIT, "1000 stop strings");
    refuse((hdl_stream_desc){ .stop_count = 1 }, HD_STATUS_NULL_POINTER, "NULL");
    assert_int_equal(hdl_stream_create(NULL, NULL, NULL, NULL), HD_STATUS_NULL_POINTER);
    hdl_stream_destroy(NULL);
}

typedef struct purse { long grants, held; } purse;
static void *from_purse(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    purse *p = user;
    if (new_bytes && p->grants-- <= 0) return NULL;
    void *got = new_bytes ? realloc(old, new_bytes) : (free(old), NULL);
    p->held += (long)new_bytes - (long)old_bytes;
    return got;
}

static void memory_runs_out(void **state) {
    (void)state;
    for (long grants = 0; grants <= 4; grants++) {
        purse p = { grants, 0 };
        hd_allocator memory = { from_purse, &p };
        hdl_span piece, stop = hdl_text("stop");
        hdl_stream *stream;
        hd_error error = { 0 };
        hd_status status = hdl_stream_create(&memory, &(hdl_stream_desc){ .stops = &stop, .stop_count = 1 }, &stream, &error);
        if (!status) status = hdl_stream_push(stream, hdl_text("some text"), &piece, &error);
        assert_int_equal(status, grants < 3 ? HD_STATUS_OUT_OF_HOST_MEMORY : HD_OK);
        assert_int_equal(error.status, status);
        hdl_stream_destroy(stream);
        assert_int_equal(p.held, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cutting), cmocka_unit_test(pieces),          cmocka_unit_test(long_stops),
        cmocka_unit_test(refusals),      cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
