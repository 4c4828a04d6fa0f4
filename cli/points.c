/* points.c: every size of an operation on every device: made once, which is the first run, and then sampled in
 * rounds. */
#include "cli/points.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const measure_case *points_at(const points *p, size_t device, size_t size, unsigned way) {
    return &p->cases[(device * p->size_count + size) * p->ways + way];
}

static void points_free(points *p) {
    measure_cases_free(p->cases, p->case_count);
    for (size_t i = 0; i < p->case_count / p->ways && p->jobs; i++) workload_job_end(&p->jobs[i]);
    free(p->jobs);
    free(p->texts);
    workload_data_free(&p->data);
}

/* A device may lack a type or memory for the largest sizes: the others are measured all the same. */
static bool is_left_out(hd_status status) {
    return status == HD_STATUS_UNSUPPORTED || status == HD_STATUS_LIMIT || status == HD_STATUS_OUT_OF_DEVICE_MEMORY ||
           status == HD_STATUS_KERNEL_NOT_FOUND;
}

/* Makes one size on one device: the first run. */
static int make_job(measure *m, points *p, size_t device, size_t size) {
    const measure_device *on = &m->devices[device];
    const size_t index = device * p->size_count + size;
    workload_job *job = &p->jobs[index];
    table_row row = measure_row(m, on);
    job->program = workload_program(m->session->context, p->op, p->type, p->sizes[size], p->texts[index], &row);
    if (!job->program) return cli_session_fail(m->session, p->op->name);
    job->device = on->device;
    job->data = &p->data;
    job->in_place = on->info.kind == HD_DEVICE_CPU;
    row.submissions = 1;
    const uint64_t began = cli_now_ns();
    const hd_status status = workload_job_begin(job);
    row.first_ns = (double)(cli_now_ns() - began);
    for (unsigned way = 0; way < p->ways; way++) {
        row.counted = way == POINTS_TRANSFERS ? "transfers" : "compute";
        p->cases[index * p->ways + way] = (measure_case){
            .device = on, .row = row, .user = job,
            .sample = way == POINTS_TRANSFERS ? workload_run_with_transfers : workload_run,
            .failed = status != HD_OK || (way == POINTS_TRANSFERS && job->in_place),
        };
    }
    if (!status) return CLI_OK;
    const int code = measure_fail(m, &row);
    return is_left_out(status) ? CLI_OK : code;
}

static int measure_points(measure *m, points *p) {
    table_row row = table_row_empty();
    char text[64];
    int code = CLI_OK;
    p->case_count = m->device_count * p->size_count * p->ways;
    p->cases = calloc(p->case_count, sizeof *p->cases);
    p->jobs = calloc(p->case_count / p->ways, sizeof *p->jobs);
    p->texts = calloc(p->case_count / p->ways, sizeof *p->texts);
    if (!p->cases || !p->jobs || !p->texts) return cli_fail(m->command, "no memory is left");
    for (size_t i = 0; i < p->case_count; i++) p->cases[i] = (measure_case){ .row = table_row_empty(), .failed = true };
    double all_sizes = 0;
    hd_program *largest = NULL;
    for (size_t size = 0; size < p->size_count; size++) {
        hd_program_destroy(largest);
        largest = workload_program(m->session->context, p->op, p->type, p->sizes[size], text, &row);
        if (!largest) return cli_session_fail(m->session, p->op->name);
        all_sizes += row.bytes;
    }
    code = measure_fits(m, p->op->name, row.bytes, all_sizes);
    const bool held = code || workload_data_hold(&p->data, largest);
    hd_program_destroy(largest);
    if (code || !held)
        return code ? code : cli_fail(m->command, "no memory is left for %s; give a smaller --max", row.op);
    for (size_t size = 0; size < p->size_count; size++)
        for (size_t device = 0; device < m->device_count && !measure_is_ended(); device++) {
            cli_progress("heddle %s: preparing %s of %zu of %zu sizes", m->command->name, p->op->name, size + 1,
                         p->size_count);
            const int made = make_job(m, p, device, size);
            if (made) code = made;
        }
    const int measured = measure_run(m, p->cases, p->case_count);
    for (size_t i = 0; i < p->case_count && p->ways == 2; i += 2)
        if (p->jobs[i / 2].in_place) { /* nothing travels: the one measurement is both */
            p->cases[i + POINTS_TRANSFERS].row = p->cases[i + POINTS_COMPUTE].row;
            p->cases[i + POINTS_TRANSFERS].row.counted = "transfers";
        }
    return measured ? measured : code;
}

static bool has_samples(const points *p) {
    for (size_t i = 0; i < p->case_count && p->cases; i++)
        if (p->cases[i].count > 0) return true;
    return false;
}

int points_write(const measure *m, const points *p) {
    int code = CLI_OK;
    for (size_t i = 0; i < p->case_count && !code; i++)
        if (!isnan(p->cases[i].row.median_ns)) code = measure_write(m, &p->cases[i].row);
    return code;
}

/* ---- what is asked for ---- */

/* That there is no such operation, and what there is. */
static int unknown_op(const cli_command *command, const char *name) {
    const char *names[POINTS_OPS];
    char list[512] = "";
    for (size_t i = 0; i < workload_op_count; i++) {
        names[i] = workload_ops[i].name;
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = cli_nearest(name, names, workload_op_count);
    return near ? cli_usage(command, "no operation \"%s\"; did you mean %s?", name, near)
                : cli_usage(command, "no operation \"%s\"; there are %s", name, list);
}

static int read_ops(const cli_args *args, const char *list, points_wanted *out) {
    char name[32];
    for (size_t at = 0; cli_next_item(list, &at, name, sizeof name);) {
        const workload_op *op = workload_find(name);
        bool known = false;
        if (!op) return unknown_op(args->command, name);
        for (size_t i = 0; i < out->op_count; i++) known = known || out->ops[i] == op;
        if (!known) out->ops[out->op_count++] = op;
    }
    return out->op_count > 0 ? CLI_OK : cli_usage(args->command, "--op names none");
}

/* Each operation has to take one of the types, and each type has to be taken by one of the operations. */
static int check_types(const cli_args *args, const points_wanted *w) {
    for (size_t t = 0; t < w->type_count; t++) {
        bool taken = false;
        for (size_t i = 0; i < w->op_count; i++) taken = taken || workload_takes(w->ops[i], w->types[t]);
        if (!taken)
            return cli_usage(args->command, "%s%s does not take %s", w->ops[0]->name,
                             w->op_count > 1 ? " and the other operations" : "", hd_dtype_name(w->types[t]));
    }
    for (size_t i = 0; i < w->op_count; i++) {
        bool takes = false;
        for (size_t t = 0; t < w->type_count; t++) takes = takes || workload_takes(w->ops[i], w->types[t]);
        if (!takes) return cli_usage(args->command, "%s takes none of the types", w->ops[i]->name);
    }
    return CLI_OK;
}

static size_t choose_sizes(const points_wanted *w, const workload_op *op, hd_dtype type,
                           uint64_t out_sizes[POINTS_SIZES]) {
    const uint64_t most = w->most ? w->most : w->choice.range ? op->most : op->large;
    const uint64_t least = w->least ? w->least : !w->choice.range ? most : op->least < most ? op->least : most;
    return workload_sizes(op, type, least, most, w->choice.range, out_sizes, POINTS_SIZES);
}

static int check_sizes(const cli_args *args, const points_wanted *w) {
    uint64_t sizes[POINTS_SIZES];
    for (size_t i = 0; i < w->op_count; i++)
        for (size_t t = 0; t < w->type_count; t++)
            if (workload_takes(w->ops[i], w->types[t]) && choose_sizes(w, w->ops[i], w->types[t], sizes) == 0)
                return cli_usage(args->command, "--min and --max leave no size of %s %s: sizes are powers of two%s",
                                 w->ops[i]->name, hd_dtype_name(w->types[t]),
                                 w->choice.range ? " and the middles between them" : "");
    return CLI_OK;
}

static int read_options(const cli_args *args, points_choice choice, points_wanted *out) {
    const char *ops = cli_get(args, "--op");
    *out = (points_wanted){ .choice = choice };
    if (!cli_get_number(args, "--min", 1, UINT64_C(1) << 32, 0, &out->least) ||
        !cli_get_number(args, "--max", 1, UINT64_C(1) << 32, 0, &out->most))
        return CLI_USAGE;
    int code = read_ops(args, ops ? ops : choice.ops, out);
    if (!code) code = measure_types(args, choice.types, out->types, &out->type_count);
    if (!code) code = check_types(args, out);
    return code ? code : check_sizes(args, out);
}

int points_run(const cli_args *args, const char *name, points_choice choice,
               int (*measure_all)(measure *m, const points_wanted *wanted)) {
    points_wanted wanted;
    measure m;
    int code = read_options(args, choice, &wanted);
    if (code) return code;
    code = measure_begin(args, name, &m);
    if (!code) code = measure_open(args, &m);
    if (!code) code = measure_all(&m, &wanted);
    return measure_end(&m, code);
}

int points_each(measure *m, const points_wanted *w, int (*visit)(measure *m, points *p, void *user), void *user) {
    int code = CLI_OK;
    for (size_t i = 0; i < w->op_count; i++)
        for (size_t t = 0; t < w->type_count && !measure_is_ended(); t++) {
            points p = { .op = w->ops[i], .type = w->types[t], .ways = w->choice.transfers ? 2 : 1 };
            if (!workload_takes(p.op, p.type)) continue;
            p.size_count = choose_sizes(w, p.op, p.type, p.sizes);
            const int measured = measure_points(m, &p);
            const int visited = has_samples(&p) ? visit(m, &p, user) : CLI_OK;
            if (measured || visited) code = measured ? measured : visited;
            points_free(&p);
        }
    return !code && measure_is_ended() ? measure_end_early(m) : code;
}
