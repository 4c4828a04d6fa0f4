/* chain.c: element-wise chains on rows: one tight loop for each step, chosen outside of the loop, over rows that stay
 * in the first cache. Every loop is meant to become vector code: no branch and no call in it. The arithmetic is
 * steps.inc's, so the bits are those of the GPU form in exact mode. */
#include "kernels/cpu/chain.h"
#include "kernels/cpu/fast.h"
#include "kernels/cpu/half.h"
#include "kernels/steps.h"

/* Rows are equal or apart, so no element depends on another one. */
#if defined(__clang__)
#  define EACH _Pragma("clang loop vectorize(assume_safety)") for (size_t i = 0; i < count; i++)
#elif defined(__GNUC__)
#  define EACH _Pragma("GCC ivdep") for (size_t i = 0; i < count; i++)
#else
#  define EACH for (size_t i = 0; i < count; i++)
#endif

/* ---- rows in and out ---- */

#define LOAD_EACH(type, value) {                                    \
        const type *from = data;                                    \
        if (stride == 1) EACH { const type e = from[first + i]; row[i] = value; } \
        else for (size_t i = 0; i < count; i++) {                   \
            const type e = from[first + (uint32_t)i * stride];      \
            row[i] = value;                                         \
        }                                                           \
    } break
void hdcpu_row_load(uint32_t type, const void *data, uint32_t first, uint32_t stride, size_t count, uint32_t *row) {
    if (stride == 0 && count > 1) {
        hdcpu_row_load(type, data, first, 1, 1, row);
        for (size_t i = 1; i < count; i++) row[i] = row[0];
        return;
    }
    if (type == HDI_TYPE_F16 && stride == 1) {
        half_row_load((const uint16_t *)data + first, count, row);
        return;
    }
    switch (type) {
    case HDI_TYPE_F16: LOAD_EACH(uint16_t, half_to_bits(e));
    case HDI_TYPE_BF16: LOAD_EACH(uint16_t, (uint32_t)e << 16);
    case HDI_TYPE_U8: LOAD_EACH(uint8_t, e);
    default: LOAD_EACH(uint32_t, e);
    }
}

#define STORE_EACH(type, value) {                                   \
        type *to = data;                                            \
        if (stride == 1) EACH { const uint32_t e = row[i]; to[first + i] = (type)(value); } \
        else for (size_t i = 0; i < count; i++) {                   \
            const uint32_t e = row[i];                              \
            to[first + (uint32_t)i * stride] = (type)(value);       \
        }                                                           \
    } break
void hdcpu_row_store(uint32_t type, const uint32_t *row, size_t count, void *data, uint32_t first, uint32_t stride) {
    if (type == HDI_TYPE_F16 && stride == 1) {
        half_row_store(row, count, (uint16_t *)data + first);
        return;
    }
    switch (type) {
    case HDI_TYPE_F16: STORE_EACH(uint16_t, half_of_bits(e));
    case HDI_TYPE_BF16: STORE_EACH(uint16_t, step_round_bf16(e) >> 16);
    case HDI_TYPE_U8: STORE_EACH(uint8_t, e);
    default: STORE_EACH(uint32_t, e);
    }
}

void hdcpu_row_round(uint32_t type, uint32_t *row, size_t count) {
    switch (type) {
    case HDI_TYPE_F16: half_row_round(row, count); break;
    case HDI_TYPE_BF16: EACH row[i] = step_round_bf16(row[i]); break;
    case HDI_TYPE_U8: EACH row[i] &= 0xFFu; break;
    default: break;
    }
}

/* ---- steps ---- */

/* A loop over elements: bits a, b, c and floats x, y of them; each step uses some. */
#define EACH_ELEMENT(bits) {                                        \
        EACH {                                                      \
            const uint32_t a = pa[i], b = pb[i], c = pc[i];         \
            const float x = exact_from_bits(a), y = exact_from_bits(b); \
            (void)a; (void)b; (void)c; (void)x; (void)y;            \
            r[i] = (bits);                                          \
        }                                                           \
    } break;
#define BITS_STEP(form, bits) case form: EACH_ELEMENT(bits)
#define FLOAT_STEP(form, value) case form: EACH_ELEMENT(exact_bits(exact_canonical(value)))
#define COSTLY_BITS_STEP(form, bits) case form: EACH_ELEMENT(bits)
#define COSTLY_FLOAT_STEP(form, value, fast) case form: EACH_ELEMENT(exact_bits(exact_canonical(value)))
/* What a step reads: rows, and two attributes. */
typedef struct operands {
    const uint32_t *a, *b, *c;
    float           k, l;
} operands;

static void run_step(uint32_t form, const operands *in, uint32_t *r, size_t count) {
    const uint32_t *pa = in->a, *pb = in->b, *pc = in->c;
    const float k = in->k, l = in->l;
    switch (form) {
#include "kernels/steps.inc"
    default: break;
    }
}

/* The functions that fast mode has its own way for; false for the others. */
static bool run_fast_step(uint32_t form, const uint32_t *pa, uint32_t *r, size_t count) {
    const uint32_t *pb = pa, *pc = pa;
    switch (form) {
    case HDI_STEP_EXP:       EACH_ELEMENT(exact_bits(exact_canonical(fast_exp(x))))
    case HDI_STEP_SIGMOID:   EACH_ELEMENT(exact_bits(exact_canonical(fast_gate(1.0f, x))))
    case HDI_STEP_SILU:      EACH_ELEMENT(exact_bits(exact_canonical(fast_gate(x, x))))
    case HDI_STEP_GELU:      EACH_ELEMENT(exact_bits(exact_canonical(fast_gelu(x))))
    case HDI_STEP_GELU_TANH: EACH_ELEMENT(exact_bits(exact_canonical(fast_gelu_tanh(x))))
    default: return false;
    }
    return true;
}

/* How many attribute words a step reads. */
static uint32_t attribute_count(uint32_t form) {
    switch (form) {
    case HDI_STEP_SCALE: case HDI_STEP_CLIP: case HDI_FORM_I32 + HDI_STEP_CLIP: return 2;
    case HDI_STEP_LEAKY_RELU: case HDI_STEP_ELU: return 1;
    default: return 0;
    }
}

void hdcpu_chain_run(const uint32_t *spec, const uint32_t *attributes, const uint32_t *const sources[HDI_CHAIN_INPUTS],
                     uint32_t *result, size_t count, uint32_t *scratch) {
    const uint32_t *values[16] = { sources[0], sources[1], sources[2], sources[3] };
    const uint32_t steps = HDI_MIN(spec[HDI_SPEC_CHAIN], HDI_CHAIN_STEPS);
    if (steps == 0 && result != sources[0]) memcpy(result, sources[0], count * 4);
    for (uint32_t s = 0; s < steps; s++) {
        const uint32_t step = spec[HDI_SPEC_STEP + s], form = step & 0xFFu, type = step >> 20 & 15u;
        const uint32_t *a = values[step >> 8 & 15u], *b = values[step >> 12 & 15u], *c = values[step >> 16 & 15u];
        const uint32_t *words = attributes + (step >> 24 & 31u), has = attribute_count(form);
        uint32_t *to = s + 1 == steps ? result : scratch + s * HDCPU_ROW;
        const operands in = { a, b ? b : a, c ? c : a, exact_from_bits(has > 0 ? words[0] : 0),
                              exact_from_bits(has > 1 ? words[1] : 0) };
        if (spec[HDI_SPEC_EXACT] || !run_fast_step(form, a, to, count)) run_step(form, &in, to, count);
        hdcpu_row_round(type, to, count);
        values[HDI_CHAIN_INPUTS + s] = to;
    }
}
