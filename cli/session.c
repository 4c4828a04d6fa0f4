/* session.c: a context whose log goes to stderr, its device, and the start-up line. The library logs each failure and
 * also keeps it for the caller; such a line is held back, so that the user reads every failure once. */
#define _POSIX_C_SOURCE 200809L
#include "cli/cli.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void flush_held(cli_session *session) {
    if (session->held[0]) cli_note("%s\n", session->held);
    session->held[0] = 0;
}

/* May be called from several threads: each line is one call of stdio, whose lock keeps lines whole. */
static void log_line(void *user, hd_log_level level, const char *part, const char *line) {
    static const char *const names[] = { "error", "error", "warning", "info", "debug" };
    cli_session *session = user;
    system_lock_errors();
    flush_held(session);
    snprintf(session->last, sizeof session->last, "%s", line);
    snprintf(session->held, sizeof session->held, "heddle: %s: %s: %s",
             names[level <= HD_LOG_DEBUG ? level : HD_LOG_DEBUG], part, line);
    for (char *at = session->held; *at; at++)
        if (*at == '\n') *at = ' ';
    if (level > HD_LOG_ERROR) flush_held(session);
    system_unlock_errors();
}

int cli_session_open(const cli_command *command, cli_session *out_session) {
    *out_session = (cli_session){ .command = command };
    const hd_context_desc desc = { .log = log_line,
                                   .log_user = out_session,
                                   .log_level = cli_is_quiet() ? HD_LOG_ERROR : HD_LOG_DEFAULT };
    hd_status status = hd_context_create(&desc, &out_session->context);
    if (!status) return CLI_OK;
    out_session->held[0] = 0;
    const char *text = out_session->last[0] ? out_session->last : hd_status_text(status);
    return cli_fail(command, "%s: %s; %s", hd_status_name(status), text, hd_status_hint(status));
}

int cli_session_device(cli_session *session, const char *id) {
    const hd_device_desc desc = { .id = id };
    if (hd_device_open(session->context, &desc, &session->device)) return cli_session_fail(session, NULL);
    const char *selection = hd_device_selection(session->device);
    if (strcmp(session->last, selection) != 0) cli_tell("heddle: device: %s\n", selection); /* else the log said it */
    return CLI_OK;
}

int cli_session_fail(cli_session *session, const char *about) {
    session->held[0] = 0;
    const char *error = hd_context_error(session->context);
    return cli_fail(session->command, "%s%s%s", about ? about : "", about ? ": " : "",
                    error[0] ? error : "failed without saying why; please report it");
}

void cli_session_forget(cli_session *session) {
    hd_error error;
    hd_context_take_error(session->context, &error);
    session->held[0] = 0;
}

void cli_session_close(cli_session *session) {
    hd_context_destroy(session->context);
    flush_held(session);
    free(session->route);
    session->context = NULL;
    session->device = NULL;
    memset(session->beside, 0, sizeof session->beside);
    session->route = NULL;
}

const char *cli_kind_name(hd_device_kind kind) {
    switch (kind) {
    case HD_DEVICE_DISCRETE_GPU: return "discrete GPU";
    case HD_DEVICE_INTEGRATED_GPU: return "integrated GPU";
    case HD_DEVICE_OTHER: return "accelerator";
    case HD_DEVICE_CPU: return "CPU";
    case HD_DEVICE_SOFTWARE: return "software";
    case HD_DEVICE_NULL: return "null";
    case HD_DEVICE_NONE: break;
    }
    return "unknown";
}

uint64_t cli_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Up to the end or one byte more than the limit, in pieces: a system touches all the room that a read is given. */
static char *read_pieces(FILE *file, size_t limit, size_t *out_bytes) {
    size_t room = 1 << 16, bytes = 0, got;
    char *text = malloc(room + 1);
    while (text && (got = fread(text + bytes, 1, room - bytes, file)) > 0) {
        bytes += got;
        if (bytes > limit) break;
        if (bytes < room) continue;
        char *larger = realloc(text, 2 * room + 1);
        if (!larger) free(text);
        text = larger;
        room *= 2;
    }
    *out_bytes = bytes;
    return text;
}

char *cli_read_text(const cli_command *command, const char *path, size_t limit, size_t *out_bytes) {
    const bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : system_open(path, "rb");
    size_t bytes = 0;
    char *text = file ? read_pieces(file, limit, &bytes) : NULL;
    bool failed = !text || ferror(file);
    if (failed) cli_fail(command, "%s cannot be read: %s; check the path", path, strerror(errno));
    else if (bytes > limit) cli_fail(command, "%s is larger than %zu bytes; give a smaller one", path, limit);
    if (file && !is_stdin) fclose(file);
    if (failed || bytes > limit) {
        free(text);
        return NULL;
    }
    text[bytes] = 0;
    *out_bytes = bytes;
    return text;
}
