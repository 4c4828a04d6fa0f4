/* fuzz_grammar.c: any bytes as a grammar and as an answer in it. The first byte says which vocabulary and how long the answer is; then comes
 * the answer, each byte a choice among what is allowed; the rest is the grammar. What is taken never comes to a dead end, and a mask
 * says of each token what asking for it alone says. The most steps that a grammar may take are a second under these sanitizers.
 * options: -timeout=5 */
#include "form_twin.h"

static const char *const words[] = { "ab", "root", "::=", "\xC3\xA9", "\xE2\x82", "a\xE2", "\xF0\x9F\x98\x80", "[]", "((", "\"a\"" };

/* A few tokens of the answer, as `choices` say. */
static void say(hdl_matcher *m, const twin_vocabulary *v, const uint8_t *choices, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const uint32_t *bits;
        uint32_t allowed[TWIN_TOKENS];
        if (hdl_matcher_mask(m, &bits, NULL)) return;
        const uint32_t set = twin_allowed(bits, v->count, allowed);
        if (!set) {
            if (!hdl_matcher_complete(m)) abort();
            return;
        }
        bool one;
        const int32_t token = (int32_t)allowed[choices[i] % set], other = (int32_t)(choices[i] % v->count);
        if (!hdl_matcher_allows(m, token, &one, NULL) && !one) abort();
        if (!hdl_matcher_allows(m, other, &one, NULL)) {
            hdl_matcher_mask(m, &bits, NULL);
            if (one != (bits[other / 32] >> other % 32 & 1)) abort();
        }
        const hd_status status = hdl_matcher_accept(m, token, NULL);
        if (status == HD_STATUS_INVALID_ARGUMENT) abort();
        if (status) return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static twin_vocabulary rich, poor;
    if (!rich.count) {
        rich = twin_vocabulary_make(words, sizeof words / sizeof words[0]);
        poor = twin_poor_vocabulary(words, sizeof words / sizeof words[0]);
    }
    if (!size) return 0;
    const twin_vocabulary *v = data[0] & 1 ? &poor : &rich;
    size_t choices = data[0] >> 1 & 15;
    if (choices > size - 1) choices = size - 1;
    hdl_grammar rules;
    hdl_automaton automaton = { 0 };
    hdl_matcher *matcher = NULL;
    hd_error error = { 0 };
    hd_status status = hdl_gbnf_read(NULL, (hdl_span){ data + 1 + choices, size - 1 - choices }, &rules, &error);
    if (!status) status = hdl_automaton_make(&rules, v->trie, &automaton, &error);
    if (!status) status = hdl_matcher_create(&hdl_default_allocator, &automaton, v->trie, v->tokenizer, &matcher, &error);
    if (status != error.status || !matcher != (status != HD_OK) || (status && !error.text[0])) abort();
    if (!status) say(matcher, v, data + 1, choices);
    hdl_matcher_destroy(matcher);
    hdl_automaton_free(&automaton);
    hdl_grammar_free(&rules);
    return 0;
}
