/* train.h: what the commands that train share: a run with its folder of checkpoints, and what it keeps of its steps:
 * rows of a CSV file, and a page with their curve. */
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

/* A model by a config.json of Hugging Face's (train_config.c): what it does not say stays as it is. */
int train_config_read(const cli_command *command, const char *path, hd_gpt *model);

/* ---- a run (train_run.c) ---- */

enum { TRAIN_PATH = 4096 }; /* room for a path */

typedef struct train_run {
    const cli_args *args;
    cli_session     cli;
    hd_trainer_desc desc;
    hd_trainer     *trainer;
    const char     *out;           /* the run's folder */
    uint64_t        steps, first;  /* that the run ends at, and began at */
    uint64_t        save_every, keep, sample_every;
    int32_t        *tokens, *targets; /* a batch */
    train_log       log;
    uint64_t        began_ns;
    uint32_t        skipped;       /* steps in a row that changed nothing */
    /* what the command has of its own */
    void           *user;
    void          (*batch)(void *user, uint64_t step, int32_t *tokens, int32_t *targets);
    /* fills in micro-batch `number` of what is held out; false behind the last. NULL: nothing is held out */
    bool          (*held_out)(void *user, uint64_t number);
    int           (*sample)(void *user); /* where sample_every is not 0 */
    const char *const *free_options;   /* that --resume may stand beside */
    size_t          free_count;
} train_run;

/* What options of a recipe are where they are not given. */
typedef struct train_defaults {
    uint64_t steps;
    uint32_t batch;
    double   rate, beta2, weight_decay; /* beta2 is AdamW's, and no option */
} train_defaults;
/* Rows for the options of every run; the help says the defaults. */
#define TRAIN_RUN_OPTIONS(folder, usual_batch, usual_length, usual_steps, usual_rate, usual_decay) \
    { "--out", "FOLDER", "where checkpoints, log.csv and loss.html go; default: " folder }, \
    { "--resume", NULL, "go on from the newest checkpoint of the folder, to the bits of a run that never stopped" }, \
    { "--batch", "N", "sequences a step; default: " usual_batch }, \
    { "--micro-batch", "N", "sequences at once, whose gradients are added up; default: all" }, \
    { "--length", "N", "tokens of a sequence; default: " usual_length }, \
    { "--steps", "N", "default: " usual_steps }, \
    { "--rate", "X", "the highest learning rate; default: " usual_rate }, \
    { "--least-rate", "X", "the learning rate at the end; default: a tenth of --rate" }, \
    { "--warmup", "N", "steps in which the rate rises; default: a twentieth of --steps" }, \
    { "--decay", "HOW", "how the rate goes down: none, linear or cosine; default: cosine" }, \
    { "--weight-decay", "X", "of matrices and embeddings; default: " usual_decay }, \
    { "--clip", "X", "the most that the gradients' norm may be; 0: any; default: 1" }, \
    { "--dropout", "X", "default: 0" }, \
    { "--seed", "N", "the same seed gives the same run; default: 0" }, \
    { "--save-every", "N", "steps between checkpoints; 0: only at the end; default: 0" }, \
    { "--keep", "N", "newest checkpoints to keep; default: 2" }, \
    { "--quiet", NULL, "print the result only, and no more than errors besides" }, \
    CLI_OPTION_DEVICE, \
    CLI_OPTION_MATH

/* Reads the options of the run's folder; false after a message. */
bool train_run_options(const cli_args *args, const char *usual_out, train_run *out);
/* Reads the options of a recipe into the desc; false after a message. */
bool train_run_recipe(train_run *run, const train_defaults *usual);
/* Reads --precision, of which `ternary` may be one, into the desc; false after a message. */
bool train_run_precision(train_run *run, bool ternary);
bool train_get_u32(const cli_args *args, const char *name, uint32_t *inout);
/* With --resume: puts the desc of the newest checkpoint into the run, for what depends on it. */
int train_run_peek(train_run *run);
/* The path of a file of the checkpoint that the run goes on from, which may not be there. */
void train_run_file(const train_run *run, const char *name, char *out, size_t room);
/* Takes the desc of the newest checkpoint with --resume, else what `recipe` makes of the options, and makes the folder.
 * @param data a hash. */
int train_run_begin(train_run *run, uint64_t data, bool (*recipe)(void *user), void *user);
uint64_t train_hash(const void *bytes, size_t count);
/* Opens the device, tells the memory, makes the trainer, and has it go on from the checkpoint. */
int train_run_make(train_run *run, uint64_t data_bytes);
/* All steps that are left; Ctrl-C ends it early. Then a checkpoint. */
int train_run_go(train_run *run);
int train_run_report(train_run *run);
/* Puts the weights that did best on what is held out in the place of the last ones; where nothing is, these stay. */
int train_run_use_best(train_run *run);
void train_run_end(train_run *run);
#endif
