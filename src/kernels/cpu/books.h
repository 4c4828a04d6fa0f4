/* books.h: weights whose codes are entries of a code book (abi.h), as small whole numbers. A code has as many bits as
 * number its book's entries, so whatever a block holds, it leads to one of them. */
#ifndef HDCPU_BOOKS_H
#define HDCPU_BOOKS_H

#include "kernels/abi.h"
#include <stdint.h>
#include <string.h>

/* kernels/books.c. Entries of 16 bits of all books; those of 8 numbers as bytes, first iq2's, then iq1's, whose bytes
 * are 128 greater; those of 4 numbers; and for each bit of 8 a byte of ones. */
enum { HDCPU_BOOK_FOURS  = HDI_BOOK_IQ1 - HDI_BOOK_IQ3_XXS,
       HDCPU_BOOK_EIGHTS = HDI_BOOK_ENTRIES - HDCPU_BOOK_FOURS };
extern const uint16_t hdi_books[HDI_BOOK_ENTRIES];
extern const uint64_t hdi_book_eights[HDCPU_BOOK_EIGHTS], hdi_book_signs[256];
extern const uint32_t hdi_book_fours[HDCPU_BOOK_FOURS];

static inline uint32_t hdcpu_word_of_2(const uint8_t *at) { return (uint32_t)(at[0] | at[1] << 8); }
static inline uint32_t hdcpu_word_of_4(const uint8_t *at) {
    return hdcpu_word_of_2(at) | hdcpu_word_of_2(at + 2) << 16;
}

/* With bit i of `signs` set, number i of 8 is negative. None is zero, so no byte overflows. */
static inline uint64_t hdcpu_book_signed(uint64_t numbers, uint32_t signs) {
    const uint64_t minus = hdi_book_signs[signs];
    return (numbers ^ minus) + (minus & UINT64_C(0x0101010101010101));
}
/* 7 signs, and the eighth that makes the negative ones an even number. */
static inline uint32_t hdcpu_even_signs(uint32_t seven) {
    return (seven & 127) | (uint32_t)__builtin_parity(seven & 127) << 7;
}
static inline uint64_t hdcpu_book_iq3(uint32_t first, uint32_t second) {
    return hdi_book_fours[first - HDI_BOOK_IQ3_XXS] | (uint64_t)hdi_book_fours[second - HDI_BOOK_IQ3_XXS] << 32;
}
/* 8 times -1, 0 and 1, and 1 more, or less: bytes that are signed. */
static inline uint64_t hdcpu_book_iq1(uint32_t code, uint32_t is_less) {
    const uint64_t off = is_less ? UINT64_C(0x0909090909090909) : UINT64_C(0x0707070707070707);
    return (hdi_book_eights[HDI_BOOK_IQ3_XXS + code] - off) ^ UINT64_C(0x8080808080808080);
}

/* Weights 8 * eighth .. of a block. Where the type is known when this is compiled, one case of it is left. */
#define HDCPU_BOOK_OF static inline __attribute__((always_inline))
HDCPU_BOOK_OF uint64_t hdcpu_book_eight(uint32_t type, const uint8_t *block, uint32_t eighth) {
    const uint32_t part = eighth >> 2, l = eighth & 3;
    switch (type) {
    case HDI_TYPE_IQ2_XXS: {
        const uint8_t *own = block + 2 + 8 * part;
        return hdcpu_book_signed(hdi_book_eights[HDI_BOOK_IQ2_XXS + own[l]],
                                 hdcpu_even_signs(hdcpu_word_of_4(own + 4) >> 7 * l));
    }
    case HDI_TYPE_IQ2_XS: {
        const uint32_t code = hdcpu_word_of_2(block + 2 + 2 * eighth);
        return hdcpu_book_signed(hdi_book_eights[HDI_BOOK_IQ2_XS + (code & 511)], hdcpu_even_signs(code >> 9));
    }
    case HDI_TYPE_IQ2_S: {
        const uint32_t high = (uint32_t)block[66 + part] >> 2 * l & 3;
        return hdcpu_book_signed(hdi_book_eights[HDI_BOOK_IQ2_S + (block[2 + eighth] | high << 8)], block[34 + eighth]);
    }
    case HDI_TYPE_IQ3_XXS: {
        const uint8_t *own = block + 2 + 2 * eighth;
        return hdcpu_book_signed(hdcpu_book_iq3(HDI_BOOK_IQ3_XXS + own[0], HDI_BOOK_IQ3_XXS + own[1]),
                                 hdcpu_even_signs(hdcpu_word_of_4(block + 66 + 4 * part) >> 7 * l));
    }
    case HDI_TYPE_IQ3_S: {
        const uint8_t *own = block + 2 + 2 * eighth;
        const uint32_t high = (uint32_t)block[66 + part] >> 2 * l;
        const uint32_t first = own[0] | (high & 1) << 8, second = own[1] | (high & 2) << 7;
        return hdcpu_book_signed(hdcpu_book_iq3(HDI_BOOK_IQ3_S + first, HDI_BOOK_IQ3_S + second), block[74 + eighth]);
    }
    case HDI_TYPE_IQ1_S: {
        const uint32_t more = hdcpu_word_of_2(block + 34 + 2 * part);
        return hdcpu_book_iq1(block[2 + eighth] | (more >> 3 * l & 7) << 8, more >> 15);
    }
    default: { /* iq1_m */
        const uint32_t more = (uint32_t)block[32 + eighth / 2] >> 4 * (eighth & 1);
        return hdcpu_book_iq1(block[eighth] | (more & 7) << 8, more >> 3 & 1);
    }
    }
}
/* The whole number that scales weights 16 * sixteenth .. */
HDCPU_BOOK_OF int hdcpu_book_scale(uint32_t type, const uint8_t *block, uint32_t sixteenth) {
    const uint32_t part = sixteenth >> 1, h = sixteenth & 1;
    uint32_t code;
    switch (type) {
    case HDI_TYPE_IQ2_XXS: code = block[2 + 8 * part + 7] >> 4; break;
    case HDI_TYPE_IQ2_XS:  code = block[66 + part] >> 4 * h & 15; break;
    case HDI_TYPE_IQ2_S:   code = block[74 + part] >> 4 * h & 15; break;
    case HDI_TYPE_IQ3_XXS: code = block[66 + 4 * part + 3] >> 4; break;
    case HDI_TYPE_IQ3_S:   code = block[106 + part / 2] >> 4 * (part & 1) & 15; break;
    case HDI_TYPE_IQ1_S:   code = block[34 + 2 * part + 1] >> 4 & 7; break;
    default: /* iq1_m */
        code = hdcpu_word_of_2(block + 48 + 2 * (part / 2)) >> (6 * (part & 1) + 3 * h) & 7;
    }
    return (int)(2 * code + 1);
}
/* The f16 of a block, and what it is taken times. */
static inline uint16_t hdcpu_book_half(uint32_t type, const uint8_t *block) {
    if (type != HDI_TYPE_IQ1_M) return (uint16_t)hdcpu_word_of_2(block);
    return (uint16_t)(block[49] >> 4 | (block[51] >> 4) << 4 | (block[53] >> 4) << 8 | (block[55] >> 4) << 12);
}
static inline float hdcpu_book_unit(uint32_t type) {
    return type == HDI_TYPE_IQ3_S ? 1.0f : type == HDI_TYPE_IQ3_XXS ? 0.25f : 0.125f;
}

#endif
