// cuda_on_host.h: what CUDA C++ and HIP C++ bring along, for the host's C++ compiler: a text of __global__ functions that
// follows this prelude becomes a shared object which the stand-in's driver runs thread by thread (block.c). No other header is
// needed, which keeps compiling short.
#include "kernel_abi.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define alignas(bytes) __attribute__((aligned(bytes)))
#define __constant__ static const
// Of one worker, which runs one block at a time.
#define __shared__ static thread_local

// ---- where a thread is ----

static thread_local standin_place *standin_now;
#define threadIdx (standin_now->thread)
#define blockIdx (standin_now->block)
#define blockDim (standin_now->block_size)
#define gridDim (standin_now->grid_size)
enum { warpSize = STANDIN_WARP };

// ---- waiting for others ----

// Present in the object only where a kernel uses them, which tells the driver that threads wait for each other.
extern "C" {
__attribute__((noinline, visibility("default"))) inline void standin_uses_barrier() { standin_now->barrier(); }
__attribute__((noinline, visibility("default"))) inline const standin_meeting *standin_uses_warp(unsigned long long value) {
    return standin_now->meet(value, __builtin_return_address(0));
}
}

#define STANDIN_INLINE static inline __attribute__((always_inline))
STANDIN_INLINE void __syncthreads() { standin_uses_barrier(); }
STANDIN_INLINE void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
STANDIN_INLINE void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

// ---- bits ----

template <class To, class From> STANDIN_INLINE To standin_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "bits of another size");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}
STANDIN_INLINE float __uint_as_float(unsigned x) { return standin_bits<float>(x); }
STANDIN_INLINE float __int_as_float(int x) { return standin_bits<float>(x); }
STANDIN_INLINE unsigned __float_as_uint(float x) { return standin_bits<unsigned>(x); }
STANDIN_INLINE int __float_as_int(float x) { return standin_bits<int>(x); }
STANDIN_INLINE double __longlong_as_double(long long x) { return standin_bits<double>(x); }
STANDIN_INLINE long long __double_as_longlong(double x) { return standin_bits<long long>(x); }
STANDIN_INLINE int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
STANDIN_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
STANDIN_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
STANDIN_INLINE int __ffs(int x) { return __builtin_ffs(x); }
STANDIN_INLINE int __ffsll(unsigned long long x) { return __builtin_ffsll((long long)x); }
STANDIN_INLINE unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
STANDIN_INLINE int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
STANDIN_INLINE int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 32; i += 8) c += (signed char)(a >> i) * (signed char)(b >> i);
    return c;
}
STANDIN_INLINE unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (int i = 0; i < 32; i += 8) c += (a >> i & 255u) * (b >> i & 255u);
    return c;
}

// ---- a warp ----

template <class T> STANDIN_INLINE unsigned long long standin_word(T x) {
    unsigned long long word = 0;
    static_assert(sizeof x <= sizeof word, "lanes exchange up to 64 bits");
    __builtin_memcpy(&word, &x, sizeof x);
    return word;
}
template <class T> STANDIN_INLINE T standin_of_word(unsigned long long word) {
    T x;
    __builtin_memcpy(&x, &word, sizeof x);
    return x;
}
// The lanes that came; read as a number it asks who came, as a mask it stands for whoever comes.
struct standin_active {
    inline __attribute__((always_inline)) operator unsigned() const { return standin_uses_warp(0)->active; }
};
STANDIN_INLINE standin_active __activemask() { return {}; }

STANDIN_INLINE void standin_check(unsigned mask, unsigned active) {
    if (mask != active) standin_now->fault("the mask of a warp's function does not name the lanes that take part");
}
STANDIN_INLINE void standin_check(standin_active, unsigned) {}

// What a lane holds that did not come is not defined: neither is this.
template <class T> STANDIN_INLINE T standin_of_lane(const standin_meeting *met, unsigned lane) {
    return standin_of_word<T>(met->active >> lane & 1u ? met->values[lane] : 0xDEADBEEFDEADBEEFull);
}
template <class M, class T> STANDIN_INLINE T standin_read(M mask, T x, unsigned lane) {
    const standin_meeting *met = standin_uses_warp(standin_word(x));
    standin_check(mask, met->active);
    return standin_of_lane<T>(met, lane & 31u);
}
template <class M, class T> STANDIN_INLINE T __shfl_sync(M mask, T x, int lane, int width = 32) {
    unsigned first = standin_now->lane & ~(unsigned)(width - 1);
    return standin_read(mask, x, first + ((unsigned)lane & (unsigned)(width - 1)));
}
template <class M, class T> STANDIN_INLINE T __shfl_xor_sync(M mask, T x, int by, int width = 32) {
    unsigned lane = standin_now->lane, from = lane ^ (unsigned)by, last = lane | (unsigned)(width - 1);
    return standin_read(mask, x, from > last ? lane : from);
}
template <class M, class T> STANDIN_INLINE T __shfl_up_sync(M mask, T x, unsigned by, int width = 32) {
    unsigned lane = standin_now->lane, first = lane & ~(unsigned)(width - 1);
    return standin_read(mask, x, lane - first >= by ? lane - by : lane);
}
template <class M, class T> STANDIN_INLINE T __shfl_down_sync(M mask, T x, unsigned by, int width = 32) {
    unsigned lane = standin_now->lane, last = lane | (unsigned)(width - 1);
    return standin_read(mask, x, lane + by <= last ? lane + by : lane);
}
template <class M> STANDIN_INLINE unsigned __ballot_sync(M mask, int x) {
    const standin_meeting *met = standin_uses_warp(x != 0);
    standin_check(mask, met->active);
    unsigned votes = 0;
    for (unsigned i = 0; i < 32; i++) votes |= (met->active >> i & 1u && met->values[i] ? 1u : 0u) << i;
    return votes;
}
template <class M> STANDIN_INLINE int __any_sync(M mask, int x) { return __ballot_sync(mask, x) != 0; }
template <class M> STANDIN_INLINE int __all_sync(M mask, int x) { return __ballot_sync(mask, !x) == 0; }
STANDIN_INLINE void __syncwarp() { standin_uses_warp(0); }
STANDIN_INLINE void __syncwarp(unsigned mask) { standin_check(mask, standin_uses_warp(0)->active); }
// HIP's names, which name no lanes.
template <class T> STANDIN_INLINE T __shfl(T x, int lane) { return __shfl_sync(__activemask(), x, lane); }
STANDIN_INLINE unsigned long long __ballot(int x) { return __ballot_sync(__activemask(), x); }
STANDIN_INLINE void __builtin_amdgcn_wave_barrier() { __syncwarp(); }

// ---- atomic operations ----

template <class T> STANDIN_INLINE T atomicExch(T *p, T x) { return __atomic_exchange_n(p, x, __ATOMIC_SEQ_CST); }
template <class T> STANDIN_INLINE T atomicAdd(T *p, T x) { return __atomic_fetch_add(p, x, __ATOMIC_SEQ_CST); }
template <class T> STANDIN_INLINE T atomicSub(T *p, T x) { return __atomic_fetch_sub(p, x, __ATOMIC_SEQ_CST); }
template <class T> STANDIN_INLINE T atomicAnd(T *p, T x) { return __atomic_fetch_and(p, x, __ATOMIC_SEQ_CST); }
template <class T> STANDIN_INLINE T atomicOr(T *p, T x) { return __atomic_fetch_or(p, x, __ATOMIC_SEQ_CST); }
template <class T> STANDIN_INLINE T atomicXor(T *p, T x) { return __atomic_fetch_xor(p, x, __ATOMIC_SEQ_CST); }
template <class T> STANDIN_INLINE T atomicCAS(T *p, T was, T x) {
    __atomic_compare_exchange_n(p, &was, x, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return was;
}
template <class T> STANDIN_INLINE T atomicMin(T *p, T x) {
    T was = *(volatile T *)p;
    while (x < was && !__atomic_compare_exchange_n(p, &was, x, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {}
    return was;
}
template <class T> STANDIN_INLINE T atomicMax(T *p, T x) {
    T was = *(volatile T *)p;
    while (x > was && !__atomic_compare_exchange_n(p, &was, x, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {}
    return was;
}
STANDIN_INLINE float atomicAdd(float *p, float x) {
    unsigned *words = (unsigned *)p, was = *(volatile unsigned *)words;
    while (!__atomic_compare_exchange_n(words, &was, __float_as_uint(__uint_as_float(was) + x), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {}
    return __uint_as_float(was);
}

// ---- arithmetic ----

STANDIN_INLINE float __fadd_rn(float a, float b) { return a + b; }
STANDIN_INLINE float __fsub_rn(float a, float b) { return a - b; }
STANDIN_INLINE float __fmul_rn(float a, float b) { return a * b; }
STANDIN_INLINE double __dadd_rn(double a, double b) { return a + b; }
STANDIN_INLINE double __dmul_rn(double a, double b) { return a * b; }

// Of a double they are the host's; of a float they are what the name with an f is.
#define STANDIN_ONE(name) extern "C" double name(double); STANDIN_INLINE float name(float x) { return __builtin_##name##f(x); }
#define STANDIN_TWO(name) \
    extern "C" double name(double, double); \
    STANDIN_INLINE float name(float x, float y) { return __builtin_##name##f(x, y); }
STANDIN_ONE(exp) STANDIN_ONE(exp2) STANDIN_ONE(log) STANDIN_ONE(log2) STANDIN_ONE(sqrt) STANDIN_ONE(rint) STANDIN_ONE(trunc)
STANDIN_ONE(floor) STANDIN_ONE(ceil) STANDIN_ONE(fabs) STANDIN_ONE(sin) STANDIN_ONE(cos) STANDIN_ONE(tan) STANDIN_ONE(asin)
STANDIN_ONE(acos) STANDIN_ONE(atan) STANDIN_ONE(sinh) STANDIN_ONE(cosh) STANDIN_ONE(tanh) STANDIN_ONE(asinh) STANDIN_ONE(acosh)
STANDIN_ONE(atanh) STANDIN_ONE(round)
STANDIN_TWO(atan2) STANDIN_TWO(pow) STANDIN_TWO(fmod) STANDIN_TWO(fmin) STANDIN_TWO(fmax)
extern "C" double fma(double, double, double);
extern "C" double ldexp(double, int);
STANDIN_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
STANDIN_INLINE float ldexp(float x, int by) { return __builtin_ldexpf(x, by); }
STANDIN_INLINE float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
STANDIN_INLINE double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
STANDIN_INLINE bool isnan(float x) { return __builtin_isnan(x); }
STANDIN_INLINE bool isnan(double x) { return __builtin_isnan(x); }
STANDIN_INLINE bool isinf(float x) { return __builtin_isinf(x); }
STANDIN_INLINE bool isinf(double x) { return __builtin_isinf(x); }
extern "C" float fminf(float, float);
extern "C" float fmaxf(float, float);
extern "C" float frexpf(float, int *);

// ---- half precision ----

STANDIN_INLINE float standin_of_half(unsigned short h) {
    unsigned sign = (h & 0x8000u) << 16, exponent = h >> 10 & 31u, fraction = h & 0x3FFu;
    if (exponent == 0) return __uint_as_float(sign | __float_as_uint((float)fraction * 0x1p-24f));
    return __uint_as_float(sign | (exponent == 31u ? 0x7F800000u : (exponent + 112u) << 23) | fraction << 13);
}
STANDIN_INLINE unsigned short standin_to_half(float x) {
    unsigned bits = __float_as_uint(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7FFFFFFFu;
    if (size > 0x7F800000u) return (unsigned short)(sign | 0x7E00u);
    if (size >= 0x477FF000u) return (unsigned short)(sign | 0x7C00u);
    // Subnormal halves: adding 0.5 rounds at the right bit.
    if (size < 0x38800000u) return (unsigned short)(sign | (__float_as_uint(__uint_as_float(size) + 0.5f) - 0x3F000000u));
    return (unsigned short)(sign | ((size - 0x38000000u + 0xFFFu + (size >> 13 & 1u)) >> 13));
}
struct standin_half {
    unsigned short bits;
    standin_half() = default;
    explicit standin_half(float x) : bits(standin_to_half(x)) {}
    explicit operator float() const { return standin_of_half(bits); }
};
#define _Float16 standin_half

// ---- PTX: the run-time compiler writes asm("instruction" : "=r"(a) : "r"(b)) as standin_ptx("instruction", a, b) ----

STANDIN_INLINE void standin_ptx(const char *instruction) {
    if (__builtin_strstr(instruction, "griddepcontrol.wait")) standin_now->waits++;
}
STANDIN_INLINE void standin_ptx(const char *, float &r, float x) { r = x < -126.0f ? 0.0f : exp2(x); }
STANDIN_INLINE void standin_ptx(const char *, float &r, unsigned short h) { r = standin_of_half(h); }
STANDIN_INLINE void standin_ptx(const char *, unsigned short &r, float x) { r = standin_to_half(x); }

// Matrices of 16 x 16 held by a warp: lane l has row l / 2, columns l % 2 * 8 and up, one in each of eight registers.
#define STANDIN_EIGHT(T, r) T r##0, T r##1, T r##2, T r##3, T r##4, T r##5, T r##6, T r##7
STANDIN_INLINE void standin_aligned(const void *p, unsigned long long row_bytes) {
    if ((unsigned long long)p % 16u || row_bytes % 16u) standin_now->fault("a matrix or its rows do not begin at multiples of 16 bytes");
}
STANDIN_INLINE unsigned long long standin_element(const char *instruction, unsigned i, unsigned stride) {
    unsigned row = standin_now->lane / 2u, column = standin_now->lane % 2u * 8u + i;
    bool by_columns = __builtin_strstr(instruction, ".aligned.col");
    return by_columns ? (unsigned long long)column * stride + row : (unsigned long long)row * stride + column;
}
STANDIN_INLINE void standin_ptx(const char *instruction, STANDIN_EIGHT(unsigned &, r), const void *p, unsigned stride) {
    unsigned *const r[] = { &r0, &r1, &r2, &r3, &r4, &r5, &r6, &r7 };
    standin_aligned(p, stride * 2ull);
    for (unsigned i = 0; i < 8; i++) *r[i] = ((const unsigned short *)p)[standin_element(instruction, i, stride)];
}
STANDIN_INLINE void standin_ptx(const char *instruction, STANDIN_EIGHT(float &, r), const void *p, unsigned stride) {
    float *const r[] = { &r0, &r1, &r2, &r3, &r4, &r5, &r6, &r7 };
    standin_aligned(p, stride * 4ull);
    for (unsigned i = 0; i < 8; i++) *r[i] = ((const float *)p)[standin_element(instruction, i, stride)];
}
STANDIN_INLINE void standin_ptx(const char *instruction, STANDIN_EIGHT(float, r), void *p, unsigned stride) {
    const float r[] = { r0, r1, r2, r3, r4, r5, r6, r7 };
    standin_aligned(p, stride * 4ull);
    for (unsigned i = 0; i < 8; i++) ((float *)p)[standin_element(instruction, i, stride)] = r[i];
}
struct standin_factors { float a[8], b[8]; };
static void standin_multiply(const standin_factors &own, float *sums) {
    const standin_meeting *met = standin_uses_warp((unsigned long long)&own);
    standin_check(0xFFFFFFFFu, met->active);
    unsigned lane = standin_now->lane;
    for (unsigned k = 0; k < 16; k++) {
        float a = ((const standin_factors *)met->values[lane / 2u * 2u + k / 8u])->a[k % 8u];
        const float *b = ((const standin_factors *)met->values[k * 2u + lane % 2u])->b;
        for (unsigned i = 0; i < 8; i++) sums[i] += a * b[i];
    }
    standin_uses_warp(0); // nobody's factors go before all have read them
}
STANDIN_INLINE void standin_ptx(const char *, STANDIN_EIGHT(float &, d), STANDIN_EIGHT(unsigned, a), STANDIN_EIGHT(unsigned, b), STANDIN_EIGHT(float, c)) {
    float *const d[] = { &d0, &d1, &d2, &d3, &d4, &d5, &d6, &d7 };
    const unsigned a[] = { a0, a1, a2, a3, a4, a5, a6, a7 }, b[] = { b0, b1, b2, b3, b4, b5, b6, b7 };
    float sums[] = { c0, c1, c2, c3, c4, c5, c6, c7 };
    standin_factors own;
    for (unsigned i = 0; i < 8; i++) own.a[i] = standin_of_half((unsigned short)a[i]), own.b[i] = standin_of_half((unsigned short)b[i]);
    standin_multiply(own, sums);
    for (unsigned i = 0; i < 8; i++) *d[i] = sums[i];
}

STANDIN_INLINE void standin_ptx(const char *, unsigned &lane) { lane = standin_now->lane; }
// Four squares of 8 rows of 8 halves, one in each register: lane l names row l % 8 of square l / 8, and gets two neighbours of
// row l / 4, or of column l / 4 where they are turned. An address in shared memory has 32 bits.
STANDIN_INLINE bool __isShared(const void *p) {
    return (const char *)p >= standin_now->shared && (const char *)p < standin_now->shared_end;
}
STANDIN_INLINE unsigned long long __cvta_generic_to_shared(const void *p) {
    return (unsigned long long)((const char *)p - standin_now->shared);
}
static void standin_ptx(const char *instruction, unsigned &r0, unsigned &r1, unsigned &r2, unsigned &r3, unsigned address) {
    unsigned *const r[] = { &r0, &r1, &r2, &r3 }, line = standin_now->lane / 4u, pair = standin_now->lane % 4u * 2u;
    const bool turned = __builtin_strstr(instruction, ".trans");
    if (address % 16u) standin_now->fault("a row of a matrix does not begin at a multiple of 16 bytes");
    const standin_meeting *met = standin_uses_warp(address);
    standin_check(0xFFFFFFFFu, met->active);
    for (unsigned i = 0; i < 4; i++)
        for (unsigned e = *r[i] = 0; e < 2; e++) {
            unsigned row = turned ? pair + e : line, column = turned ? line : pair + e;
            *r[i] |= (unsigned)((const unsigned short *)(standin_now->shared + met->values[8u * i + row]))[column] << (16u * e);
        }
    standin_uses_warp(0); // nobody's rows change before all have read them
}
static unsigned standin_half_pair(const char *instruction, unsigned x, unsigned y) {
    unsigned both = 0;
    for (unsigned at = 0; at < 32; at += 16) {
        const float a = standin_of_half((unsigned short)(x >> at)), b = standin_of_half((unsigned short)(y >> at));
        both |= (unsigned)standin_to_half(instruction[0] == 'a' ? a + b : instruction[0] == 's' ? a - b : a * b) << at;
    }
    return both;
}
static void standin_ptx(const char *instruction, unsigned &r0, unsigned &r1, unsigned address) { // two squares, or two pairs of halves
    unsigned r2, r3;
    if (__builtin_strstr(instruction, ".rn.f16x2")) { r0 = standin_half_pair(instruction, r1, address); return; }
    standin_ptx(instruction, r0, r1, r2, r3, address);
}
STANDIN_INLINE float standin_of_bf16(unsigned bits) { return __builtin_bit_cast(float, bits << 16); }
STANDIN_INLINE unsigned standin_to_bf16(float x) {
    const unsigned bits = __builtin_bit_cast(unsigned, x);
    return (bits & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FFFu : (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
}
STANDIN_INLINE void standin_ptx(const char *instruction, unsigned &r, float high, float low) {
    const bool bf16 = __builtin_strstr(instruction, ".bf16x2");
    r = bf16 ? standin_to_bf16(high) << 16 | standin_to_bf16(low) : (unsigned)standin_to_half(high) << 16 | standin_to_half(low);
}
STANDIN_INLINE void standin_ptx(const char *, unsigned &r, unsigned &&x, unsigned by) { r = __shfl_xor_sync(0xFFFFFFFFu, x, (int)by); }
// Fragments, of which PTX says what each lane holds: 16 lines times 8, along a depth of 32 bytes or 16 halves, four bytes of the
// depth in a register. Lane l has of a rows l / 4 and 8 on, bytes l % 4 * 4 and 16 on; of b the column l / 4; of the sums rows as of a,
// columns l % 4 * 2 and 1 on.
struct standin_fragment { unsigned a[4], b[2]; };
STANDIN_INLINE void standin_add_product(int &sum, unsigned a, unsigned b, bool) { sum = __dp4a((int)a, (int)b, sum); }
STANDIN_INLINE void standin_add_product(float &sum, unsigned a, unsigned b, bool bf16) {
    for (unsigned at = 0; at < 32; at += 16)
        sum += bf16 ? standin_of_bf16(a >> at & 0xFFFFu) * standin_of_bf16(b >> at & 0xFFFFu)
                    : standin_of_half((unsigned short)(a >> at)) * standin_of_half((unsigned short)(b >> at));
}
template <class T> static void standin_multiply_fragments(const char *instruction, const standin_fragment &own, T *sums) {
    const bool bf16 = __builtin_strstr(instruction, ".bf16.");
    const standin_meeting *met = standin_uses_warp((unsigned long long)&own);
    standin_check(0xFFFFFFFFu, met->active);
    unsigned lane = standin_now->lane;
    for (unsigned k = 0; k < 8; k++)
        for (unsigned i = 0; i < 4; i++) {
            unsigned high = k / 4u, column = lane % 4u * 2u + i % 2u;
            unsigned a = ((const standin_fragment *)met->values[lane / 4u * 4u + k % 4u])->a[i / 2u + 2u * high];
            standin_add_product(sums[i], a, ((const standin_fragment *)met->values[column * 4u + k % 4u])->b[high], bf16);
        }
    standin_uses_warp(0); // nobody's factors go before all have read them
}
STANDIN_INLINE void standin_ptx(const char *instruction, unsigned &c0, unsigned &c1, unsigned &c2, unsigned &c3, unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                unsigned b0, unsigned b1) {
    int sums[] = { (int)c0, (int)c1, (int)c2, (int)c3 };
    standin_multiply_fragments(instruction, { { a0, a1, a2, a3 }, { b0, b1 } }, sums);
    c0 = (unsigned)sums[0], c1 = (unsigned)sums[1], c2 = (unsigned)sums[2], c3 = (unsigned)sums[3];
}
STANDIN_INLINE void standin_ptx(const char *instruction, float &c0, float &c1, float &c2, float &c3, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
    float sums[] = { c0, c1, c2, c3 };
    standin_multiply_fragments(instruction, { { a0, a1, a2, a3 }, { b0, b1 } }, sums);
    c0 = sums[0], c1 = sums[1], c2 = sums[2], c3 = sums[3];
}

// ---- kernels as the driver calls them; the run-time compiler writes STANDIN_KERNEL for every __global__ function ----

template <unsigned... I> struct standin_indices {};
template <unsigned N, unsigned... I> struct standin_count : standin_count<N - 1, N - 1, I...> {};
template <unsigned... I> struct standin_count<0, I...> { typedef standin_indices<I...> type; };
template <class T> constexpr bool standin_is_pointer = false;
template <class T> constexpr bool standin_is_pointer<T *> = true;
template <class... A> constexpr unsigned standin_bytes[] = { (unsigned)sizeof(A)..., 0 };
template <class... A> constexpr unsigned char standin_pointers[] = { standin_is_pointer<A>..., 0 };

template <class... A, unsigned... I>
STANDIN_INLINE void standin_call(void (*kernel)(A...), void *const *arguments, standin_indices<I...>) {
    kernel(*(A *)arguments[I]...);
}
template <class... A> STANDIN_INLINE void standin_call(void (*kernel)(A...), void *const *arguments) {
    standin_call(kernel, arguments, typename standin_count<sizeof...(A)>::type{});
}
static void *standin_enter(standin_place *place) {
    standin_now = place;
    return &standin_now;
}
template <class... A> constexpr standin_kernel standin_describe(void (*)(A...), void (*run)(void *const *), unsigned max_threads) {
    return { run, standin_enter, standin_bytes<A...>, standin_pointers<A...>, sizeof...(A), max_threads };
}
#define STANDIN_KERNEL(name, max_threads) \
    static void standin_run_##name(void *const *arguments) { standin_call(name, arguments); } \
    extern "C" { \
    extern const standin_kernel standin_kernel_##name __attribute__((visibility("default"), used)); \
    const standin_kernel standin_kernel_##name = standin_describe(name, standin_run_##name, max_threads); \
    }
