/* gguf_check.c: looks at weights for what makes a model answer nonsense without any error: NaN and infinity among
 * elements or block scales, and rows of nothing but zeros. Relies on the block layouts of GGUF; touches only the bytes
 * it is given. */
#include "llm/gguf_inside.h"

/* Where a block keeps numbers that scale all the others: `width` bytes each, of the bits that `exponent` says are all
 * set in NaN and infinity. A type without a row is plain integers, or has scales that are always finite. */
typedef struct floats {
    uint32_t width, count;
    uint32_t at[2];
    uint64_t exponent, size; /* size: all bits but the sign */
} floats;

#define HALVES_AT(count, first, second) { 2, count, { first, second }, 0x7c00, 0x7fff }
static const floats of_type[HDL_GGUF_TYPE_COUNT] = {
    [HDL_GGUF_TYPE_F32]   = { 4, 1, { 0 }, 0x7f800000, 0x7fffffff },
    [HDL_GGUF_TYPE_F16]   = HALVES_AT(1, 0, 0),
    [HDL_GGUF_TYPE_BF16]  = { 2, 1, { 0 }, 0x7f80, 0x7fff },
    [HDL_GGUF_TYPE_F64]   = { 8, 1, { 0 }, UINT64_C(0x7ff0000000000000), UINT64_C(0x7fffffffffffffff) },
    [HDL_GGUF_TYPE_Q4_0]  = HALVES_AT(1, 0, 0),
    [HDL_GGUF_TYPE_Q4_1]  = HALVES_AT(2, 0, 2),
    [HDL_GGUF_TYPE_Q5_0]  = HALVES_AT(1, 0, 0),
    [HDL_GGUF_TYPE_Q5_1]  = HALVES_AT(2, 0, 2),
    [HDL_GGUF_TYPE_Q8_0]  = HALVES_AT(1, 0, 0),
    [HDL_GGUF_TYPE_Q2_K]  = HALVES_AT(2, 80, 82),
    [HDL_GGUF_TYPE_Q3_K]  = HALVES_AT(1, 108, 0),
    [HDL_GGUF_TYPE_Q4_K]  = HALVES_AT(2, 0, 2),
    [HDL_GGUF_TYPE_Q5_K]  = HALVES_AT(2, 0, 2),
    [HDL_GGUF_TYPE_Q6_K]  = HALVES_AT(1, 208, 0),
    [HDL_GGUF_TYPE_TQ1_0] = HALVES_AT(1, 52, 0),
    [HDL_GGUF_TYPE_TQ2_0] = HALVES_AT(1, 64, 0),
    [HDL_GGUF_TYPE_IQ4_NL] = HALVES_AT(1, 0, 0),
    [HDL_GGUF_TYPE_IQ4_XS] = HALVES_AT(1, 0, 0),
    [HDL_GGUF_TYPE_IQ2_XXS] = HALVES_AT(1, 0, 0),
    [HDL_GGUF_TYPE_IQ2_XS] = HALVES_AT(1, 0, 0),
    [HDL_GGUF_TYPE_IQ2_S] = HALVES_AT(1, 0, 0),
    [HDL_GGUF_TYPE_IQ3_XXS] = HALVES_AT(1, 0, 0),
    [HDL_GGUF_TYPE_IQ3_S] = HALVES_AT(1, 0, 0),
    [HDL_GGUF_TYPE_IQ1_S] = HALVES_AT(1, 0, 0),
    /* an f16 in the upper 4 bits of four words */
    [HDL_GGUF_TYPE_IQ1_M] = { 8, 1, { 48 }, UINT64_C(0x7000c00000000000), UINT64_C(0x7000f000f000f000) },
};

static uint64_t load(const uint8_t *at, uint32_t width) {
    uint64_t bits = 0;
    for (uint32_t i = 0; i < width; i++) bits |= (uint64_t)at[i] << (8 * i);
    return bits;
}

/* One row: whether anything in it is not finite, and whether all of it is zero. */
static void look(const floats *f, const uint8_t *row, uint64_t blocks, uint32_t block_bytes, bool *out_bad,
                 bool *out_zero) {
    bool bad = false;
    uint64_t any = 0;
    for (uint64_t b = 0; b < blocks; b++)
        for (uint32_t i = 0; i < f->count; i++) {
            const uint64_t bits = load(row + b * block_bytes + f->at[i], f->width);
            bad |= (bits & f->exponent) == f->exponent;
            any |= bits & f->size;
        }
    *out_bad = bad;
    *out_zero = any == 0;
}

bool hdl_gguf_check_rows(uint32_t type, uint64_t row_elements, const void *data, uint64_t bytes,
                         hdl_gguf_rows *out_rows) {
    const hdl_gguf_type_facts facts = hdl_gguf_type_info(type);
    uint64_t row_bytes;
    *out_rows = (hdl_gguf_rows){ 0 };
    if (!facts.usable || row_elements == 0 || row_elements % facts.block_elements) return false;
    const uint64_t blocks = row_elements / facts.block_elements;
    if (!hdl_mul(blocks, facts.block_bytes, &row_bytes) || bytes % row_bytes) return false;
    out_rows->rows = bytes / row_bytes;
    if (of_type[type].count == 0) return true; /* anything is as good as another */
    const uint8_t *row = data;
    for (uint64_t i = 0; i < out_rows->rows; i++, row += row_bytes) {
        bool bad, zero;
        look(&of_type[type], row, blocks, facts.block_bytes, &bad, &zero);
        if (bad && out_rows->bad_rows++ == 0) out_rows->first_bad = i;
        if (zero && out_rows->zero_rows++ == 0) out_rows->first_zero = i;
    }
    return true;
}
