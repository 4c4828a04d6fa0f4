/* random.c: glsl/random.comp for a CPU. A group makes 4 * WORKGROUP words. */
#include "kernels/cpu/rows.h"
#include "kernels/random.h"

HDCPU_KERNEL(random) {
    (void)group_z;
    const uint32_t *key = call->bindings[0];
    uint32_t *y = call->bindings[1];
    const uint64_t count = call->push[0], workgroup = call->spec[HDI_SPEC_WORKGROUP];
    const uint64_t first = 4 * workgroup * group_number(group_x, group_y), end = HDI_MIN(count, first + 4 * workgroup);
    for (uint64_t i = first; i < end; i += 4) {
        const random_words drawn =
            random_draw(RANDOM_WORDS((uint32_t)(i / 4), call->push[1], key[2], key[3]), key[0], key[1]);
        memcpy(y + i, &drawn, HDI_MIN(end - i, 4) * sizeof *y);
    }
}
