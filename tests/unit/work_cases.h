/* work_cases.h: what the tests of work share: a program from its text, and the work of its plan's kernels. */
#ifndef WORK_CASES_H
#define WORK_CASES_H

#include "plan/schedule.h"
#include "program_cases.h"

typedef struct counted {
    uint64_t flops, bytes, launches;
} counted;

static const hdi_caps gpu = {
    .name = "invented",
    .memory_bytes = 1u << 30,
    .max_allocation_bytes = 1u << 30,
    .max_binding_bytes = 1u << 30,
    .binding_align = 256,
    .max_bindings = 16,
    .max_push_bytes = 256,
    .max_workgroup = 1024,
    .max_workgroup_x = 1024,
    .max_groups_x = 65535,
    .max_groups_y = 65535,
    .max_groups_z = 65535,
    .shared_bytes = 32768,
    .subgroup = 32,
    .subgroup_arithmetic = 1,
    .subgroup_shuffle = 1,
    .f16_storage = 1,
    .u8_storage = 1,
    .dispatch_base = 1,
    .compute_units = 16,
};

static inline hd_program *parse(const char *lines) {
    hd_error error = { 0 };
    hdi_text text = { .allocator = &hdi_default_allocator };
    hd_program *p = hdi_program_new(&hdi_default_allocator, NULL);
    hdi_text_add(&text, "heddle 1\n%s", lines);
    if (hdi_program_parse(p, text.bytes, text.count, NULL, NULL, &error)) fail_msg("%s\n%s", error.text, lines);
    hdi_text_free(&text);
    return p;
}

/* Of the kernels; what is copied because an input is an output too is no operation's work. */
static inline counted planned(const hd_program *p, bool fusion) {
    hd_error error = { 0 };
    hdi_schedule *schedule;
    counted all = { 0 };
    const hdi_plan_options options = { .math = HD_MATH_FAST, .no_fusion = !fusion };
    if (hdi_schedule_make(&hdi_default_allocator, p, &gpu, &options, &schedule, &error)) fail_msg("%s", error.text);
    for (uint32_t i = 0; i < schedule->step_count; i++) {
        if (schedule->steps[i].kind == HDI_CMD_COPY && p->nodes[p->node_count - 1].op != HDI_OP_COPY) continue;
        all.flops += schedule->steps[i].flops;
        all.bytes += schedule->steps[i].bytes;
        all.launches += schedule->steps[i].kind == HDI_CMD_DISPATCH;
    }
    hdi_schedule_free(schedule);
    return all;
}
#endif
