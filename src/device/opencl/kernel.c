/* kernel.c: SPIR-V and constants to a program: printed as OpenCL C, compiled by the driver, kept on disk. */
#include "device/opencl/cl.h"
#include "device/cache.h"
#include "device/translate.h"
#include <stdio.h>

/* Every kernel may be exact: what a device rounds by itself it rounds right where it can. */
static const char *options_for(const hdi_backend_device *device, const hdi_kernel *kernel) {
    bool exact = kernel->keep_subnormals && device->facts.rounds_division;
    return exact ? "-cl-std=CL1.2 -w -cl-fp32-correctly-rounded-divide-sqrt" : "-cl-std=CL1.2 -w";
}

static hd_status print(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                       hdi_text *out_text, hdi_spirv_printed *out_printed, hd_error *error) {
    const hdi_spirv_print_target target = { HDI_SPIRV_OPENCL_C, device->facts.offers, kernel->subgroup, true,
                                            device->facts.is_pocl };
    return hdi_translate_to_text(&(hdi_translation){ device->host, "opencl", module, kernel, &target }, out_text,
                                 out_printed, error);
}

/* The compiler's own words, in the log. */
static void log_build(hdi_backend_device *device, const hdi_module *module, cl_program program) {
    char words[1024] = "";
    size_t bytes = 0;
    if (!HDCL_CALL(device, GetProgramBuildInfo, program, device->facts.id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes) ||
        bytes == 0)
        return;
    char *all = hdi_alloc(device->host->allocator, bytes + 1);
    if (all &&
        HDCL_CALL(device, GetProgramBuildInfo, program, device->facts.id, CL_PROGRAM_BUILD_LOG, bytes, all, NULL))
        snprintf(words, sizeof words, "%.1000s", all);
    hdi_free(device->host->allocator, all, bytes + 1);
    hdi_log_line(device->host->log, HD_LOG_WARNING, "opencl", "kernel %s: %s", module->name, words);
}

static bool build(hdi_backend_device *device, const hdi_module *module, cl_program program, const char *options) {
    if (HDCL_CALL(device, BuildProgram, program, 1, &device->facts.id, options, NULL, NULL)) return true;
    const cl_int result = hdcl_last.result;
    log_build(device, module, program);
    hdcl_last.result = result;
    hdcl_last.function = HDCL_FN_BuildProgram;
    return false;
}

/* ---- kept on disk ---- */

static hdi_cache cache_of(const hdi_backend_device *device) {
    return (hdi_cache){ device->host, "opencl",
                        hdi_hash(HDI_HASH_START, device->facts.identity, strlen(device->facts.identity)) };
}

/* Of the text, not of the module: a changed printer is never taken for an old one. */
static uint64_t cache_key(const hdi_text *source, const char *options) {
    return hdi_hash(hdi_hash(HDI_HASH_START, source->bytes, source->count), options, strlen(options));
}

static void keep(hdi_backend_device *device, uint64_t key, cl_program program) {
    const hdi_cache cache = cache_of(device);
    size_t bytes = 0;
    if (!device->host->cache_dir ||
        !HDCL_CALL(device, GetProgramInfo, program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL))
        return;
    unsigned char *binary = bytes ? hdi_alloc(device->host->allocator, bytes) : NULL;
    if (binary && HDCL_CALL(device, GetProgramInfo, program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL))
        hdi_cache_write(&cache, key, binary, bytes);
    hdi_free(device->host->allocator, binary, bytes);
}

/* From the cache, or NULL; anything that does not work leads to compiling. */
static cl_program load_cached(hdi_backend_device *device, const hdi_module *module, uint64_t key, const char *options) {
    size_t bytes;
    cl_int binary_result = CL_SUCCESS;
    const hdi_cache cache = cache_of(device);
    unsigned char *binary = hdi_cache_read(&cache, key, &bytes);
    if (!binary) return NULL;
    const unsigned char *given = binary;
    cl_program program = HDCL_MAKE(device, CreateProgramWithBinary, device->context, 1, &device->facts.id, &bytes,
                                   &given, &binary_result);
    hdi_free(device->host->allocator, binary, bytes);
    if (program && binary_result == CL_SUCCESS && build(device, module, program, options)) return program;
    if (program) device->cl.ReleaseProgram(program);
    return NULL;
}

static hd_status compile(hdi_backend_device *device, const hdi_module *module, const hdi_text *text,
                         const char *options, cl_program *out_program, hd_error *error) {
    const char *source = text->bytes;
    *out_program = HDCL_MAKE(device, CreateProgramWithSource, device->context, 1, &source, &text->count);
    if (*out_program && build(device, module, *out_program, options)) return HD_OK;
    return hdcl_fail(device, error, "compiling kernel %s", module->name);
}

void hdcl_kernel_end(hdi_backend_device *device, hdi_used *used) {
    hdi_loaded_kernel *loaded = HDI_OBJECT(used, hdi_loaded_kernel, used);
    if (loaded->kernel) device->cl.ReleaseKernel(loaded->kernel);
    if (loaded->program) device->cl.ReleaseProgram(loaded->program);
    hdi_free(device->host->allocator, loaded, sizeof *loaded);
}

/* Text, then program, then kernel. */
static hd_status load(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                      hdi_loaded_kernel *loaded, bool *out_from_cache, hd_error *error) {
    hdi_text text = { .allocator = device->host->allocator };
    const char *options = options_for(device, kernel);
    hd_status status = print(device, module, kernel, &text, &loaded->printed, error);
    if (!status) {
        const uint64_t key = cache_key(&text, options);
        loaded->program = load_cached(device, module, key, options);
        *out_from_cache = loaded->program != NULL;
        if (!loaded->program) {
            status = compile(device, module, &text, options, &loaded->program, error);
            if (!status) keep(device, key, loaded->program);
        }
    }
    hdi_text_free(&text);
    if (status) return status;
    loaded->kernel = HDCL_MAKE(device, CreateKernel, loaded->program, HDI_SPIRV_PRINTED_ENTRY);
    return loaded->kernel ? HD_OK : hdcl_fail(device, error, "kernel %s", module->name);
}

hd_status hdcl_kernel_load(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                           hdi_loaded_kernel **out_kernel, bool *out_from_cache, hd_error *error) {
    if (hdi_loss_known(&device->loss)) return hdcl_lost(device, error);
    if (!module->spirv)
        return hdi_fail_native(error, HD_STATUS_KERNEL_NOT_FOUND, "opencl", 0, "kernel %s has no form for a GPU",
                               module->name);
    hdi_loaded_kernel *loaded = hdi_alloc(device->host->allocator, sizeof *loaded);
    if (!loaded) return hdcl_no_memory(error, "a kernel");
    *out_from_cache = false;
    hd_status status = load(device, module, kernel, loaded, out_from_cache, error);
    return hdi_inflight_take_kernel(&device->inflight, status, loaded, out_kernel);
}
