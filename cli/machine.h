/* machine.h: the machine that is measured on: what it is, and how fast its clocks run while it is measured. What a
 * system does not tell stays unknown: "" and NaN. */
#ifndef CLI_MACHINE_H
#define CLI_MACHINE_H

#include "table.h"
#include <heddle.h>

typedef struct machine_nvml machine_nvml;

typedef struct machine {
    char name[128], os[128], cpu[128];
    char time[32];      /* now, UTC */
    machine_nvml *nvml; /* NVIDIA's library for clocks and heat; NULL where it is not installed */
} machine;

/* `name` NULL: the host's name. */
void machine_open(machine *out_machine, const char *name);
void machine_close(machine *m);

/* Host memory that can be taken without pushing others out, in bytes; NaN where the system does not tell. */
double machine_free_bytes(void);
/* The same of a device's memory, now. */
double machine_free_device_bytes(const machine *m, const hd_device_info *device);

/* Where a device's clock and heat are read. */
typedef struct machine_sensor {
    const machine *machine;
    void *nvml_device;   /* one of NVIDIA's; or */
    bool  cpu;           /* the processor's; or */
    char  hwmon[160];    /* a folder of the system's hardware monitors, or "" */
} machine_sensor;
machine_sensor machine_sensor_of(const machine *m, const hd_device_info *device);

typedef struct machine_reading {
    double clock_mhz, temperature_c;
    double throttled;       /* 1 or 0: now */
    double throttle_events; /* since the system began */
} machine_reading;
machine_reading machine_read(const machine_sensor *sensor);

/* What the system itself tells (machine_posix.c, machine_windows.c). Its names of the machine: */
void machine_names(machine *out_machine);
/* The hardware monitor's folder of the GPU with this PCI address, or (NULL) of the processor; "": there is none. */
void machine_find_monitor(const char *pci, char *out, size_t room);
machine_reading machine_read_monitor(const char *hwmon, bool cpu);
double machine_free_gpu_bytes(const char *pci);
/* The first line of a file, without its end (machine_posix.c only). */
bool machine_read_line(const char *path, char *out_line, int room);

/* Puts what two readings say into a row, and its flag where the clock moved. */
void machine_tell(const machine_reading *before, const machine_reading *after, table_row *row);

#endif
