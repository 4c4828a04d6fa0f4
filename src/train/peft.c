/* peft.c: adapters as Hugging Face's PEFT keeps them: a folder with adapter_config.json and adapter_model.safetensors,
 * whose tensors are called after the modules of transformers. Of families whose queries and keys turn neighbouring
 * elements, GGUF has the rows of each head in another order than transformers, and so has B. */
#define _POSIX_C_SOURCE 200809L
#include "train/support.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_MOST = 1 << 20, TENSORS_MOST = 1 << 15, NAME_ROOM = 160, WEIGHT_ROOM = 64 };
#define PREFIX "base_model.model.model.layers."
#define CONFIG "adapter_config.json"
#define TENSORS "adapter_model.safetensors"

/* ---- names ---- */

typedef struct family { const char *architecture; bool turns_neighbours; } family;
static const family families[] = { { "llama", true },  { "qwen2", false },  { "qwen3", false }, { "phi3", false },
                                   { "gemma", false }, { "gemma2", false }, { "gemma3", false } };
static const struct { const char *gguf, *module; } parts[] = {
    { "attn_q", "self_attn.q_proj" }, { "attn_k", "self_attn.k_proj" }, { "attn_v", "self_attn.v_proj" },
    { "attn_qkv", "self_attn.qkv_proj" }, { "attn_output", "self_attn.o_proj" }, { "ffn_gate", "mlp.gate_proj" },
    { "ffn_up", "mlp.up_proj" }, { "ffn_up", "mlp.gate_up_proj" }, { "ffn_down", "mlp.down_proj" } };

static const family *family_of(const hd_model_info *info) {
    for (size_t i = 0; i < HDT_COUNT(families); i++)
        if (strcmp(families[i].architecture, info->architecture) == 0) return &families[i];
    return NULL;
}

static hd_status find_family(hd_context *context, const hd_model *model, hd_model_info *out_info, const family **out) {
    const hd_status status = hd_model_get_info(model, out_info);
    if (status) return status;
    *out = family_of(out_info);
    if (*out) return HD_OK;
    return hdt_fail(context, HD_STATUS_UNSUPPORTED,
                    "heddle does not know transformers' names of the weights of a %s: take a GGUF adapter",
                    out_info->architecture);
}

/* "blk.3.attn_q.weight" of "...layers.3.self_attn.q_proj". */
static bool weight_of(const char *name, size_t length, char out[WEIGHT_ROOM]) {
    unsigned layer;
    int used = 0;
    if (length >= NAME_ROOM || sscanf(name, PREFIX "%5u.%n", &layer, &used) != 1 || used == 0 || (size_t)used > length)
        return false;
    for (size_t i = 0; i < HDT_COUNT(parts); i++)
        if (strlen(parts[i].module) == length - (size_t)used &&
            memcmp(parts[i].module, name + used, length - (size_t)used) == 0)
            return snprintf(out, WEIGHT_ROOM, "blk.%u.%s.weight", layer, parts[i].gguf) < WEIGHT_ROOM;
    return false;
}

/* The other way. @param fused whether ffn_up holds the gates too; false: there is no such module */
static const char *module_of(const char *weight, bool fused, unsigned *out_layer) {
    int used = 0;
    if (sscanf(weight, "blk.%5u.%n", out_layer, &used) != 1 || used == 0) return NULL;
    for (size_t i = 0; i < HDT_COUNT(parts); i++) {
        const size_t length = strlen(parts[i].gguf);
        if (strncmp(weight + used, parts[i].gguf, length) != 0 || strcmp(weight + used + length, ".weight") != 0)
            continue;
        if (strcmp(parts[i].gguf, "ffn_up") == 0 && fused != (strcmp(parts[i].module, "mlp.gate_up_proj") == 0))
            continue;
        return parts[i].module;
    }
    return NULL;
}

/* Heads whose rows are put into another order; 0: none are. */
static uint32_t turned_heads(const family *f, const hd_model_info *info, const char *weight) {
    if (!f->turns_neighbours) return 0;
    return strstr(weight, ".attn_q.") ? info->heads : strstr(weight, ".attn_k.") ? info->kv_heads : 0;
}

/* ---- reading ---- */

typedef struct reading {
    hd_context      *context;
    const char      *folder;
    hd_model_info    info;
    const family    *family;
    json_t          *config;
    hd_safetensors  *file;
    hd_adapter_pair *pairs;
    char           (*names)[WEIGHT_ROOM];
    float          **floats;     /* A and B of each pair */
    size_t           most, count;
} reading;

static hd_status bad(const reading *r, const char *key, const char *why) {
    return hdt_fail(r->context, HD_STATUS_UNSUPPORTED, "%s/" CONFIG ": %s %s", r->folder, key, why);
}

static hd_status read_config(reading *r) {
    char path[HDT_PATH_ROOM];
    hdt_map map;
    json_error_t why;
    if (snprintf(path, sizeof path, "%s/" CONFIG, r->folder) >= (int)sizeof path)
        return hdt_fail(r->context, HD_STATUS_LIMIT, "the path %.60s... is too long", r->folder);
    hd_status status = hdt_map_open(r->context, path, &map);
    if (status) return status;
    if (map.count > CONFIG_MOST) status = hdt_fail(r->context, HD_STATUS_LIMIT, "%s has more than 1 MiB", path);
    else r->config = json_loadb((const char *)map.bytes, (size_t)map.count, JSON_REJECT_DUPLICATES, &why);
    hdt_map_close(&map);
    if (!status && !json_is_object(r->config))
        status = hdt_fail(r->context, HD_STATUS_PARSE, "%s is no JSON object: %s", path, r->config ? "" : why.text);
    return status;
}

/* What would change the answers and is not computed is refused. */
static hd_status check_config(const reading *r) {
    static const char *const off[] = { "use_dora", "use_bdlora", "lora_bias", "use_qalora", "fan_in_fan_out" };
    static const char *const empty[] = { "rank_pattern", "alpha_pattern", "modules_to_save", "trainable_token_indices",
                                         "layer_replication",
                                         "alora_invocation_tokens", "target_parameters", "arrow_config",
                                         "megatron_config", "kasa_config",
                                         "velora_config", "monteclora_config" };
    const json_t *type = json_object_get(r->config, "peft_type"), *bias = json_object_get(r->config, "bias");
    if (!json_is_string(type) || strcmp(json_string_value(type), "LORA") != 0)
        return bad(r, "peft_type", "is not LORA");
    if (bias && (!json_is_string(bias) || strcmp(json_string_value(bias), "none") != 0))
        return bad(r, "bias", "is not none");
    const char *begins = json_string_value(json_object_get(r->config, "init_lora_weights"));
    if (begins && strcmp(begins, "gaussian") != 0 && strcmp(begins, "orthogonal") != 0)
        return bad(r, "init_lora_weights",
                   "may have changed the base model too: convert that adapter to plain LoRA first");
    for (size_t i = 0; i < HDT_COUNT(off); i++) {
        const json_t *value = json_object_get(r->config, off[i]);
        if (value && !json_is_false(value) && !json_is_null(value))
            return bad(r, off[i], "is set, which heddle does not compute");
    }
    for (size_t i = 0; i < HDT_COUNT(empty); i++) {
        const json_t *value = json_object_get(r->config, empty[i]);
        if (value && !json_is_null(value) && json_object_size(value) + json_array_size(value) > 0)
            return bad(r, empty[i], "is set, which heddle does not compute");
    }
    return HD_OK;
}

/* alpha in GGUF's sense, whose scale is alpha / rank. */
static hd_status read_alpha(const reading *r, float *out) {
    const json_t *alpha = json_object_get(r->config, "lora_alpha"), *rank = json_object_get(r->config, "r");
    if (!json_is_number(alpha) || !isfinite(json_number_value(alpha)) || fabs(json_number_value(alpha)) > 1e9)
        return bad(r, "lora_alpha", "is no number");
    if (!json_is_integer(rank) || json_integer_value(rank) < 1 || json_integer_value(rank) > 1 << 16)
        return bad(r, "r", "is no rank");
    const double more =
        json_is_true(json_object_get(r->config, "use_rslora")) ? sqrt((double)json_integer_value(rank)) : 1;
    *out = (float)(json_number_value(alpha) * more);
    return *out != 0 ? HD_OK : bad(r, "lora_alpha", "is 0: the adapter does nothing");
}

/* A tensor as f32, its rows in GGUF's order. */
static hd_status take_floats(const reading *r, const hd_safetensor *tensor, uint32_t heads, float *out) {
    const uint64_t rows = (uint64_t)tensor->shape.dims[0], columns = (uint64_t)tensor->shape.dims[1];
    if (heads && (rows % heads != 0 || rows / heads % 2 != 0))
        return hdt_fail(r->context, HD_STATUS_SHAPE, "%s: its %llu rows are no %u heads of an even size", tensor->name,
                        (unsigned long long)rows, heads);
    for (uint64_t row = 0; row < rows; row++) {
        const uint64_t at = hdt_row_in_transformers(row, rows, heads) * columns;
        const char *from = (const char *)tensor->data + hd_dtype_bytes(tensor->dtype, at);
        if (hd_dequantize(tensor->dtype, from, columns, out + row * columns))
            return hdt_fail(r->context, HD_STATUS_TYPE, "%s cannot be read", tensor->name);
    }
    for (uint64_t i = 0; i < rows * columns; i++)
        if (!isfinite(out[i])) return hdt_fail(r->context, HD_STATUS_PARSE, "%s holds NaN or infinity", tensor->name);
    return HD_OK;
}

static bool is_matrix(const hd_safetensor *tensor) {
    return (tensor->dtype == HD_F32 || tensor->dtype == HD_F16 || tensor->dtype == HD_BF16) &&
           tensor->shape.rank == 2 && tensor->shape.dims[0] <= UINT32_MAX && tensor->shape.dims[1] <= UINT32_MAX;
}

static hd_status read_pair(reading *r, const hd_safetensor *a, size_t stem) {
    char other[NAME_ROOM + 32];
    const size_t at = r->count;
    hd_adapter_pair *pair = &r->pairs[at];
    if (!weight_of(a->name, stem, r->names[at]))
        return hdt_fail(r->context, HD_STATUS_UNSUPPORTED, "%s/" TENSORS ": heddle does not know the weight of %.100s",
                        r->folder, a->name);
    snprintf(other, sizeof other, "%.*s.lora_B.weight", (int)stem, a->name);
    const hd_safetensor *b = hd_safetensors_find(r->file, other);
    if (!b) return hdt_fail(r->context, HD_STATUS_NAME_NOT_FOUND, "%s/" TENSORS " has no %s", r->folder, other);
    if (!is_matrix(a) || !is_matrix(b) || b->shape.dims[1] != a->shape.dims[0])
        return hdt_fail(r->context, HD_STATUS_SHAPE,
                        "%s: the halves do not fit together, or are none of F32, F16 and BF16", a->name);
    *pair = (hd_adapter_pair){ .weight = r->names[at],
                               .rank = (uint32_t)a->shape.dims[0],
                               .rows = (uint32_t)b->shape.dims[0],
                               .columns = (uint32_t)a->shape.dims[1] };
    r->floats[2 * at] = hdt_alloc(r->context, (uint64_t)pair->rank * pair->columns, sizeof(float));
    r->floats[2 * at + 1] = hdt_alloc(r->context, (uint64_t)pair->rank * pair->rows, sizeof(float));
    r->count++;
    if (!r->floats[2 * at] || !r->floats[2 * at + 1]) return hdt_no_memory(r->context);
    pair->a = r->floats[2 * at];
    pair->b = r->floats[2 * at + 1];
    hd_status status = take_floats(r, a, 0, r->floats[2 * at]);
    if (!status) status = take_floats(r, b, turned_heads(r->family, &r->info, pair->weight), r->floats[2 * at + 1]);
    return status;
}

static hd_status read_tensors(reading *r) {
    static const char ending[] = ".lora_A.weight";
    char path[HDT_PATH_ROOM];
    if (snprintf(path, sizeof path, "%s/" TENSORS, r->folder) >= (int)sizeof path)
        return hdt_fail(r->context, HD_STATUS_LIMIT, "the path %.60s... is too long", r->folder);
    hd_status status = hd_safetensors_open(r->context, path, &r->file);
    if (status) return status;
    const size_t tensors = hd_safetensors_count(r->file);
    if (tensors > TENSORS_MOST)
        return hdt_fail(r->context, HD_STATUS_LIMIT, "%s holds more than %d tensors", path, (int)TENSORS_MOST);
    r->most = tensors / 2;
    r->pairs = hdt_alloc(r->context, r->most, sizeof *r->pairs);
    r->names = hdt_alloc(r->context, r->most, sizeof *r->names);
    r->floats = hdt_alloc(r->context, 2 * r->most, sizeof *r->floats);
    if (!r->pairs || !r->names || !r->floats) return hdt_no_memory(r->context);
    for (size_t i = 0; i < tensors && !status; i++) {
        const hd_safetensor *tensor = hd_safetensors_get(r->file, i);
        const size_t length = strlen(tensor->name);
        if (length < sizeof ending || strcmp(tensor->name + length - (sizeof ending - 1), ending) != 0) continue;
        if (r->count == r->most) break; /* a half is missing: told below */
        status = read_pair(r, tensor, length - (sizeof ending - 1));
    }
    if (!status && (tensors == 0 || 2 * r->count != tensors))
        status = hdt_fail(r->context, HD_STATUS_UNSUPPORTED,
                          "%s holds tensors besides lora_A and lora_B, or halves of them", path);
    return status;
}

hd_status hd_peft_read(hd_context *context, const hd_model *model, const char *folder, hd_adapter **out_adapter) {
    if (out_adapter) *out_adapter = NULL;
    if (!context || !model || !folder || !out_adapter)
        return hdt_fail(context, HD_STATUS_NULL_POINTER, "hd_peft_read was given NULL");
    reading r = { .context = context, .folder = folder };
    float alpha = 0;
    hd_status status = find_family(context, model, &r.info, &r.family);
    if (!status) status = read_config(&r);
    if (!status) status = check_config(&r);
    if (!status) status = read_alpha(&r, &alpha);
    if (!status) status = read_tensors(&r);
    if (!status) status = hd_adapter_create(context, r.info.architecture, alpha, r.pairs, r.count, out_adapter);
    for (size_t i = 0; i < r.count; i++) {
        hdt_free(context, r.floats[2 * i], (uint64_t)r.pairs[i].rank * r.pairs[i].columns, sizeof(float));
        hdt_free(context, r.floats[2 * i + 1], (uint64_t)r.pairs[i].rank * r.pairs[i].rows, sizeof(float));
    }
    hdt_free(context, r.pairs, r.most, sizeof *r.pairs);
    hdt_free(context, r.names, r.most, sizeof *r.names);
    hdt_free(context, r.floats, 2 * r.most, sizeof *r.floats);
    hd_safetensors_close(r.file);
    json_decref(r.config);
    return status;
}

/* ---- writing ---- */

typedef struct writing {
    hd_context       *context;
    const hd_adapter *adapter;
    const char       *folder;
    hd_model_info     info;
    const family     *family;
    json_t           *modules;    /* that are adapted, each once */
    hd_safetensor    *tensors;
    char            (*names)[NAME_ROOM];
    float           **turned;     /* of B in another order */
    size_t            count;      /* of pairs */
} writing;

static hd_status add_module(writing *w, const char *module) {
    const char *last = strrchr(module, '.') + 1;
    for (size_t i = 0; i < json_array_size(w->modules); i++)
        if (strcmp(json_string_value(json_array_get(w->modules, i)), last) == 0) return HD_OK;
    return json_array_append_new(w->modules, json_string(last)) ? hdt_no_memory(w->context) : HD_OK;
}

static hd_status put_pair(writing *w, size_t i) {
    const hd_adapter_pair *pair = hd_adapter_get(w->adapter, i);
    unsigned layer;
    const bool fused = pair->rows == 2 * w->info.feed_forward;
    const char *module = module_of(pair->weight, fused, &layer);
    if (!module)
        return hdt_fail(w->context, HD_STATUS_UNSUPPORTED, "transformers has no name that heddle knows for %s",
                        pair->weight);
    if (pair->rank != hd_adapter_get(w->adapter, 0)->rank)
        return hdt_fail(w->context, HD_STATUS_UNSUPPORTED, "pairs of several ranks are not written for PEFT");
    const uint32_t heads = turned_heads(w->family, &w->info, pair->weight);
    const float *b = pair->b;
    if (heads) {
        if (pair->rows % heads != 0 || pair->rows / heads % 2 != 0)
            return hdt_fail(w->context, HD_STATUS_SHAPE, "%s: %u rows are no %u heads of an even size", pair->weight,
                            pair->rows, heads);
        w->turned[i] = hdt_alloc(w->context, (uint64_t)pair->rows * pair->rank, sizeof(float));
        if (!w->turned[i]) return hdt_no_memory(w->context);
        for (uint64_t row = 0; row < pair->rows; row++)
            memcpy(w->turned[i] + hdt_row_in_transformers(row, pair->rows, heads) * pair->rank, b + row * pair->rank,
                   pair->rank * sizeof(float));
        b = w->turned[i];
    }
    snprintf(w->names[2 * i], NAME_ROOM, PREFIX "%u.%s.lora_A.weight", layer, module);
    snprintf(w->names[2 * i + 1], NAME_ROOM, PREFIX "%u.%s.lora_B.weight", layer, module);
    const hd_shape shape_a = HD_SHAPE(pair->rank, pair->columns), shape_b = HD_SHAPE(pair->rows, pair->rank);
    w->tensors[2 * i] = (hd_safetensor){ .name = w->names[2 * i], .dtype = HD_F32, .shape = shape_a, .data = pair->a };
    w->tensors[2 * i + 1] =
        (hd_safetensor){ .name = w->names[2 * i + 1], .dtype = HD_F32, .shape = shape_b, .data = b };
    return add_module(w, module);
}

static hd_status write_config(const writing *w) {
    char part[HDT_PATH_ROOM], path[HDT_PATH_ROOM];
    const uint32_t rank = hd_adapter_get(w->adapter, 0)->rank;
    const double alpha = (double)hd_adapter_alpha(w->adapter);
    json_t *root = json_pack("{s:s, s:s, s:n, s:i, s:f, s:f, s:s, s:b, s:b, s:O}", "peft_type", "LORA", "task_type",
                             "CAUSAL_LM", "base_model_name_or_path", "r", (int)rank, "lora_alpha",
                             alpha != 0 ? alpha : (double)rank, "lora_dropout", 0.0, "bias", "none", "fan_in_fan_out",
                             0, "inference_mode", 1, "target_modules", w->modules);
    char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
    hd_status status = text ? HD_OK : hdt_no_memory(w->context);
    if (!status && (snprintf(path, sizeof path, "%s/" CONFIG, w->folder) >= (int)sizeof path ||
                    snprintf(part, sizeof part, "%s/" CONFIG ".new", w->folder) >= (int)sizeof part))
        status = hdt_fail(w->context, HD_STATUS_LIMIT, "the path %.60s... is too long", w->folder);
    if (!status)
        status = hdt_write_file(w->context, part, (const hdt_piece[]){ { text, strlen(text) }, { "\n", 1 } }, 2);
    if (!status) status = hdt_rename(w->context, part, path);
    free(text);
    json_decref(root);
    return status;
}

static hd_status write_all(writing *w) {
    char path[HDT_PATH_ROOM];
    w->count = hd_adapter_count(w->adapter);
    if (w->count == 0) return hdt_fail(w->context, HD_STATUS_ZERO_SIZE, "an adapter of no weights");
    w->modules = json_array();
    w->tensors = hdt_alloc(w->context, 2 * w->count, sizeof *w->tensors);
    w->names = hdt_alloc(w->context, 2 * w->count, sizeof *w->names);
    w->turned = hdt_alloc(w->context, w->count, sizeof *w->turned);
    hd_status status = w->modules && w->tensors && w->names && w->turned ? HD_OK : hdt_no_memory(w->context);
    for (size_t i = 0; i < w->count && !status; i++) status = put_pair(w, i);
    if (!status && snprintf(path, sizeof path, "%s/" TENSORS, w->folder) >= (int)sizeof path)
        status = hdt_fail(w->context, HD_STATUS_LIMIT, "the path %.60s... is too long", w->folder);
    if (!status) status = hdt_make_folder(w->context, w->folder);
    if (!status)
        status = hd_safetensors_write(w->context, path, w->tensors, 2 * w->count,
                                      (const char *const[]){ "format", "pt", NULL });
    return status ? status : write_config(w);
}

hd_status hd_peft_write(hd_context *context, const hd_model *model, const hd_adapter *adapter, const char *folder) {
    if (!context || !model || !adapter || !folder)
        return hdt_fail(context, HD_STATUS_NULL_POINTER, "hd_peft_write was given NULL");
    writing w = { .context = context, .adapter = adapter, .folder = folder };
    hd_status status = find_family(context, model, &w.info, &w.family);
    if (!status) status = write_all(&w);
    for (size_t i = 0; i < w.count && w.turned; i++) {
        const hd_adapter_pair *pair = hd_adapter_get(adapter, i);
        hdt_free(context, w.turned[i], (uint64_t)pair->rows * pair->rank, sizeof(float));
    }
    hdt_free(context, w.tensors, 2 * w.count, sizeof *w.tensors);
    hdt_free(context, w.names, 2 * w.count, sizeof *w.names);
    hdt_free(context, w.turned, w.count, sizeof *w.turned);
    json_decref(w.modules);
    return status;
}
