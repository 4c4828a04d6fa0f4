/* test_lora.c: adapters in training beside models of several kinds. Twenty steps are PEFT's, in bf16 near them; one batch is learned by heart, beside
 * quantised weights too; gradients too small for f16 are not lost where products round to it; in exact mode all A, B and moments have
 * the golden bits on every device, and those of the whole batch in micro-batches of any size, with layers kept or computed again, whose
 * memory is told; a run goes on from a checkpoint; an adapter has the trainer's loss beside its model. A GPT that was trained computes the same as a GGUF file. */
#define _XOPEN_SOURCE 700
#include "lora.h"
#include "train/trainer.h"

static uint64_t hash(const place *at, hd_trainer *trainer) {
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

/* With products of bf16 losses and norms are near those: a number is off by 2^-9 of it. Through CUDA the library takes
 * products of 16 rows and more. */
static void in_bf16(void **state) {
    (void)state;
    static const char *const backends[] = { "cpu", "cuda" };
    for (size_t d = 0; d < 2; d++) {
        place at;
        int32_t tokens[MOST_TOKENS], targets[MOST_TOKENS];
        if (!open_place(backends[d], 2, &at)) continue;
        for (size_t i = 0; i < sizeof lora_runs / sizeof *lora_runs; i++) {
            char path[128], name[32];
            snprintf(name, sizeof name, "%s_f32", lora_runs[i].name);
            hd_model *base = open_model(&at, name);
            hd_trainer_desc desc = recipe(base);
            desc.math = HD_MATH_FAST;
            desc.precision = HD_PRECISION_BF16;
            hd_trainer *trainer = make(&at, &desc);
            hd_train_report report;
            bool rounds = false;
            snprintf(path, sizeof path, "%s/bf16-%s-%s", folder, backends[d], name);
            begin_as_fixture(&at, trainer, path);
            for (int s = 0; s < LORA_STEPS; s++) {
                batch_of(s, lora_runs[i].vocabulary, tokens, targets);
                step(&at, trainer, tokens, targets, &report);
                const float off = fabsf(report.loss - lora_runs[i].losses[s]), norm = lora_runs[i].norms[s];
                rounds = rounds || off > 1e-4f;
                if (off > 0.01f * lora_runs[i].losses[s] || fabsf(report.norm - norm) > 0.05f * norm)
                    fail_msg("%s, %s, step %d: loss %.7f and norm %.6f, not %.7f and %.6f", at.name, name, s, (double)report.loss, (double)report.norm,
                             (double)lora_runs[i].losses[s], (double)norm);
            }
            assert_true(rounds);
            hd_trainer_destroy(trainer);
            hd_model_close(base);
        }
        close_place(&at);
    }
}

/* ---- one batch by heart, and its bits ---- */

static const struct { const char *name; hd_precision precision; } learned[] = { { "llama_q8_0", HD_PRECISION_F32 }, { "qwen3_q4_0", HD_PRECISION_F32 },
    { "qwen2_f32", HD_PRECISION_F32 }, { "phi3_f32", HD_PRECISION_F32 }, { "gpt2_f32", HD_PRECISION_F32 }, { "gemma_f32", HD_PRECISION_F32 },
    { "qwen3_q4_0", HD_PRECISION_BF16 } };

static void by_heart(void **state) {
    (void)state;
    place at;
    int32_t tokens[MOST_TOKENS], targets[MOST_TOKENS], next;
    assert_true(open_place("cpu", 2, &at));
    for (size_t i = 0; i < sizeof learned / sizeof *learned; i++) {
        hd_model *base = open_model(&at, learned[i].name);
        hd_model_info info;
        check_on(&at, hd_model_get_info(base, &info));
        hd_trainer_desc desc = recipe(base);
        desc.math = HD_MATH_FAST;
        desc.precision = learned[i].precision;
        desc.lora.rank = 16;
        desc.lora.alpha = 32;
        desc.weight_decay = 0;
        desc.schedule = (hd_schedule){ .rate = 1e-2, .least = 1e-3, .warmup = 5, .steps = 300, .decay = HD_DECAY_COSINE };
        hd_trainer *trainer = make(&at, &desc);
        hd_train_report report = { .loss = 99 };
        batch_of(0, (int)info.vocabulary, tokens, targets);
        int steps = 0;
        while (!(report.loss < 0.05f) && steps++ < 300) step(&at, trainer, tokens, targets, &report);
        if (!(report.loss < 0.05f)) fail_msg("%s: the loss of one batch is still %.4f", learned[i].name, (double)report.loss);
        check_on(&at, hd_trainer_next(trainer, tokens, LORA_LENGTH, 0, 0, &next));
        assert_int_equal(next, targets[LORA_LENGTH - 1]);
        hd_trainer_destroy(trainer);
        hd_model_close(base);
    }
    close_place(&at);
}

static const struct { const char *name; uint64_t hashes[4]; hd_precision precision; } golden[] = {
    { "qwen3_q4_0", { UINT64_C(0x93d1a24933499a2d), UINT64_C(0x80d01f9925c6898d), UINT64_C(0xf7d91a74a1d9a1ca), UINT64_C(0x060b950336af385e) }, HD_PRECISION_F32 },
    { "llama_q8_0", { UINT64_C(0xc6c92ae270a7d400), UINT64_C(0x27932f041e6581d4), UINT64_C(0xa29be7fe828c8dde), UINT64_C(0x735d8198b6b86e1e) }, HD_PRECISION_F32 },
    { "qwen3_q4_0", { UINT64_C(0x93d1a24933499a2d), UINT64_C(0xf09c2a639cf2eafc), UINT64_C(0xb9bd683eb20d2286), UINT64_C(0xcaa0d217162c14bb) }, HD_PRECISION_BF16 },
};
static const int golden_steps[] = { 0, 1, 5, 10 };

static void run_to(const place *at, hd_trainer *trainer, int vocabulary, int until) {
    int32_t tokens[MOST_TOKENS], targets[MOST_TOKENS];
    hd_train_report report;
    while ((int)hd_trainer_steps(trainer) < until) {
        batch_of((int)hd_trainer_steps(trainer), vocabulary, tokens, targets);
        step(at, trainer, tokens, targets, &report);
    }
}

static hd_trainer_desc exact(hd_model *base) {
    hd_trainer_desc desc = recipe(base);
    desc.math = HD_MATH_EXACT;
    desc.dropout = 0.1f;
    desc.micro_batch = 1;
    return desc;
}

/* A run that is stopped after 5 steps and goes on from its checkpoint has the bits of one that is not. */
static void golden_bits(void **state) {
    (void)state;
    static const struct { const char *backend; uint32_t threads; } wanted[] = { { "cpu", 1 }, { "cpu", 2 }, { "vulkan", 0 }, { "cuda", 0 } };
    int wrong = 0;
    for (size_t d = 0; d < sizeof wanted / sizeof *wanted; d++) { /* OpenCL's kernels take PoCL too long */
        place at;
        if (!open_place(wanted[d].backend, wanted[d].threads, &at)) continue;
        for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
            if (i > 0 && strcmp(wanted[d].backend, "vulkan") == 0) continue; /* and lavapipe takes them its time */
            char path[128];
            hd_model *base = open_model(&at, golden[i].name);
            hd_model_info info;
            check_on(&at, hd_model_get_info(base, &info));
            hd_trainer_desc desc = exact(base);
            desc.precision = golden[i].precision;
            hd_trainer *trainer = make(&at, &desc);
            for (int g = 0; g < 4; g++) {
                run_to(&at, trainer, (int)info.vocabulary, golden_steps[g]);
                const uint64_t got = hash(&at, trainer);
                wrong += got != golden[i].hashes[g];
                if (got != golden[i].hashes[g]) print_message("%s, %s, after %d steps: %016llx\n", at.name, golden[i].name, golden_steps[g], (unsigned long long)got);
                if (golden_steps[g] != 5 || strcmp(wanted[d].backend, "vulkan") == 0) continue; /* which would compile all of them again */
                uint64_t stopped;
                snprintf(path, sizeof path, "%s/stop-%zu-%zu", folder, d, i);
                save_and_read(&at, trainer, path, &desc, &stopped);
                assert_true(stopped == 5 && desc.lora.rank == LORA_RANK && !desc.base);
                hd_trainer *none = NULL;
                assert_int_equal(hd_trainer_create(at.context, at.device, &desc, &none), HD_STATUS_INVALID_ARGUMENT);
                hd_context_error(at.context);
                desc.base = base;
                trainer = make(&at, &desc);
                check_on(&at, hd_trainer_load(trainer, path));
            }
            hd_trainer_destroy(trainer);
            hd_model_close(base);
        }
        close_place(&at);
    }
    assert_int_equal(wrong, 0);
}

/* One batch of 32 sequences of many lengths, and the same in 2, 4 and 32 pieces: A, B, moments, losses and norms, with dropout and
 * without. */
static void one_is_many(void **state) {
    (void)state;
    enum { MANY = 32 };
    static int32_t tokens[MANY * LORA_LENGTH], targets[MANY * LORA_LENGTH];
    place at;
    assert_true(open_place("cpu", 2, &at));
    for (int drops = 0; drops < 2; drops++) {
        hd_model *base = open_model(&at, golden[drops].name);
        hd_model_info info;
        uint64_t whole = 0;
        hd_train_report first = { 0 }, report = { 0 };
        check_on(&at, hd_model_get_info(base, &info));
        for (uint32_t pieces = 1; pieces <= MANY; pieces *= pieces == 4 ? 8 : 2) {
            hd_trainer_desc desc = exact(base);
            desc.batch = MANY;
            desc.micro_batch = MANY / pieces;
            if (!drops) desc.dropout = 0;
            hd_trainer *trainer = make(&at, &desc);
            for (int s = 0; s < 3; s++) {
                for (int i = 0; i < MANY * LORA_LENGTH; i++) {
                    const int b = i / LORA_LENGTH, t = i % LORA_LENGTH;
                    tokens[i] = (b * 31 + t * t + s * 7) % (int)info.vocabulary;
                    targets[i] = t < b % 5 || t > LORA_LENGTH - b % 7 ? -1 : (b * 31 + (t + 1) * (t + 1) + s * 7) % (int)info.vocabulary;
                }
                step(&at, trainer, tokens, targets, &report);
            }
            check_pieces(pieces, hash(&at, trainer), &report, &whole, &first);
            hd_trainer_destroy(trainer);
        }
        hd_model_close(base);
    }
    close_place(&at);
}

/* Layers that are computed again have the bits of those that are kept, in less memory: of adapters, and of a whole model. */
static void recomputed(void **state) {
    (void)state;
    enum { WHOLE = 2, LAYERS = 4 };
    place at;
    int32_t tokens[MOST_TOKENS], targets[MOST_TOKENS];
    assert_true(open_place("cpu", 2, &at));
    for (int i = 0; i <= WHOLE; i++) {
        hd_model *base = i < WHOLE ? open_model(&at, golden[i].name) : NULL;
        hd_trainer_desc desc = base ? exact(base) : (hd_trainer_desc){ .model = { .layers = LAYERS, .width = 32, .heads = 2, .context = LORA_LENGTH, .vocabulary = 64 },
            .batch = LORA_BATCH, .seed = 3, .schedule = { .rate = 1e-2 }, .dropout = 0.1f, .math = HD_MATH_EXACT };
        uint64_t hashes[2], bytes[2];
        for (uint32_t again = 0; again < 2; again++) {
            hd_plan_memory memory;
            hd_train_report report;
            desc.recompute = again;
            check_on(&at, hd_trainer_fit(at.context, at.device, &desc, &memory));
            bytes[again] = memory.scratch_bytes;
            hd_trainer *trainer = make(&at, &desc);
            for (int s = 0; s < 3; s++) {
                batch_of(s, 64, tokens, targets);
                step(&at, trainer, tokens, base ? targets : tokens, &report);
            }
            hashes[again] = hash(&at, trainer);
            hd_trainer_destroy(trainer);
        }
        hd_model_close(base);
        if (hashes[0] != hashes[1] || bytes[1] >= bytes[0])
            fail_msg("case %d: hashes %016llx and %016llx, %llu and %llu bytes", i, (unsigned long long)hashes[0], (unsigned long long)hashes[1], (unsigned long long)bytes[0], (unsigned long long)bytes[1]);
    }
    close_place(&at);
}

/* What adapters take is told before it is taken, with layers kept and computed again. The CPU has the base's weights where its file is
 * mapped. */
static void fits(void **state) {
    (void)state;
    enum { FITS_BATCH = 4, FITS_LENGTH = 64 };
    static int32_t tokens[FITS_BATCH * FITS_LENGTH];
    for (int i = 0; i < 8; i++) {
        place at;
        assert_true(open_place("cpu", 1, &at));
        hd_model *base = open_model(&at, "qwen3_q4_0");
        hd_trainer_desc desc = recipe(base);
        desc.batch = FITS_BATCH;
        desc.length = FITS_LENGTH;
        desc.recompute = i % 2 != 0;
        desc.precision = i / 2 % 2 ? HD_PRECISION_BF16 : HD_PRECISION_F32;
        desc.math = i / 4 ? HD_MATH_EXACT : HD_MATH_FAST;
        hd_plan_memory takes;
        hd_train_report report;
        hd_device_stats before, after;
        check_on(&at, hd_device_get_stats(at.device, &before));
        check_on(&at, hd_trainer_fit(at.context, at.device, &desc, &takes));
        check_on(&at, hd_device_get_stats(at.device, &after));
        assert_int_equal(after.device_bytes_peak, before.device_bytes_peak);
        hd_trainer *trainer = make(&at, &desc);
        for (int s = 0; s < 3; s++) step(&at, trainer, tokens, tokens, &report);
        check_on(&at, hd_device_get_stats(at.device, &after));
        const double took = (double)(after.device_bytes_peak - before.device_bytes), said = (double)takes.total_bytes;
        if (fabs(took - said) > 0.05 * said) fail_msg("case %d: %.0f bytes were said, and %.0f taken", i, said, took);
        hd_trainer_destroy(trainer);
        hd_model_close(base);
        close_place(&at);
    }
}

/* ---- what comes out ---- */

/* A trained adapter beside its model has the trainer's loss, quantised weights or not. */
static void trained(void **state) {
    (void)state;
    static const char *const names[] = { "qwen3_q4_0", "gpt2_f32" };
    place at;
    int32_t tokens[MOST_TOKENS], targets[MOST_TOKENS];
    assert_true(open_place("cpu", 2, &at));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        hd_model *base = open_model(&at, names[i]), *adapted = open_model(&at, names[i]);
        hd_model_info info;
        hd_adapter *adapter;
        float loss, again;
        check_on(&at, hd_model_get_info(base, &info));
        hd_trainer_desc desc = recipe(base);
        desc.math = HD_MATH_FAST;
        hd_trainer *trainer = make(&at, &desc);
        run_to(&at, trainer, (int)info.vocabulary, 10);
        batch_of(3, (int)info.vocabulary, tokens, targets);
        check_on(&at, hd_trainer_loss(trainer, tokens, targets, &loss));
        check_on(&at, hd_trainer_adapter(trainer, &adapter));
        assert_string_equal(hd_adapter_architecture(adapter), info.architecture);
        check_on(&at, hd_model_adapt(adapted, (const hd_adapter *const[]){ adapter }, NULL, 1));
        hd_adapter_destroy(adapter);
        desc.base = adapted;
        desc.lora.rank = 1; /* whose B is 0 */
        hd_trainer *other = make(&at, &desc);
        check_on(&at, hd_trainer_loss(other, tokens, targets, &again));
        if (fabsf(loss - again) > 1e-5f * loss) fail_msg("%s: a loss of %.7f in training and %.7f beside the model", names[i], (double)loss, (double)again);
        hd_trainer_destroy(other);
        hd_trainer_destroy(trainer);
        hd_model_close(adapted);
        hd_model_close(base);
    }
    close_place(&at);
}

/* ---- a GPT as a GGUF file ---- */

static void exported(void **state) {
    (void)state;
    enum { VOCABULARY = 260, STEPS = 60 };
    static uint8_t text[1024];
    place at;
    char path[128];
    bool told;
    hd_train_report report;
    hd_model *model;
    hd_model_info info;
    int32_t tokens[MOST_TOKENS], targets[MOST_TOKENS], next, ids[8];
    float last[VOCABULARY];
    for (size_t i = 0; i < sizeof text; i++) text[i] = (uint8_t)"the loom is warped; "[i % 20];
    assert_true(open_place("cpu", 2, &at));
    const hd_trainer_desc desc = { .model = { .layers = 2, .width = 32, .heads = 2, .context = LORA_LENGTH, .vocabulary = VOCABULARY }, .batch = LORA_BATCH, .seed = 3, .schedule = { .rate = 1e-2 }, .optimizer = HD_OPTIMIZER_MUON, .math = HD_MATH_FAST };
    hd_trainer *trainer = make(&at, &desc);
    for (uint64_t s = 0; s < STEPS; s++) {
        assert_true(hd_draw_batch(&(hd_token_data){ text, 1, sizeof text }, 3, s, LORA_BATCH, LORA_LENGTH, tokens, targets));
        check_on(&at, hd_trainer_step(trainer, tokens, targets, &report, &told));
    }
    check_on(&at, hd_trainer_finish(trainer, &report, &told));
    snprintf(path, sizeof path, "%s/gpt.gguf", folder);
    check_on(&at, hd_trainer_export(trainer, path, &(hd_export_desc){ .name = "a loom", .bytes = 1 }));
    check_on(&at, hd_model_open(at.context, path, &(hd_model_desc){ .check_weights = 1 }, &model));
    check_on(&at, hd_model_get_info(model, &info));
    assert_string_equal(info.architecture, "gpt2");
    assert_string_equal(info.name, "a loom");
    assert_int_equal(info.parameters, hd_trainer_parameters(trainer));
    size_t count = 8;
    check_on(&at, hd_model_tokenize(model, "a\n\xff ~", 5, HD_TOKENIZE_ADD_SPECIAL, ids, &count)); /* bytes are their own tokens */
    assert_true(count == 5 && ids[0] == 'a' && ids[1] == '\n' && ids[2] == 0xff && ids[3] == ' ' && ids[4] == '~');

    hd_plan *plan; /* the trainer's own forward part */
    hd_value *weights = calloc(trainer->layout.count, sizeof *weights);
    hdt_graph graph = { .layout = &trainer->layout, .batch = 1, .length = LORA_LENGTH, .program = hd_program_create(at.context) };
    hdt_graph_weights(&graph, weights);
    hd_output(graph.program, "scores", hdt_graph_scores(&graph, hdt_graph_hidden(&graph, hd_input(graph.program, "tokens", HD_I32, HD_SHAPE(LORA_LENGTH)))));
    check_on(&at, hd_plan_create(at.device, graph.program, &(hd_plan_desc){ .math = HD_MATH_FAST }, &plan));
    for (int group = 0; group < HDT_GROUPS; group++) {
        snprintf(path, sizeof path, "weights.%d", group);
        check_on(&at, hd_plan_bind(plan, path, trainer->states[group][HDT_WEIGHTS], 0));
    }
    snprintf(path, sizeof path, "%s/gpt.gguf", folder);
    check_on(&at, hd_plan_write(plan, "tokens", tokens, sizeof *tokens * LORA_LENGTH));
    check_on(&at, hd_plan_run(plan, NULL));
    static float own[LORA_LENGTH * VOCABULARY];
    check_on(&at, hd_plan_read(plan, "scores", own, sizeof own));
    hd_plan_destroy(plan);
    hd_program_destroy(graph.program);
    free(weights);
    float *scores = scores_of(&at, model, tokens);
    const double off = distance(own, scores, LORA_LENGTH * VOCABULARY);
    if (off > 1e-5) fail_msg("the file's scores are off by %g", off);
    memcpy(last, own + (LORA_LENGTH - 1) * VOCABULARY, sizeof last);
    assert_true(session_distance(&at, model, tokens, last, VOCABULARY) < 0.02);
    free(scores);

    hd_session *session; /* and a session writes on as the trainer does */
    check_on(&at, hd_session_create(model, &(hd_session_desc){ .device = at.device }, &session));
    check_on(&at, hd_session_feed(session, 0, tokens, 8));
    for (size_t seen = 8; seen < LORA_LENGTH; seen++) {
        int32_t best;
        check_on(&at, hd_session_best(session, 0, &best));
        check_on(&at, hd_trainer_next(trainer, tokens, seen, 0, 0, &next));
        assert_int_equal(best, next);
        tokens[seen] = next;
        if (seen + 1 < LORA_LENGTH) check_on(&at, hd_session_feed(session, 0, &next, 1));
    }
    hd_session_destroy(session);
    assert_int_equal(hd_trainer_export(trainer, path, &(hd_export_desc){ .tokenizer = model }), HD_OK); /* its own tokenizer */
    hd_model_close(model);
    hd_trainer_destroy(trainer);
    close_place(&at);
}

/* ---- gradients that f16 is too coarse for ---- */

enum { MANY_SEQUENCES = 16, MANY_LENGTH = 128, MANY_WORDS = 8192, MANY_WIDTH = 64, MANY_TOKENS = MANY_SEQUENCES * MANY_LENGTH, MANY_B = 4608 };

/* A llama as it is before it learned anything, in q8_0, but with values between its layers as large as deep ones have them: gradients
 * are as much smaller there. */
static void write_many_words(const place *at, char *path, size_t room) {
    char whole[128];
    const hd_trainer_desc desc = { .model = { .family = HD_FAMILY_LLAMA, .layers = 2, .width = MANY_WIDTH, .heads = 2, .context = MANY_LENGTH, .vocabulary = MANY_WORDS, .feed_forward = 128 },
                                   .batch = 1, .seed = 3, .schedule = { .rate = 1e-2 }, .math = HD_MATH_FAST };
    snprintf(whole, sizeof whole, "%s/words.gguf", folder);
    snprintf(path, room, "%s/words-q8_0.gguf", folder);
    hd_trainer *trainer = make(at, &desc);
    float *embedding = malloc(sizeof *embedding * MANY_WORDS * MANY_WIDTH);
    hd_buffer *matrices = trainer->states[HDT_MATRICES][HDT_WEIGHTS];
    assert_int_equal(trainer->layout.parameters[0].first, 0);
    check_on(at, hd_buffer_read(matrices, 0, embedding, sizeof *embedding * MANY_WORDS * MANY_WIDTH));
    for (int i = 0; i < MANY_WORDS * MANY_WIDTH; i++) embedding[i] *= 10000;
    check_on(at, hd_buffer_write(matrices, 0, embedding, sizeof *embedding * MANY_WORDS * MANY_WIDTH));
    free(embedding);
    check_on(at, hd_trainer_export(trainer, whole, NULL));
    hd_trainer_destroy(trainer);
    check_on(at, hd_model_quantize(at->context, whole, path, &(hd_quantize_desc){ .type = "q8_0" }));
}

/* First moments of B after a step: the gradients of the mean of 2,048 tokens, times a number. Before it A has none. */
static float *small_gradients_on(const place *at) {
    static int32_t tokens[MANY_TOKENS], targets[MANY_TOKENS];
    char path[128];
    hd_model *base;
    hd_train_report report;
    float *groups[HDT_GROUPS] = { NULL };
    write_many_words(at, path, sizeof path);
    check_on(at, hd_model_open(at->context, path, NULL, &base));
    hd_trainer_desc desc = recipe(base);
    desc.math = HD_MATH_FAST;
    desc.batch = MANY_SEQUENCES;
    desc.length = MANY_LENGTH;
    desc.clip = 0;
    hd_trainer *trainer = make(at, &desc);
    assert_int_equal(trainer->layout.group_elements[HDT_ALL_B], MANY_B);
    for (int i = 0; i < MANY_TOKENS; i++) {
        tokens[i] = i * i % MANY_WORDS;
        targets[i] = (tokens[i] * 7 + 5) % MANY_WORDS;
    }
    step(at, trainer, tokens, targets, &report);
    check_on(at, hdt_read_groups(trainer, HDT_FIRST, groups));
    float *moments = malloc(sizeof *moments * MANY_B);
    memcpy(moments, groups[HDT_ALL_B], sizeof *moments * MANY_B);
    hdt_free_groups(trainer, groups);
    hd_trainer_destroy(trainer);
    hd_model_close(base);
    return moments;
}

/* Products beside quantised weights may round to f16, which holds nothing below 6e-8: through CUDA's library gradients that are smaller
 * are still those of the CPU, where no product rounds them. */
static void small_gradients(void **state) {
    (void)state;
    place at;
    double off = 0, all = 0;
    assert_true(open_place("cpu", 2, &at));
    float *wanted = small_gradients_on(&at);
    close_place(&at);
    if (open_place("cuda", 0, &at)) {
        float *got = small_gradients_on(&at);
        for (int i = 0; i < MANY_B; i++) {
            off += pow((double)got[i] - (double)wanted[i], 2);
            all += pow((double)wanted[i], 2);
        }
        if (!(off < 1e-4 * all)) fail_msg("%s: gradients are off by %.4f of their size", at.name, sqrt(off / all));
        free(got);
        close_place(&at);
    }
    free(wanted);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(as_peft), cmocka_unit_test(in_bf16), cmocka_unit_test(small_gradients), cmocka_unit_test(by_heart), cmocka_unit_test(golden_bits), cmocka_unit_test(one_is_many), cmocka_unit_test(recomputed), cmocka_unit_test(fits),
                                        cmocka_unit_test(trained),
                                        cmocka_unit_test(exported) };
    return cmocka_run_group_tests(tests, begin, end);
}
