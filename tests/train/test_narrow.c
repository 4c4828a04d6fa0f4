/* test_narrow.c: weights of 16 bits. Rounding at random has the number itself as its mean, and the golden bits on every device; where steps
 * are less than half a unit of bf16, weights that are rounded so learn as those of f32 do, and weights that are rounded to the nearest do
 * not; a model with such weights learns nearly as one with weights of f32, in less memory, which is told; in exact mode it has the golden
 * bits on every device, in micro-batches, and going on from a checkpoint on another device. The same of gradient descent with momentum. */
#define _XOPEN_SOURCE 700
#include "devices.h"
#include <math.h>
#include <unistd.h>

static char folder[] = "/tmp/heddle-narrow-XXXXXX";

/* ---- the operation ---- */

enum { NUMBERS = 64, DRAWS = 4096 };

/* Each number as often as there are draws, rounded. */
static void round_all(const place *at, hd_math math, const float *numbers, float *out) {
    hd_program *p = hd_program_create(at->context);
    const hd_value key = hd_input(p, "key", HD_I32, HD_SHAPE(4)), x = hd_input(p, "x", HD_F32, HD_SHAPE(NUMBERS));
    const uint32_t words[4] = { 11, 22, 33, 44 };
    hd_plan *plan = NULL;
    hd_output(p, "y", hd_cast(p, hd_round_random(p, x, hd_random(p, key, 5, HD_SHAPE(DRAWS, NUMBERS))), HD_F32));
    check_on(at, hd_plan_create(at->device, p, &(hd_plan_desc){ .math = math }, &plan));
    hd_program_destroy(p);
    check_on(at, hd_plan_write(plan, "key", words, sizeof words));
    check_on(at, hd_plan_write(plan, "x", numbers, NUMBERS * sizeof *numbers));
    check_on(at, hd_plan_run(plan, NULL));
    check_on(at, hd_plan_read(plan, "y", out, (uint64_t)DRAWS * NUMBERS * sizeof *out));
    hd_plan_destroy(plan);
}

static void mean_and_bits(void **state) {
    (void)state;
    static float drawn[DRAWS * NUMBERS];
    float numbers[NUMBERS];
    place places[MOST_DEVICES];
    const int count = open_places(places);
    for (int i = 0; i < NUMBERS; i++) numbers[i] = (i % 2 ? -1.0f : 1.0f) * ldexpf(1 + (float)i * 0.015f, i % 40 - 20);
    numbers[0] = 1.5f; /* a bf16, as which it stays */
    for (int i = 0; i < count; i++)
        for (int math = HD_MATH_FAST; math <= HD_MATH_EXACT; math++) {
            round_all(&places[i], (hd_math)math, numbers, drawn);
            const uint64_t got = hash_of(drawn, sizeof drawn, HASH_BEGIN);
            if (got != UINT64_C(0x67285b8f702f1cef)) fail_msg("%s: other bits: %016llx", places[i].name, (unsigned long long)got);
        }
    for (int i = 0; i < NUMBERS; i++) {
        const double unit = ldexp(1, ilogb((double)numbers[i]) - 7);
        double sum = 0;
        for (int d = 0; d < DRAWS; d++) {
            const double one = (double)drawn[d * NUMBERS + i];
            assert_true(fabs(one - (double)numbers[i]) < unit && (i || one == 1.5));
            sum += one;
        }
        /* a deviation is half a unit at most, and five of the mean's are exceeded by one number in two millions */
        const double off = sum / DRAWS - (double)numbers[i];
        if (!(fabs(off) <= 5 * 0.5 * unit / sqrt(DRAWS))) fail_msg("the mean of %g is off by %g of a unit", (double)numbers[i], off / unit);
    }
    close_places(places, count);
}

/* ---- the optimizers ---- */

enum { N = 2048, STEPS = 400 };

/* Weights that go from 1 to 2 by steps of 2^-10, an eighth of a bf16's unit there: the mean behind all of them. */
static double walk(const place *at, hd_dtype dtype, bool at_random, bool adamw) {
    hd_program *p = hd_program_create(at->context);
    hd_value states[3] = { hd_state(p, "weights", dtype, HD_SHAPE(N)), hd_state(p, "m", HD_F32, HD_SHAPE(N)), 0 };
    if (adamw) states[2] = hd_state(p, "v", HD_F32, HD_SHAPE(N));
    const hd_value gradient = hd_input(p, "gradient", HD_F32, HD_SHAPE(N)), rates = hd_input(p, "rates", HD_F32, HD_SHAPE(HD_RATES));
    const hd_value words = at_random ? hd_random(p, hd_input(p, "key", HD_I32, HD_SHAPE(4)), 0, HD_SHAPE(N)) : 0;
    const hd_clipping clip = hd_clip_norm(p, &gradient, 1, 0);
    static float wide[N];
    uint16_t narrow[N];
    hd_plan *plan = NULL;
    hd_output(p, "new", adamw ? hd_adamw(p, states, gradient, &clip, rates, NULL, words) : hd_sgd(p, states, gradient, &clip, rates, 0, words));
    check_on(at, hd_plan_create(at->device, p, &(hd_plan_desc){ .math = HD_MATH_EXACT }, &plan));
    hd_program_destroy(p);
    for (int i = 0; i < N; i++) wide[i] = 1;
    check_on(at, hd_quantize(HD_BF16, wide, N, narrow));
    check_on(at, hd_plan_write(plan, "weights", dtype == HD_F32 ? (void *)wide : narrow, dtype == HD_F32 ? sizeof wide : sizeof narrow));
    for (int i = 0; i < N; i++) wide[i] = -1;
    check_on(at, hd_plan_write(plan, "gradient", wide, sizeof wide));
    for (uint32_t step = 0; step < STEPS; step++) {
        float of_step[HD_RATES];
        const uint32_t key[4] = { 1, 2, step, 0 };
        if (adamw) hd_adamw_rates(NULL, 0x1p-10, 0, step, of_step);
        else hd_sgd_rates(0x1p-10, 0, of_step);
        check_on(at, hd_plan_write(plan, "rates", of_step, sizeof of_step));
        if (at_random) check_on(at, hd_plan_write(plan, "key", key, sizeof key));
        check_on(at, hd_plan_run(plan, NULL));
    }
    check_on(at, hd_plan_read(plan, "weights", dtype == HD_F32 ? (void *)wide : narrow, dtype == HD_F32 ? sizeof wide : sizeof narrow));
    if (dtype != HD_F32) check_on(at, hd_dequantize(dtype, narrow, N, wide));
    hd_plan_destroy(plan);
    double sum = 0;
    for (int i = 0; i < N; i++) sum += (double)wide[i];
    return sum / N;
}

static void small_steps(void **state) {
    (void)state;
    place at;
    assert_true(open_place("cpu", 2, &at));
    for (int adamw = 0; adamw < 2; adamw++) {
        const double wide = walk(&at, HD_F32, false, adamw), nearest = walk(&at, HD_BF16, false, adamw), drawn = walk(&at, HD_BF16, true, adamw);
        assert_true(fabs(wide - (1 + STEPS * 0x1p-10)) < 1e-3 && nearest == 1);
        /* 400 roundings of at most half a unit's deviation each, over 2,048 weights: 5 deviations */
        if (!(fabs(drawn - wide) < 5 * 0x1p-8 * sqrt((double)STEPS / N))) fail_msg("rounded at random they come to %g, and in f32 to %g", drawn, wide);
    }
    close_place(&at);
}

/* ---- models ---- */

enum { BATCH = 4, LENGTH = 16, VOCABULARY = 64 };
static uint8_t text[4096];
static void make_text(void) {
    text[0] = 1;
    text[1] = 5;
    for (size_t i = 2; i < sizeof text; i++) text[i] = (uint8_t)((text[i - 1] * 3 + text[i - 2] + (i % 97 == 0)) % VOCABULARY);
}

/* A GPT-2; a qwen3 by Muon, whose matrices of layers are a group of their own; and a llama by gradient descent, of f32. */
enum { GPT2, QWEN3, DESCENT, KINDS };
static hd_trainer_desc tiny(int kind) {
    hd_trainer_desc desc = { .model = { .layers = 2, .width = 32, .heads = 2, .context = LENGTH, .vocabulary = VOCABULARY },
                             .batch = BATCH, .micro_batch = 2, .seed = 7, .schedule = { 3e-3, 3e-4, 5, 100, HD_DECAY_COSINE },
                             .weight_decay = 0.1, .clip = 1, .dropout = 0.1f, .math = HD_MATH_EXACT };
    desc.narrow = kind != DESCENT;
    desc.precision = desc.narrow ? HD_PRECISION_BF16 : HD_PRECISION_F32;
    if (kind == GPT2) return desc;
    desc.model.family = kind == QWEN3 ? HD_FAMILY_QWEN3 : HD_FAMILY_LLAMA;
    desc.model.kv_heads = 1;
    desc.model.feed_forward = 48;
    desc.optimizer = kind == QWEN3 ? HD_OPTIMIZER_MUON : HD_OPTIMIZER_SGD;
    if (kind == DESCENT) desc.sgd_momentum = 0.9, desc.schedule.rate = 0.1;
    return desc;
}

static hd_trainer *make(const place *at, const hd_trainer_desc *desc) {
    hd_trainer *trainer = NULL;
    check_on(at, hd_trainer_create(at->context, at->device, desc, &trainer));
    return trainer;
}

/* The mean loss of the last ten steps. */
static double train(const place *at, hd_trainer *trainer, uint64_t until) {
    const hd_trainer_desc *desc = hd_trainer_get_desc(trainer);
    int32_t tokens[BATCH * LENGTH], targets[BATCH * LENGTH];
    hd_train_report report;
    double sum = 0;
    bool told;
    while (hd_trainer_steps(trainer) < until) {
        const uint64_t step = hd_trainer_steps(trainer);
        assert_true(hd_draw_batch(&(hd_token_data){ text, 1, sizeof text }, desc->seed, step, desc->batch, desc->length, tokens, targets));
        check_on(at, hd_trainer_step(trainer, tokens, targets, &report, &told));
        check_on(at, hd_trainer_finish(trainer, &report, &told));
        if (step + 10 >= until) sum += (double)report.loss;
    }
    return sum / 10;
}

static uint64_t hash(const place *at, hd_trainer *trainer) {
    uint64_t all = 0;
    check_on(at, hd_trainer_hash(trainer, &all));
    return all;
}

/* Nearly the loss of weights in f32. */
static void nearly_as_wide(void **state) {
    (void)state;
    place at;
    assert_true(open_place("cpu", 2, &at));
    for (int kind = 0; kind < DESCENT; kind++) {
        double losses[2];
        for (uint32_t narrow = 0; narrow < 2; narrow++) {
            hd_trainer_desc desc = tiny(kind);
            desc.narrow = narrow;
            desc.math = HD_MATH_FAST;
            desc.dropout = 0;
            hd_trainer *trainer = make(&at, &desc);
            losses[narrow] = train(&at, trainer, 150);
            hd_trainer_destroy(trainer);
        }
        if (!(losses[0] < 4 && fabs(losses[1] - losses[0]) < 0.02 * losses[0])) fail_msg("losses of %.4f in bf16 and %.4f in f32", losses[1], losses[0]);
    }
    close_place(&at);
}

static const uint64_t golden[KINDS] = { UINT64_C(0x1df7ea28c8b70de3), UINT64_C(0x6dd7c2894a936f50), UINT64_C(0x60d73eb5080eb36e) };

/* On each device; in whole batches; and from each device's checkpoint on the CPU. */
static void golden_bits(void **state) {
    (void)state;
    place places[MOST_DEVICES];
    const int count = open_places(places);
    for (int i = 0; i < count; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            if (kind == QWEN3 && strncmp(places[i].name, "opencl", 6) == 0) continue; /* PoCL takes its time for products of Muon */
            hd_trainer_desc desc = tiny(kind);
            char path[128];
            uint64_t step;
            if (i == 1) desc.micro_batch = 0;
            hd_trainer *trainer = make(&places[i], &desc);
            train(&places[i], trainer, 6);
            snprintf(path, sizeof path, "%s/%d-%d", folder, i, kind);
            save_and_read(&places[i], trainer, path, &desc, &step);
            assert_true(step == 6 && desc.narrow == (kind != DESCENT) && desc.sgd_momentum == (kind == DESCENT ? 0.9 : 0));
            trainer = make(&places[0], &desc);
            check_on(&places[0], hd_trainer_load(trainer, path));
            train(&places[0], trainer, 12);
            const uint64_t got = hash(&places[0], trainer);
            if (got != golden[kind]) fail_msg("%s, kind %d: %016llx", places[i].name, kind, (unsigned long long)got);
            hd_trainer_destroy(trainer);
        }
    close_places(places, count);
}

/* States of matrices are half as large, and what a step takes is told. */
static void memory(void **state) {
    (void)state;
    place at;
    assert_true(open_place("cpu", 1, &at));
    uint64_t states[2], total[2];
    for (uint32_t narrow = 0; narrow < 2; narrow++) {
        hd_trainer_desc desc = tiny(GPT2);
        desc.model = (hd_gpt){ .layers = 4, .width = 128, .heads = 4, .context = LENGTH, .vocabulary = 4096 };
        desc.narrow = narrow;
        desc.math = HD_MATH_FAST;
        static int32_t tokens[BATCH * LENGTH];
        hd_plan_memory takes;
        hd_train_report report;
        hd_device_stats before, after;
        bool told;
        place own;
        assert_true(open_place("cpu", 1, &own));
        check_on(&own, hd_device_get_stats(own.device, &before));
        check_on(&own, hd_trainer_fit(own.context, own.device, &desc, &takes));
        hd_trainer *trainer = make(&own, &desc);
        for (int i = 0; i < 3; i++) check_on(&own, hd_trainer_step(trainer, tokens, tokens, &report, &told));
        check_on(&own, hd_trainer_finish(trainer, &report, &told));
        check_on(&own, hd_device_get_stats(own.device, &after));
        const double took = (double)(after.device_bytes_peak - before.device_bytes), said = (double)takes.total_bytes;
        if (fabs(took - said) > 0.05 * said) fail_msg("%.0f bytes were said, and %.0f taken", said, took);
        states[narrow] = takes.state_bytes;
        total[narrow] = takes.total_bytes;
        hd_trainer_destroy(trainer);
        close_place(&own);
    }
    if (!(states[1] < 0.84 * (double)states[0] && total[1] < total[0]))
        fail_msg("states of %llu bytes in bf16 and %llu in f32, in all %llu and %llu", (unsigned long long)states[1], (unsigned long long)states[0],
                 (unsigned long long)total[1], (unsigned long long)total[0]);
    close_place(&at);
}

static void refused(void **state) {
    (void)state;
    place at;
    assert_true(open_place("cpu", 1, &at));
    for (int kind = 0; kind < 5; kind++) {
        static const char *const words[] = { "go with products of bf16", "not ternary", "momentum of 1", "momentum of -0.5", "optimizer 3 does not exist" };
        hd_trainer_desc desc = tiny(kind < 2 ? GPT2 : DESCENT);
        hd_trainer *trainer = NULL;
        if (kind == 0) desc.precision = HD_PRECISION_F32;
        if (kind == 1) desc.ternary = 1, desc.model.width = 256;
        if (kind == 2) desc.sgd_momentum = 1;
        if (kind == 3) desc.sgd_momentum = -0.5;
        if (kind == 4) desc.optimizer = (hd_optimizer)3;
        assert_int_equal(hd_trainer_create(at.context, at.device, &desc, &trainer), HD_STATUS_INVALID_ARGUMENT);
        if (!strstr(hd_context_error(at.context), words[kind])) fail_msg("%s", hd_context_error(at.context));
    }
    close_place(&at);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(mean_and_bits), cmocka_unit_test(small_steps), cmocka_unit_test(nearly_as_wide),
                                        cmocka_unit_test(golden_bits), cmocka_unit_test(memory), cmocka_unit_test(refused) };
    make_text();
    if (!mkdtemp(folder)) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return remove_folder(folder) || failed;
}
