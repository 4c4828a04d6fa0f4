/* model.c: opening and closing models, their facts, and their text. */
#include "llm/chat.h"
#include "llm/model.h"
#include <stdio.h>

/* ---- opening ---- */

/* Looks at every row of every weight. A row of zeros, or one with a NaN or an infinity, is what a broken conversion leaves. */
static hd_status check_weights(hd_model *model, hd_error *error) {
    for (uint32_t i = 0; i < model->weight_count; i++) {
        const hdl_weight *w = &model->weights[i];
        hdl_gguf_rows rows;
        hdl_span data;
        if (!w->present) continue;
        hd_status status = hdl_gguf_data(model->gguf, &w->tensor, &data, error);
        if (status) return status;
        const uint64_t length = (uint64_t)w->shape.dims[w->shape.rank - 1];
        if (!hdl_gguf_check_rows(w->tensor.type, length, data.bytes, data.count, &rows) || rows.bad_rows + rows.zero_rows == 0) continue;
        char quoted[HDL_QUOTE];
        if (rows.bad_rows)
            return hdl_fail(error, HD_STATUS_PARSE, "%s row %llu holds NaN or infinity; %llu of %llu rows do", hdl_quote(w->tensor.name, quoted),
                            (unsigned long long)rows.first_bad, (unsigned long long)rows.bad_rows, (unsigned long long)rows.rows);
        if (w->shape.rank == 2 && i != model->weight_count - (HDL_ROLES - HDL_EMBEDDING)) /* unused tokens have no embedding */
            return hdl_fail(error, HD_STATUS_PARSE, "%s row %llu is all zero; %llu of %llu rows are", hdl_quote(w->tensor.name, quoted),
                            (unsigned long long)rows.first_zero, (unsigned long long)rows.zero_rows, (unsigned long long)rows.rows);
    }
    return HD_OK;
}

static hd_status open_model(hd_model *model, const char *path, const hd_model_desc *desc, hd_error *error) {
    hd_status status = hdl_gguf_open(path, &(hdl_gguf_desc){ .allocator = &model->allocator }, &model->gguf, error);
    if (!status) status = hdl_figures_read(model, error);
    if (!status) status = hdl_weights_find(model, error);
    if (!status) status = hdl_vocabulary_read(model, error);
    if (!status && desc && desc->strict) status = check_weights(model, error);
    return status;
}

hd_status hd_model_open(hd_context *context, const char *path, const hd_model_desc *desc, hd_model **out_model) {
    if (!context || !path || !out_model) return HD_STATUS_NULL_POINTER;
    *out_model = NULL;
    hd_error error = { 0 };
    const hd_allocator allocator = hd_context_allocator(context);
    hd_model *model = hdl_alloc(&allocator, sizeof *model);
    if (!model) {
        hdl_fail(&error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a model");
        return hd_context_put_error(context, &error);
    }
    model->context = context;
    model->allocator = allocator;
    if (open_model(model, path, desc, &error)) {
        hd_model_close(model);
        return hd_context_put_error(context, &error);
    }
    *out_model = model;
    return HD_OK;
}

void hd_model_close(hd_model *model) {
    if (!model) return;
    const hd_allocator allocator = model->allocator;
    hdl_tokenizer_destroy(model->tokenizer);
    hdl_free(&allocator, model->weights, model->weight_count * sizeof *model->weights);
    hdl_free(&allocator, model->figures.rope_factors, model->figures.rope_dims / 2 * sizeof *model->figures.rope_factors);
    hdl_gguf_close(model->gguf);
    hdl_free(&allocator, model, sizeof *model);
}

/* ---- facts ---- */

/* "q4_0 253, f32 145": the types of the weights, the one with the most bytes first. */
static void describe_types(const hd_model *model, char *out, size_t room) {
    uint64_t bytes[HDL_GGUF_TYPE_COUNT] = { 0 };
    uint32_t counts[HDL_GGUF_TYPE_COUNT] = { 0 };
    for (uint32_t i = 0; i < model->weight_count; i++) {
        if (!model->weights[i].present) continue;
        bytes[model->weights[i].tensor.type] += model->weights[i].tensor.bytes;
        counts[model->weights[i].tensor.type]++;
    }
    out[0] = 0;
    for (size_t used = 0; used + 1 < room;) {
        uint32_t most = 0;
        for (uint32_t t = 1; t < HDL_GGUF_TYPE_COUNT; t++)
            if (bytes[t] > bytes[most]) most = t;
        if (bytes[most] == 0) break;
        const int written = snprintf(out + used, room - used, "%s%s %u", used ? ", " : "", hdl_gguf_type_info(most).name, counts[most]);
        used += written > 0 ? (size_t)written : room;
        bytes[most] = 0;
    }
}

/* A text of the file in a field of a struct: cut to fit, with what does not print as '?'. */
static void copy_text(hdl_span text, char *out, size_t room) {
    size_t count = text.count < room - 1 ? (size_t)text.count : room - 1;
    while (count < text.count && count > 0 && (text.bytes[count] & 0xC0) == 0x80) count--; /* not inside of a character */
    for (size_t i = 0; i < count; i++) out[i] = text.bytes[i] < ' ' || text.bytes[i] == 127 ? '?' : (char)text.bytes[i];
    out[count] = 0;
}

hd_status hd_model_get_info(const hd_model *model, hd_model_info *out_info) {
    if (!model || !out_info) return HD_STATUS_NULL_POINTER;
    const hdl_figures *f = &model->figures;
    hdl_span text;
    *out_info = (hd_model_info){ .layers = f->layers, .hidden = f->hidden, .heads = f->heads, .kv_heads = f->kv_heads, .head_size = f->head_size,
                                 .feed_forward = f->feed_forward, .vocabulary = f->vocabulary, .context = f->context,
                                 .has_chat_template = model->chat_template.count > 0, .file_bytes = hdl_gguf_get_info(model->gguf).file_bytes };
    if (!hdl_gguf_get_text(model->gguf, "general.name", hdl_text(""), &text, NULL)) copy_text(text, out_info->name, sizeof out_info->name);
    if (!hdl_gguf_get_text(model->gguf, "tokenizer.ggml.model", hdl_text("none"), &text, NULL)) copy_text(text, out_info->tokenizer, sizeof out_info->tokenizer);
    snprintf(out_info->architecture, sizeof out_info->architecture, "%s", model->arch->name);
    describe_types(model, out_info->weight_types, sizeof out_info->weight_types);
    for (uint32_t i = 0; i < model->weight_count; i++) {
        if (!model->weights[i].present) continue;
        out_info->weight_bytes += model->weights[i].tensor.bytes;
        out_info->parameters += hd_shape_elements(model->weights[i].shape);
    }
    return HD_OK;
}

/* ---- text ---- */

static hd_status need_tokenizer(const hd_model *model) {
    hd_error error = { 0 };
    if (model->tokenizer) return HD_OK;
    hdl_fail(&error, HD_STATUS_UNSUPPORTED, "the file has no tokenizer (tokenizer.ggml.model); give token ids in place of text");
    return hd_context_put_error(model->context, &error);
}

hd_status hd_model_tokenize(const hd_model *model, const char *text, size_t bytes, uint32_t flags, int32_t *out_tokens, size_t *count) {
    if (!model || !count || (!text && bytes)) return HD_STATUS_NULL_POINTER;
    hd_status status = need_tokenizer(model);
    if (status) return status;
    hd_error error = { 0 };
    hdl_id_list list = { .allocator = model->allocator };
    const unsigned inside = (flags & HD_TOKENIZE_ADD_SPECIAL ? HDL_ADD_SPECIAL : 0u) | (flags & HD_TOKENIZE_PARSE_SPECIAL ? HDL_PARSE_SPECIAL : 0u);
    status = hdl_tokenize(model->tokenizer, text, bytes, inside, &list, &error);
    if (!status && out_tokens) {
        const size_t shown = list.count < *count ? list.count : *count;
        if (shown) memcpy(out_tokens, list.ids, shown * sizeof *out_tokens);
        if (shown < list.count) status = hdl_fail(&error, HD_STATUS_LIMIT, "%zu tokens, room for %zu", list.count, *count);
    }
    *count = list.count;
    hdl_id_list_free(&list);
    return status ? hd_context_put_error(model->context, &error) : HD_OK;
}

const char *hd_model_token_text(const hd_model *model, int32_t token, size_t *out_bytes) {
    if (!model || !out_bytes) return NULL;
    *out_bytes = 0;
    if (!model->tokenizer || token < 0 || (uint32_t)token >= model->figures.vocabulary) return NULL;
    const hdl_span text = hdl_token_text(model->tokenizer, token);
    *out_bytes = (size_t)text.count;
    return text.count ? (const char *)text.bytes : "";
}

bool hd_model_token_ends(const hd_model *model, int32_t token) {
    for (uint32_t i = 0; model && i < model->end_count; i++)
        if (model->ends[i] == token) return true;
    return false;
}

#define TEMPLATE_NAMES "chatml, llama3, qwen, gemma, mistral, llama2, phi3 or bitnet"
/* The template's text and messages, rendered; *out_text is chat.h's to free. */
static hd_status render(const hd_model *model, const char *template_name, const hd_message *messages, size_t count, char **out_text, size_t *out_bytes, hd_error *error) {
    const char *built_in = template_name ? hdl_chat_template(template_name) : NULL;
    if (template_name && !built_in) return hdl_fail(error, HD_STATUS_NAME_NOT_FOUND, "no chat template is called \"%.40s\"; name one of " TEMPLATE_NAMES, template_name);
    if (!built_in && model->chat_template.count == 0)
        return hdl_fail(error, HD_STATUS_UNSUPPORTED, "the file has no chat template; name one of " TEMPLATE_NAMES);
    hdl_chat_message *list = hdl_alloc(&model->allocator, count * sizeof *list);
    if (!list) return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for %zu messages", count);
    for (size_t i = 0; i < count; i++)
        list[i] = (hdl_chat_message){ hdl_text(messages[i].role ? messages[i].role : ""), hdl_text(messages[i].content ? messages[i].content : "") };
    const hdl_chat_desc desc = { .source = built_in ? hdl_text(built_in) : model->chat_template, .messages = list, .message_count = count, .add_generation_prompt = true,
                                 .bos = hdl_token_text(model->tokenizer, hdl_token_bos(model->tokenizer)), .eos = hdl_token_text(model->tokenizer, hdl_token_eos(model->tokenizer)) };
    const hd_status status = hdl_chat_render(&model->allocator, &desc, out_text, out_bytes, error);
    hdl_free(&model->allocator, list, count * sizeof *list);
    return status;
}

hd_status hd_model_render_chat(const hd_model *model, const char *template_name, const hd_message *messages, size_t count, char *out_text, size_t room, size_t *out_needed) {
    if (!model || (!messages && count) || (!out_text && room)) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    char *text = NULL;
    size_t bytes = 0;
    hd_status status = need_tokenizer(model);
    if (status) return status;
    status = render(model, template_name, messages, count, &text, &bytes, &error);
    if (status) return hd_context_put_error(model->context, &error);
    const size_t shown = bytes < room ? bytes : room ? room - 1 : 0;
    if (room) {
        memcpy(out_text, text, shown);
        out_text[shown] = 0;
    }
    if (out_needed) *out_needed = bytes + 1;
    hdl_chat_free(&model->allocator, text, bytes);
    return shown == bytes && room ? HD_OK : HD_STATUS_LIMIT; /* asking for the size is no failure to be kept */
}
