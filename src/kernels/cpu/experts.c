/* experts.c: rows by the experts that they chose, ahead of the product whose batches are groups of them
 * (matmul_native.h). Rows that chose nobody are zeros of C at once. Rows of a group stand in their order. */
#include "kernels/cpu/matmul.h"

/* Groups of at most `most` rows of each expert, in order; what is left of them has no rows. `next` of an expert
 * becomes where its first row is to stand. */
static void set_groups(uint32_t *groups, uint32_t count, uint32_t *next, uint32_t experts, uint32_t most) {
    uint32_t group = 0, packed = 0, begin = 0;
    for (uint32_t expert = 0; expert < experts; expert++) {
        const uint32_t end = begin + next[expert];
        next[expert] = begin;
        for (; begin < end && group < count; group++) {
            uint32_t *g = groups + group * HDI_GROUP_WORDS;
            g[HDI_GROUP_EXPERT] = expert;
            g[HDI_GROUP_FIRST] = begin;
            g[HDI_GROUP_ROWS] = HDI_MIN(end - begin, most);
            g[HDI_GROUP_PACKED] = packed;
            packed += (g[HDI_GROUP_ROWS] + HDCPU_GROUP_LINES - 1) / HDCPU_GROUP_LINES * HDCPU_GROUP_LINES;
            begin += g[HDI_GROUP_ROWS];
        }
        begin = end;
    }
    memset(groups + group * HDI_GROUP_WORDS, 0, (size_t)(count - group) * HDI_GROUP_WORDS * sizeof *groups);
}

HDCPU_KERNEL(experts) {
    (void)group_y;
    (void)group_z;
    const uint32_t rows = call->push[0], experts = call->push[1], n = call->push[4], count = call->push[3];
    const uint32_t *chosen = call->bindings[0];
    const size_t line_bytes = (size_t)n * (call->spec[HDI_SPEC_OUT_TYPE] == HDI_TYPE_F32 ? 4 : 2);
    uint32_t *groups = call->bindings[1], *in_order = groups + count * HDI_GROUP_WORDS, *next = call->scratch;
    if (group_x > 0) return;
    memset(next, 0, experts * sizeof *next);
    for (uint32_t row = 0; row < rows; row++) {
        if (chosen[row] < experts) next[chosen[row]]++;
        else memset((uint8_t *)call->bindings[2] + row * line_bytes, 0, line_bytes);
    }
    set_groups(groups, count, next, experts, call->push[2]);
    for (uint32_t row = 0; row < rows; row++)
        if (chosen[row] < experts) in_order[next[chosen[row]]++] = row;
}
