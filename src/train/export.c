/* export.c: a trained model as a GGUF file, under the names and keys that its family has there. */
#include "train/trainer.h"
#include <stdio.h>
#include <string.h>

/* A weight on its way into the file. */
typedef struct tensor {
    const hdt_parameter *parameter;
    const float *values;
    uint8_t     *packed;       /* of a ternary one: its rows in tq2_0; else NULL */
    uint64_t     packed_bytes;
} tensor;

typedef struct export {
    hd_trainer      *trainer;
    hd_model_writer *writer;
    float           *groups[HDT_GROUPS], *rounded[HDT_GROUPS];
    tensor          *tensors;
} export;

/* ---- weights ---- */

/* Elements from .. from + count - 1 in the file's order. */
static void take(const tensor *t, uint64_t from, uint64_t count, float *to) {
    const hd_shape shape = t->parameter->shape;
    const uint64_t rows = (uint64_t)shape.dims[0], columns = shape.rank > 1 ? (uint64_t)shape.dims[1] : 1;
    if (!t->parameter->transposed) memcpy(to, t->values + from, count * sizeof *to);
    else
        for (uint64_t i = from; i < from + count; i++) *to++ = t->values[i % rows * columns + i / rows];
}

static bool fill(void *user, uint64_t from, uint64_t bytes, void *out) {
    const tensor *t = user;
    if (t->packed) memcpy(out, t->packed + from, bytes);
    else take(t, from / sizeof(float), bytes / sizeof(float), out);
    return true;
}

/* Rows of -1, 0 and 1 times one scale are rows of tq2_0 as they are. */
static hd_status pack(hd_context *context, tensor *t) {
    const uint64_t count = hd_shape_elements(t->parameter->shape);
    t->packed_bytes = hd_dtype_bytes(HD_TQ2_0, count);
    t->packed = hdt_alloc(context, t->packed_bytes, 1);
    float *values = hdt_alloc(context, count, sizeof *values);
    hd_status status = t->packed && values ? HD_OK : hdt_no_memory(context);
    if (!status) take(t, 0, count, values);
    if (!status) status = hd_quantize(HD_TQ2_0, values, count, t->packed);
    hdt_free(context, values, count, sizeof *values);
    return status;
}

static hd_status put_weight(export *e, uint32_t i) {
    const hdt_parameter *parameter = &e->trainer->layout.parameters[i];
    const hd_shape is = parameter->shape;
    float *const *groups = parameter->ternary ? e->rounded : e->groups;
    tensor *t = &e->tensors[i];
    *t = (tensor){ .parameter = parameter, .values = groups[parameter->group] + parameter->first };
    const hd_status status = parameter->ternary ? pack(e->trainer->context, t) : HD_OK;
    if (status) return status;
    hd_model_writer_tensor(e->writer, parameter->file_name, parameter->ternary ? HD_TQ2_0 : HD_F32,
                           parameter->transposed ? HD_SHAPE(is.dims[1], is.dims[0]) : is, fill, t);
    return HD_OK;
}

static hd_status put_weights(export *e) {
    const uint32_t count = e->trainer->layout.count;
    hd_context *context = e->trainer->context;
    hd_status status = hdt_read_groups(e->trainer, HDT_WEIGHTS, e->groups);
    if (!status && e->trainer->layout.ternary) status = hdt_read_rounded(e->trainer, e->rounded);
    e->tensors = status ? NULL : hdt_alloc(context, count, sizeof *e->tensors);
    if (!status && !e->tensors) status = hdt_no_memory(context);
    for (uint32_t i = 0; i < count && !status; i++) status = put_weight(e, i);
    return status;
}

static void free_weights(export *e) {
    hd_context *context = e->trainer->context;
    for (uint32_t i = 0; e->tensors && i < e->trainer->layout.count; i++)
        hdt_free(context, e->tensors[i].packed, e->tensors[i].packed_bytes, 1);
    hdt_free(context, e->tensors, e->trainer->layout.count, sizeof *e->tensors);
    hdt_free_groups(e->trainer, e->groups);
    hdt_free_groups(e->trainer, e->rounded);
}

/* ---- keys ---- */

static void put_u32(hd_model_writer *writer, const char *family, const char *rest, uint32_t value) {
    char key[64];
    snprintf(key, sizeof key, "%s.%s", family, rest);
    hd_model_writer_u32(writer, key, value);
}
static void put_f32(hd_model_writer *writer, const char *family, const char *rest, double value) {
    char key[64];
    snprintf(key, sizeof key, "%s.%s", family, rest);
    hd_model_writer_f32(writer, key, (float)value);
}

void hdt_put_figures(const hd_gpt *model, hd_model_writer *writer) {
    const char *family = hdt_family_name(model->family);
    const bool gpt2 = model->family == HD_FAMILY_GPT2;
    hd_model_writer_text(writer, "general.architecture", family, strlen(family));
    hd_model_writer_text(writer, "general.type", "model", strlen("model"));
    put_u32(writer, family, "block_count", model->layers);
    put_u32(writer, family, "context_length", model->context);
    put_u32(writer, family, "embedding_length", model->width);
    put_u32(writer, family, "feed_forward_length", gpt2 ? 4 * model->width : model->feed_forward);
    put_u32(writer, family, "attention.head_count", model->heads);
    if (gpt2) {
        put_f32(writer, family, "attention.layer_norm_epsilon", (double)HDT_EPS);
        return;
    }
    put_u32(writer, family, "attention.head_count_kv", model->kv_heads);
    put_u32(writer, family, "attention.key_length", model->head_size);
    put_u32(writer, family, "attention.value_length", model->head_size);
    put_f32(writer, family, "attention.layer_norm_rms_epsilon", model->epsilon);
    put_u32(writer, family, "rope.dimension_count", model->head_size);
    put_f32(writer, family, "rope.freq_base", model->rope_theta);
}

/* A vocabulary of the 256 bytes, of which nothing is merged: what is learned from no text. */
static hd_status put_bytes(const export *e) {
    enum { BYTES = 256 };
    const uint32_t count = e->trainer->desc.model.vocabulary;
    hd_model *bytes;
    if (count < BYTES)
        return hdt_fail(e->trainer->context, HD_STATUS_INVALID_ARGUMENT,
                        "a model of %u tokens does not have the 256 bytes as its tokens", count);
    const hd_status status = hd_tokenizer_learn(e->trainer->context, "", 0, count, NULL, &bytes);
    if (!status) hd_model_writer_tokenizer(e->writer, bytes);
    hd_model_close(bytes);
    return status;
}

static hd_status put_tokenizer(const export *e, const hd_export_desc *desc) {
    hd_model_info info;
    if (!desc || (!desc->tokenizer && !desc->bytes)) return HD_OK;
    if (!desc->tokenizer) return put_bytes(e);
    const hd_status status = hd_model_get_info(desc->tokenizer, &info);
    if (status) return status;
    if (info.vocabulary != e->trainer->desc.model.vocabulary)
        return hdt_fail(e->trainer->context, HD_STATUS_INVALID_ARGUMENT,
                        "a tokenizer of %u tokens beside a model of %u", info.vocabulary,
                        e->trainer->desc.model.vocabulary);
    hd_model_writer_tokenizer(e->writer, desc->tokenizer);
    return HD_OK;
}

hd_status hd_trainer_export(hd_trainer *trainer, const char *path, const hd_export_desc *desc) {
    if (!trainer || !path) return HD_STATUS_NULL_POINTER;
    export e = { .trainer = trainer };
    if (trainer->base)
        return hdt_fail(trainer->context, HD_STATUS_WRONG_STATE,
                        "adapters are no model of their own: merge them with theirs");
    hd_status status = hd_model_writer_create(trainer->context, &e.writer);
    if (!status) hdt_put_figures(&trainer->desc.model, e.writer);
    if (!status && desc && desc->name)
        hd_model_writer_text(e.writer, "general.name", desc->name, strlen(desc->name));
    if (!status) status = put_tokenizer(&e, desc);
    if (!status) status = put_weights(&e);
    if (!status) status = hd_model_writer_write(e.writer, path);
    hd_model_writer_destroy(e.writer);
    free_weights(&e);
    return status;
}
