/* typing.c: the types of operands inside of functions and constant expressions. Most opcodes have a rule in
 * op_table.inc: a letter for the result, then one for each id operand (optional ones last). The others are told apart
 * here, or in memory.c where pointers are involved. Relies on declare.c and blocks.c. Result:  F float, I int, U
 * unsigned, B bool, N any of them, W 32-bit int: scalar or vector; G float, V unsigned, Y bool,
 *          K 32-bit int: scalar; Q 4 x u32, 2 3 4: float vector of that many.
 * Operand: = as the result; p as the one before; i int like the result, h i of any width, b h of 32 bits, g float of as
 * many;
 *          q int like the one before; j int, y bool, k 32-bit int: scalar; x bool vector; s scalar of the result's
 *          kind; v vector, l vector or scalar of the result's type; n any scalar or vector; Q 2 4 as above. A + at the
 *          end: a cooperative matrix counts as a vector. */
#include "spirv/module.h"

/* ---- rules ---- */

/* A type as the rules see it; kind 0 for what they do not take. */
typedef struct form {
    char     kind; /* f i b */
    bool     is_signed, is_matrix;
    uint32_t width, count, def;
} form;

static form form_of(const hdi_spirv_module *m, uint32_t type_def, bool matrices) {
    const hdi_spirv_type *type = hdi_spirv_type_at(m, type_def);
    form f = { .def = type_def, .is_signed = type->is_signed, .width = type->width, .count = type->count };
    if (hdi_spirv_is_plain(type)) f.kind = type->kind;
    if (type->kind == 'c' && matrices) {
        f.kind = hdi_spirv_type_at(m, type->element)->kind;
        f.is_matrix = true;
    }
    return f;
}

static bool same_count(form a, form b) { return a.count == b.count && a.is_matrix == b.is_matrix; }

static bool result_fits(form r, char letter) {
    bool scalar = r.count == 1;
    switch (letter) {
    case 'F': return r.kind == 'f';
    case 'H': return r.kind == 'f' || r.kind == 'h';
    case 'I': return r.kind == 'i';
    case 'U': return r.kind == 'i' && !r.is_signed;
    case 'B': return r.kind == 'b';
    case 'N': return r.kind != 0;
    case 'W': return r.kind == 'i' && r.width == 32;
    case 'G': return r.kind == 'f' && scalar;
    case 'V': return r.kind == 'i' && scalar && !r.is_signed;
    case 'K': return r.kind == 'i' && scalar && r.width == 32;
    case 'Y': return r.kind == 'b' && scalar;
    case 'Q': return r.kind == 'i' && r.count == 4 && r.width == 32 && !r.is_signed;
    default: return r.kind == 'f' && r.count == (uint32_t)(letter - '0'); /* 2 3 4 */
    }
}

static bool operand_fits(const hdi_spirv_module *m, form o, form before, form r, char letter) {
    bool scalar = o.count == 1;
    switch (letter) {
    case '=': return o.def == r.def;
    case 'p': return o.def == before.def;
    case 'i': return o.kind == 'i' && o.width == r.width && same_count(o, r);
    case 'h': return o.kind == 'i' && same_count(o, r);
    case 'b': return o.kind == 'i' && same_count(o, r) && o.width == 32;
    case 'g': return o.kind == 'f' && same_count(o, r);
    case 'q': return o.kind == 'i' && o.width == before.width && same_count(o, before);
    case 'j': return o.kind == 'i' && scalar;
    case 'k': return o.kind == 'i' && scalar && o.width == 32;
    case 'y': return o.kind == 'b' && scalar;
    case 'x': return o.kind == 'b' && !scalar;
    case 'n': return o.kind != 0;
    case 's': return o.kind == r.kind && scalar && o.width == r.width;
    case 'v': return o.kind && !scalar && hdi_spirv_type_at(m, o.def)->element == r.def;
    case 'l': return o.kind == 0 ? false : scalar ? o.def == r.def : hdi_spirv_type_at(m, o.def)->element == r.def;
    default: return result_fits(o, letter);
    }
}

static bool apply_rule(hdi_spirv_module *m, uint32_t inst, uint32_t opcode, const char *rule, const uint32_t *ids,
                       uint32_t id_count) {
    size_t length = strlen(rule);
    bool matrices = rule[length - 1] == '+';
    bool resizes = opcode == SpvOpUConvert || opcode == SpvOpSConvert || opcode == SpvOpFConvert;
    length -= matrices;
    form r = form_of(m, hdi_spirv_find(m, hdi_spirv_words(m, inst)[1]), matrices), before = r;
    if (!result_fits(r, rule[0]))
        return hdi_spirv_bad(m, inst, "its result is of a type that the instruction does not give");
    if (!resizes && hdi_spirv_is_storage_only(m, hdi_spirv_type_at(m, r.def)))
        return hdi_spirv_bad(m, inst, "it calculates with 8 or 16 bits without the capability");
    for (uint32_t i = 0; i < id_count; i++) {
        form o = form_of(m, m->defs[hdi_spirv_find(m, ids[i])].type, matrices);
        if (i + 1 >= length || !operand_fits(m, o, before, r, rule[i + 1]))
            return hdi_spirv_bad(m, inst, "operand %u, id %u, is of a type that does not go with its result", i,
                                 ids[i]);
        if (resizes && o.width == r.width) return hdi_spirv_bad(m, inst, "it converts to the width that there is");
        before = o;
    }
    return true;
}

/* ---- composites ---- */

static uint32_t type_of_id(const hdi_spirv_module *m, uint32_t id) { return m->defs[hdi_spirv_find(m, id)].type; }

static bool is_int_scalar(const hdi_spirv_type *type) { return type->kind == 'i' && type->count == 1; }
static bool is_bool_scalar(const hdi_spirv_type *type) { return type->kind == 'b' && type->count == 1; }

/* Follows literal indices into a type; 0 where they lead nowhere. */
static uint32_t follow(const hdi_spirv_module *m, uint32_t type_def, const uint32_t *path, uint32_t count) {
    for (uint32_t i = 0; i < count && type_def; i++) {
        const hdi_spirv_type *type = hdi_spirv_type_at(m, type_def);
        if (type->kind == 's' && path[i] < type->count)
            type_def = hdi_spirv_find(m, hdi_spirv_def_words(m, type_def)[2 + path[i]]);
        else if (type->kind == 'c' || (type->kind != 's' && path[i] < type->count)) type_def = type->element;
        else type_def = 0;
    }
    return type_def;
}

static bool construct(hdi_spirv_module *m, uint32_t inst, uint32_t result, const uint32_t *ids, uint32_t count) {
    const hdi_spirv_type *type = hdi_spirv_type_at(m, result);
    uint64_t parts = 0;
    bool fits = true;
    for (uint32_t i = 0; i < count && fits; i++) {
        uint32_t part = type_of_id(m, ids[i]);
        const hdi_spirv_type *part_type = hdi_spirv_type_at(m, part);
        if (hdi_spirv_is_vector(type)) {
            fits = part == type->element || (hdi_spirv_is_vector(part_type) && part_type->element == type->element);
            parts += part_type->count;
        } else {
            uint32_t wanted = type->kind == 's' ? follow(m, result, &i, 1) : type->element;
            fits = part != 0 && part == wanted;
            parts++;
        }
    }
    bool composite =
        hdi_spirv_is_vector(type) || type->kind == 's' || type->kind == 'a' || type->kind == 'm' || type->kind == 'c';
    fits &= composite && parts == (type->kind == 'c' ? 1 : type->count) && (!hdi_spirv_is_vector(type) || count > 1);
    return fits || hdi_spirv_bad(m, inst, "its parts do not make a value of its type");
}

static bool shuffle(hdi_spirv_module *m, uint32_t inst, uint32_t result, const uint32_t *words, uint32_t count) {
    const hdi_spirv_type *type = hdi_spirv_type_at(m, result);
    const hdi_spirv_type *a = hdi_spirv_type_at(m, type_of_id(m, words[0])),
                         *b = hdi_spirv_type_at(m, type_of_id(m, words[1]));
    bool fits = hdi_spirv_is_vector(type) && hdi_spirv_is_vector(a) && hdi_spirv_is_vector(b) &&
                a->element == type->element && b->element == type->element &&
                count - 2 == type->count;
    for (uint32_t i = 2; i < count && fits; i++) fits = words[i] < a->count + b->count || words[i] == UINT32_MAX;
    return fits || hdi_spirv_bad(m, inst, "its vectors or indices do not make a vector of its type");
}

static bool composite(hdi_spirv_module *m, uint32_t inst, uint32_t opcode, uint32_t result, const uint32_t *words,
                      uint32_t count) {
    const hdi_spirv_type *type = hdi_spirv_type_at(m, result);
    uint32_t first = count ? type_of_id(m, words[0]) : 0;
    uint32_t second = count > 1 && opcode != SpvOpCompositeExtract ? type_of_id(m, words[1]) : 0;
    const hdi_spirv_type *first_type = hdi_spirv_type_at(m, first), *second_type = hdi_spirv_type_at(m, second);
    bool fits = false;
    switch (opcode) {
    case SpvOpCompositeConstruct: return construct(m, inst, result, words, count);
    case SpvOpVectorShuffle: return shuffle(m, inst, result, words, count);
    case SpvOpCompositeExtract: fits = first && count > 1 && follow(m, first, words + 1, count - 1) == result; break;
    case SpvOpCompositeInsert:
        fits = first && count > 2 && second == result && follow(m, second, words + 2, count - 2) == first;
        break;
    case SpvOpVectorExtractDynamic:
        fits = hdi_spirv_is_vector(first_type) && first_type->element == result && is_int_scalar(second_type);
        break;
    case SpvOpVectorInsertDynamic:
        fits = hdi_spirv_is_vector(type) && first == result && second == type->element &&
               is_int_scalar(hdi_spirv_type_at(m, type_of_id(m, words[2])));
        break;
    case SpvOpCopyObject: fits = first == result && first != 0; break;
    case SpvOpCopyLogical:
        fits = first != result && type->kind && (type->kind == 's' || type->kind == 'a') &&
               first_type->alike == type->alike;
        break;
    default: break;
    }
    return fits || hdi_spirv_bad(m, inst, "its operands and indices do not lead to its result's type");
}

static bool select_rule(hdi_spirv_module *m, uint32_t inst, uint32_t result, const uint32_t *ids) {
    const hdi_spirv_type *type = hdi_spirv_type_at(m, result), *condition = hdi_spirv_type_at(m, type_of_id(m, ids[0]));
    bool whole =
        m->version >= 0x10400 && (type->kind == 's' || type->kind == 'a' || type->kind == 'm' || type->kind == 'c');
    bool fits = type_of_id(m, ids[1]) == result && type_of_id(m, ids[2]) == result &&
                ((is_bool_scalar(condition) &&
                  (whole || (hdi_spirv_is_plain(type) && (type->count == 1 || m->version >= 0x10400)))) ||
                 (hdi_spirv_is_plain(type) && condition->kind == 'b' && condition->count == type->count));
    return fits || hdi_spirv_bad(m, inst, "condition and values do not go with its result");
}

static bool bitcast(hdi_spirv_module *m, uint32_t inst, uint32_t result, uint32_t id) {
    form r = form_of(m, result, true), o = form_of(m, type_of_id(m, id), true);
    bool numbers = r.kind && o.kind && r.kind != 'b' && o.kind != 'b';
    bool fits = numbers && r.is_matrix == o.is_matrix &&
                r.width * (r.is_matrix ? 1 : r.count) == o.width * (o.is_matrix ? 1 : o.count);
    return fits || hdi_spirv_bad(m, inst, "the two types are not of equal size");
}

/* ---- matrices and wide arithmetic ---- */

static bool matrix(hdi_spirv_module *m, uint32_t inst, uint32_t opcode, uint32_t result, const uint32_t *ids,
                   uint32_t count) {
    uint32_t first = type_of_id(m, ids[0]), second = count > 1 ? type_of_id(m, ids[1]) : 0;
    const hdi_spirv_type *type = hdi_spirv_type_at(m, result), *a = hdi_spirv_type_at(m, first),
                         *b = hdi_spirv_type_at(m, second);
    const hdi_spirv_type *column = hdi_spirv_type_at(m, type->element), *a_column = hdi_spirv_type_at(m, a->element);
    const hdi_spirv_type *b_column = hdi_spirv_type_at(m, b->element);
    bool fits = false;
    switch (opcode) {
    case SpvOpMatrixTimesScalar:
        fits = (type->kind == 'm' && first == result && second == column->element) ||
               (type->kind == 'c' && first == result && second == type->element);
        break;
    case SpvOpVectorTimesMatrix:
        fits = b->kind == 'm' && hdi_spirv_is_vector(type) && first == b->element && type->element == a->element &&
               type->count == b->count;
        break;
    case SpvOpMatrixTimesVector:
        fits = a->kind == 'm' && hdi_spirv_is_vector(b) && result == a->element && b->element == a_column->element &&
               b->count == a->count;
        break;
    case SpvOpMatrixTimesMatrix:
        fits = type->kind == 'm' && a->kind == 'm' && b->kind == 'm' && type->element == a->element &&
               type->count == b->count && b_column->count == a->count && b_column->element == a_column->element;
        break;
    case SpvOpOuterProduct:
        fits = type->kind == 'm' && first == type->element && hdi_spirv_is_vector(b) && b->element == a->element &&
               b->count == type->count;
        break;
    default: /* Transpose */
        fits = type->kind == 'm' && a->kind == 'm' && type->count == a_column->count && column->count == a->count &&
               column->element == a_column->element;
        break;
    }
    return fits || hdi_spirv_bad(m, inst, "its matrices and vectors do not go together");
}

/* Two results in a struct: sum and carry, low and high half. */
static bool extended(hdi_spirv_module *m, uint32_t inst, uint32_t opcode, uint32_t result, const uint32_t *ids) {
    const uint32_t *words = hdi_spirv_def_words(m, result);
    bool fits =
        hdi_spirv_type_at(m, result)->kind == 's' && hdi_spirv_type_at(m, result)->count == 2 && words[2] == words[3];
    uint32_t part = fits ? hdi_spirv_find(m, words[2]) : 0;
    const hdi_spirv_type *type = hdi_spirv_type_at(m, part);
    fits &= type->kind == 'i' && (!type->is_signed || opcode == SpvOpSMulExtended) && type_of_id(m, ids[0]) == part &&
        type_of_id(m, ids[1]) == part;
    return fits || hdi_spirv_bad(m, inst, "its operands and result are not of one kind of integer");
}

static bool integer_dot(hdi_spirv_module *m, uint32_t inst, uint32_t opcode, uint32_t result, const uint32_t *words,
                        uint32_t count) {
    bool adds = opcode == SpvOpSDotAccSatKHR || opcode == SpvOpUDotAccSatKHR || opcode == SpvOpSUDotAccSatKHR;
    uint32_t ids = adds ? 3 : 2;
    const hdi_spirv_type *type = hdi_spirv_type_at(m, result), *a = hdi_spirv_type_at(m, type_of_id(m, words[0]));
    const hdi_spirv_type *b = hdi_spirv_type_at(m, type_of_id(m, words[1]));
    bool packed =
        is_int_scalar(a) && is_int_scalar(b) && a->width == 32 && b->width == 32 && count > ids && words[ids] == 0;
    bool vectors = hdi_spirv_is_vector(a) && hdi_spirv_is_vector(b) && a->kind == 'i' && b->kind == 'i' &&
                   a->count == b->count && a->width == b->width && count == ids;
    uint32_t needs = packed                           ? SpvCapabilityDotProductInput4x8BitPackedKHR
                     : a->width == 8 && a->count == 4 ? SpvCapabilityDotProductInput4x8BitKHR
                                                      : SpvCapabilityDotProductInputAllKHR;
    bool has = hdi_spirv_has(m, needs) || (vectors && hdi_spirv_has(m, SpvCapabilityDotProductInputAllKHR));
    bool fits = is_int_scalar(type) && (packed || vectors) && has && type->width >= (packed ? 8 : a->width) &&
                (!adds || type_of_id(m, words[2]) == result);
    return fits || hdi_spirv_bad(m, inst, "its vectors do not go with its result, or their capability is missing");
}

/* ---- subgroups ---- */

/* What op_table.inc does not say: scope, kind of sum with its capability, and indices that have to be constant. */
static bool subgroup(hdi_spirv_module *m, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t opcode = words[0] & 0xFFFF, length = words[0] >> 16;
    uint64_t scope = 0;
    if (!hdi_spirv_scope_fits(m, words[3], true) || !hdi_spirv_known(m, hdi_spirv_find(m, words[3]), &scope) ||
        scope != SpvScopeSubgroup)
        return hdi_spirv_bad(m, inst, "its scope is not the subgroup");
    if (opcode == SpvOpGroupNonUniformBallotBitCount)
        return words[4] <= SpvGroupOperationExclusiveScan || hdi_spirv_bad(m, inst, "group operation %u", words[4]);
    bool sums = opcode >= SpvOpGroupNonUniformIAdd && opcode <= SpvOpGroupNonUniformLogicalXor;
    bool clustered = sums && words[4] == SpvGroupOperationClusteredReduce;
    if (sums) {
        uint32_t needs = clustered ? SpvCapabilityGroupNonUniformClustered : SpvCapabilityGroupNonUniformArithmetic;
        if (words[4] > SpvGroupOperationClusteredReduce || length != (clustered ? 7u : 6u) || !hdi_spirv_has(m, needs))
            return hdi_spirv_bad(m, inst, "group operation %u, or its capability is missing", words[4]);
    }
    bool fixed = opcode == SpvOpGroupNonUniformQuadSwap ||
                 (m->version < 0x10500 &&
                  (opcode == SpvOpGroupNonUniformBroadcast || opcode == SpvOpGroupNonUniformQuadBroadcast));
    uint32_t index = clustered ? words[6] : fixed ? words[5] : 0;
    if (index && !hdi_spirv_is_constant(hdi_spirv_def_opcode(m, hdi_spirv_find(m, index))))
        return hdi_spirv_bad(m, inst, "id %u is not a constant", index);
    uint64_t size;
    const hdi_spirv_type *index_type = hdi_spirv_type_of(m, hdi_spirv_find(m, index));
    if (clustered && (index_type->kind != 'i' || index_type->is_signed))
        return hdi_spirv_bad(m, inst, "its cluster size is no unsigned integer");
    if (clustered && hdi_spirv_known(m, hdi_spirv_find(m, index), &size) && (size == 0 || (size & (size - 1))))
        return hdi_spirv_bad(m, inst, "clusters of %llu", (unsigned long long)size);
    return true;
}

/* ---- GLSL.std.450 ---- */

/* Rules by instruction number; NULL: outside of the subset. "m" determinant, "t" inverse, "*" through a pointer, "$" a
 * struct. */
static const char *const glsl_rules[] = {
    NULL, "F=", "F=", "F=", "F=", "Ii", "F=", "Ii", "F=", "F=",                     /* Round .. Ceil */
    "F=", "F=", "F=", "F=", "F=", "F=", "F=", "F=", "F=", "F=",                     /* Fract .. Sinh */
    "F=", "F=", "F=", "F=", "F=", "F==", "F==", "F=", "F=", "F=",                   /* Cosh .. Exp2 */
    "F=", "F=", "F=", "m", "t", "*", "$", "F==", "Iii", "Iii",                      /* Log2 .. SMin */
    "F==", "Iii", "Iii", "F===", "Iiii", "Iiii", "F===", NULL, "F==", "F===",       /* FMax .. SmoothStep */
    "F===", "*", "$", "F=h", "K4", "K4", "K2", "K2", "K2", NULL,                     /* Fma .. PackDouble2x32 */
    "2k", "2k", "2k", "4k", "4k", NULL, "Gl", "Glp", "3==", "F=",                   /* UnpackSnorm2x16 .. Normalize */
    "F===", "F==", "F==s", "Ib", "Ib", "Ib", NULL, NULL, NULL, "F==", "F==", "F===" /* FaceForward .. NClamp */
};

static bool glsl(hdi_spirv_module *m, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t number = words[4], count = (words[0] >> 16) - 5, result = hdi_spirv_find(m, words[1]);
    const char *rule = number < HDI_COUNT(glsl_rules) ? glsl_rules[number] : NULL;
    if (!rule)
        return hdi_spirv_bad(m, inst, "instruction %u of GLSL.std.450 is outside of the supported subset", number);
    const hdi_spirv_type *type = hdi_spirv_type_at(m, result);
    uint32_t first = count ? type_of_id(m, words[5]) : 0;
    const hdi_spirv_type *a = hdi_spirv_type_at(m, first), *column = hdi_spirv_type_at(m, a->element);
    bool fits;
    switch (rule[0]) {
    case 'm': fits = count == 1 && a->kind == 'm' && a->count == column->count && column->element == result; break;
    case 't': fits = count == 1 && a->kind == 'm' && a->count == column->count && first == result; break;
    case '$': {
        uint32_t zero = 0, one = 1, second = type->kind == 's' && type->count == 2 ? follow(m, result, &one, 1) : 0;
        const hdi_spirv_type *b = hdi_spirv_type_at(m, second);
        fits = count == 1 && a->kind == 'f' && second && follow(m, result, &zero, 1) == first &&
               (number == 36 ? second == first : b->kind == 'i' && b->width == 32 && b->count == a->count);
        break;
    }
    case '*': { /* Modf, Frexp: the second part goes through a pointer */
        uint32_t pointer = count == 2 ? hdi_spirv_find(m, words[6]) : 0;
        uint32_t second = hdi_spirv_type_of(m, pointer)->kind == 'p' ? hdi_spirv_type_of(m, pointer)->element : 0;
        const hdi_spirv_type *b = hdi_spirv_type_at(m, second);
        fits = second && first == result && type->kind == 'f' && hdi_spirv_may_write(m, pointer) &&
               (number == 35 ? second == first : b->kind == 'i' && b->width == 32 && b->count == type->count);
        break;
    }
    default:
        if (count + 1 != strlen(rule)) return hdi_spirv_bad(m, inst, "%u operands for instruction %u", count, number);
        return apply_rule(m, inst, SpvOpExtInst, rule, words + 5, count);
    }
    return fits || hdi_spirv_bad(m, inst, "the operands of instruction %u do not go with its result", number);
}

static bool extended_set(hdi_spirv_module *m, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t set = hdi_spirv_find(m, words[3]);
    if (set == m->glsl_set) return glsl(m, inst);
    bool silent = hdi_spirv_type_at(m, hdi_spirv_find(m, words[1]))->kind == 'v';
    return silent || hdi_spirv_bad(m, inst, "a non-semantic instruction has no result");
}

/* ---- control ---- */

static bool call(hdi_spirv_module *m, uint32_t inst, uint32_t def) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t count = (words[0] >> 16) - 4, callee = hdi_spirv_find(m, words[3]);
    const uint32_t *type = hdi_spirv_def_words(m, hdi_spirv_find(m, hdi_spirv_def_words(m, callee)[4]));
    bool fits = m->defs[callee].type == m->defs[def].type && count == (type[0] >> 16) - 3;
    for (uint32_t i = 0; i < count && fits; i++) {
        uint32_t argument = hdi_spirv_find(m, words[4 + i]), opcode = hdi_spirv_def_opcode(m, argument);
        bool pointer = hdi_spirv_type_of(m, argument)->kind == 'p';
        fits = m->defs[argument].type == hdi_spirv_find(m, type[3 + i]);
        if (pointer && opcode != SpvOpVariable && opcode != SpvOpFunctionParameter)
            return hdi_spirv_bad(m, inst, "argument %u is a pointer into a variable; have the compiler inline the call",
                                 i);
    }
    for (uint32_t e = 0; e < m->entry_count; e++) fits &= hdi_spirv_words(m, m->entries[e])[2] != words[3];
    return fits || hdi_spirv_bad(m, inst, "its arguments do not go with the function, or it calls an entry point");
}

static bool phi(hdi_spirv_module *m, uint32_t inst, uint32_t def) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    for (uint32_t i = 3; i < words[0] >> 16; i += 2)
        if (type_of_id(m, words[i]) != m->defs[def].type)
            return hdi_spirv_bad(m, inst, "id %u is of another type than its result", words[i]);
    return true;
}

/* ---- one instruction ---- */

/* What is known by neither rule nor pointer; true for what needs no types. */
static bool by_opcode(hdi_spirv_module *m, uint32_t inst, uint32_t opcode, const uint32_t *words, uint32_t count) {
    const uint32_t *all = hdi_spirv_words(m, inst);
    uint32_t result = hdi_spirv_find(m, all[1]);
    switch (opcode) {
    case SpvOpVectorExtractDynamic:
    case SpvOpVectorInsertDynamic: case SpvOpVectorShuffle: case SpvOpCompositeConstruct:
    case SpvOpCompositeExtract: case SpvOpCompositeInsert: case SpvOpCopyObject: case SpvOpCopyLogical:
        return composite(m, inst, opcode, result, words, count);
    case SpvOpSelect: return select_rule(m, inst, result, words);
    case SpvOpBitcast: return bitcast(m, inst, result, words[0]);
    case SpvOpMatrixTimesScalar: case SpvOpVectorTimesMatrix: case SpvOpMatrixTimesVector: case SpvOpMatrixTimesMatrix:
    case SpvOpOuterProduct: case SpvOpTranspose: return matrix(m, inst, opcode, result, words, count);
    case SpvOpIAddCarry: case SpvOpISubBorrow: case SpvOpUMulExtended: case SpvOpSMulExtended:
        return extended(m, inst, opcode, result, words);
    case SpvOpSDotKHR: case SpvOpUDotKHR: case SpvOpSUDotKHR: case SpvOpSDotAccSatKHR: case SpvOpUDotAccSatKHR:
    case SpvOpSUDotAccSatKHR: return integer_dot(m, inst, opcode, result, words, count);
    case SpvOpExtInst: return extended_set(m, inst);
    case SpvOpFunctionCall: return call(m, inst, hdi_spirv_find(m, all[2]));
    case SpvOpPhi: return phi(m, inst, hdi_spirv_find(m, all[2]));
    case SpvOpBranchConditional:
        return is_bool_scalar(hdi_spirv_type_at(m, type_of_id(m, all[1]))) ||
               hdi_spirv_bad(m, inst, "its condition is not a bool");
    case SpvOpSwitch: {
        const hdi_spirv_type *type = hdi_spirv_type_at(m, type_of_id(m, all[1]));
        return (is_int_scalar(type) && type->width <= 32) ||
               hdi_spirv_bad(m, inst, "it switches on something other than an integer of up to 32 bits");
    }
    default: return true;
    }
}

bool hdi_spirv_typing_rule(hdi_spirv_module *m, uint32_t inst, uint32_t opcode, uint32_t first_word) {
    const hdi_spirv_op *row = hdi_spirv_op_row(opcode);
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t length = words[0] >> 16;
    if (!row->types[0])
        return by_opcode(m, inst, opcode, words + first_word, length > first_word ? length - first_word : 0);
    uint32_t ids[8], id_count = 0;
    for (hdi_spirv_operands o = hdi_spirv_operands_of(m, inst); hdi_spirv_next(&o);)
        if (o.letter == 'i' && id_count < HDI_COUNT(ids)) ids[id_count++] = o.word;
    return apply_rule(m, inst, opcode, row->types, ids, id_count);
}

/* Values are what a register holds; pointers come from few places, so each has one root. */
static bool result_is_value(hdi_spirv_module *m, uint32_t inst, uint32_t opcode, uint32_t def) {
    const hdi_spirv_type *type = hdi_spirv_type_of(m, def);
    bool makes_pointers = opcode == SpvOpVariable || hdi_spirv_is_chain(opcode);
    bool makes_nothing = opcode == SpvOpFunctionCall || opcode == SpvOpExtInst;
    bool fits = type->kind &&
                (strchr("fibmasc", type->kind) || (type->kind == 'p' && makes_pointers) ||
                 (type->kind == 'v' && makes_nothing));
    if (!fits || (type->has_run_time_array && type->kind != 'p'))
        return hdi_spirv_bad(m, inst, "its result is of a type that has no values");
    if (type->kind != 'p' && type->plain_bytes > HDI_SPIRV_MAX_LOCAL_BYTES)
        return hdi_spirv_beyond(m, inst, "a value of more than %u bytes", HDI_SPIRV_MAX_LOCAL_BYTES);
    if (type->kind == 'p' && opcode == SpvOpCopyObject)
        m->defs[def].detail = hdi_spirv_root(m, hdi_spirv_find(m, hdi_spirv_words(m, inst)[3]));
    return true;
}

/* Numbers that may only be stored go to few instructions. */
static bool narrow_uses_fit(hdi_spirv_module *m, uint32_t inst, uint32_t opcode) {
    switch (opcode) {
    case SpvOpStore: case SpvOpCopyObject: case SpvOpUConvert: case SpvOpSConvert: case SpvOpFConvert: return true;
    default: break;
    }
    for (hdi_spirv_operands o = hdi_spirv_operands_of(m, inst); hdi_spirv_next(&o);) {
        if (o.letter != 'i' && o.letter != 'v' && o.letter != 'a') continue;
        const hdi_spirv_type *type = hdi_spirv_type_of(m, hdi_spirv_find(m, o.word));
        if (type->kind != 'p' && hdi_spirv_is_storage_only(m, type))
            return hdi_spirv_bad(m, inst, "it calculates with 8 or 16 bits (id %u) without the capability", o.word);
    }
    return true;
}

bool hdi_spirv_typing(hdi_spirv_module *m) {
    bool any_stored_only = false; /* few modules have such numbers */
    for (uint32_t i = 1; i < m->type_count; i++) any_stored_only |= hdi_spirv_is_storage_only(m, &m->types[i]);
    for (uint32_t b = 0; b < m->block_count; b++) {
        uint32_t function_type = m->defs[m->functions[m->blocks[b].function].def].type;
        for (uint32_t i = m->blocks[b].inst_first; i <= m->blocks[b].inst_end; i++) {
            uint32_t opcode = hdi_spirv_opcode(m, i);
            const uint32_t *words = hdi_spirv_words(m, i);
            bool typed = hdi_spirv_op_row(opcode)->operands[0] == 't', known = false;
            uint32_t def = typed ? hdi_spirv_find(m, words[2]) : 0;
            if (typed && !result_is_value(m, i, opcode, def)) return false;
            if (!hdi_spirv_typing_memory(m, i, def, &known)) return false;
            if (!known && !hdi_spirv_typing_rule(m, i, opcode, typed ? 3 : 1)) return false;
            if (any_stored_only && !narrow_uses_fit(m, i, opcode)) return false;
            if (hdi_spirv_is_group(opcode) && !subgroup(m, i)) return false;
            uint32_t returned = opcode == SpvOpReturnValue ? type_of_id(m, words[1]) : 0;
            bool nothing = hdi_spirv_type_at(m, function_type)->kind == 'v';
            if ((opcode == SpvOpReturn && !nothing) ||
                (opcode == SpvOpReturnValue && (nothing || returned != function_type)))
                return hdi_spirv_bad(m, i, "it does not return what its function says");
        }
    }
    return true;
}
