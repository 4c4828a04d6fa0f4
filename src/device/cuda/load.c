/* load.c: opens the driver, the run-time compiler and the library of matrix products, fills the table in, and says what
 * a failure means. */
#include "device/cuda/cu.h"
#include "os/os.h"
#include <stdio.h>

enum { DRIVER, COMPILER, PRODUCTS }; /* hdi_function.group */
static const hdi_function cuda_functions[] = {
#define HDCU_FUNCTION(library, need, name, status, cuda, hip, parameters) \
    { cuda, offsetof(hdcu_api, name), library, need, HD_STATUS_##status, 0 },
#include "device/cuda/functions.inc"
};
static const hdi_function hip_functions[] = {
#define HDCU_FUNCTION(library, need, name, status, cuda, hip, parameters) \
    { hip, offsetof(hdcu_api, name), library, need, HD_STATUS_##status, 0 },
#include "device/cuda/functions.inc"
};

static const hdi_function *functions_of(const hdcu_flavour *flavour) {
    return flavour->is_hip ? hip_functions : cuda_functions;
}

const char *hdcu_function_name(const hdcu_flavour *flavour, hdcu_function function) {
    const char *name = functions_of(flavour)[function].name;
    return name ? name : "a function that is not there";
}

/* All functions of one library; false where it or a required one is missing. */
static bool fill(hdcu_api *api, uint32_t group, const void *library) {
    const hdi_api list = { .functions = functions_of(api->flavour), .function_count = HDCU_FN_COUNT };
    return library && !hdi_functions_load(&list, group, hdi_library_look_up, library, api);
}

const char *hdcu_load(const hdcu_flavour *flavour, hdcu_api *out_api, const char **out_mend) {
    *out_api = (hdcu_api){ .flavour = flavour };
    *out_mend = flavour->driver_mend;
    const void *driver = hdi_library_open(flavour->drivers);
    if (!driver) return flavour->no_driver;
    if (!fill(out_api, DRIVER, driver)) return "the driver is too old: a function is missing";
    return NULL;
}

/* The library of matrix products, beside the compiler as its makers put them: half a gigabyte, so it is only looked
 * for. */
static bool find_products(hdcu_api *api) {
    char folder[sizeof api->products];
    hdi_os_function compiler;
    memcpy(&compiler, &api->CompilerVersion, sizeof compiler);
    if (!hdi_os_library_folder(compiler, folder, sizeof folder)) return false;
    for (const char *const *name = api->flavour->products; *name; name++) {
        const int used = snprintf(api->products, sizeof api->products, "%s%s", folder, *name);
        if (used > 0 && (size_t)used < sizeof api->products && hdi_os_is_readable(api->products)) return true;
    }
    return false;
}

void hdcu_load_compiler(hdcu_api *api) {
    api->compiles = fill(api, COMPILER, hdi_library_open(api->flavour->compilers));
    api->multiplies = api->compiles && api->flavour->products && find_products(api);
}

bool hdcu_load_products(hdcu_api *api) {
    const char *const names[] = { api->products, NULL };
    return fill(api, PRODUCTS, hdi_library_open(names));
}

/* ---- faults of tests ---- */

static hdcu_fault_fn fault;
void hdcu_fault_set(hdcu_fault_fn ask) { fault = ask; }
int hdcu_fault(hdcu_function function) { return fault ? fault(function) : HDCU_SUCCESS; }

/* ---- failures ---- */

static const struct result_row { int result; hd_status status; const char *text; } results[] = {
#define RESULT_ROW(name, number, status, text) { HDCU_##name, HD_STATUS_##status, text },
    HDCU_RESULT_LIST(RESULT_ROW)
#undef RESULT_ROW
};

/* The row of the last call's result; NULL: the function's own status says more. */
static const struct result_row *row_of(void) {
    for (size_t i = 0; i < HDI_COUNT(results) && cuda_functions[hdcu_last.function].group == DRIVER; i++)
        if (results[i].result == hdcu_last.result) return &results[i];
    return NULL;
}

bool hdcu_is_loss(void) {
    const struct result_row *row = row_of();
    return row && row->status == HD_STATUS_DEVICE_LOST;
}

_Thread_local hdcu_outcome hdcu_last;

hd_status hdcu_lost(const hdcu_api *api, hd_error *error) {
    return hdi_loss_tell(&api->loss, api->flavour->backend, error);
}

hd_status hdcu_fail(hdcu_api *api, hd_error *error, const char *format, ...) {
    char doing[128];
    va_list args;
    va_start(args, format);
    vsnprintf(doing, sizeof doing, format, args);
    va_end(args);
    const struct result_row *row = row_of();
    const char *text = row ? row->text : "it failed", *name = hdcu_function_name(api->flavour, hdcu_last.function);
    const hd_status status =
        row && row->status != HD_STATUS_API ? row->status : cuda_functions[hdcu_last.function].status;
    if (status == HD_STATUS_DEVICE_LOST)
        hdi_loss_note(&api->loss, hdcu_last.result, "in %s, %.60s: %s", name, doing, text);
    return hdi_fail_native(error, status, api->flavour->backend, hdcu_last.result, "%s: %s: %s (%d)", doing, name, text,
                           hdcu_last.result);
}
