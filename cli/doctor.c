/* doctor.c: `heddle doctor`: looks for what keeps devices from working, from the files of the system to answers that
 * are known, and says what to do about each. */
#include "cli/doctor.h"
#include "cli/text.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- findings ---- */

void doctor_add(doctor_findings *to, doctor_level level, const char *part, const char *about, const char *format, ...) {
    va_list args;
    if (to->count == to->room) {
        const size_t room = to->room ? 2 * to->room : 64;
        doctor_finding *items = realloc(to->items, room * sizeof *items);
        to->failed |= !items;
        if (!items) return;
        to->items = items;
        to->room = room;
    }
    doctor_finding *added = &to->items[to->count++];
    *added = (doctor_finding){ .level = level, .part = part };
    snprintf(added->about, sizeof added->about, "%s", about);
    va_start(args, format);
    vsnprintf(added->text, sizeof added->text, format, args);
    va_end(args);
    to->levels[level]++;
}

void doctor_mend(doctor_findings *to, const char *format, ...) {
    va_list args;
    if (to->count == 0 || to->failed) return;
    doctor_finding *last = &to->items[to->count - 1];
    va_start(args, format);
    vsnprintf(last->mend, sizeof last->mend, format, args);
    va_end(args);
}

/* ---- the report ---- */

static const char *const level_names[] = { "ok", "note", "problem" };

static void print_text(const doctor_findings *all) {
    for (size_t i = 0; i < all->count; i++) {
        const doctor_finding *finding = &all->items[i];
        text line = { 0 }, mend = { 0 };
        text_add(&line, "%-8s %s %s: %s", level_names[finding->level], finding->part, finding->about, finding->text);
        text_add(&mend, "%8s -> %s", "", finding->mend);
        if (line.data) cli_print_folded(line.data, 9);
        if (finding->mend[0] && mend.data) cli_print_folded(mend.data, 12);
        text_free(&line);
        text_free(&mend);
    }
    cli_print("\n%zu problem%s, %zu note%s, %zu ok\n", all->levels[DOCTOR_PROBLEM],
              all->levels[DOCTOR_PROBLEM] == 1 ? "" : "s", all->levels[DOCTOR_NOTE],
              all->levels[DOCTOR_NOTE] == 1 ? "" : "s", all->levels[DOCTOR_OK]);
}

static int print_json(const cli_command *command, const doctor_findings *all) {
    bool ok = true;
    json_t *root = json_object(), *findings = json_array();
    for (size_t i = 0; i < all->count; i++) {
        const doctor_finding *finding = &all->items[i];
        json_t *row = json_object();
        cli_put(row, "level", json_string(level_names[finding->level]), &ok);
        cli_put(row, "part", json_string(finding->part), &ok);
        cli_put(row, "about", cli_json_text(finding->about), &ok);
        cli_put(row, "text", cli_json_text(finding->text), &ok);
        cli_put(row, "mend", cli_json_text(finding->mend), &ok);
        if (json_array_append_new(findings, row) != 0) ok = false;
    }
    cli_put(root, "heddle", json_string(hd_version()), &ok);
    cli_put(root, "problems", json_integer((json_int_t)all->levels[DOCTOR_PROBLEM]), &ok);
    cli_put(root, "notes", json_integer((json_int_t)all->levels[DOCTOR_NOTE]), &ok);
    cli_put(root, "findings", findings, &ok);
    return cli_print_json(command, root, ok);
}

/* ---- the command ---- */

/* What the library warns of is a finding, but for what it says of a device that it opens. Its errors come back from its
 * calls, but the one that keeps a context from being made is told here only. */
typedef struct listener {
    doctor_findings *to;
    bool             creating;
} listener;

static void listen(void *user, hd_log_level level, const char *part, const char *line) {
    const listener *hears = user;
    if (level > HD_LOG_WARNING || (level <= HD_LOG_ERROR && !hears->creating) || strcmp(part, "device") == 0) return;
    system_lock_errors(); /* of several threads */
    doctor_add(hears->to, level <= HD_LOG_ERROR ? DOCTOR_PROBLEM : DOCTOR_NOTE, "log", part, "%s", line);
    doctor_mend(hears->to, "HEDDLE_LOG=debug heddle devices -v tells more");
    system_unlock_errors();
}

static void examine(doctor_findings *all, const cli_args *args) {
    listener hears = { all, true };
    hd_context *context = NULL;
    const hd_context_desc desc = { .log = listen, .log_user = &hears, .verify = 2 };
    doctor_environment(all);
    doctor_gpus(all, "");
    doctor_nodes(all, "");
    const hd_status status = hd_context_create(&desc, &context);
    hears.creating = false;
    if (status && !all->levels[DOCTOR_PROBLEM])
        doctor_add(all, DOCTOR_PROBLEM, "heddle", hd_version(), "%s: %s", hd_status_name(status),
                   hd_status_text(status));
    if (!status) doctor_backends(all, context, cli_get(args, "--device"));
    doctor_drivers(all, ""); /* after the loaders opened them: what crashes there is seen there */
    if (!status) doctor_devices(all, context, cli_get(args, "--device"));
    if (!status) doctor_cache(all, context);
    hd_context_destroy(context);
}

static int doctor(const cli_args *args) {
    doctor_findings all = { 0 };
    examine(&all, args);
    int code = all.failed ? cli_fail(args->command, "no memory is left") : CLI_OK;
    if (!code && cli_get(args, "--json")) code = print_json(args->command, &all);
    else if (!code) print_text(&all);
    if (!code && all.levels[DOCTOR_PROBLEM]) code = CLI_FAILED;
    free(all.items);
    return code;
}

static const cli_option options[] = { { "--device", "ID", "the device that has to work; default: the best" },
                                      CLI_OPTION_JSON };

const cli_command cli_doctor = {
    "doctor", "finds what keeps devices from working, and says what to do", "doctor [--device ID] [--json]", NULL,
    options, CLI_COUNT(options),
    "Looks at the environment, GPUs, their files and drivers, back ends, the cache, and computes known answers\n"
    "on each device. A note tells of something that nobody asked for. The exit code is 1 where there is a problem.\n",
    "  heddle doctor --device vulkan\n", doctor,
};
