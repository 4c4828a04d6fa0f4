/* bench_route_load.c: a plan whose route is "auto" while somebody else computes on one of its devices: a product that runs again and
 * again, with writes and reads; after a while a load begins, and ends. With busy threads as the load it is the largest product that the
 * route leaves on the CPU; with products of 4096 rows on the device, the smallest one that the route sends there. Prints where it
 * ran, how often it went to another place, and what a round took, once in half a second. Run `heddle tune` first.
 *   bench_route_load DEVICE [busy threads, 0: load the device] [seconds before] [of load] [after] */
#define _POSIX_C_SOURCE 200809L
#include "clock.h"
#include <heddle.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST = 32, MOST = 512, LARGE = 4096, MOST_THREADS = 256, MOST_ROUNDS = 1 << 20 };

static hd_context *context;
static void check(hd_status status) {
    if (!status) return;
    fprintf(stderr, "bench_route_load: %s\n", hd_context_error(context));
    exit(1);
}

/* ---- load ---- */

static atomic_bool ends;
static void *burn(void *argument) {
    volatile double x = 1;
    while (!atomic_load(&ends)) x = x * 1.0000001 + 1e-9;
    return argument;
}

/* Products on the device, one after the other, by a context of their own. */
static void *load_device(void *id) {
    hd_context *own;
    hd_device *device;
    hd_plan *plan;
    float *values = calloc((size_t)LARGE * LARGE, sizeof *values);
    if (!values || hd_context_create(NULL, &own)) return NULL;
    hd_program *p = hd_program_create(own);
    const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(LARGE, LARGE));
    hd_output(p, "y", hd_matmul(p, x, x));
    if (!hd_device_open(own, &(hd_device_desc){ .id = id }, &device) && !hd_plan_create(device, p, NULL, &plan) &&
        !hd_plan_write(plan, "x", values, (uint64_t)LARGE * LARGE * sizeof *values))
        while (!atomic_load(&ends) && !hd_plan_run(plan, NULL)) {}
    hd_context_destroy(own); /* ends what was made from it */
    free(values);
    return NULL;
}

static int burners(pthread_t *threads, int count, int running, void *(*work)(void *), void *argument) {
    atomic_store(&ends, count == 0);
    for (int i = 0; i < running && count == 0; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, work, argument) != 0) return i;
    return count;
}

/* ---- the plan ---- */

static float *data[3];

static hd_plan *make(hd_device *device, hd_device *cpu, int64_t n) {
    hd_plan *plan;
    hd_program *p = hd_program_create(context);
    const hd_value a = hd_input(p, "a", HD_F32, HD_SHAPE(n, n)), b = hd_input(p, "b", HD_F32, HD_SHAPE(n, n));
    hd_output(p, "y", hd_matmul(p, a, b));
    check(hd_plan_create(device, p, &(hd_plan_desc){ .beside = &cpu, .beside_count = 1, .route = "auto", .follow = 1 }, &plan));
    hd_program_destroy(p);
    return plan;
}

static double run(hd_plan *plan, int64_t n) {
    const uint64_t bytes = (uint64_t)(n * n) * sizeof(float);
    const double began = now_s();
    check(hd_plan_write(plan, "a", data[0], bytes));
    check(hd_plan_write(plan, "b", data[1], bytes));
    check(hd_plan_run(plan, NULL));
    check(hd_plan_read(plan, "y", data[2], bytes));
    return now_s() - began;
}

static bool is_on_cpu(const hd_plan *plan) {
    static char text[1 << 16];
    check(hd_plan_explain(plan, text, sizeof text, NULL));
    return strstr(text, "\ndevice cpu ") != NULL;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void report(const hd_plan *plan, double at, int threads, double *rounds, int count) {
    hd_plan_stats stats;
    check(hd_plan_get_stats(plan, &stats));
    qsort(rounds, (size_t)count, sizeof *rounds, by_size);
    printf("%5.1f s  load %3d  on %-6s  round %9.1f us  %8llu runs  %5llu switches\n", at, threads, is_on_cpu(plan) ? "cpu" : "device", 1e6 * rounds[count / 2],
           (unsigned long long)stats.runs, (unsigned long long)stats.switches);
    fflush(stdout);
}

int main(int count, char **arguments) {
    static pthread_t threads[MOST_THREADS];
    static double rounds[MOST_ROUNDS];
    const double seconds[3] = { count > 3 ? atof(arguments[3]) : 5, count > 4 ? atof(arguments[4]) : 10, count > 5 ? atof(arguments[5]) : 15 };
    const int wanted = count > 2 ? atoi(arguments[2]) : 32, threads_most = wanted < MOST_THREADS ? wanted : MOST_THREADS, busy = wanted > 0 ? threads_most : 1;
    char *id = count > 1 ? arguments[1] : NULL;
    hd_device *device, *cpu;
    hd_plan *plan = NULL;
    int64_t n = wanted > 0 ? MOST : LEAST;
    if (hd_context_create(NULL, &context)) return 1;
    check(hd_device_open(context, &(hd_device_desc){ .id = id }, &device));
    check(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &cpu));
    for (int i = 0; i < 3; i++) data[i] = calloc(MOST * MOST, sizeof(float));
    if (!data[0] || !data[1] || !data[2]) return 1;
    for (;; n = wanted > 0 ? n * 3 / 4 : n * 5 / 4) {
        plan = make(device, cpu, n);
        for (int i = 0; i < 200; i++) run(plan, n);
        if (is_on_cpu(plan) == (wanted > 0) || (wanted > 0 ? n * 3 / 4 < LEAST : n * 5 / 4 > MOST)) break;
        hd_plan_destroy(plan);
    }
    printf("a product of %lld rows and columns, on the CPU or on %s\n", (long long)n, hd_device_get_info(device)->name);
    const double began = now_s(), ended = began + seconds[0] + seconds[1] + seconds[2];
    double next = began + 0.5;
    for (int at = 0, loaded = 0; now_s() < ended;) {
        const double spent = now_s() - began;
        const bool wants = spent >= seconds[0] && spent < seconds[0] + seconds[1];
        if (wants != (loaded > 0)) loaded = burners(threads, wants ? busy : 0, loaded, wanted > 0 ? burn : load_device, id);
        rounds[at++] = run(plan, n);
        if (now_s() < next && at < MOST_ROUNDS) continue;
        report(plan, now_s() - began, loaded, rounds, at);
        at = 0;
        next += 0.5;
    }
    hd_plan_destroy(plan);
    hd_context_destroy(context);
    for (int i = 0; i < 3; i++) free(data[i]);
    return 0;
}
