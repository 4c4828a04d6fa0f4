/* test_matmul.c: the rules that launch a matrix product, and the launches run on CPU forms against float64: odd sizes,
 * all types, transposed and repeated operands, chains. Exact mode gives the same bits in every form and on every level. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "cmds/library.h"
#include "device/backend.h"
#include "plan/schedule.h"
#include "kernels/cpu/matmul_native.h"
#include "kernels/cpu/quant.h"
#include "kernels/cpu/sgemm.h"
#include "kernels/exact.h"
#include "kernels/kernel.h"
#include "sweep.h"

enum { GUARD = 64, A = 0, B = 1, C = 2, BIAS = 3, SCALE = 4, PACKED = 5, PACKED_B = 6, STORAGES = 7 };

static uint64_t seed;
static uint32_t random_bits(void) {
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(seed >> 33);
}
static uint32_t random_below(uint32_t n) { return random_bits() % n; }
static float random_value(void) { return (float)((int32_t)random_below(2001) - 1000) / 512.0f; }

/* ---- a product to be computed ---- */

typedef struct problem {
    hdi_tensor inputs[2];
    hdi_attrs  attrs;
    hdi_chain  chain;
    hdi_request request;
    uint64_t   m, n, k;
    void      *data[STORAGES];
    uint64_t   bytes[STORAGES];
    hdi_launch launches[3]; /* the last one is the product's */
    uint32_t   launch_count;
} problem;

static uint16_t f16_of(float value) { /* exact for what random_value gives, once scaled down */
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7FFFFFFFu) == 0) return (uint16_t)(bits >> 16);
    return (uint16_t)((bits >> 16 & 0x8000u) | ((bits >> 13 & 0x3FFFFu) - (112u << 10)));
}

static void fill(problem *p, int storage, hd_dtype dtype, uint64_t elements) {
    const uint64_t bytes = hd_dtype_bytes(dtype, elements);
    uint8_t *data = malloc(bytes + 2 * GUARD);
    assert_true(data != NULL && bytes > 0);
    memset(data, 0xA5, bytes + 2 * GUARD);
    p->data[storage] = data + GUARD;
    p->bytes[storage] = bytes;
    if (storage == C || storage >= PACKED) return;
    data += GUARD;
    for (uint64_t i = 0; i < elements && !hdi_dtype_is_quantised(dtype); i++) {
        const float value = random_value();
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        if (dtype == HD_F32) memcpy(data + 4 * i, &value, 4);
        else if (dtype == HD_F16) { const uint16_t h = f16_of(value); memcpy(data + 2 * i, &h, 2); }
        else { const uint16_t h = (uint16_t)(bits >> 16); memcpy(data + 2 * i, &h, 2); }
    }
    static const uint8_t halves[HD_DTYPE_COUNT][2] = {
#define HALVES(code, elements, bytes, scale, less) [code] = { scale, less },
        HDI_BLOCK_LIST(HALVES)
#undef HALVES
    };
    const hdi_dtype_facts facts = hdi_dtype(dtype);
    for (uint64_t i = 0; i < bytes && hdi_dtype_is_quantised(dtype); i++) data[i] = (uint8_t)random_bits();
    for (uint64_t at = 0; at < bytes && hdi_dtype_is_quantised(dtype); at += facts.block_bytes) { /* scales of moderate size */
        for (uint32_t j = 0; j < 2; j++)
            if (halves[dtype][j] != HDI_NO_HALF) data[at + halves[dtype][j] + 1] = (uint8_t)(0x24 | (random_bits() & 0x83));
        if (dtype == HD_MXFP4) data[at] = (uint8_t)(120 + (random_bits() & 3));
        for (uint32_t j = 0; j < 2 && dtype == HD_IQ1_M; j++) /* the upper 4 bits of two words */
            data[at + 53 + 2 * j] = (uint8_t)((data[at + 53 + 2 * j] & 15) | (j ? 0x20 | (random_bits() & 0x80) : 0x40 | (random_bits() & 0x30)));
    }
}

/* A tensor of `shape` whose last two axes may lie the other way round, and with gaps between lines. */
static hdi_tensor view(uint32_t storage, hd_dtype dtype, hd_shape shape, bool swapped, int64_t gap, uint64_t *out_elements) {
    hdi_tensor t = { .storage = storage, .dtype = dtype, .shape = shape };
    const uint32_t r = shape.rank, inner = swapped ? r - 2 : r - 1, outer = swapped ? r - 1 : r - 2;
    t.strides[inner] = 1;
    t.strides[outer] = shape.dims[inner] + gap;
    int64_t stride = t.strides[outer] * shape.dims[outer];
    for (uint32_t axis = r - 2; axis-- > 0;) {
        t.strides[axis] = stride;
        stride *= shape.dims[axis];
    }
    t.first = (uint64_t)gap;
    *out_elements = (uint64_t)(stride + gap);
    return t;
}

static const hdi_caps cpu_caps = { .native_kernels = 1, .threads = 2, .max_push_bytes = 128, .simd_bytes = 32 };

static hd_shape shape_of(const int64_t *batch, uint32_t rank, int64_t rows, int64_t columns) {
    hd_shape s = { .rank = rank + 2 };
    for (uint32_t i = 0; i < rank; i++) s.dims[i] = batch[i];
    s.dims[rank] = rows;
    s.dims[rank + 1] = columns;
    return s;
}

typedef struct options {
    hd_dtype a, b;
    uint32_t flags;
    bool a_swapped, b_swapped; /* in memory, beside the flags */
    int64_t gap;
    uint32_t batch_rank;
    int64_t a_batch[3], b_batch[3];
    bool chain;
    hd_math math;
} options;

static void make(problem *p, int64_t m, int64_t n, int64_t k, options o) {
    *p = (problem){ .m = (uint64_t)m, .n = (uint64_t)n, .k = (uint64_t)k };
    int64_t batch[3];
    for (uint32_t i = 0; i < o.batch_rank; i++) batch[i] = HDI_MAX(o.a_batch[i], o.b_batch[i]);
    const bool ta = o.flags & HD_TRANSPOSE_A, tb = o.flags & HD_TRANSPOSE_B;
    uint64_t elements;
    p->inputs[0] = view(A, o.a, shape_of(o.a_batch, o.batch_rank, ta ? k : m, ta ? m : k), o.a_swapped, o.gap, &elements);
    fill(p, A, o.a, elements);
    p->inputs[1] = view(B, o.b, shape_of(o.b_batch, o.batch_rank, tb ? n : k, tb ? k : n), o.b_swapped, hdi_dtype_is_quantised(o.b) ? 0 : o.gap, &elements);
    fill(p, B, o.b, elements);
    const hd_shape shape = shape_of(batch, o.batch_rank, m, n);
    const hd_dtype type = o.flags & HD_RESULT_F32 ? HD_F32 : o.a;
    p->attrs.ints[0] = o.flags;
    p->request = (hdi_request){ .op = HDI_OP_MATMUL, .attrs = &p->attrs, .inputs = p->inputs, .input_count = 2,
                                .out = hdi_tensor_dense(C, type, shape), .caps = &cpu_caps, .math = o.math };
    fill(p, C, type, hd_shape_elements(shape));
    if (!o.chain) return;
    /* relu(C * scale[m] + bias[n]) */
    fill(p, BIAS, HD_F32, (uint64_t)n + 3);
    fill(p, SCALE, HD_F32, (uint64_t)m);
    p->chain = (hdi_chain){ .input_count = 3, .step_count = 3 };
    p->chain.inputs[1] = (hdi_tensor){ .storage = SCALE, .dtype = HD_F32, .shape = shape };
    p->chain.inputs[1].strides[o.batch_rank] = 1;
    p->chain.inputs[2] = (hdi_tensor){ .storage = BIAS, .dtype = HD_F32, .shape = shape, .first = 3 };
    p->chain.inputs[2].strides[o.batch_rank + 1] = 1;
    p->chain.steps[0] = (hdi_step){ HDI_STEP_MUL, 0, 1, HDI_SOURCE_NONE, HD_F32, 0 };
    p->chain.steps[1] = (hdi_step){ HDI_STEP_ADD, 4, 2, HDI_SOURCE_NONE, HD_F32, 0 };
    p->chain.steps[2] = (hdi_step){ HDI_STEP_RELU, 5, HDI_SOURCE_NONE, HDI_SOURCE_NONE, type, 0 };
    p->request.chain = &p->chain;
}

static void drop(problem *p) {
    for (int i = 0; i < STORAGES; i++) {
        if (!p->data[i]) continue;
        for (int j = 0; j < GUARD; j++) {
            assert_int_equal(((uint8_t *)p->data[i])[j - GUARD], 0xA5);
            assert_int_equal(((uint8_t *)p->data[i])[p->bytes[i] + (uint64_t)j], 0xA5);
        }
        free((uint8_t *)p->data[i] - GUARD);
    }
}

static uint32_t packed_storage(void *user, uint64_t bytes) {
    const problem *p = user;
    const int storage = p->data[PACKED] ? PACKED_B : PACKED;
    fill(user, storage, HD_U8, bytes);
    return (uint32_t)storage;
}
/* Its launches: the product's, and before it those that pack or round its operands. */
static hdi_launch lower(problem *p, const hdi_caps *caps) {
    hdi_lowering lowering = { .allocator = &hdi_default_allocator, .temporary = packed_storage, .user = p };
    hdi_request request = p->request;
    request.caps = caps;
    hd_error error = { 0 };
    if (hdi_lower_matmul(&request, &lowering, &error) != HD_OK) fail_msg("%s", error.text);
    assert_in_range(lowering.count, 1, HDI_COUNT(p->launches));
    p->launch_count = lowering.count;
    memcpy(p->launches, lowering.launches, lowering.count * sizeof *p->launches);
    hdi_free(&hdi_default_allocator, lowering.launches, lowering.capacity * sizeof *p->launches);
    return p->launches[p->launch_count - 1];
}

static void run_form(const problem *p, const hdi_launch *launch, hdi_cpu_kernel form) {
    void *bindings[HDI_MAX_BINDINGS], *scratch = NULL;
    uint64_t binding_bytes[HDI_MAX_BINDINGS];
    for (uint32_t i = 0; i < launch->kernel.binding_count; i++) {
        bindings[i] = p->data[launch->uses[i].storage];
        binding_bytes[i] = launch->uses[i].bytes;
        assert_true(launch->uses[i].bytes <= p->bytes[launch->uses[i].storage] + 3);
    }
    const size_t scratch_bytes = (launch->kernel.scratch_bytes + 63u) / 64 * 64;
    scratch = aligned_alloc(64, scratch_bytes + 64);
    assert_non_null(scratch);
    memset(scratch, 0x7F, scratch_bytes + 64); /* large floats: what is not written shows */
    const hdi_cpu_call call = { launch->kernel.spec, launch->push, bindings, binding_bytes, scratch, NULL };
    for (uint32_t z = 0; z < launch->groups[2]; z++)
        for (uint32_t y = 0; y < launch->groups[1]; y++)
            for (uint32_t x = 0; x < launch->groups[0]; x++) form(&call, x, y, z);
    for (size_t i = launch->kernel.scratch_bytes; i < scratch_bytes + 64; i++) assert_int_equal(((uint8_t *)scratch)[i], 0x7F);
    free(scratch);
}
static void run(problem *p) {
    lower(p, &cpu_caps);
    for (uint32_t i = 0; i < p->launch_count; i++) {
        assert_non_null(p->launches[i].because);
        run_form(p, &p->launches[i], hdi_module_get(p->launches[i].kernel.module)->cpu);
    }
}

/* Element of a tensor at an index of C's space, with `last` two indices replaced. */
static uint64_t place(const hdi_tensor *t, const int64_t *index, uint32_t rank, int64_t row, int64_t column) {
    uint64_t at = t->first;
    for (uint32_t axis = 0; axis < rank; axis++) {
        const int64_t i = axis == rank - 2 ? row : axis == rank - 1 ? column : index[axis];
        if (t->shape.dims[axis] > 1) at += (uint64_t)(i * t->strides[axis]);
    }
    return at;
}

/* All of B as floats: a block is unpacked once, not for each of its elements. */
static float *unpacked_b(const problem *p) {
    const hd_dtype dtype = p->inputs[1].dtype;
    const uint64_t elements = p->bytes[B] / hdi_dtype(dtype).block_bytes * hdi_dtype(dtype).block_elements;
    float *values = malloc(elements * sizeof *values);
    assert_non_null(values);
    hdcpu_load_floats((uint32_t)dtype, p->data[B], 0, elements, values);
    return values;
}

/* Compares every element of C with float64. */
static void check(const problem *p) {
    const hdi_tensor *out = &p->request.out;
    const uint32_t rank = out->shape.rank;
    const bool ta = p->attrs.ints[0] & HD_TRANSPOSE_A, tb = p->attrs.ints[0] & HD_TRANSPOSE_B;
    const double unit = out->dtype == HD_F16 ? 0x1p-11 : out->dtype == HD_BF16 ? 0x1p-8 : 0x1p-24;
    const uint64_t total = hd_shape_elements(out->shape);
    float *b = unpacked_b(p);
    const bool exact = p->request.math == HD_MATH_EXACT, runs = hdi_dtype_has_whole_codes(p->inputs[1].dtype) && tb;
    const bool narrow = exact ? runs : p->inputs[1].dtype != HD_F32;
    for (uint64_t c = 0; c < total; c++) {
        int64_t index[HD_MAX_RANK];
        uint64_t rest = c;
        for (uint32_t axis = rank; axis-- > 0;) {
            index[axis] = (int64_t)(rest % (uint64_t)out->shape.dims[axis]);
            rest /= (uint64_t)out->shape.dims[axis];
        }
        const int64_t m = index[rank - 2], n = index[rank - 1];
        double sum = 0, terms = 0, most = 0, rounded = 0; /* most: of the 32 of A; rounded: by narrow units (docs/ops.md) */
        for (int64_t k = 0; k < (int64_t)p->k; k++) {
            for (int64_t at = k; k % 32 == 0 && at < HDI_MIN(k + 32, (int64_t)p->k); at++)
                most = fmax(at == k ? 0 : most, fabs((double)hdcpu_load_any((uint32_t)p->inputs[0].dtype, p->data[A], place(&p->inputs[0], index, rank, ta ? at : m, ta ? m : at))));
            const double x = hdcpu_load_any((uint32_t)p->inputs[0].dtype, p->data[A], place(&p->inputs[0], index, rank, ta ? k : m, ta ? m : k));
            const double y = b[place(&p->inputs[1], index, rank, tb ? n : k, tb ? k : n)];
            sum += x * y;
            terms += fabs(x * y);
            rounded += narrow ? fabs(x * y) * 0x1p-8 + most / 254 * fabs(y) : 0;
        }
        double bound = terms * (double)p->k * 0x1p-23 + fabs(sum) * unit + rounded * 1.01;
        if (p->request.chain) {
            const double scale = ((float *)p->data[SCALE])[m], bias = ((float *)p->data[BIAS])[n + 3];
            bound = bound * fabs(scale) + fabs(sum * scale) * 0x1p-23 + fabs(sum * scale + bias) * (unit + 0x1p-23);
            sum = fmax(sum * scale + bias, 0);
        }
        const double got = hdcpu_load_any((uint32_t)out->dtype, p->data[C], c);
        if (!(fabs(got - sum) <= bound + 0x1p-24))
            fail_msg("C[%llu] of %llu x %llu x %llu, %s x %s: %.9g, should be %.9g +- %.3g", (unsigned long long)c, (unsigned long long)p->m,
                     (unsigned long long)p->n, (unsigned long long)p->k, hd_dtype_name(p->inputs[0].dtype), hd_dtype_name(p->inputs[1].dtype), got, sum, bound);
    }
    free(b);
}

/* ---- tests ---- */

static const hd_dtype b_types[] = { HD_F32, HD_F16, HD_BF16, HD_Q4_0, HD_Q8_0, HD_Q4_K, HD_Q6_K, HD_TQ2_0,
                                   HD_Q4_1, HD_Q5_0, HD_Q5_1, HD_Q2_K, HD_Q3_K, HD_Q5_K, HD_TQ1_0, HD_IQ4_NL, HD_IQ4_XS, HD_MXFP4,
                                   HD_IQ2_XXS, HD_IQ2_XS, HD_IQ2_S, HD_IQ3_XXS, HD_IQ3_S, HD_IQ1_S, HD_IQ1_M };

static options random_options(uint32_t i) {
    options o = { .a = (hd_dtype)(HD_F32 + i % 3), .b = b_types[random_below(HDI_COUNT(b_types))], .math = i & 1 ? HD_MATH_EXACT : HD_MATH_FAST,
                  .chain = random_below(3) == 0 };
    if (random_below(2)) o.a = HD_F32;
    o.flags = random_below(4) | (i % 4 == 1 ? HD_RESULT_F32 : 0u);
    if (hdi_dtype_is_quantised(o.b)) o.flags |= random_below(4) ? HD_TRANSPOSE_B : 0;
    else o.b_swapped = random_below(4) == 0;
    o.a_swapped = random_below(4) == 0;
    o.gap = random_below(3) == 0 ? (int64_t)random_below(4) : 0;
    o.batch_rank = random_below(3) == 0 ? random_below(4) : 0;
    for (uint32_t j = 0; j < o.batch_rank; j++) {
        o.a_batch[j] = random_below(2) ? 1 : 2 + j;
        o.b_batch[j] = random_below(2) ? 1 : 2 + j;
    }
    return o;
}
static void random_problem(problem *p, uint32_t i, options o) {
    int64_t m = 1 + random_below(67), n = 1 + random_below(67), k = 1 + random_below(67);
    if (i % 3 == 0) m = 1 + random_below(8);
    if (i % 7 == 0) k = 1 + random_below(600);
    if (hdi_dtype_is_quantised(o.b)) { /* the last axis holds whole blocks */
        const int64_t block = hdi_dtype(o.b).block_elements;
        int64_t *last = o.flags & HD_TRANSPOSE_B ? &k : &n;
        *last = block * (1 + random_below(3));
    }
    if (o.batch_rank > 0) { m = 1 + m % 9; n = hdi_dtype_is_quantised(o.b) ? n : 1 + n % 17; }
    make(p, m, n, k, o);
}

static void random_shapes(void **state) {
    (void)state;
    seed = 1;
    for (uint32_t i = 0; i < 160; i += SWEEP_STEP) {
        problem p;
        random_problem(&p, i, random_options(i));
        run(&p);
        check(&p);
        drop(&p);
    }
}

static void larger_shapes(void **state) {
    (void)state;
    static const struct { int64_t m, n, k; } sizes[] = { { 1, 300, 1024 }, { 5, 70, 2048 }, { 200, 130, 300 }, { 257, 64, 96 } };
    seed = 2;
    for (uint32_t i = 0; i < HDI_COUNT(sizes); i++)
        for (uint32_t math = HD_MATH_FAST; math <= HD_MATH_EXACT; math++) {
            problem p;
            make(&p, sizes[i].m, sizes[i].n, sizes[i].k, (options){ .a = HD_F32, .b = i % 2 ? HD_F16 : HD_F32, .flags = HD_TRANSPOSE_B, .math = (hd_math)math });
            run(&p);
            check(&p);
            drop(&p);
        }
}

#define LEVELS(file) void hdcpu_##file##_l0(const hdi_cpu_call *, uint32_t, uint32_t, uint32_t); \
    void hdcpu_##file##_l1(const hdi_cpu_call *, uint32_t, uint32_t, uint32_t); \
    void hdcpu_##file##_l2(const hdi_cpu_call *, uint32_t, uint32_t, uint32_t); \
    void hdcpu_##file##_l3(const hdi_cpu_call *, uint32_t, uint32_t, uint32_t); \
    static const hdi_cpu_kernel file[4] = { hdcpu_##file##_l0, hdcpu_##file##_l1, hdcpu_##file##_l2, hdcpu_##file##_l3 };
LEVELS(matmul_tiled)
LEVELS(matvec)
LEVELS(codes)
LEVELS(matmul_codes)

/* Exact mode: each form and level gives the same bytes; fast mode: each level is right. */
static void forms_and_levels(void **state) {
    (void)state;
    seed = 3;
    for (uint32_t i = 0; i < 48; i += SWEEP_STEP) {
        problem p;
        options o = random_options(i);
        random_problem(&p, i, o);
        hdi_launch launch = lower(&p, &cpu_caps);
        const bool vector = launch.kernel.module == HDI_MODULE_MATVEC, coded = launch.kernel.module == HDI_MODULE_MATMUL_CODES;
        assert_int_equal(coded, o.math == HD_MATH_EXACT && hdi_dtype_has_whole_codes(o.b) && (o.flags & HD_TRANSPOSE_B));
        void *first = malloc(p.bytes[C]);
        for (uint32_t form = 0; form < (vector && o.math == HD_MATH_EXACT ? 2u : 1u); form++) {
            if (form == 1) launch.kernel.module = HDI_MODULE_MATMUL_TILED;
            for (uint32_t level = 0; level <= hdcpu_level(); level++) {
                memset(p.data[C], 0xFF, p.bytes[C]);
                if (coded) memset(p.data[PACKED], 0xFF, p.bytes[PACKED]);
                if (coded) run_form(&p, &p.launches[0], codes[level]);
                run_form(&p, &launch, (coded ? matmul_codes : vector && form == 0 ? matvec : matmul_tiled)[level]);
                if (o.math != HD_MATH_EXACT) check(&p);
                else if (form == 0 && level == 0) memcpy(first, p.data[C], p.bytes[C]);
                else assert_memory_equal(first, p.data[C], p.bytes[C]);
            }
        }
        free(first);
        drop(&p);
    }
}

LEVELS(pack_bf16)
LEVELS(matmul_amx)

/* Tiles of bf16 on every level; the last one only where this process may use them, as the CPU device finds out. */
static void bf16_tiles(void **state) {
    (void)state;
    static const struct { int64_t m, n, k; } sizes[] = { { 9, 31, 256 }, { 33, 17, 512 }, { 40, 100, 768 }, { 16, 32, 2816 }, { 530, 20, 256 }, { 67, 45, 77 } };
    hdi_caps caps = cpu_caps;
    hdi_probe found;
    hdi_host host = { .allocator = &hdi_default_allocator };
    hdi_backend_cpu.probe(&host, &found);
    const uint32_t levels = hdcpu_level() == 3 && !found.found[0].caps.matrix_bf16 ? 3 : hdcpu_level() + 1;
    caps.matrix_bf16 = 1;
    seed = 5;
    for (uint32_t i = 0; i < 2 * (HDI_COUNT(b_types) - 1); i++) {
        problem p;
        options o = { .a = (hd_dtype)(HD_F32 + i % 3), .b = b_types[1 + i % 14], .flags = HD_TRANSPOSE_B, .math = HD_MATH_FAST, .chain = i % 4 == 0, .a_swapped = i % 5 == 1 };
        if (sizes[i % 6].k % 256 != 0) o.b = i % 2 ? HD_F16 : HD_BF16;
        if (i % 9 == 0) o = (options){ .a = HD_F32, .b = HD_Q4_0, .flags = HD_TRANSPOSE_B, .math = HD_MATH_FAST, .batch_rank = 1, .a_batch = { 3 }, .b_batch = { 3 } };
        make(&p, sizes[i % 6].m, sizes[i % 6].n, sizes[i % 6].k / hdi_dtype(o.b).block_elements * hdi_dtype(o.b).block_elements, o);
        p.request.caps = &caps;
        lower(&p, &caps);
        assert_int_equal(p.launch_count, 2);
        assert_int_equal(p.launches[1].kernel.module, HDI_MODULE_MATMUL_AMX);
        for (uint32_t level = 0; level < levels; level++) {
            memset(p.data[C], 0xFF, p.bytes[C]);
            memset(p.data[PACKED], 0xFF, p.bytes[PACKED]);
            run_form(&p, &p.launches[0], pack_bf16[level]);
            run_form(&p, &p.launches[1], matmul_amx[level]);
            check(&p);
        }
        drop(&p);
    }
}

LEVELS(pack_int8)
LEVELS(matmul_int8)

/* Tiles of 8-bit integers on every level: all types, rows of every type and stride, odd sizes, batches, chains. */
static void int8_tiles(void **state) {
    (void)state;
    static const struct { int64_t m, n, k; } sizes[] = { { 9, 31, 256 }, { 33, 17, 512 }, { 40, 50, 512 }, { 16, 7, 2816 }, { 514, 3, 256 }, { 35, 245, 96 }, { 18, 50, 320 } };
    hdi_caps caps = cpu_caps;
    caps.integer_dot = 1;
    seed = 6;
    for (uint32_t i = 0; i < 2 * HDI_COUNT(b_types); i++) {
        problem p;
        options o = { .a = (hd_dtype)(HD_F32 + i % 3), .b = b_types[i % HDI_COUNT(b_types)], .flags = HD_TRANSPOSE_B, .math = HD_MATH_FAST, .chain = i % 4 == 0, .a_swapped = i % 5 == 1 };
        if (!hdi_dtype_has_whole_codes(o.b)) continue;
        if (i % 9 == 0) o = (options){ .a = HD_F32, .b = o.b, .flags = HD_TRANSPOSE_B, .math = HD_MATH_FAST, .batch_rank = 1, .a_batch = { 3 }, .b_batch = { 3 } };
        const int64_t unit = hdi_dtype(o.b).block_elements, k = sizes[i % 7].k;
        make(&p, sizes[i % 7].m, sizes[i % 7].n, (k + unit - 1) / unit * unit, o);
        lower(&p, &caps);
        assert_int_equal(p.launch_count, 2);
        assert_int_equal(p.launches[1].kernel.module, HDI_MODULE_MATMUL_INT8);
        for (uint32_t level = 0; level <= hdcpu_level(); level++) {
            memset(p.data[C], 0xFF, p.bytes[C]);
            memset(p.data[PACKED], 0xFF, p.bytes[PACKED]);
            run_form(&p, &p.launches[0], pack_int8[level]);
            run_form(&p, &p.launches[1], matmul_int8[level]);
            check(&p);
        }
        drop(&p);
    }
}

/* The order that abi.h states, spelled out. */
static void exact_order(void **state) {
    (void)state;
    seed = 4;
    problem p;
    make(&p, 3, 5, 100, (options){ .a = HD_F32, .b = HD_F32, .math = HD_MATH_EXACT });
    const float *a = p.data[A], *b = p.data[B], *c = p.data[C];
    run(&p);
    for (uint32_t m = 0; m < 3; m++)
        for (uint32_t n = 0; n < 5; n++) {
            volatile float total = 0, block, product;
            for (uint32_t k0 = 0; k0 < 100; k0 += 32) {
                block = 0;
                for (uint32_t k = k0; k < k0 + 32 && k < 100; k++) {
                    product = a[m * 100 + k] * b[k * 5 + n];
                    block = block + product;
                }
                total = total + block;
            }
            const float want = total;
            assert_memory_equal(&want, &c[m * 5 + n], sizeof want);
        }
    drop(&p);
}

/* The product in 8 bits, spelled out for q4_0: 35 runs, so that strands differ in length. */
static void exact_order_of_runs(void **state) {
    (void)state;
    enum { M = 3, N = 5, RUNS = 35, K = 32 * RUNS };
    seed = 6;
    problem p;
    make(&p, M, N, K, (options){ .a = HD_F32, .b = HD_Q4_0, .flags = HD_TRANSPOSE_B, .math = HD_MATH_EXACT });
    float *a = p.data[A];
    const float *c = p.data[C];
    for (uint32_t i = 0; i < 32; i++) a[64 + i] = i == 3 ? 0x1p-65f : 0; /* too small for a scale */
    a[K + 7] = INFINITY;
    run(&p);
    for (uint32_t m = 0; m < M; m++)
        for (uint32_t n = 0; n < N; n++) {
            volatile float total = 0, strand, value;
            for (uint32_t j = 0; j < 16; j++) {
                strand = 0;
                for (uint32_t run_at = j; run_at < RUNS; run_at += 16) {
                    const float *x = a + m * K + 32 * run_at;
                    const uint8_t *block = (const uint8_t *)p.data[B] + (n * RUNS + run_at) * 18;
                    float most = 0;
                    int whole = 0;
                    for (int i = 0; i < 32; i++) most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
                    const exact_rounding rounding = exact_int8_rounding(exact_bits(most));
                    for (int i = 0; i < 32; i++) {
                        const int code = (i < 16 ? block[2 + i] & 15 : block[2 + i - 16] >> 4) - 8;
                        volatile float scaled = x[i] * rounding.inverse;
                        if (most >= 0x1p-64f && isfinite(most)) whole += code * (int)nearbyintf(scaled);
                    }
                    value = hdcpu_f16_at(block) * (float)whole;
                    value = rounding.scale * value;
                    strand = strand + value;
                }
                total = total + strand;
            }
            const float want = total, got = c[m * N + n];
            if (m == 1) assert_true(isnan(got));
            else assert_memory_equal(&want, &got, sizeof want);
        }
    drop(&p);
}

static void scratch_is_enough(void **state) {
    (void)state;
    for (uint32_t kernels = 0; hdcpu_sgemm_kernels_at(kernels); kernels++)
        for (uint32_t m = 1; m <= 192; m += 1 + m / 4)
            for (uint32_t n = 1; n <= 512; n += 1 + n / 3)
                for (uint32_t k = 1; k < 40000; k += 1 + k / 2)
                    assert_true(hdcpu_sgemm_plan(hdcpu_sgemm_kernels_at(kernels), m, n, k, 1).scratch_bytes +
                                HDCPU_MATMUL_TILE_FLOATS(m, n) * sizeof(float) <= hdcpu_fast_scratch_bytes(192, 512, k));
}

static const hdi_caps gpu_caps = {
    .max_bindings = 16, .max_push_bytes = 128, .max_workgroup = 1024, .max_workgroup_x = 1024, .max_groups_x = 65535, .max_groups_y = 65535,
    .max_groups_z = 65535, .shared_bytes = 49152, .subgroup = 32, .subgroup_arithmetic = 1, .subgroup_control = 1, .f16_storage = 1,
    .f16_arithmetic = 1, .matrix_f16 = 1, .memory_model = 1, .compute_units = 132,
};
static hdi_kernel chosen(const hdi_caps *caps, int64_t m, int64_t n, int64_t k, options o) {
    problem p;
    make(&p, m, n, k, o);
    const hdi_kernel kernel = lower(&p, caps).kernel;
    drop(&p);
    return kernel;
}

/* Products of rows with an input of q4_0, so many of them; the layouts that all have, and that any has. */
static void layouts(int products, uint32_t *out_all, uint32_t *out_any) {
    hdi_caps caps = gpu_caps;
    caps.integer_dot = caps.subgroup_shuffle = caps.early_start = 1;
    caps.memory_bytes = caps.max_allocation_bytes = caps.max_binding_bytes = UINT64_C(1) << 34;
    caps.binding_align = 16;
    hdi_text text = { .allocator = &hdi_default_allocator };
    hdi_text_add(&text, "heddle 1\nw = input q4_0[64,1024] \"w\"\n");
    for (int i = 0; i < products; i++)
        hdi_text_add(&text, "x%d = input f32[1,1024] \"x%d\"\ny%d = matmul x%d w transpose_b\noutput y%d \"y%d\"\n", i, i, i, i, i, i);
    hdi_schedule *schedule = NULL;
    hd_error error = { 0 };
    hd_program *program = hdi_program_new(&hdi_default_allocator, NULL);
    if (hdi_program_parse(program, text.bytes, text.count, NULL, NULL, &error) ||
        hdi_schedule_make(&hdi_default_allocator, program, &caps, &(hdi_plan_options){ .math = HD_MATH_FAST }, &schedule, &error))
        fail_msg("%s", error.text);
    int found = 0;
    *out_all = UINT32_MAX;
    *out_any = 0;
    for (uint32_t i = 0; i < schedule->step_count; i++) {
        const hdi_kernel *kernel = &schedule->steps[i].kernel;
        if (schedule->steps[i].kind != HDI_CMD_DISPATCH || kernel->module != HDI_MODULE_MATVEC_DOT) continue;
        found++;
        *out_all &= kernel->spec[HDI_MM_LAYOUT];
        *out_any |= kernel->spec[HDI_MM_LAYOUT];
    }
    assert_int_equal(found, products);
    hdi_schedule_free(schedule);
    hdi_program_free(program);
    hdi_text_free(&text);
}

/* An input of the plan is asked for before the dispatch waits; but not one that the plan itself brings to the device once,
 * because it is small and read often. */
static void given(void **state) {
    (void)state;
    uint32_t all, any;
    layouts(1, &all, &any);
    assert_int_equal(all & (HDI_MM_WHOLE | HDI_MM_B_GIVEN), HDI_MM_WHOLE | HDI_MM_B_GIVEN);
    layouts(HDI_ACROSS_USES + 1, &all, &any);
    assert_int_equal(all & HDI_MM_WHOLE, HDI_MM_WHOLE);
    assert_int_equal(any & HDI_MM_B_GIVEN, 0);
}

/* Operands that both are bf16 take the units for them; few tiles along a long K are divided, and summed last, in fast mode. */
static void bf16_units_and_parts(void **state) {
    (void)state;
    const options brain = { .a = HD_BF16, .b = HD_BF16, .flags = HD_TRANSPOSE_B | HD_RESULT_F32, .math = HD_MATH_FAST };
    const options floats = { .a = HD_F32, .b = HD_F32, .flags = HD_TRANSPOSE_B, .math = HD_MATH_FAST };
    const options exact = { .a = HD_F32, .b = HD_F32, .flags = HD_TRANSPOSE_B, .math = HD_MATH_EXACT };
    hdi_caps units = gpu_caps;
    units.matrix_bf16 = 1;
    assert_int_equal(chosen(&gpu_caps, 64, 128, 256, brain).module, HDI_MODULE_MATMUL_TILED); /* f16 would lose small ones */
    assert_int_equal(chosen(&units, 64, 128, 256, brain).module, HDI_MODULE_MATMUL_MATRIX_BF16);
    assert_int_equal(chosen(&gpu_caps, 512, 128, 2048, floats).module, HDI_MODULE_ELEMENTWISE);
    assert_int_equal(chosen(&gpu_caps, 512, 128, 2048, exact).module, HDI_MODULE_MATMUL_TILED);
    assert_int_equal(chosen(&gpu_caps, 2048, 2048, 2048, floats).module, HDI_MODULE_MATMUL_TILED);
}

static void choices(void **state) {
    (void)state;
    const options weights = { .a = HD_F16, .b = HD_Q4_0, .flags = HD_TRANSPOSE_B, .math = HD_MATH_FAST };
    options exact = weights, gaps = weights, single = weights, halves = weights, floats = weights;
    exact.math = HD_MATH_EXACT;
    gaps.gap = 3;
    single.a = HD_F32;
    halves.b = HD_F16;
    floats.a = floats.b = HD_F32;
    hdi_caps plain = gpu_caps;
    plain.subgroup_arithmetic = plain.matrix_f16 = 0;
    plain.shared_bytes = 16384;
    plain.max_workgroup = 128;
    assert_int_equal(chosen(&gpu_caps, 1, 64, 1024, weights).module, HDI_MODULE_MATVEC_SUBGROUP);
    assert_int_equal(chosen(&gpu_caps, 8, 64, 1024, weights).module, HDI_MODULE_MATVEC_SUBGROUP);
    assert_int_equal(chosen(&gpu_caps, 1, 64, 1024, exact).module, HDI_MODULE_MATMUL_CODES);
    assert_int_equal(chosen(&gpu_caps, 1, 64, 1024, gaps).module, HDI_MODULE_MATVEC); /* not wide */
    assert_int_equal(chosen(&plain, 1, 64, 1024, weights).module, HDI_MODULE_MATVEC);
    assert_int_equal(chosen(&gpu_caps, 9, 64, 256, halves).module, HDI_MODULE_MATMUL_MATRIX);
    assert_int_equal(chosen(&gpu_caps, 9, 64, 256, halves).subgroup, 32);
    assert_int_equal(chosen(&gpu_caps, 9, 64, 256, weights).module, HDI_MODULE_MATMUL_MATRIX);
    assert_int_equal(chosen(&gpu_caps, 9, 64, 1024, exact).module, HDI_MODULE_MATMUL_CODES);
    hdi_caps dots = gpu_caps;
    dots.integer_dot = dots.subgroup_shuffle = 1;
    single.math = HD_MATH_EXACT;
    assert_int_equal(chosen(&dots, 1, 64, 1024, single).module, HDI_MODULE_MATVEC_DOT);
    assert_int_equal(chosen(&dots, 9, 64, 1024, single).module, HDI_MODULE_MATMUL_CODES_DOT);
    /* A row of q4_0 where dispatches begin early: runs dealt out, and B asked for before that only if nothing in the plan writes it. */
    hdi_caps early = dots;
    early.early_start = 1;
    assert_int_equal(chosen(&early, 1, 64, 1024, single).spec[HDI_MM_LAYOUT] & (HDI_MM_WHOLE | HDI_MM_B_GIVEN), HDI_MM_WHOLE);
    assert_int_equal(chosen(&early, 1, 64, 1024, single).spec[HDI_MM_PART_M], 1024);
    assert_int_equal(chosen(&early, 2, 64, 1024, single).spec[HDI_MM_LAYOUT] & HDI_MM_WHOLE, 0);
    assert_int_equal(chosen(&dots, 1, 64, 1024, single).spec[HDI_MM_LAYOUT] & HDI_MM_WHOLE, 0);
    dots.matrix_s8 = 1;
    dots.max_binding_bytes = dots.memory_bytes = UINT64_C(1) << 34;
    assert_int_equal(chosen(&dots, 64, 64, 1024, single).module, HDI_MODULE_MATMUL_CODES_MATRIX);
    assert_int_equal(chosen(&dots, 32, 64, 1024, single).module, HDI_MODULE_MATMUL_CODES_DOT); /* not worth it */
    assert_int_equal(chosen(&dots, 8, 64, 1024, single).module, HDI_MODULE_MATVEC_DOT);
    /* From 4 rows on by matrix units, where dispatches begin early and shared memory holds all of A. */
    hdi_caps narrow = early;
    narrow.matrix_s8_narrow = narrow.memory_model = 1;
    narrow.shared_bytes = 227 << 10;
    assert_int_equal(chosen(&narrow, 3, 64, 1024, single).module, HDI_MODULE_MATVEC_DOT);
    assert_int_equal(chosen(&narrow, 4, 64, 1024, single).module, HDI_MODULE_MATVEC_MATRIX);
    assert_int_equal(chosen(&narrow, 8, 4096, 9728, single).module, HDI_MODULE_MATVEC_MATRIX);
    assert_int_equal(chosen(&narrow, 8, 4096, 9728, single).spec[HDI_MM_PART_M], 9728);
    assert_int_equal(chosen(&narrow, 8, 64, 512, single).module, HDI_MODULE_MATVEC_DOT); /* two rounds at least */
    narrow.shared_bytes = 49152;
    assert_int_equal(chosen(&narrow, 8, 4096, 9728, single).module, HDI_MODULE_MATVEC_DOT);
    single.flags = 0; /* blocks along N: sums of f32 */
    assert_int_equal(chosen(&dots, 1, 64, 1024, single).module, HDI_MODULE_MATVEC);
    single.flags = HD_TRANSPOSE_B;
    single.math = HD_MATH_FAST;
    assert_int_equal(chosen(&gpu_caps, 9, 64, 256, single).module, HDI_MODULE_MATMUL_MATRIX);
    assert_int_equal(chosen(&gpu_caps, 9, 64, 500, floats).module, HDI_MODULE_MATMUL_TILED); /* f16 would miss f32's bound */
    hdi_caps workgroups = gpu_caps;
    workgroups.matrix_workgroup = 1;
    assert_int_equal(chosen(&workgroups, 2048, 2048, 1024, halves).module, HDI_MODULE_MATMUL_MATRIX);
    workgroups.wrong[HDI_MODULE_MATMUL_MATRIX][0] = UINT64_MAX;
    assert_int_equal(chosen(&workgroups, 2048, 2048, 1024, halves).module, HDI_MODULE_MATMUL_TENSOR);
    assert_int_equal(chosen(&workgroups, 2048, 2048, 1024, halves).spec[HDI_MM_TILE_N], 128);
    assert_int_equal(chosen(&workgroups, 1024, 1024, 512, halves).spec[HDI_MM_TILE_M], 64); /* larger ones would leave units idle */
    assert_int_equal(chosen(&workgroups, 8192, 8192, 1024, halves).spec[HDI_MM_TILE_N], 256);
    assert_int_equal(chosen(&workgroups, 63, 2048, 1024, halves).module, HDI_MODULE_MATMUL_TILED); /* few rows */
    assert_int_equal(chosen(&workgroups, 2048, 2048, 1020, halves).module, HDI_MODULE_MATMUL_TILED); /* lines that begin anywhere */
    assert_int_equal(chosen(&workgroups, 2048, 2048, 1024, floats).module, HDI_MODULE_MATMUL_TILED);
    assert_int_equal(chosen(&gpu_caps, 512, 4096, 2560, halves).spec[HDI_MM_TILE_N], 128);
    assert_int_equal(chosen(&gpu_caps, 512, 1024, 2560, halves).module, HDI_MODULE_ELEMENTWISE); /* whole depths would leave units idle */
    assert_int_equal(chosen(&plain, 600, 600, 32, weights).spec[HDI_MM_TILE_M], 32); /* workgroups of 256 do not fit */
    assert_int_equal(chosen(&gpu_caps, 9, 500, 32, exact).spec[HDI_MM_TILE_M], 8);
    assert_int_equal(chosen(&gpu_caps, 3000, 3000, 32, exact).spec[HDI_MM_TILE_M], 128);
}

/* Up to 8 rows take kernels that sum alike, whatever was measured to be the fastest for one of them or for several. */
static void few_rows_are_summed_alike(void **state) {
    (void)state;
    static const hdi_module_id modules[] = { HDI_MODULE_MATVEC_DOT, HDI_MODULE_MATVEC_SUBGROUP, HDI_MODULE_MATVEC, HDI_MODULE_MATMUL_MATRIX,
                                             HDI_MODULE_MATMUL_TILED };
    const options o = { .a = HD_F32, .b = HD_Q4_0, .flags = HD_TRANSPOSE_B, .math = HD_MATH_FAST };
    for (int dots = 0; dots < 2; dots++)
        for (size_t alone = 0; alone <= HDI_COUNT(modules); alone++)
            for (size_t among = 0; among < HDI_COUNT(modules); among++) {
                static hdi_caps caps;
                caps = gpu_caps;
                caps.integer_dot = caps.subgroup_shuffle = caps.early_start = caps.matrix_s8_narrow = (uint64_t)dots;
                caps.choices.table = hdi_kernel_options_digest();
                for (uint64_t rows = 1; rows <= 8; rows *= 2) {
                    const size_t which = rows == 1 ? alone : among;
                    if (which == HDI_COUNT(modules)) continue;
                    const hdi_kernel_option *option = hdi_kernel_option_next(modules[which], NULL);
                    const hdi_choice choice = { hdi_class_of(HDI_CLASS_MATVEC, HD_Q4_0, rows, 16 * 512), option->id, 2 };
                    assert_true(hdi_choices_put(&caps.choices, &choice));
                }
                const hdi_kernel one = chosen(&caps, 1, 16, 512, o);
                if (alone < HDI_COUNT(modules) && alone < 3 && (alone || dots)) assert_int_equal(one.module, modules[alone]);
                for (int64_t m = 2; m <= 8; m++) {
                    const hdi_kernel few = chosen(&caps, m, 16, 512, o);
                    assert_int_equal(few.module, one.module);
                    if (few.module == HDI_MODULE_MATVEC_SUBGROUP)
                        assert_int_equal(few.spec[HDI_SPEC_WORKGROUP], one.spec[HDI_SPEC_WORKGROUP]);
                }
            }
    hdi_caps small = gpu_caps; /* shared memory for less of K at once */
    small.integer_dot = small.subgroup_shuffle = 1;
    small.shared_bytes = 16384;
    for (int64_t m = 1; m <= 8; m++) assert_int_equal(chosen(&small, m, 4, 16384, o).module, HDI_MODULE_MATVEC_DOT);
}

/* Of bf16 and bf16 with f32 results, as training has them forward and for both gradients: by a library, by bf16 tiles of a processor, and
 * else by tiles of f32, as f16 would lose the small ones. */
static void mixed_precision(void **state) {
    (void)state;
    static const uint32_t turns[] = { HD_MATMUL_PLAIN, HD_TRANSPOSE_B, HD_TRANSPOSE_A };
    hdi_caps library = gpu_caps, tiles = cpu_caps;
    library.product_library = tiles.matrix_bf16 = 1;
    for (size_t i = 0; i < HDI_COUNT(turns); i++) {
        options o = { .a = HD_BF16, .b = HD_BF16, .flags = turns[i] | HD_RESULT_F32, .math = HD_MATH_FAST };
        const hdi_kernel by_library = chosen(&library, 64, 128, 256, o);
        assert_int_equal(by_library.module, HDI_MODULE_MATMUL_LIBRARY);
        assert_true(by_library.spec[HDI_PRODUCT_A_TYPE] == HD_BF16 && by_library.spec[HDI_PRODUCT_B_TYPE] == HD_BF16 && by_library.spec[HDI_PRODUCT_OUT_TYPE] == HD_F32);
        assert_int_equal(chosen(&gpu_caps, 64, 128, 256, o).module, HDI_MODULE_MATMUL_TILED);
        assert_int_equal(chosen(&tiles, 64, 128, 256, o).module, turns[i] == HD_TRANSPOSE_B ? HDI_MODULE_MATMUL_AMX : HDI_MODULE_MATMUL_TILED);
        o.flags = turns[i];
        assert_int_equal(chosen(&gpu_caps, 64, 128, 256, o).module, HDI_MODULE_MATMUL_MATRIX);
    }
}

static void batches(void **state) {
    (void)state;
    problem p;
    /* Weights that all batches share: batches become rows. */
    make(&p, 7, 5, 32, (options){ .a = HD_F32, .b = HD_F32, .batch_rank = 2, .a_batch = { 2, 3 }, .b_batch = { 1, 1 } });
    hdi_launch launch = lower(&p, &gpu_caps);
    assert_int_equal(launch.push[HDI_MM_PUSH_M], 42);
    assert_int_equal(launch.groups[2], 1);
    drop(&p);
    /* Else they are the grid's third axis. */
    make(&p, 7, 5, 32, (options){ .a = HD_F32, .b = HD_F32, .batch_rank = 2, .a_batch = { 2, 1 }, .b_batch = { 2, 3 } });
    launch = lower(&p, &gpu_caps);
    assert_int_equal(launch.groups[2], 6);
    assert_int_equal(launch.flops, 2 * 6 * 7 * 5 * 32);
    drop(&p);
}

/* What a known answer showed to be wrong is left out: the next row, then the exact form, then a refusal that names it. */
static void wrong_kernels(void **state) {
    (void)state;
    hdi_lowering lowering = { .allocator = &hdi_default_allocator };
    hd_error error = { 0 };
    problem p;
    make(&p, 4, 64, 64, (options){ .a = HD_F32, .b = HD_F32 });
    hdi_caps caps = gpu_caps;
    memcpy(caps.name, "a device", sizeof "a device");
    p.request.caps = &caps;
    p.request.math = HD_MATH_FAST;
    assert_int_equal(hdi_kernels_lower(&p.request, &lowering, &error), HD_OK);
    const uint64_t form = UINT64_C(1) << HD_F32;
    const uint32_t first = lowering.launches[0].kernel.module;
    assert_int_not_equal(first, HDI_MODULE_MATMUL_TILED);
    caps.wrong[first][0] = ~form; /* other forms do not matter */
    lowering.count = 0;
    assert_int_equal(hdi_kernels_lower(&p.request, &lowering, &error), HD_OK);
    assert_int_equal(lowering.launches[0].kernel.module, first);
    for (uint32_t i = 0; i < HDI_MODULE_COUNT; i++)
        if (i != HDI_MODULE_MATMUL_TILED) caps.wrong[i][0] = form;
    lowering.count = 0;
    assert_int_equal(hdi_kernels_lower(&p.request, &lowering, &error), HD_OK);
    assert_int_equal(lowering.launches[0].kernel.module, HDI_MODULE_MATMUL_TILED);
    assert_int_equal(lowering.launches[0].kernel.spec[HDI_SPEC_EXACT], 0);
    caps.wrong[HDI_MODULE_MATMUL_TILED][0] = form;
    lowering.count = 0;
    assert_int_equal(hdi_kernels_lower(&p.request, &lowering, &error), HD_OK);
    assert_int_equal(lowering.launches[0].kernel.module, HDI_MODULE_MATVEC);
    assert_int_equal(lowering.launches[0].kernel.spec[HDI_SPEC_EXACT], 1);
    caps.wrong[HDI_MODULE_MATVEC][1] = caps.wrong[HDI_MODULE_MATMUL_TILED][1] = form;
    lowering.count = 0;
    assert_int_equal(hdi_kernels_lower(&p.request, &lowering, &error), HD_STATUS_UNSUPPORTED);
    assert_non_null(strstr(error.text, "matmul_tiled f32, exact gives wrong results on a device"));
    hdi_free(lowering.allocator, lowering.launches, lowering.capacity * sizeof *lowering.launches);
    drop(&p);
}

static void refusals(void **state) {
    (void)state;
    hdi_lowering lowering = { .allocator = &hdi_default_allocator };
    hd_error error = { 0 };
    problem p;
    make(&p, 20, 20, 32, (options){ .a = HD_F32, .b = HD_F32 });
    hdi_caps caps = gpu_caps;
    caps.shared_bytes = 1024;
    p.request.caps = &caps;
    assert_int_equal(hdi_lower_matmul(&p.request, &lowering, &error), HD_STATUS_UNSUPPORTED);
    caps = gpu_caps;
    caps.max_push_bytes = 64;
    assert_int_equal(hdi_lower_matmul(&p.request, &lowering, &error), HD_STATUS_UNSUPPORTED);
    caps = gpu_caps;
    p.inputs[1].strides[0] = INT64_C(1) << 40;
    assert_int_equal(hdi_lower_matmul(&p.request, &lowering, &error), HD_STATUS_UNSUPPORTED);
    assert_int_equal(lowering.count, 0);
    drop(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_shapes), cmocka_unit_test(larger_shapes), cmocka_unit_test(forms_and_levels), cmocka_unit_test(bf16_tiles), cmocka_unit_test(int8_tiles),
        cmocka_unit_test(exact_order), cmocka_unit_test(exact_order_of_runs), cmocka_unit_test(scratch_is_enough),
        cmocka_unit_test(bf16_units_and_parts), cmocka_unit_test(choices), cmocka_unit_test(few_rows_are_summed_alike), cmocka_unit_test(given), cmocka_unit_test(mixed_precision), cmocka_unit_test(batches),
        cmocka_unit_test(refusals), cmocka_unit_test(wrong_kernels),
    };
    return cmocka_run_group_tests_name("matmul", tests, NULL, NULL);
}
