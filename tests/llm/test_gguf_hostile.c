/* test_gguf_hostile.c: hostile files: named variants, 10,000 mutations from fixed seeds, a file cut at every byte and with
 * every bit turned, and the most keys and tensors that are allowed. A refusal names the field and the byte; what is accepted
 * was understood (hostile_check); time and memory stay within the bounds of gguf.h, asserted loosely for slow machines. */
#define _POSIX_C_SOURCE 200809L
#include "hostile.h"
#include "spent.h"
#include <stdio.h>
#include <stdlib.h>

enum { MUTATIONS = 10000 };

/* Judges one file, of memory of exactly its size so that a sanitizer sees each byte too far. */
static hd_status judge(const char *name, const uint8_t *bytes, uint64_t count, hd_error *error) {
    uint8_t *copy = malloc(count ? count : 1);
    assert_non_null(copy);
    if (count) memcpy(copy, bytes, count);
    const double begin = spent_seconds();
    const char *wrong = hostile_check(copy, count, error);
    const double took = spent_seconds() - begin;
    free(copy);
    if (wrong) fail_msg("%s: %s (%s)", name, wrong, error->text);
    if (took > 1) fail_msg("%s: took %.2f s", name, took);
    return error->status;
}

static void variants_are_refused_by_name(void **state) {
    (void)state;
    const char *name, *expected;
    hd_error error;
    blob b;
    uint32_t i = 0;
    for (; hostile_variant(i, &b, &name, &expected); i++) {
        if (judge(name, b.bytes, b.count, &error) == HD_OK) fail_msg("%s: was accepted", name);
        if (!strstr(error.text, expected)) fail_msg("%s: \"%s\" does not hold \"%s\"", name, error.text, expected);
        blob_free(&b);
    }
    print_message("%u variants refused\n", i);
    assert_true(i >= 60);
}

static void mutations_are_refused_or_understood(void **state) {
    (void)state;
    hd_error error;
    uint32_t accepted = 0;
    for (uint64_t seed = 0; seed < MUTATIONS; seed++) {
        uint64_t random = seed;
        char name[32];
        blob b = blob_valid((uint32_t)(seed % 5 ? (seed % 2) * 2 : 1));
        hostile_mutate(&b, &random);
        snprintf(name, sizeof name, "mutation %u", (unsigned)seed);
        accepted += judge(name, b.bytes, b.count, &error) == HD_OK;
        blob_free(&b);
    }
    print_message("%d mutations: %u accepted and written back equal, the others refused\n", MUTATIONS, accepted);
    assert_in_range(accepted, MUTATIONS / 100, MUTATIONS / 2); /* both ways are met */
}

static void cut_at_every_byte(void **state) {
    (void)state;
    hd_error error;
    for (uint32_t form = 0; form < 3; form++) {
        blob b = blob_valid(form);
        assert_int_equal(judge("whole", b.bytes, b.count, &error), HD_OK);
        uint64_t accepted = 0;
        for (uint64_t count = 0; count < b.count; count++)
            if (judge("cut", b.bytes, count, &error) == HD_OK) accepted++;
            else assert_int_equal(error.status, HD_STATUS_PARSE);
        assert_true(accepted < 32); /* only padding after the last tensor may be missing */
        blob_free(&b);
    }
}

static void every_bit_turned(void **state) {
    (void)state;
    hd_error error;
    uint64_t accepted = 0, refused = 0;
    for (uint32_t form = 0; form < 3; form++) {
        blob b = blob_valid(form);
        for (uint64_t bit = 0; bit < b.count * 8; bit++) {
            b.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            if (judge("bit turned", b.bytes, b.count, &error) == HD_OK) accepted++;
            else refused++;
            b.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        blob_free(&b);
    }
    print_message("bits turned: %u refused, %u accepted and written back equal\n", (unsigned)refused, (unsigned)accepted);
    assert_true(refused > 1000);
}

/* Opens `count` keys or tensors with names that differ in their last letters; the time it took. */
static double open_many(uint64_t count, bool tensors, uint64_t *out_peak, uint64_t *out_bytes) {
    const uint64_t room = 64 + count * 64;
    uint8_t *bytes = calloc(1, room), *at = bytes;
    assert_non_null(bytes);
    const uint64_t counts[2] = { tensors ? count : 0, tensors ? 0 : count };
    memcpy(at, "GGUF\3\0\0", 8);
    memcpy(at + 8, counts, 16);
    at += 24;
    for (uint64_t i = 0; i < count; i++) {
        char name[24];
        const uint64_t length = (uint64_t)snprintf(name, sizeof name, "key.%u", (unsigned)i), one = 1, offset = i * 32;
        const uint32_t rank = 1, i8 = HDL_GGUF_TYPE_I8;
        memcpy(at, &length, 8);
        memcpy(at + 8, name, length);
        at += 8 + length;
        if (tensors) {
            memcpy(at, &rank, 4);
            memcpy(at + 4, &one, 8);
            memcpy(at + 12, &i8, 4);
            memcpy(at + 16, &offset, 8);
            at += 24;
        } else at += 5; /* kind u8, value 0 */
    }
    const uint64_t size = tensors ? (uint64_t)(at - bytes) + 64 + count * 32 : (uint64_t)(at - bytes);
    bytes = realloc(bytes, size > room ? size : room);
    assert_non_null(bytes);
    memory_files memory = { .files = { { "m.gguf", bytes, size } }, .file_count = 1 };
    const hdl_files files = memory_table(&memory);
    meter counted = { 0 };
    const hd_allocator allocator = meter_allocator(&counted);
    hdl_gguf *g = NULL;
    hd_error error = { 0 };
    const double begin = spent_seconds();
    hdl_gguf_open("m.gguf", &(hdl_gguf_desc){ .allocator = &allocator, .files = &files }, &g, &error);
    const double took = spent_seconds() - begin;
    if (!g) fail_msg("%s", error.text);
    assert_int_equal(tensors ? hdl_gguf_get_info(g).tensor_count : hdl_gguf_get_info(g).key_count, count);
    hdl_gguf_close(g);
    free(bytes);
    *out_peak = counted.peak_bytes;
    *out_bytes = size;
    return took;
}

static void many_names_take_linear_time(void **state) {
    (void)state;
    static const struct { uint64_t count; bool tensors; } cases[] = {
        { 100000, false }, { HDL_GGUF_MAX_KEYS, false }, { 100000, true }, { HDL_GGUF_MAX_TENSORS, true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t peak, bytes;
        const double took = open_many(cases[i].count, cases[i].tensors, &peak, &bytes);
        print_message("%u %s, %.1f MB: %.3f s, %.1f MB of memory\n", (unsigned)cases[i].count, cases[i].tensors ? "tensors" : "keys",
                      (double)bytes * 1e-6, took, (double)peak * 1e-6);
        assert_true(peak <= bytes + (64 << 20));
        assert_true(took < (double)cases[i].count * 1e-5 + 1);
    }
}

/* The largest header, and one that is larger, without memory for either beyond the file's size. */
static void large_headers(void **state) {
    (void)state;
    for (int over = 0; over < 2; over++) {
        const uint64_t text = HDL_GGUF_MAX_HEADER_BYTES - 24 - 9 - 4 - 8 + (uint64_t)over, size = 24 + 9 + 4 + 8 + text;
        uint8_t *bytes = calloc(1, size);
        assert_non_null(bytes);
        const uint64_t keys = 1, one = 1;
        memcpy(bytes, "GGUF\3\0\0", 8);
        memcpy(bytes + 16, &keys, 8);
        memcpy(bytes + 24, &one, 8);
        bytes[32] = 'k';
        bytes[33] = HDL_GGUF_STRING;
        memcpy(bytes + 37, &text, 8);
        memory_files memory = { .files = { { "m.gguf", bytes, size } }, .file_count = 1 };
        const hdl_files files = memory_table(&memory);
        meter counted = { 0 };
        const hd_allocator allocator = meter_allocator(&counted);
        hdl_gguf *g = NULL;
        hd_error error = { 0 };
        hdl_gguf_open("m.gguf", &(hdl_gguf_desc){ .allocator = &allocator, .files = &files }, &g, &error);
        assert_int_equal(error.status, over ? HD_STATUS_LIMIT : HD_OK);
        assert_true(counted.peak_bytes <= size + (64 << 20));
        if (over) assert_non_null(strstr(error.text, "key 0 'k': the header has more than 134217728 bytes"));
        hdl_gguf_close(g);
        free(bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variants_are_refused_by_name), cmocka_unit_test(mutations_are_refused_or_understood),
        cmocka_unit_test(cut_at_every_byte), cmocka_unit_test(every_bit_turned),
        cmocka_unit_test(many_names_take_linear_time), cmocka_unit_test(large_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
