/* test_packed.c: samples packed into one sequence do not see each other: losses, norms and weights are those of the samples in sequences
 * of their own, of models with rotary positions, windows, caps and sinks; what stands in one sample moves no bit of another one's loss;
 * in exact mode all of it has the golden bits on every device, in micro-batches, and going on from a checkpoint; what cannot be is
 * refused; and where samples begin is read from their file. */
#define _XOPEN_SOURCE 700
#include "lora.h"

enum { LENGTH = 24, SAMPLES = 3, VOCABULARY = 48, ROWS = 2 };
static const int counts[ROWS][SAMPLES] = { { 9, 5, 8 }, { 4, 12, 8 } }; /* the first leaves two places unused */

static int32_t token_of(int row, int sample, int t) { return (row * 17 + sample * 31 + t * t * 3 + t) % VOCABULARY; }

/* A sample's tokens from place `at` of a sequence on, with all but its first as targets. */
static void put(int row, int sample, int at, int32_t *tokens, int32_t *targets, int32_t *starts) {
    const int count = counts[row][sample];
    for (int t = 0; t < count; t++) {
        tokens[at + t] = token_of(row, sample, t);
        targets[at + t] = t + 1 < count ? token_of(row, sample, t + 1) : -1;
        starts[at + t] = at;
    }
}

typedef struct filled { int32_t tokens[ROWS * SAMPLES * LENGTH], targets[ROWS * SAMPLES * LENGTH], starts[ROWS * SAMPLES * LENGTH]; } filled;
/* All samples: in ROWS sequences, or in one each. */
static filled fill(bool packed) {
    filled f;
    for (int i = 0; i < ROWS * SAMPLES * LENGTH; i++) f.tokens[i] = 0, f.targets[i] = -1, f.starts[i] = i % LENGTH;
    for (int row = 0; row < ROWS; row++)
        for (int sample = 0, at = 0; sample < SAMPLES; at += counts[row][sample++]) {
            int32_t *starts = f.starts + (packed ? row * LENGTH : (row * SAMPLES + sample) * LENGTH);
            const int first = packed ? row * LENGTH : (row * SAMPLES + sample) * LENGTH;
            put(row, sample, packed ? at : 0, f.tokens + first, f.targets + first, starts);
        }
    return f;
}

static hd_trainer_desc packed_recipe(hd_model *base, bool packed, hd_math math) {
    hd_trainer_desc desc = recipe(base);
    desc.batch = packed ? ROWS : ROWS * SAMPLES;
    desc.length = LENGTH;
    desc.packed = packed;
    desc.math = math;
    return desc;
}

/* The losses and norms of three steps, and the loss behind them. */
static void run_steps(const place *at, hd_model *base, bool packed, hd_math math, float out[7]) {
    const hd_trainer_desc desc = packed_recipe(base, packed, math);
    const filled f = fill(packed);
    hd_trainer *trainer = make(at, &desc);
    hd_train_report report;
    if (packed) check_on(at, hd_trainer_starts(trainer, f.starts));
    for (int i = 0; i < 3; i++) {
        step(at, trainer, f.tokens, f.targets, &report);
        out[2 * i] = report.loss;
        out[2 * i + 1] = report.norm;
    }
    check_on(at, hd_trainer_loss(trainer, f.tokens, f.targets, &out[6]));
    hd_trainer_destroy(trainer);
}

static void as_alone(void **state) {
    (void)state;
    static const char *const models[] = { "llama_f32", "qwen3_f32", "qwen3_q4_0" };
    place at;
    assert_true(open_place("cpu", 2, &at));
    for (size_t m = 0; m < sizeof models / sizeof *models; m++)
        for (int math = HD_MATH_FAST; math <= HD_MATH_EXACT; math++) {
            float alone[7], packed[7];
            hd_model *base = open_model(&at, models[m]);
            run_steps(&at, base, false, (hd_math)math, alone);
            run_steps(&at, base, true, (hd_math)math, packed);
            /* products with q4_0 round what they read to 8 bits, which makes much of little: their first step alone is compared */
            const bool rounds = strstr(models[m], "q4");
            for (int i = 0; i < (rounds ? 2 : 7); i++) {
                const float bound = rounds ? 1e-4f : 2e-6f;
                if (!(fabsf(packed[i] - alone[i]) <= bound * fabsf(alone[i]))) fail_msg("%s, number %d: %.8g packed, %.8g alone", models[m], i, (double)packed[i], (double)alone[i]);
            }
            hd_model_close(base);
        }
    close_place(&at);
}

/* The loss of the middle samples, whatever the others hold. */
static void apart(void **state) {
    (void)state;
    place at;
    assert_true(open_place("cpu", 2, &at));
    hd_model *base = open_model(&at, "qwen3_f32");
    const hd_trainer_desc desc = packed_recipe(base, true, HD_MATH_EXACT);
    hd_trainer *trainer = make(&at, &desc);
    filled f = fill(true);
    float first = 0, loss;
    for (int row = 0; row < ROWS; row++)
        for (int t = 0; t < LENGTH; t++)
            if (t < counts[row][0] || t >= counts[row][0] + counts[row][1]) f.targets[row * LENGTH + t] = -1;
    for (int other = 0; other < 4; other++) {
        for (int i = 0; i < ROWS * LENGTH; i++)
            if (f.targets[i] < 0 && i % LENGTH < counts[i / LENGTH][0]) f.tokens[i] = (i * 7 + other * 5) % VOCABULARY;
        check_on(&at, hd_trainer_starts(trainer, f.starts));
        check_on(&at, hd_trainer_loss(trainer, f.tokens, f.targets, &loss));
        if (other == 0) first = loss;
        assert_true(loss == first);
    }
    for (int i = 0; i < ROWS * LENGTH; i++) f.starts[i] = 0; /* and it is no other thing that keeps them apart */
    check_on(&at, hd_trainer_starts(trainer, f.starts));
    check_on(&at, hd_trainer_loss(trainer, f.tokens, f.targets, &loss));
    assert_true(loss != first);
    hd_trainer_destroy(trainer);
    hd_model_close(base);
    close_place(&at);
}

static const uint64_t golden = UINT64_C(0x77123d25d1df0b62);

static void golden_bits(void **state) {
    (void)state;
    place places[MOST_DEVICES];
    const int count = open_places(places);
    const filled f = fill(true);
    for (int i = 0; i < count; i++) {
        hd_model *base = open_model(&places[i], "qwen3_q4_0");
        hd_trainer_desc desc = packed_recipe(base, true, HD_MATH_EXACT);
        hd_train_report report;
        char path[128];
        uint64_t number, got;
        desc.dropout = 0.1f;
        desc.micro_batch = i == 1 ? 1 : 0;
        desc.recompute = i == 1;
        hd_trainer *trainer = make(&places[i], &desc);
        check_on(&places[i], hd_trainer_starts(trainer, f.starts));
        for (int s = 0; s < 2; s++) step(&places[i], trainer, f.tokens, f.targets, &report);
        snprintf(path, sizeof path, "%s/packed-%d", folder, i);
        save_and_read(&places[i], trainer, path, &desc, &number);
        assert_true(number == 2 && desc.packed == 1);
        desc.base = base;
        trainer = make(&places[i], &desc);
        check_on(&places[i], hd_trainer_load(trainer, path));
        check_on(&places[i], hd_trainer_starts(trainer, f.starts));
        for (int s = 0; s < 2; s++) step(&places[i], trainer, f.tokens, f.targets, &report);
        check_on(&places[i], hd_trainer_hash(trainer, &got));
        if (got != golden) fail_msg("%s: %016llx", places[i].name, (unsigned long long)got);
        hd_trainer_destroy(trainer);
        hd_model_close(base);
    }
    close_places(places, count);
}

static void refused(void **state) {
    (void)state;
    place at;
    assert_true(open_place("cpu", 1, &at));
    hd_model *base = open_model(&at, "qwen3_f32");
    hd_trainer_desc desc = packed_recipe(base, false, HD_MATH_EXACT);
    hd_trainer *trainer = make(&at, &desc);
    filled f = fill(true);
    assert_int_equal(hd_trainer_starts(trainer, f.starts), HD_STATUS_WRONG_STATE);
    assert_int_equal(hd_trainer_starts(trainer, NULL), HD_STATUS_NULL_POINTER);
    assert_non_null(strstr(hd_context_error(at.context), "hd_trainer_desc.packed"));
    hd_trainer_destroy(trainer);
    desc = packed_recipe(base, true, HD_MATH_EXACT);
    trainer = make(&at, &desc);
    for (int k = 0; k < 2; k++) {
        f.starts[5] = k ? 6 : -1;
        assert_int_equal(hd_trainer_starts(trainer, f.starts), HD_STATUS_INVALID_ARGUMENT);
        assert_non_null(strstr(hd_context_error(at.context), "the token at 5 begins at"));
    }
    hd_trainer_destroy(trainer);
    desc = (hd_trainer_desc){ .model = { .layers = 1, .width = 16, .heads = 2, .context = 16, .vocabulary = 64 }, .batch = 1, .packed = 1 };
    assert_int_equal(hd_trainer_create(at.context, at.device, &desc, &trainer), HD_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(hd_context_error(at.context), "packed samples are for adapters"));
    hd_model_close(base);
    close_place(&at);
}

/* Each sample begins where its text does: a letter of its own, here, behind what a template puts first or nothing. */
static void read_from_a_file(void **state) {
    (void)state;
    enum { COUNT = 7, ROOM = 12 };
    place at;
    char path[128];
    int32_t tokens[COUNT * ROOM], targets[COUNT * ROOM], starts[COUNT * ROOM];
    hd_samples *read;
    assert_true(open_place("cpu", 1, &at));
    hd_model *model = open_model(&at, "qwen3_f32");
    snprintf(path, sizeof path, "%s/letters.jsonl", folder);
    FILE *file = fopen(path, "wb");
    for (int i = 0; i < COUNT; i++) {
        char text[8] = "";
        memset(text, 'a' + i, (size_t)(2 + i % 4));
        fprintf(file, "{\"text\": \"%s\"}\n", text);
    }
    fclose(file);
    for (int packed = 0; packed < 2; packed++) {
        check_on(&at, hd_samples_read(at.context, model, path, &(hd_samples_desc){ .length = ROOM, .packed = packed }, &read));
        const uint32_t rows = (uint32_t)hd_samples_get_info(read).rows;
        assert_true(packed ? rows < COUNT : rows == COUNT);
        hd_samples_draw(read, 3, 0, rows, tokens, targets);
        hd_samples_starts(read, 3, 0, rows, starts);
        int begun = 0;
        for (uint32_t i = 0; i < rows * ROOM; i++) {
            const uint32_t first = i - i % ROOM;
            assert_true(starts[i] >= 0 && starts[i] <= (int32_t)(i % ROOM) && (packed || starts[i] == 0 || tokens[i] == 0));
            if (targets[i] < 0) continue;
            size_t bytes;
            const char letter = *hd_model_token_text(model, targets[i], &bytes);
            assert_true(*hd_model_token_text(model, tokens[first + (uint32_t)starts[i]], &bytes) == letter);
            assert_true(starts[i] == 0 || *hd_model_token_text(model, tokens[first + (uint32_t)starts[i] - 1], &bytes) != letter);
            begun += starts[i] == (int32_t)(i % ROOM);
        }
        assert_int_equal(begun, COUNT);
        hd_samples_destroy(read);
    }
    hd_samples_starts(NULL, 0, 0, 1, starts);
    hd_model_close(model);
    close_place(&at);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(as_alone), cmocka_unit_test(apart), cmocka_unit_test(golden_bits), cmocka_unit_test(refused),
                                        cmocka_unit_test(read_from_a_file) };
    if (!mkdtemp(folder)) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return remove_folder(folder) || failed;
}
