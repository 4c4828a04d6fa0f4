/* facts.c: what adapters are asked for: facts and caps. WebGPU tells limits, but neither how much memory there is nor
 * where a GPU sits. */
#include "device/webgpu/wg.h"
#include <stdio.h>

static bool is_there(const hdwg_wg *wg, WGPUAdapter adapter, uint32_t feature) {
    return wg->AdapterHasFeature(adapter, feature) != 0;
}

static void fill_caps(const hdwg_facts *facts, const WGPUAdapterInfo *info, hdi_caps *caps) {
    const WGPULimits *l = &facts->limits;
    const bool software = info->adapter_type == WGPU_ADAPTER_CPU;
    *caps = (hdi_caps){
        .memory_bytes = l->buffer_bytes, .max_allocation_bytes = l->buffer_bytes,
        .max_binding_bytes = HDI_MIN(l->storage_binding_bytes, UINT64_C(0xFFFFFF00)),
        .binding_align = HDI_MAX(l->storage_align, 256u),
        .max_bindings = HDI_MIN(l->storage_buffers, (uint32_t)HDI_MAX_BINDINGS),
        .max_push_bytes = HDI_MAX_PUSH_WORDS * 4, .max_workgroup = l->workgroup_invocations,
        .max_workgroup_x = l->workgroup_x, .max_groups_x = l->groups, .max_groups_y = l->groups,
        .max_groups_z = l->groups, .shared_bytes = l->workgroup_bytes, .timestamps = facts->has_timestamps,
        .dispatch_base = 1, .gflops = software ? 100 : 2000, .gbytes_s = software ? 10 : 100, .software = software,
        .unproven = 1 };
        /* known answers tell whether subnormals are kept and f32 is rounded to nearest: WGSL does not */
}

static void put_text(char *out, size_t room, WGPUStringView text) {
    snprintf(out, room, "%.*s", (int)HDI_MIN(text.length, room - 1), text.data ? text.data : "");
}

static bool describe(const hdwg_wg *wg, WGPUAdapter adapter, uint32_t number, hdwg_facts *facts, hdi_found *out_found) {
    hd_device_info *out = &out_found->info;
    WGPUAdapterInfo info;
    char driver[64];
    memset(&info, 0, sizeof info);
    memset(facts, 0, sizeof *facts);
    memset(out_found, 0, sizeof *out_found);
    if (!hdwg_before(HDWG_FN_AdapterGetLimits) || wg->AdapterGetLimits(adapter, &facts->limits) != WGPU_SUCCESS)
        return false;
    if (!hdwg_before(HDWG_FN_AdapterGetInfo) || wg->AdapterGetInfo(adapter, &info) != WGPU_SUCCESS) return false;
    facts->limits.next = NULL;
    facts->has_timestamps = is_there(wg, adapter, WGPU_FEATURE_TIMESTAMP_QUERY) &&
                            is_there(wg, adapter, WGPU_FEATURE_TIMESTAMPS_IN_ENCODERS);
    fill_caps(facts, &info, &out_found->caps);
    put_text(out->name, sizeof out->name, info.device);
    put_text(driver, sizeof driver, info.description);
    put_text(out_found->caps.name, sizeof out_found->caps.name, info.device);
    const uint32_t version = wg->GetVersion();
    snprintf(out->backend, sizeof out->backend, "webgpu");
    snprintf(out->driver, sizeof out->driver, "wgpu-native %u.%u.%u, %s", version >> 24, version >> 16 & 0xFF,
             version >> 8 & 0xFF, driver);
    snprintf(out->id, sizeof out->id, "webgpu:%04x-%04x-%u", info.vendor_id & 0xFFFF, info.device_id & 0xFFFF, number);
    out->kind = info.adapter_type == WGPU_ADAPTER_CPU          ? HD_DEVICE_SOFTWARE
                : info.adapter_type == WGPU_ADAPTER_INTEGRATED ? HD_DEVICE_INTEGRATED_GPU
                : info.adapter_type == WGPU_ADAPTER_DISCRETE   ? HD_DEVICE_DISCRETE_GPU
                                                               : HD_DEVICE_OTHER;
    out->memory_bytes = out_found->caps.memory_bytes;
    wg->AdapterInfoFreeMembers(info);
    return out_found->caps.max_bindings >= 8 && facts->limits.uniform_align <= HDWG_LAUNCH_BYTES;
}

/* Not over GL, which would begin with a display. */
WGPUInstance hdwg_instance_new(const hdwg_wg *wg) {
    const WGPUInstanceExtras extras = { .chain = { NULL, WGPU_CHAINED_INSTANCE }, .backends = WGPU_OVER_ALL };
    const WGPUInstanceDescriptor desc = { .next = &extras.chain };
    WGPUInstance instance = hdwg_before(HDWG_FN_CreateInstance) ? wg->CreateInstance(&desc) : NULL;
    hdwg_after_making(instance);
    return instance;
}

uint32_t hdwg_list(const hdwg_wg *wg, WGPUInstance instance, hdwg_facts *out_facts, WGPUAdapter *out_adapters,
                   hdi_found *out_found, uint32_t room) {
    const WGPUInstanceEnumerateAdapterOptions options = { .backends = WGPU_OVER_ALL };
    WGPUAdapter adapters[HDI_MAX_FOUND] = { NULL };
    if (!hdwg_before(HDWG_FN_InstanceEnumerateAdapters)) return 0;
    size_t there = wg->InstanceEnumerateAdapters(instance, &options, NULL);
    if (there == 0 || there > HDI_COUNT(adapters)) return 0; /* with more, which come first is not said */
    there = wg->InstanceEnumerateAdapters(instance, &options, adapters);
    uint32_t count = 0;
    for (uint32_t i = 0; i < there; i++) {
        const bool taken = count < room && describe(wg, adapters[i], count, &out_facts[count], &out_found[count]);
        if (taken && out_adapters) out_adapters[count] = adapters[i];
        else wg->AdapterRelease(adapters[i]);
        if (taken) out_found[count].index = count;
        count += taken;
    }
    return count;
}

void hdwg_probe(const hdi_host *host, hdi_probe *out_probe) {
    (void)host;
    hdwg_wg wg;
    hdwg_facts facts[HDI_MAX_FOUND];
    const char *mend;
    memset(out_probe, 0, sizeof *out_probe);
    const char *reason = hdwg_load(&wg, &mend);
    if (!reason) {
        WGPUInstance instance = hdwg_instance_new(&wg);
        if (instance) {
            out_probe->found_count = hdwg_list(&wg, instance, facts, NULL, out_probe->found, HDI_COUNT(facts));
            wg.InstanceRelease(instance);
        }
        mend = "install a driver of Vulkan for your GPU (Debian: mesa-vulkan-drivers)";
    }
    if (out_probe->found_count) return;
    snprintf(out_probe->reason, sizeof out_probe->reason, "%s",
             reason ? reason : "wgpu-native finds no adapter that heddle can use");
    snprintf(out_probe->mend, sizeof out_probe->mend, "%s", mend);
}
