/* schedule.c: the stages of planning in order, and the second try with a tight order where a budget asks for it. */
#include "plan/schedule.h"

uint32_t hdi_schedule_storage(hdi_schedule *schedule, hdi_storage_kind kind, uint64_t bytes, const char *name) {
    if (!hdi_grow(schedule->arena.allocator, &schedule->storages, &schedule->storage_capacity,
                  (size_t)schedule->storage_count + 1, sizeof *schedule->storages))
        return HDI_NO_INDEX;
    schedule->storages[schedule->storage_count] = (hdi_storage){
        .kind = kind, .bytes = bytes, .name = name, .parent = HDI_NO_INDEX, .first_level = UINT32_MAX };
    return schedule->storage_count++;
}

uint32_t hdi_schedule_root(const hdi_schedule *schedule, uint32_t storage, uint64_t *inout_offset) {
    while (schedule->storages[storage].parent != HDI_NO_INDEX) {
        if (inout_offset) *inout_offset += schedule->storages[storage].parent_offset;
        storage = schedule->storages[storage].parent;
    }
    return storage;
}

void hdi_schedule_free(hdi_schedule *schedule) {
    if (!schedule) return;
    const hd_allocator *allocator = schedule->arena.allocator;
    for (uint32_t i = 0; i < schedule->kernel_count; i++) hdi_user_kernel_release(schedule->kernels[i]);
    hdi_free(allocator, schedule->kernels, schedule->kernel_capacity * sizeof *schedule->kernels);
    hdi_free(allocator, schedule->storages, schedule->storage_capacity * sizeof *schedule->storages);
    hdi_free(allocator, schedule->steps, schedule->step_capacity * sizeof *schedule->steps);
    hdi_names_free(&schedule->constants);
    hdi_free(allocator, schedule->slots, schedule->slot_capacity * sizeof *schedule->slots);
    hdi_cmds_free(&schedule->cmds);
    hdi_arena_free(&schedule->arena);
    hdi_free(allocator, schedule, sizeof *schedule);
}

const char *hdi_schedule_module_name(void *schedule, uint32_t module) {
    (void)schedule;
    const hdi_module *built_in = hdi_module_get(module);
    return built_in ? built_in->name : "user";
}

static hd_status run_stages(hdi_schedule *schedule, const hd_program *program, hd_error *error) {
    hd_status status = hdi_schedule_fuse(schedule, program, error);
    if (schedule->options.works) return status;
    if (!status) status = hdi_schedule_order(schedule, error);
    if (!status) status = hdi_schedule_allocate(schedule, error);
    if (!status) status = hdi_schedule_emit(schedule, error);
    if (!status) status = hdi_cmds_check(&schedule->cmds, error);
    return status;
}

static hdi_schedule *new_schedule(const hd_allocator *allocator, const hdi_caps *caps, const hdi_plan_options *options,
                                  bool tight) {
    hdi_schedule *schedule = hdi_alloc(allocator, sizeof *schedule);
    if (!schedule) return NULL;
    schedule->arena.allocator = schedule->constants.allocator = allocator;
    schedule->options = *options;
    if (schedule->options.math == HD_MATH_DEFAULT) schedule->options.math = HD_MATH_FAST;
    if (schedule->options.slice_us == 0) schedule->options.slice_us = 100000;
    schedule->caps = *caps;
    schedule->tight = tight;
    hdi_cmds_init(&schedule->cmds, allocator);
    return schedule;
}

static hd_status make_within(const hd_allocator *allocator, const hd_program *program, const hdi_caps *caps,
                             const hdi_plan_options *options, hdi_schedule **out_schedule, hd_error *error) {
    hd_status status = HD_OK;
    for (int tight = 0; !status && tight < 2; tight++) {
        hdi_schedule *schedule = new_schedule(allocator, caps, options, tight);
        if (!schedule) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a plan");
        status = run_stages(schedule, program, error);
        uint64_t needed = schedule->memory.total_bytes, budget = schedule->options.budget_bytes;
        if (!status && (budget == 0 || needed <= budget)) {
            schedule->options.offer = NULL; /* the caller's */
            schedule->options.works = NULL;
            *out_schedule = schedule;
            return HD_OK;
        }
        hdi_schedule_free(schedule);
        if (!status && tight)
            status = hdi_fail(error, HD_STATUS_OVER_BUDGET, "the plan needs %llu bytes and its budget is %llu",
                              (unsigned long long)needed, (unsigned long long)budget);
    }
    return status;
}

hd_status hdi_schedule_make(const hd_allocator *allocator, const hd_program *program, const hdi_caps *caps,
                        const hdi_plan_options *options, hdi_schedule **out_schedule, hd_error *error) {
    hd_error first = { 0 };
    const bool is_segment = program->node_count > 0 && program->nodes[0].whole; /* it may hold inputs alone */
    hd_status status = is_segment ? HD_OK : hdi_program_check(program, error);
    if (!status && caps->inexact && options->math == HD_MATH_EXACT)
        status = hdi_fail(
            error, HD_STATUS_UNSUPPORTED,
            "%s does not round f32 or keep subnormals as exact mode needs, as a known answer showed; plan in fast mode",
            caps->name);
    if (status) return status;
    status = make_within(allocator, program, caps, options, out_schedule, &first);
    if (status && status != HD_STATUS_OUT_OF_HOST_MEMORY &&
        caps->choices.count > 0) { /* a choice, which may ask for more memory, never fails a plan */
        hdi_caps usual = *caps;
        usual.choices.count = 0;
        return make_within(allocator, program, &usual, options, out_schedule, error);
    }
    if (status && error) *error = first;
    return status;
}
