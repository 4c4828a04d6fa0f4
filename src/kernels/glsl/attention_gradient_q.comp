#version 450
// attention_gradient_q: the gradient of attention's queries, from the last rows to the first as these see most keys. Weights
// are made anew with a running maximum and sum for each row, as attention.comp has them; both are kept, with the row's sum
// of dy * y, for the pass over the keys.
#extension GL_GOOGLE_include_directive : require
#include "rows.glsl"
#include "attention_tiles.glsl"
#include "attention_weights.glsl"
layout(std430, binding = 3) readonly buffer Dy { float dy[]; };
layout(std430, binding = 3) readonly buffer WideDy { vec4 wide_dy[]; };
layout(std430, binding = 5) readonly buffer Y { float y[]; };
layout(std430, binding = 5) readonly buffer WideY { vec4 wide_y[]; };
layout(std430, binding = 6) buffer Facts { vec4 facts[]; };
layout(std430, binding = 7) buffer Out { float out_words[]; };

shared float along[OWN]; // sum of dy * y

void main() {
    row_count = push.T * HEADS;
    const uint pairs = push.B * push.Hkv, blocks = (row_count + OWN - 1u) / OWN, slices = (push.D + SLICE - 1u) / SLICE;
    const uint pair = group_number() % pairs, block = group_number() / pairs / slices;
    if (block >= blocks) return;
    batch = pair / push.Hkv;
    head = pair - batch * push.Hkv;
    const uint row_first = (blocks - 1u - block) * OWN, rows_end = min(row_first + OWN, row_count);
    const uint slice = group_number() / pairs % slices, slice_first = slice * SLICE;
    const uint most = CAUSAL == 1u ? (rows_end - 1u) / HEADS + 1u : push.T; // T is at most S
    const float scale = uintBitsToFloat(push.scale);

    float own_along = 0.0;
    for (uint d0 = 0u; d0 < push.D; d0 += 4u * PIECE) {
        barrier();
        STAGE(own_piece, STRIDE, OWN, PIECE, dy, wide_dy, query_first, row_first, rows_end, d0)
        STAGE(weights, STRIDE, OWN, PIECE, y, wide_y, query_first, row_first, rows_end, d0)
        barrier();
        float sum = 0.0;
        for (uint at = 0u; at < PIECE && ME < OWN; at++) sum = add_four(sum, own_piece[ME * STRIDE + at], weights[ME * STRIDE + at]);
        own_along = add_rounded(own_along, sum);
    }
    if (ME < OWN) along[ME] = sees_none(row_first + ME) ? 0.0 : own_along;
    begin_weights();
    vec4 sums[ROWS * VECTORS];
    [[unroll]] for (uint i = 0u; i < ROWS * VECTORS; i++) sums[i] = vec4(0.0);

    for (uint begin = first_seen(row_first, rows_end) / OTHER * OTHER; begin < most; begin += OTHER) {
        float scores[ROWS * SCORES], gradients[ROWS * SCORES];
        MULTIPLY(scores, q, wide_q, query_first, row_first, rows_end, k, wide_k, key_first, begin, most)
        SET_SCORES(scores, row_first, begin)
        MULTIPLY(gradients, dy, wide_dy, query_first, row_first, rows_end, v, wide_v, key_first, begin, most)
        take_maximum();
        barrier();
        SET_WEIGHTS(scores)
        barrier();
        add_weights();
        barrier();
        [[unroll]] for (uint r = 0u; r < ROWS; r++)
            [[unroll]] for (uint c = 0u; c < SCORES; c++) {
                float apart = add_rounded(gradients[r * SCORES + c], -along[OWN_ROW(r)]);
                SET_WEIGHT(r, c, mul_rounded(scores[r * SCORES + c], apart));
            }
        ADD_OTHERS(sums, RESCALE, k, wide_k, key_first, begin, most)
    }
    if (ME < OWN) {
        uint row = row_first + ME;
        running_sum[ME] = sees_none(row) ? 0.0 : divided(1.0, running_sum[ME]);
        if (row < rows_end && slice == 0u) facts[pair * row_count + row] = vec4(base_of(largest[ME]), running_sum[ME], along[ME], 0.0);
    }
    barrier();
    STORE_ROWS(sums, INVERSE, scale, 0u, query_first, row_first, rows_end)
}
