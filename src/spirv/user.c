/* user.c: a user's kernel: an owned copy of a module that was checked, with its facts, counted by its holders, as programs
 * and plans outlive the kernel that they were given. Relies on hdi_spirv_inspect for every check. */
#include "spirv/spirv.h"

hdi_user_kernel *hdi_user_kernel_new(const hd_allocator *allocator, const hdi_spirv_input *input, hd_error *error) {
    const size_t bytes = input->bytes;
    hdi_spirv_info info;
    if (hdi_spirv_inspect(allocator, input, &info, error)) return NULL;
    hdi_user_kernel *kernel = hdi_alloc(allocator, sizeof *kernel);
    uint32_t *words = kernel ? hdi_alloc(allocator, bytes) : NULL;
    if (words) memcpy(words, input->module, bytes);
    if (!words || !hdi_spirv_set_specs(allocator, words, bytes / 4, input->spec_ids, input->spec_values, input->spec_count)) {
        hdi_free(allocator, words, bytes);
        hdi_free(allocator, kernel, sizeof *kernel);
        hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no host memory for a kernel of %zu bytes", bytes);
        return NULL;
    }
    *kernel = (hdi_user_kernel){ .allocator = allocator, .holders = 1, .words = words, .word_count = bytes / 4, .info = info };
    kernel->hash = hdi_hash(HDI_HASH_START, words, bytes);
    kernel->hash = hdi_hash(kernel->hash, info.entry, strlen(info.entry) + 1);
    return kernel;
}

void hdi_user_kernel_hold(hdi_user_kernel *kernel) { __atomic_fetch_add(&kernel->holders, 1, __ATOMIC_RELAXED); }

void hdi_user_kernel_release(hdi_user_kernel *kernel) {
    if (!kernel || __atomic_fetch_sub(&kernel->holders, 1, __ATOMIC_ACQ_REL) != 1) return;
    hdi_free(kernel->allocator, kernel->words, kernel->word_count * 4);
    hdi_free(kernel->allocator, kernel, sizeof *kernel);
}
