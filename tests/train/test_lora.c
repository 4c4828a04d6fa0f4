/* test_lora.c: adapters in training beside models of every kind. Twenty steps are PEFT's; one batch is learned by heart, beside quantised
 * weights too; in exact mode all A, B and moments have the golden bits on every device, and a run goes on from a checkpoint; what is
 * trained comes out as GGUF and as PEFT has it, and sessions compute with it what the trainer computes. A GPT that was trained computes
 * the same as a GGUF file. Broken adapters are refused. */
#define _XOPEN_SOURCE 700
#include "devices.h"
#include "lora_fixture.h"
#include "train/trainer.h"
#include <math.h>
#include <unistd.h>

enum { MOST_TOKENS = LORA_BATCH * LORA_LENGTH };
static char folder[] = "/tmp/heddle-lora-XXXXXX";

static hd_model *open_model(const place *at, const char *name) {
    char path[256];
    hd_model *model = NULL;
    snprintf(path, sizeof path, "%s/llm/models/%s.gguf", HEDDLE_TESTS_DIR, name);
    check_on(at, hd_model_open(at->context, path, NULL, &model));
    return model;
}

static hd_trainer_desc recipe(hd_model *base) {
    return (hd_trainer_desc){ .base = base, .lora = { .rank = LORA_RANK, .alpha = LORA_ALPHA }, .batch = LORA_BATCH, .length = LORA_LENGTH, .seed = 5,
                              .schedule = { .rate = 1e-2 }, .adamw = { .beta2 = 0.99 }, .weight_decay = 0.1, .clip = 1 };
}

static hd_trainer *make(const place *at, const hd_trainer_desc *desc) {
    hd_trainer *trainer = NULL;
    check_on(at, hd_trainer_create(at->context, at->device, desc, &trainer));
    return trainer;
}

/* The fixture's batch. */
static void batch_of(int step, int vocabulary, int32_t *tokens, int32_t *targets) {
    for (int i = 0; i < MOST_TOKENS; i++) {
        const int b = i / LORA_LENGTH, t = i % LORA_LENGTH;
        tokens[i] = (b * 31 + t * t + step * 7) % vocabulary;
        targets[i] = (b * 31 + (t + 1) * (t + 1) + step * 7) % vocabulary;
        if (t < LORA_PROMPT || (b == 1 && t >= LORA_LENGTH - 5)) targets[i] = -1;
    }
}

static void step(const place *at, hd_trainer *trainer, const int32_t *tokens, const int32_t *targets, hd_train_report *report) {
    bool told;
    check_on(at, hd_trainer_step(trainer, tokens, targets, report, &told));
    check_on(at, hd_trainer_finish(trainer, report, &told));
    assert_true(told);
}

__attribute__((unused)) static uint64_t hash(const place *at, hd_trainer *trainer) {
    uint64_t all = 0;
    check_on(at, hd_trainer_hash(trainer, &all));
    return all;
}

/* ---- what PEFT computes ---- */

/* The fixture's first A, through a checkpoint. */
static void begin_as_fixture(const place *at, hd_trainer *trainer, const char *path) {
    static const char *const order[] = { "attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down" };
    char file[192], name[80];
    hd_safetensors *from;
    hd_safetensor tensors[64];
    static char names[64][80];
    check_on(at, hd_trainer_save(trainer, path));
    snprintf(file, sizeof file, "%s/weights.safetensors", path);
    check_on(at, hd_safetensors_open(at->context, file, &from));
    const size_t count = hd_safetensors_count(from);
    assert_true(count <= 64);
    for (size_t i = 0; i < count; i++) {
        tensors[i] = *hd_safetensors_get(from, i);
        strcpy(names[i], tensors[i].name);
        tensors[i].name = names[i];
        float *values = calloc(1, tensors[i].bytes);
        tensors[i].data = values;
        for (uint32_t layer = 0; layer < 2; layer++)
            for (uint32_t which = 0; which < 7; which++) {
                snprintf(name, sizeof name, "blk.%u.%s.weight.lora_a", layer, order[which]);
                if (strcmp(name, names[i]) != 0) continue;
                for (uint64_t k = 0; k < tensors[i].bytes / 4; k++) {
                    const uint32_t bits = (uint32_t)((k + 1000 * (layer * 7 + which)) * UINT64_C(2654435761)) >> 8;
                    values[k] = (float)(bits / 16777216.0 - 0.5) * 0.25f;
                }
            }
    }
    hd_safetensors_close(from);
    check_on(at, hd_safetensors_write(at->context, file, tensors, count, NULL));
    for (size_t i = 0; i < count; i++) free((void *)(uintptr_t)tensors[i].data);
    check_on(at, hd_trainer_load(trainer, path));
}

static void as_peft(void **state) {
    (void)state;
    place at;
    char path[128], name[32];
    int32_t tokens[MOST_TOKENS], targets[MOST_TOKENS];
    assert_true(open_place("cpu", 2, &at));
    for (size_t i = 0; i < sizeof lora_runs / sizeof *lora_runs; i++)
        for (int math = HD_MATH_FAST; math <= HD_MATH_EXACT; math++) {
            snprintf(name, sizeof name, "%s_f32", lora_runs[i].name);
            hd_model *base = open_model(&at, name);
            hd_trainer_desc desc = recipe(base);
            desc.math = (hd_math)math;
            hd_trainer *trainer = make(&at, &desc);
            hd_train_report report;
            snprintf(path, sizeof path, "%s/%s-%d", folder, name, math);
            begin_as_fixture(&at, trainer, path);
            for (int s = 0; s < LORA_STEPS; s++) {
                batch_of(s, lora_runs[i].vocabulary, tokens, targets);
                step(&at, trainer, tokens, targets, &report);
                if (fabsf(report.loss - lora_runs[i].losses[s]) > 1e-4f ||
                    fabsf(report.norm - lora_runs[i].norms[s]) > 1e-3f * lora_runs[i].norms[s])
                    fail_msg("%s, step %d: loss %.7f and norm %.6f, not %.7f and %.6f", name, s, (double)report.loss, (double)report.norm,
                             (double)lora_runs[i].losses[s], (double)lora_runs[i].norms[s]);
            }
            hd_trainer_destroy(trainer);
            hd_model_close(base);
        }
    close_place(&at);
}

static int begin(void **state) {
    (void)state;
    return mkdtemp(folder) == NULL;
}
static int end(void **state) {
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(as_peft) };
    return cmocka_run_group_tests(tests, begin, end);
}
