/* kernel.c: SPIR-V and constants to a kernel: printed as CUDA C++ or HIP C++, compiled for the device's architecture,
 * kept on disk. What the cache holds needs no compiler. */
#include "device/cuda/cu.h"
#include "device/translate.h"
#include <stdio.h>

static hd_status print(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                       hdi_text *out_text, hdi_spirv_printed *out_printed, hd_error *error) {
    const char *backend = device->found.info.backend;
    const uint32_t warp = (uint32_t)device->found.caps.subgroup,
                   offers = (device->found.caps.matrix_f16 ? HDI_SPIRV_OFFERS_MATRIX_UNITS : 0) |
                            (device->found.caps.matrix_s8 ? HDI_SPIRV_OFFERS_WHOLE_MATRIX_UNITS : 0) |
                            (device->found.caps.early_start ? HDI_SPIRV_OFFERS_EARLY_START : 0);
    const hdi_spirv_print_target target = { device->api.flavour->dialect, offers, warp, false, false };
    if (kernel->subgroup && kernel->subgroup != warp)
        return hdi_fail_native(error, HD_STATUS_UNSUPPORTED, backend, 0,
                               "kernel %s wants subgroups of %u, the device has %u", module->name, kernel->subgroup,
                               warp);
    return hdi_translate_to_text(&(hdi_translation){ device->host, backend, module, kernel, &target }, out_text,
                                 out_printed, error);
}

/* ---- compiling ---- */

/* The architecture to compile for. A device newer than the compiler gets the code of an older one of its family, else
 * text that the driver compiles. */
static hd_status choose_arch(hdi_backend_device *device, char *out, size_t room, bool *out_text, hd_error *error) {
    enum { ROOM = 64, FAMILY = 10 };
    hdcu_api *api = &device->api;
    const int arch = device->facts.arch;
    int archs[ROOM], count = 0, best = 0;
    *out_text = false;
    snprintf(out, room, "%s%s", api->flavour->arch_option, device->facts.code);
    if (!api->GetArchs || !api->GetArchCount || !HDCU_CALL(api, GetArchCount, &count) || count > ROOM ||
        !HDCU_CALL(api, GetArchs, archs))
        return HD_OK;
    for (int i = 0; i < count; i++)
        if (archs[i] <= arch) best = HDI_MAX(best, archs[i]);
    if (!best)
        return hdi_fail_native(error, HD_STATUS_UNSUPPORTED_VERSION, device->found.info.backend, 0,
                               "this %s no longer compiles for %s: install an older one", api->flavour->compiler_name,
                               device->facts.code);
    *out_text = best / FAMILY != arch / FAMILY && api->GetText && api->GetTextSize;
    snprintf(out, room, "%s%s%d", api->flavour->arch_option, *out_text ? "compute_" : "sm_", best);
    return HD_OK;
}

/* The compiler's own words, in the log. */
static void log_compiler(hdi_backend_device *device, const char *name, hdcu_program program) {
    char words[1024] = "";
    size_t bytes = 0;
    hdcu_api *api = &device->api;
    if (!HDCU_CALL(api, GetLogSize, program, &bytes) || bytes == 0) return;
    char *all = hdi_alloc(device->host->allocator, bytes + 1);
    if (all && HDCU_CALL(api, GetLog, program, all)) snprintf(words, sizeof words, "%.1000s", all);
    hdi_free(device->host->allocator, all, bytes + 1);
    hdi_log_line(device->host->log, HD_LOG_WARNING, device->found.info.backend, "kernel %s: %s", name, words);
}

static bool compile_with(hdi_backend_device *device, const char *name, hdcu_program program, const char *arch,
                         bool exact) {
    const hdcu_flavour *flavour = device->api.flavour;
    const char *options[8] = { arch };
    int count = 1;
    for (const char *const *more = exact ? flavour->exact_options : flavour->fast_options;
         *more && count < (int)HDI_COUNT(options); more++)
        options[count++] = *more;
    if (HDCU_CALL(&device->api, CompileProgram, program, count, options)) return true;
    const int result = hdcu_last.result;
    log_compiler(device, name, program);
    hdcu_last.function = HDCU_FN_CompileProgram;
    hdcu_last.result = result;
    return false;
}

static bool get_code(hdi_backend_device *device, hdcu_program program, bool as_text, void **out_code,
                     size_t *out_bytes) {
    hdcu_api *api = &device->api;
    size_t bytes = 0;
    if (!(as_text ? HDCU_CALL(api, GetTextSize, program, &bytes) : HDCU_CALL(api, GetCodeSize, program, &bytes)))
        return false;
    char *code = hdi_alloc(device->host->allocator, HDI_MAX(bytes, (size_t)1));
    if (code && (as_text ? HDCU_CALL(api, GetText, program, code) : HDCU_CALL(api, GetCode, program, code))) {
        *out_code = code;
        *out_bytes = HDI_MAX(bytes, (size_t)1);
        return true;
    }
    hdi_free(device->host->allocator, code, HDI_MAX(bytes, (size_t)1));
    return false;
}

/* `*out_code` is yours, of `*out_bytes`. */
static hd_status compile(hdi_backend_device *device, const char *name, const char *text, bool exact, void **out_code,
                         size_t *out_bytes, hd_error *error) {
    hdcu_api *api = &device->api;
    hdcu_program program = NULL;
    char arch[128];
    bool as_text;
    *out_code = NULL;
    if (!api->compiles)
        return hdi_fail_native(error, HD_STATUS_RUNTIME_NOT_FOUND, device->found.info.backend, 0,
                               "kernel %s is not in the cache and there is no %s: %s", name,
                               api->flavour->compiler_name, api->flavour->compiler_mend);
    hd_status status = choose_arch(device, arch, sizeof arch, &as_text, error);
    if (status) return status;
    if (!HDCU_CALL(api, CreateProgram, &program, text, name, 0, NULL, NULL))
        return hdcu_fail(api, error, "kernel %s", name);
    if (!compile_with(device, name, program, arch, exact)) status = hdcu_fail(api, error, "compiling kernel %s", name);
    else if (!get_code(device, program, as_text, out_code, out_bytes)) {
        if (hdcu_last.result) status = hdcu_fail(api, error, "the code of kernel %s", name);
        else
            status = hdi_fail_native(error, HD_STATUS_OUT_OF_HOST_MEMORY, device->found.info.backend, 0,
                                     "no memory for kernel %s", name);
    }
    api->DestroyProgram(&program);
    return status;
}

/* ---- kernels ---- */

/* Lets launches ask for the shared memory that the kernel could not declare. */
static bool allow_shared(hdcu_api *api, const hdi_loaded_kernel *loaded) {
    enum { MOST_SHARED_AT_LAUNCH = 8 };
    const hdi_spirv_printed *printed = &loaded->printed;
    return !printed->shared_at_launch ||
           HDCU_CALL(api, FuncSetAttribute, loaded->kernel, MOST_SHARED_AT_LAUNCH, (int)printed->shared_bytes);
}

static bool load_code(hdi_backend_device *device, const void *code, hdi_loaded_kernel *loaded) {
    hdcu_api *api = &device->api;
    if (!HDCU_CALL(api, ModuleLoadData, &loaded->module, code)) loaded->module = NULL;
    else if (HDCU_CALL(api, ModuleGetFunction, &loaded->kernel, loaded->module, HDI_SPIRV_PRINTED_ENTRY) &&
             allow_shared(api, loaded))
        return true;
    HDCU_END(device, ModuleUnload, loaded->module);
    loaded->module = NULL;
    return false;
}

static uint64_t key_of(const hdcu_flavour *flavour, const hdi_text *text, bool exact) {
    uint64_t key = hdi_hash(HDI_HASH_START, text->bytes, text->count);
    for (const char *const *option = exact ? flavour->exact_options : flavour->fast_options; *option; option++)
        key = hdi_hash(key, *option, strlen(*option));
    return key;
}

/* From the cache, or compiled; a cached kernel that the driver does not take is compiled anew. */
static hd_status load(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                      hdi_loaded_kernel *loaded, bool *out_from_cache, hd_error *error) {
    const hd_allocator *allocator = device->host->allocator;
    hdi_text text = { .allocator = allocator };
    size_t bytes = 0;
    hd_status status = print(device, module, kernel, &text, &loaded->printed, error);
    const uint64_t key = status ? 0 : key_of(device->api.flavour, &text, kernel->keep_subnormals);
    void *code = status ? NULL : hdi_cache_read(&device->cache, key, &bytes);
    *out_from_cache = code && load_code(device, code, loaded);
    if (code && !*out_from_cache && hdcu_is_loss())
        status = hdcu_fail(&device->api, error, "loading kernel %s", module->name);
    if (!status && !*out_from_cache) {
        hdi_free(allocator, code, bytes);
        code = NULL;
        status = compile(device, module->name, text.bytes, kernel->keep_subnormals, &code, &bytes, error);
        if (!status && !load_code(device, code, loaded))
            status = hdcu_fail(&device->api, error, "loading kernel %s", module->name);
        if (!status) hdi_cache_write(&device->cache, key, code, bytes);
    }
    hdi_free(allocator, code, bytes);
    hdi_text_free(&text);
    return status;
}

void hdcu_kernel_end(hdi_backend_device *device, hdi_used *used) {
    hdi_loaded_kernel *kernel = HDI_OBJECT(used, hdi_loaded_kernel, used);
    HDCU_END(device, ModuleUnload, kernel->module);
    hdcu_product_end(device, kernel->product);
    hdi_free(device->host->allocator, kernel, sizeof *kernel);
}

hd_status hdcu_kernel_load(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                           hdi_loaded_kernel **out_kernel, bool *out_from_cache, hd_error *error) {
    const char *backend = device->found.info.backend;
    *out_from_cache = false;
    if (hdi_loss_known(&device->api.loss)) return hdcu_lost(&device->api, error);
    if (!module->spirv && !module->library)
        return hdi_fail_native(error, HD_STATUS_KERNEL_NOT_FOUND, backend, 0, "kernel %s has no form for a GPU",
                               module->name);
    hdi_loaded_kernel *loaded = hdi_alloc(device->host->allocator, sizeof *loaded);
    if (!loaded)
        return hdi_fail_native(error, HD_STATUS_OUT_OF_HOST_MEMORY, backend, 0, "no memory for kernel %s",
                               module->name);
    hd_status status = module->library ? hdcu_product_load(device, module, kernel, &loaded->product, error)
                                       : load(device, module, kernel, loaded, out_from_cache, error);
    return hdi_inflight_take_kernel(&device->inflight, status, loaded, out_kernel);
}
