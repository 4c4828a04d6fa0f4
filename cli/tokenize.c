/* tokenize.c: `heddle tokenize`: a text as a model's token ids. */
#include "cli/llm.h"
#include <stdlib.h>
#include <string.h>

enum { TEXT_LIMIT = 64 << 20 };

static int print_json(cli_llm *llm, const int32_t *tokens, size_t count) {
    bool ok = true;
    json_t *root = json_array();
    for (size_t i = 0; i < count; i++) {
        size_t bytes;
        const char *text = hd_model_token_text(llm->model, tokens[i], &bytes);
        json_t *row = json_object();
        char *copy = calloc(bytes + 1, 1);
        if (copy && text) memcpy(copy, text, bytes);
        cli_put(row, "id", json_integer(tokens[i]), &ok);
        cli_put(row, "text", copy ? cli_json_text(copy) : NULL, &ok);
        free(copy);
        if (json_array_append_new(root, row)) ok = false;
    }
    return cli_print_json(llm->cli.command, root, ok);
}

/* One token a line: its id, and its bytes with what does not print as \xNN. */
static void print(cli_llm *llm, const int32_t *tokens, size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t bytes;
        const char *text = hd_model_token_text(llm->model, tokens[i], &bytes);
        printf("%7d  \"", (int)tokens[i]);
        for (size_t k = 0; k < bytes; k++) {
            const unsigned char c = (unsigned char)text[k];
            if (c == '\n') printf("\\n");
            else if (c < ' ' || c > '~' || c == '"' || c == '\\') printf("\\x%02X", c);
            else putchar(c);
        }
        printf("\"\n");
    }
}

static int tokenize(const cli_args *args, cli_llm *llm, const char *text, size_t bytes) {
    const uint32_t flags = (cli_get(args, "--no-special") ? 0u : (uint32_t)HD_TOKENIZE_ADD_SPECIAL) |
                           (cli_get(args, "--parse-special") ? (uint32_t)HD_TOKENIZE_PARSE_SPECIAL : 0u);
    size_t count = 0;
    int code = cli_llm_tokenize(llm, text, bytes, flags, NULL, &count);
    if (code) return code;
    int32_t *tokens = calloc(count + 1, sizeof *tokens);
    if (!tokens) return cli_fail(args->command, "no memory is left");
    code = cli_llm_tokenize(llm, text, bytes, flags, tokens, &count);
    if (!code && cli_get(args, "--json")) code = print_json(llm, tokens, count);
    else if (!code) print(llm, tokens, count);
    free(tokens);
    return code;
}

static int run(const cli_args *args) {
    cli_llm llm = { 0 };
    const char *text = cli_get(args, "-p"), *file = cli_get(args, "-f");
    char *read = NULL;
    size_t bytes = text ? strlen(text) : 0;
    if (!text == !file) return cli_usage(args->command, "needs a text: -p TEXT or -f FILE");
    if (file && !(text = read = cli_read_text(args->command, file, TEXT_LIMIT, &bytes))) return CLI_FAILED;
    int code = cli_llm_open(args, &llm);
    if (!code) code = tokenize(args, &llm, text, bytes);
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
