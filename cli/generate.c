/* generate.c: `heddle generate`: continues a text, streaming. Ctrl-C ends the answer, not the report. */
#include "cli/llm.h"
#include "cli/receipt.h"
#include "cli/trace.h"
#include <stdlib.h>
#include <string.h>

enum { PROMPT_LIMIT = 64 << 20, MOST_TOKENS = 128 };
#define DEMO_PROMPT "In the beginning"

/* What is to be generated. */
typedef struct job {
    cli_llm     llm;
    cli_answer  answer;
    bool        json;
    cli_receipt receipt;
    trace       trace;
    char       *text;          /* the prompt's, from a file; else NULL */
    int32_t    *ids;           /* of --tokens, in place of a text: `id_count` of them; else NULL */
    size_t      id_count;
    const char *prompt;
    size_t      prompt_bytes;
} job;

/* ---- the prompt ---- */

/* "1,2,3" */
static int read_tokens(const cli_args *args, const char *list, job *j) {
    char item[24];
    uint64_t id;
    j->ids = calloc(strlen(list) + 1, sizeof *j->ids);
    if (!j->ids) return cli_fail(args->command, "no memory is left");
    for (size_t at = 0; cli_next_item(list, &at, item, sizeof item); j->ids[j->id_count++] = (int32_t)id)
        if (!cli_number(item, INT32_MAX, &id))
            return cli_usage(args->command, "--tokens is a list of ids such as 1,2,3, not \"%s\"", list);
    return j->id_count > 0 ? CLI_OK : cli_usage(args->command, "--tokens names none");
}

static int read_prompt(const cli_args *args, job *j) {
    const char *given = cli_get(args, "-p"), *file = cli_get(args, "-f"), *tokens = cli_get(args, "--tokens");
    if ((given != NULL) + (file != NULL) + (tokens != NULL) > 1)
        return cli_usage(args->command, "takes one of -p, -f and --tokens");
    if (tokens) return read_tokens(args, tokens, j);
    const bool piped = !given && !file && system_has_input(), from_stdin = piped || (file && strcmp(file, "-") == 0);
    j->prompt = given ? given : DEMO_PROMPT;
    j->prompt_bytes = strlen(j->prompt);
    if (!file && !piped)
        return given || !args->operand ? CLI_OK
                                       : cli_usage(args->command, "needs a prompt: -p TEXT, -f FILE or a pipe");
    char *text = cli_read_text(args->command, from_stdin ? "-" : file, PROMPT_LIMIT, &j->prompt_bytes);
    if (!text) return CLI_FAILED;
    /* the end of `echo` */
    if (from_stdin && j->prompt_bytes > 0 && text[j->prompt_bytes - 1] == '\n') text[--j->prompt_bytes] = 0;
    if (from_stdin && j->prompt_bytes > 0 && text[j->prompt_bytes - 1] == '\r') text[--j->prompt_bytes] = 0;
    j->prompt = j->text = text;
    return CLI_OK;
}

/* Puts the prompt's tokens, whose room is the context's, into the answer. */
static int take_tokens(job *j, size_t count) {
    const cli_llm *llm = &j->llm;
    for (size_t i = 0; i < j->id_count; i++)
        if ((uint32_t)j->ids[i] >= llm->info.vocabulary)
            return cli_fail(llm->cli.command, "--tokens: there is no token %d; this model has 0 to %u", (int)j->ids[i],
                            (unsigned)llm->info.vocabulary - 1);
    if (j->ids) memcpy(j->answer.tokens, j->ids, count * sizeof *j->ids);
    return j->ids ? CLI_OK
                  : cli_llm_tokenize(&j->llm, j->prompt, j->prompt_bytes, HD_TOKENIZE_ADD_SPECIAL, j->answer.tokens,
                                     &count);
}

static int tokenize(job *j) {
    size_t count = j->id_count;
    int code =
        j->ids ? CLI_OK : cli_llm_tokenize(&j->llm, j->prompt, j->prompt_bytes, HD_TOKENIZE_ADD_SPECIAL, NULL, &count);
    if (code) return code;
    if (count == 0)
        return cli_usage(j->llm.cli.command, "the prompt is empty, and this model begins with no token of its own");
    if (count > j->llm.desc.context)
        return cli_fail(j->llm.cli.command,
                        "the prompt is %zu tokens long, and the context holds %u; give --context or a shorter prompt",
                        count, (unsigned)j->llm.desc.context);
    j->answer.prompt_count = count;
    return take_tokens(j, count);
}

/* ---- the prompt's cache ---- */

/* Loads what the file of --prompt-cache holds, if it is there and fits; *out_held tokens of the prompt need not be
 * computed again. */
static int load_cache(const cli_args *args, job *j, size_t *out_held) {
    const char *path = cli_get(args, "--prompt-cache");
    const cli_answer *a = &j->answer;
    size_t count = 0;
    *out_held = 0;
    if (!path || !system_is_there(path)) return CLI_OK;
    const hd_status status = hd_session_load(j->llm.session, 0, path);
    if (status == HD_STATUS_UNSUPPORTED || status == HD_STATUS_UNSUPPORTED_VERSION || status == HD_STATUS_PARSE ||
        status == HD_STATUS_LIMIT) {
        cli_session_forget(&j->llm.cli);
        cli_note("heddle: %s is of no use here and will be written anew: %s\n", path, hd_status_text(status));
        return CLI_OK;
    }
    if (status) return cli_session_fail(&j->llm.cli, NULL);
    hd_session_tokens(j->llm.session, 0, NULL, &count);
    int32_t *tokens = calloc(count + 1, sizeof *tokens);
    if (!tokens) return cli_fail(args->command, "no memory is left");
    hd_session_tokens(j->llm.session, 0, tokens, &count);
    /* the last one is fed to learn what comes next */
    while (*out_held < count && *out_held + 1 < a->prompt_count && tokens[*out_held] == a->tokens[*out_held])
        ++*out_held;
    free(tokens);
    return CLI_OK;
}

/* Writes the prompt's, unless that is what the file holds. */
static int save_cache(const cli_args *args, job *j, size_t held) {
    const char *path = cli_get(args, "--prompt-cache");
    const size_t prompt = j->answer.prompt_count;
    if (!path || (held + 1 >= prompt && held > 0) || hd_session_position(j->llm.session, 0) < prompt) return CLI_OK;
    if (hd_session_rewind(j->llm.session, 0, (uint32_t)prompt) || hd_session_save(j->llm.session, 0, path))
        return cli_session_fail(&j->llm.cli, NULL);
    return CLI_OK;
}

/* ---- the report ---- */

static int report_json(job *j) {
    static const char *const stops[] = { "none", "end", "length", "context", "text", "interrupted" };
    const cli_answer *a = &j->answer;
    bool ok = true;
    hd_session_stats stats;
    hd_fit fit;
    hd_session_get_stats(j->llm.session, &stats);
    hd_session_get_fit(j->llm.session, &fit);
    json_t *root = json_object(), *ids = json_array();
    for (uint32_t i = 0; i < a->made.token_count; i++)
        if (json_array_append_new(ids, json_integer(a->tokens[a->prompt_count + i]))) ok = false;
    cli_put(root, "prompt", j->ids ? json_null() : cli_json_bytes(j->prompt, j->prompt_bytes), &ok);
    cli_put(root, "seed", json_integer((json_int_t)a->desc.sampling.seed), &ok);
    cli_put(root, "text", cli_json_text(a->text), &ok);
    cli_put(root, "tokens", ids, &ok);
    cli_put(root, "stop", json_string(stops[a->made.stop]), &ok);
    cli_put(root, "prompt_tokens", json_integer((json_int_t)a->prompt_count), &ok);
    cli_put(root, "prompt_tokens_per_second", json_real(cli_per_second(a->prompt_count, a->made.prompt_ns)), &ok);
    cli_put(root, "answer_tokens_per_second", json_real(cli_per_second(a->made.token_count, a->made.answer_ns)), &ok);
    cli_put(root, "load_ns", json_integer((json_int_t)stats.load_ns), &ok);
    cli_put(root, "submissions", json_integer((json_int_t)stats.submissions), &ok);
    if (j->llm.desc.draft) {
        cli_put(root, "draft_steps", json_integer((json_int_t)stats.draft_steps), &ok);
        cli_put(root, "drafted_tokens", json_integer((json_int_t)stats.drafted_tokens), &ok);
        cli_put(root, "accepted_tokens", json_integer((json_int_t)stats.accepted_tokens), &ok);
    }
    cli_put(root, "recorded", json_integer((json_int_t)stats.recorded), &ok);
    cli_put(root, "decode_levels", json_integer(stats.decode_levels), &ok);
    cli_put(root, "decode_dispatches", json_integer(stats.decode_dispatches), &ok);
    cli_put(root, "device", json_string(hd_device_get_info(j->llm.desc.device)->id), &ok);
    cli_put(root, "memory", cli_llm_fit_json(&fit, &ok), &ok);
    return cli_print_json(j->llm.cli.command, root, ok);
}

/* ---- receipts ---- */

/* A model in several files is named by the first of them. */
static bool tell_model(cli_receipt *receipt, const char *path) {
    char part[4096];
    const size_t length = strlen(path), tail = strlen("-00001-of-00001.gguf");
    unsigned number, count;
    if (length < tail || length >= sizeof part ||
        sscanf(path + length - tail, "-%5u-of-%5u.gguf", &number, &count) != 2)
        return cli_receipt_file(receipt, "model", path);
    for (unsigned i = 1; i <= count; i++) {
        snprintf(part, sizeof part, "%.*s-%05u-of-%05u.gguf", (int)(length - tail), path, i, count);
        if (!cli_receipt_file(receipt, i > 1 ? part + length - tail + 1 : "model", part)) return false;
    }
    return true;
}

/* What is not on the command line: a prompt from standard input, and a seed by chance. */
static void tell_options(const cli_args *args, job *j) {
    const char *file = cli_get(args, "-f");
    char seed[24];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)j->answer.desc.sampling.seed);
    cli_receipt_option(&j->receipt, "--seed", seed);
    if (j->ids || (file && strcmp(file, "-") != 0)) return;
    cli_receipt_option(&j->receipt, "-f", NULL);
    cli_receipt_option(&j->receipt, "-p", j->prompt);
}

static int tell_all(const cli_args *args, job *j) {
    const cli_answer *a = &j->answer;
    if (!tell_model(&j->receipt, cli_llm_path(args))) return CLI_FAILED;
    if (j->ids) cli_receipt_input(&j->receipt, "prompt", j->ids, j->id_count * sizeof *j->ids);
    else cli_receipt_input(&j->receipt, "prompt", j->prompt, j->prompt_bytes);
    tell_options(args, j);
    cli_receipt_device(&j->receipt, j->llm.desc.device);
    cli_receipt_numbers(&j->receipt, "tokens", a->tokens + a->prompt_count, a->made.token_count);
    cli_receipt_output(&j->receipt, "text", a->text, a->text_bytes);
    return cli_receipt_end(&j->receipt);
}

/* ---- the command ---- */

/* The answer of a model without a vocabulary. */
static void print_ids(const job *j) {
    const cli_answer *a = &j->answer;
    for (uint32_t i = 0; i < a->made.token_count; i++)
        cli_print("%s%d", i > 0 ? "," : "", (int)a->tokens[a->prompt_count + i]);
}

static int generate(const cli_args *args, job *j) {
    int code = cli_llm_open(args, &j->llm);
    if (!code) code = read_prompt(args, j); /* behind it: a model that is not there is told of first */
    if (!code) code = cli_llm_prepare(args, &j->llm);
    if (!code) code = cli_answer_prepare(args, &j->llm, &j->answer);
    if (!code) code = tokenize(j);
    if (!code) code = cli_llm_load(&j->llm);
    size_t held = 0;
    if (!code) code = load_cache(args, j, &held);
    const char *trace_path = cli_get(args, "--trace");
    if (!code && trace_path && trace_watch(&j->trace, j->llm.desc.device))
        code = cli_session_fail(&j->llm.cli, "--trace");
    if (code) return code;
    if (!j->json && !cli_get(args, "--quiet") && !j->ids) cli_print_text(j->prompt, j->prompt_bytes);
    system_interrupts_catch(true);
    code = cli_answer_run(&j->llm, &j->answer, held);
    if (!j->json && strcmp(j->llm.info.tokenizer, "none") == 0) print_ids(j);
    if (!j->json) cli_print("\n");
    fflush(stdout);
    if (code || ferror(stdout)) return code; /* main tells that nobody reads */
    if (trace_path && (code = trace_write(&j->trace, args->command, trace_path))) return code;
    if ((code = save_cache(args, j, held))) return code;
    if (j->receipt.root && (code = tell_all(args, j))) return code;
    if (cli_get(args, "--metrics") && (code = cli_metrics_save(&j->llm.cli, cli_get(args, "--metrics")))) return code;
    if (j->json) return report_json(j);
    if (cli_is_quiet()) return CLI_OK;
    cli_note("\n");
    cli_answer_report(&j->llm, &j->answer);
    return CLI_OK;
}

static int run(const cli_args *args) {
    job j = { .json = cli_get(args, "--json") != NULL };
    if (cli_get(args, "--quiet")) cli_be_quiet();
    int code = cli_answer_read(args, MOST_TOKENS, &j.answer);
    j.answer.desc.ignore_end = cli_get(args, "--ignore-end") != NULL;
    j.answer.desc.shift = cli_get(args, "--shift") != NULL;
    j.answer.silent = j.json;
    if (!code && j.answer.desc.shift && j.answer.desc.max_tokens == 0)
        code = cli_usage(args->command, "--shift goes on without an end; say with -n how far");
    hd_math math = HD_MATH_DEFAULT;
    if (!code && !cli_get_math(args, &math)) code = CLI_USAGE;
    cli_receipt_begin(args, math, &j.receipt);
    if (!code) code = generate(args, &j);
    trace_free(&j.trace);
    cli_receipt_drop(&j.receipt);
    cli_answer_free(&j.answer);
    cli_llm_close(&j.llm);
    free(j.text);
    free(j.ids);
    return code;
}

static const cli_option options[] = {
    { "-p", "TEXT", "the text to continue" },
    { "-f", "FILE", "a file with the text to continue; -, or a pipe and no -p: standard input" },
    { "--tokens", "LIST", "token ids to continue, 1,2,3: for files without a vocabulary, whose answer is ids too" },
    { "-n", "N", "most tokens to add; 0: until the context is full; default: 128" },
    CLI_SAMPLING_OPTIONS,
    { "--ignore-end", NULL, "go on where the model would end" },
    { "--shift", NULL, "go on in a full context: the prompt stays, the older half of the answer is forgotten" },
    { "--prompt-cache", "FILE", "keep what was computed of the prompt, and begin with what is kept there" },
    { "--quiet", NULL, "print the answer only, and no more than errors besides" },
    CLI_OPTION_DRAFT,
    CLI_SESSION_OPTIONS,
    CLI_OPTION_TRACE,
    CLI_OPTION_METRICS,
    CLI_OPTION_RECEIPT,
    CLI_OPTION_JSON,
};

const cli_command cli_generate = {
    "generate", "continues a text with a language model, by default heddle's own",
    "generate [MODEL.gguf] [-p TEXT] [options]",
    "[MODEL.gguf]", options, CLI_COUNT(options), NULL,
    "  heddle generate -p \"And the king said\" -n 64 --seed 7\n", run,
};
