// books.glsl: weights whose codes are entries of a code book (abi.h), as small whole numbers: packed signed bytes. Blocks are
// read word by word by QUANT_WORD; books[] is the table of all books, and no code leads outside of it.
#ifndef BOOKS_GLSL
#define BOOKS_GLSL

// 2 or 4 bytes from byte `at`, a multiple of 2, on.
uint two_bytes(uint at) { return (QUANT_WORD(at >> 2) >> (8u * (at & 2u))) & 0xFFFFu; }
uint four_bytes(uint at) {
    uint word = QUANT_WORD(at >> 2);
    return (at & 2u) == 0u ? word : (word >> 16) | (QUANT_WORD((at >> 2) + 1u) << 16);
}

uint book_entry(uint at) { return (books[at >> 1] >> (16u * (at & 1u))) & 0xFFFFu; }
// The levels of an entry, each as a byte: of 8 elements, or of 4.
uint spread_twos(uint bits) {
    bits = (bits | (bits << 12)) & 0x000F000Fu;
    return (bits | (bits << 6)) & 0x03030303u;
}
uvec2 levels_of_eight(uint at) {
    uint entry = book_entry(at);
    return uvec2(spread_twos(entry & 0xFFu), spread_twos(entry >> 8));
}
uint levels_of_four(uint at) {
    uint bits = book_entry(at);
    bits = (bits | (bits << 8)) & 0x00FF00FFu;
    return (bits | (bits << 4)) & 0x0F0F0F0Fu;
}
// With bit i of `signs` set, number i is negative. None is zero, so no byte overflows.
uvec2 with_signs(uvec2 numbers, uint signs) {
    uvec2 ones = uvec2(bits_to_bytes(signs), bits_to_bytes(signs >> 4));
    return (numbers ^ (ones * 255u)) + ones;
}
// 7 signs, and the eighth that makes the negative ones an even number.
uint even_signs(uint seven) {
    seven &= 127u;
    uint odd = seven ^ (seven >> 4);
    odd ^= odd >> 2;
    odd ^= odd >> 1;
    return seven | ((odd & 1u) << 7);
}

// Weights 8 * eighth .. of a block.
uvec2 book_iq2(uint type, uint block, uint eighth) {
    uint part = eighth >> 2, l = eighth & 3u, at, signs;
    if (type == HDI_TYPE_IQ2_XXS) {
        uint own = block + 2u + 8u * part;
        at = HDI_BOOK_IQ2_XXS + byte_at(own + l);
        signs = even_signs(four_bytes(own + 4u) >> (7u * l));
    } else if (type == HDI_TYPE_IQ2_XS) {
        uint code = two_bytes(block + 2u + 2u * eighth);
        at = HDI_BOOK_IQ2_XS + (code & 511u);
        signs = even_signs(code >> 9);
    } else {
        at = HDI_BOOK_IQ2_S + (byte_at(block + 2u + eighth) | (((byte_at(block + 66u + part) >> (2u * l)) & 3u) << 8));
        signs = byte_at(block + 34u + eighth);
    }
    uvec2 level = levels_of_eight(at);
    return with_signs(level * 17u + ((level >> 1) & 0x01010101u) + 0x08080808u, signs);
}
uvec2 book_iq3(uint type, uint block, uint eighth) {
    uint part = eighth >> 2, l = eighth & 3u, codes = two_bytes(block + 2u + 2u * eighth), first = codes & 0xFFu, second = codes >> 8;
    if (type == HDI_TYPE_IQ3_XXS) {
        uvec2 level = uvec2(levels_of_four(HDI_BOOK_IQ3_XXS + first), levels_of_four(HDI_BOOK_IQ3_XXS + second));
        uvec2 last = level & (level >> 1) & (level >> 2) & 0x01010101u;
        return with_signs(level * 8u + last * 2u + 0x04040404u, even_signs(four_bytes(block + 66u + 4u * part) >> (7u * l)));
    }
    uint high = byte_at(block + 66u + part) >> (2u * l);
    first |= (high & 1u) << 8;
    second |= (high & 2u) << 7;
    uvec2 level = uvec2(levels_of_four(HDI_BOOK_IQ3_S + first), levels_of_four(HDI_BOOK_IQ3_S + second));
    return with_signs(level * 2u + 0x01010101u, byte_at(block + 74u + eighth));
}
uvec2 book_iq1(uint type, uint block, uint eighth) {
    uint code, is_less;
    if (type == HDI_TYPE_IQ1_S) {
        uint more = two_bytes(block + 34u + 2u * (eighth >> 2));
        code = byte_at(block + 2u + eighth) | (((more >> (3u * (eighth & 3u))) & 7u) << 8);
        is_less = more >> 15;
    } else {
        uint more = byte_at(block + 32u + (eighth >> 1)) >> (4u * (eighth & 1u));
        code = byte_at(block + eighth) | ((more & 7u) << 8);
        is_less = (more >> 3) & 1u;
    }
    uvec2 level = levels_of_eight(HDI_BOOK_IQ1 + code);
    return ((level * 8u | 0x80808080u) - (is_less != 0u ? 0x09090909u : 0x07070707u)) ^ 0x80808080u;
}
uvec2 book_eight(uint type, uint block, uint eighth) {
    if (type == HDI_TYPE_IQ2_XXS || type == HDI_TYPE_IQ2_XS || type == HDI_TYPE_IQ2_S) return book_iq2(type, block, eighth);
    if (type == HDI_TYPE_IQ3_XXS || type == HDI_TYPE_IQ3_S) return book_iq3(type, block, eighth);
    return book_iq1(type, block, eighth);
}

// The whole number that scales weights 16 * sixteenth .. of a block.
int book_scale(uint type, uint block, uint sixteenth) {
    uint part = sixteenth >> 1, h = sixteenth & 1u, code;
    if (type == HDI_TYPE_IQ2_XXS) code = byte_at(block + 9u + 8u * part) >> 4;
    else if (type == HDI_TYPE_IQ2_XS) code = (byte_at(block + 66u + part) >> (4u * h)) & 15u;
    else if (type == HDI_TYPE_IQ2_S) code = (byte_at(block + 74u + part) >> (4u * h)) & 15u;
    else if (type == HDI_TYPE_IQ3_XXS) code = byte_at(block + 69u + 4u * part) >> 4;
    else if (type == HDI_TYPE_IQ3_S) code = (byte_at(block + 106u + (part >> 1)) >> (4u * (part & 1u))) & 15u;
    else if (type == HDI_TYPE_IQ1_S) code = (byte_at(block + 35u + 2u * part) >> 4) & 7u;
    else code = (two_bytes(block + 48u + 2u * (part >> 1)) >> (6u * (part & 1u) + 3u * h)) & 7u;
    return int(2u * code + 1u);
}
// What scales the whole numbers of a block.
float book_d(uint type, uint block) {
    if (type == HDI_TYPE_IQ1_M) {
        uint low = (two_bytes(block + 48u) >> 12) | ((two_bytes(block + 50u) >> 12) << 4);
        uint high = (two_bytes(block + 52u) >> 12) | ((two_bytes(block + 54u) >> 12) << 4);
        return 0.125 * uintBitsToFloat(f16_to_f32_bits(low | (high << 8)));
    }
    return (type == HDI_TYPE_IQ3_S ? 1.0 : type == HDI_TYPE_IQ3_XXS ? 0.25 : 0.125) * half_at(block);
}
#endif
