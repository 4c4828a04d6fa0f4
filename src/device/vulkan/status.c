/* status.c: what a VkResult means: its status, its name and a sentence. A lost device stays lost: the first loss is
 * described once, with the driver's own account of it where VK_EXT_device_fault is there. */
#include "device/vulkan/vk.h"
#include <stdio.h>

typedef struct result_row {
    VkResult    result;
    hd_status   status;
    const char *name, *text;
} result_row;

_Thread_local hdvk_outcome hdvk_last;

static const result_row rows[] = {
#define RESULT_ROW(code, status, text) { VK_##code, HD_STATUS_##status, "VK_" #code, text },
    HDVK_RESULT_LIST(RESULT_ROW)
#undef RESULT_ROW
};

VkResult hdvk_result_of(hdvk_result_row row) { return rows[row].result; }

static const result_row *find(VkResult result) {
    static const result_row other = { VK_ERROR_UNKNOWN, HD_STATUS_API, "a VkResult", "not expected here" };
    for (size_t i = 0; i < HDI_COUNT(rows); i++)
        if (rows[i].result == result) return &rows[i];
    return &other;
}

/* The driver's own account of what happened, where it gives one. Memory for its lists is not taken: the first entries
 * say enough. */
static void ask_driver(hdvk_vk *vk, char *out, size_t room) {
    out[0] = 0;
    if (!vk->device_fault) return;
    VkDeviceFaultAddressInfoEXT address = { 0 };
    VkDeviceFaultVendorInfoEXT  vendor = { 0 };
    VkDeviceFaultCountsEXT counts = { .sType = VK_STRUCTURE_TYPE_DEVICE_FAULT_COUNTS_EXT,
                                      .addressInfoCount = 1,
                                      .vendorInfoCount = 1 };
    VkDeviceFaultInfoEXT info = { .sType = VK_STRUCTURE_TYPE_DEVICE_FAULT_INFO_EXT,
                                  .pAddressInfos = &address,
                                  .pVendorInfos = &vendor };
    VkResult result = HDVK_CALL(vk, GetDeviceFaultInfoEXT, vk->device, &counts, &info);
    if (result < 0) return; /* VK_INCOMPLETE: there is more, these are the first */
    snprintf(out, room, "; the driver says: %.80s, address 0x%llx, %.60s", info.description,
             (unsigned long long)address.reportedAddress, vendor.description);
}

hd_status hdvk_fail(hdvk_vk *vk, hd_error *error, const char *format, ...) {
    const VkResult result = hdvk_last.result;
    const hdvk_function function = hdvk_last.function;
    char doing[160];
    va_list args;
    va_start(args, format);
    vsnprintf(doing, sizeof doing, format, args);
    va_end(args);
    if (result == VK_ERROR_DEVICE_LOST && !hdi_loss_known(&vk->loss)) {
        char account[192];
        ask_driver(vk, account, sizeof account);
        if (hdi_loss_note(&vk->loss, result, "in %s, %.96s%s", hdvk_function_get(function)->name, doing, account))
            hdi_log_line(vk->log, HD_LOG_ERROR, "vulkan", "the device is lost %s", vk->loss.text);
    }
    if (result == VK_ERROR_DEVICE_LOST && vk->device) return hdvk_lost(vk, error);
    const result_row *row = find(result);
    const hdi_function *facts = hdvk_function_get(function);
    const hd_status status = row->status == HD_STATUS_API ? facts->status : row->status;
    return hdi_fail_native(error, status, "vulkan", result, "%s gave %s (%d, %s): %s", facts->name, row->name,
                           (int)result, row->text, doing);
}

hd_status hdvk_lost(hdvk_vk *vk, hd_error *error) { return hdi_loss_tell(&vk->loss, "vulkan", error); }

hd_status hdvk_no_memory(hd_error *error) {
    return hdi_fail_native(error, HD_STATUS_OUT_OF_HOST_MEMORY, "vulkan", 0,
                           "no host memory for the Vulkan back end's own lists");
}
