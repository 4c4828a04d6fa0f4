/* files.h: how the room reaches files: a table of functions, so that tests can put a fault or plain memory in their
 * place. */
#ifndef HDL_FILES_H
#define HDL_FILES_H

#include "llm/support.h"

/* An open file: whatever its table makes of the number. */
typedef int64_t hdl_file;

typedef struct hdl_files {
    void *user;
    /* Opens a regular file for reading; never waits. Statuses: IO, with the reason in `error`. */
    hd_status (*open)(void *user, const char *path, hdl_file *out_file, hd_error *error);
    /* The file's length now; false where it cannot be told. */
    bool (*size)(void *user, hdl_file file, uint64_t *out_bytes);
    /* Reads up to `bytes` (at least 1) at `offset`: how many came, 0 at the end of the file, negative on failure. */
    int64_t (*read)(void *user, hdl_file file, uint64_t offset, void *out, size_t bytes);
    /* The file's first `bytes` bytes as memory that nobody writes through, or NULL where it cannot be mapped. */
    const uint8_t *(*map)(void *user, hdl_file file, uint64_t bytes);
    void (*unmap)(void *user, const uint8_t *map, uint64_t bytes);
    void (*close)(void *user, hdl_file file);
    /* Tells that these bytes of a mapping are not needed at present: their memory may go, and comes back when they are
     * read. NULL: nobody is told. */
    void (*rest)(void *user, const uint8_t *bytes, uint64_t count);
} hdl_files;

/* The operating system's. A folder, pipe, socket or device is no regular file and is refused. Links are followed. */
extern const hdl_files hdl_system_files;

/* Fills `out` with all `bytes` bytes at `offset`, over short reads. False where the file ends before or reading
 * fails. */
bool hdl_files_read_all(const hdl_files *files, hdl_file file, uint64_t offset, void *out, uint64_t bytes);
/* Takes bytes in order; false ends the writing. */
typedef bool (*hdl_sink)(void *user, const void *bytes, uint64_t count);
/* Gives a file's bytes to the sink; IO where the sink took nothing. */
typedef hd_status (*hdl_write)(void *user, hdl_sink sink, void *to, hd_error *error);
/* Writes a file: first beside it (".part"), then renamed, so that no half of one ever stands under its name. Statuses:
 * those of `write`, IO, OUT_OF_HOST_MEMORY. */
hd_status hdl_write_file(const hd_allocator *allocator, const char *path, hdl_write write, void *user, hd_error *error);
/* Bits that nobody outside of the process can guess, as far as the system has them. */
void hdl_random_key(uint64_t out_key[2]);

#endif
