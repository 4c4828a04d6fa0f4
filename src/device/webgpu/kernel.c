/* kernel.c: SPIR-V and constants to a pipeline: printed as WGSL, compiled by the driver. WebGPU gives no compiled code,
 * so nothing is kept on disk. */
#include "device/webgpu/wg.h"
#include "device/translate.h"
#include <stdio.h>

static hd_status print(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                       hdi_text *out_text, hdi_spirv_printed *out_printed, hd_error *error) {
    const hdi_spirv_print_target target = { .dialect = HDI_SPIRV_WGSL };
    return hdi_translate_to_text(&(hdi_translation){ device->host, "webgpu", module, kernel, &target }, out_text,
                                 out_printed, error);
}

static bool make_layout(hdi_backend_device *device, hdi_loaded_kernel *loaded) {
    WGPUBindGroupLayoutEntry entries[HDI_SPIRV_MAX_BINDINGS + 1];
    const uint32_t count = loaded->printed.buffer_count;
    memset(entries, 0, sizeof entries);
    for (uint32_t i = 0; i <= count; i++) {
        entries[i].binding = i < count ? loaded->printed.buffers[i] : HDI_SPIRV_WGSL_LAUNCH;
        entries[i].visibility = WGPU_STAGE_COMPUTE;
        entries[i].buffer.type = i < count ? WGPU_BINDING_STORAGE : WGPU_BINDING_UNIFORM;
        entries[i].buffer.dynamic_offset = i == count;
    }
    const WGPUBindGroupLayoutDescriptor desc = { .count = count + 1, .entries = entries };
    return HDWG_MAKE(device, &loaded->layout, DeviceCreateBindGroupLayout, device->device, &desc);
}

bool hdwg_kernel_build(hdi_backend_device *device, const char *text, size_t text_bytes, hdi_loaded_kernel *loaded) {
    static const char entry[] = HDI_SPIRV_PRINTED_ENTRY;
    WGPUShaderSourceWGSL source = { { NULL, WGPU_CHAINED_WGSL }, { text, text_bytes } };
    const WGPUShaderModuleDescriptor module_desc = { .next = &source.chain };
    WGPUShaderModule module = NULL;
    WGPUPipelineLayout layout = NULL;
    bool fine = HDWG_MAKE(device, &module, DeviceCreateShaderModule, device->device, &module_desc) &&
                make_layout(device, loaded);
    if (fine) {
        const WGPUPipelineLayoutDescriptor layout_desc = { .count = 1, .layouts = &loaded->layout };
        fine = HDWG_MAKE(device, &layout, DeviceCreatePipelineLayout, device->device, &layout_desc);
    }
    if (fine) {
        const WGPUComputePipelineDescriptor desc = { .layout = layout,
                                                     .compute = { .module = module,
                                                                  .entry = { entry, sizeof entry - 1 } } };
        fine = HDWG_MAKE(device, &loaded->pipeline, DeviceCreateComputePipeline, device->device, &desc);
    }
    HDWG_END(device, PipelineLayout, layout);
    HDWG_END(device, ShaderModule, module);
    return fine;
}

void hdwg_kernel_drop(hdi_backend_device *device, hdi_loaded_kernel *kernel) {
    HDWG_END(device, ComputePipeline, kernel->pipeline);
    HDWG_END(device, BindGroupLayout, kernel->layout);
}

void hdwg_kernel_end(hdi_backend_device *device, hdi_used *used) {
    hdi_loaded_kernel *kernel = HDI_OBJECT(used, hdi_loaded_kernel, used);
    hdwg_kernel_drop(device, kernel);
    hdi_free(device->host->allocator, kernel, sizeof *kernel);
}

hd_status hdwg_kernel_load(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                           hdi_loaded_kernel **out_kernel, bool *out_from_cache, hd_error *error) {
    hdi_text text = { .allocator = device->host->allocator };
    *out_from_cache = false;
    if (hdi_loss_known(&device->loss)) return hdwg_lost(device, error);
    if (!module->spirv)
        return hdi_fail_native(error, HD_STATUS_KERNEL_NOT_FOUND, "webgpu", 0, "kernel %s has no form for a GPU",
                               module->name);
    hdi_loaded_kernel *loaded = hdi_alloc(device->host->allocator, sizeof *loaded);
    if (!loaded) return hdwg_no_memory(error, "a kernel");
    hd_status status = print(device, module, kernel, &text, &loaded->printed, error);
    if (!status && !hdwg_kernel_build(device, text.bytes, text.count, loaded))
        status = hdwg_fail(device, error, "kernel %s", module->name);
    hdi_text_free(&text);
    return hdi_inflight_take_kernel(&device->inflight, status, loaded, out_kernel);
}
