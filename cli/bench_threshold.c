/* bench_threshold.c: `heddle bench threshold`: the CPU against every other device, size by size, and the size from
 * which on the device is the faster one. With transfers counted, inputs are handed over and outputs read for each run;
 * the CPU computes in the host's memory and so has nothing to hand over. */
#include "cli/points.h"
#include <math.h>
#include <stdlib.h>

enum { COLUMNS = 7, SUMMARY_COLUMNS = 4 };

typedef struct summary {
    cli_cell (*rows)[SUMMARY_COLUMNS];
    size_t    count;
} summary;

static double median_at(const points *p, size_t device, size_t size, unsigned way) {
    return points_at(p, device, size, way)->row.median_ns;
}

static void print_time(double ns, cli_cell out) {
    if (isnan(ns)) snprintf(out, CLI_CELL, "-");
    else cli_time((uint64_t)ns, out);
}

/* How many times as fast as the CPU the device is. */
static void print_gain(const points *p, size_t device, size_t size, unsigned way, cli_cell out) {
    const double gain = median_at(p, 0, size, way) / median_at(p, device, size, way);
    if (isnan(gain)) snprintf(out, CLI_CELL, "-");
    else snprintf(out, CLI_CELL, gain < 0.1 ? "%.3fx" : gain < 10 ? "%.2fx" : "%.1fx", gain);
}

static int print_device(const measure *m, const points *p, size_t device) {
    static const char *const heads[COLUMNS] = { "SIZE", "CPU", "DEVICE", "GAIN", "TRANSFERS", "GAIN", "FIRST RUN" };
    cli_cell (*cells)[COLUMNS] = calloc(p->size_count + 1, sizeof *cells);
    if (!cells) return cli_fail(m->command, "no memory is left");
    cli_heads(cells[0], heads, COLUMNS);
    for (size_t size = 0; size < p->size_count; size++) {
        cli_cell *row = cells[size + 1];
        measure_count((double)p->sizes[size], row[0]);
        print_time(median_at(p, 0, size, POINTS_COMPUTE), row[1]);
        print_time(median_at(p, device, size, POINTS_COMPUTE), row[2]);
        print_gain(p, device, size, POINTS_COMPUTE, row[3]);
        print_time(median_at(p, device, size, POINTS_TRANSFERS), row[4]);
        print_gain(p, device, size, POINTS_TRANSFERS, row[5]);
        print_time(points_at(p, device, size, POINTS_COMPUTE)->row.first_ns, row[6]);
    }
    cli_print("%s %s: the CPU against %s, %.40s\n", p->op->name, hd_dtype_name(p->type),
           measure_device_name(m, &m->devices[device]), m->devices[device].info.name);
    cli_table(cells[0], p->size_count + 1, COLUMNS, (1u << COLUMNS) - 1);
    cli_print("\n");
    free(cells);
    return CLI_OK;
}

/* The size of the crossing, of the sizes that were measured on both; 0: there is none. */
static uint64_t crossing_of(const points *p, size_t device, unsigned way) {
    bool wins[POINTS_SIZES] = { false };
    uint64_t sizes[POINTS_SIZES];
    size_t count = 0;
    for (size_t size = 0; size < p->size_count; size++) {
        const double cpu = median_at(p, 0, size, way), other = median_at(p, device, size, way);
        if (isnan(cpu) || isnan(other)) continue;
        sizes[count] = p->sizes[size];
        wins[count++] = other < cpu;
    }
    const size_t at = statistics_crossing(wins, count);
    return at < count ? sizes[at] : 0;
}

static int add_crossings(const measure *m, const points *p, summary *all) {
    cli_cell (*more)[SUMMARY_COLUMNS] = realloc(all->rows, (all->count + m->device_count) * sizeof *more);
    if (!more) return cli_fail(m->command, "no memory is left");
    all->rows = more;
    for (size_t device = 1; device < m->device_count; device++) {
        cli_cell *row = all->rows[all->count++];
        snprintf(row[0], CLI_CELL, "%s %s on %s", p->op->name, hd_dtype_name(p->type),
                 measure_device_name(m, &m->devices[device]));
        for (unsigned way = 0; way < 2; way++) {
            const uint64_t size = crossing_of(p, device, way);
            if (size) measure_count((double)size, row[1 + way]);
            else snprintf(row[1 + way], CLI_CELL, "none");
        }
        snprintf(row[3], CLI_CELL, "%s", p->op->size); /* sizes of one operation are no sizes of another */
    }
    return CLI_OK;
}

static int visit(measure *m, points *p, void *user) {
    summary *all = user;
    int code = points_write(m, p);
    if (m->json) return code;
    for (size_t device = 1; device < m->device_count && !code; device++) code = print_device(m, p, device);
    return code ? code : add_crossings(m, p, all);
}

static int measure_all(measure *m, const points_wanted *wanted) {
    summary all = { calloc(1, sizeof *all.rows), 1 };
    if (!all.rows) return cli_fail(m->command, "no memory is left");
    if (m->devices[0].info.kind != HD_DEVICE_CPU)
        return free(all.rows),
               cli_fail(m->command,
                        "compares with the CPU, which is not among the devices; add cpu to --devices, or unset "
                        "HEDDLE_BACKEND");
    if (m->device_count < 2)
        return free(all.rows),
               cli_fail(m->command, "there is no device besides the CPU; run `heddle devices` to see why");
    static const char *const heads[] = { "FASTER THAN THE CPU FROM", "COMPUTE", "WITH TRANSFERS", "COUNTED IN" };
    cli_heads(all.rows[0], heads, SUMMARY_COLUMNS);
    const int code = points_each(m, wanted, visit, &all);
    if (!m->json && all.count > 1) {
        cli_table(all.rows[0], all.count, SUMMARY_COLUMNS, 1u << 1 | 1u << 2);
        cli_print("Times are medians of up to %llu samples. From a crossing on the device wins at\n"
               "least 90%% of the sizes. P90, least and most are in the rows: --csv, --json.\n",
               (unsigned long long)m->samples);
    }
    free(all.rows);
    return code;
}

static int run(const cli_args *args) {
    const points_choice choice = { .ops = "vecadd,matmul,matvec,softmax", .types = "f32", .range = true,
                                   .transfers = true };
    return points_run(args, "threshold", choice, measure_all);
}

static const cli_option options[] = { POINTS_OPTIONS("vecadd,matmul,matvec,softmax", "f32"), MEASURE_OPTIONS };

const cli_command cli_bench_threshold = {
    "bench threshold", "finds the size from which a device beats the CPU",
    "bench threshold [--op LIST] [--types LIST] [options]", NULL, options, CLI_COUNT(options),
    POINTS_NOTES "Sizes are powers of two and the middles between them.\n",
    "  heddle bench threshold --op vecadd,matmul --types f32,f16 --csv here.csv\n", run,
};
