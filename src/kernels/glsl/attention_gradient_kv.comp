#version 450
// attention_gradient_kv: the gradients of attention's keys and values, from the first keys to the last as these are seen by
// most queries, with what the pass over the queries found out of each row.
#extension GL_GOOGLE_include_directive : require
#include "rows.glsl"
#include "attention_tiles.glsl"
layout(std430, binding = 3) readonly buffer Dy { float dy[]; };
layout(std430, binding = 3) readonly buffer WideDy { vec4 wide_dy[]; };
layout(std430, binding = 5) readonly buffer Facts { vec4 facts[]; };
layout(std430, binding = 6) buffer Out { float out_words[]; };

shared vec4 row_facts[OTHER]; // maximum, 1 / sum, sum of dy * y

void main() {
    row_count = push.T * HEADS;
    const uint pairs = push.B * push.Hkv, blocks = (push.S + OWN - 1u) / OWN, slices = (push.D + SLICE - 1u) / SLICE;
    const uint pair = group_number() % pairs, block = group_number() / pairs / slices;
    if (block >= blocks) return;
    batch = pair / push.Hkv;
    head = pair - batch * push.Hkv;
    const uint own = block * OWN, own_end = min(own + OWN, push.S);
    const uint slice_first = group_number() / pairs % slices * SLICE;
    const float scale = uintBitsToFloat(push.scale);
    const uint queries = push.B * row_count * push.Hkv * push.D, keys = push.B * push.S * push.Hkv * push.D; // elements

    vec4 of_keys[ROWS * VECTORS], of_values[ROWS * VECTORS];
    [[unroll]] for (uint i = 0u; i < ROWS * VECTORS; i++) of_keys[i] = of_values[i] = vec4(0.0);

    const uint rows_first = CAUSAL == 1u ? own * HEADS : 0u, rows_end = rows_that_see(own, own_end, rows_first).x;
    for (uint begin = rows_first / OTHER * OTHER; begin < rows_end; begin += OTHER) {
        float scores[ROWS * SCORES], gradients[ROWS * SCORES];
        if (ME < OTHER) row_facts[ME] = begin + ME < row_count ? facts[pair * row_count + begin + ME] : vec4(0.0);
        MULTIPLY(scores, k, wide_k, key_first, own, own_end, q, wide_q, query_first, begin, row_count)
        [[unroll]] for (uint c = 0u; c < SCORES; c++) {
            vec4 fact = row_facts[OTHER_ROW(c)];
            [[unroll]] for (uint r = 0u; r < ROWS; r++) {
                float weight = exponential(add_rounded(mul_rounded(scores[r * SCORES + c], scale), -fact.x));
                scores[r * SCORES + c] = sees(begin + OTHER_ROW(c), own + OWN_ROW(r)) ? mul_rounded(weight, fact.y) : 0.0;
                SET_WEIGHT(r, c, scores[r * SCORES + c]);
            }
        }
        MULTIPLY(gradients, v, wide_v, key_first, own, own_end, dy, wide_dy, query_first, begin, row_count)
        [[unroll]] for (uint c = 0u; c < SCORES; c++)
            [[unroll]] for (uint r = 0u; r < ROWS; r++)
                gradients[r * SCORES + c] = mul_rounded(scores[r * SCORES + c], add_rounded(gradients[r * SCORES + c], -row_facts[OTHER_ROW(c)].z));
        ADD_OTHERS(of_values, ONE, dy, wide_dy, query_first, begin, row_count)
        barrier();
        [[unroll]] for (uint c = 0u; c < SCORES; c++)
            [[unroll]] for (uint r = 0u; r < ROWS; r++) SET_WEIGHT(r, c, gradients[r * SCORES + c]);
        ADD_OTHERS(of_keys, ONE, q, wide_q, query_first, begin, row_count)
    }
    STORE_ROWS(of_keys, ONE, scale, queries, key_first, own, own_end)
    STORE_ROWS(of_values, ONE, 1.0, queries + keys, key_first, own, own_end)
}
