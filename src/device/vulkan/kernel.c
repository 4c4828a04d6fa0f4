/* kernel.c: SPIR-V and constants to a pipeline. Bindings are storage buffers 0.. of set 0, push constants begin at 0;
 * layouts follow from their numbers alone. Every pipeline may be launched from any first group. What the driver
 * compiled is kept on disk. */
#include "device/vulkan/vk.h"
#include "device/cache.h"
#include "spirv/spirv.h"

/* Called with the lock held. */
static hd_status set_layout(hdi_backend_device *device, uint32_t binding_count, VkDescriptorSetLayout *out_layout,
                            hd_error *error) {
    hdvk_vk *vk = &device->vk;
    VkDescriptorSetLayout *kept = &device->set_layouts[binding_count];
    if (!*kept) {
        VkDescriptorSetLayoutBinding bindings[HDI_MAX_BINDINGS];
        for (uint32_t i = 0; i < binding_count; i++)
            bindings[i] = (VkDescriptorSetLayoutBinding){
                .binding = i, .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .descriptorCount = 1,
                .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
            };
        const VkDescriptorSetLayoutCreateInfo info = {
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
            .bindingCount = binding_count,
            .pBindings = bindings,
        };
        if (HDVK_CALL(vk, CreateDescriptorSetLayout, vk->device, &info, NULL, kept)) {
            *kept = VK_NULL_HANDLE;
            return hdvk_fail(vk, error, "a layout of %u buffers", binding_count);
        }
    }
    *out_layout = *kept;
    return HD_OK;
}

static hd_status pipeline_layout(hdi_backend_device *device, hdi_loaded_kernel *loaded, hd_error *error) {
    hdvk_vk *vk = &device->vk;
    VkDescriptorSetLayout set;
    hdi_mutex_lock(&device->inflight.kernels_lock);
    hd_status status = set_layout(device, loaded->binding_count, &set, error);
    hdi_mutex_unlock(&device->inflight.kernels_lock);
    if (status != HD_OK) return status;
    /* heddle's kernels declare the most words that every device has, and use as many as they are given. */
    const uint32_t room = HDI_MAX(loaded->push_bytes, (uint32_t)(HDI_MAX_PUSH_WORDS * 4));
    const VkPushConstantRange range = { .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                                        .size = loaded->push_bytes ? room : 0 };
    const VkPipelineLayoutCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .setLayoutCount = 1, .pSetLayouts = &set,
        .pushConstantRangeCount = range.size ? 1 : 0, .pPushConstantRanges = &range,
    };
    if (HDVK_CALL(vk, CreatePipelineLayout, vk->device, &info, NULL, &loaded->layout) == VK_SUCCESS) return HD_OK;
    loaded->layout = VK_NULL_HANDLE;
    return hdvk_fail(vk, error, "a layout of %u buffers and %u push bytes", loaded->binding_count, loaded->push_bytes);
}

/* What can be told without the driver, which may crash on it. */
static hd_status check(const hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                       hd_error *error) {
    enum { HEADER_WORDS = 5, MAGIC = 0x07230203 };
    const hdi_blob *blob = module->spirv;
    if (!blob)
        return hdi_fail_native(error, HD_STATUS_KERNEL_NOT_FOUND, "vulkan", 0, "kernel %s has no form for a GPU",
                               module->name);
    if (blob->word_count < HEADER_WORDS || blob->words[0] != MAGIC)
        return hdi_fail_native(error, HD_STATUS_MODULE, "vulkan", 0, "kernel %s is not SPIR-V", module->name);
    const uint32_t api = HDI_MIN(device->facts.properties.apiVersion, device->vk.api_version);
    const uint32_t most = api >= VK_API_VERSION_1_3 ? 0x10600u : api >= VK_API_VERSION_1_2 ? 0x10500u : 0x10300u;
    if (blob->words[1] > most)
        return hdi_fail_native(error, HD_STATUS_UNSUPPORTED, "vulkan", 0,
                               "kernel %s is SPIR-V %u.%u; the device takes up to %u.%u", module->name,
                               blob->words[1] >> 16 & 0xff, blob->words[1] >> 8 & 0xff, most >> 16, most >> 8 & 0xff);
    const bool any = !kernel->subgroup || kernel->subgroup == device->facts.subgroup_least;
    const bool fixed = device->facts.subgroup_least == device->facts.subgroup_most;
    const bool inside = kernel->subgroup >= device->facts.subgroup_least &&
                        kernel->subgroup <= device->facts.subgroup_most &&
                        (kernel->subgroup & (kernel->subgroup - 1)) == 0;
    if ((any && (fixed || !kernel->subgroup)) || (inside && device->facts.found.caps.subgroup_control)) return HD_OK;
    return hdi_fail_native(error, HD_STATUS_UNSUPPORTED, "vulkan", 0,
                           "kernel %s wants subgroups of %u; the device has %u to %u", module->name, kernel->subgroup,
                           device->facts.subgroup_least, device->facts.subgroup_most);
}

static hd_status create_pipeline(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                                 VkShaderModule shader, VkPipelineCache cache, hdi_loaded_kernel *loaded,
                                 hd_error *error) {
    hdvk_vk *vk = &device->vk;
    VkSpecializationMapEntry entries[HDI_MAX_CONSTANTS];
    uint32_t ids[HDI_MAX_CONSTANTS], values[HDI_MAX_CONSTANTS];
    const uint32_t spec_count = hdi_kernel_constants(kernel, device->facts.exact_halves, false, ids, values);
    for (uint32_t i = 0; i < spec_count; i++)
        entries[i] = (VkSpecializationMapEntry){ .constantID = ids[i], .offset = i * 4, .size = 4 };
    const VkSpecializationInfo spec = {
        .mapEntryCount = spec_count, .pMapEntries = entries, .dataSize = (size_t)spec_count * 4, .pData = values,
    };
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = kernel->subgroup,
    };
    const bool demand = kernel->subgroup && device->facts.found.caps.subgroup_control;
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO, .flags = VK_PIPELINE_CREATE_DISPATCH_BASE_BIT,
        .stage = {
            .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .pNext = demand ? &subgroup : NULL,
            .stage = VK_SHADER_STAGE_COMPUTE_BIT, .module = shader,
            .pName = module->spirv->entry ? module->spirv->entry : "main", .pSpecializationInfo = &spec,
        },
        .layout = loaded->layout,
    };
    if (HDVK_CALL(vk, CreateComputePipelines, vk->device, cache, 1, &info, NULL, &loaded->pipeline) == VK_SUCCESS)
        return HD_OK;
    loaded->pipeline = VK_NULL_HANDLE;
    return hdvk_fail(vk, error, "compiling kernel %s", module->name);
}

/* ---- kept on disk ---- */

/* Names a compiled kernel: its module, constants and layout. */
static uint64_t cache_key(const hdi_blob *blob, const hdi_kernel *kernel) {
    const char *entry = blob->entry ? blob->entry : "main";
    uint64_t key = hdi_hash(HDI_HASH_START, &blob->hash, sizeof blob->hash);
    /* the digest names the sources; the words are what counts */
    key = hdi_hash(key, blob->words, blob->word_count * 4);
    key = hdi_hash(key, entry, strlen(entry));
    key = hdi_hash(key, kernel->spec, HDI_MIN(kernel->spec_count, (uint32_t)HDI_MAX_SPEC) * sizeof *kernel->spec);
    key = hdi_hash(key, &kernel->spec_count, sizeof kernel->spec_count);
    key = hdi_hash(key, &kernel->subgroup, sizeof kernel->subgroup);
    key = hdi_hash(key, &kernel->keep_subnormals, sizeof kernel->keep_subnormals);
    key = hdi_hash(key, &kernel->binding_count, sizeof kernel->binding_count);
    return hdi_hash(key, &kernel->push_bytes, sizeof kernel->push_bytes);
}

static hdi_cache cache_of(const hdi_backend_device *device) {
    const VkPhysicalDeviceProperties *properties = &device->facts.properties;
    uint64_t identity = hdi_hash(HDI_HASH_START, &properties->vendorID, sizeof properties->vendorID);
    identity = hdi_hash(identity, &properties->deviceID, sizeof properties->deviceID);
    identity = hdi_hash(identity, &properties->driverVersion, sizeof properties->driverVersion);
    return (hdi_cache){ device->host, "vulkan", hdi_hash(identity, properties->pipelineCacheUUID, VK_UUID_SIZE) };
}

/* Keeps what the driver compiled; without it everything works, only slower the next time. */
static void keep(hdi_backend_device *device, const hdi_cache *files, uint64_t key, VkPipelineCache cache) {
    hdvk_vk *vk = &device->vk;
    size_t bytes = 0;
    void *data = NULL;
    if (HDVK_CALL(vk, GetPipelineCacheData, vk->device, cache, &bytes, NULL) == VK_SUCCESS && bytes)
        data = hdi_alloc(device->host->allocator, bytes);
    size_t written = bytes;
    if (data && HDVK_CALL(vk, GetPipelineCacheData, vk->device, cache, &written, data) == VK_SUCCESS)
        hdi_cache_write(files, key, data, HDI_MIN(written, bytes));
    else if (bytes || hdvk_last.result)
        hdi_log_line(vk->log, HD_LOG_INFO, "vulkan", "a compiled kernel is not kept (%d)", (int)hdvk_last.result);
    hdi_free(device->host->allocator, data, bytes);
}

static hd_status compile(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                         VkShaderModule shader, hdi_loaded_kernel *loaded, bool *out_from_cache, hd_error *error) {
    hdvk_vk *vk = &device->vk;
    if (!device->host->cache_dir) return create_pipeline(device, module, kernel, shader, VK_NULL_HANDLE, loaded, error);
    size_t bytes = 0;
    const hdi_cache files = cache_of(device);
    const uint64_t key = cache_key(module->spirv, kernel);
    void *data = hdi_cache_read(&files, key, &bytes);
    const VkPipelineCacheCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO, .initialDataSize = bytes, .pInitialData = data,
    };
    VkPipelineCache cache;
    hd_status status;
    if (HDVK_CALL(vk, CreatePipelineCache, vk->device, &info, NULL, &cache)) {
        status = hdvk_fail(vk, error, "the cache of kernel %s", module->name);
    } else {
        status = create_pipeline(device, module, kernel, shader, cache, loaded, error);
        if (status == HD_OK && !data) keep(device, &files, key, cache);
        HDVK_END(vk, DestroyPipelineCache, cache);
    }
    *out_from_cache = status == HD_OK && data;
    hdi_free(device->host->allocator, data, bytes);
    return status;
}

/* The driver's module. Where the kernel keeps subnormals and the device flushes unless told, a changed copy is handed
 * in. */
static hd_status create_module(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                               VkShaderModule *out_shader, hd_error *error) {
    hdvk_vk *vk = &device->vk;
    const hdi_blob *blob = module->spirv;
    const hd_allocator *allocator = device->host->allocator;
    const size_t room = (blob->word_count + HDI_SPIRV_SUBNORMAL_WORDS) * 4;
    uint32_t *changed = NULL;
    VkShaderModuleCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = blob->word_count * 4, .pCode = blob->words,
    };
    if (kernel->keep_subnormals && device->facts.keeps_subnormals) {
        if (!(changed = hdi_alloc(allocator, room))) return hdvk_no_memory(error);
        info.codeSize = hdi_spirv_keep_subnormals(blob->words, blob->word_count, changed) * 4;
        info.pCode = changed;
    }
    const VkResult result = HDVK_CALL(vk, CreateShaderModule, vk->device, &info, NULL, out_shader);
    hdi_free(allocator, changed, room);
    return result ? hdvk_fail(vk, error, "the module of kernel %s", module->name) : HD_OK;
}

void hdvk_kernel_end(hdi_backend_device *device, hdi_used *used) {
    hdi_loaded_kernel *loaded = HDI_OBJECT(used, hdi_loaded_kernel, used);
    HDVK_END(&device->vk, DestroyPipeline, loaded->pipeline);
    HDVK_END(&device->vk, DestroyPipelineLayout, loaded->layout);
    hdi_free(device->host->allocator, loaded, sizeof *loaded);
}

hd_status hdvk_kernel_load(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                           hdi_loaded_kernel **out_kernel, bool *out_from_cache, hd_error *error) {
    hdvk_vk *vk = &device->vk;
    *out_from_cache = false;
    if (hdi_loss_known(&vk->loss)) return hdvk_lost(vk, error);
    hd_status status = check(device, module, kernel, error);
    if (status != HD_OK) return status;
    hdi_loaded_kernel *loaded = hdi_alloc(device->host->allocator, sizeof *loaded);
    if (!loaded) return hdvk_no_memory(error);
    loaded->binding_count = kernel->binding_count;
    loaded->push_bytes = kernel->push_bytes;
    status = pipeline_layout(device, loaded, error);
    if (status == HD_OK) {
        VkShaderModule shader;
        status = create_module(device, module, kernel, &shader, error);
        if (status == HD_OK) {
            status = compile(device, module, kernel, shader, loaded, out_from_cache, error);
            HDVK_END(vk, DestroyShaderModule, shader);
        }
    }
    return hdi_inflight_take_kernel(&device->inflight, status, loaded, out_kernel);
}
