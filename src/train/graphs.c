/* graphs.c: a trainer's programs: a step, the loss alone, the token that comes next, and the first weights. */
#include "train/trainer.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const kept_names[HDT_KEPT] = { "weights", "first", "second" };

/* A program under way, with room for values of each weight and of each sequence. */
typedef struct draft {
    hd_trainer *trainer;
    hdt_graph   graph;
    hd_value   *weights, *others, *sums;
    hd_value   *losses, *gradients; /* of sequences */
} draft;

static hd_value *values(const hd_trainer *trainer, uint32_t count) {
    return hdt_alloc(trainer->context, count, sizeof(hd_value));
}
static void free_values(const hd_trainer *trainer, hd_value *list, uint32_t count) {
    hdt_free(trainer->context, list, count, sizeof *list);
}

/* What only the backward part needs is not made early. */
static hd_plan_desc wishes(hd_math math, bool alone) {
    return (hd_plan_desc){ .math = math, .in_order = 1, .alone = alone };
}

/* Libraries of products take bf16 in lines of whole vectors, so scores come in whole lines of 64 where the vocabulary
 * has none. No library has a part in exact mode. */
static uint32_t head_rows(const hd_trainer_desc *desc) {
    enum { VECTOR = 8, LINE = 64 };
    const uint32_t count = desc->model.vocabulary;
    const bool whole = count % VECTOR == 0 || desc->model.width < HDT_WIDER;
    return whole || desc->math == HD_MATH_EXACT ? 0 : (count + LINE - 1) / LINE * LINE;
}

static hd_status begin(hd_trainer *trainer, uint32_t batch, draft *out) {
    const uint32_t count = trainer->layout.count;
    const bool narrow = trainer->desc.precision == HD_PRECISION_BF16;
    *out = (draft){ .trainer = trainer,
                    .graph = { .layout = &trainer->layout, .batch = batch, .sequences = batch,
                               .length = trainer->desc.length, .packed = trainer->desc.packed } };
    out->graph.program = hd_program_create(trainer->context);
    out->weights = values(trainer, count);
    out->others = values(trainer, count);
    out->sums = values(trainer, count);
    out->losses = values(trainer, trainer->desc.batch);
    out->gradients = values(trainer, trainer->desc.batch);
    out->graph.room = values(trainer, trainer->desc.batch);
    out->graph.layers = values(trainer, trainer->desc.model.layers + 1);
    if (narrow) out->graph.casts = values(trainer, count + 1);
    if (narrow && !trainer->layout.base) out->graph.head_rows = head_rows(&trainer->desc);
    if (!out->graph.program || !out->weights || !out->others || !out->sums || !out->losses || !out->gradients ||
        !out->graph.room || !out->graph.layers || (narrow && !out->graph.casts))
        return hdt_no_memory(trainer->context);
    hdt_graph_weights(&out->graph, out->weights);
    return HD_OK;
}

static void end(draft *d) {
    hd_program_destroy(d->graph.program);
    hd_value *const of_weights[] = { d->weights, d->others, d->sums };
    hd_value *const of_sequences[] = { d->losses, d->gradients, d->graph.room };
    free_values(d->trainer, d->graph.casts, d->trainer->layout.count + 1);
    free_values(d->trainer, d->graph.layers, d->trainer->desc.model.layers + 1);
    for (size_t i = 0; i < HDT_COUNT(of_weights); i++) free_values(d->trainer, of_weights[i], d->trainer->layout.count);
    for (size_t i = 0; i < HDT_COUNT(of_sequences); i++)
        free_values(d->trainer, of_sequences[i], d->trainer->desc.batch);
}

/* Gives a plan that a model's own graph is a part of its positions, as of sequences of one sample, and a base's its
 * weights. */
static hd_status bind_model(const draft *d, hd_plan *plan) {
    const hd_trainer *trainer = d->trainer;
    hd_status status = HD_OK;
    bool there = false;
    for (size_t i = 0; i < hd_program_port_count(d->graph.program) && !status; i++) {
        const hd_port port = hd_program_port(d->graph.program, i);
        const bool is_start = strcmp(port.name, "starts") == 0;
        if (!is_start && strcmp(port.name, "positions") != 0) continue;
        const uint64_t count = hd_shape_elements(port.shape);
        int32_t *places = hdt_alloc(trainer->context, count, sizeof *places);
        there = true;
        if (!places) return hdt_no_memory(trainer->context);
        for (uint64_t k = 0; k < count && !is_start; k++) places[k] = (int32_t)(k % trainer->desc.length);
        status = hd_plan_write(plan, port.name, places, count * sizeof *places);
        hdt_free(trainer->context, places, count, sizeof *places);
    }
    return status || !there || !trainer->base ? status : hd_weights_bind(trainer->base, plan);
}

/* Plans the program, unless something failed before, and ends it. */
static hd_status finish(draft *d, hd_status status, hd_plan **out_plan) {
    hd_trainer *trainer = d->trainer;
    const hd_plan_desc desc = wishes(trainer->desc.math, true);
    if (!status) status = hd_plan_create(trainer->device, d->graph.program, &desc, out_plan);
    for (int group = 0; group < HDT_GROUPS && !status; group++)
        for (int kept = 0; kept < HDT_KEPT && !status; kept++) {
            char name[24];
            bool there = false;
            snprintf(name, sizeof name, "%s.%d", kept_names[kept], group);
            for (size_t i = 0; i < hd_program_port_count(d->graph.program); i++) {
                const hd_port port = hd_program_port(d->graph.program, i);
                there = there || (port.kind == HD_PORT_STATE && strcmp(port.name, name) == 0);
            }
            if (there) status = hd_plan_bind(*out_plan, name, trainer->states[group][kept], 0);
        }
    if (!status) status = bind_model(d, *out_plan);
    end(d);
    return status;
}

void hdt_key(const hd_trainer *trainer, uint64_t step, uint32_t sequence, uint32_t out_key[4]) {
    out_key[0] = (uint32_t)trainer->desc.seed;
    out_key[1] = (uint32_t)(trainer->desc.seed >> 32);
    out_key[2] = (uint32_t)step;
    out_key[3] = (uint32_t)(step >> 32) ^ sequence << 12;
}

/* ---- a step ---- */

/* Rows begin .. begin + batch of [.., length], flat. */
static hd_value rows_of(const draft *d, hd_value all, int64_t first) {
    const int64_t begin[] = { first, 0 }, end[] = { first + d->graph.batch, d->graph.length };
    return hd_reshape(d->graph.program, hd_slice(d->graph.program, all, begin, end, 2),
                      HD_SHAPE((int64_t)d->graph.batch * d->graph.length));
}

/* How many sequences' scores are there at once. In exact mode one, as sums over tokens have it: the bits hang on it,
 * and not on the micro-batch. Else some 4,096 tokens: the gradient of the head's matrix, which goes on from each, is
 * read and written as often. */
static uint32_t sequences_at_once(const hd_trainer_desc *desc) {
    enum { TOKENS = 4096 };
    uint32_t count = 1;
    for (uint32_t n = 1; n <= desc->micro_batch && desc->math != HD_MATH_EXACT; n++)
        if (desc->micro_batch % n == 0 && (uint64_t)n * desc->length <= TOKENS) count = n;
    return count;
}

/* Products beside a base's weights may round what they read to f16, which would lose gradients of a mean over thousands
 * of tokens. So they are taken of the mean times this, and divided by it: a power of 2, which changes no other bit. */
static float gradient_scale(const hd_trainer_desc *desc) {
    return ldexpf(1, ilogb((double)desc->batch * desc->length));
}

/* What losses are multiplied by, so that their sum is the mean over all targets. */
static hd_value share_of_all(draft *d) { return hdt_graph_input(&d->graph, "share", HD_F32, (hd_shape){ 0 }); }

static hd_value mean_of_targets(draft *d, hd_value losses) {
    return hd_mul(d->graph.program, hd_sum(d->graph.program, losses, HD_ALL_AXES), share_of_all(d));
}

/* Losses [rows] of a micro-batch, which begins with sequence `first` of the batch. With `out_gradient` that of the
 * hidden values too, and `head_sum`, which goes on: with each few sequences' scores at hand their gradients are taken,
 * and the scores are done with. */
static hd_status head(draft *d, hd_value hidden, hd_value targets, hd_value *head_sum, hd_value *out_gradient,
                      hd_value *out_losses) {
    const hd_trainer_desc *desc = &d->trainer->desc;
    hd_program *p = d->graph.program;
    const uint32_t step = sequences_at_once(desc), count = desc->micro_batch / step;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < count && !status; i++) {
        const hd_value rows = hdt_graph_sequences(&d->graph, hidden, i * step, step);
        const hd_value of_rows =
            hd_cross_entropy(p, hdt_graph_scores(&d->graph, rows),
                             hdt_graph_sequences(&d->graph, targets, i * step, step));
        const hd_value wanted[] = { rows, d->graph.wide_head ? d->graph.wide_head : d->graph.head };
        d->graph.room[i] = of_rows;
        if (!out_gradient) continue;
        const hd_value share =
            hd_scale(p, hd_sum(p, of_rows, HD_ALL_AXES), 1 / (float)((double)desc->batch * desc->length), 0);
        const hd_value so_far[] = { 0, *head_sum };
        hd_value gradients[2];
        const hd_gradients_desc going_on = { .wide = desc->narrow != 0, .continued = so_far };
        status = hd_gradients(p, share, wanted, 2, &going_on, gradients);
        d->gradients[i] = gradients[0];
        *head_sum = gradients[1];
    }
    if (out_gradient && !status) *out_gradient = hdt_concat(p, d->gradients, count);
    *out_losses = hdt_concat(p, d->graph.room, count);
    return status;
}

/* The batch's loss and gradients: micro-batch after micro-batch, each going on from what came before. */
static hd_status add_up(draft *d, hd_value *out_loss, hd_value out_gradients[HDT_GROUPS]) {
    const hd_trainer_desc *desc = &d->trainer->desc;
    const uint32_t parts = desc->batch / desc->micro_batch, count = d->trainer->layout.count;
    const uint32_t at = d->trainer->layout.head; /* 0: the embedding is the head's matrix too */
    const bool adapters = d->trainer->layout.base != NULL;
    const bool together = !adapters && at == 0 && !d->graph.head_rows && desc->math != HD_MATH_EXACT;
    hd_program *p = d->graph.program;
    const hd_value tokens = hd_input(p, "tokens", HD_I32, HD_SHAPE(desc->batch, desc->length));
    const hd_value targets = hd_input(p, "targets", HD_I32, HD_SHAPE(desc->batch, desc->length));
    hd_value of_head = 0;
    hd_status status = HD_OK;
    for (uint32_t part = 0; part < parts && !status; part++) {
        hd_gradients_desc going_on = { .chunk_rows = desc->math == HD_MATH_EXACT ? desc->length : 0,
                                       .continued = part ? d->sums : NULL, .wide = desc->narrow != 0,
                                       .recompute = desc->recompute != 0,
                                       .kept = d->graph.layers, .kept_count = desc->model.layers + 1 };
        d->graph.first = part * desc->micro_batch;
        const hd_value of_tokens = rows_of(d, tokens, d->graph.first), of_targets = rows_of(d, targets, d->graph.first);
        hd_value made;
        if (adapters) {
            d->losses[part] = hdt_graph_lora_losses(&d->graph, of_tokens, of_targets,
                                                    hd_scale(p, share_of_all(d), gradient_scale(desc), 0),
                                                    &going_on.loss_gradient);
            made = d->graph.layers[desc->model.layers];
        } else {
            made = hdt_graph_hidden(&d->graph, of_tokens);
            status = head(d, made, of_targets, &of_head, &going_on.loss_gradient, &d->losses[part]);
        }
        if (together) { /* of a micro-batch's tokens the rows are added to what the head gave */
            d->sums[at] = of_head;
            going_on.continued = d->sums;
        }
        if (!status) status = hd_gradients(p, made, d->weights, count, &going_on, d->others);
        memcpy(d->sums, d->others, count * sizeof *d->sums);
        if (together) of_head = d->sums[at];
    }
    if (status) return status;
    const hd_value losses = hdt_concat(p, d->losses, parts);
    *out_loss = adapters ? mean_of_targets(d, losses) : hd_mean(p, losses, HD_ALL_AXES);
    const int64_t none[] = { 0, 0 }, end[] = { desc->model.vocabulary, desc->model.width };
    if (d->graph.wide_head) of_head = hd_slice(p, of_head, none, end, 2);
    if (!adapters && !together) d->sums[at] = at ? of_head : hd_add(p, of_head, d->sums[at]);
    status = hdt_graph_join(&d->graph, d->sums, out_gradients);
    for (int group = 0; adapters && group < HDT_HIDDEN; group++)
        out_gradients[group] = hd_scale(p, out_gradients[group], 1 / gradient_scale(desc), 0);
    return status;
}

static hd_value state_of(const draft *d, int kept, int group) {
    char name[24];
    snprintf(name, sizeof name, "%s.%d", kept_names[kept], group);
    return hd_state(d->graph.program, name, HD_F32, HD_SHAPE((int64_t)d->trainer->layout.group_elements[group]));
}

/* By which weights of 16 bits are rounded; 0: they are f32. Dropout has other streams of the same key. */
static hd_value words_of(draft *d, int group) {
    enum { HALF = 1u << 30 };
    const hdt_layout *layout = &d->trainer->layout;
    if (hdt_weight_type(layout, group) == HD_F32) return 0;
    const hd_value key = hdt_graph_input(&d->graph, "rounding", HD_I32, HD_SHAPE(4));
    return hd_random(d->graph.program, key, (uint32_t)HALF + (uint32_t)group,
                     HD_SHAPE((int64_t)layout->group_elements[group]));
}

/* Muon's step: of the layers' matrices. GPT-2's have their inputs first, and those of q, k and v lie side by side. */
static void turn_hidden(draft *d, hd_value gradient, const hd_clipping *clip, hd_value rates) {
    enum { MOST = 8 };
    const hdt_layout *layout = &d->trainer->layout;
    const uint64_t of_layer = layout->group_elements[HDT_HIDDEN] / layout->model.layers;
    hd_muon_matrix matrices[MOST];
    hd_muon_desc desc = { .momentum = d->trainer->desc.muon_momentum, .layers = layout->model.layers,
                          .matrices = matrices };
    for (uint32_t i = 0; i < layout->count && desc.count < MOST; i++) {
        const hdt_parameter *one = &layout->parameters[i];
        const uint32_t rows = (uint32_t)one->shape.dims[0], columns = (uint32_t)one->shape.dims[1];
        if (one->group != HDT_HIDDEN || one->first >= of_layer) continue;
        matrices[desc.count++] = (hd_muon_matrix){ one->first, rows, columns,
                                                   one->transposed && columns == 3 * rows ? 3 : 1, one->transposed };
    }
    const hd_value states[] = { d->graph.states[HDT_HIDDEN], state_of(d, HDT_FIRST, HDT_HIDDEN) };
    hd_muon(d->graph.program, states, gradient, clip, rates, &desc, words_of(d, HDT_HIDDEN));
}

/* All gradients' norm, and a step of each group's optimizer. Returns the norm. */
static hd_value take_step(draft *d, const hd_value gradients[HDT_GROUPS]) {
    const hd_trainer_desc *desc = &d->trainer->desc;
    hd_program *p = d->graph.program;
    const uint32_t groups = desc->optimizer == HD_OPTIMIZER_MUON ? HDT_GROUPS : HDT_HIDDEN;
    const hd_clipping clip = hd_clip_norm(p, gradients, groups, desc->clip);
    for (int group = 0; group < (int)groups; group++) {
        char name[16];
        snprintf(name, sizeof name, "rates.%d", group);
        const hd_value rates = hd_input(p, name, HD_F32, HD_SHAPE(HD_RATES));
        if (group == HDT_HIDDEN) {
            turn_hidden(d, gradients[group], &clip, rates);
            continue;
        }
        hd_value states[] = { d->graph.states[group], state_of(d, HDT_FIRST, group), 0 };
        if (desc->optimizer == HD_OPTIMIZER_SGD) {
            hd_sgd(p, states, gradients[group], &clip, rates, (float)desc->sgd_momentum, words_of(d, group));
            continue;
        }
        states[2] = state_of(d, HDT_SECOND, group);
        hd_adamw(p, states, gradients[group], &clip, rates, &desc->adamw, words_of(d, group));
    }
    return clip.norm;
}

static hd_status build_step(hd_trainer *trainer, draft *d) {
    const hd_trainer_desc *desc = &trainer->desc;
    hd_value loss = 0, gradients[HDT_GROUPS] = { 0 };
    hd_status status = begin(trainer, desc->micro_batch, d);
    hd_program *p = d->graph.program;
    d->graph.dropout = desc->dropout;
    d->graph.sequences = desc->batch;
    if (!status && desc->dropout > 0) d->graph.keys = hd_input(p, "keys", HD_I32, HD_SHAPE(desc->batch, 4));
    if (!status) status = add_up(d, &loss, gradients);
    if (!status) {
        const hd_value norm = take_step(d, gradients);
        hd_output(p, "loss", loss);
        hd_output(p, "norm", norm);
    }
    return status;
}

hd_status hdt_plan_step(hd_trainer *trainer) {
    draft d;
    const hd_status status = build_step(trainer, &d);
    return finish(&d, status, &trainer->step);
}


/* ---- without training ---- */

hd_status hdt_plan_loss(hd_trainer *trainer) {
    const hd_shape shape = HD_SHAPE((int64_t)trainer->desc.micro_batch * trainer->desc.length);
    draft d;
    hd_status status = begin(trainer, trainer->desc.micro_batch, &d);
    hd_program *p = d.graph.program;
    if (!status) {
        const hd_value tokens = hd_input(p, "tokens", HD_I32, shape), targets = hd_input(p, "targets", HD_I32, shape);
        hd_value losses = 0;
        if (!trainer->layout.base) status = head(&d, hdt_graph_hidden(&d.graph, tokens), targets, NULL, NULL, &losses);
        else losses = hdt_graph_lora_losses(&d.graph, tokens, targets, 0, NULL);
        hd_output(p, "loss", mean_of_targets(&d, losses));
    }
    return finish(&d, status, &trainer->loss);
}

/* The largest of score + temperature * noise, with noise of Gumbel's distribution, is each token with its probability
 * (Gumbel, 1954). */
hd_status hdt_plan_next(hd_trainer *trainer) {
    draft d;
    const hd_status status = begin(trainer, 1, &d);
    hd_program *p = d.graph.program;
    if (!status) {
        const hd_value tokens = hd_input(p, "tokens", HD_I32, HD_SHAPE(trainer->desc.length));
        const hd_value last = hd_input(p, "last", HD_I32, HD_SHAPE(1));
        const hd_value rows =
            trainer->layout.base ? hd_gather(p, hdt_graph_lora_scores(&d.graph, tokens), last)
                                 : hdt_graph_scores(&d.graph, hd_gather(p, hdt_graph_hidden(&d.graph, tokens), last));
        const int64_t first[] = { 0, 0 }, behind[] = { 1, trainer->desc.model.vocabulary };
        const hd_value scores = d.graph.head_rows ? hd_slice(p, rows, first, behind, 2) : rows;
        const hd_value uniform = hd_random_uniform(p, hd_input(p, "key", HD_I32, HD_SHAPE(4)), UINT32_MAX,
                                                   HD_SHAPE(1, trainer->desc.model.vocabulary));
        const hd_value noise = hd_neg(p, hd_log(p, hd_neg(p, hd_log(p, hd_clip(p, uniform, 0x1p-25f, 1)))));
        const hd_value drawn = hd_add(p, scores, hd_mul(p, noise, hd_input(p, "temperature", HD_F32, HD_SHAPE(1))));
        hd_output(p, "next", hd_argmax(p, drawn, -1));
    }
    return finish(&d, status, &trainer->next);
}

/* The weights as they compute: what learns is not rounded. */
hd_status hdt_read_rounded(hd_trainer *trainer, float *out_groups[HDT_GROUPS]) {
    static const char *const names[HDT_GROUPS] = { "matrices", "vectors", "hidden" };
    hd_value joined[HDT_GROUPS] = { 0 };
    hd_plan *plan = NULL;
    draft d;
    hd_status status = begin(trainer, 1, &d);
    if (!status) status = hdt_graph_join(&d.graph, d.weights, joined);
    for (int group = 0; group < HDT_GROUPS && !status; group++)
        if (joined[group]) hd_output(d.graph.program, names[group], joined[group]);
    status = finish(&d, status, &plan);
    if (!status) status = hd_plan_run(plan, NULL);
    for (int group = 0; group < HDT_GROUPS && !status; group++) {
        const uint64_t count = trainer->layout.group_elements[group];
        if (count == 0) continue;
        out_groups[group] = hdt_alloc(trainer->context, count, sizeof(float));
        status = out_groups[group] ? hd_plan_read(plan, names[group], out_groups[group], count * sizeof(float))
                                   : hdt_no_memory(trainer->context);
    }
    hd_plan_destroy(plan);
    return status;
}

static hd_status build_draw(hd_trainer *trainer, draft *d) {
    const hd_status status = begin(trainer, 1, d);
    if (status) return status;
    return hdt_graph_draw(&d->graph, hd_input(d->graph.program, "key", HD_I32, HD_SHAPE(4)), d->others);
}

hd_status hdt_draw_weights(hd_trainer *trainer) {
    hd_plan *plan = NULL;
    uint32_t key[4];
    draft d;
    hd_status status = build_draw(trainer, &d);
    const hd_math math = trainer->desc.math;
    trainer->desc.math = HD_MATH_EXACT; /* whatever comes then, a run begins with the same weights on every device */
    status = finish(&d, status, &plan);
    trainer->desc.math = math;
    hdt_key(trainer, UINT64_MAX, 0, key);
    if (!status) status = hd_plan_write(plan, "key", key, sizeof key);
    if (!status) status = hd_plan_run(plan, NULL);
    hd_plan_destroy(plan);
    return status;
}

/* ---- the memory of it ---- */

static hd_status estimate(draft *d, hd_status status, hd_math math, hd_plan_memory *out_memory) {
    const hd_plan_desc desc = wishes(math, false);
    if (!status) status = hd_plan_estimate(d->trainer->device, d->graph.program, &desc, out_memory);
    end(d);
    return status;
}

hd_status hdt_estimate(hd_trainer *trainer, hd_plan_memory *out_memory) {
    hd_plan_memory first;
    draft d;
    hd_status status = build_step(trainer, &d);
    status = estimate(&d, status, trainer->desc.math, out_memory);
    if (status) return status;
    status = build_draw(trainer, &d);
    status = estimate(&d, status, HD_MATH_EXACT, &first);
    if (status) return status;
    /* the device keeps a plan that has ended until it needs the memory */
    out_memory->scratch_bytes += first.scratch_bytes;
    out_memory->total_bytes += first.total_bytes - first.state_bytes;
    return HD_OK;
}
