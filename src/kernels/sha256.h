/* sha256.h: the digest of a piece (hash.h), for the reference, the CPU's kernel and digests that the host joins. */
#ifndef HDI_KERNELS_SHA256_H
#define HDI_KERNELS_SHA256_H

#include "kernels/hash.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline void sha256_block(uint32_t state[8], uint32_t w[16]) {
    static const uint32_t constants[64] = { HASH_CONSTANTS };
    uint32_t s[8];
    memcpy(s, state, sizeof s);
    for (uint32_t t = 0; t < 64; t++) {
        if (t >= 16)
            w[t & 15] += HASH_WORD_A(w[(t + 1) & 15]) + w[(t + 9) & 15] + HASH_WORD_B(w[(t + 14) & 15]);
        const uint32_t one = s[7] + HASH_STATE_E(s[4]) + HASH_CHOICE(s[4], s[5], s[6]) + constants[t] + w[t & 15];
        const uint32_t two = HASH_STATE_A(s[0]) + HASH_MOST(s[0], s[1], s[2]);
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += one;
        s[0] = one + two;
    }
    for (uint32_t i = 0; i < 8; i++) state[i] += s[i];
}

/* `count` bytes from x on, up to HDI_HASH_PIECE; or digests, of which one by itself is handed up. */
static inline void sha256_piece(const uint32_t *x, uint32_t count, bool digests, uint32_t y[8]) {
    uint32_t state[8] = { HASH_BEGINNING }, w[16];
    if (digests && count == 32) memcpy(state, x, sizeof state);
    else
        for (uint32_t block = 0; block < HASH_BLOCKS(count + 1); block++) {
            for (uint32_t i = 0; i < 16; i++) {
                const uint32_t j = 16 * block + i, at = 4 * j;
                w[i] = HASH_BEHIND((uint32_t)digests, count + 1, j);
                if (at < count) w[i] |= HASH_FIRST(digests ? x[j] : __builtin_bswap32(x[j]), count - at);
            }
            sha256_block(state, w);
        }
    memcpy(y, state, sizeof state);
}

/* One digest of `count` of them, in their place. */
static inline void sha256_join(uint32_t *digests, uint64_t count) {
    for (; count > 1; count = (count + 31) / 32)
        for (uint64_t i = 0; 32 * i < count; i++)
            sha256_piece(digests + 256 * i, 32 * (uint32_t)(count - 32 * i < 32 ? count - 32 * i : 32), true,
                         digests + 8 * i);
}
#endif
