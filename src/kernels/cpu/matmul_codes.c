/* matmul_codes.c: the exact product in 8 bits (abi.h) of rows that `codes` has rounded and quantised weights whose columns lie
 * along K. A column is unpacked once for all rows of the tile; 16 neighbouring runs, one of each strand, are summed as integers
 * and meet as vectors. */
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/runs.h"

enum { STRANDS = HDI_MM_STRANDS, ROUND = STRANDS * HDI_MM_RUN };

/* 16 runs of a column, those past K as zeros. */
typedef struct round_of_runs {
    int8_t  codes[STRANDS][HDI_MM_RUN];
    int16_t scale[STRANDS][2];
    int32_t low_min[STRANDS], high_min[STRANDS];
    float   d[STRANDS], less[STRANDS];
} round_of_runs;
_Static_assert(sizeof(round_of_runs) == HDCPU_CODES_ROUND_BYTES, "the rules make room for a column");

static void unpack_column(uint32_t type, const uint8_t *column, uint32_t runs, round_of_runs *out) {
    const uint32_t in_block = hdcpu_block_elements(type) / HDI_MM_RUN, bytes = hdcpu_block_bytes(type);
    for (uint32_t run = 0; run < (runs + STRANDS - 1) / STRANDS * STRANDS; run++) {
        round_of_runs *round = &out[run / STRANDS];
        const uint32_t strand = run % STRANDS;
        hdcpu_run b = { .d = 0 };
        if (run < runs) {
            hdcpu_look_ahead(column + run / in_block * bytes, bytes / in_block);
            hdcpu_run_of(type, column + run / in_block * bytes, run % in_block, &b);
        }
        memcpy(round->codes[strand], b.codes, sizeof b.codes);
        for (uint32_t h = 0; h < 2; h++) round->scale[strand][h] = (int16_t)b.scale[h];
        round->low_min[strand] = b.min[0];
        round->high_min[strand] = b.min[1];
        round->d[strand] = b.d;
        round->less[strand] = b.less;
    }
}

/* The sums of each run's products with x, 16 runs of activations; `scaled`: half by half times the weights' own scales. */
#if HDCPU_LEVEL >= 1
static inline __m256i sums_of_run(const round_of_runs *w, uint32_t run, const int8_t *x, bool scaled) {
    const __m256i codes = _mm256_loadu_si256((const void *)w->codes[run]);
    const __m256i turned = _mm256_sign_epi8(_mm256_loadu_si256((const void *)(x + HDI_MM_RUN * run)), codes);
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(codes), turned);
    const __m256i scale = scaled ? _mm256_set_m128i(_mm_set1_epi16(w->scale[run][1]), _mm_set1_epi16(w->scale[run][0]))
                                 : _mm256_set1_epi16(1);
    return _mm256_madd_epi16(pairs, scale);
}
static inline void weigh(const round_of_runs *w, const int8_t *x, bool scaled, int32_t out[STRANDS]) {
    for (uint32_t run = 0; run < STRANDS; run += 8) {
        __m256i four[2];
        for (uint32_t i = 0; i < 2; i++) {
            const uint32_t first = run + 4 * i;
            const __m256i a = _mm256_hadd_epi32(sums_of_run(w, first, x, scaled), sums_of_run(w, first + 1, x, scaled));
            const __m256i b = _mm256_hadd_epi32(sums_of_run(w, first + 2, x, scaled), sums_of_run(w, first + 3, x, scaled));
            four[i] = _mm256_hadd_epi32(a, b); /* each run's sum in two parts */
        }
        const __m256i low = _mm256_permute2x128_si256(four[0], four[1], 0x20), high = _mm256_permute2x128_si256(four[0], four[1], 0x31);
        _mm256_storeu_si256((void *)(out + run), _mm256_add_epi32(low, high));
    }
}
#else
static inline void weigh(const round_of_runs *w, const int8_t *x, bool scaled, int32_t out[STRANDS]) {
    (void)scaled;
    for (uint32_t run = 0; run < STRANDS; run++) {
        int32_t sums[2] = { 0 };
        for (uint32_t i = 0; i < HDI_MM_RUN; i++) sums[i / 16] += w->codes[run][i] * x[HDI_MM_RUN * run + i];
        out[run] = w->scale[run][0] * sums[0] + w->scale[run][1] * sums[1];
    }
}
#endif

/* A row of A: its codes, and its facts, 16 runs at a time: their scales and the sums of their halves' codes. */
static float product_of(const round_of_runs *column, const int8_t *x, const uint32_t *facts, uint32_t runs, bool scaled, bool has_min) {
    float strands[STRANDS] = { 0 }, total = 0;
    for (uint32_t first = 0; first < runs; first += STRANDS, column++, x += ROUND, facts += 2 * STRANDS) {
        const uint32_t count = HDI_MIN(runs - first, (uint32_t)STRANDS);
        int8_t padded[ROUND];
        uint32_t padded_facts[2 * STRANDS];
        const int8_t *codes = x;
        const uint32_t *own = facts;
        if (count < STRANDS) {
            memset(padded, 0, sizeof padded);
            memset(padded_facts, 0, sizeof padded_facts);
            codes = memcpy(padded, x, count * HDI_MM_RUN);
            own = memcpy(padded_facts, facts, count * 2 * sizeof *facts);
        }
        int32_t weights[STRANDS];
        weigh(column, codes, scaled, weights);
        for (uint32_t i = 0; i < STRANDS; i++) {
            const int32_t low = (int16_t)(own[2 * i + 1] & 0xFFFFu), high = (int32_t)own[2 * i + 1] >> 16;
            const int32_t mins = has_min ? column->low_min[i] * low + column->high_min[i] * high : 0;
            const float scale = exact_from_bits(own[2 * i]);
            strands[i] = strands[i] + hdcpu_run_value(scale, column->d[i], column->less[i], has_min, weights[i], mins);
        }
    }
    for (uint32_t i = 0; i < STRANDS; i++) total = total + strands[i];
    return total;
}

HDCPU_KERNEL(matmul_codes) {
    const hdcpu_product p = hdcpu_product_of(call, group_z);
    const uint32_t m0 = group_y * call->spec[HDI_MM_TILE_M], n0 = group_x * call->spec[HDI_MM_TILE_N], runs = p.k / HDI_MM_RUN;
    if (m0 >= p.m || n0 >= p.n) return;
    const uint32_t m_count = HDI_MIN(p.m - m0, call->spec[HDI_MM_TILE_M]), n_count = HDI_MIN(p.n - n0, call->spec[HDI_MM_TILE_N]);
    const uint64_t row = (uint64_t)p.batch * p.m + m0;
    const int8_t *x = (const int8_t *)call->bindings[0] + row * p.k;
    const uint32_t *facts = (const uint32_t *)call->bindings[0] + (uint64_t)call->spec[HDI_MM_PARTS] * runs * (HDI_MM_RUN / 4);
    const bool scaled = p.b_type == HDI_TYPE_Q4_K || p.b_type == HDI_TYPE_Q5_K || p.b_type == HDI_TYPE_Q6_K ||
                        p.b_type == HDI_TYPE_Q2_K || p.b_type == HDI_TYPE_Q3_K;
    const bool has_min = hdcpu_has_min(p.b_type);
    float *sums = call->scratch;
    round_of_runs *column = (void *)(sums + HDCPU_MATMUL_TILE_FLOATS(m_count, n_count));
    for (uint32_t n = 0; n < n_count; n++) {
        const uint64_t first = p.b_first + (uint64_t)(n0 + n) * p.b_col;
        unpack_column(p.b_type, (const uint8_t *)p.b + first / hdcpu_block_elements(p.b_type) * hdcpu_block_bytes(p.b_type), runs, column);
        for (uint32_t m = 0; m < m_count; m++)
            sums[m * n_count + n] = product_of(column, x + (uint64_t)m * p.k, facts + (row + m) * runs * 2, runs, scaled, has_min);
    }
    for (uint32_t m = 0; m < m_count; m++) hdcpu_store_sums(&p, m0 + m, n0, n_count, sums + m * n_count);
}
