/* fuzz_program.c: any bytes as a program's text. What is taken must print to a text that reads back to the same bytes and
 * the same hash, and every failure must name its place.
 * options: -dict=tests/fuzz/program.dict */
#include "program/program.h"
#include <stdlib.h>
#include "lines.h"

/* Every hash is a kernel's; its bindings and push constants follow from the hash. */
static bool find_kernel(void *user, uint64_t hash, hdi_custom *out_custom) {
    (void)user;
    static int kernel;
    out_custom->kernel = (struct hdi_user_kernel *)(void *)&kernel;
    out_custom->kernel_bindings = (uint32_t)(hash % 16) + 1;
    out_custom->kernel_push_bytes = (uint32_t)(hash / 16 % 33) * 4;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hd_error error = { 0 };
    hd_program *p = hdi_program_new(&hdi_default_allocator, NULL);
    if (!p) return 0;
    hd_status status = hdi_program_parse(p, (const char *)data, size, find_kernel, NULL, &error);
    if (status != error.status || status != p->error.status || (status && strncmp(error.text, "line ", 5) != 0)) abort();
    if (status == HD_OK) {
        keep_text(data, size);
        hdi_text first = { .allocator = &hdi_default_allocator }, second = first;
        hd_program *again = hdi_program_new(&hdi_default_allocator, NULL);
        hdi_program_print(p, &first);
        if (!again || hdi_program_parse(again, first.bytes, first.count, find_kernel, NULL, NULL)) abort();
        hdi_program_print(again, &second);
        if (first.count != second.count || memcmp(first.bytes, second.bytes, first.count) != 0) abort();
        if (hdi_program_hash(p) != hdi_program_hash(again)) abort();
        if (hdi_program_check(p, NULL) != hdi_program_check(again, NULL)) abort();
        hdi_text_free(&first);
        hdi_text_free(&second);
        hdi_program_free(again);
    }
    hdi_program_free(p);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) { return change_line(data, size, room, seed); }
