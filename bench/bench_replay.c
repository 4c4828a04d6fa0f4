/* bench_replay.c: what a recorded plan costs. A chain of small dependent dispatches (132 workgroups of 256, a barrier
 * between each two) is replayed; the time of one link is the slope between a long and a short chain, so that hand-over
 * and waiting fall out. Beside it the long chain's plan is made, recorded and run anew each time. Prints one JSON line.
 *   bench_replay [device] [links] [rounds] [elements] [scale|own]
 * "scale" links heddle's element-wise kernel, "own" the smallest kernel of a user's (y[i] = x[i] + 1), whose cost is the
 * device's and the recording's alone. */
#define _POSIX_C_SOURCE 200809L
#include "clock.h"
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int elements = 132 * 256 * 4;

/* GLSL: layout(local_size_x = 256) in; layout(binding = 0) readonly buffer X { float x[]; };
 * layout(binding = 1) writeonly buffer Y { float y[]; };
 * void main() { uint i = gl_GlobalInvocationID.x; y[i] = x[i] + 1.0; } */
static const uint32_t own_words[] = {
0x07230203,0x00010300,0x000d000b,0x00000026,0x00000000,0x00020011,0x00000001,0x0006000b,
0x00000001,0x4c534c47,0x6474732e,0x3035342e,0x00000000,0x0003000e,0x00000000,0x00000001,
0x0006000f,0x00000005,0x00000004,0x6e69616d,0x00000000,0x0000000b,0x00060010,0x00000004,
0x00000011,0x00000100,0x00000001,0x00000001,0x00040047,0x0000000b,0x0000000b,0x0000001c,
0x00040047,0x00000011,0x00000006,0x00000004,0x00040048,0x00000012,0x00000000,0x00000019,
0x00050048,0x00000012,0x00000000,0x00000023,0x00000000,0x00030047,0x00000012,0x00000002,
0x00040047,0x00000014,0x00000022,0x00000000,0x00040047,0x00000014,0x00000021,0x00000001,
0x00040047,0x00000018,0x00000006,0x00000004,0x00040048,0x00000019,0x00000000,0x00000018,
0x00050048,0x00000019,0x00000000,0x00000023,0x00000000,0x00030047,0x00000019,0x00000002,
0x00040047,0x0000001b,0x00000022,0x00000000,0x00040047,0x0000001b,0x00000021,0x00000000,
0x00040047,0x00000025,0x0000000b,0x00000019,0x00020013,0x00000002,0x00030021,0x00000003,
0x00000002,0x00040015,0x00000006,0x00000020,0x00000000,0x00040017,0x00000009,0x00000006,
0x00000003,0x00040020,0x0000000a,0x00000001,0x00000009,0x0004003b,0x0000000a,0x0000000b,
0x00000001,0x0004002b,0x00000006,0x0000000c,0x00000000,0x00040020,0x0000000d,0x00000001,
0x00000006,0x00030016,0x00000010,0x00000020,0x0003001d,0x00000011,0x00000010,0x0003001e,
0x00000012,0x00000011,0x00040020,0x00000013,0x0000000c,0x00000012,0x0004003b,0x00000013,
0x00000014,0x0000000c,0x00040015,0x00000015,0x00000020,0x00000001,0x0004002b,0x00000015,
0x00000016,0x00000000,0x0003001d,0x00000018,0x00000010,0x0003001e,0x00000019,0x00000018,
0x00040020,0x0000001a,0x0000000c,0x00000019,0x0004003b,0x0000001a,0x0000001b,0x0000000c,
0x00040020,0x0000001d,0x0000000c,0x00000010,0x0004002b,0x00000010,0x00000020,0x3f800000,
0x0004002b,0x00000006,0x00000023,0x00000100,0x0004002b,0x00000006,0x00000024,0x00000001,
0x0006002c,0x00000009,0x00000025,0x00000023,0x00000024,0x00000024,0x00050036,0x00000002,
0x00000004,0x00000000,0x00000003,0x000200f8,0x00000005,0x00050041,0x0000000d,0x0000000e,
0x0000000b,0x0000000c,0x0004003d,0x00000006,0x0000000f,0x0000000e,0x00060041,0x0000001d,
0x0000001e,0x0000001b,0x00000016,0x0000000f,0x0004003d,0x00000010,0x0000001f,0x0000001e,
0x00050081,0x00000010,0x00000021,0x0000001f,0x00000020,0x00060041,0x0000001d,0x00000022,
0x00000014,0x00000016,0x0000000f,0x0003003e,0x00000022,0x00000021,0x000100fd,0x00010038,
};

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

static hd_value own_link(hd_program *program, hd_kernel *kernel, hd_value x) {
    const hd_dispatch_desc desc = { .inputs = &x, .input_count = 1, .out_dtype = HD_F32, .out_shape = HD_SHAPE(elements),
                                    .groups = { (uint32_t)elements / 256, 1, 1 } };
    return hd_dispatch(program, kernel, &desc);
}

static hd_plan *chain(hd_context *context, hd_device *device, int links, bool own) {
    hd_program *program = hd_program_create(context);
    hd_kernel *kernel = NULL;
    if (own && hd_kernel_create(context, &(hd_kernel_desc){ .spirv = own_words, .spirv_bytes = sizeof own_words }, &kernel)) return NULL;
    hd_value v = hd_input(program, "x", HD_F32, HD_SHAPE(elements));
    for (int i = 0; i < links; i++) v = own ? own_link(program, kernel, v) : hd_scale(program, v, 1.0f, 0.0f);
    static unsigned made;
    char name[16]; /* of its own, so that no plan is found that was kept */
    snprintf(name, sizeof name, "y%u", made++);
    hd_output(program, name, v);
    hd_plan *plan = NULL;
    hd_plan_create(device, program, &(hd_plan_desc){ .no_fusion = 1 }, &plan);
    hd_program_destroy(program);
    float *data = calloc((size_t)elements, sizeof *data);
    if (plan) hd_plan_write(plan, "x", data, (size_t)elements * sizeof *data);
    free(data);
    return plan;
}

/* Median time of a run and of its hand-over, in microseconds. */
static int measure(hd_plan *plan, int rounds, double *out_run, double *out_submit) {
    double *runs = calloc((size_t)rounds, sizeof *runs), *submits = calloc((size_t)rounds, sizeof *submits);
    int status = hd_plan_run(plan, NULL);
    for (int i = 0; i < rounds && !status; i++) {
        double began = now_us();
        hd_plan_stats stats;
        status = hd_plan_run(plan, NULL);
        runs[i] = now_us() - began;
        hd_plan_get_stats(plan, &stats);
        submits[i] = (double)stats.last_submit_ns * 1e-3;
    }
    *out_run = median(runs, rounds);
    *out_submit = median(submits, rounds);
    free(runs);
    free(submits);
    return status;
}

/* Median time in which a plan is made and run once, in microseconds. */
static int measure_anew(hd_context *context, hd_device *device, int links, bool own, int rounds, double *out_anew) {
    double *runs = calloc((size_t)rounds, sizeof *runs);
    int status = 0;
    for (int i = 0; i < rounds && !status; i++) {
        double began = now_us();
        hd_plan *plan = chain(context, device, links, own);
        status = !plan || hd_plan_run(plan, NULL);
        runs[i] = now_us() - began;
        hd_plan_destroy(plan);
    }
    *out_anew = median(runs, rounds);
    free(runs);
    return status;
}

int main(int count, char **arguments) {
    int links = count > 2 ? atoi(arguments[2]) : 1000, rounds = count > 3 ? atoi(arguments[3]) : 51;
    if (count > 4) elements = atoi(arguments[4]);
    hd_context *context = NULL;
    hd_device *device = NULL;
    bool own = count > 5 && strcmp(arguments[5], "own") == 0;
    if (elements < 256 || elements % 256 != 0 || links < 2 || rounds < 1) {
        fputs("bench_replay: [device] [links, 2 or more] [rounds] [elements, a multiple of 256] [scale|own]\n", stderr);
        return 2;
    }
    if (hd_context_create(NULL, &context)) return 1;
    if (hd_device_open(context, &(hd_device_desc){ .id = count > 1 ? arguments[1] : NULL }, &device)) {
        fprintf(stderr, "%s\n", hd_context_error(context));
        return 1;
    }
    hd_plan *longer = chain(context, device, links, own), *shorter = chain(context, device, 1, own);
    double long_us = 0, short_us = 0, submit_us = 0, short_submit_us = 0, anew_us = 0;
    int status = !longer || !shorter || measure(longer, rounds, &long_us, &submit_us) || measure(shorter, rounds, &short_us, &short_submit_us) ||
                 measure_anew(context, device, links, own, rounds, &anew_us);
    if (status) fprintf(stderr, "%s\n", hd_context_error(context));
    else
        printf("{\"bench\":\"replay\",\"kernel\":\"%s\",\"device\":\"%s\",\"elements\":%d,\"links\":%d,\"rounds\":%d,\"us_per_link\":%.3f,\"run_us\":%.1f,\"one_link_run_us\":%.1f,\"submit_us\":%.2f,\"anew_us\":%.1f}\n",
               own ? "own" : "scale", hd_device_get_info(device)->id, elements, links, rounds, (long_us - short_us) / (links - 1), long_us, short_us, submit_us, anew_us);
    hd_context_destroy(context);
    return status;
}
