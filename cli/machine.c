/* machine.c: facts and clocks of the machine, from its system and from NVIDIA's management library, which is opened at
 * run time: neither its header nor the library is needed to build or to run. */
#define _POSIX_C_SOURCE 200809L
#include "machine.h"
#include "cli/system.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- NVIDIA ---- */

struct machine_nvml {
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

static machine_nvml *nvml_open(void) {
    static const char *const names[] = { "libnvidia-ml.so.1", "nvml.dll" };
    machine_nvml *nvml = calloc(1, sizeof *nvml);
    void *library = NULL;
    for (size_t i = 0; nvml && !library && i < sizeof names / sizeof names[0]; i++) library = system_library(names[i]);
    if (library && system_find(library, "nvmlInit_v2", &nvml->init) &&
        system_find(library, "nvmlShutdown", &nvml->shutdown) &&
        system_find(library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml->by_pci) &&
        system_find(library, "nvmlDeviceGetClockInfo", &nvml->clock) &&
        system_find(library, "nvmlDeviceGetTemperature", &nvml->temperature) &&
        system_find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &nvml->throttle_reasons) &&
        system_find(library, "nvmlDeviceGetMemoryInfo", &nvml->memory) && nvml->init() == 0)
        return nvml;
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

/* ---- the whole ---- */

void machine_open(machine *out, const char *name) {
    *out = (machine){ 0 };
    machine_names(out);
    if (name) snprintf(out->name, sizeof out->name, "%s", name);
    const time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc)) strftime(out->time, sizeof out->time, "%Y-%m-%dT%H:%M:%SZ", &utc);
    out->nvml = nvml_open();
}

void machine_close(machine *m) {
    if (!m->nvml) return;
    m->nvml->shutdown();
    free(m->nvml);
    m->nvml = NULL;
}

machine_sensor machine_sensor_of(const machine *m, const hd_device_info *device) {
    machine_sensor sensor = { .machine = m,
                              .cpu = device->kind == HD_DEVICE_CPU || device->kind == HD_DEVICE_SOFTWARE };
    if (device->pci[0] && !sensor.cpu && m->nvml && m->nvml->by_pci(device->pci, &sensor.nvml_device) == 0)
        return sensor;
    sensor.nvml_device = NULL;
    machine_find_monitor(sensor.cpu ? NULL : device->pci, sensor.hwmon, sizeof sensor.hwmon);
    return sensor;
}

double machine_free_device_bytes(const machine *m, const hd_device_info *device) {
    if (device->kind == HD_DEVICE_CPU || device->kind == HD_DEVICE_SOFTWARE) {
        const double left = machine_free_bytes(), has = (double)device->memory_bytes;
        return left > has ? has : left; /* a software driver may give out less than the machine has */
    }
    unsigned long long total_free_used[3];
    void *gpu = NULL;
    if (!device->pci[0]) return NAN;
    if (m->nvml && m->nvml->by_pci(device->pci, &gpu) == 0)
        return m->nvml->memory(gpu, total_free_used) == 0 ? (double)total_free_used[1] : NAN;
    return machine_free_gpu_bytes(device->pci);
}

machine_reading machine_read(const machine_sensor *sensor) {
    if (sensor->nvml_device) return nvml_read(sensor->machine->nvml, sensor->nvml_device);
    return machine_read_monitor(sensor->hwmon, sensor->cpu);
}

void machine_tell(const machine_reading *before, const machine_reading *after, table_row *row) {
    row->clock_before_mhz = before->clock_mhz;
    row->clock_after_mhz = after->clock_mhz;
    row->temperature_c = after->temperature_c;
    row->throttled = isnan(after->throttled) && !isnan(after->throttle_events)
                     ? after->throttle_events > before->throttle_events : after->throttled;
    row->flag = fabs(after->clock_mhz - before->clock_mhz) > 0.05 * before->clock_mhz ? "clocks" : "";
}
