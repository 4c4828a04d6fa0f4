/* chat_inside.h: what the files of the chat template share. A template's text is read (chat_lex.c) into a tree
 * (chat_parse.c, chat_expression.c) that is then walked (chat_run.c, chat_eval.c); filters, tests and methods are
 * tables of functions. All memory of a rendering is one arena that ends with it. The first failure stays in `run`:
 * everything that may fail returns something harmless then, and whoever loops looks at hdl_chat_stopped. */
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
    uint64_t     work;
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
/* Counts work (HDL_MAX_CHAT_WORK); false when it is used up, or after a failure. */
bool hdl_chat_work(hdl_chat_run *run, uint64_t bytes);
/* What goes into itself calls these around it: false when it is nested too deep, or after a failure; leave only after
 * true. */
bool hdl_chat_enter(hdl_chat_run *run);
static inline void hdl_chat_leave(hdl_chat_run *run) { run->depth--; }
/* Zeroed memory until the end of the rendering, or NULL after a failure. Its bytes are work. */
void *hdl_chat_take(hdl_chat_run *run, uint64_t count, uint64_t item_bytes);

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
    HDL_NODE_ARG,      /* in a list: a, or text = a; of a map a : b */
    HDL_NODE_SPREAD,   /* in a list of arguments: the items of a */
    HDL_NODE_NEGATE, HDL_NODE_PLUS, HDL_NODE_NOT, /* a */
    HDL_NODE_AND, HDL_NODE_OR,                    /* a b */
    HDL_NODE_BINARY,   /* a op b */
    HDL_NODE_COMPARE,  /* a, then the list's ops, each with its own a */
    HDL_NODE_CHOICE,   /* b if a else c; c may be NULL */
    HDL_NODE_LIST, HDL_NODE_TUPLE, /* list */
    HDL_NODE_MAP,      /* list of pairs a : b */
    HDL_NODE_CAPTURE,  /* what list prints, in a scope of its own */
    /* statements */
    HDL_NODE_DATA,     /* text */
    HDL_NODE_PRINT,    /* a */
    HDL_NODE_IF,       /* if a: list, else: other */
    HDL_NODE_FOR,      /* for b in a if c: list, else: other; number: recursive */
    HDL_NODE_SET,      /* b becomes a; b is a name, a member (ATTR) of a namespace or a tuple of them */
    HDL_NODE_MACRO,    /* text (other: parameters, each with its default a): list; number: the HDL_TAKES_ bits */
    HDL_NODE_CALL_BLOCK, /* a is a call that gets b, a macro, as its caller */
    HDL_NODE_BREAK, HDL_NODE_CONTINUE
} hdl_node_kind;

/* What a macro takes besides its parameters, since its text names it. */
enum { HDL_TAKES_CALLER = 1, HDL_TAKES_KWARGS = 2, HDL_TAKES_VARARGS = 4 };

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
    uint32_t      loops; /* around this place, within its macro */
    bool          in_if; /* directly: here Jinja, too, asks for filters and tests only when they are used */
    int64_t       takes; /* HDL_TAKES_ bits of the names that were read */
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
/* What `next` parses, or several with commas: a tuple. */
hdl_node *hdl_parse_tuple(hdl_parser *p, hdl_node *(*next)(hdl_parser *p));
/* The filters that stand here, of `node`; `begun`: the "|" before the first is read. */
hdl_node *hdl_parse_filters(hdl_parser *p, hdl_node *node, bool begun);
/* Whether the name is true, false or none. */
bool hdl_parse_constant(hdl_span name, hdl_node_kind *out_kind);
/* The HDL_TAKES_ bit of this name, or 0. */
int64_t hdl_parse_takes(hdl_span name);
/* Whoever parses something within itself goes one deeper; false, with a failure, below the bound. */
bool hdl_parse_enter(hdl_parser *p);
/* The template's statements, linked by next. */
hdl_node *hdl_parse_template(hdl_chat_run *run, hdl_span source);

/* ---- values (chat_value.c) ---- */

typedef enum hdl_value_kind {
    HDL_IS_UNDEFINED, HDL_IS_NONE, HDL_IS_BOOL, HDL_IS_NUMBER,
    HDL_IS_DECIMAL, /* any other number, which only JSON from outside brings in: it is printed and not worked with */
    HDL_IS_TEXT,
    HDL_IS_LIST, HDL_IS_TUPLE, HDL_IS_RANGE, HDL_IS_VIEW, /* the keys, values or items of a map */
    HDL_IS_LAZY, /* what filters such as map give: true, without a length, and each item is there once */
    HDL_IS_MAP, HDL_IS_NAMESPACE, HDL_IS_LOOP, HDL_IS_MACRO, HDL_IS_FUNCTION,
    HDL_IS_METHOD /* of a text, list or map, not called */
} hdl_value_kind;

typedef struct hdl_value hdl_value;
typedef struct hdl_list {
    hdl_value       *items;
    size_t           count, taken; /* of LAZY: the first that is still there */
    struct hdl_list *from;         /* of LAZY: another one that gives the items, or NULL */
    struct hdl_pick *pick;         /* of LAZY: what becomes of an item when it is asked for, or NULL */
    const char      *view;         /* of VIEW: what Python prints in front */
} hdl_list;
typedef struct hdl_map {
    hdl_value *keys, *values;
    size_t     count, capacity;
} hdl_map;
struct hdl_value {
    hdl_value_kind kind;
    bool           safe; /* a TEXT that the filter safe gave, to which others are added as HTML */
    union {
        int64_t           number; /* also of BOOL: 0 or 1; of FUNCTION: which one */
        hdl_span          text;   /* of UNDEFINED: its name; of DECIMAL: as Python prints it */
        hdl_list         *list;   /* of LIST to LAZY */
        hdl_map          *map;    /* also of NAMESPACE */
        struct hdl_loop  *loop;
        struct hdl_macro *macro;
    } as;
};

hdl_value hdl_undefined(hdl_span name);
hdl_value hdl_none(void);
hdl_value hdl_bool(bool value);
hdl_value hdl_number(int64_t value);
hdl_value hdl_text_value(hdl_span text);
/* A list of `count` undefined items; none after a failure. */
hdl_value hdl_list_value(hdl_chat_run *run, hdl_value_kind kind, size_t count);
hdl_value hdl_pair(hdl_chat_run *run, hdl_value a, hdl_value b);
/* Adds to a list whose `*capacity` grows. */
void hdl_list_add(hdl_chat_run *run, hdl_list *list, size_t *capacity, hdl_value item);
hdl_value hdl_map_value(hdl_chat_run *run, hdl_value_kind kind);
void hdl_map_set(hdl_chat_run *run, hdl_map *map, hdl_value key, hdl_value value);
const hdl_value *hdl_map_get(hdl_chat_run *run, const hdl_map *map, hdl_value key);
/* By its keys. */
const hdl_map *hdl_sorted_map(hdl_chat_run *run, const hdl_map *map);
/* The items in the order of their keys; equal ones keep theirs. */
void hdl_sort(hdl_chat_run *run, uint32_t at, hdl_value *items, const hdl_value *keys, size_t count, bool down);

static inline bool hdl_is(hdl_value v, hdl_value_kind kind) { return v.kind == kind; }
static inline bool hdl_is_list(hdl_value v) { return v.kind == HDL_IS_LIST || v.kind == HDL_IS_TUPLE; }
static inline bool hdl_is_number(hdl_value v) { return v.kind == HDL_IS_NUMBER || v.kind == HDL_IS_BOOL; }
/* `result`, a text that was made of `v`, as safe as that. */
static inline hdl_value hdl_safe_like(hdl_value result, hdl_value v) {
    result.safe = result.kind == HDL_IS_TEXT && v.kind == HDL_IS_TEXT && v.safe;
    return result;
}
const char *hdl_kind_name(hdl_value v);
bool hdl_true(hdl_value v);
bool hdl_equal(hdl_chat_run *run, hdl_value a, hdl_value b);
/* a < b: -1, 0, 1; fails for what has no order. */
int hdl_order(hdl_chat_run *run, uint32_t at, hdl_value a, hdl_value b);
/* Whether it may be a map's key in Python. */
bool hdl_hashable(hdl_chat_run *run, hdl_value v);
bool hdl_contains(hdl_chat_run *run, uint32_t at, hdl_value whole, hdl_value part);
/* Number of items, characters or keys; what has none of them fails and gives -1. */
int64_t hdl_length(hdl_chat_run *run, uint32_t at, hdl_value v);
/* The next item of a list as LAZY has them; false: there is none, or a failure. */
bool hdl_next(hdl_chat_run *run, hdl_list *list, hdl_value *out_item);
/* What filter `pick` makes of an item; false: the item is left out. */
bool hdl_pick_item(hdl_chat_run *run, struct hdl_pick *pick, hdl_value *item);
/* The items that a loop goes through; those of LAZY are gone then. */
hdl_list hdl_items(hdl_chat_run *run, uint32_t at, hdl_value v);
/* v.name and v[key]: a method goes before a map's key, or the key before the method. */
hdl_value hdl_attribute(hdl_chat_run *run, uint32_t at, hdl_value v, hdl_span name);
hdl_value hdl_item(hdl_chat_run *run, uint32_t at, hdl_value v, hdl_value key);
hdl_value hdl_slice(hdl_chat_run *run, uint32_t at, hdl_value v, const int64_t *start, const int64_t *stop,
                    const int64_t *step);

/* ---- JSON from outside (chat_json.c) ---- */

/* A value of a document, whose texts it shares; none for number 0. */
hdl_value hdl_value_of_json(hdl_chat_run *run, const hdl_json *json, uint32_t number);
/* The same as a text, as json.dumps writes it. */
hdl_value hdl_text_of_json(hdl_chat_run *run, const hdl_json *json, uint32_t number);

/* ---- text (chat_text.c) ---- */

/* Text that grows. The output is one as well; `limit` bounds it. */
typedef struct hdl_sink {
    uint8_t *bytes;
    uint64_t count, capacity, limit;
} hdl_sink;
void hdl_put(hdl_chat_run *run, hdl_sink *sink, hdl_span text);
hdl_span hdl_sunk(const hdl_sink *sink);
/* As Python's str, and its repr inside of lists and maps. */
void hdl_put_value(hdl_chat_run *run, hdl_sink *sink, hdl_value v, bool quoted);
hdl_span hdl_printed(hdl_chat_run *run, hdl_value v);
/* How its json.dumps is to write. */
typedef struct hdl_json_style {
    hdl_span indent; /* of a level; NULL bytes: all is one line */
    hdl_span between, colon;
    bool     sorted, ascii;
} hdl_json_style;
void hdl_put_json(hdl_chat_run *run, hdl_sink *sink, uint32_t at, hdl_value v, const hdl_json_style *form,
                  uint32_t level);

hdl_span hdl_cut(hdl_span text, uint64_t from, uint64_t to);
/* Moves the first or last character out of `rest`; empty when there is none, or after a failure. */
hdl_span hdl_take_character(hdl_chat_run *run, hdl_span *rest, bool from_end);
int64_t hdl_count_characters(hdl_chat_run *run, hdl_span text);
/* White space as Python's str.strip sees it. */
bool hdl_is_space(hdl_span character);
/* Without white space, or without the characters of `set` (NULL bytes: white space). */
hdl_span hdl_strip(hdl_chat_run *run, hdl_span text, hdl_span set, bool front, bool end);
bool hdl_text_same(hdl_chat_run *run, hdl_span a, hdl_span b);
int hdl_text_order(hdl_chat_run *run, hdl_span a, hdl_span b);
bool hdl_begins(hdl_chat_run *run, hdl_span text, hdl_span with);
bool hdl_ends(hdl_chat_run *run, hdl_span text, hdl_span with);
/* The byte at which `part` stands in text for the first or last time; -1: nowhere. */
int64_t hdl_find(hdl_chat_run *run, hdl_span text, hdl_span part, bool from_end);
hdl_span hdl_replace(hdl_chat_run *run, hdl_span text, hdl_span old, hdl_span with, int64_t most);
/* TITLE begins a word behind all but letters, as str.title does; WORDS as the filter title does. */
typedef enum hdl_case { HDL_CASE_UPPER, HDL_CASE_LOWER, HDL_CASE_CAPITALIZE, HDL_CASE_TITLE, HDL_CASE_WORDS } hdl_case;
hdl_span hdl_cased(hdl_chat_run *run, uint32_t at, hdl_span text, hdl_case form);
hdl_span hdl_joined(hdl_chat_run *run, hdl_span between, const hdl_list *items);

/* ---- running (chat_eval.c, chat_run.c) ---- */

/* Variables of a place. All of a macro, of a loop's turns or of a capture share one; macros keep the one they were made
 * in. */
typedef struct hdl_binding hdl_binding;
typedef struct hdl_scope {
    struct hdl_scope *outer;
    hdl_binding      *bindings;
} hdl_scope;
typedef struct hdl_macro {
    const hdl_node *node;
    hdl_scope      *scope;
} hdl_macro;
/* A loop that runs. What its condition lets through is found as it is needed, since the loop may change what the
 * condition sees. */
typedef struct hdl_loop {
    const hdl_node *node;
    hdl_scope      *outer;
    hdl_list       *source;
    hdl_list        items;   /* let through so far */
    size_t          capacity, index, depth;
    hdl_value       changed; /* what loop.changed was called with */
} hdl_loop;
/* Whether there are more than `index` items. */
bool hdl_loop_reaches(hdl_chat_run *run, hdl_loop *loop, size_t index);
/* Runs it over the items of a value. */
void hdl_run_loop(hdl_chat_run *run, const hdl_node *node, hdl_value source, hdl_scope *outer, size_t depth);

/* A new scope inside of `outer`; NULL after a failure. */
hdl_scope *hdl_scope_in(hdl_chat_run *run, hdl_scope *outer);
void hdl_bind(hdl_chat_run *run, hdl_scope *scope, hdl_span name, hdl_value value);
hdl_value hdl_lookup(hdl_chat_run *run, hdl_span name);

/* Arguments of a call, as many as `used` has bits at most. */
enum { HDL_MAX_CHAT_ARGS = 64 };
typedef struct hdl_args {
    hdl_value *values;
    hdl_span  *names; /* NULL bytes: by its place */
    size_t     count;
    uint64_t   used;  /* bit i: somebody asked for it */
} hdl_args;
/* The argument of this name or place, or NULL. */
const hdl_value *hdl_arg(hdl_args *args, size_t place, const char *name);
/* A filter, method or function at work: what it is used on, and its arguments. */
typedef struct hdl_use {
    hdl_chat_run *run;
    uint32_t      at;
    hdl_value     v;
    hdl_args     *args;
} hdl_use;
/* An argument as a text, a number or the truth: `fallback` where it is not given; fails where it is of another kind. */
hdl_span hdl_text_arg(const hdl_use *u, size_t place, const char *name, hdl_span fallback);
int64_t hdl_number_arg(const hdl_use *u, size_t place, const char *name, int64_t fallback);
bool hdl_truth_arg(hdl_args *args, size_t place, const char *name, bool fallback);
/* After a call: every argument must have been asked for. */
void hdl_check_args(hdl_chat_run *run, uint32_t at, const hdl_args *args);

hdl_value hdl_eval(hdl_chat_run *run, const hdl_node *node);
/* The value of a call that also gets `caller`, a macro. */
hdl_value hdl_eval_call_block(hdl_chat_run *run, const hdl_node *call, hdl_value caller);
/* What the list prints, in this scope. */
hdl_value hdl_run_captured(hdl_chat_run *run, const hdl_node *list, hdl_scope *scope);

/* Whether there is such a filter or test. */
bool hdl_has_filter(hdl_span name);
bool hdl_has_test(hdl_span name);
hdl_value hdl_filter(const hdl_use *u, hdl_span name);
bool hdl_test(hdl_chat_run *run, uint32_t at, hdl_span name, hdl_value v, hdl_args *args);
hdl_value hdl_method(const hdl_use *u, hdl_span name);
/* Whether Python knows a method of this name. */
bool hdl_has_method(hdl_value v, hdl_span name);
/* A map's parts as a view: "dict_items(" and so on. */
hdl_value hdl_map_view(hdl_chat_run *run, const hdl_map *map, const char *view);
/* Functions: bound to their names in the globals, called by number. */
void hdl_bind_functions(hdl_chat_run *run);
hdl_value hdl_function(const hdl_use *u, int64_t which);

#endif
