/* info.c: `heddle info`: what a model file is. */
#include "cli/llm.h"
#include <string.h>

static int print_json(const cli_llm *llm, const char *path) {
    bool ok = true;
    const hd_model_info *i = &llm->info;
    json_t *root = json_object();
    cli_put(root, "path", cli_json_text(path), &ok);
    cli_put(root, "name", cli_json_text(i->name), &ok);
    cli_put(root, "type", cli_json_text(i->type), &ok);
    cli_put(root, "architecture", cli_json_text(i->architecture), &ok);
    cli_put(root, "weight_types", cli_json_text(i->weight_types), &ok);
    cli_put(root, "tokenizer", cli_json_text(i->tokenizer), &ok);
    const struct { const char *name; uint64_t value; } rows[] = {
        { "file_bytes", i->file_bytes }, { "weight_bytes", i->weight_bytes }, { "parameters", i->parameters },
        { "layers", i->layers },
        { "hidden", i->hidden }, { "heads", i->heads }, { "kv_heads", i->kv_heads }, { "head_size", i->head_size },
        { "feed_forward", i->feed_forward }, { "vocabulary", i->vocabulary }, { "context", i->context },
    };
    for (size_t k = 0; k < CLI_COUNT(rows); k++)
        cli_put(root, rows[k].name, json_integer((json_int_t)rows[k].value), &ok);
    cli_put(root, "has_chat_template", json_boolean(i->has_chat_template), &ok);
    cli_put(root, "embeds_only", json_boolean(i->embeds_only), &ok);
    cli_put(root, "pooling", cli_json_text(cli_pooling_names[i->pooling]), &ok);
    return cli_print_json(llm->cli.command, root, ok);
}

static void print(const cli_llm *llm) {
    const hd_model_info *i = &llm->info;
    cli_cell cells[24], bytes;
    const double millions = (double)i->parameters / 1e6;
    size_t row = 0;
#define ROW(label, ...)                                                                                                \
    (snprintf(cells[2 * row], CLI_CELL, "%s", label), snprintf(cells[2 * row + 1], CLI_CELL, __VA_ARGS__), row++)
    ROW("name", "%s", i->name[0] ? i->name : "(none)");
    if (strcmp(i->type, "model") != 0) ROW("type", "%s", i->type);
    ROW("architecture", "%s", i->architecture);
    ROW("parameters", "%.2f %s", millions < 1000 ? millions : millions / 1000, millions < 1000 ? "million" : "billion");
    ROW("weights", "%s: %s", cli_bytes(i->weight_bytes, bytes), i->weight_types);
    ROW("file", "%s", cli_bytes(i->file_bytes, bytes));
    ROW("layers", "%u of hidden size %u, feed-forward %u", (unsigned)i->layers, (unsigned)i->hidden,
        (unsigned)i->feed_forward);
    ROW("attention", "%u heads of %u, %u for keys and values", (unsigned)i->heads, (unsigned)i->head_size,
        (unsigned)i->kv_heads);
    ROW("vocabulary", "%u tokens, tokenizer %s", (unsigned)i->vocabulary, i->tokenizer);
    ROW("context", "%u tokens", (unsigned)i->context);
    if (i->embeds_only || i->pooling)
        ROW("vectors", "of %u numbers, pooling %s%s", (unsigned)i->hidden, cli_pooling_names[i->pooling],
            i->embeds_only ? "; it answers with these, not with text" : "");
    if (!i->embeds_only)
        ROW("chat", "%s", i->has_chat_template ? "has a template of its own" : "no template of its own");
#undef ROW
    cli_table(cells, row, 2, 0);
}

/* A file that cannot be run is told about too, as far as it can be read; why it cannot be was said before. */
static int run(const cli_args *args) {
    cli_llm llm;
    const int code = cli_llm_open(args, &llm);
    const bool known = !code || (llm.cli.context && !hd_model_describe(llm.cli.context, cli_llm_path(args), &llm.info));
    int printed = CLI_OK;
    if (!known) cli_session_forget(&llm.cli);
    else if (cli_get(args, "--json")) printed = print_json(&llm, cli_llm_path(args));
    else print(&llm);
    cli_llm_close(&llm);
    return code ? code : printed;
}

static const cli_option options[] = { CLI_OPTION_JSON };

const cli_command cli_info = {
    "info", "tells what a model file is", "info [MODEL.gguf] [--json]", "[MODEL.gguf]", options, CLI_COUNT(options),
    NULL, "  heddle info\n", run,
};
