/* checkpoint.c: a trainer's state as a folder, written whole or not at all, and read as if anybody had made it. */
#define _POSIX_C_SOURCE 200809L
#include "train/safetensors.h"
#include "train/trainer.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "heddle training 1"
enum { SETTINGS_MOST = 1 << 20 };

/* ---- trainer.json: every field of a desc, by name ---- */

typedef enum kind { U32, U64, F32, F64, DECAY, MATH, FAMILY, TARGETS } kind;
typedef struct field {
    const char *name;
    kind        is;
    size_t      at;
} field;
#define FIELD(name, is, member) { name, is, offsetof(hd_trainer_desc, member) }
static const field fields[] = {
    FIELD("layers", U32, model.layers), FIELD("width", U32, model.width), FIELD("heads", U32, model.heads),
    FIELD("context", U32, model.context), FIELD("vocabulary", U32, model.vocabulary), FIELD("batch", U32, batch),
    FIELD("micro_batch", U32, micro_batch), FIELD("length", U32, length), FIELD("seed", U64, seed),
    FIELD("rate", F64, schedule.rate), FIELD("least_rate", F64, schedule.least), FIELD("warmup", U64, schedule.warmup),
    FIELD("decay_steps", U64, schedule.steps), FIELD("decay", DECAY, schedule.decay), FIELD("beta1", F64, adamw.beta1),
    FIELD("beta2", F64, adamw.beta2), FIELD("eps", F64, adamw.eps), FIELD("weight_decay", F64, weight_decay),
    FIELD("clip", F32, clip), FIELD("dropout", F32, dropout), FIELD("math", MATH, math), FIELD("data", U64, data),
};
static const field lora_fields[] = {
    FIELD("rank", U32, lora.rank), FIELD("alpha", F32, lora.alpha), FIELD("targets", TARGETS, lora.targets),
};
static const field muon_fields[] = { FIELD("rate", F64, muon_rate), FIELD("momentum", F64, muon_momentum) };
static const field sgd_fields[] = { FIELD("momentum", F64, sgd_momentum) };
static const field decoder_fields[] = {
    FIELD("family", FAMILY, model.family), FIELD("kv_heads", U32, model.kv_heads),
    FIELD("head_size", U32, model.head_size), FIELD("feed_forward", U32, model.feed_forward),
    FIELD("tied", U32, model.tied), FIELD("epsilon", F64, model.epsilon),
    FIELD("rope_theta", F64, model.rope_theta),
};
static const char *const decays[] = { "none", "linear", "cosine" };
static const char *const maths[] = { "default", "fast", "exact" };
static const char *const families[] = { "gpt2", "llama", "qwen3" };
_Static_assert(HD_DECAY_COSINE == 2 && HD_FAMILY_LLAMA == 1 && HD_FAMILY_QWEN3 == 2 && HD_MATH_DEFAULT == 0 &&
               HD_MATH_FAST == 1 && HD_MATH_EXACT == 2, "names stand in the enums' order");

const char *hdt_family_name(hd_family family) { return families[family]; }

/* A 64-bit number as text: JSON's numbers are doubles to many readers. */
static json_t *whole(uint64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    return json_string(text);
}
static bool whole_of(const json_t *value, uint64_t *out) {
    const char *text = json_string_value(value);
    char *end = NULL;
    if (!text || text[0] < '0' || text[0] > '9' || strlen(text) > 20) return false;
    *out = strtoull(text, &end, 10);
    return *end == 0;
}

static json_t *value_of(const field *f, const void *at) {
    switch (f->is) {
    case U32: return json_integer(*(const uint32_t *)at);
    case U64: return whole(*(const uint64_t *)at);
    case F32: return json_real((double)*(const float *)at);
    case F64: return json_real(*(const double *)at);
    case DECAY: return json_string(decays[*(const hd_decay *)at]);
    case FAMILY: return json_string(hdt_family_name(*(const hd_family *)at));
    case TARGETS: return json_string(at);
    default: return json_string(maths[*(const hd_math *)at]);
    }
}

static int name_of(const json_t *value, const char *const *names, int count) {
    const char *text = json_string_value(value);
    for (int i = 0; text && i < count; i++)
        if (strcmp(text, names[i]) == 0) return i;
    return -1;
}

static bool take_value(const field *f, const json_t *value, void *at) {
    const json_int_t number = json_integer_value(value);
    int name;
    const char *text = json_string_value(value);
    switch (f->is) {
    case U32: *(uint32_t *)at = (uint32_t)number; return json_is_integer(value) && number >= 0 && number <= UINT32_MAX;
    case U64: return whole_of(value, at);
    case F32: *(float *)at = (float)json_number_value(value); return json_is_number(value);
    case F64: *(double *)at = json_number_value(value); return json_is_number(value);
    case TARGETS:
        if (!text || strlen(text) >= sizeof ((hd_lora_desc *)0)->targets) return false;
        strcpy(at, text);
        return true;
    case DECAY: name = name_of(value, decays, HDT_COUNT(decays)); *(hd_decay *)at = (hd_decay)(name > 0 ? name : 0);
    return name >= 0;
    case FAMILY: name = name_of(value, families, HDT_COUNT(families));
    *(hd_family *)at = (hd_family)(name > 0 ? name : 0);
    return name >= 0;
    default: name = name_of(value, maths, HDT_COUNT(maths)); *(hd_math *)at = (hd_math)(name > 0 ? name : 0);
    return name >= 0;
    }
}

static bool put_fields(json_t *root, const field *list, size_t count, const hd_trainer_desc *desc) {
    bool good = root != NULL;
    for (size_t i = 0; i < count && good; i++)
        good = json_object_set_new(root, list[i].name, value_of(&list[i], (const char *)desc + list[i].at)) == 0;
    return good;
}

static hd_status take_fields(hd_context *context, const char *path, const json_t *root, const field *list, size_t count,
                             hd_trainer_desc *desc) {
    for (size_t i = 0; i < count; i++)
        if (!take_value(&list[i], json_object_get(root, list[i].name), (char *)desc + list[i].at))
            return hdt_fail(context, HD_STATUS_PARSE, "%s: %s is missing or of no use", path, list[i].name);
    return HD_OK;
}

static char *settings_of(const hd_trainer *trainer) {
    json_t *root = json_object(), *lora = json_object(), *muon = json_object(), *decoder = json_object(),
           *sgd = json_object();
    bool good = json_object_set_new(root, "format", json_string(FORMAT)) == 0;
    good = good && json_object_set_new(root, "step", whole(trainer->steps)) == 0;
    good = good && put_fields(root, fields, HDT_COUNT(fields), &trainer->desc);
    if (trainer->base)
        good = good && put_fields(lora, lora_fields, HDT_COUNT(lora_fields), &trainer->desc) &&
               json_object_set(root, "lora", lora) == 0;
    if (trainer->desc.precision == HD_PRECISION_BF16)
        good = good && json_object_set_new(root, "precision", json_string("bf16")) == 0;
    if (trainer->desc.narrow) good = good && json_object_set_new(root, "weights", json_string("bf16")) == 0;
    if (trainer->desc.ternary) good = good && json_object_set_new(root, "ternary", json_true()) == 0;
    if (trainer->desc.packed) good = good && json_object_set_new(root, "packed", json_true()) == 0;
    if (trainer->desc.recompute) good = good && json_object_set_new(root, "recompute", json_true()) == 0;
    if (trainer->layout.sketch)
        good = good && put_fields(decoder, decoder_fields, HDT_COUNT(decoder_fields), &trainer->desc) &&
               json_object_set(root, "decoder", decoder) == 0;
    if (trainer->desc.optimizer == HD_OPTIMIZER_MUON)
        good = good && put_fields(muon, muon_fields, HDT_COUNT(muon_fields), &trainer->desc) &&
               json_object_set(root, "muon", muon) == 0;
    if (trainer->desc.optimizer == HD_OPTIMIZER_SGD)
        good = good && put_fields(sgd, sgd_fields, HDT_COUNT(sgd_fields), &trainer->desc) &&
               json_object_set(root, "sgd", sgd) == 0;
    if (trainer->of_best.steps)
        good = good && json_object_set_new(root, "best", json_pack("{s:o, s:f}", "steps", whole(trainer->of_best.steps),
                                                                   "loss", (double)trainer->of_best.loss)) == 0;
    json_decref(lora);
    json_decref(muon);
    json_decref(sgd);
    json_decref(decoder);
    char *text = good ? json_dumps(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    return text;
}

/* For Hugging Face's transformers. */
static json_t *gpt2_config(const hd_gpt *model) {
    return json_pack("{s:[s], s:s, s:i, s:i, s:i, s:i, s:i, s:s, s:f, s:b}", "architectures", "GPT2LMHeadModel",
                     "model_type", "gpt2", "n_layer", (int)model->layers, "n_head", (int)model->heads, "n_embd",
                     (int)model->width, "n_positions", (int)model->context, "vocab_size", (int)model->vocabulary,
                     "activation_function", "gelu_new", "layer_norm_epsilon", 1e-5, "tie_word_embeddings", 1);
}

/* No token begins or ends a text: the numbers that a class takes for such tokens where none are named are bytes
 * here. */
static json_t *decoder_config(const hd_gpt *model) {
    return json_pack("{s:[s], s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:f, s:f, s:b, s:b, s:s, s:n, s:n}",
                     "architectures", model->family == HD_FAMILY_LLAMA ? "LlamaForCausalLM" : "Qwen3ForCausalLM",
                     "model_type", hdt_family_name(model->family), "hidden_size", (int)model->width,
                     "num_hidden_layers", (int)model->layers, "num_attention_heads", (int)model->heads,
                     "num_key_value_heads", (int)model->kv_heads, "head_dim", (int)model->head_size,
                     "intermediate_size", (int)model->feed_forward, "max_position_embeddings", (int)model->context,
                     "vocab_size", (int)model->vocabulary, "hidden_act", "silu", "rms_norm_eps", model->epsilon,
                     "rope_theta", model->rope_theta, "tie_word_embeddings", model->tied != 0, "attention_bias", 0,
                     "torch_dtype", "float32", "bos_token_id", "eos_token_id");
}

static char *config_of(const hd_gpt *model) {
    json_t *root = model->family == HD_FAMILY_GPT2 ? gpt2_config(model) : decoder_config(model);
    char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    return text;
}

static hd_status take_best(hd_context *context, const char *path, const json_t *best, hd_train_best *out) {
    const json_t *loss = json_object_get(best, "loss");
    *out = (hd_train_best){ .loss = (float)json_number_value(loss) };
    if (!best || (whole_of(json_object_get(best, "steps"), &out->steps) && out->steps && json_is_number(loss) &&
                  isfinite(out->loss)))
        return HD_OK;
    return hdt_fail(context, HD_STATUS_PARSE, "%s: best is of no use", path);
}

/* Where nothing is said it is f32: what products read, and what weights are kept as. */
static hd_status take_type(hd_context *context, const char *path, const json_t *root, const char *name,
                           bool *out_bf16) {
    const json_t *said = json_object_get(root, name);
    const char *text = json_string_value(said);
    *out_bf16 = said != NULL;
    if (!said || (text && strcmp(text, "bf16") == 0)) return HD_OK;
    return hdt_fail(context, HD_STATUS_PARSE, "%s: %s is of no use", path, name);
}

static hd_status take_types(hd_context *context, const char *path, const json_t *root, hd_trainer_desc *desc) {
    bool products, weights;
    hd_status status = take_type(context, path, root, "precision", &products);
    if (!status) status = take_type(context, path, root, "weights", &weights);
    if (status) return status;
    desc->precision = products ? HD_PRECISION_BF16 : HD_PRECISION_F32;
    desc->narrow = weights;
    return HD_OK;
}

/* Where neither is there it is AdamW. */
static hd_status take_optimizer(hd_context *context, const char *path, const json_t *root, hd_trainer_desc *desc) {
    const json_t *muon = json_object_get(root, "muon"), *sgd = json_object_get(root, "sgd");
    if (muon && sgd) return hdt_fail(context, HD_STATUS_PARSE, "%s: muon and sgd are two optimizers", path);
    desc->optimizer = muon ? HD_OPTIMIZER_MUON : sgd ? HD_OPTIMIZER_SGD : HD_OPTIMIZER_ADAMW;
    if (muon) return take_fields(context, path, muon, muon_fields, HDT_COUNT(muon_fields), desc);
    return sgd ? take_fields(context, path, sgd, sgd_fields, HDT_COUNT(sgd_fields), desc) : HD_OK;
}

static hd_status read_settings(hd_context *context, const char *folder, hd_trainer_desc *out_desc, uint64_t *out_step,
                               hd_train_best *out_best) {
    char path[HDT_PATH_ROOM];
    hdt_map map;
    json_error_t why;
    memset(out_desc, 0, sizeof *out_desc);
    if (snprintf(path, sizeof path, "%s/trainer.json", folder) >= (int)sizeof path)
        return hdt_fail(context, HD_STATUS_LIMIT, "the path %.60s... is too long", folder);
    hd_status status = hdt_map_open(context, path, &map);
    if (status) return status;
    if (map.count > SETTINGS_MOST) status = hdt_fail(context, HD_STATUS_LIMIT, "%s has more than 1 MiB", path);
    json_t *root = status ? NULL : json_loadb((const char *)map.bytes, (size_t)map.count, JSON_REJECT_DUPLICATES, &why);
    hdt_map_close(&map);
    const char *format = json_string_value(json_object_get(root, "format"));
    if (!status && !root) status = hdt_fail(context, HD_STATUS_PARSE, "%s is no JSON: %s", path, why.text);
    if (!status && (!format || strcmp(format, FORMAT) != 0))
        status = hdt_fail(context, HD_STATUS_PARSE, "%s does not say \"format\": \"" FORMAT "\"", path);
    if (!status && !whole_of(json_object_get(root, "step"), out_step))
        status = hdt_fail(context, HD_STATUS_PARSE, "%s: step is no whole number in quotes", path);
    const json_t *lora = json_object_get(root, "lora"), *decoder = json_object_get(root, "decoder");
    if (!status) status = take_fields(context, path, root, fields, HDT_COUNT(fields), out_desc);
    if (!status && lora) status = take_fields(context, path, lora, lora_fields, HDT_COUNT(lora_fields), out_desc);
    out_desc->ternary = json_is_true(json_object_get(root, "ternary"));
    out_desc->packed = json_is_true(json_object_get(root, "packed"));
    out_desc->recompute = json_is_true(json_object_get(root, "recompute"));
    if (!status) status = take_types(context, path, root, out_desc);
    if (!status && decoder)
        status = take_fields(context, path, decoder, decoder_fields, HDT_COUNT(decoder_fields), out_desc);
    if (!status) status = take_optimizer(context, path, root, out_desc);
    if (!status) status = take_best(context, path, json_object_get(root, "best"), out_best);
    json_decref(root);
    return status ? status : hdt_check_desc(context, out_desc);
}

hd_status hd_trainer_read(hd_context *context, const char *folder, hd_trainer_desc *out_desc, uint64_t *out_step) {
    hd_train_best best;
    if (!context || !folder || !out_desc || !out_step) return HD_STATUS_NULL_POINTER;
    return read_settings(context, folder, out_desc, out_step, &best);
}

/* ---- tensors ---- */

typedef char tensor_name[HDT_NAME + 24];

/* False: nothing of the kind is kept of it. */
static bool name_tensor(const hd_trainer *trainer, const hdt_parameter *parameter, int kept, tensor_name out) {
    static const char *const endings[HDT_ALL] = { "", ".exp_avg", ".exp_avg_sq", "" };
    const bool one = !hdt_keeps(trainer, parameter->group, HDT_SECOND);
    snprintf(out, sizeof(tensor_name), "%s%s", parameter->name,
             one && kept == HDT_FIRST ? ".momentum_buffer" : endings[kept]);
    return hdt_keeps(trainer, parameter->group, kept);
}

/* The same numbers in bf16, in their place. */
static hd_status make_narrow(hd_context *context, float *values, uint64_t count) {
    const uint64_t bytes = hd_dtype_bytes(HD_BF16, count);
    void *narrow = hdt_alloc(context, bytes, 1);
    if (!narrow) return hdt_no_memory(context);
    const hd_status status = hd_quantize(HD_BF16, values, count, narrow);
    memcpy(values, narrow, bytes);
    hdt_free(context, narrow, bytes, 1);
    return status;
}

/* Puts the rows of a weight into the other order: as checkpoints have them, or as the state has. */
static hd_status reorder(const hd_trainer *trainer, const hdt_parameter *parameter, bool to_state, float *values) {
    const uint64_t rows = (uint64_t)parameter->shape.dims[0], elements = hd_shape_elements(parameter->shape),
                   row_bytes = elements / rows * sizeof *values;
    char *old = parameter->heads ? hdt_alloc(trainer->context, elements, sizeof *values) : NULL;
    if (parameter->heads && !old) return hdt_no_memory(trainer->context);
    if (old) memcpy(old, values, elements * sizeof *values);
    for (uint64_t row = 0; old && row < rows; row++) {
        const uint64_t other = hdt_row_in_transformers(row, rows, parameter->heads);
        memcpy((char *)values + (to_state ? row : other) * row_bytes, old + (to_state ? other : row) * row_bytes,
               row_bytes);
    }
    hdt_free(trainer->context, old, elements, sizeof *values);
    return HD_OK;
}

/* Writes states `from` .. `to` as one file. */
static hd_status write_states(const hd_trainer *trainer, const char *path, int from, int to) {
    const hdt_layout *layout = &trainer->layout;
    const uint64_t most = (uint64_t)layout->count * HDT_KEPT;
    float *held[HDT_ALL][HDT_GROUPS] = { { NULL } };
    hd_safetensor *tensors = hdt_alloc(trainer->context, most, sizeof *tensors);
    tensor_name *names = hdt_alloc(trainer->context, most, sizeof *names);
    hd_status status = tensors && names ? HD_OK : hdt_no_memory(trainer->context);
    size_t count = 0;
    for (int kept = from; kept < to && !status; kept++) {
        status = hdt_read_groups(trainer, kept, held[kept]);
        for (uint32_t i = 0; i < layout->count && !status; i++) {
            const hdt_parameter *parameter = &layout->parameters[i];
            if (!name_tensor(trainer, parameter, kept, names[count])) continue;
            float *values = held[kept][parameter->group] + parameter->first;
            const hd_dtype dtype = hdt_kept_type(trainer, parameter->group, kept);
            tensors[count] = (hd_safetensor){ .name = names[count], .dtype = dtype, .shape = parameter->shape,
                                              .data = values };
            count++;
            status = reorder(trainer, parameter, false, values);
            if (!status && dtype == HD_BF16)
                status = make_narrow(trainer->context, values, hd_shape_elements(parameter->shape));
        }
    }
    if (!status)
        status =
            hd_safetensors_write(trainer->context, path, tensors, count, (const char *const[]){ "format", "pt", NULL });
    for (int kept = from; kept < to; kept++) hdt_free_groups(trainer, held[kept]);
    hdt_free(trainer->context, tensors, most, sizeof *tensors);
    hdt_free(trainer->context, names, most, sizeof *names);
    return status;
}

/* A checkpoint's tensor into its place. */
static hd_status take_tensor(hd_trainer *trainer, const hdt_parameter *parameter, int kept,
                             const hd_safetensor *tensor) {
    const uint64_t count = hd_shape_elements(parameter->shape);
    float *values = hdt_alloc(trainer->context, count, sizeof *values);
    if (!values) return hdt_no_memory(trainer->context);
    hd_status status = hd_dequantize(tensor->dtype, tensor->data, count, values);
    if (!status) status = reorder(trainer, parameter, true, values);
    if (!status && kept == HDT_BEST)
        memcpy(trainer->best[parameter->group] + parameter->first, values, count * sizeof *values);
    else if (!status)
        status = hdt_write_kept(trainer, parameter->group, kept, parameter->first, values, count);
    hdt_free(trainer->context, values, count, sizeof *values);
    return status;
}

static hd_status read_states(hd_trainer *trainer, const char *path, int from, int to) {
    const hdt_layout *layout = &trainer->layout;
    hd_safetensors *file = NULL;
    hd_status status = hd_safetensors_open(trainer->context, path, &file);
    for (int kept = from; kept < to && !status; kept++)
        for (uint32_t i = 0; i < layout->count && !status; i++) {
            const hdt_parameter *parameter = &layout->parameters[i];
            tensor_name name;
            if (!name_tensor(trainer, parameter, kept, name)) continue;
            const hd_dtype dtype = hdt_kept_type(trainer, parameter->group, kept);
            const hd_safetensor *tensor = hd_safetensors_find(file, name);
            if (!tensor)
                status = hdt_fail(trainer->context, HD_STATUS_NAME_NOT_FOUND, "%s has no tensor '%s'", path, name);
            else if (tensor->dtype != dtype)
                status = hdt_fail(trainer->context, HD_STATUS_TYPE, "%s: '%s' is %s, and must be %s", path, name,
                                  tensor->type, dtype == HD_F32 ? "F32" : "BF16");
            else if (memcmp(&tensor->shape, &parameter->shape, sizeof tensor->shape) != 0)
                status = hdt_fail(trainer->context, HD_STATUS_SHAPE, "%s: '%s' has another shape than this model's",
                                  path, name);
            else status = take_tensor(trainer, parameter, kept, tensor);
        }
    hd_safetensors_close(file);
    return status;
}

/* ---- the folder ---- */

/* "FOLDER/NAME" or "FOLDER.new/NAME". */
static hd_status path_in(hd_context *context, const char *folder, const char *suffix, const char *name,
                         char out[HDT_PATH_ROOM]) {
    if (snprintf(out, HDT_PATH_ROOM, "%s%s%s", folder, suffix, name) >= HDT_PATH_ROOM)
        return hdt_fail(context, HD_STATUS_LIMIT, "the path %.60s... is too long", folder);
    return HD_OK;
}

static hd_status write_text(hd_context *context, const char *folder, const char *name, char *text) {
    char path[HDT_PATH_ROOM];
    hd_status status = text ? path_in(context, folder, ".new", name, path) : hdt_no_memory(context);
    if (!status) status = hdt_write_file(context, path, (const hdt_piece[]){ { text, strlen(text) }, { "\n", 1 } }, 2);
    free(text);
    return status;
}

static hd_status write_tokenizer(const hd_trainer *trainer, const char *folder) {
    char path[HDT_PATH_ROOM];
    hd_model_writer *writer;
    hd_status status = path_in(trainer->context, folder, ".new", "/tokenizer.gguf", path);
    if (!status) status = hd_model_writer_create(trainer->context, &writer);
    if (status) return status;
    hd_model_writer_tokenizer(writer, trainer->desc.tokenizer);
    status = hd_model_writer_write(writer, path);
    hd_model_writer_destroy(writer);
    return status;
}

hd_status hd_trainer_save(hd_trainer *trainer, const char *folder) {
    if (!trainer || !folder) return HD_STATUS_NULL_POINTER;
    hd_context *context = trainer->context;
    char part[HDT_PATH_ROOM], weights[HDT_PATH_ROOM], optimizer[HDT_PATH_ROOM], best[HDT_PATH_ROOM];
    hd_status status = path_in(context, folder, ".new", "", part);
    if (!status) status = path_in(context, folder, ".new", "/weights.safetensors", weights);
    if (!status) status = path_in(context, folder, ".new", "/optimizer.safetensors", optimizer);
    if (!status) status = path_in(context, folder, ".new", "/best.safetensors", best);
    if (status) return status;
    if (hdt_is_there(folder)) return hdt_fail(context, HD_STATUS_NAME_TAKEN, "%s is there already", folder);
    hdt_remove_folder(part); /* of a run that was ended in the middle */
    status = hdt_make_folder(context, part);
    if (!status) status = write_states(trainer, weights, HDT_WEIGHTS, HDT_FIRST);
    if (!status) status = write_states(trainer, optimizer, HDT_FIRST, HDT_KEPT);
    if (!status && trainer->of_best.steps) status = write_states(trainer, best, HDT_BEST, HDT_ALL);
    if (!status && !trainer->base)
        status = write_text(context, folder, "/config.json", config_of(&trainer->desc.model));
    if (!status && trainer->desc.tokenizer) status = write_tokenizer(trainer, folder);
    if (!status) status = write_text(context, folder, "/trainer.json", settings_of(trainer));
    if (!status) status = hdt_rename(context, part, folder);
    if (status) hdt_remove_folder(part);
    return status;
}

hd_status hd_trainer_load(hd_trainer *trainer, const char *folder) {
    if (!trainer || !folder) return HD_STATUS_NULL_POINTER;
    char weights[HDT_PATH_ROOM], optimizer[HDT_PATH_ROOM], best[HDT_PATH_ROOM];
    hd_trainer_desc desc;
    hd_train_best of_best = { 0 };
    uint64_t step = 0;
    hd_status status = hd_trainer_finish(trainer, NULL, NULL);
    if (!status) status = read_settings(trainer->context, folder, &desc, &step, &of_best);
    if (!status) status = path_in(trainer->context, folder, "", "/weights.safetensors", weights);
    if (!status) status = path_in(trainer->context, folder, "", "/optimizer.safetensors", optimizer);
    if (!status) status = path_in(trainer->context, folder, "", "/best.safetensors", best);
    if (!status) status = read_states(trainer, weights, HDT_WEIGHTS, HDT_FIRST);
    if (!status) status = read_states(trainer, optimizer, HDT_FIRST, HDT_KEPT);
    if (!status && of_best.steps) status = hdt_make_best(trainer);
    if (!status && of_best.steps) status = read_states(trainer, best, HDT_BEST, HDT_ALL);
    if (status) return status;
    trainer->steps = step;
    trainer->of_best = of_best;
    return status;
}
