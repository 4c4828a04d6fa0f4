/* encode.c: commands to a command list; and lists that are kept, closed, to be executed again with the same slots.
 * Within a list commands may overlap but for barriers, as heddle's own commands may. */
#include "device/levelzero/ze.h"
#include "device/translate.h"

typedef struct encoder {
    hdi_backend_device   *device;
    const hdi_submission *submission;
    ze_command_list_handle_t list;
    uint64_t             *ticks; /* of the marks; NULL: none */
    uint32_t              mark_count;
} encoder;

bool hdze_list_new(hdi_backend_device *device, ze_command_list_handle_t *out_list) {
    const ze_command_list_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC,
                                          .commandQueueGroupOrdinal = device->facts.compute_ordinal };
    if (HDZE_CALL(device, CommandListCreate, device->context, device->facts.device, &desc, out_list)) return true;
    *out_list = NULL;
    return false;
}

/* ---- commands ---- */

static char *address_of(const encoder *e, const hdi_range *range) {
    const hdi_slot *slot = &e->submission->slots[range->slot];
    return (char *)slot->memory->address + slot->offset + range->offset;
}

static bool barrier(const encoder *e) { return HDZE_CALL(e->device, CommandListAppendBarrier, e->list, NULL, 0, NULL); }

/* Appending the launch takes the arguments along. */
static bool dispatch(const encoder *e, const hdi_cmd *cmd) {
    const hdi_cmds *cmds = e->submission->cmds;
    const hdi_loaded_kernel *kernel = e->submission->kernels[cmd->as.dispatch.kernel];
    const hdi_spirv_printed *printed = &kernel->printed;
    const hdi_binding *bindings = &cmds->bindings[cmd->as.dispatch.binding_first];
    uint32_t words[HDI_MOST_LAUNCH_WORDS];
    for (uint32_t i = 0; i < printed->buffer_count; i++) {
        const char *address = address_of(e, &bindings[printed->buffers[i]].range);
        if (!HDZE_CALL(e->device, KernelSetArgumentValue, kernel->kernel, i, sizeof address, &address)) return false;
    }
    const uint32_t count = hdi_launch_words(cmds, cmd, printed, NULL, words);
    const ze_group_count_t groups = { cmd->as.dispatch.groups[0], cmd->as.dispatch.groups[1],
                                      cmd->as.dispatch.groups[2] };
    return HDZE_CALL(e->device, KernelSetArgumentValue, kernel->kernel, printed->buffer_count,
                     count * sizeof *words, words) &&
           HDZE_CALL(e->device, CommandListAppendLaunchKernel, e->list, kernel->kernel, &groups, NULL, 0, NULL);
}

static bool copy(const encoder *e, const hdi_cmd *cmd) {
    const hdi_range *from = &cmd->as.copy.from, *to = &cmd->as.copy.to;
    return HDZE_CALL(e->device, CommandListAppendMemoryCopy, e->list, address_of(e, to), address_of(e, from),
                     (size_t)to->bytes, NULL, 0, NULL);
}

static bool fill(const encoder *e, const hdi_cmd *cmd) {
    const hdi_range *to = &cmd->as.fill.to;
    return HDZE_CALL(e->device, CommandListAppendMemoryFill, e->list, address_of(e, to), &cmd->as.fill.value,
                     sizeof cmd->as.fill.value, (size_t)to->bytes, NULL, 0, NULL);
}

/* The time once all before has ended. */
static bool mark(encoder *e) {
    if (!e->ticks) return true;
    return barrier(e) &&
           HDZE_CALL(e->device, CommandListAppendWriteGlobalTimestamp, e->list, &e->ticks[e->mark_count++], NULL, 0,
                     NULL) &&
           barrier(e);
}

bool hdze_encode(hdi_backend_device *device, const hdi_submission *submission, ze_command_list_handle_t list,
                 uint64_t *ticks, uint32_t *out_marks) {
    encoder e = { .device = device, .submission = submission, .list = list, .ticks = ticks };
    bool fine = barrier(&e);
    for (uint32_t i = 0; i < submission->cmds->cmd_count && fine; i++) {
        const hdi_cmd *cmd = &submission->cmds->cmds[i];
        switch (cmd->kind) {
        case HDI_CMD_DISPATCH: fine = dispatch(&e, cmd); break;
        case HDI_CMD_COPY:     fine = copy(&e, cmd); break;
        case HDI_CMD_FILL:     fine = fill(&e, cmd); break;
        case HDI_CMD_BARRIER:  fine = barrier(&e); break;
        case HDI_CMD_MARK:     fine = mark(&e); break;
        }
    }
    fine = fine && (e.mark_count == 0 || mark(&e)) && barrier(&e) && HDZE_CALL(device, CommandListClose, list);
    *out_marks = e.mark_count;
    return fine;
}

/* ---- recordings ---- */

hd_status hdze_record(hdi_backend_device *device, const hdi_submission *submission, hdi_command_buffer *out_buffer,
                      hd_error *error) {
    hdze_command_buffer *buffer = HDI_OBJECT(out_buffer, hdze_command_buffer, base);
    uint32_t marks;
    if (hdze_list_new(device, &buffer->list) && hdze_encode(device, submission, buffer->list, NULL, &marks))
        return HD_OK;
    return hdze_fail(device, error, "recording %u commands", submission->cmds->cmd_count);
}

void hdze_record_end(hdi_backend_device *device, hdi_command_buffer *buffer) {
    HDZE_END(device, CommandListDestroy, HDI_OBJECT(buffer, hdze_command_buffer, base)->list);
}
