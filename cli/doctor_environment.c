/* doctor_environment.c: variables that change what heddle or drivers do. */
#include "cli/doctor.h"
#include <stdlib.h>
#include <string.h>

/* Of drivers and loaders: what hides devices, chooses drivers, or puts code in between. */
static const cli_variable others[] = {
    { "VK_DRIVER_FILES", "only these Vulkan drivers are looked at" },
    { "VK_ICD_FILENAMES", "only these Vulkan drivers are looked at" },
    { "VK_ADD_DRIVER_FILES", "these Vulkan drivers are looked at too" },
    { "VK_LOADER_DRIVERS_SELECT", "only these Vulkan drivers are looked at" },
    { "VK_LOADER_DRIVERS_DISABLE", "these Vulkan drivers are left out" },
    { "VK_INSTANCE_LAYERS", "these Vulkan layers stand between heddle and the driver" },
    { "VK_LOADER_LAYERS_ENABLE", "these Vulkan layers stand between heddle and the driver" },
    { "MESA_VK_DEVICE_SELECT", "Mesa puts this device first, or shows it alone" },
    { "DRI_PRIME", "Mesa puts another GPU first" },
    { "CUDA_VISIBLE_DEVICES", "CUDA shows these GPUs only; empty: none" },
    { "CUDA_DEVICE_ORDER", "the order in which CUDA counts GPUs" },
    { "CUDA_LAUNCH_BLOCKING", "1: CUDA waits for each kernel, which makes everything slow" },
    { "NVIDIA_VISIBLE_DEVICES", "the container is shown these GPUs only" },
    { "NVIDIA_DRIVER_CAPABILITIES",
      "the container is given these parts of the driver: CUDA and OpenCL need compute, Vulkan graphics" },
    { "HIP_VISIBLE_DEVICES", "HIP shows these GPUs only; empty: none" },
    { "ROCR_VISIBLE_DEVICES", "ROCm shows these GPUs only" },
    { "GPU_DEVICE_ORDINAL", "AMD's OpenCL and HIP show these GPUs only" },
    { "HSA_OVERRIDE_GFX_VERSION", "ROCm takes the GPU for another one" },
    { "ZE_AFFINITY_MASK", "Level Zero shows these devices only" },
    { "ZE_ENABLE_NULL_DRIVER", "1: Level Zero computes nothing" },
    { "ZE_ENABLE_ALT_DRIVERS", "Level Zero takes these drivers" },
    { "OCL_ICD_VENDORS", "OpenCL drivers are looked for here only" },
    { "OCL_ICD_FILENAMES", "these OpenCL drivers are looked at too" },
    { "OCL_ICD_DEFAULT_PLATFORM", "the OpenCL platform that comes first" },
    { "POCL_DEVICES", "the devices that PoCL shows" },
    { "LP_NUM_THREADS", "the threads of lavapipe" },
    { "LD_LIBRARY_PATH", "drivers and loaders are looked for here first" },
    { "LD_PRELOAD", "this stands between heddle and all libraries" },
};

/* A name that begins like those of heddle, but is none. */
static void find_misspelt(doctor_findings *to) {
    const char *known[32];
    const size_t count = cli_environment_count < CLI_COUNT(known) ? cli_environment_count : CLI_COUNT(known);
    for (size_t i = 0; i < count; i++) known[i] = cli_environment[i].name;
    for (char **entry = system_environment(); *entry; entry++) {
        char name[64];
        bool is_known = false;
        const size_t length = strcspn(*entry, "=");
        if (strncmp(*entry, "HEDDLE_", 7) != 0 || length >= sizeof name) continue;
        snprintf(name, sizeof name, "%.*s", (int)length, *entry);
        for (size_t i = 0; i < count; i++) is_known = is_known || strcmp(name, known[i]) == 0;
        if (is_known) continue;
        const char *near = cli_nearest(name, known, count);
        doctor_add(to, DOCTOR_NOTE, "environment", name, "no variable of heddle's: nothing reads it");
        doctor_mend(to, near ? "did you mean %s?" : "`heddle help` lists them%s", near ? near : "");
    }
}

static void tell_variables(doctor_findings *to, const cli_variable *table, size_t count, bool when_empty) {
    for (size_t i = 0; i < count; i++) {
        const char *value = getenv(table[i].name);
        if (!value || (!value[0] && !when_empty)) continue;
        doctor_add(to, DOCTOR_NOTE, "environment", table[i].name, "is \"%.150s\": %s", value, table[i].help);
        doctor_mend(to, "unset %s if that is not wanted", table[i].name);
    }
}

void doctor_environment(doctor_findings *to) {
    tell_variables(to, cli_environment, cli_environment_count, false);
    find_misspelt(to);
    tell_variables(to, others, CLI_COUNT(others), true);
}
