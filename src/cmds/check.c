/* check.c: is a command list legal? Every index and range lies inside, nothing is empty, and no two
 * commands between two barriers touch the same bytes when one of them writes. */
#include "cmds/cmds.h"
#include <stdlib.h>

static hd_status check_range(const hdi_cmds *cmds, uint32_t at, hdi_range range, hd_error *error) {
    uint64_t end;
    if (range.slot >= cmds->slot_count)
        return hdi_fail(error, HD_STATUS_INTERNAL, "command %u: slot %u of %u", at, range.slot, cmds->slot_count);
    if (range.bytes == 0)
        return hdi_fail(error, HD_STATUS_ZERO_SIZE, "command %u: an empty range of slot %u", at, range.slot);
    if (!hdi_add_u64(range.offset, range.bytes, &end) || end > cmds->slot_bytes[range.slot])
        return hdi_fail(error, HD_STATUS_LIMIT, "command %u: bytes %llu+%llu of slot %u, which has %llu", at,
                        (unsigned long long)range.offset, (unsigned long long)range.bytes, range.slot,
                        (unsigned long long)cmds->slot_bytes[range.slot]);
    return HD_OK;
}

static hd_status check_dispatch(const hdi_cmds *cmds, uint32_t at, const hdi_cmd *cmd, hd_error *error) {
    if (cmd->as.dispatch.kernel >= cmds->kernel_count)
        return hdi_fail(error, HD_STATUS_INTERNAL, "command %u: kernel %u of %u", at, cmd->as.dispatch.kernel,
                        cmds->kernel_count);
    const hdi_kernel *kernel = &cmds->kernels[cmd->as.dispatch.kernel];
    uint64_t words = hdi_divide_up(kernel->push_bytes, 4);
    if (kernel->binding_count != cmd->as.dispatch.binding_count || kernel->binding_count > HDI_MAX_BINDINGS)
        return hdi_fail(error, HD_STATUS_ARGUMENT_COUNT, "command %u: %u bindings for a kernel that has %u", at,
                        cmd->as.dispatch.binding_count, kernel->binding_count);
    if ((uint64_t)cmd->as.dispatch.binding_first + kernel->binding_count > cmds->binding_count ||
        (uint64_t)cmd->as.dispatch.push_first + words > cmds->push_count || kernel->spec_count > HDI_MAX_SPEC)
        return hdi_fail(error, HD_STATUS_INTERNAL, "command %u: bindings or push words outside of the list", at);
    for (int i = 0; i < 3; i++)
        if (cmd->as.dispatch.groups[i] == 0 || cmd->as.dispatch.groups[i] > UINT32_MAX - cmd->as.dispatch.first[i])
            return hdi_fail(error, HD_STATUS_ZERO_SIZE, "command %u: %u groups from %u on along axis %d", at,
                            cmd->as.dispatch.groups[i], cmd->as.dispatch.first[i], i);
    for (uint32_t i = 0; i < kernel->binding_count; i++) {
        hd_status status = check_range(cmds, at, cmds->bindings[cmd->as.dispatch.binding_first + i].range, error);
        if (status) return status;
    }
    return HD_OK;
}

static hd_status check_cmd(const hdi_cmds *cmds, uint32_t at, hd_error *error) {
    const hdi_cmd *cmd = &cmds->cmds[at];
    hd_status status;
    switch (cmd->kind) {
    case HDI_CMD_DISPATCH: return check_dispatch(cmds, at, cmd, error);
    case HDI_CMD_COPY:
        if ((status = check_range(cmds, at, cmd->as.copy.from, error))) return status;
        if ((status = check_range(cmds, at, cmd->as.copy.to, error))) return status;
        if (cmd->as.copy.from.bytes != cmd->as.copy.to.bytes)
            return hdi_fail(error, HD_STATUS_LIMIT, "command %u: a copy between ranges of two sizes", at);
        return HD_OK;
    case HDI_CMD_FILL:
        if ((status = check_range(cmds, at, cmd->as.fill.to, error))) return status;
        if (cmd->as.fill.to.offset % 4 != 0 || cmd->as.fill.to.bytes % 4 != 0)
            return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "command %u: a fill that is not whole words", at);
        return HD_OK;
    case HDI_CMD_BARRIER: return HD_OK;
    case HDI_CMD_MARK:
        if (cmd->as.mark.label < cmds->label_count) return HD_OK;
        return hdi_fail(error, HD_STATUS_INTERNAL, "command %u: label %u of %u", at, cmd->as.mark.label,
                        cmds->label_count);
    }
    return hdi_fail(error, HD_STATUS_INTERNAL, "command %u: kind %d does not exist", at, (int)cmd->kind);
}

/* What a command touches, one range at a time; false past the last. */
static bool touched(const hdi_cmds *cmds, const hdi_cmd *cmd, uint32_t index, hdi_binding *out) {
    switch (cmd->kind) {
    case HDI_CMD_DISPATCH:
        if (index >= cmd->as.dispatch.binding_count) return false;
        *out = cmds->bindings[cmd->as.dispatch.binding_first + index];
        return true;
    case HDI_CMD_COPY:
        *out = index == 0 ? (hdi_binding){ cmd->as.copy.from, HDI_READ } : (hdi_binding){ cmd->as.copy.to, HDI_WRITE };
        return index < 2;
    case HDI_CMD_FILL:
        *out = (hdi_binding){ cmd->as.fill.to, HDI_WRITE };
        return index < 1;
    case HDI_CMD_BARRIER:
    case HDI_CMD_MARK: break;
    }
    return false;
}

/* A range that a command touches. */
typedef struct touch { hdi_binding of; uint32_t command; } touch;

static int by_place(const void *one, const void *two) {
    const hdi_range *a = &((const touch *)one)->of.range, *b = &((const touch *)two)->of.range;
    if (a->slot != b->slot) return a->slot < b->slot ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* How far ranges reach that begin no later than the one looked at: the furthest, and the furthest of others. */
typedef struct reach { uint64_t end; uint32_t command; } reach;

static void extend(reach furthest[2], uint64_t end, uint32_t command) {
    if (furthest[0].command != command && end > furthest[0].end) {
        furthest[1] = furthest[0];
        furthest[0] = (reach){ end, command };
        return;
    }
    reach *own = &furthest[furthest[0].command != command];
    if (end > own->end) *own = (reach){ end, command };
}

/* Of commands that no barrier parts, none touches what another one writes? Sorts the touches. */
static hd_status check_together(touch *touches, size_t count, hd_error *error) {
    reach all[2] = { { 0 } }, written[2] = { { 0 } };
    if (count > 1) qsort(touches, count, sizeof *touches, by_place);
    for (size_t i = 0; i < count; i++) {
        const hdi_binding *of = &touches[i].of;
        const uint32_t command = touches[i].command;
        if (i > 0 && of->range.slot != touches[i - 1].of.range.slot)
            all[0] = all[1] = written[0] = written[1] = (reach){ 0 };
        const bool writes = of->access & HDI_WRITE;
        const reach *others = writes ? all : written, *other = &others[others[0].command == command];
        if (other->end > of->range.offset)
            return hdi_fail(error, HD_STATUS_INTERNAL,
                            "commands %u and %u touch the same bytes with no barrier between them",
                            HDI_MIN(command, other->command), HDI_MAX(command, other->command));
        extend(all, of->range.offset + of->range.bytes, command);
        if (writes) extend(written, of->range.offset + of->range.bytes, command);
    }
    return HD_OK;
}

static hd_status check_hazards(const hdi_cmds *cmds, hd_error *error) {
    hdi_binding of;
    size_t count = 0, most = 0;
    for (uint32_t i = 0; i < cmds->cmd_count; i++)
        for (uint32_t k = 0; touched(cmds, &cmds->cmds[i], k, &of); k++) most++;
    touch *touches = hdi_alloc(cmds->arena.allocator, most * sizeof *touches);
    if (!touches) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for checking commands");
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < cmds->cmd_count && !status; i++) {
        for (uint32_t k = 0; touched(cmds, &cmds->cmds[i], k, &of); k++) touches[count++] = (touch){ of, i };
        if (cmds->cmds[i].kind != HDI_CMD_BARRIER) continue;
        status = check_together(touches, count, error);
        count = 0;
    }
    if (!status) status = check_together(touches, count, error);
    hdi_free(cmds->arena.allocator, touches, most * sizeof *touches);
    return status;
}

hd_status hdi_cmds_check(const hdi_cmds *cmds, hd_error *error) {
    for (uint32_t i = 0; i < cmds->cmd_count; i++) {
        const hd_status status = check_cmd(cmds, i, error);
        if (status) return status;
    }
    return check_hazards(cmds, error);
}
