/* test_spirv_user.c: kernels as users write them give the same on every device that takes SPIR-V: Mandelbrot, a histogram,
 * n-body, much control flow, many types, subgroups. Each as glslc -O and -O0 make it, which must agree as well. */
#include "validation.h"
#include <heddle.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "user_kernels.h"

enum { MAX_WORDS = 4096, KERNELS = (int)(sizeof user_kernels / sizeof *user_kernels) };
typedef struct launch { const char *name; uint32_t in_words, out_words, push[24], push_bytes, groups[3]; } launch;
static const launch launches[] = {
    { "mandelbrot", 4, 64 * 64, { 64, 200 }, 8, { 8, 8, 1 } },
    { "histogram", 3000, 32, { 3000, 192 }, 8, { 3, 1, 1 } },
    { "bodies", 50 * 8, 64 * 8, { 50, 0x3C23D70A }, 8, { 2, 1, 1 } },
    { "ways", 1000, 1024, { 1000, 7 }, 8, { 32, 1, 1 } },
    { "phis", 300, 1024, { 256, 9 }, 8, { 8, 1, 1 } },
    { "types", 400, 16 + 4 * 16, { 0x3F800000, 0x3F000000, 0xBF800000, 0, 0x40000000, 0x3E800000, 0x3F400000, 0, 0x3F000000, 0xBE800000, 0x3F900000, 0,
      0x3FC00000, 0xBF000000, 16, 3, 1, 4, 1 }, 76, { 1, 1, 1 } },
    { "leave", 600, 512, { 512, 99 }, 8, { 16, 1, 1 } },
    { "lanes", 4096, 4096, { 4096, 12345 }, 8, { 64, 1, 1 } },
};
static int failures;
static uint32_t input[MAX_WORDS];

static const launch *launch_of(const char *name) {
    for (size_t i = 0; i < sizeof launches / sizeof *launches; i++)
        if (strncmp(launches[i].name, name, strlen(launches[i].name)) == 0) return &launches[i];
    return NULL;
}

/* Floats where a kernel reads floats, else any bits. */
static void fill_input(const launch *l) {
    uint32_t state = 12345;
    for (uint32_t i = 0; i < l->in_words; i++) {
        state = state * 1664525u + 1013904223u;
        const float value = (float)(state >> 8) / 8388608.0f - 1.0f;
        input[i] = state >> 3;
        if (strcmp(l->name, "bodies") == 0) memcpy(&input[i], &value, 4);
        if (strcmp(l->name, "types") == 0 && i > 4) input[i] = 0x3C003800u + (state >> 22); /* halves and floats of moderate size */
    }
}

static bool run(hd_context *context, hd_device *device, int which, const launch *l, uint32_t *out) {
    hd_kernel *kernel = NULL;
    hd_plan *plan = NULL;
    hd_program *program = hd_program_create(context);
    hd_value x = hd_input(program, "x", HD_I32, HD_SHAPE((int64_t)l->in_words));
    bool fine = hd_kernel_create(context, &(hd_kernel_desc){ .spirv = user_kernels[which].words, .spirv_bytes = user_kernels[which].bytes }, &kernel) == HD_OK;
    if (fine) {
        const hd_dispatch_desc desc = { .inputs = &x, .input_count = 1, .out_dtype = HD_I32, .out_shape = HD_SHAPE((int64_t)l->out_words), .push = l->push,
                                        .push_bytes = l->push_bytes, .groups = { l->groups[0], l->groups[1], l->groups[2] } };
        hd_output(program, "y", hd_dispatch(program, kernel, &desc));
        fine = hd_plan_create(device, program, NULL, &plan) == HD_OK && hd_plan_write(plan, "x", input, (uint64_t)l->in_words * 4) == HD_OK &&
               hd_plan_run(plan, NULL) == HD_OK && hd_plan_read(plan, "y", out, (uint64_t)l->out_words * 4) == HD_OK;
    }
    if (!fine) fprintf(stderr, "%s: %s\n", user_kernels[which].name, hd_context_error(context));
    hd_plan_destroy(plan);
    hd_kernel_destroy(kernel);
    hd_program_destroy(program);
    return fine;
}

/* Again and again: workgroups meet others on other threads, and that must make no difference. */
static bool repeats(hd_context *context, hd_device *device, int which, const launch *l, const uint32_t *wanted) {
    enum { ROUNDS = 40 };
    static uint32_t again[MAX_WORDS];
    for (int round = 0; round < ROUNDS; round++) {
        memset(again, 0, sizeof again);
        if (!run(context, device, which, l, again) || memcmp(again, wanted, l->out_words * 4) != 0) return false;
    }
    return true;
}

/* How many words are not the same; of floats, not near. */
static uint32_t differing(const uint32_t *a, const uint32_t *b, uint32_t count, int floats, uint32_t *out_first) {
    uint32_t different = 0;
    for (uint32_t i = count; i-- > 0;) {
        float x, y;
        memcpy(&x, &a[i], 4);
        memcpy(&y, &b[i], 4);
        bool near = floats && fabsf(x - y) <= 2e-4f * fmaxf(1.0f, fabsf(x));
        if (a[i] == b[i] || near) continue;
        different++;
        *out_first = i;
    }
    return different;
}

int main(void) {
    static const char *const devices[] = { "vulkan", "opencl", "levelzero", "webgpu", "cpu" };
    static uint32_t results[KERNELS][MAX_WORDS], now[MAX_WORDS];
    const char *before[KERNELS] = { NULL };
    int ran = 0;
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
        hd_context *context;
        hd_device *device;
        if (hd_context_create(&(hd_context_desc){ .cache_dir = "", .strict = -1 }, &context)) return 1;
        if (hd_device_open(context, &(hd_device_desc){ .id = devices[d] }, &device)) {
            printf("skipped, no %s device\n", devices[d]);
            hd_context_destroy(context);
            continue;
        }
        for (int k = 0; k < KERNELS; k++) {
            const launch *l = launch_of(user_kernels[k].name);
            uint32_t first = 0, different;
            if (strcmp(devices[d], "levelzero") == 0 && strcmp(l->name, "lanes") == 0) continue; /* the tests' stand-in has no subgroups */
            if (strcmp(devices[d], "webgpu") == 0 && (strcmp(l->name, "lanes") == 0 || strcmp(l->name, "types") == 0)) continue; /* nor has WGSL here, nor 64 bits */
            fill_input(l);
            memset(now, 0, sizeof now);
            if (!run(context, device, k, l, now)) {
                failures++;
                continue;
            }
            ran++;
            const bool adds = strncmp(l->name, "histogram", 9) == 0; /* to what its output held before */
            if (!adds && !repeats(context, device, k, l, now)) {
                fprintf(stderr, "%s on %s: not the same every time\n", user_kernels[k].name, devices[d]);
                failures++;
            }
            const int other = before[k] ? k : k % 2 && strstr(user_kernels[k].name, "-O0") && before[k - 1] ? k - 1 : -1; /* another device, or the other form */
            if (other >= 0 && (different = differing(results[other], now, l->out_words, user_kernels[k].floats, &first))) {
                fprintf(stderr, "%s on %s: %u of %u words are not those of %s on %s, the first at %u: 0x%08x, not 0x%08x\n", user_kernels[k].name, devices[d], different,
                        l->out_words, user_kernels[other].name, before[other], first, now[first], results[other][first]);
                failures++;
            }
            uint32_t zeros = 0;
            for (uint32_t i = 0; i < l->out_words; i++) zeros += now[i] == 0;
            if (zeros > l->out_words * 3 / 4) { /* it did nothing */
                fprintf(stderr, "%s on %s: %u of %u words are zero\n", user_kernels[k].name, devices[d], zeros, l->out_words);
                failures++;
            }
            if (before[k]) continue;
            memcpy(results[k], now, sizeof now);
            before[k] = devices[d];
        }
        hd_context_destroy(context);
    }
    printf("%d runs of %d kernels, %d failures\n", ran, KERNELS, failures);
    return failures != 0 || validation_messages() > 0;
}
