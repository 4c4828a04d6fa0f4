/* chat_reader.c: the public face of reader.h: a reader for the answers of a model, by its chat template. */
#include "llm/messages.h"
#include "llm/reader.h"

struct hd_chat_reader {
    hd_model  *model;
    void      *handle;
    hdl_tools  tools;
    hdl_reader reader;
    hd_message message;
};

static const char kind[] = "chat reader";

static hd_status find_reader(void *reader_at) {
    void *handle;
    memcpy(&handle, reader_at, sizeof handle);
    const hd_chat_reader *reader = hd_handle_find(handle, kind);
    if (!reader) return hd_handle_refuse(handle, kind);
    memcpy(reader_at, &reader, sizeof reader);
    return hdl_context_lives(reader->model->context);
}

hd_status hd_chat_reader_create(hd_model *model, const hd_chat_form *form, hd_part_fn on_part, void *user,
                                hd_chat_reader **out_reader) {
    hd_status status = hdl_model_find(&model);
    if (status || !out_reader) return status ? status : HD_STATUS_NULL_POINTER;
    *out_reader = NULL;
    hd_error error = { 0 };
    hdl_tools tools = { 0 };
    const hdl_call_form *calls = NULL;
    if ((status = hdl_need_tokenizer(model))) return status;
    if (form && form->tools) status = hdl_find_calls(model, form, &tools, &calls, &error);
    if (!status && calls && calls->tags) status = hdl_tools_find_types(&tools, &error);
    hd_chat_reader *reader = status ? NULL : hdl_alloc(&model->allocator, sizeof *reader);
    if (!reader) {
        hdl_tools_free(&tools);
        return status ? hd_context_put_error(model->context, &error)
                      : hdl_model_fail(model, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a reader");
    }
    reader->model = hdl_model_hold(model);
    reader->tools = tools;
    hdl_reader_init(&reader->reader, &model->allocator, calls);
    reader->reader.tools = &reader->tools;
    reader->reader.on_part = on_part;
    reader->reader.user = user;
    status = hd_handle_new(model->context, kind, reader, &reader->handle);
    if (!status) *out_reader = reader->handle;
    else hd_chat_reader_destroy(reader);
    return status;
}

void hd_chat_reader_destroy(hd_chat_reader *reader) {
    reader = hd_handle_find(reader, kind);
    if (!reader || (reader->handle && !hd_handle_end(reader->handle))) return;
    const hd_allocator allocator = reader->model->allocator;
    hdl_reader_free(&reader->reader);
    hdl_tools_free(&reader->tools);
    hdl_model_release(reader->model);
    hdl_free(&allocator, reader, sizeof *reader);
}

/* The text of the last tokens, as much as a mark and space around it may take. */
bool hdl_prompt_begins_thought(const hd_model *model, const int32_t *prompt, size_t count) {
    uint8_t text[64];
    size_t from = count, at = sizeof text;
    while (from > 0 && prompt[from - 1] >= 0 && (uint32_t)prompt[from - 1] < model->figures.vocabulary) {
        const hdl_span token = hdl_token_text(model->tokenizer, prompt[from - 1]);
        if (token.count > at) break;
        at -= (size_t)token.count;
        if (token.count) memcpy(text + at, token.bytes, (size_t)token.count);
        if (count - --from == HDL_THOUGHT_TOKENS) break;
    }
    return hdl_begins_thought((hdl_span){ text + at, sizeof text - at });
}

hd_status hd_chat_reader_begin(hd_chat_reader *reader, const int32_t *prompt, size_t count) {
    const hd_status status = find_reader(&reader);
    if (status || (!prompt && count)) return status ? status : HD_STATUS_NULL_POINTER;
    hdl_reader_begin(&reader->reader, hdl_prompt_begins_thought(reader->model, prompt, count));
    return HD_OK;
}

static hd_status keep(const hd_chat_reader *reader, hd_status status) {
    if (!status) return HD_OK;
    return hdl_model_fail(reader->model, status, "no memory for an answer");
}

hd_status hd_chat_reader_push(hd_chat_reader *reader, const char *text, size_t bytes) {
    const hd_status status = find_reader(&reader);
    if (status || (!text && bytes)) return status ? status : HD_STATUS_NULL_POINTER;
    return keep(reader, hdl_reader_push(&reader->reader, (hdl_span){ (const uint8_t *)text, bytes }));
}

hd_status hd_chat_reader_end(hd_chat_reader *reader) {
    const hd_status status = find_reader(&reader);
    return status ? status : keep(reader, hdl_reader_end(&reader->reader));
}

const hd_message *hd_chat_reader_message(hd_chat_reader *reader) {
    if (find_reader(&reader)) return NULL;
    reader->message = hdl_reader_message(&reader->reader);
    return &reader->message;
}
