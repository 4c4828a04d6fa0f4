/* files.c: files read whole, and those of the cache's folder. There, other processes write there at the same time, and
 * what lies there need not be of heddle: nothing but an ordinary file is opened, and a file is written beside its place
 * and then moved there, so that a reader sees the old one, the new one or none. */
#include "base/base.h"
#include "os/os.h"
#include <errno.h>

FILE *hdi_file_open(const char *path) {
    hdi_file_facts facts;
    const int file = hdi_os_open(path, HDI_OPEN_READ);
    const bool ordinary = file >= 0 && hdi_os_file_facts(file, &facts) && facts.kind == HDI_FILE_ORDINARY;
    FILE *stream = ordinary ? hdi_os_stream(file, "rb") : NULL;
    if (file >= 0 && !stream) hdi_os_close(file);
    return stream;
}

bool hdi_file_replace(const char *path, const hdi_piece *pieces, size_t count) {
    char beside[1100];
    /* by thread */
    const int used = snprintf(beside, sizeof beside, "%s.%ld-%p", path, hdi_os_process(), (const void *)&beside);
    if (used < 0 || (size_t)used >= sizeof beside) return errno = ENAMETOOLONG, false;
    const int number = hdi_os_open(beside, HDI_OPEN_NEW);
    FILE *file = number >= 0 ? hdi_os_stream(number, "wb") : NULL;
    bool good = file != NULL;
    for (size_t i = 0; i < count && good; i++)
        good = fwrite(pieces[i].bytes, 1, pieces[i].count, file) == pieces[i].count;
    if (file && fclose(file) != 0) good = false;
    if (good && hdi_os_rename(beside, path)) return true;
    const int why = errno;
    if (number >= 0) hdi_os_remove(beside);
    return errno = why, false;
}

/* Makes every folder of the path that is missing. */
static bool make_folders(char *path) {
    for (char *at = path + 1;; at++) {
        if (!hdi_os_is_slash(*at) && *at != 0) continue;
        const char end = *at;
        *at = 0;
        const bool made = hdi_os_make_folder(path);
        *at = end;
        if (!made || !end) return made;
    }
}

bool hdi_folder_open(char *path, char *why, size_t room) {
    if (make_folders(path)) return hdi_os_folder_open(path, why, room);
    snprintf(why, room, "there can be no folder (%s)", strerror(errno));
    return false;
}

/* ---- files of the caller ---- */

hd_status hdi_file_read(const hd_allocator *allocator, const char *path, size_t most_bytes, hdi_file *out_file,
                        hd_error *error) {
    enum { PIECE_BYTES = 65536 };
    const int number = hdi_os_open(path, HDI_OPEN_AWAIT);
    FILE *file = number >= 0 ? hdi_os_stream(number, "rb") : NULL;
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
