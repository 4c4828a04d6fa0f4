/* 01_add.c: the smallest program: two vectors are added, on the best device there is. */
#include <heddle.h>
#include <stdio.h>

int main(void) {
    const float a[4] = { 1, 2, 3, 4 }, b[4] = { 10, 20, 30, 40 };
    float sum[4] = { 0 };

    hd_context *ctx;
    if (hd_context_create(NULL, &ctx)) return 1;
    hd_device *dev;
    hd_status s = hd_device_open(ctx, NULL, &dev);

    hd_program *p = hd_program_create(ctx);
    hd_output(p, "sum", hd_add(p, hd_input(p, "a", HD_F32, HD_SHAPE(4)), hd_input(p, "b", HD_F32, HD_SHAPE(4))));

    hd_plan *plan = NULL;
    if (!s) s = hd_plan_create(dev, p, NULL, &plan);
    if (!s) s = hd_plan_write(plan, "a", a, sizeof a);
    if (!s) s = hd_plan_write(plan, "b", b, sizeof b);
    if (!s) s = hd_plan_run(plan, NULL);
    if (!s) s = hd_plan_read(plan, "sum", sum, sizeof sum);
    if (!s) {
        printf("on %s\n", hd_device_get_info(dev)->name);
        for (int i = 0; i < 4; i++) printf("%2g + %2g = %2g\n", (double)a[i], (double)b[i], (double)sum[i]);
    }
    for (int i = 0; i < 4 && !s; i++)
        if (sum[i] != a[i] + b[i]) s = HD_STATUS_INTERNAL;
    if (s) fprintf(stderr, "01_add: %s %s\n", hd_status_name(s), hd_context_error(ctx));
    hd_context_destroy(ctx);
    return s ? 1 : 0;
}
