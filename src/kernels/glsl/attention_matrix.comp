#version 450
// attention_matrix: softmax(scale * Q K^T) V on matrix units for many queries over f16, or over blocks that become f16: q and
// the weights are rounded to f16, all sums are f32, fast mode only. A workgroup of 4 subgroups of 32 has 64 query rows that share
// a key head, 16 for each subgroup, and walks over the keys 32 at a time; the next ones are read while these are used. Scores
// and weights pass from one product to the next through the subgroup's own shared memory, where two lanes have a row.
// target: vulkan1.3
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#include "rows.glsl"
const uint SUBGROUPS = 4u, INVOCATIONS = 128u, ROWS = HDI_ATTENTION_MATRIX_ROWS, KEYS = 32u;
#include "attention_units.glsl"

const uint SCORE_STRIDE = KEYS / 4u + 1u, WEIGHT_STRIDE = KEYS / 8u + 1u;
shared vec4 scores[SUBGROUPS * UNIT * SCORE_STRIDE];        // also what passes one unit of a result on
shared uvec4 weights[SUBGROUPS * UNIT * WEIGHT_STRIDE];

void main() {
    if (!begin_rows()) return;
    const uint own_scores = gl_SubgroupID * UNIT * SCORE_STRIDE, own_weights = gl_SubgroupID * UNIT * WEIGHT_STRIDE;

    FACTORS(A) query[UNITS];
    SUMS result[UNITS];
    read_queries(1.0);
    barrier();
    [[unroll]] for (uint i = 0u; i < UNITS; i++) {
        coopMatLoad(query[i], tiles, gl_SubgroupID * UNIT * STRIDE + 2u * i, STRIDE, gl_CooperativeMatrixLayoutRowMajor);
        result[i] = SUMS(0.0);
    }

    float largest = LEAST, total = 0.0;
    if ((FORM & HDI_ATTENTION_SINKS) != 0u) {
        largest = sink_of_row();
        total = largest == LEAST ? 0.0 : 1.0;
    }
    const uint kv_step = push.Hkv * push.D;
    uint page = page_of(batch, start); // of the keys that are read next
    uvec4 next_keys[READS], next_values[READS];
    for (uint end = start; end < most + KEYS; end += KEYS) { // round `end` uses the keys before it, and reads those behind
        if (end > start) {
            barrier();
            [[unroll]] for (uint i = 0u; i < READS; i++) {
                uint item = gl_LocalInvocationIndex + i * INVOCATIONS, at = item / CHUNKS * STRIDE + item % CHUNKS;
                if (item >= KEYS * CHUNKS) continue;
                tiles[at] = halves_of(next_keys[i], item % CHUNKS);
                tiles[KEYS * STRIDE + at] = halves_of(next_values[i], item % CHUNKS);
            }
            barrier();
        }
        const uint tile_first = row_of(batch, page, end) * kv_step + head * push.D;
        page = page_of(batch, end + KEYS);
        [[unroll]] for (uint i = 0u; i < READS; i++) {
            uint item = gl_LocalInvocationIndex + i * INVOCATIONS, key = end + item / CHUNKS, first = tile_first + item / CHUNKS * kv_step;
            next_keys[i] = next_values[i] = uvec4(0u);
            if (key >= most || item >= KEYS * CHUNKS) continue;
            READ_HALVES(k, wide_k, first, item % CHUNKS, next_keys[i])
            READ_HALVES(v, wide_v, first, item % CHUNKS, next_values[i])
        }
        if (end == start) continue;

        [[unroll]] for (uint j = 0u; j < KEYS / UNIT; j++) {
            SUMS products = SUMS(0.0);
            [[unroll]] for (uint i = 0u; i < UNITS; i++) {
                FACTORS(B) keys;
                coopMatLoad(keys, tiles, j * UNIT * STRIDE + 2u * i, STRIDE, gl_CooperativeMatrixLayoutColumnMajor);
                products = coopMatMulAdd(query[i], keys, products);
            }
            coopMatStore(products, scores, own_scores + j * UNIT / 4u, SCORE_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
        }
        subgroupBarrier();
        vec4 own_part[4]; // half of a row
        float best = largest;
        [[unroll]] for (uint i = 0u; i < 4u; i++) {
            own_part[i] = scores[own_scores + own_row * SCORE_STRIDE + 4u * side + i] * scale;
            [[unroll]] for (uint e = 0u; e < 4u; e++) {
                if (CAPPED) own_part[i][e] = cap * tanh_of(own_part[i][e]);
                if (SEES(end - KEYS + 16u * side + 4u * i + e)) best = max(best, own_part[i][e]);
            }
        }
        best = max(best, subgroupShuffleXor(best, 1u));
        const float rescale = exp2(largest - best);
        float sum = 0.0;
        [[unroll]] for (uint i = 0u; i < 4u; i++) {
            [[unroll]] for (uint e = 0u; e < 4u; e++)
                own_part[i][e] = SEES(end - KEYS + 16u * side + 4u * i + e) ? exp2(own_part[i][e] - best) : 0.0;
            sum += own_part[i].x + own_part[i].y + own_part[i].z + own_part[i].w;
        }
        [[unroll]] for (uint i = 0u; i < 2u; i++)
            weights[own_weights + own_row * WEIGHT_STRIDE + 2u * side + i] =
                uvec4(packHalf2x16(own_part[2u * i].xy), packHalf2x16(own_part[2u * i].zw), packHalf2x16(own_part[2u * i + 1u].xy), packHalf2x16(own_part[2u * i + 1u].zw));
        total = total * rescale + sum + subgroupShuffleXor(sum, 1u);
        const bool grown = subgroupMax(best > largest ? 1u : 0u) == 1u;
        largest = best;
        if (grown) { // each row of the result times its own factor
            subgroupBarrier();
            [[unroll]] for (uint i = 0u; i < 2u; i++) scores[own_scores + own_row * SCORE_STRIDE + 2u * side + i] = vec4(rescale);
            subgroupBarrier();
            SUMS factors;
            coopMatLoad(factors, scores, own_scores, SCORE_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint i = 0u; i < UNITS; i++) result[i] = result[i] * factors;
        }
        subgroupBarrier();
        [[unroll]] for (uint j = 0u; j < KEYS / UNIT; j++) {
            FACTORS(A) shares;
            coopMatLoad(shares, weights, own_weights + 2u * j, WEIGHT_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint i = 0u; i < UNITS; i++) {
                FACTORS(B) values;
                coopMatLoad(values, tiles, (KEYS + j * UNIT) * STRIDE + 2u * i, STRIDE, gl_CooperativeMatrixLayoutRowMajor);
                result[i] = coopMatMulAdd(shares, values, result[i]);
            }
        }
        subgroupBarrier();
    }

    const float inverse = total == 0.0 ? uintBitsToFloat(EXACT_NAN) : 1.0 / total;
    for (uint unit = 0u; unit < UNITS; unit++) { // only the choice of the unit is unrolled
        subgroupBarrier();
        [[unroll]] for (uint i = 0u; i < UNITS; i++)
            if (i == unit) coopMatStore(result[i], scores, own_scores, SCORE_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
        subgroupBarrier();
        const uint at = own_scores + own_row * SCORE_STRIDE + 2u * side;
        store_eight(unit * UNIT + 8u * side, scores[at], scores[at + 1u], inverse);
    }
}
