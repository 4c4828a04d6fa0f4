/* tokenize.c: `heddle tokenize`: a text as a model's token ids. */
#include "cli/llm.h"
#include "cli/text.h"
#include <stdlib.h>
#include <string.h>

enum { TEXT_LIMIT = 64 << 20 };

/* Token by token: the list of a long text is never held. */
static int print_json(cli_llm *llm, const int32_t *tokens, size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t bytes;
        const char *token = hd_model_token_text(llm->model, tokens[i], &bytes);
        json_t *value = cli_json_bytes(token, bytes);
        char *quoted = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
        json_decref(value);
        if (!quoted) return cli_fail(llm->cli.command, "no memory is left");
        cli_print("%s{\"id\": %d, \"text\": %s}", i > 0 ? ",\n  " : "[\n  ", (int)tokens[i], quoted);
        free(quoted);
    }
    cli_print(count > 0 ? "\n]\n" : "[]\n");
    return CLI_OK;
}

/* One token a line: its id, and its bytes with what does not print as \xNN. */
static int print(cli_llm *llm, const int32_t *tokens, size_t count) {
    text line = { 0 };
    for (size_t i = 0; i < count && !line.failed; i++) {
        size_t bytes;
        const char *token = hd_model_token_text(llm->model, tokens[i], &bytes);
        line.length = 0;
        for (size_t k = 0; k < bytes; k++) {
            const unsigned char c = (unsigned char)token[k];
            if (c == '\n') text_add(&line, "\\n");
            else if (c < ' ' || c > '~' || c == '"' || c == '\\') text_add(&line, "\\x%02X", c);
            else text_append(&line, &token[k], 1);
        }
        cli_print("%7d  \"%s\"\n", (int)tokens[i], line.length ? line.data : "");
    }
    const bool failed = line.failed;
    text_free(&line);
    return failed ? cli_fail(llm->cli.command, "no memory is left") : CLI_OK;
}

static int tokenize(const cli_args *args, cli_llm *llm, const char *from, size_t bytes) {
    const uint32_t flags = (cli_get(args, "--no-special") ? 0u : (uint32_t)HD_TOKENIZE_ADD_SPECIAL) |
                           (cli_get(args, "--parse-special") ? (uint32_t)HD_TOKENIZE_PARSE_SPECIAL : 0u);
    size_t count = 0;
    int32_t *tokens = NULL;
    int code = cli_llm_take_tokens(llm, from, bytes, flags, &tokens, &count);
    if (!code) code = cli_get(args, "--json") ? print_json(llm, tokens, count) : print(llm, tokens, count);
    free(tokens);
    return code;
}

static int run(const cli_args *args) {
    cli_llm llm = { 0 };
    const char *given = cli_get(args, "-p"), *file = cli_get(args, "-f");
    char *read = NULL;
    size_t bytes = given ? strlen(given) : 0;
    if (!given == !file) return cli_usage(args->command, "needs a text: -p TEXT or -f FILE");
    if (file && !(given = read = cli_read_text(args->command, file, TEXT_LIMIT, &bytes))) return CLI_FAILED;
    int code = cli_llm_open(args, &llm);
    if (!code) code = tokenize(args, &llm, given, bytes);
    cli_llm_close(&llm);
    free(read);
    return code;
}

static const cli_option options[] = {
    { "-p", "TEXT", "the text" },
    { "-f", "FILE", "a file with the text" },
    { "--no-special", NULL, "without the tokens that the model wants before and after a text" },
    { "--parse-special", NULL, "names of control tokens in the text count as such" },
    CLI_OPTION_JSON,
};

const cli_command cli_tokenize = {
    "tokenize", "shows a text as a model's tokens", "tokenize [MODEL.gguf] -p TEXT [options]", "[MODEL.gguf]", options,
    CLI_COUNT(options), NULL,
    "  heddle tokenize -p \"Hello, world\"\n", run,
};
