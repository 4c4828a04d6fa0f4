/* call_form.h: answers in which calls of tools are held to what the tools take, and all else is free: a grammar of the
 * calls (call_rules.c) in a frame of text of any kind (call_frame.c). */
#ifndef HDL_CALL_FORM_H
#define HDL_CALL_FORM_H

#include "llm/calls.h"
#include "llm/form/grammar.h"
#include "llm/form/schema.h"
#include "llm/tools.h"

/* Which calls may come. */
typedef struct hdl_call_choice {
    bool     none;      /* no call */
    bool     required;  /* at least one, and nothing is said before it */
    bool     silent;    /* nor thought, unless the prompt began it */
    uint32_t tool;      /* of this one only; HDL_NO_VALUE: of any */
} hdl_call_choice;

/* The choice that a word names: "auto" (NULL), "none", "required" or a tool's name. Statuses: NAME_NOT_FOUND. */
hd_status hdl_call_choose(const hdl_tools *tools, const char *word, hdl_call_choice *out_choice, hd_error *error);
/* The rules of calls as GBNF; free with hdl_free(allocator, out->text, out->room). The tools' JSON grows by what is
 * made of schemas. Statuses: those of hdl_schema_rules, and UNSUPPORTED: a name that the form cannot write. */
hd_status hdl_call_rules(const hdl_call_form *form, hdl_tools *tools, const hdl_call_choice *choice,
                         hdl_rules_text *out, hd_error *error);
/* The text around them, of which the grammar has the rules; free out->states with hdl_free, out->room of them.
 * Statuses: OUT_OF_HOST_MEMORY. */
hd_status hdl_call_frame(const hd_allocator *allocator, const hdl_call_form *form, const hdl_grammar *rules,
                         const hdl_call_choice *choice, hdl_frame *out_frame, hd_error *error);

#endif
