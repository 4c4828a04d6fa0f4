/* bench_route.c: `heddle bench route`: batches on the CPU, on another device, and where route "auto" places their
 * tasks, inputs handed over and outputs read in each round. A sample is the mean of the rounds of a stretch; stretches
 * go through several plans of the same, since where the system happens to put a plan's memory makes its rounds up to a
 * tenth longer. What was predicted stands beside what was measured; the regret is what the route takes longer than the
 * fastest of the three. */
#include "cli/bench_batch.h"
#include "cli/measure.h"
#include "cli/statistics.h"
#include "cli/workload.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHOICES = 3, ALL_CPU = 0, ALL_DEVICE, AUTO, COLUMNS = 8, EXTRA = 3 };
enum { LONG = 16 << 20, WIDE = 512, CELL = 64, STEPS = 64, WARM_ROUNDS = 96, PLANS = 16 };

/* Threads and clocks often stay as they are for all of a stretch: many short ones tell more than few long ones. */
#define STRETCH_NS UINT64_C(5000000)

typedef struct routed_job {
    workload_job jobs[PLANS]; /* the same, each with a plan of its own, */
    size_t       count;       /* so many of them */
    uint64_t     stretches;
    uint64_t     round_ns;    /* the mean of the last one */
} routed_job;

typedef struct routes {
    size_t        count;   /* batches */
    workload_data data;
    routed_job   *jobs;    /* by device (but the CPU), batch and choice */
    measure_case *cases;   /* the same */
    char        (*devices)[80]; /* how rows name the places, likewise */
} routes;

/* Small sums beside products of many rows: kinds of work that suit different devices. */
static hd_program *mixed_work(hd_context *context) {
    hd_program *program = hd_program_create(context);
    for (int i = 0; i < 4 && program; i++) {
        char name[3][8];
        for (size_t k = 0; k < 3; k++) snprintf(name[k], sizeof name[k], "%c%d", "abc"[k], i);
        const hd_shape shape = i < 2 ? HD_SHAPE(1, 4096) : HD_SHAPE(WIDE, WIDE);
        const hd_value a = hd_input(program, name[0], HD_F32, shape), b = hd_input(program, name[1], HD_F32, shape);
        hd_output(program, name[2], i < 2 ? hd_add(program, a, b) : hd_matmul(program, a, b));
    }
    if (program && hd_program_check(program)) {
        hd_program_destroy(program);
        return NULL;
    }
    return program;
}

/* A small recurrent net, whose steps wait for each other, beside two products: what takes one device by its latency,
 * and what takes the other one by its rate. */
static hd_program *chain_beside(hd_context *context) {
    hd_program *program = hd_program_create(context);
    if (!program) return NULL;
    hd_value h = hd_input(program, "h", HD_F32, HD_SHAPE(1, CELL));
    const hd_value w = hd_input(program, "w", HD_F32, HD_SHAPE(CELL, CELL)),
                   x = hd_input(program, "x", HD_F32, HD_SHAPE(1, CELL));
    for (int i = 0; i < STEPS; i++) h = hd_tanh(program, hd_add(program, hd_matmul(program, h, w), x));
    hd_output(program, "y", h);
    for (int i = 0; i < 2; i++) {
        char name[3][8];
        for (size_t k = 0; k < 3; k++) snprintf(name[k], sizeof name[k], "%c%d", "abc"[k], i);
        const hd_value a = hd_input(program, name[0], HD_F32, HD_SHAPE(WIDE, WIDE));
        const hd_value b = hd_input(program, name[1], HD_F32, HD_SHAPE(WIDE, WIDE));
        hd_output(program, name[2], hd_matmul(program, a, b));
    }
    if (!hd_program_check(program)) return program;
    hd_program_destroy(program);
    return NULL;
}

/* One task that fills both devices: to be shared by its rows, or left whole. */
static hd_program *one_sum(hd_context *context) { return batch_program(context, (const int64_t[]){ LONG }, 1); }

static const struct { const char *name; hd_program *(*make)(hd_context *context); } extras[EXTRA] = {
    { "mixed-work", mixed_work }, { "chain-beside", chain_beside }, { "one-sum", one_sum },
};

static const char *batch_name(size_t batch) {
    return batch < batch_mix_count ? batch_mixes[batch].name : extras[batch - batch_mix_count].name;
}

static hd_program *make_batch(hd_context *context, size_t batch) {
    if (batch < batch_mix_count) return batch_program(context, batch_mixes[batch].sizes, batch_mixes[batch].count);
    return extras[batch - batch_mix_count].make(context);
}

/* Rounds in a row, one at least. Before each stretch that counts there is one that does not (measure.h), of the same
 * plan. */
static hd_status run_stretch(void *user) {
    routed_job *j = user;
    workload_job *job = &j->jobs[j->stretches++ / 2 % j->count];
    const uint64_t began = cli_now_ns();
    uint64_t rounds = 0, spent = 0;
    hd_status status = HD_OK;
    for (; !status &&
           (rounds == 0 || (spent < STRETCH_NS && !measure_is_ended()));
         rounds++, spent = cli_now_ns() - began)
      status = workload_run_with_transfers(job);
    j->round_ns = spent / rounds;
    return status;
}

/* The first rounds find cold caches. They take no longer than the samples may. */
static hd_status warm_up(workload_job *job, uint64_t most_ns) {
    const uint64_t began = cli_now_ns();
    hd_status status = HD_OK;
    for (int i = 0; i < WARM_ROUNDS && !status && !measure_is_ended() && cli_now_ns() - began < most_ns; i++)
        status = workload_run_with_transfers(job);
    return status;
}

static int make_job(measure *m, routes *r, size_t index) {
    const size_t choice = index % CHOICES, batch = index / CHOICES % r->count;
    const measure_device *cpu = &m->devices[0], *on = &m->devices[1 + index / CHOICES / r->count];
    routed_job *j = &r->jobs[index];
    hd_status status = HD_OK;
    table_row row = measure_row(m, choice == ALL_CPU ? cpu : on);
    snprintf(r->devices[index], sizeof r->devices[index], "%s%s", choice == AUTO ? "auto:" : "",
             choice == ALL_CPU ? cpu->info.id : on->info.id);
    row.device = r->devices[index];
    row.op = batch_name(batch);
    row.type = "f32";
    row.size = "routed";
    row.counted = "transfers";
    row.submissions = 1;
    const size_t plans = batch >= batch_mix_count ? 1 : m->samples < PLANS ? (size_t)m->samples : PLANS;
    for (; j->count < plans && !status && !measure_is_ended(); j->count++) {
        workload_job *job = &j->jobs[j->count];
        job->device = choice == ALL_CPU ? cpu->device : on->device;
        job->data = &r->data;
        if (choice == AUTO) job->desc = (hd_plan_desc){ .beside = &cpu->device, .beside_count = 1, .route = "auto" };
        job->program = make_batch(m->session->context, batch);
        if (!job->program || !workload_data_hold(&r->data, job->program))
            return cli_session_fail(m->session, batch_name(batch));
        const uint64_t began = cli_now_ns();
        status = workload_job_begin(job);
        if (j->count == 0) row.first_ns = (double)(cli_now_ns() - began);
        if (!status) status = warm_up(job, m->most_ns / plans);
    }
    r->cases[index] = (measure_case){ .device = choice == ALL_CPU ? cpu : on, .row = row, .user = j,
                                      .sample = run_stretch, .part_ns = &j->round_ns, .failed = status != HD_OK };
    return status ? measure_fail(m, &row) : CLI_OK;
}

/* ---- what is printed ---- */

static void print_prediction(const hd_plan_stats *stats, double ns, cli_cell out) {
    cli_cell predicted;
    snprintf(out, CLI_CELL, "%s, %+.0f%%", cli_time(stats->predicted_ns, predicted),
             100 * ((double)stats->predicted_ns / ns - 1));
}

/* A batch may take one time in some stretches and another one in others, between which a median would jump. NaN: it has
 * no samples. */
static double mean_ns(const measure_case *c) { return c->count > 0 ? statistics_middle_ns(c->samples, c->count) : NAN; }

static void print_of_best(const measure_case *chosen, const measure_case *best, cli_cell out) {
    const double of = mean_ns(chosen) / mean_ns(best);
    const double error = hypot(statistics_middle_error_ns(chosen->samples, chosen->count) / mean_ns(chosen),
                               statistics_middle_error_ns(best->samples, best->count) / mean_ns(best));
    snprintf(out, CLI_CELL, "%.2f ±%.2f", of, of * error);
}

static int print_device(const measure *m, const routes *r, size_t device) {
    static const char *const heads[COLUMNS] = { "BATCH",     "ALL CPU", "ALL DEVICE", "AUTO",
                                                "PREDICTED", "OF BEST", "SEGMENTS",   "CROSSING" };
    cli_cell (*cells)[COLUMNS] = calloc(r->count + 1, sizeof *cells);
    double chosen = 0, best = 0;
    size_t rows = 1;
    if (!cells) return cli_fail(m->command, "no memory is left");
    cli_heads(cells[0], heads, COLUMNS);
    for (size_t batch = 0; batch < r->count; batch++) {
        const size_t at = (device * r->count + batch) * CHOICES;
        const double ns[CHOICES] = { mean_ns(&r->cases[at]), mean_ns(&r->cases[at + 1]), mean_ns(&r->cases[at + 2]) };
        hd_plan_stats stats;
        if (isnan(ns[ALL_CPU]) || isnan(ns[ALL_DEVICE]) || isnan(ns[AUTO]) ||
            hd_plan_get_stats(r->jobs[at + AUTO].jobs[0].plan, &stats))
            continue;
        const double least = fmin(ns[ALL_CPU], ns[ALL_DEVICE]);
        chosen += ns[AUTO];
        best += fmin(least, ns[AUTO]);
        cli_cell *line = cells[rows++];
        snprintf(line[0], CLI_CELL, "%s", batch_name(batch));
        for (size_t k = 0; k < CHOICES; k++) cli_time((uint64_t)ns[k], line[1 + k]);
        print_prediction(&stats, ns[AUTO], line[4]);
        print_of_best(&r->cases[at + AUTO], &r->cases[at + (ns[ALL_CPU] < ns[ALL_DEVICE] ? ALL_CPU : ALL_DEVICE)],
                      line[5]);
        snprintf(line[6], CLI_CELL, "%u", (unsigned)stats.segments);
        cli_bytes(stats.crossing_bytes, line[7]);
    }
    cli_print("%scpu or %s: %s\n", device > 0 ? "\n" : "",
              measure_device_name(m, &m->devices[1 + device]),
              m->devices[1 + device].info.name);
    cli_table(cells[0], rows, COLUMNS, 0xFEu);
    cli_print("times of a round, means over stretches of 5 ms, the highest and the lowest twentieth of these left out, "
              "of up to "
              "%d plans in turn; OF BEST: and its standard error\n",
              PLANS);
    if (best > 0)
        cli_print("regret: %.1f%% of the fastest of the three, over all batches\n", 100 * (chosen / best - 1));
    free(cells);
    return CLI_OK;
}

static int measure_routes(measure *m, routes *r) {
    int code = CLI_OK;
    if (m->device_count < 2 || m->devices[0].info.kind != HD_DEVICE_CPU)
        return cli_fail(m->command, "routes need the CPU and another device");
    const size_t count = (m->device_count - 1) * r->count * CHOICES;
    r->jobs = calloc(count, sizeof *r->jobs);
    r->cases = calloc(count, sizeof *r->cases);
    r->devices = calloc(count, sizeof *r->devices);
    if (!r->jobs || !r->cases || !r->devices) return cli_fail(m->command, "no memory is left");
    for (size_t i = 0; i < count; i++) r->cases[i] = (measure_case){ .row = table_row_empty(), .failed = true };
    for (size_t i = 0; i < count && !code && !measure_is_ended(); i++) {
        cli_progress("heddle bench route: preparing %zu of %zu: %s", i + 1, count, batch_name(i / CHOICES % r->count));
        code = make_job(m, r, i);
    }
    if (code) return code;
    const int measured = measure_run(m, r->cases, count);
    for (size_t i = 0; i < count && !code; i++)
        if (!isnan(r->cases[i].row.median_ns) && (i % CHOICES != ALL_CPU || i / CHOICES < r->count))
            code = measure_write(m, &r->cases[i].row);
    for (size_t device = 0; device + 1 < m->device_count && !code && !m->json; device++)
        code = print_device(m, r, device);
    return measured ? measured : code;
}

static int run(const cli_args *args) {
    routes r = { .count = batch_mix_count + EXTRA };
    measure m;
    int code = measure_begin(args, "batch", &m);
    if (!code) code = measure_open(args, &m);
    if (!code) code = measure_routes(&m, &r);
    const size_t count = m.device_count > 1 ? (m.device_count - 1) * r.count * CHOICES : 0;
    if (r.cases) measure_cases_free(r.cases, count);
    for (size_t i = 0; i < count * PLANS && r.jobs; i++) workload_job_end(&r.jobs[i / PLANS].jobs[i % PLANS]);
    free(r.jobs);
    free(r.devices);
    workload_data_free(&r.data);
    return measure_end(&m, code);
}

static const cli_option options[] = { MEASURE_OPTIONS };

const cli_command cli_bench_route = {
    "bench route", "measures batches on the CPU, on a device, and where a route places them", "bench route [options]",
    NULL, options, CLI_COUNT(options),
    "Run `heddle tune` first: without it, routes are chosen by assumptions.\n",
    "  heddle bench route --devices cpu,vulkan\n", run,
};
