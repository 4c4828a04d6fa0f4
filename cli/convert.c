/* convert.c: `heddle convert`: a folder of Hugging Face's transformers as one GGUF file. */
#include "cli/convert.h"
#include <stdlib.h>
#include <string.h>

enum { JSON_LIMIT = 128 << 20, PATH_ROOM = 4096 };

json_t *cli_convert_json(const cli_conversion *c, const char *name, bool needed, int *code) {
    char path[PATH_ROOM];
    size_t bytes;
    json_error_t error;
    if (snprintf(path, sizeof path, "%s/%s", c->folder, name) >= (int)sizeof path) {
        *code = cli_fail(c->command, "%.200s: the path is too long", c->folder);
        return NULL;
    }
    if (!needed && !system_is_there(path)) return NULL;
    char *text = cli_read_text(c->command, path, JSON_LIMIT, &bytes);
    json_t *json = text ? json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error) : NULL;
    if (!text) *code = CLI_FAILED;
    else if (!json) *code = cli_fail(c->command, "%s, line %d: %s", path, error.line, error.text);
    else if (!json_is_object(json)) *code = cli_fail(c->command, "%s: a JSON object is needed", path);
    free(text);
    return json;
}

static void end(cli_conversion *c) {
    hd_model_writer_destroy(c->writer);
    for (size_t i = 0; i < c->shard_count; i++) hd_safetensors_close(c->shards[i]);
    json_decref(c->config.root);
    json_decref(c->tokenizer);
    json_decref(c->tokenizer_config);
    free(c->tensors);
    free(c->stacks);
}

/* Shapes, types and the vocabulary are looked at by whoever opens a model: a file that does not open goes. */
static int try_out(cli_conversion *c, const char *path) {
    hd_model *model = NULL;
    const hd_status status = hd_model_open(c->session->context, path, NULL, &model);
    const int code = status ? cli_session_fail(c->session, NULL) : CLI_OK;
    hd_model_close(model);
    if (code) remove(path);
    return code;
}

int cli_convert_folder(cli_session *session, const char *folder, const char *out_path, uint64_t *out_tensors) {
    cli_conversion c = { .session = session, .command = session->command, .folder = folder };
    int code = CLI_OK;
    if (hd_model_writer_create(session->context, &c.writer)) code = cli_session_fail(session, NULL);
    c.config = (cli_config){ .command = session->command, .path = c.config_path };
    if (!code && snprintf(c.config_path, sizeof c.config_path, "%s/config.json", folder) >= (int)sizeof c.config_path)
        code = cli_fail(c.command, "%.200s: the path is too long", folder);
    if (!code) code = cli_config_read(c.command, c.config_path, &c.config);
    if (!code) c.tokenizer = cli_convert_json(&c, "tokenizer.json", true, &code);
    if (!code) c.tokenizer_config = cli_convert_json(&c, "tokenizer_config.json", false, &code);
    if (!code) code = cli_convert_config(&c);
    if (!code) code = cli_convert_tokenizer(&c);
    if (!code) code = cli_convert_tensors(&c);
    if (!code && hd_model_writer_write(c.writer, out_path)) code = cli_session_fail(session, NULL);
    if (!code) code = try_out(&c, out_path);
    if (out_tensors) *out_tensors = c.tensor_count;
    end(&c);
    return code;
}

static int run(const cli_args *args) {
    cli_session session;
    hd_model_info info;
    uint64_t tensors = 0;
    cli_cell bytes;
    int code = cli_session_open(args->command, &session);
    if (!code) code = cli_convert_folder(&session, args->operands[0], args->operands[1], &tensors);
    if (!code && hd_model_describe(session.context, args->operands[1], &info)) code = cli_session_fail(&session, NULL);
    if (!code)
        cli_print("%s: %s of %u layers, %llu tensors, %s of weights: %s\n", args->operands[1], info.architecture,
                  (unsigned)info.layers, (unsigned long long)tensors, cli_bytes(info.weight_bytes, bytes),
                  info.weight_types);
    cli_session_close(&session);
    return code;
}

const cli_command cli_convert = {
    "convert", "writes a folder of Hugging Face's transformers as a GGUF file", "convert FOLDER OUT.gguf",
    "FOLDER OUT.gguf",
    NULL, 0,
    "FOLDER has config.json, tokenizer.json and model.safetensors, or its shards and their index. Weights keep their "
    "types.\n"
    "Llama, Mistral, Mixtral, Qwen2, Qwen3, Gemma 1 to 3, Phi3, gpt-oss, OLMo2, Granite, SmolLM3, BERT and more are\n"
    "converted; docs/models.md lists them.\n",
    "  heddle convert Qwen3-0.6B qwen3-0.6b.gguf\n", run,
};
