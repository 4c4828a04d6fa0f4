/* test_watch.c: hd_context_desc.find_nan names the operation and the tensor that the first NaN or infinity of a run comes from, on
 * each device that is there and in both arithmetics; without it a plan is what it was. */
#define _POSIX_C_SOURCE 200809L
#include <heddle.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *const ids[] = { "cpu", "vulkan" };
static hd_context *context;
static hd_device *device;

static bool open_on(const char *id, int find_nan) {
    const hd_context_desc desc = { .backend = id, .cache_dir = "", .find_nan = find_nan, .verify = -1 };
    assert_int_equal(hd_context_create(&desc, &context), HD_OK);
    if (!hd_device_open(context, &(hd_device_desc){ .id = id }, &device)) return true;
    hd_context_destroy(context);
    return false;
}

/* log of x, added to b, into a product, and a softmax; "s" holds the sum. */
static hd_plan *plan_of(hd_math math, hd_dtype type) {
    hd_plan *plan = NULL;
    hd_program *p = hd_program_create(context);
    const hd_value x = hd_input(p, "x", type, HD_SHAPE(2, 3)), b = hd_input(p, "b", type, HD_SHAPE(3));
    const hd_value w = hd_input(p, "w", HD_F32, HD_SHAPE(3, 4)), s = hd_state(p, "s", HD_F32, HD_SHAPE(2, 4));
    const hd_value sum = hd_add(p, hd_log(p, x), b); /* v5, v6 */
    const hd_value product = hd_matmul(p, hd_cast(p, sum, HD_F32), w); /* v7, v8 */
    hd_assign(p, s, product);
    hd_output(p, "y", hd_softmax(p, hd_scale(p, product, 0.5f, 0), 1));
    assert_int_equal(hd_plan_create(device, p, &(hd_plan_desc){ .math = math }, &plan), HD_OK);
    hd_program_destroy(p);
    return plan;
}

static hd_status run(hd_plan *plan, const float x[6], const float b[3], const char *wanted) {
    float w[12], y[8];
    for (int i = 0; i < 12; i++) w[i] = (float)(i + 1) / 8;
    assert_int_equal(hd_plan_write(plan, "x", x, 24), HD_OK);
    assert_int_equal(hd_plan_write(plan, "b", b, 12), HD_OK);
    assert_int_equal(hd_plan_write(plan, "w", w, sizeof w), HD_OK);
    const hd_status status = hd_plan_run(plan, NULL);
    const char *text = hd_context_error(context);
    if (wanted && !strstr(text, wanted)) fail_msg("\"%s\" does not say \"%s\"", text, wanted);
    if (!wanted && text[0]) fail_msg("%s", text);
    assert_int_equal(hd_plan_read(plan, "y", y, sizeof y), HD_OK); /* also where something was found */
    return status;
}

static const float fine[6] = { 1, 2, 3, 4, 5, 6 }, plain[3] = { 1, 2, 3 };

static void names_what_made_it(const char *id, hd_math math) {
    const float negative[6] = { 1, 2, 3, 4, -5, 6 }, zero[6] = { 1, 2, 0, 4, 5, 6 };
    const float masked[3] = { 0, -INFINITY, 0 }, holed[3] = { 0, 0, NAN };
    assert_true(open_on(id, 1));
    hd_plan *plan = plan_of(math, HD_F32);
    assert_int_equal(run(plan, fine, plain, NULL), HD_OK);
    assert_int_equal(run(plan, negative, plain, "v5, log f32[2,3], is the first"), HD_STATUS_NOT_FINITE);
    assert_int_equal(run(plan, negative, plain, "1 NaN and 0 infinities of 6 elements, the first at [1,1]"), HD_STATUS_NOT_FINITE);
    assert_int_equal(run(plan, fine, holed, "v2, input f32[3] \"b\", is the first"), HD_STATUS_NOT_FINITE);
    assert_int_equal(run(plan, zero, plain, "softmax f32[2,4] \"y\", is the first"), HD_STATUS_NOT_FINITE); /* -inf - -inf */
    assert_int_equal(run(plan, fine, plain, NULL), HD_OK); /* found anew in each run */
    hd_plan_destroy(plan);
    hd_context_destroy(context);
    assert_true(open_on(id, 2));
    plan = plan_of(math, HD_F32);
    assert_int_equal(run(plan, fine, plain, NULL), HD_OK);
    assert_int_equal(run(plan, zero, plain, "v5, log f32[2,3], is the first"), HD_STATUS_NOT_FINITE);
    assert_int_equal(run(plan, zero, plain, "0 NaN and 1 infinities of 6 elements, the first at [0,2]"), HD_STATUS_NOT_FINITE);
    assert_int_equal(run(plan, fine, masked, "softmax"), HD_STATUS_NOT_FINITE); /* a mask's infinities are a wish; their NaN is not */
    hd_plan_destroy(plan);
    hd_context_destroy(context);
}

static void the_first_is_named(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        if (!open_on(ids[i], 0)) {
            print_message("%s is not here\n", ids[i]);
            continue;
        }
        hd_context_destroy(context);
        names_what_made_it(ids[i], HD_MATH_EXACT);
        names_what_made_it(ids[i], HD_MATH_FAST);
    }
}

/* Numbers of 16 bits, and a run that is only waited for. */
static void halves_and_tickets(void **state) {
    (void)state;
    assert_true(open_on("cpu", 2));
    hd_program *p = hd_program_create(context);
    const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(4));
    hd_output(p, "y", hd_cast(p, x, HD_F16));
    hd_plan *plan;
    hd_ticket *ticket;
    assert_int_equal(hd_plan_create(device, p, NULL, &plan), HD_OK);
    assert_int_equal(hd_plan_write(plan, "x", (float[]){ 1, 2, 70000, 4 }, 16), HD_OK);
    assert_int_equal(hd_plan_submit(plan, &ticket), HD_OK);
    assert_int_equal(hd_ticket_wait(ticket, 0), HD_STATUS_NOT_FINITE);
    assert_non_null(strstr(hd_context_error(context), "v2, cast f16[4] \"y\", is the first"));
    hd_ticket_destroy(ticket);
    hd_plan_destroy(plan);
    hd_program_destroy(p);
    hd_context_destroy(context);
}

static void it_costs_nothing_where_it_is_off(void **state) {
    (void)state;
    hd_plan_stats off, on;
    assert_true(open_on("cpu", 0));
    hd_plan *plan = plan_of(HD_MATH_FAST, HD_F32);
    assert_int_equal(hd_plan_get_stats(plan, &off), HD_OK);
    const float negative[6] = { -1, 2, 3, 4, 5, 6 };
    assert_int_equal(run(plan, negative, plain, NULL), HD_OK); /* nobody asked */
    hd_plan_destroy(plan);
    hd_context_destroy(context);
    assert_int_equal(setenv("HEDDLE_FIND_NAN", "1", 1), 0);
    assert_true(open_on("cpu", 0));
    plan = plan_of(HD_MATH_FAST, HD_F32);
    assert_int_equal(hd_plan_get_stats(plan, &on), HD_OK);
    assert_true(off.dispatches <= 4 && on.dispatches > off.dispatches);
    assert_int_equal(run(plan, negative, plain, "log"), HD_STATUS_NOT_FINITE);
    hd_plan_destroy(plan);
    hd_context_destroy(context);
    assert_int_equal(setenv("HEDDLE_FIND_NAN", "3", 1), 0);
    assert_int_equal(hd_context_create(NULL, &context), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(unsetenv("HEDDLE_FIND_NAN"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(the_first_is_named), cmocka_unit_test(halves_and_tickets),
                                        cmocka_unit_test(it_costs_nothing_where_it_is_off) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
