/* matcher.h: an answer on its way through an automaton: which tokens may come next. Where it can be is a set of places,
 * each a state and a stack of the states to come back to. Stacks are shared: equal ones are one. */
#ifndef HDL_MATCHER_H
#define HDL_MATCHER_H

#include "llm/form/automaton.h"

/* Limits, each refused with HD_STATUS_LIMIT: places at once, and stacks. */
enum { HDL_MAX_PLACES = 1024, HDL_MAX_STACKS = 1 << 20 };

typedef struct hdl_matcher hdl_matcher;

/* At the beginning of an answer. All are borrowed. Statuses: OUT_OF_HOST_MEMORY. */
hd_status hdl_matcher_create(const hd_allocator *allocator, const hdl_automaton *automaton, const hdl_trie *trie,
                             const hdl_tokenizer *tokenizer, hdl_matcher **out_matcher, hd_error *error);
void hdl_matcher_destroy(hdl_matcher *matcher);
/* At the beginning again. */
void hdl_matcher_restart(hdl_matcher *matcher);

/* The tokens that may come next, a bit each, bit i % 32 of word i / 32; valid until the next call. Ends of an answer
 * are not among them. Statuses: LIMIT (a grammar in which too much is possible at once), OUT_OF_HOST_MEMORY. */
hd_status hdl_matcher_mask(hdl_matcher *matcher, const uint32_t **out_bits, hd_error *error);
/* Whether one token may come next, without looking at others. Statuses as hdl_matcher_mask. */
hd_status hdl_matcher_allows(hdl_matcher *matcher, int32_t token, bool *out_allows, hd_error *error);
/* Goes on by a token. Statuses as hdl_matcher_mask, and INVALID_ARGUMENT: it may not come next, and nothing has
 * changed. */
hd_status hdl_matcher_accept(hdl_matcher *matcher, int32_t token, hd_error *error);
/* Goes on by a text. Statuses as hdl_matcher_accept. */
hd_status hdl_matcher_read(hdl_matcher *matcher, hdl_span text, hd_error *error);
/* Whether the answer may end here. */
bool hdl_matcher_complete(const hdl_matcher *matcher);

#endif
