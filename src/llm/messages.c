/* messages.c: see messages.h. */
#include "llm/messages.h"
#include <stdio.h>

hd_status hdl_find_template(const hd_model *model, const hd_chat_form *form, hdl_span *out_source, hd_error *error) {
    const char *name = form ? form->template_name : NULL, *built_in = name ? hdl_chat_template(name) : NULL;
    if (name && !built_in)
        return hdl_fail(error, HD_STATUS_NAME_NOT_FOUND,
                        "no chat template is called \"%.40s\"; name one of " HDL_TEMPLATE_NAMES, name);
    const bool has_other = form && form->tools && model->tool_template.count > 0;
    *out_source = built_in ? hdl_text(built_in) : has_other ? model->tool_template : model->chat_template;
    if (out_source->count == 0)
        return hdl_fail(error, HD_STATUS_UNSUPPORTED, "the file has no chat template; name one of " HDL_TEMPLATE_NAMES);
    if (form && form->tools && !hdl_has(*out_source, "tools"))
        return hdl_fail(error, HD_STATUS_UNSUPPORTED,
                        "the chat template knows no tools; take a model that was trained to call them, or, for one of "
                        "Qwen's or Hermes' kind, the template qwen");
    return HD_OK;
}

hd_status hdl_find_calls(const hd_model *model, const hd_chat_form *form, hdl_tools *tools,
                         const hdl_call_form **out_calls, hd_error *error) {
    hdl_span source;
    hd_status status = hdl_find_template(model, form, &source, error);
    if (!status) status = hdl_tools_read(&model->allocator, form->tools, tools, error);
    if (status) return status;
    *out_calls = hdl_call_form_of(source);
    if (*out_calls) return HD_OK;
    return hdl_fail(error, HD_STATUS_UNSUPPORTED,
                    "the chat template has tools, but how its models write calls is not known; "
                    "docs/tools.md lists the forms, and says what can be done");
}

static hd_status no_memory(hd_error *error) {
    return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for messages");
}

/* Keeps a text until the end; where that fails it is freed. */
static hd_status keep(hdl_messages *m, uint8_t *text, uint64_t bytes, hd_error *error) {
    const hd_allocator *allocator = &m->model->allocator;
    if (!hdl_grow(allocator, &m->made, &m->made_room, m->made_count + 1, sizeof *m->made)) {
        hdl_free(allocator, text, bytes);
        return no_memory(error);
    }
    m->made[m->made_count++] = (hdl_span){ text, bytes };
    return HD_OK;
}

/* Puts a guarded text in the place of one that spells control tokens. */
static hd_status guard_text(hdl_messages *m, hdl_span *text, hd_error *error) {
    uint8_t *guarded = NULL;
    uint64_t bytes = 0;
    hd_status status =
        hdl_guard_text(m->model->tokenizer, &m->model->allocator, *text, &guarded, &bytes, error);
    if (status) return status;
    const hdl_span made = { guarded, bytes };
    if (hdl_same(made, *text)) hdl_free(&m->model->allocator, guarded, bytes);
    else if (!(status = keep(m, guarded, bytes, error))) *text = made;
    return status;
}

static hd_status guard_json(hdl_messages *m, hdl_json *json, hd_error *error) {
    hd_status status = HD_OK;
    for (uint32_t i = 1; i < json->count && !status; i++) {
        hdl_json_value *v = &json->values[i];
        if (v->kind == HDL_JSON_STRING) status = guard_text(m, &v->text, error);
        if (!status && v->name.count) status = guard_text(m, &v->name, error);
    }
    return status;
}

/* Reads a document; `what` it is goes in front of what is wrong with it. */
static hd_status read(hdl_messages *m, const char *what, const char *text, hdl_json *json, uint32_t *out_value,
                      hd_error *error) {
    hd_error own = { 0 };
    const hd_status status = hdl_json_read(&m->model->allocator, hdl_text(text), json, out_value, &own);
    return status ? hdl_fail(error, status, "%s: %s", what, own.text) : HD_OK;
}

/* ---- tools ---- */

static hd_status take_tools(hdl_messages *m, const char *text, bool guard, hd_error *error) {
    hdl_json *json = &m->documents[0];
    hd_status status = read(m, "the tools", text, json, &m->tools, error);
    if (!status) status = hdl_tools_check(json, m->tools, error);
    return !status && guard ? guard_json(m, json, error) : status;
}

/* ---- calls and what came of them ---- */

static hd_status take_call(hdl_messages *m, const hd_tool_call *from, bool guard, hd_error *error) {
    hdl_chat_call *call = &m->calls[m->call_count];
    hdl_json *json = &m->documents[1 + m->call_count++];
    char what[40], id[16];
    if (!from->name || !from->arguments)
        return hdl_fail(error, HD_STATUS_NULL_POINTER, "a call has no name or no arguments");
    if (!*from->name) return hdl_fail(error, HD_STATUS_INVALID_ARGUMENT, "a call has no name");
    *call = (hdl_chat_call){ .name = hdl_text(from->name), .json = json };
    snprintf(what, sizeof what, "the arguments of call %zu", m->call_count);
    hd_status status = read(m, what, from->arguments, json, &call->arguments, error);
    if (!status && json->values[call->arguments].kind != HDL_JSON_OBJECT)
        status = hdl_fail(error, HD_STATUS_INVALID_ARGUMENT, "%s are no object", what);
    if (!status && from->id) call->id = hdl_text(from->id);
    if (!status && !from->id) { /* nine letters and digits, as mistral's templates ask for */
        snprintf(id, sizeof id, "call%05u", (unsigned)(m->call_count % 100000));
        uint8_t *text = hdl_alloc(&m->model->allocator, strlen(id));
        if (text) memcpy(text, id, strlen(id));
        status = text ? keep(m, text, strlen(id), error) : no_memory(error);
        call->id = (hdl_span){ text, strlen(id) };
    }
    if (!status && guard) status = guard_json(m, json, error);
    if (!status && guard) status = guard_text(m, &call->name, error);
    return !status && guard ? guard_text(m, &call->id, error) : status;
}

/* The call that result number `result` came of: of those of the message that asked, the one of this id, or in its
 * place. */
static const hdl_chat_call *find_call(const hdl_chat_message *asked, const char *id, size_t result) {
    if (!id) return asked && result < asked->call_count ? &asked->calls[result] : NULL;
    for (size_t i = 0; asked && i < asked->call_count; i++)
        if (hdl_same(asked->calls[i].id, hdl_text(id))) return &asked->calls[i];
    return NULL;
}

/* What an assistant said: where an answer is several messages, the last one, without the marks around it. */
static hdl_span said(const hd_model *model, const char *content) {
    static const char begin[] = "<|message|>", end[] = "<|end|>";
    if (!model->channels) return hdl_text(content);
    for (const char *at; (at = strstr(content, begin));) content = at + strlen(begin);
    const char *to = strstr(content, end);
    return (hdl_span){ (const uint8_t *)content, to ? (uint64_t)(to - content) : strlen(content) };
}

/* Puts the marks of images in front of a text. */
static hd_status put_images(hdl_messages *m, uint32_t count, hdl_span *text, hd_error *error) {
    enum { MARK = sizeof HDL_IMAGE_BEGIN - 1, MOST_IMAGES = 64 };
    if (count > MOST_IMAGES)
        return hdl_fail(error, HD_STATUS_LIMIT, "a message has %u images; the limit is %d", count, MOST_IMAGES);
    const uint64_t bytes = (uint64_t)count * MARK + text->count;
    uint8_t *made = hdl_alloc(&m->model->allocator, bytes);
    if (!made) return no_memory(error);
    for (uint32_t i = 0; i < count; i++) memcpy(made + i * MARK, HDL_IMAGE_BEGIN, MARK);
    if (text->count) memcpy(made + (uint64_t)count * MARK, text->bytes, text->count);
    const hd_status status = keep(m, made, bytes, error);
    if (status) return status;
    *text = (hdl_span){ made, bytes };
    m->image_count += count;
    return HD_OK;
}

static hd_status take_messages(hdl_messages *m, const hd_message *messages, bool guard, const hdl_call_form *form,
                               hd_error *error) {
    const hdl_chat_message *asked = NULL;
    size_t results = 0;
    hd_status status = HD_OK;
    for (size_t i = 0; i < m->count && !status; i++) {
        const hd_message *from = &messages[i];
        hdl_chat_message *to = &m->messages[i];
        to->role = hdl_text(from->role ? from->role : "");
        if (from->content || !from->call_count) to->content = hdl_text(from->content ? from->content : "");
        const bool own = hdl_same(to->role, hdl_text("assistant"));
        if (own && from->content) to->content = said(m->model, from->content);
        to->calls = &m->calls[m->call_count];
        for (; to->call_count < from->call_count && !status; to->call_count++)
            status = take_call(m, &from->calls[to->call_count], guard, error);
        if (own) asked = to, results = 0;
        if (form && form->no_content && to->call_count && !to->content.count) to->content.bytes = NULL;
        if (hdl_same(to->role, hdl_text("tool"))) to->call = find_call(asked, from->call_id, results++);
        if (!status && guard && !own) status = guard_text(m, &to->content, error);
        if (!status && from->images) status = put_images(m, from->images, &to->content, error);
    }
    return status;
}

/* How many calls there are; what is wrong with them by their number. */
static hd_status count_calls(const hdl_messages *m, const hd_message *messages, size_t *out, hd_error *error) {
    *out = 0;
    for (size_t i = 0; i < m->count; i++) {
        *out += messages[i].call_count;
        if (messages[i].call_count > HDL_MAX_CALLS)
            return hdl_fail(error, HD_STATUS_LIMIT, "message %zu has %zu calls; the limit is %u", i + 1,
                            messages[i].call_count, HDL_MAX_CALLS);
        if (messages[i].call_count && !messages[i].calls)
            return hdl_fail(error, HD_STATUS_NULL_POINTER, "message %zu has no list of its calls", i + 1);
    }
    return HD_OK;
}

hd_status hdl_messages_take(hdl_messages *m, hdl_span source, const char *tools, const hd_message *messages, bool guard,
                            hd_error *error) {
    const hd_allocator *allocator = &m->model->allocator;
    size_t calls;
    hd_status status = count_calls(m, messages, &calls, error);
    if (status) return status;
    if (calls && !hdl_has(source, "tool_calls"))
        return hdl_fail(error, HD_STATUS_UNSUPPORTED, "the chat template knows no calls of tools");
    m->messages = hdl_alloc(allocator, m->count * sizeof *m->messages);
    m->calls = hdl_alloc(allocator, calls * sizeof *m->calls);
    m->documents = hdl_alloc(allocator, (1 + calls) * sizeof *m->documents);
    m->call_room = calls;
    if (!m->messages || !m->calls || !m->documents) return no_memory(error);
    if (tools) status = take_tools(m, tools, guard, error);
    return status ? status : take_messages(m, messages, guard, hdl_call_form_of(source), error);
}

void hdl_messages_free(hdl_messages *m) {
    const hd_allocator *allocator = &m->model->allocator;
    for (size_t i = 0; i < m->made_count; i++) hdl_free(allocator, (uint8_t *)m->made[i].bytes, m->made[i].count);
    for (size_t i = 0; m->documents && i <= m->call_room; i++) hdl_json_free(&m->documents[i]);
    hdl_free(allocator, m->made, m->made_room * sizeof *m->made);
    hdl_free(allocator, m->documents, (1 + m->call_room) * sizeof *m->documents);
    hdl_free(allocator, m->calls, m->call_room * sizeof *m->calls);
    hdl_free(allocator, m->messages, m->count * sizeof *m->messages);
}
