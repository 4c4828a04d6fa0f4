/* test_spirv_images.c: kernels with images, samplers, arrays of buffers, addresses and chosen pointers (image_kernels.py) give what
 * C says they give, to the bit, on every device that takes SPIR-V; and what is not taken is refused by name. */
#include "validation.h"
#include <heddle.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "image_kernels.h"

enum { KERNELS = (int)(sizeof image_kernels / sizeof *image_kernels), MOST = 11, MOST_NUMBERS = 4096 };
/* What a binding holds before and after; floats, halves, integers or bytes as its type says. */
typedef struct held {
    hd_dtype dtype;
    hd_shape shape;
    bool     output;
    union { float f[MOST_NUMBERS]; int32_t i[MOST_NUMBERS]; uint16_t h[MOST_NUMBERS]; uint8_t b[MOST_NUMBERS]; } before, wanted;
} held;
static held bindings[MOST];
static uint32_t binding_count;
static int failures;

static held *put(hd_dtype dtype, hd_shape shape, bool output) {
    held *h = &bindings[binding_count++];
    memset(h, 0, sizeof *h);
    *h = (held){ .dtype = dtype, .shape = shape, .output = output };
    int64_t count = 1;
    for (uint32_t i = 0; i < shape.rank; i++) count *= shape.dims[i];
    for (int64_t i = 0; i < count; i++) {
        const int n = (int)((i * 37 + 11 * binding_count) % 101);
        if (dtype == HD_F32) h->before.f[i] = (float)n / 16.0f - 3.0f;
        if (dtype == HD_I32) h->before.i[i] = n - 40;
        if (dtype == HD_U8) h->before.b[i] = (uint8_t)(n * 2);
    }
    h->wanted = h->before;
    return h;
}

/* ---- what the kernels do, in C ---- */

static float clamped(float x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
static uint16_t half(float x) { /* of few bits */
    if (x == 0) return 0;
    int e;
    const float m = frexpf(fabsf(x), &e);
    return (uint16_t)((x < 0 ? 0x8000 : 0) | (e + 14) << 10 | ((int)(m * 2048) & 1023));
}

static void storage(void) { /* bindings 0 to 3; push scale 1 2 3, more 5 */
    enum { W = 12, H = 10 };
    const held *from = put(HD_F32, HD_SHAPE(H, W, 4), false);
    held *sum = put(HD_F32, HD_SHAPE(H, W), true), *bytes = put(HD_U8, HD_SHAPE(H, W, 4), true),
         *halves = put(HD_F16, HD_SHAPE(H, W, 4), true);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            float texel[4];
            for (int c = 0; c < 4; c++) {
                const float *at = &from->before.f[(y * W + x) * 4 + c];
                texel[c] = at[0] + (x + 1 < W ? at[4] : 0.0f);
                halves->wanted.h[(y * W + x) * 4 + c] = half(texel[c] * 0.5f);
            }
            sum->wanted.f[y * W + x] = texel[0] * 1.0f + texel[3] * 3.0f + (float)(W * 100 + H + 5);
            const float add[] = { 0, 0.25f, -1, 0 };
            for (int c = 0; c < 4; c++) {
                const float value = (float)bytes->before.b[(y * W + x) * 4 + 3 - c] * 0x1.010102p-8f + add[c];
                bytes->wanted.b[(y * W + x) * 4 + c] = (uint8_t)(clamped(value) * 255.0f + 0.5f);
            }
        }
}

typedef struct image { const held *held; int axes, channels, length[3]; } image; /* lengths: the innermost first */
static int wrapped(int i, int n, hd_wrap wrap) {
    return wrap == HD_WRAP_CLAMP ? i < 0 ? 0 : i >= n ? n - 1 : i : ((i % n) + n) % n;
}
static float texel(const image *m, const int *at, int c) {
    const int index = (at[2] * m->length[1] + at[1]) * m->length[0] + at[0];
    if (c >= m->channels) return c == 3;
    return m->held->dtype == HD_U8 ? (float)m->held->before.b[index * m->channels + c] * 0x1.010102p-8f
                                   : m->held->before.f[index * m->channels + c];
}
/* `layers` axes at the end are numbers of layers. */
static void sample_from(const image *m, const float *where, const int *step, int layers, hd_filter filter, hd_wrap wrap,
                        float out[4]) {
    for (int c = 0; c < 4; c++) {
        int at[3][2] = { { 0 } }, corner[3] = { 0 };
        float weight[3] = { 0 }, part[8];
        for (int a = 0; a < m->axes; a++) {
            const bool layer = a >= m->axes - layers, linear = filter == HD_FILTER_LINEAR && !layer;
            const float t = layer ? where[a] + 0.5f : linear ? where[a] * (float)m->length[a] - 0.5f : where[a] * (float)m->length[a];
            const float whole = floorf(t);
            weight[a] = linear ? t - whole : 0;
            for (int side = 0; side < 2; side++)
                at[a][side] = wrapped((int)whole + step[a] + (linear ? side : 0), m->length[a], layer ? HD_WRAP_CLAMP : wrap);
        }
        int corners = 1 << m->axes;
        for (int i = 0; i < corners; i++) {
            for (int a = 0; a < m->axes; a++) corner[a] = at[a][i >> a & 1];
            part[i] = texel(m, corner, c);
        }
        for (int a = 0; a < m->axes; a++, corners /= 2)
            for (int i = 0; i < corners / 2; i++) {
                const float rest = 1.0f - weight[a], one = part[2 * i] * rest, other = part[2 * i + 1] * weight[a];
                const bool linear = filter == HD_FILTER_LINEAR && a < m->axes - layers;
                part[i] = linear ? one + other : part[2 * i];
            }
        out[c] = part[0];
    }
}

static void sample(const image *m, const float *where, int layers, hd_filter filter, hd_wrap wrap, float out[4]) {
    sample_from(m, where, (const int[]){ 0, 0, 0 }, layers, filter, wrap, out);
}

static void sampled(void) { /* linear, clamp */
    const image m = { put(HD_F32, HD_SHAPE(9, 13, 4), false), 2, 4, { 13, 9, 1 } };
    float *out = put(HD_F32, HD_SHAPE(32, 32, 4), true)->wanted.f;
    for (int y = 0; y < 32; y++)
        for (int x = 0; x < 32; x++)
            sample_from(&m, (const float[]){ ((float)x - 8.0f) * 0.0625f, ((float)y - 8.0f) * 0.0625f }, (const int[]){ 2, -1, 0 }, 0,
                        HD_FILTER_LINEAR, HD_WRAP_CLAMP, &out[(y * 32 + x) * 4]);
    const float more[] = { 13, 9, 1, 0 };
    for (int c = 0; c < 4; c++) out[c] = texel(&m, (const int[]){ 2, 1, 0 }, c) + more[c];
}

static void apart(void) { /* nearest, repeat; u8 */
    const image m = { put(HD_U8, HD_SHAPE(7, 6, 4), false), 2, 4, { 6, 7, 1 } };
    float *out = put(HD_F32, HD_SHAPE(64, 4), true)->wanted.f;
    for (int i = 0; i < 64; i++)
        sample(&m, (const float[]){ (float)i * 0.125f - 1.0f, (float)(i % 5) * 0.25f }, 0, HD_FILTER_NEAREST, HD_WRAP_REPEAT,
               &out[i * 4]);
}

static void axes(void) {
    const image volume = { put(HD_F32, HD_SHAPE(3, 4, 5, 2), false), 3, 2, { 5, 4, 3 } },
                layers = { put(HD_F32, HD_SHAPE(3, 4, 6, 4), false), 3, 4, { 6, 4, 3 } };
    const held *line = put(HD_I32, HD_SHAPE(10, 2), false), *row = put(HD_I32, HD_SHAPE(7, 4), false);
    float *out = put(HD_F32, HD_SHAPE(32, 4), true)->wanted.f;
    for (int i = 0; i < 16; i++) {
        const float where[] = { (float)i * 0.0625f, (float)(i % 3) * 0.375f, (float)(i % 4) * 0.25f };
        float b[4];
        sample(&volume, where, 0, HD_FILTER_LINEAR, HD_WRAP_REPEAT, &out[i * 8]);
        sample(&layers, (const float[]){ where[0], where[1], (float)(i % 5) - 1.0f }, 1, HD_FILTER_LINEAR, HD_WRAP_CLAMP, b);
        const bool within = i - 2 >= 0 && i - 2 < 10, in_row = i / 2 < 7;
        const int32_t *c = &line->before.i[within ? (i - 2) * 2 : 0], *d = &row->before.i[in_row ? i / 2 * 4 : 0];
        out[i * 8 + 4] = b[0];
        out[i * 8 + 5] = b[1];
        out[i * 8 + 6] = within ? (float)(c[0] - c[1]) : 0;
        out[i * 8 + 7] = (float)((in_row ? (uint32_t)d[3] + (uint32_t)d[0] : 0) + 17u);
    }
}

static void atomics(void) {
    int32_t *counts = put(HD_I32, HD_SHAPE(3, 5), true)->wanted.i, *least = put(HD_I32, HD_SHAPE(4), true)->wanted.i;
    for (int i = 0; i < 64; i++) {
        counts[i / 5 % 3 * 5 + i % 5] += i;
        if (-i < least[i % 4]) least[i % 4] = -i;
    }
}

/* ---- formats ---- */

static uint8_t stepped_byte(float x) { return (uint8_t)(clamped(x) * 255.0f + 0.5f); }
static float signed_steps(uint8_t b) {
    const float x = (float)(int8_t)b * (1.0f / 127.0f);
    return x < -1 ? -1 : x;
}
static uint32_t word(const held *h, int i) { return (uint32_t)h->before.b[2 * i] | (uint32_t)h->before.b[2 * i + 1] << 8; }
static void put_word(held *h, int i, uint32_t x) {
    h->wanted.b[2 * i] = (uint8_t)x;
    h->wanted.b[2 * i + 1] = (uint8_t)(x >> 8);
}
static uint32_t half_of(uint32_t steps, float most) { /* of a float from 0 to 1 in so many steps */
    return (uint32_t)(clamped((float)steps * (1.0f / most) * 0.5f) * most + 0.5f);
}

static void formats(void) {
    enum { W = 7, H = 4 };
    held *a = put(HD_U8, HD_SHAPE(H, W), true), *b = put(HD_U8, HD_SHAPE(H, W, 2), true), *c = put(HD_U8, HD_SHAPE(H, W), true),
         *d = put(HD_U8, HD_SHAPE(H, W, 4), true), *e = put(HD_F16, HD_SHAPE(H, W), true), *f = put(HD_U8, HD_SHAPE(H, W, 2), true),
         *g = put(HD_U8, HD_SHAPE(H, W, 8), true), *h = put(HD_U8, HD_SHAPE(H, W, 4), true), *k = put(HD_I32, HD_SHAPE(H, W), true),
         *m = put(HD_I32, HD_SHAPE(H, W), true), *n = put(HD_I32, HD_SHAPE(H, W), true);
    for (int i = 0; i < W * H; i++) {
        a->wanted.b[i] = stepped_byte((float)a->before.b[i] * (1.0f / 255.0f) * 0.5f);
        for (int j = 0; j < 2; j++) b->wanted.b[2 * i + j] = (uint8_t)(b->before.b[2 * i + 1 - j] + 3);
        c->wanted.b[i] = (uint8_t)((int8_t)c->before.b[i] >> 1);
        for (int j = 0; j < 4; j++)
            d->wanted.b[4 * i + j] = (uint8_t)(int)floorf(signed_steps(d->before.b[4 * i + j]) * 0.5f * 127.0f + 0.5f);
        e->wanted.h[i] = half((float)(i % W) * 0.25f);
        put_word(f, i, word(f, i) ^ 0x5A5);
        for (int j = 0; j < 4; j++) put_word(g, 4 * i + j, (uint32_t)((int16_t)word(g, 4 * i + 3 - j) >> 1));
        for (int j = 0; j < 2; j++)
            put_word(h, 2 * i + j, (uint32_t)(clamped((float)word(h, 2 * i + j) * (1.0f / 65535.0f) * 0.25f) * 65535.0f + 0.5f));
        k->before.i[i] = m->before.i[i] = (int32_t)((uint32_t)i * 0x9E3779B1u);
        const uint32_t x = (uint32_t)k->before.i[i], part[] = { x & 1023, x >> 10 & 1023, x >> 20 & 1023, x >> 30 };
        k->wanted.i[i] = (int32_t)(half_of(part[2], 1023) | half_of(part[1], 1023) << 10 | half_of(part[0], 1023) << 20 |
                                   half_of(part[3], 3) << 30);
        m->wanted.i[i] = (int32_t)(part[1] | part[2] << 10 | part[0] << 20 | part[3] << 30);
        n->before.i[i] = (int32_t)(x & 0xF7FDFFBFu & ~(1u << 10)); /* exponents below 31 */
        const uint32_t y = (uint32_t)n->before.i[i], red = y & 2047, green = y >> 11 & 2047, blue = y >> 22;
        n->wanted.i[i] = (int32_t)(i % W == 0   ? 0x7BFu << 11 | 0x3DFu << 22     /* the largest */
                                   : i % W == 1 ? 0x3C0u | 0x3C0u << 11 | 0x1E0u << 22 /* 1 */
                                                : blue << 1 | red << 11 | green >> 1 << 22);
    }
}

/* ---- gathers and cubes ---- */

/* The four texels of a linear sample, as Vulkan orders them. */
static void gather(const image *m, const float *where, int step_x, int step_y, int layer, hd_wrap wrap, int c, float out[4]) {
    static const int side[4][2] = { { 0, 1 }, { 1, 1 }, { 1, 0 }, { 0, 0 } };
    for (int k = 0; k < 4; k++) {
        const int x = (int)floorf(where[0] * (float)m->length[0] - 0.5f) + step_x + side[k][0],
                  y = (int)floorf(where[1] * (float)m->length[1] - 0.5f) + step_y + side[k][1];
        out[k] = texel(m, (const int[]){ wrapped(x, m->length[0], wrap), wrapped(y, m->length[1], wrap), layer }, c);
    }
}

static void gathers(void) {
    const image m = { put(HD_U8, HD_SHAPE(6, 9, 3), false), 2, 3, { 9, 6, 1 } },
                layers = { put(HD_F32, HD_SHAPE(3, 5, 4, 4), false), 3, 4, { 4, 5, 3 } };
    const held *whole = put(HD_I32, HD_SHAPE(4, 4, 4), false);
    float *out = put(HD_F32, HD_SHAPE(64 * 4, 4), true)->wanted.f;
    for (int i = 0; i < 64; i++, out += 16) {
        const float where[] = { (float)i * 0.0625f - 0.5f, (float)(i % 7) * 0.25f - 0.25f };
        gather(&m, where, 0, 0, 0, HD_WRAP_CLAMP, 1, out);
        gather(&m, where, i % 3 - 1, 1, 0, HD_WRAP_CLAMP, 2, out + 4);
        gather(&layers, where, 1, -2, i % 4 > 2 ? 2 : i % 4, HD_WRAP_REPEAT, 0, out + 8);
        held floats = *whole; /* of numbers that floats hold */
        for (int k = 0; k < 64; k++) floats.before.f[k] = (float)whole->before.i[k];
        floats.dtype = HD_F32;
        gather(&(image){ &floats, 2, 4, { 4, 4, 1 } }, where, 0, 0, 0, HD_WRAP_REPEAT, 3, out + 12);
    }
}

static void add_twice(const image *m, float x, float y, float scale, float out[4]) {
    float a[4], b[4];
    sample(m, (const float[]){ x, y }, 0, HD_FILTER_NEAREST, HD_WRAP_REPEAT, a);
    sample(m, (const float[]){ y, x }, 0, HD_FILTER_NEAREST, HD_WRAP_REPEAT, b);
    for (int c = 0; c < 4; c++) {
        const float part = a[c] * 0.75f, sum = part + b[c];
        out[c] = scale * out[c] + sum;
    }
}

static void given(void) {
    const image one = { put(HD_F32, HD_SHAPE(5, 6, 4), false), 2, 4, { 6, 5, 1 } },
                other = { put(HD_F32, HD_SHAPE(7, 4, 4), false), 2, 4, { 4, 7, 1 } },
                alone = { put(HD_F32, HD_SHAPE(3, 9, 4), false), 2, 4, { 9, 3, 1 } };
    const float *from = put(HD_F32, HD_SHAPE(8, 8, 4), false)->before.f;
    float *to = put(HD_F32, HD_SHAPE(8, 8, 4), true)->wanted.f, *out = put(HD_F32, HD_SHAPE(64 * 4, 4), true)->wanted.f;
    const image *const pairs[3][2] = { { &one, &other }, { &other, &one }, { &one, &one } };
    for (int i = 0; i < 64; i++) {
        const float x = (float)i * 0.03125f - 0.25f;
        for (int k = 0; k < 3; k++) {
            add_twice(pairs[k][0], x, 0.375f, 0, &out[(i * 4 + k) * 4]);
            add_twice(pairs[k][1], 0.5f, x, 1, &out[(i * 4 + k) * 4]);
        }
        sample(&alone, (const float[]){ x, 0.5f }, 0, HD_FILTER_NEAREST, HD_WRAP_REPEAT, &out[(i * 4 + 3) * 4]);
        for (int c = 0; c < 4; c++) to[i * 4 + c] = from[(i % 8 * 8 + i / 8) * 4 + c] + 1.0f;
    }
}

static void two_views(void) {
    held *both = put(HD_F32, HD_SHAPE(4, 8), true);
    float *taken = put(HD_F32, HD_SHAPE(32), true)->wanted.f;
    for (int i = 0; i < 32; i++) {
        taken[i] = both->before.f[i] + 8 * 16 + 4;
        both->wanted.f[i] = both->before.f[i] * 2;
    }
}

typedef struct on_face { int face; double s, t, by; } on_face;
static on_face face_of(double x, double y, double z) { /* the table of Vulkan's specification */
    const double ax = fabs(x), ay = fabs(y), az = fabs(z);
    if (az >= ax && az >= ay) return z < 0 ? (on_face){ 5, -x, -y, az } : (on_face){ 4, x, -y, az };
    if (ay >= ax) return y < 0 ? (on_face){ 3, x, -z, ay } : (on_face){ 2, x, z, ay };
    return x < 0 ? (on_face){ 1, z, -y, ax } : (on_face){ 0, -z, -y, ax };
}

/* The texel there, or where the face's plane goes on, what lies behind it on another face. */
static float cube_texel(const image *m, int cube, int face, int i, int j, int c) {
    const int n = m->length[0];
    if (i < 0 || i >= n) j = wrapped(j, n, HD_WRAP_CLAMP);
    if (i < 0 || i >= n || j < 0 || j >= n) {
        const double s = (2.0 * i + 1) / n - 1, t = (2.0 * j + 1) / n - 1;
        const double to[6][3] = { { 1, -t, -s }, { -1, -t, s }, { s, 1, t }, { s, -1, -t }, { s, -t, 1 }, { -s, -t, -1 } };
        const on_face on = face_of(to[face][0], to[face][1], to[face][2]);
        face = on.face;
        i = (int)floor((on.s / on.by * 0.5 + 0.5) * n);
        j = (int)floor((on.t / on.by * 0.5 + 0.5) * n);
    }
    return texel(m, (const int[]){ i, j, cube * 6 + face }, c);
}

/* Where it lies on its face: 1 by the largest in four steps of Newton's, as floats. */
static int place_on(const float *to, int n, bool linear, int at[2], float weight[2]) {
    const on_face on = face_of(to[0], to[1], to[2]);
    const float by = (float)on.by, along[] = { (float)on.s, (float)on.t };
    uint32_t bits;
    float inverse;
    memcpy(&bits, &by, 4);
    bits = 0x7EF311C7u - bits;
    memcpy(&inverse, &bits, 4);
    for (int k = 0; k < 4; k++) {
        const float product = by * inverse, rest = 2.0f - product;
        inverse *= rest;
    }
    for (int a = 0; a < 2; a++) {
        float t = along[a] * inverse;
        t *= 0.5f;
        t += 0.5f;
        t *= (float)n;
        if (linear) t -= 0.5f;
        at[a] = (int)floorf(t);
        weight[a] = t - floorf(t);
        if (at[a] >= n) at[a] = n - 1;
    }
    return on.face;
}

/* The four texels of a linear sample; the one that there is not, at a corner of the cube, is the others' average. */
static void cube_texels(const image *m, int face, const int at[2], int c, float out[4]) {
    const int n = m->length[0];
    for (int k = 0; k < 4; k++) out[k] = cube_texel(m, 0, face, at[0] + (k & 1), at[1] + (k >> 1), c);
    for (int k = 0; k < 4; k++) {
        const int i = at[0] + (k & 1), j = at[1] + (k >> 1);
        if ((i >= 0 && i < n) || (j >= 0 && j < n)) continue;
        const float *a = &out[k == 0], *b = &out[k < 2 ? 2 : 1], *last = &out[k == 3 ? 2 : 3];
        const float pair = *a + *b, sum = pair + *last;
        out[k] = sum * 0x1.555556p-2f;
        return;
    }
}

static int corners_met; /* directions of cubes() that see a corner of the cube */
static void cubes(void) {
    const image one = { put(HD_F32, HD_SHAPE(6, 5, 5, 4), false), 3, 4, { 5, 5, 6 } },
                some = { put(HD_F32, HD_SHAPE(12, 4, 4, 4), false), 3, 4, { 4, 4, 12 } };
    const held *faces = put(HD_F32, HD_SHAPE(6, 5, 5), false);
    float *out = put(HD_F32, HD_SHAPE(64 * 3, 4), true)->wanted.f;
    for (int i = 0; i < 64; i++, out += 12) {
        const float to[] = { (float)(i % 9) * 0.25f - 1.0f, (float)(i / 9 % 9) * 0.25f - 1.0f, (float)(i % 7) * 0.375f - 1.125f };
        int at[2];
        float weight[2];
        int face = place_on(to, 5, true, at, weight);
        corners_met += (at[0] < 0 || at[0] == 4) && (at[1] < 0 || at[1] == 4);
        for (int c = 0; c < 4; c++) {
            float row[2], texels[4];
            cube_texels(&one, face, at, c, texels);
            for (int y = 0; y < 2; y++) {
                const float first = texels[2 * y] * (1.0f - weight[0]), second = texels[2 * y + 1] * weight[0];
                row[y] = first + second;
            }
            const float first = row[0] * (1.0f - weight[1]), second = row[1] * weight[1];
            out[c] = first + second;
        }
        for (int k = 0; k < 4; k++)
            out[4 + k] = cube_texel(&one, 0, face, at[0] + (k == 1 || k == 2), at[1] + (k < 2), 1);
        face = place_on((const float[]){ to[2], to[0], to[1] }, 4, false, at, weight);
        out[8] = cube_texel(&some, i % 3 > 1 ? 1 : i % 3, face, at[0], at[1], 0);
        out[9] = cube_texel(&some, i % 3 > 1 ? 1 : i % 3, face, at[0], at[1], 2);
        out[10] = 5 * 100 + 2 * 10 + 5;
        out[11] = faces->before.f[(i % 6 * 5 + i % 3) * 5 + i % 5];
    }
}

/* Depths as the kernel compares them: 1 or 0 for each texel. */
static void compare(const image *m, float by, hd_compare how, held *out) {
    int64_t count = 1;
    *out = (held){ .dtype = HD_F32 };
    for (uint32_t i = 0; i < m->held->shape.rank; i++) count *= m->held->shape.dims[i];
    if (m->held->dtype == HD_U8) by = clamped(by);
    for (int i = 0; i < count; i++) {
        const float depth = m->held->dtype == HD_U8 ? (float)m->held->before.b[i] * 0x1.010102p-8f : m->held->before.f[i];
        const bool holds[] = { by <= depth, by < depth, by >= depth, by > depth, by == depth, by != depth };
        out->before.f[i] = holds[how];
    }
}

static void depths(void) { /* linear and clamp; nearest, repeat and >; nearest and <; linear and != */
    const image one = { put(HD_U8, HD_SHAPE(6, 9), false), 2, 1, { 9, 6, 1 } },
                layers = { put(HD_F32, HD_SHAPE(3, 5, 4), false), 3, 1, { 4, 5, 3 } },
                cube = { put(HD_F32, HD_SHAPE(6, 4, 4), false), 3, 1, { 4, 4, 6 } },
                first = { put(HD_F32, HD_SHAPE(5, 8), false), 2, 1, { 8, 5, 1 } },
                second = { put(HD_F32, HD_SHAPE(4, 4), false), 2, 1, { 4, 4, 1 } };
    float *out = put(HD_F32, HD_SHAPE(64, 16), true)->wanted.f, sampled_texel[4];
    static held ones, of_layers, of_cube, of_halves;
    for (int i = 0; i < 64; i++, out += 16) {
        const float where[] = { (float)i * 0.0625f - 0.5f, (float)(i % 7) * 0.25f - 0.25f };
        const float by = (float)(i % 9) * 0.25f - 0.5f;
        int at[2];
        float weight[2];
        const image *half = i & 1 ? &second : &first;
        compare(&one, by, HD_COMPARE_LESS_EQUAL, &ones);
        compare(&layers, by, HD_COMPARE_GREATER, &of_layers);
        compare(&cube, by, HD_COMPARE_LESS, &of_cube);
        compare(half, by, HD_COMPARE_NOT_EQUAL, &of_halves);
        const image by_one = { &ones, 2, 1, { 9, 6, 1 } }, by_layers = { &of_layers, 3, 1, { 4, 5, 3 } };
        const image by_cube = { &of_cube, 3, 1, { 4, 4, 6 } };
        const image by_half = { &of_halves, 2, 1, { half->length[0], half->length[1], 1 } };
        sample(&by_one, where, 0, HD_FILTER_LINEAR, HD_WRAP_CLAMP, sampled_texel);
        out[0] = sampled_texel[0];
        sample_from(&by_one, where, (const int[]){ -1, 2, 0 }, 0, HD_FILTER_LINEAR, HD_WRAP_CLAMP, sampled_texel);
        out[1] = sampled_texel[0];
        sample(&by_layers, (const float[]){ where[0], where[1], (float)(i % 4) }, 1, HD_FILTER_NEAREST, HD_WRAP_REPEAT,
               sampled_texel);
        out[2] = sampled_texel[0];
        const int face = place_on((const float[]){ where[0], 1, where[1] }, 4, false, at, weight);
        out[3] = cube_texel(&by_cube, 0, face, at[0], at[1], 0);
        gather(&by_one, where, 0, 0, 0, HD_WRAP_CLAMP, 0, out + 4);
        gather(&by_layers, where, i % 3, 1, 1, HD_WRAP_REPEAT, 0, out + 8);
        sample(&by_half, where, 0, HD_FILTER_LINEAR, HD_WRAP_REPEAT, sampled_texel);
        out[12] = sampled_texel[0];
    }
}

static void arrays(void) { /* from 0 to 2, by 3 and 4, to 5 and 6; push turn 2 */
    const held *from[3], *by[2];
    held *to[2];
    const int lengths[] = { 70, 80, 90 };
    for (int k = 0; k < 3; k++) from[k] = put(HD_F32, HD_SHAPE(lengths[k]), false);
    for (int k = 0; k < 2; k++) by[k] = put(HD_F32, HD_SHAPE(4), false);
    for (int k = 0; k < 2; k++) to[k] = put(HD_I32, HD_SHAPE(33), true);
    for (int i = 0; i < 64; i++) {
        const int which = (i + 2) % 3;
        float x = from[which]->before.f[i];
        if (i % 2 == 0) x += from[1]->before.f[i + 1];
        x *= by[i / 32]->before.f[i % 4];
        memcpy(&to[i % 2]->wanted.i[1 + i / 2], &x, 4);
        to[i % 2]->wanted.i[0] += lengths[which];
    }
}

static void addresses(void) { /* b, from, to; push count 40, two addresses, add 0.5 */
    const float *b = put(HD_F32, HD_SHAPE(64), false)->before.f, *from = put(HD_F32, HD_SHAPE(65), false)->before.f;
    float *to = put(HD_F32, HD_SHAPE(64), true)->wanted.f;
    for (int i = 0; i < 40; i++) to[i] = from[1 + i] * from[0] + b[i] + 0.5f;
}

static void memory_of_nodes(void) { /* roots, to, the memory: nodes at 16, 64 and 112 in a ring, and one more at 160 */
    held *roots = put(HD_I32, HD_SHAPE(4, 2), false);
    float *to = put(HD_F32, HD_SHAPE(65), true)->wanted.f;
    held *memory = put(HD_I32, HD_SHAPE(64), true);
    for (int k = 0; k < 8; k++) roots->before.i[k] = k % 2 ? 0 : 16 + k / 2 * 48;
    float *all = memory->before.f;
    for (int k = 0; k < 3; k++) {
        int32_t *node = &memory->before.i[4 + k * 12];
        for (int x = 0; x < 12; x++) all[4 + k * 12 + x] = (float)((k * 10 + x) * 7 % 31) * 0.5f;
        node[0] = 16 + (k + 1) % 3 * 48;
        node[1] = 0;
        node[5] = k;
    }
    memory->before.i[40] = 1;
    memcpy(&memory->wanted, &memory->before, sizeof memory->before);
    for (int i = 0; i < 64; i++) {
        to[i] = 0;
        for (int k = 0; k < 3; k++) {
            const int node = 4 + (i + k) % 3 * 12;
            const float term = all[node + 2 + i % 3] + all[node + 6 + 2 + (i & 1)];
            to[i] += term;
            memory->wanted.i[node + 5]++;
        }
    }
    to[64] = all[4 + 6 % 3 * 12 + 2];
    for (int x = 0; x < 6; x++) memory->wanted.f[40 + 6 + x] = x % 2 ? -all[28 + 6 + x] : all[28 + 6 + x];
    memory->wanted.i[40] = 16 + 5 % 3 * 48; /* the one that was kept */
    memory->wanted.i[41] = 0;
}

static void stepped(void) { /* from, to; push two addresses, scale 3 */
    const float *from = put(HD_F32, HD_SHAPE(64), false)->before.f;
    float *to = put(HD_F32, HD_SHAPE(64), true)->wanted.f;
    for (int i = 0; i < 64; i++) to[i] = from[i] * 3.0f + from[0];
}

static void arrays_of_images(void) { /* pictures 0 to 2, counters 3 and 4, open buffers 5 and 6, taken 7 */
    image pictures[3];
    static const int sizes[3][2] = { { 4, 3 }, { 5, 4 }, { 2, 7 } };
    for (int k = 0; k < 3; k++)
        pictures[k] = (image){ put(HD_F32, HD_SHAPE(sizes[k][1], sizes[k][0], 4), false), 2, 4, { sizes[k][0], sizes[k][1], 1 } };
    int32_t *counters[2], *numbers[2];
    for (int k = 0; k < 2; k++) counters[k] = put(HD_I32, HD_SHAPE(17, 4), true)->wanted.i;
    for (int k = 0; k < 2; k++) numbers[k] = put(HD_I32, HD_SHAPE(64), true)->wanted.i;
    float *taken = put(HD_F32, HD_SHAPE(64, 4), true)->wanted.f;
    for (int i = 0; i < 64; i++) {
        const int k = i % 5 > 2 ? 2 : i % 5; /* what is too large is the last */
        const float where[] = { (float)(i % 4) * 0.25f, (float)(i / 4) * 0.0625f };
        sample(&pictures[k], where, 0, HD_FILTER_NEAREST, HD_WRAP_REPEAT, &taken[i * 4]);
        for (int c = 0; c < 4; c++) taken[i * 4 + c] += texel(&pictures[1], (const int[]){ i % 4, i / 4 % 3, 0 }, c);
        counters[i % 2][i % 3] += i;
        numbers[i & 1][i] += sizes[k][1];
    }
    for (int i = 0; i < 64; i += 4)
        if (i > 0) counters[i / 4 % 2][i / 4 * 4 + 3] = i;
        else counters[0][3] = 0;
}

static void samples(void) { /* from, to, layers, taken */
    const float *from = put(HD_F32, HD_SHAPE(5, 4, 3, 4), false)->before.f;
    int32_t *to = put(HD_I32, HD_SHAPE(4, 4, 5), true)->wanted.i, *layers = put(HD_I32, HD_SHAPE(2, 1, 2, 2), true)->wanted.i;
    float *taken = put(HD_F32, HD_SHAPE(64, 4), true)->wanted.f;
    for (int i = 0; i < 64; i++) {
        const int row = i / 16 * 4 + i % 4;
        const float said[] = { 4, 5, 3, 5 };
        for (int c = 0; c < 4; c++) taken[i * 4 + c] = from[((i / 4 % 5 * 4 + i % 4) * 3 + i % 3) * 4 + c] + said[c];
        to[row * 5 + i / 4 % 4] = i + to[row * 5 + 4];
        layers[(i / 2 % 2 * 2 + i % 2) * 2 + i / 4 % 2] += i;
    }
}

static void lengths(void) { /* one, taken, other */
    put(HD_F32, HD_SHAPE(3, 7, 4), false);
    int32_t *taken = put(HD_I32, HD_SHAPE(64), true)->wanted.i;
    put(HD_U8, HD_SHAPE(2, 5, 6, 4), false);
    for (int i = 0; i < 64; i++) taken[i] = i + 7652;
}

static void loose(void) {
    int32_t *to = put(HD_I32, HD_SHAPE(4), true)->wanted.i;
    for (int i = 0; i < 64; i++) {
        to[0] += i;
        if (to[1] < i) to[1] = i;
    }
    to[2] = 7;
}

static void chosen_pointers(void) { /* a, rows of b, to, rows of c */
    const float *a = put(HD_F32, HD_SHAPE(70), false)->before.f, *b = put(HD_F32, HD_SHAPE(66, 8), false)->before.f;
    float *to = put(HD_F32, HD_SHAPE(128), true)->wanted.f;
    const float *c = put(HD_F32, HD_SHAPE(66, 8), false)->before.f;
    for (int i = 0; i < 64; i++) {
        const bool odd = i % 2;
        const float in_row = b[i * 8 + 4 + i % 4], x = odd ? a[i] : in_row, y = a[i + 5];
        const float twice = 2 * x + 2 * a[i], lane = (odd ? b + i * 8 : c + (i + 1) * 8)[4 + i % 4];
        to[odd ? i : i + 64] = x + (a[i] + a[i + 2] + a[i + 4]) + y + (odd ? y : in_row) + twice + lane + a[(i ^ 3) + 5];
    }
}

/* ---- running ---- */

static const struct {
    const char *name;
    void (*fill)(void);
    uint32_t push[8], push_bytes, groups[2];
    hd_image_desc images[5];
    const char *not_on;
} rules[] = {
    { "storage", storage, { 0x3F800000, 0x40000000, 0x40400000, 5 }, 16, { 2, 3 }, { { 0 } }, NULL },
    { "sampled", sampled, { 0 }, 0, { 4, 4 }, { { 0, 0, HD_F32, 4, HD_FILTER_LINEAR, HD_WRAP_CLAMP, 0, 0 } }, NULL },
    { "apart", apart, { 0 }, 0, { 4, 1 },
      { { 1, 0, HD_U8, 4, 0, 0, 0, 0 }, { 1, 4, HD_DTYPE_NONE, 0, HD_FILTER_NEAREST, HD_WRAP_REPEAT, 0, 0 } }, NULL },
    { "axes", axes, { 0 }, 0, { 1, 1 },
      { { 0, 0, HD_F32, 2, HD_FILTER_LINEAR, HD_WRAP_REPEAT, 0, 0 }, { 0, 1, HD_DTYPE_NONE, 0, HD_FILTER_LINEAR, HD_WRAP_CLAMP, 0, 0 } }, NULL },
    { "image_arrays", arrays_of_images, { 0 }, 0, { 2, 1 }, { { 0 }, { .set = 2, .count = 2 } }, NULL },
    { "samples", samples, { 0 }, 0, { 2, 1 }, { { 0 } }, NULL },
    { "lengths", lengths, { 0 }, 0, { 2, 1 }, { { 0 } }, NULL },
    { "formats", formats, { 0 }, 0, { 2, 1 }, { { 0 } }, NULL },
    { "gathers", gathers, { 0 }, 0, { 2, 1 }, { { 0, 0, HD_U8, 3, HD_FILTER_NEAREST, HD_WRAP_CLAMP, 0, 0 } }, NULL },
    { "depths", depths, { 0 }, 0, { 2, 1 },
      { { 0, 0, HD_U8, 1, HD_FILTER_LINEAR, HD_WRAP_CLAMP, 0, HD_COMPARE_LESS_EQUAL },
        { 0, 1, HD_DTYPE_NONE, 0, HD_FILTER_NEAREST, HD_WRAP_REPEAT, 0, HD_COMPARE_GREATER },
        { 0, 2, HD_DTYPE_NONE, 0, HD_FILTER_NEAREST, HD_WRAP_REPEAT, 0, HD_COMPARE_LESS },
        { 1, 0, HD_F32, 1, HD_FILTER_NEAREST, HD_WRAP_REPEAT, 0, 0 },
        { 1, 1, HD_DTYPE_NONE, 0, HD_FILTER_LINEAR, HD_WRAP_REPEAT, 0, HD_COMPARE_NOT_EQUAL } }, NULL },
    { "two_views", two_views, { 0 }, 0, { 1, 1 }, { { 0 } }, NULL },
    { "given", given, { 0 }, 0, { 2, 1 }, { { 0 } }, NULL },
    { "cubes", cubes, { 0 }, 0, { 2, 1 }, { { 0, 0, HD_F32, 4, HD_FILTER_LINEAR, HD_WRAP_REPEAT, 0, 0 } }, NULL },
    { "atomics", atomics, { 0 }, 0, { 2, 1 }, { { 0 } }, NULL },
    { "arrays", arrays, { 2, 64 }, 8, { 2, 1 }, { { 0 } }, NULL },
    { "addresses", addresses, { 40, 0, 7, 7, 7, 7, 0x3F000000 }, 28, { 2, 1 }, { { 0 } }, NULL },
    { "memory", memory_of_nodes, { 0 }, 0, { 2, 1 }, { { 0 } }, "webgpu" },
    { "loose", loose, { 0 }, 0, { 2, 1 }, { { 0 } }, NULL },
    { "pointers", chosen_pointers, { 0 }, 0, { 2, 1 }, { { 0 } }, NULL },
    { "stepped", stepped, { 7, 7, 7, 7, 0x40400000 }, 20, { 2, 1 }, { { 0 } }, NULL },
};
enum { RULES = (int)(sizeof rules / sizeof *rules) };

static uint64_t bytes_of(const held *h) {
    uint64_t count = 1;
    for (uint32_t i = 0; i < h->shape.rank; i++) count *= (uint64_t)h->shape.dims[i];
    return hd_dtype_bytes(h->dtype, count);
}

static void run(hd_context *context, hd_device *device, const char *id, int k, int rule) {
    hd_dispatch_binding what[MOST] = { { 0 } };
    hd_value values[MOST];
    hd_kernel *kernel = NULL;
    hd_plan *plan = NULL;
    static unsigned char got[MOST_NUMBERS * 4];
    char names[MOST][8], results[MOST][8];
    binding_count = 0;
    rules[rule].fill();
    const hd_kernel_desc desc = { .spirv = image_kernels[k].words, .spirv_bytes = image_kernels[k].bytes,
                                  .images = rules[rule].images, .image_count = 5 };
    hd_program *program = hd_program_create(context);
    hd_status status = hd_kernel_create(context, &desc, &kernel);
    for (uint32_t i = 0; i < binding_count; i++) {
        const held *h = &bindings[i];
        snprintf(names[i], sizeof names[i], "b%u", i);
        snprintf(results[i], sizeof results[i], "out%u", i);
        what[i].value = hd_input(program, names[i], h->dtype, h->shape);
        if (h->output) what[i].dtype = h->dtype, what[i].shape = h->shape;
    }
    const hd_dispatch_desc launch = { .bindings = what, .binding_count = binding_count, .push = rules[rule].push,
                                      .push_bytes = rules[rule].push_bytes, .groups = { rules[rule].groups[0], rules[rule].groups[1], 1 } };
    if (!status) hd_dispatch_all(program, kernel, &launch, values);
    for (uint32_t i = 0; i < binding_count && !status; i++)
        if (bindings[i].output) hd_output(program, results[i], values[i]);
    if (!status) status = hd_plan_create(device, program, NULL, &plan);
    for (uint32_t i = 0; i < binding_count && !status; i++)
        status = hd_plan_write(plan, names[i], &bindings[i].before, bytes_of(&bindings[i]));
    if (!status) status = hd_plan_run(plan, NULL);
    if (status) {
        printf("%s %s on %s: %s\n", image_kernels[k].name, image_kernels[k].option, id, hd_context_error(context));
        failures++;
    }
    for (uint32_t i = 0; i < binding_count && !status; i++) {
        if (!bindings[i].output) continue;
        if (hd_plan_read(plan, results[i], got, bytes_of(&bindings[i])) || memcmp(got, &bindings[i].wanted, bytes_of(&bindings[i]))) {
            uint64_t at = 0;
            while (at < bytes_of(&bindings[i]) && got[at] == ((unsigned char *)&bindings[i].wanted)[at]) at++;
            printf("%s %s on %s: binding %u is wrong from byte %u on, of %u\n", image_kernels[k].name, image_kernels[k].option, id, i,
                   (unsigned)at, (unsigned)bytes_of(&bindings[i]));
            failures++;
        }
    }
    hd_plan_destroy(plan);
    hd_kernel_destroy(kernel);
    hd_program_destroy(program);
}

/* ---- what is said, and refused ---- */

static void expect(bool holds, const char *what) {
    if (holds) return;
    printf("%s\n", what);
    failures++;
}

static void check_told(hd_context *context) {
    hd_kernel *kernel = NULL;
    hd_kernel_desc desc = { .spirv = image_kernels[0].words, .spirv_bytes = image_kernels[0].bytes };
    expect(!hd_kernel_create(context, &desc, &kernel), hd_context_error(context));
    const hd_kernel_info *info = hd_kernel_get_info(kernel);
    expect(info->push_bytes == 16 && info->binding_count == 4, "push constants and bindings of an image kernel");
    expect(info->binding_axes[2] == 2 && info->binding_dtype[2] == HD_U8 && info->binding_channels[2] == 4, "an image's facts");
    expect(info->binding_written[1] && !info->binding_written[0], "what is written");
    const hd_value x = hd_input(NULL, "x", HD_F32, HD_SHAPE(4));
    expect(x == 0, "no program");
    static const struct { hd_dtype dtype; hd_shape shape; hd_status status; } wrong[] = {
        { HD_F32, { 3, { 10, 12, 3 } }, HD_STATUS_SHAPE }, { HD_F32, { 2, { 10, 48 } }, HD_STATUS_SHAPE },
        { HD_I32, { 3, { 10, 12, 4 } }, HD_STATUS_TYPE },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hd_program *program = hd_program_create(context);
        const hd_dispatch_binding what[] = { { hd_input(program, "x", wrong[i].dtype, wrong[i].shape), 0, { 0 } },
                                             { 0, HD_F32, HD_SHAPE(10, 12) }, { 0, HD_U8, HD_SHAPE(10, 12, 4) },
                                             { 0, HD_F16, HD_SHAPE(10, 12, 4) } };
        const uint32_t push[4] = { 0 };
        hd_dispatch(program, kernel, &(hd_dispatch_desc){ .bindings = what, .binding_count = 4, .push = push, .push_bytes = 16,
                                                          .groups = { 1, 1, 1 } });
        expect(hd_program_check(program) == wrong[i].status, "a tensor that is not the image's was taken");
        hd_program_destroy(program);
    }
    hd_kernel_destroy(kernel);
    const hd_image_desc odd = { 1, 0, HD_U8, 5, 0, 0, 0, 0 };
    for (int k = 0; k < KERNELS; k++) { /* texels of five bytes */
        if (strcmp(image_kernels[k].name, "apart") != 0) continue;
        desc = (hd_kernel_desc){ .spirv = image_kernels[k].words, .spirv_bytes = image_kernels[k].bytes, .images = &odd, .image_count = 1 };
        expect(hd_kernel_create(context, &desc, &kernel) == HD_STATUS_MODULE && strstr(hd_context_error(context), "texels of 5 u8"),
               hd_context_error(context));
    }
}

int main(void) {
    static const char *const devices[] = { "vulkan", "cuda", "opencl", "levelzero", "webgpu", "cpu" };
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
        hd_context *context;
        hd_device *device;
        if (hd_context_create(&(hd_context_desc){ .cache_dir = "", .strict = -1 }, &context)) return 1;
        if (d == 0) check_told(context);
        if (hd_device_open(context, &(hd_device_desc){ .id = devices[d] }, &device)) {
            printf("skipped, no %s device\n", devices[d]);
        } else {
            for (int k = 0; k < KERNELS; k++)
                for (int r = 0; r < RULES; r++)
                    if (strcmp(rules[r].name, image_kernels[k].name) == 0 &&
                        (!rules[r].not_on || strcmp(rules[r].not_on, devices[d]) != 0))
                        run(context, device, devices[d], k, r);
        }
        hd_context_destroy(context);
    }
    failures += corners_met == 0;
    printf("%d kernels, %d failures\n", KERNELS, failures);
    return failures != 0 || validation_messages() > 0;
}
