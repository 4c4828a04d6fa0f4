/* driver.c: the driver's functions by name, with the checks that a driver makes of every call: initialised, a context that
 * is current, handles that are there, memory that is allocated. */
#include "names.h"
#include "standin.h"
#include <stdio.h>
#include <string.h>

typedef struct context { int retained; } context;
enum { MOST_CONTEXTS = 8 };
static context                device_context;
static bool                   initialised;
static _Thread_local unsigned current_count; /* contexts on this thread's stack, all of them the same one */

/* What every call answers first. */
static int ready(void) {
    if (!initialised) return STANDIN_NOT_INITIALIZED;
    return (int)standin_lost();
}
static int ready_in_context(void) {
    const int status = ready();
    return status ? status : current_count ? STANDIN_OK : (int)standin_refuse(STANDIN_INVALID_CONTEXT, "no context is current");
}
#define READY() do { const int not_ready = ready(); if (not_ready) return not_ready; } while (0)
#define IN_CONTEXT() do { const int not_ready = ready_in_context(); if (not_ready) return not_ready; } while (0)
#define NEEDS(condition, status) do { if (!(condition)) return (int)standin_refuse(status, "%s: not %s", __func__, #condition); } while (0)

/* ---- the device ---- */

STANDIN_ENTRY(cuInit, hipInit)(unsigned flags) {
    NEEDS(flags == 0, STANDIN_INVALID_VALUE);
    initialised = true;
    return STANDIN_OK;
}
STANDIN_ENTRY(cuDriverGetVersion, hipDriverGetVersion)(int *version) {
    *version = STANDIN_PICK(13000, 70000000);
    return STANDIN_OK;
}
STANDIN_ENTRY(cuDeviceGetCount, hipGetDeviceCount)(int *count) {
    READY();
    *count = 1;
    return STANDIN_OK;
}
STANDIN_ENTRY(cuDeviceGet, hipDeviceGet)(int *device, int ordinal) {
    READY();
    *device = ordinal;
    return ordinal == 0 ? STANDIN_OK : STANDIN_INVALID_DEVICE;
}
STANDIN_ENTRY(cuDeviceGetName, hipDeviceGetName)(char *name, int room, int device) {
    READY();
    NEEDS(device == 0 && room > 0, STANDIN_INVALID_DEVICE);
    snprintf(name, (size_t)room, "Stand-in GPU on the host's CPU");
    return STANDIN_OK;
}
STANDIN_ENTRY(cuDeviceGetUuid_v2, hipDeviceGetUuid)(unsigned char *uuid, int device) {
    READY();
    NEEDS(device == 0, STANDIN_INVALID_DEVICE);
    memcpy(uuid, "heddle-stand-in!", 16);
    return STANDIN_OK;
}
STANDIN_ENTRY(cuDeviceTotalMem_v2, hipDeviceTotalMem)(size_t *bytes, int device) {
    READY();
    NEEDS(device == 0, STANDIN_INVALID_DEVICE);
    *bytes = (size_t)standin_memory_bytes();
    return STANDIN_OK;
}
STANDIN_ENTRY(cuMemGetInfo_v2, hipMemGetInfo)(size_t *left, size_t *total) {
    IN_CONTEXT();
    *total = (size_t)standin_memory_bytes();
    *left = *total - (size_t)standin_memory_used();
    return STANDIN_OK;
}

/* CUDA's number, HIP's, and the answer. */
static int answer(int attribute, int *out) {
    const struct { int cuda, hip, value; } rows[] = {
        { 1, 56, STANDIN_MAX_THREADS }, { 2, 26, 1024 }, { 3, 27, 1024 }, { 4, 28, 64 }, { 5, 29, INT32_MAX }, { 6, 30, 65535 }, { 7, 31, 65535 },
        { 8, 74, STANDIN_SHARED_BYTES }, { 97, 0, STANDIN_SHARED_AT_LAUNCH }, { 10, 87, STANDIN_WARP }, { 13, 5, 1000000 }, { 16, 63, 4 }, { 18, 16, 0 }, { 20, 6, 0 },
        { 33, 67, 1 }, { 34, 68, 0 }, { 36, 60, 1000000 }, { 37, 59, 128 }, { 50, 69, 0 },
        { 75, 23, (int)standin_architecture() / 10 }, { 76, 61, (int)standin_architecture() % 10 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (STANDIN_PICK(rows[i].cuda, rows[i].hip) == attribute) {
            *out = rows[i].value;
            return STANDIN_OK;
        }
    return STANDIN_INVALID_VALUE;
}
STANDIN_ENTRY(cuDeviceGetAttribute, hipDeviceGetAttribute)(int *value, int attribute, int device) {
    READY();
    NEEDS(device == 0, STANDIN_INVALID_DEVICE);
    return answer(attribute, value);
}

#if defined(STANDIN_HIP)
/* What stands where in the struct changes from version to version; the architecture's name is what it is asked for. */
STANDIN_ENTRY(none, hipGetDeviceProperties)(char *properties, int device) {
    READY();
    NEEDS(device == 0, STANDIN_INVALID_DEVICE);
    memset(properties, 0, 1024);
    memcpy(properties + 640, "gfx1100", 8);
    return STANDIN_OK;
}
#endif

/* ---- contexts ---- */

STANDIN_ENTRY(cuDevicePrimaryCtxRetain, hipDevicePrimaryCtxRetain)(context **out, int device) {
    READY();
    NEEDS(device == 0, STANDIN_INVALID_DEVICE);
    __atomic_fetch_add(&device_context.retained, 1, __ATOMIC_SEQ_CST);
    *out = &device_context;
    return STANDIN_OK;
}
STANDIN_ENTRY(cuDevicePrimaryCtxRelease_v2, hipDevicePrimaryCtxRelease)(int device) {
    NEEDS(device == 0 && initialised, STANDIN_INVALID_DEVICE);
    const int retained = __atomic_sub_fetch(&device_context.retained, 1, __ATOMIC_SEQ_CST);
    NEEDS(retained >= 0, STANDIN_INVALID_CONTEXT);
    if (retained == 0 && !standin_lost()) standin_registered_none();
    return STANDIN_OK;
}
STANDIN_ENTRY(cuCtxPushCurrent_v2, hipCtxPushCurrent)(context *pushed) {
    READY();
    NEEDS(pushed == &device_context && pushed->retained > 0, STANDIN_INVALID_CONTEXT);
    NEEDS(current_count < MOST_CONTEXTS, STANDIN_INVALID_CONTEXT); /* a push without its pop */
    current_count++;
    return STANDIN_OK;
}
STANDIN_ENTRY(cuCtxPopCurrent_v2, hipCtxPopCurrent)(context **popped) {
    NEEDS(current_count > 0, STANDIN_INVALID_CONTEXT);
    current_count--;
    if (popped) *popped = &device_context;
    return STANDIN_OK;
}

/* ---- memory ---- */

STANDIN_ENTRY(cuMemAlloc_v2, hipMalloc)(uint64_t *address, size_t bytes) {
    IN_CONTEXT();
    void *memory = NULL;
    const standin_status status = standin_alloc(bytes, false, &memory);
    if (!status) *address = (uint64_t)(uintptr_t)memory;
    return (int)status;
}
STANDIN_ENTRY(cuMemFree_v2, hipFree)(uint64_t address) {
    IN_CONTEXT();
    return (int)standin_free((void *)(uintptr_t)address, false);
}
STANDIN_ENTRY(cuMemHostAlloc, hipHostMalloc)(void **host, size_t bytes, unsigned flags) {
    IN_CONTEXT();
    NEEDS(flags < 8, STANDIN_INVALID_VALUE);
    return (int)standin_alloc(bytes, true, host);
}
STANDIN_ENTRY(cuMemFreeHost, hipHostFree)(void *host) {
    IN_CONTEXT();
    return (int)standin_free(host, true);
}

STANDIN_ENTRY(cuMemHostRegister_v2, hipHostRegister)(void *host, size_t bytes, unsigned flags) {
    enum { MAPPED = 2, READ_ONLY = 8 };
    IN_CONTEXT();
    NEEDS(host && bytes > 0 && (flags & ~(unsigned)READ_ONLY) == MAPPED, STANDIN_INVALID_VALUE);
    return (int)standin_register(host, bytes, flags & READ_ONLY);
}
STANDIN_ENTRY(cuMemHostGetDevicePointer_v2, hipHostGetDevicePointer)(uint64_t *address, void *host, unsigned flags) {
    IN_CONTEXT();
    NEEDS(flags == 0 && standin_holds_on_host(host, 1), STANDIN_INVALID_VALUE);
    *address = (uint64_t)(uintptr_t)host;
    return STANDIN_OK;
}
STANDIN_ENTRY(cuMemHostUnregister, hipHostUnregister)(void *host) {
    IN_CONTEXT();
    return (int)standin_unregister(host);
}

/* ---- streams and events ---- */

STANDIN_ENTRY(cuStreamCreate, hipStreamCreateWithFlags)(standin_stream **out, unsigned flags) {
    IN_CONTEXT();
    NEEDS(flags < 2, STANDIN_INVALID_VALUE);
    return (int)standin_stream_create(out);
}
STANDIN_ENTRY(cuStreamDestroy_v2, hipStreamDestroy)(standin_stream *stream) {
    IN_CONTEXT();
    NEEDS(stream, STANDIN_INVALID_HANDLE);
    return (int)standin_stream_destroy(stream);
}
STANDIN_ENTRY(cuStreamQuery, hipStreamQuery)(standin_stream *stream) {
    IN_CONTEXT();
    NEEDS(stream && !standin_capture_of(stream)->graph, STANDIN_INVALID_HANDLE);
    return (int)standin_stream_query(stream);
}
STANDIN_ENTRY(cuStreamWaitEvent, hipStreamWaitEvent)(standin_stream *stream, standin_event *event, unsigned flags) {
    IN_CONTEXT();
    NEEDS(stream && event, STANDIN_INVALID_HANDLE);
    NEEDS(flags == 0, STANDIN_INVALID_VALUE);
    return (int)standin_stream_await(stream, event);
}
STANDIN_ENTRY(cuEventCreate, hipEventCreateWithFlags)(standin_event **out, unsigned flags) {
    enum { NO_TIMING = 2 };
    IN_CONTEXT();
    return (int)standin_event_create(!(flags & NO_TIMING), out);
}
STANDIN_ENTRY(cuEventDestroy_v2, hipEventDestroy)(standin_event *event) {
    IN_CONTEXT();
    NEEDS(event, STANDIN_INVALID_HANDLE);
    return (int)standin_event_destroy(event);
}
STANDIN_ENTRY(cuEventRecord, hipEventRecord)(standin_event *event, standin_stream *stream) {
    IN_CONTEXT();
    NEEDS(event && stream, STANDIN_INVALID_HANDLE);
    return (int)standin_event_record(event, stream);
}
STANDIN_ENTRY(cuEventQuery, hipEventQuery)(standin_event *event) {
    IN_CONTEXT();
    NEEDS(event, STANDIN_INVALID_HANDLE);
    return (int)standin_event_query(event);
}
STANDIN_ENTRY(cuEventElapsedTime, hipEventElapsedTime)(float *ms, standin_event *from, standin_event *to) {
    IN_CONTEXT();
    NEEDS(from && to, STANDIN_INVALID_HANDLE);
    return (int)standin_event_elapsed(from, to, ms);
}

/* ---- work ---- */

STANDIN_ENTRY(cuModuleLoadData, hipModuleLoadData)(standin_module **out, const void *image) {
    IN_CONTEXT();
    NEEDS(image, STANDIN_INVALID_VALUE);
    return (int)standin_module_load(image, out);
}
STANDIN_ENTRY(cuModuleUnload, hipModuleUnload)(standin_module *module) {
    IN_CONTEXT();
    NEEDS(module, STANDIN_INVALID_HANDLE);
    return (int)standin_module_unload(module);
}
STANDIN_ENTRY(cuModuleGetFunction, hipModuleGetFunction)(standin_function **out, standin_module *module, const char *name) {
    IN_CONTEXT();
    NEEDS(module && name, STANDIN_INVALID_HANDLE);
    return (int)standin_module_function(module, name, out);
}
__attribute__((visibility("default"))) int cuFuncSetAttribute(standin_function *function, int attribute, int value) {
    IN_CONTEXT();
    NEEDS(function, STANDIN_INVALID_HANDLE);
    NEEDS(attribute == 8 && value >= 0 && value <= STANDIN_SHARED_AT_LAUNCH, STANDIN_INVALID_VALUE);
    function->most_at_launch = (unsigned)value;
    return STANDIN_OK;
}
/* Arguments are one by one, or packed: `extra` is then a list of pairs, ended by 0 or, in HIP, 3. */
STANDIN_ENTRY(cuLaunchKernel, hipModuleLaunchKernel)(standin_function *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                                     unsigned block_y, unsigned block_z, unsigned shared_bytes, standin_stream *stream,
                                                     void **arguments, void **extra) {
    IN_CONTEXT();
    NEEDS(function && stream, STANDIN_INVALID_HANDLE);
    const void *packed = NULL;
    size_t packed_bytes = 0;
    for (; extra && *extra && (uintptr_t)*extra != 3; extra += 2) {
        if ((uintptr_t)*extra == 1) packed = extra[1];
        if ((uintptr_t)*extra == 2) memcpy(&packed_bytes, extra[1], sizeof packed_bytes);
    }
    standin_task task = { .kind = STANDIN_LAUNCH };
    const standin_status status = standin_launch_make(function, (standin_dim3){ grid_x, grid_y, grid_z }, (standin_dim3){ block_x, block_y, block_z },
                                                      shared_bytes, arguments, packed, packed_bytes, &task.launch);
    return status ? (int)status : (int)standin_stream_push(stream, task);
}
STANDIN_ENTRY(cuMemcpyAsync, hipMemcpyDtoDAsync)(uint64_t to, uint64_t from, size_t bytes, standin_stream *stream) {
    IN_CONTEXT();
    const standin_task task = { .kind = STANDIN_COPY, .to = (void *)(uintptr_t)to, .from = (const void *)(uintptr_t)from, .bytes = bytes };
    NEEDS(stream, STANDIN_INVALID_HANDLE);
    NEEDS(standin_holds(task.to, bytes) && standin_holds(task.from, bytes), STANDIN_INVALID_VALUE);
    return (int)standin_stream_push(stream, task);
}
STANDIN_ENTRY(cuMemsetD32Async, hipMemsetD32Async)(uint64_t to, unsigned value, size_t words, standin_stream *stream) {
    IN_CONTEXT();
    const standin_task task = { .kind = STANDIN_FILL, .to = (void *)(uintptr_t)to, .value = value, .bytes = words * sizeof value };
    NEEDS(stream, STANDIN_INVALID_HANDLE);
    NEEDS(to % sizeof value == 0 && standin_holds(task.to, task.bytes), STANDIN_INVALID_VALUE);
    return (int)standin_stream_push(stream, task);
}

/* ---- captures and graphs ---- */

STANDIN_ENTRY(cuStreamBeginCapture_v2, hipStreamBeginCapture)(standin_stream *stream, int mode) {
    IN_CONTEXT();
    NEEDS(stream, STANDIN_INVALID_HANDLE);
    NEEDS(mode >= 0 && mode <= 2, STANDIN_INVALID_VALUE);
    return (int)standin_capture_begin(standin_capture_of(stream));
}
STANDIN_ENTRY(cuStreamEndCapture, hipStreamEndCapture)(standin_stream *stream, standin_graph **out) {
    IN_CONTEXT();
    NEEDS(stream, STANDIN_INVALID_HANDLE);
    return (int)standin_capture_end(standin_capture_of(stream), out);
}
STANDIN_ENTRY(cuStreamGetCaptureInfo_v2, hipStreamGetCaptureInfo_v2)(standin_stream *stream, int *active, uint64_t *id, standin_graph **graph,
                                                                    standin_node *const **after, size_t *after_count) {
    IN_CONTEXT();
    NEEDS(stream, STANDIN_INVALID_HANDLE);
    const standin_capture *capture = standin_capture_of(stream);
    *active = capture->graph != NULL;
    if (id) *id = capture->id;
    if (graph) *graph = capture->graph;
    if (after) *after = capture->after;
    if (after_count) *after_count = capture->after_count;
    return STANDIN_OK;
}
STANDIN_ENTRY(cuStreamUpdateCaptureDependencies, hipStreamUpdateCaptureDependencies)(standin_stream *stream, standin_node **nodes, size_t count,
                                                                                    unsigned flags) {
    enum { SET = 1 };
    IN_CONTEXT();
    NEEDS(stream, STANDIN_INVALID_HANDLE);
    NEEDS(flags <= SET, STANDIN_INVALID_VALUE);
    return (int)standin_capture_after(standin_capture_of(stream), nodes, count, flags != SET);
}
#ifndef STANDIN_HIP
typedef struct edge { unsigned char from_port, to_port, kind, reserved[5]; } edge;
STANDIN_ENTRY(cuStreamUpdateCaptureDependencies_v2, )(standin_stream *stream, standin_node **nodes, const edge *edges, size_t count, unsigned flags) {
    enum { SET = 1, PROGRAMMATIC = 1 };
    IN_CONTEXT();
    NEEDS(stream, STANDIN_INVALID_HANDLE);
    NEEDS(flags == SET && edges && count > 0, STANDIN_INVALID_VALUE);
    for (size_t i = 0; i < count; i++) NEEDS(edges[i].kind == PROGRAMMATIC && edges[i].from_port == 1 && edges[i].to_port == 0, STANDIN_INVALID_VALUE);
    const int status = (int)standin_capture_after(standin_capture_of(stream), nodes, count, false);
    return status ? status : (int)standin_capture_early(standin_capture_of(stream));
}
#endif
STANDIN_ENTRY(cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags)(standin_order **out, standin_graph *graph, unsigned long long flags) {
    IN_CONTEXT();
    NEEDS(graph, STANDIN_INVALID_HANDLE);
    NEEDS(flags < 16, STANDIN_INVALID_VALUE);
    return (int)standin_order_make(graph, out);
}
STANDIN_ENTRY(cuGraphLaunch, hipGraphLaunch)(standin_order *order, standin_stream *stream) {
    IN_CONTEXT();
    NEEDS(order && stream, STANDIN_INVALID_HANDLE);
    return (int)standin_order_launch(order, stream);
}
STANDIN_ENTRY(cuGraphExecDestroy, hipGraphExecDestroy)(standin_order *order) {
    IN_CONTEXT();
    NEEDS(order, STANDIN_INVALID_HANDLE);
    standin_order_destroy(order);
    return STANDIN_OK;
}
STANDIN_ENTRY(cuGraphDestroy, hipGraphDestroy)(standin_graph *graph) {
    IN_CONTEXT();
    NEEDS(graph, STANDIN_INVALID_HANDLE);
    standin_graph_destroy(graph);
    return STANDIN_OK;
}
