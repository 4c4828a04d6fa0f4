/* generate.c: `heddle generate`: continues a text, streaming. Ctrl-C ends the answer, not the report. */
#include "cli/llm.h"
#include "cli/receipt.h"
#include <stdlib.h>
#include <string.h>

enum { PROMPT_LIMIT = 64 << 20, MOST_TOKENS = 128 };
#define DEMO_PROMPT "In the beginning"

/* What is to be generated. */
typedef struct job {
    cli_llm     llm;
    cli_answer  answer;
    bool        json, quiet;
    cli_receipt receipt;
    char       *text;          /* the prompt's, from a file; else NULL */
    const char *prompt;
    size_t      prompt_bytes;
} job;

/* ---- the prompt ---- */

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
    int code = cli_llm_tokenize(&j->llm, j->prompt, j->prompt_bytes, HD_TOKENIZE_ADD_SPECIAL, NULL, &count);
    if (code) return code;
    if (count == 0) return cli_usage(j->llm.cli.command, "the prompt is empty, and this model begins with no token of its own");
    if (count > j->llm.desc.context)
        return cli_fail(j->llm.cli.command,
                        "the prompt is %zu tokens long, and the context holds %u; give --context or a shorter prompt",
                        count, (unsigned)j->llm.desc.context);
    j->answer.prompt_count = count;
    return cli_llm_tokenize(&j->llm, j->prompt, j->prompt_bytes, HD_TOKENIZE_ADD_SPECIAL, j->answer.tokens, &count);
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
    cli_put(root, "prompt", cli_json_text(j->prompt), &ok);
    cli_put(root, "text", cli_json_text(a->text), &ok);
    cli_put(root, "tokens", ids, &ok);
    cli_put(root, "stop", json_string(stops[a->made.stop]), &ok);
    cli_put(root, "prompt_tokens", json_integer((json_int_t)a->prompt_count), &ok);
    cli_put(root, "prompt_tokens_per_second", json_real(cli_per_second(a->prompt_count, a->made.prompt_ns)), &ok);
    cli_put(root, "answer_tokens_per_second", json_real(cli_per_second(a->made.token_count, a->made.answer_ns)), &ok);
    cli_put(root, "load_ns", json_integer((json_int_t)stats.load_ns), &ok);
    cli_put(root, "submissions", json_integer((json_int_t)stats.submissions), &ok);
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
    if (length < tail || length >= sizeof part || sscanf(path + length - tail, "-%5u-of-%5u.gguf", &number, &count) != 2)
        return cli_receipt_file(receipt, "model", path);
    for (unsigned i = 1; i <= count; i++) {
        snprintf(part, sizeof part, "%.*s-%05u-of-%05u.gguf", (int)(length - tail), path, i, count);
        if (!cli_receipt_file(receipt, i > 1 ? part + length - tail + 1 : "model", part)) return false;
    }
    return true;
}

static int tell(const cli_args *args, job *j) {
    const cli_answer *a = &j->answer;
    if (!tell_model(&j->receipt, cli_llm_path(args))) return CLI_FAILED;
    cli_receipt_input(&j->receipt, "prompt", j->prompt, j->prompt_bytes);
    cli_receipt_device(&j->receipt, j->llm.desc.device);
    cli_receipt_numbers(&j->receipt, "tokens", a->tokens + a->prompt_count, a->made.token_count);
    cli_receipt_output(&j->receipt, "text", a->text, a->text_bytes);
    return cli_receipt_end(&j->receipt);
}

/* ---- the command ---- */

static int generate(const cli_args *args, job *j) {
    int code = cli_llm_open(args, &j->llm);
    if (!code) code = cli_llm_prepare(args, &j->llm);
    if (!code) code = cli_answer_prepare(&j->llm, &j->answer);
    if (!code) code = tokenize(j);
    if (!code) code = cli_llm_load(&j->llm);
    if (code) return code;
    if (!j->json && !j->quiet) cli_print_text(j->prompt, j->prompt_bytes);
    cli_interrupts_catch(true);
    code = cli_answer_run(&j->llm, &j->answer, 0);
    if (!j->json) {
        cli_print("\n");
        fflush(stdout);
    }
    if (code || ferror(stdout)) return code; /* main tells that nobody reads */
    if (j->receipt.root && (code = tell(args, j))) return code;
    if (j->json) return report_json(j);
    if (j->quiet) return CLI_OK;
    cli_note("\n");
    cli_answer_report(&j->llm, &j->answer);
    return CLI_OK;
}

static int run(const cli_args *args) {
    job j = { .json = cli_get(args, "--json") != NULL, .quiet = cli_get(args, "--quiet") != NULL };
    int code = cli_answer_read(args, MOST_TOKENS, &j.answer);
    j.answer.desc.ignore_end = cli_get(args, "--ignore-end") != NULL;
    j.answer.silent = j.json;
    if (!code) code = read_prompt(args, &j);
    hd_math math = HD_MATH_DEFAULT;
    if (!code && !cli_get_math(args, &math)) code = CLI_USAGE;
    cli_receipt_begin(args, math, &j.receipt);
    if (!code) code = generate(args, &j);
    cli_receipt_drop(&j.receipt);
    cli_llm_close(&j.llm);
    cli_answer_free(&j.answer);
    free(j.text);
    return code;
}

static const cli_option options[] = {
    { "-p", "TEXT", "the text to continue" },
    { "-f", "FILE", "a file with the text to continue" },
    { "-n", "N", "most tokens to add; 0: until the context is full; default: 128" },
    CLI_SAMPLING_OPTIONS,
    { "--ignore-end", NULL, "go on where the model would end" },
    { "--quiet", NULL, "print the answer only" },
    CLI_SESSION_OPTIONS,
    CLI_OPTION_RECEIPT,
    CLI_OPTION_JSON,
};

const cli_command cli_generate = {
    "generate", "continues a text with a language model", "generate [MODEL.gguf] [-p TEXT] [options]", "[MODEL.gguf]",
    options, CLI_COUNT(options),
    "With no model named, the small one that comes with heddle is taken: it writes in the style of\n"
    "the King James Bible. The text goes to standard output, everything else to standard error.\n",
    "  heddle generate -p \"And the king said\" -n 64 --seed 7\n", run,
};
