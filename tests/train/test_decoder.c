/* test_decoder.c: models of the families llama and qwen3 that learn whole. Twenty steps are those of Hugging Face's transformers with
 * PyTorch's AdamW, and so is every gradient of the first; in exact mode all weights and moments have the golden bits with one thread, with
 * two and through Vulkan, whole batches those of micro-batches, and a run that goes on from a checkpoint those of one that never stopped;
 * what is exported computes the same; what cannot be trained is refused. */
#define _XOPEN_SOURCE 700
#include "devices.h"
#include "decoder_fixture.h"
#include <math.h>
#include <unistd.h>

enum { RUNS = sizeof decoder_runs / sizeof *decoder_runs, MOST = 64, TOKENS = DECODER_BATCH * DECODER_CONTEXT };
static char folder[] = "/tmp/heddle-decoder-XXXXXX";

static hd_trainer *make(const place *at, const hd_trainer_desc *desc) {
    hd_trainer *trainer = NULL;
    check_on(at, hd_trainer_create(at->context, at->device, desc, &trainer));
    return trainer;
}

static void batch_of(uint64_t step, int32_t *tokens, int32_t *targets) {
    for (int i = 0; i < TOKENS; i++) {
        const int b = i / DECODER_CONTEXT, t = i % DECODER_CONTEXT, s = (int)step;
        tokens[i] = (b * 31 + t * t + s * 7) % DECODER_VOCABULARY;
        targets[i] = (b * 31 + (t + 1) * (t + 1) + s * 7) % DECODER_VOCABULARY;
    }
}

static hd_train_report run_to(const place *at, hd_trainer *trainer, uint64_t until) {
    int32_t tokens[TOKENS], targets[TOKENS];
    hd_train_report report = { 0 };
    bool told;
    while (hd_trainer_steps(trainer) < until) {
        batch_of(hd_trainer_steps(trainer), tokens, targets);
        check_on(at, hd_trainer_step(trainer, tokens, targets, &report, &told));
        check_on(at, hd_trainer_finish(trainer, &report, &told));
    }
    return report;
}

static uint64_t hash(const place *at, hd_trainer *trainer) {
    uint64_t all = 0;
    check_on(at, hd_trainer_hash(trainer, &all));
    return all;
}

/* ---- what others compute ---- */

static int by_name(const void *a, const void *b) { return strcmp(((const hd_safetensor *)a)->name, ((const hd_safetensor *)b)->name); }

/* Puts the fixture's weights into a checkpoint, in the order of their names: all else of it is a new model's. */
static void write_weights(const place *at, const char *path, float scale) {
    static char names[MOST][96];
    hd_safetensors *file;
    hd_safetensor tensors[MOST];
    check_on(at, hd_safetensors_open(at->context, path, &file));
    const size_t count = hd_safetensors_count(file);
    assert_true(count <= MOST);
    for (size_t i = 0; i < count; i++) {
        tensors[i] = *hd_safetensors_get(file, i);
        snprintf(names[i], sizeof names[i], "%s", tensors[i].name);
        tensors[i].name = names[i];
    }
    hd_safetensors_close(file);
    qsort(tensors, count, sizeof *tensors, by_name);
    for (size_t i = 0; i < count; i++) {
        float *values = malloc(tensors[i].bytes);
        for (uint64_t k = 0; k < tensors[i].bytes / sizeof *values; k++) {
            const uint32_t bits = (uint32_t)((k + 1000 * i) * UINT64_C(2654435761)) >> 8;
            values[k] = (float)(bits / 16777216.0 - 0.5) * scale + (tensors[i].shape.rank == 1 ? 1.0f : 0.0f);
        }
        tensors[i].data = values;
    }
    check_on(at, hd_safetensors_write(at->context, path, tensors, count, NULL));
    for (size_t i = 0; i < count; i++) free((void *)(uintptr_t)tensors[i].data);
}

static hd_trainer_desc recipe(const decoder_run *run, hd_math math) {
    return (hd_trainer_desc){ .model = run->model, .batch = DECODER_BATCH, .schedule = { .rate = 1e-3 }, .adamw = { .beta2 = 0.99 },
                              .weight_decay = 0.1, .clip = 1, .math = math };
}

static hd_trainer *as_fixture(const place *at, const decoder_run *run, const hd_trainer_desc *desc, char path[128]) {
    static int number;
    char weights[160];
    hd_trainer *trainer = make(at, desc);
    snprintf(path, 128, "%s/%s-%d", folder, run->name, number++);
    snprintf(weights, sizeof weights, "%s/weights.safetensors", path);
    check_on(at, hd_trainer_save(trainer, path));
    write_weights(at, weights, desc->ternary ? 0.125f : 1.0f);
    check_on(at, hd_trainer_load(trainer, path));
    return trainer;
}

/* The first moments after a step from zero are a tenth of the gradients. Within 1e-4 of each tensor's largest. */
static void check_gradients(const place *at, hd_trainer *trainer, const char *run, const char *path) {
    char after[160], optimizer[192], wanted[256], name[128];
    hd_safetensors *got, *file;
    snprintf(after, sizeof after, "%s-after", path);
    snprintf(optimizer, sizeof optimizer, "%s/optimizer.safetensors", after);
    snprintf(wanted, sizeof wanted, "%s/train/fixtures/%s_gradients.safetensors", HEDDLE_TESTS_DIR, run);
    check_on(at, hd_trainer_save(trainer, after));
    check_on(at, hd_safetensors_open(at->context, optimizer, &got));
    check_on(at, hd_safetensors_open(at->context, wanted, &file));
    assert_int_equal(hd_safetensors_count(got), 2 * hd_safetensors_count(file));
    for (size_t i = 0; i < hd_safetensors_count(file); i++) {
        const hd_safetensor *want = hd_safetensors_get(file, i);
        snprintf(name, sizeof name, "%s.exp_avg", want->name);
        const hd_safetensor *have = hd_safetensors_find(got, name);
        assert_non_null(have);
        assert_memory_equal(&have->shape, &want->shape, sizeof want->shape);
        const float *a = have->data, *b = want->data;
        float most = 0;
        for (uint64_t k = 0; k < want->bytes / sizeof *b; k++) most = fmaxf(most, fabsf(b[k]));
        assert_true(most > 0);
        for (uint64_t k = 0; k < want->bytes / sizeof *b; k++)
            if (!(fabsf(a[k] / 0.1f - b[k]) <= 1e-4f * most))
                fail_msg("%s, %s[%u]: %.8g, not %.8g", run, want->name, (unsigned)k, (double)(a[k] / 0.1f), (double)b[k]);
    }
    hd_safetensors_close(got);
    hd_safetensors_close(file);
}

static void check_step(const decoder_run *run, int step, const hd_train_report *report, float near) {
    const float loss = run->losses[step], norm = run->norms[step];
    if (fabsf(report->loss - loss) > near || fabsf(report->norm - norm) > 10 * near * norm)
        fail_msg("%s, step %d: loss %.7f and norm %.6f, not %.7f and %.6f", run->name, step, (double)report->loss, (double)report->norm,
                 (double)loss, (double)norm);
}

static void as_transformers(void **state) {
    (void)state;
    place at;
    char path[128];
    assert_true(open_place("cpu", 2, &at));
    for (const decoder_run *run = decoder_runs; run < decoder_runs + RUNS; run++)
        for (int math = HD_MATH_FAST; math <= HD_MATH_EXACT; math++) {
            const hd_trainer_desc desc = recipe(run, (hd_math)math);
            hd_trainer *trainer = as_fixture(&at, run, &desc, path);
            for (int s = 0; s < DECODER_STEPS; s++) {
                const hd_train_report report = run_to(&at, trainer, (uint64_t)s + 1);
                check_step(run, s, &report, 1e-5f);
                if (s == 0) check_gradients(&at, trainer, run->name, path);
            }
            hd_trainer_destroy(trainer);
        }
    close_place(&at);
}

/* Rounded weights with gradients that pass straight through. */
static void ternary_as_pytorch(void **state) {
    (void)state;
    place at;
    char path[128];
    assert_true(open_place("cpu", 2, &at));
    hd_trainer_desc desc = recipe(ternary_runs, HD_MATH_EXACT);
    desc.ternary = 1;
    hd_trainer *trainer = as_fixture(&at, ternary_runs, &desc, path);
    for (int s = 0; s < TERNARY_STEPS; s++) {
        const hd_train_report report = run_to(&at, trainer, (uint64_t)s + 1);
        check_step(ternary_runs, s, &report, 1e-5f);
    }
    hd_trainer_destroy(trainer);
    close_place(&at);
}

/* ---- the same bits ---- */

static const uint64_t golden[RUNS][3] = {
    { UINT64_C(0x65bed4a42bc49164), UINT64_C(0x24e137f562de066d), UINT64_C(0x5b0cd7c5895cbdc3) },
    { UINT64_C(0xe1c38b809f52d52e), UINT64_C(0xda8f4972325f36eb), UINT64_C(0x3888b84de042df83) },
};
static const uint64_t golden_steps[] = { 0, 1, 10 };

static hd_trainer_desc exact(int run) {
    hd_trainer_desc desc = recipe(&decoder_runs[run], HD_MATH_EXACT);
    desc.seed = 7;
    desc.dropout = 0.1f;
    desc.micro_batch = 2;
    return desc;
}

/* The run with two threads is stopped in the middle and goes on from its checkpoint. */
static void golden_bits(void **state) {
    (void)state;
    static const struct { const char *backend; uint32_t threads; } wanted[] = { { "cpu", 1 }, { "cpu", 2 }, { "vulkan", 0 }, { "cuda", 0 } };
    int wrong = 0;
    for (size_t d = 0; d < sizeof wanted / sizeof *wanted; d++) {
        place at;
        if (!open_place(wanted[d].backend, wanted[d].threads, &at)) continue;
        for (int run = 0; run < RUNS; run++) {
            char path[128];
            hd_trainer_desc desc = exact(run), read;
            uint64_t step;
            hd_trainer *trainer = make(&at, &desc);
            for (size_t g = 0; g < sizeof golden_steps / sizeof *golden_steps; g++) {
                run_to(&at, trainer, golden_steps[g]);
                const uint64_t got = hash(&at, trainer);
                wrong += got != golden[run][g];
                if (got != golden[run][g])
                    print_message("%s, %s, after %u steps: %016llx\n", at.name, decoder_runs[run].name, (unsigned)golden_steps[g], (unsigned long long)got);
                if (g != 1 || wanted[d].threads != 2) continue;
                run_to(&at, trainer, 4);
                snprintf(path, sizeof path, "%s/%s-middle", folder, decoder_runs[run].name);
                save_and_read(&at, trainer, path, &read, &step);
                trainer = make(&at, &read);
                assert_int_equal(step, 4);
                assert_memory_equal(&hd_trainer_get_desc(trainer)->model, &decoder_runs[run].model, sizeof read.model);
                check_on(&at, hd_trainer_load(trainer, path));
            }
            hd_trainer_destroy(trainer);
        }
        close_place(&at);
    }
    assert_int_equal(wrong, 0);
}

/* A batch at once and in pieces, by AdamW and by Muon: weights and moments, losses and norms. */
static void one_is_many(void **state) {
    (void)state;
    place at;
    assert_true(open_place("cpu", 2, &at));
    for (int kind = 0; kind < 2 * RUNS; kind++) {
        uint64_t whole = 0;
        hd_train_report first = { 0 };
        for (uint32_t size = DECODER_BATCH; size >= 1; size /= 2) {
            hd_trainer_desc desc = exact(kind % RUNS);
            desc.micro_batch = size;
            if (kind >= RUNS) desc.optimizer = HD_OPTIMIZER_MUON, desc.dropout = 0;
            hd_trainer *trainer = make(&at, &desc);
            const hd_train_report report = run_to(&at, trainer, 3);
            const uint64_t got = hash(&at, trainer);
            if (size == DECODER_BATCH) whole = got, first = report;
            if (got != whole || report.loss != first.loss || report.norm != first.norm)
                fail_msg("%s in pieces of %u: %016llx, loss %.9g, norm %.9g, and not %016llx, %.9g, %.9g as in one", decoder_runs[kind % RUNS].name, size,
                         (unsigned long long)got, (double)report.loss, (double)report.norm, (unsigned long long)whole, (double)first.loss,
                         (double)first.norm);
            hd_trainer_destroy(trainer);
        }
    }
    close_place(&at);
}

/* ---- what comes out ---- */

/* A weight of the file as f32, so that products with it round no activation. */
static hd_value in_f32(void *user, hd_program *p, const char *name) {
    hd_model_weight weight;
    for (size_t i = 0; i < hd_program_port_count(p); i++) {
        const hd_port port = hd_program_port(p, i);
        if (strcmp(port.name, name) == 0) return port.dtype == HD_F32 ? port.value : hd_cast(p, port.value, HD_F32);
    }
    for (size_t i = 0; hd_model_get_weight(user, i, &weight); i++)
        if (strcmp(weight.name, name) == 0) hd_input(p, name, weight.dtype, weight.shape);
    return in_f32(user, p, name);
}

/* The mean loss of a model's own graph over a batch; with `plain` all of it in f32. */
static float loss_of(const place *at, bool plain, hd_model *model, const int32_t *tokens, const int32_t *targets) {
    hd_weights *weights;
    hd_plan *plan;
    hd_value scores;
    int32_t positions[TOKENS];
    float loss = 0;
    hd_program *p = hd_program_create(at->context);
    const hd_model_graph_desc desc = { .sequences = DECODER_BATCH, .length = DECODER_CONTEXT, .tokens = hd_input(p, "tokens", HD_I32, HD_SHAPE(TOKENS)),
                                       .positions = hd_input(p, "positions", HD_I32, HD_SHAPE(TOKENS)), .weight = plain ? in_f32 : NULL, .user = model };
    for (int i = 0; i < TOKENS; i++) positions[i] = i % DECODER_CONTEXT;
    check_on(at, hd_model_build(model, p, &desc, NULL, &scores));
    hd_output(p, "loss", hd_mean(p, hd_cross_entropy(p, scores, hd_input(p, "targets", HD_I32, HD_SHAPE(TOKENS))), HD_ALL_AXES));
    check_on(at, hd_plan_create(at->device, p, &(hd_plan_desc){ .math = HD_MATH_EXACT }, &plan));
    check_on(at, hd_weights_load(model, at->device, &weights));
    check_on(at, hd_weights_bind(weights, plan));
    check_on(at, hd_plan_write(plan, "tokens", tokens, sizeof positions));
    check_on(at, hd_plan_write(plan, "targets", targets, sizeof positions));
    check_on(at, hd_plan_write(plan, "positions", positions, sizeof positions));
    check_on(at, hd_plan_run(plan, NULL));
    check_on(at, hd_plan_read(plan, "loss", &loss, sizeof loss));
    hd_plan_destroy(plan);
    hd_weights_destroy(weights);
    hd_program_destroy(p);
    return loss;
}

/* One batch is learned by heart, and what is exported has its loss. */
static void exported(void **state) {
    (void)state;
    place at;
    char path[128];
    int32_t tokens[TOKENS], targets[TOKENS], next;
    assert_true(open_place("cpu", 2, &at));
    for (int run = 0; run < RUNS; run++) {
        hd_trainer_desc desc = recipe(&decoder_runs[run], HD_MATH_FAST);
        hd_train_report report = { .loss = 99 };
        hd_model *model;
        hd_model_info info;
        bool told;
        float loss;
        desc.schedule = (hd_schedule){ .rate = 2e-2, .warmup = 5 };
        hd_trainer *trainer = make(&at, &desc);
        batch_of(0, tokens, targets);
        for (int step = 0; step < 250 && !(report.loss < 0.05f); step++) {
            check_on(&at, hd_trainer_step(trainer, tokens, targets, &report, &told));
            check_on(&at, hd_trainer_finish(trainer, &report, &told));
        }
        if (!(report.loss < 0.05f)) fail_msg("%s: the loss of one batch is still %.4f", decoder_runs[run].name, (double)report.loss);
        for (int seen = 4; seen <= DECODER_CONTEXT; seen += 4) {
            check_on(&at, hd_trainer_next(trainer, tokens, (size_t)seen, 0, 0, &next));
            assert_int_equal(next, targets[seen - 1]);
        }
        snprintf(path, sizeof path, "%s/%s.gguf", folder, decoder_runs[run].name);
        check_on(&at, hd_trainer_export(trainer, path, NULL));
        check_on(&at, hd_model_open(at.context, path, &(hd_model_desc){ .check_weights = 1 }, &model));
        check_on(&at, hd_model_get_info(model, &info));
        assert_string_equal(info.architecture, decoder_runs[run].name);
        assert_true(info.parameters == hd_trainer_parameters(trainer));
        check_on(&at, hd_trainer_loss(trainer, tokens, targets, &loss));
        const float same = loss_of(&at, false, model, tokens, targets);
        if (!(fabsf(same - loss) < 1e-5f)) fail_msg("%s: a loss of %.7f in training, and of %.7f as a file", decoder_runs[run].name, (double)loss, (double)same);
        hd_model_close(model);
        hd_trainer_destroy(trainer);
    }
    close_place(&at);
}

/* Ternary: the same bits, in pieces and after a stop too; and what is exported as tq2_0 computes what the trainer does. */
static const uint64_t golden_ternary[] = { UINT64_C(0x6076963b3ecd107f), UINT64_C(0x7bb4731c1682b324) };

static void ternary(void **state) {
    (void)state;
    static const struct { const char *backend; uint32_t threads, micro_batch; } wanted[] = { { "cpu", 1, 4 }, { "cpu", 2, 1 }, { "vulkan", 0, 2 },
                                                                                             { "cuda", 0, 2 } };
    int32_t tokens[TOKENS], targets[TOKENS];
    int wrong = 0;
    batch_of(0, tokens, targets);
    for (int family = 0; family < 2; family++)
        for (size_t d = 0; d < sizeof wanted / sizeof *wanted; d++) {
            place at;
            char path[128];
            hd_trainer_desc desc = recipe(ternary_runs, HD_MATH_EXACT), read;
            uint64_t step;
            hd_model *model;
            hd_model_info info;
            float loss;
            if (family == 1 && strcmp(wanted[d].backend, "vulkan") == 0) continue; /* lavapipe takes its time */
            if (!open_place(wanted[d].backend, wanted[d].threads, &at)) continue;
            if (family == 1) desc.model = (hd_gpt){ .layers = 1, .width = 256, .heads = 4, .context = DECODER_CONTEXT, .vocabulary = DECODER_VOCABULARY };
            desc.ternary = 1;
            desc.micro_batch = wanted[d].micro_batch;
            hd_trainer *trainer = make(&at, &desc);
            run_to(&at, trainer, 1);
            snprintf(path, sizeof path, "%s/ternary-%d-%d", folder, family, (int)d);
            save_and_read(&at, trainer, path, &read, &step);
            assert_int_equal(read.ternary, 1);
            trainer = make(&at, &read);
            check_on(&at, hd_trainer_load(trainer, path));
            run_to(&at, trainer, 3);
            const uint64_t got = hash(&at, trainer);
            wrong += got != golden_ternary[family];
            if (got != golden_ternary[family]) print_message("%s, family %d: %016llx\n", at.name, family, (unsigned long long)got);
            if (d == 0) {
                snprintf(path, sizeof path, "%s/ternary-%d.gguf", folder, family);
                check_on(&at, hd_trainer_export(trainer, path, NULL));
                check_on(&at, hd_model_open(at.context, path, &(hd_model_desc){ .check_weights = 1 }, &model));
                check_on(&at, hd_model_get_info(model, &info));
                assert_non_null(strstr(info.weight_types, family == 0 ? "tq2_0 7" : "tq2_0 4"));
                check_on(&at, hd_trainer_loss(trainer, tokens, targets, &loss));
                const float same = loss_of(&at, true, model, tokens, targets), rounded = loss_of(&at, false, model, tokens, targets);
                if (!(fabsf(same - loss) < 2e-6f && fabsf(rounded - loss) < 1e-3f)) /* products with quantised weights round activations to 8 bits */
                    fail_msg("family %d: a loss of %.7f in training, and of %.7f and %.7f as a file", family, (double)loss, (double)same, (double)rounded);
                hd_model_close(model);
            }
            hd_trainer_destroy(trainer);
            close_place(&at);
        }
    assert_int_equal(wrong, 0);
}

static void refused(void **state) {
    (void)state;
    place at;
    assert_true(open_place("cpu", 1, &at));
    hd_trainer *trainer = NULL;
    for (int k = 0; k < 9; k++) {
        hd_trainer_desc bad = exact(0);
        switch (k) {
        case 0: bad.model.kv_heads = 3; break;
        case 1: bad.model.kv_heads = 8; break;
        case 2: bad.model.head_size = 5; break;
        case 3: bad.model.feed_forward = 0; break;
        case 4: bad.model.epsilon = -1; break;
        case 5: bad.model.rope_theta = INFINITY; break;
        case 6: bad.model.family = (hd_family)3; break;
        case 7: bad.ternary = 1; break; /* of rows that are no blocks */
        default: bad.model.head_size = 1 << 20;
        }
        assert_int_equal(hd_trainer_create(at.context, at.device, &bad, &trainer), HD_STATUS_INVALID_ARGUMENT);
        assert_true(hd_context_error(at.context)[0] && !trainer);
    }
    close_place(&at);
}

/* A trainer.json by chance is refused, or a desc that can be trained. */
static void broken_settings(void **state) {
    (void)state;
    place at;
    char path[128], file[160];
    static char settings[4096], changed[4096];
    hd_trainer_desc desc = exact(1), read;
    uint64_t step;
    uint32_t chance = 1;
    int taken = 0;
    assert_true(open_place("cpu", 1, &at));
    hd_trainer *trainer = make(&at, &desc);
    snprintf(path, sizeof path, "%s/broken", folder);
    snprintf(file, sizeof file, "%s/trainer.json", path);
    check_on(&at, hd_trainer_save(trainer, path));
    hd_trainer_destroy(trainer);
    FILE *from = fopen(file, "rb");
    const size_t bytes = fread(settings, 1, sizeof settings, from);
    fclose(from);
    for (int i = 0; i < 10000; i++) {
        memcpy(changed, settings, bytes);
        for (int k = 0; k < 1 + i % 3; k++) {
            chance = chance * 1664525u + 1013904223u;
            changed[(chance >> 8) % bytes] = "0123456789-.e\",:{}"[(chance >> 3) % 18];
        }
        FILE *to = fopen(file, "wb");
        fwrite(changed, 1, bytes, to);
        fclose(to);
        const hd_status status = hd_trainer_read(at.context, path, &read, &step);
        const hd_gpt *m = &read.model;
        if (status) assert_true(hd_context_error(at.context)[0]);
        else assert_true(m->family != HD_FAMILY_QWEN3 || (m->heads % m->kv_heads == 0 && m->head_size % 2 == 0 && m->feed_forward > 0 && m->epsilon > 0));
        taken += !status;
    }
    assert_true(taken > 0 && taken < 9000);
    close_place(&at);
}

static int begin(void **state) {
    (void)state;
    return mkdtemp(folder) == NULL;
}
static int end(void **state) {
    (void)state;
    return remove_folder(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(as_transformers), cmocka_unit_test(ternary_as_pytorch), cmocka_unit_test(golden_bits), cmocka_unit_test(one_is_many),
                                        cmocka_unit_test(ternary),
                                        cmocka_unit_test(exported), cmocka_unit_test(refused), cmocka_unit_test(broken_settings) };
    return cmocka_run_group_tests(tests, begin, end);
}
