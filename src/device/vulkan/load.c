/* load.c: opens the Vulkan loader at run time and looks up the functions of functions.inc, so that neither an SDK nor a
 * driver is needed to build or to start. Also the doors for tests: faults, hidden parts. The loader, and the drivers
 * that it brings, stay in the process once they were opened: some cannot be loaded a second time, since what they took
 * of the threads' static storage does not come back. */
#define _GNU_SOURCE
#include "device/vulkan/vk.h"
#ifdef __linux__
#  include <dlfcn.h>
#  include <link.h>
#endif
#include <stddef.h>
#include <stdio.h>

static const hdi_function functions[] = {
#define HDVK_FUNCTION(level, need, name, type, status, results) \
    { "vk" #name, offsetof(hdvk_vk, name), HDVK_##level, need, HD_STATUS_##status, results },
#include "device/vulkan/functions.inc"
};
static const hdi_api api = { .backend = "vulkan", .functions = functions, .function_count = HDI_COUNT(functions) };
const hdi_function *hdvk_function_get(hdvk_function function) { return &functions[function]; }

static hdvk_fault_fn fault_now;
static uint32_t      hidden_now;

void hdvk_fault_set(hdvk_fault_fn fault) { fault_now = fault; }
VkResult hdvk_fault(hdvk_function function) { return fault_now ? fault_now(function) : VK_SUCCESS; }
void hdvk_hide_set(uint32_t parts) { hidden_now = parts; }
uint32_t hdvk_hidden(void) { return hidden_now; }

bool hdvk_load_library(hdvk_vk *vk) {
    static const char *const names[] = { "libvulkan.so.1", "libvulkan.so", "libvulkan.1.dylib", "vulkan-1.dll", NULL };
    vk->library = hdi_library_open(names);
    if (!vk->library) return false;
    const hdi_any_function function = hdi_library_look_up(vk->library, "vkGetInstanceProcAddr");
    memcpy(&vk->GetInstanceProcAddr, &function, sizeof function);
    return function != NULL;
}

static hdi_any_function ask_global(const void *from, const char *name) {
    const hdvk_vk *vk = from;
    return vk->GetInstanceProcAddr(NULL, name);
}
static hdi_any_function ask_instance(const void *from, const char *name) {
    const hdvk_vk *vk = from;
    return vk->GetInstanceProcAddr(vk->instance, name);
}
static hdi_any_function ask_device(const void *from, const char *name) {
    const hdvk_vk *vk = from;
    return vk->GetDeviceProcAddr(vk->device, name);
}

/* What became part of Vulkan after its version 1.1 has an older name too. */
static hdi_any_function ask_both(hdi_look_up ask, const void *vk, const char *name) {
    char older[80];
    const hdi_any_function function = ask(vk, name);
    if (function) return function;
    snprintf(older, sizeof older, "%sKHR", name);
    return ask(vk, older);
}
static hdi_any_function look_up_instance(const void *vk, const char *name) { return ask_both(ask_instance, vk, name); }
static hdi_any_function look_up_device(const void *vk, const char *name) { return ask_both(ask_device, vk, name); }

const char *hdvk_load_level(hdvk_vk *vk, hdvk_level level) {
    static const hdi_look_up look_ups[] = { ask_global, look_up_instance, look_up_device };
    return hdi_functions_load(&api, level, look_ups[level], vk, vk);
}

#ifdef __linux__
/* Looks for the library at `index` of the process; counts all of them on the way. */
typedef struct library_search {
    uint32_t index, count;
    char     path[1024];
} library_search;

static int visit_library(struct dl_phdr_info *info, size_t bytes, void *user) {
    library_search *search = user;
    (void)bytes;
    if (search->count++ == search->index)
        snprintf(search->path, sizeof search->path, "%s", info->dlpi_name ? info->dlpi_name : "");
    return 0;
}

uint32_t hdvk_library_count(void) {
    library_search search = { .index = UINT32_MAX };
    dl_iterate_phdr(visit_library, &search);
    return search.count;
}

void hdvk_library_keep(uint32_t from) {
    const uint32_t count = hdvk_library_count(); /* new ones are at the end */
    for (uint32_t i = from; i < count; i++) {
        library_search search = { .index = i };
        dl_iterate_phdr(visit_library, &search);
        void *library = search.path[0] ? dlopen(search.path, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE) : NULL;
        if (library) dlclose(library);
    }
}
#else
uint32_t hdvk_library_count(void) { return 0; }
void hdvk_library_keep(uint32_t from) { (void)from; }
#endif
