/* test_fault_products.c: products that a GPU's own library refuses, one of them, all of them, or because the library is not there
 * after all: the next best kernel makes them, rightly, and the plan's explanation says so. */
#include "device/cuda/cu.h"
#include "device/device.h"
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { M = 128, N = 128, K = 128, WIDE = 256, TEXT = 1 << 16 };
static hd_context *context;
static hd_device *device;
static int asked, refused; /* searches of the library so far; how many of them fail */

static int refuse(hdcu_function function) { return function == HDCU_FN_BlasFind && asked++ < refused ? HDCU_UNKNOWN : HDCU_SUCCESS; }

static int open_cuda(void **state) {
    (void)state;
    asked = refused = 0;
    hdcu_fault_set(refuse);
    return hd_context_create(&(hd_context_desc){ .cache_dir = "" }, &context) || hd_device_open(context, &(hd_device_desc){ .id = "cuda" }, &device);
}

static int close_all(void **state) {
    (void)state;
    hd_context_destroy(context);
    hdcu_fault_set(NULL);
    return 0;
}

static float number(int i) { return (float)(i * 7 % 13 - 6); }

static void write(hd_plan *plan, const char *name, int count) {
    float *data = malloc((size_t)count * sizeof *data);
    assert_non_null(data);
    for (int i = 0; i < count; i++) data[i] = number(i);
    assert_int_equal(hd_plan_write(plan, name, data, (uint64_t)count * sizeof *data), HD_OK);
    free(data);
}

/* Whole numbers: every order of adding them gives the same. */
static void check(hd_plan *plan, const char *name, int columns) {
    float *sums = malloc((size_t)M * (size_t)columns * sizeof *sums);
    assert_non_null(sums);
    assert_int_equal(hd_plan_read(plan, name, sums, (uint64_t)M * (uint64_t)columns * sizeof *sums), HD_OK);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < columns; n++) {
            float sum = 0;
            for (int k = 0; k < K; k++) sum += number(m * K + k) * number(k * columns + n);
            assert_true(sums[m * columns + n] == sum);
        }
    free(sums);
}

/* Two products of different shapes; how many of them the library makes, and what the explanation has to say. */
static void multiply(int by_library, const char *words) {
    static char text[TEXT];
    hd_plan *plan;
    hd_program *p = hd_program_create(context);
    const hd_value a = hd_input(p, "a", HD_F32, HD_SHAPE(M, K));
    hd_output(p, "y", hd_matmul(p, a, hd_input(p, "b", HD_F32, HD_SHAPE(K, N))));
    hd_output(p, "z", hd_matmul(p, a, hd_input(p, "c", HD_F32, HD_SHAPE(K, WIDE))));
    if (hd_plan_create(device, p, NULL, &plan)) fail_msg("%s", hd_context_error(context));
    assert_int_equal(hd_plan_explain(plan, text, sizeof text, NULL), HD_OK);
    int found = 0;
    for (const char *at = text; (at = strstr(at, "because many rows of A: the device's own library")) != NULL; at++) found++;
    if (found != by_library || (words ? !strstr(text, words) : strstr(text, "refuses") != NULL)) fail_msg("%d by the library:\n%s", found, text);
    write(plan, "a", M * K);
    write(plan, "b", K * N);
    write(plan, "c", K * WIDE);
    assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
    check(plan, "y", N);
    check(plan, "z", WIDE);
    hd_plan_destroy(plan);
    hd_program_destroy(p);
}

static void nothing_is_refused(void **state) {
    (void)state;
    multiply(2, NULL);
}

static void one_shape_is_refused(void **state) {
    (void)state;
    refused = 1;
    multiply(1, "refuses 1 shape, made by the next best kernel\n");
    const int before = asked;
    multiply(1, "refuses 1 shape, made by the next best kernel\n");
    assert_int_equal(asked, before); /* a fact of the device by now */
}

static void all_shapes_are_refused(void **state) {
    (void)state;
    refused = 1000;
    multiply(0, "refuses 2 shapes, made by the next best kernel\n");
}

static void the_library_is_not_there(void **state) {
    (void)state;
    assert_true(HDI_FIND(device));
    device->handle->api.BlasCreate = NULL;
    device->handle->api.multiplies = false;
    multiply(0, "it is asked no more\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_refused, open_cuda, close_all),
        cmocka_unit_test_setup_teardown(one_shape_is_refused, open_cuda, close_all),
        cmocka_unit_test_setup_teardown(all_shapes_are_refused, open_cuda, close_all),
        cmocka_unit_test_setup_teardown(the_library_is_not_there, open_cuda, close_all),
    };
    hdi_probe probe;
    const hdi_host host = { .allocator = &hdi_default_allocator, .log = &(hdi_log){ .level = HD_LOG_ERROR }, .cpu_threads = 1 };
    hdi_backend_cuda.probe(&host, &probe);
    if (!probe.found_count || !probe.found[0].caps.product_library) {
        printf("skipped: %s\n", probe.found_count ? "no library of products" : probe.reason);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
