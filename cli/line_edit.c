/* line_edit.c: lines with libedit or without. Of libedit only the interface that GNU readline began is used, by name,
 * so that neither its header nor the library is needed to build or to run. */
#define _POSIX_C_SOURCE 200809L
#include "line_edit.h"
#include "cli/system.h"
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line_edit {
    void *library;
    char *(*readline)(const char *prompt);
    int (*add_history)(const char *line);
    int (*read_history)(const char *path);
    int (*write_history)(const char *path);
    void (*using_history)(void);
    void (*stifle_history)(int lines);
    char *history_path;
    char *last; /* the line before: the same again is not kept twice */
};

static void open_library(line_edit *editor) {
    static const char *const names[] = { "libedit.so.2", "libedit.so.0", "libedit.3.dylib" };
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !editor->library; i++)
        editor->library = system_library(names[i]);
    if (!editor->library) return;
    if (system_find(editor->library, "readline", &editor->readline) &&
        system_find(editor->library, "add_history", &editor->add_history) &&
        system_find(editor->library, "read_history", &editor->read_history) &&
        system_find(editor->library, "write_history", &editor->write_history) &&
        system_find(editor->library, "using_history", &editor->using_history) &&
        system_find(editor->library, "stifle_history", &editor->stifle_history))
        return;
    editor->library = NULL;
}

static bool is_at_terminal(void) { return system_is_terminal(SYSTEM_INPUT) && system_is_terminal(SYSTEM_OUTPUT); }

line_edit *line_edit_open(const char *history_path) {
    line_edit *editor = calloc(1, sizeof *editor);
    if (!editor) return NULL;
    system_terminal_keep();
    if (!is_at_terminal()) return editor;
    setlocale(LC_CTYPE, ""); /* characters of more than one byte */
    open_library(editor);
    if (!editor->library) return editor;
    editor->using_history();
    editor->stifle_history(LINE_EDIT_HISTORY_LINES);
    if (history_path) editor->history_path = strdup(history_path);
    if (editor->history_path) editor->read_history(editor->history_path); /* the first time there is none */
    return editor;
}

bool line_edit_edits(const line_edit *editor) { return editor->library != NULL; }

/* A line of any length up to the limit; NULL at the end. */
static char *read_plain(void) {
    size_t count = 0, capacity = 256;
    char *line = malloc(capacity);
    while (line && system_gets(line + count, (int)(capacity - count))) {
        count += strlen(line + count);
        if (count && line[count - 1] == '\n') {
            line[count - 1] = 0;
            return line;
        }
        if (count + 1 < capacity) continue; /* the last line has no newline, or a zero stood in it */
        capacity *= 2;
        char *larger = capacity <= 2 * LINE_EDIT_MOST_BYTES ? realloc(line, capacity) : NULL;
        if (!larger) break;
        line = larger;
    }
    if (line && count && feof(stdin)) return line;
    free(line);
    return NULL;
}

static char *read_line(line_edit *editor, const char *prompt) {
    if (!editor->library) {
        if (is_at_terminal()) {
            fputs(prompt, stdout);
            fflush(stdout);
        }
        return read_plain();
    }
    fflush(stdout);
    if (system_input_ended()) return NULL;
    char *line = editor->readline(prompt);
    if (!line || strlen(line) > LINE_EDIT_MOST_BYTES) {
        free(line);
        return NULL;
    }
    if (line[0] && !(editor->last && strcmp(editor->last, line) == 0)) {
        editor->add_history(line);
        free(editor->last);
        editor->last = strdup(line);
    }
    return line;
}

char *line_edit_read(line_edit *editor, const char *prompt) {
    enum { PASTED_MS = 30 };
    char *all = read_line(editor, prompt);
    while (all && system_more_input(PASTED_MS)) { /* more than hands can type: the rest of what was pasted */
        char *line = read_line(editor, "");
        if (!line) break;
        const size_t bytes = strlen(all), more = strlen(line);
        char *longer = bytes + more < LINE_EDIT_MOST_BYTES ? realloc(all, bytes + more + 2) : NULL;
        if (!longer) free(all);
        else {
            longer[bytes] = '\n';
            memcpy(longer + bytes + 1, line, more + 1);
        }
        all = longer;
        free(line);
    }
    return all;
}

void line_edit_close(line_edit *editor) {
    if (!editor) return;
    if (editor->library && editor->history_path)
        editor->write_history(editor->history_path); /* a history that cannot be kept is no failure */
    system_terminal_restore();
    /* The library stays: it keeps its state until the process ends. */
    free(editor->history_path);
    free(editor->last);
    free(editor);
}

bool line_edit_history_path(const char *name, char *out, size_t out_bytes) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    const bool own = state && state[0] == '/';
    const int count = own ? snprintf(out, out_bytes, "%s/heddle/%s", state, name)
                    : home && home[0] == '/' ? snprintf(out, out_bytes, "%s/.local/state/heddle/%s", home, name) : -1;
    if (count < 0 || (size_t)count >= out_bytes) {
        if (out_bytes) out[0] = 0;
        return false;
    }
    for (char *slash = strchr(out + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        system_make_folder(out, true); /* what is there already stays; writing tells whether all went well */
        *slash = '/';
    }
    return true;
}
