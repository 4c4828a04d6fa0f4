/* interpret_groups.c: what the lanes of a subgroup do together. Lanes stop at such an instruction; once all of the
 * subgroup have stopped, those that are furthest behind go on: the ones in a loop in its earlier rounds, before those
 * that have left it. So lanes that took different ways come together again where the ways do. */
#include "spirv/interpret.h"
#include <math.h>

bool hdi_interpret_is_meeting(const hdi_interpreter *x, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(x->m, inst);
    uint64_t scope = 0;
    if ((words[0] & 0xFFFF) == SpvOpControlBarrier)
        return hdi_spirv_known(x->m, hdi_spirv_find(x->m, words[1]), &scope) && scope == SpvScopeSubgroup;
    return hdi_spirv_is_group(words[0] & 0xFFFF);
}

/* ---- who is furthest behind ---- */

/* The loops around a block of the function, outermost first; how many. */
static uint32_t loops_around(const hdi_interpreter *x, uint32_t block, uint32_t out[HDI_SPIRV_MAX_NEST]) {
    uint32_t count = 0;
    for (uint32_t b = block; b != HDI_SPIRV_NONE && count < HDI_SPIRV_MAX_NEST; b = x->m->blocks[b].construct)
        if (x->machine->loop[b] != HDI_SPIRV_NONE) out[count++] = b;
    for (uint32_t i = 0; i < count / 2; i++) {
        const uint32_t other = out[i];
        out[i] = out[count - 1 - i];
        out[count - 1 - i] = other;
    }
    return count;
}

static int compare(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

/* Of two instructions of one function, in these blocks. */
static int compare_places(const hdi_interpreter *x, const hdi_invocation *a, uint32_t a_block, const hdi_invocation *b,
                          uint32_t b_block) {
    uint32_t a_loops[HDI_SPIRV_MAX_NEST], b_loops[HDI_SPIRV_MAX_NEST];
    const uint32_t a_count = loops_around(x, a_block, a_loops), b_count = loops_around(x, b_block, b_loops);
    const uint32_t *place = x->m->tree.place, *loop = x->machine->loop;
    for (uint32_t i = 0; i < HDI_MIN(a_count, b_count); i++) {
        if (a_loops[i] != b_loops[i]) return compare(place[a_loops[i]], place[b_loops[i]]);
        const int order = compare(a->rounds[loop[a_loops[i]]], b->rounds[loop[b_loops[i]]]);
        if (order) return order;
    }
    return compare(place[a_block], place[b_block]);
}

/* Below 0: `a` is behind. 0: they are at one place, in the same rounds of the same loops. */
static int compare_lanes(const hdi_interpreter *x, const hdi_invocation *a, const hdi_invocation *b) {
    const hdi_spirv_module *m = x->m;
    for (uint32_t i = 0;; i++) {
        const uint32_t a_inst = i < a->depth ? a->calls[i] : a->inst, b_inst = i < b->depth ? b->calls[i] : b->inst;
        const uint32_t a_block =
            i < a->depth ? m->defs[hdi_spirv_find(m, hdi_spirv_words(m, a_inst)[2])].block : a->block;
        const uint32_t b_block =
            i < b->depth ? m->defs[hdi_spirv_find(m, hdi_spirv_words(m, b_inst)[2])].block : b->block;
        const int order = compare_places(x, a, a_block, b, b_block);
        if (order) return order;
        if (a_inst != b_inst) return compare(a_inst, b_inst);
        if (i >= a->depth || i >= b->depth) return compare(a->depth, b->depth);
    }
}

/* ---- what they do ---- */

enum { MOST_LANES = 64 };
typedef struct meeting {
    hdi_interpreter *x;
    const uint32_t  *words;
    hdi_invocation  *lanes;      /* of the subgroup */
    uint32_t         count, lane; /* of them; the one whose result is made */
    uint64_t         active;     /* a bit for each lane that is there */
    const hdi_spirv_type *type;
} meeting;

/* A lane's own operand; one that is not there gives NULL. */
static const uint64_t *of_lane(const meeting *at, uint32_t lane, uint32_t word) {
    if (lane >= at->count || !(at->active >> lane & 1)) return NULL;
    at->x->self = &at->lanes[lane];
    return hdi_interpret_id(at->x, at->words[word]);
}

static uint64_t combine(const meeting *at, uint64_t a, uint64_t b) {
    const uint32_t width = at->type->width;
    const int64_t x = at->type->kind == 'i' ? hdi_number_signed(a, width) : 0,
                  y = at->type->kind == 'i' ? hdi_number_signed(b, width) : 0;
    const double f = at->type->kind == 'f' ? hdi_number_float(a, width) : 0,
                 g = at->type->kind == 'f' ? hdi_number_float(b, width) : 0;
    switch (at->words[0] & 0xFFFF) {
    case SpvOpGroupNonUniformIAdd: return (a + b) & hdi_number_mask(width);
    case SpvOpGroupNonUniformIMul: return (a * b) & hdi_number_mask(width);
    case SpvOpGroupNonUniformFAdd: return hdi_number_bits(f + g, width);
    case SpvOpGroupNonUniformFMul: return hdi_number_bits(f * g, width);
    case SpvOpGroupNonUniformFMin: return isnan(f) ? b : isnan(g) ? a : f < g ? a : b;
    case SpvOpGroupNonUniformFMax: return isnan(f) ? b : isnan(g) ? a : f > g ? a : b;
    case SpvOpGroupNonUniformSMin: return x < y ? a : b;
    case SpvOpGroupNonUniformSMax: return x > y ? a : b;
    case SpvOpGroupNonUniformUMin: return a < b ? a : b;
    case SpvOpGroupNonUniformUMax: return a > b ? a : b;
    case SpvOpGroupNonUniformBitwiseAnd: case SpvOpGroupNonUniformLogicalAnd: return a & b;
    case SpvOpGroupNonUniformBitwiseOr: case SpvOpGroupNonUniformLogicalOr: return a | b;
    default: return a ^ b;
    }
}

/* What a sum of no lanes is. */
static uint64_t neutral(const meeting *at) {
    const uint32_t width = at->type->width;
    switch (at->words[0] & 0xFFFF) {
    case SpvOpGroupNonUniformIMul: case SpvOpGroupNonUniformLogicalAnd: return 1;
    case SpvOpGroupNonUniformFMul: return hdi_number_bits(1, width);
    case SpvOpGroupNonUniformFMin: return hdi_number_bits((double)INFINITY, width);
    case SpvOpGroupNonUniformFMax: return hdi_number_bits(-(double)INFINITY, width);
    case SpvOpGroupNonUniformSMin: return hdi_number_mask(width - 1);
    case SpvOpGroupNonUniformSMax: return UINT64_C(1) << (width - 1);
    case SpvOpGroupNonUniformUMin: case SpvOpGroupNonUniformBitwiseAnd: return hdi_number_mask(width);
    default: return 0;
    }
}

static void sum(const meeting *at, uint64_t *out) {
    const uint32_t *words = at->words;
    const uint64_t cluster = words[4] == SpvGroupOperationClusteredReduce ? of_lane(at, at->lane, 6)[0] : 0;
    uint32_t first = 0, end = at->count;
    if (words[4] == SpvGroupOperationInclusiveScan) end = at->lane + 1;
    if (words[4] == SpvGroupOperationExclusiveScan) end = at->lane;
    if (cluster && cluster <= at->count) {
        first = at->lane / (uint32_t)cluster * (uint32_t)cluster;
        end = first + (uint32_t)cluster;
    }
    for (uint32_t k = 0; k < at->type->count; k++) {
        uint64_t total = neutral(at);
        bool any = false;
        for (uint32_t lane = first; lane < end; lane++) {
            const uint64_t *value = of_lane(at, lane, 5);
            if (value) total = any ? combine(at, total, value[k]) : value[k];
            any |= value != NULL;
        }
        out[k] = total;
    }
}

static uint32_t first_lane(const meeting *at) { return (uint32_t)__builtin_ctzll(at->active); }

/* The lane whose value this one gets. */
static uint64_t read_lane(const meeting *at) {
    const uint32_t opcode = at->words[0] & 0xFFFF;
    const uint64_t lane = at->lane, by = opcode == SpvOpGroupNonUniformBroadcastFirst ? 0 : of_lane(at, at->lane, 5)[0];
    switch (opcode) {
    case SpvOpGroupNonUniformBroadcastFirst: return first_lane(at);
    case SpvOpGroupNonUniformShuffleXor: return lane ^ by;
    case SpvOpGroupNonUniformShuffleUp: return lane - by;
    case SpvOpGroupNonUniformShuffleDown: return lane + by;
    case SpvOpGroupNonUniformQuadBroadcast: return (lane & ~UINT64_C(3)) | (by & 3);
    case SpvOpGroupNonUniformQuadSwap: return lane ^ ((by + 1) & 3);
    default: return by;
    }
}

static void read_other(const meeting *at, uint64_t *out) {
    const uint64_t from = read_lane(at);
    const uint64_t *value = from < MOST_LANES ? of_lane(at, (uint32_t)from, 4) : NULL;
    for (uint32_t k = 0; k < at->type->count; k++) out[k] = value ? value[k] : 0;
}

/* Is it so for all that are there, or for any? */
static bool vote(const meeting *at, uint32_t opcode) {
    bool all = true, any = false;
    const uint64_t *own = of_lane(at, first_lane(at), 4);
    const uint64_t cells =
        hdi_interpret_cells_of(at->x->machine, at->x->m->defs[hdi_spirv_find(at->x->m, at->words[4])].type);
    const hdi_spirv_type *type = hdi_interpret_type(at->x, at->words[4]);
    for (uint32_t lane = 0; lane < at->count; lane++) {
        const uint64_t *value = of_lane(at, lane, 4);
        for (uint64_t k = 0; value && k < cells; k++) {
            bool yes = value[k] != 0;
            if (opcode == SpvOpGroupNonUniformAllEqual && type->kind == 'f')
                yes = hdi_number_float(value[k], type->width) == hdi_number_float(own[k], type->width);
            else if (opcode == SpvOpGroupNonUniformAllEqual) yes = value[k] == own[k];
            all &= yes;
            any |= yes;
        }
    }
    return opcode == SpvOpGroupNonUniformAny ? any : all;
}

static uint64_t mask_from(const uint64_t *cells) { return cells[0] | cells[1] << 32; }

static void ballot(const meeting *at, uint32_t opcode, uint64_t *out) {
    const uint64_t whole = hdi_number_mask(at->x->machine->lanes);
    uint64_t mask = 0, upto;
    if (opcode == SpvOpGroupNonUniformBallot) {
        for (uint32_t lane = 0; lane < at->count; lane++) {
            const uint64_t *value = of_lane(at, lane, 4);
            if (value && *value) mask |= UINT64_C(1) << lane;
        }
        out[0] = (uint32_t)mask;
        out[1] = mask >> 32;
        out[2] = out[3] = 0;
        return;
    }
    mask = mask_from(of_lane(at, at->lane, opcode == SpvOpGroupNonUniformBallotBitCount ? 5 : 4));
    switch (opcode) {
    case SpvOpGroupNonUniformInverseBallot: *out = mask >> at->lane & 1; break;
    case SpvOpGroupNonUniformBallotBitExtract: {
        const uint64_t bit = of_lane(at, at->lane, 5)[0];
        *out = bit < MOST_LANES ? mask >> bit & 1 : 0;
        break;
    }
    case SpvOpGroupNonUniformBallotBitCount:
        upto = at->words[4] == SpvGroupOperationReduce ? whole
             : hdi_number_mask(at->lane + (at->words[4] == SpvGroupOperationInclusiveScan));
        *out = (uint64_t)__builtin_popcountll(
            mask & (at->lane == 0 && at->words[4] == SpvGroupOperationExclusiveScan ? 0 : upto) & whole);
        break;
    case SpvOpGroupNonUniformBallotFindLSB:
        *out = mask & whole ? (uint64_t)__builtin_ctzll(mask & whole) : UINT32_MAX;
        break;
    default: *out = mask & whole ? 63u - (uint64_t)__builtin_clzll(mask & whole) : UINT32_MAX; break;
    }
}

static void result_of(const meeting *at, uint32_t opcode, uint64_t *out) {
    switch (opcode) {
    case SpvOpGroupNonUniformElect: *out = at->lane == first_lane(at); break;
    case SpvOpGroupNonUniformAll:
    case SpvOpGroupNonUniformAny: case SpvOpGroupNonUniformAllEqual: *out = vote(at, opcode); break;
    case SpvOpGroupNonUniformBroadcast: case SpvOpGroupNonUniformBroadcastFirst: case SpvOpGroupNonUniformShuffle:
    case SpvOpGroupNonUniformShuffleXor: case SpvOpGroupNonUniformShuffleUp: case SpvOpGroupNonUniformShuffleDown:
    case SpvOpGroupNonUniformQuadBroadcast: case SpvOpGroupNonUniformQuadSwap: read_other(at, out); break;
    case SpvOpGroupNonUniformBallot: case SpvOpGroupNonUniformInverseBallot: case SpvOpGroupNonUniformBallotBitExtract:
    case SpvOpGroupNonUniformBallotBitCount:
    case SpvOpGroupNonUniformBallotFindLSB: case SpvOpGroupNonUniformBallotFindMSB:
        ballot(at, opcode, out);
        break;
    default: sum(at, out); break;
    }
}

/* ---- together ---- */

bool hdi_interpret_meet(hdi_interpreter *x, uint32_t first, uint32_t count) {
    hdi_invocation *lanes = x->invocations + first, *behind = NULL;
    for (uint32_t i = 0; i < count; i++)
        if (lanes[i].state == HDI_INVOCATION_MEETS && (!behind || compare_lanes(x, &lanes[i], behind) < 0))
            behind = &lanes[i];
    if (!behind) return false;
    meeting at = { .x = x, .words = hdi_spirv_words(x->m, behind->inst), .lanes = lanes, .count = count };
    for (uint32_t i = 0; i < count; i++)
        if (lanes[i].state == HDI_INVOCATION_MEETS && compare_lanes(x, &lanes[i], behind) == 0)
            at.active |= UINT64_C(1) << i;
    const uint32_t opcode = at.words[0] & 0xFFFF;
    uint64_t results[MOST_LANES][4] = { { 0 } };
    if (opcode != SpvOpControlBarrier) at.type = hdi_spirv_type_at(x->m, hdi_spirv_find(x->m, at.words[1]));
    for (at.lane = 0; at.lane < count; at.lane++)
        if (at.type && at.active >> at.lane & 1) result_of(&at, opcode, results[at.lane]);
    for (uint32_t i = 0; i < count; i++) {
        if (!(at.active >> i & 1)) continue;
        x->self = &lanes[i];
        if (at.type) memcpy(hdi_interpret_id(x, at.words[2]), results[i], at.type->count * sizeof(uint64_t));
        lanes[i].inst++;
        lanes[i].state = HDI_INVOCATION_RUNS;
    }
    return true;
}
