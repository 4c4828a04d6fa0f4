/* make.c: the stages of planning in order, and the second try with a tight order where a budget asks for it. */
#include "plan/plan.h"

uint32_t hdi_plan_storage(hdi_plan *plan, hdi_storage_kind kind, uint64_t bytes, const char *name) {
    if (!hdi_grow(plan->arena.allocator, &plan->storages, &plan->storage_capacity, (size_t)plan->storage_count + 1,
                  sizeof *plan->storages)) return HDI_NO_INDEX;
    plan->storages[plan->storage_count] = (hdi_storage){
        .kind = kind, .bytes = bytes, .name = name, .parent = HDI_NO_INDEX, .first_level = UINT32_MAX };
    return plan->storage_count++;
}

uint32_t hdi_plan_root(const hdi_plan *plan, uint32_t storage, uint64_t *inout_offset) {
    while (plan->storages[storage].parent != HDI_NO_INDEX) {
        *inout_offset += plan->storages[storage].parent_offset;
        storage = plan->storages[storage].parent;
    }
    return storage;
}

void hdi_plan_free(hdi_plan *plan) {
    if (!plan) return;
    const hd_allocator *allocator = plan->arena.allocator;
    for (uint32_t i = 0; i < plan->kernel_count; i++) hdi_user_kernel_release(plan->kernels[i]);
    hdi_free(allocator, plan->kernels, plan->kernel_capacity * sizeof *plan->kernels);
    hdi_free(allocator, plan->storages, plan->storage_capacity * sizeof *plan->storages);
    hdi_free(allocator, plan->steps, plan->step_capacity * sizeof *plan->steps);
    hdi_free(allocator, plan->slots, plan->slot_capacity * sizeof *plan->slots);
    hdi_cmds_free(&plan->cmds);
    hdi_arena_free(&plan->arena);
    hdi_free(allocator, plan, sizeof *plan);
}

const char *hdi_plan_module_name(void *plan, uint32_t module) {
    (void)plan;
    const hdi_module *built_in = hdi_module_get(module);
    return built_in ? built_in->name : "user";
}

static hd_status run_stages(hdi_plan *plan, const hd_program *program, hd_error *error) {
    hd_status status = hdi_plan_fuse(plan, program, error);
    if (plan->options.works) return status;
    if (!status) status = hdi_plan_order(plan, error);
    if (!status) status = hdi_plan_place(plan, error);
    if (!status) status = hdi_plan_emit(plan, error);
    if (!status) status = hdi_cmds_check(&plan->cmds, false, error);
    return status;
}

static hdi_plan *new_plan(const hd_allocator *allocator, const hdi_caps *caps, const hdi_plan_options *options, bool tight) {
    hdi_plan *plan = hdi_alloc(allocator, sizeof *plan);
    if (!plan) return NULL;
    plan->arena.allocator = allocator;
    plan->options = *options;
    if (plan->options.math == HD_MATH_DEFAULT) plan->options.math = HD_MATH_FAST;
    if (plan->options.slice_us == 0) plan->options.slice_us = 100000;
    plan->caps = *caps;
    plan->tight = tight;
    hdi_cmds_init(&plan->cmds, allocator);
    return plan;
}

static hd_status make_within(const hd_allocator *allocator, const hd_program *program, const hdi_caps *caps,
                             const hdi_plan_options *options, hdi_plan **out_plan, hd_error *error) {
    hd_status status = HD_OK;
    for (int tight = 0; !status && tight < 2; tight++) {
        hdi_plan *plan = new_plan(allocator, caps, options, tight);
        if (!plan) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a plan");
        status = run_stages(plan, program, error);
        uint64_t needed = plan->memory.total_bytes, budget = plan->options.budget_bytes;
        if (!status && (budget == 0 || needed <= budget)) {
            plan->options.offer = NULL; /* the caller's */
            plan->options.works = NULL;
            *out_plan = plan;
            return HD_OK;
        }
        hdi_plan_free(plan);
        if (!status && tight)
            status = hdi_fail(error, HD_STATUS_OVER_BUDGET, "the plan needs %llu bytes and its budget is %llu",
                              (unsigned long long)needed, (unsigned long long)budget);
    }
    return status;
}

hd_status hdi_plan_make(const hd_allocator *allocator, const hd_program *program, const hdi_caps *caps,
                        const hdi_plan_options *options, hdi_plan **out_plan, hd_error *error) {
    hd_error first = { 0 };
    const bool is_segment = program->node_count > 0 && program->nodes[0].whole; /* it may hold inputs alone */
    hd_status status = is_segment ? HD_OK : hdi_program_check(program, error);
    if (!status && caps->inexact && options->math == HD_MATH_EXACT)
        status = hdi_fail(
            error, HD_STATUS_UNSUPPORTED,
            "%s does not round f32 or keep subnormals as exact mode needs, as a known answer showed; plan in fast mode",
            caps->name);
    if (status) return status;
    status = make_within(allocator, program, caps, options, out_plan, &first);
    if (status && status != HD_STATUS_OUT_OF_HOST_MEMORY &&
        caps->choices.count > 0) { /* a choice, which may ask for more memory, never fails a plan */
        hdi_caps usual = *caps;
        usual.choices.count = 0;
        return make_within(allocator, program, &usual, options, out_plan, error);
    }
    if (status && error) *error = first;
    return status;
}
