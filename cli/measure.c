/* measure.c: the runner of `heddle bench`. A sample is one call, timed by the host's monotonic clock; where it is
 * short, the same call runs before, untimed, once or for 2 ms, so that caches, clocks and waiting threads are as in a
 * row of such calls. */
#include "cli/measure.h"
#include "cli/bench_page.h"
#include "cli/text.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_SAMPLES = 3, MOST_SAMPLES = 100000 };
#define SHORT_NS UINT64_C(50000000) /* a sample below it has an untimed run before it, */
#define WARM_NS  UINT64_C(2000000)  /* or several, until so much time went by, */
#define LONG_NS  1e9                /* as has the first one of unknown length, unless its first run was longer */

/* ---- beginning ---- */

/* Each row is flushed: a run that is ended early leaves the rows so far. Frees the line. */
static int write_csv(const measure *m, text *line) {
    bool good = !line->failed;
    if (m->csv && good) good = fwrite(line->data, 1, line->length, m->csv) == line->length && fflush(m->csv) == 0;
    text_free(line);
    return good ? CLI_OK
           : cli_fail(m->command, "%s cannot be written: %s", m->csv_path ? m->csv_path : "a row", strerror(errno));
}

int measure_begin(const cli_args *args, const char *bench, measure *m) {
    *m = (measure){ .command = args->command, .bench = bench, .csv_path = cli_get(args, "--csv"),
                    .html_path = cli_get(args, "--html"), .json = cli_get(args, "--json") != NULL,
                    .threads = NAN, .seed = cli_now_ns() };
    double seconds;
    if (!cli_get_number(args, "--samples", 1, MOST_SAMPLES, 11, &m->samples) ||
        !cli_get_fraction(args, "--seconds", 0.001, 86400, 1, &seconds))
        return CLI_USAGE;
    m->most_ns = (uint64_t)(seconds * 1e9);
    if (m->html_path && !m->csv_path && !(m->csv_path = m->csv_beside = bench_path_beside(m->html_path, ".csv")))
        return cli_fail(m->command, "no memory is left");
    if (m->csv_path && !(m->csv = system_open(m->csv_path, "wb")))
        return cli_fail(m->command, "%s cannot be written: %s; check the path", m->csv_path, strerror(errno));
    machine_open(&m->machine, cli_get(args, "--machine"));
    system_interrupts_catch(true);
    text heading = { 0 };
    table_add_heading(&heading);
    return write_csv(m, &heading);
}

void measure_use(measure *m, cli_session *session) {
    char caps[8192];
    m->session = session;
    if (!session->context) return;
    /* HEDDLE_BACKEND may leave it out */
    if (hd_device_caps_text(session->context, "cpu", caps, sizeof caps, NULL)) cli_session_forget(session);
    else {
        const char *threads = strstr(caps, "\nthreads ");
        if (threads) m->threads = strtod(threads + strlen("\nthreads "), NULL);
    }
}

/* Opens the device that `id` names, unless it is open. */
static int open_device(measure *m, const char *id) {
    const hd_device_desc desc = { .id = id };
    hd_device *device;
    if (m->device_count == MEASURE_MOST_DEVICES)
        return cli_usage(m->command, "measures on at most %d devices", MEASURE_MOST_DEVICES);
    if (hd_device_open(m->session->context, &desc, &device)) return cli_session_fail(m->session, id);
    const hd_device_info *info = hd_device_get_info(device);
    for (size_t i = 0; i < m->device_count; i++)
        if (strcmp(m->devices[i].info.id, info->id) == 0) {
            hd_device_close(device);
            return CLI_OK;
        }
    const measure_device opened = { device, *info, machine_sensor_of(&m->machine, info) };
    const size_t at = info->kind == HD_DEVICE_CPU ? 0 : m->device_count;
    memmove(&m->devices[at + 1], &m->devices[at], (m->device_count - at) * sizeof opened);
    m->devices[at] = opened;
    m->device_count++;
    return CLI_OK;
}

static int open_every_device(measure *m) {
    hd_device_info infos[MEASURE_MOST_DEVICES];
    size_t count = CLI_COUNT(infos);
    const hd_status status = hd_devices(m->session->context, infos, &count);
    if (status && status != HD_STATUS_LIMIT) return cli_session_fail(m->session, NULL);
    if (status) count = CLI_COUNT(infos);
    cli_session_forget(m->session);
    const bool strict = hd_context_strict(m->session->context);
    for (size_t i = 0; i < count; i++) {
        if (infos[i].kind == HD_DEVICE_NULL || (strict && infos[i].kind == HD_DEVICE_SOFTWARE)) continue;
        const int code = open_device(m, infos[i].id);
        if (code) return code;
    }
    return m->device_count > 0 ? CLI_OK
           : cli_fail(m->command, "there is no device to measure on; run `heddle devices` to see why");
}

int measure_open(const cli_args *args, measure *m) { return measure_open_list(args, cli_get(args, "--devices"), m); }

int measure_open_list(const cli_args *args, const char *list, measure *m) {
    char id[64];
    int code = cli_session_open(args->command, &m->own);
    measure_use(m, &m->own);
    if (code || !list) return code ? code : open_every_device(m);
    for (size_t at = 0; !code && cli_next_item(list, &at, id, sizeof id);) code = open_device(m, id);
    if (code) return code;
    return m->device_count > 0 ? CLI_OK : cli_usage(m->command, "--devices names none");
}

bool measure_is_ended(void) { return system_interrupts_count() > 0; }

int measure_end_early(const measure *m) {
    return cli_fail(m->command, "ended by Ctrl-C; what was measured until then is told");
}

int measure_end(measure *m, int code) {
    const bool drawn = m->html_path && m->csv && (code == CLI_OK || measure_is_ended());
    for (size_t i = 0; i < m->device_count; i++) hd_device_close(m->devices[i].device);
    if (m->csv) fclose(m->csv); /* every row was flushed */
    if (drawn && bench_report_draw(m->command, &m->csv_path, 1, m->html_path)) code = CLI_FAILED;
    free(m->csv_beside);
    machine_close(&m->machine);
    if (m->own.context) cli_session_close(&m->own);
    m->csv = NULL;
    m->csv_beside = NULL;
    m->device_count = 0;
    return code;
}

/* ---- rows ---- */

table_row measure_row(const measure *m, const measure_device *device) {
    table_row row = table_row_empty();
    row.bench = m->bench;
    row.time = m->machine.time;
    row.heddle = hd_version();
    row.machine = m->machine.name;
    row.os = m->machine.os;
    row.cpu = m->machine.cpu;
    row.threads = m->threads;
    row.device = device->info.id;
    row.device_name = device->info.name;
    row.kind = cli_kind_name(device->info.kind);
    row.backend = device->info.backend;
    row.driver = device->info.driver;
    row.synthetic = 0;
    return row;
}

int measure_write(const measure *m, const table_row *row) {
    text line = { 0 }, csv = { 0 };
    if (m->json) table_add_json(&line, row);
    if (line.data) cli_print("%s", line.data);
    text_free(&line);
    table_add_csv(&csv, row);
    return write_csv(m, &csv);
}

static bool shares_host_memory(hd_device_kind kind) {
    return kind == HD_DEVICE_SOFTWARE || kind == HD_DEVICE_INTEGRATED_GPU || kind == HD_DEVICE_NULL;
}

int measure_fits(const measure *m, const char *what, double shared, double each) {
    const double free_bytes = machine_free_bytes();
    double needed = shared;
    cli_cell needed_text, free_text;
    for (size_t i = 0; i < m->device_count; i++)
        if (shares_host_memory(m->devices[i].info.kind)) needed += each;
    if (!(needed > free_bytes)) return CLI_OK;
    return cli_fail(m->command, "%s needs %s of memory, and %s are free; give a smaller --max or fewer --devices", what,
                    cli_bytes((uint64_t)needed, needed_text),
                    cli_bytes((uint64_t)free_bytes, free_text));
}

int measure_fail(const measure *m, const table_row *row) {
    cli_cell about;
    snprintf(about, sizeof about, "%.30s %.20s %.60s on %.60s", row->op, row->type, row->size, row->device);
    return cli_session_fail(m->session, about);
}

void measure_tell(uint64_t *samples, size_t count, uint64_t first_ns, table_row *row) {
    row->samples = (double)count;
    row->first_ns = (double)first_ns;
    if (count == 0) return;
    const statistics s = statistics_of(samples, count);
    row->median_ns = (double)s.median_ns;
    row->p90_ns = (double)s.p90_ns;
    row->min_ns = (double)s.min_ns;
    row->max_ns = (double)s.max_ns;
}

/* ---- rounds ---- */

static void add_hits(measure_case *c, const hd_device_stats *before, const hd_device_stats *after) {
    c->hits.staging_requests += after->staging_requests - before->staging_requests;
    c->hits.staging_hits += after->staging_hits - before->staging_hits;
    c->hits.plan_requests += after->plan_requests - before->plan_requests;
    c->hits.plan_hits += after->plan_hits - before->plan_hits;
    c->hits.kernel_requests += after->kernel_requests - before->kernel_requests;
    c->hits.kernel_hits += after->kernel_hits - before->kernel_hits;
}

static hd_status take_sample(measure_case *c) {
    hd_device_stats before = { 0 }, after = { 0 };
    hd_status status = HD_OK;
    const uint64_t entered = cli_now_ns();
    if (c->count == 0) c->before = machine_read(&c->device->sensor);
    if (c->count > 0 ? c->spent_ns / c->count < SHORT_NS : c->row.first_ns < LONG_NS)
        do status = c->sample(c->user);
        while (!status && !measure_is_ended() && cli_now_ns() - entered < WARM_NS);
    hd_device_get_stats(c->device->device, &before);
    const uint64_t began = cli_now_ns();
    if (!status && !measure_is_ended()) status = c->sample(c->user);
    const uint64_t ended = cli_now_ns();
    hd_device_get_stats(c->device->device, &after);
    c->after = machine_read(&c->device->sensor);
    if (status || measure_is_ended()) return status; /* one that Ctrl-C cut short is none */
    add_hits(c, &before, &after);
    c->samples[c->count++] = c->part_ns ? *c->part_ns : ended - began;
    c->spent_ns += ended - entered;
    return HD_OK;
}

/* Whether the case has had its time: three samples at least, but for one that is longer than all of it. */
static bool has_had_its_time(const measure *m, const measure_case *c) {
    return c->spent_ns > m->most_ns &&
           (c->count >= LEAST_SAMPLES || (c->count > 0 && c->samples[c->count - 1] > m->most_ns));
}

/* Other parts of the call that the last sample of a case was. */
static void take_parts(measure_case *cases, size_t count, const measure_case *of) {
    for (size_t i = 0; i < count; i++)
        if (cases[i].of == of) cases[i].samples[cases[i].count++] = *cases[i].part_ns;
}

static int run_round(measure *m, measure_case *cases, size_t count, size_t *order) {
    int code = CLI_OK;
    statistics_shuffle(order, count, &m->seed);
    for (size_t i = 0; i < count && !measure_is_ended(); i++) {
        measure_case *c = &cases[order[i]];
        if (c->failed || c->of || has_had_its_time(m, c)) continue;
        const size_t before = c->count;
        if (!take_sample(c)) {
            if (c->count > before) take_parts(cases, count, c);
            continue;
        }
        c->failed = true;
        code = measure_fail(m, &c->row);
    }
    return code;
}

static void tell_case(measure_case *c) {
    measure_tell(c->samples, c->count, (uint64_t)c->row.first_ns, &c->row);
    machine_tell(&c->before, &c->after, &c->row);
    c->row.staging_hits = (double)c->hits.staging_hits;
    c->row.staging_requests = (double)c->hits.staging_requests;
    c->row.plan_hits = (double)c->hits.plan_hits;
    c->row.plan_requests = (double)c->hits.plan_requests;
    c->row.kernel_hits = (double)c->hits.kernel_hits;
    c->row.kernel_requests = (double)c->hits.kernel_requests;
}

int measure_run(measure *m, measure_case *cases, size_t count) {
    int code = CLI_OK;
    size_t *order = calloc(count + 1, sizeof *order);
    bool memory = order != NULL;
    for (size_t i = 0; i < count && memory; i++)
        memory = (cases[i].samples = calloc(m->samples, sizeof *cases[i].samples)) != NULL;
    for (uint64_t round = 0; round < m->samples && memory && !measure_is_ended(); round++) {
        cli_progress("heddle %s: round %llu of %llu", m->command->name, (unsigned long long)round + 1,
                     (unsigned long long)m->samples);
        const int failed = run_round(m, cases, count, order);
        if (failed) code = failed;
    }
    cli_progress_end();
    for (size_t i = 0; i < count; i++)
        if (cases[i].count > 0) tell_case(&cases[i]);
    free(order);
    if (!memory) return cli_fail(m->command, "no memory is left");
    return measure_is_ended() ? measure_end_early(m) : code;
}

void measure_cases_free(measure_case *cases, size_t count) {
    for (size_t i = 0; i < count && cases; i++) free(cases[i].samples);
    free(cases);
}

/* ---- words ---- */

const char *measure_device_name(const measure *m, const measure_device *device) {
    for (size_t i = 0; i < m->device_count; i++)
        if (&m->devices[i] != device && strcmp(m->devices[i].info.backend, device->info.backend) == 0)
            return device->info.id;
    return device->info.backend;
}

int measure_types(const cli_args *args, const char *fallback, hd_dtype out_types[HD_DTYPE_COUNT], size_t *out_count) {
    const char *list = cli_get(args, "--types"), *names[HD_DTYPE_COUNT];
    char name[32];
    *out_count = 0;
    for (size_t at = 0; cli_next_item(list ? list : fallback, &at, name, sizeof name);) {
        const hd_dtype type = hd_dtype_parse(name);
        bool known = false;
        if (type == HD_DTYPE_NONE) {
            for (int i = 1; i < HD_DTYPE_COUNT; i++) names[i] = hd_dtype_name((hd_dtype)i);
            const char *near = cli_nearest(name, names + 1, HD_DTYPE_COUNT - 1);
            if (near) return cli_usage(args->command, "no type \"%s\"; did you mean %s?", name, near);
            return cli_usage(args->command, "no type \"%s\"; docs/ops.md lists them", name);
        }
        for (size_t i = 0; i < *out_count; i++) known = known || out_types[i] == type;
        if (!known) out_types[(*out_count)++] = type;
    }
    return *out_count > 0 ? CLI_OK : cli_usage(args->command, "--types names none");
}

char *measure_count(double count, cli_cell out) {
    char digits[32];
    const int length = snprintf(digits, sizeof digits, "%.0f", count);
    int at = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = 0;
    return out;
}

char *measure_rate(double rate, cli_cell out) {
    if (!(rate >= 0 && rate < 1e15)) snprintf(out, CLI_CELL, "-");
    else if (rate >= 100) measure_count(rate, out);
    else snprintf(out, CLI_CELL, rate >= 10 ? "%.1f" : rate >= 0.995 ? "%.2f" : "%.3f", rate);
    return out;
}
