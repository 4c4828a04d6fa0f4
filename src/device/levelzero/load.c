/* load.c: opens the Level Zero loader at run time, so that neither an SDK nor a driver is needed to start; and
 * failures. */
#include "device/levelzero/ze.h"
#include "os/os.h"

static const hdi_function functions[] = {
#define HDZE_FUNCTION(need, name, status, results)                                                                     \
    { "ze" #name, offsetof(hdze_ze, name), 0, need, HD_STATUS_##status, results },
#include "device/levelzero/functions.inc"
};
static const hdi_result results[] = {
#define RESULT_ROW(code, status, text) { ZE_RESULT_ERROR_##code, HD_STATUS_##status, text },
    HDZE_RESULT_LIST(RESULT_ROW)
#undef RESULT_ROW
};
static const hdi_api api = { "levelzero", functions, HDI_COUNT(functions), results, HDI_COUNT(results) };
const hdi_function *hdze_function_get(hdze_function function) { return &functions[function]; }
ze_result_t hdze_result_of(hdze_result_row row) { return (ze_result_t)results[row].code; }

static hdze_fault_fn fault_now;
void hdze_fault_set(hdze_fault_fn fault) { fault_now = fault; }
ze_result_t hdze_fault(hdze_function function) { return fault_now ? fault_now(function) : ZE_RESULT_SUCCESS; }

const char *hdze_load(hdze_ze *ze, const char **out_mend) {
    static const char *const names[] = { "libze_loader.so.1", "libze_loader.so", "ze_loader.dll", NULL };
    const void *library = hdi_library_open(names);
    *out_mend =
        "install the Level Zero loader (Debian: libze1) and Intel's driver (libze-intel-gpu1, or intel-level-zero-gpu)";
    if (!library) return "there is no Level Zero loader";
    const bool whole = !hdi_functions_load(&api, 0, hdi_library_look_up, library, ze);
    if (!whole) return "the Level Zero loader is older than version 1.0";
    *out_mend = "set HOME to a folder of this user's";
    /* libze1 1.20 follows a null pointer there */
    if (!hdi_os_has_home()) return "HOME is not set, nor is this user's folder known, and the loader may crash then";
    *out_mend = "install Intel's driver (Debian: libze-intel-gpu1, or intel-level-zero-gpu)";
    return NULL;
}

/* ---- failures ---- */

_Thread_local hdze_outcome hdze_last;

hd_status hdze_lost(const hdi_backend_device *device, hd_error *error) {
    return hdi_loss_tell(&device->loss, "levelzero", error);
}

hd_status hdze_no_memory(hd_error *error, const char *what) {
    return hdi_fail_native(error, HD_STATUS_OUT_OF_HOST_MEMORY, "levelzero", 0, "no host memory for %s", what);
}

hd_status hdze_fail(hdi_backend_device *device, hd_error *error, const char *format, ...) {
    const hdi_failed_call call = { &api, hdze_last.function, (int64_t)hdze_last.result, "", &device->loss };
    va_list args;
    va_start(args, format);
    const hd_status status = hdi_call_fail(&call, error, format, args);
    va_end(args);
    return status;
}
