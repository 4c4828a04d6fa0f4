/* hash.h: the hash kernel's constants, and SHA-256 (FIPS 180-4) in words, for C and for GLSL.
 * Bindings: x as words, y. An invocation gives the digest of a piece of x, 8 words: SHA-256 of its bytes and a mark
 * behind them, which is 0; or, of digests, of theirs, each word's highest byte first, with the mark 1. A digest by
 * itself stays as it is. Push words: [0] bytes of x, [1] pieces, [2] the mark. */
#ifndef HASH_H
#define HASH_H

#define HDI_HASH_PIECE 1024u /* bytes, or 32 digests */

#define HASH_CONSTANTS \
    0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u, 0xab1c5ed5u, \
    0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu, 0x9bdc06a7u, 0xc19bf174u, \
    0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu, 0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau, \
    0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u, 0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u, \
    0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu, 0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u, \
    0xa2bfe8a1u, 0xa81a664bu, 0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u, \
    0x19a4c116u, 0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u, \
    0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u, 0xc67178f2u
#define HASH_BEGINNING \
    0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au, 0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u

#define HASH_TURN(x, by) (((x) >> (by)) | ((x) << (32 - (by))))
#define HASH_WORD_A(x) (HASH_TURN(x, 7) ^ HASH_TURN(x, 18) ^ ((x) >> 3))
#define HASH_WORD_B(x) (HASH_TURN(x, 17) ^ HASH_TURN(x, 19) ^ ((x) >> 10))
#define HASH_STATE_A(x) (HASH_TURN(x, 2) ^ HASH_TURN(x, 13) ^ HASH_TURN(x, 22))
#define HASH_STATE_E(x) (HASH_TURN(x, 6) ^ HASH_TURN(x, 11) ^ HASH_TURN(x, 25))
#define HASH_CHOICE(x, y, z) ((z) ^ ((x) & ((y) ^ (z))))
#define HASH_MOST(x, y, z) (((x) & (y)) | ((z) & ((x) | (y))))

/* Of a message of `bytes` bytes, the mark among them: its blocks, and what word `j` has beside the bytes of the piece:
 * the mark, the bit behind it, and in the last word the length in bits. */
#define HASH_BLOCKS(bytes) (((bytes) + 72u) / 64u)
#define HASH_BYTE(byte, at, j) ((at) >> 2 == (j) ? (byte) << (24u - 8u * ((at) & 3u)) : 0u)
#define HASH_BEHIND(mark, bytes, j) \
    (HASH_BYTE(mark, (bytes) - 1u, j) | HASH_BYTE(0x80u, bytes, j) |                                                   \
     ((j) == 16u * HASH_BLOCKS(bytes) - 1u ? 8u * (bytes) : 0u))
/* Of a word, the first `left` bytes; the first is the highest. */
#define HASH_FIRST(word, left) ((left) >= 4u ? (word) : (word) & ~(0xFFFFFFFFu >> (8u * (left))))

#endif
