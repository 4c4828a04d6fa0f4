/* dialect.c: what each dialect calls things: preludes, part by part, that give the names of a printed body their
 * meaning. A part stands in a text only where its kernel needs it. */
#include "spirv/print.h"

typedef const char *const lines[];

/* ---- OpenCL C ---- */

/* always_inline: PoCL 3.1 shares __local arguments of calls among threads */
#define OPENCL_CORE \
    "typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64; typedef float f32;", \
    "typedef char i8; typedef short i16; typedef int i32; typedef long i64;", \
    "#define MAY_ALIAS __attribute__((may_alias))", \
    "typedef u8 u8_any MAY_ALIAS; typedef u16 u16_any MAY_ALIAS; typedef u32 u32_any MAY_ALIAS;", \
    "typedef u64 u64_any MAY_ALIAS; typedef f32 f32_any MAY_ALIAS;", \
    "#define INLINE static inline __attribute__((overloadable, always_inline))", \
    "#define GLOBAL __global", \
    "#define LOCAL __local", \
    "#define PRIVATE __private", \
    "#define SHARED __local", \
    "#define AT(T, address) (*(__global T##_any *)(address))", \
    "#define AT_VOLATILE(T, address) (*(volatile __global T##_any *)(address))", \
    "#define NEW(T) (T)", \
    "#define ZERO(T) ((T){0})", \
    "#define U64(x) x##ul", \
    "#define bits_f32(x) as_float((u32)(x))", \
    "#define f32_bits(x) as_uint((f32)(x))", \
    "#define exact_add(a, b) ((a) + (b))", \
    "#define exact_sub(a, b) ((a) - (b))", \
    "#define exact_mul(a, b) ((a) * (b))", \
    "#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)", \
    "#define BARRIER_ALL() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)", \
    "#define FENCE() mem_fence(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)", \
    "#define GROUP_X ((u32)get_group_id(0) + launch.w[0])", \
    "#define GROUP_Y ((u32)get_group_id(1) + launch.w[1])", \
    "#define GROUP_Z ((u32)get_group_id(2) + launch.w[2])", \
    "#define GROUPS_X ((u32)get_num_groups(0))", \
    "#define GROUPS_Y ((u32)get_num_groups(1))", \
    "#define GROUPS_Z ((u32)get_num_groups(2))", \
    "#define LOCAL_X ((u32)get_local_id(0))", \
    "#define LOCAL_Y ((u32)get_local_id(1))", \
    "#define LOCAL_Z ((u32)get_local_id(2))"
static lines opencl_core = { OPENCL_CORE, NULL };
static lines opencl_no_contraction = { "#pragma OPENCL FP_CONTRACT OFF", NULL };
static lines opencl_half = {
    "#pragma OPENCL EXTENSION cl_khr_fp16 : enable",
    "typedef ushort f16; typedef f16 f16_any MAY_ALIAS;",
    "#define h2f(x) convert_float(as_half((ushort)(x)))",
    "#define f2h(x) as_ushort(convert_half_rte((f32)(x)))",
    NULL
};
/* Without the extension; halves lie in words of their own, and subnormal ones become normal f32. */
static lines opencl_half_by_integers = {
    "typedef ushort f16; typedef f16 f16_any MAY_ALIAS;",
    "INLINE f32 h2f(u16 h) {",
    "  u32 exponent = h & 0x7C00u, fraction = (h & 0x3FFu) << 13;",
    "  f32 lined = bits_f32(0x38800000u | fraction) - 0x1p-14f;",
    "  u32 r = (exponent << 13) + 0x38000000u + fraction;",
    "  r = exponent == 0u ? f32_bits(lined) : exponent == 0x7C00u ? 0x7F800000u | fraction : r;",
    "  return bits_f32(r | (h & 0x8000u) << 16);",
    "}",
    "INLINE u16 f2h(f32 x) {",
    "  u32 f = f32_bits(x), a = f & 0x7FFFFFFFu;",
    "  f32 lined = bits_f32(a) + 0.5f;",
    "  u32 r = (a - 0x38000000u + 0xFFFu + ((a >> 13) & 1u)) >> 13;",
    "  r = a < 0x38800000u ? f32_bits(lined) - 0x3F000000u : r;",
    "  r = a > 0x7F800000u ? 0x7E00u : a >= 0x477FF000u ? 0x7C00u : r;",
    "  return (u16)(r | (f >> 16 & 0x8000u));",
    "}",
    NULL
};
static lines opencl_double = {
    "#pragma OPENCL EXTENSION cl_khr_fp64 : enable",
    "typedef double f64; typedef f64 f64_any MAY_ALIAS;",
    "#define bits_f64(x) as_double((u64)(x))",
    "#define f64_bits(x) as_ulong((f64)(x))",
    NULL
};
#define BITS_FUNCTIONS \
    "INLINE u32 bits_low(u32 count) { return count >= 32u ? ~0u : (1u << count) - 1u; }", \
    "INLINE u32 bits_insert(u32 x, u32 y, u32 at, u32 count) {", \
    "  u32 mask = count == 0u ? 0u : bits_low(count) << (at & 31u);", \
    "  return (x & ~mask) | (y << (at & 31u) & mask);", \
    "}", \
    "INLINE u32 bits_extract(u32 x, u32 at, u32 count) { return count == 0u ? 0u : x >> (at & 31u) & " \
    "bits_low(count); }", \
    "INLINE u32 bits_extract_signed(u32 x, u32 at, u32 count) {", \
    "  return count == 0u ? 0u : (u32)((i32)(x << ((32u - at - count) & 31u)) >> ((32u - count) & 31u));", \
    "}", \
    "INLINE u32 bits_reverse(u32 x) {", \
    "  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;", \
    "  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;", \
    "  x = (x >> 4 & 0x0F0F0F0Fu) | (x & 0x0F0F0F0Fu) << 4;", \
    "  x = (x >> 8 & 0x00FF00FFu) | (x & 0x00FF00FFu) << 8;", \
    "  return x >> 16 | x << 16;", \
    "}", \
    "INLINE u32 find_high(u32 x) { return 31u - leading_zeros(x); }", \
    "INLINE u32 find_low(u32 x) { return find_high(x & (0u - x)); }", \
    "INLINE u32 find_high_signed(u32 x) { return find_high((i32)x < 0 ? ~x : x); }"
static lines opencl_bits = {
    "#define leading_zeros(x) clz((u32)(x))",
    "#define bits_count(x) popcount(x)",
    "#define high_product_u32(a, b) mul_hi((u32)(a), (u32)(b))",
    "#define high_product_i32(a, b) ((u32)mul_hi((i32)(a), (i32)(b)))",
    BITS_FUNCTIONS,
    NULL
};
static lines opencl_math = {
    "#define smooth_step(a, b, x) smoothstep(a, b, x)",
    "INLINE f32 frexp_fraction(f32 x) { i32 e; return frexp(x, &e); }",
    "INLINE i32 frexp_exponent(f32 x) { i32 e; frexp(x, &e); return e; }",
    NULL
};
#define OPENCL_ATOMICS(at, own, zero) \
    "#define " at "_load(p) " own "_or(p, " zero ")", \
    "#define " at "_store(p, x) ((void)" own "_xchg(p, x))", \
    "#define " at "_exchange(p, x) " own "_xchg(p, x)", \
    "#define " at "_compare(p, was, x) " own "_cmpxchg(p, was, x)", \
    "#define " at "_add(p, x) " own "_add(p, x)", \
    "#define " at "_sub(p, x) " own "_sub(p, x)", \
    "#define " at "_min(p, x) " own "_min(p, x)", \
    "#define " at "_max(p, x) " own "_max(p, x)", \
    "#define " at "_and(p, x) " own "_and(p, x)", \
    "#define " at "_or(p, x) " own "_or(p, x)", \
    "#define " at "_xor(p, x) " own "_xor(p, x)"
static lines opencl_atomics = {
    OPENCL_ATOMICS("at", "atomic", "0u"),
    "#define ADD_FLOAT(SPACE) INLINE f32 at_add_float(volatile SPACE f32 *p, f32 x) { \\",
    "  volatile SPACE u32 *words = (volatile SPACE u32 *)p; \\",
    "  for (u32 was = *words;;) { \\",
    "    u32 now = atomic_cmpxchg(words, was, f32_bits(bits_f32(was) + x)); \\",
    "    if (now == was) return bits_f32(was); \\",
    "    was = now; \\",
    "  } }",
    "ADD_FLOAT(__global)",
    "ADD_FLOAT(__local)",
    NULL
};
static lines opencl_atomics64 = {
    "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable",
    "#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable",
    OPENCL_ATOMICS("at64", "atom", "U64(0)"),
    NULL
};
#define DOT_MIXED                                                                                                      \
    "INLINE i32 dot4_mixed(u32 a, u32 b) {", "  i32 sum = 0;",                                                         \
        "  for (u32 i = 0u; i < 32u; i += 8u) sum += (i32)(i8)(a >> i) * (i32)(u8)(b >> i);", "  return sum;", "}"
#define DOT_SATURATED                                                                                                  \
        "INLINE u32 add_saturated_u32(u32 a, u32 b) { return a + b < a ? ~0u : a + b; }",                              \
        "INLINE u32 add_saturated_i32(u32 a, u32 b) {", "  u32 sum = a + b;",                                          \
        "  return ((sum ^ a) & (sum ^ b)) >> 31 ? (a >> 31) + 0x7FFFFFFFu : sum;", "}",                                \
        "INLINE u32 add_saturated_u16(u32 a, u32 b) { a = (a & 0xFFFFu) + (b & 0xFFFFu); return a > 0xFFFFu ? "        \
        "0xFFFFu : a; }",                                                                                              \
        "INLINE u32 add_saturated_u8(u32 a, u32 b) { a = (a & 0xFFu) + (b & 0xFFu); return a > 0xFFu ? 0xFFu : a; }",  \
        "INLINE u32 add_saturated_i16(u32 a, u32 b) {", "  i32 s = (i32)(i16)a + (i32)(i16)b;",                        \
        "  return (u32)(s > 32767 ? 32767 : s < -32768 ? -32768 : s);", "}",                                           \
        "INLINE u32 add_saturated_i8(u32 a, u32 b) { i32 s = (i32)(i8)a + (i32)(i8)b; return (u32)(s > 127 ? 127 : s " \
        "< -128 ? -128 : s); }"
static lines opencl_dot = {
    "INLINE i32 dot4_signed(u32 a, u32 b) {",
    "  i32 sum = 0;",
    "  for (u32 i = 0u; i < 32u; i += 8u) sum += (i32)(i8)(a >> i) * (i32)(i8)(b >> i);",
    "  return sum;",
    "}",
    "INLINE u32 dot4_unsigned(u32 a, u32 b) {",
    "  u32 sum = 0u;",
    "  for (u32 i = 0u; i < 32u; i += 8u) sum += (a >> i & 0xFFu) * (b >> i & 0xFFu);",
    "  return sum;",
    "}",
    DOT_MIXED,
    DOT_SATURATED,
    NULL
};

/* ---- subgroups, in every dialect: sums made of sg_read, the value of another lane ---- */

#define SUM_NAMES \
    "#define sg_reduce(op, T, x) sg_reduce_##op##_##T(x)", \
    "#define sg_cluster(op, T, x, n) sg_cluster_##op##_##T(x, n)", \
    "#define sg_inclusive(op, T, x) sg_inclusive_##op##_##T(x)", \
    "#define sg_exclusive(op, T, x) sg_exclusive_##op##_##T(x)"
#define SUM_FUNCTIONS \
    "#define OP_add(a, b) ((a) + (b))", \
    "#define OP_mul(a, b) ((a) * (b))", \
    "#define OP_and(a, b) ((a) & (b))", \
    "#define OP_or(a, b) ((a) | (b))", \
    "#define OP_xor(a, b) ((a) ^ (b))", \
    "#define OP_min(a, b) ((b) < (a) ? (b) : (a))", \
    "#define OP_max(a, b) ((b) > (a) ? (b) : (a))", \
    "SUMS(add, u32, 0u) SUMS(mul, u32, 1u) SUMS(and, u32, ~0u) SUMS(or, u32, 0u) SUMS(xor, u32, 0u)", \
    "SUMS(min, u32, ~0u) SUMS(max, u32, 0u)", \
    "SUMS(min, i32, 0x7FFFFFFF) SUMS(max, i32, -0x7FFFFFFF - 1)", \
    "SUMS(add, f32, 0.0f) SUMS(mul, f32, 1.0f) SUMS(min, f32, bits_f32(0x7F800000u)) SUMS(max, f32, " \
    "bits_f32(0xFF800000u))", \
    "INLINE u64 sg_mask_below(void) { return (U64(1) << SG_LANE) - U64(1); }", \
    "INLINE u64 sg_mask_up_to(void) { return sg_mask_below() << 1 | U64(1); }", \
    "INLINE u64 sg_mask_all(void) { return ~U64(0); }", \
    "INLINE bool sg_bit(u64 mask, u32 lane) { return (mask >> (lane & 63u) & U64(1)) != U64(0); }", \
    "INLINE u32 sg_lowest(u64 mask) { u32 i = 0u; while (i < 63u && !sg_bit(mask, i)) i++; return i; }", \
    "INLINE u32 sg_highest(u64 mask) { u32 i = 63u; while (i > 0u && !sg_bit(mask, i)) i--; return i; }", \
    "INLINE u32 sg_count(u64 mask) { u32 n = 0u; for (; mask; mask &= mask - U64(1)) n++; return n; }"

static lines opencl_subgroups = {
    "#pragma OPENCL EXTENSION cl_khr_subgroups : enable",
    "#define SG_SIZE ((u32)get_sub_group_size())",
    "#define SG_ID ((u32)get_sub_group_id())",
    "#define SG_COUNT ((u32)get_num_sub_groups())",
    "#define SG_LANE ((u32)get_sub_group_local_id())",
    "#define sg_barrier() sub_group_barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)",
    "#define sg_first() 0u",
    "#define READ(T) INLINE T sg_read_##T(T x, u32 lane) { \\",
    "  T r = x; \\",
    "  for (u32 i = 0u; i < SG_SIZE; i++) { T y = sub_group_broadcast(x, i); r = i == lane ? y : r; } \\",
    "  return r; \\",
    "}",
    "READ(u32) READ(f32)",
    "#define sg_read_i32(x, lane) ((i32)sg_read_u32((u32)(x), lane))",
    "#define SUMS(op, T, zero) \\",
    "INLINE T sg_range_##op##_##T(T x, u32 from, u32 to) { \\",
    "  T r = zero; \\",
    "  for (u32 i = 0u; i < SG_SIZE; i++) { T y = sub_group_broadcast(x, i); if (i >= from && i < to) r = OP_##op(r, "
    "y); } \\",
    "  return r; \\",
    "} \\",
    "INLINE T sg_inclusive_##op##_##T(T x) { return sg_range_##op##_##T(x, 0u, SG_LANE + 1u); } \\",
    "INLINE T sg_exclusive_##op##_##T(T x) { return sg_range_##op##_##T(x, 0u, SG_LANE); } \\",
    "INLINE T sg_cluster_##op##_##T(T x, u32 n) { return sg_range_##op##_##T(x, SG_LANE & ~(n - 1u), (SG_LANE & ~(n - "
    "1u)) + n); } \\",
    "INLINE T sg_reduce_##op##_##T(T x) { return sg_range_##op##_##T(x, 0u, SG_SIZE); }",
    SUM_NAMES,
    SUM_FUNCTIONS,
    "#define sg_reduce_add_f32(x) sub_group_reduce_add((f32)(x))",
    "#define sg_reduce_min_f32(x) sub_group_reduce_min((f32)(x))",
    "#define sg_reduce_max_f32(x) sub_group_reduce_max((f32)(x))",
    "#define sg_reduce_add_u32(x) sub_group_reduce_add((u32)(x))",
    "INLINE u64 sg_ballot(bool x) {",
    "  u32 low = SG_LANE < 32u && x ? 1u << SG_LANE : 0u, high = SG_LANE >= 32u && x ? 1u << (SG_LANE - 32u) : 0u;",
    "  return (u64)sg_reduce_or_u32(low) | (u64)sg_reduce_or_u32(high) << 32;",
    "}",
    NULL
};
/* Through shared memory: sg_room holds a word for each invocation. */
static lines opencl_subgroups_shared = {
    "#define SG_ID (LOCAL_INDEX / SG_SIZE)",
    "#define SG_COUNT (WORKGROUP / SG_SIZE)",
    "#define SG_LANE (LOCAL_INDEX % SG_SIZE)",
    "#define sg_barrier() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)",
    "#define sg_first() 0u",
    "INLINE u32 sg_read(__local u32 *room, u32 x, u32 lane) {",
    "  room[LOCAL_INDEX] = x;",
    "  BARRIER();",
    "  u32 r = room[SG_ID * SG_SIZE + (lane & (SG_SIZE - 1u))];",
    "  BARRIER();",
    "  return r;",
    "}",
    "#define sg_read_u32(x, lane) sg_read(sg_room, x, lane)",
    "#define sg_read_f32(x, lane) bits_f32(sg_read(sg_room, f32_bits(x), lane))",
    "#define AS_u32(x) (x)",
    "#define AS_i32(x) ((u32)(x))",
    "#define AS_f32(x) f32_bits(x)",
    "#define OF_u32(x) (x)",
    "#define OF_i32(x) ((i32)(x))",
    "#define OF_f32(x) bits_f32(x)",
    "#define SUMS(op, T, zero) \\",
    "INLINE T sg_reduced_##op(__local u32 *room, T x, u32 n) { \\",
    "  room[LOCAL_INDEX] = AS_##T(x); \\",
    "  BARRIER(); \\",
    "  for (u32 o = n / 2u; o; o /= 2u) { \\",
    "    if ((SG_LANE & (n - 1u)) < o) room[LOCAL_INDEX] = AS_##T(OP_##op(OF_##T(room[LOCAL_INDEX]), "
    "OF_##T(room[LOCAL_INDEX + o]))); \\",
    "    BARRIER(); \\",
    "  } \\",
    "  T r = OF_##T(room[LOCAL_INDEX & ~(n - 1u)]); \\",
    "  BARRIER(); \\",
    "  return r; \\",
    "} \\",
    "INLINE T sg_scanned_##op(__local u32 *room, T x, u32 end) { \\",
    "  room[LOCAL_INDEX] = AS_##T(x); \\",
    "  BARRIER(); \\",
    "  T r = zero; \\",
    "  for (u32 i = 0u; i < end; i++) r = OP_##op(r, OF_##T(room[SG_ID * SG_SIZE + i])); \\",
    "  BARRIER(); \\",
    "  return r; \\",
    "}",
    "#define sg_reduce(op, T, x) sg_reduced_##op(sg_room, (T)(x), SG_SIZE)",
    "#define sg_cluster(op, T, x, n) sg_reduced_##op(sg_room, (T)(x), n)",
    "#define sg_inclusive(op, T, x) sg_scanned_##op(sg_room, (T)(x), SG_LANE + 1u)",
    "#define sg_exclusive(op, T, x) sg_scanned_##op(sg_room, (T)(x), SG_LANE)",
    SUM_FUNCTIONS,
    "#define sg_ballot(x) sg_ballot_of(sg_room, x)",
    "INLINE u64 sg_ballot_of(__local u32 *room, bool x) { return (u64)sg_reduced_or(room, x ? 1u << SG_LANE : 0u, "
    "SG_SIZE); }",
    NULL
};

/* ---- CUDA C++ and HIP C++ ---- */

#define CXX_TYPES \
    "typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64; " \
    "typedef float f32;", \
    "typedef signed char i8; typedef short i16; typedef int i32; typedef long long i64;", \
    "#define MAY_ALIAS __attribute__((may_alias))", \
    "typedef u8 u8_any MAY_ALIAS; typedef u16 u16_any MAY_ALIAS; typedef u32 u32_any MAY_ALIAS;", \
    "typedef u64 u64_any MAY_ALIAS; typedef f32 f32_any MAY_ALIAS;", \
    "#define INLINE static __device__ __forceinline__", \
    "#define GLOBAL", \
    "#define LOCAL", \
    "#define PRIVATE", \
    "#define SHARED __shared__", \
    "#define AT(T, address) (*(T##_any *)(address))", \
    "#define AT_VOLATILE(T, address) (*(volatile T##_any *)(address))", \
    "#define NEW(T) T", \
    "#define ZERO(T) (T{})", \
    "#define U64(x) x##ull", \
    "#define bits_f32(x) __uint_as_float(x)", \
    "#define f32_bits(x) __float_as_uint(x)", \
    "#define BARRIER() __syncthreads()", \
    "#define BARRIER_ALL() __syncthreads()", \
    "#define FENCE() __threadfence()", \
    "#define GROUP_X (blockIdx.x + launch.w[0])", \
    "#define GROUP_Y (blockIdx.y + launch.w[1])", \
    "#define GROUP_Z (blockIdx.z + launch.w[2])", \
    "#define GROUPS_X gridDim.x", \
    "#define GROUPS_Y gridDim.y", \
    "#define GROUPS_Z gridDim.z", \
    "#define LOCAL_X threadIdx.x", \
    "#define LOCAL_Y threadIdx.y", \
    "#define LOCAL_Z threadIdx.z"
static lines cuda_core = {
    CXX_TYPES,
    /* the next kernel may begin as soon as all of this one have seen the one before end */
    "#define WAIT_EARLY() asm volatile(\"griddepcontrol.wait;\\n\\tgriddepcontrol.launch_dependents;\" ::: \"memory\")",
    "INLINE f32 exact_add(f32 a, f32 b) { return __fadd_rn(a, b); }",
    "INLINE f32 exact_sub(f32 a, f32 b) { return __fsub_rn(a, b); }",
    "INLINE f32 exact_mul(f32 a, f32 b) { return __fmul_rn(a, b); }",
    NULL
};
static lines hip_core = {
    CXX_TYPES,
    "#define EXACT(T) \\",
    "INLINE T exact_add(T a, T b) { _Pragma(\"clang fp contract(off)\") return a + b; } \\",
    "INLINE T exact_sub(T a, T b) { _Pragma(\"clang fp contract(off)\") return a - b; } \\",
    "INLINE T exact_mul(T a, T b) { _Pragma(\"clang fp contract(off)\") return a * b; }",
    "EXACT(f32)",
    NULL
};
static lines nothing = { NULL };
static lines hip_half = {
    "typedef unsigned short f16; typedef f16 f16_any MAY_ALIAS;",
    "INLINE f32 h2f(f16 x) { return (f32)__builtin_bit_cast(_Float16, x); }",
    "INLINE f16 f2h(f32 x) { return __builtin_bit_cast(f16, (_Float16)x); }",
    NULL
};
#define CXX_DOUBLE \
    "typedef double f64; typedef f64 f64_any MAY_ALIAS;", \
    "#define bits_f64(x) __longlong_as_double((long long)(x))", \
    "#define f64_bits(x) ((u64)__double_as_longlong(x))"
static lines cuda_double = {
    CXX_DOUBLE,
    "INLINE f64 exact_add(f64 a, f64 b) { return __dadd_rn(a, b); }",
    "INLINE f64 exact_sub(f64 a, f64 b) { return __dadd_rn(a, -b); }",
    "INLINE f64 exact_mul(f64 a, f64 b) { return __dmul_rn(a, b); }",
    NULL
};
static lines hip_double = { CXX_DOUBLE, "EXACT(f64)", NULL };
static lines cxx_bits = {
    "#define leading_zeros(x) ((u32)__clz((i32)(x)))",
    "INLINE u32 bits_count(u32 x) { return (u32)__popc(x); }",
    "#define high_product_u32(a, b) __umulhi(a, b)",
    "#define high_product_i32(a, b) ((u32)__mulhi((i32)(a), (i32)(b)))",
    BITS_FUNCTIONS,
    NULL
};
static lines cxx_math = {
    "INLINE f32 smooth_step(f32 a, f32 b, f32 x) {",
    "  f32 t = fminf(fmaxf((x - a) / (b - a), 0.0f), 1.0f);",
    "  return t * t * (3.0f - 2.0f * t);",
    "}",
    "INLINE f32 frexp_fraction(f32 x) { i32 e; return frexpf(x, &e); }",
    "INLINE i32 frexp_exponent(f32 x) { i32 e; frexpf(x, &e); return e; }",
    NULL
};
#define CXX_ATOMICS(at, T, I, sub) \
    "#define " at "_load(p) (*(p))", \
    "#define " at "_store(p, x) ((void)atomicExch((" T " *)(p), x))", \
    "#define " at "_exchange(p, x) atomicExch((" T " *)(p), x)", \
    "#define " at "_compare(p, was, x) atomicCAS((" T " *)(p), was, x)", \
    "#define " at "_add(p, x) atomicAdd((" T " *)(p), x)", \
    "#define " at "_sub(p, x) " sub, \
    "INLINE " T " " at "_min(volatile " T " *p, " T " x) { return atomicMin((" T " *)p, x); }", \
    "INLINE " T " " at "_max(volatile " T " *p, " T " x) { return atomicMax((" T " *)p, x); }", \
    "INLINE " I " " at "_min(volatile " I " *p, " I " x) { return atomicMin((" I " *)p, x); }", \
    "INLINE " I " " at "_max(volatile " I " *p, " I " x) { return atomicMax((" I " *)p, x); }", \
    "#define " at "_and(p, x) atomicAnd((" T " *)(p), x)", \
    "#define " at "_or(p, x) atomicOr((" T " *)(p), x)", \
    "#define " at "_xor(p, x) atomicXor((" T " *)(p), x)"
static lines cxx_atomics = {
    CXX_ATOMICS("at", "u32", "i32", "atomicSub((u32 *)(p), x)"),
    "#define at_add_float(p, x) atomicAdd((f32 *)(p), x)",
    NULL
};
static lines cxx_atomics64 = { CXX_ATOMICS("at64", "u64", "i64", "atomicAdd((u64 *)(p), U64(0) - (x))"), NULL };
static lines cuda_dot = {
    "#define dot4_signed(a, b) __dp4a((i32)(a), (i32)(b), 0)",
    "#define dot4_unsigned(a, b) __dp4a((u32)(a), (u32)(b), 0u)",
    DOT_MIXED,
    DOT_SATURATED,
    NULL
};
/* Lanes that are not active have no part; where all are, sums go by halves. */
#define LANE_SUMS \
    "#define SUMS(op, T, zero) \\", \
    "INLINE T sg_range_##op##_##T(T x, u32 from, u32 to) { \\", \
    "  u64 active = sg_active(); \\", \
    "  T r = zero; \\", \
    "  for (u32 i = 0u; i < SG_SIZE; i++) { \\", \
    "    T y = sg_read_##T(x, i); \\", \
    "    if (i >= from && i < to && (active >> i & 1u)) r = OP_##op(r, y); \\", \
    "  } \\", \
    "  return r; \\", \
    "} \\", \
    "INLINE T sg_halves_##op##_##T(T x, u32 n) { \\", \
    "  for (u32 o = n / 2u; o; o /= 2u) { T y = sg_read_##T(x, SG_LANE ^ o); x = OP_##op(x, y); } \\", \
    "  return x; \\", \
    "} \\", \
    "INLINE T sg_cluster_##op##_##T(T x, u32 n) { \\", \
    "  if (sg_active() == SG_FULL) return sg_halves_##op##_##T(x, n); \\", \
    "  return sg_range_##op##_##T(x, SG_LANE & ~(n - 1u), (SG_LANE & ~(n - 1u)) + n); \\", \
    "} \\", \
    "INLINE T sg_reduce_##op##_##T(T x) { return sg_cluster_##op##_##T(x, SG_SIZE); } \\", \
    "INLINE T sg_inclusive_##op##_##T(T x) { return sg_range_##op##_##T(x, 0u, SG_LANE + 1u); } \\", \
    "INLINE T sg_exclusive_##op##_##T(T x) { return sg_range_##op##_##T(x, 0u, SG_LANE); }", \
    SUM_NAMES, \
    SUM_FUNCTIONS
#define WARP_NAMES \
    "#define SG_SIZE 32u", \
    "#define SG_FULL U64(0xFFFFFFFF)", \
    "#define SG_ID (LOCAL_INDEX / 32u)", \
    "#define SG_COUNT ((WORKGROUP + 31u) / 32u)", \
    "#define SG_LANE (LOCAL_INDEX & 31u)"
static lines cuda_subgroups = {
    WARP_NAMES,
    "#define sg_barrier() __syncwarp()",
    "#define sg_active() ((u64)__activemask())",
    "#define sg_first() ((u32)__ffs((i32)__activemask()) - 1u)",
    "INLINE u32 sg_read_u32(u32 x, u32 lane) { return __shfl_sync(__activemask(), x, (i32)lane); }",
    "INLINE i32 sg_read_i32(i32 x, u32 lane) { return __shfl_sync(__activemask(), x, (i32)lane); }",
    "INLINE f32 sg_read_f32(f32 x, u32 lane) { return __shfl_sync(__activemask(), x, (i32)lane); }",
    "INLINE u64 sg_ballot(bool x) { return (u64)__ballot_sync(__activemask(), x); }",
    LANE_SUMS,
    NULL
};
static lines hip_subgroups = {
    "#define SG_SIZE ((u32)warpSize)",
    "#define SG_FULL (SG_SIZE == 64u ? ~U64(0) : U64(0xFFFFFFFF))",
    "#define SG_ID (LOCAL_INDEX / SG_SIZE)",
    "#define SG_COUNT ((WORKGROUP + SG_SIZE - 1u) / SG_SIZE)",
    "#define SG_LANE (LOCAL_INDEX & (SG_SIZE - 1u))",
    "#define sg_barrier() __builtin_amdgcn_wave_barrier()",
    "#define sg_active() ((u64)__ballot(1))",
    "#define sg_first() ((u32)__ffsll((unsigned long long)__ballot(1)) - 1u)",
    "INLINE u32 sg_read_u32(u32 x, u32 lane) { return (u32)__shfl((i32)x, (i32)lane); }",
    "INLINE i32 sg_read_i32(i32 x, u32 lane) { return __shfl(x, (i32)lane); }",
    "INLINE f32 sg_read_f32(f32 x, u32 lane) { return __shfl(x, (i32)lane); }",
    "INLINE u64 sg_ballot(bool x) { return (u64)__ballot(x); }",
    LANE_SUMS,
    NULL
};
/* ---- OpenCL C of NVIDIA's compiler: what CUDA has functions for, by its instructions ---- */

/* A fence of the whole device, as CUDA's. */
static lines nvidia_core = {
    OPENCL_CORE,
    "#undef FENCE",
    "INLINE void FENCE(void) { asm volatile(\"membar.gl;\" ::: \"memory\"); }",
    NULL
};
static lines nvidia_subgroups = {
    WARP_NAMES,
    "INLINE void sg_barrier(void) { asm volatile(\"bar.warp.sync 0xffffffff;\" ::: \"memory\"); }",
    "INLINE u32 sg_mask(void) { u32 r; asm volatile(\"activemask.b32 %0;\" : \"=r\"(r)); return r; }",
    "#define sg_active() ((u64)sg_mask())",
    "INLINE u32 sg_first(void) { u32 mask = sg_mask(); return 31u - clz(mask & (0u - mask)); }",
    "INLINE u32 sg_read_u32(u32 x, u32 lane) {",
    "  u32 r;",
    "  asm volatile(\"shfl.sync.idx.b32 %0, %1, %2, 31, %3;\" : \"=r\"(r) : \"r\"(x), \"r\"(lane), \"r\"(sg_mask()));",
    "  return r;",
    "}",
    "INLINE i32 sg_read_i32(i32 x, u32 lane) { return (i32)sg_read_u32((u32)x, lane); }",
    "INLINE f32 sg_read_f32(f32 x, u32 lane) { return bits_f32(sg_read_u32(f32_bits(x), lane)); }",
    "INLINE u64 sg_ballot(bool x) {",
    "  u32 r;",
    "  asm volatile(\"{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, %2; }\"",
    "    : \"=r\"(r) : \"r\"((u32)x), \"r\"(sg_mask()));",
    "  return (u64)r;",
    "}",
    LANE_SUMS,
    NULL
};
static lines nvidia_dot = {
    "#define DOT4(name, T, types) \\",
    "INLINE T name(u32 a, u32 b) { \\",
    "  T r; asm(\"dp4a.\" types \" %0, %1, %2, %3;\" : \"=r\"(r) : \"r\"(a), \"r\"(b), \"r\"(0u)); return r; \\",
    "}",
    "DOT4(dot4_signed, i32, \"s32.s32\") DOT4(dot4_unsigned, u32, \"u32.u32\") DOT4(dot4_mixed, i32, \"s32.u32\")",
    DOT_SATURATED,
    NULL
};

/* ---- WGSL: functions, as there are no macros ---- */

static lines wgsl_core = {
    "alias u32x2 = vec2<u32>; alias u32x3 = vec3<u32>; alias u32x4 = vec4<u32>;",
    "alias f32x2 = vec2<f32>; alias f32x3 = vec3<f32>; alias f32x4 = vec4<f32>;",
    "alias b1x2 = vec2<bool>; alias b1x3 = vec3<bool>; alias b1x4 = vec4<bool>;",
    "fn bits_f32(x: u32) -> f32 { return bitcast<f32>(x); }",
    "fn f32_bits(x: f32) -> u32 { return bitcast<u32>(x); }",
    "fn some_f32(x: f32) -> f32 { return x; }",
    "fn is_nan(x: f32) -> bool { return (f32_bits(x) & 0x7FFFFFFFu) > 0x7F800000u; }",
    "fn u8_of(x: u32) -> u32 { return x & 0xFFu; }",
    "fn u16_of(x: u32) -> u32 { return x & 0xFFFFu; }",
    "fn i8_of(x: u32) -> i32 { return i32(x << 24u) >> 24u; }",
    "fn i16_of(x: u32) -> i32 { return i32(x << 16u) >> 16u; }",
    "fn BARRIER() { workgroupBarrier(); }",
    "fn BARRIER_ALL() { storageBarrier(); workgroupBarrier(); }",
    NULL
};
/* WGSL lets operations become one, or change their order, where that is no less accurate; but not through bits. The
 * last word is 0, which no compiler knows. */
static lines wgsl_no_contraction = {
    "fn as_rounded(x: f32) -> f32 { return bits_f32(f32_bits(x) ^ launch[0].w); }",
    "fn exact_add(a: f32, b: f32) -> f32 { return as_rounded(a + b); }",
    "fn exact_sub(a: f32, b: f32) -> f32 { return as_rounded(a - b); }",
    "fn exact_mul(a: f32, b: f32) -> f32 { return as_rounded(a * b); }",
    NULL
};
static lines wgsl_half = {
    "fn h2f(h: u32) -> f32 {",
    "  let exponent = h & 0x7C00u; let fraction = (h & 0x3FFu) << 13u;",
    "  let lined = f32_bits(bits_f32(0x38800000u | fraction) - bits_f32(0x38800000u));",
    "  let normal = (exponent << 13u) + 0x38000000u + fraction;",
    "  let r = select(select(normal, 0x7F800000u | fraction, exponent == 0x7C00u), lined, exponent == 0u);",
    "  return bits_f32(r | ((h & 0x8000u) << 16u));",
    "}",
    "fn f2h(x: f32) -> u32 {",
    "  let f = f32_bits(x); let a = f & 0x7FFFFFFFu;",
    "  let lined = f32_bits(bits_f32(a) + 0.5f) - 0x3F000000u;",
    "  let normal = (a - 0x38000000u + 0xFFFu + ((a >> 13u) & 1u)) >> 13u;",
    "  let finite = select(normal, lined, a < 0x38800000u);",
    "  let r = select(select(finite, 0x7C00u, a >= 0x477FF000u), 0x7E00u, a > 0x7F800000u);",
    "  return r | ((f >> 16u) & 0x8000u);",
    "}",
    NULL
};
static lines wgsl_bits = {
    "fn bits_insert(x: u32, y: u32, at: u32, count: u32) -> u32 { return insertBits(x, y, at, count); }",
    "fn bits_extract(x: u32, at: u32, count: u32) -> u32 { return extractBits(x, at, count); }",
    "fn bits_extract_signed(x: u32, at: u32, count: u32) -> u32 { return u32(extractBits(i32(x), at, count)); }",
    "fn bits_reverse(x: u32) -> u32 { return reverseBits(x); }",
    "fn find_low(x: u32) -> u32 { return firstTrailingBit(x); }",
    "fn find_high(x: u32) -> u32 { return firstLeadingBit(x); }",
    "fn find_high_signed(x: u32) -> u32 { return u32(firstLeadingBit(i32(x))); }",
    "fn high_product_u32(a: u32, b: u32) -> u32 {",
    "  let low = (a & 0xFFFFu) * (b & 0xFFFFu); let first = (a >> 16u) * (b & 0xFFFFu); let second = (a & 0xFFFFu) * "
    "(b >> 16u);",
    "  let middle = (low >> 16u) + (first & 0xFFFFu) + (second & 0xFFFFu);",
    "  return (a >> 16u) * (b >> 16u) + (first >> 16u) + (second >> 16u) + (middle >> 16u);",
    "}",
    "fn high_product_i32(a: u32, b: u32) -> u32 {",
    "  return high_product_u32(a, b) - select(0u, b, (a >> 31u) == 1u) - select(0u, a, (b >> 31u) == 1u);",
    "}",
    NULL
};
static lines wgsl_math = {
    "fn rint(x: f32) -> f32 { return round(x); }",
    "fn fabs(x: f32) -> f32 { return abs(x); }",
    "fn fmin(a: f32, b: f32) -> f32 { return select(min(a, b), select(a, b, is_nan(a)), is_nan(a) || is_nan(b)); }",
    "fn fmax(a: f32, b: f32) -> f32 { return select(max(a, b), select(a, b, is_nan(a)), is_nan(a) || is_nan(b)); }",
    "fn rsqrt(x: f32) -> f32 { return inverseSqrt(x); }",
    "fn fmod(a: f32, b: f32) -> f32 { return a % b; }",
    "fn smooth_step(a: f32, b: f32, x: f32) -> f32 { return smoothstep(a, b, x); }",
    "fn is_inf(x: f32) -> bool { return (f32_bits(x) & 0x7FFFFFFFu) == 0x7F800000u; }",
    "fn frexp_fraction(x: f32) -> f32 { return frexp(x).fract; }",
    "fn frexp_exponent(x: f32) -> i32 { return frexp(x).exp; }",
    NULL
};
static lines wgsl_dot = { "fn dot4_signed(a: u32, b: u32) -> i32 {",
                          "  return i8_of(a) * i8_of(b) + i8_of(a >> 8u) * i8_of(b >> 8u) +",
                          "         i8_of(a >> 16u) * i8_of(b >> 16u) + i8_of(a >> 24u) * i8_of(b >> 24u);",
                          "}",
                          "fn dot4_mixed(a: u32, b: u32) -> i32 {",
                          "  return i8_of(a) * i32(u8_of(b)) + i8_of(a >> 8u) * i32(u8_of(b >> 8u)) +",
                          "         i8_of(a >> 16u) * i32(u8_of(b >> 16u)) + i8_of(a >> 24u) * i32(b >> 24u);",
                          "}",
                          "fn dot4_unsigned(a: u32, b: u32) -> u32 {",
                          "  return u8_of(a) * u8_of(b) + u8_of(a >> 8u) * u8_of(b >> 8u) + u8_of(a >> 16u) * u8_of(b "
                          ">> 16u) + (a >> 24u) * (b >> 24u);",
                          "}",
                          NULL };

/* ---- the four, and OpenCL C with PTX ---- */

#define OPENCL_SPELLING \
    .scalar = { "uchar", "ushort", "uint", "ulong", "float", "double" }, \
    .kernel = "__kernel __attribute__((reqd_work_group_size(%u, %u, %u))) void"
static const hdi_spirv_spelling opencl = { .name = "OpenCL C", OPENCL_SPELLING,
                                           .parts = { opencl_core, opencl_no_contraction, opencl_half_by_integers,
                                                      opencl_double, opencl_bits, opencl_math, opencl_atomics,
                                                      opencl_atomics64, opencl_subgroups_shared, opencl_dot, NULL } };
static const hdi_spirv_spelling nvidia = { .name = "OpenCL C with PTX", OPENCL_SPELLING,
                                           .parts = { nvidia_core, opencl_no_contraction, hdi_spirv_ptx_half,
                                                      opencl_double, opencl_bits, opencl_math, opencl_atomics,
                                                      opencl_atomics64, nvidia_subgroups, nvidia_dot,
                                                      hdi_spirv_nvidia_spaces, hdi_spirv_ptx_matrix,
                                                      hdi_spirv_ptx_fragments } };
static const hdi_spirv_spelling cuda = { .name = "CUDA C++",
                                         .aligned = "alignas(%u) ",
                                         .kernel = "extern \"C\" __global__ void __launch_bounds__(%u * %u * %u)",
                                         .parts = { cuda_core, nothing, hdi_spirv_ptx_half, cuda_double, cxx_bits,
                                                    cxx_math, cxx_atomics, cxx_atomics64, cuda_subgroups, cuda_dot,
                                                    hdi_spirv_cuda_spaces, hdi_spirv_ptx_matrix,
                                                    hdi_spirv_ptx_fragments, hdi_spirv_cuda_half_pairs } };
static const hdi_spirv_spelling hip = { .name = "HIP C++",
                                        .aligned = "alignas(%u) ",
                                        .kernel = "extern \"C\" __global__ void __launch_bounds__(%u * %u * %u)",
                                        .parts = { hip_core, nothing, hip_half, hip_double, cxx_bits, cxx_math,
                                                   cxx_atomics, cxx_atomics64, hip_subgroups, opencl_dot, NULL } };

static const hdi_spirv_spelling wgsl = { .name = "WGSL",
                                         .parts = { wgsl_core, wgsl_no_contraction, wgsl_half, NULL, wgsl_bits,
                                                    wgsl_math, nothing, NULL, NULL, wgsl_dot, NULL } };

const hdi_spirv_spelling *hdi_spirv_spelling_of(const hdi_spirv_print_target *target) {
    switch (target->dialect) {
    case HDI_SPIRV_CUDA: return &cuda;
    case HDI_SPIRV_HIP: return &hip;
    case HDI_SPIRV_WGSL: return &wgsl;
    case HDI_SPIRV_OPENCL_C: break;
    }
    return hdi_spirv_is_ptx(target) ? &nvidia : &opencl;
}

const char *const *hdi_spirv_prelude(const hdi_spirv_print_target *target, hdi_spirv_part part) {
    const hdi_spirv_spelling *spelling = hdi_spirv_spelling_of(target);
    const bool is_plain = spelling == &opencl;
    if (is_plain && part == HDI_SPIRV_PART_HALF && target->offers & HDI_SPIRV_OFFERS_FP16) return opencl_half;
    if (is_plain && part == HDI_SPIRV_PART_SUBGROUPS && target->offers & HDI_SPIRV_OFFERS_SUBGROUPS)
        return opencl_subgroups;
    if (part == HDI_SPIRV_PART_HALF_PAIRS && !(target->offers & HDI_SPIRV_OFFERS_MATRIX_UNITS)) return NULL;
    return spelling->parts[part];
}
