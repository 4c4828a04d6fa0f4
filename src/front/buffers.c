/* buffers.c: the caller's own memory on a device. */
#include "front/front.h"

hd_status hd_buffer_create(hd_device *device, const hd_buffer_desc *desc, hd_buffer **out_buffer) {
    if (!HDI_FIND(device)) return HDI_REFUSE(device);
    if (!desc || !out_buffer) return HD_STATUS_NULL_POINTER;
    *out_buffer = NULL;
    hd_context *context = device->context;
    if (desc->bytes == 0) return hdi_context_fail(context, HD_STATUS_ZERO_SIZE, "a buffer of no bytes");
    if ((unsigned)desc->use > HD_BUFFER_READBACK)
        return hdi_context_fail(context, HD_STATUS_INVALID_ARGUMENT, "buffer use %d does not exist", (int)desc->use);
    uint64_t limit = device->found.caps.max_allocation_bytes, padded;
    if (!hdi_pad_u64(desc->bytes, 4, &padded) || (limit && padded > limit))
        return hdi_context_fail(context, HD_STATUS_LIMIT, "a buffer of %llu bytes; %s allocates at most %llu at once",
                                (unsigned long long)desc->bytes, device->found.info.id, (unsigned long long)limit);
    if (desc->memory && !device->found.caps.native_kernels)
        return hdi_context_fail(context, HD_STATUS_UNSUPPORTED,
                                "%s cannot use the host's memory in place; write the bytes into a buffer",
                                device->found.info.id);
    if ((uintptr_t)desc->memory % 8 != 0)
        return hdi_context_fail(context, HD_STATUS_INVALID_ARGUMENT, "memory for a buffer begins at no multiple of 8");
    hd_error error = { 0 };
    hd_buffer *buffer = hdi_alloc(&context->allocator, sizeof *buffer);
    hd_status status = buffer ? HD_OK : hdi_fail(&error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a buffer");
    hdi_alloc_desc alloc = { padded, desc->use, desc->label, desc->memory, HD_MEMORY_BUFFER };
    if (!status) status = hdi_device_alloc(device, &alloc, &buffer->memory, &error);
    if (status) {
        hdi_free(&context->allocator, buffer, sizeof *buffer);
        return hdi_context_keep(context, &error);
    }
    buffer->device = device;
    buffer->bytes = desc->bytes;
    buffer->use = desc->use;
    snprintf(buffer->label, sizeof buffer->label, "%s", desc->label ? desc->label : "");
    hdi_list_init(&buffer->slots);
    status = HDI_ADD(context, &context->buffers, buffer, &error);
    if (status) hdi_buffer_end(buffer);
    else *out_buffer = buffer->held.handle;
    return hdi_context_done(context, status, &error);
}

void hdi_buffer_end(hd_buffer *buffer) {
    hdi_buffer_unbind(buffer);
    hdi_device_free(buffer->device, buffer->memory, (buffer->bytes + 3) & ~UINT64_C(3));
    hdi_free(&buffer->device->context->allocator, buffer, sizeof *buffer);
}

void hd_buffer_destroy(hd_buffer *buffer) {
    if (HDI_FIND(buffer) && hdi_context_remove(buffer->device->context, &buffer->held)) hdi_buffer_end(buffer);
}

hd_status hd_buffer_write(hd_buffer *buffer, uint64_t offset, const void *data, uint64_t bytes) {
    if (!HDI_FIND(buffer)) return HDI_REFUSE(buffer);
    if (!data && bytes) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    hd_status status = hdi_buffer_check_range(buffer, NULL, offset, bytes, false, &error);
    uint64_t ticket = atomic_load(&buffer->last_ticket);
    if (!status && bytes)
        status = hdi_device_write(buffer->device, buffer->memory, offset, data, bytes, &ticket, &error);
    atomic_store(&buffer->last_ticket, ticket);
    return hdi_context_done(buffer->device->context, status, &error);
}

hd_status hd_buffer_read(hd_buffer *buffer, uint64_t offset, void *out_data, uint64_t bytes) {
    if (!HDI_FIND(buffer)) return HDI_REFUSE(buffer);
    if (!out_data && bytes) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    hd_status status = hdi_buffer_check_range(buffer, NULL, offset, bytes, false, &error);
    if (!status && bytes)
        status = hdi_device_read(buffer->device, buffer->memory, offset, out_data, bytes,
                                 atomic_load(&buffer->last_ticket), &error);
    return hdi_context_done(buffer->device->context, status, &error);
}

uint64_t hd_buffer_bytes(const hd_buffer *buffer) { return HDI_FIND(buffer) ? buffer->bytes : 0; }

hd_status hd_buffer_map(hd_buffer *buffer, void **out_pointer) {
    if (!HDI_FIND(buffer)) return HDI_REFUSE(buffer);
    if (!out_pointer) return HD_STATUS_NULL_POINTER;
    char name[HDI_BUFFER_TEXT];
    *out_pointer = hdi_device_map(buffer->device, buffer->memory);
    if (*out_pointer) return HD_OK;
    return hdi_context_fail(buffer->device->context, HD_STATUS_UNSUPPORTED,
                            "the host does not see the memory of %s on %s", hdi_buffer_text(buffer, name),
                            buffer->device->found.info.id);
}
