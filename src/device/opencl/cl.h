/* cl.h: what the files of the OpenCL back end share. Every driver function is a member of hdcl_cl, made from the one
 * list in functions.inc. OpenCL 1.2 is enough; where host and device share memory by fine-grained SVM, it is used as it
 * is, else memory that the host sees is a copy that is brought up to date around the commands that touch it; where
 * there are command buffers, replays use them (record.c). Kernels are printed from SPIR-V (spirv.h). The queue is in
 * order: barriers need no commands. */
#ifndef HDCL_CL_H
#define HDCL_CL_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include "device/loader.h"
#include "device/recordings.h"
#include "spirv/spirv.h"

/* What OpenCL's calls may return, with the status that it comes to (API: the function's own, from functions.inc). */
#define HDCL_RESULT_LIST(X) \
    X(OUT_OF_HOST_MEMORY,            OUT_OF_HOST_MEMORY,   "out of host memory") \
    X(OUT_OF_RESOURCES,              OUT_OF_DEVICE_MEMORY, "out of resources") \
    X(MEM_OBJECT_ALLOCATION_FAILURE, OUT_OF_DEVICE_MEMORY, "out of device memory") \
    X(INVALID_BUFFER_SIZE,           OUT_OF_DEVICE_MEMORY, "larger than the device takes") \
    X(DEVICE_NOT_FOUND,              API,                  "no such device") \
    X(DEVICE_NOT_AVAILABLE,          DEVICE_LOST,          "the device is not available") \
    X(BUILD_PROGRAM_FAILURE,         API,                  "the compiler refuses the program") \
    X(COMPILER_NOT_AVAILABLE,        API,                  "there is no compiler") \
    X(INVALID_BINARY,                API,                  "the program is not this device's") \
    X(INVALID_WORK_GROUP_SIZE,       UNSUPPORTED,          "a workgroup of that size does not fit the device") \
    X(INVALID_WORK_ITEM_SIZE,        UNSUPPORTED,          "a workgroup of that shape does not fit the device") \
    X(PROFILING_INFO_NOT_AVAILABLE,  API,                  "times were not taken")
typedef enum hdcl_result_row {
#define HDCL_RESULT_ROW(code, status, text) HDCL_ROW_##code,
    HDCL_RESULT_LIST(HDCL_RESULT_ROW)
#undef HDCL_RESULT_ROW
    HDCL_ROW_COUNT
} hdcl_result_row;
cl_int hdcl_result_of(hdcl_result_row row);

/* Command buffers as versions 0.9.0 to 0.9.4 of their extension have them; later ones take other arguments. */
typedef struct hdcl_command_buffer_object *hdcl_command_buffer_khr;
typedef hdcl_command_buffer_khr(CL_API_CALL *hdcl_create_command_buffer)(cl_uint, const cl_command_queue *,
                                                                         const cl_ulong *, cl_int *);
typedef cl_int (CL_API_CALL *hdcl_end_command_buffer)(hdcl_command_buffer_khr);
typedef cl_int (CL_API_CALL *hdcl_enqueue_command_buffer)(cl_uint, cl_command_queue *, hdcl_command_buffer_khr,
    cl_uint, const cl_event *, cl_event *);
typedef cl_int (CL_API_CALL *hdcl_command_kernel)(hdcl_command_buffer_khr, cl_command_queue, const void *, cl_kernel,
    cl_uint, const size_t *, const size_t *,
                                                  const size_t *, cl_uint, const cl_uint *, cl_uint *, void *);
typedef cl_int (CL_API_CALL *hdcl_command_copy)(hdcl_command_buffer_khr, cl_command_queue, cl_mem, cl_mem, size_t,
    size_t, size_t, cl_uint, const cl_uint *, cl_uint *, void *);
typedef cl_int (CL_API_CALL *hdcl_command_fill)(hdcl_command_buffer_khr, cl_command_queue, cl_mem, const void *,
    size_t, size_t, size_t, cl_uint, const cl_uint *, cl_uint *, void *);
enum { /* of their header, which may be older */
    HDCL_DEVICE_COMMAND_BUFFER_CAPABILITIES = 0x12A9, HDCL_DEVICE_COMMAND_BUFFER_QUEUE = 0x12AA,
        HDCL_COMMAND_BUFFER_FLAGS = 0x1293,
    HDCL_COMMAND_BUFFER_SIMULTANEOUS = 1, HDCL_CAPABILITY_SIMULTANEOUS = 4
};

typedef enum hdcl_function {
#define HDCL_FUNCTION(need, name, status, results) HDCL_FN_##name,
#include "device/opencl/functions.inc"
    HDCL_FN_COUNT
} hdcl_function;
const hdi_function *hdcl_function_get(hdcl_function function);
enum { HDCL_LIBRARY, HDCL_PLATFORM }; /* hdi_function.group */
extern const hdi_api hdcl_api;

typedef struct hdcl_cl {
#define HDCL_FUNCTION(need, name, status, results) __typeof__(cl##name) *name;
#define HDCL_EXTENSION(name, type, status, results) type name;
#include "device/opencl/functions.inc"
} hdcl_cl;
/* The functions, or NULL with the reason and its mend. The loader stays in the process. */
const char *hdcl_load(hdcl_cl *cl, const char **out_mend);

/* ---- for tests ---- */
/* Asked before every fallible call; what is not CL_SUCCESS is returned in the driver's place. NULL: nobody is asked. */
typedef cl_int (*hdcl_fault_fn)(hdcl_function function);
void hdcl_fault_set(hdcl_fault_fn fault);
cl_int hdcl_fault(hdcl_function function);
/* Parts that later probes and opens take for absent; all of them together: OpenCL 1.2 as it is. */
enum { HDCL_HIDE_SHARED = 1, HDCL_HIDE_RECORDING = 2, HDCL_HIDE_PTX = 4 };
void hdcl_hide_set(uint32_t parts);

/* Facts of a device that are not caps. */
typedef struct hdcl_facts {
    cl_platform_id platform;
    cl_device_id   id;
    char           identity[256]; /* of device and driver, for the cache */
    char           pci[16];       /* "0000:01:00.0", or "" */
    uint32_t       offers;        /* hdi_spirv_offer */
    bool           shares;        /* fine-grained SVM */
    bool           records;       /* command buffers that may be under way several times at once */
    bool           keeps_subnormals, rounds_division, is_pocl;
} hdcl_facts;
/* The devices of all platforms that can be used, in the platforms' order; at most `room`. */
uint32_t hdcl_list(const hdcl_cl *cl, hdcl_facts *out_facts, hdi_found *out_found, uint32_t room);
void hdcl_probe(const hdi_host *host, hdi_probe *out_probe);

/* The part of a memory that was carried last between host and device, and in which pass over a submission's
 * commands. */
typedef struct hdcl_carried { uint64_t pass; size_t offset, bytes; } hdcl_carried;

struct hdi_memory {
    hdi_used used;
    cl_mem   buffer;
    void    *host;        /* what the host sees; NULL: nothing */
    bool     shared;      /* `host` is the buffer's own memory, */
    bool     borrowed;    /* and the caller's */
    uint64_t bytes;
    uint64_t written_ticket; /* the last submission that writes it on the device; of memory with a copy for the host */
    hdcl_carried carried;
};

struct hdi_loaded_kernel {
    hdi_used   used; /* the driver itself keeps a kernel that is in use */
    cl_program program;
    cl_kernel  kernel;
    hdi_spirv_printed printed;
};

/* Encoded commands. */
typedef struct hdcl_command_buffer {
    hdi_command_buffer      base;
    hdcl_command_buffer_khr commands;
    cl_kernel              *kernels; /* of the dispatches */
    uint32_t                kernel_count, kernel_capacity;
} hdcl_command_buffer;

/* A submission under way, or one whose times are still asked for. */
typedef struct hdcl_job {
    uint64_t  ticket, begun_ns;
    cl_event  done;
    cl_event *marks; /* the ends of what each mark measures; mark_count of them, after one where the first began */
    uint32_t  mark_count, mark_capacity;
} hdcl_job;

enum { HDCL_JOBS = 64 };
struct hdi_backend_device {
    hdi_inflight     inflight;
    const hdi_host  *host;
    hdcl_cl          cl;
    hdcl_facts       facts;
    hdi_found        found;
    cl_context       context;
    cl_command_queue queue;
    uint64_t         passes;
    hdcl_job         jobs[HDCL_JOBS]; /* of ticket t: jobs[t % HDCL_JOBS] */
    hdi_loss         loss;
    atomic_bool      abandoned;       /* work on it may not have ended: what it uses is left to the driver */
};

/* What a thread called last, and what came of it. */
typedef struct hdcl_outcome {
    hdcl_function function;
    cl_int        result;
} hdcl_outcome;
extern _Thread_local hdcl_outcome hdcl_last;

/* Calls a function that gives an error code; true when it succeeded. */
#define HDCL_CALL(device, name, ...)                                                                                   \
    (hdcl_last = (hdcl_outcome){ HDCL_FN_##name, hdcl_fault(HDCL_FN_##name) },                                         \
     hdcl_last.result = hdcl_last.result != CL_SUCCESS ? hdcl_last.result : (device)->cl.name(__VA_ARGS__),            \
     hdcl_last.result == CL_SUCCESS)
/* Calls a function that makes something, with the place for its error code as last argument; NULL where it failed. */
#define HDCL_MAKE(device, name, ...) \
    (hdcl_last = (hdcl_outcome){ HDCL_FN_##name, hdcl_fault(HDCL_FN_##name) }, \
     hdcl_last.result != CL_SUCCESS ? NULL : (device)->cl.name(__VA_ARGS__, &hdcl_last.result))
/* Says what the last call came to. */
hd_status hdcl_fail(hdi_backend_device *device, hd_error *error, const char *format, ...) HDI_PRINTF(3, 4);
/* DEVICE_LOST, with what was known when it happened. */
hd_status hdcl_lost(const hdi_backend_device *device, hd_error *error);
hd_status hdcl_no_memory(hd_error *error, const char *what); /* OUT_OF_HOST_MEMORY of our own */

/* memory.c */
hd_status hdcl_alloc(hdi_backend_device *device, const hdi_alloc_desc *desc, hdi_memory **out_memory, hd_error *error);
void *hdcl_map(hdi_backend_device *device, hdi_memory *memory);
void hdcl_memory_end(hdi_backend_device *device, hdi_used *memory);
/* kernel.c */
hd_status hdcl_kernel_load(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                           hdi_loaded_kernel **out_kernel, bool *out_from_cache, hd_error *error);
void hdcl_kernel_end(hdi_backend_device *device, hdi_used *kernel);
/* record.c */
void hdcl_load_recording(hdi_backend_device *device);
bool hdcl_can_record(const hdi_backend_device *device, const hdi_submission *submission);
/* Records the commands; and ends such a record (recordings.h). */
hd_status hdcl_record(hdi_backend_device *device, const hdi_submission *submission, hdi_command_buffer *out_buffer,
                      hd_error *error);
void hdcl_record_end(hdi_backend_device *device, hdi_command_buffer *buffer);
/* submit.c */
typedef struct hdcl_range {
    hdi_memory *memory;
    size_t      offset, bytes;
} hdcl_range;
hdcl_range hdcl_range_of(const hdi_submission *submission, hdi_range at);
void hdcl_grid(const hdi_cmd *cmd, const hdi_loaded_kernel *loaded, size_t *out_global, size_t *out_local);
bool hdcl_set_arguments(hdi_backend_device *device, const hdi_submission *submission, const hdi_cmd *cmd,
                        const hdi_loaded_kernel *loaded, cl_kernel kernel);
hd_status hdcl_submit(hdi_backend_device *device, hdi_submission *submission, uint64_t *out_ticket, hd_error *error);
hd_status hdcl_poll(hdi_backend_device *device, uint64_t ticket, bool *out_done, hd_error *error);
hd_status hdcl_wait(hdi_backend_device *device, uint64_t ticket, uint64_t timeout_ns, hd_error *error);
hd_status hdcl_profile(hdi_backend_device *device, uint64_t ticket, uint64_t *out_ns, uint32_t room,
                       uint32_t *out_count, hd_error *error);
bool hdcl_rest(hdi_backend_device *device); /* waits until nothing runs any more, at most wait_ns; true when so */
void hdcl_end_jobs(hdi_backend_device *device);
#endif
