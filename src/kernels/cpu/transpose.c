/* transpose.c: the CPU form of transpose.comp. A tile's lines are read whole into scratch, and written from there
 * whole: each line of the caches is met once, though lines of the tensors lie far apart, often in one set of the
 * cache. */
#include "kernels/cpu/transpose.h"
#include "kernels/kernel.h"

typedef struct tile {
    const uint8_t *lines; /* along R, one for each element of C */
    size_t         pitch;
    uint8_t       *to;    /* lines along C, one for each element of R */
    size_t         step;
    uint32_t       r, c;  /* elements of the tile */
} tile;

/* ---- square tiles of vectors ---- */

typedef uint8_t  bytes16 __attribute__((vector_size(16)));
typedef uint16_t halves8 __attribute__((vector_size(16)));
typedef uint32_t words4  __attribute__((vector_size(16)));

#define LOW_4(a, b)   __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH_4(a, b)  __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define LOW_8(a, b)   __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH_8(a, b)  __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define LOW_16(a, b)  __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH_16(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)

/* One step of log2(N): lines i and i + N/2 side by side, element by element. */
#define PAIR(to, from, n, i)                                                                                           \
    to[2 * (i)] = LOW_##n(from[i], from[(i) + n / 2]);                                                                 \
    to[2 * (i) + 1] = HIGH_##n(from[i], from[(i) + n / 2]);
#define STEP_4(to, from)  PAIR(to, from, 4, 0) PAIR(to, from, 4, 1)
#define STEP_8(to, from)  PAIR(to, from, 8, 0) PAIR(to, from, 8, 1) PAIR(to, from, 8, 2) PAIR(to, from, 8, 3)
#define STEP_16(to, from) PAIR(to, from, 16, 0) PAIR(to, from, 16, 1) PAIR(to, from, 16, 2) PAIR(to, from, 16, 3) \
                          PAIR(to, from, 16, 4) PAIR(to, from, 16, 5) PAIR(to, from, 16, 6) PAIR(to, from, 16, 7)

static inline void turn_4(const uint8_t *from, size_t pitch, uint8_t *to, size_t step) {
    words4 a[4], b[4];
    for (size_t i = 0; i < 4; i++) memcpy(&a[i], from + i * pitch, 16);
    STEP_4(b, a) STEP_4(a, b)
    for (size_t i = 0; i < 4; i++) memcpy(to + i * step, &a[i], 16);
}
static inline void turn_8(const uint8_t *from, size_t pitch, uint8_t *to, size_t step) {
    halves8 a[8], b[8];
    for (size_t i = 0; i < 8; i++) memcpy(&a[i], from + i * pitch, 16);
    STEP_8(b, a) STEP_8(a, b) STEP_8(b, a)
    for (size_t i = 0; i < 8; i++) memcpy(to + i * step, &b[i], 16);
}
static inline void turn_16(const uint8_t *from, size_t pitch, uint8_t *to, size_t step) {
    bytes16 a[16], b[16];
    for (size_t i = 0; i < 16; i++) memcpy(&a[i], from + i * pitch, 16);
    STEP_16(b, a) STEP_16(a, b) STEP_16(b, a) STEP_16(a, b)
    for (size_t i = 0; i < 16; i++) memcpy(to + i * step, &a[i], 16);
}

/* What is no whole square: a line of the output from element `begin` on. */
#define REST(type, t, at, begin) { \
        type *line = (type *)(void *)((t)->to + (at) * (t)->step); \
        for (size_t i = (begin); i < (t)->c; i++) \
            line[i] = *(const type *)(const void *)((t)->lines + i * (t)->pitch + (at) * sizeof(type)); }
#define TURN(n, type) \
    static void turn_##type(const tile *t) { \
        size_t r = 0; \
        for (; r + n <= t->r; r += n) { \
            size_t c = 0; \
            for (; c + n <= t->c; c += n) \
                turn_##n(t->lines + c * t->pitch + r * sizeof(type), t->pitch, t->to + r * t->step + c * sizeof(type), \
                         t->step); \
            for (size_t k = r; k < r + n && c < t->c; k++) REST(type, t, k, c) \
        } \
        for (; r < t->r; r++) REST(type, t, r, 0) \
    }
TURN(4, uint32_t)
TURN(8, uint16_t)
TURN(16, uint8_t)

HDCPU_KERNEL(transpose) {
    const uint32_t *push = call->push, type = call->spec[HDI_TR_TYPE], side = call->spec[HDI_TR_TILE];
    const uint32_t bytes = type == HDI_TYPE_U8 ? 1 : type == HDI_TYPE_F16 || type == HDI_TYPE_BF16 ? 2 : 4;
    const uint32_t R = push[HDI_TR_PUSH_R], C = push[HDI_TR_PUSH_C], tiles_r = (R + side - 1) / side,
                   tiles_c = (C + side - 1) / side;
    const uint64_t group = (uint64_t)group_y * HDI_GRID_WIDTH + group_x, line = group / tiles_c;
    const uint32_t r = (uint32_t)(line % tiles_r) * side, c = (uint32_t)(group % tiles_c) * side;
    uint64_t outer = line / tiles_r;
    /* Strides may be negative: elements are counted as the planner does, by 32 bits. */
    uint32_t in = push[HDI_TR_PUSH_IN_FIRST] + c * push[HDI_TR_PUSH_IN_STRIDE] + r;
    uint32_t out = push[HDI_TR_PUSH_OUT_FIRST] + r * push[HDI_TR_PUSH_OUT_STRIDE] + c;
    for (uint32_t axis = HDI_TR_OUTER; axis-- > 0;) {
        const uint32_t length = push[HDI_TR_PUSH_LENGTHS + axis], at = (uint32_t)(outer % length);
        in += at * push[HDI_TR_PUSH_IN_OUTER + axis];
        out += at * push[HDI_TR_PUSH_OUT_OUTER + axis];
        outer /= length;
    }
    (void)group_z;
    if (outer > 0) return; /* behind the last tile */
    uint8_t *scratch = call->scratch;
    const tile t = { scratch, HDCPU_TRANSPOSE_PITCH(side, bytes), (uint8_t *)call->bindings[1] + (size_t)out * bytes,
                     (size_t)push[HDI_TR_PUSH_OUT_STRIDE] * bytes, HDI_MIN(side, R - r), HDI_MIN(side, C - c) };
    for (uint32_t i = 0; i < t.c; i++, in += push[HDI_TR_PUSH_IN_STRIDE])
        memcpy(scratch + i * t.pitch, (const uint8_t *)call->bindings[0] + (size_t)in * bytes, (size_t)t.r * bytes);
    if (bytes == 4) turn_uint32_t(&t);
    else if (bytes == 2) turn_uint16_t(&t);
    else turn_uint8_t(&t);
}
