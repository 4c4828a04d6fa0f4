// attention_gradient_units.glsl: what both passes of attention's gradient on matrix units share. A workgroup owns ROWS rows of
// a key head, queries or keys, 16 for each subgroup of 32, where two lanes have a row; it walks over the others OTHERS at a
// time, by two tiles in shared memory. Operands are dense bf16 of whole vectors of 16 bytes, sums are f32 and stay, as scores
// and their gradients do, in the units' registers. Query rows are those of all heads that share the key head, in
// (token, head) order. Sums of long heads leave fewer registers: an includer says how many rows it meets of these at once
// (LONG_OTHERS), and whether own rows stay in shared memory (LONG_STAYS) or in registers, too; and where the result is bound
// (OUT_AT).
#ifndef ATTENTION_GRADIENT_UNITS_GLSL
#define ATTENTION_GRADIENT_UNITS_GLSL
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_bfloat16 : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_vote : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_NV_cooperative_matrix2 : require
layout(constant_id = HDI_ATTENTION_TILES_CAUSAL) const uint CAUSAL = 1u;
layout(constant_id = HDI_ATTENTION_TILES_HEADS) const uint HEADS = 1u;
layout(constant_id = HDI_ATTENTION_TILES_SLICE) const uint WIDTH = 64u;
layout(push_constant) uniform Push { uint B, T, S, Hkv, D, scale; } push;
layout(std430, binding = 0) readonly buffer Q { uvec4 q[]; };
layout(std430, binding = 1) readonly buffer K { uvec4 k[]; };
layout(std430, binding = 2) readonly buffer V { uvec4 v[]; };
layout(std430, binding = 3) readonly buffer Dy { uvec4 dy[]; };
layout(std430, binding = OUT_AT) buffer Out { uvec4 out_words[]; };

const bool LONG = WIDTH > HDI_ATTENTION_UNITS_SHORT, STAYS = LONG && LONG_STAYS;
const uint ROWS = HDI_ATTENTION_UNITS_ROWS, INVOCATIONS = 2u * ROWS, UNIT = 16u, UNITS = WIDTH / UNIT;
const uint OTHERS = LONG ? LONG_OTHERS : ROWS, TILE = OTHERS / UNIT;
// A row of a tile is WIDTH bf16 in chunks of 8; one chunk more spreads rows over the memory's banks. Own rows that do not stay
// are where the tiles come later.
const uint CHUNKS = WIDTH / 8u, STRIDE = CHUNKS + 1u, PASS_STRIDE = UNIT / 4u + 1u;
const uint ITEMS = OTHERS * CHUNKS, READS = (ITEMS + INVOCATIONS - 1u) / INVOCATIONS;
const uint OWN_AT = STAYS ? 2u * OTHERS : 0u, OWN_UNITS = STAYS ? 1u : UNITS;
shared uvec4 tiles[(OWN_AT + 2u * ROWS) * STRIDE];
shared vec4 passing[ROWS * PASS_STRIDE]; // a unit of each subgroup on its way

#define SUMS coopmat<float, gl_ScopeSubgroup, UNIT, UNIT, gl_MatrixUseAccumulator>
#define FACTORS(use) coopmat<bfloat16_t, gl_ScopeSubgroup, UNIT, UNIT, gl_MatrixUse##use>
#define EACH(matrix) [[unroll]] for (uint e = 0u; e < (matrix).length(); e++)

uint batch, head, row_count;
uint own_row, side, own_passing, at_passing; // the lane's row of its subgroup's 16, and which half of it the lane has
uint query_first(uint row) { // a row's first element
    uint token = row / HEADS;
    return (((batch * push.T + token) * push.Hkv + head) * HEADS + row - token * HEADS) * push.D;
}
uint key_first(uint key) { return ((batch * push.S + key) * push.Hkv + head) * push.D; }
#include "attention_starts.glsl"
float hidden(bool seen) { return seen ? 0.0 : uintBitsToFloat(0xFF800000u); }

// The chunks of a tile that the lane brings, of rows from `begin` to `end`; zeros beyond those and beyond the head.
#define CHUNK_OF(words, first_of, r, end, chunk) ((r) < (end) && 8u * (chunk) < push.D ? words[first_of(r) / 8u + (chunk)] : uvec4(0u))
#define READ_TILE(next, words, first_of, begin, end) \
    [[unroll]] for (uint i = 0u; i < READS; i++) { \
        const uint item = gl_LocalInvocationIndex + i * INVOCATIONS; \
        next[i] = CHUNK_OF(words, first_of, (begin) + item / CHUNKS, end, item % CHUNKS); \
    }
#define PLACE_TILE(next, at_row) \
    [[unroll]] for (uint i = 0u; i < READS; i++) { \
        const uint item = gl_LocalInvocationIndex + i * INVOCATIONS; \
        if (item < ITEMS) tiles[((at_row) + item / CHUNKS) * STRIDE + item % CHUNKS] = next[i]; \
    }
// Own rows, straight to where they are read from.
#define PLACE_OWN(at_row, words, first_of, begin, end) \
    [[unroll]] for (uint i = 0u; i < ROWS * CHUNKS / INVOCATIONS; i++) { \
        const uint item = gl_LocalInvocationIndex + i * INVOCATIONS; \
        tiles[((at_row) + item / CHUNKS) * STRIDE + item % CHUNKS] = CHUNK_OF(words, first_of, (begin) + item / CHUNKS, end, item % CHUNKS); \
    }
// Own rows, each subgroup's 16, as the left factors of all products: those that do not stay are loaded once.
#define LOAD_OWN(factor, at_row, i) \
    coopMatLoad(factor, tiles, ((at_row) + gl_SubgroupID * UNIT) * STRIDE + 2u * (i), STRIDE, gl_CooperativeMatrixLayoutRowMajor);
#define KEEP_OWN(factors, at_row) \
    [[unroll]] for (uint i = 0u; i < UNITS; i++) \
        if (!STAYS) LOAD_OWN(factors[STAYS ? 0u : i], at_row, i)
// sums[j] = own rows times the tile's.
#define MULTIPLY(sums, factors, own_at, at_row) \
    [[unroll]] for (uint j = 0u; j < TILE; j++) { \
        sums[j] = SUMS(0.0); \
        [[unroll]] for (uint i = 0u; i < UNITS; i++) { \
            FACTORS(B) others; \
            if (STAYS) LOAD_OWN(factors[0], own_at, i) \
            coopMatLoad(others, tiles, ((at_row) + j * UNIT) * STRIDE + 2u * i, STRIDE, gl_CooperativeMatrixLayoutColumnMajor); \
            sums[j] = coopMatMulAdd(factors[STAYS ? 0u : i], others, sums[j]); \
        } \
    }
// sums[i] += weights times the tile's rows.
#define ADD_OTHERS(sums, weights, at_row) \
    [[unroll]] for (uint j = 0u; j < TILE; j++) { \
        FACTORS(A) shares = FACTORS(A)(weights[j]); \
        [[unroll]] for (uint i = 0u; i < UNITS; i++) { \
            FACTORS(B) others; \
            coopMatLoad(others, tiles, ((at_row) + j * UNIT) * STRIDE + 2u * i, STRIDE, gl_CooperativeMatrixLayoutRowMajor); \
            sums[i] = coopMatMulAdd(shares, others, sums[i]); \
        } \
    }
// A unit of which the lane gives 8 elements of its row, in two vectors.
#define LOAD_ROWS(unit, first_four, second_four) { \
    subgroupBarrier(); \
    passing[at_passing + 2u * side] = first_four; \
    passing[at_passing + 2u * side + 1u] = second_four; \
    subgroupBarrier(); \
    coopMatLoad(unit, passing, own_passing, PASS_STRIDE, gl_CooperativeMatrixLayoutRowMajor); }
// The other way: each lane's 8 elements are in `passing` from at_passing + 2 * side on.
#define STORE_UNIT(unit) { \
    subgroupBarrier(); \
    coopMatStore(unit, passing, own_passing, PASS_STRIDE, gl_CooperativeMatrixLayoutRowMajor); \
    subgroupBarrier(); }
#define STORE_ROWS(sums, scale, first_of, first, row, end) \
    for (uint unit = 0u; unit < UNITS; unit++) { /* only the choice of the unit is unrolled */ \
        [[unroll]] for (uint i = 0u; i < UNITS; i++) \
            if (i == unit) STORE_UNIT(sums[i]) \
        const uint d = unit * UNIT + 8u * side; \
        if ((row) < (end) && d < push.D) store_eight((first) + first_of(row) + d, scale); \
    }
// Heads are whole vectors in either type.
void store_eight(uint at, float scale) {
    const uvec4 low = floatBitsToUint(passing[at_passing + 2u * side] * scale);
    const uvec4 high = floatBitsToUint(passing[at_passing + 2u * side + 1u] * scale);
    if (OUT_TYPE == HDI_TYPE_F32) {
        out_words[at / 4u] = low;
        out_words[at / 4u + 1u] = high;
    } else out_words[at / 8u] = uvec4(packed_four(low, OUT_TYPE), packed_four(high, OUT_TYPE));
}

// Finds the key head of the workgroup, and its block of `count` rows: those that come first are `block` 0.
bool begin_rows(uint count, out uint block) {
    const uint pairs = push.B * push.Hkv, pair = group_number() % pairs;
    row_count = push.T * HEADS;
    block = group_number() / pairs;
    batch = pair / push.Hkv;
    head = pair - batch * push.Hkv;
    own_row = gl_SubgroupInvocationID / 2u;
    side = gl_SubgroupInvocationID % 2u;
    own_passing = gl_SubgroupID * UNIT * PASS_STRIDE;
    at_passing = own_passing + own_row * PASS_STRIDE;
    return block * ROWS < count;
}
uint fact_at(uint row) { return (batch * push.Hkv + head) * row_count + row; }
#endif
