/* test_hash.c: digests that are taken on a device (hd_hash, hd_buffer_hash): those that Python's hashlib gives by the words of heddle.h,
 * of values, of buffers in one part and in several, of quantised weights, with nothing but the digest read back. */
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Of bytes i that are (31 i^2 + 7 i + count) / 8, the lowest bits of it. */
static const struct { uint64_t bytes; const char *digest; } known[] = {
    { 1, "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7" },
    { 4, "28a07e9a0d81ebca53628998829e6e01b04f0d73e48005c3c7fbb42181557c0d" },
    { 32, "5afdebfc77bd027448ddfdf072551970c2c6efaabda0dfbd01b8dabc263bbc01" },
    { 55, "c9037ec5cb760ead7e9ac154fe15f4044632761c5ac1d5d919f2bbe3df25b424" },
    { 63, "1b00f48f9ac18085210cd26eda7ee3c48cfb9ccb8f8df42329faedc4cebf49fa" },
    { 1023, "0cc6328b9cafacfbb3508a0dd3dae864bbd708914b94d8c85ff4a2ecd5d6ec49" },
    { 1024, "67d895702d9bf618c43fdc851f0d4315acb335247e970db5c1b7bbc99fc5a121" },
    { 1025, "d52467d5b37b29029228c52447c4736856a918015c7e73e0802ac0a43902ac98" },
    { 33792, "2996eed487b53aa806a937c07adf60edd130cc1bbb6cc5f27036d3ab4360d814" },
    { 33001, "21df53b931bf82ddb181c3460c1512a8a6552143e17b98b587f272d50b533be7" },
    { 1100000, "f17f329460d910d7c442f10adbd7ab1495a13afdeb596264dca548faff6cbf2f" },
    { 34603013, "9d0667e380801bbe3cfc7c508601a23df289198f3ae4f558c7074463f9a08980" },
};
enum { KNOWN = sizeof known / sizeof *known };
static const char *const ids[] = { "cpu", "vulkan", "cuda", "opencl" }; /* those that are there */

static hd_context *context;
static hd_device *device;
#define CHECK(call) check((call), #call, __LINE__)
static void check(hd_status status, const char *call, int line) {
    if (status) fail_msg("line %d: %s: %s: %s", line, call, hd_status_name(status), hd_context_error(context));
}

static bool open_device(const char *id) {
    CHECK(hd_context_create(&(hd_context_desc){ .backend = id, .cache_dir = "" }, &context));
    if (!hd_device_open(context, &(hd_device_desc){ .id = id }, &device)) return true;
    hd_context_destroy(context);
    return false;
}

static unsigned char *data_of(uint64_t bytes) {
    unsigned char *data = malloc(bytes);
    assert_non_null(data);
    for (uint64_t i = 0; i < bytes; i++) data[i] = (unsigned char)((i * i * 31 + i * 7 + bytes) >> 3);
    return data;
}

static void is_known(const unsigned char *digest, const char *wanted) {
    char text[65];
    for (int i = 0; i < 32; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(text, wanted);
}

/* The digest of an input as a program has it. */
static void hash_input(hd_dtype dtype, hd_shape shape, const void *data, unsigned char *out) {
    uint32_t words[8];
    hd_plan *plan;
    hd_program *p = hd_program_create(context);
    hd_output(p, "digest", hd_hash(p, hd_input(p, "x", dtype, shape)));
    CHECK(hd_plan_create(device, p, NULL, &plan));
    CHECK(hd_plan_write(plan, "x", data, hd_tensor_bytes(dtype, shape)));
    CHECK(hd_plan_run(plan, NULL));
    CHECK(hd_plan_read(plan, "digest", words, sizeof words));
    for (int i = 0; i < 32; i++) out[i] = (unsigned char)(words[i / 4] >> (24 - i % 4 * 8));
    hd_plan_destroy(plan);
    hd_program_destroy(p);
}

static void known_answers(void **state) {
    (void)state;
    for (size_t d = 0; d < sizeof ids / sizeof *ids; d++) {
        if (!open_device(ids[d])) continue;
        for (size_t k = 0; k < KNOWN; k++) {
            const bool large = known[k].bytes > 2000000;
            if (large && strcmp(ids[d], "opencl") == 0) continue; /* PoCL has seen enough */
            unsigned char digest[32], *data = data_of(known[k].bytes);
            hd_device_stats before, after;
            hd_buffer *buffer;
            if (!large) {
                hash_input(HD_U8, HD_SHAPE((int64_t)known[k].bytes), data, digest);
                is_known(digest, known[k].digest);
            }
            CHECK(hd_buffer_create(device, &(hd_buffer_desc){ .bytes = known[k].bytes + 256 }, &buffer));
            CHECK(hd_buffer_write(buffer, 256, data, known[k].bytes));
            CHECK(hd_device_get_stats(device, &before));
            CHECK(hd_buffer_hash(buffer, 256, known[k].bytes, digest));
            CHECK(hd_device_get_stats(device, &after));
            is_known(digest, known[k].digest);
            assert_true(after.download_bytes - before.download_bytes <= 64);
            hd_buffer_destroy(buffer);
            free(data);
        }
        hd_context_destroy(context);
    }
}

/* Blocks of quantised weights are bytes as others are; a value that is made on the device is the one that is read. */
static void of_any_type(void **state) {
    (void)state;
    for (size_t d = 0; d < sizeof ids / sizeof *ids; d++) {
        if (!open_device(ids[d])) continue;
        unsigned char digest[32], as_bytes[32], *data = data_of(200 * 18);
        for (int i = 1; i < 200 * 18; i += 18) data[i] &= 0x3f; /* scales are finite */
        hash_input(HD_Q4_0, HD_SHAPE(50, 128), data, digest);
        hash_input(HD_U8, HD_SHAPE(200 * 18), data, as_bytes);
        assert_memory_equal(digest, as_bytes, 32);
        hd_program *p = hd_program_create(context);
        const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(30, 30));
        const hd_value y = hd_cast(p, hd_scale(p, hd_transpose(p, x), 0.5f, 1), HD_F16);
        hd_output(p, "y", y);
        hd_output(p, "digest", hd_hash(p, y));
        hd_plan *plan;
        float numbers[900];
        uint16_t halves[900];
        uint32_t words[8];
        for (int i = 0; i < 900; i++) numbers[i] = (float)i / 7;
        CHECK(hd_plan_create(device, p, &(hd_plan_desc){ .math = HD_MATH_EXACT }, &plan));
        CHECK(hd_plan_write(plan, "x", numbers, sizeof numbers));
        CHECK(hd_plan_run(plan, NULL));
        CHECK(hd_plan_read(plan, "y", halves, sizeof halves));
        CHECK(hd_plan_read(plan, "digest", words, sizeof words));
        hash_input(HD_F16, HD_SHAPE(900), halves, as_bytes);
        for (int i = 0; i < 32; i++) assert_int_equal(as_bytes[i], (unsigned char)(words[i / 4] >> (24 - i % 4 * 8)));
        free(data);
        hd_context_destroy(context);
    }
}

static void refusals(void **state) {
    (void)state;
    unsigned char digest[32];
    hd_buffer *buffer;
    assert_true(open_device("cpu"));
    CHECK(hd_buffer_create(device, &(hd_buffer_desc){ .bytes = 1000 }, &buffer));
    assert_int_equal(hd_buffer_hash(buffer, 0, 1000, NULL), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_buffer_hash(buffer, 0, 0, digest), HD_STATUS_ZERO_SIZE);
    assert_int_equal(hd_buffer_hash(buffer, 0, 1001, digest), HD_STATUS_LIMIT);
    assert_int_equal(hd_buffer_hash(buffer, UINT64_MAX, 2, digest), HD_STATUS_LIMIT);
    assert_int_equal(hd_buffer_hash(buffer, 4, 2, digest), HD_STATUS_INVALID_ARGUMENT);
    CHECK(hd_buffer_hash(buffer, 768, 232, digest));
    hd_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(known_answers), cmocka_unit_test(of_any_type), cmocka_unit_test(refusals) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
