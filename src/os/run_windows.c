/* run_windows.c: another program, run on Windows. */
#include "os/os.h"
#include "os/windows_text.h"
#include <io.h>
#include <stdlib.h>
#include <string.h>

/* Appends a word so that the program reads it as it is: quotes around it, backslashes doubled before a quote. */
static bool quote(const char *word, char *line, size_t *length) {
    size_t slashes = 0, at = *length;
    if (at + 2 * strlen(word) + 4 > MOST_PATH) return false;
    if (at > 0) line[at++] = ' ';
    line[at++] = '"';
    for (; *word; line[at++] = *word++) {
        slashes = *word == '\\' ? slashes + 1 : *word == '"' ? slashes + 1 : 0;
        for (; *word == '"' && slashes > 0; slashes--) line[at++] = '\\';
    }
    for (; slashes > 0; slashes--) line[at++] = '\\';
    line[at++] = '"';
    line[at] = 0;
    *length = at;
    return true;
}

/* A program of PATH's folders, and not one that lies in the current folder. */
static bool find_program(const char *name, wchar_t out[MOST_PATH]) {
    wchar_t wide[MOST_PATH];
    DWORD length = 0;
    const DWORD room = GetEnvironmentVariableW(L"PATH", NULL, 0);
    wchar_t *path = room > 0 && widen(name, wide) ? malloc(room * sizeof *path) : NULL;
    if (path && GetEnvironmentVariableW(L"PATH", path, room) < room)
        length = SearchPathW(path, wide, L".exe", MOST_PATH, out, NULL);
    free(path);
    return length > 0 && length < MOST_PATH;
}

/* An error number. */
static int start(const char *const *arguments, FILE *const streams[3], PROCESS_INFORMATION *out_child) {
    char line[MOST_PATH] = "";
    wchar_t wide[MOST_PATH], program[MOST_PATH];
    size_t length = 0;
    HANDLE handles[3];
    if (!find_program(arguments[0], program)) return ENOENT;
    for (; *arguments; arguments++)
        if (!quote(*arguments, line, &length)) return E2BIG;
    if (!widen(line, wide)) return errno;
    for (int i = 0; i < 3; i++) {
        handles[i] = (HANDLE)_get_osfhandle(_fileno(streams[i]));
        SetHandleInformation(handles[i], HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
    }
    STARTUPINFOW how = { .cb = sizeof how, .dwFlags = STARTF_USESTDHANDLES, .hStdInput = handles[0],
                         .hStdOutput = handles[1], .hStdError = handles[2] };
    const BOOL started = CreateProcessW(program, wide, NULL, NULL, TRUE, 0, NULL, NULL, &how, out_child);
    const int error = started ? 0 : error_number();
    for (int i = 0; i < 3; i++) SetHandleInformation(handles[i], HANDLE_FLAG_INHERIT, 0);
    return error;
}

int hdi_os_run(const char *const *arguments, FILE *const streams[3], uint32_t timeout_ms, int *out_code) {
    PROCESS_INFORMATION child = { 0 };
    DWORD code = 1;
    const int error = start(arguments, streams, &child);
    if (error) return error;
    const bool ended = WaitForSingleObject(child.hProcess, timeout_ms) == WAIT_OBJECT_0;
    if (ended) GetExitCodeProcess(child.hProcess, &code);
    else TerminateProcess(child.hProcess, 1);
    CloseHandle(child.hProcess);
    CloseHandle(child.hThread);
    *out_code = (int)code;
    return ended ? 0 : ETIMEDOUT;
}
