/* lower_spell.c: what extensions say in one instruction, spelled out in those that all know: composites of one value,
 * groups of decorations, what may be contracted by type, fused multiply-adds, products of halves, switches on numbers
 * of 64 bits, and AMD's instructions for the least, the middle and the greatest of three and for the faces of a cube.
 * Another module is made before anything else is lowered. */
#include "spirv/lower_images.h"

/* Numbers that older headers lack. */
enum { DOT_32 = 6916, FMA = 4427, CONSTANT_REPLICATE = 4461, SPEC_REPLICATE = 4462, REPLICATE = 4463 };
enum { GLSL_FMIN = 37, GLSL_FMA = 50 };
enum { FACE_INDEX = 1, FACE_COORDINATES = 2, LAST_OF_THREE = 9 /* instructions of AMD's sets */ };
#define OF_THREE "SPV_AMD_shader_trinary_minmax"
#define OF_CUBES "SPV_AMD_gcn_shader"
/* What fast arithmetic may do: only contracting is done at all. */
enum { FAST_MATH_DEFAULT = 6028, MAY_CONTRACT = 0x10000 };
enum { MOST_GROUPS = 256, MOST_PARTS = 0xFF00 };

typedef struct spelling {
    hdi_lowering   *l;
    uint32_t        of_three, of_cubes; /* AMD's sets; 0: the module has none */
    hdi_lower_words front, code;
    const uint32_t *merge; /* that waits for the instruction behind it */
    uint32_t        groups;
    bool           *said; /* by id: it says itself whether it may be contracted */
    uint32_t        exact[4], exact_count; /* types of floats that are not contracted */
    bool            decorated;
} spelling;

const char *hdi_lower_spelled_operands(uint32_t opcode) {
    switch (opcode) {
    case SpvOpDecorationGroup: return "r";
    case SpvOpGroupDecorate: return "a*a";
    case SpvOpGroupMemberDecorate: return "a*n";
    case DOT_32:
    case FMA: return "triii";
    case CONSTANT_REPLICATE:
    case SPEC_REPLICATE: return "trc";
    case REPLICATE: return "tri";
    default: return NULL;
    }
}

static void copy(hdi_lowering *l, hdi_lower_words *to, const uint32_t *words) {
    hdi_lower_add(l, to, hdi_lower_opcode(words), words + 1, hdi_lower_length(words) - 1);
}

/* An instruction with a new result. */
static uint32_t put(spelling *s, uint32_t opcode, uint32_t type, uint32_t a, uint32_t b) {
    HDI_LOWER_ADD(s->l, &s->code, opcode, type, s->l->next, a, b);
    return s->l->next++;
}
static uint32_t put_glsl(spelling *s, uint32_t instruction, uint32_t type, uint32_t a, uint32_t b) {
    HDI_LOWER_ADD(s->l, &s->code, SpvOpExtInst, type, s->l->next, s->l->glsl, instruction, a, b);
    return s->l->next++;
}

static uint32_t choose(spelling *s, uint32_t type, uint32_t condition, uint32_t a, uint32_t b) {
    HDI_LOWER_ADD(s->l, &s->code, SpvOpSelect, type, s->l->next, condition, a, b);
    return s->l->next++;
}

/* ---- what there is ---- */

static bool is_wide_switch(const hdi_lowering *l, const uint32_t *words) {
    if (hdi_lower_opcode(words) != SpvOpSwitch || hdi_lower_length(words) < 3) return false;
    const uint32_t *type = hdi_lower_def(l, hdi_image_type_of(l, words[1]), SpvOpTypeInt, 4);
    return type && type[2] == 64;
}

static bool is_of_set(const uint32_t *words, uint32_t set) {
    return set && hdi_lower_opcode(words) == SpvOpExtInst && hdi_lower_length(words) > 4 && words[3] == set;
}

uint32_t hdi_lower_set(const hdi_lowering *l, const char *name) {
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->functions; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at;
        if (hdi_lower_opcode(words) == SpvOpExtInstImport && hdi_lower_length(words) >= 3 + strlen(name) / 4 &&
            hdi_spirv_text_is(words + 2, name))
            return words[1];
    }
    return 0;
}

static bool is_default(const uint32_t *words) {
    return words[0] == (5u << SpvWordCountShift | SpvOpExecutionModeId) && words[2] == FAST_MATH_DEFAULT;
}
static bool is_fast_math(const uint32_t *words) {
    return words[0] == (4u << SpvWordCountShift | SpvOpDecorate) && words[2] == SpvDecorationFPFastMathMode;
}

bool hdi_lower_any_short(const hdi_lowering *l) {
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->count; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at;
        if (hdi_lower_spelled_operands(hdi_lower_opcode(words)) || is_wide_switch(l, words) || is_default(words) ||
            is_fast_math(words))
            return true;
    }
    return hdi_lower_set(l, OF_CUBES) || hdi_lower_set(l, OF_THREE);
}

/* ---- in front of the functions ---- */

/* Parts of a value of the type; 0: it has none. */
static uint32_t parts_of(const hdi_lowering *l, uint32_t type) {
    const uint32_t *words = type < l->bound && l->at[type] ? l->words + l->at[type] : NULL, *length;
    switch (words && hdi_lower_length(words) > 1 ? hdi_lower_opcode(words) : (uint32_t)SpvOpNop) {
    case SpvOpTypeVector:
    case SpvOpTypeMatrix: return hdi_lower_length(words) > 3 ? words[3] : 0;
    case SpvOpTypeArray:
        length = hdi_lower_length(words) > 3 ? hdi_lower_def(l, words[3], SpvOpConstant, 4) : NULL;
        return length ? length[3] : 0;
    case SpvOpTypeStruct: return hdi_lower_length(words) - 2;
    case HDI_SPIRV_TYPE_COOPERATIVE_MATRIX: return 1; /* which stands for all */
    default: return 0;
    }
}

static void put_replicate(spelling *s, hdi_lower_words *to, const uint32_t *words) {
    hdi_lowering *l = s->l;
    const uint32_t opcode = hdi_lower_opcode(words), count = hdi_lower_length(words) == 4 ? parts_of(l, words[1]) : 0;
    if (count == 0) { /* the checks name the type */
        copy(l, to, words);
        return;
    }
    if (count > MOST_PARTS) {
        hdi_lower_refuse(l, words, "a composite of %u parts; %d are taken", count, MOST_PARTS);
        return;
    }
    uint32_t *all = hdi_arena_alloc(&l->arena, (2 + (size_t)count) * sizeof *all);
    if (!all) {
        hdi_lower_refuse(l, words, "no host memory");
        return;
    }
    all[0] = words[1];
    all[1] = words[2];
    for (uint32_t i = 0; i < count; i++) all[2 + i] = words[3];
    hdi_lower_add(l, to,
                  opcode == REPLICATE            ? SpvOpCompositeConstruct
                  : opcode == CONSTANT_REPLICATE ? SpvOpConstantComposite
                                                 : SpvOpSpecConstantComposite,
                  all, 2 + count);
}

/* What is said of the group, of each of its targets that are there. */
static void put_group(spelling *s, const uint32_t *words) {
    hdi_lowering *l = s->l;
    const bool members = hdi_lower_opcode(words) == SpvOpGroupMemberDecorate;
    if (++s->groups > MOST_GROUPS) {
        hdi_lower_refuse(l, words, "more than %d groups of decorations", MOST_GROUPS);
        return;
    }
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->functions && !l->status; at += hdi_lower_length(l->words + at)) {
        const uint32_t *said = l->words + at, length = hdi_lower_length(said);
        if (hdi_lower_opcode(said) != SpvOpDecorate || length < 3 || length > 8 || said[1] != words[1]) continue;
        for (uint32_t i = 2; i + members < hdi_lower_length(words); i += 1 + members) {
            uint32_t all[9] = { words[i], members ? words[i + 1] : 0 };
            if (words[i] >= l->bound || !l->at[words[i]]) continue;
            memcpy(all + 1 + members, said + 2, (length - 2) * sizeof *all);
            hdi_lower_add(l, &s->front, members ? SpvOpMemberDecorate : SpvOpDecorate, all, length - 1 + members);
        }
    }
}

/* The type of floats whose arithmetic an instruction is; 0: it is none that may be contracted. */
static uint32_t arithmetic_of(const hdi_lowering *l, const uint32_t *words) {
    uint32_t type = hdi_lower_length(words) > 3 ? words[1] : 0;
    switch (hdi_lower_opcode(words)) {
    case SpvOpFAdd: case SpvOpFSub: case SpvOpFMul: case SpvOpFDiv: case SpvOpFNegate: case SpvOpDot:
    case SpvOpVectorTimesScalar: case SpvOpMatrixTimesScalar: case SpvOpVectorTimesMatrix: case SpvOpMatrixTimesVector:
    case SpvOpMatrixTimesMatrix: break;
    default: return 0;
    }
    const uint32_t *matrix = hdi_lower_def(l, type, SpvOpTypeMatrix, 4);
    const uint32_t *vector = hdi_lower_def(l, type = matrix ? matrix[2] : type, SpvOpTypeVector, 4);
    return vector ? vector[2] : type;
}

/* All arithmetic of the types that are not contracted, unless it says something itself. */
static void put_exact(spelling *s) {
    hdi_lowering *l = s->l;
    for (size_t at = l->functions; at < l->count && s->exact_count; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at, type = arithmetic_of(l, words);
        bool exact = false;
        for (uint32_t i = 0; i < s->exact_count; i++) exact |= type == s->exact[i];
        if (exact && words[2] < l->bound && !s->said[words[2]])
            HDI_LOWER_ADD(l, &s->front, SpvOpDecorate, words[2], SpvDecorationNoContraction);
    }
}

/* What is said of contracting; true: the instruction goes. */
static bool look_at_contracting(spelling *s, const uint32_t *words) {
    const hdi_lowering *l = s->l;
    if (is_default(words)) {
        const uint32_t *mask = hdi_lower_def(l, words[4], SpvOpConstant, 4);
        if (!(mask && mask[3] & MAY_CONTRACT) && s->exact_count < HDI_COUNT(s->exact))
            s->exact[s->exact_count++] = words[3];
        return true;
    }
    const bool exact = words[0] == (3u << SpvWordCountShift | SpvOpDecorate) && words[2] == SpvDecorationNoContraction;
    if (words[1] >= l->bound) return false;
    if (exact) s->said[words[1]] = true;
    if (!is_fast_math(words)) return false;
    if (!(words[3] & MAY_CONTRACT) && !s->said[words[1]] && arithmetic_of(l, l->words + l->at[words[1]]))
        HDI_LOWER_ADD(s->l, &s->front, SpvOpDecorate, words[1], SpvDecorationNoContraction);
    s->said[words[1]] = true;
    return true;
}

static void put_in_front(spelling *s, const uint32_t *words) {
    hdi_lowering *l = s->l;
    const uint32_t opcode = hdi_lower_opcode(words), length = hdi_lower_length(words), id = length > 1 ? words[1] : 0;
    const bool named = opcode == SpvOpName || opcode == SpvOpDecorate || opcode == SpvOpExtInstImport;
    if (named && (hdi_lower_def(l, id, SpvOpDecorationGroup, 2) || (id && (id == s->of_three || id == s->of_cubes))))
        return;
    if (id && look_at_contracting(s, words)) return;
    if (!s->decorated && (hdi_spirv_is_type(opcode) || hdi_spirv_is_constant(opcode))) {
        s->decorated = true;
        put_exact(s);
    }
    switch (opcode) {
    case SpvOpNop:
    case SpvOpDecorationGroup: return;
    case SpvOpGroupDecorate:
    case SpvOpGroupMemberDecorate:
        if (length > 1) put_group(s, words);
        return;
    case CONSTANT_REPLICATE:
    case SPEC_REPLICATE: put_replicate(s, &s->front, words); return;
    case SpvOpMemoryModel:
        if (!l->glsl) {
            const uint32_t name[] = { l->glsl = l->next++, 0x4c534c47u, 0x6474732eu, 0x3035342eu, 0 };
            hdi_lower_add(l, &s->front, SpvOpExtInstImport, name, HDI_COUNT(name)); /* "GLSL.std.450" */
        }
        break;
    default: break;
    }
    copy(l, &s->front, words);
}

/* ---- in functions ---- */

/* The case's number takes the place of what is switched on: 0 where it is none of them. */
static void put_switch(spelling *s, const uint32_t *words) {
    hdi_lowering *l = s->l;
    const uint32_t length = hdi_lower_length(words), type = hdi_image_type_of(l, words[1]), uint = hdi_lower_uint(l);
    uint32_t *all = hdi_arena_alloc(&l->arena, length * sizeof *all), which = number(l, 0), count = 2, cases = 0;
    if (!all || length % 3) {
        hdi_lower_refuse(l, words, all ? "half a case" : "no host memory");
        return;
    }
    for (uint32_t at = 3; at < length; at += 3) {
        const uint32_t wanted = HDI_LOWER_ONCE(l, SpvOpConstant, type, words[at], words[at + 1]);
        which = choose(s, uint, put(s, SpvOpIEqual, bool_type(l), words[1], wanted), number(l, ++cases), which);
        all[count++] = cases;
        all[count++] = words[at + 2];
    }
    all[0] = which;
    all[1] = words[2];
    if (s->merge) copy(l, &s->code, s->merge);
    s->merge = NULL;
    hdi_lower_add(l, &s->code, SpvOpSwitch, all, count);
}

/* The set has floats, unsigned and signed numbers in turns: first the least of each, then the greatest, the middle. */
static void put_of_three(spelling *s, const uint32_t *words) {
    hdi_lowering *l = s->l;
    const uint32_t which = words[4] - 1, type = words[1];
    if (which >= LAST_OF_THREE || hdi_lower_length(words) != 8) {
        hdi_lower_refuse(l, words, "it is none of the nine of its set");
        return;
    }
    const uint32_t least = GLSL_FMIN + which % 3, greatest = GLSL_FMAX + which % 3;
    const uint32_t outer = which / 3 == 0 ? least : greatest;
    uint32_t a = 0, b = words[7];
    if (which / 3 < 2) {
        a = put_glsl(s, outer, type, words[5], words[6]);
    } else {
        a = put_glsl(s, least, type, words[5], words[6]);
        b = put_glsl(s, least, type, put_glsl(s, greatest, type, words[5], words[6]), b);
    }
    HDI_LOWER_ADD(l, &s->code, SpvOpExtInst, type, words[2], l->glsl, outer, a, b);
}

/* The face of a cube that a direction meets, 0 to 5 in Vulkan's order, or where on it, from 0 to 1. */
static void put_of_cube(spelling *s, const uint32_t *words) {
    hdi_lowering *l = s->l;
    const uint32_t type = hdi_lower_float(l), truth = bool_type(l), which = words[4];
    const uint32_t given = hdi_lower_length(words) > 5 ? hdi_image_type_of(l, words[5]) : 0;
    const uint32_t *vector = hdi_lower_def(l, given, SpvOpTypeVector, 4);
    const uint32_t pair = HDI_LOWER_ONCE(l, SpvOpTypeVector, 0, type, 2);
    const bool fits = vector && vector[2] == type && vector[3] == 3 && words[1] == (which == FACE_INDEX ? type : pair);
    if ((which != FACE_INDEX && which != FACE_COORDINATES) || !fits) {
        hdi_lower_refuse(l, words,
                         which > FACE_COORDINATES ? "a clock: what a kernel gives follows from its inputs alone"
                                                  : "its operand is no direction of three floats");
        return;
    }
    uint32_t r[3], size[3], under[3];
    for (uint32_t i = 0; i < 3; i++) {
        HDI_LOWER_ADD(l, &s->code, SpvOpCompositeExtract, type, r[i] = l->next++, words[5], i);
        HDI_LOWER_ADD(l, &s->code, SpvOpExtInst, type, size[i] = l->next++, l->glsl, GLSL_FABS, r[i]);
        under[i] = put(s, SpvOpFOrdLessThan, truth, r[i], real(l, 0));
    }
    const uint32_t beyond_x = put(s, SpvOpFOrdGreaterThanEqual, truth, size[2], size[0]);
    const uint32_t beyond_y = put(s, SpvOpFOrdGreaterThanEqual, truth, size[2], size[1]);
    const uint32_t z = put(s, SpvOpLogicalAnd, truth, beyond_x, beyond_y);
    const uint32_t y = put(s, SpvOpFOrdGreaterThanEqual, truth, size[1], size[0]); /* where it is not z */
    if (which == FACE_INDEX) {
        static const uint32_t faces[] = { 0, ONE, TWO, 0x40400000u, 0x40800000u, 0x40A00000u }; /* 0 to 5 */
        uint32_t face[3];
        for (uint32_t i = 0; i < 3; i++)
            face[i] = choose(s, type, under[i], real(l, faces[2 * i + 1]), real(l, faces[2 * i]));
        const uint32_t x_or_y = choose(s, type, y, face[1], face[0]);
        HDI_LOWER_ADD(l, &s->code, SpvOpSelect, words[1], words[2], z, face[2], x_or_y);
        return;
    }
    uint32_t minus[3];
    for (uint32_t i = 0; i < 3; i++)
        HDI_LOWER_ADD(l, &s->code, SpvOpFNegate, type, minus[i] = l->next++, r[i]);
    const uint32_t across[] = { choose(s, type, under[0], r[2], minus[2]), r[0],
                                choose(s, type, under[2], minus[0], r[0]) };
    const uint32_t down[] = { minus[1], choose(s, type, under[1], minus[2], r[2]), minus[1] };
    const uint32_t along = choose(s, type, z, size[2], choose(s, type, y, size[1], size[0]));
    const uint32_t twice = put(s, SpvOpFMul, type, along, real(l, TWO));
    uint32_t at[2];
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t *of = i == 0 ? across : down;
        const uint32_t part = choose(s, type, z, of[2], choose(s, type, y, of[1], of[0]));
        at[i] = put(s, SpvOpFAdd, type, put(s, SpvOpFDiv, type, part, twice), real(l, HALF));
    }
    HDI_LOWER_ADD(l, &s->code, SpvOpCompositeConstruct, words[1], words[2], at[0], at[1]);
}

/* Two products of halves, which are numbers of 32 bits without any rounding, and what they are added to. */
static void put_dot(spelling *s, const uint32_t *words) {
    hdi_lowering *l = s->l;
    const uint32_t type = hdi_lower_float(l), pair = HDI_LOWER_ONCE(l, SpvOpTypeVector, 0, type, 2);
    const uint32_t *halves = hdi_lower_def(l, hdi_image_type_of(l, words[3]), SpvOpTypeVector, 4);
    if (!halves || halves[3] != 2 || words[1] != type || hdi_image_type_of(l, words[4]) != halves[1]) {
        hdi_lower_refuse(l, words, "its operands are not two halves each and a float");
        return;
    }
    uint32_t wide[2], part, sum = words[5];
    for (uint32_t i = 0; i < 2; i++)
        HDI_LOWER_ADD(l, &s->code, SpvOpFConvert, pair, wide[i] = l->next++, words[3 + i]);
    const uint32_t products = put(s, SpvOpFMul, pair, wide[0], wide[1]);
    for (uint32_t i = 0; i < 2; i++) {
        HDI_LOWER_ADD(l, &s->code, SpvOpCompositeExtract, type, part = l->next++, products, i);
        HDI_LOWER_ADD(l, &s->code, SpvOpFAdd, type, i ? words[2] : l->next, sum, part);
        sum = i ? 0 : l->next++;
    }
}

static void put_in_function(spelling *s, const uint32_t *words) {
    hdi_lowering *l = s->l;
    const uint32_t opcode = hdi_lower_opcode(words), length = hdi_lower_length(words);
    if (opcode == SpvOpNop) return;
    if (is_wide_switch(l, words)) {
        put_switch(s, words);
        return;
    }
    if (s->merge) copy(l, &s->code, s->merge);
    s->merge = opcode == SpvOpSelectionMerge ? words : NULL;
    if (s->merge) return;
    if (opcode == REPLICATE) put_replicate(s, &s->code, words);
    else if (opcode == DOT_32 && length == 6) put_dot(s, words);
    else if (opcode == FMA && length == 6)
        HDI_LOWER_ADD(l, &s->code, SpvOpExtInst, words[1], words[2], l->glsl, GLSL_FMA, words[3], words[4], words[5]);
    else if (is_of_set(words, s->of_three)) put_of_three(s, words);
    else if (is_of_set(words, s->of_cubes)) put_of_cube(s, words);
    else copy(l, &s->code, words);
}

bool hdi_lower_spell(hdi_lowering *l) {
    spelling s = { .l = l, .of_three = hdi_lower_set(l, OF_THREE), .of_cubes = hdi_lower_set(l, OF_CUBES) };
    l->glsl = hdi_lower_set(l, "GLSL.std.450");
    s.said = hdi_arena_alloc(&l->arena, l->bound * sizeof *s.said);
    if (!s.said) return false;
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->count && !l->status; at += hdi_lower_length(l->words + at)) {
        if (at < l->functions) put_in_front(&s, l->words + at);
        else put_in_function(&s, l->words + at);
        if (s.front.count + s.code.count > HDI_SPIRV_MAX_BYTES / 4)
            hdi_lower_refuse(l, l->words + at, "a module that becomes too long");
    }
    if (l->status) return true;
    const size_t count = HDI_SPIRV_HEADER_WORDS + s.front.count + l->globals.count + s.code.count;
    uint32_t *words = hdi_arena_alloc(&l->arena, count * sizeof *words), *to = words;
    if (!words) return false;
    memcpy(to, l->words, HDI_SPIRV_HEADER_WORDS * sizeof *to);
    to += HDI_SPIRV_HEADER_WORDS;
    const hdi_lower_words *parts[] = { &s.front, &l->globals, &s.code };
    for (size_t i = 0; i < HDI_COUNT(parts); i++) {
        if (parts[i]->count) memcpy(to, parts[i]->items, parts[i]->count * sizeof *to);
        to += parts[i]->count;
    }
    words[3] = l->next;
    l->words = words;
    l->count = count;
    l->bound = l->next;
    l->globals.count = 0;
    hdi_names_free(&l->stated.ids);
    l->stated = (hdi_spirv_stated){ 0 };
    return true;
}
