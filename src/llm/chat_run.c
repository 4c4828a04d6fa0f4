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

bool hdl_chat_work(hdl_chat_run *run, uint64_t bytes) {
    if (hdl_chat_stopped(run)) return false;
    if (bytes > HDL_MAX_CHAT_WORK - run->work) {
        hdl_chat_fail(run, HD_STATUS_LIMIT, run->at, "it works on more than %u MiB", HDL_MAX_CHAT_WORK >> 20);
        return false;
    }
    run->work += bytes;
    return true;
}

bool hdl_chat_enter(hdl_chat_run *run) {
    if (run->depth >= HDL_MAX_CHAT_NESTING)
        hdl_chat_fail(run, HD_STATUS_LIMIT, run->at, "nested more than %u deep", HDL_MAX_CHAT_NESTING);
    if (!hdl_chat_work(run, HDL_PART_WORK)) return false;
    run->depth++;
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
    if (!hdl_mul(count, item_bytes, &bytes) || bytes > HDL_MAX_CHAT_MEMORY) bytes = HDL_MAX_CHAT_MEMORY;
    bytes = bytes ? (bytes + 15) & ~UINT64_C(15) : 16;
    if (!hdl_chat_work(run, bytes)) return NULL;
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
            hdl_chat_fail(run, HD_STATUS_OUT_OF_HOST_MEMORY, run->at, "no memory for %llu bytes",
                          (unsigned long long)chunk_bytes);
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

static void free_memory(hdl_chat_run *run) {
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
    bool         set;
    hdl_binding *next;
};

hdl_scope *hdl_scope_in(hdl_chat_run *run, hdl_scope *outer) {
    hdl_scope *scope = hdl_chat_take(run, 1, sizeof *scope);
    if (scope) scope->outer = outer;
    return scope;
}

static hdl_binding *find_binding(hdl_chat_run *run, const hdl_scope *scope, hdl_span name) {
    hdl_binding *binding = scope->bindings;
    while (binding && !hdl_chat_stopped(run) && !hdl_text_same(run, binding->name, name)) binding = binding->next;
    return binding;
}

void hdl_bind(hdl_chat_run *run, hdl_scope *scope, hdl_span name, hdl_value value) {
    hdl_binding *binding = find_binding(run, scope, name);
    if (!binding) {
        binding = hdl_chat_take(run, 1, sizeof *binding);
        if (!binding) return;
        binding->next = scope->bindings;
        scope->bindings = binding;
    }
    *binding = (hdl_binding){ name, value, true, binding->next };
}

hdl_value hdl_lookup(hdl_chat_run *run, hdl_span name) {
    for (const hdl_scope *scope = run->scope; scope && !hdl_chat_stopped(run); scope = scope->outer) {
        const hdl_binding *binding = find_binding(run, scope, name);
        if (binding && binding->set) return binding->value;
    }
    return hdl_undefined(name);
}

/* Gives the parts of a target (HDL_NODE_SET) their values. */
static void assign(hdl_chat_run *run, hdl_scope *scope, const hdl_node *target, hdl_value value) {
    if (target->kind == HDL_NODE_NAME) {
        hdl_bind(run, scope, target->text, value);
    } else if (target->kind == HDL_NODE_ATTR) {
        const hdl_value space = hdl_lookup(run, target->a->text);
        if (hdl_is(space, HDL_IS_NAMESPACE)) hdl_map_set(run, space.as.map, hdl_text_value(target->text), value);
        else hdl_chat_fail(run, HD_STATUS_PARSE, target->at, "a member is set of what is no namespace");
    } else {
        const hdl_list parts = hdl_items(run, target->at, value);
        size_t i = 0;
        for (const hdl_node *part = target->list; part && !hdl_chat_stopped(run); part = part->next, i++)
            if (i < parts.count) assign(run, scope, part, parts.items[i]);
        if (i != parts.count)
            hdl_chat_fail(run, HD_STATUS_PARSE, target->at, "%zu values for %zu names", parts.count, i);
    }
}

/* ---- statements ---- */

static void run_list(hdl_chat_run *run, const hdl_node *list);

hdl_value hdl_run_captured(hdl_chat_run *run, const hdl_node *list, hdl_scope *scope) {
    hdl_sink sink = { .limit = HDL_MAX_CHAT_BYTES }, *outer_out = run->out;
    hdl_scope *outer_scope = run->scope;
    run->out = &sink;
    run->scope = scope;
    run_list(run, list);
    run->out = outer_out;
    run->scope = outer_scope;
    return hdl_text_value(hdl_sunk(&sink));
}

bool hdl_loop_reaches(hdl_chat_run *run, hdl_loop *loop, size_t index) {
    hdl_scope *resumed = run->scope, *scope = loop->outer;
    if (loop->node->c && index >= loop->items.count) scope = hdl_scope_in(run, loop->outer);
    for (hdl_value item; index >= loop->items.count && hdl_next(run, loop->source, &item);) {
        bool passes = true;
        if (loop->node->c) {
            assign(run, scope, loop->node->b, item);
            run->scope = scope;
            passes = hdl_true(hdl_eval(run, loop->node->c));
            run->scope = resumed;
        }
        if (passes) hdl_list_add(run, &loop->items, &loop->capacity, item);
    }
    return index < loop->items.count && !hdl_chat_stopped(run);
}

void hdl_run_loop(hdl_chat_run *run, const hdl_node *node, hdl_value source, hdl_scope *outer, size_t depth) {
    hdl_loop *loop = hdl_chat_take(run, 1, sizeof *loop);
    hdl_list *all = hdl_is(source, HDL_IS_LAZY) ? source.as.list : hdl_chat_take(run, 1, sizeof *all);
    hdl_scope *scope = hdl_scope_in(run, outer), *resumed = run->scope;
    if (hdl_chat_stopped(run)) return;
    if (!hdl_is(source, HDL_IS_LAZY)) *all = hdl_items(run, node->at, source);
    *loop = (hdl_loop){ .node = node, .outer = outer, .source = all, .depth = depth };
    bool ended_a_turn = false; /* as in Jinja, else also runs where each turn ended by break or continue */
    for (; run->flow != HDL_FLOW_BREAK && !hdl_chat_stopped(run) && hdl_loop_reaches(run, loop, loop->index);
         loop->index++) {
        run->flow = HDL_FLOW_ON;
        for (hdl_binding *binding = scope->bindings; binding && hdl_chat_work(run, 1); binding = binding->next)
            binding->set = false;
        hdl_bind(run, scope, hdl_text("loop"), (hdl_value){ .kind = HDL_IS_LOOP, .as.loop = loop });
        assign(run, scope, node->b, loop->items.items[loop->index]);
        run->scope = scope;
        run_list(run, node->list);
        run->scope = resumed;
        ended_a_turn |= run->flow == HDL_FLOW_ON;
    }
    run->flow = HDL_FLOW_ON;
    if (ended_a_turn || !node->other || !(run->scope = hdl_scope_in(run, outer))) {
        run->scope = resumed;
        return;
    }
    run_list(run, node->other);
    run->scope = resumed;
}

static hdl_value macro_value(hdl_chat_run *run, const hdl_node *node) {
    hdl_macro *macro = hdl_chat_take(run, 1, sizeof *macro);
    if (macro) *macro = (hdl_macro){ node, run->scope };
    return (hdl_value){ .kind = HDL_IS_MACRO, .as.macro = macro };
}

/* Puts or sets a value, unless a break or continue came in between. */
static void run_value(hdl_chat_run *run, const hdl_node *node) {
    const hdl_value value = node->kind == HDL_NODE_CALL_BLOCK
                                ? hdl_eval_call_block(run, node->a, macro_value(run, node->b))
                                : hdl_eval(run, node->a);
    if (hdl_chat_stopped(run) || run->flow != HDL_FLOW_ON) return;
    if (node->kind == HDL_NODE_SET) assign(run, run->scope, node->b, value);
    else hdl_put_value(run, run->out, value, false);
}

static void run_statement(hdl_chat_run *run, const hdl_node *node) {
    switch (node->kind) {
    case HDL_NODE_DATA: hdl_put(run, run->out, node->text); break;
    case HDL_NODE_IF: run_list(run, hdl_true(hdl_eval(run, node->a)) ? node->list : node->other); break;
    case HDL_NODE_FOR: hdl_run_loop(run, node, hdl_eval(run, node->a), run->scope, 0); break;
    case HDL_NODE_MACRO: hdl_bind(run, run->scope, node->text, macro_value(run, node)); break;
    case HDL_NODE_BREAK: run->flow = HDL_FLOW_BREAK; break;
    case HDL_NODE_CONTINUE: run->flow = HDL_FLOW_CONTINUE; break;
    default: run_value(run, node);
    }
}

static void run_list(hdl_chat_run *run, const hdl_node *list) {
    if (!hdl_chat_enter(run)) return;
    for (const hdl_node *node = list; node && run->flow == HDL_FLOW_ON && hdl_chat_work(run, HDL_PART_WORK);
         node = node->next) {
        run->at = node->at;
        run_statement(run, node);
    }
    hdl_chat_leave(run);
}

/* ---- a rendering ---- */

static void put_text(hdl_chat_run *run, hdl_value map, const char *name, hdl_span text) {
    if (!hdl_chat_stopped(run)) hdl_map_set(run, map.as.map, hdl_text_value(hdl_text(name)), hdl_text_value(text));
}

/* {"id": ..., "type": "function", "function": {"name": ..., "arguments": ...}}, as the field has it. */
static hdl_value call_value(hdl_chat_run *run, const hdl_chat_call *call) {
    const hdl_value whole = hdl_map_value(run, HDL_IS_MAP), function = hdl_map_value(run, HDL_IS_MAP);
    const hdl_value arguments = run->desc->text_arguments ? hdl_text_of_json(run, call->json, call->arguments)
                                                          : hdl_value_of_json(run, call->json, call->arguments);
    put_text(run, whole, "id", call->id);
    put_text(run, whole, "type", hdl_text("function"));
    put_text(run, function, "name", call->name);
    if (hdl_chat_stopped(run)) return whole;
    hdl_map_set(run, function.as.map, hdl_text_value(hdl_text("arguments")), arguments);
    hdl_map_set(run, whole.as.map, hdl_text_value(hdl_text("function")), function);
    return whole;
}

static hdl_value message_value(hdl_chat_run *run, const hdl_chat_message *m) {
    const hdl_value message = hdl_map_value(run, HDL_IS_MAP);
    put_text(run, message, "role", m->role);
    if (m->call_count && !m->content.bytes && !hdl_chat_stopped(run))
        hdl_map_set(run, message.as.map, hdl_text_value(hdl_text("content")), hdl_none());
    else put_text(run, message, "content", m->content);
    if (m->call_count) {
        const hdl_value calls = hdl_list_value(run, HDL_IS_LIST, m->call_count);
        for (size_t i = 0; i < m->call_count && !hdl_chat_stopped(run); i++)
            calls.as.list->items[i] = call_value(run, &m->calls[i]);
        if (!hdl_chat_stopped(run)) hdl_map_set(run, message.as.map, hdl_text_value(hdl_text("tool_calls")), calls);
    }
    if (m->call) {
        put_text(run, message, "name", m->call->name);
        put_text(run, message, "tool_call_id", m->call->id);
    }
    return message;
}

static void bind_messages(hdl_chat_run *run) {
    const hdl_chat_desc *desc = run->desc;
    const hdl_value list = hdl_list_value(run, HDL_IS_LIST, desc->message_count);
    for (size_t i = 0; i < desc->message_count && !hdl_chat_stopped(run); i++)
        list.as.list->items[i] = message_value(run, &desc->messages[i]);
    hdl_bind(run, run->globals, hdl_text("messages"), list);
}

static void bind_globals(hdl_chat_run *run) {
    const hdl_chat_desc *desc = run->desc;
    hdl_bind_functions(run);
    /* What others give to every template: some compare with none, which an undefined value is not. */
    hdl_bind(run, run->globals, hdl_text("tools"),
             desc->tools ? hdl_value_of_json(run, desc->tools, desc->tools_value) : hdl_none());
    hdl_bind(run, run->globals, hdl_text("documents"), hdl_none());
    hdl_bind(run, run->globals, hdl_text("add_generation_prompt"), hdl_bool(desc->add_generation_prompt));
    if (desc->bos.bytes) hdl_bind(run, run->globals, hdl_text("bos_token"), hdl_text_value(desc->bos));
    if (desc->eos.bytes) hdl_bind(run, run->globals, hdl_text("eos_token"), hdl_text_value(desc->eos));
    if (desc->thinking)
        hdl_bind(run, run->globals, hdl_text("enable_thinking"), hdl_bool(desc->thinking == HD_THINKING_ON));
    bind_messages(run);
}

static hd_status check(const hdl_chat_desc *desc, hd_error *error) {
    if ((desc->source.count && !desc->source.bytes) || (desc->message_count && !desc->messages))
        return hdl_fail(error, HD_STATUS_NULL_POINTER, "chat template: the template or the messages are NULL");
    if (desc->source.count > HDL_MAX_TEMPLATE_BYTES)
        return hdl_fail(error, HD_STATUS_LIMIT, "chat template: it has %llu bytes; the limit is %u",
                        (unsigned long long)desc->source.count, HDL_MAX_TEMPLATE_BYTES);
    if (desc->message_count > HDL_MAX_CHAT_MESSAGES)
        return hdl_fail(error, HD_STATUS_LIMIT, "chat template: %zu messages; the limit is %u", desc->message_count,
                        HDL_MAX_CHAT_MESSAGES);
    for (size_t i = 0; i < desc->message_count; i++) {
        const hdl_chat_message *m = &desc->messages[i];
        if ((m->role.count && !m->role.bytes) || (m->content.count && !m->content.bytes))
            return hdl_fail(error, HD_STATUS_NULL_POINTER, "chat template: message %zu has NULL texts", i);
        if (m->role.count > HDL_MAX_CHAT_BYTES || m->content.count > HDL_MAX_CHAT_BYTES)
            return hdl_fail(error, HD_STATUS_LIMIT, "chat template: message %zu has more than %u bytes", i,
                            HDL_MAX_CHAT_BYTES);
    }
    return HD_OK;
}

hd_status hdl_chat_render(const hd_allocator *allocator, const hdl_chat_desc *desc, char **out_text, size_t *out_bytes,
                          hd_error *error) {
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
    run_list(&run, list);
    char *text = hdl_chat_stopped(&run) ? NULL : hdl_alloc(&run.allocator, out.count + 1);
    if (!text)
        hdl_chat_fail(&run, HD_STATUS_OUT_OF_HOST_MEMORY, run.at, "no memory for %llu bytes",
                      (unsigned long long)out.count);
    if (text) {
        if (out.count) memcpy(text, out.bytes, (size_t)out.count);
        *out_text = text;
        *out_bytes = (size_t)out.count;
    }
    free_memory(&run);
    return run.status;
}

void hdl_chat_free(const hd_allocator *allocator, char *text, size_t bytes) {
    hdl_free(allocator ? allocator : &hdl_default_allocator, text, (uint64_t)bytes + 1);
}
