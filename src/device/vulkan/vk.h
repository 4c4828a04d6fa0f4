/* vk.h: what the files of the Vulkan back end share. Every driver function is a member of hdvk_vk, made from the one
 * list in functions.inc; every fallible one is called through HDVK_CALL, which tests can make fail. Vulkan 1.1 is
 * enough; what newer versions and extensions add is used where it is there. */
#ifndef HDVK_VK_H
#define HDVK_VK_H

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include "device/loader.h"
#include "device/recordings.h"

/* A driver that counts more extensions, layers or shapes is taken at its word for so many. */
enum { HDVK_MOST_LISTED = 4096 };

/* ---- VK_KHR_cooperative_matrix, which older headers lack ---- */
#define HDVK_MATRIX_FEATURES_TYPE   ((VkStructureType)1000506000)
#define HDVK_MATRIX_PROPERTIES_TYPE ((VkStructureType)1000506001)
typedef struct hdvk_matrix_features {
    VkStructureType sType;
    void           *pNext;
    VkBool32        cooperativeMatrix, cooperativeMatrixRobustBufferAccess;
} hdvk_matrix_features;
typedef struct hdvk_matrix_properties {
    VkStructureType sType;
    void           *pNext;
    uint32_t        MSize, NSize, KSize;
    int32_t         AType, BType, CType, ResultType; /* VkComponentTypeKHR */
    VkBool32        saturatingAccumulation;
    int32_t         scope;                           /* 3: subgroup */
} hdvk_matrix_properties;
/* ---- VK_NV_cooperative_matrix2, likewise ---- */
#define HDVK_MATRIX2_FEATURES_TYPE   ((VkStructureType)1000593000)
#define HDVK_MATRIX2_PROPERTIES_TYPE ((VkStructureType)1000593001)
typedef struct hdvk_matrix2_features {
    VkStructureType sType;
    void           *pNext;
    VkBool32 workgroupScope, flexibleDimensions, reductions, conversions, perElementOperations, tensorAddressing,
        blockLoads;
} hdvk_matrix2_features;
typedef struct hdvk_matrix2_properties {
    VkStructureType sType;
    void           *pNext;
    uint32_t        MGranularity, NGranularity, KGranularity;
    int32_t         AType, BType, CType, ResultType;
    VkBool32        saturatingAccumulation;
    int32_t         scope; /* 2: workgroup */
    uint32_t        workgroupInvocations;
} hdvk_matrix2_properties;
/* ---- VK_KHR_shader_bfloat16, likewise ---- */
#define HDVK_BF16_FEATURES_TYPE ((VkStructureType)1000141000)
typedef struct hdvk_bf16_features {
    VkStructureType sType;
    void           *pNext;
    VkBool32        type, dotProduct, cooperativeMatrix;
} hdvk_bf16_features;
typedef VkResult(VKAPI_PTR *PFN_hdvk_matrix2_properties)(VkPhysicalDevice, uint32_t *, hdvk_matrix2_properties *);
typedef VkResult(VKAPI_PTR *PFN_hdvk_matrix_properties)(VkPhysicalDevice, uint32_t *, hdvk_matrix_properties *);

/* ---- results: X(VkResult without VK_, status, text). API: the function's own status says more (functions.inc) ---- */
#define HDVK_RESULT_LIST(X) \
    X(NOT_READY,                     API,                  "not ready") \
    X(TIMEOUT,                       TIMEOUT,              "not done in the given time") \
    X(INCOMPLETE,                    API,                  "the list was cut") \
    X(ERROR_OUT_OF_HOST_MEMORY,      OUT_OF_HOST_MEMORY,   "out of host memory") \
    X(ERROR_OUT_OF_DEVICE_MEMORY,    OUT_OF_DEVICE_MEMORY, "out of device memory") \
    X(ERROR_INITIALIZATION_FAILED,   API,                  "initialisation failed") \
    X(ERROR_DEVICE_LOST,             DEVICE_LOST,          "the device is lost") \
    X(ERROR_MEMORY_MAP_FAILED,       API,                  "memory could not be mapped") \
    X(ERROR_LAYER_NOT_PRESENT,       API,                  "a layer is missing") \
    X(ERROR_EXTENSION_NOT_PRESENT,   API,                  "an extension is missing") \
    X(ERROR_FEATURE_NOT_PRESENT,     API,                  "a feature is missing") \
    X(ERROR_INCOMPATIBLE_DRIVER,     API,                  "no driver fits") \
    X(ERROR_TOO_MANY_OBJECTS,        API,                  "too many objects") \
    X(ERROR_FRAGMENTED_POOL,         OUT_OF_DEVICE_MEMORY, "the pool is fragmented") \
    X(ERROR_OUT_OF_POOL_MEMORY,      OUT_OF_DEVICE_MEMORY, "the pool is used up") \
    X(ERROR_FRAGMENTATION,           OUT_OF_DEVICE_MEMORY, "the descriptors are fragmented") \
    X(ERROR_INVALID_SHADER_NV,       API,                  "the shader is invalid") \
    X(ERROR_UNKNOWN,                 API,                  "unknown")
typedef enum hdvk_result_row {
#define HDVK_RESULT_ENUM(code, status, text) HDVK_ROW_##code,
    HDVK_RESULT_LIST(HDVK_RESULT_ENUM)
#undef HDVK_RESULT_ENUM
    HDVK_ROW_COUNT
} hdvk_result_row;

typedef enum hdvk_level { HDVK_GLOBAL, HDVK_INSTANCE, HDVK_DEVICE } hdvk_level; /* hdi_function.group */
typedef enum hdvk_function {
#define HDVK_FUNCTION(level, need, name, type, status, results) HDVK_FN_##name,
#include "device/vulkan/functions.inc"
    HDVK_FN_COUNT
} hdvk_function;
const hdi_function *hdvk_function_get(hdvk_function function);
VkResult hdvk_result_of(hdvk_result_row row);

/* The driver: its functions and the objects they hang on. */
typedef struct hdvk_vk {
#define HDVK_FUNCTION(level, need, name, type, status, results) type name;
#include "device/vulkan/functions.inc"
    PFN_vkGetInstanceProcAddr GetInstanceProcAddr;
    void            *library;
    VkInstance       instance;
    VkPhysicalDevice physical;
    VkDevice         device;
    VkDebugUtilsMessengerEXT messenger;
    const hdi_log   *log;
    uint32_t         api_version;   /* the instance's */
    bool             debug_utils;   /* labels and names may be given */
    bool             foreign;       /* instance and device are the caller's */
    bool             device_fault;  /* VK_EXT_device_fault is on */
    hdi_loss         loss;
    atomic_bool      abandoned;     /* work on it would not end: its objects are left to the driver */
} hdvk_vk;

/* What a thread's last HDVK_CALL called, and what came of it. */
typedef struct hdvk_outcome {
    hdvk_function function;
    VkResult      result;
} hdvk_outcome;
extern _Thread_local hdvk_outcome hdvk_last;

/* Calls a fallible function and gives its VkResult, which hdvk_fail can then explain. */
#define HDVK_CALL(vk, name, ...) \
    (hdvk_last = (hdvk_outcome){ HDVK_FN_##name, hdvk_fault(HDVK_FN_##name) }, \
     hdvk_last.result = hdvk_last.result != VK_SUCCESS ? hdvk_last.result : (vk)->name(__VA_ARGS__))
/* Ends an object of the device, if there is one; `handle` is read twice. What running work may still use is never ended
 * under it. */
#define HDVK_END(vk, name, handle) \
    do { if ((handle) && !(vk)->abandoned) (vk)->name((vk)->device, (handle), NULL); } while (0)
/* Turns the last HDVK_CALL's failure into a status; `format` says what was being done. A loss stays. */
hd_status hdvk_fail(hdvk_vk *vk, hd_error *error, const char *format, ...) HDI_PRINTF(3, 4);
/* DEVICE_LOST, with what was known when it happened. */
hd_status hdvk_lost(hdvk_vk *vk, hd_error *error);
hd_status hdvk_no_memory(hd_error *error); /* OUT_OF_HOST_MEMORY of our own */

/* ---- for tests ---- */
/* Asked before every fallible call; what is not VK_SUCCESS is returned in the driver's place. NULL: nobody is asked. */
typedef VkResult (*hdvk_fault_fn)(hdvk_function function);
void hdvk_fault_set(hdvk_fault_fn fault);
VkResult hdvk_fault(hdvk_function function);
/* Validation messages (warnings and errors) since the process began. */
uint64_t hdvk_validation_messages(void);
/* Parts that later probes and opens take for absent: bits of HDVK_HAS_..., and HDVK_HIDE_UNIFIED. HDVK_FEIGN_QUEUES
 * makes three queues of one, each with its own order. */
#define HDVK_HIDE_UNIFIED (1u << 31)
#define HDVK_FEIGN_QUEUES (1u << 30)
void hdvk_hide_set(uint32_t parts);
uint32_t hdvk_hidden(void);

/* ---- load.c, instance.c ---- */
/* Opens the loader's library; false where there is none. */
bool hdvk_load_library(hdvk_vk *vk);
/* Looks up the functions of one level; gives the name of the first required one that is missing, or NULL. */
const char *hdvk_load_level(hdvk_vk *vk, hdvk_level level);
/* Libraries in the process now; keep: those from number `from` on are never unloaded. */
uint32_t hdvk_library_count(void);
void hdvk_library_keep(uint32_t from);
hd_status hdvk_instance_open(const hdi_host *host, hdvk_vk *vk, hd_error *error);
/* Ends messenger, instance and library, whichever are there and ours. */
void hdvk_instance_close(hdvk_vk *vk);

/* ---- facts.c: what a physical device can do ---- */
/* X(name, extension, version of Vulkan that has it without the extension, 1: must be switched on) */
#define HDVK_HAS_LIST(X) \
    X(STORAGE8,       "VK_KHR_8bit_storage",                    VK_API_VERSION_1_2, 1) \
    X(FLOAT16_INT8,   "VK_KHR_shader_float16_int8",             VK_API_VERSION_1_2, 1) \
    X(TIMELINE,       "VK_KHR_timeline_semaphore",              VK_API_VERSION_1_2, 1) \
    X(MEMORY_MODEL,   "VK_KHR_vulkan_memory_model",             VK_API_VERSION_1_2, 1) \
    X(FLOAT_CONTROLS, "VK_KHR_shader_float_controls",           VK_API_VERSION_1_2, 1) \
    X(SUBGROUP_TYPES, "VK_KHR_shader_subgroup_extended_types",  VK_API_VERSION_1_2, 1) \
    X(DRIVER,         "VK_KHR_driver_properties",               VK_API_VERSION_1_2, 0) \
    X(DOT,            "VK_KHR_shader_integer_dot_product",      VK_API_VERSION_1_3, 1) \
    X(SYNC2,          "VK_KHR_synchronization2",                VK_API_VERSION_1_3, 1) \
    X(SUBGROUP_SIZE,  "VK_EXT_subgroup_size_control",           VK_API_VERSION_1_3, 1) \
    X(MAINTENANCE4,   "VK_KHR_maintenance4",                    VK_API_VERSION_1_3, 1) \
    X(MATRIX,         "VK_KHR_cooperative_matrix",              UINT32_MAX,         1) \
    X(MATRIX2,        "VK_NV_cooperative_matrix2",              UINT32_MAX,         1) \
    X(BF16,           "VK_KHR_shader_bfloat16",                 UINT32_MAX,         1) \
    X(FAULT,          "VK_EXT_device_fault",                    UINT32_MAX,         1) \
    X(BUDGET,         "VK_EXT_memory_budget",                   UINT32_MAX,         1) \
    X(HOST_MEMORY,    "VK_EXT_external_memory_host",            UINT32_MAX,         1) \
    X(PORTABILITY,    "VK_KHR_portability_subset",              UINT32_MAX,         1) \
    X(PCI,            "VK_EXT_pci_bus_info",                    UINT32_MAX,         0) \
    X(SM_COUNT,       "VK_NV_shader_sm_builtins",               UINT32_MAX,         0) \
    X(CORE_COUNT,     "VK_AMD_shader_core_properties",          UINT32_MAX,         0)
enum {
#define HDVK_HAS_ENUM(name, extension, core, enable) HDVK_HAS_INDEX_##name,
    HDVK_HAS_LIST(HDVK_HAS_ENUM)
#undef HDVK_HAS_ENUM
    HDVK_HAS_COUNT
};
#define HDVK_HAS(facts, name) (((facts)->has >> HDVK_HAS_INDEX_##name & 1u) != 0)

typedef struct hdvk_features {
    VkPhysicalDeviceFeatures2                            core;
    VkPhysicalDevice16BitStorageFeatures                 storage16;
    VkPhysicalDevice8BitStorageFeatures                  storage8;
    VkPhysicalDeviceShaderFloat16Int8Features            float16_int8;
    VkPhysicalDeviceTimelineSemaphoreFeatures            timeline;
    VkPhysicalDeviceVulkanMemoryModelFeatures            memory_model;
    VkPhysicalDeviceShaderSubgroupExtendedTypesFeatures  subgroup_types;
    VkPhysicalDeviceShaderIntegerDotProductFeatures      dot;
    VkPhysicalDeviceSubgroupSizeControlFeatures          subgroup_size;
    VkPhysicalDeviceMaintenance4Features                 maintenance4;
    VkPhysicalDeviceSynchronization2Features             sync2;
    hdvk_matrix_features                                 matrix;
    hdvk_matrix2_features                                matrix2;
    hdvk_bf16_features                                   bf16;
    VkPhysicalDeviceFaultFeaturesEXT                     fault;
} hdvk_features;

/* Where a queue of ours is among the device's. */
typedef struct hdvk_queue_place {
    uint32_t family, number; /* HDI_NO_INDEX: not there */
    uint32_t timestamp_bits;
} hdvk_queue_place;

typedef struct hdvk_facts {
    VkPhysicalDeviceProperties       properties;
    VkPhysicalDeviceMemoryProperties memory;
    hdvk_features features;       /* those there are and that kernels or this back end can use */
    uint32_t      has, extension; /* bits of HDVK_HAS_LIST: there at all; there as an extension */
    hdvk_queue_place places[HDI_QUEUE_COUNT]; /* of the queues; where only the first is there it takes all */
    bool          keeps_subnormals; /* kernels may demand that f32 keeps its subnormals */
    uint64_t      host_align;       /* of the caller's memory that is taken in place; 0: none is */
    bool          exact_halves;     /* f16 to f32 is exact, of subnormals too */
    uint32_t      subgroup_least, subgroup_most;
    hdi_found     found;
} hdvk_facts;
/* Reads everything. UNSUPPORTED_VERSION or UNSUPPORTED where the device cannot be used at all. */
hd_status hdvk_facts_read(const hdi_host *host, hdvk_vk *vk, VkPhysicalDevice physical, hdvk_facts *out_facts,
                          hd_error *error);
/* The same of a caller's device: what can be used there without any feature. INVALID_ARGUMENT: its queue is no such. */
hd_status hdvk_facts_join(const hdi_host *host, hdvk_vk *vk, const hdi_foreign *foreign, hdvk_facts *out_facts,
                          hd_error *error);
/* Leaves the computing queue alone. */
void hdvk_one_queue(hdvk_facts *facts);
/* Chains the feature structs that the device knows behind features->core. */
void hdvk_features_link(const hdvk_facts *facts, hdvk_features *features);
/* probe.c */
void hdvk_probe(const hdi_host *host, hdi_probe *out_probe);
/* The devices of an instance, at most HDI_MAX_FOUND. */
hd_status hdvk_physical_devices(hdvk_vk *vk, VkPhysicalDevice out_physical[HDI_MAX_FOUND], uint32_t *out_count,
                                hd_error *error);

/* ---- the device ---- */
typedef struct hdvk_queue {
    VkQueue              handle;  /* NULL: not there */
    uint32_t             family;
    VkPipelineStageFlags stages;  /* that its commands use */
    VkCommandPool        pool;
    VkSemaphore          timeline; /* its value: the last ticket done on this queue; NULL: fences are used */
    uint64_t             submitted; /* last ticket handed to this queue */
} hdvk_queue;

/* A VkBuffer with its memory, shared by small hdi_memory or owned by one large one. */
typedef struct hdvk_span { uint64_t offset, bytes; } hdvk_span;
typedef struct hdvk_block {
    struct hdvk_block *next;
    VkBuffer       buffer;
    VkDeviceMemory memory;
    uint8_t       *mapped;    /* NULL: the host does not see it */
    uint64_t       bytes;
    uint32_t       type;      /* of memory */
    bool           dedicated;
    uint32_t       live;      /* hdi_memory inside */
    hdvk_span     *free;      /* by offset, no two touch */
    uint32_t       free_count, free_capacity;
} hdvk_block;

struct hdi_memory {
    hdi_used    used;
    hdi_link    unzeroed;      /* in device->unzeroed, or alone */
    hdvk_block *block;
    uint64_t    offset, bytes; /* in the block; bytes as rounded up */
};

struct hdi_loaded_kernel {
    hdi_used         used;
    VkPipeline       pipeline;
    VkPipelineLayout layout;
    uint32_t         binding_count, push_bytes;
};

/* Encoded commands: a VkCommandBuffer for each piece, with the descriptors that they need. Those that are no longer
 * used serve for other commands (device->spare). */
typedef struct hdvk_commands {
    hdi_used         used;
    uint32_t         queue;
    VkCommandBuffer *buffers;
    uint32_t         buffer_count, buffer_capacity, piece_count;
    VkDescriptorPool pool;
    uint32_t         pool_sets, pool_bindings; /* its size */
} hdvk_commands;

/* Where a submission notes its times. */
typedef struct hdvk_timestamps {
    uint64_t    ticket; /* 0: of no submission yet */
    bool        ends;   /* when it began and ended, else its marks */
    uint32_t    mark_count, capacity;
    VkQueryPool queries;
} hdvk_timestamps;

/* The same as part of a recording. */
typedef struct hdvk_command_buffer {
    hdi_command_buffer base;
    hdvk_commands     *commands; /* NULL: encoding failed */
    hdvk_timestamps    timestamps; /* of its last use, where it notes any */
} hdvk_command_buffer;

/* A submission under way. */
typedef struct hdvk_job {
    uint64_t ticket, begun_ns;
    uint32_t queue;
    VkFence  fence; /* where there is no timeline: made once, reset for each ticket */
} hdvk_job;

enum { HDVK_JOBS = 64, HDVK_TIMESTAMPS = 64 };
struct hdi_backend_device {
    hdi_inflight    inflight;
    const hdi_host *host;
    hdvk_vk         vk;
    hdvk_facts      facts;
    hdvk_queue      queues[HDI_QUEUE_COUNT]; /* of one, or of all */
    bool            timeline, unified;

    uint32_t        memory_types; /* bits: those our buffers may live in */
    hdvk_block     *blocks;
    hdi_link        unzeroed;     /* memory to be cleared ahead of the next submission */
    VkDescriptorSetLayout set_layouts[HDI_MAX_BINDINGS + 1]; /* by number of bindings, made when first needed, under the
                                                                lock of kernels */
    hdi_link        busy, spare;  /* hdvk_commands that belong to no recording: under way, and to be used again */
    uint32_t        spare_count;
    hdvk_job        jobs[HDVK_JOBS]; /* of ticket t: jobs[t % HDVK_JOBS] */
    hdvk_timestamps timestamps[HDVK_TIMESTAMPS]; /* of the latest submissions that asked for them */
    uint32_t        timestamps_next;
};

/* memory.c */
hd_status hdvk_memory_open(hdi_backend_device *device, hd_error *error);
hd_status hdvk_alloc(hdi_backend_device *device, const hdi_alloc_desc *desc, hdi_memory **out_memory, hd_error *error);
void hdvk_free(hdi_backend_device *device, hdi_memory *memory);
void hdvk_memory_end(hdi_backend_device *device, hdi_used *memory);
void *hdvk_map(hdi_backend_device *device, hdi_memory *memory);
uint32_t hdvk_heaps(hdi_backend_device *device, hd_heap out_heaps[HD_MAX_HEAPS]);
bool hdvk_reads_slowly(const hdi_backend_device *device, const hdi_memory *memory);
/* Gives back blocks in which nothing lives. */
void hdvk_memory_trim(hdi_backend_device *device);

/* kernel.c */
hd_status hdvk_kernel_load(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                           hdi_loaded_kernel **out_kernel, bool *out_from_cache, hd_error *error);
void hdvk_kernel_end(hdi_backend_device *device, hdi_used *kernel);

/* encode.c */
/* Spare commands for the queue, or new ones. */
hd_status hdvk_commands_get(hdi_backend_device *device, uint32_t queue, hdvk_commands **out_commands, hd_error *error);
void hdvk_commands_put(hdi_backend_device *device, hdi_used *commands); /* to the spare ones, or to the driver */
void hdvk_commands_trim(hdi_backend_device *device);                    /* ends the spare ones */
/* Encodes the commands for one submission, and the times of its marks where `timestamps` is not NULL. */
hd_status hdvk_encode(hdi_backend_device *device, const hdi_submission *submission, hdvk_commands *commands,
                      hdvk_timestamps *timestamps, hd_error *error);
/* Encodes the clearing of all unzeroed memories, as one piece. */
hd_status hdvk_encode_zeroing(hdi_backend_device *device, hdvk_commands *commands, hd_error *error);
/* Two pieces, to be handed over before and behind others, that note the time. */
hd_status hdvk_encode_ends(hdi_backend_device *device, hdvk_commands *commands, hdvk_timestamps *timestamps,
                           hd_error *error);
/* Encodes the commands for many submissions; and ends them (recordings.h). */
hd_status hdvk_record(hdi_backend_device *device, const hdi_submission *submission, hdi_command_buffer *out_buffer,
                      hd_error *error);
void hdvk_record_end(hdi_backend_device *device, hdi_command_buffer *buffer);

/* submit.c */
hd_status hdvk_submit(hdi_backend_device *device, hdi_submission *submission, uint64_t *out_ticket, hd_error *error);
hd_status hdvk_poll(hdi_backend_device *device, uint64_t ticket, bool *out_done, hd_error *error);
void hdvk_drain(hdi_backend_device *device, uint64_t timeout_ns);
hd_status hdvk_wait(hdi_backend_device *device, uint64_t ticket, uint64_t timeout_ns, hd_error *error);
hd_status hdvk_profile(hdi_backend_device *device, uint64_t ticket, uint64_t *out_ns, uint32_t room,
                       uint32_t *out_count, hd_error *error);
hd_status hdvk_times(hdi_backend_device *device, uint64_t ticket, uint64_t out_ns[2], hd_error *error);
void hdvk_trim(hdi_backend_device *device);
/* Ends what submissions leave. The device must be idle or lost. */
void hdvk_submit_close(hdi_backend_device *device);

#endif
