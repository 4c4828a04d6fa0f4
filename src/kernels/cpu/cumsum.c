/* cumsum.c: glsl/cumsum.comp for a CPU, a group for a row or a part of a long one. The lanes' sums keep the order that
 * abi.h states; those of integers need none. */
#include "kernels/cpu/rows.h"

/* Each of the lanes plus all before it: by way of what is 1, 2, 4, ... 128 lanes before. */
static void add_lanes(float *lanes) {
    float others[LANES];
    for (uint32_t step = 1; step < LANES; step *= 2) {
        memcpy(others, lanes, sizeof others);
        for (uint32_t l = step; l < LANES; l++) lanes[l] = others[l] + others[l - step];
    }
}

static void reverse_lanes(uint32_t *values, uint32_t count) {
    for (uint32_t i = 0; i < count / 2; i++) {
        const uint32_t kept = values[i];
        values[i] = values[count - 1 - i];
        values[count - 1 - i] = kept;
    }
}

typedef struct running {
    bool     exclusive, reverse, totals;
    uint32_t type, out_type, n;
    uint64_t row; /* its first element */
    const void *x;
    void       *y;
} running;

/* Where the `count` elements lie that are summed from the i-th on. */
static uint64_t first_of(const running *r, uint32_t i, uint32_t count) {
    return r->row + (r->reverse ? r->n - i - count : i);
}

static float add_floats(const running *r, uint32_t begin, uint32_t end, float carry) {
    for (uint32_t tile = begin; tile < end; tile += LANES) {
        const uint32_t count = HDI_MIN(LANES, end - tile);
        float lanes[LANES] = { 0 }, sums[LANES];
        hdcpu_load_floats(r->type, r->x, first_of(r, tile, count), count, lanes);
        if (r->reverse) reverse_lanes((uint32_t *)(void *)lanes, count);
        add_lanes(lanes);
        sums[0] = carry;
        if (r->exclusive) for (uint32_t l = 1; l < count; l++) sums[l] = carry + lanes[l - 1];
        else for (uint32_t l = 0; l < count; l++) sums[l] = carry + lanes[l];
        if (r->reverse) reverse_lanes((uint32_t *)(void *)sums, count);
        if (!r->totals) store_floats(r->out_type, r->y, first_of(r, tile, count), count, sums);
        carry += lanes[LANES - 1];
    }
    return carry;
}

static uint32_t add_integers(const running *r, uint32_t begin, uint32_t end, uint32_t carry) {
    for (uint32_t i = begin; i < end; i++) {
        const uint64_t at = first_of(r, i, 1);
        const uint32_t sum = carry + ((const uint32_t *)r->x)[at];
        if (!r->totals) ((uint32_t *)r->y)[at] = r->exclusive ? carry : sum;
        carry = sum;
    }
    return carry;
}

HDCPU_KERNEL(cumsum) {
    (void)group_z;
    const uint32_t *spec = call->spec, form = spec[HDI_CUMSUM_FORM], stage = spec[HDI_CUMSUM_STAGE];
    const uint32_t n = call->push[1], parts = call->push[2], part = call->push[3];
    const uint32_t group = group_number(group_x, group_y), row = group / parts;
    if (row >= call->push[0]) return;
    const running r = { (form & HDI_CUMSUM_EXCLUSIVE) != 0, (form & HDI_CUMSUM_REVERSE) != 0,
                        stage == HDI_CUMSUM_TOTALS, spec[HDI_CUMSUM_TYPE], spec[HDI_SPEC_OUT_TYPE], n,
                        (uint64_t)row * n, call->bindings[0], call->bindings[2] };
    const uint32_t begin = group % parts * part, end = n - begin > part ? begin + part : n;
    uint32_t carry = stage == HDI_CUMSUM_BEHIND ? ((const uint32_t *)call->bindings[1])[group] : 0;
    if (r.type == HDI_TYPE_I32) carry = add_integers(&r, begin, end, carry);
    else carry = exact_bits(add_floats(&r, begin, end, exact_from_bits(carry)));
    if (r.totals) ((uint32_t *)r.y)[group] = carry;
}
