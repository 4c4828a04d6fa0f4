/* contracts.c: what must hold of every submission, before a back end sees it and behind its answer. Broken, it is a
 * fault of heddle's own and goes no further. Asked for by HEDDLE_VALIDATION, and in debug builds; each is counted. */
#include "device/device.h"

hd_status hdi_contract_keep(hd_device *device, hd_status status, hd_error *error) {
    if (status == HD_STATUS_OUT_OF_HOST_MEMORY) return status; /* nobody looked */
    device->stats.contracts++;
    if (!status) return HD_OK;
    device->stats.contracts_broken++;
    if (error) error->status = HD_STATUS_INTERNAL;
    return HD_STATUS_INTERNAL;
}

/* A slot lies in memory that the device holds, where kernels may find it, and has the bytes that the commands ask
 * for. */
static hd_status check_slot(const hd_device *device, const hdi_submission *submission, uint32_t at, hd_error *error) {
    const hdi_slot *slot = &submission->slots[at];
    const hd_memory_info *held = hdi_holdings_find(&device->holdings, slot->memory);
    const uint64_t align = HDI_MAX(device->found.caps.binding_align, UINT64_C(1));
    uint64_t end;
    if (!held) return hdi_fail(error, HD_STATUS_INTERNAL, "slot %u is bound to no memory of the device", at);
    if (slot->bytes < submission->cmds->slot_bytes[at])
        return hdi_fail(error, HD_STATUS_INTERNAL, "slot %u has %llu bytes, the commands ask for %llu", at,
                        (unsigned long long)slot->bytes, (unsigned long long)submission->cmds->slot_bytes[at]);
    if (slot->offset % align)
        return hdi_fail(error, HD_STATUS_INTERNAL, "slot %u begins at byte %llu, no multiple of %llu", at,
                        (unsigned long long)slot->offset, (unsigned long long)align);
    if (!hdi_add_u64(slot->offset, slot->bytes, &end) || end > ((held->bytes + 3) & ~UINT64_C(3)))
        return hdi_fail(error, HD_STATUS_INTERNAL, "slot %u ends at byte %llu of memory that has %llu", at,
                        (unsigned long long)end, (unsigned long long)held->bytes);
    return HD_OK;
}

static hd_status check_kernels(const hdi_submission *submission, hd_error *error) {
    const hdi_cmds *cmds = submission->cmds;
    for (uint32_t i = 0; i < cmds->kernel_count; i++)
        if (!submission->kernels || !submission->kernels[i])
            return hdi_fail(error, HD_STATUS_INTERNAL, "kernel %u is not loaded", i);
    for (uint32_t i = 0; i < cmds->cmd_count; i++)
        if (submission->queue != HDI_QUEUE_COMPUTE && cmds->cmds[i].kind == HDI_CMD_DISPATCH)
            return hdi_fail(error, HD_STATUS_INTERNAL, "command %u computes, on a queue that moves data", i);
    return HD_OK;
}

hd_status hdi_contract_before(hd_device *device, const hdi_submission *submission, hd_error *error) {
    hd_status status = hdi_cmds_check(submission->cmds, error);
    if (!status) status = check_kernels(submission, error);
    for (uint32_t i = 0; i < submission->cmds->slot_count && !status; i++)
        status = check_slot(device, submission, i, error);
    return hdi_contract_keep(device, status, error);
}

hd_status hdi_contract_after(hd_device *device, uint64_t last_ticket, uint64_t ticket, hd_error *error) {
    hd_status status = HD_OK;
    if (ticket != last_ticket + 1)
        status = hdi_fail(error, HD_STATUS_INTERNAL, "ticket %llu follows ticket %llu", (unsigned long long)ticket,
                          (unsigned long long)last_ticket);
    return hdi_contract_keep(device, status, error);
}
