// norms.glsl: what the kernels of norms and of their gradients share: what a row is normalised by. The variance is taken in a
// second pass, from the differences to the mean.
// Before including it, define ELEMENT(i): x's element i as a float.
#ifndef NORMS_GLSL
#define NORMS_GLSL
layout(constant_id = HDI_ROW_OP) const uint OP = HDI_ROW_RMS_NORM;
layout(constant_id = HDI_ROW_TYPE) const uint TYPE = HDI_TYPE_F32;

float mean = 0.0;
float centred(uint i) { return OP == HDI_ROW_LAYER_NORM ? add_rounded(ELEMENT(i), -mean) : ELEMENT(i); }

// The variance of the row that begins at element `first`, and eps; `mean` is set.
float spread_of_row(uint first, uint n, float eps) {
    float count = count_float(n);
    if (OP == HDI_ROW_LAYER_NORM) {
        FOR_EACH_LANE(lane) {
            float sum = 0.0;
            for (uint i = lane; i < n; i += LANES) sum = add_rounded(sum, ELEMENT(first + i));
            lanes[lane] = floatBitsToUint(sum);
        }
        mean = divided(sum_of_lanes(), count);
    }
    FOR_EACH_LANE(lane) {
        float sum = 0.0;
        for (uint i = lane; i < n; i += LANES) {
            float c = centred(first + i);
            sum = add_product(sum, c, c);
        }
        lanes[lane] = floatBitsToUint(sum);
    }
    return add_rounded(divided(sum_of_lanes(), count), eps);
}
float factor_of(float spread) { return EXACT == 1u ? exact_rsqrt(spread) : inversesqrt(spread); }
#endif
