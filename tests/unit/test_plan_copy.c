/* Whole tensors that are copied: by the device's command, or, where it says that it is the slower one for so many bytes, by a kernel. */
#include "unit/schedules.h"
#include <stdio.h>
#include <string.h>

static hdi_schedule *schedule_of(const char *text, uint64_t copy_kernel_bytes, uint64_t max_binding_bytes,
                                 uint32_t host_visible) {
    hdi_caps caps = invented_caps();
    caps.max_binding_bytes = max_binding_bytes;
    caps.host_visible = host_visible;
    caps.copy_kernel_bytes = copy_kernel_bytes;
    return schedule_of_text(text, strlen(text), &caps, &(hdi_plan_options){ .math = HD_MATH_EXACT });
}

static hdi_schedule *plan_of(const char *tensor, uint64_t copy_kernel_bytes, uint64_t max_binding_bytes) {
    char text[128];
    snprintf(text, sizeof text, "heddle 1\nv1 = input %s \"x\"\nv2 = copy v1\noutput v2 \"y\"\n", tensor);
    return schedule_of(text, copy_kernel_bytes, max_binding_bytes, 1);
}

static void large_ones_are_a_kernels_where_that_is_faster(void **state) {
    (void)state;
    static const struct { const char *tensor; uint64_t from, elements;
    } cases[] = {
        /* elements 0: a command */
        { "f32[1024]", 0, 0 },        { "f32[1024]", 4097, 0 }, { "f32[1024]", 4096, 1024 },
        { "f16[32,64]", 4096, 1024 }, { "u8[4096]", 1, 1024 },  { "i32[5,7]", 1, 35 },
    };
    for (size_t i = 0; i < HDI_COUNT(cases); i++) {
        hdi_schedule *schedule = plan_of(cases[i].tensor, cases[i].from, 0);
        const hdi_schedule_step *step = &schedule->steps[0];
        assert_int_equal(schedule->step_count, 1);
        assert_int_equal(step->kind, cases[i].elements ? HDI_CMD_DISPATCH : HDI_CMD_COPY);
        if (cases[i].elements) {
            assert_int_equal(step->kernel.module, HDI_MODULE_ELEMENTWISE);
            assert_int_equal(step->kernel.spec[HDI_SPEC_OUT_TYPE], HDI_TYPE_I32); /* words as they are, whatever they hold */
            assert_int_equal(step->push[0], cases[i].elements);
        }
        assert_int_equal(step->bytes, cases[i].elements ? 8 * cases[i].elements : 8192);
        hdi_schedule_free(schedule);
    }
    hdi_schedule *schedule = plan_of("u8[65536]", 4096, 20000); /* more than a binding sees: in parts */
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < schedule->step_count; s++) bytes += schedule->steps[s].bytes;
    assert_true(schedule->step_count > 3 && bytes == 2 * 65536);
    hdi_schedule_free(schedule);
}

/* The number of copies in a plan where so many kernels read a small input. */
static uint32_t fetches(uint32_t elements, uint32_t readers, uint32_t host_visible) {
    char text[1024];
    int used = snprintf(text, sizeof text, "heddle 1\nv1 = input f32[%u] \"x\"\n", elements);
    for (uint32_t i = 0; i < readers; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "v%u = relu v1\noutput v%u \"y%u\"\n", i + 2, i + 2, i);
    hdi_schedule *schedule = schedule_of(text, 0, 0, host_visible);
    uint32_t copies = 0;
    for (uint32_t s = 0; s < schedule->step_count; s++) {
        copies += schedule->steps[s].kind == HDI_CMD_COPY;
        assert_true(schedule->steps[s].kind == HDI_CMD_COPY || copies == 0 || schedule->steps[s].level > 0);
    }
    assert_int_equal(schedule->step_count, readers + copies);
    hdi_schedule_free(schedule);
    return copies;
}

static void inputs_across_the_bus_are_fetched_once(void **state) {
    (void)state;
    assert_int_equal(fetches(16, 12, 0), 1);
    assert_int_equal(fetches(16, 12, 1), 0);    /* the host writes them where kernels read them */
    assert_int_equal(fetches(16, 2, 0), 0);     /* a fetch would cost as much */
    assert_int_equal(fetches(16385, 12, 0), 0); /* lies in the device's memory */
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(large_ones_are_a_kernels_where_that_is_faster),
                                        cmocka_unit_test(inputs_across_the_bus_are_fetched_once) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
