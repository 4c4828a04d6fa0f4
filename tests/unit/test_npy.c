/* test_npy.c: .npy files as NumPy writes them, as a program in Python 2 wrote them, and as an enemy would. The source is
 * included, not linked: the reader belongs to the CLI, which is built only where its JSON library is. */
#define _GNU_SOURCE
#include "../../cli/npy.c"
#include "../../cli/system_posix.c"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

static char why[NPY_WHY];

/* A file of `version` with this header and these data bytes. */
static size_t make(unsigned char *out, unsigned version, const char *header_text, const void *data, size_t data_bytes) {
    size_t length = strlen(header_text), at = MAGIC_BYTES;
    memcpy(out, magic, 6);
    out[6] = (unsigned char)version;
    out[7] = 0;
    for (unsigned i = 0; i < (version == 1 ? 2u : 4u); i++) out[at++] = (unsigned char)(length >> 8 * i & 0xFF);
    memcpy(out + at, header_text, length);
    if (data_bytes > 0) memcpy(out + at + length, data, data_bytes);
    return at + length + data_bytes;
}

static bool read_bytes(const void *bytes, size_t count, npy_array *out) {
    FILE *file = fmemopen((void *)(uintptr_t)bytes, count, "rb");
    assert_non_null(file);
    why[0] = 0;
    bool read = npy_read(file, out, why);
    fclose(file);
    assert_true(read || (why[0] && strchr(why, ';') && !strchr(why, '\n') && !out->data));
    return read;
}

static bool read_header_text(const char *text, size_t data_bytes, npy_array *out) {
    static const unsigned char data[64] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
    unsigned char bytes[1024];
    assert_true(strlen(text) + data_bytes + 12 < sizeof bytes);
    return read_bytes(bytes, make(bytes, 1, text, data, data_bytes), out);
}

static void all_versions_are_read(void **state) {
    (void)state;
    const float values[6] = { 1, 2, 3, 4, 5, 6 };
    for (unsigned version = 1; version <= 3; version++) {
        unsigned char bytes[256];
        npy_array a;
        size_t count = make(bytes, version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", values, sizeof values);
        assert_true(read_bytes(bytes, count, &a));
        assert_int_equal(a.kind, 'f');
        assert_int_equal(a.item_bytes, 4);
        assert_int_equal(a.shape.rank, 2);
        assert_int_equal(a.shape.dims[1], 3);
        assert_memory_equal(a.data, values, sizeof values);
        npy_free(&a);
    }
    unsigned char bytes[256];
    npy_array a;
    assert_false(read_bytes(bytes, make(bytes, 4, "{}", NULL, 0), &a));
    assert_non_null(strstr(why, "version 4.0"));
}

static void forms_of_headers_are_read(void **state) {
    (void)state;
    npy_array a;
    assert_true(read_header_text("{\"shape\":(),\"fortran_order\":False,\"descr\":\"|u1\"}", 1, &a)); /* any order, any quotes */
    assert_int_equal(a.shape.rank, 0);
    npy_free(&a);
    assert_true(read_header_text("{'descr': '<i4', 'fortran_order': False, 'shape': (3L,)}\n", 12, &a));
    assert_int_equal(a.shape.dims[0], 3);
    npy_free(&a);
    assert_true(read_header_text("{'descr': '|b1', 'fortran_order': False, 'shape': (1,1,1,1,1,2,)}\n", 2, &a));
    assert_int_equal(a.shape.rank, 6);
    npy_free(&a);
}

static void fortran_order_is_turned(void **state) {
    (void)state;
    npy_array a;
    assert_true(read_header_text("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 2), }\n", 12, &a));
    const unsigned char expected[12] = { 1, 7, 3, 9, 5, 11, 2, 8, 4, 10, 6, 12 };
    assert_memory_equal(a.data, expected, sizeof expected);
    npy_free(&a);
}

static void bad_headers_are_refused(void **state) {
    (void)state;
    static const struct { const char *text, *says; } cases[] = {
        { "{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", "big-endian" },
        { "{'descr': '=f4', 'fortran_order': False, 'shape': (1,)}", "byte order" },
        { "{'descr': '|f4', 'fortran_order': False, 'shape': (1,)}", "byte order" },
        { "{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "no plain number" },
        { "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "descr" },
        { "{'descr': '<f3', 'fortran_order': False, 'shape': (1,)}", "no plain number" },
        { "{'descr': '<f1', 'fortran_order': False, 'shape': (1,)}", "no plain number" },
        { "{'descr': '<f+4', 'fortran_order': False, 'shape': (1,)}", "no plain number" },
        { "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,)}", "structured" },
        { "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}", "fortran_order" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (0,)}", "no elements" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "shape" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}", "shape" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1", "shape" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1)}", "axes" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999999999,)}", "shape" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999, 99999999999)}", "no memory has" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999999,)}", "it is cut" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "it is cut" },
        { "{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}", "goes on" },
        { "{'descr': '<f4', 'fortran_order': False}", "without" },
        { "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "twice" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", "unknown key" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} + 1", "after" },
        { "__import__('os')", "damaged" },
        { "", "damaged" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        npy_array a;
        assert_false(read_header_text(cases[i].text, 4, &a));
        if (!strstr(why, cases[i].says)) fail_msg("%s: says \"%s\", not \"%s\"", cases[i].text, why, cases[i].says);
    }
    npy_array a;
    assert_false(read_bytes("PK\3\4 a zip file", 16, &a));
    assert_non_null(strstr(why, "no .npy"));
    const unsigned char huge[12] = { 0x93, 'N', 'U', 'M', 'P', 'Y', 2, 0, 0xFF, 0xFF, 0xFF, 0xFF };
    assert_false(read_bytes(huge, sizeof huge, &a));
    assert_non_null(strstr(why, "header of 4294967295 bytes"));
}

static void mutated_files_do_no_harm(void **state) {
    (void)state;
    const float values[12] = { 0 };
    unsigned char good[256], bad[256];
    size_t count = make(good, 1, "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4), }       \n", values, sizeof values);
    uint32_t seed = 20251120, refused = 0;
    for (unsigned round = 0; round < 20000; round++) {
        memcpy(bad, good, count);
        size_t length = count;
        for (unsigned change = 0; change <= round % 4; change++) {
            seed = seed * 1664525u + 1013904223u;
            bad[(seed >> 8) % count] = (unsigned char)(seed >> 24);
        }
        if (round % 5 == 0) length = 1 + (seed >> 4) % count;
        npy_array a;
        if (read_bytes(bad, length, &a)) {
            assert_true(a.bytes == hd_shape_elements(a.shape) * a.item_bytes && a.bytes <= sizeof values);
            npy_free(&a);
        } else refused++;
    }
    assert_in_range(refused, 10000, 20000);
}

static void what_is_saved_is_read(void **state) {
    (void)state;
    char path[] = "/tmp/heddle-npy-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    unsigned char data[48];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)(i * 5);
    const npy_array cases[] = {
        { 'f', 4, HD_SHAPE(3, 4), 48, data }, { 'i', 4, HD_SHAPE(12), 48, data }, { 'f', 2, HD_SHAPE(1, 1, 2, 3, 2, 2), 48, data },
        { 'u', 1, HD_SHAPE(48), 48, data },   { 'f', 4, { 0 }, 4, data },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        npy_array a;
        assert_true(npy_save(path, &cases[i], why));
        assert_true(npy_load(path, &a, why));
        assert_true(a.kind == cases[i].kind && a.item_bytes == cases[i].item_bytes && a.shape.rank == cases[i].shape.rank && a.bytes == cases[i].bytes);
        assert_memory_equal(a.shape.dims, cases[i].shape.dims, sizeof a.shape.dims);
        assert_memory_equal(a.data, data, (size_t)a.bytes);
        npy_free(&a);
    }
    FILE *file = fopen(path, "rb");
    char bytes[256];
    assert_int_equal(fread(bytes, 1, sizeof bytes, file) % 64, 4); /* the data begins at a multiple of 64 */
    fclose(file);
    unlink(path);
    npy_array a;
    assert_false(npy_load(path, &a, why));
    assert_non_null(strstr(why, "cannot be opened"));
    assert_false(npy_save("/nonexistent/x.npy", &cases[0], why));
    assert_false(npy_save("/dev/full", &cases[0], why));
    assert_non_null(strstr(why, "cannot be written"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_versions_are_read),    cmocka_unit_test(forms_of_headers_are_read), cmocka_unit_test(fortran_order_is_turned),
        cmocka_unit_test(bad_headers_are_refused),  cmocka_unit_test(mutated_files_do_no_harm),  cmocka_unit_test(what_is_saved_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
