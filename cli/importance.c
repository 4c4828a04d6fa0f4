/* importance.c: `heddle importance`: what comes into a model's matrices over a text, as a file for `heddle quantize`:
 * chunk by chunk, as `heddle perplexity` reads a text. */
#include "cli/llm.h"

static void draw_progress(void *user, uint64_t done, uint64_t total) {
    (void)user;
    cli_progress("heddle: chunk %llu of %llu", (unsigned long long)done, (unsigned long long)total);
}

static int collect(const cli_args *args, cli_llm *llm, const int32_t *tokens, size_t count, uint64_t chunks) {
    (void)count;
    const char *out = cli_get(args, "-o");
    const uint32_t size = llm->desc.context;
    const hd_importance_desc desc = {
        .device = llm->cli.device, .tokens = tokens, .count = (size_t)chunks * size, .chunk = size,
        .math = llm->desc.math, .text = system_name_of(args->operands[1]), .progress = draw_progress
    };
    const hd_status status = hd_model_importance(llm->model, out, &desc);
    const int code = status ? cli_session_fail(&llm->cli, NULL) : CLI_OK;
    cli_progress_end();
    if (!code) cli_print("%s: %llu chunks of %u tokens\n", out, (unsigned long long)chunks, (unsigned)size);
    return code;
}

static int run(const cli_args *args) {
    if (!cli_get(args, "-o")) return cli_usage(args->command, "-o names the file to write");
    return cli_llm_run_chunks(args, collect);
}

static const cli_option options[] = {
    { "-o", "OUT.gguf", "the file to write" },
    CLI_OPTION_CHUNKS,
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
