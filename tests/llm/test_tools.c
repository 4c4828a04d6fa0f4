/* test_tools.c: tools and calls in templates as transformers renders them (tools/fixtures/tools_fixture.py), and answers of
 * all forms taken apart, wherever their pieces end. */
#include "tokenizer_fixture.h"
#include "llm/chat.h"
#include "llm/reader.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* ---- templates ---- */

typedef struct talk {
    hdl_json         json;
    hdl_chat_message messages[16];
    hdl_chat_call    calls[16];
    size_t           count, call_count;
    uint32_t         tools;
} talk;

static hdl_span text_at(const hdl_json *json, uint32_t object, const char *name) {
    const uint32_t value = hdl_json_get(json, object, name);
    return value ? json->values[value].text : (hdl_span){ NULL, 0 };
}

static void read_message(talk *t, uint32_t message, bool texts) {
    hdl_chat_message *m = &t->messages[t->count++];
    const hdl_span id = text_at(&t->json, message, "tool_call_id");
    *m = (hdl_chat_message){ .role = text_at(&t->json, message, "role"), .content = text_at(&t->json, message, "content"),
                             .calls = &t->calls[t->call_count] };
    const uint32_t calls = hdl_json_get(&t->json, message, "tool_calls"), content = hdl_json_get(&t->json, message, "content");
    for (uint32_t i = calls ? t->json.values[calls].first : 0; i; i = t->json.values[i].next, m->call_count++) {
        const uint32_t function = hdl_json_get(&t->json, i, "function");
        t->calls[t->call_count++] = (hdl_chat_call){ .id = text_at(&t->json, i, "id"), .name = text_at(&t->json, function, "name"),
                                                     .json = &t->json, .arguments = hdl_json_get(&t->json, function, "arguments") };
    }
    if (m->call_count && (t->json.values[content].kind == HDL_JSON_NULL || (texts && !m->content.count))) m->content.bytes = NULL;
    for (size_t i = 0; i < t->call_count && id.count; i++)
        if (hdl_same(t->calls[i].id, id)) m->call = &t->calls[i];
}

/* How many cases differ; a failure where Jinja makes a text and heddle refuses by name is told and counted too. */
static size_t compare(uint8_t *file, size_t *out_same) {
    reader at = { file };
    const size_t texts = read_number(&at);
    hdl_span *text = calloc(texts, sizeof *text);
    size_t different = 0;
    *out_same = 0;
    for (size_t i = 0; i < texts; i++) text[i] = read_bytes(&at);
    const size_t count = read_number(&at);
    for (size_t i = 0; i < count; i++) {
        talk t = { .count = 0 };
        uint32_t root;
        hd_error error = { 0 };
        char *got;
        size_t bytes;
        hdl_chat_desc desc = { .source = text[read_number(&at)], .now = 1760003661, .bos = hdl_text("<s>"), .eos = hdl_text("</s>") };
        assert_int_equal(hdl_json_read(&hdl_default_allocator, text[read_number(&at)], &t.json, &root, NULL), HD_OK);
        const size_t flags = read_number(&at), failed = read_number(&at);
        const hdl_span wanted = text[read_number(&at)];
        for (uint32_t m = t.json.values[hdl_json_get(&t.json, root, "messages")].first; m; m = t.json.values[m].next)
            read_message(&t, m, flags & 4);
        desc.messages = t.messages;
        desc.message_count = t.count;
        desc.tools_value = hdl_json_get(&t.json, root, "tools");
        desc.tools = desc.tools_value ? &t.json : NULL;
        desc.add_generation_prompt = flags & 1;
        desc.thinking = flags & 2 ? HD_THINKING_ON : HD_THINKING_DEFAULT;
        desc.text_arguments = flags & 4;
        const hd_status status = hdl_chat_render(NULL, &desc, &got, &bytes, &error);
        const bool same = failed ? status != HD_OK : !status && bytes == wanted.count && memcmp(got, wanted.bytes, bytes) == 0;
        if (!same)
            printf("case %zu: %.60s...\nwanted %s%.*s\ngot %s%s\n\n", i, (const char *)desc.source.bytes, failed ? "an error" : "",
                   (int)wanted.count, (const char *)wanted.bytes, error.text, got ? got : "");
        different += !same;
        *out_same += same && !failed;
        hdl_chat_free(NULL, got, bytes);
        hdl_json_free(&t.json);
    }
    free(text);
    free(file);
    return different;
}

static void templates(void **state) {
    (void)state;
    size_t same;
    assert_int_equal(compare(read_fixture("tools.chat"), &same), 0);
    assert_true(same >= 240);
}

/* ---- answers ---- */

static const char hermes[] = "<tool_call>", mistral[] = "[TOOL_CALLS]", llama[] = "ipython \"parameters\": ", granite[] = "<|tool_call|>",
                  harmony[] = "<|channel|> functions.", deepseek[] = "<｜tool▁calls▁begin｜>", command[] = "Action: ```json",
                  coder[] = "<tool_call> <function=", glm[] = "<tool_call> <arg_key>";

/* What an answer is: a text, [thought], <mark>, and name(arguments) of calls. */
static const struct { const char *source, *text, *parts; } answers[] = {
    { hermes, "plain text", "plain text" },
    { hermes, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>", "f({\"a\": 1})" },
    { hermes, "Look.\n<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n<tool_call>{\"name\":\"g\",\"arguments\":{\"b\":[1,2.50,null]}}</tool_call>",
      "Look.\nf({})\ng({\"b\": [1, 2.50, null]})" },
    { hermes, "<think>\nuse <tool_call>?\n</think>\n\n<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>",
      "<<think>>[\nuse <tool_call>?\n]<</think>>\n\nf({})" },
    { hermes, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"</tool_call> \\\" \xC3\xA9\"}}</tool_call>", "f({\"a\": \"</tool_call> \\\" \xC3\xA9\"})" },
    { hermes, "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": \\\"\\\\n\\\"}\"}</tool_call>", "f({\"a\": \"\\n\"})" },
    { hermes, "<tool_call>{\"name\": \"f\", \"arguments\": {}}", "f({})" }, /* it forgot the end */
    { hermes, "<tool_call>{\"name\": \"f\"</tool_call> so", "<tool_call>{\"name\": \"f\"</tool_call> so" },
    { hermes, "<tool_call>{\"name\": \"f\", \"arguments\": 5}</tool_call>", "<tool_call>{\"name\": \"f\", \"arguments\": 5}</tool_call>" },
    { hermes, "<tool_call>{\"name\": \"\", \"arguments\": {}}</tool_call>", "<tool_call>{\"name\": \"\", \"arguments\": {}}</tool_call>" },
    { hermes, "<tool_call>{\"name\": \"f\", \"arguments\": {}} and</tool_call>", "<tool_call>{\"name\": \"f\", \"arguments\": {}} and</tool_call>" },
    { hermes, "<tool_call>{\"name\": \"a\\u0000b\", \"arguments\": {}}</tool_call>", "<tool_call>{\"name\": \"a\\u0000b\", \"arguments\": {}}</tool_call>" },
    { hermes, "<tool_call></tool_call>", "<tool_call></tool_call>" },
    { hermes, "<tool_call><tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "<tool_call>f({})" },
    { hermes, "a <tool_cal", "a <tool_cal" },
    { hermes, "<<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>>", "<f({})>" },
    { NULL, "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>" },
    { mistral, "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"a\": 1}, \"id\": \"abcdefghi\"}, {\"name\": \"g\", \"arguments\": {}}]",
      "f#abcdefghi({\"a\": 1})g({})" },
    { mistral, "Hm.[TOOL_CALLS]f[ARGS]{\"a\": \"[TOOL_CALLS]\"}[TOOL_CALLS]g[CALL_ID]x1[ARGS]{}", "Hm.f({\"a\": \"[TOOL_CALLS]\"})g({})" },
    { mistral, "[TOOL_CALLS][]", "[TOOL_CALLS][]" },
    { llama, "{\"name\": \"f\", \"parameters\": {\"a\": {}}}", "f({\"a\": {}})" },
    { llama, "\n{\"type\": \"function\", \"function\": \"f\", \"parameters\": {}}; {\"name\": \"g\", \"parameters\": {}}", "\nf({})g({})" },
    { llama, "<|python_tag|>{\"name\": \"f\", \"parameters\": {}}", "f({})" },
    { llama, "<|python_tag|>print(1)", "<|python_tag|>print(1)" },
    { llama, "{\"answer\": 42}", "{\"answer\": 42}" },
    { llama, "It is {\"name\": \"f\", \"parameters\": {}}", "It is {\"name\": \"f\", \"parameters\": {}}" },
    { granite, "<|tool_call|>[{\"name\": \"f\", \"arguments\": {}}]", "f({})" },
    { granite, "<|tool_call|>[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": {\"x\": true}}}]<|/tool_call|>", "f({\"x\": true})" },
    { command, "Plan.\nAction: ```json\n[\n{\n\"tool_name\": \"f\",\n\"parameters\": {\"q\": \"```\"}\n}\n]```\nso", "Plan.\nf({\"q\": \"```\"})\nso" },
    { harmony, "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\": 1}",
      "<<|channel|>analysis<|message|>>[Hm]<<|end|>><<|start|>assistant>f({\"a\": 1})" },
    { harmony, "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant to=functions.f<|channel|>commentary json<|message|>{}<|call|>",
      "<<|channel|>analysis<|message|>>[Hm]<<|end|>>f({})" },
    { harmony, " to=functions.f<|channel|>commentary <|constrain|>json<|message|>{}", "f({})" },
    { harmony, "<|channel|>final<|message|>go to=it", "<<|channel|>final<|message|>>go to=it" },
    { harmony, "<|channel|>commentary to=functions.f<|message|>not json", "<|channel|>commentary to=functions.f<|message|>not json" },
    { deepseek,
      "<think>a</think>So<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": \"｜\"}\n```<｜tool▁call▁end｜>\n"
      "<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
      "<<think>>[a]<</think>>Sof({\"a\": \"｜\"})g({})" },
    { deepseek, "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "f({\"a\": 1})" },
    { coder, "Look.\n<tool_call>\n<function=f>\n<parameter=a>\n12\n</parameter>\n<parameter=b>\n a \"</tool_call>\"\n\n</parameter>\n</function>\n</tool_call> so",
      "Look.\nf({\"a\": 12, \"b\": \" a \\\"</tool_call>\\\"\\n\"}) so" },
    { coder, "<tool_call><function=f><parameter=a>None</parameter></function>\n<function=g></function></tool_call>", "f({\"a\": null})g({})" },
    { coder, "<tool_call>\n<function=f>\n<parameter=a>\n12\n</function>\n</tool_call>", "<tool_call>\n<function=f>\n<parameter=a>\n12\n</function>\n</tool_call>" },
    { coder, "<tool_call>\n<function=f>\n</tool_call>\n", "<tool_call>\n<function=f>\n</tool_call>\n" },
    { coder, "<tool_call>\n<function=f></function> and</tool_call>", "<tool_call>\n<function=f></function> and</tool_call>" },
    { coder, "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>" },
    { glm, "<think></think>\n<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>[1, \"x\"]</arg_value>\n<arg_key>b</arg_key>\n<arg_value></tool_call>\n</arg_value>\n</tool_call>",
      "<<think>><</think>>\nf({\"a\": [1, \"x\"], \"b\": \"</tool_call>\\n\"})" },
    { glm, "<tool_call>f</tool_call><tool_call>g\n<arg_key>a</arg_key><arg_value>true</arg_value></tool_call>", "f({})g({\"a\": true})" },
    { glm, "<tool_call>f <arg_key>a</arg_key></tool_call>", "<tool_call>f <arg_key>a</arg_key></tool_call>" },
    { glm, "<tool_call>f g</tool_call>", "<tool_call>f g</tool_call>" },
    { glm, "<tool_call></tool_call>", "<tool_call></tool_call>" },
    { deepseek, "<｜tool <｜ \xE2\x96\x81\xC3\xA9", "<｜tool <｜ \xE2\x96\x81\xC3\xA9" },
};

typedef struct log { char text[4096]; hd_part_kind last; } log;

static void take(void *user, const hd_part *part) {
    log *l = user;
    static const char *const open[] = { "", "[", "<", "" }, *const close[] = { "", "]", ">", "" };
    const size_t count = strlen(l->text);
    if (part->kind == HD_PART_CALL)
        sprintf(l->text + count, "%s%s%s(%s)", part->call->name, part->call->id ? "#" : "", part->call->id ? part->call->id : "",
                part->call->arguments);
    else if (part->kind == HD_PART_THOUGHT && l->last == HD_PART_THOUGHT) /* goes on */
        sprintf(l->text + count - 1, "%.*s]", (int)part->bytes, part->text);
    else sprintf(l->text + count, "%s%.*s%s", open[part->kind], (int)part->bytes, part->text, close[part->kind]);
    l->last = part->kind;
}

/* The parts of an answer in three pieces. */
static void read_in_pieces(hdl_reader *r, const char *text, size_t first, size_t second, log *l) {
    const hdl_span whole = hdl_text(text);
    *l = (log){ .last = HD_PART_TEXT };
    r->on_part = take;
    r->user = l;
    hdl_reader_begin(r, false);
    assert_int_equal(hdl_reader_push(r, (hdl_span){ whole.bytes, first }), HD_OK);
    assert_int_equal(hdl_reader_push(r, (hdl_span){ whole.bytes + first, second - first }), HD_OK);
    assert_int_equal(hdl_reader_push(r, (hdl_span){ whole.bytes + second, whole.count - second }), HD_OK);
    assert_int_equal(hdl_reader_end(r), HD_OK);
}

static void answers_at_every_split(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        const size_t count = strlen(answers[i].text);
        hdl_reader r;
        log l;
        const hdl_call_form *form = answers[i].source ? hdl_call_form_of(hdl_text(answers[i].source)) : NULL;
        assert_true(!form == !answers[i].source);
        hdl_reader_init(&r, &hdl_default_allocator, form);
        for (size_t first = 0; first <= count; first++)
            for (size_t second = first; second <= count; second++) {
                read_in_pieces(&r, answers[i].text, first, second, &l);
                if (strcmp(l.text, answers[i].parts) != 0)
                    fail_msg("%s\nat %zu and %zu: %s\nwanted %s", answers[i].text, first, second, l.text, answers[i].parts);
            }
        hdl_reader_free(&r);
    }
}

/* Thoughts without tools, as all models have them. */
static void thoughts_across_pieces(void **state) {
    (void)state;
    static const struct { const char *text, *parts; bool inside; } cases[] = {
        { "plain text", "plain text", false },
        { "<think>\nhm\n</think>\n\nyes", "<<think>>[\nhm\n]<</think>>\n\nyes", false },
        { "hm\n</think>yes", "[hm\n]<</think>>yes", true },
        { "a <think> b </think>", "a <think> b </think>", false }, /* it speaks of the mark */
        { "\n<think>a<think>b</think>c</think>", "\n<<think>>[a<think>b]<</think>>c</think>", false },
        { "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>yes",
          "<<|channel|>analysis<|message|>>[hm]<<|end|>><<|start|>assistant><<|channel|>final<|message|>>yes", false },
        { "<|channel|>final<|message|>yes <|end|>", "<<|channel|>final<|message|>>yes <|end|>", false },
        { "<<think>", "<<think>", false },
        { "<thi", "<thi", false },
        { "<think>never ends </thi", "<<think>>[never ends </thi]", false },
        { "<|channel|><|channel|>analysis<|message|>a", "<|channel|><<|channel|>analysis<|message|>>[a]", false },
    };
    hdl_reader r;
    hdl_reader_init(&r, &hdl_default_allocator, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t count = strlen(cases[i].text);
        for (size_t piece = 1; piece <= count; piece++) {
            log l = { .last = HD_PART_TEXT };
            r.on_part = take;
            r.user = &l;
            hdl_reader_begin(&r, cases[i].inside);
            for (size_t at = 0; at < count; at += piece)
                hdl_reader_push(&r, (hdl_span){ (const uint8_t *)cases[i].text + at, count - at < piece ? count - at : piece });
            hdl_reader_end(&r);
            if (strcmp(l.text, cases[i].parts) != 0) fail_msg("%s by %zu: %s", cases[i].text, piece, l.text);
        }
    }
    hdl_reader_free(&r);
    assert_true(hdl_begins_thought(hdl_text("assistant\n<think>\n")));
    assert_true(hdl_begins_thought(hdl_text("<think>")));
    assert_false(hdl_begins_thought(hdl_text("<think>\n\n</think>\n\n")));
    assert_false(hdl_begins_thought(hdl_text("think>")));
    assert_false(hdl_begins_thought(hdl_text("")));
}

/* The message that an answer becomes: without its calls and the space in front of them. */
static void messages_of_answers(void **state) {
    (void)state;
    hdl_reader r;
    log l;
    hdl_reader_init(&r, &hdl_default_allocator, hdl_call_form_of(hdl_text(hermes)));
    read_in_pieces(&r, "<think>a</think>\n\nSo: <tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>\n", 5, 30, &l);
    hd_message m = hdl_reader_message(&r);
    assert_string_equal(m.content, "<think>a</think>\n\nSo:");
    assert_int_equal(m.call_count, 1);
    assert_string_equal(m.calls[0].arguments, "{}");
    read_in_pieces(&r, "Bye.\n", 0, 0, &l);
    m = hdl_reader_message(&r);
    assert_string_equal(m.content, "Bye.\n");
    assert_int_equal(m.call_count, 0);
    hdl_reader_free(&r);
}

/* `count` times `text` in brackets of `begin` and `end`. */
static char *many(const char *begin, const char *text, size_t count, const char *end) {
    const size_t bytes = strlen(text);
    char *all = calloc(1, strlen(begin) + bytes * count + strlen(end) + 1), *at = all;
    at += sprintf(at, "%s", begin);
    for (; count > 0; count--, at += bytes) memcpy(at, text, bytes);
    strcpy(at, end);
    return all;
}

static size_t texts, calls;
static void count_parts(void *user, const hd_part *part) {
    (void)user;
    if (part->kind == HD_PART_CALL) calls++;
    else texts += part->bytes;
}

/* What is beyond the limits is text, and all of it. */
static void bounds(void **state) {
    (void)state;
    static const struct { const char *begin, *text; size_t count; const char *end; size_t calls; } cases[] = {
        { "<tool_call>", "[", 100000, "</tool_call>", 0 },
        { "<tool_call>", "{\"name\": \"f\", \"arguments\": {}} ", 1025, "</tool_call>", 0 },
        { "<tool_call>", "{\"name\": \"f\", \"arguments\": {}} ", 1024, "</tool_call>", 1024 },
        { "<tool_call>", " ", 3 << 20, "</tool_call>", 0 },
        { "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"", "x", 1 << 20, "\"}}</tool_call>", 0 },
        { "", "<tool_call>", 100000, "", 0 },
        { "", "<", 100000, "", 0 },
        { "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": ", "[", 200, "</tool_call>", 0 },
        { "<tool_call>{\"name\": \"", "n", 257, "\", \"arguments\": {}}</tool_call>", 0 },
        { "<tool_call>{\"name\": \"", "n", 256, "\", \"arguments\": {}}</tool_call>", 1 },
    };
    hdl_reader r;
    hdl_reader_init(&r, &hdl_default_allocator, hdl_call_form_of(hdl_text(hermes)));
    r.on_part = count_parts;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = many(cases[i].begin, cases[i].text, cases[i].count, cases[i].end);
        texts = calls = 0;
        hdl_reader_begin(&r, false);
        assert_int_equal(hdl_reader_push(&r, hdl_text(text)), HD_OK);
        assert_int_equal(hdl_reader_end(&r), HD_OK);
        assert_int_equal(calls, cases[i].calls);
        assert_int_equal(texts, calls ? 0 : strlen(text));
        free(text);
    }
    hdl_reader_free(&r);
}

typedef struct purse { long grants, held; } purse;
static void *from_purse(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    purse *p = user;
    if (new_bytes && p->grants-- <= 0) return NULL;
    void *got = new_bytes ? realloc(old, new_bytes) : (free(old), NULL);
    p->held += (long)new_bytes - (long)old_bytes;
    return got;
}

/* One reading with less and less memory; tools are read with it, too, where there are some. */
static void with_little_memory(const char *source, const char *tools, const char *text, const char *parts) {
    bool done = false;
    for (long grants = 0; !done; grants++) {
        purse p = { grants, 0 };
        const hd_allocator memory = { from_purse, &p };
        hdl_reader r;
        hdl_tools t = { 0 };
        log l = { .last = HD_PART_TEXT };
        assert_true(grants < 200);
        hdl_reader_init(&r, &memory, hdl_call_form_of(hdl_text(source)));
        r.on_part = take;
        r.user = &l;
        r.tools = &t;
        hd_status status = tools ? hdl_tools_read(&memory, tools, &t, NULL) : HD_OK;
        if (!status && tools) status = hdl_tools_find_types(&t, NULL);
        hdl_reader_begin(&r, false);
        if (!status) status = hdl_reader_push(&r, hdl_text(text));
        if (!status) status = hdl_reader_end(&r);
        done = status == HD_OK;
        assert_true(done || status == HD_STATUS_OUT_OF_HOST_MEMORY);
        if (done) assert_string_equal(l.text, parts);
        hdl_reader_free(&r);
        hdl_tools_free(&t);
        assert_int_equal(p.held, 0);
    }
}

static void memory_runs_out(void **state) {
    (void)state;
    with_little_memory(mistral, NULL, "So[TOOL_CALLS][{\"name\": \"f\", \"arguments\": \"{}\", \"id\": \"a\"}, {\"name\": \"g\", \"arguments\": {}}]",
                       "Sof#a({})g({})");
    with_little_memory(glm, "[{\"function\": {\"name\": \"f\", \"parameters\": {\"properties\": {\"a\": {\"type\": \"string\"}}}}}]",
                       "<tool_call>f<arg_key>a</arg_key><arg_value>12</arg_value><arg_key>b</arg_key><arg_value>12</arg_value></tool_call>",
                       "f({\"a\": \"12\", \"b\": 12})");
}

int main(int count, char **words) {
    if (count == 2) { /* a file of tools/fixtures/tools_fixture.py */
        size_t same;
        const size_t different = compare(read_file(words[1]), &same);
        printf("%zu texts the same, %zu different\n", same, different);
        return different > 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates), cmocka_unit_test(answers_at_every_split), cmocka_unit_test(thoughts_across_pieces),
        cmocka_unit_test(messages_of_answers), cmocka_unit_test(bounds), cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
