#version 450
// matmul_tensor: C = A x B of halves, summed in f32, on the matrix units of a whole workgroup: one matrix is a tile of TILE_M x TILE_N, and
// the driver reads tiles of A and B straight from memory, HDI_MM_DEPTH deep along K, by layouts that say where rows lie and end. Fast mode
// only. C is of f32 or f16.
// target: vulkan1.3
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_NV_cooperative_matrix2 : require
#include "matmul.glsl"

layout(std430, binding = 0) readonly buffer HalfA { float16_t half_a[]; };
layout(std430, binding = 1) readonly buffer HalfB { float16_t half_b[]; };
layout(std430, binding = 2) buffer FloatC { float float_c[]; };
layout(std430, binding = 2) buffer HalfC { float16_t half_c[]; };

const uint DEPTH = HDI_MM_DEPTH;
const bool A_ALONG_K = (LAYOUT & HDI_MM_A_ALONG_K) != 0u, B_ALONG_K = (LAYOUT & HDI_MM_B_ALONG_K) != 0u;

#define SUMS coopmat<float, gl_ScopeWorkgroup, TILE_M, TILE_N, gl_MatrixUseAccumulator>
// Lines of A and B begin at multiples of 8 halves (HDI_MM_A_WIDE), which the compiler learns by the masks: 16 bytes at once, four times as fast.
#define LINES(layout, rows, columns, stride) \
    layout = setTensorLayoutDimensionNV(layout, rows, columns); \
    layout = setTensorLayoutStrideNV(layout, (stride) & ~7u, 1u);

// `turned` swaps rows and columns on the way: of a side that lies the other way round than its matrix.
#define MULTIPLY(clamp) { \
    tensorLayoutNV<2, clamp> at_a = createTensorLayoutNV(2, clamp), at_b = createTensorLayoutNV(2, clamp); \
    LINES(at_a, A_ALONG_K ? M : K, A_ALONG_K ? K : M, push[A_ALONG_K ? HDI_MM_PUSH_A_ROW : HDI_MM_PUSH_A_COL]) \
    LINES(at_b, B_ALONG_K ? N : K, B_ALONG_K ? K : N, push[B_ALONG_K ? HDI_MM_PUSH_B_COL : HDI_MM_PUSH_B_ROW]) \
    [[dont_unroll]] for (uint k = 0u; k < K; k += DEPTH) { \
        coopmat<float16_t, gl_ScopeWorkgroup, TILE_M, DEPTH, gl_MatrixUseA> rows; \
        coopmat<float16_t, gl_ScopeWorkgroup, DEPTH, TILE_N, gl_MatrixUseB> columns; \
        if (A_ALONG_K) coopMatLoadTensorNV(rows, half_a, a0, sliceTensorLayoutNV(at_a, m0, TILE_M, k, DEPTH)); \
        else coopMatLoadTensorNV(rows, half_a, a0, sliceTensorLayoutNV(at_a, k, DEPTH, m0, TILE_M), turned); \
        if (B_ALONG_K) coopMatLoadTensorNV(columns, half_b, b0, sliceTensorLayoutNV(at_b, n0, TILE_N, k, DEPTH), turned); \
        else coopMatLoadTensorNV(columns, half_b, b0, sliceTensorLayoutNV(at_b, k, DEPTH, n0, TILE_N)); \
        sums = coopMatMulAdd(rows, columns, sums); \
    } }

void main() {
    const uint M = push[HDI_MM_PUSH_M], N = push[HDI_MM_PUSH_N], K = push[HDI_MM_PUSH_K], batch = batch_of(gl_WorkGroupID.z);
    const uint m0 = gl_WorkGroupID.y * TILE_M, n0 = gl_WorkGroupID.x * TILE_N;
    const uint a0 = a_first(batch) & ~7u, b0 = b_first(batch) & ~7u;
    tensorViewNV<2, false, 1, 0> turned = createTensorViewNV(2, false, 1, 0);
    SUMS sums = SUMS(0.0);
    // What is beyond the ends reads as 0; a tile without ends has nothing to look for.
    if ((LAYOUT & HDI_MM_WHOLE) != 0u && m0 + TILE_M <= M && n0 + TILE_N <= N) MULTIPLY(gl_CooperativeMatrixClampModeUndefinedNV)
    else MULTIPLY(gl_CooperativeMatrixClampModeConstantNV)
    tensorLayoutNV<2, gl_CooperativeMatrixClampModeConstantNV> at_c = createTensorLayoutNV(2, gl_CooperativeMatrixClampModeConstantNV);
    at_c = setTensorLayoutDimensionNV(at_c, M, N);
    at_c = sliceTensorLayoutNV(setTensorLayoutStrideNV(at_c, N, 1u), m0, TILE_M, n0, TILE_N);
    const uint c0 = c_element(batch, 0u, 0u);
    if (OUT_TYPE == HDI_TYPE_F16)
        coopMatStoreTensorNV(coopmat<float16_t, gl_ScopeWorkgroup, TILE_M, TILE_N, gl_MatrixUseAccumulator>(sums), half_c, c0, at_c);
    else coopMatStoreTensorNV(sums, float_c, c0, at_c);
}
