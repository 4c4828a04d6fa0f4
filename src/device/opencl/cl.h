/* cl.h: what the files of the OpenCL back end share. Every driver function is a member of hdcl_cl, made from the one list in
 * functions.inc. OpenCL 1.2 is enough; where host and device share memory by fine-grained SVM, it is used as it is, else
 * memory that the host sees is a copy that is brought up to date around the commands that touch it. Kernels are printed
 * from SPIR-V (spirv.h). The queue is in order: barriers need no commands. */
#ifndef HDCL_CL_H
#define HDCL_CL_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include "device/backend.h"
#include "spirv/spirv.h"

typedef struct hdcl_cl {
#define HDCL_FUNCTION(need, name) __typeof__(cl##name) *name;
#include "device/opencl/functions.inc"
#undef HDCL_FUNCTION
} hdcl_cl;
/* The functions, or NULL with the reason and its mend. The loader stays in the process. */
const char *hdcl_load(hdcl_cl *cl, const char **out_mend);

/* Facts of a device that are not caps. */
typedef struct hdcl_facts {
    cl_platform_id platform;
    cl_device_id   id;
    char           identity[256]; /* of device and driver, for the cache */
    uint32_t       offers;        /* hdi_spirv_offer */
    bool           shares;        /* fine-grained SVM */
    bool           keeps_subnormals, rounds_division, is_pocl;
} hdcl_facts;
/* The devices of all platforms that can be used, in the platforms' order; at most `room`. */
uint32_t hdcl_list(const hdcl_cl *cl, hdcl_facts *out_facts, uint32_t room);
void hdcl_probe(const hdi_host *host, hdi_probe *out_probe);
void hdcl_describe(const hdcl_cl *cl, const hdcl_facts *facts, hdi_found *out_found);

struct hdi_memory {
    hdi_link link;        /* in the device's list of living or of dead memory */
    cl_mem   buffer;
    void    *host;        /* what the host sees; NULL: nothing */
    bool     shared;      /* `host` is the buffer's own memory */
    uint64_t bytes, last_ticket;
};

struct hdi_loaded_kernel {
    hdi_link   link;
    cl_program program;
    cl_kernel  kernel;
    hdi_spirv_printed printed;
};

/* A submission under way, or one whose times are still asked for. */
typedef struct hdcl_job {
    uint64_t  ticket;
    cl_event  done;
    cl_event *marks; /* the ends of what each mark measures; mark_count of them, after one where the first began */
    uint32_t  mark_count, mark_capacity;
} hdcl_job;

enum { HDCL_JOBS = 64 };
struct hdi_backend_device {
    const hdi_host  *host;
    hdcl_cl          cl;
    hdcl_facts       facts;
    hdi_found        found;
    cl_context       context;
    cl_command_queue queue;
    hdi_link         memories, dead, kernels;
    uint64_t         submitted, done;
    hdcl_job         jobs[HDCL_JOBS]; /* of ticket t: jobs[t % HDCL_JOBS] */
    bool             lost;
    const char      *function;        /* called last */
    cl_int           result;
};

/* Calls a function that gives an error code; true when it succeeded. */
#define HDCL_CALL(device, name, ...) \
    ((device)->function = "cl" #name, (device)->result = (device)->cl.name(__VA_ARGS__), (device)->result == CL_SUCCESS)
/* Says what the last call came to. */
hd_status hdcl_fail(hdi_backend_device *device, hd_error *error, const char *format, ...) HDI_PRINTF(3, 4);

/* memory.c */
hd_status hdcl_alloc(hdi_backend_device *device, const hdi_alloc_desc *desc, hdi_memory **out_memory, hd_error *error);
void hdcl_free(hdi_backend_device *device, hdi_memory *memory);
void *hdcl_map(hdi_backend_device *device, hdi_memory *memory);
void hdcl_bury(hdi_backend_device *device, bool all); /* gives back dead memory that no submission uses any more */
/* kernel.c */
hd_status hdcl_kernel_load(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                           hdi_loaded_kernel **out_kernel, bool *out_from_cache, hd_error *error);
void hdcl_kernel_free(hdi_backend_device *device, hdi_loaded_kernel *kernel);
/* submit.c */
hd_status hdcl_submit(hdi_backend_device *device, hdi_submission *submission, uint64_t *out_ticket, hd_error *error);
hd_status hdcl_poll(hdi_backend_device *device, uint64_t ticket, bool *out_done, hd_error *error);
hd_status hdcl_wait(hdi_backend_device *device, uint64_t ticket, uint64_t timeout_ns, hd_error *error);
hd_status hdcl_profile(hdi_backend_device *device, uint64_t ticket, uint64_t *out_ns, uint32_t room, uint32_t *out_count, hd_error *error);
void hdcl_end_jobs(hdi_backend_device *device);
#endif
