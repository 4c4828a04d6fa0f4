/* test_gradients.c: the rule of every operation against central differences, with every flag, and shapes and broadcasting of
 * many kinds. What PyTorch does where there is no derivative is in test_gradients_torch.c. */
#include "differences.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>

typedef hd_value (*unary)(hd_program *p, hd_value x);
typedef hd_value (*binary)(hd_program *p, hd_value a, hd_value b);
typedef hd_value (*along)(hd_program *p, hd_value x, int axis);

static const hd_shape shapes[] = { { 0 }, { 1, { 1 } }, { 1, { 7 } }, { 2, { 3, 5 } }, { 2, { 1, 4 } }, { 3, { 2, 1, 3 } }, { 3, { 2, 3, 4 } },
                                   { 4, { 2, 1, 2, 3 } }, { 5, { 1, 2, 1, 3, 2 } }, { 6, { 2, 1, 2, 1, 2, 1 } } };

/* A shape that broadcasts to `shape`: some axes are 1, some leading ones absent. */
static hd_shape thinner(hd_shape shape) {
    hd_shape thin = shape;
    for (uint32_t i = 0; i < thin.rank; i++) if (chance(3) == 0) thin.dims[i] = 1;
    const uint32_t cut = thin.rank ? chance(thin.rank + 1) : 0;
    for (uint32_t i = cut; i < thin.rank; i++) thin.dims[i - cut] = thin.dims[i];
    thin.rank -= cut;
    return thin;
}

static void elementwise(void **state) {
    (void)state;
    static const struct { const char *name; unary build; fill with; } of_one[] = {
        { "neg", hd_neg, FILL_UNIT }, { "abs", hd_abs, FILL_UNIT }, { "sign", hd_sign, FILL_UNIT }, { "round", hd_round, FILL_UNIT },
        { "floor", hd_floor, FILL_UNIT }, { "ceil", hd_ceil, FILL_UNIT }, { "sqrt", hd_sqrt, FILL_POSITIVE }, { "exp", hd_exp, FILL_UNIT },
        { "log", hd_log, FILL_POSITIVE }, { "sin", hd_sin, FILL_UNIT }, { "cos", hd_cos, FILL_UNIT }, { "relu", hd_relu, FILL_UNIT },
        { "sigmoid", hd_sigmoid, FILL_UNIT }, { "tanh", hd_tanh, FILL_UNIT }, { "silu", hd_silu, FILL_UNIT }, { "gelu", hd_gelu, FILL_UNIT },
        { "gelu_tanh", hd_gelu_tanh, FILL_UNIT }, { "erf", hd_erf, FILL_UNIT }, { "copy", hd_copy, FILL_UNIT } };
    static const hd_dtype types[] = { HD_F32, HD_F16, HD_BF16 };
    for (size_t i = 0; i < sizeof of_one / sizeof *of_one; i++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (size_t t = 0; t < 3; t++) {
                begin(of_one[i].name);
                judge(of_one[i].build(program(), typed(types[t], shapes[s], of_one[i].with)));
            }
    static const float factors[] = { 0, 1, -2.5f, 0.3f };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t f = 0; f < 4; f++) {
            begin("scale");
            judge(hd_scale(program(), floats(shapes[s], FILL_UNIT), factors[f], 0.5f));
            begin("leaky_relu");
            judge(hd_leaky_relu(program(), floats(shapes[s], FILL_UNIT), factors[f]));
            begin("elu");
            judge(hd_elu(program(), floats(shapes[s], FILL_UNIT), factors[f]));
            begin("clip");
            judge(hd_clip(program(), floats(shapes[s], FILL_UNIT), -0.4f, 0.3f + factors[f] * 0.1f));
            begin("cast");
            judge(hd_cast(program(), typed(f % 2 ? HD_BF16 : HD_F32, shapes[s], FILL_UNIT), f / 2 ? HD_F16 : HD_F32));
        }
}

static void of_two(void **state) {
    (void)state;
    static const struct { const char *name; binary build; fill with; } ops[] = {
        { "add", hd_add, FILL_UNIT }, { "sub", hd_sub, FILL_UNIT }, { "mul", hd_mul, FILL_UNIT }, { "div", hd_div, FILL_POSITIVE },
        { "maximum", hd_maximum, FILL_UNIT }, { "minimum", hd_minimum, FILL_UNIT } };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int round = 0; round < 10; round++) {
                begin(ops[i].name);
                const bool first = round % 2; /* which side is the thinner one; round 0: none; 9: both are one value */
                const hd_value a = floats(first ? thinner(shapes[s]) : shapes[s], FILL_UNIT);
                const hd_value b = round == 9 && i < 3 ? a : floats(!first && round ? thinner(shapes[s]) : shapes[s], ops[i].with);
                judge(ops[i].build(program(), a, b));
            }
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int round = 0; round < 12; round++) {
            begin("where");
            const hd_value condition = bits(round % 2 ? thinner(shapes[s]) : shapes[s]), a = floats(round % 3 ? thinner(shapes[s]) : shapes[s], FILL_UNIT);
            judge(hd_where(program(), condition, a, floats(round % 4 ? thinner(shapes[s]) : shapes[s], FILL_UNIT)));
        }
}

static void form(void **state) {
    (void)state;
    for (size_t s = 1; s < sizeof shapes / sizeof *shapes; s++)
        for (int round = 0; round < 8; round++) {
            const hd_shape shape = shapes[s];
            uint32_t axes[HD_MAX_RANK];
            int64_t first[HD_MAX_RANK], second[HD_MAX_RANK];
            begin("permute");
            for (uint32_t i = 0; i < shape.rank; i++) axes[i] = i;
            for (uint32_t i = shape.rank; i-- > 1;) {
                const uint32_t j = chance(i + 1), kept = axes[i];
                axes[i] = axes[j];
                axes[j] = kept;
            }
            judge(hd_permute(program(), floats(shape, FILL_UNIT), axes, shape.rank));
            begin("reshape");
            judge(hd_reshape(program(), floats(shape, FILL_UNIT), HD_SHAPE(1, (int64_t)hd_shape_elements(shape))));
            begin("slice");
            for (uint32_t i = 0; i < shape.rank; i++) {
                first[i] = chance((uint32_t)shape.dims[i]);
                second[i] = first[i] + 1 + chance((uint32_t)(shape.dims[i] - first[i]));
            }
            judge(hd_slice(program(), floats(shape, FILL_UNIT), first, second, shape.rank));
            begin("pad");
            for (uint32_t i = 0; i < shape.rank; i++) first[i] = chance(3), second[i] = chance(3);
            judge(hd_pad(program(), floats(shape, FILL_UNIT), first, second, shape.rank, 0.5f));
            begin("concat");
            const uint32_t axis = chance(shape.rank), count = 1 + chance(4);
            hd_value parts[5];
            for (uint32_t k = 0; k < count; k++) {
                hd_shape part = shape;
                part.dims[axis] = 1 + chance(4);
                parts[k] = floats(part, FILL_UNIT);
            }
            parts[count] = parts[0];
            judge(hd_concat(program(), parts, count + 1, (int)axis));
        }
    /* Slices of one value: side by side, one over the other, with a gap, all of it. */
    static const int64_t cuts[][6] = { { 0, 3, 3, 5, 5, 9 }, { 5, 9, 0, 3, 3, 5 }, { 0, 4, 3, 5, 5, 9 }, { 0, 3, 4, 5, 5, 9 }, { 0, 9, 0, 9, 2, 4 }, { 0, 3, 3, 5, 3, 9 } };
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
        for (int round = 0; round < 4; round++) {
            begin("slices");
            const hd_value x = floats(HD_SHAPE(2, 9), FILL_UNIT);
            hd_value sum = 0;
            for (int k = 0; k < 3; k++) {
                const int64_t low[] = { 0, cuts[i][2 * k] }, high[] = { 2, cuts[i][2 * k + 1] };
                const hd_value part = hd_sum(program(), hd_exp(program(), hd_slice(program(), x, low, high, 2)), 1);
                sum = sum ? hd_mul(program(), sum, part) : part;
            }
            judge(round == 3 ? hd_add(program(), sum, x) : sum);
        }
}

static void reductions(void **state) {
    (void)state;
    static const struct { const char *name; along build; fill with; bool all; } ops[] = {
        { "sum", hd_sum, FILL_UNIT, true }, { "mean", hd_mean, FILL_UNIT, true }, { "max", hd_max, FILL_UNIT, true }, { "min", hd_min, FILL_UNIT, true },
        { "prod", hd_prod, FILL_POSITIVE, true }, { "prod of zeros", hd_prod, FILL_ZEROS, true }, { "softmax", hd_softmax, FILL_UNIT, false },
        { "log_softmax", hd_log_softmax, FILL_UNIT, false } };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (size_t s = 1; s < sizeof shapes / sizeof *shapes; s++)
            for (int axis = 0; axis <= (int)shapes[s].rank; axis++) {
                const bool all = axis == (int)shapes[s].rank;
                if (all && !ops[i].all) continue;
                begin(ops[i].name);
                judge(ops[i].build(program(), floats(shapes[s], ops[i].with), all ? HD_ALL_AXES : axis));
                begin(ops[i].name);
                judge(ops[i].build(program(), typed(HD_F16, shapes[s], ops[i].with), all ? HD_ALL_AXES : axis - (int)shapes[s].rank));
            }
    for (size_t s = 1; s < sizeof shapes / sizeof *shapes; s++)
        for (int axis = 0; axis < (int)shapes[s].rank; axis++) {
            for (uint32_t flags = 0; flags < 4; flags++) {
                begin("cumsum");
                judge(hd_cumsum(program(), floats(shapes[s], FILL_UNIT), axis, flags));
            }
            begin("dot");
            judge(hd_dot(program(), floats(shapes[s], FILL_UNIT), floats(shapes[s], FILL_UNIT), axis));
            begin("dot");
            const hd_value x = floats(shapes[s], FILL_UNIT);
            judge(hd_dot(program(), x, x, axis % 2 ? HD_ALL_AXES : axis));
        }
}

static void rows(void **state) {
    (void)state;
    static const float eps[] = { 1e-5f, 0.1f };
    for (size_t s = 1; s < sizeof shapes / sizeof *shapes; s++)
        for (int has = 0; has < 4; has++)
            for (size_t e = 0; e < 2; e++) {
                const int64_t n = shapes[s].dims[shapes[s].rank - 1];
                begin("rms_norm");
                hd_value x = floats(shapes[s], FILL_POSITIVE), weight = has & 1 ? floats(HD_SHAPE(n), FILL_UNIT) : 0;
                judge(hd_rms_norm(program(), x, weight, eps[e]));
                if (n == 1) continue; /* x - mean is 0 */
                begin("layer_norm");
                x = floats(shapes[s], FILL_UNIT);
                weight = has & 1 ? floats(HD_SHAPE(n), FILL_UNIT) : 0;
                judge(hd_layer_norm(program(), x, weight, has & 2 ? floats(HD_SHAPE(n), FILL_UNIT) : 0, eps[e]));
            }
    for (size_t s = 1; s < sizeof shapes / sizeof *shapes; s++)
        for (int round = 0; round < 4; round++) {
            hd_shape targets = shapes[s];
            const int64_t n = targets.dims[--targets.rank];
            begin("cross_entropy");
            const hd_value x = floats(shapes[s], FILL_UNIT);
            judge(hd_cross_entropy(program(), x, whole(targets, 0, n - 1)));
        }
}

static void products(void **state) {
    (void)state;
    static const int64_t batches[][4] = { { 0 }, { 0, 3 }, { 3, 0 }, { 3, 3 }, { 1, 3 }, { 3, 1 }, { 23, 3 }, { 23, 13 }, { 13, 23 }, { 23, 21 }, { 3, 23 }, { 0, 23 },
                                              { 23, 0 }, { 21, 13 }, { 1, 0 }, { 0, 11 } };
    static const int64_t sizes[][3] = { { 1, 1, 1 }, { 2, 3, 4 }, { 5, 1, 2 }, { 1, 6, 3 } };
    for (size_t b = 0; b < sizeof batches / sizeof *batches; b++)
        for (size_t m = 0; m < sizeof sizes / sizeof *sizes; m++)
            for (uint32_t flags = 0; flags < 4; flags++) {
                hd_shape shape[2] = { { 0 } };
                for (int side = 0; side < 2; side++) { /* digits are lengths of leading axes */
                    const int64_t digits = batches[b][side];
                    if (digits > 9) shape[side].dims[shape[side].rank++] = digits / 10;
                    if (digits > 0) shape[side].dims[shape[side].rank++] = digits % 10;
                    const int64_t one = sizes[m][side], two = sizes[m][side + 1];
                    const bool swap = flags >> side & 1;
                    shape[side].dims[shape[side].rank++] = swap ? two : one;
                    shape[side].dims[shape[side].rank++] = swap ? one : two;
                }
                begin("matmul");
                const hd_value a = floats(shape[0], FILL_UNIT);
                judge(hd_matmul_with(program(), a, typed(m == 1 ? HD_BF16 : HD_F32, shape[1], FILL_UNIT), flags));
                begin("matmul of mixed precision"); /* one whose weights were cast, one of narrow operands, and of different ones */
                const hd_value x = typed(m == 1 ? HD_BF16 : HD_F32, shape[0], FILL_UNIT), w = typed(m == 2 ? HD_F16 : HD_F32, shape[1], FILL_UNIT);
                judge(hd_matmul_with(program(), m == 1 ? x : hd_cast(program(), x, HD_BF16), m == 2 ? w : hd_cast(program(), w, HD_BF16), flags | HD_RESULT_F32));
            }
    for (uint32_t flags = 0; flags < 4; flags++)
        for (int batch = 0; batch < 3; batch++) {
            begin("matmul of quantised weights");
            hd_shape a = flags & HD_TRANSPOSE_A ? HD_SHAPE(32, 3) : HD_SHAPE(3, 32), b = HD_SHAPE(32, 32);
            if (batch) a = HD_SHAPE(2, a.dims[0], a.dims[1]);
            if (batch == 2) b = HD_SHAPE(2, 32, 32);
            const hd_value x = floats(a, FILL_UNIT);
            judge(hd_matmul_with(program(), x, weights(HD_Q8_0, b), flags));
        }
}

static void tables(void **state) {
    (void)state;
    for (int round = 0; round < 24; round++) {
        const int64_t T = 1 + chance(4), U = 1 + chance(3), E = 2 + chance(4), N = 1 + chance(4), K = 1 + chance(4);
        begin("matmul_experts");
        const hd_value x = floats(round % 2 ? HD_SHAPE(T, U, K) : HD_SHAPE(T, K), FILL_UNIT), w = floats(HD_SHAPE(E, N, K), FILL_UNIT);
        judge(hd_matmul_experts(program(), x, w, whole(HD_SHAPE(T, U), round % 3 ? 0 : -1, round % 3 ? E - 1 : E)));
    }
    for (int round = 0; round < 40; round++) {
        const int64_t R = 1 + chance(5), n = 1 + chance(4), I = 1 + chance(7);
        begin("gather");
        const hd_value table = floats(HD_SHAPE(R, n), FILL_UNIT);
        judge(hd_gather(program(), table, whole(round % 3 ? HD_SHAPE(I) : HD_SHAPE(2, I), -1, R)));
        begin("take_along");
        const hd_value x = floats(round % 3 ? HD_SHAPE(R, n) : HD_SHAPE(n), FILL_UNIT);
        judge(hd_take_along(program(), x, whole(round % 3 ? HD_SHAPE(R, I) : HD_SHAPE(I), -1, n)));
        static const struct { const char *name; hd_value (*build)(hd_program *, hd_value, hd_value, hd_value); fill with; } ops[] = {
            { "scatter_add", hd_scatter_add, FILL_UNIT }, { "scatter_mul", hd_scatter_mul, FILL_POSITIVE }, { "scatter_mul of zeros", hd_scatter_mul, FILL_ZEROS },
            { "scatter_max", hd_scatter_max, FILL_UNIT }, { "scatter_min", hd_scatter_min, FILL_UNIT } };
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
            begin(ops[i].name);
            const hd_value base = floats(HD_SHAPE(R, n), FILL_UNIT), indices = whole(HD_SHAPE(I), -1, R);
            judge(ops[i].build(program(), base, indices, floats(HD_SHAPE(I, n), ops[i].with)));
        }
    }
}

static void states(void **context) {
    (void)context;
    for (int64_t at = -3; at < 8; at++) {
        begin("write_rows");
        const hd_value held = state(HD_SHAPE(6, 2), FILL_UNIT), rows_in = floats(HD_SHAPE(3, 2), FILL_UNIT);
        judge(hd_write_rows(program(), held, rows_in, numbers(HD_SHAPE(1), &at)));
        begin("write_rows of a batch");
        const hd_value two = state(HD_SHAPE(2, 6, 2), FILL_UNIT), rows_two = floats(HD_SHAPE(2, 3, 2), FILL_UNIT);
        judge(hd_write_rows(program(), two, rows_two, numbers(HD_SHAPE(2), (int64_t[]){ at, 3 - at })));
        begin("write_pages");
        const hd_value pool = state(HD_SHAPE(3, 64, 2), FILL_UNIT), into = floats(HD_SHAPE(5, 2), FILL_UNIT);
        const int64_t from = 60 + at;
        const hd_value position = numbers(HD_SHAPE(1), &from);
        judge(hd_write_pages(program(), pool, into, position, numbers(HD_SHAPE(2), (int64_t[]){ at > 4 ? 3 : 2, at % 2 ? 0 : -1 })));
        begin("write_pages of a batch");
        const hd_value shared = state(HD_SHAPE(4, 64, 2), FILL_UNIT), of_two_in = floats(HD_SHAPE(2, 5, 2), FILL_UNIT);
        const hd_value positions = numbers(HD_SHAPE(2), (int64_t[]){ from, 124 + at });
        judge(hd_write_pages(program(), shared, of_two_in, positions, numbers(HD_SHAPE(2, 2), (int64_t[]){ 2, 0, 3, 1 })));
    }
    begin("assign");
    const hd_value held = state(HD_SHAPE(6, 2), FILL_UNIT), given = floats(HD_SHAPE(6, 2), FILL_UNIT);
    const hd_value used = hd_exp(program(), held);
    judge(hd_mul(program(), used, hd_assign(program(), held, given)));
}

static void positions(void **state) {
    (void)state;
    const hd_rope_desc descs[] = { { 0 }, { .pairing = HD_ROPE_NEIGHBOURS }, { .dims = 4, .theta = 500 }, { .dims = 2, .magnitude = 1.5f, .frequency_scale = 0.5f },
                                          { .factors = (const float[]){ 1, 2, 8 } }, { .pairing = HD_ROPE_NEIGHBOURS, .magnitude = 0.7f, .factors = (const float[]){ 4, 3, 1 } } };
    for (size_t d = 0; d < sizeof descs / sizeof *descs; d++)
        for (int round = 0; round < 4; round++) {
            begin("rope");
            const hd_value x = floats(round % 2 ? HD_SHAPE(3, 2, 6) : HD_SHAPE(2, 3, 2, 6), FILL_UNIT);
            judge(hd_rope(program(), x, whole(HD_SHAPE(3), -5, 40), &descs[d]));
        }
    for (int round = 0; round < 96; round++) {
        const bool batched = round % 2, causal = round / 2 % 2, has_past = round / 4 % 2;
        const int64_t B = 1 + chance(3), T = 1 + chance(4), Hkv = 1 + chance(3), G = 1 + chance(3), D = 1 + chance(4), S = T + chance(4);
        begin("attention");
        const hd_value q = floats(batched ? HD_SHAPE(B, T, Hkv * G, D) : HD_SHAPE(T, Hkv * G, D), FILL_UNIT);
        const hd_shape kv = batched ? HD_SHAPE(B, S, Hkv, D) : HD_SHAPE(S, Hkv, D);
        const hd_value k = floats(kv, FILL_UNIT), v = floats(kv, FILL_UNIT);
        const hd_value past = has_past ? whole(HD_SHAPE(batched ? B : 1), 0, S - T) : 0;
        const hd_attention_desc desc = { .not_causal = !causal, .scale = round % 3 ? 0 : 0.7f, .window = round % 5 < 3 ? 0 : (uint32_t)(1 + chance(3)),
                                         .cap = round % 7 < 4 ? 0 : 1.5f, .sinks = round % 11 < 6 ? 0 : floats(HD_SHAPE(Hkv * G), FILL_UNIT) };
        judge(hd_attention(program(), q, k, v, past, &desc));
    }
    for (int round = 0; round < 8; round++) {
        const bool batched = round % 2;
        begin("attention to pages");
        const hd_value q = floats(batched ? HD_SHAPE(2, 2, 4, 3) : HD_SHAPE(2, 4, 3), FILL_UNIT), k = floats(HD_SHAPE(3, 64, 2, 3), FILL_UNIT), v = floats(HD_SHAPE(3, 64, 2, 3), FILL_UNIT);
        const hd_value past = whole(HD_SHAPE(batched ? 2 : 1), 0, 120), pages = whole(batched ? HD_SHAPE(2, 2) : HD_SHAPE(2), -1, 3);
        judge(hd_attention(program(), q, k, v, past, &(hd_attention_desc){ .pages = pages, .not_causal = round / 4,
            .window = round % 3 ? 0 : 70, .sinks = round % 4 < 2 ? 0 : floats(HD_SHAPE(4), FILL_UNIT) }));
    }
}

/* More queries than a block of the rule has, with keys that no query sees. */
static void long_attention(void **state) {
    (void)state;
    for (int round = 0; round < 6; round++) {
        const int64_t T = 256 * (round % 3) + 1 + (int64_t)chance(200), S = T + chance(3);
        begin("long attention");
        const hd_value q = floats(HD_SHAPE(T, 2, 2), FILL_UNIT), k = floats(HD_SHAPE(S, 1, 2), FILL_UNIT), v = floats(HD_SHAPE(S, 1, 2), FILL_UNIT);
        judge(hd_attention(program(), q, k, v, round == 5 ? whole(HD_SHAPE(1), 0, S - T) : 0, &(hd_attention_desc){ .not_causal = round == 4 }));
    }
}

/* Values used many times, and what only some of it leads to the loss. */
static void shared(void **state) {
    (void)state;
    for (int round = 0; round < 40; round++) {
        begin("one value, many uses");
        hd_program *p = program();
        const hd_value x = floats(HD_SHAPE(3, 4), FILL_UNIT), w = floats(HD_SHAPE(4, 4), FILL_UNIT);
        hd_value h = hd_tanh(p, hd_matmul(p, x, w));
        for (int i = 0; i < 1 + round % 4; i++) h = hd_add(p, h, hd_mul(p, hd_matmul(p, hd_silu(p, h), w), x));
        hd_less(p, h, x);
        judge(hd_mul(p, h, hd_cast(p, hd_round(p, hd_scale(p, h, 4, 0)), HD_F32)));
    }
}

/* A dot with one factor for each place of its axis. */
static void factors_of_places(void **state) {
    (void)state;
    for (size_t s = 1; s < sizeof shapes / sizeof *shapes; s++)
        for (int axis = 0; axis < (int)shapes[s].rank; axis++) {
            hd_shape each = shapes[s];
            for (uint32_t k = (uint32_t)axis + 1; k < each.rank; k++) each.dims[k] = 1;
            begin("dot");
            judge(hd_dot(program(), floats(shapes[s], FILL_UNIT), floats(each, FILL_UNIT), axis));
        }
}

/* What is rounded at random has the gradient of what is not. */
static void rounding(void **state) {
    (void)state;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int k = 0; k < 2; k++) {
            begin("round_random");
            judge(hd_round_random(program(), floats(k ? thinner(shapes[s]) : shapes[s], FILL_UNIT), whole(shapes[s], 0, 1 << 20)));
        }
}

/* The mask and the starts are given, and get none. */
static void masked_attention(void **state) {
    (void)state;
    for (int round = 0; round < 48; round++) {
        const bool batched = round % 2;
        const int64_t B = batched ? 1 + chance(3) : 1, T = 1 + chance(5), Hkv = 1 + chance(3), G = 1 + chance(3), D = 1 + chance(4), S = T + 1 + chance(4), Hq = Hkv * G;
        begin("attention with a mask");
        const hd_shape kv = batched ? HD_SHAPE(B, S, Hkv, D) : HD_SHAPE(S, Hkv, D);
        const hd_value q = floats(batched ? HD_SHAPE(B, T, Hq, D) : HD_SHAPE(T, Hq, D), FILL_UNIT), k = floats(kv, FILL_UNIT), v = floats(kv, FILL_UNIT);
        const hd_shape masks[] = { HD_SHAPE(T, S), HD_SHAPE(Hq, T, S), HD_SHAPE(B, 1, 1, S), HD_SHAPE(B, Hq, T, S), HD_SHAPE(1, 1, T, 1), HD_SHAPE(S) };
        const hd_value mask = hd_cast(program(), whole(masks[round % 6], -3, 3), HD_F32);
        const hd_value starts = round % 4 == 1 ? 0 : whole(batched ? HD_SHAPE(B, T) : HD_SHAPE(T), 0, 1);
        judge(hd_attention(program(), q, k, v, whole(HD_SHAPE(B), 1, 1), &(hd_attention_desc){ .not_causal = round % 3 == 0, .mask = round % 4 == 2 ? 0 : mask, .starts = starts, .cap = round % 5 ? 0 : 1.5f }));
    }
}

/* Of starts alone it is one operation, with a cap several. They are in any order, and some queries see no key: what these give, NaN, is left out. */
static void attention_from_starts(void **state) {
    (void)state;
    for (int round = 0; round < 32; round++) {
        const bool batched = round % 2, open = round % 3 == 0;
        const int64_t B = batched ? 1 + chance(3) : 1, T = 1 + chance(9), Hkv = 1 + chance(3), G = 1 + chance(3), D = 1 + chance(4), S = T + chance(4), Hq = Hkv * G;
        int64_t first[3 * 9], end[3 * 9];
        begin("attention from starts");
        for (int64_t i = 0; i < B * T; i++) {
            end[i] = open ? T : i % T + 1;
            first[i] = round % 4 == 3 ? (int64_t)chance((uint32_t)S + 5) - 2 : (int64_t)chance((uint32_t)end[i] + 2) - 2;
        }
        const hd_shape rows = batched ? HD_SHAPE(B, T, 1, 1) : HD_SHAPE(T, 1, 1), kv = batched ? HD_SHAPE(B, S, Hkv, D) : HD_SHAPE(S, Hkv, D);
        const hd_value q = floats(batched ? HD_SHAPE(B, T, Hq, D) : HD_SHAPE(T, Hq, D), FILL_UNIT), k = floats(kv, FILL_UNIT), v = floats(kv, FILL_UNIT);
        const hd_value starts = numbers(rows, first), seen = hd_less(program(), starts, numbers(rows, end));
        const hd_value y = hd_attention(program(), q, k, v, 0, &(hd_attention_desc){ .not_causal = open, .cap = round % 8 < 6 ? 0 : 1.5f, .starts = hd_reshape(program(), starts, batched ? HD_SHAPE(B, T) : HD_SHAPE(T)) });
        judge(hd_where(program(), seen, y, q));
        assert_int_equal(judged_ops[HDI_OP_ATTENTION_GRADIENT], round % 8 < 6);
        assert_int_equal(judged_ops[HDI_OP_SOFTMAX], round % 8 >= 6);
    }
}

static void enough(void **state) {
    (void)state;
    printf("%u cases\n", judged);
    assert_true(judged >= 3000);
}

/* Gradients of the operations that gradients are made of. */
static void of_gradients(void **state) {
    (void)state;
    for (int k = 0; k < 24; k++) {
        const hd_shape shape = k % 3 == 0 ? HD_SHAPE(5) : k % 3 == 1 ? HD_SHAPE(3, 4) : HD_SHAPE(2, 2, 7);
        const int64_t n = shape.dims[shape.rank - 1];
        hd_shape rows = shape;
        rows.dims[--rows.rank] = 0;
        begin("gelu_tanh_gradient");
        const hd_value of_gelu[] = { floats(shape, FILL_UNIT), floats(k % 2 ? thinner(shape) : shape, FILL_UNIT) };
        judge(hdi_program_put(program(), &(hdi_node){ .op = HDI_OP_GELU_TANH_GRADIENT, .operands = of_gelu, .operand_count = 2 }));
        begin("cross_entropy_gradient");
        const hd_value of_losses[] = { floats(shape, FILL_UNIT), whole(rows, k % 2 ? -2 : 0, n - 1), floats(rows, FILL_UNIT) };
        judge(hdi_program_put(program(), &(hdi_node){ .op = HDI_OP_CROSS_ENTROPY_GRADIENT, .operands = of_losses, .operand_count = 3 }));
        const hdi_attrs attrs = { .ints = { k % 2 }, .floats = { k % 4 < 2 ? 0.5f : 1e-3f } };
        begin("norm_gradient");
        const hd_value of_norm[] = { floats(shape, FILL_UNIT), floats(shape, FILL_UNIT), k % 5 < 3 ? floats(HD_SHAPE(n), FILL_UNIT) : 0 };
        judge(hdi_program_put(program(), &(hdi_node){ .op = HDI_OP_NORM_GRADIENT, .operands = of_norm, .operand_count = 3, .attrs = attrs }));
        begin("norm_sums");
        const hd_value of_sums[] = { floats(shape, FILL_UNIT), floats(shape, FILL_UNIT) };
        judge(hdi_program_put(program(), &(hdi_node){ .op = HDI_OP_NORM_SUMS, .operands = of_sums, .operand_count = 2, .attrs = attrs }));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(elementwise), cmocka_unit_test(of_gradients), cmocka_unit_test(of_two), cmocka_unit_test(form), cmocka_unit_test(reductions),
                                        cmocka_unit_test(rows), cmocka_unit_test(products), cmocka_unit_test(tables), cmocka_unit_test(states),
                                        cmocka_unit_test(positions), cmocka_unit_test(long_attention), cmocka_unit_test(shared), cmocka_unit_test(rounding),
                                        cmocka_unit_test(masked_attention), cmocka_unit_test(attention_from_starts), cmocka_unit_test(factors_of_places), cmocka_unit_test(enough) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
