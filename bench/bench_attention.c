/* bench_attention.c: attention over an f16 cache, as a layer of a language model runs it: a chain of attentions, each the
 * queries of the next, is replayed with caches of its own for every link, and the time of one link is the slope between a
 * long and a short chain. Prints a JSON line for each case: time, FLOPs (causal pairs counted once), bytes of keys and
 * values, and the largest error of sampled elements against float64, over the largest |value| of their sum's terms.
 *   bench_attention [device] [rounds] [T S past Hq Hkv D links [exact|fast [paged|packed]]]    without sizes: the usual ones
 * With "paged" keys and values lie in pages of 256 rows, whose table is in the device's memory, as language models have it; with
 * "packed" the queries are samples of 400 tokens that do not see each other, as training has them (FLOPs are still all causal pairs'). */
#define _POSIX_C_SOURCE 200809L
#include "clock.h"
#include "random.h"
#include <heddle.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct attention_case {
    int    T, S, past, Hq, Hkv, D, links;
    hd_math math;
    bool   paged; /* S is a multiple of 256 then */
    bool   packed;
} attention_case;

enum { PAGE = 256, SAMPLE = 400 };

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Halves of [-1, 1) in steps of 1/1024, with their values. */
static unsigned short random_half(uint32_t *seed, float *out_value) {
    int whole = (int)(random_word(seed) >> 21) - 1024, exponent = 15, fraction = abs(whole);
    *out_value = (float)whole / 1024.0f;
    if (whole == 0) return 0;
    while (fraction < 1024) fraction *= 2, exponent--;
    return (unsigned short)((whole < 0 ? 0x8000 : 0) | exponent << 10 | (fraction - 1024));
}

/* The pages' numbers in order, in a buffer that lives as long as the device. */
static int bind_table(hd_device *device, hd_plan *plan, int count) {
    int32_t numbers[1024];
    hd_buffer *table;
    for (int i = 0; i < count && i < 1024; i++) numbers[i] = i;
    const uint64_t bytes = (uint64_t)count * sizeof *numbers;
    int status = count > 1024 || hd_buffer_create(device, &(hd_buffer_desc){ .bytes = bytes }, &table);
    if (!status) status = hd_buffer_write(table, 0, numbers, bytes);
    return status ? status : (int)hd_plan_bind(plan, "pages", table, 0);
}

/* The first key that a query sees. */
static int start_of(const attention_case *c, int token) { return c->packed ? token / SAMPLE * SAMPLE : 0; }

static int write_starts(hd_plan *plan, const attention_case *c) {
    int32_t *starts = calloc((size_t)c->T, sizeof *starts);
    for (int t = 0; t < c->T; t++) starts[t] = start_of(c, t);
    const int status = (int)hd_plan_write(plan, "starts", starts, (size_t)c->T * sizeof *starts);
    free(starts);
    return status;
}

static hd_plan *chain(hd_context *context, hd_device *device, const attention_case *c, int links, const float *q, const unsigned short *kv) {
    hd_program *p = hd_program_create(context);
    char name[16];
    hd_value v = hd_input(p, "q", HD_F32, HD_SHAPE(c->T, c->Hq, c->D)), past = hd_input(p, "past", HD_I32, HD_SHAPE(1));
    const hd_shape cache = c->paged ? HD_SHAPE(c->S / PAGE, PAGE, c->Hkv, c->D) : HD_SHAPE(c->S, c->Hkv, c->D);
    const hd_attention_desc desc = { .pages = c->paged ? hd_input(p, "pages", HD_I32, HD_SHAPE(c->S / PAGE)) : 0,
                                     .starts = c->packed ? hd_input(p, "starts", HD_I32, HD_SHAPE(c->T)) : 0 };
    for (int i = 0; i < links; i++) {
        snprintf(name, sizeof name, "k%d", i);
        const hd_value keys = hd_input(p, name, HD_F16, cache);
        snprintf(name, sizeof name, "v%d", i);
        v = hd_attention(p, v, keys, hd_input(p, name, HD_F16, cache), past, &desc);
    }
    hd_output(p, "y", v);
    hd_plan *plan = NULL;
    const size_t kv_elements = (size_t)c->S * (size_t)c->Hkv * (size_t)c->D;
    int status = hd_plan_create(device, p, &(hd_plan_desc){ .math = c->math }, &plan);
    if (!status) status = hd_plan_write(plan, "q", q, (size_t)c->T * (size_t)c->Hq * (size_t)c->D * 4);
    if (!status) status = hd_plan_write(plan, "past", &c->past, 4);
    if (!status && c->paged) status = bind_table(device, plan, c->S / PAGE);
    if (!status && c->packed) status = write_starts(plan, c);
    for (int i = 0; i < 2 * links && !status; i++) {
        snprintf(name, sizeof name, "%c%d", i % 2 ? 'v' : 'k', i / 2);
        status = hd_plan_write(plan, name, kv + (i % 2 ? kv_elements : 0), kv_elements * 2);
    }
    hd_program_destroy(p);
    return status ? NULL : plan;
}

static int median_us(hd_plan *plan, int rounds, double *out_us) {
    double *times = calloc((size_t)rounds, sizeof *times), warm = now_us();
    int status = 0;
    while (!status && now_us() - warm < 250e3) status = hd_plan_run(plan, NULL);
    for (int i = 0; i < rounds && !status; i++) {
        double began = now_us();
        status = hd_plan_run(plan, NULL);
        times[i] = now_us() - began;
    }
    qsort(times, (size_t)rounds, sizeof *times, by_value);
    *out_us = times[rounds / 2];
    free(times);
    return status;
}

/* Largest error of the elements of some rows over the largest term of the row's values. */
static double error_of(const attention_case *c, const float *q, const float *kv, const float *y) {
    double worst = 0, *weights = calloc((size_t)c->S, sizeof *weights);
    const size_t step = (size_t)c->Hkv * (size_t)c->D, values = step * (size_t)c->S;
    for (int s = 0; s < 8; s++) {
        const int t = s * 7919 % c->T, h = s * 104729 % c->Hq, from = start_of(c, t), seen = c->past + t + 1;
        const float *query = q + ((size_t)t * (size_t)c->Hq + (size_t)h) * (size_t)c->D;
        const float *key = kv + (size_t)(h / (c->Hq / c->Hkv)) * (size_t)c->D;
        double most = -INFINITY, sum = 0;
        for (int i = from; i < seen; i++) {
            double score = 0;
            for (int d = 0; d < c->D; d++) score += (double)query[d] * (double)key[(size_t)i * step + (size_t)d];
            weights[i] = score / sqrt((double)c->D);
            most = fmax(most, weights[i]);
        }
        for (int i = from; i < seen; i++) sum += weights[i] = exp(weights[i] - most);
        for (int d = 0; d < c->D; d++) {
            double value = 0;
            for (int i = from; i < seen; i++) value += weights[i] / sum * (double)key[values + (size_t)i * step + (size_t)d];
            worst = fmax(worst, fabs((double)y[(query - q) + d] - value));
        }
    }
    free(weights);
    return worst;
}

static int bench(hd_context *context, hd_device *device, const attention_case *c, int rounds) {
    const size_t kv_count = 2 * (size_t)c->S * (size_t)c->Hkv * (size_t)c->D, q_count = (size_t)c->T * (size_t)c->Hq * (size_t)c->D;
    unsigned short *kv = calloc(kv_count, sizeof *kv);
    float *kv_values = calloc(kv_count, sizeof *kv_values), *q = calloc(q_count, sizeof *q), *y = calloc(q_count, sizeof *y);
    uint32_t seed = 1;
    for (size_t i = 0; i < kv_count; i++) kv[i] = random_half(&seed, &kv_values[i]);
    for (size_t i = 0; i < q_count; i++) random_half(&seed, &q[i]);
    double us[2] = { 0, 0 };
    int status = 0;
    for (int i = 0; i < 2 && !status; i++) {
        hd_plan *plan = chain(context, device, c, i ? c->links + 1 : 1, q, kv);
        status = !plan || median_us(plan, rounds, &us[i]) || (i == 0 && hd_plan_read(plan, "y", y, q_count * 4));
        hd_plan_destroy(plan);
    }
    const double each = (us[1] - us[0]) / c->links, seen = c->past + (c->T + 1) / 2.0;
    const double flops = 4.0 * c->T * c->Hq * c->D * seen, bytes = 4.0 * (c->past + c->T) * c->Hkv * c->D;
    if (status) fprintf(stderr, "%s\n", hd_context_error(context));
    else
        printf("{\"bench\":\"attention\",\"device\":\"%s\",\"math\":\"%s\",\"paged\":%d,\"packed\":%d,\"T\":%d,\"S\":%d,\"past\":%d,\"Hq\":%d,\"Hkv\":%d,\"D\":%d,\"us\":%.2f,\"gflops\":%.0f,\"kv_bytes\":%.0f,\"gbytes_s\":%.0f,\"error\":%.1e}\n",
               hd_device_get_info(device)->id, c->math == HD_MATH_EXACT ? "exact" : "fast", c->paged, c->packed, c->T, c->S, c->past, c->Hq, c->Hkv, c->D, each,
               flops / each * 1e-3, bytes, bytes / each * 1e-3, error_of(c, q, kv_values, y));
    fflush(stdout);
    free(kv);
    free(kv_values);
    free(q);
    free(y);
    return status;
}

int main(int count, char **arguments) {
    static const attention_case usual[] = {
        { 1, 1024, 512, 32, 8, 128, 32, 0, 0, 0 }, { 1, 4096, 4000, 32, 8, 128, 16, 0, 0, 0 }, { 1, 32768, 32767, 32, 8, 128, 6, 0, 0, 0 },
        { 1, 1024, 512, 32, 8, 64, 32, 0, 0, 0 }, { 1, 4096, 4000, 16, 2, 256, 16, 0, 0, 0 }, { 4, 4096, 4000, 32, 8, 128, 16, 0, 0, 0 },
        { 512, 512, 0, 32, 8, 128, 8, 0, 0, 0 }, { 2048, 2048, 0, 32, 8, 128, 4, 0, 0, 0 }, { 512, 4096, 3584, 32, 8, 128, 4, 0, 0, 0 }, { 512, 512, 0, 16, 16, 64, 8, 0, 0, 0 },
    };
    const int rounds = count > 2 ? atoi(arguments[2]) : 21;
    hd_context *context = NULL;
    hd_device *device = NULL;
    if (rounds < 1 || hd_context_create(NULL, &context)) return 2;
    if (hd_device_open(context, &(hd_device_desc){ .id = count > 1 ? arguments[1] : NULL }, &device)) {
        fprintf(stderr, "%s\n", hd_context_error(context));
        return 1;
    }
    int status = 0;
    if (count > 9) {
        attention_case c = { atoi(arguments[3]), atoi(arguments[4]), atoi(arguments[5]), atoi(arguments[6]), atoi(arguments[7]), atoi(arguments[8]),
                             atoi(arguments[9]), count > 10 && strcmp(arguments[10], "exact") == 0 ? HD_MATH_EXACT : HD_MATH_FAST,
                             count > 11 && strcmp(arguments[11], "paged") == 0, count > 11 && strcmp(arguments[11], "packed") == 0 };
        status = bench(context, device, &c, rounds);
    }
    for (size_t i = 0; count <= 9 && i < sizeof usual / sizeof *usual && !status; i++) status = bench(context, device, &usual[i], rounds);
    hd_context_destroy(context);
    return status;
}
