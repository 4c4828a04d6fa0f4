/* lower_groups.c: what vendors, old extensions and later ones let the lanes of a subgroup do, as what they can do
 * everywhere. Some is only called otherwise. A rotation reads from a lane that is computed, quads look at their four
 * bits of a ballot, and partitions go through all lanes. */
#include "spirv/lower_images.h"

/* Numbers that older headers lack. */
enum { ROTATE = 4431, QUAD_ALL = 5110, QUAD_ANY = 5111, PARTITION = 5296 };
enum { PARTITIONED_REDUCE = 6, PARTITIONED_INCLUSIVE = 7, PARTITIONED_EXCLUSIVE = 8 };

/* Instructions that are others by another name; `form`: as op_table.inc has them. Old ones do not name the subgroup. */
static const struct {
    uint32_t    opcode;
    const char *form;
    uint32_t    to;
} renamed[] = {
    { SpvOpSubgroupBallotKHR, "tri", SpvOpGroupNonUniformBallot },
    { SpvOpSubgroupFirstInvocationKHR, "tri", SpvOpGroupNonUniformBroadcastFirst },
    { SpvOpSubgroupAllKHR, "tri", SpvOpGroupNonUniformAll },
    { SpvOpSubgroupAnyKHR, "tri", SpvOpGroupNonUniformAny },
    { SpvOpSubgroupAllEqualKHR, "tri", SpvOpGroupNonUniformAllEqual },
    { SpvOpSubgroupReadInvocationKHR, "trii", SpvOpGroupNonUniformShuffle },
    { SpvOpGroupAll, "trci", SpvOpGroupNonUniformAll },
    { SpvOpGroupAny, "trci", SpvOpGroupNonUniformAny },
    { SpvOpGroupBroadcast, "trcii", SpvOpGroupNonUniformShuffle },
    { SpvOpGroupIAdd, "trcni", SpvOpGroupNonUniformIAdd },
    { SpvOpGroupFAdd, "trcni", SpvOpGroupNonUniformFAdd },
    { SpvOpGroupFMin, "trcni", SpvOpGroupNonUniformFMin },
    { SpvOpGroupUMin, "trcni", SpvOpGroupNonUniformUMin },
    { SpvOpGroupSMin, "trcni", SpvOpGroupNonUniformSMin },
    { SpvOpGroupFMax, "trcni", SpvOpGroupNonUniformFMax },
    { SpvOpGroupUMax, "trcni", SpvOpGroupNonUniformUMax },
    { SpvOpGroupSMax, "trcni", SpvOpGroupNonUniformSMax },
    { SpvOpGroupIAddNonUniformAMD, "trcni", SpvOpGroupNonUniformIAdd },
    { SpvOpGroupFAddNonUniformAMD, "trcni", SpvOpGroupNonUniformFAdd },
    { SpvOpGroupFMinNonUniformAMD, "trcni", SpvOpGroupNonUniformFMin },
    { SpvOpGroupUMinNonUniformAMD, "trcni", SpvOpGroupNonUniformUMin },
    { SpvOpGroupSMinNonUniformAMD, "trcni", SpvOpGroupNonUniformSMin },
    { SpvOpGroupFMaxNonUniformAMD, "trcni", SpvOpGroupNonUniformFMax },
    { SpvOpGroupUMaxNonUniformAMD, "trcni", SpvOpGroupNonUniformUMax },
    { SpvOpGroupSMaxNonUniformAMD, "trcni", SpvOpGroupNonUniformSMax },
};

/* How much a value differs along the quads of a workgroup. */
static bool is_derivative(uint32_t opcode) { return opcode >= SpvOpDPdx && opcode <= SpvOpFwidthCoarse; }

const char *hdi_lower_group_operands(uint32_t opcode) {
    for (size_t i = 0; i < HDI_COUNT(renamed); i++)
        if (renamed[i].opcode == opcode) return renamed[i].form;
    if (is_derivative(opcode)) return "tri";
    if (opcode == ROTATE) return "trcii?i";
    return opcode == QUAD_ALL || opcode == QUAD_ANY || opcode == PARTITION ? "tri" : NULL;
}

/* ---- sums of those whose bits are set in a ballot ---- */

/* Two of them as one: an instruction, or one of GLSL.std.450; and what none of them are. */
static const struct sum {
    uint32_t opcode, with, glsl;
    enum { NOUGHT, ONE_OF_THEM, ALL_BITS, LEAST, MOST, INFINITE, MINUS_INFINITE } none;
} sums[] = {
    { SpvOpGroupNonUniformIAdd, SpvOpIAdd, 0, NOUGHT },
    { SpvOpGroupNonUniformFAdd, SpvOpFAdd, 0, NOUGHT },
    { SpvOpGroupNonUniformIMul, SpvOpIMul, 0, ONE_OF_THEM },
    { SpvOpGroupNonUniformFMul, SpvOpFMul, 0, ONE_OF_THEM },
    { SpvOpGroupNonUniformSMin, 0, GLSL_SMIN, MOST },
    { SpvOpGroupNonUniformUMin, 0, GLSL_UMIN, ALL_BITS },
    { SpvOpGroupNonUniformFMin, 0, GLSL_NMIN, INFINITE },
    { SpvOpGroupNonUniformSMax, 0, GLSL_SMAX, LEAST },
    { SpvOpGroupNonUniformUMax, 0, GLSL_UMAX, NOUGHT },
    { SpvOpGroupNonUniformFMax, 0, GLSL_NMAX, MINUS_INFINITE },
    { SpvOpGroupNonUniformBitwiseAnd, SpvOpBitwiseAnd, 0, ALL_BITS },
    { SpvOpGroupNonUniformBitwiseOr, SpvOpBitwiseOr, 0, NOUGHT },
    { SpvOpGroupNonUniformBitwiseXor, SpvOpBitwiseXor, 0, NOUGHT },
    { SpvOpGroupNonUniformLogicalAnd, SpvOpLogicalAnd, 0, ONE_OF_THEM },
    { SpvOpGroupNonUniformLogicalOr, SpvOpLogicalOr, 0, NOUGHT },
    { SpvOpGroupNonUniformLogicalXor, SpvOpLogicalNotEqual, 0, NOUGHT },
};

static const struct sum *sum_of(uint32_t opcode) {
    for (size_t i = 0; i < HDI_COUNT(sums); i++)
        if (sums[i].opcode == opcode) return &sums[i];
    return NULL;
}

static bool is_partitioned(const uint32_t *words) {
    return sum_of(hdi_lower_opcode(words)) && hdi_lower_length(words) == 7 && words[4] >= PARTITIONED_REDUCE &&
           words[4] <= PARTITIONED_EXCLUSIVE;
}

/* ---- what there is to do ---- */

/* Once, that the new module needs it. */
static void need(hdi_lowering *l, uint32_t capability) {
    for (uint32_t i = 0; i < l->capability_count; i++)
        if (l->capabilities[i] == capability) return;
    l->capabilities[l->capability_count++] = capability;
}

static void need_core(hdi_lowering *l, uint32_t opcode) {
    const hdi_spirv_op *row = hdi_spirv_op_row(opcode);
    need(l, sum_of(opcode) ? (uint32_t)SpvCapabilityGroupNonUniformArithmetic : row->capability);
}

/* Old extensions bring built-ins of subgroups without the capability that others ask for. */
static void need_builtin(hdi_lowering *l, uint32_t builtin) {
    const bool numbers = builtin == SpvBuiltInSubgroupSize || builtin == SpvBuiltInSubgroupLocalInvocationId;
    const bool masks = builtin >= SpvBuiltInSubgroupEqMask && builtin <= SpvBuiltInSubgroupLtMask;
    if (!numbers && !masks) return;
    need(l, numbers ? SpvCapabilityGroupNonUniform : SpvCapabilityGroupNonUniformBallot);
}

bool hdi_lower_is_linear_mode(const uint32_t *words) {
    enum { DERIVATIVE_GROUP_LINEAR = 5290 };
    return words[0] == (3u << SpvWordCountShift | SpvOpExecutionMode) && words[2] == DERIVATIVE_GROUP_LINEAR;
}

void hdi_lower_find_groups(hdi_lowering *l) {
    bool has_capability = false;
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->count && !l->groups; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at, opcode = hdi_lower_opcode(words);
        if (opcode == SpvOpCapability && hdi_lower_length(words) == 2)
            has_capability |= words[1] >= SpvCapabilityGroupNonUniform && words[1] <= SpvCapabilityGroupNonUniformQuad;
        l->linear_quads |= hdi_lower_is_linear_mode(words);
        const bool decorates = words[0] == (4u << SpvWordCountShift | SpvOpDecorate);
        if (decorates && words[2] == SpvDecorationBuiltIn && !has_capability) need_builtin(l, words[3]);
        l->groups = hdi_lower_group_operands(opcode) || is_partitioned(words);
    }
    l->ballots = hdi_lower_set(l, "SPV_AMD_shader_ballot");
    if (l->ballots && l->ballots < l->bound) l->gone[l->ballots] = 1;
    l->groups |= l->capability_count != 0 || l->ballots || l->linear_quads;
}

/* ---- functions ---- */

static uint32_t subgroup(hdi_lowering *l) { return number(l, SpvScopeSubgroup); }

/* The four words of a ballot, and their type. */
static uint32_t words_type(hdi_lowering *l) { return HDI_LOWER_ONCE(l, SpvOpTypeVector, 0, hdi_lower_uint(l), 4); }
static uint32_t ballot(hdi_lowering *l, uint32_t condition) {
    return HDI_LOWER_MAKE(l, SpvOpGroupNonUniformBallot, words_type(l), subgroup(l), condition);
}
static uint32_t truth(hdi_lowering *l) { return hdi_lower_once(l, SpvOpConstantTrue, bool_type(l), NULL, 0); }

static uint32_t binary(hdi_lowering *l, uint32_t opcode, uint32_t a, uint32_t b) {
    return HDI_LOWER_MAKE(l, opcode, hdi_lower_uint(l), a, b);
}

/* A loop over all lanes in a function: what is carried around begins as it is given. */
typedef struct rounds {
    uint32_t begin, header, more, merge;
    uint32_t lane, carried; /* of this round */
    uint32_t next_lane, next_carried;
} rounds;
static rounds begin_rounds(hdi_lowering *l, uint32_t type, uint32_t carried) {
    const uint32_t id = l->next, body = id + 6;
    rounds r = { .begin = id, .header = id + 1, .more = id + 2, .merge = id + 3, .next_lane = id + 4,
                 .next_carried = id + 5 };
    l->next += 7;
    const uint32_t uint = hdi_lower_uint(l), size = hdi_lower_input(l, SpvBuiltInSubgroupSize);
    HDI_LOWER_ADD(l, &l->made, SpvOpBranch, r.begin);
    HDI_LOWER_ADD(l, &l->made, SpvOpLabel, r.begin);
    HDI_LOWER_ADD(l, &l->made, SpvOpBranch, r.header);
    HDI_LOWER_ADD(l, &l->made, SpvOpLabel, r.header);
    r.lane = HDI_LOWER_MAKE(l, SpvOpPhi, uint, number(l, 0), r.begin, r.next_lane, r.more);
    r.carried = HDI_LOWER_MAKE(l, SpvOpPhi, type, carried, r.begin, r.next_carried, r.more);
    const uint32_t goes_on = HDI_LOWER_MAKE(l, SpvOpULessThan, bool_type(l), r.lane, size);
    HDI_LOWER_ADD(l, &l->made, SpvOpLoopMerge, r.merge, r.more, SpvLoopControlMaskNone);
    HDI_LOWER_ADD(l, &l->made, SpvOpBranchConditional, goes_on, body, r.merge);
    HDI_LOWER_ADD(l, &l->made, SpvOpLabel, body);
    return r;
}

/* Old versions want a condition for each component. */
static uint32_t of_each(hdi_lowering *l, uint32_t type, uint32_t condition) {
    const uint32_t *vector = hdi_lower_def(l, type, SpvOpTypeVector, 4), all[] = { condition, condition, condition,
                                                                                  condition };
    if (!vector && type != words_type(l)) return condition;
    const uint32_t count = HDI_MIN(vector ? vector[3] : 4, (uint32_t)HDI_COUNT(all)),
                   truths = HDI_LOWER_ONCE(l, SpvOpTypeVector, 0, bool_type(l), count);
    return hdi_lower_make(l, SpvOpCompositeConstruct, truths, all, count);
}

/* Where the condition holds the value is carried on. After the last round the block goes on, and `carried` is what came
 * of it. */
static void end_rounds(hdi_lowering *l, const rounds *r, uint32_t type, uint32_t condition, uint32_t value) {
    condition = of_each(l, type, condition);
    HDI_LOWER_ADD(l, &l->made, SpvOpSelect, type, r->next_carried, condition, value, r->carried);
    HDI_LOWER_ADD(l, &l->made, SpvOpBranch, r->more);
    HDI_LOWER_ADD(l, &l->made, SpvOpLabel, r->more);
    HDI_LOWER_ADD(l, &l->made, SpvOpIAdd, hdi_lower_uint(l), r->next_lane, r->lane, number(l, 1));
    HDI_LOWER_ADD(l, &l->made, SpvOpBranch, r->header);
    HDI_LOWER_ADD(l, &l->made, SpvOpLabel, r->merge);
}

static uint32_t shuffle(hdi_lowering *l, uint32_t type, uint32_t value, uint32_t lane) {
    return HDI_LOWER_MAKE(l, SpvOpGroupNonUniformShuffle, type, subgroup(l), value, lane);
}

/* The value of the lane that is so many further on, around its cluster (0: the subgroup). */
static void make_rotate(hdi_lowering *l, uint32_t type, uint32_t value, uint32_t by, uint32_t cluster) {
    const uint32_t uint = hdi_lower_uint(l), lane = hdi_lower_input(l, SpvBuiltInSubgroupLocalInvocationId);
    const uint32_t lanes = cluster ? cluster : hdi_lower_input(l, SpvBuiltInSubgroupSize);
    const uint32_t within = binary(l, SpvOpISub, lanes, number(l, 1));
    const uint32_t first = binary(l, SpvOpBitwiseAnd, lane, HDI_LOWER_MAKE(l, SpvOpNot, uint, within));
    const uint32_t there = binary(l, SpvOpBitwiseAnd, binary(l, SpvOpIAdd, lane, by), within);
    const uint32_t result = shuffle(l, type, value, binary(l, SpvOpBitwiseOr, first, there));
    hdi_image_give(l, type, 1, &result);
}

/* What the value is more in the quad's next lane along an axis: of this lane's row or column, or (`coarse`) of the
 * first one. */
static uint32_t differ(hdi_lowering *l, uint32_t type, uint32_t value, uint32_t lane, uint32_t axis, bool coarse) {
    const uint32_t bit = number(l, 1u << axis), within = number(l, ~(coarse ? 3u : 1u << axis));
    const uint32_t first = binary(l, SpvOpBitwiseAnd, lane, within), second = binary(l, SpvOpBitwiseOr, first, bit);
    const uint32_t at_second = shuffle(l, type, value, second), at_first = shuffle(l, type, value, first);
    return HDI_LOWER_MAKE(l, SpvOpFSub, type, at_second, at_first);
}

static void make_derivative(hdi_lowering *l, uint32_t opcode, uint32_t type, uint32_t value) {
    const uint32_t lane = hdi_lower_input(l, SpvBuiltInSubgroupLocalInvocationId), which = (opcode - SpvOpDPdx) % 3;
    const bool coarse = opcode >= SpvOpDPdxCoarse;
    uint32_t result = differ(l, type, value, lane, which == 1, coarse);
    if (which == 2) {
        const uint32_t down = glsl(l, GLSL_FABS, type, differ(l, type, value, lane, 1, coarse));
        result = HDI_LOWER_MAKE(l, SpvOpFAdd, type, glsl(l, GLSL_FABS, type, result), down);
    }
    hdi_image_give(l, type, 1, &result);
}

/* Is it so in any lane of the quad, or (`all`) in none that it is not so? */
static void make_quad(hdi_lowering *l, uint32_t type, uint32_t condition, bool all) {
    enum { QUAD = 3, QUAD_BITS = 15, WORD_BITS = 5, WORD = 31 };
    const uint32_t uint = hdi_lower_uint(l), lane = hdi_lower_input(l, SpvBuiltInSubgroupLocalInvocationId);
    const uint32_t of = all ? HDI_LOWER_MAKE(l, SpvOpLogicalNot, type, condition) : condition;
    const uint32_t first = binary(l, SpvOpBitwiseAnd, lane, number(l, ~(uint32_t)QUAD));
    const uint32_t which = binary(l, SpvOpShiftRightLogical, first, number(l, WORD_BITS));
    const uint32_t word = HDI_LOWER_MAKE(l, SpvOpVectorExtractDynamic, uint, ballot(l, of), which);
    const uint32_t bits = binary(l, SpvOpShiftRightLogical, word, binary(l, SpvOpBitwiseAnd, first, number(l, WORD)));
    const uint32_t quad = binary(l, SpvOpBitwiseAnd, bits, number(l, QUAD_BITS));
    const uint32_t result = HDI_LOWER_MAKE(l, all ? SpvOpIEqual : SpvOpINotEqual, type, quad, number(l, 0));
    hdi_image_give(l, type, 1, &result);
}

/* Are two numbers, or truths, the same bits? `width`: of floats; else 0. */
static uint32_t same_bits(hdi_lowering *l, uint32_t a, uint32_t b, bool truths, uint32_t width) {
    const uint32_t uint = hdi_lower_uint(l), pair = HDI_LOWER_ONCE(l, SpvOpTypeVector, 0, uint, 2);
    if (truths) return HDI_LOWER_MAKE(l, SpvOpLogicalEqual, bool_type(l), a, b);
    if (width == 16) { /* its bits need what the module may not have, those of a wider one do not */
        a = HDI_LOWER_MAKE(l, SpvOpFConvert, hdi_lower_float(l), a);
        b = HDI_LOWER_MAKE(l, SpvOpFConvert, hdi_lower_float(l), b);
    }
    if (width) a = HDI_LOWER_MAKE(l, SpvOpBitcast, width == 64 ? pair : uint, a);
    if (width) b = HDI_LOWER_MAKE(l, SpvOpBitcast, width == 64 ? pair : uint, b);
    if (width != 64) return HDI_LOWER_MAKE(l, SpvOpIEqual, bool_type(l), a, b);
    const uint32_t both = HDI_LOWER_ONCE(l, SpvOpTypeVector, 0, bool_type(l), 2);
    return HDI_LOWER_MAKE(l, SpvOpAll, bool_type(l), HDI_LOWER_MAKE(l, SpvOpIEqual, both, a, b));
}

/* The lanes whose value has the same bits, as a ballot. */
static void make_partition(hdi_lowering *l, uint32_t type, uint32_t value_type, uint32_t value) {
    enum { WORD_BITS = 5, WORD = 31 };
    const uint32_t uint = hdi_lower_uint(l), none = hdi_lower_once(l, SpvOpConstantNull, type, NULL, 0);
    const uint32_t *vector = hdi_lower_def(l, value_type, SpvOpTypeVector, 4);
    const uint32_t part = vector ? vector[2] : value_type, count = vector ? vector[3] : 1;
    const uint32_t *real = hdi_lower_def(l, part, SpvOpTypeFloat, 3);
    const bool truths = hdi_lower_def(l, part, SpvOpTypeBool, 2) != NULL;
    const rounds r = begin_rounds(l, type, none);
    const uint32_t other = shuffle(l, value_type, value, r.lane);
    uint32_t same = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t equal = same_bits(l, component(l, part, count, value, i), component(l, part, count, other, i),
                                         truths, real ? real[2] : 0);
        same = same ? HDI_LOWER_MAKE(l, SpvOpLogicalAnd, bool_type(l), same, equal) : equal;
    }
    const uint32_t which = binary(l, SpvOpShiftRightLogical, r.lane, number(l, WORD_BITS)),
                   bit = binary(l, SpvOpShiftLeftLogical, number(l, 1),
                                binary(l, SpvOpBitwiseAnd, r.lane, number(l, WORD)));
    const uint32_t before = HDI_LOWER_MAKE(l, SpvOpVectorExtractDynamic, uint, r.carried, which);
    const uint32_t with = HDI_LOWER_MAKE(l, SpvOpVectorInsertDynamic, type, r.carried,
                                         binary(l, SpvOpBitwiseOr, before, bit), which);
    end_rounds(l, &r, type, same, with);
    const uint32_t result = HDI_LOWER_MAKE(l, SpvOpBitwiseAnd, type, r.carried, ballot(l, truth(l)));
    hdi_image_give(l, type, 1, &result);
}

/* The constant as all components of a vector, where the type is one; 0: of more than four. */
static uint32_t as_vector(hdi_lowering *l, uint32_t type, uint32_t constant) {
    const uint32_t *vector = hdi_lower_def(l, type, SpvOpTypeVector, 4);
    const uint32_t all[] = { constant, constant, constant, constant };
    if (!vector) return constant;
    return vector[3] > HDI_COUNT(all) ? 0 : hdi_lower_once(l, SpvOpConstantComposite, type, all, vector[3]);
}

/* What the sum of no lanes is, of a type of numbers or truths; 0: it is none. */
static uint32_t sum_of_none(hdi_lowering *l, const struct sum *sum, uint32_t type) {
    const uint32_t *vector = hdi_lower_def(l, type, SpvOpTypeVector, 4), part = vector ? vector[2] : type;
    const uint32_t *whole = hdi_lower_def(l, part, SpvOpTypeInt, 4), *real = hdi_lower_def(l, part, SpvOpTypeFloat, 3);
    const uint32_t width = whole ? whole[2] : real ? real[2] : 0;
    if (hdi_lower_def(l, part, SpvOpTypeBool, 2))
        return as_vector(l, type, hdi_lower_once(l, sum->none == NOUGHT ? SpvOpConstantFalse : SpvOpConstantTrue, part,
                                                 NULL, 0));
    if (width != 8 && width != 16 && width != 32 && width != 64) return 0;
    const uint64_t top = UINT64_C(1) << (width - 1);
    const uint64_t infinity = width == 64 ? UINT64_C(0x7FF) << 52 : width == 32 ? UINT64_C(0x7F800000) : 0x7C00;
    const uint64_t one = real ? width == 64 ? UINT64_C(0x3FF) << 52 : width == 32 ? ONE : 0x3C00 : 1;
    const uint64_t bits = sum->none == NOUGHT         ? 0
                          : sum->none == ONE_OF_THEM  ? one
                          : sum->none == ALL_BITS     ? UINT64_MAX
                          : sum->none == LEAST        ? UINT64_MAX << (width - 1)
                          : sum->none == MOST         ? top - 1
                          : sum->none == INFINITE     ? infinity
                                                      : infinity | top;
    /* narrow signed numbers stand there with their sign, others with zeros */
    const bool cut = width < 32 && (real || !whole[3]);
    const uint64_t said = cut ? bits & (top | (top - 1)) : bits;
    const uint32_t words[] = { (uint32_t)said, (uint32_t)(said >> 32) };
    return as_vector(l, type, hdi_lower_once(l, SpvOpConstant, part, words, width == 64 ? 2 : 1));
}

/* The sum over the lanes whose bits are set, or of those up to this one, or in front of it. */
static void make_sum(hdi_lowering *l, const struct sum *sum, uint32_t how, uint32_t type, uint32_t none, uint32_t value,
                     uint32_t lanes) {
    const uint32_t self = how == PARTITIONED_REDUCE ? 0 : hdi_lower_input(l, SpvBuiltInSubgroupLocalInvocationId);
    const rounds r = begin_rounds(l, type, none);
    const uint32_t other = shuffle(l, type, value, r.lane);
    uint32_t counts = HDI_LOWER_MAKE(l, SpvOpGroupNonUniformBallotBitExtract, bool_type(l), subgroup(l), lanes, r.lane);
    if (self) {
        const uint32_t before = how == PARTITIONED_INCLUSIVE ? SpvOpULessThanEqual : SpvOpULessThan;
        counts = HDI_LOWER_MAKE(l, SpvOpLogicalAnd, bool_type(l), counts,
                                HDI_LOWER_MAKE(l, before, bool_type(l), r.lane, self));
    }
    const uint32_t total = sum->glsl
                               ? HDI_LOWER_MAKE(l, SpvOpExtInst, type, l->glsl, sum->glsl, r.carried, other)
                               : HDI_LOWER_MAKE(l, sum->with, type, r.carried, other);
    end_rounds(l, &r, type, counts, total);
    hdi_image_give(l, type, 1, &r.carried);
}

/* ---- AMD's set ---- */

enum { SWIZZLE = 1, SWIZZLE_MASKED, WRITE, COUNT_BELOW };

/* Each lane of a quad reads from the one that its offset says, or each lane of 32 from one by three masks: and, or, and
 * what is turned. Who reads from a lane that is not there gets zeros. */
static uint32_t swizzle(hdi_lowering *l, uint32_t which, uint32_t type, uint32_t value, uint32_t how) {
    const uint32_t uint = hdi_lower_uint(l), lane = hdi_lower_input(l, SpvBuiltInSubgroupLocalInvocationId);
    const uint32_t within = number(l, which == SWIZZLE ? 3 : 31);
    uint32_t there = binary(l, SpvOpBitwiseAnd, lane, within);
    const uint32_t first = binary(l, SpvOpBitwiseXor, lane, there);
    if (which == SWIZZLE) {
        there = HDI_LOWER_MAKE(l, SpvOpVectorExtractDynamic, uint, how, there);
    } else {
        static const uint32_t steps[] = { SpvOpBitwiseAnd, SpvOpBitwiseOr, SpvOpBitwiseXor };
        for (uint32_t i = 0; i < HDI_COUNT(steps); i++)
            there = binary(l, steps[i], there, HDI_LOWER_MAKE(l, SpvOpCompositeExtract, uint, how, i));
    }
    there = binary(l, SpvOpBitwiseOr, first, binary(l, SpvOpBitwiseAnd, there, within));
    const uint32_t active = HDI_LOWER_MAKE(l, SpvOpGroupNonUniformBallotBitExtract, bool_type(l), subgroup(l),
                                           ballot(l, truth(l)), there);
    return HDI_LOWER_MAKE(l, SpvOpSelect, type, of_each(l, type, active), shuffle(l, type, value, there),
                          hdi_lower_once(l, SpvOpConstantNull, type, NULL, 0));
}

/* How many bits of a number of 64 belong to lanes in front of this one. */
static uint32_t count_below(hdi_lowering *l, uint32_t bits) {
    const uint32_t uint = hdi_lower_uint(l), pair = HDI_LOWER_ONCE(l, SpvOpTypeVector, 0, uint, 2);
    const uint32_t both = HDI_LOWER_MAKE(l, SpvOpBitcast, pair, bits);
    const uint32_t words = HDI_LOWER_MAKE(l, SpvOpCompositeConstruct, words_type(l), component(l, uint, 2, both, 0),
                                          component(l, uint, 2, both, 1), number(l, 0), number(l, 0));
    return HDI_LOWER_MAKE(l, SpvOpGroupNonUniformBallotBitCount, uint, subgroup(l), SpvGroupOperationExclusiveScan,
                          words);
}

/* What one of the set is given: values of these types? */
static bool types_of_set_fit(hdi_lowering *l, uint32_t which, uint32_t type, const uint32_t types[3], uint32_t count) {
    const uint32_t uint = hdi_lower_uint(l), *whole = hdi_lower_def(l, types[0], SpvOpTypeInt, 4);
    const uint32_t *vector = hdi_lower_def(l, types[0], SpvOpTypeVector, 4);
    if (which == COUNT_BELOW) return count == 1 && type == uint && whole && whole[2] == 64;
    if (types[0] != type || (vector && vector[3] > 4)) return false;
    if (which == WRITE) return count == 3 && types[1] == type && types[2] == uint;
    return count == 2 && types[1] == HDI_LOWER_ONCE(l, SpvOpTypeVector, 0, uint, which == SWIZZLE ? 4 : 3);
}

static bool use_of_set(hdi_lowering *l, const uint32_t *words) {
    const uint32_t which = words[4], type = words[1], count = HDI_MIN(hdi_lower_length(words) - 5u, 4u);
    uint32_t types[4] = { 0 }, ids[4] = { 0 }, call[7] = { type, words[2] };
    for (uint32_t i = 0; i < count; i++) types[i] = hdi_image_type_of(l, call[3 + i] = words[5 + i]);
    if (which < SWIZZLE || which > COUNT_BELOW || !types_of_set_fit(l, which, type, types, count))
        return hdi_lower_refuse(l, words, "number %u of AMD's set does not go together with its operands", which);
    const hdi_lower_made key = { .opcode = SpvOpExtInst, .value = type, .component = which };
    if (which != WRITE) need_core(l, SpvOpGroupNonUniformBallot);
    if (which < WRITE) need_core(l, SpvOpGroupNonUniformShuffle);
    need(l, SpvCapabilityGroupNonUniform);
    call[2] = hdi_lower_made_before(l, &key);
    if (!call[2]) {
        if (l->made_count == HDI_LOWER_MAX_FUNCTIONS)
            return hdi_lower_refuse(l, words, "more than %d ways to look at subgroups", HDI_LOWER_MAX_FUNCTIONS);
        call[2] = hdi_lower_begin(l, type, types, count, ids);
        l->functions_made[l->made_count] = key;
        l->functions_made[l->made_count++].function = call[2];
        uint32_t result = 0;
        if (which == COUNT_BELOW) result = count_below(l, ids[0]);
        else if (which != WRITE) result = swizzle(l, which, type, ids[0], ids[1]);
        else {
            const uint32_t self = hdi_lower_input(l, SpvBuiltInSubgroupLocalInvocationId),
                           chosen = HDI_LOWER_MAKE(l, SpvOpIEqual, bool_type(l), self, ids[2]);
            result = HDI_LOWER_MAKE(l, SpvOpSelect, type, of_each(l, type, chosen), ids[1], ids[0]);
        }
        hdi_image_give(l, type, 1, &result);
    }
    hdi_lower_add(l, &l->code, SpvOpFunctionCall, call, 3 + count);
    return true;
}

/* ---- instructions ---- */

/* Do the types of result and operands go together? */
static bool types_fit(hdi_lowering *l, uint32_t opcode, bool adds, uint32_t result, const uint32_t types[2]) {
    const uint32_t *vector = hdi_lower_def(l, types[0], SpvOpTypeVector, 4);
    if (!types[0] || (vector && vector[3] > 4)) return false;
    if (adds) return types[0] == result && types[1] == words_type(l);
    switch (opcode) {
    case ROTATE: return types[0] == result && types[1] == hdi_lower_uint(l);
    case PARTITION: return result == words_type(l);
    default: return types[0] == result && (is_derivative(opcode) || result == bool_type(l));
    }
}

/* The function for the instruction, made where there is none of the kind yet. 0: it was refused. */
static uint32_t function_for(hdi_lowering *l, const uint32_t *words, const uint32_t *given, uint32_t count) {
    const uint32_t opcode = hdi_lower_opcode(words), type = words[1];
    const uint32_t types[2] = { hdi_image_type_of(l, given[0]), count > 1 ? hdi_image_type_of(l, given[1]) : 0 };
    const struct sum *sum = sum_of(opcode);
    const uint32_t cluster = opcode == ROTATE && hdi_lower_length(words) > 6 ? words[6] : 0;
    const hdi_lower_made key = { .opcode = opcode, .value = type, .coordinates = types[0], .offset = cluster,
                                 .component = sum ? words[4] : 0 };
    const uint32_t before = hdi_lower_made_before(l, &key);
    if (before) return before;
    if (l->made_count == HDI_LOWER_MAX_FUNCTIONS)
        return hdi_lower_refuse(l, words, "more than %d ways to look at subgroups", HDI_LOWER_MAX_FUNCTIONS), 0;
    const uint32_t none = sum ? sum_of_none(l, sum, type) : 0;
    if (!types_fit(l, opcode, sum, type, types) || (sum && !none))
        return hdi_lower_refuse(l, words, "the types of its result and operands do not go together"), 0;
    uint32_t ids[2] = { 0 };
    hdi_lower_made *made = &l->functions_made[l->made_count++];
    *made = key;
    made->function = hdi_lower_begin(l, type, types, count, ids);
    if (opcode == ROTATE) make_rotate(l, type, ids[0], ids[1], cluster);
    else if (opcode == PARTITION) make_partition(l, type, types[0], ids[0]);
    else if (is_derivative(opcode)) make_derivative(l, opcode, type, ids[0]);
    else if (sum) make_sum(l, sum, words[4], type, none, ids[0], ids[1]);
    else make_quad(l, type, ids[0], opcode == QUAD_ALL);
    return made->function;
}

/* Under the name that all know it by. */
static bool rename_use(hdi_lowering *l, const uint32_t *words, const char *form, uint32_t to) {
    const uint32_t length = hdi_lower_length(words),
                   *scope = form[2] == 'c' ? hdi_lower_def(l, words[3], SpvOpConstant, 4) : NULL;
    uint32_t all[6] = { words[1], words[2], subgroup(l) }, count = 3;
    if (form[2] == 'c' && (!scope || scope[3] != SpvScopeSubgroup))
        return hdi_lower_refuse(l, words, "it is not about a subgroup");
    for (uint32_t i = form[2] == 'c' ? 4 : 3; i < length; i++) all[count++] = words[i];
    need_core(l, to);
    hdi_lower_add(l, &l->code, to, all, count);
    return true;
}

bool hdi_lower_group_use(hdi_lowering *l, const uint32_t *words) {
    const uint32_t opcode = hdi_lower_opcode(words), length = hdi_lower_length(words);
    const char *form = hdi_lower_group_operands(opcode);
    const bool sum = is_partitioned(words);
    if (l->ballots && opcode == SpvOpExtInst && length > 5 && words[3] == l->ballots) return use_of_set(l, words);
    const size_t least = form ? strcspn(form, "?") + 1 : 0, most = form && form[least - 1] ? least + 1 : least;
    if (!sum && (!form || length < least || length > most)) return false;
    for (size_t i = 0; i < HDI_COUNT(renamed); i++)
        if (renamed[i].opcode == opcode) return rename_use(l, words, form, renamed[i].to);
    if (is_derivative(opcode) && !l->linear_quads)
        return hdi_lower_refuse(l, words, "derivatives where quads are not said to be four invocations in a row");
    /* what is given: a value, and how far to go, or a ballot */
    const uint32_t at = sum ? 5 : opcode == ROTATE ? 4 : 3, count = at > 3 ? 2 : 1,
                   given[] = { words[at], count > 1 ? words[at + 1] : 0 };
    const uint32_t function = function_for(l, words, given, count);
    const bool derivative = is_derivative(opcode);
    if (opcode == ROTATE || opcode == PARTITION || sum || derivative) need_core(l, SpvOpGroupNonUniformShuffle);
    if (opcode != ROTATE && !derivative) need_core(l, SpvOpGroupNonUniformBallot);
    const uint32_t call[] = { words[1], words[2], function, given[0], given[1] };
    hdi_lower_add(l, &l->code, SpvOpFunctionCall, call, 3 + count);
    return true;
}
