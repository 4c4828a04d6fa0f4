/* The element-wise family: its lowering, and its CPU form run at every instruction set that this machine has. Single
 * steps are held against float64; chains against the same steps run one by one, bit for bit. Every byte of the output's
 * storage that is no element of it must stay as it was. */
#include "kernels/kernel.h"
#include "kernels/exact.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <math.h>
#include <stdio.h>
#include <cmocka.h>

#define LEVEL(n) \
    extern void hdcpu_elementwise_l##n(const hdi_cpu_call *, uint32_t, uint32_t, uint32_t); \
    extern void hdcpu_transpose_l##n(const hdi_cpu_call *, uint32_t, uint32_t, uint32_t);
LEVEL(0) LEVEL(1) LEVEL(2) LEVEL(3)
static const hdi_cpu_kernel levels[] = { hdcpu_elementwise_l0, hdcpu_elementwise_l1, hdcpu_elementwise_l2,
                                        hdcpu_elementwise_l3 };
/* Copies across memory are another kernel's. */
static const hdi_cpu_kernel across[] = { hdcpu_transpose_l0, hdcpu_transpose_l1, hdcpu_transpose_l2, hdcpu_transpose_l3 };

#define STORAGES 5 /* inputs 0..3, output 4 */
#define STORAGE_BYTES (64u * 1024u)
static const hdi_caps cpu_caps = { .native_kernels = 1, .max_push_bytes = 128, .binding_align = 64 };

static uint64_t seed = 1;
static uint32_t random_word(void) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 32);
}
static uint32_t below(uint32_t limit) { return (uint32_t)((uint64_t)random_word() * limit >> 32); }

/* ---- numbers ---- */

/* A double to the nearest value with `bits` of fraction and least exponent `least`. */
static double nearest(double x, int bits, int least, double largest) {
    if (x == 0 || !isfinite(x)) return x;
    int exponent;
    (void)frexp(x, &exponent);
    const double unit = ldexp(1, (exponent - 1 < least ? least : exponent - 1) - bits);
    const double r = nearbyint(x / unit) * unit;
    return fabs(r) > largest ? copysign(INFINITY, r) : copysign(r, x);
}
static double to_type(hd_dtype type, double x) {
    switch (type) {
    case HD_F32: return (float)x;
    case HD_F16: return nearest((float)x, 10, -14, 65504);
    case HD_BF16: return nearest((float)x, 7, -126, 3.3895313892515355e38);
    case HD_U8: return (double)((uint32_t)(int64_t)x & 255u);
    default: return x;
    }
}
static double unit_of(hd_dtype type, double x) { /* of the last place */
    int exponent;
    if (type == HD_I32 || type == HD_U8 || !isfinite(x)) return 0;
    (void)frexp(x, &exponent);
    const int bits = type == HD_F32 ? 23 : type == HD_F16 ? 10 : 7, least = type == HD_F16 ? -14 : -126;
    return ldexp(1, (x == 0 || exponent - 1 < least ? least : exponent - 1) - bits);
}
static double element(const uint8_t *bytes, hd_dtype type, uint64_t index) {
    uint32_t word;
    uint16_t half;
    float f;
    switch (type) {
    case HD_F32: memcpy(&f, bytes + 4 * index, 4); return (double)f;
    case HD_I32: memcpy(&word, bytes + 4 * index, 4); return (double)(int32_t)word;
    case HD_U8: return bytes[index];
    case HD_BF16:
        memcpy(&half, bytes + 2 * index, 2);
        word = (uint32_t)half << 16;
        memcpy(&f, &word, 4);
        return (double)f;
    default: break;
    }
    memcpy(&half, bytes + 2 * index, 2);
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    const double magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
        : exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return half & 0x8000 ? -magnitude : magnitude;
}
/* Interesting numbers, and some without a system. */
static uint32_t random_element(hd_dtype type) {
    static const float some[] = { 0, -0.0f, 1, -1, 0.5f, 2, -3, 7.25f, 1e-3f, -1e-3f, 88, -88, 100, -104, 1e-40f, -1e-42f, 1e5f, -1e5f,
                                  3e38f, INFINITY, -INFINITY, 1e-20f, 255, 256, -129, 0.99999994f, 16777216, 2147483648.0f, -4e9f };
    static const uint32_t integers[] = { 0, 1, 0xFFFFFFFFu, 0x80000000u, 0x7FFFFFFFu, 2, 255, 256, 0xFFFFFFFEu, 0x01000001u, 0x01010001u };
    const uint32_t which = below(4);
    if (type == HD_I32) return which ? (which == 1 ? random_word() : below(41) - 20) : integers[below(HDI_COUNT(integers))];
    if (type == HD_U8) return which ? below(256) : below(2);
    float f = which == 0 ? some[below(HDI_COUNT(some))] : which == 1 ? exact_from_bits(random_word())
            : (float)(int32_t)random_word() * (which == 2 ? 0x1p-30f : 0x1p-26f);
    if (below(40) == 0) f = below(2) ? NAN : -(float)NAN;
    return type == HD_F32 ? exact_bits(f) : type == HD_F16 ? exact_f32_to_f16(f) : exact_f32_to_bf16(f);
}

/* ---- steps ---- */

typedef struct facts { uint8_t code; const char *name; uint32_t operands, attributes; bool ints; double ulps; } facts;
static const facts steps[] = {
    { HDI_STEP_COPY, "copy", 1, 0, true, 0 }, { HDI_STEP_ADD, "add", 2, 0, true, 0 }, { HDI_STEP_SUB, "sub", 2, 0, true, 0 },
    { HDI_STEP_MUL, "mul", 2, 0, true, 0 }, { HDI_STEP_DIV, "div", 2, 0, true, 0 }, { HDI_STEP_LESS, "less", 2, 0, true, 0 },
    { HDI_STEP_EQUAL, "equal", 2, 0, true, 0 }, { HDI_STEP_SCALE, "scale", 1, 2, false, 0 }, { HDI_STEP_NEG, "neg", 1, 0, true, 0 },
    { HDI_STEP_ABS, "abs", 1, 0, true, 0 }, { HDI_STEP_SQRT, "sqrt", 1, 0, false, 0 }, { HDI_STEP_EXP, "exp", 1, 0, false, 1 },
    { HDI_STEP_LOG, "log", 1, 0, false, 1 }, { HDI_STEP_SIN, "sin", 1, 0, false, 1 }, { HDI_STEP_COS, "cos", 1, 0, false, 1 },
    { HDI_STEP_RELU, "relu", 1, 0, true, 0 }, { HDI_STEP_LEAKY_RELU, "leaky_relu", 1, 1, false, 0 },
    { HDI_STEP_ELU, "elu", 1, 1, false, 4 }, { HDI_STEP_SIGMOID, "sigmoid", 1, 0, false, 2 }, { HDI_STEP_TANH, "tanh", 1, 0, false, 2 },
    { HDI_STEP_SILU, "silu", 1, 0, false, 3 }, { HDI_STEP_GELU, "gelu", 1, 0, false, 4 }, { HDI_STEP_GELU_TANH, "gelu_tanh", 1, 0, false, 4 },
    { HDI_STEP_CLIP, "clip", 1, 2, true, 0 }, { HDI_STEP_WHERE, "where", 3, 0, true, 0 }, { HDI_STEP_CAST, "cast", 1, 0, true, 0 },
};
static const float attributes[2] = { -0.37f, 1.625f };
static const hd_dtype types[] = { HD_F32, HD_F16, HD_BF16, HD_I32, HD_U8 };

static bool is_int(hd_dtype type) { return type == HD_I32 || type == HD_U8; }
static double wrapped(double x) { return (double)(int32_t)(uint32_t)(int64_t)x; }
static double held(double x, double low, double high) { return isnan(x) ? 0 : trunc(x < low ? low : x > high ? high : x); }

static double compute_int(uint8_t code, double x, double y) {
    switch (code) {
    case HDI_STEP_ADD: return wrapped(x + y);
    case HDI_STEP_SUB: return wrapped(x - y);
    case HDI_STEP_MUL: return (double)(int32_t)(uint32_t)((int64_t)x * (int64_t)y);
    case HDI_STEP_DIV: return y == 0 ? 0 : wrapped(trunc(x / y));
    case HDI_STEP_LESS: return x < y;
    case HDI_STEP_EQUAL: return x == y;
    case HDI_STEP_NEG: return wrapped(-x);
    case HDI_STEP_ABS: return wrapped(fabs(x));
    case HDI_STEP_RELU: return x > 0 ? x : 0;
    case HDI_STEP_CLIP: return held(x, 0, 1); /* the attributes towards zero */
    default: return x;
    }
}
static double compute_float(uint8_t code, double x, double y) {
    const double k = (double)attributes[0], l = (double)attributes[1];
    switch (code) {
    case HDI_STEP_ADD: return x + y;
    case HDI_STEP_SUB: return x - y;
    case HDI_STEP_MUL: return x * y;
    case HDI_STEP_DIV: return x / y;
    case HDI_STEP_LESS: return x < y;
    case HDI_STEP_EQUAL: return x == y;
    case HDI_STEP_SCALE: return (double)(float)(x * k) + l;
    case HDI_STEP_NEG: return -x;
    case HDI_STEP_ABS: return fabs(x);
    case HDI_STEP_SQRT: return sqrt(x);
    case HDI_STEP_EXP: return exp(x);
    case HDI_STEP_LOG: return log(x);
    case HDI_STEP_SIN: return sin(x);
    case HDI_STEP_COS: return cos(x);
    case HDI_STEP_RELU: return x > 0 || isnan(x) ? x : 0;
    case HDI_STEP_LEAKY_RELU: return x > 0 ? x : k * x;
    case HDI_STEP_ELU: return x > 0 ? x : k * expm1(x);
    case HDI_STEP_SIGMOID: return 1 / (1 + exp(-x));
    case HDI_STEP_TANH: return tanh(x);
    case HDI_STEP_SILU: return x == -INFINITY ? 0 : x / (1 + exp(-x));
    case HDI_STEP_GELU: return x == -INFINITY ? 0 : x * 0.5 * erfc(-x * 0.70710678118654752);
    case HDI_STEP_GELU_TANH: /* as x sigmoid(2u), which loses nothing */
        return x == -INFINITY ? 0 : x / (1 + exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)));
    case HDI_STEP_CLIP: return x < k ? k : x > l ? l : x;
    default: return x;
    }
}
static double compute(uint8_t code, hd_dtype from, hd_dtype to, double x, double y, double z) {
    if (code == HDI_STEP_WHERE) return x != 0 ? y : z;
    if (code == HDI_STEP_CAST && to == HD_I32) return held(x, -2147483648.0, 2147483647.0);
    if (code == HDI_STEP_CAST && to == HD_U8) return held(x, 0, 255);
    if (code == HDI_STEP_CAST && is_int(from) && to == HD_BF16) return nearest(x, 7, -126, 3.4e38); /* rounded once */
    return is_int(from) ? compute_int(code, x, y) : compute_float(code, x, y);
}

/* ---- running ---- */

static uint32_t run_launch(const hdi_launch *launch, uint8_t *const storages[STORAGES], hdi_cpu_kernel kernel) {
    uint32_t spec[HDI_MAX_SPEC] = { 0 };
    memcpy(spec, launch->kernel.spec, launch->kernel.spec_count * sizeof *spec);
    uint32_t *push = malloc(launch->kernel.push_bytes); /* its exact size, so that a sanitizer sees more being read */
    void *scratch = aligned_alloc(64, (launch->kernel.scratch_bytes + 63) / 64 * 64);
    void *bindings[HDI_MAX_BINDINGS];
    uint64_t bytes[HDI_MAX_BINDINGS];
    memcpy(push, launch->push, launch->kernel.push_bytes);
    for (uint32_t i = 0; i < launch->kernel.binding_count; i++) {
        bindings[i] = storages[launch->uses[i].storage] + launch->uses[i].offset;
        bytes[i] = launch->uses[i].bytes;
        assert_true(launch->uses[i].offset + bytes[i] <= STORAGE_BYTES);
    }
    const hdi_cpu_call call = { spec, push, bindings, bytes, scratch, NULL };
    for (uint32_t y = 0; y < launch->groups[1]; y++)
        for (uint32_t x = 0; x < launch->groups[0]; x++) kernel(&call, x, y, 0);
    free(push);
    free(scratch);
    return 0;
}
static hdi_lowering lower(const hdi_chain *chain, const hdi_tensor *out, const hdi_caps *caps, hd_math math) {
    hdi_lowering lowering = { .allocator = &hdi_default_allocator };
    const hdi_request request = { .op = HDI_OP_COPY, .out = *out, .chain = chain, .caps = caps, .math = math };
    hd_error error = { 0 };
    const hd_status status = hdi_lower_elementwise(&request, &lowering, &error);
    if (status) print_message("%s\n", error.text);
    assert_int_equal(status, HD_OK);
    return lowering;
}
static void lowering_free(hdi_lowering *lowering) {
    hdi_free(lowering->allocator, lowering->launches, lowering->capacity * sizeof *lowering->launches);
}
#ifndef RUN_CHAIN /* a file that includes this one may run chains on another device */
static void run_chain(const hdi_chain *chain, const hdi_tensor *out, uint8_t *const storages[STORAGES], const hdi_caps *caps) {
    uint8_t *before = malloc(STORAGE_BYTES), *first = malloc(STORAGE_BYTES);
    memcpy(before, storages[out->storage], STORAGE_BYTES);
    hdi_lowering lowering = lower(chain, out, caps, HD_MATH_EXACT);
    for (uint32_t level = 0; level <= hdcpu_level(); level++) {
        memcpy(storages[out->storage], before, STORAGE_BYTES);
        for (uint32_t i = 0; i < lowering.count; i++) run_launch(&lowering.launches[i], storages, (lowering.launches[i].kernel.module == HDI_MODULE_TRANSPOSE ? across : levels)[level]);
        if (level == 0) memcpy(first, storages[out->storage], STORAGE_BYTES);
        assert_memory_equal(first, storages[out->storage], STORAGE_BYTES);
    }
    lowering_free(&lowering);
    free(before);
    free(first);
}
#endif

/* ---- layouts ---- */

enum layout { DENSE, OFFSET, BROADCAST, PERMUTED, SLICED, LAYOUTS };
static hdi_tensor view(uint32_t storage, hd_dtype type, hd_shape shape, enum layout layout) {
    hdi_tensor t = hdi_tensor_dense(storage, type, shape);
    const uint32_t rank = shape.rank;
    t.first = layout == DENSE ? 0 : layout == OFFSET ? 64 : 3;
    if (layout == BROADCAST)
        for (uint32_t axis = 0; axis < rank; axis++)
            if (axis % 2 == 0) t.strides[axis] = 0;
    if (layout == PERMUTED) { /* the first axis is the fastest */
        int64_t stride = 1;
        for (uint32_t axis = 0; axis < rank; axis++) {
            t.strides[axis] = stride;
            stride *= shape.dims[axis];
        }
    }
    if (layout == SLICED) {
        int64_t stride = 1;
        for (uint32_t axis = rank; axis-- > 0;) {
            t.strides[axis] = stride * (axis == 0 ? 2 : 1);
            stride *= shape.dims[axis] + 1;
        }
    }
    return t;
}
static uint64_t element_at(const hdi_tensor *t, uint64_t index) {
    uint64_t at = t->first;
    for (uint32_t axis = t->shape.rank; axis-- > 0;) {
        at += index % (uint64_t)t->shape.dims[axis] * (uint64_t)t->strides[axis];
        index /= (uint64_t)t->shape.dims[axis];
    }
    return at;
}
static void fill(uint8_t *storage, hd_dtype type) {
    const size_t bytes = (size_t)hd_dtype_bytes(type, 1);
    for (size_t at = 0; at + bytes <= STORAGE_BYTES; at += bytes) {
        const uint32_t bits = random_element(type);
        memcpy(storage + at, &bits, bytes);
    }
}
/* Nothing but the elements of `out` changed. */
static void assert_rest_unchanged(const hdi_tensor *out, const uint8_t *before, const uint8_t *after) {
    const uint64_t bytes = hd_dtype_bytes(out->dtype, 1), count = hd_shape_elements(out->shape);
    uint8_t *expected = malloc(STORAGE_BYTES);
    memcpy(expected, before, STORAGE_BYTES);
    for (uint64_t i = 0; i < count; i++) memcpy(expected + element_at(out, i) * bytes, after + element_at(out, i) * bytes, bytes);
    assert_memory_equal(expected, after, STORAGE_BYTES);
    free(expected);
}
static uint8_t *storages[STORAGES];
static int set_up(void **state) {
    (void)state;
    for (uint32_t i = 0; i < STORAGES; i++)
        if (!(storages[i] = aligned_alloc(64, STORAGE_BYTES))) return -1;
    return 0;
}
static int tear_down(void **state) {
    (void)state;
    for (uint32_t i = 0; i < STORAGES; i++) free(storages[i]);
    return 0;
}

/* ---- tests ---- */

static hd_dtype result_type(const facts *f, hd_dtype type, hd_dtype cast_to) {
    return f->code == HDI_STEP_LESS || f->code == HDI_STEP_EQUAL ? HD_U8 : f->code == HDI_STEP_CAST ? cast_to : type;
}
static void check_step(const facts *f, hd_dtype type, hd_dtype to, hd_shape shape, enum layout in, enum layout out_layout) {
    hdi_chain chain = { .step_count = 1, .input_count = f->operands, .attr_count = f->attributes };
    chain.steps[0] = (hdi_step){ f->code, 0, f->operands > 1 ? 1 : HDI_SOURCE_NONE, f->operands > 2 ? 2 : HDI_SOURCE_NONE, to, 0 };
    memcpy(chain.attrs, attributes, sizeof attributes);
    for (uint32_t i = 0; i < f->operands; i++) {
        const hd_dtype source = f->code == HDI_STEP_WHERE && i == 0 ? HD_U8 : type;
        chain.inputs[i] = view(i, source, shape, i == 1 && in != DENSE ? (enum layout)((in + 1) % LAYOUTS) : in);
        fill(storages[i], source);
    }
    const hdi_tensor out = view(4, to, shape, out_layout);
    uint8_t *before = malloc(STORAGE_BYTES);
    for (uint32_t i = 0; i < STORAGE_BYTES; i++) storages[4][i] = before[i] = (uint8_t)random_word();
    run_chain(&chain, &out, storages, &cpu_caps);
    assert_rest_unchanged(&out, before, storages[4]);
    free(before);
    const uint64_t count = hd_shape_elements(shape);
    for (uint64_t i = 0; i < count; i++) {
        double v[3] = { 0, 0, 0 };
        for (uint32_t s = 0; s < f->operands; s++)
            v[s] = element(storages[s], chain.inputs[s].dtype, element_at(&chain.inputs[s], i));
        const double full = compute(f->code, type, to, v[0], v[1], v[2]), want = to_type(to, full);
        const double got = element(storages[4], to, element_at(&out, i));
        const double slack = f->ulps > 0 ? f->ulps * unit_of(HD_F32, full) + (to == HD_F32 ? 0 : unit_of(to, full)) : 0;
        const bool equal = isnan(want) ? isnan(got) : want == got || fabs(want - got) <= slack;
        if (!equal || (got == 0 && want == 0 && f->ulps == 0 && f->code != HDI_STEP_LEAKY_RELU && !is_int(to) && signbit(got) != signbit(want)))
            fail_msg("%s %s -> %s layout %d -> %d element %d: (%a, %a, %a) gives %a, not %a", f->name, hd_dtype_name(type),
                     hd_dtype_name(to), (int)in, (int)out_layout, (int)i, v[0], v[1], v[2], got, want);
    }
}
static bool takes(const facts *f, hd_dtype type) {
    if (type == HD_U8) return f->code == HDI_STEP_LESS || f->code == HDI_STEP_EQUAL || f->code == HDI_STEP_COPY ||
        f->code == HDI_STEP_WHERE || f->code == HDI_STEP_CAST;
    return type != HD_I32 || f->ints;
}
static void steps_are_right(void **state) {
    (void)state;
    const hd_shape shapes[] = { HD_SHAPE(1), HD_SHAPE(7), HD_SHAPE(5, 3), HD_SHAPE(1, 129), HD_SHAPE(3, 1, 5, 2), HD_SHAPE(2, 3, 2, 3, 2, 3), HD_SHAPE(9, 131) };
    for (size_t f = 0; f < HDI_COUNT(steps); f++)
        for (size_t t = 0; t < HDI_COUNT(types); t++)
            for (size_t to = 0; to < HDI_COUNT(types); to++) {
                if (!takes(&steps[f], types[t]) || (steps[f].code != HDI_STEP_CAST && to != t)) continue;
                for (uint32_t in = 0; in < LAYOUTS; in++) {
                    const hd_dtype result = result_type(&steps[f], types[t], types[to]);
                    check_step(&steps[f], types[t], result, shapes[(in + f + t) % 6], (enum layout)in, DENSE);
                    check_step(&steps[f], types[t], result, shapes[6], (enum layout)in, in == DENSE ? DENSE : OFFSET);
                    if (steps[f].operands < 3 || in != SLICED)
                        check_step(&steps[f], types[t], result, shapes[(in + f + to) % 5], (enum layout)in, SLICED);
                }
            }
}

/* A random chain of `count` steps over 4 inputs, one costly step at most. */
static hdi_chain random_chain(uint32_t count, hd_shape shape) {
    hdi_chain chain = { .input_count = HDI_CHAIN_INPUTS };
    hd_dtype value_types[HDI_CHAIN_INPUTS + HDI_CHAIN_STEPS];
    for (uint32_t i = 0; i < HDI_CHAIN_INPUTS; i++) {
        value_types[i] = i == 0 ? HD_U8 : i == 1 ? types[below(3)] : types[below(5)];
        chain.inputs[i] = view(i, value_types[i], shape, below(3) ? DENSE : BROADCAST);
        fill(storages[i], value_types[i]);
    }
    while (chain.step_count < count) {
        const facts *f = &steps[below(HDI_COUNT(steps))];
        const uint32_t values = HDI_CHAIN_INPUTS + chain.step_count, a = below(3) ? values - 1 : below(values), b = below(values), c = below(values);
        const hd_dtype type = f->code == HDI_STEP_WHERE ? value_types[b] : value_types[a];
        if (!takes(f, type) || (f->operands == 2 && value_types[b] != type) || (int)chain.attr_count > 14 - (int)f->attributes) continue;
        if (f->code == HDI_STEP_WHERE && (value_types[a] != HD_U8 || value_types[c] != type)) continue;
        const hd_dtype to = result_type(f, type, types[below(5)]);
        chain.steps[chain.step_count++] = (hdi_step){ f->code, (uint8_t)a, f->operands > 1 ? (uint8_t)b : HDI_SOURCE_NONE,
                                                      f->operands > 2 ? (uint8_t)c : HDI_SOURCE_NONE, to, chain.attr_count };
        if (hdi_chain_costly_steps(&chain) > 1) { chain.step_count--; continue; }
        for (uint32_t i = 0; i < f->attributes; i++) chain.attrs[chain.attr_count++] = attributes[i];
        value_types[values] = to;
    }
    return chain;
}
static void chains_equal_their_steps(void **state) {
    (void)state;
    for (uint32_t round = 0; round < 400; round++) {
        const hd_shape shape = HD_SHAPE(1 + below(4), 1 + below(7), 1 + below(50));
        const hdi_chain chain = random_chain(1 + round % HDI_CHAIN_STEPS, shape);
        const hd_dtype type = chain.steps[chain.step_count - 1].type;
        const hdi_tensor out = view(4, type, shape, below(2) ? DENSE : SLICED);
        if (!hdi_chain_fits(&chain, &out, &cpu_caps)) continue;
        memset(storages[4], 0x5A, STORAGE_BYTES);
        run_chain(&chain, &out, storages, &cpu_caps);

        uint8_t *results[HDI_CHAIN_STEPS];
        hdi_tensor values[HDI_CHAIN_INPUTS + HDI_CHAIN_STEPS];
        memcpy(values, chain.inputs, sizeof chain.inputs);
        for (uint32_t s = 0; s < chain.step_count; s++) {
            const hdi_step *step = &chain.steps[s];
            const uint32_t sources[3] = { step->a, step->b, step->c };
            hdi_chain one = { .step_count = 1, .attr_count = 2 };
            uint8_t *bound[STORAGES];
            one.steps[0] = (hdi_step){ step->code, 0, 1, 2, step->type, 0 };
            memcpy(one.attrs, chain.attrs + step->attr_first, sizeof(float) * 2);
            for (; one.input_count < 3 && sources[one.input_count] != HDI_SOURCE_NONE; one.input_count++) {
                const uint32_t source = sources[one.input_count];
                one.inputs[one.input_count] = values[source];
                one.inputs[one.input_count].storage = one.input_count;
                bound[one.input_count] = source < HDI_CHAIN_INPUTS ? storages[source] : results[source - HDI_CHAIN_INPUTS];
            }
            bound[4] = results[s] = aligned_alloc(64, STORAGE_BYTES);
            memset(results[s], 0x5A, STORAGE_BYTES);
            values[HDI_CHAIN_INPUTS + s] = s + 1 == chain.step_count ? out : hdi_tensor_dense(4, step->type, shape);
            const hdi_tensor to = values[HDI_CHAIN_INPUTS + s];
            run_chain(&one, &to, bound, &cpu_caps);
        }
        assert_memory_equal(results[chain.step_count - 1], storages[4], STORAGE_BYTES);
        for (uint32_t s = 0; s < chain.step_count; s++) free(results[s]);
    }
}

static hdi_chain chain_of(uint8_t code, hd_dtype type, hd_shape shape, enum layout layout) {
    hdi_chain chain = { .step_count = 1, .input_count = 2 };
    chain.steps[0] = (hdi_step){ code, 0, 1, HDI_SOURCE_NONE, type, 0 };
    chain.inputs[0] = view(0, type, shape, DENSE);
    chain.inputs[1] = view(1, type, shape, layout);
    return chain;
}
static void large_ones_are_cut(void **state) {
    (void)state;
    hdi_caps small = cpu_caps;
    small.max_binding_bytes = 1000;
    for (uint32_t layout = 0; layout < LAYOUTS; layout++)
        for (uint32_t t = 0; t < 2; t++) {
            const hd_shape shape = HD_SHAPE(7, 11, 13);
            const hdi_chain chain = chain_of(HDI_STEP_ADD, types[t], shape, (enum layout)layout);
            const hdi_tensor out = hdi_tensor_dense(4, types[t], shape);
            uint8_t *whole = malloc(STORAGE_BYTES);
            fill(storages[0], types[t]);
            fill(storages[1], types[t]);
            memset(storages[4], 0x5A, STORAGE_BYTES);
            run_chain(&chain, &out, storages, &cpu_caps);
            memcpy(whole, storages[4], STORAGE_BYTES);
            memset(storages[4], 0x5A, STORAGE_BYTES);
            run_chain(&chain, &out, storages, &small);
            assert_memory_equal(whole, storages[4], STORAGE_BYTES);
            free(whole);
            hdi_lowering parts = lower(&chain, &out, &small, HD_MATH_FAST);
            assert_true(parts.count > 1);
            for (uint32_t i = 0; i < parts.count; i++)
                for (uint32_t b = 0; b < 5; b++) assert_true(parts.launches[i].uses[b].bytes <= 1000);
            lowering_free(&parts);
        }
    /* 2^33 elements, none of which is there: several launches of at most 2^31 that together make them all. */
    const hd_shape shape = HD_SHAPE(INT64_C(1) << 13, INT64_C(1) << 20);
    const hdi_chain chain = chain_of(HDI_STEP_ADD, HD_F32, shape, DENSE);
    const hdi_tensor out = hdi_tensor_dense(4, HD_F32, shape);
    hdi_lowering parts = lower(&chain, &out, &cpu_caps, HD_MATH_FAST);
    uint64_t elements = 0;
    for (uint32_t i = 0; i < parts.count; i++) {
        assert_int_equal(parts.launches[i].uses[4].offset, elements * 4);
        assert_int_equal(parts.launches[i].kernel.spec[HDI_EW_DENSE], 1 | 2 | 16);
        elements += parts.launches[i].push[0];
    }
    assert_true(elements == UINT64_C(1) << 33);
    lowering_free(&parts);
}
static void launches_are_lean(void **state) {
    (void)state;
    const hdi_caps gpu = { .max_push_bytes = 128, .binding_align = 256, .max_bindings = 8, .max_workgroup = 1024, .max_workgroup_x = 128 };
    const hd_shape shape = HD_SHAPE(4, 6, 8);
    hdi_chain chain = chain_of(HDI_STEP_ADD, HD_F16, shape, DENSE);
    hdi_tensor out = hdi_tensor_dense(4, HD_F16, shape);
    hdi_lowering l = lower(&chain, &out, &gpu, HD_MATH_FAST);
    assert_int_equal(l.count, 1);
    assert_int_equal(l.launches[0].kernel.spec[HDI_EW_RANK], 1);
    assert_int_equal(l.launches[0].kernel.push_bytes, 4);
    assert_int_equal(l.launches[0].kernel.spec[HDI_SPEC_WORKGROUP], 128);
    assert_int_equal(l.launches[0].kernel.spec[HDI_SPEC_EXACT], 0);
    assert_int_equal(l.launches[0].groups[0], 1);
    assert_true(l.launches[0].bytes == 3 * 192 * 2);
    lowering_free(&l);
    chain.inputs[1].strides[0] = 0; /* a bias over the last two axes, which merge */
    l = lower(&chain, &out, &gpu, HD_MATH_EXACT);
    assert_int_equal(l.launches[0].kernel.spec[HDI_EW_RANK], 2);
    assert_int_equal(l.launches[0].kernel.spec[HDI_EW_DENSE], 1 | 16);
    assert_int_equal(l.launches[0].kernel.push_bytes, 5 * 4);
    assert_true(l.launches[0].bytes == (2 * 192 + 48) * 2);
    lowering_free(&l);

    chain.inputs[1] = hdi_tensor_dense(1, HD_F16, shape); /* four at a time: the middle of longer rows, from a multiple of four on */
    chain.inputs[1].strides[1] = 12;
    chain.inputs[1].strides[0] = 72;
    chain.inputs[1].first = 4;
    l = lower(&chain, &out, &gpu, HD_MATH_EXACT);
    assert_int_equal(l.launches[0].kernel.spec[HDI_EW_DENSE], 1 | 16);
    assert_int_equal(l.launches[0].kernel.spec[HDI_EW_WIDE], 2);
    lowering_free(&l);
    chain.inputs[1].first = 5;
    l = lower(&chain, &out, &gpu, HD_MATH_EXACT);
    assert_int_equal(l.launches[0].kernel.spec[HDI_EW_WIDE], 0);
    lowering_free(&l);
    chain.inputs[1].first = 4;
    chain.inputs[1].strides[0] = 74;
    l = lower(&chain, &out, &gpu, HD_MATH_EXACT);
    assert_int_equal(l.launches[0].kernel.spec[HDI_EW_WIDE], 0);
    lowering_free(&l);
    hdi_tensor part = out; /* of a larger output */
    part.strides[1] = 16;
    part.strides[0] = 96;
    chain.inputs[1].strides[0] = 72;
    l = lower(&chain, &part, &gpu, HD_MATH_EXACT);
    assert_int_equal(l.launches[0].kernel.spec[HDI_EW_WIDE], 2 | 16);
    lowering_free(&l);

    hd_error error = { 0 };
    hdi_caps few = gpu;
    few.max_bindings = 4;
    hdi_request request = { .op = HDI_OP_COPY, .chain = &chain, .out = out, .caps = &few };
    hdi_lowering none = { .allocator = &hdi_default_allocator };
    assert_int_equal(hdi_lower_elementwise(&request, &none, &error), HD_STATUS_UNSUPPORTED);
    few = gpu;
    few.max_push_bytes = 16;
    assert_int_equal(hdi_lower_elementwise(&request, &none, NULL), HD_STATUS_UNSUPPORTED);
    assert_false(hdi_chain_fits(&chain, &out, &few));
    assert_true(hdi_chain_fits(&chain, &out, &gpu));
    chain.steps[0].code = HDI_STEP_DIV;
    chain.steps[1] = chain.steps[0];
    chain.step_count = 2;
    assert_false(hdi_chain_fits(&chain, &out, &gpu));
    request.caps = &gpu;
    assert_int_equal(hdi_lower_elementwise(&request, &none, NULL), HD_STATUS_UNSUPPORTED);
    assert_int_equal(none.count, 0);
}
static void operations_are_steps(void **state) {
    (void)state;
    const hdi_attrs attrs = { .floats = { 2, 3 } };
    float values[2];
    uint32_t count = 0, found = 0;
    hdi_step step;
    for (int op = 1; op < HDI_OP_COUNT; op++)
        for (uint32_t i = 0; i < HDI_COUNT(steps); i++)
            if (strcmp(steps[i].name, hdi_op_get((hdi_op)op).name) == 0) {
                assert_true(hdi_op_step((hdi_op)op, &attrs, &step, values, &count));
                assert_int_equal(step.code, steps[i].code);
                assert_int_equal(count, steps[i].attributes);
                found++;
            }
    assert_int_equal(found, HDI_COUNT(steps));
    assert_true(hdi_op_step(HDI_OP_CLIP, &attrs, &step, values, &count));
    assert_int_equal(step.code, HDI_STEP_CLIP);
    assert_int_equal(count, 2);
    assert_true(values[0] == 2 && values[1] == 3);
    assert_true(hdi_op_step(HDI_OP_WHERE, &attrs, &step, values, &count));
    assert_true(step.a == 0 && step.b == 1 && step.c == 2);
    assert_false(hdi_op_step(HDI_OP_MATMUL, &attrs, &step, values, &count));
}

#ifndef RUN_CHAIN
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_right),   cmocka_unit_test(chains_equal_their_steps),
        cmocka_unit_test(large_ones_are_cut), cmocka_unit_test(launches_are_lean),
        cmocka_unit_test(operations_are_steps),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
#endif
