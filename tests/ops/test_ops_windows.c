/* test_ops_windows.c: windows, and what is made of them: sums of windows, convolution, pooling and resizing, over random
 * shapes. That the builders compute what their names say is shown by test_images.c. */
#include "ops.h"

static const hd_dtype plain[] = { HD_F32, HD_F16, HD_BF16, HD_I32, HD_U8 };
static const hd_dtype floats[] = { HD_F32, HD_F16, HD_BF16 };

/* Windows that fit: of up to `most` elements. */
typedef struct sweep { int64_t size, stride, dilation, length; } sweep;
static sweep random_sweep(int64_t most) {
    sweep s = { 1 + ops_random((uint32_t)most), 1 + ops_random(3), 1 + ops_random(3), 0 };
    s.length = (s.size - 1) * s.dilation + 1 + ops_random(9);
    return s;
}

static void windows(void) {
    for (uint32_t t = 0; t < HDI_COUNT(plain); t++) {
        ops_begin(hd_dtype_name(plain[t]), OPS_UNFUSED);
        for (uint32_t rank = 1; rank < HD_MAX_RANK; rank++)
            for (uint32_t axis = 0; axis < rank; axis++) {
                const sweep s = random_sweep(4);
                hd_shape shape = { rank, { 2, 3, 2, 3, 2, 2 } };
                shape.dims[axis] = s.length;
                hd_program *p = ops_program();
                const hd_value x = ops_input(plain[t], shape, OPS_WIDE), y = hd_windows(p, x, (int)axis - (axis % 2 ? (int)rank : 0), s.size, s.stride, s.dilation);
                ops_case(y);
                const hd_shape made = hdi_program_node(p, y)->shape;
                ops_case_of(HDI_OP_WINDOWS, hd_reshape(p, hd_transpose(p, y), HD_SHAPE((int64_t)hd_shape_elements(made))));
                if (plain[t] != HD_U8) ops_case_of(HDI_OP_WINDOWS, hd_add(p, y, hd_neg(p, hd_copy(p, y))));
            }
        ops_end();
    }
}

/* Windows whose axes are split again, and joined: a view, and a copy. */
static void splits(void) {
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        ops_begin(hd_dtype_name(floats[t]), OPS_UNFUSED);
        for (uint32_t k = 0; k < 6; k++) {
            hd_program *p = ops_program();
            const int64_t stride = 1 + ops_random(15), size = 12, count = 6;
            const hd_value x = ops_input(floats[t], HD_SHAPE(3, (count - 1) * stride + size), OPS_WIDE), y = hd_windows(p, x, 1, size, stride, 1);
            static const hd_shape shapes[] = { { 4, { 3, 6, 4, 3 } }, { 5, { 3, 2, 3, 1, 12 } }, { 6, { 1, 3, 3, 2, 2, 6 } }, { 3, { 3, 9, 8 } }, { 2, { 18, 12 } }, { 4, { 3, 6, 12, 1 } } };
            ops_case_of(HDI_OP_WINDOWS, hd_neg(p, hd_reshape(p, y, shapes[k])));
        }
        ops_end();
    }
}

/* Windows of windows, as columns that a product reads, on either side. */
static void products(void) {
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        ops_begin(hd_dtype_name(floats[t]), OPS_UNFUSED);
        for (uint32_t k = 0; k < 8; k++) {
            const sweep s = random_sweep(9);
            hd_program *p = ops_program();
            const hd_value x = ops_input(floats[t], HD_SHAPE(3, s.length + 8), OPS_UNIT), y = hd_windows(p, x, 1, s.size, s.stride, s.dilation);
            const int64_t count = hdi_program_node(p, y)->shape.dims[1];
            if (k % 2) ops_case_of(HDI_OP_WINDOWS, hd_matmul(p, y, ops_input(floats[t], HD_SHAPE(s.size, 5), OPS_UNIT)));
            else ops_case_of(HDI_OP_WINDOWS, hd_matmul(p, ops_input(floats[t], HD_SHAPE(7, count), OPS_UNIT), y));
        }
        ops_end();
    }
}

static void sums(void) {
    for (uint32_t t = 0; t < 4; t++) {
        ops_begin(hd_dtype_name(plain[t]), 0);
        for (uint32_t k = 0; k < 12; k++) {
            const sweep s = random_sweep(k % 4 ? 5 : 40);
            const uint32_t rank = 1 + k % 5, axis = ops_random(rank);
            hd_shape shape = { rank + 1, { 2, 3, 2, 3, 2, 2 } };
            shape.dims[axis] = (s.length - 1 - (s.size - 1) * s.dilation) / s.stride + 1;
            shape.dims[rank] = s.size;
            ops_case_of(HDI_OP_WINDOWS, hd_windows_sum(ops_program(), ops_input(plain[t], shape, OPS_UNIT), (int)axis, s.length + k % 3, s.stride, s.dilation));
        }
        ops_end();
    }
}

static hd_conv_desc random_conv(void) {
    hd_conv_desc d = { .groups = 1 + ops_random(3) };
    for (int i = 0; i < 2; i++) {
        d.stride[i] = ops_random(4);
        d.dilation[i] = ops_random(3);
        d.pad_before[i] = ops_random(3);
        d.pad_after[i] = ops_random(3);
    }
    return d;
}

static void convolutions(void) {
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        ops_begin(hd_dtype_name(floats[t]), 0);
        for (uint32_t k = 0; k < 24; k++) {
            const bool line = k % 4 == 3, turned = k % 2;
            hd_conv_desc d = random_conv();
            const int64_t G = d.groups, C = G * (1 + ops_random(3)), O = G * (1 + ops_random(3)), taps = 1 + ops_random(3);
            const int64_t N = 1 + ops_random(3), H = (k % 6 ? 6 : 20) + ops_random(6), W = (k % 6 ? 7 : 20) + ops_random(9);
            if (turned) d.output_pad[0] = d.stride[0] > 1;
            hd_shape x = { line ? 3 : 4, { N, C, H, W } }, w = { x.rank, { turned ? C : O, (turned ? O : C) / G, taps, 1 + ops_random(3) } };
            const hd_value bias = k % 3 ? ops_input(floats[t], HD_SHAPE(O), OPS_UNIT) : 0;
            const hd_value image = ops_input(floats[t], x, OPS_UNIT), weights = ops_input(floats[t], w, OPS_UNIT);
            ops_case_of(HDI_OP_WINDOWS, turned ? hd_conv_transpose(ops_program(), image, weights, bias, &d) : hd_conv(ops_program(), image, weights, bias, &d));
            ops_split(12);
        }
        ops_end();
    }
}

static void pools(void) {
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        ops_begin(hd_dtype_name(floats[t]), 0);
        for (uint32_t k = 0; k < 16; k++) {
            hd_pool_desc d = { .ceil_mode = k / 2 % 2, .count_pad = k / 4 % 2 };
            for (int i = 0; i < 2; i++) {
                d.size[i] = 1 + ops_random(4);
                d.stride[i] = ops_random(4);
                d.dilation[i] = ops_random(3);
                d.pad_before[i] = ops_random(d.size[i]);
                d.pad_after[i] = ops_random(d.size[i]);
            }
            const hd_shape shape = { k % 4 == 3 ? 3 : 4, { 1 + ops_random(3), 2, 7 + ops_random(9), 7 + ops_random(9) } };
            const hd_value x = ops_input(floats[t], shape, k % 3 ? OPS_UNIT : OPS_WHOLE);
            ops_case_of(HDI_OP_WINDOWS, (k % 2 ? hd_max_pool : hd_mean_pool)(ops_program(), x, k < 14 ? &d : NULL));
            ops_split(8);
        }
        ops_end();
    }
}

static void resizes(void) {
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        ops_begin(hd_dtype_name(floats[t]), 0);
        for (uint32_t k = 0; k < 12; k++) {
            const int64_t lengths[] = { 1 + ops_random(20), 1 + ops_random(20) };
            const hd_shape shape = { 2 + k % 3, { 1 + ops_random(9), 1 + ops_random(9), 1 + ops_random(9), 1 + ops_random(9) } };
            ops_case_of(HDI_OP_WINDOWS, hd_resize(ops_program(), ops_input(floats[t], shape, OPS_UNIT), lengths, 1 + k % 2, (hd_resize_mode)(k / 3)));
            ops_split(6);
        }
        ops_end();
    }
}

int main(int argc, char **argv) {
    static const ops_test tests[] = { { "windows", windows }, { "splits", splits }, { "products", products }, { "sums", sums }, { "convolution", convolutions }, { "pool", pools }, { "resize", resizes } };
    return ops_main("windows", tests, HDI_COUNT(tests), argc, argv);
}
