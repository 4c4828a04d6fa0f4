/* trainer.c: a model in training: its buffers and plans, its steps, of which the next one is handed over before the
 * last one is read. */
#include "train/trainer.h"
#include <math.h>
#include <string.h>

/* ---- what can be trained ---- */

static hd_status check_model(hd_context *context, const hd_gpt *model) {
    enum { MOST_LAYERS = 1024, MOST_WIDTH = 1 << 16, MOST_TOKENS = 1 << 24 };
    const struct { const char *name; uint32_t value, most; } fields[] = {
        { "layers", model->layers, MOST_LAYERS }, { "width", model->width, MOST_WIDTH },
        { "heads", model->heads, model->width },
        { "context", model->context, MOST_TOKENS }, { "vocabulary", model->vocabulary, MOST_TOKENS } };
    for (size_t i = 0; i < HDT_COUNT(fields); i++)
        if (fields[i].value < 1 || fields[i].value > fields[i].most)
            return hdt_fail(context, HD_STATUS_INVALID_ARGUMENT, "a model of %u %s: 1 to %u are possible",
                            fields[i].value, fields[i].name, fields[i].most);
    return HD_OK;
}

/* What a base says of itself stands in place of what the desc has. */
static hd_status check_lora(hd_context *context, hd_trainer_desc *desc) {
    enum { MOST_RANK = 1 << 12, DEFAULT_LENGTH = 512 };
    hd_model_info info;
    const hd_lora_desc *lora = &desc->lora;
    if (lora->rank < 1 || lora->rank > MOST_RANK || !(lora->alpha >= 0 && lora->alpha < 1e6f))
        return hdt_fail(context, HD_STATUS_INVALID_ARGUMENT,
                        "adapters of rank %u and alpha %g: rank 1 to %d, and alpha from 0 on are possible", lora->rank,
                        (double)lora->alpha, MOST_RANK);
    if (!memchr(lora->targets, 0, sizeof lora->targets))
        return hdt_fail(context, HD_STATUS_INVALID_ARGUMENT, "the list of targets has no end");
    if (!desc->base) return HD_OK;
    const hd_status status = hd_model_get_info(desc->base, &info);
    if (status) return status;
    desc->model = (hd_gpt){ .layers = info.layers, .width = info.hidden, .heads = info.heads, .context = info.context,
                            .vocabulary = info.vocabulary };
    if (desc->length == 0) desc->length = info.context < DEFAULT_LENGTH ? info.context : DEFAULT_LENGTH;
    return HD_OK;
}

static hd_status check_family(hd_context *context, hd_trainer_desc *desc) {
    hd_gpt *model = &desc->model;
    if (desc->base || desc->lora.rank) return HD_OK;
    if ((unsigned)model->family > HD_FAMILY_QWEN3)
        return hdt_fail(context, HD_STATUS_INVALID_ARGUMENT, "family %d does not exist", (int)model->family);
    if (model->family != HD_FAMILY_GPT2) return hdt_check_decoder(context, model);
    if (model->width % model->heads != 0)
        return hdt_fail(context, HD_STATUS_INVALID_ARGUMENT, "a width of %u is no multiple of %u heads", model->width,
                        model->heads);
    return HD_OK;
}

/* The matrices of layers have inputs of the width, of all heads and of the feed-forward layer. */
static hd_status check_ternary(hd_context *context, const hd_trainer_desc *desc) {
    const hd_gpt *model = &desc->model;
    const bool gpt2 = model->family == HD_FAMILY_GPT2;
    const uint64_t inputs[] = { model->width, gpt2 ? model->width : (uint64_t)model->heads * model->head_size,
                                gpt2 ? 4 * (uint64_t)model->width : model->feed_forward };
    if (!desc->ternary) return HD_OK;
    if (desc->base || desc->lora.rank)
        return hdt_fail(context, HD_STATUS_INVALID_ARGUMENT, "adapters are not ternary: whole models are");
    for (size_t i = 0; i < HDT_COUNT(inputs); i++)
        if (hd_dtype_bytes(HD_TQ2_0, inputs[i]) == 0)
            return hdt_fail(context, HD_STATUS_INVALID_ARGUMENT,
                            "ternary matrices of %llu inputs: multiples of 256 are possible, as tq2_0 has them",
                            (unsigned long long)inputs[i]);
    return HD_OK;
}

static hd_status check_precision(hd_context *context, const hd_trainer_desc *desc) {
    if ((unsigned)desc->precision > HD_PRECISION_BF16)
        return hdt_fail(context, HD_STATUS_INVALID_ARGUMENT, "precision %d does not exist", (int)desc->precision);
    if (desc->narrow > 1 || (desc->narrow && (desc->base || desc->lora.rank || desc->ternary)))
        return hdt_fail(context, HD_STATUS_INVALID_ARGUMENT,
                        "weights in bf16 are those of a model that learns whole and is not ternary");
    if (desc->narrow && desc->precision != HD_PRECISION_BF16)
        return hdt_fail(context, HD_STATUS_INVALID_ARGUMENT,
                        "weights in bf16 go with products of bf16: set HD_PRECISION_BF16");
    return HD_OK;
}

static hd_status check_packed(hd_context *context, const hd_trainer_desc *desc) {
    if (desc->packed > 1 || (desc->packed && !desc->base && !desc->lora.rank))
        return hdt_fail(context, HD_STATUS_INVALID_ARGUMENT, "packed samples are for adapters of a base");
    return HD_OK;
}

static hd_status check_optimizer(hd_context *context, hd_trainer_desc *desc) {
    if ((unsigned)desc->optimizer > HD_OPTIMIZER_SGD)
        return hdt_fail(context, HD_STATUS_INVALID_ARGUMENT, "optimizer %d does not exist", (int)desc->optimizer);
    if (desc->adamw.beta1 == 0) desc->adamw.beta1 = 0.9;
    if (desc->adamw.beta2 == 0) desc->adamw.beta2 = 0.999;
    if (desc->adamw.eps == 0) desc->adamw.eps = 1e-8;
    if (desc->optimizer != HD_OPTIMIZER_MUON) return HD_OK;
    if (desc->base || desc->lora.rank)
        return hdt_fail(context, HD_STATUS_INVALID_ARGUMENT, "adapters learn by AdamW: Muon is for a GPT's layers");
    if (desc->muon_rate == 0) desc->muon_rate = 0.02;
    if (desc->muon_momentum == 0) desc->muon_momentum = 0.95;
    return HD_OK;
}

hd_status hdt_check_desc(hd_context *context, hd_trainer_desc *desc) {
    enum { MOST_BATCH = 1 << 20 };
    hd_status status = desc->base || desc->lora.rank ? check_lora(context, desc) : HD_OK;
    if (!status) status = check_model(context, &desc->model);
    if (!status) status = check_family(context, desc);
    if (!status) status = check_ternary(context, desc);
    if (!status) status = check_precision(context, desc);
    if (!status) status = check_packed(context, desc);
    if (!status) status = check_optimizer(context, desc);
    if (status) return status;
    if (desc->length == 0) desc->length = desc->model.context;
    if (desc->micro_batch == 0) desc->micro_batch = desc->batch;
    if (desc->length > desc->model.context)
        return hdt_fail(context, HD_STATUS_INVALID_ARGUMENT,
                        "sequences of %u tokens are longer than the model's context of %u", desc->length,
                        desc->model.context);
    if (desc->batch < 1 || desc->batch > MOST_BATCH || desc->batch % desc->micro_batch != 0)
        return hdt_fail(context, HD_STATUS_INVALID_ARGUMENT,
                        "a batch of %u is no multiple of the micro-batch %u, or above 2^20", desc->batch,
                        desc->micro_batch);
    const struct { const char *name; double value, least, below; } numbers[] = {
        { "rate", desc->schedule.rate, 0, 1e6 }, { "least rate", desc->schedule.least, 0, 1e6 },
        { "weight decay", desc->weight_decay, 0, 1e6 }, { "rate of Muon", desc->muon_rate, 0, 1e6 },
        { "momentum of Muon", desc->muon_momentum, 0, 1 }, { "momentum", desc->sgd_momentum, 0, 1 },
        { "beta1", desc->adamw.beta1, 0, 1 }, { "beta2", desc->adamw.beta2, 0, 1 }, { "eps", desc->adamw.eps, 0, 1 },
        { "clip", (double)desc->clip, 0, 1e30 }, { "dropout", (double)desc->dropout, 0, 1 } };
    for (size_t i = 0; i < HDT_COUNT(numbers); i++)
        if (!(numbers[i].value >= numbers[i].least && numbers[i].value < numbers[i].below))
            return hdt_fail(context, HD_STATUS_INVALID_ARGUMENT, "a %s of %g: at least %g and below %g are possible",
                            numbers[i].name, numbers[i].value, numbers[i].least, numbers[i].below);
    return HD_OK;
}

/* ---- a trainer ---- */

static hd_status make_layout(hd_trainer *trainer) {
    const hd_trainer_desc *desc = &trainer->desc;
    if (desc->base) return hdt_layout_make_lora(trainer->context, desc, &trainer->layout);
    if (desc->lora.rank)
        return hdt_fail(trainer->context, HD_STATUS_INVALID_ARGUMENT,
                        "adapters learn beside a base, and there is none");
    return desc->model.family == HD_FAMILY_GPT2 ? hdt_layout_make(trainer->context, desc, &trainer->layout)
                                                : hdt_layout_make_decoder(trainer->context, desc, &trainer->layout);
}

static hd_status take_base(hd_trainer *trainer) {
    hd_model_info info;
    const hd_status status = hd_model_get_info(trainer->desc.base, &info);
    memcpy(trainer->architecture, info.architecture, sizeof trainer->architecture);
    return status ? status : hd_weights_load(trainer->desc.base, trainer->device, &trainer->base);
}

/* ---- what groups keep ---- */

bool hdt_keeps(const hd_trainer *trainer, int group, int kept) {
    const hd_optimizer optimizer = trainer->desc.optimizer;
    const bool two = optimizer == HD_OPTIMIZER_ADAMW || (optimizer == HD_OPTIMIZER_MUON && group != HDT_HIDDEN);
    return trainer->layout.group_elements[group] > 0 && (kept != HDT_SECOND || two);
}

hd_dtype hdt_kept_type(const hd_trainer *trainer, int group, int kept) {
    return kept == HDT_WEIGHTS || kept == HDT_BEST ? hdt_weight_type(&trainer->layout, group) : HD_F32;
}

hd_status hdt_read_kept(const hd_trainer *trainer, int group, int kept, float *out_values) {
    const uint64_t count = trainer->layout.group_elements[group];
    const hd_dtype dtype = hdt_kept_type(trainer, group, kept);
    const uint64_t bytes = hd_dtype_bytes(dtype, count);
    hd_buffer *from = trainer->states[group][kept];
    if (dtype == HD_F32) return hd_buffer_read(from, 0, out_values, bytes);
    void *narrow = hdt_alloc(trainer->context, bytes, 1);
    hd_status status = narrow ? hd_buffer_read(from, 0, narrow, bytes) : hdt_no_memory(trainer->context);
    if (!status) status = hd_dequantize(dtype, narrow, count, out_values);
    hdt_free(trainer->context, narrow, bytes, 1);
    return status;
}

hd_status hdt_write_kept(hd_trainer *trainer, int group, int kept, uint64_t first, const float *values,
                         uint64_t count) {
    const hd_dtype dtype = hdt_kept_type(trainer, group, kept);
    const uint64_t at = hd_dtype_bytes(dtype, first), bytes = hd_dtype_bytes(dtype, count);
    hd_buffer *to = trainer->states[group][kept];
    if (dtype == HD_F32) return hd_buffer_write(to, at, values, bytes);
    void *narrow = hdt_alloc(trainer->context, bytes, 1);
    hd_status status = narrow ? hd_quantize(dtype, values, count, narrow) : hdt_no_memory(trainer->context);
    if (!status) status = hd_buffer_write(to, at, narrow, bytes);
    hdt_free(trainer->context, narrow, bytes, 1);
    return status;
}

hd_status hdt_read_groups(const hd_trainer *trainer, int kept, float *out_groups[HDT_GROUPS]) {
    hd_status status = HD_OK;
    for (int group = 0; group < HDT_GROUPS && !status; group++) {
        const uint64_t count = trainer->layout.group_elements[group];
        const bool is_best = kept == HDT_BEST;
        if (is_best ? !trainer->best[group] : !trainer->states[group][kept]) continue;
        out_groups[group] = hdt_alloc(trainer->context, count, sizeof(float));
        if (!out_groups[group]) return hdt_no_memory(trainer->context);
        if (is_best) memcpy(out_groups[group], trainer->best[group], count * sizeof(float));
        else status = hdt_read_kept(trainer, group, kept, out_groups[group]);
    }
    return status;
}

void hdt_free_groups(const hd_trainer *trainer, float *groups[HDT_GROUPS]) {
    for (int group = 0; group < HDT_GROUPS; group++)
        hdt_free(trainer->context, groups[group], trainer->layout.group_elements[group], sizeof(float));
}

static hd_status make_states(hd_trainer *trainer) {
    hd_status status = HD_OK;
    for (int group = 0; group < HDT_GROUPS; group++)
        for (int kept = 0; kept < HDT_KEPT && !status; kept++) {
            if (!hdt_keeps(trainer, group, kept)) continue;
            const uint64_t count = trainer->layout.group_elements[group];
            const hd_buffer_desc desc = { .bytes = hd_dtype_bytes(hdt_kept_type(trainer, group, kept), count),
                                          .label = "training" };
            status = hd_buffer_create(trainer->device, &desc, &trainer->states[group][kept]);
        }
    return status;
}

/* Until something is told each sequence is one sample. */
static hd_status make_places(hd_trainer *trainer) {
    const uint64_t length = trainer->desc.length, count = trainer->desc.batch * length;
    trainer->starts = hdt_alloc(trainer->context, count, sizeof *trainer->starts);
    trainer->positions = hdt_alloc(trainer->context, count, sizeof *trainer->positions);
    if (!trainer->starts || !trainer->positions) return hdt_no_memory(trainer->context);
    for (uint64_t i = 0; i < count; i++) trainer->positions[i] = (int32_t)(i % length);
    return HD_OK;
}

hd_status hd_trainer_create(hd_context *context, hd_device *device, const hd_trainer_desc *desc,
                            hd_trainer **out_trainer) {
    if (out_trainer) *out_trainer = NULL;
    if (!context || !device || !desc || !out_trainer) return HD_STATUS_NULL_POINTER;
    hd_trainer *trainer = hdt_alloc(context, 1, sizeof *trainer);
    if (!trainer) return hdt_no_memory(context);
    trainer->context = context;
    trainer->device = device;
    trainer->desc = *desc;
    hd_status status = hdt_check_desc(context, &trainer->desc);
    if (!status) status = make_layout(trainer);
    if (!status && trainer->desc.base) status = take_base(trainer);
    if (!status && !(trainer->room = hdt_alloc(context, trainer->desc.length, sizeof *trainer->room)))
        status = hdt_no_memory(context);
    if (!status && trainer->desc.dropout > 0) {
        trainer->keys = hdt_alloc(context, trainer->desc.batch, sizeof *trainer->keys);
        if (!trainer->keys) status = hdt_no_memory(context);
    }
    if (!status && trainer->desc.packed) status = make_places(trainer);
    if (!status) status = make_states(trainer);
    if (!status) status = hdt_draw_weights(trainer);
    if (!status) status = hdt_plan_step(trainer);
    if (!status)
        status = hd_stream_create(trainer->step, &(hd_stream_desc){ .depth = HDT_COUNT(trainer->flights) },
                                  &trainer->stream);
    if (status) hd_trainer_destroy(trainer);
    else *out_trainer = trainer;
    return status;
}

hd_status hd_trainer_fit(hd_context *context, hd_device *device, const hd_trainer_desc *desc,
                         hd_plan_memory *out_memory) {
    if (!context || !device || !desc || !out_memory) return HD_STATUS_NULL_POINTER;
    hd_trainer trainer = { .context = context, .device = device, .desc = *desc };
    hd_status status = hdt_check_desc(context, &trainer.desc);
    if (!status) status = make_layout(&trainer);
    if (!status) status = hdt_estimate(&trainer, out_memory);
    hdt_layout_free(&trainer.layout);
    return status;
}

void hd_trainer_destroy(hd_trainer *trainer) {
    if (!trainer) return;
    if (trainer->stream) hd_stream_finish(trainer->stream, 0); /* it writes into `flights` */
    for (size_t i = 0; i < HDT_COUNT(trainer->flights); i++) hd_ticket_destroy(trainer->flights[i].ticket);
    hd_stream_destroy(trainer->stream);
    hd_plan_destroy(trainer->step);
    hd_plan_destroy(trainer->loss);
    hd_plan_destroy(trainer->next);
    hd_weights_destroy(trainer->base);
    for (int i = 0; i < HDT_GROUPS * HDT_KEPT; i++) hd_buffer_destroy(trainer->states[i / HDT_KEPT][i % HDT_KEPT]);
    hdt_free_groups(trainer, trainer->best);
    hdt_free(trainer->context, trainer->keys, trainer->desc.batch, sizeof *trainer->keys);
    const uint64_t places = (uint64_t)trainer->desc.batch * trainer->desc.length;
    hdt_free(trainer->context, trainer->starts, places, sizeof *trainer->starts);
    hdt_free(trainer->context, trainer->positions, places, sizeof *trainer->positions);
    hdt_free(trainer->context, trainer->room, trainer->desc.length, sizeof *trainer->room);
    hdt_layout_free(&trainer->layout);
    hdt_free(trainer->context, trainer, 1, sizeof *trainer);
}

const hd_trainer_desc *hd_trainer_get_desc(const hd_trainer *trainer) { return trainer ? &trainer->desc : NULL; }
uint64_t hd_trainer_steps(const hd_trainer *trainer) { return trainer ? trainer->steps : 0; }
uint64_t hd_trainer_parameters(const hd_trainer *trainer) { return trainer ? trainer->layout.elements : 0; }

/* ---- steps ---- */

static hd_status was_null(const hd_trainer *trainer, const char *call) {
    return trainer ? hdt_fail(trainer->context, HD_STATUS_NULL_POINTER, "%s was given NULL", call)
                   : HD_STATUS_NULL_POINTER;
}

/* @param least 0; of targets that may be none -1 */
static hd_status check_tokens(const hd_trainer *trainer, const int32_t *tokens, uint64_t count, int32_t least) {
    for (uint64_t i = 0; i < count; i++)
        if (tokens[i] < least || tokens[i] >= (int32_t)trainer->desc.model.vocabulary)
            return hdt_fail(trainer->context, HD_STATUS_INVALID_ARGUMENT, "token %d at %llu: this model has 0 to %u",
                            tokens[i], (unsigned long long)i, trainer->desc.model.vocabulary - 1);
    return HD_OK;
}

/* What losses are multiplied by, so that their sum is the mean over all targets. */
static float share_of(const int32_t *targets, uint64_t count) {
    uint64_t there = 0;
    for (uint64_t i = 0; i < count; i++) there += targets[i] >= 0;
    return there ? (float)(1 / (double)there) : 0;
}

/* Waits for a step's end; its report is told once. */
static hd_status land(hdt_flight *flight, hd_train_report *out_report, bool *out_told) {
    if (!flight->ticket) return HD_OK;
    const hd_status status = hd_ticket_wait(flight->ticket, 0);
    if (status == HD_STATUS_TIMEOUT) return status;
    hd_ticket_destroy(flight->ticket);
    flight->ticket = NULL;
    if (!status && out_report) *out_report = flight->report;
    if (!status && out_told) *out_told = true;
    return status;
}

/* Muon's rate has its own height and the schedule's course. */
static double muon_rate_of(const hd_trainer_desc *desc, double rate) {
    return desc->schedule.rate > 0 ? rate * (desc->muon_rate / desc->schedule.rate) : 0;
}

static hd_status submit(hd_trainer *trainer, const int32_t *tokens, const int32_t *targets, hdt_flight *flight) {
    const hd_trainer_desc *desc = &trainer->desc;
    const uint64_t bytes = (uint64_t)desc->batch * desc->length * sizeof *tokens;
    float rates[HDT_GROUPS][HD_RATES];
    uint32_t rounding[4];
    flight->report =
        (hd_train_report){ .step = trainer->steps, .rate = hd_schedule_rate(&desc->schedule, trainer->steps) };
    for (int group = HDT_MATRICES; group <= HDT_VECTORS; group++) {
        const double decay = group == HDT_MATRICES || trainer->base ? desc->weight_decay : 0;
        if (desc->optimizer == HD_OPTIMIZER_SGD) hd_sgd_rates(flight->report.rate, decay, rates[group]);
        else hd_adamw_rates(&desc->adamw, flight->report.rate, decay, trainer->steps, rates[group]);
    }
    if (desc->optimizer == HD_OPTIMIZER_MUON)
        hd_sgd_rates(muon_rate_of(desc, flight->report.rate), desc->weight_decay, rates[HDT_HIDDEN]);
    for (uint32_t i = 0; i < desc->batch && trainer->keys; i++) hdt_key(trainer, trainer->steps, i, trainer->keys[i]);
    hdt_key(trainer, trainer->steps, 0, rounding);
    const float share = share_of(targets, bytes / sizeof *targets);
    const hd_stream_input all[] = { { .name = "tokens", .data = tokens, .bytes = bytes },
                                    { .name = "targets", .data = targets, .bytes = bytes },
                                    { .name = "rates.0", .data = rates[0], .bytes = sizeof rates[0] },
                                    { .name = "rates.1", .data = rates[1], .bytes = sizeof rates[1] },
                                    { .name = "rates.2", .data = rates[2], .bytes = sizeof rates[2] },
                                    { .name = "share", .data = &share, .bytes = sizeof share },
                                    { .name = "rounding", .data = rounding, .bytes = sizeof rounding },
                                    { .name = "starts", .data = trainer->starts, .bytes = bytes },
                                    { .name = "positions", .data = trainer->positions, .bytes = bytes },
                                    { .name = "keys", .data = trainer->keys,
                                      .bytes = desc->batch * sizeof *trainer->keys } };
    hd_stream_input inputs[HDT_COUNT(all)];
    size_t count = 0;
    for (size_t i = 0; i < HDT_COUNT(all); i++) { /* those that the plan has */
        if (!all[i].data || (all[i].data == &share && !trainer->base)) continue;
        if (all[i].data == rounding && !desc->narrow) continue;
        if (all[i].data == rates[HDT_HIDDEN] && desc->optimizer != HD_OPTIMIZER_MUON) continue;
        inputs[count++] = all[i];
    }
    const hd_stream_output outputs[] = {
        { .name = "loss", .data = &flight->report.loss, .bytes = sizeof flight->report.loss },
        { .name = "norm", .data = &flight->report.norm, .bytes = sizeof flight->report.norm }
    };
    return hd_stream_submit(trainer->stream, inputs, count, outputs, HDT_COUNT(outputs),
                            &flight->ticket);
}

hd_status hd_trainer_step(hd_trainer *trainer, const int32_t *tokens, const int32_t *targets,
                          hd_train_report *out_report, bool *out_told) {
    if (out_told) *out_told = false;
    if (!trainer || !tokens || !targets) return was_null(trainer, "hd_trainer_step");
    const uint64_t count = (uint64_t)trainer->desc.batch * trainer->desc.length;
    hd_status status = check_tokens(trainer, tokens, count, 0);
    if (!status) status = check_tokens(trainer, targets, count, trainer->base ? -1 : 0);
    if (!status) status = submit(trainer, tokens, targets, &trainer->flights[trainer->steps % 2]);
    if (!status) trainer->steps++;
    return status ? status : land(&trainer->flights[trainer->steps % 2], out_report, out_told);
}

hd_status hd_trainer_starts(hd_trainer *trainer, const int32_t *starts) {
    if (!trainer || !starts) return was_null(trainer, "hd_trainer_starts");
    const uint32_t length = trainer->desc.length;
    const uint64_t count = (uint64_t)trainer->desc.batch * length;
    if (!trainer->desc.packed)
        return hdt_fail(trainer->context, HD_STATUS_WRONG_STATE,
                        "sequences of this trainer are one sample each: set hd_trainer_desc.packed");
    for (uint64_t i = 0; i < count; i++)
        if (starts[i] < 0 || starts[i] > (int32_t)(i % length))
            return hdt_fail(trainer->context, HD_STATUS_INVALID_ARGUMENT,
                            "a sample of the token at %llu begins at %d: at its own place at the latest",
                            (unsigned long long)i, starts[i]);
    memcpy(trainer->starts, starts, count * sizeof *starts);
    for (uint64_t i = 0; i < count; i++) trainer->positions[i] = (int32_t)(i % length) - starts[i];
    return HD_OK;
}

hd_status hd_trainer_finish(hd_trainer *trainer, hd_train_report *out_report, bool *out_told) {
    if (out_told) *out_told = false;
    if (!trainer) return HD_STATUS_NULL_POINTER;
    /* after a failure there may be two */
    hd_status status = land(&trainer->flights[trainer->steps % 2], out_report, out_told);
    if (!status) status = land(&trainer->flights[(trainer->steps + 1) % 2], out_report, out_told);
    return status;
}

/* ---- between steps ---- */

hd_status hd_trainer_loss(hd_trainer *trainer, const int32_t *tokens, const int32_t *targets, float *out_loss) {
    if (!trainer || !tokens || !targets || !out_loss) return was_null(trainer, "hd_trainer_loss");
    const uint64_t count = (uint64_t)trainer->desc.micro_batch * trainer->desc.length;
    hd_status status = check_tokens(trainer, tokens, count, 0);
    if (!status) status = check_tokens(trainer, targets, count, -1);
    if (!status && !trainer->loss) status = hdt_plan_loss(trainer);
    if (!status) status = hd_plan_write(trainer->loss, "tokens", tokens, count * sizeof *tokens);
    if (!status) status = hd_plan_write(trainer->loss, "targets", targets, count * sizeof *targets);
    const float share = share_of(targets, count);
    if (!status && trainer->starts) status = hd_plan_write(trainer->loss, "starts", trainer->starts, count * 4);
    if (!status && trainer->starts) status = hd_plan_write(trainer->loss, "positions", trainer->positions, count * 4);
    if (!status) status = hd_plan_write(trainer->loss, "share", &share, sizeof share);
    if (!status) status = hd_plan_run(trainer->loss, NULL);
    return status ? status : hd_plan_read(trainer->loss, "loss", out_loss, sizeof *out_loss);
}

hd_status hd_trainer_next(hd_trainer *trainer, const int32_t *tokens, size_t count, float temperature, uint64_t draw,
                          int32_t *out_token) {
    if (!trainer || !tokens || !out_token) return was_null(trainer, "hd_trainer_next");
    if (count == 0) return hdt_fail(trainer->context, HD_STATUS_ZERO_SIZE, "no tokens to go on from");
    const uint32_t length = trainer->desc.length;
    const size_t seen = count < length ? count : length;
    const int32_t last = (int32_t)seen - 1;
    uint32_t key[4];
    hd_status status = check_tokens(trainer, tokens + count - seen, seen, 0);
    memcpy(trainer->room, tokens + count - seen, seen * sizeof *tokens);
    hdt_key(trainer, draw, 0, key);
    if (!status && !trainer->next) status = hdt_plan_next(trainer);
    if (!status) status = hd_plan_write(trainer->next, "tokens", trainer->room, length * sizeof *tokens);
    if (!status) status = hd_plan_write(trainer->next, "last", &last, sizeof last);
    if (!status) status = hd_plan_write(trainer->next, "key", key, sizeof key);
    if (!status) status = hd_plan_write(trainer->next, "temperature", &temperature, sizeof temperature);
    if (!status) status = hd_plan_run(trainer->next, NULL);
    return status ? status : hd_plan_read(trainer->next, "next", out_token, sizeof *out_token);
}

/* ---- the weights that did best ---- */

hd_status hdt_make_best(hd_trainer *trainer) {
    for (int group = 0; group < HDT_GROUPS; group++) {
        const uint64_t count = trainer->layout.group_elements[group];
        if (count == 0 || trainer->best[group]) continue;
        trainer->best[group] = hdt_alloc(trainer->context, count, sizeof(float));
        if (!trainer->best[group]) return hdt_no_memory(trainer->context);
    }
    return HD_OK;
}

hd_status hd_trainer_keep(hd_trainer *trainer, float loss) {
    if (!trainer) return HD_STATUS_NULL_POINTER;
    if (trainer->steps == 0 || !isfinite(loss))
        return hdt_fail(trainer->context, HD_STATUS_INVALID_ARGUMENT,
                        "a loss of %g after %llu steps: weights are kept after the first step, with a finite loss",
                        (double)loss, (unsigned long long)trainer->steps);
    hd_status status = hdt_make_best(trainer);
    for (int group = 0; group < HDT_GROUPS && !status; group++)
        if (trainer->best[group])
            status = hdt_read_kept(trainer, group, HDT_WEIGHTS, trainer->best[group]);
    trainer->of_best = (hd_train_best){ .steps = status ? 0 : trainer->steps, .loss = loss };
    return status;
}

hd_train_best hd_trainer_best(const hd_trainer *trainer) {
    return trainer ? trainer->of_best : (hd_train_best){ 0 };
}

hd_status hd_trainer_use_best(hd_trainer *trainer) {
    if (!trainer) return HD_STATUS_NULL_POINTER;
    if (trainer->of_best.steps == 0)
        return hdt_fail(trainer->context, HD_STATUS_WRONG_STATE, "no weights were kept: hd_trainer_keep does it");
    hd_status status = hd_trainer_finish(trainer, NULL, NULL);
    for (int group = 0; group < HDT_GROUPS && !status; group++)
        if (trainer->best[group])
            status = hdt_write_kept(trainer, group, HDT_WEIGHTS, 0, trainer->best[group],
                                    trainer->layout.group_elements[group]);
    return status;
}

hd_status hd_trainer_hash(hd_trainer *trainer, uint64_t *out_hash) {
    if (!trainer || !out_hash) return HD_STATUS_NULL_POINTER;
    hd_status status = HD_OK;
    *out_hash = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < HDT_GROUPS * HDT_KEPT && !status; i++) {
        const uint64_t count = hd_dtype_bytes(hdt_kept_type(trainer, i / HDT_KEPT, i % HDT_KEPT),
                                              trainer->layout.group_elements[i / HDT_KEPT]);
        if (!trainer->states[i / HDT_KEPT][i % HDT_KEPT]) continue;
        uint8_t *bytes = hdt_alloc(trainer->context, count, 1);
        status = bytes ? hd_buffer_read(trainer->states[i / HDT_KEPT][i % HDT_KEPT], 0, bytes, count)
                       : hdt_no_memory(trainer->context);
        for (uint64_t k = 0; k < count && !status; k++) *out_hash = (*out_hash ^ bytes[k]) * UINT64_C(0x100000001b3);
        hdt_free(trainer->context, bytes, count, 1);
    }
    return status;
}
