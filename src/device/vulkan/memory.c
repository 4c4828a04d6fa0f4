/* memory.c: buffers. Small ones share a block, large ones have their own; memory of a submission under way is given
 * back when it is done. All host-visible memory used here is coherent, so that no call has to flush. Memory that the
 * host does not see is cleared on the device, ahead of the next submission, which is the first that could look at
 * it. */
#include "device/vulkan/vk.h"

#define SMALL_BYTES  (UINT64_C(1) << 20) /* up to here memory comes out of a block */
#define BLOCK_BYTES  (UINT64_C(16) << 20)
#define MEMORY_ALIGN UINT64_C(256)       /* the strictest that Vulkan allows a device to ask for */

#define LOCAL   VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
#define VISIBLE (VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)
#define CACHED  VK_MEMORY_PROPERTY_HOST_CACHED_BIT

/* How well a type of memory fits; 0: not at all. Storage is the device's own. Small uploads are blocks of parameters
 * that kernels read again and again: near the device, where the host can write there. Large ones are staging. What the
 * host reads must be cached, or it reads at a snail's pace. */
static uint32_t score(VkMemoryPropertyFlags flags, hd_buffer_use use, bool small, bool unified) {
    /* protected, lazy, uncached: special rules */
    if (flags & ~(VkMemoryPropertyFlags)(LOCAL | VISIBLE | CACHED)) return 0;
    const bool local = (flags & LOCAL) != 0, visible = (flags & VISIBLE) == VISIBLE, cached = (flags & CACHED) != 0;
    switch (use) {
    case HD_BUFFER_UPLOAD:   return visible ? 1u + (local == small ? 2u : 0u) + (cached ? 0u : 1u) : 0;
    case HD_BUFFER_READBACK: return visible ? 1u + (cached ? 2u : 0u) + (local ? 0u : 1u) : 0;
    case HD_BUFFER_STORAGE:  break;
    }
    if (unified) return (local ? 2u : 1u) + (visible ? 2u : 0u) + (visible && cached ? 1u : 0u);
    return local ? (visible ? 2u : 3u) : 1u;
}

/* The best type for the use that is not in `tried`, or HDI_NO_INDEX. */
static uint32_t best_type(const hdi_backend_device *device, hd_buffer_use use, bool small, uint32_t tried) {
    const VkPhysicalDeviceMemoryProperties *memory = &device->facts.memory;
    uint32_t best = HDI_NO_INDEX, best_score = 0;
    bool local_there = false;
    for (uint32_t i = 0; i < memory->memoryTypeCount; i++) {
        const VkMemoryPropertyFlags flags = memory->memoryTypes[i].propertyFlags;
        const uint32_t points = device->memory_types >> i & 1u ? score(flags, use, small, device->unified) : 0;
        local_there = local_there || (points && (flags & LOCAL));
        if (points > best_score && !(tried >> i & 1u)) {
            best = i;
            best_score = points;
        }
    }
    /* Storage never slips out of the device's own memory unseen. */
    if (best != HDI_NO_INDEX && use == HD_BUFFER_STORAGE && local_there &&
        !(memory->memoryTypes[best].propertyFlags & LOCAL))
        return HDI_NO_INDEX;
    return best;
}

/* `next`: more that the driver is told, or NULL. */
static hd_status create_buffer(hdi_backend_device *device, uint64_t bytes, const void *next, VkBuffer *out_buffer,
                               hd_error *error) {
    hdvk_vk *vk = &device->vk;
    uint32_t families[HDI_QUEUE_COUNT], count = 0;
    for (uint32_t i = 0; i < HDI_QUEUE_COUNT; i++) {
        const uint32_t family = device->facts.places[i].family;
        bool known = family == HDI_NO_INDEX;
        for (uint32_t k = 0; k < count; k++) known = known || families[k] == family;
        if (!known) families[count++] = family;
    }
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .pNext = next, .size = bytes,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
        VK_BUFFER_USAGE_TRANSFER_DST_BIT,
        .sharingMode = count > 1 ? VK_SHARING_MODE_CONCURRENT : VK_SHARING_MODE_EXCLUSIVE,
        .queueFamilyIndexCount = count > 1 ? count : 0, .pQueueFamilyIndices = families,
    };
    if (HDVK_CALL(vk, CreateBuffer, vk->device, &info, NULL, out_buffer) == VK_SUCCESS) return HD_OK;
    *out_buffer = VK_NULL_HANDLE;
    return hdvk_fail(vk, error, "a buffer of %llu bytes", (unsigned long long)bytes);
}

hd_status hdvk_memory_open(hdi_backend_device *device, hd_error *error) {
    hdvk_vk *vk = &device->vk;
    VkBuffer buffer;
    VkMemoryRequirements needs;
    device->unified = device->facts.found.caps.unified_memory != 0;
    hd_status status = create_buffer(device, MEMORY_ALIGN, NULL, &buffer, error);
    if (status != HD_OK) return status;
    /* the types are the same for all buffers of one usage */
    vk->GetBufferMemoryRequirements(vk->device, buffer, &needs);
    device->memory_types = needs.memoryTypeBits;
    HDVK_END(vk, DestroyBuffer, buffer);
    return HD_OK;
}

/* ---- blocks ---- */

static void end_block(hdi_backend_device *device, hdvk_block *block) {
    hdvk_vk *vk = &device->vk;
    for (hdvk_block **at = &device->blocks; *at; at = &(*at)->next)
        if (*at == block) {
            *at = block->next;
            break;
        }
    HDVK_END(vk, DestroyBuffer, block->buffer);
    HDVK_END(vk, FreeMemory, block->memory); /* unmaps it too */
    hdi_free(device->host->allocator, block->free, (size_t)block->free_capacity * sizeof *block->free);
    hdi_free(device->host->allocator, block, sizeof *block);
}

/* What is used of each heap, and how much may be. */
static void ask_budget(hdi_backend_device *device, VkPhysicalDeviceMemoryBudgetPropertiesEXT *out_budget) {
    *out_budget = (VkPhysicalDeviceMemoryBudgetPropertiesEXT){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT
    };
    VkPhysicalDeviceMemoryProperties2 memory = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
                                                 .pNext = out_budget };
    device->vk.GetPhysicalDeviceMemoryProperties2(device->vk.physical, &memory);
}

_Static_assert(VK_MAX_MEMORY_HEAPS <= HD_MAX_HEAPS, "room for every heap");

uint32_t hdvk_heaps(hdi_backend_device *device, hd_heap out_heaps[HD_MAX_HEAPS]) {
    const VkPhysicalDeviceMemoryProperties *memory = &device->facts.memory;
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget;
    if (!HDVK_HAS(&device->facts, BUDGET)) return 0;
    ask_budget(device, &budget);
    for (uint32_t heap = 0; heap < memory->memoryHeapCount; heap++)
        out_heaps[heap] = (hd_heap){
            .size_bytes = memory->memoryHeaps[heap].size, .used_bytes = budget.heapUsage[heap],
            .budget_bytes = budget.heapBudget[heap], .own = true,
            .local = (memory->memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0,
        };
    return memory->memoryHeapCount;
}

/* Refuses early what the driver says does not fit: an allocation over the budget may succeed and then slow down
 * everything on the machine. */
static hd_status check_budget(hdi_backend_device *device, uint32_t type, uint64_t bytes, hd_error *error) {
    if (!HDVK_HAS(&device->facts, BUDGET) || device->unified) return HD_OK;
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget;
    ask_budget(device, &budget);
    const uint32_t heap = device->facts.memory.memoryTypes[type].heapIndex;
    const uint64_t used = budget.heapUsage[heap], allowed = budget.heapBudget[heap];
    if (!(device->facts.memory.memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) || allowed == 0) return HD_OK;
    if (used <= allowed && bytes <= allowed - used) return HD_OK;
    return hdi_fail_native(error, HD_STATUS_OUT_OF_DEVICE_MEMORY, "vulkan", 0,
                           "%llu bytes wanted, and %llu of the heap's budget of %llu are in use",
                           (unsigned long long)bytes, (unsigned long long)used, (unsigned long long)allowed);
}

static hd_status fill_block(hdi_backend_device *device, hdvk_block *block, bool map, hd_error *error) {
    hdvk_vk *vk = &device->vk;
    VkMemoryRequirements needs;
    hd_status status = create_buffer(device, block->bytes, NULL, &block->buffer, error);
    if (status == HD_OK) status = check_budget(device, block->type, block->bytes, error);
    if (status != HD_OK) return status;
    vk->GetBufferMemoryRequirements(vk->device, block->buffer, &needs);
    const VkMemoryAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = needs.size, .memoryTypeIndex = block->type,
    };
    if (HDVK_CALL(vk, AllocateMemory, vk->device, &info, NULL, &block->memory)) {
        block->memory = VK_NULL_HANDLE;
        return hdvk_fail(vk, error, "%llu bytes of memory type %u", (unsigned long long)needs.size, block->type);
    }
    if (HDVK_CALL(vk, BindBufferMemory, vk->device, block->buffer, block->memory, 0))
        return hdvk_fail(vk, error, "binding %llu bytes", (unsigned long long)needs.size);
    void *mapped = NULL;
    if (map && HDVK_CALL(vk, MapMemory, vk->device, block->memory, 0, VK_WHOLE_SIZE, 0, &mapped))
        return hdvk_fail(vk, error, "mapping %llu bytes", (unsigned long long)needs.size);
    block->mapped = mapped;
    return HD_OK;
}

static hd_status new_block(hdi_backend_device *device, uint64_t bytes, uint32_t type, bool map, bool dedicated,
                           hdvk_block **out_block, hd_error *error) {
    hdvk_block *block = hdi_alloc(device->host->allocator, sizeof *block);
    if (!block) return hdvk_no_memory(error);
    block->bytes = bytes;
    block->type = type;
    block->dedicated = dedicated;
    block->next = device->blocks;
    device->blocks = block;
    hd_status status = HD_OK;
    if (!dedicated && !hdi_grow(device->host->allocator, &block->free, &block->free_capacity, 2, sizeof *block->free))
        status = hdvk_no_memory(error);
    if (status == HD_OK) status = fill_block(device, block, map, error);
    if (status != HD_OK) {
        end_block(device, block);
        return status;
    }
    if (!dedicated) block->free[block->free_count++] = (hdvk_span){ 0, bytes };
    *out_block = block;
    return HD_OK;
}

/* Takes `bytes` out of the first free span that has them. Room for the span's later return is made now, so that freeing
 * cannot fail: n pieces in use leave at most n + 1 free spans. */
static bool take_span(hdi_backend_device *device, hdvk_block *block, uint64_t bytes, uint64_t *out_offset) {
    for (uint32_t i = 0; i < block->free_count; i++) {
        hdvk_span *span = &block->free[i];
        if (span->bytes < bytes) continue;
        if (!hdi_grow(device->host->allocator, &block->free, &block->free_capacity, (size_t)block->live + 2,
                      sizeof *block->free))
            return false;
        span = &block->free[i];
        *out_offset = span->offset;
        span->offset += bytes;
        span->bytes -= bytes;
        if (span->bytes == 0) memmove(span, span + 1, (--block->free_count - i) * sizeof *span);
        return true;
    }
    return false;
}

/* Gives a span back and joins it with its neighbours. */
static void give_span(hdvk_block *block, uint64_t offset, uint64_t bytes) {
    uint32_t low = 0, high = block->free_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (block->free[middle].offset < offset) low = middle + 1;
        else high = middle;
    }
    hdvk_span *at = block->free + low;
    const bool joins_before = low > 0 && at[-1].offset + at[-1].bytes == offset;
    const bool joins_after = low < block->free_count && offset + bytes == at->offset;
    if (joins_before && joins_after) {
        at[-1].bytes += bytes + at->bytes;
        memmove(at, at + 1, (--block->free_count - low) * sizeof *at);
    } else if (joins_before) {
        at[-1].bytes += bytes;
    } else if (joins_after) {
        at->offset = offset;
        at->bytes += bytes;
    } else {
        memmove(at + 1, at, (block->free_count++ - low) * sizeof *at);
        *at = (hdvk_span){ offset, bytes };
    }
}

/* ---- memories ---- */

static hd_status place_in(hdi_backend_device *device, hdi_memory *memory, uint32_t type, bool map, bool small,
                          hd_error *error) {
    if (small) {
        for (hdvk_block *block = device->blocks; block; block = block->next) {
            if (block->dedicated || block->type != type || (block->mapped != NULL) != map) continue;
            if (take_span(device, block, memory->bytes, &memory->offset)) {
                memory->block = block;
                return HD_OK;
            }
        }
    }
    const uint64_t heap_bytes = device->facts.memory.memoryHeaps[device->facts.memory.memoryTypes[type].heapIndex].size;
    const uint64_t block_bytes = HDI_MAX(HDI_MIN(BLOCK_BYTES, heap_bytes / 16 & ~(MEMORY_ALIGN - 1)), memory->bytes);
    hdvk_block *block = NULL;
    hd_status status = new_block(device, small ? block_bytes : memory->bytes, type, map, !small, &block, error);
    if (status != HD_OK) return status;
    memory->block = block;
    /* a new block has the room and the list's room */
    if (small) take_span(device, block, memory->bytes, &memory->offset);
    return HD_OK;
}

/* Tries the fitting types of memory, best first, for as long as it is only the device's memory that lacks. */
static hd_status place(hdi_backend_device *device, hdi_memory *memory, hd_buffer_use use, hd_error *error) {
    const bool small = memory->bytes <= SMALL_BYTES;
    hd_error why = { 0 };
    uint32_t tried = 0;
    for (;;) {
        const uint32_t type = best_type(device, use, small, tried);
        if (type == HDI_NO_INDEX) break;
        const bool visible = (device->facts.memory.memoryTypes[type].propertyFlags & VISIBLE) == VISIBLE;
        const bool map = visible && (use != HD_BUFFER_STORAGE || device->unified);
        const hd_status status = place_in(device, memory, type, map, small, &why);
        if (status == HD_OK) return HD_OK;
        if (status != HD_STATUS_OUT_OF_DEVICE_MEMORY) break;
        tried |= 1u << type;
    }
    if (why.status == HD_OK)
        return hdi_fail_native(error, HD_STATUS_MEMORY_TYPE_NOT_FOUND, "vulkan", 0, "no type of memory fits use %d",
                               (int)use);
    return hdi_fail_native(error, why.status, "vulkan", why.native_code, "%s", why.text);
}

/* ---- the caller's own memory: it is mapped already, and not cleared ---- */

static hd_status cannot_borrow(hdi_backend_device *device, hd_error *error) {
    return hdi_fail_native(error, HD_STATUS_UNSUPPORTED, "vulkan", 0,
                           "%.100s cannot use this memory of the host's in place; write the bytes into a buffer",
                           device->facts.found.info.id);
}

/* A block over whole pages of the host. */
static hd_status fill_borrowed(hdi_backend_device *device, hdvk_block *block, void *pages, hd_error *error) {
    const VkExternalMemoryHandleTypeFlagBits host = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
    hdvk_vk *vk = &device->vk;
    const VkPhysicalDeviceMemoryProperties *memory = &device->facts.memory;
    const VkExternalMemoryBufferCreateInfo external = { .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
                                                        .handleTypes = host };
    VkMemoryHostPointerPropertiesEXT pointer = { .sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT };
    VkMemoryRequirements needs;
    if (HDVK_CALL(vk, GetMemoryHostPointerPropertiesEXT, vk->device, host, pages, &pointer))
        return cannot_borrow(device, error);
    const hd_status status = create_buffer(device, block->bytes, &external, &block->buffer, error);
    if (status != HD_OK) return status;
    vk->GetBufferMemoryRequirements(vk->device, block->buffer, &needs);
    block->type = HDI_NO_INDEX;
    for (uint32_t i = memory->memoryTypeCount; i-- > 0;)
        if ((pointer.memoryTypeBits & needs.memoryTypeBits) >> i & 1u &&
            (memory->memoryTypes[i].propertyFlags & VISIBLE) == VISIBLE)
            block->type = i;
    if (block->type == HDI_NO_INDEX || needs.size > block->bytes) return cannot_borrow(device, error);
    const VkImportMemoryHostPointerInfoEXT import = { .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
                                                      .handleType = host, .pHostPointer = pages };
    const VkMemoryAllocateInfo info = { .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &import,
                                        .allocationSize = block->bytes, .memoryTypeIndex = block->type };
    if (HDVK_CALL(vk, AllocateMemory, vk->device, &info, NULL, &block->memory)) {
        block->memory = VK_NULL_HANDLE;
        return cannot_borrow(device, error); /* pages that it may not write, such as a file's */
    }
    if (HDVK_CALL(vk, BindBufferMemory, vk->device, block->buffer, block->memory, 0))
        return hdvk_fail(vk, error, "binding %llu bytes", (unsigned long long)needs.size);
    block->mapped = pages;
    return HD_OK;
}

/* The pages that the memory lies in are the block, and where it begins in them is its offset. */
static hd_status borrow(hdi_backend_device *device, const hdi_alloc_desc *desc, hdi_memory *memory, hd_error *error) {
    const uint64_t page = device->facts.host_align, align = device->facts.found.caps.binding_align;
    if (page == 0 || !device->vk.GetMemoryHostPointerPropertiesEXT) return cannot_borrow(device, error);
    const uint64_t within = (uintptr_t)desc->host % page;
    if (align && within % align != 0) return cannot_borrow(device, error);
    hdvk_block *block = hdi_alloc(device->host->allocator, sizeof *block);
    if (!block) return hdvk_no_memory(error);
    block->dedicated = true;
    block->bytes = hdi_divide_up(within + desc->bytes, page) * page;
    block->next = device->blocks;
    device->blocks = block;
    const hd_status status = fill_borrowed(device, block, (uint8_t *)desc->host - within, error);
    if (status != HD_OK) {
        end_block(device, block);
        return status;
    }
    memory->block = block;
    memory->offset = within;
    memory->bytes = desc->bytes;
    return HD_OK;
}

static void name_buffer(hdi_backend_device *device, const hdi_memory *memory, const char *label) {
    hdvk_vk *vk = &device->vk;
    if (!label || !memory->block->dedicated || !vk->debug_utils || !vk->SetDebugUtilsObjectNameEXT) return;
    union { VkBuffer buffer; uint64_t number; } handle = { .number = 0 };
    handle.buffer = memory->block->buffer;
    const VkDebugUtilsObjectNameInfoEXT info = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT, .objectType = VK_OBJECT_TYPE_BUFFER,
        .objectHandle = handle.number, .pObjectName = label,
    };
    if (HDVK_CALL(vk, SetDebugUtilsObjectNameEXT, vk->device, &info))
        hdi_log_line(vk->log, HD_LOG_DEBUG, "vulkan", "the driver's tools will not know the name of %s", label);
}

hd_status hdvk_alloc(hdi_backend_device *device, const hdi_alloc_desc *desc, hdi_memory **out_memory, hd_error *error) {
    const hd_allocator *allocator = device->host->allocator;
    uint64_t bytes;
    if (hdi_loss_known(&device->vk.loss)) return hdvk_lost(&device->vk, error);
    if (!hdi_pad_u64(desc->bytes, MEMORY_ALIGN, &bytes) || bytes > device->facts.found.caps.max_allocation_bytes)
        return hdi_fail_native(error, HD_STATUS_LIMIT, "vulkan", 0,
                               "%llu bytes wanted, one allocation has at most %llu", (unsigned long long)desc->bytes,
                               (unsigned long long)device->facts.found.caps.max_allocation_bytes);
    hdi_memory *memory = hdi_alloc(allocator, sizeof *memory);
    if (!memory) return hdvk_no_memory(error);
    memory->bytes = bytes;
    hdi_list_init(&memory->unzeroed);
    hd_status status = desc->host ? borrow(device, desc, memory, error) : place(device, memory, desc->use, error);
    if (status != HD_OK) {
        hdi_free(allocator, memory, sizeof *memory);
        return status;
    }
    memory->block->live++;
    name_buffer(device, memory, desc->label);
    if (!memory->block->mapped) hdi_list_add(&device->unzeroed, &memory->unzeroed);
    else if (!desc->host) memset(memory->block->mapped + memory->offset, 0, (size_t)bytes);
    return hdi_inflight_take_memory(&device->inflight, HD_OK, memory, out_memory);
}

/* Of empty blocks one of each kind is kept: the next small memory will want it. */
static bool has_empty_twin(const hdi_backend_device *device, const hdvk_block *block) {
    for (const hdvk_block *other = device->blocks; other; other = other->next)
        if (other != block && !other->dedicated && !other->live && other->type == block->type &&
            !other->mapped == !block->mapped)
            return true;
    return false;
}

void hdvk_memory_end(hdi_backend_device *device, hdi_used *used) {
    hdi_memory *memory = HDI_OBJECT(used, hdi_memory, used);
    hdvk_block *block = memory->block;
    block->live--;
    if (!block->dedicated) give_span(block, memory->offset, memory->bytes);
    if (block->dedicated || (!block->live && has_empty_twin(device, block))) end_block(device, block);
    hdi_free(device->host->allocator, memory, sizeof *memory);
}

void hdvk_free(hdi_backend_device *device, hdi_memory *memory) {
    if (memory) hdi_list_remove(&memory->unzeroed); /* nobody will look at it */
    hdi_inflight_free_memory(device, memory);
}

void *hdvk_map(hdi_backend_device *device, hdi_memory *memory) {
    (void)device;
    return memory->block->mapped ? memory->block->mapped + memory->offset : NULL;
}

bool hdvk_reads_slowly(const hdi_backend_device *device, const hdi_memory *memory) {
    return !(device->facts.memory.memoryTypes[memory->block->type].propertyFlags & CACHED);
}

void hdvk_memory_trim(hdi_backend_device *device) {
    for (hdvk_block *block = device->blocks, *next; block; block = next) {
        next = block->next;
        if (!block->live) end_block(device, block);
    }
}
