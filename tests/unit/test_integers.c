/* test_integers.c: i8, u32 and i64, which the library makes of u8 and i32 (program/words.c): every operation and cast over
 * edges and numbers by chance beside C's own integers, element by element, on every device that is here and, named, on any. */
#include "base/base.h"
#include <heddle.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N = 210, MOST = 128 };
typedef struct held {
    hd_dtype dtype;
    int64_t  whole[N];
    float    real[N]; /* of f32 and bf16 */
} held;

static hd_program *p;
static struct { char name[40]; held wanted; } outputs[MOST];
static struct { char name[24]; held value; } inputs[16];
static int output_count, input_count;
static uint64_t seed;

static uint64_t by_chance(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 11 ^ seed << 43;
}
static bool is_float(hd_dtype dtype) { return dtype == HD_F32 || dtype == HD_BF16; }

static int64_t wrapped(hd_dtype dtype, uint64_t bits) {
    switch (dtype) {
    case HD_I8: return (int8_t)bits;
    case HD_U8: return (uint8_t)bits;
    case HD_I32: return (int32_t)bits;
    case HD_U32: return (uint32_t)bits;
    default: return (int64_t)bits;
    }
}
static int64_t least_of(hd_dtype t) { return t == HD_I8 ? -128 : t == HD_I32 ? INT32_MIN : t == HD_I64 ? INT64_MIN : 0; }
static int64_t most_of(hd_dtype t) {
    return t == HD_I8 ? 127 : t == HD_U8 ? 255 : t == HD_I32 ? INT32_MAX : t == HD_U32 ? UINT32_MAX : INT64_MAX;
}
static float bf16_of(float x) { /* nearest even */
    uint32_t bits;
    memcpy(&bits, &x, 4);
    if (!isnan(x)) bits = (bits + 0x7FFFu + (bits >> 16 & 1)) & 0xFFFF0000u;
    memcpy(&x, &bits, 4);
    return x;
}

static void fill(held *h, hd_dtype dtype) {
    static const float reals[] = {
        0, -0.0f, 0.5f, -0.5f, 1.5f, -1.5f, 127.9f, -128.9f, 255.5f, 65535.5f, 65536, 0x1p31f, 0x1.fffffep30f, -0x1p31f, 0x1p32f, 0x1.fffffep31f,
        0x1p63f, -0x1p63f, 0x1.fffffep62f, -0x1.fffffep62f, 0x1p64f, -0x1p70f, -1e9f, 5e9f, -5e9f, 0x1.000002p33f, 1e-40f, INFINITY, -INFINITY, NAN,
        3.4e38f, 16777215, 16777216 };
    const int64_t edges[] = { 0, 1, -1, 2, 7, 8, 31, 32, 33, -2, -7, 127, 128, 255, 256, -128, -129, 32767, 32768, 65535, 65536, 16777215, 16777216,
        16777217, 16777219, INT32_MAX, INT32_MIN, (int64_t)INT32_MAX + 1, (int64_t)INT32_MIN - 1, UINT32_MAX, (int64_t)UINT32_MAX + 1,
        0x100000080, 0x1000001, -0x100000001, INT64_MAX, INT64_MIN, INT64_MAX - 1, INT64_MIN + 1, 0x7FFFFFBFFFFFFFFF, 0x7FFFFFC000000000,
        0x4000002000000000, 0x4000002000000001, -0x4000002000000001, 0x0000800000800000, 0x00FFFFFF80000000, 0x00FFFFFF80000001 };
    h->dtype = dtype;
    for (int i = 0; i < N; i++) {
        const int edge = i % 5 ? i / 5 * 4 + i % 5 - 1 : (int)(by_chance() % 1000);
        uint64_t bits = by_chance() >> by_chance() % 64;
        if (by_chance() & 1) bits = 0 - bits;
        h->whole[i] = wrapped(dtype, edge < (int)HDI_COUNT(edges) ? (uint64_t)edges[edge] : bits);
        h->real[i] = edge < (int)HDI_COUNT(reals) ? reals[edge] : (float)(int64_t)bits / (float)(1 + i % 3);
        if (dtype == HD_BF16) h->real[i] = bf16_of(h->real[i]);
    }
}

static uint64_t bytes_of(hd_dtype dtype) { return hd_dtype_bytes(dtype, 1); }
static void store(const held *h, int i, uint8_t *to) {
    uint32_t bits;
    memcpy(&bits, &h->real[i], 4);
    bits >>= h->dtype == HD_BF16 ? 16 : 0;
    memcpy(to, is_float(h->dtype) ? (const void *)&bits : &h->whole[i], bytes_of(h->dtype)); /* little-endian */
}

static hd_value input(held *h, hd_dtype dtype) {
    fill(h, dtype);
    inputs[input_count].value = *h;
    snprintf(inputs[input_count].name, sizeof inputs->name, "in%d", input_count);
    return hd_input(p, inputs[input_count++].name, dtype, HD_SHAPE(N));
}
static void output(const char *what, hd_value value, const held *wanted) {
    assert_true(output_count < MOST);
    outputs[output_count].wanted = *wanted;
    snprintf(outputs[output_count].name, sizeof outputs->name, "%d %s", output_count, what);
    hd_output(p, outputs[output_count++].name, value);
}

/* ---- what is wanted ---- */

typedef hd_value (*binary)(hd_program *, hd_value, hd_value);
typedef enum code { ADD, SUB, MUL, DIV, MAXIMUM, MINIMUM, AND, OR, XOR, LEFT, LOGICAL, ARITHMETIC, LESS, EQUAL, CODES } code;
static const struct { const char *name; binary make; unsigned lacks; } ops[CODES] = { /* lacks: bits of i8 1, u32 2, i64 4 */
    { "add", hd_add, 0 }, { "sub", hd_sub, 0 }, { "mul", hd_mul, 0 }, { "div", hd_div, 4 }, { "maximum", hd_maximum, 0 },
    { "minimum", hd_minimum, 0 }, { "bit_and", hd_bit_and, 0 }, { "bit_or", hd_bit_or, 0 }, { "bit_xor", hd_bit_xor, 0 },
    { "shift_left", hd_shift_left, 4 }, { "shift_right_logical", hd_shift_right_logical, 4 },
    { "shift_right_arithmetic", hd_shift_right_arithmetic, 6 }, { "less", hd_less, 0 }, { "equal", hd_equal, 0 },
};

static int64_t result(code op, hd_dtype t, int64_t a, int64_t b) {
    const uint64_t x = (uint64_t)a, y = (uint64_t)b, of_type = t == HD_I8 ? x & 255 : x;
    const bool moves = b >= 0 && b < 32;
    switch (op) {
    case ADD: return wrapped(t, x + y);
    case SUB: return wrapped(t, x - y);
    case MUL: return wrapped(t, x * y);
    case DIV: return b == 0 ? 0 : wrapped(t, (uint64_t)(a / b));
    case MAXIMUM: return a < b ? b : a;
    case MINIMUM: return b < a ? b : a;
    case AND: return wrapped(t, x & y);
    case OR: return wrapped(t, x | y);
    case XOR: return wrapped(t, x ^ y);
    case LEFT: return moves ? wrapped(t, x << b) : 0;
    case LOGICAL: return moves ? wrapped(t, of_type >> b) : 0;
    case ARITHMETIC: return a < 0 ? ~(~a >> (moves ? b : 31)) : a >> (moves ? b : 31);
    case LESS: return a < b;
    default: return a == b;
    }
}

static void cast_to(held *to, hd_dtype dtype, const held *from) {
    to->dtype = dtype;
    for (int i = 0; i < N; i++) {
        const int64_t low = least_of(dtype), high = most_of(dtype);
        if (is_float(dtype)) to->real[i] = is_float(from->dtype) ? from->real[i] : (float)from->whole[i];
        if (dtype == HD_BF16) to->real[i] = bf16_of(to->real[i]);
        if (is_float(dtype)) continue;
        const float x = from->real[i];
        if (!is_float(from->dtype)) to->whole[i] = from->whole[i] < low ? low : from->whole[i] > high ? high : from->whole[i];
        else to->whole[i] = isnan(x) ? 0 : (double)x <= (double)low ? low : (double)x >= (double)high ? high : (int64_t)x;
    }
}

/* ---- the programs ---- */

static const hd_dtype new_types[] = { HD_I8, HD_U32, HD_I64 };

static void arithmetic(int which) {
    static held a, b, wanted;
    const hd_dtype dtype = new_types[which];
    const hd_value x = input(&a, dtype), y = input(&b, dtype);
    for (code op = 0; op < CODES; op++) {
        if (ops[op].lacks >> which & 1) continue;
        wanted.dtype = op == LESS || op == EQUAL ? HD_U8 : dtype;
        for (int i = 0; i < N; i++) wanted.whole[i] = result(op, dtype, a.whole[i], b.whole[i]);
        output(ops[op].name, ops[op].make(p, x, y), &wanted);
    }
}

static void casts(int which) {
    static const hd_dtype all[] = { HD_F32, HD_BF16, HD_I32, HD_U8, HD_I8, HD_U32, HD_I64 };
    static held a, b, wanted;
    const hd_dtype dtype = new_types[which];
    const hd_value x = input(&a, dtype);
    for (uint32_t t = 0; t < HDI_COUNT(all); t++) {
        char name[24];
        cast_to(&wanted, all[t], &a);
        snprintf(name, sizeof name, "%s to %s", hd_dtype_name(dtype), hd_dtype_name(all[t]));
        output(name, hd_cast(p, x, all[t]), &wanted);
        if (all[t] >= HD_I8) continue;
        const hd_value from = input(&b, all[t]);
        cast_to(&wanted, dtype, &b);
        snprintf(name, sizeof name, "%s to %s", hd_dtype_name(all[t]), hd_dtype_name(dtype));
        output(name, hd_cast(p, from, dtype), &wanted);
    }
}

/* Elements that move: turned, cut, joined, chosen, taken by index. */
static void forms(int which) {
    static held a, b, at, wanted, condition;
    const hd_dtype dtype = new_types[which];
    const hd_value x = input(&a, dtype), y = input(&b, dtype), c = input(&condition, HD_U8);
    wanted.dtype = dtype;
    const hd_value turned = hd_transpose(p, hd_reshape(p, x, HD_SHAPE(10, 21)));
    for (int i = 0; i < N; i++) wanted.whole[i] = a.whole[i % 10 * 21 + i / 10];
    output("permute", hd_reshape(p, turned, HD_SHAPE(N)), &wanted);
    const hd_value parts[] = { hd_slice(p, y, &(int64_t){ 7 }, &(int64_t){ N }, 1), hd_slice(p, x, &(int64_t){ 0 }, &(int64_t){ 7 }, 1) };
    for (int i = 0; i < N; i++) wanted.whole[i] = i < N - 7 ? b.whole[i + 7] : a.whole[i - (N - 7)];
    output("concat", hd_concat(p, parts, 2, 0), &wanted);
    for (int i = 0; i < N; i++) wanted.whole[i] = condition.whole[i] ? a.whole[i] : b.whole[i];
    output("where", hd_copy(p, hd_where(p, c, x, y)), &wanted);
    if (dtype == HD_I8) return;
    const hd_value index = input(&at, dtype);
    wanted = a;
    for (int i = 0; i < N; i++) wanted.whole[i] = at.whole[i] >= 0 && at.whole[i] < N ? a.whole[at.whole[i]] : 0;
    output("gather", hd_reshape(p, hd_gather(p, hd_reshape(p, x, HD_SHAPE(N, 1)), index), HD_SHAPE(N)), &wanted);
    output("take_along", hd_take_along(p, x, index), &wanted);
    held sums = { .dtype = HD_I32 };
    hd_value ones = hd_cast(p, hd_equal(p, x, x), HD_I32);
    for (int i = 0; i < N; i++) sums.whole[i] = 1;
    for (int i = 0; i < N; i++)
        if (at.whole[i] >= 0 && at.whole[i] < N) sums.whole[at.whole[i]]++;
    ones = hd_reshape(p, ones, HD_SHAPE(N, 1));
    output("scatter_add", hd_reshape(p, hd_scatter_add(p, ones, index, ones), HD_SHAPE(N)), &sums);
}

/* ---- running ---- */

static void compare(hd_context *context, hd_plan *plan, const char *id) {
    static uint8_t bytes[N * 8];
    for (int i = 0; i < input_count; i++) {
        const uint64_t size = bytes_of(inputs[i].value.dtype);
        for (int e = 0; e < N; e++) store(&inputs[i].value, e, bytes + (uint64_t)e * size);
        assert_int_equal(hd_plan_write(plan, inputs[i].name, bytes, size * N), HD_OK);
    }
    if (hd_plan_run(plan, NULL)) fail_msg("%s: %s", id, hd_context_error(context));
    for (int o = 0; o < output_count; o++) {
        const held *wanted = &outputs[o].wanted;
        const uint64_t size = bytes_of(wanted->dtype);
        if (hd_plan_read(plan, outputs[o].name, bytes, size * N)) fail_msg("%s: %s", id, hd_context_error(context));
        for (int e = 0; e < N; e++) {
            uint8_t right[8];
            uint64_t got = 0;
            memcpy(&got, bytes + (uint64_t)e * size, size);
            store(wanted, e, right);
            if (memcmp(right, bytes + (uint64_t)e * size, size) == 0) continue;
            fail_msg("%s, %s, %s, element %d: 0x%llx, wanted %lld, %a", id, outputs[o].name, hd_dtype_name(wanted->dtype), e,
                     (unsigned long long)got, (long long)wanted->whole[e], (double)wanted->real[e]);
        }
    }
}

/* The plan once more, as it is read from a file. */
static void compare_saved(hd_context *context, hd_device *device, hd_plan *plan, const char *id) {
    size_t needed = 0;
    hd_plan *again;
    (void)hd_plan_save(plan, NULL, 0, &needed);
    char *text = malloc(needed);
    assert_int_equal(hd_plan_save(plan, text, needed, &needed), HD_OK);
    assert_non_null(strstr(text, hd_dtype_name(inputs[0].value.dtype))); /* the caller's program, not the one in words */
    if (hd_plan_load(device, text, strlen(text), NULL, &again)) fail_msg("%s: %s", id, hd_context_error(context));
    compare(context, again, id);
    free(text);
}

static void run(const char *id, void (*build)(int), int which, hd_math math) {
    hd_context *context;
    hd_device *device;
    hd_plan *plan;
    assert_int_equal(hd_context_create(&(hd_context_desc){ .backend = id, .cache_dir = "" }, &context), HD_OK);
    if (hd_device_open(context, &(hd_device_desc){ .id = id }, &device) == HD_OK) {
        hd_plan_memory memory;
        p = hd_program_create(context);
        output_count = input_count = 0;
        seed = 42 + (uint64_t)which;
        build(which);
        if (hd_plan_create(device, p, &(hd_plan_desc){ .math = math }, &plan) || hd_plan_estimate(device, p, NULL, &memory))
            fail_msg("%s: %s", id, hd_context_error(context));
        compare(context, plan, id);
        if (strcmp(id, "cpu") == 0) compare_saved(context, device, plan, id);
    } else print_message("%s is not here\n", id);
    hd_context_destroy(context);
}

/* Gradients of tables whose rows and elements are taken by i64 and by u32: how often each is. */
static void gradients(int which) {
    static held any, at, again, counts, elements;
    const hd_dtype dtype = which ? HD_I64 : HD_U32;
    const hd_value row = input(&any, HD_F32), table = hd_reshape(p, input(&any, HD_F32), HD_SHAPE(N, 1));
    const hd_value index = input(&at, dtype), other = input(&again, HD_I32);
    const hd_value taken = hd_add(p, hd_gather(p, table, index), hd_gather(p, table, other));
    const hd_value loss = hd_add(p, hd_sum(p, taken, HD_ALL_AXES), hd_sum(p, hd_take_along(p, row, index), HD_ALL_AXES));
    hd_value slopes[2];
    assert_int_equal(hd_gradients(p, loss, (hd_value[]){ table, row }, 2, NULL, slopes), HD_OK);
    counts = elements = (held){ .dtype = HD_F32 };
    for (int i = 0; i < N; i++) {
        if (at.whole[i] >= 0 && at.whole[i] < N) counts.real[at.whole[i]]++, elements.real[at.whole[i]]++;
        if (again.whole[i] >= 0 && again.whole[i] < N) counts.real[again.whole[i]]++;
    }
    output("of gather", hd_reshape(p, slopes[0], HD_SHAPE(N)), &counts);
    output("of take_along", slopes[1], &elements);
}

static const char *named; /* a device, in place of those that are usual */

static void each(void (*build)(int)) {
    static const char *const usual[] = { "cpu", "vulkan", "opencl" };
    for (uint32_t d = 0; d < (named ? 1 : HDI_COUNT(usual)); d++) {
        const char *id = named ? named : usual[d];
        for (int which = 0; which < 3; which++) {
            run(id, build, which, HD_MATH_EXACT);
            if (named || d == 0) run(id, build, which, HD_MATH_FAST); /* software devices take long to compile */
        }
    }
}
static void computes(void **state) { (void)state; each(arithmetic); }
static void converts(void **state) { (void)state; each(casts); }
static void moves(void **state) { (void)state; each(forms); }
static void has_gradients(void **state) {
    (void)state;
    for (int which = 0; which < 2; which++) run(named ? named : "cpu", gradients, which, HD_MATH_EXACT);
}

/* What they are not taken for is refused by name; texts hold them as any type. */
static void refuses_and_reads(void **state) {
    (void)state;
    static const struct { const char *text, *says; } wrong[] = {
        { "heddle 1\nv1 = state i64[4] \"s\"\noutput v1 \"y\"\n", "a state cannot be i64; cast to i32, and keep that" },
        { "heddle 1\nv1 = input i64[4] \"x\"\nv2 = div v1 v1\noutput v2 \"y\"\n", "operand 1 is i64, it must be f32, f16, bf16, i32, i8 or u32" },
        { "heddle 1\nv1 = input u32[4] \"x\"\nv2 = shift_right_arithmetic v1 v1\noutput v2 \"y\"\n", "operand 1 is u32, it must be i32, u8 or i8" },
        { "heddle 1\nv1 = input i8[4] \"x\"\nv2 = exp v1\noutput v2 \"y\"\n", "operand 1 is i8, it must be f32, f16 or bf16" },
        { "heddle 1\nv1 = input i64[4] \"x\"\nv2 = input i32[4] \"y\"\nv3 = add v1 v2\noutput v3 \"z\"\n", "i64 and i32: cast one of them" },
    };
    static const char right[] = "heddle 1\nv1 = input i64[2,3] \"x\"\nv2 = cast v1 dtype=i8\nv3 = cast v2 dtype=u32\noutput v3 \"y\"\n";
    hd_context *context;
    hd_program *program;
    char text[256];
    size_t needed;
    assert_int_equal(hd_context_create(&(hd_context_desc){ .backend = "cpu", .cache_dir = "" }, &context), HD_OK);
    for (uint32_t i = 0; i < HDI_COUNT(wrong); i++) {
        assert_int_equal(hd_program_parse(context, wrong[i].text, strlen(wrong[i].text), &program), HD_STATUS_TYPE);
        if (!strstr(hd_context_error(context), wrong[i].says)) fail_msg("%s", hd_context_error(context));
    }
    assert_int_equal(hd_program_parse(context, right, strlen(right), &program), HD_OK);
    assert_int_equal(hd_program_print(program, text, sizeof text, &needed), HD_OK);
    assert_non_null(strstr(text, "v1 = input i64[2,3] \"x\"\nv2 = cast v1 dtype=i8\nv3 = cast v2 dtype=u32\n"));
    hd_context_destroy(context);
}

int main(int argc, char **argv) {
    named = argc > 1 ? argv[1] : NULL;
    const struct CMUnitTest tests[] = { cmocka_unit_test(computes), cmocka_unit_test(converts), cmocka_unit_test(moves), cmocka_unit_test(has_gradients),
                                        cmocka_unit_test(refuses_and_reads) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
