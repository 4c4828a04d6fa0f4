/* encode.c: turns hdi_cmds, for given slots, into command buffers. A barrier marked `cut` begins a new command buffer,
 * handed over by itself. Each command buffer begins by waiting for all that went before on its queue, so submissions
 * follow each other as barriers within one do; the last one ends by making its writes visible to the host. */
#include "device/vulkan/vk.h"

/* ---- commands ---- */

hd_status hdvk_commands_get(hdi_backend_device *device, uint32_t queue, hdvk_commands **out_commands, hd_error *error) {
    hdvk_commands *commands = NULL;
    for (hdi_link *at = device->spare.previous; at != &device->spare && !commands; at = at->previous)
        if (HDI_OBJECT(at, hdvk_commands, used.link)->queue == queue)
            commands = HDI_OBJECT(at, hdvk_commands, used.link);
    if (commands) {
        hdi_list_remove(&commands->used.link);
        device->spare_count--;
    } else {
        commands = hdi_alloc(device->host->allocator, sizeof *commands);
        if (!commands) return hdvk_no_memory(error);
        commands->queue = queue;
    }
    *out_commands = commands;
    return HD_OK;
}

/* Also after encoding broke off, since a buffer in the middle of its recording cannot begin anew. */
static void free_buffers(hdi_backend_device *device, hdvk_commands *commands) {
    if (commands->buffer_count && !device->vk.abandoned)
        device->vk.FreeCommandBuffers(device->vk.device, device->queues[commands->queue].pool, commands->buffer_count,
                                      commands->buffers);
    commands->buffer_count = 0;
}

static void end_commands(hdi_backend_device *device, hdvk_commands *commands) {
    const hd_allocator *allocator = device->host->allocator;
    HDVK_END(&device->vk, DestroyDescriptorPool, commands->pool);
    free_buffers(device, commands);
    hdi_free(allocator, commands->buffers, (size_t)commands->buffer_capacity * sizeof *commands->buffers);
    hdi_free(allocator, commands, sizeof *commands);
}

void hdvk_commands_put(hdi_backend_device *device, hdi_used *used) {
    enum { MOST_SPARE = 64 };
    if (device->spare_count == MOST_SPARE) {
        end_commands(device, HDI_OBJECT(used, hdvk_commands, used));
        return;
    }
    hdi_list_add(&device->spare, &used->link);
    device->spare_count++;
}

void hdvk_commands_trim(hdi_backend_device *device) {
    while (!hdi_list_empty(&device->spare)) {
        hdvk_commands *commands = HDI_OBJECT(device->spare.next, hdvk_commands, used.link);
        hdi_list_remove(&commands->used.link);
        end_commands(device, commands);
    }
    device->spare_count = 0;
}

/* ---- room: what the commands need, made before the first is encoded ---- */

typedef struct needs {
    uint32_t pieces, sets, bindings, marks;
    uint32_t last_work; /* a cut after it would make an empty piece */
    bool     moves;     /* there are copies or fills */
} needs;

static needs count_needs(const hdi_cmds *cmds) {
    needs n = { .pieces = 1 };
    for (uint32_t i = 0; i < cmds->cmd_count; i++)
        if (cmds->cmds[i].kind != HDI_CMD_BARRIER) n.last_work = i;
    for (uint32_t i = 0; i < cmds->cmd_count; i++) {
        const hdi_cmd *cmd = &cmds->cmds[i];
        if (cmd->kind == HDI_CMD_DISPATCH) {
            n.sets += cmd->as.dispatch.binding_count != 0;
            n.bindings += cmd->as.dispatch.binding_count;
        }
        n.marks += cmd->kind == HDI_CMD_MARK;
        n.moves |= cmd->kind == HDI_CMD_COPY || cmd->kind == HDI_CMD_FILL;
        n.pieces += cmd->kind == HDI_CMD_BARRIER && cmd->as.barrier.cut && i < n.last_work;
    }
    return n;
}

static hd_status need_buffers(hdi_backend_device *device, hdvk_commands *commands, uint32_t count, hd_error *error) {
    hdvk_vk *vk = &device->vk;
    if (count <= commands->buffer_count) return HD_OK;
    if (!hdi_grow(device->host->allocator, &commands->buffers, &commands->buffer_capacity, count,
                  sizeof *commands->buffers))
        return hdvk_no_memory(error);
    const VkCommandBufferAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = device->queues[commands->queue].pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY, .commandBufferCount = count - commands->buffer_count,
    };
    if (HDVK_CALL(vk, AllocateCommandBuffers, vk->device, &info, commands->buffers + commands->buffer_count))
        return hdvk_fail(vk, error, "%u command buffers", info.commandBufferCount);
    commands->buffer_count = count;
    return HD_OK;
}

/* A pool that is large enough is emptied; another is made with room to grow, since spare ones serve other commands. */
static hd_status need_sets(hdi_backend_device *device, hdvk_commands *commands, uint32_t sets, uint32_t bindings,
                           hd_error *error) {
    hdvk_vk *vk = &device->vk;
    if (!sets) return HD_OK;
    if (commands->pool && sets <= commands->pool_sets && bindings <= commands->pool_bindings) {
        if (HDVK_CALL(vk, ResetDescriptorPool, vk->device, commands->pool, 0))
            return hdvk_fail(vk, error, "emptying a descriptor pool");
        return HD_OK;
    }
    HDVK_END(vk, DestroyDescriptorPool, commands->pool);
    commands->pool = VK_NULL_HANDLE;
    commands->pool_sets = sets + sets / 2;
    commands->pool_bindings = bindings + bindings / 2;
    const VkDescriptorPoolSize size = { .type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                        .descriptorCount = commands->pool_bindings };
    const VkDescriptorPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = commands->pool_sets, .poolSizeCount = 1,
        .pPoolSizes = &size,
    };
    if (HDVK_CALL(vk, CreateDescriptorPool, vk->device, &info, NULL, &commands->pool) == VK_SUCCESS) return HD_OK;
    commands->pool = VK_NULL_HANDLE;
    return hdvk_fail(vk, error, "a pool of %u descriptor sets", commands->pool_sets);
}

static hd_status need_queries(hdi_backend_device *device, hdvk_timestamps *timestamps, uint32_t count,
                              hd_error *error) {
    hdvk_vk *vk = &device->vk;
    if (count <= timestamps->capacity) return HD_OK;
    HDVK_END(vk, DestroyQueryPool, timestamps->queries);
    timestamps->queries = VK_NULL_HANDLE;
    timestamps->capacity = 0;
    const VkQueryPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, .queryType = VK_QUERY_TYPE_TIMESTAMP, .queryCount = count,
    };
    if (HDVK_CALL(vk, CreateQueryPool, vk->device, &info, NULL, &timestamps->queries)) {
        timestamps->queries = VK_NULL_HANDLE;
        return hdvk_fail(vk, error, "%u time stamps", count);
    }
    timestamps->capacity = count;
    return HD_OK;
}

/* ---- encoding ---- */

typedef struct encoder {
    hdi_backend_device   *device;
    const hdi_submission *submission;
    hdvk_commands        *commands;
    hdvk_timestamps      *timestamps; /* NULL: none are noted */
    VkCommandBuffer       buffer;
    VkCommandBufferUsageFlags usage;
    VkPipeline            bound;
    const uint32_t       *pushed; /* the push words that hold, for this layout; NULL: none */
    VkPipelineLayout      pushed_layout;
    const char           *label; /* of the mark that is open, or NULL */
    uint32_t              piece, mark;
    bool                  moves;  /* there are copies or fills among the commands */
} encoder;

/* Everything before is done and visible to everything after, on this queue; with `host`, to the host as well. */
static void barrier(const encoder *e, bool host) {
    const VkPipelineStageFlags stages = e->device->queues[e->commands->queue].stages;
    const bool computes = (stages & VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT) != 0;
    const VkAccessFlags writes = VK_ACCESS_TRANSFER_WRITE_BIT | (computes ? VK_ACCESS_SHADER_WRITE_BIT : 0u);
    const VkAccessFlags reads = VK_ACCESS_TRANSFER_READ_BIT | (computes ? VK_ACCESS_SHADER_READ_BIT : 0u);
    const VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = writes,
        .dstAccessMask = host ? (VkAccessFlags)(VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT) : reads | writes,
    };
    e->device->vk.CmdPipelineBarrier(e->buffer, stages, host ? VK_PIPELINE_STAGE_HOST_BIT : stages, 0, 1, &memory, 0,
                                     NULL, 0, NULL);
}

/* A barrier among dispatches only. It names storage buffers alone where the driver can tell them from other reads, so
 * that caches of constants stay warm. */
static void compute_barrier(const encoder *e) {
    const hdvk_vk *vk = &e->device->vk;
    if (e->device->facts.features.sync2.synchronization2 && vk->CmdPipelineBarrier2) {
        const VkMemoryBarrier2 memory = {
            .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
            .srcStageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT,
            .srcAccessMask = VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT,
            .dstStageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT,
            .dstAccessMask = VK_ACCESS_2_SHADER_STORAGE_READ_BIT | VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT,
        };
        const VkDependencyInfo info = { .sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
                                        .memoryBarrierCount = 1,
                                        .pMemoryBarriers = &memory };
        vk->CmdPipelineBarrier2(e->buffer, &info);
        return;
    }
    const VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT,
    };
    vk->CmdPipelineBarrier(e->buffer, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1,
                           &memory, 0, NULL, 0, NULL);
}

static void open_label(const encoder *e) {
    const hdvk_vk *vk = &e->device->vk;
    if (!e->label || !vk->debug_utils || !vk->CmdBeginDebugUtilsLabelEXT || !vk->CmdEndDebugUtilsLabelEXT) return;
    const VkDebugUtilsLabelEXT label = { .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT, .pLabelName = e->label };
    vk->CmdBeginDebugUtilsLabelEXT(e->buffer, &label);
}

static void close_label(const encoder *e) {
    const hdvk_vk *vk = &e->device->vk;
    if (e->label && vk->debug_utils && vk->CmdBeginDebugUtilsLabelEXT && vk->CmdEndDebugUtilsLabelEXT)
        vk->CmdEndDebugUtilsLabelEXT(e->buffer);
}

static hd_status begin_piece(encoder *e, hd_error *error) {
    hdvk_vk *vk = &e->device->vk;
    const VkCommandBufferBeginInfo info = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, .flags = e->usage };
    e->buffer = e->commands->buffers[e->piece++];
    e->bound = VK_NULL_HANDLE;
    e->pushed = NULL;
    if (HDVK_CALL(vk, BeginCommandBuffer, e->buffer, &info))
        return hdvk_fail(vk, error, "beginning piece %u", e->piece);
    barrier(e, false);
    if (e->piece == 1 && e->timestamps)
        vk->CmdResetQueryPool(e->buffer, e->timestamps->queries, 0, e->timestamps->mark_count + 1);
    open_label(e);
    return HD_OK;
}

static hd_status end_piece(encoder *e, bool last, hd_error *error) {
    hdvk_vk *vk = &e->device->vk;
    close_label(e);
    if (last) {
        if (e->timestamps)
            vk->CmdWriteTimestamp(e->buffer, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, e->timestamps->queries, e->mark);
        barrier(e, true);
    }
    if (HDVK_CALL(vk, EndCommandBuffer, e->buffer)) return hdvk_fail(vk, error, "ending piece %u", e->piece);
    return HD_OK;
}

static VkBuffer buffer_of(const encoder *e, const hdi_range *range, VkDeviceSize *out_offset) {
    const hdi_slot *slot = &e->submission->slots[range->slot];
    *out_offset = slot->memory->offset + slot->offset + range->offset;
    return slot->memory->block->buffer;
}

static hd_status bind_buffers(const encoder *e, const hdi_cmd *cmd, VkPipelineLayout layout, hd_error *error) {
    hdvk_vk *vk = &e->device->vk;
    const uint32_t count = cmd->as.dispatch.binding_count;
    const VkDescriptorSetAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, .descriptorPool = e->commands->pool,
        .descriptorSetCount = 1, .pSetLayouts = &e->device->set_layouts[count],
    };
    VkDescriptorSet set;
    if (HDVK_CALL(vk, AllocateDescriptorSets, vk->device, &info, &set))
        return hdvk_fail(vk, error, "a set of %u buffers", count);
    VkDescriptorBufferInfo buffers[HDI_MAX_BINDINGS];
    for (uint32_t i = 0; i < count; i++) {
        const hdi_range *range = &e->submission->cmds->bindings[cmd->as.dispatch.binding_first + i].range;
        buffers[i].buffer = buffer_of(e, range, &buffers[i].offset);
        buffers[i].range = (range->bytes + 3) & ~UINT64_C(3); /* kernels see words; memory is padded to hold them */
    }
    const VkWriteDescriptorSet write = {
        .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, .dstSet = set, .descriptorCount = count,
        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .pBufferInfo = buffers,
    };
    vk->UpdateDescriptorSets(vk->device, 1, &write, 0, NULL);
    vk->CmdBindDescriptorSets(e->buffer, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0, NULL);
    return HD_OK;
}

static hd_status encode_dispatch(encoder *e, const hdi_cmd *cmd, hd_error *error) {
    const hdvk_vk *vk = &e->device->vk;
    const hdi_loaded_kernel *kernel = e->submission->kernels[cmd->as.dispatch.kernel];
    if (cmd->as.dispatch.binding_count) {
        hd_status status = bind_buffers(e, cmd, kernel->layout, error);
        if (status != HD_OK) return status;
    }
    if (e->bound != kernel->pipeline) vk->CmdBindPipeline(e->buffer, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->pipeline);
    e->bound = kernel->pipeline;
    const uint32_t *push = e->submission->cmds->push + cmd->as.dispatch.push_first;
    const bool pushed =
        e->pushed && e->pushed_layout == kernel->layout && memcmp(e->pushed, push, kernel->push_bytes) == 0;
    if (kernel->push_bytes && !pushed)
        vk->CmdPushConstants(e->buffer, kernel->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, kernel->push_bytes,
                             push);
    e->pushed = push;
    e->pushed_layout = kernel->layout;
    const uint32_t *first = cmd->as.dispatch.first, *groups = cmd->as.dispatch.groups;
    if (first[0] | first[1] | first[2])
        vk->CmdDispatchBase(e->buffer, first[0], first[1], first[2], groups[0], groups[1], groups[2]);
    else vk->CmdDispatch(e->buffer, groups[0], groups[1], groups[2]);
    return HD_OK;
}

static void encode_copy(const encoder *e, const hdi_cmd *cmd) {
    VkBufferCopy region = { .size = cmd->as.copy.from.bytes };
    const VkBuffer from = buffer_of(e, &cmd->as.copy.from, &region.srcOffset);
    const VkBuffer to = buffer_of(e, &cmd->as.copy.to, &region.dstOffset);
    e->device->vk.CmdCopyBuffer(e->buffer, from, to, 1, &region);
}

static void encode_fill(const encoder *e, const hdi_cmd *cmd) {
    VkDeviceSize offset;
    const VkBuffer to = buffer_of(e, &cmd->as.fill.to, &offset);
    e->device->vk.CmdFillBuffer(e->buffer, to, offset, cmd->as.fill.to.bytes, cmd->as.fill.value);
}

static void encode_mark(encoder *e, const hdi_cmd *cmd) {
    close_label(e);
    e->label = e->submission->cmds->labels[cmd->as.mark.label];
    open_label(e);
    if (e->timestamps)
        e->device->vk.CmdWriteTimestamp(e->buffer, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, e->timestamps->queries,
                                        e->mark);
    e->mark++;
}

static hd_status encode_all(encoder *e, uint32_t last_work, hd_error *error) {
    const hdi_cmds *cmds = e->submission->cmds;
    hd_status status = begin_piece(e, error);
    for (uint32_t i = 0; i < cmds->cmd_count && status == HD_OK; i++) {
        const hdi_cmd *cmd = &cmds->cmds[i];
        switch (cmd->kind) {
        case HDI_CMD_DISPATCH: status = encode_dispatch(e, cmd, error); break;
        case HDI_CMD_COPY:     encode_copy(e, cmd); break;
        case HDI_CMD_FILL:     encode_fill(e, cmd); break;
        case HDI_CMD_MARK:     encode_mark(e, cmd); break;
        case HDI_CMD_BARRIER:
            if (!cmd->as.barrier.cut || i >= last_work) {
                if (e->moves) barrier(e, false);
                else compute_barrier(e);
            } else { /* the next piece begins with a barrier */
                status = end_piece(e, false, error);
                if (status == HD_OK) status = begin_piece(e, error);
            }
            break;
        }
    }
    return status == HD_OK ? end_piece(e, true, error) : status;
}

static hd_status encode(hdi_backend_device *device, const hdi_submission *submission, VkCommandBufferUsageFlags usage,
                        hdvk_commands *commands, hdvk_timestamps *timestamps, hd_error *error) {
    const needs n = count_needs(submission->cmds);
    if (timestamps) timestamps->mark_count = n.marks;
    hd_status status = need_buffers(device, commands, n.pieces, error);
    if (status == HD_OK) status = need_sets(device, commands, n.sets, n.bindings, error);
    if (status == HD_OK && timestamps) status = need_queries(device, timestamps, n.marks + 1, error);
    if (status != HD_OK) return status;
    encoder e = { .device = device, .submission = submission, .commands = commands, .timestamps = timestamps,
                  .usage = usage, .moves = n.moves };
    status = encode_all(&e, n.last_work, error);
    commands->piece_count = e.piece;
    if (status != HD_OK) free_buffers(device, commands);
    return status;
}

hd_status hdvk_encode(hdi_backend_device *device, const hdi_submission *submission, hdvk_commands *commands,
                      hdvk_timestamps *timestamps, hd_error *error) {
    return encode(device, submission, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, commands, timestamps, error);
}

hd_status hdvk_encode_zeroing(hdi_backend_device *device, hdvk_commands *commands, hd_error *error) {
    hd_status status = need_buffers(device, commands, 1, error);
    if (status != HD_OK) return status;
    commands->piece_count = 1;
    encoder e = { .device = device, .commands = commands, .usage = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT };
    status = begin_piece(&e, error);
    for (hdi_link *at = device->unzeroed.next; at != &device->unzeroed && status == HD_OK; at = at->next) {
        const hdi_memory *memory = HDI_OBJECT(at, hdi_memory, unzeroed);
        device->vk.CmdFillBuffer(e.buffer, memory->block->buffer, memory->offset, memory->bytes, 0);
    }
    if (status == HD_OK) status = end_piece(&e, false, error);
    if (status != HD_OK) free_buffers(device, commands);
    return status;
}

hd_status hdvk_encode_ends(hdi_backend_device *device, hdvk_commands *commands, hdvk_timestamps *timestamps,
                           hd_error *error) {
    hdvk_vk *vk = &device->vk;
    hd_status status = need_buffers(device, commands, 2, error);
    if (status == HD_OK) status = need_queries(device, timestamps, 2, error);
    if (status != HD_OK) return status;
    commands->piece_count = 2;
    encoder e = { .device = device, .commands = commands, .usage = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT };
    for (uint32_t i = 0; i < 2 && status == HD_OK; i++) {
        status = begin_piece(&e, error);
        if (status != HD_OK) break;
        if (i == 0) vk->CmdResetQueryPool(e.buffer, timestamps->queries, 0, 2);
        vk->CmdWriteTimestamp(e.buffer, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, timestamps->queries, i);
        status = end_piece(&e, false, error);
    }
    if (status != HD_OK) free_buffers(device, commands);
    return status;
}

/* ---- recordings ---- */

hd_status hdvk_record(hdi_backend_device *device, const hdi_submission *submission, hdi_command_buffer *out_buffer,
                      hd_error *error) {
    hdvk_command_buffer *buffer = HDI_OBJECT(out_buffer, hdvk_command_buffer, base);
    const hd_status status = hdvk_commands_get(device, submission->queue, &buffer->commands, error);
    if (status != HD_OK) return status;
    hdvk_timestamps *timestamps =
        submission->timestamps && device->facts.found.caps.timestamps ? &buffer->timestamps : NULL;
    return encode(device, submission, VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT, buffer->commands, timestamps,
                  error);
}

void hdvk_record_end(hdi_backend_device *device, hdi_command_buffer *ended) {
    hdvk_command_buffer *buffer = HDI_OBJECT(ended, hdvk_command_buffer, base);
    if (buffer->commands) hdvk_commands_put(device, &buffer->commands->used);
    HDVK_END(&device->vk, DestroyQueryPool, buffer->timestamps.queries);
}
