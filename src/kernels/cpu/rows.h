/* rows.h: what the CPU kernels that walk along rows share, as glsl/rows.glsl on a GPU. A row's 256 lanes lie side by
 * side in arrays of 256 floats, so the order that exact mode states is also the one that fills vectors. */
#ifndef HDCPU_ROWS_H
#define HDCPU_ROWS_H

#include "kernels/cpu/quant.h"
#include "kernels/exact.h"
#include "kernels/kernel.h"

#define LANES 256u

static inline uint32_t group_number(uint32_t group_x, uint32_t group_y) { return group_y * HDI_GRID_WIDTH + group_x; }

/* `count` floats from element `first` on: in place where they are f32, else converted into `room`. */
static inline const float *floats_at(uint32_t type, const void *data, uint64_t first, uint64_t count, float *room) {
    if (type == HDI_TYPE_F32) return (const float *)data + first;
    hdcpu_load_floats(type, data, first, count, room);
    return room;
}
/* Stores `count` floats from element `first` on, rounded to a float type; every NaN becomes the one NaN. */
static inline void store_floats(uint32_t type, void *data, uint64_t first, uint64_t count, const float *values) {
    if (type == HDI_TYPE_F32) {
        float *out = (float *)data + first;
        for (uint64_t i = 0; i < count; i++) out[i] = exact_canonical(values[i]);
    } else if (type == HDI_TYPE_F16) {
        uint16_t *out = (uint16_t *)data + first;
        for (uint64_t i = 0; i < count; i++) out[i] = (uint16_t)exact_f32_to_f16(values[i]);
    } else {
        uint16_t *out = (uint16_t *)data + first;
        for (uint64_t i = 0; i < count; i++) out[i] = (uint16_t)exact_f32_to_bf16(values[i]);
    }
}

/* a * b + c, rounded once where the processor has it and the mode allows it. */
static inline float fused(float a, float b, float c) {
#if defined(__FMA__)
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

/* The lanes' sum as a tree: 128 + l, 64 + l, ... 1 + l. */
static inline float sum_of_lanes(float *lanes) {
    for (uint32_t half = LANES / 2; half > 0; half /= 2)
        for (uint32_t l = 0; l < half; l++) lanes[l] += lanes[l + half];
    return lanes[0];
}

/* Floats ordered as integers, NaN above everything, so that the largest does not depend on the order of asking. */
#define KEY_NAN   INT32_MAX
#define KEY_LEAST INT32_MIN
static inline int32_t key_of(uint32_t bits) {
    const uint32_t key = bits ^ ((0u - (bits >> 31)) & 0x7FFFFFFFu);
    return (int32_t)exact_select((bits & 0x7FFFFFFFu) > 0x7F800000u, (uint32_t)KEY_NAN, key);
}
static inline uint32_t bits_of_key(int32_t key) {
    const uint32_t bits = (uint32_t)key;
    return key == KEY_NAN ? EXACT_NAN : bits ^ ((0u - (bits >> 31)) & 0x7FFFFFFFu);
}
static inline float float_of_key(int32_t key) { return exact_from_bits(bits_of_key(key)); }
static inline int32_t largest_key(const float *values, uint64_t count, int32_t best) {
    for (uint64_t i = 0; i < count; i++) {
        const int32_t key = key_of(exact_bits(values[i]));
        best = key > best ? key : best;
    }
    return best;
}
#endif
