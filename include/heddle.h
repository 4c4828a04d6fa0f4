/* heddle.h: machine-learning compute on any GPU and on the CPU, from C.
 *
 * WHAT IT IS
 *   You describe a batch of tensor operations once (a program), heddle decides how and where it runs (a plan),
 *   and from then on every run is one submission to each device it uses, with nothing built or compiled again, and nothing
 *   recorded again where the device's API can replay commands (hd_plan_stats.records tells).
 *
 * STEP BY STEP
 *   1. hd_context_create       one per process is usual; it holds errors, options and the list of devices
 *   2. hd_device_open          the best device, or the one you name; the CPU where there is no GPU
 *   3. hd_program_create       then hd_input, hd_matmul, hd_relu, ... and hd_output: ids in, ids out, no data
 *   4. hd_plan_create          shapes checked, operations fused, memory placed, kernels chosen: once
 *   5. hd_plan_write           inputs and weights go in by name; what you do not write again stays on the device
 *   6. hd_plan_run             one submission to each device; again and again
 *   7. hd_plan_read            outputs come back by name
 *   8. hd_context_destroy      ends everything that was made from it
 *
 * A COMPLETE PROGRAM is examples/02_matmul.c; the README shows it too.
 *
 * RULES THAT HOLD EVERYWHERE
 *   Shapes     row-major, the last axis is the fastest; C = A x B as on paper: [M,K] x [K,N] = [M,N].
 *   Letters    B batch, T tokens (query rows), S cached tokens, H heads, D head size, M N K as in matmul, V vocabulary.
 *   Ownership  context > device > buffer, plan, ticket; plan > stream; context > program, kernel. `create` and `open` make a thing
 *              yours, `destroy` and `close` end it and everything below it. NULL is always allowed there. Destroying
 *              never waits for the device and never frees memory that a running submission uses. Pointers passed in
 *              are borrowed for the call only; strings and structs handed out stay valid as their function says.
 *   Handles    what a create call gives out is a handle, not an address: a call with one whose object was ended, by its own
 *              destroy or with what it was made from, is STALE_HANDLE, as is one of another kind, and destroying it again does
 *              nothing. Objects of two contexts, and values of two programs, are refused together. (A call that is under way
 *              while another thread ends its object is not found out.)
 *   Fork       drivers and threads do not survive a fork: in the child every call with an object fails at once with FORKED,
 *              and so does hd_context_create if the parent had made a context before. Fork first, or exec.
 *   Stack      calls need less than 96 KiB of the calling thread's stack; what a driver needs comes on top of it.
 *   Errors     every call that can fail returns an hd_status; the first failure's details wait on the context until
 *              hd_context_error takes them. Building a program is sticky instead: a bad operation yields value 0, all
 *              that uses it yields 0 too, and hd_program_check (or hd_plan_create) says which operation and why.
 *   Threads    a context and its devices, buffers and tickets may be used from many threads at once. A program
 *              belongs to one thread until it is finished; a plan runs for one thread at a time.
 *   Output     the library never prints, exits or aborts. It logs to the call-back you give, or nowhere.
 *   Structs    every desc may be NULL or zeroed: zero means "the default".
 */
#ifndef HEDDLE_H
#define HEDDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(HEDDLE_SHARED) && defined(_WIN32)
#  ifdef HEDDLE_BUILD
#    define HD_API __declspec(dllexport)
#  else
#    define HD_API __declspec(dllimport)
#  endif
#elif defined(__GNUC__)
#  define HD_API __attribute__((visibility("default")))
#else
#  define HD_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define HD_VERSION_MAJOR 0
#define HD_VERSION_MINOR 1
#define HD_VERSION_PATCH 0

/** The library's version as text, "0.1.0". Static storage; any thread. */
HD_API const char *hd_version(void);

/* ------------------------------------------------------------------------------------------------ 1. status codes */

/** Every status: X(CODE, number, "name", "what it means", "what to do"). 0 is success, failures are negative. */
#define HD_STATUS_LIST(X) \
    X(OK,                      0, "ok", "no error", "") \
    X(INVALID_ARGUMENT,       -1, "invalid-argument", "an argument is outside of what the call accepts", \
                                "correct the argument named in the detail") \
    X(NULL_POINTER,           -2, "null-pointer", "a required pointer is NULL", "pass the object that the call needs") \
    X(ZERO_SIZE,              -3, "zero-size", "a size, count or group count is zero", "use at least 1") \
    X(SHAPE,                  -4, "shape", "shapes do not fit together", "compare the shapes in the detail") \
    X(TYPE,                   -5, "type", "the operation does not take this data type", \
                                "cast first, or see docs/ops.md") \
    X(UNKNOWN_VALUE,          -6, "unknown-value", "a value id that this program never gave out", \
                                "use ids of the same program only") \
    X(NAME_NOT_FOUND,         -7, "name-not-found", "no input, output or state has this name", \
                                "use a name from the program") \
    X(NAME_TAKEN,             -8, "name-taken", "the name is used already", "choose another name") \
    X(WRONG_STATE,            -9, "wrong-state", "the object is not in a state that allows this call", \
                                "follow the order of calls in heddle.h") \
    X(PARSE,                 -10, "parse", "the text or file is not well formed", \
                                "mend what stands at that position") \
    X(LIMIT,                 -11, "limit", "a stated limit is exceeded", \
                                "make it smaller; the detail names the limit") \
    X(UNSUPPORTED,           -12, "unsupported", "this device or build cannot do it", "choose another device or form") \
    X(OUT_OF_HOST_MEMORY,    -13, "out-of-host-memory", "the system has no memory left", \
                                "free memory or use smaller tensors") \
    X(OUT_OF_DEVICE_MEMORY,  -14, "out-of-device-memory", "the device has no memory left", \
                                "use smaller tensors, a budget, or another device") \
    X(OVER_BUDGET,           -15, "over-budget", "the plan needs more than its memory budget", \
                                "raise the budget or shrink the batch") \
    X(RUNTIME_NOT_FOUND,     -16, "runtime-not-found", "the driver's library is not installed", \
                                "install the driver named in the detail") \
    X(UNSUPPORTED_VERSION,   -17, "unsupported-version", "the driver or file is of a version that is not supported", \
                                "update the driver or convert the file") \
    X(API,                   -18, "api", "a driver call failed", "see the native code in the detail") \
    X(NO_DEVICE,             -19, "no-device", "no device fits the request", \
                                "run `heddle devices` to see what there is and why") \
    X(INSTANCE_CREATION,     -20, "instance-creation", "the driver's instance could not be made", \
                                "check the driver's installation") \
    X(DEVICE_CREATION,       -21, "device-creation", "the device could not be opened", \
                                "close other users of the device or update its driver") \
    X(MEMORY_TYPE_NOT_FOUND, -22, "memory-type-not-found", "no kind of memory on the device fits the use", \
                                "choose another use or device") \
    X(MODULE,                -23, "module", "the kernel's SPIR-V is damaged or outside of the supported subset", \
                                "docs/spirv-subset.md lists what is taken") \
    X(PIPELINE_CREATION,     -24, "pipeline-creation", "the driver could not compile the kernel", \
                                "update the driver or report the kernel named") \
    X(KERNEL_NOT_FOUND,      -25, "kernel-not-found", "no kernel fits the operation, or the entry point is missing", \
                                "check the entry point's name; see docs/ops.md") \
    X(ARGUMENT_COUNT,        -26, "argument-count", "the kernel takes another number of buffers or constants", \
                                "match the kernel's bindings and push constants") \
    X(COMMAND_BUFFER,        -27, "command-buffer", "commands could not be recorded", \
                                "see the native code in the detail") \
    X(QUEUE,                 -28, "queue", "the device's queue refused the work", "see the native code in the detail") \
    X(TIMEOUT,               -29, "timeout", "the work did not finish in the given time; it goes on", \
                                "wait again, or with a longer time") \
    X(DEVICE_LOST,           -30, "device-lost", "the device was lost; it stays lost until it is opened anew", \
                                "open it again, or allow fail-over") \
    X(NOT_INITIALIZED,       -31, "not-initialized", "the driver is not initialised", "open the device first") \
    X(DEINITIALIZED,         -32, "deinitialized", "the driver shut down under the program", "restart the program") \
    X(IO,                    -33, "io", "a file could not be read or written", "check the path and its permissions") \
    X(STRICT,                -34, "strict", "strict mode refuses a fall-back", \
                                "unset HEDDLE_STRICT or name a real device") \
    X(INTERNAL,              -35, "internal", "heddle broke one of its own rules", "please report it with the detail") \
    X(STALE_HANDLE,          -36, "stale-handle", "an object is used that was ended, or is of another kind", \
                                "use what its create call gave out, and not after its end") \
    X(FORKED,                -37, "forked", "the process was forked off from one that used heddle", \
                                "fork before the first context, or start the other program by exec") \
    X(NOT_FINITE,            -38, "not-finite", "an operation made a NaN or an infinity", \
                                "the detail names it; look at its operands")

/** What a call came to. HD_OK is 0; every failure is negative. */
typedef enum hd_status {
#define HD_STATUS_ENUM(code, number, name, text, hint) HD_STATUS_##code = number,
    HD_STATUS_LIST(HD_STATUS_ENUM)
#undef HD_STATUS_ENUM
    HD_OK = 0
} hd_status;

/** The status' short name, "device-lost"; "unknown" for a number that is no status. Static; any thread. */
HD_API const char *hd_status_name(hd_status status);
/** What the status means, one sentence. Static; any thread. */
HD_API const char *hd_status_text(hd_status status);
/** What to do about it, one sentence; "" for HD_OK. Static; any thread. */
HD_API const char *hd_status_hint(hd_status status);

/** A failure in full, as the context keeps it. */
typedef struct hd_error {
    hd_status status;      /* HD_OK: there is none */
    int64_t   native_code; /* the driver's own code (a VkResult, a cl_int, an errno), 0 where none was involved */
    char      backend[16]; /* "vulkan", "cpu", ...; "" where none was involved */
    char      op[32];      /* the operation's name, or "" */
    char      device[64];  /* the device's name, or "" */
    char      text[384];   /* one line: what failed, with the figures, and what to do */
} hd_error;

/* ------------------------------------------------------------------------------------------ 2. data types, shapes */

/** Every data type: X(CODE, "name", elements a block, bytes a block). Blocks lie along the last axis, as in GGUF. */
#define HD_DTYPE_LIST(X) \
    X(F32,   "f32",     1,   4) \
    X(F16,   "f16",     1,   2) \
    X(BF16,  "bf16",    1,   2) \
    X(I32,   "i32",     1,   4) \
    X(U8,    "u8",      1,   1) \
    X(Q4_0,  "q4_0",   32,  18) \
    X(Q8_0,  "q8_0",   32,  34) \
    X(Q4_K,  "q4_k",  256, 144) \
    X(Q6_K,  "q6_k",  256, 210) \
    X(TQ2_0, "tq2_0", 256,  66) \
    X(Q4_1,  "q4_1",   32,  20) \
    X(Q5_0,  "q5_0",   32,  22) \
    X(Q5_1,  "q5_1",   32,  24) \
    X(Q2_K,  "q2_k",  256,  84) \
    X(Q3_K,  "q3_k",  256, 110) \
    X(Q5_K,  "q5_k",  256, 176) \
    X(TQ1_0, "tq1_0", 256,  54) \
    X(IQ4_NL, "iq4_nl", 32,  18) \
    X(IQ4_XS, "iq4_xs", 256, 136) \
    X(MXFP4, "mxfp4",  32,  17) \
    X(IQ2_XXS, "iq2_xxs", 256,  66) \
    X(IQ2_XS, "iq2_xs", 256,  74) \
    X(IQ2_S, "iq2_s",  256,  82) \
    X(IQ3_XXS, "iq3_xxs", 256,  98) \
    X(IQ3_S, "iq3_s",  256, 110) \
    X(IQ1_S, "iq1_s",  256,  50) \
    X(IQ1_M, "iq1_m",  256,  56) \
    X(I8,    "i8",      1,   1) \
    X(U32,   "u32",     1,   4) \
    X(I64,   "i64",     1,   8)

/** Type of a tensor's elements. The quantised types are weights: operand b of hd_matmul and the table of hd_gather. */
typedef enum hd_dtype {
    HD_DTYPE_NONE = 0,
#define HD_DTYPE_ENUM(code, name, elements, bytes) HD_##code,
    HD_DTYPE_LIST(HD_DTYPE_ENUM)
#undef HD_DTYPE_ENUM
    HD_DTYPE_COUNT
} hd_dtype;

/** The type's name, "q4_0"; "none" for anything else. Static; any thread. */
HD_API const char *hd_dtype_name(hd_dtype dtype);
/** The type called `name`, or HD_DTYPE_NONE. Any thread. */
HD_API hd_dtype hd_dtype_parse(const char *name);
/** Bytes of `elements` elements in a row of this type; 0 where they are not whole blocks or would overflow. */
HD_API uint64_t hd_dtype_bytes(hd_dtype dtype, uint64_t elements);

/** Numbers as elements of a float or quantised type, chosen as GGUF's own tools choose them: the same bytes. Those of iq1_s to
 *  iq3_s are hd_quantize_weighted's with weights of sqrt(2 m + x^2), where m is the mean square of a block. @param elements whole
 *  blocks of the type. @param out_data hd_dtype_bytes of them. Statuses: NULL_POINTER, TYPE (integers), SHAPE (not whole blocks).
 *  Any thread. */
HD_API hd_status hd_quantize(hd_dtype dtype, const float *values, uint64_t elements, void *out_data);
/** hd_quantize where errors do not count alike: elements are chosen so that, block by block, the sum of weights[i] times the square of
 *  what element i is off is small. Float types, q8_0, tq1_0, tq2_0 and mxfp4 are chosen as without weights. @param weights one for
 *  each value, finite and not below 0 (INVALID_ARGUMENT); where all of a block are 0 they count as 1; NULL: as hd_quantize.
 *  Statuses else as hd_quantize's. Any thread. */
HD_API hd_status hd_quantize_weighted(hd_dtype dtype, const float *values, const float *weights, uint64_t elements,
                                      void *out_data);
/** Elements of a float or quantised type as f32, exactly. Statuses as hd_quantize's. Any thread. */
HD_API hd_status hd_dequantize(hd_dtype dtype, const void *data, uint64_t elements, float *out_values);

/** The most axes that a tensor has. */
#define HD_MAX_RANK 6

/** The lengths of a tensor's axes, slowest first. Rank 0 is a single element. Every length is at least 1. */
typedef struct hd_shape {
    uint32_t rank;
    int64_t  dims[HD_MAX_RANK];
} hd_shape;

/** HD_SHAPE(4, 256): a shape from its lengths, as an expression. */
#ifdef __cplusplus
#  define HD_SHAPE(...) (hd_shape_of(__VA_ARGS__))
#else
#  define HD_SHAPE(...) ((hd_shape){ (uint32_t)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), { __VA_ARGS__ } })
#endif

/** Number of elements, or 0 where the shape is not valid or the product would overflow. Any thread. */
HD_API uint64_t hd_shape_elements(hd_shape shape);
/** Bytes of a dense tensor, or 0 where shape and type do not fit together. Any thread. */
HD_API uint64_t hd_tensor_bytes(hd_dtype dtype, hd_shape shape);

/* ---------------------------------------------------------------------------------------------------- 3. context */

typedef struct hd_context hd_context; /* options, errors, devices; the root of everything */
typedef struct hd_device  hd_device;  /* an opened device */
typedef struct hd_buffer  hd_buffer;  /* memory on a device */
typedef struct hd_program hd_program; /* what to compute */
typedef struct hd_plan    hd_plan;    /* how and where */
typedef struct hd_kernel  hd_kernel;  /* your own SPIR-V kernel */
typedef struct hd_ticket  hd_ticket;  /* a submission that is under way */

/** One function for all host memory: new (old NULL), resize, and free (new_bytes 0, returns NULL). Must be safe to
 *  call from many threads and return memory aligned for any type, or NULL when there is none. */
typedef struct hd_allocator {
    void *(*resize)(void *user, void *old, size_t old_bytes, size_t new_bytes);
    void *user;
} hd_allocator;

/** How much a log line matters. */
typedef enum hd_log_level { HD_LOG_DEFAULT = 0, HD_LOG_ERROR, HD_LOG_WARNING, HD_LOG_INFO, HD_LOG_DEBUG } hd_log_level;
/** Receives one line without a newline, from any thread; must not call heddle. `part` is "vulkan", "plan", ... */
typedef void (*hd_log_fn)(void *user, hd_log_level level, const char *part, const char *line);

/** Wishes for a context. A field that is zero takes its environment variable's value, or the default. HEDDLE_CPU has no field. */
typedef struct hd_context_desc {
    hd_allocator allocator;     /* zero: malloc and free */
    hd_log_fn    log;           /* zero: nothing is logged */
    void        *log_user;      /* passed to `log` */
    hd_log_level log_level;     /* HEDDLE_LOG=error|warning|info|debug; default warning */
    const char  *log_levels;    /* HEDDLE_LOG=warning,vulkan=debug,cache=error: the same, also for parts by their name, 8 at most;
                                   `log_level` counts for the others if it is set */
    const char  *backend;       /* HEDDLE_BACKEND=cuda,vulkan,cpu: look at these back ends only; of several the device of the
                                   first that has a real one is the best */
    const char  *device;        /* HEDDLE_DEVICE=ID: an id or index as `heddle devices` prints them */
    int          strict;        /* HEDDLE_STRICT=1: 1 = no fall-back, no software device, no null device; -1 = not strict */
    int          validation;    /* HEDDLE_VALIDATION=1: 1 = the driver's validation layers, reported through `log`, and heddle's own
                                   contracts: every plan is checked before it is loaded, every submission before and after it is
                                   handed over; what breaks one fails with INTERNAL and goes no further (hd_device_stats counts
                                   them). Builds for debugging check contracts always */
    uint32_t     cpu_threads;   /* HEDDLE_THREADS=n: threads of the CPU device. Compiling the kernels of a plan takes up to 16
                                   of them, and large copies between host and device up to 8. Default: the processors that
                                   this process may use */
    const char  *cache_dir;     /* HEDDLE_CACHE=path: compiled kernels; "" for none; default: the user's cache folder.
                                   One that others can write to is not used, with a warning in the log */
    int          one_queue;     /* HEDDLE_QUEUES=1: 1 = uploads, runs and downloads take turns in one queue of the device.
                                   Default: queues of their own where the device has them */
    uint64_t     wait_ns;       /* HEDDLE_WAIT_MS: longest wait for a device before HD_STATUS_TIMEOUT; default 60 s */
    int          verify;        /* HEDDLE_VERIFY=0|1|2: kernels are compared with known answers before their first use on a
                                   device, which takes some seconds once for each driver. -1: not at all, but for Level Zero
                                   and WebGPU, which were never run on hardware. 1: on GPUs. 2: also on software devices and
                                   the CPU. Default: 1. Verdicts on disk count in any case */
    int          find_nan;      /* HEDDLE_FIND_NAN=1: 1 = a run fails with NOT_FINITE where an operation makes a NaN, and names the
                                   first one; its outputs can be read. 2 = also infinities, but those of inputs. Plans count the
                                   elements of each value then: they are slower, larger and hardly fused. Of runs under way side by
                                   side the last one is looked at. Default: 0 */
    const char  *faults;        /* HEDDLE_FAULT=submit:2:device-lost,alloc:5+:out-of-device-memory: calls that fail on purpose, to try
                                   how a program takes it. Each is CALL:N:STATUS: the Nth call of a device (N+: all from there on)
                                   of alloc (memory), kernel (loading one), submit or wait fails with the status of that name. Kernels
                                   and measurements are not kept on disk then. Refused in strict mode */
} hd_context_desc;

/** Makes a context. @param desc NULL for defaults. @param out_context yours; hd_context_destroy.
 *  Statuses: NULL_POINTER, OUT_OF_HOST_MEMORY, INVALID_ARGUMENT (an environment variable with a bad value). */
HD_API hd_status hd_context_create(const hd_context_desc *desc, hd_context **out_context);
/** Ends the context and all that was made from it, after waiting (at most wait_ns) for work in flight. NULL is fine. */
HD_API void hd_context_destroy(hd_context *context);
/** Takes the first failure since the last call as one line, "" where there was none. The text is valid until the
 *  next call on this context. For use from several threads take hd_context_take_error. */
HD_API const char *hd_context_error(hd_context *context);
/** Takes the first failure since the last take, in full. @param out_error status HD_OK where there was none. */
HD_API void hd_context_take_error(hd_context *context, hd_error *out_error);
/** Reports a failure of a layer that is built on heddle. It is logged, and hd_context_error returns it if it is the first.
 *  Any thread. @return error->status; HD_OK does nothing. */
HD_API hd_status hd_context_put_error(hd_context *context, const hd_error *error);
/** Logs a line of a layer that is built on heddle. `part` names the layer: "model". Any thread. */
HD_API void hd_context_log(hd_context *context, hd_log_level level, const char *part, const char *line);
/** Whether the context is strict (hd_context_desc.strict, HEDDLE_STRICT). */
HD_API bool hd_context_strict(const hd_context *context);
/** The folder where compiled kernels and what was measured are kept; "" where nothing is kept. Lives as long as the context. */
HD_API const char *hd_context_cache_dir(const hd_context *context);
/** The allocator that the context uses, for layers that are built on heddle. */
HD_API hd_allocator hd_context_allocator(const hd_context *context);
/** Calls `run` once for each index below `count`, in any order, on the context's threads (HEDDLE_THREADS) and the caller's, and
 *  returns when all are done: for layers that are built on heddle, where each call takes 0.1 ms or more. Any thread. */
HD_API void hd_context_share(hd_context *context, void (*run)(void *user, uint64_t index), void *user, uint64_t count);
/** How many objects of this context are alive: devices, buffers, programs, plans, kernels, tickets. */
HD_API uint64_t hd_context_live_objects(const hd_context *context);
/** Counters of the context and of its opened devices for a dashboard, in the text format of Prometheus: "name{device="cpu"} value"
 *  a line, and what it is in front of it. Any thread. Parameters as hd_device_caps_text. Statuses: LIMIT (cut),
 *  OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_context_metrics(hd_context *context, char *out_text, size_t room, size_t *out_needed);

/* For layers that are built on heddle and give out objects of their own, which are found by handles as heddle's are. */

/** Makes a handle for an object. @param context the object's; where a later misuse is told. @param kind its name, "model", for
 *  error texts; lives as long as the handle and is always the same pointer for a kind. @param out_handle yours; hd_handle_end. Any
 *  thread. Statuses: NULL_POINTER, OUT_OF_HOST_MEMORY, FORKED. */
HD_API hd_status hd_handle_new(hd_context *context, const char *kind, void *object, void **out_handle);
/** The object behind a handle, or NULL where it is none of this kind, or its object was ended. Takes no lock. Any thread. */
HD_API void *hd_handle_find(const void *handle, const char *kind);
/** Takes a handle back. @return whether it was one until now: of several threads one is told so. */
HD_API bool hd_handle_end(void *handle);
/** Why hd_handle_find gave NULL; the object's context is told, if it lives. Statuses: NULL_POINTER, STALE_HANDLE, FORKED. */
HD_API hd_status hd_handle_refuse(const void *handle, const char *kind);

/* ---------------------------------------------------------------------------------------------------- 4. devices */

/** What kind of hardware it is. */
typedef enum hd_device_kind {
    HD_DEVICE_NONE = 0, HD_DEVICE_DISCRETE_GPU, HD_DEVICE_INTEGRATED_GPU, HD_DEVICE_OTHER, HD_DEVICE_CPU,
    HD_DEVICE_SOFTWARE, /* a GPU driver that computes on the CPU, such as lavapipe */
    HD_DEVICE_NULL      /* accepts everything and computes nothing: for tests only */
} hd_device_kind;

/** A device that is there, opened or not. */
typedef struct hd_device_info {
    char           id[48];       /* stable: "cpu", "vulkan:10de-2335-<uuid8>"; give it to hd_device_open */
    char           name[128];    /* as the driver says it */
    char           backend[16];  /* "cpu", "vulkan", ... */
    char           driver[128];  /* driver name and version */
    char           pci[16];      /* "0000:01:00.0", or "" */
    hd_device_kind kind;
    uint64_t       memory_bytes; /* of the device's largest heap */
    uint32_t       rank;         /* 0 is the best */
    uint32_t       queues;       /* that work side by side: 3 for uploads, runs and downloads, or 1 for all of them */
    uint32_t       half_rows;    /* from so many rows on products are faster with weights in f16 than with quantised ones, in fast mode, so
                                    that who has room keeps them as f16, too; 0: they are not */
    uint64_t       measured_ns;  /* the time of HD_FACT_RANK, measured in an earlier context; 0: never measured with this driver */
} hd_device_info;

/** A back end: whether it was compiled in, whether it can work here, and if not why, and what would mend it. */
typedef struct hd_backend_info {
    char     name[16];
    bool     compiled;     /* part of this build */
    bool     available;    /* has at least one device here and now */
    uint32_t device_count;
    char     reason[192];  /* why it is not available, or "" */
    char     mend[192];    /* what would make it available, or "" */
} hd_backend_info;

/** Lists the devices, best first. @param out_infos NULL to ask the number only. @param count in: room in out_infos;
 *  out: number of devices. Statuses: NULL_POINTER, LIMIT (more devices than room; the first ones are filled in). */
HD_API hd_status hd_devices(hd_context *context, hd_device_info *out_infos, size_t *count);
/** Lists the back ends, in the order in which they are tried; parameters as hd_devices. */
HD_API hd_status hd_backends(hd_context *context, hd_backend_info *out_infos, size_t *count);
/** The facts of a device (limits, features, memory heaps) as text, one "name value" a line. @param id as in
 *  hd_device_info. @param out_text at most `room` bytes with the ending zero. @param out_needed bytes in full, may be
 *  NULL. Statuses: NULL_POINTER, NO_DEVICE, LIMIT (cut). */
HD_API hd_status hd_device_caps_text(hd_context *context, const char *id, char *out_text, size_t room, size_t *out_needed);

/** Wishes for a device. */
typedef struct hd_device_desc {
    const char *id;        /* id or "backend" or "backend:index"; NULL: HEDDLE_DEVICE, else the best */
    /* To live beside your own Vulkan (1.1 or later): hand in what you made; heddle then creates no device of its own and ends none
       of yours, which must live longer. No feature or extension is needed, and none is used. One queue that computes; while a call
       with the device, or with what was made on it, is under way, no other thread may use that queue. examples/08_own_vulkan.c */
    void *vulkan_instance, *vulkan_physical_device, *vulkan_device; /* a VkInstance, VkPhysicalDevice, VkDevice; all or none */
    uint32_t vulkan_queue_family, vulkan_queue_index;
    void *vulkan_get_instance_proc_addr; /* a PFN_vkGetInstanceProcAddr; NULL: that of libvulkan */
} hd_device_desc;

/** Opens a device. With no id the best real one is taken; a software Vulkan device is never taken silently (the CPU
 *  comes first), and what was chosen and why is in hd_device_selection and the log.
 *  @param desc NULL for the best. @param out_device yours; hd_device_close.
 *  Statuses: NULL_POINTER, NO_DEVICE, STRICT, DEVICE_CREATION and the driver's failures. */
HD_API hd_status hd_device_open(hd_context *context, const hd_device_desc *desc, hd_device **out_device);
/** Closes the device and everything made on it, after work in flight ended (at most wait_ns). NULL is fine. */
HD_API void hd_device_close(hd_device *device);
/** Facts of an opened device, valid until it is closed. */
HD_API const hd_device_info *hd_device_get_info(const hd_device *device);
/** The context that the device was opened in; NULL where it was closed. */
HD_API hd_context *hd_device_context(const hd_device *device);
/** One line: what was requested, what was there, what was selected and why. Valid until the device is closed. */
HD_API const char *hd_device_selection(const hd_device *device);

/** What the known answers of a kernel variant came to: of one kernel over one data type or operation, in fast or exact mode. */
typedef struct hd_verdict {
    const char *kernel;  /* "matvec_dot"; static storage. "arithmetic": f32 as exact mode needs it */
    char        form[32];/* "q4_0", "sum f32", "exp floats" */
    bool        exact;   /* in exact mode: the bits must be the reference's */
    bool        wrong;   /* it is not used on this device */
    uint32_t    answers; /* small programs that were run and compared */
    double      worst;   /* largest error as a share of what docs/ops.md allows; infinite where it gave no result */
} hd_verdict;
/** What of a program was measured: a run with its inputs there already and its outputs left there, writing all of its inputs with what the
 *  run behind that takes longer, or reading all of its outputs. */
typedef enum hd_sample_part { HD_SAMPLE_RUN = 0, HD_SAMPLE_WRITE, HD_SAMPLE_READ } hd_sample_part;
/** A measurement, from which figures are found. */
typedef struct hd_sample {
    const hd_program *program;   /* what ran in one submission: operations of one kind and type, such as eight softmaxes. NULL: a transfer
                                    of one value, whatever it is for */
    hd_sample_part part;
    uint64_t transfer_bytes;     /* of a transfer without a program */
    uint64_t ns;                 /* how long it took: the median of several */
} hd_sample;
/** What a device takes for one kind of work, about: fixed_ns, and arithmetic and bytes at these rates. docs/route.md tells how it is found,
 *  and of the curve beside it. */
typedef struct hd_device_figure {
    const char *work;            /* "matmul", ...; "submit", "upload", "download". Static storage */
    const char *type;            /* "word", "half", "quantised"; "" where there is none. Static storage */
    double      fixed_ns;        /* of each kernel, submission or transfer */
    double      flops_per_s, bytes_per_s; /* 0: takes no time */
    double      error;           /* median of |predicted - measured| / measured over its samples, each predicted by the others */
    uint32_t    samples;         /* 0: assumed from the device's facts, not measured */
} hd_device_figure;
/** What was chosen for kernels of one kind, type and size, among the ways that they have of computing their work. */
typedef struct hd_kernel_choice {
    char     work[128];    /* "matvec q4_0, rows 1, size 2^22-2^24": docs/route.md tells what rows and size are */
    char     standard[24]; /* the default of plans, without measurements: "dot_s8_c2" */
    char     chosen[24];   /* what plans use from now on; the default where nothing is faster by more than 3 % */
    uint32_t options;      /* kernels compared, the default included; below 2: there is nothing to choose */
    double   gain;         /* time of the default divided by time of the chosen one; 1 where the default stays */
} hd_kernel_choice;

/** Kinds of what is known of a device; sums of them name several. */
typedef enum hd_fact_kind {
    HD_FACT_RANK = 1,    /* the time of 1,024 small steps that wait for each other, of 64 MiB on their way to the device and of a product
                            of matrices of 4,096 by 4,096 (a smaller one is measured, whose time tells) */
    HD_FACT_VERDICT = 2, /* which kernels are right there */
    HD_FACT_FIGURE = 4,  /* what its work takes, by which routes are found (hd_plan_desc.route) */
    HD_FACT_CHOICE = 8   /* which ways of computing are the fastest there */
} hd_fact_kind;
/** One thing that is known of a device. */
typedef struct hd_fact {
    hd_fact_kind kind;
    union {
        uint64_t         rank_ns;
        hd_verdict       verdict;
        hd_device_figure figure;
        hd_kernel_choice choice;
    };
} hd_fact;
/** Receives one fact; must not call heddle. */
typedef void (*hd_fact_fn)(void *user, const hd_fact *fact);

/** What hd_device_calibrate is to find out. */
typedef struct hd_calibrate_desc {
    uint32_t kinds;            /* a sum of hd_fact_kind; 0: rank and verdicts, which need nothing else, or, to forget, all */
    int      forget;           /* 1: nothing is found out; what was, of these kinds, is removed, on disk too, and assumptions take
                                  its place */
    const hd_sample *samples;  /* for figures; borrowed. What was known before counts on */
    size_t   sample_count;
    const hd_program *const *programs; /* for a choice; borrowed: 1 to 4 programs of operations of one kind that do not depend on
                                  each other, such as eight matrix products. They run one after the other, but side by side where
                                  one begins with the tensor that the one before began with. The first is of the class that
                                  counts. Inputs hold numbers at random in the range that a name such as "x -1 1" states, else
                                  -4 to 4 */
    size_t   program_count;
    uint32_t rounds;           /* of the first measurement for a choice, 0: 7; the second one has three times as many */
    hd_fact_fn report;         /* called for each thing that is found out, may be NULL */
    void    *user;             /* given to report */
} hd_calibrate_desc;

/** Finds out what is not known of a device by running on it, and keeps it on disk for the machine, the device and its driver;
 *  plans that are made later follow it, those that exist are not changed.
 *  - Rank: of all real devices that were measured, and of the routes to one GPU (hd_device_info.pci is the same), contexts made later
 *    rank the faster one first, and of software ones likewise behind them; what was not measured keeps its place. Its runs take less than
 *    2 s, beside what has to be compiled and judged the first time.
 *  - Verdicts: every kernel variant that plans for the device may hold runs on small known answers and is compared with the reference.
 *    Those that are wrong are avoided by every later plan, which takes the next best; where none is left such a plan fails
 *    (UNSUPPORTED, naming the kernel). They are kept for this version of the kernels. Where hd_context_desc.verify asks for it, plans do
 *    the same by themselves for what they use first. Takes a second on a CPU and, the first time, some 10 to 50 on a GPU whose host has
 *    16 cores to compile on.
 *  - Figures: from `samples`. `heddle tune` takes them.
 *  - Choice: every right way of computing `programs`, all of the same kind, type and class of size, is measured, and the fastest
 *    one is taken for what plans of that class hold from then on, in fast mode. One takes the place of the standard one only if
 *    known answers show it to be right there and if it is faster on each program by more than 3 % in two measurements, each in
 *    turn with the standard one.
 *  @param desc NULL for rank and verdicts. Statuses: NULL_POINTER, INVALID_ARGUMENT (a sample of several kinds of work, programs of several
 *  classes), LIMIT (too many choices), OUT_OF_HOST_MEMORY, OUT_OF_DEVICE_MEMORY, TIMEOUT, DEVICE_LOST, IO (figures or choices could not be
 *  kept), those of hd_plan_create. Any thread. */
HD_API hd_status hd_device_calibrate(hd_device *device, const hd_calibrate_desc *desc);
/** What is known of the device: its rank where it was measured, the kernels that are wrong (without their answers), all figures, those that
 *  are assumed too (samples is 0), and the choices that were made (without what they were compared with). @param out_facts NULL to ask
 *  the number only. @param count in: room in out_facts; out: number of facts. Statuses: NULL_POINTER, LIMIT (more facts than room; the
 *  first ones are filled in). Any thread. */
HD_API hd_status hd_device_facts(hd_device *device, hd_fact *out_facts, size_t *count);
/** How long the program is thought to take on the device. @param out_run_ns in one submission. @param out_transfers_ns writing all inputs
 *  and reading all outputs; NULL is fine for either. Statuses: those of hd_program_check, OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_device_predict(hd_device *device, const hd_program *program, uint64_t *out_run_ns, uint64_t *out_transfers_ns);

/** Counters of a device since it was opened. */
typedef struct hd_device_stats {
    uint64_t kernels_compiled;    /* compiled by the driver */
    uint64_t kernels_from_cache;  /* loaded from the cache on disk */
    uint64_t commands_recorded;   /* commands of plans encoded for the device: 0 for a replay */
    uint64_t submissions;         /* runs of plans that were handed over: one each */
    uint64_t pieces;              /* submissions to the device's queue for them; more than one where long work is cut */
    uint64_t transfer_submissions;/* submissions to the queue that only move data */
    uint64_t uploads, upload_bytes;     /* host to device, staged or written directly */
    uint64_t downloads, download_bytes; /* device to host */
    uint64_t direct_bytes;        /* part of the above that needed no staging copy */
    uint64_t device_bytes, device_bytes_peak; /* memory held on the device */
    uint64_t allocations;         /* allocations alive */
    uint64_t plan_requests, plan_hits;     /* plans created; those that reused a destroyed plan of the same structure */
    uint64_t kernel_requests, kernel_hits; /* kernels that new plans asked for; those that the device had loaded already */
    uint64_t staging_requests, staging_hits; /* staged transfers; those that reused staging memory */
    uint64_t contracts, contracts_broken;  /* checks of plans and submissions (hd_context_desc.validation), and those that found a fault */
} hd_device_stats;
/** Reads the counters. Statuses: NULL_POINTER. Any thread. */
HD_API hd_status hd_device_get_stats(hd_device *device, hd_device_stats *out_stats);
/** What memory of a device holds. */
typedef enum hd_memory_kind {
    HD_MEMORY_BUFFER = 0, /* of hd_buffer_create: weights and caches of models, too */
    HD_MEMORY_INPUT, HD_MEMORY_STATE, HD_MEMORY_OUTPUT, /* named values of plans, */
    HD_MEMORY_SCRATCH,    /* what plans compute on the way, */
    HD_MEMORY_CONSTANT,   /* and tables that the planner made; of plans that wait to be made again, too */
    HD_MEMORY_STAGING,    /* pinned memory for transfers */
    HD_MEMORY_KINDS
} hd_memory_kind;
/** The kind's name, "scratch". Static; any thread. */
HD_API const char *hd_memory_kind_name(hd_memory_kind kind);
/** One allocation on a device. */
typedef struct hd_memory_info {
    char           label[48]; /* of the buffer, or the name of the value; "" for none */
    hd_memory_kind kind;
    uint64_t       bytes;
    bool           in_place;  /* the host reads and writes it where it lies; else its bytes travel by copies */
} hd_memory_info;
/** What lies on the device now, the largest first; together it is hd_device_stats.device_bytes, and what is staged. @param out_infos
 *  NULL to ask the number only. @param count in: room in out_infos; out: number of allocations. Any thread. Statuses: NULL_POINTER,
 *  LIMIT (more than room), OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_device_memory(hd_device *device, hd_memory_info *out_infos, size_t *count);
/** A heap of a device's memory at this moment, as the driver tells it; of the CPU the machine's memory, as the system tells it. */
typedef struct hd_heap {
    uint64_t size_bytes;   /* all of it */
    uint64_t used_bytes;   /* taken now */
    uint64_t budget_bytes; /* how far `used_bytes` may grow, with all other programs in mind: what lies between would be given out now,
                              on the CPU within the control group of this process and without swapping */
    bool     own;          /* `used_bytes` is of this process alone (Vulkan; the CPU: without mapped files); else of all that use the
                              device (CUDA, HIP) */
    bool     local;        /* the device's own memory; else the host's, of which the device uses some */
} hd_heap;
#define HD_MAX_HEAPS 16
/** The heaps of a device's memory, each with its size and what is taken of it now. @param out_heaps NULL to ask the number only.
 *  @param count in: room in out_heaps; out: number of heaps, at most HD_MAX_HEAPS. Any thread. Statuses: NULL_POINTER, LIMIT (more than
 *  room; the first ones are filled in), UNSUPPORTED (the driver does not tell: OpenCL, Level Zero, WebGPU, some of Vulkan's),
 *  DEVICE_LOST. */
HD_API hd_status hd_device_heaps(hd_device *device, hd_heap *out_heaps, size_t *count);
/** Waits until the device has nothing to do. @param timeout_ns 0: the context's wait_ns. Statuses: TIMEOUT, DEVICE_LOST. */
HD_API hd_status hd_device_wait(hd_device *device, uint64_t timeout_ns);

/* ---------------------------------------------------------------------------------------------------- 5. buffers */

/** What a buffer is for; it decides the kind of memory. */
typedef enum hd_buffer_use {
    HD_BUFFER_STORAGE = 0, /* kernels read and write it: the device's own memory */
    HD_BUFFER_UPLOAD,      /* the host writes it, the device reads it */
    HD_BUFFER_READBACK     /* the device writes it, the host reads it */
} hd_buffer_use;

/** Wishes for a buffer. */
typedef struct hd_buffer_desc {
    uint64_t      bytes; /* at least 1 */
    hd_buffer_use use;
    const char   *label; /* seen in error texts and in the driver's tools; NULL for none */
    void         *memory; /* your own host memory in place of new memory, without a copy: on the CPU, and on other devices that can
                             read it where it lies (Vulkan with VK_EXT_external_memory_host, CUDA and HIP whose driver registers it,
                             OpenCL whose memory is the host's); elsewhere UNSUPPORTED: write the bytes then. It begins at a
                             multiple of 8, for Vulkan, CUDA and HIP of the device's binding_align, outlives the buffer and the runs
                             that use it, and is read-only where nothing on the device writes it: a file's mapping will do, for CUDA
                             and HIP a shared one (MAP_SHARED). NULL: new memory */
} hd_buffer_desc;

/** Makes a buffer of zeros (or of what desc->memory holds). Where the device has too little memory its caches are dropped,
 *  and it is tried once more. Statuses: NULL_POINTER, ZERO_SIZE, OUT_OF_DEVICE_MEMORY, LIMIT, UNSUPPORTED and
 *  INVALID_ARGUMENT (desc->memory). @param out_buffer yours; hd_buffer_destroy. */
HD_API hd_status hd_buffer_create(hd_device *device, const hd_buffer_desc *desc, hd_buffer **out_buffer);
/** Ends the buffer once no submission uses it. NULL is fine. */
HD_API void hd_buffer_destroy(hd_buffer *buffer);
/** Copies `bytes` from the host into the buffer at `offset`, of any size; returns when `data` may be reused.
 *  Statuses: NULL_POINTER, LIMIT (outside of the buffer), TIMEOUT, DEVICE_LOST. */
HD_API hd_status hd_buffer_write(hd_buffer *buffer, uint64_t offset, const void *data, uint64_t bytes);
/** The digest of `bytes` bytes of the buffer at `offset` (a multiple of 256), taken by the device: no more than 32 bytes come back. It is
 *  that of hd_hash, as bytes, of any length; waits for work that writes them. @param out_digest 32 bytes. Statuses: NULL_POINTER,
 *  ZERO_SIZE, INVALID_ARGUMENT (the offset; a buffer for reading back), LIMIT (bytes outside of the buffer), those of hd_plan_create
 *  and hd_plan_run. */
HD_API hd_status hd_buffer_hash(hd_buffer *buffer, uint64_t offset, uint64_t bytes, unsigned char *out_digest);
/** Copies `bytes` of the buffer at `offset` to the host; waits for work that writes it. Statuses as hd_buffer_write. */
HD_API hd_status hd_buffer_read(hd_buffer *buffer, uint64_t offset, void *out_data, uint64_t bytes);
/** The buffer's size in bytes. */
HD_API uint64_t hd_buffer_bytes(const hd_buffer *buffer);
/** A pointer to the buffer's memory where the host sees it (CPU, shared memory, UPLOAD and READBACK buffers), valid
 *  until the buffer ends; access it only while no submission uses the buffer. Statuses: NULL_POINTER, UNSUPPORTED. */
HD_API hd_status hd_buffer_map(hd_buffer *buffer, void **out_pointer);

/* --------------------------------------------------------------------------------------------------- 6. programs */

/** A value of a program: an input or an operation's result. 0 is "none" and the mark of a failed operation. Another program's
 *  value is refused by name: of 2,047 programs made one after the other no two have a value in common. */
typedef uint32_t hd_value;

/** Makes an empty program. @return NULL where memory ran out. Yours; hd_program_destroy. */
HD_API hd_program *hd_program_create(hd_context *context);
/** Ends the program; plans made from it live on. NULL is fine. */
HD_API void hd_program_destroy(hd_program *program);
/** Tells whether the program is well formed: the status of the first bad operation, which the context's error names. */
HD_API hd_status hd_program_check(hd_program *program);
/** Prints the program's text form, which hd_program_parse reads back to the same bytes. Parameters as
 *  hd_device_caps_text. Statuses: NULL_POINTER, LIMIT (cut). */
HD_API hd_status hd_program_print(const hd_program *program, char *out_text, size_t room, size_t *out_needed);
/** Reads a program from its text form; hostile text is refused with the line. @param out_program yours.
 *  Statuses: PARSE, SHAPE, TYPE, LIMIT, OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_program_parse(hd_context *context, const char *text, size_t bytes, hd_program **out_program);
/** A 64-bit hash of the structure: equal programs have equal hashes on every machine. */
HD_API uint64_t hd_program_hash(const hd_program *program);

/** What a named value of a program is. */
typedef enum hd_port_kind { HD_PORT_NONE = 0, HD_PORT_INPUT, HD_PORT_STATE, HD_PORT_OUTPUT } hd_port_kind;
/** A named value. */
typedef struct hd_port {
    hd_port_kind kind;
    const char  *name; /* valid as long as its program or plan */
    hd_value     value;
    hd_dtype     dtype;
    hd_shape     shape;
} hd_port;
/** Number of named values, in the order in which they were declared. */
HD_API size_t hd_program_port_count(const hd_program *program);
/** The named value at `index`; kind HD_PORT_NONE where there is none. */
HD_API hd_port hd_program_port(const hd_program *program, size_t index);
/** Type and shape of a value. Statuses: NULL_POINTER, UNKNOWN_VALUE. Either out pointer may be NULL. */
HD_API hd_status hd_value_describe(const hd_program *program, hd_value value, hd_dtype *out_dtype, hd_shape *out_shape);

/** Declares an input. Its bytes come from hd_plan_write and stay until they are written again. */
HD_API hd_value hd_input(hd_program *program, const char *name, hd_dtype dtype, hd_shape shape);
/** Declares a state: zeros at first, kept from run to run, changed by hd_write_rows and hd_assign. Float, i32, u8, q8_0 or q4_0. */
HD_API hd_value hd_state(hd_program *program, const char *name, hd_dtype dtype, hd_shape shape);
/** Names `value` as an output, to be read with hd_plan_read. */
HD_API void hd_output(hd_program *program, const char *name, hd_value value);

/* Element by element. Operands of two types are refused: cast first. Shapes broadcast as in NumPy: aligned at the last
 * axis, a length of 1 repeats. f16 and bf16 are computed in f32 and rounded to nearest even once per operation. Integers wrap.
 * i8, u32 and i64 are made of u8 and i32 before anything is planned (docs/ops.md): each device has them, to the same bits; what
 * an operation does not take is cast to i32. */
HD_API hd_value hd_add(hd_program *p, hd_value a, hd_value b); /**< a + b */
HD_API hd_value hd_sub(hd_program *p, hd_value a, hd_value b); /**< a - b */
HD_API hd_value hd_mul(hd_program *p, hd_value a, hd_value b); /**< a * b */
HD_API hd_value hd_div(hd_program *p, hd_value a, hd_value b); /**< a / b; integers: towards zero, x / 0 = 0 */
HD_API hd_value hd_maximum(hd_program *p, hd_value a, hd_value b); /**< the larger one; NaN wins */
HD_API hd_value hd_minimum(hd_program *p, hd_value a, hd_value b); /**< the smaller one; NaN wins */
HD_API hd_value hd_bit_and(hd_program *p, hd_value a, hd_value b); /**< integers: bits set in both; of 0 and 1: and */
HD_API hd_value hd_bit_or(hd_program *p, hd_value a, hd_value b);  /**< integers: bits set in one or both */
HD_API hd_value hd_bit_xor(hd_program *p, hd_value a, hd_value b); /**< integers: bits that differ */
/** i32, u8, i8 or u32: a's bits moved up by b, zeros come in. All of them leave for b below 0 or above 31. An i32 may stand for an
 *  unsigned number here, as for hd_add, hd_sub, hd_mul and hd_equal, which give the same bits for both. */
HD_API hd_value hd_shift_left(hd_program *p, hd_value a, hd_value b);
HD_API hd_value hd_shift_right_logical(hd_program *p, hd_value a, hd_value b); /**< likewise moved down */
/** i32, u8 or i8: likewise moved down, where copies of the sign come in: floor(a / 2^b). b below 0 or above 31 is as 31. */
HD_API hd_value hd_shift_right_arithmetic(hd_program *p, hd_value a, hd_value b);
HD_API hd_value hd_less(hd_program *p, hd_value a, hd_value b);  /**< a < b as u8 0 or 1 */
HD_API hd_value hd_equal(hd_program *p, hd_value a, hd_value b); /**< a == b as u8 0 or 1 */
HD_API hd_value hd_scale(hd_program *p, hd_value x, float factor, float bias); /**< x * factor + bias */
HD_API hd_value hd_neg(hd_program *p, hd_value x);     /**< -x */
HD_API hd_value hd_abs(hd_program *p, hd_value x);     /**< |x| */
HD_API hd_value hd_sign(hd_program *p, hd_value x);    /**< -1, 0 or 1; NaN stays NaN */
HD_API hd_value hd_round(hd_program *p, hd_value x);   /**< the nearest whole number; of two the even one */
HD_API hd_value hd_floor(hd_program *p, hd_value x);   /**< the largest whole number that is not above x */
HD_API hd_value hd_ceil(hd_program *p, hd_value x);    /**< the smallest whole number that is not below x: -floor(-x) */
HD_API hd_value hd_sqrt(hd_program *p, hd_value x);    /**< square root */
HD_API hd_value hd_exp(hd_program *p, hd_value x);     /**< e^x */
HD_API hd_value hd_log(hd_program *p, hd_value x);     /**< natural logarithm */
HD_API hd_value hd_sin(hd_program *p, hd_value x);     /**< sine, x in radians */
HD_API hd_value hd_cos(hd_program *p, hd_value x);     /**< cosine, x in radians */
HD_API hd_value hd_relu(hd_program *p, hd_value x);    /**< max(x, 0); NaN stays NaN */
HD_API hd_value hd_leaky_relu(hd_program *p, hd_value x, float slope); /**< x > 0 ? x : slope * x */
HD_API hd_value hd_elu(hd_program *p, hd_value x, float alpha);        /**< x > 0 ? x : alpha * (e^x - 1) */
HD_API hd_value hd_sigmoid(hd_program *p, hd_value x); /**< 1 / (1 + e^-x) */
HD_API hd_value hd_tanh(hd_program *p, hd_value x);    /**< hyperbolic tangent */
HD_API hd_value hd_silu(hd_program *p, hd_value x);    /**< x / (1 + e^-x), also called swish */
HD_API hd_value hd_gelu(hd_program *p, hd_value x);    /**< x/2 * (1 + erf(x / sqrt 2)) */
HD_API hd_value hd_gelu_tanh(hd_program *p, hd_value x); /**< x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) */
HD_API hd_value hd_erf(hd_program *p, hd_value x);     /**< 2/sqrt(pi) * integral of e^(-t^2), t from 0 to x */
HD_API hd_value hd_clip(hd_program *p, hd_value x, float low, float high); /**< min(max(x, low), high); NaN stays NaN */
HD_API hd_value hd_where(hd_program *p, hd_value condition, hd_value a, hd_value b); /**< condition (u8) != 0 ? a : b */
/** x (f32) as bf16, rounded at random (stochastically): of the two numbers of bf16 around x to the one away from 0 where x's lower 16
 *  bits and the word's upper 16 come to 2^16 or more. So the mean over random words is x, and what is less than half a unit is not
 *  lost. The same bits on every device, in either mode. A number between the largest bf16 and 2^128 may become infinite.
 *  @param words i32, from hd_random; a word for each element makes the rounding a function of seed, step and element. */
HD_API hd_value hd_round_random(hd_program *p, hd_value x, hd_value words);
/** Converts to another type: to f16 and bf16 to nearest even, from u32 and i64 by way of f32; to integers towards zero, held at
 *  the type's ends, NaN to 0; from a quantised type to f32 by GGUF's definition. */
HD_API hd_value hd_cast(hd_program *p, hd_value x, hd_dtype dtype);
HD_API hd_value hd_copy(hd_program *p, hd_value x);    /**< x, in memory of its own */

/* Form. */
/** Reorders the axes: axis i of the result is axis axes[i] of x. `count` is x's rank. */
HD_API hd_value hd_permute(hd_program *p, hd_value x, const uint32_t *axes, uint32_t count);
HD_API hd_value hd_transpose(hd_program *p, hd_value x); /**< swaps the last two axes */
HD_API hd_value hd_reshape(hd_program *p, hd_value x, hd_shape shape); /**< the same elements in the same order */
/** Joins `count` values of one type along `axis` (negative: from the end); the other axes are equal. */
HD_API hd_value hd_concat(hd_program *p, const hd_value *values, uint32_t count, int axis);
/** Elements begin[i] <= index < end[i] of each axis; negative counts from the end. `count` is x's rank. */
HD_API hd_value hd_slice(hd_program *p, hd_value x, const int64_t *begin, const int64_t *end, uint32_t count);
/** Windows that move along `axis` (negative: from the end), each `size` elements that lie `dilation` apart, the next one `stride`
 *  further on: [..,L,..] gives [..,O,..,size] with y[..,o,..,k] = x[..,o * stride + k * dilation,..] and O = (L - (size - 1) *
 *  dilation - 1) / stride + 1, at least 1. No element is copied where what reads it goes element by element. @param stride,
 *  dilation 0: 1. */
HD_API hd_value hd_windows(hd_program *p, hd_value x, int axis, int64_t size, int64_t stride, int64_t dilation);
/** The way back: [..,O,..,size], of float or i32, gives [..,length,..], where each element is the sum of what all windows have at
 *  its place, k = 0 first, and 0 where there is none. @param axis of the result. @param length at least what the windows reach. */
HD_API hd_value hd_windows_sum(hd_program *p, hd_value x, int axis, int64_t length, int64_t stride, int64_t dilation);
/** before[i] and after[i] elements of `value` around each axis. `count` is x's rank. */
HD_API hd_value hd_pad(hd_program *p, hd_value x, const int64_t *before, const int64_t *after, uint32_t count, float value);

/* Reductions over one axis (negative: from the end), which stays with length 1. HD_ALL_AXES: over all, to rank 0. */
#define HD_ALL_AXES 127
HD_API hd_value hd_sum(hd_program *p, hd_value x, int axis);  /**< sum, in f32 */
HD_API hd_value hd_prod(hd_program *p, hd_value x, int axis); /**< product, in f32 */
HD_API hd_value hd_mean(hd_program *p, hd_value x, int axis); /**< sum / length, in f32 */
HD_API hd_value hd_max(hd_program *p, hd_value x, int axis);  /**< largest; NaN wins */
HD_API hd_value hd_min(hd_program *p, hd_value x, int axis);  /**< smallest; NaN wins */
HD_API hd_value hd_argmax(hd_program *p, hd_value x, int axis); /**< i32 index of the first largest; NaN wins */
/** Sum of a * b along an axis: shapes equal, or b with length 1 in every axis behind it: one factor for each place. */
HD_API hd_value hd_dot(hd_program *p, hd_value a, hd_value b, int axis);

/** Flags of hd_cumsum: without the element itself; from the last element to the first. */
typedef enum hd_cumsum_flags { HD_CUMSUM_PLAIN = 0, HD_CUMSUM_EXCLUSIVE = 1, HD_CUMSUM_REVERSE = 2 } hd_cumsum_flags;
/** Running sums along an axis (negative: from the end), of float or i32, in f32 or i32: y[i] = x[0] + ... + x[i].
 *  @param flags HD_CUMSUM_EXCLUSIVE | HD_CUMSUM_REVERSE, or 0. Exclusive sums end before i; reverse ones begin at the end. */
HD_API hd_value hd_cumsum(hd_program *p, hd_value x, int axis, uint32_t flags);

#define HD_MAX_TOP_K 256
/** i32 indices of the k largest along the last axis, largest first: [..., n] of float or i32 gives [..., k]. Of equal ones
 *  the smaller index comes first; -0 equals +0; NaN comes before all others. The same on every device.
 *  @param k 1 to HD_MAX_TOP_K, at most n. hd_take_along gives the elements themselves. */
HD_API hd_value hd_top_k(hd_program *p, hd_value x, uint32_t k);

/** The digest of x's bytes, of any type, i32 [8]: the words of a SHA-256, each printed as %08x, the first one first. Bytes are taken
 *  as they lie in memory, dense, least bytes first. They are cut into pieces of 1,024; of each, and a byte 0 behind it, the SHA-256
 *  is taken; 32 of these digests side by side, or what is left of them, are a piece again, with a byte 1 behind it; a digest that
 *  is left by itself stays as it is; until there is one. The same on every device: a value that lies on one need not be read back to
 *  be known. x: below 4 GiB. */
HD_API hd_value hd_hash(hd_program *p, hd_value x);

/* Normalising along an axis. */
HD_API hd_value hd_softmax(hd_program *p, hd_value x, int axis);     /**< e^(x - max) / sum */
HD_API hd_value hd_log_softmax(hd_program *p, hd_value x, int axis); /**< x - max - log(sum e^(x - max)) */
/** x / sqrt(mean(x^2) + eps) * weight along the last axis; weight [n] or 0 for none. */
HD_API hd_value hd_rms_norm(hd_program *p, hd_value x, hd_value weight, float eps);
/** (x - mean) / sqrt(variance + eps) * weight + bias along the last axis; weight and bias [n] or 0 for none. */
HD_API hd_value hd_layer_norm(hd_program *p, hd_value x, hd_value weight, hd_value bias, float eps);

/** Flags of hd_matmul_with: read a, or b, with its last two axes swapped; give the sums as they are, f32 whatever a's type is. */
typedef enum hd_matmul_flags { HD_MATMUL_PLAIN = 0, HD_TRANSPOSE_A = 1, HD_TRANSPOSE_B = 2, HD_RESULT_F32 = 4 } hd_matmul_flags;
/** C = A x B: [..., M,K] x [..., K,N] = [..., M,N], leading axes broadcast, any M, N, K >= 1, sums in f32. The result
 *  has a's type. b may be quantised; GGUF weights are [N,K]: use hd_matmul_with and HD_TRANSPOSE_B. In fast mode, where b
 *  is of a narrower type than f32, elements may be rounded to 16 or 8 bits on the way; in exact mode those of a are rounded to 8
 *  bits beside [N,K] weights that are quantised, with a scale for each 32 along K. docs/ops.md states both bounds. */
HD_API hd_value hd_matmul(hd_program *p, hd_value a, hd_value b);
/** hd_matmul with either side transposed. @param flags HD_TRANSPOSE_A | HD_TRANSPOSE_B | HD_RESULT_F32, or 0. bf16 operands and
 *  HD_RESULT_F32 make a product of mixed precision: nothing is rounded between them and the f32 sums; hd_gradients rounds the gradient
 *  that comes in to bf16, once, and gives f32 ones, through a cast to bf16 too. Beside a quantised b gradients are so, too. */
HD_API hd_value hd_matmul_with(hd_program *p, hd_value a, hd_value b, uint32_t flags);
/** Products with experts that each row chose (a mixture of experts): x [T,K], or [T,U,K] with a row for each choice, w [E,N,K]
 *  float or quantised, chosen i32 [T,U], read at run time: y[t,u] = w[chosen[t,u]] x[t], [T,U,N] of x's type. A number outside of
 *  0..E-1 gives zeros. Only what is chosen is read, once for all that chose it. Fast mode may round as matmul's; exact mode does not. */
HD_API hd_value hd_matmul_experts(hd_program *p, hd_value x, hd_value w, hd_value chosen);

/* Convolution, pooling and resizing, of images [N,C,H,W] or lines [N,C,L], made of the operations above: windows, products, sums.
 * They have gradients as these have, and in exact mode the same bits everywhere. */

/** How a convolution's windows move: [0] along H, or L, [1] along W. NULL or {0} is stride 1, without padding. */
typedef struct hd_conv_desc {
    uint32_t stride[2];     /* 0: 1 */
    uint32_t dilation[2];   /* between neighbours of a window; 0: 1 */
    uint32_t pad_before[2]; /* zeros around x; of hd_conv_transpose what is cut off the result */
    uint32_t pad_after[2];
    uint32_t output_pad[2]; /* hd_conv_transpose: elements more at the end, below stride or dilation */
    uint32_t groups;        /* parts of the channels, each by itself; 0: 1; C: depthwise */
} hd_conv_desc;
/** Convolution as networks have it, which does not turn the weights: y[n,o,i,j] = bias[o] + sum over c, a, b of w[o,c,a,b] *
 *  x[n,c,i * stride + a * dilation - pad_before, likewise j], c over o's group. x [N,C,H,W], w [O,C/groups,A,B]; or [N,C,L],
 *  [O,C/groups,A]. One product of w, as [O, C/groups * A * B], and the windows as columns, with its order of sums (c slowest, b
 *  fastest), bound and rounding; a bias is added behind. Types are alike, f32, f16 or bf16. Windows larger than 1 are copied for
 *  the product: A * B times x, if stride is 1. @param bias [O] or 0. */
HD_API hd_value hd_conv(hd_program *p, hd_value x, hd_value w, hd_value bias, const hd_conv_desc *desc);
/** Transposed convolution, the gradient of hd_conv's x: w [C,O/groups,A,B]; y[n,o, i * stride + a * dilation - pad_before, ..] gets
 *  the sum over c, a, b of w[c,o,a,b] * x[n,c,i,j], and bias[o]; H' = (H - 1) * stride + (A - 1) * dilation + 1 + output_pad - pad_before -
 *  pad_after. Sums over c are a product's, in f32; then those over b, then over a are hd_windows_sum's. */
HD_API hd_value hd_conv_transpose(hd_program *p, hd_value x, hd_value w, hd_value bias, const hd_conv_desc *desc);

/** How pooling's windows move: [0] along H, or L, [1] along W. NULL or {0}: over all of H and W. */
typedef struct hd_pool_desc {
    uint32_t size[2];     /* 0: the whole axis */
    uint32_t stride[2];   /* 0: size */
    uint32_t dilation[2]; /* 0: 1 */
    uint32_t pad_before[2], pad_after[2];
    int      ceil_mode;   /* 1: a last window that reaches over the end counts, if it begins in x or the padding before it */
    int      count_pad;   /* hd_mean_pool: 1: padding (not what ceil_mode reaches over) counts as zeros; 0: it does not count */
} hd_pool_desc;
/** The largest of each window; NaN wins. Along W first, then H. Of equal ones the first, by rows, gets the gradient. A window of
 *  nothing but padding: -inf. */
HD_API hd_value hd_max_pool(hd_program *p, hd_value x, const hd_pool_desc *desc);
/** The mean of each window, in f32, rounded once: along W first, then H, the sum (or where every window is whole, mean) of each,
 *  divided by how many count. A window of nothing but padding: 0. */
HD_API hd_value hd_mean_pool(hd_program *p, hd_value x, const hd_pool_desc *desc);

/** Where element i of a resized axis of M elements, once L, is read. Linear ones are x[f] * (1 - w) + x[f + 1] * w, f the whole
 *  number at or below the place, w what is left; places are exact quotients of whole numbers. */
typedef enum hd_resize_mode {
    HD_RESIZE_NEAREST = 0,      /* floor(i * L / M): PyTorch's nearest */
    HD_RESIZE_NEAREST_CENTRES,  /* floor((i + 1/2) * L / M): PyTorch's nearest-exact */
    HD_RESIZE_LINEAR,           /* (i + 1/2) * L / M - 1/2, held at the ends: bilinear, by centres of pixels */
    HD_RESIZE_LINEAR_CORNERS    /* i * (L - 1) / (M - 1): bilinear with corners aligned */
} hd_resize_mode;
/** Resizes the last `count` axes of x, float, to `lengths`, each by itself, the last one first; linear modes compute in f32 and
 *  round once. Along each axis L * M is below 2^30, but for common factors of both. */
HD_API hd_value hd_resize(hd_program *p, hd_value x, const int64_t *lengths, uint32_t count, hd_resize_mode mode);

/** Rows of a table: [R,n] and i32, u32 or i64 [...] give [...,n]. A quantised table gives f32. An index outside of 0..R-1 gives a
 *  row of zeros. */
HD_API hd_value hd_gather(hd_program *p, hd_value table, hd_value indices);
/** Elements along the last axis by index: x [..., n] and i32, u32 or i64 [..., k], all axes before the last equal, give [..., k] with
 *  y[..., i] = x[..., indices[..., i]]. x is of any type but a quantised one. An index outside of 0..n-1 gives zero. */
HD_API hd_value hd_take_along(hd_program *p, hd_value x, hd_value indices);
/** base with updates[i] added to row indices[i], in the order of i: [R,n], i32, u32 or i64 [I], [I,n] give [R,n], of float or i32.
 *  Indices outside are left out. */
HD_API hd_value hd_scatter_add(hd_program *p, hd_value base, hd_value indices, hd_value updates);
/** The same with row indices[i] multiplied by updates[i]. */
HD_API hd_value hd_scatter_mul(hd_program *p, hd_value base, hd_value indices, hd_value updates);
/** The same with the larger of row indices[i] and updates[i], element by element; NaN wins. */
HD_API hd_value hd_scatter_max(hd_program *p, hd_value base, hd_value indices, hd_value updates);
/** The same with the smaller one; NaN wins. */
HD_API hd_value hd_scatter_min(hd_program *p, hd_value base, hd_value indices, hd_value updates);
/** Overwrites rows of a state in place: rows [T, ...] go to state [S, ...] at row position[0] on (i32 [1], read at run
 *  time; rows that would fall outside are left out). The batch form has state [B,S, ...], rows [B,T, ...] and position
 *  [B]: sequence b's rows go to its own state from row position[b] on. It is the batch form when position has more than
 *  one element, or when rows differ from state in an axis behind the first; else it is the plain one. Rows are of the
 *  state's type, or f32 for one of f16 or bf16 (rounded as hd_cast does); q8_0 and q4_0 take f32 only (as hd_quantize does).
 *  The result is the state's new value; the old id may not be used by later operations. */
HD_API hd_value hd_write_rows(hd_program *p, hd_value state, hd_value rows, hd_value position);

/** The same into a pool of pages: state [N,R, ...], which all sequences share. Row s of the sequence goes to row s % R of
 *  page pages[s / R] (i32 [P], read at run time); rows that would fall outside of 0..P*R-1, or onto a page that is not one
 *  of 0..N-1, are left out. The batch form has rows [B,T, ...], position [B] and pages [B,P]; two of its rows must not
 *  go to the same row of a page. R is a power of two, at least 64. */
HD_API hd_value hd_write_pages(hd_program *p, hd_value state, hd_value rows, hd_value position, hd_value pages);

/** Gives a state a new content: value has the state's type and shape, and may be made from the state's old content. What
 *  reads the old content reads it before. The result is the state's new value; the old id may not be used by later
 *  operations. Of several in one program each sees what the one before it has left. */
HD_API hd_value hd_assign(hd_program *p, hd_value state, hd_value value);

/** Which elements make a pair in rotary embedding. */
typedef enum hd_rope_pairing {
    HD_ROPE_HALVES = 0, /* (i, i + n/2): Qwen, NeoX */
    HD_ROPE_NEIGHBOURS  /* (2i, 2i+1): Llama */
} hd_rope_pairing;
/** Parameters of rotary embedding: pair i turns by position * frequency_scale * theta^(-2i/dims) / factors[i]. */
typedef struct hd_rope_desc {
    float           theta;           /* 0: 10000 */
    float           frequency_scale; /* 0: 1 */
    float           magnitude;       /* scales sine and cosine; 0: 1 */
    uint32_t        dims;            /* how many of the D elements turn; 0: all; even */
    hd_rope_pairing pairing;
    const float    *factors;         /* dims/2 divisors (Llama 3), borrowed for the call; NULL: all 1 */
} hd_rope_desc;
/** Rotary position embedding of x [..., T,H,D] at positions i32 [T]. @param desc NULL for defaults. */
HD_API hd_value hd_rope(hd_program *p, hd_value x, hd_value positions, const hd_rope_desc *desc);

/** Parameters of attention. */
typedef struct hd_attention_desc {
    float scale;      /* of the scores; 0: 1 / sqrt(D) */
    int   not_causal; /* 1: every query sees all past + T keys */
    hd_value pages;   /* i32 [P], read at run time: k and v are pools of pages [N,R,Hkv,D]; 0: they are not */
    float    cap;     /* a score s becomes cap * tanh(s / cap) (Gemma 2); at least 0.001; 0: s itself */
    uint32_t window;  /* query t sees no key before past + t + 1 - window: the last `window` ones; 0: all before it */
    hd_value sinks;   /* f32 [Hq]: a score for each head that takes part in the softmax, and has no value; 0: none */
    int bf16;         /* 1: what is multiplied, weights and gradients among it, may be rounded to bf16 or f16 in fast mode */
    hd_value mask;    /* f32 that broadcasts to [B,Hq,T,S], such as [T,S] for all heads, [Hq,T,S], [B,1,1,S]: added to the scores (behind
                         scale and cap); -infinity hides a key, so not_causal with a mask is as PyTorch's attn_mask, of more keys than
                         queries with a past of S - T; 0: none */
    hd_value starts;  /* i32 [T], or [B,T]: the first key that each query sees, read at run time: samples that lie one behind the other
                         in a sequence do not see each other where queries name the beginning of theirs; not with pages; 0: none */
} hd_attention_desc;
/** softmax(scale * Q K^T) V with grouped heads: q [T,Hq,D], k and v [S,Hkv,D] (Hq a multiple of Hkv), also q8_0 or q4_0. Result as q.
 *  past i32 [1], read at run time: query t stands at position past + t and sees keys 0..past+t. No value for past: no cache, and
 *  past is 0. A leading batch axis on q, k and v (and past [B]) is allowed. With desc->pages k and v are pools [N,R,Hkv,D]
 *  (hd_write_pages): key s lies in page pages[s / R], row s % R, and S is P * R. Several sequences have pages [B,P] and share
 *  the pools, which have no batch axis. A page number outside of 0..N-1 reads the nearest page. A past above S counts as S; one
 *  of -n hides the last n keys, such as padding. A query that sees no key gives NaN, with sinks 0; so does one whose keys all have
 *  -infinity in the mask. In fast mode a NaN or infinity in k or v may reach other queries that see fewer keys; with f16 keys, q and the
 *  weights may be rounded to f16. */
HD_API hd_value hd_attention(hd_program *p, hd_value q, hd_value k, hd_value v, hd_value past, const hd_attention_desc *desc);
/** Per row: log(sum e^logits) - logits[target]: [...,V] and i32 [...] give f32 [...]. A row with a negative target is ignored: 0.
 *  A target of V or more gives NaN. */
HD_API hd_value hd_cross_entropy(hd_program *p, hd_value logits, hd_value targets);

/** Random words, i32 of any shape, the same on every device: element i is a function of i, `stream`, and the key that is read at
 *  run time, so that a plan which is run again draws anew. It is word i % 4 of Philox4x32-10 (Salmon and others, SC 2011) with
 *  the counter (i / 4, stream, step's low and high word).
 *  @param key i32 [4]: the seed's low and high word, the step's low and high word.
 *  @param stream tells draws of one program apart: two with the same stream and key are equal. */
HD_API hd_value hd_random(hd_program *p, hd_value key, uint32_t stream, hd_shape shape);

/* ------------------------------------------------------------------------------------------------ 7. own kernels */

/** How a sampler takes a texel: the one that the coordinate lies in, or what lies between the nearest. */
typedef enum hd_filter { HD_FILTER_NEAREST = 0, HD_FILTER_LINEAR } hd_filter;
/** What a sampler takes outside of its image: the image again, or its edge. */
typedef enum hd_wrap { HD_WRAP_REPEAT = 0, HD_WRAP_CLAMP } hd_wrap;
/** When a sample that compares gives 1, and not 0: where the number that the kernel gives is so to the texel's first one. */
typedef enum hd_compare {
    HD_COMPARE_LESS_EQUAL = 0, HD_COMPARE_LESS, HD_COMPARE_GREATER_EQUAL, HD_COMPARE_GREATER, HD_COMPARE_EQUAL,
    HD_COMPARE_NOT_EQUAL
} hd_compare;
/** What a module does not say of an image or a sampler; zeros are fine. */
typedef struct hd_image_desc {
    uint32_t  set, binding; /* of the image, or of the sampler where the module has them apart */
    hd_dtype  dtype;        /* of an image without a format: f32, f16 or u8 (0 to 1 in 255 steps), or i32 or u8 where the kernel
                               sees integers; HD_DTYPE_NONE: f32 or i32, and 4 channels, or 1 of an image of depths */
    uint32_t  channels;     /* 1 to 4 */
    hd_filter filter;       /* for every axis; linear only where the kernel sees floats */
    hd_wrap   wrap;
    uint32_t  count;        /* of an array to which the module gives no length, of images or of buffers: how many there are, at
                               most 16; 0: 4 */
    hd_compare compare;     /* of a sampler that compares */
} hd_image_desc;

/** Wishes for a kernel of your own: SPIR-V for Vulkan (GLSL, HLSL or Slang compile to it), a compute entry point. */
typedef struct hd_kernel_desc {
    const void *spirv;       /* the module's bytes; or */
    size_t      spirv_bytes;
    const char *path;        /* a file to read it from, of GLSL if it ends in .comp or .glsl; or */
    const char *glsl;        /* GLSL's text. It is compiled by glslc, which is looked for when it is asked for */
    const char *entry;       /* NULL: "main" or the only one */
    const uint32_t *spec_ids, *spec_values; /* specialisation constants: narrow ones take the low bits, those of 64 carry the
                                               sign on; doubles are not set */
    uint32_t    spec_count;
    const hd_image_desc *images; /* wishes for images and samplers */
    uint32_t    image_count;
} hd_kernel_desc;

/** The set of buffers whose addresses the module has in its push constants: each is a binding, whose number is the byte where the
 *  address stands; what the eight bytes hold makes no difference. If it has others too: one, UINT32_MAX, of which all are bytes. */
#define HD_ADDRESS_SET 0xFFFFFFFEu
/** What the module itself says. */
typedef struct hd_kernel_info {
    uint32_t workgroup[3];
    uint32_t push_bytes;
    uint32_t binding_count;     /* buffers 0 .. binding_count-1, storage and uniform ones */
    bool     binding_written[16];
    uint32_t binding_set[16], binding_number[16]; /* where the module has them: its descriptor sets and bindings. If all are in
                                   set 0 at 0..15 and none is an array, buffers keep their numbers; else they count by set,
                                   binding and element */
    uint32_t binding_element[16]; /* of an array of buffers, each of which is a binding here */
    uint32_t binding_axes[16];    /* of an image 1 to 3, of layers and cubes one of them counts layers or faces, and one more counts
                                     samples, innermost; 0: a buffer. Its
                                     tensor is [width,channels], [height,width,channels] or [depth,height,width,channels], without
                                     the last axis where there is one channel */
    hd_dtype binding_dtype[16];   /* of an image */
    uint32_t binding_channels[16]; /* twice the texel's where these are integers of 16 bits: two u8 each, the low one first */
} hd_kernel_info;

/** Reads and checks a kernel; bindings, push constants and workgroup size come from the module. Images, of one level and one
 *  sample, are buffers of texels, and samplers arithmetic on them, the same bits on every device; a read outside of an image gives
 *  zeros, and a write there does nothing. GLSL that glslc refuses is MODULE, with its first error and the line. @param out_kernel
 *  yours; hd_kernel_destroy. Statuses: NULL_POINTER, IO, MODULE, KERNEL_NOT_FOUND, LIMIT, RUNTIME_NOT_FOUND (no glslc), TIMEOUT (it
 *  takes longer than a minute). */
HD_API hd_status hd_kernel_create(hd_context *context, const hd_kernel_desc *desc, hd_kernel **out_kernel);
/** Ends the kernel; programs and plans that use it keep what they need. NULL is fine. */
HD_API void hd_kernel_destroy(hd_kernel *kernel);
/** What the module says, valid as long as the kernel. */
HD_API const hd_kernel_info *hd_kernel_get_info(const hd_kernel *kernel);

/** What a binding of a launch is: an input, an output, or both. */
typedef struct hd_dispatch_binding {
    hd_value value; /* what it holds: of an output, what it begins with, of as many bytes, a multiple of 4; 0: an output begins
                       as anything, and a binding that is no output is one that the kernel does not use */
    hd_dtype dtype; /* of an output; HD_DTYPE_NONE: it is only read */
    hd_shape shape;
} hd_dispatch_binding;

/** One launch of your kernel as an operation: its inputs, then its one output, are bindings 0, 1, 2, ...; or each binding is
 *  said by itself. */
typedef struct hd_dispatch_desc {
    const hd_value *inputs;
    uint32_t        input_count;
    hd_dtype        out_dtype;
    hd_shape        out_shape;
    const void     *push;
    uint32_t        push_bytes;  /* as the module says */
    uint32_t        groups[3];   /* each at least 1 */
    const hd_dispatch_binding *bindings; /* instead of inputs and output: one for each binding of the kernel, in their order */
    uint32_t        binding_count;
} hd_dispatch_desc;
/** Adds a launch. A wrong count of inputs, push bytes or zero groups makes the program fail with its own status.
 *  @return the output, the first of several. */
HD_API hd_value hd_dispatch(hd_program *p, hd_kernel *kernel, const hd_dispatch_desc *desc);
/** The same for any number of outputs. @param out_values what desc->bindings[i] holds afterwards, for each i; 0 where that is no
 *  output, and for all where the program fails. */
HD_API void hd_dispatch_all(hd_program *p, hd_kernel *kernel, const hd_dispatch_desc *desc, hd_value *out_values);

/* -------------------------------------------------------------------------------------------------- 8. gradients */

/** How the gradient of a kernel of your own is built. */
typedef struct hd_kernel_gradient {
    const hd_kernel *kernel;
    /** Adds the operations to p: `gradient` is that of the launch's `result`, of its type and shape. For each of the launch's
     *  `inputs` out_gradients receives a value that broadcasts to no more than the input's shape, of its type or f32, or stays
     *  0 for none. Launches of other kernels are fine. What it returns but HD_OK makes the program fail with that. */
    hd_status (*build)(void *user, hd_program *p, const hd_value *inputs, hd_value result, hd_value gradient, hd_value *out_gradients);
    void     *user;
} hd_kernel_gradient;

/** Wishes for gradients. */
typedef struct hd_gradients_desc {
    hd_value loss_gradient;    /* f32 of the loss's shape, which may then be any: what the gradients begin with; 0: one number, 1 */
    int      recompute;        /* 0: what the backward part needs of the forward part is kept until then. 1: only `kept` is, with
                                  inputs, outputs, states and what kernels of your own gave; all else is computed again when it is
                                  needed, which takes less memory where hd_plan_desc.budget_bytes asks for a tight plan. In
                                  exact mode the bits are the same either way */
    const hd_value *kept;      /* for recompute: such as what goes from one layer to the next; borrowed for the call */
    size_t   kept_count;
    uint32_t chunk_rows;       /* what is summed over rows (for a matrix of weights, a bias, a norm's weight, a table) is summed in
                                  chunks of as many, each from zero, and these are added in order. 0: in one. With `continued`
                                  and batches of whole chunks many small batches give the bits of one large one */
    int      wide;             /* 1: gradients of wanted values of 16 bits are f32, as they are summed; 0: of the values' types */
    const hd_value *continued; /* wanted_count gradients that the wanted ones go on from, or 0, each of its wanted value's type (with `wide`
                                  f32) and shape, which is made of no other wanted one; NULL: from zero. Borrowed for the call */
    const hd_kernel_gradient *kernels; /* of your own, that gradients go through; borrowed for the call */
    size_t   kernel_count;
} hd_gradients_desc;

/** Adds to the program what gives the derivatives of one number by values of the program. Gradients are values like others: name
 *  them by hd_output, or go on with them, as an optimiser does. Call it before hd_assign changes what the loss depends on.
 *  - Several parts of one gradient are added in the order of the operations that use the value, and that is part of the result:
 *    in exact mode gradients are the same bits on every device.
 *  - A sum over the axes along which an operand was repeated is one sum in f32, in the order of hd_sum; the product for a matrix
 *    that a batch shares is one sum over the batch's rows. desc->chunk_rows divides them: first come the chunks with the first
 *    rows, of all operations that use the value, in the operations' order, then those with the next rows. Rows of a table
 *    are added one by one to the sum so far.
 *  - Where there is no derivative: hd_relu has 0 at 0, hd_abs too, hd_clip 0 at its ends, hd_maximum half at equal operands,
 *    hd_max all at the first largest. Rows of hd_cross_entropy with a negative target have none.
 *  @param loss one f32 element, or a tensor with its loss_gradient. @param wanted values of any kind: inputs, states, or what lies between.
 *  @param desc NULL for none. @param out_gradients wanted_count values, each of its wanted value's type (or f32: `wide`) and shape, which
 *  may be the same for two; 0 where the loss does not depend on it through floats: what is compared, rounded, an index or quantised has
 *  none.
 *  Statuses: NULL_POINTER, UNKNOWN_VALUE, SHAPE (of the loss), UNSUPPORTED (a kernel or an operation without a gradient, by
 *  name), WRONG_STATE (of a state's content that was overwritten), LIMIT, OUT_OF_HOST_MEMORY; they stick to the program. */
HD_API hd_status hd_gradients(hd_program *p, hd_value loss, const hd_value *wanted, size_t wanted_count, const hd_gradients_desc *desc,
                              hd_value *out_gradients);

/* ------------------------------------------------------------------------------------------------------ 9. plans */

/** Which arithmetic a plan may use. */
typedef enum hd_math {
    HD_MATH_DEFAULT = 0, /* fast */
    HD_MATH_FAST,        /* fused multiply-add, matrix units, the device's own functions; sums in f32 */
    HD_MATH_EXACT        /* the same bits on every device */
} hd_math;

/** Wishes for a plan. */
typedef struct hd_plan_desc {
    hd_math  math;
    uint64_t budget_bytes; /* most device memory the plan may take, 0: what the device has; planned anew more tightly,
                              then in pieces of rows, one after the other, then refused (OVER_BUDGET) */
    int      no_fusion;    /* 1: one dispatch for each operation, to find faults */
    int      in_order;     /* 1: operations run in the program's order, and at once only where neighbours do not wait for each other.
                              Else each runs as early as it may, which keeps results for longer: a step of training takes
                              several times the memory then */
    int      failover;     /* 1: keep host copies, and finish on the next best device when this one is lost */
    int      timestamps;   /* 1: time every dispatch on the device, for hd_plan_timings */
    uint32_t slice_us;     /* longest estimated piece handed to the device at once; 0: 100,000; watchdogs stay asleep */
    hd_device *const *beside; /* further devices of the context, on which operations may run too: devices 1, 2, ... of the
                              plan, whose own is device 0; at most 15. Borrowed for the call; NULL: none */
    uint32_t    beside_count;
    const char *route;     /* where operations run; borrowed for the call. NULL: all on device 0. "auto": where they are
                              predicted to be fastest, by what is known of the devices (docs/route.md). Else a list such
                              as "matmul=1,v3-v9=rows:60:40,rest=cpu", as told below */
    int         follow;    /* 1, with route "auto": the plan follows the load of its devices, as told below */
    const char *const *resident; /* for route "auto": names of inputs that are written once, such as weights, so that they
                              cost nothing in a run; those of a quantised type need not be named. Borrowed for the call */
    uint32_t    resident_count;
    int         alone;     /* 0: of a plan for one device, without a route, operations that it has no kernel for run on the CPU
                              beside it, but not kernels of your own; the log says so, and hd_plan_explain which and why. 1, and
                              in strict mode: such a plan fails (UNSUPPORTED) */
} hd_plan_desc;

/* PLANS ON SEVERAL DEVICES (hd_plan_desc.beside)
 *   A route cuts the program into segments that each run on one device. A value that another device needs crosses over by
 *   the host. Everything below works on the whole by name: an input that two devices read is written to both.
 *   - A route is a list of WHAT=WHERE. WHAT is the name of an operation, a value as hd_program_print shows it (v12), a range
 *     (v3-v9), or "rest". The first item that fits an operation counts; what none fits is on device 0. WHERE is a device's
 *     number, its id ("vulkan:0") or the name of its back end, or a share.
 *   - Inputs lie where they are read. WHAT may also be input:v12 or input:v3-v9: these inputs lie on the device WHERE, and
 *     cross in every run to the device that reads them. The operation that reads the first of them begins a segment, so that
 *     they travel while the segment before computes. They take the memory of earlier ones that are no longer needed: of many
 *     such items of equal size two are on the device at a time. hd_plan_bind may give them memory there too; buffers that
 *     several of them arrive in are written when those who read the one before are done. Devices share no operation then.
 *   - All that touches a state is on one device: where the route names it, else where most of it is. A route that names two
 *     devices for it is refused. Kernels of your own go to a device that runs them.
 *   - Devices share an operation by rows:A:B, columns:A:B or terms:A:B, with a part for each device (0: it has none). Rows are
 *     those along the first axis, columns those along the last one; terms are those of a product's sums: each device sums its
 *     own, and the sums are added in the order of the devices. Rows can be shared where they are computed each by itself,
 *     columns of products beside weights of two axes and of what is computed element by element. What reads a shared value by
 *     the same pieces takes them where they are; for all else they are joined. An input that is only read by pieces of its
 *     rows, and an output that is shared by rows, lies on the devices in pieces, which hd_plan_write and hd_plan_read bring
 *     together. Of what is named, operations that cannot be shared are on device 0; a single value that cannot is refused.
 *   - Exact mode gives the same bits for every route; it refuses terms, whose sums would be added in another order.
 *   - Segments that do not wait for each other run at the same time. hd_plan_submit hands over what can be without waiting;
 *     hd_ticket_poll and hd_ticket_wait hand over what comes next, and so do the plan's own calls, which wait for all of it
 *     first. A ticket of such a plan is therefore used by the plan's thread. Ending the plan leaves segments out that were not
 *     handed over yet; their ticket says WRONG_STATE.
 *   - The budget holds on each device by itself.
 *   - A plan never changes. One that follows the load (hd_plan_desc.follow) consists of several finished plans: all on each
 *     device, and the best of those in which several compute. Their memory counts together. Between runs of hd_plan_run a rule
 *     chooses which one is next: another one where runs have become clearly slower than it is known to take; every few seconds
 *     it looks how long others take now. Inputs that were written and states go along. */

/** Decides how `program` runs on `device` and compiles what it needs. A program of the same structure that was planned
 *  before and is idle again is taken from the cache whole: nothing is built or compiled, and what is recorded stays so.
 *  @param desc NULL for defaults. @param out_plan yours; hd_plan_destroy.
 *  Statuses: those of hd_program_check, UNSUPPORTED, OVER_BUDGET, OUT_OF_DEVICE_MEMORY, PIPELINE_CREATION; for the route PARSE,
 *  INVALID_ARGUMENT (no second device; "auto" then runs all on the first), LIMIT (more than 1024 segments) and UNSUPPORTED. */
HD_API hd_status hd_plan_create(hd_device *device, const hd_program *program, const hd_plan_desc *desc, hd_plan **out_plan);
/** Ends the plan. Never waits. NULL is fine. */
HD_API void hd_plan_destroy(hd_plan *plan);

/** Memory of a plan, in bytes, known before anything is allocated. */
typedef struct hd_plan_memory {
    uint64_t input_bytes, state_bytes, output_bytes; /* named values, each rounded to the device's alignment; inputs that
                                                        arrive from another device count on both, there by lifetime */
    uint64_t scratch_bytes;   /* all intermediates together, sharing by lifetime */
    uint64_t constant_bytes;  /* tables made by the planner */
    uint64_t total_bytes;
    uint64_t unshared_bytes;  /* what the intermediates would take without sharing */
} hd_plan_memory;
/** The memory that hd_plan_create would take, without taking it. Statuses as hd_plan_create. */
HD_API hd_status hd_plan_estimate(hd_device *device, const hd_program *program, const hd_plan_desc *desc, hd_plan_memory *out_memory);
/** The same of each device by itself. @param out_memories one for each of the plan's devices, device 0 first:
 *  desc->beside_count + 1 of them. Statuses as hd_plan_create. */
HD_API hd_status hd_plan_estimate_each(hd_device *device, const hd_program *program, const hd_plan_desc *desc,
                                       hd_plan_memory *out_memories);
/** The memory the plan takes. */
HD_API hd_status hd_plan_get_memory(const hd_plan *plan, hd_plan_memory *out_memory);

/** Writes an input or a state by name: all of it, `bytes` is its exact size. Returns when `data` may be reused.
 *  Statuses: NULL_POINTER, NAME_NOT_FOUND, SHAPE (wrong size), DEVICE_LOST, TIMEOUT. */
HD_API hd_status hd_plan_write(hd_plan *plan, const char *name, const void *data, uint64_t bytes);
/** Uses the caller's buffer, from `offset` on, in place of the plan's own memory for an input, state or output; offset
 *  is a multiple of 256. The buffer must outlive its use. A value that several devices of
 *  the plan use is bound on each by a call with a buffer of that device. Statuses: NAME_NOT_FOUND, LIMIT, INVALID_ARGUMENT (no segment on
 *  the buffer's device uses it), UNSUPPORTED (a plan with fail-over or one that follows the load; a value in pieces). */
HD_API hd_status hd_plan_bind(hd_plan *plan, const char *name, hd_buffer *buffer, uint64_t offset);
/** Wishes for a run. */
typedef struct hd_run_desc {
    uint64_t timeout_ns; /* 0: the context's wait_ns; on several devices for each wait between their segments */
} hd_run_desc;
/** Runs the plan once and waits. Every input must have been written or bound (WRONG_STATE names the missing one).
 *  Statuses: WRONG_STATE, TIMEOUT, DEVICE_LOST, OUT_OF_DEVICE_MEMORY. */
HD_API hd_status hd_plan_run(hd_plan *plan, const hd_run_desc *desc);
/** Starts a run and returns at once; on the CPU a run that is known to take some microseconds is done by then, since waking another
 *  thread would take as long. @param out_ticket yours; hd_ticket_destroy. Statuses as hd_plan_run. */
HD_API hd_status hd_plan_submit(hd_plan *plan, hd_ticket **out_ticket);
/** Reads an output or state by name: all of it. Before the first run: WRONG_STATE. Waits for a run under way. */
HD_API hd_status hd_plan_read(hd_plan *plan, const char *name, void *out_data, uint64_t bytes);
/** Explains program, plan, commands and device as text, each choice with its "because". Parameters as
 *  hd_device_caps_text. */
HD_API hd_status hd_plan_explain(const hd_plan *plan, char *out_text, size_t room, size_t *out_needed);
/** Writes a plan as text, so that it can be kept and compared: what it was made from (wishes, facts of each device, where
 *  operations run, the program) and a digest of all segments. A plan that follows the load is saved as the one of its
 *  alternatives that runs now. Copied out as hd_program_print does. Statuses: NULL_POINTER, OUT_OF_HOST_MEMORY, LIMIT. */
HD_API hd_status hd_plan_save(const hd_plan *plan, char *out_text, size_t room, size_t *out_needed);
/** Makes a saved plan again: the same segments, kernels, memory and commands, to the byte, whatever was measured since.
 *  The devices are given in the order in which they were saved, `device` first, then `desc->beside`; they must be of the same
 *  kind with the same driver. Besides them only `timestamps` is taken from `desc` (NULL: defaults). Kernels of your own that
 *  the program uses are created before. The text may come from anywhere: nothing in it but a checked program, a placement
 *  and facts is used. Statuses: those of hd_plan_create, PARSE (with the line), INVALID_ARGUMENT (another number of devices,
 *  or a wish that is in the text), UNSUPPORTED (another device, driver or version of heddle: plan anew). */
HD_API hd_status hd_plan_load(hd_device *device, const char *text, size_t bytes, const hd_plan_desc *desc, hd_plan **out_plan);
/** Explains what hd_plan_create would do on a device described by text (as hd_device_caps_text prints it), with no such
 *  device present. Statuses as hd_plan_create, and PARSE for the caps. */
HD_API hd_status hd_explain(hd_context *context, const hd_program *program, const char *caps_text, const hd_plan_desc *desc,
                            char *out_text, size_t room, size_t *out_needed);

/** Counters of a plan. */
typedef struct hd_plan_stats {
    uint32_t dispatches, copies, fills, barriers, levels; /* of one run */
    uint32_t kernels;             /* different kernels */
    uint64_t runs, records;       /* runs so far; how often commands had to be recorded */
    uint64_t last_submit_ns;      /* host time of the last hand-over */
    uint64_t failovers;           /* times the plan moved to another device */
    uint32_t segments;            /* 1 where the plan is on one device */
    uint64_t crossing_bytes;      /* that travel between its devices in one run */
    uint64_t predicted_ns;        /* of route "auto": a run with inputs written and outputs read, as it was placed; else 0 */
    uint64_t predicted_alone_ns;  /* the same with all on the device that is best alone; 0: none computes all */
    uint32_t alternatives;        /* finished plans that it consists of: 1, or more where it follows the load */
    uint64_t switches;            /* times that it went from one of them to another */
    uint32_t borrowed;            /* operations that the CPU computes since the device has no kernel for them: explain names them */
} hd_plan_stats;
/** Reads the counters. Statuses: NULL_POINTER. */
HD_API hd_status hd_plan_get_stats(const hd_plan *plan, hd_plan_stats *out_stats);
/** Device 0 of the plan: that it was made on; another one after a fail-over. */
HD_API hd_device *hd_plan_device(const hd_plan *plan);

/** One dispatch's time on the device in the last run. */
typedef struct hd_timing {
    const char *label;   /* the operations it computes; valid as long as the plan */
    const char *kernel;  /* the kernel's name; valid as long as the plan */
    uint64_t    ns;      /* time on the device */
    uint64_t    bytes;   /* least bytes it must move */
    uint64_t    flops;   /* arithmetic it must do */
    uint64_t    module;  /* names the kernel's SPIR-V, the same on every device; 0: a copy, a fill, or a kernel that has none */
} hd_timing;
/** Times of the last run (plan made with timestamps = 1). @param count as hd_devices. Statuses: WRONG_STATE, UNSUPPORTED. */
HD_API hd_status hd_plan_timings(hd_plan *plan, hd_timing *out_timings, size_t *count);

/** Tells whether the run is done, without waiting. Statuses: those of the run itself once it is done. */
HD_API hd_status hd_ticket_poll(hd_ticket *ticket, bool *out_done);
/** Waits for the run. @param timeout_ns 0: the context's wait_ns. Statuses: TIMEOUT (the run goes on), DEVICE_LOST. */
HD_API hd_status hd_ticket_wait(hd_ticket *ticket, uint64_t timeout_ns);
/** Forgets the ticket; the run itself goes on. NULL is fine. */
HD_API void hd_ticket_destroy(hd_ticket *ticket);
/** Is told that a run ended, and what hd_ticket_wait gives for it. It may use heddle, start runs and destroy the ticket. */
typedef void (*hd_done_fn)(void *user, hd_ticket *ticket, hd_status status);
/** Has `done` called once, when the run is found to have ended, by whichever thread finds it: in hd_context_poll, hd_ticket_poll or
 *  hd_ticket_wait. A ticket that is destroyed before tells nobody. @param done NULL: nobody wants to know any more. Statuses:
 *  NULL_POINTER. Any thread. */
HD_API hd_status hd_ticket_notify(hd_ticket *ticket, hd_done_fn done, void *user);
/** Looks, without waiting, at all runs that somebody is to be told of, and tells of those that ended: for a program's own loop. Plans on
 *  several devices, and streams, are polled by their own thread. @param out_left how many are under way still; NULL is fine. Statuses:
 *  NULL_POINTER, OUT_OF_HOST_MEMORY; failures of runs are told to their `done`. */
HD_API hd_status hd_context_poll(hd_context *context, size_t *out_left);

/* ---------------------------------------------------------------------------------------------------- 10. streams */

/* BATCH AFTER BATCH THROUGH ONE PLAN
 *   A stream has `depth` sets of memory for the inputs and outputs that change from batch to batch. While one batch computes, the next
 *   one's inputs travel to the device and the outputs of the one before travel back, each on a queue of its own; on a device of one
 *   queue (hd_device_info.queues) one after the other, with the same results.
 *   - Inputs that a run does not name are the plan's own: weights are written once, by hd_plan_write. States are the plan's, too, and
 *     pass from run to run in the order of hd_stream_submit.
 *   - hd_plan_run and hd_plan_submit may come between; the plan, its streams and their tickets belong to one thread at a time.
 *   - From the second use of each set on nothing is allocated on the device. */

/** Runs of a plan that overlap. */
typedef struct hd_stream hd_stream;

/** Wishes for a stream. */
typedef struct hd_stream_desc {
    uint32_t depth; /* runs under way at once, 1 to 8; 0: 3. With 1 each run waits for the one before */
} hd_stream_desc;

/** Makes a stream of runs of `plan`, which is on one device, without fail-over and does not follow the load. @param desc NULL for
 *  defaults. @param out_stream yours; hd_stream_destroy; it ends with its plan, too. Statuses: NULL_POINTER, LIMIT (depth),
 *  UNSUPPORTED (the plan), OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_stream_create(hd_plan *plan, const hd_stream_desc *desc, hd_stream **out_stream);
/** Ends the stream; runs under way go on, but outputs that no ticket took yet are dropped: their tickets say WRONG_STATE. Never waits.
 *  NULL is fine. */
HD_API void hd_stream_destroy(hd_stream *stream);

/** An input of one run: from the caller's memory, or from a buffer. */
typedef struct hd_stream_input {
    const char *name;
    const void *data;   /* copied before the call returns, by several threads where it is large; or NULL, and */
    hd_buffer  *buffer; /* taken from here while the run is under way: HD_BUFFER_UPLOAD spares the host a copy */
    uint64_t    offset; /* in the buffer, a multiple of 256 */
    uint64_t    bytes;  /* the input's exact size */
} hd_stream_input;
/** An output of one run: to the caller's memory, or to a buffer. */
typedef struct hd_stream_output {
    const char *name;
    void       *data;   /* filled in by the time that the run's ticket is done: stays valid until then; or NULL, and */
    hd_buffer  *buffer; /* the device writes here: HD_BUFFER_READBACK spares the host a copy */
    uint64_t    offset; /* in the buffer, a multiple of 256 */
    uint64_t    bytes;  /* the output's exact size */
} hd_stream_output;

/** Starts a run of the plan and returns, after waiting for the run `depth` before this one where that is still under way. `data` of
 *  inputs may be reused at once; buffers and `data` of outputs are the run's until its ticket is done: hd_ticket_wait and
 *  hd_ticket_poll bring the outputs, or a later run that takes the set's place, or hd_stream_finish. Outputs that are not named are
 *  not read back. @param out_ticket yours; hd_ticket_destroy; NULL: none is wanted. On failure the run was not started, but states of
 *  the plan may have changed where the device refused its end. Statuses: NULL_POINTER, NAME_NOT_FOUND, NAME_TAKEN (named twice), SHAPE
 *  (wrong size), INVALID_ARGUMENT (data and buffer, or neither; a buffer of another device; offset), LIMIT (outside of the buffer),
 *  WRONG_STATE (an input that was never written), TIMEOUT, DEVICE_LOST, OUT_OF_DEVICE_MEMORY, OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_stream_submit(hd_stream *stream, const hd_stream_input *inputs, size_t input_count, const hd_stream_output *outputs,
                                  size_t output_count, hd_ticket **out_ticket);
/** Waits for all runs and brings their outputs. @param timeout_ns 0: the context's wait_ns. Statuses: TIMEOUT, DEVICE_LOST. */
HD_API hd_status hd_stream_finish(hd_stream *stream, uint64_t timeout_ns);

/* --------------------------------------------------------------------------------------------------- 11. traces */

/** Something that the host or a queue of the device did. */
typedef struct hd_trace_event {
    const char *device;   /* its id */
    const char *queue;    /* "upload", "compute", "download"; "queue" on a device that has one; or "host". Static storage */
    const char *label;    /* "upload", "run", "download"; of the host "hand over", "copy in", "copy out". Static storage */
    uint64_t begin_ns, end_ns; /* on the host's monotonic clock */
    uint64_t bytes;       /* that it moved, 0: it computed */
    uint64_t run;         /* of a stream, from 1; 0: none */
    bool     measured;    /* by the device's own clock; else as the host saw it: from the hand-over, or the end of what was before it on
                             the queue, until it was found done */
} hd_trace_event;
/** Receives one event, from any thread that uses the device; must not call heddle. */
typedef void (*hd_trace_fn)(void *user, const hd_trace_event *event);
/** Reports all that the device does from now on, each submission once it was found done. @param receive NULL: waits for what is under
 *  way (at most the context's wait_ns), reports it, and ends. Statuses: NULL_POINTER, OUT_OF_HOST_MEMORY, OUT_OF_DEVICE_MEMORY, TIMEOUT,
 *  DEVICE_LOST. Any thread. */
HD_API hd_status hd_device_trace(hd_device *device, hd_trace_fn receive, void *user);

#ifdef __cplusplus
} /* extern "C" */
template <typename... Lengths> inline hd_shape hd_shape_of(Lengths... lengths) {
    return hd_shape{ static_cast<uint32_t>(sizeof...(lengths)), { static_cast<int64_t>(lengths)... } };
}
#endif
#endif /* HEDDLE_H */
