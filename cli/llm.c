/* llm.c: a model and its session, as the options ask for them. */
#include "cli/llm.h"
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_CONTEXT = 4096 };

/* The demo model of an installed heddle, wherever that was moved to; false where it is not there. */
static bool find_installed(char *path, size_t room) {
    if (!system_program(path, room - sizeof HEDDLE_DEMO_FROM_COMMAND)) return false;
    memcpy(path + (system_name_of(path) - path), HEDDLE_DEMO_FROM_COMMAND, sizeof HEDDLE_DEMO_FROM_COMMAND);
    return system_is_readable(path);
}

const char *cli_llm_path(const cli_args *args) {
    static char installed[4096];
    if (args->operand) return args->operand;
    return find_installed(installed, sizeof installed) ? installed : HEDDLE_DEMO_SOURCE;
}

static int adapt(const cli_args *args, cli_llm *llm) {
    cli_adapters adapters;
    int code = cli_adapters_open(args, &llm->cli, llm->model, &adapters);
    if (!code && adapters.count > 0 &&
        hd_model_adapt(llm->model, (const hd_adapter *const *)adapters.adapters, adapters.strengths, adapters.count))
        code = cli_session_fail(&llm->cli, NULL);
    cli_adapters_close(&adapters);
    return code;
}

int cli_llm_open(const cli_args *args, cli_llm *llm) {
    *llm = (cli_llm){ 0 };
    int code = cli_session_open(args->command, &llm->cli);
    if (code) return code;
    const char *path = cli_llm_path(args);
    if (hd_model_open(llm->cli.context, path, NULL, &llm->model))
        return cli_session_fail(&llm->cli, args->operand ? NULL : path);
    hd_model_get_info(llm->model, &llm->info);
    return adapt(args, llm);
}

/* Drawn anew for every percent. */
static void draw_progress(void *user, uint64_t done, uint64_t total) {
    cli_llm *llm = user;
    cli_cell done_text, total_text;
    const unsigned percent = total ? (unsigned)((double)done * 100 / (double)total) : 100;
    if (llm->bar == percent + 1) return;
    llm->bar = percent + 1;
    cli_progress("heddle: loading %3u%% %s of %s  %.*s", percent, cli_bytes(done, done_text),
                 cli_bytes(total, total_text), (int)(percent * 32 / 100), "################################");
}

/* Which types a cache may be of is the session's to say. */
static bool get_cache_type(const cli_args *args, hd_dtype *out_type) {
    const char *name = cli_get(args, "--cache-type");
    *out_type = name ? hd_dtype_parse(name) : HD_DTYPE_NONE;
    if (name && *out_type == HD_DTYPE_NONE)
        cli_usage(args->command, "--cache-type is a type such as f16 or q8_0, not \"%s\"", name);
    return !name || *out_type != HD_DTYPE_NONE;
}

/* Which sizes there may be is the session's to say. */
static bool get_pieces(const cli_args *args, uint32_t out[HD_MAX_PIECES]) {
    const char *list = cli_get(args, "--pieces");
    cli_cell item;
    size_t at = 0, count = 0;
    uint64_t rows = 1;
    while (list && rows && cli_next_item(list, &at, item, sizeof item))
        if (count == HD_MAX_PIECES || !cli_number(item, UINT32_MAX, &rows)) rows = 0;
        else out[count++] = (uint32_t)rows;
    if (!list || (rows && count)) return true;
    cli_usage(args->command, "--pieces is up to %d numbers of rows, the most first, such as 512,304,64; not \"%s\"",
              HD_MAX_PIECES, list);
    return false;
}

/* A number of layers as a session's wish has it: -1 for 0, and no more than the model has. */
static int layers_of(const cli_llm *llm, uint64_t wished) {
    return wished == 0 ? -1 : wished > llm->info.layers ? (int)llm->info.layers : (int)wished;
}

int cli_llm_prepare(const cli_args *args, cli_llm *llm) {
    uint64_t context, layers, experts, memory;
    uint32_t pieces[HD_MAX_PIECES] = { 0 };
    hd_math math;
    hd_dtype cache_type;
    const char *draft = cli_get(args, "--draft");
    if (draft && strcmp(draft, "lookup") != 0)
        return cli_usage(args->command, "--draft is lookup, not \"%s\"", draft);
    if (!cli_get_number(args, "--context", 1, 1u << 24, 0, &context) ||
        !cli_get_number(args, "--gpu-layers", 0, 1024, UINT32_MAX, &layers) ||
        !cli_get_number(args, "--cpu-experts", 0, 1024, UINT32_MAX, &experts) ||
        !cli_get_bytes(args, "--memory", &memory) || !cli_get_math(args, &math) || !get_cache_type(args, &cache_type) ||
        !get_pieces(args, pieces))
        return CLI_USAGE;
    int code = cli_session_device(&llm->cli, cli_get(args, "--device"));
    if (code) return code;
    if (context == 0) context = llm->info.context < DEFAULT_CONTEXT ? llm->info.context : DEFAULT_CONTEXT;
    if (llm->info.context && context > llm->info.context)
        cli_tell("heddle: --context %u is more than the %u tokens that the model was made for: what it says behind "
                 "them may be poor\n",
                 (unsigned)context, (unsigned)llm->info.context);
    llm->desc = (hd_session_desc){ .device = llm->cli.device, .context = (uint32_t)context, .math = math,
                                   .memory_bytes = memory, .stream = cli_get(args, "--stream") != NULL,
                                   .draft = draft ? HD_DRAFT_LOOKUP : HD_DRAFT_NONE, .cache_type = cache_type,
                                   .progress_user = llm };
    memcpy(llm->desc.pieces, pieces, sizeof pieces);
    if (layers != UINT32_MAX) llm->desc.device_layers = layers_of(llm, layers);
    if (experts != UINT32_MAX) llm->desc.cpu_experts = layers_of(llm, experts);
    llm->desc.progress = draw_progress;
    return CLI_OK;
}

int cli_llm_load(cli_llm *llm) {
    const hd_status status = hd_session_create(llm->model, &llm->desc, &llm->session);
    cli_progress_end();
    return status ? cli_session_fail(&llm->cli, NULL) : CLI_OK;
}

void cli_llm_close(cli_llm *llm) {
    hd_session_destroy(llm->session);
    hd_model_close(llm->model);
    cli_session_close(&llm->cli);
    *llm = (cli_llm){ 0 };
}

int cli_llm_tokenize(cli_llm *llm, const char *text, size_t bytes, uint32_t flags, int32_t *out_tokens, size_t *count) {
    return hd_model_tokenize(llm->model, text, bytes, flags, out_tokens, count) ? cli_session_fail(&llm->cli, NULL)
                                                                                : CLI_OK;
}

int cli_llm_take_tokens(cli_llm *llm, const char *text, size_t bytes, uint32_t flags, int32_t **out_tokens,
                        size_t *out_count) {
    int code = cli_llm_tokenize(llm, text, bytes, flags, NULL, out_count);
    if (code) return code;
    *out_tokens = calloc(*out_count + 1, sizeof **out_tokens);
    if (!*out_tokens) return cli_fail(llm->cli.command, "no memory is left");
    return cli_llm_tokenize(llm, text, bytes, flags, *out_tokens, out_count);
}

/* ---- a text in chunks ---- */

static int prepare_chunks(const cli_args *args, cli_llm *llm) {
    const int code = cli_llm_prepare(args, llm);
    if (!code && !cli_get(args, "--context") && llm->desc.context > 512) llm->desc.context = 512;
    return !code && llm->desc.context < 4 ? cli_usage(args->command, "--context takes 4 or more here") : code;
}


static int take_chunks(cli_llm *llm, const char *text, size_t bytes, int32_t **out_tokens, size_t *out_count) {
    int32_t begin[2];
    size_t begins = 2;
    const uint32_t size = llm->desc.context;
    int code = cli_llm_take_tokens(llm, text, bytes, HD_TOKENIZE_ADD_SPECIAL, out_tokens, out_count);
    if (!code && *out_count < size)
        code = cli_fail(llm->cli.command,
                        "the text has %zu tokens, and a chunk %u; give a longer text or a smaller --context",
                        *out_count, (unsigned)size);
    if (!code) code = cli_llm_tokenize(llm, "", 0, HD_TOKENIZE_ADD_SPECIAL, begin, &begins);
    if (code) return code;
    const bool has_begin = begins > 0 && (*out_tokens)[0] == begin[0];
    for (size_t at = 0; at < *out_count && has_begin; at += size) (*out_tokens)[at] = begin[0];
    return CLI_OK;
}

int cli_llm_run_chunks(const cli_args *args, cli_chunks_fn take_text) {
    enum { MOST_BYTES = 256 << 20 };
    cli_llm llm = { 0 };
    uint64_t most;
    size_t bytes = 0, count = 0;
    int32_t *tokens = NULL;
    if (!cli_get_number(args, "--chunks", 1, 1u << 30, 0, &most)) return CLI_USAGE;
    char *text = cli_read_text(args->command, args->operands[1], MOST_BYTES, &bytes);
    if (!text) return CLI_FAILED;
    int code = cli_llm_open(args, &llm);
    if (!code) code = prepare_chunks(args, &llm);
    if (!code) code = take_chunks(&llm, text, bytes, &tokens, &count);
    if (!code) {
        const uint64_t whole = count / llm.desc.context;
        code = take_text(args, &llm, tokens, count, most > 0 && whole > most ? most : whole);
    }
    free(tokens);
    cli_llm_close(&llm);
    free(text);
    return code;
}

json_t *cli_llm_fit_json(const hd_fit *fit, bool *ok) {
    json_t *root = json_object();
    const struct { const char *name; uint64_t value; } rows[] = {
        { "device_layers", fit->device_layers }, { "cpu_layers", fit->cpu_layers },
        { "streamed_layers", fit->streamed_layers }, { "cpu_experts", fit->cpu_experts },
        { "device_weight_bytes", fit->device_weight_bytes }, { "device_cache_bytes", fit->device_cache_bytes },
        { "device_scratch_bytes", fit->device_scratch_bytes }, { "device_bytes", fit->device_bytes },
        { "device_half_bytes", fit->device_half_bytes }, { "device_shared_bytes", fit->device_shared_bytes },
        { "cpu_weight_bytes", fit->cpu_weight_bytes }, { "cpu_cache_bytes", fit->cpu_cache_bytes },
        { "cpu_scratch_bytes", fit->cpu_scratch_bytes }, { "cpu_bytes", fit->cpu_bytes },
        { "chunk", fit->chunk }, { "device_memory_bytes", fit->device_memory_bytes },
    };
    for (size_t i = 0; i < CLI_COUNT(rows); i++)
        cli_put(root, rows[i].name, json_integer((json_int_t)rows[i].value), ok);
    cli_put(root, "fits", json_boolean(fit->fits), ok);
    return root;
}

double cli_per_second(uint64_t count, uint64_t ns) { return ns ? (double)count * 1e9 / (double)ns : 0; }
