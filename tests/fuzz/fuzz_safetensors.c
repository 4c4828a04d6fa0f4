/* fuzz_safetensors.c: any bytes as a safetensors file: refused, or understood to the last byte (safetensors_check.h judges).
 * options: -max_len=4096
 * sources: src/train/safetensors.c src/train/support.c src/train/support_posix.c -ljansson */
#include "tests/train/safetensors_check.h"
#include <stdio.h>
#include <stdlib.h>
#include "lines.h"

/* In place of a context's. */
hd_status hd_context_put_error(hd_context *context, const hd_error *error) { (void)context; return error->status; }
static void *resize(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    (void)user, (void)old_bytes;
    if (new_bytes > 0) return realloc(old, new_bytes);
    free(old);
    return NULL;
}
hd_allocator hd_context_allocator(const hd_context *context) { (void)context; return (hd_allocator){ .resize = resize }; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hd_status status;
    const char *wrong = safetensors_wrong(NULL, data, size, &status);
    if (wrong) {
        fprintf(stderr, "%s\n", wrong);
        abort();
    }
    return 0;
}

/* Most changes are of a piece of the header, whose length is told as it is then. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) {
    uint64_t header = 0;
    if (size >= 8) memcpy(&header, data, 8);
    if (size > room || header == 0 || header > size - 8 || seed % 8 == 0) return LLVMFuzzerMutate(data, size, room);
    const size_t begin = 8 + seed / 8 % (size_t)header;
    const size_t end = begin + 16 < 8 + header ? begin + 16 : 8 + (size_t)header, changed = change_part(data, size, room, begin, end);
    header = header + changed - size;
    memcpy(data, &header, 8);
    return changed;
}
