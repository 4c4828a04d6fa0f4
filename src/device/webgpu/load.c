/* load.c: opens wgpu-native at run time, so that no library of WebGPU is needed to start; and failures. */
#define _GNU_SOURCE
#include "device/webgpu/wg.h"
#include <dlfcn.h>
#include <stdio.h>

static const hdwg_function_facts functions[] = {
#define HDWG_FUNCTION(name, gives, arguments, status, results) { "wgpu" #name, HD_STATUS_##status, results, offsetof(hdwg_wg, name) },
#define HDWG_RELEASE(name)                                     { "wgpu" #name "Release", HD_STATUS_API, 0, offsetof(hdwg_wg, name##Release) },
#include "device/webgpu/functions.inc"
};
const hdwg_function_facts *hdwg_function_get(hdwg_function function) { return &functions[function]; }

static hdwg_fault_fn fault_now;
void hdwg_fault_set(hdwg_fault_fn fault) { fault_now = fault; }

/* Layouts and numbers of webgpu.h were not settled before. */
enum { LEAST_VERSION = 29 };

const char *hdwg_load(hdwg_wg *wg, const char **out_mend) {
    static const char *const names[] = { "libwgpu_native.so", "libwgpu_native-release.so" }; /* the second in the wheel of wgpu-py */
    void *library = NULL;
    *out_mend = "put libwgpu_native.so of wgpu-native 29 or newer where the loader finds it (LD_LIBRARY_PATH)";
    for (size_t i = 0; i < HDI_COUNT(names) && !library; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) return "there is no wgpu-native library";
    for (size_t i = 0; i < HDI_COUNT(functions); i++) {
        void *symbol = dlsym(library, functions[i].name);
        memcpy((char *)wg + functions[i].offset, &symbol, sizeof symbol);
        if (!symbol) return "the wgpu-native library lacks functions that are needed";
    }
    return wg->GetVersion() >> 24 < LEAST_VERSION ? "the wgpu-native library is older than version 29" : NULL;
}

/* ---- failures ---- */

static const struct { hd_status status; const char *text; } rows[] = {
#define ROW(name, status, text) { HD_STATUS_##status, text },
    HDWG_ROW_LIST(ROW)
#undef ROW
};

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
    hdwg_last.row = type == WGPU_ERROR_OUT_OF_MEMORY ? HDWG_ROW_OUT_OF_MEMORY : type == WGPU_ERROR_VALIDATION ? HDWG_ROW_VALIDATION : HDWG_ROW_INTERNAL;
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
    hdi_loss_note(&device->loss, (int64_t)reason, "as the driver says: %.*s", (int)HDI_MIN(message.length, (size_t)160), message.data ? message.data : "");
}

hd_status hdwg_lost(const hdi_backend_device *device, hd_error *error) { return hdi_loss_tell(&device->loss, "webgpu", error); }

hd_status hdwg_no_memory(hd_error *error, const char *what) {
    return hdi_fail_native(error, HD_STATUS_OUT_OF_HOST_MEMORY, "webgpu", 0, "no host memory for %s", what);
}

hd_status hdwg_fail(hdi_backend_device *device, hd_error *error, const char *format, ...) {
    const hdwg_function_facts *facts = &functions[hdwg_last.function];
    hd_status status = rows[hdwg_last.row].status;
    char what[128];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (status == HD_STATUS_DEVICE_LOST) hdi_loss_note(&device->loss, (int64_t)hdwg_last.row, "in %s, %s", facts->name, what);
    if (hdi_loss_known(&device->loss)) return hdwg_lost(device, error);
    return hdi_fail_native(error, status == HD_STATUS_API ? facts->status : status, "webgpu", (int64_t)hdwg_last.row, "%s: %s: %s%s%.300s", what, facts->name,
                           rows[hdwg_last.row].text, hdwg_last.text[0] ? ": " : "", hdwg_last.text);
}
