/* safetensors_check.h: judges what the reader made of any bytes. Used by test_safetensors.c and by tests/fuzz/fuzz_safetensors.c. */
#ifndef SAFETENSORS_CHECK_H
#define SAFETENSORS_CHECK_H

#include "train/safetensors.h"
#include <string.h>

/* NULL where the bytes were refused, or were accepted and understood: tensors in order, side by side, up to the last byte, each as
 * large as its type and shape say, found by its name; else what is wrong. */
static inline const char *safetensors_wrong(hd_context *context, const uint8_t *bytes, uint64_t count, hd_status *out_status) {
    hd_safetensors *file = hdt_alloc(context, 1, sizeof *file);
    if (!file) return "no memory";
    file->context = context;
    file->map = (hdt_map){ bytes, count };
    *out_status = hdt_safetensors_read(file, "file");
    const char *wrong = NULL;
    const uint8_t *end = bytes + count;
    for (size_t i = *out_status ? 0 : file->count; i-- > 0 && !wrong;) {
        const hd_safetensor *tensor = hd_safetensors_get(file, i);
        const uint8_t *begin = tensor->data;
        if (begin < bytes + 8 || begin + tensor->bytes != end) wrong = "a tensor does not end where the next one begins";
        else if (tensor->dtype && hd_tensor_bytes(tensor->dtype, tensor->shape) != tensor->bytes) wrong = "a tensor has other bytes";
        else if (hd_safetensors_find(file, tensor->name) != tensor) wrong = "a tensor is not found";
        end = begin;
    }
    if (!*out_status && !wrong) {
        uint64_t length = 0;
        for (int i = 8; i-- > 0;) length = length << 8 | bytes[i];
        if (end != bytes + 8 + length) wrong = "the first tensor does not begin behind the header";
    }
    file->map = (hdt_map){ 0 };
    hd_safetensors_close(file);
    return wrong;
}
#endif
