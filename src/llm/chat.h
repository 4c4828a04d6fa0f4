/* chat.h: messages to the one text that a model was trained to read, by the template in the model's file (the metadata
 * field tokenizer.chat_template) or by one of heddle's own. Templates are Jinja as Hugging Face runs it (trim_blocks
 * and lstrip_blocks on, escaping off), of which a safe subset is understood; docs at HDL_CHAT_SUBSET. A template is
 * hostile input: nesting, work, memory and output are bounded, and nothing of the machine can be reached from it. */
#ifndef HDL_CHAT_H
#define HDL_CHAT_H

#include "llm/form/json.h"
#include "llm/support.h"
#include <heddle_llm.h>

/* HDL_CHAT_SUBSET. Statements: {{ }}, for (with if, else, recursive, break, continue), if, elif, else, set (also of a
 * block, of several names and of a namespace's member), macro, call, filter, raw, generation. Expressions: texts, whole
 * numbers, true false none, lists, tuples, maps; + - * // % ~, == != < <= > >=, in, not in, and or not, a if b else c;
 * .name, [item], [a:b:c]. loop: index index0 revindex revindex0 first last length depth depth0 previtem nextitem cycle
 * changed. Functions: namespace, dict, range, raise_exception, strftime_now. Tests, filters and methods: the tables in
 * chat_tests.c, chat_filters.c and chat_methods.c. Changing of case is done for ASCII only, and refused for other
 * letters. What is not understood is an error only when the template comes to use it, but for statements. */

/* Limits, each refused with HD_STATUS_LIMIT: a template, messages, what comes out, memory for one rendering, work
 * (every byte that is looked at or written, and HDL_PART_WORK for each part of an expression), nesting of a template or
 * its run. */
#define HDL_MAX_TEMPLATE_BYTES (256u << 10)
#define HDL_MAX_CHAT_MESSAGES 65536u
#define HDL_MAX_CHAT_BYTES (4u << 20)
#define HDL_MAX_CHAT_MEMORY (48u << 20)
#define HDL_MAX_CHAT_WORK (128u << 20)
#define HDL_PART_WORK 16u
#define HDL_MAX_CHAT_NESTING 250u

/* A call in a message. */
typedef struct hdl_chat_call {
    hdl_span        id, name;
    const hdl_json *json;
    uint32_t        arguments;  /* a value of it */
} hdl_chat_call;

typedef struct hdl_chat_message {
    hdl_span role;    /* "system", "user", "assistant", "tool" */
    hdl_span content; /* NULL bytes, and calls: none */
    const hdl_chat_call *calls;
    size_t   call_count;
    const hdl_chat_call *call; /* that a tool's message came of; NULL: not known */
} hdl_chat_message;

typedef struct hdl_chat_desc {
    hdl_span                source;                /* the template's text */
    const hdl_chat_message *messages;
    size_t                  message_count;
    bool                    add_generation_prompt; /* the text ends where the model's answer begins */
    hdl_span                bos, eos;              /* the texts of these tokens; NULL bytes: the template finds none */
    hd_thinking             thinking;              /* the variable enable_thinking */
    const hdl_json         *tools;                 /* the variable tools: value `tools_value`; NULL: none */
    uint32_t                tools_value;
    bool                    text_arguments;        /* of calls, in place of maps */
    /* seconds since 1970, for the date; 0: no date, templates have their own */
    int64_t                 now;
} hdl_chat_desc;

/* Renders. *out_text has *out_bytes bytes and a zero after them; free it with hdl_chat_free. `allocator` NULL: malloc
 * and free. Statuses: NULL_POINTER; PARSE (the template is not well formed, or does what cannot be done, with the
 * position); UNSUPPORTED (outside of the subset, by name and position); INVALID_ARGUMENT (the template refuses the
 * messages, with its own words); LIMIT; OUT_OF_HOST_MEMORY. */
hd_status hdl_chat_render(const hd_allocator *allocator, const hdl_chat_desc *desc, char **out_text, size_t *out_bytes,
                          hd_error *error);
void hdl_chat_free(const hd_allocator *allocator, char *text, size_t bytes);

/* Heddle's own template of this name, or NULL. */
const char *hdl_chat_template(const char *name);
/* The name of number `index`, NULL after the last. */
const char *hdl_chat_template_name(size_t index);

#endif
