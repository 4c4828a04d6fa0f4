/* device.h: what stands between the front and a back end: the registry of back ends, the opened device with its lock,
 * counters and kernels in memory, and moving bytes. One lock a device makes it safe from many threads; waits give the
 * lock up between short looks, so one waiting thread never keeps the others from submitting. */
#ifndef HDI_DEVICE_H
#define HDI_DEVICE_H

#include "device/backend.h"
#include <stdatomic.h>

/* ---- registry.c ---- */

#define HDI_MAX_BACKENDS 8
typedef struct hdi_registered {
    const hdi_backend *backend; /* NULL: not part of this build */
    const char        *name;
    hdi_probe         *probe;   /* NULL until looked at */
} hdi_registered;
enum { HDI_WHY = 1024 }; /* bytes of what is told of a choice */
typedef struct hdi_registry {
    const hdi_host *host;
    const char     *wanted; /* back ends, the best first; NULL: all, by kind */
    hdi_registered  rows[HDI_MAX_BACKENDS];
    uint32_t        count;
    hdi_found      *ranked[HDI_MAX_BACKENDS * HDI_MAX_FOUND]; /* all devices, best first */
    uint32_t        ranked_count;
} hdi_registry;
/* Looks for devices. `wanted` names the back ends to look at, "cuda,cpu", the best first; it is borrowed. NULL: all. */
hd_status hdi_registry_probe(hdi_registry *registry, const hdi_host *host, const char *wanted, hd_error *error);
void hdi_registry_free(hdi_registry *registry);
/* Puts all devices that were found into their order: by kind, among equal ones as they were found; then those that were
 * measured change places so that the faster ones come first, real ones among themselves and software. */
void hdi_registry_rank(hdi_registry *registry);
/* As hd_backends tells it. */
hd_backend_info hdi_registry_tell(const hdi_registered *row);
/* The back end that found a device. */
const hdi_backend *hdi_registry_backend(const hdi_registry *registry, const hdi_found *found);
/* The device that `request` names ("cpu", "vulkan", "vulkan:1", an id, an index) or the best one for NULL, and why, in
 * `out_why`. Software and null devices are taken only when they are asked for by name; never in strict mode. */
hd_status hdi_registry_select(const hdi_registry *registry, const char *request, bool strict,
                              const hdi_found **out_found, char *out_why, size_t why_room, hd_error *error);

/* ---- fault.c: calls that fail on purpose ---- */
typedef enum hdi_fault_call { HDI_FAULT_ALLOC, HDI_FAULT_KERNEL, HDI_FAULT_SUBMIT, HDI_FAULT_WAIT,
                              HDI_FAULT_CALLS } hdi_fault_call;
enum { HDI_MOST_FAULTS = 16 };
typedef struct hdi_faults {
    struct { hdi_fault_call call; uint64_t first, last; hd_status status; } of[HDI_MOST_FAULTS];
    uint32_t count;
} hdi_faults;
/* Reads "submit:2:device-lost,alloc:5+:out-of-device-memory". False: it is no such list. */
bool hdi_faults_read(hdi_faults *faults, const char *text);
/* Counts a call of the device; what it is to fail with. */
hd_status hdi_fault(hd_device *device, hdi_fault_call call, hd_error *error);

/* ---- holdings.c: what lies on a device, by its memory ---- */
typedef struct hdi_holding {
    const hdi_memory *memory; /* NULL: the place is free */
    hd_memory_info    info;
} hdi_holding;
typedef struct hdi_holdings {
    hdi_holding *of; /* `capacity` places, a power of two */
    uint32_t     capacity, count;
} hdi_holdings;
/* False without memory. */
bool hdi_holdings_add(hdi_holdings *holdings, const hd_allocator *allocator, const hdi_memory *memory,
                      const hdi_alloc_desc *desc, bool in_place);
/* NULL: it is not there. */
const hd_memory_info *hdi_holdings_find(const hdi_holdings *holdings, const hdi_memory *memory);
void hdi_holdings_remove(hdi_holdings *holdings, const hdi_memory *memory);
void hdi_holdings_free(hdi_holdings *holdings, const hd_allocator *allocator);

/* ---- device.c ---- */

typedef struct hdi_cached_kernel {
    const hdi_module  *module;
    uint64_t           module_hash; /* a user's module may be gone while its kernel is still cached */
    hdi_kernel         kernel;
    hdi_loaded_kernel *loaded;
} hdi_cached_kernel;

/* Something to end once a submission is done. */
typedef struct hdi_deferred_free {
    uint64_t ticket;
    void   (*end)(void *object);
    void    *object;
} hdi_deferred_free;

typedef struct hdi_stage hdi_stage; /* transfer.c */
typedef struct hdi_trace hdi_trace; /* trace.c */
struct hdi_store; /* facts/store.c */

struct hd_device {
    hd_context         *context;   /* opaque here */
    hdi_held            held;
    const hdi_host     *host;
    const hdi_backend  *backend;
    hdi_found           found;
    char                selection[HDI_WHY];
    struct hdi_store   *facts;     /* all that is known of it */
    hdi_mutex           calibrating; /* one thread finds something out at a time; taken before all other locks */
    hdi_mutex           transfer_lock; /* one staged transfer at a time; taken before `lock`, guards `stage` */
    hdi_mutex           lock;      /* guards the back end's device and everything below */
    hdi_backend_device *handle;
    hd_status           lost;      /* HD_OK, or sticky DEVICE_LOST */
    uint64_t            last_ticket, done_ticket;
    hd_device_stats     stats;
    hdi_holdings        holdings;
    hdi_cached_kernel  *kernels;   uint32_t kernel_count, kernel_capacity;
    hdi_deferred_free  *deferred_frees; uint32_t deferred_count, deferred_capacity;
    hdi_stage          *stage;
    hdi_trace          *trace;     /* NULL: nobody watches */
    _Atomic uint64_t    calls[HDI_FAULT_CALLS]; /* so far, where faults are asked for */
    void              (*relieve)(hd_device *device); /* drops plans kept for later; called without the lock; or NULL */
};

hd_status hdi_device_open(const hdi_host *host, const hdi_backend *backend, const hdi_found *found,
                          const hdi_foreign *foreign, hd_device **out_device, hd_error *error);
void hdi_device_close(hd_device *device);

/* Memory; when there is none, caches are dropped and it is tried once more. Freed memory may still be in use. */
hd_status hdi_device_alloc(hd_device *device, const hdi_alloc_desc *desc, hdi_memory **out_memory, hd_error *error);
void hdi_device_free(hd_device *device, hdi_memory *memory, uint64_t bytes);
void *hdi_device_map(hd_device *device, hdi_memory *memory);
/* The heaps as they are now, and their number; 0 where the driver does not tell. */
uint32_t hdi_device_heaps(hd_device *device, hd_heap out_heaps[HD_MAX_HEAPS]);
/* hd_device_heaps and hd_device_memory (holdings.c). */
hd_status hdi_device_list_heaps(hd_device *device, hd_heap *out_heaps, size_t *count, hd_error *error);
hd_status hdi_device_memory(hd_device *device, hd_memory_info *out_infos, size_t *count, hd_error *error);
/* A kernel that is asked for. */
typedef struct hdi_wanted_kernel {
    const hdi_module  *module;
    const hdi_kernel  *kernel;
    hdi_loaded_kernel *loaded; /* out */
    bool missing, from_cache, failed; /* out: it was not in memory; it was on disk; it cannot be compiled */
} hdi_wanted_kernel;
/* Compiled kernels, from memory those that were compiled before, the others side by side and without the lock. They
 * live as long as the device. Of several failures the first in order is told; what was compiled stays. */
hd_status hdi_device_kernels(hd_device *device, hdi_wanted_kernel *wanted, uint32_t count, hd_error *error);
hd_status hdi_device_submit(hd_device *device, hdi_submission *submission, uint64_t *out_ticket, hd_error *error);
hd_status hdi_device_poll(hd_device *device, uint64_t ticket, bool *out_done, hd_error *error);
/* Ticket 0 is always done. */
hd_status hdi_device_wait(hd_device *device, uint64_t ticket, uint64_t timeout_ns, hd_error *error);
/* For all that any thread has handed over so far. */
hd_status hdi_device_wait_all(hd_device *device, uint64_t timeout_ns, hd_error *error);
/* Ends `object` by `end` (without the lock) after submission `ticket`: at once if that is done. */
void hdi_device_free_later(hd_device *device, uint64_t ticket, void (*end)(void *), void *object);

/* Debug builds ask for contracts themselves. */
#if defined(NDEBUG)
enum { HDI_CHECKED_BUILD = 0 };
#else
enum { HDI_CHECKED_BUILD = 1 };
#endif
/* ---- contracts.c: what must hold where host->contracts asks for it. Called with the lock held ---- */
/* Counts a contract, which holds where `status` is HD_OK; else INTERNAL. */
hd_status hdi_contract_keep(hd_device *device, hd_status status, hd_error *error);
/* Of a submission, and of the ticket that the back end gave it after the last one. */
hd_status hdi_contract_before(hd_device *device, const hdi_submission *submission, hd_error *error);
hd_status hdi_contract_after(hd_device *device, uint64_t last_ticket, uint64_t ticket, hd_error *error);

/* ---- transfer.c: bytes between the host and memory on the device, of any size. `after` is the last submission that
 * touches the memory. A write returns when `data` may be reused; `*inout_ticket` becomes the submission that a reader
 * has to follow (submissions run in order) ---- */
hd_status hdi_device_write(hd_device *device, hdi_memory *memory, uint64_t offset, const void *data, uint64_t bytes,
                           uint64_t *inout_ticket, hd_error *error);
hd_status hdi_device_read(hd_device *device, hdi_memory *memory, uint64_t offset, void *out_data, uint64_t bytes,
                          uint64_t after, hd_error *error);
/* Gives the staging memory back. Called with both locks held. */
void hdi_stage_free(hd_device *device);

/* ---- trace.c: what the device's queues did when, as hd_device_trace tells it ---- */
/* Reports from now on; `receive` NULL: reports what is left and ends. */
hd_status hdi_trace_set(hd_device *device, hd_trace_fn receive, void *user, hd_error *error);
void hdi_trace_free(hd_device *device);
/* What the host did for a run from `began_ns` until now. */
void hdi_trace_host(hd_device *device, const char *label, uint64_t began_ns, uint64_t bytes, uint64_t run);
/* Before a submission, and after it; `asked`: the queue that it was for, whichever took it. Called with the lock
 * held. */
void hdi_trace_prepare(hd_device *device, hdi_submission *submission);
void hdi_trace_note(hd_device *device, const hdi_submission *submission, hdi_queue asked, uint64_t began_ns,
                    uint64_t ticket);
/* Reports what is done. Called with the lock held. */
void hdi_trace_collect(hd_device *device);

/* ---- metrics.c: what is counted, as hd_context_metrics tells it ---- */
void hdi_metrics_version(hdi_text *out_text);
void hdi_metrics_one(hdi_text *out_text, const char *name, const char *type, const char *help, uint64_t value);
/* All counters of the devices in a list (hd_device.held), each seen at one moment. */
void hdi_metrics_devices(hdi_text *out_text, const hdi_link *devices);
#endif
