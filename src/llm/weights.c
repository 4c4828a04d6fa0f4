/* weights.c: finds the tensors that the model's family lists, and checks each against the figures. */
#include "llm/arch/arch.h"
#include "llm/ternary.h"
#include <math.h>
#include <stdio.h>

/* In a layer; those of tensors outside of the layers are the same in all. */
static int64_t length_of(const hdl_figures *f, uint32_t layer, hdl_length length) {
    const bool dense = layer < f->dense_layers;
    const int64_t queries = (int64_t)f->heads * f->head_size, keys = (int64_t)f->kv_heads * f->head_size;
    switch (length) {
    case HDL_LEN_HIDDEN: return f->hidden;
    case HDL_LEN_QUERIES: return queries;
    case HDL_LEN_KEYS: return keys;
    case HDL_LEN_QKV: return queries + 2 * keys;
    case HDL_LEN_HEAD: return f->head_size;
    case HDL_LEN_HEADS: return f->heads;
    case HDL_LEN_FORWARD: return f->experts && !dense ? 0 : f->feed_forward;
    case HDL_LEN_GATE_UP: return 2 * (int64_t)f->feed_forward;
    case HDL_LEN_CONTEXT: return f->context;
    case HDL_LEN_EXPERTS: return dense ? 0 : f->experts;
    case HDL_LEN_EXPERT: return f->expert_forward;
    case HDL_LEN_SHARED: return dense ? 0 : f->shared_forward;
    case HDL_LEN_LATENT: return f->latent;
    case HDL_LEN_QUERY_LATENT: return f->query_latent;
    case HDL_LEN_OWN_KEYS: return (int64_t)f->heads * f->own_key;
    case HDL_LEN_DIRECT_QUERIES: return f->query_latent ? 0 : (int64_t)f->heads * f->own_key;
    case HDL_LEN_STILL: return (int64_t)f->own_key + f->latent - f->head_size;
    case HDL_LEN_OWN_VALUE: return f->own_value;
    case HDL_LEN_OWN_VALUES: return (int64_t)f->heads * f->own_value;
    case HDL_LEN_TYPES: return f->token_types;
    case HDL_LEN_PATCH: return 3 * (int64_t)f->sight.patch * f->sight.patch;
    case HDL_LEN_PROJECTED: return f->sight.projected;
    case HDL_LEN_VOCABULARY: return f->vocabulary;
    case HDL_LEN_NONE: break;
    }
    return 0;
}

/* ---- finding them ---- */

/* The tensors of a file while they are taken, each at most once; what nobody has taken in the end is refused. */
typedef struct search {
    hd_model *model;
    bool     *taken;  /* of every tensor, by its number */
    hdl_tile_list tiles; /* of matrices of tl1 and tl2 */
    hd_error *error;
} search;

static bool take(search *s, const char *name, hdl_gguf_tensor *out_tensor) {
    if (!hdl_gguf_find_tensor(s->model->gguf, name, out_tensor)) return false;
    return s->taken[out_tensor->number] = true;
}

/* A factor beside a weight: a tensor of one f32 called "<weight>.scale", as files of ternary models have. */
static hd_status read_scale(search *s, const char *weight_name, float *inout_scale) {
    char name[HDL_WEIGHT_NAME];
    float scale = 1;
    hdl_gguf_tensor tensor;
    const size_t stem = strlen(weight_name) - strlen("weight");
    snprintf(name, sizeof name, "%.*sscale", (int)stem, weight_name);
    if (!take(s, name, &tensor)) return HD_OK;
    if (tensor.type != HDL_GGUF_TYPE_F32 || tensor.bytes != sizeof scale)
        return hdl_fail(s->error, HD_STATUS_SHAPE, "%s is not one f32", name);
    const hd_status status = hdl_gguf_read(s->model->gguf, &tensor, 0, sizeof scale, &scale, s->error);
    *inout_scale *= scale;
    if (!status && !isfinite(*inout_scale)) return hdl_fail(s->error, HD_STATUS_PARSE, "%s is no number", name);
    return status;
}

/* The factor that a ternary tensor carries behind its codes. */
static hd_status read_own_scale(search *s, hdl_weight *w) {
    const uint64_t tail = hdl_gguf_type_info(w->tensor.type).tail_bytes, at = w->tensor.bytes - tail;
    const hd_status status = hdl_gguf_read(s->model->gguf, &w->tensor, at, sizeof w->scale, &w->scale, s->error);
    char quoted[HDL_QUOTE];
    if (status || isfinite(w->scale)) return status;
    return hdl_fail(s->error, HD_STATUS_PARSE, "the scale of %s is no number", hdl_quote(w->tensor.name, quoted));
}

/* Is it none of this layer's: of a length of 0, or the bias of a norm that there is not? */
static bool is_nobodys(const search *s, uint32_t layer, const hdl_weight *w) {
    const hdl_tensor_row *row = w->row;
    const hdl_figures *f = &s->model->figures;
    const hdl_length axes[] = { row->rows, row->columns, row->each };
    bool empty = false;
    for (int i = 0; i < 3; i++) empty = empty || (axes[i] != HDL_LEN_NONE && length_of(f, layer, axes[i]) == 0);
    const bool is_bias = row->where == HDL_LAYER && row->optional && strstr(row->name, ".bias") != NULL;
    return row->where == HDL_LAYER && (empty || (is_bias && !w[-1].present));
}

/* Layers are alike: a part that one of them has, all have; but for biases. */
static hd_status check_alike(const search *s, uint32_t layer, const hdl_weight *w, const char *name) {
    const hdl_tensor_row *row = w->row;
    if (layer == 0 || row->where != HDL_LAYER || !row->optional || strstr(row->name, ".bias")) return HD_OK;
    if (w->present == w[-(ptrdiff_t)(layer * s->model->layer_weights)].present) return HD_OK;
    return hdl_fail(s->error, HD_STATUS_UNSUPPORTED,
                    "layer 0 and layer %u differ in %s; layers of different parts cannot be run", layer, name);
}

/* Is it added, or multiplied with in another way than quantised weights can be? */
static bool is_plain(const hdl_tensor_row *row) {
    return row->columns == HDL_LEN_NONE || row->rows == HDL_LEN_TYPES ||
           (row->seeing && row->where != HDL_LAYER);
}

static hd_status find_weight(search *s, uint32_t layer, hdl_weight *w) {
    const hdl_tensor_row *row = w->row;
    const bool matrix = row->columns != HDL_LEN_NONE, is_table = row->where == HDL_EMBED;
    const hdl_figures *f = &s->model->figures;
    char name[HDL_WEIGHT_NAME];
    hdl_weight_name(layer, row, name);
    if (is_nobodys(s, layer, w)) return HD_OK;
    if (!take(s, name, &w->tensor) && row->optional) return check_alike(s, layer, w, name);
    const int64_t rows = length_of(f, layer, row->rows), columns = length_of(f, layer, row->columns),
                  each = length_of(f, layer, row->each);
    w->shape = matrix ? HD_SHAPE(rows, columns) : HD_SHAPE(rows);
    if (row->each) w->shape = matrix ? HD_SHAPE(each, rows, columns) : HD_SHAPE(each, rows);
    const int64_t side = f->sight.patch;
    const hd_shape in_file = row->columns == HDL_LEN_PATCH ? HD_SHAPE(rows, 3, side, side) : w->shape;
    hd_status status = hdl_gguf_need_tensor(s->model->gguf, name, in_file, &w->tensor, s->error);
    if (status) return status;
    const bool is_ternary = hdl_is_ternary(w->tensor.type);
    w->dtype = is_ternary ? hdl_ternary_dtype(w->shape) : hdl_gguf_dtype(w->tensor.type);
    const bool blocks = !hdl_is_float(w->dtype);
    if (w->dtype == HD_DTYPE_NONE || (is_plain(row) && blocks) || (is_ternary && (is_table || row->each)))
        return hdl_fail(s->error, HD_STATUS_UNSUPPORTED, "%s is of type %s, which cannot be run there", name,
                        hdl_gguf_type_info(w->tensor.type).name);
    w->present = true;
    w->scale = 1;
    status = check_alike(s, layer, w, name);
    if (!status && is_ternary) status = read_own_scale(s, w);
    if (!status && is_ternary) status = hdl_tiles_find(s->model->gguf, &w->tensor, &s->tiles, &w->tiles, s->error);
    return status || !matrix || is_table ? status : read_scale(s, name, &w->scale);
}

static hd_status check_all_taken(const search *s, uint32_t count) {
    char quoted[HDL_QUOTE];
    for (uint32_t i = 0; i < count; i++) {
        const hdl_span name = hdl_gguf_tensor_at(s->model->gguf, i).name;
        if (s->taken[i] || hdl_rope_takes(name)) continue;
        return hdl_fail(s->error, HD_STATUS_UNSUPPORTED,
                        "tensor %s may change the answers, and heddle does not know it in a model of %s; take another "
                        "model", hdl_quote(name, quoted), s->model->arch_name);
    }
    return HD_OK;
}

hd_status hdl_weights_find(hd_model *model, hd_error *error) {
    const hdl_tensor_row *rows = model->figures.experts ? model->arch->with_experts : model->arch->tensors;
    const uint32_t layers = model->figures.layers, tensors = hdl_gguf_get_info(model->gguf).tensor_count;
    uint32_t outside = 0;
    while (rows[model->layer_weights].where == HDL_LAYER) model->layer_weights++;
    while (rows[model->layer_weights + outside].name) outside++;
    model->weight_count = layers * model->layer_weights + outside;
    model->weights = hdl_alloc(&model->allocator, model->weight_count * sizeof *model->weights);
    search s = { .model = model, .taken = hdl_alloc(&model->allocator, tensors * sizeof *s.taken), .error = error };
    hd_status status = HD_OK;
    if (!model->weights || !s.taken)
        status = hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for %u weights", model->weight_count);
    const uint32_t each = model->layer_weights;
    for (uint32_t i = 0; i < model->weight_count && !status; i++) {
        const uint32_t layer = i / each, within = i % each;
        model->weights[i].row = &rows[layer < layers ? within : i - layers * each + each];
        status = find_weight(&s, layer, &model->weights[i]);
    }
    if (!status) status = check_all_taken(&s, tensors);
    hdl_free(&model->allocator, s.taken, tensors * sizeof *s.taken);
    return status;
}

/* ---- their names ---- */

void hdl_weight_name(uint32_t layer, const hdl_tensor_row *row, char out[HDL_WEIGHT_NAME]) {
    const char *name = row->seeing ? row->seeing : row->name;
    if (row->where != HDL_LAYER) snprintf(out, HDL_WEIGHT_NAME, "%s", name);
    else snprintf(out, HDL_WEIGHT_NAME, "%sblk.%u.%s", row->seeing ? "v." : "", layer, name);
}

void hdl_cache_name(uint32_t layer, bool values, char out[HDL_CACHE_NAME]) {
    snprintf(out, HDL_CACHE_NAME, "%s.%u", values ? "values" : "keys", layer);
}

const hdl_weight *hdl_weight_of(const hd_model *model, uint32_t layer, const char *name) {
    static const hdl_tensor_row no_row = { .name = "?" };
    static const hdl_weight none = { .row = &no_row };
    const uint32_t outside = model->figures.layers * model->layer_weights;
    for (uint32_t i = 0; i < model->layer_weights; i++)
        if (strcmp(model->weights[i].row->name, name) == 0) return &model->weights[layer * model->layer_weights + i];
    for (uint32_t i = outside; i < model->weight_count; i++)
        if (strcmp(model->weights[i].row->name, name) == 0) return &model->weights[i];
    return &none;
}

hd_status hdl_weight_data(const hd_model *model, const hdl_weight *weight, hdl_span *out_data, hd_error *error) {
    if (!weight->data) return hdl_gguf_data(model->gguf, &weight->tensor, out_data, error);
    *out_data = (hdl_span){ weight->data, weight->tensor.bytes };
    return HD_OK;
}

uint64_t hdl_weight_bytes(const hdl_weight *weight) {
    return weight->present ? hd_tensor_bytes(weight->dtype, weight->shape) : 0;
}

uint64_t hdl_weight_half_bytes(const hdl_weight *weight) {
    const bool copied = weight->present && !hdl_is_float(weight->dtype) && hdl_is_product(weight);
    return copied ? hd_tensor_bytes(HD_F16, weight->shape) : 0;
}

bool hdl_part_needs(const hd_model *model, hdl_part part, uint32_t index) {
    const hdl_weight *w = &model->weights[index];
    if (!w->present) return false;
    const uint32_t layer = index / model->layer_weights;
    const hdl_layers of = w->row->each == HDL_LEN_EXPERTS ? part.experts : part.layers;
    if (w->row->where == HDL_LAYER) return layer >= of.first && layer < of.first + of.count;
    if (w->row->where == HDL_HEAD) return part.heads || (part.vectors && strncmp(w->row->name, "output_norm", 11) == 0);
    if (part.embeds) return true;
    const bool tied = !hdl_weight_of(model, 0, "output.weight")->present;
    return part.heads && tied && strcmp(w->row->name, "token_embd.weight") == 0;
}
