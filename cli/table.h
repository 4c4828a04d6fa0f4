/* table.h: what a benchmark measured, as rows of one form: written as CSV (RFC 4180) and JSON lines, read back from
 * CSV. The columns are explained in docs/bench.md. Files come from outside: every size is checked, and a refusal says
 * where and why. Knows nothing of heddle. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>

struct text; /* text.h */

/* Every column, in the order of the file. A text that is not known is ""; a number that is not known is NaN: an empty
 * cell. */
#define TABLE_COLUMNS(TEXT, NUMBER)                                                                                    \
    TEXT(bench)                                                                                                        \
    TEXT(time) TEXT(heddle) TEXT(machine) TEXT(os) TEXT(cpu) NUMBER(threads) TEXT(device) TEXT(device_name) TEXT(kind) \
        TEXT(backend) TEXT(driver) TEXT(op) TEXT(type) TEXT(size) NUMBER(elements) NUMBER(bytes) NUMBER(flops)         \
            TEXT(counted) NUMBER(submissions) NUMBER(samples) NUMBER(median_ns) NUMBER(p90_ns) NUMBER(min_ns)          \
                NUMBER(max_ns) NUMBER(first_ns) NUMBER(peak_flops_per_s) NUMBER(peak_bytes_per_s) NUMBER(staging_hits) \
                    NUMBER(staging_requests) NUMBER(plan_hits) NUMBER(plan_requests) NUMBER(kernel_hits)               \
                        NUMBER(kernel_requests) NUMBER(clock_before_mhz) NUMBER(clock_after_mhz) NUMBER(temperature_c) \
                            NUMBER(throttled) TEXT(flag) NUMBER(synthetic)

typedef struct table_row {
#define TABLE_TEXT(name)   const char *name;
#define TABLE_NUMBER(name) double name;
    TABLE_COLUMNS(TABLE_TEXT, TABLE_NUMBER)
#undef TABLE_TEXT
#undef TABLE_NUMBER
} table_row;

/* A row in which nothing is known. */
table_row table_row_empty(void);

/* Writing. Bytes that are no UTF-8, and control characters, become '?' and spaces. */
void table_add_heading(struct text *to);
void table_add_csv(struct text *to, const table_row *row);
void table_add_json(struct text *to, const table_row *row); /* one object on one line */

#define TABLE_WHY 256 /* room for a reason, with its ending zero */

typedef struct table {
    table_row *rows;
    size_t     row_count;
    char      *text; /* where the rows' texts are */
} table;

/* Reads CSV with a heading. Columns may stand in any order; unknown ones are passed over, and those that are not there
 * are empty but for bench, device, op and median_ns, which must be there. Takes `text` over, whatever comes of it:
 * `bytes` bytes from malloc and an ending zero. False: `why` says in one line what is wrong and where. */
bool table_parse(char *text, size_t bytes, table *out_table, char why[TABLE_WHY]);
void table_free(table *t);

#endif
