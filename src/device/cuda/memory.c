/* memory.c: memory of the device, and of the host where both see it; each has one address for the device's and the
 * host's calls alike. Small memory is taken in powers of two and kept for the next of its size: drivers take long for
 * it. The caller's own memory is registered with the driver for as long as it is a buffer. */
#include "device/cuda/cu.h"
#include "os/os.h"

#define UNIT_BYTES      UINT64_C(256) /* kernels may read 16 bytes at a time up to the end */
#define MOST_SMALL      (UNIT_BYTES << (HDCU_SPARE_CLASSES - 1))

/* The list of spares that the memory belongs to; NULL: it is too large. */
static hdi_link *spares_of(hdi_backend_device *device, uint64_t bytes, bool of_host) {
    uint32_t class = 0;
    while (class < HDCU_SPARE_CLASSES && UNIT_BYTES << class < bytes) class++;
    return class < HDCU_SPARE_CLASSES ? &device->spares[of_host][class] : NULL;
}

static bool round_bytes(uint64_t wanted, uint64_t *out_bytes) {
    if (wanted > MOST_SMALL) return hdi_pad_u64(wanted, UNIT_BYTES, out_bytes);
    for (*out_bytes = UNIT_BYTES; *out_bytes < wanted;) *out_bytes *= 2;
    return true;
}

static bool take_new(hdi_backend_device *device, hdi_memory *memory, bool of_host) {
    hdcu_api *api = &device->api;
    if (!of_host) return HDCU_CALL(api, MemAlloc, &memory->address, (size_t)memory->bytes);
    if (!HDCU_CALL(api, MemHostAlloc, &memory->host, (size_t)memory->bytes, HDCU_HOST_PORTABLE | HDCU_HOST_MAPPED)) {
        memory->host = NULL;
        return false;
    }
    memory->address = (uint64_t)(uintptr_t)memory->host;
    return true;
}

static void release(hdi_backend_device *device, hdi_memory *memory) {
    hdi_list_remove(&memory->used.link);
    if (memory->borrowed) HDCU_END(device, MemHostUnregister, memory->host);
    else if (memory->host) HDCU_END(device, MemFreeHost, memory->host);
    else HDCU_END(device, MemFree, memory->address);
    hdi_free(device->host->allocator, memory, sizeof *memory);
}

/* Zeros; on the device by the compute stream, before all that is handed over later; other streams wait for it. */
static bool clear(hdi_backend_device *device, const hdi_memory *memory) {
    const hdcu_stream stream = device->streams[HDI_QUEUE_COMPUTE];
    if (!memory->host) {
        device->unclear[HDI_QUEUE_UPLOAD] = device->unclear[HDI_QUEUE_DOWNLOAD] = true;
        return HDCU_CALL(&device->api, MemsetD32Async, memory->address, 0, (size_t)(memory->bytes / 4), stream) &&
               HDCU_CALL(&device->api, EventRecord, device->cleared, stream);
    }
    memset(memory->host, 0, (size_t)memory->bytes);
    return true;
}

/* A spare of this size, or a description of memory that is to be taken (`address` 0); NULL: no host memory. */
static hdi_memory *take_spare(hdi_backend_device *device, uint64_t bytes, bool of_host) {
    hdi_link *spares = spares_of(device, bytes, of_host);
    hdi_memory *memory;
    if (spares && !hdi_list_empty(spares)) {
        memory = HDI_OBJECT(spares->next, hdi_memory, used.link);
        hdi_list_remove(&memory->used.link);
        return memory;
    }
    memory = hdi_alloc(device->host->allocator, sizeof *memory);
    if (!memory) return NULL;
    memory->bytes = bytes;
    hdi_list_init(&memory->used.link);
    return memory;
}

static hd_status no_memory(const hdi_backend_device *device, hd_error *error) {
    return hdi_fail_native(error, HD_STATUS_OUT_OF_HOST_MEMORY, device->found.info.backend, 0,
                           "no memory for a buffer");
}

/* The driver keeps the pages where they are and shows them to the device: those of a file to read alone, which it is
 * asked for only where they are shared. To keep private ones of a file for reading, Linux may try without an end. */
static hd_status borrow(hdi_backend_device *device, const hdi_alloc_desc *desc, hdi_memory **out_memory,
                        hd_error *error) {
    hdcu_api *api = &device->api;
    const unsigned flags =
        HDCU_HOST_MAPPED | (hdi_os_is_shared_file(desc->host, desc->bytes) ? HDCU_HOST_READ_ONLY : 0);
    const char *id = device->found.info.id;
    if ((uintptr_t)desc->host % device->found.caps.binding_align != 0)
        return hdi_fail_native(error, HD_STATUS_UNSUPPORTED, device->found.info.backend, 0,
                               "%.100s cannot use this memory of the host's in place; write the bytes into a buffer: "
                               "it begins at no multiple of %llu",
                               id, (unsigned long long)device->found.caps.binding_align);
    hdi_memory *memory = hdi_alloc(device->host->allocator, sizeof *memory);
    if (!memory) return no_memory(device, error);
    hdi_list_init(&memory->used.link);
    memory->bytes = desc->bytes;
    memory->borrowed = true;
    if (HDCU_CALL(api, MemHostRegister, desc->host, (size_t)desc->bytes, flags)) memory->host = desc->host;
    if (memory->host && HDCU_CALL(api, MemHostGetDevicePointer, &memory->address, memory->host, 0))
        return hdi_inflight_take_memory(&device->inflight, HD_OK, memory, out_memory);
    const hd_status status = hdcu_fail(
        api, error, "%.40s cannot use this memory of the host's in place; write the bytes into a buffer", id);
    release(device, memory);
    return status;
}

hd_status hdcu_alloc(hdi_backend_device *device, const hdi_alloc_desc *desc, hdi_memory **out_memory, hd_error *error) {
    const bool of_host = desc->use != HD_BUFFER_STORAGE;
    const uint64_t most = device->found.caps.max_allocation_bytes;
    uint64_t bytes;
    if (hdi_loss_known(&device->api.loss)) return hdcu_lost(&device->api, error);
    if (desc->bytes > most || !round_bytes(desc->bytes, &bytes))
        return hdi_fail_native(error, HD_STATUS_LIMIT, device->found.info.backend, 0,
                               "%llu bytes wanted, one allocation has at most %llu", (unsigned long long)desc->bytes,
                               (unsigned long long)most);
    if (desc->host) return borrow(device, desc, out_memory, error);
    hdi_memory *memory = take_spare(device, bytes, of_host);
    if (!memory) return no_memory(device, error);
    if ((!memory->address && !take_new(device, memory, of_host)) || !clear(device, memory)) {
        hd_status status = hdcu_fail(&device->api, error, "a buffer of %llu bytes", (unsigned long long)desc->bytes);
        release(device, memory);
        return status;
    }
    return hdi_inflight_take_memory(&device->inflight, HD_OK, memory, out_memory);
}

void hdcu_memory_give_back(hdi_backend_device *device, hdi_used *used) {
    hdi_memory *memory = HDI_OBJECT(used, hdi_memory, used);
    hdi_link *spares = memory->borrowed ? NULL : spares_of(device, memory->bytes, memory->host != NULL);
    if (spares) hdi_list_add(spares, &used->link);
    else release(device, memory);
}

void hdcu_memory_trim(hdi_backend_device *device) {
    for (uint32_t i = 0; i < 2 * HDCU_SPARE_CLASSES; i++) {
        hdi_link *spares = &device->spares[i / HDCU_SPARE_CLASSES][i % HDCU_SPARE_CLASSES];
        while (!hdi_list_empty(spares)) release(device, HDI_OBJECT(spares->next, hdi_memory, used.link));
    }
}
