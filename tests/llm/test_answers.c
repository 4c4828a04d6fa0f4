/* test_answers.c: answers of the demo model as their wishes shape them: forms, biases, changed scores, tokens with their
 * log-probabilities. */
#include <heddle_llm.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static hd_context *context;
static hd_model *model;
static hd_session *session;

#define CHECK(call) check((call), #call, __LINE__)
static void check(hd_status status, const char *call, int line) {
    if (status) fail_msg("line %d: %s: %s", line, call, hd_context_error(context));
}

static int open_all(void **state) {
    (void)state;
    const hd_device_desc cpu = { .id = "cpu" };
    hd_device *device;
    if (hd_context_create(NULL, &context) || hd_device_open(context, &cpu, &device) ||
        hd_model_open(context, HEDDLE_TESTS_DIR "/../models/demo.gguf", NULL, &model)) return -1;
    return hd_session_create(model, &(hd_session_desc){ .device = device, .context = 256 }, &session) ? -1 : 0;
}
static int close_all(void **state) {
    (void)state;
    hd_session_destroy(session);
    hd_model_close(model);
    hd_context_destroy(context);
    return 0;
}

/* What was said: text, tokens and their chances. */
typedef struct said {
    char     text[4096];
    size_t   bytes;
    int32_t  tokens[256];
    float    chances[256], best[256];
    uint32_t count, most;
    bool     wrong;
} said;

static bool take_text(void *user, const char *text, size_t bytes) {
    said *s = user;
    if (s->bytes + bytes >= sizeof s->text) return false;
    memcpy(s->text + s->bytes, text, bytes);
    s->bytes += bytes;
    s->text[s->bytes] = 0;
    return true;
}

static bool take_token(void *user, const hd_said_token *token) {
    said *s = user;
    for (uint32_t i = 1; i < token->likeliest; i++)
        s->wrong = s->wrong || token->likeliest_log_probabilities[i] > token->likeliest_log_probabilities[i - 1];
    s->chances[s->count] = token->log_probability;
    s->best[s->count] = token->likeliest ? token->likeliest_log_probabilities[0] : 0;
    s->tokens[s->count++] = token->token;
    return s->count != s->most;
}

static hd_generated answer(const char *prompt, hd_generate_desc desc, said *s) {
    int32_t tokens[128];
    size_t count = 128;
    hd_generated made;
    CHECK(hd_model_tokenize(model, prompt, strlen(prompt), HD_TOKENIZE_ADD_SPECIAL, tokens, &count));
    CHECK(hd_session_rewind(session, 0, 0));
    desc.tokens = tokens;
    desc.token_count = count;
    desc.user = s;
    desc.on_text = take_text;
    if (!desc.max_tokens) desc.max_tokens = 100;
    const uint32_t most = s->most;
    *s = (said){ .most = most };
    CHECK(hd_generate(session, &desc, NULL, &made));
    return made;
}

static hd_grammar *grammar(hd_grammar_kind kind, const char *text) {
    hd_grammar *g;
    CHECK(hd_grammar_create(model, kind, text, strlen(text), &g));
    return g;
}

static void forms(void **state) {
    (void)state;
    static said s;
    hd_grammar *g = grammar(HD_GRAMMAR_GBNF, "root ::= (\"yes\" | \"no\" | \"never\") \", \" [a-d]{3}");
    for (uint64_t seed = 0; seed < 40; seed++) {
        /* by the device's candidates, by all scores, and by the best */
        const hd_sampling samplings[] = { { .seed = seed, .temperature = 1, .top_k = 40 },
                                          { .seed = seed, .temperature = 1 },
                                          { 0 } };
        const hd_generated made = answer("Answer:", (hd_generate_desc){ .grammar = g, .sampling = samplings[seed % 3] }, &s);
        const char *rest = strstr(s.text, ", ");
        assert_int_equal(made.stop, HD_STOP_END);
        assert_true(hd_grammar_complete(g) && rest && strlen(rest) == 5 && strspn(rest + 2, "abcd") == 3);
        assert_true(strncmp(s.text, "yes", 3) == 0 || strncmp(s.text, "no,", 3) == 0 || strncmp(s.text, "never", 5) == 0);
    }
    hd_grammar_destroy(g);
    /* cut off, it is told to be so; going on without end, it goes on while it can */
    g = grammar(HD_GRAMMAR_GBNF, "root ::= [ab]+");
    assert_int_equal(answer("x", (hd_generate_desc){ .grammar = g, .max_tokens = 5, .ignore_end = 1 }, &s).stop, HD_STOP_LENGTH);
    assert_int_equal(strspn(s.text, "ab"), s.bytes);
    hd_grammar_destroy(g);
    g = grammar(HD_GRAMMAR_JSON_SCHEMA, "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\",\"minimum\":10,"
                                        "\"maximum\":99}},\"required\":[\"n\"]}");
    int number = 0;
    assert_int_equal(answer("x", (hd_generate_desc){ .grammar = g, .sampling = { .temperature = 1, .seed = 3 } }, &s).stop,
                     HD_STOP_END);
    assert_int_equal(sscanf(s.text, " { \"n\" : %d", &number), 1);
    assert_true(number >= 10 && number <= 99);
    hd_grammar_destroy(g);
}

/* Drawn from few or from all, with a seed it is the same answer: the mask is the whole row's. */
static void drawn_from_few_as_from_all(void **state) {
    (void)state;
    static said few, all;
    hd_grammar *g = grammar(HD_GRAMMAR_GBNF, "root ::= [A-Za-z ,;]+ \".\"");
    const hd_bias nothing = { 5, 0 }; /* with a bias all scores are looked at */
    for (uint64_t seed = 0; seed < 12; seed++) {
        hd_generate_desc desc = { .grammar = g,
                                  .sampling = { .seed = seed, .temperature = 1, .top_k = 20, .top_p = 0.95f },
                                  .max_tokens = 30 };
        answer("And he said", desc, &few);
        desc.biases = &nothing;
        desc.bias_count = 1;
        answer("And he said", desc, &all);
        assert_string_equal(few.text, all.text);
    }
    hd_grammar_destroy(g);
}

static void grammars_by_hand(void **state) {
    (void)state;
    uint32_t bits[4096 / 32 + 1];
    hd_model_info info;
    CHECK(hd_model_get_info(model, &info));
    hd_grammar *g = grammar(HD_GRAMMAR_GBNF, "root ::= \"ab\" \"c\"?");
    int32_t token = -1;
    for (int round = 0; round < 2; round++) {
        char text[8] = "";
        for (int step = 0; step < 4; step++) {
            CHECK(hd_grammar_allowed(g, bits, sizeof bits / sizeof bits[0]));
            uint32_t end_bits = 0, longest = 0;
            token = -1;
            for (int32_t i = 0; i < (int32_t)info.vocabulary; i++) {
                size_t bytes;
                if (!(bits[i / 32] >> i % 32 & 1)) continue;
                const char *piece = hd_model_token_text(model, i, &bytes);
                end_bits += hd_model_token_ends(model, i);
                if (hd_model_token_ends(model, i) || bytes <= longest) continue;
                assert_int_equal(strncmp("abc" + strlen(text), piece, bytes), 0);
                longest = (uint32_t)bytes;
                token = i;
            }
            assert_int_equal(end_bits > 0, hd_grammar_complete(g));
            assert_int_equal(hd_grammar_complete(g), strlen(text) >= 2);
            if (token < 0) break;
            size_t bytes;
            const char *piece = hd_model_token_text(model, token, &bytes);
            strncat(text, piece, bytes);
            CHECK(hd_grammar_accept(g, token));
        }
        assert_string_equal(text, "abc");
        assert_int_equal(hd_grammar_accept(g, 100), HD_STATUS_INVALID_ARGUMENT);
        CHECK(hd_grammar_restart(g));
    }
    assert_int_equal(hd_grammar_allowed(g, bits, 1), HD_STATUS_LIMIT);
    hd_grammar_destroy(g);
    assert_int_equal(hd_grammar_restart(g), HD_STATUS_STALE_HANDLE);
    assert_int_equal(hd_grammar_create(model, HD_GRAMMAR_GBNF, "root ::= x", 10, &g), HD_STATUS_NAME_NOT_FOUND);
    assert_int_equal(hd_grammar_create(model, (hd_grammar_kind)7, "x", 1, &g), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hd_grammar_create(model, HD_GRAMMAR_GBNF, NULL, 0, &g), HD_STATUS_NULL_POINTER);
}

static void biases(void **state) {
    (void)state;
    static said plain, s;
    plain.most = s.most = 8;
    answer("And he said", (hd_generate_desc){ .on_token = take_token }, &plain);
    assert_int_equal(plain.count, 8);
    /* the token that would come first never comes; with a large bias another one always does */
    const hd_bias never[] = { { plain.tokens[0], -INFINITY } }, always[] = { { 77, 1000 } };
    answer("And he said", (hd_generate_desc){ .on_token = take_token, .biases = never, .bias_count = 1 }, &s);
    for (uint32_t i = 0; i < s.count; i++) assert_true(s.tokens[i] != plain.tokens[0]);
    answer("And he said", (hd_generate_desc){ .on_token = take_token, .biases = always, .bias_count = 1 }, &s);
    for (uint32_t i = 0; i < s.count; i++) assert_int_equal(s.tokens[i], 77);
    const hd_bias wrong[] = { { -1, 0 }, { 1 << 20, 0 }, { 5, NAN } };
    const int32_t one = 1;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(
            hd_generate(session, &(hd_generate_desc){ .tokens = &one, .token_count = 1, .biases = &wrong[i], .bias_count = 1 },
                        NULL, NULL),
            HD_STATUS_INVALID_ARGUMENT);
}

static uint32_t asked;
static void only_forty_two(void *user, float *scores, uint32_t count) {
    (void)user;
    asked++;
    for (uint32_t i = 0; i < count; i++) scores[i] = i == 42 ? 0 : -100;
}

static void changed_scores(void **state) {
    (void)state;
    static said s;
    s.most = 5;
    answer("And he said", (hd_generate_desc){ .on_token = take_token, .on_scores = only_forty_two }, &s);
    assert_int_equal(s.count, 5);
    assert_int_equal(asked, 5);
    for (uint32_t i = 0; i < s.count; i++) assert_int_equal(s.tokens[i], 42);
}

static void log_probabilities(void **state) {
    (void)state;
    static said s;
    s.most = 12;
    const hd_generate_desc desc = { .on_token = take_token, .likeliest = 5, .sampling = { .temperature = 1, .seed = 4 } };
    assert_int_equal(answer("And he said", desc, &s).stop, HD_STOP_CALLER);
    assert_int_equal(s.count, 12);
    assert_false(s.wrong);
    for (uint32_t i = 0; i < s.count; i++) assert_true(s.chances[i] <= s.best[i] && s.best[i] < 0 && s.chances[i] > -30);
    /* beside the definition: the first token's, from the scores behind the prompt */
    int32_t prompt[16];
    size_t count = 16;
    const float *logits;
    hd_model_info info;
    CHECK(hd_model_get_info(model, &info));
    CHECK(hd_model_tokenize(model, "And he said", 11, HD_TOKENIZE_ADD_SPECIAL, prompt, &count));
    CHECK(hd_session_rewind(session, 0, 0));
    CHECK(hd_session_feed(session, 0, prompt, count));
    CHECK(hd_session_logits(session, 0, &logits));
    double sum = 0;
    for (uint32_t i = 0; i < info.vocabulary; i++) sum += exp((double)logits[i]);
    assert_true(fabs((double)logits[s.tokens[0]] - log(sum) - (double)s.chances[0]) < 1e-4);
    assert_int_equal(hd_generate(session, &(hd_generate_desc){ .likeliest = HD_MAX_LIKELIEST + 1 }, NULL, NULL), HD_STATUS_LIMIT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms), cmocka_unit_test(drawn_from_few_as_from_all), cmocka_unit_test(grammars_by_hand),
        cmocka_unit_test(biases), cmocka_unit_test(changed_scores), cmocka_unit_test(log_probabilities),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
