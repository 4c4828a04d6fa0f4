/* print_glsl.c: instructions of GLSL.std.450. Most are a template by number (print_ops.c); those that pack numbers or
 * look at a whole vector are written out. */
#include "spirv/print.h"

static const char *const templates[] = {
    [1] = "rint($0)", [2] = "rint($0)", [3] = "trunc($0)", [4] = "fabs($0)", [5] = "@0 < 0 ? 0u - $0 : $0",
    [6] = "$0 > 0 ? ($C)1 : $0 < 0 ? -($C)1 : ($C)0", [7] = "@0 > 0 ? ($T)1 : @0 < 0 ? ($T)-1 : ($T)0",
    [8] = "floor($0)", [9] = "ceil($0)", [10] = "$0 - floor($0)", [11] = "$0 * 0x1.1df46ap-6f",
    [12] = "$0 * 0x1.ca5dc2p+5f", [13] = "sin($0)", [14] = "cos($0)", [15] = "tan($0)", [16] = "asin($0)",
    [17] = "acos($0)", [18] = "atan($0)", [19] = "sinh($0)", [20] = "cosh($0)", [21] = "tanh($0)", [22] = "asinh($0)",
    [23] = "acosh($0)", [24] = "atanh($0)", [25] = "atan2($0, $1)", [26] = "pow($0, $1)", [27] = "exp($0)",
    [28] = "log($0)", [29] = "exp2($0)", [30] = "log2($0)", [31] = "sqrt($0)", [32] = "rsqrt($0)",
    [37] = "fmin($0, $1)", [38] = "$0 < $1 ? $0 : $1", [39] = "@0 < @1 ? $0 : $1", [40] = "fmax($0, $1)",
    [41] = "$0 > $1 ? $0 : $1", [42] = "@0 > @1 ? $0 : $1", [43] = "fmin(fmax($0, $1), $2)",
    [44] = "$0 < $1 ? $1 : $0 > $2 ? $2 : $0", [45] = "@0 < @1 ? $1 : @0 > @2 ? $2 : $0",
    [46] = "$0 * (1.0f - $2) + $1 * $2", [48] = "$1 < $0 ? ($C)0 : ($C)1", [49] = "smooth_step($0, $1, $2)",
    [50] = "fma($0, $1, $2)", [53] = "ldexp($0, @1)", [73] = "find_low($0)", [74] = "find_high_signed($0)",
    [75] = "find_high($0)", [79] = "fmin($0, $1)", [80] = "fmax($0, $1)", [81] = "fmin(fmax($0, $1), $2)",
};

/* Where WGSL writes them another way. */
static const char *const wgsl_templates[] = {
    [5] = "u32(abs(@0))", [6] = "sign($0)", [7] = "u32(sign(@0))", [38] = "min($0, $1)", [39] = "u32(min(@0, @1))",
    [41] = "max($0, $1)", [42] = "u32(max(@0, @1))", [44] = "min(max($0, $1), $2)", [45] = "u32(min(max(@0, @1), @2))",
    [48] = "step($0, $1)",
};

/* Those with no form here. */
static const char *refused_name(uint32_t number) {
    switch (number) {
    case 33: return "Determinant";
    case 34: return "MatrixInverse";
    case 35: return "Modf";
    case 51: return "Frexp";
    case 70: return "FaceForward";
    case 71: return "Reflect";
    default: return "Refract";
    }
}

/* ---- whole vectors ---- */

/* The scalar product of a - b and itself (b: 0 for none), as a sum without parentheses around it. */
static void put_square(hdi_spirv_printer *p, uint32_t a, uint32_t b) {
    const hdi_spirv_type *type = hdi_spirv_type_of(p->m, a);
    for (uint32_t i = 0; i < type->count; i++) {
        if (i) hdi_spirv_put(p, " + ");
        for (int twice = 0; twice < 2; twice++) {
            hdi_spirv_put(p, twice ? " * (" : "(");
            hdi_spirv_put_component(p, a, i);
            if (b) hdi_spirv_put(p, " - ");
            if (b) hdi_spirv_put_component(p, b, i);
            hdi_spirv_put(p, ")");
        }
    }
}

static void put_normalize(hdi_spirv_printer *p, uint32_t type_def, uint32_t a) {
    const hdi_spirv_type *type = hdi_spirv_type_at(p->m, type_def);
    bool vector = hdi_spirv_is_vector(type);
    if (vector) hdi_spirv_put(p, "%n(", type_def);
    for (uint32_t i = 0; i < type->count; i++) {
        hdi_spirv_put(p, i ? ", " : "");
        hdi_spirv_put_component(p, a, i);
        hdi_spirv_put(p, " * rsqrt(");
        put_square(p, a, 0);
        hdi_spirv_put(p, ")");
    }
    if (vector) hdi_spirv_put(p, ")");
}

static void put_cross(hdi_spirv_printer *p, uint32_t type_def, uint32_t a, uint32_t b) {
    hdi_spirv_put(p, "%n(", type_def);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t j = (i + 1) % 3, k = (i + 2) % 3;
        hdi_spirv_put(p, i ? ", " : "");
        hdi_spirv_put_component(p, a, j);
        hdi_spirv_put(p, " * ");
        hdi_spirv_put_component(p, b, k);
        hdi_spirv_put(p, " - ");
        hdi_spirv_put_component(p, a, k);
        hdi_spirv_put(p, " * ");
        hdi_spirv_put_component(p, b, j);
    }
    hdi_spirv_put(p, ")");
}

/* ---- packing ---- */

typedef struct packing { uint32_t number, count, bits; bool is_signed; const char *largest; } packing;
static const packing packings[] = {
    { 54, 4, 8, true, "127.0f" },     { 55, 4, 8, false, "255.0f" }, { 56, 2, 16, true, "32767.0f" },
    { 57, 2, 16, false, "65535.0f" }, { 58, 2, 16, false, NULL }, /* halves */
};

static void put_pack(hdi_spirv_printer *p, const packing *kind, uint32_t vector) {
    for (uint32_t i = 0; i < kind->count; i++) {
        hdi_spirv_put(p, i ? " | " : "");
        if (!kind->largest) hdi_spirv_put(p, "(u32)f2h(");
        else hdi_spirv_put(p, kind->is_signed ? "((u32)(i32)rint(fmin(fmax(" : "((u32)rint(fmin(fmax(");
        hdi_spirv_put_component(p, vector, i);
        if (!kind->largest) hdi_spirv_put(p, ")");
        else
            hdi_spirv_put(p, ", %s), 1.0f) * %s) & %uu)", kind->is_signed ? "-1.0f" : "0.0f", kind->largest,
                          (1u << kind->bits) - 1);
        if (i) hdi_spirv_put(p, " << %uu", i * kind->bits);
    }
}

static void put_unpack(hdi_spirv_printer *p, const packing *kind, uint32_t type_def, uint32_t word) {
    hdi_spirv_put(p, "%n(", type_def);
    for (uint32_t i = 0; i < kind->count; i++) {
        hdi_spirv_put(p, i ? ", " : "");
        if (!kind->largest) hdi_spirv_put(p, "h2f((u16)(%v >> %uu))", word, i * kind->bits);
        else if (kind->is_signed)
            hdi_spirv_put(p, "fmax((f32)(i%u)(%v >> %uu) / %s, -1.0f)", kind->bits, word, i * kind->bits,
                          kind->largest);
        else hdi_spirv_put(p, "(f32)(u%u)(%v >> %uu) / %s", kind->bits, word, i * kind->bits, kind->largest);
    }
    hdi_spirv_put(p, ")");
}

/* WGSL has functions on vectors for all but halves, which it may round in any way. */
static void put_wgsl_packing(hdi_spirv_printer *p, const packing *kind, bool packs, uint32_t operand) {
    static const char *const names[] = { "4x8snorm", "4x8unorm", "2x16snorm", "2x16unorm" };
    if (kind->largest) hdi_spirv_put(p, packs ? "pack%s(%v)" : "unpack%s(%v)", names[kind->number - 54], operand);
    else if (!packs) hdi_spirv_put(p, "f32x2(h2f(%v & 0xffffu), h2f(%v >> 16u))", operand, operand);
    for (uint32_t i = 0; i < 2 && packs && !kind->largest; i++) {
        hdi_spirv_put(p, i ? " | (f2h(" : "f2h(");
        hdi_spirv_put_component(p, operand, i);
        hdi_spirv_put(p, i ? ") << 16u)" : ")");
    }
}

/* Numbers 54 .. 58 pack; 63, 64, 60, 61, 62 undo them, in that order. */
static bool put_packing(hdi_spirv_printer *p, uint32_t number, uint32_t type_def, uint32_t operand) {
    static const uint32_t undoing[] = { 63, 64, 60, 61, 62 };
    for (uint32_t i = 0; i < HDI_COUNT(packings); i++) {
        if (number != packings[i].number && number != undoing[i]) continue;
        hdi_spirv_use_part(p, packings[i].largest ? HDI_SPIRV_PART_MATH : HDI_SPIRV_PART_HALF);
        if (hdi_spirv_is_wgsl(p)) put_wgsl_packing(p, &packings[i], number == packings[i].number, operand);
        else if (number == packings[i].number) put_pack(p, &packings[i], operand);
        else put_unpack(p, &packings[i], type_def, operand);
        return true;
    }
    return false;
}

/* ---- one instruction ---- */

/* Two results in a struct. */
static void put_two(hdi_spirv_printer *p, uint32_t type_def, const char *first, const char *second,
                    const uint32_t *operands) {
    hdi_spirv_open_value(p, type_def);
    hdi_spirv_put_template(p, hdi_spirv_part_type(p->m, type_def, 0), first, operands);
    hdi_spirv_put(p, ", ");
    hdi_spirv_put_template(p, hdi_spirv_part_type(p->m, type_def, 1), second, operands);
    hdi_spirv_close_value(p, type_def);
}

bool hdi_spirv_put_glsl(hdi_spirv_printer *p, uint32_t inst) {
    enum { EXP2 = 29 };
    const uint32_t *words = hdi_spirv_words(p->m, inst);
    uint32_t number = words[4], operands[4] = { 0 }, type_def = hdi_spirv_find(p->m, words[1]);
    for (uint32_t i = 0; i < 4 && 5 + i < words[0] >> 16; i++)
        operands[i] = p->same[hdi_spirv_find(p->m, words[5 + i])];
    const bool has_ptx = p->target->dialect == HDI_SPIRV_CUDA || hdi_spirv_is_ptx(p->target);
    if (has_ptx && number == EXP2 && p->m->defs[hdi_spirv_find(p->m, words[2])].flags & HDI_SPIRV_RELAXED) {
        hdi_spirv_use_part(p, HDI_SPIRV_PART_HALF); /* has the PTX of single numbers */
        return hdi_spirv_put_template(p, type_def, "relaxed_exp2($0)", operands);
    }
    if (number < HDI_COUNT(templates) && templates[number]) {
        bool bits = number >= 73 && number <= 75;
        hdi_spirv_use_part(p, bits ? HDI_SPIRV_PART_BITS : HDI_SPIRV_PART_MATH);
        const char *const other =
            hdi_spirv_is_wgsl(p) && number < HDI_COUNT(wgsl_templates) ? wgsl_templates[number] : NULL;
        return hdi_spirv_put_template(p, type_def, other ? other : templates[number], operands);
    }
    if (put_packing(p, number, type_def, operands[0])) return true;
    hdi_spirv_use_part(p, HDI_SPIRV_PART_MATH);
    bool half = hdi_spirv_type_of(p->m, operands[0])->width == 16;
    if (half && number >= 66 && number <= 69) return hdi_spirv_unsupported(p->m, inst, "lengths of vectors of halves");
    switch (number) {
    case 36: put_two(p, type_def, "$0 - trunc($0)", "trunc($0)", operands); return true;
    case 52:
        put_two(p, type_def, "frexp_fraction($0)",
                hdi_spirv_is_wgsl(p) ? "u32(frexp_exponent($0))" : "(u32)frexp_exponent($0)", operands);
        return true;
    case 66: case 67:
        hdi_spirv_put(p, "sqrt(");
        put_square(p, operands[0], operands[1]);
        hdi_spirv_put(p, ")");
        return true;
    case 68: put_cross(p, type_def, operands[0], operands[1]); return true;
    case 69: put_normalize(p, type_def, operands[0]); return true;
    default:
        return hdi_spirv_unsupported(p->m, inst, "GLSL.std.450 %s has no form in %s", refused_name(number),
                                     p->spelling->name);
    }
}
