/* fuzz_safetensors.c: any bytes as a safetensors file: refused, or understood to the last byte (safetensors_check.h judges).
 * options: -max_len=4096
 * sources: src/train/safetensors.c src/train/support.c src/train/support_posix.c -ljansson */
#include "tests/train/safetensors_check.h"
#include <stdio.h>
#include <stdlib.h>

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
