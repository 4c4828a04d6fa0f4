/* record.c: submissions that are made again and again, as command buffers (cl_khr_command_buffer) where the driver has
 * them and host and device share their memory: then a replay is one call. What cannot be recorded is handed over
 * command by command, as ever. */
#include "device/opencl/cl.h"

static hdi_any_function look_up(const void *from, const char *name) {
    const hdi_backend_device *device = from;
    void *symbol = device->cl.GetExtensionFunctionAddressForPlatform(device->facts.platform, name);
    hdi_any_function function;
    memcpy(&function, &symbol, sizeof function);
    return function;
}

void hdcl_load_recording(hdi_backend_device *device) {
    if (device->facts.records)
        device->facts.records = !hdi_functions_load(&hdcl_api, HDCL_PLATFORM, look_up, device, &device->cl);
}

bool hdcl_can_record(const hdi_backend_device *device, const hdi_submission *submission) {
    if (!device->facts.records || !submission->recording || submission->timestamps) return false;
    for (uint32_t i = 0; i < submission->cmds->slot_count; i++)
        if (submission->slots[i].memory->host && !submission->slots[i].memory->shared) return false;
    return true;
}

/* ---- recording ---- */

enum { NO_POINT = UINT16_MAX }; /* fewer commands are recorded */

/* Each command waits for the one before it, as on the queue; each dispatch has a kernel object of its own, as PoCL 3.1
 * forgets a recorded kernel's arguments once others are set. */
static bool record_command(hdi_backend_device *device, const hdi_submission *submission, const hdi_cmd *cmd,
                           hdcl_command_buffer *buffer, cl_uint *point) {
    hdcl_command_buffer_khr commands = buffer->commands;
    const cl_uint before = *point, waits = before != NO_POINT;
    switch (cmd->kind) {
    case HDI_CMD_DISPATCH: {
        const hdi_loaded_kernel *loaded = submission->kernels[cmd->as.dispatch.kernel];
        size_t global[3], local[3];
        cl_kernel kernel = HDCL_MAKE(device, CreateKernel, loaded->program, HDI_SPIRV_PRINTED_ENTRY);
        if (!kernel) return false;
        buffer->kernels[buffer->kernel_count++] = kernel;
        hdcl_grid(cmd, loaded, global, local);
        return hdcl_set_arguments(device, submission, cmd, loaded, kernel) &&
               HDCL_CALL(device, CommandNDRangeKernelKHR, commands, NULL, NULL, kernel, 3, NULL, global, local, waits,
                         waits ? &before : NULL, point, NULL);
    }
    case HDI_CMD_COPY: {
        const hdcl_range from = hdcl_range_of(submission, cmd->as.copy.from),
                         to = hdcl_range_of(submission, cmd->as.copy.to);
        return HDCL_CALL(device, CommandCopyBufferKHR, commands, NULL, from.memory->buffer, to.memory->buffer,
                         from.offset, to.offset, to.bytes, waits, waits ? &before : NULL, point, NULL);
    }
    case HDI_CMD_FILL: {
        const hdcl_range to = hdcl_range_of(submission, cmd->as.fill.to);
        return HDCL_CALL(device, CommandFillBufferKHR, commands, NULL, to.memory->buffer, &cmd->as.fill.value, 4,
                         to.offset, to.bytes, waits, waits ? &before : NULL, point, NULL);
    }
    default: return true; /* the queue is in order, and nothing is measured */
    }
}

hd_status hdcl_record(hdi_backend_device *device, const hdi_submission *submission, hdi_command_buffer *out_buffer,
                      hd_error *error) {
    const hdi_cmds *cmds = submission->cmds;
    const cl_ulong properties[] = { HDCL_COMMAND_BUFFER_FLAGS, HDCL_COMMAND_BUFFER_SIMULTANEOUS, 0 };
    hdcl_command_buffer *buffer = HDI_OBJECT(out_buffer, hdcl_command_buffer, base);
    if (!hdi_grow(device->host->allocator, &buffer->kernels, &buffer->kernel_capacity, cmds->cmd_count,
                  sizeof *buffer->kernels))
        return hdcl_no_memory(error, "a recording");
    buffer->commands = HDCL_MAKE(device, CreateCommandBufferKHR, 1, &device->queue, properties);
    bool fine = buffer->commands != NULL;
    cl_uint point = NO_POINT;
    for (uint32_t i = 0; i < cmds->cmd_count && fine; i++)
        fine = record_command(device, submission, &cmds->cmds[i], buffer, &point);
    fine = fine && HDCL_CALL(device, FinalizeCommandBufferKHR, buffer->commands);
    return fine ? HD_OK : HD_STATUS_UNSUPPORTED; /* no failure of the device's */
}

void hdcl_record_end(hdi_backend_device *device, hdi_command_buffer *ended) {
    hdcl_command_buffer *buffer = HDI_OBJECT(ended, hdcl_command_buffer, base);
    if (buffer->commands && !device->abandoned) device->cl.ReleaseCommandBufferKHR(buffer->commands);
    for (uint32_t i = 0; i < buffer->kernel_count && !device->abandoned; i++)
        device->cl.ReleaseKernel(buffer->kernels[i]);
    hdi_free(device->host->allocator, buffer->kernels, buffer->kernel_capacity * sizeof *buffer->kernels);
}
