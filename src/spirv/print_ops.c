/* print_ops.c: instructions on values: arithmetic, conversions, comparisons, composites. Most are a row of a table: a
 * template over operands that is printed once for each component of the result. Halves are computed as f32 and rounded
 * to half again after each instruction, which for + - * / is the same as computing with halves. */
#include "spirv/print.h"

/* ---- statements ---- */

void hdi_spirv_put_result(hdi_spirv_printer *p, uint32_t def) {
    hdi_spirv_line(p);
    const bool near = !(p->facts[def] & HDI_SPIRV_FAR);
    if (near && hdi_spirv_is_wgsl(p))
        hdi_spirv_put(p, hdi_spirv_def_opcode(p->m, def) == SpvOpCompositeInsert ? "var " : "let ");
    else if (near) hdi_spirv_put(p, "%t ", p->m->defs[def].type);
    hdi_spirv_put(p, "v%u = ", def);
}

void hdi_spirv_end(hdi_spirv_printer *p) { hdi_spirv_put(p, ";\n"); }

/* ---- templates ---- */

static bool is_half(const hdi_spirv_type *type) { return type->kind == 'f' && type->width == 16; }

static void put_operand(hdi_spirv_printer *p, uint32_t def, uint32_t i, bool as_signed, bool raw) {
    const hdi_spirv_type *type = hdi_spirv_type_of(p->m, def);
    const bool wgsl = hdi_spirv_is_wgsl(p);
    if (as_signed && wgsl) {
        hdi_spirv_put(p, type->width == 8 ? "i8_of(" : type->width == 16 ? "i16_of(" : "i32(");
    } else if (as_signed) {
        hdi_spirv_put(p, "(");
        hdi_spirv_put_scalar_name(p, type, true);
        hdi_spirv_put(p, ")");
    }
    if (is_half(type) && !raw) {
        hdi_spirv_use_part(p, HDI_SPIRV_PART_HALF);
        hdi_spirv_put(p, "h2f(");
    }
    hdi_spirv_put_component(p, def, i);
    if (is_half(type) && !raw) hdi_spirv_put(p, ")");
    if (as_signed && wgsl) hdi_spirv_put(p, ")");
}

/* WGSL computes with literals alone before the kernel is there, and refuses what is not finite: then one goes through a
 * function. */
static bool needs_hiding(const hdi_spirv_printer *p, const char *format, const uint32_t *operands) {
    bool floats = false;
    for (; hdi_spirv_is_wgsl(p) && *format; format++) {
        if (*format != '$' || format[1] < '0' || format[1] > '3') continue;
        const uint32_t def = p->same[operands[format[1] - '0']];
        const uint32_t opcode = hdi_spirv_def_opcode(p->m, def);
        if (!(p->facts[def] & HDI_SPIRV_KNOWN) && !hdi_spirv_is_constant(opcode) && opcode != SpvOpUndef) return false;
        floats |= hdi_spirv_type_of(p->m, def)->kind == 'f' && hdi_spirv_type_of(p->m, def)->width == 32;
    }
    return floats;
}

static void put_expression(hdi_spirv_printer *p, const hdi_spirv_type *type, const char *format,
                           const uint32_t *operands, uint32_t i, bool raw) {
    bool narrow = type->kind == 'i' && type->width < 32 && !raw, half = is_half(type) && !raw;
    if (half) hdi_spirv_use_part(p, HDI_SPIRV_PART_HALF);
    if (half) hdi_spirv_put(p, "f2h(");
    const bool hides = needs_hiding(p, format, operands);
    if (narrow) hdi_spirv_put(p, hdi_spirv_is_wgsl(p) ? "u%u_of(" : "(u%u)(", type->width);
    for (; *format; format++) {
        const char *plain = format;
        while (*format && *format != '$' && *format != '@') format++;
        hdi_spirv_add(p, plain, (size_t)(format - plain));
        if (!*format) break;
        bool as_signed = *format++ == '@';
        const bool hidden =
            hides && *format >= '0' && *format <= '3' && hdi_spirv_type_of(p->m, operands[*format - '0'])->kind == 'f';
        if (hidden) hdi_spirv_put(p, "some_f32(");
        if (*format >= '0' && *format <= '3') put_operand(p, operands[*format - '0'], i, as_signed, raw);
        else if (*format == 'C' && is_half(type)) hdi_spirv_put(p, "f32");
        else hdi_spirv_put_scalar_name(p, type, *format == 'S');
        if (hidden) hdi_spirv_put(p, ")");
    }
    if (half || narrow) hdi_spirv_put(p, ")");
}

bool hdi_spirv_put_template(hdi_spirv_printer *p, uint32_t type_def, const char *format, const uint32_t *operands) {
    const hdi_spirv_type *type = hdi_spirv_type_at(p->m, type_def);
    bool raw = *format == '=', vector = hdi_spirv_is_vector(type);
    format += raw;
    if (vector) hdi_spirv_put(p, "%n(", type_def);
    for (uint32_t i = 0; i < type->count; i++) {
        if (i) hdi_spirv_put(p, ", ");
        if (vector && hdi_spirv_is_wgsl(p)) hdi_spirv_put(p, "("); /* where < and > may begin and end a list of types */
        put_expression(p, type, format, operands, i, raw);
        if (vector && hdi_spirv_is_wgsl(p)) hdi_spirv_put(p, ")");
    }
    if (vector) hdi_spirv_put(p, ")");
    return true;
}

/* ---- the table ---- */

typedef struct row {
    uint32_t    opcode;
    const char *format;
    hdi_spirv_part part; /* of the prelude, that it needs */
} row;

static const row rows[] = {
    { SpvOpConvertFToU, "($T)($0)", 0 },
    { SpvOpConvertFToS, "($T)($S)($0)", 0 },
    { SpvOpConvertSToF, "($C)(@0)", 0 },
    { SpvOpConvertUToF, "($C)($0)", 0 },
    { SpvOpUConvert, "($T)($0)", 0 },
    { SpvOpSConvert, "($T)($S)(@0)", 0 },
    { SpvOpFConvert, "($C)($0)", 0 },
    { SpvOpQuantizeToF16, "h2f(f2h($0))", HDI_SPIRV_PART_HALF },
    { SpvOpSNegate, "0u - $0", 0 },
    { SpvOpFNegate, "-$0", 0 },
    { SpvOpIAdd, "$0 + $1", 0 },
    { SpvOpISub, "$0 - $1", 0 },
    { SpvOpIMul, "$0 * $1", 0 },
    { SpvOpUDiv, "$0 / $1", 0 },
    { SpvOpUMod, "$0 % $1", 0 },
    { SpvOpSDiv, "($T)(@0 / @1)", 0 },
    { SpvOpSRem, "($T)(@0 % @1)", 0 },
    { SpvOpSMod, "($T)((@0 % @1 + @1) % @1)", 0 },
    { SpvOpFAdd, "$0 + $1", 0 },
    { SpvOpFSub, "$0 - $1", 0 },
    { SpvOpFMul, "$0 * $1", 0 },
    { SpvOpVectorTimesScalar, "$0 * $1", 0 },
    { SpvOpFDiv, "$0 / $1", 0 },
    { SpvOpFRem, "fmod($0, $1)", HDI_SPIRV_PART_MATH },
    { SpvOpFMod, "$0 - $1 * floor($0 / $1)", HDI_SPIRV_PART_MATH },
    { SpvOpShiftRightLogical, "$0 >> $1", 0 },
    { SpvOpShiftRightArithmetic, "($T)(@0 >> $1)", 0 },
    { SpvOpShiftLeftLogical, "$0 << $1", 0 },
    { SpvOpBitwiseOr, "$0 | $1", 0 },
    { SpvOpBitwiseXor, "$0 ^ $1", 0 },
    { SpvOpBitwiseAnd, "$0 & $1", 0 },
    { SpvOpNot, "~$0", 0 },
    { SpvOpBitFieldInsert, "bits_insert($0, $1, $2, $3)", HDI_SPIRV_PART_BITS },
    { SpvOpBitFieldSExtract, "bits_extract_signed($0, $1, $2)", HDI_SPIRV_PART_BITS },
    { SpvOpBitFieldUExtract, "bits_extract($0, $1, $2)", HDI_SPIRV_PART_BITS },
    { SpvOpBitReverse, "bits_reverse($0)", HDI_SPIRV_PART_BITS },
    { SpvOpBitCount, "($T)bits_count($0)", HDI_SPIRV_PART_BITS },
    { SpvOpIsNan, "$0 != $0", 0 },
    { SpvOpIsInf, "isinf($0)", HDI_SPIRV_PART_MATH },
    { SpvOpLogicalEqual, "$0 == $1", 0 },
    { SpvOpLogicalNotEqual, "$0 != $1", 0 },
    { SpvOpLogicalOr, "$0 || $1", 0 },
    { SpvOpLogicalAnd, "$0 && $1", 0 },
    { SpvOpLogicalNot, "!$0", 0 },
    { SpvOpSelect, "=$0 ? $1 : $2", 0 },
    { SpvOpIEqual, "$0 == $1", 0 },
    { SpvOpINotEqual, "$0 != $1", 0 },
    { SpvOpUGreaterThan, "$0 > $1", 0 },
    { SpvOpSGreaterThan, "@0 > @1", 0 },
    { SpvOpUGreaterThanEqual, "$0 >= $1", 0 },
    { SpvOpSGreaterThanEqual, "@0 >= @1", 0 },
    { SpvOpULessThan, "$0 < $1", 0 },
    { SpvOpSLessThan, "@0 < @1", 0 },
    { SpvOpULessThanEqual, "$0 <= $1", 0 },
    { SpvOpSLessThanEqual, "@0 <= @1", 0 },
    { SpvOpFOrdEqual, "$0 == $1", 0 },
    { SpvOpFUnordEqual, "!($0 < $1 || $0 > $1)", 0 },
    { SpvOpFOrdNotEqual, "$0 < $1 || $0 > $1", 0 },
    { SpvOpFUnordNotEqual, "$0 != $1", 0 },
    { SpvOpFOrdLessThan, "$0 < $1", 0 },
    { SpvOpFUnordLessThan, "!($0 >= $1)", 0 },
    { SpvOpFOrdGreaterThan, "$0 > $1", 0 },
    { SpvOpFUnordGreaterThan, "!($0 <= $1)", 0 },
    { SpvOpFOrdLessThanEqual, "$0 <= $1", 0 },
    { SpvOpFUnordLessThanEqual, "!($0 > $1)", 0 },
    { SpvOpFOrdGreaterThanEqual, "$0 >= $1", 0 },
    { SpvOpFUnordGreaterThanEqual, "!($0 < $1)", 0 },
    { SpvOpSDotKHR, "($T)dot4_signed($0, $1)", HDI_SPIRV_PART_DOT }, /* packed ones; of vectors: put_dot */
    { SpvOpUDotKHR, "($T)dot4_unsigned($0, $1)", HDI_SPIRV_PART_DOT },
    { SpvOpSUDotKHR, "($T)dot4_mixed($0, $1)", HDI_SPIRV_PART_DOT },
};

/* Where WGSL writes them another way. */
static const struct { uint32_t opcode; const char *format; } wgsl_rows[] = {
    { SpvOpConvertFToU, "u32($0)" },
    { SpvOpConvertFToS, "u32(i32($0))" },
    { SpvOpConvertSToF, "f32(@0)" },
    { SpvOpConvertUToF, "f32($0)" },
    { SpvOpUConvert, "$0" },
    { SpvOpSConvert, "u32(@0)" },
    { SpvOpFConvert, "$0" },
    { SpvOpSDiv, "u32(@0 / @1)" },
    { SpvOpSRem, "u32(@0 % @1)" },
    { SpvOpSMod, "u32((@0 % @1 + @1) % @1)" },
    { SpvOpShiftRightArithmetic, "u32(@0 >> $1)" },
    { SpvOpBitCount, "countOneBits($0)" },
    { SpvOpIsNan, "is_nan($0)" },
    { SpvOpIsInf, "is_inf($0)" },
    { SpvOpSelect, "=select($2, $1, $0)" },
    { SpvOpSDotKHR, "u32(dot4_signed($0, $1))" },
    { SpvOpUDotKHR, "dot4_unsigned($0, $1)" },
    { SpvOpSUDotKHR, "u32(dot4_mixed($0, $1))" },
};

static const row *row_of(uint32_t opcode) {
    for (size_t i = 0; i < HDI_COUNT(rows); i++)
        if (rows[i].opcode == opcode) return &rows[i];
    return NULL;
}

static const char *format_of(const hdi_spirv_printer *p, const row *found) {
    for (size_t i = 0; i < HDI_COUNT(wgsl_rows) && hdi_spirv_is_wgsl(p); i++)
        if (wgsl_rows[i].opcode == found->opcode) return wgsl_rows[i].format;
    return found->format;
}

/* The same where the module forbids contraction. */
static const char *uncontracted(uint32_t opcode) {
    switch (opcode) {
    case SpvOpFAdd: return "exact_add($0, $1)";
    case SpvOpFSub: return "exact_sub($0, $1)";
    case SpvOpFMul: case SpvOpVectorTimesScalar: return "exact_mul($0, $1)";
    default: return NULL;
    }
}

static bool is_exact(const hdi_spirv_printer *p, uint32_t def) {
    return p->m->defs[def].flags & HDI_SPIRV_NO_CONTRACTION;
}

/* Two halves at a time, where the dialect can: rounded as by themselves, and never contracted. */
static bool put_half_pair(hdi_spirv_printer *p, uint32_t opcode, uint32_t def, const uint32_t *operands) {
    const hdi_spirv_type *type = hdi_spirv_type_of(p->m, def);
    const bool scales = opcode == SpvOpVectorTimesScalar;
    const char *name = opcode == SpvOpFAdd ? "add" : opcode == SpvOpFSub ? "sub"
                     : opcode == SpvOpFMul || scales ? "mul" : NULL;
    if (!name || !is_half(type) || type->count != 2 || !hdi_spirv_prelude(p->target, HDI_SPIRV_PART_HALF_PAIRS))
        return false;
    hdi_spirv_use_part(p, HDI_SPIRV_PART_HALF_PAIRS);
    hdi_spirv_put(p, "half_pair_%s(%v, ", name, operands[0]);
    if (scales) hdi_spirv_put(p, "%n(%v, %v))", p->m->defs[def].type, operands[1], operands[1]);
    else hdi_spirv_put(p, "%v)", operands[1]);
    return true;
}

/* ---- composites ---- */

static uint32_t id_at(const hdi_spirv_printer *p, const uint32_t *words, uint32_t at) {
    return hdi_spirv_find(p->m, words[at]);
}

static void put_shuffle(hdi_spirv_printer *p, uint32_t type_def, const uint32_t *words, uint32_t at, uint32_t count) {
    uint32_t a = id_at(p, words, at), b = id_at(p, words, at + 1), a_count = hdi_spirv_type_of(p->m, a)->count;
    hdi_spirv_put(p, "%n(", type_def);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t from = words[at + 2 + i] == UINT32_MAX ? 0 : words[at + 2 + i];
        if (i) hdi_spirv_put(p, ", ");
        hdi_spirv_put_component(p, from < a_count ? a : b, from < a_count ? from : from - a_count);
    }
    hdi_spirv_put(p, ")");
}

static void put_construct(hdi_spirv_printer *p, uint32_t type_def, const uint32_t *words, uint32_t at, uint32_t end) {
    const hdi_spirv_type *type = hdi_spirv_type_at(p->m, type_def);
    bool vector = hdi_spirv_is_vector(type);
    hdi_spirv_open_value(p, type_def);
    for (uint32_t i = at; i < end; i++) {
        uint32_t part = id_at(p, words, i), count = vector ? hdi_spirv_type_of(p->m, part)->count : 1;
        for (uint32_t k = 0; k < count; k++) {
            if (i > at || k) hdi_spirv_put(p, ", ");
            if (vector) hdi_spirv_put_component(p, part, k);
            else hdi_spirv_put(p, "%v", part);
        }
    }
    hdi_spirv_close_value(p, type_def);
}

/* ".m1.e[2].x", from the whole's type on. */
static void put_path(hdi_spirv_printer *p, uint32_t type_def, const uint32_t *path, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        hdi_spirv_put_part(p, type_def, path[i]);
        type_def = hdi_spirv_part_type(p->m, type_def, path[i]);
    }
}

static void put_extract(hdi_spirv_printer *p, const uint32_t *words, uint32_t at, uint32_t end) {
    uint32_t whole = p->same[id_at(p, words, at)];
    if (end - at == 2 && hdi_spirv_is_vector(hdi_spirv_type_of(p->m, whole))) {
        hdi_spirv_put_component(p, whole, words[at + 1]);
        return;
    }
    hdi_spirv_put(p, "v%u", whole);
    put_path(p, p->m->defs[whole].type, words + at + 1, end - at - 1);
}

static void put_insert(hdi_spirv_printer *p, uint32_t def, const uint32_t *words, uint32_t at, uint32_t end) {
    hdi_spirv_put(p, "%v;\n", id_at(p, words, at + 1));
    hdi_spirv_line(p);
    hdi_spirv_put(p, "v%u", def);
    put_path(p, p->m->defs[def].type, words + at + 2, end - at - 2);
    hdi_spirv_put(p, " = %v", id_at(p, words, at));
}

/* A component by an index that is not known: index == 0 ? v.x : index == 1 ? v.y : ... */
static void put_extract_dynamic(hdi_spirv_printer *p, uint32_t vector, uint32_t index) {
    uint32_t count = hdi_spirv_type_of(p->m, vector)->count;
    if (hdi_spirv_is_wgsl(p)) {
        hdi_spirv_put(p, "%v[%v]", vector, index);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (i + 1 < count) hdi_spirv_put(p, "%v == %uu ? ", index, i);
        hdi_spirv_put_component(p, vector, i);
        if (i + 1 < count) hdi_spirv_put(p, " : ");
    }
}

static void put_insert_dynamic(hdi_spirv_printer *p, uint32_t type_def, uint32_t vector, uint32_t value,
                               uint32_t index) {
    uint32_t count = hdi_spirv_type_at(p->m, type_def)->count;
    hdi_spirv_put(p, "%n(", type_def);
    for (uint32_t i = 0; i < count; i++) {
        hdi_spirv_put(p, i ? ", " : "");
        if (hdi_spirv_is_wgsl(p)) hdi_spirv_put(p, "select(");
        else hdi_spirv_put(p, "%v == %uu ? %v : ", index, i, value);
        hdi_spirv_put_component(p, vector, i);
        if (hdi_spirv_is_wgsl(p)) hdi_spirv_put(p, ", %v, %v == %uu)", value, index, i);
    }
    hdi_spirv_put(p, ")");
}

static bool put_composite(hdi_spirv_printer *p, uint32_t opcode, uint32_t def, const uint32_t *words, uint32_t at) {
    uint32_t end = words[0] >> 16, type = p->m->defs[def].type;
    switch (opcode) {
    case SpvOpVectorShuffle: put_shuffle(p, type, words, at, end - at - 2); return true;
    case SpvOpCompositeConstruct: put_construct(p, type, words, at, end); return true;
    case SpvOpCompositeExtract: put_extract(p, words, at, end); return true;
    case SpvOpCompositeInsert: put_insert(p, def, words, at, end); return true;
    case SpvOpVectorExtractDynamic: put_extract_dynamic(p, id_at(p, words, at), id_at(p, words, at + 1)); return true;
    case SpvOpVectorInsertDynamic:
        put_insert_dynamic(p, type, id_at(p, words, at), id_at(p, words, at + 1), id_at(p, words, at + 2));
        return true;
    case SpvOpConstantComposite: case SpvOpSpecConstantComposite: put_construct(p, type, words, at, end); return true;
    case SpvOpCopyLogical: hdi_spirv_put(p, "%v", id_at(p, words, at)); return true;
    case SpvOpUndef: case SpvOpConstantNull: hdi_spirv_put_zero(p, type); return true;
    default: return false;
    }
}

/* ---- bits ---- */

/* A component's bits as an unsigned number. */
static void put_bits(hdi_spirv_printer *p, uint32_t def, uint32_t i) {
    const hdi_spirv_type *type = hdi_spirv_type_of(p->m, def);
    bool converts = type->kind == 'f' && type->width > 16;
    if (converts) hdi_spirv_put(p, "f%u_bits(", type->width);
    hdi_spirv_put_component(p, def, i);
    if (converts) hdi_spirv_put(p, ")");
}

/* A bit cast keeps the order of the bits: components follow each other, low bits first. */
static void put_bitcast(hdi_spirv_printer *p, uint32_t type_def, uint32_t def) {
    const hdi_spirv_type *type = hdi_spirv_type_at(p->m, type_def), *from = hdi_spirv_type_of(p->m, def);
    bool vector = hdi_spirv_is_vector(type), converts = type->kind == 'f' && type->width > 16;
    if (from->width == 64 || type->width == 64)
        hdi_spirv_use_part(p, from->kind == 'f' || type->kind == 'f' ? HDI_SPIRV_PART_DOUBLE : HDI_SPIRV_PART_CORE);
    if (vector) hdi_spirv_put(p, "%n(", type_def);
    for (uint32_t i = 0; i < type->count; i++) {
        hdi_spirv_put(p, i ? ", " : "");
        if (converts) hdi_spirv_put(p, "bits_f%u(", type->width);
        if (type->width == from->width) {
            put_bits(p, def, i);
        } else if (type->width < from->width) {
            uint32_t at = i * type->width;
            hdi_spirv_put(p, hdi_spirv_is_wgsl(p) ? "u%u_of(" : "(u%u)(", type->width);
            put_bits(p, def, at / from->width);
            hdi_spirv_put(p, " >> %uu)", at % from->width);
        } else {
            uint32_t parts = type->width / from->width;
            for (uint32_t k = 0; k < parts; k++) {
                if (hdi_spirv_is_wgsl(p)) hdi_spirv_put(p, k ? " | (" : "(");
                else hdi_spirv_put(p, k ? " | (u%u)" : "(u%u)", type->width);
                put_bits(p, def, i * parts + k);
                if (k) hdi_spirv_put(p, " << %uu", k * from->width);
                if (hdi_spirv_is_wgsl(p)) hdi_spirv_put(p, ")");
            }
        }
        if (converts) hdi_spirv_put(p, ")");
    }
    if (vector) hdi_spirv_put(p, ")");
}

/* ---- sums over components ---- */

/* a.x * b.x + a.y * b.y + ..., from the left; `exact`: each step by itself. */
static void put_sum(hdi_spirv_printer *p, const uint32_t *a, const uint32_t *a_part, const uint32_t *b,
                    const uint32_t *b_part, uint32_t count, bool exact) {
    for (uint32_t i = 1; i < count && exact; i++) hdi_spirv_put(p, "exact_add(");
    for (uint32_t i = 0; i < count; i++) {
        if (i) hdi_spirv_put(p, exact ? ", " : " + ");
        if (exact) hdi_spirv_put(p, "exact_mul(");
        put_operand(p, a[i], a_part[i], false, false);
        hdi_spirv_put(p, exact ? ", " : " * ");
        put_operand(p, b[i], b_part[i], false, false);
        if (exact) hdi_spirv_put(p, i ? "))" : ")");
    }
}

static void put_float_dot(hdi_spirv_printer *p, uint32_t def, uint32_t a, uint32_t b) {
    const hdi_spirv_type *type = hdi_spirv_type_of(p->m, a);
    const uint32_t both[2][4] = { { a, a, a, a }, { b, b, b, b } }, part[4] = { 0, 1, 2, 3 };
    if (is_half(type)) hdi_spirv_put(p, "f2h(");
    put_sum(p, both[0], part, both[1], part, type->count, is_exact(p, def));
    if (is_half(type)) hdi_spirv_put(p, ")");
}

/* Dot products of vectors of integers, and with something added, saturated. */
static bool put_int_dot(hdi_spirv_printer *p, uint32_t opcode, uint32_t def, const uint32_t *words) {
    static const uint32_t plain[] = { SpvOpSDotKHR, SpvOpUDotKHR, SpvOpSUDotKHR };
    bool adds = opcode >= SpvOpSDotAccSatKHR;
    uint32_t base = adds ? opcode - SpvOpSDotAccSatKHR + SpvOpSDotKHR : opcode;
    uint32_t operands[] = { id_at(p, words, 3), id_at(p, words, 4), adds ? id_at(p, words, 5) : 0 };
    const hdi_spirv_type *type = hdi_spirv_type_of(p->m, def), *a = hdi_spirv_type_of(p->m, operands[0]);
    bool a_signed = base != plain[1], b_signed = base == plain[0];
    if (hdi_spirv_is_wgsl(p) && (adds || a->count > 1))
        return hdi_spirv_unsupported(p->m, p->m->defs[def].inst, "it has no form in WGSL");
    if (adds)
        hdi_spirv_put(p, a_signed ? "(u%u)add_saturated_i%u(" : "(u%u)add_saturated_u%u(", type->width, type->width);
    if (adds || a->count == 1) hdi_spirv_use_part(p, HDI_SPIRV_PART_DOT);
    if (a->count == 1) {
        hdi_spirv_put_template(p, p->m->defs[def].type, format_of(p, row_of(base)), operands);
    } else {
        hdi_spirv_put(p, "(u%u)(", type->width);
        for (uint32_t i = 0; i < a->count; i++) {
            hdi_spirv_put(p, i ? " + (u%u)(i%u)" : "(u%u)(i%u)", type->width, type->width);
            put_operand(p, operands[0], i, a_signed, true);
            hdi_spirv_put(p, " * (u%u)(i%u)", type->width, type->width);
            put_operand(p, operands[1], i, b_signed, true);
        }
        hdi_spirv_put(p, ")");
    }
    if (adds) hdi_spirv_put(p, ", %v)", operands[2]);
    return true;
}

/* Products of matrices and vectors: component `row` of column `column` of the result. */
static bool put_product(hdi_spirv_printer *p, uint32_t opcode, uint32_t def, uint32_t a, uint32_t b) {
    const hdi_spirv_module *m = p->m;
    const hdi_spirv_type *type = hdi_spirv_type_of(m, def), *a_type = hdi_spirv_type_of(m, a),
                         *b_type = hdi_spirv_type_of(m, b);
    const hdi_spirv_type *column = type->kind == 'm' ? hdi_spirv_type_at(m, type->element) : type;
    uint32_t columns = type->kind == 'm' ? type->count : 1;
    bool exact = is_exact(p, def);
    if (type->width == 16) return hdi_spirv_unsupported(p->m, m->defs[def].inst, "matrices of halves");
    if (type->kind == 'm') hdi_spirv_open_value(p, m->defs[def].type);
    for (uint32_t c = 0; c < columns; c++) {
        hdi_spirv_put(p, c ? ", %n(" : "%n(", type->kind == 'm' ? type->element : m->defs[def].type);
        for (uint32_t r = 0; r < column->count; r++) {
            uint32_t terms = opcode == SpvOpVectorTimesMatrix   ? a_type->count
                             : opcode == SpvOpMatrixTimesVector ? b_type->count
                             : opcode == SpvOpMatrixTimesMatrix ? a_type->count
                                                                : 1;
            if (r) hdi_spirv_put(p, ", ");
            for (uint32_t i = 1; i < terms && exact; i++) hdi_spirv_put(p, "exact_add(");
            for (uint32_t i = 0; i < terms; i++) {
                if (i) hdi_spirv_put(p, exact ? ", " : " + ");
                if (opcode == SpvOpTranspose) {
                    hdi_spirv_put(p, "%v.c[%u].%c", a, r, "xyzw"[c]);
                    continue;
                }
                if (exact) hdi_spirv_put(p, "exact_mul(");
                if (opcode == SpvOpVectorTimesMatrix || opcode == SpvOpOuterProduct)
                    hdi_spirv_put_component(p, a, opcode == SpvOpOuterProduct ? r : i);
                else hdi_spirv_put(p, "%v.c[%u].%c", a, opcode == SpvOpMatrixTimesScalar ? c : i, "xyzw"[r]);
                hdi_spirv_put(p, exact ? ", " : " * ");
                if (opcode == SpvOpVectorTimesMatrix) hdi_spirv_put(p, "%v.c[%u].%c", b, r, "xyzw"[i]);
                else if (opcode == SpvOpMatrixTimesMatrix) hdi_spirv_put(p, "%v.c[%u].%c", b, c, "xyzw"[i]);
                else hdi_spirv_put_component(p, b, opcode == SpvOpOuterProduct ? c : i);
                if (exact) hdi_spirv_put(p, i ? "))" : ")");
            }
        }
        hdi_spirv_put(p, ")");
    }
    if (type->kind == 'm') hdi_spirv_close_value(p, m->defs[def].type);
    return true;
}

/* Any and All of a vector of bools. */
static void put_any(hdi_spirv_printer *p, uint32_t def, const char *between) {
    for (uint32_t i = 0; i < hdi_spirv_type_of(p->m, def)->count; i++) {
        hdi_spirv_put(p, "%s", i ? between : "");
        hdi_spirv_put_component(p, def, i);
    }
}

/* Two results in a struct: sum and carry, low and high half. */
static bool put_extended(hdi_spirv_printer *p, uint32_t opcode, uint32_t def, const uint32_t *operands) {
    uint32_t part = hdi_spirv_part_type(p->m, p->m->defs[def].type, 0);
    uint32_t width = hdi_spirv_type_at(p->m, part)->width;
    const bool wgsl = hdi_spirv_is_wgsl(p);
    const char *low = opcode == SpvOpIAddCarry ? "$0 + $1" : opcode == SpvOpISubBorrow ? "$0 - $1" : "$0 * $1";
    const char *high = opcode == SpvOpIAddCarry ? wgsl ? "u32($0 + $1 < $0)" : "($T)($0 + $1) < $0 ? 1u : 0u"
                       : opcode == SpvOpISubBorrow ? wgsl ? "u32($0 < $1)" : "$0 < $1 ? 1u : 0u"
                     : opcode == SpvOpUMulExtended ? "high_product_u32($0, $1)" : "high_product_i32($0, $1)";
    if (width != 32) return hdi_spirv_unsupported(p->m, p->m->defs[def].inst, "two results of %u bits", width);
    if (opcode == SpvOpUMulExtended || opcode == SpvOpSMulExtended) hdi_spirv_use_part(p, HDI_SPIRV_PART_BITS);
    hdi_spirv_open_value(p, p->m->defs[def].type);
    hdi_spirv_put_template(p, part, low, operands);
    hdi_spirv_put(p, ", ");
    hdi_spirv_put_template(p, part, high, operands);
    hdi_spirv_close_value(p, p->m->defs[def].type);
    return true;
}

/* ---- one instruction ---- */

/* The value of an instruction, or of a constant expression, whose operands begin at word `at`. */
static bool put_expression_of(hdi_spirv_printer *p, uint32_t inst, uint32_t opcode, uint32_t def, uint32_t at) {
    const uint32_t *words = hdi_spirv_words(p->m, inst);
    uint32_t operands[4] = { 0 };
    for (uint32_t i = 0; i < 4 && at + i < words[0] >> 16; i++) operands[i] = id_at(p, words, at + i);
    if (hdi_spirv_type_of(p->m, def)->kind == 'c') return hdi_spirv_put_matrix(p, inst, opcode);
    if (put_composite(p, opcode, def, words, at)) return true;
    switch (opcode) {
    case SpvOpBitcast: put_bitcast(p, p->m->defs[def].type, operands[0]); return true;
    case SpvOpDot: put_float_dot(p, def, operands[0], operands[1]); return true;
    case SpvOpAny: put_any(p, operands[0], " || "); return true;
    case SpvOpAll: put_any(p, operands[0], " && "); return true;
    case SpvOpSDotKHR: case SpvOpUDotKHR: case SpvOpSUDotKHR: case SpvOpSDotAccSatKHR: case SpvOpUDotAccSatKHR:
    case SpvOpSUDotAccSatKHR: return put_int_dot(p, opcode, def, words);
    case SpvOpIAddCarry: case SpvOpISubBorrow: case SpvOpUMulExtended: case SpvOpSMulExtended:
        return put_extended(p, opcode, def, operands);
    case SpvOpMatrixTimesScalar: case SpvOpVectorTimesMatrix: case SpvOpMatrixTimesVector: case SpvOpMatrixTimesMatrix:
    case SpvOpOuterProduct: case SpvOpTranspose: return put_product(p, opcode, def, operands[0], operands[1]);
    case SpvOpSelect:
        if (hdi_spirv_is_plain(hdi_spirv_type_of(p->m, def))) break;
        if (hdi_spirv_is_wgsl(p)) return hdi_spirv_unsupported(p->m, inst, "WGSL chooses between numbers only");
        hdi_spirv_put(p, "%v ? %v : %v", operands[0], operands[1], operands[2]);
        return true;
    case SpvOpFConvert:
        if (hdi_spirv_decor_of(p->m, def)->rounding != HDI_SPIRV_NONE &&
            hdi_spirv_decor_of(p->m, def)->rounding != SpvFPRoundingModeRTE)
            return hdi_spirv_unsupported(p->m, inst, "a rounding mode other than to nearest even");
        break;
    default: break;
    }
    if (put_half_pair(p, opcode, def, operands)) return true;
    const row *found = row_of(opcode);
    if (!found) return hdi_spirv_unsupported(p->m, inst, "it has no form in %s", p->spelling->name);
    hdi_spirv_use_part(p, found->part);
    const char *exact = is_exact(p, def) ? uncontracted(opcode) : NULL;
    return hdi_spirv_put_template(p, p->m->defs[def].type, exact ? exact : format_of(p, found), operands);
}

static bool is_silent(uint32_t opcode) {
    switch (opcode) {
    case SpvOpLine: case SpvOpNoLine: case SpvOpNop: case SpvOpPhi: case SpvOpVariable: case SpvOpLoopMerge:
    case SpvOpSelectionMerge: case SpvOpAccessChain: case SpvOpInBoundsAccessChain: case SpvOpCopyObject: return true;
    default: return false;
    }
}

bool hdi_spirv_put_constant(hdi_spirv_printer *p, uint32_t def) {
    uint32_t inst = p->m->defs[def].inst, opcode = hdi_spirv_opcode(p->m, inst);
    bool expression = opcode == SpvOpSpecConstantOp;
    hdi_spirv_put_result(p, def);
    bool fine =
        put_expression_of(p, inst, expression ? hdi_spirv_words(p->m, inst)[3] : opcode, def, expression ? 4 : 3);
    hdi_spirv_end(p);
    return fine;
}

bool hdi_spirv_put_instruction(hdi_spirv_printer *p, uint32_t inst) {
    uint32_t opcode = hdi_spirv_opcode(p->m, inst);
    if (is_silent(opcode)) return true;
    const hdi_spirv_op *op = hdi_spirv_op_row(opcode);
    const uint32_t *words = hdi_spirv_words(p->m, inst);
    uint32_t def = op->operands[0] == 't' ? hdi_spirv_find(p->m, words[2]) : 0;
    bool needed = def == 0 || (p->facts[def] & HDI_SPIRV_NEEDED && p->same[def] == def);
    if (opcode == SpvOpStore || opcode == SpvOpCopyMemory || (opcode == SpvOpLoad && needed))
        return hdi_spirv_put_memory(p, inst, opcode);
    if (hdi_spirv_is_atomic(opcode)) return hdi_spirv_put_atomic(p, inst, opcode);
    if (opcode == HDI_SPIRV_COOPERATIVE_MATRIX_STORE) return hdi_spirv_put_matrix(p, inst, opcode);
    if (opcode == SpvOpControlBarrier || opcode == SpvOpMemoryBarrier) return hdi_spirv_put_barrier(p, inst, opcode);
    bool glsl = opcode == SpvOpExtInst && hdi_spirv_find(p->m, words[3]) == p->m->glsl_set;
    if ((!needed && !hdi_spirv_glsl_writes(p->m, words)) || (opcode == SpvOpExtInst && !glsl)) return true;
    if (opcode == SpvOpUndef && hdi_spirv_is_plain(hdi_spirv_type_of(p->m, def))) return true;
    hdi_spirv_put_result(p, def);
    bool fine = hdi_spirv_is_group(opcode) ? hdi_spirv_put_group(p, inst, opcode)
              : glsl ? hdi_spirv_put_glsl(p, inst)
              : opcode == SpvOpArrayLength ? hdi_spirv_put_memory(p, inst, opcode)
              : hdi_spirv_is_matrix(opcode)
              ? hdi_spirv_put_matrix(p, inst, opcode)
              : put_expression_of(p, inst, opcode, def, 3);
    hdi_spirv_end(p);
    return fine;
}
