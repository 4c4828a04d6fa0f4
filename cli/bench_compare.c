/* bench_compare.c: `heddle bench compare`: two runs of the same cases, and which became slower by more than the noise.
 * A row's noise is its own spread, (P90 - min) / median. A case changed when its median changed by more than the noise
 * of both rows and more than the limit. Rows that are synthetic or doubtful are no evidence and count for nothing. */
#include "cli/bench_set.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum change { SAME, FASTER, SLOWER, DOUBTFUL, SYNTHETIC, CHANGES } change;
static const char *const change_names[CHANGES] = { "same", "faster", "SLOWER", "doubtful", "synthetic" };

typedef struct side {
    bench_set set;
    const bench_row **rows; /* in the order of by_case */
} side;

typedef struct comparison {
    const cli_command *command;
    double   limit;
    cli_cell *cells;         /* rows of COLUMNS, the heading first */
    size_t   row_count;
    size_t   changes[CHANGES], only_old, only_new;
} comparison;

enum { COLUMNS = 10 };

/* ---- cases ---- */

static int by_text(const char *a, const char *b, int before) { return before ? before : strcmp(a, b); }
static int by_number(double a, double b, int before) {
    return before ? before : isnan(a) || isnan(b) ? isnan(b) - isnan(a) : (a > b) - (a < b);
}

static int by_case(const bench_row *x, const bench_row *y) {
    const table_row *a = x->cells, *b = y->cells;
    int order = by_text(a->machine, b->machine, by_text(a->bench, b->bench, 0));
    order = by_text(a->counted, b->counted, by_text(a->type, b->type, by_text(a->op, b->op, order)));
    order = by_text(a->size, b->size, by_number(a->elements, b->elements, order));
    order = by_text(a->device, b->device, by_number(a->submissions, b->submissions, order));
    return order ? order : (int)x->synthetic - (int)y->synthetic;
}

static int by_case_pointers(const void *a, const void *b) {
    return by_case(*(const bench_row *const *)a, *(const bench_row *const *)b);
}

static int open_side(const cli_command *command, const char *const *path, side *out) {
    int code = bench_set_read(command, path, 1, &out->set);
    if (code) return code;
    out->rows = calloc(out->set.count + 1, sizeof *out->rows);
    if (!out->rows) return cli_fail(command, "no memory is left");
    for (size_t i = 0; i < out->set.count; i++) out->rows[i] = &out->set.rows[i];
    qsort(out->rows, out->set.count, sizeof *out->rows, by_case_pointers);
    return CLI_OK;
}

static void close_side(side *s) {
    free(s->rows);
    bench_set_free(&s->set);
}

/* ---- the rule ---- */

/* 0 where the file does not say. */
static double noise_of(const bench_row *row) {
    const double spread = (row->cells->p90_ns - row->cells->min_ns) / row->cells->median_ns;
    return isnan(spread) ? 0 : spread;
}

static double noise_of_both(const bench_row *old, const bench_row *new) { return fmax(noise_of(old), noise_of(new)); }

static change judge(const bench_row *old, const bench_row *new, double limit) {
    const double before = old->cells->median_ns, after = new->cells->median_ns,
                 least = fmax(limit, noise_of_both(old, new));
    if (old->synthetic) return SYNTHETIC;
    const change found = after / before - 1 > least ? SLOWER : before / after - 1 > least ? FASTER : SAME;
    return found != SAME && (old->doubtful || new->doubtful) ? DOUBTFUL : found;
}

/* ---- what is printed ---- */

static void add_row(comparison *c, const bench_row *old, const bench_row *new, change found) {
    const table_row *cells = new->cells;
    cli_cell *row = &c->cells[COLUMNS * c->row_count++];
    snprintf(row[0], CLI_CELL, "%s", cells->device);
    snprintf(row[1], CLI_CELL, "%s", cells->op);
    snprintf(row[2], CLI_CELL, "%s", cells->type);
    snprintf(row[3], CLI_CELL, "%s", cells->size);
    snprintf(row[4], CLI_CELL, "%s", cells->counted);
    cli_time((uint64_t)fmin(old->cells->median_ns, 1e18), row[5]);
    cli_time((uint64_t)fmin(cells->median_ns, 1e18), row[6]);
    snprintf(row[7], CLI_CELL, "%+.1f%%", 100 * (cells->median_ns / old->cells->median_ns - 1));
    snprintf(row[8], CLI_CELL, "%.1f%%", 100 * noise_of_both(old, new));
    snprintf(row[9], CLI_CELL, "%s", change_names[found]);
}

/* Both sides are in the same order: what stands in one only is behind what the other shows next. */
static void walk(comparison *c, const side *old, const side *new, bool all) {
    size_t i = 0, k = 0;
    while (i < old->set.count || k < new->set.count) {
        const int order = i == old->set.count ? 1 : k == new->set.count ? -1 : by_case(old->rows[i], new->rows[k]);
        if (order < 0) c->only_old++, i++;
        else if (order > 0) c->only_new++, k++;
        else {
            const change found = judge(old->rows[i], new->rows[k], c->limit);
            c->changes[found]++;
            if (all || (found != SAME && found != SYNTHETIC)) add_row(c, old->rows[i], new->rows[k], found);
            i++, k++;
        }
    }
}

static int finish(const comparison *c) {
    size_t compared = 0;
    for (size_t i = 0; i < CHANGES; i++) compared += c->changes[i];
    if (compared == 0)
        return cli_fail(c->command,
                        "no case stands in both files: machine, device, operation, type, size and what is counted "
                        "must be the same");
    if (c->row_count > 1) {
        cli_table(c->cells, c->row_count, COLUMNS, 1u << 5 | 1u << 6 | 1u << 7 | 1u << 8);
        cli_print("\n");
    }
    cli_print("%zu cases: %zu the same within the noise, %zu faster, %zu slower, %zu doubtful, %zu synthetic; %zu only "
              "in the old file, %zu only in the new one\n",
              compared, c->changes[SAME], c->changes[FASTER], c->changes[SLOWER], c->changes[DOUBTFUL],
              c->changes[SYNTHETIC], c->only_old, c->only_new);
    if (c->changes[SLOWER]) return cli_fail(c->command, "%zu of %zu cases became slower", c->changes[SLOWER], compared);
    return CLI_OK;
}

static int compare(comparison *c, const side *old, const side *new, bool all) {
    static const char *const heads[COLUMNS] = { "DEVICE", "OPERATION", "TYPE",   "SIZE",  "COUNTED",
                                                "OLD",    "NEW",       "CHANGE", "NOISE", "" };
    const size_t most = old->set.count < new->set.count ? old->set.count : new->set.count;
    c->cells = calloc((most + 1) * COLUMNS, sizeof *c->cells);
    if (!c->cells) return cli_fail(c->command, "no memory is left");
    cli_heads(c->cells, heads, COLUMNS);
    c->row_count = 1;
    walk(c, old, new, all);
    const int code = finish(c);
    free(c->cells);
    return code;
}

static int run(const cli_args *args) {
    comparison c = { .command = args->command };
    side old = { 0 }, new = { 0 };
    double percent;
    if (!cli_get_fraction(args, "--limit", 0, 1000, 5, &percent)) return CLI_USAGE;
    c.limit = percent / 100;
    int code = open_side(args->command, &args->operands[0], &old);
    if (!code) code = open_side(args->command, &args->operands[1], &new);
    if (!code) code = compare(&c, &old, &new, cli_get(args, "--all") != NULL);
    close_side(&old);
    close_side(&new);
    return code;
}

static const cli_option options[] = {
    { "--limit", "PERCENT", "a smaller change is none; default: 5" },
    { "--all", NULL, "print the cases that are the same too" },
};

const cli_command cli_bench_compare = {
    "bench compare", "compares two runs; fails where a case became slower than noise explains",
    "bench compare OLD.csv NEW.csv [options]", "OLD.csv NEW.csv", options, CLI_COUNT(options),
    "Noise of a row is (P90 - min) / median. A case is slower when its median rose by more than the\n"
    "noise of both rows and the limit. Rows whose clock moved are doubtful, and like "
    "synthetic ones\nthey fail nothing. Exit code 1: something is slower.\n",
    "  heddle bench compare before.csv after.csv\n", run,
};
