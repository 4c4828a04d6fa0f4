#version 450
// attention_gradient_units_q: attention_gradient_q on matrix units that reduce rows, with maximum and sum of each row as
// attention_tensor has them. Powers are of 2 here.
// target: vulkan1.3
#extension GL_GOOGLE_include_directive : require
#include "rows.glsl"
#define LONG_OTHERS HDI_ATTENTION_UNITS_KEYS
#define LONG_STAYS false
#define OUT_AT 7
#include "attention_gradient_units.glsl"
layout(constant_id = HDI_ATTENTION_TILES_TYPE) const uint TYPE = HDI_TYPE_F32; // of y
layout(std430, binding = 5) readonly buffer Y { uint y[]; };
layout(std430, binding = 6) buffer Facts { vec4 facts[]; };

const float LOWEST = -1e30; // of a row that has seen no key; scaled it is a number, too

float larger(const in float a, const in float b) { return max(a, b); }
float added(const in float a, const in float b) { return a + b; }

// The lane's half of sum(dy * y) of its row.
float along_half(uint tile_row, uint row) {
    float sum = 0.0;
    for (uint chunk = side; 8u * chunk < push.D; chunk += 2u) {
        uvec4 eight = tiles[tile_row * STRIDE + chunk];
        [[unroll]] for (uint e = 0u; e < 8u; e++) {
            uint bits = (e & 1u) == 0u ? eight[e / 2u] << 16 : eight[e / 2u] & 0xFFFF0000u;
            sum = fma(uintBitsToFloat(bits), LOAD_FLOAT(y, TYPE, query_first(row) + 8u * chunk + e), sum);
        }
    }
    return sum;
}

void main() {
    uint block;
    if (!begin_rows(push.T * HEADS, block)) return;
    const uint row_first = ((row_count + ROWS - 1u) / ROWS - 1u - block) * ROWS, rows_end = min(row_first + ROWS, row_count);
    const uint tile_row = gl_SubgroupID * UNIT + own_row, row = row_first + tile_row;
    const uint most = CAUSAL == 1u ? (rows_end - 1u) / HEADS + 1u : push.T; // T is at most S
    const uint seen_to = row >= rows_end ? 0u : CAUSAL == 1u ? row / HEADS + 1u : push.T, all_see_to = subgroupMin(seen_to);
    const uint from = seen_from(row), all_see_from = subgroupMax(from), first = first_seen(row_first, rows_end) / OTHERS * OTHERS;
    const float scale = uintBitsToFloat(push.scale) * 1.44269504;

    uvec4 next_keys[READS], next_values[READS];
    PLACE_OWN(OWN_AT, q, query_first, row_first, rows_end)
    PLACE_OWN(OWN_AT + ROWS, dy, query_first, row_first, rows_end)
    READ_TILE(next_keys, k, key_first, first, most)
    READ_TILE(next_values, v, key_first, first, most)
    barrier();
    FACTORS(A) query[OWN_UNITS], gradient[OWN_UNITS];
    KEEP_OWN(query, OWN_AT)
    KEEP_OWN(gradient, OWN_AT + ROWS)
    float along = row < rows_end && !sees_none(row) ? along_half(OWN_AT + ROWS + tile_row, row) : 0.0;
    along += subgroupShuffleXor(along, 1u);
    SUMS apart, result[UNITS], largest = SUMS(LOWEST), total = SUMS(0.0);
    LOAD_ROWS(apart, vec4(along), vec4(along))
    [[unroll]] for (uint i = 0u; i < UNITS; i++) result[i] = SUMS(0.0);

    for (uint begin = first; begin < most; begin += OTHERS) {
        barrier();
        PLACE_TILE(next_keys, 0u)
        PLACE_TILE(next_values, OTHERS)
        barrier();
        READ_TILE(next_keys, k, key_first, begin + OTHERS, most)
        READ_TILE(next_values, v, key_first, begin + OTHERS, most)
        SUMS scores[TILE], gradients[TILE], best = largest, now, factor;
        MULTIPLY(scores, query, OWN_AT, 0u)
        MULTIPLY(gradients, gradient, OWN_AT + ROWS, OTHERS)
        if (begin + OTHERS > all_see_to || begin < all_see_from)
            [[unroll]] for (uint j = 0u; j < TILE; j++) {
                SUMS mask;
                const uint key = begin + j * UNIT + 8u * side;
                vec4 low, high;
                [[unroll]] for (uint e = 0u; e < 4u; e++) {
                    low[e] = hidden(key + e < seen_to && key + e >= from);
                    high[e] = hidden(key + 4u + e < seen_to && key + 4u + e >= from);
                }
                LOAD_ROWS(mask, low, high)
                EACH(mask) scores[j][e] += mask[e];
            }
        [[unroll]] for (uint j = 0u; j < TILE; j++) EACH(best) best[e] = max(best[e], scores[j][e]);
        coopMatReduceNV(now, best, gl_CooperativeMatrixReduceRowNV, larger);
        bool grown = false;
        EACH(best) {
            const float base = now[e] * scale;
            grown = grown || now[e] > largest[e];
            factor[e] = exp2((largest[e] - now[e]) * scale);
            float sum = total[e] * factor[e];
            [[unroll]] for (uint j = 0u; j < TILE; j++) {
                mediump float power = fma(scores[j][e], scale, -base);
                const float weight = exp2(power);
                sum += weight;
                gradients[j][e] = weight * (gradients[j][e] - apart[e]);
            }
            total[e] = sum;
        }
        largest = now;
        if (subgroupAny(grown))
            [[unroll]] for (uint i = 0u; i < UNITS; i++) result[i] = result[i] * factor;
        ADD_OTHERS(result, gradients, 0u)
    }

    SUMS inverse;
    coopMatReduceNV(inverse, total, gl_CooperativeMatrixReduceRowNV, added);
    EACH(inverse) inverse[e] = 1.0 / inverse[e];
    STORE_UNIT(largest)
    const float own_largest = passing[at_passing].x;
    STORE_UNIT(inverse)
    const float own_inverse = sees_none(row) ? 0.0 : passing[at_passing].x;
    if (row < rows_end && side == 0u) facts[fact_at(row)] = vec4(own_largest * scale, own_inverse, along, 0.0);
    STORE_ROWS(result, own_inverse * uintBitsToFloat(push.scale), query_first, 0u, row, rows_end)
}
