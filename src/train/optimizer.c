/* optimizer.c: optimizers' steps as operations over flat states. Each state's new content is one chain of the
 * element-wise kernel, of at most 8 steps and 4 inputs; AdamW's weights take two, since a chain has one costly
 * function. Muon's matrices that lie at the same place of each layer are one batch of products. */
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

/* weights * keep - change; nothing changes where the step is not fine, of which `change` sees to its part: then what
 * is rounded is a bf16 already. */
static hd_value taken_off(hd_program *p, hd_value weights, hd_value keep, hd_value change, const hd_clipping *clip,
                          hd_value words) {
    const hd_value kept = hd_where(p, clip->fine, keep, hd_scale(p, keep, 0, 1));
    hd_dtype dtype = HD_F32;
    if (hd_value_describe(p, weights, &dtype, NULL) || dtype == HD_F32)
        return hd_assign(p, weights, hd_sub(p, hd_mul(p, weights, kept), change));
    const hd_value wide = hd_sub(p, hd_mul(p, hd_cast(p, weights, HD_F32), kept), change);
    return hd_assign(p, weights, words ? hd_round_random(p, wide, words) : hd_cast(p, wide, dtype));
}

hd_value hd_adamw(hd_program *p, const hd_value states[3], hd_value gradient, const hd_clipping *clip, hd_value rates,
                  const hd_adamw_desc *desc, hd_value words) {
    const double beta1 = desc && desc->beta1 > 0 ? desc->beta1 : 0.9,
                 beta2 = desc && desc->beta2 > 0 ? desc->beta2 : 0.999;
    const float eps = (float)(desc && desc->eps > 0 ? desc->eps : 1e-8);
    const hd_value m = moved(p, states[1], (float)beta1, hd_mul(p, gradient, clip->factor), (float)(1 - beta1), clip);
    const hd_value squares = hd_mul(p, hd_mul(p, gradient, gradient), hd_mul(p, clip->factor, clip->factor));
    const hd_value v = moved(p, states[2], (float)beta2, squares, (float)(1 - beta2), clip);
    const hd_value keep = rate_of(p, rates, 0); /* over an infinite number nothing is taken off */
    const hd_value divisor = hd_where(p, clip->fine, rate_of(p, rates, 1), hd_scale(p, keep, 0, INFINITY));
    const hd_value root = hd_scale(p, hd_mul(p, hd_sqrt(p, v), rate_of(p, rates, 2)), 1, eps);
    return taken_off(p, states[0], keep, hd_div(p, m, hd_mul(p, root, divisor)), clip, words);
}

hd_value hd_sgd(hd_program *p, const hd_value states[2], hd_value gradient, const hd_clipping *clip, hd_value rates,
                float momentum, hd_value words) {
    const hd_value m = moved(p, states[1], momentum, hd_mul(p, gradient, clip->factor), 1, clip);
    const hd_value rate = rate_of(p, rates, 1), taken = hd_where(p, clip->fine, rate, hd_scale(p, rate, 0, 0));
    return taken_off(p, states[0], rate_of(p, rates, 0), hd_mul(p, m, taken), clip, words);
}

/* ---- Muon ---- */

/* Newton and Schulz's iteration with Jordan's coefficients: matrices x [k,rows,columns] of norm 1 at most get singular
 * values near 1. x x^T, or x^T x where that is smaller, is symmetric to the bit. */
static hd_value made_orthogonal(hd_program *p, hd_value x, bool tall) {
    enum { STEPS = 5 };
    for (int i = 0; i < STEPS; i++) {
        const hd_value square = hd_matmul_with(p, x, x, tall ? HD_TRANSPOSE_A : HD_TRANSPOSE_B);
        const hd_value twice = hd_scale(p, hd_matmul(p, square, square), 2.0315f, 0);
        const hd_value factor = hd_add(p, twice, hd_scale(p, square, -4.7750f, 0));
        const hd_value product = tall ? hd_matmul(p, x, factor) : hd_matmul(p, factor, x);
        x = hd_add(p, product, hd_scale(p, x, 3.4445f, 0));
    }
    return x;
}

/* [layers, rows columns], of a matrix in each layer, to [layers parts, rows, columns / parts]; and back. */
static hd_value apart(hd_program *p, hd_value x, int64_t layers, const hd_muon_matrix *m, int64_t parts) {
    const int64_t rows = m->rows, width = m->columns / parts;
    const hd_value wide = hd_reshape(p, x, HD_SHAPE(layers, rows, parts, width));
    const hd_value swapped = parts == 1 ? wide : hd_permute(p, wide, (const uint32_t[]){ 0, 2, 1, 3 }, 4);
    return hd_reshape(p, swapped, HD_SHAPE(layers * parts, rows, width));
}
static hd_value together(hd_program *p, hd_value x, int64_t layers, const hd_muon_matrix *m, int64_t parts) {
    const int64_t rows = m->rows, width = m->columns / parts;
    if (parts > 1) {
        const hd_value split = hd_reshape(p, x, HD_SHAPE(layers, parts, rows, width));
        x = hd_permute(p, split, (const uint32_t[]){ 0, 2, 1, 3 }, 4);
    }
    return hd_reshape(p, x, HD_SHAPE(layers, rows * m->columns));
}

/* Does the matrix lie within a layer's elements? */
static bool lies_within(const hd_muon_matrix *m, int64_t length) {
    const uint64_t elements = (uint64_t)m->rows * m->columns;
    if (elements == 0 || (m->side_by_side && m->columns % m->side_by_side != 0)) return false;
    return elements <= (uint64_t)length && m->first <= (uint64_t)length - elements;
}

/* What is taken off of one matrix in each layer of `update` [layers, n], but for the rate: [layers, rows columns]. */
static hd_value change_of(hd_program *p, hd_value update, int64_t layers, const hd_muon_matrix *m) {
    const int64_t parts = m->side_by_side ? m->side_by_side : 1, all = layers * parts, width = m->columns / parts;
    const int64_t begin[] = { 0, (int64_t)m->first }, end[] = { layers, begin[1] + (int64_t)m->rows * m->columns };
    const hd_value x = apart(p, hd_slice(p, update, begin, end, 2), layers, m, parts);
    const hd_value rows = hd_reshape(p, x, HD_SHAPE(all, m->rows * width));
    const hd_value norm = hd_scale(p, hd_sqrt(p, hd_dot(p, rows, rows, 1)), 1, 1e-7f);
    const hd_value unit = hd_div(p, x, hd_reshape(p, norm, HD_SHAPE(all, 1, 1)));
    const double outputs = m->inputs_first ? (double)width : (double)m->rows,
                 inputs = m->inputs_first ? (double)m->rows : (double)width;
    const float scale = (float)sqrt(outputs > inputs ? outputs / inputs : 1);
    return together(p, hd_scale(p, made_orthogonal(p, unit, m->rows > width), scale, 0), layers, m, parts);
}

hd_value hd_muon(hd_program *p, const hd_value states[2], hd_value gradient, const hd_clipping *clip, hd_value rates,
                 const hd_muon_desc *desc, hd_value words) {
    enum { MOST = 64 };
    const double momentum = desc->momentum > 0 ? desc->momentum : 0.95;
    const int64_t layers = desc->layers ? desc->layers : 1;
    hd_shape shape = { 0 };
    hd_value pieces[MOST];
    if (hd_value_describe(p, states[0], NULL, &shape)) return 0;
    const int64_t length = (int64_t)hd_shape_elements(shape) / layers;
    const hd_value g = hd_mul(p, gradient, clip->factor);
    const hd_value m = moved(p, states[1], (float)momentum, g, (float)(1 - momentum), clip);
    const hd_value ahead =
        hd_add(p, hd_scale(p, m, (float)momentum, 0), hd_scale(p, g, (float)(1 - momentum), 0));
    const hd_value update = hd_reshape(p, ahead, HD_SHAPE(layers, length));
    for (uint32_t i = 0; i < desc->count; i++) { /* what lies before and behind a matrix is 0 */
        const hd_muon_matrix *one = &desc->matrices[i];
        if (i == MOST || !lies_within(one, length)) /* refused by the program, as is what overlaps */
            return hd_slice(p, update, (const int64_t[]){ 0, 0 }, (const int64_t[]){ layers, INT64_MAX }, 2);
        const uint64_t end = one->first + (uint64_t)one->rows * one->columns,
                       next = i + 1 < desc->count ? desc->matrices[i + 1].first : (uint64_t)length;
        const int64_t before[] = { 0, i == 0 ? (int64_t)one->first : 0 }, after[] = { 0, (int64_t)(next - end) };
        pieces[i] = change_of(p, update, layers, one);
        if (before[1] || after[1]) pieces[i] = hd_pad(p, pieces[i], before, after, 2, 0);
    }
    const hd_value all = hd_reshape(p, hd_concat(p, pieces, desc->count, 1), HD_SHAPE(layers * length));
    const hd_value rate = rate_of(p, rates, 1), nothing = hd_scale(p, rate, 0, 0);
    const hd_value change = hd_where(p, clip->fine, hd_mul(p, all, rate), nothing);
    return taken_off(p, states[0], rate_of(p, rates, 0), change, clip, words);
}
