/* loader.c: libraries, their functions, and failures of these. */
#include "device/loader.h"
#include "os/os.h"
#include <stdio.h>

void *hdi_library_open(const char *const *names) {
    void *library = NULL;
    for (; *names && !library; names++) library = hdi_os_library(*names);
    return library;
}

hdi_any_function hdi_library_look_up(const void *library, const char *name) {
    return hdi_os_symbol(library, name);
}

const char *hdi_functions_load(const hdi_api *api, uint32_t group, hdi_look_up look_up, const void *from,
                               void *out_table) {
    for (uint32_t i = 0; i < api->function_count; i++) {
        const hdi_function *row = &api->functions[i];
        if (row->group != group) continue;
        const hdi_any_function function = row->name ? look_up(from, row->name) : NULL;
        if (!function && row->required) return row->name;
        memcpy((char *)out_table + row->offset, &function, sizeof function);
    }
    return NULL;
}

hd_status hdi_call_fail(const hdi_failed_call *call, hd_error *error, const char *format, va_list args) {
    const hdi_api *api = call->api;
    const hdi_function *function = &api->functions[call->function];
    hdi_result meaning = { call->code, HD_STATUS_API, "it failed" };
    char doing[128];
    vsnprintf(doing, sizeof doing, format, args);
    for (uint32_t i = 0; i < api->result_count; i++)
        if (api->results[i].code == call->code) meaning = api->results[i];
    const hd_status status = meaning.status == HD_STATUS_API ? function->status : meaning.status;
    if (status == HD_STATUS_DEVICE_LOST) {
        hdi_loss_note(call->loss, call->code, "in %s, %.60s: %s", function->name, doing, meaning.text);
        return hdi_loss_tell(call->loss, api->backend, error);
    }
    char number[24];
    snprintf(number, sizeof number, call->code > 0xFFFF ? "(0x%llx)" : "(%lld)", (long long)call->code);
    return hdi_fail_native(error, status, api->backend, call->code, "%s: %s: %s%s%.300s", doing, function->name,
                           meaning.text, call->words[0] ? ": " : " ", call->words[0] ? call->words : number);
}
