/* system_windows.c: the commands' system on Windows. Words and paths are UTF-16 there, whatever the code page is; the
 * console is shown UTF-8, and standard streams take bytes as they are. */
#include "cli/system.h"
#include "src/os/windows_text.h"
#include <fcntl.h>
#include <io.h>
#include <malloc.h>
#include <process.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <psapi.h>
#include <shellapi.h>

/* ---- the process ---- */

static HANDLE handle_of(system_stream stream) {
    static const DWORD names[] = { STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE };
    return GetStdHandle(names[stream]);
}

/* The console as it was: its code page, 0: there is none; by stream, whether its mode was changed, and from what. */
static UINT page_before;
static bool takes_escapes[SYSTEM_ERRORS + 1];
static DWORD modes_before[SYSTEM_ERRORS + 1];

static void put_console_back(void) {
    if (page_before) SetConsoleOutputCP(page_before);
    /* they may be one console: what the first one's mode was is right */
    for (system_stream i = SYSTEM_ERRORS; i >= SYSTEM_OUTPUT; i--)
        if (takes_escapes[i]) SetConsoleMode(handle_of(i), modes_before[i]);
}

static void begin_console(void) {
    page_before = GetConsoleOutputCP();
    if (page_before) SetConsoleOutputCP(CP_UTF8);
    for (system_stream i = SYSTEM_OUTPUT; i <= SYSTEM_ERRORS; i++)
        takes_escapes[i] = GetConsoleMode(handle_of(i), &modes_before[i]) &&
                           SetConsoleMode(handle_of(i), modes_before[i] | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
    atexit(put_console_back);
}

/* The words as UTF-8; they stay until the process ends. */
static char **take_words(int *out_count) {
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), out_count);
    char **words = wide ? calloc((size_t)*out_count + 1, sizeof *words) : NULL;
    for (int i = 0; words && i < *out_count; i++) {
        const int bytes = WideCharToMultiByte(CP_UTF8, 0, wide[i], -1, NULL, 0, NULL, NULL);
        words[i] = malloc((size_t)bytes + 1);
        if (!words[i]) return NULL;
        WideCharToMultiByte(CP_UTF8, 0, wide[i], -1, words[i], bytes, NULL, NULL);
    }
    LocalFree(wide);
    return words;
}

char **system_begin(int *inout_count, char **words) {
    (void)words; /* in the code page */
    for (int stream = 0; stream < 3; stream++) {
        if (_get_osfhandle(stream) == -1) (void)_open("NUL", stream == 0 ? _O_WRONLY : _O_RDONLY);
        _setmode(stream, _O_BINARY);
    }
    begin_console();
    return take_words(inout_count);
}

char **system_environment(void) { return _environ; }
long system_process(void) { return _getpid(); }

bool system_program(char *out, size_t room) {
    wchar_t wide[MOST_PATH];
    const DWORD length = GetModuleFileNameW(NULL, wide, MOST_PATH);
    return length > 0 && length < MOST_PATH && narrow(wide, out, room);
}

void system_lock_errors(void) { _lock_file(stderr); }
void system_unlock_errors(void) { _unlock_file(stderr); }

static volatile LONG interrupts;

/* In a thread of its own. */
static BOOL WINAPI interrupt(DWORD what) {
    if ((what == CTRL_C_EVENT || what == CTRL_BREAK_EVENT) && InterlockedIncrement(&interrupts) < 3) return TRUE;
    put_console_back();
    return FALSE; /* the process ends */
}

void system_interrupts_catch(bool restart) {
    (void)restart; /* what waits for the console ends, all else goes on */
    SetConsoleCtrlHandler(interrupt, FALSE);
    SetConsoleCtrlHandler(interrupt, TRUE);
    interrupts = 0;
}

unsigned system_interrupts_count(void) { return (unsigned)interrupts; }

/* ---- standard streams ---- */

bool system_is_terminal(system_stream stream) {
    DWORD mode;
    return GetConsoleMode(handle_of(stream), &mode) != 0;
}

size_t system_columns(system_stream stream) {
    CONSOLE_SCREEN_BUFFER_INFO info;
    if (!takes_escapes[stream]) return 0;
    return GetConsoleScreenBufferInfo(handle_of(stream), &info) && info.dwSize.X > 0 ? (size_t)info.dwSize.X : 80;
}

bool system_has_input(void) {
    const DWORD type = GetFileType(handle_of(SYSTEM_INPUT));
    return type == FILE_TYPE_DISK || type == FILE_TYPE_PIPE;
}

/* The console's next line as UTF-8: its bytes are in the code page, which many systems do not read as UTF-8. */
static size_t read_console(char *out, size_t room) {
    enum { MOST = 1024, END = 0x1A /* Ctrl-Z */, HANDLER_MS = 50 };
    wchar_t wide[MOST + 1];
    DWORD count = 0, more = 0;
    size_t bytes = 0;
    if (!ReadConsoleW(handle_of(SYSTEM_INPUT), wide, MOST, &count, NULL) || count == 0) {
        Sleep(HANDLER_MS); /* Ctrl-C's handler is a thread that may come later */
        return 0;
    }
    if (wide[0] == END) return 0;
    if (IS_HIGH_SURROGATE(wide[count - 1]) && ReadConsoleW(handle_of(SYSTEM_INPUT), wide + count, 1, &more, NULL))
        count += more;
    const int got = WideCharToMultiByte(CP_UTF8, 0, wide, (int)count, out, (int)room, NULL, NULL);
    for (int i = 0; i < got; i++)
        if (out[i] != '\r') out[bytes++] = out[i];
    return bytes;
}

/* The next piece of what was read of the console. */
static char *console_gets(char *out, int room) {
    static char kept[4096];
    static size_t at, count;
    int length = 0;
    if (at == count) {
        at = 0;
        count = read_console(kept, sizeof kept);
    }
    while (at < count && length + 1 < room && (length == 0 || out[length - 1] != '\n')) out[length++] = kept[at++];
    out[length] = 0;
    return length > 0 ? out : NULL;
}

char *system_gets(char *out, int room) {
    if (system_is_terminal(SYSTEM_INPUT)) return console_gets(out, room);
    if (!fgets(out, room, stdin)) return NULL;
    const size_t length = strlen(out);
    if (length > 1 && strcmp(out + length - 2, "\r\n") == 0) strcpy(out + length - 2, "\n");
    return out;
}

bool system_more_input(int wait_ms) {
    (void)wait_ms; /* the console tells of keys, not of lines: what is pasted comes line by line */
    return false;
}

bool system_input_ended(void) { return false; } /* a console's end is a line like others */

void system_terminal_keep(void) {} /* begin_console did, and the system ends the process without asking */
void system_terminal_restore(void) {}

int system_silence(void) {
    fflush(stdout);
    const int kept = _dup(1), nowhere = _open("NUL", _O_WRONLY | _O_BINARY | _O_NOINHERIT);
    const bool done = kept >= 0 && nowhere >= 0 && _dup2(nowhere, 1) == 0;
    if (nowhere >= 0) _close(nowhere);
    if (done) return kept;
    if (kept >= 0) _close(kept);
    return -1;
}

void system_speak(int kept) {
    fflush(stdout);
    _dup2(kept, 1);
    _close(kept);
}

/* ---- files and folders ---- */

FILE *system_open(const char *path, const char *mode) {
    wchar_t wide[MOST_PATH];
    if (!widen(path, wide)) return NULL;
    const int flags = mode[0] == 'r' ? _O_RDONLY : _O_WRONLY | _O_CREAT | _O_TRUNC;
    const int file = _wopen(wide, flags | _O_BINARY | _O_NOINHERIT, _S_IREAD | _S_IWRITE);
    if (file < 0 && errno == EACCES && system_is_folder(path)) errno = EISDIR;
    FILE *stream = file >= 0 ? _fdopen(file, mode) : NULL;
    if (file >= 0 && !stream) _close(file);
    return stream;
}

const char *system_name_of(const char *path) {
    const char *name = path;
    for (const char *at = path; *at; at++)
        if (*at == '/' || *at == '\\' || *at == ':') name = at + 1;
    return name;
}

static DWORD attributes_of(const char *path) {
    wchar_t wide[MOST_PATH];
    return widen(path, wide) ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;
}

bool system_is_there(const char *path) { return attributes_of(path) != INVALID_FILE_ATTRIBUTES; }

bool system_is_folder(const char *path) {
    wchar_t wide[MOST_PATH];
    return widen(path, wide) && is_folder(wide);
}

bool system_is_readable(const char *path) {
    wchar_t wide[MOST_PATH];
    return widen(path, wide) && _waccess(wide, 4) == 0;
}

bool system_is_ordinary(FILE *file) { return GetFileType((HANDLE)_get_osfhandle(_fileno(file))) == FILE_TYPE_DISK; }

static bool identify(const char *path, BY_HANDLE_FILE_INFORMATION *out) {
    wchar_t wide[MOST_PATH];
    if (!widen(path, wide)) return false;
    HANDLE file = CreateFileW(wide, 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_EXISTING,
                              FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (file == INVALID_HANDLE_VALUE) return false;
    const bool told = GetFileInformationByHandle(file, out) != 0;
    CloseHandle(file);
    return told;
}

bool system_is_same(const char *path, const char *other) {
    BY_HANDLE_FILE_INFORMATION a, b;
    return identify(path, &a) && identify(other, &b) && a.dwVolumeSerialNumber == b.dwVolumeSerialNumber &&
           a.nFileIndexHigh == b.nFileIndexHigh && a.nFileIndexLow == b.nFileIndexLow;
}

/* Who may look into it is inherited. */
bool system_make_folder(const char *path, bool is_private) {
    wchar_t wide[MOST_PATH];
    (void)is_private;
    return widen(path, wide) && (worked(CreateDirectoryW(wide, NULL)) || errno == EEXIST);
}

bool system_remove(const char *path) {
    wchar_t wide[MOST_PATH];
    return widen(path, wide) && worked(DeleteFileW(wide));
}

bool system_remove_folder(const char *path) {
    wchar_t wide[MOST_PATH];
    return widen(path, wide) && worked(RemoveDirectoryW(wide));
}

/* The first name in a folder; INVALID_HANDLE_VALUE where it cannot be read. */
static HANDLE first_in(const char *folder, WIN32_FIND_DATAW *out) {
    char pattern[MOST_PATH];
    wchar_t wide[MOST_PATH];
    if (snprintf(pattern, sizeof pattern, "%s/*", folder) >= (int)sizeof pattern || !widen(pattern, wide))
        return INVALID_HANDLE_VALUE;
    return FindFirstFileW(wide, out);
}

void system_list(const char *folder, void (*each)(void *user, const char *name), void *user) {
    WIN32_FIND_DATAW found;
    char name[3 * MAX_PATH];
    HANDLE list = first_in(folder, &found);
    if (list == INVALID_HANDLE_VALUE) return;
    do if (narrow(found.cFileName, name, sizeof name)) each(user, name);
    while (FindNextFileW(list, &found));
    FindClose(list);
}

bool system_temporary(char *out, size_t room) {
    wchar_t folder[MAX_PATH + 1], file[MAX_PATH + 1];
    return GetTempPathW(MAX_PATH, folder) > 0 && GetTempFileNameW(folder, L"hed", 0, file) > 0 &&
           narrow(file, out, room);
}

system_folder system_look_at_folder(const char *path) {
    system_folder all = { .free_bytes = UINT64_MAX };
    WIN32_FIND_DATAW found;
    wchar_t wide[MOST_PATH];
    ULARGE_INTEGER left;
    HANDLE list = first_in(path, &found);
    if (list != INVALID_HANDLE_VALUE) {
        do if (!(found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY)) {
                all.bytes += (uint64_t)found.nFileSizeHigh << 32 | found.nFileSizeLow;
                all.count++;
            }
        while (FindNextFileW(list, &found));
        FindClose(list);
    }
    if (!widen(path, wide)) return all;
    all.writable = _waccess(wide, 2) == 0;
    if (GetDiskFreeSpaceExW(wide, &left, NULL, NULL)) all.free_bytes = left.QuadPart;
    return all;
}

/* ---- memory, libraries ---- */

void *system_aligned(size_t bytes) { return _aligned_malloc(bytes, 64); }
void system_aligned_free(void *memory) { _aligned_free(memory); }

/* Of the system's folder and the program's; never of the current one, where anybody may have put one. */
void *system_library(const char *name) {
    wchar_t wide[MOST_PATH];
    return widen(name, wide) ? LoadLibraryExW(wide, NULL, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS) : NULL;
}

bool system_find(void *library, const char *name, void *out) {
    const FARPROC symbol = GetProcAddress(library, name);
    memcpy(out, &symbol, sizeof symbol);
    return symbol != NULL;
}

bool system_find_library(const char *begins, char *out, size_t room) {
    enum { MOST = 1024 };
    HMODULE all[MOST];
    DWORD bytes = 0;
    if (!K32EnumProcessModules(GetCurrentProcess(), all, sizeof all, &bytes)) return false;
    for (size_t i = 0; i < MOST && i < bytes / sizeof *all; i++) {
        wchar_t wide[MOST_PATH];
        const DWORD length = GetModuleFileNameW(all[i], wide, MOST_PATH);
        const char *slash = length > 0 && length < MOST_PATH && narrow(wide, out, room) ? strrchr(out, '\\') : NULL;
        if (slash && _strnicmp(slash + 1, begins, strlen(begins)) == 0) return true;
    }
    out[0] = 0;
    return false;
}
