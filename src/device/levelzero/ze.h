/* ze.h: what the files of the Level Zero back end share. Every driver function is a member of hdze_ze, made from the
 * one list in functions.inc. Kernels are SPIR-V of OpenCL's flavour (spirv.h). Commands are appended to command lists;
 * a list that was closed is a recording and is executed again as it is. Each list begins with a barrier, as lists of
 * one queue may overlap. */
#ifndef HDZE_ZE_H
#define HDZE_ZE_H

#include <level_zero/ze_api.h>

#include "device/backend.h"
#include "device/cache.h"
#include "device/loader.h"
#include "device/recordings.h"
#include "spirv/spirv.h"

/* What calls may return, with the status that it comes to (API: the function's own, from functions.inc). */
#define HDZE_RESULT_LIST(X) \
    X(DEVICE_LOST,                  DEVICE_LOST,          "the device is lost") \
    X(OUT_OF_HOST_MEMORY,           OUT_OF_HOST_MEMORY,   "out of host memory") \
    X(OUT_OF_DEVICE_MEMORY,         OUT_OF_DEVICE_MEMORY, "out of device memory") \
    X(UNSUPPORTED_SIZE,             OUT_OF_DEVICE_MEMORY, "larger than the device takes") \
    X(UNINITIALIZED,                API,                  "no driver is installed") \
    X(MODULE_BUILD_FAILURE,         API,                  "the compiler refuses the module") \
    X(INVALID_NATIVE_BINARY,        API,                  "the module is not this device's") \
    X(INVALID_GROUP_SIZE_DIMENSION, UNSUPPORTED,          "a workgroup of that shape does not fit the device")
typedef enum hdze_result_row {
#define HDZE_RESULT_ROW(code, status, text) HDZE_ROW_##code,
    HDZE_RESULT_LIST(HDZE_RESULT_ROW)
#undef HDZE_RESULT_ROW
    HDZE_ROW_COUNT
} hdze_result_row;
ze_result_t hdze_result_of(hdze_result_row row);

typedef enum hdze_function {
#define HDZE_FUNCTION(need, name, status, results) HDZE_FN_##name,
#include "device/levelzero/functions.inc"
    HDZE_FN_COUNT
} hdze_function;
const hdi_function *hdze_function_get(hdze_function function);

typedef struct hdze_ze {
#define HDZE_FUNCTION(need, name, status, results) __typeof__(ze##name) *name;
#include "device/levelzero/functions.inc"
} hdze_ze;
/* The functions, or NULL with the reason and its mend. The loader stays in the process. */
const char *hdze_load(hdze_ze *ze, const char **out_mend);

/* For tests: asked before every fallible call; what is not ZE_RESULT_SUCCESS is returned in the driver's place. NULL:
 * nobody is asked. */
typedef ze_result_t (*hdze_fault_fn)(hdze_function function);
void hdze_fault_set(hdze_fault_fn fault);
ze_result_t hdze_fault(hdze_function function);

/* Facts of a device that are not caps. */
typedef struct hdze_facts {
    ze_driver_handle_t driver;
    ze_device_handle_t device;
    char     identity[256];    /* of device and driver, for the cache */
    uint32_t offers;           /* hdi_spirv_offer */
    uint32_t compute_ordinal;  /* of the queue group that computes */
    uint64_t ticks_a_second, tick_mask;
    bool     shares;           /* host and device have one memory */
} hdze_facts;
/* The devices of all drivers that can be used; at most `room`. */
uint32_t hdze_list(const hdze_ze *ze, hdze_facts *out_facts, hdi_found *out_found, uint32_t room);
void hdze_probe(const hdi_host *host, hdi_probe *out_probe);

struct hdi_memory {
    hdi_used used;
    void    *address;  /* for host and device alike */
    bool     visible;  /* to the host */
    uint64_t bytes;
};

struct hdi_loaded_kernel {
    hdi_used           used;
    ze_module_handle_t module;
    ze_kernel_handle_t kernel;
    hdi_spirv_printed  printed;
};

/* Encoded commands: a closed list. */
typedef struct hdze_command_buffer {
    hdi_command_buffer       base;
    ze_command_list_handle_t list;
} hdze_command_buffer;

/* A submission under way, or one whose times are still asked for. */
typedef struct hdze_job {
    uint64_t          ticket, begun_ns;
    ze_fence_handle_t fence;        /* made once, reset for each ticket */
    ze_command_list_handle_t list;  /* of commands that are handed over once; likewise */
    uint64_t         *ticks;        /* the host's memory, where marks write the time; and where the last one's ends */
    uint32_t          tick_room, mark_count;
} hdze_job;

enum { HDZE_JOBS = 64 };
struct hdi_backend_device {
    hdi_inflight inflight;
    const hdi_host *host;
    hdze_ze      ze;
    hdze_facts   facts;
    hdi_found    found;
    hdi_cache    cache;
    ze_context_handle_t context;
    /* the second one zeroes new memory, so that nothing else is waited for */
    ze_command_queue_handle_t queue, clear_queue;
    ze_command_list_handle_t  clear_list;
    hdze_job     jobs[HDZE_JOBS]; /* of ticket t: jobs[t % HDZE_JOBS] */
    hdi_loss     loss;
    atomic_bool  abandoned;       /* work on it may not have ended: what it uses is left to the driver */
};

/* What a thread called last, and what came of it. */
typedef struct hdze_outcome {
    hdze_function function;
    ze_result_t   result;
} hdze_outcome;
extern _Thread_local hdze_outcome hdze_last;

/* Calls a function; true when it succeeded, else hdze_fail can explain. */
#define HDZE_CALL(device, name, ...) \
    (hdze_last = (hdze_outcome){ HDZE_FN_##name, hdze_fault(HDZE_FN_##name) }, \
     hdze_last.result = hdze_last.result != ZE_RESULT_SUCCESS ? hdze_last.result : (device)->ze.name(__VA_ARGS__), \
     hdze_last.result == ZE_RESULT_SUCCESS)
/* Ends an object of the driver's, if there is one; never under work that does not end. */
#define HDZE_END(device, name, handle) \
    do { if ((handle) && !(device)->abandoned) (device)->ze.name(handle); (handle) = NULL; } while (0)
/* Says what the last call came to. A loss stays. */
hd_status hdze_fail(hdi_backend_device *device, hd_error *error, const char *format, ...) HDI_PRINTF(3, 4);
hd_status hdze_lost(const hdi_backend_device *device, hd_error *error);
hd_status hdze_no_memory(hd_error *error, const char *what); /* OUT_OF_HOST_MEMORY of our own */

/* memory.c */
hd_status hdze_alloc(hdi_backend_device *device, const hdi_alloc_desc *desc, hdi_memory **out_memory, hd_error *error);
void hdze_memory_end(hdi_backend_device *device, hdi_used *memory);
/* kernel.c */
hd_status hdze_kernel_load(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                           hdi_loaded_kernel **out_kernel, bool *out_from_cache, hd_error *error);
void hdze_kernel_end(hdi_backend_device *device, hdi_used *kernel);
/* encode.c: commands become command lists. */
bool hdze_list_new(hdi_backend_device *device, ze_command_list_handle_t *out_list);
/* Appends the commands and closes the list; marks write into `ticks`, where that is not NULL: `*out_marks` of them. */
bool hdze_encode(hdi_backend_device *device, const hdi_submission *submission, ze_command_list_handle_t list,
                 uint64_t *ticks, uint32_t *out_marks);
/* Makes a closed list, and ends it (recordings.h). */
hd_status hdze_record(hdi_backend_device *device, const hdi_submission *submission, hdi_command_buffer *out_buffer,
                      hd_error *error);
void hdze_record_end(hdi_backend_device *device, hdi_command_buffer *buffer);
/* submit.c */
hd_status hdze_submit(hdi_backend_device *device, hdi_submission *submission, uint64_t *out_ticket, hd_error *error);
hd_status hdze_poll(hdi_backend_device *device, uint64_t ticket, bool *out_done, hd_error *error);
hd_status hdze_wait(hdi_backend_device *device, uint64_t ticket, uint64_t timeout_ns, hd_error *error);
hd_status hdze_profile(hdi_backend_device *device, uint64_t ticket, uint64_t *out_ns, uint32_t room,
                       uint32_t *out_count, hd_error *error);
bool hdze_rest(hdi_backend_device *device); /* waits until nothing runs any more, at most wait_ns; true when so */
void hdze_jobs_end(hdi_backend_device *device);
#endif
