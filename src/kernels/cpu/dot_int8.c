/* dot_int8.c: integer dot products on GGUF's blocks (dot_int8.h). K is walked in parts of 256 elements. A vector of
 * codes is unpacked in registers, without a sign, and meets all rows; what the codes' offset adds is known from the
 * activations alone, so a row carries it along: a vector's sum begins at minus offset times the sum of its
 * activations. */
#include "kernels/cpu/dot_int8.h"

#ifdef HDCPU_DOT_INT8
#include "kernels/cpu/books_wide.h"
#include "kernels/cpu/int8_round.h"
#include "kernels/cpu/places.h"
#include "kernels/cpu/quant.h"

enum { PART = HDCPU_INT8_PART, BLOCKS = PART / 32, WIDE = HDCPU_LEVEL >= 2 ? 64 : 32, RUN = 16, RUNS = WIDE / RUN,
       LANES = WIDE / 4 };

/* ---- vectors: of WIDE bytes, or of LANES 32-bit words ---- */

#if HDCPU_LEVEL >= 2
typedef __m512i bytes;
typedef __m512  floats;
static inline bytes load(const void *p) { return _mm512_loadu_si512(p); }
static inline void store(void *p, bytes v) { _mm512_storeu_si512(p, v); }
static inline bytes all(int value) { return _mm512_set1_epi8((char)value); }
static inline bytes add_bytes(bytes a, bytes b) { return _mm512_add_epi8(a, b); }
static inline bytes times_words(bytes v, int factor) { return _mm512_mullo_epi32(v, _mm512_set1_epi32(factor)); }
static inline floats load_floats(const void *p) { return _mm512_loadu_ps(p); }
static inline floats splat(float value) { return _mm512_set1_ps(value); }
static inline floats times(floats a, floats b) { return _mm512_mul_ps(a, b); }
static inline floats to_floats(bytes words) { return _mm512_cvtepi32_ps(words); }
static inline floats fused(floats a, floats b, floats c) { return _mm512_fmadd_ps(a, b, c); }
static inline float sum_of(floats v) { return _mm512_reduce_add_ps(v); }
/* Four times: sums of 4 products of unsigned codes below 64 and activations, added to words. */
static inline bytes dot(bytes words, bytes codes, bytes x) {
#if HDCPU_LEVEL >= 3
    return _mm512_dpbusd_epi32(words, codes, x);
#else
    return _mm512_add_epi32(words, _mm512_madd_epi16(_mm512_maddubs_epi16(codes, x), _mm512_set1_epi16(1)));
#endif
}
/* RUNS blocks of 16 code bytes, `stride` apart. */
static inline bytes load_runs(const uint8_t *p, size_t stride) {
    const __m512i two = _mm512_inserti32x4(_mm512_castsi128_si512(_mm_loadu_si128((const void *)p)),
                                           _mm_loadu_si128((const void *)(p + stride)), 1);
    const __m512i three = _mm512_inserti32x4(two, _mm_loadu_si128((const void *)(p + 2 * stride)), 2);
    return _mm512_inserti32x4(three, _mm_loadu_si128((const void *)(p + 3 * stride)), 3);
}
/* Two halves of 32 bytes. */
static inline bytes load_halves(const void *low, const void *high) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(low)), _mm256_loadu_si256(high), 1);
}
/* The f16 values at words i0..i3 of 64 bytes, each in a quarter of the lanes. */
static inline floats halves_in_quarters(const void *p, short i0, short i1, short i2, short i3) {
    const __m512i index =
        _mm512_castsi256_si512(_mm256_set_epi16(i3, i3, i3, i3, i2, i2, i2, i2, i1, i1, i1, i1, i0, i0, i0, i0));
    return _mm512_cvtph_ps(_mm512_castsi512_si256(_mm512_permutexvar_epi16(index, load(p))));
}
#else
typedef __m256i bytes;
typedef __m256  floats;
static inline bytes load(const void *p) { return _mm256_loadu_si256(p); }
static inline void store(void *p, bytes v) { _mm256_storeu_si256(p, v); }
static inline bytes all(int value) { return _mm256_set1_epi8((char)value); }
static inline bytes add_bytes(bytes a, bytes b) { return _mm256_add_epi8(a, b); }
static inline bytes times_words(bytes v, int factor) { return _mm256_mullo_epi32(v, _mm256_set1_epi32(factor)); }
static inline floats load_floats(const void *p) { return _mm256_loadu_ps(p); }
static inline floats splat(float value) { return _mm256_set1_ps(value); }
static inline floats times(floats a, floats b) { return _mm256_mul_ps(a, b); }
static inline floats to_floats(bytes words) { return _mm256_cvtepi32_ps(words); }
static inline floats fused(floats a, floats b, floats c) { return _mm256_fmadd_ps(a, b, c); }
static inline float sum_of(floats v) {
    float lanes[8], sum = 0.0f;
    _mm256_storeu_ps(lanes, v);
    for (int i = 0; i < 8; i++) sum += lanes[i];
    return sum;
}
static inline bytes dot(bytes words, bytes codes, bytes x) {
    return _mm256_add_epi32(words, _mm256_madd_epi16(_mm256_maddubs_epi16(codes, x), _mm256_set1_epi16(1)));
}
static inline bytes load_runs(const uint8_t *p, size_t stride) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)p)),
                                   _mm_loadu_si128((const void *)(p + stride)), 1);
}
#endif

/* Bits move within pairs of bytes: what comes from the neighbour is for the caller to mask. */
typedef uint16_t pairs __attribute__((vector_size(WIDE)));
static inline bytes shifted(bytes v, uint32_t right) { return (bytes)((pairs)v >> (uint16_t)right); }
static inline bytes shifted_left(bytes v, uint32_t left) { return (bytes)((pairs)v << (uint16_t)left); }

/* Signed codes: VNNI takes them with an offset, older units by moving their signs to the activations. */
#if HDCPU_LEVEL >= 3
enum { SIGNED_OFFSET = 128 };
static inline bytes dot_signed(bytes words, bytes codes, bytes x) {
    return dot(words, _mm512_xor_si512(codes, all(0x80)), x);
}
#elif HDCPU_LEVEL == 2
enum { SIGNED_OFFSET = 0 };
static inline bytes dot_signed(bytes words, bytes codes, bytes x) {
    const bytes turned = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(codes), _mm512_setzero_si512(), x);
    return dot(words, _mm512_abs_epi8(codes), turned);
}
#else
enum { SIGNED_OFFSET = 0 };
static inline bytes dot_signed(bytes words, bytes codes, bytes x) {
    return dot(words, _mm256_abs_epi8(codes), _mm256_sign_epi8(x, codes));
}
#endif

/* Activations with the signs of numbers, a bit for each; less one more where the bit is set. */
#if HDCPU_LEVEL >= 2
static inline bytes turned_by(bytes x, uint64_t bits) {
    return _mm512_mask_sub_epi8(x, bits, _mm512_setzero_si512(), x);
}
static inline bytes less_by(bytes codes, uint64_t bits, int less) {
    return _mm512_mask_sub_epi8(codes, bits, codes, all(less));
}
static inline bytes look_up(const int8_t numbers[16], bytes codes) {
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const void *)numbers)), codes);
}
#else
static inline bytes turned_by(bytes x, uint64_t bits) {
    const bytes set = hdcpu_bytes_of_bits((uint32_t)bits);
    return _mm256_sub_epi8(_mm256_xor_si256(x, set), set);
}
static inline bytes less_by(bytes codes, uint64_t bits, int less) {
    return _mm256_sub_epi8(codes, _mm256_and_si256(hdcpu_bytes_of_bits((uint32_t)bits), all(less)));
}
static inline bytes look_up(const int8_t numbers[16], bytes codes) {
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)numbers)), codes);
}
#endif

/* ---- rows ----
 * A part of a row is PART / WIDE vectors of activations, in the order of the type's code vectors. Behind each vector
 * (where a block's halves are its bytes' halves: behind each two, whose lanes belong to one block) lie the words its
 * sum begins at and the scales of its lanes. At the end: each 32's scale times the sum of its activations, for types
 * with a min. */

enum { IQ1_OFFSET = 9, MXFP4_OFFSET = 12 };
/* Blocks of 32 whose lower half is the lower halves of 16 bytes. */
static inline bool has_halves(uint32_t type) {
    return type == HDI_TYPE_Q4_0 || type == HDI_TYPE_IQ4_NL || type == HDI_TYPE_IQ4_XS || type == HDI_TYPE_MXFP4;
}

static int offset_of(uint32_t type) {
    switch (type) {
    case HDI_TYPE_Q4_0:  return 8;
    case HDI_TYPE_IQ4_NL:
    case HDI_TYPE_IQ4_XS:
    case HDI_TYPE_Q8_0:  return SIGNED_OFFSET;
    case HDI_TYPE_MXFP4: return MXFP4_OFFSET;
    case HDI_TYPE_Q3_K:  return 4;
    case HDI_TYPE_Q6_K:  return 32;
    case HDI_TYPE_TQ2_0: return 1;
    case HDI_TYPE_IQ1_S:
    case HDI_TYPE_IQ1_M: return IQ1_OFFSET;
    default:             return 0;
    }
}
/* The element, within a part, that run `run` of vector `vector` begins with. */
static uint32_t element_of(uint32_t type, uint32_t vector, uint32_t run) {
    /* code bytes before it */
    const uint32_t pair = (vector / 2 * WIDE + RUN * run), four = vector / 4 * WIDE + RUN * run;
    if (has_halves(type)) return 2 * pair + 16 * (vector & 1);
    switch (type) {
    case HDI_TYPE_Q4_K:
    case HDI_TYPE_Q5_K:  return 64 * (pair / 32) + pair % 32 + 32 * (vector & 1);
    case HDI_TYPE_Q3_K:
    case HDI_TYPE_TQ2_0: return 128 * (four / 32) + four % 32 + 32 * (vector & 3);
    default:             return WIDE * vector + RUN * run;
    }
}

static void round_part(const float *x, int8_t *codes, float *scales, float *sums) {
    for (uint32_t block = 0; block < BLOCKS; block++, x += 32, codes += 32) {
        int32_t sum = 0;
        scales[block] = int8_round(x, codes);
        for (int i = 0; i < 32; i++) sum += codes[i];
        sums[block] = scales[block] * (float)sum;
    }
}

static void lay_out_part(uint32_t type, const int8_t *codes, const float *scales, uint8_t *out) {
    const uint32_t together = has_halves(type) ? 2 : 1;
    for (uint32_t vector = 0; vector < PART / WIDE; vector += together, out += (together + 2) * WIDE) {
        bytes sums = all(0);
        for (uint32_t v = 0; v < together; v++) {
            for (uint32_t run = 0; run < RUNS; run++) {
                const uint32_t element = element_of(type, vector + v, run);
                memcpy(out + v * WIDE + RUN * run, codes + element, RUN);
                for (uint32_t lane = 0; lane < 4; lane++)
                    memcpy(out + (together + 1) * WIDE + RUN * run + 4 * lane, &scales[element / 32], 4);
            }
            sums = dot(sums, all(1), load(out + v * WIDE));
        }
        store(out + together * WIDE, times_words(sums, -offset_of(type)));
    }
}

void hdcpu_int8_row(uint32_t type, const float *x, uint32_t k, void *out_row) {
    uint8_t *part = out_row;
    for (uint32_t at = 0; at < k; at += PART, part += HDCPU_INT8_PART_BYTES) {
        int8_t codes[PART];
        float scales[BLOCKS], padded[PART];
        const float *from = x + at;
        if (k - at < PART) {
            memset(padded, 0, sizeof padded);
            from = memcpy(padded, from, (k - at) * sizeof *x);
        }
        round_part(from, codes, scales, (float *)(void *)(part + 3 * PART));
        lay_out_part(type, codes, scales, part);
    }
}

/* ---- columns ---- */

/* A vector of codes meets each row's vector at `at` of the part; `scale` is of the weights, lane by lane. A row has two
 * sums, whatever rows there are beside it, so that its bits do not hang on them. */
#define MEET(product, which) \
    for (uint32_t r = 0; r < rows; r++) { \
        const uint8_t *x = part + r * row_bytes; \
        const floats both = times(scale, load_floats(x + scale_at)); \
        floats *sum = &sums[r][(which) & 1]; \
        *sum = fused(to_floats(product), both, *sum); \
    }
#define PART_OF static inline __attribute__((always_inline)) void
#define PART_ARGUMENTS                                                                                                 \
    const uint8_t *blocks, const uint8_t *part, uint64_t row_bytes, const uint32_t rows, floats(*sums)[2]

/* RUNS blocks of 32: their scales, each in the lanes of a run; iq4_xs: blocks are parts of one, from `first` on. */
static inline __attribute__((always_inline)) floats scales_of_blocks(const uint32_t type, const uint8_t *blocks,
                                                                     uint32_t first) {
    float own[RUNS];
#if HDCPU_LEVEL >= 2
    if (type == HDI_TYPE_Q4_0 || type == HDI_TYPE_IQ4_NL) return halves_in_quarters(blocks, 0, 9, 18, 27);
#endif
    for (uint32_t i = 0; i < RUNS; i++)
        own[i] = type == HDI_TYPE_MXFP4    ? hdcpu_mxfp4_scale(blocks + 17 * i)
                 : type == HDI_TYPE_IQ4_XS ? hdcpu_f16_at(blocks) * (float)hdcpu_iq4_xs_scale(blocks, first + i)
                                           : hdcpu_f16_at(blocks + 18 * i);
#if HDCPU_LEVEL >= 2
    const __m512i lanes = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    return _mm512_permutexvar_ps(lanes, _mm512_castps128_ps512(_mm_setr_ps(own[0], own[1], own[2], own[3])));
#else
    return _mm256_set_m128(_mm_set1_ps(own[1]), _mm_set1_ps(own[0]));
#endif
}
/* q4_0, iq4_nl, mxfp4 and iq4_xs. */
PART_OF part_halves(const uint32_t type, PART_ARGUMENTS) {
    const uint32_t stride = type == HDI_TYPE_IQ4_XS ? 16 : type == HDI_TYPE_MXFP4 ? 17 : 18;
    const uint8_t *own = blocks + (type == HDI_TYPE_IQ4_XS ? 8 : stride - 16);
    for (uint32_t step = 0; step < PART / WIDE / 2; step++, own += RUNS * stride) {
        const bytes codes = load_runs(own, stride), low = codes & all(15), high = shifted(codes, 4) & all(15);
        const uint32_t at = step * 4 * WIDE, scale_at = at + 3 * WIDE;
        const floats scale =
            scales_of_blocks(type, type == HDI_TYPE_IQ4_XS ? blocks : own + 16 - stride, RUNS * step);
        if (type == HDI_TYPE_IQ4_NL || type == HDI_TYPE_IQ4_XS) {
            const bytes first = look_up(hdcpu_numbers_iq4, low), second = look_up(hdcpu_numbers_iq4, high);
            MEET(dot_signed(dot_signed(load(x + at + 2 * WIDE), first, load(x + at)), second, load(x + at + WIDE)),
                 step)
        } else if (type == HDI_TYPE_MXFP4) {
            const bytes first = add_bytes(look_up(hdcpu_numbers_mxfp4, low), all(MXFP4_OFFSET)),
                        second = add_bytes(look_up(hdcpu_numbers_mxfp4, high), all(MXFP4_OFFSET));
            MEET(dot(dot(load(x + at + 2 * WIDE), first, load(x + at)), second, load(x + at + WIDE)), step)
        } else {
            MEET(dot(dot(load(x + at + 2 * WIDE), low, load(x + at)), high, load(x + at + WIDE)), step)
        }
    }
}
PART_OF part_q8_0(PART_ARGUMENTS) {
    for (uint32_t vector = 0; vector < PART / WIDE; vector++, blocks += WIDE / 32 * 34) {
        const uint32_t at = vector * 3 * WIDE, scale_at = at + 2 * WIDE;
#if HDCPU_LEVEL >= 2
        const bytes codes = load_halves(blocks + 2, blocks + 36);
        const floats scale = halves_in_quarters(blocks, 0, 0, 17, 17);
#else
        const bytes codes = load(blocks + 2);
        const floats scale = splat(hdcpu_f16_at(blocks));
#endif
        MEET(dot_signed(load(x + at + WIDE), codes, load(x + at)), vector)
    }
}
/* 32 bytes moved right by `low`, and at a width of 64 again by `high`. */
static inline bytes shifted_halves(const uint8_t *p, uint32_t low, uint32_t high) {
#if HDCPU_LEVEL >= 2
    const bytes twice = _mm512_broadcast_i64x4(_mm256_loadu_si256((const void *)p));
    return _mm512_srlv_epi32(twice, _mm512_inserti64x4(_mm512_set1_epi32((int)low), _mm256_set1_epi32((int)high), 1));
#else
    (void)high;
    return shifted(load(p), low);
#endif
}
/* q4_k, and q5_k with a fifth bit of each code in 32 bytes before the others. */
PART_OF part_q4_k(PART_ARGUMENTS, const bool five, __m256 *less) {
    __m256 scales, mins;
    hdcpu_q4_k_parts(blocks, &scales, &mins);
    for (uint32_t r = 0; r < rows; r++)
        less[r] = _mm256_fmadd_ps(mins, _mm256_loadu_ps((const void *)(part + r * row_bytes + 3 * PART)), less[r]);
    for (uint32_t vector = 0; vector < PART / WIDE; vector++) {
        const uint32_t at = vector * 3 * WIDE, scale_at = at + 2 * WIDE;
        const uint32_t first = WIDE / 32 * (vector & ~1u) + (vector & 1); /* part of 32, followed by first + 2 */
        bytes codes = shifted(load(blocks + (five ? 48 : 16) + vector / 2 * WIDE), 4 * (vector & 1)) & all(15);
        if (five) codes |= shifted_left(shifted_halves(blocks + 16, first, first + 2) & all(1), 4);
#if HDCPU_LEVEL >= 2
        const __m512i index = _mm512_inserti64x4(_mm512_set1_epi32((int)first), _mm256_set1_epi32((int)first + 2), 1);
        const floats scale = _mm512_permutexvar_ps(index, _mm512_castps256_ps512(scales));
#else
        const floats scale = _mm256_permutevar8x32_ps(scales, _mm256_set1_epi32((int)first));
#endif
        MEET(dot(load(x + at + WIDE), codes, load(x + at)), vector)
    }
}
/* 16 whole scales times the block's own. */
static inline void scale_sixteen(__m128i whole, float d, float *out_scales) {
    for (int i = 0; i < 16; i += LANES) {
#if HDCPU_LEVEL >= 2
        const floats some = to_floats(_mm512_cvtepi8_epi32(whole));
#else
        const floats some = to_floats(_mm256_cvtepi8_epi32(i == 0 ? whole : _mm_srli_si128(whole, 8)));
#endif
        const floats scaled = times(some, splat(d));
        memcpy(out_scales + i, &scaled, sizeof scaled);
    }
}
/* Scales of the runs of 16 at a vector's lanes: two from `low` on, and at a width of 64 two from `high` on. */
static inline floats scales_of_runs(const float *low, const float *high) {
#if HDCPU_LEVEL >= 2
    const __m512i lanes = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    const __m128 four = _mm_loadh_pi(_mm_loadl_pi(_mm_setzero_ps(), (const void *)low), (const void *)high);
    return _mm512_permutexvar_ps(lanes, _mm512_castps128_ps512(four));
#else
    (void)high;
    return _mm256_set_m128(_mm_set1_ps(low[1]), _mm_set1_ps(low[0]));
#endif
}
PART_OF part_q3_k(PART_ARGUMENTS) {
    uint64_t nibbles;
    uint32_t twos;
    memcpy(&nibbles, blocks + 96, sizeof nibbles);
    memcpy(&twos, blocks + 104, sizeof twos);
    const uint64_t high0 = (twos & 0x03030303u) | (uint64_t)(twos >> 2 & 0x03030303u) << 32;
    const uint64_t high1 = (twos >> 4 & 0x03030303u) | (uint64_t)(twos >> 6 & 0x03030303u) << 32;
    const uint64_t low0 = nibbles & 0x0F0F0F0F0F0F0F0Fu, low1 = nibbles >> 4 & 0x0F0F0F0F0F0F0F0Fu;
    const __m128i codes_of_scales = _mm_set_epi64x((long long)(low1 | high1 << 4), (long long)(low0 | high0 << 4));
    float scales[16];
    scale_sixteen(_mm_sub_epi8(codes_of_scales, _mm_set1_epi8(32)), hdcpu_f16_at(blocks + 108), scales);
    for (uint32_t vector = 0; vector < PART / WIDE; vector++) {
        const uint32_t at = vector * 3 * WIDE, scale_at = at + 2 * WIDE;
        const bytes low = shifted(load(blocks + 32 + vector / 4 * WIDE), 2 * (vector & 3)) & all(3);
        const bytes codes = low | shifted_left(shifted_halves(blocks, vector, vector + 4) & all(1), 2);
        const floats scale = scales_of_runs(scales + 2 * vector, scales + 2 * vector + 8);
        MEET(dot(load(x + at + WIDE), codes, load(x + at)), vector)
    }
}
PART_OF part_q6_k(PART_ARGUMENTS) {
    float scales[16];
    scale_sixteen(_mm_loadu_si128((const void *)(blocks + 192)), hdcpu_f16_at(blocks + 208), scales);
    for (uint32_t vector = 0; vector < PART / WIDE; vector++) {
        const uint32_t at = vector * 3 * WIDE, scale_at = at + 2 * WIDE;
        /* the first of WIDE / 32 groups */
        const uint32_t half = vector / (128 / WIDE), group = vector * (WIDE / 32) & 3;
        const bytes low =
            shifted(load(blocks + 64 * half + (WIDE == 32 ? 32 * (group & 1) : 0)), 4 * (group >> 1)) & all(15);
        const bytes codes =
            low | shifted_left(shifted_halves(blocks + 128 + 32 * half, 2 * group, 2 * group + 2) & all(3), 4);
        const floats scale = scales_of_runs(scales + WIDE / 16 * vector, scales + WIDE / 16 * vector + 2);
        MEET(dot(load(x + at + WIDE), codes, load(x + at)), vector)
    }
}
PART_OF part_tq2_0(PART_ARGUMENTS) {
    const floats scale = splat(hdcpu_f16_at(blocks + 64));
    for (uint32_t vector = 0; vector < PART / WIDE; vector++) {
        const uint32_t at = vector * 3 * WIDE, scale_at = at + 2 * WIDE;
        const bytes codes = shifted(load(blocks + vector / 4 * WIDE), 2 * (vector & 3)) & all(3);
        MEET(dot(load(x + at + WIDE), codes, load(x + at)), vector)
    }
}
PART_OF part_book(const uint32_t type, PART_ARGUMENTS) {
    hdcpu_book_block book;
    hdcpu_book_read(type, blocks, &book);
#if HDCPU_LEVEL >= 2
    const __m512i lanes = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    const floats scales = times(to_floats(_mm512_cvtepi8_epi32(book.scales)), splat(hdcpu_book_d(type, blocks)));
#else
    float scales[PART / RUN];
    scale_sixteen(book.scales, hdcpu_book_d(type, blocks), scales);
#endif
    for (uint32_t vector = 0; vector < PART / WIDE; vector++) {
        const uint32_t at = vector * 3 * WIDE, scale_at = at + 2 * WIDE;
#if HDCPU_LEVEL >= 2
        const floats scale = _mm512_permutexvar_ps(_mm512_add_epi32(lanes, _mm512_set1_epi32(4 * (int)vector)), scales);
        const uint64_t bits = book.bits[vector];
        const bytes numbers = hdcpu_book_64(type, blocks, &book, vector);
#else
        const floats scale = scales_of_runs(scales + RUNS * vector, NULL);
        const uint64_t bits = book.bits[vector / 2] >> vector % 2 * 32;
        const bytes numbers = hdcpu_book_32(type, blocks, &book, vector);
#endif
        if (hdcpu_book_has_signs(type)) {
            MEET(dot(load(x + at + WIDE), numbers, turned_by(load(x + at), bits)), vector)
        } else { /* 128 and IQ1_OFFSET greater than as weights, then one of them more */
            const bytes codes = less_by(add_bytes(numbers, all(IQ1_OFFSET - 135)), bits, 2);
            MEET(dot(load(x + at + WIDE), codes, load(x + at)), vector)
        }
    }
}

PART_OF one_part(uint32_t type, PART_ARGUMENTS, __m256 *less) {
    switch (type) {
    case HDI_TYPE_Q4_0: case HDI_TYPE_IQ4_NL: case HDI_TYPE_IQ4_XS: case HDI_TYPE_MXFP4:
        part_halves(type, blocks, part, row_bytes, rows, sums);
        break;
    case HDI_TYPE_Q8_0: part_q8_0(blocks, part, row_bytes, rows, sums); break;
    case HDI_TYPE_Q4_K: part_q4_k(blocks, part, row_bytes, rows, sums, false, less); break;
    case HDI_TYPE_Q5_K: part_q4_k(blocks, part, row_bytes, rows, sums, true, less); break;
    case HDI_TYPE_Q3_K: part_q3_k(blocks, part, row_bytes, rows, sums); break;
    case HDI_TYPE_Q6_K: part_q6_k(blocks, part, row_bytes, rows, sums); break;
    case HDI_TYPE_TQ2_0: part_tq2_0(blocks, part, row_bytes, rows, sums); break;
    default:            part_book(type, blocks, part, row_bytes, rows, sums); break;
    }
}

/* Type and rows are known when this is compiled. Where columns do not come out even, the last one is computed again. */
PART_OF columns_of(const uint32_t type, const uint32_t rows, const hdcpu_int8_product *p) {
    const uint32_t places = hdcpu_places(rows), apart = (p->count + places - 1) / places, k = p->k;
    const uint32_t part_bytes = PART / hdcpu_block_elements(type) * hdcpu_block_bytes(type), whole = k / PART;
    const uint64_t row_bytes = hdcpu_int8_row_bytes(k);
    uint8_t rest[PART / 32 * 34] = { 0 }; /* what is over, followed by blocks with a scale of 0 */
    for (uint32_t j = 0; j < apart; j++) {
        floats sums[HDCPU_PLACES][HDCPU_ROWS_AT_ONCE][2];
        __m256 less[HDCPU_PLACES][HDCPU_ROWS_AT_ONCE];
        uint32_t at[HDCPU_PLACES];
        for (uint32_t place = 0; place < places; place++) {
            at[place] = HDI_MIN(j + place * apart, p->count - 1);
            for (uint32_t r = 0; r < rows; r++) {
                sums[place][r][0] = sums[place][r][1] = splat(0);
                less[place][r] = _mm256_setzero_ps();
            }
        }
        for (uint32_t i = 0; i < whole; i++)
            _Pragma("GCC unroll 4") for (uint32_t place = 0; place < places; place++) {
                const uint8_t *blocks = p->columns + at[place] * p->column_bytes + i * part_bytes;
                hdcpu_look_ahead(blocks, part_bytes, HDCPU_AHEAD_BYTES / places, false);
                one_part(type, blocks, p->x + i * HDCPU_INT8_PART_BYTES, row_bytes, rows, sums[place], less[place]);
            }
        if (k % PART != 0)
            for (uint32_t place = 0; place < places; place++) {
                memcpy(rest, p->columns + at[place] * p->column_bytes + whole * part_bytes,
                       k % PART / hdcpu_block_elements(type) * hdcpu_block_bytes(type));
                one_part(type, rest, p->x + whole * HDCPU_INT8_PART_BYTES, row_bytes, rows, sums[place], less[place]);
            }
        for (uint32_t place = 0; place < places; place++)
            for (uint32_t r = 0; r < rows; r++) {
                float sum = sum_of(sums[place][r][0] + sums[place][r][1]);
                if (type == HDI_TYPE_Q4_K || type == HDI_TYPE_Q5_K)
                    for (int lane = 0; lane < 8; lane++) sum -= less[place][r][lane];
                p->out[r * p->out_stride + at[place]] = sum;
            }
    }
}

#define COLUMNS(type, rows) case type * 16 + rows: columns_of(type, rows, product); break;
#define COLUMNS_OF_TYPE(type) COLUMNS(type, 1) COLUMNS(type, 2) COLUMNS(type, 4)
static void columns_of_rows(const hdcpu_int8_product *product) {
    switch (product->type * 16 + product->rows) {
    COLUMNS_OF_TYPE(HDI_TYPE_Q4_0)
    COLUMNS_OF_TYPE(HDI_TYPE_Q8_0)
    COLUMNS_OF_TYPE(HDI_TYPE_Q3_K)
    COLUMNS_OF_TYPE(HDI_TYPE_Q4_K)
    COLUMNS_OF_TYPE(HDI_TYPE_Q5_K)
    COLUMNS_OF_TYPE(HDI_TYPE_Q6_K)
    COLUMNS_OF_TYPE(HDI_TYPE_TQ2_0)
    COLUMNS_OF_TYPE(HDI_TYPE_IQ4_NL)
    COLUMNS_OF_TYPE(HDI_TYPE_IQ4_XS)
    COLUMNS_OF_TYPE(HDI_TYPE_MXFP4)
    COLUMNS_OF_TYPE(HDI_TYPE_IQ2_XXS)
    COLUMNS_OF_TYPE(HDI_TYPE_IQ2_XS)
    COLUMNS_OF_TYPE(HDI_TYPE_IQ2_S)
    COLUMNS_OF_TYPE(HDI_TYPE_IQ3_XXS)
    COLUMNS_OF_TYPE(HDI_TYPE_IQ3_S)
    COLUMNS_OF_TYPE(HDI_TYPE_IQ1_S)
    COLUMNS_OF_TYPE(HDI_TYPE_IQ1_M)
    default: break;
    }
}

void hdcpu_int8_columns(const hdcpu_int8_product *product) {
    hdcpu_int8_product some = *product;
    for (uint32_t r = 0; r < product->rows; r += HDCPU_ROWS_AT_ONCE) {
        some.rows = HDI_MIN(product->rows - r, (uint32_t)HDCPU_ROWS_AT_ONCE);
        some.x = (const uint8_t *)product->x + r * hdcpu_int8_row_bytes(product->k);
        some.out = product->out + r * product->out_stride;
        columns_of_rows(&some);
    }
}

bool hdcpu_int8_takes(uint32_t type) {
    return (type >= HDI_TYPE_Q4_0 && type <= HDI_TYPE_TQ2_0) || type == HDI_TYPE_Q3_K || type == HDI_TYPE_Q5_K ||
           has_halves(type) || HDI_HAS_BOOK(type);
}
#else
typedef int hdcpu_no_dot_int8; /* the portable level has no such vectors: ISO C wants a declaration */
#endif
