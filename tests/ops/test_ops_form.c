/* test_ops_form.c: operations that only move elements: every type, ranks 1 to 6, and views of views. */
#include "ops.h"

static const hd_dtype plain[] = { HD_F32, HD_F16, HD_BF16, HD_I32, HD_U8 };

/* Axes of random lengths whose product stays small. */
static hd_shape random_shape(uint32_t rank) {
    static const int64_t lengths[] = { 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33 };
    hd_shape shape = { rank, { 0 } };
    for (uint32_t i = 0; i < rank; i++) shape.dims[i] = ops_pick(lengths, rank < 3 ? 12 : rank < 5 ? 6 : 3);
    return shape;
}

/* The axes of permutation number `which` of `rank` axes. */
static void permutation(uint32_t rank, uint32_t which, uint32_t *out_axes) {
    uint32_t left[HD_MAX_RANK] = { 0, 1, 2, 3, 4, 5 };
    for (uint32_t i = 0; i < rank; i++) {
        const uint32_t at = which % (rank - i);
        which /= rank - i;
        out_axes[i] = left[at];
        for (uint32_t k = at; k + 1 < rank - i; k++) left[k] = left[k + 1];
    }
}

static void permutes(void) {
    static const uint32_t counts[HD_MAX_RANK + 1] = { 1, 1, 2, 6, 24, 20, 20 };
    for (uint32_t t = 0; t < HDI_COUNT(plain); t++) {
        ops_begin(hd_dtype_name(plain[t]), 0);
        for (uint32_t rank = 1; rank <= HD_MAX_RANK; rank++)
            for (uint32_t k = 0; k < counts[rank]; k++) {
                uint32_t axes[HD_MAX_RANK];
                permutation(rank, rank < 5 ? k : ops_random(720), axes);
                ops_case(hd_permute(ops_program(), ops_input(plain[t], random_shape(rank), OPS_WIDE), axes, rank));
            }
        for (uint32_t k = 0; k < 6; k++) ops_case(hd_transpose(ops_program(), ops_input(plain[t], random_shape(2 + k % 3), OPS_WIDE)));
        ops_end();
    }
}

/* Two axes that are long enough to be turned tile by tile, among others; whole, or a part of either tensor. */
static void turns(void) {
    static const int64_t lengths[] = { 16, 20, 32, 36, 68, 100, 132, 17, 33 };
    for (uint32_t t = 0; t < HDI_COUNT(plain); t++) {
        ops_begin(hd_dtype_name(plain[t]), 0);
        for (uint32_t k = 0; k < 24; k++) {
            const uint32_t rank = 2 + k % 3;
            hd_shape shape = { rank, { 0 } };
            uint32_t axes[HD_MAX_RANK];
            for (uint32_t i = 0; i < rank; i++) shape.dims[i] = i + 2 < rank && rank > 3 ? 3 : ops_pick(lengths, k < 18 ? 7 : 9);
            permutation(rank, rank == 2 ? 1 : 1 + ops_random(rank == 3 ? 5 : 23), axes);
            hd_program *p = ops_program();
            const hd_value x = ops_input(plain[t], shape, OPS_WIDE);
            if (k % 4 == 3) {
                const int64_t begin[HD_MAX_RANK] = { 0 };
                int64_t end[HD_MAX_RANK];
                for (uint32_t i = 0; i < rank; i++) end[i] = shape.dims[i] - (i + 1 == rank ? 4 : 0);
                const hd_value turned = hd_permute(p, hd_slice(p, x, begin, end, rank), axes, rank);
                ops_case(hd_concat(p, (hd_value[]){ turned, turned }, 2, (int)(rank - 1)));
            } else ops_case(hd_permute(p, x, axes, rank));
        }
        ops_end();
    }
}

static void reshapes(void) {
    static const hd_shape pairs[][2] = {
        { { 0, { 0 } }, { 1, { 1 } } }, { { 1, { 1 } }, { 0, { 0 } } }, { { 1, { 12 } }, { 2, { 3, 4 } } }, { { 2, { 3, 4 } }, { 2, { 4, 3 } } },
        { { 3, { 2, 3, 5 } }, { 1, { 30 } } }, { { 2, { 7, 6 } }, { 6, { 1, 7, 1, 2, 3, 1 } } }, { { 6, { 2, 1, 3, 1, 5, 1 } }, { 2, { 5, 6 } } }, { { 1, { 67 } }, { 2, { 67, 1 } } },
    };
    for (uint32_t t = 0; t < HDI_COUNT(plain); t++) {
        ops_begin(hd_dtype_name(plain[t]), 0);
        for (uint32_t i = 0; i < HDI_COUNT(pairs); i++) {
            const hd_value x = ops_input(plain[t], pairs[i][0], OPS_WIDE);
            ops_case(hd_reshape(ops_program(), x, pairs[i][1]));
            /* Of a permuted value, which must be copied first. */
            if (pairs[i][0].rank > 1) ops_case(hd_reshape(ops_program(), hd_transpose(ops_program(), ops_input(plain[t], pairs[i][0], OPS_WIDE)), pairs[i][1]));
        }
        ops_end();
    }
}

static void slices(void) {
    for (uint32_t t = 0; t < HDI_COUNT(plain); t++) {
        ops_begin(hd_dtype_name(plain[t]), 0);
        for (uint32_t rank = 1; rank <= HD_MAX_RANK; rank++)
            for (uint32_t k = 0; k < 6; k++) {
                const hd_shape shape = random_shape(rank);
                int64_t begin[HD_MAX_RANK], end[HD_MAX_RANK];
                for (uint32_t i = 0; i < rank; i++) {
                    begin[i] = ops_random((uint32_t)shape.dims[i]);
                    end[i] = begin[i] + 1 + ops_random((uint32_t)(shape.dims[i] - begin[i]));
                    if (k == 0) begin[i] = 0, end[i] = shape.dims[i];
                    if (k % 2 && begin[i] > 0) begin[i] -= shape.dims[i]; /* from the end */
                }
                ops_case(hd_slice(ops_program(), ops_input(plain[t], shape, OPS_WIDE), begin, end, rank));
            }
        ops_end();
    }
}

static void pads(void) {
    for (uint32_t t = 0; t < HDI_COUNT(plain); t++) {
        ops_begin(hd_dtype_name(plain[t]), 0);
        for (uint32_t rank = 1; rank <= HD_MAX_RANK; rank++)
            for (uint32_t k = 0; k < 4; k++) {
                static const float values[] = { 0, -1.5f, 7, 300.25f };
                int64_t before[HD_MAX_RANK], after[HD_MAX_RANK];
                for (uint32_t i = 0; i < rank; i++) {
                    before[i] = k == 3 ? 0 : ops_random(3);
                    after[i] = k == 3 && i > 0 ? 0 : ops_random(4);
                }
                ops_case(hd_pad(ops_program(), ops_input(plain[t], random_shape(rank), OPS_WIDE), before, after, rank, values[k]));
            }
        ops_end();
    }
}

static void concats(void) {
    static const uint32_t counts[] = { 1, 2, 3, 5 };
    for (uint32_t t = 0; t < HDI_COUNT(plain); t++) {
        ops_begin(hd_dtype_name(plain[t]), 0);
        for (uint32_t rank = 1; rank <= HD_MAX_RANK; rank++)
            for (uint32_t axis = 0; axis < rank; axis++)
                for (uint32_t k = 0; k < (rank < 4 ? 4 : 1); k++) {
                    hd_shape shape = random_shape(rank);
                    hd_value parts[64];
                    const uint32_t count = rank < 4 ? counts[k] : 2;
                    for (uint32_t i = 0; i < count; i++) {
                        shape.dims[axis] = 1 + ops_random(9);
                        parts[i] = ops_input(plain[t], shape, OPS_WIDE);
                    }
                    ops_case(hd_concat(ops_program(), parts, count, k % 2 ? (int)axis - (int)rank : (int)axis));
                }
        hd_value many[64]; /* the most there may be, one of them twice */
        for (uint32_t i = 0; i < 64; i++) many[i] = i == 63 ? many[0] : ops_input(plain[t], HD_SHAPE(1 + i % 3, 2), OPS_WIDE);
        ops_case(hd_concat(ops_program(), many, 64, 0));
        ops_end();
    }
}

/* Views of views, which a planner joins into one copy or none, also read by what follows. */
static void views(void) {
    for (uint32_t t = 0; t < HDI_COUNT(plain); t++) {
        ops_begin(hd_dtype_name(plain[t]), OPS_UNFUSED);
        hd_program *p = ops_program();
        for (uint32_t k = 0; k < 12; k++) {
            const int64_t a = 2 + ops_random(5), b = 2 + ops_random(6), c = 3 + ops_random(7);
            const hd_value x = ops_input(plain[t], HD_SHAPE(a, b, c), OPS_WHOLE);
            const uint32_t axes[] = { 2, 0, 1 };
            const hd_value turned = hd_permute(p, x, axes, 3); /* [c,a,b] */
            const hd_value part = hd_slice(p, turned, (int64_t[]){ 1, 0, 1 }, (int64_t[]){ c, a, b }, 3);
            const hd_value flat = hd_reshape(p, part, HD_SHAPE((c - 1) * a, b - 1));
            if (k % 4 == 0) ops_case(part);
            if (k % 4 == 1) ops_case(flat);
            if (k % 4 == 2) ops_case(hd_transpose(p, flat));
            if (k % 4 == 3) ops_case(hd_where(p, hd_equal(p, part, part), part, hd_copy(p, part)));
            if (plain[t] == HD_U8) continue;
            ops_case(hd_add(p, part, hd_slice(p, turned, (int64_t[]){ 0, 0, 0 }, (int64_t[]){ c - 1, a, b - 1 }, 3)));
            ops_case(hd_concat(p, (hd_value[]){ flat, hd_neg(p, flat) }, 2, 1));
        }
        ops_end();
    }
}

int main(int argc, char **argv) {
    static const ops_test tests[] = { { "permute", permutes }, { "turn", turns }, { "reshape", reshapes }, { "slice", slices }, { "pad", pads }, { "concat", concats }, { "views", views } };
    return ops_main("form", tests, HDI_COUNT(tests), argc, argv);
}
