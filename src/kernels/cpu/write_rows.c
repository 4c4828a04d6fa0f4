/* write_rows.c: glsl/write_rows.comp for a CPU. A group writes the bytes of WORKGROUP words of the state. */
#include "kernels/cpu/rows.h"

HDCPU_KERNEL(write_rows) {
    (void)group_z;
    const uint32_t type = call->spec[HDI_WRITE_TYPE];
    const uint32_t bytes = type == HDI_TYPE_U8 ? 1 : type == HDI_TYPE_F16 || type == HDI_TYPE_BF16 ? 2 : 4;
    const uint32_t T = call->push[0], S = call->push[1];
    const uint64_t row_bytes = (uint64_t)call->push[2] * bytes;
    const int64_t at = *(const int32_t *)call->bindings[1];
    const uint64_t skip = at < 0 ? (uint64_t)-at : 0, first_row = at < 0 ? 0 : (uint64_t)at;
    if (skip >= T || first_row >= S) return;
    const uint64_t first = first_row * row_bytes, last = first + HDI_MIN(T - skip, S - first_row) * row_bytes;
    const uint64_t span = 4 * (uint64_t)call->spec[HDI_SPEC_WORKGROUP];
    const uint64_t from = (first & ~UINT64_C(3)) + group_number(group_x, group_y) * span;
    const uint64_t begin = HDI_MAX(first, from), end = HDI_MIN(last, from + span);
    if (begin < end)
        memcpy((uint8_t *)call->bindings[2] + begin, (const uint8_t *)call->bindings[0] + skip * row_bytes + (begin - first), end - begin);
}
