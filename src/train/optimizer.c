/* optimizer.c: optimizers' steps as operations over flat states. Each state's new content is one chain of the
 * element-wise kernel, of at most 8 steps and 4 inputs; AdamW's weights take two, since a chain has one costly
 * function. */
#include <heddle_train.h>
#include <math.h>

/* Element i of f32 [HD_RATES]. */
static hd_value rate_of(hd_program *p, hd_value rates, int64_t i) {
    return hd_slice(p, rates, (const int64_t[]){ i }, (const int64_t[]){ i + 1 }, 1);
}

hd_clipping hd_clip_norm(hd_program *p, const hd_value *gradients, uint32_t count, float most) {
    hd_value sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        const hd_value squares = hd_dot(p, gradients[i], gradients[i], 0);
        sum = i ? hd_add(p, sum, squares) : squares;
    }
    hd_clipping clip = { .norm = hd_sqrt(p, sum) };
    /* NaN where the norm is not finite */
    const hd_value zero = hd_scale(p, clip.norm, 0, 0), one = hd_scale(p, zero, 1, 1);
    clip.fine = hd_equal(p, zero, zero);
    clip.factor = one;
    if (most > 0)
        clip.factor = hd_minimum(p, one, hd_div(p, hd_scale(p, zero, 1, most), hd_scale(p, clip.norm, 1, 1e-6f)));
    return clip;
}

/* Multiples of 2^-100, of numbers below 2^-77 in size; larger ones stay as they are but for their last bit. */
static hd_value held(hd_program *p, hd_value x) { return hd_scale(p, hd_scale(p, x, 1, 0x1p-77f), 1, -0x1p-77f); }

/* factor * state + share * x, where the step is fine. */
static hd_value moved(hd_program *p, hd_value state, float factor, hd_value x, float share, const hd_clipping *clip) {
    const hd_value sum = hd_add(p, hd_scale(p, state, factor, 0), hd_scale(p, x, share, 0));
    return hd_assign(p, state, hd_where(p, clip->fine, held(p, sum), state));
}

/* weights * keep - change; nothing changes where the step is not fine, of which `change` sees to its part. */
static hd_value taken_off(hd_program *p, hd_value weights, hd_value keep, hd_value change, const hd_clipping *clip) {
    const hd_value kept = hd_where(p, clip->fine, keep, hd_scale(p, keep, 0, 1));
    return hd_assign(p, weights, hd_sub(p, hd_mul(p, weights, kept), change));
}

hd_value hd_adamw(hd_program *p, const hd_value states[3], hd_value gradient, const hd_clipping *clip, hd_value rates,
                  const hd_adamw_desc *desc) {
    const double beta1 = desc && desc->beta1 > 0 ? desc->beta1 : 0.9,
                 beta2 = desc && desc->beta2 > 0 ? desc->beta2 : 0.999;
    const float eps = (float)(desc && desc->eps > 0 ? desc->eps : 1e-8);
    const hd_value m = moved(p, states[1], (float)beta1, hd_mul(p, gradient, clip->factor), (float)(1 - beta1), clip);
    const hd_value squares = hd_mul(p, hd_mul(p, gradient, gradient), hd_mul(p, clip->factor, clip->factor));
    const hd_value v = moved(p, states[2], (float)beta2, squares, (float)(1 - beta2), clip);
    const hd_value keep = rate_of(p, rates, 0); /* over an infinite number nothing is taken off */
    const hd_value divisor = hd_where(p, clip->fine, rate_of(p, rates, 1), hd_scale(p, keep, 0, INFINITY));
    const hd_value root = hd_scale(p, hd_mul(p, hd_sqrt(p, v), rate_of(p, rates, 2)), 1, eps);
    return taken_off(p, states[0], keep, hd_div(p, m, hd_mul(p, root, divisor)), clip);
}

hd_value hd_sgd(hd_program *p, const hd_value states[2], hd_value gradient, const hd_clipping *clip, hd_value rates,
                float momentum) {
    const hd_value m = moved(p, states[1], momentum, hd_mul(p, gradient, clip->factor), 1, clip);
    const hd_value rate = rate_of(p, rates, 1), taken = hd_where(p, clip->fine, rate, hd_scale(p, rate, 0, 0));
    return taken_off(p, states[0], rate_of(p, rates, 0), hd_mul(p, m, taken), clip);
}
