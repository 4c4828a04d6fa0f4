// matmul.glsl: what the kernels of the matmul family share: bindings, push words, where a batch begins, and how a sum
// leaves through the chain. Lanes that share a word of C are told apart by the store's atomic operations.
#ifndef MATMUL_GLSL
#define MATMUL_GLSL
#include "tensor.glsl"

layout(local_size_x_id = HDI_SPEC_WORKGROUP) in;
layout(constant_id = HDI_SPEC_WORKGROUP) const uint WORKGROUP = 64;
layout(constant_id = HDI_MM_A_TYPE) const uint A_TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_MM_B_TYPE) const uint B_TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_MM_TILE_M) const uint TILE_M = 16;
layout(constant_id = HDI_MM_TILE_N) const uint TILE_N = 16;
layout(constant_id = HDI_MM_PART_M) const uint PART_M = 2;
layout(constant_id = HDI_MM_PART_N) const uint PART_N = 2;
layout(constant_id = HDI_MM_LAYOUT) const uint LAYOUT = 0;
layout(constant_id = HDI_MM_PAIR) const uint PAIR = 0; // of kernels that take one

layout(push_constant) uniform Push { uint push[32]; };
layout(std430, binding = 0) readonly buffer A { uint a[]; };
layout(std430, binding = 1) readonly buffer B { uint b[]; };
layout(std430, binding = 2) buffer C { uint c[]; };
layout(std430, binding = 3) readonly buffer Source1 { uint source_1[]; };
layout(std430, binding = 4) readonly buffer Source2 { uint source_2[]; };
layout(std430, binding = 5) readonly buffer Source3 { uint source_3[]; };
#ifndef BOOKS_BINDING
#define BOOKS_BINDING 6
#endif
layout(std430, binding = BOOKS_BINDING) readonly buffer Books { uint books[]; };

#ifdef B_WORD
#define QUANT_WORD(at) B_WORD(at)
#else
#define QUANT_WORD(at) b[at]
#endif
#include "quant.glsl"
#define CHAIN_SOURCES (uint(SOURCE_TYPE_1 != HDI_TYPE_NONE) + uint(SOURCE_TYPE_2 != HDI_TYPE_NONE) + uint(SOURCE_TYPE_3 != HDI_TYPE_NONE))
#define CHAIN_ATTRIBUTE(i) push[min(HDI_MM_PUSH_CHAIN + 4u * CHAIN_SOURCES + (i), 31u)]
#include "chain.glsl"

// Batches that are groups of rows by the matrix of B that they chose (abi.h): the matrix, how many rows, and where row m of the
// group, or of any batch, stands in C and, of groups, in A.
const bool GROUPED = (LAYOUT & HDI_MM_GROUPED) != 0u, SINGLE = (LAYOUT & HDI_MM_SINGLE) != 0u;
#define CHOICE source_3 // where no chain has a third source
uint expert_of(uint batch) { return CHOICE[SINGLE ? batch : batch * HDI_GROUP_WORDS + HDI_GROUP_EXPERT]; }
uint rows_of(uint batch) {
    if (!GROUPED) return push[HDI_MM_PUSH_M];
    return SINGLE ? 1u : CHOICE[batch * HDI_GROUP_WORDS + HDI_GROUP_ROWS];
}
uint c_row(uint batch, uint m) {
    if (!GROUPED) return batch * push[HDI_MM_PUSH_M] + m;
    if (SINGLE) return batch;
    return CHOICE[push[HDI_MM_PUSH_BATCH + 1] * HDI_GROUP_WORDS + CHOICE[batch * HDI_GROUP_WORDS + HDI_GROUP_FIRST] + m];
}
uint a_row(uint batch, uint m) { return GROUPED ? c_row(batch, m) / push[HDI_MM_PUSH_BATCH] : m; }
// Where the first element of row m of a tile of few rows is, counted from a_first; behind a group's last row, that one again.
uint few_row(uint batch, uint m) {
    return (GROUPED && !SINGLE ? a_row(batch, min(m, rows_of(batch) - 1u)) : m) * push[HDI_MM_PUSH_A_ROW];
}

// The batch of a workgroup, and the first elements of A and B in it; of groups, of which A is not in batches, those of all of A
// or of a single row.
uint batch_of(uint group) { return (LAYOUT & HDI_MM_ONE_BATCH) != 0u ? 0u : group; }
uint batch_first(uint batch, uint first, uint strides) {
    if ((LAYOUT & HDI_MM_ONE_BATCH) != 0u) return push[first];
    uint inner = batch / push[HDI_MM_PUSH_BATCH + 1];
    return push[first] + batch % push[HDI_MM_PUSH_BATCH + 1] * push[strides + 2u]
         + inner % push[HDI_MM_PUSH_BATCH] * push[strides + 1u] + inner / push[HDI_MM_PUSH_BATCH] * push[strides];
}
uint a_first(uint batch) {
    if (SINGLE) return push[HDI_MM_PUSH_A_FIRST] + batch / push[HDI_MM_PUSH_BATCH] * push[HDI_MM_PUSH_A_ROW];
    return GROUPED ? push[HDI_MM_PUSH_A_FIRST] : batch_first(batch, HDI_MM_PUSH_A_FIRST, HDI_MM_PUSH_A_BATCH);
}
uint b_first(uint batch) {
    if (!GROUPED) return batch_first(batch, HDI_MM_PUSH_B_FIRST, HDI_MM_PUSH_B_BATCH);
    return push[HDI_MM_PUSH_B_FIRST] + min(expert_of(batch), push[HDI_MM_PUSH_EXPERTS] - 1u) * push[HDI_MM_PUSH_B_BATCH + 2];
}

// One product more: two roundings in exact mode, one in fast mode.
float add_product(float sum, float x, float y) {
    if (EXACT == 0u) return fma(x, y, sum);
    precise float product = x * y;
    precise float next = sum + product;
    return next;
}

// The element of chain source `source` (1..3) that stands at C[batch][m][n].
uint source_element(uint source, uint batch, uint m, uint n) {
    uint words = HDI_MM_PUSH_CHAIN + 4u * (source - 1u);
    return push[words] + batch * push[words + 1u] + m * push[words + 2u] + n * push[words + 3u];
}
// A sum as it leaves: rounded to the product's type, taken through the chain, as bits of the output's type. With a pair
// `second` is chain source 1.
uint finished(float sum, float second, uint batch, uint m, uint n) {
    if (GROUPED && expert_of(batch) >= push[HDI_MM_PUSH_EXPERTS]) sum = second = 0.0;
    uint bits = floatBitsToUint(EXACT != 0u ? exact_canonical(sum) : sum);
    if (CHAIN > 0u) {
        uint v1 = 0u, v2 = 0u, v3 = 0u;
        if (PAIR != 0u) v1 = round_element(floatBitsToUint(second), SOURCE_TYPE_1);
        else if (SOURCE_TYPE_1 != HDI_TYPE_NONE) v1 = LOAD(source_1, SOURCE_TYPE_1, source_element(1u, batch, m, n));
        if (SOURCE_TYPE_2 != HDI_TYPE_NONE) v2 = LOAD(source_2, SOURCE_TYPE_2, source_element(2u, batch, m, n));
        if (SOURCE_TYPE_3 != HDI_TYPE_NONE) v3 = LOAD(source_3, SOURCE_TYPE_3, source_element(3u, batch, m, n));
        bits = run_chain(round_element(bits, SOURCE_TYPE_0), v1, v2, v3);
    }
    return bits;
}
uint c_element(uint batch, uint m, uint n) { return c_row(batch, m) * push[HDI_MM_PUSH_N] + n; }

uvec2 finished_pairs(vec2 sums, vec2 seconds, uint count, uint batch, uint m, uint n) { // `count` (1 or 2) neighbours of a row
    uvec2 bits = uvec2(0u);
    for (uint i = 0u; i < count; i++) bits[i] = finished(sums[i], seconds[i], batch, m, n + i);
    return bits;
}
// Stores so many, which are finished. Two that fill a word need no atomic operation.
void store_finished(uvec2 bits, uint count, uint batch, uint m, uint n) {
    uint index = c_element(batch, m, n);
    if (type_bytes(OUT_TYPE) == 2u && count == 2u && (index & 1u) == 0u) {
        c[index >> 1] = pack_element(bits[0], OUT_TYPE) | (pack_element(bits[1], OUT_TYPE) << 16);
        return;
    }
    for (uint i = 0u; i < count; i++) STORE(c, OUT_TYPE, index + i, bits[i])
}
void store_pairs(vec2 sums, vec2 seconds, uint count, uint batch, uint m, uint n) {
    store_finished(finished_pairs(sums, seconds, count, batch, m, n), count, batch, m, n);
}
void store_sums(vec2 sums, uint count, uint batch, uint m, uint n) { store_pairs(sums, vec2(0.0), count, batch, m, n); }
#endif
