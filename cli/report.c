/* report.c: what a job came to, as text or JSON: the device, what was compiled, handed over and moved, times, outputs.
 * The first run stands apart: it is the one that pays for compiling and recording. */
#include "cli/cli.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_VALUES = 8 };

/* ---- values ---- */

static double half_to_double(uint16_t bits) {
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double value = exponent == 0 ? ldexp(mantissa, -24) : exponent < 31 ? ldexp(mantissa + 1024, exponent - 25)
                   : mantissa ? (double)NAN : (double)INFINITY;
    return bits >> 15 ? -value : value;
}

/* Element `index` of an output, as a number. */
static double value_at(const cli_port *port, size_t index) {
    const unsigned char *data = port->array.data;
    uint16_t half;
    uint32_t word;
    int32_t whole;
    int64_t long_whole;
    float single;
    switch (port->port.dtype) {
    case HD_F32: memcpy(&single, data + index * 4, 4); return (double)single;
    case HD_I32: memcpy(&whole, data + index * 4, 4); return whole;
    case HD_U32: memcpy(&word, data + index * 4, 4); return word;
    case HD_I64: memcpy(&long_whole, data + index * 8, 8); return (double)long_whole;
    case HD_I8: return (int8_t)data[index];
    case HD_F16: memcpy(&half, data + index * 2, 2); return half_to_double(half);
    case HD_BF16:
        memcpy(&half, data + index * 2, 2);
        word = (uint32_t)half << 16;
        memcpy(&single, &word, 4);
        return (double)single;
    default: return data[index];
    }
}

static size_t shown_values(const cli_port *port) {
    uint64_t count = port->array.bytes / port->array.item_bytes;
    return count < SHOWN_VALUES ? (size_t)count : SHOWN_VALUES;
}

static bool is_result(const cli_port *port) { return port->port.kind == HD_PORT_OUTPUT || port->save_path; }

/* ---- measurements ---- */

typedef struct figures {
    hd_device_stats all;
    hd_plan_stats   plan;
    hd_plan_memory  memory;
    uint64_t        last_ns;
    uint64_t        median_ns, least_ns, most_ns; /* of the later runs */
} figures;

static int by_size(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int measure(cli_job *job, figures *out) {
    cli_session *session = job->session;
    *out = (figures){ 0 };
    if (cli_session_stats(session, &out->all) || hd_plan_get_stats(job->plan, &out->plan) ||
        hd_plan_get_memory(job->plan, &out->memory))
        return cli_session_fail(session, NULL);
    size_t later = (size_t)job->repeat - 1;
    out->last_ns = job->run_ns[later];
    if (later == 0) return CLI_OK;
    uint64_t *sorted = job->run_ns + 1; /* their order has no further use */
    qsort(sorted, later, sizeof *sorted, by_size);
    out->median_ns = later % 2 ? sorted[later / 2] : (sorted[later / 2 - 1] + sorted[later / 2]) / 2;
    out->least_ns = sorted[0];
    out->most_ns = sorted[later - 1];
    return CLI_OK;
}

/* ---- text ---- */

static const char *s_of(uint64_t count) { return count == 1 ? "" : "s"; }

/* "cpu, opencl" */
static const char *names_beside(const cli_session *session, cli_cell out) {
    size_t at = 0;
    out[0] = 0;
    for (size_t i = 0; i < CLI_MOST_BESIDE && session->beside[i] && at < CLI_CELL; i++)
        at += (size_t)snprintf(out + at, CLI_CELL - at, "%s%s", i ? ", " : "",
                               hd_device_get_info(session->beside[i])->id);
    return out;
}

static void print_figures(const cli_job *job, const figures *f) {
    cli_cell cells[24], a, b, c;
    const hd_device_info *device = hd_device_get_info(job->session->device);
    const hd_device_stats *all = &f->all;
    size_t row = 0;
#define ROW(label, ...)                                                                                                \
    (snprintf(cells[2 * row], CLI_CELL, "%s", label), snprintf(cells[2 * row + 1], CLI_CELL, __VA_ARGS__), row++)
    ROW("device", "%s: %s (%s)", device->id, device->name, cli_kind_name(device->kind));
    if (job->session->beside[0]) {
        ROW("beside", "%s", names_beside(job->session, a));
        ROW("segments", "%u; %s cross between the devices in a run", f->plan.segments,
            cli_bytes(f->plan.crossing_bytes, a));
    }
    if (f->plan.borrowed)
        ROW("borrowed", "%u operation%s computed by the CPU, since %s has no kernel for %s: see `heddle explain`",
            f->plan.borrowed, s_of(f->plan.borrowed), device->id, f->plan.borrowed == 1 ? "it" : "them");
    if (f->plan.predicted_ns > 0) {
        snprintf(b, CLI_CELL, "%s",
                 f->plan.predicted_alone_ns ? cli_time(f->plan.predicted_alone_ns, a) : "not possible");
        ROW("route", "predicted %.24s with inputs and outputs moved; all on the better device %.24s",
            cli_time(f->plan.predicted_ns, a), b);
    }
    ROW("plan", "%u dispatch%s, %u kernel%s, %u barrier%s; made in %s", f->plan.dispatches,
        f->plan.dispatches == 1 ? "" : "es", f->plan.kernels,
        s_of(f->plan.kernels), f->plan.barriers, s_of(f->plan.barriers), cli_time(job->plan_ns, a));
    ROW("memory", "%s, of it scratch %s (%s if not shared)", cli_bytes(f->memory.total_bytes, a),
        cli_bytes(f->memory.scratch_bytes, b), cli_bytes(f->memory.unshared_bytes, c));
    ROW("compiled", "%llu kernel%s, and %llu from the cache", (unsigned long long)all->kernels_compiled,
        s_of(all->kernels_compiled), (unsigned long long)all->kernels_from_cache);
    ROW("submissions", "%llu, and %llu that only move data", (unsigned long long)all->submissions,
        (unsigned long long)all->transfer_submissions);
    ROW("moved", "up %s in %llu, down %s in %llu", cli_bytes(all->upload_bytes, a), (unsigned long long)all->uploads,
        cli_bytes(all->download_bytes, b),
        (unsigned long long)all->downloads);
    ROW("first run", "%s", cli_time(job->run_ns[0], a));
    if (job->repeat > 1)
        ROW("later runs", "median %s, min %s, max %s of %llu; %llu commands recorded, %llu kernels compiled",
            cli_time(f->median_ns, a), cli_time(f->least_ns, b),
            cli_time(f->most_ns, c), (unsigned long long)job->repeat - 1,
            (unsigned long long)(all->commands_recorded - job->first.commands_recorded),
            (unsigned long long)(all->kernels_compiled - job->first.kernels_compiled));
#undef ROW
    cli_table(cells, row, 2, 0);
}

static int print_outputs(const cli_job *job) {
    cli_cell *cells = calloc((job->port_count + 1) * 3, sizeof *cells);
    size_t rows = 1;
    if (!cells) return cli_fail(job->session->command, "no memory is left");
    cli_heads(cells, (const char *const[]){ "OUTPUT", "TYPE", "VALUES" }, 3);
    for (size_t i = 0; i < job->port_count; i++) {
        const cli_port *port = &job->ports[i];
        if (!is_result(port)) continue;
        cli_cell *row = &cells[3 * rows++];
        snprintf(row[0], CLI_CELL, "%s", port->port.name);
        cli_tensor(port->port.dtype, port->port.shape, row[1]);
        size_t at = 0, shown = shown_values(port);
        for (size_t k = 0; k < shown && at < CLI_CELL; k++)
            at += (size_t)snprintf(row[2] + at, CLI_CELL - at, "%s%.7g", k ? " " : "", value_at(port, k));
        if (at < CLI_CELL && shown < port->array.bytes / port->array.item_bytes)
            at += (size_t)snprintf(row[2] + at, CLI_CELL - at, " ...");
        if (at < CLI_CELL && port->save_path) snprintf(row[2] + at, CLI_CELL - at, "  -> %s", port->save_path);
    }
    cli_print("\n");
    cli_table(cells, rows, 3, 0);
    free(cells);
    return CLI_OK;
}

static int print_timings(const cli_job *job, const figures *f, const hd_timing *timings, size_t count) {
    static const char *const heads[] = { "DISPATCH", "KERNEL", "TIME", "GB/s", "GFLOP/s", "FLOP/B" };
    enum { COLUMNS = CLI_COUNT(heads) };
    cli_cell *cells = calloc((count + 1) * COLUMNS, sizeof *cells), whole, over, waited;
    if (!cells) return cli_fail(job->session->command, "no memory is left");
    cli_heads(cells, heads, COLUMNS);
    for (size_t i = 0; i < count; i++) {
        cli_cell *row = &cells[COLUMNS * (i + 1)];
        double ns = timings[i].ns ? (double)timings[i].ns : 1;
        snprintf(row[0], CLI_CELL, "%s", timings[i].label);
        snprintf(row[1], CLI_CELL, "%s", timings[i].kernel);
        cli_time(timings[i].ns, row[2]);
        snprintf(row[3], CLI_CELL, "%.1f", (double)timings[i].bytes / ns);
        snprintf(row[4], CLI_CELL, "%.1f", (double)timings[i].flops / ns);
        if (timings[i].bytes) snprintf(row[5], CLI_CELL, "%.2f", (double)timings[i].flops / (double)timings[i].bytes);
    }
    cli_print("\n");
    cli_table(cells, count + 1, COLUMNS, 1u << 2 | 1u << 3 | 1u << 4 | 1u << 5);
    free(cells);
    const uint64_t handed = f->plan.last_submit_ns < f->last_ns ? f->plan.last_submit_ns : f->last_ns;
    cli_print("last run %s: handed over in %s, waited for %s\n", cli_time(f->last_ns, whole), cli_time(handed, over),
              cli_time(f->last_ns - handed, waited));
    return CLI_OK;
}

/* ---- JSON ---- */

static json_t *whole(uint64_t value) { return json_integer((json_int_t)value); }
static json_t *milliseconds(uint64_t ns) { return json_real((double)ns / 1e6); }

static json_t *json_output(const cli_port *port, bool *ok) {
    json_t *object = json_object(), *shape = json_array(), *values = json_array();
    for (uint32_t axis = 0; axis < port->port.shape.rank; axis++)
        if (json_array_append_new(shape, json_integer(port->port.shape.dims[axis])) != 0) *ok = false;
    for (size_t k = 0; k < shown_values(port); k++) {
        double value = value_at(port, k); /* JSON has no infinity and no NaN */
        if (json_array_append_new(values, isfinite(value) ? json_real(value) : json_null()) != 0) *ok = false;
    }
    cli_put(object, "name", cli_json_text(port->port.name), ok);
    cli_put(object, "dtype", cli_json_text(hd_dtype_name(port->port.dtype)), ok);
    cli_put(object, "shape", shape, ok);
    cli_put(object, "file", port->save_path ? cli_json_text(port->save_path) : json_null(), ok);
    cli_put(object, "first_values", values, ok);
    return object;
}

static json_t *json_times(const cli_job *job, const figures *f, bool *ok) {
    json_t *times = json_object();
    cli_put(times, "plan", milliseconds(job->plan_ns), ok);
    cli_put(times, "first_run", milliseconds(job->run_ns[0]), ok);
    cli_put(times, "later_runs", whole(job->repeat - 1), ok);
    if (job->repeat == 1) return times;
    cli_put(times, "median", milliseconds(f->median_ns), ok);
    cli_put(times, "min", milliseconds(f->least_ns), ok);
    cli_put(times, "max", milliseconds(f->most_ns), ok);
    return times;
}

static json_t *json_counters(const cli_job *job, const figures *f, bool *ok) {
    json_t *counters = json_object();
    const hd_device_stats *all = &f->all, *first = &job->first;
    const struct { const char *name; uint64_t value; } rows[] = {
        { "dispatches", f->plan.dispatches }, { "kernels", f->plan.kernels }, { "barriers", f->plan.barriers },
        { "kernels_compiled", all->kernels_compiled }, { "kernels_from_cache", all->kernels_from_cache },
        { "submissions", all->submissions }, { "transfer_submissions", all->transfer_submissions },
        { "uploads", all->uploads }, { "upload_bytes", all->upload_bytes }, { "downloads", all->downloads },
        { "download_bytes", all->download_bytes },
        { "memory_bytes", f->memory.total_bytes }, { "scratch_bytes", f->memory.scratch_bytes },
        { "unshared_bytes", f->memory.unshared_bytes },
        { "commands_recorded", all->commands_recorded },
        { "commands_recorded_later", all->commands_recorded - first->commands_recorded },
        { "segments", f->plan.segments }, { "crossing_bytes", f->plan.crossing_bytes },
        { "borrowed", f->plan.borrowed },
        { "predicted_ns", f->plan.predicted_ns }, { "predicted_alone_ns", f->plan.predicted_alone_ns },
        { "kernels_compiled_later", all->kernels_compiled - first->kernels_compiled },
    };
    for (size_t i = 0; i < CLI_COUNT(rows); i++) cli_put(counters, rows[i].name, whole(rows[i].value), ok);
    return counters;
}

static int report_json(cli_job *job, const figures *f, const hd_timing *timings, size_t timing_count) {
    cli_cell beside;
    bool ok = true;
    json_t *root = json_object(), *device = json_object(), *outputs = json_array(), *list = json_array();
    const hd_device_info *info = hd_device_get_info(job->session->device);
    cli_put(device, "id", cli_json_text(info->id), &ok);
    cli_put(device, "name", cli_json_text(info->name), &ok);
    cli_put(device, "kind", cli_json_text(cli_kind_name(info->kind)), &ok);
    cli_put(device, "selection", cli_json_text(hd_device_selection(job->session->device)), &ok);
    for (size_t i = 0; i < job->port_count; i++)
        if (is_result(&job->ports[i]) && json_array_append_new(outputs, json_output(&job->ports[i], &ok)) != 0)
            ok = false;
    for (size_t i = 0; i < timing_count; i++) {
        json_t *row = json_object();
        cli_put(row, "label", cli_json_text(timings[i].label), &ok);
        cli_put(row, "kernel", cli_json_text(timings[i].kernel), &ok);
        cli_put(row, "ns", whole(timings[i].ns), &ok);
        cli_put(row, "bytes", whole(timings[i].bytes), &ok);
        cli_put(row, "flops", whole(timings[i].flops), &ok);
        if (json_array_append_new(list, row) != 0) ok = false;
    }
    cli_put(root, "heddle", cli_json_text(hd_version()), &ok);
    cli_put(root, "device", device, &ok);
    cli_put(root, "beside", job->session->beside[0] ? cli_json_text(names_beside(job->session, beside)) : json_null(),
            &ok);
    cli_put(root, "counters", json_counters(job, f, &ok), &ok);
    cli_put(root, "times_ms", json_times(job, f, &ok), &ok);
    cli_put(root, "outputs", outputs, &ok);
    if (job->timings) cli_put(root, "timings", list, &ok);
    else json_decref(list);
    if (job->held) cli_put(root, "held", cli_held_json(job->session, &ok), &ok);
    return cli_print_json(job->session->command, root, ok);
}

int cli_job_report(cli_job *job) {
    figures f;
    size_t timing_count = 0;
    int code = measure(job, &f);
    if (code) return code;
    hd_timing *timings = job->timings ? cli_job_timings(job, "--timings", &timing_count, &code) : NULL;
    if (!code && job->json) code = report_json(job, &f, timings, timing_count);
    else if (!code) {
        print_figures(job, &f);
        if (job->timings) code = print_timings(job, &f, timings, timing_count);
        if (!code && job->held) code = cli_held_print(job->session);
        if (!code) code = print_outputs(job);
    }
    free(timings);
    return code;
}
