/* flavour_ops.c: instructions on values. Most are the same in both flavours and are copied, operand by operand; what
 * only shaders have is made of others. */
#include "spirv/flavour.h"
#include <spirv/unified1/OpenCL.std.h>

static uint32_t value_at(hdi_flavour *w, const uint32_t *words, uint32_t at) {
    return hdi_flavour_value(w, hdi_spirv_find(w->m, words[at]));
}
static const hdi_spirv_type *type_at(const hdi_flavour *w, const uint32_t *words, uint32_t at) {
    return hdi_spirv_type_of(w->m, hdi_spirv_find(w->m, words[at]));
}
static uint32_t number_like(hdi_flavour *w, const hdi_spirv_type *type, uint64_t bits) {
    return hdi_flavour_number(w, type->kind, type->width, type->count, bits);
}

/* ---- copied ---- */

static void copy(hdi_flavour *w, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(w->m, inst);
    uint32_t count = 0, *out = hdi_arena_alloc(&w->m->arena, (words[0] >> 16) * sizeof *out);
    if (!out) w->stop = !hdi_spirv_no_memory(w->m);
    for (hdi_spirv_operands o = hdi_spirv_operands_of(w->m, inst); !w->stop && hdi_spirv_next(&o);) {
        const uint32_t def = hdi_spirv_find(w->m, o.word);
        switch (o.letter) {
        case 't': out[count++] = hdi_flavour_type(w, def); break;
        case 'r': case 'i': case 'v': case 'a': case 'c': out[count++] = hdi_flavour_value(w, def); break;
        default: out[count++] = o.word; break;
        }
    }
    if (!w->stop) hdi_flavour_add(w, &w->code, words[0] & 0xFFFF, out, count);
}

/* ---- composites ---- */

/* Vectors are made of numbers, not of shorter vectors: some drivers take no others. */
static uint32_t construct(hdi_flavour *w, uint32_t type_def, const uint32_t *words) {
    const hdi_spirv_type *type = hdi_spirv_type_at(w->m, type_def);
    uint32_t length = words[0] >> 16, count = 0, id = hdi_flavour_type(w, type_def);
    uint32_t *parts = hdi_arena_alloc(&w->m->arena, (length + 4) * sizeof *parts);
    if (!parts) w->stop = !hdi_spirv_no_memory(w->m);
    for (uint32_t i = 3; i < length && !w->stop; i++) {
        const hdi_spirv_type *of = type_at(w, words, i);
        const uint32_t value = value_at(w, words, i);
        for (uint32_t k = 0; k < (hdi_spirv_is_vector(type) ? of->count : 1); k++)
            parts[count++] = hdi_spirv_is_vector(type) ? hdi_flavour_component(w, of, value, k) : value;
    }
    return w->stop ? 0 : hdi_flavour_compose(w, id, parts, count);
}

/* The vector that the last index of a path selects a component of; 0 where it selects something else, or there is one
 * index only. Readers that make LLVM's code of a module take vectors by themselves. */
static uint32_t vector_within(hdi_flavour *w, uint32_t type_def, const uint32_t *path, uint32_t count) {
    for (uint32_t i = 0; i + 1 < count; i++) type_def = hdi_spirv_part_type(w->m, type_def, path[i]);
    return count > 1 && hdi_spirv_is_vector(hdi_spirv_type_at(w->m, type_def)) ? hdi_flavour_type(w, type_def) : 0;
}

/* The part of a value that the `count` indices in `path` lead to. */
static uint32_t part(hdi_flavour *w, uint32_t type, uint32_t value, const uint32_t *path, uint32_t count) {
    uint32_t operands[HDI_SPIRV_MAX_TYPE_DEPTH + 2] = { value };
    memcpy(operands + 1, path, count * sizeof *path);
    return hdi_flavour_make(w, SpvOpCompositeExtract, type, operands, 1 + count);
}

/* 0 where it is copied as it is. */
static uint32_t extract(hdi_flavour *w, uint32_t type_def, const uint32_t *words) {
    const uint32_t count = (words[0] >> 16) - 4;
    const uint32_t vector = vector_within(w, w->m->defs[hdi_spirv_find(w->m, words[3])].type, words + 4, count);
    if (!vector) return 0;
    return HDI_FLAVOUR_MAKE(w, SpvOpCompositeExtract, hdi_flavour_type(w, type_def),
                            part(w, vector, value_at(w, words, 3), words + 4, count - 1), words[3 + count]);
}

static uint32_t insert(hdi_flavour *w, uint32_t type_def, const uint32_t *words) {
    const uint32_t count = (words[0] >> 16) - 5, vector = vector_within(w, type_def, words + 5, count),
                   whole = value_at(w, words, 4);
    if (!vector) return 0;
    const uint32_t before = part(w, vector, whole, words + 5, count - 1);
    uint32_t operands[HDI_SPIRV_MAX_TYPE_DEPTH +
                      2] = { HDI_FLAVOUR_MAKE(w, SpvOpCompositeInsert, vector, value_at(w, words, 3), before,
                                              words[4 + count]), whole };
    memcpy(operands + 2, words + 5, (count - 1) * sizeof *words);
    return hdi_flavour_make(w, SpvOpCompositeInsert, hdi_flavour_type(w, type_def), operands, 1 + count);
}

/* Of vectors of one length it is copied; of others readers take none. */
static uint32_t shuffle(hdi_flavour *w, uint32_t type_def, const uint32_t *words) {
    const hdi_spirv_type *a = type_at(w, words, 3), *b = type_at(w, words, 4);
    const uint32_t count = (words[0] >> 16) - 5;
    uint32_t parts[4];
    if (a->count == b->count) return 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = words[5 + i] == UINT32_MAX ? 0 : words[5 + i]; /* which asks for nothing special */
        parts[i] = at < a->count ? hdi_flavour_component(w, a, value_at(w, words, 3), at)
                                 : hdi_flavour_component(w, b, value_at(w, words, 4), at - a->count);
    }
    return hdi_flavour_compose(w, hdi_flavour_type(w, type_def), parts, count);
}

/* A scalar as often as a vector has components. */
static uint32_t splat(hdi_flavour *w, char kind, uint32_t width, uint32_t count, uint32_t value) {
    const uint32_t parts[] = { value, value, value, value };
    return count == 1 ? value : hdi_flavour_compose(w, hdi_flavour_vector(w, kind, width, count), parts, count);
}

static uint32_t select(hdi_flavour *w, uint32_t inst, uint32_t type_def, const uint32_t *words) {
    const hdi_spirv_type *type = hdi_spirv_type_at(w->m, type_def);
    uint32_t condition = value_at(w, words, 3);
    if (!strchr("fib", type->kind)) {
        w->stop = !hdi_spirv_unsupported(w->m, inst, "a choice between values that are no numbers or vectors");
        return 0;
    }
    if (type_at(w, words, 3)->count == 1) condition = splat(w, 'b', 0, type->count, condition);
    return HDI_FLAVOUR_MAKE(w, SpvOpSelect, hdi_flavour_type(w, type_def), condition, value_at(w, words, 4),
                            value_at(w, words, 5));
}

static uint32_t any_or_all(hdi_flavour *w, uint32_t opcode, const uint32_t *words) {
    const hdi_spirv_type *type = type_at(w, words, 3);
    const uint32_t value = value_at(w, words, 3), yes = hdi_flavour_scalar(w, 'b', 0);
    uint32_t result = hdi_flavour_component(w, type, value, 0);
    for (uint32_t i = 1; i < type->count; i++)
        result = HDI_FLAVOUR_MAKE(w, opcode == SpvOpAny ? SpvOpLogicalOr : SpvOpLogicalAnd, yes, result,
                                  hdi_flavour_component(w, type, value, i));
    return result;
}

/* ---- bits ---- */

static uint32_t shift(hdi_flavour *w, uint32_t opcode, uint32_t type_def, const uint32_t *words) {
    const hdi_spirv_type *type = hdi_spirv_type_at(w->m, type_def);
    const uint32_t by = hdi_flavour_widen(w, type_at(w, words, 4), value_at(w, words, 4), type->width);
    return HDI_FLAVOUR_MAKE(w, opcode, hdi_flavour_type(w, type_def), value_at(w, words, 3), by);
}

/* A scalar operand as a vector of 32-bit numbers like `type`. */
static uint32_t spread(hdi_flavour *w, const hdi_spirv_type *type, const uint32_t *words, uint32_t at) {
    return splat(w, 'i', 32, type->count, hdi_flavour_widen(w, type_at(w, words, at), value_at(w, words, at), 32));
}

/* The lowest `count` bits, of 0 to 32. */
static uint32_t low_bits(hdi_flavour *w, const hdi_spirv_type *type, uint32_t count) {
    const uint32_t id = hdi_flavour_vector(w, 'i', 32, type->count), yes = hdi_flavour_vector(w, 'b', 0, type->count);
    const uint32_t one = number_like(w, type, 1),
                   masked = HDI_FLAVOUR_MAKE(w, SpvOpBitwiseAnd, id, count, number_like(w, type, 31));
    const uint32_t some =
        HDI_FLAVOUR_MAKE(w, SpvOpISub, id, HDI_FLAVOUR_MAKE(w, SpvOpShiftLeftLogical, id, one, masked), one);
    const uint32_t whole = HDI_FLAVOUR_MAKE(w, SpvOpUGreaterThanEqual, yes, count, number_like(w, type, 32));
    return HDI_FLAVOUR_MAKE(w, SpvOpSelect, id, whole, number_like(w, type, UINT32_MAX), some);
}

static uint32_t bit_field(hdi_flavour *w, uint32_t opcode, uint32_t type_def, const uint32_t *words) {
    const hdi_spirv_type *type = hdi_spirv_type_at(w->m, type_def);
    const bool insert = opcode == SpvOpBitFieldInsert;
    const uint32_t id = hdi_flavour_type(w, type_def), yes = hdi_flavour_vector(w, 'b', 0, type->count),
                   base = value_at(w, words, 3);
    const uint32_t top = number_like(w, type, 31), zero = number_like(w, type, 0);
    const uint32_t from = HDI_FLAVOUR_MAKE(w, SpvOpBitwiseAnd, id, spread(w, type, words, insert ? 5 : 4), top);
    const uint32_t count = spread(w, type, words, insert ? 6 : 5);
    const uint32_t mask = low_bits(w, type, count);
    if (insert) { /* (x & ~mask) | (y << from & mask), the mask at its place */
        const uint32_t placed = HDI_FLAVOUR_MAKE(w, SpvOpShiftLeftLogical, id, mask, from);
        const uint32_t given = HDI_FLAVOUR_MAKE(w, SpvOpShiftLeftLogical, id, value_at(w, words, 4), from);
        const uint32_t kept = HDI_FLAVOUR_MAKE(w, SpvOpBitwiseAnd, id, base, HDI_FLAVOUR_MAKE(w, SpvOpNot, id, placed));
        return HDI_FLAVOUR_MAKE(w, SpvOpBitwiseOr, id, kept, HDI_FLAVOUR_MAKE(w, SpvOpBitwiseAnd, id, given, placed));
    }
    const uint32_t low =
        HDI_FLAVOUR_MAKE(w, SpvOpBitwiseAnd, id, HDI_FLAVOUR_MAKE(w, SpvOpShiftRightLogical, id, base, from), mask);
    if (opcode == SpvOpBitFieldUExtract) return low;
    const uint32_t rest = HDI_FLAVOUR_MAKE(w, SpvOpISub, id, number_like(w, type, 32), count);
    const uint32_t away = HDI_FLAVOUR_MAKE(w, SpvOpBitwiseAnd, id, rest, top);
    const uint32_t high = HDI_FLAVOUR_MAKE(w, SpvOpShiftLeftLogical, id, low, away);
    const uint32_t back = HDI_FLAVOUR_MAKE(w, SpvOpShiftRightArithmetic, id, high, away);
    return HDI_FLAVOUR_MAKE(w, SpvOpSelect, id, HDI_FLAVOUR_MAKE(w, SpvOpIEqual, yes, count, zero), zero, back);
}

/* Neighbouring bits, pairs, fours, bytes and halves change places. */
static uint32_t bit_reverse(hdi_flavour *w, uint32_t type_def, const uint32_t *words) {
    static const uint32_t masks[] = { 0x55555555, 0x33333333, 0x0F0F0F0F, 0x00FF00FF, 0x0000FFFF };
    const hdi_spirv_type *type = hdi_spirv_type_at(w->m, type_def);
    uint32_t id = hdi_flavour_type(w, type_def), x = value_at(w, words, 3);
    for (uint32_t i = 0; i < HDI_COUNT(masks); i++) {
        const uint32_t by = number_like(w, type, 1u << i), mask = number_like(w, type, masks[i]);
        const uint32_t down =
            HDI_FLAVOUR_MAKE(w, SpvOpBitwiseAnd, id, HDI_FLAVOUR_MAKE(w, SpvOpShiftRightLogical, id, x, by), mask);
        const uint32_t up =
            HDI_FLAVOUR_MAKE(w, SpvOpShiftLeftLogical, id, HDI_FLAVOUR_MAKE(w, SpvOpBitwiseAnd, id, x, mask), by);
        x = HDI_FLAVOUR_MAKE(w, SpvOpBitwiseOr, id, down, up);
    }
    return x;
}

static uint32_t bit_count(hdi_flavour *w, uint32_t type_def, const uint32_t *words) {
    const hdi_spirv_type *type = hdi_spirv_type_at(w->m, type_def), *of = type_at(w, words, 3);
    const uint32_t counted =
        HDI_FLAVOUR_MAKE(w, SpvOpBitCount, hdi_flavour_vector(w, 'i', of->width, of->count), value_at(w, words, 3));
    return hdi_flavour_widen(w, of, counted, type->width);
}

/* ---- numbers ---- */

/* Two results in a struct: sum and carry, low and high half. */
static uint32_t extended(hdi_flavour *w, uint32_t opcode, uint32_t type_def, const uint32_t *words) {
    const uint32_t first = hdi_spirv_part_type(w->m, type_def, 0), id = hdi_flavour_type(w, first);
    const uint32_t a = value_at(w, words, 3), b = value_at(w, words, 4);
    const hdi_spirv_type *type = hdi_spirv_type_at(w->m, first);
    const uint32_t yes = hdi_flavour_vector(w, 'b', 0, type->count), zero = number_like(w, type, 0),
                   one = number_like(w, type, 1);
    uint32_t low, high;
    if (opcode == SpvOpIAddCarry || opcode == SpvOpISubBorrow) {
        low = HDI_FLAVOUR_MAKE(w, opcode == SpvOpIAddCarry ? SpvOpIAdd : SpvOpISub, id, a, b);
        high = opcode == SpvOpIAddCarry ? HDI_FLAVOUR_MAKE(w, SpvOpULessThan, yes, low, a)
                                        : HDI_FLAVOUR_MAKE(w, SpvOpULessThan, yes, a, b);
        high = HDI_FLAVOUR_MAKE(w, SpvOpSelect, id, high, one, zero);
    } else {
        low = HDI_FLAVOUR_MAKE(w, SpvOpIMul, id, a, b);
        high =
            hdi_flavour_extended(w, opcode == SpvOpUMulExtended ? OpenCLstd_UMul_hi : OpenCLstd_SMul_hi, id, a, b, 0);
    }
    return hdi_flavour_compose(w, hdi_flavour_type(w, type_def), HDI_FLAVOUR_IDS(low, high));
}

/* Rounded to half and back. */
static uint32_t quantize(hdi_flavour *w, uint32_t type_def, const uint32_t *words) {
    const hdi_spirv_type *type = hdi_spirv_type_at(w->m, type_def);
    return hdi_flavour_convert(w, type->count,
                               hdi_flavour_convert(w, type->count, value_at(w, words, 3), type->width, 16), 16,
                               type->width);
}

static uint32_t convert(hdi_flavour *w, uint32_t inst, uint32_t type_def, const uint32_t *words) {
    const hdi_spirv_type *type = hdi_spirv_type_at(w->m, type_def);
    const uint32_t rounding = hdi_spirv_decor_of(w->m, hdi_spirv_find(w->m, words[2]))->rounding;
    if (rounding != HDI_SPIRV_NONE && rounding != SpvFPRoundingModeRTE) {
        w->stop = !hdi_spirv_unsupported(w->m, inst, "a rounding mode other than to nearest even");
        return 0;
    }
    return hdi_flavour_convert(w, type->count, value_at(w, words, 3), type_at(w, words, 3)->width, type->width);
}

static uint32_t dot(hdi_flavour *w, uint32_t inst, uint32_t opcode) {
    const uint32_t *words = hdi_spirv_words(w->m, inst);
    if (!(w->p->target->offers & HDI_SPIRV_OFFERS_INTEGER_DOT)) {
        w->stop = !hdi_spirv_unsupported(w->m, inst, "the device has no integer dot products");
        return 0;
    }
    const uint32_t adds = opcode >= SpvOpSDotAccSatKHR ? 1 : 0, last = 5 + adds,
                   type = hdi_flavour_type(w, hdi_spirv_find(w->m, words[1]));
    const hdi_spirv_type *of = type_at(w, words, 3);
    const bool packed = of->count == 1, bytes = of->count == 4 && of->width == 8;
    uint32_t operands[] = { value_at(w, words, 3), value_at(w, words, 4), adds ? value_at(w, words, 5) : 0, 0 },
             count = 2 + adds;
    if (packed) operands[count++] = words[last];
    hdi_flavour_use(w, SpvCapabilityDotProductKHR);
    hdi_flavour_use(w, packed ? SpvCapabilityDotProductInput4x8BitPackedKHR
                     : bytes ? SpvCapabilityDotProductInput4x8BitKHR : SpvCapabilityDotProductInputAllKHR);
    return hdi_flavour_make(w, opcode, type, operands, count);
}

/* ---- matrices: arrays of columns ---- */

static uint32_t column(hdi_flavour *w, const hdi_spirv_type *matrix, uint32_t value, uint32_t i) {
    return HDI_FLAVOUR_MAKE(w, SpvOpCompositeExtract, hdi_flavour_type(w, matrix->element), value, i);
}

/* The sum of the matrix's columns, each times a component of the vector. */
static uint32_t times_vector(hdi_flavour *w, const hdi_spirv_type *matrix, uint32_t value, const hdi_spirv_type *vector,
                             uint32_t by) {
    const uint32_t type = hdi_flavour_type(w, matrix->element);
    uint32_t sum = 0;
    for (uint32_t i = 0; i < matrix->count; i++) {
        const uint32_t term = HDI_FLAVOUR_MAKE(w, SpvOpVectorTimesScalar, type, column(w, matrix, value, i),
                                               hdi_flavour_component(w, vector, by, i));
        sum = sum ? HDI_FLAVOUR_MAKE(w, SpvOpFAdd, type, sum, term) : term;
    }
    return sum;
}

static uint32_t product(hdi_flavour *w, uint32_t opcode, uint32_t type_def, const uint32_t *words) {
    const hdi_spirv_type *type = hdi_spirv_type_at(w->m, type_def), *a_type = type_at(w, words, 3);
    const hdi_spirv_type *b_type = opcode == SpvOpTranspose ? a_type : type_at(w, words, 4);
    const uint32_t id = hdi_flavour_type(w, type_def), a = value_at(w, words, 3),
                   b = opcode == SpvOpTranspose ? 0 : value_at(w, words, 4);
    const uint32_t scalar = hdi_flavour_scalar(w, type->kind == 'm' ? 'f' : type->kind, type->width);
    uint32_t parts[4], count = type->count;
    if (opcode == SpvOpMatrixTimesVector) return times_vector(w, a_type, a, b_type, b);
    for (uint32_t i = 0; i < count; i++) {
        switch (opcode) {
        case SpvOpMatrixTimesScalar:
            parts[i] = HDI_FLAVOUR_MAKE(w, SpvOpVectorTimesScalar, hdi_flavour_type(w, type->element),
                                        column(w, a_type, a, i), b);
            break;
        case SpvOpVectorTimesMatrix:
            parts[i] = HDI_FLAVOUR_MAKE(w, SpvOpDot, scalar, a, column(w, b_type, b, i));
            break;
        case SpvOpMatrixTimesMatrix:
            parts[i] = times_vector(w, a_type, a, hdi_spirv_type_at(w->m, b_type->element), column(w, b_type, b, i));
            break;
        case SpvOpOuterProduct:
            parts[i] = HDI_FLAVOUR_MAKE(w, SpvOpVectorTimesScalar, hdi_flavour_type(w, type->element), a,
                                        hdi_flavour_component(w, b_type, b, i));
            break;
        default: { /* transposed: component i of each column */
            uint32_t row[4];
            for (uint32_t k = 0; k < a_type->count; k++)
                row[k] = HDI_FLAVOUR_MAKE(w, SpvOpCompositeExtract, scalar, column(w, a_type, a, k), i);
            parts[i] = hdi_flavour_compose(w, hdi_flavour_type(w, type->element), row, a_type->count);
            break;
        }
        }
    }
    return hdi_flavour_compose(w, id, parts, count);
}

/* ---- one instruction ---- */


static void group(hdi_flavour *w, uint32_t inst, uint32_t opcode) {
    if (!(w->p->target->offers & HDI_SPIRV_OFFERS_SUBGROUPS)) {
        w->stop = !hdi_spirv_unsupported(w->m, inst, "the device has no subgroups");
        return;
    }
    hdi_spirv_use_part(w->p, HDI_SPIRV_PART_SUBGROUPS);
    const bool sums = opcode >= SpvOpGroupNonUniformIAdd && opcode <= SpvOpGroupNonUniformLogicalXor;
    const bool clustered = sums && hdi_spirv_words(w->m, inst)[4] == SpvGroupOperationClusteredReduce;
    hdi_flavour_use(w, clustered ? SpvCapabilityGroupNonUniformClustered
                     : sums ? SpvCapabilityGroupNonUniformArithmetic : hdi_spirv_op_row(opcode)->capability);
    hdi_flavour_use(w, SpvCapabilityGroupNonUniform);
    copy(w, inst);
}

/* What has no form of its own here is made of others: its id; 0 where it is copied. */
static uint32_t made(hdi_flavour *w, uint32_t inst, uint32_t opcode, uint32_t type_def) {
    const uint32_t *words = hdi_spirv_words(w->m, inst);
    switch (opcode) {
    case SpvOpLoad: return hdi_flavour_load(w, inst);
    case SpvOpArrayLength: return hdi_flavour_array_length(w, inst);
    case SpvOpExtInst: return hdi_flavour_glsl(w, inst);
    case SpvOpCompositeConstruct: return construct(w, type_def, words);
    case SpvOpCompositeExtract: return extract(w, type_def, words);
    case SpvOpCompositeInsert: return insert(w, type_def, words);
    case SpvOpVectorShuffle: return shuffle(w, type_def, words);
    case SpvOpSelect: return select(w, inst, type_def, words);
    case SpvOpAny: case SpvOpAll: return any_or_all(w, opcode, words);
    case SpvOpShiftLeftLogical:
    case SpvOpShiftRightLogical: case SpvOpShiftRightArithmetic: return shift(w, opcode, type_def, words);
    case SpvOpBitFieldInsert:
    case SpvOpBitFieldSExtract: case SpvOpBitFieldUExtract: return bit_field(w, opcode, type_def, words);
    case SpvOpBitReverse: return bit_reverse(w, type_def, words);
    case SpvOpBitCount: return bit_count(w, type_def, words);
    case SpvOpFConvert: return convert(w, inst, type_def, words);
    case SpvOpQuantizeToF16: return quantize(w, type_def, words);
    case SpvOpIAddCarry:
    case SpvOpISubBorrow:
            case SpvOpUMulExtended: case SpvOpSMulExtended: return extended(w, opcode, type_def, words);
    case SpvOpSDotKHR: case SpvOpUDotKHR: case SpvOpSUDotKHR: case SpvOpSDotAccSatKHR: case SpvOpUDotAccSatKHR:
    case SpvOpSUDotAccSatKHR: return dot(w, inst, opcode);
    case SpvOpMatrixTimesScalar: case SpvOpVectorTimesMatrix: case SpvOpMatrixTimesVector: case SpvOpMatrixTimesMatrix:
    case SpvOpOuterProduct: case SpvOpTranspose: return product(w, opcode, type_def, words);
    default: return 0;
    }
}

bool hdi_flavour_is_alias(const hdi_flavour *w, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(w->m, inst), opcode = words[0] & 0xFFFF;
    if (opcode != SpvOpBitcast && opcode != SpvOpCopyLogical && opcode != SpvOpCopyObject) return false;
    const hdi_spirv_type *type = hdi_spirv_type_at(w->m, hdi_spirv_find(w->m, words[1])), *from = type_at(w, words, 3);
    if (opcode == SpvOpBitcast)
        return type->kind == from->kind && type->width == from->width && type->count == from->count;
    return type->kind != 'p';
}

static bool is_silent(uint32_t opcode) {
    switch (opcode) {
    case SpvOpLabel:
    case SpvOpLine: case SpvOpNoLine: case SpvOpNop: case SpvOpPhi: case SpvOpVariable: case SpvOpLoopMerge:
    case SpvOpSelectionMerge: case SpvOpAccessChain: case SpvOpInBoundsAccessChain: case SpvOpUndef: return true;
    default: return false;
    }
}

/* The value `id` is the result `def`, which may have been given an id before: by a phi further up. */
static void settle(hdi_flavour *w, uint32_t def, uint32_t id) {
    uint32_t before = w->ids[def];
    w->ids[def] = id;
    if (!before || w->stop) return;
    w->ids[def] = before;
    if (w->code.items[w->last + 2] == id) w->code.items[w->last + 2] = before;
    else
        hdi_flavour_add(w, &w->code, SpvOpCopyObject,
                        HDI_FLAVOUR_IDS(hdi_flavour_type(w, w->m->defs[def].type), before, id));
}

static bool refuse_matrices(hdi_flavour *w, uint32_t inst, uint32_t opcode) {
    const bool matrix = hdi_spirv_is_matrix(opcode);
    if (matrix && !w->stop) w->stop = !hdi_spirv_unsupported(w->m, inst, "OpenCL has no cooperative matrices here");
    return matrix;
}

void hdi_flavour_instruction(hdi_flavour *w, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(w->m, inst), opcode = words[0] & 0xFFFF;
    const uint32_t def = hdi_spirv_op_row(opcode)->operands[0] == 't' ? hdi_spirv_find(w->m, words[2]) : 0;
    const bool needed = def == 0 || (w->p->facts[def] & HDI_SPIRV_NEEDED && w->p->same[def] == def);
    if (is_silent(opcode) || hdi_flavour_is_alias(w, inst) || refuse_matrices(w, inst, opcode)) return;
    if (hdi_spirv_is_atomic(opcode)) {
        const uint32_t id = hdi_flavour_atomic(w, inst, opcode);
        if (def) settle(w, def, id);
        return;
    }
    if (opcode == SpvOpStore || opcode == SpvOpCopyMemory) {
        hdi_flavour_store(w, inst);
    } else if (opcode == SpvOpControlBarrier || opcode == SpvOpMemoryBarrier) {
        hdi_flavour_barrier(w, inst, opcode);
    } else if (opcode == SpvOpExtInst &&
               (hdi_spirv_find(w->m, words[3]) != w->m->glsl_set || words[4] == 35 || words[4] == 51)) {
        if (hdi_spirv_find(w->m, words[3]) == w->m->glsl_set)
            w->stop = !hdi_spirv_unsupported(w->m, inst,
                                             "GLSL.std.450 Modf and Frexp through a pointer have no form here");
    } else if (needed && hdi_spirv_is_group(opcode)) {
        group(w, inst, opcode);
    } else if (needed) {
        const uint32_t id = made(w, inst, opcode, hdi_spirv_find(w->m, words[1]));
        if (id) settle(w, def, id);
        else if (!w->stop) copy(w, inst);
    }
}
