/* bench_report.c: `heddle bench report`: CSV files as one page with charts, and a summary in Markdown beside it. */
#include "cli/bench_page.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Whether `path` is one of the files that are read, under whatever name. */
static bool is_among(const char *const *paths, size_t count, const char *path) {
    for (size_t i = 0; i < count; i++)
        if (system_is_same(paths[i], path)) return true;
    return false;
}

char *bench_path_beside(const char *path, const char *ending) {
    const size_t length = strlen(path);
    const size_t stem = length > 5 && strcmp(path + length - 5, ".html") == 0 ? length - 5 : length;
    const size_t tail = strlen(ending) + 1;
    char *out = malloc(stem + tail);
    if (out) memcpy(out, path, stem), memcpy(out + stem, ending, tail);
    return out;
}

/* Both texts are whole before the first file is opened. */
static int write_both(const cli_command *command, const bench_set *set, const char *path, const char *beside) {
    text page = { 0 }, summary = { 0 };
    size_t panels = 0;
    for (size_t i = 0; i < set->count; i++) panels += i == 0 || !bench_same_panel(&set->rows[i - 1], &set->rows[i]);
    if (panels > BENCH_MOST_PANELS)
        return cli_fail(command, "these rows would make %zu charts, and more than %d are no help; give fewer", panels,
                        (int)BENCH_MOST_PANELS);
    bench_page_write(set, &page);
    bench_summary_write(set, &summary);
    int code = cli_save(command, path, &page);
    if (!code) code = cli_save(command, beside, &summary);
    text_free(&page);
    text_free(&summary);
    return code;
}

int bench_report_draw(const cli_command *command, const char *const *paths, size_t count, const char *page) {
    char *beside = bench_path_beside(page, ".md");
    bench_set set;
    if (!beside) return cli_fail(command, "no memory is left");
    int code = CLI_USAGE;
    if (is_among(paths, count, page)) cli_usage(command, "%s is one of the files to read", page);
    else if (is_among(paths, count, beside))
        cli_usage(command, "the summary would go to %s, which is one of the files to read", beside);
    else {
        code = bench_set_read(command, paths, count, &set);
        if (!code) code = write_both(command, &set, page, beside);
        bench_set_free(&set);
    }
    free(beside);
    return code;
}

static int run(const cli_args *args) {
    const char *path = cli_get(args, "-o");
    if (!path || !*path) return cli_usage(args->command, "needs -o FILE.html, the page to write");
    return bench_report_draw(args->command, args->operands, args->operand_count, path);
}

static const cli_option options[] = {
    { "-o", "FILE.html", "the page; the summary goes beside it, as FILE.md" },
};

const cli_command cli_bench_report = {
    "bench report", "draws measurements: one page with charts, winners and tables",
    "bench report FILE.csv [FILE.csv ...] -o FILE.html", "FILE.csv ...", options, CLI_COUNT(options),
    "Files of several machines or devices are shown beside each other. The page loads nothing from elsewhere.\n"
    "Rows marked synthetic are drawn dashed and never win; rows whose clock moved are ringed.\n",
    "  heddle bench report cpu.csv gpu.csv -o report.html\n", run,
};
