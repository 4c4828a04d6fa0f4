/* conversation.c: messages as the text, and as the tokens, that a model was trained to continue. What people write is
 * guarded: it can spell a control token, but it cannot become one. The model's own words go in as they are, since
 * templates look into them. */
#include "llm/chat.h"
#include "llm/model.h"
#include <time.h>

#define TEMPLATE_NAMES "chatml, llama3, qwen, gemma, mistral, llama2, phi3 or bitnet"

/* Messages on their way to the template. */
typedef struct conversation {
    const hd_model   *model;
    hdl_chat_message *messages;
    size_t            count;
    uint8_t         **guarded;  /* the texts that were made for them, or NULL */
    char             *text;     /* rendered */
    size_t            bytes;
    hd_error          error;
} conversation;

static hd_status no_memory(conversation *c) {
    return hdl_fail(&c->error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for %zu messages", c->count);
}

/* What an assistant said: where an answer is several messages, the last one, without the marks around it. */
static hdl_span said(const hd_model *model, const char *content) {
    static const char begin[] = "<|message|>", end[] = "<|end|>";
    if (model->mark_count == 0) return hdl_text(content);
    for (const char *at; (at = strstr(content, begin));) content = at + strlen(begin);
    const char *to = strstr(content, end);
    return (hdl_span){ (const uint8_t *)content, to ? (uint64_t)(to - content) : strlen(content) };
}

/* Takes the messages; with `guard`, those that people wrote are guarded. */
static hd_status take(conversation *c, const hd_message *messages, bool guard) {
    const hd_model *model = c->model;
    c->messages = hdl_alloc(&model->allocator, c->count * sizeof *c->messages);
    c->guarded = hdl_alloc(&model->allocator, c->count * sizeof *c->guarded);
    if (!c->messages || !c->guarded) return no_memory(c);
    for (size_t i = 0; i < c->count; i++) {
        hdl_chat_message *m = &c->messages[i];
        *m = (hdl_chat_message){ hdl_text(messages[i].role ? messages[i].role : ""),
                                 hdl_text(messages[i].content ? messages[i].content : "") };
        const bool own = hdl_same(m->role, hdl_text("assistant"));
        if (own && messages[i].content) m->content = said(model, messages[i].content);
        if (!guard || own) continue;
        const hd_status status = hdl_guard_text(model->tokenizer, &model->allocator, m->content, &c->guarded[i],
                                                &m->content.count, &c->error);
        if (status) return status;
        m->content.bytes = c->guarded[i];
    }
    return HD_OK;
}

static void forget(conversation *c) {
    const hd_allocator *allocator = &c->model->allocator;
    for (size_t i = 0; i < c->count && c->guarded && c->messages; i++)
        hdl_free(allocator, c->guarded[i], c->messages[i].content.count);
    hdl_free(allocator, c->guarded, c->count * sizeof *c->guarded);
    hdl_free(allocator, c->messages, c->count * sizeof *c->messages);
    if (c->text) hdl_chat_free(allocator, c->text, c->bytes);
}

/* @param turn whether the text ends where an assistant is to begin */
static hd_status render(conversation *c, const hd_chat_form *form, const hd_message *messages, bool guard, bool turn) {
    const hd_model *model = c->model;
    const char *template_name = form ? form->template_name : NULL;
    const char *built_in = template_name ? hdl_chat_template(template_name) : NULL;
    if (template_name && !built_in)
        return hdl_fail(&c->error, HD_STATUS_NAME_NOT_FOUND,
                        "no chat template is called \"%.40s\"; name one of " TEMPLATE_NAMES, template_name);
    if (!built_in && model->chat_template.count == 0)
        return hdl_fail(&c->error, HD_STATUS_UNSUPPORTED, "the file has no chat template; name one of " TEMPLATE_NAMES);
    const hd_status status = take(c, messages, guard);
    if (status) return status;
    const hdl_chat_desc desc = { .source = built_in ? hdl_text(built_in) : model->chat_template,
                                 .messages = c->messages,
                                 .message_count = c->count,
                                 .add_generation_prompt = turn,
                                 .bos = hdl_token_text(model->tokenizer, hdl_token_bos(model->tokenizer)),
                                 .eos = hdl_token_text(model->tokenizer, hdl_token_eos(model->tokenizer)),
                                 .thinking = form ? form->thinking : HD_THINKING_DEFAULT,
                                 .now = (int64_t)time(NULL) };
    const hd_status rendered = hdl_chat_render(&model->allocator, &desc, &c->text, &c->bytes, &c->error);
    if (rendered || c->bytes) return rendered;
    return hdl_fail(&c->error, HD_STATUS_UNSUPPORTED,
                    "the chat template makes no text of these messages; name one of " TEMPLATE_NAMES);
}

hd_status hd_model_render_chat(const hd_model *model, const hd_chat_form *form, const hd_message *messages,
                               size_t count, char *out_text, size_t room, size_t *out_needed) {
    hd_status status = hdl_model_find(&model);
    if (status || (!messages && count) || (!out_text && room)) return status ? status : HD_STATUS_NULL_POINTER;
    conversation c = { .model = model, .count = count };
    status = hdl_need_tokenizer(model);
    if (status) return status;
    if ((status = render(&c, form, messages, false, true))) {
        forget(&c);
        return hd_context_put_error(model->context, &c.error);
    }
    const size_t shown = c.bytes < room ? c.bytes : room ? room - 1 : 0;
    if (room) {
        memcpy(out_text, c.text, shown);
        out_text[shown] = 0;
    }
    if (out_needed) *out_needed = c.bytes + 1;
    status = shown == c.bytes && room ? HD_OK : HD_STATUS_LIMIT; /* asking for the size is no failure to be kept */
    forget(&c);
    return status;
}

/* Messages of which parts are looked at. */
typedef struct whole {
    const hd_model     *model;
    const hd_chat_form *form;
    const hd_message   *messages;
    hd_error            error;
} whole;

/* The tokens of the first `count` messages, added to the list. */
static hd_status tokens_of(whole *w, size_t count, bool turn, hdl_id_list *list) {
    conversation c = { .model = w->model, .count = count };
    hd_status status = render(&c, w->form, w->messages, true, turn);
    if (!status)
        status = hdl_tokenize(w->model->tokenizer, c.text, c.bytes, HDL_PARSE_SPECIAL | HDL_GUARDED, list, &c.error);
    forget(&c);
    if (status) w->error = c.error;
    return status;
}

hd_status hd_model_chat_tokens(const hd_model *model, const hd_chat_form *form, const hd_message *messages,
                               size_t message_count, int32_t *out_tokens, size_t *count) {
    hd_status status = hdl_model_find(&model);
    if (status || !count || (!messages && message_count)) return status ? status : HD_STATUS_NULL_POINTER;
    whole w = { model, form, messages, { 0 } };
    hdl_id_list list = { .allocator = model->allocator };
    status = hdl_need_tokenizer(model);
    if (status) return status;
    status = tokens_of(&w, message_count, true, &list);
    const hd_status copied = hdl_id_list_copy(&list, out_tokens, count, &w.error);
    if (!status) status = copied;
    hdl_id_list_free(&list);
    return status ? hd_context_put_error(model->context, &w.error) : HD_OK;
}

/* ---- what an assistant said ---- */

/* How many of the conversation's tokens are those of its first `count` messages. */
static hd_status length_of(whole *w, size_t count, bool turn, const hdl_id_list *all, size_t *out) {
    hdl_id_list first = { .allocator = w->model->allocator };
    const hd_status status = tokens_of(w, count, turn, &first);
    for (*out = 0; !status && *out < first.count && *out < all->count && first.ids[*out] == all->ids[*out];) ++*out;
    hdl_id_list_free(&first);
    return status;
}

static hd_status mark_said(whole *w, size_t count, const hdl_id_list *all, uint8_t *out_said) {
    hd_status status = HD_OK;
    memset(out_said, 0, all->count);
    for (size_t i = 0; i < count && !status; i++) {
        size_t from = 0, to = all->count;
        if (!w->messages[i].role || strcmp(w->messages[i].role, "assistant") != 0) continue;
        status = length_of(w, i, true, all, &from);
        if (!status && i + 1 < count) status = length_of(w, i + 1, false, all, &to);
        if (!status && to > from) memset(out_said + from, 1, to - from);
    }
    return status;
}

hd_status hd_model_chat_said(const hd_model *model, const hd_chat_form *form, const hd_message *messages,
                             size_t message_count, int32_t *out_tokens, uint8_t *out_said, size_t *count) {
    hd_status status = hdl_model_find(&model);
    if (status || !count || !messages || (out_tokens && !out_said)) return status ? status : HD_STATUS_NULL_POINTER;
    whole w = { model, form, messages, { 0 } };
    hdl_id_list all = { .allocator = model->allocator };
    status = hdl_need_tokenizer(model);
    if (status) return status;
    status = tokens_of(&w, message_count, false, &all);
    const hd_status copied = hdl_id_list_copy(&all, out_tokens, count, &w.error);
    if (!status) status = copied;
    if (!status && out_tokens) status = mark_said(&w, message_count, &all, out_said);
    hdl_id_list_free(&all);
    return status ? hd_context_put_error(model->context, &w.error) : HD_OK;
}
