/* hash.c: glsl/hash.comp for a CPU: a group hashes as many pieces as a workgroup has invocations. */
#include "kernels/cpu/rows.h"
#include "kernels/sha256.h"

HDCPU_KERNEL(hash) {
    (void)group_z;
    const uint32_t workgroup = call->spec[HDI_SPEC_WORKGROUP], bytes = call->push[0], pieces = call->push[1];
    const uint64_t first = (uint64_t)workgroup * group_number(group_x, group_y);
    for (uint64_t piece = first; piece < HDI_MIN((uint64_t)pieces, first + workgroup); piece++) {
        const uint64_t at = piece * HDI_HASH_PIECE;
        sha256_piece((const uint32_t *)call->bindings[0] + at / 4, (uint32_t)HDI_MIN(bytes - at, HDI_HASH_PIECE),
                     call->push[2] != 0, (uint32_t *)call->bindings[1] + 8 * piece);
    }
}
