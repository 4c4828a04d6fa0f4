/* lora.h: what tests of adapters share: the tiny models of tests/llm, a recipe and its batches, and what a model computes without a cache. */
#ifndef TESTS_TRAIN_LORA_H
#define TESTS_TRAIN_LORA_H

#include "devices.h"
#include "lora_fixture.h"
#include <math.h>
#include <unistd.h>

enum { MOST_TOKENS = LORA_BATCH * LORA_LENGTH };
static char folder[] = "/tmp/heddle-lora-XXXXXX";

static inline hd_model *open_model(const place *at, const char *name) {
    char path[256];
    hd_model *model = NULL;
    snprintf(path, sizeof path, "%s/llm/models/%s.gguf", HEDDLE_TESTS_DIR, name);
    check_on(at, hd_model_open(at->context, path, NULL, &model));
    return model;
}

static inline hd_trainer_desc recipe(hd_model *base) {
    return (hd_trainer_desc){ .base = base, .lora = { .rank = LORA_RANK, .alpha = LORA_ALPHA }, .batch = LORA_BATCH, .length = LORA_LENGTH, .seed = 5,
                              .schedule = { .rate = 1e-2 }, .adamw = { .beta2 = 0.99 }, .weight_decay = 0.1, .clip = 1 };
}

static inline hd_trainer *make(const place *at, const hd_trainer_desc *desc) {
    hd_trainer *trainer = NULL;
    check_on(at, hd_trainer_create(at->context, at->device, desc, &trainer));
    return trainer;
}

/* The fixture's batch. */
static inline void batch_of(int step, int vocabulary, int32_t *tokens, int32_t *targets) {
    for (int i = 0; i < MOST_TOKENS; i++) {
        const int b = i / LORA_LENGTH, t = i % LORA_LENGTH;
        tokens[i] = (b * 31 + t * t + step * 7) % vocabulary;
        targets[i] = (b * 31 + (t + 1) * (t + 1) + step * 7) % vocabulary;
        if (t < LORA_PROMPT || (b == 1 && t >= LORA_LENGTH - 5)) targets[i] = -1;
    }
}

static inline void step(const place *at, hd_trainer *trainer, const int32_t *tokens, const int32_t *targets, hd_train_report *report) {
    bool told;
    check_on(at, hd_trainer_step(trainer, tokens, targets, report, &told));
    check_on(at, hd_trainer_finish(trainer, report, &told));
    assert_true(told);
}

/* What a graph tells of its scores. */
typedef struct told_scores { hd_value x[LORA_LENGTH], scores[LORA_LENGTH]; uint32_t count; } told_scores;
static inline void take_scores(void *user, hd_program *p, hd_value x, hd_value scores) {
    told_scores *told = user;
    (void)p;
    told->x[told->count] = x;
    told->scores[told->count++] = scores;
}

/* Scores [LORA_LENGTH, vocabulary] of a model's own graph in f32, without a cache; made so many rows at a time. */
static inline float *scores_by(const place *at, hd_model *model, const int32_t *tokens, uint32_t rows) {
    hd_model_info info;
    hd_weights *weights;
    hd_plan *plan;
    int32_t positions[LORA_LENGTH];
    hd_value scores[LORA_LENGTH];
    check_on(at, hd_model_get_info(model, &info));
    float *out = malloc(sizeof *out * LORA_LENGTH * info.vocabulary);
    hd_program *p = hd_program_create(at->context);
    told_scores told = { .count = 0 };
    hd_shape shape;
    const hd_model_graph_desc desc = { .on_scores = take_scores, .user = &told, .sequences = 1, .length = LORA_LENGTH, .tokens = hd_input(p, "tokens", HD_I32, HD_SHAPE(LORA_LENGTH)),
                                       .positions = hd_input(p, "positions", HD_I32, HD_SHAPE(LORA_LENGTH)), .score_rows = rows };
    check_on(at, hd_model_build(model, p, &desc, NULL, scores));
    assert_int_equal(told.count, LORA_LENGTH / rows);
    for (uint32_t i = 0; i < told.count; i++) { /* of each piece before the next one's rows are taken */
        check_on(at, hd_value_describe(p, told.x[i], NULL, &shape));
        assert_true(shape.dims[0] == (int64_t)rows && shape.dims[1] == (int64_t)info.hidden && told.scores[i] == scores[i]);
        assert_true(i == 0 || told.x[i] > told.scores[i - 1]);
    }
    hd_output(p, "scores", rows == LORA_LENGTH ? scores[0] : hd_concat(p, scores, LORA_LENGTH / rows, 0));
    check_on(at, hd_plan_create(at->device, p, &(hd_plan_desc){ .math = HD_MATH_FAST }, &plan));
    check_on(at, hd_weights_load(model, at->device, &weights));
    check_on(at, hd_weights_bind(weights, plan));
    for (int i = 0; i < LORA_LENGTH; i++) positions[i] = i;
    check_on(at, hd_plan_write(plan, "tokens", tokens, sizeof positions));
    check_on(at, hd_plan_write(plan, "positions", positions, sizeof positions));
    check_on(at, hd_plan_run(plan, NULL));
    check_on(at, hd_plan_read(plan, "scores", out, sizeof *out * LORA_LENGTH * info.vocabulary));
    hd_plan_destroy(plan);
    hd_weights_destroy(weights);
    hd_program_destroy(p);
    return out;
}

static inline float *scores_of(const place *at, hd_model *model, const int32_t *tokens) { return scores_by(at, model, tokens, LORA_LENGTH); }

static inline double distance(const float *a, const float *b, size_t count) {
    double most = 0;
    for (size_t i = 0; i < count; i++) most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

/* Sessions keep keys and values as f16, so that they are farther off. */
static inline double session_distance(const place *at, hd_model *model, const int32_t *tokens, const float *last, uint32_t vocabulary) {
    hd_session *session;
    const float *got;
    check_on(at, hd_session_create(model, &(hd_session_desc){ .device = at->device, .math = HD_MATH_FAST }, &session));
    check_on(at, hd_session_feed(session, 0, tokens, LORA_LENGTH));
    check_on(at, hd_session_logits(session, 0, &got));
    const double off = distance(got, last, vocabulary);
    hd_session_destroy(session);
    return off;
}

static inline int begin(void **state) {
    (void)state;
    return mkdtemp(folder) == NULL;
}
static inline int end(void **state) {
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}
#endif
