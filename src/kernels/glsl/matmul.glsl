// matmul.glsl: what the kernels of the matmul family share: bindings, push words, where a batch begins, and how a sum
// leaves through the chain. Lanes that share a word of C are told apart by the store's atomic operations.
#ifndef MATMUL_GLSL
#define MATMUL_GLSL
#include "quant.glsl"

layout(local_size_x_id = HDI_SPEC_WORKGROUP) in;
layout(constant_id = HDI_SPEC_WORKGROUP) const uint WORKGROUP = 64;
layout(constant_id = HDI_SPEC_EXACT) const uint EXACT = 0;
layout(constant_id = HDI_SPEC_OUT_TYPE) const uint OUT_TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_MM_A_TYPE) const uint A_TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_MM_B_TYPE) const uint B_TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_MM_TILE_M) const uint TILE_M = 1;
layout(constant_id = HDI_MM_TILE_N) const uint TILE_N = 4;
layout(constant_id = HDI_MM_PART_M) const uint PART_M = 1;
layout(constant_id = HDI_MM_PART_N) const uint PART_N = 1;
layout(constant_id = HDI_MM_LAYOUT) const uint LAYOUT = 0;

layout(push_constant) uniform Push { uint push[32]; };
layout(std430, binding = 0) readonly buffer A { uint a[]; };
layout(std430, binding = 1) readonly buffer B { uint b[]; };
layout(std430, binding = 2) buffer C { uint c[]; };

// First elements of A and B in batch `batch`.
uint batch_first(uint batch, uint first, uint strides) {
    uint inner = batch / push[HDI_MM_PUSH_BATCH + 1];
    return push[first] + batch % push[HDI_MM_PUSH_BATCH + 1] * push[strides + 2u]
         + inner % push[HDI_MM_PUSH_BATCH] * push[strides + 1u] + inner / push[HDI_MM_PUSH_BATCH] * push[strides];
}
uint a_first(uint batch) { return batch_first(batch, HDI_MM_PUSH_A_FIRST, HDI_MM_PUSH_A_BATCH); }
uint b_first(uint batch) { return batch_first(batch, HDI_MM_PUSH_B_FIRST, HDI_MM_PUSH_B_BATCH); }

// One product more: two roundings in exact mode, one in fast mode.
float add_product(float sum, float x, float y) {
    if (EXACT == 0u) return fma(x, y, sum);
    precise float product = x * y;
    precise float next = sum + product;
    return next;
}

void store_sum(float sum, uint batch, uint m, uint n) {
    uint index = (batch * push[HDI_MM_PUSH_M] + m) * push[HDI_MM_PUSH_N] + n;
    STORE(c, OUT_TYPE, index, floatBitsToUint(sum))
}
#endif
