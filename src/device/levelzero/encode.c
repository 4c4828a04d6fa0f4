/* encode.c: commands to a command list; and lists that are kept, closed, to be executed again: takes, each for the slots that
 * it was made for. Within a list commands may overlap but for barriers, as heddle's own commands may. */
#include "device/levelzero/ze.h"

enum { TAKES_KEPT = 4 };

typedef struct encoder {
    hdi_backend_device   *device;
    const hdi_submission *submission;
    ze_command_list_handle_t list;
    uint64_t             *ticks; /* of the marks; NULL: none */
    uint32_t              mark_count;
} encoder;

bool hdze_list_new(hdi_backend_device *device, ze_command_list_handle_t *out_list) {
    const ze_command_list_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, .commandQueueGroupOrdinal = device->facts.compute_ordinal };
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

/* The arguments as spirv.h describes them; appending the launch takes them along. */
static bool dispatch(const encoder *e, const hdi_cmd *cmd) {
    const hdi_cmds *cmds = e->submission->cmds;
    const hdi_loaded_kernel *kernel = e->submission->kernels[cmd->as.dispatch.kernel];
    const hdi_spirv_printed *printed = &kernel->printed;
    const hdi_binding *bindings = &cmds->bindings[cmd->as.dispatch.binding_first];
    const uint32_t given = HDI_MIN(cmds->kernels[cmd->as.dispatch.kernel].push_bytes / 4, printed->push_words);
    uint32_t words[3 + HDI_MAX_PUSH_WORDS + 2 * HDI_SPIRV_MAX_BINDINGS] = { 0 }, at = 3 + printed->push_words;
    for (uint32_t i = 0; i < printed->buffer_count; i++) {
        const char *address = address_of(e, &bindings[printed->buffers[i]].range);
        if (!HDZE_CALL(e->device, KernelSetArgumentValue, kernel->kernel, i, sizeof address, &address)) return false;
    }
    memcpy(words, cmd->as.dispatch.first, 3 * sizeof *words);
    if (given) memcpy(words + 3, cmds->push + cmd->as.dispatch.push_first, given * sizeof *words);
    for (uint32_t i = 0; i < printed->length_count; i++) {
        const uint64_t bytes = (bindings[printed->lengths[i]].range.bytes + 3) & ~UINT64_C(3); /* kernels see words */
        words[at++] = (uint32_t)bytes;
        words[at++] = (uint32_t)(bytes >> 32);
    }
    const ze_group_count_t groups = { cmd->as.dispatch.groups[0], cmd->as.dispatch.groups[1], cmd->as.dispatch.groups[2] };
    return HDZE_CALL(e->device, KernelSetArgumentValue, kernel->kernel, printed->buffer_count, printed->argument_words * sizeof *words, words) &&
           HDZE_CALL(e->device, CommandListAppendLaunchKernel, e->list, kernel->kernel, &groups, NULL, 0, NULL);
}

static bool copy(const encoder *e, const hdi_cmd *cmd) {
    const hdi_range *from = &cmd->as.copy.from, *to = &cmd->as.copy.to;
    return HDZE_CALL(e->device, CommandListAppendMemoryCopy, e->list, address_of(e, to), address_of(e, from), (size_t)to->bytes, NULL, 0, NULL);
}

static bool fill(const encoder *e, const hdi_cmd *cmd) {
    const hdi_range *to = &cmd->as.fill.to;
    return HDZE_CALL(e->device, CommandListAppendMemoryFill, e->list, address_of(e, to), &cmd->as.fill.value, sizeof cmd->as.fill.value, (size_t)to->bytes, NULL, 0, NULL);
}

/* The time once all before has ended. */
static bool mark(encoder *e) {
    if (!e->ticks) return true;
    return barrier(e) && HDZE_CALL(e->device, CommandListAppendWriteGlobalTimestamp, e->list, &e->ticks[e->mark_count++], NULL, 0, NULL) && barrier(e);
}

bool hdze_encode(hdi_backend_device *device, const hdi_submission *submission, ze_command_list_handle_t list, uint64_t *ticks, uint32_t *out_marks) {
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

/* ---- takes ---- */

static void end_take(hdi_backend_device *device, hdze_take *take) {
    hdi_list_remove(&take->link);
    HDZE_END(device, CommandListDestroy, take->list);
    hdi_free(device->host->allocator, take->keys, take->key_capacity * sizeof *take->keys);
    hdi_free(device->host->allocator, take, sizeof *take);
}

static void bury_take(hdi_backend_device *device, hdze_take *take) {
    hdi_list_remove(&take->link);
    hdi_list_add(&device->dead_takes, &take->link);
}

void hdze_take_collect(hdi_backend_device *device, bool all) {
    for (hdi_link *at = device->dead_takes.next, *next; at != &device->dead_takes; at = next) {
        next = at->next;
        hdze_take *take = HDI_OBJECT(at, hdze_take, link);
        if (all || take->last_ticket <= device->done) end_take(device, take);
    }
}

void hdze_forget(hdi_backend_device *device, hdi_recording *recording) {
    if (!recording) return;
    while (!hdi_list_empty(&recording->takes)) bury_take(device, HDI_OBJECT(recording->takes.next, hdze_take, link));
    hdi_list_remove(&recording->link);
    hdi_free(device->host->allocator, recording, sizeof *recording);
    hdze_take_collect(device, false);
}

static hdze_slot_key key_of(const hdi_slot *slot) { return (hdze_slot_key){ slot->memory ? slot->memory->serial : 0, slot->offset, slot->bytes }; }

static bool fits(const hdze_take *take, const hdi_submission *submission) {
    if (take->key_count != submission->cmds->slot_count) return false;
    for (uint32_t i = 0; i < take->key_count; i++) {
        const hdze_slot_key key = key_of(&submission->slots[i]);
        if (key.serial != take->keys[i].serial || key.offset != take->keys[i].offset || key.bytes != take->keys[i].bytes) return false;
    }
    return true;
}

static hd_status new_take(hdi_backend_device *device, const hdi_submission *submission, hdi_recording *recording, hd_error *error) {
    const hd_allocator *allocator = device->host->allocator;
    const uint32_t count = submission->cmds->slot_count;
    uint32_t marks;
    hdze_take *take = hdi_alloc(allocator, sizeof *take);
    if (take) hdi_list_add(&recording->takes, &take->link);
    if (!take || !hdi_grow(allocator, &take->keys, &take->key_capacity, count, sizeof *take->keys)) {
        if (take) end_take(device, take);
        return hdze_no_memory(error, "a recording");
    }
    for (uint32_t i = 0; i < count; i++) take->keys[i] = key_of(&submission->slots[i]);
    take->key_count = count;
    if (hdze_list_new(device, &take->list) && hdze_encode(device, submission, take->list, NULL, &marks)) {
        recording->take_count++;
        return HD_OK;
    }
    hd_status status = hdze_fail(device, error, "recording %u commands", submission->cmds->cmd_count);
    end_take(device, take);
    return status;
}

static hdi_recording *recording_of(hdi_backend_device *device, const hdi_submission *submission) {
    if (*submission->recording) return *submission->recording;
    hdi_recording *recording = hdi_alloc(device->host->allocator, sizeof *recording);
    if (!recording) return NULL;
    hdi_list_init(&recording->takes);
    hdi_list_add(&device->recordings, &recording->link);
    return *submission->recording = recording;
}

hd_status hdze_take_of(hdi_backend_device *device, const hdi_submission *submission, hdze_take **out_take, bool *out_new, hd_error *error) {
    hdi_recording *recording = recording_of(device, submission);
    if (!recording) return hdze_no_memory(error, "a recording");
    *out_new = false;
    for (hdi_link *at = recording->takes.next; at != &recording->takes; at = at->next) {
        *out_take = HDI_OBJECT(at, hdze_take, link);
        if (fits(*out_take, submission)) return HD_OK;
    }
    hd_status status = new_take(device, submission, recording, error);
    if (status) return status;
    *out_take = HDI_OBJECT(recording->takes.previous, hdze_take, link);
    *out_new = true;
    if (recording->take_count > TAKES_KEPT) { /* the oldest goes */
        recording->take_count--;
        bury_take(device, HDI_OBJECT(recording->takes.next, hdze_take, link));
    }
    return HD_OK;
}
