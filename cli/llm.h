/* llm.h: what the commands about language models share: a model, a session made from options, its progress bar and report. */
#ifndef CLI_LLM_H
#define CLI_LLM_H

#include "cli/cli.h"
#include <heddle_llm.h>

typedef struct cli_llm {
    cli_session  cli;
    hd_model    *model;
    hd_model_info info;
    hd_session_desc desc;     /* as the options say */
    hd_session  *session;
    bool         bar;         /* a progress bar is on the terminal */
} cli_llm;

/* Rows for the options that make a session. */
#define CLI_SESSION_OPTIONS \
    { "--context", "N", "tokens to keep in mind; default: what the model was made for, at most 4096" }, \
    CLI_OPTION_DEVICE, \
    { "--gpu-layers", "N", "put the last N layers on the device, the others on the CPU; default: as many as fit" }, \
    { "--memory", "BYTES", "most memory to take on the device, such as 6G" }, \
    CLI_OPTION_MATH

/* The model that the operand names, or the one that comes with heddle. CLI_OK, or the exit code after a message. */
int cli_llm_open(const cli_args *args, cli_llm *out_llm);
/* Reads the session's options; opens the device. */
int cli_llm_prepare(const cli_args *args, cli_llm *llm);
/* Loads the model, with a progress bar where stderr is a terminal. */
int cli_llm_load(cli_llm *llm);
void cli_llm_close(cli_llm *llm);
/* The model's path: the operand, or the model that comes with heddle. */
const char *cli_llm_path(const cli_args *args);
/* The bytes that each device takes, as JSON. */
json_t *cli_llm_fit_json(const hd_fit *fit, bool *ok);
double cli_per_second(uint64_t count, uint64_t ns);

#endif
