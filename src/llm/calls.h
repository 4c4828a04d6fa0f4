/* calls.h: how families of models write calls of tools into their answers, and what such a text says. The form of a
 * model is told by its chat template. What a model writes is hostile: it is bounded and checked as JSON. */
#ifndef HDL_CALLS_H
#define HDL_CALLS_H

#include "llm/tools.h"
#include <heddle_llm.h>

/* Limits: a text that is above one is no call. */
#define HDL_MAX_CALL_BYTES (1u << 20)
#define HDL_MAX_CALLS 1024u

/* The tags of calls that are no JSON: name NAME name_end, for each argument key KEY key_end value VALUE value_end, and
 * end. Strings stand there as they are. */
typedef struct hdl_call_tags {
    const char *name, *name_end; /* name_end "": the name ends with a line, or before a tag */
    const char *key, *key_end, *value, *value_end, *end;
    bool lines;                  /* each value has lines of its own */
} hdl_call_tags;

typedef struct hdl_call_form {
    const char *name;
    const char *signs[2];      /* a template of this form has all of these in it, */
    const char *but[2];        /* and none of these */
    const char *begins[4];     /* texts that begin a call; another one ends the call before it, too */
    const char *ends[2];       /* and that end one, as the end of the answer does */
    const char *first;         /* begins one where nothing was said before it; "{": it is part of the call */
    const hdl_call_tags *tags; /* NULL: calls are JSON */
    const char *prefix;        /* stands before the name of a tool, or is not there */
    bool        in_thoughts;   /* a call may begin within a thought */
    bool        text_arguments; /* the template wants what a call is made with as a text, not as a map */
    bool        no_content;    /* and none where an assistant only calls, not an empty text */
    /* how calls are written, for answers that are held to it (call_rules.c): */
    const char *opens;         /* in place of `first`: a text that begins nothing else */
    const char *rules;         /* "calls", what stands between a beginning and an end; "first": behind `opens` */
    const char *tool, *other;  /* each tool's part of the rules "tool" and "other", which these name: %n is its name as
                                  in JSON, %r as it is, %a what it is called with, %t all of it between tags */
    bool        open;          /* the answer may end in place of the call's end */
} hdl_call_form;

/* The form of a template; NULL: none that is known. */
const hdl_call_form *hdl_call_form_of(hdl_span source);
/* Tokens that stand for marks of calls, and are shown in answers though they are control tokens; NULL ends the list. */
extern const char *const hdl_call_marks[];

typedef struct hdl_call_list {
    hd_allocator  allocator;
    hd_tool_call *calls;
    size_t        count, room;
} hdl_call_list;
/* Adds the calls of a text between its form's marks: JSON, or a name and JSON, or tags, one or several. `tools`, whose
 * types were found, tell what stands between tags; NULL: nobody does. False: there are none, or something else stands
 * there too, or there is no memory (*out_memory false); nothing was added. */
bool hdl_calls_read(hdl_call_list *list, const hdl_call_form *form, const hdl_tools *tools, hdl_span text,
                    bool *out_memory);
/* A call between tags: its name, and what it is called with as JSON, `count` bytes; free with hdl_free, `room`. */
typedef struct hdl_tagged_call {
    hdl_span name;
    uint8_t *text;
    size_t   count, room;
    bool     no_memory;
} hdl_tagged_call;
/* Takes one off the front of a text. False: there is none, or no memory. */
bool hdl_tags_take(const hd_allocator *allocator, const hdl_call_tags *tags, const hdl_tools *tools, hdl_span *text,
                   hdl_tagged_call *out_call);
/* Leaves the first `count`. */
void hdl_calls_cut(hdl_call_list *list, size_t count);
void hdl_calls_free(hdl_call_list *list);

#endif
