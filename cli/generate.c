/* generate.c: `heddle generate`: continues a text, streaming. Ctrl-C ends the answer, not the report. */
#define _POSIX_C_SOURCE 200809L
#include "cli/llm.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPT_LIMIT = 64 << 20 };
#define DEMO_PROMPT "In the beginning"

static volatile sig_atomic_t interrupted;
static void interrupt(int signal_number) {
    interrupted = 1;
    signal(signal_number, SIG_DFL); /* the second one ends the program */
}

/* What is to be generated, and what came of it. */
typedef struct job {
    cli_llm      llm;
    bool         json, quiet;
    char        *text;          /* the prompt's, from a file; else NULL */
    const char  *prompt;
    size_t       prompt_bytes;
    int32_t     *tokens;        /* the prompt's, then the answer's */
    size_t       token_count;
    hd_generate_desc desc;
    const char **stops;
    hd_generated made;
    char        *answer;        /* for JSON */
    size_t       answer_bytes, answer_room;
} job;

static bool show(void *user, const char *text, size_t bytes) {
    job *j = user;
    if (!j->json) {
        fwrite(text, 1, bytes, stdout);
        fflush(stdout);
        return !interrupted;
    }
    if (j->answer_bytes + bytes + 1 > j->answer_room) {
        const size_t room = 2 * (j->answer_room + bytes + 1);
        char *grown = realloc(j->answer, room);
        if (!grown) return false;
        j->answer = grown;
        j->answer_room = room;
    }
    memcpy(j->answer + j->answer_bytes, text, bytes);
    j->answer_bytes += bytes;
    j->answer[j->answer_bytes] = 0;
    return !interrupted;
}

/* ---- options ---- */

static int read_sampling(const cli_args *args, job *j) {
    uint64_t seed, top_k, max_tokens;
    double temperature, top_p, min_p, penalty;
    if (!cli_get_number(args, "--seed", 0, INT64_MAX, 0, &seed) || !cli_get_fraction(args, "--temp", 0, 100, 0.8, &temperature) ||
        !cli_get_number(args, "--top-k", 0, 1u << 20, 40, &top_k) || !cli_get_fraction(args, "--top-p", 0, 1, 0.95, &top_p) ||
        !cli_get_fraction(args, "--min-p", 0, 1, 0.05, &min_p) || !cli_get_fraction(args, "--repeat-penalty", 0.01, 100, 1, &penalty) ||
        !cli_get_number(args, "-n", 1, 1u << 24, 128, &max_tokens)) return CLI_USAGE;
    j->desc.sampling = (hd_sampling){ .seed = seed, .temperature = (float)temperature, .top_k = (uint32_t)top_k, .top_p = (float)top_p,
                                      .min_p = (float)min_p, .repeat_penalty = (float)penalty };
    j->desc.max_tokens = (uint32_t)max_tokens;
    j->desc.ignore_end = cli_get(args, "--ignore-end") != NULL;
    j->json = cli_get(args, "--json") != NULL;
    j->quiet = cli_get(args, "--quiet") != NULL;
    j->stops = calloc(args->given_count + 1, sizeof *j->stops);
    if (!j->stops) return cli_fail(args->command, "no memory is left");
    const char *stop;
    for (size_t at = 0; (stop = cli_next(args, "--stop", &at));) j->stops[j->desc.stop_count++] = stop;
    j->desc.stop_texts = j->stops;
    return CLI_OK;
}

static int read_prompt(const cli_args *args, job *j) {
    const char *text = cli_get(args, "-p"), *file = cli_get(args, "-f");
    if (text && file) return cli_usage(args->command, "takes -p or -f, not both");
    if (!text && !file && args->operand) return cli_usage(args->command, "needs a prompt: -p TEXT or -f FILE");
    j->prompt = text ? text : DEMO_PROMPT;
    j->prompt_bytes = strlen(j->prompt);
    if (!file) return CLI_OK;
    j->prompt = j->text = cli_read_text(args->command, file, PROMPT_LIMIT, &j->prompt_bytes);
    return j->text ? CLI_OK : CLI_FAILED;
}

static int tokenize(job *j) {
    size_t count = 0;
    if (hd_model_tokenize(j->llm.model, j->prompt, j->prompt_bytes, HD_TOKENIZE_ADD_SPECIAL, NULL, &count)) return cli_session_fail(&j->llm.cli, NULL);
    if (count == 0) return cli_usage(j->llm.cli.command, "the prompt is empty, and this model begins with no token of its own");
    j->tokens = calloc(count + j->desc.max_tokens, sizeof *j->tokens);
    if (!j->tokens) return cli_fail(j->llm.cli.command, "no memory is left");
    j->token_count = count;
    if (hd_model_tokenize(j->llm.model, j->prompt, j->prompt_bytes, HD_TOKENIZE_ADD_SPECIAL, j->tokens, &count)) return cli_session_fail(&j->llm.cli, NULL);
    return CLI_OK;
}

/* ---- the report ---- */

static const char *why(hd_stop stop) {
    static const char *const names[] = { "none", "end", "length", "context", "text", "interrupted" };
    return names[stop];
}

static void report(job *j) {
    hd_session_stats stats;
    hd_fit fit;
    cli_cell device_bytes, cpu_bytes, load;
    hd_session_get_stats(j->llm.session, &stats);
    hd_session_get_fit(j->llm.session, &fit);
    fprintf(stderr, "\nheddle: prompt %zu tokens, %.1f tokens/s; answer %u tokens, %.1f tokens/s, ended by %s\n", j->token_count,
            cli_per_second(j->token_count, j->made.prompt_ns), (unsigned)j->made.token_count, cli_per_second(j->made.token_count, j->made.answer_ns), why(j->made.stop));
    fprintf(stderr, "heddle: %s: %u layers, %s", hd_device_get_info(hd_session_device(j->llm.session))->name, (unsigned)(fit.device_layers ? fit.device_layers : fit.cpu_layers),
            cli_bytes(fit.device_layers ? fit.device_bytes : fit.cpu_bytes, device_bytes));
    if (fit.device_layers && fit.cpu_layers) fprintf(stderr, "; CPU: %u layers, %s", (unsigned)fit.cpu_layers, cli_bytes(fit.cpu_bytes, cpu_bytes));
    fprintf(stderr, "; loaded in %s; one submission a token, %u levels, %llu of %llu runs recorded\n", cli_time(stats.load_ns, load), (unsigned)stats.decode_levels,
            (unsigned long long)stats.recorded, (unsigned long long)stats.submissions);
}

static int report_json(job *j) {
    bool ok = true;
    hd_session_stats stats;
    hd_fit fit;
    hd_session_get_stats(j->llm.session, &stats);
    hd_session_get_fit(j->llm.session, &fit);
    json_t *root = json_object(), *ids = json_array();
    for (uint32_t i = 0; i < j->made.token_count; i++)
        if (json_array_append_new(ids, json_integer(j->tokens[j->token_count + i]))) ok = false;
    cli_put(root, "prompt", cli_json_text(j->prompt), &ok);
    cli_put(root, "text", cli_json_text(j->answer ? j->answer : ""), &ok);
    cli_put(root, "tokens", ids, &ok);
    cli_put(root, "stop", json_string(why(j->made.stop)), &ok);
    cli_put(root, "prompt_tokens", json_integer((json_int_t)j->token_count), &ok);
    cli_put(root, "prompt_tokens_per_second", json_real(cli_per_second(j->token_count, j->made.prompt_ns)), &ok);
    cli_put(root, "answer_tokens_per_second", json_real(cli_per_second(j->made.token_count, j->made.answer_ns)), &ok);
    cli_put(root, "load_ns", json_integer((json_int_t)stats.load_ns), &ok);
    cli_put(root, "submissions", json_integer((json_int_t)stats.submissions), &ok);
    cli_put(root, "recorded", json_integer((json_int_t)stats.recorded), &ok);
    cli_put(root, "decode_levels", json_integer(stats.decode_levels), &ok);
    cli_put(root, "decode_dispatches", json_integer(stats.decode_dispatches), &ok);
    cli_put(root, "device", json_string(hd_device_get_info(hd_session_device(j->llm.session))->id), &ok);
    cli_put(root, "memory", cli_llm_fit_json(&fit, &ok), &ok);
    return cli_print_json(j->llm.cli.command, root, ok);
}

/* ---- the command ---- */

static int generate(const cli_args *args, job *j) {
    int code = cli_llm_open(args, &j->llm);
    if (!code) code = tokenize(j);
    if (!code) code = cli_llm_prepare(args, &j->llm);
    if (!code) code = cli_llm_load(&j->llm);
    if (code) return code;
    j->desc.tokens = j->tokens;
    j->desc.token_count = j->token_count;
    j->desc.on_text = show;
    j->desc.user = j;
    signal(SIGINT, interrupt);
    if (!j->json && !j->quiet) fwrite(j->prompt, 1, j->prompt_bytes, stdout);
    const hd_status status = hd_generate(j->llm.session, &j->desc, j->tokens + j->token_count, &j->made);
    signal(SIGINT, SIG_DFL);
    if (!j->json) {
        putchar('\n');
        fflush(stdout);
    }
    if (status) return cli_session_fail(&j->llm.cli, NULL);
    if (j->json) return report_json(j);
    if (!j->quiet) report(j);
    return CLI_OK;
}

static int run(const cli_args *args) {
    job j = { 0 };
    int code = read_sampling(args, &j);
    if (!code) code = read_prompt(args, &j);
    if (!code) code = generate(args, &j);
    cli_llm_close(&j.llm);
    free(j.text);
    free(j.tokens);
    free(j.stops);
    free(j.answer);
    return code;
}

static const cli_option options[] = {
    { "-p", "TEXT", "the text to continue" },
    { "-f", "FILE", "a file with the text to continue" },
    { "-n", "N", "most tokens to add; default: 128" },
    { "--seed", "N", "the same seed gives the same text; default: 0" },
    { "--temp", "T", "0: always the most likely token; above: more surprising; default: 0.8" },
    { "--top-k", "N", "only the N most likely tokens; 0: all; default: 40" },
    { "--top-p", "P", "only the most likely tokens that together reach this chance; default: 0.95" },
    { "--min-p", "P", "only tokens with this share of the best one's chance; default: 0.05" },
    { "--repeat-penalty", "X", "above 1: tokens said lately become less likely; default: 1" },
    { "--stop", "TEXT", "end before this text; may be given several times" },
    { "--ignore-end", NULL, "go on where the model would end" },
    { "--quiet", NULL, "print the answer only" },
    CLI_SESSION_OPTIONS,
    CLI_OPTION_JSON,
};

const cli_command cli_generate = {
    "generate", "continues a text with a language model", "generate [MODEL.gguf] [-p TEXT] [options]", "[MODEL.gguf]", options, CLI_COUNT(options),
    "With no model named, the small one that comes with heddle is taken: it writes in the style of\n"
    "the King James Bible. The text goes to standard output, everything else to standard error.\n",
    "heddle generate -p \"And the king said\" -n 64 --seed 7", run,
};
