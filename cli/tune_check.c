/* tune_check.c: `heddle tune --check`: sizes in the middle between those that were tuned with, on the CPU and on each other
 * device, with the data there and with transfers. Right is a prediction that names the device which is measured to be
 * faster; the regret is what the named device takes longer than the faster one. */
#include "cli/tune.h"
#include <math.h>
#include <stdlib.h>

enum { COLUMNS = 6 };

typedef struct score {
    size_t cases, right;
    double chosen_ns, best_ns, worst; /* sums; the largest regret of one case */
} score;

static void add(score *all, const double measured[2], const double predicted[2]) {
    const size_t chosen = predicted[1] < predicted[0], best = measured[1] < measured[0];
    all->cases++;
    all->right += chosen == best;
    all->chosen_ns += measured[chosen];
    all->best_ns += measured[best];
    all->worst = fmax(all->worst, measured[chosen] / measured[best] - 1);
}

static void join(score *all, const score *one) {
    all->cases += one->cases;
    all->right += one->right;
    all->chosen_ns += one->chosen_ns;
    all->best_ns += one->best_ns;
    all->worst = fmax(all->worst, one->worst);
}

/* Middles between the powers of two. */
static size_t choose_sizes(const workload_op *op, hd_dtype type, uint64_t out[TUNE_SIZES]) {
    uint64_t all[2 * TUNE_SIZES];
    size_t chosen = 0;
    const size_t count = workload_sizes(op, type, op->least, op->most, true, all, 2 * TUNE_SIZES);
    for (size_t i = 0; i < count; i++)
        if ((all[i] & (all[i] - 1)) != 0 && chosen < TUNE_SIZES) out[chosen++] = all[i];
    return chosen;
}

static hd_status predict(const tune_set *set, size_t device, size_t size, size_t way, double *out_ns) {
    uint64_t run_ns, transfers_ns;
    const workload_job *job = tune_set_job(set, device, size);
    const hd_status status = hd_device_predict(job->device, job->program, &run_ns, &transfers_ns);
    if (!status) *out_ns = (double)run_ns + (way ? (double)transfers_ns : 0);
    return status;
}

static int score_set(const measure *m, const tune_set *set, size_t device, size_t way, score *out) {
    for (size_t size = 0; size < set->size_count; size++) {
        const measure_case *cases[] = { tune_set_case(set, 0, size, way), tune_set_case(set, device, size, way) };
        if (cases[0]->count == 0 || cases[1]->count == 0) continue;
        double predicted[2];
        if (predict(set, 0, size, way, &predicted[0]) || predict(set, device, size, way, &predicted[1])) return cli_session_fail(m->session, NULL);
        add(out, (const double[2]){ cases[0]->row.median_ns, cases[1]->row.median_ns }, predicted);
    }
    return CLI_OK;
}

static void print_score(const char *name, const char *type, const char *counted, const score *s, cli_cell out[COLUMNS]) {
    snprintf(out[0], CLI_CELL, "%s", name);
    snprintf(out[1], CLI_CELL, "%s", type);
    snprintf(out[2], CLI_CELL, "%s", counted);
    snprintf(out[3], CLI_CELL, "%zu of %zu", s->right, s->cases);
    snprintf(out[4], CLI_CELL, "%.1f%%", s->best_ns > 0 ? 100 * (s->chosen_ns / s->best_ns - 1) : 0);
    snprintf(out[5], CLI_CELL, "%.0f%%", 100 * s->worst);
}

int tune_check(measure *m, uint64_t most_ns) {
    static const char *const heads[COLUMNS] = { "OPERATION", "TYPE", "COUNTED", "RIGHT", "REGRET", "WORST" }, *const counted[2] = { "compute", "transfers" };
    const size_t lines = 2 * tune_subject_count + 2;
    score all[MEASURE_MOST_DEVICES] = { { 0 } };
    int code = CLI_OK;
    if (m->device_count < 2 || m->devices[0].info.kind != HD_DEVICE_CPU) return cli_fail(m->command, "a check needs the CPU and another device");
    cli_cell (*cells)[COLUMNS] = calloc(m->device_count * lines, sizeof *cells);
    if (!cells) return cli_fail(m->command, "no memory is left");
    for (size_t i = 0; i < tune_subject_count && !code && !measure_is_ended(); i++) {
        tune_set set = { .op = workload_find(tune_subjects[i].op), .type = tune_subjects[i].type, .ways = 2, .samples = { workload_run, workload_run_with_transfers } };
        set.size_count = choose_sizes(set.op, set.type, set.sizes);
        if (set.size_count > 0) code = tune_set_measure(m, &set, most_ns);
        for (size_t device = 1; device < m->device_count && !code && set.size_count > 0; device++)
            for (size_t way = 0; way < 2 && !code; way++) {
                score one = { 0 };
                code = score_set(m, &set, device, way, &one);
                print_score(set.op->name, hd_dtype_name(set.type), counted[way], &one, cells[device * lines + 1 + 2 * i + way]);
                join(&all[device], &one);
            }
        tune_set_end(m, &set);
    }
    for (size_t device = 1; device < m->device_count && !code; device++) {
        cli_cell (*mine)[COLUMNS] = cells + device * lines;
        for (size_t i = 0; i < COLUMNS; i++) snprintf(mine[0][i], CLI_CELL, "%s", heads[i]);
        print_score("all", "-", "-", &all[device], mine[lines - 1]);
        printf("%scpu or %s\n", device > 1 ? "\n" : "", measure_device_name(m, &m->devices[device]));
        cli_table(mine[0], lines, COLUMNS, 0x38u);
        printf("right: %.1f%% of %zu cases\n", all[device].cases ? 100.0 * (double)all[device].right / (double)all[device].cases : 0, all[device].cases);
    }
    free(cells);
    return !code && measure_is_ended() ? measure_end_early(m) : code;
}
