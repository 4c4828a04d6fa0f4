/* matmul_native.h: how much scratch the CPU forms of the matmul family take, known to the rules that launch them. */
#ifndef HDCPU_MATMUL_NATIVE_H
#define HDCPU_MATMUL_NATIVE_H

#include "base/base.h"
#include "kernels/abi.h"

/* Columns and rows of C that exact mode sums at once, and how much of K is packed for them: blocks of abi.h. */
enum { HDCPU_EXACT_STRIP = 32, HDCPU_EXACT_ROWS = 4, HDCPU_EXACT_DEPTH = 4 * HDI_MM_BLOCK };

/* Packed rows of a group (HDI_MM_GROUPED) begin at a multiple of the lines that any form packs together. */
enum { HDCPU_GROUP_LINES = 32 };

/* Floats that a finished tile takes, 64-byte aligned. */
#define HDCPU_MATMUL_TILE_FLOATS(m, n) (((uint64_t)(m) * (n) + 15) / 16 * 16)

static inline uint64_t hdcpu_exact_scratch_bytes(uint32_t tile_m, uint32_t tile_n) {
    const uint64_t rows = hdi_divide_up(tile_m, HDCPU_EXACT_ROWS) * HDCPU_EXACT_ROWS;
    const uint64_t columns = hdi_divide_up(tile_n, HDCPU_EXACT_STRIP) * HDCPU_EXACT_STRIP;
    return (rows * columns + HDCPU_EXACT_DEPTH * (rows + HDCPU_EXACT_STRIP)) * sizeof(float);
}

/* Exact mode's few rows beside columns that lie along K: 16 blocks of K side by side, 8 columns one after the other.
 * Room for 8 rows, for the sums of all blocks of the columns, and for a finished tile. */
enum { HDCPU_EXACT_SIDE = 16, HDCPU_EXACT_CHUNK = HDCPU_EXACT_SIDE * HDI_MM_BLOCK, HDCPU_EXACT_COLUMNS = 8 };
static inline uint64_t hdcpu_exact_vector_bytes(uint32_t tile_n, uint64_t k) {
    const uint64_t chunk = HDCPU_EXACT_CHUNK + HDCPU_EXACT_COLUMNS * HDCPU_EXACT_SIDE;
    return (8 * hdi_divide_up(k, HDCPU_EXACT_CHUNK) * chunk + HDCPU_MATMUL_TILE_FLOATS(8, tile_n)) * sizeof(float);
}

/* No less than sgemm.h's own plan for any part of such a tile, whichever kernel set runs: it is a bound and not the
 * plan's own number, so that a launch does not depend on the machine that plans it. A test holds the two together. */
static inline uint64_t hdcpu_fast_scratch_bytes(uint32_t tile_m, uint32_t tile_n, uint64_t k) {
    const uint64_t depth = HDI_MIN(k, 512u), few = HDI_MIN(tile_m, 8u);
    const uint64_t a = (HDI_MIN(tile_m, 168u) + 15u) * depth + 15u;
    const uint64_t b = HDI_MAX((tile_n + 31u) * depth, (k + 15u) * few + 9u * 1024u);
    return (HDCPU_MATMUL_TILE_FLOATS(tile_m, tile_n) + a + b) * sizeof(float);
}
/* May rows of A be rounded? (abi.h) */
static inline bool hdcpu_may_round(bool grouped, uint64_t k) { return !grouped || k >= HDI_MM_LEAST_CHOSEN; }
/* Rows of 8-bit activations (dot_int8.h) consist of parts: elements of a part, and its bytes. */
enum { HDCPU_INT8_PART = 256, HDCPU_INT8_PART_BYTES = 3 * HDCPU_INT8_PART + 64 };
static inline uint64_t hdcpu_int8_row_bytes(uint64_t k) {
    return hdi_divide_up(k, HDCPU_INT8_PART) * HDCPU_INT8_PART_BYTES;
}

/* Room for the finished columns and for the rows of A: as f32, or one as f32 and all in 8 bits. */
static inline uint64_t hdcpu_vector_scratch_bytes(uint32_t tile_n, uint64_t k) {
    const uint64_t row = HDCPU_MATMUL_TILE_FLOATS(1, k) * sizeof(float);
    return HDCPU_MATMUL_TILE_FLOATS(8, tile_n) * sizeof(float) + HDI_MAX(8 * row, row + 8 * hdcpu_int8_row_bytes(k));
}

enum { HDCPU_CODES_ROWS = 8 }; /* of a tile of the exact product in 8 bits */
/* The product of 8-bit integers in tiles: the most rows of a group's tile; columns and depth whose codes stay in the
 * first cache; K in blocks. */
enum { HDCPU_INT8_BLOCK = 32, HDCPU_INT8_DEPTH = 256, HDCPU_INT8_TILE_M = 512, HDCPU_INT8_COLUMNS = 48,
       HDCPU_INT8_LINES = 16 };
/* Scales of a block of weights. */
static inline uint32_t hdcpu_int8_runs(uint32_t type) {
    return HDI_SCALED_BY_HALVES(type) ? 2 : 1;
}
/* Rows, and columns, come in whole vectors, of whatever width. */
static inline uint32_t hdcpu_int8_rows(uint32_t m) {
    return (m + HDCPU_INT8_LINES - 1u) / HDCPU_INT8_LINES * HDCPU_INT8_LINES;
}
/* Bytes of a row for a block of weights of so many scales: its elements, its scale, and a sum for each of theirs. */
#define HDCPU_INT8_ROW_BLOCK(runs) (HDCPU_INT8_BLOCK + 4u + 4u * (runs))
static inline uint64_t hdcpu_int8_packed_bytes(uint32_t m, uint32_t k, uint32_t runs) {
    return (uint64_t)hdcpu_int8_rows(m) * (k / HDCPU_INT8_BLOCK) * HDCPU_INT8_ROW_BLOCK(runs);
}
/* Two halves of codes, two scales and two of what is less for each block and column; a finished line; all sums. */
enum { HDCPU_INT8_PANEL_BYTES = HDCPU_INT8_COLUMNS * (HDCPU_INT8_DEPTH / HDCPU_INT8_BLOCK)
       * (2 * HDCPU_INT8_BLOCK + 2 * 2 * 4) };
static inline uint64_t hdcpu_int8_tile_bytes(uint32_t tile_m, uint32_t tile_n) {
    const uint64_t columns = hdi_divide_up(tile_n, HDCPU_INT8_COLUMNS) * HDCPU_INT8_COLUMNS;
    return HDCPU_INT8_PANEL_BYTES + (HDCPU_INT8_LINES + hdcpu_int8_rows(tile_m)) * columns * sizeof(float);
}

/* The same in exact mode: half of the strands at a time, all of their K for so few columns that the codes stay in the
 * second cache; codes, perhaps in halves, and facts (int8_tiles.h) of each block. */
enum { HDCPU_INT8_EXACT_COLUMNS = 12, HDCPU_INT8_FACTS_BYTES = 24 };
static inline uint64_t hdcpu_int8_exact_blocks(uint64_t k) { return hdi_divide_up(k, 512) * 8; }
static inline uint64_t hdcpu_int8_exact_bytes(uint32_t tile_m, uint32_t tile_n, uint64_t k) {
    const uint64_t block = 2 * HDCPU_INT8_BLOCK + HDCPU_INT8_FACTS_BYTES;
    return hdcpu_int8_tile_bytes(tile_m, tile_n) - HDCPU_INT8_PANEL_BYTES +
           HDCPU_INT8_EXACT_COLUMNS * hdcpu_int8_exact_blocks(k) * block;
}

/* The product of bf16 tiles: the most rows and columns of a group's tile, and the depth of a block, such that a block's
 * columns and all sums stay in the second cache. */
enum { HDCPU_AMX_TILE_M = 256, HDCPU_AMX_TILE_N = 256, HDCPU_AMX_DEPTH = 256 };
static inline uint32_t hdcpu_amx_rows(uint32_t m) { return (m + 31u) / 32u * 32u; }
static inline uint32_t hdcpu_amx_depth_tiles(uint32_t k) { return k / 32u + (k % 32u != 0); }
static inline uint64_t hdcpu_amx_packed_bytes(uint32_t m, uint32_t k) {
    return (uint64_t)hdcpu_amx_rows(m) * hdcpu_amx_depth_tiles(k) * 64u;
}
/* Where, in words, the packed tiles of a pair of 16 rows from row m on begin, those of the block from k0 on. */
static inline uint64_t hdcpu_amx_packed_at(uint32_t m_all, uint32_t k_all, uint32_t m, uint32_t k0) {
    const uint32_t depth = HDI_MIN(k_all - k0, (uint32_t)HDCPU_AMX_DEPTH);
    return ((uint64_t)hdcpu_amx_rows(m_all) * (k0 / 32u) + (uint64_t)m * hdcpu_amx_depth_tiles(depth)) * 16u;
}
static inline uint64_t hdcpu_amx_scratch_bytes(uint32_t tile_m, uint32_t tile_n) {
    const uint64_t line = 16 * HDCPU_AMX_TILE_N, columns = 2 * 32 * HDCPU_AMX_DEPTH / 2;
    return (line + columns + (uint64_t)hdcpu_amx_rows(tile_m) * hdcpu_amx_rows(tile_n)) * sizeof(float);
}
#endif
