/* tune_check.c: `heddle tune --check`: sizes in the middle between those that were tuned with, on the CPU and on each
 * other device, with the data there and with transfers. Right is a prediction that names the device which is measured
 * to be faster; the regret is what the named device takes longer than the faster one. Where the middle halves of the
 * samples on the two devices overlap, measuring again could name the other one: such cases are even, and there is no
 * right answer to them. */
#include "cli/tune.h"
#include <math.h>
#include <stdlib.h>

enum { COLUMNS = 7, MISS_COLUMNS = 8 };

typedef struct score {
    /* the cases that can be told, those of them that are predicted right, and the even ones */
    size_t cases, right, even;
    double chosen_ns, best_ns, worst; /* sums; the largest regret of one case */
} score;

/* Cases that were predicted wrong, as a table. */
typedef struct misses {
    cli_cell (*cells)[MISS_COLUMNS];
    size_t     count;
    bool       wanted;
} misses;

/* The samples are sorted. */
static bool is_even(const measure_case *a, const measure_case *b) {
    const uint64_t from_a = a->samples[(a->count - 1) / 4], from_b = b->samples[(b->count - 1) / 4];
    const uint64_t to_a = a->samples[(3 * (a->count - 1) + 3) / 4], to_b = b->samples[(3 * (b->count - 1) + 3) / 4];
    return (from_a > from_b ? from_a : from_b) <= (to_a < to_b ? to_a : to_b);
}

/* Adds the case; false: it was predicted wrong. */
static bool add(score *all, const measure_case *const cases[2], const double predicted[2]) {
    const double measured[2] = { cases[0]->row.median_ns, cases[1]->row.median_ns };
    const size_t chosen = predicted[1] < predicted[0], best = measured[1] < measured[0];
    const bool even = is_even(cases[0], cases[1]);
    all->cases += !even;
    all->even += even;
    all->right += !even && chosen == best;
    all->chosen_ns += measured[chosen];
    all->best_ns += measured[best];
    all->worst = fmax(all->worst, measured[chosen] / measured[best] - 1);
    return even || chosen == best;
}

static void join(score *all, const score *one) {
    all->cases += one->cases;
    all->right += one->right;
    all->even += one->even;
    all->chosen_ns += one->chosen_ns;
    all->best_ns += one->best_ns;
    all->worst = fmax(all->worst, one->worst);
}

static const char *const ways[2] = { "compute", "transfers" };

static bool keep_miss(misses *list, const tune_set *set, size_t size, size_t way, const measure_case *const cases[2],
                      const double predicted[2]) {
    static const char *const heads[MISS_COLUMNS] = { "WRONG", "TYPE", "SIZE", "COUNTED", "CPU", "DEVICE",
                                                     "CPU PREDICTED", "DEVICE PREDICTED" };
    cli_cell (*more)[MISS_COLUMNS] = realloc(list->cells, (list->count + 2) * sizeof *more);
    if (!more) return false;
    list->cells = more;
    if (list->count == 0) cli_heads(more[0], heads, MISS_COLUMNS);
    cli_cell *line = more[++list->count];
    char text[64];
    set->op->print(text, sizeof text, set->sizes[size]);
    snprintf(line[0], CLI_CELL, "%s", set->op->name);
    snprintf(line[1], CLI_CELL, "%s", hd_dtype_name(set->type));
    snprintf(line[2], CLI_CELL, "%s", text);
    snprintf(line[3], CLI_CELL, "%s", ways[way]);
    for (size_t i = 0; i < 2; i++) {
        cli_time((uint64_t)cases[i]->row.median_ns, line[4 + i]);
        cli_time((uint64_t)predicted[i], line[6 + i]);
    }
    return true;
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

static int score_set(const measure *m, const tune_set *set, size_t device, size_t way, score *out, misses *list) {
    for (size_t size = 0; size < set->size_count; size++) {
        const measure_case *const cases[] = { tune_set_case(set, 0, size, way), tune_set_case(set, device, size, way) };
        if (cases[0]->count == 0 || cases[1]->count == 0) continue;
        double predicted[2];
        if (predict(set, 0, size, way, &predicted[0]) || predict(set, device, size, way, &predicted[1]))
            return cli_session_fail(m->session, NULL);
        if (!add(out, cases, predicted) && list->wanted && !keep_miss(list, set, size, way, cases, predicted))
            return cli_fail(m->command, "no memory is left");
    }
    return CLI_OK;
}

static void print_score(const char *name, const char *type, const char *counted, const score *s,
                        cli_cell out[COLUMNS]) {
    snprintf(out[0], CLI_CELL, "%s", name);
    snprintf(out[1], CLI_CELL, "%s", type);
    snprintf(out[2], CLI_CELL, "%s", counted);
    snprintf(out[3], CLI_CELL, "%zu of %zu", s->right, s->cases);
    snprintf(out[4], CLI_CELL, "%zu", s->even);
    snprintf(out[5], CLI_CELL, "%.1f%%", s->best_ns > 0 ? 100 * (s->chosen_ns / s->best_ns - 1) : 0);
    snprintf(out[6], CLI_CELL, "%.0f%%", 100 * s->worst);
}

static void print_device(const measure *m, size_t device, cli_cell (*cells)[COLUMNS], size_t lines, const score *all,
                         const misses *list) {
    static const char *const heads[COLUMNS] = { "OPERATION", "TYPE", "COUNTED", "RIGHT", "EVEN", "REGRET", "WORST" };
    cli_heads(cells[0], heads, COLUMNS);
    print_score("all", "-", "-", all, cells[lines - 1]);
    cli_print("%scpu or %s\n", device > 1 ? "\n" : "", measure_device_name(m, &m->devices[device]));
    cli_table(cells[0], lines, COLUMNS, 0x78u);
    if (list->count > 0) {
        cli_print("\n");
        cli_table(list->cells[0], list->count + 1, MISS_COLUMNS, 0xF0u);
        cli_print("\n");
    }
    cli_print("right: %.1f%% of %zu cases that can be told; %zu cases are even\n",
           all->cases ? 100.0 * (double)all->right / (double)all->cases : 0, all->cases, all->even);
}

int tune_check(measure *m, uint64_t most_ns, bool list) {
    const size_t lines = 2 * tune_subject_count + 2;
    score all[MEASURE_MOST_DEVICES] = { { 0 } };
    misses missed[MEASURE_MOST_DEVICES] = { { 0 } };
    int code = CLI_OK;
    if (m->device_count < 2 || m->devices[0].info.kind != HD_DEVICE_CPU)
        return cli_fail(m->command, "a check needs the CPU and another device");
    cli_cell (*cells)[COLUMNS] = calloc(m->device_count * lines, sizeof *cells);
    if (!cells) return cli_fail(m->command, "no memory is left");
    for (size_t i = 0; i < tune_subject_count && !code && !measure_is_ended(); i++) {
        tune_set set = { .op = workload_find(tune_subjects[i].op), .type = tune_subjects[i].type, .ways = 2,
                         .timed = { TUNE_RUN, TUNE_ROUND } };
        set.size_count = choose_sizes(set.op, set.type, set.sizes);
        if (set.size_count > 0) code = tune_set_measure(m, &set, most_ns);
        for (size_t device = 1; device < m->device_count && !code && set.size_count > 0; device++)
            for (size_t way = 0; way < 2 && !code; way++) {
                score one = { 0 };
                missed[device].wanted = list;
                code = score_set(m, &set, device, way, &one, &missed[device]);
                print_score(set.op->name, hd_dtype_name(set.type), ways[way], &one,
                            cells[device * lines + 1 + 2 * i + way]);
                join(&all[device], &one);
            }
        tune_set_end(m, &set);
    }
    for (size_t device = 1; device < m->device_count; device++) {
        if (!code) print_device(m, device, cells + device * lines, lines, &all[device], &missed[device]);
        free(missed[device].cells);
    }
    free(cells);
    return !code && measure_is_ended() ? measure_end_early(m) : code;
}
