/* Copies across memory: their lowering, and the CPU form at every instruction set, against one element after the other. */
#include "kernels/kernel.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define LEVEL(n) extern void hdcpu_transpose_l##n(const hdi_cpu_call *, uint32_t, uint32_t, uint32_t);
LEVEL(0) LEVEL(1) LEVEL(2) LEVEL(3)
static const hdi_cpu_kernel levels[] = { hdcpu_transpose_l0, hdcpu_transpose_l1, hdcpu_transpose_l2, hdcpu_transpose_l3 };

static const hd_dtype types[] = { HD_F32, HD_F16, HD_BF16, HD_I32, HD_U8 };

static uint32_t random_byte(void) {
    static uint32_t state = 1;
    return (state = state * 1664525u + 1013904223u) >> 24;
}

/* A copy from storage 0 to storage 1, and how it was lowered. */
typedef struct run {
    hdi_caps     caps;
    hdi_lowering lowering;
    uint8_t     *data[2];
    uint64_t     bytes[2];
} run;
static void run_begin(run *r, const hdi_caps *caps) {
    *r = (run){ .caps = *caps, .lowering = { .allocator = &hdi_default_allocator } };
}
static void run_end(run *r) {
    hdi_free(&hdi_default_allocator, r->lowering.launches, r->lowering.capacity * sizeof *r->lowering.launches);
    for (uint32_t i = 0; i < 2; i++) free(r->data[i]);
}

static uint64_t element_at(const hdi_tensor *t, uint64_t index) {
    uint64_t at = t->first;
    for (uint32_t axis = t->shape.rank; axis-- > 0; index /= (uint64_t)t->shape.dims[axis])
        at += index % (uint64_t)t->shape.dims[axis] * (uint64_t)t->strides[axis];
    return at;
}
/* A view of `shape` into a tensor that is `more` longer along each axis, whose axes lie in memory in the order `order`. */
static hdi_tensor view(run *r, uint32_t storage, hd_dtype dtype, hd_shape shape, const uint32_t *order, int64_t more) {
    hdi_tensor t = { .storage = storage, .dtype = dtype, .shape = shape };
    int64_t stride = 1;
    for (uint32_t i = shape.rank; i-- > 0; stride *= shape.dims[order[i]] + more) t.strides[order[i]] = stride;
    for (uint32_t i = 0; i < shape.rank; i++) t.first += (uint64_t)(more / 2 * t.strides[i]);
    r->bytes[storage] = hd_dtype_bytes(dtype, (uint64_t)stride);
    r->data[storage] = malloc(r->bytes[storage]); /* its exact size, so that a sanitizer sees more being touched */
    assert_non_null(r->data[storage]);
    return t;
}

static hd_status lower(run *r, const hdi_tensor *from, const hdi_tensor *to) {
    hdi_chain chain = { .step_count = 1, .input_count = 1 };
    chain.steps[0] = (hdi_step){ HDI_STEP_COPY, 0, HDI_SOURCE_NONE, HDI_SOURCE_NONE, to->dtype, 0 };
    chain.inputs[0] = *from;
    const hdi_request request = { .op = HDI_OP_COPY, .out = *to, .chain = &chain, .caps = &r->caps, .math = HD_MATH_EXACT };
    return hdi_kernels_lower(&request, &r->lowering, NULL);
}
static const hdi_kernel *kernel_of(const run *r) { return &r->lowering.launches[0].kernel; }

static void run_on(run *r, hdi_cpu_kernel kernel) {
    const hdi_launch *launch = &r->lowering.launches[0];
    uint32_t spec[HDI_MAX_SPEC] = { 0 };
    void *bindings[2], *scratch = aligned_alloc(64, (launch->kernel.scratch_bytes + 63) / 64 * 64);
    uint64_t bytes[2];
    assert_non_null(scratch);
    memcpy(spec, launch->kernel.spec, launch->kernel.spec_count * sizeof *spec);
    for (uint32_t i = 0; i < 2; i++) {
        bindings[i] = r->data[launch->uses[i].storage] + launch->uses[i].offset;
        bytes[i] = launch->uses[i].bytes;
    }
    const hdi_cpu_call call = { spec, launch->push, bindings, bytes, scratch, NULL };
    for (uint32_t y = 0; y < launch->groups[1]; y++)
        for (uint32_t x = 0; x < launch->groups[0] + 1; x++) kernel(&call, x, y, 0); /* one behind the last returns */
    free(scratch);
}

/* Elements are as they were, each bit, and nothing between them is touched. */
static void check(hd_dtype dtype, hd_shape shape, const uint32_t *order, int64_t more_in, int64_t more_out, uint64_t threads) {
    static const uint32_t plain[HD_MAX_RANK] = { 0, 1, 2, 3, 4, 5 };
    run r;
    run_begin(&r, &(hdi_caps){ .native_kernels = 1, .max_push_bytes = 128, .binding_align = 4, .threads = threads });
    const hdi_tensor from = view(&r, 0, dtype, shape, order, more_in), to = view(&r, 1, dtype, shape, plain, more_out);
    const uint64_t bytes = hd_dtype_bytes(dtype, 1), count = hd_shape_elements(shape);
    for (uint64_t i = 0; i < r.bytes[0]; i++) r.data[0][i] = (uint8_t)random_byte();
    uint8_t *wanted = malloc(r.bytes[1]);
    assert_non_null(wanted);
    memset(wanted, 0xA5, r.bytes[1]);
    for (uint64_t i = 0; i < count; i++) memcpy(wanted + element_at(&to, i) * bytes, r.data[0] + element_at(&from, i) * bytes, bytes);
    assert_int_equal(lower(&r, &from, &to), HD_OK);
    assert_int_equal(r.lowering.count, 1);
    assert_int_equal(kernel_of(&r)->module, HDI_MODULE_TRANSPOSE);
    for (uint32_t level = 0; level <= hdcpu_level(); level++) {
        memset(r.data[1], 0xA5, r.bytes[1]);
        run_on(&r, levels[level]);
        assert_memory_equal(r.data[1], wanted, r.bytes[1]);
    }
    free(wanted);
    run_end(&r);
}

static void every_element_comes_to_its_place(void **state) {
    (void)state;
    static const struct { hd_shape shape; uint32_t order[HD_MAX_RANK]; } cases[] = {
        { { 2, { 16, 16 } }, { 1, 0 } },           { { 2, { 67, 131 } }, { 1, 0 } },             { { 2, { 300, 17 } }, { 1, 0 } },
        { { 2, { 64, 128 } }, { 1, 0 } },          { { 3, { 5, 33, 70 } }, { 0, 2, 1 } },        { { 3, { 19, 3, 41 } }, { 2, 1, 0 } },
        { { 3, { 40, 7, 66 } }, { 1, 2, 0 } },     { { 4, { 2, 18, 3, 21 } }, { 2, 0, 3, 1 } },  { { 5, { 2, 3, 17, 2, 35 } }, { 3, 4, 1, 0, 2 } },
        { { 6, { 2, 3, 2, 16, 2, 20 } }, { 4, 5, 2, 0, 1, 3 } }, { { 2, { 1500, 4 } }, { 1, 0 } }, { { 2, { 3, 700 } }, { 1, 0 } },
        { { 3, { 5, 2, 130 } }, { 0, 2, 1 } },
    };
    for (size_t t = 0; t < HDI_COUNT(types); t++)
        for (size_t i = 0; i < HDI_COUNT(cases); i++) {
            check(types[t], cases[i].shape, cases[i].order, 0, 0, 64);
            check(types[t], cases[i].shape, cases[i].order, 2, 0, 1);
            check(types[t], cases[i].shape, cases[i].order, 0, 3, 0);
            check(types[t], cases[i].shape, cases[i].order, 3, 2, 8);
        }
}

/* Tiles are as large as memory likes it, and smaller where threads would go without. */
static void tiles_fit_the_work(void **state) {
    (void)state;
    static const struct { hd_dtype dtype; int64_t side; uint64_t threads; uint32_t tile; } cases[] = {
        { HD_F32, 4096, 2, 256 }, { HD_F16, 4096, 2, 512 }, { HD_U8, 4096, 2, 512 }, { HD_F32, 512, 16, 64 }, { HD_F32, 1024, 16, 128 }, { HD_F32, 64, 1, 64 },
    };
    for (size_t i = 0; i < HDI_COUNT(cases); i++) {
        run r;
        run_begin(&r, &(hdi_caps){ .native_kernels = 1, .max_push_bytes = 128, .binding_align = 4, .threads = cases[i].threads });
        const hd_shape shape = HD_SHAPE(cases[i].side, cases[i].side);
        hdi_tensor from = hdi_tensor_dense(0, cases[i].dtype, shape);
        const hdi_tensor to = hdi_tensor_dense(1, cases[i].dtype, shape);
        from.strides[0] = 1;
        from.strides[1] = cases[i].side;
        assert_int_equal(lower(&r, &from, &to), HD_OK);
        assert_int_equal(kernel_of(&r)->spec[HDI_TR_TILE], cases[i].tile);
        assert_true(r.lowering.launches[0].bytes == 2 * hd_tensor_bytes(cases[i].dtype, shape));
        run_end(&r);
    }
}

/* A GPU turns whole words: what begins or ends within one, and what is turned by no device, is copied element by element. */
static void others_are_left_alone(void **state) {
    (void)state;
    const hdi_caps gpu = { .max_workgroup = 1024, .max_workgroup_x = 1024, .binding_align = 16, .max_push_bytes = 128, .max_bindings = 16, .shared_bytes = 16384 };
    hdi_caps little = gpu, narrow = gpu, wrong = gpu, native = { .native_kernels = 1, .max_push_bytes = 128, .binding_align = 4 };
    little.shared_bytes = 4096;
    narrow.max_workgroup_x = 128;
    wrong.wrong[HDI_MODULE_TRANSPOSE][1] = UINT64_C(1) << HD_F32;
    const struct { const hdi_caps *caps; hd_dtype dtype; int64_t rows, columns; uint64_t first; uint32_t module; } cases[] = {
        { &gpu, HD_F32, 33, 35, 3, HDI_MODULE_TRANSPOSE },  { &gpu, HD_F16, 34, 36, 2, HDI_MODULE_TRANSPOSE },  { &gpu, HD_U8, 36, 128, 0, HDI_MODULE_TRANSPOSE },
        { &gpu, HD_F16, 33, 36, 0, HDI_MODULE_ELEMENTWISE }, { &gpu, HD_F16, 34, 35, 0, HDI_MODULE_ELEMENTWISE }, { &gpu, HD_F16, 34, 36, 1, HDI_MODULE_ELEMENTWISE },
        { &gpu, HD_U8, 36, 38, 0, HDI_MODULE_ELEMENTWISE },  { &gpu, HD_F32, 15, 64, 0, HDI_MODULE_ELEMENTWISE }, { &gpu, HD_F32, 64, 15, 0, HDI_MODULE_ELEMENTWISE },
        { &little, HD_F32, 32, 32, 0, HDI_MODULE_TRANSPOSE }, { &little, HD_F16, 32, 32, 0, HDI_MODULE_ELEMENTWISE }, { &narrow, HD_F32, 32, 32, 0, HDI_MODULE_ELEMENTWISE },
        { &wrong, HD_F32, 32, 32, 0, HDI_MODULE_ELEMENTWISE }, { &wrong, HD_I32, 32, 32, 0, HDI_MODULE_TRANSPOSE },
        { &native, HD_F16, 33, 35, 1, HDI_MODULE_TRANSPOSE }, { &native, HD_U8, 37, 39, 1, HDI_MODULE_TRANSPOSE }, { &native, HD_U8, 37, 12, 1, HDI_MODULE_TRANSPOSE },
        { &native, HD_U8, 37, 6, 1, HDI_MODULE_ELEMENTWISE }, { &native, HD_F32, 2, 128, 1, HDI_MODULE_TRANSPOSE },
    };
    for (size_t i = 0; i < HDI_COUNT(cases); i++) {
        run r;
        run_begin(&r, cases[i].caps);
        const hd_shape shape = HD_SHAPE(cases[i].rows, cases[i].columns);
        hdi_tensor from = hdi_tensor_dense(0, cases[i].dtype, shape);
        const hdi_tensor to = hdi_tensor_dense(1, cases[i].dtype, shape);
        from.first = cases[i].first;
        from.strides[0] = 1;
        from.strides[1] = cases[i].rows;
        assert_int_equal(lower(&r, &from, &to), HD_OK);
        assert_int_equal(kernel_of(&r)->module, cases[i].module);
        run_end(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_comes_to_its_place),
        cmocka_unit_test(tiles_fit_the_work),
        cmocka_unit_test(others_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
