/* see.c: `heddle see`: asks a model that sees about images. What it sees with runs first and is given back before the
 * model is loaded. */
#include "cli/sight.h"
#include <stdlib.h>

/* A question about images. */
typedef struct job {
    cli_llm      llm;
    cli_answer   answer;
    hd_chat_form form;
    cli_sight    sight;
    size_t       images;
} job;

/* Puts the question's tokens into the answer. */
static int tokenize(const cli_args *args, job *j) {
    const char *text = cli_get(args, "-p");
    const hd_message message = { .role = "user", .content = text ? text : "What is in the image?",
                                 .images = (uint32_t)j->images };
    size_t count = 0;
    if (hd_model_chat_tokens(j->llm.model, &j->form, &message, 1, NULL, &count))
        return cli_session_fail(&j->llm.cli, NULL);
    const size_t all = cli_sight_length(&j->sight, count, j->images);
    if (all > j->llm.desc.context)
        return cli_fail(args->command,
                        "the question and its images are %zu tokens long, and the context holds %u; give --context or "
                        "fewer images", all, (unsigned)j->llm.desc.context);
    int32_t *tokens = calloc(count, sizeof *tokens);
    if (!tokens) return cli_fail(args->command, "no memory is left");
    const hd_status status = hd_model_chat_tokens(j->llm.model, &j->form, &message, 1, tokens, &count);
    if (!status) cli_sight_spread(&j->sight, tokens, count, j->answer.tokens);
    free(tokens);
    j->answer.prompt_count = all;
    return status ? cli_session_fail(&j->llm.cli, NULL) : CLI_OK;
}

/* ---- the command ---- */

static void report(const job *j) {
    cli_cell seen;
    if (cli_is_quiet()) return;
    cli_note("\nheddle: images  %zu, of %u tokens each, seen in %s\n", j->images, (unsigned)j->sight.info.rows,
             cli_time(j->sight.seen_ns, seen));
    cli_answer_report(&j->llm, &j->answer);
}

static int ask(const cli_args *args, job *j) {
    size_t held = 0;
    int code = cli_llm_open(args, &j->llm);
    if (!code) code = cli_llm_prepare(args, &j->llm);
    if (!code) code = cli_sight_open(&j->llm, cli_get(args, "--mmproj"), &j->sight);
    if (!code) code = cli_sight_see(&j->llm, &j->sight, args->operands + 1, j->images);
    if (!code) code = cli_answer_take_apart(&j->llm, &j->answer, &j->form, NULL);
    if (!code) code = cli_answer_prepare(args, &j->llm, &j->answer);
    if (!code) code = tokenize(args, j);
    if (!code) code = cli_llm_load(&j->llm);
    const uint64_t began = cli_now_ns();
    if (!code) code = cli_sight_feed(&j->llm, &j->sight, 0, j->answer.tokens, j->answer.prompt_count, &held);
    const uint64_t fed_ns = cli_now_ns() - began;
    if (code) return code;
    system_interrupts_catch(true);
    code = cli_answer_run(&j->llm, &j->answer, held);
    cli_print("\n");
    fflush(stdout);
    if (code || ferror(stdout)) return code; /* main tells that nobody reads */
    j->answer.fed += held;
    j->answer.made.prompt_ns += fed_ns;
    report(j);
    return CLI_OK;
}

static int run(const cli_args *args) {
    job j = { .form = { .template_name = cli_get(args, "--template") }, .images = args->operand_count - 1 };
    if (args->operand_count < 2) return cli_usage(args->command, "needs an image behind the model");
    if (!cli_get(args, "--mmproj"))
        return cli_usage(args->command, "needs --mmproj FILE, what the model sees with; it is published beside it");
    if (cli_get(args, "--quiet")) cli_be_quiet();
    int code = cli_answer_read(args, 0, &j.answer);
    if (!code) code = ask(args, &j);
    cli_sight_cut(&j.sight, 0);
    cli_answer_free(&j.answer);
    cli_llm_close(&j.llm);
    return code;
}

static const cli_option options[] = {
    { "--mmproj", "FILE", "what the model sees with: a GGUF file that is published beside it" },
    { "-p", "TEXT", "what is asked; default: What is in the image?" },
    { "-n", "N", "most tokens of the answer; 0, the default: as many as the context holds" },
    { "--template", "NAME", "as of chat; default: the model's own" },
    CLI_SAMPLING_OPTIONS,
    { "--quiet", NULL, "print the answer only, and no more than errors besides" },
    CLI_OPTION_DRAFT,
    CLI_SESSION_OPTIONS,
};

const cli_command cli_see = {
    "see", "asks a model about images", "see MODEL.gguf IMAGE ... --mmproj FILE [-p TEXT] [options]", "MODEL.gguf ...",
    options, CLI_COUNT(options), "Images are PNG, JPEG or PPM files.\n",
    "  heddle see gemma-3-4b-it.gguf photo.jpg --mmproj mmproj-gemma-3-4b-it.gguf\n", run,
};
