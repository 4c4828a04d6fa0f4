/* files.c: a file as a whole. */
#include "base/base.h"
#include <stdio.h>

hd_status hdi_file_read(const hd_allocator *allocator, const char *path, size_t most_bytes, hdi_file *out_file, hd_error *error) {
    enum { PIECE_BYTES = 65536 };
    FILE *file = fopen(path, "rb");
    if (!file) return hdi_fail(error, HD_STATUS_IO, "cannot open %s", path);
    hdi_file read = { 0 };
    size_t got = 0;
    hd_status status = HD_OK;
    do {
        read.count += got;
        if (read.count > most_bytes) status = hdi_fail(error, HD_STATUS_LIMIT, "%s is larger than %zu MiB", path, most_bytes >> 20);
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
