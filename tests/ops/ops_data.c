/* ops_data.c: random tensors of every type, the same in every run. Values are chosen so that each operation meets those
 * that matter to it, special ones at known places among ordinary ones. */
#include "ops_data.h"
#include "kernels/abi.h"
#include <math.h>

static uint64_t random_state = 1;

void ops_seed(const char *name) { random_state = hdi_hash(HDI_HASH_START, name, strlen(name)) | 1; }
static uint64_t random_bits(void) {
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * UINT64_C(0x2545F4914F6CDD1D) >> 16;
}
uint32_t ops_random(uint32_t below) { return (uint32_t)(random_bits() % below); }
int64_t ops_pick(const int64_t *from, uint32_t count) { return from[ops_random(count)]; }

static double between(double low, double high) { return low + (high - low) * (double)(random_bits() & 0xffffffffu) / 0xffffffffu; }

/* Powers within the type's normal numbers, so that f16 neither overflows nor underflows by the choice of data alone. */
static double special(hd_dtype dtype) {
    const double largest = dtype == HD_F16 ? 65504 : dtype == HD_BF16 ? 0x1.fep127 : 0x1.fffffep127, least = dtype == HD_F16 ? 0x1p-14 : 0x1p-126;
    const double values[] = { 0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, largest, -largest, least, -least, 0.5, -2, 88, -88, 11, 30, -30 };
    return values[ops_random((uint32_t)HDI_COUNT(values))];
}
static double tiny(hd_dtype dtype) {
    const double unit = dtype == HD_F16 ? 0x1p-24 : dtype == HD_BF16 ? 0x1p-133 : 0x1p-149, span = dtype == HD_F16 ? 1023 : dtype == HD_BF16 ? 127 : 8388607;
    const double size = ops_random(4) == 0 ? 1 : floor(between(1, span));
    return (ops_random(2) ? unit : -unit) * size;
}

static double number(hd_dtype dtype, ops_fill fill) {
    switch (fill) {
    case OPS_MIDDLE: return between(-6, 6);
    case OPS_POSITIVE: return between(0.01, 8);
    case OPS_WIDE: return (ops_random(2) ? 1 : -1) * exp2(between(-12, 12));
    case OPS_WHOLE: return (double)ops_random(9) - 4;
    case OPS_SPECIAL: return ops_random(3) ? special(dtype) : between(-3, 3);
    case OPS_TINY: return ops_random(4) ? tiny(dtype) : between(-3, 3);
    default: return between(-1, 1);
    }
}
static double whole(hd_dtype dtype, ops_fill fill) {
    static const int32_t ends[] = { INT32_MIN, INT32_MAX, 0, -1, 1, INT32_MIN + 1, 16777217, -16777217, 65504, 65520, 255, 256 };
    if (dtype == HD_U8) return fill == OPS_BITS ? ops_random(2) : fill == OPS_WHOLE ? ops_random(3) : ops_random(256);
    if (fill == OPS_SPECIAL && ops_random(3)) return ends[ops_random((uint32_t)HDI_COUNT(ends))];
    if (fill == OPS_WIDE || fill == OPS_SPECIAL) return (double)(int32_t)(uint32_t)random_bits();
    return fill == OPS_WHOLE ? (double)ops_random(9) - 4 : (double)ops_random(201) - 100;
}

/* Codes are any bits; scales are of a size that weights have, or special. */
static void fill_block(hd_dtype dtype, ops_fill fill, uint8_t *block) {
    static const uint8_t where[HD_DTYPE_COUNT][2] = {
#define HALVES(code, elements, bytes, scale, less) [code] = { scale, less },
        HDI_BLOCK_LIST(HALVES)
#undef HALVES
    };
    const bool few_codes = dtype == HD_Q4_0 || dtype == HD_Q4_1 || dtype == HD_TQ1_0 || dtype == HD_TQ2_0;
    const double size = few_codes ? 0.1 : dtype == HD_Q8_0 || dtype == HD_Q5_0 || dtype == HD_Q5_1 || dtype == HD_Q2_K ? 0.01 : 0.001;
    for (uint32_t i = 0; i < hdi_dtype(dtype).block_bytes; i++) block[i] = (uint8_t)ops_random(256);
    for (uint32_t i = 0; i < 2; i++)
        if (where[dtype][i] != HDI_NO_HALF) oracle_store(HD_F16, fill == OPS_SPECIAL ? special(HD_F16) : between(-size, size), block + where[dtype][i]);
    if (dtype == HD_IQ1_M) { /* its f16 lies in the upper 4 bits of four words */
        uint8_t half[2];
        oracle_store(HD_F16, fill == OPS_SPECIAL ? special(HD_F16) : between(-size, size), half);
        for (uint32_t i = 0; i < 4; i++) block[49 + 2 * i] = (uint8_t)((block[49 + 2 * i] & 15) | (half[i / 2] >> 4 * (i % 2) & 15) << 4);
    }
    if (dtype == HD_MXFP4 && fill != OPS_SPECIAL) block[0] = (uint8_t)(121 + ops_random(4));
}

void ops_fill_bytes(hd_dtype dtype, hd_shape shape, ops_fill fill, void *out_bytes) {
    const hdi_dtype_facts facts = hdi_dtype(dtype);
    const uint64_t blocks = hd_shape_elements(shape) / facts.block_elements;
    for (uint64_t i = 0; i < blocks; i++) {
        uint8_t *at = (uint8_t *)out_bytes + i * facts.block_bytes;
        if (hdi_dtype_is_quantised(dtype)) fill_block(dtype, fill, at);
        else if (hdi_dtype_is_float(dtype)) oracle_store(dtype, number(dtype, fill), at);
        else oracle_store(dtype, whole(dtype, fill), at);
    }
}
