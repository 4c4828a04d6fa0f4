#version 450
// experts.comp: y[t,u] = w[chosen[t,u]] x[t]: each row's product with the experts that it chose. A workgroup has COLUMNS
// columns of one expert, looks for the pairs that chose it, and takes PAIRS of them at once, so that each weight is read
// once for all of these. Lanes take blocks of 32 along K, and the blocks' sums are added in order: the bits of matmul's sums of f32.
#include "rows.glsl"
layout(constant_id = HDI_EXPERTS_TYPE) const uint TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_EXPERTS_W_TYPE) const uint W_TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_EXPERTS_COLUMNS) const uint COLUMNS = 8u;
layout(push_constant) uniform Push { uint pairs, share, E, N, K; } push;
layout(std430, binding = 0) readonly buffer X { uint x[]; };
layout(std430, binding = 1) readonly buffer W { uint w[]; };
layout(std430, binding = 2) readonly buffer Chosen { uint chosen[]; };
layout(std430, binding = 3) readonly buffer Books { uint books[]; };
layout(std430, binding = 4) buffer Y { uint y[]; };
#define QUANT_WORD(at) w[at]
#include "quant.glsl"

#define PAIRS 8u
const uint SLOTS = gl_WorkGroupSize.x / COLUMNS; // blocks along K at once
const uint SUMS = PAIRS * COLUMNS;
shared float block_sums[SLOTS * SUMS];
shared float totals[SUMS];
shared uint found[gl_WorkGroupSize.x], found_count; // pairs of those that the lanes look at; NOBODY: none
#define NOBODY 0xFFFFFFFFu

uint expert, n0;

// `count` pairs that stand in found[] from `first` on.
void multiply(uint first, uint count) {
    const uint column = ME / SLOTS, slot = ME % SLOTS, n = n0 + column;
    const uint w_first = (expert * push.N + min(n, push.N - 1u)) * push.K;
    for (uint i = ME; i < SUMS; i += WORKGROUP) totals[i] = 0.0;
    for (uint begin = 0u; begin < push.K; begin += SLOTS * HDI_MM_BLOCK) {
        float sums[PAIRS];
        uint x_first[PAIRS];
        [[unroll]] for (uint p = 0u; p < PAIRS; p++) {
            sums[p] = 0.0;
            x_first[p] = found[first + min(p, count - 1u)] / push.share * push.K;
        }
        const uint from = begin + slot * HDI_MM_BLOCK, to = min(from + HDI_MM_BLOCK, push.K);
        for (uint k = from; k < to; k++) {
            float weight = LOAD_ANY(w, W_TYPE, w_first + k);
            // Without [[unroll]]: copies that glslc's optimiser makes of a loop are no longer precise.
            for (uint p = 0u; p < PAIRS; p++)
                if (p < count) sums[p] = add_product(sums[p], LOAD_FLOAT(x, TYPE, x_first[p] + k), weight);
        }
        [[unroll]] for (uint p = 0u; p < PAIRS; p++) block_sums[slot * SUMS + p * COLUMNS + column] = sums[p];
        barrier();
        for (uint i = ME; i < SUMS; i += WORKGROUP)
            for (uint s = 0u; s < SLOTS; s++) totals[i] = add_rounded(totals[i], block_sums[s * SUMS + i]);
        barrier();
    }
    for (uint i = ME; i < count * COLUMNS; i += WORKGROUP) {
        uint pair = found[first + i / COLUMNS], at = n0 + i % COLUMNS;
        if (at < push.N) STORE(y, OUT_TYPE, pair * push.N + at, canonical_bits(chosen[pair] < push.E ? totals[i] : 0.0))
    }
    barrier();
}

void main() {
    uint blocks = (push.N + COLUMNS - 1u) / COLUMNS;
    expert = group_number() / blocks;
    n0 = (group_number() - expert * blocks) * COLUMNS;
    if (expert >= push.E) return;
    for (uint base = 0u; base < push.pairs; base += WORKGROUP) {
        uint pair = base + ME, number = pair < push.pairs ? chosen[pair] : NOBODY;
        bool is_mine = pair < push.pairs && (number == expert || (expert == 0u && number >= push.E)); // nobody's are zeros
        found[ME] = is_mine ? pair : NOBODY;
        barrier();
        if (ME == 0u) {
            uint count = 0u, most = min(WORKGROUP, push.pairs - base);
            for (uint i = 0u; i < most; i++)
                if (found[i] != NOBODY) found[count++] = found[i];
            found_count = count;
        }
        barrier();
        uint count = found_count;
        for (uint first = 0u; first < count; first += PAIRS) multiply(first, min(PAIRS, count - first));
        barrier();
    }
}
