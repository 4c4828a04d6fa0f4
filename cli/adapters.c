/* adapters.c: adapters that the command line names: a GGUF file, or a folder of PEFT's. */
#include "cli/llm.h"
#include <heddle_train.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_ROOM = 4096 };

/* "PATH" or "PATH=X": the path, and how strong that adapter is. */
static bool split(const cli_args *args, const char *word, char path[PATH_ROOM], float *out_strength) {
    const char *equals = strrchr(word, '=');
    char *end = NULL;
    const double strength = equals ? strtod(equals + 1, &end) : 1;
    const bool is_number = equals && end != equals + 1 && *end == 0 && isfinite(strength);
    const size_t length = is_number ? (size_t)(equals - word) : strlen(word);
    *out_strength = is_number ? (float)strength : 1;
    if (length == 0 || length >= PATH_ROOM)
        return cli_usage(args->command, "--lora needs the path of an adapter"), false;
    memcpy(path, word, length);
    path[length] = 0;
    return true;
}

static hd_status open_one(hd_context *context, const hd_model *model, const char *path, hd_adapter **out) {
    return system_is_folder(path) ? hd_peft_read(context, model, path, out) : hd_adapter_read(context, path, out);
}

int cli_adapters_open(const cli_args *args, cli_session *session, const hd_model *model, cli_adapters *out) {
    const char *word;
    char path[PATH_ROOM];
    size_t at = 0;
    *out = (cli_adapters){ 0 };
    while ((word = cli_next(args, "--lora", &at))) {
        if (out->count == CLI_MOST_ADAPTERS)
            return cli_usage(args->command, "more than %d times --lora", (int)CLI_MOST_ADAPTERS);
        if (!split(args, word, path, &out->strengths[out->count])) return CLI_USAGE;
        if (open_one(session->context, model, path, &out->adapters[out->count])) return cli_session_fail(session, path);
        out->count++;
    }
    return CLI_OK;
}

void cli_adapters_close(cli_adapters *adapters) {
    for (size_t i = 0; i < adapters->count; i++) hd_adapter_destroy(adapters->adapters[i]);
    adapters->count = 0;
}
