/* load.c: opens wgpu-native at run time, so that no library of WebGPU is needed to start; and failures. */
#include "device/webgpu/wg.h"
#include <stdio.h>

static const hdi_function functions[] = {
#define HDWG_FUNCTION(name, gives, arguments, status, results) \
    { "wgpu" #name, offsetof(hdwg_wg, name), 0, true, HD_STATUS_##status, results },
#define HDWG_RELEASE(name) { "wgpu" #name "Release", offsetof(hdwg_wg, name##Release), 0, true, HD_STATUS_API, 0 },
#include "device/webgpu/functions.inc"
};
static const hdi_result results[] = {
#define ROW(name, status, text) { HDWG_ROW_##name, HD_STATUS_##status, text },
    HDWG_ROW_LIST(ROW)
#undef ROW
};
static const hdi_api api = { "webgpu", functions, HDI_COUNT(functions), results, HDI_COUNT(results) };
const hdi_function *hdwg_function_get(hdwg_function function) { return &functions[function]; }

static hdwg_fault_fn fault_now;
void hdwg_fault_set(hdwg_fault_fn fault) { fault_now = fault; }

/* Layouts and numbers of webgpu.h were not settled before. */
enum { LEAST_VERSION = 29 };

const char *hdwg_load(hdwg_wg *wg, const char **out_mend) {
    /* the second: in wgpu-py's wheel */
    static const char *const names[] = { "libwgpu_native.so", "libwgpu_native-release.so", "wgpu_native.dll", NULL };
    const void *library = hdi_library_open(names);
    *out_mend = "put libwgpu_native.so of wgpu-native 29 or newer where the loader finds it (LD_LIBRARY_PATH)";
    if (!library) return "there is no wgpu-native library";
    if (hdi_functions_load(&api, 0, hdi_library_look_up, library, wg))
        return "the wgpu-native library lacks functions that are needed";
    return wg->GetVersion() >> 24 < LEAST_VERSION ? "the wgpu-native library is older than version 29" : NULL;
}

/* ---- failures ---- */

_Thread_local hdwg_outcome hdwg_last;

bool hdwg_before(hdwg_function function) {
    const hdwg_row row = fault_now ? fault_now(function) : HDWG_ROW_FINE;
    hdwg_last.function = function;
    hdwg_last.row = row;
    hdwg_last.text[0] = 0;
    return hdwg_last.row == HDWG_ROW_FINE;
}

/* In one line. */
void hdwg_on_error(const WGPUDevice *of, uint32_t type, WGPUStringView message, void *user, void *unused) {
    const hdi_backend_device *device = user;
    (void)of;
    (void)unused;
    hdwg_last.row = type == WGPU_ERROR_OUT_OF_MEMORY ? HDWG_ROW_OUT_OF_MEMORY
                    : type == WGPU_ERROR_VALIDATION  ? HDWG_ROW_VALIDATION
                                                     : HDWG_ROW_INTERNAL;
    const int length = (int)HDI_MIN(message.length, (size_t)2000);
    snprintf(hdwg_last.text, sizeof hdwg_last.text, "%.*s", length, message.data ? message.data : "");
    for (char *at = hdwg_last.text; *at; at++)
        if (*at == '\n') *at = ' ';
    hdi_log_line(device->host->log, HD_LOG_WARNING, "webgpu", "%.*s", length, message.data ? message.data : "");
}

void hdwg_on_loss(const WGPUDevice *of, uint32_t reason, WGPUStringView message, void *user, void *unused) {
    hdi_backend_device *device = user;
    (void)of;
    (void)unused;
    if (reason == WGPU_LOST_DESTROYED || reason == WGPU_LOST_CANCELLED) return; /* it was closed */
    hdi_loss_note(&device->loss, (int64_t)reason, "as the driver says: %.*s", (int)HDI_MIN(message.length, (size_t)160),
                  message.data ? message.data : "");
}

hd_status hdwg_lost(const hdi_backend_device *device, hd_error *error) {
    return hdi_loss_tell(&device->loss, "webgpu", error);
}

hd_status hdwg_no_memory(hd_error *error, const char *what) {
    return hdi_fail_native(error, HD_STATUS_OUT_OF_HOST_MEMORY, "webgpu", 0, "no host memory for %s", what);
}

hd_status hdwg_fail(hdi_backend_device *device, hd_error *error, const char *format, ...) {
    const hdi_failed_call call = { &api, hdwg_last.function, hdwg_last.row, hdwg_last.text, &device->loss };
    va_list args;
    if (hdi_loss_known(&device->loss)) return hdwg_lost(device, error);
    va_start(args, format);
    const hd_status status = hdi_call_fail(&call, error, format, args);
    va_end(args);
    return status;
}
