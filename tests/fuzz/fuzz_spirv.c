/* fuzz_spirv.c: any bytes as a SPIR-V module. What is taken must be taken again by a user's kernel, stay within the stated
 * limits, and outlive the changes that back ends make to it; every failure must say why.
 * options: -max_len=16384 */
#include "spirv/spirv.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint32_t changed[16384 / 4 + HDI_SPIRV_SUBNORMAL_WORDS];
    hdi_spirv_info info;
    hd_error error = { 0 };
    hd_status status = hdi_spirv_inspect(&hdi_default_allocator, data, size, NULL, NULL, NULL, 0, &info, &error);
    if (status != error.status || (status != HD_OK) != (error.text[0] != 0)) abort();
    if (status) return 0;

    if (info.binding_count > HDI_SPIRV_MAX_BINDINGS || info.spec_count > HDI_SPIRV_MAX_SPEC || info.capability_count > 32) abort();
    if (!info.workgroup[0] || !info.workgroup[1] || !info.workgroup[2]) abort();
    hdi_user_kernel *kernel = hdi_user_kernel_new(&hdi_default_allocator, data, size, info.entry, NULL, NULL, 0, &error);
    if (!kernel || memcmp(kernel->words, data, size) != 0) abort();
    for (uint32_t i = 0; i < info.spec_count; i++)
        if (!hdi_spirv_set_spec(kernel->words, kernel->word_count, info.spec[i].id, i)) abort();
    size_t count = size <= 16384 ? hdi_spirv_keep_subnormals(kernel->words, kernel->word_count, changed) : 1;
    if (!count || count > sizeof changed / 4) abort();
    hdi_user_kernel_release(kernel);
    return 0;
}
