/* test_sha256.c: exact work on integers: SHA-256 of messages side by side, as one program of sums, shifts and bits, gives the
 * digests of FIPS 180-4 on every device. */
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { MESSAGES = 3, WORDS = 16, ROUNDS = 64 };
static const struct { const char *text, *digest; } known[MESSAGES] = {
    { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { "The quick brown fox jumps over the lazy dog", "d7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e592" },
};

/* The first 32 bits of the fractions of primes' cube roots, and of their square roots. */
static const uint32_t constants[] = {
    0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u, 0xab1c5ed5u,
    0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu, 0x9bdc06a7u, 0xc19bf174u,
    0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu, 0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau,
    0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u, 0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u,
    0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu, 0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u,
    0xa2bfe8a1u, 0xa81a664bu, 0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u,
    0x19a4c116u, 0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
    0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u, 0xc67178f2u,
};
static const uint32_t beginning[] = {
    0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au, 0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u,
};

static hd_program *p;
static hd_value numbers; /* 0 to 31 */

static hd_value at(hd_value x, int64_t i) { return hd_slice(p, x, &i, &(int64_t){ i + 1 }, 1); }
static hd_value turned(hd_value x, int by) { /* right */
    return hd_bit_or(p, hd_shift_right_logical(p, x, at(numbers, by)), hd_shift_left(p, x, at(numbers, 32 - by)));
}
static hd_value moved(hd_value x, int by) { return hd_shift_right_logical(p, x, at(numbers, by)); }
static hd_value xor3(hd_value a, hd_value b, hd_value c) { return hd_bit_xor(p, hd_bit_xor(p, a, b), c); }

/* words [16, MESSAGES] of one block each; k: the rounds' constants; begin: what a digest begins with. */
static void build(void) {
    const hd_value words = hd_input(p, "words", HD_I32, HD_SHAPE(WORDS * MESSAGES)), k = hd_input(p, "k", HD_I32, HD_SHAPE(ROUNDS));
    const hd_value begin = hd_input(p, "begin", HD_I32, HD_SHAPE(8));
    numbers = hd_input(p, "numbers", HD_I32, HD_SHAPE(32));
    hd_value w[ROUNDS], s[8], all[8];
    for (int64_t t = 0; t < WORDS; t++) w[t] = hd_slice(p, words, &(int64_t){ t * MESSAGES }, &(int64_t){ (t + 1) * MESSAGES }, 1);
    for (int t = WORDS; t < ROUNDS; t++)
        w[t] = hd_add(p, hd_add(p, xor3(turned(w[t - 2], 17), turned(w[t - 2], 19), moved(w[t - 2], 10)), w[t - 7]),
                      hd_add(p, xor3(turned(w[t - 15], 7), turned(w[t - 15], 18), moved(w[t - 15], 3)), w[t - 16]));
    for (int i = 0; i < 8; i++) s[i] = hd_bit_or(p, at(begin, i), hd_bit_xor(p, w[0], w[0]));
    for (int t = 0; t < ROUNDS; t++) {
        const hd_value choice = hd_bit_xor(p, s[6], hd_bit_and(p, s[4], hd_bit_xor(p, s[5], s[6])));
        const hd_value most = hd_bit_or(p, hd_bit_and(p, s[0], s[1]), hd_bit_and(p, s[2], hd_bit_or(p, s[0], s[1])));
        const hd_value one = hd_add(p, hd_add(p, s[7], xor3(turned(s[4], 6), turned(s[4], 11), turned(s[4], 25))),
                                    hd_add(p, choice, hd_add(p, at(k, t), w[t])));
        const hd_value two = hd_add(p, xor3(turned(s[0], 2), turned(s[0], 13), turned(s[0], 22)), most);
        for (int i = 7; i > 0; i--) s[i] = i == 4 ? hd_add(p, s[3], one) : s[i - 1];
        s[0] = hd_add(p, one, two);
    }
    for (int i = 0; i < 8; i++) all[i] = hd_reshape(p, hd_add(p, s[i], at(begin, i)), HD_SHAPE(1, MESSAGES));
    hd_output(p, "digests", hd_concat(p, all, 8, 0));
}

static void digests(const char *id) {
    hd_context *context;
    hd_device *device;
    hd_plan *plan;
    uint32_t words[WORDS][MESSAGES] = { { 0 } }, out[8][MESSAGES], shifts[32];
    for (uint32_t i = 0; i < 32; i++) shifts[i] = i;
    for (int m = 0; m < MESSAGES; m++) { /* the text, a bit, zeros, and the number of bits */
        const size_t bytes = strlen(known[m].text);
        for (size_t i = 0; i <= bytes; i++)
            words[i / 4][m] |= (i < bytes ? (uint32_t)(unsigned char)known[m].text[i] : 0x80u) << (24 - i % 4 * 8);
        words[WORDS - 1][m] = (uint32_t)bytes * 8;
    }
    assert_int_equal(hd_context_create(&(hd_context_desc){ .backend = id, .cache_dir = "" }, &context), HD_OK);
    if (hd_device_open(context, &(hd_device_desc){ .id = id }, &device) == HD_OK) {
        p = hd_program_create(context);
        build();
        if (hd_plan_create(device, p, &(hd_plan_desc){ .math = HD_MATH_EXACT }, &plan) || hd_plan_write(plan, "words", words, sizeof words) ||
            hd_plan_write(plan, "k", constants, sizeof constants) || hd_plan_write(plan, "begin", beginning, sizeof beginning) ||
            hd_plan_write(plan, "numbers", shifts, sizeof shifts) || hd_plan_run(plan, NULL) || hd_plan_read(plan, "digests", out, sizeof out))
            fail_msg("%s: %s", id, hd_context_error(context));
        hd_plan_stats stats;
        assert_int_equal(hd_plan_get_stats(plan, &stats), HD_OK);
        print_message("%s: %u dispatches, %u kernels\n", id, stats.dispatches, stats.kernels);
        for (int m = 0; m < MESSAGES; m++) {
            char text[65];
            for (int i = 0; i < 8; i++) snprintf(text + 8 * i, 9, "%08x", out[i][m]);
            assert_string_equal(text, known[m].digest);
        }
    }
    hd_context_destroy(context);
}

static void known_answers(void **state) {
    (void)state;
    digests("cpu");
    digests("vulkan");
    digests("opencl");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(known_answers) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
