/* interpret_numbers.c: numbers as bits of 8 to 64. Floats of any width are worked with as doubles and rounded once: for
 * + - * / and roots of halves and singles that gives the nearest, as a double has more than twice their digits. */
#include "spirv/interpret.h"
#include <math.h>

uint64_t hdi_number_mask(uint32_t width) { return width >= 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1; }

int64_t hdi_number_signed(uint64_t bits, uint32_t width) {
    const uint64_t sign = UINT64_C(1) << (width - 1);
    return (int64_t)(((bits & hdi_number_mask(width)) ^ sign) - sign);
}

static double half_value(uint64_t bits) {
    const int exponent = (int)(bits >> 10 & 31);
    const double fraction = (double)(bits & 1023);
    double value = exponent == 0 ? ldexp(fraction, -24) : ldexp(fraction + 1024, exponent - 25);
    if (exponent == 31) value = bits & 1023 ? (double)NAN : (double)INFINITY;
    return bits >> 15 & 1 ? -value : value;
}

static uint64_t half_bits(double value) {
    const uint64_t sign = signbit(value) ? 0x8000 : 0;
    const double size = fabs(value);
    if (isnan(value)) return sign | 0x7E00;
    if (size >= 65520) return sign | 0x7C00;
    int exponent;
    frexp(size, &exponent);
    const int scale = HDI_MAX(exponent, -13) - 11; /* of the last digit */
    const uint64_t digits = (uint64_t)rint(ldexp(size, -scale)); /* up to 2048, which is the next exponent's 1024 */
    if (exponent < -13 || size == 0) return sign | digits;
    return sign | ((uint64_t)(exponent + 14) * 1024 + digits - 1024);
}

double hdi_number_float(uint64_t bits, uint32_t width) {
    double wide;
    float single;
    const uint32_t word = (uint32_t)bits;
    if (width == 16) return half_value(bits);
    memcpy(&wide, &bits, sizeof wide);
    memcpy(&single, &word, sizeof single);
    return width == 64 ? wide : (double)single;
}

uint64_t hdi_number_bits(double value, uint32_t width) {
    uint64_t bits = 0;
    uint32_t word;
    if (width == 16) return half_bits(value);
    if (width == 64) {
        memcpy(&bits, &value, sizeof bits);
        return bits;
    }
    const float single = (float)value;
    memcpy(&word, &single, sizeof word);
    return word;
}

uint64_t hdi_number_from_integer(uint64_t bits, uint32_t width, bool is_signed, uint32_t to_width) {
    const int64_t value = hdi_number_signed(bits, width);
    bits &= hdi_number_mask(width);
    if (to_width != 32) return hdi_number_bits(is_signed ? (double)value : (double)bits, to_width);
    /* not by way of a double, which rounds first */
    return hdi_number_bits((double)(is_signed ? (float)value : (float)bits), 32);
}

uint64_t hdi_number_to_integer(double value, uint32_t width, bool is_signed) {
    const double most = ldexp(1, (int)width - is_signed);
    if (isnan(value) || (!is_signed && value <= -1)) return 0;
    if (value >= most) return hdi_number_mask(width - is_signed);
    if (is_signed && value < -most) return UINT64_C(1) << (width - 1);
    return (value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value) & hdi_number_mask(width);
}
