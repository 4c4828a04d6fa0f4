/* reduce.c: glsl/reduce.comp for a CPU: a group is one row, or one part of a long row, or WORKGROUP columns. Sums keep
 * the order that abi.h states, with the lanes of a row or the columns side by side in vectors. */
#include "kernels/cpu/rows.h"

typedef struct reduction {
    uint32_t op, type, out_type, form, stage;
    uint32_t n, inner, parts, whole, part; /* whole: argmax: elements of the row in front of these */
    const void *x, *second;
    void *y;
} reduction;

static bool picks(const reduction *r) {
    return r->op == HDI_REDUCE_MAX || r->op == HDI_REDUCE_MIN || r->op == HDI_REDUCE_ARGMAX;
}

/* The keys by which elements are picked, and a key's value again. For argmax -0 equals 0. */
static void pick_keys(const reduction *r, const uint32_t *bits, uint32_t count, int32_t *keys) {
    const uint32_t flip = r->op == HDI_REDUCE_MIN ? UINT32_MAX : 0;
    const bool zeros_equal = r->op == HDI_REDUCE_ARGMAX;
    if (r->type == HDI_TYPE_I32) {
        for (uint32_t l = 0; l < count; l++) keys[l] = (int32_t)(bits[l] ^ flip);
        return;
    }
    for (uint32_t l = 0; l < count; l++) {
        const uint32_t key = (uint32_t)key_of(bits[l] & (0u - (uint32_t)(bits[l] != EXACT_SIGN || !zeros_equal)));
        keys[l] = (int32_t)exact_select(key == (uint32_t)KEY_NAN, key, key ^ flip);
    }
}
static uint32_t pick_bits(const reduction *r, int32_t key) {
    if (r->type != HDI_TYPE_I32 && key == KEY_NAN) return EXACT_NAN;
    const int32_t plain = r->op == HDI_REDUCE_MIN ? ~key : key;
    return r->type == HDI_TYPE_I32 ? (uint32_t)plain : bits_of_key(plain);
}

/* Elements as words of the computing type: in place where they are such already. */
static inline const uint32_t *words_at(const reduction *r, uint64_t first, uint64_t count, float *room) {
    if (r->type == HDI_TYPE_I32) return (const uint32_t *)r->x + first;
    return (const uint32_t *)(const void *)floats_at(r->type, r->x, first, count, room);
}

static void store_all(const reduction *r, uint64_t at, uint32_t count, const uint32_t *bits) {
    if (r->op == HDI_REDUCE_ARGMAX || r->out_type == HDI_TYPE_I32)
        memcpy((uint32_t *)r->y + at, bits, count * sizeof *bits);
    else store_floats(r->out_type, r->y, at, count, (const float *)(const void *)bits);
}
static void store(const reduction *r, uint64_t at, uint32_t bits) { store_all(r, at, 1, &bits); }
static void store_pair(const reduction *r, uint64_t at, int32_t best, uint32_t best_at) {
    ((uint32_t *)r->y)[2 * at] = pick_bits(r, best);
    ((uint32_t *)r->y)[2 * at + 1] = best_at;
}
static void finish(const reduction *r, uint32_t count, float *sums) {
    if (r->form == 1 && r->stage & HDI_REDUCE_IS_PART) return;
    const float whole = (float)r->whole;
    if (r->op == HDI_REDUCE_MEAN) for (uint32_t l = 0; l < count; l++) sums[l] = exact_div(sums[l], whole);
    for (uint32_t l = 0; l < count; l++) sums[l] = exact_canonical(sums[l]);
}
static uint32_t finished(const reduction *r, float sum) {
    finish(r, 1, &sum);
    return exact_bits(sum);
}

/* The lanes' product as a tree, as rows.h has their sum. */
static float product_of_lanes(float *lanes) {
    for (uint32_t half = LANES / 2; half > 0; half /= 2)
        for (uint32_t l = 0; l < half; l++) lanes[l] *= lanes[l + half];
    return lanes[0];
}
static uint32_t multiply_row(const reduction *r, uint64_t first, uint32_t count) {
    float lanes[LANES], room[LANES];
    uint32_t total = 1;
    for (uint32_t l = 0; l < LANES; l++) lanes[l] = 1.0f;
    for (uint32_t i = 0; i < count; i += LANES) {
        const uint32_t width = HDI_MIN(LANES, count - i), *words = words_at(r, first + i, width, room);
        if (r->type == HDI_TYPE_I32) for (uint32_t l = 0; l < width; l++) total *= words[l];
        else for (uint32_t l = 0; l < width; l++) lanes[l] *= ((const float *)(const void *)words)[l];
    }
    return r->type == HDI_TYPE_I32 ? total : finished(r, product_of_lanes(lanes));
}

static uint32_t add_row(const reduction *r, uint64_t first, uint32_t count) {
    float lanes[LANES] = { 0 }, room[LANES], second_room[LANES];
    uint32_t total = 0;
    for (uint32_t i = 0; i < count; i += LANES) {
        const uint32_t width = HDI_MIN(LANES, count - i);
        if (r->type == HDI_TYPE_I32) {
            const uint32_t *x = (const uint32_t *)r->x + first + i;
            for (uint32_t l = 0; l < width; l++) total += x[l];
            continue;
        }
        const float *x = floats_at(r->type, r->x, first + i, width, room);
        if (r->op == HDI_REDUCE_DOT) {
            const float *second = floats_at(r->type, r->second, first + i, width, second_room);
            for (uint32_t l = 0; l < width; l++) lanes[l] += x[l] * second[l];
        } else {
            for (uint32_t l = 0; l < width; l++) lanes[l] += x[l];
        }
    }
    return r->type == HDI_TYPE_I32 ? total : finished(r, sum_of_lanes(lanes));
}

/* The best key of `count` elements; `out_at` is where it comes first. */
static int32_t pick_row(const reduction *r, uint64_t first, uint32_t count, uint32_t *out_at) {
    float room[LANES];
    int32_t best = KEY_LEAST;
    *out_at = 0;
    for (uint32_t i = 0; i < count; i += LANES) {
        const uint32_t width = HDI_MIN(LANES, count - i);
        int32_t keys[LANES], here = KEY_LEAST;
        pick_keys(r, words_at(r, first + i, width, room), width, keys);
        for (uint32_t l = 0; l < width; l++) here = keys[l] > here ? keys[l] : here;
        if (i > 0 && here <= best) continue;
        uint32_t l = 0;
        while (keys[l] != here) l++;
        best = here;
        *out_at = i + l;
    }
    return best;
}
/* The same over stage 1's pairs of value and index. */
static uint32_t pick_pair(const reduction *r, uint64_t first, uint32_t count) {
    const uint32_t *pairs = (const uint32_t *)r->x + 2 * first;
    uint32_t at = pairs[1];
    int32_t best = KEY_LEAST;
    for (uint32_t i = 0; i < count; i++) {
        int32_t key;
        pick_keys(r, pairs + 2 * i, 1, &key);
        if (key > best) { best = key; at = pairs[2 * i + 1]; }
    }
    return at;
}

static void reduce_row(const reduction *r, uint32_t group) {
    uint32_t begin = 0, count = r->n;
    uint64_t first = (uint64_t)group * r->n;
    if (r->stage == 1) {
        begin = group % r->parts * r->part;
        count = HDI_MIN(r->part, r->n - begin);
        first = (uint64_t)(group / r->parts) * r->n + begin;
    }
    if (r->op == HDI_REDUCE_PROD) store(r, group, multiply_row(r, first, count));
    else if (!picks(r)) store(r, group, add_row(r, first, count));
    else if (r->op == HDI_REDUCE_ARGMAX && r->stage == 2) store(r, group, pick_pair(r, first, count));
    else {
        uint32_t at;
        const int32_t best = pick_row(r, first, count, &at);
        if (r->op != HDI_REDUCE_ARGMAX) store(r, group, pick_bits(r, best));
        else if (r->stage == 0) store(r, group, at);
        else store_pair(r, group, best, r->whole + begin + at);
    }
}

/* What columns have come to in launches before, as words of the computing type. */
static void go_on(const reduction *r, uint64_t out, uint32_t width, void *words) {
    if (r->stage & HDI_REDUCE_GOES_ON) memcpy(words, (const uint32_t *)r->y + out, width * sizeof(uint32_t));
}

/* `width` <= LANES neighbouring columns; the first one begins at element `first`, its result is element `out`. */
static void add_columns(const reduction *r, uint64_t first, uint64_t out, uint32_t width) {
    float total[LANES] = { 0 }, block[LANES] = { 0 }, room[LANES], second_room[LANES];
    uint32_t whole[LANES] = { 0 };
    go_on(r, out, width, r->type == HDI_TYPE_I32 ? (void *)whole : total);
    for (uint32_t j = 0; j < r->n; j++) {
        const uint64_t row = first + (uint64_t)j * r->inner;
        if (r->type == HDI_TYPE_I32) {
            const uint32_t *x = (const uint32_t *)r->x + row;
            for (uint32_t l = 0; l < width; l++) whole[l] += x[l];
            continue;
        }
        const float *x = floats_at(r->type, r->x, row, width, room);
        if (r->op == HDI_REDUCE_DOT) {
            const float *second = floats_at(r->type, r->second, row, width, second_room);
            for (uint32_t l = 0; l < width; l++) block[l] += x[l] * second[l];
        } else {
            for (uint32_t l = 0; l < width; l++) block[l] += x[l];
        }
        if (j % HDI_MM_BLOCK != HDI_MM_BLOCK - 1 && j + 1 != r->n) continue;
        for (uint32_t l = 0; l < width; l++) {
            total[l] += block[l];
            block[l] = 0.0f;
        }
    }
    if (r->type != HDI_TYPE_I32) finish(r, width, total);
    store_all(r, out, width, r->type == HDI_TYPE_I32 ? whole : (const uint32_t *)(const void *)total);
}
static void multiply_columns(const reduction *r, uint64_t first, uint64_t out, uint32_t width) {
    float total[LANES], block[LANES], room[LANES];
    uint32_t whole[LANES];
    for (uint32_t l = 0; l < LANES; l++) whole[l] = 1, total[l] = block[l] = 1.0f;
    go_on(r, out, width, r->type == HDI_TYPE_I32 ? (void *)whole : total);
    for (uint32_t j = 0; j < r->n; j++) {
        const uint32_t *words = words_at(r, first + (uint64_t)j * r->inner, width, room);
        if (r->type == HDI_TYPE_I32) for (uint32_t l = 0; l < width; l++) whole[l] *= words[l];
        else for (uint32_t l = 0; l < width; l++) block[l] *= ((const float *)(const void *)words)[l];
        if (j % HDI_MM_BLOCK != HDI_MM_BLOCK - 1 && j + 1 != r->n) continue;
        for (uint32_t l = 0; l < width; l++) {
            total[l] *= block[l];
            block[l] = 1.0f;
        }
    }
    if (r->type != HDI_TYPE_I32) finish(r, width, total);
    store_all(r, out, width, r->type == HDI_TYPE_I32 ? whole : (const uint32_t *)(const void *)total);
}
static void pick_columns(const reduction *r, uint64_t first, uint64_t out, uint32_t width) {
    const bool pairs = r->op == HDI_REDUCE_ARGMAX && r->stage != 0, more = r->stage & HDI_REDUCE_GOES_ON;
    int32_t best[LANES], keys[LANES];
    uint32_t best_at[LANES], before[LANES];
    float room[LANES];
    for (uint32_t l = 0; l < width && more; l++) {
        const uint32_t *y = (const uint32_t *)r->y;
        before[l] = pairs ? y[2 * (out + l)] : y[out + l];
        best_at[l] = pairs ? y[2 * (out + l) + 1] : 0;
    }
    for (uint32_t l = 0; l < width && !more; l++) best_at[l] = r->whole;
    pick_keys(r, more ? before : words_at(r, first, width, room), width, best);
    for (uint32_t j = !more; j < r->n; j++) {
        pick_keys(r, words_at(r, first + (uint64_t)j * r->inner, width, room), width, keys);
        for (uint32_t l = 0; l < width; l++) {
            best_at[l] = keys[l] > best[l] ? r->whole + j : best_at[l];
            best[l] = keys[l] > best[l] ? keys[l] : best[l];
        }
    }
    for (uint32_t l = 0; l < width && pairs; l++) store_pair(r, out + l, best[l], best_at[l]);
    for (uint32_t l = 0; l < width && !pairs && r->op != HDI_REDUCE_ARGMAX; l++) best_at[l] = pick_bits(r, best[l]);
    if (!pairs) store_all(r, out, width, best_at);
}

HDCPU_KERNEL(reduce) {
    (void)group_z;
    const uint32_t *spec = call->spec, *push = call->push;
    const reduction r = { spec[HDI_REDUCE_OP], spec[HDI_REDUCE_TYPE], spec[HDI_SPEC_OUT_TYPE], spec[HDI_REDUCE_FORM],
                          spec[HDI_REDUCE_STAGE], push[1], push[2], push[3], push[4], push[5],
                          call->bindings[0], call->bindings[1], call->bindings[2] };
    const uint32_t group = group_number(group_x, group_y), outer = push[0];
    if (spec[HDI_REDUCE_FORM] == 0) {
        if (group < outer * (r.stage == 1 ? r.parts : 1)) reduce_row(&r, group);
        return;
    }
    const uint64_t columns = (uint64_t)outer * r.inner, begin = (uint64_t)group * spec[HDI_SPEC_WORKGROUP];
    const uint64_t end = HDI_MIN(columns, begin + spec[HDI_SPEC_WORKGROUP]);
    for (uint64_t column = begin; column < end;) {
        const uint64_t line = column / r.inner, at = column % r.inner;
        const uint32_t width = (uint32_t)HDI_MIN(HDI_MIN(end - column, r.inner - at), LANES);
        const uint64_t first = line * r.n * r.inner + at;
        if (r.op == HDI_REDUCE_PROD) multiply_columns(&r, first, column, width);
        else if (picks(&r)) pick_columns(&r, first, column, width);
        else add_columns(&r, first, column, width);
        column += width;
    }
}
