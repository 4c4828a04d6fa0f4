/* test_images.c: convolution, transposed convolution, pooling and resizing against their definitions: loops over places,
 * channels and taps in double, for random shapes, on the CPU in both modes. What devices compute is in test_ops_windows.c. */
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 16 };
static uint32_t seed = 7;
static int64_t chance(uint32_t below) { return (int64_t)((seed = seed * 1664525u + 1013904223u) >> 8) % below; }

/* An image: N, C, H, W; a line has W 1 and the rank 3. */
typedef struct image {
    int64_t d[4];
    float   data[MOST];
} image;
static image x, w, bias;
static double expected[MOST], sizes[MOST]; /* and the sum of |terms| */

static void fill(image *to, int64_t a, int64_t b, int64_t c, int64_t d) {
    const int64_t dims[] = { a, b, c, d };
    memcpy(to->d, dims, sizeof dims);
    assert_true(a * b * c * d <= MOST);
    for (int64_t i = 0; i < a * b * c * d; i++) to->data[i] = (float)(chance(2001) - 1000) / 1000;
}
static double at(const image *from, int64_t a, int64_t b, int64_t c, int64_t d) {
    return (double)from->data[((a * from->d[1] + b) * from->d[2] + c) * from->d[3] + d];
}
static bool inside(const image *from, int64_t h, int64_t v) { return h >= 0 && h < from->d[2] && v >= 0 && v < from->d[3]; }

static struct { hd_context *context; hd_device *device; hd_program *p; } s;
static hd_value input(const char *name, const image *from, bool line) {
    return hd_input(s.p, name, HD_F32, line ? HD_SHAPE(from->d[0], from->d[1], from->d[2]) : HD_SHAPE(from->d[0], from->d[1], from->d[2], from->d[3]));
}

/* Runs the program in both modes; every element lies within `terms` roundings of the sum of |terms|. */
static void judge(const char *what, hd_value y, hd_shape shape, double terms) {
    static float got[MOST];
    hd_dtype dtype;
    hd_shape made;
    hd_output(s.p, "y", y);
    if (hd_program_check(s.p)) fail_msg("%s: %s", what, hd_context_error(s.context));
    assert_int_equal(hd_value_describe(s.p, y, &dtype, &made), HD_OK);
    assert_int_equal(made.rank, shape.rank);
    for (uint32_t i = 0; i < shape.rank; i++) if (made.dims[i] != shape.dims[i]) fail_msg("%s: axis %u has %d elements, not %d", what, i, (int)made.dims[i], (int)shape.dims[i]);
    for (int mode = HD_MATH_FAST; mode <= HD_MATH_EXACT; mode++) {
        hd_plan *plan;
        if (hd_plan_create(s.device, s.p, &(hd_plan_desc){ .math = (hd_math)mode }, &plan)) fail_msg("%s: %s", what, hd_context_error(s.context));
        const struct { const char *name; image *from; } all[] = { { "x", &x }, { "w", &w }, { "bias", &bias } };
        for (size_t i = 0; i < hd_program_port_count(s.p); i++) {
            const hd_port port = hd_program_port(s.p, i);
            for (int k = 0; k < 3; k++)
                if (!strcmp(port.name, all[k].name)) assert_int_equal(hd_plan_write(plan, port.name, all[k].from->data, hd_tensor_bytes(HD_F32, port.shape)), HD_OK);
        }
        if (hd_plan_run(plan, NULL)) fail_msg("%s: %s", what, hd_context_error(s.context));
        assert_int_equal(hd_plan_read(plan, "y", got, hd_tensor_bytes(HD_F32, made)), HD_OK);
        for (uint64_t i = 0; i < hd_shape_elements(made); i++) {
            const double off = fabs((double)got[i] - expected[i]), bound = (terms * 2 + 4) * 0x1p-24 * sizes[i] + 0x1p-140;
            if (!(off <= bound) && !((double)got[i] == expected[i])) fail_msg("%s: element %d is %.9g, it should be %.9g", what, (int)i, (double)got[i], expected[i]);
        }
        hd_plan_destroy(plan);
    }
    hd_program_destroy(s.p);
}

static void convolutions(void **state) {
    (void)state;
    for (int round = 0; round < 150; round++) {
        const bool line = round % 4 == 3;
        hd_conv_desc d = { .groups = (uint32_t)(1 + chance(3)) };
        int64_t taps[2], count[2];
        const int64_t G = d.groups, each = 1 + chance(4), out = 1 + chance(4), C = G * each, O = G * out;
        fill(&x, 1 + chance(3), C, 5 + chance(8), line ? 1 : 5 + chance(8));
        if (round % 10 == 0) fill(&x, 2, C, 17, line ? 1 : 18); /* enough places for products of its own */
        for (int k = 0; k < 2; k++) {
            d.stride[k] = (uint32_t)chance(round % 10 ? 4 : 2);
            d.dilation[k] = (uint32_t)chance(3);
            d.pad_before[k] = (uint32_t)chance(3);
            d.pad_after[k] = (uint32_t)chance(3);
            taps[k] = 1 + chance(3);
        }
        if (line) d.pad_before[1] = d.pad_after[1] = 0, taps[1] = 1, d.stride[1] = 1;
        fill(&w, O, each, taps[0], taps[1]);
        fill(&bias, O, 1, 1, 1);
        const int64_t stride[] = { d.stride[0] ? d.stride[0] : 1, d.stride[1] ? d.stride[1] : 1 }, dilation[] = { d.dilation[0] ? d.dilation[0] : 1, d.dilation[1] ? d.dilation[1] : 1 };
        for (int k = 0; k < 2; k++) count[k] = (x.d[2 + k] + d.pad_before[k] + d.pad_after[k] - (taps[k] - 1) * dilation[k] - 1) / stride[k] + 1;
        for (int64_t i = 0; i < x.d[0] * O * count[0] * count[1]; i++) {
            const int64_t v = i % count[1], h = i / count[1] % count[0], o = i / count[1] / count[0] % O, n = i / count[1] / count[0] / O;
            expected[i] = round % 3 ? (double)bias.data[o] : 0;
            sizes[i] = fabs(expected[i]);
            for (int64_t c = 0; c < each; c++)
                for (int64_t a = 0; a < taps[0]; a++)
                    for (int64_t b = 0; b < taps[1]; b++) {
                        const int64_t row = h * stride[0] + a * dilation[0] - d.pad_before[0], column = v * stride[1] + b * dilation[1] - d.pad_before[1];
                        if (!inside(&x, row, column)) continue;
                        const double term = at(&w, o, c, a, b) * at(&x, n, o / out * each + c, row, column);
                        expected[i] += term;
                        sizes[i] += fabs(term);
                    }
        }
        s.p = hd_program_create(s.context);
        const hd_value image_ = input("x", &x, line), weights = input("w", &w, line), added = round % 3 ? hd_input(s.p, "bias", HD_F32, HD_SHAPE(O)) : 0;
        judge("conv", hd_conv(s.p, image_, weights, added, &d), (hd_shape){ line ? 3 : 4, { x.d[0], O, count[0], count[1] } }, (double)(each * taps[0] * taps[1]));
    }
}

static void transposed(void **state) {
    (void)state;
    for (int round = 0; round < 150; round++) {
        const bool line = round % 4 == 3;
        hd_conv_desc d = { .groups = (uint32_t)(1 + chance(3)) };
        int64_t taps[2], length[2];
        const int64_t G = d.groups, each = 1 + chance(4), out = 1 + chance(4), C = G * each, O = G * out;
        fill(&x, 1 + chance(3), C, 2 + chance(6), line ? 1 : 2 + chance(6));
        if (round % 10 == 0) fill(&x, 2, C, 16, line ? 1 : 16);
        for (int k = 0; k < 2; k++) {
            d.stride[k] = (uint32_t)(1 + chance(3));
            d.dilation[k] = (uint32_t)(1 + chance(2));
            taps[k] = 1 + chance(3);
            d.output_pad[k] = (uint32_t)chance(d.stride[k] > d.dilation[k] ? d.stride[k] : d.dilation[k]);
            if (line && k) taps[k] = d.stride[k] = d.dilation[k] = 1, d.output_pad[k] = 0;
            const int64_t all = (x.d[2 + k] - 1) * d.stride[k] + (taps[k] - 1) * d.dilation[k] + 1 + d.output_pad[k];
            if (!line || !k) d.pad_before[k] = (uint32_t)chance(2), d.pad_after[k] = all > 3 ? (uint32_t)chance(3) : 0;
            if (d.pad_before[k] + d.pad_after[k] >= all) d.pad_before[k] = d.pad_after[k] = 0;
            length[k] = all - d.pad_before[k] - d.pad_after[k];
        }
        fill(&w, C, out, taps[0], taps[1]);
        fill(&bias, O, 1, 1, 1);
        const int64_t plane = length[0] * length[1];
        for (int64_t i = 0; i < x.d[0] * O * plane; i++) sizes[i] = fabs(expected[i] = round % 3 ? (double)bias.data[i / plane % O] : 0);
        for (int64_t n = 0; n < x.d[0]; n++)
            for (int64_t o = 0; o < O; o++)
                for (int64_t c = 0; c < each; c++)
                    for (int64_t h = 0; h < x.d[2]; h++)
                        for (int64_t v = 0; v < x.d[3]; v++)
                            for (int64_t a = 0; a < taps[0]; a++)
                                for (int64_t b = 0; b < taps[1]; b++) {
                                    const int64_t row = h * d.stride[0] + a * d.dilation[0] - d.pad_before[0], column = v * d.stride[1] + b * d.dilation[1] - d.pad_before[1];
                                    const int64_t channel = o / out * each + c, to = ((n * O + o) * length[0] + row) * length[1] + column;
                                    if (row < 0 || row >= length[0] || column < 0 || column >= length[1]) continue;
                                    const double term = at(&w, channel, o % out, a, b) * at(&x, n, channel, h, v);
                                    expected[to] += term;
                                    sizes[to] += fabs(term);
                                }
        s.p = hd_program_create(s.context);
        const hd_value image_ = input("x", &x, line), weights = input("w", &w, line), added = round % 3 ? hd_input(s.p, "bias", HD_F32, HD_SHAPE(O)) : 0;
        judge("conv_transpose", hd_conv_transpose(s.p, image_, weights, added, &d), (hd_shape){ line ? 3 : 4, { x.d[0], O, length[0], length[1] } }, (double)(each * taps[0] * taps[1] + 4));
    }
}

static void pools(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        const bool line = round % 4 == 3, largest = round / 4 % 2;
        hd_pool_desc d = { .ceil_mode = (int)chance(2), .count_pad = (int)chance(2) };
        int64_t size[2], stride[2], dilation[2], count[2];
        fill(&x, 1 + chance(2), 1 + chance(3), 4 + chance(9), line ? 1 : 4 + chance(9));
        for (int k = 0; k < 2 && round % 20; k++) {
            d.size[k] = (uint32_t)(1 + chance(3));
            d.stride[k] = (uint32_t)chance(4);
            d.dilation[k] = d.size[k] == 3 && x.d[2 + k] > 4 ? (uint32_t)chance(3) : 0;
            d.pad_before[k] = (uint32_t)chance(d.size[k]);
            d.pad_after[k] = (uint32_t)chance(d.size[k]);
        }
        if (line) d.size[1] = 1, d.stride[1] = 0, d.dilation[1] = 0, d.pad_before[1] = d.pad_after[1] = 0;
        for (int k = 0; k < 2; k++) {
            size[k] = d.size[k] ? d.size[k] : x.d[2 + k];
            stride[k] = d.stride[k] ? d.stride[k] : size[k];
            dilation[k] = d.dilation[k] ? d.dilation[k] : 1;
            const int64_t left = x.d[2 + k] + d.pad_before[k] + d.pad_after[k] - (size[k] - 1) * dilation[k] - 1;
            count[k] = (left + (d.ceil_mode ? stride[k] - 1 : 0)) / stride[k] + 1;
            if (d.ceil_mode && (count[k] - 1) * stride[k] >= x.d[2 + k] + d.pad_before[k]) count[k]--;
        }
        for (int64_t i = 0; i < x.d[0] * x.d[1] * count[0] * count[1]; i++) {
            const int64_t v = i % count[1], h = i / count[1] % count[0], c = i / count[1] / count[0] % x.d[1], n = i / count[1] / count[0] / x.d[1];
            double most = -INFINITY, sum = 0, counted = 0;
            sizes[i] = 0;
            for (int64_t a = 0; a < size[0]; a++)
                for (int64_t b = 0; b < size[1]; b++) {
                    const int64_t row = h * stride[0] + a * dilation[0] - d.pad_before[0], column = v * stride[1] + b * dilation[1] - d.pad_before[1];
                    const bool in = inside(&x, row, column), padded = row < x.d[2] + d.pad_after[0] && column < x.d[3] + d.pad_after[1];
                    const double value = in ? at(&x, n, c, row, column) : 0;
                    if (in) most = fmax(most, value);
                    sum += value;
                    sizes[i] += fabs(value);
                    counted += d.count_pad ? padded : in;
                }
            expected[i] = largest ? most : sum / fmax(counted, 1);
            if (!largest) sizes[i] /= fmax(counted, 1);
        }
        s.p = hd_program_create(s.context);
        const hd_value from = input("x", &x, line);
        judge(largest ? "max_pool" : "mean_pool", (largest ? hd_max_pool : hd_mean_pool)(s.p, from, round % 20 ? &d : NULL),
              (hd_shape){ line ? 3 : 4, { x.d[0], x.d[1], count[0], count[1] } }, (double)(size[0] * size[1] + 4));
    }
}

/* The place that element i is read at, as a quotient. */
static double place_of(int64_t i, int64_t from, int64_t to, hd_resize_mode mode) {
    const double I = (double)i, L = (double)from, M = (double)to;
    if (mode == HD_RESIZE_NEAREST) return floor(I * L / M + 1e-9);
    if (mode == HD_RESIZE_NEAREST_CENTRES) return floor((2 * I + 1) * L / (2 * M) + 1e-9);
    if (mode == HD_RESIZE_LINEAR_CORNERS) return to == 1 ? 0 : I * (L - 1) / (M - 1);
    return fmin(fmax((I + 0.5) * L / M - 0.5, 0), L - 1);
}

static void resizes(void **state) {
    (void)state;
    for (int round = 0; round < 160; round++) {
        const hd_resize_mode mode = (hd_resize_mode)(round % 4);
        fill(&x, 1 + chance(2), 1 + chance(3), 1 + chance(12), 1 + chance(12));
        const int64_t to[] = { 1 + chance(20), round % 5 ? 1 + chance(20) : x.d[3] };
        for (int64_t i = 0; i < x.d[0] * x.d[1] * to[0] * to[1]; i++) {
            const int64_t v = i % to[1], h = i / to[1] % to[0], c = i / to[1] / to[0] % x.d[1], n = i / to[1] / to[0] / x.d[1];
            const double row = place_of(h, x.d[2], to[0], mode), column = place_of(v, x.d[3], to[1], mode);
            expected[i] = sizes[i] = 0;
            for (int64_t a = 0; a < x.d[2]; a++)
                for (int64_t b = 0; b < x.d[3]; b++) {
                    const double share = fmax(0, 1 - fabs((double)a - row)) * fmax(0, 1 - fabs((double)b - column));
                    expected[i] += share * at(&x, n, c, a, b);
                    sizes[i] += share * fabs(at(&x, n, c, a, b));
                }
            sizes[i] += 1e-3;
        }
        s.p = hd_program_create(s.context);
        const hd_value from = input("x", &x, false);
        judge("resize", hd_resize(s.p, from, to, 2, mode), HD_SHAPE(x.d[0], x.d[1], to[0], to[1]), 12);
    }
}

/* What is not in an element's windows does not reach it, whatever it is. */
static void infinities(void **state) {
    (void)state;
    fill(&x, 1, 1, 4, 4);
    x.data[5] = INFINITY;
    x.data[10] = NAN;
    for (int64_t i = 0; i < 64; i++) {
        const int64_t h = i / 8 / 2, v = i % 8 / 2;
        expected[i] = (double)x.data[h * 4 + v];
        sizes[i] = 1;
    }
    static float got[64];
    hd_plan *plan;
    const int64_t to[] = { 8, 8 };
    s.p = hd_program_create(s.context);
    const hd_value from = input("x", &x, false);
    hd_output(s.p, "near", hd_resize(s.p, from, to, 2, HD_RESIZE_NEAREST));
    hd_output(s.p, "same", hd_resize(s.p, from, (const int64_t[]){ 4, 7 }, 2, HD_RESIZE_LINEAR_CORNERS));
    hd_output(s.p, "most", hd_max_pool(s.p, from, &(hd_pool_desc){ .size = { 2, 2 } }));
    assert_int_equal(hd_plan_create(s.device, s.p, NULL, &plan), HD_OK);
    assert_int_equal(hd_plan_write(plan, "x", x.data, 64), HD_OK);
    assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
    assert_int_equal(hd_plan_read(plan, "near", got, sizeof got), HD_OK);
    for (int i = 0; i < 64; i++) assert_true((double)got[i] == expected[i] || (isnan(got[i]) && isnan(expected[i])));
    assert_int_equal(hd_plan_read(plan, "same", got, 4 * 7 * sizeof *got), HD_OK);
    for (int h = 0; h < 4; h++) for (int v = 0; v < 4; v++) { /* every second one is read as it is, beside an infinity too */
        const float one = x.data[h * 4 + v], ours = got[h * 7 + 2 * v];
        assert_true(ours == one || (isnan(ours) && isnan(one)));
    }
    assert_int_equal(hd_plan_read(plan, "most", got, 4 * sizeof *got), HD_OK);
    assert_true(got[0] == INFINITY && isfinite(got[1]) && isfinite(got[2]) && isnan(got[3]));
    hd_plan_destroy(plan);
    hd_program_destroy(s.p);
}

/* With less memory than it would take, a network goes through its images some at a time, to the same bits. */
static void images_in_pieces(void **state) {
    (void)state;
    enum { IMAGES = 16, CHANNELS = 8, SIDE = 20 };
    static float whole[IMAGES * CHANNELS], pieces[IMAGES * CHANNELS];
    uint64_t needed = 0;
    fill(&x, IMAGES, CHANNELS, SIDE, SIDE);
    fill(&w, CHANNELS, CHANNELS, 3, 3);
    s.p = hd_program_create(s.context);
    hd_value y = input("x", &x, false);
    const hd_value weights = input("w", &w, false);
    for (int layer = 0; layer < 2; layer++)
        y = hd_relu(s.p, hd_conv(s.p, y, weights, 0, &(hd_conv_desc){ .pad_before = { 1, 1 }, .pad_after = { 1, 1 } }));
    y = hd_mean_pool(s.p, hd_max_pool(s.p, y, &(hd_pool_desc){ .size = { 2, 3 }, .stride = { 2, 2 }, .pad_after = { 0, 1 } }), NULL);
    hd_output(s.p, "y", y);
    for (int round = 0; round < 2; round++) {
        hd_plan *plan;
        hd_plan_memory memory;
        const uint64_t budget = round ? needed * 2 / 5 : 0;
        if (hd_plan_create(s.device, s.p, &(hd_plan_desc){ .math = HD_MATH_EXACT, .budget_bytes = budget }, &plan)) fail_msg("%s", hd_context_error(s.context));
        assert_int_equal(hd_plan_get_memory(plan, &memory), HD_OK);
        if (round == 0) needed = memory.total_bytes;
        else assert_true(memory.total_bytes <= budget);
        assert_int_equal(hd_plan_write(plan, "x", x.data, sizeof(float) * IMAGES * CHANNELS * SIDE * SIDE), HD_OK);
        assert_int_equal(hd_plan_write(plan, "w", w.data, sizeof(float) * CHANNELS * CHANNELS * 9), HD_OK);
        assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
        assert_int_equal(hd_plan_read(plan, "y", round ? pieces : whole, sizeof whole), HD_OK);
        hd_plan_destroy(plan);
    }
    assert_memory_equal(whole, pieces, sizeof whole);
    hd_program_destroy(s.p);
}

/* ---- what is refused ---- */

static void refused(hd_status status, const char *why) {
    if (hd_program_check(s.p) != status || !strstr(hd_context_error(s.context), why)) fail_msg("%d: %s, not: %s", (int)hd_program_check(s.p), hd_context_error(s.context), why);
    hd_program_destroy(s.p);
    s.p = hd_program_create(s.context);
}
#define REFUSED(status, why, call) do { \
    const hd_value x4 = hd_input(s.p, "x", HD_F32, HD_SHAPE(1, 4, 5, 5)), w4 = hd_input(s.p, "w", HD_F32, HD_SHAPE(6, 2, 3, 3)), l3 = hd_input(s.p, "l", HD_F32, HD_SHAPE(2, 4, 5)), \
                   h = hd_input(s.p, "h", HD_F16, HD_SHAPE(6, 2, 3, 3)), b = hd_input(s.p, "b", HD_F32, HD_SHAPE(5)), i = hd_input(s.p, "i", HD_I32, HD_SHAPE(1, 4, 5, 5)); \
    (void)x4, (void)w4, (void)l3, (void)h, (void)b, (void)i; \
    assert_int_equal(call, 0); \
    refused(HD_STATUS_##status, why); } while (0)

static void refusals(void **state) {
    (void)state;
    const uint32_t all = UINT32_MAX;
    s.p = hd_program_create(s.context);
    REFUSED(UNKNOWN_VALUE, "conv: operand 2 is a value of another program, or none", hd_conv(s.p, x4, 0, 0, NULL));
    REFUSED(UNKNOWN_VALUE, "conv: operand 3 is a value of another program, or none", hd_conv(s.p, x4, w4, 12345, &(hd_conv_desc){ .groups = 2 }));
    REFUSED(TYPE, "conv: operand 1 is i32, it must be f32, f16 or bf16", hd_conv(s.p, i, w4, 0, NULL));
    REFUSED(TYPE, "conv: operands 1 and 2 are f32 and f16: cast one of them", hd_conv(s.p, x4, h, 0, NULL));
    REFUSED(SHAPE, "conv: operand 1 is [5], it must be [N,C,L] or [N,C,H,W]", hd_conv(s.p, b, w4, 0, NULL));
    REFUSED(SHAPE, "conv: the weights are [6,2,3,3], they need as many axes as operand 1, 3", hd_conv(s.p, l3, w4, 0, NULL));
    REFUSED(SHAPE, "conv: [1,4,5,5] with weights [6,2,3,3] and 1 groups: the channels do not go together", hd_conv(s.p, x4, w4, 0, NULL));
    REFUSED(SHAPE, "and 3 groups: the channels do not go together", hd_conv(s.p, x4, w4, 0, &(hd_conv_desc){ .groups = 3 }));
    REFUSED(SHAPE, "and 4294967295 groups", hd_conv(s.p, x4, w4, 0, &(hd_conv_desc){ .groups = all }));
    REFUSED(SHAPE, "conv: the bias is [5], it must be [6]", hd_conv(s.p, x4, w4, b, &(hd_conv_desc){ .groups = 2 }));
    REFUSED(SHAPE, "conv: a window of 3 elements, 3 apart, is longer than axis 2, 5 elements with padding", hd_conv(s.p, x4, w4, 0, &(hd_conv_desc){ .groups = 2, .dilation = { 3, 1 } }));
    REFUSED(SHAPE, "3 elements, 4294967295 apart, is longer than axis 3, 6 elements with padding", hd_conv(s.p, x4, w4, 0, &(hd_conv_desc){ .groups = 2, .dilation = { 1, all }, .pad_after = { 0, 1 } }));
    REFUSED(LIMIT, "conv: [1,4,8589934595,8589934595], as padding makes it, is more than a tensor can have", hd_conv(s.p, x4, w4, 0, &(hd_conv_desc){ .groups = 2, .pad_before = { all, all }, .pad_after = { all, all } }));
    REFUSED(LIMIT, "conv_transpose: axis 2 is more than a tensor can have", hd_conv_transpose(s.p, hd_input(s.p, "far", HD_F32, HD_SHAPE(1, 1, INT64_C(1) << 36)), hd_input(s.p, "k", HD_F32, HD_SHAPE(1, 1, 2)), 0, &(hd_conv_desc){ .stride = { all } }));
    REFUSED(SHAPE, "conv_transpose: [1,4,5,5] with weights [6,2,3,3]", hd_conv_transpose(s.p, x4, w4, 0, NULL));
    REFUSED(INVALID_ARGUMENT, "conv_transpose: output_pad 2 must be below the stride, 2, or the dilation, 1", hd_conv_transpose(s.p, x4, hd_input(s.p, "k", HD_F32, HD_SHAPE(4, 1, 2, 2)), 0, &(hd_conv_desc){ .stride = { 2 }, .output_pad = { 2 } }));
    REFUSED(ZERO_SIZE, "conv_transpose: padding of 6 leaves nothing of axis 2, 6", hd_conv_transpose(s.p, x4, hd_input(s.p, "k", HD_F32, HD_SHAPE(4, 1, 2, 2)), 0, &(hd_conv_desc){ .pad_before = { 3 }, .pad_after = { 3 } }));
    REFUSED(SHAPE, "max_pool: a window of 6 elements, 1 apart, is longer than axis 3, 5 elements with padding", hd_max_pool(s.p, x4, &(hd_pool_desc){ .size = { 2, 6 } }));
    REFUSED(TYPE, "mean_pool: operand 1 is i32", hd_mean_pool(s.p, i, NULL));
    REFUSED(SHAPE, "mean_pool: operand 1 is [5], it must be [N,C,L] or [N,C,H,W]", hd_mean_pool(s.p, b, NULL));
    REFUSED(UNKNOWN_VALUE, "max_pool: operand 1 is a value of another program, or none", hd_max_pool(s.p, 0, NULL));
    REFUSED(ZERO_SIZE, "resize: axis 3 of 5 elements cannot become 0", hd_resize(s.p, x4, (const int64_t[]){ 0 }, 1, HD_RESIZE_LINEAR));
    REFUSED(LIMIT, "resize: axis 3 of 5 elements cannot become 4294967296", hd_resize(s.p, x4, (const int64_t[]){ INT64_C(1) << 32 }, 1, HD_RESIZE_NEAREST));
    REFUSED(LIMIT, "the places are no i32", hd_resize(s.p, hd_input(s.p, "far", HD_F32, HD_SHAPE(99991)), (const int64_t[]){ 99989 }, 1, HD_RESIZE_LINEAR));
    REFUSED(SHAPE, "resize: 2 lengths given for [5]", hd_resize(s.p, b, (const int64_t[]){ 2, 2 }, 2, HD_RESIZE_LINEAR));
    REFUSED(NULL_POINTER, "resize: lengths is NULL", hd_resize(s.p, b, NULL, 1, HD_RESIZE_LINEAR));
    REFUSED(INVALID_ARGUMENT, "resize: 9 is none of hd_resize_mode", hd_resize(s.p, b, (const int64_t[]){ 2 }, 1, (hd_resize_mode)9));
    REFUSED(LIMIT, "windows_sum: [2,9223372036854775807] is more than a tensor can have", hd_windows_sum(s.p, l3, 1, INT64_MAX, 1, 1));
    REFUSED(LIMIT, "windows_sum: 1073741824 elements of each window, as rows of 1073741826, are more than a tensor can have", hd_windows_sum(s.p, hd_input(s.p, "far", HD_F32, HD_SHAPE(2, INT64_C(1) << 30)), 0, (INT64_C(1) << 30) + 1, 1, 1));
    REFUSED(LIMIT, "more than 2^40 bytes", hd_max_pool(s.p, x4, &(hd_pool_desc){ .pad_before = { all, all }, .pad_after = { all, all }, .size = { 2, 2 } }));
    REFUSED(SHAPE, "windows_sum: [2,4,5] reaches beyond 7 elements along axis 1", hd_windows_sum(s.p, l3, 1, 7, 1, 1));
    REFUSED(SHAPE, "windows_sum: [2,4,5] reaches beyond", hd_windows_sum(s.p, l3, 1, 8, 1, INT64_MAX));
    REFUSED(INVALID_ARGUMENT, "windows_sum: axis 2 is outside of [2,4,5] without its last axis", hd_windows_sum(s.p, l3, 2, 8, 1, 1));
    REFUSED(INVALID_ARGUMENT, "windows_sum: stride -1 and dilation 1 must be above 0", hd_windows_sum(s.p, l3, 1, 8, -1, 1));
    hd_program_destroy(s.p);
}

/* Whatever the numbers are: a well-formed program, or a failure that names the operation. */
static void any_numbers(void **state) {
    (void)state;
    static const uint32_t words[] = { 0, 0, 0, 1, 1, 2, 2, 3, 5, 7, 1u << 31, UINT32_MAX };
    static const int64_t lengths[] = { 1, 1, 2, 3, 4, 7, 64, INT64_C(1) << 20, (INT64_C(1) << 31) - 1, INT64_C(1) << 37 };
    uint32_t made = 0, refused_count = 0;
    for (int round = 0; round < 20000; round++) {
        uint32_t numbers[14];
        hd_shape shapes[2] = { { (uint32_t)(3 + chance(2)), { 0 } }, { 0, { 0 } } };
        for (int i = 0; i < 14; i++) numbers[i] = words[chance(12)];
        shapes[1].rank = shapes[0].rank;
        for (int i = 0; i < 8; i++) shapes[i / 4].dims[i % 4] = lengths[chance(round % 2 ? 6 : 10)];
        if (round % 4) shapes[1].dims[round / 8 % 2] = shapes[0].dims[1]; /* channels that go together */
        s.p = hd_program_create(s.context);
        const hd_value a = hd_input(s.p, "a", HD_F32, shapes[0]), b = hd_input(s.p, "b", HD_F32, shapes[1]);
        hd_conv_desc d;
        hd_pool_desc pool;
        memcpy(&d, numbers, sizeof d);
        memcpy(&pool, numbers, sizeof pool);
        hd_value y = 0;
        switch (round / 16 % 6) {
        case 0: y = hd_conv(s.p, a, b, 0, &d); break;
        case 1: y = hd_conv_transpose(s.p, a, b, 0, &d); break;
        case 2: y = hd_max_pool(s.p, a, &pool); break;
        case 3: y = hd_mean_pool(s.p, a, &pool); break;
        case 4: y = hd_resize(s.p, a, shapes[1].dims, (uint32_t)chance(5), (hd_resize_mode)chance(4)); break;
        default: y = hd_windows_sum(s.p, a, (int)chance(5) - 2, lengths[chance(10)] + (int64_t)numbers[0], numbers[1], numbers[2]); break;
        }
        if (y && a && b) hd_output(s.p, "y", y);
        const hd_status status = hd_program_check(s.p);
        if (y && a && b) assert_int_equal(status, HD_OK), made++;
        else assert_int_not_equal(status, HD_OK), refused_count++;
        hd_program_destroy(s.p);
    }
    assert_true(made > 1000 && refused_count > 1000);
}

static int open_cpu(void **state) {
    (void)state;
    return hd_context_create(NULL, &s.context) || hd_device_open(s.context, &(hd_device_desc){ .id = "cpu" }, &s.device);
}
static int close_cpu(void **state) {
    (void)state;
    hd_context_destroy(s.context);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(convolutions), cmocka_unit_test(transposed), cmocka_unit_test(pools), cmocka_unit_test(resizes), cmocka_unit_test(infinities), cmocka_unit_test(images_in_pieces), cmocka_unit_test(refusals), cmocka_unit_test(any_numbers) };
    return cmocka_run_group_tests(tests, open_cpu, close_cpu);
}
