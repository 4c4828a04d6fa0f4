/* machine_posix.c: what /proc and /sys tell of the machine. */
#define _POSIX_C_SOURCE 200809L
#include "machine.h"
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

enum { MOST_CORES = 16 }; /* whose clocks are read: each costs a system call */

/* ---- small files ---- */

bool machine_read_line(const char *path, char *out_line, int room) {
    FILE *file = fopen(path, "re");
    if (!file) return false;
    const bool read = fgets(out_line, room, file) != NULL;
    fclose(file);
    if (read) out_line[strcspn(out_line, "\r\n")] = 0;
    return read;
}

static double read_number(const char *path) {
    char line[64], *end;
    if (!machine_read_line(path, line, sizeof line)) return NAN;
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

/* ---- names and memory ---- */

void machine_names(machine *out) {
    struct utsname system;
    if (uname(&system) == 0) {
        snprintf(out->name, sizeof out->name, "%.100s", system.nodename);
        snprintf(out->os, sizeof out->os, "%.30s %.60s %.30s", system.sysname, system.release, system.machine);
    }
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && !out->cpu[0] && fgets(line, sizeof line, file)) {
        const char *value = cpuinfo_value(line, "model name");
        if (value) snprintf(out->cpu, sizeof out->cpu, "%.*s", (int)strcspn(value, "\n"), value);
    }
    if (file) fclose(file);
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

/* amdgpu tells so. */
double machine_free_gpu_bytes(const char *pci) {
    char path[96];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/mem_info_vram_total", pci);
    const double total = read_number(path);
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/mem_info_vram_used", pci);
    return total - read_number(path);
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
            !machine_read_line(path, name, sizeof name))
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

void machine_find_monitor(const char *pci, char *out, size_t room) {
    static const char *const cpu_monitors[] = { "coretemp", "k10temp", "zenpower", "cpu_thermal" };
    char folder[64];
    out[0] = 0;
    if (!pci) find_hwmon("/sys/class/hwmon", cpu_monitors, sizeof cpu_monitors / sizeof cpu_monitors[0], out, room);
    if (!pci || !pci[0]) return;
    snprintf(folder, sizeof folder, "/sys/bus/pci/devices/%s/hwmon", pci);
    find_hwmon(folder, NULL, 0, out, room);
}

machine_reading machine_read_monitor(const char *hwmon, bool cpu) { return cpu ? cpu_read(hwmon) : hwmon_read(hwmon); }
