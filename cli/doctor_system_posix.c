/* doctor_system_posix.c: the system around heddle, on Linux: GPUs on the bus, the files by which programs reach them,
 * and the driver files that loaders read. */
#define _DEFAULT_SOURCE
#include "cli/doctor.h"
#include "machine.h"
#include <dirent.h>
#include <dlfcn.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_ROOM = 512, MOST_FILES = 64 };

/* The names in a folder, in order; free_names. */
typedef struct names {
    struct dirent **items;
    int             count;
} names;

static names list(const char *folder) {
    names all = { 0 };
    all.count = scandir(folder, &all.items, NULL, alphasort);
    if (all.count < 0) all = (names){ 0 };
    return all;
}

static void free_names(names *all) {
    while (all->count > 0) free(all->items[--all->count]);
    free(all->items);
}

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static bool ends(const char *text, const char *with) {
    const size_t length = strlen(text), tail = strlen(with);
    return length >= tail && strcmp(text + length - tail, with) == 0;
}

/* ---- GPUs on the bus ---- */

/* A GPU that a kernel driver has, and the file without which its maker's libraries see nothing. */
static const struct maker { unsigned id; const char *name, *node, *install; } makers[] = {
    { 0x10de, "NVIDIA", "/dev/nvidiactl",
      "install NVIDIA's driver (Debian: nvidia-driver), and start the system anew" },
    { 0x1002, "AMD", "/dev/dri", "install a kernel with amdgpu and its firmware (Debian: firmware-amd-graphics)" },
    { 0x8086, "Intel", "/dev/dri",
      "install a kernel with i915 or xe and its firmware (Debian: firmware-misc-nonfree)" },
};

static const struct maker *maker_of(unsigned id) {
    for (size_t i = 0; i < CLI_COUNT(makers); i++)
        if (makers[i].id == id) return &makers[i];
    return NULL;
}

/* A number in a file of the device, decimal or 0x...; 0: there is none. */
static unsigned long long number_of(const char *folder, const char *file) {
    char path[PATH_ROOM + 32], line[64];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return machine_read_line(path, line, sizeof line) ? strtoull(line, NULL, 0) : 0;
}

/* One device of the bus: displays (class 03) and accelerators (class 12). */
static void look_at_gpu(doctor_findings *to, const char *root, const char *folder, const char *address) {
    const unsigned class = (unsigned)(number_of(folder, "class") >> 16), vendor = (unsigned)number_of(folder, "vendor");
    const struct maker *maker = class == 0x03 || class == 0x12 ? maker_of(vendor) : NULL;
    char path[PATH_ROOM + 32], target[PATH_ROOM];
    if (!maker) return;
    snprintf(path, sizeof path, "%s/driver", folder);
    const ssize_t length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = 0;
    const char *driver = strrchr(target, '/') ? strrchr(target, '/') + 1 : target;
    const unsigned device = (unsigned)number_of(folder, "device");
    if (!driver[0] || begins(driver, "vfio")) {
        doctor_add(to, DOCTOR_PROBLEM, "gpu", address, "%s %04x:%04x has %s", maker->name, vendor, device,
                   driver[0] ? "been given to a virtual machine (vfio)" : "no kernel driver");
        if (driver[0]) doctor_mend(to, "give it back to its own driver");
        else doctor_mend(to, "%s", maker->install);
        return;
    }
    snprintf(path, sizeof path, "%s%s", root, maker->node);
    if (access(path, F_OK) != 0) {
        doctor_add(to, DOCTOR_PROBLEM, "gpu", address, "%s %04x:%04x has the kernel driver %s, but there is no %s",
                   maker->name, vendor, device, driver, maker->node);
        doctor_mend(to, vendor == 0x10de ? "in a container: start it with --gpus all; else run nvidia-modprobe"
                                         : "in a container: start it with --device /dev/dri");
        return;
    }
    const unsigned long long total = number_of(folder, "mem_info_vram_total"),
                             used = number_of(folder, "mem_info_vram_used");
    cli_cell of, taken;
    doctor_add(to, DOCTOR_OK, "gpu", address, "%s %04x:%04x, kernel driver %s%s%s%s%s", maker->name, vendor, device,
               driver, total ? ", " : "", total ? cli_bytes(used, taken) : "", total ? " used of " : "",
               total ? cli_bytes(total, of) : "");
}

void doctor_gpus(doctor_findings *to, const char *root) {
    char folder[PATH_ROOM], path[PATH_ROOM];
    snprintf(folder, sizeof folder, "%s/sys/bus/pci/devices", root);
    names all = list(folder);
    const size_t before = to->count;
    for (int i = 0; i < all.count; i++)
        if (all.items[i]->d_name[0] != '.' &&
            snprintf(path, sizeof path, "%s/%s", folder, all.items[i]->d_name) < (int)sizeof path)
            look_at_gpu(to, root, path, all.items[i]->d_name);
    free_names(&all);
    if (to->count > before) return;
    doctor_add(to, DOCTOR_NOTE, "gpu", "none",
               "no GPU of NVIDIA, AMD or Intel is on the PCI bus that this system shows");
    doctor_mend(to, "in a virtual machine: hand a GPU through to it; without one the CPU computes");
}

/* ---- the files by which programs reach them ---- */

static const char *group_of(gid_t id, char *out, size_t room) {
    const struct group *group = getgrgid(id);
    if (group) snprintf(out, room, "%s", group->gr_name);
    else snprintf(out, room, "%u", (unsigned)id);
    return out;
}

static void look_at_node(doctor_findings *to, const char *root, const char *path) {
    char real[PATH_ROOM], group[64];
    struct stat facts;
    if (snprintf(real, sizeof real, "%s%s", root, path) >= (int)sizeof real) return;
    if (stat(real, &facts) != 0 || S_ISDIR(facts.st_mode)) return;
    if (access(real, R_OK | W_OK) == 0) {
        doctor_add(to, DOCTOR_OK, "file", path, "this user may read and write it");
        return;
    }
    group_of(facts.st_gid, group, sizeof group);
    doctor_add(to, DOCTOR_PROBLEM, "file", path, "this user may not read and write it: mode %03o, group %s",
               (unsigned)(facts.st_mode & 0777), group);
    if (facts.st_gid != 0 && (facts.st_mode & 060) == 060)
        doctor_mend(to, "usermod -aG %s USER as root, and log in anew", group);
    else doctor_mend(to, "in a container: let it have the device; else chmod a+rw as root, or mend the rule of udev "
                         "that made it");
}

void doctor_nodes(doctor_findings *to, const char *root) {
    static const struct { const char *folder, *prefix; } where[] = {
        { "/dev/dri", "renderD" }, { "/dev", "nvidia" }, { "/dev", "kfd" }, { "/dev/accel", "accel" },
    };
    for (size_t i = 0; i < CLI_COUNT(where); i++) {
        char folder[PATH_ROOM], path[PATH_ROOM];
        snprintf(folder, sizeof folder, "%s%s", root, where[i].folder);
        names all = list(folder);
        for (int k = 0; k < all.count; k++)
            if (begins(all.items[k]->d_name, where[i].prefix) &&
                snprintf(path, sizeof path, "%s/%s", where[i].folder, all.items[k]->d_name) < (int)sizeof path)
                look_at_node(to, root, path);
        free_names(&all);
    }
}

/* ---- driver files ---- */

/* Can the library be loaded? The loaders did it in this process already, so it changes nothing; it stays, as there. */
static void try_library(doctor_findings *to, const char *api, const char *file, const char *library) {
    if (dlopen(library, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE)) {
        doctor_add(to, DOCTOR_OK, api, file, "%s", library);
        return;
    }
    const char *why = dlerror();
    doctor_add(to, DOCTOR_PROBLEM, api, file, "its library cannot be loaded: %.250s", why ? why : library);
    doctor_mend(to, "install the driver anew, or remove %s", file);
}

/* A driver of Vulkan: JSON, in which the library's path may be relative to the file. */
static void try_vulkan(doctor_findings *to, const char *root, const char *file) {
    char path[PATH_ROOM], library[PATH_ROOM];
    json_error_t error;
    if (snprintf(path, sizeof path, "%s%s", root, file) >= (int)sizeof path) return;
    json_t *json = json_load_file(path, 0, &error);
    const char *named = json_string_value(json_object_get(json_object_get(json, "ICD"), "library_path"));
    if (!named) {
        doctor_add(to, DOCTOR_PROBLEM, "vulkan driver", file, "%s", json ? "it names no library" : error.text);
        doctor_mend(to, "install the driver anew, or remove it; VK_DRIVER_FILES and VK_ICD_FILENAMES name such files");
    } else {
        const char *slash = strrchr(path, '/');
        const bool beside = named[0] != '/' && strchr(named, '/') && slash;
        snprintf(library, sizeof library, "%.*s%.255s", beside ? (int)(slash + 1 - path) : 0, path, named);
        try_library(to, "vulkan driver", file, library);
    }
    json_decref(json);
}

/* A driver of OpenCL: a line with the library's name. */
static void try_opencl(doctor_findings *to, const char *root, const char *file) {
    char path[PATH_ROOM], library[256];
    if (snprintf(path, sizeof path, "%s%s", root, file) >= (int)sizeof path) return;
    if (machine_read_line(path, library, sizeof library) && library[0]) {
        try_library(to, "opencl driver", file, library);
        return;
    }
    doctor_add(to, DOCTOR_PROBLEM, "opencl driver", file, "it cannot be read, or names no library");
    doctor_mend(to, "install the driver anew, or remove it");
}

typedef void (*try_file)(doctor_findings *to, const char *root, const char *file);

static size_t try_folder(doctor_findings *to, const char *root, const char *folder, const char *ending, try_file look) {
    char path[PATH_ROOM];
    size_t count = 0;
    if (snprintf(path, sizeof path, "%s%s", root, folder) >= (int)sizeof path) return 0;
    names all = list(path);
    for (int i = 0; i < all.count && count < MOST_FILES; i++) {
        const char *name = all.items[i]->d_name;
        if (!ends(name, ending) || snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) continue;
        look(to, root, path);
        count++;
    }
    free_names(&all);
    return count;
}

/* A list of files or folders, with colons between them. */
static size_t try_list(doctor_findings *to, const char *root, const char *files, const char *ending, try_file look) {
    size_t count = 0;
    while (*files) {
        char file[PATH_ROOM];
        struct stat facts;
        const size_t length = strcspn(files, ":");
        if (length > 0 && length < sizeof file) {
            snprintf(file, sizeof file, "%.*s", (int)length, files);
            if (stat(file, &facts) == 0 && S_ISDIR(facts.st_mode)) count += try_folder(to, root, file, ending, look);
            else look(to, root, file), count++;
        }
        files += length + (files[length] == ':');
    }
    return count;
}

void doctor_drivers(doctor_findings *to, const char *root) {
    static const char *const folders[] = { "/etc/vulkan/icd.d", "/usr/local/etc/vulkan/icd.d",
                                           "/usr/local/share/vulkan/icd.d", "/usr/share/vulkan/icd.d" };
    const char *named = getenv("VK_DRIVER_FILES"), *vendors = getenv("OCL_ICD_VENDORS"), *home = getenv("HOME");
    char own[PATH_ROOM];
    size_t count = 0;
    if (!named) named = getenv("VK_ICD_FILENAMES");
    if (named) count = try_list(to, root, named, ".json", try_vulkan);
    for (size_t i = 0; i < CLI_COUNT(folders) && !named; i++)
        count += try_folder(to, root, folders[i], ".json", try_vulkan);
    if (!named && home && snprintf(own, sizeof own, "%s/.local/share/vulkan/icd.d", home) < (int)sizeof own)
        count += try_folder(to, root, own, ".json", try_vulkan);
    if (count == 0) {
        doctor_add(to, DOCTOR_NOTE, "vulkan driver", "none", "the Vulkan loader is told of no driver");
        doctor_mend(to, "apt install mesa-vulkan-drivers, or the GPU vendor's driver");
    }
    count = vendors && vendors[0] ? try_list(to, root, vendors, ".icd", try_opencl)
                                  : try_folder(to, root, "/etc/OpenCL/vendors", ".icd", try_opencl);
    if (count > 0) return;
    doctor_add(to, DOCTOR_NOTE, "opencl driver", "none", "the OpenCL loader is told of no driver");
    doctor_mend(to, "install the GPU vendor's OpenCL driver; for the CPU: apt install pocl-opencl-icd");
}
