/* fuzz_table.c: any bytes as a file of measurements. What is taken is written and read back as the same rows; every refusal
 * says why.
 * options: -max_len=4096 */
#define _GNU_SOURCE
#include "cli/table.h"
#include "cli/text.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include "lines.h"
#include <string.h>

static void compare(const table_row *a, const table_row *b) {
#define TEXT(name)   if (strlen(a->name) != strlen(b->name)) abort(); /* a control character becomes a space */
#define NUMBER(name) if (isnan(a->name) ? !isnan(b->name) : a->name != b->name) abort();
    TABLE_COLUMNS(TEXT, NUMBER)
#undef TEXT
#undef NUMBER
}

static void write_and_read(const table *read) {
    char why[TABLE_WHY];
    text to = { 0 };
    table again;
    table_add_heading(&to);
    for (size_t i = 0; i < read->row_count; i++) table_add_csv(&to, &read->rows[i]);
    if (to.failed || !table_parse(to.data, to.length, &again, why) || again.row_count != read->row_count) abort();
    for (size_t i = 0; i < read->row_count; i++) compare(&read->rows[i], &again.rows[i]);
    table_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char why[TABLE_WHY] = "", *text = malloc(size + 1);
    table read;
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    if (!table_parse(text, size, &read, why)) {
        if (!why[0] || !memchr(why, 0, TABLE_WHY)) abort();
        return 0;
    }
    keep_text(data, size);
    write_and_read(&read);
    table_free(&read);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) { return change_line(data, size, room, seed); }
