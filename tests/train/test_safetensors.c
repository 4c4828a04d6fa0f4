/* test_safetensors.c: safetensors files that others made are read, files that are written are read back, and hostile ones are refused
 * by name: variants, cuts and 10,000 mutations, of memory of exactly their size so that a sanitizer sees each byte too far. */
#define _POSIX_C_SOURCE 200809L
#include "devices.h"
#include "safetensors_check.h"
#include <unistd.h>

static hd_context *context;
static char folder[] = "/tmp/heddle-safetensors-XXXXXX", path[64];

static int begin(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/a.safetensors", folder);
    return hd_context_create(NULL, &context) != HD_OK;
}
static int end(void **state) {
    (void)state;
    hd_context_destroy(context);
    unlink(path);
    return rmdir(folder); /* nothing else was left there */
}

static void check(hd_status status) {
    if (status) fail_msg("%s", hd_context_error(context));
}

/* Made by safetensors 0.8.0 (save_file), with its metadata. */
static void from_others(void **state) {
    (void)state;
    hd_safetensors *file;
    check(hd_safetensors_open(context, HEDDLE_TESTS_DIR "/train/fixtures/small.safetensors", &file));
    assert_int_equal(hd_safetensors_count(file), 5);
    assert_string_equal(hd_safetensors_metadata(file, "made by"), "safetensors 0.8.0");
    assert_null(hd_safetensors_metadata(file, "nothing"));
    const hd_safetensor *wide = hd_safetensors_find(file, "wide"), *scalar = hd_safetensors_find(file, "scalar"), *far = hd_safetensors_find(file, "long");
    assert_true(wide && wide->dtype == HD_F32 && wide->shape.rank == 2 && wide->shape.dims[0] == 2 && wide->shape.dims[1] == 3);
    assert_memory_equal(wide->data, ((const float[]){ 0, 0.25f, 0.5f, 0.75f, 1, 1.25f }), 24);
    assert_true(scalar && scalar->dtype == HD_I32 && scalar->shape.rank == 0 && memcmp(scalar->data, &(int32_t){ 7 }, 4) == 0);
    assert_true(far && far->dtype == HD_DTYPE_NONE && strcmp(far->type, "I64") == 0 && far->bytes == 16);
    assert_true(hd_safetensors_find(file, "half")->dtype == HD_F16 && hd_safetensors_find(file, "bytes")->bytes == 5);
    assert_true(!hd_safetensors_find(file, "none") && !hd_safetensors_get(file, 5) && hd_safetensors_get(file, 0) == far);
    hd_safetensors_close(file);
    assert_true(hd_safetensors_count(file) == 0 && !hd_safetensors_find(file, "wide") && !hd_safetensors_metadata(file, "made by"));
    hd_safetensors_close(file);
}

static const float numbers[6] = { 1, -2, 3e-38f, 0, 5, 6 };
static const uint16_t halves[2] = { 0x3f80, 0x4000 };

static void there_and_back(void **state) {
    (void)state;
    const hd_safetensor tensors[] = { { .name = "a \"b\"\n\xc3\xa9", .dtype = HD_F32, .shape = HD_SHAPE(3, 2), .data = numbers },
                                      { .name = "h", .dtype = HD_BF16, .shape = HD_SHAPE(2), .data = halves },
                                      { .name = "s", .dtype = HD_F32, .shape = { 0, { 0 } }, .data = numbers } };
    const char *const metadata[] = { "format", "pt", NULL };
    hd_safetensors *file;
    for (int round = 0; round < 2; round++) { /* the second one takes the place of the first */
        check(hd_safetensors_write(context, path, tensors, 3, metadata));
        check(hd_safetensors_open(context, path, &file));
        assert_int_equal(hd_safetensors_count(file), 3);
        for (size_t i = 0; i < 3; i++) {
            const hd_safetensor *read = hd_safetensors_get(file, i);
            assert_string_equal(read->name, tensors[i].name);
            assert_true(read->dtype == tensors[i].dtype && memcmp(&read->shape, &tensors[i].shape, sizeof read->shape) == 0);
            assert_memory_equal(read->data, tensors[i].data, read->bytes);
        }
        assert_true((uintptr_t)hd_safetensors_get(file, 0)->data % 8 == 0);
        assert_string_equal(hd_safetensors_metadata(file, "format"), "pt");
        hd_safetensors_close(file);
    }
    check(hd_safetensors_write(context, path, NULL, 0, NULL));
    check(hd_safetensors_open(context, path, &file));
    assert_int_equal(hd_safetensors_count(file), 0);
    hd_safetensors_close(file);
}

static void not_written(void **state) {
    (void)state;
    const hd_safetensor good = { .name = "a", .dtype = HD_F32, .shape = HD_SHAPE(6), .data = numbers };
    hd_safetensor bad[2] = { good, good };
    check(hd_safetensors_write(context, path, &good, 1, NULL));
    assert_int_equal(hd_safetensors_write(context, path, bad, 2, NULL), HD_STATUS_NAME_TAKEN);
    bad[0].name = "__metadata__";
    assert_int_equal(hd_safetensors_write(context, path, bad, 1, NULL), HD_STATUS_NAME_TAKEN);
    bad[0] = (hd_safetensor){ .name = "q", .dtype = HD_Q4_0, .shape = HD_SHAPE(32), .data = numbers };
    assert_int_equal(hd_safetensors_write(context, path, bad, 1, NULL), HD_STATUS_TYPE);
    bad[0] = (hd_safetensor){ .name = "n", .dtype = HD_F32, .shape = HD_SHAPE(6) };
    assert_int_equal(hd_safetensors_write(context, path, bad, 1, NULL), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_safetensors_write(context, "/nowhere/at/all", &good, 1, NULL), HD_STATUS_IO);
    hd_safetensors *file;
    check(hd_safetensors_open(context, path, &file)); /* the old file is still there */
    assert_int_equal(hd_safetensors_count(file), 1);
    hd_safetensors_close(file);
    assert_int_equal(hd_safetensors_open(context, "/nowhere/at/all", &file), HD_STATUS_IO);
    assert_null(file);
    assert_int_equal(hd_safetensors_open(context, folder, &file), HD_STATUS_IO);
    while (hd_context_error(context)[0]) continue;
}

/* ---- hostile files ---- */

static size_t put(uint8_t *out, const char *header, size_t data_bytes) {
    const size_t length = strlen(header);
    for (int i = 0; i < 8; i++) out[i] = (uint8_t)((uint64_t)length >> (8 * i));
    memcpy(out + 8, header, length);
    memset(out + 8 + length, 1, data_bytes);
    return 8 + length + data_bytes;
}

static hd_status judge(const uint8_t *bytes, size_t count) {
    hd_status status = HD_OK;
    uint8_t *copy = malloc(count ? count : 1);
    if (count) memcpy(copy, bytes, count);
    const char *wrong = safetensors_wrong(context, copy, count, &status);
    free(copy);
    if (wrong) fail_msg("%s", wrong);
    return status;
}

#define A(shape, ends) "{\"a\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" ends "}}"
static const struct { const char *header; size_t bytes; hd_status status; const char *text; } variants[] = {
    { A("[2]", "[0,8]"), 8, HD_OK, "" }, { "{}", 0, HD_OK, "" }, { "{\"__metadata__\":{}}  ", 0, HD_OK, "" },
    { A("[2]", "[0,8]"), 7, HD_STATUS_PARSE, "outside" }, { A("[2]", "[0,8]"), 9, HD_STATUS_PARSE, "behind its last" },
    { A("[2]", "[1,9]"), 9, HD_STATUS_PARSE, "gap" }, { A("[2]", "[8,0]"), 8, HD_STATUS_PARSE, "outside" },
    { A("[2]", "[0,4]"), 8, HD_STATUS_PARSE, "other bytes" }, { A("[-2]", "[0,8]"), 8, HD_STATUS_PARSE, "whole numbers" },
    { A("[2]", "[-8,0]"), 8, HD_STATUS_PARSE, "outside" }, { A("[2.0]", "[0,8]"), 8, HD_STATUS_PARSE, "whole numbers" },
    { A("[4611686018427387904,4]", "[0,0]"), 8, HD_STATUS_PARSE, "larger than the file" },
    { A("[4294967296,4294967296]", "[0,0]"), 0, HD_STATUS_PARSE, "larger than the file" },
    { A("[9223372036854775808]", "[0,8]"), 8, HD_STATUS_PARSE, "no JSON object" }, { A("[0]", "[0,0]"), 0, HD_STATUS_UNSUPPORTED, "length 0" },
    { A("[1,1,1,1,1,1,2]", "[0,8]"), 8, HD_STATUS_UNSUPPORTED, "more than 6 axes" }, { A("2", "[0,8]"), 8, HD_STATUS_PARSE, "lacks" },
    { A("[2]", "[0]"), 8, HD_STATUS_PARSE, "outside" }, { A("[2]", "[0,8,8]"), 8, HD_STATUS_PARSE, "outside" }, { A("[2]", "\"08\""), 8, HD_STATUS_PARSE, "outside" },
    { "{\"a\":{\"dtype\":\"F31\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, HD_STATUS_UNSUPPORTED, "not known" },
    { "{\"a\":{\"dtype\":4,\"shape\":[2],\"data_offsets\":[0,8]}}", 8, HD_STATUS_PARSE, "lacks" }, { "{\"a\":[]}", 0, HD_STATUS_PARSE, "lacks" },
    { "{\"a\":null}", 0, HD_STATUS_PARSE, "lacks" }, { "[]", 0, HD_STATUS_PARSE, "is no safetensors file" }, { "", 0, HD_STATUS_PARSE, "is no safetensors file" },
    { "{", 0, HD_STATUS_PARSE, "no JSON object" }, { "{} x", 0, HD_STATUS_PARSE, "no JSON object" }, { "{\"\xff\":1}", 0, HD_STATUS_PARSE, "no JSON object" },
    { "{\"__metadata__\":[]}", 0, HD_STATUS_PARSE, "object of texts" }, { "{\"__metadata__\":{\"a\":1}}", 0, HD_STATUS_PARSE, "object of texts" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}", 8, HD_STATUS_PARSE, "no JSON object" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}", 6, HD_STATUS_PARSE, "overlaps" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, HD_STATUS_PARSE, "overlaps" },
    { "{\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]},\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 8, HD_OK, "" },
};

static void refused_by_name(void **state) {
    (void)state;
    uint8_t bytes[1024];
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        const hd_status status = judge(bytes, put(bytes, variants[i].header, variants[i].bytes));
        const char *text = hd_context_error(context);
        if (status != variants[i].status || !strstr(text, variants[i].text)) fail_msg("%s: %s, \"%s\"", variants[i].header, hd_status_name(status), text);
    }
    for (size_t i = 0; i < 8; i++) assert_int_equal(judge(bytes, i), HD_STATUS_PARSE);
    memset(bytes, 0xff, 8);
    hd_context_error(context);
    assert_int_equal(judge(bytes, 100), HD_STATUS_LIMIT);
    hd_context_error(context);
}

static uint32_t seed = 1;
static uint32_t chance(uint32_t below) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

static void mutated(void **state) {
    (void)state;
    hdt_map map;
    uint8_t bytes[2048];
    int accepted = 0;
    check(hdt_map_open(context, HEDDLE_TESTS_DIR "/train/fixtures/small.safetensors", &map));
    for (uint64_t cut = 0; cut < map.count; cut++) assert_true(judge(map.bytes, (size_t)cut) != HD_OK);
    for (int i = 0; i < 20000; i++) {
        static const char digits[] = "0123456789[],:{}\"-";
        size_t count = (size_t)map.count;
        memcpy(bytes, map.bytes, count);
        for (uint32_t k = 1 + chance(3); k-- > 0;) {
            const uint32_t at = chance((uint32_t)count), to = chance((uint32_t)count), length = chance(12);
            switch (chance(4)) {
            case 0: bytes[at] ^= (uint8_t)(1u << chance(8)); break;
            case 1: bytes[at] = (uint8_t)digits[chance(sizeof digits - 1)]; break;
            case 2: memmove(bytes + at, bytes + to, length < count - (at > to ? at : to) ? length : 0); break;
            default: count -= chance(4) == 0 ? chance((uint32_t)count / 4) : 0;
            }
        }
        accepted += judge(bytes, count) == HD_OK;
        hd_context_error(context);
    }
    print_message("%d of 20000 accepted, and understood\n", accepted);
    assert_true(accepted > 100 && accepted < 19000);
    hdt_map_close(&map);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(from_others), cmocka_unit_test(there_and_back), cmocka_unit_test(not_written),
                                        cmocka_unit_test(refused_by_name), cmocka_unit_test(mutated) };
    return cmocka_run_group_tests(tests, begin, end);
}
