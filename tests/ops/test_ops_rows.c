/* test_ops_rows.c: reductions over every axis, softmax and its kin, norms: lengths 1 to 67, around 256, and rows so long
 * that they are summed in parts; extreme values; NaN and infinity. */
#include "ops.h"
#include <math.h>
#include <stdlib.h>

static const hd_dtype floats[] = { HD_F32, HD_F16, HD_BF16 };
static const hd_dtype numbers[] = { HD_F32, HD_F16, HD_BF16, HD_I32 };

typedef struct reduction {
    hdi_op   op;
    hd_value (*build)(hd_program *, hd_value, int);
} reduction;
static const reduction reductions[] = {
    { HDI_OP_SUM, hd_sum }, { HDI_OP_MEAN, hd_mean }, { HDI_OP_MAX, hd_max }, { HDI_OP_MIN, hd_min }, { HDI_OP_ARGMAX, hd_argmax }, { HDI_OP_DOT, NULL },
};
static bool takes(uint32_t which, hd_dtype dtype) { return dtype != HD_I32 || (reductions[which].op != HDI_OP_MEAN && reductions[which].op != HDI_OP_DOT); }

static void reduce(uint32_t which, hd_dtype dtype, hd_shape shape, int axis, ops_fill fill) {
    const hd_value x = ops_input(dtype, shape, fill);
    const hdi_op op = reductions[which].op;
    if (op == HDI_OP_DOT) ops_case_of(op, hd_dot(ops_program(), x, ops_input(dtype, shape, fill), axis));
    else ops_case_of(op, reductions[which].build(ops_program(), x, axis));
}

/* One factor for each place of the axis, by the shapes that a mixture of experts has, and with long columns. */
static void factors_of_places(void) {
    static const struct { hd_shape shape; int axis; } cases[] = {
        { { 3, { 5, 8, 67 } }, 1 }, { { 3, { 1, 4, 300 } }, 1 }, { { 4, { 2, 3, 33, 5 } }, 1 }, { { 4, { 2, 3, 33, 5 } }, 2 }, { { 2, { 513, 3 } }, 0 },
        { { 2, { 140000, 2 } }, 0 }, { { 3, { 2, 3000, 7 } }, 1 }, { { 2, { 3, 9 } }, 1 }
    };
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        ops_begin(hd_dtype_name(floats[t]), 0);
        for (uint32_t i = 0; i < HDI_COUNT(cases); i++) {
            hd_shape each = cases[i].shape;
            for (uint32_t k = (uint32_t)cases[i].axis + 1; k < each.rank; k++) each.dims[k] = 1;
            const hd_value x = ops_input(floats[t], cases[i].shape, OPS_UNIT);
            ops_case_of(HDI_OP_DOT, hd_dot(ops_program(), x, ops_input(floats[t], each, OPS_UNIT), cases[i].axis));
        }
        ops_end();
    }
}

static void reductions_over(void) {
    static const int64_t lengths[] = { 1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 32, 33, 47, 63, 64, 65, 66, 67, 127, 255, 256, 257, 513, 1000 };
    static const hd_shape shapes[] = { { 2, { 5, 9 } }, { 3, { 3, 67, 2 } }, { 4, { 2, 3, 33, 5 } }, { 6, { 2, 1, 3, 2, 1, 4 } }, { 3, { 1, 257, 3 } }, { 2, { 66, 300 } } };
    for (uint32_t t = 0; t < HDI_COUNT(numbers); t++) {
        ops_begin(hd_dtype_name(numbers[t]), 0);
        for (uint32_t i = 0; i < HDI_COUNT(reductions); i++) {
            if (!takes(i, numbers[t])) continue;
            const ops_fill fill = reductions[i].op == HDI_OP_ARGMAX ? OPS_WHOLE : numbers[t] == HD_I32 ? OPS_WIDE : OPS_UNIT;
            for (uint32_t n = 0; n < HDI_COUNT(lengths); n++) {
                reduce(i, numbers[t], HD_SHAPE(1 + ops_random(4), lengths[n]), 1, fill);
                reduce(i, numbers[t], HD_SHAPE(lengths[n], 1 + ops_random(40)), -2, fill);
            }
            for (uint32_t s = 0; s < HDI_COUNT(shapes); s++) {
                for (uint32_t axis = 0; axis < shapes[s].rank; axis++) reduce(i, numbers[t], shapes[s], (int)axis - (axis % 2 ? (int)shapes[s].rank : 0), fill);
                reduce(i, numbers[t], shapes[s], HD_ALL_AXES, fill);
            }
            ops_split(60);
        }
        ops_end();
    }
}

static void long_rows(void) {
    static const int64_t lengths[] = { 65535, 65536, 65537, 200001 };
    for (uint32_t t = 0; t < HDI_COUNT(numbers); t++) {
        ops_begin(hd_dtype_name(numbers[t]), 0);
        for (uint32_t i = 0; i < HDI_COUNT(reductions); i++)
            for (uint32_t n = 0; n < HDI_COUNT(lengths) && takes(i, numbers[t]); n++) {
                reduce(i, numbers[t], HD_SHAPE(n == 2 ? 2 : 1, lengths[n]), 1, OPS_UNIT);
                if (n >= 2) reduce(i, numbers[t], HD_SHAPE(lengths[n] * (n - 1), 2), 0, OPS_UNIT);
            }
        ops_end();
    }
}

static void special_reductions(void) {
    for (uint32_t t = 0; t < HDI_COUNT(numbers); t++) {
        ops_begin(hd_dtype_name(numbers[t]), 0);
        for (uint32_t i = 2; i < 5; i++) /* max, min, argmax: exact, whatever comes */
            for (uint32_t n = 0; n < 4; n++) {
                reduce(i, numbers[t], HD_SHAPE(41, 3 + 7 * n), 1, OPS_SPECIAL);
                reduce(i, numbers[t], HD_SHAPE(3 + 7 * n, 41), 0, OPS_SPECIAL);
                reduce(i, numbers[t], HD_SHAPE(4, 100), n % 2 ? 1 : 0, OPS_WHOLE);
            }
        ops_end();
        if (numbers[t] == HD_I32) continue;
        ops_begin(hd_dtype_name(numbers[t]), OPS_EXACT_ONLY);
        for (uint32_t i = 0; i < HDI_COUNT(reductions); i++) {
            reduce(i, numbers[t], HD_SHAPE(41, 2), 1, OPS_SPECIAL);
            reduce(i, numbers[t], HD_SHAPE(7, 33), 0, OPS_SPECIAL);
            reduce(i, numbers[t], HD_SHAPE(5, 77), 1, OPS_TINY);
            reduce(i, numbers[t], HD_SHAPE(77, 5), 0, OPS_TINY);
        }
        ops_end();
    }
}

/* Factors that keep the product of n of them near one, of either sign; whole numbers wrap. */
static hd_value factors(hd_dtype dtype, hd_shape shape, uint64_t n) {
    const uint64_t count = hd_shape_elements(shape), bytes = hdi_dtype(dtype).block_bytes;
    uint8_t *room = malloc(count * bytes);
    const double spread = fmin(1, 2 / sqrt((double)n));
    if (!room) abort();
    for (uint64_t i = 0; i < count; i++) {
        const double near_one = (ops_random(2) ? 1 : -1) * (1 + spread * ((double)ops_random(2001) / 1000 - 1));
        oracle_store(dtype, dtype == HD_I32 ? (double)ops_random(1u << 31) * 2 - 0x1p31 + 1 : near_one, room + i * bytes);
    }
    const hd_value value = ops_given(dtype, shape, room);
    free(room);
    return value;
}
static void products(void) {
    static const int64_t lengths[] = { 1, 2, 3, 5, 31, 32, 33, 65, 255, 256, 257, 1000, 65537 };
    static const hd_shape shapes[] = { { 2, { 5, 9 } }, { 3, { 3, 67, 2 } }, { 4, { 2, 3, 33, 5 } }, { 6, { 2, 1, 3, 2, 1, 4 } } };
    for (uint32_t t = 0; t < HDI_COUNT(numbers); t++) {
        ops_begin(hd_dtype_name(numbers[t]), 0);
        for (uint32_t n = 0; n < HDI_COUNT(lengths); n++) {
            const int64_t length = lengths[n];
            ops_case_of(HDI_OP_PROD, hd_prod(ops_program(), factors(numbers[t], HD_SHAPE(3, length), (uint64_t)length), 1));
            ops_case_of(HDI_OP_PROD, hd_prod(ops_program(), factors(numbers[t], HD_SHAPE(length, 3), (uint64_t)length), 0));
        }
        for (uint32_t s = 0; s < HDI_COUNT(shapes); s++)
            for (uint32_t axis = 0; axis <= shapes[s].rank; axis++) /* the last time over all */
                ops_case_of(HDI_OP_PROD, hd_prod(ops_program(), factors(numbers[t], shapes[s], 60), axis < shapes[s].rank ? (int)axis : HD_ALL_AXES));
        ops_case_of(HDI_OP_PROD, hd_prod(ops_program(), ops_input(numbers[t], HD_SHAPE(9, 40), OPS_WHOLE), 1));
        ops_end();
        ops_begin(hd_dtype_name(numbers[t]), OPS_EXACT_ONLY);
        ops_case_of(HDI_OP_PROD, hd_prod(ops_program(), ops_input(numbers[t], HD_SHAPE(41, 3), OPS_SPECIAL), 1));
        ops_case_of(HDI_OP_PROD, hd_prod(ops_program(), ops_input(numbers[t], HD_SHAPE(3, 33), OPS_TINY), 0));
        ops_end();
    }
}

static void running_sums(void) {
    static const int64_t lengths[] = { 1, 2, 3, 7, 64, 255, 256, 257, 512, 1000, 4095, 4096, 4097, 70001 };
    static const hd_shape shapes[] = { { 3, { 3, 5, 7 } }, { 4, { 2, 3, 300, 2 } }, { 6, { 2, 1, 3, 2, 1, 4 } } };
    for (uint32_t t = 0; t < HDI_COUNT(numbers); t++) {
        const ops_fill fill = numbers[t] == HD_I32 ? OPS_WIDE : OPS_UNIT;
        ops_begin(hd_dtype_name(numbers[t]), 0);
        for (uint32_t flags = 0; flags < 4; flags++) {
            for (uint32_t n = 0; n < HDI_COUNT(lengths); n++) ops_case(hd_cumsum(ops_program(), ops_input(numbers[t], HD_SHAPE(1 + n % 3, lengths[n]), fill), -1, flags));
            for (uint32_t s = 0; s < HDI_COUNT(shapes); s++)
                for (uint32_t axis = 0; axis < shapes[s].rank; axis++) ops_case(hd_cumsum(ops_program(), ops_input(numbers[t], shapes[s], fill), (int)axis, flags));
            ops_split(14);
        }
        ops_end();
        ops_begin(hd_dtype_name(numbers[t]), OPS_EXACT_ONLY);
        for (uint32_t flags = 0; flags < 4; flags++) ops_case(hd_cumsum(ops_program(), ops_input(numbers[t], HD_SHAPE(5, 40), flags % 2 ? OPS_SPECIAL : OPS_TINY), 1, flags));
        ops_end();
    }
}

/* ---- softmax and its kin ---- */

static void softmaxes(void) {
    static const int64_t lengths[] = { 1, 2, 3, 5, 17, 31, 32, 33, 63, 64, 65, 66, 67, 255, 256, 257, 1000 };
    static const hd_shape shapes[] = { { 3, { 3, 5, 7 } }, { 4, { 2, 3, 4, 5 } }, { 6, { 2, 1, 3, 1, 2, 5 } }, { 2, { 33, 9 } } };
    static hd_value (*const build[])(hd_program *, hd_value, int) = { hd_softmax, hd_log_softmax };
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        ops_begin(hd_dtype_name(floats[t]), 0);
        for (uint32_t i = 0; i < HDI_COUNT(build); i++) {
            for (uint32_t n = 0; n < HDI_COUNT(lengths); n++) {
                ops_case(build[i](ops_program(), ops_input(floats[t], HD_SHAPE(1 + n % 3, lengths[n]), OPS_MIDDLE), -1));
                ops_case(build[i](ops_program(), ops_input(floats[t], HD_SHAPE(lengths[n]), n % 2 ? OPS_UNIT : OPS_WHOLE), 0));
            }
            for (uint32_t s = 0; s < HDI_COUNT(shapes); s++)
                for (uint32_t axis = 0; axis < shapes[s].rank; axis++) ops_case(build[i](ops_program(), ops_input(floats[t], shapes[s], OPS_MIDDLE), (int)axis));
            ops_case(build[i](ops_program(), ops_input(floats[t], HD_SHAPE(2, 65537), OPS_MIDDLE), 1));
            ops_case(build[i](ops_program(), ops_input(floats[t], HD_SHAPE(1, 1048600), OPS_MIDDLE), 1));
            ops_split(30);
        }
        ops_end();
    }
}

/* Rows of extremes: huge, all equal, some and all -infinite, +infinite, NaN. */
static void extreme_rows(void) {
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        const double huge = floats[t] == HD_F16 ? 60000 : 1e30;
        const double kinds[][4] = { { huge, -huge, 0, 1 }, { huge, huge, huge, huge }, { 3, 3, 3, 3 }, { -INFINITY, 0, 1, -INFINITY }, { -INFINITY, -INFINITY, -INFINITY, -INFINITY },
                                    { INFINITY, 0, 1, 2 }, { NAN, 0, 1, 2 }, { -huge, -huge, -huge, -huge }, { 0, -0.0, 0, -0.0 }, { 80, -80, 88, 0 } };
        ops_begin(hd_dtype_name(floats[t]), 0);
        for (uint32_t k = 0; k < HDI_COUNT(kinds); k++)
            for (uint32_t n = 0; n < 3; n++) {
                const uint32_t width = n == 0 ? 4 : n == 1 ? 67 : 300;
                uint8_t bytes[3 * 4 * 300];
                for (uint32_t i = 0; i < 3 * width; i++) oracle_store(floats[t], kinds[k][i % 4], bytes + i * hdi_dtype(floats[t]).block_bytes);
                const hd_value x = ops_given(floats[t], HD_SHAPE(3, width), bytes);
                ops_case(hd_softmax(ops_program(), x, n == 2 ? 0 : 1));
                ops_case(hd_log_softmax(ops_program(), x, n == 2 ? 0 : 1));
                ops_case(hd_cross_entropy(ops_program(), x, ops_indices(HD_SHAPE(3), 0, 3)));
            }
        ops_end();
    }
}

static void cross_entropies(void) {
    static const hd_shape shapes[] = { { 1, { 7 } }, { 2, { 5, 1 } }, { 2, { 9, 33 } }, { 2, { 3, 257 } }, { 3, { 2, 3, 65 } }, { 4, { 2, 1, 3, 11 } }, { 6, { 1, 2, 1, 3, 2, 67 } }, { 2, { 4, 1000 } } };
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        ops_begin(hd_dtype_name(floats[t]), 0);
        for (uint32_t s = 0; s < HDI_COUNT(shapes); s++)
            for (uint32_t k = 0; k < 3; k++) {
                hd_shape rows = shapes[s];
                const int32_t n = (int32_t)rows.dims[--rows.rank];
                rows.dims[rows.rank] = 0;
                const hd_value x = ops_input(floats[t], shapes[s], k == 1 ? OPS_UNIT : OPS_MIDDLE);
                ops_case(hd_cross_entropy(ops_program(), x, ops_indices(rows, k == 2 ? -2 : 0, k == 2 ? n + 1 : n - 1)));
            }
        ops_end();
    }
}

static void slopes_of_losses(void) {
    static const hd_shape shapes[] = { { 1, { 7 } }, { 2, { 5, 1 } }, { 2, { 9, 33 } }, { 2, { 3, 257 } }, { 3, { 2, 3, 65 } }, { 2, { 4, 1000 } } };
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        ops_begin(hd_dtype_name(floats[t]), 0);
        for (uint32_t s = 0; s < HDI_COUNT(shapes); s++)
            for (uint32_t k = 0; k < 3; k++) {
                hd_program *p = ops_program();
                hd_shape rows = shapes[s];
                const int32_t n = (int32_t)rows.dims[--rows.rank];
                rows.dims[rows.rank] = 0;
                const hd_value x = ops_input(floats[t], shapes[s], k == 1 ? OPS_UNIT : OPS_MIDDLE);
                const hd_value operands[] = { x, ops_indices(rows, k == 2 ? -2 : 0, k == 2 ? n + 1 : n - 1), ops_input(HD_F32, rows, OPS_UNIT) };
                const hd_value y = hdi_program_put(p, &(hdi_node){ .op = HDI_OP_CROSS_ENTROPY_GRADIENT, .operands = operands, .operand_count = 3 });
                if (k) ops_case(y);
                else ops_case_of(HDI_OP_CROSS_ENTROPY_GRADIENT, hd_cast(p, y, HD_BF16)); /* rounded as it is stored */
                if (k == 0) continue;
                const hd_value told[] = { x, operands[1], operands[2], hd_cross_entropy(p, x, operands[1]) }; /* which fast mode reads */
                ops_case(hdi_program_put(p, &(hdi_node){ .op = HDI_OP_CROSS_ENTROPY_GRADIENT, .operands = told, .operand_count = 4 }));
            }
        ops_end();
    }
}

/* ---- norms ---- */

/* Few rows and many, with and without a weight, with gradients in narrow types, and with what is added to the gradient at once. */
static void norm_gradients(void) {
    static const int64_t lengths[] = { 1, 2, 5, 31, 33, 64, 67, 255, 257, 1000 };
    static const float eps[] = { 1e-5f, 1e-6f, 0.1f };
    for (uint32_t centred = 0; centred < 2; centred++) {
        ops_begin(centred ? "gradients of layer_norm" : "gradients of rms_norm", 0);
        for (uint32_t n = 0; n < HDI_COUNT(lengths); n++)
            for (uint32_t k = 0; k < 4; k++) {
                hd_program *p = ops_program();
                const int64_t N = lengths[n];
                const hd_shape shape = k == 0 ? HD_SHAPE(N) : k == 1 ? HD_SHAPE(3, N) : k == 2 ? HD_SHAPE(2, 35, N) : HD_SHAPE(N > 67 ? 131 : 700, N);
                const hd_value x = ops_input(HD_F32, shape, n % 2 ? OPS_MIDDLE : OPS_UNIT), dy = ops_input(k < 2 ? HD_F32 : floats[n % HDI_COUNT(floats)], shape, OPS_UNIT);
                const hd_value weight = k % 2 ? ops_input(HD_F32, HD_SHAPE(N), OPS_UNIT) : 0, operands[] = { x, dy, weight };
                const hdi_attrs attrs = { .ints = { centred }, .floats = { eps[n % 3] } };
                hd_value y = hdi_program_put(p, &(hdi_node){ .op = HDI_OP_NORM_GRADIENT, .operands = operands, .operand_count = 3, .attrs = attrs });
                if (k == 2) y = hd_add(p, y, ops_input(HD_F32, shape, OPS_UNIT));
                if (k == 1 && n % 2) y = hd_cast(p, y, HD_BF16);
                ops_case_of(HDI_OP_NORM_GRADIENT, y);
                if (n % 3 == k % 3) ops_case(hdi_program_put(p, &(hdi_node){ .op = HDI_OP_NORM_SUMS, .operands = operands, .operand_count = 2, .attrs = attrs }));
            }
        ops_end();
    }
}

static void digests(void) {
    static const int64_t words[] = { 1, 255, 256, 257, 8192, 8193, 70001 }, halves[] = { 1, 3, 511, 513, 20001 },
                         bytes[] = { 1, 2, 3, 54, 55, 56, 63, 64, 1022, 1023, 1024, 1025, 1079, 33001, 1100000 };
    ops_begin("", 0);
    for (uint32_t n = 0; n < HDI_COUNT(words); n++) ops_case(hd_hash(ops_program(), ops_input(n % 2 ? HD_F32 : HD_I32, HD_SHAPE(words[n]), OPS_WIDE)));
    for (uint32_t n = 0; n < HDI_COUNT(halves); n++) ops_case(hd_hash(ops_program(), ops_input(n % 2 ? HD_F16 : HD_BF16, HD_SHAPE(1, halves[n]), OPS_WIDE)));
    for (uint32_t n = 0; n < HDI_COUNT(bytes); n++) ops_case(hd_hash(ops_program(), ops_input(HD_U8, HD_SHAPE(bytes[n]), OPS_UNIT)));
    ops_case(hd_hash(ops_program(), hd_transpose(ops_program(), ops_input(HD_F32, HD_SHAPE(33, 40), OPS_UNIT)))); /* as if it lay densely */
    ops_end();
}

static void norms(void) {
    static const int64_t lengths[] = { 1, 2, 3, 5, 17, 31, 32, 33, 64, 65, 67, 255, 256, 257, 1000, 2560 };
    static const float eps[] = { 1e-5f, 1e-6f, 0.1f };
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        ops_begin(hd_dtype_name(floats[t]), 0);
        for (uint32_t has = 0; has < 4; has++)
            for (uint32_t n = 0; n < HDI_COUNT(lengths); n++) {
                hd_program *p = ops_program();
                hd_shape shape = n % 3 == 0 ? HD_SHAPE(3, lengths[n]) : n % 3 == 1 ? HD_SHAPE(lengths[n]) : HD_SHAPE(2, 1, 3, lengths[n]);
                const hd_value x = ops_input(floats[t], shape, n % 2 ? OPS_MIDDLE : OPS_UNIT);
                const hd_value weight = has & 1 ? ops_input(floats[t], HD_SHAPE(lengths[n]), OPS_UNIT) : 0;
                const hd_value bias = has & 2 ? ops_input(floats[t], HD_SHAPE(lengths[n]), OPS_UNIT) : 0;
                ops_case(hd_layer_norm(p, x, weight, bias, eps[n % 3]));
                if (has < 2) ops_case(hd_rms_norm(p, x, weight, eps[n % 3]));
                if (n % 4 || has % 2) continue; /* rounded as it is stored, but where that would round twice */
                ops_case_of(HDI_OP_LAYER_NORM, hd_cast(p, hd_layer_norm(p, x, weight, bias, eps[n % 3]), has ? HD_F16 : HD_BF16));
            }
        for (uint32_t k = 0; k < 4; k++) { /* all equal, and far from zero */
            static const double values[] = { 0, 3, -1000, 60000 };
            uint8_t bytes[4 * 200];
            for (uint32_t i = 0; i < 200; i++) oracle_store(floats[t], values[k], bytes + i * hdi_dtype(floats[t]).block_bytes);
            ops_case(hd_rms_norm(ops_program(), ops_given(floats[t], HD_SHAPE(2, 100), bytes), 0, 1e-5f));
            ops_case(hd_layer_norm(ops_program(), ops_given(floats[t], HD_SHAPE(2, 100), bytes), 0, 0, 1e-5f));
        }
        ops_end();
    }
}

int main(int argc, char **argv) {
    static const ops_test tests[] = {
        { "reductions", reductions_over }, { "factors of places", factors_of_places }, { "long rows", long_rows }, { "special values", special_reductions }, { "products", products }, { "running sums", running_sums }, { "digests", digests }, { "softmax", softmaxes },
        { "extreme rows", extreme_rows }, { "cross entropy", cross_entropies }, { "norms", norms }, { "slopes of losses", slopes_of_losses }, { "gradients of norms", norm_gradients },
    };
    return ops_main("rows", tests, HDI_COUNT(tests), argc, argv);
}
