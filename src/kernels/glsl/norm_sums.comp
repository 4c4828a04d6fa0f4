#version 450
// norm_sums.comp: sums over rows of dy times the normalised x, and of dy. First what each row is normalised by, a workgroup
// for a row; then an invocation for each column of each part of the rows.
#include "rows.glsl"
layout(constant_id = HDI_NORM_STAGE) const uint STAGE = 0u;
layout(constant_id = HDI_NORM_DY) const uint DY_TYPE = HDI_TYPE_F32;
layout(push_constant) uniform Push { uint rows, n, eps, part, parts; } push;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) readonly buffer Dy { uint dy[]; };
layout(std430, binding = 2) readonly buffer Facts { float facts[]; };
layout(std430, binding = 3) buffer Y { uint y[]; };
layout(std430, binding = 0) readonly buffer WideX { vec4 wide_x[]; };

#define ELEMENT(i) x[i]
#include "norms.glsl"

void find_facts(uint row) {
    const float eps = uintBitsToFloat(push.eps);
    if (FOURS > 0u) EACH_FOUR(k, at) held[k] = wide_x[row * push.n / 4u + at];
    const float factor = factor_of(FOURS > 0u ? spread_of_held(eps) : spread_of_row(row * push.n, push.n, eps));
    if (ME != 0u) return;
    y[2u * row] = floatBitsToUint(mean);
    y[2u * row + 1u] = floatBitsToUint(factor);
}

// One row further down a column.
void take(uint row, uint column, inout float products, inout float sum) {
    float value = x[row * push.n + column], gradient = LOAD_FLOAT(dy, DY_TYPE, row * push.n + column);
    float c = OP == HDI_ROW_LAYER_NORM ? add_rounded(value, -facts[2u * row]) : value;
    products = add_product(products, gradient, mul_rounded(c, facts[2u * row + 1u]));
    sum = add_rounded(sum, gradient);
}
void add_rows(uint column, uint part) {
    uint begin = part * push.part, end = min(begin + push.part, push.rows);
    float products = 0.0, sum = 0.0;
    for (uint j = begin; j < end; j += HDI_MM_BLOCK) {
        float of_products = 0.0, of_sum = 0.0;
        uint last = min(j + HDI_MM_BLOCK, end);
        for (uint k = j; k < last; k += 4u) {
            /* Four written out: a compiler that unrolls forgets which operations are precise. */
            take(k, column, of_products, of_sum);
            if (k + 1u < last) take(k + 1u, column, of_products, of_sum);
            if (k + 2u < last) take(k + 2u, column, of_products, of_sum);
            if (k + 3u < last) take(k + 3u, column, of_products, of_sum);
        }
        products = add_rounded(products, of_products);
        sum = add_rounded(sum, of_sum);
    }
    uint at = 2u * part * push.n + column;
    y[at] = canonical_bits(products);
    y[at + push.n] = canonical_bits(sum);
}

void main() {
    uint group = group_number();
    if (STAGE == 0u) {
        if (group < push.rows) find_facts(group);
    } else {
        uint at = group * WORKGROUP + ME, part = at / push.n;
        if (part < push.parts) add_rows(at - part * push.n, part);
    }
}
