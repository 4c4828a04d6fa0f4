/* importance.c: `heddle importance`: what comes into a model's matrices over a text, as a file for `heddle quantize`:
 * chunk by chunk, as `heddle perplexity` reads a text. */
#include "cli/llm.h"
#include <stdlib.h>
#include <string.h>

static void draw_progress(void *user, uint64_t done, uint64_t total) {
    (void)user;
    cli_progress("heddle: chunk %llu of %llu", (unsigned long long)done, (unsigned long long)total);
}

static int collect(const cli_args *args, cli_llm *llm, const char *text, size_t bytes, uint64_t most) {
    const char *out = cli_get(args, "-o"), *slash = strrchr(args->operands[1], '/');
    int32_t *tokens = NULL;
    size_t count = 0;
    int code = cli_llm_take_chunks(llm, text, bytes, &tokens, &count);
    const uint32_t size = llm->desc.context;
    if (most > 0 && count / size > most) count = (size_t)most * size;
    const hd_importance_desc desc = {
        .device = llm->cli.device, .tokens = tokens, .count = count, .chunk = size, .math = llm->desc.math,
        .text = slash ? slash + 1 : args->operands[1], .progress = draw_progress
    };
    if (!code && hd_model_importance(llm->model, out, &desc)) code = cli_session_fail(&llm->cli, NULL);
    cli_progress_end();
    if (!code)
        cli_print("%s: %llu chunks of %u tokens\n", out, (unsigned long long)(count / size), (unsigned)size);
    free(tokens);
    return code;
}

static int run(const cli_args *args) {
    cli_llm llm = { 0 };
    uint64_t most;
    size_t bytes = 0;
    if (!cli_get(args, "-o")) return cli_usage(args->command, "-o names the file to write");
    if (!cli_get_number(args, "--chunks", 1, 1u << 30, 0, &most)) return CLI_USAGE;
    char *text = cli_read_text(args->command, args->operands[1], CLI_CHUNKS_TEXT, &bytes);
    if (!text) return CLI_FAILED;
    int code = cli_llm_open(args, &llm);
    if (!code) code = cli_llm_prepare_chunks(args, &llm);
    if (!code) code = collect(args, &llm, text, bytes, most);
    cli_llm_close(&llm);
    free(text);
    return code;
}

static const cli_option options[] = {
    { "-o", "OUT.gguf", "the file to write" },
    { "--chunks", "N", "only the first N chunks of the text; default: all" },
    { "--context", "N", "tokens of a chunk, which is read alone; default: 512" },
    CLI_OPTION_DEVICE,
    CLI_OPTION_MATH,
};

const cli_command cli_importance = {
    "importance", "tells which columns of a model's matrices matter over a text, for quantize",
    "importance MODEL.gguf TEXT.txt -o OUT.gguf [options]", "MODEL.gguf TEXT.txt", options, CLI_COUNT(options),
    "The file holds what llama.cpp's llama-imatrix writes: sums of squares of what comes into each matrix.\n",
    "  heddle importance model-f16.gguf text.txt -o importance.gguf\n"
    "  heddle quantize model-f16.gguf model.gguf iq3_s --importance importance.gguf\n", run,
};
