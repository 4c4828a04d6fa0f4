/* buffers.c: the caller's own memory on a device (run/buffer.c). */
#include "front/front.h"
#include "kernels/sha256.h"

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

/* ---- digests ---- */

/* The words of the digest of a part that one binding sees. */
static hd_status hash_part(hd_buffer *buffer, uint64_t offset, uint64_t bytes, uint32_t digest[8]) {
    hd_plan *plan = NULL;
    hd_program *p = hd_program_create(buffer->device->context->holder.handle);
    if (!p) return HD_STATUS_OUT_OF_HOST_MEMORY;
    hd_output(p, "digest", hd_hash(p, hd_input(p, "bytes", HD_U8, HD_SHAPE((int64_t)bytes))));
    hd_status status = hd_plan_create(buffer->device->held.handle, p, &(hd_plan_desc){ .alone = 1 }, &plan);
    if (!status) status = hd_plan_bind(plan, "bytes", buffer->held.handle, offset);
    if (!status) status = hd_plan_run(plan, NULL);
    if (!status) status = hd_plan_read(plan, "digest", digest, 8 * sizeof *digest);
    hd_plan_destroy(plan);
    hd_program_destroy(p);
    return status;
}

/* The largest whole tree of pieces, 32 below each digest, that one binding sees. */
static uint64_t part_bytes(const hd_device *device) {
    const uint64_t most = HDI_MIN(device->found.caps.max_binding_bytes, UINT64_C(1) << 30);
    uint64_t bytes = HDI_HASH_PIECE;
    while (32 * bytes <= most) bytes *= 32;
    return bytes;
}

hd_status hd_buffer_hash(hd_buffer *buffer, uint64_t offset, uint64_t bytes, unsigned char *out_digest) {
    if (!HDI_FIND(buffer)) return HDI_REFUSE(buffer);
    if (!out_digest) return HD_STATUS_NULL_POINTER;
    hd_context *context = buffer->device->context;
    hd_error error = { 0 };
    hd_status status = hdi_buffer_check_range(buffer, NULL, offset, bytes, false, &error);
    if (!status && bytes == 0) status = hdi_fail(&error, HD_STATUS_ZERO_SIZE, "a digest of no bytes");
    if (!status && offset % 256)
        status = hdi_fail(&error, HD_STATUS_INVALID_ARGUMENT, "a digest from byte %llu on, no multiple of 256",
                          (unsigned long long)offset);
    if (status) return hdi_context_keep(context, &error);
    const uint64_t part = part_bytes(buffer->device), parts = hdi_divide_up(bytes, part);
    uint32_t *digests = hdi_alloc(&context->allocator, parts * 32);
    if (!digests) return hdi_context_fail(context, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for digests");
    for (uint64_t i = 0; i < parts && !status; i++)
        status = hash_part(buffer, offset + i * part, HDI_MIN(part, bytes - i * part), digests + 8 * i);
    if (!status) sha256_join(digests, parts);
    for (uint32_t i = 0; i < 32 && !status; i++) out_digest[i] = (unsigned char)(digests[i / 4] >> (24 - i % 4 * 8));
    hdi_free(&context->allocator, digests, parts * 32);
    return status;
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
