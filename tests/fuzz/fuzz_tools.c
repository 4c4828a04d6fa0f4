/* fuzz_tools.c: any bytes as the list of tools that a model may call. The first byte chooses the form of calls and tokens of an answer,
 * the others are the list. What is taken must become rules that are read, and an answer that begins a call and comes to its end must be
 * read as calls of these tools.
 * An automaton takes its time with a sanitizer: most of a second.
 * options: -max_len=4096 -timeout=25 -dict=tests/fuzz/calls.dict */
#include "form_twin.h"
#include "llm/call_form.h"
#include "llm/reader.h"

static const char *const words[] = { "{\"",  "\": ", "\", \"", "\"}", "}}", "true", "null", "12", "\xC3\xA9", "</parameter>", "</arg_value>", "</" };
static const char *const signs[] = { "<tool_call>", "[TOOL_CALLS]", "<|tool_call|>", "<|channel|>functions.", "<｜tool▁calls▁begin｜>",
                                     "Action:```json", "ipython\"parameters\": ", "<tool_call><function=", "<tool_call><arg_key>" };
enum { FORMS = sizeof signs / sizeof *signs };

/* A short answer; only one that ends is looked at. */
static void say(hdl_matcher *m, const hdl_call_form *form, hdl_tools *tools, const twin_vocabulary *v, uint32_t chance) {
    char answer[512];
    size_t count = strlen(form->begins[0]);
    memcpy(answer, form->begins[0], count);
    if (hdl_matcher_read(m, hdl_text(form->begins[0]), NULL)) return; /* no call can be ended */
    while (!hdl_matcher_complete(m) && count + 64 < sizeof answer) {
        const uint32_t *bits;
        uint32_t allowed[TWIN_TOKENS];
        if (hdl_matcher_mask(m, &bits, NULL)) return;
        const uint32_t set = twin_allowed(bits, v->count, allowed);
        if (!set) abort();
        chance = chance * 1664525 + 1013904223;
        const int32_t token = (int32_t)allowed[(chance >> 8) % set];
        const hdl_span text = hdl_token_text(v->tokenizer, token);
        if (hdl_matcher_accept(m, token, NULL)) return;
        memcpy(answer + count, text.bytes, text.count);
        count += text.count;
    }
    if (!hdl_matcher_complete(m) || hdl_tools_find_types(tools, NULL)) return;
    hdl_reader r;
    hdl_reader_init(&r, &hdl_default_allocator, form);
    r.tools = tools;
    hdl_reader_begin(&r, false);
    if (hdl_reader_push(&r, (hdl_span){ (const uint8_t *)answer, count }) || hdl_reader_end(&r) || !r.calls.count) abort();
    for (size_t i = 0; i < r.calls.count; i++) {
        hdl_call_choice choice;
        if (hdl_call_choose(tools, r.calls.calls[i].name, &choice, NULL)) abort();
    }
    hdl_reader_free(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static twin_vocabulary v;
    if (!v.count) v = twin_vocabulary_make(words, sizeof words / sizeof words[0]);
    if (!size) return 0;
    const hdl_call_form *form = hdl_call_form_of(hdl_text(signs[data[0] % FORMS]));
    const hdl_call_choice choice = { .none = false };
    char *list = calloc(1, size);
    memcpy(list, data + 1, size - 1);
    hdl_tools tools = { 0 };
    hdl_rules_text text = { 0 };
    hdl_grammar rules = { 0 };
    hdl_frame frame = { 0 };
    hdl_automaton automaton = { 0 };
    hdl_matcher *matcher = NULL;
    hd_error error = { 0 };
    hd_status status = hdl_tools_read(&hdl_default_allocator, list, &tools, &error);
    if (!status) status = hdl_call_rules(form, &tools, &choice, &text, &error);
    if (!status) status = hdl_gbnf_read(NULL, (hdl_span){ (const uint8_t *)text.text, text.count }, &rules, &error);
    if (status == HD_STATUS_PARSE && strstr(error.text, "grammar")) abort(); /* what tools become is a grammar */
    if (!status) status = hdl_call_frame(&hdl_default_allocator, form, &rules, &choice, &frame, &error);
    if (!status) status = hdl_grammar_put_frame(&rules, &frame, &error);
    if (!status) status = hdl_automaton_make(&rules, v.trie, &automaton, &error);
    if (!status) status = hdl_matcher_create(&hdl_default_allocator, &automaton, v.trie, v.tokenizer, &matcher, &error);
    if (status != error.status || (status && !error.text[0])) abort();
    if (!status) say(matcher, form, &tools, &v, data[0]);
    hdl_matcher_destroy(matcher);
    hdl_automaton_free(&automaton);
    hdl_free(&hdl_default_allocator, frame.states, frame.room * sizeof *frame.states);
    hdl_grammar_free(&rules);
    hdl_free(&hdl_default_allocator, text.text, text.room);
    hdl_tools_free(&tools);
    free(list);
    return 0;
}
