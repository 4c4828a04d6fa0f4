/* test_field.c: exact work on integers: sums modulo 2^256 - 2^32 - 977 (the field of secp256k1), side by side, as one program of sums,
 * shifts and comparisons on parts of 16 bits, are those that Python's integers give, on every device. */
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { PARTS = 16, SUMS = 9 };
static const char prime[] = "fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2f";
static const struct { const char *a, *b, *sum; } known[SUMS] = {
    { "fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2e", "fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2e",
      "fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2d" },
    { "fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2e", "0000000000000000000000000000000000000000000000000000000000000001",
      "0000000000000000000000000000000000000000000000000000000000000000" },
    { "0000000000000000000000000000000000000000000000000000000000000000", "0000000000000000000000000000000000000000000000000000000000000000",
      "0000000000000000000000000000000000000000000000000000000000000000" },
    { "fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2e", "0000000000000000000000000000000000000000000000000000000000000000",
      "fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2e" },
    { "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798", "483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8",
      "c1f940f620808011b3455e91dc9813afffb3b123d4537cf2f63a51eb1208ec50" },
    { "8000000000000000000000000000000000000000000000000000000000000000", "8000000000000000000000000000000000000000000000000000000000000000",
      "00000000000000000000000000000000000000000000000000000001000003d1" },
    { "fffffffffffffffffffffffffffffffffffffffffffffffffffffffdfffffc2f", "00000000000000000000000000000000000000000000000000000000ffffffff",
      "fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2e" },
    { "1710cf5327ac435a7a97c643656412a9b8a1abcd1a6916c74da4f9fc3c6da5d7", "fd724452ccea71ff4a14876aeaff1a098ca5996666ceab360512bd1311072231",
      "148313a5f496b559c4ac4dae50632cb3454745338137c1fd52b7b7104d74cbd9" },
    { "c79d679346d4ac7a5c3902b38963dc6e8534f45738d048ec0f1099c6c3e1b258", "06905269ed6f0b09f165c8ce36e2f24b43000de01b2ed40ed3addccb2c33be0a",
      "ce2db9fd3443b7844d9ecb81c046ceb9c835023753ff1cfae2be7691f0157062" },
};

/* The part of 16 bits that stands there, counted from the low end. */
static int32_t part_of(const char *number, int i) {
    unsigned value = 0;
    sscanf(number + 4 * (PARTS - 1 - i), "%4x", &value);
    return (int32_t)value;
}

static hd_value slice(hd_program *p, hd_value x, int64_t i, int64_t length) {
    return hd_slice(p, x, &(int64_t){ i * length }, &(int64_t){ (i + 1) * length }, 1);
}

/* a + b, and from that the prime is taken where it is not larger. */
static void build(hd_program *p) {
    const hd_value a = hd_input(p, "a", HD_I32, HD_SHAPE(PARTS * SUMS)), b = hd_input(p, "b", HD_I32, HD_SHAPE(PARTS * SUMS));
    const hd_value modulus = hd_input(p, "prime", HD_I32, HD_SHAPE(PARTS)), numbers = hd_input(p, "numbers", HD_I32, HD_SHAPE(4));
    const hd_value low = slice(p, numbers, 0, 1), bits = slice(p, numbers, 1, 1), above = slice(p, numbers, 2, 1), one = slice(p, numbers, 3, 1);
    hd_value sum[PARTS], less[PARTS], out[PARTS], carry = 0, borrow = 0;
    for (int i = 0; i < PARTS; i++) {
        hd_value s = hd_add(p, slice(p, a, i, SUMS), slice(p, b, i, SUMS));
        if (i) s = hd_add(p, s, carry);
        sum[i] = hd_bit_and(p, s, low);
        carry = hd_shift_right_logical(p, s, bits);
    }
    for (int i = 0; i < PARTS; i++) {
        hd_value d = hd_add(p, hd_sub(p, sum[i], slice(p, modulus, i, 1)), above);
        if (i) d = hd_sub(p, d, borrow);
        less[i] = hd_bit_and(p, d, low);
        borrow = hd_sub(p, one, hd_shift_right_logical(p, d, bits));
    }
    for (int i = 0; i < PARTS; i++) out[i] = hd_where(p, hd_less(p, carry, borrow), sum[i], less[i]);
    hd_output(p, "sum", hd_concat(p, out, PARTS, 0));
}

static void sums_on(const char *id) {
    static const int32_t numbers[] = { 0xFFFF, 16, 0x10000, 1 };
    int32_t a[PARTS * SUMS], b[PARTS * SUMS], sum[PARTS * SUMS], modulus[PARTS];
    hd_context *context;
    hd_device *device;
    hd_plan *plan;
    for (int i = 0; i < PARTS; i++) {
        modulus[i] = part_of(prime, i);
        for (int k = 0; k < SUMS; k++) a[i * SUMS + k] = part_of(known[k].a, i), b[i * SUMS + k] = part_of(known[k].b, i);
    }
    assert_int_equal(hd_context_create(&(hd_context_desc){ .backend = id, .cache_dir = "" }, &context), HD_OK);
    if (hd_device_open(context, &(hd_device_desc){ .id = id }, &device) == HD_OK) {
        hd_program *p = hd_program_create(context);
        build(p);
        if (hd_plan_create(device, p, &(hd_plan_desc){ .math = HD_MATH_EXACT }, &plan) || hd_plan_write(plan, "a", a, sizeof a) ||
            hd_plan_write(plan, "b", b, sizeof b) || hd_plan_write(plan, "prime", modulus, sizeof modulus) ||
            hd_plan_write(plan, "numbers", numbers, sizeof numbers) || hd_plan_run(plan, NULL) || hd_plan_read(plan, "sum", sum, sizeof sum))
            fail_msg("%s: %s", id, hd_context_error(context));
        for (int k = 0; k < SUMS; k++)
            for (int i = 0; i < PARTS; i++)
                if (sum[i * SUMS + k] != part_of(known[k].sum, i)) fail_msg("%s: part %d of sum %d is %04x", id, i, k, (unsigned)sum[i * SUMS + k]);
    }
    hd_context_destroy(context);
}

static void sums_are_those_of_the_field(void **state) {
    (void)state;
    sums_on("cpu");
    sums_on("vulkan");
    sums_on("opencl");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(sums_are_those_of_the_field) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
