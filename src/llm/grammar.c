/* grammar.c: the public face of form/: a grammar for a model's vocabulary, with the ends that the model has. */
#include "llm/form/matcher.h"
#include "llm/form/schema.h"
#include "llm/model.h"

struct hd_grammar {
    hd_model     *model;
    void         *handle;
    hdl_automaton automaton;
    hdl_matcher  *matcher;
    uint32_t     *bits;    /* a mask with the ends among them */
    uint32_t      words;
};

static const char kind[] = "grammar";

hd_status hdl_grammar_find(void *grammar_at) {
    void *handle;
    memcpy(&handle, grammar_at, sizeof handle);
    const hd_grammar *grammar = hd_handle_find(handle, kind);
    if (!grammar) return hd_handle_refuse(handle, kind);
    memcpy(grammar_at, &grammar, sizeof grammar);
    return hdl_context_lives(grammar->model->context);
}

const hd_model *hdl_grammar_model(const hd_grammar *grammar) { return grammar->model; }

/* The trie of a model is made with its first grammar; where two threads make it, the first one's is taken. */
static hd_status find_trie(hd_model *model, hd_error *error) {
    hdl_trie *none = NULL, *made;
    if (atomic_load(&model->trie)) return HD_OK;
    const hd_status status =
        hdl_trie_create(&model->allocator, model->tokenizer, model->figures.vocabulary, &made, error);
    if (!status && !atomic_compare_exchange_strong(&model->trie, &none, made)) hdl_trie_destroy(made);
    return status;
}

static hd_status make(hd_grammar *grammar, hd_grammar_kind form, hdl_span text, hd_error *error) {
    hd_model *model = grammar->model;
    hdl_grammar rules = { 0 };
    hdl_rules_text written = { 0 };
    hd_status status = find_trie(model, error);
    const hdl_trie *trie = atomic_load(&model->trie);
    if (!status && form == HD_GRAMMAR_JSON_SCHEMA) {
        status = hdl_schema_rules(&model->allocator, text, &written, error);
        text = (hdl_span){ (const uint8_t *)written.text, written.count };
    }
    if (!status) status = hdl_gbnf_read(&model->allocator, text, &rules, error);
    if (!status) status = hdl_automaton_make(&rules, trie, &grammar->automaton, error);
    if (!status)
        status = hdl_matcher_create(&model->allocator, &grammar->automaton, trie, model->tokenizer, &grammar->matcher,
                                    error);
    hdl_grammar_free(&rules);
    hdl_free(&model->allocator, written.text, written.room);
    grammar->words = (model->figures.vocabulary + 31) / 32;
    if (!status && !(grammar->bits = hdl_alloc(&model->allocator, grammar->words * sizeof *grammar->bits)))
        status = hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "grammar: no memory");
    return status;
}

hd_status hd_grammar_create(hd_model *model, hd_grammar_kind form, const char *text, size_t bytes,
                            hd_grammar **out_grammar) {
    hd_status status = hdl_model_find(&model);
    if (status || !text || !out_grammar) return status ? status : HD_STATUS_NULL_POINTER;
    *out_grammar = NULL;
    hd_error error = { 0 };
    if ((status = hdl_need_tokenizer(model))) return status;
    if (form != HD_GRAMMAR_GBNF && form != HD_GRAMMAR_JSON_SCHEMA)
        return hdl_model_fail(model, HD_STATUS_INVALID_ARGUMENT, "no kind of grammar has the number %d", (int)form);
    hd_grammar *grammar = hdl_alloc(&model->allocator, sizeof *grammar);
    if (!grammar) return hdl_model_fail(model, HD_STATUS_OUT_OF_HOST_MEMORY, "grammar: no memory");
    grammar->model = hdl_model_hold(model);
    status = make(grammar, form, (hdl_span){ (const uint8_t *)text, bytes }, &error);
    if (status) hd_context_put_error(model->context, &error);
    else status = hd_handle_new(model->context, kind, grammar, &grammar->handle);
    if (!status) *out_grammar = grammar->handle;
    else hd_grammar_destroy(grammar);
    return status;
}

void hd_grammar_destroy(hd_grammar *grammar) {
    grammar = hd_handle_find(grammar, kind);
    if (!grammar || (grammar->handle && !hd_handle_end(grammar->handle))) return;
    const hd_allocator allocator = grammar->model->allocator;
    hdl_matcher_destroy(grammar->matcher);
    hdl_automaton_free(&grammar->automaton);
    hdl_free(&allocator, grammar->bits, grammar->words * sizeof *grammar->bits);
    hdl_model_release(grammar->model);
    hdl_free(&allocator, grammar, sizeof *grammar);
}

/* ---- an answer ---- */

static hd_status keep(const hd_grammar *grammar, hd_status status, hd_error *error) {
    return status ? hd_context_put_error(grammar->model->context, error) : HD_OK;
}

hd_status hd_grammar_restart(hd_grammar *grammar) {
    const hd_status status = hdl_grammar_find(&grammar);
    if (!status) hdl_matcher_restart(grammar->matcher);
    return status;
}

hd_status hdl_grammar_allows(hd_grammar *grammar, int32_t token, bool *out_allows) {
    hd_error error = { 0 };
    *out_allows = hdl_matcher_complete(grammar->matcher);
    if (hdl_model_ends(grammar->model, token)) return HD_OK;
    return keep(grammar, hdl_matcher_allows(grammar->matcher, token, out_allows, &error), &error);
}

static void set_ends(const hd_grammar *grammar, bool allowed) {
    const hd_model *model = grammar->model;
    for (uint32_t i = 0; i < model->end_count; i++) {
        const uint32_t end = (uint32_t)model->ends[i], bit = UINT32_C(1) << end % 32;
        if (end >= model->figures.vocabulary) continue; /* the model has no score for it */
        if (allowed) grammar->bits[end / 32] |= bit;
        else grammar->bits[end / 32] &= ~bit;
    }
}

hd_status hdl_grammar_mask(hd_grammar *grammar, bool goes_on, const uint32_t **out_bits, bool *out_more) {
    const uint32_t *text_bits;
    hd_error error = { 0 };
    const hd_status status = hdl_matcher_mask(grammar->matcher, &text_bits, &error);
    if (status) return keep(grammar, status, &error);
    memcpy(grammar->bits, text_bits, grammar->words * sizeof *text_bits);
    set_ends(grammar, false);
    *out_more = false;
    for (uint32_t i = 0; i < grammar->words && !*out_more; i++) *out_more = grammar->bits[i] != 0;
    if (hdl_matcher_complete(grammar->matcher) && !(goes_on && *out_more)) set_ends(grammar, true);
    *out_bits = grammar->bits;
    return HD_OK;
}

hd_status hd_grammar_allowed(hd_grammar *grammar, uint32_t *out_bits, size_t words) {
    hd_status status = hdl_grammar_find(&grammar);
    const uint32_t *bits;
    bool more;
    if (status || !out_bits) return status ? status : HD_STATUS_NULL_POINTER;
    if (words < grammar->words)
        return hdl_model_fail(grammar->model, HD_STATUS_LIMIT, "a mask of %zu words; this model's have %u", words,
                              grammar->words);
    status = hdl_grammar_mask(grammar, false, &bits, &more);
    if (!status) memcpy(out_bits, bits, grammar->words * sizeof *bits);
    return status;
}

hd_status hd_grammar_accept(hd_grammar *grammar, int32_t token) {
    const hd_status status = hdl_grammar_find(&grammar);
    hd_error error = { 0 };
    if (status) return status;
    if (hdl_model_ends(grammar->model, token) && hdl_matcher_complete(grammar->matcher)) return HD_OK;
    return keep(grammar, hdl_matcher_accept(grammar->matcher, token, &error), &error);
}

bool hd_grammar_complete(const hd_grammar *grammar) {
    return !hdl_grammar_find(&grammar) && hdl_matcher_complete(grammar->matcher);
}
