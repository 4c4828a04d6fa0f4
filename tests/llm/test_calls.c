/* test_calls.c: calls held to the schemas of tools, in every family's form: what is taken and what is not, text around calls that is
 * free, choices, refusals. With --answers: reads {"form", "choice", "tools"}, a line each, and prints the calls of answers drawn by
 * chance from their beginnings on, as the reader finds them: calls.py judges them. */
#include "form_twin.h"
#include "llm/call_form.h"
#include "llm/reader.h"
#include "llm/sample.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* What templates of each form have in them, by the form's name. */
static const struct { const char *name, *sign; } forms[] = {
    { "hermes", "<tool_call>" },          { "mistral", "[TOOL_CALLS]" }, { "llama 3", "ipython \"parameters\": " },
    { "granite", "<|tool_call|>" },       { "gpt-oss", "<|channel|> functions." },
    { "deepseek", "<｜tool▁calls▁begin｜>" }, { "command-r", "Action: ```json" },
    { "qwen3-coder", "<tool_call> <function=" }, { "glm", "<tool_call> <arg_key>" },
};
enum { FORMS = sizeof forms / sizeof *forms };
static const hdl_call_form *form_named(const char *name) {
    for (size_t i = 0; i < FORMS; i++)
        if (strcmp(forms[i].name, name) == 0) return hdl_call_form_of(hdl_text(forms[i].sign));
    fail_msg("no form %s", name);
    return NULL;
}

static const char *const words[] = {
    "{\"",  "\": ", "\": \"", "\", \"", "\"}", "\"]", "}}", ", ", "true", "false", "null", "12", "0.5", "ab", "\xC3\xA9", "\xE2\x82", "\n  ", "name", "\"name\": ",
    "<tool_call>", "</tool_call>", "{\"name\": \"", "</parameter", "\n</parameter>", "</arg_value", "></", "<|", "|>", "</", ">{\"", "}\n", "\"}}</tool_call>\nSo ", "<think>", "call",
};
static twin_vocabulary vocabulary;
static int make_vocabulary(void **state) {
    (void)state;
    vocabulary = twin_vocabulary_make(words, sizeof words / sizeof *words);
    return 0;
}
static int end_vocabulary(void **state) {
    (void)state;
    twin_vocabulary_free(&vocabulary);
    return 0;
}

/* A form of calls with all that it becomes. */
typedef struct held {
    hdl_tools      tools;
    hdl_rules_text text;
    hdl_grammar    rules;
    hdl_frame      frame;
    hdl_automaton  automaton;
    hdl_matcher   *matcher;
} held;

static hd_status hold(held *h, const hd_allocator *allocator, const char *form, const char *tools, const char *word, hd_error *error) {
    const hdl_call_form *f = form_named(form);
    hdl_call_choice choice;
    *h = (held){ 0 };
    hd_status status = hdl_tools_read(allocator, tools, &h->tools, error);
    if (!status) status = hdl_call_choose(&h->tools, word, &choice, error);
    if (!status) status = hdl_call_rules(f, &h->tools, &choice, &h->text, error);
    if (!status) status = hdl_gbnf_read(allocator, (hdl_span){ (const uint8_t *)h->text.text, h->text.count }, &h->rules, error);
    if (!status) status = hdl_call_frame(allocator, f, &h->rules, &choice, &h->frame, error);
    if (!status) status = hdl_grammar_put_frame(&h->rules, &h->frame, error);
    if (!status) status = hdl_automaton_make(&h->rules, vocabulary.trie, &h->automaton, error);
    if (!status) status = hdl_matcher_create(allocator, &h->automaton, vocabulary.trie, vocabulary.tokenizer, &h->matcher, error);
    return status;
}
static void let_go(held *h, const hd_allocator *allocator) {
    hdl_matcher_destroy(h->matcher);
    hdl_automaton_free(&h->automaton);
    hdl_free(allocator, h->frame.states, h->frame.room * sizeof *h->frame.states);
    hdl_grammar_free(&h->rules);
    hdl_free(allocator, h->text.text, h->text.room);
    hdl_tools_free(&h->tools);
}

/* ---- known answers ---- */

#define FUNCTION(name, parameters) "{\"type\": \"function\", \"function\": {\"name\": \"" name "\"" parameters "}}"
static const char two[] = "[" FUNCTION("f", ", \"parameters\": {\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"integer\"}}, "
                                            "\"required\": [\"a\"]}") ", " FUNCTION("g", "") "]";

/* Up to which byte an answer is taken: all, and it may end there: -1. */
static int taken(const held *h, const char *text) {
    hdl_matcher_restart(h->matcher);
    for (int i = 0; text[i]; i++)
        if (hdl_matcher_accept(h->matcher, (uint8_t)text[i], NULL)) return i;
    return hdl_matcher_complete(h->matcher) ? -1 : (int)strlen(text);
}

static const struct { const char *form, *choice, *text, *left; } known[] = { /* left: what is not taken; "": the end; NULL: nothing */
    { "hermes", NULL, "Just words, <tool_ and \"{}\".", NULL },
    { "hermes", NULL, "Look.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 12}}\n</tool_call>\nSo", NULL },
    { "hermes", NULL, "<tool_call>{\"name\":\"g\",\"arguments\":{}}</tool_call><tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}}</tool_call>", NULL },
    { "hermes", NULL, "<tool_call>{\"name\": \"h\", \"arguments\": {}}</tool_call>", "h\", \"arguments\": {}}</tool_call>" },
    { "hermes", NULL, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"1\"}}</tool_call>", "\"1\"}}</tool_call>" },
    { "hermes", NULL, "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "}}</tool_call>" },
    { "hermes", NULL, "<tool_call>{\"name\": \"g\", \"arguments\": {\"a\": 1}}", "\"a\": 1}}" },
    { "hermes", NULL, "<tool_call>{\"name\": \"g\", \"arguments\": {}}", "" },
    { "hermes", NULL, "<tool_call>{\"name\": \"g\", \"arguments\": {}}<tool_call>", "tool_call>" },
    { "hermes", NULL, "<tool_call>no", "no" },
    { "hermes", NULL, "<think>a <tool_call>no</think><tool_call>no", "no" },
    { "hermes", NULL, "\xFF\x80 any bytes", NULL },
    { "hermes", "none", "a <tool_call> b", "> b" },
    { "hermes", "none", "<think><tool_call></think>a </tool_call>", NULL },
    { "hermes", "required", "", "" },
    { "hermes", "required", "Well", "Well" },
    { "hermes", "required", "\n\n\n", "\n" },
    { "hermes", "required", "<|channel|>final<|message|>", "final<|message|>" },
    { "hermes", "required", "<think>hm</think>\n\n<tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call> done", NULL },
    { "hermes", "required", "<think>hm</think>\n\nNo", "No" },
    { "hermes", "g", "<tool_call>{\"name\": \"f\"", "f\"" },
    { "hermes", "g", "<tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call>", NULL },
    { "llama 3", "required", "{\"name\": \"g\", \"parameters\": {}}", NULL },
    { "llama 3", "required", "{\"answer\"", "answer\"" },
    { "mistral", "required", "[TOOL_CALLS]g[ARGS]{}", NULL },
    { "mistral", "f", "[TOOL_CALLS]g", "g" },
    { "deepseek", "g", "\n\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f", "f" },
    { "gpt-oss", "f", "<|channel|>commentary to=functions.g", "g" },
    { "mistral", NULL, "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"a\": 1}, \"id\": \"abcdefgh1\"}, {\"name\": \"g\", \"arguments\": {}}]", NULL },
    { "mistral", NULL, "[TOOL_CALLS]g[ARGS]{}[TOOL_CALLS]f[CALL_ID]abcdefgh1[ARGS]{\"a\": 1}", NULL },
    { "mistral", NULL, "Hm.[TOOL_CALLS]g[ARGS]{} and", " and" },
    { "mistral", NULL, "[TOOL_CALLS]f[ARGS]{}", "}" },
    { "mistral", NULL, "[TOOL_CALLS][]", "]" },
    { "llama 3", NULL, "{\"name\": \"f\", \"parameters\": {\"a\": 1}}; {\"name\": \"g\", \"parameters\": {}}", NULL },
    { "llama 3", NULL, "<|python_tag|>{\"name\": \"g\", \"parameters\": {}}", NULL },
    { "llama 3", NULL, "{\"name\": \"x", "x" },
    { "llama 3", NULL, "{\"name\": \"f\", \"parameters\": {}}", "}}" },
    { "llama 3", NULL, "{\"answer\": 42}", NULL },
    { "llama 3", NULL, "It is {\"name\": \"x\"}", NULL },
    { "llama 3", "none", "{\"name\": \"f", "\"f" },
    { "granite", NULL, "<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]", NULL },
    { "granite", NULL, "<|tool_call|>[{\"name\": \"g\", \"arguments\": {}}, {\"name\": \"g\", \"arguments\": {}}]<|/tool_call|> so", NULL },
    { "granite", NULL, "<|tool_call|>{", "{" },
    { "gpt-oss", NULL, "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>commentary to=functions.f "
                       "<|constrain|>json<|message|>{\"a\": 1}", NULL },
    { "gpt-oss", NULL, " to=functions.g<|channel|>commentary json<|message|>{}<|call|>", NULL },
    { "gpt-oss", NULL, " to=functions.h", "h" },
    { "gpt-oss", NULL, " to=browser", "browser" },
    { "gpt-oss", NULL, "<|channel|>final<|message|>go to=it", NULL },
    { "gpt-oss", "required", "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>", ">" },
    { "gpt-oss", "required", "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant to=functions.g<|message|>{}", NULL },
    { "gpt-oss", "none", "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant to=", "=" },
    { "deepseek", NULL, "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": 1}\n```<｜tool▁call▁end｜>\n"
                        "<｜tool▁call▁begin｜>g<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", NULL },
    { "deepseek", NULL, "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>", "s▁end｜>" },
    { "command-r", NULL, "Plan.\nAction: ```json\n[\n    {\n        \"tool_name\": \"f\",\n        \"parameters\": {\"a\": 3}\n    }\n]```\nso", NULL },
    { "command-r", NULL, "Action:```json\n[{\"tool_name\": \"x", "x" },
    { "qwen3-coder", NULL, "So.\n<tool_call>\n<function=f>\n<parameter=a>\n12\n</parameter>\n</function>\n</tool_call>\n"
                           "<tool_call>\n<function=g>\n</function>\n</tool_call> done", NULL },
    { "qwen3-coder", NULL, "<tool_call>\n<function=f>\n</function>", "/function>" },
    { "qwen3-coder", NULL, "<tool_call>\n<function=f>\n<parameter=a>\nx", "x" },
    { "qwen3-coder", NULL, "<tool_call>\n<function=f>\n<parameter=b>", "b>" },
    { "qwen3-coder", NULL, "<tool_call>\n<function=h>", "h>" },
    { "qwen3-coder", "none", "<tool_call>", ">" },
    { "glm", NULL, "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>12</arg_value>\n</tool_call>", NULL },
    { "glm", NULL, "<tool_call>f<arg_key>a</arg_key><arg_value>12</arg_value></tool_call><tool_call>g\n</tool_call>", NULL },
    { "glm", NULL, "<tool_call>f\n</tool_call>", "/tool_call>" },
    { "glm", NULL, "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>\"12\"", "\"12\"" },
    { "glm", "required", "<tool_call>g</tool_call>", NULL },
};

static void known_answers(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        held h;
        hd_error error = { 0 };
        if (hold(&h, &hdl_default_allocator, known[i].form, two, known[i].choice, &error)) fail_msg("%s: %s", known[i].form, error.text);
        const int at = taken(&h, known[i].text);
        const char *left = at < 0 ? NULL : known[i].text + at;
        if (!left != !known[i].left || (left && strcmp(left, known[i].left) != 0))
            fail_msg("%s, %s: %s: left is %s", known[i].form, known[i].choice ? known[i].choice : "auto", known[i].text, left ? left : "nothing");
        let_go(&h, &hdl_default_allocator);
    }
}

/* Strings between tags stand as they are, but for the text that closes them; where another type may stand, too, all is JSON. */
static void values_between_tags(void **state) {
    (void)state;
    static const char before[] = "<tool_call>f<arg_key>", middle[] = "</arg_key><arg_value>", behind[] = "</arg_value></tool_call>";
    static const struct { const char *key, *value, *read; } cases[] = { /* read: NULL: it is not taken */
        { "s", "a <b> </c> \"d\"\n\\ </arg_valu>", "\"a <b> </c> \\\"d\\\"\\n\\\\ </arg_valu>\"" }, { "s", "", "\"\"" },
        { "s", "12", "\"12\"" }, { "s", "null", "\"null\"" }, { "s", "</tool_call><<", "\"</tool_call><<\"" },
        { "s", "a</arg_value>b", NULL }, { "s", "<</arg_value>b", NULL }, { "a", "[\"</arg_value>\"]", NULL },
        { "n", "null", "null" }, { "n", "nul", "\"nul\"" },
        { "m", "12", "12" }, { "m", "\"12\"", "\"12\"" }, { "m", "twelve", NULL }, { "m", "\"a</b\"", "\"a</b\"" },
        { "e", "one", "\"one\"" }, { "e", "x</arg_value>", NULL }, { "e", "three", NULL },
        { "p", "ab7", "\"ab7\"" }, { "p", "7", NULL }, { "l", "abc", "\"abc\"" }, { "l", "abcd", NULL }, { "l", "a<c", NULL },
        { "j", "{\"<\": []}", NULL }, { "j", "{\"k\": [\"<i></i>\"]}", "{\"k\": [\"<i></i>\"]}" }, { "j", "[\"</arg_value\", \"\\u003c/arg_value>\"]", NULL },
        { "a", "[\"</arg_value\", \"\\u003c/arg_value>\"]", "[\"</arg_value\", \"</arg_value>\"]" }, { "b", "true", "true" }, { "b", "True", NULL },
    };
    const char *const tools =
        "[" FUNCTION("f", ", \"parameters\": {\"type\": \"object\", \"properties\": {\"s\": {\"type\": \"string\"}, \"n\": {\"anyOf\": "
        "[{\"type\": \"string\"}, {\"type\": \"null\"}]}, \"m\": {\"type\": [\"string\", \"integer\"]}, \"e\": {\"enum\": [\"one\", \"x</arg_value>\"]},"
        "\"p\": {\"type\": \"string\", \"pattern\": \"^[a-z]+\\\\d$\"}, \"l\": {\"type\": \"string\", \"maxLength\": 3}, \"j\": {\"type\": \"object\"},"
        "\"a\": {\"type\": \"array\"}, \"b\": {\"type\": \"boolean\"}}}") "]";
    held h;
    hd_error error = { 0 };
    if (hold(&h, &hdl_default_allocator, "glm", tools, NULL, &error)) fail_msg("%s", error.text);
    assert_int_equal(hdl_tools_find_types(&h.tools, NULL), HD_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512], wanted[256];
        hdl_reader r;
        snprintf(text, sizeof text, "%s%s%s%s%s", before, cases[i].key, middle, cases[i].value, behind);
        snprintf(wanted, sizeof wanted, "{\"%s\": %s}", cases[i].key, cases[i].read ? cases[i].read : "");
        if ((taken(&h, text) < 0) != (cases[i].read != NULL)) fail_msg("%s: %d", text, taken(&h, text));
        if (!cases[i].read) continue;
        hdl_reader_init(&r, &hdl_default_allocator, form_named("glm"));
        r.tools = &h.tools;
        hdl_reader_begin(&r, false);
        assert_int_equal(hdl_reader_push(&r, hdl_text(text)), HD_OK);
        assert_int_equal(hdl_reader_end(&r), HD_OK);
        if (r.calls.count != 1 || strcmp(r.calls.calls[0].arguments, wanted) != 0)
            fail_msg("%s is read as %s", text, r.calls.count ? r.calls.calls[0].arguments : "no call");
        hdl_reader_free(&r);
    }
    let_go(&h, &hdl_default_allocator);
}

/* Answers that Python's jsonschema judged (tools/fixtures/calls_fixture.py): what is right is taken, and read as calls, and what is wrong
 * is not. */
static void judged_answers(void **state) {
    (void)state;
    size_t bytes, right = 0, wrong = 0;
    hdl_json json;
    uint32_t root;
    FILE *file = fopen(HEDDLE_TESTS_DIR "/llm/fixtures/calls.json", "rb");
    char *text = calloc(1, HDL_MAX_JSON_BYTES + 1);
    assert_true(file && text);
    bytes = fread(text, 1, HDL_MAX_JSON_BYTES, file);
    fclose(file);
    assert_int_equal(hdl_json_read(&hdl_default_allocator, (hdl_span){ (const uint8_t *)text, bytes }, &json, &root, NULL), HD_OK);
    for (uint32_t i = json.values[root].first; i; i = json.values[i].next) {
        char form[32], *tools = hdl_json_write(&json, hdl_json_get(&json, i, "tools"), &hdl_default_allocator);
        const hdl_span name = json.values[hdl_json_get(&json, i, "form")].text;
        held h;
        hd_error error = { 0 };
        snprintf(form, sizeof form, "%.*s", (int)name.count, (const char *)name.bytes);
        if (hold(&h, &hdl_default_allocator, form, tools, NULL, &error)) fail_msg("%s: %s", form, error.text);
        for (uint32_t a = json.values[hdl_json_get(&json, i, "answers")].first; a; a = json.values[a].next) {
            const uint32_t answer = json.values[a].first;
            const bool good = json.values[json.values[answer].next].kind == HDL_JSON_TRUE;
            const hdl_span said = json.values[answer].text;
            hdl_matcher_restart(h.matcher);
            const bool takes = !hdl_matcher_read(h.matcher, said, NULL) && hdl_matcher_complete(h.matcher);
            if (takes != good) fail_msg("%s %s: %.*s", form, good ? "does not take" : "takes", (int)said.count, (const char *)said.bytes);
            right += good;
            wrong += !good;
        }
        let_go(&h, &hdl_default_allocator);
        hdl_free(&hdl_default_allocator, tools, strlen(tools) + 1);
    }
    hdl_json_free(&json);
    free(text);
    assert_true(right > 200 && wrong > 200);
}

/* ---- what is free ---- */

static uint64_t draws;
static uint32_t below(uint32_t limit) { return (uint32_t)(hdl_random(29, draws++) % limit); }

/* Where no call may come every byte is taken up to the one with which the reader sees one begin, in texts that are made of marks and
 * of parts of them. */
static void text_is_free_up_to_the_readers_mark(void **state) {
    (void)state;
    size_t begun = 0, ended = 0;
    for (size_t f = 0; f < FORMS; f++) {
        hdl_call_form form = *form_named(forms[f].name);
        held h;
        if (form.opens) form.first = form.opens;
        assert_int_equal(hold(&h, &hdl_default_allocator, forms[f].name, two, "none", NULL), HD_OK);
        for (int round = 0; round < 400; round++) {
            hdl_reader r;
            char text[2048] = "";
            hdl_reader_init(&r, &hdl_default_allocator, &form);
            hdl_reader_begin(&r, false);
            hdl_matcher_restart(h.matcher);
            for (int i = 0; i < 12; i++) {
                const char *mark = hdl_mark_at(&form, below(HDL_MARKS)).text;
                if (!mark || below(4) == 0) mark = (const char *const[]){ " ", "\n", "x", "<", "\xC3\xA9", "\xF0" }[below(6)];
                sprintf(text + strlen(text), "%.*s", (int)(below(3) ? strlen(mark) : below((uint32_t)strlen(mark) + 1)), mark);
            }
            size_t i = 0;
            while (text[i] && r.at.state != HDL_CALLED) {
                assert_int_equal(hdl_reader_push(&r, (hdl_span){ (const uint8_t *)text + i, 1 }), HD_OK);
                const bool takes = !hdl_matcher_accept(h.matcher, (uint8_t)text[i++], NULL);
                if (takes != (r.at.state != HDL_CALLED)) fail_msg("%s: %.*s", forms[f].name, (int)i, text);
                assert_true(hdl_matcher_complete(h.matcher));
            }
            if (r.at.state == HDL_CALLED) begun++;
            else ended++;
            hdl_reader_free(&r);
        }
        let_go(&h, &hdl_default_allocator);
    }
    assert_true(begun > 1000 && ended > 100);
}

/* A token whose bytes begin, hold or end a call is allowed where all of it fits, and a mask says of each token what is said of it alone. */
static void tokens_across_marks(void **state) {
    (void)state;
    static const struct { const char *before, *token; bool allowed; } cases[] = {
        { "<tool_call", ">{\"", true }, { "a ", ">{\"", true },     { "<tool_call>", "{\"name\": \"", true }, { "<tool_call>", "<think>", false },
        { "<tool_call>{\"name\": \"g\", \"arguments\": {", "}}", true },
        { "<tool_call>{\"name\": \"s\", \"arguments\": {\"t\": \"", "\"}}</tool_call>\nSo ", true },
        { "<tool_call>{\"name\": \"s\", \"arguments\": {\"t\": \"", "<tool_call>", true }, { "", "<tool_call>", true }, { "", "</tool_call>", true },
    };
    const char *const tools = "[" FUNCTION("g", "") ", " FUNCTION("s", ", \"parameters\": {\"properties\": {\"t\": {\"type\": \"string\"}}}") "]";
    held h;
    assert_int_equal(hold(&h, &hdl_default_allocator, "hermes", tools, NULL, NULL), HD_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t *bits;
        bool allows;
        hdl_matcher_restart(h.matcher);
        assert_int_equal(hdl_matcher_read(h.matcher, hdl_text(cases[i].before), NULL), HD_OK);
        assert_int_equal(hdl_matcher_mask(h.matcher, &bits, NULL), HD_OK);
        for (uint32_t t = 0; t < vocabulary.count; t++) {
            assert_int_equal(hdl_matcher_allows(h.matcher, (int32_t)t, &allows, NULL), HD_OK);
            if (allows != (bits[t / 32] >> t % 32 & 1)) fail_msg("%s: token %u", cases[i].before, t);
            if (hdl_same(hdl_token_text(vocabulary.tokenizer, (int32_t)t), hdl_text(cases[i].token)) && allows != cases[i].allowed)
                fail_msg("%s, then %s", cases[i].before, cases[i].token);
        }
    }
    let_go(&h, &hdl_default_allocator);
}

/* Control tokens: one that is a mark has the place of its text, one that no reader sees may come where text is free, and changes
 * nothing there. */
static void control_tokens(void **state) {
    (void)state;
    enum { MARK = 256, HIDDEN, COUNT };
    char letters[256][4];
    hdl_span tokens[COUNT] = { [MARK] = hdl_text("<|tool_call|>"), [HIDDEN] = hdl_text("<hidden>") };
    int32_t types[COUNT] = { [MARK] = HDL_TOKEN_CONTROL, [HIDDEN] = HDL_TOKEN_CONTROL };
    const int32_t mark = MARK;
    for (int i = 0; i < 256; i++) {
        const char byte = (char)i;
        tokens[i] = (hdl_span){ (const uint8_t *)letters[i], twin_letters(&byte, 1, letters[i]) };
        types[i] = HDL_TOKEN_NORMAL;
    }
    const twin_vocabulary before = vocabulary;
    vocabulary = (twin_vocabulary){ .count = COUNT };
    const hdl_vocab_desc desc = { .kind = HDL_VOCAB_BYTES, .pre = "gpt-2", .tokens = tokens, .token_count = COUNT, .types = types,
                                  .type_count = COUNT, .bos = HDL_NO_TOKEN, .eos = HDL_NO_TOKEN, .unknown = HDL_NO_TOKEN };
    assert_int_equal(hdl_tokenizer_create(NULL, &desc, &vocabulary.tokenizer, NULL), HD_OK);
    assert_int_equal(hdl_trie_create(&hdl_default_allocator, vocabulary.tokenizer, COUNT, &mark, 1, &vocabulary.trie, NULL), HD_OK);
    held h;
    const uint32_t *bits;
    assert_int_equal(hold(&h, &hdl_default_allocator, "granite", two, NULL, NULL), HD_OK);
    assert_int_equal(hdl_matcher_mask(h.matcher, &bits, NULL), HD_OK);
    assert_int_equal(bits[8], 3);
    assert_int_equal(hdl_matcher_read(h.matcher, hdl_text("<|tool_"), NULL), HD_OK);
    assert_int_equal(hdl_matcher_accept(h.matcher, HIDDEN, NULL), HD_OK);
    assert_int_equal(hdl_matcher_accept(h.matcher, 'c', NULL), HD_OK);
    assert_int_equal(hdl_matcher_accept(h.matcher, MARK, NULL), HD_OK);
    assert_int_equal(hdl_matcher_mask(h.matcher, &bits, NULL), HD_OK);
    assert_int_equal(bits[8], 0);
    assert_int_equal(hdl_matcher_accept(h.matcher, HIDDEN, NULL), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hdl_matcher_accept(h.matcher, '[', NULL), HD_OK);
    assert_int_equal(hdl_matcher_accept(h.matcher, 'x', NULL), HD_STATUS_INVALID_ARGUMENT);
    let_go(&h, &hdl_default_allocator);
    twin_vocabulary_free(&vocabulary);
    vocabulary = before;
}

/* ---- what is refused ---- */

static void refusals(void **state) {
    (void)state;
    static const struct { const char *form, *tools, *choice; hd_status status; const char *words; } cases[] = {
        { "hermes", "[" FUNCTION("f", "") ", " FUNCTION("g", "") ", " FUNCTION("f", "") "]", NULL, HD_STATUS_INVALID_ARGUMENT,
          "tools 1 and 3 are both called 'f'" },
        { "hermes", two, "h", HD_STATUS_NAME_NOT_FOUND, "no tool 'h' to choose" },
        { "hermes", "[" FUNCTION("f", ", \"parameters\": {\"properties\": {\"a\": {\"not\": {}}}}") "]", NULL, HD_STATUS_UNSUPPORTED, "tool 'f': schema:" },
        { "hermes", "[" FUNCTION("f", ", \"parameters\": {\"properties\": {\"a\": {\"not\": {}}}}") "]", NULL, HD_STATUS_UNSUPPORTED, "'not'" },
        { "hermes", "[" FUNCTION("f", ", \"parameters\": {\"type\": \"string\"}") "]", NULL, HD_STATUS_UNSUPPORTED, "an object" },
        { "hermes", "[" FUNCTION("f", ", \"parameters\": 3") "]", NULL, HD_STATUS_UNSUPPORTED, "tool 'f': schema:" },
        { "hermes", "[" FUNCTION("f", ", \"parameters\": {\"$ref\": \"#/x\"}") "]", NULL, HD_STATUS_NAME_NOT_FOUND, "#/x" },
        { "gpt-oss", "[" FUNCTION("a b", "") "]", NULL, HD_STATUS_UNSUPPORTED, "'a b' cannot stand" },
        { "glm", "[" FUNCTION("a b", "") "]", NULL, HD_STATUS_UNSUPPORTED, "'a b' cannot stand" },
        { "glm", "[" FUNCTION("f", ", \"parameters\": {\"properties\": {\"a>\": {}}}") "]", NULL, HD_STATUS_UNSUPPORTED, "no property is called 'a>'" },
        { "qwen3-coder", "[" FUNCTION("f", ", \"parameters\": {\"type\": \"object\", \"anyOf\": [{}]}") "]", NULL, HD_STATUS_UNSUPPORTED,
          "tool 'f': schema: this model's calls have a list of properties, and not anyOf" },
        { "qwen3-coder", "[" FUNCTION("f", ", \"parameters\": {\"properties\": {\"a\": {\"type\": \"string\", \"not\": {}}}}") "]", NULL,
          HD_STATUS_UNSUPPORTED, "'not'" },
        { "mistral", "[" FUNCTION("a[b", "") "]", NULL, HD_STATUS_UNSUPPORTED, "'a[b' cannot stand" },
        { "hermes", "[" FUNCTION("f", ", \"parameters\": {\"properties\": {\"n\": {\"$ref\": \"#\"}}, \"required\": [\"n\"]}") "]", "required",
          HD_STATUS_UNSUPPORTED, "ever ends" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        held h;
        hd_error error = { 0 };
        const hd_status status = hold(&h, &hdl_default_allocator, cases[i].form, cases[i].tools, cases[i].choice, &error);
        if (status != cases[i].status || !strstr(error.text, cases[i].words)) fail_msg("case %zu: %d, %s", i, status, error.text);
        let_go(&h, &hdl_default_allocator);
    }
    /* a call that could never be ended is not begun, and all else may be said */
    held h;
    assert_int_equal(hold(&h, &hdl_default_allocator, "hermes", cases[13].tools, NULL, NULL), HD_OK);
    assert_int_equal(taken(&h, "a <tool_call>"), strlen("a <tool_call"));
    assert_int_equal(taken(&h, "a <tool_call "), -1);
    let_go(&h, &hdl_default_allocator);
    char *many = calloc(1, 1 << 17), *at = many;
    at += sprintf(at, "[");
    for (int i = 0; i <= (int)HDL_MAX_TOOLS; i++) at += sprintf(at, "%s" FUNCTION("f%d", ""), i ? "," : "", i);
    sprintf(at, "]");
    hd_error error = { 0 };
    assert_int_equal(hold(&h, &hdl_default_allocator, "hermes", many, NULL, &error), HD_STATUS_LIMIT);
    assert_non_null(strstr(error.text, "more than 1024 tools"));
    let_go(&h, &hdl_default_allocator);
    sprintf(many, "[" FUNCTION("%0*d", "") "]", (int)HDL_MAX_TOOL_NAME + 1, 7);
    error = (hd_error){ 0 };
    assert_int_equal(hold(&h, &hdl_default_allocator, "hermes", many, NULL, &error), HD_STATUS_LIMIT);
    assert_non_null(strstr(error.text, "longer than 256 bytes"));
    let_go(&h, &hdl_default_allocator);
    free(many);
}

/* Any allocation may fail. */
static size_t allocations_left;
static void *scarce(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    if (new_bytes && allocations_left-- == 0) return allocations_left = 0, NULL;
    return hdl_default_allocator.resize(user, old, old_bytes, new_bytes);
}

static void no_memory(void **state) {
    (void)state;
    const hd_allocator allocator = { .resize = scarce };
    hd_status status = HD_STATUS_OUT_OF_HOST_MEMORY;
    size_t count = 0;
    for (; status; count++) {
        held h;
        hd_error error = { 0 };
        allocations_left = count;
        status = hold(&h, &allocator, "qwen3-coder", two, NULL, &error);
        if (status && (status != HD_STATUS_OUT_OF_HOST_MEMORY || !error.text[0])) fail_msg("%zu: %d %s", count, status, error.text);
        let_go(&h, &allocator);
    }
    assert_true(count > 50);
}

/* ---- answers by chance ---- */

/* An answer that begins with a call; what closes something is preferred the longer it is. False: it came to no end. */
static bool answer(held *h, const hdl_call_form *form, char *out, size_t room, size_t *out_count) {
    const char *begins[5];
    size_t count = 0;
    for (size_t i = 0; i < 4; i++)
        if (form->begins[i]) begins[count++] = form->begins[i];
    if (form->first) begins[count++] = form->opens ? form->opens : form->first;
    const char *begin = begins[below((uint32_t)count)];
    hdl_matcher_restart(h->matcher);
    if (hdl_matcher_read(h->matcher, hdl_text(begin), NULL)) return false;
    *out_count = (size_t)sprintf(out, "%s", begin);
    while (*out_count + 64 < room) {
        const uint32_t *bits;
        uint32_t allowed[TWIN_TOKENS], set = 0, closing[TWIN_TOKENS], closings = 0;
        if (hdl_matcher_complete(h->matcher)) return true;
        if (hdl_matcher_mask(h->matcher, &bits, NULL)) return false;
        for (uint32_t i = 0; i < vocabulary.count; i++) {
            if (!(bits[i / 32] >> i % 32 & 1)) continue;
            allowed[set++] = i;
            const hdl_span text = hdl_token_text(vocabulary.tokenizer, (int32_t)i);
            if (strchr("\"]}</", text.bytes[0])) closing[closings++] = i;
        }
        if (!set) return false;
        const bool close = closings && below(200) < 20 + *out_count;
        const int32_t token = (int32_t)(close ? closing[below(closings)] : allowed[below(set)]);
        const hdl_span text = hdl_token_text(vocabulary.tokenizer, token);
        if (hdl_matcher_accept(h->matcher, token, NULL)) return false;
        memcpy(out + *out_count, text.bytes, text.count);
        *out_count += text.count;
    }
    return false;
}

/* A text as JSON; `json` is any document. */
static void print_text(int number, hdl_json *json, const char *text, size_t count) {
    const uint32_t value = hdl_json_new(json, HDL_JSON_STRING, (hdl_span){ (const uint8_t *)text, count });
    char *written = hdl_json_write(json, value, &hdl_default_allocator);
    printf("%d answer %s\n", number, written);
    hdl_free(&hdl_default_allocator, written, strlen(written) + 1);
}

static int print_answers(void) {
    static char line[1 << 20], said[1 << 16];
    make_vocabulary(NULL);
    for (int number = 0; fgets(line, sizeof line, stdin); number++) {
        held h;
        hd_error error = { 0 };
        hdl_json json;
        uint32_t root;
        if (hdl_json_read(&hdl_default_allocator, hdl_text(line), &json, &root, &error)) return 1;
        char *tools = hdl_json_write(&json, hdl_json_get(&json, root, "tools"), &hdl_default_allocator), name[32], choice[64];
        const hdl_span form_name = json.values[hdl_json_get(&json, root, "form")].text, word = json.values[hdl_json_get(&json, root, "choice")].text;
        snprintf(name, sizeof name, "%.*s", (int)form_name.count, (const char *)form_name.bytes);
        snprintf(choice, sizeof choice, "%.*s", (int)word.count, (const char *)word.bytes);
        const hd_status status = hold(&h, &hdl_default_allocator, name, tools, choice, &error);
        if (status) printf("%d refused %s\n", number, error.text);
        else if (hdl_tools_find_types(&h.tools, NULL)) return 1;
        for (int i = 0; i < 5 && !status; i++) {
            hdl_reader r;
            size_t count = 0;
            const bool ended = answer(&h, form_named(name), said, sizeof said, &count);
            hdl_reader_init(&r, &hdl_default_allocator, form_named(name));
            r.tools = &h.tools;
            hdl_reader_begin(&r, false);
            if (hdl_reader_push(&r, (hdl_span){ (const uint8_t *)said, count }) || hdl_reader_end(&r)) return 1;
            if (!ended) printf("%d endless\n", number);
            else if (!r.calls.count) printf("%d uncalled %.*s\n", number, (int)strcspn(said, "\n"), said);
            if (ended) print_text(number, &json, said, count);
            for (size_t k = 0; k < r.calls.count && ended; k++) printf("%d said %s %s\n", number, r.calls.calls[k].name, r.calls.calls[k].arguments);
            hdl_reader_free(&r);
        }
        let_go(&h, &hdl_default_allocator);
        hdl_free(&hdl_default_allocator, tools, strlen(tools) + 1);
        hdl_json_free(&json);
    }
    return end_vocabulary(NULL);
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "--answers") == 0) return print_answers();
    const struct CMUnitTest tests[] = { cmocka_unit_test(known_answers), cmocka_unit_test(values_between_tags), cmocka_unit_test(judged_answers),
                                        cmocka_unit_test(text_is_free_up_to_the_readers_mark),
                                        cmocka_unit_test(tokens_across_marks), cmocka_unit_test(control_tokens), cmocka_unit_test(refusals),
                                        cmocka_unit_test(no_memory) };
    return cmocka_run_group_tests(tests, make_vocabulary, end_vocabulary);
}
