/* append.c: building a command list. Appending checks nothing but memory; check.c judges the whole. */
#include "cmds/cmds.h"

void hdi_cmds_init(hdi_cmds *cmds, const hd_allocator *allocator) {
    memset(cmds, 0, sizeof *cmds);
    cmds->arena.allocator = allocator;
}

void hdi_cmds_free(hdi_cmds *cmds) {
    const hd_allocator *allocator = cmds->arena.allocator;
    if (!allocator) return;
    hdi_free(allocator, cmds->kernels, cmds->kernel_capacity * sizeof *cmds->kernels);
    hdi_free(allocator, cmds->cmds, cmds->cmd_capacity * sizeof *cmds->cmds);
    hdi_free(allocator, cmds->bindings, cmds->binding_capacity * sizeof *cmds->bindings);
    hdi_free(allocator, cmds->push, cmds->push_capacity * sizeof *cmds->push);
    hdi_free(allocator, cmds->labels, cmds->label_capacity * sizeof *cmds->labels);
    hdi_free(allocator, cmds->slot_bytes, cmds->slot_capacity * sizeof *cmds->slot_bytes);
    hdi_arena_free(&cmds->arena);
    memset(cmds, 0, sizeof *cmds);
}

/* Makes room for `more` items of one of the arrays. */
#define ROOM(cmds, items, count, capacity, more)                                                                       \
    hdi_grow((cmds)->arena.allocator, &(cmds)->items, &(cmds)->capacity, (size_t)(cmds)->count + (more),               \
             sizeof *(cmds)->items)

hd_status hdi_cmds_slot(hdi_cmds *cmds, uint64_t bytes, uint32_t *out_slot) {
    if (!ROOM(cmds, slot_bytes, slot_count, slot_capacity, 1)) return HD_STATUS_OUT_OF_HOST_MEMORY;
    cmds->slot_bytes[cmds->slot_count] = bytes;
    *out_slot = cmds->slot_count++;
    return HD_OK;
}

uint32_t hdi_kernel_constants(const hdi_kernel *kernel, bool exact_halves, bool early, uint32_t ids[HDI_MAX_CONSTANTS],
                              uint32_t values[HDI_MAX_CONSTANTS]) {
    const uint32_t own = HDI_MIN(kernel->spec_count, (uint32_t)HDI_MAX_SPEC);
    for (uint32_t i = 0; i < own; i++) ids[i] = i;
    memcpy(values, kernel->spec, own * sizeof *values);
    ids[own] = HDI_SPEC_HALVES;
    values[own] = exact_halves;
    ids[own + 1] = HDI_SPEC_EARLY;
    values[own + 1] = early;
    return own + 2;
}

bool hdi_kernels_equal(const hdi_kernel *a, const hdi_kernel *b) {
    return a->module == b->module && a->spec_count == b->spec_count && a->binding_count == b->binding_count &&
           a->push_bytes == b->push_bytes && a->subgroup == b->subgroup && a->keep_subnormals == b->keep_subnormals &&
           a->scratch_bytes == b->scratch_bytes && memcmp(a->spec, b->spec, a->spec_count * sizeof a->spec[0]) == 0;
}

hd_status hdi_cmds_kernel(hdi_cmds *cmds, const hdi_kernel *kernel, uint32_t *out_kernel) {
    for (uint32_t i = 0; i < cmds->kernel_count; i++)
        if (hdi_kernels_equal(&cmds->kernels[i], kernel)) {
            *out_kernel = i;
            return HD_OK;
        }
    if (!ROOM(cmds, kernels, kernel_count, kernel_capacity, 1)) return HD_STATUS_OUT_OF_HOST_MEMORY;
    cmds->kernels[cmds->kernel_count] = *kernel;
    *out_kernel = cmds->kernel_count++;
    return HD_OK;
}

/* A new command at the end, or NULL without memory. */
static hdi_cmd *add(hdi_cmds *cmds, hdi_cmd_kind kind) {
    if (!ROOM(cmds, cmds, cmd_count, cmd_capacity, 1)) return NULL;
    hdi_cmd *cmd = &cmds->cmds[cmds->cmd_count++];
    memset(cmd, 0, sizeof *cmd);
    cmd->kind = kind;
    return cmd;
}

hd_status hdi_cmds_dispatch(hdi_cmds *cmds, uint32_t kernel, const hdi_binding *bindings, uint32_t binding_count,
                            const uint32_t *push, const uint32_t first[3], const uint32_t groups[3]) {
    uint32_t push_words = (uint32_t)hdi_divide_up(cmds->kernels[kernel].push_bytes, 4);
    if (!ROOM(cmds, bindings, binding_count, binding_capacity, binding_count) ||
        !ROOM(cmds, push, push_count, push_capacity, push_words)) return HD_STATUS_OUT_OF_HOST_MEMORY;
    hdi_cmd *cmd = add(cmds, HDI_CMD_DISPATCH);
    if (!cmd) return HD_STATUS_OUT_OF_HOST_MEMORY;
    cmd->as.dispatch.kernel = kernel;
    cmd->as.dispatch.binding_first = cmds->binding_count;
    cmd->as.dispatch.binding_count = binding_count;
    cmd->as.dispatch.push_first = cmds->push_count;
    memcpy(cmd->as.dispatch.first, first, sizeof cmd->as.dispatch.first);
    memcpy(cmd->as.dispatch.groups, groups, sizeof cmd->as.dispatch.groups);
    if (binding_count > 0) memcpy(cmds->bindings + cmds->binding_count, bindings, binding_count * sizeof *bindings);
    if (push_words > 0) memcpy(cmds->push + cmds->push_count, push, push_words * sizeof *push);
    cmds->binding_count += binding_count;
    cmds->push_count += push_words;
    return HD_OK;
}

hd_status hdi_cmds_copy(hdi_cmds *cmds, hdi_range from, hdi_range to) {
    hdi_cmd *cmd = add(cmds, HDI_CMD_COPY);
    if (!cmd) return HD_STATUS_OUT_OF_HOST_MEMORY;
    cmd->as.copy.from = from;
    cmd->as.copy.to = to;
    return HD_OK;
}

hd_status hdi_cmds_fill(hdi_cmds *cmds, hdi_range to, uint32_t value) {
    hdi_cmd *cmd = add(cmds, HDI_CMD_FILL);
    if (!cmd) return HD_STATUS_OUT_OF_HOST_MEMORY;
    cmd->as.fill.to = to;
    cmd->as.fill.value = value;
    return HD_OK;
}

hd_status hdi_cmds_barrier(hdi_cmds *cmds, bool cut) {
    hdi_cmd *cmd = add(cmds, HDI_CMD_BARRIER);
    if (!cmd) return HD_STATUS_OUT_OF_HOST_MEMORY;
    cmd->as.barrier.cut = cut;
    return HD_OK;
}

hd_status hdi_cmds_mark(hdi_cmds *cmds, const char *label) {
    char *copy = hdi_arena_text(&cmds->arena, label, strlen(label));
    if (!copy || !ROOM(cmds, labels, label_count, label_capacity, 1)) return HD_STATUS_OUT_OF_HOST_MEMORY;
    hdi_cmd *cmd = add(cmds, HDI_CMD_MARK);
    if (!cmd) return HD_STATUS_OUT_OF_HOST_MEMORY;
    cmd->as.mark.label = cmds->label_count;
    cmds->labels[cmds->label_count++] = copy;
    return HD_OK;
}
