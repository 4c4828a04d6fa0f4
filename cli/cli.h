/* cli.h: what the commands of `heddle` share: options, errors, tables, a context with its device, and jobs. Each
 * command is one file with one cli_command; main.c lists them. Exit codes: 0 done, 1 failed, 2 the command line is
 * wrong. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "cli/npy.h"
#include "cli/system.h"
#include <heddle.h>
#include <jansson.h>

#define CLI_COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* ---- the command line (args.c): one table for each command, from which it is read and its help is printed ---- */

typedef struct cli_option {
    const char *name;  /* "--device" */
    const char *value; /* "ID", or NULL for a switch */
    const char *help;
} cli_option;

/* Options that several commands have. */
#define CLI_OPTION_DEVICE                                                                                              \
    { "--device", "ID", "the device to take: an id or index of `heddle devices`; default: the best" }
#define CLI_OPTION_MATH { "--math", "exact|fast", "exact: the same bits on every device; default: fast" }
#define CLI_OPTION_ROUTE { "--route", "WHERE", \
    "auto, cpu, gpu, or a list: matmul=gpu,v3-v9=60%,rest=cpu; 60%: the GPU's share of the rows" }
#define CLI_OPTION_TRACE { "--trace", "FILE.json", "write what each queue did when, for Perfetto or chrome://tracing" }
#define CLI_OPTION_METRICS { "--metrics", "FILE", "write what was counted, in the text format of Prometheus" }
#define CLI_OPTION_JSON { "--json", NULL, "print JSON" }

struct cli_args;
typedef struct cli_command {
    const char *name, *summary, *usage;
    const char *operand;   /* "FILE.hd": exactly one is needed; "[FILE.hd]": at most one is taken; NULL: none is taken;
                            * "A.csv B.csv": exactly two are needed; "FILE.csv ...": one or more */
    const cli_option *options;
    size_t      option_count;
    const char *notes;     /* lines below the options, or NULL */
    const char *example;
    int (*run)(const struct cli_args *args);
} cli_command;

typedef struct cli_given {
    const cli_option *option;
    const char       *value;
} cli_given;

typedef struct cli_args {
    const cli_command *command;
    const char        *operand;       /* the first one, or NULL */
    const char       **operands;
    size_t             operand_count;
    cli_given         *given;
    size_t             given_count;
} cli_args;

/* Reads the words after the command's name. CLI_OK, CLI_USAGE, or -1 where help was asked for and printed. */
int cli_args_read(const cli_command *command, int count, char **words, cli_args *out_args);
void cli_args_free(cli_args *args);
void cli_help(const cli_command *command);
/* The option's last value, NULL where it was not given; "" for a switch. */
const char *cli_get(const cli_args *args, const char *name);
/* The values of an option that may stand several times: *at begins as 0; NULL after the last. */
const char *cli_next(const cli_args *args, const char *name, size_t *at);
/* The option as a whole number; false after a message. */
bool cli_get_number(const cli_args *args, const char *name, uint64_t low, uint64_t high, uint64_t fallback,
                    uint64_t *out);
bool cli_get_math(const cli_args *args, hd_math *out);
/* The option as a number with a fraction, low..high. */
bool cli_get_fraction(const cli_args *args, const char *name, double low, double high, double fallback, double *out);
/* The option as bytes: 512M, 3.5G, or a plain number. */
bool cli_get_bytes(const cli_args *args, const char *name, uint64_t *out);
/* A whole number, decimal or 0x..., and nothing else. */
bool cli_number(const char *text, uint64_t high, uint64_t *out);
/* Items of "a,b,c": copies the one at *at (0 at first) into `out`, cut to its room; false at the end. */
bool cli_next_item(const char *list, size_t *at, char *out, size_t room);
/* The name among `count` that is nearest to `text`, or the only one that begins so; NULL where none is near. */
const char *cli_nearest(const char *text, const char *const *names, size_t count);

/* ---- standard output and standard error (terminal.c): nothing else writes there ---- */

/* printf to stdout and to stderr. What a file, a model or a driver brought into the arguments is made printable. */
void cli_print(const char *format, ...) CLI_PRINTF(1, 2);
void cli_note(const char *format, ...) CLI_PRINTF(1, 2);
/* cli_note for what need not be known: nothing where --quiet or HEDDLE_LOG=error asks for errors only. */
void cli_tell(const char *format, ...) CLI_PRINTF(1, 2);
void cli_be_quiet(void);
bool cli_is_quiet(void);
/* A text that a model wrote, or one like it, on stdout: the very bytes, but at a terminal made printable. */
void cli_print_text(const char *bytes, size_t count);
/* What is printed from here on is in a lighter colour, or no more; at a terminal. */
void cli_print_dim(bool dim);
/* Where stderr is a terminal: its last line, which tells how far a command is, drawn anew and cut to its width; and its
 * end, which the next cli_print or cli_note is too. */
void cli_progress(const char *format, ...) CLI_PRINTF(1, 2);
void cli_progress_end(void);

/* ---- errors, units, JSON and files (output.c) ---- */

/* One line on stderr, "heddle run: ..."; returns CLI_FAILED. `command` may be NULL. */
int cli_fail(const cli_command *command, const char *format, ...) CLI_PRINTF(2, 3);
/* The same for a wrong command line: adds where the help is; returns CLI_USAGE. */
int cli_usage(const cli_command *command, const char *format, ...) CLI_PRINTF(2, 3);

#define CLI_CELL 200
typedef char cli_cell[CLI_CELL];
/* Text for a terminal: "1.5 GiB", "1.25 ms", "f32[4,256]". Each returns `out`. */
char *cli_bytes(uint64_t bytes, cli_cell out);
char *cli_time(uint64_t ns, cli_cell out);
char *cli_tensor(hd_dtype dtype, hd_shape shape, cli_cell out);
/* Puts `value` into a JSON object; NULL and failures make *ok false. */
void cli_put(json_t *object, const char *key, json_t *value, bool *ok);
/* JSON text of bytes; those that are no UTF-8 become U+FFFD. */
json_t *cli_json_bytes(const char *from, size_t bytes);
json_t *cli_json_text(const char *from);
/* JSON of a file, and to one; as Jansson's. */
json_t *cli_json_load(const char *path, size_t flags, json_error_t *out_error);
bool cli_json_save(const json_t *root, const char *path, size_t flags);
/* Writes the text as a file, or none of it; returns the exit code. */
struct text;
int cli_save(const cli_command *command, const char *path, const struct text *page);
/* Prints and frees `root`; returns the exit code. */
int cli_print_json(const cli_command *command, json_t *root, bool ok);

/* ---- tables (columns.c) ---- */

/* Fills the first cells in. */
void cli_heads(cli_cell *cells, const char *const *heads, size_t count);
/* Rows of cells, the first one the heading, in aligned columns; columns named in `right` (bit i: column i) are set to
 * the right. At a terminal that is too narrow the last column is folded, or each row is printed as a list. */
void cli_table(cli_cell *cells, size_t rows, size_t columns, uint32_t right);
/* A line, broken at spaces at a terminal that is too narrow: what goes on begins below its character `below`. */
void cli_print_folded(const char *line, size_t below);
/* Several such lines, of a text that ends with one. */
void cli_print_lines(const char *lines);
/* What there is to choose: its name, in so many places, and what it is. */
void cli_print_item(const char *name, size_t width, const char *what);

/* ---- a context and its device (session.c) ---- */

enum { CLI_MOST_BESIDE = 15 };
typedef struct cli_session {
    const cli_command *command;
    hd_context *context;
    hd_device  *device;
    hd_device  *beside[CLI_MOST_BESIDE]; /* other devices of its plan, as many as there are */
    char       *route;         /* in the library's words */
    char        held[1024];    /* an error that was logged and may yet be reported */
    char        last[1024];    /* the last line that was logged */
} cli_session;

/* Makes the context, its log going to stderr. CLI_OK or CLI_FAILED after a message. */
int cli_session_open(const cli_command *command, cli_session *out_session);
/* Opens the device (NULL: the best) and prints the start-up line on stderr. */
int cli_session_device(cli_session *session, const char *id);
/* Opens the devices that --device and --route ask for, and puts the route into the desc (route.c). What cannot be
 * followed is told, and in strict mode refused. */
int cli_route(cli_session *session, const cli_args *args, hd_plan_desc *inout_desc);
/* The counters of the session's devices, added up (route.c). */
hd_status cli_session_stats(const cli_session *session, hd_device_stats *out);
/* Prints the context's error after `about` (NULL for none); returns CLI_FAILED. */
int cli_session_fail(cli_session *session, const char *about);
/* Drops an error that was expected. */
void cli_session_forget(cli_session *session);
void cli_session_close(cli_session *session);
/* What lies on the session's devices, by label and kind (held.c). */
int cli_held_print(const cli_session *session);
json_t *cli_held_json(const cli_session *session, bool *ok);
/* Writes what the context counted, for --metrics (held.c). */
int cli_metrics_save(const cli_session *session, const char *path);
const char *cli_kind_name(hd_device_kind kind);
uint64_t cli_now_ns(void);
/* The whole file ("-": standard input) with an ending zero, of at most `limit` bytes; free() it. NULL after a
 * message. */
char *cli_read_text(const cli_command *command, const char *path, size_t limit, size_t *out_bytes);

/* ---- the environment (environment.c) ---- */

typedef struct cli_variable { const char *name, *help; } cli_variable;
extern const cli_variable cli_environment[]; /* all variables that heddle reads */
extern const size_t cli_environment_count;

/* ---- jobs (job.c): a program, its files, its runs, its report; for `run` and `exec` ---- */

typedef struct cli_port {
    hd_port     port;
    npy_array   array;     /* an input's data, then an output's */
    const char *load_path, *save_path;
} cli_port;

typedef struct cli_job {
    cli_session *session;
    hd_program  *program;
    hd_plan     *plan;
    cli_port    *ports;
    size_t       port_count;
    uint64_t     repeat;
    const char  *saved;       /* the text of a saved plan to run, or NULL */
    bool         json, timings, held;
    const char  *trace_path;  /* of --trace, or NULL */
    uint64_t     plan_ns;
    uint64_t    *run_ns;      /* `repeat` of them */
    hd_device_stats first;    /* when the first run was done */
} cli_job;

/* Rows for the options of a job. */
#define CLI_JOB_OPTIONS \
    CLI_OPTION_DEVICE, \
    { "--repeat", "N", "run N times; the first run is told apart from the rest" }, \
    CLI_OPTION_TRACE, \
    { "--timings", NULL, "the device's time for each dispatch of the last run" }, \
    { "--held", NULL, "what lies on each device in the end, by label and kind" }, \
    CLI_OPTION_METRICS, \
    CLI_OPTION_JSON

/* Takes the program (which the job then owns) and lists its ports. */
int cli_job_begin(cli_session *session, const cli_args *args, hd_program *program, cli_job *out_job);
/* "f32[4,256]" (exec.c). */
bool cli_read_tensor(const char *text, hd_dtype *out_dtype, hd_shape *out_shape);
/* Checks a loaded array against its port and reports what is wrong with it. */
int cli_job_check(const cli_job *job, const cli_port *port);
/* Opens the device, plans, writes, runs, reads, saves and prints. */
int cli_job_run(cli_job *job, const cli_args *args, hd_math math);
void cli_job_end(cli_job *job);
/* The times of the last run's dispatches, for an option; free() them. NULL, and a code, after a message. */
hd_timing *cli_job_timings(const cli_job *job, const char *option, size_t *out_count, int *out_code);
/* The report (report.c). */
int cli_job_report(cli_job *job);

/* ---- saved plans (plan.c) ---- */

/* The program in the text of a saved plan; NULL: it is none. */
const char *cli_plan_program(const char *saved);
int cli_plan_save(cli_session *session, const hd_plan *plan, const char *path);
/* Opens the devices that a saved plan names, for hd_plan_load. */
int cli_plan_devices(cli_session *session, const char *saved, hd_plan_desc *out_desc);

/* ---- the commands ---- */
extern const cli_command cli_generate, cli_chat, cli_see, cli_info, cli_tokenize, cli_fit, cli_train, cli_finetune,
    cli_merge, cli_convert, cli_quantize, cli_importance, cli_perplexity, cli_embed,
    cli_bench_threshold, cli_bench_ops, cli_bench_transfer, cli_bench_batch,
    cli_bench_stream, cli_bench_route, cli_bench_llm, cli_bench_report, cli_bench_compare, cli_devices, cli_doctor,
    cli_verify, cli_stress, cli_tune, cli_run, cli_explain, cli_exec, cli_confirm;

#endif
