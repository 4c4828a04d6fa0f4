/* kernel.c: SPIR-V and constants to a module of OpenCL's flavour, compiled by the driver, kept on disk as the device's
 * code. */
#include "device/levelzero/ze.h"
#include "device/translate.h"
#include <stdio.h>

static hd_status translate(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                           hdi_text *out_module, hdi_spirv_printed *out_printed, hd_error *error) {
    const uint32_t lanes = kernel->subgroup ? kernel->subgroup : (uint32_t)device->found.caps.subgroup;
    const hdi_spirv_print_target target = { .offers = device->facts.offers, .subgroup = lanes };
    return hdi_translate_to_module(&(hdi_translation){ device->host, "levelzero", module, kernel, &target }, out_module,
                                   out_printed, error);
}

/* The compiler's own words, in the log. */
static void log_build(hdi_backend_device *device, const char *name, ze_module_build_log_handle_t build_log) {
    size_t bytes = 0;
    if (device->ze.ModuleBuildLogGetString(build_log, &bytes, NULL) != ZE_RESULT_SUCCESS || bytes == 0) return;
    char *words = hdi_alloc(device->host->allocator, bytes + 1);
    if (words && device->ze.ModuleBuildLogGetString(build_log, &bytes, words) == ZE_RESULT_SUCCESS)
        hdi_log_line(device->host->log, HD_LOG_WARNING, "levelzero", "kernel %s: %.1000s", name, words);
    hdi_free(device->host->allocator, words, bytes + 1);
}

/* Module and kernel of these bytes; false with nothing made. */
static bool build(hdi_backend_device *device, const char *name, ze_module_format_t format, const void *bytes,
                  size_t count, hdi_loaded_kernel *loaded) {
    const ze_module_desc_t desc = {
        .stype = ZE_STRUCTURE_TYPE_MODULE_DESC, .format = format, .inputSize = count, .pInputModule = bytes
    };
    const ze_kernel_desc_t kernel = { .stype = ZE_STRUCTURE_TYPE_KERNEL_DESC, .pKernelName = HDI_SPIRV_PRINTED_ENTRY };
    const uint32_t *size = loaded->printed.info.workgroup;
    ze_module_build_log_handle_t build_log = NULL;
    bool fine =
        HDZE_CALL(device, ModuleCreate, device->context, device->facts.device, &desc, &loaded->module, &build_log);
    if (!fine) {
        if (build_log) log_build(device, name, build_log);
        loaded->module = NULL;
    }
    if (build_log) device->ze.ModuleBuildLogDestroy(build_log);
    if (fine && !HDZE_CALL(device, KernelCreate, loaded->module, &kernel, &loaded->kernel)) {
        loaded->kernel = NULL;
        fine = false;
    }
    fine = fine && HDZE_CALL(device, KernelSetGroupSize, loaded->kernel, size[0], size[1], size[2]);
    if (fine) return true;
    HDZE_END(device, KernelDestroy, loaded->kernel);
    HDZE_END(device, ModuleDestroy, loaded->module);
    return false;
}

static void keep(hdi_backend_device *device, uint64_t key, const hdi_loaded_kernel *loaded) {
    size_t bytes = 0;
    if (!device->host->cache_dir ||
        device->ze.ModuleGetNativeBinary(loaded->module, &bytes, NULL) != ZE_RESULT_SUCCESS || bytes == 0)
        return;
    uint8_t *code = hdi_alloc(device->host->allocator, bytes);
    size_t given = bytes;
    if (code && device->ze.ModuleGetNativeBinary(loaded->module, &given, code) == ZE_RESULT_SUCCESS)
        hdi_cache_write(&device->cache, key, code, HDI_MIN(given, bytes));
    hdi_free(device->host->allocator, code, bytes);
}

/* From the cache, or compiled; the key is of the translated module, so that a changed translation is never taken for an
 * old one. */
static hd_status load(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                      hdi_loaded_kernel *loaded, bool *out_from_cache, hd_error *error) {
    hdi_text translated = { .allocator = device->host->allocator };
    size_t bytes = 0;
    hd_status status = translate(device, module, kernel, &translated, &loaded->printed, error);
    const uint64_t key = status ? 0 : hdi_hash(HDI_HASH_START, translated.bytes, translated.count);
    void *code = status ? NULL : hdi_cache_read(&device->cache, key, &bytes);
    *out_from_cache = code && build(device, module->name, ZE_MODULE_FORMAT_NATIVE, code, bytes, loaded);
    if (code && !*out_from_cache && hdze_last.result == ZE_RESULT_ERROR_DEVICE_LOST)
        status = hdze_fail(device, error, "kernel %s", module->name);
    if (!status && !*out_from_cache) {
        if (!build(device, module->name, ZE_MODULE_FORMAT_IL_SPIRV, translated.bytes, translated.count, loaded))
            status = hdze_fail(device, error, "kernel %s", module->name);
        else keep(device, key, loaded);
    }
    hdi_free(device->host->allocator, code, bytes);
    hdi_text_free(&translated);
    return status;
}

void hdze_kernel_end(hdi_backend_device *device, hdi_used *used) {
    hdi_loaded_kernel *kernel = HDI_OBJECT(used, hdi_loaded_kernel, used);
    HDZE_END(device, KernelDestroy, kernel->kernel);
    HDZE_END(device, ModuleDestroy, kernel->module);
    hdi_free(device->host->allocator, kernel, sizeof *kernel);
}

hd_status hdze_kernel_load(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                           hdi_loaded_kernel **out_kernel, bool *out_from_cache, hd_error *error) {
    *out_from_cache = false;
    if (hdi_loss_known(&device->loss)) return hdze_lost(device, error);
    if (!module->spirv)
        return hdi_fail_native(error, HD_STATUS_KERNEL_NOT_FOUND, "levelzero", 0, "kernel %s has no form for a GPU",
                               module->name);
    hdi_loaded_kernel *loaded = hdi_alloc(device->host->allocator, sizeof *loaded);
    if (!loaded) return hdze_no_memory(error, "a kernel");
    hd_status status = load(device, module, kernel, loaded, out_from_cache, error);
    return hdi_inflight_take_kernel(&device->inflight, status, loaded, out_kernel);
}
