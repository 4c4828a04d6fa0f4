/* kernel.c: SPIR-V and constants to a program: printed as OpenCL C, compiled by the driver, kept on disk. */
#include "device/opencl/cl.h"
#include <stdio.h>

/* Every kernel may be exact: what a device rounds by itself it rounds right where it can. */
static const char *options_for(const hdi_backend_device *device, const hdi_kernel *kernel) {
    bool exact = kernel->keep_subnormals && device->facts.rounds_division;
    return exact ? "-cl-std=CL1.2 -w -cl-fp32-correctly-rounded-divide-sqrt" : "-cl-std=CL1.2 -w";
}

static hd_status print(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel, hdi_text *out_text,
                       hdi_spirv_printed *out_printed, hd_error *error) {
    const hdi_spirv_print_target target = { HDI_SPIRV_OPENCL_C, device->facts.offers, kernel->subgroup, true, device->facts.is_pocl };
    const hdi_blob *blob = module->spirv;
    uint32_t ids[HDI_MAX_SPEC];
    for (uint32_t i = 0; i < HDI_MAX_SPEC; i++) ids[i] = i;
    hd_error refused = { 0 };
    hd_status status = hdi_spirv_print(device->host->allocator, blob->words, blob->word_count * 4, blob->entry, ids, kernel->spec,
                                       HDI_MIN(kernel->spec_count, (uint32_t)HDI_MAX_SPEC), &target, out_text, out_printed, &refused);
    if (status) return hdi_fail_native(error, status, "opencl", 0, "kernel %s: %s", module->name, refused.text);
    for (uint32_t i = 0; i < out_printed->buffer_count; i++)
        if (out_printed->buffers[i] >= kernel->binding_count)
            return hdi_fail_native(error, HD_STATUS_MODULE, "opencl", 0, "kernel %s uses binding %u of %u", module->name, out_printed->buffers[i], kernel->binding_count);
    return HD_OK;
}

/* The compiler's own words, in the log. */
static void log_build(hdi_backend_device *device, const hdi_module *module, cl_program program) {
    char words[1024] = "";
    size_t bytes = 0;
    if (device->cl.GetProgramBuildInfo(program, device->facts.id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes) != CL_SUCCESS || bytes == 0) return;
    char *all = hdi_alloc(device->host->allocator, bytes + 1);
    if (all && device->cl.GetProgramBuildInfo(program, device->facts.id, CL_PROGRAM_BUILD_LOG, bytes, all, NULL) == CL_SUCCESS)
        snprintf(words, sizeof words, "%.1000s", all);
    hdi_free(device->host->allocator, all, bytes + 1);
    hdi_log_line(device->host->log, HD_LOG_WARNING, "opencl", "kernel %s: %s", module->name, words);
}

static bool build(hdi_backend_device *device, const hdi_module *module, cl_program program, const char *options) {
    if (HDCL_CALL(device, BuildProgram, program, 1, &device->facts.id, options, NULL, NULL)) return true;
    const cl_int result = device->result;
    log_build(device, module, program);
    device->result = result;
    device->function = "clBuildProgram";
    return false;
}

static void keep(hdi_backend_device *device, uint64_t key, const hdi_loaded_kernel *loaded) {
    hdcl_cached cached = { .printed = loaded->printed };
    if (!device->host->cache_dir || device->cl.GetProgramInfo(loaded->program, CL_PROGRAM_BINARY_SIZES, sizeof cached.bytes, &cached.bytes, NULL) != CL_SUCCESS) return;
    cached.binary = cached.bytes ? hdi_alloc(device->host->allocator, cached.bytes) : NULL;
    if (cached.binary && device->cl.GetProgramInfo(loaded->program, CL_PROGRAM_BINARIES, sizeof cached.binary, &cached.binary, NULL) == CL_SUCCESS)
        hdcl_cache_write(device, key, &cached);
    hdi_free(device->host->allocator, cached.binary, cached.bytes);
}

/* From the cache; anything that does not work leads to compiling. */
static bool load_cached(hdi_backend_device *device, const hdi_module *module, uint64_t key, const char *options, hdi_loaded_kernel *loaded) {
    hdcl_cached cached;
    cl_int binary_result = CL_SUCCESS;
    if (!hdcl_cache_read(device, key, &cached)) return false;
    const unsigned char *binary = cached.binary;
    device->function = "clCreateProgramWithBinary";
    loaded->program = device->cl.CreateProgramWithBinary(device->context, 1, &device->facts.id, &cached.bytes, &binary, &binary_result, &device->result);
    hdi_free(device->host->allocator, cached.binary, cached.bytes);
    loaded->printed = cached.printed;
    if (loaded->program && binary_result == CL_SUCCESS && build(device, module, loaded->program, options)) return true;
    if (loaded->program) device->cl.ReleaseProgram(loaded->program);
    loaded->program = NULL;
    return false;
}

static hd_status compile(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel, const char *options,
                         hdi_loaded_kernel *loaded, hd_error *error) {
    hdi_text text = { .allocator = device->host->allocator };
    hd_status status = print(device, module, kernel, &text, &loaded->printed, error);
    if (!status) {
        const char *source = text.bytes;
        device->function = "clCreateProgramWithSource";
        loaded->program = device->cl.CreateProgramWithSource(device->context, 1, &source, &text.count, &device->result);
        if (!loaded->program || !build(device, module, loaded->program, options)) status = hdcl_fail(device, error, "compiling kernel %s", module->name);
    }
    hdi_text_free(&text);
    return status;
}

static void end_kernel(hdi_backend_device *device, hdi_loaded_kernel *loaded) {
    hdi_list_remove(&loaded->link);
    if (loaded->kernel) device->cl.ReleaseKernel(loaded->kernel);
    if (loaded->program) device->cl.ReleaseProgram(loaded->program);
    hdi_free(device->host->allocator, loaded, sizeof *loaded);
}

hd_status hdcl_kernel_load(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                           hdi_loaded_kernel **out_kernel, bool *out_from_cache, hd_error *error) {
    if (!module->spirv) return hdi_fail_native(error, HD_STATUS_KERNEL_NOT_FOUND, "opencl", 0, "kernel %s has no form for a GPU", module->name);
    hdi_loaded_kernel *loaded = hdi_alloc(device->host->allocator, sizeof *loaded);
    if (!loaded) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for kernel %s", module->name);
    hdi_list_add(&device->kernels, &loaded->link);
    const char *options = options_for(device, kernel);
    const uint64_t key = hdcl_cache_key(device, module->spirv, kernel, options);
    *out_from_cache = load_cached(device, module, key, options, loaded);
    hd_status status = *out_from_cache ? HD_OK : compile(device, module, kernel, options, loaded, error);
    if (!status) {
        device->function = "clCreateKernel";
        loaded->kernel = device->cl.CreateKernel(loaded->program, HDI_SPIRV_PRINTED_ENTRY, &device->result);
        if (!loaded->kernel) status = hdcl_fail(device, error, "kernel %s", module->name);
    }
    if (status) {
        end_kernel(device, loaded);
        return status;
    }
    if (!*out_from_cache) keep(device, key, loaded);
    *out_kernel = loaded;
    return HD_OK;
}

void hdcl_kernel_free(hdi_backend_device *device, hdi_loaded_kernel *kernel) { end_kernel(device, kernel); }
