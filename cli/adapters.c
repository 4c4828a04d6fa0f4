/* adapters.c: adapters that the command line names: a GGUF file, or a folder of PEFT's. */
#define _POSIX_C_SOURCE 200809L
#include "cli/llm.h"
#include <heddle_train.h>
#include <sys/stat.h>

/* How strong they are: --lora-scale. */
static bool read_strength(const cli_args *args, float *out) {
    double strength;
    if (!cli_get_fraction(args, "--lora-scale", -1000, 1000, 1, &strength)) return false;
    *out = (float)strength;
    return true;
}

static hd_status open_one(hd_context *context, const hd_model *model, const char *path, hd_adapter **out) {
    struct stat info;
    const bool is_folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    return is_folder ? hd_peft_read(context, model, path, out) : hd_adapter_read(context, path, out);
}

int cli_adapters_open(const cli_args *args, cli_session *session, const hd_model *model, cli_adapters *out) {
    const char *path;
    size_t at = 0;
    float strength;
    *out = (cli_adapters){ 0 };
    if (!read_strength(args, &strength)) return CLI_USAGE;
    while ((path = cli_next(args, "--lora", &at))) {
        if (out->count == CLI_MOST_ADAPTERS) return cli_usage(args->command, "more than %d times --lora", (int)CLI_MOST_ADAPTERS);
        if (open_one(session->context, model, path, &out->adapters[out->count])) return cli_session_fail(session, path);
        out->strengths[out->count++] = strength;
    }
    if (out->count == 0 && cli_get(args, "--lora-scale")) return cli_usage(args->command, "--lora-scale without --lora");
    return CLI_OK;
}

void cli_adapters_close(cli_adapters *adapters) {
    for (size_t i = 0; i < adapters->count; i++) hd_adapter_destroy(adapters->adapters[i]);
    adapters->count = 0;
}
