/* bench_sgemm.c: the CPU device's matrix product beside OpenBLAS, which is opened at run time and may be absent.
 * For every size the two run in turn, so that a noisy machine disturbs both alike; what is printed is the median of
 * GFLOP/s, the spread (the middle half of the runs, in per cent of the median), the ratio of the medians, and the
 * largest difference between the two results over sum|a*b|, in units of 2^-24. Arguments: rounds, then any of the row
 * names. Set OPENBLAS_CORETYPE to choose OpenBLAS's kernels: older ones do not know newer processors. */
#define _GNU_SOURCE /* pthread_setaffinity_np */
#include "clock.h"
#include "kernels/cpu/sgemm.h"
#include "random.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS_MAX = 2, ROUNDS_MAX = 99 };

typedef void (*cblas_sgemm_function)(int, int, int, int, int, int, float, const float *, int, const float *, int, float,
                                     float *, int);

/* ---- workers: one besides the caller. It spins for a moment before it sleeps, as a pool's would, and is asleep while
 * OpenBLAS runs. */

static const hdcpu_sgemm *current;
static void              *scratch[WORKERS_MAX];
static atomic_uint        next_task, generation, done;
static sem_t              wake;
static atomic_int         asleep;

static void work(void *room) {
    for (uint32_t task; (task = atomic_fetch_add(&next_task, 1)) < current->blocking.task_count;)
        hdcpu_sgemm_task(current, task, room);
}

/* Keeps the calling thread on one processor, or lets it go (-1). A woken worker may otherwise share its waker's for
 * several milliseconds; a pool keeps its workers apart, too. */
static void stay_on(int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (i == processor || processor < 0)
            CPU_SET((size_t)i, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static void *worker(void *unused) {
    (void)unused;
    stay_on(1);
    for (unsigned seen = 0;;) {
        for (double begin = now_s(); atomic_load(&generation) == seen && now_s() - begin < 1e-3;)
            sched_yield();
        if (atomic_load(&generation) == seen) {
            atomic_store(&asleep, 1);
            if (atomic_load(&generation) == seen || !atomic_exchange(&asleep, 0))
                while (sem_wait(&wake) != 0)
                    ;
            continue;
        }
        seen++;
        work(scratch[1]);
        atomic_store(&done, seen);
    }
    return NULL;
}

static void product(const hdcpu_sgemm *job, uint32_t threads) {
    if (threads == 1 || job->blocking.task_count == 1) {
        for (uint32_t task = 0; task < job->blocking.task_count; task++)
            hdcpu_sgemm_task(job, task, scratch[0]);
        return;
    }
    current = job;
    atomic_store(&next_task, 0);
    unsigned mine = atomic_fetch_add(&generation, 1) + 1;
    if (atomic_exchange(&asleep, 0))
        sem_post(&wake);
    work(scratch[0]);
    while (atomic_load(&done) != mine)
        sched_yield();
}

/* ---- one row of the table */

typedef struct row {
    const char *name;
    int64_t     m, n, k;
    int         b_transposed, half;
} row;

static const row rows[] = {
    { "512", 512, 512, 512, 0, 0 },
    { "1024", 1024, 1024, 1024, 0, 0 },
    { "2048", 2048, 2048, 2048, 0, 0 },
    { "2048t", 2048, 2048, 2048, 1, 0 },
    { "2048h", 2048, 2048, 2048, 1, 1 },
    { "2047", 2047, 2049, 2051, 0, 0 },
    { "4096x512x14336", 4096, 512, 14336, 0, 0 },
    { "512x4096x14336t", 512, 4096, 14336, 1, 0 },
    { "64x4096x4096t", 64, 4096, 4096, 1, 0 },
    { "16x4096x4096t", 16, 4096, 4096, 1, 0 },
    { "4x4096x4096t", 4, 4096, 4096, 1, 0 },
    { "1x4096x4096t", 1, 4096, 4096, 1, 0 },
    { "1x4096x4096th", 1, 4096, 4096, 1, 1 },
    { "1x4096x4096", 1, 4096, 4096, 0, 0 },
    { "4096x1x4096", 4096, 1, 4096, 0, 0 },
    { "4x4096x4096", 4, 4096, 4096, 0, 0 },
    { "4096x8x512", 4096, 8, 512, 0, 0 },
    { "128", 128, 128, 128, 0, 0 },
    { "64", 64, 64, 64, 0, 0 },
    { "33", 33, 33, 33, 0, 0 },
    { "17", 17, 17, 17, 0, 0 },
    { "8", 8, 8, 8, 0, 0 },
    { "4", 4, 4, 4, 0, 0 },
    { "1x64x64", 1, 64, 64, 0, 0 },
    { "100x3x50", 100, 3, 50, 0, 0 },
};

static int ascending(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static float *floats(int64_t count) {
    float *p = aligned_alloc(64, ((size_t)count * sizeof(float) + 63) / 64 * 64);
    if (!p) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
    return p;
}

static void naive(const row *r, const float *restrict a, const float *restrict b, float *restrict c) {
    int64_t bk = r->b_transposed ? 1 : r->n, bn = r->b_transposed ? r->k : 1;
    for (int64_t i = 0; i < r->m; i++)
        for (int64_t j = 0; j < r->n; j++) {
            float sum = 0.0f;
            for (int64_t d = 0; d < r->k; d++)
                sum += a[i * r->k + d] * b[d * bk + j * bn];
            c[i * r->n + j] = sum;
        }
}

/* i-k-j, which a compiler vectorizes. */
static void naive_fast(const row *r, const float *restrict a, const float *restrict b, float *restrict c) {
    for (int64_t i = 0; i < r->m; i++) {
        for (int64_t j = 0; j < r->n; j++)
            c[i * r->n + j] = 0.0f;
        for (int64_t d = 0; d < r->k; d++)
            for (int64_t j = 0; j < r->n; j++)
                c[i * r->n + j] += a[i * r->k + d] * b[d * r->n + j];
    }
}

/* The largest |c - reference| / sum|a * b|, over at most 4,000 elements. */
static double largest_error(const row *r, const float *a, const float *b, const float *c) {
    int64_t bk = r->b_transposed ? 1 : r->n, bn = r->b_transposed ? r->k : 1;
    int64_t step = r->m * r->n / 4000 + 1;
    double  worst = 0.0;
    for (int64_t at = 0; at < r->m * r->n; at += step) {
        int64_t i = at / r->n, j = at % r->n;
        double  sum = 0.0, size = 0.0;
        for (int64_t d = 0; d < r->k; d++) {
            double term = (double)a[i * r->k + d] * (double)b[d * bk + j * bn];
            sum += term;
            size += fabs(term);
        }
        worst = fmax(worst, fabs((double)c[at] - sum) / size);
    }
    return worst * 0x1p24;
}

static void measure(const row *r, uint32_t threads, int rounds, cblas_sgemm_function sgemm) {
    float   *a = floats(r->m * r->k), *b = floats(r->k * r->n), *c = floats(r->m * r->n), *other = floats(r->m * r->n);
    uint16_t *half = malloc((size_t)(r->k * r->n) * sizeof *half);
    uint32_t seed = 1;
    for (int64_t i = 0; i < r->m * r->k; i++)
        a[i] = random_float(&seed);
    for (int64_t i = 0; i < r->k * r->n; i++) { /* values that f16 holds: 1.0 to 2.0, either sign */
        half[i] = (uint16_t)(0x3c00u | (random_word(&seed) >> 16 & 0x83ffu));
        b[i] = random_float(&seed);
        if (r->half)
            b[i] = (half[i] & 0x8000u ? -1.0f : 1.0f) * (1.0f + (float)(half[i] & 0x3ffu) * 0x1p-10f);
    }
    hdcpu_sgemm job = {
        .m = r->m, .n = r->n, .k = r->k, .a = { a, HD_F32, r->k, 1 }, .b = { b, HD_F32, r->n, 1 }, .c = c,
        .c_row_stride = r->n, .blocking = hdcpu_sgemm_plan(NULL, r->m, r->n, r->k, threads),
    };
    if (r->b_transposed)
        job.b = (hdcpu_matrix){ b, HD_F32, 1, r->k };
    if (r->half)
        job.b.data = half, job.b.type = HD_F16;
    for (int i = 0; i < WORKERS_MAX; i++)
        scratch[i] = floats((int64_t)(job.blocking.scratch_bytes / sizeof(float)));

    double flops = 2.0 * (double)r->m * (double)r->n * (double)r->k, rate[3][ROUNDS_MAX] = { { 0 } };
    int    repeat = flops < 2e7 ? (int)(2e7 / flops) + 1 : 1, small = flops < 2e8;
    int    warm_up = -(int)(flops < 5e9 ? 5e9 / flops + 1.0 : 0.0) / (small ? 10 : 1);
    for (int round = -1; round < rounds; round++) {
        if (sgemm && threads > 1) /* OpenBLAS's threads spin for a while after a product */
            nanosleep(&(struct timespec){ .tv_nsec = 40000000 }, NULL);
        stay_on(threads > 1 ? 0 : -1);
        double begin = 0.0, middle = 0.0, end = 0.0;
        for (int i = warm_up; i < repeat; i++) { /* the first wake the workers, and are not timed */
            begin = i == 0 ? now_s() : begin;
            job.blocking = small ? hdcpu_sgemm_plan(NULL, r->m, r->n, r->k, threads) : job.blocking;
            product(&job, threads);
        }
        double ours_s = now_s() - begin;
        stay_on(-1);
        for (int i = warm_up; sgemm && i < repeat; i++) {
            middle = i == 0 ? now_s() : middle;
            sgemm(101, 111, r->b_transposed ? 112 : 111, (int)r->m, (int)r->n, (int)r->k, 1.0f, a, (int)r->k, b,
                  (int)(r->b_transposed ? r->k : r->n), 0.0f, other, (int)r->n);
        }
        end = now_s();
        for (int i = 0; small && i < repeat; i++)
            (r->b_transposed ? naive : naive_fast)(r, a, b, other);
        double last = now_s();
        if (round >= 0) {
            rate[0][round] = flops * repeat / ours_s * 1e-9;
            rate[1][round] = flops * repeat / (end - middle) * 1e-9;
            rate[2][round] = flops * repeat / (last - end) * 1e-9;
        }
    }
    for (int i = 0; i < 3; i++)
        qsort(rate[i], (size_t)rounds, sizeof(double), ascending);
    double ours = rate[0][rounds / 2], theirs = rate[1][rounds / 2];
    printf("%-16s %u %4u %9.2f %5.1f%%", r->name, threads, job.blocking.task_count, ours,
           100.0 * (rate[0][rounds * 3 / 4] - rate[0][rounds / 4]) / ours);
    if (sgemm)
        printf(" %9.2f %5.1f%% %7.3f", theirs, 100.0 * (rate[1][rounds * 3 / 4] - rate[1][rounds / 4]) / theirs,
               ours / theirs);
    if (small)
        printf(" naive %8.2f", rate[2][rounds / 2]);
    printf(" error %.2f\n", largest_error(r, a, b, c));
    fflush(stdout);
    for (int i = 0; i < WORKERS_MAX; i++)
        free(scratch[i]);
    free(half), free(a), free(b), free(c), free(other);
}

int main(int argc, char **argv) {
    void *library = dlopen("libopenblas.so.0", RTLD_NOW);
    cblas_sgemm_function sgemm = NULL;
    void (*set_threads)(int) = NULL;
    char *(*core)(void) = NULL;
    if (library) {
        *(void **)&sgemm = dlsym(library, "cblas_sgemm");
        *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
        *(void **)&core = dlsym(library, "openblas_get_corename");
    }
    pthread_t thread;
    if (sem_init(&wake, 0, 0) != 0 || pthread_create(&thread, NULL, worker, NULL) != 0)
        return 1;
    int rounds = argc > 1 ? atoi(argv[1]) : 9;
    if (rounds < 1 || rounds > ROUNDS_MAX)
        rounds = 9;
    printf("kernels %s, OpenBLAS %s, medians of %d\n", hdcpu_sgemm_kernels_name(hdcpu_sgemm_kernels_at(0)),
           core ? core() : "absent", rounds);
    printf("m x n x k        thr tasks  GFLOP/s spread  OpenBLAS spread   ratio\n");
    for (uint32_t threads = 1; threads <= WORKERS_MAX; threads++) {
        if (set_threads)
            set_threads((int)threads);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            int wanted = argc <= 2;
            for (int at = 2; at < argc; at++)
                wanted |= strcmp(argv[at], rows[i].name) == 0;
            if (!wanted)
                continue;
            measure(&rows[i], threads, rounds, sgemm);
        }
    }
    return 0;
}
