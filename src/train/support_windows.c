/* support_windows.c: files for train/ on Windows. Paths become UTF-16, whatever the process' code page is. A file is
 * written whole or not at all: under another name, down to the disk, then renamed. */
#include "os/windows_text.h"
#include "train/support.h"
#include <stdio.h>
#include <string.h>

static hd_status io_error(hd_context *context, const char *what, const char *path) {
    errno = error_number();
    return hdt_fail_io(context, what, path);
}

hd_status hdt_map_open(hd_context *context, const char *path, hdt_map *out_map) {
    wchar_t wide[HDT_PATH_ROOM];
    LARGE_INTEGER size = { 0 };
    *out_map = (hdt_map){ 0 };
    HANDLE file = INVALID_HANDLE_VALUE, section = NULL;
    if (widen(path, wide) && is_folder(wide)) return hdt_fail(context, HD_STATUS_IO, "%s is no file", path);
    if (widen(path, wide))
        file = CreateFileW(wide, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    if (file == INVALID_HANDLE_VALUE) return io_error(context, "opened", path);
    hd_status status = HD_OK;
    if (GetFileType(file) != FILE_TYPE_DISK || !GetFileSizeEx(file, &size))
        status = hdt_fail(context, HD_STATUS_IO, "%s is no file", path);
    else if (size.QuadPart > 0) {
        section = CreateFileMappingW(file, NULL, PAGE_READONLY, 0, 0, NULL);
        const void *bytes = section ? MapViewOfFile(section, FILE_MAP_READ, 0, 0, 0) : NULL;
        if (!bytes) status = io_error(context, "read", path);
        else *out_map = (hdt_map){ bytes, (uint64_t)size.QuadPart };
    }
    if (section) CloseHandle(section); /* the view keeps it */
    CloseHandle(file);
    return status;
}

void hdt_map_close(hdt_map *map) {
    if (map->bytes) UnmapViewOfFile(map->bytes);
    *map = (hdt_map){ 0 };
}

static bool write_all(HANDLE file, const uint8_t *bytes, uint64_t count) {
    enum { PIECE = 1 << 30 };
    while (count > 0) {
        DWORD done = 0;
        if (!WriteFile(file, bytes, count > PIECE ? PIECE : (DWORD)count, &done, NULL) || done == 0) return false;
        bytes += done;
        count -= done;
    }
    return true;
}

hd_status hdt_write_file(hd_context *context, const char *path, const hdt_piece *pieces, size_t count) {
    wchar_t wide[HDT_PATH_ROOM];
    HANDLE file = INVALID_HANDLE_VALUE;
    if (widen(path, wide))
        file = CreateFileW(wide, GENERIC_WRITE, 0, NULL, CREATE_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL);
    if (file == INVALID_HANDLE_VALUE) return io_error(context, "written", path);
    bool good = true;
    for (size_t i = 0; i < count && good; i++) good = write_all(file, pieces[i].bytes, pieces[i].count);
    good = good && FlushFileBuffers(file);
    const hd_status status = good ? HD_OK : io_error(context, "written", path);
    CloseHandle(file);
    return status;
}

/* Written through: the system returns when the name is on the disk. */
hd_status hdt_rename(hd_context *context, const char *from, const char *to) {
    wchar_t wide_from[HDT_PATH_ROOM], wide_to[HDT_PATH_ROOM];
    if (widen(from, wide_from) && widen(to, wide_to) &&
        MoveFileExW(wide_from, wide_to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH))
        return HD_OK;
    return io_error(context, "written", to);
}

hd_status hdt_make_folder(hd_context *context, const char *path) {
    wchar_t wide[HDT_PATH_ROOM];
    if (widen(path, wide) && (CreateDirectoryW(wide, NULL) || is_folder(wide))) return HD_OK;
    return io_error(context, "made", path);
}

bool hdt_is_there(const char *path) {
    wchar_t wide[HDT_PATH_ROOM];
    return widen(path, wide) && GetFileAttributesW(wide) != INVALID_FILE_ATTRIBUTES;
}

void hdt_remove_folder(const char *path) {
    WIN32_FIND_DATAW found;
    char name[HDT_PATH_ROOM], pattern[HDT_PATH_ROOM];
    wchar_t wide[HDT_PATH_ROOM];
    if (snprintf(pattern, sizeof pattern, "%s/*", path) >= (int)sizeof pattern || !widen(pattern, wide)) return;
    HANDLE folder = FindFirstFileW(wide, &found);
    if (folder == INVALID_HANDLE_VALUE) return;
    do {
        char file[3 * MAX_PATH];
        if (found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY ||
            WideCharToMultiByte(CP_UTF8, 0, found.cFileName, -1, file, sizeof file, NULL, NULL) == 0)
            continue;
        if (snprintf(name, sizeof name, "%s/%s", path, file) < (int)sizeof name && widen(name, wide)) DeleteFileW(wide);
    } while (FindNextFileW(folder, &found));
    FindClose(folder);
    if (widen(path, wide)) RemoveDirectoryW(wide);
}
