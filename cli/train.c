/* train.c: `heddle train`: a GPT from scratch on a file of text or tokens. Ctrl-C writes a checkpoint and ends. */
#define _POSIX_C_SOURCE 200809L
#include "cli/llm.h"
#include "cli/train.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DATA_LIMIT = INT_MAX, BYTES = 256, PREFIX = sizeof "checkpoint-" - 1, MOST_SKIPPED = 10, SAMPLE_MOST = 4096 };

typedef struct job {
    const cli_args *args;
    cli_session     cli;
    hd_trainer_desc desc;
    hd_trainer     *trainer;
    hd_token_data   data, held_out;
    char           *bytes, *held_out_bytes;
    const char     *out;           /* the run's folder */
    uint64_t        steps, first;  /* that the run ends at, and began at */
    uint64_t        save_every, keep, sample_every, sample_tokens;
    double          temperature;
    int32_t        *tokens, *targets; /* a batch */
    train_log       log;
    uint64_t        began_ns;
    uint32_t        skipped;       /* steps in a row that changed nothing */
} job;

/* ---- what is trained ---- */

static uint64_t hash_of(const char *bytes, size_t count) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++) hash = (hash ^ (uint8_t)bytes[i]) * UINT64_C(0x100000001b3);
    return hash ? hash : 1;
}

/* A file as tokens: its bytes, or 16-bit numbers with --tokens. */
static int read_data(const job *j, const char *path, char **out_bytes, hd_token_data *out) {
    size_t bytes;
    const uint32_t width = cli_get(j->args, "--tokens") ? 2 : 1;
    *out_bytes = cli_read_text(j->args->command, path, DATA_LIMIT, &bytes);
    if (!*out_bytes) return CLI_FAILED;
    *out = (hd_token_data){ *out_bytes, width, bytes / width };
    return bytes % width == 0 ? CLI_OK : cli_fail(j->args->command, "%s holds no whole number of 16-bit tokens", path);
}

/* Hugging Face's config.json of a GPT-2. */
static int read_config(const cli_command *command, const char *path, hd_gpt *model) {
    const struct { const char *name; uint32_t *to; } fields[] = {
        { "n_layer", &model->layers }, { "n_embd", &model->width }, { "n_head", &model->heads },
        { "n_positions", &model->context }, { "vocab_size", &model->vocabulary } };
    size_t bytes;
    json_error_t why;
    char *text = cli_read_text(command, path, 1 << 20, &bytes);
    if (!text) return CLI_FAILED;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);
    int code = json_is_object(root) ? CLI_OK : cli_fail(command, "%s is no JSON object: %s", path, why.text);
    for (size_t i = 0; i < CLI_COUNT(fields) && !code; i++) {
        const json_t *value = json_object_get(root, fields[i].name);
        if (!value) continue;
        if (!json_is_integer(value) || json_integer_value(value) < 1 || json_integer_value(value) > INT32_MAX)
            code = cli_fail(command, "%s: %s is no whole number above 0", path, fields[i].name);
        *fields[i].to = (uint32_t)json_integer_value(value);
    }
    json_decref(root);
    free(text);
    return code;
}

static bool get_u32(const cli_args *args, const char *name, uint32_t *inout) {
    uint64_t value;
    if (!cli_get_number(args, name, 1, INT32_MAX, *inout, &value)) return false;
    *inout = (uint32_t)value;
    return true;
}

static bool read_model(job *j) {
    hd_gpt *model = &j->desc.model;
    *model = (hd_gpt){ .layers = 4, .width = 128, .heads = 4, .context = 128, .vocabulary = j->data.token_bytes == 1 ? BYTES : 65536 };
    const char *config = cli_get(j->args, "--config");
    if (config && read_config(j->args->command, config, model)) return false;
    j->desc.batch = 16;
    return get_u32(j->args, "--layers", &model->layers) && get_u32(j->args, "--width", &model->width) &&
           get_u32(j->args, "--heads", &model->heads) && get_u32(j->args, "--context", &model->context) &&
           get_u32(j->args, "--vocabulary", &model->vocabulary) && get_u32(j->args, "--batch", &j->desc.batch) &&
           get_u32(j->args, "--micro-batch", &j->desc.micro_batch) &&
           get_u32(j->args, "--length", &j->desc.length);
}

static bool read_recipe(job *j) {
    hd_trainer_desc *desc = &j->desc;
    double clip, dropout;
    const cli_args *args = j->args;
    const char *decay = cli_get(args, "--decay");
    if (!cli_get_number(args, "--steps", 1, INT64_MAX, 1000, &desc->schedule.steps) ||
        !cli_get_fraction(args, "--rate", 0, 1000, 1e-3, &desc->schedule.rate) ||
        !cli_get_fraction(args, "--least-rate", 0, 1000, desc->schedule.rate / 10, &desc->schedule.least) ||
        !cli_get_number(args, "--warmup", 0, INT64_MAX, desc->schedule.steps / 20, &desc->schedule.warmup) ||
        !cli_get_fraction(args, "--beta2", 0, 1, 0.99, &desc->adamw.beta2) ||
        !cli_get_fraction(args, "--weight-decay", 0, 1000, 0.1, &desc->weight_decay) ||
        !cli_get_fraction(args, "--clip", 0, 1e9, 1, &clip) || !cli_get_fraction(args, "--dropout", 0, 0.99, 0, &dropout) ||
        !cli_get_number(args, "--seed", 0, INT64_MAX, 0, &desc->seed) || !cli_get_math(args, &desc->math))
        return false;
    desc->clip = (float)clip;
    desc->dropout = (float)dropout;
    desc->schedule.decay = HD_DECAY_COSINE;
    if (decay && strcmp(decay, "linear") == 0) desc->schedule.decay = HD_DECAY_LINEAR;
    else if (decay && strcmp(decay, "none") == 0) desc->schedule.decay = HD_DECAY_NONE;
    else if (decay && strcmp(decay, "cosine") != 0)
        return cli_usage(args->command, "--decay is none, linear or cosine, not \"%s\"", decay), false;
    return true;
}

/* ---- the run's folder ---- */

static void folder_of(const job *j, uint64_t step, char out[PATH_MAX]) {
    snprintf(out, PATH_MAX, "%s/checkpoint-%08llu", j->out, (unsigned long long)step);
}

/* The newest checkpoint below `below`; false: there is none. */
static bool find_checkpoint(const job *j, uint64_t below, uint64_t *out) {
    DIR *folder = opendir(j->out);
    bool found = false;
    for (const struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder)) {
        uint64_t step;
        const char *digits = entry->d_name + (strncmp(entry->d_name, "checkpoint-", PREFIX) == 0 ? PREFIX : 0);
        while (digits != entry->d_name && digits[0] == '0' && digits[1]) digits++; /* cli_number takes no zeros in front */
        if (digits == entry->d_name || !cli_number(digits, INT64_MAX, &step) || step >= below || (found && step < *out)) continue;
        *out = step;
        found = true;
    }
    if (folder) closedir(folder);
    return found;
}

/* Removes a checkpoint's folder, and of its files those that heddle wrote. */
static void remove_checkpoint(const char *folder) {
    static const char *const files[] = { "weights.safetensors", "optimizer.safetensors", "config.json", "trainer.json",
                                         "weights.safetensors.new", "optimizer.safetensors.new" };
    char path[PATH_MAX + 32];
    for (size_t i = 0; i < CLI_COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    rmdir(folder);
}

/* Removes what a run that was killed had begun to write. */
static void remove_begun(const job *j) {
    DIR *folder = opendir(j->out);
    char path[PATH_MAX];
    for (const struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder)) {
        const size_t length = strlen(entry->d_name);
        if (length < PREFIX + 4 || strncmp(entry->d_name, "checkpoint-", PREFIX) != 0) continue;
        if (strcmp(entry->d_name + length - 4, ".new") != 0) continue;
        if (snprintf(path, sizeof path, "%s/%s", j->out, entry->d_name) < (int)sizeof path) remove_checkpoint(path);
    }
    if (folder) closedir(folder);
}

static int save(job *j) {
    char folder[PATH_MAX];
    uint64_t old = hd_trainer_steps(j->trainer);
    struct stat info;
    folder_of(j, old, folder);
    if (stat(folder, &info) == 0) return CLI_OK; /* this very step was saved */
    const int code = train_log_save(&j->log); /* first: rows behind the checkpoint are dropped when a run goes on from it */
    if (code) return code;
    if (hd_trainer_save(j->trainer, folder)) return cli_session_fail(&j->cli, NULL);
    for (uint64_t kept = 1; find_checkpoint(j, old, &old); kept++)
        if (kept >= j->keep) {
            folder_of(j, old, folder);
            remove_checkpoint(folder);
        }
    return CLI_OK;
}

/* ---- the start ---- */

static int resume(job *j) {
    static const char *const fixed[] = {
        "--config", "--layers", "--width", "--heads", "--context", "--vocabulary", "--batch", "--micro-batch", "--length", "--steps",
        "--rate", "--least-rate", "--warmup", "--decay", "--beta2", "--weight-decay", "--clip", "--dropout", "--seed", "--math" };
    char folder[PATH_MAX];
    for (size_t i = 0; i < CLI_COUNT(fixed); i++)
        if (cli_get(j->args, fixed[i])) return cli_usage(j->args->command, "--resume goes on as the run began: leave %s out", fixed[i]);
    if (!find_checkpoint(j, UINT64_MAX, &j->first)) return cli_fail(j->args->command, "%s holds no checkpoint to go on from", j->out);
    folder_of(j, j->first, folder);
    remove_begun(j);
    uint64_t step;
    if (hd_trainer_read(j->cli.context, folder, &j->desc, &step)) return cli_session_fail(&j->cli, NULL);
    if (j->desc.data != hash_of(j->bytes, (size_t)(j->data.count * j->data.token_bytes)))
        return cli_fail(j->args->command, "%s is not what the run in %s was trained on", j->args->operand, j->out);
    return CLI_OK;
}

static int begin_run(job *j) {
    uint64_t step;
    if (!read_model(j) || !read_recipe(j)) return CLI_USAGE;
    if (find_checkpoint(j, UINT64_MAX, &step))
        return cli_usage(j->args->command, "%s holds a run already: --resume goes on with it, --out names another folder", j->out);
    if (mkdir(j->out, 0777) != 0 && errno != EEXIST) return cli_fail(j->args->command, "%s cannot be made: %s", j->out, strerror(errno));
    j->desc.data = hash_of(j->bytes, (size_t)(j->data.count * j->data.token_bytes));
    return CLI_OK;
}

static int make_trainer(job *j) {
    char folder[PATH_MAX];
    cli_cell size, memory;
    hd_plan_memory takes;
    const uint32_t length = j->desc.length ? j->desc.length : j->desc.model.context;
    if (j->data.count <= length || (j->held_out.tokens && j->held_out.count <= length))
        return cli_fail(j->args->command, "the data holds no more than the %u tokens of one sequence", (unsigned)length);
    int code = cli_session_device(&j->cli, cli_get(j->args, "--device"));
    if (code) return code;
    if (hd_trainer_fit(j->cli.context, j->cli.device, &j->desc, &takes)) return cli_session_fail(&j->cli, NULL);
    cli_tell("heddle: memory %s, of it weights and optimizer %s\n", cli_bytes(takes.total_bytes, memory),
             cli_bytes(takes.state_bytes, size));
    if (hd_trainer_create(j->cli.context, j->cli.device, &j->desc, &j->trainer)) return cli_session_fail(&j->cli, NULL);
    j->desc = *hd_trainer_get_desc(j->trainer);
    folder_of(j, j->first, folder);
    if (cli_get(j->args, "--resume") && hd_trainer_load(j->trainer, folder)) return cli_session_fail(&j->cli, NULL);
    const uint64_t batch = (uint64_t)j->desc.batch * j->desc.length;
    j->steps = j->desc.schedule.steps;
    j->tokens = malloc(batch * sizeof *j->tokens);
    j->targets = malloc(batch * sizeof *j->targets);
    if (!j->tokens || !j->targets) return cli_fail(j->args->command, "no memory is left");
    cli_tell("heddle: %llu parameters, %llu tokens a step, %s of data\n", (unsigned long long)hd_trainer_parameters(j->trainer),
             (unsigned long long)batch, cli_bytes(j->data.count * j->data.token_bytes, size));
    return train_log_begin(j->args->command, j->out, j->first, &j->log);
}

/* ---- the steps ---- */

/* The next tokens after the prompt, drawn one by one. */
static int sample(job *j) {
    int32_t tokens[SAMPLE_MOST + 1];
    char letter;
    size_t count = 1;
    tokens[0] = j->data.token_bytes == 1 ? '\n' : 0;
    cli_progress_end();
    cli_note("heddle: after step %llu\n", (unsigned long long)hd_trainer_steps(j->trainer));
    for (uint64_t i = 0; i < j->sample_tokens && cli_interrupts_count() == 0; i++, count++) {
        const uint64_t draw = hd_trainer_steps(j->trainer) << 16 | i;
        if (hd_trainer_next(j->trainer, tokens, count, (float)j->temperature, draw, &tokens[count])) return cli_session_fail(&j->cli, NULL);
        letter = (char)tokens[count];
        if (j->data.token_bytes == 1) cli_print_text(&letter, 1);
        else cli_print("%s%d", i ? "," : "", (int)tokens[count]);
    }
    cli_print("\n");
    return CLI_OK;
}

static int measure_held_out(job *j, float *out_loss) {
    const uint32_t batch = j->desc.micro_batch;
    if (!hd_draw_batch(&j->held_out, j->desc.seed, 0, batch, j->desc.length, j->tokens, j->targets)) return CLI_OK;
    return hd_trainer_loss(j->trainer, j->tokens, j->targets, out_loss) ? cli_session_fail(&j->cli, NULL) : CLI_OK;
}

/* One step of each twentieth of the run. */
static bool is_told(const job *j, uint64_t step) {
    const uint64_t twentieth = j->steps / 20 ? j->steps / 20 : 1;
    return (step + 1) % twentieth == 0;
}

static void tell(const job *j, const train_row *row) {
    const hd_train_report *r = &row->report;
    cli_cell left;
    const double tokens = (double)(j->steps - 1 - r->step) * (double)j->desc.batch * j->desc.length;
    const uint64_t rest = (uint64_t)(tokens / row->tokens_per_second * 1e9);
    cli_progress("step %llu/%llu  loss %.4f  norm %.3f  rate %.2e  %.0f tokens/s  %s left", (unsigned long long)r->step + 1,
                 (unsigned long long)j->steps, (double)r->loss, (double)r->norm, r->rate, row->tokens_per_second, cli_time(rest, left));
    if (isfinite(row->held_out) || r->step + 1 == j->steps || is_told(j, r->step)) {
        cli_progress_end();
        cli_tell("step %llu/%llu  loss %.4f  norm %.3f  rate %.2e  %.0f tokens/s", (unsigned long long)r->step + 1,
                 (unsigned long long)j->steps, (double)r->loss, (double)r->norm, r->rate, row->tokens_per_second);
        if (isfinite(row->held_out)) cli_tell("  held out %.4f", (double)row->held_out);
        cli_tell("\n");
    }
}

static int note(job *j, const hd_train_report *report) {
    const double seconds = (double)(cli_now_ns() - j->began_ns) * 1e-9;
    train_row row = { *report, (double)(report->step + 1 - j->first) * j->desc.batch * j->desc.length / seconds, NAN };
    const bool last = report->step + 1 == j->steps;
    int code = CLI_OK;
    if (j->held_out.tokens && (last || is_told(j, report->step))) code = measure_held_out(j, &row.held_out);
    j->skipped = isfinite(report->norm) ? 0 : j->skipped + 1;
    if (!code) code = train_log_add(&j->log, &row);
    if (!code) tell(j, &row);
    if (!code && j->skipped >= MOST_SKIPPED)
        code = cli_fail(j->args->command, "the gradients of %d steps in a row were not finite: take a lower --rate", (int)MOST_SKIPPED);
    return code;
}

/* Waits for the last step and notes it. */
static int catch_up(job *j) {
    hd_train_report report;
    bool told;
    if (hd_trainer_finish(j->trainer, &report, &told)) return cli_session_fail(&j->cli, NULL);
    return told ? note(j, &report) : CLI_OK;
}

static int train(job *j) {
    hd_train_report report;
    bool told;
    int code = CLI_OK;
    j->began_ns = cli_now_ns();
    cli_interrupts_catch(true);
    for (uint64_t step = j->first; step < j->steps && !code && cli_interrupts_count() == 0; step++) {
        hd_draw_batch(&j->data, j->desc.seed, step, j->desc.batch, j->desc.length, j->tokens, j->targets);
        if (hd_trainer_step(j->trainer, j->tokens, j->targets, &report, &told)) return cli_session_fail(&j->cli, NULL);
        if (told) code = note(j, &report);
        const bool saves = j->save_every && (step + 1) % j->save_every == 0, samples = j->sample_every && (step + 1) % j->sample_every == 0;
        if (!code && (saves || samples)) code = catch_up(j);
        if (!code && saves) code = save(j);
        if (!code && samples) code = sample(j);
    }
    if (!code) code = catch_up(j);
    cli_progress_end();
    if (!code) code = save(j);
    if (!code && cli_interrupts_count() > 0)
        cli_note("heddle: ended after step %llu; --resume goes on\n", (unsigned long long)hd_trainer_steps(j->trainer));
    return code;
}

/* ---- the command ---- */

static int report(job *j) {
    uint64_t hash = 0;
    char folder[PATH_MAX];
    folder_of(j, hd_trainer_steps(j->trainer), folder);
    if (hd_trainer_hash(j->trainer, &hash)) return cli_session_fail(&j->cli, NULL);
    cli_print("steps       %llu\nloss        %.6f\nhash        %016llx\ncheckpoint  %s\n", (unsigned long long)hd_trainer_steps(j->trainer),
              j->log.count ? (double)j->log.rows[j->log.count - 1].report.loss : NAN, (unsigned long long)hash, folder);
    return CLI_OK;
}

static int run(const cli_args *args) {
    job j = { .args = args, .out = cli_get(args, "--out") };
    const char *held_out = cli_get(args, "--held-out");
    if (cli_get(args, "--quiet")) cli_be_quiet();
    if (!j.out) j.out = "heddle-train";
    if (strlen(j.out) > PATH_MAX - 64) return cli_usage(args->command, "--out is too long");
    if (!cli_get_number(args, "--save-every", 0, INT64_MAX, 0, &j.save_every) ||
        !cli_get_number(args, "--keep", 1, INT64_MAX, 2, &j.keep) ||
        !cli_get_number(args, "--sample-every", 0, INT64_MAX, 0, &j.sample_every) ||
        !cli_get_number(args, "-n", 1, SAMPLE_MOST, 200, &j.sample_tokens) ||
        !cli_get_fraction(args, "--temp", 0, 100, 0.8, &j.temperature))
        return CLI_USAGE;
    int code = read_data(&j, args->operand, &j.bytes, &j.data);
    if (!code && held_out) code = read_data(&j, held_out, &j.held_out_bytes, &j.held_out);
    if (!code) code = cli_session_open(args->command, &j.cli);
    if (!code) code = cli_get(args, "--resume") ? resume(&j) : begin_run(&j);
    if (!code) code = make_trainer(&j);
    if (!code) code = train(&j);
    if (!code) code = report(&j);
    hd_trainer_destroy(j.trainer);
    cli_session_close(&j.cli);
    train_log_free(&j.log);
    free(j.tokens);
    free(j.targets);
    free(j.bytes);
    free(j.held_out_bytes);
    return code;
}

static const cli_option options[] = {
    { "--out", "FOLDER", "where checkpoints, log.csv and loss.html go; default: heddle-train" },
    { "--resume", NULL, "go on from the newest checkpoint of the folder, to the bits of a run that never stopped" },
    { "--tokens", NULL, "the data is 16-bit token numbers, little-endian, in place of text" },
    { "--held-out", "FILE", "data of the same kind to measure the loss on, twenty times in a run" },
    { "--config", "FILE.json", "the model as a config.json of GPT-2: n_layer, n_embd, n_head, n_positions, vocab_size" },
    { "--layers", "N", "default: 4" },
    { "--width", "N", "default: 128" },
    { "--heads", "N", "default: 4" },
    { "--context", "N", "most tokens of a sequence; default: 128" },
    { "--vocabulary", "N", "default: 256, one for each byte; with --tokens 65536" },
    { "--batch", "N", "sequences a step; default: 16" },
    { "--micro-batch", "N", "sequences at once, whose gradients are added up; default: all" },
    { "--length", "N", "tokens of a sequence; default: the context" },
    { "--steps", "N", "default: 1000" },
    { "--rate", "X", "the highest learning rate; default: 0.001" },
    { "--least-rate", "X", "the learning rate at the end; default: a tenth of --rate" },
    { "--warmup", "N", "steps in which the rate rises; default: a twentieth of --steps" },
    { "--decay", "HOW", "how the rate goes down: none, linear or cosine; default: cosine" },
    { "--beta2", "X", "AdamW's second decay; default: 0.99" },
    { "--weight-decay", "X", "of matrices and embeddings; default: 0.1" },
    { "--clip", "X", "the most that the gradients' norm may be; 0: any; default: 1" },
    { "--dropout", "X", "default: 0" },
    { "--seed", "N", "the same seed gives the same run; default: 0" },
    { "--save-every", "N", "steps between checkpoints; 0: only at the end; default: 0" },
    { "--keep", "N", "newest checkpoints to keep; default: 2" },
    { "--sample-every", "N", "steps between texts that the model writes; 0: none; default: 0" },
    { "-n", "N", "tokens of such a text; default: 200" },
    { "--temp", "T", "0: always the most likely token; above: more surprising; default: 0.8" },
    { "--quiet", NULL, "print the result only, and no more than errors besides" },
    CLI_OPTION_DEVICE,
    CLI_OPTION_MATH,
};

const cli_command cli_train = {
    "train", "trains a GPT from scratch on a text", "train DATA [options]", "DATA", options, CLI_COUNT(options), NULL,
    "  heddle train shakespeare.txt --steps 2000 --sample-every 200 --save-every 500\n", run,
};
