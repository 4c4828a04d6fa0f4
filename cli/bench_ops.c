/* bench_ops.c: `heddle bench ops`: what operations reach on each device, beside what the device is seen to reach at its
 * best: the roof over an operation is the lower one of the measured peak of arithmetic and, for the arithmetic it does
 * with each byte, the measured peak of copying. */
#include "cli/points.h"
#include <math.h>
#include <stdlib.h>

enum { COLUMNS = 7, PEAK_RUNS = 5 };
#define PEAK_LONG_NS UINT64_C(20000000)  /* a run in which its hand-over no longer counts */
#define PEAK_TIME_NS UINT64_C(200000000) /* for the runs of one size */
#define OPS "copy,vecadd,gelu,transpose,sum,softmax,rms_norm,matvec,matmul,attention"

typedef struct lines {
    cli_cell (*cells)[COLUMNS];
    size_t    count;
} lines;

typedef struct report {
    double bytes_per_s[MEASURE_MOST_DEVICES]; /* peaks; NaN: not known */
    double flops_per_s[MEASURE_MOST_DEVICES][HD_DTYPE_COUNT];
    lines  lines[MEASURE_MOST_DEVICES];
} report;

/* ---- peaks ---- */

/* The fastest of a few runs, in ns; 0: it cannot be run here. */
static uint64_t fastest_run(measure *m, const measure_device *on, const workload_op *op, hd_dtype type, uint64_t n,
                            table_row *out_row) {
    char text[64];
    workload_data data = { 0 };
    workload_job job = { .device = on->device, .data = &data, .in_place = on->info.kind == HD_DEVICE_CPU };
    const uint64_t most_ns = m->most_ns < PEAK_TIME_NS ? m->most_ns : PEAK_TIME_NS;
    uint64_t least = 0;
    job.program = workload_program(m->session->context, op, type, n, text, out_row);
    hd_status status =
        job.program && workload_data_hold(&data, job.program) ? workload_job_begin(&job) : HD_STATUS_OUT_OF_HOST_MEMORY;
    const uint64_t entered = cli_now_ns();
    /* the first one warms up */
    for (uint64_t i = 0, began = entered; i <= 1 || began - entered < (i <= PEAK_RUNS ? PEAK_RUNS * most_ns : most_ns);
         i++) {
        if (status || measure_is_ended()) break;
        status = workload_run(&job);
        const uint64_t spent = cli_now_ns() - began;
        if (i > 0 && (least == 0 || spent < least)) least = spent;
        began += spent;
    }
    if (status) cli_session_forget(m->session);
    workload_job_end(&job);
    workload_data_free(&data);
    return status ? 0 : least;
}

/* The best rate over sizes that double until a run is long; which of the row's figures counts is `flops`'s choice. */
static double peak_of(measure *m, const measure_device *on, const char *name, hd_dtype type, uint64_t least,
                      uint64_t most, bool flops) {
    const workload_op *op = workload_find(name);
    const uint64_t began = cli_now_ns();
    double best = NAN;
    for (uint64_t n = least; n <= most && !measure_is_ended(); n *= 2) {
        table_row row = table_row_empty();
        const uint64_t spent = fastest_run(m, on, op, type, n, &row);
        if (spent == 0) break;
        const double rate = (flops ? row.flops : row.bytes) / (double)spent * 1e9;
        if (isnan(best) || rate > best) best = rate;
        if (spent > PEAK_LONG_NS || cli_now_ns() - began > m->most_ns) break;
    }
    return best;
}

static void look_for_peaks(measure *m, const points_wanted *wanted, report *r) {
    for (size_t device = 0; device < m->device_count; device++) {
        const measure_device *on = &m->devices[device];
        cli_progress("heddle bench ops: the peaks of %s", on->info.name);
        r->bytes_per_s[device] = peak_of(m, on, "copy", HD_F32, 16u << 20, 256u << 20, false);
        for (int type = 0; type < HD_DTYPE_COUNT; type++) r->flops_per_s[device][type] = NAN;
        for (size_t i = 0; i < wanted->type_count; i++)
            if (workload_takes(workload_find("matmul"), wanted->types[i]))
                r->flops_per_s[device][wanted->types[i]] = peak_of(m, on, "matmul", wanted->types[i], 512, 8192, true);
    }
}

/* The share of the roof, in percent; NaN where no peak is known. */
static double share_of_roof(const table_row *row) {
    const double moving = row->bytes / row->peak_bytes_per_s, computing = row->flops / row->peak_flops_per_s;
    return 1e11 * fmax(moving, computing) / row->median_ns; /* fmax passes over NaN */
}

/* ---- what is printed ---- */

static bool add_line(lines *all, const char *const texts[COLUMNS]) {
    cli_cell (*more)[COLUMNS] = realloc(all->cells, (all->count + 1) * sizeof *more);
    if (!more) return false;
    all->cells = more;
    for (size_t i = 0; i < COLUMNS; i++) snprintf(more[all->count][i], CLI_CELL, "%s", texts[i]);
    all->count++;
    return true;
}

static bool add_case(lines *all, const table_row *row) {
    cli_cell median, flops, bytes, share;
    static const char *const heads[COLUMNS] = { "OPERATION", "TYPE", "SIZE", "MEDIAN", "GFLOP/s", "GB/s", "OF ROOF" };
    if (all->count == 0 && !add_line(all, heads)) return false;
    cli_time((uint64_t)row->median_ns, median);
    measure_rate(row->flops / row->median_ns, flops);
    measure_rate(row->bytes / row->median_ns, bytes);
    const double percent = share_of_roof(row);
    if (isnan(percent)) snprintf(share, CLI_CELL, "-");
    else snprintf(share, CLI_CELL, "%.*f%%", percent < 9.95, percent);
    return add_line(all, (const char *const[COLUMNS]){ row->op, row->type, row->size, median,
                                                       row->flops > 0 ? flops : "-", bytes, share });
}

static int visit(measure *m, points *p, void *user) {
    report *r = user;
    bool memory = true;
    for (size_t i = 0; i < p->case_count && memory; i++) {
        const size_t device = i / p->size_count;
        table_row *row = &p->cases[i].row;
        if (isnan(row->median_ns)) continue;
        row->peak_bytes_per_s = r->bytes_per_s[device];
        row->peak_flops_per_s = r->flops_per_s[device][p->type];
        memory = add_case(&r->lines[device], row);
    }
    const int code = points_write(m, p);
    return memory ? code : cli_fail(m->command, "no memory is left");
}

static void print(const measure *m, const points_wanted *wanted, const report *r) {
    cli_cell rate;
    bool any = false;
    for (size_t device = 0; device < m->device_count; device++) {
        const lines *all = &r->lines[device];
        if (all->count == 0) continue;
        any = true;
        cli_print("%s: %s\npeaks: copy %s GB/s", measure_device_name(m, &m->devices[device]),
                  m->devices[device].info.name, measure_rate(r->bytes_per_s[device] / 1e9, rate));
        for (size_t i = 0; i < wanted->type_count; i++) {
            const double flops = r->flops_per_s[device][wanted->types[i]];
            if (!isnan(flops))
                cli_print(", matmul %s %s GFLOP/s", hd_dtype_name(wanted->types[i]), measure_rate(flops / 1e9, rate));
        }
        cli_print("\n");
        cli_table(all->cells[0], all->count, COLUMNS, 0x78);
        cli_print("\n");
    }
    if (!any) return;
    cli_print("Times are medians of up to %llu samples, with the hand-over of each run. The roof\n"
           "is the lower one of the two peaks for the operation; above it data came from\n"
           "caches. P90, least and most are in the rows: --csv, --json.\n", (unsigned long long)m->samples);
}

static int measure_all(measure *m, const points_wanted *wanted) {
    report *r = calloc(1, sizeof *r);
    if (!r) return cli_fail(m->command, "no memory is left");
    look_for_peaks(m, wanted, r);
    const int code = points_each(m, wanted, visit, r);
    if (!m->json) print(m, wanted, r);
    for (size_t i = 0; i < m->device_count; i++) free(r->lines[i].cells);
    free(r);
    return code;
}

static int run(const cli_args *args) {
    return points_run(args, "ops", (points_choice){ .ops = OPS, .types = "f32,f16" }, measure_all);
}

static const cli_option options[] = { POINTS_OPTIONS("all of them", "f32,f16"), MEASURE_OPTIONS };

const cli_command cli_bench_ops = {
    "bench ops", "measures operations: GFLOP/s, GB/s, percent of each device's roof",
    "bench ops [--op LIST] [--types LIST] [options]", NULL, options, CLI_COUNT(options),
    POINTS_NOTES "Without --min and --max each is measured at one large size; else at powers of two.\n",
    "  heddle bench ops --op matmul --types f32,q4_0 --min 256 --max 2048\n", run,
};
