/* test_ops_programs.c: operations together: chains that a planner fuses, chains behind matrix products, and whole small
 * programs. With and without fusion they give the same bits in exact mode. */
#include "ops.h"
#include <stdio.h>

static const hd_dtype floats[] = { HD_F32, HD_F16, HD_BF16 };

/* One more element-wise operation on x, with operands of x's shape, or that broadcast to it. Results stay of a size that
 * f16 holds. */
static hd_value grow(hd_value x, hd_dtype dtype, hd_shape shape) {
    hd_program *p = ops_program();
    hd_shape row = { 1, { shape.dims[shape.rank - 1] } }, column = shape;
    column.dims[shape.rank - 1] = 1;
    const uint32_t which = ops_random(17);
    const hd_shape other_shape = ops_random(3) == 0 ? row : ops_random(3) == 0 ? column : shape;
    const hd_value other = which < 6 ? ops_input(dtype, other_shape, OPS_UNIT) : 0;
    switch (which) {
    case 0: return hd_add(p, x, other);
    case 1: return hd_sub(p, other, x);
    case 2: return hd_mul(p, x, other);
    case 3: return hd_add(p, hd_mul(p, x, other), x);
    case 4: return hd_where(p, hd_less(p, other, x), x, other);
    case 5: return hd_sub(p, x, hd_mul(p, other, other));
    case 6: return hd_scale(p, x, 0.5f, 0.25f);
    case 7: return hd_relu(p, x);
    case 8: return hd_leaky_relu(p, x, 0.125f);
    case 9: return hd_neg(p, x);
    case 10: return hd_abs(p, x);
    case 11: return hd_clip(p, x, -2, 2);
    case 12: return hd_silu(p, x);
    case 13: return hd_tanh(p, x);
    case 14: return hd_sigmoid(p, x);
    case 15: return hd_gelu(p, x);
    default: return hd_mul(p, x, x);
    }
}

static void chains(void) {
    static const hd_shape shapes[] = { { 1, { 67 } }, { 2, { 5, 33 } }, { 3, { 2, 3, 17 } }, { 4, { 2, 1, 3, 9 } } };
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        ops_begin(hd_dtype_name(floats[t]), OPS_UNFUSED);
        for (uint32_t k = 0; k < (t == 0 ? 24 : 10); k++) {
            const hd_shape shape = shapes[k % HDI_COUNT(shapes)];
            hd_value x = ops_input(floats[t], shape, OPS_UNIT);
            const uint32_t length = 2 + k % 9;
            for (uint32_t i = 0; i < length; i++) {
                x = grow(x, floats[t], shape);
                if (i == 3 && k % 8 == 5) ops_case(x); /* read again by what follows */
            }
            ops_case(x);
        }
        ops_end();
    }
    ops_begin("across types", OPS_UNFUSED);
    for (uint32_t k = 0; k < 9; k++) {
        hd_program *p = ops_program();
        const hd_dtype from = floats[k % 3], to = floats[k / 3];
        const hd_value x = ops_input(from, HD_SHAPE(3, 41), OPS_MIDDLE), y = ops_input(to, HD_SHAPE(3, 1), OPS_UNIT), n = ops_input(HD_I32, HD_SHAPE(41), OPS_UNIT);
        ops_case(hd_mul(p, hd_cast(p, hd_silu(p, x), to), y));
        ops_case(hd_cast(p, hd_add(p, hd_cast(p, hd_scale(p, x, 3, 1), HD_I32), n), to));
        ops_case(hd_where(p, hd_equal(p, hd_cast(p, x, HD_I32), n), hd_cast(p, x, to), y));
    }
    ops_end();
}

static void epilogues(void) {
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        ops_begin(hd_dtype_name(floats[t]), OPS_UNFUSED);
        hd_program *p = ops_program();
        for (uint32_t k = 0; k < (t == 0 ? 12 : 6); k++) {
            static const int64_t rows[] = { 1, 3, 20, 33 };
            const int64_t M = rows[k % 4], N = 5 + ops_random(63), K = 1 + ops_random(67);
            const hd_value a = ops_input(floats[t], HD_SHAPE(M, K), OPS_UNIT), b = ops_input(floats[t], k % 2 ? HD_SHAPE(N, K) : HD_SHAPE(K, N), OPS_UNIT);
            const hd_value c = hd_matmul_with(p, a, b, k % 2 ? HD_TRANSPOSE_B : 0);
            const hd_value bias = ops_input(floats[t], HD_SHAPE(N), OPS_UNIT), skip = ops_input(floats[t], HD_SHAPE(M, N), OPS_UNIT);
            if (k % 3 == 0) ops_case(hd_relu(p, hd_add(p, c, bias)));
            if (k % 3 == 1) ops_case(hd_add(p, hd_gelu(p, hd_add(p, c, bias)), skip));
            if (k % 3 == 2) ops_case(hd_mul(p, hd_silu(p, c), hd_scale(p, skip, 0.5f, 1)));
        }
        const hd_value batch = hd_matmul(p, ops_input(floats[t], HD_SHAPE(3, 7, 9), OPS_UNIT), ops_input(floats[t], HD_SHAPE(9, 11), OPS_UNIT));
        ops_case(hd_add(p, batch, ops_input(floats[t], HD_SHAPE(3, 1, 11), OPS_UNIT)));
        ops_end();
    }
}

/* ---- whole programs ---- */

static hd_value weight(hd_dtype dtype, int64_t out, int64_t in) { return ops_input(dtype, HD_SHAPE(out, in), OPS_UNIT); }
static hd_value linear(hd_value x, hd_value w) { return hd_matmul_with(ops_program(), x, w, HD_TRANSPOSE_B); }

/* The feed-forward part of a transformer: two products, a gate, a product back, and the way around. */
static hd_value feed_forward(hd_value x, hd_dtype dtype, hd_dtype w, int64_t n, int64_t inner) {
    hd_program *p = ops_program();
    const hd_value normal = hd_rms_norm(p, x, ops_input(dtype, HD_SHAPE(n), OPS_UNIT), 1e-6f);
    const hd_value gate = hd_silu(p, linear(normal, weight(w, inner, n))), up = linear(normal, weight(w, inner, n));
    return hd_add(p, x, linear(hd_mul(p, gate, up), weight(w, n, inner)));
}

static void programs(void) {
    static const struct { hd_dtype x, w; int64_t T, n, inner; } forms[] = {
        { HD_F32, HD_F32, 1, 33, 67 }, { HD_F32, HD_F32, 9, 64, 96 }, { HD_F16, HD_F16, 5, 32, 65 }, { HD_BF16, HD_BF16, 17, 48, 31 },
        { HD_F32, HD_Q4_0, 1, 64, 128 }, { HD_F32, HD_Q8_0, 12, 96, 32 }, { HD_F16, HD_Q4_K, 3, 256, 512 }, { HD_F32, HD_Q6_K, 20, 256, 256 },
        { HD_F32, HD_Q5_K, 1, 256, 512 }, { HD_F16, HD_Q4_1, 9, 64, 96 },
    };
    for (uint32_t k = 0; k < HDI_COUNT(forms); k++) {
        char name[40];
        snprintf(name, sizeof name, "feed-forward %s %s %d", hd_dtype_name(forms[k].x), hd_dtype_name(forms[k].w), (int)forms[k].T);
        ops_begin(name, OPS_UNFUSED | OPS_UNJUDGED);
        const hd_value x = ops_input(forms[k].x, HD_SHAPE(forms[k].T, forms[k].n), OPS_UNIT);
        ops_case_of(HDI_OP_MATMUL, feed_forward(x, forms[k].x, forms[k].w, forms[k].n, forms[k].inner));
        ops_end();
    }
}

/* What a planner may merge into products of few rows: an rms_norm before several of them, and a second product of the same
 * rows with an activation between; also where it may not, because something else reads the norm. */
static void merged(void) {
    static const int64_t rows[] = { 1, 2, 3, 5, 8, 9 };
    for (uint32_t t = 0; t < HD_I8; t++) {
        const hd_dtype type = (hd_dtype)t;
        if (t == HD_DTYPE_NONE || type == HD_I32 || type == HD_U8 || (ops_has_book(type) && type != HD_IQ2_S)) continue;
        ops_begin(hd_dtype_name(type), OPS_UNFUSED);
        hd_program *p = ops_program();
        for (uint32_t k = 0; k < 2; k++) { /* few: a driver that compiles slowly has a kernel for each */
            const int64_t n = 256 * (1 + k), N = 33 + 2 * ops_random(30);
            const hd_value x = ops_input(HD_F32, HD_SHAPE(rows[(t + 2 * k) % 6], n), k ? OPS_UNIT : OPS_MIDDLE);
            const hd_value normal = hd_rms_norm(p, x, k == 0 ? ops_input(HD_F32, HD_SHAPE(n), OPS_UNIT) : 0, 1e-6f);
            if (k == 0 || t % 2) {
                ops_case(linear(normal, weight(type, N, n)));
                ops_case(hd_add(p, linear(normal, weight(type, N + 3, n)), ops_input(HD_F32, HD_SHAPE(N + 3), OPS_UNIT)));
            } else ops_case(normal);
            const hd_value left = linear(normal, weight(type, N, n)), right = linear(normal, weight(type, N, n));
            ops_case(k % 2 ? hd_mul(p, hd_silu(p, left), right) : hd_mul(p, left, hd_gelu(p, right)));
            const hd_value first = linear(x, weight(type, N, n)), second = linear(x, weight(type, N, n));
            ops_case(hd_sub(p, hd_scale(p, first, 2, 1), second));
        }
        ops_end();
    }
}

/* Attention with a cache: projections, turning, two writes to states, attention, projection back. */
static void blocks(void) {
    static const struct { hd_dtype x, cache; int32_t T, past; } forms[] = { { HD_F32, HD_F32, 1, 6 }, { HD_F32, HD_F16, 5, 3 }, { HD_F16, HD_F16, 4, 0 }, { HD_BF16, HD_BF16, 1, 39 } };
    for (uint32_t k = 0; k < HDI_COUNT(forms); k++) {
        const int64_t T = forms[k].T, n = 48, Hq = 4, Hkv = 2, D = 16, S = 40;
        const hd_dtype x_type = forms[k].x, cache = forms[k].cache;
        int32_t positions[8];
        char name[40];
        snprintf(name, sizeof name, "attention block %s %d", hd_dtype_name(x_type), forms[k].T);
        ops_begin(name, OPS_UNFUSED | OPS_UNJUDGED);
        hd_program *p = ops_program();
        for (int32_t i = 0; i < 8; i++) positions[i] = forms[k].past + i;
        const hd_value x = ops_input(x_type, HD_SHAPE(T, n), OPS_UNIT), past = ops_given(HD_I32, HD_SHAPE(1), &forms[k].past);
        const hd_value where = ops_given(HD_I32, HD_SHAPE(T), positions), normal = hd_rms_norm(p, x, 0, 1e-5f);
        const hd_value q = hd_rope(p, hd_reshape(p, linear(normal, weight(x_type, Hq * D, n)), HD_SHAPE(T, Hq, D)), where, NULL);
        const hd_value key = hd_rope(p, hd_reshape(p, linear(normal, weight(x_type, Hkv * D, n)), HD_SHAPE(T, Hkv, D)), where, NULL);
        const hd_value value = hd_reshape(p, linear(normal, weight(x_type, Hkv * D, n)), HD_SHAPE(T, Hkv, D));
        const hd_value keys = hd_write_rows(p, ops_state(cache, HD_SHAPE(S, Hkv, D), OPS_UNIT), hd_cast(p, key, cache), past);
        const hd_value values = hd_write_rows(p, ops_state(cache, HD_SHAPE(S, Hkv, D), OPS_UNIT), hd_cast(p, value, cache), past);
        const hd_value mixed = hd_reshape(p, hd_attention(p, q, keys, values, past, NULL), HD_SHAPE(T, Hq * D));
        ops_case_of(HDI_OP_ATTENTION, hd_add(p, x, linear(mixed, weight(x_type, n, Hq * D))));
        ops_case_of(HDI_OP_WRITE_ROWS, keys);
        ops_case_of(HDI_OP_WRITE_ROWS, values);
        ops_end();
    }
}

/* The same cache in pages of a pool that three sequences share: heads that are normed, turned and written in one, values
 * that are rounded on the way, and keys that are seen across pages. */
static void paged_blocks(void) {
    static const struct { hd_dtype x, cache; int32_t T, past[3]; } forms[] = {
        { HD_F32, HD_F16, 1, { 63, 64, 100 } }, { HD_F32, HD_F16, 5, { 61, 0, 120 } }, { HD_F32, HD_F32, 3, { 5, 70, 126 } }, { HD_F16, HD_F16, 4, { 62, 128, 0 } }, { HD_BF16, HD_BF16, 2, { 0, 127, 63 } },
        { HD_F32, HD_Q8_0, 1, { 63, 64, 100 } }, { HD_F32, HD_Q4_0, 5, { 61, 0, 120 } } };
    static const int32_t table[] = { 6, 1, 3, 0, 2, 5 };
    for (uint32_t k = 0; k < HDI_COUNT(forms); k++) {
        const bool blocks = hd_dtype_bytes(forms[k].cache, 32) < 64; /* which write_rows itself makes, of whole heads */
        const int64_t B = 3, T = forms[k].T, Hq = 4, Hkv = 2, D = blocks ? 128 : 48;
        char name[40];
        snprintf(name, sizeof name, "pages %s %d", hd_dtype_name(forms[k].x), forms[k].T);
        ops_begin(name, OPS_UNFUSED | OPS_UNJUDGED);
        hd_program *p = ops_program();
        const hd_dtype x_type = forms[k].x, cache = forms[k].cache;
        const hd_value past = ops_given(HD_I32, HD_SHAPE(B), forms[k].past), pages = ops_given(HD_I32, HD_SHAPE(B, 2), table);
        const hd_value weights = ops_input(x_type, HD_SHAPE(D), OPS_UNIT), where = ops_indices(HD_SHAPE(B * T), 0, 5000);
        hd_value key = hd_rope(p, hd_rms_norm(p, ops_input(x_type, HD_SHAPE(B * T, Hkv, D), OPS_UNIT), weights, 1e-5f), where, NULL);
        hd_value value = ops_input(x_type, HD_SHAPE(B * T, Hkv, D), OPS_UNIT);
        value = hd_scale(p, value, 0.5f, 0);
        key = hd_reshape(p, blocks ? key : hd_cast(p, key, cache), HD_SHAPE(B, T, Hkv, D));
        value = hd_reshape(p, blocks ? value : hd_cast(p, value, cache), HD_SHAPE(B, T, Hkv, D));
        const hd_value keys = hd_write_pages(p, ops_state(cache, HD_SHAPE(7, 64, Hkv, D), OPS_UNIT), key, past, pages);
        const hd_value values = hd_write_pages(p, ops_state(cache, HD_SHAPE(7, 64, Hkv, D), OPS_UNIT), value, past, pages);
        const hd_value q = ops_input(x_type, HD_SHAPE(B, T, Hq, D), OPS_UNIT);
        ops_case(hd_attention(p, q, keys, values, past, &(hd_attention_desc){ .pages = pages }));
        ops_case_of(HDI_OP_WRITE_ROWS, blocks ? hd_cast(p, keys, HD_F32) : keys);
        ops_case_of(HDI_OP_WRITE_ROWS, blocks ? hd_cast(p, values, HD_F32) : values);
        ops_end();
    }
}

/* What a planner joins to one kernel a head: a norm, a turn, a cast and rows of a state. Each with and without the others,
 * sequences at places of their own, and once with a second reader, which keeps them apart. */
static void heads(void) {
    static const hd_dtype caches[] = { HD_F32, HD_F16, HD_BF16 };
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        ops_begin(hd_dtype_name(floats[t]), OPS_UNFUSED | OPS_UNJUDGED);
        hd_program *p = ops_program();
        for (uint32_t k = 0; k < 16; k++) {
            static const int64_t sizes[] = { 6, 64, 37, 128, 300 };
            const hd_dtype x_type = floats[t], cache = caches[k / 2 % 3];
            const int64_t B = k % 4 == 3 ? 2 : 1, T = 1 + ops_random(3), H = 1 + ops_random(3), D = sizes[k % 5], S = 9;
            const hd_rope_desc desc = { .dims = (uint32_t)D / 2 * 2, .pairing = (hd_rope_pairing)(k / 3 % 2) };
            hd_value x = ops_input(x_type, HD_SHAPE(B * T, H * D), OPS_MIDDLE);
            x = hd_reshape(p, x, HD_SHAPE(B * T, H, D));
            if (k % 3 != 2) x = hd_rms_norm(p, x, k % 3 ? ops_input(x_type, HD_SHAPE(D), OPS_UNIT) : 0, 1e-5f);
            x = hd_rope(p, x, ops_indices(HD_SHAPE(B * T), 0, 5000), &desc);
            if (k == 7) ops_case(x);
            if (cache != x_type && (k % 5 != 1 || x_type != HD_F32)) x = hd_cast(p, x, cache);
            x = hd_reshape(p, x, B > 1 ? HD_SHAPE(B, T, H, D) : HD_SHAPE(T, H * D));
            const hd_value at = ops_indices(HD_SHAPE(B), k < 8 ? 0 : -2, (int32_t)S);
            if (k % 8 == 6) ops_case(hd_cast(p, x, HD_F16)); /* no state */
            else ops_case_of(HDI_OP_ROPE, hd_write_rows(p, ops_state(cache, B > 1 ? HD_SHAPE(B, S, H, D) : HD_SHAPE(S, H * D), OPS_UNIT), x, at));
        }
        for (uint32_t k = 0; k < 12 && floats[t] == HD_F32; k++) { /* rows of blocks, at the ends of the state and over them */
            static const int64_t sizes[] = { 64, 128, 32 };
            const int64_t B = k % 4 == 3 ? 2 : 1, T = 1 + ops_random(3), H = 1 + ops_random(3), D = sizes[k % 3], S = 9;
            const hd_rope_desc desc = { .pairing = (hd_rope_pairing)(k / 3 % 2) };
            hd_value x = ops_input(HD_F32, HD_SHAPE(B * T, H, D), OPS_MIDDLE);
            if (k % 2) x = hd_rms_norm(p, x, ops_input(HD_F32, HD_SHAPE(D), OPS_UNIT), 1e-5f);
            x = hd_reshape(p, hd_rope(p, x, ops_indices(HD_SHAPE(B * T), 0, 5000), &desc), HD_SHAPE(B, T, H, D));
            const hd_value state = ops_state(k < 6 ? HD_Q8_0 : HD_Q4_0, HD_SHAPE(B, S, H, D), OPS_UNIT);
            ops_case_of(HDI_OP_ROPE, hd_cast(p, hd_write_rows(p, state, x, ops_indices(HD_SHAPE(B), -2, (int32_t)S)), HD_F32));
        }
        /* A state that is read, then written before the turned rows are: the reading comes first. */
        const hd_value state = ops_state(floats[t], HD_SHAPE(4, 2, 8), OPS_UNIT), zero = ops_indices(HD_SHAPE(1), 0, 0);
        const hd_value turned = hd_rope(p, hd_rms_norm(p, state, 0, 1e-5f), ops_indices(HD_SHAPE(4), 0, 9), NULL);
        const hd_value written = hd_write_rows(p, state, ops_input(floats[t], HD_SHAPE(2, 2, 8), OPS_UNIT), zero);
        ops_case_of(HDI_OP_WRITE_ROWS, hd_write_rows(p, written, hd_slice(p, turned, (int64_t[]){ 1, 0, 0 }, (int64_t[]){ 3, 2, 8 }, 3), zero));
        ops_end();
    }
}

/* Tokens to a loss: a table, layers, logits, cross entropy, and the softmax of the last row. */
static void whole_models(void) {
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        ops_begin(hd_dtype_name(floats[t]), OPS_UNFUSED | OPS_UNJUDGED);
        hd_program *p = ops_program();
        const int64_t T = 6, V = 67, n = 32;
        const hd_value table = ops_input(floats[t], HD_SHAPE(V, n), OPS_UNIT), tokens = ops_indices(HD_SHAPE(T), 0, (int32_t)V - 1);
        hd_value x = hd_gather(p, table, tokens);
        for (uint32_t layer = 0; layer < 3; layer++) x = feed_forward(x, floats[t], floats[t], n, 50);
        const hd_value logits = linear(hd_layer_norm(p, x, 0, ops_input(floats[t], HD_SHAPE(n), OPS_UNIT), 1e-5f), table);
        const hd_value last = hd_slice(p, logits, (int64_t[]){ T - 1, 0 }, (int64_t[]){ T, V }, 2);
        ops_case_of(HDI_OP_MEAN, hd_mean(p, hd_cross_entropy(p, logits, ops_indices(HD_SHAPE(T), 0, (int32_t)V - 1)), HD_ALL_AXES));
        ops_case(hd_softmax(p, last, -1));
        ops_case(logits);
        ops_end();
    }
}

int main(int argc, char **argv) {
    static const ops_test tests[] = { { "chains", chains }, { "epilogues", epilogues }, { "feed-forward", programs }, { "merged", merged }, { "attention blocks", blocks }, { "blocks in pages", paged_blocks }, { "heads", heads }, { "models", whole_models } };
    return ops_main("programs", tests, HDI_COUNT(tests), argc, argv);
}
