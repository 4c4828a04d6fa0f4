/* grammar.h: a form for answers as rules: what a GBNF text says, before anything is made of it. Rules hold nodes, nodes
 * hold nodes; characters are Unicode's, and what they are in bytes is the automaton's business. */
#ifndef HDL_GRAMMAR_H
#define HDL_GRAMMAR_H

#include "llm/support.h"

/* Limits, each refused with HD_STATUS_LIMIT. */
#define HDL_MAX_GRAMMAR_BYTES (1u << 20)
#define HDL_MAX_RULES (1u << 13)
#define HDL_MAX_NODES (1u << 20)
#define HDL_MAX_NESTED 64u
#define HDL_MAX_REPEATS (1u << 14)
#define HDL_LAST_CHARACTER 0x10FFFFu

typedef enum hdl_node_kind {
    HDL_NODE_CHARACTERS, /* one of them: `count` ranges from `first` on; of none: nothing fits */
    HDL_NODE_SEQUENCE,   /* its nodes one after the other; of none: the empty text */
    HDL_NODE_CHOICE,     /* one of its nodes */
    HDL_NODE_REPEAT,     /* node `first`, `count` to `most` times */
    HDL_NODE_RULE,       /* rule number `first` */
    HDL_NODE_FRAME       /* the grammar's frame */
} hdl_node_kind;

enum { HDL_NO_NODE = 0 };
#define HDL_ENDLESS UINT32_MAX
typedef struct hdl_node {
    hdl_node_kind kind;
    uint32_t first, next;  /* the first node inside, and the one beside it; HDL_NO_NODE: none */
    uint32_t count, most;
} hdl_node;

typedef struct hdl_range {
    uint32_t low, high;
} hdl_range;

typedef struct hdl_rule {
    hdl_span name;         /* in the text that was read */
    uint32_t node;         /* HDL_NO_NODE: it was only named so far */
} hdl_rule;

/* Text of any bytes in which rules begin and end: a machine that reads it byte by byte, beginning in state 0. */
enum { HDL_FRAME_NONE = 0xFFFF };
typedef struct hdl_frame_state {
    uint16_t next[256];    /* HDL_FRAME_NONE: the byte may not come */
    uint16_t rule, back;   /* what is read here, and the state behind it; HDL_FRAME_NONE: only bytes are */
    bool     ends;         /* the text may end here */
    bool     free;         /* a token that no reader sees may come, and changes nothing */
} hdl_frame_state;
typedef struct hdl_frame {
    hdl_frame_state *states;
    uint32_t         count;
    size_t           room;
} hdl_frame;

typedef struct hdl_grammar {
    hd_allocator allocator;
    hdl_node    *nodes;    /* [0] is none */
    hdl_range   *ranges;   /* of a node of characters in order, with room between them */
    hdl_rule    *rules;
    uint32_t     node_count, range_count, rule_count;
    size_t       node_room, range_room, rule_room;
    hdl_index    names;
    uint32_t     root;     /* the rule to begin with */
    const hdl_frame *frame; /* NULL: there is none */
} hdl_grammar;

/* Reads llama.cpp's GBNF, whose first rule is "root". Names stay in `text`. hdl_grammar_free in any case. Statuses:
 * PARSE (with line and column), NAME_NOT_FOUND (a rule that is not there, or no "root"), UNSUPPORTED (tokens in the
 * text), LIMIT, OUT_OF_HOST_MEMORY. */
hd_status hdl_gbnf_read(const hd_allocator *allocator, hdl_span text, hdl_grammar *out_grammar, hd_error *error);
/* The number of a rule, or -1. */
int64_t hdl_grammar_rule(const hdl_grammar *grammar, const char *name);
/* Answers are the frame's text from here on, which is borrowed. Statuses: OUT_OF_HOST_MEMORY. */
hd_status hdl_grammar_put_frame(hdl_grammar *grammar, const hdl_frame *frame, hd_error *error);
void hdl_grammar_free(hdl_grammar *grammar);

#endif
