/* windows.c: the operating system's part on Windows. Paths become UTF-16, whatever the process' code page is. */
#define _CRT_RAND_S
#include "os/os.h"
#include "os/windows_text.h"
#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <psapi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* ---- files ---- */

int hdi_os_open(const char *path, hdi_open_how how) {
    static const int flags[] = { [HDI_OPEN_READ] = _O_RDONLY,
                                 [HDI_OPEN_AWAIT] = _O_RDONLY,
                                 [HDI_OPEN_NEW] = _O_WRONLY | _O_CREAT | _O_EXCL,
                                 [HDI_OPEN_WRITE] = _O_WRONLY | _O_CREAT | _O_TRUNC };
    wchar_t wide[MOST_PATH];
    if (!widen(path, wide)) return -1;
    const int file = _wopen(wide, flags[how] | _O_BINARY | _O_NOINHERIT, _S_IREAD | _S_IWRITE);
    if (file < 0 && errno == EACCES && is_folder(wide)) errno = EISDIR;
    return file;
}

void hdi_os_close(int file) { _close(file); }
FILE *hdi_os_stream(int file, const char *mode) { return _fdopen(file, mode); }

bool hdi_os_file_facts(int file, hdi_file_facts *out_facts) {
    struct _stat64 info;
    if (_fstat64(file, &info) != 0 || info.st_size < 0) return false;
    out_facts->bytes = (uint64_t)info.st_size;
    switch (info.st_mode & _S_IFMT) {
    case _S_IFREG: out_facts->kind = HDI_FILE_ORDINARY; break;
    case _S_IFDIR: out_facts->kind = HDI_FILE_FOLDER; break;
    case _S_IFIFO: out_facts->kind = HDI_FILE_PIPE; break;
    default: out_facts->kind = HDI_FILE_DEVICE;
    }
    return true;
}

int64_t hdi_os_read(int file, uint64_t offset, void *out, size_t bytes) {
    OVERLAPPED place = { .Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32) };
    DWORD count = 0;
    if (ReadFile((HANDLE)_get_osfhandle(file), out, (DWORD)least(bytes, (size_t)1 << 30), &count, &place)) return count;
    if (GetLastError() == ERROR_HANDLE_EOF) return 0;
    errno = error_number();
    return -1;
}

bool hdi_os_is_slash(char c) { return c == '/' || c == '\\'; }

bool hdi_os_rename(const char *from, const char *to) {
    wchar_t wide_from[MOST_PATH], wide_to[MOST_PATH];
    return widen(from, wide_from) && widen(to, wide_to) &&
           worked(MoveFileExW(wide_from, wide_to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH));
}

bool hdi_os_remove(const char *path) {
    wchar_t wide[MOST_PATH];
    return widen(path, wide) && worked(DeleteFileW(wide));
}

bool hdi_os_is_readable(const char *path) {
    wchar_t wide[MOST_PATH];
    return widen(path, wide) && _waccess(wide, 4) == 0;
}

bool hdi_os_make_folder(const char *path) {
    wchar_t wide[MOST_PATH];
    if (!widen(path, wide)) return false;
    return is_folder(wide) || worked(CreateDirectoryW(wide, NULL)); /* asked first: a drive, as C:, cannot be made */
}

/* Who may write where is said by lists that a folder inherits; below a user's profile they name that user alone. */
bool hdi_os_folder_open(const char *path, char *why, size_t room) {
    wchar_t wide[MOST_PATH];
    why[0] = 0;
    if (!widen(path, wide) || !is_folder(wide)) {
        snprintf(why, room, "there can be no folder (it is a file)");
        return false;
    }
    if (_waccess(wide, 2) != 0) snprintf(why, room, "nothing can be written there");
    return true;
}

/* ---- memory ---- */

const void *hdi_os_map(int file, uint64_t bytes) {
    if (bytes == 0 || bytes > SIZE_MAX / 2) return NULL;
    HANDLE section = CreateFileMappingW((HANDLE)_get_osfhandle(file), NULL, PAGE_READONLY, 0, 0, NULL);
    if (!section) return NULL;
    const void *map = MapViewOfFile(section, FILE_MAP_READ, 0, 0, (SIZE_T)bytes);
    CloseHandle(section); /* the view keeps it */
    return map;
}

void hdi_os_unmap(const void *map, uint64_t bytes) {
    (void)bytes;
    UnmapViewOfFile(map);
}

bool hdi_os_is_shared_file(const void *memory, uint64_t bytes) {
    (void)memory;
    (void)bytes;
    return false;
}

void hdi_os_rest(const void *bytes, uint64_t count) {
    union { const void *read_only; void *plain; } pointer = { bytes };
    VirtualUnlock(pointer.plain, (SIZE_T)count); /* pages that were not locked leave the working set */
}

void *hdi_os_pages(uint64_t bytes) {
    return bytes > SIZE_MAX / 2 ? NULL : VirtualAlloc(NULL, (SIZE_T)bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void hdi_os_free_pages(void *pages, uint64_t bytes) {
    (void)bytes;
    VirtualFree(pages, 0, MEM_RELEASE);
}

/* ---- libraries ---- */

/* Looked for beside the program, in the system's folder and in those of PATH; never in the current folder, where
 * anybody may have put one. */
void *hdi_os_library(const char *name) {
    wchar_t wide[MOST_PATH], found[MOST_PATH], *path = NULL;
    if (!widen(name, wide)) return NULL;
    HMODULE library = LoadLibraryExW(wide, NULL, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
    const DWORD room = library ? 0 : GetEnvironmentVariableW(L"PATH", NULL, 0);
    if (room) path = malloc(room * sizeof *path);
    if (path && GetEnvironmentVariableW(L"PATH", path, room) < room) {
        const DWORD length = SearchPathW(path, wide, NULL, MOST_PATH, found, NULL);
        if (length > 0 && length < MOST_PATH)
            library = LoadLibraryExW(found, NULL, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
    }
    free(path);
    return library;
}

hdi_os_function hdi_os_symbol(const void *library, const char *name) {
    union { const void *given; HMODULE handle; } pass = { .given = library };
    const FARPROC symbol = GetProcAddress(pass.handle, name);
    hdi_os_function function;
    memcpy(&function, &symbol, sizeof function);
    return function;
}

bool hdi_os_library_folder(hdi_os_function function, char *out, size_t room) {
    wchar_t wide[MOST_PATH];
    HMODULE library;
    LPCWSTR address;
    memcpy(&address, &function, sizeof address);
    if (!GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                            address, &library))
        return false;
    const DWORD length = GetModuleFileNameW(library, wide, MOST_PATH);
    wchar_t *slash = length > 0 && length < MOST_PATH ? wcsrchr(wide, L'\\') : NULL;
    if (!slash) return false;
    slash[1] = 0;
    return narrow(wide, out, room);
}

/* ---- the machine and this process ---- */

uint64_t hdi_os_memory_bytes(void) {
    MEMORYSTATUSEX memory = { .dwLength = sizeof memory };
    return GlobalMemoryStatusEx(&memory) ? memory.ullTotalPhys : 0;
}

bool hdi_os_memory_taken(uint64_t *out_bytes) {
    union {
        PROCESS_MEMORY_COUNTERS    asked;
        PROCESS_MEMORY_COUNTERS_EX told;
    } memory = { .told = { .cb = sizeof memory.told } };
    if (!K32GetProcessMemoryInfo(GetCurrentProcess(), &memory.asked, sizeof memory.told)) return false;
    *out_bytes = memory.told.PrivateUsage;
    return true;
}

bool hdi_os_memory_available(uint64_t *out_bytes) {
    MEMORYSTATUSEX memory = { .dwLength = sizeof memory };
    if (!GlobalMemoryStatusEx(&memory)) return false;
    *out_bytes = memory.ullAvailPhys;
    return true;
}

uint32_t hdi_os_processor_count(void) {
    DWORD_PTR own = 0, all = 0;
    uint32_t count = 0;
    if (GetProcessAffinityMask(GetCurrentProcess(), &own, &all))
        for (; own; own &= own - 1) count++;
    return count > 0 ? count : 1;
}

void hdi_os_processor_name(char *out, size_t room) {
    wchar_t wide[128];
    DWORD bytes = sizeof wide;
    const LSTATUS told = RegGetValueW(HKEY_LOCAL_MACHINE, L"HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0",
                                      L"ProcessorNameString", RRF_RT_REG_SZ, NULL, wide, &bytes);
    if (told != ERROR_SUCCESS || !narrow(wide, out, room)) snprintf(out, room, "CPU");
}

bool hdi_os_take_tiles(void) { return false; } /* no kernel for them is built here: CMakeLists.txt */
bool hdi_os_at_fork(void (*in_child)(void)) {
    (void)in_child;
    return true;
}
long hdi_os_process(void) { return _getpid(); }

bool hdi_os_random(void *out, size_t bytes) {
    for (size_t done = 0; done < bytes; done += sizeof(unsigned)) {
        unsigned word;
        if (rand_s(&word) != 0) return false;
        memcpy((char *)out + done, &word, least(bytes - done, sizeof word));
    }
    return true;
}

bool hdi_os_has_home(void) { return true; }

bool hdi_os_cache_root(char *out, size_t room) {
    wchar_t wide[MOST_PATH];
    const DWORD length = GetEnvironmentVariableW(L"LOCALAPPDATA", wide, MOST_PATH);
    return length > 0 && length < MOST_PATH && narrow(wide, out, room);
}
