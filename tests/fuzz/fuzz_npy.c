/* fuzz_npy.c: any bytes as a .npy file. What is taken has as many bytes as its shape and type say; every failure says why.
 * options: -max_len=4096 */
#define _GNU_SOURCE
#include "cli/npy.h"
#include <stdlib.h>
#include <string.h>
#include "lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char why[NPY_WHY] = "";
    npy_array array;
    FILE *file = size ? fmemopen((void *)(uintptr_t)data, size, "rb") : NULL;
    if (!file) return 0;
    if (npy_read(file, &array, why)) {
        uint64_t bytes = array.item_bytes;
        if (!strchr("fiub", array.kind) || array.shape.rank > HD_MAX_RANK) abort();
        for (uint32_t i = 0; i < array.shape.rank; i++) bytes *= (uint64_t)array.shape.dims[i];
        if (bytes != array.bytes || array.bytes > size) abort();
        npy_free(&array);
    } else if (!why[0] || !memchr(why, 0, NPY_WHY)) {
        abort();
    }
    fclose(file);
    return 0;
}

/* Most changes are behind what every such file begins with. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) {
    enum { SAME = 10 };
    if (size <= SAME || size > room || seed % 8 == 0) return LLVMFuzzerMutate(data, size, room);
    return SAME + LLVMFuzzerMutate(data + SAME, size - SAME, room - SAME);
}
