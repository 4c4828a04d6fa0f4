/* modes.c: see modes.h. What a driver states of its modes may not be what its kernels do, so they are asked by numbers
 * whose sum or product tells. */
#include "cli/modes.h"
#include <string.h>

/* One unit of 1 in f32 is 2^-23. */
#define UNIT 0x1p-23f
typedef enum question {
    TIE_TO_EVEN, TIE_FROM_ODD, ABOVE_HALF, BELOW_ZERO, MAKES_SUBNORMAL, TAKES_SUBNORMAL, ZERO, QUESTIONS
} question;
static const struct { float a, b; } pairs[QUESTIONS] = { /* sums, and from MAKES_SUBNORMAL on products */
    { 1, UNIT / 2 }, { 1 + UNIT, UNIT / 2 }, { 1, UNIT * 0.75f }, { -1, -UNIT * 0.75f },
    { 0x1p-126f, 0.5f }, { 0x1p-127f, 4 }, { 0, -1 },
};

static const char *rounding_of(const float *y) {
    const bool up = y[ABOVE_HALF] > 1, down = y[BELOW_ZERO] < -1;
    const bool even = y[TIE_TO_EVEN] == 1 && y[TIE_FROM_ODD] == 1 + 2 * UNIT;
    if (up && down) return even ? "to nearest even" : "to nearest, ties otherwise";
    return up ? "up" : down ? "down" : "towards zero";
}

static const char *subnormals_of(const float *y) {
    const bool made = y[MAKES_SUBNORMAL] > 0, taken = y[TAKES_SUBNORMAL] > 0;
    return made && taken ? "kept" : made ? "taken as 0" : taken ? "made 0" : "taken as 0 and made 0";
}

static hd_status ask(hd_context *context, hd_device *device, hd_math math, float out[QUESTIONS]) {
    float a[QUESTIONS], b[QUESTIONS], products[QUESTIONS];
    hd_plan *plan = NULL;
    hd_program *p = hd_program_create(context);
    const hd_value x = hd_input(p, "a", HD_F32, HD_SHAPE(QUESTIONS)), y = hd_input(p, "b", HD_F32, HD_SHAPE(QUESTIONS));
    hd_output(p, "sums", hd_add(p, x, y));
    hd_output(p, "products", hd_mul(p, x, y));
    for (int i = 0; i < QUESTIONS; i++) {
        a[i] = pairs[i].a;
        b[i] = pairs[i].b;
    }
    hd_status status = hd_plan_create(device, p, &(hd_plan_desc){ .math = math, .alone = 1 }, &plan);
    if (!status) status = hd_plan_write(plan, "a", a, sizeof a);
    if (!status) status = hd_plan_write(plan, "b", b, sizeof b);
    if (!status) status = hd_plan_run(plan, NULL);
    if (!status) status = hd_plan_read(plan, "sums", out, sizeof a);
    if (!status) status = hd_plan_read(plan, "products", products, sizeof products);
    for (int i = MAKES_SUBNORMAL; i < QUESTIONS && !status; i++) out[i] = products[i];
    hd_plan_destroy(plan);
    hd_program_destroy(p);
    return status;
}

void modes_print(const char *id) {
    static const struct { hd_math math; const char *name; } maths[] = { { HD_MATH_FAST, "fast" },
                                                                        { HD_MATH_EXACT, "exact" } };
    hd_context *context = NULL;
    hd_device *device = NULL;
    /* known answers would take their time first; this is such an answer itself */
    hd_status status = hd_context_create(&(hd_context_desc){ .verify = -1, .log_level = HD_LOG_ERROR }, &context);
    if (!status) status = hd_device_open(context, &(hd_device_desc){ .id = id }, &device);
    for (size_t i = 0; i < CLI_COUNT(maths) && !status; i++) {
        float y[QUESTIONS];
        uint32_t zero;
        cli_cell name;
        if ((status = ask(context, device, maths[i].math, y))) break;
        memcpy(&zero, &y[ZERO], sizeof zero);
        snprintf(name, sizeof name, "f32 in %s mode", maths[i].name);
        cli_print("  %-32s rounds %s, subnormals %s, -0 %s\n", name, rounding_of(y), subnormals_of(y),
                  zero >> 31 ? "kept" : "made 0");
    }
    if (status) cli_print("  %-32s %s\n", "f32", context ? hd_context_error(context) : "no memory is left");
    hd_context_destroy(context);
}
