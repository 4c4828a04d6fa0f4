/* loader.h: a driver's library, opened at run time, so that neither an SDK nor a driver is needed to build or to start;
 * the table of its functions, filled in from one list; and what their failures mean. */
#ifndef HDI_LOADER_H
#define HDI_LOADER_H

#include "device/loss.h"

/* A function of a back end's list (its functions.inc). */
typedef struct hdi_function {
    const char *name;     /* the symbol; NULL: this API has no such function */
    size_t      offset;   /* in the back end's table */
    uint32_t    group;    /* the back end's own number for where it comes from */
    bool        required;
    hd_status   status;   /* of a failure whose code says little */
    uint32_t    results;  /* codes it may return: a bit for each row of hdi_api.results */
} hdi_function;
/* What a code means; HD_STATUS_API: the function's own status says more. */
typedef struct hdi_result {
    int64_t     code;
    hd_status   status;
    const char *text;
} hdi_result;
typedef struct hdi_api {
    const char         *backend;
    const hdi_function *functions;
    uint32_t            function_count;
    const hdi_result   *results;
    uint32_t            result_count;
} hdi_api;

/* The first library of a list, ended by NULL, that is there; NULL: none. It stays in the process. */
void *hdi_library_open(const char *const *names);
/* Looks a symbol up; the one for libraries. */
typedef void (*hdi_any_function)(void);
typedef hdi_any_function (*hdi_look_up)(const void *from, const char *name);
hdi_any_function hdi_library_look_up(const void *library, const char *name);
/* Fills the functions of one group into the table. Gives the name of the first required one that is missing, or
 * NULL. */
const char *hdi_functions_load(const hdi_api *api, uint32_t group, hdi_look_up look_up, const void *from,
                               void *out_table);

/* What a call that failed comes to: its status, and a text from `format`, which says what was being done. A loss of the
 * device is noted, and stays. */
typedef struct hdi_failed_call {
    const hdi_api *api;
    uint32_t       function; /* in api->functions */
    int64_t        code;
    const char    *words;    /* the driver's own, in place of the code; "": it said nothing */
    hdi_loss      *loss;
} hdi_failed_call;
hd_status hdi_call_fail(const hdi_failed_call *call, hd_error *error, const char *format, va_list args);
#endif
