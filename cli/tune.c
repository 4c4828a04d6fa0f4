/* tune.c: `heddle tune`: measures what each kind of work takes on each device, from which the library finds the figures
 * that routes are chosen by (docs/route.md). The same operations as in `heddle bench ops` over all sizes; chains of
 * softmaxes, which tell the cost of a submission from that of a kernel. Each is run with its data there, and with its
 * inputs written before and its outputs read behind. */
#include "cli/tune.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHAIN = 8, CHAIN_SIZES = 3, ROW = 512, COLUMNS = 7, FIGURES = 64, FEW_SIZES = 8 };
#define QUICK_RUN_NS UINT64_C(50000000)    /* sizes behind one that takes longer are left out */
#define LONG_RUN_NS  UINT64_C(1000000000)

const tune_subject tune_subjects[] = {
    { "softmax", HD_F32 },   { "vecadd", HD_F32 },    { "vecadd", HD_F16 }, { "gelu", HD_F32 },   { "copy", HD_F32 },
    { "sum", HD_F32 },       { "rms_norm", HD_F32 },  { "gather", HD_F32 }, { "rope", HD_F32 },   { "matvec", HD_F32 },
    { "matvec", HD_F16 },    { "matvec", HD_Q4_0 },   { "matmul", HD_F32 }, { "matmul", HD_F16 }, { "matmul", HD_Q4_0 },
    { "attention", HD_F32 }, { "attention", HD_F16 },
};
const size_t tune_subject_count = CLI_COUNT(tune_subjects);

/* ---- one operation over its sizes ---- */

const measure_case *tune_set_case(const tune_set *set, size_t device, size_t size, size_t way) {
    return &set->cases[(device * set->size_count + size) * set->ways + way];
}
workload_job *tune_set_job(const tune_set *set, size_t device, size_t size) {
    return &set->jobs[device * set->size_count + size];
}

void tune_set_end(const measure *m, tune_set *set) {
    const size_t jobs = m->device_count * set->size_count;
    if (set->cases) measure_cases_free(set->cases, jobs * set->ways);
    for (size_t i = 0; i < jobs && set->jobs; i++) workload_job_end(&set->jobs[i]);
    free(set->jobs);
    workload_data_free(&set->data);
    *set = (tune_set){ 0 };
}

/* `round`: the first of the job's cases that are told by rounds. */
static void time_case(measure_case *c, const workload_job *job, tune_way way, const measure_case **inout_round) {
    if (way != TUNE_RUN) {
        c->of = *inout_round;
        if (!*inout_round) *inout_round = c;
    }
    c->sample = way == TUNE_RUN ? workload_run : workload_run_with_transfers;
    c->part_ns = way == TUNE_WRITE ? &job->write_ns : way == TUNE_WRITE_AND_RUN ? &job->handed_ns : way == TUNE_READ
                 ? &job->read_ns : NULL;
}

/* One size on one device; *out_ns: how long a run takes. A device may lack the type, or memory for the largest
 * sizes. */
static int make_job(measure *m, tune_set *set, size_t device, size_t size, uint64_t *out_ns) {
    const measure_device *on = &m->devices[device];
    const size_t at = device * set->size_count + size;
    workload_job *job = tune_set_job(set, device, size);
    char text[64];
    table_row row = measure_row(m, on);
    job->program = workload_program(m->session->context, set->op, set->type, set->sizes[size], text, &row);
    if (!job->program || !workload_data_hold(&set->data, job->program))
        return cli_session_fail(m->session, set->op->name);
    job->device = on->device;
    job->data = &set->data;
    row.size = ""; /* texts are told by the tables */
    hd_status status = workload_job_begin(job);
    const uint64_t began = cli_now_ns();
    if (!status) status = workload_run(job);
    *out_ns = cli_now_ns() - began;
    const measure_case *round = NULL;
    for (size_t way = 0; way < set->ways; way++) {
        measure_case *c = &set->cases[at * set->ways + way];
        *c = (measure_case){ .device = on, .row = row, .user = job, .failed = status != HD_OK };
        time_case(c, job, set->timed[way], &round);
    }
    if (status) cli_session_forget(m->session);
    return status && status != HD_STATUS_UNSUPPORTED && status != HD_STATUS_OUT_OF_DEVICE_MEMORY &&
           status != HD_STATUS_LIMIT ? measure_fail(m, &row) : CLI_OK;
}

int tune_set_measure(measure *m, tune_set *set, uint64_t most_ns) {
    char text[64];
    table_row row = table_row_empty();
    const size_t jobs = m->device_count * set->size_count;
    set->jobs = calloc(jobs, sizeof *set->jobs);
    set->cases = calloc(jobs * set->ways, sizeof *set->cases);
    if (!set->jobs || !set->cases) return cli_fail(m->command, "no memory is left");
    for (size_t i = 0; i < jobs * set->ways; i++)
        set->cases[i] = (measure_case){ .row = table_row_empty(), .failed = true };
    hd_program *largest =
        workload_program(m->session->context, set->op, set->type, set->sizes[set->size_count - 1], text, &row);
    const bool held = largest && workload_data_hold(&set->data, largest);
    hd_program_destroy(largest);
    if (!held) return cli_fail(m->command, "no memory is left");
    for (size_t device = 0; device < m->device_count; device++) {
        uint64_t ns = 0;
        for (size_t size = 0; size < set->size_count && ns <= most_ns && !measure_is_ended(); size++) {
            cli_progress("heddle tune: preparing %s of %zu of %zu sizes", set->op->name, size + 1, set->size_count);
            const int code = make_job(m, set, device, size, &ns);
            if (code) return code;
        }
    }
    return measure_run(m, set->cases, jobs * set->ways);
}

/* ---- samples ---- */

/* What a program took: to run, and to have its inputs written and its outputs read; 0: that was not measured. */
typedef struct sample {
    hd_program *program;
    uint64_t    run_ns, write_ns, read_ns;
    const workload_op *op;
    uint64_t    size;
} sample;

typedef struct samples {
    sample *items[MEASURE_MOST_DEVICES];
    size_t  counts[MEASURE_MOST_DEVICES];
} samples;

static bool keep(samples *all, size_t device, const sample *item) {
    sample *more = realloc(all->items[device], (all->counts[device] + 1) * sizeof *more);
    if (!more) return false;
    all->items[device] = more;
    more[all->counts[device]++] = *item;
    return true;
}

static void forget(const measure *m, samples *all) {
    for (size_t device = 0; device < m->device_count; device++) {
        for (size_t i = 0; i < all->counts[device]; i++) hd_program_destroy(all->items[device][i].program);
        free(all->items[device]);
    }
}

/* In which order a set's ways are timed. What writing takes is told with what a run behind it then takes longer: it
 * waits for what is under way still, reads what another core wrote, wakes threads that fell asleep. */
enum { WAY_RUN, WAY_WRITE, WAY_WRITE_AND_RUN, WAY_READ };

static double median_ns(const tune_set *set, size_t device, size_t size, size_t way) {
    return tune_set_case(set, device, size, way)->row.median_ns;
}

/* Takes the programs of the set's jobs over, with what they took. */
static int keep_set(const measure *m, tune_set *set, samples *all) {
    for (size_t device = 0; device < m->device_count; device++)
        for (size_t size = 0; size < set->size_count; size++) {
            workload_job *job = tune_set_job(set, device, size);
            if (tune_set_case(set, device, size, WAY_RUN)->count == 0) continue;
            sample item = { .program = job->program, .run_ns = (uint64_t)median_ns(set, device, size, WAY_RUN),
                            .op = set->op, .size = set->sizes[size] };
            if (set->ways > WAY_READ && tune_set_case(set, device, size, WAY_READ)->count > 0) {
                const double write_ns = median_ns(set, device, size, WAY_WRITE);
                const double longer_ns = median_ns(set, device, size, WAY_WRITE_AND_RUN) - (double)item.run_ns;
                item.write_ns = (uint64_t)fmax(fmax(write_ns, longer_ns), 1);
                item.read_ns = (uint64_t)fmax(median_ns(set, device, size, WAY_READ), 1);
            }
            if (!keep(all, device, &item)) return cli_fail(m->command, "no memory is left");
            job->program = NULL; /* the plan lives on */
        }
    return CLI_OK;
}

static size_t choose_sizes(const workload_op *op, hd_dtype type, bool quick, uint64_t out[TUNE_SIZES]) {
    uint64_t all[TUNE_SIZES];
    const size_t count = workload_sizes(op, type, op->least, op->most, false, all, TUNE_SIZES),
                 step = quick && count > FEW_SIZES ? 2 : 1;
    size_t chosen = 0;
    for (size_t i = (count - 1) % step; i < count; i += step) out[chosen++] = all[i]; /* the largest is among them */
    return chosen;
}

static int measure_subjects(measure *m, bool quick, uint64_t most_ns, samples *all) {
    int code = CLI_OK;
    for (size_t i = 0; i < tune_subject_count && !code && !measure_is_ended(); i++) {
        tune_set set = { .op = workload_find(tune_subjects[i].op), .type = tune_subjects[i].type, .ways = TUNE_WAYS,
                         .timed = { [WAY_RUN] = TUNE_RUN, [WAY_WRITE] = TUNE_WRITE,
                                    [WAY_WRITE_AND_RUN] = TUNE_WRITE_AND_RUN, [WAY_READ] = TUNE_READ } };
        set.size_count = choose_sizes(set.op, set.type, quick, set.sizes);
        code = tune_set_measure(m, &set, most_ns);
        if (!code) code = keep_set(m, &set, all);
        tune_set_end(m, &set);
    }
    return code;
}

/* ---- chains: the cost of a submission ---- */

static hd_value build_chain(hd_program *p, hd_dtype type, int64_t n) {
    hd_value x = hd_input(p, "x", type, HD_SHAPE(n / ROW, ROW));
    for (int i = 0; i < CHAIN; i++) x = hd_softmax(p, x, -1);
    return x;
}
static double chain_flops(double n) { return 5 * CHAIN * n; }
static void print_chain(char *out, size_t room, unsigned long long n) {
    snprintf(out, room, "%d of rows=%llu n=%d", CHAIN, n / ROW, ROW);
}

static const workload_op chain = { "chain", "elements",   4096,        1 << 18,     1 << 18,
                                   ROW,     1u << HD_F32, build_chain, chain_flops, print_chain };

static int measure_chains(measure *m, uint64_t most_ns, samples *all) {
    tune_set set = { .op = &chain, .type = HD_F32, .size_count = CHAIN_SIZES, .sizes = { 1 << 12, 1 << 15, 1 << 18 },
                     .ways = 1, .timed = { TUNE_RUN } };
    int code = tune_set_measure(m, &set, most_ns);
    if (!code) code = keep_set(m, &set, all);
    tune_set_end(m, &set);
    return code;
}

/* ---- learning, and what came of it ---- */

/* What a value takes on its way, whatever it is for: sums of vectors, of which two are written and one is read. */
static size_t add_transfers(const sample *s, hd_sample *out) {
    const uint64_t bytes = hd_dtype_bytes(HD_F32, s->size);
    out[0] = (hd_sample){ .part = HD_SAMPLE_WRITE, .transfer_bytes = bytes, .ns = s->write_ns / 2 };
    out[1] = (hd_sample){ .part = HD_SAMPLE_READ, .transfer_bytes = bytes, .ns = s->read_ns };
    return 2;
}

static int learn(const measure *m, size_t device, const samples *all) {
    enum { MOST_OF_ONE = 5 };
    hd_sample *list = calloc(all->counts[device] * MOST_OF_ONE + 1, sizeof *list);
    size_t count = 0;
    if (!list) return cli_fail(m->command, "no memory is left");
    for (size_t i = 0; i < all->counts[device]; i++) {
        const sample *s = &all->items[device][i];
        list[count++] = (hd_sample){ .program = s->program, .ns = s->run_ns };
        if (s->read_ns == 0) continue;
        list[count++] = (hd_sample){ .program = s->program, .part = HD_SAMPLE_WRITE, .ns = s->write_ns };
        list[count++] = (hd_sample){ .program = s->program, .part = HD_SAMPLE_READ, .ns = s->read_ns };
        if (strcmp(s->op->name, "vecadd") == 0 && hd_program_port(s->program, 0).dtype == HD_F32)
            count += add_transfers(s, list + count);
    }
    const hd_calibrate_desc desc = { .kinds = HD_FACT_FIGURE, .samples = list, .sample_count = count };
    const hd_status status = hd_device_calibrate(m->devices[device].device, &desc);
    free(list);
    return status ? cli_session_fail(m->session, m->devices[device].info.id) : CLI_OK;
}

static int print_figures(const measure *m, size_t device) {
    size_t count = 0, rows = 1;
    cli_cell cells[FIGURES + 1][COLUMNS] = { { "WORK", "TYPE", "FIXED", "GFLOP/s", "GB/s", "SAMPLES", "ERROR" } };
    if (hd_device_facts(m->devices[device].device, NULL, &count)) return cli_session_fail(m->session, NULL);
    hd_fact *facts = calloc(count + 1, sizeof *facts);
    if (!facts) return cli_fail(m->command, "no memory is left");
    if (hd_device_facts(m->devices[device].device, facts, &count)) count = 0;
    for (size_t i = 0; i < count; i++) {
        const hd_device_figure *f = &facts[i].figure;
        if (facts[i].kind != HD_FACT_FIGURE || f->samples == 0 || rows > FIGURES) continue;
        snprintf(cells[rows][0], CLI_CELL, "%s", f->work);
        snprintf(cells[rows][1], CLI_CELL, "%s", f->type[0] ? f->type : "-");
        cli_time((uint64_t)f->fixed_ns, cells[rows][2]);
        if (f->flops_per_s > 0) measure_rate(f->flops_per_s / 1e9, cells[rows][3]);
        else snprintf(cells[rows][3], CLI_CELL, "-");
        if (f->bytes_per_s > 0) measure_rate(f->bytes_per_s / 1e9, cells[rows][4]);
        else snprintf(cells[rows][4], CLI_CELL, "-");
        snprintf(cells[rows][5], CLI_CELL, "%u", (unsigned)f->samples);
        snprintf(cells[rows++][6], CLI_CELL, "%.1f%%", 100 * f->error);
    }
    cli_print("%s: %s\n", measure_device_name(m, &m->devices[device]), m->devices[device].info.name);
    cli_table(cells[0], rows, COLUMNS, 0x7Cu);
    free(facts);
    return CLI_OK;
}

enum { SAMPLE_COLUMNS = 7 };

static void print_sample(const sample *s, const char *counted, uint64_t measured_ns, uint64_t predicted_ns,
                         cli_cell out[SAMPLE_COLUMNS]) {
    const size_t inputs = hd_program_port_count(s->program);
    snprintf(out[0], CLI_CELL, "%s", s->op->name);
    snprintf(out[1], CLI_CELL, "%s", hd_dtype_name(hd_program_port(s->program, inputs > 2 ? 1 : 0).dtype));
    s->op->print(out[2], CLI_CELL, s->size);
    snprintf(out[3], CLI_CELL, "%s", counted);
    cli_time(measured_ns, out[4]);
    cli_time(predicted_ns, out[5]);
    snprintf(out[6], CLI_CELL, "%+.0f%%", 100 * ((double)predicted_ns / (double)measured_ns - 1));
}

/* Predicted against measured, each sample. */
static int print_samples(const measure *m, size_t device, const samples *all) {
    static const char *const heads[SAMPLE_COLUMNS] = { "OPERATION", "TYPE",      "SIZE", "COUNTED",
                                                       "MEASURED",  "PREDICTED", "OFF" };
    cli_cell (*cells)[SAMPLE_COLUMNS] = calloc(2 * all->counts[device] + 1, sizeof *cells);
    size_t rows = 1;
    if (!cells) return cli_fail(m->command, "no memory is left");
    cli_heads(cells[0], heads, SAMPLE_COLUMNS);
    for (size_t i = 0; i < all->counts[device]; i++) {
        const sample *s = &all->items[device][i];
        uint64_t run_ns, transfers_ns;
        if (hd_device_predict(m->devices[device].device, s->program, &run_ns, &transfers_ns)) continue;
        print_sample(s, "compute", s->run_ns, run_ns, cells[rows++]);
        if (s->read_ns > 0) print_sample(s, "transfers", s->write_ns + s->read_ns, transfers_ns, cells[rows++]);
    }
    cli_print("\n");
    cli_table(cells[0], rows, SAMPLE_COLUMNS, 0x70u);
    free(cells);
    return CLI_OK;
}

static int tune(measure *m, bool quick, bool samples_too) {
    const uint64_t most_ns = quick ? QUICK_RUN_NS : LONG_RUN_NS;
    samples all = { 0 };
    int code = measure_chains(m, most_ns, &all);
    if (!code) code = measure_subjects(m, quick, most_ns, &all);
    const bool ended = measure_is_ended(); /* what was measured until then is learned from */
    for (size_t device = 0; device < m->device_count && (!code || ended); device++) {
        if (all.counts[device] == 0) continue;
        code = learn(m, device, &all);
        if (device > 0) cli_print("\n");
        if (!code) code = print_figures(m, device);
        if (!code && samples_too) code = print_samples(m, device, &all);
    }
    forget(m, &all);
    return ended && !code ? measure_end_early(m) : code;
}

/* The device that is named, and the CPU beside it, where work is compared. */
static int open_devices(const cli_args *args, measure *m) {
    const char *id = cli_get(args, "--device");
    char list[160];
    snprintf(list, sizeof list, "cpu,%s", id ? id : "");
    return measure_open_list(args, id && cli_get(args, "--kernels") ? id : id ? list : NULL, m);
}

static int run(const cli_args *args) {
    measure m;
    const bool quick = cli_get(args, "--quick") != NULL;
    int code = measure_begin(args, "tune", &m);
    if (quick && !cli_get(args, "--seconds")) m.most_ns = QUICK_RUN_NS;
    if (quick && !cli_get(args, "--samples")) m.samples = 5;
    if (!code) code = open_devices(args, &m);
    for (size_t i = 0; i < m.device_count && !code && cli_get(args, "--fresh"); i++)
        if (hd_device_calibrate(m.devices[i].device,
                                &(hd_calibrate_desc){ .kinds = HD_FACT_FIGURE | HD_FACT_CHOICE, .forget = 1 }))
            code = cli_session_fail(m.session, m.devices[i].info.id);
    const char *kernels = cli_get(args, "--kernels");
    if (!code && !hd_context_cache_dir(m.session->context)[0])
        cli_note(
            "heddle tune: nothing of this is kept: there is no folder for it; set HEDDLE_CACHE to one of your own\n");
    const bool check = cli_get(args, "--check") != NULL, list = cli_get(args, "--list") != NULL;
    const bool figures = cli_get(args, "--figures") != NULL;
    if (!code && !check && !figures) code = tune_kernels(&m, kernels, quick, list);
    if (!code && !kernels)
        code = check ? tune_check(&m, quick ? QUICK_RUN_NS : LONG_RUN_NS, list) : tune(&m, quick, list);
    return measure_end(&m, code);
}

static const cli_option options[] = {
    { "--device", "ID", "tune this device and, but for --kernels, the CPU; default: every device but null" },
    { "--quick", NULL, "fewer sizes and samples" },
    { "--fresh", NULL, "forget what was measured before" },
    { "--list", NULL,
      "every class of kernels, and each sample beside its prediction; with --check: the cases it gets wrong" },
    { "--kernels", "LIST", "only choose kernels, of these kinds: matvec,attention (docs/route.md); or all" },
    { "--figures", NULL, "only measure what work takes" },
    { "--check", NULL, "measure sizes that were left out of tuning: does the prediction name the faster device?" },
    { "--samples", "N", "samples of each case, besides the first run; default: 11, or 5" },
    { "--seconds", "S", "most time for the samples of one case, but for the first three; default: 1, or 0.05" },
};

const cli_command cli_tune = {
    "tune", "finds the fastest kernels of each device, and what work takes there, to route by it",
    "tune [--device ID] [--quick] [--check] [options]", NULL, options, CLI_COUNT(options),
    "First every right way of computing the same is measured, for kernels of several kinds, types\n"
    "and sizes: one that is faster than the usual one by more than 3 %, twice, is taken by later\n"
    "plans of that class. Then what work takes is measured, by which routes are found. All is kept\n"
    "beside the compiled kernels for this machine, the device and its driver: later figures join\n"
    "earlier ones, later choices take their place.\n",
    "  heddle tune --device vulkan --quick\n  heddle tune --device vulkan --check\n", run
};
