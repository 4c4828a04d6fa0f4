/* flavour_glsl.c: instructions of GLSL.std.450, by those of OpenCL.std. */
#include "spirv/flavour.h"
#include <spirv/unified1/OpenCL.std.h>

/* By number: the one that does the same, + 1; 0: it is made of others. */
static const uint8_t same_as[] = {
    [1] = OpenCLstd_Rint + 1, [2] = OpenCLstd_Rint + 1, [3] = OpenCLstd_Trunc + 1, [4] = OpenCLstd_Fabs + 1,
    [5] = OpenCLstd_SAbs + 1, [6] = OpenCLstd_Sign + 1, [8] = OpenCLstd_Floor + 1, [9] = OpenCLstd_Ceil + 1,
    [11] = OpenCLstd_Radians + 1, [12] = OpenCLstd_Degrees + 1, [13] = OpenCLstd_Sin + 1, [14] = OpenCLstd_Cos + 1,
    [15] = OpenCLstd_Tan + 1, [16] = OpenCLstd_Asin + 1, [17] = OpenCLstd_Acos + 1, [18] = OpenCLstd_Atan + 1,
    [19] = OpenCLstd_Sinh + 1, [20] = OpenCLstd_Cosh + 1, [21] = OpenCLstd_Tanh + 1, [22] = OpenCLstd_Asinh + 1,
    [23] = OpenCLstd_Acosh + 1, [24] = OpenCLstd_Atanh + 1, [25] = OpenCLstd_Atan2 + 1, [26] = OpenCLstd_Pow + 1,
    [27] = OpenCLstd_Exp + 1, [28] = OpenCLstd_Log + 1, [29] = OpenCLstd_Exp2 + 1, [30] = OpenCLstd_Log2 + 1,
    [31] = OpenCLstd_Sqrt + 1, [32] = OpenCLstd_Rsqrt + 1, [37] = OpenCLstd_Fmin + 1, [38] = OpenCLstd_UMin + 1,
    [39] = OpenCLstd_SMin + 1, [40] = OpenCLstd_Fmax + 1, [41] = OpenCLstd_UMax + 1, [42] = OpenCLstd_SMax + 1,
    [46] = OpenCLstd_Mix + 1, [48] = OpenCLstd_Step + 1, [49] = OpenCLstd_Smoothstep + 1, [50] = OpenCLstd_Fma + 1,
    [53] = OpenCLstd_Ldexp + 1, [66] = OpenCLstd_Length + 1, [67] = OpenCLstd_Distance + 1, [68] = OpenCLstd_Cross + 1,
    [69] = OpenCLstd_Normalize + 1, [79] = OpenCLstd_Fmin + 1, [80] = OpenCLstd_Fmax + 1,
};

/* Clamps: the greater of the first two, and of that and the third the lesser. */
static const struct { uint32_t number, greater, lesser; } clamps[] = {
    { 43, OpenCLstd_Fmax, OpenCLstd_Fmin }, { 44, OpenCLstd_UMax, OpenCLstd_UMin },
    { 45, OpenCLstd_SMax, OpenCLstd_SMin },
    { 81, OpenCLstd_Fmax, OpenCLstd_Fmin },
};

/* Those with no form here. */
static const char *refused_name(uint32_t number) {
    switch (number) {
    case 33: return "Determinant";
    case 34: return "MatrixInverse";
    case 70: return "FaceForward";
    case 71: return "Reflect";
    default: return "Refract";
    }
}

static uint32_t number_like(hdi_flavour *w, const hdi_spirv_type *type, uint64_t bits) {
    return hdi_flavour_number(w, type->kind, type->width, type->count, bits);
}

/* ---- packing ---- */

typedef struct packing { uint32_t number, undoing, count, bits; bool is_signed; float largest; } packing;
static const packing packings[] = {
    { 54, 63, 4, 8, true, 127.0f }, { 55, 64, 4, 8, false, 255.0f }, { 56, 60, 2, 16, true, 32767.0f },
    { 57, 61, 2, 16, false, 65535.0f },
};

static uint32_t float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}

static uint32_t pack(hdi_flavour *w, const packing *kind, uint32_t vector) {
    const hdi_spirv_type floats = { .kind = 'f', .width = 32, .count = kind->count };
    const hdi_spirv_type ints = { .kind = 'i', .width = 32, .count = kind->count };
    const uint32_t f = hdi_flavour_vector(w, 'f', 32, kind->count), u = hdi_flavour_vector(w, 'i', 32, kind->count);
    const uint32_t u32 = hdi_flavour_scalar(w, 'i', 32);
    uint32_t x = hdi_flavour_extended(w, OpenCLstd_Fmax, f, vector,
                                      number_like(w, &floats, float_bits(kind->is_signed ? -1.0f : 0.0f)), 0);
    uint32_t sum = 0;
    x = hdi_flavour_extended(w, OpenCLstd_Fmin, f, x, number_like(w, &floats, float_bits(1.0f)), 0);
    x = hdi_flavour_extended(w, OpenCLstd_Rint, f,
                             HDI_FLAVOUR_MAKE(w, SpvOpFMul, f, x, number_like(w, &floats, float_bits(kind->largest))),
                             0, 0);
    x = HDI_FLAVOUR_MAKE(w, SpvOpConvertFToS, u, x);
    x = HDI_FLAVOUR_MAKE(w, SpvOpBitwiseAnd, u, x, number_like(w, &ints, (1u << kind->bits) - 1));
    for (uint32_t i = 0; i < kind->count; i++) {
        uint32_t part = hdi_flavour_component(w, &ints, x, i);
        if (i) part = HDI_FLAVOUR_MAKE(w, SpvOpShiftLeftLogical, u32, part, hdi_flavour_u32(w, i * kind->bits));
        sum = sum ? HDI_FLAVOUR_MAKE(w, SpvOpBitwiseOr, u32, sum, part) : part;
    }
    return sum;
}

/* Each part is shifted to the top and down again, with its sign where it has one. */
static uint32_t unpack(hdi_flavour *w, const packing *kind, uint32_t word) {
    const hdi_spirv_type floats = { .kind = 'f', .width = 32, .count = kind->count };
    const uint32_t f32 = hdi_flavour_scalar(w, 'f', 32), f = hdi_flavour_vector(w, 'f', 32, kind->count);
    const uint32_t u32 = hdi_flavour_scalar(w, 'i', 32);
    uint32_t parts[4];
    for (uint32_t i = 0; i < kind->count; i++) {
        const uint32_t top =
            HDI_FLAVOUR_MAKE(w, SpvOpShiftLeftLogical, u32, word, hdi_flavour_u32(w, 32 - (i + 1) * kind->bits));
        const uint32_t down = HDI_FLAVOUR_MAKE(w, kind->is_signed ? SpvOpShiftRightArithmetic : SpvOpShiftRightLogical,
                                               u32, top, hdi_flavour_u32(w, 32 - kind->bits));
        parts[i] = HDI_FLAVOUR_MAKE(w, kind->is_signed ? SpvOpConvertSToF : SpvOpConvertUToF, f32, down);
    }
    uint32_t x = hdi_flavour_compose(w, f, parts, kind->count);
    x = HDI_FLAVOUR_MAKE(w, SpvOpFDiv, f, x, number_like(w, &floats, float_bits(kind->largest)));
    return kind->is_signed
               ? hdi_flavour_extended(w, OpenCLstd_Fmax, f, x, number_like(w, &floats, float_bits(-1.0f)), 0)
               : x;
}

static uint32_t halves(hdi_flavour *w, bool packs, uint32_t operand) {
    const uint32_t half = hdi_flavour_vector(w, 'f', 16, 2);
    if (packs)
        return HDI_FLAVOUR_MAKE(w, SpvOpBitcast, hdi_flavour_scalar(w, 'i', 32),
                                hdi_flavour_convert(w, 2, operand, 32, 16));
    return hdi_flavour_convert(w, 2, HDI_FLAVOUR_MAKE(w, SpvOpBitcast, half, operand), 16, 32);
}

/* ---- bits ---- */

/* The number of the highest bit set, or -1; of the lowest: the highest of x & -x. */
static uint32_t find_bit(hdi_flavour *w, const hdi_spirv_type *type, uint32_t id, uint32_t number, uint32_t x) {
    const uint32_t yes = hdi_flavour_vector(w, 'b', 0, type->count), zero = number_like(w, type, 0);
    if (number == 73) x = HDI_FLAVOUR_MAKE(w, SpvOpBitwiseAnd, id, x, HDI_FLAVOUR_MAKE(w, SpvOpISub, id, zero, x));
    if (number == 74) {
        const uint32_t negative = HDI_FLAVOUR_MAKE(w, SpvOpSLessThan, yes, x, zero);
        x = HDI_FLAVOUR_MAKE(w, SpvOpSelect, id, negative, HDI_FLAVOUR_MAKE(w, SpvOpNot, id, x), x);
    }
    const uint32_t leading = hdi_flavour_extended(w, OpenCLstd_Clz, id, x, 0, 0);
    return HDI_FLAVOUR_MAKE(w, SpvOpISub, id, number_like(w, type, type->width - 1), leading);
}

/* ---- two results ---- */

static uint32_t modf_struct(hdi_flavour *w, uint32_t type_def, uint32_t x) {
    const uint32_t id = hdi_flavour_type(w, hdi_spirv_part_type(w->m, type_def, 0));
    const uint32_t whole = hdi_flavour_extended(w, OpenCLstd_Trunc, id, x, 0, 0);
    return hdi_flavour_compose(w, hdi_flavour_type(w, type_def),
                               HDI_FLAVOUR_IDS(HDI_FLAVOUR_MAKE(w, SpvOpFSub, id, x, whole), whole));
}

/* x * 2^-e and e, where e is one more than the binary logarithm; of zero both are zero. */
static uint32_t frexp_struct(hdi_flavour *w, uint32_t type_def, const hdi_spirv_type *type, uint32_t x) {
    const hdi_spirv_type ints = { .kind = 'i', .width = 32, .count = type->count };
    const uint32_t id = hdi_flavour_vector(w, 'f', type->width, type->count),
                   i = hdi_flavour_vector(w, 'i', 32, type->count);
    const uint32_t none =
        HDI_FLAVOUR_MAKE(w, SpvOpFOrdEqual, hdi_flavour_vector(w, 'b', 0, type->count), x, number_like(w, type, 0));
    const uint32_t logarithm = hdi_flavour_extended(w, OpenCLstd_Ilogb, i, x, 0, 0), zero = number_like(w, &ints, 0);
    const uint32_t exponent = HDI_FLAVOUR_MAKE(w, SpvOpSelect, i, none, zero,
                                               HDI_FLAVOUR_MAKE(w, SpvOpIAdd, i, logarithm, number_like(w, &ints, 1)));
    const uint32_t fraction =
        hdi_flavour_extended(w, OpenCLstd_Ldexp, id, x, HDI_FLAVOUR_MAKE(w, SpvOpISub, i, zero, exponent), 0);
    return hdi_flavour_compose(w, hdi_flavour_type(w, type_def), HDI_FLAVOUR_IDS(fraction, exponent));
}

/* ---- one instruction ---- */

uint32_t hdi_flavour_glsl(hdi_flavour *w, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(w->m, inst), number = words[4], type_def = hdi_spirv_find(w->m, words[1]);
    uint32_t o[3] = { 0 };
    for (uint32_t i = 0; i < 3 && 5 + i < words[0] >> 16; i++)
        o[i] = hdi_flavour_value(w, hdi_spirv_find(w->m, words[5 + i]));
    const hdi_spirv_type *type = hdi_spirv_type_at(w->m, type_def),
                         *first = hdi_spirv_type_of(w->m, hdi_spirv_find(w->m, words[5]));
    if (number == 33 || number == 34 || (number >= 70 && number <= 72)) {
        w->stop = !hdi_spirv_unsupported(w->m, inst, "GLSL.std.450 %s has no form in OpenCL.std", refused_name(number));
        return 0;
    }
    const uint32_t id = hdi_flavour_type(w, type_def);
    if (number < HDI_COUNT(same_as) && same_as[number])
        return hdi_flavour_extended(w, same_as[number] - 1u, id, o[0], o[1], o[2]);
    for (uint32_t i = 0; i < HDI_COUNT(clamps); i++)
        if (clamps[i].number == number)
            return hdi_flavour_extended(w, clamps[i].lesser, id,
                                        hdi_flavour_extended(w, clamps[i].greater, id, o[0], o[1], 0), o[2], 0);
    for (uint32_t i = 0; i < HDI_COUNT(packings); i++) {
        if (packings[i].number == number) return pack(w, &packings[i], o[0]);
        if (packings[i].undoing == number) return unpack(w, &packings[i], o[0]);
    }
    switch (number) {
    case 7: /* the sign of an integer lies between -1 and 1 */
        return hdi_flavour_extended(w, OpenCLstd_SMin, id,
                                    hdi_flavour_extended(w, OpenCLstd_SMax, id, o[0],
                                                         number_like(w, type, UINT64_MAX >> (64 - type->width)), 0),
                                    number_like(w, type, 1), 0);
    case 10: return HDI_FLAVOUR_MAKE(w, SpvOpFSub, id, o[0], hdi_flavour_extended(w, OpenCLstd_Floor, id, o[0], 0, 0));
    case 36: return modf_struct(w, type_def, o[0]);
    case 52: return frexp_struct(w, type_def, first, o[0]);
    case 58: return halves(w, true, o[0]);
    case 62: return halves(w, false, o[0]);
    default: return find_bit(w, type, id, number, o[0]);
    }
}
