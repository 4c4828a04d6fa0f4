/* wg.h: what the files of the WebGPU back end share. Every function is a member of hdwg_wg, made from the one list in
 * functions.inc. WebGPU says of an error in a callback, on the thread whose call it is: HDWG_CALL looks there behind
 * each call. Kernels are WGSL (spirv.h). Command buffers are used once, so commands are encoded for each submission;
 * what can be kept of a recording is its script: bind groups, and launch words in one uniform buffer. Nothing of a
 * device is in the host's sight: memory that the host is to see has a copy there, and submissions carry it over. */
#ifndef HDWG_WG_H
#define HDWG_WG_H

#include "device/backend.h"
#include "device/loader.h"
#include "device/recordings.h"
#include "device/webgpu/api.h"
#include "spirv/spirv.h"

/* What calls may come to, with the status that it stands for (API: the function's own, from functions.inc). */
#define HDWG_ROW_LIST(X) \
    X(FINE,          INTERNAL,                 "no error") \
    X(OUT_OF_MEMORY, OUT_OF_DEVICE_MEMORY, "out of memory") \
    X(VALIDATION,    API,                  "the call is not valid") \
    X(INTERNAL,      API,                  "an error of the implementation") \
    X(NOTHING,       API,                  "it gives nothing") \
    X(LOST,          DEVICE_LOST,          "the device is lost")
typedef enum hdwg_row {
#define HDWG_ROW(name, status, text) HDWG_ROW_##name,
    HDWG_ROW_LIST(HDWG_ROW)
#undef HDWG_ROW
    HDWG_ROW_COUNT
} hdwg_row;

typedef enum hdwg_function {
#define HDWG_FUNCTION(name, gives, arguments, status, results) HDWG_FN_##name,
#define HDWG_RELEASE(name)                                     HDWG_FN_##name##Release,
#include "device/webgpu/functions.inc"
    HDWG_FN_COUNT
} hdwg_function;
const hdi_function *hdwg_function_get(hdwg_function function);

typedef struct hdwg_wg {
#define HDWG_FUNCTION(name, gives, arguments, status, results) gives (*name) arguments;
#define HDWG_RELEASE(name)                                     void (*name##Release)(WGPU##name);
#include "device/webgpu/functions.inc"
} hdwg_wg;
/* The functions, or NULL with the reason and its mend. The library stays in the process. */
const char *hdwg_load(hdwg_wg *wg, const char **out_mend);

/* For tests: asked before every fallible call; what is not HDWG_ROW_FINE is what the call comes to, without being made.
 * NULL: nobody is asked. */
typedef hdwg_row (*hdwg_fault_fn)(hdwg_function function);
void hdwg_fault_set(hdwg_fault_fn fault);

/* The last call of a thread, and what came of it. */
typedef struct hdwg_outcome {
    hdwg_function function;
    hdwg_row      row;
    char          text[512]; /* the implementation's own words */
} hdwg_outcome;
extern _Thread_local hdwg_outcome hdwg_last;
bool hdwg_before(hdwg_function function); /* false: a test lets it fail */
static inline bool hdwg_after(void) { return hdwg_last.row == HDWG_ROW_FINE; }
static inline bool hdwg_after_making(const void *made) {
    if (!made && hdwg_last.row == HDWG_ROW_FINE) hdwg_last.row = HDWG_ROW_NOTHING;
    return hdwg_last.row == HDWG_ROW_FINE;
}

/* Calls a function; true when it succeeded, else hdwg_fail can explain. */
#define HDWG_CALL(device, name, ...) (hdwg_before(HDWG_FN_##name) && ((device)->wg.name(__VA_ARGS__), hdwg_after()))
/* The same of a function that makes an object; what it gives is to be ended also when it failed. */
#define HDWG_MAKE(device, out, name, ...) \
    (*(out) = NULL, hdwg_before(HDWG_FN_##name) && (*(out) = (device)->wg.name(__VA_ARGS__), hdwg_after_making(*(out))))
/* Gives an object back, if there is one; never under work that does not end. */
#define HDWG_END(device, name, object) \
    do { if ((object) && !(device)->abandoned) (device)->wg.name##Release(object); (object) = NULL; } while (0)

/* Facts of a device that are not caps. */
typedef struct hdwg_facts {
    WGPULimits limits;
    bool       has_timestamps;
} hdwg_facts;
WGPUInstance hdwg_instance_new(const hdwg_wg *wg); /* NULL: hdwg_fail can explain */
/* Adapters that can be used, at most `room`; those with an entry in `out_adapters` (NULL: none is wanted) are to be
 * released. */
uint32_t hdwg_list(const hdwg_wg *wg, WGPUInstance instance, hdwg_facts *out_facts, WGPUAdapter *out_adapters,
                   hdi_found *out_found, uint32_t room);
void hdwg_probe(const hdi_host *host, hdi_probe *out_probe);

struct hdi_memory {
    hdi_used   used;
    WGPUBuffer buffer;
    char      *host;  /* its copy in the host's sight; NULL: none */
    uint64_t   bytes; /* a multiple of 16 */
};

/* A pipeline with the layout of its one bind group. */
struct hdi_loaded_kernel {
    hdi_used            used;
    WGPUBindGroupLayout layout;
    WGPUComputePipeline pipeline;
    hdi_spirv_printed   printed;
};

/* What commands need besides themselves, one after the other: each dispatch, and each copy or fill that a kernel makes,
 * a bind group and its launch words at a multiple of HDWG_LAUNCH_BYTES. */
enum { HDWG_LAUNCH_BYTES = 256, HDWG_LAUNCH_WORDS = HDWG_LAUNCH_BYTES / 4 };
typedef struct hdwg_script {
    WGPUBuffer     launches;
    WGPUBindGroup *groups;
    uint32_t       group_count, group_capacity;
} hdwg_script;
typedef struct hdwg_command_buffer { /* what is kept of encoded commands */
    hdi_command_buffer base;
    hdwg_script        script;
} hdwg_command_buffer;

/* Bytes on their way from the device to a memory's copy on the host; `at`: where in the job's reader. */
typedef struct hdwg_carry {
    hdi_memory *memory;
    uint64_t    offset, bytes, at;
} hdwg_carry;

/* A submission under way, or one whose times are still asked for. */
typedef struct hdwg_job {
    uint64_t     ticket, begun_ns;
    atomic_int   state;         /* hdwg_job_state, set by a callback */
    bool         watched;       /* that callback was asked for */
    hdwg_script  script;        /* of commands that are handed over once */
    hdwg_carry  *carries;
    uint32_t     carry_count, carry_capacity;
    WGPUBuffer   reader;        /* mapped when all is done; NULL: nothing is to be read */
    uint64_t     reader_bytes, read_bytes;
    WGPUQuerySet queries;
    WGPUBuffer   resolved;
    uint64_t    *ticks;
    uint32_t     tick_room, mark_count;
} hdwg_job;
typedef enum hdwg_job_state { HDWG_JOB_RUNS, HDWG_JOB_DONE, HDWG_JOB_FAILED } hdwg_job_state;

enum { HDWG_JOBS = 64, HDWG_MOST_MARKS = 4096 };
struct hdi_backend_device {
    hdi_inflight inflight;
    const hdi_host *host;
    hdwg_wg      wg;
    hdwg_facts   facts;
    hdi_found    found;
    WGPUInstance instance;
    WGPUAdapter  adapter;
    WGPUDevice   device;
    WGPUQueue    queue;
    hdi_loaded_kernel bytes_kernel; /* copies and fills that WebGPU does not make itself */
    hdwg_job     jobs[HDWG_JOBS]; /* of ticket t: jobs[t % HDWG_JOBS] */
    hdi_loss     loss;
    bool         abandoned;       /* work on it may not have ended: what it uses is left to the driver */
};

/* Says what the last call came to. A loss stays. */
hd_status hdwg_fail(hdi_backend_device *device, hd_error *error, const char *format, ...) HDI_PRINTF(3, 4);
hd_status hdwg_lost(const hdi_backend_device *device, hd_error *error);
hd_status hdwg_no_memory(hd_error *error, const char *what); /* OUT_OF_HOST_MEMORY of our own */
/* The device's callbacks. */
void hdwg_on_error(const WGPUDevice *of, uint32_t type, WGPUStringView message, void *device, void *unused);
void hdwg_on_loss(const WGPUDevice *of, uint32_t reason, WGPUStringView message, void *device, void *unused);

/* memory.c */
bool hdwg_buffer_new(hdi_backend_device *device, uint64_t bytes, uint64_t usage, WGPUBuffer *out_buffer);
hd_status hdwg_alloc(hdi_backend_device *device, const hdi_alloc_desc *desc, hdi_memory **out_memory, hd_error *error);
void hdwg_memory_end(hdi_backend_device *device, hdi_used *memory);
/* kernel.c */
hd_status hdwg_kernel_load(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                           hdi_loaded_kernel **out_kernel, bool *out_from_cache, hd_error *error);
void hdwg_kernel_end(hdi_backend_device *device, hdi_used *kernel);
bool hdwg_kernel_build(hdi_backend_device *device, const char *text, size_t text_bytes,
                       hdi_loaded_kernel *loaded);                            /* of what was printed */
void hdwg_kernel_drop(hdi_backend_device *device, hdi_loaded_kernel *kernel); /* its objects */
/* script.c */
hd_status hdwg_script_make(hdi_backend_device *device, const hdi_submission *submission, hdwg_script *script,
                           hd_error *error);
void hdwg_script_end(hdi_backend_device *device, hdwg_script *script);
hd_status hdwg_record(hdi_backend_device *device, const hdi_submission *submission, hdi_command_buffer *out_buffer,
                      hd_error *error);
void hdwg_record_end(hdi_backend_device *device, hdi_command_buffer *buffer);
/* Is the copy or fill made by a kernel? Then in so many pieces of HDWG_PIECE_BYTES; 0: WebGPU makes it. */
#define HDWG_PIECE_BYTES (UINT64_C(1) << 26)
uint32_t hdwg_piece_count(const hdi_submission *submission, const hdi_cmd *cmd);
void hdwg_piece_groups(uint64_t bytes, uint32_t out_groups[2]); /* workgroups of one that long */
bool hdwg_bytes_kernel_make(hdi_backend_device *device);
/* encode.c: commands become a command buffer. */
bool hdwg_encode(hdi_backend_device *device, const hdi_submission *submission, const hdwg_script *script, hdwg_job *job,
                 WGPUCommandBuffer *out_commands);
/* carry.c: between memory and its copy in the host's sight. */
bool hdwg_carry_up(hdi_backend_device *device, const hdi_submission *submission);
bool hdwg_carry_plan(hdi_backend_device *device, const hdi_submission *submission,
                     hdwg_job *job); /* what comes back: carries, and the reader */
bool hdwg_carry_encode(hdi_backend_device *device, const hdwg_job *job, WGPUCommandEncoder encoder);
bool hdwg_carry_down(hdi_backend_device *device, hdwg_job *job); /* out of the mapped reader, times too */
/* submit.c */
hd_status hdwg_submit(hdi_backend_device *device, hdi_submission *submission, uint64_t *out_ticket, hd_error *error);
hd_status hdwg_poll(hdi_backend_device *device, uint64_t ticket, bool *out_done, hd_error *error);
hd_status hdwg_wait(hdi_backend_device *device, uint64_t ticket, uint64_t timeout_ns, hd_error *error);
hd_status hdwg_profile(hdi_backend_device *device, uint64_t ticket, uint64_t *out_ns, uint32_t room,
                       uint32_t *out_count, hd_error *error);
bool hdwg_rest(hdi_backend_device *device); /* waits until nothing runs any more, at most wait_ns; true when so */
void hdwg_jobs_end(hdi_backend_device *device);
#endif
