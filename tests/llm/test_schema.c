/* JSON Schema as a form: what is taken and what is not, what is refused and by which name. With --answers: reads schemas, a
 * line each, and prints answers drawn by chance in each form, or why it is refused: schemas.py judges them. */
#include "form_twin.h"
#include "llm/form/schema.h"
#include "llm/sample.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const char *const words[] = { "{\"",  "\": ", "\": \"", "\", \"",   "\"}",      "\"]",
                                     "}}",   ", ",   "true",   "false",    "null",     "12",
                                     "0.5",  "ab",   "abc",    "\xC3\xA9", "\xE2\x82", "\xF0\x9F\x98\x80",
                                     "\n  ", "--",   "name",   "value" };

/* A schema with all that it becomes. */
typedef struct form {
    hdl_rules_text text;
    hdl_grammar    rules;
    hdl_automaton  automaton;
    hdl_matcher   *matcher;
} form;

static hd_status form_make(form *f, const hd_allocator *allocator, const twin_vocabulary *v, hdl_span schema, hd_error *error) {
    *f = (form){ 0 };
    hd_status status = hdl_schema_rules(allocator, schema, &f->text, error);
    if (!status) status = hdl_gbnf_read(allocator, (hdl_span){ (const uint8_t *)f->text.text, f->text.count }, &f->rules, error);
    if (!status) status = hdl_automaton_make(&f->rules, v->trie, &f->automaton, error);
    if (!status) status = hdl_matcher_create(allocator, &f->automaton, v->trie, v->tokenizer, &f->matcher, error);
    return status;
}
static void form_free(form *f, const hd_allocator *allocator) {
    hdl_matcher_destroy(f->matcher);
    hdl_automaton_free(&f->automaton);
    hdl_grammar_free(&f->rules);
    hdl_free(allocator, f->text.text, f->text.room);
}

static bool takes(const char *schema, const char *json) {
    twin_vocabulary v = twin_vocabulary_make(words, sizeof words / sizeof words[0]);
    form f;
    hd_error error = { 0 };
    if (form_make(&f, &hdl_default_allocator, &v, hdl_text(schema), &error)) fail_msg("%s: %s", schema, error.text);
    bool ok = true;
    for (const char *at = json; *at && ok; at++) ok = hdl_matcher_accept(f.matcher, (uint8_t)*at, NULL) == HD_OK;
    ok = ok && hdl_matcher_complete(f.matcher);
    form_free(&f, &hdl_default_allocator);
    twin_vocabulary_free(&v);
    return ok;
}

static void known_answers(void **state) {
    (void)state;
    static const struct { const char *schema, *taken, *not_taken;
    } cases[] = {
        { "true", "{\"a\": [1, -2.5e3, null, \"x\\u00e9\"]}", "{a: 1}" },
        { "{}", "[]", "[1,]" },
        { "{\"type\":\"null\"}", "null", "0" },
        { "{\"type\":\"boolean\"}", "true", "null" },
        { "{\"type\":\"number\"}", "-0.25", "01" },
        { "{\"type\":[\"string\",\"null\"]}", "null", "1" },
        { "{\"type\":\"integer\",\"minimum\":-5,\"maximum\":123}", "123", "124" },
        { "{\"type\":\"integer\",\"minimum\":-5,\"maximum\":123}", "-5", "-6" },
        { "{\"type\":\"integer\",\"exclusiveMinimum\":9,\"exclusiveMaximum\":11}", "10", "9" },
        { "{\"type\":\"integer\",\"minimum\":0.5,\"maximum\":1e2}", "100", "0" },
        { "{\"type\":\"integer\",\"minimum\":-0.5}", "0", "-1" },
        { "{\"type\":\"integer\",\"maximum\":-8}", "-8", "-7" },
        { "{\"type\":\"number\",\"minimum\":0,\"maximum\":1}", "0.75", "1.01" },
        { "{\"type\":\"number\",\"minimum\":0,\"maximum\":1}", "1.000", "-0.5" },
        { "{\"type\":\"number\",\"exclusiveMinimum\":0,\"exclusiveMaximum\":1}", "0.0000001", "0.000" },
        { "{\"type\":\"number\",\"exclusiveMinimum\":0,\"exclusiveMaximum\":1}", "0.99999", "1" },
        { "{\"type\":\"number\",\"minimum\":-2.5}", "-2.5", "-2.51" },
        { "{\"type\":\"number\",\"maximum\":12.25}", "-99999", "12.2501" },
        { "{\"minimum\":0.5}", "10.5", "0" },
        { "{\"minLength\":2,\"maxLength\":3}", "\"a\xC3\xA9\\n\"", "\"a\"" },
        { "{\"type\":\"string\",\"pattern\":\"^a[bc]+\\\\.d{2,3}$\"}", "\"abcb.ddd\"", "\"abc.d\"" },
        { "{\"type\":\"string\",\"pattern\":\"b|^c\"}", "\"abc\"", "\"ac\"" },
        { "{\"type\":\"string\",\"pattern\":\"^\\\"\\\\\\\\\\\\n$\"}", "\"\\\"\\\\\\n\"", "\"n\"" },
        { "{\"type\":\"string\",\"pattern\":\"^(?:\\\\d\\\\w|[^\\\\s]{3})$\"}", "\"1_\"", "\"  x\"" },
        { "{\"format\":\"date\"}", "\"2024-02-28\"", "\"2024-13-01\"" },
        { "{\"const\":{\"a\":[1,\"\\n\"]}}", "{\"a\": [1, \"\\u000a\"]}", "{\"a\": [2]}" },
        { "{\"enum\":[1,\"x\",null],\"type\":[\"string\",\"null\"]}", "\"x\"", "1" },
        { "{\"items\":{\"type\":\"integer\"},\"minItems\":1,\"maxItems\":2}", "[1, 2]", "[]" },
        { "{\"type\":\"array\",\"prefixItems\":[{\"const\":1},{\"const\":2}],\"items\":{\"const\":3},\"minItems\":1}",
          "[1,2,3,3]", "[]" },
        { "{\"type\":\"array\",\"prefixItems\":[{\"const\":1},{\"const\":2}],\"items\":false}", "[1]", "[1,2,3]" },
        { "{\"type\":\"array\",\"maxItems\":0}", "[]", "[1]" },
        { "{\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2}},\"required\":[\"b\"]}", "{\"a\": 1, \"b\": 2}",
          "{\"a\": 1}" },
        { "{\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2}}}", "{}", "{\"c\": 1}" },
        { "{\"properties\":{\"ab\":true,\"ac\":true,\"a\":true},\"additionalProperties\":{\"const\":0}}",
          "{\"ab\":1,\"a\":[],\"ad\":0,\"\":0,\"abc\":0}", "{\"ad\":1}" },
        { "{\"properties\":{\"ab\":true},\"additionalProperties\":{\"const\":0}}", "{\"a\":0}", "{\"\\u0061b\":0}" },
        { "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}}", "{\"x\": 1, \"y\": 2}", "{\"x\": \"1\"}" },
        { "{\"type\":\"object\",\"required\":[\"x\"]}", "{\"x\": [], \"z\": 1}", "{\"z\": 1}" },
        { "{\"$defs\":{\"n\":{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\"},\"n\":{\"$ref\":\"#/$defs/"
          "n\"}},\"required\":[\"v\"]}},\"$ref\":\"#/$defs/n\"}",
          "{\"v\":1,\"n\":{\"v\":2}}", "{\"v\":1,\"n\":{}}" },
        { "{\"anyOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}],\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2}}"
          "}",
          "{\"b\":2}", "{}" },
        { "{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}", "7", "null" },
        { "{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"k\":{\"const\":\"a\"}},\"required\":[\"k\"]},"
          "{\"type\":\"object\",\"properties\":{\"k\":{\"const\":\"b\"},\"x\":{\"type\":\"null\"}},\"required\":[\"k\",\"x\"]}]"
          "}",
          "{\"k\":\"b\",\"x\":null}", "{\"k\":\"b\"}" },
        { "{\"allOf\":[{\"properties\":{\"a\":{\"type\":\"integer\"}}},{\"properties\":{\"a\":{\"minimum\":5},\"b\":true},"
          "\"required\":[\"a\"]}]}",
          "{\"a\": 5, \"b\": 0}", "{\"a\": 4}" },
        { "{\"allOf\":[{\"properties\":{\"a\":true},\"additionalProperties\":false},{\"properties\":{\"b\":true}}]}",
          "{\"a\": 1}", "{\"b\": 1}" },
        { "{\"$defs\":{\"s\":{\"type\":\"string\",\"maxLength\":5}},\"$ref\":\"#/$defs/s\",\"minLength\":3}", "\"abc\"",
          "\"ab\"" },
        { "{\"$defs\":{\"a/b~\":{\"const\":1}},\"$ref\":\"#/$defs/a~1b~0\"}", "1", "2" },
        { "{\"$defs\":{\"t\":{\"properties\":{\"l\":{\"allOf\":[{\"$ref\":\"#/$defs/"
          "t\"},{\"properties\":{\"k\":{\"const\":1}}}]}}}},\"$ref\":\"#/$defs/t\"}",
          "{\"l\":{\"l\":{\"k\":1}, \"k\":1}}", "{\"k\":1}" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (!takes(cases[i].schema, cases[i].taken)) fail_msg("%s does not take %s", cases[i].schema, cases[i].taken);
        if (takes(cases[i].schema, cases[i].not_taken)) fail_msg("%s takes %s", cases[i].schema, cases[i].not_taken);
    }
}

static uint64_t draws;
static uint32_t below(uint32_t limit) { return (uint32_t)(hdl_random(23, draws++) % limit); }

/* A decimal of up to three places, near zero more often than not. */
static double decimal_by_chance(int *out_places) {
    static const double units[] = { 1, 10, 100, 1000 };
    *out_places = (int)below(4);
    return ((double)below(4000) - 2000) / units[*out_places];
}

/* Random bounds, and random decimals beside them: taken where C's doubles say that they lie within. */
static void numbers_keep_to_their_bounds(void **state) {
    (void)state;
    int taken = 0;
    for (int i = 0; i < 400; i++) {
        int places;
        const double a = decimal_by_chance(&places), b = decimal_by_chance(&places), low = a < b ? a : b, high = a < b ? b : a;
        const bool has_low = below(5) > 0, has_high = below(5) > 0, low_open = below(2), high_open = below(2);
        if (low >= high) continue;
        char schema[256], low_text[64] = "", high_text[64] = "";
        if (has_low) snprintf(low_text, sizeof low_text, ",\"%s\":%.3f", low_open ? "exclusiveMinimum" : "minimum", low);
        if (has_high) snprintf(high_text, sizeof high_text, ",\"%s\":%.3f", high_open ? "exclusiveMaximum" : "maximum", high);
        snprintf(schema, sizeof schema, "{\"type\":\"number\"%s%s}", low_text, high_text);
        for (int k = 0; k < 8; k++) {
            const double x = k == 0 ? low : k == 1 ? high : k == 2 ? low + 0.001 : decimal_by_chance(&places);
            char text[32];
            snprintf(text, sizeof text, "%.*f", k < 3 ? 3 : places, x);
            const double read = strtod(text, NULL);
            const bool within = (!has_low || (low_open ? read > low : read >= low)) &&
                                (!has_high || (high_open ? read < high : read <= high));
            if (strcmp(text, "-0") == 0 || strncmp(text, "-0.000", 6) == 0) continue; /* JSON has it, and few expect it */
            if (takes(schema, text) != within) fail_msg("%s %s %s", schema, within ? "does not take" : "takes", text);
            taken += within;
        }
    }
    assert_true(taken > 400);
}

static void refusals(void **state) {
    (void)state;
    static const struct { const char *schema; hd_status status; const char *words;
    } cases[] = {
        { "{", HD_STATUS_PARSE, "line 1, column 2" },
        { "{\"a\":1} 2", HD_STATUS_PARSE, "behind the value" },
        { "[\"\\ud800\"]", HD_STATUS_PARSE, "escape" },
        { "3", HD_STATUS_UNSUPPORTED, "a schema is an object" },
        { "{\"not\":{}}", HD_STATUS_UNSUPPORTED, "'not'" },
        { "{\"type\":\"object\",\"patternProperties\":{}}", HD_STATUS_UNSUPPORTED, "'patternProperties'" },
        { "{\"uniqueItems\":true}", HD_STATUS_UNSUPPORTED, "'uniqueItems'" },
        { "{\"if\":{}}", HD_STATUS_UNSUPPORTED, "'if'" },
        { "{\"properties\":{\"a\":{\"multipleOf\":2}}}", HD_STATUS_UNSUPPORTED, "'multipleOf'" },
        { "{\"allOf\":[{\"contains\":{}}]}", HD_STATUS_UNSUPPORTED, "'contains'" },
        { "{\"type\":\"text\"}", HD_STATUS_UNSUPPORTED, "'text'" },
        { "{\"type\":\"number\",\"minimum\":1e16}", HD_STATUS_UNSUPPORTED, "number" },
        { "{\"minLength\":-1}", HD_STATUS_UNSUPPORTED, "minLength" },
        { "{\"minLength\":99999}", HD_STATUS_LIMIT, "repetitions" },
        { "{\"enum\":[1],\"minimum\":0}", HD_STATUS_UNSUPPORTED, "'minimum'" },
        { "{\"items\":[{}]}", HD_STATUS_UNSUPPORTED, "prefixItems" },
        { "{\"format\":\"email\"}", HD_STATUS_UNSUPPORTED, "'email'" },
        { "{\"pattern\":\"a\",\"minLength\":1}", HD_STATUS_UNSUPPORTED, "lengths beside pattern" },
        { "{\"pattern\":\"(?=a)b\"}", HD_STATUS_UNSUPPORTED, "ahead" },
        { "{\"pattern\":\"(a)\\\\1\"}", HD_STATUS_UNSUPPORTED, "character 5" },
        { "{\"pattern\":\"(a\"}", HD_STATUS_UNSUPPORTED, "not closed" },
        { "{\"pattern\":\"a)\"}", HD_STATUS_UNSUPPORTED, "not opened" },
        { "{\"pattern\":\"[a\"}", HD_STATUS_UNSUPPORTED, "not closed" },
        { "{\"pattern\":\"a$b\"}", HD_STATUS_UNSUPPORTED, "backslash" },
        { "{\"pattern\":\"a**\"}", HD_STATUS_UNSUPPORTED, "quantity" },
        { "{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"number\"}]}", HD_STATUS_UNSUPPORTED, "oneOf" },
        { "{\"oneOf\":[{\"minLength\":1},{\"type\":\"integer\"}]}", HD_STATUS_UNSUPPORTED, "oneOf" },
        { "{\"$ref\":\"#/$defs/x\"}", HD_STATUS_NAME_NOT_FOUND, "#/$defs/x" },
        { "{\"$ref\":\"other.json\"}", HD_STATUS_UNSUPPORTED, "other.json" },
        { "{\"$ref\":\"#\"}", HD_STATUS_UNSUPPORTED, "itself" },
        { "{\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},\"b\":{\"$ref\":\"#/$defs/a\"}},\"$ref\":\"#/$defs/a\"}",
          HD_STATUS_UNSUPPORTED, "itself" },
        { "{\"$defs\":{\"a\":{\"allOf\":[{\"$ref\":\"#/$defs/a\"},{\"minLength\":1}]}},\"$ref\":\"#/$defs/a\"}",
          HD_STATUS_LIMIT, "without an end" },
        { "false", HD_STATUS_UNSUPPORTED, "ever ends" },
        { "{\"properties\":{\"n\":{\"$ref\":\"#\"}},\"required\":[\"n\"]}", HD_STATUS_UNSUPPORTED, "ever ends" },
        { "{\"allOf\":[{\"const\":1},{\"const\":2}]}", HD_STATUS_UNSUPPORTED, "ever ends" },
    };
    twin_vocabulary v = twin_vocabulary_make(words, sizeof words / sizeof words[0]);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        form f;
        hd_error error = { 0 };
        const hd_status status = form_make(&f, &hdl_default_allocator, &v, hdl_text(cases[i].schema), &error);
        if (status != cases[i].status || !strstr(error.text, cases[i].words))
            fail_msg("%s: %d %s", cases[i].schema, status, error.text);
        form_free(&f, &hdl_default_allocator);
    }
    twin_vocabulary_free(&v);
}

/* Any allocation may fail. */
static size_t allocations_left;
static void *scarce(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    if (new_bytes && allocations_left-- == 0) return allocations_left = 0, NULL;
    return hdl_default_allocator.resize(user, old, old_bytes, new_bytes);
}

static void no_memory(void **state) {
    (void)state;
    static const char schema[] =
        "{\"allOf\":[{\"properties\":{\"a\":{\"type\":\"integer\",\"minimum\":3},\"b\":{\"pattern\":\"x+\"}},"
        "\"additionalProperties\":"
        "{\"type\":[\"string\",\"null\"]}},{\"properties\":{\"a\":{\"type\":\"number\"}},\"required\":[\"a\"]}]}";
    const hd_allocator allocator = { .resize = scarce };
    twin_vocabulary v = twin_vocabulary_make(words, sizeof words / sizeof words[0]);
    hd_status status = HD_STATUS_OUT_OF_HOST_MEMORY;
    size_t count = 0;
    for (; status; count++) {
        form f;
        hd_error error = { 0 };
        allocations_left = count;
        status = form_make(&f, &allocator, &v, hdl_text(schema), &error);
        assert_true(status == HD_OK || (status == HD_STATUS_OUT_OF_HOST_MEMORY && error.text[0]));
        form_free(&f, &allocator);
    }
    assert_true(count > 30);
    twin_vocabulary_free(&v);
}

/* ---- answers by chance ---- */

/* The answer in `out`; what closes something is preferred the longer it is. False: it came to no end. */
static bool answer(form *f, const twin_vocabulary *v, char *out, size_t room, size_t *out_count) {
    hdl_matcher_restart(f->matcher);
    for (*out_count = 0; *out_count + 64 < room;) {
        const uint32_t *bits;
        uint32_t allowed[TWIN_TOKENS], set = 0, closing[TWIN_TOKENS], closings = 0;
        if (hdl_matcher_mask(f->matcher, &bits, NULL)) return false;
        for (uint32_t i = 0; i < v->count; i++) {
            if (!(bits[i / 32] >> i % 32 & 1)) continue;
            allowed[set++] = i;
            const hdl_span text = hdl_token_text(v->tokenizer, (int32_t)i);
            if (strchr("\"]}", text.bytes[0])) closing[closings++] = i;
        }
        if (!set || (hdl_matcher_complete(f->matcher) && below(3) == 0)) return hdl_matcher_complete(f->matcher);
        const bool close = closings && below(200) < 20 + *out_count;
        const int32_t token = (int32_t)(close ? closing[below(closings)] : allowed[below(set)]);
        const hdl_span text = hdl_token_text(v->tokenizer, token);
        if (hdl_matcher_accept(f->matcher, token, NULL)) return false;
        memcpy(out + *out_count, text.bytes, text.count);
        *out_count += text.count;
    }
    return false;
}

static int print_answers(void) {
    static char line[1 << 20], said[1 << 16];
    twin_vocabulary v = twin_vocabulary_make(words, sizeof words / sizeof words[0]);
    for (int number = 0; fgets(line, sizeof line, stdin); number++) {
        form f;
        hd_error error = { 0 };
        const hd_status status = form_make(&f, &hdl_default_allocator, &v, hdl_text(line), &error);
        if (status) printf("%d refused %s\n", number, error.text);
        for (int i = 0; i < 5 && !status; i++) {
            size_t count = 0;
            const bool ended = answer(&f, &v, said, sizeof said, &count);
            printf("%d %s ", number, ended ? "said" : "endless");
            for (size_t k = 0; k < count; k++) putchar(said[k] == '\n' ? ' ' : said[k]); /* space is space in JSON, and in strings there is no such */
            putchar('\n');
        }
        form_free(&f, &hdl_default_allocator);
    }
    twin_vocabulary_free(&v);
    return 0;
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "--answers") == 0) return print_answers();
    const struct CMUnitTest tests[] = { cmocka_unit_test(known_answers), cmocka_unit_test(numbers_keep_to_their_bounds),
                                        cmocka_unit_test(refusals), cmocka_unit_test(no_memory) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
