/* int8_tiles.h: many rows of activations times columns of quantised weights, both as integers of 8 bits, in tiles of
 * sums that registers hold. Rows lie side by side in the lanes of a vector, four neighbours along K in each lane
 * (pack_int8.c); a column's four codes meet all of them at once. Every 32 along K, a block, the integers become f32 and
 * are scaled. */
#ifndef HDCPU_INT8_TILES_H
#define HDCPU_INT8_TILES_H

#include "kernels/cpu/matmul_native.h"
#include "kernels/kernel.h"

enum { INT8_BLOCK = HDCPU_INT8_BLOCK, INT8_DEPTH_BLOCKS = HDCPU_INT8_DEPTH / INT8_BLOCK };

/* What the weights of a type are: scale * (code - offset) - less. */
typedef struct int8_form {
    uint32_t bits;     /* that hold every code: 4, 5, 6, 7 or 8 */
    uint32_t runs;     /* a block has 1 or 2 scales */
    bool     has_less; /* and as many of these */
    uint32_t offset;
} int8_form;

/* A block of packed rows, for `lanes` of them: 8 vectors of activations, a vector of their scales as f32, and one for
 * each run: what its sum begins at, minus the offset times the sum of its activations, as i32; or, beside a form that
 * has less, the activations' sum as f32. */
#define INT8_PACKED_BLOCK(lanes, runs) ((lanes) * HDCPU_INT8_ROW_BLOCK(runs))

/* Exact mode (abi.h) has its blocks strand by strand: where in that order a run of a row or column of `runs` is. */
static inline uint32_t int8_strand_order(uint32_t runs, uint32_t run) {
    const uint32_t strand = run % HDI_MM_STRANDS;
    return strand * (runs / HDI_MM_STRANDS) + HDI_MIN(strand, runs % HDI_MM_STRANDS) + run / HDI_MM_STRANDS;
}
/* What exact mode knows of a column's run. Whole numbers are of 16 bits, two in a word: a half's scale twice; of the
 * two halves the scales times minus the offset, and the mins. A row's packed block then ends with the halves' sums,
 * likewise in one word. */
typedef struct int8_facts {
    float    d, less;
    uint32_t scale[2], begin, min;
} int8_facts;
enum { FACT_WORDS = sizeof(int8_facts) / 4 };
_Static_assert(sizeof(int8_facts) == HDCPU_INT8_FACTS_BYTES, "the rules make room for them");

/* sums[c * sums_stride + r] += column c times row r. */
typedef struct int8_tile {
    int8_form      form;
    uint32_t       blocks;  /* along K */
    uint32_t       vectors; /* of rows: as many as a tile has, or 1 */
    bool           first;   /* sums begin at zero */
    const uint8_t *rows;
    uint64_t       vector_bytes; /* from one vector's packed rows to the next one's */
    const uint8_t *codes;   /* [block][column][32]; where halves: [block][column][half][32] */
    const float   *scales, *less; /* [block][run][column] */
    const int8_facts *facts; /* exact mode, instead of scales and less: [block][column] */
    uint32_t       strands, longer; /* exact mode: each of `blocks`, the first `longer` ones of one more */
    float         *sums;
    uint64_t       sums_stride;
} int8_tile;

/* How one instruction set does it. */
typedef struct int8_tiles {
    const char *name;
    uint32_t lanes, vectors, columns; /* rows of a vector; vectors and columns of a tile */
    bool     halves;    /* codes of 8 bits come as their lower four, and their upper four */
    bool     is_signed; /* codes of 8 bits are signed; else they are 128 greater */
    void   (*sum)(const int8_tile *tile);
    void   (*sum_exact)(const int8_tile *tile);
} int8_tiles;

/* Of the sets of this level that this process may use, the best first: the one at `index`, NULL behind the last. */
#define int8_tiles_at HDCPU_JOIN(hdcpu_int8_tiles_at_l, HDCPU_LEVEL)
const int8_tiles *int8_tiles_at(uint32_t index);

static inline int8_form int8_form_of(uint32_t type, const int8_tiles *tiles) {
    const uint32_t runs = hdcpu_int8_runs(type);
    switch (type) {
    case HDI_TYPE_Q4_0: return (int8_form){ 4, runs, false, 8 };
    case HDI_TYPE_Q4_1:
    case HDI_TYPE_Q2_K:
    case HDI_TYPE_Q4_K: return (int8_form){ 4, runs, true, 0 };
    case HDI_TYPE_Q5_0: return (int8_form){ 5, runs, false, 16 };
    case HDI_TYPE_Q5_1:
    case HDI_TYPE_Q5_K: return (int8_form){ 5, runs, true, 0 };
    case HDI_TYPE_IQ4_NL:
    case HDI_TYPE_IQ4_XS:
    case HDI_TYPE_Q8_0: return (int8_form){ 8, runs, false, tiles->is_signed ? 0 : 128 };
    case HDI_TYPE_MXFP4: return (int8_form){ 5, runs, false, 12 };
    case HDI_TYPE_Q3_K: return (int8_form){ 4, runs, false, 4 };
    case HDI_TYPE_Q6_K: return (int8_form){ 6, runs, false, 32 };
    case HDI_TYPE_TQ1_0:
    case HDI_TYPE_TQ2_0: return (int8_form){ 4, runs, false, 1 };
    default:            return (int8_form){ 7, runs, false, 64 }; /* types with a code book */
    }
}
#endif
