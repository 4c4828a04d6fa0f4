/* constant.c: one constant after the other: does it fit its type, and what is its value with the given specialisation?
 * Integers and bools are worked out, through constant expressions too, as array lengths and workgroup sizes need them;
 * of floats only literals. Relies on declare.c having seen everything in front of the constant. */
#include "spirv/module.h"

bool hdi_spirv_known(const hdi_spirv_module *m, uint32_t def, uint64_t *out_value) {
    const hdi_spirv_value *value = hdi_spirv_value_of(m, def);
    if (value->known) *out_value = value->bits;
    return value->known;
}

static uint64_t mask_of(uint32_t width) { return width >= 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1; }

/* Bits of a number of `width`, with its sign carried up. */
static int64_t sign_extend(uint64_t bits, uint32_t width) {
    uint64_t sign = UINT64_C(1) << (width - 1);
    return (int64_t)(((bits & mask_of(width)) ^ sign) - sign);
}

/* ---- constant expressions ---- */

/* a / b, a rem b, a mod b of integers. False where the result is not defined. */
static bool divide(uint32_t opcode, uint64_t a, uint64_t b, uint32_t width, uint64_t *out) {
    if ((b & mask_of(width)) == 0) return false;
    int64_t x = sign_extend(a, width), y = sign_extend(b, width);
    bool is_signed = opcode == SpvOpSDiv || opcode == SpvOpSRem || opcode == SpvOpSMod;
    if (is_signed && y == -1) {
        if (x == sign_extend(UINT64_C(1) << (width - 1), width)) return false;
        *out = opcode == SpvOpSDiv ? (uint64_t)-x : 0;
        return true;
    }
    a &= mask_of(width);
    b &= mask_of(width);
    switch (opcode) {
    case SpvOpUDiv: *out = a / b; return true;
    case SpvOpUMod: *out = a % b; return true;
    case SpvOpSDiv: *out = (uint64_t)(x / y); return true;
    case SpvOpSRem: *out = (uint64_t)(x % y); return true;
    default: *out = (uint64_t)(x % y != 0 && (x % y < 0) != (y < 0) ? x % y + y : x % y); return true;
    }
}

static bool compare(uint32_t opcode, uint64_t a, uint64_t b, uint32_t width) {
    int64_t x = sign_extend(a, width), y = sign_extend(b, width);
    a &= mask_of(width);
    b &= mask_of(width);
    switch (opcode) {
    case SpvOpIEqual: case SpvOpLogicalEqual: return a == b;
    case SpvOpINotEqual: case SpvOpLogicalNotEqual: return a != b;
    case SpvOpUGreaterThan: return a > b;
    case SpvOpUGreaterThanEqual: return a >= b;
    case SpvOpULessThan: return a < b;
    case SpvOpULessThanEqual: return a <= b;
    case SpvOpSGreaterThan: return x > y;
    case SpvOpSGreaterThanEqual: return x >= y;
    case SpvOpSLessThan: return x < y;
    default: return x <= y;
    }
}

bool hdi_spirv_calculate(uint32_t opcode, uint64_t a, uint64_t b, uint32_t width, uint64_t *out) {
    bool shift =
        opcode == SpvOpShiftRightLogical || opcode == SpvOpShiftRightArithmetic || opcode == SpvOpShiftLeftLogical;
    if (shift && b >= width) return false;
    switch (opcode) {
    case SpvOpUConvert: *out = a & mask_of(width); return true;
    case SpvOpSConvert: *out = (uint64_t)sign_extend(a, width); return true;
    case SpvOpSNegate: *out = 0 - a; return true;
    case SpvOpNot: *out = ~a; return true;
    case SpvOpLogicalNot: *out = !a; return true;
    case SpvOpIAdd: *out = a + b; return true;
    case SpvOpISub: *out = a - b; return true;
    case SpvOpIMul: *out = a * b; return true;
    case SpvOpBitwiseAnd: case SpvOpLogicalAnd: *out = a & b; return true;
    case SpvOpBitwiseOr: case SpvOpLogicalOr: *out = a | b; return true;
    case SpvOpBitwiseXor: *out = a ^ b; return true;
    case SpvOpShiftLeftLogical: *out = a << b; return true;
    case SpvOpShiftRightLogical: *out = (a & mask_of(width)) >> b; return true;
    case SpvOpShiftRightArithmetic: {
        int64_t value = sign_extend(a, width);
        *out = value < 0 ? ~(~(uint64_t)value >> b) : (uint64_t)value >> b;
        return true;
    }
    case SpvOpUDiv:
    case SpvOpUMod: case SpvOpSDiv: case SpvOpSRem: case SpvOpSMod: return divide(opcode, a, b, width, out);
    case SpvOpIEqual: case SpvOpLogicalEqual: case SpvOpINotEqual: case SpvOpLogicalNotEqual: case SpvOpUGreaterThan:
    case SpvOpUGreaterThanEqual: case SpvOpULessThan: case SpvOpULessThanEqual: case SpvOpSGreaterThan:
    case SpvOpSGreaterThanEqual:
    case SpvOpSLessThan: case SpvOpSLessThanEqual: *out = compare(opcode, a, b, width); return true;
    default: return false;
    }
}

bool hdi_spirv_calculate_glsl(uint32_t number, uint64_t a, uint64_t b, uint32_t width, uint64_t *out) {
    const bool least = number == 38 || number == 39, most = number == 41 || number == 42,
               is_signed = number == 39 || number == 42;
    if (number == 73) { /* FindILsb */
        *out = (uint32_t)a ? (uint32_t)__builtin_ctz((uint32_t)a) : UINT32_MAX;
        return true;
    }
    if (least || most) *out = compare(is_signed ? SpvOpSLessThan : SpvOpULessThan, a, b, width) == least ? a : b;
    return least || most;
}

uint32_t hdi_spirv_constant_part(const hdi_spirv_module *m, uint32_t def, const uint32_t *path, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t opcode = hdi_spirv_def_opcode(m, def);
        bool composite = opcode == SpvOpConstantComposite || opcode == SpvOpSpecConstantComposite;
        const uint32_t *words = hdi_spirv_def_words(m, def);
        if (!composite || path[i] >= (words[0] >> 16) - 3) return 0;
        def = hdi_spirv_find(m, words[3 + path[i]]);
    }
    return def;
}

static bool is_allowed(uint32_t opcode) {
    switch (opcode) {
    case SpvOpUConvert:
    case SpvOpSConvert: case SpvOpFConvert: case SpvOpQuantizeToF16: case SpvOpSNegate: case SpvOpNot:
    case SpvOpIAdd: case SpvOpISub: case SpvOpIMul: case SpvOpUDiv: case SpvOpSDiv: case SpvOpUMod: case SpvOpSRem:
    case SpvOpSMod: case SpvOpShiftRightLogical: case SpvOpShiftRightArithmetic: case SpvOpShiftLeftLogical:
    case SpvOpBitwiseOr:
    case SpvOpBitwiseXor: case SpvOpBitwiseAnd: case SpvOpVectorShuffle: case SpvOpCompositeExtract:
    case SpvOpCompositeInsert: case SpvOpLogicalOr: case SpvOpLogicalAnd: case SpvOpLogicalNot: case SpvOpLogicalEqual:
    case SpvOpLogicalNotEqual: case SpvOpSelect: case SpvOpIEqual: case SpvOpINotEqual: case SpvOpULessThan:
    case SpvOpSLessThan:
    case SpvOpUGreaterThan: case SpvOpSGreaterThan: case SpvOpULessThanEqual: case SpvOpSLessThanEqual:
    case SpvOpUGreaterThanEqual: case SpvOpSGreaterThanEqual: return true;
    default: return false;
    }
}

static bool expression(hdi_spirv_module *m, uint32_t inst, uint32_t def, hdi_spirv_value *value) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t opcode = words[3], length = words[0] >> 16;
    if (!is_allowed(opcode))
        return hdi_spirv_bad(m, inst, "%s is not allowed in a constant expression", hdi_spirv_op_name(opcode));
    uint32_t args[3] = { 0 }, arg_count = 0;
    for (hdi_spirv_operands o = hdi_spirv_operands_of(m, inst); hdi_spirv_next(&o);) {
        if (o.letter != 'i') continue;
        uint32_t arg = hdi_spirv_find(m, o.word), arg_opcode = hdi_spirv_def_opcode(m, arg);
        if (!hdi_spirv_is_constant(arg_opcode) && arg_opcode != SpvOpUndef)
            return hdi_spirv_bad(m, inst, "id %u is not a constant", o.word);
        if (arg_count < 3) args[arg_count++] = arg;
    }
    if (!m->input->checked && !hdi_spirv_typing_rule(m, inst, opcode, 4)) return false;
    const hdi_spirv_type *type = hdi_spirv_type_of(m, def);
    if (type->count != 1 || (type->kind != 'i' && type->kind != 'b')) return true;
    uint64_t a = 0, b = 0;
    if (opcode == SpvOpCompositeExtract) {
        value->known = hdi_spirv_known(m, hdi_spirv_constant_part(m, args[0], words + 5, length - 5), &value->bits);
    } else if (opcode == SpvOpSelect) {
        value->known = hdi_spirv_known(m, args[0], &a) && hdi_spirv_known(m, args[a ? 1 : 2], &value->bits);
    } else if (hdi_spirv_type_of(m, args[0])->kind != 'f' && hdi_spirv_known(m, args[0], &a) &&
               (arg_count == 1 || hdi_spirv_known(m, args[1], &b))) {
        value->known = hdi_spirv_calculate(opcode, a, b, hdi_spirv_type_of(m, args[0])->width, &value->bits);
        value->bits &= mask_of(type->width);
    }
    return true;
}

/* ---- one constant ---- */

/* The constituents fit the parts of the type. */
static bool composite(hdi_spirv_module *m, uint32_t inst, const hdi_spirv_type *type) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t count = (words[0] >> 16) - 3, type_def = hdi_spirv_find(m, words[1]);
    bool is_struct = type->kind == 's', vector = hdi_spirv_is_vector(type);
    if (type->kind == 'c' ? count != 1
                          : !(is_struct || vector || type->kind == 'a' || type->kind == 'm') || count != type->count)
        return hdi_spirv_bad(m, inst, "%u parts do not make a value of its type", count);
    bool may_be_spec = (words[0] & 0xFFFF) == SpvOpSpecConstantComposite;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t part = hdi_spirv_find(m, words[3 + i]), opcode = hdi_spirv_def_opcode(m, part);
        uint32_t wanted = is_struct ? hdi_spirv_find(m, hdi_spirv_def_words(m, type_def)[2 + i]) : type->element;
        bool fits = hdi_spirv_is_constant(opcode) && (may_be_spec || !hdi_spirv_value_of(m, part)->spec);
        if (!(fits || opcode == SpvOpUndef) || m->defs[part].type != wanted)
            return hdi_spirv_bad(m, inst, "part %u is no constant of the type that belongs there", i);
    }
    return true;
}

static bool literal(hdi_spirv_module *m, uint32_t inst, const hdi_spirv_type *type, hdi_spirv_value *value) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    if ((type->kind != 'i' && type->kind != 'f') || type->count != 1 || words[0] >> 16 != (type->width > 32 ? 5u : 4u))
        return hdi_spirv_bad(m, inst, "its words do not make a number of its type");
    value->bits = (words[3] | (type->width > 32 ? (uint64_t)words[4] << 32 : 0)) & mask_of(type->width);
    value->known = true;
    return true;
}

/* The value from outside takes the place of the module's own. */
static bool specialise(hdi_spirv_module *m, uint32_t inst, uint32_t def, const hdi_spirv_type *type,
                       hdi_spirv_value *value) {
    uint32_t spec_id = hdi_spirv_decor_of(m, def)->spec_id;
    if (spec_id == HDI_SPIRV_NONE) return true;
    for (uint32_t i = 0; i < m->input->spec_count; i++) {
        if (m->input->spec_ids[i] != spec_id) continue;
        const uint32_t bits = m->input->spec_values[i];
        if (type->kind == 'f' && type->width == 64)
            return hdi_spirv_bad(m, inst, "specialisation constant %u is a double, which 32 bits do not set",
                                 spec_id);
        const uint64_t wide = type->is_signed ? (uint64_t)(int64_t)(int32_t)bits : bits;
        value->bits = type->kind == 'b' ? bits != 0 : wide & mask_of(type->width);
    }
    return true;
}

bool hdi_spirv_constant(hdi_spirv_module *m, uint32_t inst, uint32_t def) {
    uint32_t opcode = hdi_spirv_opcode(m, inst);
    const hdi_spirv_type *type = hdi_spirv_type_of(m, def);
    m->defs[def].detail = m->value_count;
    hdi_spirv_value *value = &m->values[m->value_count++];
    value->spec = opcode >= SpvOpSpecConstantTrue && opcode <= SpvOpSpecConstantOp;
    if (!type->kind || !strchr("fibmasc", type->kind)) return hdi_spirv_bad(m, inst, "its type has no constants");
    if (hdi_spirv_is_storage_only(m, type))
        return hdi_spirv_bad(m, inst, "a constant of 8 or 16 bits without the capability");
    if (type->plain_bytes > HDI_SPIRV_MAX_LOCAL_BYTES)
        return hdi_spirv_beyond(m, inst, "a constant of more than %u bytes", HDI_SPIRV_MAX_LOCAL_BYTES);
    switch (opcode) {
    case SpvOpConstantTrue: case SpvOpConstantFalse: case SpvOpSpecConstantTrue: case SpvOpSpecConstantFalse:
        if (type->kind != 'b' || type->count != 1) return hdi_spirv_bad(m, inst, "its type is not bool");
        *value = (hdi_spirv_value){ opcode == SpvOpConstantTrue || opcode == SpvOpSpecConstantTrue, true, value->spec };
        return specialise(m, inst, def, type, value);
    case SpvOpConstant: return literal(m, inst, type, value);
    case SpvOpSpecConstant: return literal(m, inst, type, value) && specialise(m, inst, def, type, value);
    case SpvOpConstantNull: value->known = type->count == 1 && hdi_spirv_is_plain(type); return true;
    case SpvOpSpecConstantOp: return expression(m, inst, def, value);
    default: return m->input->checked || composite(m, inst, type);
    }
}
