/* grad_elementwise.c: rules of element-wise operations. Formulas are the derivatives of the operations' own; where
 * there is no derivative (ties, corners, 0) they do as PyTorch does. Rules of more than one rounding compute in f32. */
#include "program/grad.h"

static hd_value one_minus(hdi_grad *g, hd_value x) { return hd_scale(g->program, x, -1, 1); }
static hd_value times(hdi_grad *g, hd_value a, hd_value b) { return hd_mul(g->program, a, b); }
static hd_value dy_wide(hdi_grad *g) { return hdi_grad_wide(g, g->dy); }
static hd_value x_wide(hdi_grad *g) { return hdi_grad_wide(g, hdi_grad_x(g, 0)); }
static hd_value y_wide(hdi_grad *g) { return hdi_grad_wide(g, hdi_grad_y(g)); }
/* A number that goes with values of dy's type. */
static hd_value number(hdi_grad *g, float value) {
    return hdi_grad_fill(g, hdi_grad_type(g, g->dy), (hd_shape){ 0 }, value);
}

void hdi_grad_add(hdi_grad *g) {
    hdi_grad_give(g, 0, g->dy);
    hdi_grad_give(g, 1, g->dy);
}

void hdi_grad_sub(hdi_grad *g) {
    hdi_grad_give(g, 0, g->dy);
    if (hdi_grad_wants(g, 1)) hdi_grad_give(g, 1, hd_neg(g->program, g->dy));
}

void hdi_grad_mul(hdi_grad *g) {
    if (hdi_grad_wants(g, 0)) hdi_grad_give(g, 0, times(g, g->dy, hdi_grad_x(g, 1)));
    if (hdi_grad_wants(g, 1)) hdi_grad_give(g, 1, times(g, g->dy, hdi_grad_x(g, 0)));
}

void hdi_grad_div(hdi_grad *g) {
    hd_program *p = g->program;
    if (hdi_grad_wants(g, 0)) hdi_grad_give(g, 0, hd_div(p, g->dy, hdi_grad_x(g, 1)));
    if (!hdi_grad_wants(g, 1)) return;
    const hd_value share = hd_div(p, y_wide(g), hdi_grad_wide(g, hdi_grad_x(g, 1)));
    hdi_grad_give(g, 1, hd_neg(p, times(g, dy_wide(g), share)));
}

/* maximum and minimum: to the operand that was taken, half to each of two equal ones. */
void hdi_grad_extreme(hdi_grad *g) {
    hd_program *p = g->program;
    const bool larger = g->node.op == HDI_OP_MAXIMUM;
    const hd_value a = hdi_grad_x(g, 0), b = hdi_grad_x(g, 1);
    const hd_value shared = hd_where(p, hd_equal(p, a, b), hdi_grad_times(g, g->dy, 0.5f), g->dy);
    const hd_value b_taken = larger ? hd_less(p, a, b) : hd_less(p, b, a),
                   a_taken = larger ? hd_less(p, b, a) : hd_less(p, a, b);
    if (hdi_grad_wants(g, 0)) hdi_grad_give(g, 0, hdi_grad_unless(g, b_taken, shared));
    if (hdi_grad_wants(g, 1)) hdi_grad_give(g, 1, hdi_grad_unless(g, a_taken, shared));
}

void hdi_grad_scale(hdi_grad *g) {
    hdi_grad_give(g, 0, g->node.attrs.floats[0] == 1 ? g->dy : hdi_grad_times(g, g->dy, g->node.attrs.floats[0]));
}
void hdi_grad_neg(hdi_grad *g) { hdi_grad_give(g, 0, hd_neg(g->program, g->dy)); }
void hdi_grad_abs(hdi_grad *g) { hdi_grad_give(g, 0, times(g, g->dy, hd_sign(g->program, hdi_grad_x(g, 0)))); }
void hdi_grad_sqrt(hdi_grad *g) {
    hdi_grad_give(g, 0, hd_div(g->program, dy_wide(g), hdi_grad_times(g, y_wide(g), 2)));
}
void hdi_grad_exp(hdi_grad *g) { hdi_grad_give(g, 0, times(g, g->dy, hdi_grad_y(g))); }
void hdi_grad_log(hdi_grad *g) { hdi_grad_give(g, 0, hd_div(g->program, g->dy, hdi_grad_x(g, 0))); }
void hdi_grad_sin(hdi_grad *g) { hdi_grad_give(g, 0, times(g, dy_wide(g), hd_cos(g->program, x_wide(g)))); }
void hdi_grad_cos(hdi_grad *g) {
    hdi_grad_give(g, 0, hd_neg(g->program, times(g, dy_wide(g), hd_sin(g->program, x_wide(g)))));
}

/* 0 at 0; NaN lets it through. */
void hdi_grad_relu(hdi_grad *g) {
    hdi_grad_give(g, 0, hdi_grad_unless(g, hd_equal(g->program, hdi_grad_y(g), number(g, 0)), g->dy));
}

void hdi_grad_leaky_relu(hdi_grad *g) {
    const hd_value above = hd_less(g->program, number(g, 0), hdi_grad_x(g, 0));
    hdi_grad_give(g, 0, hd_where(g->program, above, g->dy, hdi_grad_times(g, g->dy, g->node.attrs.floats[0])));
}

void hdi_grad_elu(hdi_grad *g) {
    hd_program *p = g->program;
    const hd_value above = hd_less(p, number(g, 0), hdi_grad_x(g, 0)), dy = dy_wide(g);
    hdi_grad_give(g, 0, hd_where(p, above, dy, times(g, dy, hd_scale(p, y_wide(g), 1, g->node.attrs.floats[0]))));
}

void hdi_grad_sigmoid(hdi_grad *g) {
    const hd_value y = y_wide(g);
    hdi_grad_give(g, 0, times(g, dy_wide(g), times(g, y, one_minus(g, y))));
}

void hdi_grad_tanh(hdi_grad *g) {
    const hd_value y = y_wide(g);
    hdi_grad_give(g, 0, times(g, dy_wide(g), one_minus(g, times(g, y, y))));
}

/* s * (1 + x * (1 - s)) with s = sigmoid(x). */
void hdi_grad_silu(hdi_grad *g) {
    hd_program *p = g->program;
    const hd_value x = x_wide(g), s = hd_sigmoid(p, x);
    const hd_value slope = times(g, s, hd_scale(p, times(g, x, one_minus(g, s)), 1, 1));
    hdi_grad_give(g, 0, times(g, dy_wide(g), slope));
}

/* Phi(x) + x * phi(x): (1 + erf(x / sqrt 2)) / 2, and e^(-x^2 / 2) / sqrt(2 pi). */
void hdi_grad_gelu(hdi_grad *g) {
    hd_program *p = g->program;
    const hd_value x = x_wide(g);
    const hd_value below = hd_scale(p, hd_erf(p, hdi_grad_times(g, x, 0.70710678118654752f)), 0.5f, 0.5f);
    const hd_value density =
        hdi_grad_times(g, hd_exp(p, hdi_grad_times(g, times(g, x, x), -0.5f)), 0.39894228040143268f);
    hdi_grad_give(g, 0, times(g, dy_wide(g), hd_add(p, below, times(g, x, density))));
}

static hd_value of_gelu_tanh(hdi_grad *g, hd_value x, hd_value dy) {
    return hdi_program_put(g->program, &(hdi_node){ .op = HDI_OP_GELU_TANH_GRADIENT, .operand_count = 2,
                                                    .operands = (const hd_value[]){ x, dy } });
}
/* One step, as a chain that reads what it begins with several times is more than one. bf16 has the range of f32. */
void hdi_grad_gelu_tanh(hdi_grad *g) {
    const bool narrow = g->node.dtype == HD_BF16;
    const hd_value x = narrow ? hdi_grad_x(g, 0) : x_wide(g), dy = narrow ? hdi_grad_to(g, g->dy, HD_BF16) : dy_wide(g);
    hdi_grad_give(g, 0, of_gelu_tanh(g, x, dy));
}

/* y = a f(x), where a is the gradient that came and f the slope. f' = (1 - t^2) (c + 6 c k x^2 - x t (c + 3 c k x^2)^2)
 * with t = tanh(c (x + k x^3)), c = sqrt(2 / pi), k = 0.044715. */
void hdi_grad_gelu_tanh_gradient(hdi_grad *g) {
    hd_program *p = g->program;
    const float c = 0.79788456080286536f, cubic = 0.044715f;
    const hd_value x = x_wide(g), dy = dy_wide(g);
    if (hdi_grad_wants(g, 1)) hdi_grad_give(g, 1, of_gelu_tanh(g, x, dy));
    if (!hdi_grad_wants(g, 0)) return;
    const hd_value squared = times(g, x, x), t = hd_tanh(p, times(g, x, hd_scale(p, squared, c * cubic, c)));
    const hd_value w = hd_scale(p, squared, 3 * c * cubic, c);
    const hd_value bent = hd_sub(p, hd_scale(p, squared, 6 * c * cubic, c), times(g, times(g, x, t), times(g, w, w)));
    const hd_value slope = times(g, one_minus(g, times(g, t, t)), bent);
    hdi_grad_give(g, 0, times(g, dy, times(g, hdi_grad_wide(g, hdi_grad_x(g, 1)), slope)));
}

void hdi_grad_erf(hdi_grad *g) {
    const hd_value x = x_wide(g), bell = hd_exp(g->program, hd_neg(g->program, times(g, x, x)));
    hdi_grad_give(g, 0, times(g, dy_wide(g), hdi_grad_times(g, bell, 1.1283791670955126f))); /* 2 / sqrt(pi) */
}

/* Inside only: 0 at the ends, as relu has at 0. */
void hdi_grad_clip(hdi_grad *g) {
    hd_program *p = g->program;
    const hd_value x = hdi_grad_x(g, 0), low = number(g, g->node.attrs.floats[0]),
                   high = number(g, g->node.attrs.floats[1]);
    hdi_grad_give(g, 0, hdi_grad_where(g, hd_less(p, low, x), hdi_grad_where(g, hd_less(p, x, high), g->dy)));
}

/* Chosen, never multiplied: what was not taken gets 0 even of an infinite gradient. */
void hdi_grad_choice(hdi_grad *g) {
    const hd_value condition = hdi_grad_x(g, 0);
    if (hdi_grad_wants(g, 1)) hdi_grad_give(g, 1, hdi_grad_where(g, condition, g->dy));
    if (hdi_grad_wants(g, 2)) hdi_grad_give(g, 2, hdi_grad_unless(g, condition, g->dy));
}

/* copy, and casts between floats; what is rounded at random has the gradient as if it were not. */
void hdi_grad_same(hdi_grad *g) { hdi_grad_give(g, 0, g->dy); }
