/* memory.c: memory of the device, and of the host where the device reads or writes it from there; where both have one
 * memory, the host sees all of it. One address holds on both sides. */
#include "device/levelzero/ze.h"

enum { ALIGN = 256 };

void hdze_memory_end(hdi_backend_device *device, hdi_used *used) {
    hdi_memory *memory = HDI_OBJECT(used, hdi_memory, used);
    if (memory->address && !device->abandoned) device->ze.MemFree(device->context, memory->address);
    hdi_free(device->host->allocator, memory, sizeof *memory);
}

/* Zeros, at once: no submission can stand between. */
static bool clear(hdi_backend_device *device, const hdi_memory *memory) {
    const uint8_t zero = 0;
    if (memory->visible) {
        memset(memory->address, 0, (size_t)memory->bytes);
        return true;
    }
    if (!device->clear_list && !hdze_list_new(device, &device->clear_list)) return false;
    bool fine = HDZE_CALL(device, CommandListReset, device->clear_list) &&
                HDZE_CALL(device, CommandListAppendMemoryFill, device->clear_list, memory->address, &zero, 1,
                          (size_t)memory->bytes, NULL, 0, NULL) &&
                HDZE_CALL(device, CommandListClose, device->clear_list) &&
                HDZE_CALL(device, CommandQueueExecuteCommandLists, device->clear_queue, 1, &device->clear_list, NULL);
    if (!fine) return false;
    if (HDZE_CALL(device, CommandQueueSynchronize, device->clear_queue, device->host->wait_ns)) return true;
    if (hdze_last.result == ZE_RESULT_NOT_READY ||
        device->ze.CommandQueueSynchronize(device->clear_queue, device->host->wait_ns) == ZE_RESULT_NOT_READY) {
        device->abandoned = true; /* it may still be written to */
        hdze_last.result = ZE_RESULT_ERROR_DEVICE_LOST;
    }
    return false;
}

static bool allocate(hdi_backend_device *device, hdi_memory *memory, hd_buffer_use use) {
    const ze_device_mem_alloc_desc_t of_device = { .stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC };
    const ze_host_mem_alloc_desc_t of_host = { .stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC };
    const size_t bytes = (size_t)memory->bytes;
    bool fine;
    memory->visible = device->facts.shares || use != HD_BUFFER_STORAGE;
    if (use != HD_BUFFER_STORAGE)
        fine = HDZE_CALL(device, MemAllocHost, device->context, &of_host, bytes, ALIGN, &memory->address);
    else if (device->facts.shares)
        fine = HDZE_CALL(device, MemAllocShared, device->context, &of_device, &of_host, bytes, ALIGN,
                         device->facts.device, &memory->address);
    else
        fine = HDZE_CALL(device, MemAllocDevice, device->context, &of_device, bytes, ALIGN, device->facts.device,
                         &memory->address);
    if (!fine) memory->address = NULL;
    return fine;
}

hd_status hdze_alloc(hdi_backend_device *device, const hdi_alloc_desc *desc, hdi_memory **out_memory, hd_error *error) {
    if (hdi_loss_known(&device->loss)) return hdze_lost(device, error);
    if (desc->bytes > device->found.caps.max_allocation_bytes)
        return hdi_fail_native(error, HD_STATUS_OUT_OF_DEVICE_MEMORY, "levelzero", 0,
                               "a buffer of %llu bytes; one allocation has at most %llu",
                               (unsigned long long)desc->bytes,
                               (unsigned long long)device->found.caps.max_allocation_bytes);
    hdi_memory *memory = hdi_alloc(device->host->allocator, sizeof *memory);
    if (!memory) return hdze_no_memory(error, "a buffer");
    memory->bytes = (desc->bytes + 15) / 16 * 16; /* kernels read and write up to 16 bytes at once */
    hd_status status = HD_OK;
    if (!allocate(device, memory, desc->use) || !clear(device, memory))
        status = hdze_fail(device, error, "a buffer of %llu bytes", (unsigned long long)desc->bytes);
    return hdi_inflight_take_memory(&device->inflight, status, memory, out_memory);
}
