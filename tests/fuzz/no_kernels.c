/* no_kernels.c: planning names the CPU's kernels and never calls one: here they are nothing. */
#include "kernels/kernel.h"

#define CPU_0(file)
#define CPU_1(file) NONE(file, 0) NONE(file, 1) NONE(file, 2) NONE(file, 3)
#define NONE(file, level) \
    void hdcpu_##file##_l##level(const hdi_cpu_call *call, uint32_t x, uint32_t y, uint32_t z); \
    void hdcpu_##file##_l##level(const hdi_cpu_call *call, uint32_t x, uint32_t y, uint32_t z) { (void)call, (void)x, (void)y, (void)z; }
#define HDI_MODULE(code, file, gpu, cpu) CPU_##cpu(file)
#include "kernels/module_table.inc"
