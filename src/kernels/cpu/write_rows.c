/* write_rows.c: glsl/write_rows.comp for a CPU. A group writes the bytes of WORKGROUP words of the state, or WORKGROUP
 * blocks of a quantised one. */
#include "kernels/cpu/rows.h"
#include "kernels/reference/quantise.h"

/* f32 to a narrower type as a cast does it: a NaN keeps its sign. */
static void round_elements(uint32_t type, const float *from, uint64_t count, uint16_t *to) {
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t bits = exact_bits(from[i]);
        if (type == HDI_TYPE_F16) to[i] = (uint16_t)(exact_f32_to_f16(from[i]) | (bits >> 16 & 0x8000u));
        else to[i] = (uint16_t)exact_select(exact_is_nan(from[i]), bits >> 16 | 0x40u, exact_f32_to_bf16(from[i]));
    }
}

static void write_blocks(const hdi_cpu_call *call, uint64_t group) {
    const hdi_block_writer write =
        call->spec[HDI_WRITE_TYPE] == HDI_TYPE_Q4_0 ? hdi_quantise_q4_0 : hdi_quantise_q8_0;
    const uint32_t page = call->spec[HDI_WRITE_PAGE], workgroup = call->spec[HDI_SPEC_WORKGROUP];
    const uint64_t S = call->push[2], row_blocks = call->push[3] / HDI_WRITE_BLOCK;
    const uint64_t blocks = call->push[1] * row_blocks;
    const uint64_t groups = hdi_divide_up(blocks, workgroup), batch = group / groups;
    const uint64_t first = group % groups * workgroup;
    if (batch >= call->push[0]) return;
    const int64_t at = ((const int32_t *)call->bindings[1])[batch];
    for (uint64_t block = first; block < HDI_MIN(first + workgroup, blocks); block++) {
        const int64_t row = at + (int64_t)(block / row_blocks);
        if (row < 0 || row >= (int64_t)S) continue;
        uint64_t to = batch * S + (uint64_t)row;
        if (page != 0) {
            const int32_t number = ((const int32_t *)call->bindings[2])[to >> page];
            if (number < 0 || (uint32_t)number >= call->push[4]) continue;
            to = ((uint64_t)number << page) + ((uint64_t)row & ((UINT64_C(1) << page) - 1));
        }
        write((const float *)call->bindings[0] + (batch * blocks + block) * HDI_WRITE_BLOCK,
              (uint8_t *)call->bindings[3] +
              (to * row_blocks + block % row_blocks) * hdcpu_block_bytes(call->spec[HDI_WRITE_TYPE]));
    }
}

HDCPU_KERNEL(write_rows) {
    (void)group_z;
    const uint32_t type = call->spec[HDI_WRITE_TYPE];
    if (hdi_dtype_is_quantised((hd_dtype)type)) {
        write_blocks(call, group_number(group_x, group_y));
        return;
    }
    const uint64_t bytes = type == HDI_TYPE_U8 ? 1 : type == HDI_TYPE_F16 || type == HDI_TYPE_BF16 ? 2 : 4;
    const uint64_t B = call->push[0], T = call->push[1], S = call->push[2], n = call->push[3];
    const uint64_t span = 4 * (uint64_t)call->spec[HDI_SPEC_WORKGROUP]; /* bytes of a group */
    const uint64_t groups = hdi_divide_up(4 * (hdi_divide_up(T * n * bytes, 4) + 1), span);
    const uint64_t batch = group_number(group_x, group_y) / groups, part = group_number(group_x, group_y) % groups;
    if (batch >= B) return;
    const int64_t at = ((const int32_t *)call->bindings[1])[batch];
    const uint64_t skip = at < 0 ? (uint64_t)-at : 0, first_row = at < 0 ? 0 : (uint64_t)at;
    if (skip >= T || first_row >= S) return;
    const uint32_t page = call->spec[HDI_WRITE_PAGE];
    /* of the sequence */
    const uint64_t first = first_row * n * bytes, last = first + HDI_MIN(T - skip, S - first_row) * n * bytes;
    const uint64_t from = (first & ~UINT64_C(3)) + part * span;
    const uint64_t end = HDI_MIN(last, from + span), page_bytes = (page == 0 ? S : UINT64_C(1) << page) * n * bytes;
    /* without pages a sequence is one of its own */
    for (uint64_t begin = HDI_MAX(first, from), next; begin < end; begin = next) {
        /* of the element at `begin` */
        const uint64_t number = begin / page_bytes, source = (batch * T + skip) * n + (begin - first) / bytes;
        const uint64_t in_pool =
            page == 0 ? batch : (uint64_t)(int64_t)((const int32_t *)call->bindings[2])[batch * (S >> page) + number];
        next = HDI_MIN(end, (number + 1) * page_bytes);
        if (page != 0 && in_pool >= call->push[4]) continue;
        uint8_t *to = (uint8_t *)call->bindings[3] + in_pool * page_bytes + begin % page_bytes;
        if (call->spec[HDI_WRITE_ROWS_TYPE] == type)
            memcpy(to, (const uint8_t *)call->bindings[0] + source * bytes, next - begin);
        else
            round_elements(type, (const float *)call->bindings[0] + source, (next - begin) / bytes,
                           (uint16_t *)(void *)to);
    }
}
