/* merge.c: `heddle merge`: a model file with adapters added to its weights. */
#include "cli/llm.h"

static int merge(const cli_args *args, cli_session *session) {
    cli_adapters adapters = { 0 };
    hd_model *model = NULL;
    int code = CLI_OK;
    if (hd_model_open(session->context, args->operand, NULL, &model)) return cli_session_fail(session, NULL);
    code = cli_adapters_open(args, session, model, &adapters);
    hd_model_close(model);
    const hd_merge_desc desc = { .adapters = (const hd_adapter *const *)adapters.adapters,
                                 .strengths = adapters.strengths,
                                 .count = adapters.count,
                                 .type = cli_get(args, "--type") };
    if (!code && hd_model_merge(session->context, args->operand, cli_get(args, "-o"), &desc))
        code = cli_session_fail(session, NULL);
    cli_adapters_close(&adapters);
    return code;
}

static int run(const cli_args *args) {
    cli_session session;
    hd_model_info info;
    cli_cell bytes;
    const char *out = cli_get(args, "-o");
    if (!out) return cli_usage(args->command, "-o names the file to write");
    if (!cli_get(args, "--lora")) return cli_usage(args->command, "--lora names the adapter to merge");
    int code = cli_session_open(args->command, &session);
    if (!code) code = merge(args, &session);
    if (!code && hd_model_describe(session.context, out, &info)) code = cli_session_fail(&session, NULL);
    if (!code) cli_print("%s: %s of weights: %s\n", out, cli_bytes(info.weight_bytes, bytes), info.weight_types);
    cli_session_close(&session);
    return code;
}

static const cli_option options[] = {
    { "-o", "OUT.gguf", "the file to write" },
    CLI_OPTIONS_LORA,
    { "--type", "TYPE", "of the weights that change, such as f16 or q8_0; default: their own" },
};

const cli_command cli_merge = {
    "merge", "writes a model with adapters added to its weights", "merge MODEL.gguf --lora ADAPTER -o OUT.gguf",
    "MODEL.gguf", options,
    CLI_COUNT(options),
    "Weights of a quantised type are rounded once more, which loses some of what was learned: merge into f16 or q8_0,\n"
    "or leave the adapter beside its model (heddle generate --lora).\n",
    "  heddle merge model.gguf --lora adapter.gguf --type f16 -o merged.gguf\n", run,
};
