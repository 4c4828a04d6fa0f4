/* 08_own_vulkan.c: heddle beside Vulkan of your own: instance, device and queue are the program's, which works on the queue itself
 * before and after heddle does. There is one VkDevice in the process, and it is the program's to end. */
#include <heddle.h>
#include <stdio.h>
#include <string.h>
#include <vulkan/vulkan.h>

enum { N = 256 };

/* What an application might have: a device with one queue, a buffer that the host sees, a command buffer. */
static struct {
    VkInstance       instance;
    VkPhysicalDevice physical;
    VkDevice         device;
    uint32_t         family;
    VkQueue          queue;
    VkBuffer         buffer;
    VkDeviceMemory   memory;
    uint32_t        *words; /* the buffer's, N of them */
    VkCommandPool    pool;
} app;

static int make_device(void) {
    const VkApplicationInfo info = { .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_1 };
    VkQueueFamilyProperties families[16];
    uint32_t one = 1, count = 16;
    if (vkCreateInstance(&(VkInstanceCreateInfo){ .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &info }, NULL, &app.instance)) return 0;
    if (vkEnumeratePhysicalDevices(app.instance, &one, &app.physical) < 0 || one == 0) return 0;
    vkGetPhysicalDeviceQueueFamilyProperties(app.physical, &count, families);
    while (app.family < count && !(families[app.family].queueFlags & VK_QUEUE_COMPUTE_BIT)) app.family++;
    if (app.family == count) return 0;
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue = { .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueFamilyIndex = app.family, .queueCount = 1, .pQueuePriorities = &priority };
    const VkDeviceCreateInfo device = { .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .queueCreateInfoCount = 1, .pQueueCreateInfos = &queue };
    if (vkCreateDevice(app.physical, &device, NULL, &app.device)) return 0;
    vkGetDeviceQueue(app.device, app.family, 0, &app.queue);
    return 1;
}

static int make_buffer(void) {
    const VkBufferCreateInfo buffer = { .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = N * sizeof *app.words, .usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT };
    const VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkPhysicalDeviceMemoryProperties memory;
    VkMemoryRequirements needs;
    void *words;
    if (vkCreateBuffer(app.device, &buffer, NULL, &app.buffer)) return 0;
    vkGetBufferMemoryRequirements(app.device, app.buffer, &needs);
    vkGetPhysicalDeviceMemoryProperties(app.physical, &memory);
    uint32_t type = 0; /* Vulkan promises that there is one */
    while (!(needs.memoryTypeBits >> type & 1u) || (memory.memoryTypes[type].propertyFlags & wanted) != wanted) type++;
    if (vkAllocateMemory(app.device, &(VkMemoryAllocateInfo){ .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = needs.size, .memoryTypeIndex = type }, NULL, &app.memory)) return 0;
    if (vkBindBufferMemory(app.device, app.buffer, app.memory, 0) || vkMapMemory(app.device, app.memory, 0, VK_WHOLE_SIZE, 0, &words)) return 0;
    app.words = words;
    return !vkCreateCommandPool(app.device, &(VkCommandPoolCreateInfo){ .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, .queueFamilyIndex = app.family }, NULL, &app.pool);
}

/* Work of the application's own: the device writes `word` into the whole buffer, and the host waits for it. */
static int fill(uint32_t word) {
    VkCommandBuffer commands;
    VkFence fence;
    const VkMemoryBarrier to_host = { .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT, .dstAccessMask = VK_ACCESS_HOST_READ_BIT };
    if (vkAllocateCommandBuffers(app.device, &(VkCommandBufferAllocateInfo){ .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = app.pool, .commandBufferCount = 1 }, &commands)) return 0;
    if (vkCreateFence(app.device, &(VkFenceCreateInfo){ .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO }, NULL, &fence)) return 0;
    int ok = !vkBeginCommandBuffer(commands, &(VkCommandBufferBeginInfo){ .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO });
    vkCmdFillBuffer(commands, app.buffer, 0, VK_WHOLE_SIZE, word);
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0, NULL, 0, NULL);
    ok = ok && !vkEndCommandBuffer(commands);
    ok = ok && !vkQueueSubmit(app.queue, 1, &(VkSubmitInfo){ .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands }, fence);
    ok = ok && !vkWaitForFences(app.device, 1, &fence, VK_TRUE, UINT64_MAX);
    vkDestroyFence(app.device, fence, NULL);
    vkFreeCommandBuffers(app.device, app.pool, 1, &commands);
    for (int i = 0; i < N && ok; i++) ok = app.words[i] == word;
    return ok;
}

/* y = x w, and its softmax, on the application's device. */
static int compute(hd_context *ctx) {
    static float w[N * 64], y[64];
    float sum = 0;
    for (int i = 0; i < N * 64; i++) w[i] = (float)(i % 7) / 7;
    const hd_device_desc mine = { .vulkan_instance = app.instance, .vulkan_physical_device = app.physical, .vulkan_device = app.device, .vulkan_queue_family = app.family };
    hd_device *dev;
    hd_plan *plan;
    if (hd_device_open(ctx, &mine, &dev)) return 0;
    hd_program *p = hd_program_create(ctx);
    hd_output(p, "y", hd_softmax(p, hd_matmul(p, hd_input(p, "x", HD_F32, HD_SHAPE(1, N)), hd_input(p, "w", HD_F32, HD_SHAPE(N, 64))), 1));
    hd_status s = hd_plan_create(dev, p, NULL, &plan);
    if (!s) s = hd_plan_write(plan, "x", app.words, N * sizeof(float)); /* what the application's own work left there */
    if (!s) s = hd_plan_write(plan, "w", w, sizeof w);
    if (!s) s = hd_plan_run(plan, NULL);
    if (!s) s = hd_plan_read(plan, "y", y, sizeof y);
    for (int i = 0; i < 64; i++) sum += y[i];
    char backend[16];
    snprintf(backend, sizeof backend, "%s", hd_device_get_info(dev)->backend);
    if (!s) printf("on %s: softmax sums to %.3f\n", hd_device_get_info(dev)->name, (double)sum);
    hd_device_close(dev); /* what heddle made on the device is gone; the device stays */
    return !s && strcmp(backend, "vulkan") == 0 && sum > 0.999f && sum < 1.001f;
}

int main(void) {
    hd_context *ctx = NULL;
    const float half = 0.5f;
    uint32_t word;
    memcpy(&word, &half, sizeof word);
    int ok = make_device() && make_buffer() && fill(word);
    if (!ok) fprintf(stderr, "08_own_vulkan: no Vulkan device for the application's own work\n");
    if (ok && (hd_context_create(NULL, &ctx) || !compute(ctx))) ok = 0, fprintf(stderr, "08_own_vulkan: %s\n", hd_context_error(ctx));
    hd_context_destroy(ctx);
    ok = ok && fill(7) && fill(8);
    if (app.device) {
        vkDestroyCommandPool(app.device, app.pool, NULL);
        vkDestroyBuffer(app.device, app.buffer, NULL);
        vkFreeMemory(app.device, app.memory, NULL);
        vkDestroyDevice(app.device, NULL);
    }
    if (app.instance) vkDestroyInstance(app.instance, NULL);
    return !ok;
}
