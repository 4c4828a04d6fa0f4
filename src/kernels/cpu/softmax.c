/* softmax.c: glsl/softmax.comp for a CPU, a group for a row. Where the result is f32 its row keeps e^(x - max) between
 * the two passes that need it; for narrower results it is computed again, so that it is rounded once only. */
#include "kernels/cpu/rows.h"

static void exponentials(const float *x, float largest, uint32_t count, float *out) {
    for (uint32_t i = 0; i < count; i++) out[i] = exact_exp(x[i] - largest);
}

HDCPU_KERNEL(softmax) {
    (void)group_z;
    const uint32_t op = call->spec[HDI_ROW_OP], type = call->spec[HDI_ROW_TYPE],
                   out_type = call->spec[HDI_SPEC_OUT_TYPE];
    const uint32_t row = group_number(group_x, group_y), n = call->push[1];
    if (row >= call->push[0]) return;
    const void *x = call->bindings[0];
    void *y = call->bindings[4];
    const uint64_t first = (uint64_t)row * n;
    const bool keeps = op == HDI_ROW_SOFTMAX && out_type == HDI_TYPE_F32;
    float room[LANES], values[LANES], lanes[LANES] = { 0 };

    int32_t best = KEY_LEAST;
    for (uint32_t i = 0; i < n; i += LANES) {
        const uint32_t width = HDI_MIN(LANES, n - i);
        best = largest_key(floats_at(type, x, first + i, width, room), width, best);
    }
    const float largest = float_of_key(best);
    for (uint32_t i = 0; i < n; i += LANES) {
        const uint32_t width = HDI_MIN(LANES, n - i);
        exponentials(floats_at(type, x, first + i, width, room), largest, width, values);
        for (uint32_t l = 0; l < width; l++) lanes[l] += values[l];
        if (keeps) memcpy((float *)y + first + i, values, width * sizeof *values);
    }
    const float sum = sum_of_lanes(lanes);
    const bool slopes = op == HDI_ROW_CROSS_ENTROPY_GRADIENT, shares = op == HDI_ROW_SOFTMAX || slopes;
    const float scale = shares ? exact_div(1.0f, sum) : 0.0f;
    const float log_sum = shares ? 0.0f : exact_log(sum);
    const uint32_t at_target = slopes ? ((const uint32_t *)call->bindings[1])[row] : 0;
    const bool ignored = slopes && (at_target & EXACT_SIGN) != 0;
    const float dy = slopes ? ((const float *)call->bindings[2])[row] : 0.0f;
    if (op == HDI_ROW_CROSS_ENTROPY) {
        const uint32_t target = ((const uint32_t *)call->bindings[1])[row];
        const float other = (target & EXACT_SIGN) != 0 ? 0.0f : exact_from_bits(EXACT_NAN); /* ignored, or outside */
        const float value = target < n ? log_sum - (hdcpu_load_any(type, x, first + target) - largest) : other;
        store_floats(HDI_TYPE_F32, y, row, 1, &value);
        return;
    }
    for (uint32_t i = 0; i < n; i += LANES) {
        const uint32_t width = HDI_MIN(LANES, n - i);
        if (keeps) {
            for (uint32_t l = 0; l < width; l++) values[l] = ((const float *)y)[first + i + l] * scale;
        } else {
            const float *from = floats_at(type, x, first + i, width, room);
            if (shares) {
                exponentials(from, largest, width, values);
                for (uint32_t l = 0; l < width; l++) values[l] *= scale;
                if (slopes && at_target - i < width) values[at_target - i] += -1.0f;
                for (uint32_t l = 0; slopes && l < width; l++) values[l] = ignored ? 0.0f : values[l] * dy;
            } else {
                for (uint32_t l = 0; l < width; l++) values[l] = (from[l] - largest) - log_sum;
            }
        }
        store_floats(out_type, y, first + i, width, values);
    }
}
