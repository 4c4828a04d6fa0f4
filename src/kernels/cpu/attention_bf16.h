/* attention_bf16.h: many query rows over f16 keys and values on tiles of bf16 (AMX), in fast mode. Every number is the
 * sum of two of bf16, the rest that the first leaves being the second: exact for keys and values, within 2^-18 for
 * queries and weights. A product is three: first x first, and each first x rest. Scores come with queries side by side
 * in the lanes, so that maxima and sums go down along the keys; the weights of two neighbouring keys then are a word as
 * tiles want it. */
#ifndef HDCPU_ATTENTION_BF16_H
#define HDCPU_ATTENTION_BF16_H

#include "kernels/cpu/attention_native.h"
#include "kernels/cpu/bf16_tiles.h"

#define NEVER (-__builtin_inff()) /* the score of a key that a row does not see */

/* A pair of tiles, each in two parts. */
enum { PAIR = HDCPU_ATTENTION_PAIR, KEYS = HDCPU_ATTENTION_KEYS, QUAD_WORDS = 4 * TILE_WORDS };

/* A group's scratch. Quads of tiles are [first of a pair, second][its numbers, their rests]. */
typedef struct tiles {
    uint32_t width, steps;    /* D, and D / 32 */
    uint32_t *queries;        /* [pair of rows][D / 32] */
    uint32_t *keys, *values;  /* [KEYS / 32][D / 32], [KEYS / 32][D / 32] */
    uint32_t *weights;        /* [KEYS / 32], of a pair of rows */
    float    *scores;         /* KEYS x PAIR */
    float    *result;         /* a row of D for each query row */
    float    *largest, *sum, *rescale; /* of each query row */
    int32_t  *from, *to;      /* the keys that it sees */
} tiles;

#if HDCPU_LEVEL >= 3 && defined(__AMX_TILE__)
/* 32 numbers, rounded, in the order of memory; what remains of them. */
static inline void split(__m512 low, __m512 high, __m512i *out_numbers, __m512i *out_rests) {
    const __m512i numbers = (__m512i)_mm512_cvtne2ps_pbh(high, low);
    const __m512 first = (__m512)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(numbers)), 16),
                 second = (__m512)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(numbers, 1)), 16);
    *out_numbers = numbers;
    *out_rests = (__m512i)_mm512_cvtne2ps_pbh(_mm512_sub_ps(high, second), _mm512_sub_ps(low, first));
}
/* Numbers of two neighbouring keys, in words; what remains of them likewise. */
static inline void split_pairs(__m512 even, __m512 odd, __m512i *out_numbers, __m512i *out_rests) {
    const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                           21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    __m512i numbers, rests;
    split(even, odd, &numbers, &rests);
    *out_numbers = _mm512_permutexvar_epi16(order, numbers);
    *out_rests = _mm512_permutexvar_epi16(order, rests);
}

/* sums[2][2] of tiles, `stride` floats a row, += A x B over `steps` steps; A's quads are neighbours, B's so many
 * apart. */
static void add_tiles(const uint32_t *a, const uint32_t *b, uint32_t steps, uint32_t b_step, bool from_zero,
                      float *sums, uint32_t stride) {
    float *below = sums + (size_t)TILE_LINES * stride;
    const size_t bytes = stride * sizeof(float);
    if (from_zero) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    } else {
        _tile_loadd(0, sums, bytes);
        _tile_loadd(1, sums + TILE_LINES, bytes);
        _tile_loadd(2, below, bytes);
        _tile_loadd(3, below + TILE_LINES, bytes);
    }
    for (uint32_t t = 0; t < steps; t++, a += QUAD_WORDS, b += (size_t)b_step * QUAD_WORDS) {
#define FOUR()                 \
    _tile_dpbf16ps(0, 4, 6);   \
    _tile_dpbf16ps(1, 4, 7);   \
    _tile_dpbf16ps(2, 5, 6);   \
    _tile_dpbf16ps(3, 5, 7)
        _tile_loadd(4, a, 64);
        _tile_loadd(5, a + 2 * TILE_WORDS, 64);
        _tile_loadd(6, b + TILE_WORDS, 64);
        _tile_loadd(7, b + 3 * TILE_WORDS, 64);
        FOUR();
        _tile_loadd(6, b, 64);
        _tile_loadd(7, b + 2 * TILE_WORDS, 64);
        FOUR();
        _tile_loadd(4, a + TILE_WORDS, 64);
        _tile_loadd(5, a + 3 * TILE_WORDS, 64);
        FOUR();
#undef FOUR
    }
    _tile_stored(0, sums, bytes);
    _tile_stored(1, sums + TILE_LINES, bytes);
    _tile_stored(2, below, bytes);
    _tile_stored(3, below + TILE_LINES, bytes);
}

/* Where infinite numbers or NaN are among them. */
static inline __mmask16 odd_ones(__m512 values) { return _mm512_fpclass_ps_mask(values, 0x99); }

/* Rows of a pair, NULL where there is none, times the scale, become tiles of queries. False: not all are finite. */
static bool take_queries(const tiles *s, const float *const rows[PAIR], float scale, uint32_t *out) {
    __mmask16 odd = 0;
    for (uint32_t t = 0; t < s->steps; t++)
        for (uint32_t half = 0; half < 2; half++) {
            uint32_t numbers[TILE_WORDS], rests[TILE_WORDS];
            for (uint32_t r = 0; r < TILE_LINES; r++) {
                const float *from = rows[half * TILE_LINES + r];
                __m512i words[2] = { _mm512_setzero_si512(), _mm512_setzero_si512() };
                if (from) {
                    const __m512 low = _mm512_mul_ps(_mm512_loadu_ps(from + 32 * t), _mm512_set1_ps(scale));
                    const __m512 high = _mm512_mul_ps(_mm512_loadu_ps(from + 32 * t + 16), _mm512_set1_ps(scale));
                    odd |= odd_ones(low) | odd_ones(high);
                    split(low, high, &words[0], &words[1]);
                }
                _mm512_storeu_si512(numbers + r * TILE_LINES, words[0]);
                _mm512_storeu_si512(rests + r * TILE_LINES, words[1]);
            }
            uint32_t *to = out + (size_t)t * QUAD_WORDS + half * 2 * TILE_WORDS;
            transpose_words(numbers, TILE_LINES, to, TILE_LINES);
            transpose_words(rests, TILE_LINES, to + TILE_WORDS, TILE_LINES);
        }
    return odd == 0;
}

static inline __m512 halves_at(const uint16_t *from, __mmask16 *odd) {
    const __m512 values = _mm512_cvtph_ps(_mm256_loadu_si256((const void *)from));
    *odd |= odd_ones(values);
    return values;
}
/* 32 keys, `count` of them there, each `step` halves behind the one before. False where one is not finite. */
static bool take_keys(const tiles *s, const uint16_t *k, uint64_t step, uint32_t count, uint32_t *out) {
    __mmask16 odd = 0;
    for (uint32_t key = 0; key < 32; key++)
        for (uint32_t t = 0; t < s->steps; t++) {
            uint32_t *to = out + (size_t)t * QUAD_WORDS + key / TILE_LINES * 2 * TILE_WORDS +
                           key % TILE_LINES * TILE_LINES;
            __m512i words[2] = { _mm512_setzero_si512(), _mm512_setzero_si512() };
            const uint16_t *from = k + key * step + 32 * t;
            if (key < count) split(halves_at(from, &odd), halves_at(from + 16, &odd), &words[0], &words[1]);
            _mm512_storeu_si512(to, words[0]);
            _mm512_storeu_si512(to + TILE_WORDS, words[1]);
        }
    return odd == 0;
}
static bool take_values(const tiles *s, const uint16_t *v, uint64_t step, uint32_t count, uint32_t *out) {
    __mmask16 odd = 0;
    for (uint32_t key = 0; key < 32; key += 2)
        for (uint32_t d = 0; d < s->width; d += TILE_LINES) {
            uint32_t *to = out + (size_t)(d / 32) * QUAD_WORDS + d % 32 / TILE_LINES * 2 * TILE_WORDS +
                           key / 2 * TILE_LINES;
            const __m512 none = _mm512_setzero_ps();
            __m512i words[2];
            split_pairs(key < count ? halves_at(v + key * step + d, &odd) : none,
                        key + 1 < count ? halves_at(v + (key + 1) * step + d, &odd) : none, &words[0], &words[1]);
            _mm512_storeu_si512(to, words[0]);
            _mm512_storeu_si512(to + TILE_WORDS, words[1]);
        }
    return odd == 0;
}

/* exp(x) for x <= 0, within 2 ulp; 0 below the normal range; NaN stays. */
static inline __m512 exp_of(__m512 x) {
    const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269502f)), 8);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693145752f), x);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(1.42860677e-6f), r);
    __m512 q = _mm512_set1_ps(0.00139408931f);
    q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(0.00833338965f));
    q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(0.0416663587f));
    q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(0.166666657f));
    q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(0.5f));
    q = _mm512_fmadd_ps(q, _mm512_mul_ps(r, r), r);
    const __m512 power = _mm512_scalef_ps(_mm512_add_ps(q, _mm512_set1_ps(1.0f)), n);
    return _mm512_mask_mov_ps(power, _mm512_cmp_ps_mask(x, _mm512_set1_ps(-126.0f), _CMP_LT_OQ), _mm512_setzero_ps());
}

/* Scores of a half of a pair, 16 query rows from `row` on, over `count` keys from `key` on become their weights. */
static void weigh_half(const tiles *s, uint32_t row, uint32_t key, uint32_t count) {
    const uint32_t half = row % PAIR / TILE_LINES;
    float *scores = s->scores + half * TILE_LINES;
    const __m512i from = _mm512_loadu_si512(s->from + row), to = _mm512_loadu_si512(s->to + row);
    const __m512 never = _mm512_set1_ps(NEVER), before = _mm512_loadu_ps(s->largest + row);
    __m512 largest = before, sum = _mm512_setzero_ps();
    const bool whole = _mm512_cmpgt_epi32_mask(from, _mm512_set1_epi32((int)key)) == 0 &&
                       _mm512_cmplt_epi32_mask(to, _mm512_set1_epi32((int)(key + count))) == 0;
    for (uint32_t i = 0; i < count; i++) {
        __m512 score = _mm512_loadu_ps(scores + (size_t)i * PAIR);
        if (!whole) {
            const __m512i at = _mm512_set1_epi32((int)(key + i));
            const __mmask16 seen = _mm512_cmple_epi32_mask(from, at) & _mm512_cmplt_epi32_mask(at, to);
            score = _mm512_mask_mov_ps(never, seen, score);
            _mm512_storeu_ps(scores + (size_t)i * PAIR, score);
        }
        largest = _mm512_max_ps(score, largest);
    }
    /* nothing but -infinity yet: all weights are 0 */
    const __m512 base = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(largest, never, _CMP_NEQ_UQ), largest);
    const __m512 rescale = exp_of(_mm512_sub_ps(before, base));
    for (uint32_t i = 0; i < (count + 31) / 32 * 32; i += 2) {
        __m512 weights[2];
        for (uint32_t j = 0; j < 2; j++) {
            weights[j] = i + j < count ? exp_of(_mm512_sub_ps(_mm512_loadu_ps(scores + (size_t)(i + j) * PAIR), base))
                                       : _mm512_setzero_ps();
            sum = _mm512_add_ps(sum, weights[j]);
        }
        /* a row of keys in words; transposed below */
        __m512i words[2];
        split_pairs(weights[0], weights[1], &words[0], &words[1]);
        uint32_t *to_words = s->weights + i / 32 * QUAD_WORDS + half * 2 * TILE_WORDS + i % 32 / 2 * TILE_LINES;
        _mm512_storeu_si512(to_words, words[0]);
        _mm512_storeu_si512(to_words + TILE_WORDS, words[1]);
    }
    for (uint32_t i = 0; i < count; i += 32) {
        uint32_t *tile = s->weights + i / 32 * QUAD_WORDS + half * 2 * TILE_WORDS;
        transpose_words(tile, TILE_LINES, tile, TILE_LINES); /* reads all before it writes */
        transpose_words(tile + TILE_WORDS, TILE_LINES, tile + TILE_WORDS, TILE_LINES);
    }
    _mm512_storeu_ps(s->largest + row, largest);
    _mm512_storeu_ps(s->sum + row, _mm512_fmadd_ps(_mm512_loadu_ps(s->sum + row), rescale, sum));
    _mm512_storeu_ps(s->rescale + row, rescale);
    if (_mm512_cmp_ps_mask(rescale, _mm512_set1_ps(1.0f), _CMP_NEQ_UQ) == 0) return;
    for (uint32_t r = row; r < row + TILE_LINES; r++) {
        float *result = s->result + (size_t)r * s->width;
        const __m512 factor = _mm512_set1_ps(s->rescale[r]);
        for (uint32_t d = 0; d < s->width; d += 16)
            _mm512_storeu_ps(result + d, _mm512_mul_ps(_mm512_loadu_ps(result + d), factor));
    }
}

/* `rows` query rows, in whole pairs, over `count` keys from `key` on. */
static void add_keys(const tiles *s, uint32_t rows, uint32_t key, uint32_t count) {
    const uint32_t blocks = (count + 31) / 32;
    for (uint32_t row = 0; row < rows; row += PAIR) {
        for (uint32_t block = 0; block < blocks; block++)
            add_tiles(s->keys + (size_t)block * s->steps * QUAD_WORDS,
                      s->queries + (size_t)row / PAIR * s->steps * QUAD_WORDS, s->steps, 1, true,
                      s->scores + (size_t)block * 32 * PAIR, PAIR);
        weigh_half(s, row, key, count);
        weigh_half(s, row + TILE_LINES, key, count);
        for (uint32_t t = 0; t < s->steps; t++)
            add_tiles(s->weights, s->values + (size_t)t * QUAD_WORDS, blocks, s->steps, false,
                      s->result + (size_t)row * s->width + 32 * t, s->width);
    }
}
#endif
#endif
