/* user.c: a user's kernel: an owned copy of a module that was checked, with its facts, counted by its holders, as
 * programs and plans outlive the kernel that they were given. Relies on hdi_spirv_inspect for every check. */
#include "spirv/module.h"

/* What the module is made to be, checked and without what it does not need; its words are a copy of it. */
static hd_status make(const hd_allocator *allocator, const hdi_spirv_input *input, hdi_user_kernel *kernel,
                      hd_error *error) {
    uint32_t *words = kernel->words;
    const size_t count = input->bytes / 4;
    hdi_spirv_binding_place places[HDI_SPIRV_MAX_BINDINGS];
    hdi_spirv_input trimmed = *input;
    trimmed.module = words;
    hd_status status = input->bytes % 4 ? HD_OK : hdi_spirv_trim(allocator, words, count, input->entry, places, error);
    if (!status) status = hdi_spirv_inspect(allocator, &trimmed, &kernel->info, error);
    if (status) return status;
    if (!hdi_spirv_set_specs(allocator, words, count, input->spec_ids, input->spec_values, input->spec_count))
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no host memory for a kernel of %zu bytes", input->bytes);
    for (uint32_t i = 0; i < kernel->info.binding_count; i++) kernel->info.bindings[i].place = places[i];
    kernel->word_count = hdi_spirv_compact(words, count);
    kernel->hash = hdi_hash(HDI_HASH_START, words, kernel->word_count * 4);
    kernel->hash = hdi_hash(kernel->hash, kernel->info.entry, strlen(kernel->info.entry) + 1);
    return HD_OK;
}

hdi_user_kernel *hdi_user_kernel_new(const hd_allocator *allocator, const hdi_spirv_input *input, hd_error *error) {
    const size_t bytes = input->bytes;
    hdi_user_kernel *kernel = hdi_alloc(allocator, sizeof *kernel);
    const bool fits = bytes >= HDI_SPIRV_HEADER_WORDS * 4 && bytes <= HDI_SPIRV_MAX_BYTES;
    uint32_t *words = kernel && fits ? hdi_alloc(allocator, bytes) : NULL;
    hd_status status = HD_OK;
    if (!fits) status = hdi_spirv_inspect(allocator, input, &(hdi_spirv_info){ 0 }, error);
    else if (!words)
        status = hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no host memory for a kernel of %zu bytes", bytes);
    if (words) memcpy(words, input->module, bytes);
    if (!status) *kernel = (hdi_user_kernel){ .allocator = allocator, .holders = 1, .words = words, .bytes = bytes };
    if (!status) status = make(allocator, input, kernel, error);
    if (!status) return kernel;
    hdi_free(allocator, words, bytes);
    hdi_free(allocator, kernel, sizeof *kernel);
    return NULL;
}

void hdi_user_kernel_hold(hdi_user_kernel *kernel) { __atomic_fetch_add(&kernel->holders, 1, __ATOMIC_RELAXED); }

void hdi_user_kernel_release(hdi_user_kernel *kernel) {
    if (!kernel || __atomic_fetch_sub(&kernel->holders, 1, __ATOMIC_ACQ_REL) != 1) return;
    hdi_free(kernel->allocator, kernel->words, kernel->bytes);
    hdi_free(kernel->allocator, kernel, sizeof *kernel);
}
