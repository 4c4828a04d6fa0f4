/* chat_inside.h: what the files of the chat template share. A template's text is read (chat_lex.c) into a tree
 * (chat_parse.c, chat_expression.c) that is then walked (chat_run.c, chat_eval.c); filters, tests and methods are tables of functions.
 * All memory of a rendering is one arena that ends with it. The first failure stays in `run`: everything that may fail
 * returns something harmless then, and whoever loops looks at hdl_chat_stopped. */
#ifndef HDL_CHAT_INSIDE_H
#define HDL_CHAT_INSIDE_H

#include "llm/chat.h"

/* ---- the run: errors, bounds, memory ---- */

typedef struct hdl_chat_run {
    hd_allocator allocator;
    const hdl_chat_desc *desc;
    hd_status    status;
    hd_error    *error;
    struct hdl_chunk *chunks;
    uint64_t     memory;                       /* bytes of all chunks */
    uint64_t     steps;
    uint32_t     depth;
    uint32_t     at;                           /* of what runs now */
    enum { HDL_FLOW_ON, HDL_FLOW_BREAK, HDL_FLOW_CONTINUE } flow;
    struct hdl_scope *scope, *globals;
    struct hdl_sink  *out;
} hdl_chat_run;

static inline bool hdl_chat_stopped(const hdl_chat_run *run) { return run->status != HD_OK; }
/* Records a failure, if it is the first: "chat template: WORDS at byte AT". */
void hdl_chat_fail(hdl_chat_run *run, hd_status status, uint32_t at, const char *format, ...) HDL_PRINTF(4, 5);
/* "chat template: WHAT 'NAME' at byte AT is not supported; ..." */
void hdl_chat_unsupported(hdl_chat_run *run, uint32_t at, const char *what, hdl_span name);
/* Counts steps; false when they are used up, or after a failure. */
bool hdl_chat_step(hdl_chat_run *run, uint64_t steps);
/* Zeroed memory until the end of the rendering, or NULL after a failure. */
void *hdl_chat_take(hdl_chat_run *run, uint64_t count, uint64_t item_bytes);
void hdl_chat_end(hdl_chat_run *run);

/* ---- the tree ---- */

typedef enum hdl_node_kind {
    /* expressions */
    HDL_NODE_TEXT,     /* text */
    HDL_NODE_NUMBER,   /* number */
    HDL_NODE_NONE, HDL_NODE_TRUE, HDL_NODE_FALSE,
    HDL_NODE_NAME,     /* text */
    HDL_NODE_ATTR,     /* a . text */
    HDL_NODE_ITEM,     /* a [ b ] */
    HDL_NODE_SLICE,    /* a [ b : c : d ], each of b c d may be NULL */
    HDL_NODE_CALL,     /* a ( list ) */
    HDL_NODE_FILTER,   /* a | text ( list ) */
    HDL_NODE_TEST,     /* a is text ( list ) */
    HDL_NODE_ARG,      /* in a list: a, or text = a */
    HDL_NODE_NEGATE, HDL_NODE_PLUS, HDL_NODE_NOT, /* a */
    HDL_NODE_AND, HDL_NODE_OR,                    /* a b */
    HDL_NODE_BINARY,   /* a op b */
    HDL_NODE_COMPARE,  /* a, then the list's ops, each with its own a */
    HDL_NODE_CHOICE,   /* b if a else c; c may be NULL */
    HDL_NODE_LIST, HDL_NODE_TUPLE, /* list */
    HDL_NODE_MAP,      /* list of pairs a : b */
    /* statements */
    HDL_NODE_DATA,     /* text */
    HDL_NODE_PRINT,    /* a */
    HDL_NODE_IF,       /* if a: list, else: other */
    HDL_NODE_FOR,      /* for b in a if c: list, else: other; b is a name, or names linked by next */
    HDL_NODE_SET,      /* text, or a member (other) of text, becomes a or what the list prints */
    HDL_NODE_MACRO,    /* text (other: parameters, each with its default a): list */
    HDL_NODE_GROUP,    /* list in a scope of its own */
    HDL_NODE_BREAK, HDL_NODE_CONTINUE
} hdl_node_kind;

typedef enum hdl_op {
    HDL_OP_ADD, HDL_OP_SUB, HDL_OP_MUL, HDL_OP_FLOOR, HDL_OP_MOD, HDL_OP_JOIN,
    HDL_OP_EQ, HDL_OP_NE, HDL_OP_LT, HDL_OP_LE, HDL_OP_GT, HDL_OP_GE, HDL_OP_IN, HDL_OP_NOT_IN
} hdl_op;

typedef struct hdl_node hdl_node;
struct hdl_node {
    hdl_node_kind kind;
    hdl_op        op;
    uint32_t      at;    /* byte of the template */
    uint32_t      depth; /* of the tree below */
    hdl_span      text;
    int64_t       number;
    hdl_node     *a, *b, *c, *d, *list, *other, *next;
};

/* ---- reading (chat_lex.c, chat_parse.c) ---- */

typedef enum hdl_word_kind {
    HDL_WORD_END, HDL_WORD_DATA,
    HDL_WORD_PRINT_BEGIN, HDL_WORD_PRINT_END, /* {{ }} */
    HDL_WORD_BLOCK_BEGIN, HDL_WORD_BLOCK_END, /* {% %} */
    HDL_WORD_NAME, HDL_WORD_NUMBER, HDL_WORD_TEXT, HDL_WORD_SIGN
} hdl_word_kind;

typedef struct hdl_word {
    hdl_word_kind kind;
    uint32_t      at;
    hdl_span      text;
    int64_t       number;
} hdl_word;

typedef struct hdl_lexer {
    hdl_chat_run *run;
    hdl_span      source;
    size_t        at;
    enum { HDL_LEX_DATA, HDL_LEX_BEGIN, HDL_LEX_PRINT, HDL_LEX_BLOCK } mode;
    uint32_t      open;          /* brackets */
    bool          line_starting; /* what was read last ended a line */
} hdl_lexer;

hdl_lexer hdl_lex_begin(hdl_chat_run *run, hdl_span source);
hdl_word hdl_lex(hdl_lexer *lexer);

typedef struct hdl_parser {
    hdl_chat_run *run;
    hdl_lexer     lexer;
    hdl_word      word, peek; /* this one and the next */
    uint32_t      depth;
    hdl_node      nothing;    /* in place of a node without memory; no tree is walked after a failure */
} hdl_parser;

void hdl_parse_next(hdl_parser *p);
bool hdl_parse_is(const hdl_parser *p, hdl_word_kind kind, const char *text);
bool hdl_parse_skip(hdl_parser *p, hdl_word_kind kind, const char *text);
void hdl_parse_expect(hdl_parser *p, hdl_word_kind kind, const char *text);
/* "unexpected ..." at this word. */
void hdl_parse_wrong(hdl_parser *p, const char *wanted);
hdl_node *hdl_parse_node(hdl_parser *p, hdl_node_kind kind, uint32_t at, hdl_node *a, hdl_node *b);
/* Adds `child` to a list of `parent`, whose depth is one more than that of its deepest child. */
void hdl_parse_add(hdl_parser *p, hdl_node *parent, hdl_node ***tail, hdl_node *child);
hdl_node *hdl_parse_expression(hdl_parser *p);
/* The same without "a if b else c". */
hdl_node *hdl_parse_or(hdl_parser *p);
/* An expression, or several with commas: a tuple. */
hdl_node *hdl_parse_tuple(hdl_parser *p);
hdl_node *hdl_parse_primary(hdl_parser *p);
/* The template's statements, linked by next. */
hdl_node *hdl_parse_template(hdl_chat_run *run, hdl_span source);

/* ---- values (chat_value.c) ---- */

typedef enum hdl_value_kind {
    HDL_IS_UNDEFINED, HDL_IS_NONE, HDL_IS_BOOL, HDL_IS_NUMBER, HDL_IS_TEXT, HDL_IS_LIST, HDL_IS_TUPLE, HDL_IS_MAP,
    HDL_IS_NAMESPACE, HDL_IS_LOOP, HDL_IS_MACRO, HDL_IS_FUNCTION
} hdl_value_kind;

typedef struct hdl_value hdl_value;
typedef struct hdl_list { hdl_value *items; size_t count; } hdl_list;
typedef struct hdl_map hdl_map;
typedef struct hdl_loop { const hdl_list *items; size_t index; } hdl_loop;
struct hdl_value {
    hdl_value_kind kind;
    union {
        int64_t         number; /* also of BOOL: 0 or 1; of FUNCTION: which one */
        hdl_span        text;   /* of UNDEFINED: its name */
        hdl_list       *list;   /* also of TUPLE */
        hdl_map        *map;    /* also of NAMESPACE */
        hdl_loop       *loop;
        const hdl_node *macro;
    } as;
};
struct hdl_map {
    hdl_span  *keys;
    hdl_value *values;
    size_t     count, capacity;
};

hdl_value hdl_undefined(hdl_span name);
hdl_value hdl_none(void);
hdl_value hdl_bool(bool value);
hdl_value hdl_number(int64_t value);
hdl_value hdl_text_value(hdl_span text);
/* A list of `count` undefined items; count 0 after a failure. */
hdl_value hdl_list_value(hdl_chat_run *run, hdl_value_kind kind, size_t count);
hdl_value hdl_map_value(hdl_chat_run *run, hdl_value_kind kind);
void hdl_map_set(hdl_chat_run *run, hdl_map *map, hdl_span key, hdl_value value);
const hdl_value *hdl_map_get(hdl_chat_run *run, const hdl_map *map, hdl_span key);

static inline bool hdl_is(hdl_value v, hdl_value_kind kind) { return v.kind == kind; }
static inline bool hdl_is_list(hdl_value v) { return v.kind == HDL_IS_LIST || v.kind == HDL_IS_TUPLE; }
static inline bool hdl_is_number(hdl_value v) { return v.kind == HDL_IS_NUMBER || v.kind == HDL_IS_BOOL; }
const char *hdl_kind_name(hdl_value v);
bool hdl_true(hdl_value v);
bool hdl_equal(hdl_chat_run *run, hdl_value a, hdl_value b);
/* a < b: -1, 0, 1; fails for what has no order. */
int hdl_order(hdl_chat_run *run, uint32_t at, hdl_value a, hdl_value b);
bool hdl_contains(hdl_chat_run *run, uint32_t at, hdl_value whole, hdl_value part);
/* Number of items, characters or keys; what has none of them fails and gives -1. */
int64_t hdl_length(hdl_chat_run *run, uint32_t at, hdl_value v);
/* The items that a loop goes through. */
hdl_list hdl_items(hdl_chat_run *run, uint32_t at, hdl_value v);
hdl_value hdl_item(hdl_chat_run *run, uint32_t at, hdl_value v, hdl_value key);
hdl_value hdl_slice(hdl_chat_run *run, uint32_t at, hdl_value v, const int64_t *start, const int64_t *stop, const int64_t *step);
/* How Python prints it. */
hdl_span hdl_printed(hdl_chat_run *run, hdl_value v);

/* ---- text (chat_text.c) ---- */

/* Text that grows. The output is one as well; `limit` bounds it. */
typedef struct hdl_sink {
    uint8_t *bytes;
    uint64_t count, capacity, limit;
} hdl_sink;
void hdl_put(hdl_chat_run *run, hdl_sink *sink, hdl_span text);
hdl_span hdl_sunk(const hdl_sink *sink);
void hdl_put_number(hdl_chat_run *run, hdl_sink *sink, int64_t number);
/* As Python's str (and its repr inside of lists and maps), and as its json.dumps with so many spaces a level; -1: one line. */
void hdl_put_value(hdl_chat_run *run, hdl_sink *sink, hdl_value v, bool quoted);
void hdl_put_json(hdl_chat_run *run, hdl_sink *sink, uint32_t at, hdl_value v, int64_t indent, uint32_t level);

/* Bytes of the first or last character (text not empty). */
size_t hdl_first_character(hdl_span text);
size_t hdl_last_character(hdl_span text);
/* White space as Python's str.strip sees it at the front or end: its bytes, or 0. */
size_t hdl_space_in_front(hdl_span text);
size_t hdl_space_at_end(hdl_span text);
hdl_span hdl_cut(hdl_span text, uint64_t from, uint64_t to);
/* Without white space, or without the characters of `set` (NULL bytes: white space). */
hdl_span hdl_strip(hdl_chat_run *run, hdl_span text, hdl_span set, bool front, bool end);
bool hdl_begins(hdl_span text, hdl_span with);
bool hdl_ends(hdl_span text, hdl_span with);
/* The byte at which `part` first stands in text from `from` on; -1: nowhere. */
int64_t hdl_find(hdl_chat_run *run, hdl_span text, uint64_t from, hdl_span part);
hdl_span hdl_replace(hdl_chat_run *run, hdl_span text, hdl_span old, hdl_span with, int64_t most);
typedef enum hdl_case { HDL_CASE_UPPER, HDL_CASE_LOWER, HDL_CASE_CAPITALIZE, HDL_CASE_TITLE } hdl_case;
hdl_span hdl_cased(hdl_chat_run *run, uint32_t at, hdl_span text, hdl_case form);
hdl_span hdl_joined(hdl_chat_run *run, hdl_span between, const hdl_list *items);

/* ---- running (chat_eval.c, chat_run.c) ---- */

typedef struct hdl_binding hdl_binding;
typedef struct hdl_scope {
    struct hdl_scope *outer;
    hdl_binding      *bindings;
} hdl_scope;
void hdl_bind(hdl_chat_run *run, hdl_scope *scope, hdl_span name, hdl_value value);
hdl_value hdl_lookup(hdl_chat_run *run, hdl_span name);

typedef struct hdl_args {
    hdl_value *values;
    hdl_span  *names; /* NULL bytes: by its place */
    size_t     count;
    uint64_t   used;  /* bit i: somebody asked for it */
} hdl_args;
/* The argument of this name or place, or NULL. */
const hdl_value *hdl_arg(hdl_args *args, size_t place, const char *name);
/* The same as a text or number: `fallback` where it is not given; fails where it is of another kind. */
hdl_span hdl_text_arg(hdl_chat_run *run, uint32_t at, hdl_args *args, size_t place, const char *name, hdl_span fallback);
int64_t hdl_number_arg(hdl_chat_run *run, uint32_t at, hdl_args *args, size_t place, const char *name, int64_t fallback);
#define HDL_MAX_CHAT_ARGS 64u

hdl_value hdl_eval(hdl_chat_run *run, const hdl_node *node);
hdl_value hdl_attribute(hdl_chat_run *run, uint32_t at, hdl_value v, hdl_span name);
hdl_args hdl_eval_args(hdl_chat_run *run, const hdl_node *list);
/* After a call: every argument must have been asked for. */
void hdl_check_args(hdl_chat_run *run, uint32_t at, const hdl_args *args);
void hdl_run_list(hdl_chat_run *run, const hdl_node *list);
/* What the list prints. */
hdl_span hdl_run_captured(hdl_chat_run *run, const hdl_node *list);

hdl_value hdl_filter(hdl_chat_run *run, uint32_t at, hdl_span name, hdl_value v, hdl_args *args);
bool hdl_test(hdl_chat_run *run, uint32_t at, hdl_span name, hdl_value v, hdl_args *args);
hdl_value hdl_method(hdl_chat_run *run, uint32_t at, hdl_span name, hdl_value v, hdl_args *args);
/* Functions: bound to their names in the globals, called by number. */
void hdl_bind_functions(hdl_chat_run *run);
hdl_value hdl_function(hdl_chat_run *run, uint32_t at, int64_t which, hdl_args *args);

#endif
