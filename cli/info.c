/* info.c: `heddle info`: what a model file is. */
#include "cli/llm.h"

static int print_json(const cli_llm *llm, const char *path) {
    bool ok = true;
    const hd_model_info *i = &llm->info;
    json_t *root = json_object();
    cli_put(root, "path", cli_json_text(path), &ok);
    cli_put(root, "name", cli_json_text(i->name), &ok);
    cli_put(root, "architecture", cli_json_text(i->architecture), &ok);
    cli_put(root, "weight_types", cli_json_text(i->weight_types), &ok);
    cli_put(root, "tokenizer", cli_json_text(i->tokenizer), &ok);
    const struct { const char *name; uint64_t value; } rows[] = {
        { "file_bytes", i->file_bytes }, { "weight_bytes", i->weight_bytes }, { "parameters", i->parameters }, { "layers", i->layers },
        { "hidden", i->hidden }, { "heads", i->heads }, { "kv_heads", i->kv_heads }, { "head_size", i->head_size },
        { "feed_forward", i->feed_forward }, { "vocabulary", i->vocabulary }, { "context", i->context },
    };
    for (size_t k = 0; k < CLI_COUNT(rows); k++) cli_put(root, rows[k].name, json_integer((json_int_t)rows[k].value), &ok);
    cli_put(root, "has_chat_template", json_boolean(i->has_chat_template), &ok);
    return cli_print_json(llm->cli.command, root, ok);
}

static void print(const cli_llm *llm) {
    const hd_model_info *i = &llm->info;
    cli_cell file, weights;
    printf("name          %s\n", i->name[0] ? i->name : "(none)");
    printf("architecture  %s\n", i->architecture);
    const double millions = (double)i->parameters / 1e6;
    printf("parameters    %.2f %s\n", millions < 1000 ? millions : millions / 1000, millions < 1000 ? "million" : "billion");
    printf("weights       %s: %s\n", cli_bytes(i->weight_bytes, weights), i->weight_types);
    printf("file          %s\n", cli_bytes(i->file_bytes, file));
    printf("layers        %u of hidden size %u, feed-forward %u\n", (unsigned)i->layers, (unsigned)i->hidden, (unsigned)i->feed_forward);
    printf("attention     %u heads of %u, %u for keys and values\n", (unsigned)i->heads, (unsigned)i->head_size, (unsigned)i->kv_heads);
    printf("vocabulary    %u tokens, tokenizer %s\n", (unsigned)i->vocabulary, i->tokenizer);
    printf("context       %u tokens\n", (unsigned)i->context);
    printf("chat          %s\n", i->has_chat_template ? "has a template of its own" : "no template of its own");
}

static int run(const cli_args *args) {
    cli_llm llm;
    int code = cli_llm_open(args, &llm);
    if (!code && cli_get(args, "--json")) code = print_json(&llm, cli_llm_path(args));
    else if (!code) print(&llm);
    cli_llm_close(&llm);
    return code;
}

static const cli_option options[] = { CLI_OPTION_JSON };

const cli_command cli_info = {
    "info", "tells what a model file is", "info [MODEL.gguf] [--json]", "[MODEL.gguf]", options, CLI_COUNT(options),
    NULL, "  heddle info\n", run,
};
