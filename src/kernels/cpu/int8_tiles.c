/* int8_tiles.c: the instruction sets of each level for int8_tile.inc. A level that has a set with dot products of 8-bit
 * integers compiles that one beside its own, and a processor that has them takes it. */
#include "kernels/cpu/int8_tiles.h"
#include "kernels/cpu/quant.h"
#if defined(__aarch64__)
#  include <arm_neon.h>
#endif

#if HDCPU_LEVEL >= 2

typedef __m512i ints;
typedef __m512  floats;
enum { LANES = 16, VECTORS = 2, COLUMNS = 6 };
#define MOST_VECTORS 2
static inline ints load_ints(const void *p) { return _mm512_loadu_si512(p); }
static inline ints no_ints(void) { return _mm512_setzero_si512(); }
static inline ints repeat_word(const void *p) {
    int32_t word;
    memcpy(&word, p, sizeof word);
    return _mm512_set1_epi32(word);
}
static inline floats load_floats(const void *p) { return _mm512_loadu_ps(p); }
static inline void store_floats_at(float *p, floats v) { _mm512_storeu_ps(p, v); }
static inline floats repeat(float value) { return _mm512_set1_ps(value); }
static inline floats to_floats(ints v) { return _mm512_cvtepi32_ps(v); }
static inline floats times(floats a, floats b) { return _mm512_mul_ps(a, b); }
static inline floats add_product(floats a, floats b, floats sum) { return _mm512_fmadd_ps(a, b, sum); }
static inline floats take_product(floats a, floats b, floats sum) { return _mm512_fnmadd_ps(a, b, sum); }
static inline ints add_words(ints a, ints b) { return _mm512_add_epi32(a, b); }
static inline ints times_words(ints a, ints b) { return _mm512_mullo_epi32(a, b); }
static inline ints join_pairs(ints a, ints b) { return _mm512_madd_epi16(a, b); }

#if HDCPU_LEVEL == 2
static inline ints multiply_pairs(ints codes, ints x) { return _mm512_maddubs_epi16(codes, x); }
static inline ints add_halves(ints a, ints b) { return _mm512_add_epi16(a, b); }
#define NAME(x) x##_avx512
#define TARGET
#define HALVES 1
#define PAIRS
#include "kernels/cpu/int8_tile.inc"
#undef NAME
#undef TARGET
#undef HALVES
#undef PAIRS
static const int8_tiles avx512 = { "avx512", LANES, VECTORS, COLUMNS, true, false, sum_avx512, exact_avx512 };
#endif

#define NAME(x) x##_vnni
#define TARGET __attribute__((target("avx512vnni")))
#define HALVES 0
#define PRODUCT _mm512_dpbusd_epi32
#include "kernels/cpu/int8_tile.inc"
static const int8_tiles vnni = { "avx512vnni", LANES, VECTORS, COLUMNS, false, false, sum_vnni, exact_vnni };

#elif HDCPU_LEVEL == 1

typedef __m256i ints;
typedef __m256  floats;
enum { LANES = 8, VECTORS = 2, COLUMNS = 4 };
#define MOST_VECTORS 2
static inline ints load_ints(const void *p) { return _mm256_loadu_si256(p); }
static inline ints no_ints(void) { return _mm256_setzero_si256(); }
static inline ints repeat_word(const void *p) {
    int32_t word;
    memcpy(&word, p, sizeof word);
    return _mm256_set1_epi32(word);
}
static inline floats load_floats(const void *p) { return _mm256_loadu_ps(p); }
static inline void store_floats_at(float *p, floats v) { _mm256_storeu_ps(p, v); }
static inline floats repeat(float value) { return _mm256_set1_ps(value); }
static inline floats to_floats(ints v) { return _mm256_cvtepi32_ps(v); }
static inline floats times(floats a, floats b) { return _mm256_mul_ps(a, b); }
static inline floats add_product(floats a, floats b, floats sum) { return _mm256_fmadd_ps(a, b, sum); }
static inline floats take_product(floats a, floats b, floats sum) { return _mm256_fnmadd_ps(a, b, sum); }
static inline ints multiply_pairs(ints codes, ints x) { return _mm256_maddubs_epi16(codes, x); }
static inline ints add_halves(ints a, ints b) { return _mm256_add_epi16(a, b); }
static inline ints add_words(ints a, ints b) { return _mm256_add_epi32(a, b); }
static inline ints times_words(ints a, ints b) { return _mm256_mullo_epi32(a, b); }
static inline ints join_pairs(ints a, ints b) { return _mm256_madd_epi16(a, b); }
#define NAME(x) x##_avx2
#define TARGET
#define HALVES 1
#define PAIRS
#include "kernels/cpu/int8_tile.inc"
#undef NAME
#undef TARGET
#undef HALVES
#undef PAIRS
static const int8_tiles avx2 = { "avx2", LANES, VECTORS, COLUMNS, true, false, sum_avx2, exact_avx2 };

#define NAME(x) x##_avxvnni
#define TARGET __attribute__((target("avxvnni")))
#define HALVES 0
#define PRODUCT _mm256_dpbusd_avx_epi32
#include "kernels/cpu/int8_tile.inc"
static const int8_tiles avxvnni = { "avxvnni", LANES, VECTORS, COLUMNS, false, false, sum_avxvnni, exact_avxvnni };

#else

typedef int32_t ints __attribute__((vector_size(16)));
typedef float   floats __attribute__((vector_size(16)));
enum { LANES = 4, VECTORS = 4, COLUMNS = 4 };
#define MOST_VECTORS 4
static inline ints load_ints(const void *p) {
    ints v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline ints no_ints(void) { return (ints){ 0 }; }
static inline ints repeat_word(const void *p) {
    int32_t word;
    memcpy(&word, p, sizeof word);
    return word - (ints){ 0 };
}
static inline floats load_floats(const void *p) { return (floats)load_ints(p); }
static inline void store_floats_at(float *p, floats v) { memcpy(p, &v, sizeof v); }
static inline floats repeat(float value) { return value - (floats){ 0 }; }
static inline floats to_floats(ints v) { return __builtin_convertvector(v, floats); }
static inline floats times(floats a, floats b) { return a * b; }
static inline floats add_product(floats a, floats b, floats sum) { return a * b + sum; }
static inline floats take_product(floats a, floats b, floats sum) { return sum - a * b; }
static inline ints add_words(ints a, ints b) { return a + b; }
static inline ints times_words(ints a, ints b) { return a * b; }
/* Whole numbers of 16 bits, two in a word. */
static inline ints join_pairs(ints a, ints b) { return (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16); }
static inline ints product(ints sum, ints codes, ints x) {
    typedef int8_t signed_bytes __attribute__((vector_size(16)));
    const signed_bytes a = (signed_bytes)codes, b = (signed_bytes)x;
    for (int lane = 0; lane < 4; lane++)
        sum[lane] += a[4 * lane] * b[4 * lane] + a[4 * lane + 1] * b[4 * lane + 1] + a[4 * lane + 2] * b[4 * lane + 2] +
                     a[4 * lane + 3] * b[4 * lane + 3];
    return sum;
}
#define NAME(x) x##_portable
#define TARGET
#define HALVES 0
#define PRODUCT product
#include "kernels/cpu/int8_tile.inc"
#undef NAME
#undef TARGET
#undef HALVES
#undef PRODUCT
static const int8_tiles portable = { "portable", LANES, VECTORS, COLUMNS, false, true, sum_portable, exact_portable };

#if defined(__aarch64__)
#define NAME(x) x##_dotprod
#define TARGET __attribute__((target("arch=armv8.2-a+dotprod")))
#define HALVES 0
#define PRODUCT(sum, codes, x) (ints)vdotq_s32((int32x4_t)(sum), (int8x16_t)(codes), (int8x16_t)(x))
#include "kernels/cpu/int8_tile.inc"
static const int8_tiles dotprod = { "dotprod", LANES, VECTORS, COLUMNS, false, true, sum_dotprod, exact_dotprod };
#endif
#endif

const int8_tiles *int8_tiles_at(uint32_t index) {
    const int8_tiles *sets[2] = { NULL };
    uint32_t count = 0;
#if HDCPU_LEVEL >= 2
    if (HDCPU_LEVEL == 3 || hdi_set_permitted(HDI_SET_AVX512VNNI)) sets[count++] = &vnni;
#  if HDCPU_LEVEL == 2
    sets[count++] = &avx512;
#  endif
#elif HDCPU_LEVEL == 1
    if (hdi_set_permitted(HDI_SET_AVXVNNI)) sets[count++] = &avxvnni;
    sets[count++] = &avx2;
#else
#  if defined(__aarch64__)
    if (hdi_set_permitted(HDI_SET_DOTPROD)) sets[count++] = &dotprod;
#  endif
    sets[count++] = &portable;
#endif
    return index < count ? sets[index] : NULL;
}
