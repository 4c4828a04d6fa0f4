/* dialect_ptx.c: preludes (dialect.c) made of PTX, NVIDIA's instructions: one text for CUDA C++ and for OpenCL C of
 * NVIDIA's compiler. There are no templates in it, functions go by names and, where memory has spaces, by overloads. */
#include "spirv/print.h"

const char *const hdi_spirv_ptx_half[] = {
    "typedef unsigned short f16; typedef f16 f16_any MAY_ALIAS;",
    "INLINE f32 h2f(f16 x) { f32 r; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(r) : \"h\"(x)); return r; }",
    "INLINE f16 f2h(f32 x) { f16 r; asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(r) : \"f\"(x)); return r; }",
    /* what would be subnormal is 0: one instruction of five */
    "INLINE f32 relaxed_exp2(f32 x) { f32 r; asm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(r) : \"f\"(x)); return r; }",
    NULL
};

/* Two halves in one instruction (from sm_53 on; asked of those with matrix units). CUDA C++ has templates: the type of
 * a pair comes behind the prelude. Without .rn they might be contracted. */
const char *const hdi_spirv_cuda_half_pairs[] = {
    "#define HALF_PAIR(name) \\",
    "template <class T> INLINE T half_pair_##name(T a, T b) { \\",
    "  u32 x = a.x | (u32)a.y << 16, y = b.x | (u32)b.y << 16, r; \\",
    "  asm(#name \".rn.f16x2 %0, %1, %2;\" : \"=r\"(r) : \"r\"(x), \"r\"(y)); \\",
    "  return NEW(T){(f16)r, (f16)(r >> 16)}; \\",
    "}",
    "HALF_PAIR(add) HALF_PAIR(sub) HALF_PAIR(mul)",
    NULL
};

/* Spaces of memory that a matrix may lie in, their names in PTX, and whether `p` lies in shared memory: CUDA's pointers
 * know theirs. */
const char *const hdi_spirv_cuda_spaces[] = {
    "#define SPACES(DEFINE) DEFINE(, \"\", __isShared(p))",
    "#define ADDRESS(p) (p)",
    "#define SHARED_ADDRESS(p) ((u32)__cvta_generic_to_shared(p))",
    NULL
};
const char *const hdi_spirv_nvidia_spaces[] = {
    "#define SPACES(DEFINE) DEFINE(__global, \".global\", false) DEFINE(__local, \".shared\", true)",
    "#define ADDRESS(p) ((u64)(p))",
    "#define SHARED_ADDRESS(p) ((u32)(u64)(p))",
    NULL
};
/* What both kinds of matrices have: sums, by their name's beginning and how many of them a lane holds. */
#define PTX_MATRIX_SUMS \
    "#define EACH(use, count, name, value) \\", \
    "INLINE matrix_##use##_f32 matrix_##name(matrix_##use##_f32 a, matrix_##use##_f32 b) { \\", \
    "  for (int i = 0; i < count; i++) a.r[i] = value; return a; \\", \
    "}", \
    "#define SUMS(use, count) \\", \
    "INLINE matrix_##use##_f32 matrix_fill_##use##_f32(f32 x) { \\", \
    "  matrix_##use##_f32 m; for (int i = 0; i < count; i++) m.r[i] = x; return m; \\", \
    "} \\", \
    "EACH(use, count, add, a.r[i] + b.r[i]) EACH(use, count, sub, a.r[i] - b.r[i]) \\", \
    "EACH(use, count, mul, a.r[i] * b.r[i]) EACH(use, count, div, a.r[i] / b.r[i]) \\", \
    "EACH(use, count, exact_add, exact_add(a.r[i], b.r[i])) \\", \
    "EACH(use, count, exact_sub, exact_sub(a.r[i], b.r[i])) \\", \
    "EACH(use, count, exact_mul, exact_mul(a.r[i], b.r[i]))", \
    "SUMS(c, 8)"
/* Tensor cores by their instructions: headers would have to be found. Before sm_80 they multiply only halves, and how
 * the elements of a and b lie depends on how they were loaded; what remembers it is known to the compiler, which keeps
 * nothing of it. */
const char *const hdi_spirv_ptx_matrix[] = {
    "typedef struct { u32 r[8]; bool columns; } matrix_a_f16, matrix_b_f16;",
    "typedef struct { f32 r[8]; } matrix_c_f32;",
    "#define LOAD(kind, way, space) \\",
    "  asm volatile(\"wmma.load.\" kind \".sync.aligned.\" way \".m16n16k16\" space \".f16 \" \\",
    "    \"{%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;\" \\",
    "    : \"=r\"(m.r[0]), \"=r\"(m.r[1]), \"=r\"(m.r[2]), \"=r\"(m.r[3]), \\",
    "      \"=r\"(m.r[4]), \"=r\"(m.r[5]), \"=r\"(m.r[6]), \"=r\"(m.r[7]) \\",
    "    : \"l\"(ADDRESS(p)), \"r\"(stride) : \"memory\")",
    "#define LOAD_SUMS(way, space) \\",
    "  asm volatile(\"wmma.load.c.sync.aligned.\" way \".m16n16k16\" space \".f32 \" \\",
    "    \"{%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;\" \\",
    "    : \"=f\"(m.r[0]), \"=f\"(m.r[1]), \"=f\"(m.r[2]), \"=f\"(m.r[3]), \\",
    "      \"=f\"(m.r[4]), \"=f\"(m.r[5]), \"=f\"(m.r[6]), \"=f\"(m.r[7]) \\",
    "    : \"l\"(ADDRESS(p)), \"r\"(stride) : \"memory\")",
    "#define STORE_SUMS(way, space) \\",
    "  asm volatile(\"wmma.store.d.sync.aligned.\" way \".m16n16k16\" space \".f32 \" \\",
    "    \"[%8], {%0, %1, %2, %3, %4, %5, %6, %7}, %9;\" \\",
    "    :: \"f\"(m.r[0]), \"f\"(m.r[1]), \"f\"(m.r[2]), \"f\"(m.r[3]), \"f\"(m.r[4]), \"f\"(m.r[5]), \"f\"(m.r[6]), "
    "\"f\"(m.r[7]), \\",
    "    \"l\"(ADDRESS(p)), \"r\"(stride) : \"memory\")",
    "#define ACCESSES(SPACE, space, is_shared) \\",
    "INLINE matrix_a_f16 matrix_load_a_f16(const SPACE f16 *p, u32 stride, bool columns) { \\",
    "  matrix_a_f16 m; m.columns = columns; \\",
    "  if (columns) LOAD(\"a\", \"col\", space); else LOAD(\"a\", \"row\", space); \\",
    "  return m; \\",
    "} \\",
    "INLINE matrix_b_f16 matrix_load_b_f16(const SPACE f16 *p, u32 stride, bool columns) { \\",
    "  matrix_b_f16 m; m.columns = columns; \\",
    "  if (columns) LOAD(\"b\", \"col\", space); else LOAD(\"b\", \"row\", space); \\",
    "  return m; \\",
    "} \\",
    "INLINE matrix_c_f32 matrix_load_c_f32(const SPACE f32 *p, u32 stride, bool columns) { \\",
    "  matrix_c_f32 m; \\",
    "  if (columns) LOAD_SUMS(\"col\", space); else LOAD_SUMS(\"row\", space); \\",
    "  return m; \\",
    "} \\",
    "INLINE void matrix_store(SPACE f32 *p, matrix_c_f32 m, u32 stride, bool columns) { \\",
    "  if (columns) STORE_SUMS(\"col\", space); else STORE_SUMS(\"row\", space); \\",
    "}",
    "SPACES(ACCESSES)",
    "INLINE matrix_a_f16 matrix_fill_a_f16(f16 x) {",
    "  matrix_a_f16 m; for (int i = 0; i < 8; i++) m.r[i] = x | (u32)x << 16;",
    "  m.columns = false; return m;",
    "}",
    "#define matrix_fill_b_f16(x) matrix_fill_a_f16(x)",
    PTX_MATRIX_SUMS,
    "#define MULTIPLY(ways) \\",
    "  asm(\"wmma.mma.sync.aligned.\" ways \".m16n16k16.f32.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, \" \\",
    "    \"{%8, %9, %10, %11, %12, %13, %14, %15}, {%16, %17, %18, %19, %20, %21, %22, %23}, \" \\",
    "    \"{%24, %25, %26, %27, %28, %29, %30, %31};\" \\",
    "    : \"=f\"(d.r[0]), \"=f\"(d.r[1]), \"=f\"(d.r[2]), \"=f\"(d.r[3]), \\",
    "      \"=f\"(d.r[4]), \"=f\"(d.r[5]), \"=f\"(d.r[6]), \"=f\"(d.r[7]) \\",
    "    : \"r\"(a.r[0]), \"r\"(a.r[1]), \"r\"(a.r[2]), \"r\"(a.r[3]), \"r\"(a.r[4]), \"r\"(a.r[5]), \"r\"(a.r[6]), "
    "\"r\"(a.r[7]), \\",
    "      \"r\"(b.r[0]), \"r\"(b.r[1]), \"r\"(b.r[2]), \"r\"(b.r[3]), \"r\"(b.r[4]), \"r\"(b.r[5]), \"r\"(b.r[6]), "
    "\"r\"(b.r[7]), \\",
    "      \"f\"(c.r[0]), \"f\"(c.r[1]), \"f\"(c.r[2]), \"f\"(c.r[3]), \"f\"(c.r[4]), \"f\"(c.r[5]), \"f\"(c.r[6]), "
    "\"f\"(c.r[7]))",
    "INLINE matrix_c_f32 matrix_multiply(matrix_a_f16 a, matrix_b_f16 b, matrix_c_f32 c) {",
    "  matrix_c_f32 d;",
    "  if (a.columns) { if (b.columns) MULTIPLY(\"col.col\"); else MULTIPLY(\"col.row\"); }",
    "  else if (b.columns) MULTIPLY(\"row.col\");",
    "  else MULTIPLY(\"row.row\");",
    "  return d;",
    "}",
    NULL
};
/* From sm_80 on: here an element's place in each lane is known, of halves, of numbers of 8 bits and of their sums. */
const char *const hdi_spirv_ptx_fragments[] = {
    "typedef struct { u32 r[4]; } matrix_a_f16, matrix_b_f16, matrix_a_u8, matrix_b_u8;",
    "typedef struct { u32 r[4]; } matrix_a_bf16, matrix_b_bf16;",
    "typedef struct { u32 r[8]; } matrix_c_u32;",
    "typedef struct { f32 r[8]; } matrix_c_f32;",
    /* of 8 columns, the first half of the registers of 16 */
    "typedef struct { u32 r[2]; } matrix_b8_u8;",
    "typedef struct { u32 r[4]; } matrix_c8_u32;",
    "typedef struct { f32 r[4]; } matrix_c8_f32;",
    "INLINE u32 matrix_lane(void) { u32 lane; asm(\"mov.u32 %0, %%laneid;\" : \"=r\"(lane)); return lane; }",
    "INLINE u32 matrix_row(u32 i) { return matrix_lane() / 4u + i / 2u % 2u * 8u; }",
    "INLINE u32 matrix_column(u32 i) { return matrix_lane() % 4u * 2u + i % 2u + i / 4u * 8u; }",
    "INLINE u32 matrix_place(u32 i, u32 stride, bool columns) {",
    "  return columns ? matrix_column(i) * stride + matrix_row(i) : matrix_row(i) * stride + matrix_column(i);",
    "}",
    /* A register of a and b is four bytes along the depth, of lines 0 to 15 and the bytes of 32 numbers, or of 16
     * bytes, of four squares of 8 such rows, in the order of the registers; squares of halves may be turned, those of
     * numbers of 8 bits not. */
    "#define SQUARES(turned) \\",
    "  asm volatile(\"ldmatrix.sync.aligned.m8n8.x4\" turned \".shared.b16 {%0, %1, %2, %3}, [%4];\" \\",
    "    : \"=r\"(m.r[0]), \"=r\"(m.r[1]), \"=r\"(m.r[2]), \"=r\"(m.r[3]) : \"r\"(at) : \"memory\")",
    "#define HALVES(use, number, SPACE, is_shared, by_lines, of_line, of_depth) \\",
    "INLINE matrix_##use##_##number matrix_load_##use##_##number(const SPACE f16 *p, u32 stride, bool columns) { \\",
    "  matrix_##use##_##number m; u32 lane = matrix_lane(); \\",
    "  u32 line = by_lines ? stride : 1u, depth = by_lines ? 1u : stride; \\",
    "  if (is_shared) { \\",
    "    u32 square = lane / 8u, row = lane % 8u; \\",
    "    u32 at = SHARED_ADDRESS(p + of_line(square) * 8u * line + of_depth(square) * 8u * depth + row * stride); \\",
    "    if (by_lines) SQUARES(\"\"); else SQUARES(\".trans\"); \\",
    "  } else for (u32 i = 0u; i < 4u; i++) \\",
    "    m.r[i] = matrix_two( \\",
    "      p + (lane / 4u + of_line(i) * 8u) * line + (lane % 4u * 2u + of_depth(i) * 8u) * depth, depth); \\",
    "  return m; \\",
    "}",
    "#define BYTES(use, SPACE, is_shared, by_lines, of_line, of_depth) \\",
    "INLINE matrix_##use##_u8 matrix_load_##use##_u8(const SPACE u8 *p, u32 stride, bool columns) { \\",
    "  matrix_##use##_u8 m; u32 lane = matrix_lane(); \\",
    "  u32 line = by_lines ? stride : 1u, depth = by_lines ? 1u : stride; \\",
    "  if (is_shared && by_lines) { \\",
    "    u32 square = lane / 8u, row = lane % 8u; \\",
    "    u32 at = SHARED_ADDRESS(p + (of_line(square) * 8u + row) * stride + of_depth(square) * 16u); \\",
    "    SQUARES(\"\"); \\",
    "  } else for (u32 i = 0u; i < 4u; i++) \\",
    "    m.r[i] = matrix_four( \\",
    "      p + (lane / 4u + of_line(i) * 8u) * line + (lane % 4u * 4u + of_depth(i) * 16u) * depth, depth); \\",
    "  return m; \\",
    "}",
    "#define EIGHT_COLUMNS(SPACE, is_shared) \\",
    "INLINE matrix_b8_u8 matrix_load_b8_u8(const SPACE u8 *p, u32 stride, bool columns) { \\",
    "  matrix_b8_u8 m; u32 lane = matrix_lane(); \\",
    "  u32 line = columns ? stride : 1u, depth = columns ? 1u : stride; \\",
    "  if (is_shared && columns) { \\",
    "    u32 at = SHARED_ADDRESS(p + lane % 8u * stride + lane / 8u % 2u * 16u); \\",
    "    asm volatile(\"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];\" \\",
    "      : \"=r\"(m.r[0]), \"=r\"(m.r[1]) : \"r\"(at) : \"memory\"); \\",
    "  } else for (u32 i = 0u; i < 2u; i++) \\",
    "    m.r[i] = matrix_four(p + lane / 4u * line + (lane % 4u * 4u + i * 16u) * depth, depth); \\",
    "  return m; \\",
    "}",
    "#define SUM_ACCESSES(SPACE, use, count, T) \\",
    "INLINE matrix_##use##_##T matrix_load_##use##_##T(const SPACE T *p, u32 stride, bool columns) { \\",
    "  matrix_##use##_##T m; \\",
    "  for (u32 i = 0u; i < count; i++) m.r[i] = ((const SPACE T##_any *)p)[matrix_place(i, stride, columns)]; \\",
    "  return m; \\",
    "} \\",
    "INLINE void matrix_store(SPACE T *p, matrix_##use##_##T m, u32 stride, bool columns) { \\",
    "  for (u32 i = 0u; i < count; i++) ((SPACE T##_any *)p)[matrix_place(i, stride, columns)] = m.r[i]; \\",
    "}",
    "#define LOW(i) ((i) % 2u)",
    "#define HIGH(i) ((i) / 2u)",
    "#define ACCESSES(SPACE, space, is_shared) \\",
    "INLINE u32 matrix_two(const SPACE f16 *p, u32 step) { \\",
    "  return step == 1u ? *(const SPACE u32_any *)p : p[0] | (u32)p[step] << 16; \\",
    "} \\",
    "INLINE u32 matrix_four(const SPACE u8 *p, u32 step) { \\",
    "  if (step == 1u) return *(const SPACE u32_any *)p; \\",
    "  return p[0] | (u32)p[step] << 8 | (u32)p[2u * step] << 16 | (u32)p[3u * step] << 24; \\",
    "} \\",
    "HALVES(a, f16, SPACE, is_shared, !columns, LOW, HIGH) HALVES(b, f16, SPACE, is_shared, columns, HIGH, LOW) \\",
    "HALVES(a, bf16, SPACE, is_shared, !columns, LOW, HIGH) HALVES(b, bf16, SPACE, is_shared, columns, HIGH, LOW) \\",
    "BYTES(a, SPACE, is_shared, !columns, LOW, HIGH) BYTES(b, SPACE, is_shared, columns, HIGH, LOW) \\",
    "EIGHT_COLUMNS(SPACE, is_shared) \\",
    "SUM_ACCESSES(SPACE, c, 8u, u32) SUM_ACCESSES(SPACE, c, 8u, f32) \\",
    "SUM_ACCESSES(SPACE, c8, 4u, u32) SUM_ACCESSES(SPACE, c8, 4u, f32)",
    "SPACES(ACCESSES)",
    "INLINE matrix_a_f16 matrix_fill_a_f16(f16 x) {",
    "  matrix_a_f16 m; for (int i = 0; i < 4; i++) m.r[i] = x | (u32)x << 16; return m;",
    "}",
    "#define matrix_fill_b_f16(x) matrix_fill_a_f16(x)",
    "INLINE matrix_a_u8 matrix_fill_a_u8(u8 x) {",
    "  matrix_a_u8 m; for (int i = 0; i < 4; i++) m.r[i] = x * 0x01010101u; return m;",
    "}",
    "#define matrix_fill_b_u8(x) matrix_fill_a_u8(x)",
    PTX_MATRIX_SUMS,
    "SUMS(c8, 4)",
    "#define WHOLE_SUMS(use, count) \\",
    "INLINE matrix_##use##_u32 matrix_fill_##use##_u32(u32 x) { \\",
    "  matrix_##use##_u32 m; for (int i = 0; i < count; i++) m.r[i] = x; return m; \\",
    "} \\",
    "INLINE matrix_##use##_f32 matrix_to_f32(matrix_##use##_u32 a) { \\",
    "  matrix_##use##_f32 m; for (int i = 0; i < count; i++) m.r[i] = (f32)(i32)a.r[i]; return m; \\",
    "}",
    "WHOLE_SUMS(c, 8) WHOLE_SUMS(c8, 4)",
    "#define FACTORS(number) \\",
    "INLINE matrix_a_##number matrix_to_##number(matrix_c_f32 a) { \\",
    "  matrix_a_##number m; \\",
    "  for (int i = 0; i < 4; i++) \\",
    "    asm(\"cvt.rn.\" #number \"x2.f32 %0, %1, %2;\" \\",
    "        : \"=r\"(m.r[i]) : \"f\"(a.r[2 * i + 1]), \"f\"(a.r[2 * i])); \\",
    "  return m; \\",
    "}",
    "FACTORS(f16) FACTORS(bf16)",
    "INLINE f32 matrix_across(f32 x, u32 by) {",
    "  u32 r; asm volatile(\"shfl.sync.bfly.b32 %0, %1, %2, 31, -1;\" : \"=r\"(r) : \"r\"(f32_bits(x)), \"r\"(by));",
    "  return bits_f32(r);",
    "}",
    /* A row of sums lies in four neighbours, four numbers in each. */
    "#define REDUCTION(name, value) \\",
    "INLINE matrix_c_f32 matrix_row_##name(matrix_c_f32 m) { \\",
    "  for (int i = 0; i < 4; i += 2) { \\",
    "    f32 x = m.r[i], y = m.r[i + 1]; x = value; y = m.r[i + 4]; x = value; y = m.r[i + 5]; x = value; \\",
    "    y = matrix_across(x, 1u); x = value; y = matrix_across(x, 2u); x = value; \\",
    "    m.r[i] = m.r[i + 1] = m.r[i + 4] = m.r[i + 5] = x; \\",
    "  } return m; \\",
    "}",
    "REDUCTION(sum, x + y) REDUCTION(max, fmax(x, y))",
    "#define MULTIPLY(number) \\",
    "INLINE matrix_c_f32 matrix_multiply(matrix_a_##number a, matrix_b_##number b, matrix_c_f32 c) { \\",
    "  for (int i = 0; i < 2; i++) \\",
    "    asm(\"mma.sync.aligned.m16n8k16.row.col.f32.\" #number \".\" #number \".f32 {%0, %1, %2, %3}, \" \\",
    "        \"{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\" \\",
    "        : \"+f\"(c.r[4 * i]), \"+f\"(c.r[4 * i + 1]), \"+f\"(c.r[4 * i + 2]), \"+f\"(c.r[4 * i + 3]) \\",
    "        : \"r\"(a.r[0]), \"r\"(a.r[1]), \"r\"(a.r[2]), \"r\"(a.r[3]), \\",
    "          \"r\"(b.r[2 * i]), \"r\"(b.r[2 * i + 1])); \\",
    "  return c; \\",
    "}",
    "MULTIPLY(f16) MULTIPLY(bf16)",
    "#define WHOLE_MULTIPLY(b_use, c_use, count) \\",
    "INLINE matrix_##c_use##_u32 matrix_multiply(matrix_a_u8 a, matrix_##b_use##_u8 b, matrix_##c_use##_u32 c) { \\",
    "  for (int i = 0; i < count; i++) \\",
    "    asm(\"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, \" \\",
    "        \"{%0, %1, %2, %3};\" \\",
    "        : \"+r\"(c.r[4 * i]), \"+r\"(c.r[4 * i + 1]), \"+r\"(c.r[4 * i + 2]), \"+r\"(c.r[4 * i + 3]) \\",
    "        : \"r\"(a.r[0]), \"r\"(a.r[1]), \"r\"(a.r[2]), \"r\"(a.r[3]), \\",
    "          \"r\"(b.r[2 * i]), \"r\"(b.r[2 * i + 1])); \\",
    "  return c; \\",
    "}",
    "WHOLE_MULTIPLY(b, c, 2) WHOLE_MULTIPLY(b8, c8, 1)",
    NULL
};
