/* verify_errors.c: `heddle verify --errors`: how far the functions of a device are from the true values, in units of
 * the last place: each over numbers of all sizes that it takes, against the C library's in double precision. */
#include "cli/verify.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { NUMBERS = 1 << 16 };

typedef struct function {
    const char *name;
    hd_value  (*build)(hd_program *p, hd_value a, hd_value b);
    double    (*truth)(double a, double b);
    double      low, high; /* of its operands */
} function;

/* X(name, the operation, the truth, least and largest operand) */
#define FUNCTIONS(X) \
    X(add, hd_add(p, a, b), a + b, -1e6, 1e6) X(sub, hd_sub(p, a, b), a - b, -1e6, 1e6) \
        X(mul, hd_mul(p, a, b), a * b, -1e6, 1e6) \
    X(div, hd_div(p, a, b), a / b, -1e6, 1e6) X(sqrt, hd_sqrt(p, a), sqrt(a), 0, 1e30) \
        X(exp, hd_exp(p, a), exp(a), -87, 88) \
    X(log, hd_log(p, a), log(a), 0, 1e30) X(sin, hd_sin(p, a), sin(a), -1000, 1000) \
        X(cos, hd_cos(p, a), cos(a), -1000, 1000) \
    X(erf, hd_erf(p, a), erf(a), -10, 10) X(sigmoid, hd_sigmoid(p, a), 1 / (1 + exp(-a)), -80, 80) \
    X(tanh, hd_tanh(p, a), tanh(a), -80, 80) X(relu, hd_relu(p, a), a > 0 ? a : 0, -1e30, 1e30) \
    X(leaky_relu, hd_leaky_relu(p, a, 0.125f), a > 0 ? a : 0.125 * a, -1e30, 1e30) \
    X(elu, hd_elu(p, a, 1), a > 0 ? a : expm1(a), -80, 80) X(silu, hd_silu(p, a), a / (1 + exp(-a)), -80, 80) \
    X(gelu, hd_gelu(p, a), a / 2 * erfc(-a / sqrt(2)), -10, 10) \
    X(gelu_tanh, hd_gelu_tanh(p, a), a / (1 + exp(-2 * sqrt(2 / M_PI) * (a + 0.044715 * a * a * a))), -10, 10) \
    X(clip, hd_clip(p, a, -1, 2), fmin(fmax(a, -1), 2), -10, 10) X(round, hd_round(p, a), nearbyint(a), -1e6, 1e6) \
    X(floor, hd_floor(p, a), floor(a), -1e6, 1e6)
#ifndef M_PI
#  define M_PI 3.14159265358979323846
#endif
#define DEFINE(name, operation, value, low, high) \
    static hd_value build_##name(hd_program *p, hd_value a, hd_value b) { return (void)b, operation; } \
    static double true_##name(double a, double b) { return (void)b, value; }
FUNCTIONS(DEFINE)
#undef DEFINE
static const function functions[] = {
#define ROW(name, operation, value, low, high) { #name, build_##name, true_##name, low, high },
    FUNCTIONS(ROW)
#undef ROW
};
enum { COUNT = CLI_COUNT(functions) };

typedef struct errors {
    double ulp, ulp_at, absolute, absolute_at; /* the largest ones, and the first operand there */
} errors;

/* Numbers whose logarithms are spread evenly, of both signs where the function takes them. */
static void fill(float *out, const function *f, uint64_t *chance) {
    const double most = log2(f->high), least = -24;
    for (size_t i = 0; i < NUMBERS; i++) {
        *chance = *chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const double size = exp2(least + (most - least) * (double)(*chance >> 12 & 0xffffffff) / 4294967296.0);
        out[i] = (float)(f->low < 0 && *chance >> 63 ? fmax(-size, f->low) : size);
    }
}

static errors compare(const function *f, const float *a, const float *b, const float *y) {
    errors worst = { 0, 0, 0, 0 };
    for (size_t i = 0; i < NUMBERS; i++) {
        const double truth = f->truth((double)a[i], (double)b[i]);
        const int exponent = truth == 0 ? -126 : ilogb(truth);
        const double absolute = isnan(y[i]) ? (double)INFINITY : fabs((double)y[i] - truth);
        const double ulp = ldexp(absolute, 23 - (exponent > -126 ? exponent : -126));
        if (ulp > worst.ulp) {
            worst.ulp = ulp;
            worst.ulp_at = (double)a[i];
        }
        if (absolute > worst.absolute) {
            worst.absolute = absolute;
            worst.absolute_at = (double)a[i];
        }
    }
    return worst;
}

static hd_plan *plan_of(cli_session *session, hd_math math) {
    hd_plan *plan = NULL;
    hd_program *p = hd_program_create(session->context);
    for (size_t i = 0; i < COUNT; i++) {
        char a[24], b[24], y[24];
        snprintf(a, sizeof a, "a%zu", i);
        snprintf(b, sizeof b, "b%zu", i);
        snprintf(y, sizeof y, "y%zu", i);
        const hd_value first = hd_input(p, a, HD_F32, HD_SHAPE(NUMBERS)),
                       second = hd_input(p, b, HD_F32, HD_SHAPE(NUMBERS));
        hd_output(p, y, functions[i].build(p, first, second));
    }
    hd_plan_create(session->device, p, &(hd_plan_desc){ .math = math, .alone = 1 }, &plan);
    hd_program_destroy(p);
    return plan;
}

static hd_status write_all(hd_plan *plan, float *numbers) {
    hd_status status = HD_OK;
    uint64_t chance = 1;
    for (size_t i = 0; i < 2 * COUNT && !status; i++) {
        char name[24];
        snprintf(name, sizeof name, "%c%zu", i % 2 ? 'b' : 'a', i / 2);
        fill(numbers + i * NUMBERS, &functions[i / 2], &chance);
        status = hd_plan_write(plan, name, numbers + i * NUMBERS, NUMBERS * sizeof *numbers);
    }
    return status;
}

/* Of all functions, in one run. */
static hd_status measure(cli_session *session, hd_math math, float *numbers, errors out[COUNT]) {
    float *y = numbers + 2 * COUNT * NUMBERS;
    hd_plan *plan = plan_of(session, math);
    hd_status status = plan ? write_all(plan, numbers) : HD_STATUS_INTERNAL;
    if (!status) status = hd_plan_run(plan, NULL);
    for (size_t i = 0; i < COUNT && !status; i++) {
        char name[24];
        snprintf(name, sizeof name, "y%zu", i);
        status = hd_plan_read(plan, name, y, NUMBERS * sizeof *y);
        if (!status) out[i] = compare(&functions[i], numbers + 2 * i * NUMBERS, numbers + (2 * i + 1) * NUMBERS, y);
    }
    hd_plan_destroy(plan);
    return status;
}

static int print_text(errors of[2][COUNT]) {
    static const char *const heads[] = { "FUNCTION", "FAST ULP",       "AT", "FAST ABSOLUTE", "AT", "EXACT ULP",
                                         "AT",       "EXACT ABSOLUTE", "AT" };
    cli_cell *cells = calloc((COUNT + 1) * CLI_COUNT(heads), sizeof *cells);
    if (!cells) return CLI_FAILED;
    cli_heads(cells, heads, CLI_COUNT(heads));
    for (size_t i = 0; i < COUNT; i++) {
        cli_cell *row = &cells[(i + 1) * CLI_COUNT(heads)];
        snprintf(row[0], CLI_CELL, "%s", functions[i].name);
        for (size_t m = 0; m < 2; m++) {
            snprintf(row[1 + 4 * m], CLI_CELL, "%.2f", of[m][i].ulp);
            snprintf(row[2 + 4 * m], CLI_CELL, "%.6g", of[m][i].ulp_at);
            snprintf(row[3 + 4 * m], CLI_CELL, "%.2e", of[m][i].absolute);
            snprintf(row[4 + 4 * m], CLI_CELL, "%.6g", of[m][i].absolute_at);
        }
    }
    cli_table(cells, COUNT + 1, CLI_COUNT(heads), 0x1fe);
    free(cells);
    return CLI_OK;
}

static json_t *number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static int print_json(const cli_session *session, errors of[2][COUNT]) {
    bool ok = true;
    json_t *root = json_object(), *rows = json_array();
    const hd_device_info *info = hd_device_get_info(session->device);
    cli_put(root, "device", cli_json_text(info->id), &ok);
    cli_put(root, "driver", cli_json_text(info->driver), &ok);
    for (size_t i = 0; i < 2 * COUNT; i++) {
        const errors *e = &of[i % 2][i / 2];
        json_t *row = json_object();
        cli_put(row, "function", json_string(functions[i / 2].name), &ok);
        cli_put(row, "math", json_string(i % 2 ? "exact" : "fast"), &ok);
        cli_put(row, "ulp", number(e->ulp), &ok);
        cli_put(row, "ulp_at", number(e->ulp_at), &ok);
        cli_put(row, "absolute", number(e->absolute), &ok);
        cli_put(row, "absolute_at", number(e->absolute_at), &ok);
        if (json_array_append_new(rows, row) != 0) ok = false;
    }
    cli_put(root, "errors", rows, &ok);
    return cli_print_json(session->command, root, ok);
}

int cli_verify_errors(cli_session *session, bool json) {
    errors of[2][COUNT];
    float *numbers = malloc((2 * COUNT + 1) * (size_t)NUMBERS * sizeof *numbers);
    if (!numbers) return cli_fail(session->command, "no memory is left");
    cli_progress("heddle verify: kernels are compiled");
    hd_status status = measure(session, HD_MATH_FAST, numbers, of[0]);
    if (!status) status = measure(session, HD_MATH_EXACT, numbers, of[1]);
    cli_progress_end();
    free(numbers);
    if (status) return cli_session_fail(session, NULL);
    const int code = json ? print_json(session, of) : print_text(of);
    if (!code && !json) cli_print("%d numbers each, of all sizes; ULP: of an f32, and at least of 2^-126\n", NUMBERS);
    return code;
}
