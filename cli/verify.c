/* verify.c: `heddle verify`: runs every kernel variant of a device on known answers and shows which are right. */
#include "cli/verify.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct verdicts {
    hd_verdict *items;
    size_t      count, room;
    uint32_t    wrong;
    bool        failed;
} verdicts;

static void keep(void *user, const hd_fact *fact) {
    const hd_verdict *verdict = &fact->verdict;
    verdicts *all = user;
    if (all->count == all->room) {
        const size_t room = all->room ? 2 * all->room : 256;
        hd_verdict *items = realloc(all->items, room * sizeof *items);
        if (!items) {
            all->failed = true;
            return;
        }
        all->items = items;
        all->room = room;
    }
    all->items[all->count++] = *verdict;
    all->wrong += verdict->wrong;
    cli_progress("heddle verify: %zu variants, %s", all->count, verdict->kernel);
}

static int print_text(cli_session *session, const verdicts *all, double seconds) {
    static const char *const heads[] = { "KERNEL", "FORM", "MATH", "ANSWERS", "ERROR/BOUND", "VERDICT" };
    cli_cell *cells = calloc((all->count + 1) * CLI_COUNT(heads), sizeof *cells);
    uint64_t answers = 0;
    hd_device_stats stats;
    if (!cells) return cli_fail(session->command, "no memory is left");
    cli_heads(cells, heads, CLI_COUNT(heads));
    for (size_t i = 0; i < all->count; i++) {
        const hd_verdict *verdict = &all->items[i];
        cli_cell *row = &cells[(i + 1) * CLI_COUNT(heads)];
        snprintf(row[0], CLI_CELL, "%s", verdict->kernel);
        snprintf(row[1], CLI_CELL, "%s", verdict->form);
        snprintf(row[2], CLI_CELL, "%s", verdict->exact ? "exact" : "fast");
        snprintf(row[3], CLI_CELL, "%u", (unsigned)verdict->answers);
        snprintf(row[4], CLI_CELL, "%.3f", verdict->worst);
        snprintf(row[5], CLI_CELL, "%s", verdict->wrong ? "WRONG, not used" : "right");
        answers += verdict->answers;
    }
    cli_table(cells, all->count + 1, CLI_COUNT(heads), 1u << 3 | 1u << 4);
    free(cells);
    hd_device_get_stats(session->device, &stats);
    cli_print("%zu variants, %llu answers, %u wrong, in %.1f s: %llu kernels compiled, %llu from the cache\n",
              all->count, (unsigned long long)answers, (unsigned)all->wrong, seconds,
              (unsigned long long)stats.kernels_compiled, (unsigned long long)stats.kernels_from_cache);
    return all->wrong ? CLI_FAILED : CLI_OK;
}

static int print_json(cli_session *session, const verdicts *all) {
    const hd_device_info *info = hd_device_get_info(session->device);
    bool ok = true;
    json_t *root = json_object(), *rows = json_array();
    cli_put(root, "device", cli_json_text(info->id), &ok);
    cli_put(root, "driver", cli_json_text(info->driver), &ok);
    cli_put(root, "wrong", json_integer(all->wrong), &ok);
    for (size_t i = 0; i < all->count; i++) {
        const hd_verdict *verdict = &all->items[i];
        json_t *row = json_object();
        cli_put(row, "kernel", cli_json_text(verdict->kernel), &ok);
        cli_put(row, "form", cli_json_text(verdict->form), &ok);
        cli_put(row, "math", cli_json_text(verdict->exact ? "exact" : "fast"), &ok);
        cli_put(row, "wrong", json_boolean(verdict->wrong), &ok);
        cli_put(row, "answers", json_integer(verdict->answers), &ok);
        cli_put(row, "error_of_bound", isfinite(verdict->worst) ? json_real(verdict->worst) : json_null(), &ok);
        if (json_array_append_new(rows, row) != 0) ok = false;
    }
    cli_put(root, "verdicts", rows, &ok);
    const int code = cli_print_json(session->command, root, ok);
    return code ? code : all->wrong ? CLI_FAILED : CLI_OK;
}

static int verify(const cli_args *args) {
    cli_session session;
    verdicts all = { 0 };
    int code = cli_session_open(args->command, &session);
    if (!code) code = cli_session_device(&session, cli_get(args, "--device"));
    if (!code && cli_get(args, "--errors")) {
        code = cli_verify_errors(&session, cli_get(args, "--json") != NULL);
        cli_session_close(&session);
        return code;
    }
    const uint64_t began = cli_now_ns();
    if (!code) cli_progress("heddle verify: kernels are compiled");
    const hd_calibrate_desc desc = { .kinds = HD_FACT_VERDICT, .report = keep, .user = &all };
    const hd_status status = code ? HD_OK : hd_device_calibrate(session.device, &desc);
    cli_progress_end();
    if (status) code = cli_session_fail(&session, NULL);
    if (!code && all.failed) code = cli_fail(args->command, "no memory is left");
    if (!code && cli_get(args, "--json")) code = print_json(&session, &all);
    else if (!code) code = print_text(&session, &all, (double)(cli_now_ns() - began) * 1e-9);
    free(all.items);
    cli_session_close(&session);
    return code;
}

static const cli_option options[] = {
    CLI_OPTION_DEVICE,
    { "--errors", NULL, "instead: how far functions are from their true values, in units of the last place" },
    CLI_OPTION_JSON,
};

const cli_command cli_verify = {
    "verify", "runs every kernel of a device on known answers", "verify [--device ID] [--errors] [--json]", NULL,
    options,
    CLI_COUNT(options),
    "Kernels that are wrong are not used on the device from then on, as long as its driver stays the same: the next "
    "best is.\n"
    "The exit code is 1 where one is wrong.\n", "  heddle verify --device vulkan\n", verify,
};
