/* bench_replay.c: what a recorded plan costs. A chain of small dependent dispatches (132 workgroups of 256, a barrier
 * between each two) is replayed; the time of one link is the slope between a long and a short chain, so that hand-over
 * and waiting fall out. Prints one JSON line.   bench_replay [device] [links] [rounds] [elements] */
#define _POSIX_C_SOURCE 200809L
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int elements = 132 * 256 * 4;

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

static hd_plan *chain(hd_context *context, hd_device *device, int links) {
    hd_program *program = hd_program_create(context);
    hd_value v = hd_input(program, "x", HD_F32, HD_SHAPE(elements));
    for (int i = 0; i < links; i++) v = hd_scale(program, v, 1.0f, 0.0f);
    hd_output(program, "y", v);
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

int main(int count, char **arguments) {
    int links = count > 2 ? atoi(arguments[2]) : 1000, rounds = count > 3 ? atoi(arguments[3]) : 51;
    if (count > 4) elements = atoi(arguments[4]);
    hd_context *context = NULL;
    hd_device *device = NULL;
    if (elements < 1 || links < 2 || rounds < 1 || hd_context_create(NULL, &context)) return 2;
    if (hd_device_open(context, &(hd_device_desc){ .id = count > 1 ? arguments[1] : NULL }, &device)) {
        fprintf(stderr, "%s\n", hd_context_error(context));
        return 1;
    }
    hd_plan *longer = chain(context, device, links), *shorter = chain(context, device, 1);
    double long_us = 0, short_us = 0, submit_us = 0, short_submit_us = 0;
    int status = !longer || !shorter || measure(longer, rounds, &long_us, &submit_us) || measure(shorter, rounds, &short_us, &short_submit_us);
    if (status) fprintf(stderr, "%s\n", hd_context_error(context));
    else
        printf("{\"bench\":\"replay\",\"device\":\"%s\",\"elements\":%d,\"links\":%d,\"rounds\":%d,\"us_per_link\":%.3f,\"run_us\":%.1f,\"one_link_run_us\":%.1f,\"submit_us\":%.2f}\n",
               hd_device_get_info(device)->id, elements, links, rounds, (long_us - short_us) / (links - 1), long_us, short_us, submit_us);
    hd_context_destroy(context);
    return status;
}
