/* matmul_codes.c: the exact product in 8 bits (abi.h) of a few rows that `codes` has rounded and quantised weights
 * whose columns lie along K. A part of a column is unpacked once for all rows; the sums of 8 neighbouring runs, each of
 * a strand of its own, meet as vectors. Strands of several columns are added up side by side. */
#include "kernels/cpu/int8_codes.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/places.h"
#include "kernels/cpu/runs.h"

enum { STRANDS = HDI_MM_STRANDS, RUN = HDI_MM_RUN, PART = INT8_CODES, RUNS = PART / RUN, COLUMNS = 8 };

/* What the weights of a type are (int8_codes.h). */
typedef struct form {
    int  offset;
    bool is_signed;  /* codes are, of which none is taken off */
    bool scaled;     /* by whole numbers, of each run */
    bool in_halves;  /* or of each half of a run */
    bool has_min;
} form;

/* Where sums of two products need not fit 16 bits, signed codes become unsigned by it. */
enum { FLIP = HDCPU_LEVEL >= 3 ? 0x80 : 0 };

static form form_of(uint32_t type) {
    const bool in_halves = HDI_SCALED_BY_HALVES(type), is_signed = type == HDI_TYPE_Q8_0;
    return (form){ is_signed ? FLIP : int8_offset(type), is_signed && !FLIP,
                   in_halves || type == HDI_TYPE_Q4_K || type == HDI_TYPE_Q5_K, in_halves, HDI_HAS_MIN(type) };
}

/* What meets a part of a column: a row's codes and facts, which are each run's scale and its halves' sums. */
#if HDCPU_LEVEL >= 1

typedef struct row_part {
    const int8_t *x;
    __m256        scales;
    __m256i       halves;
} row_part;

static inline row_part row_part_of(const int8_t *x, const uint32_t *facts) {
    const __m256 first = _mm256_loadu_ps((const void *)facts), second = _mm256_loadu_ps((const void *)(facts + RUNS));
    const __m256i even = _mm256_castps_si256(_mm256_shuffle_ps(first, second, 0x88));
    const __m256i odd = _mm256_castps_si256(_mm256_shuffle_ps(first, second, 0xDD));
    return (row_part){ x, _mm256_castsi256_ps(_mm256_permute4x64_epi64(even, 0xD8)),
                       _mm256_permute4x64_epi64(odd, 0xD8) };
}

/* Four products of a run in each of its 8 sums, times the scales of the run's halves. */
static inline __m256i sums_of_run(const int8_column *w, uint32_t run, const int8_t *x, const form f, __m256i scales) {
    __m256i codes = _mm256_loadu_si256((const void *)(w->codes + RUN * run)),
            turned = _mm256_loadu_si256((const void *)(x + RUN * run));
    if (f.is_signed) {
        turned = _mm256_sign_epi8(turned, codes);
        codes = _mm256_abs_epi8(codes);
    }
    if (f.in_halves) {
        const __m256i own = _mm256_shuffle_epi8(scales, _mm256_set1_epi16((int16_t)(0x0100 + 0x0202 * run)));
        return _mm256_madd_epi16(_mm256_maddubs_epi16(codes, turned), own);
    }
    return _mm256_madd_epi16(_mm256_maddubs_epi16(codes, turned), _mm256_set1_epi16(1));
}
/* A sum for each of 8 runs. */
static inline __attribute__((always_inline)) __m256i sums_of_runs(const int8_column *w, const int8_t *x, const form f) {
#if HDCPU_LEVEL >= 3
    if (!f.in_halves) {
        __m512i two[4], pairs[2]; /* runs in each */
        for (uint32_t i = 0; i < 4; i++)
            two[i] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_loadu_si512(w->codes + 2 * RUN * i),
                                         _mm512_loadu_si512(x + 2 * RUN * i));
        for (uint32_t i = 0; i < 2; i++)
            pairs[i] = _mm512_add_epi32(_mm512_unpacklo_epi32(two[2 * i], two[2 * i + 1]),
                                        _mm512_unpackhi_epi32(two[2 * i], two[2 * i + 1]));
        const __m512i quarters = _mm512_add_epi32(_mm512_unpacklo_epi64(pairs[0], pairs[1]),
                                                  _mm512_unpackhi_epi64(pairs[0], pairs[1]));
        const __m512i sums = _mm512_add_epi32(quarters, _mm512_shuffle_i64x2(quarters, quarters, 0xB1));
        const __m512i order = _mm512_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11, 0, 0, 0, 0, 0, 0, 0, 0);
        return _mm512_castsi512_si256(_mm512_permutexvar_epi32(order, sums));
    }
#endif
    /* Scales of the runs' first halves, then of their second ones. */
    const __m128i evens = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    const __m256i scale = _mm256_loadu_si256((const void *)w->scale);
    const __m256i apart = _mm256_shuffle_epi8(scale, _mm256_broadcastsi128_si256(evens));
    const __m256i scales = _mm256_permute4x64_epi64(apart, 0xD8);
    __m256i four[2];
    for (uint32_t i = 0; i < 2; i++) {
        const __m256i a =
            _mm256_hadd_epi32(sums_of_run(w, 4 * i, x, f, scales), sums_of_run(w, 4 * i + 1, x, f, scales));
        const __m256i b =
            _mm256_hadd_epi32(sums_of_run(w, 4 * i + 2, x, f, scales), sums_of_run(w, 4 * i + 3, x, f, scales));
        four[i] = _mm256_hadd_epi32(a, b); /* each run's sum in two parts */
    }
    return _mm256_add_epi32(_mm256_permute2x128_si256(four[0], four[1], 0x20),
                            _mm256_permute2x128_si256(four[0], four[1], 0x31));
}
/* strands[i] += what run i comes to. */
static inline __attribute__((always_inline)) void meet(const int8_column *w, const row_part *row, const form f,
                                                       float *strands) {
    const __m256i scale = _mm256_loadu_si256((const void *)w->scale);
    __m256i sums = sums_of_runs(w, row->x, f);
    /* no such scale is negative */
    if (f.scaled && !f.in_halves) sums = _mm256_mullo_epi32(sums, _mm256_srli_epi32(scale, 16));
    if (f.offset) {
        const __m256i off = _mm256_set1_epi16((int16_t)-f.offset);
        sums = _mm256_add_epi32(sums, _mm256_madd_epi16(row->halves, f.scaled ? _mm256_mullo_epi16(scale, off) : off));
    }
    __m256 value = _mm256_mul_ps(_mm256_loadu_ps(w->d), _mm256_cvtepi32_ps(sums));
    if (f.has_min) {
        const __m256i mins = _mm256_madd_epi16(row->halves, _mm256_loadu_si256((const void *)w->min));
        value = _mm256_sub_ps(value, _mm256_mul_ps(_mm256_loadu_ps(w->less), _mm256_cvtepi32_ps(mins)));
    }
    _mm256_storeu_ps(strands, _mm256_add_ps(_mm256_loadu_ps(strands), _mm256_mul_ps(row->scales, value)));
}
#else

typedef struct row_part {
    const int8_t   *x;
    const uint32_t *facts;
} row_part;

static inline row_part row_part_of(const int8_t *x, const uint32_t *facts) { return (row_part){ x, facts }; }

/* strands[i] += what run i comes to. */
static inline __attribute__((always_inline)) void meet(const int8_column *w, const row_part *row, const form f,
                                                       float *strands) {
    const int8_t *x = row->x;
    const uint32_t *facts = row->facts;
    for (uint32_t run = 0; run < RUNS; run++) {
        const uint8_t *codes = w->codes + RUN * run;
        const int32_t low = (int16_t)(facts[2 * run + 1] & 0xFFFFu), high = (int32_t)facts[2 * run + 1] >> 16;
        int32_t sums[2] = { -f.offset * low, -f.offset * high };
        for (uint32_t i = 0; i < RUN; i++)
            sums[i / (RUN / 2)] += (f.is_signed ? (int8_t)codes[i] : codes[i]) * x[RUN * run + i];
        const int32_t weights = w->scale[2 * run] * sums[0] + w->scale[2 * run + 1] * sums[1];
        const int32_t mins = w->min[2 * run] * low + w->min[2 * run + 1] * high;
        strands[run] = strands[run] + hdcpu_run_value(exact_from_bits(facts[2 * run]), w->d[run], w->less[run],
                                                      f.has_min, weights, mins);
    }
}
#endif

/* The rows of a tile: codes and facts of all rows, and which of these it has. */
typedef struct rows {
    const int8_t   *x;
    const uint32_t *facts;
    uint32_t        count, k, numbers[HDCPU_CODES_ROWS];
} rows;
typedef float row_strands[HDCPU_CODES_ROWS][STRANDS];

/* strands[c][row] of each column; what is past K is zeros. */
static inline __attribute__((always_inline)) void multiply_columns(const uint32_t type, const rows *r,
                                                                   const uint8_t *const columns[COLUMNS],
                                                                   row_strands *strands) {
    const uint32_t elements = hdcpu_block_elements(type), bytes = hdcpu_block_bytes(type);
    for (uint32_t c = 0; c < COLUMNS; c++) memset(strands[c], 0, r->count * sizeof *strands[c]);
    for (uint32_t at = 0; at < r->k; at += PART) {
        const uint32_t count = HDI_MIN(r->k - at, (uint32_t)PART);
        int8_column parts[COLUMNS]; /* all are unpacked before the first is read, which waits for several stores */
        if (count < PART) memset(parts, 0, sizeof parts);
        for (uint32_t c = 0; c < COLUMNS; c++) {
            const uint8_t *blocks = columns[c] + at / elements * bytes;
            hdcpu_look_ahead(blocks, PART / elements * bytes, 2 * HDCPU_AHEAD_BYTES / COLUMNS, false);
            int8_codes(type, blocks, count, FLIP, &parts[c]);
        }
        for (uint64_t m = 0; m < r->count; m++) {
            const uint64_t first = (uint64_t)r->numbers[m] * r->k + at;
            const int8_t *x = r->x + first;
            const uint32_t *facts = r->facts + first / RUN * 2;
            int8_t rest[PART];
            uint32_t rest_facts[2 * RUNS];
            if (count < PART) {
                memset(rest, 0, sizeof rest);
                memset(rest_facts, 0, sizeof rest_facts);
                x = memcpy(rest, x, count);
                facts = memcpy(rest_facts, facts, count / RUN * 2 * sizeof *facts);
            }
            const row_part row = row_part_of(x, facts);
            for (uint32_t c = 0; c < COLUMNS; c++)
                meet(&parts[c], &row, form_of(type), strands[c][m] + at / RUN % STRANDS);
        }
    }
}
/* Each type has a function of its own. */
typedef void product(const rows *r, const uint8_t *const columns[COLUMNS], row_strands *strands);
#define PRODUCT(type) \
    static void product_##type(const rows *r, const uint8_t *const columns[COLUMNS], row_strands *strands) { \
        multiply_columns(HDI_TYPE_##type, r, columns, strands); \
    }
#define TYPES(X) X(Q4_0) X(Q4_1) X(Q5_0) X(Q5_1) X(Q8_0) X(Q2_K) X(Q3_K) X(Q4_K) X(Q5_K) X(Q6_K) X(TQ1_0) X(TQ2_0) \
    X(IQ2_XXS) X(IQ2_XS) X(IQ2_S) X(IQ3_XXS) X(IQ3_S) X(IQ1_S) X(IQ1_M)
TYPES(PRODUCT)
static product *product_of_type(uint32_t type) {
    switch (type) {
#define CASE(type) case HDI_TYPE_##type: return product_##type;
    TYPES(CASE)
    default: return NULL;
    }
}

HDCPU_KERNEL(matmul_codes) {
    const hdcpu_product p = hdcpu_product_of(call, group_z);
    const uint32_t m0 = group_y * HDCPU_CODES_ROWS, n0 = group_x * call->spec[HDI_MM_TILE_N];
    product *const multiply = product_of_type(p.b_type);
    if (m0 >= p.m || n0 >= p.n || !multiply) return;
    const uint32_t n_count = HDI_MIN(p.n - n0, call->spec[HDI_MM_TILE_N]);
    const uint32_t elements = hdcpu_block_elements(p.b_type), bytes = hdcpu_block_bytes(p.b_type);
    const uint64_t all_codes = (uint64_t)call->spec[HDI_MM_PARTS] * p.k;
    rows r = { .x = call->bindings[0],
               .facts = (const uint32_t *)call->bindings[0] + all_codes / sizeof(uint32_t),
               .count = HDI_MIN(p.m - m0, (uint32_t)HDCPU_CODES_ROWS), .k = p.k };
    for (uint32_t m = 0; m < r.count; m++)
        r.numbers[m] = p.rows ? p.rows[m0 + m] / p.share : p.batch * p.m + m0 + m;
    float *sums = call->scratch;
    row_strands strands[COLUMNS];
    const uint32_t apart = (n_count + COLUMNS - 1) / COLUMNS; /* more of them is on its way from memory so */
    for (uint32_t j = 0; j < apart; j++) {
        const uint8_t *columns[COLUMNS];
        uint32_t at[COLUMNS]; /* where they do not come out even, the last one is computed again */
        for (uint32_t c = 0; c < COLUMNS; c++) {
            at[c] = HDI_MIN(j + c * apart, n_count - 1);
            columns[c] = (const uint8_t *)p.b + (p.b_first + (uint64_t)(n0 + at[c]) * p.b_col) / elements * bytes;
        }
        multiply(&r, columns, strands);
        for (uint32_t m = 0; m < r.count; m++) {
            float total[COLUMNS] = { 0 };
            for (uint32_t i = 0; i < STRANDS; i++)
                for (uint32_t c = 0; c < COLUMNS; c++) total[c] = total[c] + strands[c][m][i];
            for (uint32_t c = 0; c < COLUMNS; c++) sums[m * n_count + at[c]] = total[c];
        }
    }
    for (uint32_t m = 0; m < r.count; m++) hdcpu_store_sums(&p, m0 + m, n0, n_count, sums + m * n_count);
}
