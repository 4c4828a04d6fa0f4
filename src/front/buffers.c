/* buffers.c: the caller's own memory on a device (run/buffer.c). */
#include "front/front.h"

hd_status hd_buffer_create(hd_device *device, const hd_buffer_desc *desc, hd_buffer **out_buffer) {
    if (!HDI_FIND(device)) return HDI_REFUSE(device);
    if (!desc || !out_buffer) return HD_STATUS_NULL_POINTER;
    *out_buffer = NULL;
    hd_context *context = device->context;
    hd_error error = { 0 };
    hd_buffer *buffer = NULL;
    hd_status status = hdi_buffer_make(device, desc, &buffer, &error);
    if (!status && (status = HDI_ADD(context, &context->buffers, buffer, &error))) hdi_buffer_end(buffer);
    if (!status) *out_buffer = buffer->held.handle;
    return hdi_context_done(context, status, &error);
}

void hd_buffer_destroy(hd_buffer *buffer) {
    if (HDI_FIND(buffer) && hdi_held_remove(&buffer->device->context->holder, &buffer->held)) hdi_buffer_end(buffer);
}

hd_status hd_buffer_write(hd_buffer *buffer, uint64_t offset, const void *data, uint64_t bytes) {
    if (!HDI_FIND(buffer)) return HDI_REFUSE(buffer);
    if (!data && bytes) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    return hdi_context_done(buffer->device->context, hdi_buffer_write(buffer, offset, data, bytes, &error), &error);
}

hd_status hd_buffer_read(hd_buffer *buffer, uint64_t offset, void *out_data, uint64_t bytes) {
    if (!HDI_FIND(buffer)) return HDI_REFUSE(buffer);
    if (!out_data && bytes) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    return hdi_context_done(buffer->device->context, hdi_buffer_read(buffer, offset, out_data, bytes, &error), &error);
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
