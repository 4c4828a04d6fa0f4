/* files.c: files of the operating system. Relies on POSIX. Opening never waits (a pipe with no writer would) and takes
 * regular files only, so that an endless device or a folder given as a model ends in one line and not in a hang. */
#define _DEFAULT_SOURCE /* getentropy */
#define _FILE_OFFSET_BITS 64
#include "llm/files.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *kind_of(mode_t mode) {
    if (S_ISDIR(mode)) return "a folder";
    if (S_ISFIFO(mode)) return "a pipe";
    if (S_ISSOCK(mode)) return "a socket";
    return "a device";
}

static hd_status refuse(hd_error *error, const char *path, const char *what, int code) {
    const char *why = code == ENOENT ? "there is no such file" : code == EACCES ? "no permission" : code == EMFILE
                      ? "too many open files"
                    : code == ELOOP ? "its links run in a circle" : "the system refuses";
    hd_status status = hdl_fail(error, HD_STATUS_IO, "%.160s: %s: %s (errno %d)", path, what, why, code);
    if (error) error->native_code = code;
    return status;
}

static hd_status system_open(void *user, const char *path, hdl_file *out_file, hd_error *error) {
    (void)user;
    int file;
    do file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (file < 0 && errno == EINTR);
    if (file < 0) return refuse(error, path, "cannot be opened", errno);
    struct stat facts;
    if (fstat(file, &facts) != 0) {
        const int code = errno;
        close(file);
        return refuse(error, path, "cannot be asked for its size", code);
    }
    if (!S_ISREG(facts.st_mode)) {
        close(file);
        return hdl_fail(error, HD_STATUS_IO, "%.160s: is %s, not a file", path, kind_of(facts.st_mode));
    }
    *out_file = file;
    return HD_OK;
}

static bool system_size(void *user, hdl_file file, uint64_t *out_bytes) {
    (void)user;
    struct stat facts;
    if (fstat((int)file, &facts) != 0 || facts.st_size < 0) return false;
    *out_bytes = (uint64_t)facts.st_size;
    return true;
}

static int64_t system_read(void *user, hdl_file file, uint64_t offset, void *out, size_t bytes) {
    (void)user;
    if (offset > INT64_MAX) return -1;
    if (bytes > (size_t)1 << 30) bytes = (size_t)1 << 30;
    ssize_t count;
    do count = pread((int)file, out, bytes, (off_t)offset);
    while (count < 0 && errno == EINTR);
    return count;
}

static const uint8_t *system_map(void *user, hdl_file file, uint64_t bytes) {
    (void)user;
    if (bytes == 0 || bytes > SIZE_MAX / 2) return NULL;
    void *map = mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, (int)file, 0);
    return map == MAP_FAILED ? NULL : map;
}

static void system_unmap(void *user, const uint8_t *map, uint64_t bytes) {
    (void)user;
    union { const uint8_t *read_only; void *plain; } pointer = { map };
    munmap(pointer.plain, (size_t)bytes);
}

static void system_close(void *user, hdl_file file) {
    (void)user;
    close((int)file);
}

static void system_rest(void *user, const uint8_t *bytes, uint64_t count) {
    (void)user;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = ((uintptr_t)bytes + page - 1) / page * page;
    /* whole pages only: the others are shared with neighbours */
    const uintptr_t end = ((uintptr_t)bytes + (uintptr_t)count) / page * page;
    if (end > first) madvise((void *)first, end - first, MADV_DONTNEED);
}

const hdl_files hdl_system_files = { NULL,       system_open,  system_size,  system_read,
                                     system_map, system_unmap, system_close, system_rest };

bool hdl_files_read_all(const hdl_files *files, hdl_file file, uint64_t offset, void *out, uint64_t bytes) {
    uint8_t *at = out;
    while (bytes > 0) {
        const size_t piece = bytes > (uint64_t)1 << 30 ? (size_t)1 << 30 : (size_t)bytes;
        const int64_t count = files->read(files->user, file, offset, at, piece);
        if (count <= 0 || (uint64_t)count > piece) return false;
        at += count;
        offset += (uint64_t)count;
        bytes -= (uint64_t)count;
    }
    return true;
}

static bool to_file(void *user, const void *from, uint64_t count) {
    return fwrite(from, 1, (size_t)count, user) == count;
}

hd_status hdl_write_file(const hd_allocator *allocator, const char *path, hdl_write write, void *user,
                         hd_error *error) {
    const size_t room = strlen(path) + sizeof ".part";
    char *beside = hdl_alloc(allocator, room);
    if (!beside) return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "%.160s: no memory to write it", path);
    snprintf(beside, room, "%s.part", path);
    FILE *file = fopen(beside, "wb");
    hd_status status = file ? write(user, to_file, file, error) : HD_STATUS_IO;
    int code = errno;
    if (file && fclose(file) != 0 && !status) {
        code = errno;
        status = HD_STATUS_IO;
    }
    if (!status && rename(beside, path) != 0) {
        code = errno;
        status = HD_STATUS_IO;
    }
    if (status) {
        hdl_fail(error, status, "%.160s: cannot be written (errno %d)", path, code);
        if (error && status == HD_STATUS_IO && !error->native_code) error->native_code = code;
        if (file) remove(beside);
    }
    hdl_free(allocator, beside, room);
    return status;
}

void hdl_random_key(uint64_t out_key[2]) {
    if (getentropy(out_key, 2 * sizeof *out_key) == 0) return;
    struct timespec now = { 0 };
    clock_gettime(CLOCK_MONOTONIC, &now);
    out_key[0] = (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 30;
    out_key[1] = (uint64_t)(uintptr_t)&now ^ (uint64_t)getpid() << 40;
}
