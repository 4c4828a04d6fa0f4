/* interpret_ops.c: instructions on values: one result from operands, component by component where both are vectors.
 * What is not defined (a division by zero, a shift by the width or more) gives 0. Relies on typing.c. */
#include "spirv/interpret.h"
#include <math.h>

/* The operands of one instruction. */
typedef struct operation {
    hdi_interpreter *x;
    uint32_t         opcode, type_def;
    const hdi_spirv_type *type; /* of the result */
    const uint32_t  *words;     /* operands */
    uint32_t         count;
    uint64_t        *out, cells;
} operation;

static uint64_t *operand(const operation *o, uint32_t i) { return hdi_interpret_id(o->x, o->words[i]); }
static const hdi_spirv_type *type_of(const operation *o, uint32_t i) { return hdi_interpret_type(o->x, o->words[i]); }
static uint32_t type_def_of(const operation *o, uint32_t i) {
    return o->x->m->defs[hdi_spirv_find(o->x->m, o->words[i])].type;
}

uint64_t hdi_interpret_part(const hdi_spirv_machine *machine, uint32_t *inout_type, uint64_t index) {
    const hdi_spirv_module *m = &machine->m;
    const uint32_t whole = *inout_type;
    const hdi_spirv_type *type = hdi_spirv_type_at(m, whole);
    if (type->kind != 's') {
        *inout_type = type->element ? type->element : whole;
        return index * (type->kind == 'c' ? 1 : hdi_interpret_cells_of(machine, *inout_type));
    }
    uint64_t before = 0;
    for (uint64_t i = 0; i < index; i++)
        before += hdi_interpret_cells_of(machine, hdi_spirv_find(m, hdi_spirv_def_words(m, whole)[2 + i]));
    *inout_type = hdi_spirv_find(m, hdi_spirv_def_words(m, whole)[2 + index]);
    return before;
}

/* ---- numbers ---- */

static uint64_t float_result(const operation *o, double value) { return hdi_number_bits(value, o->type->width); }

static double float_mod(double a, double b) {
    const double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static bool compare_floats(uint32_t opcode, double a, double b) {
    const bool unordered = isnan(a) || isnan(b);
    switch (opcode) {
    case SpvOpFOrdEqual: return a == b;
    case SpvOpFUnordEqual: return unordered || a == b;
    case SpvOpFOrdNotEqual: return !unordered && a != b;
    case SpvOpFUnordNotEqual: return unordered || a != b;
    case SpvOpFOrdLessThan: return a < b;
    case SpvOpFUnordLessThan: return unordered || a < b;
    case SpvOpFOrdGreaterThan: return a > b;
    case SpvOpFUnordGreaterThan: return unordered || a > b;
    case SpvOpFOrdLessThanEqual: return a <= b;
    case SpvOpFUnordLessThanEqual: return unordered || a <= b;
    case SpvOpFOrdGreaterThanEqual: return a >= b;
    default: return unordered || a >= b;
    }
}

static uint64_t one_float(const operation *o, uint64_t a_bits, uint64_t b_bits, uint32_t width) {
    const double a = hdi_number_float(a_bits, width), b = hdi_number_float(b_bits, width);
    switch (o->opcode) {
    case SpvOpFNegate: return a_bits ^ UINT64_C(1) << (width - 1);
    case SpvOpFAdd: return float_result(o, a + b);
    case SpvOpFSub: return float_result(o, a - b);
    case SpvOpFMul: case SpvOpVectorTimesScalar: case SpvOpMatrixTimesScalar: return float_result(o, a * b);
    case SpvOpFDiv: return float_result(o, a / b);
    case SpvOpFRem: return float_result(o, fmod(a, b));
    case SpvOpFMod: return float_result(o, float_mod(a, b));
    case SpvOpQuantizeToF16: return float_result(o, hdi_number_float(hdi_number_bits(a, 16), 16));
    case SpvOpFConvert: return float_result(o, a);
    case SpvOpConvertFToU: return hdi_number_to_integer(a, o->type->width, false);
    case SpvOpConvertFToS: return hdi_number_to_integer(a, o->type->width, true);
    case SpvOpIsNan: return (uint64_t)(isnan(a) != 0);
    case SpvOpIsInf: return (uint64_t)(isinf(a) != 0);
    default: return compare_floats(o->opcode, a, b);
    }
}

static uint64_t reverse_bits(uint64_t bits, uint32_t width) {
    uint64_t out = 0;
    for (uint32_t i = 0; i < width; i++) out |= (bits >> i & 1) << (width - 1 - i);
    return out;
}

static uint64_t one_integer(const operation *o, uint64_t a, uint64_t b, uint32_t width) {
    uint64_t out = 0;
    switch (o->opcode) {
    case SpvOpConvertSToF: return hdi_number_from_integer(a, width, true, o->type->width);
    case SpvOpConvertUToF: return hdi_number_from_integer(a, width, false, o->type->width);
    case SpvOpBitReverse: return reverse_bits(a, width);
    case SpvOpBitCount: return (uint64_t)__builtin_popcountll(a);
    default: return hdi_spirv_calculate(o->opcode, a, b, width, &out) ? out & hdi_number_mask(o->type->width) : 0;
    }
}

/* Component by component; an operand of one number goes with each. */
static void by_component(operation *o) {
    const hdi_spirv_type *type = type_of(o, 0);
    const bool floats = type->kind == 'f' || type->kind == 'm';
    const uint64_t *a = operand(o, 0), *b = o->count > 1 ? operand(o, 1) : a;
    const uint64_t b_cells = o->count > 1 ? hdi_interpret_cells_of(o->x->machine, type_def_of(o, 1)) : o->cells;
    const uint32_t width = type->kind == 'm' ? hdi_spirv_type_at(o->x->m, type->element)->width : type->width;
    for (uint64_t i = 0; i < o->cells; i++) {
        const uint64_t second = b[b_cells == 1 ? 0 : i];
        o->out[i] = floats ? one_float(o, a[i], second, width) : one_integer(o, a[i], second, width);
    }
}

/* ---- bits ---- */

static void bitcast(operation *o) {
    const uint32_t from = type_of(o, 0)->width, to = o->type->width;
    const uint64_t *a = operand(o, 0);
    for (uint64_t i = 0; i < o->cells; i++) {
        uint64_t bits = 0;
        for (uint64_t bit = 0; bit < to; bit += HDI_MIN(from, to)) {
            const uint64_t at = i * to + bit;
            bits |= (a[at / from] >> at % from & hdi_number_mask(HDI_MIN(from, to))) << bit;
        }
        o->out[i] = bits;
    }
}

static void bit_field(operation *o) {
    const bool inserts = o->opcode == SpvOpBitFieldInsert;
    const uint64_t *base = operand(o, 0), *insert = operand(o, inserts ? 1 : 0);
    const uint64_t first = *operand(o, inserts ? 2 : 1), count = *operand(o, inserts ? 3 : 2);
    const uint32_t width = o->type->width;
    const bool fits = first <= width && count <= width - first && count > 0;
    for (uint64_t i = 0; i < o->cells; i++) {
        const uint64_t mask = fits ? hdi_number_mask((uint32_t)count) << first : 0,
                       field = fits ? (base[i] & mask) >> first : 0;
        if (inserts) o->out[i] = fits ? (base[i] & ~mask) | (insert[i] << first & mask) : base[i];
        else if (o->opcode == SpvOpBitFieldSExtract && fits)
            o->out[i] = (uint64_t)hdi_number_signed(field, (uint32_t)count) & hdi_number_mask(width);
        else o->out[i] = field;
    }
}

/* Sum and carry, low and high half: two parts of equal size. */
static void extended(operation *o) {
    uint32_t part_def = o->type_def;
    hdi_interpret_part(o->x->machine, &part_def, 0);
    const hdi_spirv_type *part = hdi_spirv_type_at(o->x->m, part_def);
    const uint64_t *a = operand(o, 0), *b = operand(o, 1), mask = hdi_number_mask(part->width);
    for (uint32_t i = 0; i < part->count; i++) {
        uint64_t low = 0, high = 0;
        switch (o->opcode) {
        case SpvOpIAddCarry: low = (a[i] + b[i]) & mask, high = low < a[i]; break;
        case SpvOpISubBorrow: low = (a[i] - b[i]) & mask, high = a[i] < b[i]; break;
        default: {
            const bool is_signed = o->opcode == SpvOpSMulExtended;
            __extension__ typedef unsigned __int128 wide;
            const uint64_t x = is_signed ? (uint64_t)hdi_number_signed(a[i], part->width) : a[i];
            const uint64_t y = is_signed ? (uint64_t)hdi_number_signed(b[i], part->width) : b[i];
            wide product = (wide)x * y;
            if (is_signed && x >> 63) product -= (wide)y << 64;
            if (is_signed && y >> 63) product -= (wide)x << 64;
            low = (uint64_t)product & mask;
            high = (uint64_t)(product >> part->width) & mask;
            break;
        }
        }
        o->out[i] = low;
        o->out[part->count + i] = high;
    }
}

/* Products of integers of 8 bits in a word, or of vectors; summed up, and where it saturates never beyond the type. */
static void integer_dot(operation *o) {
    const bool adds = o->opcode >= SpvOpSDotAccSatKHR, packed = type_of(o, 0)->count == 1;
    const bool a_signed = o->opcode != SpvOpUDotKHR && o->opcode != SpvOpUDotAccSatKHR;
    const bool b_signed = a_signed && o->opcode != SpvOpSUDotKHR && o->opcode != SpvOpSUDotAccSatKHR;
    const uint32_t width = packed ? 8 : type_of(o, 0)->width, count = packed ? 4 : type_of(o, 0)->count,
                   of = o->type->width;
    const uint64_t *a = operand(o, 0), *b = operand(o, 1);
    __extension__ typedef __int128 wide;
    wide sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t x = packed ? a[0] >> 8 * i & 255 : a[i], y = packed ? b[0] >> 8 * i & 255 : b[i];
        sum += (a_signed ? (wide)hdi_number_signed(x, width) : (wide)x) *
               (b_signed ? (wide)hdi_number_signed(y, width) : (wide)y);
    }
    if (adds) {
        const uint64_t before = *operand(o, 2);
        const wide most = (wide)hdi_number_mask(of - a_signed), least = a_signed ? -most - 1 : 0;
        sum += a_signed ? (wide)hdi_number_signed(before, of) : (wide)before;
        sum = sum > most ? most : sum < least ? least : sum;
    }
    *o->out = (uint64_t)sum & hdi_number_mask(of);
}

/* ---- composites ---- */

static void construct(operation *o) {
    if (o->type->kind == 'c') { /* the one number everywhere */
        for (uint64_t i = 0; i < o->cells; i++) o->out[i] = *operand(o, 0);
        return;
    }
    uint64_t at = 0;
    for (uint32_t i = 0; i < o->count; i++) {
        const uint64_t cells = hdi_interpret_cells_of(o->x->machine, type_def_of(o, i));
        memcpy(o->out + at, operand(o, i), cells * sizeof *o->out);
        at += cells;
    }
}

/* Where the path leads within a value of the type. */
static uint64_t follow(const operation *o, uint32_t type_def, const uint32_t *path, uint32_t count) {
    uint64_t at = 0;
    for (uint32_t i = 0; i < count; i++) at += hdi_interpret_part(o->x->machine, &type_def, path[i]);
    return at;
}

static void shuffle(operation *o) {
    const uint32_t first = type_of(o, 0)->count;
    for (uint32_t i = 2; i < o->count; i++) {
        const uint32_t from = o->words[i];
        o->out[i - 2] = from == UINT32_MAX ? 0 : from < first ? operand(o, 0)[from] : operand(o, 1)[from - first];
    }
}

static void composite(operation *o) {
    const size_t bytes = o->cells * sizeof *o->out;
    switch (o->opcode) {
    case SpvOpCompositeConstruct: construct(o); break;
    case SpvOpVectorShuffle: shuffle(o); break;
    case SpvOpCompositeExtract: {
        const uint64_t at = follow(o, type_def_of(o, 0), o->words + 1, o->count - 1);
        /* of a matrix' share */
        const bool inside = at + o->cells <= hdi_interpret_cells_of(o->x->machine, type_def_of(o, 0));
        if (inside) memcpy(o->out, operand(o, 0) + at, bytes);
        else memset(o->out, 0, bytes);
        break;
    }
    case SpvOpCompositeInsert: {
        const uint64_t part = hdi_interpret_cells_of(o->x->machine, type_def_of(o, 0));
        const uint64_t at = follow(o, o->type_def, o->words + 2, o->count - 2);
        memmove(o->out, operand(o, 1), bytes);
        if (at + part <= o->cells) memcpy(o->out + at, operand(o, 0), part * sizeof *o->out);
        break;
    }
    case SpvOpVectorExtractDynamic: {
        const uint64_t index = *operand(o, 1);
        *o->out = index < type_of(o, 0)->count ? operand(o, 0)[index] : 0;
        break;
    }
    case SpvOpVectorInsertDynamic: {
        const uint64_t index = *operand(o, 2);
        memmove(o->out, operand(o, 0), bytes);
        if (index < o->cells) o->out[index] = *operand(o, 1);
        break;
    }
    default: memmove(o->out, operand(o, 0), bytes); break; /* CopyObject, CopyLogical */
    }
}

static void choose(operation *o) {
    const bool each = type_of(o, 0)->count > 1;
    const uint64_t *condition = operand(o, 0), *yes = operand(o, 1), *no = operand(o, 2);
    for (uint64_t i = 0; i < o->cells; i++) o->out[i] = condition[each ? i : 0] ? yes[i] : no[i];
}

/* ---- matrices: columns after each other ---- */

/* The sum of `count` products, numbers of `a` and `b` standing so far apart; each step is rounded. */
static uint64_t sum_of_products(const uint64_t *a, uint64_t a_step, const uint64_t *b, uint32_t count, uint32_t width) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t product =
            hdi_number_bits(hdi_number_float(a[i * a_step], width) * hdi_number_float(b[i], width), width);
        sum =
            i == 0 ? product : hdi_number_bits(hdi_number_float(sum, width) + hdi_number_float(product, width), width);
    }
    return sum;
}

static void matrix(operation *o) {
    const hdi_spirv_type *a_type = type_of(o, 0), *b_type = o->count > 1 ? type_of(o, 1) : a_type;
    const hdi_spirv_type *a_column = hdi_spirv_type_at(o->x->m, a_type->element);
    const uint64_t *a = operand(o, 0), *b = o->count > 1 ? operand(o, 1) : a;
    const uint32_t rows = a_type->kind == 'm' ? a_column->count : a_type->count, columns = a_type->count;
    const uint32_t width = a_type->kind == 'm' ? a_column->width : a_type->width;
    switch (o->opcode) {
    case SpvOpDot: *o->out = sum_of_products(a, 1, b, columns, width); break;
    case SpvOpTranspose:
        for (uint32_t r = 0; r < rows; r++)
            for (uint32_t c = 0; c < columns; c++) o->out[r * columns + c] = a[c * rows + r];
        break;
    case SpvOpVectorTimesMatrix: /* a row of `rows` numbers: that many times one of each column */
        for (uint32_t c = 0; c < b_type->count; c++) o->out[c] = sum_of_products(a, 1, b + c * rows, rows, width);
        break;
    case SpvOpMatrixTimesVector:
        for (uint32_t r = 0; r < rows; r++) o->out[r] = sum_of_products(a + r, rows, b, columns, width);
        break;
    case SpvOpMatrixTimesMatrix:
        for (uint32_t c = 0; c < b_type->count; c++)
            for (uint32_t r = 0; r < rows; r++)
                o->out[c * rows + r] = sum_of_products(a + r, rows, b + c * columns, columns, width);
        break;
    default: /* OuterProduct */
        for (uint32_t c = 0; c < b_type->count; c++)
            for (uint32_t r = 0; r < rows; r++) o->out[c * rows + r] = sum_of_products(a + r, 1, b + c, 1, width);
        break;
    }
}

/* ---- one instruction ---- */

static void any_or_all(operation *o) {
    const bool all = o->opcode == SpvOpAll;
    uint64_t out = all;
    for (uint32_t i = 0; i < type_of(o, 0)->count; i++) out = all ? out & operand(o, 0)[i] : out | operand(o, 0)[i];
    *o->out = out;
}

void hdi_interpret_operation(hdi_interpreter *x, uint32_t opcode, uint32_t type_def, const uint32_t *words,
                             uint32_t count, uint64_t *out) {
    const uint64_t cells = hdi_interpret_cells_of(x->machine, type_def);
    operation o = { x, opcode, type_def, hdi_spirv_type_at(x->m, type_def), words, count, out, cells };
    switch (opcode) {
    case SpvOpUndef: memset(out, 0, o.cells * sizeof *out); break;
    case SpvOpExtInst:
        if (hdi_spirv_find(x->m, words[0]) == x->m->glsl_set)
            hdi_interpret_glsl(x, type_def, words + 1, count - 1, out);
        break;
    case SpvOpBitcast: bitcast(&o); break;
    case SpvOpBitFieldInsert: case SpvOpBitFieldSExtract: case SpvOpBitFieldUExtract: bit_field(&o); break;
    case SpvOpIAddCarry: case SpvOpISubBorrow: case SpvOpUMulExtended: case SpvOpSMulExtended: extended(&o); break;
    case SpvOpSDotKHR: case SpvOpUDotKHR: case SpvOpSUDotKHR: case SpvOpSDotAccSatKHR: case SpvOpUDotAccSatKHR:
    case SpvOpSUDotAccSatKHR: integer_dot(&o); break;
    case SpvOpVectorExtractDynamic:
    case SpvOpVectorInsertDynamic: case SpvOpVectorShuffle: case SpvOpCompositeConstruct:
    case SpvOpCompositeExtract:
    case SpvOpCompositeInsert: case SpvOpCopyObject: case SpvOpCopyLogical: composite(&o); break;
    case SpvOpDot:
    case SpvOpTranspose: case SpvOpVectorTimesMatrix: case SpvOpMatrixTimesVector: case SpvOpMatrixTimesMatrix:
    case SpvOpOuterProduct: matrix(&o); break;
    case SpvOpSelect: choose(&o); break;
    case SpvOpAny: case SpvOpAll: any_or_all(&o); break;
    default: by_component(&o); break;
    }
}
