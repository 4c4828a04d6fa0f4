/* bench_cpu_small.c: small work on the CPU device, where handing over costs more than computing: batches of one operation
 * from 256 elements to 4 million, run again and again, and each time after a pause in which all threads have gone to sleep.
 * Prints a line for each: the median and the least of a run, hand-over and waiting counted, in microseconds.
 *   bench_cpu_small [threads] [rounds] [pause in us] [only the cases whose name begins so] */
#define _POSIX_C_SOURCE 200809L
#include "clock.h"
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hd_context *context;

static void must(hd_status status) {
    if (status == HD_OK) return;
    fprintf(stderr, "%s\n", hd_context_error(context));
    exit(1);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct small_case {
    const char *name;
    int64_t     rows, columns; /* of the first input; a product's second one is columns x columns */
} small_case;
static const small_case cases[] = {
    { "add", 1, 256 }, { "add", 1, 1024 }, { "add", 1, 16384 }, { "add", 16, 16384 }, { "add", 64, 16384 }, { "add", 256, 16384 },
    { "softmax", 1, 256 }, { "softmax", 4, 256 }, { "softmax", 64, 256 }, { "softmax", 64, 1024 }, { "softmax", 1024, 1024 }, { "softmax", 4096, 1024 },
    { "matmul", 32, 32 }, { "matmul", 64, 64 }, { "matmul", 128, 128 }, { "matmul", 512, 512 }, { "matmul", 1024, 1024 },
    { "matvec", 1, 64 }, { "matvec", 1, 256 }, { "matvec", 1, 512 }, { "matvec", 1, 1024 }, { "matvec", 1, 2048 },
    { "chain8", 1, 1024 }, { "chain8", 16, 16384 } };

static hd_program *program_of(const small_case *c) {
    hd_program *p = hd_program_create(context);
    const hd_value a = hd_input(p, "a", HD_F32, HD_SHAPE(c->rows, c->columns));
    const bool product = c->name[0] == 'm';
    hd_value y = a;
    if (strcmp(c->name, "softmax") == 0) y = hd_softmax(p, a, -1);
    else if (strcmp(c->name, "chain8") == 0) {
        for (int i = 0; i < 8; i++) y = hd_softmax(p, y, -1);
    } else {
        const hd_value b = hd_input(p, "b", HD_F32, product ? HD_SHAPE(c->columns, c->columns) : HD_SHAPE(c->rows, c->columns));
        y = product ? hd_matmul_with(p, a, b, HD_TRANSPOSE_B) : hd_add(p, a, b);
    }
    hd_output(p, "y", y);
    return p;
}

static void fill(hd_plan *plan, const hd_program *p) {
    for (size_t i = 0; i < hd_program_port_count(p); i++) {
        const hd_port port = hd_program_port(p, i);
        const uint64_t bytes = hd_tensor_bytes(port.dtype, port.shape);
        if (port.kind != HD_PORT_INPUT) continue;
        float *data = malloc(bytes);
        if (!data) exit(1);
        for (uint64_t e = 0; e < bytes / sizeof *data; e++) data[e] = (float)(e * 37 % 101) / 101.0f - 0.5f;
        must(hd_plan_write(plan, port.name, data, bytes));
        free(data);
    }
}

static void measure(hd_plan *plan, int rounds, long pause_us, double *times) {
    for (int i = -2; i < rounds; i++) {
        if (pause_us) nanosleep(&(struct timespec){ .tv_nsec = pause_us * 1000 }, NULL);
        const double began = now_us();
        must(hd_plan_run(plan, NULL));
        if (i >= 0) times[i] = now_us() - began;
    }
    qsort(times, (size_t)rounds, sizeof *times, by_value);
}

int main(int count, char **arguments) {
    const int threads = count > 1 ? atoi(arguments[1]) : 0, rounds = count > 2 ? atoi(arguments[2]) : 301, pause_us = count > 3 ? atoi(arguments[3]) : 1000;
    const char *only = count > 4 ? arguments[4] : "";
    if (threads < 0 || rounds < 1 || pause_us < 0 || pause_us >= 1000000) return 2;
    double *times = malloc((size_t)rounds * sizeof *times);
    if (!times) return 1;
    hd_device *device;
    must(hd_context_create(&(hd_context_desc){ .cpu_threads = (uint32_t)threads }, &context));
    must(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device));
    printf("case              elements    median     least  after a pause: median     least\n");
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        if (strncmp(cases[c].name, only, strlen(only)) != 0) continue;
        hd_plan *plan;
        hd_program *p = program_of(&cases[c]);
        must(hd_plan_create(device, p, NULL, &plan));
        fill(plan, p);
        measure(plan, rounds, 0, times);
        const double median = times[rounds / 2], least = times[0];
        measure(plan, rounds, pause_us, times);
        printf("%-8s %8lld x %6lld %9.1f %9.1f %22.1f %9.1f\n", cases[c].name, (long long)cases[c].rows, (long long)cases[c].columns, median, least, times[rounds / 2], times[0]);
        hd_plan_destroy(plan);
        hd_program_destroy(p);
    }
    free(times);
    hd_context_destroy(context);
    return 0;
}
