/* train.h: what `heddle train` keeps of its steps: rows of a CSV file, and a page with their curve. */
#ifndef CLI_TRAIN_H
#define CLI_TRAIN_H

#include "cli/cli.h"
#include <heddle_train.h>

typedef struct train_row {
    hd_train_report report;
    double          tokens_per_second;
    float           held_out; /* loss on text that is not trained on; NaN: not measured then */
} train_row;

typedef struct train_log {
    const cli_command *command;
    char      *csv, *page; /* paths */
    train_row *rows;
    size_t     count, room;
} train_log;

/* Takes the rows of a run's folder that stand before `step`; a new run's folder has none. */
int train_log_begin(const cli_command *command, const char *folder, uint64_t step, train_log *out);
int train_log_add(train_log *log, const train_row *row);
/* Writes both files, each whole. */
int train_log_save(const train_log *log);
void train_log_free(train_log *log);
#endif
