/* export.c: a trained model as a GGUF file, under the names and keys that its family has there. */
#include "train/trainer.h"
#include <stdio.h>
#include <string.h>

/* A weight on its way into the file. */
typedef struct tensor {
    const hdt_parameter *parameter;
    const float *values;
} tensor;

typedef struct export {
    hd_trainer      *trainer;
    hd_model_writer *writer;
    float           *groups[HDT_GROUPS];
    tensor          *tensors;
} export;

/* ---- weights ---- */

static bool fill(void *user, uint64_t from, uint64_t bytes, void *out) {
    const tensor *t = user;
    const hd_shape shape = t->parameter->shape;
    float *to = out;
    if (!t->parameter->transposed) return memcpy(out, t->values + from / sizeof *to, bytes) != NULL;
    const uint64_t rows = (uint64_t)shape.dims[0], columns = (uint64_t)shape.dims[1];
    for (uint64_t i = from / sizeof *to; i < (from + bytes) / sizeof *to; i++)
        *to++ = t->values[i % rows * columns + i / rows];
    return true;
}

static hd_status put_weights(export *e) {
    const hdt_layout *layout = &e->trainer->layout;
    hd_context *context = e->trainer->context;
    hd_status status = hdt_read_groups(e->trainer, HDT_WEIGHTS, e->groups);
    e->tensors = status ? NULL : hdt_alloc(context, layout->count, sizeof *e->tensors);
    if (!status && !e->tensors) status = hdt_no_memory(context);
    for (uint32_t i = 0; i < layout->count && !status; i++) {
        const hdt_parameter *parameter = &layout->parameters[i];
        tensor *t = &e->tensors[i];
        const hd_shape is = parameter->shape;
        *t = (tensor){ parameter, e->groups[parameter->group] + parameter->first };
        hd_model_writer_tensor(e->writer, parameter->file_name, HD_F32,
                               parameter->transposed ? HD_SHAPE(is.dims[1], is.dims[0]) : is, fill, t);
    }
    return status;
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
    const hd_status status = hd_tokenizer_learn(e->trainer->context, "", 0, count, &bytes);
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
    hdt_free_groups(trainer, e.groups);
    hdt_free(trainer->context, e.tensors, trainer->layout.count, sizeof *e.tensors);
    return status;
}
