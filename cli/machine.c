/* machine.c: facts and clocks of the machine, from /proc and /sys and from NVIDIA's management library, which is opened
 * at run time: neither its header nor the library is needed to build or to run. */
#define _POSIX_C_SOURCE 200809L
#include "machine.h"
#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { MOST_CORES = 16 }; /* whose clocks are read: each costs a system call */

/* ---- small files ---- */

/* The file's first line, without its end. */
static bool read_line(const char *path, char *out_line, int room) {
    FILE *file = fopen(path, "re");
    if (!file) return false;
    const bool read = fgets(out_line, room, file) != NULL;
    fclose(file);
    if (read) out_line[strcspn(out_line, "\n")] = 0;
    return read;
}

static double read_number(const char *path) {
    char line[64], *end;
    if (!read_line(path, line, sizeof line)) return NAN;
    const double number = strtod(line, &end);
    return end == line ? NAN : number;
}

/* The value of a "name : value" line of /proc/cpuinfo; NULL: the line has another name. */
static const char *cpuinfo_value(const char *line, const char *name) {
    const size_t length = strlen(name);
    if (strncmp(line, name, length) != 0 || !strchr("\t :", line[length])) return NULL;
    const char *colon = strchr(line, ':');
    return colon ? colon + 1 + strspn(colon + 1, " \t") : NULL;
}

/* ---- NVIDIA ---- */

struct machine_nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_pci)(const char *bus_id, void **out_device);
    int (*clock)(void *device, int type, unsigned *out_mhz);
    int (*temperature)(void *device, int sensor, unsigned *out_celsius);
    int (*throttle_reasons)(void *device, unsigned long long *out_reasons);
    int (*memory)(void *device, unsigned long long out_total_free_used[3]);
};
enum { NVML_CLOCK_SM = 1, NVML_TEMPERATURE_GPU = 0 };
/* Power cap, hardware slowdown, heat by software and hardware, power brake; not: idle, or as the user set it. */
#define NVML_HELD_DOWN 0xECull

/* Looks up one function; `out` is a pointer to a function pointer. */
static bool find(void *library, const char *name, void *out) {
    void *symbol = dlsym(library, name);
    memcpy(out, &symbol, sizeof symbol);
    return symbol != NULL;
}

static machine_nvml *nvml_open(void) {
    machine_nvml *nvml = calloc(1, sizeof *nvml);
    if (!nvml) return NULL;
    nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    void *library = nvml->library;
    if (library && find(library, "nvmlInit_v2", &nvml->init) && find(library, "nvmlShutdown", &nvml->shutdown) &&
        find(library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml->by_pci) &&
        find(library, "nvmlDeviceGetClockInfo", &nvml->clock) &&
        find(library, "nvmlDeviceGetTemperature", &nvml->temperature) &&
        find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &nvml->throttle_reasons) &&
        find(library, "nvmlDeviceGetMemoryInfo", &nvml->memory) && nvml->init() == 0)
        return nvml;
    if (library) dlclose(library);
    free(nvml);
    return NULL;
}

static machine_reading nvml_read(const machine_nvml *nvml, void *device) {
    machine_reading reading = { NAN, NAN, NAN, NAN };
    unsigned value;
    unsigned long long reasons;
    if (nvml->clock(device, NVML_CLOCK_SM, &value) == 0) reading.clock_mhz = value;
    if (nvml->temperature(device, NVML_TEMPERATURE_GPU, &value) == 0) reading.temperature_c = value;
    if (nvml->throttle_reasons(device, &reasons) == 0) reading.throttled = (reasons & NVML_HELD_DOWN) != 0;
    return reading;
}

/* ---- the processor ---- */

static double mean_clock_of_cpuinfo(void) {
    char line[256];
    double sum = 0;
    unsigned count = 0;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && count < MOST_CORES && fgets(line, sizeof line, file)) {
        const char *value = cpuinfo_value(line, "cpu MHz");
        if (!value) continue;
        sum += strtod(value, NULL);
        count++;
    }
    if (file) fclose(file);
    return count > 0 && sum > 0 ? sum / count : NAN;
}

static machine_reading cpu_read(const char *hwmon) {
    static const char *const counters[] = { "core_throttle_count", "package_throttle_count" };
    machine_reading reading = { NAN, NAN, NAN, NAN };
    char path[256];
    double sum = 0;
    unsigned count = 0;
    for (; count < MOST_CORES; count++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_cur_freq", count);
        const double khz = read_number(path);
        if (isnan(khz)) break;
        sum += khz;
    }
    reading.clock_mhz = count > 0 ? sum / count / 1000 : mean_clock_of_cpuinfo();
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/thermal_throttle/%s", counters[i]);
        const double events = read_number(path);
        if (!isnan(events))
            reading.throttle_events = isnan(reading.throttle_events) ? events : reading.throttle_events + events;
    }
    if (hwmon[0]) {
        snprintf(path, sizeof path, "%s/temp1_input", hwmon);
        reading.temperature_c = read_number(path) / 1000;
    }
    return reading;
}

/* ---- hardware monitors: of the processor, and of GPUs other than NVIDIA's ---- */

/* The first monitor in `folder` with one of `names` (NULL: any name). */
static void find_hwmon(const char *folder, const char *const *names, size_t name_count, char *out, size_t room) {
    DIR *all = opendir(folder);
    const struct dirent *entry;
    out[0] = 0;
    while (all && !out[0] && (entry = readdir(all))) {
        char path[512], name[64];
        if (strncmp(entry->d_name, "hwmon", 5) != 0) continue;
        if (snprintf(path, sizeof path, "%s/%s/name", folder, entry->d_name) >= (int)sizeof path ||
            !read_line(path, name, sizeof name))
            continue;
        bool right = !names;
        for (size_t i = 0; i < name_count; i++) right = right || strcmp(name, names[i]) == 0;
        if (right && snprintf(out, room, "%s/%s", folder, entry->d_name) >= (int)room) out[0] = 0;
    }
    if (all) closedir(all);
}

static machine_reading hwmon_read(const char *folder) {
    machine_reading reading = { NAN, NAN, NAN, NAN };
    char path[256];
    snprintf(path, sizeof path, "%s/freq1_input", folder); /* Hz */
    reading.clock_mhz = read_number(path) / 1e6;
    snprintf(path, sizeof path, "%s/temp1_input", folder);
    reading.temperature_c = read_number(path) / 1000;
    return reading;
}

/* ---- the whole ---- */

void machine_open(machine *out, const char *name) {
    *out = (machine){ 0 };
    struct utsname system;
    if (uname(&system) == 0) {
        snprintf(out->name, sizeof out->name, "%.100s", system.nodename);
        snprintf(out->os, sizeof out->os, "%.30s %.60s %.30s", system.sysname, system.release, system.machine);
    }
    if (name) snprintf(out->name, sizeof out->name, "%s", name);
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && !out->cpu[0] && fgets(line, sizeof line, file)) {
        const char *value = cpuinfo_value(line, "model name");
        if (value) snprintf(out->cpu, sizeof out->cpu, "%.*s", (int)strcspn(value, "\n"), value);
    }
    if (file) fclose(file);
    const time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc)) strftime(out->time, sizeof out->time, "%Y-%m-%dT%H:%M:%SZ", &utc);
    out->nvml = nvml_open();
}

void machine_close(machine *m) {
    if (!m->nvml) return;
    m->nvml->shutdown();
    dlclose(m->nvml->library);
    free(m->nvml);
    m->nvml = NULL;
}

double machine_free_bytes(void) {
    char line[128];
    double kib = NAN;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && isnan(kib) && fgets(line, sizeof line, file))
        if (strncmp(line, "MemAvailable:", 13) == 0) kib = strtod(line + 13, NULL);
    if (file) fclose(file);
    return kib * 1024;
}

machine_sensor machine_sensor_of(const machine *m, const hd_device_info *device) {
    static const char *const cpu_monitors[] = { "coretemp", "k10temp", "zenpower", "cpu_thermal" };
    machine_sensor sensor = { .machine = m,
                              .cpu = device->kind == HD_DEVICE_CPU || device->kind == HD_DEVICE_SOFTWARE };
    if (sensor.cpu)
        find_hwmon("/sys/class/hwmon", cpu_monitors, sizeof cpu_monitors / sizeof cpu_monitors[0], sensor.hwmon,
                   sizeof sensor.hwmon);
    if (!device->pci[0] || sensor.cpu) return sensor;
    if (m->nvml && m->nvml->by_pci(device->pci, &sensor.nvml_device) == 0) return sensor;
    char folder[64];
    sensor.nvml_device = NULL;
    snprintf(folder, sizeof folder, "/sys/bus/pci/devices/%s/hwmon", device->pci);
    find_hwmon(folder, NULL, 0, sensor.hwmon, sizeof sensor.hwmon);
    return sensor;
}

double machine_free_device_bytes(const machine *m, const hd_device_info *device) {
    if (device->kind == HD_DEVICE_CPU || device->kind == HD_DEVICE_SOFTWARE) return machine_free_bytes();
    unsigned long long total_free_used[3];
    void *gpu = NULL;
    if (!device->pci[0]) return NAN;
    if (m->nvml && m->nvml->by_pci(device->pci, &gpu) == 0)
        return m->nvml->memory(gpu, total_free_used) == 0 ? (double)total_free_used[1] : NAN;
    char path[96]; /* amdgpu tells so */
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/mem_info_vram_total", device->pci);
    const double total = read_number(path);
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/mem_info_vram_used", device->pci);
    return total - read_number(path);
}

machine_reading machine_read(const machine_sensor *sensor) {
    if (sensor->nvml_device) return nvml_read(sensor->machine->nvml, sensor->nvml_device);
    if (sensor->cpu) return cpu_read(sensor->hwmon);
    return hwmon_read(sensor->hwmon);
}

void machine_tell(const machine_reading *before, const machine_reading *after, table_row *row) {
    row->clock_before_mhz = before->clock_mhz;
    row->clock_after_mhz = after->clock_mhz;
    row->temperature_c = after->temperature_c;
    row->throttled = isnan(after->throttled) && !isnan(after->throttle_events)
                     ? after->throttle_events > before->throttle_events : after->throttled;
    row->flag = fabs(after->clock_mhz - before->clock_mhz) > 0.05 * before->clock_mhz ? "clocks" : "";
}
