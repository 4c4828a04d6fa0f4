/* module.c: loads what the run-time compiler made, and checks launches. */
#define _GNU_SOURCE
#include "standin.h"
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct standin_module {
    void             *object;
    standin_function *functions;
};

/* ---- modules ---- */

/* A shared object from bytes, by way of a file that is gone at once. */
static void *open_object(const void *bytes, size_t count) {
    char path[] = "/tmp/heddle-standin-XXXXXX";
    const int file = mkstemp(path);
    if (file < 0) return NULL;
    const char *at = bytes;
    size_t left = count;
    for (ssize_t written; left && (written = write(file, at, left)) > 0; left -= (size_t)written) at += written;
    close(file);
    void *object = left ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object) fprintf(stderr, "stand-in: %s\n", left ? "no room in /tmp" : dlerror());
    unlink(path);
    return object;
}

standin_status standin_module_load(const void *image, standin_module **out) {
    standin_image head;
    memcpy(&head, image, sizeof head);
    if (memcmp(head.magic, STANDIN_IMAGE_MAGIC, sizeof head.magic) != 0) return STANDIN_INVALID_IMAGE;
    if (head.architecture != standin_architecture()) return STANDIN_NO_BINARY;
    standin_module *module = calloc(1, sizeof *module);
    if (!module) return STANDIN_OUT_OF_MEMORY;
    module->object = open_object((const char *)image + sizeof head, head.bytes);
    if (!module->object) {
        free(module);
        return STANDIN_INVALID_IMAGE;
    }
    *out = module;
    return STANDIN_OK;
}

standin_status standin_module_unload(standin_module *module) {
    standin_wait_all();
    while (module->functions) {
        standin_function *function = module->functions;
        module->functions = function->next;
        free(function);
    }
    dlclose(module->object);
    free(module);
    return STANDIN_OK;
}

/* ---- functions ---- */

typedef struct tls_search {
    size_t module; /* as the dynamic linker counts */
    size_t bytes;
} tls_search;

static int see_object(struct dl_phdr_info *info, size_t size, void *data) {
    tls_search *search = data;
    (void)size;
    if (info->dlpi_tls_modid != search->module) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS) search->bytes = info->dlpi_phdr[i].p_memsz;
    return 1;
}

/* Shared memory is thread-local memory of the worker's thread. */
static void find_shared(void *object, standin_function *function) {
    tls_search search = { 0 };
    char *begin = NULL, *place = function->kernel->enter(NULL);
    if (dlinfo(object, RTLD_DI_TLS_MODID, &search.module) || dlinfo(object, RTLD_DI_TLS_DATA, &begin) || !begin)
        standin_abort("a kernel's shared memory is not found");
    dl_iterate_phdr(see_object, &search);
    function->shared_bytes = search.bytes;
    function->place_offset = (size_t)(place - begin);
}

standin_status standin_module_function(standin_module *module, const char *name, standin_function **out) {
    char symbol[256];
    snprintf(symbol, sizeof symbol, "standin_kernel_%s", name);
    const standin_kernel *kernel = dlsym(module->object, symbol);
    if (!kernel) return STANDIN_NOT_FOUND;
    standin_function *function = calloc(1, sizeof *function);
    if (!function) return STANDIN_OUT_OF_MEMORY;
    function->kernel = kernel;
    function->waits = dlsym(module->object, "standin_uses_barrier") || dlsym(module->object, "standin_uses_warp");
    find_shared(module->object, function);
    function->next = module->functions;
    module->functions = function;
    *out = function;
    return STANDIN_OK;
}

/* ---- launches ---- */

static bool is_in(standin_dim3 size, standin_dim3 most) {
    return size.x && size.y && size.z && size.x <= most.x && size.y <= most.y && size.z <= most.z;
}

static standin_status check_sizes(const standin_function *function, standin_dim3 grid, standin_dim3 block, unsigned shared_bytes) {
    const unsigned threads = block.x * block.y * block.z, most = function->kernel->max_threads;
    if (!is_in(grid, (standin_dim3){ INT32_MAX, 65535, 65535 })) return standin_refuse(STANDIN_INVALID_VALUE, "a grid of %u x %u x %u", grid.x, grid.y, grid.z);
    if (!is_in(block, (standin_dim3){ 1024, 1024, 64 }) || threads > STANDIN_MAX_THREADS)
        return standin_refuse(STANDIN_INVALID_VALUE, "a block of %u x %u x %u", block.x, block.y, block.z);
    if (most && threads > most) return standin_refuse(STANDIN_INVALID_VALUE, "a block of %u threads; the kernel was compiled for %u", threads, most);
    const bool at_launch = function->shared_bytes > STANDIN_SHARED_AT_LAUNCH; /* rewrite.c gives such a kernel all there is */
    if (shared_bytes > function->most_at_launch || at_launch != (shared_bytes > 0))
        return standin_refuse(STANDIN_INVALID_VALUE, "%u bytes of shared memory told at launch; allowed were %u", shared_bytes, function->most_at_launch);
    if (!at_launch && function->shared_bytes > STANDIN_SHARED_BYTES + 64) return standin_refuse(STANDIN_INVALID_VALUE, "%zu bytes of shared memory", function->shared_bytes);
    return STANDIN_OK;
}

static size_t argument_at(const standin_kernel *kernel, unsigned index, size_t at) {
    const size_t bytes = kernel->argument_bytes[index], align = bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : 1;
    return (at + align - 1) / align * align;
}

/* Pointers to each argument, and behind them the arguments, each where it may be any type. */
static void **copy_arguments(const standin_kernel *kernel, void *const *arguments, const char *packed) {
    size_t bytes = (kernel->argument_count + 1) * sizeof(void *);
    bytes = (bytes + 15) / 16 * 16;
    size_t at = bytes, packed_at = 0;
    for (unsigned i = 0; i < kernel->argument_count; i++) bytes += ((size_t)kernel->argument_bytes[i] + 15) / 16 * 16;
    void **copy = aligned_alloc(16, bytes);
    for (unsigned i = 0; i < kernel->argument_count && copy; i++) {
        const size_t size = kernel->argument_bytes[i];
        packed_at = argument_at(kernel, i, packed_at);
        copy[i] = (char *)copy + at;
        memcpy(copy[i], packed ? packed + packed_at : arguments[i], size);
        at += (size + 15) / 16 * 16;
        packed_at += size;
    }
    return copy;
}

void **standin_arguments_copy(const standin_launch *launch) {
    return copy_arguments(launch->function->kernel, launch->arguments, NULL);
}

static standin_status check_arguments(const standin_kernel *kernel, void *const *arguments, size_t packed_bytes, bool packed) {
    size_t at = 0;
    for (unsigned i = 0; i < kernel->argument_count; i++) {
        at = argument_at(kernel, i, at) + kernel->argument_bytes[i];
        if (!packed && (!arguments || !arguments[i])) return standin_refuse(STANDIN_INVALID_VALUE, "argument %u of a launch is missing", i);
    }
    if (packed && (at + 7) / 8 != (packed_bytes + 7) / 8) return standin_refuse(STANDIN_INVALID_VALUE, "%zu bytes of arguments for a kernel of %zu", packed_bytes, at);
    return STANDIN_OK;
}

standin_status standin_launch_make(const standin_function *function, standin_dim3 grid, standin_dim3 block, unsigned shared_bytes,
                                   void *const *arguments, const void *packed, size_t packed_bytes, standin_launch *out) {
    const standin_kernel *kernel = function->kernel;
    standin_status status = check_sizes(function, grid, block, shared_bytes);
    if (!status) status = check_arguments(kernel, arguments, packed_bytes, packed);
    if (status) return status;
    *out = (standin_launch){ function, grid, block, copy_arguments(kernel, arguments, packed), false };
    if (!out->arguments) return STANDIN_OUT_OF_MEMORY;
    for (unsigned i = 0; i < kernel->argument_count; i++) {
        const void *pointer = NULL;
        if (!kernel->argument_is_pointer[i]) continue;
        memcpy(&pointer, out->arguments[i], sizeof pointer);
        if (standin_holds(pointer, 1)) continue;
        free(out->arguments);
        return standin_lose(STANDIN_ILLEGAL_ADDRESS, "argument %u of a launch, %p, points to no memory", i, pointer);
    }
    return STANDIN_OK;
}
