/* bench_compile.c: how long a plan takes whose kernels were never compiled: by one thread, and side by side by all. The plan is
 * of a decoder layer, one token and a prompt (tests/golden). Each sample is a process of its own, and the caches on disk are off,
 * heddle's and the drivers'. In turn; medians and ranges of milliseconds.
 *   bench_compile [device] [rounds] [program.hd ...] */
#define _POSIX_C_SOURCE 200809L
#include "base/base.h"
#include "os/os.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_ROUNDS = 99, MAX_TEXT = 1 << 16 };

typedef struct sample {
    double   ms;
    uint64_t compiled;
} sample;

static void must(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "bench_compile: %s\n", what);
    exit(1);
}

static void read_text(const char *path, char *out) {
    FILE *file = fopen(path, "rb");
    must(file != NULL, path);
    out[fread(out, 1, MAX_TEXT - 1, file)] = 0;
    fclose(file);
}

/* Opens the device and makes the plan; only that is timed. */
static sample make_plan(const char *device_name, const char *text, uint32_t threads) {
    hd_context *context;
    hd_device *device;
    hd_program *program;
    hd_plan *plan;
    hd_device_stats stats;
    const hd_context_desc desc = { .cpu_threads = threads, .cache_dir = "" };
    must(hd_context_create(&desc, &context) == HD_OK, "no context");
    must(hd_device_open(context, &(hd_device_desc){ .id = device_name }, &device) == HD_OK, hd_context_error(context));
    must(hd_program_parse(context, text, strlen(text), &program) == HD_OK, hd_context_error(context));
    const uint64_t began = hdi_now_ns();
    must(hd_plan_create(device, program, NULL, &plan) == HD_OK, hd_context_error(context));
    const uint64_t ended = hdi_now_ns();
    hd_device_get_stats(device, &stats);
    hd_context_destroy(context);
    return (sample){ (double)(ended - began) * 1e-6, stats.kernels_compiled };
}

static sample in_child(const char *device, const char *text, uint32_t threads) {
    int ends[2], result = 1;
    sample made = { 0 };
    must(pipe(ends) == 0, "no pipe");
    const pid_t child = fork();
    if (child == 0) {
        made = make_plan(device, text, threads);
        _exit(write(ends[1], &made, sizeof made) == sizeof made ? 0 : 1);
    }
    must(child > 0 && waitpid(child, &result, 0) == child && result == 0 && read(ends[0], &made, sizeof made) == sizeof made, "a sample failed");
    close(ends[0]);
    close(ends[1]);
    return made;
}

static int by_time(const void *a, const void *b) {
    const sample *x = a, *y = b;
    return (x->ms > y->ms) - (x->ms < y->ms);
}

static void measure(const char *device, const char *path, int rounds) {
    static char text[MAX_TEXT];
    static sample one[MAX_ROUNDS], all[MAX_ROUNDS];
    read_text(path, text);
    for (int round = 0; round < rounds; round++) {
        one[round] = in_child(device, text, 1);
        all[round] = in_child(device, text, 0);
    }
    qsort(one, (size_t)rounds, sizeof *one, by_time);
    qsort(all, (size_t)rounds, sizeof *all, by_time);
    const sample middle_one = one[rounds / 2], middle_all = all[rounds / 2];
    const char *name = strrchr(path, '/');
    printf("%-12s %8s %10llu %10.1f  %8.1f..%-8.1f %10.1f  %8.1f..%-8.1f %8.2f\n", name ? name + 1 : path, device, (unsigned long long)middle_one.compiled,
           middle_one.ms, one[0].ms, one[rounds - 1].ms, middle_all.ms, all[0].ms, all[rounds - 1].ms, middle_one.ms / middle_all.ms);
}

int main(int argc, char **argv) {
    static const char *const programs[] = { HEDDLE_BENCH_PROGRAMS "/layer.hd", HEDDLE_BENCH_PROGRAMS "/prefill.hd" };
    static const char *const without_caches[][2] = { { "MESA_SHADER_CACHE_DISABLE", "true" }, { "POCL_KERNEL_CACHE", "0" }, { "__GL_SHADER_DISK_CACHE", "0" },
                                                     { "CUDA_CACHE_DISABLE", "1" }, { "AMD_COMGR_CACHE", "0" }, { "NEO_CACHE_PERSISTENT", "0" } };
    const char *device = argc > 1 ? argv[1] : "vulkan";
    const int rounds = argc > 2 ? atoi(argv[2]) : 5;
    must(rounds > 0 && rounds <= MAX_ROUNDS, "1 to 99 rounds");
    for (size_t i = 0; i < HDI_COUNT(without_caches); i++) setenv(without_caches[i][0], without_caches[i][1], 1);
    printf("%u processors; milliseconds of a plan, median and range of %d\n", (unsigned)hdi_os_processor_count(), rounds);
    printf("%-12s %8s %10s %10s  %18s %10s  %18s %8s\n", "PROGRAM", "DEVICE", "KERNELS", "1 THREAD", "", "ALL", "", "RATIO");
    for (int i = 3; i < argc; i++) measure(device, argv[i], rounds);
    for (size_t i = 0; i < HDI_COUNT(programs) && argc <= 3; i++) measure(device, programs[i], rounds);
    return 0;
}
