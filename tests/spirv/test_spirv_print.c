/* test_spirv_print.c: small modules in each dialect: what has to stand in the text, what must not, and what is refused. */
#define _GNU_SOURCE
#include "languages.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "../unit/spirv_fixtures.h"
#include "spirv/module.h"
#include "user_kernels.h"

static hdi_text          text;
static hdi_spirv_printed printed;
static hd_error          error;

static hd_status print(const void *words, size_t bytes, hdi_spirv_print_target target, uint32_t spec_id, uint32_t spec_value) {
    hdi_text_free(&text);
    text = (hdi_text){ .allocator = &hdi_default_allocator };
    error = (hd_error){ 0 };
    const hdi_spirv_input input = { .module = words, .bytes = bytes, .spec_ids = &spec_id, .spec_values = &spec_value, .spec_count = 1 };
    return hdi_spirv_print(&hdi_default_allocator, &input, &target, &text, &printed, &error);
}
static hd_status print_user(const char *name, hdi_spirv_print_target target) {
    for (size_t i = 0; i < HDI_COUNT(user_kernels); i++)
        if (strcmp(user_kernels[i].name, name) == 0) return print(user_kernels[i].words, user_kernels[i].bytes, target, 99, 0);
    fail_msg("no kernel %s", name);
    return HD_OK;
}
static void has(const char *part) {
    if (!strstr(text.bytes, part)) fail_msg("no \"%s\" in:\n%s", part, text.bytes);
}
static void has_not(const char *part) {
    if (strstr(text.bytes, part)) fail_msg("\"%s\" in:\n%s", part, text.bytes);
}
static const hdi_spirv_print_target opencl = { .dialect = HDI_SPIRV_OPENCL_C }, cuda = { .dialect = HDI_SPIRV_CUDA }, hip = { .dialect = HDI_SPIRV_HIP }, wgsl = { .dialect = HDI_SPIRV_WGSL },
                                    ptx = { .dialect = HDI_SPIRV_OPENCL_C, .offers = HDI_SPIRV_OFFERS_PTX };

static void test_arguments(void **state) {
    (void)state;
    assert_int_equal(print(fixture_add, sizeof fixture_add, opencl, 0, 128), HD_OK);
    has("reqd_work_group_size(128, 1, 1)");
    has("heddle_kernel(GLOBAL u8 *b0, GLOBAL u8 *b1, GLOBAL u8 *b2, const launch_words launch) {");
    assert_int_equal(printed.buffer_count, 3);
    assert_int_equal(printed.push_words, 2);
    assert_int_equal(printed.argument_words, 5);
    assert_int_equal(printed.length_count, 0);
    has("* 0x1.8p+0f"); /* constant 3, by default */
    has_not("+= (u64)launch");
    hdi_spirv_print_target whole = opencl;
    whole.offsets = true;
    assert_int_equal(print(fixture_add, sizeof fixture_add, whole, 3, 0x40400000), HD_OK);
    has("b2 += (u64)launch.w[9] | (u64)launch.w[10] << 32u;");
    has("* 0x1.8p+1f");
    assert_int_equal(printed.argument_words, 11);
    assert_int_equal(print(fixture_add, sizeof fixture_add, cuda, 0, 64), HD_OK);
    has("extern \"C\" __global__ void __launch_bounds__(64 * 1 * 1) heddle_kernel(");
    assert_int_equal(print_user("types, -O", (hdi_spirv_print_target){ HDI_SPIRV_OPENCL_C, HDI_SPIRV_OFFERS_FP64, 0, false, false }), HD_OK);
    assert_true(printed.length_count == 2 && printed.lengths[0] == 0 && printed.lengths[1] == 1);
}

static void test_pure(void **state) {
    (void)state;
    for (size_t i = 0; i < HDI_COUNT(user_kernels); i++) {
        assert_int_equal(print(user_kernels[i].words, user_kernels[i].bytes, cuda, 99, 0), HD_OK);
        char *first = strdup(text.bytes);
        assert_int_equal(print(user_kernels[i].words, user_kernels[i].bytes, cuda, 99, 0), HD_OK);
        assert_string_equal(first, text.bytes);
        free(first);
    }
}

static void test_contraction(void **state) {
    (void)state;
    assert_int_equal(print_user("mandelbrot, -O", opencl), HD_OK);
    has("#pragma OPENCL FP_CONTRACT OFF");
    assert_int_equal(print_user("bodies, -O", opencl), HD_OK);
    has_not("FP_CONTRACT");
    assert_int_equal(print_user("mandelbrot, -O", cuda), HD_OK);
    has("__fmul_rn");
    has(" = exact_mul(v");
    assert_int_equal(print_user("mandelbrot, -O", hip), HD_OK);
    has("clang fp contract(off)");
}

/* In OpenCL C nothing that is declared inside of a loop ends where the loop is left. */
static void test_declarations(void **state) {
    (void)state;
    for (int dialect = 0; dialect < 2; dialect++) {
        assert_int_equal(print_user("phis, -O", dialect ? cuda : opencl), HD_OK);
        const char *loops = strstr(text.bytes, "for (;;)");
        assert_non_null(loops);
        assert_int_equal(strstr(loops, "u32 v") == NULL, dialect == 0);
        assert_int_equal(strstr(loops, "bool v") == NULL, dialect == 0);
        const char *aside = strstr(loops, "u32 n"); /* values that change places */
        assert_non_null(aside);
        assert_true(strchr(aside, '}') < strstr(aside, "continue;"));
    }
}

static void test_parts(void **state) {
    (void)state;
    assert_int_equal(print_user("mandelbrot, -O", opencl), HD_OK);
    has_not("at_add");
    has_not("f16");
    assert_int_equal(print_user("histogram, -O", opencl), HD_OK);
    has("SHARED ");
    has("(volatile LOCAL i32 *)");
    has("(volatile GLOBAL u32 *)");
    assert_int_equal(printed.shared_bytes, 72);
    assert_int_equal(print_user("types, -O", opencl), HD_OK);
    has("0x7C00u"); /* halves by integer code */
    assert_int_equal(print_user("types, -O", (hdi_spirv_print_target){ HDI_SPIRV_OPENCL_C, HDI_SPIRV_OFFERS_FP16, 0, false, false }), HD_OK);
    has("convert_half_rte");
    assert_int_equal(print_user("types, -O", cuda), HD_OK);
    has_not("f16x2 %0");
    hdi_spirv_print_target units = cuda;
    units.offers = HDI_SPIRV_OFFERS_MATRIX_UNITS;
    assert_int_equal(print_user("types, -O", units), HD_OK);
    has(".rn.f16x2 %0, %1, %2;"); /* two halves at a time */
    has("half_pair_mul(");
}

static void test_subgroups(void **state) {
    (void)state;
    assert_int_equal(print_user("lanes, -O", opencl), HD_OK);
    has("sg_room[WORKGROUP]");
    assert_int_equal(printed.subgroup, 32);
    assert_int_equal(printed.shared_bytes, 256);
    assert_int_equal(print_user("lanes, -O", (hdi_spirv_print_target){ HDI_SPIRV_OPENCL_C, 0, 16, false, false }), HD_OK);
    assert_int_equal(printed.subgroup, 16);
    assert_int_equal(print_user("lanes, -O", (hdi_spirv_print_target){ HDI_SPIRV_OPENCL_C, 0, 48, false, false }), HD_STATUS_UNSUPPORTED);
    assert_int_equal(print_user("lanes, -O", (hdi_spirv_print_target){ HDI_SPIRV_OPENCL_C, HDI_SPIRV_OFFERS_SUBGROUPS, 0, false, false }), HD_OK);
    has("cl_khr_subgroups");
    assert_int_equal(print_user("lanes, -O", cuda), HD_OK);
    has("__shfl_sync");
    hdi_spirv_print_target with_ptx = ptx;
    assert_int_equal(print_user("lanes, -O", with_ptx), HD_OK);
    has("shfl.sync.idx.b32");
    has_not("sg_room");
    assert_int_equal(printed.subgroup, 32);
    with_ptx.subgroup = 16;
    assert_int_equal(print_user("lanes, -O", with_ptx), HD_STATUS_UNSUPPORTED);
    assert_non_null(strstr(error.text, "subgroups of 16 lanes, the device has 32"));
    /* Sums in a branch that only some take: fine where there are subgroups. */
    assert_int_equal(print(fixture_subgroup, sizeof fixture_subgroup, cuda, 99, 0), HD_OK);
}

/* Matrices: one text for CUDA and for OpenCL with PTX, but for the spaces of memory, and only where they are offered. */
static void test_matrices(void **state) {
    (void)state;
    hdi_spirv_print_target with_units = cuda;
    with_units.offers = HDI_SPIRV_OFFERS_MATRIX_UNITS;
    assert_int_equal(print(fixture_matrix, sizeof fixture_matrix, with_units, 99, 0), HD_OK);
    has("wmma.mma.sync");
    has("DEFINE(, \"\", ");
    has("matrix_load_a_f16((GLOBAL f16 *)(");
    with_units.offers |= HDI_SPIRV_OFFERS_WHOLE_MATRIX_UNITS;
    assert_int_equal(print(fixture_matrix, sizeof fixture_matrix, with_units, 99, 0), HD_OK);
    has("ldmatrix.sync.aligned.m8n8.x4");
    has("mma.sync.aligned.m16n8k16");
    has_not("wmma");
    with_units = ptx;
    assert_int_equal(print(fixture_matrix, sizeof fixture_matrix, with_units, 99, 0), HD_STATUS_UNSUPPORTED);
    assert_non_null(strstr(error.text, "OpenCL C with PTX has no cooperative matrices here"));
    with_units.offers |= HDI_SPIRV_OFFERS_MATRIX_UNITS;
    assert_int_equal(print(fixture_matrix, sizeof fixture_matrix, with_units, 99, 0), HD_OK);
    has("wmma.mma.sync");
    has("DEFINE(__local, \".shared\", true)");
    has("matrix_load_a_f16((GLOBAL f16 *)(");
    has("matrix_multiply(");
    has("membar.gl");
    has_not("ldmatrix");
}

/* bf16: factors of matrices, from sm_80 on, and no numbers of any other use. */
static void test_bfloat16(void **state) {
    (void)state;
    const hdi_blob *blob = hdi_module_get(HDI_MODULE_ATTENTION_GRADIENT_UNITS_KV)->spirv;
    const size_t bytes = blob->word_count * 4;
    hdi_spirv_print_target target = cuda;
    target.offers = HDI_SPIRV_OFFERS_MATRIX_UNITS;
    assert_int_equal(print(blob->words, bytes, target, 99, 0), HD_STATUS_UNSUPPORTED);
    target.offers |= HDI_SPIRV_OFFERS_WHOLE_MATRIX_UNITS;
    assert_int_equal(print(blob->words, bytes, target, 99, 0), HD_OK);
    has("matrix_load_b_bf16(");
    has("matrix_to_bf16(");
    has_not("matrix_load_b_f16((");
    uint32_t *words = malloc(bytes);
    assert_non_null(words);
    memcpy(words, blob->words, bytes);
    for (uint32_t *at = words + 5; at < words + blob->word_count; at += at[0] >> 16)
        if (at[0] == (4u << 16 | SpvOpTypeFloat)) at[3] = 7;
    assert_int_not_equal(print(words, bytes, target, 99, 0), HD_OK);
    assert_non_null(strstr(error.text, "encoding 7"));
    free(words);
}

/* Rows are reduced, and sums become factors A, where the places of elements are known; all else is refused by name. */
static void test_reductions(void **state) {
    (void)state;
    const hdi_blob *blob = hdi_module_get(HDI_MODULE_ATTENTION_TENSOR)->spirv;
    const size_t bytes = blob->word_count * 4;
    hdi_spirv_print_target target = cuda;
    target.offers = HDI_SPIRV_OFFERS_MATRIX_UNITS;
    assert_int_equal(print(blob->words, bytes, target, 99, 0), HD_STATUS_UNSUPPORTED);
    assert_non_null(strstr(error.text, "before sm_80"));
    target.offers |= HDI_SPIRV_OFFERS_WHOLE_MATRIX_UNITS;
    assert_int_equal(print(blob->words, bytes, target, 99, 0), HD_OK);
    has("matrix_row_max(");
    has("matrix_row_sum(");
    has("matrix_to_f16(");
    /* the other way round: sums become factors B, and what was loaded as B is A */
    enum { FACTOR_A = 3, FACTOR_B = 4 };
    uint32_t *words = malloc(bytes), *convert = NULL, *multiply = NULL, *load = NULL;
    assert_non_null(words);
    memcpy(words, blob->words, bytes);
    for (uint32_t *at = words + 5; at < words + blob->word_count; at += at[0] >> 16) {
        if ((at[0] & 0xFFFF) == SpvOpFConvert && at[0] >> 16 == 4) convert = at;
        if ((at[0] & 0xFFFF) == HDI_SPIRV_COOPERATIVE_MATRIX_LOAD) load = convert ? at : NULL;
        if (load && (at[0] & 0xFFFF) == HDI_SPIRV_COOPERATIVE_MATRIX_MUL_ADD && at[FACTOR_A] == convert[2]) { multiply = at; break; }
    }
    assert_true(multiply && multiply[FACTOR_B] == load[2]);
    const uint32_t a = convert[1];
    convert[1] = load[1];
    load[1] = a;
    for (uint32_t *at = convert; at < multiply; at += at[0] >> 16) { /* into variables of their types from before */
        const bool goes = (at[0] & 0xFFFF) == SpvOpStore && (at[2] == load[2] || at[2] == convert[2]);
        for (uint32_t i = goes ? at[0] >> 16 : 0; i-- > 0;) at[i] = 1u << 16 | SpvOpNop;
    }
    multiply[FACTOR_A] = load[2];
    multiply[FACTOR_B] = convert[2];
    assert_int_equal(print(words, bytes, target, 99, 0), HD_STATUS_UNSUPPORTED);
    assert_non_null(strstr(error.text, "other than of sums to factors A"));
    free(words);
}

/* What differs in WGSL: words, atomics, declarations, bindings in the place of arguments. */
static void test_wgsl(void **state) {
    (void)state;
    assert_int_equal(print(fixture_add, sizeof fixture_add, wgsl, 3, 0x40400000), HD_OK);
    has("@group(0) @binding(2) var<storage, read_write> b2: array<u32>;");
    has("@group(0) @binding(16) var<uniform> launch: array<u32x4, 2>;");
    has("@compute @workgroup_size(");
    has("launch_word(4u)");
    has("* 0x1.8p+1f");
    assert_int_equal(printed.argument_words, 6);
    assert_int_equal(print_user("histogram, -O", wgsl), HD_OK);
    has("var<workgroup> s");
    has("atomicAdd(&s");
    has("array<atomic<u32>>;");
    has("atomicCompareExchangeWeak("); /* the largest of signed numbers */
    assert_int_equal(print_user("mandelbrot, -O", wgsl), HD_OK);
    has("= exact_mul(v");
    has("^ launch[0].w");
    assert_int_equal(print_user("bodies, -O", wgsl), HD_OK);
    has_not("exact_mul");
    assert_int_equal(print_user("lanes, -O", wgsl), HD_STATUS_UNSUPPORTED);
    assert_non_null(strstr(error.text, "OpGroupNonUniformShuffleXor: WGSL has no subgroups here"));
    assert_int_equal(print_user("types, -O", wgsl), HD_STATUS_UNSUPPORTED);
    assert_non_null(strstr(error.text, "64 bits, which WGSL does not have"));
    assert_int_equal(print(fixture_matrix, sizeof fixture_matrix, wgsl, 99, 0), HD_STATUS_UNSUPPORTED);
}

static void test_refusals(void **state) {
    (void)state;
    assert_int_equal(print(fixture_matrix, sizeof fixture_matrix, opencl, 99, 0), HD_STATUS_UNSUPPORTED);
    assert_non_null(strstr(error.text, "SPIR-V word "));
    assert_non_null(strstr(error.text, "OpCooperativeMatrixLoadKHR: OpenCL C has no cooperative matrices here"));
    assert_int_equal(print(fixture_add, 100, opencl, 99, 0), HD_STATUS_MODULE);
    assert_int_equal(print(fixture_uniform_buffer, sizeof fixture_uniform_buffer, opencl, 99, 0), HD_STATUS_MODULE);
}

/* The n-th allocation fails: said, nothing lost. */
/* Names made of letters and a number are numbered anew, by their first occurrence. */
static char *renumbered(const char *from) {
    static uint32_t numbers[1 << 16];
    uint32_t known = 0;
    char *out = malloc(2 * strlen(from) + 1), *at = out;
    memset(numbers, 0, sizeof numbers);
    for (const char *word = from; *word;) {
        const size_t letters = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"), digits = strspn(word + letters, "0123456789");
        const size_t plain = letters + digits ? letters + digits : 1;
        const unsigned long number = digits && digits < 6 ? strtoul(word + letters, NULL, 10) : 0;
        const bool name = letters == 1 ? strchr("vl", *word) != NULL : (letters == 4 && strncmp(word, "left", 4) == 0) || (letters == 5 && strncmp(word, "again", 5) == 0);
        if (name && number && number < HDI_COUNT(numbers)) {
            if (!numbers[number]) numbers[number] = ++known;
            at += sprintf(at, "%.*s%u", (int)letters, word, numbers[number]);
        } else {
            memcpy(at, word, plain);
            at += plain;
        }
        word += plain;
    }
    *at = 0;
    return out;
}

/* A module that was checked is read in another way, and comes to the same text. */
static void test_checked(void **state) {
    (void)state;
    const hdi_spirv_print_target targets[] = { { HDI_SPIRV_OPENCL_C, 0xFF, 0, true, true }, { HDI_SPIRV_CUDA, 0, 0, false, false }, { HDI_SPIRV_WGSL, 0, 0, false, false } };
    static chosen_kernels chosen;
    choose_kernels(&chosen);
    uint32_t ids[HDI_MAX_SPEC];
    for (uint32_t i = 0; i < HDI_MAX_SPEC; i++) ids[i] = i;
    for (size_t k = 0; k < chosen.count + HDI_COUNT(user_kernels); k++) {
        const bool own = k < chosen.count;
        const hdi_kernel *kernel = &chosen.kernels[own ? k : 0];
        const hdi_blob *blob = hdi_module_get(kernel->module)->spirv;
        const void *words = own ? blob->words : user_kernels[k - chosen.count].words;
        const size_t bytes = own ? blob->word_count * 4 : user_kernels[k - chosen.count].bytes;
        const hdi_spirv_print_target *target = &targets[k % HDI_COUNT(targets)];
        hdi_text first = { .allocator = &hdi_default_allocator }, second = first;
        hdi_spirv_printed one, other;
        hdi_spirv_input input = { .module = words, .bytes = bytes, .spec_ids = ids, .spec_values = kernel->spec,
                                  .spec_count = own ? kernel->spec_count : 0 };
        const hd_status status = hdi_spirv_print(&hdi_default_allocator, &input, target, &first, &one, &error);
        input.checked = true;
        assert_int_equal(hdi_spirv_print(&hdi_default_allocator, &input, target, &second, &other, &error), status);
        if (status == HD_OK) {
            char *a = renumbered(first.bytes), *b = renumbered(second.bytes);
            assert_string_equal(a, b);
            assert_memory_equal(one.buffers, other.buffers, sizeof one.buffers);
            assert_int_equal(one.argument_words, other.argument_words);
            free(a);
            free(b);
        }
        hdi_text_free(&first);
        hdi_text_free(&second);
    }
}

typedef struct counter { uint32_t left; int64_t bytes; } counter;
static void *failing(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    counter *c = user;
    if (new_bytes && c->left-- == 0) return c->left = 0, NULL;
    void *now = hdi_default_allocator.resize(NULL, old, old_bytes, new_bytes);
    c->bytes += (int64_t)new_bytes - (int64_t)old_bytes;
    return now;
}
static void test_memory(void **state) {
    (void)state;
    for (uint32_t n = 0;; n++) {
        counter c = { n, 0 };
        const hd_allocator allocator = { failing, &c };
        hdi_text out = { .allocator = &allocator };
        hd_error why = { 0 };
        const hdi_spirv_input input = { .module = kernel_ways_plain, .bytes = sizeof kernel_ways_plain };
        const hd_status status = hdi_spirv_print(&allocator, &input, &opencl, &out, &printed, &why);
        hdi_text_free(&out);
        assert_int_equal(c.bytes, 0);
        if (status == HD_OK) break;
        assert_int_equal(status, HD_STATUS_OUT_OF_HOST_MEMORY);
        assert_true(n < 10000);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments), cmocka_unit_test(test_pure), cmocka_unit_test(test_contraction), cmocka_unit_test(test_declarations), cmocka_unit_test(test_parts),
        cmocka_unit_test(test_subgroups), cmocka_unit_test(test_matrices), cmocka_unit_test(test_bfloat16), cmocka_unit_test(test_reductions), cmocka_unit_test(test_wgsl), cmocka_unit_test(test_refusals), cmocka_unit_test(test_memory), cmocka_unit_test(test_checked),
    };
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hdi_text_free(&text);
    return failures;
}
