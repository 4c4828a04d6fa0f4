/* buffer.c: the caller's own memory on a device: made, written, read, and bound in place of a plan's. */
#include "run/run.h"

/* ---- making and ending ---- */

/* Up to a multiple of 4, which is what is allocated. */
static uint64_t padded_bytes(const hd_buffer *buffer) { return (buffer->bytes + 3) & ~UINT64_C(3); }

static hd_status check(const hd_device *device, const hd_buffer_desc *desc, hd_error *error) {
    const uint64_t limit = device->found.caps.max_allocation_bytes;
    uint64_t padded;
    if (desc->bytes == 0) return hdi_fail(error, HD_STATUS_ZERO_SIZE, "a buffer of no bytes");
    if ((unsigned)desc->use > HD_BUFFER_READBACK)
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "buffer use %d does not exist", (int)desc->use);
    if (!hdi_pad_u64(desc->bytes, 4, &padded) || (limit && padded > limit))
        return hdi_fail(error, HD_STATUS_LIMIT, "a buffer of %llu bytes; %s allocates at most %llu at once",
                        (unsigned long long)desc->bytes, device->found.info.id, (unsigned long long)limit);
    if (desc->memory && !device->backend->borrows)
        return hdi_fail(error, HD_STATUS_UNSUPPORTED,
                        "%s cannot use the host's memory in place; write the bytes into a buffer",
                        device->found.info.id);
    if ((uintptr_t)desc->memory % 8 != 0)
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "memory for a buffer begins at no multiple of 8");
    return HD_OK;
}

hd_status hdi_buffer_make(hd_device *device, const hd_buffer_desc *desc, hd_buffer **out_buffer, hd_error *error) {
    const hd_allocator *allocator = device->host->allocator;
    hd_status status = check(device, desc, error);
    if (status) return status;
    hd_buffer *buffer = hdi_alloc(allocator, sizeof *buffer);
    if (!buffer) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a buffer");
    buffer->device = device;
    buffer->bytes = desc->bytes;
    buffer->use = desc->use;
    snprintf(buffer->label, sizeof buffer->label, "%s", desc->label ? desc->label : "");
    hdi_list_init(&buffer->slots);
    const hdi_alloc_desc alloc = { padded_bytes(buffer), desc->use, desc->label, desc->memory, HD_MEMORY_BUFFER };
    status = hdi_device_alloc(device, &alloc, &buffer->memory, error);
    if (status) hdi_free(allocator, buffer, sizeof *buffer);
    else *out_buffer = buffer;
    return status;
}

static void unbind(hd_buffer *buffer) {
    hdi_mutex_lock(&buffer->device->lock);
    while (!hdi_list_empty(&buffer->slots)) {
        hdi_core_slot *slot = HDI_OBJECT(buffer->slots.next, hdi_core_slot, bound_link);
        hdi_list_remove(&slot->bound_link);
        slot->bound = NULL;
        slot->bereft = true;
    }
    hdi_mutex_unlock(&buffer->device->lock);
}

void hdi_buffer_end(hd_buffer *buffer) {
    unbind(buffer);
    hdi_device_free(buffer->device, buffer->memory, padded_bytes(buffer));
    hdi_free(buffer->device->host->allocator, buffer, sizeof *buffer);
}

/* ---- bytes in and out ---- */

hd_status hdi_buffer_write(hd_buffer *buffer, uint64_t offset, const void *data, uint64_t bytes, hd_error *error) {
    hd_status status = hdi_buffer_check_range(buffer, NULL, offset, bytes, false, error);
    uint64_t ticket = atomic_load(&buffer->last_ticket);
    if (!status && bytes)
        status = hdi_device_write(buffer->device, buffer->memory, offset, data, bytes, &ticket, error);
    atomic_store(&buffer->last_ticket, ticket);
    return status;
}

hd_status hdi_buffer_read(hd_buffer *buffer, uint64_t offset, void *out_data, uint64_t bytes, hd_error *error) {
    const hd_status status = hdi_buffer_check_range(buffer, NULL, offset, bytes, false, error);
    if (status || bytes == 0) return status;
    return hdi_device_read(buffer->device, buffer->memory, offset, out_data, bytes, atomic_load(&buffer->last_ticket),
                           error);
}

/* ---- as runs use it ---- */

char *hdi_buffer_text(const hd_buffer *buffer, char *out) {
    if (buffer->label[0]) snprintf(out, HDI_BUFFER_TEXT, "buffer \"%s\"", buffer->label);
    else snprintf(out, HDI_BUFFER_TEXT, "a buffer");
    return out;
}

hd_status hdi_buffer_check_use(const hd_buffer *buffer, const char *port, bool in, bool out, hd_error *error) {
    char name[HDI_BUFFER_TEXT];
    if (out && buffer->use == HD_BUFFER_UPLOAD)
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT,
                        "\"%s\": %s is for uploads, and kernels write there; take a storage buffer", port,
                        hdi_buffer_text(buffer, name));
    if (in && buffer->use == HD_BUFFER_READBACK)
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT,
                        "\"%s\": %s is for reading back, and kernels read it; take a storage buffer", port,
                        hdi_buffer_text(buffer, name));
    return HD_OK;
}

hd_status hdi_buffer_check_range(const hd_buffer *buffer, const char *port, uint64_t offset, uint64_t bytes,
                                 bool padded, hd_error *error) {
    const uint64_t has = padded ? padded_bytes(buffer) : buffer->bytes;
    char name[HDI_BUFFER_TEXT];
    uint64_t end;
    if (hdi_add_u64(offset, bytes, &end) && end <= has) return HD_OK;
    return hdi_fail(error, HD_STATUS_LIMIT, "%s%s%sbytes %llu+%llu of %s, which has %llu", port ? "\"" : "",
                    port ? port : "", port ? "\" needs " : "", (unsigned long long)offset, (unsigned long long)bytes,
                    hdi_buffer_text(buffer, name), (unsigned long long)buffer->bytes);
}

/* Under the device's lock: another thread may end the buffer that was bound, while its plan is reset or ended. */
void hdi_core_bind(hdi_core *core, uint32_t slot, hd_buffer *buffer, uint64_t offset) {
    hdi_core_slot *own = &core->slots[slot];
    hdi_mutex_lock(&core->device->lock);
    if (own->bound) hdi_list_remove(&own->bound_link);
    own->bound = buffer;
    own->bound_offset = offset;
    own->bereft = false;
    if (buffer) hdi_list_add(&buffer->slots, &own->bound_link);
    hdi_mutex_unlock(&core->device->lock);
}
