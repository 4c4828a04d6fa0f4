/* rope.c: glsl/rope.comp for a CPU, a group for a token: sines and cosines are made once and serve all of its heads. */
#include "kernels/cpu/rows.h"

#define PAIRS 128u

typedef struct turns { float sine[PAIRS], cosine[PAIRS]; } turns;

/* Bits 32..63 of position * frequency, modulo one turn; then the scaled sine and cosine. */
static void make_turns(const uint32_t *frequencies, uint32_t position, float magnitude, uint32_t count, turns *out) {
    uint32_t phases[PAIRS];
    for (uint32_t i = 0; i < count; i++)
        phases[i] = exact_mulhi(position, frequencies[2 * i + 1]) + position * frequencies[2 * i] -
                    ((position & 0x80000000u) != 0 ? frequencies[2 * i + 1] : 0);
    for (uint32_t i = 0; i < count; i++) {
        const exact_pair turn = exact_sincos_turns(phases[i]);
        out->sine[i] = turn.x * magnitude;
        out->cosine[i] = turn.y * magnitude;
    }
}

/* Turns `count` pairs from pair `begin` on of the head whose first element is `head`. */
static void turn_head(uint32_t type, uint32_t out_type, uint32_t pairing, uint32_t half, const void *x, void *y, uint64_t head,
                      uint32_t begin, uint32_t count, const turns *t) {
    float first_room[PAIRS], second_room[PAIRS], pairs[2 * PAIRS], a[PAIRS], b[PAIRS];
    if (pairing == 1) {
        const float *from = floats_at(type, x, head + 2 * begin, 2 * count, pairs);
        float turned[2 * PAIRS];
        for (uint32_t i = 0; i < count; i++) {
            turned[2 * i] = from[2 * i] * t->cosine[i] + from[2 * i + 1] * -t->sine[i];
            turned[2 * i + 1] = from[2 * i + 1] * t->cosine[i] + from[2 * i] * t->sine[i];
        }
        store_floats(out_type, y, head + 2 * begin, 2 * count, turned);
        return;
    }
    const float *first = floats_at(type, x, head + begin, count, first_room);
    const float *second = floats_at(type, x, head + half + begin, count, second_room);
    for (uint32_t i = 0; i < count; i++) {
        a[i] = first[i] * t->cosine[i] + second[i] * -t->sine[i];
        b[i] = second[i] * t->cosine[i] + first[i] * t->sine[i];
    }
    store_floats(out_type, y, head + begin, count, a);
    store_floats(out_type, y, head + half + begin, count, b);
}

HDCPU_KERNEL(rope) {
    (void)group_z;
    const uint32_t type = call->spec[HDI_ROPE_TYPE], out_type = call->spec[HDI_SPEC_OUT_TYPE], pairing = call->spec[HDI_ROPE_PAIRING];
    const uint32_t token = group_number(group_x, group_y), T = call->push[1], H = call->push[2], D = call->push[3], dims = call->push[4];
    if (token >= call->push[0] * T) return;
    const uint32_t position = ((const uint32_t *)call->bindings[1])[token % T], *frequencies = call->bindings[2];
    const uint64_t first = (uint64_t)token * H * D;
    for (uint32_t begin = 0; begin < dims / 2; begin += PAIRS) {
        const uint32_t count = HDI_MIN(PAIRS, dims / 2 - begin);
        turns t;
        make_turns(frequencies + 2 * begin, position, exact_from_bits(call->push[5]), count, &t);
        for (uint32_t h = 0; h < H; h++)
            turn_head(type, out_type, pairing, dims / 2, call->bindings[0], call->bindings[3], first + (uint64_t)h * D, begin, count, &t);
    }
    for (uint32_t h = 0; h < H; h++) {
        float room[LANES];
        for (uint32_t d = dims; d < D; d += LANES) { /* what does not turn */
            const uint64_t at = first + (uint64_t)h * D + d;
            const uint32_t width = HDI_MIN(LANES, D - d);
            store_floats(out_type, call->bindings[3], at, width, floats_at(type, call->bindings[0], at, width, room));
        }
    }
}
