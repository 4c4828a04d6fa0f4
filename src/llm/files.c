/* files.c: files of the operating system. Opening never waits (a pipe with no writer would) and takes
 * regular files only, so that an endless device or a folder given as a model ends in one line and not in a hang. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "llm/files.h"
#include "os/os.h"
#include <errno.h>
#include <stdio.h>
#include <time.h>

static const char *const kinds[] = { [HDI_FILE_ORDINARY] = "a file", [HDI_FILE_FOLDER] = "a folder",
                                     [HDI_FILE_PIPE] = "a pipe", [HDI_FILE_SOCKET] = "a socket",
                                     [HDI_FILE_DEVICE] = "a device" };

static hd_status refuse(hd_error *error, const char *path, const char *what, int code) {
    const char *why = code == ENOENT   ? "there is no such file"
                      : code == EACCES ? "no permission"
                      : code == EMFILE ? "too many open files"
                      : code == EISDIR ? "it is a folder"
                      : code == ELOOP  ? "its links run in a circle"
                                       : "the system refuses";
    hd_status status = hdl_fail(error, HD_STATUS_IO, "%.160s: %s: %s (errno %d)", path, what, why, code);
    if (error) error->native_code = code;
    return status;
}

static hd_status system_open(void *user, const char *path, hdl_file *out_file, hd_error *error) {
    (void)user;
    hdi_file_facts facts;
    const int file = hdi_os_open(path, HDI_OPEN_READ);
    if (file < 0) return refuse(error, path, "cannot be opened", errno);
    if (!hdi_os_file_facts(file, &facts)) {
        const int code = errno;
        hdi_os_close(file);
        return refuse(error, path, "cannot be asked for its size", code);
    }
    if (facts.kind != HDI_FILE_ORDINARY) {
        hdi_os_close(file);
        return hdl_fail(error, HD_STATUS_IO, "%.160s: is %s, not a file", path, kinds[facts.kind]);
    }
    *out_file = file;
    return HD_OK;
}

static bool system_size(void *user, hdl_file file, uint64_t *out_bytes) {
    (void)user;
    hdi_file_facts facts;
    if (!hdi_os_file_facts((int)file, &facts)) return false;
    *out_bytes = facts.bytes;
    return true;
}

static int64_t system_read(void *user, hdl_file file, uint64_t offset, void *out, size_t bytes) {
    (void)user;
    if (bytes > (size_t)1 << 30) bytes = (size_t)1 << 30;
    return hdi_os_read((int)file, offset, out, bytes);
}

static const uint8_t *system_map(void *user, hdl_file file, uint64_t bytes) {
    (void)user;
    return hdi_os_map((int)file, bytes);
}

static void system_unmap(void *user, const uint8_t *map, uint64_t bytes) {
    (void)user;
    hdi_os_unmap(map, bytes);
}

static void system_close(void *user, hdl_file file) {
    (void)user;
    hdi_os_close((int)file);
}

static void system_rest(void *user, const uint8_t *bytes, uint64_t count) {
    (void)user;
    hdi_os_rest(bytes, count);
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
    const int number = hdi_os_open(beside, HDI_OPEN_WRITE);
    FILE *file = number >= 0 ? hdi_os_stream(number, "wb") : NULL;
    hd_status status = file ? write(user, to_file, file, error) : HD_STATUS_IO;
    int code = errno;
    if (file && fclose(file) != 0 && !status) {
        code = errno;
        status = HD_STATUS_IO;
    }
    if (!status && !hdi_os_rename(beside, path)) {
        code = errno;
        status = HD_STATUS_IO;
    }
    if (status) {
        hdl_fail(error, status, "%.160s: cannot be written (errno %d)", path, code);
        if (error && status == HD_STATUS_IO && !error->native_code) error->native_code = code;
        if (file) hdi_os_remove(beside);
    }
    hdl_free(allocator, beside, room);
    return status;
}

void hdl_random_key(uint64_t out_key[2]) {
    if (hdi_os_random(out_key, 2 * sizeof *out_key)) return;
    struct timespec now = { 0 };
    clock_gettime(CLOCK_MONOTONIC, &now);
    out_key[0] = (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 30;
    out_key[1] = (uint64_t)(uintptr_t)&now ^ (uint64_t)hdi_os_process() << 40;
}
