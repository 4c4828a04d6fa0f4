/* quantise.c: the types' block writers as one call, and the other way round. */
#include "kernels/reference/quantise.h"
#include "base/base.h"
#include "kernels/cpu/quant.h"
#include <float.h>

enum { MOST_BLOCK = 256 };

static const hdi_block_writer writers[HD_DTYPE_COUNT] = {
    [HD_Q4_0] = hdi_quantise_q4_0,     [HD_Q4_1] = hdi_quantise_q4_1,     [HD_Q5_0] = hdi_quantise_q5_0,
    [HD_Q5_1] = hdi_quantise_q5_1,     [HD_Q8_0] = hdi_quantise_q8_0,     [HD_Q2_K] = hdi_quantise_q2_k,
    [HD_Q3_K] = hdi_quantise_q3_k,     [HD_Q4_K] = hdi_quantise_q4_k,     [HD_Q5_K] = hdi_quantise_q5_k,
    [HD_Q6_K] = hdi_quantise_q6_k,     [HD_TQ1_0] = hdi_quantise_tq1_0,   [HD_TQ2_0] = hdi_quantise_tq2_0,
    [HD_IQ4_NL] = hdi_quantise_iq4_nl, [HD_IQ4_XS] = hdi_quantise_iq4_xs, [HD_MXFP4] = hdi_quantise_mxfp4,
};

static hd_status check(hd_dtype dtype, const void *from, uint64_t elements, const void *to) {
    if (!hdi_dtype_is_float(dtype) && !hdi_dtype_is_quantised(dtype)) return HD_STATUS_TYPE;
    if (elements % hdi_dtype(dtype).block_elements != 0) return HD_STATUS_SHAPE;
    return elements > 0 && (!from || !to) ? HD_STATUS_NULL_POINTER : HD_OK;
}

/* Weights of a block, as shares of the largest one; all 1 where all are 0. False where one is no weight. */
static bool take_weights(const float *weights, uint32_t count, float *out) {
    float largest = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!(weights[i] >= 0 && weights[i] <= FLT_MAX)) return false;
        if (weights[i] > largest) largest = weights[i];
    }
    for (uint32_t i = 0; i < count; i++) out[i] = largest > 0 ? weights[i] / largest : 1;
    return true;
}

/* What errors of a block count where nobody says: more the larger the value is. */
static void own_weights(const float *values, float *out) {
    float sum = 0;
    for (uint32_t i = 0; i < MOST_BLOCK; i++) sum += values[i] * values[i];
    for (uint32_t i = 0; i < MOST_BLOCK; i++) {
        const float weight = sqrtf(2 * sum / MOST_BLOCK + values[i] * values[i]);
        out[i] = weight <= FLT_MAX ? weight : 0;
    }
}

/* A block of a type with a code book, all of which have so many elements. */
static hd_status put_book(hd_dtype dtype, const float *values, const float *weights, uint8_t *out) {
    float plain[MOST_BLOCK], own[MOST_BLOCK];
    if (!weights) own_weights(values, plain);
    if (!take_weights(weights ? weights : plain, MOST_BLOCK, own)) return HD_STATUS_INVALID_ARGUMENT;
    hdi_quantise_book(dtype, values, own, out);
    return HD_OK;
}

static hd_status put_block(hd_dtype dtype, const float *values, const float *weights, uint8_t *out) {
    float own[MOST_BLOCK];
    const uint16_t half = (uint16_t)(dtype == HD_BF16 ? exact_f32_to_bf16(values[0]) : exact_f32_to_f16(values[0]));
    if (HDI_HAS_BOOK((uint32_t)dtype)) return put_book(dtype, values, weights, out);
    if (weights && !take_weights(weights, hdi_dtype(dtype).block_elements, own)) return HD_STATUS_INVALID_ARGUMENT;
    if (weights && hdi_quantise_weighted(dtype, values, own, out)) return HD_OK;
    if (writers[dtype]) writers[dtype](values, out);
    else memcpy(out, &half, sizeof half);
    return HD_OK;
}

hd_status hd_quantize_weighted(hd_dtype dtype, const float *values, const float *weights, uint64_t elements,
                               void *out_data) {
    hd_status status = check(dtype, values, elements, out_data);
    if (status || elements == 0) return status;
    const hdi_dtype_facts facts = hdi_dtype(dtype);
    uint8_t *out = out_data;
    if (dtype == HD_F32) memcpy(out, values, elements * sizeof *values);
    for (uint64_t i = 0; i < elements && dtype != HD_F32 && !status; i += facts.block_elements) {
        status = put_block(dtype, values + i, weights ? weights + i : NULL, out);
        out += facts.block_bytes;
    }
    return status;
}

hd_status hd_quantize(hd_dtype dtype, const float *values, uint64_t elements, void *out_data) {
    return hd_quantize_weighted(dtype, values, NULL, elements, out_data);
}

hd_status hd_dequantize(hd_dtype dtype, const void *data, uint64_t elements, float *out_values) {
    const hd_status status = check(dtype, data, elements, out_values);
    if (!status && elements > 0) hdcpu_load_floats(dtype, data, 0, elements, out_values);
    return status;
}
