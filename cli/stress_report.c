/* stress_report.c: what `heddle stress` found, as a table and as JSON. */
#include "cli/stress.h"
#include <math.h>
#include <string.h>

/* Runs a second in part `i`; NaN where it took no time. */
static double rate(const stress *s, uint32_t i) {
    const uint64_t runs = i ? s->parts[i - 1].runs : 0, at_ns = i ? s->parts[i - 1].at_ns : 0;
    const uint64_t took_ns = s->parts[i].at_ns - at_ns;
    return took_ns ? (double)(s->parts[i].runs - runs) * 1e9 / (double)took_ns : NAN;
}

/* The last part's speed beside the first one's, in percent; NaN where there are not two. */
static double drift(const stress *s) {
    if (s->part_count < 2 || !(rate(s, 0) > 0)) return NAN;
    return 100 * (rate(s, s->part_count - 1) / rate(s, 0) - 1);
}

/* Memory that was held at the end and not at the first look. */
static int64_t left_behind(const stress *s) {
    return s->part_count ? (int64_t)s->last.device_bytes - (int64_t)s->parts[0].device_bytes : 0;
}

static void number(double value, const char *format, cli_cell out) {
    if (isnan(value)) snprintf(out, CLI_CELL, "-");
    else snprintf(out, CLI_CELL, format, value); /* of this file's own */
}

static void print_text(const stress *s) {
    static const char *const heads[] = { "SECONDS", "RUNS",   "RUNS/S", "WRONG",  "ERRORS",
                                         "LOST",    "MEMORY", "MHZ",    "CELSIUS" };
    cli_cell cells[(STRESS_PARTS + 1) * CLI_COUNT(heads)], held;
    cli_heads(cells, heads, CLI_COUNT(heads));
    for (uint32_t i = 0; i < s->part_count; i++) {
        const stress_part *part = &s->parts[i];
        cli_cell *row = &cells[(i + 1) * CLI_COUNT(heads)];
        const uint64_t counts[] = { part->wrong + part->wrong_blocks, part->errors, part->losses };
        snprintf(row[0], CLI_CELL, "%.1f", (double)part->at_ns / 1e9);
        snprintf(row[1], CLI_CELL, "%llu", (unsigned long long)part->runs);
        number(rate(s, i), "%.1f", row[2]);
        for (size_t c = 0; c < CLI_COUNT(counts); c++)
            snprintf(row[3 + c], CLI_CELL, "%llu", (unsigned long long)counts[c]);
        cli_bytes(part->device_bytes, row[6]);
        number(part->clock_mhz, "%.0f", row[7]);
        number(part->temperature_c, "%.0f", row[8]);
    }
    if (s->part_count) cli_table(cells, s->part_count + 1, CLI_COUNT(heads), 0x1ff);
    cli_print("%.1f s on %s: %llu runs of %llu x %llu compared bit by bit, %llu wrong; ", (double)s->last.at_ns / 1e9,
              s->id, (unsigned long long)s->now.runs, (unsigned long long)s->size, (unsigned long long)s->size,
              (unsigned long long)s->now.wrong);
    cli_print("%llu patterns of 8 MiB read again, %llu wrong; %llu errors, %llu losses\n",
              (unsigned long long)s->now.blocks, (unsigned long long)s->now.wrong_blocks,
              (unsigned long long)s->now.errors, (unsigned long long)s->now.losses);
    if (!isnan(drift(s)))
        cli_print("speed: %.1f runs a second at first, %.1f in the end: %+.1f %%\n", rate(s, 0),
                  rate(s, s->part_count - 1), drift(s));
    const int64_t left = left_behind(s);
    cli_bytes((uint64_t)(left < 0 ? -left : left), held);
    cli_print(left ? "memory: %s %s than at first\n" : "memory: as much in the end as at first\n", held,
              left > 0 ? "more" : "less");
}

static json_t *real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static int print_json(const stress *s) {
    bool ok = true;
    json_t *root = json_object(), *parts = json_array();
    cli_put(root, "device", cli_json_text(s->id), &ok);
    cli_put(root, "name", cli_json_text(s->name), &ok);
    cli_put(root, "seconds", json_real((double)s->last.at_ns / 1e9), &ok);
    const struct { const char *name; uint64_t value; } counts[] = {
        { "size", s->size }, { "runs", s->now.runs }, { "wrong", s->now.wrong }, { "patterns", s->now.blocks },
        { "wrong_patterns", s->now.wrong_blocks }, { "errors", s->now.errors }, { "losses", s->now.losses },
        { "device_bytes", s->last.device_bytes },
    };
    for (size_t i = 0; i < CLI_COUNT(counts); i++)
        cli_put(root, counts[i].name, json_integer((json_int_t)counts[i].value), &ok);
    cli_put(root, "bytes_left_behind", json_integer((json_int_t)left_behind(s)), &ok);
    cli_put(root, "drift_percent", real(drift(s)), &ok);
    for (uint32_t i = 0; i < s->part_count; i++) {
        json_t *part = json_object();
        cli_put(part, "seconds", json_real((double)s->parts[i].at_ns / 1e9), &ok);
        cli_put(part, "runs", json_integer((json_int_t)s->parts[i].runs), &ok);
        cli_put(part, "runs_per_second", real(rate(s, i)), &ok);
        cli_put(part, "clock_mhz", real(s->parts[i].clock_mhz), &ok);
        cli_put(part, "temperature_c", real(s->parts[i].temperature_c), &ok);
        if (json_array_append_new(parts, part) != 0) ok = false;
    }
    cli_put(root, "parts", parts, &ok);
    return cli_print_json(s->session.command, root, ok);
}

int stress_report(const stress *s, bool json) {
    const bool bad = s->now.wrong || s->now.wrong_blocks || s->now.errors || s->now.losses || left_behind(s) > 0;
    const int code = json ? print_json(s) : CLI_OK;
    if (!json) print_text(s);
    return code ? code : bad ? CLI_FAILED : CLI_OK;
}
