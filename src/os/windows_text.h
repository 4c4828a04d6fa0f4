/* windows_text.h: Windows' paths and failures in C's terms, for every file that calls Windows: the library's, the
 * commands' and training's. Paths are UTF-8 outside and UTF-16 there, whatever the process' code page is. */
#ifndef HDI_OS_WINDOWS_TEXT_H
#define HDI_OS_WINDOWS_TEXT_H

#ifndef WIN32_LEAN_AND_MEAN
#  define WIN32_LEAN_AND_MEAN
#endif
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <windows.h>

enum { MOST_PATH = 4096 }; /* room for a path, in characters of either kind */

/* False, with errno and the last error, where the text is not UTF-8 or too long. */
static inline bool widen(const char *text, wchar_t out[MOST_PATH]) {
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, out, MOST_PATH) > 0) return true;
    SetLastError(ERROR_INVALID_NAME);
    return errno = EINVAL, false;
}
static inline bool narrow(const wchar_t *text, char *out, size_t room) {
    const int most = room < MOST_PATH ? (int)room : MOST_PATH;
    return WideCharToMultiByte(CP_UTF8, 0, text, -1, out, most, NULL, NULL) > 0;
}

/* The last error as the C library's. */
static inline int error_number(void) {
    switch (GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND: return ENOENT;
    case ERROR_ALREADY_EXISTS:
    case ERROR_FILE_EXISTS: return EEXIST;
    case ERROR_DISK_FULL: return ENOSPC;
    case ERROR_NOT_ENOUGH_MEMORY: return ENOMEM;
    case ERROR_INVALID_NAME: return EINVAL;
    default: return EACCES;
    }
}
/* What a call gave, with errno where it failed. */
static inline bool worked(BOOL result) {
    if (!result) errno = error_number();
    return result != 0;
}

static inline bool is_folder(const wchar_t *path) {
    const DWORD there = GetFileAttributesW(path);
    return there != INVALID_FILE_ATTRIBUTES && there & FILE_ATTRIBUTE_DIRECTORY;
}

#endif
