/* embed.c: `heddle embed`: texts as vectors, one a line. All texts become tokens before the first vector is printed, so
 * that one that is too long ends the command before it said anything. */
#include "cli/llm.h"
#include "cli/text.h"
#include <stdlib.h>
#include <string.h>

enum { TEXT_LIMIT = 64 << 20, TOGETHER = 256 };

typedef struct work {
    cli_llm           llm;
    hd_embedder      *embedder;
    hd_embedder_text *texts;
    size_t            count;
    int32_t         **tokens;   /* of each text */
    bool              json;
} work;

/* Text number `i` as tokens, if the model takes so many. */
static int take_text(work *w, size_t i, const char *from, size_t bytes) {
    size_t count = 0;
    const int code = cli_llm_take_tokens(&w->llm, from, bytes, HD_TOKENIZE_ADD_SPECIAL, &w->tokens[i], &count);
    if (code) return code;
    if (count > w->llm.info.context)
        return cli_fail(w->llm.cli.command, "text %zu has %zu tokens, and the model was made for %u: divide it", i + 1,
                        count, (unsigned)w->llm.info.context);
    if (count == 0) return cli_fail(w->llm.cli.command, "text %zu is empty, and the model adds nothing to it", i + 1);
    w->texts[i] = (hd_embedder_text){ w->tokens[i], count };
    return CLI_OK;
}

/* Operands behind the model's, or the lines of `file`, of which a last one without a text is none. */
static int take_texts(work *w, const cli_args *args, const char *file, size_t bytes) {
    size_t lines = 0;
    for (size_t at = 0; file && at < bytes; at++) lines += file[at] == '\n' || at + 1 == bytes;
    w->count = file ? lines : args->operand_count - 1;
    w->texts = calloc(w->count + 1, sizeof *w->texts);
    w->tokens = calloc(w->count + 1, sizeof *w->tokens);
    if (!w->texts || !w->tokens) return cli_fail(args->command, "no memory is left");
    int code = CLI_OK;
    for (size_t i = 0, begin = 0; i < w->count && !code; i++) {
        const char *from = file ? file + begin : args->operands[i + 1];
        const char *end = file ? memchr(from, '\n', bytes - begin) : from + strlen(from);
        const size_t length = end ? (size_t)(end - from) : bytes - begin;
        code = take_text(w, i, from, length);
        begin += length + 1;
    }
    return code;
}

static int print_vector(const work *w, const float *vector, bool is_first) {
    text line = { 0 };
    if (w->json) text_add(&line, is_first ? "[\n  [" : ",\n  [");
    for (uint32_t i = 0; i < w->llm.info.hidden; i++)
        text_add(&line, "%s%.9g", i == 0 ? "" : w->json ? ", " : " ", (double)vector[i]);
    text_add(&line, w->json ? "]" : "\n");
    const bool failed = line.failed;
    if (!failed) cli_print("%s", line.data);
    text_free(&line);
    return failed ? cli_fail(w->llm.cli.command, "no memory is left") : CLI_OK;
}

static int print_vectors(work *w) {
    float *vectors = calloc((size_t)TOGETHER * w->llm.info.hidden, sizeof *vectors);
    int code = vectors ? CLI_OK : cli_fail(w->llm.cli.command, "no memory is left");
    for (size_t at = 0; at < w->count && !code; at += TOGETHER) {
        const size_t count = w->count - at < TOGETHER ? w->count - at : TOGETHER;
        if (hd_embedder_run(w->embedder, w->texts + at, count, vectors)) code = cli_session_fail(&w->llm.cli, NULL);
        for (size_t i = 0; i < count && !code; i++)
            code = print_vector(w, vectors + i * w->llm.info.hidden, at + i == 0);
    }
    if (w->json && !code) cli_print(w->count ? "\n]\n" : "[]\n");
    free(vectors);
    return code;
}

const char *const cli_pooling_names[CLI_POOLINGS] = { "none", "mean", "cls", "last" };

static bool get_pooling(const cli_args *args, hd_pooling *out) {
    const char *said = cli_get(args, "--pooling");
    *out = HD_POOLING_FILE;
    for (int i = HD_POOLING_MEAN; i < CLI_POOLINGS && said; i++)
        if (strcmp(said, cli_pooling_names[i]) == 0) *out = (hd_pooling)i;
    if (!said || *out) return true;
    (void)cli_usage(args->command, "--pooling takes mean, cls or last, not \"%s\"", said);
    return false;
}

static int embed(const cli_args *args, work *w, const char *file, size_t bytes) {
    hd_embedder_desc desc = { .raw = cli_get(args, "--raw") != NULL };
    if (!get_pooling(args, &desc.pooling) || !cli_get_math(args, &desc.math)) return CLI_USAGE;
    int code = cli_llm_open(args, &w->llm);
    if (!code) code = take_texts(w, args, file, bytes);
    if (!code) code = cli_session_device(&w->llm.cli, cli_get(args, "--device"));
    desc.device = w->llm.cli.device;
    if (!code && hd_embedder_create(w->llm.model, &desc, &w->embedder)) code = cli_session_fail(&w->llm.cli, NULL);
    return code ? code : print_vectors(w);
}

static int run(const cli_args *args) {
    work w = { .json = cli_get(args, "--json") != NULL };
    const char *path = cli_get(args, "-f");
    size_t bytes = 0;
    if (!path == (args->operand_count == 1))
        return cli_usage(args->command, "needs texts behind the model, or -f FILE with one in each line");
    char *file = path ? cli_read_text(args->command, path, TEXT_LIMIT, &bytes) : NULL;
    int code = path && !file ? CLI_FAILED : embed(args, &w, file, bytes);
    for (size_t i = 0; i < w.count && w.tokens; i++) free(w.tokens[i]);
    free(w.tokens);
    free(w.texts);
    hd_embedder_destroy(w.embedder);
    cli_llm_close(&w.llm);
    free(file);
    return code;
}

static const cli_option options[] = {
    { "-f", "FILE", "a file with a text in each line; -: standard input" },
    { "--pooling", "mean|cls|last", "what of a text's tokens becomes its vector; default: as the file says" },
    { "--raw", NULL, "vectors as they come; else their length is 1" },
    CLI_OPTION_DEVICE,
    CLI_OPTION_MATH,
    CLI_OPTION_JSON,
};

const cli_command cli_embed = {
    "embed", "turns texts into vectors", "embed MODEL.gguf [TEXT ...] [options]", "MODEL.gguf ...", options,
    CLI_COUNT(options),
    "A text with more tokens than the model was made for is refused.\n",
    "  heddle embed bge-small-en.gguf \"first text\" \"second text\"\n", run,
};
