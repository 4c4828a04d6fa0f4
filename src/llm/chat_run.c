/* chat_run.c: renders a template: the bounds of a run, its variables, its statements. */
#include "llm/chat_inside.h"
#include <stdarg.h>
#include <stdio.h>

/* ---- errors and bounds ---- */

void hdl_chat_fail(hdl_chat_run *run, hd_status status, uint32_t at, const char *format, ...) {
    if (hdl_chat_stopped(run)) return;
    char words[300];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    run->status = hdl_fail(run->error, status, "chat template: %s at byte %u", words, at);
}

void hdl_chat_unsupported(hdl_chat_run *run, uint32_t at, const char *what, hdl_span name) {
    if (hdl_chat_stopped(run)) return;
    char shown[HDL_QUOTE];
    run->status = hdl_fail(run->error, HD_STATUS_UNSUPPORTED,
                           "chat template: %s %s at byte %u is not supported; name one of heddle's own templates", what,
                           hdl_quote(name, shown), at);
}

bool hdl_chat_step(hdl_chat_run *run, uint64_t steps) {
    if (hdl_chat_stopped(run)) return false;
    if (steps > HDL_MAX_CHAT_STEPS || run->steps > HDL_MAX_CHAT_STEPS - steps) {
        hdl_chat_fail(run, HD_STATUS_LIMIT, run->at, "more than %u steps", HDL_MAX_CHAT_STEPS);
        return false;
    }
    run->steps += steps;
    return true;
}

/* ---- memory ---- */

enum { CHUNK_BYTES = 64 << 10 };

typedef struct hdl_chunk {
    struct hdl_chunk *older;
    uint64_t bytes, used; /* of the chunk with this head */
} hdl_chunk;

void *hdl_chat_take(hdl_chat_run *run, uint64_t count, uint64_t item_bytes) {
    uint64_t bytes, chunk_bytes;
    if (hdl_chat_stopped(run)) return NULL;
    if (!hdl_mul(count, item_bytes, &bytes) || bytes > HDL_MAX_CHAT_MEMORY) bytes = HDL_MAX_CHAT_MEMORY;
    bytes = bytes ? (bytes + 15) & ~UINT64_C(15) : 16;
    hdl_chunk *chunk = run->chunks;
    if (!chunk || chunk->bytes - chunk->used < bytes) {
        const uint64_t head = (sizeof *chunk + 15) & ~UINT64_C(15);
        chunk_bytes = head + bytes > CHUNK_BYTES ? head + bytes : CHUNK_BYTES;
        if (chunk_bytes > HDL_MAX_CHAT_MEMORY - run->memory) {
            hdl_chat_fail(run, HD_STATUS_LIMIT, run->at, "more than %u bytes of memory", HDL_MAX_CHAT_MEMORY);
            return NULL;
        }
        chunk = hdl_alloc(&run->allocator, chunk_bytes);
        if (!chunk) {
            hdl_chat_fail(run, HD_STATUS_OUT_OF_HOST_MEMORY, run->at, "no memory for %llu bytes", (unsigned long long)chunk_bytes);
            return NULL;
        }
        *chunk = (hdl_chunk){ .older = run->chunks, .bytes = chunk_bytes, .used = head };
        run->memory += chunk_bytes;
        run->chunks = chunk;
    }
    void *taken = (uint8_t *)chunk + chunk->used;
    chunk->used += bytes;
    return taken;
}

void hdl_chat_end(hdl_chat_run *run) {
    while (run->chunks) {
        hdl_chunk *chunk = run->chunks;
        run->chunks = chunk->older;
        hdl_free(&run->allocator, chunk, chunk->bytes);
    }
}

/* ---- variables ---- */

struct hdl_binding {
    hdl_span     name;
    hdl_value    value;
    hdl_binding *next;
};

void hdl_bind(hdl_chat_run *run, hdl_scope *scope, hdl_span name, hdl_value value) {
    hdl_binding *binding = scope->bindings;
    while (binding && hdl_chat_step(run, 1) && !hdl_same(binding->name, name)) binding = binding->next;
    if (!binding) {
        binding = hdl_chat_take(run, 1, sizeof *binding);
        if (!binding) return;
        *binding = (hdl_binding){ .name = name, .next = scope->bindings };
        scope->bindings = binding;
    }
    binding->value = value;
}

hdl_value hdl_lookup(hdl_chat_run *run, hdl_span name) {
    for (const hdl_scope *scope = run->scope; scope; scope = scope->outer)
        for (const hdl_binding *binding = scope->bindings; binding; binding = binding->next) {
            if (!hdl_chat_step(run, 1)) return hdl_none();
            if (hdl_same(binding->name, name)) return binding->value;
        }
    return hdl_undefined(name);
}

/* ---- statements ---- */

hdl_span hdl_run_captured(hdl_chat_run *run, const hdl_node *list) {
    hdl_sink sink = { .limit = HDL_MAX_CHAT_BYTES }, *outer = run->out;
    run->out = &sink;
    hdl_run_list(run, list);
    run->out = outer;
    return hdl_sunk(&sink);
}

/* Gives the loop's names their values; false after a failure. */
static bool bind_item(hdl_chat_run *run, const hdl_node *node, hdl_scope *scope, hdl_value item) {
    if (!node->b->next) {
        hdl_bind(run, scope, node->b->text, item);
        return !hdl_chat_stopped(run);
    }
    const hdl_list parts = hdl_items(run, node->at, item);
    size_t i = 0;
    for (const hdl_node *name = node->b; name && !hdl_chat_stopped(run); name = name->next, i++)
        if (i < parts.count) hdl_bind(run, scope, name->text, parts.items[i]);
    if (i != parts.count) hdl_chat_fail(run, HD_STATUS_PARSE, node->at, "an item of %zu parts for %zu names", parts.count, i);
    return !hdl_chat_stopped(run);
}

/* The items for which the loop's condition holds. */
static hdl_list chosen(hdl_chat_run *run, const hdl_node *node, hdl_list items) {
    if (!node->c || items.count == 0) return items;
    hdl_list kept = { .items = hdl_chat_take(run, items.count, sizeof *kept.items) };
    for (size_t i = 0; i < items.count && !hdl_chat_stopped(run); i++) {
        hdl_scope scope = { .outer = run->scope };
        if (!bind_item(run, node, &scope, items.items[i])) break;
        run->scope = &scope;
        if (hdl_true(hdl_eval(run, node->c)) && !hdl_chat_stopped(run)) kept.items[kept.count++] = items.items[i];
        run->scope = scope.outer;
    }
    return kept;
}

static void run_for(hdl_chat_run *run, const hdl_node *node) {
    const hdl_value source = hdl_eval(run, node->a);
    hdl_list items = { 0 };
    if (!hdl_chat_stopped(run)) items = chosen(run, node, hdl_items(run, node->at, source));
    hdl_scope *outer = run->scope;
    hdl_loop *loop = hdl_chat_take(run, 1, sizeof *loop);
    hdl_list *kept = hdl_chat_take(run, 1, sizeof *kept);
    if (hdl_chat_stopped(run)) return;
    *kept = items;
    loop->items = kept;
    for (size_t i = 0; i < items.count && !hdl_chat_stopped(run) && run->flow != HDL_FLOW_BREAK; i++) {
        hdl_scope scope = { .outer = outer };
        run->flow = HDL_FLOW_ON;
        loop->index = i;
        hdl_bind(run, &scope, hdl_text("loop"), (hdl_value){ .kind = HDL_IS_LOOP, .as.loop = loop });
        if (!bind_item(run, node, &scope, items.items[i])) break;
        run->scope = &scope;
        hdl_run_list(run, node->list);
        run->scope = outer;
    }
    run->flow = HDL_FLOW_ON;
    if (items.count == 0) {
        hdl_scope scope = { .outer = outer };
        run->scope = &scope;
        hdl_run_list(run, node->other);
        run->scope = outer;
    }
}

static void run_set(hdl_chat_run *run, const hdl_node *node) {
    const hdl_value value = node->a ? hdl_eval(run, node->a) : hdl_text_value(hdl_run_captured(run, node->list));
    if (hdl_chat_stopped(run)) return;
    if (!node->other) {
        hdl_bind(run, run->scope, node->text, value);
        return;
    }
    const hdl_value space = hdl_lookup(run, node->text);
    if (hdl_is(space, HDL_IS_NAMESPACE)) hdl_map_set(run, space.as.map, node->other->text, value);
    else hdl_chat_fail(run, HD_STATUS_PARSE, node->at, "a member is set of what is no namespace");
}

static void run_statement(hdl_chat_run *run, const hdl_node *node) {
    hdl_scope scope = { .outer = run->scope };
    switch (node->kind) {
    case HDL_NODE_DATA: hdl_put(run, run->out, node->text); break;
    case HDL_NODE_PRINT: {
        const hdl_value value = hdl_eval(run, node->a);
        if (!hdl_chat_stopped(run)) hdl_put_value(run, run->out, value, false);
        break;
    }
    case HDL_NODE_IF: hdl_run_list(run, hdl_true(hdl_eval(run, node->a)) ? node->list : node->other); break;
    case HDL_NODE_FOR: run_for(run, node); break;
    case HDL_NODE_SET: run_set(run, node); break;
    case HDL_NODE_MACRO: hdl_bind(run, run->scope, node->text, (hdl_value){ .kind = HDL_IS_MACRO, .as.macro = node }); break;
    case HDL_NODE_GROUP:
        run->scope = &scope;
        hdl_run_list(run, node->list);
        run->scope = scope.outer;
        break;
    case HDL_NODE_BREAK: run->flow = HDL_FLOW_BREAK; break;
    case HDL_NODE_CONTINUE: run->flow = HDL_FLOW_CONTINUE; break;
    default: break;
    }
}

void hdl_run_list(hdl_chat_run *run, const hdl_node *list) {
    if (++run->depth > HDL_MAX_CHAT_NESTING) hdl_chat_fail(run, HD_STATUS_LIMIT, run->at, "nested more than %u deep", HDL_MAX_CHAT_NESTING);
    for (const hdl_node *node = list; node && run->flow == HDL_FLOW_ON && hdl_chat_step(run, 1); node = node->next) {
        run->at = node->at;
        run_statement(run, node);
    }
    run->depth--;
}

/* ---- a rendering ---- */

static void bind_messages(hdl_chat_run *run) {
    const hdl_chat_desc *desc = run->desc;
    const hdl_value list = hdl_list_value(run, HDL_IS_LIST, desc->message_count);
    for (size_t i = 0; i < desc->message_count && !hdl_chat_stopped(run); i++) {
        const hdl_value message = hdl_map_value(run, HDL_IS_MAP);
        if (hdl_chat_stopped(run)) return;
        hdl_map_set(run, message.as.map, hdl_text("role"), hdl_text_value(desc->messages[i].role));
        hdl_map_set(run, message.as.map, hdl_text("content"), hdl_text_value(desc->messages[i].content));
        list.as.list->items[i] = message;
    }
    hdl_bind(run, run->globals, hdl_text("messages"), list);
}

static void bind_globals(hdl_chat_run *run) {
    const hdl_chat_desc *desc = run->desc;
    hdl_bind_functions(run);
    /* What others give to every template: some compare with none, which an undefined value is not. */
    hdl_bind(run, run->globals, hdl_text("tools"), hdl_none());
    hdl_bind(run, run->globals, hdl_text("documents"), hdl_none());
    hdl_bind(run, run->globals, hdl_text("add_generation_prompt"), hdl_bool(desc->add_generation_prompt));
    if (desc->bos.bytes) hdl_bind(run, run->globals, hdl_text("bos_token"), hdl_text_value(desc->bos));
    if (desc->eos.bytes) hdl_bind(run, run->globals, hdl_text("eos_token"), hdl_text_value(desc->eos));
    if (desc->thinking) hdl_bind(run, run->globals, hdl_text("enable_thinking"), hdl_bool(desc->thinking == HDL_THINKING_ON));
    bind_messages(run);
}

static hd_status check(const hdl_chat_desc *desc, hd_error *error) {
    if ((desc->source.count && !desc->source.bytes) || (desc->message_count && !desc->messages))
        return hdl_fail(error, HD_STATUS_NULL_POINTER, "chat template: the template or the messages are NULL");
    if (desc->source.count > HDL_MAX_TEMPLATE_BYTES)
        return hdl_fail(error, HD_STATUS_LIMIT, "chat template: it has %llu bytes; the limit is %u",
                        (unsigned long long)desc->source.count, HDL_MAX_TEMPLATE_BYTES);
    if (desc->message_count > HDL_MAX_CHAT_MESSAGES)
        return hdl_fail(error, HD_STATUS_LIMIT, "chat template: %zu messages; the limit is %u", desc->message_count, HDL_MAX_CHAT_MESSAGES);
    for (size_t i = 0; i < desc->message_count; i++) {
        const hdl_chat_message *m = &desc->messages[i];
        if ((m->role.count && !m->role.bytes) || (m->content.count && !m->content.bytes))
            return hdl_fail(error, HD_STATUS_NULL_POINTER, "chat template: message %zu has NULL texts", i);
        if (m->role.count > HDL_MAX_CHAT_BYTES || m->content.count > HDL_MAX_CHAT_BYTES)
            return hdl_fail(error, HD_STATUS_LIMIT, "chat template: message %zu has more than %u bytes", i, HDL_MAX_CHAT_BYTES);
    }
    return HD_OK;
}

hd_status hdl_chat_render(const hd_allocator *allocator, const hdl_chat_desc *desc, char **out_text, size_t *out_bytes, hd_error *error) {
    if (!desc || !out_text || !out_bytes)
        return hdl_fail(error, HD_STATUS_NULL_POINTER, "chat template: no description or no place for the text");
    *out_text = NULL;
    *out_bytes = 0;
    const hd_status status = check(desc, error);
    if (status) return status;
    hdl_sink out = { .limit = HDL_MAX_CHAT_BYTES };
    hdl_scope globals = { 0 };
    hdl_chat_run run = { .allocator = allocator ? *allocator : hdl_default_allocator, .desc = desc, .error = error,
                         .globals = &globals, .scope = &globals, .out = &out };
    const hdl_node *list = hdl_parse_template(&run, desc->source);
    bind_globals(&run);
    hdl_run_list(&run, list);
    char *text = hdl_chat_stopped(&run) ? NULL : hdl_alloc(&run.allocator, out.count + 1);
    if (!text) hdl_chat_fail(&run, HD_STATUS_OUT_OF_HOST_MEMORY, run.at, "no memory for %llu bytes", (unsigned long long)out.count);
    if (text) {
        if (out.count) memcpy(text, out.bytes, (size_t)out.count);
        *out_text = text;
        *out_bytes = (size_t)out.count;
    }
    hdl_chat_end(&run);
    return run.status;
}

void hdl_chat_free(const hd_allocator *allocator, char *text, size_t bytes) {
    hdl_free(allocator ? allocator : &hdl_default_allocator, text, (uint64_t)bytes + 1);
}
