/* standin.h: a GPU driver without a GPU, for tests: kernels are shared objects of the host's own machine code (nvrtc.c makes
 * them) that run thread by thread. It is stricter than a driver where a driver lets mistakes pass: memory has guards on both
 * sides, arguments that point nowhere are refused, fresh memory holds rubbish, a graph's nodes run in the last order that
 * their dependencies allow. Statuses are CUDA's numbers, which are HIP's too; driver.c gives all this the drivers' names.
 *
 * The environment: HEDDLE_STANDIN_ARCH=90 is the compute capability, HEDDLE_STANDIN_MEMORY the device's bytes. */
#ifndef STANDIN_H
#define STANDIN_H

#include "kernel_abi.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the library of products calls of the driver's. */
#define STANDIN_SHARED __attribute__((visibility("default")))

typedef enum standin_status {
    STANDIN_OK = 0, STANDIN_INVALID_VALUE = 1, STANDIN_OUT_OF_MEMORY = 2, STANDIN_NOT_INITIALIZED = 3, STANDIN_INVALID_DEVICE = 101,
    STANDIN_INVALID_IMAGE = 200, STANDIN_INVALID_CONTEXT = 201, STANDIN_NO_BINARY = 209, STANDIN_INVALID_HANDLE = 400,
    STANDIN_NOT_FOUND = 500, STANDIN_NOT_READY = 600, STANDIN_ILLEGAL_ADDRESS = 700, STANDIN_REGISTERED = 712,
    STANDIN_NOT_REGISTERED = 713, STANDIN_LAUNCH_FAILED = 719,
    STANDIN_NOT_SUPPORTED = 801
} standin_status;

/* A mistake that no driver would report: told on stderr, and the process ends. */
_Noreturn void standin_abort(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A refused call's reason on stderr; returns the status. */
standin_status standin_refuse(standin_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint64_t standin_environment(const char *name, uint64_t otherwise);

/* ---- the device (device.c) ---- */

enum { STANDIN_MAX_THREADS = 1024, STANDIN_SHARED_BYTES = 49152, STANDIN_SHARED_AT_LAUNCH = 232448 };
unsigned standin_architecture(void); /* 90: compute capability 9.0; of HIP always 110: gfx1100 */
/* Of what a kernel did wrong; the device is lost then. */
standin_status standin_lose(standin_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
standin_status standin_lost(void); /* OK, or what the device was lost with */

/* ---- memory (memory.c): addresses of the device are addresses of the host ---- */

standin_status standin_alloc(size_t bytes, bool on_host, void **out);
standin_status standin_free(void *memory, bool on_host);
/* The host's own memory, shown to the device. Registered twice, in part too, it is refused; pages that may not be written are
 * taken to read alone, and of a file only where they are shared, since a driver may hang over others. All of it is to be
 * given back before its pages go, and before the device. */
standin_status standin_register(void *host, size_t bytes, bool read_only);
standin_status standin_unregister(void *host);
void standin_registered_none(void);
/* Does all of this lie in one allocation? `on_host`: in one of the host's. */
STANDIN_SHARED bool standin_holds(const void *memory, size_t bytes);
bool standin_holds_on_host(const void *memory, size_t bytes);
uint64_t standin_memory_bytes(void);
uint64_t standin_memory_used(void);

/* ---- modules (module.c) ---- */

typedef struct standin_function standin_function;
typedef struct standin_module standin_module;
standin_status standin_module_load(const void *image, standin_module **out);
standin_status standin_module_unload(standin_module *module);
standin_status standin_module_function(standin_module *module, const char *name, standin_function **out);

struct standin_function {
    const standin_kernel *kernel;
    bool   waits;          /* threads wait for each other */
    size_t shared_bytes;   /* of a worker, with its place */
    size_t place_offset;   /* of the place in there */
    unsigned most_at_launch; /* of shared memory that a launch may ask for */
    standin_function *next;
};

/* A kernel with all that it is launched with, and the arguments' copies. */
typedef struct standin_launch {
    const standin_function *function;
    standin_dim3 grid, block;
    void       **arguments; /* to be freed: one allocation */
    bool         early;     /* it may begin before what it comes after has ended: each thread has to wait for that */
} standin_launch;
/* Checks everything and copies the arguments: from `arguments`, or packed in `packed_bytes` bytes. */
standin_status standin_launch_make(const standin_function *function, standin_dim3 grid, standin_dim3 block, unsigned shared_bytes,
                                   void *const *arguments, const void *packed, size_t packed_bytes, standin_launch *out);
void **standin_arguments_copy(const standin_launch *launch);

/* ---- running (block.c) ---- */

void standin_run(const standin_launch *launch);

/* ---- matrix products (product.c): along columns, D [rows,columns] = A [rows,depth] x B [depth,columns]; a transposed matrix
 * lies as its own rows and columns say, and is read turned round ---- */

typedef enum standin_number { STANDIN_F32 = 0, STANDIN_F16 = 2, STANDIN_BF16 = 14 } standin_number; /* the library's numbers */
typedef struct standin_matrix {
    void          *data;
    standin_number type;
    uint64_t       rows, columns, line, batch_offset;
    bool           transposed;
} standin_matrix;
typedef struct standin_product {
    standin_matrix a, b, d;
    const void    *addend;    /* laid out as d; NULL: there is none */
    const float   *bias;      /* of d->rows, added to each column; NULL: none */
    uint64_t       depth, batch;
    void          *workspace; /* is overwritten */
    size_t         workspace_bytes;
} standin_product;
void standin_product_run(const standin_product *product);

/* ---- queues (queue.c): every stream is a thread that does one task after the other ---- */

typedef struct standin_event standin_event;
typedef struct standin_stream standin_stream;
typedef struct standin_graph standin_graph;
typedef struct standin_node standin_node;
typedef struct standin_task {
    enum { STANDIN_LAUNCH, STANDIN_COPY, STANDIN_FILL, STANDIN_RECORD, STANDIN_AWAIT, STANDIN_TASKS, STANDIN_PRODUCT } kind;
    standin_launch launch;
    standin_product *product;   /* owned */
    void          *to;
    const void    *from;
    size_t         bytes;
    uint32_t       value;       /* of a fill: words of 32 bits */
    standin_event *event;
    uint64_t       ticket;      /* of a record, or the one that is waited for */
    struct standin_task *tasks; /* of a graph, in order; owned */
    size_t         task_count;
} standin_task;
/* A copy that owns what it holds; false without memory. */
bool standin_task_copy(const standin_task *task, standin_task *out);
void standin_task_end(standin_task *task);

standin_status standin_stream_create(standin_stream **out);
standin_status standin_stream_destroy(standin_stream *stream); /* what it has to do is done first */
standin_status standin_stream_query(standin_stream *stream);
/* Takes the task over, to be done or, while the stream is captured, to become a node. */
STANDIN_SHARED standin_status standin_stream_push(standin_stream *stream, standin_task task);
void standin_wait_all(void); /* for every stream */

standin_status standin_event_create(bool timed, standin_event **out);
standin_status standin_event_destroy(standin_event *event);
standin_status standin_event_record(standin_event *event, standin_stream *stream);
/* What the stream does next comes after the event's last record so far. */
standin_status standin_stream_await(standin_stream *stream, standin_event *event);
/* The first look after a record says not ready, however fast the device was. */
standin_status standin_event_query(standin_event *event);
standin_status standin_event_elapsed(standin_event *from, standin_event *to, float *out_ms);

/* ---- graphs (graph.c) ---- */

/* What a stream's calls become between the begin and the end of a capture. */
typedef struct standin_capture {
    standin_graph *graph; /* NULL: none is under way */
    uint64_t       id;
    standin_node **after; /* the next node comes after these */
    size_t         after_count;
    bool           early; /* and may begin before they have ended */
} standin_capture;
standin_capture *standin_capture_of(standin_stream *stream);
standin_status standin_capture_begin(standin_capture *capture);
standin_status standin_capture_end(standin_capture *capture, standin_graph **out);
standin_status standin_capture_add(standin_capture *capture, standin_task task);
/* Sets the nodes that the next one comes after, or adds to them. */
standin_status standin_capture_after(standin_capture *capture, standin_node *const *nodes, size_t count, bool add);
/* The next one, a kernel as they are, may begin before they have ended. */
standin_status standin_capture_early(standin_capture *capture);

typedef struct standin_order standin_order; /* a graph ready to be launched */
standin_status standin_order_make(const standin_graph *graph, standin_order **out);
standin_status standin_order_launch(const standin_order *order, standin_stream *stream);
void standin_order_destroy(standin_order *order);
void standin_graph_destroy(standin_graph *graph);
#endif
