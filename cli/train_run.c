/* train_run.c: what the commands that train share: the recipe in their options, checkpoints in the run's folder, steps
 * that are told about, and an end by Ctrl-C, which writes a checkpoint. */
#include "cli/llm.h"
#include "cli/train.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PREFIX = sizeof "checkpoint-" - 1, MOST_SKIPPED = 10 };

/* ---- the recipe ---- */

bool train_get_u32(const cli_args *args, const char *name, uint32_t *inout) {
    uint64_t value;
    if (!cli_get_number(args, name, 1, INT32_MAX, *inout, &value)) return false;
    *inout = (uint32_t)value;
    return true;
}

bool train_run_precision(train_run *j, bool ternary) {
    const char *how = cli_get(j->args, "--precision");
    const bool bf16 = how && strcmp(how, "bf16") == 0;
    j->desc.ternary = ternary && how && strcmp(how, "ternary") == 0;
    j->desc.precision = bf16 ? HD_PRECISION_BF16 : HD_PRECISION_F32;
    if (!how || bf16 || j->desc.ternary || strcmp(how, "f32") == 0) return true;
    cli_usage(j->args->command, "--precision is %s, not \"%s\"", ternary ? "f32, bf16 or ternary" : "f32 or bf16", how);
    return false;
}

bool train_run_recipe(train_run *j, const train_defaults *usual) {
    hd_trainer_desc *desc = &j->desc;
    double clip, dropout;
    desc->batch = usual->batch;
    desc->adamw.beta2 = usual->beta2;
    const cli_args *args = j->args;
    const char *decay = cli_get(args, "--decay");
    if (!cli_get_number(args, "--steps", 1, INT64_MAX, usual->steps, &desc->schedule.steps) ||
        !cli_get_fraction(args, "--rate", 0, 1000, usual->rate, &desc->schedule.rate) ||
        !cli_get_fraction(args, "--least-rate", 0, 1000, desc->schedule.rate / 10, &desc->schedule.least) ||
        !cli_get_number(args, "--warmup", 0, INT64_MAX, desc->schedule.steps / 20, &desc->schedule.warmup) ||
        !cli_get_fraction(args, "--weight-decay", 0, 1000, usual->weight_decay, &desc->weight_decay) ||
        !cli_get_fraction(args, "--clip", 0, 1e9, 1, &clip) ||
        !cli_get_fraction(args, "--dropout", 0, 0.99, 0, &dropout) ||
        !cli_get_number(args, "--seed", 0, INT64_MAX, 0, &desc->seed) || !cli_get_math(args, &desc->math))
        return false;
    if (!train_get_u32(args, "--batch", &desc->batch) || !train_get_u32(args, "--micro-batch", &desc->micro_batch) ||
        !train_get_u32(args, "--length", &desc->length))
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

static void folder_of(const train_run *j, uint64_t step, char out[TRAIN_PATH]) {
    snprintf(out, TRAIN_PATH, "%s/checkpoint-%08llu", j->out, (unsigned long long)step);
}

typedef struct search {
    uint64_t below, newest;
    bool     found;
} search;

static void look_at(void *user, const char *name) {
    search *s = user;
    uint64_t step;
    const char *digits = name + (strncmp(name, "checkpoint-", PREFIX) == 0 ? PREFIX : 0);
    while (digits != name && digits[0] == '0' && digits[1]) digits++; /* cli_number takes no zeros in front */
    if (digits == name || !cli_number(digits, INT64_MAX, &step) || step >= s->below || (s->found && step < s->newest))
        return;
    s->newest = step;
    s->found = true;
}

/* The newest checkpoint below `below`; false: there is none. */
static bool find_checkpoint(const train_run *j, uint64_t below, uint64_t *out) {
    search s = { .below = below };
    system_list(j->out, look_at, &s);
    if (s.found) *out = s.newest;
    return s.found;
}

/* Removes a checkpoint's folder, and of its files those that heddle wrote. */
static void remove_checkpoint(const char *folder) {
    static const char *const files[] = { "weights.safetensors", "optimizer.safetensors", "config.json", "trainer.json",
                                         "tokenizer.gguf", "best.safetensors", "weights.safetensors.new",
                                         "optimizer.safetensors.new", "best.safetensors.new" };
    char path[TRAIN_PATH + 32];
    for (size_t i = 0; i < CLI_COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        system_remove(path);
    }
    system_remove_folder(folder);
}

/* Removes what a run that was killed had begun to write. */
static void remove_begun(void *user, const char *name) {
    const train_run *j = user;
    char path[TRAIN_PATH];
    const size_t length = strlen(name);
    if (length < PREFIX + 4 || strncmp(name, "checkpoint-", PREFIX) != 0 || strcmp(name + length - 4, ".new") != 0)
        return;
    if (snprintf(path, sizeof path, "%s/%s", j->out, name) < (int)sizeof path) remove_checkpoint(path);
}

static int save(train_run *j) {
    char folder[TRAIN_PATH];
    uint64_t old = hd_trainer_steps(j->trainer);
    folder_of(j, old, folder);
    if (system_is_there(folder)) return CLI_OK; /* this very step was saved */
    /* first: rows behind the checkpoint are dropped when a run goes on from it */
    const int code = train_log_save(&j->log);
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

uint64_t train_hash(const void *bytes, size_t count) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++) hash = (hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    return hash ? hash : 1;
}

bool train_run_options(const cli_args *args, const char *usual_out, train_run *out) {
    *out = (train_run){ .args = args, .out = cli_get(args, "--out") };
    if (cli_get(args, "--quiet")) cli_be_quiet();
    if (!out->out) out->out = usual_out;
    if (strlen(out->out) > TRAIN_PATH - 64) return cli_usage(args->command, "--out is too long"), false;
    return cli_get_number(args, "--save-every", 0, INT64_MAX, 0, &out->save_every) &&
           cli_get_number(args, "--keep", 1, INT64_MAX, 2, &out->keep);
}

void train_run_file(const train_run *j, const char *name, char *out, size_t room) {
    char folder[TRAIN_PATH];
    folder_of(j, j->first, folder);
    snprintf(out, room, "%s/%s", folder, name);
}

int train_run_peek(train_run *j) {
    static const char *const free_ones[] = { "--out", "--resume", "--save-every", "--keep", "--device", "--quiet" };
    char folder[TRAIN_PATH];
    uint64_t step;
    if (!cli_get(j->args, "--resume")) return CLI_OK;
    for (size_t i = 0; i < j->args->given_count; i++) {
        const char *name = j->args->given[i].option->name;
        bool is_free = false;
        for (size_t k = 0; k < CLI_COUNT(free_ones); k++) is_free = is_free || strcmp(name, free_ones[k]) == 0;
        for (size_t k = 0; k < j->free_count; k++) is_free = is_free || strcmp(name, j->free_options[k]) == 0;
        if (!is_free) return cli_usage(j->args->command, "--resume goes on as the run began: leave %s out", name);
    }
    if (!find_checkpoint(j, UINT64_MAX, &j->first))
        return cli_fail(j->args->command, "%s holds no checkpoint to go on from", j->out);
    folder_of(j, j->first, folder);
    return hd_trainer_read(j->cli.context, folder, &j->desc, &step) ? cli_session_fail(&j->cli, NULL) : CLI_OK;
}

static int resume(train_run *j, uint64_t data) {
    const int code = train_run_peek(j);
    if (code) return code;
    system_list(j->out, remove_begun, j);
    if (j->desc.data != data)
        return cli_fail(j->args->command, "%s is not what the run in %s was trained on",
                        j->args->operands[j->args->operand_count - 1], j->out);
    return CLI_OK;
}

int train_run_begin(train_run *j, uint64_t data, bool (*recipe)(void *user), void *user) {
    uint64_t step;
    if (cli_get(j->args, "--resume")) return resume(j, data);
    if (!recipe(user)) return CLI_USAGE;
    if (find_checkpoint(j, UINT64_MAX, &step))
        return cli_usage(j->args->command,
                         "%s holds a run already: --resume goes on with it, --out names another folder", j->out);
    if (!system_make_folder(j->out, false))
        return cli_fail(j->args->command, "%s cannot be made: %s", j->out, strerror(errno));
    j->desc.data = data;
    return CLI_OK;
}

/* The device has not so much memory: what would take less. */
static int too_large(train_run *j, uint64_t bytes) {
    cli_cell most, least;
    hd_plan_memory takes;
    hd_trainer_desc desc = j->desc;
    const bool again = desc.base && !desc.recompute, apart = desc.micro_batch != 1 && desc.batch > 1;
    cli_session_forget(&j->cli);
    if (!again && !apart)
        return cli_fail(j->args->command, "out of device memory: training takes %s; use a smaller --length",
                        cli_bytes(bytes, most));
    desc.micro_batch = 1;
    if (again) desc.recompute = 1;
    if (hd_trainer_fit(j->cli.context, j->cli.device, &desc, &takes)) return cli_session_fail(&j->cli, NULL);
    return cli_fail(j->args->command,
                    "out of device memory: training takes %s, and with%s%s %s; a smaller --length takes less",
                    cli_bytes(bytes, most), apart ? " --micro-batch 1" : "", again ? " --recompute" : "",
                    cli_bytes(takes.total_bytes, least));
}

int train_run_make(train_run *j, uint64_t data_bytes) {
    char folder[TRAIN_PATH];
    cli_cell size, memory;
    hd_plan_memory takes;
    int code = cli_session_device(&j->cli, cli_get(j->args, "--device"));
    if (code) return code;
    if (hd_trainer_fit(j->cli.context, j->cli.device, &j->desc, &takes)) return cli_session_fail(&j->cli, NULL);
    cli_tell("heddle: memory %s, of it weights and optimizer %s\n", cli_bytes(takes.total_bytes, memory),
             cli_bytes(takes.state_bytes, size));
    const hd_status made = hd_trainer_create(j->cli.context, j->cli.device, &j->desc, &j->trainer);
    if (made == HD_STATUS_OUT_OF_DEVICE_MEMORY) return too_large(j, takes.total_bytes);
    if (made) return cli_session_fail(&j->cli, NULL);
    j->desc = *hd_trainer_get_desc(j->trainer);
    folder_of(j, j->first, folder);
    if (cli_get(j->args, "--resume") && hd_trainer_load(j->trainer, folder)) return cli_session_fail(&j->cli, NULL);
    const uint64_t batch = (uint64_t)j->desc.batch * j->desc.length;
    j->steps = j->desc.schedule.steps;
    j->tokens = malloc(batch * sizeof *j->tokens);
    j->targets = malloc(batch * sizeof *j->targets);
    if (!j->tokens || !j->targets) return cli_fail(j->args->command, "no memory is left");
    cli_tell("heddle: %llu parameters, %llu tokens a step, %s of data\n",
             (unsigned long long)hd_trainer_parameters(j->trainer), (unsigned long long)batch,
             cli_bytes(data_bytes, size));
    return train_log_begin(j->args->command, j->out, j->first, &j->log);
}

/* ---- the steps ---- */

/* One step of each twentieth of the run, and the last one. */
static bool is_told(const train_run *j, uint64_t step) {
    const uint64_t twentieth = j->steps / 20 ? j->steps / 20 : 1;
    return (step + 1) % twentieth == 0 || step + 1 == j->steps;
}

/* The mean loss over all that is held out. The weights with the lowest are kept. */
static int measure(train_run *j, float *out_loss) {
    const uint64_t places = (uint64_t)j->desc.micro_batch * j->desc.length;
    double sum = 0, count = 0;
    for (uint64_t number = 0; j->held_out(j->user, number); number++) {
        float loss;
        uint64_t targets = 0;
        for (uint64_t i = 0; i < places; i++) targets += j->targets[i] >= 0;
        if (hd_trainer_loss(j->trainer, j->tokens, j->targets, &loss)) return cli_session_fail(&j->cli, NULL);
        sum += (double)loss * (double)targets;
        count += (double)targets;
    }
    *out_loss = (float)(sum / count);
    const hd_train_best best = hd_trainer_best(j->trainer);
    const bool better = isfinite(*out_loss) && (best.steps == 0 || *out_loss < best.loss);
    return better && hd_trainer_keep(j->trainer, *out_loss) ? cli_session_fail(&j->cli, NULL) : CLI_OK;
}

static void tell_step(const train_run *j, const train_row *row) {
    const hd_train_report *r = &row->report;
    cli_cell left;
    const double tokens = (double)(j->steps - 1 - r->step) * (double)j->desc.batch * j->desc.length;
    const uint64_t rest = (uint64_t)(tokens / row->tokens_per_second * 1e9);
    cli_progress("step %llu/%llu  loss %.4f  norm %.3f  rate %.2e  %.0f tokens/s  %s left",
                 (unsigned long long)r->step + 1, (unsigned long long)j->steps, (double)r->loss, (double)r->norm,
                 r->rate, row->tokens_per_second, cli_time(rest, left));
    if (is_told(j, r->step)) {
        cli_progress_end();
        cli_tell("step %llu/%llu  loss %.4f  norm %.3f  rate %.2e  %.0f tokens/s", (unsigned long long)r->step + 1,
                 (unsigned long long)j->steps, (double)r->loss, (double)r->norm, r->rate, row->tokens_per_second);
        if (isfinite(row->held_out)) cli_tell("  held out %.4f", (double)row->held_out);
        cli_tell("\n");
    }
}

static int note(train_run *j, const hd_train_report *report) {
    const double seconds = (double)(cli_now_ns() - j->began_ns) * 1e-9;
    train_row row = { *report, (double)(report->step + 1 - j->first) * j->desc.batch * j->desc.length / seconds, NAN };
    int code = CLI_OK;
    if (j->held_out && is_told(j, report->step)) code = measure(j, &row.held_out);
    j->skipped = isfinite(report->norm) ? 0 : j->skipped + 1;
    if (!code) code = train_log_add(&j->log, &row);
    if (!code) tell_step(j, &row);
    if (!code && j->skipped >= MOST_SKIPPED)
        code = cli_fail(j->args->command, "the gradients of %d steps in a row were not finite: take a lower --rate",
                        (int)MOST_SKIPPED);
    return code;
}

/* Waits for the last step and notes it. */
static int catch_up(train_run *j) {
    hd_train_report report;
    bool told;
    if (hd_trainer_finish(j->trainer, &report, &told)) return cli_session_fail(&j->cli, NULL);
    return told ? note(j, &report) : CLI_OK;
}

int train_run_go(train_run *j) {
    hd_train_report report;
    bool told;
    int code = CLI_OK;
    j->began_ns = cli_now_ns();
    system_interrupts_catch(true);
    for (uint64_t step = j->first; step < j->steps && !code && system_interrupts_count() == 0; step++) {
        j->batch(j->user, step, j->tokens, j->targets);
        if (hd_trainer_step(j->trainer, j->tokens, j->targets, &report, &told)) return cli_session_fail(&j->cli, NULL);
        if (told) code = note(j, &report);
        const bool saves = j->save_every && (step + 1) % j->save_every == 0,
                   samples = j->sample_every && (step + 1) % j->sample_every == 0,
                   measures = j->held_out && is_told(j, step); /* the weights after this very step */
        if (!code && (saves || samples || measures)) code = catch_up(j);
        if (!code && saves) code = save(j);
        if (!code && samples) code = j->sample(j->user);
    }
    if (!code) code = catch_up(j);
    cli_progress_end();
    if (!code) code = save(j);
    if (!code && system_interrupts_count() > 0)
        cli_note("heddle: ended after step %llu; --resume goes on\n", (unsigned long long)hd_trainer_steps(j->trainer));
    return code;
}

int train_run_report(train_run *j) {
    uint64_t hash = 0;
    char folder[TRAIN_PATH];
    folder_of(j, hd_trainer_steps(j->trainer), folder);
    if (hd_trainer_hash(j->trainer, &hash)) return cli_session_fail(&j->cli, NULL);
    cli_print("steps       %llu\nloss        %.6f\nhash        %016llx\ncheckpoint  %s\n",
              (unsigned long long)hd_trainer_steps(j->trainer),
              j->log.count ? (double)j->log.rows[j->log.count - 1].report.loss : NAN, (unsigned long long)hash, folder);
    return CLI_OK;
}

int train_run_use_best(train_run *j) {
    const hd_train_best best = hd_trainer_best(j->trainer);
    if (best.steps == 0) return CLI_OK;
    if (hd_trainer_use_best(j->trainer)) return cli_session_fail(&j->cli, NULL);
    cli_print("best        step %llu, held out %.6f\n", (unsigned long long)best.steps, (double)best.loss);
    return CLI_OK;
}

void train_run_end(train_run *j) {
    hd_trainer_destroy(j->trainer);
    cli_session_close(&j->cli);
    train_log_free(&j->log);
    free(j->tokens);
    free(j->targets);
}
