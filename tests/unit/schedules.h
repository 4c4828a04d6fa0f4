/* schedules.h: the plan that a text has on an invented device, for tests of the plan room. */
#ifndef HEDDLE_TESTS_SCHEDULES_H
#define HEDDLE_TESTS_SCHEDULES_H

#include "plan/schedule.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* A device that refuses nothing small; tests say what else it is. */
static inline hdi_caps invented_caps(void) {
    return (hdi_caps){ .memory_bytes = UINT64_C(1) << 34,
                       .max_allocation_bytes = UINT64_C(1) << 32,
                       .max_binding_bytes = UINT64_C(1) << 30,
                       .binding_align = 16,
                       .max_bindings = 8,
                       .max_push_bytes = 128,
                       .max_workgroup = 1024,
                       .max_workgroup_x = 1024,
                       .max_groups_x = 65535,
                       .max_groups_y = 65535,
                       .max_groups_z = 65535 };
}

/* The caller's; what is refused fails the test. */
static inline hdi_schedule *schedule_of_text(const char *text, size_t bytes, const hdi_caps *caps, const hdi_plan_options *options) {
    hdi_schedule *schedule = NULL;
    hd_error error = { 0 };
    hd_program *program = hdi_program_new(&hdi_default_allocator, NULL);
    if (hdi_program_parse(program, text, bytes, NULL, NULL, &error) ||
        hdi_schedule_make(&hdi_default_allocator, program, caps, options, &schedule, &error))
        fail_msg("%s", error.text);
    hdi_program_free(program);
    return schedule;
}

#endif
