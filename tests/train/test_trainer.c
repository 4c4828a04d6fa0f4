/* test_trainer.c: a GPT in training. Twenty steps are those of Hugging Face's GPT2LMHeadModel with PyTorch's AdamW; one batch is learned
 * by heart; in exact mode all weights and moments have the golden bits on every device, and a run that goes on from a checkpoint,
 * on another device too, has those of one that never stopped; from the third step on nothing is recorded and nothing allocated;
 * broken checkpoints are refused; the weights that did best are kept, in checkpoints too, and come back; a text is measured once, whole. */
#define _XOPEN_SOURCE 700
#include "devices.h"
#include "gpt2_fixture.h"
#include <math.h>
#include <unistd.h>

enum { BATCH = 4, LENGTH = 16, VOCABULARY = 64, MOST_BATCH = 32 };
static char folder[] = "/tmp/heddle-trainer-XXXXXX";

/* A tiny model, of which every kind of weight is there, with dropout and two micro-batches. */
static hd_trainer_desc tiny(void) {
    return (hd_trainer_desc){ .model = { .layers = 2, .width = 32, .heads = 2, .context = LENGTH, .vocabulary = VOCABULARY },
                              .batch = BATCH, .micro_batch = 2, .seed = 7, .schedule = { 3e-3, 3e-4, 5, 100, HD_DECAY_COSINE },
                              .weight_decay = 0.1, .clip = 1, .dropout = 0.1f, .math = HD_MATH_EXACT };
}

/* A text that can be learned: the next token follows from the last two. */
static uint8_t text[4096];
static void make_text(void) {
    text[0] = 1;
    text[1] = 5;
    for (size_t i = 2; i < sizeof text; i++) text[i] = (uint8_t)((text[i - 1] * 3 + text[i - 2] + (i % 97 == 0)) % VOCABULARY);
}

static hd_trainer *make(const place *at, const hd_trainer_desc *desc) {
    hd_trainer *trainer = NULL;
    check_on(at, hd_trainer_create(at->context, at->device, desc, &trainer));
    return trainer;
}

static void train(const place *at, hd_trainer *trainer, uint64_t until, hd_train_report *last) {
    const hd_trainer_desc *desc = hd_trainer_get_desc(trainer);
    int32_t tokens[MOST_BATCH * LENGTH], targets[MOST_BATCH * LENGTH];
    bool told;
    while (hd_trainer_steps(trainer) < until) {
        const uint64_t step = hd_trainer_steps(trainer);
        assert_true(hd_draw_batch(&(hd_token_data){ text, 1, sizeof text }, desc->seed, step, desc->batch, desc->length, tokens, targets));
        check_on(at, hd_trainer_step(trainer, tokens, targets, last, &told));
        if (told) assert_int_equal(last->step, step - 1);
    }
    check_on(at, hd_trainer_finish(trainer, last, &told));
}

static uint64_t hash(const place *at, hd_trainer *trainer) {
    uint64_t all = 0;
    check_on(at, hd_trainer_hash(trainer, &all));
    return all;
}

/* ---- what others compute ---- */

/* As the fixture's script has it. */
static void spread(uint32_t index, float *out, uint64_t count, bool around_one) {
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t bits = (uint32_t)((i + 1000 * index) * UINT64_C(2654435761)) >> 8;
        out[i] = (float)(bits / 16777216.0 - 0.5) * 0.25f + (around_one ? 1.0f : 0.0f);
    }
}

/* Puts the fixture's weights into a checkpoint: all else of it is a new model's. */
static void write_weights(const place *at, const char *path) {
    static const char *const order[] = { "ln_1.weight", "ln_1.bias", "attn.c_attn.weight", "attn.c_attn.bias", "attn.c_proj.weight", "attn.c_proj.bias",
                                         "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight", "mlp.c_fc.bias", "mlp.c_proj.weight", "mlp.c_proj.bias" };
    static char names[64][64];
    hd_safetensors *file;
    hd_safetensor tensors[64];
    uint32_t count = 0;
    check_on(at, hd_safetensors_open(at->context, path, &file));
    for (int i = 0; i < 2; i++) snprintf(names[count++], sizeof *names, "transformer.%s.weight", i ? "wpe" : "wte");
    for (int i = 0; i < GPT2_LAYERS * 12; i++) snprintf(names[count++], sizeof *names, "transformer.h.%d.%s", i / 12, order[i % 12]);
    for (int i = 0; i < 2; i++) snprintf(names[count++], sizeof *names, "transformer.ln_f.%s", i ? "bias" : "weight");
    assert_int_equal(hd_safetensors_count(file), count);
    for (uint32_t i = 0; i < count; i++) {
        const hd_safetensor *found = hd_safetensors_find(file, names[i]);
        assert_non_null(found);
        tensors[i] = *found;
        tensors[i].name = names[i];
        float *values = malloc(found->bytes);
        spread(i, values, found->bytes / 4, found->shape.rank == 1 && strstr(names[i], ".weight"));
        tensors[i].data = values;
    }
    hd_safetensors_close(file);
    check_on(at, hd_safetensors_write(at->context, path, tensors, count, NULL));
    for (uint32_t i = 0; i < count; i++) free((void *)(uintptr_t)tensors[i].data);
}

static void as_transformers(void **state) {
    (void)state;
    place at;
    char path[128], weights[160];
    int32_t tokens[GPT2_BATCH * GPT2_CONTEXT], targets[GPT2_BATCH * GPT2_CONTEXT];
    assert_true(open_place("cpu", 2, &at));
    for (int math = HD_MATH_FAST; math <= HD_MATH_EXACT; math++) {
        const hd_trainer_desc desc = { .model = { .layers = GPT2_LAYERS, .width = GPT2_WIDTH, .heads = GPT2_HEADS, .context = GPT2_CONTEXT, .vocabulary = GPT2_VOCABULARY }, .batch = GPT2_BATCH,
                                       .schedule = { .rate = 1e-3 }, .adamw = { .beta2 = 0.99 }, .weight_decay = 0.1, .clip = 1, .math = (hd_math)math };
        hd_trainer *trainer = make(&at, &desc);
        snprintf(path, sizeof path, "%s/fixture-%d", folder, math);
        snprintf(weights, sizeof weights, "%s/weights.safetensors", path);
        check_on(&at, hd_trainer_save(trainer, path));
        write_weights(&at, weights);
        check_on(&at, hd_trainer_load(trainer, path));
        for (int step = 0; step < GPT2_STEPS; step++) {
            hd_train_report report;
            bool told;
            for (int i = 0; i < GPT2_BATCH * GPT2_CONTEXT; i++) {
                const int b = i / GPT2_CONTEXT, t = i % GPT2_CONTEXT;
                tokens[i] = (b * 31 + t * t + step * 7) % GPT2_VOCABULARY;
                targets[i] = (b * 31 + (t + 1) * (t + 1) + step * 7) % GPT2_VOCABULARY;
            }
            check_on(&at, hd_trainer_step(trainer, tokens, targets, &report, &told));
            check_on(&at, hd_trainer_finish(trainer, &report, &told));
            assert_true(told);
            if (fabsf(report.loss - gpt2_losses[step]) > 1e-5f || fabsf(report.norm - gpt2_norms[step]) > 1e-4f * gpt2_norms[step])
                fail_msg("step %d: loss %.7f and norm %.6f, not %.7f and %.6f", step, (double)report.loss, (double)report.norm,
                         (double)gpt2_losses[step], (double)gpt2_norms[step]);
        }
        hd_trainer_destroy(trainer);
    }
    close_place(&at);
}

static void by_heart(void **state) {
    (void)state;
    place at;
    assert_true(open_place("cpu", 2, &at));
    hd_trainer_desc desc = tiny();
    desc.dropout = 0;
    desc.micro_batch = 0;
    desc.math = HD_MATH_FAST;
    desc.schedule = (hd_schedule){ .rate = 1e-2, .warmup = 5 };
    hd_trainer *trainer = make(&at, &desc);
    int32_t tokens[BATCH * LENGTH], targets[BATCH * LENGTH], next;
    hd_train_report report = { .loss = 99 };
    bool told;
    assert_true(hd_draw_batch(&(hd_token_data){ text, 1, sizeof text }, 1, 0, BATCH, LENGTH, tokens, targets));
    for (int step = 0; step < 400 && report.loss > 0.008f; step++) check_on(&at, hd_trainer_step(trainer, tokens, targets, &report, &told));
    if (!(report.loss < 0.01f)) fail_msg("the loss of one batch is still %.4f", (double)report.loss);
    float loss = 0;
    check_on(&at, hd_trainer_loss(trainer, tokens, targets, &loss));
    assert_true(fabsf(loss - report.loss) < 0.01f);
    for (int seen = 4; seen <= LENGTH; seen += 4) { /* and it says it by heart */
        check_on(&at, hd_trainer_next(trainer, tokens, (size_t)seen, 0, 0, &next));
        assert_int_equal(next, targets[seen - 1]);
    }
    hd_trainer_destroy(trainer);
    close_place(&at);
}

/* ---- the same bits ---- */

static const struct { uint64_t step, hash; } golden[] = { { 0, UINT64_C(0x8d1ccb849557f9fd) }, { 1, UINT64_C(0x015f87de44f0c993) },
                                                           { 10, UINT64_C(0x6f6c0eac8033c9f4) }, { 100, UINT64_C(0x481d7e82b89c6bb9) } };

static void golden_bits(void **state) {
    (void)state;
    place places[MOST_DEVICES];
    const int count = open_places(places);
    const hd_trainer_desc desc = tiny();
    int wrong = 0;
    for (int i = 0; i < count; i++) {
        hd_trainer *trainer = make(&places[i], &desc);
        hd_train_report report = { 0 };
        for (size_t g = 0; g < sizeof golden / sizeof *golden; g++) {
            train(&places[i], trainer, golden[g].step, &report);
            const uint64_t got = hash(&places[i], trainer);
            if (got == golden[g].hash) continue;
            wrong++;
            print_message("%s, after %u steps: %016llx, not %016llx\n", places[i].name, (unsigned)golden[g].step, (unsigned long long)got,
                          (unsigned long long)golden[g].hash);
        }
        if (!(report.loss < 3.9f && isfinite(report.norm))) fail_msg("%s: a loss of %.4f", places[i].name, (double)report.loss);
        hd_trainer_destroy(trainer);
    }
    close_places(places, count);
    assert_int_equal(wrong, 0);
}

/* By Muon: in exact mode the golden bits, with one thread, with two and through Vulkan, of which those with two stop in the middle; and it
 * learns. PoCL takes its time for such products: test_optimizers.c has them there. */
static const struct { uint64_t step, hash; } golden_muon[] = { { 1, UINT64_C(0x1e85e71f49cce9ff) }, { 5, UINT64_C(0xc08686aba8ac4e9b) },
                                                                { 10, UINT64_C(0x2222b4bd250d48bc) } };

static hd_trainer_desc muon(void) {
    hd_trainer_desc desc = tiny();
    desc.optimizer = HD_OPTIMIZER_MUON;
    return desc;
}

static void golden_bits_of_muon(void **state) {
    (void)state;
    static const struct { const char *backend; uint32_t threads; } wanted[] = { { "cpu", 1 }, { "cpu", 2 }, { "vulkan", 0 }, { "cuda", 0 } };
    int wrong = 0;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        place at;
        hd_trainer_desc desc = muon();
        hd_train_report report = { 0 };
        char path[128];
        uint64_t step;
        if (!open_place(wanted[i].backend, wanted[i].threads, &at)) continue;
        hd_trainer *trainer = make(&at, &desc);
        for (size_t g = 0; g < sizeof golden_muon / sizeof *golden_muon; g++) {
            train(&at, trainer, golden_muon[g].step, &report);
            const uint64_t got = hash(&at, trainer);
            wrong += got != golden_muon[g].hash;
            if (got != golden_muon[g].hash) print_message("%s, after %u steps: %016llx\n", at.name, (unsigned)golden_muon[g].step, (unsigned long long)got);
            if (g != 1 || wanted[i].threads != 2) continue;
            snprintf(path, sizeof path, "%s/muon", folder);
            save_and_read(&at, trainer, path, &desc, &step);
            assert_true(step == 5 && desc.optimizer == HD_OPTIMIZER_MUON && desc.muon_rate == 0.02 && desc.muon_momentum == 0.95);
            trainer = make(&at, &desc);
            check_on(&at, hd_trainer_load(trainer, path));
        }
        if (i == 0) train(&at, trainer, 100, &report);
        if (i == 0 && !(report.loss < 3.9f)) fail_msg("after 100 steps the loss is %.4f", (double)report.loss);
        hd_trainer_destroy(trainer);
        close_place(&at);
    }
    assert_int_equal(wrong, 0);
}

/* One batch of 32 sequences, and the same in 2, 4 and 32 pieces: weights, moments, losses and norms, with dropout, without in sequences
 * shorter than the context, and by Muon. */
static void one_is_many(void **state) {
    (void)state;
    place at;
    assert_true(open_place("cpu", 2, &at));
    for (int kind = 0; kind < 3; kind++) {
        uint64_t whole = 0;
        hd_train_report first = { 0 }, report = { 0 };
        for (uint32_t pieces = 1; pieces <= MOST_BATCH; pieces *= pieces == 4 ? 8 : 2) {
            hd_trainer_desc desc = kind == 2 ? muon() : tiny();
            desc.batch = MOST_BATCH;
            desc.micro_batch = MOST_BATCH / pieces;
            if (kind == 0) desc.dropout = 0, desc.length = LENGTH / 2;
            hd_trainer *trainer = make(&at, &desc);
            train(&at, trainer, 3, &report);
            check_pieces(pieces, hash(&at, trainer), &report, &whole, &first);
            hd_trainer_destroy(trainer);
        }
    }
    close_place(&at);
}

/* From the CPU to each other device and back, in the middle of a run. */
static void goes_on(void **state) {
    (void)state;
    place places[MOST_DEVICES];
    const int count = open_places(places);
    const hd_trainer_desc desc = tiny();
    hd_trainer_desc read;
    hd_train_report report;
    char path[128];
    uint64_t step = 0;
    for (int i = 0; i < count; i++) {
        hd_trainer *first = make(&places[0], &desc);
        train(&places[0], first, 5, &report);
        snprintf(path, sizeof path, "%s/middle-%d", folder, i);
        check_on(&places[0], hd_trainer_save(first, path));
        assert_int_equal(hd_trainer_save(first, path), HD_STATUS_NAME_TAKEN);
        hd_context_error(places[0].context);
        hd_trainer_destroy(first);
        check_on(&places[i], hd_trainer_read(places[i].context, path, &read, &step));
        assert_int_equal(step, 5);
        hd_trainer *second = make(&places[i], &read);
        assert_memory_equal(hd_trainer_get_desc(second), &read, sizeof read);
        check_on(&places[i], hd_trainer_load(second, path));
        train(&places[i], second, 10, &report);
        if (hash(&places[i], second) != golden[2].hash) fail_msg("%s: other bits than a run that never stopped", places[i].name);
        hd_trainer_destroy(second);
    }
    close_places(places, count);
}

/* Nothing is recorded and nothing allocated once each of the stream's sets was used. */
static void replayed(void **state) {
    (void)state;
    place places[MOST_DEVICES];
    const int count = open_places(places);
    const hd_trainer_desc desc = tiny();
    for (int i = 0; i < count; i++) {
        hd_train_report report;
        hd_device_stats before, after;
        hd_trainer *trainer = make(&places[i], &desc);
        train(&places[i], trainer, 4, &report);
        check_on(&places[i], hd_device_get_stats(places[i].device, &before));
        train(&places[i], trainer, 12, &report);
        check_on(&places[i], hd_device_get_stats(places[i].device, &after));
        const bool replays = strcmp(hd_device_get_info(places[i].device)->backend, "opencl") != 0; /* PoCL 3.1 has no command buffers */
        if (replays) assert_int_equal(after.commands_recorded, before.commands_recorded);
        assert_int_equal(after.allocations, before.allocations);
        assert_int_equal(after.device_bytes_peak, before.device_bytes_peak);
        assert_int_equal(after.kernels_compiled, before.kernels_compiled);
        assert_int_equal(after.submissions - before.submissions, 8);
        hd_trainer_destroy(trainer);
    }
    close_places(places, count);
}

/* What a step takes is told before it is taken. */
static void fits(void **state) {
    (void)state;
    place at;
    assert_true(open_place("cpu", 1, &at));
    hd_trainer_desc desc = tiny();
    desc.model = (hd_gpt){ .layers = 2, .width = 64, .heads = 2, .context = 128, .vocabulary = 256 };
    desc.length = 0;
    hd_plan_memory takes;
    hd_train_report report;
    hd_device_stats before, after;
    bool told;
    static int32_t tokens[BATCH * 128];
    check_on(&at, hd_device_get_stats(at.device, &before));
    check_on(&at, hd_trainer_fit(at.context, at.device, &desc, &takes));
    check_on(&at, hd_device_get_stats(at.device, &after));
    assert_int_equal(after.device_bytes_peak, before.device_bytes_peak);
    hd_trainer *trainer = make(&at, &desc);
    for (int i = 0; i < 3; i++) check_on(&at, hd_trainer_step(trainer, tokens, tokens, &report, &told));
    check_on(&at, hd_trainer_finish(trainer, &report, &told));
    check_on(&at, hd_device_get_stats(at.device, &after));
    const double took = (double)(after.device_bytes_peak - before.device_bytes), said = (double)takes.total_bytes;
    if (fabs(took - said) > 0.05 * said) fail_msg("%.0f bytes were said, and %.0f taken", said, took);
    hd_trainer_destroy(trainer);
    close_place(&at);
}

/* ---- what is refused ---- */

static void refused(void **state) {
    (void)state;
    place at;
    assert_true(open_place("cpu", 1, &at));
    const hd_trainer_desc good = tiny();
    hd_trainer *trainer = NULL;
    for (int k = 0; k < 15; k++) {
        hd_trainer_desc bad = good;
        switch (k) {
        case 0: bad.model.layers = 0; break;
        case 1: bad.model.width = 33; break;
        case 2: bad.model.heads = 64; break;
        case 3: bad.model.vocabulary = 1u << 30; break;
        case 4: bad.length = LENGTH + 1; break;
        case 5: bad.batch = 0; break;
        case 6: bad.micro_batch = 3; break;
        case 7: bad.schedule.rate = -1; break;
        case 8: bad.adamw.beta1 = 1; break;
        case 9: bad.dropout = 1; break;
        case 10: bad.clip = NAN; break;
        case 11: bad.optimizer = (hd_optimizer)3; break;
        case 12: bad.optimizer = HD_OPTIMIZER_MUON, bad.muon_momentum = 1; break;
        case 13: bad.optimizer = HD_OPTIMIZER_MUON, bad.lora = (hd_lora_desc){ .rank = 4 }; break;
        default: bad.schedule.least = INFINITY;
        }
        assert_int_equal(hd_trainer_create(at.context, at.device, &bad, &trainer), HD_STATUS_INVALID_ARGUMENT);
        assert_true(hd_context_error(at.context)[0] && !trainer);
    }
    assert_int_equal(hd_trainer_create(at.context, at.device, NULL, &trainer), HD_STATUS_NULL_POINTER);
    trainer = make(&at, &good);
    int32_t tokens[BATCH * LENGTH] = { 0 };
    tokens[9] = VOCABULARY;
    bool told;
    hd_train_report report;
    assert_int_equal(hd_trainer_step(trainer, tokens, tokens, &report, &told), HD_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(hd_context_error(at.context), "token 64 at 9"));
    assert_int_equal(hd_trainer_steps(trainer), 0);
    const hd_token_data few = { text, 1, LENGTH }, odd = { text, 3, 100 };
    assert_false(hd_draw_batch(&few, 0, 0, 1, LENGTH, tokens, tokens) || hd_draw_batch(&odd, 0, 0, 1, LENGTH, tokens, tokens));
    hd_trainer_destroy(trainer);
    close_place(&at);
}

static void overwrite(const char *path, const char *text_now) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text_now, file);
    fclose(file);
}

static void broken_checkpoints(void **state) {
    (void)state;
    place at;
    char path[128], file[192];
    static char settings[4096], changed[4096];
    hd_trainer_desc desc = tiny(), read;
    uint64_t step;
    assert_true(open_place("cpu", 1, &at));
    hd_trainer *trainer = make(&at, &desc);
    snprintf(path, sizeof path, "%s/broken", folder);
    snprintf(file, sizeof file, "%s/trainer.json", path);
    check_on(&at, hd_trainer_save(trainer, path));
    FILE *from = fopen(file, "rb");
    const size_t bytes = fread(settings, 1, sizeof settings - 1, from);
    fclose(from);
    uint32_t chance = 1;
    for (int i = 0; i < 10000; i++) { /* refused, or a desc that can be trained */
        memcpy(changed, settings, bytes + 1);
        for (int k = 0; k < 1 + i % 3; k++) {
            chance = chance * 1664525u + 1013904223u;
            changed[(chance >> 8) % bytes] = "0123456789-.e\",:{}"[(chance >> 3) % 18];
        }
        overwrite(file, changed);
        if (hd_trainer_read(at.context, path, &read, &step) == HD_OK) assert_true(read.model.width % read.model.heads == 0 && read.batch % read.micro_batch == 0);
        else assert_true(hd_context_error(at.context)[0]);
    }
    overwrite(file, "{}");
    assert_int_equal(hd_trainer_read(at.context, path, &read, &step), HD_STATUS_PARSE);
    overwrite(file, settings);
    check_on(&at, hd_trainer_load(trainer, path));
    hd_trainer_destroy(trainer);
    desc.model.width = 64;
    trainer = make(&at, &desc);
    hd_context_error(at.context);
    assert_int_equal(hd_trainer_load(trainer, path), HD_STATUS_SHAPE);
    assert_non_null(strstr(hd_context_error(at.context), "another shape"));
    snprintf(file, sizeof file, "%s/weights.safetensors", path);
    overwrite(file, "no tensors");
    assert_true(hd_trainer_load(trainer, path) != HD_OK);
    unlink(file);
    assert_int_equal(hd_trainer_load(trainer, path), HD_STATUS_IO);
    assert_int_equal(hd_trainer_save(trainer, "/nowhere/at/all"), HD_STATUS_IO);
    hd_trainer_destroy(trainer);
    close_place(&at);
}

/* ---- held-out text ---- */

static float held_out(const place *at, hd_trainer *trainer) {
    int32_t tokens[BATCH * LENGTH], targets[BATCH * LENGTH];
    float loss = 0;
    assert_true(hd_cut_batch(&(hd_token_data){ text, 1, sizeof text }, 0, 2, LENGTH, tokens, targets));
    check_on(at, hd_trainer_loss(trainer, tokens, targets, &loss));
    return loss;
}

static void the_best(void **state) {
    (void)state;
    place at;
    char path[128];
    assert_true(open_place("cpu", 2, &at));
    for (int muon = 0; muon < 2; muon++) {
        hd_trainer_desc desc = tiny();
        hd_train_report last;
        desc.optimizer = muon ? HD_OPTIMIZER_MUON : HD_OPTIMIZER_ADAMW;
        hd_trainer *trainer = make(&at, &desc), *other = make(&at, &desc);
        snprintf(path, sizeof path, "%s/best-%d", folder, muon);
        assert_int_equal(hd_trainer_keep(trainer, 1), HD_STATUS_INVALID_ARGUMENT);
        assert_int_equal(hd_trainer_use_best(trainer), HD_STATUS_WRONG_STATE);
        hd_context_error(at.context);
        train(&at, trainer, 3, &last);
        const float loss = held_out(&at, trainer);
        check_on(&at, hd_trainer_keep(trainer, loss));
        assert_int_equal(hd_trainer_keep(trainer, NAN), HD_STATUS_INVALID_ARGUMENT);
        hd_context_error(at.context);
        train(&at, trainer, 6, &last);
        const uint64_t after = hash(&at, trainer);
        assert_true(held_out(&at, trainer) != loss);
        check_on(&at, hd_trainer_save(trainer, path));
        check_on(&at, hd_trainer_load(other, path));
        assert_true(hash(&at, other) == after);
        assert_int_equal(hd_trainer_best(other).steps, 3);
        assert_true(hd_trainer_best(other).loss == loss);
        check_on(&at, hd_trainer_use_best(other));
        assert_true(held_out(&at, other) == loss);
        hd_trainer_destroy(other);
        hd_trainer_destroy(trainer);
    }
    close_place(&at);
}

static void all_of_a_text(void **state) {
    (void)state;
    enum { COUNT = 2 * 3 * 4 + 6 };
    uint8_t numbers[COUNT];
    int32_t tokens[12], targets[12];
    for (int i = 0; i < COUNT; i++) numbers[i] = (uint8_t)(i + 1);
    hd_token_data data = { numbers, 1, COUNT };
    for (int batch = 0, seen = 0; batch < 3; batch++) {
        assert_true(hd_cut_batch(&data, (uint64_t)batch, 3, 4, tokens, targets));
        for (int i = 0; i < 12; i++, seen++) {
            assert_int_equal(tokens[i], seen < COUNT ? seen + 1 : 0);
            assert_int_equal(targets[i], seen + 1 < COUNT ? seen + 2 : -1);
        }
    }
    assert_false(hd_cut_batch(&data, 3, 3, 4, tokens, targets));
    assert_false(hd_cut_batch(&data, UINT64_MAX, 3, 4, tokens, targets));
    data.count = 25; /* whose last target ends a batch */
    assert_true(hd_cut_batch(&data, 1, 3, 4, tokens, targets));
    assert_int_equal(targets[11], 25);
    assert_false(hd_cut_batch(&data, 2, 3, 4, tokens, targets));
    data.count = 1;
    assert_false(hd_cut_batch(&data, 0, 3, 4, tokens, targets));
}

/* Targets that are none change nothing but the number that the mean is over. */
static void some_targets(void **state) {
    (void)state;
    place at;
    hd_trainer_desc desc = tiny();
    int32_t tokens[2 * LENGTH], targets[2 * LENGTH], some[2 * LENGTH];
    float loss = 0, of_all = 0, sum = 0;
    assert_true(open_place("cpu", 2, &at));
    hd_trainer *trainer = make(&at, &desc);
    assert_true(hd_cut_batch(&(hd_token_data){ text, 1, sizeof text }, 0, 2, LENGTH, tokens, targets));
    check_on(&at, hd_trainer_loss(trainer, tokens, targets, &of_all));
    for (int part = 0; part < 2; part++) {
        for (int i = 0; i < 2 * LENGTH; i++) some[i] = i / LENGTH == part ? targets[i] : -1;
        check_on(&at, hd_trainer_loss(trainer, tokens, some, &loss));
        sum += loss / 2;
    }
    assert_true(fabsf(sum - of_all) < 1e-5f);
    for (int i = 0; i < 2 * LENGTH; i++) some[i] = -1;
    check_on(&at, hd_trainer_loss(trainer, tokens, some, &loss));
    assert_true(loss == 0);
    hd_trainer_destroy(trainer);
    close_place(&at);
}

/* ---- without memory ---- */

static uint64_t calls, fails_at; /* 0: none fails */
static void *resize(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    (void)user, (void)old_bytes;
    if (new_bytes > 0) return fails_at && ++calls == fails_at ? NULL : realloc(old, new_bytes);
    free(old);
    return NULL;
}

/* Whichever allocation fails, a trainer is made or it is not, and of one that is not nothing is left. */
static void without_memory_of(hd_family family) {
    hd_context *context;
    hd_device *device;
    hd_trainer *trainer;
    hd_trainer_desc desc = tiny();
    desc.model.layers = 1;
    desc.dropout = 0;
    desc.model.family = family;
    desc.model.feed_forward = family == HD_FAMILY_GPT2 ? 0 : 48;
    assert_int_equal(hd_context_create(&(hd_context_desc){ .backend = "cpu", .cpu_threads = 1, .allocator = { resize, NULL } }, &context), HD_OK);
    assert_int_equal(hd_device_open(context, NULL, &device), HD_OK);
    const uint64_t alive = hd_context_live_objects(context);
    bool reached = true;
    int failed = 0;
    for (uint64_t n = 1; reached; n += 1 + n / 100) {
        calls = 0;
        fails_at = n;
        const hd_status status = hd_trainer_create(context, device, &desc, &trainer);
        reached = calls >= n;
        fails_at = 0;
        if (status && (status != HD_STATUS_OUT_OF_HOST_MEMORY || trainer)) fail_msg("allocation %u: %s: %s", (unsigned)n, hd_status_name(status), hd_context_error(context));
        failed += status != HD_OK;
        hd_context_error(context);
        hd_trainer_destroy(trainer);
        assert_int_equal(hd_context_live_objects(context), alive);
    }
    print_message("%d of the failures were seen\n", failed);
    assert_true(failed > 50);
    hd_device_close(device);
    hd_context_destroy(context);
}
static void without_memory(void **state) {
    (void)state;
    without_memory_of(HD_FAMILY_GPT2);
    without_memory_of(HD_FAMILY_QWEN3);
}

static int begin(void **state) {
    (void)state;
    make_text();
    return mkdtemp(folder) == NULL;
}
static int end(void **state) {
    (void)state;
    return remove_folder(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(as_transformers), cmocka_unit_test(by_heart), cmocka_unit_test(golden_bits), cmocka_unit_test(golden_bits_of_muon), cmocka_unit_test(one_is_many), cmocka_unit_test(goes_on),
                                        cmocka_unit_test(replayed), cmocka_unit_test(fits), cmocka_unit_test(refused), cmocka_unit_test(broken_checkpoints), cmocka_unit_test(the_best), cmocka_unit_test(all_of_a_text),
                                        cmocka_unit_test(some_targets), cmocka_unit_test(without_memory) };
    return cmocka_run_group_tests(tests, begin, end);
}
