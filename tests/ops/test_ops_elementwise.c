/* test_ops_elementwise.c: element-wise operations over all their types, sizes around the vectors' widths, broadcasting of
 * ranks 0 to 6, special and subnormal values. */
#include "ops.h"
#include <math.h>

static const hd_dtype floats[] = { HD_F32, HD_F16, HD_BF16 };
static const hd_dtype numbers[] = { HD_F32, HD_F16, HD_BF16, HD_I32 };
static const hd_dtype plain[] = { HD_F32, HD_F16, HD_BF16, HD_I32, HD_U8 };

static const hd_shape sizes[] = {
    { 0, { 0 } }, { 1, { 1 } }, { 1, { 2 } }, { 1, { 3 } }, { 1, { 5 } }, { 1, { 7 } }, { 1, { 31 } }, { 1, { 32 } }, { 1, { 33 } },
    { 1, { 63 } }, { 1, { 65 } }, { 2, { 9, 57 } }, { 3, { 3, 5, 67 } }, { 1, { 1023 } }, { 1, { 1025 } }, { 6, { 2, 1, 3, 1, 2, 5 } },
};

/* Pairs that broadcast. */
static const hd_shape pairs[][2] = {
    { { 0, { 0 } }, { 0, { 0 } } }, { { 0, { 0 } }, { 1, { 5 } } }, { { 1, { 67 } }, { 1, { 67 } } }, { { 1, { 1 } }, { 1, { 33 } } },
    { { 2, { 3, 7 } }, { 1, { 7 } } }, { { 2, { 3, 7 } }, { 2, { 3, 1 } } }, { { 2, { 3, 1 } }, { 2, { 1, 7 } } }, { { 1, { 5 } }, { 2, { 4, 5 } } },
    { { 3, { 2, 3, 5 } }, { 3, { 2, 3, 5 } } }, { { 3, { 2, 3, 5 } }, { 3, { 1, 3, 1 } } }, { { 3, { 2, 1, 5 } }, { 2, { 3, 1 } } },
    { { 4, { 2, 1, 3, 4 } }, { 4, { 1, 5, 1, 4 } } }, { { 5, { 2, 1, 2, 1, 3 } }, { 4, { 3, 1, 4, 1 } } },
    { { 6, { 2, 1, 2, 1, 3, 1 } }, { 6, { 1, 3, 1, 2, 1, 5 } } }, { { 0, { 0 } }, { 6, { 1, 2, 1, 3, 1, 2 } } }, { { 2, { 64, 65 } }, { 1, { 65 } } },
};

/* Every layout is a kernel of its own on a GPU: one operation of each type meets all pairs, the others these. */
static bool is_basic(uint32_t pair) { return pair == 0 || pair == 2 || pair == 4 || pair == 8 || pair == 15; }

/* ---- one operand ---- */

typedef struct unary {
    hd_value (*build)(hd_program *, hd_value);
    ops_fill fill;
} unary;
static hd_value scale(hd_program *p, hd_value x) { return hd_scale(p, x, 1.7f, -0.3f); }
static hd_value leaky_relu(hd_program *p, hd_value x) { return hd_leaky_relu(p, x, 0.01f); }
static hd_value elu(hd_program *p, hd_value x) { return hd_elu(p, x, 1.3f); }
static hd_value clip(hd_program *p, hd_value x) { return hd_clip(p, x, -0.75f, 1.25f); }
static hd_value clip_whole(hd_program *p, hd_value x) { return hd_clip(p, x, -20.5f, 33.5f); }

/* Those of one operand and no attribute come from the table; what takes whole numbers too is exact over a wide range. */
#define OF_own(name, takes)
#define OF_binary(name, takes)
#define OF_ternary(name, takes)
#define OF_along(name, takes)
#define OF_reduce(name, takes)
#define OF_unary(name, takes) { hd_##name, FILL_##takes },
#define FILL_FLOATS  OPS_MIDDLE
#define FILL_NUMBERS OPS_WIDE
#define FILL_EVERY   OPS_WIDE
static const unary of_floats[] = {
#define HDI_OP(code, name, least, most, lack, kind, rows, work, rule, takes, builder, ...) OF_##builder(name, takes)
#include "program/op_table.inc"
#undef HDI_OP
    { scale, OPS_MIDDLE }, { leaky_relu, OPS_MIDDLE }, { elu, OPS_MIDDLE }, { clip, OPS_UNIT },
};
/* Roots and logarithms are of what is above zero, but where special values are tried. */
static ops_fill fill_of(const unary *u) { return u->build == hd_sqrt || u->build == hd_log ? OPS_POSITIVE : u->fill; }
static const unary of_whole[] = { { hd_sign, OPS_WHOLE }, { hd_neg, OPS_WIDE }, { hd_abs, OPS_WIDE }, { hd_relu, OPS_WIDE }, { hd_copy, OPS_WIDE }, { clip_whole, OPS_UNIT } };

static void unaries(void) {
    for (uint32_t t = 0; t < HDI_COUNT(numbers); t++) {
        const bool whole = numbers[t] == HD_I32;
        const unary *list = whole ? of_whole : of_floats;
        ops_begin(hd_dtype_name(numbers[t]), 0);
        for (uint32_t i = 0; i < (whole ? HDI_COUNT(of_whole) : HDI_COUNT(of_floats)); i++)
            for (uint32_t s = 0; s < HDI_COUNT(sizes); s++) ops_case(list[i].build(ops_program(), ops_input(numbers[t], sizes[s], fill_of(&list[i]))));
        ops_end();
    }
    ops_begin("copy u8", 0);
    for (uint32_t s = 0; s < HDI_COUNT(sizes); s++) ops_case(hd_copy(ops_program(), ops_input(HD_U8, sizes[s], OPS_UNIT)));
    ops_end();
}

/* Wide ranges where the formula allows them: what comes out spans many powers of two. */
static void unary_ranges(void) {
    static const struct { hd_value (*build)(hd_program *, hd_value); float times, plus; } wide[] = {
        { hd_sqrt, 1, 0 }, { hd_log, 1, 0 }, { hd_exp, 14, 0 }, { hd_exp, 0.001f, 0 }, { hd_log, 0.01f, 1 }, { hd_sigmoid, 14, 0 }, { hd_sigmoid, 0.01f, 0 },
        { hd_tanh, 3, 0 }, { hd_tanh, 0.01f, 0 }, { hd_silu, 14, 0 }, { hd_silu, 0.01f, 0 }, { hd_gelu, 2, 0 }, { hd_gelu, 0.01f, 0 }, { hd_gelu_tanh, 2, 0 },
        { hd_gelu_tanh, 0.01f, 0 }, { elu, 4, 0 }, { elu, 0.01f, 0 }, { hd_sin, 0.5f, 0 }, { hd_cos, 0.5f, 0 },
        { hd_erf, 0.5f, 0 }, { hd_erf, 0.01f, 0 },
    };
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        ops_begin(hd_dtype_name(floats[t]), 0);
        for (uint32_t i = 0; i < HDI_COUNT(wide); i++)
            for (uint32_t n = 0; n < 4; n++) {
                const uint32_t count = n < 2 ? 4001 + 3 * n : 259 + n;
                uint8_t bytes[4 * 4096];
                for (uint32_t k = 0; k < count; k++) {
                    double x = ((double)ops_random(1u << 24) / (1u << 23) - 1) * 6 * (double)wide[i].times + (double)wide[i].plus;
                    if (i < 2) x = (double)(ops_random(1u << 20) + 1) * (n % 2 ? 0x1p-24 : 0x1p-6);
                    oracle_store(floats[t], x, bytes + k * hdi_dtype(floats[t]).block_bytes);
                }
                ops_case(wide[i].build(ops_program(), ops_given(floats[t], HD_SHAPE(count), bytes)));
            }
        ops_end();
    }
}

/* ---- two and three operands ---- */

static void binaries(void) {
    static hd_value (*const build[])(hd_program *, hd_value, hd_value) = { hd_add, hd_sub, hd_mul, hd_div, hd_maximum, hd_minimum };
    for (uint32_t t = 0; t < HDI_COUNT(numbers); t++) {
        ops_begin(hd_dtype_name(numbers[t]), 0);
        for (uint32_t i = 0; i < HDI_COUNT(build); i++)
            for (uint32_t s = 0; s < 2 * HDI_COUNT(pairs); s++) {
                const bool swap = s >= HDI_COUNT(pairs);
                const hd_shape *pair = pairs[s % HDI_COUNT(pairs)];
                if (i % 4 != t && !is_basic(s % HDI_COUNT(pairs))) continue;
                const ops_fill fill = numbers[t] == HD_F16 ? OPS_MIDDLE : OPS_WIDE;
                const hd_value a = ops_input(numbers[t], pair[swap], fill), b = ops_input(numbers[t], pair[!swap], fill);
                ops_case(build[i](ops_program(), a, b));
            }
        ops_end();
    }
}

/* Of x where the slope is anything but 0 and 1, and a little further. */
static void of_gelu(void) {
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        ops_begin(hd_dtype_name(floats[t]), 0);
        for (uint32_t s = 0; s < 2 * HDI_COUNT(pairs); s++) {
            const bool swap = s >= HDI_COUNT(pairs);
            const hd_shape *pair = pairs[s % HDI_COUNT(pairs)];
            const hd_value x = hd_scale(ops_program(), ops_input(floats[t], pair[swap], OPS_UNIT), s % 2 ? 1 : 6, 0);
            const hd_value operands[] = { x, ops_input(floats[t], pair[!swap], OPS_MIDDLE) };
            ops_case(hdi_program_put(ops_program(), &(hdi_node){ .op = HDI_OP_GELU_TANH_GRADIENT, .operands = operands, .operand_count = 2 }));
        }
        ops_end();
    }
}

/* So many narrow elements that an invocation makes several fours of them: dense, and out of lines of a larger tensor. */
static void many(void) {
    static const hd_dtype narrow[] = { HD_F16, HD_BF16 };
    static const int64_t begin[] = { 0, 8 }, end[] = { 257, 308 };
    for (uint32_t t = 0; t < HDI_COUNT(narrow); t++) {
        ops_begin(hd_dtype_name(narrow[t]), 0);
        ops_case(hd_neg(ops_program(), ops_input(narrow[t], HD_SHAPE(70003), OPS_WIDE)));
        ops_case(hd_gelu_tanh(ops_program(), ops_input(narrow[t], HD_SHAPE(70003), OPS_UNIT)));
        ops_case(hd_neg(ops_program(), hd_slice(ops_program(), ops_input(narrow[t], HD_SHAPE(257, 316), OPS_WIDE), begin, end, 2)));
        ops_end();
    }
}

/* Bits of i32 and u8; of shifts b is small, at the ends of what moves all bits, or anything. */
static void bits(void) {
    static hd_value (*const build[])(hd_program *, hd_value, hd_value) = { hd_bit_and, hd_bit_or, hd_bit_xor, hd_shift_left, hd_shift_right_logical, hd_shift_right_arithmetic };
    static const int32_t counts[] = { 0, 1, 5, 7, 8, 15, 30, 31, 32, 33, 255, -1, INT32_MIN, INT32_MAX };
    for (uint32_t t = 0; t < 2; t++) {
        const hd_dtype dtype = t == 0 ? HD_I32 : HD_U8;
        ops_begin(hd_dtype_name(dtype), 0);
        for (uint32_t i = 0; i < HDI_COUNT(build); i++) {
            for (uint32_t s = 0; s < 2 * HDI_COUNT(pairs); s++) {
                const bool swap = s >= HDI_COUNT(pairs);
                const hd_shape *pair = pairs[s % HDI_COUNT(pairs)];
                ops_case(build[i](ops_program(), ops_input(dtype, pair[swap], OPS_WIDE), ops_input(dtype, pair[!swap], i < 3 ? OPS_WIDE : OPS_UNIT)));
            }
            uint8_t ends[14 * 4];
            for (uint32_t k = 0; k < HDI_COUNT(counts); k++) oracle_store(dtype, counts[k], ends + k * hdi_dtype(dtype).block_bytes);
            ops_case(build[i](ops_program(), ops_input(dtype, HD_SHAPE(9, 14), OPS_SPECIAL), ops_given(dtype, HD_SHAPE(14), ends)));
        }
        ops_end();
    }
}

/* Over random words, and words that just do and do not take what is left; special numbers keep what they are. */
static void random_rounding(void) {
    static const int32_t ends[] = { 0, 0xffff, 0x10000, 0x7fffffff, INT32_MIN, -1, -65536, 0x12345678 };
    ops_begin("f32", 0);
    for (uint32_t s = 0; s < 2 * HDI_COUNT(pairs); s++) {
        const bool swap = s >= HDI_COUNT(pairs);
        const hd_shape *pair = pairs[s % HDI_COUNT(pairs)];
        ops_case(hd_round_random(ops_program(), ops_input(HD_F32, pair[swap], OPS_WIDE), ops_input(HD_I32, pair[!swap], OPS_SPECIAL)));
    }
    for (uint32_t n = 0; n < 2; n++)
        ops_case(hd_round_random(ops_program(), ops_input(HD_F32, HD_SHAPE(97, 8), n ? OPS_SPECIAL : OPS_WIDE), ops_given(HD_I32, HD_SHAPE(8), ends)));
    ops_end();
}

/* Halves, neighbours of whole numbers, the last numbers with fractions and the first without; ceil is made of floor. */
static void whole_neighbours(void) {
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        static hd_value (*const build[])(hd_program *, hd_value) = { hd_round, hd_floor, hd_ceil };
        uint8_t bytes[4 * 600];
        ops_begin(hd_dtype_name(floats[t]), 0);
        for (uint32_t k = 0; k < 600; k++) {
            static const double steps[] = { 0, 0.5, -0.5, 0x1p-24, -0x1p-24, 0.25 };
            const double whole = k % 3 == 0 ? (double)ops_random(12) : k % 3 == 1 ? exp2(ops_random(26)) : exp2(ops_random(26)) - 1;
            oracle_store(floats[t], (ops_random(2) ? 1 : -1) * (whole + steps[ops_random(6)]), bytes + k * hdi_dtype(floats[t]).block_bytes);
        }
        for (uint32_t i = 0; i < HDI_COUNT(build); i++) ops_case_of(i == 0 ? HDI_OP_ROUND : HDI_OP_FLOOR, build[i](ops_program(), ops_given(floats[t], HD_SHAPE(600), bytes)));
        ops_end();
    }
}

static void compares(void) {
    for (uint32_t t = 0; t < HDI_COUNT(plain); t++) {
        ops_begin(hd_dtype_name(plain[t]), 0);
        for (uint32_t s = 0; s < 2 * HDI_COUNT(pairs); s++) {
            const bool swap = s >= HDI_COUNT(pairs);
            const hd_shape *pair = pairs[s % HDI_COUNT(pairs)];
            const bool basic = is_basic(s % HDI_COUNT(pairs));
            const hd_value a = ops_input(plain[t], pair[swap], OPS_WHOLE), b = ops_input(plain[t], pair[!swap], OPS_WHOLE);
            if (basic || plain[t] == HD_F32 || plain[t] == HD_U8) ops_case(hd_less(ops_program(), a, b));
            if (basic || plain[t] == HD_BF16) ops_case(hd_equal(ops_program(), a, b));
        }
        ops_end();
    }
}

static void choices(void) {
    for (uint32_t t = 0; t < HDI_COUNT(plain); t++) {
        ops_begin(hd_dtype_name(plain[t]), 0);
        for (uint32_t s = 0; s < HDI_COUNT(pairs); s++)
            for (uint32_t k = 0; k < 3; k++) { /* the condition as the one, the other, or broadcast itself */
                if (!is_basic(s) && plain[t] != HD_F32 && plain[t] != HD_U8) continue;
                const hd_value condition = ops_input(HD_U8, k == 2 ? (hd_shape){ 0, { 0 } } : pairs[s][k], OPS_BITS);
                const hd_value a = ops_input(plain[t], pairs[s][0], OPS_WIDE), b = ops_input(plain[t], pairs[s][1], OPS_WIDE);
                ops_case(hd_where(ops_program(), condition, a, b));
            }
        ops_end();
    }
}

/* ---- casts ---- */

static void casts(void) {
    for (uint32_t from = 0; from < HDI_COUNT(plain); from++) {
        ops_begin(hd_dtype_name(plain[from]), 0);
        for (uint32_t to = 0; to < HDI_COUNT(plain); to++)
            for (uint32_t s = 0; s < HDI_COUNT(sizes); s++) {
                const ops_fill fill = s % 3 == 0 ? OPS_SPECIAL : s % 3 == 1 ? OPS_WIDE : OPS_UNIT;
                ops_case(hd_cast(ops_program(), ops_input(plain[from], sizes[s], fill), plain[to]));
            }
        ops_end();
    }
    for (hd_dtype q = HD_Q4_0; hdi_dtype_is_quantised(q); q++) {
        ops_begin(hd_dtype_name(q), 0);
        const int64_t block = hdi_dtype(q).block_elements;
        static const hd_shape blocks[] = { { 1, { 1 } }, { 1, { 3 } }, { 2, { 5, 1 } }, { 2, { 7, 2 } }, { 3, { 2, 3, 1 } }, { 1, { 9 } }, { 2, { 1, 5 } } };
        for (uint32_t s = 0; s < HDI_COUNT(blocks); s++) {
            hd_shape shape = blocks[s];
            shape.dims[shape.rank - 1] *= block;
            ops_case(hd_cast(ops_program(), ops_input(q, shape, OPS_UNIT), HD_F32));
        }
        for (uint32_t s = 0; s < 3; s++) ops_case(hd_cast(ops_program(), ops_input(q, HD_SHAPE(11 * block), OPS_SPECIAL), HD_F32));
        ops_end();
    }
}

/* ---- special values ---- */

static void specials(void) {
    static hd_value (*const two[])(hd_program *, hd_value, hd_value) = { hd_add, hd_sub, hd_mul, hd_div, hd_less, hd_equal, hd_maximum, hd_minimum };
    for (uint32_t tiny = 0; tiny < 2; tiny++)
        for (uint32_t t = 0; t < HDI_COUNT(numbers); t++) {
            const bool whole = numbers[t] == HD_I32;
            const unary *list = whole ? of_whole : of_floats;
            const ops_fill fill = tiny ? OPS_TINY : OPS_SPECIAL;
            if (whole && tiny) continue;
            ops_begin(hd_dtype_name(numbers[t]), OPS_EXACT_ONLY);
            for (uint32_t i = 0; i < (whole ? HDI_COUNT(of_whole) : HDI_COUNT(of_floats)); i++)
                for (uint32_t n = 0; n < 2; n++) ops_case(list[i].build(ops_program(), ops_input(numbers[t], HD_SHAPE(301 + 2 * n), fill)));
            for (uint32_t i = 0; i < HDI_COUNT(two); i++)
                for (uint32_t n = 0; n < 3; n++)
                    ops_case(two[i](ops_program(), ops_input(numbers[t], HD_SHAPE(401 + n), fill), ops_input(numbers[t], HD_SHAPE(401 + n), fill)));
            ops_case(hd_where(ops_program(), ops_input(HD_U8, HD_SHAPE(333), OPS_UNIT), ops_input(numbers[t], HD_SHAPE(333), fill), ops_input(numbers[t], HD_SHAPE(333), fill)));
            ops_end();
        }
}
/* The same in fast mode, where NaN and infinity stay what they are by IEEE 754. */
static void fast_specials(void) {
    static hd_value (*const two[])(hd_program *, hd_value, hd_value) = { hd_add, hd_sub, hd_mul };
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        ops_begin(hd_dtype_name(floats[t]), 0);
        for (uint32_t i = 0; i < HDI_COUNT(two); i++) ops_case(two[i](ops_program(), ops_input(floats[t], HD_SHAPE(203), OPS_SPECIAL), ops_input(floats[t], HD_SHAPE(203), OPS_SPECIAL)));
        ops_case(hd_relu(ops_program(), ops_input(floats[t], HD_SHAPE(203), OPS_SPECIAL)));
        ops_case(clip(ops_program(), ops_input(floats[t], HD_SHAPE(203), OPS_SPECIAL)));
        ops_case(hd_neg(ops_program(), ops_input(floats[t], HD_SHAPE(203), OPS_SPECIAL)));
        ops_end();
    }
}

int main(int argc, char **argv) {
    static const ops_test tests[] = {
        { "one operand", unaries }, { "one operand, other ranges", unary_ranges }, { "two operands", binaries }, { "slope of gelu", of_gelu }, { "many narrow ones", many }, { "bits", bits }, { "rounding at random", random_rounding }, { "whole neighbours", whole_neighbours }, { "compares", compares },
        { "where", choices }, { "casts", casts }, { "special values", specials }, { "special values, fast", fast_specials },
    };
    return ops_main("elementwise", tests, HDI_COUNT(tests), argc, argv);
}
