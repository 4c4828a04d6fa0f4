/* api.h: what heddle uses of webgpu.h as wgpu-native 29 has it: types, numbers and layouts, which no Debian package
 * declares. */
#ifndef HDWG_API_H
#define HDWG_API_H

#include <stddef.h>
#include <stdint.h>

#define HDWG_OBJECTS(X) \
    X(Instance) X(Adapter) X(Device) X(Queue) X(Buffer) X(BindGroupLayout) X(PipelineLayout) X(ShaderModule) \
    X(ComputePipeline) X(BindGroup) \
    X(QuerySet) X(CommandEncoder) X(ComputePassEncoder) X(CommandBuffer)
#define HDWG_OBJECT(name) typedef struct WGPU##name##Impl *WGPU##name;
HDWG_OBJECTS(HDWG_OBJECT)
#undef HDWG_OBJECT

typedef uint32_t WGPUBool, WGPUStatus;
typedef struct { const char *data; size_t length; } WGPUStringView;
typedef struct WGPUChainedStruct { struct WGPUChainedStruct *next; uint32_t sType; } WGPUChainedStruct;
typedef struct { uint64_t id; } WGPUFuture;

enum {
    WGPU_SUCCESS = 1, /* of every kind of status */
    WGPU_ADAPTER_DISCRETE = 1, WGPU_ADAPTER_INTEGRATED = 2, WGPU_ADAPTER_CPU = 3,
    WGPU_CALLBACK_PROCESS_EVENTS = 2, WGPU_CALLBACK_SPONTANEOUS = 3,
    WGPU_LOST_DESTROYED = 2, WGPU_LOST_CANCELLED = 3,
    WGPU_ERROR_VALIDATION = 2, WGPU_ERROR_OUT_OF_MEMORY = 3, WGPU_ERROR_INTERNAL = 4,
    WGPU_FEATURE_TIMESTAMP_QUERY = 9, WGPU_FEATURE_TIMESTAMPS_IN_ENCODERS = 0x30024,
    WGPU_CHAINED_WGSL = 2, WGPU_CHAINED_INSTANCE = 0x30004, WGPU_BINDING_UNIFORM = 2, WGPU_BINDING_STORAGE = 3,
    WGPU_QUERY_TIMESTAMP = 2, WGPU_STAGE_COMPUTE = 4, WGPU_MAP_READ = 1,
    WGPU_USAGE_MAP_READ = 1, WGPU_USAGE_COPY_FROM = 4, WGPU_USAGE_COPY_TO = 8, WGPU_USAGE_UNIFORM = 0x40,
    WGPU_USAGE_STORAGE = 0x80,
    WGPU_USAGE_QUERY_RESOLVE = 0x200,
    WGPU_OVER_VULKAN = 1, WGPU_OVER_METAL = 4, WGPU_OVER_DX12 = 8,
    WGPU_OVER_ALL = WGPU_OVER_VULKAN | WGPU_OVER_METAL | WGPU_OVER_DX12 /* but GL */
};

typedef struct { const WGPUChainedStruct *next; size_t feature_count; const uint32_t *features; const void *limits;
    } WGPUInstanceDescriptor;
typedef struct { /* wgpu-native's own */
    WGPUChainedStruct chain;
    uint64_t backends, flags;
    uint32_t dx12_compiler, gl_version, gl_fences;
    WGPUStringView dxc_path;
    uint32_t dxc_model, dx12_presentation;
    const uint8_t *creation_budget, *loss_budget;
    struct { uint32_t type; void *data[2]; } display;
} WGPUInstanceExtras;
typedef struct { const WGPUChainedStruct *next; uint64_t backends; } WGPUInstanceEnumerateAdapterOptions;
typedef struct {
    WGPUChainedStruct *next;
    WGPUStringView vendor, architecture, device, description;
    uint32_t backend_type, adapter_type, vendor_id, device_id, subgroup_min, subgroup_max;
} WGPUAdapterInfo;
typedef struct {
    WGPUChainedStruct *next;
    uint32_t texture[4], bind_groups, bind_groups_and_vertex_buffers, bindings_in_group, dynamic_uniforms,
        dynamic_storage, sampled_textures,
             samplers, storage_buffers, storage_textures, uniform_buffers;
    uint64_t uniform_binding_bytes, storage_binding_bytes;
    uint32_t uniform_align, storage_align, vertex_buffers;
    uint64_t buffer_bytes;
    uint32_t vertex_attributes, vertex_stride, inter_stage, color_attachments, color_bytes, workgroup_bytes,
        workgroup_invocations, workgroup_x, workgroup_y, workgroup_z, groups, immediate_bytes;
} WGPULimits;

typedef void (*WGPURequestDeviceCallback)(uint32_t status, WGPUDevice device, WGPUStringView message, void *user,
                                          void *user2);
typedef struct { WGPUChainedStruct *next; uint32_t mode; WGPURequestDeviceCallback callback; void *user, *user2;
    } WGPURequestDeviceCallbackInfo;
typedef void (*WGPUDeviceLostCallback)(const WGPUDevice *device, uint32_t reason, WGPUStringView message, void *user,
                                       void *user2);
typedef struct { WGPUChainedStruct *next; uint32_t mode; WGPUDeviceLostCallback callback; void *user, *user2;
                 } WGPUDeviceLostCallbackInfo;
typedef void (*WGPUErrorCallback)(const WGPUDevice *device, uint32_t type, WGPUStringView message, void *user,
                                  void *user2);
typedef struct { WGPUChainedStruct *next; WGPUErrorCallback callback; void *user, *user2; } WGPUErrorCallbackInfo;
typedef void (*WGPUBufferMapCallback)(uint32_t status, WGPUStringView message, void *user, void *user2);
typedef struct { WGPUChainedStruct *next; uint32_t mode; WGPUBufferMapCallback callback; void *user, *user2;
                 } WGPUBufferMapCallbackInfo;
typedef WGPUBufferMapCallback WGPUWorkDoneCallback; /* since webgpu.h gives that one a message too */
typedef struct { WGPUChainedStruct *next; uint32_t mode; WGPUWorkDoneCallback callback; void *user, *user2;
                 } WGPUQueueWorkDoneCallbackInfo;

typedef struct { WGPUChainedStruct *next; WGPUStringView label; } WGPUQueueDescriptor;
typedef struct {
    WGPUChainedStruct *next;
    WGPUStringView label;
    size_t feature_count;
    const uint32_t *features;
    const WGPULimits *limits;
    WGPUQueueDescriptor queue;
    WGPUDeviceLostCallbackInfo lost;
    WGPUErrorCallbackInfo error;
} WGPUDeviceDescriptor;
typedef struct { WGPUChainedStruct *next; WGPUStringView label; uint64_t usage, size; WGPUBool mapped;
                 } WGPUBufferDescriptor;

typedef struct { WGPUChainedStruct *next; uint32_t type; WGPUBool dynamic_offset; uint64_t least_bytes;
                 } WGPUBufferBindingLayout;
typedef struct { WGPUChainedStruct *next; uint32_t facts[3]; } WGPUTextureBindingLayout; /* of textures too: not used */
typedef struct {
    WGPUChainedStruct *next;
    uint32_t binding;
    uint64_t visibility;
    uint32_t array_size;
    WGPUBufferBindingLayout buffer;
    struct { WGPUChainedStruct *next; uint32_t type; } sampler;
    WGPUTextureBindingLayout texture, storage_texture;
} WGPUBindGroupLayoutEntry;
typedef struct { WGPUChainedStruct *next; WGPUStringView label; size_t count; const WGPUBindGroupLayoutEntry *entries;
    } WGPUBindGroupLayoutDescriptor;
typedef struct {
    WGPUChainedStruct *next;
    WGPUStringView label;
    size_t count;
    const WGPUBindGroupLayout *layouts;
    uint32_t immediate_bytes;
} WGPUPipelineLayoutDescriptor;
typedef struct { WGPUChainedStruct *next; uint32_t binding; WGPUBuffer buffer; uint64_t offset, size; void *sampler,
    *texture; } WGPUBindGroupEntry;
typedef struct {
    WGPUChainedStruct *next;
    WGPUStringView label;
    WGPUBindGroupLayout layout;
    size_t count;
    const WGPUBindGroupEntry *entries;
} WGPUBindGroupDescriptor;
typedef struct { WGPUChainedStruct *next; WGPUStringView label; } WGPUShaderModuleDescriptor;
typedef struct { WGPUChainedStruct chain; WGPUStringView code; } WGPUShaderSourceWGSL;
typedef struct {
    WGPUChainedStruct *next;
    WGPUStringView label;
    WGPUPipelineLayout layout;
    struct { WGPUChainedStruct *next; WGPUShaderModule module; WGPUStringView entry; size_t constant_count;
        const void *constants; } compute;
} WGPUComputePipelineDescriptor;
typedef struct { WGPUChainedStruct *next; WGPUStringView label; uint32_t type, count; } WGPUQuerySetDescriptor;
typedef struct { WGPUChainedStruct *next; WGPUStringView label; } WGPUCommandEncoderDescriptor,
    WGPUCommandBufferDescriptor;
typedef struct { WGPUChainedStruct *next; WGPUStringView label; const void *timestamps; } WGPUComputePassDescriptor;
#endif
