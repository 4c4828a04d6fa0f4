/* memory.c: buffers, which WebGPU zeroes. What the host is to see has a copy there (carry.c). */
#include "device/webgpu/wg.h"

bool hdwg_buffer_new(hdi_backend_device *device, uint64_t bytes, uint64_t usage, WGPUBuffer *out_buffer) {
    const WGPUBufferDescriptor desc = { .usage = usage, .size = bytes };
    if (HDWG_MAKE(device, out_buffer, DeviceCreateBuffer, device->device, &desc)) return true;
    HDWG_END(device, Buffer, *out_buffer);
    return false;
}

void hdwg_memory_end(hdi_backend_device *device, hdi_used *used) {
    hdi_memory *memory = HDI_OBJECT(used, hdi_memory, used);
    HDWG_END(device, Buffer, memory->buffer);
    hdi_free(device->host->allocator, memory->host, (size_t)memory->bytes);
    hdi_free(device->host->allocator, memory, sizeof *memory);
}

hd_status hdwg_alloc(hdi_backend_device *device, const hdi_alloc_desc *desc, hdi_memory **out_memory, hd_error *error) {
    if (hdi_loss_known(&device->loss)) return hdwg_lost(device, error);
    if (desc->bytes > device->found.caps.max_allocation_bytes - 16)
        return hdi_fail_native(error, HD_STATUS_OUT_OF_DEVICE_MEMORY, "webgpu", 0,
                               "a buffer of %llu bytes; one has at most %llu", (unsigned long long)desc->bytes,
                               (unsigned long long)device->found.caps.max_allocation_bytes - 16);
    hdi_memory *memory = hdi_alloc(device->host->allocator, sizeof *memory);
    if (!memory) return hdwg_no_memory(error, "a buffer");
    memory->bytes = (desc->bytes + 15) / 16 * 16;
    const bool seen = desc->use != HD_BUFFER_STORAGE;
    if (seen) memory->host = hdi_alloc(device->host->allocator, (size_t)memory->bytes);
    hd_status status = seen && !memory->host ? hdwg_no_memory(error, "a buffer's copy") : HD_OK;
    if (!status && !hdwg_buffer_new(device, memory->bytes,
                                    WGPU_USAGE_STORAGE | WGPU_USAGE_COPY_FROM | WGPU_USAGE_COPY_TO, &memory->buffer))
        status = hdwg_fail(device, error, "a buffer of %llu bytes", (unsigned long long)desc->bytes);
    return hdi_inflight_take_memory(&device->inflight, status, memory, out_memory);
}
