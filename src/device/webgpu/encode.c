/* encode.c: commands to a command buffer. Dispatches share a compute pass up to the next command that is none; WebGPU
 * makes one wait for another by itself, so barriers are nothing here. */
#include "device/webgpu/wg.h"

typedef struct encoder {
    hdi_backend_device   *device;
    const hdi_submission *submission;
    const hdwg_script    *script;
    hdwg_job             *job;
    WGPUCommandEncoder    commands;
    WGPUComputePassEncoder pass; /* NULL: none has begun */
    uint32_t              next;  /* of the script's bind groups */
} encoder;

static bool begin_pass(encoder *e) {
    const WGPUComputePassDescriptor desc = { .next = NULL };
    return e->pass || HDWG_MAKE(e->device, &e->pass, CommandEncoderBeginComputePass, e->commands, &desc);
}

static bool end_pass(encoder *e) {
    if (!e->pass) return true;
    const bool fine = HDWG_CALL(e->device, ComputePassEncoderEnd, e->pass);
    HDWG_END(e->device, ComputePassEncoder, e->pass);
    return fine;
}

static bool launch(encoder *e, const hdi_loaded_kernel *kernel, uint32_t x, uint32_t y, uint32_t z) {
    const uint32_t words_at = e->next * HDWG_LAUNCH_BYTES;
    const WGPUBindGroup group = e->script->groups[e->next++];
    return begin_pass(e) && HDWG_CALL(e->device, ComputePassEncoderSetPipeline, e->pass, kernel->pipeline) &&
           HDWG_CALL(e->device, ComputePassEncoderSetBindGroup, e->pass, 0, group, 1, &words_at) &&
           HDWG_CALL(e->device, ComputePassEncoderDispatchWorkgroups, e->pass, x, y, z);
}

static bool launch_pieces(encoder *e, uint64_t bytes, uint32_t count) {
    bool fine = true;
    for (uint32_t i = 0; i < count && fine; i++) {
        uint32_t groups[2];
        hdwg_piece_groups(HDI_MIN(bytes - i * HDWG_PIECE_BYTES, HDWG_PIECE_BYTES), groups);
        fine = launch(e, &e->device->bytes_kernel, groups[0], groups[1], 1);
    }
    return fine;
}

static bool copy(encoder *e, const hdi_cmd *cmd) {
    const hdi_range *from = &cmd->as.copy.from, *to = &cmd->as.copy.to;
    const hdi_slot *a = &e->submission->slots[from->slot], *b = &e->submission->slots[to->slot];
    const uint32_t pieces = hdwg_piece_count(e->submission, cmd);
    if (pieces) return launch_pieces(e, to->bytes, pieces);
    return end_pass(e) && HDWG_CALL(e->device, CommandEncoderCopyBufferToBuffer, e->commands, a->memory->buffer,
                                    a->offset + from->offset, b->memory->buffer, b->offset + to->offset, to->bytes);
}

static bool fill(encoder *e, const hdi_cmd *cmd) {
    const hdi_range *to = &cmd->as.fill.to;
    const hdi_slot *slot = &e->submission->slots[to->slot];
    const uint32_t pieces = hdwg_piece_count(e->submission, cmd);
    if (pieces) return launch_pieces(e, to->bytes, pieces);
    return end_pass(e) && HDWG_CALL(e->device, CommandEncoderClearBuffer, e->commands, slot->memory->buffer,
                                    slot->offset + to->offset, to->bytes);
}

static bool mark(encoder *e) {
    if (!e->submission->timestamps || e->job->mark_count == e->job->tick_room) return true;
    return end_pass(e) &&
           HDWG_CALL(e->device, CommandEncoderWriteTimestamp, e->commands, e->job->queries, e->job->mark_count++);
}

static bool encode_all(encoder *e) {
    bool fine = true;
    for (uint32_t i = 0; i < e->submission->cmds->cmd_count && fine; i++) {
        const hdi_cmd *cmd = &e->submission->cmds->cmds[i];
        const uint32_t *groups = cmd->as.dispatch.groups;
        switch (cmd->kind) {
        case HDI_CMD_DISPATCH:
            fine = launch(e, e->submission->kernels[cmd->as.dispatch.kernel], groups[0], groups[1], groups[2]);
            break;
        case HDI_CMD_COPY:     fine = copy(e, cmd); break;
        case HDI_CMD_FILL:     fine = fill(e, cmd); break;
        case HDI_CMD_BARRIER:  break;
        case HDI_CMD_MARK:     fine = mark(e); break;
        }
    }
    fine = fine && (e->job->mark_count == 0 || mark(e)) && end_pass(e);
    return fine && hdwg_carry_encode(e->device, e->job, e->commands);
}

bool hdwg_encode(hdi_backend_device *device, const hdi_submission *submission, const hdwg_script *script, hdwg_job *job,
                 WGPUCommandBuffer *out_commands) {
    encoder e = { .device = device, .submission = submission, .script = script, .job = job };
    const WGPUCommandEncoderDescriptor desc = { .next = NULL };
    const WGPUCommandBufferDescriptor finished = { .next = NULL };
    *out_commands = NULL;
    bool fine = HDWG_MAKE(device, &e.commands, DeviceCreateCommandEncoder, device->device, &desc) && encode_all(&e);
    HDWG_END(device, ComputePassEncoder, e.pass);
    fine = fine && HDWG_MAKE(device, out_commands, CommandEncoderFinish, e.commands, &finished);
    HDWG_END(device, CommandEncoder, e.commands);
    return fine;
}
