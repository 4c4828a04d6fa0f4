/* fuzz_caps.c: any bytes as a device's description. What is taken prints to a text that reads back the same; every failure
 * names its line.
 * options: -max_len=4096 */
#include "facts/caps.h"
#include <stdlib.h>
#include "lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hdi_caps caps = { 0 }, again = { 0 };
    hd_error error = { 0 };
    hdi_text text = { .allocator = &hdi_default_allocator };
    hd_status status = hdi_caps_parse((const char *)data, size, &caps, &error);
    if (status != error.status || (status && strncmp(error.text, "line ", 5) != 0)) abort();
    if (status) return 0;
    keep_text(data, size);
    hdi_caps_print(&caps, &text);
    if (hdi_caps_parse(text.bytes, text.count, &again, &error)) abort();
    if (strcmp(caps.name, again.name) != 0) abort();
#define SAME(field, meaning) if (caps.field != again.field) abort();
    HDI_CAPS_LIST(SAME)
#undef SAME
    if (memcmp(&caps.choices, &again.choices, sizeof caps.choices) != 0) abort();
    hdi_text_free(&text);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) { return change_line(data, size, room, seed); }
