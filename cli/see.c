/* see.c: `heddle see`: asks a model that sees about images. What it sees with runs first and is given back before the
 * model is loaded. */
#include "cli/llm.h"
#include <stdlib.h>
#include <string.h>

/* A question about images. */
typedef struct job {
    cli_llm      llm;
    cli_answer   answer;
    hd_chat_form form;
    hd_vision   *vision;
    hd_vision_info info;   /* of it */
    float       *rows;     /* of all images, one behind the other */
    size_t       images;
    uint64_t     seen_ns;
} job;

static int no_memory(const job *j) { return cli_fail(j->llm.cli.command, "no memory is left"); }

static size_t elements(const job *j) { return (size_t)j->info.rows * j->info.hidden; }

/* ---- seeing ---- */

static int see_image(job *j, const char *path, float *out_rows) {
    hd_context *context = j->llm.cli.context;
    hd_image image = { 0 };
    int code = CLI_OK;
    if (hd_image_read(context, path, &image)) code = cli_session_fail(&j->llm.cli, NULL);
    if (!code && hd_vision_encode(j->vision, &image, out_rows)) code = cli_session_fail(&j->llm.cli, path);
    hd_image_free(context, &image);
    return code;
}

static int see(const cli_args *args, job *j) {
    const hd_vision_desc desc = { .device = j->llm.desc.device, .math = j->llm.desc.math };
    const char *mmproj = cli_get(args, "--mmproj");
    const uint64_t began = cli_now_ns();
    if (hd_vision_open(j->llm.cli.context, mmproj, &desc, &j->vision) || hd_vision_get_info(j->vision, &j->info))
        return cli_session_fail(&j->llm.cli, NULL);
    if (j->info.hidden != j->llm.info.hidden)
        return cli_fail(args->command, "%s makes rows of %u numbers, and the model takes %u: it is another model's",
                        mmproj, (unsigned)j->info.hidden, (unsigned)j->llm.info.hidden);
    j->rows = calloc(j->images, elements(j) * sizeof *j->rows);
    int code = j->rows ? CLI_OK : no_memory(j);
    for (size_t i = 0; i < j->images && !code; i++)
        code = see_image(j, args->operands[1 + i], j->rows + i * elements(j));
    hd_vision_close(j->vision);
    j->vision = NULL;
    j->llm.desc.image_rows = j->info.rows;
    j->seen_ns = cli_now_ns() - began;
    return code;
}

/* ---- the prompt ---- */

/* Puts the question's tokens into the answer, with a token for each row of an image, -1. */
static int tokenize(const cli_args *args, job *j) {
    const char *text = cli_get(args, "-p");
    const hd_message message = { .role = "user", .content = text ? text : "What is in the image?",
                                 .images = (uint32_t)j->images };
    size_t count = 0;
    if (hd_model_chat_tokens(j->llm.model, &j->form, &message, 1, NULL, &count))
        return cli_session_fail(&j->llm.cli, NULL);
    const size_t all = count + j->images * (j->info.rows - 1);
    if (all > j->llm.desc.context)
        return cli_fail(args->command,
                        "the question and its images are %zu tokens long, and the context holds %u; give --context or "
                        "fewer images", all, (unsigned)j->llm.desc.context);
    int32_t *tokens = calloc(count, sizeof *tokens), *to = j->answer.tokens;
    if (!tokens) return no_memory(j);
    const hd_status status = hd_model_chat_tokens(j->llm.model, &j->form, &message, 1, tokens, &count);
    for (size_t i = 0; i < count && !status; i++)
        for (uint32_t k = 0; k < (tokens[i] < 0 ? j->info.rows : 1); k++) *to++ = tokens[i];
    free(tokens);
    j->answer.prompt_count = all;
    return status ? cli_session_fail(&j->llm.cli, NULL) : CLI_OK;
}

/* Feeds all up to the last image's end; *out_held is where that is. */
static int feed_images(job *j, size_t *out_held) {
    const int32_t *tokens = j->answer.tokens;
    hd_status status = HD_OK;
    size_t at = 0;
    for (size_t i = 0; i < j->images && !status; i++) {
        size_t before = at;
        while (tokens[before] >= 0) before++;
        status = hd_session_feed(j->llm.session, 0, tokens + at, before - at);
        if (!status) status = hd_session_feed_image(j->llm.session, 0, j->rows + i * elements(j));
        at = before + j->info.rows;
    }
    *out_held = at;
    return status ? cli_session_fail(&j->llm.cli, NULL) : CLI_OK;
}

/* ---- the command ---- */

static void report(const job *j) {
    cli_cell seen;
    if (cli_is_quiet()) return;
    cli_note("\nheddle: images  %zu, of %u tokens each, seen in %s\n", j->images, (unsigned)j->info.rows,
             cli_time(j->seen_ns, seen));
    cli_answer_report(&j->llm, &j->answer);
}

static int ask(const cli_args *args, job *j) {
    size_t held = 0;
    int code = cli_llm_open(args, &j->llm);
    if (!code) code = cli_llm_prepare(args, &j->llm);
    if (!code) code = see(args, j);
    if (!code) code = cli_answer_take_apart(&j->llm, &j->answer, &j->form, NULL);
    if (!code) code = cli_answer_prepare(args, &j->llm, &j->answer);
    if (!code) code = tokenize(args, j);
    if (!code) code = cli_llm_load(&j->llm);
    const uint64_t began = cli_now_ns();
    if (!code) code = feed_images(j, &held);
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
    hd_vision_close(j.vision);
    cli_answer_free(&j.answer);
    cli_llm_close(&j.llm);
    free(j.rows);
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
