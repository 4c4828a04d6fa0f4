/* instance.c: makes and ends a VkInstance, with the validation layer and its messages where they are wanted. Names and
 * labels for the driver's tools are on wherever VK_EXT_debug_utils is there. */
#include "device/vulkan/vk.h"
#include <stdatomic.h>

#define VALIDATION_LAYER "VK_LAYER_KHRONOS_validation"

static atomic_uint_fast64_t message_count;

uint64_t hdvk_validation_messages(void) { return atomic_load(&message_count); }

static VKAPI_ATTR VkBool32 VKAPI_CALL receive_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                      VkDebugUtilsMessageTypeFlagsEXT types,
                                                      const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
    const hdi_log *log = user;
    const bool bad = severity >= VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT;
    if (bad && (types & VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT)) atomic_fetch_add(&message_count, 1);
    const hd_log_level level = severity >= VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT ? HD_LOG_ERROR
                             : bad ? HD_LOG_WARNING : HD_LOG_DEBUG;
    hdi_log_line(log, level, "vulkan", "%s", data && data->pMessage ? data->pMessage : "a message without text");
    return VK_FALSE;
}

/* Extensions of the instance itself (layer NULL) or of a layer. */
typedef struct extension_list {
    VkExtensionProperties *items;
    uint32_t count, capacity;
} extension_list;

static bool list_has(const extension_list *list, const char *name) {
    for (uint32_t i = 0; i < list->count; i++)
        if (strncmp(list->items[i].extensionName, name, sizeof list->items[i].extensionName) == 0) return true;
    return false;
}

static void list_free(const hdi_host *host, extension_list *list) {
    hdi_free(host->allocator, list->items, (size_t)list->capacity * sizeof *list->items);
    *list = (extension_list){ 0 };
}

static hd_status list_read(const hdi_host *host, hdvk_vk *vk, const char *layer, extension_list *out_list,
                           hd_error *error) {
    uint32_t count = 0;
    if (HDVK_CALL(vk, EnumerateInstanceExtensionProperties, layer, &count, NULL) < 0)
        return hdvk_fail(vk, error, "counting instance extensions");
    count = HDI_MIN(count, (uint32_t)HDVK_MOST_LISTED);
    if (!hdi_grow(host->allocator, &out_list->items, &out_list->capacity, count, sizeof *out_list->items))
        return hdvk_no_memory(error);
    if (HDVK_CALL(vk, EnumerateInstanceExtensionProperties, layer, &count, out_list->items) < 0)
        return hdvk_fail(vk, error, "listing instance extensions");
    /* with no room the call counts, and the list may have grown */
    out_list->count = HDI_MIN(count, out_list->capacity);
    return HD_OK;
}

static hd_status find_layer(const hdi_host *host, hdvk_vk *vk, bool *out_found, hd_error *error) {
    uint32_t count = 0, capacity = 0;
    VkLayerProperties *layers = NULL;
    hd_status status = HD_OK;
    *out_found = false;
    if (HDVK_CALL(vk, EnumerateInstanceLayerProperties, &count, NULL) < 0)
        return hdvk_fail(vk, error, "counting layers");
    count = HDI_MIN(count, (uint32_t)HDVK_MOST_LISTED);
    if (!hdi_grow(host->allocator, &layers, &capacity, count, sizeof *layers)) return hdvk_no_memory(error);
    if (HDVK_CALL(vk, EnumerateInstanceLayerProperties, &count, layers) < 0)
        status = hdvk_fail(vk, error, "listing layers");
    for (uint32_t i = 0; i < HDI_MIN(count, capacity) && status == HD_OK; i++)
        if (strncmp(layers[i].layerName, VALIDATION_LAYER, sizeof layers[i].layerName) == 0) *out_found = true;
    hdi_free(host->allocator, layers, (size_t)capacity * sizeof *layers);
    return status;
}

/* Which parts the instance is made with. */
typedef struct instance_parts {
    const char *extensions[4];
    uint32_t    extension_count;
    bool        layer, validation_features, portability;
} instance_parts;

static void add_extension(instance_parts *parts, const char *name) {
    parts->extensions[parts->extension_count++] = name;
}

static hd_status choose_parts(const hdi_host *host, hdvk_vk *vk, instance_parts *out_parts, hd_error *error) {
    extension_list own = { 0 }, layers = { 0 };
    hd_status status = list_read(host, vk, NULL, &own, error);
    if (status == HD_OK && host->validation) {
        status = find_layer(host, vk, &out_parts->layer, error);
        if (status == HD_OK && out_parts->layer) status = list_read(host, vk, VALIDATION_LAYER, &layers, error);
        if (status == HD_OK && !out_parts->layer)
            hdi_log_line(host->log, HD_LOG_WARNING, "vulkan", "validation was asked for and %s is not installed",
                         VALIDATION_LAYER);
    }
    if (status == HD_OK) {
        vk->debug_utils = list_has(&own, "VK_EXT_debug_utils") || list_has(&layers, "VK_EXT_debug_utils");
        if (vk->debug_utils) add_extension(out_parts, "VK_EXT_debug_utils");
        out_parts->validation_features = list_has(&layers, "VK_EXT_validation_features");
        if (out_parts->validation_features) add_extension(out_parts, "VK_EXT_validation_features");
        out_parts->portability = list_has(&own, "VK_KHR_portability_enumeration");
        if (out_parts->portability) add_extension(out_parts, "VK_KHR_portability_enumeration");
    }
    list_free(host, &own);
    list_free(host, &layers);
    return status;
}

static VkDebugUtilsMessengerCreateInfoEXT messenger_info(const hdi_host *host) {
    union { const hdi_log *log; void *user; } pass = { .log = host->log }; /* read only; the API has no const here */
    return (VkDebugUtilsMessengerCreateInfoEXT){
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity =
            VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
        .pfnUserCallback = receive_message,
        .pUserData = pass.user,
    };
}

static hd_status create(const hdi_host *host, hdvk_vk *vk, const instance_parts *parts, hd_error *error) {
    static const char *const layer_names[] = { VALIDATION_LAYER };
    static const VkValidationFeatureEnableEXT enabled[] = {
        VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
    };
    const VkValidationFeaturesEXT features = {
        .sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
        .enabledValidationFeatureCount = HDI_COUNT(enabled), .pEnabledValidationFeatures = enabled,
    };
    const VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .pApplicationName = "heddle", .pEngineName = "heddle",
        .apiVersion = vk->api_version,
    };
    const VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pNext = parts->layer && parts->validation_features ? &features : NULL,
        .flags = parts->portability ? VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR : 0,
        .pApplicationInfo = &application,
        .enabledLayerCount = parts->layer ? 1 : 0, .ppEnabledLayerNames = layer_names,
        .enabledExtensionCount = parts->extension_count, .ppEnabledExtensionNames = parts->extensions,
    };
    if (HDVK_CALL(vk, CreateInstance, &info, NULL, &vk->instance)) {
        vk->instance = NULL;
        return hdvk_fail(vk, error, "starting the Vulkan driver");
    }
    const char *missing = hdvk_load_level(vk, HDVK_INSTANCE);
    if (missing)
        return hdi_fail_native(error, HD_STATUS_UNSUPPORTED_VERSION, "vulkan", 0, "the loader has no %s", missing);
    if (!parts->layer || !vk->debug_utils || !vk->CreateDebugUtilsMessengerEXT) return HD_OK;
    const VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info(host);
    if (HDVK_CALL(vk, CreateDebugUtilsMessengerEXT, vk->instance, &messenger, NULL, &vk->messenger)) {
        vk->messenger = VK_NULL_HANDLE;
        return hdvk_fail(vk, error, "listening to the validation layer");
    }
    return HD_OK;
}

static hd_status open_loader(const hdi_host *host, hdvk_vk *vk, hd_error *error) {
    if (!hdvk_load_library(vk))
        return hdi_fail_native(error, HD_STATUS_RUNTIME_NOT_FOUND, "vulkan", 0, "libvulkan.so.1 not found");
    if (hdvk_load_level(vk, HDVK_GLOBAL))
        return hdi_fail_native(error, HD_STATUS_UNSUPPORTED_VERSION, "vulkan", 0,
                               "the Vulkan loader is of version 1.0; 1.1 is needed");
    uint32_t version = 0;
    if (HDVK_CALL(vk, EnumerateInstanceVersion, &version))
        return hdvk_fail(vk, error, "asking the loader for its version");
    if (version < VK_API_VERSION_1_1)
        return hdi_fail_native(error, HD_STATUS_UNSUPPORTED_VERSION, "vulkan", 0,
                               "the Vulkan loader is of version %u.%u; 1.1 is needed", VK_API_VERSION_MAJOR(version),
                               VK_API_VERSION_MINOR(version));
    vk->api_version = HDI_MIN(version, VK_API_VERSION_1_3);
    instance_parts parts = { 0 };
    hd_status status = choose_parts(host, vk, &parts, error);
    return status == HD_OK ? create(host, vk, &parts, error) : status;
}

hd_status hdvk_instance_open(const hdi_host *host, hdvk_vk *vk, hd_error *error) {
    vk->log = host->log;
    const uint32_t libraries = hdvk_library_count();
    const hd_status status = open_loader(host, vk, error);
    hdvk_library_keep(libraries); /* the drivers come with the first question to the loader, and go when it pleases */
    return status;
}

void hdvk_instance_close(hdvk_vk *vk) {
    if (!vk->foreign && vk->messenger) vk->DestroyDebugUtilsMessengerEXT(vk->instance, vk->messenger, NULL);
    if (!vk->foreign && vk->instance && vk->DestroyInstance) vk->DestroyInstance(vk->instance, NULL);
    vk->messenger = VK_NULL_HANDLE;
    vk->instance = NULL;
    vk->library = NULL;
}
