/* 06_two_devices.c: one program on two devices: the product on the best one, the rest on the CPU beside it. */
#include <heddle.h>
#include <stdio.h>

enum { N = 64 };
static float x_data[N * N], w_data[N * N], y_data[N * N];
static char text[1 << 16];

int main(void) {
    for (int i = 0; i < N * N; i++) x_data[i] = (float)(i % 13) - 6, w_data[i] = i % (N + 1) == 0 ? 2 : 0;
    hd_context *ctx;
    hd_device *dev, *cpu;
    if (hd_context_create(NULL, &ctx)) return 1;
    hd_program *p = hd_program_create(ctx);
    hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(N, N));
    hd_value w = hd_input(p, "w", HD_F32, HD_SHAPE(N, N));
    hd_output(p, "y", hd_relu(p, hd_matmul(p, x, w)));
    hd_plan *plan = NULL;
    hd_status s = hd_device_open(ctx, NULL, &dev);
    if (!s) s = hd_device_open(ctx, &(hd_device_desc){ .id = "cpu" }, &cpu);
    if (!s) s = hd_plan_create(dev, p, &(hd_plan_desc){ .beside = &cpu, .beside_count = 1, .route = "matmul=0,rest=1" }, &plan);
    if (!s) s = hd_plan_write(plan, "x", x_data, sizeof x_data);
    if (!s) s = hd_plan_write(plan, "w", w_data, sizeof w_data);
    if (!s) s = hd_plan_run(plan, NULL);                    /* two submissions, and what crosses between them */
    if (!s) s = hd_plan_read(plan, "y", y_data, sizeof y_data);
    if (!s) s = hd_plan_explain(plan, text, sizeof text, NULL);
    int wrong = 0;
    for (int i = 0; i < N * N && !s; i++) wrong += y_data[i] != (x_data[i] > 0 ? 2 * x_data[i] : 0);
    if (s) fprintf(stderr, "%s\n", hd_context_error(ctx));
    else printf("%s\n%d of %d elements are wrong\n", text, wrong, N * N);
    hd_context_destroy(ctx);
    return s || wrong ? 1 : 0;
}
