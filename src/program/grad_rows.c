/* grad_rows.c: rules of softmax and its kin, and of norms, in f32. A row is what lies along the operation's axis. */
#include "program/grad.h"

static hd_value dy_wide(hdi_grad *g) { return hdi_grad_wide(g, g->dy); }
static hd_value x_wide(hdi_grad *g) { return hdi_grad_wide(g, hdi_grad_x(g, 0)); }

/* y * (dy - sum of dy * y). */
void hdi_grad_softmax(hdi_grad *g) {
    hd_program *p = g->program;
    const hd_value dy = dy_wide(g), y = hdi_grad_wide(g, hdi_grad_y(g));
    hdi_grad_give(g, 0, hd_mul(p, y, hd_sub(p, dy, hd_dot(p, dy, y, (int)g->node.attrs.ints[0]))));
}

/* dy - e^y * sum of dy. */
void hdi_grad_log_softmax(hdi_grad *g) {
    hd_program *p = g->program;
    const hd_value dy = dy_wide(g), y = hdi_grad_wide(g, hdi_grad_y(g));
    hdi_grad_give(g, 0, hd_sub(p, dy, hd_mul(p, hd_exp(p, y), hd_sum(p, dy, (int)g->node.attrs.ints[0]))));
}

/* @param losses 0: they are not at hand */
static hd_value slope_of_losses(hdi_grad *g, hd_value logits, hd_value targets, hd_value dy, hd_value losses) {
    return hdi_program_put(g->program, &(hdi_node){ .op = HDI_OP_CROSS_ENTROPY_GRADIENT,
                                                    .operands = (const hd_value[]){ logits, targets, dy, losses },
                                                    .operand_count = losses ? 4 : 3 });
}
void hdi_grad_cross_entropy(hdi_grad *g) {
    hdi_grad_give(g, 0, slope_of_losses(g, x_wide(g), hdi_grad_x(g, 1), g->dy, hdi_grad_y(g)));
}

/* With the rows' gradients a and s the softmax: of a, the sum of dy (s - 1 at the target); of the logits what softmax
 * gives for dy a, 0 in rows whose target is negative. */
void hdi_grad_cross_entropy_gradient(hdi_grad *g) {
    hd_program *p = g->program;
    const hd_value logits = x_wide(g), targets = hdi_grad_x(g, 1), dy = dy_wide(g);
    const hd_shape shape = g->node.shape, rows = hdi_grad_shape(g, targets);
    hd_shape row = shape;
    row.dims[shape.rank - 1] = 1;
    if (hdi_grad_wants(g, 2)) {
        const hd_value each = hdi_grad_expand(g, hdi_grad_fill(g, HD_F32, (hd_shape){ 0 }, 1), rows);
        hdi_grad_give(g, 2, hd_dot(p, dy, slope_of_losses(g, logits, targets, each, 0), -1));
    }
    if (!hdi_grad_wants(g, 0)) return;
    const hd_value y = hd_softmax(p, logits, -1), v = hd_mul(p, dy, hd_reshape(p, hdi_grad_x(g, 2), row));
    const hd_value ignored =
        hd_less(p, hd_reshape(p, targets, row), hdi_grad_fill(g, HD_I32, (hd_shape){ 0 }, 0));
    const hd_value along = hd_reshape(p, hd_dot(p, v, y, -1), row);
    hdi_grad_give(g, 0, hdi_grad_unless(g, ignored, hd_mul(p, y, hd_sub(p, v, along))));
}

/* ---- norms ---- */

/* With n = x normalised without weight and bias, d = what it was divided by and h = dy * weight: dx = (h - n * mean(h *
 * n)) / d for rms_norm, (h - mean(h) - n * mean(h * n)) / d for layer_norm: one operation. The gradient of the weight
 * is the sum over rows of dy * n, that of the bias of dy: one operation, too, where rows are not taken in chunks. */
static hd_value of_norm(hdi_grad *g, hdi_op op, hd_value x, hd_value dy, hd_value weight) {
    const bool centred = g->node.op == HDI_OP_LAYER_NORM ||
                         (g->node.op != HDI_OP_RMS_NORM && g->node.attrs.ints[0] != 0);
    return hdi_program_put(g->program, &(hdi_node){ .op = op, .operand_count = op == HDI_OP_NORM_SUMS ? 2 : 3,
                                                    .operands = (const hd_value[]){ x, dy, weight },
                                                    .attrs = { .ints = { centred },
                                                               .floats = { g->node.attrs.floats[0] } } });
}
/* One of the two rows of norm_sums. */
static hd_value row_of(hdi_grad *g, hd_value sums, int64_t row) {
    const int64_t n = hdi_grad_shape(g, sums).dims[1], begin[] = { row, 0 }, end[] = { row + 1, n };
    return hd_reshape(g->program, hd_slice(g->program, sums, begin, end, 2), HD_SHAPE(n));
}

static void norm(hdi_grad *g) {
    hd_program *p = g->program;
    const hd_value x = x_wide(g), dy = dy_wide(g), narrow = hdi_grad_narrow(g, dy), weight = hdi_grad_x(g, 1);
    const float eps = g->node.attrs.floats[0];
    if (hdi_grad_wants(g, 0))
        hdi_grad_give(g, 0, of_norm(g, HDI_OP_NORM_GRADIENT, x, narrow, weight ? hdi_grad_wide(g, weight) : 0));
    if (!hdi_grad_wants(g, 1) && !hdi_grad_wants(g, 2)) return;
    if (!hdi_grad_takes_chunks(g)) {
        const hd_value sums = of_norm(g, HDI_OP_NORM_SUMS, x, narrow, 0);
        if (hdi_grad_wants(g, 1)) hdi_grad_give(g, 1, row_of(g, sums, 0));
        if (hdi_grad_wants(g, 2)) hdi_grad_give(g, 2, row_of(g, sums, 1));
        return;
    }
    const bool centred = g->node.op == HDI_OP_LAYER_NORM;
    if (hdi_grad_wants(g, 1))
        hdi_grad_give(g, 1, hd_mul(p, dy, centred ? hd_layer_norm(p, x, 0, 0, eps) : hd_rms_norm(p, x, 0, eps)));
    if (hdi_grad_wants(g, 2)) hdi_grad_give(g, 2, dy);
}

void hdi_grad_rms_norm(hdi_grad *g) { norm(g); }
void hdi_grad_layer_norm(hdi_grad *g) { norm(g); }

/* What the gradients of a norm's gradients share: n, and d, which x less its mean was divided by. */
typedef struct normalised { hd_value x, n, d; } normalised;
static normalised normalise(hdi_grad *g) {
    hd_program *p = g->program;
    const float eps = g->node.attrs.floats[0];
    const bool centred = g->node.attrs.ints[0] != 0;
    const hd_value x = x_wide(g), from_mean = centred ? hd_sub(p, x, hd_mean(p, x, -1)) : x;
    const hd_value d = hd_sqrt(p, hd_scale(p, hd_mean(p, hd_mul(p, from_mean, from_mean), -1), 1, eps));
    return (normalised){ x, centred ? hd_layer_norm(p, x, 0, 0, eps) : hd_rms_norm(p, x, 0, eps), d };
}

/* y = P h / d, where P takes off what lies along n, and along a row of ones if centred; P / d is the slope of n, too.
 * With u = dy: of h it is P u / d, and of x -(n S / d + mean(h n) P u / d + mean(u n) P h / d) / d with S = mean(u P
 * h). */
void hdi_grad_norm_gradient(hdi_grad *g) {
    hd_program *p = g->program;
    const normalised o = normalise(g);
    const hd_value u = dy_wide(g), a = hdi_grad_wide(g, hdi_grad_x(g, 1)), weight = hdi_grad_x(g, 2);
    const hd_value h = weight ? hd_mul(p, a, weight) : a;
    const hd_value of_u = of_norm(g, HDI_OP_NORM_GRADIENT, o.x, u, 0);
    if (hdi_grad_wants(g, 1)) hdi_grad_give(g, 1, weight ? hd_mul(p, of_u, weight) : of_u);
    if (hdi_grad_wants(g, 2)) hdi_grad_give(g, 2, hd_mul(p, of_u, a));
    if (!hdi_grad_wants(g, 0)) return;
    const hd_value of_h = of_norm(g, HDI_OP_NORM_GRADIENT, o.x, h, 0);
    const hd_value size = hd_mean(p, hd_mul(p, u, of_h), -1); /* S / d */
    const hd_value along_h = hd_mul(p, hd_mean(p, hd_mul(p, h, o.n), -1), of_u),
                   along_u = hd_mul(p, hd_mean(p, hd_mul(p, u, o.n), -1), of_h);
    const hd_value all = hd_add(p, hd_add(p, hd_mul(p, o.n, size), along_h), along_u);
    hdi_grad_give(g, 0, hd_neg(p, hd_div(p, all, o.d)));
}

/* Of dy it is n times the first row of what came, and the second; of x P / d of the first row times dy. */
void hdi_grad_norm_sums(hdi_grad *g) {
    hd_program *p = g->program;
    const hd_value of_weight = row_of(g, dy_wide(g), 0), of_bias = row_of(g, dy_wide(g), 1),
                   a = hdi_grad_wide(g, hdi_grad_x(g, 1));
    const normalised o = normalise(g);
    if (hdi_grad_wants(g, 1)) hdi_grad_give(g, 1, hd_add(p, hd_mul(p, o.n, of_weight), of_bias));
    if (hdi_grad_wants(g, 0)) hdi_grad_give(g, 0, of_norm(g, HDI_OP_NORM_GRADIENT, o.x, hd_mul(p, a, of_weight), 0));
}
