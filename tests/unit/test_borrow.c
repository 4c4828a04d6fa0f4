/* test_borrow.c: a kernel that a device lacks runs on the CPU beside it: the same result, a line in the log, the reason in what
 * explains the plan; refused where the caller or strict mode wants that. */
#include "device/device.h"
#include "facts/facts.h"
#include "kernels/kernel.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static hd_context *context;
static hd_device *device;
static char logged[4096];
static uint32_t lines;

static void listen(void *user, hd_log_level level, const char *part, const char *line) {
    (void)user, (void)level;
    if (strcmp(part, "plan") != 0) return;
    lines++;
    snprintf(logged, sizeof logged, "%s", line);
}

/* A Vulkan device without its kernels of softmax, or false. */
static bool open_lacking(const char *backends, bool lacks) {
    const hd_context_desc desc = { .backend = backends, .cache_dir = "", .verify = -1, .log = listen };
    lines = 0;
    logged[0] = 0;
    assert_int_equal(hd_context_create(&desc, &context), HD_OK);
    if (hd_device_open(context, &(hd_device_desc){ .id = "vulkan" }, &device)) {
        hd_context_destroy(context);
        return false;
    }
    hd_device *inside = device;
    assert_true(HDI_FIND(inside));
    hdi_facts *facts = hdi_store_lock(inside->facts);
    for (int exact = 0; exact < 2 && lacks; exact++) facts->caps.wrong[HDI_MODULE_SOFTMAX][exact] = UINT64_MAX;
    hdi_store_changed(inside->facts);
    hdi_store_unlock(inside->facts);
    return true;
}

static hd_program *program_of(void) {
    hd_program *p = hd_program_create(context);
    const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(8, 64)), w = hd_input(p, "w", HD_F32, HD_SHAPE(64, 64));
    const hd_value h = hd_softmax(p, hd_matmul(p, x, w), 1); /* v3, v4 */
    hd_output(p, "y", hd_relu(p, hd_matmul(p, h, w)));
    return p;
}

static hd_status plan_it(const hd_plan_desc *desc, hd_plan **out_plan) {
    hd_program *p = program_of();
    const hd_status status = hd_plan_create(device, p, desc, out_plan);
    hd_program_destroy(p);
    return status;
}

static void run_it(hd_plan *plan, float y[512]) {
    float x[512], w[4096];
    for (int i = 0; i < 512; i++) x[i] = (float)(i % 17) / 4 - 2;
    for (int i = 0; i < 4096; i++) w[i] = (float)(i % 23) / 8 - 1;
    assert_int_equal(hd_plan_write(plan, "x", x, sizeof x), HD_OK);
    assert_int_equal(hd_plan_write(plan, "w", w, sizeof w), HD_OK);
    assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
    assert_int_equal(hd_plan_read(plan, "y", y, 2048), HD_OK);
}

static const hd_plan_desc exact = { .math = HD_MATH_EXACT }, alone = { .math = HD_MATH_EXACT, .alone = 1 };

static void the_cpu_computes_it(void **state) {
    (void)state;
    static char text[1 << 16];
    float whole[512], borrowed[512];
    hd_plan *plan;
    hd_plan_stats stats;
    hd_plan_memory told, taken;
    if (!open_lacking("vulkan,cpu", false)) skip();
    assert_int_equal(plan_it(&exact, &plan), HD_OK);
    run_it(plan, whole);
    assert_int_equal(lines, 0);
    hd_plan_get_stats(plan, &stats);
    assert_int_equal(stats.borrowed, 0);
    hd_context_destroy(context);

    assert_true(open_lacking("vulkan,cpu", true));
    hd_program *p = program_of();
    assert_int_equal(hd_plan_estimate(device, p, &exact, &told), HD_OK);
    lines = 0;
    assert_int_equal(hd_plan_create(device, p, &exact, &plan), HD_OK);
    assert_int_equal(lines, 1);
    assert_non_null(strstr(logged, "has no kernel for v4 softmax: the CPU computes that"));
    assert_int_equal(hd_plan_get_memory(plan, &taken), HD_OK);
    assert_int_equal(told.total_bytes, taken.total_bytes);
    run_it(plan, borrowed);
    run_it(plan, borrowed); /* and again */
    assert_memory_equal(whole, borrowed, sizeof whole); /* exact mode: to the bit */
    hd_plan_get_stats(plan, &stats);
    assert_int_equal(stats.segments, 3);
    assert_int_equal(stats.borrowed, 1);
    assert_int_equal(hd_plan_explain(plan, text, sizeof text, NULL), HD_OK);
    assert_non_null(strstr(text, "on the CPU, since vulkan:"));
    assert_non_null(strstr(text, "has no kernel for them: v4 softmax"));
    hd_plan_destroy(plan);
    hd_program_destroy(p);
    hd_context_destroy(context);
}

static void it_can_be_refused(void **state) {
    (void)state;
    hd_plan *plan = NULL;
    if (!open_lacking("vulkan,cpu", true)) skip();
    assert_int_equal(plan_it(&alone, &plan), HD_STATUS_UNSUPPORTED);
    assert_null(plan);
    assert_non_null(strstr(hd_context_error(context), "softmax"));
    const uint64_t live = hd_context_live_objects(context);
    hd_program *p = program_of();
    hd_plan_memory memory;
    assert_int_equal(hd_plan_estimate(device, p, &alone, &memory), HD_STATUS_UNSUPPORTED);
    assert_int_equal(hd_plan_estimate_each(device, p, &exact, &memory), HD_STATUS_UNSUPPORTED); /* it has room for one device */
    hd_program_destroy(p);
    (void)hd_context_error(context);
    assert_int_equal(hd_context_live_objects(context), live);
    hd_context_destroy(context);
    assert_true(open_lacking("vulkan", true)); /* no CPU is looked at */
    assert_int_equal(plan_it(&exact, &plan), HD_STATUS_UNSUPPORTED);
    (void)hd_context_error(context);
    hd_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(the_cpu_computes_it), cmocka_unit_test(it_can_be_refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
