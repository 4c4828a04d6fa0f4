/* bench_batch.c: `heddle bench batch`: batches of vector adds of equal and of different sizes, each batch as one
 * submission and as one for each task. Each is measured in three ways: only run; with inputs handed over and outputs
 * read; and with its plans asked for anew as well, which is what a caller pays who keeps nothing. What is then found
 * again in the caches of plans, kernels and staging memory is counted. */
#include "cli/bench_batch.h"
#include "cli/measure.h"
#include "cli/workload.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TASKS = BATCH_MOST_TASKS, MIXES = 8, MODES = 2, COLUMNS = 7, BUCKETS = 5, LEAST_BUCKET = 16 << 10 };

typedef enum manner { COMPUTE, TRANSFERS, PLAN, WAYS } manner;
static const char *const counted[WAYS] = { "compute", "transfers", "plan" };

#define KI 1024
const batch_mix batch_mixes[] = {
    { "same-again", 1, { 64 * KI } },
    { "uniform-32k", 4, { 32 * KI, 32 * KI, 32 * KI, 32 * KI } },
    { "uniform-64k", 4, { 64 * KI, 64 * KI, 64 * KI, 64 * KI } },
    { "same-bucket", 4, { 20 * KI, 24 * KI, 28 * KI, 32 * KI } },
    { "adjacent-buckets", 4, { 32 * KI, 64 * KI, 32 * KI, 64 * KI } },
    { "diverse", 4, { 16 * KI, 64 * KI, 128 * KI, 256 * KI } },
    { "large-uniform", 8, { 256 * KI, 256 * KI, 256 * KI, 256 * KI, 256 * KI, 256 * KI, 256 * KI, 256 * KI } },
    { "large-mixed", 6, { 256 * KI, 512 * KI, 256 * KI, 512 * KI, 256 * KI, 512 * KI } },
};
const size_t batch_mix_count = CLI_COUNT(batch_mixes);
_Static_assert(CLI_COUNT(batch_mixes) == MIXES, "all of them are measured");

/* Tasks by size: those of at most 16 Ki elements, 32 Ki, ..., and what their plans found in the caches. */
typedef struct bucket {
    uint64_t tasks, plan_hits, kernel_requests, kernel_hits;
} bucket;

/* A mix on a device, in one submission or in one for each task. */
typedef struct batch {
    const batch_mix *mix;
    size_t       job_count;
    workload_job anew[MOST_TASKS];   /* their plans are asked for in each run, */
    workload_job kept[MOST_TASKS];   /* and of these they stay */
    bucket      *buckets;            /* of the device; NULL: tasks are not told apart */
    char         size[96];
} batch;

typedef struct batches {
    workload_data data;
    bucket        buckets[MEASURE_MOST_DEVICES][BUCKETS];
    batch        *all;       /* by device, mix and mode */
    measure_case *cases;     /* the same, and manner */
    size_t        count;
} batches;

/* ---- samples ---- */

static void count_task(batch *b, const workload_job *job, int64_t size, const hd_device_stats *before) {
    hd_device_stats after;
    size_t at = 0;
    hd_device_get_stats(job->device, &after);
    while (at + 1 < BUCKETS && (int64_t)LEAST_BUCKET << at < size) at++;
    b->buckets[at].tasks++;
    b->buckets[at].plan_hits += after.plan_hits - before->plan_hits;
    b->buckets[at].kernel_requests += after.kernel_requests - before->kernel_requests;
    b->buckets[at].kernel_hits += after.kernel_hits - before->kernel_hits;
}

static hd_status run_anew(void *user) {
    batch *b = user;
    hd_status status = HD_OK;
    for (size_t i = 0; i < b->job_count && !status; i++) {
        workload_job *job = &b->anew[i];
        hd_device_stats before;
        hd_device_get_stats(job->device, &before);
        status = workload_job_begin(job);
        hd_plan_destroy(job->plan);
        job->plan = NULL;
        if (b->buckets) count_task(b, job, b->mix->sizes[i], &before);
    }
    return status;
}

static hd_status run_kept(void *user) {
    batch *b = user;
    hd_status status = HD_OK;
    for (size_t i = 0; i < b->job_count && !status; i++) status = workload_run(&b->kept[i]);
    return status;
}

static hd_status run_kept_with_transfers(void *user) {
    batch *b = user;
    hd_status status = HD_OK;
    for (size_t i = 0; i < b->job_count && !status; i++) status = workload_run_with_transfers(&b->kept[i]);
    return status;
}

/* ---- making ---- */

hd_program *batch_program(hd_context *context, const int64_t *sizes, size_t count) {
    hd_program *program = hd_program_create(context);
    for (size_t i = 0; i < count && program; i++) {
        char name[3][24];
        for (size_t k = 0; k < 3; k++) snprintf(name[k], sizeof name[k], "%c%zu", "abc"[k], i);
        const hd_value a = hd_input(program, name[0], HD_F32, HD_SHAPE(sizes[i]));
        const hd_value b = hd_input(program, name[1], HD_F32, HD_SHAPE(sizes[i]));
        hd_output(program, name[2], hd_add(program, a, b));
    }
    if (!program || !hd_program_check(program)) return program;
    hd_program_destroy(program);
    return NULL;
}

static hd_status make_jobs(const measure *m, batches *all, batch *b, const measure_device *on) {
    const size_t tasks_each = b->mix->count / b->job_count;
    for (size_t i = 0; i < b->job_count; i++) {
        workload_job *const both[] = { &b->anew[i], &b->kept[i] };
        for (size_t k = 0; k < 2; k++) {
            *both[k] = (workload_job){ .device = on->device, .data = &all->data };
            both[k]->program = batch_program(m->session->context, &b->mix->sizes[i * tasks_each], tasks_each);
            if (!both[k]->program || !workload_data_hold(&all->data, both[k]->program))
                return HD_STATUS_OUT_OF_HOST_MEMORY;
        }
    }
    return HD_OK;
}

static table_row row_of(const measure *m, const measure_device *on, batch *b) {
    table_row row = measure_row(m, on);
    double elements = 0;
    int at = snprintf(b->size, sizeof b->size, "n=");
    for (size_t i = 0; i < b->mix->count; i++) {
        elements += (double)b->mix->sizes[i];
        at += snprintf(b->size + at, sizeof b->size - (size_t)at, "%s%lld", i > 0 ? "," : "",
                       (long long)b->mix->sizes[i]);
    }
    row.op = b->mix->name;
    row.type = "f32";
    row.size = b->size;
    row.elements = row.flops = elements;
    row.bytes = 12 * elements;
    row.submissions = (double)b->job_count;
    return row;
}

static int leave_out(batches *all, size_t index) {
    for (size_t way = 0; way < WAYS; way++)
        all->cases[index * WAYS + way] = (measure_case){ .row = table_row_empty(), .failed = true };
    return CLI_OK;
}

/* The first run, and the plans that are kept. */
static int make_batch(measure *m, batches *all, size_t index) {
    const size_t device = index / (MIXES * MODES);
    const measure_device *on = &m->devices[device];
    batch *b = &all->all[index];
    b->mix = &batch_mixes[index / MODES % MIXES];
    b->job_count = index % MODES == 0 ? 1 : b->mix->count;
    measure_case *cases = &all->cases[index * WAYS];
    /* one task is one submission in either way */
    if (index % MODES == 1 && b->mix->count == 1) return leave_out(all, index);
    if (b->job_count == b->mix->count) b->buckets = all->buckets[device];
    table_row row = row_of(m, on, b);
    hd_status status = make_jobs(m, all, b, on);
    const uint64_t began = cli_now_ns();
    if (!status) status = run_anew(b);
    row.first_ns = (double)(cli_now_ns() - began);
    for (size_t i = 0; i < b->job_count && !status; i++) status = workload_job_begin(&b->kept[i]);
    for (size_t way = 0; way < WAYS; way++) {
        static hd_status (*const samples[WAYS])(void *user) = { run_kept, run_kept_with_transfers, run_anew };
        row.counted = counted[way];
        cases[way] =
            (measure_case){ .device = on, .row = row, .user = b, .sample = samples[way], .failed = status != HD_OK };
    }
    return status ? measure_fail(m, &row) : CLI_OK;
}

static void free_all(batches *all) {
    measure_cases_free(all->cases, all->count * WAYS);
    for (size_t i = 0; i < all->count && all->all; i++)
        for (size_t k = 0; k < MOST_TASKS; k++) {
            workload_job_end(&all->all[i].anew[k]);
            workload_job_end(&all->all[i].kept[k]);
        }
    free(all->all);
    workload_data_free(&all->data);
}

/* ---- what is printed ---- */

static int print_mixes(const measure *m, const batches *all, size_t device) {
    static const char *const heads[COLUMNS] = {
        "MIX", "SUBMITTED", "FIRST", "AGAIN", "A TASK", "TRANSFERS", "COMPUTE"
    };
    cli_cell (*cells)[COLUMNS] = calloc(MIXES * MODES + 1, sizeof *cells);
    size_t count = 1;
    if (!cells) return cli_fail(m->command, "no memory is left");
    cli_heads(cells[0], heads, COLUMNS);
    for (size_t i = device * MIXES * MODES; i < (device + 1) * MIXES * MODES; i++) {
        const measure_case *cases = &all->cases[i * WAYS];
        const table_row *row = &cases[PLAN].row;
        if (isnan(cases[COMPUTE].row.median_ns) || isnan(cases[TRANSFERS].row.median_ns) || isnan(row->median_ns))
            continue;
        cli_cell *line = cells[count++];
        snprintf(line[0], CLI_CELL, "%s", row->op);
        snprintf(line[1], CLI_CELL, "%.0f", row->submissions);
        cli_time((uint64_t)row->first_ns, line[2]);
        cli_time((uint64_t)row->median_ns, line[3]);
        cli_time((uint64_t)row->median_ns / all->all[i].mix->count, line[4]);
        cli_time((uint64_t)cases[TRANSFERS].row.median_ns, line[5]);
        cli_time((uint64_t)cases[COMPUTE].row.median_ns, line[6]);
    }
    cli_print("%s: %s\n", measure_device_name(m, &m->devices[device]), m->devices[device].info.name);
    cli_table(cells[0], count, COLUMNS, 0x7E);
    free(cells);
    return CLI_OK;
}

/* What the first run of a task takes beyond transfers and computing, and what one that asks for the plan again does. */
static void print_overhead(const batches *all, size_t device) {
    const measure_case *cases = &all->cases[device * MIXES * MODES * WAYS];
    const double kept = cases[TRANSFERS].row.median_ns, first = cases[PLAN].row.first_ns - kept;
    const double again = fmax(cases[PLAN].row.median_ns - kept, 0);
    cli_cell first_text, again_text;
    if (isnan(kept) || isnan(cases[PLAN].row.median_ns)) cli_print("\n");
    else if (first <= 0)
        cli_print(
            "overhead of %s: not told, its transfers took longer than the first run: the machine was disturbed\n\n",
            cases[PLAN].row.op);
    else
      cli_print(
          "overhead of %s: first run %s, again %s, %.1f%% of the first\n\n",
          cases[PLAN].row.op, cli_time((uint64_t)first, first_text),
          cli_time((uint64_t)again, again_text), 100 * again / first);
}

static void print_share(uint64_t hits, uint64_t requests, cli_cell out) {
    if (requests == 0) snprintf(out, CLI_CELL, "none asked");
    else
        snprintf(out, CLI_CELL, "%llu of %llu, %.1f%%", (unsigned long long)hits, (unsigned long long)requests,
                 100.0 * (double)hits / (double)requests);
}

static void print_hits(const measure *m, const batches *all, size_t device) {
    static const char *const heads[] = { "BUCKET", "TASKS", "PLAN FROM CACHE", "KERNEL FROM MEMORY" };
    cli_cell cells[BUCKETS + 1][CLI_COUNT(heads)], staging;
    hd_device_stats stats = { 0 };
    hd_device_get_stats(m->devices[device].device, &stats);
    cli_heads(cells[0], heads, CLI_COUNT(heads));
    for (size_t i = 0; i < BUCKETS; i++) {
        const bucket *b = &all->buckets[device][i];
        snprintf(cells[i + 1][0], CLI_CELL, "%s%d Ki", i + 1 < BUCKETS ? "to " : "over ",
                 (LEAST_BUCKET >> 10) << (i + 1 < BUCKETS ? i : i - 1));
        snprintf(cells[i + 1][1], CLI_CELL, "%llu", (unsigned long long)b->tasks);
        print_share(b->plan_hits, b->tasks, cells[i + 1][2]);
        print_share(b->kernel_hits, b->kernel_requests, cells[i + 1][3]);
    }
    cli_print("\n");
    cli_table(cells[0], BUCKETS + 1, CLI_COUNT(heads), 0xE);
    print_share(stats.staging_hits, stats.staging_requests, staging);
    cli_print("staging memory found made: %s; %.0f%% of the bytes travelled without it\n", staging,
              100.0 * (double)stats.direct_bytes /
                  (double)(stats.upload_bytes + stats.download_bytes + (stats.upload_bytes == 0)));
}

static int measure_all(measure *m, batches *all) {
    int code = CLI_OK, written = CLI_OK;
    all->count = m->device_count * MIXES * MODES;
    all->all = calloc(all->count, sizeof *all->all);
    all->cases = calloc(all->count * WAYS, sizeof *all->cases);
    if (!all->all || !all->cases) return cli_fail(m->command, "no memory is left");
    for (size_t i = 0; i < all->count; i++) {
        cli_progress("heddle bench batch: preparing %zu of %zu: %s", i + 1, all->count,
                     batch_mixes[i / MODES % MIXES].name);
        const int made = measure_is_ended() ? leave_out(all, i) : make_batch(m, all, i);
        if (made) code = made;
    }
    const int measured = measure_run(m, all->cases, all->count * WAYS);
    for (size_t i = 0; i < all->count * WAYS && !written; i++)
        if (!isnan(all->cases[i].row.median_ns)) written = measure_write(m, &all->cases[i].row);
    for (size_t device = 0; device < m->device_count && !m->json && !written; device++) {
        written = print_mixes(m, all, device);
        print_hits(m, all, device);
        print_overhead(all, device);
    }
    if (!m->json)
        cli_print("FIRST and AGAIN: plan asked for, data handed over, run and read; TRANSFERS: with a\n"
               "plan that was kept; COMPUTE: only run. Medians of up to %llu samples. Buckets count\n"
               "all tasks that were submitted by themselves, the first ones included.\n",
               (unsigned long long)m->samples);
    return measured ? measured : written ? written : code;
}

static int run(const cli_args *args) {
    batches all = { .count = 0 };
    measure m;
    int code = measure_begin(args, "batch", &m);
    if (!code) code = measure_open(args, &m);
    if (!code) code = measure_all(&m, &all);
    free_all(&all);
    return measure_end(&m, code);
}

static const cli_option options[] = { MEASURE_OPTIONS };

const cli_command cli_bench_batch = {
    "bench batch", "measures batches of tasks, and what caches save them", "bench batch [options]", NULL, options,
    CLI_COUNT(options),
    "Seven mixes of 4 to 8 tasks, and one task again and again.\n",
    "  heddle bench batch --devices cpu,vulkan --samples 21\n", run,
};
