#version 450
// attention_gradient_units_kv: attention_gradient_kv on matrix units that turn sums into factors: own rows are keys, the others
// queries, of which attention_gradient_units_q found out what weights are made of.
// target: vulkan1.3
#extension GL_GOOGLE_include_directive : require
#include "rows.glsl"
#define LONG_OTHERS HDI_ATTENTION_UNITS_OTHERS
#define LONG_STAYS true
#define OUT_AT 6
#include "attention_gradient_units.glsl"
layout(std430, binding = 5) readonly buffer Facts { vec4 facts[]; };

shared vec4 row_facts[3u * OTHERS / 4u]; // of a tile's rows: maxima, then 1 / sums, then sums of dy * y

// Of a unit that has the same 16 numbers in all of its rows.
#define LOAD_FACTS(unit, which) \
    coopMatLoad(unit, row_facts, ((which) * OTHERS + j * UNIT) / 4u, 0u, gl_CooperativeMatrixLayoutRowMajor);

// Those of the row that the lane brings, if it brings one.
#define READ_FACTS(begin) next_facts = at < OTHERS && (begin) + at < row_count ? facts[fact_at((begin) + at)].xyz : vec3(0.0);

void main() {
    uint block;
    if (!begin_rows(push.S, block)) return;
    const uint own = block * ROWS, own_end = min(own + ROWS, push.S), key = own + gl_SubgroupID * UNIT + own_row;
    const uint last_key = own + gl_SubgroupID * UNIT + UNIT - 1u;
    const float scale = uintBitsToFloat(push.scale) * 1.44269504;
    const uint queries = push.B * row_count * push.Hkv * push.D, keys = push.B * push.S * push.Hkv * push.D; // elements

    const uint at = gl_LocalInvocationIndex;
    uvec4 next_queries[READS], next_gradients[READS];
    const uint rows_first = CAUSAL == 1u ? own * HEADS : 0u;
    const uvec2 ends = rows_that_see(own, own_end, rows_first);
    uint begin = rows_first / OTHERS * OTHERS;
    PLACE_OWN(OWN_AT, k, key_first, own, own_end)
    PLACE_OWN(OWN_AT + ROWS, v, key_first, own, own_end)
    READ_TILE(next_queries, q, query_first, begin, row_count)
    READ_TILE(next_gradients, dy, query_first, begin, row_count)
    vec3 next_facts;
    READ_FACTS(begin)
    barrier();
    FACTORS(A) own_keys[OWN_UNITS], own_values[OWN_UNITS];
    KEEP_OWN(own_keys, OWN_AT)
    KEEP_OWN(own_values, OWN_AT + ROWS)
    SUMS of_keys[UNITS], of_values[UNITS];
    [[unroll]] for (uint i = 0u; i < UNITS; i++) of_keys[i] = of_values[i] = SUMS(0.0);

    for (; begin < ends.x; begin += OTHERS) {
        barrier();
        PLACE_TILE(next_queries, 0u)
        PLACE_TILE(next_gradients, OTHERS)
        if (at < OTHERS)
            [[unroll]] for (uint which = 0u; which < 3u; which++) row_facts[(which * OTHERS + at) / 4u][at % 4u] = next_facts[which];
        barrier();
        READ_TILE(next_queries, q, query_first, begin + OTHERS, row_count)
        READ_TILE(next_gradients, dy, query_first, begin + OTHERS, row_count)
        READ_FACTS(begin + OTHERS)
        SUMS scores[TILE], gradients[TILE];
        MULTIPLY(scores, own_keys, OWN_AT, 0u)
        MULTIPLY(gradients, own_values, OWN_AT + ROWS, OTHERS)
        if ((CAUSAL == 1u ? begin / HEADS < last_key : last_key >= push.T) || (STARTS == 1u && begin + OTHERS > ends.y))
            [[unroll]] for (uint j = 0u; j < TILE; j++) {
                SUMS mask;
                const uint row = begin + j * UNIT + 8u * side;
                vec4 low, high;
                [[unroll]] for (uint e = 0u; e < 4u; e++) {
                    low[e] = hidden((CAUSAL == 1u ? key <= (row + e) / HEADS : key < push.T) && key >= seen_from(row + e));
                    high[e] = hidden((CAUSAL == 1u ? key <= (row + 4u + e) / HEADS : key < push.T) && key >= seen_from(row + 4u + e));
                }
                LOAD_ROWS(mask, low, high)
                EACH(mask) scores[j][e] += mask[e];
            }
        [[unroll]] for (uint j = 0u; j < TILE; j++) {
            SUMS base, inverse, apart;
            LOAD_FACTS(base, 0u)
            LOAD_FACTS(inverse, 1u)
            LOAD_FACTS(apart, 2u)
            EACH(base) {
                mediump float power = fma(scores[j][e], scale, -base[e]);
                scores[j][e] = exp2(power) * inverse[e];
                gradients[j][e] = scores[j][e] * (gradients[j][e] - apart[e]);
            }
        }
        ADD_OTHERS(of_values, scores, OTHERS)
        ADD_OTHERS(of_keys, gradients, 0u)
    }
    STORE_ROWS(of_keys, uintBitsToFloat(push.scale), key_first, queries, key, own_end)
    STORE_ROWS(of_values, 1.0, key_first, queries + keys, key, own_end)
}
