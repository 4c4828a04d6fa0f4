/* doctor.h: what `heddle doctor` finds: one line each, which says what is there or what is wrong, and one thing to
 * do. */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include "cli/cli.h"

typedef enum doctor_level {
    DOCTOR_OK,
    DOCTOR_NOTE,   /* good to know: something is missing that nobody asked for, or set that changes what is done */
    DOCTOR_PROBLEM /* what was asked for, or is plugged in, does not work */
} doctor_level;

typedef struct doctor_finding {
    doctor_level level;
    const char  *part;      /* "device"; static storage */
    char         about[64]; /* which one */
    char         text[400], mend[300];
} doctor_finding;

typedef struct doctor_findings {
    doctor_finding *items;
    size_t          count, room;
    size_t          levels[DOCTOR_PROBLEM + 1]; /* how many of each */
    bool            failed;                     /* no memory was left for one */
} doctor_findings;

/* Adds a finding: about which thing of which part, and what. */
void doctor_add(doctor_findings *to, doctor_level level, const char *part, const char *about, const char *format, ...)
    CLI_PRINTF(5, 6);
/* What to do about the finding that was added last. */
void doctor_mend(doctor_findings *to, const char *format, ...) CLI_PRINTF(2, 3);

void doctor_environment(doctor_findings *to); /* variables (doctor_environment.c) */
/* The system around heddle (doctor_system_posix.c, doctor_system_windows.c), whose files are looked for below `root`:
 * "" but in tests. */
void doctor_gpus(doctor_findings *to, const char *root);    /* on the PCI bus, and their kernel drivers */
void doctor_nodes(doctor_findings *to, const char *root);   /* files by which programs reach them */
void doctor_drivers(doctor_findings *to, const char *root); /* that the loaders of Vulkan and OpenCL are told of */

/* heddle's own view (doctor_devices.c). */
void doctor_backends(doctor_findings *to, hd_context *context, const char *device);
void doctor_devices(doctor_findings *to, hd_context *context, const char *device);
void doctor_cache(doctor_findings *to, hd_context *context);

#endif
