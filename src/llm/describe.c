/* describe.c: what a model file says of itself, whether heddle can run it or not. */
#include "llm/model.h"
#include <stdio.h>

static void take_text(const hdl_gguf *gguf, const char *key, const char *fallback, char *out, size_t room) {
    hdl_span text;
    if (!hdl_gguf_get_text(gguf, key, hdl_text(fallback), &text, NULL)) hdl_copy_text(text, out, room);
}

/* "<architecture>.<rest>"; 0 where the file does not say. */
static uint32_t figure(const hdl_gguf *gguf, const char *architecture, const char *rest) {
    char key[96];
    uint32_t number = 0;
    snprintf(key, sizeof key, "%s.%s", architecture, rest);
    return hdl_gguf_get_u32(gguf, key, 0, UINT32_MAX, 0, &number, NULL) ? 0 : number;
}

static void describe(const hdl_gguf *gguf, hd_model_info *out) {
    const hdl_gguf_info file = hdl_gguf_get_info(gguf);
    uint64_t bytes[HDL_GGUF_TYPE_COUNT] = { 0 };
    uint32_t counts[HDL_GGUF_TYPE_COUNT] = { 0 };
    hdl_gguf_value tokens;
    *out = (hd_model_info){ .file_bytes = file.file_bytes, .weight_bytes = file.tensor_bytes };
    take_text(gguf, "general.name", "", out->name, sizeof out->name);
    take_text(gguf, "general.type", "model", out->type, sizeof out->type);
    take_text(gguf, "general.architecture", "none", out->architecture, sizeof out->architecture);
    take_text(gguf, "tokenizer.ggml.model", "none", out->tokenizer, sizeof out->tokenizer);
    for (uint32_t i = 0; i < file.tensor_count; i++) {
        const hdl_gguf_tensor tensor = hdl_gguf_tensor_at(gguf, i);
        bytes[tensor.type] += tensor.bytes;
        counts[tensor.type]++;
        out->parameters += hd_shape_elements(tensor.shape);
    }
    hdl_describe_types(bytes, counts, out->weight_types, sizeof out->weight_types);
    const struct { const char *rest; uint32_t *number; } figures[] = {
        { "block_count", &out->layers }, { "embedding_length", &out->hidden }, { "attention.head_count", &out->heads },
        { "attention.head_count_kv", &out->kv_heads }, { "attention.key_length", &out->head_size },
        { "feed_forward_length", &out->feed_forward }, { "context_length", &out->context },
    };
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        *figures[i].number = figure(gguf, out->architecture, figures[i].rest);
    out->has_chat_template = hdl_gguf_find(gguf, "tokenizer.chat_template", &tokens);
    if (hdl_gguf_find(gguf, "tokenizer.ggml.tokens", &tokens)) out->vocabulary = (uint32_t)tokens.count;
}

hd_status hd_model_describe(hd_context *context, const char *path, hd_model_info *out_info) {
    const hd_status status = hdl_context_lives(context);
    if (status || !path || !out_info) return status ? status : HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    hdl_gguf *gguf = NULL;
    const hd_allocator allocator = hd_context_allocator(context);
    *out_info = (hd_model_info){ 0 };
    if (hdl_gguf_open(path, &(hdl_gguf_desc){ .allocator = &allocator }, &gguf, &error))
        return hd_context_put_error(context, &error);
    describe(gguf, out_info);
    hdl_gguf_close(gguf);
    return HD_OK;
}
