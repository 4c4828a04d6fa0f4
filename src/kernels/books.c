/* books.c: the tables of all code books, constants of the format (books.inc), and how plans come by them: for a GPU as
 * entries of 16 bits (abi.h), for C as the numbers of an entry, a byte each. */
#include "kernels/books.h"
#include "kernels/cpu/books.h"

#define IQ2(entry) entry,
#define IQ3_XXS(entry) entry,
#define IQ3_S(entry) entry,
#define IQ1(entry) entry,
const uint16_t hdi_books[HDI_BOOK_ENTRIES] = {
#include "kernels/books.inc"
};
#undef IQ2
#undef IQ3_XXS
#undef IQ3_S
#undef IQ1

#define LEVEL(entry, i, bits) ((uint64_t)(entry) >> (bits) * (i) & ((1u << (bits)) - 1))
#define NUMBER_IQ2(entry, i)     (8 + 17 * LEVEL(entry, i, 2) + LEVEL(entry, i, 2) / 2)
#define NUMBER_IQ1(entry, i)     (128 + 8 * LEVEL(entry, i, 2))
#define NUMBER_IQ3_XXS(entry, i) (4 + 8 * LEVEL(entry, i, 4) + LEVEL(entry, i, 4) / 7 * 2)
#define NUMBER_IQ3_S(entry, i)   (1 + 2 * LEVEL(entry, i, 4))
#define FOUR(number, e, i) (number(e, i) | number(e, i + 1) << 8 | number(e, i + 2) << 16 | number(e, i + 3) << 24)

#define IQ2(entry) FOUR(NUMBER_IQ2, entry, 0) | FOUR(NUMBER_IQ2, entry, 4) << 32,
#define IQ3_XXS(entry)
#define IQ3_S(entry)
#define IQ1(entry) FOUR(NUMBER_IQ1, entry, 0) | FOUR(NUMBER_IQ1, entry, 4) << 32,
const uint64_t hdi_book_eights[HDCPU_BOOK_EIGHTS] = {
#include "kernels/books.inc"
};
#undef IQ2
#undef IQ3_XXS
#undef IQ3_S
#undef IQ1

#define IQ2(entry)
#define IQ3_XXS(entry) FOUR(NUMBER_IQ3_XXS, entry, 0),
#define IQ3_S(entry) FOUR(NUMBER_IQ3_S, entry, 0),
#define IQ1(entry)
const uint32_t hdi_book_fours[HDCPU_BOOK_FOURS] = {
#include "kernels/books.inc"
};

#define MINUS(bits, i) ((uint64_t)((bits) >> (i) & 1) * 255 << 8 * (i))
#define SIGNS(bits) MINUS(bits, 0) | MINUS(bits, 1) | MINUS(bits, 2) | MINUS(bits, 3) | MINUS(bits, 4) | \
    MINUS(bits, 5) | MINUS(bits, 6) | MINUS(bits, 7)
#define SIGNS_4(bits) SIGNS(bits), SIGNS((bits) + 1), SIGNS((bits) + 2), SIGNS((bits) + 3)
#define SIGNS_16(bits) SIGNS_4(bits), SIGNS_4((bits) + 4), SIGNS_4((bits) + 8), SIGNS_4((bits) + 12)
#define SIGNS_64(bits) SIGNS_16(bits), SIGNS_16((bits) + 16), SIGNS_16((bits) + 32), SIGNS_16((bits) + 48)
const uint64_t hdi_book_signs[256] = { SIGNS_64(0), SIGNS_64(64), SIGNS_64(128), SIGNS_64(192) };

hd_status hdi_books_operand(const hdi_caps *caps, hd_dtype weights, const hdi_tensor *otherwise,
                            hdi_lowering *lowering, hdi_tensor *out_books, hd_error *error) {
    *out_books = *otherwise;
    if (!HDI_HAS_BOOK((uint32_t)weights) || caps->native_kernels) return HD_OK;
    const uint32_t storage = lowering->constant(lowering->user, hdi_books, sizeof hdi_books);
    if (storage == HDI_NO_INDEX)
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the table of code books");
    *out_books = hdi_tensor_dense(storage, HD_I32, HD_SHAPE(sizeof hdi_books / 4));
    return HD_OK;
}
