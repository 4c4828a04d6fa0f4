/* matvec.c: C = chain(A x B) for at most 8 rows of A and B whose columns lie along K (GGUF's weights), TILE_N columns
 * for each group. Fast mode streams B once: a vector of weights is unpacked in registers and meets all rows of A. Exact
 * mode too, block by block. Scratch holds A's rows as f32. Reads nothing beyond a column's last element. */
#include "kernels/cpu/dot_int8.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/places.h"

typedef int32_t ints __attribute__((vector_size(4 * HDCPU_LANES)));
typedef hdcpu_vector floats;
enum { LANES = HDCPU_LANES };

static inline floats splat(float value) { return value - (floats){ 0 }; }
static inline floats to_floats(ints v) { return __builtin_convertvector(v, floats); }

#if HDCPU_LEVEL >= 2
static inline floats fused(floats x, floats y, floats sum) {
    return (floats)_mm512_fmadd_ps((__m512)x, (__m512)y, (__m512)sum);
}
static inline ints bytes_at(const uint8_t *p) { return (ints)_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)p)); }
static inline ints signed_bytes_at(const uint8_t *p) {
    return (ints)_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)p));
}
static inline floats halves_at(const uint16_t *p) {
    return (floats)_mm512_cvtph_ps(_mm256_loadu_si256((const void *)p));
}
static inline ints words_at(const uint16_t *p) {
    return (ints)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)p));
}
#elif HDCPU_LEVEL == 1
static inline floats fused(floats x, floats y, floats sum) {
    return (floats)_mm256_fmadd_ps((__m256)x, (__m256)y, (__m256)sum);
}
static inline ints bytes_at(const uint8_t *p) { return (ints)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p)); }
static inline ints signed_bytes_at(const uint8_t *p) {
    return (ints)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)p));
}
static inline floats halves_at(const uint16_t *p) { return (floats)_mm256_cvtph_ps(_mm_loadu_si128((const void *)p)); }
static inline ints words_at(const uint16_t *p) { return (ints)_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p)); }
#else
static inline floats fused(floats x, floats y, floats sum) { return x * y + sum; }
static inline ints bytes_at(const uint8_t *p) { return (ints){ p[0], p[1], p[2], p[3] }; }
static inline ints signed_bytes_at(const uint8_t *p) {
    return (ints){ (int8_t)p[0], (int8_t)p[1], (int8_t)p[2], (int8_t)p[3] };
}
static inline floats halves_at(const uint16_t *p) {
    return (floats){ hdcpu_float_of_f16(p[0]), hdcpu_float_of_f16(p[1]), hdcpu_float_of_f16(p[2]),
                     hdcpu_float_of_f16(p[3]) };
}
static inline ints words_at(const uint16_t *p) { return (ints){ p[0], p[1], p[2], p[3] }; }
#endif

/* Weights w at elements `at` and on meet every row of x. A row has two sums, so that one addition need not wait for the
 * one before; as many whatever rows there are beside it, so that its bits do not hang on them. */
#define MEET(w, at, which) \
    for (uint32_t r = 0; r < rows; r++) { \
        floats *sum = &sums[r][(which) % SUMS]; \
        *sum = fused(w, hdcpu_load(x + r * x_stride + (at)), *sum); \
    }
enum { SUMS = 2, ROWS_AT_ONCE = HDCPU_ROWS_AT_ONCE };

/* Four vectors of float weights, then a block of each quantised type: value by value what GGUF defines. */
#define DOT static inline __attribute__((always_inline)) void
DOT dot_f32(const uint8_t *values, const float *x, uint64_t x_stride, const uint32_t rows, floats (*sums)[2]) {
    const float *w = (const void *)values;
    for (uint32_t i = 0; i < 4; i++) MEET(hdcpu_load(w + i * LANES), i * LANES, i)
}
DOT dot_f16(const uint8_t *values, const float *x, uint64_t x_stride, const uint32_t rows, floats (*sums)[2]) {
    const uint16_t *w = (const void *)values;
    for (uint32_t i = 0; i < 4; i++) MEET(halves_at(w + i * LANES), i * LANES, i)
}
DOT dot_bf16(const uint8_t *values, const float *x, uint64_t x_stride, const uint32_t rows, floats (*sums)[2]) {
    const uint16_t *w = (const void *)values;
    for (uint32_t i = 0; i < 4; i++) MEET((floats)(words_at(w + i * LANES) << 16), i * LANES, i)
}
DOT dot_q4_0(const uint8_t *block, const float *x, uint64_t x_stride, const uint32_t rows, floats (*sums)[2]) {
    const floats d = splat(hdcpu_f16_at(block));
    for (uint32_t i = 0; i < 16; i += LANES) {
        const ints codes = bytes_at(block + 2 + i);
        const floats low = d * to_floats((codes & 15) - 8), high = d * to_floats((codes >> 4) - 8);
        MEET(low, i, 2 * i / LANES)
        MEET(high, 16 + i, 2 * i / LANES + 1)
    }
}
DOT dot_q8_0(const uint8_t *block, const float *x, uint64_t x_stride, const uint32_t rows, floats (*sums)[2]) {
    const floats d = splat(hdcpu_f16_at(block));
    for (uint32_t i = 0; i < 32; i += LANES) {
        const floats w = d * to_floats(signed_bytes_at(block + 2 + i));
        MEET(w, i, i / LANES)
    }
}
DOT dot_q4_k(const uint8_t *block, const float *x, uint64_t x_stride, const uint32_t rows, floats (*sums)[2]) {
    for (uint32_t part = 0; part < 8; part += 2) {
        float scale0, min0, scale1, min1;
        hdcpu_q4_k_part(block, (int)part, &scale0, &min0);
        hdcpu_q4_k_part(block, (int)part + 1, &scale1, &min1);
        for (uint32_t i = 0; i < 32; i += LANES) {
            const ints codes = bytes_at(block + 16 + 16 * part + i);
            const floats low = fused(splat(scale0), to_floats(codes & 15), splat(-min0));
            const floats high = fused(splat(scale1), to_floats(codes >> 4), splat(-min1));
            MEET(low, 32 * part + i, 2 * i / LANES)
            MEET(high, 32 * part + 32 + i, 2 * i / LANES + 1)
        }
    }
}
DOT dot_q6_k(const uint8_t *block, const float *x, uint64_t x_stride, const uint32_t rows, floats (*sums)[2]) {
    const float d = hdcpu_f16_at(block + 208);
    for (uint32_t half = 0; half < 2; half++)
        for (uint32_t i = 0; i < 32; i += LANES) {
            const ints high = bytes_at(block + 128 + 32 * half + i);
            for (uint32_t group = 0; group < 4; group++) {
                const ints low = bytes_at(block + 64 * half + 32 * (group & 1) + i) >> (int)(4 * (group >> 1)) & 15;
                const ints codes = (low | (high >> (int)(2 * group) & 3) << 4) - 32;
                const float scale = d * (float)(int8_t)block[192 + 8 * half + 2 * group + i / 16];
                const floats w = splat(scale) * to_floats(codes);
                MEET(w, 128 * half + 32 * group + i, group)
            }
        }
}
DOT dot_tq2_0(const uint8_t *block, const float *x, uint64_t x_stride, const uint32_t rows, floats (*sums)[2]) {
    const floats d = splat(hdcpu_f16_at(block + 64));
    for (uint32_t half = 0; half < 2; half++)
        for (uint32_t i = 0; i < 32; i += LANES) {
            const ints codes = bytes_at(block + 32 * half + i);
            for (uint32_t group = 0; group < 4; group++) {
                const floats w = d * to_floats((codes >> (int)(2 * group) & 3) - 1);
                MEET(w, 128 * half + 32 * group + i, group)
            }
        }
}
/* Bits first .. first + LANES - 1 of a word, as ones and zeros. */
static inline ints bits_of(int32_t word, uint32_t first) {
    ints lanes;
    for (int lane = 0; lane < LANES; lane++) lanes[lane] = lane;
    return (word - (ints){ 0 }) >> (lanes + (int)first) & 1;
}
DOT dot_q4_1(const uint8_t *block, const float *x, uint64_t x_stride, const uint32_t rows, floats (*sums)[2]) {
    const floats d = splat(hdcpu_f16_at(block)), m = splat(hdcpu_f16_at(block + 2));
    for (uint32_t i = 0; i < 16; i += LANES) {
        const ints codes = bytes_at(block + 4 + i);
        const floats low = fused(d, to_floats(codes & 15), m), high = fused(d, to_floats(codes >> 4), m);
        MEET(low, i, 2 * i / LANES)
        MEET(high, 16 + i, 2 * i / LANES + 1)
    }
}
/* q5_1, and q5_0 without a minimum: fifth bits, then the lower ones; a value is d * (code - offset) + m. */
DOT dot_five(const uint8_t *block, const bool has_min, const float *x, uint64_t x_stride, const uint32_t rows,
             floats (*sums)[2]) {
    const floats d = splat(hdcpu_f16_at(block)), m = splat(has_min ? hdcpu_f16_at(block + 2) : 0);
    const int offset = has_min ? 0 : 16;
    const uint8_t *bits = block + (has_min ? 4 : 2);
    int32_t fifth;
    memcpy(&fifth, bits, sizeof fifth);
    for (uint32_t i = 0; i < 16; i += LANES) {
        const ints codes = bytes_at(bits + 4 + i);
        const floats low = fused(d, to_floats(((codes & 15) | bits_of(fifth, i) << 4) - offset), m);
        const floats high = fused(d, to_floats((codes >> 4 | bits_of(fifth, 16 + i) << 4) - offset), m);
        MEET(low, i, 2 * i / LANES)
        MEET(high, 16 + i, 2 * i / LANES + 1)
    }
}
DOT dot_q5_0(const uint8_t *block, const float *x, uint64_t x_stride, const uint32_t rows, floats (*sums)[2]) {
    dot_five(block, false, x, x_stride, rows, sums);
}
DOT dot_q5_1(const uint8_t *block, const float *x, uint64_t x_stride, const uint32_t rows, floats (*sums)[2]) {
    dot_five(block, true, x, x_stride, rows, sums);
}
DOT dot_q2_k(const uint8_t *block, const float *x, uint64_t x_stride, const uint32_t rows, floats (*sums)[2]) {
    for (uint32_t part = 0; part < 16; part++) {
        float scale, min;
        hdcpu_q2_k_part(block, part, &scale, &min);
        for (uint32_t i = 0; i < 16; i += LANES) {
            const ints codes =
                bytes_at(block + 16 + 32 * (part >> 3) + 16 * (part & 1) + i) >> (int)(2 * (part >> 1 & 3)) & 3;
            const floats w = fused(splat(scale), to_floats(codes), splat(-min));
            MEET(w, 16 * part + i, part)
        }
    }
}
DOT dot_q3_k(const uint8_t *block, const float *x, uint64_t x_stride, const uint32_t rows, floats (*sums)[2]) {
    for (uint32_t part = 0; part < 16; part++) {
        const floats scale = splat(hdcpu_q3_k_part(block, part));
        for (uint32_t i = 0; i < 16; i += LANES) {
            const ints low =
                bytes_at(block + 32 + 32 * (part >> 3) + 16 * (part & 1) + i) >> (int)(2 * (part >> 1 & 3)) & 3;
            const ints high = bytes_at(block + 16 * (part & 1) + i) >> (int)(part >> 1) & 1;
            const floats w = scale * to_floats((low | high << 2) - 4);
            MEET(w, 16 * part + i, part)
        }
    }
}
DOT dot_q5_k(const uint8_t *block, const float *x, uint64_t x_stride, const uint32_t rows, floats (*sums)[2]) {
    for (uint32_t part = 0; part < 8; part += 2) {
        float scale0, min0, scale1, min1;
        hdcpu_q4_k_part(block, (int)part, &scale0, &min0);
        hdcpu_q4_k_part(block, (int)part + 1, &scale1, &min1);
        for (uint32_t i = 0; i < 32; i += LANES) {
            const ints codes = bytes_at(block + 48 + 16 * part + i), fifth = bytes_at(block + 16 + i) >> (int)part;
            const floats low = fused(splat(scale0), to_floats((codes & 15) | (fifth & 1) << 4), splat(-min0));
            const floats high = fused(splat(scale1), to_floats(codes >> 4 | (fifth & 2) << 3), splat(-min1));
            MEET(low, 32 * part + i, 2 * i / LANES)
            MEET(high, 32 * part + 32 + i, 2 * i / LANES + 1)
        }
    }
}
DOT dot_tq1_0(const uint8_t *block, const float *x, uint64_t x_stride, const uint32_t rows, floats (*sums)[2]) {
    const floats d = splat(hdcpu_f16_at(block + 52));
    for (uint32_t i = 0; i < 48; i += LANES) {
        const uint32_t first = i < 32 ? i : 128 + i, step = i < 32 ? 32 : 16;
        ints bytes = bytes_at(block + i); /* times powers of 3, without what overflows */
        for (uint32_t digit = 0; digit < 5; digit++) {
            const floats w = d * to_floats((bytes * 3 >> 8) - 1);
            MEET(w, first + digit * step, digit)
            bytes = bytes * 3 & 255;
        }
    }
    float last[16];
    hdcpu_tq1_0_last(block, last);
    for (uint32_t i = 0; i < 16; i += LANES) MEET(d * hdcpu_load(last + i), 240 + i, i / LANES)
}
/* A block of a type that has no form of its own. */
DOT dot_block(uint32_t type, const uint8_t *block, const float *x, uint64_t x_stride, const uint32_t rows,
              floats (*sums)[2]) {
    float values[256];
    hdcpu_dequantise_block(type, block, values);
    for (uint32_t i = 0; i < hdcpu_block_elements(type); i += LANES) MEET(hdcpu_load(values + i), i, i / LANES)
}

/* out[place][r] = the column at a place times row r of x; `rows` is 1, 2 or 4 and known when this is compiled. */
DOT dot(uint32_t type, const uint8_t *const *columns, uint32_t k, const float *x, uint64_t x_stride,
        const uint32_t rows, float (*out)[ROWS_AT_ONCE]) {
    const uint32_t places = hdcpu_places(rows);
    floats sums[HDCPU_PLACES][ROWS_AT_ONCE][SUMS];
    uint32_t at = 0;
    for (uint32_t place = 0; place < places; place++)
        for (uint32_t r = 0; r < rows; r++) sums[place][r][0] = sums[place][r][1] = splat(0);
#define AT_PLACES(elements, bytes, meet) \
    for (; at + (elements) <= k; at += (elements)) \
        _Pragma("GCC unroll 4") for (uint32_t place = 0; place < places; place++) { \
            const uint8_t *block = columns[place] + (uint64_t)at / (elements) * (bytes); \
            hdcpu_look_ahead(block, bytes, HDCPU_AHEAD_BYTES / places, false); \
            meet(block, x + at, x_stride, rows, sums[place]); \
        }
#define VALUES(bytes, meet) AT_PLACES(4 * LANES, 4 * LANES * (bytes), meet) break
#define BLOCKS(elements, bytes, meet) AT_PLACES(elements, bytes, meet) break
    switch (type) {
    case HDI_TYPE_F32:  VALUES(4, dot_f32);
    case HDI_TYPE_F16:  VALUES(2, dot_f16);
    case HDI_TYPE_BF16: VALUES(2, dot_bf16);
    case HDI_TYPE_Q4_0: BLOCKS(32, 18, dot_q4_0);
    case HDI_TYPE_Q8_0: BLOCKS(32, 34, dot_q8_0);
    case HDI_TYPE_Q4_K: BLOCKS(256, 144, dot_q4_k);
    case HDI_TYPE_Q6_K: BLOCKS(256, 210, dot_q6_k);
    case HDI_TYPE_Q4_1: BLOCKS(32, 20, dot_q4_1);
    case HDI_TYPE_Q5_0: BLOCKS(32, 22, dot_q5_0);
    case HDI_TYPE_Q5_1: BLOCKS(32, 24, dot_q5_1);
    case HDI_TYPE_Q2_K: BLOCKS(256, 84, dot_q2_k);
    case HDI_TYPE_Q3_K: BLOCKS(256, 110, dot_q3_k);
    case HDI_TYPE_Q5_K: BLOCKS(256, 176, dot_q5_k);
    case HDI_TYPE_TQ1_0: BLOCKS(256, 54, dot_tq1_0);
    case HDI_TYPE_TQ2_0: BLOCKS(256, 66, dot_tq2_0);
    default: {
#define MEET_BLOCK(...) dot_block(type, __VA_ARGS__)
        const uint32_t elements = hdcpu_block_elements(type), bytes = hdcpu_block_bytes(type);
        AT_PLACES(elements, bytes, MEET_BLOCK)
    }
    }
    for (uint32_t place = 0; place < places; place++)
        for (uint32_t r = 0; r < rows; r++) {
            const floats sum = sums[place][r][0] + sums[place][r][1];
            out[place][r] = 0.0f;
            for (int lane = 0; lane < LANES; lane++) out[place][r] += sum[lane];
        }
    for (; at < k; at++) /* what float types have over */
        for (uint32_t place = 0; place < places; place++) {
            const float w = hdcpu_load_any(type, columns[place], at);
            for (uint32_t r = 0; r < rows; r++) out[place][r] += w * x[r * x_stride + at];
        }
}
#define DOTS(count) \
    static void dots_##count(uint32_t type, const uint8_t *const *columns, uint32_t k, const float *x, \
                             uint64_t x_stride, float (*out)[ROWS_AT_ONCE]) { \
        dot(type, columns, k, x, x_stride, count, out); \
    }
DOTS(1) DOTS(2) DOTS(4)

/* May the groups that follow use what this worker's scratch holds already? Notes that it does from now on. */
static bool is_kept(const hdcpu_product *p) {
    uint32_t *kept = p->call->kept;
    if (!kept) return false;
    const bool same = *kept == p->batch + 1;
    *kept = p->batch + 1;
    return same;
}

#ifdef HDCPU_DOT_INT8
/* The same with A's rows rounded to 8 bits, once by each worker. */
static void int8_columns(const hdcpu_product *p, uint32_t n0, uint32_t n_count, float *scratch) {
    const uint32_t rows = p->m > 4 ? 8 : p->m > 2 ? 4 : p->m;
    const uint64_t row_bytes = hdcpu_int8_row_bytes(p->k);
    const uint64_t elements = hdcpu_block_elements(p->b_type), bytes = hdcpu_block_bytes(p->b_type);
    float *row = scratch;
    uint8_t *x = (uint8_t *)(row + HDCPU_MATMUL_TILE_FLOATS(1, p->k));
    float *sums = (float *)(void *)(x + 8 * row_bytes);
    for (uint32_t r = 0, kept = is_kept(p); r < rows && !kept; r++) {
        if (r < p->m) hdcpu_gather(p->a_type, p->a, hdcpu_a_at(p, r), p->a_col, p->k, row);
        else memset(row, 0, p->k * sizeof *row);
        hdcpu_int8_row(p->b_type, row, p->k, x + r * row_bytes);
    }
    const uint64_t first = p->b_first + n0 * p->b_col;
    hdcpu_int8_columns(&(hdcpu_int8_product){ .type = p->b_type, .k = p->k, .count = n_count,
                                              .columns = (const uint8_t *)p->b + first / elements * bytes,
                                              .column_bytes = p->b_col / elements * bytes,
                                              .x = x, .rows = rows, .out = sums, .out_stride = n_count });
    for (uint32_t r = 0; r < p->m; r++) hdcpu_store_sums(p, r, n0, n_count, sums + r * n_count);
}
#endif

static void fast_columns(const hdcpu_product *p, uint32_t n0, uint32_t n_count, float *scratch) {
    const uint32_t rows = p->m > 4 ? 8 : p->m > 2 ? 4 : p->m;
    float *room = scratch, *sums = room + 8 * HDCPU_MATMUL_TILE_FLOATS(1, p->k);
#ifdef HDCPU_DOT_INT8
    if (hdcpu_int8_takes(p->b_type) && hdcpu_may_round(p->rows != NULL, p->k)) {
        int8_columns(p, n0, n_count, scratch);
        return;
    }
#endif
    const float *x = room;
    uint64_t x_stride = HDCPU_MATMUL_TILE_FLOATS(1, p->k);
    if (rows == p->m && p->a_type == HDI_TYPE_F32 && p->a_col == 1 && !p->rows) {
        x = (const float *)p->a + p->a_first;
        x_stride = p->a_row;
    } else if (!is_kept(p)) {
        for (uint32_t r = 0; r < rows; r++) {
            if (r < p->m) hdcpu_gather(p->a_type, p->a, hdcpu_a_at(p, r), p->a_col, p->k, room + r * x_stride);
            else memset(room + r * x_stride, 0, p->k * sizeof *room);
        }
    }
    const uint64_t elements = hdcpu_block_elements(p->b_type);
    const uint32_t places = hdcpu_places(HDI_MIN(rows, (uint32_t)ROWS_AT_ONCE));
    const uint32_t apart = (n_count + places - 1) / places;
    for (uint32_t j = 0; j < apart; j++) {
        const uint8_t *columns[HDCPU_PLACES];
        uint32_t at[HDCPU_PLACES]; /* where they do not come out even, the last one is computed again */
        float out[HDCPU_PLACES][ROWS_AT_ONCE];
        for (uint32_t place = 0; place < places; place++) {
            at[place] = HDI_MIN(j + place * apart, n_count - 1);
            const uint64_t first = p->b_first + (uint64_t)(n0 + at[place]) * p->b_col;
            columns[place] = (const uint8_t *)p->b + first / elements * hdcpu_block_bytes(p->b_type);
        }
        for (uint32_t r = 0; r < rows; r += ROWS_AT_ONCE) {
            (rows == 1 ? dots_1 : rows == 2 ? dots_2 : dots_4)(p->b_type, columns, p->k, x + r * x_stride, x_stride,
                                                               out);
            for (uint32_t place = 0; place < places; place++)
                for (uint32_t i = r; i < HDI_MIN(p->m, r + ROWS_AT_ONCE); i++)
                    sums[i * n_count + at[place]] = out[place][i - r];
        }
    }
    for (uint32_t r = 0; r < p->m; r++) hdcpu_store_sums(p, r, n0, n_count, sums + r * n_count);
}

/* ---- exact: 16 blocks of K (abi.h) lie side by side, so that each is summed in order while columns come from memory
 * in order ---- */

enum { SIDE = HDCPU_EXACT_SIDE, CHUNK = HDCPU_EXACT_CHUNK, COLUMNS = HDCPU_EXACT_COLUMNS };

/* out[i][block] = in[block][i]. */
static void turn_chunk(const float *in, float *out) {
    for (uint32_t i = 0; i < HDI_MM_BLOCK; i += SIDE)
        transpose_words((const uint32_t *)(const void *)(in + i), HDI_MM_BLOCK, (uint32_t *)(void *)(out + i * SIDE),
                        SIDE);
}
/* out[block] = the sum of its products. */
static void sum_blocks(const float *x, const float *w, float *out) {
    floats sums[SIDE / LANES];
    _Pragma("GCC unroll 4") for (uint32_t v = 0; v < SIDE / LANES; v++) sums[v] = splat(0);
    for (uint32_t i = 0; i < HDI_MM_BLOCK; i++)
        _Pragma("GCC unroll 4") for (uint32_t v = 0; v < SIDE / LANES; v++)
            sums[v] += hdcpu_load(x + i * SIDE + v * LANES) * hdcpu_load(w + i * SIDE + v * LANES);
    _Pragma("GCC unroll 4") for (uint32_t v = 0; v < SIDE / LANES; v++) hdcpu_store(out + v * LANES, sums[v]);
}
/* A's rows, in chunks; what is past K is zeros, which add nothing. */
static void turn_rows(const hdcpu_product *p, uint32_t chunks, float *out) {
    for (uint32_t r = 0; r < p->m; r++)
        for (uint32_t at = 0; at < p->k; at += CHUNK) {
            const uint32_t count = HDI_MIN(p->k - at, (uint32_t)CHUNK);
            float line[CHUNK];
            if (count < CHUNK) memset(line, 0, sizeof line);
            hdcpu_gather(p->a_type, p->a, hdcpu_a_at(p, r) + at * p->a_col, p->a_col, count, line);
            turn_chunk(line, out + (uint64_t)r * chunks * CHUNK + at);
        }
}
/* The sums of a chunk's blocks of a column, which begins at element `first`, for each row; a row's are `apart` behind
 * the one before. */
static void chunk_blocks(const hdcpu_product *p, uint64_t first, const float *x, uint32_t chunk, uint32_t chunks,
                         float *out, uint64_t apart) {
    const uint32_t elements = hdcpu_block_elements(p->b_type), bytes = hdcpu_block_bytes(p->b_type);
    const uint64_t at = first + (uint64_t)chunk * CHUNK;
    const uint32_t count = HDI_MIN(p->k - chunk * CHUNK, (uint32_t)CHUNK), chunk_bytes = count * bytes / elements;
    float line[CHUNK], turned[CHUNK];
    if (count < CHUNK) memset(line, 0, sizeof line);
    /* the chunk behind the next; a Zen 5 waits twice as long for what is in the second cache only */
    hdcpu_look_ahead((const uint8_t *)p->b + at / elements * bytes, chunk_bytes, 2 * chunk_bytes, true);
    hdcpu_load_floats(p->b_type, p->b, at, count, line);
    turn_chunk(line, turned);
    for (uint32_t r = 0; r < p->m; r++)
        sum_blocks(x + ((uint64_t)r * chunks + chunk) * CHUNK, turned, out + r * apart + chunk * SIDE);
}
static void exact_columns(const hdcpu_product *p, uint32_t n0, uint32_t n_count, float *scratch) {
    const uint32_t chunks = (uint32_t)hdi_divide_up(p->k, CHUNK), blocks_count = chunks * SIDE;
    float *x = scratch, *blocks = x + 8 * (uint64_t)chunks * CHUNK,
          *sums = blocks + 8 * (uint64_t)COLUMNS * blocks_count;
    if (!is_kept(p)) turn_rows(p, chunks, x);
    const uint32_t apart = (n_count + COLUMNS - 1) / COLUMNS;
    for (uint32_t j = 0; j < apart; j++) {
        uint32_t at[COLUMNS];
        for (uint32_t c = 0; c < COLUMNS; c++) at[c] = HDI_MIN(j + c * apart, n_count - 1);
        for (uint32_t chunk = 0; chunk < chunks; chunk++)
            for (uint32_t c = 0; c < COLUMNS; c++)
                chunk_blocks(p, p->b_first + (uint64_t)(n0 + at[c]) * p->b_col, x, chunk, chunks,
                             blocks + (uint64_t)c * blocks_count, (uint64_t)COLUMNS * blocks_count);
        for (uint32_t r = 0; r < p->m; r++) {
            const float *of_row = blocks + (uint64_t)r * COLUMNS * blocks_count;
            float total[COLUMNS] = { 0 };
            for (uint32_t b = 0; b < blocks_count; b++)
                for (uint32_t c = 0; c < COLUMNS; c++) total[c] += of_row[(uint64_t)c * blocks_count + b];
            for (uint32_t c = 0; c < COLUMNS; c++) sums[r * n_count + at[c]] = total[c];
        }
    }
    for (uint32_t r = 0; r < p->m; r++) hdcpu_store_sums(p, r, n0, n_count, sums + r * n_count);
}

HDCPU_KERNEL(matvec) {
    (void)group_y;
    const hdcpu_product p = hdcpu_product_of(call, group_z);
    const uint32_t n0 = group_x * call->spec[HDI_MM_TILE_N];
    if (n0 >= p.n || p.m == 0) return;
    const uint32_t n_count = HDI_MIN(p.n - n0, call->spec[HDI_MM_TILE_N]);
    if (!call->spec[HDI_SPEC_EXACT]) fast_columns(&p, n0, n_count, call->scratch);
    else if (p.b_row == 1) exact_columns(&p, n0, n_count, call->scratch);
    else hdcpu_exact_tile(&p, 0, p.m, n0, n_count, call->scratch);
}
