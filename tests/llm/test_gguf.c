/* test_gguf.c: the GGUF reader and writer: a file made by another package read back equal, what each getter refuses, split
 * models, the system's files. What hostile files do is in test_gguf_hostile.c. */
#define _XOPEN_SOURCE 700
#include "hostile.h"
#include "fixtures/gguf_fixture.h"
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static bool to_blob(void *user, const void *bytes, uint64_t count) {
    blob *b = user;
    while (b->count + count > b->room) b->room = b->room ? b->room * 2 : 4096;
    b->bytes = realloc(b->bytes, b->room);
    if (!b->bytes) return false;
    if (count) memcpy(b->bytes + b->count, bytes, count);
    b->count += count;
    return true;
}

/* Ends the writer; its file in memory. */
static blob written(hdl_gguf_writer *writer) {
    blob b = { 0 };
    hd_error error = { 0 };
    if (hdl_gguf_write(writer, to_blob, &b, &error)) fail_msg("%s", error.text);
    hdl_gguf_writer_destroy(writer);
    return b;
}

static hdl_gguf *opened(memory_files *memory, hd_error *error) {
    const hdl_files files = memory_table(memory);
    hdl_gguf *gguf = NULL;
    *error = (hd_error){ 0 };
    hdl_gguf_open(memory->files[0].path, &(hdl_gguf_desc){ .files = &files }, &gguf, error);
    return gguf;
}

static void expect(hd_error *error, hd_status status, const char *text) {
    assert_int_equal(error->status, status);
    if (!strstr(error->text, text)) fail_msg("\"%s\" does not hold \"%s\"", error->text, text);
    *error = (hd_error){ 0 };
}

/* ---- a file of another package ---- */

static uint64_t fnv(const uint8_t *bytes, uint64_t count) {
    uint64_t value = UINT64_C(0xcbf29ce484222325);
    for (uint64_t i = 0; i < count; i++) value = (value ^ bytes[i]) * UINT64_C(0x100000001b3);
    return value;
}

static void check_fixture_keys(const hdl_gguf *g) {
    static const struct { const char *name; hdl_gguf_kind kind; int64_t value; } numbers[] = {
        { "t.u8", HDL_GGUF_U8, 200 }, { "t.i8", HDL_GGUF_I8, -100 }, { "t.u16", HDL_GGUF_U16, 60000 }, { "t.i16", HDL_GGUF_I16, -30000 },
        { "t.u32", HDL_GGUF_U32, 4000000000 }, { "t.i32", HDL_GGUF_I32, -2000000000 }, { "t.bool", HDL_GGUF_BOOL, 1 },
        { "t.u64", HDL_GGUF_U64, INT64_MAX /* holds 2^63 */ }, { "t.i64", HDL_GGUF_I64, -(INT64_C(1) << 62) },
    };
    static const struct { const char *name; hdl_gguf_kind kind; int64_t first, second; } arrays[] = {
        { "t.array.uint8", HDL_GGUF_U8, 0, 255 }, { "t.array.int8", HDL_GGUF_I8, -128, 127 }, { "t.array.uint16", HDL_GGUF_U16, 0, 65535 },
        { "t.array.int16", HDL_GGUF_I16, -32768, 32767 }, { "t.array.uint32", HDL_GGUF_U32, 7, INT64_C(1) << 31 },
        { "t.array.uint64", HDL_GGUF_U64, 1, INT64_C(1) << 40 }, { "t.array.int64", HDL_GGUF_I64, -5, INT64_C(1) << 40 },
    };
    hdl_gguf_value value;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        assert_true(hdl_gguf_find(g, numbers[i].name, &value));
        assert_int_equal(value.kind, numbers[i].kind);
        assert_true(hdl_gguf_integer(&value, 0) == numbers[i].value);
    }
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        assert_int_equal(hdl_gguf_get_array(g, arrays[i].name, arrays[i].kind, 2, 2, &value, NULL), HD_OK);
        assert_true(hdl_gguf_integer(&value, 0) == arrays[i].first && hdl_gguf_integer(&value, 1) == arrays[i].second);
    }
    assert_true(hdl_gguf_find(g, "t.f32", &value) && hdl_gguf_float(&value, 0) == 0.15625);
    assert_true(hdl_gguf_find(g, "t.f64", &value) && hdl_gguf_float(&value, 0) == -1e300);
    assert_true(hdl_gguf_find(g, "t.array.float64", &value) && hdl_gguf_float(&value, 0) == 0.1 && hdl_gguf_float(&value, 1) == 2.0);
    assert_int_equal(hdl_gguf_get_array(g, "t.f32s", HDL_GGUF_F32, 3, 3, &value, NULL), HD_OK);
    assert_true(hdl_gguf_float(&value, 1) == -0.25);
    assert_int_equal(hdl_gguf_get_array(g, "t.bools", HDL_GGUF_BOOL, 3, 3, &value, NULL), HD_OK);
    assert_true(hdl_gguf_integer(&value, 0) == 1 && hdl_gguf_integer(&value, 1) == 0 && hdl_gguf_integer(&value, 2) == 1);
    hdl_span text;
    assert_int_equal(hdl_gguf_get_text(g, "t.string", (hdl_span){ 0 }, &text, NULL), HD_OK);
    assert_true(hdl_same(text, hdl_text("h\xc3\xa9" "ddle \xe7\xb9\x94\xe6\xa9\x9f")));
    assert_int_equal(hdl_gguf_get_array(g, "t.strings", HDL_GGUF_STRING, 4, 4, &value, NULL), HD_OK);
    uint64_t at = 0;
    assert_true(hdl_gguf_next_text(&value, &at, &text) && text.count == 0);
    assert_true(hdl_gguf_next_text(&value, &at, &text) && hdl_same(text, hdl_text("a")));
    assert_true(hdl_gguf_next_text(&value, &at, &text) && hdl_same(text, hdl_text("\xe2\x98\x83 snow")));
    assert_true(hdl_gguf_next_text(&value, &at, &text) && text.count == 300 && text.bytes[299] == 'x');
    assert_false(hdl_gguf_next_text(&value, &at, &text));
}

static const uint8_t *map_nothing(void *user, hdl_file file, uint64_t bytes) {
    (void)user;
    (void)file;
    (void)bytes;
    return NULL;
}

static void fixture_with(bool no_map) {
    hd_error error = { 0 };
    hdl_gguf *g = NULL;
    hdl_files files = hdl_system_files;
    if (no_map) files.map = map_nothing;
    hdl_gguf_open(HEDDLE_TESTS_DIR "/llm/fixtures/all_types.gguf", &(hdl_gguf_desc){ .files = &files }, &g, &error);
    if (!g) fail_msg("%s", error.text);
    const hdl_gguf_info info = hdl_gguf_get_info(g);
    assert_int_equal(info.version, 3);
    assert_int_equal(info.key_count, FIXTURE_KEYS);
    assert_int_equal(info.tensor_count, sizeof fixture_tensors / sizeof fixture_tensors[0]);
    assert_int_equal(info.trailing_bytes, 0);
    assert_int_equal(info.mapped, !no_map);
    check_fixture_keys(g);
    for (uint32_t i = 0; i < info.tensor_count; i++) {
        hdl_gguf_tensor tensor;
        hdl_span data;
        assert_true(hdl_gguf_find_tensor(g, fixture_tensors[i].name, &tensor));
        assert_int_equal(tensor.number, i);
        assert_int_equal(tensor.type, fixture_tensors[i].type);
        assert_int_equal(tensor.shape.rank, fixture_tensors[i].rank);
        for (uint32_t axis = 0; axis < tensor.shape.rank; axis++)
            assert_int_equal(tensor.shape.dims[tensor.shape.rank - 1 - axis], fixture_tensors[i].lengths[axis]);
        assert_true(tensor.offset == fixture_tensors[i].offset && tensor.bytes == fixture_tensors[i].bytes);
        if (!hdl_gguf_type_info(tensor.type).usable) {
            assert_int_equal(hdl_gguf_data(g, &tensor, &data, &error), HD_STATUS_UNSUPPORTED);
            expect(&error, HD_STATUS_UNSUPPORTED, hdl_gguf_type_info(tensor.type).name);
            continue;
        }
        assert_int_equal(hdl_gguf_data(g, &tensor, &data, &error), HD_OK);
        assert_true(fnv(data.bytes, data.count) == fixture_tensors[i].hash);
        uint8_t piece[7];
        assert_int_equal(hdl_gguf_read(g, &tensor, 3, sizeof piece, piece, &error), HD_OK);
        assert_memory_equal(piece, data.bytes + 3, sizeof piece);
    }
    hdl_gguf_close(g);
}

static void fixture_reads_back_equal(void **state) {
    (void)state;
    fixture_with(false);
    fixture_with(true);
}

static void sizes_are_the_packages(void **state) {
    (void)state;
    uint32_t known = 0;
    for (size_t i = 0; i < sizeof fixture_sizes / sizeof fixture_sizes[0]; i++) {
        const hdl_gguf_type_facts facts = hdl_gguf_type_info(fixture_sizes[i][0]);
        assert_int_equal(facts.block_elements, fixture_sizes[i][1]);
        assert_int_equal(facts.block_bytes, fixture_sizes[i][2]);
    }
    for (uint32_t type = 0; type < 100; type++) {
        const hd_dtype dtype = hdl_gguf_dtype(type);
        const hdl_gguf_type_facts facts = hdl_gguf_type_info(type);
        known += facts.block_elements != 0;
        if (dtype) assert_int_equal(hd_dtype_bytes(dtype, 512), 512 / facts.block_elements * facts.block_bytes);
    }
    assert_int_equal(known, sizeof fixture_sizes / sizeof fixture_sizes[0] + 3 /* i2_s, tl1, tl2 */);
    static const struct { hdl_gguf_type type; hd_dtype dtype;
    } pairs[] = {
        { HDL_GGUF_TYPE_Q4_K, HD_Q4_K },       { HDL_GGUF_TYPE_Q4_1, HD_Q4_1 },   { HDL_GGUF_TYPE_Q5_0, HD_Q5_0 },
        { HDL_GGUF_TYPE_Q5_1, HD_Q5_1 },       { HDL_GGUF_TYPE_Q2_K, HD_Q2_K },   { HDL_GGUF_TYPE_Q3_K, HD_Q3_K },
        { HDL_GGUF_TYPE_Q5_K, HD_Q5_K },       { HDL_GGUF_TYPE_TQ1_0, HD_TQ1_0 }, { HDL_GGUF_TYPE_TQ2_0, HD_TQ2_0 },
        { HDL_GGUF_TYPE_IQ4_NL, HD_IQ4_NL },   { HDL_GGUF_TYPE_IQ4_XS, HD_IQ4_XS }, { HDL_GGUF_TYPE_MXFP4, HD_MXFP4 },
        { HDL_GGUF_TYPE_IQ2_XXS, HD_IQ2_XXS }, { HDL_GGUF_TYPE_IQ2_XS, HD_IQ2_XS }, { HDL_GGUF_TYPE_IQ2_S, HD_IQ2_S },
        { HDL_GGUF_TYPE_IQ3_XXS, HD_IQ3_XXS }, { HDL_GGUF_TYPE_IQ3_S, HD_IQ3_S }, { HDL_GGUF_TYPE_IQ1_S, HD_IQ1_S },
        { HDL_GGUF_TYPE_IQ1_M, HD_IQ1_M },
        { HDL_GGUF_TYPE_I2_S, HD_DTYPE_NONE }, /* see ternary.h */
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) assert_int_equal(hdl_gguf_dtype(pairs[i].type), pairs[i].dtype);
    assert_int_equal(hdl_gguf_dtype(HDL_GGUF_TYPE_NVFP4), HD_DTYPE_NONE);
    assert_int_equal(hdl_gguf_tensor_bytes(HDL_GGUF_TYPE_I2_S, HD_SHAPE(2, 64)), 32 + 32);
    assert_int_equal(hdl_gguf_tensor_bytes(HDL_GGUF_TYPE_TL1, HD_SHAPE(4096, 4096)), 4096 * 4096 / 4 + 32);
    assert_int_equal(hdl_gguf_tensor_bytes(HDL_GGUF_TYPE_TL2, HD_SHAPE(1536, 1536)), 507936);
}

/* ---- getters: what metadata says and what a model can be ---- */

/* A model with keys of many kinds, and what no model can be. */
static blob metadata(void) {
    const float nan_value = NAN;
    const double large = 1e300;
    const int32_t minus = -1;
    const uint64_t huge = UINT64_C(1) << 63;
    const uint32_t heads[3] = { 8, 4, 8 };
    const uint8_t narrow[3] = { 2, 2, 2 };
    hdl_gguf_writer *w = hdl_gguf_writer_create(NULL, 64);
    hdl_gguf_put_u32(w, "blocks", 0);
    hdl_gguf_put_u32(w, "context", UINT32_MAX);
    hdl_gguf_put_number(w, "minus", HDL_GGUF_I32, &minus);
    hdl_gguf_put_number(w, "huge", HDL_GGUF_U64, &huge);
    hdl_gguf_put_f32(w, "nan", nan_value);
    hdl_gguf_put_number(w, "large", HDL_GGUF_F64, &large);
    hdl_gguf_put_f32(w, "eps", 1e-5f);
    hdl_gguf_put_bool(w, "flag", true);
    hdl_gguf_put_text(w, "name", hdl_text("llama"));
    hdl_gguf_put_numbers(w, "heads", HDL_GGUF_U32, heads, 3);
    hdl_gguf_put_numbers(w, "narrow", HDL_GGUF_U8, narrow, 3);
    hdl_gguf_put_texts(w, "tokens", (const hdl_span[]){ hdl_text("a"), hdl_text("b") }, 2);
    return written(w);
}

static void number_getters_check_type_and_range(void **state) {
    (void)state;
    blob b = metadata();
    memory_files memory = { .files = { { "m.gguf", b.bytes, b.count } }, .file_count = 1 };
    hd_error error;
    hdl_gguf *g = opened(&memory, &error);
    assert_non_null(g);
    assert_int_equal(hdl_gguf_get_info(g).alignment, 64);
    uint32_t u;
    int32_t s;
    float f;
    hdl_gguf_get_u32(g, "blocks", 1, 1024, 1, &u, &error);
    expect(&error, HD_STATUS_LIMIT, "m.gguf: key 'blocks' is 0, must be 1 to 1024, byte ");
    hdl_gguf_get_u32(g, "context", 1, 1 << 24, 1, &u, &error);
    expect(&error, HD_STATUS_LIMIT, "key 'context' is 4294967295");
    hdl_gguf_get_u32(g, "minus", 0, UINT32_MAX, 1, &u, &error);
    expect(&error, HD_STATUS_LIMIT, "key 'minus' is -1");
    hdl_gguf_get_u32(g, "huge", 0, UINT32_MAX, 1, &u, &error);
    expect(&error, HD_STATUS_LIMIT, "key 'huge' is 9223372036854775807");
    hdl_gguf_get_u32(g, "name", 0, 1, 1, &u, &error);
    expect(&error, HD_STATUS_TYPE, "key 'name' has type string, wanted u32");
    hdl_gguf_get_u32(g, "heads", 0, 100, 1, &u, &error);
    expect(&error, HD_STATUS_TYPE, "key 'heads' has type array of u32, wanted u32");
    assert_int_equal(hdl_gguf_get_i32(g, "minus", -5, 5, 0, &s, &error), HD_OK);
    assert_int_equal(s, -1);
    assert_int_equal(hdl_gguf_get_u32(g, "missing", 5, 6, 7, &u, &error), HD_OK);
    assert_int_equal(u, 7);
    hdl_gguf_need(g, "missing", &error);
    expect(&error, HD_STATUS_NAME_NOT_FOUND, "key 'missing' is missing");
    assert_int_equal(hdl_gguf_get_f32(g, "eps", 0, 1, 0, &f, &error), HD_OK);
    assert_true(f == 1e-5f);
    hdl_gguf_get_f32(g, "nan", -1, 1, 0, &f, &error);
    expect(&error, HD_STATUS_LIMIT, "key 'nan' is nan");
    hdl_gguf_get_f32(g, "large", -3e38f, 3e38f, 0, &f, &error);
    expect(&error, HD_STATUS_LIMIT, "key 'large' is 1e+300");
    hdl_gguf_get_f32(g, "blocks", 0, 1, 0, &f, &error);
    expect(&error, HD_STATUS_TYPE, "has type u32, wanted f32");
    hdl_gguf_close(g);
    blob_free(&b);
}

static void other_getters_check_type_and_range(void **state) {
    (void)state;
    blob b = metadata();
    memory_files memory = { .files = { { "m.gguf", b.bytes, b.count } }, .file_count = 1 };
    hd_error error;
    hdl_gguf *g = opened(&memory, &error);
    assert_non_null(g);
    uint32_t many[4];
    bool flag;
    hdl_span text;
    hdl_gguf_value array;
    assert_int_equal(hdl_gguf_get_bool(g, "flag", false, &flag, &error), HD_OK);
    assert_true(flag);
    hdl_gguf_get_bool(g, "blocks", false, &flag, &error);
    expect(&error, HD_STATUS_TYPE, "wanted bool");
    assert_int_equal(hdl_gguf_get_text(g, "name", hdl_text("x"), &text, &error), HD_OK);
    assert_true(hdl_same(text, hdl_text("llama")));
    hdl_gguf_get_text(g, "tokens", hdl_text("x"), &text, &error);
    expect(&error, HD_STATUS_TYPE, "has type array of string, wanted string");
    hdl_gguf_get_array(g, "tokens", HDL_GGUF_F32, 0, 9, &array, &error);
    expect(&error, HD_STATUS_TYPE, "has type array of string, wanted array of f32");
    hdl_gguf_get_array(g, "narrow", HDL_GGUF_I32, 0, 9, &array, &error); /* scores of one byte each, read as four */
    expect(&error, HD_STATUS_TYPE, "has type array of u8, wanted array of i32");
    hdl_gguf_get_array(g, "tokens", HDL_GGUF_STRING, 3, 9, &array, &error);
    expect(&error, HD_STATUS_LIMIT, "has 2 elements, must be 3 to 9");
    assert_int_equal(hdl_gguf_get_u32s(g, "heads", 1, 64, 3, many, &error), HD_OK);
    assert_true(many[0] == 8 && many[1] == 4 && many[2] == 8);
    hdl_gguf_get_u32s(g, "heads", 1, 64, 4, many, &error);
    expect(&error, HD_STATUS_SHAPE, "has 3 elements, wanted 4, one for each layer");
    hdl_gguf_get_u32s(g, "heads", 1, 7, 3, many, &error);
    expect(&error, HD_STATUS_LIMIT, "key 'heads' is 8");
    assert_int_equal(hdl_gguf_get_u32s(g, "narrow", 1, 64, 3, many, &error), HD_OK);
    assert_int_equal(many[2], 2);
    hdl_gguf_get_u32s(g, "tokens", 1, 7, 2, many, &error);
    expect(&error, HD_STATUS_TYPE, "wanted u32 or an array of it");
    hdl_gguf_close(g);
    blob_free(&b);
}

static void tensors_are_asked_for_by_shape(void **state) {
    (void)state;
    static const float data[24];
    hdl_gguf_writer *w = hdl_gguf_writer_create(NULL, 0);
    hdl_gguf_put_tensor(w, hdl_text("t"), HDL_GGUF_TYPE_F32, HD_SHAPE(4, 6), data);
    hdl_gguf_put_tensor(w, hdl_text("row"), HDL_GGUF_TYPE_F32, HD_SHAPE(6), data);
    hdl_gguf_put_tensor(w, hdl_text("nv"), HDL_GGUF_TYPE_NVFP4, HD_SHAPE(64), data);
    blob b = written(w);
    memory_files memory = { .files = { { "m.gguf", b.bytes, b.count } }, .file_count = 1 };
    hd_error error;
    hdl_gguf *g = opened(&memory, &error);
    hdl_gguf_tensor tensor;
    assert_int_equal(hdl_gguf_need_tensor(g, "t", HD_SHAPE(4, 6), &tensor, &error), HD_OK);
    assert_int_equal(hdl_gguf_need_tensor(g, "row", HD_SHAPE(1, 6), &tensor, &error), HD_OK);
    assert_int_equal(tensor.shape.rank, 2);
    hdl_gguf_need_tensor(g, "t", HD_SHAPE(6, 4), &tensor, &error);
    expect(&error, HD_STATUS_SHAPE, "tensor 't' has shape [4,6], wanted [6,4]");
    hdl_gguf_need_tensor(g, "t", HD_SHAPE(24), &tensor, &error);
    expect(&error, HD_STATUS_SHAPE, "wanted [24]");
    hdl_gguf_need_tensor(g, "u", HD_SHAPE(4, 6), &tensor, &error);
    expect(&error, HD_STATUS_NAME_NOT_FOUND, "tensor 'u' is missing");
    hdl_gguf_need_tensor(g, "nv", HD_SHAPE(64), &tensor, &error);
    expect(&error, HD_STATUS_UNSUPPORTED, "has type nvfp4");
    assert_true(hdl_gguf_find_tensor(g, "t", &tensor));
    uint8_t out[4];
    hdl_gguf_read(g, &tensor, 93, 4, out, &error);
    expect(&error, HD_STATUS_INVALID_ARGUMENT, "4 bytes from 93 on are not within tensor 't'");
    hdl_gguf_read(g, &tensor, UINT64_MAX, 4, out, &error);
    expect(&error, HD_STATUS_INVALID_ARGUMENT, "not within tensor");
    tensor.number = 3;
    hdl_gguf_read(g, &tensor, 0, 4, out, &error);
    expect(&error, HD_STATUS_INVALID_ARGUMENT, "the tensor is not of this model");
    hdl_gguf_close(g);
    blob_free(&b);
}

static void rows_with_nan_or_zeros_are_found(void **state) {
    (void)state;
    static const struct { uint32_t type, at;
    } scales[] = {
        { HDL_GGUF_TYPE_Q4_0, 0 },   { HDL_GGUF_TYPE_Q4_1, 2 },   { HDL_GGUF_TYPE_Q5_0, 0 },
        { HDL_GGUF_TYPE_Q5_1, 0 },   { HDL_GGUF_TYPE_Q8_0, 0 },   { HDL_GGUF_TYPE_Q2_K, 82 },
        { HDL_GGUF_TYPE_Q3_K, 108 }, { HDL_GGUF_TYPE_Q4_K, 2 },   { HDL_GGUF_TYPE_Q5_K, 0 },
        { HDL_GGUF_TYPE_Q6_K, 208 }, { HDL_GGUF_TYPE_TQ1_0, 52 }, { HDL_GGUF_TYPE_TQ2_0, 64 },
        { HDL_GGUF_TYPE_IQ4_NL, 0 }, { HDL_GGUF_TYPE_IQ4_XS, 0 }, { HDL_GGUF_TYPE_F16, 0 },    { HDL_GGUF_TYPE_BF16, 0 },
        { HDL_GGUF_TYPE_IQ2_XXS, 0 }, { HDL_GGUF_TYPE_IQ2_XS, 0 }, { HDL_GGUF_TYPE_IQ2_S, 0 }, { HDL_GGUF_TYPE_IQ3_XXS, 0 },
        { HDL_GGUF_TYPE_IQ3_S, 0 },  { HDL_GGUF_TYPE_IQ1_S, 0 },
    };
    hdl_gguf_rows rows;
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
        uint8_t data[6 * 256] = { 0 };
        const hdl_gguf_type_facts facts = hdl_gguf_type_info(scales[i].type);
        const uint32_t size = facts.block_bytes, row = facts.block_elements * 2;
        for (uint32_t r = 0; r < 3; r++) data[(2 * r + 1) * size + scales[i].at + 1] = 0x3c; /* a scale of about one */
        assert_true(hdl_gguf_check_rows(scales[i].type, row, data, 6 * size, &rows));
        assert_true(rows.rows == 3 && rows.bad_rows == 0 && rows.zero_rows == 0);
        data[3 * size + scales[i].at + 1] = 0x80; /* minus zero */
        data[5 * size + scales[i].at] = 0x80;
        data[5 * size + scales[i].at + 1] = 0x7f; /* NaN as f16, infinity as bf16 */
        assert_true(hdl_gguf_check_rows(scales[i].type, row, data, 6 * size, &rows));
        assert_true(rows.bad_rows == 1 && rows.first_bad == 2 && rows.zero_rows == 1 && rows.first_zero == 1);
        assert_false(hdl_gguf_check_rows(scales[i].type, row, data, 5 * size, &rows));
        assert_false(facts.block_elements > 1 && hdl_gguf_check_rows(scales[i].type, 2, data, size, &rows));
    }
    uint8_t spread[4 * 56] = { 0 }; /* iq1_m: an f16 in the upper 4 bits of words 24 to 27 of a block */
    memset(spread, 0xFF, 48);
    memset(spread + 48, 0x0F, 8);
    spread[55] = 0x80;
    spread[3 * 56 + 53] = 0xC0;
    spread[3 * 56 + 55] = 0x70;
    assert_true(hdl_gguf_check_rows(HDL_GGUF_TYPE_IQ1_M, 512, spread, sizeof spread, &rows));
    assert_true(rows.rows == 2 && rows.bad_rows == 1 && rows.first_bad == 1 && rows.zero_rows == 1 && rows.first_zero == 0);
    spread[3 * 56 + 53] = 0x80;
    assert_true(hdl_gguf_check_rows(HDL_GGUF_TYPE_IQ1_M, 512, spread, sizeof spread, &rows) && rows.bad_rows == 0);
    const float plain[4] = { 1, -INFINITY, 0, -0.0f };
    assert_true(hdl_gguf_check_rows(HDL_GGUF_TYPE_F32, 2, plain, sizeof plain, &rows));
    assert_true(rows.bad_rows == 1 && rows.first_bad == 0 && rows.zero_rows == 1 && rows.first_zero == 1);
}

/* ---- split models ---- */

static blob part_of(uint16_t number, uint16_t count, uint32_t tensors, const char *tensor) {
    static const float data[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    hdl_gguf_writer *w = hdl_gguf_writer_create(NULL, 0);
    hdl_gguf_put_number(w, "split.no", HDL_GGUF_U16, &number);
    hdl_gguf_put_number(w, "split.count", HDL_GGUF_U16, &count);
    hdl_gguf_put_number(w, "split.tensors.count", HDL_GGUF_I32, &tensors);
    if (number == 0) hdl_gguf_put_text(w, "general.name", hdl_text("parts"));
    hdl_gguf_put_tensor(w, hdl_text(tensor), HDL_GGUF_TYPE_F32, HD_SHAPE(2, 2), data + number);
    return written(w);
}

typedef struct parts {
    blob         part[3];
    memory_files memory;
} parts;
static void make_parts(parts *p) {
    static const char *paths[3] = { "dir/m-00001-of-00003.gguf", "dir/m-00002-of-00003.gguf", "dir/m-00003-of-00003.gguf" };
    static const char *names[3] = { "a", "b", "c" };
    *p = (parts){ .memory.file_count = 3 };
    for (uint16_t i = 0; i < 3; i++) p->part[i] = part_of(i, 3, 3, names[i]);
    for (uint16_t i = 0; i < 3; i++) {
        p->memory.files[i].path = paths[i];
        p->memory.files[i].bytes = p->part[i].bytes;
        p->memory.files[i].count = p->part[i].count;
    }
}
static void free_parts(parts *p) {
    assert_true(p->memory.open_files == 0 && p->memory.maps == 0);
    for (int i = 0; i < 3; i++) blob_free(&p->part[i]);
}

static void split_models_are_one(void **state) {
    (void)state;
    parts p;
    hd_error error;
    make_parts(&p);
    hdl_gguf *g = opened(&p.memory, &error);
    if (!g) fail_msg("%s", error.text);
    assert_int_equal(hdl_gguf_get_info(g).part_count, 3);
    assert_int_equal(hdl_gguf_get_info(g).tensor_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        hdl_span data;
        float first;
        const hdl_gguf_tensor tensor = hdl_gguf_tensor_at(g, i);
        assert_int_equal(tensor.part, i);
        assert_int_equal(hdl_gguf_data(g, &tensor, &data, &error), HD_OK);
        memcpy(&first, data.bytes, sizeof first);
        assert_true(first == (float)(i + 1));
    }
    hdl_gguf_tensor tensor;
    assert_true(hdl_gguf_find_tensor(g, "c", &tensor));
    hdl_gguf_close(g);
    free_parts(&p);
}

/* Puts `with` in place of part `number`, and takes the error. */
static void refused_part(uint32_t number, blob with, hd_status status, const char *text) {
    parts p;
    hd_error error;
    make_parts(&p);
    p.memory.files[number].bytes = with.bytes;
    p.memory.files[number].count = with.count;
    assert_null(opened(&p.memory, &error));
    expect(&error, status, text);
    free_parts(&p);
    blob_free(&with);
}

static void split_models_are_checked(void **state) {
    (void)state;
    parts p;
    hd_error error;
    refused_part(1, part_of(2, 3, 3, "b"), HD_STATUS_PARSE,
                 "m-00002-of-00003.gguf: keys split.no and split.count say part 3 of 3, wanted 2 of 3");
    refused_part(1, part_of(1, 4, 3, "b"), HD_STATUS_PARSE, "say part 2 of 4, wanted 2 of 3");
    refused_part(2, part_of(2, 3, 3, "a"), HD_STATUS_PARSE, "tensor 0 'a': the tensor is there twice");
    refused_part(0, part_of(0, 3, 4, "a"), HD_STATUS_PARSE, "split.tensors.count is 4, the parts have 3");
    refused_part(0, part_of(0, 2, 3, "a"), HD_STATUS_PARSE, "the name must end in -00001-of-00002.gguf");
    refused_part(0, part_of(3, 3, 3, "a"), HD_STATUS_PARSE, "open the first part");
    refused_part(2, blob_valid(0), HD_STATUS_PARSE, "m-00003-of-00003.gguf: keys split.no and split.count say part 1 of 0");
    refused_part(2, (blob){ 0 }, HD_STATUS_PARSE, "the magic needs 4 bytes");
    make_parts(&p);
    p.memory.file_count = 2;
    assert_null(opened(&p.memory, &error));
    expect(&error, HD_STATUS_IO, "dir/m-00003-of-00003.gguf: cannot be opened");
    free_parts(&p);
    make_parts(&p); /* a merged model says 0 parts */
    blob_free(&p.part[0]);
    p.part[0] = part_of(0, 0, 1, "a");
    p.memory.files[0].bytes = p.part[0].bytes;
    p.memory.files[0].count = p.part[0].count;
    hdl_gguf *g = opened(&p.memory, &error);
    assert_non_null(g);
    assert_int_equal(hdl_gguf_get_info(g).part_count, 1);
    hdl_gguf_close(g);
    free_parts(&p);
}

/* ---- every fault of memory and files ---- */

static hd_status use_all(memory_files *memory, meter *counted, hd_error *error) {
    const hdl_files files = memory_table(memory);
    const hd_allocator allocator = meter_allocator(counted);
    hdl_gguf *g;
    *error = (hd_error){ 0 };
    hd_status status = hdl_gguf_open(memory->files[0].path, &(hdl_gguf_desc){ &allocator, &files }, &g, error);
    for (uint32_t i = 0; !status && i < 3; i++) {
        const hdl_gguf_tensor tensor = hdl_gguf_tensor_at(g, i);
        hdl_span data;
        status = hdl_gguf_data(g, &tensor, &data, error);
        for (uint64_t k = 0; !status && k < data.count; k++)
            assert_true(data.bytes[k] == memory->files[tensor.part].bytes[tensor.offset + k]);
    }
    hdl_gguf_close(g);
    assert_int_equal(status, error->status);
    assert_true(counted->live_bytes == 0 && memory->open_files == 0 && memory->maps == 0);
    return status;
}

static void every_allocation_can_fail(void **state) {
    (void)state;
    parts p;
    hd_error error;
    make_parts(&p);
    for (int mode = 0; mode < 4; mode++) {
        p.memory.no_map = mode & 1;
        uint64_t n = 1, faults = 0;
        for (;; n++) {
            meter counted = { .fail_call = n, .from_then_on = mode & 2 };
            hd_status status = use_all(&p.memory, &counted, &error);
            if (counted.calls < n) break;
            if (status) {
                assert_int_equal(status, HD_STATUS_OUT_OF_HOST_MEMORY);
                faults++;
            }
        }
        assert_in_range(n, 20, 100);
        assert_in_range(faults, n - 5, n); /* a header that cannot shrink stays as it is */
    }
    free_parts(&p);
}

static void every_file_call_can_fail(void **state) {
    (void)state;
    parts p;
    hd_error error;
    make_parts(&p);
    for (int no_map = 0; no_map < 2; no_map++) {
        p.memory.no_map = no_map;
        uint64_t n = 1, faults = 0;
        for (;; n++) {
            meter counted = { 0 };
            p.memory.calls = 0;
            p.memory.fail_call = n;
            hd_status status = use_all(&p.memory, &counted, &error);
            if (p.memory.calls < n) break;
            faults += status != HD_OK;
            assert_true(status == HD_OK || status == HD_STATUS_IO);
        }
        assert_in_range(n, 10, 100);
        assert_in_range(faults, n - 4, n); /* a file that cannot be mapped is read */
    }
    p.memory.fail_call = 0;
    for (uint64_t piece = 1; piece < 40; piece += 13) { /* reads that give less than asked */
        meter counted = { 0 };
        p.memory.piece_bytes = piece;
        assert_int_equal(use_all(&p.memory, &counted, &error), HD_OK);
    }
    p.memory.piece_bytes = 0;
    for (int no_map = 0; no_map < 2; no_map++)
        for (uint64_t call = 1; call < 24; call++)
            for (uint64_t bytes = 0; bytes < p.part[1].count - 32; bytes += 37) { /* files that shrink at any moment */
                meter counted = { 0 };
                p.memory.no_map = no_map;
                p.memory.calls = 0;
                p.memory.shrink_call = call;
                p.memory.shrunk_bytes = bytes;
                hd_status status = use_all(&p.memory, &counted, &error);
                assert_true(status == HD_STATUS_PARSE || status == HD_STATUS_IO || call > 15);
            }
    free_parts(&p);
}

static bool to_nowhere(void *user, const void *bytes, uint64_t count) {
    (void)bytes;
    uint64_t *left = user;
    if (count > *left) return false;
    *left -= count;
    return true;
}

static hd_status write_all(meter *counted, uint64_t room) {
    static const float data[64];
    const hd_allocator allocator = meter_allocator(counted);
    hdl_gguf_writer *w = hdl_gguf_writer_create(&allocator, 64);
    hd_status status = HD_STATUS_OUT_OF_HOST_MEMORY;
    if (w) {
        char name[16];
        for (uint32_t i = 0; i < 100; i++) {
            snprintf(name, sizeof name, "key%u", i);
            hdl_gguf_put_u32(w, name, i);
            hdl_gguf_put_tensor(w, hdl_text(name), HDL_GGUF_TYPE_F32, HD_SHAPE(2, i % 7 + 1), data);
        }
        status = hdl_gguf_write(w, to_nowhere, &room, NULL);
    }
    hdl_gguf_writer_destroy(w);
    assert_int_equal(counted->live_bytes, 0);
    return status;
}

static void the_writer_survives_faults(void **state) {
    (void)state;
    uint64_t n = 1;
    for (;; n++) {
        meter counted = { .fail_call = n };
        hd_status status = write_all(&counted, UINT64_MAX);
        if (counted.calls < n) break;
        assert_int_equal(status, HD_STATUS_OUT_OF_HOST_MEMORY);
    }
    assert_in_range(n, 10, 100);
    for (uint64_t room = 0; room < 12000; room += 999) {
        meter counted = { 0 };
        assert_int_equal(write_all(&counted, room), HD_STATUS_IO);
    }
}

static hd_status refused_put(int which, char *text, size_t room) {
    static const float data[64];
    hdl_gguf_writer *w = hdl_gguf_writer_create(NULL, which == 0 ? 48 : 0);
    hd_error error = { 0 };
    const uint8_t two = 2;
    uint64_t left = UINT64_MAX;
    switch (which) {
    case 1: hdl_gguf_put_u32(w, "", 1); break;
    case 2: hdl_gguf_put_u32(w, "a\nb", 1); break;
    case 3: hdl_gguf_put_u32(w, "a", 1); hdl_gguf_put_bool(w, "a", 1); break;
    case 4: hdl_gguf_put_number(w, "a", HDL_GGUF_BOOL, &two); break;
    case 5: hdl_gguf_put_number(w, "a", HDL_GGUF_STRING, data); break;
    case 6: hdl_gguf_put_tensor(w, hdl_text("t"), HDL_GGUF_TYPE_Q4_0, HD_SHAPE(16), data); break;
    case 7: hdl_gguf_put_tensor(w, hdl_text("t"), HDL_GGUF_TYPE_F32, HD_SHAPE(1, 1, 1, 1, 1), data); break;
    case 8: for (int i = 0; i < 2; i++) hdl_gguf_put_tensor(w, hdl_text("t"), HDL_GGUF_TYPE_F32, HD_SHAPE(1), data); break;
    case 9:
        hdl_gguf_put_tensor(w, hdl_text("t"), HDL_GGUF_TYPE_F32, HD_SHAPE(1), data);
        hdl_gguf_put_u32(w, "general.alignment", 64);
        break;
    case 10: hdl_gguf_put_tensor(w, hdl_text("t"), 4, HD_SHAPE(32), data); break;
    case 11: hdl_gguf_put_tensor(w, (hdl_span){ (const uint8_t *)data, 65 }, HDL_GGUF_TYPE_F32, HD_SHAPE(1), data); break;
    default: break;
    }
    hd_status status = hdl_gguf_write(w, to_nowhere, &left, &error);
    snprintf(text, room, "%s", error.text);
    hdl_gguf_writer_destroy(w);
    return status;
}

static void the_writer_refuses_what_the_reader_would(void **state) {
    (void)state;
    char text[384];
    for (int which = 0; which < 12; which++) {
        hd_status status = refused_put(which, text, sizeof text);
        assert_int_not_equal(status, HD_OK);
        assert_true(text[0] != 0);
        if (which == 3 || which == 8) assert_int_equal(status, HD_STATUS_NAME_TAKEN);
    }
    assert_int_equal(refused_put(99, text, sizeof text), HD_OK);
}

/* ---- the system's files ---- */

static void the_systems_files(void **state) {
    (void)state;
    static const float data[4096] = { 1 };
    char folder[] = "/tmp/heddle-gguf-XXXXXX", path[64], other[64];
    hd_error error = { 0 };
    hdl_gguf *g;
    assert_non_null(mkdtemp(folder));
    hdl_gguf_open(folder, NULL, &g, &error);
    expect(&error, HD_STATUS_IO, "is a folder, not a file");
    hdl_gguf_open("/dev/zero", NULL, &g, &error);
    expect(&error, HD_STATUS_IO, "is a device, not a file");
    snprintf(path, sizeof path, "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    hdl_gguf_open(path, NULL, &g, &error);
    expect(&error, HD_STATUS_IO, "is a pipe, not a file");
    unlink(path);
    hdl_gguf_open(path, NULL, &g, &error);
    expect(&error, HD_STATUS_IO, "cannot be opened");
    hdl_gguf_open(NULL, NULL, &g, &error);
    expect(&error, HD_STATUS_NULL_POINTER, "path is NULL");

    snprintf(path, sizeof path, "%s/m.gguf", folder);
    hdl_gguf_writer *w = hdl_gguf_writer_create(NULL, 0);
    hdl_gguf_put_text(w, "general.architecture", hdl_text("llama"));
    hdl_gguf_put_tensor(w, hdl_text("first"), HDL_GGUF_TYPE_F32, HD_SHAPE(4), data);
    hdl_gguf_put_tensor(w, hdl_text("last"), HDL_GGUF_TYPE_F32, HD_SHAPE(4096), data);
    snprintf(other, sizeof other, "%s/none/m.gguf", folder);
    assert_int_equal(hdl_gguf_write_file(w, other, &error), HD_STATUS_IO);
    error = (hd_error){ 0 };
    assert_int_equal(hdl_gguf_write_file(w, path, &error), HD_OK);
    hdl_gguf_writer_destroy(w);
    assert_int_equal(hdl_gguf_open(path, NULL, &g, &error), HD_OK);
    assert_true(hdl_gguf_get_info(g).mapped);
    hdl_gguf_tensor first, last;
    hdl_span span;
    assert_true(hdl_gguf_find_tensor(g, "first", &first) && hdl_gguf_find_tensor(g, "last", &last));
    assert_int_equal(hdl_gguf_data(g, &last, &span, &error), HD_OK);
    assert_true(span.bytes[3] == 0x3f);
    assert_int_equal(truncate(path, 4096), 0); /* cut while it is mapped */
    assert_int_equal(hdl_gguf_data(g, &first, &span, &error), HD_OK);
    hdl_gguf_data(g, &last, &span, &error);
    expect(&error, HD_STATUS_IO, "the file shrank from");
    float out[4];
    hdl_gguf_read(g, &last, 0, sizeof out, out, &error);
    expect(&error, HD_STATUS_IO, "the file shrank from");
    hdl_gguf_close(g);
    if (truncate(path, INT64_C(1) << 40) == 0) { /* a file of holes: its header is sound, its size is not the memory's */
        assert_int_equal(hdl_gguf_open(path, NULL, &g, &error), HD_OK);
        assert_true(hdl_gguf_get_info(g).trailing_bytes > INT64_C(1) << 39);
        hdl_gguf_close(g);
    }
    assert_int_equal(truncate(path, 0), 0);
    if (truncate(path, INT64_C(1) << 40) == 0) {
        hdl_gguf_open(path, NULL, &g, &error);
        expect(&error, HD_STATUS_PARSE, "not GGUF");
    }
    unlink(path);
    rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixture_reads_back_equal), cmocka_unit_test(sizes_are_the_packages),
        cmocka_unit_test(number_getters_check_type_and_range),
        cmocka_unit_test(other_getters_check_type_and_range), cmocka_unit_test(tensors_are_asked_for_by_shape),
        cmocka_unit_test(rows_with_nan_or_zeros_are_found), cmocka_unit_test(split_models_are_one),
        cmocka_unit_test(split_models_are_checked), cmocka_unit_test(every_allocation_can_fail),
        cmocka_unit_test(every_file_call_can_fail), cmocka_unit_test(the_writer_survives_faults),
        cmocka_unit_test(the_writer_refuses_what_the_reader_would), cmocka_unit_test(the_systems_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
