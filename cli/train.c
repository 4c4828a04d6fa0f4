/* train.c: `heddle train`: a model from scratch on a file of text or tokens. Ctrl-C writes a checkpoint and ends. */
#define _POSIX_C_SOURCE 200809L
#include "cli/llm.h"
#include "cli/train.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DATA_LIMIT = INT_MAX, BYTES = 256, SAMPLE_MOST = 4096 };
#define DOCUMENT_END "<|endoftext|>" /* as data for GPT-2 and many since have it */

typedef struct job {
    const cli_args *args;
    train_run       run;
    hd_model       *tokenizer;     /* whose tokens the text becomes; NULL: it is bytes, or numbers */
    bool            learns;        /* the tokenizer is yet to be learned from the text */
    hd_token_data   data, held_out;
    char           *bytes, *held_out_bytes;
    uint64_t        sample_tokens;
} job;

#define TEMPERATURE 0.8f /* of samples */

/* ---- what is trained ---- */

/* A text as the tokenizer's tokens, which take its place; control tokens count, among them the ends of documents. */
static int tokenize(job *j, size_t bytes, char **inout_bytes, hd_token_data *out) {
    size_t count = 0;
    if (hd_model_tokenize(j->tokenizer, *inout_bytes, bytes, HD_TOKENIZE_PARSE_SPECIAL, NULL, &count))
        return cli_session_fail(&j->run.cli, NULL);
    int32_t *tokens = malloc(count * sizeof *tokens + 1);
    if (!tokens) return cli_fail(j->args->command, "no memory is left");
    const hd_status status =
        hd_model_tokenize(j->tokenizer, *inout_bytes, bytes, HD_TOKENIZE_PARSE_SPECIAL, tokens, &count);
    free(*inout_bytes);
    *inout_bytes = (char *)tokens;
    *out = (hd_token_data){ tokens, sizeof *tokens, count };
    return status ? cli_session_fail(&j->run.cli, NULL) : CLI_OK;
}

/* Whether documents of the text are ended; zeros may stand in it. */
static bool has_ends(const char *text, size_t bytes) {
    for (const char *at = text; at < text + bytes; at += strlen(at) + 1)
        if (strstr(at, DOCUMENT_END)) return true;
    return false;
}

/* A tokenizer of as many tokens as the model is to have, from the text that it will be trained on. */
static int learn(job *j, const char *text, size_t bytes) {
    j->learns = false;
    cli_progress("learning %u tokens", (unsigned)j->run.desc.model.vocabulary);
    const hd_status status = hd_tokenizer_learn(j->run.cli.context, text, bytes, j->run.desc.model.vocabulary,
                                                has_ends(text, bytes) ? DOCUMENT_END : NULL, &j->tokenizer);
    cli_progress_end();
    return status ? cli_session_fail(&j->run.cli, NULL) : CLI_OK;
}

/* A file as tokens: its bytes, what a tokenizer makes of them, or 16-bit numbers with --tokens. */
static int read_data(job *j, const char *path, char **out_bytes, hd_token_data *out) {
    size_t bytes;
    const uint32_t width = cli_get(j->args, "--tokens") ? 2 : 1;
    *out_bytes = cli_read_text(j->args->command, path, DATA_LIMIT, &bytes);
    if (!*out_bytes) return CLI_FAILED;
    if (j->learns && learn(j, *out_bytes, bytes)) return CLI_FAILED;
    if (j->tokenizer) return tokenize(j, bytes, out_bytes, out);
    *out = (hd_token_data){ *out_bytes, width, bytes / width };
    return bytes % width == 0 ? CLI_OK : cli_fail(j->args->command, "%s holds no whole number of 16-bit tokens", path);
}

/* How many tokens there are where nobody says it. */
static uint32_t vocabulary_of(const job *j) {
    hd_model_info info;
    if (j->tokenizer && !hd_model_get_info(j->tokenizer, &info)) return info.vocabulary;
    return cli_get(j->args, "--tokens") ? 65536 : BYTES;
}

/* The model of a new run. */
static int read_model(job *j) {
    hd_gpt *model = &j->run.desc.model;
    *model = (hd_gpt){ .layers = 4, .width = 128, .heads = 4, .context = 128, .vocabulary = vocabulary_of(j) };
    const char *config = cli_get(j->args, "--config");
    if (config && train_config_read(j->args->command, config, model)) return CLI_USAGE;
    const bool good =
        train_get_u32(j->args, "--layers", &model->layers) && train_get_u32(j->args, "--width", &model->width) &&
        train_get_u32(j->args, "--heads", &model->heads) && train_get_u32(j->args, "--context", &model->context) &&
        train_get_u32(j->args, "--vocabulary", &model->vocabulary);
    j->learns = !j->tokenizer && !cli_get(j->args, "--tokens") && model->vocabulary > BYTES;
    return good ? CLI_OK : CLI_USAGE;
}

/* The number behind "NAME=", or `usual` behind "NAME" alone, at least `least` and below `below`; false: it is no such
 * text. */
static bool number_of(const char *how, const char *name, double least, double below, double *inout_usual) {
    const size_t length = strlen(name);
    char *end = NULL;
    if (strncmp(how, name, length) != 0) return false;
    if (how[length] == 0) return true;
    *inout_usual = strtod(how + length + 1, &end);
    return how[length] == '=' && end != how + length + 1 && *end == 0 && *inout_usual >= least && *inout_usual < below;
}

/* "adamw", "muon", "muon=RATE", "sgd" or "sgd=MOMENTUM". */
static bool read_optimizer(job *j) {
    const double least_rate = 1e-30;
    const char *how = cli_get(j->args, "--optimizer");
    double rate = 0, momentum = 0.9;
    hd_trainer_desc *desc = &j->run.desc;
    if (!how || strcmp(how, "adamw") == 0) return true;
    if (number_of(how, "muon", least_rate, 1000, &rate)) {
        desc->optimizer = HD_OPTIMIZER_MUON;
        desc->muon_rate = rate;
        return true;
    }
    if (number_of(how, "sgd", 0, 1, &momentum)) {
        desc->optimizer = HD_OPTIMIZER_SGD;
        desc->sgd_momentum = momentum;
        return true;
    }
    cli_usage(j->args->command,
              "--optimizer is adamw, muon, muon=RATE with a rate above 0, sgd, or sgd=MOMENTUM from 0 to below 1, not "
              "\"%s\"", how);
    return false;
}

/* Weights of bf16 go with products of bf16, which they bring along. */
static bool read_types(job *j) {
    const char *weights = cli_get(j->args, "--weights"), *products = cli_get(j->args, "--precision");
    if (!train_run_precision(&j->run, true)) return false;
    if (!weights || strcmp(weights, "f32") == 0) return true;
    if (strcmp(weights, "bf16") != 0)
        return cli_usage(j->args->command, "--weights is f32 or bf16, not \"%s\"", weights), false;
    if (products && strcmp(products, "bf16") != 0)
        return cli_usage(j->args->command, "--weights bf16 goes with --precision bf16, not %s", products), false;
    j->run.desc.precision = HD_PRECISION_BF16;
    j->run.desc.narrow = 1;
    return true;
}

static bool read_recipe(void *user) {
    static const train_defaults usual = {
        .steps = 1000, .batch = 16, .rate = 1e-3, .beta2 = 0.99, .weight_decay = 0.1
    };
    job *j = user;
    return train_run_recipe(&j->run, &usual) && read_optimizer(j) && read_types(j);
}

static int make_trainer(job *j) {
    const hd_trainer_desc *desc = &j->run.desc;
    const uint32_t length = desc->length ? desc->length : desc->model.context;
    if (j->data.count <= length)
        return cli_fail(j->args->command, "the data holds no more than the %u tokens of one sequence",
                        (unsigned)length);
    if (j->held_out.tokens && j->held_out.count < 2)
        return cli_fail(j->args->command, "%s holds less than two tokens", cli_get(j->args, "--held-out"));
    return train_run_make(&j->run, j->data.count * j->data.token_bytes);
}

/* ---- what a run asks for ---- */

static void batch(void *user, uint64_t step, int32_t *tokens, int32_t *targets) {
    const job *j = user;
    hd_draw_batch(&j->data, j->run.desc.seed, step, j->run.desc.batch, j->run.desc.length, tokens, targets);
}

static bool held_out(void *user, uint64_t number) {
    const job *j = user;
    const hd_trainer_desc *desc = &j->run.desc;
    return hd_cut_batch(&j->held_out, number, desc->micro_batch, desc->length, j->run.tokens, j->run.targets);
}

/* What a sample begins behind: the end of a text before it, or a line's end; or just any token. */
static int32_t token_before(const job *j) {
    if (j->data.token_bytes == 1) return '\n';
    for (int32_t i = 0; i < (int32_t)j->run.desc.model.vocabulary && j->tokenizer; i++)
        if (hd_model_token_ends(j->tokenizer, i)) return i;
    return 0;
}

static void print_token(const job *j, int32_t token, bool first) {
    const char letter = (char)token;
    size_t bytes = 1;
    const char *text = j->tokenizer ? hd_model_token_text(j->tokenizer, token, &bytes) : &letter;
    if (!j->tokenizer && j->data.token_bytes > 1) cli_print("%s%d", first ? "" : ",", (int)token);
    else if (text) cli_print_text(text, bytes);
}

/* The next tokens after the prompt, drawn one by one. */
static int sample(void *user) {
    job *j = user;
    int32_t tokens[SAMPLE_MOST + 1];
    size_t count = 1;
    tokens[0] = token_before(j);
    cli_progress_end();
    cli_note("heddle: after step %llu\n", (unsigned long long)hd_trainer_steps(j->run.trainer));
    for (uint64_t i = 0; i < j->sample_tokens && system_interrupts_count() == 0; i++, count++) {
        const uint64_t draw = hd_trainer_steps(j->run.trainer) << 16 | i;
        if (hd_trainer_next(j->run.trainer, tokens, count, TEMPERATURE, draw, &tokens[count]))
            return cli_session_fail(&j->run.cli, NULL);
        print_token(j, tokens[count], i == 0);
    }
    cli_print("\n");
    return CLI_OK;
}

/* ---- the command ---- */

static int export(job *j) {
    const char *path = cli_get(j->args, "--export");
    const hd_export_desc desc = { .tokenizer = j->tokenizer, .bytes = j->data.token_bytes == 1 };
    if (!path) return CLI_OK;
    const int code = train_run_use_best(&j->run);
    if (code) return code;
    if (hd_trainer_export(j->run.trainer, path, &desc)) return cli_session_fail(&j->run.cli, NULL);
    cli_print("model       %s\n", path);
    return CLI_OK;
}

/* The one that is named, or the one that a run began with. */
static int open_tokenizer(job *j) {
    const char *path = cli_get(j->args, "--tokenizer");
    char kept[TRAIN_PATH];
    if (path && cli_get(j->args, "--tokens"))
        return cli_usage(j->args->command, "--tokens are numbers already: leave --tokenizer out");
    train_run_file(&j->run, "tokenizer.gguf", kept, sizeof kept);
    if (!path && cli_get(j->args, "--resume") && access(kept, F_OK) == 0) path = kept;
    if (!path) return CLI_OK;
    const hd_model_desc desc = { .tokenizer_only = 1 };
    return hd_model_open(j->run.cli.context, path, &desc, &j->tokenizer) ? cli_session_fail(&j->run.cli, NULL) : CLI_OK;
}

static int train(job *j) {
    const char *held_out = cli_get(j->args, "--held-out");
    int code = cli_session_open(j->args->command, &j->run.cli);
    if (!code) code = train_run_peek(&j->run);
    if (!code) code = open_tokenizer(j);
    if (!code && !cli_get(j->args, "--resume")) code = read_model(j);
    if (!code) code = read_data(j, j->args->operand, &j->bytes, &j->data);
    if (!code && held_out) code = read_data(j, held_out, &j->held_out_bytes, &j->held_out);
    if (!code)
        code = train_run_begin(&j->run, train_hash(j->data.tokens, (size_t)(j->data.count * j->data.token_bytes)),
                               read_recipe, j);
    j->run.desc.tokenizer = j->tokenizer;
    if (!code) code = make_trainer(j);
    if (!code) code = train_run_go(&j->run);
    if (!code) code = train_run_report(&j->run);
    return code ? code : export(j);
}

static int run(const cli_args *args) {
    static const char *const free_options[] = { "--tokens", "--tokenizer",    "--held-out",
                                                "--export", "--sample-every", "-n" };
    job j = { .args = args };
    if (!train_run_options(args, "heddle-train", &j.run) ||
        !cli_get_number(args, "--sample-every", 0, INT64_MAX, 0, &j.run.sample_every) ||
        !cli_get_number(args, "-n", 1, SAMPLE_MOST, 200, &j.sample_tokens))
        return CLI_USAGE;
    j.run.user = &j;
    j.run.batch = batch;
    j.run.sample = sample;
    j.run.held_out = cli_get(args, "--held-out") ? held_out : NULL;
    j.run.free_options = free_options;
    j.run.free_count = CLI_COUNT(free_options);
    const int code = train(&j);
    hd_model_close(j.tokenizer);
    train_run_end(&j.run);
    free(j.bytes);
    free(j.held_out_bytes);
    return code;
}

static const cli_option options[] = {
    { "--export", "OUT.gguf",
      "write the model for `heddle generate` when the run ends, or has ended: --resume" },
    { "--tokenizer", "MODEL.gguf",
      "whose tokens the text becomes, or a checkpoint's tokenizer.gguf; default: its bytes are tokens" },
    { "--tokens", NULL, "the data is 16-bit token numbers, little-endian, in place of text" },
    { "--held-out", "FILE", "data of the same kind to measure the loss on, all of it, twenty times in a run" },
    { "--config", "FILE.json",
      "the model: Hugging Face's config.json of a GPT-2, llama or qwen3; options come first" },
    { "--layers", "N", "default: 4" },
    { "--width", "N", "default: 128" },
    { "--heads", "N", "default: 4" },
    { "--context", "N", "most tokens of a sequence; default: 128" },
    { "--vocabulary", "N",
      "above 256 a tokenizer is learned; default: 256 bytes, or the tokenizer's; --tokens: 65536" },
    { "--optimizer", "HOW",
      "adamw, muon[=RATE] for layers' matrices, or sgd[=MOMENTUM]; default: adamw, and 0.02 and 0.9" },
    { "--precision", "TYPE",
      "what products read: f32, bf16, or ternary weights as BitNet's, exported as tq2_0; default: f32" },
    { "--weights", "TYPE", "what matrices are kept in: f32, or bf16 rounded at random, half as large; default: f32" },
    { "--sample-every", "N", "steps between texts that the model writes; 0: none; default: 0" },
    { "-n", "N", "tokens of such a text; default: 200" },
    TRAIN_RUN_OPTIONS("heddle-train", "16", "the context", "1000", "0.001", "0.1"),
};

const cli_command cli_train = {
    "train", "trains a model from scratch on a text", "train DATA [options]", "DATA", options, CLI_COUNT(options), NULL,
    "  heddle train shakespeare.txt --steps 2000 --sample-every 200 --save-every 500\n", run,
};
