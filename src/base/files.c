/* files.c: files read whole, and those of the cache's folder. There, other processes write there at the same time, and
 * what lies there need not be of heddle: nothing but an ordinary file is opened, and a file is written beside its place
 * and then moved there, so that a reader sees the old one, the new one or none. */
#define _DEFAULT_SOURCE
#include "base/base.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

FILE *hdi_file_open(const char *path) {
    struct stat info;
    const int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC); /* a FIFO would wait for its writer */
    const bool ordinary = file >= 0 && fstat(file, &info) == 0 && S_ISREG(info.st_mode);
    FILE *stream = ordinary ? fdopen(file, "rb") : NULL;
    if (file >= 0 && !stream) close(file);
    return stream;
}

bool hdi_file_replace(const char *path, const hdi_piece *pieces, size_t count) {
    char beside[1100];
    /* by thread */
    const int used = snprintf(beside, sizeof beside, "%s.%ld-%p", path, (long)getpid(), (const void *)&beside);
    if (used < 0 || (size_t)used >= sizeof beside) return errno = ENAMETOOLONG, false;
    const int number = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *file = number >= 0 ? fdopen(number, "wb") : NULL;
    bool good = file != NULL;
    for (size_t i = 0; i < count && good; i++)
        good = fwrite(pieces[i].bytes, 1, pieces[i].count, file) == pieces[i].count;
    if (file && fclose(file) != 0) good = false;
    if (good && rename(beside, path) == 0) return true;
    const int why = errno;
    if (number >= 0) remove(beside);
    return errno = why, false;
}

/* The process that a name of hdi_file_replace tells: NAME.PID-POINTER; 0: it is none. */
static pid_t writer_of(const char *name) {
    const char *dot = strrchr(name, '.');
    char *end = NULL;
    const long process = dot && dot[1] >= '1' && dot[1] <= '9' ? strtol(dot + 1, &end, 10) : 0;
    return process > 0 && process <= INT32_MAX && strncmp(end, "-0x", 3) == 0 ? (pid_t)process : 0;
}

/* A file takes no time to write: an old one is of no process that lives, here or where processes have other numbers. */
static bool is_left(int folder, const char *name) {
    enum { OLD_S = 60 };
    struct stat info;
    const pid_t writer = writer_of(name);
    return writer && fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(info.st_mode) && time(NULL) - info.st_mtime > OLD_S &&
           kill(writer, 0) != 0 && errno == ESRCH;
}

/* Removes what processes left that ended while they wrote. */
static void tidy(int folder) {
    DIR *list = fdopendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list));)
        if (is_left(folder, entry->d_name)) unlinkat(folder, entry->d_name, 0);
    if (list) closedir(list);
    else close(folder);
}

/* Makes every folder of the path that is missing. */
static bool make_folders(char *path) {
    for (char *at = path + 1;; at++) {
        if (*at != '/' && *at != 0) continue;
        const char end = *at;
        *at = 0;
        const bool made = mkdir(path, 0700) == 0 || errno == EEXIST;
        *at = end;
        if (!made || !end) return made;
    }
}

bool hdi_folder_open(char *path, char *why, size_t room) {
    struct stat info;
    const int folder = make_folders(path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    why[0] = 0;
    if (folder < 0 || fstat(folder, &info) != 0) snprintf(why, room, "there can be no folder (%s)", strerror(errno));
    else if (info.st_uid != geteuid() && info.st_uid != 0)
        snprintf(why, room, "it belongs to another user, who could put files there");
    else if (info.st_mode & (S_IWGRP | S_IWOTH))
        snprintf(why, room, "others can put files there; run chmod go-w on it");
    if (why[0]) {
        if (folder >= 0) close(folder);
        return false;
    }
    if (access(path, W_OK) != 0) snprintf(why, room, "nothing can be written there (%s)", strerror(errno));
    tidy(folder);
    return true;
}

/* ---- files of the caller ---- */

hd_status hdi_file_read(const hd_allocator *allocator, const char *path, size_t most_bytes, hdi_file *out_file,
                        hd_error *error) {
    enum { PIECE_BYTES = 65536 };
    FILE *file = fopen(path, "rb");
    if (!file) return hdi_fail(error, HD_STATUS_IO, "cannot open %s", path);
    hdi_file read = { 0 };
    size_t got = 0;
    hd_status status = HD_OK;
    do {
        read.count += got;
        if (read.count > most_bytes)
            status = hdi_fail(error, HD_STATUS_LIMIT, "%s is larger than %zu MiB", path, most_bytes >> 20);
        else if (!hdi_grow(allocator, &read.data, &read.capacity, read.count + PIECE_BYTES, 1))
            status = hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to read %s", path);
    } while (!status && (got = fread(read.data + read.count, 1, PIECE_BYTES, file)) > 0);
    if (!status && ferror(file)) status = hdi_fail(error, HD_STATUS_IO, "cannot read %s", path);
    fclose(file);
    *out_file = read;
    if (status) hdi_file_free(allocator, out_file);
    return status;
}

void hdi_file_free(const hd_allocator *allocator, hdi_file *file) {
    hdi_free(allocator, file->data, file->capacity);
    *file = (hdi_file){ 0 };
}
