/* bench_set.h: the rows of several CSV files as one set: checked, put in order, the fastest of each contest found. What
 * is drawn, listed and compared is a part of it. */
#ifndef CLI_BENCH_SET_H
#define CLI_BENCH_SET_H

#include "cli/cli.h"
#include "cli/table.h"

/* How the rows of a benchmark are shown. */
typedef enum bench_form {
    BENCH_OVER_SIZE, /* time over elements, a line for each device */
    BENCH_RATE,      /* bytes a second over bytes, a line for each device */
    BENCH_ROOFLINE,  /* operations a second over operations a byte, under each device's roof */
    BENCH_CASES,     /* time of named cases, one below the other */
    BENCH_TOKENS,    /* tokens a second of named cases */
} bench_form;

typedef struct bench_kind {
    const char *bench;   /* "threshold" */
    const char *heading, *explanation;
    bench_form  form;
    bool        op_parts_figures, op_parts_panels; /* neither: an op is a point, or a row's name */
} bench_kind;

#define BENCH_TIE 1.05 /* a device that takes no more than so many times as long is not slower */

typedef struct bench_row {
    const table_row  *cells;
    const bench_kind *kind;
    size_t            file, number; /* where it was read: the file, and the row below its heading, from 1 */
    /* its short name: the back end's, where a machine has one device of it; else the id */
    const char       *device;
    unsigned          style;        /* of that name in charts: CPUs first, then in the order of the files */
    bool              synthetic;    /* made up, or of the null device, which computes nothing */
    bool              by_threads;   /* of a language model, of which some were measured with other numbers of threads */
    bool              doubtful;     /* clocks moved, or the device said that it was throttled */
    /* of at least two devices that were measured at this work, and by more than BENCH_TIE */
    bool              fastest;
    bool              tied;         /* would be the fastest, but the next one is as near as that */
} bench_row;

typedef struct bench_set {
    const char *const *paths;
    table      *tables;
    size_t      table_count;
    bench_row  *rows;            /* ordered as drawn: chapter, figure, panel, device, size */
    bench_row **by_work;         /* ordered as compared: chapter, figure, panel, size, device */
    size_t      count;
    struct bench_device *devices; /* those that rows name */
} bench_set;

enum { BENCH_MOST_ROWS = 50000 }; /* of all files; a page of more would be of no use */

/* CLI_OK, or CLI_FAILED after a line that says what is wrong and where. */
int bench_set_read(const cli_command *command, const char *const *paths, size_t count, bench_set *out_set);
void bench_set_free(bench_set *set);

bool bench_same_chapter(const bench_row *a, const bench_row *b);
bool bench_same_figure(const bench_row *a, const bench_row *b);
bool bench_same_panel(const bench_row *a, const bench_row *b);
bool bench_same_line(const bench_row *a, const bench_row *b); /* a panel's device, measured or synthetic */
bool bench_same_work(const bench_row *a, const bench_row *b); /* the same on the same machine, by whatever device */

/* The row's place on the axes with `ns` as its time; NaN where the file does not say enough. */
double bench_x(const bench_row *row);
double bench_y(const bench_row *row, double ns);
double bench_per_second(double count, double ns);
bool bench_is_cpu(const bench_row *row);

#endif
