/* 02_matmul.c: y = relu(x W) with 4-bit weights: a complete program, the one that the README shows. */
#include <heddle.h>
#include <stdio.h>

enum { N = 256 };
static float x_data[N * N], y_data[N * N];
static struct { uint16_t scale; uint8_t nibbles[16]; } w_data[N * N / 32]; /* q4_0: 32 weights of scale * (nibble - 8) */

int main(void) {
    for (int i = 0; i < N * N; i++) x_data[i] = (float)(i % 13) - 6;
    for (int i = 0; i < N * N; i++) { /* W is 2 on the diagonal; weights i and i + 16 of a block share a byte */
        w_data[i / 32].scale = 0x4000;  /* 2.0 as f16 */
        w_data[i / 32].nibbles[i % 16] |= (uint8_t)((i / N == i % N ? 9 : 8) << (i % 32 < 16 ? 0 : 4));
    }
    hd_context *ctx;
    hd_device *dev;
    if (hd_context_create(NULL, &ctx)) return 1;
    hd_device_open(ctx, NULL, &dev);                        /* the best one, and it can say why */
    hd_program *p = hd_program_create(ctx);
    hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(N, N));
    hd_value w = hd_input(p, "w", HD_Q4_0, HD_SHAPE(N, N));
    hd_output(p, "y", hd_relu(p, hd_matmul(p, x, w)));
    hd_plan *plan;
    hd_status s = hd_plan_create(dev, p, NULL, &plan);      /* shapes, fusion, memory, kernels: once */
    if (!s) s = hd_plan_write(plan, "x", x_data, sizeof x_data);
    if (!s) s = hd_plan_write(plan, "w", w_data, sizeof w_data);
    if (!s) s = hd_plan_run(plan, NULL);                    /* one submission; run it again: a replay */
    if (!s) s = hd_plan_read(plan, "y", y_data, sizeof y_data);
    int wrong = 0;
    for (int i = 0; i < N * N && !s; i++) wrong += y_data[i] != (x_data[i] > 0 ? 2 * x_data[i] : 0);
    if (s) fprintf(stderr, "%s\n", hd_context_error(ctx));
    else printf("%s\n%d of %d elements are wrong\n", hd_device_selection(dev), wrong, N * N);
    hd_context_destroy(ctx);
    return s || wrong ? 1 : 0;
}
