/* test_spirv_foreign.c: kernels that asked more of heddle than its own do
 * (foreign_kernels.py) give what C says they give, on every device that takes
 * SPIR-V. */
#include <heddle.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "foreign_kernels.h"

enum { COUNT = 256, N = 8, M = 5, KERNELS = (int)(sizeof foreign_kernels / sizeof *foreign_kernels) };
static float a[COUNT], wanted[COUNT], got[COUNT];
static int failures;
#define NO_SUBGROUPS "webgpu levelzero" /* in WGSL here, and in the stand-in */

/* ---- what each gives; how many numbers ---- */

static int barriers(void) { /* of the first M rows of 32 */
    for (int i = 0; i < M * 32; i++) wanted[i] = a[i] * 2.0f + a[i ^ 1];
    return M * 32;
}
static int continues(void) {
    for (int i = 0; i < M * 32; i++) {
        float sum = 0;
        for (int k = 0; k < 8; k++) sum += a[i / 8 * 8 + k];
        wanted[i] = sum + (i % 32 % 3 == 0 ? 0.0f : 1.0f);
    }
    return M * 32;
}
static int two_of_one(void) { /* with the constant 16, in 2 workgroups */
    for (int i = 0; i < 32; i++) wanted[i] = 16016.0f;
    return 32;
}
static int wide(void) {
    for (int i = 0; i < 64; i++) wanted[i] = (float)((double)a[i] * 3.0);
    return 64;
}
static int shuffles(void) {
    for (int i = 0; i < 64; i++) wanted[i] = 7.0f * a[i] + 3.0f * 3.0f + 4.0f * 1.0f + a[i];
    return 64;
}
static int begins(void) {
    static const float table[] = { 7, 3, 4, 1 };
    for (int i = 0; i < 64; i++) wanted[i] = a[i] + table[i & 3];
    return 64;
}
static int uniforms(void) { /* floats of the block: 0 scale, 4 t, 20 m, 32 r, the rows and elements 4 apart */
    for (int i = 0; i < 64; i++) wanted[i] = a[i] * a[i % 4] + a[4 + i / 4 % 4 * 4] + a[20 + 2 * 4 + 1] + a[32 + 2 * 4 + 1];
    return 64;
}
static int doubles(void) { /* the sign bit of a double is turned */
    for (int i = 0; i < 64; i++) wanted[i] = -a[i];
    return 64;
}
static int stages(void) {
    for (int i = 0; i < 64; i++) wanted[i] = 2.0f * a[i];
    return 64;
}
static int zeros(void) { /* and the sum of the indices, in every workgroup */
    for (int i = 0; i < COUNT; i++) wanted[i] = a[i] + 31.0f * 16.0f;
    return COUNT;
}
static int zeros_sized(void) { /* with the constant 16, in 16 workgroups */
    for (int i = 0; i < COUNT; i++) wanted[i] = 3.0f * a[i];
    return COUNT;
}
static int quads(void) { /* subgroups begin where quads do */
    for (int i = 0; i < 64; i++) {
        const float *quad = a + i / 4 * 4;
        bool any = false, all = true;
        for (int k = 0; k < 4; k++) any |= quad[k] > 2.0f, all &= quad[k] < 2.0f;
        wanted[i] = quad[(i + 3) % 4] + (float)((i + 1) % 4) * 8.0f + (any ? 64.0f : 0.0f) + (all ? 128.0f : 0.0f);
    }
    return 64;
}
static int partitions(void) { /* each quad is one, as are all odd lanes; -INT_MAX - 1 & 7 is 0 */
    for (int i = 0; i < 64; i++) {
        const int first = i / 4 * 4, before = i % 4 ? i % 4 - 1 : 0;
        float sum = 0, upto = 0;
        bool all = true;
        for (int k = 0; k < 4; k++) {
            sum += a[first + k];
            upto += k <= i % 4 ? a[first + k] : 0;
            all &= a[first + k] > 0;
        }
        wanted[i] = 422 + sum + upto + (float)first * 0.5f - (float)(first + 3) * 0.25f + (float)before * 16.0f;
        wanted[i] += all ? 1001 : 1;
    }
    return 64;
}
static int some_partitions(void) { /* of five lanes in eight: a quad and one that is alone */
    for (int i = 0; i < 64; i++) {
        const float *quad = a + i / 4 * 4;
        wanted[i] = i % 8 < 4 ? quad[0] + quad[1] + quad[2] + quad[3] + 4 : a[i] + (i % 8 == 4 ? 1 : 0);
    }
    return 64;
}
static int old_groups(void) { /* 2: the ballot's first quad; 4: any is; 3: the third lane; 1: as many as up to it */
    for (int i = 0; i < 64; i++) wanted[i] = a[i] + 2 + 0 + 4 + 3 + 1 + 2;
    return 64;
}
static int rotated(void) {
    for (int i = 0; i < 64; i++) {
        const float *quad = a + i / 4 * 4;
        bool any = false;
        for (int k = 0; k < 4; k++) any |= quad[k] > 2.0f;
        wanted[i] = quad[(i + 1) % 4] + (any ? 64.0f : 0.0f);
    }
    return 64;
}
static int order(const void *x, const void *y) {
    const float p = *(const float *)x, q = *(const float *)y;
    return (p > q) - (p < q);
}
static int of_three(void) {
    for (int i = 0; i < 64; i++) {
        const float x = a[i], y = a[i + 1], z = a[i + 2], p = truncf(x * 16), q = truncf(y * 16);
        float v[] = { x, y, z }, w[] = { p, q, -3 }, u[] = { (float)i, 40, (float)(i * 7 % 64) };
        qsort(v, 3, sizeof *v, order);
        qsort(w, 3, sizeof *w, order);
        qsort(u, 3, sizeof *u, order);
        const bool along_z = fabsf(z) >= fabsf(x) && fabsf(z) >= fabsf(y), along_y = !along_z && fabsf(y) >= fabsf(x);
        const float along = along_z ? z : along_y ? y : x;
        const float across = along_z ? (z < 0 ? -x : x) : along_y ? x : x < 0 ? z : -z;
        const float down = along_y ? (y < 0 ? -z : z) : -y;
        wanted[i] = v[0] + 2 * v[1] + 4 * v[2] + w[0] + w[1] + w[2] + u[0] + u[1] + u[2];
        wanted[i] += 100.0f * (float)((along_z ? 4 : along_y ? 2 : 0) + (along < 0));
        wanted[i] += 8 * (across / fabsf(along) * 0.5f + 0.5f) + 16 * (down / fabsf(along) * 0.5f + 0.5f);
    }
    return 64;
}
static int swizzles(void) {
    static const int from[] = { 3, 2, 0, 0 }, below[] = { 0, 1, 1, 2 };
    for (int i = 0; i < 64; i++) {
        wanted[i] = a[i / 4 * 4 + from[i % 4]] + a[(i & ~1) ^ 2] + 1;
        wanted[i] += i % 32 < 4 ? (float)(below[i % 4] * 16 + (i % 4 == 1 ? 512 : 0)) : 0;
        wanted[i] += i % 4 == 1 || i % 4 == 2 ? 1024.0f : 0; /* the first one reads from the fourth, which is not there */
    }
    return 64;
}
static int derived(void) {
    for (int i = 0; i < 64; i++) {
        const float *quad = a + i / 4 * 4;
        const float across = quad[i % 4 | 1] - quad[i % 4 & 2], down = quad[i % 4 | 2] - quad[i % 4 & 1];
        wanted[i] = 2 * across + 16 * down + 64 * (quad[1] - quad[0]) + 256 * (quad[2] - quad[0]);
        wanted[i] += 1024 * (fabsf(across) + fabsf(down));
    }
    return 64;
}
static int laid_out(void) {
    for (int i = 0; i < 64; i++) wanted[i] = a[3 + (i % 32 ^ 3)] + a[0] * 16 + a[2] * 256;
    return 64;
}
static int specs(void) { /* 16, -5 and -9 */
    for (int i = 0; i < 64; i++) wanted[i] = 16 * 4 - 5 - 9;
    return 64;
}
static int spelled(void) {
    for (int i = 0; i < 64; i++) wanted[i] = 16 * a[i] + 7 + 2 * a[i] * a[i] + (i == 5 ? 1.0f : i == 6 ? 3.0f : 7.0f);
    return 64;
}
static int narrow(void) { /* the upper halves of floats */
    for (int i = 0; i < 64; i++) wanted[i] = 1 + (float)(i & 3) / 128;
    return 64;
}
static int uncontracted(void) {
    for (int i = 0; i < 64; i++) wanted[i] = a[i];
    return 64;
}
static int compared(void) {
    for (int i = 0; i < 64; i++) wanted[i] = i & 4 ? 1 + 3 + 4 : (float)(7 + 3 + 4 + ((i ^ 3) - i));
    return 64;
}
static const struct {
    const char *name;
    int (*give)(void);
    int pushes, specs;
    const char *not_on;
    uint32_t inputs; /* each is given `a` */
    uint32_t groups; /* 0: 2 */
} rules[] = {
    { "zeros", zeros, 0, 0, NULL, 1, 8 },           { "zeros_sized", zeros_sized, 0, 1, NULL, 1, 16 },
    { "quads", quads, 0, 0, NO_SUBGROUPS, 1, 0 },   { "partitions", partitions, 0, 0, NO_SUBGROUPS, 1, 0 },
    { "some_partitions", some_partitions, 0, 0, NO_SUBGROUPS " opencl", 1, 0 }, /* which has them in shared memory */
    { "old_groups", old_groups, 0, 0, NO_SUBGROUPS, 1, 0 }, { "rotated", rotated, 0, 0, NO_SUBGROUPS " opencl", 1, 0 },
    { "swizzles", swizzles, 0, 0, NO_SUBGROUPS " opencl", 1, 0 },
    { "derived", derived, 0, 0, NO_SUBGROUPS, 1, 0 },
    { "of_three", of_three, 0, 0, NULL, 1, 0 },     { "laid_out", laid_out, 0, 0, NULL, 1, 0 },
    { "specs", specs, 0, 3, NULL, 1, 0 },           { "spelled", spelled, 0, 0, "webgpu", 1, 0 },
    { "compared", compared, 0, 0, NULL, 1, 0 },     { "uncontracted", uncontracted, 0, 0, NULL, 1, 0 },
    { "narrow", narrow, 0, 0, NULL, 1, 0 },
    { "doubles", doubles, 0, 0, "webgpu", 1, 0 },
    { "uniforms", uniforms, 0, 0, NULL, 2, 0 },        { "stages", stages, 0, 0, NULL, 1, 0 },
    /* the stand-in for Level Zero is PoCL, whose fault the printed text goes around; that for CUDA shows that a round may
     * write what others of the one before have not read yet */
    { "branch", barriers, 2, 0, "levelzero cuda", 1, 0 },
    { "continues", continues, 2, 0, "levelzero cuda", 1, 0 }, { "returns", barriers, 2, 0, "levelzero cuda", 1, 0 },
    { "two_of_one", two_of_one, 0, 1, NULL, 1, 0 },      { "wide", wide, 0, 0, "webgpu", 1, 0 },
    { "shuffles", shuffles, 0, 0, NULL, 1, 0 },          { "begins", begins, 0, 0, NULL, 1, 0 },
};

/* ---- running one ---- */

/* @param each every binding is said by itself, filled in one after the other; else the inputs and the output in their order */
static hd_status run(hd_context *context, hd_device *device, int k, int rule, bool each) {
    static const uint32_t push[] = { N, M }, spec_ids[] = { 0, 1, 2 };
    static const uint32_t spec_values[] = { 16, (uint32_t)-5, (uint32_t)-9 };
    hd_kernel *kernel = NULL;
    hd_plan *plan = NULL;
    hd_program *program = hd_program_create(context);
    const hd_value x = hd_input(program, "x", HD_F32, HD_SHAPE(COUNT)), inputs[] = { x, x };
    const hd_kernel_desc what = { .spirv = foreign_kernels[k].words,
                                  .spirv_bytes = foreign_kernels[k].bytes,
                                  .spec_ids = spec_ids,
                                  .spec_values = spec_values,
                                  .spec_count = (uint32_t)rules[rule].specs };
    hd_dispatch_desc desc = { .inputs = inputs,
                              .input_count = rules[rule].inputs,
                              .out_dtype = HD_F32,
                              .out_shape = HD_SHAPE(COUNT),
                              .push = push,
                              .push_bytes = (uint32_t)rules[rule].pushes * 4,
                              .groups = { rules[rule].groups ? rules[rule].groups : 2, 1, 1 } };
    hd_dispatch_binding bindings[3] = { { 0 } };
    if (each) {
        while (desc.binding_count < desc.input_count) bindings[desc.binding_count++].value = x;
        bindings[desc.binding_count].dtype = desc.out_dtype;
        bindings[desc.binding_count++].shape = desc.out_shape;
        desc = (hd_dispatch_desc){ .bindings = bindings, .binding_count = desc.binding_count, .push = push,
                                   .push_bytes = desc.push_bytes, .groups = { desc.groups[0], 1, 1 } };
    }
    hd_status status = hd_kernel_create(context, &what, &kernel);
    if (!status) hd_output(program, "y", hd_dispatch(program, kernel, &desc));
    if (!status) status = hd_plan_create(device, program, NULL, &plan);
    if (!status) status = hd_plan_write(plan, "x", a, sizeof a);
    if (!status) status = hd_plan_run(plan, NULL);
    if (!status) status = hd_plan_read(plan, "y", got, sizeof got);
    hd_plan_destroy(plan);
    hd_kernel_destroy(kernel);
    hd_program_destroy(program);
    return status;
}

/* ---- buffers in any role: 0 is written, 1 begins with numbers and is written, 2 is read ---- */

static void check_roles(hd_context *context, hd_device *device, const char *id, int k) {
    enum { WIDTH = 64 };
    int32_t counts[WIDTH], before[WIDTH];
    float doubled[WIDTH];
    for (int i = 0; i < WIDTH; i++) before[i] = 1000 + 3 * i;
    hd_kernel *kernel = NULL;
    hd_plan *plan = NULL;
    hd_value values[3];
    hd_program *program = hd_program_create(context);
    const hd_shape shape = HD_SHAPE(WIDTH);
    const hd_dispatch_binding bindings[] = { { 0, HD_F32, shape },
                                             { hd_input(program, "before", HD_I32, shape), HD_I32, shape },
                                             { hd_input(program, "x", HD_F32, shape), HD_DTYPE_NONE, { 0 } } };
    const hd_dispatch_desc desc = { .bindings = bindings, .binding_count = 3, .groups = { 2, 1, 1 } };
    const hd_kernel_desc what = { .spirv = foreign_kernels[k].words, .spirv_bytes = foreign_kernels[k].bytes };
    hd_status status = hd_kernel_create(context, &what, &kernel);
    if (!status) hd_dispatch_all(program, kernel, &desc, values);
    if (!status) hd_output(program, "doubled", values[0]);
    if (!status) hd_output(program, "counts", values[1]);
    if (!status) hd_output(program, "sum", hd_sum(program, values[0], 0)); /* a part goes on in the program */
    if (!status) status = hd_plan_create(device, program, NULL, &plan);
    if (!status) status = hd_plan_write(plan, "x", a, sizeof doubled);
    if (!status) status = hd_plan_write(plan, "before", before, sizeof before);
    float sum = 0, whole = 0;
    for (int run = 0; run < 2 && !status; run++) { /* again: it begins as before */
        status = hd_plan_run(plan, NULL);
        if (!status) status = hd_plan_read(plan, "doubled", doubled, sizeof doubled);
        if (!status) status = hd_plan_read(plan, "counts", counts, sizeof counts);
        if (!status) status = hd_plan_read(plan, "sum", &sum, sizeof sum);
        whole = 0;
        for (int i = 0; i < WIDTH && !status; i++) {
            whole += doubled[i];
            if (doubled[i] == 2.0f * a[i] && counts[i] == before[i] + i) continue;
            fprintf(stderr, "roles on %s: number %d is %g and %d, not %g and %d\n", id, i, (double)doubled[i], counts[i],
                    (double)(2.0f * a[i]), before[i] + i);
            failures++;
            break;
        }
    }
    if (status || fabsf(sum - whole) > 1e-4f * fabsf(whole)) {
        fprintf(stderr, "roles on %s: the sum is %g, not %g; %s\n", id, (double)sum, (double)whole, hd_context_error(context));
        failures++;
    }
    hd_plan_destroy(plan);
    hd_kernel_destroy(kernel);
    hd_program_destroy(program);
}

static void check(hd_context *context, hd_device *device, const char *id, int k) {
    const char *name = foreign_kernels[k].name;
    int rule = 0;
    if (strncmp(name, "roles", 5) == 0) {
        check_roles(context, device, id, k);
        return;
    }
    while (strncmp(rules[rule].name, name, strcspn(name, ",")) != 0 || rules[rule].name[strcspn(name, ",")]) rule++;
    const int count = rules[rule].give();
    float first[COUNT];
    hd_status status = run(context, device, k, rule, false);
    memcpy(first, got, sizeof first);
    if (!status) status = run(context, device, k, rule, true);
    if (!status && memcmp(first, got, (size_t)count * sizeof *first) != 0) {
        fprintf(stderr, "%s on %s: other numbers where each binding is said by itself\n", name, id);
        failures++;
    }
    if (rules[rule].not_on && strstr(rules[rule].not_on, id)) {
        if (strcmp(id, "webgpu") == 0 && status != HD_STATUS_UNSUPPORTED) { /* it says what it has not */
            fprintf(stderr, "%s on %s: not refused\n", name, id);
            failures++;
        }
        return;
    }
    if (status) {
        fprintf(stderr, "%s on %s: %s\n", name, id, hd_context_error(context));
        failures++;
    }
    for (int i = 0; i < count && !status; i++) {
        if (fabsf(got[i] - wanted[i]) <= 1e-5f * fabsf(wanted[i])) continue;
        fprintf(stderr, "%s on %s: number %d is %g, not %g\n", name, id, i, (double)got[i], (double)wanted[i]);
        failures++;
        break;
    }
}

int main(void) {
    static const char *const devices[] = { "vulkan", "opencl", "levelzero", "webgpu", "cuda", "cpu" };
    for (int i = 0; i < COUNT; i++) a[i] = (float)((i * 37 + 11) % 101) / 16.0f - 3.0f;
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
        hd_context *context;
        hd_device *device;
        if (hd_context_create(&(hd_context_desc) { .cache_dir = "", .strict = -1 }, &context)) return 1;
        if (hd_device_open(context, &(hd_device_desc) { .id = devices[d] }, &device))
            printf("skipped, no %s device\n", devices[d]);
        else
            for (int k = 0; k < KERNELS; k++) check(context, device, devices[d], k);
        hd_context_destroy(context);
    }
    printf("%d kernels, %d failures\n", KERNELS, failures);
    return failures != 0;
}
