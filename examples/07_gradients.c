/* 07_gradients.c: a small net learns exclusive or. The program holds it all: what the net computes, the gradients of the loss, and
 * the step that changes the weights, which are states and stay on the device. */
#include <heddle.h>
#include <math.h>
#include <stdio.h>

enum { HIDDEN = 16, WEIGHTS = 4, STEPS = 400 };
static const char *const names[WEIGHTS] = { "w1", "b1", "w2", "b2" };

int main(void) {
    const float x_data[4][2] = { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } }, wanted_data[4] = { 0, 1, 1, 0 };
    float start[2 * HIDDEN], loss_data = 0, first_loss = 0, y_data[4] = { 0 };
    hd_context *ctx;
    if (hd_context_create(NULL, &ctx)) return 1;
    hd_device *dev;
    hd_status s = hd_device_open(ctx, NULL, &dev);

    hd_program *p = hd_program_create(ctx);
    const hd_shape shapes[WEIGHTS] = { HD_SHAPE(2, HIDDEN), HD_SHAPE(HIDDEN), HD_SHAPE(HIDDEN, 1), HD_SHAPE(1) };
    hd_value w[WEIGHTS], gradients[WEIGHTS], x = hd_input(p, "x", HD_F32, HD_SHAPE(4, 2)), wanted = hd_input(p, "wanted", HD_F32, HD_SHAPE(4, 1));
    for (int i = 0; i < WEIGHTS; i++) w[i] = hd_state(p, names[i], HD_F32, shapes[i]);
    hd_value hidden = hd_tanh(p, hd_add(p, hd_matmul(p, x, w[0]), w[1]));
    hd_value y = hd_add(p, hd_matmul(p, hidden, w[2]), w[3]), wrong = hd_sub(p, y, wanted);
    hd_value loss = hd_mean(p, hd_mul(p, wrong, wrong), HD_ALL_AXES);
    hd_output(p, "y", y);
    hd_output(p, "loss", loss);
    if (!s) s = hd_gradients(p, loss, w, WEIGHTS, NULL, gradients);
    for (int i = 0; i < WEIGHTS && !s; i++) hd_assign(p, w[i], hd_sub(p, w[i], hd_scale(p, gradients[i], 0.2f, 0)));

    hd_plan *plan = NULL;
    if (!s) s = hd_plan_create(dev, p, NULL, &plan);
    for (int i = 0; i < WEIGHTS && !s; i++) {
        const uint64_t bytes = hd_tensor_bytes(HD_F32, shapes[i]);
        for (uint64_t k = 0; k < bytes / 4; k++) start[k] = i % 2 ? 0 : sinf((float)(7 * k + 1)); /* biases begin at 0 */
        s = hd_plan_write(plan, names[i], start, bytes);
    }
    if (!s) s = hd_plan_write(plan, "x", x_data, sizeof x_data);
    if (!s) s = hd_plan_write(plan, "wanted", wanted_data, sizeof wanted_data);
    for (int step = 0; step < STEPS && !s; step++) {
        s = hd_plan_run(plan, NULL);
        if (!s && step % 100 == 0) s = hd_plan_read(plan, "loss", &loss_data, sizeof loss_data);
        if (!s && step == 0) first_loss = loss_data;
        if (!s && step % 100 == 0) printf("step %3d  loss %.4f\n", step, (double)loss_data);
    }
    if (!s) s = hd_plan_read(plan, "loss", &loss_data, sizeof loss_data);
    if (!s) s = hd_plan_read(plan, "y", y_data, sizeof y_data);
    for (int i = 0; i < 4 && !s; i++) printf("%g xor %g = %.3f\n", (double)x_data[i][0], (double)x_data[i][1], (double)y_data[i]);
    if (!s && !(loss_data < 0.05f * first_loss)) s = HD_STATUS_INTERNAL;
    if (s) fprintf(stderr, "07_gradients: %s %s\n", hd_status_name(s), hd_context_error(ctx));
    hd_context_destroy(ctx);
    return s ? 1 : 0;
}
