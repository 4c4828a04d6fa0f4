/* test_ops_tables.c: tables (gather, scatters, write_rows), rotary embedding and attention with grouped heads. */
#include "ops.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const hd_dtype floats[] = { HD_F32, HD_F16, HD_BF16 };
static const hd_dtype plain[] = { HD_F32, HD_F16, HD_BF16, HD_I32, HD_U8 };

static void gathers(void) {
    static const hd_shape indices[] = { { 0, { 0 } }, { 1, { 1 } }, { 1, { 9 } }, { 2, { 3, 5 } }, { 3, { 2, 1, 7 } }, { 5, { 1, 2, 1, 3, 2 } } };
    for (hd_dtype t = HD_F32; t < HD_I8; t++) {
        ops_begin(hd_dtype_name(t), 0);
        const int64_t block = hdi_dtype(t).block_elements;
        for (uint32_t i = 0; i < (ops_has_book(t) ? 1 : HDI_COUNT(indices)); i++)
            for (uint32_t k = 0; k < 3; k++) {
                const int64_t rows = k == 0 ? 1 : 3 + ops_random(30), n = block > 1 ? block * (1 + k) : k == 0 ? 1 + (int64_t)i : 2 + ops_random(70);
                ops_case(hd_gather(ops_program(), ops_input(t, HD_SHAPE(rows, n), OPS_WIDE), ops_indices(indices[i], k == 2 ? -3 : 0, (int32_t)rows + (k == 2 ? 2 : -1))));
            }
        const int32_t far[] = { INT32_MIN, INT32_MAX, -1, 0, 4, 5, 1 << 30 };
        ops_case(hd_gather(ops_program(), ops_input(t, HD_SHAPE(5, block * 3), OPS_WIDE), ops_given(HD_I32, HD_SHAPE(7), far)));
        ops_end();
    }
}

static void scatters(void) {
    static hd_value (*const build[])(hd_program *, hd_value, hd_value, hd_value) = { hd_scatter_add, hd_scatter_mul, hd_scatter_max, hd_scatter_min };
    for (uint32_t t = 0; t < 4; t++)
        for (uint32_t i = 0; i < HDI_COUNT(build); i++) {
            const hd_dtype dtype = plain[t];
            ops_begin(hd_dtype_name(dtype), 0);
            for (uint32_t k = 0; k < (i == 0 ? 24 : 12); k++) {
                const int64_t rows = 1 + ops_random(12), n = k % 3 == 0 ? 1 + ops_random(5) : 1 + ops_random(300), count = 1 + ops_random(k % 2 ? 8 : 60);
                const ops_fill fill = dtype == HD_I32 ? OPS_WIDE : i == 1 ? OPS_UNIT : OPS_MIDDLE;
                const hd_value base = ops_input(dtype, HD_SHAPE(rows, n), fill), updates = ops_input(dtype, HD_SHAPE(count, n), fill);
                /* Many indices are equal; a third of the cases has some outside. */
                ops_case(build[i](ops_program(), base, ops_indices(HD_SHAPE(count), k % 3 == 2 ? -2 : 0, (int32_t)rows - (k % 3 == 2 ? -1 : 1)), updates));
            }
            if (t == 0 || i == 0) { /* so many that they are sorted first; of rows there are some that none names */
                const int64_t rows = 700, n = 1 + ops_random(70), count = 1025 + ops_random(400);
                const ops_fill fill = dtype == HD_I32 ? OPS_WIDE : OPS_UNIT;
                const hd_value base = ops_input(dtype, HD_SHAPE(rows, n), fill), updates = ops_input(dtype, HD_SHAPE(count, n), fill);
                ops_case(build[i](ops_program(), base, ops_indices(HD_SHAPE(count), -3, (int32_t)rows - 20), updates));
            }
            ops_end();
            ops_begin(hd_dtype_name(dtype), OPS_EXACT_ONLY);
            ops_case(build[i](ops_program(), ops_input(dtype, HD_SHAPE(3, 40), OPS_SPECIAL), ops_indices(HD_SHAPE(5), 0, 2), ops_input(dtype, HD_SHAPE(5, 40), OPS_SPECIAL)));
            ops_end();
        }
}

static void writes(void) {
    static const int32_t positions[] = { 0, 1, 3, 7, 8, -2, -9, 100, INT32_MIN, INT32_MAX };
    for (uint32_t t = 0; t < HDI_COUNT(plain); t++) {
        ops_begin(hd_dtype_name(plain[t]), 0);
        hd_program *p = ops_program();
        for (uint32_t k = 0; k < HDI_COUNT(positions); k++) {
            const int64_t n = 1 + ops_random(9);
            const bool deep = k % 2;
            const hd_value state = ops_state(plain[t], deep ? HD_SHAPE(8, 3, n) : HD_SHAPE(8, n), OPS_WIDE);
            const hd_value rows = ops_input(plain[t], deep ? HD_SHAPE(1 + k % 4, 3, n) : HD_SHAPE(1 + k % 4, n), OPS_WIDE);
            ops_case(hd_write_rows(p, state, rows, ops_given(HD_I32, HD_SHAPE(1), &positions[k])));
        }
        /* What read the state before it was overwritten still has the old rows. */
        const int32_t two = 2, five = 5;
        const hd_value state = ops_state(plain[t], HD_SHAPE(8, 5), OPS_WIDE);
        const hd_value old = hd_slice(p, state, (int64_t[]){ 1, 0 }, (int64_t[]){ 6, 4 }, 2);
        const hd_value first = hd_write_rows(p, state, ops_input(plain[t], HD_SHAPE(3, 5), OPS_WIDE), ops_given(HD_I32, HD_SHAPE(1), &two));
        const hd_value middle = hd_copy(p, first);
        const hd_value last = hd_write_rows(p, first, ops_input(plain[t], HD_SHAPE(2, 5), OPS_WIDE), ops_given(HD_I32, HD_SHAPE(1), &five));
        ops_case_of(HDI_OP_WRITE_ROWS, last);
        ops_case_of(HDI_OP_WRITE_ROWS, middle);
        ops_case_of(HDI_OP_WRITE_ROWS, old);
        /* Each sequence at its own place: words that two of them share, rows outside, one sequence alone. */
        for (uint32_t k = 0; k < 8; k++) {
            const int64_t B = k == 7 ? 1 : 2 + ops_random(3), S = 4 + ops_random(3), n = 1 + ops_random(5), T = k == 6 ? S : 1 + ops_random(3);
            const hd_value batch = ops_state(plain[t], k % 2 ? HD_SHAPE(B, S, 2, n) : HD_SHAPE(B, S, n), OPS_WIDE);
            const hd_value rows = ops_input(plain[t], k % 2 ? HD_SHAPE(B, T, 2, n) : HD_SHAPE(B, T, n), OPS_WIDE);
            ops_case(hd_write_rows(p, batch, rows, ops_indices(HD_SHAPE(B), k < 4 ? 0 : -2, (int32_t)(k < 4 ? S - T : S + 1))));
        }
        for (uint32_t k = 0; k < 6 && (plain[t] == HD_F16 || plain[t] == HD_BF16); k++) { /* rounded on the way */
            const int64_t n = 1 + ops_random(40), B = 2;
            const hd_value narrow = ops_state(plain[t], k % 2 ? HD_SHAPE(B, 8, n) : HD_SHAPE(8, n), OPS_WIDE);
            const hd_value rows = ops_input(HD_F32, k % 2 ? HD_SHAPE(B, 3, n) : HD_SHAPE(3, n), k < 4 ? OPS_WIDE : OPS_MIDDLE);
            ops_case(hd_write_rows(p, narrow, rows, ops_indices(HD_SHAPE(k % 2 ? B : 1), -1, 6)));
        }
        ops_end();
    }
}

/* A state's new content from elsewhere, from its own old one by way of an operation or a view, and twice in a program; what
 * read the old content still has it. */
static void assigns(void) {
    for (uint32_t t = 0; t < HDI_COUNT(plain); t++) {
        ops_begin(hd_dtype_name(plain[t]), OPS_UNFUSED);
        hd_program *p = ops_program();
        for (uint32_t k = 0; k < 8; k++) {
            const int64_t n = 1 + ops_random(70);
            const hd_shape shape = k == 0 ? (hd_shape){ 0, { 0 } } : k == 1 ? HD_SHAPE(n) : k == 2 ? HD_SHAPE(16, 64) : HD_SHAPE(k, 3, n);
            ops_case(hd_assign(p, ops_state(plain[t], shape, OPS_WIDE), ops_input(plain[t], shape, OPS_WIDE)));
        }
        const uint32_t swapped[] = { 1, 0 };
        const hd_value state = ops_state(plain[t], HD_SHAPE(7, 7), OPS_UNIT), x = ops_input(plain[t], HD_SHAPE(7, 7), OPS_UNIT);
        const hd_value old = hd_slice(p, state, (int64_t[]){ 1, 0 }, (int64_t[]){ 6, 4 }, 2);
        const hd_value turned = hd_assign(p, state, hd_permute(p, state, swapped, 2)), middle = hd_copy(p, turned);
        const hd_value where = hd_where(p, hd_less(p, turned, x), turned, x);
        const hd_value last = hd_assign(p, turned, where);
        ops_case_of(HDI_OP_ASSIGN, hd_assign(p, ops_state(plain[t], HD_SHAPE(5, 4), OPS_UNIT), old));
        ops_case_of(HDI_OP_ASSIGN, old);
        ops_case_of(HDI_OP_ASSIGN, middle);
        ops_case_of(HDI_OP_ASSIGN, last);
        if (plain[t] != HD_U8) { /* a running sum */
            const hd_value sum = ops_state(plain[t], HD_SHAPE(33), OPS_UNIT);
            ops_case(hd_assign(p, sum, hd_add(p, sum, ops_input(plain[t], HD_SHAPE(33), OPS_UNIT))));
            /* what is read where it is not written, and what others still read */
            const hd_value grid = ops_state(plain[t], HD_SHAPE(40, 40), OPS_UNIT), rows = ops_state(plain[t], HD_SHAPE(40, 40), OPS_UNIT);
            ops_case(hd_assign(p, grid, hd_add(p, grid, hd_permute(p, grid, swapped, 2))));
            const hd_value first = hd_slice(p, rows, (int64_t[]){ 0, 0 }, (int64_t[]){ 1, 40 }, 2), kept = hd_neg(p, rows);
            ops_case(hd_assign(p, rows, hd_sub(p, rows, first)));
            ops_case_of(HDI_OP_ASSIGN, hd_add(p, kept, first));
        }
        ops_end();
    }
}

/* Words of every length around the four that are drawn at once, of any seed, step and stream. */
static void draws(void) {
    ops_begin("i32", OPS_UNFUSED);
    for (uint32_t k = 0; k < 24; k++) {
        const hd_shape shape = k == 0 ? (hd_shape){ 0, { 0 } } : k < 10 ? HD_SHAPE(k) : HD_SHAPE(1 + ops_random(5), 1 + ops_random(2100), k % 4 + 1);
        ops_case(hd_random(ops_program(), ops_input(HD_I32, HD_SHAPE(4), OPS_WIDE), k % 3 ? ops_random(UINT32_MAX) : k, shape));
    }
    const int32_t zeros[4] = { 0 }, ones[4] = { -1, -1, -1, -1 };
    ops_case(hd_random(ops_program(), ops_given(HD_I32, HD_SHAPE(4), zeros), 0, HD_SHAPE(8193)));
    ops_case(hd_random(ops_program(), ops_given(HD_I32, HD_SHAPE(4), ones), UINT32_MAX, HD_SHAPE(3, 3)));
    ops_end();
}

/* A table of pages [P] or [B,P] of a pool of N, none twice. Hostile: some numbers are of no page. */
static hd_value page_table(int64_t B, int64_t P, int64_t N, bool batched, bool hostile) {
    int32_t numbers[64], table[64];
    for (int32_t i = 0; i < (int32_t)N; i++) numbers[i] = i;
    for (int64_t i = 0; i < B * P; i++) {
        const int64_t other = i + ops_random((uint32_t)(N - i));
        table[i] = numbers[other];
        numbers[other] = numbers[i];
        const int32_t none[] = { -1, (int32_t)N, INT32_MIN, INT32_MAX };
        if (hostile && ops_random(3) == 0) table[i] = none[ops_random(4)];
    }
    return ops_given(HD_I32, batched ? HD_SHAPE(B, P) : HD_SHAPE(P), table);
}

/* Rows across pages that lie anywhere, sequences at places of their own, tables with numbers of no page. */
static void writes_to_pages(void) {
    for (uint32_t t = 0; t < HDI_COUNT(plain); t++) {
        ops_begin(hd_dtype_name(plain[t]), 0);
        hd_program *p = ops_program();
        for (uint32_t k = 0; k < 12; k++) {
            const bool batched = k % 3 != 0, deep = k % 2, wide = k % 4 == 3 && (plain[t] == HD_F16 || plain[t] == HD_BF16);
            const int64_t R = k == 5 ? 256 : 64, B = batched ? 1 + ops_random(3) : 1, P = 1 + ops_random(3), N = B * P + ops_random(3), n = 1 + ops_random(7);
            const int64_t T = k % 6 == 4 ? P * R : 1 + ops_random(k < 6 ? 5 : 70);
            const hd_value state = ops_state(plain[t], deep ? HD_SHAPE(N, R, 2, n) : HD_SHAPE(N, R, n), OPS_WIDE);
            const hd_shape one = deep ? HD_SHAPE(T, 2, n) : HD_SHAPE(T, n), several = deep ? HD_SHAPE(B, T, 2, n) : HD_SHAPE(B, T, n);
            const hd_value rows = ops_input(wide ? HD_F32 : plain[t], batched ? several : one, OPS_WIDE);
            const hd_value at = ops_indices(HD_SHAPE(B), k < 9 ? 0 : -3, (int32_t)(P * R + 1));
            ops_case(hd_write_pages(p, state, rows, at, page_table(B, P, N, batched, k % 5 == 4)));
        }
        ops_end();
    }
}

/* The types with blocks that a state may have. Rows of an odd number of blocks share words with their neighbours; in the end a cast
 * shows the state, since no output has such a type. */
static const hd_dtype block_types[] = { HD_Q8_0, HD_Q4_0 };
static void write_blocks(void) {
    static const ops_fill fills[] = { OPS_UNIT, OPS_WIDE, OPS_WHOLE, OPS_SPECIAL, OPS_TINY };
    for (uint32_t t = 0; t < HDI_COUNT(block_types); t++)
        for (uint32_t f = 0; f < HDI_COUNT(fills); f++) {
            const hd_dtype dtype = block_types[t];
            ops_begin(hd_dtype_name(dtype), f < 3 ? 0 : OPS_EXACT_ONLY);
            hd_program *p = ops_program();
            for (uint32_t k = 0; k < 6; k++) {
                const int64_t n = 32 * (1 + ops_random(5)), B = 2 + ops_random(2), T = 1 + ops_random(4), P = 2, N = 5;
                const bool batched = k % 2, paged = k >= 3;
                const hd_shape one = paged ? HD_SHAPE(N, 64, n) : k == 2 ? HD_SHAPE(9, 3, n) : HD_SHAPE(9, n);
                const hd_value state = ops_state(dtype, batched && !paged ? HD_SHAPE(B, 9, 2, n) : one, OPS_UNIT);
                const hd_shape rows = batched ? (paged ? HD_SHAPE(B, T, n) : HD_SHAPE(B, T, 2, n)) : k == 2 ? HD_SHAPE(T, 3, n) : HD_SHAPE(T, n);
                const hd_value x = ops_input(HD_F32, rows, fills[f]), at = ops_indices(HD_SHAPE(batched ? B : 1), -2, paged ? 70 : 8);
                const hd_value table = paged ? page_table(batched ? B : 1, P, N + 1, batched, false) : 0;
                const hd_value written = paged ? hd_write_pages(p, state, x, at, table) : hd_write_rows(p, state, x, at);
                ops_case_of(HDI_OP_WRITE_ROWS, hd_cast(p, written, HD_F32));
            }
            ops_end();
        }
}

static void ropes(void) {
    static const int32_t sets[][4] = { { 0, 1, 2, 3 }, { 5, 4, 3, 2 }, { -1, -7, -1000, 0 }, { 4095, 32767, 131071, 1000000 }, { INT32_MAX, INT32_MIN, 1 << 30, 16777217 } };
    static const int64_t heads[] = { 2, 4, 6, 64, 66, 128, 258 };
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        ops_begin(hd_dtype_name(floats[t]), 0);
        for (uint32_t pairing = 0; pairing < 2; pairing++)
            for (uint32_t k = 0; k < 5 * HDI_COUNT(heads); k++) {
                float factors[256];
                const int64_t D = heads[k % HDI_COUNT(heads)];
                const uint32_t set = k / (uint32_t)HDI_COUNT(heads);
                hd_rope_desc desc = { .pairing = (hd_rope_pairing)pairing };
                for (uint32_t i = 0; i < 256; i++) factors[i] = 1 + (float)ops_random(64) / 8;
                if (k % 3 == 1) desc.theta = 1000000, desc.magnitude = 1.19f;
                if (k % 4 == 2) desc.dims = (uint32_t)D / 4 * 2 + 2 <= (uint32_t)D ? (uint32_t)D / 4 * 2 + 2 : 2;
                if (k % 5 == 3) desc.frequency_scale = 0.25f;
                if (k % 6 == 4) desc.factors = factors;
                const hd_value positions = ops_given(HD_I32, HD_SHAPE(4), sets[set]);
                const hd_shape shape = k % 2 ? HD_SHAPE(4, 3, D) : HD_SHAPE(2, 4, 1, D);
                ops_case(hd_rope(ops_program(), ops_input(floats[t], shape, OPS_MIDDLE), positions, k % 7 == 0 && pairing == 0 ? NULL : &desc));
            }
        ops_end();
    }
}

/* Many queries and few, one tile of keys and several, heads of any size. */
static void attentions(void) {
    static const int64_t sizes[] = { 1, 2, 3, 5, 8, 16, 31, 32, 33, 64, 80, 96, 128 };
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++)
        for (uint32_t kv = 0; kv < HDI_COUNT(floats); kv++) {
            char name[32];
            snprintf(name, sizeof name, "%s over %s", hd_dtype_name(floats[t]), hd_dtype_name(floats[kv]));
            ops_begin(name, 0);
            hd_program *p = ops_program();
            for (uint32_t k = 0; k < (t != kv ? 4 : t == 0 ? 39 : 26); k++) {
                const int64_t D = sizes[k % HDI_COUNT(sizes)], Hkv = 1 + ops_random(3), Hq = Hkv * (1 + ops_random(4));
                const int64_t T = k % 3 == 0 ? 1 : 1 + ops_random(9), S = T + ops_random(k % 4 == 0 ? 100 : 20), B = 1 + ops_random(3);
                const bool batched = k % 5 == 1;
                const hd_attention_desc desc = { .scale = k % 4 == 1 ? 0.3f : 0, .not_causal = k % 6 == 2 };
                const hd_value q = ops_input(floats[t], batched ? HD_SHAPE(B, T, Hq, D) : HD_SHAPE(T, Hq, D), OPS_UNIT);
                const hd_value keys = ops_input(floats[kv], batched ? HD_SHAPE(B, S, Hkv, D) : HD_SHAPE(S, Hkv, D), OPS_UNIT);
                const hd_value values = ops_input(floats[kv], batched ? HD_SHAPE(B, S, Hkv, D) : HD_SHAPE(S, Hkv, D), OPS_UNIT);
                const hd_value past = k % 4 == 3 ? 0 : ops_indices(HD_SHAPE(batched ? B : 1), 0, (int32_t)(S - T));
                ops_case(hd_attention(p, q, keys, values, past, k % 7 == 0 ? NULL : &desc));
            }
            ops_end();
        }
    /* One query over many keys, which a GPU cuts into parts; heads of every width; no key at all in one sequence. */
    static const struct { hd_dtype q, kv; int64_t B, T, S, Hq, Hkv, D; } longer[] = {
        { HD_F32, HD_F16, 1, 1, 300, 4, 1, 128 }, { HD_F32, HD_F16, 2, 1, 1000, 2, 2, 64 }, { HD_F16, HD_F16, 1, 3, 200, 6, 2, 80 },
        { HD_F32, HD_F32, 1, 2, 150, 2, 1, 40 },  { HD_BF16, HD_BF16, 3, 1, 130, 3, 1, 67 }, { HD_F32, HD_F16, 1, 1, 100, 2, 1, 300 },
        { HD_F32, HD_BF16, 1, 1, 70, 1, 1, 512 }, { HD_F32, HD_F16, 2, 70, 90, 8, 4, 64 },   { HD_F32, HD_F16, 3, 67, 67, 6, 6, 24 },
        { HD_F16, HD_F16, 1, 130, 200, 16, 8, 80 }, { HD_BF16, HD_F16, 5, 64, 64, 8, 8, 17 }, { HD_F32, HD_F16, 1, 40, 100, 32, 16, 256 },
        { HD_F32, HD_F32, 2, 67, 67, 6, 6, 24 }, { HD_F32, HD_F32, 3, 70, 70, 4, 2, 64 },    { HD_F32, HD_F32, 3, 40, 40, 6, 3, 100 },
    };
    for (uint32_t k = 0; k < HDI_COUNT(longer); k++) {
        ops_begin("long", 0);
        const int64_t B = longer[k].B, T = longer[k].T, S = longer[k].S, D = longer[k].D;
        const hd_shape q = HD_SHAPE(B, T, longer[k].Hq, D), kv = HD_SHAPE(B, S, longer[k].Hkv, D);
        const hd_value past = S == T ? 0 : ops_indices(HD_SHAPE(B), k == 1 ? -1 : 0, (int32_t)(S - T));
        ops_case(hd_attention(ops_program(), ops_input(longer[k].q, q, OPS_UNIT), ops_input(longer[k].kv, kv, OPS_UNIT), ops_input(longer[k].kv, kv, OPS_UNIT),
                              past, &(hd_attention_desc){ .not_causal = k % 5 == 4, .bf16 = longer[k].kv == HD_F32 && T > 64 }));
        ops_end();
    }
    for (uint32_t kv = 0; kv < HDI_COUNT(floats); kv++) { /* in pages that lie anywhere, of which two sequences may share one */
        ops_begin(hd_dtype_name(floats[kv]), 0);
        for (uint32_t k = 0; k < 20; k++) {
            ops_split(5);
            const int64_t D = k < HDI_COUNT(sizes) ? sizes[k] : 64 + 64 * (k % 3), R = k % 4 == 3 ? 256 : 64, Hkv = 1 + ops_random(2), Hq = Hkv * (1 + ops_random(2));
            const bool batched = k % 3 == 1;
            const int64_t B = batched ? 1 + ops_random(2) : 1, P = 1 + ops_random(R == 64 ? 3 : 2), N = 2 * P + 1, T = k % 10 == 2 ? 40 : 1 + ops_random(k % 2 ? 5 : 1);
            const hd_shape pool = HD_SHAPE(N, R, Hkv, D);
            const hd_value q = ops_input(k % 4 == 2 ? floats[kv] : HD_F32, batched ? HD_SHAPE(B, T, Hq, D) : HD_SHAPE(T, Hq, D), OPS_UNIT);
            const hd_value keys = ops_input(floats[kv], pool, OPS_UNIT), values = ops_input(floats[kv], pool, OPS_UNIT);
            const hd_value past = k % 6 == 5 ? 0 : ops_indices(HD_SHAPE(B), k % 7 == 3 ? -2 : 0, (int32_t)(P * R - T));
            const hd_value table = k % 8 == 7 ? ops_indices(batched ? HD_SHAPE(B, P) : HD_SHAPE(P), 0, (int32_t)N - 1) : page_table(B, P, N, batched, k % 8 == 6);
            ops_case(hd_attention(ops_program(), q, keys, values, past, &(hd_attention_desc){ .pages = table, .not_causal = k % 9 == 4 }));
        }
        ops_end();
    }
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) { /* scores that are far apart, past before the start and behind the end */
        static const int32_t pasts[] = { 0, 3, 60, 1000, -2, -100 };
        ops_begin(hd_dtype_name(floats[t]), 0);
        for (uint32_t k = 0; k < HDI_COUNT(pasts); k++) {
            const hd_value q = ops_input(floats[t], HD_SHAPE(4, 2, 16), OPS_MIDDLE), keys = ops_input(floats[t], HD_SHAPE(64, 1, 16), OPS_MIDDLE);
            ops_case(hd_attention(ops_program(), q, keys, ops_input(floats[t], HD_SHAPE(64, 1, 16), OPS_WHOLE), ops_given(HD_I32, HD_SHAPE(1), &pasts[k]), NULL));
        }
        ops_end();
    }
}

/* Keys and values in blocks: one query, few and many, in pages or not, plain and with a window, a cap and sinks at once; read as
 * given, and as written before. Kernels are compiled for few kinds of cases, as that takes seconds on a processor. */
static void attentions_over_blocks(void) {
    for (uint32_t t = 0; t < 2 * HDI_COUNT(block_types); t++) {
        const hd_dtype kv_type = block_types[t / 2];
        const bool paged = t % 2 == 1;
        char name[48];
        snprintf(name, sizeof name, "over %s%s", hd_dtype_name(kv_type), paged ? " in pages" : "");
        ops_begin(name, 0);
        for (uint32_t k = 0; k < 6; k++) {
            ops_split(3);
            const bool formed = k >= 3;
            const int64_t D = formed ? 32 : 96, Hkv = 1 + ops_random(2), Hq = Hkv * (1 + ops_random(3)), B = 1 + k % 2;
            const int64_t T = k % 3 == 0 ? 1 : k % 3 == 1 ? 1 + ops_random(6) : 60 + ops_random(20), P = 1 + T / 64 + ops_random(4);
            const int64_t S = paged ? 64 * P : T + ops_random(150), N = 2 * P + 1;
            const hd_shape kv = paged ? HD_SHAPE(N, 64, Hkv, D) : HD_SHAPE(B, S, Hkv, D);
            const hd_value q = ops_input(formed && t == 0 ? HD_F16 : HD_F32, HD_SHAPE(B, T, Hq, D), OPS_UNIT);
            const hd_value past = S == T ? 0 : ops_indices(HD_SHAPE(B), 0, (int32_t)(S - T)), table = paged ? page_table(B, P, N, true, false) : 0;
            const hd_attention_desc desc = { .window = formed ? 33 : 0, .cap = formed ? 30 : 0, .not_causal = k == 1,
                .sinks = formed ? ops_input(HD_F32, HD_SHAPE(Hq), OPS_UNIT) : 0, .pages = table };
            hd_value caches[2];
            for (uint32_t i = 0; i < 2; i++) {
                const hd_value rows = k % 2 == 0 || !past ? 0 : ops_input(HD_F32, HD_SHAPE(B, T, Hkv, D), OPS_UNIT);
                caches[i] = rows ? ops_state(kv_type, kv, OPS_UNIT) : ops_input(kv_type, kv, OPS_UNIT);
                if (rows) caches[i] = paged ? hd_write_pages(ops_program(), caches[i], rows, past, table) : hd_write_rows(ops_program(), caches[i], rows, past);
            }
            ops_case(hd_attention(ops_program(), q, caches[0], caches[1], past, &desc));
        }
        ops_end();
    }
}

/* Windows, caps and sinks, alone and together: many queries and few, in pages or not, and one key or none to see. */
static void attention_forms(void) {
    static const uint32_t windows[] = { 0, 1, 5, 31, 32, 33, 100, 1000 };
    static const int64_t sizes[] = { 16, 64, 80, 33, 128 };
    for (uint32_t t = 0; t < 2 * HDI_COUNT(floats); t++) {
        const hd_dtype kv_type = floats[t / 2];
        const bool paged = t % 2 == 1;
        char name[48];
        snprintf(name, sizeof name, "forms over %s%s", hd_dtype_name(kv_type), paged ? " in pages" : "");
        ops_begin(name, 0);
        for (uint32_t k = 0; k < 24; k++) {
            ops_split(6);
            const int64_t D = sizes[k % 5], Hkv = 1 + ops_random(2), Hq = Hkv * (1 + ops_random(4)), B = 1 + k % 2;
            const int64_t T = k % 3 == 0 ? 1 : k % 3 == 1 ? 1 + ops_random(6) : 60 + ops_random(40), P = 1 + T / 64 + ops_random(4);
            const int64_t S = paged ? 64 * P : T + ops_random(150), N = 2 * P;
            const hd_shape kv = paged ? HD_SHAPE(N, 64, Hkv, D) : HD_SHAPE(B, S, Hkv, D);
            const hd_value q = ops_input(HD_F32, HD_SHAPE(B, T, Hq, D), OPS_UNIT), keys = ops_input(kv_type, kv, OPS_UNIT);
            const hd_value values = ops_input(kv_type, kv, OPS_UNIT);
            const hd_value past = S == T ? 0 : ops_indices(HD_SHAPE(B), k == 12 ? -2 : 0, (int32_t)(k == 13 ? S + 9 : S - T));
            const hd_attention_desc desc = { .window = windows[k % 8], .cap = k % 3 == 0 ? 0 : k % 3 == 1 ? 0.5f : 30, .not_causal = k % 11 == 7,
                .scale = k % 5 == 2 ? 2 : 0, .sinks = k % 4 < 2 ? 0 : ops_input(HD_F32, HD_SHAPE(Hq), OPS_UNIT), .pages = paged ? page_table(B, P, N, true, false) : 0 };
            ops_case(hd_attention(ops_program(), q, keys, values, past, &desc));
        }
        ops_end();
    }
}

/* A mask of every shape that broadcasts, with keys that it hides, and first keys of queries, in any order and past what is seen; each
 * with the other forms beside it. */
static void masked_attention(void) {
    static const int64_t sizes[] = { 16, 64, 80, 33, 128 };
    for (uint32_t t = 0; t < HDI_COUNT(floats); t++) {
        char name[48];
        snprintf(name, sizeof name, "mask and starts over %s", hd_dtype_name(floats[t]));
        ops_begin(name, 0);
        for (uint32_t k = 0; k < 32; k++) {
            ops_split(6);
            const int64_t D = sizes[k % 5], Hkv = 1 + ops_random(2), Hq = Hkv * (1 + ops_random(4)), B = 1 + k % 2;
            const int64_t T = k % 3 == 0 ? 1 : k % 3 == 1 ? 1 + ops_random(6) : 60 + ops_random(40), S = T + ops_random(100);
            const hd_shape shapes[] = { HD_SHAPE(T, S), HD_SHAPE(Hq, T, S), HD_SHAPE(B, 1, 1, S), HD_SHAPE(B, Hq, T, S), HD_SHAPE(1, Hq, 1, S), HD_SHAPE(B, 1, T, 1), HD_SHAPE(1), HD_SHAPE(S) };
            const hd_shape shape = shapes[k % HDI_COUNT(shapes)];
            float *hidden = calloc(hd_shape_elements(shape), sizeof *hidden);
            for (uint64_t i = 0; i < hd_shape_elements(shape); i++) hidden[i] = shape.dims[shape.rank - 1] > 1 && ops_random(4) == 0 ? -INFINITY : (float)ops_random(200) / 50 - 2;
            const hd_value q = ops_input(HD_F32, HD_SHAPE(B, T, Hq, D), OPS_UNIT), keys = ops_input(floats[t], HD_SHAPE(B, S, Hkv, D), OPS_UNIT), values = ops_input(floats[t], HD_SHAPE(B, S, Hkv, D), OPS_UNIT);
            const hd_value past = k % 4 == 3 ? 0 : ops_indices(HD_SHAPE(B), 0, (int32_t)(S - T));
            const hd_attention_desc desc = { .window = k % 8 == 5 ? 40 : 0, .cap = k % 7 == 1 ? 3 : 0, .not_causal = k % 5 < 2, .sinks = k % 6 == 4 ? ops_input(HD_F32, HD_SHAPE(Hq), OPS_UNIT) : 0,
                .mask = k % 3 < 2 || k > 20 ? ops_given(HD_F32, shape, hidden) : 0, .starts = k % 2 ? ops_indices(HD_SHAPE(B, T), -2, (int32_t)(S / 2)) : 0 };
            ops_case(hd_attention(ops_program(), q, keys, values, past, &desc));
            free(hidden);
        }
        ops_end();
    }
}

/* Whole tiles of rows and keys and parts of them, heads of any size, alone or in groups, with keys that no query sees. Kernels are
 * compiled for three kinds of cases only, as that takes seconds on a processor. */
static void attention_gradients(void) {
    enum { ROUNDED = 13, OPEN = 18 }; /* the first one of those that all may be rounded, and of those where every query sees all */
    static const struct { int64_t T, S, Hkv, D; } cases[] = {
        { 1, 1, 1, 1 }, { 5, 9, 2, 3 }, { 3, 30, 1, 31 }, { 33, 40, 1, 33 }, /* no whole vectors: groups, every query sees all */
        { 7, 7, 2, 8 }, { 1, 60, 1, 16 }, { 9, 12, 2, 32 }, { 70, 70, 2, 64 }, { 64, 100, 1, 20 }, { 130, 130, 1, 8 },
        { 4, 8, 2, 80 }, { 6, 6, 1, 128 }, { 40, 40, 3, 136 }, /* wide slices */
        { 50, 75, 2, 80 }, { 22, 22, 1, 88 }, { 67, 67, 1, 96 }, { 45, 47, 2, 112 }, { 150, 150, 1, 128 }, { 70, 133, 1, 128 }, { 80, 80, 2, 104 } };
    for (uint32_t k = 0; k < HDI_COUNT(cases); k++) {
        const bool batched = k % 3 == 1, spread = k % 7 == 3;
        ops_begin("gradient of attention", 0);
        const int64_t B = 1 + ops_random(3), T = cases[k].T, S = cases[k].S, Hkv = cases[k].Hkv, D = cases[k].D;
        const int64_t Hq = Hkv * (D % 4 ? 2 : D > 64 ? 3 : 1);
        const hd_shape q = batched ? HD_SHAPE(B, T, Hq, D) : HD_SHAPE(T, Hq, D), kv = batched ? HD_SHAPE(B, S, Hkv, D) : HD_SHAPE(S, Hkv, D);
        const ops_fill fill = spread ? OPS_MIDDLE : OPS_UNIT;
        const hd_dtype type = k % 3 == 2 ? HD_BF16 : HD_F32;
        const hd_value operands[] = { ops_input(type, q, fill), ops_input(type, kv, fill), ops_input(type, kv, fill), ops_input(type, q, OPS_UNIT), ops_input(type, q, OPS_UNIT) };
        const hdi_attrs attrs = { .ints = { D % 4 != 0 || k >= OPEN, 0, k % 2 || k >= ROUNDED }, .floats = { k % 4 == 3 ? 0.3f : 0 } };
        ops_case(hdi_program_put(ops_program(), &(hdi_node){ .op = HDI_OP_ATTENTION_GRADIENT, .operands = operands, .operand_count = 5, .attrs = attrs }));
        ops_end();
    }
}

/* First keys of queries: of samples that lie one behind the other, in any order, below 0 and beyond all keys. The y of a query that
 * sees no key is NaN, as attention gives it, and goes nowhere. */
static void attention_gradients_from_starts(void) {
    enum { ANY, NONE = -1, TURNED = -2 }; /* instead of the length of samples */
    static const struct { int64_t B, T, S, Hkv, G, D, sample; hd_dtype type; int open, bf16; } cases[] = {
        { 0, 130, 130, 1, 2, 64, 37, HD_F32, 0, 0 }, { 2, 70, 75, 2, 2, 64, ANY, HD_F32, 0, 0 }, { 1, 40, 60, 1, 2, 32, NONE, HD_F32, 0, 0 },
        { 3, 65, 65, 1, 2, 16, TURNED, HD_BF16, 0, 0 }, { 2, 33, 50, 1, 1, 35, ANY, HD_F32, 1, 0 }, { 0, 100, 100, 2, 1, 33, 32, HD_F32, 1, 0 },
        { 0, 300, 300, 1, 2, 64, 90, HD_F32, 0, 1 }, { 2, 131, 140, 1, 2, 48, ANY, HD_BF16, 0, 1 }, { 2, 90, 95, 2, 3, 128, 41, HD_F32, 0, 1 },
        { 0, 100, 133, 1, 3, 104, ANY, HD_BF16, 0, 1 }, { 0, 64, 64, 1, 3, 80, NONE, HD_F32, 0, 1 }, { 2, 200, 200, 1, 1, 40, TURNED, HD_F32, 1, 1 },
        { 0, 150, 170, 1, 1, 128, ANY, HD_F32, 1, 1 } };
    for (uint32_t k = 0; k < HDI_COUNT(cases); k++) {
        ops_begin("gradient of attention from starts", 0);
        const int64_t B = cases[k].B, T = cases[k].T, S = cases[k].S, Hkv = cases[k].Hkv, Hq = Hkv * cases[k].G, D = cases[k].D, rows = T * (B ? B : 1);
        const hd_shape q = B ? HD_SHAPE(B, T, Hq, D) : HD_SHAPE(T, Hq, D), kv = B ? HD_SHAPE(B, S, Hkv, D) : HD_SHAPE(S, Hkv, D);
        int32_t *starts = calloc((size_t)rows, sizeof *starts);
        uint32_t *y = calloc((size_t)(rows * Hq * D), sizeof *y);
        uint16_t *narrow = (uint16_t *)(void *)y; /* bf16: the upper half of f32 */
        for (int64_t i = 0; i < rows; i++) {
            const int64_t t = i % T, sample = cases[k].sample, last = cases[k].open ? T - 1 : t;
            starts[i] = (int32_t)(sample > 0 ? t / sample * sample : sample == NONE ? last + 1 + t % 3 * S : sample == TURNED ? (T - 1 - t) / 2 : (int64_t)ops_random((uint32_t)(S + 9)) - 5);
            for (int64_t j = i * Hq * D; j < (i + 1) * Hq * D; j++) {
                const uint32_t bits = starts[i] > last ? 0x7FC00000u : (0x3F000000u | ops_random(128) << 16 | ops_random(2) << 31);
                if (cases[k].type == HD_BF16) narrow[j] = (uint16_t)(bits >> 16);
                else y[j] = bits;
            }
        }
        const hd_dtype type = cases[k].type;
        const hd_value operands[] = { ops_input(type, q, OPS_UNIT), ops_input(type, kv, OPS_UNIT), ops_input(type, kv, OPS_UNIT), ops_given(type, q, y),
                                      ops_input(type, q, OPS_UNIT), ops_given(HD_I32, B ? HD_SHAPE(B, T) : HD_SHAPE(T), starts) };
        const hdi_attrs attrs = { .ints = { cases[k].open, 0, cases[k].bf16 } };
        ops_case(hdi_program_put(ops_program(), &(hdi_node){ .op = HDI_OP_ATTENTION_GRADIENT, .operands = operands, .operand_count = 6, .attrs = attrs }));
        ops_end();
        free(starts);
        free(y);
    }
}

int main(int argc, char **argv) {
    static const ops_test tests[] = { { "gather", gathers }, { "scatter", scatters }, { "write_rows", writes }, { "assign", assigns }, { "random", draws }, { "write_rows to pages", writes_to_pages }, { "write_rows to blocks", write_blocks }, { "rope", ropes }, { "attention", attentions }, { "attention over blocks", attentions_over_blocks }, { "forms of attention", attention_forms }, { "masked attention", masked_attention }, { "gradient of attention", attention_gradients },
                                      { "gradient of attention from starts", attention_gradients_from_starts } };
    return ops_main("tables", tests, HDI_COUNT(tests), argc, argv);
}
