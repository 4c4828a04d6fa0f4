/* lines.h: changes of texts that are read line by line. Most are within one line, any of them, and many begin with a text that was
 * taken before: so what stands before the change is read first, and not most texts end at their first line. */
#ifndef FUZZ_LINES_H
#define FUZZ_LINES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);

enum { LINES_LONGEST = 200, LINES_TEXTS = 16, LINES_BYTES = 16384 };

static struct { uint8_t bytes[LINES_BYTES]; size_t size; } lines_taken[LINES_TEXTS];
static size_t lines_taken_count;

/* Of a text that was taken. */
static inline void keep_text(const uint8_t *data, size_t size) {
    if (size > LINES_BYTES) return;
    const size_t at = lines_taken_count++ % LINES_TEXTS;
    memcpy(lines_taken[at].bytes, data, size);
    lines_taken[at].size = size;
}

/* Changes what stands from `begin` to `end`, and nothing else. */
static inline size_t change_part(uint8_t *data, size_t size, size_t room, size_t begin, size_t end) {
    uint8_t part[2 * LINES_LONGEST];
    const size_t count = end - begin < LINES_LONGEST ? end - begin : LINES_LONGEST;
    size_t most = count + (room - size);
    if (most > sizeof part) most = sizeof part;
    if (most == 0) return LLVMFuzzerMutate(data, size, room);
    memcpy(part, data + begin, count);
    const size_t changed = LLVMFuzzerMutate(part, count, most);
    memmove(data + begin + changed, data + begin + count, size - begin - count);
    memcpy(data + begin, part, changed);
    return size - count + changed;
}

static inline size_t change_line(uint8_t *data, size_t size, size_t room, unsigned seed) {
    if (size == 0 || size > room || seed % 8 == 0) return LLVMFuzzerMutate(data, size, room);
    const size_t kept = lines_taken_count < LINES_TEXTS ? lines_taken_count : LINES_TEXTS, from = kept ? seed / 32 % kept : 0;
    if (kept && seed / 8 % 4 == 0 && lines_taken[from].size && lines_taken[from].size <= room) {
        size = lines_taken[from].size;
        memcpy(data, lines_taken[from].bytes, size);
    }
    size_t begin = seed / 8 % size, end = begin;
    while (begin > 0 && data[begin - 1] != '\n') begin--;
    while (end < size && data[end] != '\n') end++;
    return change_part(data, size, room, begin, end);
}

#endif
