#version 450
// attention_tensor: attention_matrix where matrix units reduce rows and turn sums into factors in their registers
// (GL_NV_cooperative_matrix2): scores do not leave them, but for those of tiles that some rows see in part, whose masks
// pass through shared memory. Each element of `largest`, before scaling, and of `factor` has its row's value; those of
// `total` are parts of its row's sum. Keys of a tile are used while its values are read, and the next ones while these are used.
// target: vulkan1.3
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_vote : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_NV_cooperative_matrix2 : require
#include "rows.glsl"
layout(constant_id = HDI_ATTENTION_ROWS) const uint ROWS = 64u;
const uint INVOCATIONS = 2u * ROWS, KEYS = HDI_ATTENTION_TENSOR_KEYS;
#include "attention_units.glsl"

const float LOWEST = -1e30; // of a row that has seen no key; scaled it is a number, too
const uint PASS_STRIDE = UNIT / 4u + 1u;
shared vec4 passing[ROWS * PASS_STRIDE]; // a unit of each subgroup on its way

float larger(const in float a, const in float b) { return max(a, b); }
float added(const in float a, const in float b) { return a + b; }

#define READ_TILE(words, wide, begin, first) \
    [[unroll]] for (uint i = 0u; i < READS; i++) { \
        uint item = gl_LocalInvocationIndex + i * INVOCATIONS; \
        next[i] = uvec4(0u); \
        if ((begin) + item / CHUNKS >= most || item >= KEYS * CHUNKS) continue; \
        READ_HALVES(words, wide, (first) + item / CHUNKS * kv_step, item % CHUNKS, next[i]) \
    }
#define PLACE_TILE(at_row) \
    [[unroll]] for (uint i = 0u; i < READS; i++) { \
        uint item = gl_LocalInvocationIndex + i * INVOCATIONS; \
        if (item < KEYS * CHUNKS) tiles[((at_row) + item / CHUNKS) * STRIDE + item % CHUNKS] = halves_of(next[i], item % CHUNKS); \
    }
#define EACH(matrix) [[unroll]] for (uint e = 0u; e < (matrix).length(); e++)
// A unit of which the lane gives 8 elements of its row, in two vectors.
#define LOAD_ROWS(unit, first_four, second_four) { \
    subgroupBarrier(); \
    passing[at_passing] = first_four; \
    passing[at_passing + 1u] = second_four; \
    subgroupBarrier(); \
    coopMatLoad(unit, passing, own_passing, PASS_STRIDE, gl_CooperativeMatrixLayoutRowMajor); }

float hidden(uint key) { return SEES(key) ? 0.0 : uintBitsToFloat(0xFF800000u); }
vec4 hidden_four(uint key) { return vec4(hidden(key), hidden(key + 1u), hidden(key + 2u), hidden(key + 3u)); }

void main() {
    if (!begin_rows()) return;
    const uint own_passing = gl_SubgroupID * UNIT * PASS_STRIDE, at_passing = own_passing + own_row * PASS_STRIDE + 2u * side;
    const uint all_see_to = subgroupMin(seen_to), all_see_from = subgroupMax(seen_from), kv_step = push.Hkv * push.D;

    uint page = page_of(batch, start), first = row_of(batch, page, start) * kv_step + head * push.D;
    uvec4 next[READS]; // of keys or values
    READ_TILE(k, wide_k, start, first)
    read_queries(scale < 0.0 ? -1.0 : 1.0);
    const float inner_scale = abs(scale); // its sign went to the queries
    scale = CAPPED ? 1.0 : inner_scale;
    barrier();
    FACTORS(A) query[UNITS];
    SUMS result[UNITS], largest = SUMS(LOWEST), total = SUMS(0.0);
    [[unroll]] for (uint i = 0u; i < UNITS; i++) {
        coopMatLoad(query[i], tiles, gl_SubgroupID * UNIT * STRIDE + 2u * i, STRIDE, gl_CooperativeMatrixLayoutRowMajor);
        result[i] = SUMS(0.0);
    }
    if ((FORM & HDI_ATTENTION_SINKS) != 0u) {
        const float sink = max(sink_of_row() / scale, LOWEST);
        LOAD_ROWS(largest, vec4(sink), vec4(sink))
        LOAD_ROWS(total, vec4(side == 0u && sink != LOWEST ? 1.0 : 0.0, 0.0, 0.0, 0.0), vec4(0.0))
    }

    for (uint begin = start; begin < most; begin += KEYS) {
        barrier();
        PLACE_TILE(0u)
        READ_TILE(v, wide_v, begin, first)
        page = page_of(batch, begin + KEYS);
        first = row_of(batch, page, begin + KEYS) * kv_step + head * push.D;
        barrier();
        SUMS scores[KEYS / UNIT];
        [[unroll]] for (uint j = 0u; j < KEYS / UNIT; j++) {
            scores[j] = SUMS(0.0);
            [[unroll]] for (uint i = 0u; i < UNITS; i++) {
                FACTORS(B) keys;
                coopMatLoad(keys, tiles, j * UNIT * STRIDE + 2u * i, STRIDE, gl_CooperativeMatrixLayoutColumnMajor);
                scores[j] = coopMatMulAdd(query[i], keys, scores[j]);
            }
        }
        PLACE_TILE(KEYS)
        READ_TILE(k, wide_k, begin + KEYS, first)

        SUMS best = largest, now, factor;
        if (CAPPED)
            [[unroll]] for (uint j = 0u; j < KEYS / UNIT; j++) EACH(best) scores[j][e] = cap * tanh_of(scores[j][e] * inner_scale);
        if (begin + KEYS > all_see_to || (CUT && begin < all_see_from))
            [[unroll]] for (uint j = 0u; j < KEYS / UNIT; j++) {
                SUMS mask;
                const uint key = begin + j * UNIT + 8u * side;
                LOAD_ROWS(mask, hidden_four(key), hidden_four(key + 4u))
                EACH(best) scores[j][e] += mask[e];
            }
        [[unroll]] for (uint j = 0u; j < KEYS / UNIT; j++) EACH(best) best[e] = max(best[e], scores[j][e]);
        coopMatReduceNV(now, best, gl_CooperativeMatrixReduceRowNV, larger);
        bool grown = false;
        EACH(best) {
            const float base = now[e] * scale;
            grown = grown || now[e] > largest[e];
            factor[e] = exp2((largest[e] - now[e]) * scale); // of a row that has seen no key: 1
            float sum = total[e] * factor[e];
            [[unroll]] for (uint j = 0u; j < KEYS / UNIT; j++) {
                mediump float power = fma(scores[j][e], scale, -base);
                scores[j][e] = exp2(power);
                sum += scores[j][e];
            }
            total[e] = sum;
        }
        largest = now;
        if (subgroupAny(grown))
            [[unroll]] for (uint i = 0u; i < UNITS; i++) result[i] = result[i] * factor;
        barrier();
        [[unroll]] for (uint j = 0u; j < KEYS / UNIT; j++) {
            FACTORS(A) shares = FACTORS(A)(scores[j]);
            [[unroll]] for (uint i = 0u; i < UNITS; i++) {
                FACTORS(B) values;
                coopMatLoad(values, tiles, (KEYS + j * UNIT) * STRIDE + 2u * i, STRIDE, gl_CooperativeMatrixLayoutRowMajor);
                result[i] = coopMatMulAdd(shares, values, result[i]);
            }
        }
    }

    SUMS inverse;
    coopMatReduceNV(inverse, total, gl_CooperativeMatrixReduceRowNV, added);
    EACH(inverse) inverse[e] = inverse[e] == 0.0 ? uintBitsToFloat(EXACT_NAN) : 1.0 / inverse[e];
    for (uint unit = 0u; unit < UNITS; unit++) { // only the choice of the unit is unrolled
        subgroupBarrier();
        [[unroll]] for (uint i = 0u; i < UNITS; i++)
            if (i == unit) coopMatStore(result[i] * inverse, passing, own_passing, PASS_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
        subgroupBarrier();
        store_eight(unit * UNIT + 8u * side, passing[at_passing], passing[at_passing + 1u], 1.0);
    }
}
