/* finetune.c: `heddle finetune`: adapters for a model, learned from conversations. Ctrl-C writes a checkpoint and
 * ends. */
#include "cli/llm.h"
#include "cli/train.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
    const cli_args *args;
    train_run       run;
    hd_model       *model;
    hd_samples     *samples, *held_out;
    int32_t        *starts;  /* of a batch of packed samples */
    const char     *out;     /* where the adapter goes */
} job;

/* ---- what is trained ---- */

static int read_samples(job *j, const char *path, hd_samples **out) {
    uint32_t length = 0;
    cli_session *cli = &j->run.cli;
    hd_model_info info;
    if (!train_get_u32(j->args, "--length", &length)) return CLI_USAGE;
    if (j->run.desc.length) length = j->run.desc.length; /* of the run that is gone on with */
    if (length == 0 && !hd_model_get_info(j->model, &info)) length = info.context < 512 ? info.context : 512;
    const hd_samples_desc desc = { .template_name = cli_get(j->args, "--template"), .length = length,
                                   .packed = cli_get(j->args, "--pack") != NULL };
    if (hd_samples_read(cli->context, j->model, path, &desc, out)) return cli_session_fail(cli, NULL);
    const hd_samples_info read = hd_samples_get_info(*out);
    cli_tell("heddle: %s: %llu samples, %llu tokens, of them %llu to learn; %llu too long, %llu left out\n", path,
             (unsigned long long)read.samples, (unsigned long long)read.tokens, (unsigned long long)read.targets,
             (unsigned long long)read.cut, (unsigned long long)read.empty);
    return CLI_OK;
}

static bool read_recipe(void *user) {
    job *j = user;
    hd_lora_desc *lora = &j->run.desc.lora;
    double alpha;
    const char *targets = cli_get(j->args, "--targets");
    train_defaults usual = { .batch = 4, .rate = 2e-4, .beta2 = 0.999 };
    uint32_t batch = usual.batch;
    lora->rank = 16;
    if (!train_get_u32(j->args, "--rank", &lora->rank) || !train_get_u32(j->args, "--batch", &batch) ||
        !cli_get_fraction(j->args, "--alpha", 0, 1e6, 2.0 * lora->rank, &alpha))
        return false;
    lora->alpha = (float)alpha;
    j->run.desc.recompute = cli_get(j->args, "--recompute") != NULL;
    j->run.desc.packed = cli_get(j->args, "--pack") != NULL;
    if (targets && strlen(targets) >= sizeof lora->targets)
        return cli_usage(j->args->command, "--targets is too long"), false;
    if (targets) strcpy(lora->targets, targets);
    usual.steps = (3 * hd_samples_get_info(j->samples).rows + batch - 1) / batch;
    return train_run_recipe(&j->run, &usual) && train_run_precision(&j->run, false);
}

/* Tells the trainer where packed samples begin; what is wrong with them is told by the step that follows. */
static void tell_starts(const job *j, const hd_samples *samples, uint64_t step, uint32_t count) {
    if (!j->starts) return;
    hd_samples_starts(samples, j->run.desc.seed, step, count, j->starts);
    hd_trainer_starts(j->run.trainer, j->starts);
}

static void batch(void *user, uint64_t step, int32_t *tokens, int32_t *targets) {
    const job *j = user;
    hd_samples_draw(j->samples, j->run.desc.seed, step, j->run.desc.batch, tokens, targets);
    tell_starts(j, j->samples, step, j->run.desc.batch);
}

/* All rows come once before one comes again: those of the last batch that do have no targets. */
static bool held_out(void *user, uint64_t number) {
    const job *j = user;
    const train_run *run = &j->run;
    const uint64_t first = number * run->desc.micro_batch, count = hd_samples_get_info(j->held_out).rows;
    if (first >= count) return false;
    hd_samples_draw(j->held_out, run->desc.seed, number, run->desc.micro_batch, run->tokens, run->targets);
    tell_starts(j, j->held_out, number, run->desc.micro_batch);
    for (uint64_t i = (count - first) * run->desc.length; i < (uint64_t)run->desc.micro_batch * run->desc.length; i++)
        run->targets[i] = -1;
    return true;
}

/* ---- the adapter ---- */

static bool is_gguf(const char *path) {
    const size_t length = strlen(path);
    return length > 5 && strcmp(path + length - 5, ".gguf") == 0;
}

static int write_adapter(job *j) {
    hd_adapter *adapter = NULL;
    hd_context *context = j->run.cli.context;
    hd_status status = hd_trainer_adapter(j->run.trainer, &adapter);
    if (!status)
        status =
            is_gguf(j->out) ? hd_adapter_write(adapter, j->out) : hd_peft_write(context, j->model, adapter, j->out);
    hd_adapter_destroy(adapter);
    if (status) return cli_session_fail(&j->run.cli, NULL);
    cli_print("adapter     %s\n", j->out);
    return CLI_OK;
}

/* ---- the command ---- */

static int finetune(job *j) {
    const char *held_out = cli_get(j->args, "--held-out");
    train_run *run = &j->run;
    int code = cli_session_open(j->args->command, &run->cli);
    if (!code && hd_model_open(run->cli.context, j->args->operands[0], NULL, &j->model))
        code = cli_session_fail(&run->cli, NULL);
    if (!code) code = train_run_peek(run); /* for the length */
    if (!code) code = read_samples(j, j->args->operands[1], &j->samples);
    if (!code && held_out) code = read_samples(j, held_out, &j->held_out);
    if (!code) code = train_run_begin(run, hd_samples_get_info(j->samples).hash, read_recipe, j);
    if (code) return code;
    run->desc.base = j->model;
    code = train_run_make(run, hd_samples_get_info(j->samples).tokens * sizeof(int32_t));
    if (!code && run->desc.packed) {
        j->starts = calloc((size_t)run->desc.batch * run->desc.length, sizeof *j->starts);
        if (!j->starts) return cli_fail(j->args->command, "no memory is left");
    }
    if (!code) code = train_run_go(run);
    if (!code) code = train_run_report(run);
    if (!code) code = train_run_use_best(run);
    return code ? code : write_adapter(j);
}

static int run(const cli_args *args) {
    static const char *const free_options[] = { "-o", "--held-out", "--template", "--pack" };
    job j = { .args = args, .out = cli_get(args, "-o") };
    if (!j.out) j.out = "adapter.gguf";
    if (!train_run_options(args, "heddle-finetune", &j.run)) return CLI_USAGE;
    j.run.user = &j;
    j.run.batch = batch;
    j.run.held_out = cli_get(args, "--held-out") ? held_out : NULL;
    j.run.free_options = free_options;
    j.run.free_count = CLI_COUNT(free_options);
    const int code = finetune(&j);
    hd_samples_destroy(j.samples);
    hd_samples_destroy(j.held_out);
    hd_trainer_destroy(j.run.trainer);
    j.run.trainer = NULL; /* before its model */
    hd_model_close(j.model);
    train_run_end(&j.run);
    free(j.starts);
    return code;
}

static const cli_option options[] = {
    { "-o", "ADAPTER", "where the adapter goes: NAME.gguf, or a folder as PEFT has it; default: adapter.gguf" },
    { "--rank", "N", "of the adapters; default: 16" },
    { "--alpha", "X", "what they add is multiplied by alpha / rank; default: twice the rank" },
    { "--targets", "LIST", "weights that get adapters: attn_q,attn_v; default: all of attention and feed-forward" },
    { "--precision", "TYPE",
      "what products read: f32, or bf16, which is faster on matrix units; default: f32" },
    { "--recompute", NULL, "compute a layer again for its gradients: much less memory, about a third more time" },
    { "--template", "NAME", "the model's own, or chatml, llama3, qwen, gemma, mistral, llama2, phi3, bitnet" },
    { "--pack", NULL, "as many samples one behind the other as fit into a sequence: no room is wasted on short ones" },
    { "--held-out", "FILE.jsonl",
      "samples to measure the loss on, all of them, twenty times in a run; the best adapter is kept" },
    TRAIN_RUN_OPTIONS("heddle-finetune", "4", "512", "three times through the samples", "0.0002", "0"),
};

const cli_command cli_finetune = {
    "finetune", "trains adapters (LoRA) for a model on conversations",
    "finetune MODEL.gguf DATA.jsonl [-o ADAPTER] [options]",
    "MODEL.gguf DATA.jsonl", options, CLI_COUNT(options),
    "Each line of DATA.jsonl is {\"messages\": [{\"role\": \"user\", \"content\": \"...\"}, {\"role\": \"assistant\", "
    "...}]}, of which\n"
    "the assistant's words are learned, or {\"prompt\": \"...\", \"completion\": \"...\"}, or {\"text\": \"...\"}. The "
    "model may be of\n"
    "any type, such as q4_0, and stays as it is.\n",
    "  heddle finetune model.gguf chats.jsonl -o adapter.gguf && heddle chat model.gguf --lora adapter.gguf\n", run,
};
