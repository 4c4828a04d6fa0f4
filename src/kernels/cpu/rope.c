/* rope.c: glsl/rope.comp for a CPU, a group for a token: sines and cosines are made once and serve all of its heads. */
#include "kernels/cpu/rows.h"

/* The token under way; the arrays are in the worker's scratch. */
typedef struct state {
    uint32_t type, D, half;          /* of the elements that turn */
    float   *sine, *cosine;          /* of each pair, scaled */
    float   *head, *turned;          /* one head's elements */
} state;

/* Bits 32..63 of position * frequency, modulo one turn; then the scaled sine and cosine. */
static void make_turns(const state *s, const uint32_t *frequencies, uint32_t position, float magnitude) {
    for (uint32_t i = 0; i < s->half; i++) {
        const uint32_t phase = exact_mulhi(position, frequencies[2 * i + 1]) + position * frequencies[2 * i] -
                               ((position & 0x80000000u) != 0 ? frequencies[2 * i + 1] : 0);
        const exact_pair turn = exact_sincos_turns(phase);
        s->sine[i] = turn.x * magnitude;
        s->cosine[i] = turn.y * magnitude;
    }
}

/* What a separate operation would have stored and the next one read. */
static void round_floats(uint32_t type, float *values, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) values[i] = exact_canonical(values[i]);
    if (type == HDI_TYPE_F16)
        for (uint32_t i = 0; i < count; i++) values[i] = exact_f16_to_f32(exact_f32_to_f16(values[i]));
    if (type == HDI_TYPE_BF16)
        for (uint32_t i = 0; i < count; i++) values[i] = exact_bf16_to_f32(exact_f32_to_bf16(values[i]));
}

/* rms_norm of the head, in the row order of abi.h. */
static void normalise(const state *s, const void *weight, float eps) {
    float lanes[LANES] = { 0 }, room[LANES];
    for (uint32_t d = 0; d < s->D; d += LANES)
        for (uint32_t l = 0; l < HDI_MIN(LANES, s->D - d); l++) lanes[l] += s->head[d + l] * s->head[d + l];
    const float scale = exact_rsqrt(exact_div(sum_of_lanes(lanes), (float)s->D) + eps);
    for (uint32_t d = 0; d < s->D; d++) s->head[d] *= scale;
    for (uint32_t d = 0; weight != NULL && d < s->D; d += LANES) {
        const uint32_t width = HDI_MIN(LANES, s->D - d);
        const float *factors = floats_at(s->type, weight, d, width, room);
        for (uint32_t l = 0; l < width; l++) s->head[d + l] *= factors[l];
    }
    round_floats(s->type, s->head, s->D);
}

static void turn_head(const state *s, bool neighbours) {
    const float *head = s->head, *sine = s->sine, *cosine = s->cosine;
    if (neighbours) {
        for (uint32_t i = 0; i < s->half; i++) {
            s->turned[2 * i] = head[2 * i] * cosine[i] + head[2 * i + 1] * -sine[i];
            s->turned[2 * i + 1] = head[2 * i + 1] * cosine[i] + head[2 * i] * sine[i];
        }
    } else {
        for (uint32_t i = 0; i < s->half; i++) s->turned[i] = head[i] * cosine[i] + head[s->half + i] * -sine[i];
        for (uint32_t i = 0; i < s->half; i++)
            s->turned[s->half + i] = head[s->half + i] * cosine[i] + head[i] * sine[i];
    }
    memcpy(s->turned + 2 * s->half, head + 2 * s->half, (s->D - 2 * s->half) * sizeof *head); /* what does not turn */
}

HDCPU_KERNEL(rope) {
    (void)group_z;
    const uint32_t token = group_number(group_x, group_y), *push = call->push, H = push[2], D = push[3],
                   norm = call->spec[HDI_ROPE_NORM];
    if (token >= push[0]) return;
    uint64_t to = (uint64_t)token * H * D;
    if (call->spec[HDI_ROPE_ROWS] == 1) {
        const uint32_t batch = token / push[7];
        const int64_t row = (int64_t)((const int32_t *)call->bindings[4])[batch] + token % push[7];
        if (row < 0 || row >= (int64_t)push[8]) return;
        const uint32_t page = call->spec[HDI_ROPE_PAGE];
        uint64_t place = (uint64_t)batch * push[8] + (uint64_t)row;
        if (page != 0) {
            const int32_t number = ((const int32_t *)call->bindings[5])[place >> page];
            if (number < 0 || number >= (int64_t)push[9]) return;
            place = ((uint64_t)number << page) + ((uint64_t)row & ((1u << page) - 1));
        }
        to = place * H * D;
    }
    state s = { call->spec[HDI_ROPE_TYPE], D, push[4] / 2, call->scratch, NULL, NULL, NULL };
    s.cosine = s.sine + s.half;
    s.head = s.cosine + s.half;
    s.turned = s.head + D;
    make_turns(&s, call->bindings[2], ((const uint32_t *)call->bindings[1])[token % push[1]], exact_from_bits(push[5]));
    for (uint32_t h = 0; h < H; h++) {
        hdcpu_load_floats(s.type, call->bindings[0], ((uint64_t)token * H + h) * D, D, s.head);
        if (norm != 0) normalise(&s, norm == 2 ? call->bindings[3] : NULL, exact_from_bits(push[6]));
        turn_head(&s, call->spec[HDI_ROPE_PAIRING] == 1);
        round_floats(s.type, s.turned, D);
        store_floats(call->spec[HDI_SPEC_OUT_TYPE], call->bindings[6], to + (uint64_t)h * D, D, s.turned);
    }
}
