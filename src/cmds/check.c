/* check.c: is a command list legal? Every index and range lies inside, nothing is empty, and (on request) no two
 * commands between two barriers touch the same bytes when one of them writes. */
#include "cmds/cmds.h"

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

static bool conflict(hdi_binding a, hdi_binding b) {
    return ((a.access | b.access) & HDI_WRITE) && a.range.slot == b.range.slot &&
           a.range.offset < b.range.offset + b.range.bytes && b.range.offset < a.range.offset + a.range.bytes;
}

static bool commands_conflict(const hdi_cmds *cmds, const hdi_cmd *one, const hdi_cmd *two) {
    hdi_binding a, b;
    for (uint32_t i = 0; touched(cmds, one, i, &a); i++)
        for (uint32_t k = 0; touched(cmds, two, k, &b); k++)
            if (conflict(a, b)) return true;
    return false;
}

hd_status hdi_cmds_check(const hdi_cmds *cmds, bool hazards, hd_error *error) {
    uint32_t since_barrier = 0;
    for (uint32_t i = 0; i < cmds->cmd_count; i++) {
        hd_status status = check_cmd(cmds, i, error);
        if (status) return status;
        if (cmds->cmds[i].kind == HDI_CMD_BARRIER) since_barrier = i + 1;
        for (uint32_t k = since_barrier; hazards && k < i; k++)
            if (commands_conflict(cmds, &cmds->cmds[k], &cmds->cmds[i]))
                return hdi_fail(error, HD_STATUS_INTERNAL,
                                "commands %u and %u touch the same bytes with no barrier between them", k, i);
    }
    return HD_OK;
}
