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

/* (softmax - 1 at the target) * dy; 0 in rows whose target is negative. */
void hdi_grad_cross_entropy(hdi_grad *g) {
    hd_program *p = g->program;
    const hd_value logits = x_wide(g);
    const hd_shape shape = hdi_grad_shape(g, logits);
    hd_shape row = shape;
    row.dims[shape.rank - 1] = 1;
    const hd_value y = hd_softmax(p, logits, -1), targets = hd_reshape(p, hdi_grad_x(g, 1), row);
    const hd_value at_target =
        hd_equal(p, hdi_grad_count(g, shape.rank, shape.rank - 1, shape.dims[shape.rank - 1]), targets);
    const hd_value ignored = hd_less(p, targets, hdi_grad_fill(g, HD_I32, (hd_shape){ 0 }, 0));
    const hd_value slope = hd_where(p, at_target, hd_scale(p, y, 1, -1), y);
    hdi_grad_give(g, 0, hdi_grad_unless(g, ignored, hd_mul(p, slope, hd_reshape(p, g->dy, row))));
}

/* What the norms share. With n = x normalised without weight and bias, d = what it was divided by and h = dy * weight:
 * dx = (h - n * mean(h * n)) / d for rms_norm, (h - mean(h) - n * mean(h * n)) / d for layer_norm; the gradient of the
 * weight is the sum over rows of dy * n, that of the bias of dy. */
static void norm(hdi_grad *g, hd_value n, hd_value centred) {
    hd_program *p = g->program;
    const hd_value dy = dy_wide(g);
    const hd_shape shape = g->node.shape;
    const float share = (float)(1.0 / (double)shape.dims[shape.rank - 1]);
    if (hdi_grad_wants(g, 0)) {
        const hd_value weight = hdi_grad_x(g, 1);
        const hd_value h = weight ? hd_mul(p, dy, hdi_grad_wide(g, weight)) : dy;
        const hd_value along = hdi_grad_times(g, hd_dot(p, h, n, -1), share);
        const hd_value d =
            hd_sqrt(p, hd_scale(p, hd_mean(p, hd_mul(p, centred, centred), -1), 1, g->node.attrs.floats[0]));
        const hd_value level = g->node.op == HDI_OP_LAYER_NORM ? hd_sub(p, h, hd_mean(p, h, -1)) : h;
        hdi_grad_give(g, 0, hd_div(p, hd_sub(p, level, hd_mul(p, n, along)), d));
    }
    if (hdi_grad_wants(g, 1)) hdi_grad_give(g, 1, hd_mul(p, dy, n));
    if (hdi_grad_wants(g, 2)) hdi_grad_give(g, 2, dy);
}

void hdi_grad_rms_norm(hdi_grad *g) {
    const hd_value x = x_wide(g);
    norm(g, hd_rms_norm(g->program, x, 0, g->node.attrs.floats[0]), x);
}

void hdi_grad_layer_norm(hdi_grad *g) {
    hd_program *p = g->program;
    const hd_value x = x_wide(g);
    norm(g, hd_layer_norm(p, x, 0, 0, g->node.attrs.floats[0]), hd_sub(p, x, hd_mean(p, x, -1)));
}
