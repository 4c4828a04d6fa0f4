/* oracle.c: float64 references: numbers, element-wise operations, moving, products and tables. See oracle.h. */
#include "oracle.h"
#include "kernels/cpu/books.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

bool oracle_in_float64;

/* ---- numbers ---- */

static void *take(size_t count) {
    void *room = calloc(count ? count : 1, sizeof(double));
    if (room) return room;
    fprintf(stderr, "no memory for the oracle\n");
    exit(1);
}
oracle_tensor oracle_new(hd_dtype dtype, hd_shape shape) {
    const size_t count = hd_shape_elements(shape);
    return (oracle_tensor){ dtype, shape, take(count), { take(count), take(count) } };
}
void oracle_free(oracle_tensor *tensor) {
    free(tensor->value);
    free(tensor->error[0]);
    free(tensor->error[1]);
    *tensor = (oracle_tensor){ 0 };
}

/* Digits after the leading one, and the exponent of the least normal number. */
static void float_format(hd_dtype dtype, int *out_digits, int *out_least) {
    *out_digits = dtype == HD_F16 ? 10 : dtype == HD_BF16 ? 7 : 23;
    *out_least = dtype == HD_F16 ? -14 : -126;
}
double oracle_half_ulp(hd_dtype dtype, double value) {
    int digits, least, exponent = 0;
    if (dtype == HD_I32 || dtype == HD_U8) return 0;
    float_format(dtype, &digits, &least);
    if (isfinite(value) && value != 0) exponent = ilogb(value);
    if (value == 0 || exponent < least) exponent = least;
    return ldexp(0.5, exponent - digits);
}
double oracle_overflow(hd_dtype dtype) {
    return dtype == HD_F16 ? 65520 : dtype == HD_BF16 ? 0x1.ffp127 : dtype == HD_I32 || dtype == HD_U8 ? INFINITY : 0x1.ffffffp127;
}
double oracle_round(hd_dtype dtype, double value) {
    if (dtype == HD_I32) return isnan(value) ? 0 : value < -2147483648.0 ? -2147483648.0 : value > 2147483647.0 ? 2147483647.0 : trunc(value);
    if (dtype == HD_U8) return isnan(value) || value < 0 ? 0 : value > 255 ? 255 : trunc(value);
    if (!isfinite(value) || value == 0) return value;
    if (fabs(value) >= oracle_overflow(dtype)) return copysign(INFINITY, value);
    const double unit = 2 * oracle_half_ulp(dtype, value);
    return copysign(nearbyint(fabs(value) / unit) * unit, value); /* powers of two: exact */
}

double oracle_load(hd_dtype dtype, const void *bytes) {
    uint16_t half;
    if (dtype == HD_F32) { float f; memcpy(&f, bytes, 4); return (double)f; }
    if (dtype == HD_I32) { int32_t i; memcpy(&i, bytes, 4); return i; }
    if (dtype == HD_U8) return *(const uint8_t *)bytes;
    memcpy(&half, bytes, 2);
    const int fraction_bits = dtype == HD_F16 ? 10 : 7, bias = dtype == HD_F16 ? 15 : 127;
    const int exponent = (half & 0x7fff) >> fraction_bits, fraction = half & ((1 << fraction_bits) - 1);
    double size = exponent == 0 ? ldexp(fraction, 1 - bias - fraction_bits) : ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
    if (exponent == 2 * bias + 1) size = fraction ? (double)NAN : (double)INFINITY;
    return half & 0x8000 ? -size : size;
}
void oracle_store(hd_dtype dtype, double value, void *out_bytes) {
    const double rounded = oracle_round(dtype, value);
    const int fraction_bits = dtype == HD_F16 ? 10 : 7, bias = dtype == HD_F16 ? 15 : 127;
    if (dtype == HD_F32) { const float f = (float)rounded; memcpy(out_bytes, &f, 4); return; }
    if (dtype == HD_I32) { const int32_t i = (int32_t)rounded; memcpy(out_bytes, &i, 4); return; }
    if (dtype == HD_U8) { *(uint8_t *)out_bytes = (uint8_t)rounded; return; }
    uint32_t bits;
    const double size = fabs(rounded);
    if (isnan(rounded)) bits = ((2u * (uint32_t)bias + 1u) << fraction_bits) | 1u << (fraction_bits - 1);
    else if (isinf(rounded)) bits = (2u * (uint32_t)bias + 1u) << fraction_bits;
    else if (size < ldexp(1, 1 - bias)) bits = (uint32_t)ldexp(size, bias - 1 + fraction_bits);
    else bits = (uint32_t)ldexp(size, fraction_bits - ilogb(size)) + ((uint32_t)(ilogb(size) + bias - 1) << fraction_bits);
    const uint16_t half = (uint16_t)(bits | (signbit(rounded) ? 0x8000u : 0u));
    memcpy(out_bytes, &half, 2);
}

/* One element of a quantised block, by GGUF's definition. First the fifth bit of a code of q5_0 or q5_1, then code i of a
 * block whose bytes hold a code of `bits` bits from each of several groups of `group` neighbours. */
static int bit_of(const uint8_t *bits, uint32_t i) { return bits[i / 8] >> (i % 8) & 1; }
static int code_of(const uint8_t *codes, uint32_t i, uint32_t bits, uint32_t group) {
    const uint32_t in_byte = 8 / bits, run = group * in_byte;
    return codes[i / run * group + i % group] >> (i % run / group * bits) & ((1 << bits) - 1);
}
static int iq4_number(int code) {
    static const int numbers[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };
    return numbers[code];
}
/* `count` bits of a block from bit `first` on. */
static uint32_t bits_of(const uint8_t *b, uint32_t first, uint32_t count) {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < count; i++) bits |= (uint32_t)bit_of(b, first + i) << i;
    return bits;
}
static double book_number(hd_dtype dtype, uint32_t code, uint32_t i) {
    static const int iq2[] = { 8, 25, 43 }, iq3_xxs[] = { 4, 12, 20, 28, 36, 44, 52, 62 };
    const uint32_t two = i % 8 * 2, four = i % 4 * 4;
    switch (dtype) {
    case HD_IQ2_XXS: return iq2[hdi_books[HDI_BOOK_IQ2_XXS + code] >> two & 3] / 8.0;
    case HD_IQ2_XS:  return iq2[hdi_books[HDI_BOOK_IQ2_XS + code] >> two & 3] / 8.0;
    case HD_IQ2_S:   return iq2[hdi_books[HDI_BOOK_IQ2_S + code] >> two & 3] / 8.0;
    case HD_IQ3_XXS: return iq3_xxs[hdi_books[HDI_BOOK_IQ3_XXS + code] >> four & 15] / 4.0;
    case HD_IQ3_S:   return 2 * (hdi_books[HDI_BOOK_IQ3_S + code] >> four & 15) + 1;
    default:         return (hdi_books[HDI_BOOK_IQ1 + code] >> two & 3) - 1.0;
    }
}
/* Of types with a code book: the code of its group, with signs of 8 neighbours (7 bits: the eighth makes their number even) or in
 * iq1 an eighth more or less, and the scale of its part. */
static double book_element(hd_dtype dtype, const uint8_t *b, uint32_t i) {
    const uint32_t l = i % 32 / 8, part = i / 32, word = 8 * 66 + 32 * part;
    uint32_t code = 0, signs = 0, is_seven = 0, scale = 0, is_less = 0;
    uint8_t d[2] = { b[0], b[1] };
    switch (dtype) {
    case HD_IQ2_XXS:
        code = b[2 + 8 * part + l];
        signs = bits_of(b, 48 + 64 * part + 7 * l, 7), is_seven = 1;
        scale = bits_of(b, 76 + 64 * part, 4);
        break;
    case HD_IQ2_XS:
        code = bits_of(b, 16 + 16 * (i / 8), 9);
        signs = bits_of(b, 25 + 16 * (i / 8), 7), is_seven = 1;
        scale = bits_of(b, 8 * 66 + 4 * (i / 16), 4);
        break;
    case HD_IQ2_S:
        code = b[2 + i / 8] + 256 * bits_of(b, 8 * 66 + 2 * (i / 8), 2);
        signs = b[34 + i / 8];
        scale = bits_of(b, 8 * 74 + 4 * (i / 16), 4);
        break;
    case HD_IQ3_XXS:
        code = b[2 + i / 4];
        signs = bits_of(b, word + 7 * l, 7), is_seven = 1;
        scale = bits_of(b, word + 28, 4);
        break;
    case HD_IQ3_S:
        code = b[2 + i / 4] + 256 * bits_of(b, 8 * 66 + i / 4, 1);
        signs = b[74 + i / 8];
        scale = bits_of(b, 8 * 106 + 4 * part, 4);
        break;
    case HD_IQ1_S:
        code = b[2 + i / 8] + 256 * bits_of(b, 8 * 34 + 16 * part + 3 * l, 3);
        scale = bits_of(b, 8 * 34 + 16 * part + 12, 3);
        is_less = bits_of(b, 8 * 34 + 16 * part + 15, 1);
        break;
    default: /* iq1_m */
        code = b[i / 8] + 256 * bits_of(b, 8 * 32 + 4 * (i / 8), 3);
        scale = bits_of(b, 8 * 48 + 16 * (i / 64) + 3 * (i % 64 / 16), 3);
        is_less = bits_of(b, 8 * 32 + 4 * (i / 8) + 3, 1);
        for (uint32_t k = 0; k < 2; k++) d[k] = (uint8_t)(b[49 + 4 * k] / 16 + b[51 + 4 * k] / 16 * 16);
    }
    uint32_t minus = 0;
    for (uint32_t k = 0; k < 7; k++) minus ^= signs >> k & 1;
    const bool is_minus = is_seven && i % 8 == 7 ? minus : signs >> i % 8 & 1;
    double number = book_number(dtype, code, i);
    if (dtype == HD_IQ1_S || dtype == HD_IQ1_M) number += is_less ? -0.125 : 0.125;
    return oracle_load(HD_F16, d) * (2 * scale + 1) * (is_minus ? -number : number);
}
static double block_element(hd_dtype dtype, const uint8_t *b, uint32_t i) {
    switch (dtype) {
    case HD_Q4_0: return oracle_load(HD_F16, b) * (((i < 16 ? b[2 + i] : b[2 + i - 16] >> 4) & 15) - 8);
    case HD_Q8_0: return oracle_load(HD_F16, b) * (int8_t)b[2 + i];
    case HD_Q4_K: {
        const uint32_t part = i / 32; /* 8 parts of 32, scales and mins of 6 bits each in 12 bytes */
        const uint8_t *s = b + 4, code = (uint8_t)(b[16 + i / 64 * 32 + i % 32] >> (part % 2 * 4) & 15);
        const int scale = part < 4 ? s[part] & 63 : (s[part + 4] & 15) + (s[part - 4] >> 6) * 16;
        const int min = part < 4 ? s[part + 4] & 63 : (s[part + 4] >> 4) + (s[part] >> 6) * 16;
        return oracle_load(HD_F16, b) * scale * code - oracle_load(HD_F16, b + 2) * min;
    }
    case HD_Q6_K: {
        const uint32_t half = i / 128, quarter = i % 128 / 32, l = i % 32; /* ql 128, qh 64, scales 16, d */
        const int low = b[half * 64 + (quarter & 1) * 32 + l] >> (quarter >= 2 ? 4 : 0) & 15;
        const int high = b[128 + half * 32 + l] >> (2 * quarter) & 3;
        return oracle_load(HD_F16, b + 208) * (int8_t)b[192 + i / 16] * (low + high * 16 - 32);
    }
    case HD_Q4_1: return oracle_load(HD_F16, b) * code_of(b + 4, i, 4, 16) + oracle_load(HD_F16, b + 2);
    case HD_Q5_0: return oracle_load(HD_F16, b) * (code_of(b + 6, i, 4, 16) + 16 * bit_of(b + 2, i) - 16);
    case HD_Q5_1: return oracle_load(HD_F16, b) * (code_of(b + 8, i, 4, 16) + 16 * bit_of(b + 4, i)) + oracle_load(HD_F16, b + 2);
    case HD_Q2_K: /* 16 parts of 16, a byte of scale and min each, codes, d, dmin */
        return oracle_load(HD_F16, b + 80) * (b[i / 16] % 16) * code_of(b + 16, i, 2, 32) - oracle_load(HD_F16, b + 82) * (b[i / 16] / 16);
    case HD_Q3_K: { /* high bits, low bits, 16 scales of 6 bits in 12 bytes: 4 low bits in 8 bytes, 2 high bits in 4 */
        const int scale = code_of(b + 96, i / 16, 4, 8) + 16 * code_of(b + 104, i / 16, 2, 4) - 32;
        return oracle_load(HD_F16, b + 108) * scale * (code_of(b + 32, i, 2, 32) + 4 * code_of(b, i, 1, 32) - 4);
    }
    case HD_Q5_K: {
        const uint32_t part = i / 32;
        const uint8_t *s = b + 4;
        const int scale = part < 4 ? s[part] & 63 : (s[part + 4] & 15) + (s[part - 4] >> 6) * 16;
        const int min = part < 4 ? s[part + 4] & 63 : (s[part + 4] >> 4) + (s[part] >> 6) * 16;
        return oracle_load(HD_F16, b) * scale * (code_of(b + 48, i, 4, 32) + 16 * code_of(b + 16, i, 1, 32)) - oracle_load(HD_F16, b + 2) * min;
    }
    case HD_TQ1_0: { /* 5 codes a byte in 32 and in 16 bytes, 4 in the last 4: digits of the fraction byte / 256 in base 3 */
        const uint32_t run = i < 160 ? 32 : i < 240 ? 16 : 4, first = i < 160 ? 0 : i < 240 ? 160 : 240;
        double fraction = b[(i < 160 ? 0 : i < 240 ? 32 : 48) + (i - first) % run] / 256.0;
        for (uint32_t digit = 0; digit < (i - first) / run; digit++) fraction = fraction * 3 - floor(fraction * 3);
        return oracle_load(HD_F16, b + 52) * (floor(fraction * 3) - 1);
    }
    case HD_IQ4_NL: return oracle_load(HD_F16, b) * iq4_number(code_of(b + 2, i, 4, 16));
    case HD_IQ4_XS: { /* d, 8 scales of 6 bits: two words of high bits, 4 bytes of low ones; codes */
        const int scale = code_of(b + 4, i / 32, 4, 1) + 16 * code_of(b + 2, i / 32, 2, 1) - 32;
        return oracle_load(HD_F16, b) * scale * iq4_number(code_of(b + 8, i, 4, 16));
    }
    case HD_MXFP4: { /* a power of two, codes of a sign, two bits of exponent and one of fraction */
        const int code = code_of(b + 1, i, 4, 16), exponent = code >> 1 & 3;
        const double size = exponent ? ldexp(2 + (code & 1), exponent - 2) : (code & 1) * 0.5;
        return ldexp(code & 8 ? -size : size, b[0] - 127);
    }
    case HD_TQ2_0: return oracle_load(HD_F16, b + 64) * ((b[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3) - 1);
    default: return book_element(dtype, b, i);
    }
}
void oracle_unpack(const void *bytes, oracle_tensor *out) {
    const uint64_t count = hd_shape_elements(out->shape), size = hdi_dtype(out->dtype).block_elements;
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *block = (const uint8_t *)bytes + i / size * hdi_dtype(out->dtype).block_bytes;
        if (size == 1) out->value[i] = oracle_load(out->dtype, block);
        else out->value[i] = oracle_round(HD_F32, block_element(out->dtype, block, (uint32_t)(i % size)));
    }
}

void oracle_set(oracle_tensor *out, uint64_t at, double value, double fast, double exact) {
    const double round = out->dtype == HD_F32 ? 0 : oracle_half_ulp(out->dtype, value);
    out->value[at] = value;
    out->error[ORACLE_FAST][at] = out->error[ORACLE_EXACT][at] = 0;
    if (!isfinite(value)) return;
    out->error[ORACLE_FAST][at] = fast + round + 0x1p-126; /* a device may take subnormals for 0 */
    out->error[ORACLE_EXACT][at] = exact + round;
}

/* ---- element by element ---- */

/* Where the i-th element of a tensor of shape `to` comes from in one of shape `from`, which is broadcast to it. */
static uint64_t source_of(hd_shape from, hd_shape to, uint64_t i) {
    uint64_t index[HD_MAX_RANK] = { 0 }, at = 0;
    for (uint32_t axis = to.rank; axis-- > 0; i /= (uint64_t)to.dims[axis]) index[axis] = i % (uint64_t)to.dims[axis];
    for (uint32_t axis = 0; axis < from.rank; axis++)
        at = at * (uint64_t)from.dims[axis] + (from.dims[axis] == 1 ? 0 : index[axis + to.rank - from.rank]);
    return at;
}

static double erf_part(double x) { return x < 0 ? 0.5 * erfc(-x / sqrt(2.0)) : 1 - 0.5 * erfc(x / sqrt(2.0)); }

/* The formulas; x and y are exact values of the operands. Integers are exact in float64 but for products. */
static double formula(const hdi_node *node, double x, double y) {
    const double k = (double)node->attrs.floats[0], l = (double)node->attrs.floats[1];
    switch (node->op) {
    case HDI_OP_ADD: return x + y;
    case HDI_OP_SUB: return x - y;
    case HDI_OP_MUL: return x * y;
    case HDI_OP_DIV: return x / y;
    case HDI_OP_LESS: return x < y;
    case HDI_OP_EQUAL: return x == y;
    case HDI_OP_SCALE: return x * k + l;
    case HDI_OP_NEG: return -x;
    case HDI_OP_ABS: return fabs(x);
    case HDI_OP_SIGN: return (x > 0) - (x < 0) + (isnan(x) ? x : 0);
    case HDI_OP_ROUND: return nearbyint(x);
    case HDI_OP_FLOOR: return floor(x);
    case HDI_OP_MAXIMUM: return isnan(x) || isnan(y) ? (double)NAN : x < y ? y : x;
    case HDI_OP_MINIMUM: return isnan(x) || isnan(y) ? (double)NAN : y < x ? y : x;
    case HDI_OP_SQRT: return sqrt(x);
    case HDI_OP_EXP: return exp(x);
    case HDI_OP_LOG: return log(x);
    case HDI_OP_SIN: return sin(x);
    case HDI_OP_COS: return cos(x);
    case HDI_OP_RELU: return x < 0 ? 0 : x;
    case HDI_OP_LEAKY_RELU: return x > 0 ? x : x == 0 ? 0 : k * x;
    case HDI_OP_ELU: return x > 0 ? x : x == 0 ? 0 : k * expm1(x);
    case HDI_OP_SIGMOID: return 1 / (1 + exp(-x));
    case HDI_OP_TANH: return tanh(x);
    case HDI_OP_SILU: return x == -INFINITY ? 0 : x / (1 + exp(-x));
    case HDI_OP_GELU: return x == -INFINITY ? 0 : x * erf_part(x);
    case HDI_OP_GELU_TANH: return x == -INFINITY ? 0 : x / (1 + exp(-2 * sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case HDI_OP_GELU_TANH_GRADIENT: {
        const double c = sqrt(2 / acos(-1.0)), t = tanh(c * (x + 0.044715 * x * x * x)), steep = 1 / cosh(c * (x + 0.044715 * x * x * x));
        return y * (0.5 * (1 + t) + 0.5 * x * steep * steep * c * (1 + 3 * 0.044715 * x * x));
    }
    case HDI_OP_ERF: return erf(x);
    case HDI_OP_CLIP: return x < k ? k : x > l ? l : x;
    default: return x; /* copy, and cast before it is rounded */
    }
}

/* Bounds in f32, fast and exact, by op_table.inc and by exact.h. False: the result is exact. */
static bool bounds(const hdi_node *node, double x, double y, double w, double *fast, double *exact) {
    const double ulp = oracle_ulp(w), k = fabs((double)node->attrs.floats[0]), wide = 0x1p-20;
    switch (node->op) {
    case HDI_OP_ADD: case HDI_OP_SUB: case HDI_OP_MUL: *fast = ulp; *exact = 0.5 * ulp; return true;
    case HDI_OP_DIV: *fast = 3 * ulp; *exact = 0.5 * ulp; return true;
    case HDI_OP_SCALE: {
        const double product = fabs(x) * k, bias = fabs((double)node->attrs.floats[1]);
        *fast = 2 * oracle_ulp(fmax(product, bias));
        *exact = 0.5 * oracle_ulp(product) + 0.5 * ulp;
        return true;
    }
    case HDI_OP_SQRT: *fast = 3 * ulp; *exact = 0.5 * ulp; return true;
    case HDI_OP_EXP: *fast = (3 + 2 * fabs(x)) * ulp; *exact = ulp; return true;
    case HDI_OP_LOG: *fast = fmax(4 * ulp, x > 0.5 && x < 2 ? 0x1p-21 : 0); *exact = ulp; return true;
    case HDI_OP_SIN: case HDI_OP_COS: *fast = 0x1p-11; *exact = ulp; return true;
    case HDI_OP_LEAKY_RELU: *fast = ulp; *exact = 0.5 * ulp; return x < 0;
    case HDI_OP_ELU: *fast = 0x1p-21 * k + ulp; *exact = 2.2 * ulp; return x < 0;
    case HDI_OP_SIGMOID: *fast = wide * fabs(w); *exact = ulp; return true;
    case HDI_OP_TANH: *fast = wide; *exact = 1.5 * ulp; return true;
    case HDI_OP_SILU: *fast = wide * fabs(w); *exact = 1.6 * ulp; return true;
    case HDI_OP_GELU: *fast = wide * fabs(x); *exact = 2.1 * ulp; return true;
    case HDI_OP_GELU_TANH: *fast = wide * fabs(x); *exact = 1.6 * ulp; return true;
    case HDI_OP_GELU_TANH_GRADIENT: {
        const double size = fabs(y) * (1 + fabs(x) + fabs(x * x * x) / 8);
        *fast = wide * size;
        *exact = 6 * ORACLE_U * size;
        return true;
    }
    case HDI_OP_ERF: *fast = 4 * ulp; *exact = 1.5 * ulp; return true;
    default: return false;
    }
}

/* How much the result moves when its operands move by their errors. */
static double carried(const hdi_node *node, double x, double y, double x_error, double y_error) {
    const bool whole = node->dtype == HD_I32 || node->dtype == HD_U8;
    double most = 0;
    if (x_error == 0 && y_error == 0) return 0;
    for (int i = -1; i <= 1; i++)
        for (int j = -1; j <= 1; j++) {
            const double moved = formula(node, x + i * x_error, y + j * y_error), w = formula(node, x, y);
            most = fmax(most, whole ? fabs(oracle_round(node->dtype, moved) - oracle_round(node->dtype, w)) : fabs(moved - w));
        }
    return isfinite(most) ? most : (double)INFINITY;
}

static void elementwise(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out) {
    const uint64_t count = hd_shape_elements(out->shape);
    const oracle_tensor *a = operands[0], *b = node->operand_count > 1 ? operands[1] : NULL;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t at = source_of(a->shape, out->shape, i), bt = b ? source_of(b->shape, out->shape, i) : 0;
        const double x = a->value[at], y = b ? b->value[bt] : 0, w = formula(node, x, y);
        double fast = 0, exact = 0;
        const bool doubtful = a->error[ORACLE_FAST][at] > 0 || (b && b->error[ORACLE_FAST][bt] > 0);
        if (bounds(node, x, y, w, &fast, &exact)) oracle_set(out, i, w, fast, exact);
        else out->value[i] = oracle_in_float64 && hdi_dtype_is_float(out->dtype) ? w : oracle_round(out->dtype, w);
        if (doubtful && hdi_dtype_is_float(out->dtype)) oracle_set(out, i, w, fast, exact); /* its rounding is in doubt too */
        for (int mode = 0; mode < ORACLE_MODES; mode++)
            out->error[mode][i] += carried(node, x, y, a->error[mode][at], b ? b->error[mode][bt] : 0);
    }
}

/* i32: sums and products wrap; towards zero, and x / 0 is 0. Clip's ends are cut to whole numbers. */
static void whole_numbers(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out) {
    const uint64_t count = hd_shape_elements(out->shape);
    const int64_t low = (int64_t)oracle_round(HD_I32, (double)node->attrs.floats[0]), high = (int64_t)oracle_round(HD_I32, (double)node->attrs.floats[1]);
    for (uint64_t i = 0; i < count; i++) {
        const int64_t x = (int64_t)operands[0]->value[source_of(operands[0]->shape, out->shape, i)];
        const int64_t y = node->operand_count > 1 ? (int64_t)operands[1]->value[source_of(operands[1]->shape, out->shape, i)] : 0;
        int64_t w = x;
        switch (node->op) {
        case HDI_OP_ADD: w = x + y; break;
        case HDI_OP_SUB: w = x - y; break;
        case HDI_OP_MUL: w = x * y; break;
        case HDI_OP_DIV: w = y == 0 ? 0 : x / y; break;
        case HDI_OP_NEG: w = -x; break;
        case HDI_OP_ABS: w = x < 0 ? -x : x; break;
        case HDI_OP_RELU: w = x < 0 ? 0 : x; break;
        case HDI_OP_SIGN: w = (x > 0) - (x < 0); break;
        case HDI_OP_MAXIMUM: w = x < y ? y : x; break;
        case HDI_OP_MINIMUM: w = x < y ? x : y; break;
        case HDI_OP_BIT_AND: w = x & y; break;
        case HDI_OP_BIT_OR: w = x | y; break;
        case HDI_OP_BIT_XOR: w = x ^ y; break;
        case HDI_OP_SHIFT_LEFT: w = y < 0 || y > 31 ? 0 : x * (INT64_C(1) << y); break;
        case HDI_OP_SHIFT_RIGHT_LOGICAL: w = y < 0 || y > 31 ? 0 : (x & 0xffffffff) / (INT64_C(1) << y); break;
        case HDI_OP_SHIFT_RIGHT_ARITHMETIC: w = (int64_t)floor((double)x / exp2(y < 0 || y > 31 ? 31 : (double)y)); break;
        case HDI_OP_CLIP: w = x < low ? low : x > high ? high : x; break;
        default: break;
        }
        w = (int64_t)((uint64_t)w & (out->dtype == HD_U8 ? 0xffu : 0xffffffffu));
        out->value[i] = (double)(w >= INT64_C(0x80000000) ? w - INT64_C(0x100000000) : w);
        for (int mode = 0; mode < ORACLE_MODES; mode++)
            for (uint32_t k = 0; k < node->operand_count; k++)
                out->error[mode][i] += operands[k]->error[mode][source_of(operands[k]->shape, out->shape, i)]; /* right for sums and less */
    }
}

static void copy_element(oracle_tensor *out, uint64_t to, const oracle_tensor *from, uint64_t at) {
    out->value[to] = from->value[at];
    for (int mode = 0; mode < ORACLE_MODES; mode++) out->error[mode][to] = from->error[mode][at];
}

static void where(const oracle_tensor *const *operands, oracle_tensor *out) {
    const uint64_t count = hd_shape_elements(out->shape);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t c = source_of(operands[0]->shape, out->shape, i);
        const oracle_tensor *chosen = operands[0]->value[c] != 0 ? operands[1] : operands[2], *other = chosen == operands[1] ? operands[2] : operands[1];
        const uint64_t at = source_of(chosen->shape, out->shape, i);
        copy_element(out, i, chosen, at);
        for (int mode = 0; mode < ORACLE_MODES; mode++) /* the condition itself was in doubt */
            if (operands[0]->error[mode][c] > 0) out->error[mode][i] += fabs(chosen->value[at] - other->value[source_of(other->shape, out->shape, i)]);
    }
}

/* The units of bf16 that x has, and the rest of x, by division; what x is in doubt by moves the result by a unit. */
static void round_random(const oracle_tensor *const *operands, oracle_tensor *out) {
    const uint64_t count = hd_shape_elements(out->shape);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t at = source_of(operands[0]->shape, out->shape, i);
        const double x = operands[0]->value[at], word = operands[1]->value[source_of(operands[1]->shape, out->shape, i)];
        const double drawn = floor((word < 0 ? word + 0x1p32 : word) / 0x1p16), unit = exp2(fmax(floor(log2(fabs(x))), -126) - 7);
        const double units = floor(fabs(x) / unit), rest = fabs(x) / unit - units;
        const double size = (units + (rest * 0x1p16 + drawn >= 0x1p16)) * unit;
        out->value[i] = x == 0 || !isfinite(x) || oracle_in_float64 ? x : copysign(size > 0x1.FEp127 ? (double)INFINITY : size, x);
        for (int mode = 0; mode < ORACLE_MODES; mode++)
            if (operands[0]->error[mode][at] > 0) out->error[mode][i] = operands[0]->error[mode][at] + unit;
    }
}

/* ---- moving ---- */

/* The result's element for each element of the operand, or the other way round, by axis. */
static void move(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out) {
    const int64_t *ints = node->attrs.ints;
    const hd_shape shape = out->shape;
    const uint64_t count = hd_shape_elements(shape);
    for (uint64_t i = 0; i < count; i++) {
        int64_t index[HD_MAX_RANK] = { 0 }, from_index[HD_MAX_RANK] = { 0 };
        const oracle_tensor *from = operands[0];
        uint64_t rest = i, at = 0;
        bool inside = true;
        for (uint32_t axis = shape.rank; axis-- > 0; rest /= (uint64_t)shape.dims[axis]) index[axis] = (int64_t)(rest % (uint64_t)shape.dims[axis]);
        for (uint32_t axis = 0; axis < shape.rank; axis++) {
            if (node->op == HDI_OP_PERMUTE) from_index[ints[axis]] = index[axis];
            if (node->op == HDI_OP_SLICE) from_index[axis] = index[axis] + ints[axis];
            if (node->op == HDI_OP_PAD) from_index[axis] = index[axis] - ints[axis];
            if (node->op == HDI_OP_CONCAT || node->op == HDI_OP_WINDOWS) from_index[axis] = index[axis];
        }
        if (node->op == HDI_OP_WINDOWS) from_index[ints[0]] = index[ints[0]] * ints[2] + index[shape.rank - 1] * ints[3];
        for (uint32_t k = 1; node->op == HDI_OP_CONCAT && from_index[ints[0]] >= from->shape.dims[ints[0]]; k++) {
            from_index[ints[0]] -= from->shape.dims[ints[0]];
            from = operands[k];
        }
        for (uint32_t axis = 0; axis < from->shape.rank; axis++) {
            inside = inside && from_index[axis] >= 0 && from_index[axis] < from->shape.dims[axis];
            at = at * (uint64_t)from->shape.dims[axis] + (uint64_t)from_index[axis];
        }
        if (node->op == HDI_OP_RESHAPE || node->op == HDI_OP_COPY) at = i, inside = true;
        if (inside) copy_element(out, i, from, at);
        else out->value[i] = oracle_round(out->dtype, (double)node->attrs.floats[0]);
    }
}

/* ---- products and tables ---- */

static uint64_t matrix_of(hd_shape from, hd_shape to, uint64_t batch) {
    from.rank -= 2;
    to.rank -= 2;
    return source_of(from, to, batch);
}

/* What fast mode may round away of a number: `relative` of it, a subnormal f16's place, and what f16 does not hold. */
static double narrowed(double value, double relative) {
    const double size = fabs(value);
    return isfinite(size) ? fmax(size * relative, 0x1p-25) + fmax(size - 65504, 0) : 0;
}
/* A's errors beside narrow weights: each element as f16, or as one of 8 bits with a scale for each 32 along K. */
static void narrow_activations(const oracle_tensor *a, bool swap, double *errors) {
    const uint64_t lines = (uint64_t)a->shape.dims[a->shape.rank - (swap ? 1 : 2)], depths = (uint64_t)a->shape.dims[a->shape.rank - (swap ? 2 : 1)];
    const uint64_t line = swap ? 1 : depths, depth = swap ? lines : 1, count = hd_shape_elements(a->shape);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t k = i / depth % depths, first = k / 32 * 32, end = HDI_MIN(first + 32, depths);
        const uint64_t from = i / (lines * depths) * lines * depths + i / line % lines * line;
        double most = 0;
        for (uint64_t at = first; at < end; at++)
            if (isfinite(a->value[from + at * depth])) most = fmax(most, fabs(a->value[from + at * depth]));
        errors[i] += fmax(most / 254, narrowed(a->value[i], 0x1p-11));
    }
}

/* In exact mode A is rounded to 8 bits, with a scale for each run of 32 along K, beside quantised weights whose blocks lie along K
 * (docs/ops.md). A's errors by that; and for each element of A, in `sizes`, the largest one of its run. */
static void round_activations(const oracle_tensor *a, bool swap, double *errors, double *sizes) {
    const uint64_t lines = (uint64_t)a->shape.dims[a->shape.rank - (swap ? 1 : 2)], depths = (uint64_t)a->shape.dims[a->shape.rank - (swap ? 2 : 1)];
    const uint64_t depth = swap ? lines : 1, count = hd_shape_elements(a->shape);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t first = i - i / depth % depths % 32 * depth;
        double most = 0;
        for (uint64_t at = first; at < first + 32 * depth; at += depth) most = isnan(a->value[at]) ? (double)NAN : fmax(most, fabs(a->value[at]));
        errors[i] += most / 254 * (1 + 0x1p-12) + 0x1p-64;
        sizes[i] = most;
    }
}
/* The largest weight of each run of 32, by which what a value is the difference of is told: scale * code and less. */
static void largest_of_runs(const oracle_tensor *b, double *sizes) {
    const uint64_t count = hd_shape_elements(b->shape);
    for (uint64_t i = 0; i < count; i++) sizes[i] = i % 32 == 0 || fabs(b->value[i]) > sizes[i - 1] ? fabs(b->value[i]) : sizes[i - 1];
    for (uint64_t i = count; i-- > 0;) sizes[i] = i % 32 == 31 ? sizes[i] : sizes[i + 1];
}

static void matmul(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out) {
    const oracle_tensor *a = operands[0], *b = operands[1];
    const hd_shape c = out->shape;
    const bool swap_a = node->attrs.ints[0] & HD_TRANSPOSE_A, swap_b = node->attrs.ints[0] & HD_TRANSPOSE_B;
    const uint64_t M = (uint64_t)c.dims[c.rank - 2], N = (uint64_t)c.dims[c.rank - 1];
    const uint64_t K = (uint64_t)a->shape.dims[a->shape.rank - (swap_a ? 2 : 1)], matrices = hd_shape_elements(c) / (M * N);
    const double deep = (double)K, blocks = (double)HDI_MIN(K, 32) + ceil(deep / 32) + 1;
    const uint64_t a_count = hd_shape_elements(a->shape), b_count = hd_shape_elements(b->shape);
    double *a_errors[ORACLE_MODES], *b_errors[ORACLE_MODES];
    for (int mode = 0; mode < ORACLE_MODES; mode++) {
        a_errors[mode] = memcpy(take(a_count), a->error[mode], a_count * sizeof(double));
        b_errors[mode] = memcpy(take(b_count), b->error[mode], b_count * sizeof(double));
    }
    const bool as_they_are = (node->attrs.ints[0] & HD_RESULT_F32) && a->dtype == HD_BF16 && b->dtype == HD_BF16;
    if (b->dtype != HD_F32 && !as_they_are) {
        narrow_activations(a, swap_a, a_errors[ORACLE_FAST]);
        for (uint64_t i = 0; i < b_count; i++) b_errors[ORACLE_FAST][i] += narrowed(b->value[i], 0x1p-8);
    }
    const bool runs = swap_b && hdi_dtype_has_whole_codes(b->dtype);
    double *a_sizes = take(a_count), *b_sizes = take(b_count);
    if (runs) {
        round_activations(a, swap_a, a_errors[ORACLE_EXACT], a_sizes);
        largest_of_runs(b, b_sizes);
    }
    for (uint64_t i = 0; i < matrices * M * N; i++) {
        const uint64_t batch = i / (M * N), m = i / N % M, n = i % N;
        const uint64_t a0 = matrix_of(a->shape, c, batch) * M * K, b0 = matrix_of(b->shape, c, batch) * K * N;
        double sum = 0, sizes = 0, run_sizes = 0, moved[ORACLE_MODES] = { 0 };
        for (uint64_t k = 0; k < K; k++) {
            const uint64_t at = a0 + (swap_a ? k * M + m : m * K + k), bt = b0 + (swap_b ? n * K + k : k * N + n);
            const double product = a->value[at] * b->value[bt];
            sum += product;
            if (isfinite(product)) sizes += fabs(product);
            if (runs) run_sizes += 3 * a_sizes[at] * b_sizes[bt];
            for (int mode = 0; mode < ORACLE_MODES; mode++) {
                const double a_error = a_errors[mode][at], b_error = b_errors[mode][bt];
                if (a_error > 0 || b_error > 0) moved[mode] += fabs(a->value[at]) * b_error + a_error * (fabs(b->value[bt]) + b_error);
            }
        }
        const double exact = runs ? (ceil(deep / 512) + 24) * ORACLE_U * run_sizes : blocks * ORACLE_U * sizes;
        oracle_set(out, i, sum, 2 * deep * ORACLE_U * sizes + oracle_ulp(sum), exact);
        for (int mode = 0; mode < ORACLE_MODES; mode++) out->error[mode][i] += sizes > 0x1p127 ? (double)INFINITY : moved[mode]; /* f32 may overflow */
    }
    for (int mode = 0; mode < ORACLE_MODES; mode++) {
        free(a_errors[mode]);
        free(b_errors[mode]);
    }
    free(a_sizes);
    free(b_sizes);
}

static void experts(const oracle_tensor *const *operands, oracle_tensor *out) {
    const oracle_tensor *x = operands[0], *w = operands[1];
    const uint64_t N = (uint64_t)w->shape.dims[1], K = (uint64_t)w->shape.dims[2], U = (uint64_t)out->shape.dims[1];
    const double deep = (double)K, blocks = (double)HDI_MIN(K, 32) + ceil(deep / 32) + 1;
    const bool runs = hdi_dtype_has_whole_codes(w->dtype) && K >= 256;
    const uint64_t x_count = hd_shape_elements(x->shape);
    double *errors = take(x_count), *rounded = take(x_count); /* as matmul's in fast mode, in exact mode */
    double *x_sizes = take(x_count), *w_sizes = take(hd_shape_elements(w->shape));
    if (w->dtype != HD_F32) narrow_activations(x, false, errors);
    if (runs) {
        round_activations(x, false, rounded, x_sizes);
        largest_of_runs(w, w_sizes);
    }
    for (uint64_t i = 0; i < hd_shape_elements(out->shape); i++) {
        const double expert = operands[2]->value[i / N];
        const uint64_t row = i / N / (x->shape.rank == 3 ? 1 : U);
        double sum = 0, sizes = 0, moved = 0, turned = 0, run_sizes = 0;
        for (uint64_t k = 0; k < K && expert >= 0 && expert < (double)w->shape.dims[0]; k++) {
            const uint64_t at = ((uint64_t)expert * N + i % N) * K + k;
            const double weight = w->value[at], product = x->value[row * K + k] * weight;
            if (runs) run_sizes += 3 * x_sizes[row * K + k] * w_sizes[at];
            turned += rounded[row * K + k] * fabs(weight);
            const double weight_error = w->dtype != HD_F32 ? narrowed(weight, 0x1p-8) : 0;
            sum += product;
            sizes += fabs(product);
            moved += fabs(x->value[row * K + k]) * weight_error + errors[row * K + k] * (fabs(weight) + weight_error);
        }
        const double exact = runs ? (ceil(deep / 512) + 24) * ORACLE_U * run_sizes : blocks * ORACLE_U * sizes;
        oracle_set(out, i, sum, 2 * deep * ORACLE_U * sizes + oracle_ulp(sum), exact);
        out->error[ORACLE_FAST][i] += moved;
        out->error[ORACLE_EXACT][i] += turned;
    }
    free(errors);
    free(rounded);
    free(x_sizes);
    free(w_sizes);
}

static void gather(const oracle_tensor *const *operands, oracle_tensor *out) {
    const int64_t rows = operands[0]->shape.dims[0], n = operands[0]->shape.dims[1];
    const uint64_t count = hd_shape_elements(out->shape);
    for (uint64_t i = 0; i < count; i++) {
        const double row = operands[1]->value[i / (uint64_t)n];
        if (row >= 0 && row < (double)rows) copy_element(out, i, operands[0], (uint64_t)row * (uint64_t)n + i % (uint64_t)n);
    }
}

static void take_along(const oracle_tensor *const *operands, oracle_tensor *out) {
    const uint64_t n = (uint64_t)operands[0]->shape.dims[out->shape.rank - 1], k = (uint64_t)out->shape.dims[out->shape.rank - 1];
    for (uint64_t i = 0; i < hd_shape_elements(out->shape); i++) {
        const double at = operands[1]->value[i];
        if (at >= 0 && at < (double)n) copy_element(out, i, operands[0], i / k * n + (uint64_t)at);
    }
}

/* As i32 holds it. */
static double wrapped(int64_t w) { return (double)(int32_t)(uint32_t)(uint64_t)w; }
static double scattered(hdi_op op, double a, double b) {
    switch (op) {
    case HDI_OP_SCATTER_MUL: return oracle_in_float64 ? a * b : (double)(float)(a * b); /* as each step is kept: one above the largest f32 is inf from there on */
    case HDI_OP_SCATTER_MAX: return isnan(a) || isnan(b) ? (double)NAN : a > b ? a : b;
    case HDI_OP_SCATTER_MIN: return isnan(a) || isnan(b) ? (double)NAN : a < b ? a : b;
    default: return a + b;
    }
}
static void scatter(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out) {
    const uint64_t rows = (uint64_t)out->shape.dims[0], n = (uint64_t)out->shape.dims[1], updates = (uint64_t)operands[1]->shape.dims[0];
    const bool picks = node->op == HDI_OP_SCATTER_MAX || node->op == HDI_OP_SCATTER_MIN, product = node->op == HDI_OP_SCATTER_MUL;
    for (uint64_t at = 0; at < rows * n; at++) {
        double sum = operands[0]->value[at], sizes = fabs(sum), terms = 0;
        for (uint64_t i = 0; i < updates; i++) {
            if (operands[1]->value[i] != (double)(at / n)) continue;
            const double update = operands[2]->value[i * n + at % n];
            if (out->dtype == HD_I32 && product) sum = wrapped((int64_t)sum * (int64_t)update);
            else sum = out->dtype == HD_I32 ? wrapped((int64_t)scattered(node->op, sum, update)) : scattered(node->op, sum, update);
            sizes = product ? fabs(sum) : sizes + fabs(update);
            terms++;
        }
        if (terms == 0) copy_element(out, at, operands[0], at);
        else if (picks || out->dtype == HD_I32) out->value[at] = sum;
        else oracle_set(out, at, sum, 2 * (double)updates * ORACLE_U * sizes + oracle_ulp(sum), terms * (ORACLE_U * sizes + (product ? 0x1p-149 : 0)));
    }
}

/* An element moved to a type that may be narrower, rounded to nearest even. */
static void round_element(oracle_tensor *out, uint64_t to, const oracle_tensor *from, uint64_t at) {
    const double fast = from->error[ORACLE_FAST][at], exact = from->error[ORACLE_EXACT][at];
    copy_element(out, to, from, at);
    if (from->dtype == out->dtype) return;
    if (fast > 0 || exact > 0) oracle_set(out, to, from->value[at], fast, exact);
    else out->value[to] = oracle_round(out->dtype, from->value[at]);
}

/* 32 elements moved to a block of q8_0 or q4_0, by GGUF's definition in f32: the largest has the last code, of q4_0 code -8 with
 * d's sign; others the nearest, which are 0 and -8 where there is none. Errors may move the block's d and a code by one. */
static void round_block(oracle_tensor *out, uint64_t to, const oracle_tensor *from, uint64_t at) {
    const bool eight = out->dtype == HD_Q8_0;
    float largest = 0;
    for (uint32_t i = 0; i < 32; i++)
        if (fabs(from->value[at + i]) > fabs((double)largest)) largest = (float)from->value[at + i];
    const float d = eight ? fabsf(largest) / 127 : largest / -8, inverse = d == 0 ? 0 : 1 / d;
    for (uint32_t i = 0; i < 32; i++) {
        const float scaled = (float)from->value[at + i] * inverse;
        const double code = !isfinite(scaled) ? (eight ? 0 : -8) : eight ? round((double)scaled) : fmin(trunc((double)(scaled + 8.5f)), 15) - 8;
        out->value[to + i] = oracle_round(HD_F16, (double)d) * code;
        for (int mode = 0; mode < ORACLE_MODES; mode++) {
            double off = 0;
            for (uint32_t k = 0; k < 32; k++) off = fmax(off, from->error[mode][at + k]);
            out->error[mode][to + i] = off > 0 ? 2 * off + fabs((double)d) + fabs(out->value[to + i]) * 0x1p-10 : 0;
        }
    }
}
/* How many elements are rounded together, and these. */
static uint64_t rounded_at_once(hd_dtype dtype) { return hdi_dtype_is_quantised(dtype) ? 32 : 1; }
static void round_elements(oracle_tensor *out, uint64_t to, const oracle_tensor *from, uint64_t at) {
    if (hdi_dtype_is_quantised(out->dtype)) round_block(out, to, from, at);
    else round_element(out, to, from, at);
}

/* Rows one by one into their pages. */
static void write_pages(const oracle_tensor *const *operands, oracle_tensor *out) {
    const hd_shape state = out->shape, rows = operands[1]->shape, table = operands[3]->shape;
    const bool batched = table.rank == 2;
    const int64_t B = batched ? table.dims[0] : 1, P = table.dims[batched], T = rows.dims[batched], N = state.dims[0], R = state.dims[1];
    const uint64_t row = hd_shape_elements(state) / (uint64_t)N / (uint64_t)R;
    for (uint64_t i = 0; i < hd_shape_elements(state); i++) copy_element(out, i, operands[0], i);
    for (int64_t b = 0; b < B; b++)
        for (int64_t t = 0; t < T; t++) {
            const int64_t s = (int64_t)operands[2]->value[b] + t, page = s >= 0 && s < P * R ? (int64_t)operands[3]->value[b * P + s / R] : -1;
            for (uint64_t d = 0; d < row && page >= 0 && page < N; d += rounded_at_once(out->dtype))
                round_elements(out, (uint64_t)(page * R + s % R) * row + d, operands[1], (uint64_t)(b * T + t) * row + d);
        }
}

static void write_rows(const oracle_tensor *const *operands, oracle_tensor *out) {
    const hd_shape state = out->shape, rows = operands[1]->shape;
    bool batched = operands[2]->shape.dims[0] > 1;
    for (uint32_t axis = 1; axis < state.rank; axis++) batched |= state.dims[axis] != rows.dims[axis];
    const uint64_t count = hd_shape_elements(state), sequences = batched ? (uint64_t)state.dims[0] : 1;
    const uint64_t T = (uint64_t)rows.dims[batched], S = (uint64_t)state.dims[batched], row = count / sequences / S;
    const uint64_t step = rounded_at_once(out->dtype);
    for (uint64_t i = 0; i < count; i++) copy_element(out, i, operands[0], i);
    for (uint64_t i = 0; i < count; i += step) {
        const uint64_t batch = i / row / S;
        const int64_t t = (int64_t)(i / row % S) - (int64_t)operands[2]->value[batch];
        if (t >= 0 && t < (int64_t)T) round_elements(out, i, operands[1], (batch * T + (uint64_t)t) * row + i % row);
    }
}

/* Philox4x32-10 as its paper writes it: the key is raised between the rounds. */
static void draw(const hdi_node *node, const oracle_tensor *key, oracle_tensor *out) {
    for (uint64_t i = 0; i < hd_shape_elements(out->shape); i++) {
        uint32_t c[4] = { (uint32_t)(i / 4), (uint32_t)node->attrs.ints[0], (uint32_t)(int64_t)key->value[2], (uint32_t)(int64_t)key->value[3] };
        uint32_t k0 = (uint32_t)(int64_t)key->value[0], k1 = (uint32_t)(int64_t)key->value[1];
        for (int round = 0; round < 10; round++, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
            const uint64_t a = UINT64_C(0xD2511F53) * c[0], b = UINT64_C(0xCD9E8D57) * c[2];
            const uint32_t next[4] = { (uint32_t)(b >> 32) ^ c[1] ^ k0, (uint32_t)b, (uint32_t)(a >> 32) ^ c[3] ^ k1, (uint32_t)a };
            memcpy(c, next, sizeof c);
        }
        out->value[i] = (double)(int32_t)c[i % 4];
    }
}

/* ---- the choice ---- */

/* Behind an operation that carries no errors on, results of inexact operands are not judged. */
static void give_up(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out) {
    const uint64_t count = hd_shape_elements(out->shape);
    for (int mode = 0; mode < ORACLE_MODES; mode++) {
        double most = 0;
        for (uint32_t i = 0; i < node->operand_count; i++)
            for (uint64_t k = 0; operands[i] && k < hd_shape_elements(operands[i]->shape); k++) most = fmax(most, operands[i]->error[mode][k]);
        for (uint64_t i = 0; most > 0 && i < count; i++) out->error[mode][i] = INFINITY;
    }
}

void oracle_node(const hdi_node *node, const oracle_tensor *const *operands, oracle_tensor *out) {
    const hd_dtype from = operands[0]->dtype;
    switch (node->op) {
    case HDI_OP_WHERE: where(operands, out); return;
    case HDI_OP_ROUND_RANDOM: round_random(operands, out); return;
    case HDI_OP_COPY: case HDI_OP_PERMUTE: case HDI_OP_RESHAPE: case HDI_OP_SLICE: case HDI_OP_PAD: case HDI_OP_CONCAT:
    case HDI_OP_WINDOWS:
        move(node, operands, out);
        return;
    case HDI_OP_MATMUL: matmul(node, operands, out); return;
    case HDI_OP_MATMUL_EXPERTS: experts(operands, out); return;
    case HDI_OP_GATHER: gather(operands, out); return;
    case HDI_OP_TAKE_ALONG: take_along(operands, out); return;
    case HDI_OP_WRITE_ROWS:
        if (operands[3]) write_pages(operands, out);
        else write_rows(operands, out);
        return;
    case HDI_OP_ASSIGN:
        for (uint64_t i = 0; i < hd_shape_elements(out->shape); i++) copy_element(out, i, operands[1], i);
        return;
    case HDI_OP_RANDOM: draw(node, operands[0], out); return;
    case HDI_OP_SUM: case HDI_OP_MEAN: oracle_reduce(node, operands, out); return;
    case HDI_OP_MAX: case HDI_OP_MIN: case HDI_OP_ARGMAX: case HDI_OP_DOT: case HDI_OP_PROD: oracle_reduce(node, operands, out); break;
    case HDI_OP_TOP_K: oracle_top_k(operands, out); break;
    case HDI_OP_HASH: oracle_hash(operands[0], out); return;
    case HDI_OP_SCATTER_ADD: case HDI_OP_SCATTER_MUL: case HDI_OP_SCATTER_MAX: case HDI_OP_SCATTER_MIN: scatter(node, operands, out); break;
    case HDI_OP_CUMSUM: oracle_cumsum(node, operands, out); break;
    case HDI_OP_SOFTMAX: case HDI_OP_LOG_SOFTMAX: oracle_softmax(node, operands, out); break;
    case HDI_OP_CROSS_ENTROPY: oracle_cross_entropy(operands, out); break;
    case HDI_OP_CROSS_ENTROPY_GRADIENT: oracle_cross_entropy_gradient(operands, out); break;
    case HDI_OP_NORM_GRADIENT: oracle_norm_gradient(node, operands, out); break;
    case HDI_OP_NORM_SUMS: oracle_norm_sums(node, operands, out); break;
    case HDI_OP_RMS_NORM: case HDI_OP_LAYER_NORM: oracle_norm(node, operands, out); break;
    case HDI_OP_ROPE: oracle_rope(node, operands, out); break;
    case HDI_OP_ATTENTION: oracle_attention(node, operands, out); break;
    case HDI_OP_ATTENTION_GRADIENT: oracle_attention_gradient(node, operands, out); break;
    default:
        if (node->op != HDI_OP_LESS && node->op != HDI_OP_EQUAL && from == out->dtype && !hdi_dtype_is_float(from)) whole_numbers(node, operands, out);
        else elementwise(node, operands, out);
        return;
    }
    give_up(node, operands, out);
}
