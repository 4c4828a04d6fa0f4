/* script.c: bind groups and launch words of a list of commands. WebGPU copies between two buffers, by words; and fills
 * with zeros. All else a small kernel does, a word of the target in each invocation. */
#include "device/webgpu/wg.h"
#include <stdio.h>

/* ---- the kernel for bytes ---- */

enum { LANES = 64, ROW_GROUPS = 4096 };

/* Launch words: where from and where to in bytes, how many, the pattern of a fill, 1 for a fill. */
static const char bytes_text[] =
    "@group(0) @binding(0) var<storage, read_write> source: array<u32>;\n"
    "@group(0) @binding(1) var<storage, read_write> sink: array<atomic<u32>>;\n"
    "@group(0) @binding(16) var<uniform> launch: array<vec4<u32>, 2>;\n"
    "@compute @workgroup_size(64, 1, 1)\n"
    "fn " HDI_SPIRV_PRINTED_ENTRY "(@builtin(global_invocation_id) id: vec3<u32>) {\n"
    "  let source_at = launch[0].x; let sink_at = launch[0].y; let end = launch[0].y + launch[0].z;\n"
    "  let word = sink_at / 4u + id.x + id.y * (64u * 4096u);\n"
    "  var value = 0u; var mask = 0u;\n"
    "  for (var i = 0u; i < 4u; i++) {\n"
    "    let at = word * 4u + i; let from_at = source_at + at - sink_at;\n"
    "    if (at >= sink_at && at < end) {\n"
    "      var byte = launch[0].w >> (i * 8u);\n"
    "      if (launch[1].x == 0u) { byte = source[from_at / 4u] >> (from_at % 4u * 8u); }\n"
    "      value |= (byte & 255u) << (i * 8u); mask |= 255u << (i * 8u);\n"
    "    }\n"
    "  }\n"
    "  if (mask == 0xFFFFFFFFu) { atomicStore(&sink[word], value); }\n"
    "  else if (mask != 0u) { atomicAnd(&sink[word], ~mask); atomicOr(&sink[word], value); }\n"
    "}\n";

bool hdwg_bytes_kernel_make(hdi_backend_device *device) {
    device->bytes_kernel.printed = (hdi_spirv_printed){ .buffers = { 0, 1 }, .buffer_count = 2, .argument_words = 8 };
    return hdwg_kernel_build(device, bytes_text, sizeof bytes_text - 1, &device->bytes_kernel);
}

uint32_t hdwg_piece_count(const hdi_submission *submission, const hdi_cmd *cmd) {
    if (cmd->kind == HDI_CMD_FILL)
        return cmd->as.fill.value ? (uint32_t)hdi_divide_up(cmd->as.fill.to.bytes, HDWG_PIECE_BYTES) : 0;
    const hdi_range *from = &cmd->as.copy.from, *to = &cmd->as.copy.to;
    const hdi_slot *a = &submission->slots[from->slot], *b = &submission->slots[to->slot];
    const bool by_words = ((a->offset + from->offset) | (b->offset + to->offset) | to->bytes) % 4 == 0;
    return a->memory != b->memory && by_words ? 0 : (uint32_t)hdi_divide_up(to->bytes, HDWG_PIECE_BYTES);
}

void hdwg_piece_groups(uint64_t bytes, uint32_t out_groups[2]) {
    /* a word more where neither end lies at one */
    const uint32_t groups = (uint32_t)hdi_divide_up(bytes / 4 + 2, LANES);
    out_groups[0] = HDI_MIN(groups, (uint32_t)ROW_GROUPS);
    out_groups[1] = (uint32_t)hdi_divide_up(groups, ROW_GROUPS);
}

/* ---- bind groups ---- */

typedef struct maker {
    hdi_backend_device   *device;
    const hdi_submission *submission;
    hdwg_script          *script;
    uint32_t             *words; /* of all launches */
} maker;

/* The binding's entry; what is bound begins at `offset`, which the device's alignment divides. */
static WGPUBindGroupEntry entry_of(uint32_t binding, const hdi_memory *memory, uint64_t offset, uint64_t bytes) {
    return (WGPUBindGroupEntry){
        .binding = binding, .buffer = memory->buffer, .offset = offset, .size = (bytes + 3) / 4 * 4
    };
}

static bool add_group(maker *m, const hdi_loaded_kernel *kernel, WGPUBindGroupEntry *entries) {
    const uint32_t count = kernel->printed.buffer_count;
    entries[count] = (WGPUBindGroupEntry){ .binding = HDI_SPIRV_WGSL_LAUNCH,
                                           .buffer = m->script->launches,
                                           .size = HDWG_LAUNCH_BYTES };
    const WGPUBindGroupDescriptor desc = { .layout = kernel->layout, .count = count + 1, .entries = entries };
    WGPUBindGroup *group = &m->script->groups[m->script->group_count++];
    return HDWG_MAKE(m->device, group, DeviceCreateBindGroup, m->device->device, &desc);
}

static uint32_t *next_words(const maker *m) { return m->words + m->script->group_count * HDWG_LAUNCH_WORDS; }

static bool add_dispatch(maker *m, const hdi_cmd *cmd) {
    const hdi_cmds *cmds = m->submission->cmds;
    const hdi_loaded_kernel *kernel = m->submission->kernels[cmd->as.dispatch.kernel];
    const hdi_spirv_printed *printed = &kernel->printed;
    const uint32_t given = HDI_MIN(cmds->kernels[cmd->as.dispatch.kernel].push_bytes / 4, printed->push_words);
    WGPUBindGroupEntry entries[HDI_SPIRV_MAX_BINDINGS + 1];
    for (uint32_t i = 0; i < printed->buffer_count; i++) {
        const hdi_range *range = &cmds->bindings[cmd->as.dispatch.binding_first + printed->buffers[i]].range;
        const hdi_slot *slot = &m->submission->slots[range->slot];
        entries[i] = entry_of(printed->buffers[i], slot->memory, slot->offset + range->offset, range->bytes);
    }
    uint32_t *words = next_words(m);
    memcpy(words, cmd->as.dispatch.first, 3 * sizeof *words);
    if (given) memcpy(words + 4, cmds->push + cmd->as.dispatch.push_first, given * sizeof *words);
    return add_group(m, kernel, entries);
}

/* A copy or fill, piece by piece; both ranges are bound from an aligned byte before them on. */
static bool add_pieces(maker *m, const hdi_cmd *cmd) {
    const bool fills = cmd->kind == HDI_CMD_FILL;
    const hdi_range *to = fills ? &cmd->as.fill.to : &cmd->as.copy.to, *from = fills ? to : &cmd->as.copy.from;
    const hdi_slot *to_slot = &m->submission->slots[to->slot], *from_slot = &m->submission->slots[from->slot];
    const uint64_t align = m->device->found.caps.binding_align;
    const uint32_t count = hdwg_piece_count(m->submission, cmd);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t done = i * HDWG_PIECE_BYTES, bytes = HDI_MIN(to->bytes - done, HDWG_PIECE_BYTES);
        const uint64_t to_at = to_slot->offset + to->offset + done, from_at = from_slot->offset + from->offset + done;
        WGPUBindGroupEntry entries[3] = { entry_of(0, from_slot->memory, from_at / align * align,
                                                   from_at % align + bytes),
                                          entry_of(1, to_slot->memory, to_at / align * align, to_at % align + bytes) };
        uint32_t *words = next_words(m);
        words[0] = (uint32_t)(from_at % align);
        words[1] = (uint32_t)(to_at % align);
        words[2] = (uint32_t)bytes;
        words[3] = fills ? cmd->as.fill.value : 0;
        words[4] = fills;
        if (!add_group(m, &m->device->bytes_kernel, entries)) return false;
    }
    return true;
}

/* ---- scripts ---- */

static uint32_t count_groups(const hdi_submission *submission) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < submission->cmds->cmd_count; i++) {
        const hdi_cmd *cmd = &submission->cmds->cmds[i];
        if (cmd->kind == HDI_CMD_DISPATCH) count++;
        if (cmd->kind == HDI_CMD_COPY || cmd->kind == HDI_CMD_FILL) count += hdwg_piece_count(submission, cmd);
    }
    return count;
}

static bool fill_script(maker *m, uint32_t count) {
    bool fine = hdwg_buffer_new(m->device, (uint64_t)count * HDWG_LAUNCH_BYTES, WGPU_USAGE_UNIFORM | WGPU_USAGE_COPY_TO,
                                &m->script->launches);
    for (uint32_t i = 0; i < m->submission->cmds->cmd_count && fine; i++) {
        const hdi_cmd *cmd = &m->submission->cmds->cmds[i];
        if (cmd->kind == HDI_CMD_DISPATCH) fine = add_dispatch(m, cmd);
        else if (cmd->kind == HDI_CMD_COPY || cmd->kind == HDI_CMD_FILL) fine = add_pieces(m, cmd);
    }
    return fine && HDWG_CALL(m->device, QueueWriteBuffer, m->device->queue, m->script->launches, 0, m->words,
                             (size_t)count * HDWG_LAUNCH_BYTES);
}

hd_status hdwg_script_make(hdi_backend_device *device, const hdi_submission *submission, hdwg_script *script,
                           hd_error *error) {
    const hd_allocator *allocator = device->host->allocator;
    const uint32_t count = count_groups(submission);
    maker m = { device, submission, script, NULL };
    if (count == 0) return HD_OK;
    m.words = hdi_alloc(allocator, (size_t)count * HDWG_LAUNCH_BYTES);
    const bool room =
        m.words && hdi_grow(allocator, &script->groups, &script->group_capacity, count, sizeof *script->groups);
    hd_status status = room ? HD_OK : hdwg_no_memory(error, "a recording");
    if (!status && !fill_script(&m, count))
        status = hdwg_fail(device, error, "recording %u commands", submission->cmds->cmd_count);
    hdi_free(allocator, m.words, (size_t)count * HDWG_LAUNCH_BYTES);
    return status;
}

void hdwg_script_end(hdi_backend_device *device, hdwg_script *script) {
    for (uint32_t i = 0; i < script->group_count; i++) HDWG_END(device, BindGroup, script->groups[i]);
    HDWG_END(device, Buffer, script->launches);
    hdi_free(device->host->allocator, script->groups, script->group_capacity * sizeof *script->groups);
    *script = (hdwg_script){ NULL, NULL, 0, 0 };
}

hd_status hdwg_record(hdi_backend_device *device, const hdi_submission *submission, hdi_command_buffer *out_buffer,
                      hd_error *error) {
    return hdwg_script_make(device, submission, &HDI_OBJECT(out_buffer, hdwg_command_buffer, base)->script, error);
}

void hdwg_record_end(hdi_backend_device *device, hdi_command_buffer *buffer) {
    hdwg_script_end(device, &HDI_OBJECT(buffer, hdwg_command_buffer, base)->script);
}
