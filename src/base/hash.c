/* hash.c: FNV-1a. It names structures and cached kernels; it is no defence against a forger. */
#include "base/base.h"

uint64_t hdi_hash(uint64_t hash, const void *bytes, size_t count) {
    const unsigned char *b = bytes;
    for (size_t i = 0; i < count; i++) hash = (hash ^ b[i]) * UINT64_C(0x100000001b3);
    return hash;
}
