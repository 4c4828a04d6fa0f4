/* books.h: weights whose codes are entries of a code book (abi.h), as small whole numbers. A code has as many bits as
 * number its book's entries, so whatever a block holds, it leads to one of them. */
#ifndef HDCPU_BOOKS_H
#define HDCPU_BOOKS_H

#include "kernels/abi.h"
#include <stdbool.h>
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
static inline uint64_t hdcpu_word_of_8(const uint8_t *at) {
    return hdcpu_word_of_4(at) | (uint64_t)hdcpu_word_of_4(at + 4) << 32;
}

/* Where the type is known when this is compiled, one case of each function is left. */
#define HDCPU_BOOK_OF static inline __attribute__((always_inline))

/* ---- bytes side by side in a word ---- */

#define HDCPU_BYTES(value) ((value) * UINT64_C(0x0101010101010101))
/* 4 bytes, 8 half bytes: a byte each, with nothing between. */
static inline uint64_t hdcpu_bytes_apart(uint32_t four) {
    const uint64_t two = (four | (uint64_t)four << 16) & UINT64_C(0x0000FFFF0000FFFF);
    return (two | two << 8) & UINT64_C(0x00FF00FF00FF00FF);
}
static inline uint64_t hdcpu_bytes_twice(uint32_t four) {
    const uint64_t apart = hdcpu_bytes_apart(four);
    return apart | apart << 8;
}
static inline uint64_t hdcpu_halves_apart(uint32_t four) {
    const uint64_t apart = hdcpu_bytes_apart(four);
    return (apart | apart << 4) & HDCPU_BYTES(15);
}
/* The lower bytes of four words of 16 bits. */
static inline uint64_t hdcpu_bytes_together(uint64_t words) {
    const uint64_t two = (words | words >> 8) & UINT64_C(0x0000FFFF0000FFFF);
    return (two | two >> 16) & UINT64_C(0xFFFFFFFF);
}
/* Four times 7 bits of each of two words, a byte each. */
static inline uint64_t hdcpu_sevens_apart(uint64_t words) {
    return (words & UINT64_C(0x0000007F0000007F)) | (words & UINT64_C(0x00003F8000003F80)) << 1 |
           (words & UINT64_C(0x001FC000001FC000)) << 2 | (words & UINT64_C(0x0FE000000FE00000)) << 3;
}
/* 7 signs of each byte, and the eighth that makes the negative ones an even number. */
static inline uint64_t hdcpu_even_signs(uint64_t sevens) {
    uint64_t odd = sevens ^ (sevens >> 4 & HDCPU_BYTES(15));
    odd ^= odd >> 2;
    odd ^= odd >> 1;
    return sevens | (odd & HDCPU_BYTES(1)) << 7;
}

/* ---- a block's weights: numbers without signs, and a bit for each ---- */

HDCPU_BOOK_OF uint64_t hdcpu_book_iq3(uint32_t first, uint32_t second) {
    return hdi_book_fours[first - HDI_BOOK_IQ3_XXS] | (uint64_t)hdi_book_fours[second - HDI_BOOK_IQ3_XXS] << 32;
}
/* The numbers of weights 8 * eighth .., in iq1 128 greater. */
HDCPU_BOOK_OF uint64_t hdcpu_book_numbers(uint32_t type, const uint8_t *block, uint32_t eighth) {
    const uint32_t part = eighth >> 2, l = eighth & 3;
    switch (type) {
    case HDI_TYPE_IQ2_XXS: return hdi_book_eights[HDI_BOOK_IQ2_XXS + block[2 + 8 * part + l]];
    case HDI_TYPE_IQ2_XS:
        return hdi_book_eights[HDI_BOOK_IQ2_XS + (hdcpu_word_of_2(block + 2 + 2 * eighth) & 511)];
    case HDI_TYPE_IQ2_S:
        return hdi_book_eights[HDI_BOOK_IQ2_S +
                               (block[2 + eighth] | ((uint32_t)block[66 + part] >> 2 * l & 3) << 8)];
    case HDI_TYPE_IQ3_XXS: {
        const uint8_t *own = block + 2 + 2 * eighth;
        return hdcpu_book_iq3(HDI_BOOK_IQ3_XXS + own[0], HDI_BOOK_IQ3_XXS + own[1]);
    }
    case HDI_TYPE_IQ3_S: {
        const uint8_t *own = block + 2 + 2 * eighth;
        const uint32_t high = (uint32_t)block[66 + part] >> 2 * l;
        const uint32_t first = own[0] | (high & 1) << 8, second = own[1] | (high & 2) << 7;
        return hdcpu_book_iq3(HDI_BOOK_IQ3_S + first, HDI_BOOK_IQ3_S + second);
    }
    case HDI_TYPE_IQ1_S: {
        const uint32_t more = hdcpu_word_of_2(block + 34 + 2 * part) >> 3 * l & 7;
        return hdi_book_eights[HDI_BOOK_IQ3_XXS + (block[2 + eighth] | more << 8)];
    }
    default: { /* iq1_m */
        const uint32_t more = (uint32_t)block[32 + eighth / 2] >> 4 * (eighth & 1) & 7;
        return hdi_book_eights[HDI_BOOK_IQ3_XXS + (block[eighth] | more << 8)];
    }
    }
}
HDCPU_BOOK_OF bool hdcpu_book_has_signs(uint32_t type) { return type != HDI_TYPE_IQ1_S && type != HDI_TYPE_IQ1_M; }
/* A bit for each of the weights 64 * quarter ..: it is negative; in iq1, one less than its number, not one more. */
HDCPU_BOOK_OF uint64_t hdcpu_book_bits(uint32_t type, const uint8_t *block, uint32_t quarter) {
    switch (type) {
    case HDI_TYPE_IQ2_XXS: {
        const uint8_t *own = block + 2 + 16 * quarter;
        const uint64_t words = hdcpu_word_of_4(own + 4) | (uint64_t)hdcpu_word_of_4(own + 12) << 32;
        return hdcpu_even_signs(hdcpu_sevens_apart(words));
    }
    case HDI_TYPE_IQ2_XS: {
        const uint64_t sevens = UINT64_C(0x007F007F007F007F);
        const uint64_t low = hdcpu_word_of_8(block + 2 + 16 * quarter) >> 9 & sevens,
                       high = hdcpu_word_of_8(block + 10 + 16 * quarter) >> 9 & sevens;
        return hdcpu_even_signs(hdcpu_bytes_together(low) | hdcpu_bytes_together(high) << 32);
    }
    case HDI_TYPE_IQ2_S:   return hdcpu_word_of_8(block + 34 + 8 * quarter);
    case HDI_TYPE_IQ3_XXS: return hdcpu_even_signs(hdcpu_sevens_apart(hdcpu_word_of_8(block + 66 + 8 * quarter)));
    case HDI_TYPE_IQ3_S:   return hdcpu_word_of_8(block + 74 + 8 * quarter);
    case HDI_TYPE_IQ1_S:
        return (block[35 + 4 * quarter] >> 7) * UINT64_C(0xFFFFFFFF) |
               (block[37 + 4 * quarter] >> 7) * (UINT64_C(0xFFFFFFFF) << 32);
    default: /* iq1_m */
        return (hdcpu_halves_apart(hdcpu_word_of_4(block + 32 + 4 * quarter)) >> 3 & HDCPU_BYTES(1)) * 255;
    }
}
/* Numbers with their 8 bits: signed bytes. No number of a sign is zero, so no byte overflows. */
HDCPU_BOOK_OF uint64_t hdcpu_book_signed(uint32_t type, uint64_t numbers, uint32_t bits) {
    const uint64_t minus = hdi_book_signs[bits];
    return hdcpu_book_has_signs(type) ? (numbers ^ minus) + (minus & HDCPU_BYTES(1))
                                      : (numbers - HDCPU_BYTES(7) - (minus & HDCPU_BYTES(2))) ^ HDCPU_BYTES(128);
}
/* The whole numbers that scale 16 weights each, all 16 of a block. */
HDCPU_BOOK_OF void hdcpu_book_scales(uint32_t type, const uint8_t *block, uint64_t out_scales[2]) {
    uint64_t of_parts = 0;
    out_scales[0] = out_scales[1] = 0;
    switch (type) {
    case HDI_TYPE_IQ2_XS:
    case HDI_TYPE_IQ2_S:
        for (uint32_t i = 0; i < 2; i++)
            out_scales[i] = hdcpu_halves_apart(hdcpu_word_of_4(block + (type == HDI_TYPE_IQ2_S ? 74 : 66) + 4 * i));
        break;
    case HDI_TYPE_IQ2_XXS:
        for (uint32_t part = 0; part < 8; part++) of_parts |= (uint64_t)(block[9 + 8 * part] >> 4) << 8 * part;
        break;
    case HDI_TYPE_IQ3_XXS:
        for (uint32_t part = 0; part < 8; part++) of_parts |= (uint64_t)(block[69 + 4 * part] >> 4) << 8 * part;
        break;
    case HDI_TYPE_IQ3_S: of_parts = hdcpu_halves_apart(hdcpu_word_of_4(block + 106)); break;
    case HDI_TYPE_IQ1_S:
        for (uint32_t part = 0; part < 8; part++) of_parts |= (uint64_t)(block[35 + 2 * part] >> 4 & 7) << 8 * part;
        break;
    default: /* iq1_m: four times 3 bits of each of four words */
        for (uint32_t i = 0; i < 16; i++)
            out_scales[i / 8] |= (uint64_t)(hdcpu_word_of_2(block + 48 + i / 4 * 2) >> 3 * (i % 4) & 7) << 8 * (i % 8);
    }
    if (of_parts) {
        out_scales[0] = hdcpu_bytes_twice((uint32_t)of_parts);
        out_scales[1] = hdcpu_bytes_twice((uint32_t)(of_parts >> 32));
    }
    for (uint32_t i = 0; i < 2; i++) out_scales[i] += out_scales[i] + HDCPU_BYTES(1);
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
