/* fuzz_gguf.c: any bytes as a GGUF file. What is refused must be refused with a line that names the file and the place; what
 * is accepted must be found by its names, lie within the file and write back to the same bytes (tests/llm/hostile.c judges).
 * No byte is touched twice by the system: files are memory.
 * options: -max_len=4096
 * sources: tests/llm/hostile.c */
#include "hostile.h"
#include <stdio.h>
#include <stdlib.h>

/* The corpus begins with the valid files and all variants, so that every field is there to be changed. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) {
    if (size == 0 || seed % 512 == 0) {
        const char *name, *expected;
        blob b = { 0 };
        if (seed / 512 % 4 || !hostile_variant(seed / 2048 % 128, &b, &name, &expected)) b = blob_valid(seed / 512 % 3);
        size = b.count < room ? b.count : room;
        if (size) memcpy(data, b.bytes, size);
        blob_free(&b);
    }
    return LLVMFuzzerMutate(data, size, room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hd_error error;
    const char *wrong = hostile_check(data, size, &error);
    if (wrong) {
        fprintf(stderr, "%s (%s)\n", wrong, error.text);
        abort();
    }
    return 0;
}
