/* calls.h: how families of models write calls of tools into their answers, and what such a text says. The form of a
 * model is told by its chat template. What a model writes is hostile: it is bounded and checked as JSON. */
#ifndef HDL_CALLS_H
#define HDL_CALLS_H

#include "llm/support.h"
#include <heddle_llm.h>

/* Limits: a text that is above one is no call. */
#define HDL_MAX_CALL_BYTES (1u << 20)
#define HDL_MAX_CALLS 1024u
#define HDL_MAX_CALL_NAME 256u

typedef struct hdl_call_form {
    const char *name;
    const char *signs[2];      /* a template of this form has all of these in it, */
    const char *but[2];        /* and none of these */
    const char *begins[4];     /* texts that begin a call; another one ends the call before it, too */
    const char *ends[2];       /* and that end one, as the end of the answer does */
    const char *first;         /* begins one where nothing was said before it; "{": it is part of the call */
    const char *prefix;        /* stands before the name of a tool, or is not there */
    bool        in_thoughts;   /* a call may begin within a thought */
    bool        text_arguments; /* the template wants what a call is made with as a text, not as a map */
    bool        no_content;    /* and none where an assistant only calls, not an empty text */
    /* how calls are written, for answers that are held to it (call_rules.c): */
    const char *opens;         /* in place of `first`: a text that begins nothing else */
    const char *rules;         /* "calls", what stands between a beginning and an end; "first": behind `opens` */
    const char *tool, *other;  /* each tool's part of the rules "tool" and "other", which these name: %n is its name as
                                  in JSON, %r as it is, %a what it is called with */
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
/* Adds the calls of a text between its form's marks: JSON, or a name and JSON, one or several. False: there are none,
 * or something else stands there too, or there is no memory (*out_memory false); nothing was added. */
bool hdl_calls_read(hdl_call_list *list, const hdl_call_form *form, hdl_span text, bool *out_memory);
/* Leaves the first `count`. */
void hdl_calls_cut(hdl_call_list *list, size_t count);
void hdl_calls_free(hdl_call_list *list);

#endif
