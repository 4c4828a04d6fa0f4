/* facts.c: what drivers and devices are asked for: facts, caps, where a GPU sits. */
#include "device/levelzero/ze.h"
#include <stdio.h>

/* Questions about one device; one that fails spoils the rest, as a device that is known in part cannot be used. */
#define ASK(ze, name, ...)                                                                                             \
    (hdze_fault(HDZE_FN_##name) == ZE_RESULT_SUCCESS && (ze)->name(__VA_ARGS__) == ZE_RESULT_SUCCESS)

typedef struct answers {
    ze_driver_properties_t         driver;
    ze_device_properties_t         device;
    ze_device_compute_properties_t compute;
    ze_device_module_properties_t  module;
    uint64_t                       memory_bytes;
} answers;

/* The largest memory of the device, and the queue group that computes. */
static bool ask_parts(const hdze_ze *ze, hdze_facts *facts, answers *a) {
    ze_device_memory_properties_t memories[8];
    ze_command_queue_group_properties_t groups[8];
    uint32_t memory_count = HDI_COUNT(memories), group_count = HDI_COUNT(groups);
    memset(memories, 0, sizeof memories);
    memset(groups, 0, sizeof groups);
    for (uint32_t i = 0; i < HDI_COUNT(memories); i++) memories[i].stype = ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES;
    for (uint32_t i = 0; i < HDI_COUNT(groups); i++) groups[i].stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES;
    if (!ASK(ze, DeviceGetMemoryProperties, facts->device, &memory_count, memories)) return false;
    if (!ASK(ze, DeviceGetCommandQueueGroupProperties, facts->device, &group_count, groups)) return false;
    for (uint32_t i = 0; i < HDI_MIN(memory_count, (uint32_t)HDI_COUNT(memories)); i++)
        a->memory_bytes = HDI_MAX(a->memory_bytes, memories[i].totalSize);
    for (facts->compute_ordinal = 0; facts->compute_ordinal < HDI_MIN(group_count, (uint32_t)HDI_COUNT(groups));
         facts->compute_ordinal++)
        if (groups[facts->compute_ordinal].flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE) return true;
    return false;
}

static bool ask(const hdze_ze *ze, hdze_facts *facts, answers *out) {
    *out = (answers){ .driver = { .stype = ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES },
                       .device = { .stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2 },
                       .compute = { .stype = ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES },
                       .module = { .stype = ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES } };
    return ASK(ze, DriverGetProperties, facts->driver, &out->driver) &&
           ASK(ze, DeviceGetProperties, facts->device, &out->device) &&
           ASK(ze, DeviceGetComputeProperties, facts->device, &out->compute) &&
           ASK(ze, DeviceGetModuleProperties, facts->device, &out->module) && ask_parts(ze, facts, out);
}

/* Subgroups of 32 lanes where there are some, else the widest there are; kernels with them are SPIR-V of version
 * 1.3. */
static uint32_t subgroup_of(const answers *a) {
    uint32_t widest = 0;
    for (uint32_t i = 0; i < HDI_MIN(a->compute.numSubGroupSizes, (uint32_t)HDI_COUNT(a->compute.subGroupSizes)); i++)
        if (a->compute.subGroupSizes[i] <= 32) widest = HDI_MAX(widest, a->compute.subGroupSizes[i]);
    return a->module.spirvVersionSupported >= ZE_MAKE_VERSION(1, 3) ? widest : 0;
}

static void fill_caps(const hdze_facts *facts, const answers *a, hdi_caps *caps) {
    const uint64_t lanes = (uint64_t)a->device.numSlices * a->device.numSubslicesPerSlice *
                           a->device.numEUsPerSubslice * a->device.physicalEUSimdWidth;
    const uint32_t subgroup = subgroup_of(a);
    const bool halves = facts->offers & HDI_SPIRV_OFFERS_FP16;
    *caps = (hdi_caps){
        .memory_bytes = a->memory_bytes, .host_bytes = facts->shares ? a->memory_bytes : 0,
        .max_allocation_bytes = a->device.maxMemAllocSize,
        .max_binding_bytes = a->device.maxMemAllocSize, .binding_align = 64, .max_bindings = HDI_MAX_BINDINGS,
        .max_push_bytes = HDI_MAX_PUSH_WORDS * 4,
        .max_workgroup = a->compute.maxTotalGroupSize, .max_workgroup_x = a->compute.maxGroupSizeX,
        .max_groups_x = HDI_MIN(a->compute.maxGroupCountX, (uint32_t)INT32_MAX),
        .max_groups_y = HDI_MIN(a->compute.maxGroupCountY, (uint32_t)UINT16_MAX),
        .max_groups_z = HDI_MIN(a->compute.maxGroupCountZ, (uint32_t)UINT16_MAX),
        .shared_bytes = a->compute.maxSharedLocalMemory, .subgroup = subgroup,
        .subgroup_arithmetic = subgroup != 0, .subgroup_shuffle = subgroup != 0, .subgroup_control = subgroup != 0,
        .f16_storage = halves, .u8_storage = 1,
        .f16_arithmetic = halves, .i8_arithmetic = 1,
        .integer_dot = (facts->offers & HDI_SPIRV_OFFERS_INTEGER_DOT) != 0, .unified_memory = facts->shares,
        .host_visible = facts->shares,
        .timestamps = facts->ticks_a_second != 0, .dispatch_base = 1,
        .compute_units = (uint64_t)a->device.numSlices * a->device.numSubslicesPerSlice,
        .gflops = HDI_MAX(lanes * 2 * a->device.coreClockRate / 1000, UINT64_C(100)),
        .gbytes_s = facts->shares ? 50 : 400, .software = a->device.type == ZE_DEVICE_TYPE_CPU, .unproven = 1 };
    snprintf(caps->name, sizeof caps->name, "%.127s", a->device.name);
}

static void fill_info(const hdze_ze *ze, const hdze_facts *facts, const answers *a, hd_device_info *info) {
    const uint32_t version = a->driver.driverVersion;
    ze_pci_ext_properties_t pci = { .stype = ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES };
    bool integrated = a->device.flags & ZE_DEVICE_PROPERTY_FLAG_INTEGRATED;
    snprintf(info->backend, sizeof info->backend, "levelzero");
    snprintf(info->name, sizeof info->name, "%.127s", a->device.name);
    snprintf(info->driver, sizeof info->driver, "Level Zero driver %u.%u.%u", version >> 24, version >> 16 & 0xFF,
             version & 0xFFFF);
    info->kind = a->device.type == ZE_DEVICE_TYPE_CPU ? HD_DEVICE_SOFTWARE
                 : integrated                         ? HD_DEVICE_INTEGRATED_GPU
                                                      : HD_DEVICE_DISCRETE_GPU;
    info->memory_bytes = a->memory_bytes;
    if (ze->DevicePciGetPropertiesExt && ze->DevicePciGetPropertiesExt(facts->device, &pci) == ZE_RESULT_SUCCESS)
        snprintf(info->pci, sizeof info->pci, "%04x:%02x:%02x.%x", pci.address.domain & 0xFFFF, pci.address.bus & 0xFF,
                 pci.address.device & 0xFF, pci.address.function & 0xF);
}

static bool describe(const hdze_ze *ze, hdze_facts *facts, hdi_found *out_found) {
    answers a;
    if (!ask(ze, facts, &a) || (a.device.type != ZE_DEVICE_TYPE_GPU && a.device.type != ZE_DEVICE_TYPE_CPU))
        return false;
    const ze_device_module_flags_t flags = a.module.flags;
    const uint32_t bits = a.device.timestampValidBits;
    facts->offers = (flags & ZE_DEVICE_MODULE_FLAG_FP64 ? (uint32_t)HDI_SPIRV_OFFERS_FP64 : 0) |
                    (flags & ZE_DEVICE_MODULE_FLAG_FP16 ? (uint32_t)HDI_SPIRV_OFFERS_FP16 : 0) |
                    (flags & ZE_DEVICE_MODULE_FLAG_INT64_ATOMICS ? (uint32_t)HDI_SPIRV_OFFERS_INT64_ATOMICS : 0) |
                    (flags & ZE_DEVICE_MODULE_FLAG_DP4A ? (uint32_t)HDI_SPIRV_OFFERS_INTEGER_DOT : 0) |
                    (subgroup_of(&a) ? (uint32_t)HDI_SPIRV_OFFERS_SUBGROUPS : 0);
    facts->shares = a.device.flags & ZE_DEVICE_PROPERTY_FLAG_INTEGRATED;
    facts->ticks_a_second = a.device.timerResolution;
    facts->tick_mask = bits == 0 || bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    fill_caps(facts, &a, &out_found->caps);
    fill_info(ze, facts, &a, &out_found->info);
    const uint64_t uuid = hdi_hash(HDI_HASH_START, a.device.uuid.id, sizeof a.device.uuid.id);
    snprintf(facts->identity, sizeof facts->identity, "%.127s, %016llx, %08x", a.device.name, (unsigned long long)uuid,
             a.driver.driverVersion);
    snprintf(out_found->info.id, sizeof out_found->info.id, "levelzero:%04x-%04x-%08x", a.device.vendorId & 0xFFFF,
             a.device.deviceId & 0xFFFF, (unsigned)uuid);
    return true;
}

uint32_t hdze_list(const hdze_ze *ze, hdze_facts *out_facts, hdi_found *out_found, uint32_t room) {
    ze_driver_handle_t drivers[8];
    uint32_t driver_count = HDI_COUNT(drivers), count = 0;
    if (!ASK(ze, Init, 0) || !ASK(ze, DriverGet, &driver_count, drivers)) return 0;
    for (uint32_t i = 0; i < HDI_MIN(driver_count, (uint32_t)HDI_COUNT(drivers)); i++) {
        ze_device_handle_t devices[16];
        uint32_t device_count = HDI_COUNT(devices);
        if (!ASK(ze, DeviceGet, drivers[i], &device_count, devices)) continue;
        for (uint32_t k = 0; k < HDI_MIN(device_count, (uint32_t)HDI_COUNT(devices)) && count < room; k++) {
            hdi_found *found = &out_found[count];
            memset(found, 0, sizeof *found);
            out_facts[count] = (hdze_facts){ .driver = drivers[i], .device = devices[k] };
            if (!describe(ze, &out_facts[count], found)) continue;
            found->index = count++;
        }
    }
    return count;
}

void hdze_probe(const hdi_host *host, hdi_probe *out_probe) {
    (void)host;
    hdze_ze ze;
    hdze_facts facts[HDI_MAX_FOUND];
    const char *mend;
    memset(out_probe, 0, sizeof *out_probe);
    const char *reason = hdze_load(&ze, &mend);
    if (!reason) out_probe->found_count = hdze_list(&ze, facts, out_probe->found, HDI_COUNT(facts));
    if (out_probe->found_count) return;
    snprintf(out_probe->reason, sizeof out_probe->reason, "%s",
             reason ? reason : "the Level Zero loader finds no driver with a GPU");
    snprintf(out_probe->mend, sizeof out_probe->mend, "%s", mend);
}
