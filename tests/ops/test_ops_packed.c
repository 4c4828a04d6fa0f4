/* test_ops_packed.c: attention of many queries that each have a first key, as samples have that lie one behind the other in a
 * sequence: what the kernels on matrix units take, and the one over f32 by tiles. No driver for a processor offers such units: the
 * CUDA stand-in does. */
#include "ops.h"
#include <stdlib.h>

/* First keys of queries: of samples of many lengths one behind the other, in any order and on either side of all keys, or of two
 * halves. */
typedef enum starts_kind { SAMPLES, ANYWHERE, HALVES } starts_kind;
static hd_value starts_of(starts_kind kind, int64_t B, int64_t T, int64_t S) {
    static const int32_t far[] = { INT32_MIN, INT32_MAX, -1, 0 };
    int32_t *starts = calloc((size_t)(B * T), sizeof *starts);
    for (int64_t i = 0, sample = 0, left = 0; i < B * T; i++, left--) {
        const int64_t t = i % T;
        if (t == 0 || left == 0) sample = t, left = ops_random(3) ? 1 + ops_random(90) : 1;
        if (kind == SAMPLES) starts[i] = (int32_t)sample;
        else if (kind == HALVES) starts[i] = (int32_t)(t < T / 2 ? 0 : S / 2);
        else starts[i] = ops_random(9) ? (int32_t)ops_random((uint32_t)S + 9) - 4 : far[ops_random(4)];
    }
    const hd_value value = ops_given(HD_I32, HD_SHAPE(B, T), starts);
    free(starts);
    return value;
}

/* Keys of the first half are NaN in the last kind of cases: those of the second half do not read them, as these are whole tiles
 * whatever size a kernel's have. Kernels are compiled for few kinds of cases, as that takes seconds on a processor. */
static void packed_attention(void) {
    static const struct { hd_dtype q, kv; starts_kind kind; int64_t B, T, S, Hq, Hkv, D; uint32_t window; bool open, sinks, past, f32; } cases[] = {
        { HD_F32, HD_F32, SAMPLES, 1, 270, 270, 4, 1, .D = 64 },  { HD_F32, HD_F32, SAMPLES, 3, 131, 131, 2, 2, .D = 64 },
        { HD_F32, HD_F32, ANYWHERE, 2, 150, 150, 3, 1, .D = 64 }, { HD_F32, HD_F32, HALVES, 1, 256, 256, 2, 2, .D = 64 },
        { HD_BF16, HD_BF16, SAMPLES, 2, 97, 97, 8, 4, .D = 80 },  { HD_BF16, HD_BF16, ANYWHERE, 1, 70, 70, 8, 2, .D = 80 },
        { HD_BF16, HD_BF16, HALVES, 2, 256, 256, 1, 1, .D = 80 }, { HD_F32, HD_F16, SAMPLES, 2, 110, 110, 2, 1, .D = 33 },
        { HD_F32, HD_F16, ANYWHERE, 3, 70, 90, 6, 2, .D = 64, .open = true, .past = true },
        { HD_F32, HD_F16, SAMPLES, 1, 150, 150, 4, 1, .D = 64, .open = true, .past = true },
        { HD_F32, HD_F16, ANYWHERE, 2, 130, 240, 2, 1, .D = 64, .window = 50, .past = true },
        { HD_F32, HD_F16, SAMPLES, 1, 200, 200, 3, 1, .D = 64, .window = 40, .past = true },
        { HD_F32, HD_F16, ANYWHERE, 2, 70, 70, 4, 1, .D = 128, .sinks = true, .past = true },
        { HD_F32, HD_F16, SAMPLES, 2, 100, 130, 3, 1, .D = 128, .sinks = true, .past = true },
        { HD_F32, HD_F32, SAMPLES, 1, 270, 270, 4, 1, .D = 64, .f32 = true }, { HD_F32, HD_F32, HALVES, 1, 256, 256, 2, 2, .D = 64, .f32 = true },
        { HD_F32, HD_F32, ANYWHERE, 3, 131, 131, 3, 1, .D = 90, .f32 = true }, { HD_F32, HD_F32, ANYWHERE, 2, 70, 80, 4, 2, .D = 90, .open = true, .f32 = true },
        { HD_F32, HD_Q4_0, SAMPLES, 2, 80, 80, 4, 2, .D = 64 },
    };
    for (uint32_t k = 0; k < HDI_COUNT(cases); k++) {
        ops_begin("packed", 0);
        const int64_t B = cases[k].B, T = cases[k].T, S = cases[k].S, Hq = cases[k].Hq, Hkv = cases[k].Hkv, D = cases[k].D;
        const hd_shape kv = HD_SHAPE(B, S, Hkv, D);
        const hd_value q = ops_input(cases[k].q, HD_SHAPE(B, T, Hq, D), OPS_UNIT);
        hd_value keys = ops_input(cases[k].kv, kv, OPS_UNIT), values = ops_input(cases[k].kv, kv, OPS_UNIT);
        if (cases[k].kind == HALVES) {
            const uint64_t bytes = hd_tensor_bytes(cases[k].kv, kv), of_batch = bytes / (uint64_t)B;
            uint8_t *half_nan = calloc(bytes, 1);
            for (uint64_t i = 0; i < bytes; i++) half_nan[i] = i % of_batch < of_batch / 2 ? 0xFF : 0x3E;
            keys = ops_given(cases[k].kv, kv, half_nan);
            values = ops_given(cases[k].kv, kv, half_nan);
            free(half_nan);
        }
        const hd_attention_desc desc = { .window = cases[k].window, .not_causal = cases[k].open, .bf16 = !cases[k].f32,
            .sinks = cases[k].sinks ? ops_input(HD_F32, HD_SHAPE(Hq), OPS_UNIT) : 0, .starts = starts_of(cases[k].kind, B, T, S) };
        const hd_value past = cases[k].past ? ops_indices(HD_SHAPE(B), -3, (int32_t)(S - T)) : 0;
        ops_case(hd_attention(ops_program(), q, keys, values, past, &desc));
        ops_end();
    }
}

int main(int argc, char **argv) {
    static const ops_test tests[] = { { "packed attention", packed_attention } };
    return ops_main("packed", tests, HDI_COUNT(tests), argc, argv);
}
