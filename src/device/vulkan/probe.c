/* probe.c: looks which Vulkan devices there are; everything it makes is gone when it returns. Finding nothing is no
 * error: it has a reason and a mend. */
#include "device/vulkan/vk.h"
#include <stdio.h>

hd_status hdvk_physical_devices(hdvk_vk *vk, VkPhysicalDevice out_physical[HDI_MAX_FOUND], uint32_t *out_count,
                                hd_error *error) {
    uint32_t count = HDI_MAX_FOUND, kept = 0;
    memset(out_physical, 0, HDI_MAX_FOUND * sizeof *out_physical);
    /* VK_INCOMPLETE: more devices than we list; the first ones will do. */
    if (HDVK_CALL(vk, EnumeratePhysicalDevices, vk->instance, &count, out_physical) < 0)
        return hdvk_fail(vk, error, "listing the devices");
    for (uint32_t i = 0; i < HDI_MIN(count, (uint32_t)HDI_MAX_FOUND); i++)
        if (out_physical[i]) out_physical[kept++] = out_physical[i];
    *out_count = kept;
    return HD_OK;
}

static const char *mend_of(hd_status status) {
    switch (status) {
    case HD_STATUS_RUNTIME_NOT_FOUND:   return "apt install libvulkan1 mesa-vulkan-drivers, or the GPU vendor's driver";
    case HD_STATUS_UNSUPPORTED_VERSION: return "update libvulkan1 and the GPU's driver";
    case HD_STATUS_NO_DEVICE:           return
        "apt install mesa-vulkan-drivers or the GPU vendor's driver; may this user open /dev/dri?";
    case HD_STATUS_OUT_OF_HOST_MEMORY:
    case HD_STATUS_OUT_OF_DEVICE_MEMORY: return "free memory";
    default: return "apt install mesa-vulkan-drivers or the GPU vendor's driver; see VK_LOADER_DEBUG=all";
    }
}

static bool id_taken(const hdi_probe *probe, const char *id) {
    for (uint32_t i = 0; i < probe->found_count; i++)
        if (strcmp(probe->found[i].info.id, id) == 0) return true;
    return false;
}

static hd_status look(const hdi_host *host, hdvk_vk *vk, hdi_probe *probe, hd_error *error) {
    VkPhysicalDevice physical[HDI_MAX_FOUND];
    uint32_t count = 0;
    hd_status status = hdvk_instance_open(host, vk, error);
    if (status == HD_OK) status = hdvk_physical_devices(vk, physical, &count, error);
    if (status != HD_OK) return status;
    for (uint32_t i = 0; i < count; i++) {
        hdvk_facts facts;
        hd_error   why = { 0 };
        if (hdvk_facts_read(host, vk, physical[i], &facts, &why) != HD_OK) {
            hdi_log_line(host->log, HD_LOG_INFO, "vulkan", "left out: %s", why.text);
            hdi_fail_native(error, why.status, "vulkan", why.native_code, "%s", why.text);
            continue;
        }
        if (id_taken(probe, facts.found.info.id)) continue; /* the same device through a second driver file */
        facts.found.index = i;
        probe->found[probe->found_count++] = facts.found;
    }
    if (probe->found_count) return HD_OK;
    return hdi_fail(error, HD_STATUS_NO_DEVICE, "the Vulkan loader knows no device");
}

void hdvk_probe(const hdi_host *host, hdi_probe *out_probe) {
    hdvk_vk  vk = { 0 };
    hd_error error = { 0 };
    *out_probe = (hdi_probe){ 0 };
    if (look(host, &vk, out_probe, &error) != HD_OK) {
        snprintf(out_probe->reason, sizeof out_probe->reason, "%.191s", error.text);
        snprintf(out_probe->mend, sizeof out_probe->mend, "%s", mend_of(error.status));
    }
    hdvk_instance_close(&vk);
}
