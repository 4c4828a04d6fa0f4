/* hostile.h: hostile GGUF files: files in memory with faults, memory that is counted and can fail, variants, mutations, and
 * the check that whatever is taken was understood. Used by test_gguf.c and by tests/fuzz/fuzz_gguf.c. */
#ifndef HOSTILE_H
#define HOSTILE_H

#include "llm/gguf_write.h"

/* Files in memory, by path. */
typedef struct memory_files {
    struct { const char *path; const uint8_t *bytes; uint64_t count; } files[4];
    uint32_t file_count;
    bool     no_map;
    uint64_t piece_bytes;  /* a read gives at most so many; 0: all */
    uint64_t fail_call;    /* this call (from 1) fails: open, size, read, map in turn; 0: none */
    uint64_t shrink_call;  /* from this call on every file has shrunk_bytes; 0: never */
    uint64_t shrunk_bytes;
    uint64_t calls;
    int      open_files, maps;
} memory_files;
hdl_files memory_table(memory_files *memory);

/* An allocator that counts. */
typedef struct meter {
    uint64_t live_bytes, peak_bytes, calls;
    uint64_t fail_call; /* this allocation (from 1) fails; 0: none */
    bool     from_then_on;
} meter;
hd_allocator meter_allocator(meter *m);

/* A file being put together, and where its fields lie. */
typedef struct blob {
    uint8_t *bytes;
    uint64_t count, room;
    struct { char name[24]; uint64_t at; uint32_t width; } marks[160];
    uint32_t mark_count;
} blob;
void blob_free(blob *b);
/* A small valid file with every kind of field; `form` 0..2 are different ones. */
blob blob_valid(uint32_t form);
/* A file that was refused for a reason of its own: variant `i`; its name and what the error must say. False after the last. */
bool hostile_variant(uint32_t i, blob *out_blob, const char **out_name, const char **out_expected);
/* Changes a valid file at random. */
void hostile_mutate(blob *b, uint64_t *random);
uint64_t hostile_random(uint64_t *state);

/* Opens the bytes as a model and looks at everything in it: NULL where a refusal is a proper one and what was accepted writes
 * back to the same bytes; otherwise what is wrong. `out_error` holds the refusal. */
const char *hostile_check(const uint8_t *bytes, uint64_t count, hd_error *out_error);

#endif
