/* facts.c: what devices there are and what they can do. Only what the driver states is believed; rates are what clocks
 * and widths allow at most. Creates nothing. */
#define _GNU_SOURCE
#include "device/cuda/cu.h"
#include "os/os.h"
#include <stdio.h>

/* Asks for all attributes; a device that does not know them all is not described. */
static bool read_values(hdcu_api *api, hdcu_facts *facts) {
    static const int numbers[][2] = {
#define ATTRIBUTE_ROW(name, cuda, hip) { cuda, hip },
        HDCU_ATTRIBUTE_LIST(ATTRIBUTE_ROW)
#undef ATTRIBUTE_ROW
    };
    bool fine = true;
    for (size_t i = 0; i < HDI_COUNT(numbers) && fine; i++)
        fine = HDCU_CALL(api, DeviceGetAttribute, &facts->values[i], numbers[i][api->flavour->is_hip], facts->device);
    facts->arch = facts->values[HDCU_MAJOR] * 10 + facts->values[HDCU_MINOR];
    return fine;
}

static uint64_t value(const hdcu_facts *facts, hdcu_attribute attribute) {
    return (uint64_t)HDI_MAX(facts->values[attribute], 0);
}

static void fill_caps(const hdcu_facts *facts, uint64_t memory, hdi_caps *caps) {
    enum { LANES_A_UNIT = 128 };
    const uint64_t host = hdi_os_memory_bytes();
    *caps = (hdi_caps){
        .memory_bytes = memory, .host_bytes = host, .max_allocation_bytes = memory, .max_binding_bytes = memory,
            .binding_align = 64,
        .max_bindings = HDI_MAX_BINDINGS, .max_push_bytes = HDI_MAX_PUSH_WORDS * 4,
        .max_workgroup = value(facts, HDCU_MOST_THREADS), .max_workgroup_x = value(facts, HDCU_MOST_BLOCK_X),
        .max_groups_x = value(facts, HDCU_MOST_GRID_X), .max_groups_y = value(facts, HDCU_MOST_GRID_Y),
        .max_groups_z = value(facts, HDCU_MOST_GRID_Z), .shared_bytes = value(facts, HDCU_SHARED_BYTES),
        .subgroup = value(facts, HDCU_WARP), .subgroup_arithmetic = 1, .subgroup_shuffle = 1,
        .f16_storage = 1, .u8_storage = 1, .f16_arithmetic = 1, .i8_arithmetic = 1, .memory_model = 1, .timestamps = 1,
        .dispatch_base = 1, .host_visible = facts->values[HDCU_INTEGRATED] != 0,
        .compute_units = value(facts, HDCU_UNITS) };
    /* Kilohertz; a lane adds and multiplies at once, memory moves twice a clock. */
    caps->gflops =
        HDI_MAX(caps->compute_units * LANES_A_UNIT * 2 * value(facts, HDCU_CLOCK_KHZ) / 1000000, UINT64_C(100));
    caps->gbytes_s =
        HDI_MAX(2 * value(facts, HDCU_MEMORY_KHZ) * value(facts, HDCU_MEMORY_BITS) / 8 / 1000000, UINT64_C(10));
}

static void fill_driver(hdcu_api *api, char *out, size_t room) {
    int version = 0, major = 0, minor = 0;
    const hdcu_flavour *flavour = api->flavour;
    if (!HDCU_CALL(api, DriverGetVersion, &version)) version = 0;
    const bool compiles = api->compiles && HDCU_CALL(api, CompilerVersion, &major, &minor);
    const int used = flavour->is_hip ? snprintf(out, room, "HIP %d.%d, ", version / 10000000, version / 100000 % 100)
                                     : snprintf(out, room, "CUDA %d.%d, ", version / 1000, version % 1000 / 10);
    const size_t at = HDI_MIN((size_t)HDI_MAX(used, 0), room);
    if (compiles) snprintf(out + at, room - at, "%s %d.%d", flavour->compiler_name, major, minor);
    else snprintf(out + at, room - at, "no %s: kernels from the cache only", flavour->compiler_name);
}

bool hdcu_describe(hdcu_api *api, int ordinal, hdcu_facts *out_facts, hdi_found *out_found) {
    hdcu_facts *facts = out_facts;
    hd_device_info *info = &out_found->info;
    size_t memory = 0;
    hdcu_uuid uuid = { { 0 } };
    *facts = (hdcu_facts){ 0 };
    *out_found = (hdi_found){ .index = (uint32_t)ordinal };
    if (!HDCU_CALL(api, DeviceGet, &facts->device, ordinal) ||
        !HDCU_CALL(api, DeviceTotalMem, &memory, facts->device) ||
        !HDCU_CALL(api, DeviceGetName, info->name, sizeof info->name, facts->device) ||
        !HDCU_CALL(api, DeviceGetUuid, &uuid, facts->device))
        return false;
    if (!read_values(api, facts) || facts->values[HDCU_MODE] == HDCU_MODE_PROHIBITED) return false;
    fill_caps(facts, memory, &out_found->caps);
    if (!api->flavour->refine(api, facts, &out_found->caps)) return false;
    const uint64_t hash = hdi_hash(HDI_HASH_START, uuid.bytes, sizeof uuid.bytes); /* as Vulkan's ids end */
    info->name[sizeof info->name - 1] = 0;
    snprintf(info->id, sizeof info->id, "%s:%08x", api->flavour->backend, (uint32_t)(hash ^ hash >> 32));
    snprintf(info->backend, sizeof info->backend, "%s", api->flavour->backend);
    snprintf(info->pci, sizeof info->pci, "%04x:%02x:%02x.0", facts->values[HDCU_PCI_DOMAIN] & 0xffff,
             facts->values[HDCU_PCI_BUS] & 0xff, facts->values[HDCU_PCI_DEVICE] & 0xff);
    fill_driver(api, info->driver, sizeof info->driver);
    info->kind = facts->values[HDCU_INTEGRATED] ? HD_DEVICE_INTEGRATED_GPU : HD_DEVICE_DISCRETE_GPU;
    info->memory_bytes = memory;
    info->queues = HDI_QUEUE_COUNT;
    snprintf(out_found->caps.name, sizeof out_found->caps.name, "%s", info->name);
    return true;
}

void hdcu_probe(const hdcu_flavour *flavour, hdi_probe *out_probe) {
    hdcu_api api;
    hdcu_facts facts;
    hd_error error = { 0 };
    const char *mend;
    int count = 0;
    memset(out_probe, 0, sizeof *out_probe);
    const char *reason = hdcu_load(flavour, &api, &mend);
    if (!reason && (!HDCU_CALL(&api, Init, 0) || !HDCU_CALL(&api, DeviceGetCount, &count))) {
        hdcu_fail(&api, &error, "looking for devices");
        reason = error.text;
        mend = flavour->device_mend;
    }
    if (count > 0) hdcu_load_compiler(&api);
    for (int i = 0; i < count && out_probe->found_count < HDI_MAX_FOUND; i++)
        out_probe->found_count += hdcu_describe(&api, i, &facts, &out_probe->found[out_probe->found_count]);
    if (out_probe->found_count) return;
    snprintf(out_probe->reason, sizeof out_probe->reason, "%.191s",
             reason ? reason : "the driver names no device that can be used");
    snprintf(out_probe->mend, sizeof out_probe->mend, "%s", reason ? mend : flavour->device_mend);
}
