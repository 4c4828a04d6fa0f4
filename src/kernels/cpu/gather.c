/* gather.c: glsl/gather.comp for a CPU. A group makes WORKGROUP words of the result, row segment by row segment. */
#include "kernels/cpu/rows.h"

static uint32_t element_bytes(uint32_t type) {
    return type == HDI_TYPE_U8 ? 1 : type == HDI_TYPE_F16 || type == HDI_TYPE_BF16 ? 2 : 4;
}

/* Elements begin..end of the result, each out of its own row. */
static void take_along(const hdi_cpu_call *call, uint32_t bytes, uint64_t begin, uint64_t end) {
    const uint32_t n = call->push[1], count = call->push[2];
    const uint32_t *indices = call->bindings[1];
    for (uint64_t i = begin; i < end; i++) {
        uint8_t *to = (uint8_t *)call->bindings[3] + i * bytes;
        if (indices[i] < n)
            memcpy(to, (const uint8_t *)call->bindings[0] + (i / count * n + indices[i]) * bytes, bytes);
        else memset(to, 0, bytes);
    }
}

HDCPU_KERNEL(gather) {
    (void)group_z;
    const uint32_t type = call->spec[HDI_GATHER_TYPE], out_type = call->spec[HDI_SPEC_OUT_TYPE];
    const bool all = call->spec[HDI_GATHER_FORM] == HDI_GATHER_ALL;
    const uint32_t rows = call->push[0], n = call->push[1], bytes = element_bytes(out_type);
    const uint32_t *indices = call->bindings[1];
    uint8_t *y = call->bindings[3];
    const bool along = call->spec[HDI_GATHER_FORM] == HDI_GATHER_ALONG;
    const uint64_t count = (uint64_t)(all ? rows : call->push[2]) * (along ? rows : n);
    const uint64_t span = (uint64_t)call->spec[HDI_SPEC_WORKGROUP] * (4 / bytes);
    const uint64_t begin = group_number(group_x, group_y) * span, end = HDI_MIN(count, begin + span);
    if (along) {
        take_along(call, bytes, begin, end);
        return;
    }
    for (uint64_t i = begin; i < end;) {
        const uint64_t at = i / n, column = i % n, width = HDI_MIN(HDI_MIN(end - i, n - column), LANES);
        const uint32_t row = all ? (uint32_t)at : indices[at];
        const uint64_t from = (uint64_t)row * n + column;
        if (row >= rows) memset(y + i * bytes, 0, width * bytes);
        else if (type == out_type)
            memcpy(y + i * bytes, (const uint8_t *)call->bindings[0] + from * bytes, width * bytes);
        else {
            float values[LANES];
            hdcpu_load_floats(type, call->bindings[0], from, width, values);
            store_floats(out_type, y, i, width, values);
        }
        i += width;
    }
}
