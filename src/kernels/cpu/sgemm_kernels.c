/* sgemm_kernels.c: the register tiles, transposes and conversions of the matrix product, for AVX-512, AVX2 and any
 * vector unit that the compiler's own vectors reach (SSE2, NEON). Every function names the instructions it needs in its
 * own attribute, so the file is compiled without flags; hdcpu_sgemm_kernels_at picks what the machine has.
 * sgemm_tile.inc holds what the sets have in common. */
#include "kernels/cpu/sgemm_kernels.h"
#include "kernels/kernel.h"

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define REPEAT1(F)  F(0)
#define REPEAT2(F)  REPEAT1(F) F(1)
#define REPEAT3(F)  REPEAT2(F) F(2)
#define REPEAT4(F)  REPEAT3(F) F(3)
#define REPEAT5(F)  REPEAT4(F) F(4)
#define REPEAT6(F)  REPEAT5(F) F(5)
#define REPEAT7(F)  REPEAT6(F) F(6)
#define REPEAT8(F)  REPEAT7(F) F(7)
#define REPEAT9(F)  REPEAT8(F) F(8)
#define REPEAT10(F) REPEAT9(F) F(9)
#define REPEAT11(F) REPEAT10(F) F(10)
#define REPEAT12(F) REPEAT11(F) F(11)
#define REPEAT13(F) REPEAT12(F) F(12)
#define REPEAT14(F) REPEAT13(F) F(13)

/* ------------------------------------------------------------------------------------------------- any machine */

typedef float vector4 __attribute__((vector_size(16)));

static inline vector4 load4(const float *p) {
    vector4 v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void store4(float *p, vector4 v) {
    memcpy(p, &v, sizeof v);
}

static void transpose_scalar(const float *in, int64_t line_stride, int64_t lines, int64_t depth, int64_t width,
                             float *out) {
    for (int64_t d = 0; d < depth; d++)
        for (int64_t line = 0; line < lines; line++)
            out[d * width + line] = in[line * line_stride + d];
}

/* Four lines and four values of depth at a time. The last group of lines steps back to overlap the one before. */
static void transpose4(const float *in, int64_t line_stride, int64_t lines, int64_t depth, int64_t width, float *out) {
    int64_t whole = lines < 4 ? 0 : depth / 4 * 4;
    for (int64_t done = 0; whole > 0 && done < lines; done += 4) {
        int64_t      line = done + 4 <= lines ? done : lines - 4;
        const float *from = in + line * line_stride;
        for (int64_t d = 0; d < whole; d += 4) {
            vector4 r0 = load4(from + d), r1 = load4(from + line_stride + d);
            vector4 r2 = load4(from + 2 * line_stride + d), r3 = load4(from + 3 * line_stride + d);
            vector4 p0 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5), p1 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
            vector4 q0 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5), q1 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
            float  *to = out + d * width + line;
            store4(to, __builtin_shufflevector(p0, q0, 0, 1, 4, 5));
            store4(to + width, __builtin_shufflevector(p0, q0, 2, 3, 6, 7));
            store4(to + 2 * width, __builtin_shufflevector(p1, q1, 0, 1, 4, 5));
            store4(to + 3 * width, __builtin_shufflevector(p1, q1, 2, 3, 6, 7));
        }
    }
    transpose_scalar(in + whole, line_stride, lines, depth - whole, width, out + whole * width);
}

static float f16_value(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, rest = half & 0x7fffu, bits;
    float    value;
    if (rest >= 0x7c00u) { /* infinities keep, NaNs become quiet */
        bits = sign | 0x7f800000u | (rest & 0x3ffu) << 13 | (rest > 0x7c00u ? 0x400000u : 0u);
    } else if (rest >= 0x400u) {
        bits = sign | ((rest << 13) + 0x38000000u);
    } else { /* a subnormal is an integer times 2^-24, exactly */
        value = (float)rest * 0x1p-24f;
        memcpy(&bits, &value, sizeof bits);
        bits |= sign;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void f16_scalar(const uint16_t *in, int64_t count, float *out) {
    for (int64_t i = 0; i < count; i++)
        out[i] = f16_value(in[i]);
}

static void bf16_scalar(const uint16_t *in, int64_t count, float *out) {
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)in[i] << 16;
        memcpy(out + i, &bits, sizeof bits);
    }
}

#define SET(name)     name##_portable
#define SET_NAME      "portable"
#define TARGET
#define VECTOR        vector4
#define WIDTH         4
#define LOAD(p)       load4(p)
#define STORE(p, v)   store4(p, v)
#define SPLAT(x)      ((vector4){ (x), (x), (x), (x) })
#define ADD(x, y)     ((x) + (y))
#if defined(__aarch64__)
#define FMA(x, y, z)  ((vector4)vfmaq_f32((float32x4_t)(z), (float32x4_t)(x), (float32x4_t)(y)))
#define FMA1(x, y, z) __builtin_fmaf(x, y, z)
#else
#define FMA(x, y, z)  ((x) * (y) + (z))
#define FMA1(x, y, z) ((x) * (y) + (z))
#endif
#define SUM(v)        (((v)[0] + (v)[1]) + ((v)[2] + (v)[3]))
#define ROWS          6
#define K_BLOCK       256
#define M_BLOCK       96
#define TRANSPOSE     transpose4
#define FROM_F16      f16_scalar
#define FROM_BF16     bf16_scalar
#include "kernels/cpu/sgemm_tile.inc"

/* --------------------------------------------------------------------------------------------------------- x86-64 */

#if defined(__x86_64__)

#define AVX2   __attribute__((target("avx2,fma,f16c")))
#define AVX512 __attribute__((target("avx512f,avx2,fma,f16c")))

/* Eight lines by eight values of depth, in registers. */
AVX2 static inline void transpose_8x8(const float *in, int64_t line_stride, int64_t width, float *out) {
    __m256 r[8], s[8];
    for (int i = 0; i < 4; i++) { /* halves of lines i and i + 4 side by side */
        const float *low = in + i * line_stride, *high = low + 4 * line_stride;
        r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
        r[i + 4] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low + 4)), _mm_loadu_ps(high + 4), 1);
    }
    for (int i = 0; i < 8; i += 4) {
        s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
        s[i + 2] = _mm256_unpacklo_ps(r[i + 2], r[i + 3]);
        s[i + 3] = _mm256_unpackhi_ps(r[i + 2], r[i + 3]);
    }
    for (int i = 0; i < 8; i += 4) {
        float *to = out + i * width;
        _mm256_storeu_ps(to, _mm256_shuffle_ps(s[i], s[i + 2], 0x44));
        _mm256_storeu_ps(to + width, _mm256_shuffle_ps(s[i], s[i + 2], 0xee));
        _mm256_storeu_ps(to + 2 * width, _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44));
        _mm256_storeu_ps(to + 3 * width, _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xee));
    }
}

/* As transpose4, by eights: the last group of lines overlaps the one before. */
AVX2 static void transpose8(const float *in, int64_t line_stride, int64_t lines, int64_t depth, int64_t width,
                            float *out) {
    if (lines < 8) {
        transpose4(in, line_stride, lines, depth, width, out);
        return;
    }
    int64_t whole = depth / 8 * 8;
    for (int64_t block = 0; block < whole; block += RUN_DEPTH) /* what it writes stays in the L1 cache */
        for (int64_t done = 0; done < lines; done += 8) {
            int64_t line = done + 8 <= lines ? done : lines - 8;
            for (int64_t d = block; d < whole && d < block + RUN_DEPTH; d += 8)
                transpose_8x8(in + line * line_stride + d, line_stride, width, out + d * width + line);
        }
    transpose_scalar(in + whole, line_stride, lines, depth - whole, width, out + whole * width);
}

AVX2 static void f16_avx2(const uint16_t *in, int64_t count, float *out) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(in + i))));
    f16_scalar(in + i, count - i, out + i);
}

AVX2 static void bf16_avx2(const uint16_t *in, int64_t count, float *out) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(in + i)));
        _mm256_storeu_ps(out + i, _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16)));
    }
    bf16_scalar(in + i, count - i, out + i);
}

AVX2 static inline float sum_avx2(__m256 v) {
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}

#define SET(name)     name##_avx2
#define SET_NAME      "avx2"
#define TARGET        AVX2
#define VECTOR        __m256
#define WIDTH         8
#define LOAD(p)       _mm256_loadu_ps(p)
#define STORE(p, v)   _mm256_storeu_ps(p, v)
#define SPLAT(x)      _mm256_set1_ps(x)
#define ADD(x, y)     _mm256_add_ps(x, y)
#define FMA(x, y, z)  _mm256_fmadd_ps(x, y, z)
#define FMA1(x, y, z) __builtin_fmaf(x, y, z)
#define SUM(v)        sum_avx2(v)
#define ROWS          6
#define K_BLOCK       512
#define M_BLOCK       96
#define TRANSPOSE     transpose8
#define FROM_F16      f16_avx2
#define FROM_BF16     bf16_avx2
#include "kernels/cpu/sgemm_tile.inc"

#define SET(name)     name##_avx512
#define SET_NAME      "avx512"
#define TARGET        AVX512
#define VECTOR        __m512
#define WIDTH         16
#define LOAD(p)       _mm512_loadu_ps(p)
#define STORE(p, v)   _mm512_storeu_ps(p, v)
#define SPLAT(x)      _mm512_set1_ps(x)
#define ADD(x, y)     _mm512_add_ps(x, y)
#define FMA(x, y, z)  _mm512_fmadd_ps(x, y, z)
#define FMA1(x, y, z) __builtin_fmaf(x, y, z)
#define SUM(v)        _mm512_reduce_add_ps(v)
#define ROWS          14
#define K_BLOCK       512
#define M_BLOCK       168
#define TRANSPOSE     transpose8
#define FROM_F16      f16_avx2
#define FROM_BF16     bf16_avx2
#include "kernels/cpu/sgemm_tile.inc"

#endif

const hdcpu_sgemm_kernels *hdcpu_sgemm_kernels_at(uint32_t index) {
#if defined(__x86_64__)
    const hdcpu_sgemm_kernels *const sets[] = { &hdcpu_sgemm_avx512, &hdcpu_sgemm_avx2, &hdcpu_sgemm_portable };
    index += 2 - HDI_MIN(hdcpu_level(), 2u);
#else
    const hdcpu_sgemm_kernels *const sets[] = { &hdcpu_sgemm_portable };
#endif
    return index < sizeof sets / sizeof *sets ? sets[index] : NULL;
}

const char *hdcpu_sgemm_kernels_name(const hdcpu_sgemm_kernels *kernels) {
    return kernels->name;
}
