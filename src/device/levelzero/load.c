/* load.c: opens the Level Zero loader at run time, so that neither an SDK nor a driver is needed to start; and failures. */
#define _GNU_SOURCE
#include "device/levelzero/ze.h"
#include <dlfcn.h>
#include <stdio.h>

static const hdze_function_facts functions[] = {
#define HDZE_FUNCTION(need, name, status, results) { "ze" #name, need, HD_STATUS_##status, results, offsetof(hdze_ze, name) },
#include "device/levelzero/functions.inc"
};
const hdze_function_facts *hdze_function_get(hdze_function function) { return &functions[function]; }

static hdze_fault_fn fault_now;
void hdze_fault_set(hdze_fault_fn fault) { fault_now = fault; }
ze_result_t hdze_fault(hdze_function function) { return fault_now ? fault_now(function) : ZE_RESULT_SUCCESS; }

const char *hdze_load(hdze_ze *ze, const char **out_mend) {
    static const char *const names[] = { "libze_loader.so.1", "libze_loader.so" };
    void *library = NULL;
    *out_mend = "install the Level Zero loader (Debian: libze1) and Intel's driver (libze-intel-gpu1, or intel-level-zero-gpu)";
    for (size_t i = 0; i < HDI_COUNT(names) && !library; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) return "there is no Level Zero loader";
    for (size_t i = 0; i < HDI_COUNT(functions); i++) {
        void *symbol = dlsym(library, functions[i].name);
        memcpy((char *)ze + functions[i].offset, &symbol, sizeof symbol);
        if (!symbol && functions[i].required) return "the Level Zero loader is older than version 1.0";
    }
    return NULL;
}

/* ---- failures ---- */

static const struct { ze_result_t code; hd_status status; const char *text; } rows[] = {
#define RESULT_ROW(code, status, text) { ZE_RESULT_ERROR_##code, HD_STATUS_##status, text },
    HDZE_RESULT_LIST(RESULT_ROW)
#undef RESULT_ROW
};
ze_result_t hdze_result_of(hdze_result_row row) { return rows[row].code; }

_Thread_local hdze_outcome hdze_last;

hd_status hdze_lost(const hdi_backend_device *device, hd_error *error) { return hdi_loss_tell(&device->loss, "levelzero", error); }

hd_status hdze_no_memory(hd_error *error, const char *what) {
    return hdi_fail_native(error, HD_STATUS_OUT_OF_HOST_MEMORY, "levelzero", 0, "no host memory for %s", what);
}

hd_status hdze_fail(hdi_backend_device *device, hd_error *error, const char *format, ...) {
    const hdze_function_facts *facts = &functions[hdze_last.function];
    char what[128];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    hd_status status = HD_STATUS_API;
    const char *text = "it failed";
    for (size_t i = 0; i < HDI_COUNT(rows); i++)
        if (rows[i].code == hdze_last.result) {
            status = rows[i].status;
            text = rows[i].text;
        }
    if (status == HD_STATUS_API) status = facts->status;
    if (status == HD_STATUS_DEVICE_LOST) {
        hdi_loss_note(&device->loss, (int64_t)hdze_last.result, "in %s, %s", facts->name, what);
        return hdze_lost(device, error);
    }
    return hdi_fail_native(error, status, "levelzero", (int64_t)hdze_last.result, "%s: %s: %s (0x%x)", what, facts->name, text, (unsigned)hdze_last.result);
}
