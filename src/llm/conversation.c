/* conversation.c: messages as the text, and as the tokens, that a model was trained to continue. */
#include "llm/messages.h"
#include <time.h>

/* Messages on their way through the template. */
typedef struct conversation {
    hdl_messages messages;
    char        *text;     /* rendered */
    size_t       bytes;
    hd_error     error;
} conversation;

static void forget(conversation *c) {
    if (c->text) hdl_chat_free(&c->messages.model->allocator, c->text, c->bytes);
    hdl_messages_free(&c->messages);
}

/* ---- images ---- */

/* What Gemma 3 was trained with around an image. */
#define AROUND_BEGIN "\n\n" HDL_IMAGE_BEGIN
#define AROUND_END   "<end_of_image>\n\n"

static int32_t image_token(const hd_model *model) {
    return model->figures.sees ? hdl_token_find(model->tokenizer, HDL_IMAGE_BEGIN, strlen(HDL_IMAGE_BEGIN))
                               : HDL_NO_TOKEN;
}

static size_t count_marks(const conversation *c) {
    size_t count = 0;
    for (const char *at = c->text; (at = strstr(at, HDL_IMAGE_BEGIN)); at++) count++;
    return count;
}

/* Puts what stands around an image in the place of each mark, of which there are as many as images. */
static hd_status put_around(conversation *c) {
    static const char around[] = AROUND_BEGIN AROUND_END;
    const hd_model *model = c->messages.model;
    const size_t images = c->messages.image_count, mark = strlen(HDL_IMAGE_BEGIN), more = sizeof around - 1 - mark;
    if (images == 0) return HD_OK;
    if (image_token(model) == HDL_NO_TOKEN)
        return hdl_fail(&c->error, HD_STATUS_UNSUPPORTED, "this %s does not see; leave images out, or take a gemma3 "
                        "with its mmproj file", model->arch_name);
    if (count_marks(c) != images)
        return hdl_fail(&c->error, HD_STATUS_UNSUPPORTED, "the chat template has %zu places for %zu images",
                        count_marks(c), images);
    const size_t bytes = c->bytes + images * more;
    char *made = hdl_alloc(&model->allocator, bytes + 1), *to = made;
    if (!made) return hdl_fail(&c->error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a conversation");
    const char *from = c->text;
    for (const char *at; (at = strstr(from, HDL_IMAGE_BEGIN)); from = at + mark) {
        memcpy(to, from, (size_t)(at - from));
        to += at - from;
        memcpy(to, around, sizeof around - 1);
        to += sizeof around - 1;
    }
    memcpy(to, from, (size_t)(c->text + c->bytes - from));
    hdl_chat_free(&model->allocator, c->text, c->bytes);
    c->text = made;
    c->bytes = bytes;
    return HD_OK;
}

/* Puts -1 behind each token that begins an image. */
static hd_status put_places(const conversation *c, hdl_id_list *list, hd_error *error) {
    const int32_t begin = image_token(c->messages.model);
    const size_t images = c->messages.image_count;
    size_t found = 0;
    if (images == 0) return HD_OK;
    if (!hdl_grow(&list->allocator, &list->ids, &list->capacity, list->count + images, sizeof *list->ids))
        return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for tokens");
    for (size_t i = 0; i < list->count; i++) found += list->ids[i] == begin;
    if (found != images)
        return hdl_fail(error, HD_STATUS_UNSUPPORTED, "the tokenizer has %zu places for %zu images", found, images);
    for (size_t from = list->count, to = from + images; from > 0 && to > from;) {
        const int32_t token = list->ids[--from];
        if (token == begin) list->ids[--to] = HDL_NO_TOKEN;
        list->ids[--to] = token;
    }
    list->count += images;
    return HD_OK;
}

/* ---- the text ---- */

/* @param turn whether the text ends where an assistant is to begin */
static hd_status render(conversation *c, const hd_chat_form *form, const hd_message *messages, bool guard, bool turn) {
    const hdl_messages *m = &c->messages;
    const hd_model *model = m->model;
    const char *tools = form ? form->tools : NULL;
    hdl_span source;
    hd_status status = hdl_find_template(model, form, &source, &c->error);
    if (!status) status = hdl_messages_take(&c->messages, source, tools, messages, guard, &c->error);
    if (status) return status;
    const hdl_call_form *calls = hdl_call_form_of(source);
    const hdl_chat_desc desc = { .source = source,
                                 .messages = m->messages,
                                 .message_count = m->count,
                                 .add_generation_prompt = turn,
                                 .bos = hdl_token_text(model->tokenizer, hdl_token_bos(model->tokenizer)),
                                 .eos = hdl_token_text(model->tokenizer, hdl_token_eos(model->tokenizer)),
                                 .thinking = form ? form->thinking : HD_THINKING_DEFAULT,
                                 .tools = m->tools ? &m->documents[0] : NULL,
                                 .tools_value = m->tools,
                                 .text_arguments = calls && calls->text_arguments,
                                 .now = (int64_t)time(NULL) };
    status = hdl_chat_render(&model->allocator, &desc, &c->text, &c->bytes, &c->error);
    if (status || c->bytes) return status ? status : put_around(c);
    return hdl_fail(&c->error, HD_STATUS_UNSUPPORTED,
                    "the chat template makes no text of these messages; name one of " HDL_TEMPLATE_NAMES);
}

hd_status hd_model_render_chat(const hd_model *model, const hd_chat_form *form, const hd_message *messages,
                               size_t count, char *out_text, size_t room, size_t *out_needed) {
    hd_status status = hdl_model_find(&model);
    if (status || (!messages && count) || (!out_text && room)) return status ? status : HD_STATUS_NULL_POINTER;
    conversation c = { .messages = { .model = model, .count = count } };
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
    conversation c = { .messages = { .model = w->model, .count = count } };
    hd_status status = render(&c, w->form, w->messages, true, turn);
    if (!status)
        status = hdl_tokenize(w->model->tokenizer, c.text, c.bytes, HDL_PARSE_SPECIAL | HDL_GUARDED, list, &c.error);
    if (!status) status = put_places(&c, list, &c.error);
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
