/* Chat templates: what Jinja makes of 755 templates with messages, errors with their places, bounds, heddle's own. */
#include "chat_fixture.h"
#include "spent.h"

/* How heddle does on the cases of a file: the same, refused though Jinja gives a text (UNSUPPORTED or LIMIT, of which `shown` says
 * each), different: another text, a text where Jinja fails, or a failure that is not a refusal. */
typedef struct tally { size_t same, refused, different; } tally;
static tally compare(uint8_t *file, bool shown) {
    tally all = { 0 };
    chat_cases cases = chat_open(file);
    for (size_t i = 0; i < cases.count; i++) {
        const chat_case c = chat_next(&cases);
        char *text;
        size_t bytes;
        hd_error error = { 0 };
        const hd_status status = hdl_chat_render(NULL, &c.desc, &text, &bytes, &error);
        const bool refused = status == HD_STATUS_UNSUPPORTED || status == HD_STATUS_LIMIT;
        assert_true(status == error.status && !text == (status != HD_OK));
        bool same = refused || status == HD_STATUS_PARSE;
        if (c.outcome == 0) same = status == HD_OK && bytes == c.text.count && memcmp(text, c.text.bytes, bytes) == 0;
        if (c.outcome == 1) same = status == HD_STATUS_INVALID_ARGUMENT && strstr(error.text, "refuses the messages") != NULL;
        if (same) all.same++;
        else if (refused) all.refused++;
        else all.different++;
        if (!same && refused && shown) printf("refused: case %zu: %s\n", i, error.text);
        if (!same && !refused)
            printf("case %zu: %.*s\nwanted %zu: %.*s\ngot %s: %s\n\n", i, (int)c.desc.source.count,
                   (const char *)c.desc.source.bytes, c.outcome, (int)c.text.count, (const char *)c.text.bytes,
                   error.text, text ? text : "");
        hdl_chat_free(NULL, text, bytes);
    }
    chat_close(&cases);
    return all;
}

static void reference(void **state) {
    (void)state;
    const tally all = compare(read_fixture("cases.chat"), true);
    assert_true(all.same >= 700);
    assert_int_equal(all.refused + all.different, 0);
}

static void by_chance(void **state) {
    (void)state;
    const tally all = compare(read_fixture("chance.chat"), false);
    assert_true(all.same + all.refused >= 2000);
    assert_in_range(all.refused, 0, 40);
    assert_int_equal(all.different, 0);
}

static const hdl_chat_message hello = { .role = { (const uint8_t *)"user", 4 }, .content = { (const uint8_t *)"Hi", 2 } };

/* The status of rendering, which must take less than a second or so and, where it fails, say `words`. */
static void try(const char *source, hd_status wanted, const char *words) {
    const hdl_chat_desc desc = { .source = hdl_text(source), .messages = &hello, .message_count = 1 };
    char *text;
    size_t bytes;
    hd_error error = { 0 };
    const double begin = spent_seconds();
    const hd_status status = hdl_chat_render(NULL, &desc, &text, &bytes, &error);
    const double seconds = spent_seconds() - begin;
    if (status != wanted || error.status != wanted || !strstr(error.text, words))
        fail_msg("%.80s\nwanted %d with \"%s\", got %d: %s", source, wanted, words, status, error.text);
    if (seconds > 4) fail_msg("%.80s\ntook %g s", source, seconds);
    hdl_chat_free(NULL, text, bytes);
}

static void errors(void **state) {
    (void)state;
    try("ab{{ x | frobnicate }}", HD_STATUS_UNSUPPORTED,
        "chat template: filter 'frobnicate' at byte 9 is not supported; name one of heddle's own templates");
    try("{% if 1 is prime %}{% endif %}", HD_STATUS_UNSUPPORTED, "test 'prime' at byte 11");
    try("{{ 'a'.zfill(3) }}", HD_STATUS_UNSUPPORTED, "method 'zfill'");
    try("{{ messages.append(1) }}", HD_STATUS_UNSUPPORTED, "method 'append'");
    try("{% include 'x' %}", HD_STATUS_UNSUPPORTED, "statement 'include' at byte 3");
    try("{{ 1 / 2 }}", HD_STATUS_UNSUPPORTED, "operator '/'");
    try("{{ 2 ** 2 }}", HD_STATUS_UNSUPPORTED, "operator '**'");
    try("{{ 1.5 }}", HD_STATUS_UNSUPPORTED, "form of the number '1'");
    try("{{ '\xC3\xA9' | upper }}", HD_STATUS_UNSUPPORTED, "changing the case of '?" "?'");
    try("{{ {[1]: 2} }}", HD_STATUS_PARSE, "a list cannot be a key, at byte 4");
    try("{{ 'a' | trim(x=1) }}", HD_STATUS_UNSUPPORTED, "argument 'x'");
    try("{{ foo.bar }}", HD_STATUS_PARSE, "'foo' is undefined, at byte 6");
    try("{{ messages[0].x.y }}", HD_STATUS_PARSE, "'x' is undefined, at byte 16");
    try("{{ 1 + 'a' }}", HD_STATUS_PARSE, "a number + a text cannot be worked out, at byte 5");
    try("{{ foo + 'a' }}", HD_STATUS_PARSE, "'foo' is undefined, at byte 7");
    try("{% if x %}", HD_STATUS_PARSE, "the template ends where endif should stand");
    try("{% if x %}{% endfor %}", HD_STATUS_PARSE, "'endfor' where endif should stand, at byte 13");
    try("{{ (1 }}", HD_STATUS_PARSE, "'}' where ) should stand");
    try("{{ 'abc", HD_STATUS_PARSE, "a text without an end at byte 3");
    try("x{# c", HD_STATUS_PARSE, "a comment without an end at byte 1");
    try("{{ 1", HD_STATUS_PARSE, "inside of a tag");
    try("{{ ? }}", HD_STATUS_PARSE, "unexpected '?' at byte 3");
    try("{{ 'a\\ud800' }}", HD_STATUS_PARSE, "no character at byte 5");
    try("{{ raise_exception('Only \"user\"\n\x1b[31m!') }}", HD_STATUS_INVALID_ARGUMENT, "it refuses the messages: Only \"user\"??[31m!");
    try("{{ 9223372036854775807 + 1 }}", HD_STATUS_LIMIT, "above 2^63 at byte 23");
    try("{{ 9223372036854775808 }}", HD_STATUS_LIMIT, "above 2^63 at byte 3");
    try("{{ (-9223372036854775807 - 1) // -1 }}", HD_STATUS_LIMIT, "above 2^63");
    try("{{ -9223372036854775807 - 1 }}", HD_OK, "");
    try("{{ (-9223372036854775807 - 1) | abs }}", HD_STATUS_PARSE, "no sign");
    hd_error error = { 0 };
    char *text;
    size_t bytes;
    hdl_chat_desc desc = { .source = { NULL, 5 } };
    assert_int_equal(hdl_chat_render(NULL, &desc, &text, &bytes, &error), HD_STATUS_NULL_POINTER);
    assert_int_equal(hdl_chat_render(NULL, NULL, &text, &bytes, NULL), HD_STATUS_NULL_POINTER);
    desc = (hdl_chat_desc){ .message_count = 1 };
    assert_int_equal(hdl_chat_render(NULL, &desc, &text, &bytes, NULL), HD_STATUS_NULL_POINTER);
    desc.messages = &(hdl_chat_message){ .role = { NULL, 1 } };
    assert_int_equal(hdl_chat_render(NULL, &desc, &text, &bytes, NULL), HD_STATUS_NULL_POINTER);
    desc.messages = &(hdl_chat_message){ .role = { NULL, 0 } };
    desc.source = hdl_text("[{{ messages[0].content }}{{ messages[0].content | length }}{{ messages[0].role == '' }}{{ "
                           "'' in messages[0].role }}]");
    assert_int_equal(hdl_chat_render(NULL, &desc, &text, &bytes, NULL), HD_OK);
    assert_string_equal(text, "[0TrueTrue]");
    hdl_chat_free(NULL, text, bytes);
}

/* `count` times the text, between a begin and an end. */
static char *repeated(const char *begin, const char *text, size_t count, const char *end) {
    const size_t length = strlen(text);
    char *all = calloc(1, strlen(begin) + length * count + strlen(end) + 1);
    strcpy(all, begin);
    for (size_t i = 0, at = strlen(begin); i < count; i++, at += length) memcpy(all + at, text, length);
    strcat(all, end);
    return all;
}
static void try_repeated(const char *begin, const char *text, size_t count, const char *end, hd_status wanted, const char *words) {
    char *all = repeated(begin, text, count, end);
    try(all, wanted, words);
    free(all);
}

static void bounds(void **state) {
    (void)state;
    try_repeated("{{ ", "(", 60000, "1", HD_STATUS_LIMIT, "nested more than 250 deep");
    try_repeated("{{ ", "not ", 60000, "1 }}", HD_STATUS_LIMIT, "nested");
    try_repeated("{{ ", "-", 60000, "1 }}", HD_STATUS_LIMIT, "nested");
    try_repeated("{{ ", "[", 60000, "", HD_STATUS_LIMIT, "nested");
    try_repeated("{{ a", ".a", 60000, " }}", HD_STATUS_LIMIT, "nested");
    try_repeated("{{ a", "|d", 60000, " }}", HD_STATUS_LIMIT, "nested");
    try_repeated("{{ 1", "+1", 60000, " }}", HD_STATUS_LIMIT, "nested");
    try_repeated("{{ 1", " if 1 else 1", 20000, " }}", HD_STATUS_LIMIT, "nested");
    try_repeated("", "{% if 1 %}", 20000, "", HD_STATUS_LIMIT, "nested");
    try_repeated("{% if 1 %}", "{% elif 1 %}", 20000, "", HD_STATUS_LIMIT, "nested");
    try_repeated("", "{% for x in [1] %}", 10000, "", HD_STATUS_LIMIT, "nested");
    try_repeated("", "x", HDL_MAX_TEMPLATE_BYTES + 1, "", HD_STATUS_LIMIT, "the limit is 262144");
    try_repeated("{{ [", "1,", 100000, "] | length }}", HD_OK, "");
    try_repeated("", "{{ 1 }}", 37000, "", HD_OK, "");
    try_repeated("", "{# x #}\n", 32000, "", HD_OK, "");
    try("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", HD_STATUS_LIMIT, "nested");
    try("{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}", HD_STATUS_LIMIT, "nested");
    try("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", HD_STATUS_LIMIT, "more than");
    try("{{ range(100001) }}", HD_STATUS_LIMIT, "100000 numbers");
    try("{{ range(9223372036854775807) }}", HD_STATUS_LIMIT, "range too large");
    try("{{ 'a' * 9223372036854775807 }}", HD_STATUS_LIMIT, "more than");
    try("{{ [1] * 9223372036854775807 }}", HD_STATUS_LIMIT, "more than");
    try("{{ [1, 2] * 9223372036854775807 }}", HD_STATUS_LIMIT, "more than");
    try("{{ ('0123456789abcdef' * 62500) ~ ('0123456789abcdef' * 250000) }}", HD_STATUS_LIMIT, "bytes of text");
    try("{% set ns = namespace(x='aa') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}", HD_STATUS_LIMIT, "more than");
    try("{% set ns = namespace(x=[1, 1]) %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}", HD_STATUS_LIMIT, "more than");
    try("{% set ns = namespace(x=[]) %}{% for i in range(1000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}", HD_STATUS_LIMIT, "nested");
    try("{% set ns = namespace(x=[]) %}{% for i in range(1000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x | tojson "
        "}}",
        HD_STATUS_LIMIT, "nested");
    try("{% set ns = namespace(x=[], y=[]) %}{% for i in range(1000) %}{% set ns.x = [ns.x] %}{% set ns.y = [ns.y] "
        "%}{% endfor %}{{ ns.x == ns.y }}",
        HD_STATUS_LIMIT, "nested");
    try("{% set ns = namespace() %}{% set ns.a = ns %}{{ ns == ns.a.a.a }}{{ [ns] }}", HD_STATUS_LIMIT, "nested");
    try("{% set a = 'a' * 1000000 %}{% for i in range(100000) %}{{ a.find('ab') }}{% endfor %}", HD_STATUS_LIMIT,
        "works on more than 128 MiB");
    try("{% set a = 'a' * 1000000 %}{{ a.find('a' * 500000 ~ 'b') }}", HD_STATUS_LIMIT, "works on more than 128 MiB");
    try("{% set a = 'a' * 3000000 %}{{ a.replace('a', 'bb') | length }}", HD_STATUS_LIMIT, "more than");
    try("{% set a = ' ' * 3000000 %}{% for i in range(20) %}{{ (a ~ 'x').strip() }}{{ a.split() }}{% endfor %}",
        HD_STATUS_LIMIT, "more than");
    try("{% set a = 'a' * 3000000 %}{% for i in range(1000) %}{{ a | length }}{% endfor %}", HD_STATUS_LIMIT, "works on more than 128 MiB");
    try("{% for i in range(100000) %}{{ [[0]] | tojson(indent=16) }}{% endfor %}", HD_STATUS_LIMIT, "more than");
}

/* Templates that look at far more bytes than they have: each byte is work. `s` has half a million letters. */
static void slow(void **state) {
    (void)state;
    static const char *const uses[] = {
        "{% set t = (s + 'b',) * 5000 %}{% set q = s + 'c' %}{% for i in n %}{% if q.startswith(t) %}{% endif %}{% "
        "endfor %}",
        "{% set t = ('b' + s,) * 5000 %}{% set q = 'c' + s %}{% for i in n %}{% if q.endswith(t) %}{% endif %}{% "
        "endfor %}",
        "{% set b = s[:250000] + 'b' %}{% set r = s.rsplit(b) %}",
        "{% set b = s[:250000] + 'b' %}{% set r = s.rfind(b) %}",
        "{% set b = s[:250000] + 'b' %}{% set r = s.split(b) %}{{ b in s }}{{ s.replace(b, '') }}",
        "{% set m = {s + '0': 0, s + '1': 1, s + '2': 2} %}{% set k = s + '2' %}{% for i in n %}{% set z = m[k] %}{% "
        "endfor %}",
        "{% set m = {s + '0': 0, s + '1': 1, s + '2': 2} %}{% set k = s + '2' %}{% for i in n %}{% set z = m.get(k) "
        "%}{{ k in m }}{% endfor %}",
        "{% set a = s + 'b' %}{% set b = s + 'b' %}{% for i in n %}{{ a == b }}{{ a in [s, b] }}{{ a < b }}{% endfor "
        "%}",
        "{% for i in n %}{{ s | length }}{% endfor %}",
        "{% for i in n %}{{ (s | list)[0] }}{% endfor %}",
        "{% for i in n %}{{ s[250000] }}{{ s[250000:250001] }}{% endfor %}",
        "{% for i in n %}{{ s.strip('a') }}{% endfor %}",
        "{% for i in n %}{{ ('ab' * 30000).strip('cdefghijklmnopqrstuvwxyzab') }}{% endfor %}",
        "{% for i in n %}{{ s.count('b') }}{{ s.removeprefix(s + 'b') }}{{ s.isdigit() }}{% endfor %}",
        "{% set d = '1' * 500000 %}{% for i in n %}{{ d.isdigit() }}{% endfor %}",
        "{% set d = '0' * 500000 %}{% for i in n %}{{ d | int(1) }}{% endfor %}",
        "{% for i in n %}{% set z = s | upper | lower | title %}{% endfor %}",
        "{% for i in n %}{% set z = s.splitlines() %}{% set z = s.split() %}{% set z = s | trim('b') | indent %}{% "
        "endfor %}",
        "{% set a = [s + 'b'] * 1000 %}{% set z = a | unique | list %}{% set z = a | sort %}{% set z = a | max %}",
        "{% set a = [s] * 1000 %}{{ a == [s ~ ''] * 1000 }}",
        "{% set a = [[s] * 1000] * 1000 %}{% set b = [[s ~ ''] * 1000] * 1000 %}{{ a == b }}{{ a < b }}",
        "{% set a = [[[[[[[[1] * 20] * 20] * 20] * 20] * 20] * 20] * 20] * 20 %}{{ a == a ~ '' }}{{ a }}",
        "{% set a = [[[[[[[[] * 20] * 20] * 20] * 20] * 20] * 20] * 20] * 20 %}{{ a | tojson }}{{ a | string | length "
        "}}",
        "{% for a in n %}{% for b in n if false %}{% endfor %}{% endfor %}",
        "{% for a in n %}{{ n | map('string') | select('none') | list }}{% endfor %}",
        "{% set m = namespace() %}{% for i in n %}{% set m.x = m.x | map('string') %}{% endfor %}{{ m.x | list }}",
        "{% macro f(x) %}{% for i in n %}{{ f(x) }}{% endfor %}{% endmacro %}{{ f(1) }}",
        "{% for i in [n] recursive %}{{ loop([i, i]) }}{% endfor %}",
    };
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++) {
        char text[1000];
        snprintf(text, sizeof text, "{%% set s = 'aaaaaaaaaaaaaaaa' * 32768 %%}{%% set n = range(60000) %%}%s", uses[i]);
        try(text, HD_STATUS_LIMIT, "chat template: ");
    }
    /* A name is looked at, too. */
    char *name = repeated("", "n", 60000, "");
    const size_t bytes = strlen(name);
    char *text = calloc(1, 4 * bytes + 200);
    sprintf(text, "{%% set %s1 = 1 %%}{%% for i in range(100000) %%}{%% set x = %s2 %%}{%% endfor %%}", name, name);
    try(text, HD_STATUS_LIMIT, "works on more than 128 MiB");
    sprintf(text, "{%% macro f(%s) %%}{%% endmacro %%}{%% for i in range(100000) %%}{%% set x = f(%s=1) %%}{%% endfor %%}", name, name);
    try(text, HD_STATUS_LIMIT, "works on more than 128 MiB");
    free(text);
    free(name);
}

static void own_templates(void **state) {
    (void)state;
    size_t count = 0;
    for (const char *name; (name = hdl_chat_template_name(count)) != NULL; count++) {
        const hdl_chat_message messages[] = {
            { .role = hdl_text("system"), .content = hdl_text("Be kind.") },
            { .role = hdl_text("user"), .content = hdl_text("Hi") },
            { .role = hdl_text("assistant"), .content = hdl_text("Hello") },
            { .role = hdl_text("user"), .content = hdl_text("Bye") },
        };
        const hdl_chat_desc desc = { .source = hdl_text(hdl_chat_template(name)),
                                     .messages = messages,
                                     .message_count = 4,
                                     .add_generation_prompt = true };
        char *text;
        size_t bytes;
        hd_error error = { 0 };
        if (hdl_chat_render(NULL, &desc, &text, &bytes, &error)) fail_msg("%s: %s", name, error.text);
        const char *system = strstr(text, "Be kind."), *hi = strstr(text, "Hi"), *answer = strstr(text, "Hello"),
                   *bye = strstr(text, "Bye");
        assert_true(system && system < hi && hi < answer && answer < bye);
        hdl_chat_free(NULL, text, bytes);
    }
    assert_int_equal(count, 8);
    assert_null(hdl_chat_template("chat"));
    assert_null(hdl_chat_template(NULL));
}

typedef struct purse { long grants, held; } purse;
static void *from_purse(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    purse *p = user;
    if (new_bytes && p->grants-- <= 0) return NULL;
    void *got = new_bytes ? realloc(old, new_bytes) : (free(old), NULL);
    p->held += (long)new_bytes - (long)old_bytes;
    return got;
}

static void memory_runs_out(void **state) {
    (void)state;
    const hdl_chat_desc desc = { .source = hdl_text("{% set x = 'a' * 200000 %}{{ x ~ x }}{{ x.split('a') | length }}"),
                                 .messages = &hello,
                                 .message_count = 1 };
    bool done = false;
    for (long grants = 0; !done; grants++) {
        assert_true(grants < 100);
        purse p = { grants, 0 };
        hd_allocator memory = { from_purse, &p };
        hd_error error = { 0 };
        char *text;
        size_t bytes;
        const hd_status status = hdl_chat_render(&memory, &desc, &text, &bytes, &error);
        assert_true(status == HD_OK || (status == HD_STATUS_OUT_OF_HOST_MEMORY && strstr(error.text, "no memory") && !text));
        done = status == HD_OK;
        if (text) hdl_chat_free(&memory, text, bytes);
        assert_int_equal(p.held, 0);
    }
}

int main(int count, char **words) {
    if (count == 2) { /* a file of tools/fixtures/chat_fixture.py */
        const tally all = compare(read_file(words[1]), true);
        printf("%zu the same, %zu refused, %zu different\n", all.same, all.refused, all.different);
        return all.different > 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference), cmocka_unit_test(by_chance), cmocka_unit_test(errors),          cmocka_unit_test(bounds),
        cmocka_unit_test(slow), cmocka_unit_test(own_templates), cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
