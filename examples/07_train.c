/* 07_train.c: a network of two layers learns the exclusive or of two numbers' signs: any program learns. Gradients and the optimizer's
 * step are operations of the same program, so a step is one run of one plan. */
#include <heddle_train.h>
#include <stdio.h>

enum { ROWS = 64, WIDTH = 16, WEIGHTS = 2 * WIDTH + WIDTH + WIDTH, STEPS = 400 };

static hd_value part(hd_program *p, hd_value flat, int64_t begin, hd_shape shape) {
    const int64_t end = begin + (int64_t)hd_shape_elements(shape);
    return hd_reshape(p, hd_slice(p, flat, &begin, &end, 1), shape);
}

int main(void) {
    hd_context *ctx;
    hd_device *dev;
    if (hd_context_create(NULL, &ctx)) return 1;
    hd_device_open(ctx, NULL, &dev);

    hd_program *p = hd_program_create(ctx);
    const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(ROWS, 2)), wanted = hd_input(p, "wanted", HD_F32, HD_SHAPE(ROWS, 1));
    const hd_value rates = hd_input(p, "rates", HD_F32, HD_SHAPE(HD_RATES));
    const hd_value states[] = { hd_state(p, "weights", HD_F32, HD_SHAPE(WEIGHTS)), hd_state(p, "m", HD_F32, HD_SHAPE(WEIGHTS)),
                                hd_state(p, "v", HD_F32, HD_SHAPE(WEIGHTS)) };
    const hd_value in = part(p, states[0], 0, HD_SHAPE(2, WIDTH)), bias = part(p, states[0], 2 * WIDTH, HD_SHAPE(WIDTH));
    const hd_value out = part(p, states[0], 3 * WIDTH, HD_SHAPE(WIDTH, 1));
    const hd_value guess = hd_tanh(p, hd_matmul(p, hd_tanh(p, hd_add(p, hd_matmul(p, x, in), bias)), out));
    const hd_value off = hd_sub(p, guess, wanted), loss = hd_mean(p, hd_mul(p, off, off), HD_ALL_AXES);
    hd_value gradient;
    hd_status s = hd_gradients(p, loss, &states[0], 1, NULL, &gradient);
    const hd_clipping clip = hd_clip_norm(p, &gradient, 1, 1);
    hd_adamw(p, states, gradient, &clip, rates, NULL, 0);
    hd_output(p, "loss", loss);

    hd_plan *plan = NULL;
    if (!s) s = hd_plan_create(dev, p, NULL, &plan);
    float points[ROWS][2], signs[ROWS], weights[WEIGHTS], rate[HD_RATES], first = 0, last = 0;
    for (int i = 0; i < ROWS; i++) {
        points[i][0] = (float)(i % 8) - 3.5f;
        points[i][1] = (float)(i / 8) - 3.5f;
        signs[i] = (points[i][0] > 0) == (points[i][1] > 0) ? -1 : 1;
    }
    for (int i = 0; i < WEIGHTS; i++) weights[i] = (float)(i * 37 % 41) / 41 - 0.5f;
    if (!s) s = hd_plan_write(plan, "x", points, sizeof points);
    if (!s) s = hd_plan_write(plan, "wanted", signs, sizeof signs);
    if (!s) s = hd_plan_write(plan, "weights", weights, sizeof weights);
    for (int step = 0; step < STEPS && !s; step++) {
        hd_adamw_rates(NULL, 0.02, 0, (uint64_t)step, rate);
        s = hd_plan_write(plan, "rates", rate, sizeof rate);
        if (!s) s = hd_plan_run(plan, NULL);
        if (!s) s = hd_plan_read(plan, "loss", step ? &last : &first, sizeof first);
    }
    if (s) fprintf(stderr, "%s\n", hd_context_error(ctx));
    else printf("the loss went from %.3f to %.3f in %d steps\n", (double)first, (double)last, (int)STEPS);
    hd_program_destroy(p);
    hd_context_destroy(ctx);
    return s || !(last < 0.1f) ? 1 : 0;
}
