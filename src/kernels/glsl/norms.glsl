// norms.glsl: what the kernels of norms and of their gradients share: what a row is normalised by. The variance is taken in a
// second pass, from the differences to the mean.
// Before including it, define ELEMENT(i): x's element i as a float.
#ifndef NORMS_GLSL
#define NORMS_GLSL
layout(constant_id = HDI_ROW_OP) const uint OP = HDI_ROW_RMS_NORM;
layout(constant_id = HDI_ROW_TYPE) const uint TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_ROW_FOURS) const uint FOURS = 0u;

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

// Rows that invocations hold, four neighbours at a time: read once, all at once.
const uint HELD = FOURS > 0u ? FOURS : 1u;
vec4 held[HELD];
#define EACH_FOUR(k, at) [[unroll]] for (uint k = 0u, at = ME; k < HELD; k++, at += WORKGROUP) if (at < push.n / 4u)
float sum_of_row(vec4 own) {
    lanes[ME] = floatBitsToUint(sum_of_four(own));
    barrier();
    vec4 sums = vec4(0.0);
    for (uint i = 0u; i < WORKGROUP; i += 4u)
        sums = add_rounded(sums, uintBitsToFloat(uvec4(lanes[i], lanes[i + 1u], lanes[i + 2u], lanes[i + 3u])));
    barrier();
    return sum_of_four(sums);
}
float spread_of_held(float eps) {
    const float share = 1.0 / count_float(push.n);
    vec4 sums = vec4(0.0);
    if (OP == HDI_ROW_LAYER_NORM) {
        EACH_FOUR(k, at) sums = add_rounded(sums, held[k]);
        mean = sum_of_row(sums) * share;
        sums = vec4(0.0);
    }
    EACH_FOUR(k, at) {
        held[k] = add_rounded(held[k], vec4(-mean));
        sums = fma(held[k], held[k], sums);
    }
    return add_rounded(sum_of_row(sums) * share, eps);
}
vec4 halves_of(vec4 v) { return mix(v, clamp(v, -65504.0, 65504.0), greaterThan(abs(v), vec4(65504.0))); } // NaN stays
#define STORE_FOUR(at, v) if (type_bytes(OUT_TYPE) == 4u) wide_y[at] = floatBitsToUint(v); else pair_y[at] = packed_four(floatBitsToUint(v), OUT_TYPE);
#endif
