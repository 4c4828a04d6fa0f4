/* bench_translate.c: what it takes to turn kernels into text: for each module of heddle's own, reading and checking it, and
 * printing one of its variants (the kernels that the planner chooses, tests/spirv/languages.h); in time of the processor, the
 * best of several rounds, and of the variants the slowest.
 *   bench_translate [rounds [module]] */
#define _POSIX_C_SOURCE 200809L
#include "clock.h"
#include "spirv/languages.h"
#include "spirv/module.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct row {
    uint32_t variants;
    double   read_us, print_us, text_bytes; /* print: of the slowest variant, reading included */
} row;

/* Of this thread on its processor: others may run beside it. */
static double cpu_us(void) { return clock_us(CLOCK_THREAD_CPUTIME_ID); }
static double best_us(double best, double begun) {
    const double us = cpu_us() - begun;
    return best == 0 || us < best ? us : best;
}

static double read_us(const hdi_kernel *kernel, int rounds) {
    const hdi_blob *blob = hdi_module_get(kernel->module)->spirv;
    double best = 0;
    uint32_t ids[HDI_MAX_SPEC];
    for (uint32_t i = 0; i < HDI_MAX_SPEC; i++) ids[i] = i;
    const hdi_spirv_input input = { .module = blob->words, .bytes = blob->word_count * 4, .spec_ids = ids, .spec_values = kernel->spec,
                                    .spec_count = kernel->spec_count };
    for (int i = 0; i < rounds; i++) {
        hdi_spirv_module module;
        const double begun = cpu_us();
        if (hdi_spirv_module_read(&hdi_default_allocator, &input, &module, NULL)) abort();
        hdi_spirv_module_free(&module);
        best = best_us(best, begun);
    }
    return best;
}

static double print_us(const hdi_kernel *kernel, int rounds, double *out_bytes) {
    double best = 0;
    for (int i = 0; i < rounds; i++) {
        hdi_spirv_printed printed;
        hd_error error;
        const double begun = cpu_us();
        char *text = print_kernel(kernel, LANGUAGE_OPENCL, &printed, &error);
        best = best_us(best, begun);
        if (!text) return 0; /* one for matrix units, which OpenCL lacks */
        *out_bytes = (double)strlen(text);
        free(text);
    }
    return best;
}

int main(int argc, char **argv) {
    static chosen_kernels chosen;
    static row rows[HDI_MODULE_COUNT];
    const int rounds = argc > 1 ? atoi(argv[1]) : 10;
    const char *only = argc > 2 ? argv[2] : NULL;
    double slowest = 0, sum = 0;
    uint32_t printed = 0;
    choose_kernels(&chosen);
    for (uint32_t i = 0; i < chosen.count; i++) {
        row *r = &rows[chosen.kernels[i].module];
        if (only && strcmp(only, hdi_module_get(chosen.kernels[i].module)->name) != 0) continue;
        double bytes = 0;
        const double us = print_us(&chosen.kernels[i], rounds, &bytes);
        if (us == 0) continue;
        if (!r->variants++) r->read_us = read_us(&chosen.kernels[i], rounds);
        if (us > r->print_us) {
            r->print_us = us;
            r->text_bytes = bytes;
        }
        slowest = us > slowest ? us : slowest;
        sum += us;
        printed++;
    }
    printf("%-20s %8s %10s %12s %10s\n", "module", "variants", "read us", "slowest us", "text KiB");
    for (uint32_t m = 0; m < HDI_MODULE_COUNT; m++)
        if (rows[m].variants)
            printf("%-20s %8u %10.0f %12.0f %10.1f\n", hdi_module_get((hdi_module_id)m)->name, rows[m].variants, rows[m].read_us, rows[m].print_us, rows[m].text_bytes / 1024);
    printf("%u kernels, %.0f us each on average, %.0f us the slowest\n", printed, sum / printed, slowest);
    return 0;
}
