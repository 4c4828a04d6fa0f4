/* bench_set.c: reads, checks and orders rows. One comparison with a depth gives both orders and every "same". */
#include "cli/bench_set.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_FILE = 64 << 20 };

static const bench_kind kinds[] = {
    { "threshold", "Time by size",
      "Which device is fastest at which size. Bars reach from the least sample to the 90th percentile, points are "
      "medians.", BENCH_OVER_SIZE, true, false },
    { "ops", "Roofline",
      "How near each operation comes to what its device can do: below the slope memory is the limit, below the flat "
      "roof arithmetic. Both roofs were measured in the same run.", BENCH_ROOFLINE, false, false },
    { "transfer", "Transfers", "Bytes a second between the host's memory and a device's.", BENCH_RATE, false, true },
    { "batch", "Batches", "Mixes of tasks, handed over in one submission; \"in 4\": in four.", BENCH_CASES, false,
      false },
    { "stream", "Streams", "Batches of one plan with their transfers, one after the other (depth=1) and overlapped.",
      BENCH_CASES, false, false },
    { "llm", "Language models",
      "Tokens a second for a prompt and for an answer, and over what was measured at several places.", BENCH_TOKENS,
      false, false },
    { "", "Other measurements", "Rows of benchmarks that this version of heddle does not know.", BENCH_CASES, false,
      false },
};

static const bench_kind *kind_of(const char *bench) {
    size_t i = 0;
    while (i + 1 < CLI_COUNT(kinds) && strcmp(kinds[i].bench, bench) != 0) i++;
    return &kinds[i];
}

bool bench_is_cpu(const bench_row *row) {
    return strcmp(row->cells->kind, "CPU") == 0 || (!*row->cells->kind && strcmp(row->cells->backend, "cpu") == 0);
}

/* ---- order ---- */

typedef enum depth { CHAPTER, FIGURE, PANEL, LINE, WORK, ALL } depth;

/* Numbers rising, those that are not known first. */
static int by_number(double a, double b) {
    if (isnan(a) || isnan(b)) return isnan(b) - isnan(a);
    return (a > b) - (a < b);
}

static int by_line(const bench_row *a, const bench_row *b) {
    if (a->style != b->style) return a->style < b->style ? -1 : 1;
    const int order = strcmp(a->cells->device, b->cells->device); /* names that were cut may be alike */
    return order ? order : (int)a->synthetic - (int)b->synthetic;
}

static int by_size(const bench_row *a, const bench_row *b) {
    int order = by_number(a->cells->elements, b->cells->elements);
    if (!order) order = strcmp(a->cells->op, b->cells->op);
    if (!order) order = strcmp(a->cells->size, b->cells->size);
    if (!order) order = by_number(a->cells->submissions, b->cells->submissions);
    if (!order && a->by_threads) order = by_number(a->cells->threads, b->cells->threads);
    return order;
}

/* Down to `to`: LINE leaves sizes out, WORK leaves devices out; ALL has both, and `work_first` says which comes
 * first. */
static int compare(const bench_row *a, const bench_row *b, depth to, bool work_first) {
    int order = (a->kind > b->kind) - (a->kind < b->kind);
    if (!order) order = strcmp(a->cells->bench, b->cells->bench);
    if (order || to == CHAPTER) return order;
    if (a->kind->op_parts_figures) order = strcmp(a->cells->op, b->cells->op);
    if (!order) order = strcmp(a->cells->type, b->cells->type);
    if (order || to == FIGURE) return order;
    /* upload before download, */
    if (a->kind->op_parts_panels) order = (a->cells->op[0] < b->cells->op[0]) - (a->cells->op[0] > b->cells->op[0]);
    /* upload-pinned behind it */
    if (!order && a->kind->op_parts_panels) order = strcmp(a->cells->op, b->cells->op);
    if (!order) order = strcmp(a->cells->counted, b->cells->counted);
    if (!order) order = strcmp(a->cells->machine, b->cells->machine);
    if (order || to == PANEL) return order;
    if (to != WORK) order = work_first ? by_size(a, b) : by_line(a, b);
    if (order || to == LINE) return order;
    return to == WORK || !work_first ? by_size(a, b) : by_line(a, b);
}

static int as_drawn(const void *a, const void *b) { return compare(a, b, ALL, false); }
static int as_compared(const void *a, const void *b) {
    return compare(*(const bench_row *const *)a, *(const bench_row *const *)b, ALL, true);
}

bool bench_same_chapter(const bench_row *a, const bench_row *b) { return compare(a, b, CHAPTER, false) == 0; }
bool bench_same_figure(const bench_row *a, const bench_row *b) { return compare(a, b, FIGURE, false) == 0; }
bool bench_same_panel(const bench_row *a, const bench_row *b) { return compare(a, b, PANEL, false) == 0; }
bool bench_same_line(const bench_row *a, const bench_row *b) { return compare(a, b, LINE, false) == 0; }
bool bench_same_work(const bench_row *a, const bench_row *b) { return compare(a, b, WORK, false) == 0; }

/* ---- numbers ---- */

/* NaN also where it is more than a number can hold. */
static double ratio(double a, double b) { return a > 0 && b > 0 && a / b > 0 && isfinite(a / b) ? a / b : (double)NAN; }

double bench_per_second(double count, double ns) { return ratio(count, ns * 1e-9); }

double bench_x(const bench_row *row) {
    const table_row *cells = row->cells;
    switch (row->kind->form) {
    case BENCH_ROOFLINE: return ratio(cells->flops, cells->bytes);
    case BENCH_OVER_SIZE:
    case BENCH_RATE: return ratio(cells->elements, 1);
    case BENCH_CASES:
    case BENCH_TOKENS: break;
    }
    return NAN;
}

double bench_y(const bench_row *row, double ns) {
    if (!(ns > 0)) return NAN;
    switch (row->kind->form) {
    case BENCH_ROOFLINE: return bench_per_second(row->cells->flops, ns);
    case BENCH_RATE:
    case BENCH_TOKENS: return bench_per_second(row->cells->elements, ns);
    case BENCH_OVER_SIZE:
    case BENCH_CASES: break;
    }
    return ns;
}

/* ---- reading ---- */

static int check_row(const cli_command *command, const char *path, const bench_row *row) {
    const table_row *cells = row->cells;
    const struct { const char *name; double value; } sizes[] = {
        { "elements", cells->elements }, { "bytes", cells->bytes }, { "flops", cells->flops },
        { "samples", cells->samples }, { "first_ns", cells->first_ns }, { "peak_flops_per_s", cells->peak_flops_per_s },
        { "peak_bytes_per_s", cells->peak_bytes_per_s },
    };
    if (!(cells->median_ns > 0))
        return cli_fail(command, "%s: row %zu: median_ns is not above 0; a time is", path, row->number);
    if (cells->min_ns > cells->median_ns || cells->median_ns > cells->p90_ns || cells->p90_ns > cells->max_ns ||
        cells->min_ns <= 0)
        return cli_fail(command, "%s: row %zu: its times do not rise from min_ns over median_ns and p90_ns to max_ns",
                        path, row->number);
    for (size_t i = 0; i < CLI_COUNT(sizes); i++)
        if (sizes[i].value < 0)
            return cli_fail(command, "%s: row %zu: %s is below 0", path, row->number, sizes[i].name);
    if (!*cells->bench || !*cells->device || !*cells->op)
        return cli_fail(command, "%s: row %zu: bench, device and op must be there", path, row->number);
    return CLI_OK;
}

static int read_file(const cli_command *command, const char *path, table *out_table) {
    char why[TABLE_WHY];
    size_t bytes;
    char *data = cli_read_text(command, path, LARGEST_FILE, &bytes);
    if (!data) return CLI_FAILED;
    return table_parse(data, bytes, out_table, why) ? CLI_OK : cli_fail(command, "%s: %s", path, why);
}

/* ---- devices ---- */

enum { MOST_DEVICES = 256 };

typedef struct bench_device {
    const char *machine, *id;
    bool        cpu;
    char        name[64];
    unsigned    style;
} bench_device;

static bool same_device(const bench_device *a, const table_row *cells) {
    return strcmp(a->id, cells->device) == 0 && strcmp(a->machine, cells->machine) == 0;
}

/* Bytes of the id's first word: "vulkan" of "vulkan:10005-0000-67fe6652". */
static size_t first_word(const char *id) { return strcspn(id, ":"); }

static void name_device(const bench_device *devices, size_t count, bench_device *device) {
    const size_t word = first_word(device->id);
    bool alone = word > 0;
    for (size_t i = 0; i < count && alone; i++) {
        const bench_device *other = &devices[i];
        alone = other == device || strcmp(other->machine, device->machine) != 0 || first_word(other->id) != word ||
                strncmp(other->id, device->id, word) != 0;
    }
    snprintf(device->name, sizeof device->name, "%.*s",
             alone && word < sizeof device->name ? (int)word : (int)sizeof device->name - 1, device->id);
}

/* One style for each name, the CPUs' first, so that a device looks the same in every panel. */
static void give_styles(bench_device *devices, size_t count) {
    unsigned styles = 0;
    for (int cpus = 1; cpus >= 0; cpus--)
        for (size_t i = 0; i < count; i++) {
            if (devices[i].cpu != (cpus == 1)) continue;
            size_t same = 0;
            while (same < count &&
                   (same == i || strcmp(devices[same].name, devices[i].name) != 0 || devices[same].style == UINT32_MAX))
                same++;
            devices[i].style = same < count ? devices[same].style : styles++;
        }
}

/* Lists the devices, names them, and tells each row. */
static int know_devices(const cli_command *command, bench_set *set) {
    size_t count = 0;
    set->devices = calloc(MOST_DEVICES, sizeof *set->devices);
    if (!set->devices) return cli_fail(command, "no memory is left");
    for (size_t i = 0; i < set->count; i++) {
        const bench_row *row = &set->rows[i];
        size_t at = 0;
        while (at < count && !same_device(&set->devices[at], row->cells)) at++;
        if (at == MOST_DEVICES)
            return cli_fail(command, "%s: more than %d devices", set->paths[row->file], (int)MOST_DEVICES);
        if (at == count)
            set->devices[count++] = (bench_device){ .machine = row->cells->machine, .id = row->cells->device,
                                                    .cpu = bench_is_cpu(row), .style = UINT32_MAX };
    }
    for (size_t i = 0; i < count; i++) name_device(set->devices, count, &set->devices[i]);
    give_styles(set->devices, count);
    for (size_t i = 0; i < set->count; i++) {
        size_t at = 0;
        while (!same_device(&set->devices[at], set->rows[i].cells)) at++;
        set->rows[i].device = set->devices[at].name;
        set->rows[i].style = set->devices[at].style;
    }
    return CLI_OK;
}

/* ---- reading all ---- */

/* Threads count where not all rows of language models have the same number of them. */
static void tell_threads(bench_set *set) {
    const table_row *first = NULL;
    bool vary = false;
    for (size_t i = 0; i < set->count; i++) {
        const bench_row *row = &set->rows[i];
        if (row->kind->form != BENCH_TOKENS) continue;
        if (!first) first = row->cells;
        vary = vary || by_number(first->threads, row->cells->threads) != 0;
    }
    for (size_t i = 0; i < set->count; i++) set->rows[i].by_threads = vary && set->rows[i].kind->form == BENCH_TOKENS;
}

static int collect(const cli_command *command, bench_set *set) {
    set->rows = calloc(set->count + 1, sizeof *set->rows);
    set->by_work = calloc(set->count + 1, sizeof *set->by_work);
    if (!set->rows || !set->by_work) return cli_fail(command, "no memory is left");
    size_t at = 0;
    for (size_t file = 0; file < set->table_count; file++)
        for (size_t i = 0; i < set->tables[file].row_count; i++) {
            const table_row *cells = &set->tables[file].rows[i];
            bench_row *row = &set->rows[at++];
            *row = (bench_row){ .cells = cells, .kind = kind_of(cells->bench), .file = file, .number = i + 1 };
            row->synthetic = (!isnan(cells->synthetic) && cells->synthetic != 0) || strcmp(cells->kind, "null") == 0;
            row->doubtful = *cells->flag || cells->throttled > 0;
            const int code = check_row(command, set->paths[file], row);
            if (code) return code;
        }
    tell_threads(set);
    return know_devices(command, set);
}

/* Marks the fastest of each work, or the one that would be but for a tie;
 * synthetic rows are passed over, and one device alone wins nothing. */
static int judge(const cli_command *command, bench_set *set) {
    for (size_t at = 0, end; at < set->count; at = end) {
        bench_row *best = NULL;
        size_t measured = 0;
        double next_ns = INFINITY;
        for (end = at; end < set->count && bench_same_work(set->by_work[at], set->by_work[end]); end++) {
            bench_row *row = set->by_work[end];
            const bench_row *before = end > at ? set->by_work[end - 1] : NULL;
            if (before && bench_same_line(before, row))
                return cli_fail(command,
                                "row %zu of %s measures what row %zu of %s does; to compare two runs use `heddle "
                                "bench compare`", row->number,
                                set->paths[row->file], before->number, set->paths[before->file]);
            if (row->synthetic) continue;
            measured++;
            const bool better = !best || row->cells->median_ns < best->cells->median_ns;
            if (!better) next_ns = fmin(next_ns, row->cells->median_ns);
            else if (best) next_ns = best->cells->median_ns;
            if (better) best = row;
        }
        if (measured > 1) *(next_ns > BENCH_TIE * best->cells->median_ns ? &best->fastest : &best->tied) = true;
    }
    return CLI_OK;
}

int bench_set_read(const cli_command *command, const char *const *paths, size_t count, bench_set *out_set) {
    *out_set = (bench_set){ .paths = paths, .tables = calloc(count, sizeof *out_set->tables) };
    if (!out_set->tables) return cli_fail(command, "no memory is left");
    for (size_t i = 0; i < count; i++) {
        const int code = read_file(command, paths[i], &out_set->tables[i]);
        if (code) return code;
        out_set->table_count++;
        if (out_set->tables[i].row_count == 0) return cli_fail(command, "%s has no rows", paths[i]);
        out_set->count += out_set->tables[i].row_count;
        if (out_set->count > BENCH_MOST_ROWS)
            return cli_fail(command, "%s: more than %d rows in all; give fewer", paths[i], (int)BENCH_MOST_ROWS);
    }
    const int code = collect(command, out_set);
    if (code) return code;
    qsort(out_set->rows, out_set->count, sizeof *out_set->rows, as_drawn);
    for (size_t i = 0; i < out_set->count; i++) out_set->by_work[i] = &out_set->rows[i];
    qsort(out_set->by_work, out_set->count, sizeof *out_set->by_work, as_compared);
    return judge(command, out_set);
}

void bench_set_free(bench_set *set) {
    for (size_t i = 0; i < set->table_count; i++) table_free(&set->tables[i]);
    free(set->tables);
    free(set->rows);
    free(set->by_work);
    free(set->devices);
    *set = (bench_set){ 0 };
}
