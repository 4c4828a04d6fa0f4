/* table.c: the built-in kernel modules, made from module_table.inc, once for each level of CPU kernels. */
#include "kernels/kernel.h"

#define GPU_0(file)
#define GPU_1(file) extern const hdi_blob hdi_blob_##file;
#define CPU_0(file)
#define CPU_1(file)                \
    extern void hdcpu_##file##_l0(const hdi_cpu_call *, uint32_t, uint32_t, uint32_t); \
    extern void hdcpu_##file##_l1(const hdi_cpu_call *, uint32_t, uint32_t, uint32_t); \
    extern void hdcpu_##file##_l2(const hdi_cpu_call *, uint32_t, uint32_t, uint32_t); \
    extern void hdcpu_##file##_l3(const hdi_cpu_call *, uint32_t, uint32_t, uint32_t);
#define HDI_MODULE(code, file, gpu, cpu) GPU_##gpu(file) CPU_##cpu(file)
#include "kernels/module_table.inc"
#undef HDI_MODULE
#undef GPU_0
#undef GPU_1
#undef CPU_0
#undef CPU_1

#define GPU_0(file) NULL
#define GPU_1(file) &hdi_blob_##file
#define CPU_0(file, level) NULL
#if defined(__x86_64__)
#define CPU_1(file, level) hdcpu_##file##_l##level
#else /* one level is built: what the compiler's vectors reach */
#define CPU_1(file, level) hdcpu_##file##_l0
#endif
static const hdi_module modules[4][HDI_MODULE_COUNT + 1] = {
#define HDI_MODULE(code, file, gpu, cpu) { #file, GPU_##gpu(file), CPU_##cpu(file, 0), !(gpu) && !(cpu) },
    {
#include "kernels/module_table.inc"
        { NULL, NULL, NULL, false } },
#undef HDI_MODULE
#define HDI_MODULE(code, file, gpu, cpu) { #file, GPU_##gpu(file), CPU_##cpu(file, 1), !(gpu) && !(cpu) },
    {
#include "kernels/module_table.inc"
        { NULL, NULL, NULL, false } },
#undef HDI_MODULE
#define HDI_MODULE(code, file, gpu, cpu) { #file, GPU_##gpu(file), CPU_##cpu(file, 2), !(gpu) && !(cpu) },
    {
#include "kernels/module_table.inc"
        { NULL, NULL, NULL, false } },
#undef HDI_MODULE
#define HDI_MODULE(code, file, gpu, cpu) { #file, GPU_##gpu(file), CPU_##cpu(file, 3), !(gpu) && !(cpu) },
    {
#include "kernels/module_table.inc"
        { NULL, NULL, NULL, false } },
#undef HDI_MODULE
};

uint32_t hdcpu_level(void) {
    if (hdi_set_permitted(HDI_SET_AVX512BF16)) return 3;
    if (hdi_set_permitted(HDI_SET_AVX512)) return 2;
    return hdi_set_permitted(HDI_SET_AVX2) ? 1 : 0;
}

const hdi_module *hdi_module_get(uint32_t id) {
    const uint32_t count = HDI_MODULE_COUNT;
    return id < count ? &modules[hdcpu_level()][id] : NULL;
}
