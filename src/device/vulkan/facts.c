/* facts.c: reads what a physical device can do: features, properties, memory, queue families, and makes the caps of it.
 * Only what the device itself states is believed; estimates (rates) are marked so here. Creates nothing. */
#include "device/vulkan/vk.h"
#include <stdio.h>

typedef struct has_row {
    const char *extension;
    uint32_t    core;
} has_row;
static const has_row has_rows[HDVK_HAS_COUNT] = {
#define HAS_ROW(name, extension, core, enable) { extension, core },
    HDVK_HAS_LIST(HAS_ROW)
#undef HAS_ROW
};

/* Everything that the property query is asked for. */
typedef struct properties {
    VkPhysicalDeviceProperties2                          core;
    VkPhysicalDeviceSubgroupProperties                   subgroup;
    VkPhysicalDeviceMaintenance3Properties               maintenance3;
    VkPhysicalDeviceIDProperties                         id;
    VkPhysicalDeviceDriverProperties                     driver;
    VkPhysicalDeviceSubgroupSizeControlProperties        subgroup_size;
    VkPhysicalDeviceShaderIntegerDotProductProperties    dot;
    VkPhysicalDeviceMaintenance4Properties               maintenance4;
    VkPhysicalDeviceFloatControlsProperties              floats;
    VkPhysicalDevicePCIBusInfoPropertiesEXT              pci;
    VkPhysicalDeviceShaderSMBuiltinsPropertiesNV         sm;
    VkPhysicalDeviceShaderCorePropertiesAMD              cores;
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT      host_memory;
} properties;

/* Appends a struct to a chain. */
static void chain(VkBaseOutStructure **tail, void *item, VkStructureType type) {
    VkBaseOutStructure *next = item;
    next->sType = type;
    next->pNext = NULL;
    (*tail)->pNext = next;
    *tail = next;
}

void hdvk_features_link(const hdvk_facts *facts, hdvk_features *features) {
    features->core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    features->core.pNext = NULL;
    VkBaseOutStructure *tail = (VkBaseOutStructure *)(void *)&features->core;
    chain(&tail, &features->storage16, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES);
    if (HDVK_HAS(facts, STORAGE8))
        chain(&tail, &features->storage8, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES);
    if (HDVK_HAS(facts, FLOAT16_INT8))
        chain(&tail, &features->float16_int8, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES);
    if (HDVK_HAS(facts, TIMELINE))
        chain(&tail, &features->timeline, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES);
    if (HDVK_HAS(facts, MEMORY_MODEL))
        chain(&tail, &features->memory_model, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES);
    if (HDVK_HAS(facts, SUBGROUP_TYPES))
        chain(&tail, &features->subgroup_types,
              VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES);
    if (HDVK_HAS(facts, DOT))
        chain(&tail, &features->dot, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES);
    if (HDVK_HAS(facts, SUBGROUP_SIZE))
        chain(&tail, &features->subgroup_size, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES);
    if (HDVK_HAS(facts, SYNC2))
        chain(&tail, &features->sync2, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES);
    if (HDVK_HAS(facts, MAINTENANCE4))
        chain(&tail, &features->maintenance4, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES);
    if (HDVK_HAS(facts, MATRIX)) chain(&tail, &features->matrix, HDVK_MATRIX_FEATURES_TYPE);
    if (HDVK_HAS(facts, MATRIX2)) chain(&tail, &features->matrix2, HDVK_MATRIX2_FEATURES_TYPE);
    if (HDVK_HAS(facts, BF16)) chain(&tail, &features->bf16, HDVK_BF16_FEATURES_TYPE);
    if (HDVK_HAS(facts, FAULT)) chain(&tail, &features->fault, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_FEATURES_EXT);
}

/* Keeps of what the device has only what kernels or this back end use: robust access, say, would cost speed. */
static void keep_features(hdvk_features *f) {
    const VkPhysicalDeviceFeatures all = f->core.features;
    f->core.features = (VkPhysicalDeviceFeatures){ .shaderInt16 = all.shaderInt16, .shaderInt64 = all.shaderInt64 };
    f->storage16.uniformAndStorageBuffer16BitAccess = f->storage16.storagePushConstant16 =
        f->storage16.storageInputOutput16 = VK_FALSE;
    f->storage8.uniformAndStorageBuffer8BitAccess = f->storage8.storagePushConstant8 = VK_FALSE;
    f->memory_model.vulkanMemoryModelAvailabilityVisibilityChains = VK_FALSE;
    f->matrix.cooperativeMatrixRobustBufferAccess = VK_FALSE;
    f->matrix2.perElementOperations = f->matrix2.blockLoads = VK_FALSE;
    f->bf16.dotProduct = VK_FALSE;
    f->fault.deviceFaultVendorBinary = VK_FALSE;
}

static void link_properties(const hdvk_facts *facts, properties *p) {
    p->core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    VkBaseOutStructure *tail = (VkBaseOutStructure *)(void *)&p->core;
    chain(&tail, &p->subgroup, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES);
    chain(&tail, &p->maintenance3, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES);
    chain(&tail, &p->id, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES);
    if (HDVK_HAS(facts, DRIVER)) chain(&tail, &p->driver, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES);
    if (HDVK_HAS(facts, SUBGROUP_SIZE))
        chain(&tail, &p->subgroup_size, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES);
    if (HDVK_HAS(facts, DOT))
        chain(&tail, &p->dot, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES);
    if (HDVK_HAS(facts, MAINTENANCE4))
        chain(&tail, &p->maintenance4, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES);
    if (HDVK_HAS(facts, FLOAT_CONTROLS))
        chain(&tail, &p->floats, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES);
    if (HDVK_HAS(facts, PCI)) chain(&tail, &p->pci, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT);
    if (HDVK_HAS(facts, SM_COUNT))
        chain(&tail, &p->sm, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV);
    if (HDVK_HAS(facts, CORE_COUNT))
        chain(&tail, &p->cores, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD);
    if (HDVK_HAS(facts, HOST_MEMORY))
        chain(&tail, &p->host_memory, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT);
}

static hd_status read_extensions(const hdi_host *host, hdvk_vk *vk, VkPhysicalDevice physical, hdvk_facts *facts,
                                 hd_error *error) {
    uint32_t count = 0, capacity = 0;
    VkExtensionProperties *list = NULL;
    hd_status status = HD_OK;
    if (HDVK_CALL(vk, EnumerateDeviceExtensionProperties, physical, NULL, &count, NULL) < 0)
        return hdvk_fail(vk, error, "counting device extensions");
    count = HDI_MIN(count, (uint32_t)HDVK_MOST_LISTED);
    if (!hdi_grow(host->allocator, &list, &capacity, count, sizeof *list)) return hdvk_no_memory(error);
    if (HDVK_CALL(vk, EnumerateDeviceExtensionProperties, physical, NULL, &count, list) < 0)
        status = hdvk_fail(vk, error, "listing device extensions");
    count = HDI_MIN(count, capacity); /* with no room the call counts, and the list may have grown */
    const uint32_t version = HDI_MIN(facts->properties.apiVersion, vk->api_version);
    for (uint32_t i = 0; i < HDVK_HAS_COUNT && status == HD_OK; i++) {
        if (hdvk_hidden() >> i & 1u) continue;
        if (version >= has_rows[i].core) facts->has |= 1u << i;
        for (uint32_t j = 0; j < count && version < has_rows[i].core; j++)
            if (strncmp(list[j].extensionName, has_rows[i].extension, sizeof list[j].extensionName) == 0) {
                facts->has |= 1u << i;
                facts->extension |= 1u << i;
            }
    }
    hdi_free(host->allocator, list, (size_t)capacity * sizeof *list);
    return status;
}

/* The first family that computes, and queues beside it that move data: two of a family that does only that, else
 * further ones of the computing family. Where such a family has one queue only, it takes both ways. */
static void read_families(hdvk_vk *vk, VkPhysicalDevice physical, hdvk_facts *facts) {
    VkQueueFamilyProperties families[32];
    uint32_t count = HDI_COUNT(families), compute = HDI_NO_INDEX, transfer = HDI_NO_INDEX;
    vk->GetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
    count = HDI_MIN(count, (uint32_t)HDI_COUNT(families)); /* what a driver says is not relied upon */
    for (uint32_t i = 0; i < count; i++) {
        const VkQueueFlags flags = families[i].queueFlags;
        const VkQueueFlags moves = flags & (VK_QUEUE_TRANSFER_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT);
        if (!families[i].queueCount) continue;
        if ((flags & VK_QUEUE_COMPUTE_BIT) && compute == HDI_NO_INDEX) compute = i;
        if (moves == VK_QUEUE_TRANSFER_BIT && transfer == HDI_NO_INDEX) transfer = i;
    }
    const bool feigned = (hdvk_hidden() & HDVK_FEIGN_QUEUES) != 0;
    if (transfer == HDI_NO_INDEX && compute != HDI_NO_INDEX && (feigned || families[compute].queueCount > 1))
        transfer = compute;
    for (uint32_t i = 0; i < HDI_QUEUE_COUNT; i++) {
        const uint32_t family = i == HDI_QUEUE_COMPUTE ? compute : transfer,
                       before = i == HDI_QUEUE_COMPUTE ? 0 : i - (transfer != compute);
        facts->places[i] = (hdvk_queue_place){ family, 0, 0 };
        if (family == HDI_NO_INDEX) continue;
        facts->places[i].number = HDI_MIN(before, families[family].queueCount - 1);
        facts->places[i].timestamp_bits = families[family].timestampValidBits;
    }
}

static hd_status read_matrix(const hdi_host *host, hdvk_vk *vk, VkPhysicalDevice physical, hdvk_facts *facts,
                             hd_error *error) {
    uint32_t count = 0, capacity = 0;
    hdvk_matrix_properties *list = NULL;
    hd_status status = HD_OK;
    if (!facts->features.matrix.cooperativeMatrix || !vk->GetPhysicalDeviceCooperativeMatrixPropertiesKHR) return HD_OK;
    if (HDVK_CALL(vk, GetPhysicalDeviceCooperativeMatrixPropertiesKHR, physical, &count, NULL) < 0)
        return hdvk_fail(vk, error, "counting matrix shapes");
    count = HDI_MIN(count, (uint32_t)HDVK_MOST_LISTED);
    if (!hdi_grow(host->allocator, &list, &capacity, count, sizeof *list)) return hdvk_no_memory(error);
    for (uint32_t i = 0; i < count; i++) list[i].sType = HDVK_MATRIX_PROPERTIES_TYPE;
    if (HDVK_CALL(vk, GetPhysicalDeviceCooperativeMatrixPropertiesKHR, physical, &count, list) < 0)
        status = hdvk_fail(vk, error, "listing matrix shapes");
    enum { MATRIX_F16 = 0, MATRIX_F32 = 1, MATRIX_S8 = 3, MATRIX_S32 = 5, MATRIX_BF16 = 1000141000 };
    enum { SCOPE_SUBGROUP = 3 };
    const bool has_bf16 = facts->features.bf16.type && facts->features.bf16.cooperativeMatrix;
    for (uint32_t i = 0; i < HDI_MIN(count, capacity) && status == HD_OK; i++) {
        const hdvk_matrix_properties *m = &list[i];
        const bool narrow = m->NSize == 8, whole = m->KSize == 32 && m->AType == MATRIX_S8 && m->CType == MATRIX_S32;
        if (m->MSize != 16 || (m->NSize != 16 && !narrow) || m->AType != m->BType || m->CType != m->ResultType ||
            m->scope != SCOPE_SUBGROUP)
            continue;
        const bool floats = m->KSize == 16 && !narrow && m->CType == MATRIX_F32;
        if (floats && m->AType == MATRIX_F16) facts->found.caps.matrix_f16 = 1;
        if (floats && m->AType == MATRIX_BF16) facts->found.caps.matrix_bf16 = has_bf16;
        if (whole && !narrow) facts->found.caps.matrix_s8 = facts->found.caps.i8_arithmetic;
        if (whole && narrow) facts->found.caps.matrix_s8_narrow = facts->found.caps.i8_arithmetic;
    }
    facts->found.caps.matrix_reduces = facts->found.caps.matrix_f16 && facts->features.matrix2.reductions &&
                                       facts->features.matrix2.conversions;
    hdi_free(host->allocator, list, (size_t)capacity * sizeof *list);
    return status;
}

static bool divides(uint32_t granularity, uint32_t length) { return granularity > 0 && length % granularity == 0; }

/* Matrices of a whole workgroup, in the steps that matmul_tensor's tiles have. */
static hd_status read_workgroup_matrix(const hdi_host *host, hdvk_vk *vk, VkPhysicalDevice physical, hdvk_facts *facts,
                                       hd_error *error) {
    const hdvk_matrix2_features *f = &facts->features.matrix2;
    uint32_t count = 0, capacity = 0;
    hdvk_matrix2_properties *list = NULL;
    hd_status status = HD_OK;
    const bool offered =
        facts->found.caps.matrix_f16 && f->workgroupScope && f->flexibleDimensions && f->tensorAddressing;
    if (!offered || !vk->GetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV) return HD_OK;
    if (HDVK_CALL(vk, GetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV, physical, &count, NULL) < 0)
        return hdvk_fail(vk, error, "counting matrix granularities");
    count = HDI_MIN(count, (uint32_t)HDVK_MOST_LISTED);
    if (!hdi_grow(host->allocator, &list, &capacity, count, sizeof *list)) return hdvk_no_memory(error);
    for (uint32_t i = 0; i < count; i++) list[i].sType = HDVK_MATRIX2_PROPERTIES_TYPE;
    if (HDVK_CALL(vk, GetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV, physical, &count, list) < 0)
        status = hdvk_fail(vk, error, "listing matrix granularities");
    enum { MATRIX_F16 = 0, MATRIX_F32 = 1, SCOPE_WORKGROUP = 2, INVOCATIONS = 256, STEP = 64 };
    for (uint32_t i = 0; i < HDI_MIN(count, capacity) && status == HD_OK; i++) {
        const hdvk_matrix2_properties *m = &list[i];
        if (divides(m->MGranularity, STEP) && divides(m->NGranularity, STEP) && divides(m->KGranularity, STEP) &&
            m->AType == MATRIX_F16 && m->BType == MATRIX_F16 && m->CType == MATRIX_F32 && m->ResultType == MATRIX_F32 &&
            m->scope == SCOPE_WORKGROUP && m->workgroupInvocations == INVOCATIONS)
            facts->found.caps.matrix_workgroup = 1;
    }
    hdi_free(host->allocator, list, (size_t)capacity * sizeof *list);
    return status;
}

/* A window on a GPU's memory that is smaller is used up by a few programs; 256 MiB were common before it could be
 * resized. */
#define SLIVER_BYTES (UINT64_C(128) << 20)

/* No more types and heaps than the struct holds, and no type in a heap that is not there. */
static void read_memory(hdvk_vk *vk, VkPhysicalDevice physical, hdvk_facts *facts) {
    VkPhysicalDeviceMemoryProperties2 told = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2 };
    VkPhysicalDeviceMemoryProperties *memory = &facts->memory;
    vk->GetPhysicalDeviceMemoryProperties2(physical, &told);
    *memory = told.memoryProperties;
    memory->memoryTypeCount = HDI_MIN(memory->memoryTypeCount, (uint32_t)VK_MAX_MEMORY_TYPES);
    memory->memoryHeapCount = HDI_MIN(memory->memoryHeapCount, (uint32_t)VK_MAX_MEMORY_HEAPS);
    for (uint32_t i = 0; i < memory->memoryTypeCount; i++)
        if (memory->memoryTypes[i].heapIndex >= memory->memoryHeapCount) memory->memoryTypes[i] = (VkMemoryType){ 0 };
}

static void fill_memory(const hdvk_facts *facts, hdi_caps *caps) {
    const VkPhysicalDeviceMemoryProperties *memory = &facts->memory;
    for (uint32_t i = 0; i < memory->memoryHeapCount; i++)
        if (memory->memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
            caps->memory_bytes = HDI_MAX(caps->memory_bytes, memory->memoryHeaps[i].size);
    const VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const VkMemoryPropertyFlags both = host | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    const VkPhysicalDeviceType type = facts->properties.deviceType;
    for (uint32_t i = 0; i < memory->memoryTypeCount; i++) {
        const VkMemoryType *row = &memory->memoryTypes[i];
        if ((row->propertyFlags & host) == host)
            caps->host_bytes = HDI_MAX(caps->host_bytes, memory->memoryHeaps[row->heapIndex].size);
        if ((row->propertyFlags & both) == both && !(hdvk_hidden() & HDVK_HIDE_UNIFIED) &&
            (type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU || type == VK_PHYSICAL_DEVICE_TYPE_CPU))
            caps->unified_memory = 1;
        if ((row->propertyFlags & both) == both && memory->memoryHeaps[row->heapIndex].size >= SLIVER_BYTES)
            caps->host_visible = 1;
    }
    caps->host_visible |= caps->unified_memory;
}

static void fill_limits(const hdvk_facts *facts, const properties *p, hdi_caps *caps) {
    const VkPhysicalDeviceLimits *limits = &facts->properties.limits;
    caps->max_allocation_bytes = p->maintenance3.maxMemoryAllocationSize;
    if (HDVK_HAS(facts, MAINTENANCE4))
        caps->max_allocation_bytes = HDI_MIN(caps->max_allocation_bytes, p->maintenance4.maxBufferSize);
    caps->max_binding_bytes = limits->maxStorageBufferRange;
    caps->binding_align = HDI_MAX(limits->minStorageBufferOffsetAlignment, 4u);
    caps->max_bindings = HDI_MIN(limits->maxPerStageDescriptorStorageBuffers, limits->maxDescriptorSetStorageBuffers);
    caps->max_bindings = HDI_MIN(caps->max_bindings, (uint64_t)HDI_MAX_BINDINGS);
    caps->max_push_bytes = HDI_MIN((uint64_t)limits->maxPushConstantsSize, HDI_MAX_PUSH_WORDS * 4u);
    caps->max_workgroup = limits->maxComputeWorkGroupInvocations;
    caps->max_workgroup_x = limits->maxComputeWorkGroupSize[0];
    caps->max_groups_x = limits->maxComputeWorkGroupCount[0];
    caps->max_groups_y = limits->maxComputeWorkGroupCount[1];
    caps->max_groups_z = limits->maxComputeWorkGroupCount[2];
    caps->shared_bytes = limits->maxComputeSharedMemorySize;
    caps->timestamps = facts->places[HDI_QUEUE_COMPUTE].timestamp_bits != 0 && limits->timestampPeriod > 0;
    caps->dispatch_base = 1; /* part of Vulkan 1.1 */
}

/* Rates are estimates by kind of device, refined by the number of units; the cutting of long work rests on them, and
 * what is assumed where nothing was measured. */
static void fill_units(const hdvk_facts *facts, const properties *p, hdi_caps *caps) {
    if (HDVK_HAS(facts, SM_COUNT)) caps->compute_units = p->sm.shaderSMCount;
    if (HDVK_HAS(facts, CORE_COUNT))
        caps->compute_units = (uint64_t)p->cores.shaderEngineCount * p->cores.shaderArraysPerEngineCount *
                              p->cores.computeUnitsPerShaderArray;
    switch (facts->properties.deviceType) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:   caps->gflops = 5000; caps->gbytes_s = 250; break;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: caps->gflops = 500;  caps->gbytes_s = 40;  break;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:            caps->gflops = 10;   caps->gbytes_s = 8;   break;
    default:                                     caps->gflops = 300;  caps->gbytes_s = 30;  break;
    }
    if (caps->compute_units) {
        caps->gflops = caps->compute_units * 150; /* 64 to 128 lanes a unit at 1 to 2 GHz */
        caps->gbytes_s = HDI_MAX(caps->gbytes_s, caps->compute_units * 10);
    }
}

/* NVIDIA's vkCmdCopyBuffer reaches a quarter of what a kernel does, which is the faster one from here on
 * (docs/performance). */
#define SLOW_COPY_BYTES (UINT64_C(2) << 20)

static void fill_caps(hdvk_facts *facts, const properties *p) {
    hdi_caps *caps = &facts->found.caps;
    const hdvk_features *f = &facts->features;
    snprintf(caps->name, sizeof caps->name, "%.127s", facts->properties.deviceName);
    fill_memory(facts, caps);
    fill_limits(facts, p, caps);
    fill_units(facts, p, caps);
    const bool computes = (p->subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
    caps->subgroup = p->subgroup.subgroupSize;
    caps->subgroup_arithmetic = computes && (p->subgroup.supportedOperations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT) != 0;
    caps->subgroup_shuffle = computes && (p->subgroup.supportedOperations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) != 0;
    caps->subgroup_control = f->subgroup_size.subgroupSizeControl &&
                             (p->subgroup_size.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
    facts->subgroup_least = caps->subgroup_control ? p->subgroup_size.minSubgroupSize : p->subgroup.subgroupSize;
    facts->subgroup_most = caps->subgroup_control ? p->subgroup_size.maxSubgroupSize : p->subgroup.subgroupSize;
    caps->f16_storage = f->storage16.storageBuffer16BitAccess;
    caps->u8_storage = f->storage8.storageBuffer8BitAccess;
    caps->f16_arithmetic = f->float16_int8.shaderFloat16;
    caps->i8_arithmetic = f->float16_int8.shaderInt8;
    caps->integer_dot = f->dot.shaderIntegerDotProduct && p->dot.integerDotProduct4x8BitPackedSignedAccelerated;
    caps->memory_model = f->memory_model.vulkanMemoryModel && f->memory_model.vulkanMemoryModelDeviceScope;
    caps->software = facts->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    if (HDVK_HAS(facts, DRIVER) && p->driver.driverID == VK_DRIVER_ID_NVIDIA_PROPRIETARY)
        caps->copy_kernel_bytes = SLOW_COPY_BYTES;
}

void hdvk_one_queue(hdvk_facts *facts) {
    for (uint32_t i = HDI_QUEUE_UPLOAD; i < HDI_QUEUE_COUNT; i++) facts->places[i].family = HDI_NO_INDEX;
}

static void fill_info(hdvk_facts *facts, const properties *p) {
    hd_device_info *info = &facts->found.info;
    const VkPhysicalDeviceProperties *core = &facts->properties;
    /* The whole UUID goes into the id's last part: some drivers keep its first bytes the same for all devices. */
    const uint64_t hash = hdi_hash(HDI_HASH_START, p->id.deviceUUID, VK_UUID_SIZE);
    snprintf(info->id, sizeof info->id, "vulkan:%04x-%04x-%08x", core->vendorID, core->deviceID,
             (uint32_t)(hash ^ hash >> 32));
    snprintf(info->name, sizeof info->name, "%.127s", core->deviceName);
    snprintf(info->backend, sizeof info->backend, "vulkan");
    if (HDVK_HAS(facts, DRIVER))
        snprintf(info->driver, sizeof info->driver, "%.60s %.60s", p->driver.driverName, p->driver.driverInfo);
    else snprintf(info->driver, sizeof info->driver, "version 0x%08x", core->driverVersion);
    if (HDVK_HAS(facts, PCI))
        snprintf(info->pci, sizeof info->pci, "%04x:%02x:%02x.%x", p->pci.pciDomain & 0xffffu, p->pci.pciBus & 0xffu,
                 p->pci.pciDevice & 0xffu, p->pci.pciFunction & 0xfu);
    switch (core->deviceType) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:   info->kind = HD_DEVICE_DISCRETE_GPU; break;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: info->kind = HD_DEVICE_INTEGRATED_GPU; break;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:            info->kind = HD_DEVICE_SOFTWARE; break;
    default:                                     info->kind = HD_DEVICE_OTHER; break;
    }
    info->memory_bytes = facts->found.caps.memory_bytes;
    const bool timelines = HDVK_HAS(facts, TIMELINE) && facts->features.timeline.timelineSemaphore;
    if (!timelines) hdvk_one_queue(facts); /* queues need timelines to follow each other */
    info->queues = facts->places[HDI_QUEUE_UPLOAD].family == HDI_NO_INDEX ? 1 : HDI_QUEUE_COUNT;
}

/* Of a caller's device nobody can ask what was switched on: no feature is, and there is the one queue. */
static hd_status join(hdvk_vk *vk, const hdi_foreign *foreign, hdvk_facts *facts, hd_error *error) {
    VkQueueFamilyProperties families[32];
    uint32_t count = HDI_COUNT(families);
    vk->GetPhysicalDeviceQueueFamilyProperties(foreign->physical_device, &count, families);
    if (foreign->queue_family >= HDI_MIN(count, (uint32_t)HDI_COUNT(families)) ||
        foreign->queue_index >= families[foreign->queue_family].queueCount ||
        !(families[foreign->queue_family].queueFlags & VK_QUEUE_COMPUTE_BIT))
        return hdi_fail_native(error, HD_STATUS_INVALID_ARGUMENT, "vulkan", 0,
                               "queue %u of family %u is none of %.100s that computes", foreign->queue_index,
                               foreign->queue_family, facts->properties.deviceName);
    facts->features = (hdvk_features){ 0 };
    facts->places[HDI_QUEUE_COMPUTE] = (hdvk_queue_place){ foreign->queue_family, foreign->queue_index,
                                                           families[foreign->queue_family].timestampValidBits };
    return HD_OK;
}

static hd_status read_all(const hdi_host *host, hdvk_vk *vk, VkPhysicalDevice physical, const hdi_foreign *foreign,
                          hdvk_facts *facts, hd_error *error) {
    *facts = (hdvk_facts){ 0 };
    /* A device of version 1.0 knows none of the later questions. */
    vk->GetPhysicalDeviceProperties(physical, &facts->properties);
    if (facts->properties.apiVersion < VK_API_VERSION_1_1)
        return hdi_fail_native(error, HD_STATUS_UNSUPPORTED_VERSION, "vulkan", 0,
                               "%.100s has Vulkan 1.0; 1.1 is needed", facts->properties.deviceName);
    hd_status status = read_extensions(host, vk, physical, facts, error);
    if (status != HD_OK) return status;
    properties p = { 0 };
    link_properties(facts, &p);
    vk->GetPhysicalDeviceProperties2(physical, &p.core);
    hdvk_features_link(facts, &facts->features);
    vk->GetPhysicalDeviceFeatures2(physical, &facts->features.core);
    keep_features(&facts->features);
    read_memory(vk, physical, facts);
    read_families(vk, physical, facts);
    if (facts->places[HDI_QUEUE_COMPUTE].family == HDI_NO_INDEX)
        return hdi_fail_native(error, HD_STATUS_UNSUPPORTED, "vulkan", 0, "%.100s has no queue that computes",
                               facts->properties.deviceName);
    if (foreign && (status = join(vk, foreign, facts, error)) != HD_OK) return status;
    /* NVIDIA's driver keeps them when told to, and flushes them when not, though it offers neither (seen with
     * 580.159). */
    facts->host_align = HDVK_HAS(facts, HOST_MEMORY) ? p.host_memory.minImportedHostPointerAlignment : 0;
    facts->keeps_subnormals = HDVK_HAS(facts, FLOAT_CONTROLS) &&
                              (p.floats.shaderDenormPreserveFloat32 || facts->properties.vendorID == 0x10DE);
    fill_caps(facts, &p);
    /* Seen so with NVIDIA's 580.159 and Mesa's llvmpipe; others may take subnormals for 0. */
    facts->exact_halves = facts->properties.vendorID == 0x10DE || facts->found.caps.software;
    fill_info(facts, &p);
    status = read_matrix(host, vk, physical, facts, error);
    return status ? status : read_workgroup_matrix(host, vk, physical, facts, error);
}

hd_status hdvk_facts_read(const hdi_host *host, hdvk_vk *vk, VkPhysicalDevice physical, hdvk_facts *out_facts,
                          hd_error *error) {
    return read_all(host, vk, physical, NULL, out_facts, error);
}

hd_status hdvk_facts_join(const hdi_host *host, hdvk_vk *vk, const hdi_foreign *foreign, hdvk_facts *out_facts,
                          hd_error *error) {
    const hd_status status = read_all(host, vk, foreign->physical_device, foreign, out_facts, error);
    out_facts->has = out_facts->extension = 0;
    out_facts->keeps_subnormals = false;
    return status;
}
