/* support_posix.c: files for train/ on systems of POSIX. A file is written whole or not at all: under another name,
 * down to the disk, then renamed, and the folder that names it goes to the disk too. */
#define _POSIX_C_SOURCE 200809L
#include "train/support.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

hd_status hdt_map_open(hd_context *context, const char *path, hdt_map *out_map) {
    *out_map = (hdt_map){ 0 };
    struct stat info;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &info) != 0) {
        const hd_status status = hdt_fail_io(context, "opened", path);
        if (file >= 0) close(file);
        return status;
    }
    hd_status status = HD_OK;
    if (!S_ISREG(info.st_mode)) status = hdt_fail(context, HD_STATUS_IO, "%s is no file", path);
    else if (info.st_size > 0) {
        void *bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (bytes == MAP_FAILED) status = hdt_fail_io(context, "read", path);
        else *out_map = (hdt_map){ bytes, (uint64_t)info.st_size };
    }
    close(file);
    return status;
}
void hdt_map_close(hdt_map *map) {
    if (map->bytes) munmap((void *)(uintptr_t)map->bytes, (size_t)map->count);
    *map = (hdt_map){ 0 };
}

static bool write_all(int file, const uint8_t *bytes, uint64_t count) {
    while (count > 0) {
        const ssize_t done = write(file, bytes, count > INT_MAX ? INT_MAX : (size_t)count);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        bytes += done;
        count -= (uint64_t)done;
    }
    return true;
}

hd_status hdt_write_file(hd_context *context, const char *path, const hdt_piece *pieces, size_t count) {
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) return hdt_fail_io(context, "written", path);
    bool good = true;
    for (size_t i = 0; i < count && good; i++) good = write_all(file, pieces[i].bytes, pieces[i].count);
    good = good && fsync(file) == 0;
    hd_status status = good ? HD_OK : hdt_fail_io(context, "written", path);
    if (close(file) != 0 && !status) status = hdt_fail_io(context, "written", path);
    return status;
}

/* What a folder names, down to the disk. */
static hd_status sync_folder(hd_context *context, const char *path) {
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool good = folder >= 0 && fsync(folder) == 0;
    const hd_status status = good ? HD_OK : hdt_fail_io(context, "written", path);
    if (folder >= 0) close(folder);
    return status;
}

hd_status hdt_rename(hd_context *context, const char *from, const char *to) {
    char folder[HDT_PATH_ROOM];
    const char *slash = strrchr(to, '/');
    const int length = slash ? (int)(slash - to) : 1;
    if (snprintf(folder, sizeof folder, "%.*s", slash == to ? 1 : length, slash ? to : ".") >= (int)sizeof folder)
        return hdt_fail(context, HD_STATUS_LIMIT, "the path %.60s... is too long", to);
    if (rename(from, to) != 0) return hdt_fail_io(context, "written", to);
    return sync_folder(context, folder);
}

hd_status hdt_make_folder(hd_context *context, const char *path) {
    struct stat info;
    if (mkdir(path, 0777) == 0 || (errno == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode))) return HD_OK;
    return hdt_fail_io(context, "made", path);
}

bool hdt_is_there(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0;
}

void hdt_remove_folder(const char *path) {
    DIR *folder = opendir(path);
    if (!folder) return;
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder))
        if (entry->d_name[0] != '.') unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    rmdir(path);
}
