/* cu.h: what the files of the CUDA back end share, and what makes the HIP back end of them: AMD's API has CUDA's
 * functions under other names, so one table (functions.inc) is filled for either, and hdcu_flavour holds the rest of
 * what differs. Driver and run-time compiler are opened at run time, of whatever version; no toolkit is needed to build
 * or to start. Kernels are printed from SPIR-V (spirv.h), compiled for the device and kept on disk: with these at hand
 * no compiler is needed. Each queue is a stream; one waits for another by the event at the end of a submission. What is
 * recorded becomes a graph, handed over by one call. */
#ifndef HDCU_CU_H
#define HDCU_CU_H

#include "cmds/library.h"
#include "device/backend.h"
#include "device/cache.h"
#include "device/loader.h"
#include "device/recordings.h"
#include "spirv/spirv.h"

/* ---- the two APIs' handles and numbers, as far as they are used; where one number stands, it is the same in both
 * ---- */

typedef struct hdcu_context_object *hdcu_context;
typedef struct hdcu_stream_object  *hdcu_stream;
typedef struct hdcu_event_object   *hdcu_event;
typedef struct hdcu_module_object  *hdcu_module;
typedef struct hdcu_kernel_object  *hdcu_kernel;
typedef struct hdcu_graph_object   *hdcu_graph;
typedef struct hdcu_exec_object    *hdcu_graph_exec;
typedef struct hdcu_node_object    *hdcu_node;
typedef struct hdcu_program_object *hdcu_program;
typedef struct hdcu_blas_object    *hdcu_blas;
typedef struct hdcu_desc_object    *hdcu_blas_desc;
typedef struct hdcu_layout_object  *hdcu_blas_layout;
typedef struct hdcu_search_object  *hdcu_blas_search;
typedef struct hdcu_blas_algo { uint64_t words[8]; } hdcu_blas_algo;
typedef struct hdcu_blas_found { /* an algorithm that a search found */
    hdcu_blas_algo algo;
    size_t         workspace_bytes;
    int            state;
    float          waves;
    int            reserved[4];
} hdcu_blas_found;
typedef struct hdcu_edge { uint8_t from_port, to_port, kind, reserved[5]; } hdcu_edge; /* of a graph */
typedef struct hdcu_uuid { uint8_t bytes[16]; } hdcu_uuid;

enum { HDCU_STREAM_NON_BLOCKING = 1, HDCU_HOST_PORTABLE = 1, HDCU_HOST_MAPPED = 2,
       HDCU_HOST_READ_ONLY = 8, HDCU_EVENT_NO_TIMING = 2,
       HDCU_CAPTURE_RELAXED = 2,
       HDCU_SET_DEPENDENCIES = 1, HDCU_MODE_PROHIBITED = 2,
       HDCU_PORT_PROGRAMMATIC = 1, HDCU_EDGE_PROGRAMMATIC = 1 };
/* Results: X(NAME, number, status, text). The compilers count their own. */
#define HDCU_RESULT_LIST(X) \
    X(INVALID_VALUE,     1,   API,                  "an invalid argument") \
    X(OUT_OF_MEMORY,     2,   OUT_OF_DEVICE_MEMORY, "out of memory") \
    X(NOT_INITIALIZED,   3,   NOT_INITIALIZED,      "the driver is not initialised") \
    X(DEINITIALIZED,     4,   DEINITIALIZED,        "the driver shut down") \
    X(NO_DEVICE,         100, NO_DEVICE,            "there is no device") \
    X(INVALID_DEVICE,    101, NO_DEVICE,            "there is no such device") \
    X(NO_BINARY,         209, API,                  "the code is not this device's") \
    X(ECC,               214, DEVICE_LOST,          "memory has an error that cannot be corrected") \
    X(NVLINK,            220, DEVICE_LOST,          "a link has an error that cannot be corrected") \
    X(NOT_READY,         600, TIMEOUT,              "not done") \
    X(ILLEGAL_ADDRESS,   700, DEVICE_LOST,          "a kernel used an address that it may not") \
    X(OUT_OF_RESOURCES,  701, UNSUPPORTED,          "the kernel needs more than the device has") \
    X(LAUNCH_TIMEOUT,    702, DEVICE_LOST,          "a kernel ran too long") \
    X(CONTEXT_DESTROYED, 709, DEVICE_LOST,          "the context was destroyed") \
    X(ASSERT,            710, DEVICE_LOST,          "a kernel gave up") \
    X(STACK,             714, DEVICE_LOST,          "the device's stack is broken") \
    X(INSTRUCTION,       715, DEVICE_LOST,          "a kernel met an illegal instruction") \
    X(MISALIGNED,        716, DEVICE_LOST,          "a kernel used an address that is not aligned") \
    X(ADDRESS_SPACE,     717, DEVICE_LOST,          "a kernel used an address of another space") \
    X(COUNTER,           718, DEVICE_LOST,          "a kernel lost its way") \
    X(REGISTERED,        712, API,                  "another has some of these pages already") \
    X(LAUNCH_FAILED,     719, DEVICE_LOST,          "a kernel failed") \
    X(NOT_SUPPORTED,     801, UNSUPPORTED,          "not supported") \
    X(SYSTEM_NOT_READY,  802, DEVICE_CREATION,      "the system is not ready; its services may still be starting") \
    X(DRIVER_MISMATCH,   803, UNSUPPORTED_VERSION,  "the driver's parts are of different versions") \
    X(UNKNOWN,           999, API,                  "unknown")
enum hdcu_result {
    HDCU_SUCCESS = 0,
#define HDCU_RESULT_ENUM(name, number, status, text) HDCU_##name = number,
    HDCU_RESULT_LIST(HDCU_RESULT_ENUM)
#undef HDCU_RESULT_ENUM
};
/* Attributes of a device: X(NAME, CUDA's number, HIP's). */
#define HDCU_ATTRIBUTE_LIST(X) \
    X(MOST_THREADS, 1, 56) X(MOST_BLOCK_X, 2, 26) X(MOST_GRID_X, 5, 29) X(MOST_GRID_Y, 6, 30) X(MOST_GRID_Z, 7, 31) \
        X(SHARED_BYTES, 8, 74) \
        X(SHARED_AT_LAUNCH, 97, 74) \
    X(WARP, 10, 87) X(CLOCK_KHZ, 13, 5) X(UNITS, 16, 63) X(INTEGRATED, 18, 16) X(MODE, 20, 6) X(PCI_BUS, 33, 67) \
        X(PCI_DEVICE, 34, 68) \
    X(MEMORY_KHZ, 36, 60) X(MEMORY_BITS, 37, 59) X(PCI_DOMAIN, 50, 69) X(MAJOR, 75, 23) X(MINOR, 76, 61)
typedef enum hdcu_attribute {
#define HDCU_ATTRIBUTE_ENUM(name, cuda, hip) HDCU_##name,
    HDCU_ATTRIBUTE_LIST(HDCU_ATTRIBUTE_ENUM)
#undef HDCU_ATTRIBUTE_ENUM
    HDCU_ATTRIBUTE_COUNT
} hdcu_attribute;

/* ---- the table ---- */

typedef enum hdcu_function {
#define HDCU_FUNCTION(library, need, name, status, cuda, hip, parameters) HDCU_FN_##name,
#include "device/cuda/functions.inc"
    HDCU_FN_COUNT
} hdcu_function;

typedef struct hdcu_flavour hdcu_flavour;
/* The functions. */
typedef struct hdcu_api {
#define HDCU_FUNCTION(library, need, name, status, cuda, hip, parameters) int (*name) parameters;
#include "device/cuda/functions.inc"
    const hdcu_flavour *flavour;
    bool          compiles; /* there is a run-time compiler */
    bool          multiplies; /* there is a library of matrix products, */
    char          products[512]; /* in this file */
    hdi_loss      loss;     /* a failure that the device does not come back from */
} hdcu_api;

/* What a thread called last, and what came of it. */
typedef struct hdcu_outcome {
    hdcu_function function;
    int           result;
} hdcu_outcome;
extern _Thread_local hdcu_outcome hdcu_last;

/* Facts of a device that are not caps. */
typedef struct hdcu_facts {
    int      device;   /* the driver's number */
    int      values[HDCU_ATTRIBUTE_COUNT];
    int      arch;     /* 90 for compute capability 9.0 */
    char     code[96]; /* the architecture that code is made for: "sm_90", "gfx90a:sramecc+:xnack-" */
} hdcu_facts;

/* What CUDA and HIP do not share. */
struct hdcu_flavour {
    const char *backend, *compiler_name;           /* "cuda", "NVRTC" */
    bool        is_hip;                            /* which column of the lists */
    hdi_spirv_dialect dialect;
    /* libraries, tried in order, ended by NULL; products: NULL for none */
    const char *const *drivers, *const *compilers, *const *products;
    const char *no_driver, *driver_mend, *device_mend, *compiler_mend;
    const char *arch_option;                       /* "--gpu-architecture=" */
    const char *const *exact_options, *const *fast_options; /* ended by NULL */
    /* Names the code's architecture and adds the caps that follow from it. False: not a device to use. */
    bool (*refine)(hdcu_api *api, hdcu_facts *facts, hdi_caps *caps);
};
extern const hdcu_flavour hdcu_cuda, hdcu_hip;

/* Calls a function of the table; true when it succeeded, else hdcu_fail can explain. */
#define HDCU_CALL(api, name, ...)                                                                                      \
    (hdcu_last = (hdcu_outcome){ HDCU_FN_##name, hdcu_fault(HDCU_FN_##name) },                                         \
     hdcu_last.result = hdcu_last.result ? hdcu_last.result : (api)->name(__VA_ARGS__),                                \
     hdcu_last.result == HDCU_SUCCESS)

/* load.c */
/* Fills the table in; NULL, or the reason why there is no driver. The libraries stay in the process. */
const char *hdcu_load(const hdcu_flavour *flavour, hdcu_api *out_api, const char **out_mend);
/* api->compiles tells, and ->multiplies of the library of matrix products beside it */
void hdcu_load_compiler(hdcu_api *api);
bool hdcu_load_products(hdcu_api *api); /* once that is wanted */
const char *hdcu_function_name(const hdcu_flavour *flavour, hdcu_function function);
/* Says what the last call came to. A loss stays. */
hd_status hdcu_fail(hdcu_api *api, hd_error *error, const char *format, ...) HDI_PRINTF(3, 4);
bool hdcu_is_loss(void); /* did the last call tell of one? */
hd_status hdcu_lost(const hdcu_api *api, hd_error *error);
/* For tests: asked before every fallible call; what is not 0 is returned in the library's place. NULL: nobody is
 * asked. */
typedef int (*hdcu_fault_fn)(hdcu_function function);
void hdcu_fault_set(hdcu_fault_fn ask);
int  hdcu_fault(hdcu_function function);

/* facts.c */
bool hdcu_describe(hdcu_api *api, int ordinal, hdcu_facts *out_facts, hdi_found *out_found);
void hdcu_probe(const hdcu_flavour *flavour, hdi_probe *out_probe);

/* ---- the device ---- */

struct hdi_memory {
    hdi_used used;       /* or among the spare ones */
    uint64_t address;    /* for the device */
    void    *host;       /* the same memory for the host; NULL: it does not see it */
    uint64_t bytes;
    bool     borrowed;   /* the caller's: only registered here */
};

typedef struct hdcu_product hdcu_product;
struct hdi_loaded_kernel {
    hdi_used    used;
    hdcu_module module;
    hdcu_kernel kernel;
    hdi_spirv_printed printed;
    hdcu_product *product; /* of the library, in place of all that; NULL: it is none */
};

/* Encoded commands: a graph. */
typedef struct hdcu_command_buffer {
    hdi_command_buffer base;
    hdcu_graph_exec    exec;
} hdcu_command_buffer;

/* A submission under way, or one whose times are still asked for. */
typedef struct hdcu_job {
    uint64_t    ticket, begun_ns;
    uint32_t    queue;
    hdcu_event  done;  /* made once, recorded anew for each ticket */
    hdcu_event  ends[2]; /* where it began and ended, made with the first submission here that asks for it */
    bool        timed;   /* they hold for this ticket */
    hdcu_event *marks; /* where each mark's time begins, and where the last one's ends */
    uint32_t    mark_count, mark_capacity;
} hdcu_job;

enum { HDCU_JOBS = 64, HDCU_SPARE_CLASSES = 13 };
struct hdi_backend_device {
    hdi_inflight inflight;
    const hdi_host *host;
    hdcu_api     api;
    hdcu_facts   facts;
    hdi_found    found;
    hdi_cache    cache;
    hdcu_context context;
    hdcu_stream  streams[HDI_QUEUE_COUNT];
    bool         early_edges;     /* graphs let kernels begin early: until the driver refuses one */
    hdcu_event   cleared;         /* on the compute stream, behind the zeroing of the newest memory */
    hdcu_event   epoch;           /* where the clock of submissions begins; made with the first one that asks for it */
    /* these streams have to wait for it: memory was zeroed since they last did */
    bool         unclear[HDI_QUEUE_COUNT];
    hdcu_blas    blas;            /* made with the first product, under the lock of kernels */
    hdi_link     spares[2][HDCU_SPARE_CLASSES]; /* small memory to be used again: the device's, and the host's */
    hdcu_job     jobs[HDCU_JOBS]; /* of ticket t: jobs[t % HDCU_JOBS] */
    atomic_bool  abandoned;       /* work on it would not end: its objects are left to the driver */
};
/* Ends an object of the driver's, if there is one; never under work that does not end. */
#define HDCU_END(device, name, handle) \
    do { if ((handle) && !(device)->abandoned) (device)->api.name(handle); } while (0)

/* memory.c */
hd_status hdcu_alloc(hdi_backend_device *device, const hdi_alloc_desc *desc, hdi_memory **out_memory, hd_error *error);
void hdcu_memory_give_back(hdi_backend_device *device, hdi_used *memory); /* to the spare, or to the driver */
void hdcu_memory_trim(hdi_backend_device *device);
/* kernel.c */
hd_status hdcu_kernel_load(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                           hdi_loaded_kernel **out_kernel, bool *out_from_cache, hd_error *error);
void hdcu_kernel_end(hdi_backend_device *device, hdi_used *kernel);
/* product.c */
/* What cmds/library.h asks for; on failure too the caller ends it. */
hd_status hdcu_product_load(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                            hdcu_product **out_product, hd_error *error);
void hdcu_product_end(hdi_backend_device *device, hdcu_product *product);
/* One call on the compute stream; addresses of what is bound. */
bool hdcu_product_run(hdi_backend_device *device, const hdcu_product *product,
                      const uint64_t addresses[HDI_PRODUCT_BINDINGS], uint64_t workspace_bytes);
/* encode.c: commands become calls on the stream of their queue, or nodes of a graph. */
/* Hands the commands over at once; with timestamps their marks' events go into the job. */
hd_status hdcu_enqueue(hdi_backend_device *device, const hdi_submission *submission, hdcu_job *job, hd_error *error);
/* Captures the commands; and ends such a graph (recordings.h). */
hd_status hdcu_record(hdi_backend_device *device, const hdi_submission *submission, hdi_command_buffer *out_buffer,
                      hd_error *error);
void hdcu_record_end(hdi_backend_device *device, hdi_command_buffer *buffer);
/* submit.c */
hd_status hdcu_submit(hdi_backend_device *device, hdi_submission *submission, uint64_t *out_ticket, hd_error *error);
hd_status hdcu_poll(hdi_backend_device *device, uint64_t ticket, bool *out_done, hd_error *error);
hd_status hdcu_wait(hdi_backend_device *device, uint64_t ticket, uint64_t timeout_ns, hd_error *error);
hd_status hdcu_profile(hdi_backend_device *device, uint64_t ticket, uint64_t *out_ns, uint32_t room,
                       uint32_t *out_count, hd_error *error);
hd_status hdcu_span(hdi_backend_device *device, uint64_t ticket, uint64_t out_ns[2], hd_error *error);
/* Waits until all streams are empty; false where that takes longer. */
bool hdcu_drain(hdi_backend_device *device, uint64_t timeout_ns);
void hdcu_jobs_end(hdi_backend_device *device);
#endif
