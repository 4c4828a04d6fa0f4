// units.glsl: what products on matrix units share: a tile of C for each workgroup, of which each subgroup of 32 computes
// PART_M x PART_N in units of 16 x 16, and how those leave. An includer defines TILE_CHUNKS, the chunks of 16 bytes that its
// operands' tiles take in shared memory.
#ifndef UNITS_GLSL
#define UNITS_GLSL
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require

const uint LANES = 32, UNIT = 16;
const uint UNITS_M = PART_M / UNIT, UNITS_N = PART_N / UNIT; // of a subgroup
const uint SUBGROUPS_N = TILE_N / PART_N;
const uint SUM_CHUNKS = WORKGROUP / LANES * UNIT * PART_N / 4; // sums on their way to C: UNIT rows of each subgroup
shared uvec4 tiles[TILE_CHUNKS > SUM_CHUNKS ? TILE_CHUNKS : SUM_CHUNKS];

#define MATRIX(type, rows, columns, use) coopmat<type, gl_ScopeSubgroup, rows, columns, gl_MatrixUse##use>
#define SUMS MATRIX(float, UNIT, UNIT, Accumulator)

// Whole units of plain sums go straight to C, where its rows are aligned as such stores need it. Others go row by row of
// units through shared memory, where every lane finds its elements: some pairs at once, so that their sources are read side
// by side.
#define STORE_UNITS(sums) { \
    if (!GROUPED && EXACT == 0u && CHAIN == 0u && OUT_TYPE == HDI_TYPE_F32 && N % 4u == 0u && m0 + TILE_M <= M && n0 + TILE_N <= N) { \
        [[unroll]] for (uint i = 0u; i < UNITS_M * UNITS_N; i++) { \
            uint m = m0 + own_m + i / UNITS_N * UNIT, n = n0 + own_n + i % UNITS_N * UNIT; \
            coopMatStore(sums[i], c, c_element(gl_WorkGroupID.z, m, n), N, gl_CooperativeMatrixLayoutRowMajor); \
        } \
        return; \
    } \
    const uint own = gl_SubgroupID * UNIT * PART_N / 4, PAIRS = UNIT * PART_N / 2 / LANES, AT_ONCE = PAIRS < 4u ? PAIRS : 4u; \
    for (uint row = 0u; row < UNITS_M; row++) { \
        subgroupBarrier(); \
        [[unroll]] for (uint i = 0u; i < UNITS_M; i++) \
            if (i == row) \
                [[unroll]] for (uint j = 0u; j < UNITS_N; j++) \
                    coopMatStore(sums[i * UNITS_N + j], tiles, own + j * UNIT / 4, PART_N / 4, gl_CooperativeMatrixLayoutRowMajor); \
        subgroupBarrier(); \
        [[dont_unroll]] for (uint i = 0u; i < PAIRS; i += AT_ONCE) \
            [[unroll]] for (uint k = 0u; k < AT_ONCE; k++) { \
                uint e = gl_SubgroupInvocationID + (i + k) * LANES; \
                uint m = m0 + own_m + row * UNIT + e / (PART_N / 2), n = n0 + own_n + e % (PART_N / 2) * 2; \
                uvec4 four = tiles[own + e / 2u]; \
                if (m < M && n < N) store_sums(uintBitsToFloat((e & 1u) == 0u ? four.xy : four.zw), min(N - n, 2u), gl_WorkGroupID.z, m, n); \
            } \
    } \
}
#endif
