/* test_saved_plan.c: plans as files: what was saved comes back to the byte, whatever was measured since; a text that was
 * changed, cut, or is of another device is refused by a line that says so, and harms nothing. */
#include "device/device.h"
#include "facts/facts.h"
#include "kernels/kernel.h"
#include "unit/saved.h"
#include <stdio.h>
#include <string.h>

static hd_context *context;
static hd_device *device;

static void check(hd_status status) {
    if (status) fail_msg("%s", hd_context_error(context));
}

static int open_device(void **state) {
    (void)state;
    if (hd_context_create(&(hd_context_desc){ .cache_dir = "", .cpu_threads = 2 }, &context)) return -1;
    return hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device) ? -1 : 0;
}

static int close_device(void **state) {
    (void)state;
    hd_context_destroy(context);
    return 0;
}

static const char program_text[] = "heddle 1\nx = input f32[64,64] \"x\"\ns = state f32[64,64] \"s\"\nm = matmul x s\n"
                                   "r = relu m\na = assign s r\ne = exp x\noutput r \"y\"\noutput e \"e\"\n";

static hd_plan *make(const hd_plan_desc *desc) {
    hd_program *program = NULL;
    hd_plan *plan = NULL;
    check(hd_program_parse(context, program_text, sizeof program_text - 1, &program));
    check(hd_plan_create(device, program, desc, &plan));
    hd_program_destroy(program);
    return plan;
}

/* Loading is refused with this status and these words. */
static void refuse(const char *text, size_t bytes, const hd_plan_desc *desc, hd_status status, const char *words) {
    hd_plan *plan = (hd_plan *)&plan;
    const hd_status got = hd_plan_load(device, text, bytes, desc, &plan);
    if (got != status) fail_msg("%s: %s", words, hd_context_error(context));
    assert_null(plan);
    const char *error = hd_context_error(context);
    if (!strstr(error, words)) fail_msg("\"%s\" lacks \"%s\"", error, words);
}

/* `text` with `what` in place of the first `instead`. */
static char *replaced(const char *text, const char *instead, const char *what) {
    const char *at = strstr(text, instead);
    assert_non_null(at);
    char *out = malloc(strlen(text) + strlen(what) + 1);
    assert_non_null(out);
    sprintf(out, "%.*s%s%s", (int)(at - text), text, what, at + strlen(instead));
    return out;
}

static void refuse_changed(const char *text, const char *instead, const char *what, hd_status status, const char *words) {
    char *changed = replaced(text, instead, what);
    refuse(changed, strlen(changed), NULL, status, words);
    free(changed);
}

static void comes_back(void **state) {
    (void)state;
    const hd_plan_desc wishes[] = { { 0 }, { .math = HD_MATH_EXACT }, { .no_fusion = 1, .in_order = 1, .slice_us = 500 }, { .budget_bytes = 1 << 20 } };
    float x[64 * 64], y[64 * 64];
    for (int i = 0; i < 64 * 64; i++) x[i] = (float)(i % 13) - 6;
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        hd_plan *plan = make(&wishes[i]), *again = saved_and_loaded(context, plan, &device, 1);
        hd_plan_memory memory[2];
        check(hd_plan_get_memory(plan, &memory[0]));
        check(hd_plan_get_memory(again, &memory[1]));
        assert_memory_equal(&memory[0], &memory[1], sizeof memory[0]);
        check(hd_plan_write(again, "x", x, sizeof x));
        check(hd_plan_run(again, NULL));
        check(hd_plan_read(again, "y", y, sizeof y));
        hd_plan_destroy(again);
        hd_plan_destroy(plan);
    }
}

static uint32_t id_of(const char *text) {
    char own[HDI_KERNEL_OPTION_TEXT];
    for (const hdi_kernel_option *o = NULL; (o = hdi_kernel_option_next(HDI_MODULE_ELEMENTWISE, o));)
        if (strcmp(hdi_kernel_option_text(o, own), text) == 0) return o->id;
    return 0;
}

/* What was chosen when it was saved is in it, and not what new plans have by now. */
static void keeps_its_choices(void **state) {
    (void)state;
    const hdi_class of = hdi_class_of(HDI_CLASS_ELEMENTWISE, HD_F32, 1, 64 * 64);
    const hdi_choice choice = { .of = of, .option = id_of("w16384"), .gain = 2 };
    size_t bytes;
    hd_device *inside = device;
    assert_true(HDI_FIND(inside));
    assert_int_equal(hdi_store_choose(inside->facts, of, &choice, NULL), HD_OK);
    hd_plan *plan = make(NULL), *again = NULL, *other;
    char *text = saved_text(hd_plan_save, plan, &bytes);
    assert_int_equal(hdi_store_choose(inside->facts, of, NULL, NULL), HD_OK);
    other = make(NULL);
    check(hd_plan_load(device, text, bytes, NULL, &again));
    hd_plan *const plans[] = { plan, again, other };
    for (int i = 0; i < 3; i++) {
        char *explained = saved_text(hd_plan_explain, plans[i], &bytes);
        assert_true((strstr(explained, "elementwise as w16384, ") != NULL) == (i < 2));
        free(explained);
        hd_plan_destroy(plans[i]);
    }
    free(text);
}

static void refuses_what_is_not_it(void **state) {
    (void)state;
    hd_plan *plan = make(NULL);
    size_t bytes;
    char *text = saved_text(hd_plan_save, plan, &bytes);
    hd_plan_destroy(plan);
    refuse("heddle 1\n", 9, NULL, HD_STATUS_PARSE, "not a saved plan");
    refuse("", 0, NULL, HD_STATUS_PARSE, "not a saved plan");
    refuse(text, bytes, &(hd_plan_desc){ .math = HD_MATH_EXACT }, HD_STATUS_INVALID_ARGUMENT, "wishes are in its text");
    refuse(text, bytes, &(hd_plan_desc){ .beside = &device, .beside_count = 1 }, HD_STATUS_INVALID_ARGUMENT,
           "saved for 1 devices, not for 2");
    refuse_changed(text, "math fast", "math exact", HD_STATUS_UNSUPPORTED, "plan anew");
    refuse_changed(text, "math fast", "math quick", HD_STATUS_PARSE, "line 2: math is exact or fast");
    refuse_changed(text, "budget_bytes 0", "budget_bytes 100", HD_STATUS_OVER_BUDGET, "budget");
    refuse_changed(text, "\nthreads 2", "\nthreads 7", HD_STATUS_UNSUPPORTED, "threads differs");
    refuse_changed(text, "\nthreads 2", "\nthreads x", HD_STATUS_PARSE, "threads");
    refuse_changed(text, "\nroute ", "\nroute v9=0,", HD_STATUS_PARSE, "route");
    refuse_changed(text, "\nroute rest=0", "\nroute rest=1", HD_STATUS_PARSE, "route");
    refuse_changed(text, "[64,64]", "[64,65]", HD_STATUS_SHAPE, "");
    refuse_changed(text, "= relu", "= silu", HD_STATUS_UNSUPPORTED, "its text was changed");
    free(text);
}

/* Cut anywhere, and with any byte changed: refused, or the very same plan. */
static void survives_damage(void **state) {
    (void)state;
    hd_plan *plan = make(NULL), *again;
    size_t bytes;
    char *text = saved_text(hd_plan_save, plan, &bytes);
    hd_plan_destroy(plan);
    for (size_t i = 0; i < bytes; i++) {
        if (!hd_plan_load(device, text, i, NULL, &again)) hd_plan_destroy(again);
        const char was = text[i];
        text[i] = (char)(was ^ (1 << i % 7));
        if (!hd_plan_load(device, text, bytes, NULL, &again)) hd_plan_destroy(again);
        text[i] = was;
        hd_context_error(context);
    }
    free(text);
    assert_int_equal(hd_context_live_objects(context), 1);
}

static void wants_its_arguments(void **state) {
    (void)state;
    hd_plan *plan = NULL;
    assert_int_equal(hd_plan_save(NULL, NULL, 0, NULL), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_plan_load(NULL, "", 0, NULL, &plan), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_plan_load(device, NULL, 0, NULL, &plan), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_plan_load(device, "", 0, NULL, NULL), HD_STATUS_NULL_POINTER);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back),      cmocka_unit_test(keeps_its_choices),   cmocka_unit_test(refuses_what_is_not_it),
        cmocka_unit_test(survives_damage), cmocka_unit_test(wants_its_arguments),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
