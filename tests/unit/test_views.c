/* test_views.c: what is known of a view without looking at its elements, against looking at all of them. */
#include "kernels/kernel.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

enum { MOST = 1 << 14 };
static uint32_t seed = 5;
static uint32_t chance(uint32_t below) { return ((seed = seed * 1664525u + 1013904223u) >> 8) % below; }

static uint64_t element_at(const hdi_tensor *t, uint64_t index) {
    uint64_t at = t->first;
    for (uint32_t axis = t->shape.rank; axis-- > 0; index /= (uint64_t)t->shape.dims[axis])
        at += index % (uint64_t)t->shape.dims[axis] * (uint64_t)t->strides[axis];
    return at;
}

/* Does a second index name an element? */
static bool meets_twice(const hdi_tensor *t) {
    static uint8_t met[MOST];
    memset(met, 0, sizeof met);
    for (uint64_t i = 0; i < hd_shape_elements(t->shape); i++) {
        assert_true(element_at(t, i) < MOST);
        if (met[element_at(t, i)]++) return true;
    }
    return false;
}

static hd_shape random_shape(void) {
    hd_shape shape = { 1 + chance(4), { 0 } };
    for (uint32_t i = 0; i < shape.rank; i++) shape.dims[i] = 1 + chance(6);
    return shape;
}

/* Part of a tensor, its axes in any order: as slices and permutations leave it. */
static void parts_do_not_overlap(void **state) {
    (void)state;
    for (int round = 0; round < 2000; round++) {
        hdi_tensor t = hdi_tensor_dense(0, HD_F32, random_shape());
        for (uint32_t i = 0; i < t.shape.rank; i++) t.shape.dims[i] = 1 + chance((uint32_t)t.shape.dims[i]);
        for (uint32_t i = t.shape.rank; i-- > 1;) {
            const uint32_t j = chance(i + 1);
            const int64_t dim = t.shape.dims[i], stride = t.strides[i];
            t.shape.dims[i] = t.shape.dims[j], t.strides[i] = t.strides[j];
            t.shape.dims[j] = dim, t.strides[j] = stride;
        }
        assert_false(meets_twice(&t));
        assert_false(hdi_tensor_overlaps(&t));
    }
}

static void windows_that_share_overlap(void **state) {
    (void)state;
    uint32_t shared = 0;
    for (int round = 0; round < 5000; round++) {
        hdi_tensor t = { .storage = 0, .dtype = HD_F32, .shape = random_shape() };
        for (uint32_t i = 0; i < t.shape.rank; i++) t.strides[i] = 1 + chance(40);
        if (!meets_twice(&t)) continue;
        assert_true(hdi_tensor_overlaps(&t));
        shared++;
    }
    assert_true(shared > 1000);
}

static void split_axes_keep_their_elements(void **state) {
    (void)state;
    uint32_t split = 0, joined = 0;
    for (int round = 0; round < 3000; round++) {
        hdi_tensor t = { .storage = 3, .dtype = HD_F16, .shape = { 2, { 0 } }, .first = 7 }, out;
        hd_shape shape = { 0, { 0 } };
        for (uint32_t i = 0; i < 2; i++) {
            const int64_t a = 1 + chance(4), b = 1 + chance(4);
            t.shape.dims[i] = a * b;
            t.strides[i] = 1 + chance(50);
            shape.dims[shape.rank++] = a;
            shape.dims[shape.rank++] = b;
        }
        if (round % 3 == 2) shape = (hd_shape){ 2, { shape.dims[0], shape.dims[1] * shape.dims[2] * shape.dims[3] } };
        if (!hdi_tensor_split(&t, shape, &out)) {
            assert_int_equal(round % 3, 2);
            joined++;
            continue;
        }
        split++;
        assert_true(hdi_shape_equal(out.shape, shape) && out.storage == 3 && out.dtype == HD_F16);
        for (uint64_t i = 0; i < hd_shape_elements(shape); i++) assert_int_equal(element_at(&out, i), element_at(&t, i));
    }
    assert_true(split > 2000 && joined > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(parts_do_not_overlap), cmocka_unit_test(windows_that_share_overlap), cmocka_unit_test(split_axes_keep_their_elements) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
