/* books.h: weights whose codes are entries of a code book (abi.h), as small whole numbers. A code has as many bits as
 * number its book's entries, so whatever a block holds, it leads to one of them. */
#ifndef HDCPU_BOOKS_H
#define HDCPU_BOOKS_H

#include "kernels/abi.h"
#include <stdint.h>
#include <string.h>

extern const uint16_t hdi_books[HDI_BOOK_ENTRIES]; /* kernels/books.c */

static inline uint32_t hdcpu_word_of_2(const uint8_t *at) { return (uint32_t)(at[0] | at[1] << 8); }
static inline uint32_t hdcpu_word_of_4(const uint8_t *at) {
    return hdcpu_word_of_2(at) | hdcpu_word_of_2(at + 2) << 16;
}

/* Fields of 1 bit, or of 2, as a byte each, the lowest one first. */
static inline uint64_t hdcpu_spread_ones(uint64_t bits) {
    bits = (bits | bits << 28) & UINT64_C(0x0000000F0000000F);
    bits = (bits | bits << 14) & UINT64_C(0x0003000300030003);
    return (bits | bits << 7) & UINT64_C(0x0101010101010101);
}
static inline uint64_t hdcpu_spread_twos(uint64_t bits) {
    bits = (bits | bits << 24) & UINT64_C(0x000000FF000000FF);
    bits = (bits | bits << 12) & UINT64_C(0x000F000F000F000F);
    return (bits | bits << 6) & UINT64_C(0x0303030303030303);
}
/* Fields of 4 bits of two entries. */
static inline uint64_t hdcpu_spread_fours(uint64_t bits) {
    bits = (bits | bits << 16) & UINT64_C(0x0000FFFF0000FFFF);
    bits = (bits | bits << 8) & UINT64_C(0x00FF00FF00FF00FF);
    return (bits | bits << 4) & UINT64_C(0x0F0F0F0F0F0F0F0F);
}

/* Eight numbers as bytes, by their entries. */
static inline uint64_t hdcpu_book_iq2(uint32_t entry) {
    const uint64_t level = hdcpu_spread_twos(hdi_books[entry]);
    return level * 17 + (level >> 1 & UINT64_C(0x0101010101010101)) + UINT64_C(0x0808080808080808);
}
static inline uint64_t hdcpu_book_iq3(uint32_t first, uint32_t second) {
    return hdcpu_spread_fours(hdi_books[first] | (uint64_t)hdi_books[second] << 16);
}
static inline uint64_t hdcpu_book_iq3_xxs(uint32_t first, uint32_t second) {
    const uint64_t level = hdcpu_book_iq3(first, second), last = level & level >> 1 & level >> 2;
    return level * 8 + (last & UINT64_C(0x0101010101010101)) * 2 + UINT64_C(0x0404040404040404);
}
static inline uint64_t hdcpu_book_iq3_s(uint32_t first, uint32_t second) {
    return hdcpu_book_iq3(first, second) * 2 + UINT64_C(0x0101010101010101);
}
/* With bit i of `signs` set, number i is negative. None is zero, so no byte overflows. */
static inline uint64_t hdcpu_book_signed(uint64_t numbers, uint32_t signs) {
    const uint64_t ones = hdcpu_spread_ones(signs);
    return (numbers ^ ones * 255) + ones;
}
/* 7 signs, and the eighth that makes the negative ones an even number. */
static inline uint32_t hdcpu_even_signs(uint32_t seven) {
    seven &= 127;
    uint32_t odd = seven ^ seven >> 4;
    odd ^= odd >> 2;
    odd ^= odd >> 1;
    return seven | (odd & 1) << 7;
}
/* 8 times -1, 0 and 1, and 1 more, or less: bytes that are signed. */
static inline uint64_t hdcpu_book_iq1(uint32_t entry, uint32_t is_less) {
    const uint64_t level = hdcpu_spread_twos(hdi_books[HDI_BOOK_IQ1 + entry]), top = UINT64_C(0x8080808080808080);
    return ((level * 8 | top) - UINT64_C(0x0101010101010101) * (is_less ? 9 : 7)) ^ top;
}

/* Weights 8 * eighth .. of a block. */
static inline uint64_t hdcpu_book_eight(uint32_t type, const uint8_t *block, uint32_t eighth) {
    const uint32_t part = eighth >> 2, l = eighth & 3;
    switch (type) {
    case HDI_TYPE_IQ2_XXS: {
        const uint8_t *own = block + 2 + 8 * part;
        return hdcpu_book_signed(hdcpu_book_iq2(HDI_BOOK_IQ2_XXS + own[l]),
                                 hdcpu_even_signs(hdcpu_word_of_4(own + 4) >> 7 * l));
    }
    case HDI_TYPE_IQ2_XS: {
        const uint32_t code = hdcpu_word_of_2(block + 2 + 2 * eighth);
        return hdcpu_book_signed(hdcpu_book_iq2(HDI_BOOK_IQ2_XS + (code & 511)), hdcpu_even_signs(code >> 9));
    }
    case HDI_TYPE_IQ2_S: {
        const uint32_t high = (uint32_t)block[66 + part] >> 2 * l & 3;
        return hdcpu_book_signed(hdcpu_book_iq2(HDI_BOOK_IQ2_S + (block[2 + eighth] | high << 8)), block[34 + eighth]);
    }
    case HDI_TYPE_IQ3_XXS: {
        const uint8_t *own = block + 2 + 2 * eighth;
        return hdcpu_book_signed(hdcpu_book_iq3_xxs(HDI_BOOK_IQ3_XXS + own[0], HDI_BOOK_IQ3_XXS + own[1]),
                                 hdcpu_even_signs(hdcpu_word_of_4(block + 66 + 4 * part) >> 7 * l));
    }
    case HDI_TYPE_IQ3_S: {
        const uint8_t *own = block + 2 + 2 * eighth;
        const uint32_t high = (uint32_t)block[66 + part] >> 2 * l;
        const uint32_t first = own[0] | (high & 1) << 8, second = own[1] | (high & 2) << 7;
        return hdcpu_book_signed(hdcpu_book_iq3_s(HDI_BOOK_IQ3_S + first, HDI_BOOK_IQ3_S + second), block[74 + eighth]);
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
static inline int hdcpu_book_scale(uint32_t type, const uint8_t *block, uint32_t sixteenth) {
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
