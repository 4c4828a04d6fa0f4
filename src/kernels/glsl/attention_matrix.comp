#version 450
// attention_matrix: softmax(scale * Q K^T) V on matrix units for many queries over an f16 cache: q and the weights are
// rounded to f16, all sums are f32, fast mode only. A workgroup of 4 subgroups of 32 has 64 query rows that share a key
// head, 16 for each subgroup, and walks over the keys 32 at a time; the next ones are read while these are used. Scores
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
layout(constant_id = HDI_ATTENTION_TYPE) const uint TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_ATTENTION_CAUSAL) const uint CAUSAL = 1u;
layout(constant_id = HDI_ATTENTION_PAST) const uint HAS_PAST = 0u;
layout(constant_id = HDI_ATTENTION_WIDTH) const uint WIDTH = 128u;
layout(constant_id = HDI_ATTENTION_WIDE) const uint WIDE = 1u;
layout(constant_id = HDI_ATTENTION_PAGE) const uint PAGE = 0u;
layout(constant_id = HDI_ATTENTION_FORM) const uint FORM = 0u;
layout(push_constant) uniform Push { uint B, T, S, Hq, Hkv, D, scale, N, window, cap, inverse_cap; } push;
layout(std430, binding = 0) readonly buffer Q { uint q[]; };
layout(std430, binding = 1) readonly buffer K { uint k[]; };
layout(std430, binding = 1) readonly buffer WideK { uvec4 wide_k[]; };
layout(std430, binding = 2) readonly buffer V { uint v[]; };
layout(std430, binding = 2) readonly buffer WideV { uvec4 wide_v[]; };
layout(std430, binding = 3) readonly buffer Past { int past[]; };
layout(std430, binding = 4) readonly buffer Pages { int pages[]; };
layout(std430, binding = 5) readonly buffer Sinks { float sinks[]; };
layout(std430, binding = 6) buffer Y { uint y[]; };
#include "pages.glsl"

// A row of a tile is WIDTH halves in chunks of 8; one chunk more spreads rows over the memory's banks.
const uint SUBGROUPS = 4u, INVOCATIONS = 128u, UNIT = 16u, ROWS = HDI_ATTENTION_MATRIX_ROWS, KEYS = 32u;
const uint UNITS = WIDTH / UNIT, CHUNKS = WIDTH / 8u, STRIDE = CHUNKS + 1u, READS = (KEYS * CHUNKS + INVOCATIONS - 1u) / INVOCATIONS;
const uint SCORE_STRIDE = KEYS / 4u + 1u, WEIGHT_STRIDE = KEYS / 8u + 1u;
const float LEAST = -3.40282347e38;
shared uvec4 tiles[2u * KEYS * STRIDE];                     // keys, then values; at first the queries
shared vec4 scores[SUBGROUPS * UNIT * SCORE_STRIDE];        // also what passes one unit of a result on
shared uvec4 weights[SUBGROUPS * UNIT * WEIGHT_STRIDE];

// tanh, near enough for what is multiplied with a cap of scores.
float tanh_of(float x) { return 1.0 - 2.0 / (1.0 + exp2(2.88539008 * (x > 16.0 ? 16.0 : x))); }
const bool WINDOWED = (FORM & HDI_ATTENTION_WINDOWED) != 0u, CAPPED = (FORM & HDI_ATTENTION_CAPPED) != 0u;
#define SEES(key) ((key) < seen_to && (!WINDOWED || (key) >= seen_from))
uint batch, head, row_first, rows, heads;
uint first_of_row(uint r) {
    uint token = (row_first + r) / heads;
    return ((batch * push.T + token) * push.Hq + head * heads + row_first + r - token * heads) * push.D;
}
uint half_of(float x) { return f32_bits_to_f16(floatBitsToUint(x > 65504.0 ? 65504.0 : x < -65504.0 ? -65504.0 : x)); }

// 8 halves from `first + 8 * chunk` on, zeros beyond the head.
#define READ_HALVES(words, wide, first, chunk, out_words) { \
    out_words = uvec4(0u); \
    if (WIDE == 1u) { \
        if (8u * (chunk) < push.D) out_words = wide[((first) >> 3) + (chunk)]; \
    } else { \
        for (uint e = 0u; e < 8u; e++) { \
            uint d = 8u * (chunk) + e, index = (first) + d; \
            if (d < push.D) out_words[e >> 1] |= ((words[index >> 1] >> (16u * (index & 1u))) & 0xFFFFu) << (16u * (e & 1u)); \
        } \
    } }

void read_queries() {
    for (uint item = gl_LocalInvocationIndex; item < ROWS * CHUNKS; item += INVOCATIONS) {
        uint r = item / CHUNKS, chunk = item - r * CHUNKS, first = first_of_row(r);
        uvec4 halves = uvec4(0u);
        [[unroll]] for (uint e = 0u; e < 8u; e++) {
            uint d = 8u * chunk + e;
            if (r < rows && d < push.D) halves[e >> 1] |= half_of(LOAD_FLOAT(q, TYPE, first + d)) << (16u * (e & 1u));
        }
        tiles[r * STRIDE + chunk] = halves;
    }
}

void main() {
    heads = push.Hq / push.Hkv;
    const uint row_count = push.T * heads, blocks = (row_count + ROWS - 1u) / ROWS, pairs = push.B * push.Hkv;
    if (group_number() >= pairs * blocks) return;
    const uint block = blocks - 1u - group_number() / pairs, pair = group_number() % pairs; // those that see most come first
    batch = pair / push.Hkv;
    head = pair - batch * push.Hkv;
    row_first = block * ROWS;
    rows = min(ROWS, row_count - row_first);
    const int before = HAS_PAST == 1u ? min(max(past[batch], -int(push.T)), int(push.S)) : 0;
    const uint subgroup = gl_SubgroupID, own_row = gl_SubgroupInvocationID / 2u, side = gl_SubgroupInvocationID % 2u, row = subgroup * UNIT + own_row;
    const uint own = row_first + min(row, rows - 1u), own_token = own / heads;
    const int next = before + int(own_token) + 1, to = CAUSAL == 1u ? next : before + int(push.T);
    const int most_seen = before + int(CAUSAL == 1u ? (row_first + rows - 1u) / heads + 1u : push.T);
    const uint seen_to = row < rows ? uint(min(max(to, 0), int(push.S))) : 0u, most = uint(min(max(most_seen, 0), int(push.S)));
    const uint seen_from = WINDOWED ? uint(max(next - int(push.window), 0)) : 0u;
    const uint start = WINDOWED ? uint(max(before + int(row_first / heads) + 1 - int(push.window), 0)) / KEYS * KEYS : 0u;
    const uint own_scores = subgroup * UNIT * SCORE_STRIDE, own_weights = subgroup * UNIT * WEIGHT_STRIDE;
    const float scale = uintBitsToFloat(push.scale) * (CAPPED ? uintBitsToFloat(push.inverse_cap) : 1.44269504); // powers of 2 from here on
    const float cap = uintBitsToFloat(push.cap) * 1.44269504;

    coopmat<float16_t, gl_ScopeSubgroup, UNIT, UNIT, gl_MatrixUseA> query[UNITS];
    coopmat<float, gl_ScopeSubgroup, UNIT, UNIT, gl_MatrixUseAccumulator> result[UNITS];
    read_queries();
    barrier();
    [[unroll]] for (uint i = 0u; i < UNITS; i++) {
        coopMatLoad(query[i], tiles, subgroup * UNIT * STRIDE + 2u * i, STRIDE, gl_CooperativeMatrixLayoutRowMajor);
        result[i] = coopmat<float, gl_ScopeSubgroup, UNIT, UNIT, gl_MatrixUseAccumulator>(0.0);
    }

    float largest = LEAST, total = 0.0;
    if ((FORM & HDI_ATTENTION_SINKS) != 0u) {
        largest = max(sinks[head * heads + own - own_token * heads] * 1.44269504, LEAST);
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
                tiles[at] = next_keys[i];
                tiles[KEYS * STRIDE + at] = next_values[i];
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
            coopmat<float, gl_ScopeSubgroup, UNIT, UNIT, gl_MatrixUseAccumulator> products = coopmat<float, gl_ScopeSubgroup, UNIT, UNIT, gl_MatrixUseAccumulator>(0.0);
            [[unroll]] for (uint i = 0u; i < UNITS; i++) {
                coopmat<float16_t, gl_ScopeSubgroup, UNIT, UNIT, gl_MatrixUseB> keys;
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
            coopmat<float, gl_ScopeSubgroup, UNIT, UNIT, gl_MatrixUseAccumulator> factors;
            coopMatLoad(factors, scores, own_scores, SCORE_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint i = 0u; i < UNITS; i++) result[i] = result[i] * factors;
        }
        subgroupBarrier();
        [[unroll]] for (uint j = 0u; j < KEYS / UNIT; j++) {
            coopmat<float16_t, gl_ScopeSubgroup, UNIT, UNIT, gl_MatrixUseA> shares;
            coopMatLoad(shares, weights, own_weights + 2u * j, WEIGHT_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint i = 0u; i < UNITS; i++) {
                coopmat<float16_t, gl_ScopeSubgroup, UNIT, UNIT, gl_MatrixUseB> values;
                coopMatLoad(values, tiles, (KEYS + j * UNIT) * STRIDE + 2u * i, STRIDE, gl_CooperativeMatrixLayoutRowMajor);
                result[i] = coopMatMulAdd(shares, values, result[i]);
            }
        }
        subgroupBarrier();
    }

    const float inverse = total == 0.0 ? uintBitsToFloat(EXACT_NAN) : 1.0 / total;
    const uint first = first_of_row(min(row, rows - 1u));
    for (uint unit = 0u; unit < UNITS; unit++) { // only the choice of the unit is unrolled
        subgroupBarrier();
        [[unroll]] for (uint i = 0u; i < UNITS; i++)
            if (i == unit) coopMatStore(result[i], scores, own_scores, SCORE_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
        subgroupBarrier();
        for (uint e = 0u; e < 8u && row < rows; e += 2u) {
            uint d = unit * UNIT + 8u * side + e, at = first + d;
            vec4 four = scores[own_scores + own_row * SCORE_STRIDE + 2u * side + e / 4u];
            uint low = canonical_bits((e % 4u == 0u ? four.x : four.z) * inverse), high = canonical_bits((e % 4u == 0u ? four.y : four.w) * inverse);
            if (type_bytes(OUT_TYPE) == 2u && push.D % 2u == 0u) {
                if (d < push.D) y[at >> 1] = pack_element(low, OUT_TYPE) | pack_element(high, OUT_TYPE) << 16;
            } else {
                if (d < push.D) STORE(y, OUT_TYPE, at, low)
                if (d + 1u < push.D) STORE(y, OUT_TYPE, at + 1u, high)
            }
        }
    }
}
