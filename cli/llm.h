/* llm.h: what the commands about language models share: a model, a session made from options with its progress bar, and
 * answers that come word by word with their report. */
#ifndef CLI_LLM_H
#define CLI_LLM_H

#include "cli/cli.h"
#include <heddle_llm.h>

/* ---- vectors of texts (embed.c) ---- */

/* By hd_pooling: "none", "mean", "cls", "last". */
enum { CLI_POOLINGS = HD_POOLING_LAST + 1 };
extern const char *const cli_pooling_names[CLI_POOLINGS];

/* ---- a model and its session (llm.c) ---- */

typedef struct cli_llm {
    cli_session  cli;
    hd_model    *model;
    hd_model_info info;
    hd_session_desc desc;     /* as the options say; its context is never 0 */
    hd_session  *session;
    unsigned     bar;         /* 1 + the percent that the progress bar shows; 0: there is none */
} cli_llm;

/* Rows for the options that name adapters. */
#define CLI_OPTIONS_LORA \
    { "--lora", "ADAPTER[=X]", "a GGUF file or a folder of PEFT's, X times as strong; may be given several times" }
/* Rows for the options that make a session. */
#define CLI_SESSION_OPTIONS \
    CLI_OPTIONS_LORA, \
    { "--context", "N", "tokens to keep in mind; default: what the model was made for, at most 4096" }, \
    { "--cache-type", "TYPE", "of keys and values kept: f32, f16, q8_0 or q4_0; default: f16" }, \
    { "--pieces", "N,N,...", "rows of the runs that prompts go in, the most first; default: 512,256,..., 8" }, \
    CLI_OPTION_DEVICE, \
    { "--gpu-layers", "N", "put the last N layers on the device, the others on the CPU; default: as many as fit" }, \
    { "--cpu-experts", "N", "leave experts of the first N layers to the CPU; default: as few as let the rest fit" }, \
    { "--memory", "BYTES", "most memory to take on the device, such as 6G" }, \
    { "--stream", NULL, "the other layers travel to the device for every token, in place of the CPU" }, \
    CLI_OPTION_MATH

/* For commands whose answers hd_generate makes. */
#define CLI_OPTION_DRAFT \
    { "--draft", "lookup", "guess that what came after the last words before comes again: the same text, sooner" }

/* Adapters of --lora (adapters.c). */
enum { CLI_MOST_ADAPTERS = 64 };
typedef struct cli_adapters {
    hd_adapter *adapters[CLI_MOST_ADAPTERS];
    float       strengths[CLI_MOST_ADAPTERS];
    size_t      count;
} cli_adapters;
/* Reads them; CLI_OK, or the exit code after a message. cli_adapters_close in any case. */
int cli_adapters_open(const cli_args *args, cli_session *session, const hd_model *model, cli_adapters *out);
void cli_adapters_close(cli_adapters *adapters);

/* The model that the operand names, or the one that comes with heddle, with its adapters. CLI_OK, or the exit code
 * after a message. */
int cli_llm_open(const cli_args *args, cli_llm *out_llm);
/* Reads the session's options; opens the device. */
int cli_llm_prepare(const cli_args *args, cli_llm *llm);
/* Loads the model, with a progress bar where stderr is a terminal. */
int cli_llm_load(cli_llm *llm);
void cli_llm_close(cli_llm *llm);
/* The model's path: the operand, or the model that comes with heddle. */
const char *cli_llm_path(const cli_args *args);
/* The text's tokens into `out_tokens`, which has room for *count (NULL: only counts them). */
int cli_llm_tokenize(cli_llm *llm, const char *text, size_t bytes, uint32_t flags, int32_t *out_tokens, size_t *count);
/* All of them, in memory that the caller frees, also after a failure. */
int cli_llm_take_tokens(cli_llm *llm, const char *text, size_t bytes, uint32_t flags, int32_t **out_tokens,
                        size_t *out_count);
/* A command over a text in chunks, MODEL TEXT: opens and prepares the model, with 512 where --context says nothing, and
 * calls `take_text` with all of the text's tokens, and how many whole chunks of desc.context of them --chunks lets
 * through. Each chunk begins with what a text begins with. A text shorter than a chunk is refused. */
typedef int (*cli_chunks_fn)(const cli_args *args, cli_llm *llm, const int32_t *tokens, size_t count, uint64_t chunks);
int cli_llm_run_chunks(const cli_args *args, cli_chunks_fn take_text);
#define CLI_OPTION_CHUNKS { "--chunks", "N", "only the first N chunks of the text; default: all" }
/* Lengths of prompts, for `heddle fit --prompts` (prompts.c). */
typedef struct cli_prompts {
    uint32_t *lengths;   /* free() it, also after a failure */
    size_t    count;
} cli_prompts;
/* Reads a file with one on each line. */
int cli_prompts_read(const cli_command *command, const char *path, cli_prompts *out);
/* What they take in pieces of the sizes that the session has, and of those that are best for them. @param chunk the
 * session's (hd_fit). @param root gets it as JSON; NULL: it is printed. */
int cli_prompts_tell(cli_llm *llm, const cli_prompts *prompts, uint32_t chunk, json_t *root, bool *ok);
/* The bytes that each device takes, as JSON. */
json_t *cli_llm_fit_json(const hd_fit *fit, bool *ok);
double cli_per_second(uint64_t count, uint64_t ns);

/* ---- answers (answer.c) ---- */

/* Rows for the options that say how tokens are drawn. */
#define CLI_SAMPLING_OPTIONS \
    { "--seed", "N", "the same seed gives the same text; random: another one each time, which is told; default: 0" }, \
    { "--temp", "T", "0: always the most likely token; above: more surprising; default: 0.8" }, \
    { "--top-k", "N", "only the N most likely tokens; 0: all; default: 40" }, \
    { "--top-p", "P", "only the most likely tokens that together reach this chance; default: 0.95" }, \
    { "--min-p", "P", "only tokens with this share of the best one's chance; default: 0.05" }, \
    { "--repeat-penalty", "X", "above 1: tokens said lately become less likely; default: 1" }, \
    { "--frequency-penalty", "X", "taken off for each time that a token was said lately; default: 0" }, \
    { "--presence-penalty", "X", "taken off once for a token that was said lately; default: 0" }, \
    { "--repeat-last-n", "N", "lately: the last N tokens, of the prompt and earlier turns too; default: 64" }, \
    { "--stop", "TEXT", "end before this text; may be given several times" }, \
    { "--bias", "TOKEN=X", \
      "add X to the score of a token (its id, or its text); -inf: never; may be given several times" }, \
    { "--grammar", "FORM", "the answer has this form: rules of GBNF, or a file of them" }, \
    { "--json-schema", "SCHEMA", "the answer is JSON that this schema, or one in a file, takes" }

typedef struct cli_answer {
    hd_generate_desc desc;        /* as the options say */
    const char     **stops;
    const char      *form;        /* a grammar or schema, or the file that it is in; NULL: none */
    hd_grammar_kind  form_kind;
    hd_bias         *biases;
    bool             random_seed; /* the report tells it */
    bool             silent;      /* the text is kept, and not printed as it comes */
    hd_chat_reader  *reader;      /* takes the answer apart; NULL: it is one text */
    bool             shows_thoughts; /* what is thought is printed apart from what is said, without the marks */
    bool             thought, called, ends_line; /* what was printed last */
    int32_t         *tokens;      /* what the sequence holds or is to hold: first a prompt, then its answer */
    size_t           token_room;
    size_t           prompt_count;
    hd_generated     made;
    size_t           fed;         /* tokens of the prompt that were computed for the answer */
    char            *text;        /* the answer, with an ending zero */
    size_t           text_bytes, text_room;
} cli_answer;

/* Reads the options; an answer has at most -n tokens, else `fallback`; 0: as many as the context holds. */
int cli_answer_read(const cli_args *args, uint64_t fallback, cli_answer *out);
/* The answer is taken apart from here on, as answers to conversations in this form: what is thought, said and called. A
 * call is printed as a line of JSON. `file` holds the tools, for messages; NULL: none does. */
int cli_answer_take_apart(cli_llm *llm, cli_answer *a, const hd_chat_form *form, const char *file);
/* Makes room for the tokens of the session's context; reads what needs the model: its grammar and biases. */
int cli_answer_prepare(const cli_args *args, cli_llm *llm, cli_answer *a);
/* Continues the `prompt_count` first tokens, of which the session holds `held` already: prints the text as it comes and
 * keeps it. Ctrl-C ends the answer early: made.stop is HD_STOP_CALLER then. */
int cli_answer_run(cli_llm *llm, cli_answer *a, size_t held);
void cli_answer_free(cli_answer *a);
/* Lines on stderr: how fast, where, and what fell back to what. */
void cli_answer_report(const cli_llm *llm, const cli_answer *a);
/* Says on stderr which layers or experts are not on the session's device, and why; nothing where all are. */
void cli_llm_note_elsewhere(const cli_llm *llm);

#endif
