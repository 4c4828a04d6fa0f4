/* grammar.c: the public face of form/: a grammar for a model's vocabulary, with the ends that the model has. */
#include "llm/form/matcher.h"
#include "llm/call_form.h"
#include "llm/messages.h"
#include "llm/reader.h"

struct hd_grammar {
    hd_model     *model;
    void         *handle;
    hdl_automaton automaton;
    hdl_matcher  *matcher;
    uint32_t     *bits;    /* a mask with the ends among them */
    uint32_t      words;
    bool          thinks;  /* an answer may be thoughts first */
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

/* A trie of a model is made with its first grammar, that of tools with the marks of calls and messages in it; where two
 * threads make it, the first one's is taken. */
static hd_status find_trie(hd_model *model, bool with_marks, hd_error *error) {
    hdl_trie *none = NULL, *made;
    int32_t marks[sizeof model->marks / sizeof *model->marks];
    uint32_t count = 0;
    if (atomic_load(&model->tries[with_marks])) return HD_OK;
    for (uint32_t i = 0; i < model->mark_count && with_marks; i++)
        if (!hdl_model_ends(model, model->marks[i])) marks[count++] = model->marks[i];
    const hd_status status = hdl_trie_create(&model->allocator, model->tokenizer, model->figures.vocabulary, marks,
                                             count, &made, error);
    if (!status && !atomic_compare_exchange_strong(&model->tries[with_marks], &none, made)) hdl_trie_destroy(made);
    return status;
}

static hd_status make(hd_grammar *grammar, const hdl_grammar *rules, hd_error *error) {
    hd_model *model = grammar->model;
    const bool with_marks = rules->frame != NULL;
    hd_status status = find_trie(model, with_marks, error);
    const hdl_trie *trie = atomic_load(&model->tries[with_marks]);
    if (!status) status = hdl_automaton_make(rules, trie, &grammar->automaton, error);
    if (!status)
        status = hdl_matcher_create(&model->allocator, &grammar->automaton, trie, model->tokenizer, &grammar->matcher,
                                    error);
    grammar->words = (model->figures.vocabulary + 31) / 32;
    if (!status && !(grammar->bits = hdl_alloc(&model->allocator, grammar->words * sizeof *grammar->bits)))
        status = hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "grammar: no memory");
    return status;
}

static hd_status make_of_text(hd_grammar *grammar, hd_grammar_kind form, hdl_span text, hd_error *error) {
    const hd_allocator *allocator = &grammar->model->allocator;
    hdl_grammar rules = { 0 };
    hdl_rules_text written = { 0 };
    hd_status status = HD_OK;
    if (form == HD_GRAMMAR_JSON_SCHEMA) {
        status = hdl_schema_rules(allocator, text, &written, error);
        text = (hdl_span){ (const uint8_t *)written.text, written.count };
    }
    if (!status) status = hdl_gbnf_read(allocator, text, &rules, error);
    if (!status) status = make(grammar, &rules, error);
    hdl_grammar_free(&rules);
    hdl_free(allocator, written.text, written.room);
    return status;
}

/* Whether models of the template think before they call. */
static bool thinks(const hd_model *model, const hd_chat_form *form) {
    hdl_span source;
    if (hdl_find_template(model, form, &source, NULL)) return false;
    const bool off = form->thinking == HD_THINKING_OFF && hdl_has(source, "enable_thinking");
    return !off && (hdl_has(source, HDL_BEGINS_THOUGHT) || hdl_has(source, "<|channel|>"));
}

static hd_status make_for_tools(hd_grammar *grammar, const hd_chat_form *form, const char *word, hd_error *error) {
    const hd_allocator *allocator = &grammar->model->allocator;
    hdl_tools tools = { 0 };
    hdl_call_choice choice = { 0 };
    const hdl_call_form *calls = NULL;
    hdl_rules_text written = { 0 };
    hdl_grammar rules = { 0 };
    hdl_frame frame = { 0 };
    hd_status status = hdl_find_calls(grammar->model, form, &tools, &calls, error);
    if (!status) status = hdl_call_choose(&tools, word, &choice, error);
    if (!status) choice.silent = !thinks(grammar->model, form);
    if (!status) status = hdl_call_rules(calls, &tools, &choice, &written, error);
    const hdl_span text = { (const uint8_t *)written.text, written.count };
    if (!status) status = hdl_gbnf_read(allocator, text, &rules, error);
    if (!status) status = hdl_call_frame(allocator, calls, &rules, &choice, &frame, error);
    if (!status) status = hdl_grammar_put_frame(&rules, &frame, error);
    if (!status) status = make(grammar, &rules, error);
    grammar->thinks = true;
    hdl_free(allocator, frame.states, frame.room * sizeof *frame.states);
    hdl_grammar_free(&rules);
    hdl_free(allocator, written.text, written.room);
    hdl_tools_free(&tools);
    return status;
}

/* A grammar of which nothing is there yet; NULL: that is told. */
static hd_grammar *allocate(hd_model *model) {
    hd_grammar *grammar = hdl_alloc(&model->allocator, sizeof *grammar);
    if (!grammar) return hdl_model_fail(model, HD_STATUS_OUT_OF_HOST_MEMORY, "grammar: no memory"), NULL;
    grammar->model = hdl_model_hold(model);
    return grammar;
}

/* Gives a grammar that was made to its owner, or tells why it was not. */
static hd_status hand_out(hd_grammar *grammar, hd_status status, hd_error *error, hd_grammar **out_grammar) {
    hd_context *context = grammar->model->context;
    if (status) hd_context_put_error(context, error);
    else status = hd_handle_new(context, kind, grammar, &grammar->handle);
    if (!status) *out_grammar = grammar->handle;
    else hd_grammar_destroy(grammar);
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
    hd_grammar *grammar = allocate(model);
    if (!grammar) return HD_STATUS_OUT_OF_HOST_MEMORY;
    status = make_of_text(grammar, form, (hdl_span){ (const uint8_t *)text, bytes }, &error);
    return hand_out(grammar, status, &error, out_grammar);
}

hd_status hd_grammar_create_for_tools(hd_model *model, const hd_chat_form *form, const char *choice,
                                      hd_grammar **out_grammar) {
    hd_status status = hdl_model_find(&model);
    if (status || !form || !form->tools || !out_grammar) return status ? status : HD_STATUS_NULL_POINTER;
    *out_grammar = NULL;
    hd_error error = { 0 };
    if ((status = hdl_need_tokenizer(model))) return status;
    hd_grammar *grammar = allocate(model);
    if (!grammar) return HD_STATUS_OUT_OF_HOST_MEMORY;
    status = make_for_tools(grammar, form, choice, &error);
    return hand_out(grammar, status, &error, out_grammar);
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

hd_status hd_grammar_begin(hd_grammar *grammar, const int32_t *prompt, size_t count) {
    const hd_status status = hdl_grammar_find(&grammar);
    hd_error error = { 0 };
    if (status || (!prompt && count)) return status ? status : HD_STATUS_NULL_POINTER;
    hdl_matcher_restart(grammar->matcher);
    if (!grammar->thinks || !hdl_prompt_begins_thought(grammar->model, prompt, count)) return HD_OK;
    return keep(grammar, hdl_matcher_read(grammar->matcher, hdl_text(HDL_BEGINS_THOUGHT), &error), &error);
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
    if (hdl_model_ends(grammar->model, token))
        return hdl_matcher_complete(grammar->matcher)
                   ? HD_OK
                   : hdl_model_fail(grammar->model, HD_STATUS_INVALID_ARGUMENT,
                                    "grammar: token %d may not come next: the answer cannot end here", token);
    return keep(grammar, hdl_matcher_accept(grammar->matcher, token, &error), &error);
}

bool hd_grammar_complete(const hd_grammar *grammar) {
    return !hdl_grammar_find(&grammar) && hdl_matcher_complete(grammar->matcher);
}
