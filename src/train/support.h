/* support.h: what the files of train/ stand on: errors, host memory, files. The room uses the library from outside
 * (<heddle.h> and <heddle_train.h> only). */
#ifndef HDT_SUPPORT_H
#define HDT_SUPPORT_H

#include <heddle_train.h>

#if defined(__MINGW32__)
#  define HDT_PRINTF(format_at, first_at) __attribute__((format(gnu_printf, format_at, first_at)))
#elif defined(__GNUC__)
#  define HDT_PRINTF(format_at, first_at) __attribute__((format(printf, format_at, first_at)))
#else
#  define HDT_PRINTF(format_at, first_at)
#endif
#define HDT_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Puts the failure on the context, one line in which what is no printing ASCII character becomes '?'; returns
 * `status`. */
hd_status hdt_fail(hd_context *context, hd_status status, const char *format, ...) HDT_PRINTF(3, 4);
hd_status hdt_no_memory(hd_context *context);
/* "PATH cannot be WHAT", and why, by errno. */
hd_status hdt_fail_io(hd_context *context, const char *what, const char *path);

/* `count` zeroed items, by the context's allocator; NULL without memory or where the size overflows. hdt_free takes the
 * same numbers. */
void *hdt_alloc(hd_context *context, uint64_t count, uint64_t item_bytes);
void hdt_free(hd_context *context, void *items, uint64_t count, uint64_t item_bytes);

enum { HDT_PATH_ROOM = 4096 }; /* of a path with its end */

/* A file that is read in place. */
typedef struct hdt_map {
    const uint8_t *bytes;
    uint64_t       count;
} hdt_map;
hd_status hdt_map_open(hd_context *context, const char *path, hdt_map *out_map);
void hdt_map_close(hdt_map *map);

/* Bytes of a file to be written. */
typedef struct hdt_piece {
    const void *bytes;
    uint64_t    count;
} hdt_piece;
/* Writes the pieces one after the other as a new file, down to the disk. */
hd_status hdt_write_file(hd_context *context, const char *path, const hdt_piece *pieces, size_t count);
/* Gives what is at `from` the name `to` and makes that last: whole or not at all. */
hd_status hdt_rename(hd_context *context, const char *from, const char *to);
/* A folder; one that is there is fine. */
hd_status hdt_make_folder(hd_context *context, const char *path);
bool hdt_is_there(const char *path);
/* Removes a folder and the files in it; best effort. */
void hdt_remove_folder(const char *path);

/* Where row `row` of a GGUF file's weight lies in transformers', of heads whose neighbours turn: within a head GGUF has
 * the two halves in turn. `heads` 0: in its place. */
uint64_t hdt_row_in_transformers(uint64_t row, uint64_t rows, uint32_t heads);

/* Random words on the host: Philox4x32-10, as hd_random draws them on devices. */
void hdt_random(const uint32_t counter[4], uint64_t seed, uint32_t out_words[4]);

#endif
