/* open.c: makes a device with its queues, or joins the caller's, and ends it. Of the features only those are switched
 * on that are there and of use. Of a caller's device nothing is assumed beyond Vulkan 1.1, because nobody can ask what
 * was switched on. Closing waits at most host->wait_ns; work that does not end by then keeps its driver objects for
 * ever, since ending them under it could crash the process. */
#include "device/vulkan/vk.h"

static const char *const extension_names[HDVK_HAS_COUNT] = {
#define EXTENSION_NAME(name, extension, core, enable) (enable) ? extension : NULL,
    HDVK_HAS_LIST(EXTENSION_NAME)
#undef EXTENSION_NAME
};

static hd_status load_device(hdvk_vk *vk, hd_error *error) {
    const char *missing = hdvk_load_level(vk, HDVK_DEVICE);
    return missing ? hdi_fail_native(error, HD_STATUS_UNSUPPORTED_VERSION, "vulkan", 0, "the driver has no %s", missing)
                   : HD_OK;
}

static hd_status create_device(hdi_backend_device *device, hd_error *error) {
    hdvk_vk *vk = &device->vk;
    hdvk_facts *facts = &device->facts;
    device->timeline = HDVK_HAS(facts, TIMELINE) && facts->features.timeline.timelineSemaphore;
    if (device->host->one_queue) hdvk_one_queue(facts);
    static const float priorities[HDI_QUEUE_COUNT] = { 1.0f, 1.0f, 1.0f };
    VkDeviceQueueCreateInfo queues[HDI_QUEUE_COUNT];
    uint32_t queue_count = 0;
    for (uint32_t i = 0; i < HDI_QUEUE_COUNT; i++) { /* each family once, with all that is used of it */
        const hdvk_queue_place *place = &facts->places[i];
        uint32_t at = 0;
        while (at < queue_count && queues[at].queueFamilyIndex != place->family) at++;
        if (place->family == HDI_NO_INDEX) continue;
        if (at == queue_count)
            queues[queue_count++] = (VkDeviceQueueCreateInfo){
                .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                .queueFamilyIndex = place->family,
                .pQueuePriorities = priorities,
            };
        queues[at].queueCount = HDI_MAX(queues[at].queueCount, place->number + 1);
    }
    const char *extensions[HDVK_HAS_COUNT];
    uint32_t extension_count = 0;
    for (uint32_t i = 0; i < HDVK_HAS_COUNT; i++)
        if (facts->extension >> i & 1u && extension_names[i]) extensions[extension_count++] = extension_names[i];
    hdvk_features_link(facts, &facts->features);
    const VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .pNext = &facts->features.core,
        .queueCreateInfoCount = queue_count, .pQueueCreateInfos = queues,
        .enabledExtensionCount = extension_count, .ppEnabledExtensionNames = extensions,
    };
    if (HDVK_CALL(vk, CreateDevice, vk->physical, &info, NULL, &vk->device)) {
        vk->device = NULL;
        return hdvk_fail(vk, error, "opening %.100s", facts->properties.deviceName);
    }
    hd_status status = load_device(vk, error);
    vk->device_fault = facts->features.fault.deviceFault && vk->GetDeviceFaultInfoEXT;
    return status;
}

/* Makes instance and device anew, and sees that the device is still the one that was found. */
static hd_status open_own(hdi_backend_device *device, const hdi_found *found, hd_error *error) {
    VkPhysicalDevice physical[HDI_MAX_FOUND];
    uint32_t count = 0;
    hdvk_vk *vk = &device->vk;
    hd_status status = hdvk_instance_open(device->host, vk, error);
    if (status == HD_OK) status = hdvk_physical_devices(vk, physical, &count, error);
    if (status != HD_OK) return status;
    if (found->index >= count)
        return hdi_fail_native(error, HD_STATUS_NO_DEVICE, "vulkan", 0, "%s is no longer there", found->info.id);
    vk->physical = physical[found->index];
    status = hdvk_facts_read(device->host, vk, vk->physical, &device->facts, error);
    if (status != HD_OK) return status;
    if (strcmp(device->facts.found.info.id, found->info.id) != 0)
        return hdi_fail_native(error, HD_STATUS_NO_DEVICE, "vulkan", 0, "%s is no longer there; %s took its place",
                               found->info.id, device->facts.found.info.id);
    return create_device(device, error);
}

static hd_status open_foreign(hdi_backend_device *device, const hdi_foreign *foreign, hd_error *error) {
    hdvk_vk *vk = &device->vk;
    vk->foreign = true;
    vk->log = device->host->log;
    vk->api_version = VK_API_VERSION_1_1;
    vk->instance = foreign->instance;
    memcpy(&vk->GetInstanceProcAddr, &foreign->get_instance_proc_addr, sizeof foreign->get_instance_proc_addr);
    if (!vk->GetInstanceProcAddr && !hdvk_load_library(vk))
        return hdi_fail_native(error, HD_STATUS_RUNTIME_NOT_FOUND, "vulkan", 0,
                               "libvulkan.so.1 not found, and no vulkan_get_instance_proc_addr given");
    const char *missing = hdvk_load_level(vk, HDVK_INSTANCE);
    if (missing)
        return hdi_fail_native(error, HD_STATUS_UNSUPPORTED_VERSION, "vulkan", 0, "the caller's instance has no %s",
                               missing);
    vk->physical = foreign->physical_device;
    const hd_status status = hdvk_facts_join(device->host, vk, foreign, &device->facts, error);
    if (status != HD_OK) return status;
    vk->device = foreign->device;
    return load_device(vk, error);
}

static hd_status open_queue(hdi_backend_device *device, uint32_t index, const hdvk_queue_place *place,
                            hd_error *error) {
    hdvk_vk *vk = &device->vk;
    hdvk_queue *queue = &device->queues[index];
    const uint32_t family = place->family;
    queue->family = family;
    queue->stages =
        VK_PIPELINE_STAGE_TRANSFER_BIT | (index == HDI_QUEUE_COMPUTE ? VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT : 0u);
    vk->GetDeviceQueue(vk->device, family, place->number, &queue->handle);
    const VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, .queueFamilyIndex = family,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
    };
    if (HDVK_CALL(vk, CreateCommandPool, vk->device, &pool, NULL, &queue->pool)) {
        queue->pool = VK_NULL_HANDLE;
        return hdvk_fail(vk, error, "the pool of queue family %u", family);
    }
    if (!device->timeline) return HD_OK;
    const VkSemaphoreTypeCreateInfo type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
    };
    const VkSemaphoreCreateInfo semaphore = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type };
    if (HDVK_CALL(vk, CreateSemaphore, vk->device, &semaphore, NULL, &queue->timeline)) {
        queue->timeline = VK_NULL_HANDLE;
        return hdvk_fail(vk, error, "the timeline of queue family %u", family);
    }
    return HD_OK;
}

/* Ends everything there is; also a device that was only half made. */
static void end_device(hdi_backend_device *device) {
    hdvk_vk *vk = &device->vk;
    hdi_inflight_end(&device->inflight);
    if (vk->device) {
        hdvk_submit_close(device);
        for (size_t i = 0; i < HDI_COUNT(device->set_layouts); i++)
            HDVK_END(vk, DestroyDescriptorSetLayout, device->set_layouts[i]);
        hdvk_memory_trim(device);
        for (uint32_t i = 0; i < HDI_QUEUE_COUNT; i++) {
            HDVK_END(vk, DestroySemaphore, device->queues[i].timeline);
            HDVK_END(vk, DestroyCommandPool, device->queues[i].pool);
        }
        if (!vk->foreign && !vk->abandoned && vk->DestroyDevice) vk->DestroyDevice(vk->device, NULL);
    }
    if (!vk->abandoned) hdvk_instance_close(vk);
    hdi_free(device->host->allocator, device, sizeof *device);
}

static const hdi_inflight_functions inflight_functions = {
    .end_memory = hdvk_memory_end, .end_kernel = hdvk_kernel_end,
    .command_buffer_bytes = sizeof(hdvk_command_buffer), .encode = hdvk_record, .end_commands = hdvk_record_end,
};

static hd_status device_open(const hdi_host *host, const hdi_found *found, const hdi_foreign *foreign,
                             hdi_backend_device **out_device, hd_error *error) {
    hdi_backend_device *device = hdi_alloc(host->allocator, sizeof *device);
    if (!device || !hdi_inflight_init(&device->inflight, &inflight_functions, device, host, "vulkan")) {
        hdi_free(host->allocator, device, sizeof *device);
        return hdvk_no_memory(error);
    }
    device->host = host;
    hdi_list_init(&device->unzeroed);
    hdi_list_init(&device->busy);
    hdi_list_init(&device->spare);
    const bool joins = foreign && foreign->device;
    hd_status status = joins ? open_foreign(device, foreign, error) : open_own(device, found, error);
    for (uint32_t i = 0; i < HDI_QUEUE_COUNT && status == HD_OK; i++)
        if (device->facts.places[i].family != HDI_NO_INDEX)
            status = open_queue(device, i, &device->facts.places[i], error);
    if (status == HD_OK) status = hdvk_memory_open(device, error);
    if (status != HD_OK) {
        end_device(device);
        return status;
    }
    *out_device = device;
    return HD_OK;
}

static void device_close(hdi_backend_device *device) {
    hd_error  error = { 0 };
    hd_status status = HD_STATUS_INTERNAL;
    const uint64_t begun = hdi_now_ns();
    for (int attempt = 0; attempt < 3 && status != HD_OK && status != HD_STATUS_DEVICE_LOST; attempt++) {
        /* A wait that fails for want of memory, say, is worth another try. */
        const uint64_t spent = hdi_now_ns() - begun, most = device->host->wait_ns;
        error = (hd_error){ 0 };
        status = hdvk_wait(device, device->inflight.submitted, spent < most ? most - spent : 0, &error);
    }
    if (status == HD_STATUS_DEVICE_LOST) hdvk_drain(device, HDI_MIN(device->host->wait_ns, UINT64_C(1000000000)));
    if (status != HD_OK && status != HD_STATUS_DEVICE_LOST) {
        hdi_log_line(device->host->log, HD_LOG_ERROR, "vulkan", "closed with work that would not end: %s", error.text);
        device->vk.abandoned = true;
    }
    end_device(device);
}

static void *native(hdi_backend_device *device) { return device->vk.device; }
static const hdi_found *found(const hdi_backend_device *device) { return &device->facts.found; }

const hdi_backend hdi_backend_vulkan = {
    .version = HDI_BACKEND_VERSION, .size = sizeof(hdi_backend), .name = "vulkan",
    .probe = hdvk_probe, .open = device_open, .close = device_close,
    .alloc = hdvk_alloc, .free = hdvk_free, .map = hdvk_map,
    .kernel_load = hdvk_kernel_load, .kernel_free = hdi_inflight_free_kernel,
    .submit = hdvk_submit, .forget = hdi_recording_forget, .poll = hdvk_poll, .wait = hdvk_wait,
    .profile = hdvk_profile, .native = native, .trim = hdvk_trim, .span = hdvk_times, .reads_slowly = hdvk_reads_slowly,
    .heaps = hdvk_heaps, .found = found, .borrows = true,
};
