/* talk.c: see talk.h. Calls stand in JSON as OpenAI's API has them, what they are made with as a text;
 * read, it may also be an object. */
#define _POSIX_C_SOURCE 200809L
#include "cli/talk.h"
#include <stdlib.h>
#include <string.h>

/* ---- messages ---- */

/* A copy of a text; none of none. */
static char *copied(const char *text, bool *ok) {
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy) *ok = false;
    return copy;
}

static void forget(const char *text) { free((char *)text); }

void message_free(hd_message *message) {
    for (size_t i = 0; i < message->call_count; i++) {
        forget(message->calls[i].id);
        forget(message->calls[i].name);
        forget(message->calls[i].arguments);
    }
    free((hd_tool_call *)message->calls);
    forget(message->role);
    forget(message->content);
    forget(message->call_id);
    *message = (hd_message){ 0 };
}

static bool copy_message(const hd_message *from, hd_message *to) {
    bool ok = true;
    hd_tool_call *calls = calloc(from->call_count + 1, sizeof *calls);
    *to = (hd_message){ .role = copied(from->role, &ok),
                        .content = copied(from->content ? from->content : "", &ok),
                        .calls = calls,
                        .call_id = copied(from->call_id, &ok),
                        .images = from->images };
    for (; calls && to->call_count < from->call_count; to->call_count++) {
        const hd_tool_call *call = &from->calls[to->call_count];
        calls[to->call_count] = (hd_tool_call){ .id = copied(call->id, &ok),
                                                .name = copied(call->name, &ok),
                                                .arguments = copied(call->arguments, &ok) };
    }
    if (!calls || !ok) message_free(to);
    return calls && ok;
}

bool talk_add(talk *c, const hd_message *message) {
    if (c->count == c->room) {
        const size_t room = 2 * c->room + 16;
        hd_message *grown = realloc(c->messages, room * sizeof *grown);
        if (!grown) return false;
        c->messages = grown;
        c->room = room;
    }
    if (!copy_message(message, &c->messages[c->count])) return false;
    c->count++;
    return true;
}

bool message_say(hd_message *message, const char *content) {
    char *copy = strdup(content);
    if (!copy) return false;
    forget(message->content);
    message->content = copy;
    return true;
}

hd_message talk_take_last(talk *c) { return c->messages[--c->count]; }
void talk_put_back(talk *c, hd_message message) { c->messages[c->count++] = message; }

void talk_cut(talk *c, size_t count) {
    while (c->count > count) message_free(&c->messages[--c->count]);
}

void talk_free(talk *c) {
    talk_cut(c, 0);
    free(c->messages);
    *c = (talk){ 0 };
}

/* ---- as JSON ---- */

static json_t *call_json(const hd_tool_call *call, bool *ok) {
    json_t *root = json_object(), *function = json_object();
    if (call->id) cli_put(root, "id", cli_json_text(call->id), ok);
    cli_put(root, "type", json_string("function"), ok);
    cli_put(function, "name", cli_json_text(call->name), ok);
    cli_put(function, "arguments", cli_json_text(call->arguments), ok);
    cli_put(root, "function", function, ok);
    return root;
}

json_t *talk_json(const talk *c, size_t first, bool *ok) {
    json_t *root = json_object(), *list = json_array();
    for (size_t i = first; i < c->count; i++) {
        const hd_message *m = &c->messages[i];
        json_t *message = json_object(), *calls = m->call_count ? json_array() : NULL;
        cli_put(message, "role", json_string(m->role), ok);
        cli_put(message, "content", cli_json_text(m->content), ok);
        for (size_t k = 0; k < m->call_count; k++)
            if (json_array_append_new(calls, call_json(&m->calls[k], ok))) *ok = false;
        if (m->call_count) cli_put(message, "tool_calls", calls, ok);
        if (m->call_id) cli_put(message, "tool_call_id", cli_json_text(m->call_id), ok);
        if (json_array_append_new(list, message)) *ok = false;
    }
    cli_put(root, "messages", list, ok);
    return root;
}

static const char *text_at(const json_t *object, const char *name) {
    return json_string_value(json_object_get(object, name));
}

/* What a call is made with, as a text that the caller frees; NULL: no object, or no memory. */
static char *read_arguments(const json_t *value) {
    const size_t flags = JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL;
    json_error_t where;
    if (json_is_object(value)) return json_dumps(value, 0);
    json_t *object = json_is_string(value) ? json_loads(json_string_value(value), flags, &where) : NULL;
    char *text = json_is_object(object) ? strdup(json_string_value(value)) : NULL;
    json_decref(object);
    return text;
}

static bool read_message(talk *c, const json_t *value) {
    static const char *const roles[] = { "system", "user", "assistant", "tool" };
    const json_t *list = json_object_get(value, "tool_calls");
    const size_t count = json_array_size(list);
    hd_tool_call *calls = calloc(count + 1, sizeof *calls);
    hd_message m = { .role = text_at(value, "role"),
                     .content = text_at(value, "content"),
                     .calls = calls,
                     .call_id = text_at(value, "tool_call_id") };
    bool ok = false;
    for (size_t i = 0; i < CLI_COUNT(roles) && m.role; i++) ok = ok || strcmp(roles[i], m.role) == 0;
    ok = ok && calls && (m.content || count) && (count == 0 || strcmp(m.role, "assistant") == 0);
    for (; ok && m.call_count < count; m.call_count++) {
        const json_t *call = json_array_get(list, m.call_count), *function = json_object_get(call, "function");
        calls[m.call_count] = (hd_tool_call){ .id = text_at(call, "id"),
                                              .name = text_at(function, "name"),
                                              .arguments = read_arguments(json_object_get(function, "arguments")) };
        ok = calls[m.call_count].name && calls[m.call_count].name[0] && calls[m.call_count].arguments;
    }
    ok = ok && talk_add(c, &m);
    for (size_t i = 0; i < m.call_count; i++) forget(calls[i].arguments);
    free(calls);
    return ok;
}

bool talk_read(talk *c, const json_t *root) {
    const json_t *list = json_object_get(root, "messages");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!read_message(c, json_array_get(list, i))) return false;
    return json_is_array(list);
}
