/* test_precision.c: training in mixed precision. Twenty steps of a GPT-2 and of a qwen3 are those of PyTorch with products of operands
 * rounded to bf16 and sums in f32, near those of PyTorch's own autocast, and near those in f32, which are others; in exact mode all weights
 * and moments have the golden bits on every device, whole batches those of micro-batches, and a run that goes on from a checkpoint those of
 * one that never stopped; a weight is cast once a step and an activation once; the memory of a step is told; what cannot be is refused. */
#define _XOPEN_SOURCE 700
#include "devices.h"
#include "precision_fixture.h"
#include "train/trainer.h"
#include <math.h>
#include <unistd.h>

enum { RUNS = sizeof precision_runs / sizeof *precision_runs, MOST = 64, TOKENS = PRECISION_BATCH * PRECISION_CONTEXT };
static char folder[] = "/tmp/heddle-precision-XXXXXX";

static hd_trainer *make(const place *at, const hd_trainer_desc *desc) {
    hd_trainer *trainer = NULL;
    check_on(at, hd_trainer_create(at->context, at->device, desc, &trainer));
    return trainer;
}

static hd_train_report run_to(const place *at, hd_trainer *trainer, uint64_t until) {
    int32_t tokens[TOKENS], targets[TOKENS];
    hd_train_report report = { 0 };
    bool told;
    while (hd_trainer_steps(trainer) < until) {
        const int step = (int)hd_trainer_steps(trainer);
        for (int i = 0; i < TOKENS; i++) {
            const int b = i / PRECISION_CONTEXT, t = i % PRECISION_CONTEXT;
            tokens[i] = (b * 31 + t * t + step * 7) % PRECISION_VOCABULARY;
            targets[i] = (b * 31 + (t + 1) * (t + 1) + step * 7) % PRECISION_VOCABULARY;
        }
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

static hd_trainer_desc recipe(const precision_run *run, hd_math math) {
    return (hd_trainer_desc){ .model = run->model, .batch = PRECISION_BATCH, .schedule = { .rate = 1e-3 }, .adamw = { .beta2 = 0.99 },
                              .weight_decay = 0.1, .clip = 1, .math = math, .precision = HD_PRECISION_BF16 };
}

/* ---- what others compute ---- */

static int by_name(const void *a, const void *b) { return strcmp(((const hd_safetensor *)a)->name, ((const hd_safetensor *)b)->name); }

/* A trainer with the fixture's weights, which its script makes in the order of their names. */
static hd_trainer *as_fixture(const place *at, const precision_run *run, const hd_trainer_desc *desc) {
    static char names[MOST][96];
    static int number;
    char path[128], weights[160];
    hd_safetensors *file;
    hd_safetensor tensors[MOST];
    hd_trainer *trainer = make(at, desc);
    snprintf(path, sizeof path, "%s/%s-%d", folder, run->name, number++);
    snprintf(weights, sizeof weights, "%s/weights.safetensors", path);
    check_on(at, hd_trainer_save(trainer, path));
    check_on(at, hd_safetensors_open(at->context, weights, &file));
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
            values[k] = (float)(bits / 16777216.0 - 0.5) * 0.5f + (tensors[i].shape.rank == 1 ? 1.0f : 0.0f);
        }
        tensors[i].data = values;
    }
    check_on(at, hd_safetensors_write(at->context, weights, tensors, count, NULL));
    for (size_t i = 0; i < count; i++) free((void *)(uintptr_t)tensors[i].data);
    check_on(at, hd_trainer_load(trainer, path));
    return trainer;
}

static float off(float got, float wanted) { return fabsf(got / wanted - 1); }

/* The first step is the one of rounded operands, and none of the two others, which are not rounded, or more often. Sums in another order
 * may be rounded to the neighbour, and AdamW's first steps are as long for the smallest gradients, so that later losses agree to two digits. */
static void check(const precision_run *run, int step, const hd_train_report *report) {
    float loss[PRECISIONS], norm[PRECISIONS];
    for (int how = 0; how < PRECISIONS; how++) {
        loss[how] = off(report->loss, run->losses[how][step]);
        norm[how] = off(report->norm, run->norms[how][step]);
    }
    bool good = loss[AS_MIXED] < 1e-3f && loss[AS_AUTOCAST] < 2e-3f && loss[AS_F32] < 2e-3f && norm[AS_MIXED] < 3e-2f;
    if (step == 0) good = good && loss[AS_MIXED] < 2e-5f && norm[AS_MIXED] < 1e-4f && loss[AS_F32] > 1e-4f;
    if (!good)
        fail_msg("%s, step %d: loss %.7f and norm %.6f, which are %.7f and %.6f with rounded operands", run->name, step, (double)report->loss,
                 (double)report->norm, (double)run->losses[AS_MIXED][step], (double)run->norms[AS_MIXED][step]);
}

static void as_pytorch(void **state) {
    (void)state;
    place at;
    assert_true(open_place("cpu", 2, &at));
    for (const precision_run *run = precision_runs; run < precision_runs + RUNS; run++)
        for (int math = HD_MATH_FAST; math <= HD_MATH_EXACT; math++) {
            const hd_trainer_desc desc = recipe(run, (hd_math)math);
            hd_trainer *trainer = as_fixture(&at, run, &desc);
            for (int s = 0; s < PRECISION_STEPS; s++) {
                const hd_train_report report = run_to(&at, trainer, (uint64_t)s + 1);
                check(run, s, &report);
            }
            hd_trainer_destroy(trainer);
        }
    close_place(&at);
}

/* ---- the same bits ---- */

static const uint64_t golden[RUNS][2] = { { UINT64_C(0x2f02f85271ff32ed), UINT64_C(0x2fb6df9dc69bb8c1) },
                                          { UINT64_C(0x3ab36c3939bdd6d3), UINT64_C(0x7126afabf7fda9ae) } }; /* after 1 step and after 3 */

/* With dropout; in one piece, or in two or four; and of those with two threads, stopped in the middle. */
static void golden_bits(void **state) {
    (void)state;
    place places[MOST_DEVICES];
    const int count = open_places(places);
    int wrong = 0;
    for (int run = 0; run < RUNS; run++)
        for (int i = 0; i < count; i++) {
            char path[128];
            uint64_t step;
            hd_trainer_desc desc = recipe(&precision_runs[run], HD_MATH_EXACT), read;
            desc.dropout = 0.1f;
            desc.micro_batch = i == 0 ? 4 : i == 1 ? 1 : 2;
            hd_trainer *trainer = make(&places[i], &desc);
            for (int g = 0; g < 2; g++) {
                run_to(&places[i], trainer, g ? 3 : 1);
                const uint64_t got = hash(&places[i], trainer);
                wrong += got != golden[run][g];
                if (got != golden[run][g]) print_message("%s, %s, %d: %016llx\n", places[i].name, precision_runs[run].name, g, (unsigned long long)got);
                if (g != 0 || i != 1) continue;
                snprintf(path, sizeof path, "%s/stopped-%d", folder, run);
                check_on(&places[i], hd_trainer_save(trainer, path));
                hd_trainer_destroy(trainer);
                check_on(&places[i], hd_trainer_read(places[i].context, path, &read, &step));
                assert_true(step == 1 && read.precision == HD_PRECISION_BF16);
                trainer = make(&places[i], &read);
                check_on(&places[i], hd_trainer_load(trainer, path));
            }
            hd_trainer_destroy(trainer);
        }
    close_places(places, count);
    assert_int_equal(wrong, 0);
}

/* ---- what a step does ---- */

static char *explain(const place *at, const hd_trainer *trainer) {
    size_t bytes = 0;
    check_on(at, hd_plan_explain(trainer->step, NULL, 0, &bytes));
    char *text = malloc(bytes + 1);
    check_on(at, hd_plan_explain(trainer->step, text, bytes + 1, &bytes));
    return text;
}

/* Lines of what a trainer's step is that hold both texts. */
static int lines_with(const place *at, const hd_trainer *trainer, const char *first, const char *second) {
    int count = 0;
    char *const text = explain(at, trainer);
    for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        const char *a = strstr(line, first), *b = strstr(line, second);
        count += a && b && a < end && b < end;
    }
    free(text);
    return count;
}

/* Of a GPT-2 with 2 layers of 4 matrices and a head, in micro-batches: all that is cast, and where. */
static void casts(void **state) {
    (void)state;
    enum { MATRICES = 4, LAYERS = 2 };
    place at;
    assert_true(open_place("cpu", 2, &at));
    for (uint32_t parts = 1; parts <= 4; parts *= 2) {
        hd_trainer_desc desc = recipe(&precision_runs[0], HD_MATH_FAST);
        desc.micro_batch = PRECISION_BATCH / parts;
        hd_trainer *trainer = make(&at, &desc);
        desc.precision = HD_PRECISION_F32; /* whose gradients cast constants, too */
        hd_trainer *plain = make(&at, &desc);
        const int matrices = MATRICES * LAYERS + 1, norms = 2 * LAYERS + 1, inner = 2 * LAYERS; /* linear layers between two products, whose biases are cast */
        const int each = norms + 2 * LAYERS + 1 + inner; /* gradients of what layers hand on and of scores; sums that are the gradients of these biases */
        assert_int_equal(lines_with(&at, trainer, " cast", "\"weights.0\""), matrices);
        assert_int_equal(lines_with(&at, trainer, " cast", "level") - lines_with(&at, plain, " cast", "level"), matrices + inner + (int)parts * each);
        assert_int_equal(lines_with(&at, trainer, " cast: norm", "layer_norm"), (int)parts * norms); /* which rounds what it stores */
        hd_trainer_destroy(plain);
        hd_trainer_destroy(trainer);
    }
    close_place(&at);
}

/* A vocabulary that is no multiple of 8 gets more scores than it has tokens in fast mode, and nothing comes of it. */
static void odd_vocabulary(void **state) {
    (void)state;
    place at;
    hd_train_report reports[2];
    int32_t tokens[1] = { 1 }, next[2];
    float loss[2];
    int pads[2];
    assert_true(open_place("cpu", 2, &at));
    for (int run = 0; run < RUNS; run++) {
        for (int math = HD_MATH_FAST; math <= HD_MATH_EXACT; math++) {
            const int at_math = math - HD_MATH_FAST;
            int32_t batch[TOKENS];
            hd_trainer_desc desc = recipe(&precision_runs[run], (hd_math)math);
            desc.model.vocabulary = 67;
            desc.model.tied = 0;
            desc.seed = 5;
            hd_trainer *trainer = make(&at, &desc);
            reports[at_math] = run_to(&at, trainer, 10);
            for (int i = 0; i < TOKENS; i++) batch[i] = i % 67;
            check_on(&at, hd_trainer_loss(trainer, batch, batch, &loss[at_math]));
            check_on(&at, hd_trainer_next(trainer, tokens, 1, 0, 0, &next[at_math]));
            pads[at_math] = lines_with(&at, trainer, " pad", "level");
            hd_trainer_destroy(trainer);
            desc.model.vocabulary = 72;
            trainer = make(&at, &desc);
            pads[at_math] -= lines_with(&at, trainer, " pad", "level");
            hd_trainer_destroy(trainer);
        }
        assert_true(fabsf(reports[0].loss - reports[1].loss) < 1e-3f && fabsf(reports[0].norm / reports[1].norm - 1) < 1e-2f);
        assert_true(pads[0] > pads[1]); /* one for each odd weight, and those of the scores */
        assert_true(fabsf(loss[0] - loss[1]) < 1e-3f && next[0] == next[1]);
    }
    close_place(&at);
}

static void fits(void **state) {
    (void)state;
    place at;
    assert_true(open_place("cpu", 1, &at));
    hd_trainer_desc desc = recipe(&precision_runs[0], HD_MATH_EXACT);
    desc.model = (hd_gpt){ .layers = 2, .width = 64, .heads = 2, .context = 128, .vocabulary = 256 };
    hd_plan_memory takes;
    hd_train_report report;
    hd_device_stats before, after;
    bool told;
    static int32_t tokens[PRECISION_BATCH * 128];
    check_on(&at, hd_device_get_stats(at.device, &before));
    check_on(&at, hd_trainer_fit(at.context, at.device, &desc, &takes));
    hd_trainer *trainer = make(&at, &desc);
    for (int i = 0; i < 3; i++) check_on(&at, hd_trainer_step(trainer, tokens, tokens, &report, &told));
    check_on(&at, hd_trainer_finish(trainer, &report, &told));
    check_on(&at, hd_device_get_stats(at.device, &after));
    const double took = (double)(after.device_bytes_peak - before.device_bytes), said = (double)takes.total_bytes;
    if (fabs(took - said) > 0.05 * said) fail_msg("%.0f bytes were said, and %.0f taken", said, took);
    hd_trainer_destroy(trainer);
    close_place(&at);
}

static void refused(void **state) {
    (void)state;
    place at;
    assert_true(open_place("cpu", 1, &at));
    hd_trainer *trainer = NULL;
    hd_trainer_desc bad = recipe(&precision_runs[0], HD_MATH_FAST);
    bad.precision = (hd_precision)2;
    assert_int_equal(hd_trainer_create(at.context, at.device, &bad, &trainer), HD_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(hd_context_error(at.context), "precision 2 does not exist"));
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
    const struct CMUnitTest tests[] = { cmocka_unit_test(as_pytorch), cmocka_unit_test(golden_bits), cmocka_unit_test(casts), cmocka_unit_test(odd_vocabulary),
                                        cmocka_unit_test(fits), cmocka_unit_test(refused) };
    return cmocka_run_group_tests(tests, begin, end);
}
