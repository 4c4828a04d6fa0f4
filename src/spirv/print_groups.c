/* print_groups.c: what invocations do together: barriers, subgroups, cooperative matrices. The preludes hold the
 * bodies, as functions on u32, i32 and f32; other numbers of up to 32 bits are widened for them. A dialect without
 * subgroups gets them through shared memory, 32 lanes of a workgroup at a time: every invocation has to come along then
 * (uniform.c). */
#include "spirv/print.h"

static uint32_t def_at(const hdi_spirv_printer *p, const uint32_t *words, uint32_t at) {
    return p->same[hdi_spirv_find(p->m, words[at])];
}

/* ---- barriers ---- */

bool hdi_spirv_put_barrier(hdi_spirv_printer *p, uint32_t inst, uint32_t opcode) {
    enum { ACQUIRES = SpvMemorySemanticsAcquireMask | SpvMemorySemanticsUniformMemoryMask };
    const uint32_t *words = hdi_spirv_words(p->m, inst);
    uint64_t scope = 0, semantics = 0;
    bool control = opcode == SpvOpControlBarrier;
    hdi_spirv_known(p->m, hdi_spirv_find(p->m, words[1]), &scope);
    hdi_spirv_known(p->m, hdi_spirv_find(p->m, words[control ? 3 : 2]), &semantics);
    bool of_subgroup = control && scope == SpvScopeSubgroup;
    if (hdi_spirv_is_wgsl(p) && (!control || of_subgroup))
        return hdi_spirv_unsupported(p->m, inst,
                                     control ? "WGSL has no barrier of a subgroup"
                                             : "WGSL has no memory barrier of its own");
    if (of_subgroup) hdi_spirv_use_part(p, HDI_SPIRV_PART_SUBGROUPS);
    hdi_spirv_line(p);
    if (!control && p->printed->waits && semantics == ACQUIRES) hdi_spirv_put(p, "WAIT_EARLY();\n");
    else if (!control) hdi_spirv_put(p, "FENCE();\n");
    else if (of_subgroup) hdi_spirv_put(p, "sg_barrier();\n");
    else hdi_spirv_put(p, semantics & SpvMemorySemanticsUniformMemoryMask ? "BARRIER_ALL();\n" : "BARRIER();\n");
    return true;
}

/* ---- subgroups ---- */

/* add, mul, ... of the sums, by opcode; the letter says as what they are computed. */
static const char *sum_name(uint32_t opcode, char *out_kind) {
    static const struct {
        uint32_t opcode;
        char kind;
        const char *name;
    } sums[] = {
        { SpvOpGroupNonUniformIAdd, 'u', "add" },       { SpvOpGroupNonUniformFAdd, 'f', "add" },
        { SpvOpGroupNonUniformIMul, 'u', "mul" },       { SpvOpGroupNonUniformFMul, 'f', "mul" },
        { SpvOpGroupNonUniformSMin, 'i', "min" },       { SpvOpGroupNonUniformUMin, 'u', "min" },
        { SpvOpGroupNonUniformFMin, 'f', "min" },       { SpvOpGroupNonUniformSMax, 'i', "max" },
        { SpvOpGroupNonUniformUMax, 'u', "max" },       { SpvOpGroupNonUniformFMax, 'f', "max" },
        { SpvOpGroupNonUniformBitwiseAnd, 'u', "and" }, { SpvOpGroupNonUniformBitwiseOr, 'u', "or" },
        { SpvOpGroupNonUniformBitwiseXor, 'u', "xor" }, { SpvOpGroupNonUniformLogicalAnd, 'u', "and" },
        { SpvOpGroupNonUniformLogicalOr, 'u', "or" },   { SpvOpGroupNonUniformLogicalXor, 'u', "xor" },
    };
    for (size_t i = 0; i < HDI_COUNT(sums); i++)
        if (sums[i].opcode == opcode) return *out_kind = sums[i].kind, sums[i].name;
    return NULL;
}

/* A value from another lane: the same bits, whatever they are. */
static const char *move_format(uint32_t opcode, bool floats) {
    switch (opcode) {
    case SpvOpGroupNonUniformBroadcast: case SpvOpGroupNonUniformShuffle:
        return floats ? "sg_read_f32($0, $1)" : "($T)sg_read_u32((u32)$0, $1)";
    case SpvOpGroupNonUniformBroadcastFirst:
        return floats ? "sg_read_f32($0, sg_first())" : "($T)sg_read_u32((u32)$0, sg_first())";
    case SpvOpGroupNonUniformShuffleXor:
        return floats ? "sg_read_f32($0, SG_LANE ^ $1)" : "($T)sg_read_u32((u32)$0, SG_LANE ^ $1)";
    case SpvOpGroupNonUniformShuffleUp:
        return floats ? "sg_read_f32($0, SG_LANE - $1)" : "($T)sg_read_u32((u32)$0, SG_LANE - $1)";
    case SpvOpGroupNonUniformShuffleDown:
        return floats ? "sg_read_f32($0, SG_LANE + $1)" : "($T)sg_read_u32((u32)$0, SG_LANE + $1)";
    case SpvOpGroupNonUniformQuadBroadcast:
        return floats ? "sg_read_f32($0, (SG_LANE & ~3u) | $1)" : "($T)sg_read_u32((u32)$0, (SG_LANE & ~3u) | $1)";
    case SpvOpGroupNonUniformQuadSwap:
        return floats ? "sg_read_f32($0, SG_LANE ^ ($1 + 1u))" : "($T)sg_read_u32((u32)$0, SG_LANE ^ ($1 + 1u))";
    default: return NULL;
    }
}

static bool put_sum_of_lanes(hdi_spirv_printer *p, const uint32_t *words, const char *name, char kind,
                             uint32_t type_def) {
    static const char *const ways[] = { "reduce", "inclusive", "exclusive", "cluster" };
    const hdi_spirv_type *type = hdi_spirv_type_at(p->m, type_def);
    uint32_t operands[2] = { def_at(p, words, 5),
                             words[4] == SpvGroupOperationClusteredReduce ? def_at(p, words, 6) : 0 };
    char format[80];
    size_t at = 0;
    const char *scalar = kind == 'f' ? "f32" : kind == 'i' ? "i32" : "u32";
    const char *pieces[] = { kind == 'f' ? "sg_" : type->kind == 'b' ? "0u != sg_" : "($T)sg_", ways[words[4]], "(",
                             name, ", ", scalar, kind == 'f' ? ", $0" : kind == 'i' ? ", (i32)@0" : ", (u32)$0",
                             operands[1] ? ", $1)" : ")" };
    for (size_t i = 0; i < HDI_COUNT(pieces); i++) {
        size_t length = strlen(pieces[i]);
        memcpy(format + at, pieces[i], length);
        at += length;
    }
    format[at] = 0;
    return hdi_spirv_put_template(p, type_def, format, operands);
}

/* Ballots: four words, of which two are used. */
static bool put_ballot(hdi_spirv_printer *p, uint32_t inst, uint32_t opcode, const uint32_t *words) {
    static const char *const counts[] = { "sg_mask_all()", "sg_mask_up_to()", "sg_mask_below()" };
    uint32_t a = def_at(p, words, opcode == SpvOpGroupNonUniformBallotBitCount ? 5 : 4);
    switch (opcode) {
    case SpvOpGroupNonUniformBallot:
        hdi_spirv_put(p, "make_%t((u32)sg_ballot(%v), (u32)(sg_ballot(%v) >> 32u), 0u, 0u)",
                      hdi_spirv_find(p->m, words[1]), a, a);
        return true;
    case SpvOpGroupNonUniformInverseBallot: hdi_spirv_put(p, "sg_bit("); break;
    case SpvOpGroupNonUniformBallotBitExtract: hdi_spirv_put(p, "sg_bit("); break;
    case SpvOpGroupNonUniformBallotBitCount: hdi_spirv_put(p, "sg_count(%s & ", counts[words[4]]); break;
    case SpvOpGroupNonUniformBallotFindLSB: hdi_spirv_put(p, "sg_lowest("); break;
    case SpvOpGroupNonUniformBallotFindMSB: hdi_spirv_put(p, "sg_highest("); break;
    default: return hdi_spirv_unsupported(p->m, inst, "it has no form in %s", p->spelling->name);
    }
    hdi_spirv_put(p, "((u64)");
    hdi_spirv_put_component(p, a, 0);
    hdi_spirv_put(p, " | (u64)");
    hdi_spirv_put_component(p, a, 1);
    hdi_spirv_put(p, " << 32u)");
    if (opcode == SpvOpGroupNonUniformInverseBallot) hdi_spirv_put(p, ", SG_LANE");
    if (opcode == SpvOpGroupNonUniformBallotBitExtract) hdi_spirv_put(p, ", %v", def_at(p, words, 5));
    hdi_spirv_put(p, ")");
    return true;
}

bool hdi_spirv_put_group(hdi_spirv_printer *p, uint32_t inst, uint32_t opcode) {
    const hdi_spirv_module *m = p->m;
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t type_def = hdi_spirv_find(m, words[1]), length = words[0] >> 16;
    const hdi_spirv_type *type = hdi_spirv_type_at(m, type_def);
    if (hdi_spirv_is_wgsl(p)) return hdi_spirv_unsupported(p->m, inst, "WGSL has no subgroups here");
    hdi_spirv_use_part(p, HDI_SPIRV_PART_SUBGROUPS);
    if (type->width > 32) return hdi_spirv_unsupported(p->m, inst, "numbers of %u bits in a subgroup", type->width);
    uint32_t operands[2] = { length > 4 ? def_at(p, words, 4) : 0, length > 5 ? def_at(p, words, 5) : 0 };
    char kind;
    const char *name = sum_name(opcode, &kind);
    if (name) return put_sum_of_lanes(p, words, name, kind, type_def);
    const char *move = move_format(opcode, type->kind == 'f');
    if (move) return hdi_spirv_put_template(p, type_def, move, operands);
    switch (opcode) {
    case SpvOpGroupNonUniformElect: hdi_spirv_put(p, "SG_LANE == sg_first()"); return true;
    case SpvOpGroupNonUniformAll: hdi_spirv_put(p, "sg_ballot(!%v) == U64(0)", operands[0]); return true;
    case SpvOpGroupNonUniformAny: hdi_spirv_put(p, "sg_ballot(%v) != U64(0)", operands[0]); return true;
    case SpvOpGroupNonUniformAllEqual: {
        const hdi_spirv_type *of = hdi_spirv_type_of(m, operands[0]);
        if (of->width > 32) return hdi_spirv_unsupported(p->m, inst, "numbers of %u bits in a subgroup", of->width);
        hdi_spirv_put(p, "sg_reduce(and, u32, (u32)(");
        for (uint32_t i = 0; i < of->count; i++) {
            bool floats = of->kind == 'f' && of->width == 32;
            hdi_spirv_put(p, i ? " && " : "");
            hdi_spirv_put_component(p, operands[0], i);
            hdi_spirv_put(p, floats ? " == sg_read_f32(" : " == sg_read_u32((u32)");
            hdi_spirv_put_component(p, operands[0], i);
            hdi_spirv_put(p, ", sg_first())");
        }
        hdi_spirv_put(p, ")) != 0u");
        return true;
    }
    default: return put_ballot(p, inst, opcode, words);
    }
}

/* ---- cooperative matrices ---- */

static bool refuse_matrices(hdi_spirv_printer *p, uint32_t inst, hdi_spirv_part part, bool whole) {
    const uint32_t offer = whole ? HDI_SPIRV_OFFERS_WHOLE_MATRIX_UNITS : HDI_SPIRV_OFFERS_MATRIX_UNITS;
    bool lacks = !p->spelling->parts[part] || !(p->target->offers & offer);
    return lacks && !hdi_spirv_unsupported(p->m, inst, "%s has no cooperative matrices here", p->spelling->name);
}

static const hdi_spirv_type *element_of(const hdi_spirv_module *m, const hdi_spirv_type *matrix) {
    return hdi_spirv_type_at(m, matrix->element);
}

/* Does the module multiply numbers of this kind: whole ones, or bf16? */
static bool multiplies(const hdi_spirv_module *m, char kind) {
    for (uint32_t i = 1; i < m->type_count; i++)
        if (m->types[i].kind == 'c' && element_of(m, &m->types[i])->kind == kind) return true;
    return false;
}

/* Rows, columns and use of a matrix type. */
static void sizes(const hdi_spirv_printer *p, uint32_t type_def, uint64_t out[3]) {
    for (uint32_t i = 0; i < 3; i++) {
        out[i] = 0;
        hdi_spirv_known(p->m, hdi_spirv_find(p->m, hdi_spirv_def_words(p->m, type_def)[4 + i]), &out[i]);
    }
}

/* "a_f16": the use and the numbers of a matrix type, as its names end. */
static void put_matrix_name(hdi_spirv_printer *p, uint32_t type_def) {
    uint64_t size[3];
    sizes(p, type_def, size);
    hdi_spirv_put(p, "%c%s_", "abc"[size[2]], size[2] != 0 && size[1] == 8 ? "8" : "");
    const hdi_spirv_type *const element = element_of(p->m, hdi_spirv_type_at(p->m, type_def));
    if (element->kind == 'h') hdi_spirv_put(p, "bf16");
    else hdi_spirv_put_scalar_name(p, element, false);
}

void hdi_spirv_put_matrix_type(hdi_spirv_printer *p, uint32_t type_def) {
    hdi_spirv_put(p, "typedef matrix_");
    put_matrix_name(p, type_def);
    hdi_spirv_put(p, " t%u;\n", type_def);
}

/* A x B + C of the sizes and types that matrix units have wherever there are some: 16 x 16 x 16, halves or bf16, sums
 * of f32; or 16 x 16 x 32 and 16 x 8 x 32, whole numbers of 8 bits, sums of 32. */
static bool is_taken(hdi_spirv_printer *p, uint32_t inst, uint32_t type_def) {
    uint64_t size[3];
    sizes(p, type_def, size);
    const bool whole = multiplies(p->m, 'i'), sum = size[2] == 2;
    const hdi_spirv_type *type = element_of(p->m, hdi_spirv_type_at(p->m, type_def));
    const uint64_t depth = whole ? 32 : 16, rows = size[2] == 1 ? depth : 16, columns = size[2] == 0 ? depth : 16;
    const bool eight = whole && size[2] != 0 && size[1] == 8;
    bool fits = size[0] == rows && (size[1] == columns || eight) && type->width == (sum ? 32 : whole ? 8 : 16) &&
                (type->kind == 'f' || whole || (type->kind == 'h' && !sum)) && (sum || (type->kind == 'i') == whole);
    return fits || hdi_spirv_unsupported(p->m, inst, "a cooperative matrix other than 16 x 16 halves beside sums of "
                                         "f32, or 16 x 32 and 32 x 16 or 8 numbers of 8 bits beside sums of 32");
}

static bool put_matrix_access(hdi_spirv_printer *p, uint32_t inst, const uint32_t *words, bool store) {
    const hdi_spirv_module *m = p->m;
    uint32_t matrix = def_at(p, words, 2), at = store ? 3 : 4, length = words[0] >> 16;
    uint32_t pointer = hdi_spirv_find(m, words[store ? 1 : 3]);
    const hdi_spirv_type *type = hdi_spirv_type_of(m, matrix),
                         *behind = hdi_spirv_type_at(m, hdi_spirv_type_of(m, pointer)->element);
    const uint32_t matrix_type = m->defs[matrix].type;
    uint64_t layout = 0;
    hdi_spirv_known(m, hdi_spirv_find(m, words[at]), &layout);
    if (!is_taken(p, inst, matrix_type)) return false;
    if (layout > 1 || length <= at + 1)
        return hdi_spirv_unsupported(p->m, inst, "a layout other than by rows or columns with a stride");
    uint32_t behind_bytes = behind->width / 8 * behind->count;
    if (store) hdi_spirv_line(p);
    hdi_spirv_put(p, store ? "matrix_store" : "matrix_load_");
    if (!store) put_matrix_name(p, matrix_type);
    hdi_spirv_put(p, "(");
    const char *const name = element_of(m, type)->kind != 'i' ? type->width == 16 ? "f16" : "f32"
                             : type->width == 8               ? "u8"
                                                              : "u32";
    if (!hdi_spirv_put_pointer(p, pointer, "", name)) return false;
    if (store) hdi_spirv_put(p, ", %v", matrix);
    hdi_spirv_put(p, ", %v * %uu / %uu, %s)", hdi_spirv_find(m, words[at + 1]), behind_bytes, type->width / 8,
                  layout ? "true" : "false");
    if (store) hdi_spirv_end(p);
    return true;
}

/* Sums lie alike in all matrices of their kind, so their elements meet where they lie. */
static bool put_matrix_of_two(hdi_spirv_printer *p, uint32_t inst, const uint32_t *words, const char *name) {
    uint64_t size[3];
    const uint32_t type_def = hdi_spirv_find(p->m, words[1]);
    sizes(p, type_def, size);
    if (size[2] != 2) return hdi_spirv_unsupported(p->m, inst, "it has no form for cooperative matrices but sums");
    const bool exact = p->m->defs[def_at(p, words, 2)].flags & HDI_SPIRV_NO_CONTRACTION && strcmp(name, "div") != 0;
    hdi_spirv_put(p, "matrix_%s%s(%v, %v)", exact ? "exact_" : "", name, def_at(p, words, 3), def_at(p, words, 4));
    return is_taken(p, inst, type_def);
}

/* Rows of sums to their largest element or their sum, which all elements of the row become. */
static bool put_matrix_reduction(hdi_spirv_printer *p, uint32_t inst, const uint32_t *words) {
    const hdi_spirv_module *m = p->m;
    enum { ROWS = 1, MAX = 40, NMAX = 80 };
    const uint32_t from = def_at(p, words, 3), type_def = hdi_spirv_find(m, words[1]);
    const hdi_spirv_function *combine = &m->functions[m->defs[hdi_spirv_find(m, words[5])].detail];
    const uint32_t only = m->blocks[combine->block_first].inst_first + 1, *op = hdi_spirv_words(m, only);
    const bool sum = hdi_spirv_opcode(m, only) == SpvOpFAdd,
               larger = hdi_spirv_opcode(m, only) == SpvOpExtInst && hdi_spirv_find(m, op[3]) == m->glsl_set &&
                        (op[4] == MAX || op[4] == NMAX);
    const bool returned = combine->block_count == 1 && m->blocks[combine->block_first].inst_end == only + 1;
    const uint32_t a = sum || larger ? def_at(p, op, sum ? 3 : 5) : 0, b = a ? def_at(p, op, sum ? 4 : 6) : 0,
                   low = combine->parameter_first;
    const bool of_both = a != b && a - low < 2 && b - low < 2;
    if (words[4] != ROWS || m->defs[from].type != type_def || !returned || !of_both ||
        def_at(p, hdi_spirv_words(m, only + 1), 1) != def_at(p, op, 2))
        return hdi_spirv_unsupported(p->m, inst, "a reduction other than of rows to themselves, by + or max");
    hdi_spirv_put(p, "matrix_row_%s(%v)", sum ? "sum" : "max", from);
    return is_taken(p, inst, type_def);
}

static bool put_matrix_converted(hdi_spirv_printer *p, uint32_t inst, const uint32_t *words, const char *to) {
    const uint32_t from = def_at(p, words, 3);
    hdi_spirv_put(p, "matrix_to_%s(%v)", to, from);
    return is_taken(p, inst, hdi_spirv_find(p->m, words[1])) && is_taken(p, inst, p->m->defs[from].type);
}

/* What asks where elements lie. */
static bool knows_places(hdi_spirv_printer *p, uint32_t inst) {
    return p->target->offers & HDI_SPIRV_OFFERS_WHOLE_MATRIX_UNITS ||
           hdi_spirv_unsupported(p->m, inst, "what rows of matrices hold is not known before sm_80");
}

/* Sums of f32 as factors: their elements lie alike in A only. */
static bool put_matrix_factors(hdi_spirv_printer *p, uint32_t inst, const uint32_t *words) {
    uint64_t to[3], from[3];
    const uint32_t type_def = hdi_spirv_find(p->m, words[1]);
    const hdi_spirv_type *const element = element_of(p->m, hdi_spirv_type_at(p->m, type_def));
    sizes(p, type_def, to);
    sizes(p, p->m->defs[def_at(p, words, 3)].type, from);
    if (to[2] != 0 || from[2] != 2)
        return hdi_spirv_unsupported(p->m, inst, "a conversion of matrices other than of sums to factors A");
    return knows_places(p, inst) &&
           put_matrix_converted(p, inst, words, element->kind == 'h' ? "bf16" : "f16");
}

/* What a lane holds of it. */
static bool put_matrix_length(hdi_spirv_printer *p, uint32_t type_def) {
    enum { LANES = 32 };
    uint64_t size[3];
    sizes(p, type_def, size);
    hdi_spirv_put(p, "%Uu", size[0] * size[1] / LANES);
    return true;
}

bool hdi_spirv_put_matrix(hdi_spirv_printer *p, uint32_t inst, uint32_t opcode) {
    const hdi_spirv_module *m = p->m;
    const uint32_t *words = hdi_spirv_words(m, inst);
    enum { SIGNED = 15 }; /* of all four matrices */
    const bool whole = multiplies(m, 'i');
    /* who multiplies whole numbers also has halves by fragments, whose elements' places are known */
    const hdi_spirv_part part = p->target->offers & HDI_SPIRV_OFFERS_WHOLE_MATRIX_UNITS ? HDI_SPIRV_PART_FRAGMENTS
                                                                                        : HDI_SPIRV_PART_MATRIX;
    if (refuse_matrices(p, inst, part, whole || multiplies(m, 'h'))) return false;
    hdi_spirv_use_part(p, HDI_SPIRV_PART_SPACES);
    hdi_spirv_use_part(p, part);
    hdi_spirv_use_part(p, HDI_SPIRV_PART_HALF);
    switch (opcode) {
    case HDI_SPIRV_COOPERATIVE_MATRIX_LOAD: return put_matrix_access(p, inst, words, false);
    case HDI_SPIRV_COOPERATIVE_MATRIX_STORE: return put_matrix_access(p, inst, words, true);
    case HDI_SPIRV_COOPERATIVE_MATRIX_MUL_ADD:
        if (whole && ((words[0] >> 16) < 7 || words[6] != SIGNED))
            return hdi_spirv_unsupported(p->m, inst, "matrices of unsigned numbers, or a product that saturates");
        if (element_of(m, hdi_spirv_type_of(m, def_at(p, words, 3))) !=
            element_of(m, hdi_spirv_type_of(m, def_at(p, words, 4))))
            return hdi_spirv_unsupported(p->m, inst, "a product of matrices of two kinds");
        hdi_spirv_put(p, "matrix_multiply(%v, %v, %v)", def_at(p, words, 3), def_at(p, words, 4), def_at(p, words, 5));
        return true;
    case HDI_SPIRV_COOPERATIVE_MATRIX_LENGTH:
        return put_matrix_length(p, hdi_spirv_find(m, words[3]));
    case SpvOpConstantComposite: case SpvOpSpecConstantComposite: case SpvOpCompositeConstruct:
        hdi_spirv_put(p, "matrix_fill_");
        put_matrix_name(p, hdi_spirv_find(m, words[1]));
        hdi_spirv_put(p, "(%v)", def_at(p, words, 3));
        return is_taken(p, inst, hdi_spirv_find(m, words[1]));
    case SpvOpConvertSToF: return put_matrix_converted(p, inst, words, "f32");
    case SpvOpFConvert: return put_matrix_factors(p, inst, words);
    case HDI_SPIRV_COOPERATIVE_MATRIX_REDUCE: return knows_places(p, inst) && put_matrix_reduction(p, inst, words);
    case SpvOpFAdd: return put_matrix_of_two(p, inst, words, "add");
    case SpvOpFSub: return put_matrix_of_two(p, inst, words, "sub");
    case SpvOpFMul: return put_matrix_of_two(p, inst, words, "mul");
    case SpvOpFDiv: return put_matrix_of_two(p, inst, words, "div");
    default: return hdi_spirv_unsupported(p->m, inst, "it has no form for cooperative matrices");
    }
}
