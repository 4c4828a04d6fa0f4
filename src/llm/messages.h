/* messages.h: a conversation as its caller tells it, made into what a chat template gets: JSON is read, calls have ids
 * and results their calls, and what people and tools wrote is guarded: it can spell a control token, but it cannot
 * become one. The model's own words go in as they are, since templates look into them. */
#ifndef HDL_MESSAGES_H
#define HDL_MESSAGES_H

#include "llm/calls.h"
#include "llm/chat.h"
#include "llm/model.h"
#include "llm/tools.h"

#define HDL_TEMPLATE_NAMES "chatml, llama3, qwen, gemma, mistral, llama2, phi3 or bitnet"

typedef struct hdl_messages {
    const hd_model   *model;
    hdl_chat_message *messages;
    hdl_chat_call    *calls;      /* of all messages, in their order */
    hdl_json         *documents;  /* the tools, and the arguments of each call */
    hdl_span         *made;       /* texts that were made for them */
    size_t            count, call_count, call_room, made_count, made_room;
    uint32_t          tools;      /* value of the first document; HDL_NO_VALUE: there are none */
    size_t            image_count; /* in all messages */
} hdl_messages;

/* The template that a form names, or the file's. Statuses: NAME_NOT_FOUND; UNSUPPORTED (there is none, or it knows no
 * tools and the form has some). */
hd_status hdl_find_template(const hd_model *model, const hd_chat_form *form, hdl_span *out_source, hd_error *error);
/* The tools of a form, and how its template's models write calls of them. hdl_tools_free in any case. Statuses: those
 * of hdl_find_template and hdl_tools_read; UNSUPPORTED: nobody knows how they are written. */
hd_status hdl_find_calls(const hd_model *model, const hd_chat_form *form, hdl_tools *out_tools,
                         const hdl_call_form **out_calls, hd_error *error);
/* Takes `count` messages, and tools where there are any (NULL: none), for a template; with `guard` they are guarded.
 * hdl_messages_free in any case. Statuses: NULL_POINTER, PARSE, INVALID_ARGUMENT, UNSUPPORTED (calls, and a template
 * that knows none), LIMIT, OUT_OF_HOST_MEMORY. */
hd_status hdl_messages_take(hdl_messages *m, hdl_span source, const char *tools, const hd_message *messages, bool guard,
                            hd_error *error);
void hdl_messages_free(hdl_messages *m);
/* What a message has in place of an image when it goes into a template: Gemma 3's control token. */
#define HDL_IMAGE_BEGIN "<start_of_image>"

#endif
