/* model.c: opening and closing models, their facts, and their text. */
#include "llm/arch/arch.h"
#include "llm/shared.h"
#include <stdarg.h>
#include <stdio.h>

/* ---- opening ---- */

/* Says what is wrong with a weight: refused in a strict context, else logged. */
static hd_status name_rows(hd_model *model, const hdl_weight *w, const char *what, uint64_t first, uint64_t count,
                           uint64_t rows, hd_error *error) {
    char quoted[HDL_QUOTE], line[256];
    snprintf(line, sizeof line, "%s row %llu %s (%llu of its %llu rows in all); convert the model anew",
             hdl_quote(w->tensor.name, quoted), (unsigned long long)first, what, (unsigned long long)count,
             (unsigned long long)rows);
    if (hd_context_strict(model->context)) return hdl_fail(error, HD_STATUS_PARSE, "%s", line);
    hd_context_log(model->context, HD_LOG_WARNING, "model", line);
    return HD_OK;
}

/* Looks at every row of every weight. */
static hd_status check_weights(hd_model *model, hd_error *error) {
    for (uint32_t i = 0; i < model->weight_count; i++) {
        const hdl_weight *w = &model->weights[i];
        hdl_gguf_rows rows;
        hdl_span data;
        if (!w->present) continue;
        hd_status status = hdl_gguf_data(model->gguf, &w->tensor, &data, error);
        if (status) return status;
        const uint64_t length = (uint64_t)w->shape.dims[w->shape.rank - 1];
        if (!hdl_gguf_check_rows(w->tensor.type, length, data.bytes, data.count, &rows)) continue;
        if (rows.bad_rows)
            status = name_rows(model, w, "holds NaN or infinity", rows.first_bad, rows.bad_rows, rows.rows, error);
        /* Unused tokens have no embedding, and an expert needs no bias. */
        const bool may_be_zero = w == hdl_weight_of(model, 0, "token_embd.weight") || w->row->columns == HDL_LEN_NONE;
        if (!status && rows.zero_rows && w->shape.rank == 2 && !may_be_zero)
            status = name_rows(model, w, "is all zero", rows.first_zero, rows.zero_rows, rows.rows, error);
        if (status) return status;
    }
    return HD_OK;
}

static hd_status open_model(hd_model *model, const char *path, const hd_model_desc *desc, const hdl_files *files,
                            hd_error *error) {
    hd_status status =
        hdl_gguf_open(path, &(hdl_gguf_desc){ .allocator = &model->allocator, .files = files }, &model->gguf, error);
    if (!status && desc && desc->tokenizer_only) return hdl_vocabulary_read_alone(model, error);
    if (!status) status = hdl_figures_read(model, error);
    if (!status) status = hdl_weights_find(model, error);
    if (!status) status = hdl_vocabulary_read(model, error);
    if (!status && ((desc && desc->check_weights) || hd_context_strict(model->context)))
        status = check_weights(model, error);
    return status;
}

static hd_status open_seeing(hd_model *model, const char *path, hd_error *error) {
    hd_status status = hdl_gguf_open(path, &(hdl_gguf_desc){ .allocator = &model->allocator }, &model->gguf, error);
    if (!status) status = hdl_sight_read(model, error);
    if (!status) status = hdl_weights_find(model, error);
    return !status && hd_context_strict(model->context) ? check_weights(model, error) : status;
}

static atomic_uint_fast64_t opened; /* models so far */

/* A model of which nothing is read yet. */
static hd_status make_model(hd_context *context, const char *path, hd_model **out_model) {
    const hd_status status = hdl_context_lives(context);
    if (status || !path || !out_model) return status ? status : HD_STATUS_NULL_POINTER;
    *out_model = NULL;
    hd_error error = { 0 };
    const hd_allocator allocator = hd_context_allocator(context);
    hd_model *model = hdl_alloc(&allocator, sizeof *model);
    if (!model) {
        hdl_fail(&error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a model");
        return hd_context_put_error(context, &error);
    }
    model->context = context;
    model->holders = 1;
    model->number = 2 * atomic_fetch_add(&opened, 1);
    model->allocator = allocator;
    *out_model = model;
    return HD_OK;
}

/* Closes a model that cannot be read. */
static hd_status give_up(hd_context *context, hd_error *error, hd_model **out_model) {
    hd_model_close(*out_model);
    *out_model = NULL;
    return hd_context_put_error(context, error);
}

hd_status hdl_model_open(hd_context *context, const char *path, const hd_model_desc *desc, const hdl_files *files,
                         hd_model **out_model) {
    hd_error error = { 0 };
    const hd_status status = make_model(context, path, out_model);
    if (status || !open_model(*out_model, path, desc, files, &error)) return status;
    return give_up(context, &error, out_model);
}

hd_status hdl_model_open_seeing(hd_context *context, const char *path, hd_model **out_model) {
    hd_error error = { 0 };
    const hd_status status = make_model(context, path, out_model);
    if (status || !open_seeing(*out_model, path, &error)) return status;
    return give_up(context, &error, out_model);
}

static const char kind[] = "model";

hd_status hdl_model_find(void *model_at) {
    void *handle;
    memcpy(&handle, model_at, sizeof handle);
    const hd_model *model = hd_handle_find(handle, kind);
    if (!model) return hd_handle_refuse(handle, kind);
    memcpy(model_at, &model, sizeof model);
    return hdl_context_lives(model->context);
}

hd_status hdl_model_hand_out(hd_model *model, hd_model **out_model) {
    const hd_status status = hd_handle_new(model->context, kind, model, &model->handle);
    if (status) hd_model_close(model);
    else *out_model = model->handle;
    return status;
}

hd_status hd_model_open(hd_context *context, const char *path, const hd_model_desc *desc, hd_model **out_model) {
    hd_model *model = NULL;
    if (out_model) *out_model = NULL;
    const hd_status status = out_model ? hdl_model_open(context, path, desc, NULL, &model) : HD_STATUS_NULL_POINTER;
    return status ? status : hdl_model_hand_out(model, out_model);
}

void hd_model_close(hd_model *model) {
    model = hd_handle_find(model, kind);
    if (model && (!model->handle || hd_handle_end(model->handle))) hdl_model_release(model);
}

hd_model *hdl_model_hold(hd_model *model) {
    atomic_fetch_add(&model->holders, 1);
    return model;
}

void hdl_model_release(hd_model *model) {
    if (atomic_fetch_sub(&model->holders, 1) > 1) return;
    const hd_allocator allocator = model->allocator;
    for (int i = 0; i < 2; i++) hdl_trie_destroy(atomic_load(&model->tries[i]));
    hdl_tokenizer_destroy(model->tokenizer);
    hdl_twins_forget(model);
    hdl_weights_free(model);
    const hdl_figures *f = &model->figures;
    hdl_free(&allocator, f->rope_factors, f->rope_dims / 2 * sizeof *f->rope_factors);
    hdl_free(&allocator, f->rope_far_factors, f->rope_dims / 2 * sizeof *f->rope_far_factors);
    hdl_gguf_close(model->gguf);
    hdl_free(&allocator, model, sizeof *model);
}

hd_status hdl_model_fail(const hd_model *model, hd_status status, const char *format, ...) {
    hd_error error = { 0 };
    char text[sizeof error.text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hdl_fail(&error, status, "%s", text);
    return hd_context_put_error(model->context, &error);
}

/* ---- facts ---- */

void hdl_describe_types(uint64_t bytes[HDL_GGUF_TYPE_COUNT], const uint32_t counts[HDL_GGUF_TYPE_COUNT], char *out,
                        size_t room) {
    out[0] = 0;
    for (size_t used = 0; used + 1 < room;) {
        uint32_t most = 0;
        for (uint32_t t = 1; t < HDL_GGUF_TYPE_COUNT; t++)
            if (bytes[t] > bytes[most]) most = t;
        if (bytes[most] == 0) break;
        const int written =
            snprintf(out + used, room - used, "%s%s %u", used ? ", " : "", hdl_gguf_type_info(most).name, counts[most]);
        used += written > 0 ? (size_t)written : room;
        bytes[most] = 0;
    }
}

void hdl_copy_text(hdl_span text, char *out, size_t room) {
    size_t count = text.count < room - 1 ? (size_t)text.count : room - 1;
    /* not inside of a character */
    while (count < text.count && count > 0 && (text.bytes[count] & 0xC0) == 0x80) count--;
    for (size_t i = 0; i < count; i++) out[i] = text.bytes[i] < ' ' || text.bytes[i] == 127 ? '?' : (char)text.bytes[i];
    out[count] = 0;
}

/* Does the model answer with text, token by token? Others answer with a vector. */
static bool speaks(const hd_model *model) {
    return model->figures.causal && hdl_weight_of(model, 0, "output_norm.weight")->present;
}

hd_status hd_model_get_info(const hd_model *model, hd_model_info *out_info) {
    const hd_status found = hdl_model_find(&model);
    if (found || !out_info) return found ? found : HD_STATUS_NULL_POINTER;
    const hdl_figures *f = &model->figures;
    hdl_span text;
    *out_info = (hd_model_info){
        .type = "model", .layers = f->layers, .hidden = f->hidden, .heads = f->heads, .kv_heads = f->kv_heads,
        .head_size = f->head_size, .feed_forward = f->feed_forward, .vocabulary = f->vocabulary, .context = f->context,
        .has_chat_template = model->chat_template.count > 0, .embeds_only = !speaks(model),
        .pooling = hdl_pooling_of(model), .file_bytes = hdl_gguf_get_info(model->gguf).file_bytes,
    };
    if (!hdl_gguf_get_text(model->gguf, "general.name", hdl_text(""), &text, NULL))
        hdl_copy_text(text, out_info->name, sizeof out_info->name);
    if (!hdl_gguf_get_text(model->gguf, "tokenizer.ggml.model", hdl_text("none"), &text, NULL))
        hdl_copy_text(hdl_same(text, hdl_text("no_vocab")) ? hdl_text("none") : text, out_info->tokenizer,
                      sizeof out_info->tokenizer);
    snprintf(out_info->architecture, sizeof out_info->architecture, "%s", model->arch_name);
    uint64_t bytes[HDL_GGUF_TYPE_COUNT] = { 0 };
    uint32_t counts[HDL_GGUF_TYPE_COUNT] = { 0 };
    for (uint32_t i = 0; i < model->weight_count; i++) {
        if (!model->weights[i].present) continue;
        bytes[model->weights[i].tensor.type] += model->weights[i].tensor.bytes;
        counts[model->weights[i].tensor.type]++;
        out_info->weight_bytes += model->weights[i].tensor.bytes;
        out_info->parameters += hd_shape_elements(model->weights[i].shape);
    }
    hdl_describe_types(bytes, counts, out_info->weight_types, sizeof out_info->weight_types);
    return HD_OK;
}

/* ---- text ---- */

hd_status hdl_need_tokenizer(const hd_model *model) {
    if (model->tokenizer) return HD_OK;
    return hdl_model_fail(model, HD_STATUS_UNSUPPORTED,
                          "the file has no tokenizer (tokenizer.ggml.model); give token ids in place of text");
}

hd_pooling hdl_pooling_of(const hd_model *model) {
    const uint32_t says = model->figures.pooling;
    return says <= HD_POOLING_LAST ? (hd_pooling)says : HD_POOLING_FILE;
}

hd_status hdl_need_whole(const hd_model *model) {
    if (model->arch) return HD_OK;
    return hdl_model_fail(model, HD_STATUS_UNSUPPORTED, "nothing was read of this model but its tokenizer");
}

hd_status hdl_need_speech(const hd_model *model) {
    if (hdl_need_whole(model)) return HD_STATUS_UNSUPPORTED;
    if (speaks(model)) return HD_OK;
    return hdl_model_fail(model, HD_STATUS_UNSUPPORTED,
                          "this %s answers with a vector, not with text: use heddle embed, or hd_embedder in C",
                          model->arch_name);
}

hd_status hd_model_tokenize(const hd_model *model, const char *text, size_t bytes, uint32_t flags, int32_t *out_tokens,
                            size_t *count) {
    hd_status status = hdl_model_find(&model);
    if (status || !count || (!text && bytes)) return status ? status : HD_STATUS_NULL_POINTER;
    status = hdl_need_tokenizer(model);
    if (status) return status;
    hd_error error = { 0 };
    hdl_id_list list = { .allocator = model->allocator };
    const unsigned inside = (flags & HD_TOKENIZE_ADD_SPECIAL ? HDL_ADD_SPECIAL : 0u) |
                            (flags & HD_TOKENIZE_PARSE_SPECIAL ? HDL_PARSE_SPECIAL : 0u);
    status = hdl_tokenize(model->tokenizer, text, bytes, inside, &list, &error);
    const hd_status copied = hdl_id_list_copy(&list, out_tokens, count, &error);
    if (!status) status = copied;
    hdl_id_list_free(&list);
    return status ? hd_context_put_error(model->context, &error) : HD_OK;
}

const char *hd_model_token_text(const hd_model *model, int32_t token, size_t *out_bytes) {
    if (!out_bytes || hdl_model_find(&model)) return NULL;
    *out_bytes = 0;
    if (!model->tokenizer || token < 0 || (uint32_t)token >= model->figures.vocabulary) return NULL;
    const hdl_span text = hdl_token_text(model->tokenizer, token);
    *out_bytes = (size_t)text.count;
    return text.count ? (const char *)text.bytes : "";
}

static bool is_among(const int32_t *tokens, uint32_t count, int32_t token) {
    for (uint32_t i = 0; i < count; i++)
        if (tokens[i] == token) return true;
    return false;
}

bool hdl_model_ends(const hd_model *model, int32_t token) { return is_among(model->ends, model->end_count, token); }

bool hdl_model_shows(const hd_model *model, int32_t token) {
    const hdl_token_type type = hdl_token_type_of(model->tokenizer, token);
    return (type != HDL_TOKEN_CONTROL && type != HDL_TOKEN_UNKNOWN) ||
           is_among(model->marks, model->mark_count, token);
}

bool hd_model_token_ends(const hd_model *model, int32_t token) {
    return !hdl_model_find(&model) && hdl_model_ends(model, token);
}
