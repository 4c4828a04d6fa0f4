/* levelzero.c: a Level Zero driver without a GPU, for tests: libze_loader.so.1, made of an OpenCL driver for the CPU that takes
 * SPIR's bitcode (PoCL) and of llvm-spirv, which turns SPIR-V into that. Commands are carried out in order while they are
 * handed over. Its memory is the host's. What is asked of it wrongly is refused or ends the process, so that tests see it:
 * launches with arguments missing, closed lists that are written to, open ones that are executed. Modules in its own format
 * are the bitcode behind a word. */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <fcntl.h>
#include <level_zero/ze_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ARGUMENTS = 20, MAX_WORDS = 80 };
static const char native_magic[4] = { 'z', 'e', 'b', 'c' };

typedef enum kind { LAUNCH, COPY, FILL, TIME } kind;
typedef struct argument { size_t bytes; uint32_t words[MAX_WORDS]; } argument;
typedef struct command {
    kind        kind;
    cl_kernel   kernel;
    uint32_t    argument_count;
    argument   *arguments;
    size_t      local[3], groups[3];
    void       *to;
    const void *from;
    size_t      bytes, pattern_bytes;
    uint8_t     pattern[16];
} command;

struct _ze_command_list_handle_t { command *commands; uint32_t count, room; bool closed; };
struct _ze_fence_handle_t { bool signaled; };
struct _ze_module_handle_t { cl_program program; uint8_t *code; size_t bytes; };
struct _ze_kernel_handle_t { cl_kernel kernel; uint32_t argument_count; size_t local[3]; argument arguments[MAX_ARGUMENTS]; };
struct _ze_module_build_log_handle_t { char text[64]; };

static cl_platform_id platform;
static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static const char *translator;
static char handles[4]; /* of the driver, the device, the context and a queue: their addresses stand for them */

static void must(bool fine, const char *what) {
    if (fine) return;
    fprintf(stderr, "levelzero stand-in: %s\n", what);
    abort();
}

/* ---- programs of others ---- */

static int run(const char *program, const char *a, const char *b, const char *c, const char *d) {
    const pid_t child = fork();
    if (child == 0) {
        const int null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        dup2(null, 2);
        execlp(program, program, a, b, c, d, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static uint8_t *read_file(const char *path, size_t *out_bytes) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    *out_bytes = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*out_bytes + 1);
    if (bytes && fread(bytes, 1, *out_bytes, file) != *out_bytes) free(bytes), bytes = NULL;
    fclose(file);
    return bytes;
}

/* SPIR-V to bitcode, by way of files. */
static uint8_t *translate(const uint8_t *module, size_t count, size_t *out_bytes) {
    char folder[] = "/tmp/heddle-standin-XXXXXX", from[64], to[64];
    if (!mkdtemp(folder)) return NULL;
    snprintf(from, sizeof from, "%s/k.spv", folder);
    snprintf(to, sizeof to, "%s/k.bc", folder);
    FILE *file = fopen(from, "wb");
    bool fine = file && fwrite(module, 1, count, file) == count;
    if (file) fine = fclose(file) == 0 && fine;
    fine = fine && run(translator, "-r", "-o", to, from) == 0;
    uint8_t *code = fine ? read_file(to, out_bytes) : NULL;
    remove(from);
    remove(to);
    rmdir(folder);
    return code;
}

/* ---- driver and device ---- */

static bool begin(void) {
    static const char *const names[] = { "llvm-spirv-15", "llvm-spirv-14", "llvm-spirv" };
    static char extensions[16384];
    cl_platform_id platforms[8];
    cl_uint count = 0;
    if (queue) return true;
    for (size_t i = 0; i < sizeof names / sizeof *names && !translator; i++)
        if (run(names[i], "--version", NULL, NULL, NULL) == 0) translator = names[i];
    if (!translator || clGetPlatformIDs(8, platforms, &count)) return false;
    for (cl_uint i = 0; i < count && !queue; i++) {
        platform = platforms[i];
        if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, NULL) || clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof extensions, extensions, NULL)) continue;
        if (!strstr(extensions, "cl_khr_spir")) continue;
        context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
        if (context) queue = clCreateCommandQueue(context, device, 0, NULL);
    }
    return queue != NULL;
}

ze_result_t zeInit(ze_init_flags_t flags) {
    (void)flags;
    return begin() ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_UNINITIALIZED;
}
ze_result_t zeDriverGet(uint32_t *count, ze_driver_handle_t *drivers) {
    if (*count && drivers) drivers[0] = (ze_driver_handle_t)(void *)&handles[0];
    *count = 1;
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeDriverGetProperties(ze_driver_handle_t driver, ze_driver_properties_t *out) {
    (void)driver;
    out->driverVersion = 1u << 24 | 3u << 16;
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeDeviceGet(ze_driver_handle_t driver, uint32_t *count, ze_device_handle_t *devices) {
    (void)driver;
    if (*count && devices) devices[0] = (ze_device_handle_t)(void *)&handles[1];
    *count = 1;
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeDeviceGetProperties(ze_device_handle_t of, ze_device_properties_t *out) {
    (void)of;
    must(out->stype == ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2, "its structure is marked");
    out->type = ZE_DEVICE_TYPE_CPU;
    out->vendorId = 0x8086;
    out->maxMemAllocSize = UINT64_C(1) << 32;
    out->coreClockRate = 1000;
    out->physicalEUSimdWidth = out->numEUsPerSubslice = out->numSubslicesPerSlice = out->numSlices = 2;
    out->timerResolution = 1000000000;
    out->timestampValidBits = 48;
    snprintf(out->name, sizeof out->name, "a stand-in for a Level Zero GPU");
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeDeviceGetComputeProperties(ze_device_handle_t of, ze_device_compute_properties_t *out) {
    (void)of;
    out->maxTotalGroupSize = out->maxGroupSizeX = out->maxGroupSizeY = out->maxGroupSizeZ = 1024;
    out->maxGroupCountX = out->maxGroupCountY = out->maxGroupCountZ = UINT32_MAX;
    out->maxSharedLocalMemory = 65536;
    out->numSubGroupSizes = 1;
    out->subGroupSizes[0] = 16;
    return ZE_RESULT_SUCCESS;
}
/* No subgroups: the version of SPIR-V is too low. */
ze_result_t zeDeviceGetModuleProperties(ze_device_handle_t of, ze_device_module_properties_t *out) {
    (void)of;
    out->spirvVersionSupported = ZE_MAKE_VERSION(1, 2);
    out->flags = ZE_DEVICE_MODULE_FLAG_FP16 | ZE_DEVICE_MODULE_FLAG_FP64 | ZE_DEVICE_MODULE_FLAG_INT64_ATOMICS;
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeDeviceGetMemoryProperties(ze_device_handle_t of, uint32_t *count, ze_device_memory_properties_t *out) {
    (void)of;
    if (*count && out) out->totalSize = UINT64_C(1) << 33;
    *count = 1;
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeDeviceGetCommandQueueGroupProperties(ze_device_handle_t of, uint32_t *count, ze_command_queue_group_properties_t *out) {
    (void)of;
    if (*count > 1 && out) { /* the first one only copies */
        out[0].flags = ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY;
        out[1].flags = ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE | ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY;
    }
    *count = 2;
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeContextCreate(ze_driver_handle_t driver, const ze_context_desc_t *desc, ze_context_handle_t *out) {
    (void)driver;
    (void)desc;
    *out = (ze_context_handle_t)(void *)&handles[2];
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeContextDestroy(ze_context_handle_t of) {
    (void)of;
    return ZE_RESULT_SUCCESS;
}

/* ---- memory ---- */

static ze_result_t allocate(size_t bytes, size_t align, void **out) {
    *out = clSVMAlloc(context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, bytes, align > 128 ? 128 : (cl_uint)align);
    if (*out) memset(*out, 0xA5, bytes); /* never zeros by chance */
    return *out ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
}
ze_result_t zeMemAllocDevice(ze_context_handle_t of, const ze_device_mem_alloc_desc_t *desc, size_t bytes, size_t align, ze_device_handle_t on, void **out) {
    (void)of;
    (void)desc;
    (void)on;
    return allocate(bytes, align, out);
}
ze_result_t zeMemAllocHost(ze_context_handle_t of, const ze_host_mem_alloc_desc_t *desc, size_t bytes, size_t align, void **out) {
    (void)of;
    (void)desc;
    return allocate(bytes, align, out);
}
ze_result_t zeMemAllocShared(ze_context_handle_t of, const ze_device_mem_alloc_desc_t *desc, const ze_host_mem_alloc_desc_t *host, size_t bytes, size_t align,
                             ze_device_handle_t on, void **out) {
    (void)of;
    (void)desc;
    (void)host;
    (void)on;
    return allocate(bytes, align, out);
}
ze_result_t zeMemFree(ze_context_handle_t of, void *memory) {
    (void)of;
    clSVMFree(context, memory);
    return ZE_RESULT_SUCCESS;
}

/* ---- modules and kernels ---- */

ze_result_t zeModuleCreate(ze_context_handle_t of, ze_device_handle_t on, const ze_module_desc_t *desc, ze_module_handle_t *out, ze_module_build_log_handle_t *build_log) {
    (void)of;
    (void)on;
    const bool is_native = desc->format == ZE_MODULE_FORMAT_NATIVE;
    ze_module_handle_t module = calloc(1, sizeof *module);
    if (!module) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    if (build_log) *build_log = NULL;
    if (is_native && desc->inputSize > 4 && memcmp(desc->pInputModule, native_magic, 4) == 0) {
        module->bytes = desc->inputSize - 4;
        module->code = malloc(module->bytes);
        if (module->code) memcpy(module->code, desc->pInputModule + 4, module->bytes);
    } else if (!is_native) {
        module->code = translate(desc->pInputModule, desc->inputSize, &module->bytes);
    }
    const unsigned char *code = module->code;
    cl_int status = CL_INVALID_BINARY, result = CL_INVALID_BINARY;
    if (code) module->program = clCreateProgramWithBinary(context, 1, &device, &module->bytes, &code, &status, &result);
    if (module->program && clBuildProgram(module->program, 1, &device, "-x spir -spir-std=1.2", NULL, NULL) == CL_SUCCESS) {
        *out = module;
        return ZE_RESULT_SUCCESS;
    }
    if (module->program) clReleaseProgram(module->program);
    free(module->code);
    free(module);
    if (build_log && (*build_log = calloc(1, sizeof **build_log))) snprintf((*build_log)->text, sizeof (*build_log)->text, "the translator or the compiler refuses it");
    return is_native ? ZE_RESULT_ERROR_INVALID_NATIVE_BINARY : ZE_RESULT_ERROR_MODULE_BUILD_FAILURE;
}
ze_result_t zeModuleDestroy(ze_module_handle_t module) {
    clReleaseProgram(module->program);
    free(module->code);
    free(module);
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeModuleBuildLogGetString(ze_module_build_log_handle_t of, size_t *bytes, char *out) {
    if (out) memcpy(out, of->text, strlen(of->text) + 1);
    *bytes = strlen(of->text) + 1;
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeModuleBuildLogDestroy(ze_module_build_log_handle_t of) {
    free(of);
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeModuleGetNativeBinary(ze_module_handle_t module, size_t *bytes, uint8_t *out) {
    if (out) {
        memcpy(out, native_magic, 4);
        memcpy(out + 4, module->code, module->bytes);
    }
    *bytes = module->bytes + 4;
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeKernelCreate(ze_module_handle_t module, const ze_kernel_desc_t *desc, ze_kernel_handle_t *out) {
    ze_kernel_handle_t kernel = calloc(1, sizeof *kernel);
    cl_uint count = 0;
    if (!kernel) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    kernel->kernel = clCreateKernel(module->program, desc->pKernelName, NULL);
    if (!kernel->kernel || clGetKernelInfo(kernel->kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL) || count > MAX_ARGUMENTS) {
        free(kernel);
        return ZE_RESULT_ERROR_INVALID_KERNEL_NAME;
    }
    kernel->argument_count = count;
    *out = kernel;
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeKernelDestroy(ze_kernel_handle_t kernel) {
    clReleaseKernel(kernel->kernel);
    free(kernel);
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeKernelSetGroupSize(ze_kernel_handle_t kernel, uint32_t x, uint32_t y, uint32_t z) {
    if ((uint64_t)x * y * z > 1024) return ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION;
    kernel->local[0] = x;
    kernel->local[1] = y;
    kernel->local[2] = z;
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeKernelSetArgumentValue(ze_kernel_handle_t kernel, uint32_t index, size_t bytes, const void *value) {
    if (index >= kernel->argument_count) return ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX;
    if (bytes == 0 || bytes > sizeof kernel->arguments[0].words) return ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE;
    kernel->arguments[index].bytes = bytes;
    memcpy(kernel->arguments[index].words, value, bytes);
    return ZE_RESULT_SUCCESS;
}

/* ---- command lists ---- */

static void empty(ze_command_list_handle_t list) {
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->commands[i].kernel) clReleaseKernel(list->commands[i].kernel);
        free(list->commands[i].arguments);
    }
    list->count = 0;
    list->closed = false;
}

static command *append(ze_command_list_handle_t list, kind what) {
    must(!list->closed, "a closed list is written to");
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 64;
        list->commands = realloc(list->commands, list->room * sizeof *list->commands);
        must(list->commands != NULL, "memory");
    }
    command *made = &list->commands[list->count++];
    memset(made, 0, sizeof *made);
    made->kind = what;
    return made;
}

ze_result_t zeCommandListCreate(ze_context_handle_t of, ze_device_handle_t on, const ze_command_list_desc_t *desc, ze_command_list_handle_t *out) {
    (void)of;
    (void)on;
    must(desc->commandQueueGroupOrdinal == 1, "the queue group computes");
    *out = calloc(1, sizeof **out);
    return *out ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
}
ze_result_t zeCommandListDestroy(ze_command_list_handle_t list) {
    empty(list);
    free(list->commands);
    free(list);
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeCommandListClose(ze_command_list_handle_t list) {
    list->closed = true;
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeCommandListReset(ze_command_list_handle_t list) {
    empty(list);
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeCommandListAppendBarrier(ze_command_list_handle_t list, ze_event_handle_t signal, uint32_t count, ze_event_handle_t *events) {
    (void)signal;
    (void)count;
    (void)events;
    must(!list->closed, "a closed list is written to");
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeCommandListAppendMemoryCopy(ze_command_list_handle_t list, void *to, const void *from, size_t bytes, ze_event_handle_t signal, uint32_t count,
                                          ze_event_handle_t *events) {
    (void)signal;
    (void)count;
    (void)events;
    command *made = append(list, COPY);
    made->to = to;
    made->from = from;
    made->bytes = bytes;
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeCommandListAppendMemoryFill(ze_command_list_handle_t list, void *to, const void *pattern, size_t pattern_bytes, size_t bytes, ze_event_handle_t signal,
                                          uint32_t count, ze_event_handle_t *events) {
    (void)signal;
    (void)count;
    (void)events;
    command *made = append(list, FILL);
    must(pattern_bytes && pattern_bytes <= sizeof made->pattern && bytes % pattern_bytes == 0, "a pattern that fits");
    made->to = to;
    made->bytes = bytes;
    made->pattern_bytes = pattern_bytes;
    memcpy(made->pattern, pattern, pattern_bytes);
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeCommandListAppendWriteGlobalTimestamp(ze_command_list_handle_t list, uint64_t *to, ze_event_handle_t signal, uint32_t count, ze_event_handle_t *events) {
    (void)signal;
    (void)count;
    (void)events;
    append(list, TIME)->to = to;
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeCommandListAppendLaunchKernel(ze_command_list_handle_t list, ze_kernel_handle_t kernel, const ze_group_count_t *groups, ze_event_handle_t signal,
                                            uint32_t count, ze_event_handle_t *events) {
    (void)signal;
    (void)count;
    (void)events;
    command *made = append(list, LAUNCH);
    made->kernel = kernel->kernel;
    clRetainKernel(kernel->kernel);
    made->argument_count = kernel->argument_count;
    made->arguments = malloc(kernel->argument_count * sizeof *made->arguments);
    must(made->arguments != NULL, "memory");
    memcpy(made->arguments, kernel->arguments, kernel->argument_count * sizeof *made->arguments);
    memcpy(made->local, kernel->local, sizeof made->local);
    const uint32_t counts[] = { groups->groupCountX, groups->groupCountY, groups->groupCountZ };
    for (int i = 0; i < 3; i++) made->groups[i] = counts[i];
    return ZE_RESULT_SUCCESS;
}

/* ---- queues and fences ---- */

static bool launch(const command *c) {
    size_t global[3];
    for (int i = 0; i < 3; i++) global[i] = c->groups[i] * c->local[i];
    for (uint32_t i = 0; i < c->argument_count; i++) {
        const argument *a = &c->arguments[i];
        void *pointer;
        memcpy(&pointer, a->words, sizeof pointer);
        must(a->bytes > 0, "an argument is missing");
        const bool last = i + 1 == c->argument_count; /* the words */
        if (last ? clSetKernelArg(c->kernel, i, a->bytes, a->words) : clSetKernelArgSVMPointer(c->kernel, i, pointer)) return false;
    }
    return clEnqueueNDRangeKernel(queue, c->kernel, 3, NULL, global, c->local, 0, NULL, NULL) == CL_SUCCESS && clFinish(queue) == CL_SUCCESS;
}

static bool carry_out(const command *c) {
    struct timespec now;
    switch (c->kind) {
    case LAUNCH: return launch(c);
    case COPY: memcpy(c->to, c->from, c->bytes); return true;
    case FILL:
        for (size_t i = 0; i < c->bytes; i += c->pattern_bytes) memcpy((char *)c->to + i, c->pattern, c->pattern_bytes);
        return true;
    default:
        clock_gettime(CLOCK_MONOTONIC, &now);
        *(uint64_t *)c->to = ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) & ((UINT64_C(1) << 48) - 1);
        return true;
    }
}

ze_result_t zeCommandQueueCreate(ze_context_handle_t of, ze_device_handle_t on, const ze_command_queue_desc_t *desc, ze_command_queue_handle_t *out) {
    (void)of;
    (void)on;
    must(desc->ordinal == 1, "the queue group computes");
    *out = (ze_command_queue_handle_t)(void *)&handles[3];
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeCommandQueueDestroy(ze_command_queue_handle_t of) {
    (void)of;
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeCommandQueueExecuteCommandLists(ze_command_queue_handle_t of, uint32_t count, ze_command_list_handle_t *lists, ze_fence_handle_t fence) {
    (void)of;
    for (uint32_t i = 0; i < count; i++) {
        must(lists[i]->closed, "an open list is executed");
        for (uint32_t k = 0; k < lists[i]->count; k++)
            if (!carry_out(&lists[i]->commands[k])) return ZE_RESULT_ERROR_DEVICE_LOST;
    }
    if (fence) {
        must(!fence->signaled, "a fence was not reset");
        fence->signaled = true;
    }
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeCommandQueueSynchronize(ze_command_queue_handle_t of, uint64_t timeout_ns) {
    (void)of;
    (void)timeout_ns;
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeFenceCreate(ze_command_queue_handle_t of, const ze_fence_desc_t *desc, ze_fence_handle_t *out) {
    (void)of;
    (void)desc;
    *out = calloc(1, sizeof **out);
    return *out ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
}
ze_result_t zeFenceDestroy(ze_fence_handle_t fence) {
    free(fence);
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeFenceReset(ze_fence_handle_t fence) {
    fence->signaled = false;
    return ZE_RESULT_SUCCESS;
}
ze_result_t zeFenceQueryStatus(ze_fence_handle_t fence) { return fence->signaled ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY; }
