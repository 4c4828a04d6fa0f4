/* backend.h: the seam. A back end sees commands, slots and bytes; never an op, a shape or a plan.
 * Kernels are loaded by several threads at once, beside the other calls; those come on one device from one thread at a
 * time (device.c holds its lock). Calls on different devices may run at once. The front has checked all arguments: back
 * ends do not check again. Sizes are above zero. */
#ifndef HDI_BACKEND_H
#define HDI_BACKEND_H

#include "base/base.h"
#include "facts/caps.h"
#include "cmds/cmds.h"

#define HDI_BACKEND_VERSION 1

/* Handles of a back end; each defines its own structs. */
typedef struct hdi_backend_device hdi_backend_device;
typedef struct hdi_memory         hdi_memory;
typedef struct hdi_loaded_kernel  hdi_loaded_kernel;
typedef struct hdi_recording      hdi_recording; /* commands already encoded for the device */

/* What the back end may use of the context. Lives longer than every device. */
typedef struct hdi_host {
    const hd_allocator *allocator;
    const hdi_log      *log;
    const char         *cache_dir;  /* existing folder for compiled kernels, or NULL */
    bool                validation;
    bool                contracts;   /* plans and submissions are checked, and counted (contracts.c) */
    bool                one_queue;   /* everything is handed over to the compute queue */
    uint32_t            cpu_threads; /* of the CPU device, and at most for compiling; 0 is 1 */
    uint64_t            wait_ns;
    /* known answers before a kernel's first use: 0 never, 1 on GPUs, 2 on every device */
    uint32_t            verify;
    const struct hdi_faults *faults; /* that calls of devices make on purpose (fault.c); NULL: none */
    hdi_thread_pool    *thread_pool; /* helps with kernels of the CPU device and with copies; NULL: nobody does */
} hdi_host;

/* A device that probe found. */
typedef struct hdi_found {
    hd_device_info info;  /* `rank` is left to the registry */
    hdi_caps       caps;
    uint32_t       index; /* the back end's own number for it, given back to open */
} hdi_found;

#define HDI_MAX_FOUND 16
typedef struct hdi_probe {
    hdi_found found[HDI_MAX_FOUND];
    uint32_t  found_count;
    char      reason[192], mend[192]; /* where nothing was found */
} hdi_probe;

/* Objects of the caller's own API, to live beside it; all NULL for none. */
typedef struct hdi_foreign {
    void *instance, *physical_device, *device, *get_instance_proc_addr;
    uint32_t queue_family, queue_index;
} hdi_foreign;

typedef struct hdi_alloc_desc {
    uint64_t      bytes;
    hd_buffer_use use;
    const char   *label; /* NULL for none */
    void         *host;  /* the caller's memory to use in place, of a back end that borrows; NULL: new memory */
    hd_memory_kind kind; /* what it is told to hold */
} hdi_alloc_desc;

typedef struct hdi_slot {
    hdi_memory *memory;
    uint64_t    offset, bytes; /* offset: a multiple of caps.binding_align */
} hdi_slot;

/* Queues of a device. Work on one queue runs in the order in which it was handed over; work on another one beside it,
 * except where both use the same memory: then in that order too. A device of one queue takes all as handed over to that
 * one. */
typedef enum hdi_queue { HDI_QUEUE_COMPUTE, HDI_QUEUE_UPLOAD, HDI_QUEUE_DOWNLOAD, HDI_QUEUE_COUNT } hdi_queue;

typedef struct hdi_submission {
    const hdi_cmds           *cmds;
    hdi_loaded_kernel *const *kernels; /* for cmds->kernels */
    const hdi_slot           *slots;   /* for cmds' slots */
    bool                      timestamps;
    bool                      timed;    /* its begin and end will be asked for (span) */
    uint64_t                  run;      /* of a stream, for traces; 0: none */
    hdi_queue                 queue;    /* COMPUTE, unless it only moves data */
    hdi_recording           **recording; /* in/out: what an earlier submission of the same cmds and kernels left, or
                                           NULL inside; NULL: keep nothing */
    uint32_t                  recorded_out; /* out: commands encoded by this call; 0 for a replay */
    uint32_t                  pieces_out;   /* out: hand-overs to the queue */
} hdi_submission;

typedef struct hdi_backend {
    uint32_t    version, size; /* HDI_BACKEND_VERSION, sizeof(hdi_backend): new entries come at the end */
    const char *name;
    /* Looks for devices and creates nothing that stays. Always succeeds: nothing found has a reason and a mend. */
    void (*probe)(const hdi_host *host, hdi_probe *out_probe);
    hd_status (*open)(const hdi_host *host, const hdi_found *found, const hdi_foreign *foreign,
                      hdi_backend_device **out_device, hd_error *error);
    /* Waits (at most host->wait_ns) for work in flight, then ends everything, also when the device is lost. */
    void (*close)(hdi_backend_device *device);
    /* Memory, zeroed. */
    hd_status (*alloc)(hdi_backend_device *device, const hdi_alloc_desc *desc, hdi_memory **out_memory,
                       hd_error *error);
    /* Ends the memory; it is really given back once submissions under way no longer use it. */
    void (*free)(hdi_backend_device *device, hdi_memory *memory);
    /* The host's view of the memory, valid until it ends; NULL where the host does not see it. */
    void *(*map)(hdi_backend_device *device, hdi_memory *memory);
    /* Compiles, on any thread at any time before close; `*out_from_cache` tells whether the disk cache had it. */
    hd_status (*kernel_load)(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                             hdi_loaded_kernel **out_kernel, bool *out_from_cache, hd_error *error);
    void (*kernel_free)(hdi_backend_device *device, hdi_loaded_kernel *kernel);
    /* Hands work over; tickets count up from 1 over all queues, and one is done when it and all before it are. The
     * commands stay as they are until it is done; the arrays of kernels and slots are the caller's again at once. */
    hd_status (*submit)(hdi_backend_device *device, hdi_submission *submission, uint64_t *out_ticket, hd_error *error);
    void (*forget)(hdi_backend_device *device, hdi_recording *recording);
    /* Is the ticket done? DEVICE_LOST where it never will be. */
    hd_status (*poll)(hdi_backend_device *device, uint64_t ticket, bool *out_done, hd_error *error);
    hd_status (*wait)(hdi_backend_device *device, uint64_t ticket, uint64_t timeout_ns, hd_error *error);
    /* Nanoseconds for each mark of a finished submission made with timestamps, in order; at most `room`. */
    hd_status (*profile)(hdi_backend_device *device, uint64_t ticket, uint64_t *out_ns, uint32_t room,
                         uint32_t *out_count, hd_error *error);
    /* The driver's own device object (a VkDevice), or NULL. */
    void *(*native)(hdi_backend_device *device);
    /* Drops what can be rebuilt (staging, pools), before an allocation is tried once more. */
    void (*trim)(hdi_backend_device *device);
    /* When a finished submission made with `timed` began and ended, in nanoseconds on a clock that the device's queues
     * share; it is asked for once. UNSUPPORTED where this one was not timed after all; NULL: the device has no such
     * clock. */
    hd_status (*span)(hdi_backend_device *device, uint64_t ticket, uint64_t out_ns[2], hd_error *error);
    /* Does the host read the mapped memory at a snail's pace, past its caches? NULL: never. */
    bool (*reads_slowly)(const hdi_backend_device *device, const hdi_memory *memory);
    /* The heaps as they are now, and their number; 0 where the driver does not tell. NULL: it never does. */
    uint32_t (*heaps)(hdi_backend_device *device, hd_heap out_heaps[HD_MAX_HEAPS]);
    /* Returns when nothing reads the commands of earlier submissions any more, also where waiting for them failed.
     * NULL: submit read all of them. */
    void (*settle)(hdi_backend_device *device);
    /* What was found of a device that is the caller's (hdi_foreign). NULL: the back end joins none. */
    const hdi_found *(*found)(const hdi_backend_device *device);
    /* Does alloc take the caller's memory in place (desc->host)? UNSUPPORTED where a device, or this memory, does not
     * allow it. */
    bool borrows;
} hdi_backend;

extern const hdi_backend hdi_backend_cpu, hdi_backend_null, hdi_backend_vulkan, hdi_backend_cuda, hdi_backend_hip,
                         hdi_backend_opencl, hdi_backend_levelzero, hdi_backend_webgpu;
#endif
