/* trace.h: what devices and the host did when (hd_device_trace), as a file for Perfetto and chrome://tracing: a process
 * for each device, a row for each queue. */
#ifndef CLI_TRACE_H
#define CLI_TRACE_H

#include "cli/cli.h"

enum { TRACE_MOST_DEVICES = 16 };
typedef struct trace {
    hd_device      *devices[TRACE_MOST_DEVICES];
    size_t          device_count;
    hd_trace_event *events;
    size_t          count, capacity;
    bool            failed; /* no memory was left for an event */
} trace;

/* Begins to collect what the device does. `out_trace` stays where it is and begins as zeros. */
hd_status trace_watch(trace *out_trace, hd_device *device);
/* Ends collecting, and adds what the last run was made of, one after the other from its begin on: a device tells how
 * long each took. The labels are used until the file is written. */
void trace_add_operations(trace *collected, const hd_timing *timings, size_t count);
/* Ends collecting and writes the file; CLI_OK, or CLI_FAILED after a message. */
int trace_write(trace *collected, const cli_command *command, const char *path);
/* Ends collecting, and frees. */
void trace_free(trace *collected);

#endif
