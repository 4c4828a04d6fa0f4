/* automaton.h: a grammar as a machine that reads bytes. Each rule is a deterministic automaton over bytes and calls of
 * other rules; where a call comes back to lies on a stack (matcher.h). What can never be finished is not in it: from
 * every state an answer can be ended, with tokens that the vocabulary has. */
#ifndef HDL_AUTOMATON_H
#define HDL_AUTOMATON_H

#include "llm/form/trie.h"

/* Limits, each refused with HD_STATUS_LIMIT. */
#define HDL_MAX_STATES 0xFFFEu
#define HDL_MAX_CELLS (1u << 23)   /* of the table */
#define HDL_MAX_EDGES (1u << 21)   /* before it is deterministic */
#define HDL_MAX_WORK (1u << 23)    /* steps of making it */
#define HDL_MAX_STACK 1024u        /* calls inside of calls */

enum { HDL_NO_STATE = 0xFFFF };
/* Another rule is read from `start` on, then this one from `back` on. */
typedef struct hdl_call {
    uint16_t start, back;
} hdl_call;

typedef struct hdl_state {
    uint32_t first_call;
    uint16_t call_count;
    uint16_t depth;   /* so many calls deep one must be able to go from here to end the rule */
    bool     ends;    /* the rule may end here */
    bool     leaves;  /* and nothing else can be done */
    bool     inside;  /* of a character */
    bool     free;    /* of a frame: a token that no reader sees may come, and changes nothing */
} hdl_state;

typedef struct hdl_automaton {
    hd_allocator allocator;
    uint8_t      class_of[256];  /* bytes that no state tells apart are a class */
    uint32_t     classes;
    uint16_t    *table;          /* [state][class]: the next state, or HDL_NO_STATE */
    hdl_state   *states;
    hdl_call    *calls;
    uint32_t     state_count, call_count;
    size_t       table_room, state_room, call_room;
    uint16_t     start;
} hdl_automaton;

/* Of what the grammar says and the tokens can spell. hdl_automaton_free in any case. Statuses: UNSUPPORTED (a rule that
 * begins with itself, by name; a grammar of which no answer can be finished), LIMIT, OUT_OF_HOST_MEMORY. */
hd_status hdl_automaton_make(const hdl_grammar *grammar, const hdl_trie *trie, hdl_automaton *out_automaton,
                             hd_error *error);
void hdl_automaton_free(hdl_automaton *automaton);

/* ---- net.c: the step before, rules as graphs whose edges are free, read a byte, or call a rule ---- */

typedef enum hdl_edge_kind { HDL_EDGE_FREE, HDL_EDGE_BYTES, HDL_EDGE_CALL } hdl_edge_kind;
enum { HDL_NO_EDGE = 0 };
typedef struct hdl_edge {
    uint32_t      next;       /* of the same place; HDL_NO_EDGE: none */
    uint32_t      to, rule;
    hdl_edge_kind kind;
    uint8_t       low, high;  /* bytes */
} hdl_edge;
enum { HDL_PLACE_INSIDE = 1, HDL_PLACE_FREE = 2 }; /* of a character; of a frame, where hidden tokens may come */
typedef struct hdl_net {
    hd_allocator allocator;
    hdl_edge    *edges;       /* [0] is none */
    uint32_t    *first_edges; /* of each place: those that read a byte or call a rule */
    uint32_t    *first_free;  /* and the others */
    uint8_t     *flags;       /* of each place */
    uint32_t    *begins, *ends; /* the places of each rule; HDL_NO_PLACE for rules that nothing calls */
    uint32_t     edge_count, place_count, rule_count;
    size_t       edge_room, place_room, free_room, flag_room;
} hdl_net;
#define HDL_NO_PLACE UINT32_MAX
/* Of the root and the rules that it calls. hdl_net_free in any case. Statuses: LIMIT, OUT_OF_HOST_MEMORY. */
hd_status hdl_net_make(const hdl_grammar *grammar, const hdl_trie *trie, hdl_net *out_net, hd_error *error);
void hdl_net_free(hdl_net *net);

#endif
