/* record.c: submissions that are made again and again, as command buffers (cl_khr_command_buffer) where the driver has them and
 * host and device share their memory: then a replay is one call. What cannot be recorded is handed over command by command,
 * as ever. A recording keeps two takes, so that plans which change between two sets of buffers replay both. */
#include "device/opencl/cl.h"

void hdcl_load_recording(hdi_backend_device *device) {
    static const struct { const char *name; size_t offset; } functions[] = {
#define HDCL_FUNCTION(need, name, status, results)
#define HDCL_EXTENSION(name, type, status, results) { "cl" #name, offsetof(hdcl_cl, name) },
#include "device/opencl/functions.inc"
    };
    for (size_t i = 0; i < HDI_COUNT(functions) && device->facts.records; i++) {
        void *symbol = device->cl.GetExtensionFunctionAddressForPlatform(device->facts.platform, functions[i].name);
        memcpy((char *)&device->cl + functions[i].offset, &symbol, sizeof symbol);
        device->facts.records = symbol != NULL;
    }
}

static void end_take(hdi_backend_device *device, hdcl_take *take) {
    if (take->commands && !device->abandoned) device->cl.ReleaseCommandBufferKHR(take->commands);
    take->commands = NULL;
    for (uint32_t i = 0; i < take->kernel_count && !device->abandoned; i++) device->cl.ReleaseKernel(take->kernels[i]);
    take->kernel_count = 0;
}

static void end_recording(hdi_backend_device *device, hdi_recording *recording) {
    hdi_list_remove(&recording->link);
    for (uint32_t i = 0; i < HDCL_TAKES; i++) {
        end_take(device, &recording->takes[i]);
        hdi_free(device->host->allocator, recording->takes[i].places, recording->takes[i].place_capacity * sizeof *recording->takes[i].places);
        hdi_free(device->host->allocator, recording->takes[i].kernels, recording->takes[i].kernel_capacity * sizeof *recording->takes[i].kernels);
    }
    hdi_free(device->host->allocator, recording, sizeof *recording);
}

void hdcl_bury_recordings(hdi_backend_device *device, bool all) {
    hdi_link *const lists[] = { &device->dead_recordings, &device->recordings };
    for (uint32_t i = 0; i < (all ? 2u : 1u); i++)
        for (hdi_link *at = lists[i]->next, *next; at != lists[i]; at = next) {
            next = at->next;
            hdi_recording *recording = HDI_OBJECT(at, hdi_recording, link);
            if (all || recording->last_ticket <= device->done) end_recording(device, recording);
        }
}

void hdcl_forget(hdi_backend_device *device, hdi_recording *recording) {
    if (!recording) return;
    hdi_list_remove(&recording->link);
    hdi_list_add(&device->dead_recordings, &recording->link);
    hdcl_bury_recordings(device, false);
}

/* ---- taking ---- */

enum { NO_POINT = UINT16_MAX }; /* fewer commands are recorded */

static bool fits(const hdcl_take *take, const hdi_submission *submission) {
    if (!take->commands || take->place_count != submission->cmds->slot_count) return false;
    for (uint32_t i = 0; i < take->place_count; i++) {
        const hdi_slot *slot = &submission->slots[i];
        if (take->places[i].serial != slot->memory->serial || take->places[i].offset != slot->offset) return false;
    }
    return true;
}

static bool can_record(const hdi_backend_device *device, const hdi_submission *submission) {
    if (!device->facts.records || !submission->recording || submission->timestamps) return false;
    for (uint32_t i = 0; i < submission->cmds->slot_count; i++)
        if (submission->slots[i].memory->host && !submission->slots[i].memory->shared) return false;
    return true;
}

/* Each command waits for the one before it, as on the queue; each dispatch has a kernel object of its own, as PoCL 3.1 forgets
 * a recorded kernel's arguments once others are set. */
static bool record_command(hdi_backend_device *device, const hdi_submission *submission, const hdi_cmd *cmd, hdcl_command_buffer commands,
                           hdcl_take *take, cl_uint *point) {
    const cl_uint before = *point, waits = before != NO_POINT;
    switch (cmd->kind) {
    case HDI_CMD_DISPATCH: {
        const hdi_loaded_kernel *loaded = submission->kernels[cmd->as.dispatch.kernel];
        size_t global[3], local[3];
        cl_kernel kernel = HDCL_MAKE(device, CreateKernel, loaded->program, HDI_SPIRV_PRINTED_ENTRY);
        if (!kernel) return false;
        take->kernels[take->kernel_count++] = kernel;
        hdcl_grid(cmd, loaded, global, local);
        return hdcl_set_arguments(device, submission, cmd, loaded, kernel) &&
               HDCL_CALL(device, CommandNDRangeKernelKHR, commands, NULL, NULL, kernel, 3, NULL, global, local, waits, waits ? &before : NULL, point, NULL);
    }
    case HDI_CMD_COPY: {
        const hdcl_range from = hdcl_range_of(submission, cmd->as.copy.from), to = hdcl_range_of(submission, cmd->as.copy.to);
        return HDCL_CALL(device, CommandCopyBufferKHR, commands, NULL, from.memory->buffer, to.memory->buffer, from.offset, to.offset, to.bytes, waits, waits ? &before : NULL, point, NULL);
    }
    case HDI_CMD_FILL: {
        const hdcl_range to = hdcl_range_of(submission, cmd->as.fill.to);
        return HDCL_CALL(device, CommandFillBufferKHR, commands, NULL, to.memory->buffer, &cmd->as.fill.value, 4, to.offset, to.bytes, waits, waits ? &before : NULL, point, NULL);
    }
    default: return true; /* the queue is in order, and nothing is measured */
    }
}

static bool record(hdi_backend_device *device, const hdi_submission *submission, hdcl_take *take) {
    const hdi_cmds *cmds = submission->cmds;
    const cl_ulong properties[] = { HDCL_COMMAND_BUFFER_FLAGS, HDCL_COMMAND_BUFFER_SIMULTANEOUS, 0 };
    end_take(device, take);
    if (!hdi_grow(device->host->allocator, &take->places, &take->place_capacity, cmds->slot_count, sizeof *take->places) ||
        !hdi_grow(device->host->allocator, &take->kernels, &take->kernel_capacity, cmds->cmd_count, sizeof *take->kernels)) return false;
    take->place_count = cmds->slot_count;
    for (uint32_t i = 0; i < cmds->slot_count; i++) take->places[i] = (hdcl_place){ submission->slots[i].memory->serial, submission->slots[i].offset };
    hdcl_command_buffer commands = HDCL_MAKE(device, CreateCommandBufferKHR, 1, &device->queue, properties);
    bool fine = commands != NULL;
    cl_uint point = NO_POINT;
    for (uint32_t i = 0; i < cmds->cmd_count && fine; i++) fine = record_command(device, submission, &cmds->cmds[i], commands, take, &point);
    fine = fine && HDCL_CALL(device, FinalizeCommandBufferKHR, commands);
    take->commands = commands;
    if (!fine) end_take(device, take);
    return fine;
}

hdcl_take *hdcl_take_of(hdi_backend_device *device, hdi_submission *submission, bool *out_recorded) {
    *out_recorded = false;
    if (!can_record(device, submission)) return NULL;
    hdi_recording *recording = *submission->recording;
    if (!recording) {
        recording = hdi_alloc(device->host->allocator, sizeof *recording);
        if (!recording) return NULL;
        hdi_list_add(&device->recordings, &recording->link);
        *submission->recording = recording;
    }
    hdcl_take *oldest = &recording->takes[0];
    for (uint32_t i = 0; i < HDCL_TAKES; i++) {
        if (fits(&recording->takes[i], submission)) return &recording->takes[i];
        if (recording->takes[i].ticket < oldest->ticket) oldest = &recording->takes[i];
    }
    if (oldest->ticket > device->done) return NULL; /* still under way */
    *out_recorded = record(device, submission, oldest);
    return *out_recorded ? oldest : NULL;
}
