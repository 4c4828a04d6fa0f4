/* hip.c: HIP's side of what CUDA and HIP do not share; the rest of the HIP back end is device/cuda. */
#include "device/cuda/cu.h"
#include <stdio.h>

/* The architecture ("gfx90a:sramecc+:xnack-") stands in a struct whose layout changes from version to version, while
 * text that begins so stands in it once. */
static bool find_arch(hdcu_api *api, int device, char *out, size_t room) {
    static const char head[] = "gfx";
    char properties[8192] = { 0 };
    if (!api->DeviceGetProperties || !HDCU_CALL(api, DeviceGetProperties, properties, device)) return false;
    properties[sizeof properties - 1] = 0;
    for (size_t i = 0; i + sizeof head < sizeof properties; i++)
        if (memcmp(properties + i, head, sizeof head - 1) == 0) {
            snprintf(out, room, "%.*s", (int)room - 1, properties + i);
            return true;
        }
    return false;
}

/* A dispatch has fewer than 2^32 invocations along x; matrix units and dot products have no printed form yet. */
static bool refine(hdcu_api *api, hdcu_facts *facts, hdi_caps *caps) {
    caps->max_groups_x = HDI_MIN(caps->max_groups_x, UINT32_MAX / HDI_MAX(caps->max_workgroup_x, UINT64_C(1)));
    caps->max_groups_y = HDI_MIN(caps->max_groups_y, (uint64_t)UINT16_MAX);
    caps->max_groups_z = HDI_MIN(caps->max_groups_z, (uint64_t)UINT16_MAX);
    return (caps->subgroup == 32 || caps->subgroup == 64) &&
           find_arch(api, facts->device, facts->code, sizeof facts->code);
}

static const char *const drivers[] = { "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so",
                                       NULL };
/* Before version 6 the compiler may be part of the driver's library. */
static const char *const compilers[] = { "libhiprtc.so.7", "libhiprtc.so.6",   "libhiprtc.so.5",
                                         "libhiprtc.so",   "libamdhip64.so.5", NULL };
static const char *const exact_options[] = { "-O3", "-ffp-contract=off", NULL };
static const char *const fast_options[] = { "-O3", NULL };

const hdcu_flavour hdcu_hip = {
    .backend = "hip", .compiler_name = "hipRTC", .is_hip = true, .dialect = HDI_SPIRV_HIP, .drivers = drivers,
    .compilers = compilers,
    .no_driver = "there is no HIP runtime (libamdhip64.so)",
    .driver_mend = "install AMD's ROCm runtime (Debian: libamdhip64-5)",
    .device_mend = "see whether /dev/kfd is there and this user may open it",
    .compiler_mend = "install hipRTC (Debian: libamdhip64-5, libhiprtc-builtins5)", .arch_option = "--offload-arch=",
    .exact_options = exact_options, .fast_options = fast_options, .refine = refine,
};
