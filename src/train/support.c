/* support.c: errors, host memory and files for train/. A file is written whole or not at all: under another name, down
 * to the disk, then renamed, and the folder that names it goes to the disk too. */
#define _POSIX_C_SOURCE 200809L
#include "train/support.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

hd_status hdt_fail(hd_context *context, hd_status status, const char *format, ...) {
    hd_error error = { .status = status };
    va_list args;
    va_start(args, format);
    vsnprintf(error.text, sizeof error.text, format, args);
    va_end(args);
    for (char *at = error.text; *at; at++)
        if (*at < ' ' || *at > '~') *at = '?';
    return hd_context_put_error(context, &error);
}
hd_status hdt_no_memory(hd_context *context) {
    return hdt_fail(context, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory is left for training");
}

void *hdt_alloc(hd_context *context, uint64_t count, uint64_t item_bytes) {
    if (item_bytes > 0 && count > SIZE_MAX / item_bytes) return NULL;
    const hd_allocator allocator = hd_context_allocator(context);
    const size_t bytes = (size_t)(count * item_bytes) + (count == 0);
    void *items = allocator.resize(allocator.user, NULL, 0, bytes);
    if (items) memset(items, 0, bytes);
    return items;
}
void hdt_free(hd_context *context, void *items, uint64_t count, uint64_t item_bytes) {
    if (!items) return;
    const hd_allocator allocator = hd_context_allocator(context);
    allocator.resize(allocator.user, items, (size_t)(count * item_bytes) + (count == 0), 0);
}

/* ---- files ---- */

static hd_status io_error(hd_context *context, const char *what, const char *path) {
    return hdt_fail(context, HD_STATUS_IO, "%s cannot be %s: %s", path, what, strerror(errno));
}

hd_status hdt_map_open(hd_context *context, const char *path, hdt_map *out_map) {
    *out_map = (hdt_map){ 0 };
    struct stat info;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &info) != 0) {
        const hd_status status = io_error(context, "opened", path);
        if (file >= 0) close(file);
        return status;
    }
    hd_status status = HD_OK;
    if (!S_ISREG(info.st_mode)) status = hdt_fail(context, HD_STATUS_IO, "%s is no file", path);
    else if (info.st_size > 0) {
        void *bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (bytes == MAP_FAILED) status = io_error(context, "read", path);
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
    if (file < 0) return io_error(context, "written", path);
    bool good = true;
    for (size_t i = 0; i < count && good; i++) good = write_all(file, pieces[i].bytes, pieces[i].count);
    good = good && fsync(file) == 0;
    hd_status status = good ? HD_OK : io_error(context, "written", path);
    if (close(file) != 0 && !status) status = io_error(context, "written", path);
    return status;
}

/* What a folder names, down to the disk. */
static hd_status sync_folder(hd_context *context, const char *path) {
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool good = folder >= 0 && fsync(folder) == 0;
    const hd_status status = good ? HD_OK : io_error(context, "written", path);
    if (folder >= 0) close(folder);
    return status;
}

hd_status hdt_rename(hd_context *context, const char *from, const char *to) {
    char folder[PATH_MAX];
    const char *slash = strrchr(to, '/');
    const int length = slash ? (int)(slash - to) : 1;
    if (snprintf(folder, sizeof folder, "%.*s", slash == to ? 1 : length, slash ? to : ".") >= (int)sizeof folder)
        return hdt_fail(context, HD_STATUS_LIMIT, "the path %.60s... is too long", to);
    if (rename(from, to) != 0) return io_error(context, "written", to);
    return sync_folder(context, folder);
}

hd_status hdt_make_folder(hd_context *context, const char *path) {
    struct stat info;
    if (mkdir(path, 0777) == 0 || (errno == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode))) return HD_OK;
    return io_error(context, "made", path);
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

/* ---- orders of rows ---- */

uint64_t hdt_row_in_transformers(uint64_t row, uint64_t rows, uint32_t heads) {
    if (heads == 0) return row;
    const uint64_t size = rows / heads, i = row % size;
    return row - i + i % 2 * (size / 2) + i / 2;
}

/* ---- random words ---- */

void hdt_random(const uint32_t counter[4], uint64_t seed, uint32_t out_words[4]) {
    uint32_t low = (uint32_t)seed, high = (uint32_t)(seed >> 32), w[4];
    memcpy(w, counter, sizeof w);
    for (int round = 0; round < 10; round++, low += 0x9E3779B9u, high += 0xBB67AE85u) {
        const uint64_t a = UINT64_C(0xD2511F53) * w[0], b = UINT64_C(0xCD9E8D57) * w[2];
        const uint32_t next[4] = { (uint32_t)(b >> 32) ^ w[1] ^ low, (uint32_t)b, (uint32_t)(a >> 32) ^ w[3] ^ high,
                                   (uint32_t)a };
        memcpy(w, next, sizeof w);
    }
    memcpy(out_words, w, sizeof w);
}
