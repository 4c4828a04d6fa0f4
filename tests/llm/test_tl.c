/* test_tl.c: TL1 and TL2 tensors, packed here element by element, come out as blocks with the same values; what is no tensor is
 * refused; tiles are those of public models, or kernel_config.ini's. */
#define _POSIX_C_SOURCE 200809L /* mkdtemp */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "fixture.h"
#include "llm/ternary.h"

enum { MOST = 1 << 19 };
static int8_t  values[MOST];
static uint8_t packed[MOST], blocks[MOST];

/* ---- what is packed ---- */

static void set(uint64_t byte, bool high, uint32_t code) { packed[byte] |= (uint8_t)(high ? code << 4 : code); }

/* Where a row lies in tl2: of 32 rows the second and third eight change places. */
static uint64_t mixed(uint64_t row) { return row % 32 / 8 == 1 ? row + 8 : row % 32 / 8 == 2 ? row - 8 : row; }

/* Number of the block that an element is in, in tiles of `across` columns that are cut into blocks of `wide`. */
static uint64_t block_of(uint64_t row, uint64_t column, uint64_t columns, hdl_tiles t, uint64_t across, uint64_t wide) {
    const uint64_t tile = row / t.rows * (columns / across) + column / across;
    const uint64_t stripe = tile * (t.rows / t.stripe_rows) + row % t.rows / t.stripe_rows;
    return stripe * (across / wide) + column % across / wide;
}

static void pack_tl1(uint64_t row, uint64_t column, uint64_t columns, hdl_tiles t, uint32_t code) {
    const uint64_t wide = 256 / t.stripe_rows, block = block_of(row, column, columns, t, t.columns, wide);
    const uint64_t byte = (row % t.stripe_rows / 16 * (wide / 4) + column % wide / 4) * 16 + row % 16;
    set(block * 64 + byte, column % 4 == 0, code);
}

static void pack_tl2(const hd_shape shape, hdl_tiles t, uint64_t row, uint64_t column, const int8_t *w) {
    const uint64_t rows = (uint64_t)shape.dims[0], columns = (uint64_t)shape.dims[1], threes = columns - columns % t.columns;
    const uint64_t signs = rows * threes / 6, rest = signs + rows * threes / 24;
    if (column >= threes) {
        if ((column - threes) % 2) return;
        const uint64_t block = block_of(row, column - threes, columns - threes, t, 32, 4);
        set(rest + block * 32 + mixed(row) % 32, (column - threes) % 4 == 0, (uint32_t)(3 * w[0] + w[1] + 4));
    } else if (column % 3 == 0) {
        const int code = 9 * w[0] + 3 * w[1] + w[2];
        set(block_of(row, column, threes, t, t.columns, 6) * 32 + mixed(row) % 32, column % 6 == 0, (uint32_t)abs(code));
        const uint32_t bit = 15 - (uint32_t)(column % 24 / 3 * 2 + row % 32 / 16);
        uint8_t *word = packed + signs + block_of(row, column, threes, t, t.columns, 24) * 32 + row % 16 * 2;
        if (code < 0) word[bit / 8] |= (uint8_t)(1u << bit % 8);
    }
}

/* A tensor of any values. */
static hdl_ternary pack(uint32_t type, hd_shape shape, hdl_tiles tiles, float scale) {
    const uint64_t columns = (uint64_t)shape.dims[1], count = hd_shape_elements(shape), bytes = hdl_gguf_tensor_bytes(type, shape);
    uint32_t state = 7;
    assert_true(count <= MOST && bytes > 0 && bytes <= MOST);
    memset(packed, 0, sizeof packed);
    for (uint64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (int8_t)((state >> 16) % 3) - 1;
    }
    for (uint64_t i = 0; i < count; i++) {
        if (type == HDL_GGUF_TYPE_TL2) pack_tl2(shape, tiles, i / columns, i % columns, values + i);
        else if (i % 2 == 0) pack_tl1(i / columns, i % columns, columns, tiles, (uint32_t)(3 * values[i] + values[i + 1] + 4));
    }
    memcpy(packed + bytes - 32, &scale, sizeof scale);
    return (hdl_ternary){ type, shape, tiles, { packed, bytes } };
}

static int value_at(hd_dtype dtype, uint64_t i) {
    if (dtype == HD_TQ2_0) return (blocks[i / 256 * 66 + i % 256 / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3) - 1;
    const uint8_t byte = blocks[i / 32 * 18 + 2 + i % 16];
    return (i % 32 < 16 ? byte & 15 : byte >> 4) - 8;
}

static void values_are_kept(void **state) {
    (void)state;
    static const struct { uint32_t type, rows, columns; hdl_tiles tiles;
    } cases[] = {
        { HDL_GGUF_TYPE_TL1, 256, 512, { 128, 64, 32 } },  { HDL_GGUF_TYPE_TL1, 128, 1024, { 64, 128, 64 } },
        { HDL_GGUF_TYPE_TL1, 96, 160, { 32, 32, 32 } },    { HDL_GGUF_TYPE_TL1, 320, 64, { 320, 64, 64 } },
        { HDL_GGUF_TYPE_TL2, 128, 1536, { 64, 192, 32 } }, { HDL_GGUF_TYPE_TL2, 64, 512, { 32, 96, 32 } },
        { HDL_GGUF_TYPE_TL2, 160, 320, { 160, 96, 32 } },  { HDL_GGUF_TYPE_TL2, 96, 320, { 96, 48, 32 } },
        { HDL_GGUF_TYPE_TL2, 32, 256, { 32, 288, 32 } }, /* nothing but the rest */
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const hd_shape shape = HD_SHAPE(cases[c].rows, cases[c].columns);
        const hdl_ternary tensor = pack(cases[c].type, shape, cases[c].tiles, 0.37f);
        const hd_dtype dtype = hdl_ternary_dtype(shape);
        const uint64_t bytes = hd_tensor_bytes(dtype, shape), step = dtype == HD_TQ2_0 ? 66 : 18;
        float scale = 0;
        hd_error error = { 0 };
        memset(blocks, 0xA5, sizeof blocks);
        if (hdl_ternary_unpack(&tensor, blocks, bytes, &scale, &error)) fail_msg("case %zu: %s", c, error.text);
        assert_true(scale == 0.37f && blocks[bytes] == 0xA5);
        for (uint64_t i = 0; i < hd_shape_elements(shape); i++)
            if (value_at(dtype, i) != values[i]) fail_msg("case %zu: element %llu is %d", c, (unsigned long long)i, value_at(dtype, i));
        for (uint64_t at = step == 66 ? 64 : 0; at < bytes; at += step) assert_true(blocks[at] == 0 && blocks[at + 1] == 0x3C);
    }
}

/* ---- what is none ---- */

static hd_status unpack(hdl_ternary tensor, uint64_t out_bytes) {
    float scale = 5;
    hd_error error = { 0 };
    const hd_status status = hdl_ternary_unpack(&tensor, blocks, out_bytes, &scale, &error);
    assert_int_equal(error.status, status);
    assert_true(status == HD_OK || scale == 5);
    return status;
}

static void what_is_no_tensor_is_refused(void **state) {
    (void)state;
    const hd_shape shape = HD_SHAPE(64, 512);
    static const hdl_tiles tiles[2] = { { 32, 64, 32 }, { 32, 96, 32 } };
    const uint64_t bytes = hd_tensor_bytes(HD_TQ2_0, shape);
    for (int i = 0; i < 2; i++) {
        const uint32_t type = i ? HDL_GGUF_TYPE_TL2 : HDL_GGUF_TYPE_TL1;
        hdl_ternary t = pack(type, shape, tiles[i], 1);
        assert_int_equal(unpack(t, bytes), HD_OK);
        assert_int_equal(unpack(t, bytes - 66), HD_STATUS_INVALID_ARGUMENT);
        for (int more = -1; more <= 1; more += 2) {
            hdl_ternary cut = t;
            cut.data.count += (uint64_t)more;
            assert_int_equal(unpack(cut, bytes), HD_STATUS_INVALID_ARGUMENT);
        }
        static const hdl_tiles impossible[] = { { 0 },          { 0, 64, 32 },  { 32, 0, 32 },  { 32, 96, 0 },   { 32, 96, 1 },  { 32, 96, 128 },
                                                { 48, 96, 32 }, { 96, 96, 32 }, { 32, 97, 32 }, { 16, 96, 32 }, { 32, 100, 32 },
                                                { UINT32_MAX, UINT32_MAX, 32 }, { 32, 480, 64 } };
        for (size_t k = 0; k < sizeof impossible / sizeof *impossible; k++) {
            hdl_ternary other = t;
            other.tiles = impossible[k];
            if (unpack(other, bytes) != HD_STATUS_SHAPE) fail_msg("type %u: tiles %zu are taken", type, k);
        }
        static const hd_shape shapes[] = { { 2, { 0, 512 } },  { 2, { 64, 0 } },         { 2, { -64, 512 } }, { 1, { 512 } },
                                           { 3, { 2, 32, 512 } }, { 2, { 64, 500 } }, { 2, { INT64_MAX, 512 } }, { 0 } };
        for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
            hdl_ternary other = t;
            other.shape = shapes[k];
            if (unpack(other, bytes) != HD_STATUS_SHAPE) fail_msg("type %u: shape %zu is taken", type, k);
        }
        packed[7] = i ? 0xE0 : 0x90;
        assert_int_equal(unpack(t, bytes), HD_STATUS_PARSE);
        packed[7] = i ? 0x0F : 0x09;
        assert_int_equal(unpack(t, bytes), HD_STATUS_PARSE);
        (void)pack(type, shape, tiles[i], NAN);
        assert_int_equal(unpack(t, bytes), HD_STATUS_PARSE);
    }
    hdl_ternary t = pack(HDL_GGUF_TYPE_TL2, shape, tiles[1], 1); /* a wrong code behind the signs */
    packed[64 * 480 / 24 * 5] = 0x94;
    assert_int_equal(unpack(t, bytes), HD_STATUS_PARSE);
    assert_int_equal(hdl_gguf_tensor_bytes(HDL_GGUF_TYPE_TL2, HD_SHAPE(64, 248)), 0);
    assert_int_equal(hdl_gguf_tensor_bytes(HDL_GGUF_TYPE_TL2, HD_SHAPE(INT64_C(1) << 40, INT64_C(1) << 22)), 0);
}

/* ---- tiles ---- */

static hd_status tiles_of(const hdl_gguf *gguf, uint32_t type, int64_t rows, int64_t columns, hdl_tiles *out, hd_error *error) {
    hdl_tile_list list = { 0 };
    *error = (hd_error){ 0 };
    return hdl_tiles_find(gguf, &(hdl_gguf_tensor){ .name = hdl_text("w"), .type = type, .shape = HD_SHAPE(rows, columns) }, &list, out, error);
}

static void tiles_of_public_models_are_known(void **state) {
    (void)state;
    static const int64_t shapes[][2] = { { 1536, 4096 }, { 1536, 1536 },  { 4096, 1536 },  { 3200, 8640 }, { 3200, 3200 },
                                         { 8640, 3200 }, { 14336, 4096 }, { 4096, 14336 }, { 1024, 4096 }, { 4096, 4096 } };
    hdl_gguf *gguf;
    hdl_tiles tiles;
    hd_error error = { 0 };
    assert_int_equal(hdl_gguf_open(HEDDLE_TESTS_DIR "/llm/ternary/i2_s.gguf", NULL, &gguf, &error), HD_OK);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (uint32_t type = HDL_GGUF_TYPE_TL1; type <= HDL_GGUF_TYPE_TL2; type += HDL_GGUF_TYPE_TL2 - HDL_GGUF_TYPE_TL1)
            /* the last four are a model's that has two sets of tiles for tl1 */
            if (tiles_of(gguf, type, shapes[i][0], shapes[i][1], &tiles, &error) != (type == HDL_GGUF_TYPE_TL1 && i > 5 ? HD_STATUS_UNSUPPORTED : HD_OK))
                fail_msg("%lld x %lld: %s", (long long)shapes[i][0], (long long)shapes[i][1], error.text);
    assert_int_equal(tiles_of(gguf, HDL_GGUF_TYPE_TL2, 1536, 1536, &tiles, &error), HD_OK);
    assert_true(tiles.rows == 128 && tiles.columns == 192 && tiles.stripe_rows == 32);
    assert_int_equal(tiles_of(gguf, HDL_GGUF_TYPE_TL2, 256, 256, &tiles, &error), HD_STATUS_UNSUPPORTED);
    assert_non_null(strstr(error.text, "'w' is of type tl2"));
    assert_non_null(strstr(error.text, "kernel_config.ini"));
    hdl_gguf_close(gguf);
}

static void tiles_are_what_the_file_beside_says(void **state) {
    (void)state;
    static const struct { const char *text; hd_status status; const char *says;
    } cases[] = {
        { "[Kernels_0]\nM = 256\nK = 256\nBM = 64\nBK = 96\nbmm = 32\n", HD_OK, "" },
        { "; notes\r\n[a]\r\n m:256\r\n k : 256\r\nbm=64\nbk=96\n\n# more\nbmm=32", HD_OK, "" },
        { "[a]\nm = 1\n[b]\nm = 256\nk = 256\nbm = 64\nbk = 96\nbmm = 32\n", HD_OK, "" },
        { "", HD_STATUS_UNSUPPORTED, "does not tell" },
        { "[a]\nm = 256\nk = 256\nbm = 64\nbk = 100\nbmm = 32\n", HD_STATUS_UNSUPPORTED, "cannot be cut into tiles of 64 x 100" },
        { "[a]\nm = 256\nk = 256\n", HD_STATUS_UNSUPPORTED, "cannot be cut into tiles of 0 x 0" },
        { "m = 256\n", HD_STATUS_PARSE, "line 1 " },
        { "[a]\n\nm 256\n", HD_STATUS_PARSE, "line 3 " },
        { "[a]\nn = 256\n", HD_STATUS_PARSE, "line 2 " },
        { "[a]\nm =\n", HD_STATUS_PARSE, "line 2 " },
        { "[a]\nm = -1\n", HD_STATUS_PARSE, "line 2 " },
        { "[a]\nm = 99999999999999999999\n", HD_STATUS_PARSE, "line 2 " },
        { "[a]\nabcdefghijk = 1\n", HD_STATUS_PARSE, "line 2 " },
    };
    char folder[] = "/tmp/heddle-tiles-XXXXXX", model[64], beside[64];
    assert_non_null(mkdtemp(folder));
    snprintf(model, sizeof model, "%s/m.gguf", folder);
    snprintf(beside, sizeof beside, "%s/kernel_config.ini", folder);
    fixture f = fixture_read(HEDDLE_TESTS_DIR "/llm/ternary/i2_s.gguf");
    for (size_t i = 0; i <= sizeof cases / sizeof *cases; i++) {
        const bool is_long = i == sizeof cases / sizeof *cases; /* more kernels than anybody has, then more bytes */
        FILE *file = fopen(model, "wb");
        assert_true(file && fwrite(f.bytes, 1, f.count, file) == f.count && fclose(file) == 0);
        file = fopen(beside, "wb");
        assert_non_null(file);
        if (!is_long) fputs(cases[i].text, file);
        for (int k = 0; k < 65 && is_long; k++) fputs("[a]\n", file);
        assert_int_equal(fclose(file), 0);
        hdl_gguf *gguf;
        hdl_tiles tiles;
        hd_error error = { 0 };
        assert_int_equal(hdl_gguf_open(model, NULL, &gguf, &error), HD_OK);
        const hd_status status = tiles_of(gguf, HDL_GGUF_TYPE_TL2, 256, 256, &tiles, &error);
        if (status != (is_long ? HD_STATUS_LIMIT : cases[i].status)) fail_msg("case %zu: %s: %s", i, hd_status_name(status), error.text);
        if (!is_long) assert_non_null(strstr(error.text, cases[i].says));
        if (!status) assert_true(tiles.rows == 64 && tiles.columns == 96 && tiles.stripe_rows == 32);
        hdl_gguf_close(gguf);
    }
    assert_int_equal(truncate(beside, 9000), 0);
    hdl_gguf *gguf;
    hdl_tiles tiles;
    hd_error error = { 0 };
    assert_int_equal(hdl_gguf_open(model, NULL, &gguf, &error), HD_OK);
    assert_int_equal(tiles_of(gguf, HDL_GGUF_TYPE_TL2, 256, 256, &tiles, &error), HD_STATUS_LIMIT);
    hdl_gguf_close(gguf);
    fixture_free(&f);
    unlink(beside);
    unlink(model);
    rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(values_are_kept), cmocka_unit_test(what_is_no_tensor_is_refused),
                                        cmocka_unit_test(tiles_of_public_models_are_known),
                                        cmocka_unit_test(tiles_are_what_the_file_beside_says) };
    return cmocka_run_group_tests_name("tl", tests, NULL, NULL);
}
