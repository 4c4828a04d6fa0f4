/* measure.h: the runner of `heddle bench`: options, devices, the file of rows, and cases that are sampled in rounds,
 * each round in another order, so that what disturbs the machine for a while does not fall on one case. */
#ifndef CLI_MEASURE_H
#define CLI_MEASURE_H

#include "cli/cli.h"
#include "cli/machine.h"
#include "cli/statistics.h"
#include "cli/table.h"

enum { MEASURE_MOST_DEVICES = 16 };

typedef struct measure_device {
    hd_device      *device;
    hd_device_info  info;
    machine_sensor  sensor;
} measure_device;

typedef struct measure {
    const cli_command *command;
    const char    *bench;         /* "threshold" */
    cli_session   *session, own;  /* `own` of measure_open */
    measure_device devices[MEASURE_MOST_DEVICES];
    size_t         device_count;
    machine        machine;
    double         threads;       /* of the CPU device */
    uint64_t       samples;
    uint64_t       most_ns;       /* for the samples of one case */
    const char    *csv_path, *html_path; /* NULL: not asked for */
    char          *csv_beside;    /* the page's rows, where no file is named for them */
    FILE          *csv;
    bool           json;
    uint64_t       seed;
} measure;

/* Rows for the options that every bench has, and those of a bench that takes samples on several devices. */
#define MEASURE_ROW_OPTIONS \
    { "--csv", "FILE", "write the measurements as CSV; docs/bench.md explains the columns" }, \
    { "--html", "FILE.html", \
      "draw them: one page with charts, FILE.md with the winners and, without --csv, FILE.csv" }, \
    { "--machine", "NAME", "what the rows call this machine; default: its host name" }, \
    { "--json", NULL, "print the measurements as JSON, one row a line" }
#define MEASURE_OPTIONS \
    { "--devices", "LIST", "ids or back ends with commas between; default: every device but null" }, \
    { "--samples", "N", "samples of each case, besides the first run; default: 11" }, \
    { "--seconds", "S", "most time for the samples of one case, but for the first three; default: 1" }, \
    MEASURE_ROW_OPTIONS

/* Reads the options, looks at the machine, opens the file; Ctrl-C is caught from here on. CLI_OK, or the exit code
 * after a message; measure_end in either case. */
int measure_begin(const cli_args *args, const char *bench, measure *out_measure);
/* Opens a session and the devices that are asked for, the CPU first where it is among them. */
int measure_open(const cli_args *args, measure *m);
/* The same with the devices of `list`, NULL: every one but null. */
int measure_open_list(const cli_args *args, const char *list, measure *m);
/* Takes a session that is open and outlives the measuring. */
void measure_use(measure *m, cli_session *session);
/* Tells whether Ctrl-C came: what was measured until then is still written. */
bool measure_is_ended(void);
/* Says on stderr that the run was ended early; returns CLI_FAILED. */
int measure_end_early(const measure *m);
/* Closes the file and draws the page that was asked for; returns `code`, or CLI_FAILED where no page came of it. */
int measure_end(measure *m, int code);

/* A row that says everything about the machine and the device. */
table_row measure_row(const measure *m, const measure_device *device);
/* Writes a row to where the options say. CLI_OK or CLI_FAILED after a message. */
int measure_write(const measure *m, const table_row *row);
/* Whether so many bytes of host memory are there: `shared` for all, and `each` for every device that lives in it and
 * does not compute in place. CLI_OK, or CLI_FAILED after a message: a system that runs out ends programs instead of
 * refusing them memory. */
int measure_fits(const measure *m, const char *what, double shared, double each);
/* Reports that the row's case failed, with the context's error; returns CLI_FAILED. */
int measure_fail(const measure *m, const table_row *row);
/* Figures of samples, which are sorted. */
void measure_tell(uint64_t *samples, size_t count, uint64_t first_ns, table_row *row);

/* One thing to measure. */
typedef struct measure_case {
    const measure_device *device;
    table_row       row;               /* what it is; the figures come from measure_run */
    hd_status     (*sample)(void *user);
    void           *user;
    const uint64_t *part_ns;           /* what of the call is the sample, as the call itself told; NULL: all of it */
    const struct measure_case *of;     /* its samples are parts of that case's calls; NULL: it has calls of its own */
    uint64_t       *samples;           /* room for m->samples, of measure_run, which sorts them in the end */
    size_t          count;
    uint64_t        spent_ns;
    bool            failed;
    machine_reading before, after;
    hd_device_stats hits;              /* what the samples alone added to the counters of hits and requests */
} measure_case;

/* Takes samples of all cases and fills in their rows. A case that fails is reported and passed over from then on, and
 * makes the exit code CLI_FAILED; so does Ctrl-C. Rows of cases without a sample have NaN for a median. */
int measure_run(measure *m, measure_case *cases, size_t count);
void measure_cases_free(measure_case *cases, size_t count);

/* "vulkan", or the device's id where several are of one back end. */
const char *measure_device_name(const measure *m, const measure_device *device);

/* The types named in --types, or those of `fallback`; CLI_OK, or CLI_USAGE after a message. */
int measure_types(const cli_args *args, const char *fallback, hd_dtype out_types[HD_DTYPE_COUNT], size_t *out_count);

/* "1,024". */
char *measure_count(double count, cli_cell out);
/* A rate such as 12.3 or 0.0123, three digits of it. */
char *measure_rate(double rate, cli_cell out);

#endif
