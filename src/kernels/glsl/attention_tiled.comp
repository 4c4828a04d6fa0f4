#version 450
// attention_tiled: softmax(scale * Q K^T) V of many query rows over f32 without a past, by tiles that are multiplied in
// registers, as the gradient's pass over the queries has them; fast mode only. The last rows come first: they see most keys.
#extension GL_GOOGLE_include_directive : require
#include "rows.glsl"
#include "attention_tiles.glsl"
#include "attention_weights.glsl"
layout(std430, binding = 5) buffer Out { float out_words[]; };

void main() {
    row_count = push.T * HEADS;
    const uint pairs = push.B * push.Hkv, blocks = (row_count + OWN - 1u) / OWN;
    const uint pair = group_number() % pairs, block = group_number() / pairs;
    if (block >= blocks) return;
    batch = pair / push.Hkv;
    head = pair - batch * push.Hkv;
    const uint row_first = (blocks - 1u - block) * OWN, rows_end = min(row_first + OWN, row_count);
    const uint most = CAUSAL == 1u ? (rows_end - 1u) / HEADS + 1u : push.T, slice_first = 0u; // T is at most S
    vec4 sums[ROWS * VECTORS];
    [[unroll]] for (uint i = 0u; i < ROWS * VECTORS; i++) sums[i] = vec4(0.0);
    begin_weights();

    for (uint begin = first_seen(row_first, rows_end) / OTHER * OTHER; begin < most; begin += OTHER) {
        float scores[ROWS * SCORES];
        MULTIPLY(scores, q, wide_q, query_first, row_first, rows_end, k, wide_k, key_first, begin, most)
        SET_SCORES(scores, row_first, begin)
        barrier();
        take_maximum();
        barrier();
        SET_WEIGHTS(scores)
        barrier();
        add_weights();
        barrier(); // PoCL 3.1 makes wrong code of what stands before and behind in one piece
        ADD_OTHERS(sums, RESCALE, v, wide_v, key_first, begin, most)
    }
    if (ME < OWN) running_sum[ME] = divided(1.0, running_sum[ME]);
    barrier();
    STORE_ROWS(sums, INVERSE, 1.0, 0u, query_first, row_first, rows_end)
}
