/* receipt.h: a receipt tells of a run, as JSON, so that another machine can do it again and confirm it (`heddle
 * confirm`): the command, hashes of all that went in and came out, devices, drivers and kernels. */
#ifndef CLI_RECEIPT_H
#define CLI_RECEIPT_H

#include "cli/cli.h"

#define CLI_OPTION_RECEIPT                                                                                             \
    { "--receipt", "FILE.json", "write what ran and hashes of what went in and came out, for `heddle confirm`" }

/* {0}, after --receipt was not given: all calls do nothing. */
typedef struct cli_receipt {
    const cli_command *command;
    const char *path;    /* where it goes */
    json_t     *root, *arguments, *inputs, *outputs, *devices, *kernels;
    bool        ok;      /* no memory was short */
} cli_receipt;

/* Begins one where --receipt was given: the command and its options, but those that name a device or a file to
 * write. */
void cli_receipt_begin(const cli_args *args, hd_math math, cli_receipt *out);
/* What went in: a file (after a message false where it cannot be read), or bytes. */
bool cli_receipt_file(cli_receipt *r, const char *name, const char *path);
void cli_receipt_input(cli_receipt *r, const char *name, const void *bytes, size_t count);
/* What came out: bytes; or numbers, kept one by one. */
void cli_receipt_output(cli_receipt *r, const char *name, const void *bytes, size_t count);
void cli_receipt_numbers(cli_receipt *r, const char *name, const int32_t *numbers, size_t count);
/* Puts an option in place of what was given; `value` NULL: leaves it out. */
void cli_receipt_option(cli_receipt *r, const char *name, const char *value);
void cli_receipt_device(cli_receipt *r, const hd_device *device);
/* Each kernel once, and what names its SPIR-V: the same on every device. */
void cli_receipt_kernel(cli_receipt *r, const hd_timing *timing);
/* Writes and ends it; returns the exit code. */
int cli_receipt_end(cli_receipt *r);
void cli_receipt_drop(cli_receipt *r);

/* Whether a receipt may name the option: it writes no file and names no device. */
bool cli_receipt_takes(const char *option);

#endif
