/* reader.h: an answer's parts, as heddle_llm.h has them: what is thought, said and called, told apart by marks. The
 * text comes in pieces, which may end within a mark; wherever they end, the parts say the same. */
#ifndef HDL_READER_H
#define HDL_READER_H

#include "llm/calls.h"

enum { HDL_MARK_BYTES = 64 };

typedef enum hdl_reader_state { HDL_SAID, HDL_THOUGHT, HDL_CALLED } hdl_reader_state;

/* Where an answer is: the text behind the last mark, of which what may become a mark is held. */
typedef struct hdl_marked {
    hdl_reader_state state, before; /* before: the call */
    bool    said;                 /* something but space: <think> begins a thought no more, nor does { a call */
    uint8_t held[HDL_MARK_BYTES]; /* it may be the beginning of a mark */
    size_t  held_count;
} hdl_marked;
typedef struct hdl_mark {
    const char *text;
    int         where; /* it is a mark */
    hdl_reader_state to; /* the state behind it; of a call's end the one before the call */
} hdl_mark;
/* Mark number `i` of HDL_MARKS; without a text: there is none. */
enum { HDL_MARKS = 14 };
hdl_mark hdl_mark_at(const hdl_call_form *form, size_t i);
/* The longest mark that the held bytes begin with; without a text: none. *out_begun: they may become a longer one. */
hdl_mark hdl_mark_find(const hdl_call_form *form, const hdl_marked *at, bool *out_begun);

typedef struct hdl_reader {
    const hdl_call_form *form;   /* NULL: nothing is a call */
    hd_part_fn    on_part;       /* NULL: nobody is told */
    void         *user;
    hdl_marked    at;
    const hdl_tools *tools;      /* whose types were found; NULL: nobody tells what stands between tags */
    bool          in_string, escaped; /* of a call, or in a value between tags, where no mark ends it */
    bool          no_memory;
    uint8_t      *call;          /* a call with the mark that began it */
    size_t        call_count, call_room, mark_count;
    uint8_t      *content;       /* all but calls, with an ending zero */
    size_t        content_count, content_room, content_end; /* up to its last byte that is no space */
    hdl_call_list calls;
} hdl_reader;

/* `allocator` is kept in calls. hdl_reader_free in any case. */
void hdl_reader_init(hdl_reader *r, const hd_allocator *allocator, const hdl_call_form *form);
void hdl_reader_free(hdl_reader *r);
/* `in_thought`: the prompt ends with the mark that begins a thought. */
void hdl_reader_begin(hdl_reader *r, bool in_thought);
/* OUT_OF_HOST_MEMORY, from the first time on. */
hd_status hdl_reader_push(hdl_reader *r, hdl_span text);
hd_status hdl_reader_end(hdl_reader *r);
/* The message of an assistant that came of it. */
hd_message hdl_reader_message(hdl_reader *r);
/* Whether a text ends within a thought that it began, with this. */
#define HDL_BEGINS_THOUGHT "<think>"
bool hdl_begins_thought(hdl_span text);

#endif
