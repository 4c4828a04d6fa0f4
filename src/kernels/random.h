/* The random numbers of hd_random: one text, included behind exact.h by C11 and by GLSL (#version 450), same bits from
 * both. Philox4x32-10 (J. Salmon, M. Moraes, R. Dror, D. Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011):
 * four words are a function of a counter of four words and a key of two, so no element waits for another one, and no
 * grid changes one. Element i of a stream is word i % 4 of the counter (i / 4, stream, step's low and high word), with
 * the seed's low and high word as the key. */
#ifndef RANDOM_H
#define RANDOM_H

#ifdef VULKAN
struct random_words { exact_uint a; exact_uint b; exact_uint c; exact_uint d; };
#define RANDOM_WORDS(a, b, c, d) random_words(a, b, c, d)
#else
typedef struct random_words { exact_uint a, b, c, d; } random_words;
#define RANDOM_WORDS(a, b, c, d) ((random_words){ (a), (b), (c), (d) })
#endif

EXACT_FN random_words random_draw(random_words counter, exact_uint low, exact_uint high) {
    random_words w = counter;
    for (exact_uint turn = 0u; turn < 10u; turn++) {
        exact_uint key_low = low + turn * 0x9E3779B9u, key_high = high + turn * 0xBB67AE85u;
        w = RANDOM_WORDS(exact_mulhi(0xCD9E8D57u, w.c) ^ w.b ^ key_low, 0xCD9E8D57u * w.c,
                         exact_mulhi(0xD2511F53u, w.a) ^ w.d ^ key_high, 0xD2511F53u * w.a);
    }
    return w;
}
#endif
