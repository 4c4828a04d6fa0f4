/* A Vulkan driver that counts what is not there: memory types and heaps, queue families, extensions, devices, heaps of types. What
 * it says is bounded by what it can have said. And one with two equal cards, which are told apart by their UUIDs alone. The functions
 * stand in for a driver's, in the table that the back end calls through. */
#include "device/vulkan/vk.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static uint32_t types, heaps, heap_of_types, families, extensions, taken;

static void get_properties(VkPhysicalDevice physical, VkPhysicalDeviceProperties *out) {
    (void)physical;
    memset(out, 0, sizeof *out);
    out->apiVersion = VK_API_VERSION_1_1;
    out->deviceType = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    memset(out->deviceName, 'n', sizeof out->deviceName); /* and no ending zero */
    out->limits.timestampPeriod = -1;
}
static const char cards[2]; /* a physical device is the address of its card, or NULL */
static void get_properties2(VkPhysicalDevice physical, VkPhysicalDeviceProperties2 *out) {
    get_properties(physical, &out->properties);
    for (VkBaseOutStructure *more = out->pNext; more && physical; more = more->pNext)
        if (more->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES)
            ((VkPhysicalDeviceIDProperties *)(void *)more)->deviceUUID[VK_UUID_SIZE - 1] = 1 + (physical == (const void *)&cards[1]);
}
static void get_features(VkPhysicalDevice physical, VkPhysicalDeviceFeatures2 *out) { (void)physical, (void)out; }
static void get_memory(VkPhysicalDevice physical, VkPhysicalDeviceMemoryProperties2 *out) {
    (void)physical;
    out->memoryProperties.memoryTypeCount = types;
    out->memoryProperties.memoryHeapCount = heaps;
    for (uint32_t i = 0; i < VK_MAX_MEMORY_TYPES; i++) out->memoryProperties.memoryTypes[i] = (VkMemoryType){ 15, heap_of_types };
    for (uint32_t i = 0; i < VK_MAX_MEMORY_HEAPS; i++) out->memoryProperties.memoryHeaps[i] = (VkMemoryHeap){ 1000 + i, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT };
    for (VkBaseOutStructure *more = out->pNext; more; more = more->pNext)
        for (uint32_t i = 0; more->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT && i < VK_MAX_MEMORY_HEAPS; i++) {
            ((VkPhysicalDeviceMemoryBudgetPropertiesEXT *)(void *)more)->heapBudget[i] = 900 + i;
            ((VkPhysicalDeviceMemoryBudgetPropertiesEXT *)(void *)more)->heapUsage[i] = taken + i;
        }
}
static void get_families(VkPhysicalDevice physical, uint32_t *count, VkQueueFamilyProperties *out) {
    (void)physical;
    for (uint32_t i = 0; out && i < *count; i++) out[i] = (VkQueueFamilyProperties){ .queueFlags = VK_QUEUE_TRANSFER_BIT, .queueCount = 1 };
    if (out) out[0].queueFlags = VK_QUEUE_COMPUTE_BIT;
    *count = families;
}
static VkResult list_extensions(VkPhysicalDevice physical, const char *layer, uint32_t *count, VkExtensionProperties *out) {
    (void)physical, (void)layer;
    for (uint32_t i = 0; out && i < *count; i++) memset(out[i].extensionName, 'e', sizeof out[i].extensionName);
    *count = extensions;
    return VK_SUCCESS;
}
static VkResult list_devices(VkInstance instance, uint32_t *count, VkPhysicalDevice *out) {
    (void)instance;
    memset(out, 1, *count * sizeof *out);
    *count = UINT32_MAX;
    return VK_SUCCESS;
}

static hdvk_vk driver(void) {
    return (hdvk_vk){ .api_version = VK_API_VERSION_1_1, .GetPhysicalDeviceProperties = get_properties,
                      .GetPhysicalDeviceProperties2 = get_properties2, .GetPhysicalDeviceFeatures2 = get_features,
                      .GetPhysicalDeviceMemoryProperties2 = get_memory, .GetPhysicalDeviceQueueFamilyProperties = get_families,
                      .EnumerateDeviceExtensionProperties = list_extensions, .EnumeratePhysicalDevices = list_devices };
}

static hdvk_facts read_facts_of(const char *card) {
    union { const char *card; VkPhysicalDevice device; } physical = { .card = card };
    hdvk_vk vk = driver();
    hdvk_facts facts;
    hd_error error = { 0 };
    const hdi_host host = { .allocator = &hdi_default_allocator };
    if (hdvk_facts_read(&host, &vk, physical.device, &facts, &error)) fail_msg("%s", error.text);
    return facts;
}
static hdvk_facts read_facts(void) { return read_facts_of(NULL); }

/* A card has its id wherever it stands among the others. */
static void equal_cards_are_told_apart(void **state) {
    (void)state;
    types = heaps = 2, heap_of_types = 1, families = 1, extensions = 3;
    const hdvk_facts first = read_facts_of(&cards[0]), second = read_facts_of(&cards[1]), again = read_facts_of(&cards[0]);
    assert_string_equal(first.found.info.name, second.found.info.name);
    assert_string_not_equal(first.found.info.id, second.found.info.id);
    assert_string_equal(first.found.info.id, again.found.info.id);
}

static void counts_are_bounded(void **state) {
    (void)state;
    types = heaps = 2, heap_of_types = 1, families = 1, extensions = 3;
    assert_int_equal(read_facts().found.caps.host_bytes, 1001);
    types = heaps = families = extensions = UINT32_MAX;
    const hdvk_facts all = read_facts();
    assert_int_equal(all.memory.memoryTypeCount, VK_MAX_MEMORY_TYPES);
    assert_int_equal(all.memory.memoryHeapCount, VK_MAX_MEMORY_HEAPS);
    assert_int_equal(all.found.caps.memory_bytes, 1000 + VK_MAX_MEMORY_HEAPS - 1);
    heap_of_types = UINT32_MAX; /* types of a heap that is not there are no types */
    const hdvk_facts none = read_facts();
    assert_int_equal(none.found.caps.host_bytes, 0);
    assert_int_equal(none.memory.memoryTypes[0].propertyFlags, 0);
    heap_of_types = 1, heaps = 1;
    assert_int_equal(read_facts().found.caps.host_bytes, 0);
}

/* What the driver says of its heaps at the moment, where it has the extension for that. */
static void heaps_are_told_as_they_are(void **state) {
    (void)state;
    types = 1, heaps = 2, heap_of_types = 1, families = 1, extensions = 3;
    hd_heap told[HD_MAX_HEAPS];
    hdi_backend_device device = { .vk = driver(), .facts = read_facts() };
    assert_int_equal(hdi_backend_vulkan.heaps(&device, told), 0);
    device.facts.has |= 1u << HDVK_HAS_INDEX_BUDGET;
    for (taken = 0; taken <= 500; taken += 500) {
        assert_int_equal(hdi_backend_vulkan.heaps(&device, told), 2);
        for (uint32_t i = 0; i < 2; i++) {
            assert_int_equal(told[i].size_bytes, 1000 + i);
            assert_int_equal(told[i].used_bytes, taken + i);
            assert_int_equal(told[i].budget_bytes, 900 + i);
            assert_true(told[i].own && told[i].local);
        }
    }
}

static void devices_are_bounded(void **state) {
    (void)state;
    hdvk_vk vk = driver();
    VkPhysicalDevice physical[HDI_MAX_FOUND];
    uint32_t count;
    assert_int_equal(hdvk_physical_devices(&vk, physical, &count, NULL), HD_OK);
    assert_int_equal(count, HDI_MAX_FOUND);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(counts_are_bounded), cmocka_unit_test(devices_are_bounded), cmocka_unit_test(heaps_are_told_as_they_are), cmocka_unit_test(equal_cards_are_told_apart) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
