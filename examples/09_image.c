/* 09_image.c: images: convolution, pooling, and which of two signs each one shows. The weights are set by hand: four 3 x 3
 * windows that answer to lines in four directions, then how much of them makes a plus and how much a cross. */
#include <heddle.h>
#include <math.h>
#include <stdio.h>

enum { IMAGES = 2, SIDE = 12, LINES = 4, SIGNS = 2 };

static const char *const drawn[IMAGES][SIDE] = {
    { "............", ".#........#.", "..#......#..", "...#....#...", "....#..#....", ".....##.....",
      ".....##.....", "....#..#....", "...#....#...", "..#......#..", ".#........#.", "............" },
    { "............", ".....#......", ".....#......", ".....#......", ".....#......", ".##########.",
      ".....#......", ".....#......", ".....#......", ".....#......", ".....#......", "............" },
};
static const float windows[LINES][3][3] = { /* what lies beside the line counts against it */
    { { -1, -1, -1 }, { 2, 2, 2 }, { -1, -1, -1 } }, /* - */
    { { -1, 2, -1 }, { -1, 2, -1 }, { -1, 2, -1 } }, /* | */
    { { -1, -1, 2 }, { -1, 2, -1 }, { 2, -1, -1 } }, /* / */
    { { 2, -1, -1 }, { -1, 2, -1 }, { -1, -1, 2 } }, /* \ */
};
static const float signs[SIGNS][LINES] = { { 1, 1, -1, -1 }, { -1, -1, 1, 1 } };
static const char *const names[SIGNS] = { "plus", "cross" };
static const float expected[IMAGES][SIGNS] = { { -28, 28 }, { 24, -24 } }; /* of all 36 places together */

int main(void) {
    static float images[IMAGES][1][SIDE][SIDE];
    const float bias[LINES] = { -3, -3, -3, -3 }; /* two of three pixels are no line */
    float scores[IMAGES][SIGNS];
    int32_t found[IMAGES];
    for (int i = 0; i < IMAGES; i++)
        for (int row = 0; row < SIDE; row++)
            for (int column = 0; column < SIDE; column++) images[i][0][row][column] = drawn[i][row][column] == '#';

    hd_context *ctx;
    hd_device *dev;
    if (hd_context_create(NULL, &ctx)) return 1;
    hd_device_open(ctx, NULL, &dev);
    hd_program *p = hd_program_create(ctx);
    const hd_value x = hd_input(p, "images", HD_F32, HD_SHAPE(IMAGES, 1, SIDE, SIDE)), w = hd_input(p, "windows", HD_F32, HD_SHAPE(LINES, 1, 3, 3));
    const hd_value b = hd_input(p, "bias", HD_F32, HD_SHAPE(LINES)), s = hd_input(p, "signs", HD_F32, HD_SHAPE(SIGNS, LINES, 1, 1));
    hd_value y = hd_conv(p, x, w, b, &(hd_conv_desc){ .pad_before = { 1, 1 }, .pad_after = { 1, 1 } }); /* [IMAGES,LINES,12,12] */
    y = hd_max_pool(p, hd_relu(p, y), &(hd_pool_desc){ .size = { 2, 2 } });                             /* [IMAGES,LINES,6,6] */
    y = hd_mean_pool(p, y, NULL);                                                                       /* of all 36 places */
    y = hd_reshape(p, hd_conv(p, y, s, 0, NULL), HD_SHAPE(IMAGES, SIGNS));
    hd_output(p, "scores", y);
    hd_output(p, "found", hd_argmax(p, y, 1));

    hd_plan *plan;
    hd_status status = hd_plan_create(dev, p, NULL, &plan);
    if (!status) status = hd_plan_write(plan, "images", images, sizeof images);
    if (!status) status = hd_plan_write(plan, "windows", windows, sizeof windows);
    if (!status) status = hd_plan_write(plan, "bias", bias, sizeof bias);
    if (!status) status = hd_plan_write(plan, "signs", signs, sizeof signs);
    if (!status) status = hd_plan_run(plan, NULL);
    if (!status) status = hd_plan_read(plan, "scores", scores, sizeof scores);
    if (!status) status = hd_plan_read(plan, "found", found, sizeof found);
    int wrong = 0;
    for (int i = 0; i < IMAGES && !status; i++) {
        for (int k = 0; k < SIGNS; k++) wrong += !(fabsf(scores[i][k] * 36 - expected[i][k]) < 1e-4f);
        wrong += found[i] != (expected[i][1] > expected[i][0]);
        printf("image %d: plus %+.4f, cross %+.4f: a %s\n", i, (double)scores[i][0], (double)scores[i][1], names[found[i] & 1]);
    }
    if (status) fprintf(stderr, "%s\n", hd_context_error(ctx));
    hd_context_destroy(ctx);
    return status || wrong ? 1 : 0;
}
