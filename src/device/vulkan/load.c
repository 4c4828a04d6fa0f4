/* load.c: opens the Vulkan loader at run time and looks up the functions of functions.inc, so that neither an SDK nor a
 * driver is needed to build or to start. Also the doors for tests: faults, hidden parts. The loader, and the drivers that
 * it brings, stay in the process once they were opened: some cannot be loaded a second time, since what they took of the
 * threads' static storage does not come back. */
#define _GNU_SOURCE
#include "device/vulkan/vk.h"
#include <dlfcn.h>
#ifdef __linux__
#  include <link.h>
#endif
#include <stddef.h>
#include <stdio.h>

static const hdvk_function_facts functions[] = {
#define HDVK_FUNCTION(level, need, name, type, status, results) \
    { "vk" #name, HDVK_##level, need, HD_STATUS_##status, results, offsetof(hdvk_vk, name) },
#include "device/vulkan/functions.inc"
};

const hdvk_function_facts *hdvk_function_get(hdvk_function function) { return &functions[function]; }

static hdvk_fault_fn fault_now;
static uint32_t      hidden_now;

void hdvk_fault_set(hdvk_fault_fn fault) { fault_now = fault; }
VkResult hdvk_fault(hdvk_function function) { return fault_now ? fault_now(function) : VK_SUCCESS; }
void hdvk_hide_set(uint32_t parts) { hidden_now = parts; }
uint32_t hdvk_hidden(void) { return hidden_now; }

bool hdvk_load_library(hdvk_vk *vk) {
    static const char *const names[] = { "libvulkan.so.1", "libvulkan.so", "libvulkan.1.dylib" };
    for (size_t i = 0; i < HDI_COUNT(names) && !vk->library; i++)
        vk->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!vk->library) return false;
    void *symbol = dlsym(vk->library, "vkGetInstanceProcAddr");
    memcpy(&vk->GetInstanceProcAddr, &symbol, sizeof symbol);
    return symbol != NULL;
}

static PFN_vkVoidFunction look_up(const hdvk_vk *vk, hdvk_level level, const char *name) {
    if (level == HDVK_DEVICE) return vk->GetDeviceProcAddr(vk->device, name);
    return vk->GetInstanceProcAddr(level == HDVK_GLOBAL ? NULL : vk->instance, name);
}

const char *hdvk_load_level(hdvk_vk *vk, hdvk_level level) {
    for (size_t i = 0; i < HDI_COUNT(functions); i++) {
        const hdvk_function_facts *row = &functions[i];
        if (row->level != level) continue;
        PFN_vkVoidFunction function = look_up(vk, level, row->name);
        if (!function && !row->required) { /* what became part of Vulkan later has an older name */
            char older[64];
            snprintf(older, sizeof older, "%sKHR", row->name);
            function = look_up(vk, level, older);
        }
        if (!function && row->required) return row->name;
        memcpy((char *)vk + row->offset, &function, sizeof function);
    }
    return NULL;
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
    if (search->count++ == search->index) snprintf(search->path, sizeof search->path, "%s", info->dlpi_name ? info->dlpi_name : "");
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
