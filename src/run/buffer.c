/* buffer.c: the caller's own memory, as runs use it. */
#include "run/run.h"

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
    const uint64_t has = padded ? (buffer->bytes + 3) & ~UINT64_C(3) : buffer->bytes;
    char name[HDI_BUFFER_TEXT];
    uint64_t end;
    if (hdi_add_u64(offset, bytes, &end) && end <= has) return HD_OK;
    return hdi_fail(error, HD_STATUS_LIMIT, "%s%s%sbytes %llu+%llu of %s, which has %llu", port ? "\"" : "",
                    port ? port : "", port ? "\" needs " : "", (unsigned long long)offset, (unsigned long long)bytes,
                    hdi_buffer_text(buffer, name), (unsigned long long)buffer->bytes);
}

void hdi_core_bind(hdi_core_slot *slot, hd_buffer *buffer, uint64_t offset) {
    if (slot->bound) {
        hdi_mutex_lock(&slot->bound->device->lock);
        hdi_list_remove(&slot->bound_link);
        hdi_mutex_unlock(&slot->bound->device->lock);
    }
    slot->bound = buffer;
    slot->bound_offset = offset;
    slot->bereft = false;
    if (!buffer) return;
    hdi_mutex_lock(&buffer->device->lock);
    hdi_list_add(&buffer->slots, &slot->bound_link);
    hdi_mutex_unlock(&buffer->device->lock);
}

void hdi_buffer_unbind(hd_buffer *buffer) {
    hdi_mutex_lock(&buffer->device->lock);
    while (!hdi_list_empty(&buffer->slots)) {
        hdi_core_slot *slot = HDI_OBJECT(buffer->slots.next, hdi_core_slot, bound_link);
        hdi_list_remove(&slot->bound_link);
        slot->bound = NULL;
        slot->bereft = true;
    }
    hdi_mutex_unlock(&buffer->device->lock);
}
