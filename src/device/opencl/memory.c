/* memory.c: buffers. By fine-grained SVM a buffer's memory is the host's own; else the host has a copy of what it wants
 * to see, and submit.c carries it over. */
#include "device/opencl/cl.h"

void hdcl_memory_end(hdi_backend_device *device, hdi_used *used) {
    hdi_memory *memory = HDI_OBJECT(used, hdi_memory, used);
    if (!device->abandoned) {
        if (memory->buffer) device->cl.ReleaseMemObject(memory->buffer);
        if (memory->borrowed) memory->host = NULL;
        else if (memory->shared) device->cl.SVMFree(device->context, memory->host);
        else hdi_free(device->host->allocator, memory->host, (size_t)memory->bytes);
    }
    hdi_free(device->host->allocator, memory, sizeof *memory);
}

/* Zeros, by the device; the buffer is new, so nothing else is waited for than older work. */
static bool clear(hdi_backend_device *device, hdi_memory *memory) {
    const uint8_t zero = 0;
    if (memory->shared) {
        memset(memory->host, 0, (size_t)memory->bytes);
        return true;
    }
    return HDCL_CALL(device, EnqueueFillBuffer, device->queue, memory->buffer, &zero, 1, 0, (size_t)memory->bytes, 0,
                     NULL, NULL);
}

/* Memory that host and device share, or NULL. */
static void *new_shared(hdi_backend_device *device, size_t bytes) {
    hdcl_last.function = HDCL_FN_SVMAlloc;
    hdcl_last.result = hdcl_fault(HDCL_FN_SVMAlloc);
    void *shared = hdcl_last.result ? NULL
                                    : device->cl.SVMAlloc(device->context,
                                                          CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, bytes, 64);
    if (!shared) hdcl_last.result = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return shared;
}

hd_status hdcl_alloc(hdi_backend_device *device, const hdi_alloc_desc *desc, hdi_memory **out_memory, hd_error *error) {
    if (hdi_loss_known(&device->loss)) return hdcl_lost(device, error);
    hdi_memory *memory = hdi_alloc(device->host->allocator, sizeof *memory);
    if (!memory) return hdcl_no_memory(error, "a buffer");
    memory->bytes = (desc->bytes + 3) / 4 * 4; /* kernels write whole words */
    hdcl_last.function = HDCL_FN_CreateBuffer;
    hdcl_last.result = CL_INVALID_BUFFER_SIZE;
    bool fits = desc->bytes <= device->found.caps.max_allocation_bytes;
    if (desc->host && !device->facts.shares) {
        hdi_free(device->host->allocator, memory, sizeof *memory);
        return hdi_fail_native(error, HD_STATUS_UNSUPPORTED, "opencl", 0,
                               "%.100s cannot use this memory of the host's in place; write the bytes into a buffer",
                               device->found.info.id);
    }
    if (fits && desc->host) {
        memory->host = desc->host;
        memory->shared = memory->borrowed = true;
    } else if (fits && device->facts.shares) {
        memory->host = new_shared(device, (size_t)memory->bytes);
        fits = memory->shared = memory->host != NULL;
    } else if (fits && desc->use != HD_BUFFER_STORAGE) {
        memory->host = hdi_alloc(device->host->allocator, (size_t)memory->bytes);
        hdcl_last.result = CL_OUT_OF_HOST_MEMORY;
        fits = memory->host != NULL;
    }
    if (fits)
        memory->buffer = HDCL_MAKE(device, CreateBuffer, device->context,
                                   CL_MEM_READ_WRITE | (memory->shared ? CL_MEM_USE_HOST_PTR : 0u),
                                   (size_t)memory->bytes, memory->shared ? memory->host : NULL);
    hd_status status = HD_OK;
    if (!memory->buffer || (!desc->host && !clear(device, memory)))
        status = hdcl_fail(device, error, "a buffer of %llu bytes", (unsigned long long)desc->bytes);
    return hdi_inflight_take_memory(&device->inflight, status, memory, out_memory);
}

void *hdcl_map(hdi_backend_device *device, hdi_memory *memory) {
    (void)device;
    return memory->host;
}
