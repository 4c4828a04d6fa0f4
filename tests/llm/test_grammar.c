/* Grammars: what they allow, beside a twin that tries every place; ends, dead ends, characters cut by tokens, refusals, limits. */
#include "form_twin.h"
#include "llm/sample.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const char *const words[] = { "ab",
                                     "ba",
                                     "aa",
                                     "aab",
                                     "abc",
                                     "\xC3\xA9",
                                     "b\xC3\xA9",
                                     "\xC3\xA9"
                                     "a",
                                     "\xE2\x82",
                                     "\xAC"
                                     "b",
                                     "a\xE2",
                                     "\xF0\x9F\x98\x80",
                                     "\xF0\x9F",
                                     "true",
                                     "false",
                                     "\"a\"",
                                     "\", \"",
                                     ": ",
                                     "{\"",
                                     "}}",
                                     "]]",
                                     "12" };
enum { WORDS = sizeof words / sizeof words[0] };

static uint64_t random_state;
static uint32_t below(uint32_t limit) { return (uint32_t)(hdl_random(11, random_state++) % limit); }

/* A grammar with all that it needs. */
typedef struct form {
    hdl_grammar   rules;
    hdl_automaton automaton;
    hdl_matcher  *matcher;
} form;

static hd_status form_make(form *f, const twin_vocabulary *v, const char *text, hd_error *error) {
    *f = (form){ 0 };
    hd_status status = hdl_gbnf_read(NULL, hdl_text(text), &f->rules, error);
    if (!status) status = hdl_automaton_make(&f->rules, v->trie, &f->automaton, error);
    if (!status) status = hdl_matcher_create(&hdl_default_allocator, &f->automaton, v->trie, v->tokenizer, &f->matcher, error);
    return status;
}
static void form_free(form *f) {
    hdl_matcher_destroy(f->matcher);
    hdl_automaton_free(&f->automaton);
    hdl_grammar_free(&f->rules);
}

static uint32_t too_much; /* grammars of which too much was possible at once */

/* Goes on by the bytes of a text; false where one is not allowed. */
static bool go(form *f, const char *text, size_t count) {
    hdl_matcher_restart(f->matcher);
    for (size_t i = 0; i < count; i++) {
        const hd_status status = hdl_matcher_accept(f->matcher, (uint8_t)text[i], NULL);
        too_much += status == HD_STATUS_LIMIT;
        if (status) return false;
    }
    return true;
}

/* The mask, each bit of which must be what is said of its token alone. Returns how many are set. */
static uint32_t check_mask(form *f, const twin_vocabulary *v, const uint32_t **out_bits) {
    uint32_t set = 0;
    static uint32_t kept[TWIN_TOKENS / 32 + 1];
    const uint32_t *bits;
    const hd_status status = hdl_matcher_mask(f->matcher, &bits, NULL);
    if (status == HD_STATUS_LIMIT) return too_much++, UINT32_MAX;
    assert_int_equal(status, HD_OK);
    memcpy(kept, bits, (v->count + 31) / 32 * sizeof *bits);
    for (uint32_t i = 0; i < v->count; i++) {
        bool allowed;
        assert_int_equal(hdl_matcher_allows(f->matcher, (int32_t)i, &allowed, NULL), HD_OK);
        assert_int_equal(allowed, kept[i / 32] >> i % 32 & 1);
        set += allowed;
    }
    *out_bits = kept;
    return set;
}

/* Says tokens by chance until the end, which must come; those that close a thing more often the longer it goes on. */
static size_t say(form *f, const twin_vocabulary *v, char *out, size_t room) {
    size_t count = 0;
    hdl_matcher_restart(f->matcher);
    for (uint32_t said = 0;; said++) {
        const uint32_t *bits;
        const uint32_t set = check_mask(f, v, &bits);
        if (set == UINT32_MAX) return SIZE_MAX;
        const bool complete = hdl_matcher_complete(f->matcher);
        assert_true(set || complete); /* else it is a dead end */
        if (complete && (!set || below(6) == 0 || count + 16 > room)) return count;
        if (count + 16 > room) return SIZE_MAX;
        uint32_t pick = below(set), token = 0;
        for (;; token++)
            if (bits[token / 32] >> token % 32 & 1 && pick-- == 0) break;
        const hdl_span text = hdl_token_text(v->tokenizer, (int32_t)token);
        const hd_status status = hdl_matcher_accept(f->matcher, (int32_t)token, NULL);
        if (status == HD_STATUS_LIMIT) return too_much++, SIZE_MAX;
        assert_int_equal(status, HD_OK);
        memcpy(out + count, text.bytes, text.count);
        count += text.count;
    }
}

/* ---- rules by chance ---- */

static size_t some_rule(char *out, size_t at, uint32_t rules, uint32_t depth) {
    static const char *const parts[] = { "\"a\"", "\"b\"", "\"ab\"",          "[ab]", "[^a]", "\"\\u00e9\"",
                                         "\"c\"", "\"\"",  "[^\\x00-\\uffff]" };
    const uint32_t choices = 1 + below(3);
    for (uint32_t c = 0; c < choices; c++) {
        if (c) at += (size_t)sprintf(out + at, " | ");
        for (uint32_t i = 0, items = 1 + below(3); i < items; i++) {
            const uint32_t what = below(10);
            if (what < 6 || (what < 8 && depth == 0)) at += (size_t)sprintf(out + at, "%s", parts[below(9)]);
            else if (what < 8) {
                at += (size_t)sprintf(out + at, "(");
                at = some_rule(out, at, rules, depth - 1);
                at += (size_t)sprintf(out + at, ")");
            } else if (rules) at += (size_t)sprintf(out + at, "r%u", below(rules));
            else at += (size_t)sprintf(out + at, "\"b\"");
            static const char *const marks[] = { "", "", "", "", "*", "+", "?", "{2}", "{1,}", "{0,2}", "{1,3}" };
            at += (size_t)sprintf(out + at, "%s ", marks[below(11)]);
        }
    }
    return at;
}

/* All texts of the alphabet up to a length: allowed to the end where they have the form, and to a place only where a longer
 * one has it. */
static void every_text(form *f) {
    static const char *const letters[] = { "a", "b", "c", "\xC3\xA9" };
    enum { MOST = 4 };
    bool prefix[341] = { false };
    for (int pass = 0; pass < 2; pass++) /* first what has the form, then what was allowed */
        for (uint32_t length = 0, base = 0, number = 1; length <= MOST; base += number, number *= 4, length++)
            for (uint32_t i = 0; i < number; i++) {
                char text[2 * MOST + 1];
                size_t count = 0;
                uint32_t way[MOST + 1] = { 0 };
                for (uint32_t k = 0, rest = i, at = 0, step = 1; k < length; k++, rest /= 4) {
                    at += step;
                    step *= 4;
                    memcpy(text + count, letters[rest % 4], strlen(letters[rest % 4]));
                    count += strlen(letters[rest % 4]);
                    way[k + 1] = at + (i & ((1u << (2 * (k + 1))) - 1)); /* the number of the text so far */
                }
                const bool has = twin_has_form(&f->rules, text, count);
                const bool got = go(f, text, count);
                if (too_much) return;
                if (pass == 0) {
                    if (has != (got && hdl_matcher_complete(f->matcher))) fail_msg("%.*s: %d %d", (int)count, text, has, got);
                    for (uint32_t k = 0; k <= length && has; k++) prefix[way[k]] = true;
                } else if (prefix[way[length]]) {
                    assert_true(got);
                }
            }
}

static void beside_the_twin(void **state) {
    (void)state;
    twin_vocabulary v = twin_vocabulary_make(words, WORDS), poor = twin_poor_vocabulary(words, WORDS);
    uint32_t taken = 0, left = 0, never = 0, ended = 0, ambiguous = 0;
    for (uint32_t round = 0; round < 400; round++) {
        char text[8192], answer[TWIN_BYTES];
        size_t at = 0;
        const uint32_t rules = below(4);
        for (uint32_t i = 0; i < rules; i++) {
            at += (size_t)sprintf(text + at, "r%u ::= ", i);
            at = some_rule(text, at, rules, 2);
            at += (size_t)sprintf(text + at, "\n");
        }
        at += (size_t)sprintf(text + at, "root ::= ");
        at = some_rule(text, at, rules, 2);
        text[at] = 0;
        const twin_vocabulary *vocabulary = round % 4 == 3 ? &poor : &v;
        form f;
        hd_error error = { 0 };
        const hd_status status = form_make(&f, vocabulary, text, &error);
        if (status) {
            assert_true(status == HD_STATUS_UNSUPPORTED || status == HD_STATUS_LIMIT);
            *(status == HD_STATUS_LIMIT ? &ambiguous : strstr(error.text, "left recursion") ? &left : &never) += 1;
            form_free(&f);
            continue;
        }
        taken++;
        too_much = 0;
        if (vocabulary == &v) every_text(&f);
        for (uint32_t i = 0; i < 6 && !too_much; i++) {
            const size_t count = say(&f, vocabulary, answer, sizeof answer);
            if (count == SIZE_MAX) continue; /* too long for the twin, and alive */
            ended++;
            if (!twin_has_form(&f.rules, answer, count)) fail_msg("%s\nis not the form of %.*s", text, (int)count, answer);
        }
        ambiguous += too_much > 0;
        form_free(&f);
    }
    assert_true(taken > 200 && left > 50 && never > 0 && ended > 1000 && ambiguous < taken / 20);
    twin_vocabulary_free(&v);
    twin_vocabulary_free(&poor);
}

/* ---- what is known ---- */

static bool has_form(const twin_vocabulary *v, const char *grammar, const char *text) {
    form f;
    hd_error error = { 0 };
    if (form_make(&f, v, grammar, &error)) fail_msg("%s", error.text);
    const bool has = go(&f, text, strlen(text)) && hdl_matcher_complete(f.matcher);
    form_free(&f);
    return has;
}

static void known_texts(void **state) {
    (void)state;
    twin_vocabulary v = twin_vocabulary_make(words, WORDS);
    static const char json[] =
        "root   ::= object\n"
        "value  ::= object | array | string | number | (\"true\" | \"false\" | \"null\") ws\n"
        "object ::=\n  \"{\" ws (\n            string \":\" ws value\n    (\",\" ws string \":\" ws value)*\n  )? \"}\" ws\n"
        "array  ::= \"[\" ws ( value (\",\" ws value)* )? \"]\" ws # a remark\n"
        "string ::= \"\\\"\" ( [^\"\\\\\\x7F\\x00-\\x1F] | \"\\\\\" ([\"\\\\bfnrt] | \"u\" [0-9a-fA-F]{4}) )* \"\\\"\" ws\n"
        "number ::= (\"-\"? ([0-9] | [1-9] [0-9]{0,15})) (\".\" [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws\n"
        "ws ::= | \" \" | \"\\n\" [ \\t]{0,20}\n";
    assert_true(has_form(&v, json, "{\"a\": [1, 2.5e-3, {}], \"\\u00e9\\n\": \"\xE2\x82\xAC\"}"));
    assert_true(has_form(&v, json, "{\n  \"a\": null}"));
    assert_false(has_form(&v, json, "{\"a\": [1, 2.5e-3, {}]"));
    assert_false(has_form(&v, json, "{\"a\": 01}"));
    assert_false(has_form(&v, json, "{\"a\nb\": 1}"));
    assert_false(has_form(&v, json, "[1]"));
    /* calls as deep as they may go, and a tail that takes no room however long it is */
    static const char nested[] = "root ::= \"(\" root \")\" | \"x\"", tail[] = "root ::= \"a\" root | \"b\"";
    char deep[2 * HDL_MAX_STACK + 4];
    for (uint32_t depth = HDL_MAX_STACK - 2; depth <= HDL_MAX_STACK + 1; depth++) {
        memset(deep, '(', depth);
        deep[depth] = 'x';
        memset(deep + depth + 1, ')', depth);
        deep[2 * depth + 1] = 0;
        assert_int_equal(has_form(&v, nested, deep), depth <= HDL_MAX_STACK);
    }
    memset(deep, 'a', sizeof deep);
    deep[sizeof deep - 2] = 'b';
    deep[sizeof deep - 1] = 0;
    assert_true(has_form(&v, tail, deep));
    twin_vocabulary_free(&v);
}

/* Tokens that end inside of a character, where its end can be said and where it cannot. */
static void cut_characters(void **state) {
    (void)state;
    twin_vocabulary v = twin_vocabulary_make(words, WORDS), poor = twin_poor_vocabulary(words, WORDS);
    assert_true(v.trie->spells_all && v.trie->ends_inside && !poor.trie->spells_all && !poor.trie->ends_inside);
    const struct { const char *grammar, *token; bool with_bytes, without; } cases[] = {
        { "root ::= \"\\u20ac\"", "\xE2\x82", true, false },     /* of a character that cannot be said otherwise */
        { "root ::= [\\u2000-\\u2fff]", "\xE2\x82", true, false },
        { "root ::= \"\\u00e9\"", "\xC3\xA9", true, true },      /* a token by itself */
        { "root ::= [^x]", "\xF0\x9F\x98\x80", true, true },
        { "root ::= [^x] | \"a\\u20ac\"", "a\xE2", true, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int which = 0; which < 2; which++) {
            const twin_vocabulary *vocabulary = which ? &poor : &v;
            form f;
            hd_error error = { 0 };
            bool allowed = false;
            const hd_status status = form_make(&f, vocabulary, cases[i].grammar, &error);
            for (uint32_t t = 0; t < vocabulary->count && !status; t++)
                if (hdl_same(hdl_token_text(vocabulary->tokenizer, (int32_t)t), hdl_text(cases[i].token)))
                    assert_int_equal(hdl_matcher_allows(f.matcher, (int32_t)t, &allowed, NULL), HD_OK);
            assert_int_equal(allowed, which ? cases[i].without : cases[i].with_bytes);
            form_free(&f);
        }
    twin_vocabulary_free(&v);
    twin_vocabulary_free(&poor);
}

/* ---- refusals and limits ---- */

static void refusals(void **state) {
    (void)state;
    static const struct { const char *text; hd_status status; const char *words; } cases[] = {
        { "", HD_STATUS_NAME_NOT_FOUND, "root" },
        { "a ::= \"x\"", HD_STATUS_NAME_NOT_FOUND, "root" },
        { "root ::= b", HD_STATUS_NAME_NOT_FOUND, "'b'" },
        { "root ::= \"x", HD_STATUS_PARSE, "line 1, column 12" },
        { "root ::= \"x\"\nroot ::= \"y\"", HD_STATUS_PARSE, "line 2" },
        { "root ::= (\"x\"", HD_STATUS_PARSE, "not closed" },
        { "root ::= \"x\")", HD_STATUS_PARSE, "not opened" },
        { "root = \"x\"", HD_STATUS_PARSE, "::=" },
        { "root ::= [z-a]", HD_STATUS_PARSE, "range" },
        { "root ::= [a", HD_STATUS_PARSE, "ends inside" },
        { "root ::= \"\\q\"", HD_STATUS_PARSE, "escape" },
        { "root ::= \"\\ud800\"", HD_STATUS_PARSE, "no character" },
        { "root ::= \"\\U00110000\"", HD_STATUS_PARSE, "no character" },
        { "root ::= \"\xC3\"", HD_STATUS_PARSE, "UTF-8" },
        { "root ::= \"x\"{3,2}", HD_STATUS_PARSE, "more repetitions" },
        { "root ::= \"x\"{99999}", HD_STATUS_LIMIT, "repetitions" },
        { "root ::= *", HD_STATUS_PARSE, "here may stand" },
        { "root ::= <[1000]>", HD_STATUS_UNSUPPORTED, "tokens" },
        { "root ::= \"x\"*********", HD_STATUS_LIMIT, "repetition" },
        { "root ::= root \"x\" | \"y\"", HD_STATUS_UNSUPPORTED, "rule 'root' can begin with itself" },
        { "root ::= a\na ::= b? a \"x\" | \"y\"\nb ::= \"b\"", HD_STATUS_UNSUPPORTED, "rule 'a' can begin" },
        { "root ::= a \"x\"\na ::= b* c\nb ::= \"b\"\nc ::= (a | \"\") \"c\"", HD_STATUS_UNSUPPORTED, "can begin with itself" },
        { "root ::= \"x\" root", HD_STATUS_UNSUPPORTED, "ever ends" },
        { "root ::= \"x\" | []", HD_OK, "" },
        { "root ::= []", HD_STATUS_UNSUPPORTED, "ever ends" },
        { "root ::= (ws ws)* \"x\" \nws ::= \" \"* | root2\nroot2 ::= \"y\" root2 | \"\"", HD_OK, "" },
        { "root ::= (((((\"ab\"{100}){100}){100}){100}){100})", HD_STATUS_LIMIT, "large" },
        { "root ::= ((((\"\"{9999}){9999}){9999}){9999}) \"x\"", HD_STATUS_LIMIT, "large" },
        { "root ::= [ab]* \"a\" [ab]{20}", HD_STATUS_LIMIT, "states" },
    };
    twin_vocabulary v = twin_vocabulary_make(words, WORDS);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        form f;
        hd_error error = { 0 };
        const hd_status status = form_make(&f, &v, cases[i].text, &error);
        if (status != cases[i].status || !strstr(error.text, cases[i].words))
            fail_msg("%s: %d %s", cases[i].text, status, error.text);
        form_free(&f);
    }
    char text[400];
    memset(text, '(', 200);
    memcpy(text, "root ::=", 8);
    text[200] = 0;
    form f;
    assert_int_equal(form_make(&f, &v, text, NULL), HD_STATUS_LIMIT);
    form_free(&f);
    /* too much at once: told, and not endured */
    hd_error error = { 0 };
    assert_int_equal(form_make(&f, &v,
                               "root ::= a \"x\"\na ::= \"(\" b \"1\" | \"(\" c \"2\" | \"y\"\nb ::= \"\" a \"\" | \"(\" a "
                               "\"3\"\nc ::= a | \"(\" a \"4\"",
                               &error),
                     HD_OK);
    hd_status status = HD_OK;
    for (int i = 0; i < 40 && !status; i++) status = hdl_matcher_accept(f.matcher, '(', NULL);
    assert_int_equal(status, HD_STATUS_LIMIT);
    form_free(&f);
    twin_vocabulary_free(&v);
}

/* Few steps are taken for a state: what has too many states is refused for these, and what has few enough is taken. */
static void few_steps(void **state) {
    (void)state;
    enum { DOTS = 65, CHOICES = 12 };
    char many[200] = "root ::= [\" \"w {:(-(c0=oicse12\":^\"\\x00%Xx1i]{0,9} \"\\\"\"", enough[400] = "root ::= \"\"";
    memset(many + strlen(many), '.', DOTS);
    for (uint32_t i = 0; i < CHOICES; i++) sprintf(enough + strlen(enough), " | .{%u} \"%c\" .*", i, (char)('a' + i));
    twin_vocabulary v = twin_vocabulary_make(words, WORDS), poor = twin_poor_vocabulary(words, WORDS);
    const twin_vocabulary *const vocabularies[] = { &v, &poor };
    for (int i = 0; i < 2; i++) {
        form f;
        assert_int_equal(form_make(&f, vocabularies[i], many, NULL), HD_STATUS_LIMIT);
        assert_int_equal(f.automaton.state_count, HDL_MAX_STATES);
        form_free(&f);
        assert_int_equal(form_make(&f, vocabularies[i], enough, NULL), HD_OK);
        assert_true(f.automaton.state_count > HDL_MAX_STATES / 2);
        form_free(&f);
    }
    twin_vocabulary_free(&v);
    twin_vocabulary_free(&poor);
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
    twin_vocabulary v = twin_poor_vocabulary(words, WORDS);
    hd_status status = HD_STATUS_OUT_OF_HOST_MEMORY;
    size_t count = 0;
    for (; status; count++) {
        hd_error error = { 0 };
        hdl_grammar rules;
        hdl_automaton automaton = { 0 };
        hdl_matcher *matcher = NULL;
        hdl_trie *trie = NULL;
        const uint32_t *bits;
        allocations_left = count;
        status = hdl_gbnf_read(&allocator, hdl_text("root ::= a (\",\" a)*\na ::= [0-9]+ | \"(\" root \")\" | \"\\u00e9\""),
                               &rules, &error);
        if (!status) status = hdl_trie_create(&allocator, v.tokenizer, v.count, NULL, 0, &trie, &error);
        if (!status) status = hdl_automaton_make(&rules, trie, &automaton, &error);
        if (!status) status = hdl_matcher_create(&allocator, &automaton, trie, v.tokenizer, &matcher, &error);
        if (!status) status = hdl_matcher_mask(matcher, &bits, &error);
        assert_true(status == HD_OK || (status == HD_STATUS_OUT_OF_HOST_MEMORY && error.text[0]));
        hdl_matcher_destroy(matcher);
        hdl_automaton_free(&automaton);
        hdl_trie_destroy(trie);
        hdl_grammar_free(&rules);
    }
    assert_true(count > 20);
    twin_vocabulary_free(&v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beside_the_twin), cmocka_unit_test(known_texts), cmocka_unit_test(cut_characters),
        cmocka_unit_test(refusals), cmocka_unit_test(few_steps), cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
