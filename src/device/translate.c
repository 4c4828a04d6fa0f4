/* translate.c: the constants of a kernel are those of its module, by their numbers. */
#include "device/translate.h"

static const uint32_t *constant_ids(uint32_t ids[HDI_MAX_SPEC]) {
    for (uint32_t i = 0; i < HDI_MAX_SPEC; i++) ids[i] = i;
    return ids;
}

static uint32_t constant_count(const hdi_kernel *kernel) { return HDI_MIN(kernel->spec_count, (uint32_t)HDI_MAX_SPEC); }

/* Says what was refused; and what was not uses the kernel's bindings only. */
static hd_status check(const char *backend, const hdi_module *module, const hdi_kernel *kernel,
                       const hdi_spirv_printed *printed, hd_status status, const hd_error *refused, hd_error *error) {
    if (status) return hdi_fail_native(error, status, backend, 0, "kernel %s: %s", module->name, refused->text);
    for (uint32_t i = 0; i < printed->buffer_count; i++)
        if (printed->buffers[i] >= kernel->binding_count)
            return hdi_fail_native(error, HD_STATUS_MODULE, backend, 0, "kernel %s uses binding %u of %u", module->name,
                                   printed->buffers[i], kernel->binding_count);
    return HD_OK;
}

hd_status hdi_translate_to_text(const hdi_host *host, const char *backend, const hdi_module *module,
                                const hdi_kernel *kernel, const hdi_spirv_print_target *target, hdi_text *out_text,
                                hdi_spirv_printed *out_printed, hd_error *error) {
    const hdi_blob *blob = module->spirv;
    uint32_t ids[HDI_MAX_SPEC];
    hd_error refused = { 0 };
    const hd_status status = hdi_spirv_print_checked(host->allocator, blob->words, blob->word_count * 4, blob->entry,
                                                     constant_ids(ids), kernel->spec, constant_count(kernel), target,
                                                     out_text, out_printed, &refused);
    return check(backend, module, kernel, out_printed, status, &refused, error);
}

hd_status hdi_translate_to_module(const hdi_host *host, const char *backend, const hdi_module *module,
                                  const hdi_kernel *kernel, uint32_t offers, uint32_t lanes, hdi_text *out_module,
                                  hdi_spirv_printed *out_printed, hd_error *error) {
    const hdi_blob *blob = module->spirv;
    uint32_t ids[HDI_MAX_SPEC];
    hd_error refused = { 0 };
    const hd_status status = hdi_spirv_kernel_module_checked(host->allocator, blob->words, blob->word_count * 4,
                                                             blob->entry, constant_ids(ids), kernel->spec,
                                                             constant_count(kernel), offers, lanes, out_module,
                                                             out_printed, &refused);
    return check(backend, module, kernel, out_printed, status, &refused, error);
}
