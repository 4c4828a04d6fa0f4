/* test_tokenizer.c: the ids and the words of 2,000 strings against other people's tokenizers, text and back, special tokens,
 * memory that runs out, and descriptions as hostile files would give them. */
#include "tokenizer_fixture.h"
#include "llm/tokenizer_inside.h"
#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <cmocka.h>

static hdl_tokenizer *make(const hdl_vocab_desc *desc) {
    hdl_tokenizer *t = NULL;
    hd_error error = { 0 };
    if (hdl_tokenizer_create(NULL, desc, &t, &error)) fail_msg("%s", error.text);
    return t;
}

/* The texts of the tokens, one behind the other, are the text. */
static void assert_text(const hdl_tokenizer *t, const hdl_id_list *list, hdl_span text) {
    size_t done = 0;
    for (size_t i = 0; i < list->count; i++) {
        const hdl_span part = hdl_token_text(t, list->ids[i]);
        assert_true(part.count <= text.count - done);
        assert_memory_equal(part.bytes, text.bytes + done, part.count);
        done += part.count;
    }
    assert_int_equal(done, text.count);
}

static void check_reference(const char *name) {
    fixture f = fixture_open(name);
    hdl_tokenizer *t = make(&f.desc);
    uint8_t *file = read_fixture("strings.bin");
    reader r = { file };
    size_t count = read_number(&r);
    assert_int_equal(count, 2000);
    hdl_id_list list = { 0 };
    for (size_t i = 0; i < count; i++) {
        hdl_span text = read_bytes(&r);
        list.count = 0;
        assert_int_equal(hdl_tokenize(t, text.bytes, text.count, f.flags, &list, NULL), HD_OK);
        size_t wanted = read_number(&f.ids);
        bool equal = wanted == list.count;
        for (size_t j = 0; j < wanted; j++) {
            size_t id = read_number(&f.ids);
            equal = equal && (size_t)list.ids[j] == id;
        }
        if (!equal) fail_msg("%s: string %zu: \"%.*s\"", name, i, (int)text.count, (const char *)text.bytes);
        if (f.desc.kind == HDL_VOCAB_BYTES) assert_text(t, &list, text);
    }
    hdl_id_list_free(&list);
    hdl_tokenizer_destroy(t);
    fixture_close(&f);
    free(file);
}

static void reference_gpt2(void **state) { (void)state; check_reference("gpt2.tok"); }
static void reference_smollm(void **state) { (void)state; check_reference("smollm.tok"); }
static void reference_llama3(void **state) { (void)state; check_reference("llama3.tok"); }
static void reference_qwen2(void **state) { (void)state; check_reference("qwen2.tok"); }
static void reference_spm_bpe(void **state) { (void)state; check_reference("spm_bpe.tok"); }
static void reference_spm_bpe_across(void **state) { (void)state; check_reference("spm_bpe_across.tok"); }
static void reference_unigram(void **state) { (void)state; check_reference("unigram.tok"); }
static void reference_unigram_unknown(void **state) { (void)state; check_reference("unigram_unknown.tok"); }

static void reference_wordpiece(void **state) { (void)state; check_reference("wordpiece.tok"); }
static void reference_wordpiece_cased(void **state) { (void)state; check_reference("wordpiece_cased.tok"); }
static void reference_wordpiece_accents(void **state) { (void)state; check_reference("wordpiece_accents.tok"); }

/* The words of 2,000 strings by each pattern, as words.bin has them. */
static void reference_words(void **state) {
    (void)state;
    uint8_t *strings = read_fixture("strings.bin"), *file = read_fixture("words.bin");
    reader r = { file };
    hdl_word_rule *rule = malloc(sizeof *rule);
    assert_non_null(rule);
    for (size_t patterns = read_number(&r); patterns > 0; patterns--) {
        char name[32] = "";
        const hdl_span pre = read_bytes(&r);
        assert_true(pre.count < sizeof name);
        memcpy(name, pre.bytes, pre.count);
        if (!hdl_words_find(name, rule)) fail_msg("there is no rule for %s", name);
        reader texts = { strings };
        const size_t count = read_number(&texts);
        for (size_t i = 0; i < count; i++) {
            const hdl_span text = read_bytes(&texts);
            hdl_words words = { .rule = rule, .text = text.bytes, .bytes = text.count };
            size_t begin = 0, end = 0;
            for (size_t left = read_number(&r); left > 0; left--, begin = end) {
                const size_t wanted = read_number(&r);
                if (!hdl_words_next(&words, &end) || end - begin != wanted)
                    fail_msg("%s cuts string %zu at %zu, not at %zu: \"%.*s\"", name, i, end, begin + wanted, (int)text.count, (const char *)text.bytes);
            }
            assert_int_equal(end, text.count);
            assert_false(hdl_words_next(&words, &end));
        }
    }
    free(rule);
    free(strings);
    free(file);
}

/* `marked` holds the text with '|' where the pattern must cut it. */
static void assert_words(const char *pattern, const char *marked) {
    uint8_t text[64];
    size_t bytes = 0, end;
    for (const char *c = marked; *c; c++)
        if (*c != '|') text[bytes++] = (uint8_t)*c;
    hdl_word_rule *rule = malloc(sizeof *rule);
    assert_non_null(rule);
    assert_true(hdl_words_find(pattern, rule));
    hdl_words words = { .rule = rule, .text = text, .bytes = bytes };
    const char *rest = marked;
    for (size_t begin = 0; hdl_words_next(&words, &end); begin = end) {
        size_t count = strcspn(rest, "|");
        if (count != end - begin) fail_msg("%s cuts \"%s\" wrongly at \"%s\"", pattern, marked, rest);
        rest += count + (rest[count] == '|');
    }
    assert_int_equal(*rest, 0);
    free(rule);
}

static void words(void **state) {
    (void)state;
    assert_words("gpt-2", "I|'m|   | '| a| 123|'|St| \xE2\x80\xA6!|   ");
    assert_words("gpt-2", "a|\t\t|\n|b|\xFF\xC3| \xE2\x82|\xC2\xA0|1");
    assert_words("smollm", "a| |1|2| b|.|3");
    assert_words("llama-bpe", "I|'M| he|'Re|'\xC5\xBF|a|'\xC6\xBF" "a|'x|123|45| |678| ...\r\n|  \n|  |\ta|(b|  ");
    assert_words("qwen2", "1|2| |3|\xC2\xBD|'ll|\n \n|  | x|\n");
    static hdl_word_rule rule;
    assert_false(hdl_words_find("gpt-3", &rule));
    assert_false(hdl_words_find("", &rule));
    assert_false(hdl_words_find("gpt-2 gpt2", &rule));
}

/* Cutting at spaces is only a shorter way to the same ids. */
static void cutting_at_spaces_changes_nothing(void **state) {
    (void)state;
    fixture f = fixture_open("spm_bpe.tok"), across = fixture_open("spm_bpe_across.tok");
    hdl_tokenizer *t = make(&f.desc), *uncut = make(&f.desc), *long_pieces = make(&across.desc);
    assert_true(t->cuts_at_spaces);
    assert_false(long_pieces->cuts_at_spaces);
    uncut->cuts_at_spaces = false;
    uint8_t *file = read_fixture("strings.bin");
    reader r = { file };
    hdl_id_list a = { 0 }, b = { 0 };
    for (size_t i = read_number(&r); i > 0; i--) {
        hdl_span text = read_bytes(&r);
        assert_int_equal(hdl_tokenize(t, text.bytes, text.count, 0, &a, NULL), HD_OK);
        assert_int_equal(hdl_tokenize(uncut, text.bytes, text.count, 0, &b, NULL), HD_OK);
    }
    assert_int_equal(a.count, b.count);
    assert_memory_equal(a.ids, b.ids, a.count * sizeof *a.ids);
    hdl_id_list_free(&a);
    hdl_id_list_free(&b);
    hdl_tokenizer_destroy(t);
    hdl_tokenizer_destroy(uncut);
    hdl_tokenizer_destroy(long_pieces);
    fixture_close(&f);
    fixture_close(&across);
    free(file);
}

static void assert_ids(const hdl_tokenizer *t, const char *text, unsigned flags, size_t count, const int32_t *ids) {
    hdl_id_list list = { 0 };
    assert_int_equal(hdl_tokenize(t, text, strlen(text), flags, &list, NULL), HD_OK);
    assert_int_equal(list.count, count);
    assert_memory_equal(list.ids, ids, count * sizeof *ids);
    hdl_id_list_free(&list);
}
#define ASSERT_IDS(t, text, flags, ...) \
    assert_ids(t, text, flags, sizeof((int32_t[]){ __VA_ARGS__ }) / sizeof(int32_t), (int32_t[]){ __VA_ARGS__ })

/* A vocabulary small enough to read: SentencePiece BPE without byte tokens. */
static const char *small_tokens[] = { "<unk>", "<s>", "</s>", "\xE2\x96\x81", "a", "b", "ab", "\xE2\x96\x81" "a", "<u>", "abab" };
static int32_t small_types[] = { 2, 3, 3, 1, 1, 1, 1, 1, 4, 1 };
static float small_scores[] = { 0, 0, 0, -9, -8, -7, -1, -2, 0, -3 };

static void small_desc(hdl_vocab_desc *desc, hdl_span *tokens) {
    for (size_t i = 0; i < 10; i++) tokens[i] = hdl_text(small_tokens[i]);
    *desc = (hdl_vocab_desc){ .kind = HDL_VOCAB_PIECES, .tokens = tokens, .token_count = 10, .scores = small_scores, .score_count = 10,
                              .types = small_types, .type_count = 10, .bos = 1, .eos = 2, .unknown = 0, .add_bos = true, .add_eos = true,
                              .add_space_prefix = true };
}

static void special_tokens(void **state) {
    (void)state;
    hdl_vocab_desc desc;
    hdl_span tokens[10];
    small_desc(&desc, tokens);
    hdl_tokenizer *t = make(&desc);
    ASSERT_IDS(t, "abab", 0, 3, 9);
    ASSERT_IDS(t, "abab", HDL_ADD_SPECIAL, 1, 3, 9, 2);
    assert_ids(t, "", 0, 0, NULL);
    ASSERT_IDS(t, "", HDL_ADD_SPECIAL, 1, 2);
    /* A control token counts only on request; text after it begins anew. A user token always counts. */
    ASSERT_IDS(t, "a</s>a", 0, 7, 0, 4);
    ASSERT_IDS(t, "a</s>a", HDL_PARSE_SPECIAL, 7, 2, 7);
    ASSERT_IDS(t, "</s>", HDL_PARSE_SPECIAL, 2);
    ASSERT_IDS(t, "a<u>a", 0, 7, 8, 4);
    ASSERT_IDS(t, "<u>a", 0, 3, 8, 4);
    /* Unknown characters in a row are one unknown token. */
    ASSERT_IDS(t, "axyz a", 0, 7, 0, 7);
    assert_int_equal(hdl_token_find(t, "</s>", 4), 2);
    assert_int_equal(hdl_token_find(t, "ab", 2), 6);
    assert_int_equal(hdl_token_find(t, "", 0), HDL_NO_TOKEN);
    assert_int_equal(hdl_token_find(t, "zz", 2), HDL_NO_TOKEN);
    assert_int_equal(hdl_token_type_of(t, 8), HDL_TOKEN_USER);
    assert_int_equal(hdl_token_type_of(t, 10), 0);
    assert_int_equal(hdl_token_text(t, -1).count, 0);
    assert_int_equal(hdl_token_bos(t), 1);
    assert_int_equal(hdl_token_eos(t), 2);
    hdl_tokenizer_destroy(t);
}

/* WordPiece, with a vocabulary small enough to read. */
static void pieces_of_words(void **state) {
    (void)state;
    static const char *texts[] = { "[UNK]", "[CLS]", "[SEP]", "\xE2\x96\x81" "a", "a", "\xE2\x96\x81" "ab", "\xE2\x96\x81,", "\xE2\x96\x81" "e",
                                   "\xE2\x96\x81\xE4\xB8\x80", "\xE2\x96\x81" "i\xCC\x87", "\xE2\x96\x81", "\xE3\x80\xAE\xF0\x9D\x85\xAD" };
    enum { COUNT = sizeof texts / sizeof *texts };
    static const int32_t types[COUNT] = { 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    hdl_span tokens[COUNT];
    char word[2 * 101 + 1] = "";
    for (size_t i = 0; i < COUNT; i++) tokens[i] = hdl_text(texts[i]);
    hdl_vocab_desc d = { .kind = HDL_VOCAB_WORDPIECE, .tokens = tokens, .token_count = COUNT, .types = types, .type_count = COUNT,
                         .bos = 1, .eos = 2, .unknown = 0, .add_bos = true, .add_eos = true, .lowercase = true, .strip_accents = true };
    hdl_tokenizer *t = make(&d);
    ASSERT_IDS(t, "A, aba\tb \xC3\x89\xE4\xB8\x80" "a", HDL_ADD_SPECIAL, 1, 3, 6, 5, 4, 0, 7, 8, 3, 2);
    ASSERT_IDS(t, "", HDL_ADD_SPECIAL, 1, 2);
    ASSERT_IDS(t, "a[SEP]a", HDL_PARSE_SPECIAL, 3, 2, 3);
    ASSERT_IDS(t, "[SEP]", 0, 0, 0, 0);
    /* What cannot be seen is not there; a word that goes wrong at its end is unknown as a whole. */
    ASSERT_IDS(t, "a\xE2\x80\x8B\xFF\x01" "a ab ac", 0, 3, 4, 5, 0);
    /* Marks that are left stand in Unicode's order, whatever the text's. */
    ASSERT_IDS(t, "a\xE3\x80\xAE\xF0\x9D\x85\xAD", 0, 3, 11);
    ASSERT_IDS(t, "a\xF0\x9D\x85\xAD\xE3\x80\xAE", 0, 3, 11);
    /* U+2581 of the text is a letter: it goes on, and begins nothing here. */
    ASSERT_IDS(t, "a\xE2\x96\x81 \xE2\x96\x81", 0, 3, 10, 0);
    for (size_t i = 0; i < 101; i++) memcpy(word + 2 * i, "\xC3\xA4", 2); /* each becomes a */
    ASSERT_IDS(t, word, 0, 0);
    word[200] = 0;
    hdl_id_list list = { 0 };
    assert_int_equal(hdl_tokenize(t, word, 200, 0, &list, NULL), HD_OK);
    assert_int_equal(list.count, 100);
    hdl_id_list_free(&list);
    assert_memory_equal(hdl_token_text(t, 5).bytes, " ab", 3);
    hdl_tokenizer_destroy(t);
    d.strip_accents = false;
    t = make(&d);
    ASSERT_IDS(t, "\xC3\x89 \xC4\xB0", 0, 0, 9); /* a dotted I is two small characters */
    hdl_tokenizer_destroy(t);
    d.lowercase = false;
    t = make(&d);
    ASSERT_IDS(t, "A a", 0, 0, 3);
    hdl_tokenizer_destroy(t);
}

/* The description must be refused with this status, in a line that holds `words`. */
static void refuse(const hdl_vocab_desc *desc, hd_status status, const char *words) {
    hd_error error = { 0 };
    hdl_tokenizer *t = NULL;
    hd_status got = hdl_tokenizer_create(NULL, desc, &t, &error);
    if (got != status || got != error.status || !strstr(error.text, words))
        fail_msg("wanted %d with \"%s\", got %d: %s", status, words, got, error.text);
    assert_null(t);
}

static void hostile_lists(void **state) {
    (void)state;
    hdl_vocab_desc good, d;
    hdl_span tokens[10];
    small_desc(&good, tokens);
    hdl_tokenizer_destroy(make(&good));
#define REFUSE(change, status, words) (d = good, change, refuse(&d, HD_STATUS_##status, words))
    REFUSE(d.kind = (hdl_vocab_kind)9, PARSE, "tokenizer.ggml.model");
    REFUSE(d.token_count = 0, PARSE, "tokenizer.ggml.tokens is empty");
    REFUSE(d.token_count = SIZE_MAX, LIMIT, "tokenizer.ggml.tokens");
    REFUSE(d.merge_count = SIZE_MAX, LIMIT, "tokenizer.ggml.merges");
    REFUSE(d.tokens = NULL, NULL_POINTER, "list");
    REFUSE(d.scores = NULL, NULL_POINTER, "list");
    REFUSE(d.type_count = 9, PARSE, "tokenizer.ggml.token_type has 9");
    REFUSE(d.score_count = 0, PARSE, "tokenizer.ggml.scores has 0");
    REFUSE(d.score_count = 11, PARSE, "tokenizer.ggml.scores");
    REFUSE(d.bos = 10, PARSE, "tokenizer.ggml.bos_token_id is 10");
    REFUSE(d.eos = -2, PARSE, "tokenizer.ggml.eos_token_id is -2");
    REFUSE(d.unknown = INT64_C(1) << 32, PARSE, "tokenizer.ggml.unknown_token_id");
    REFUSE(d.bos = HDL_NO_TOKEN, PARSE, "tokenizer.ggml.add_bos_token");
    REFUSE(d.eos = HDL_NO_TOKEN, PARSE, "tokenizer.ggml.add_eos_token");
    REFUSE(d.unknown = HDL_NO_TOKEN, PARSE, "no token for the byte");
    REFUSE((d.kind = HDL_VOCAB_WORDPIECE, d.unknown = HDL_NO_TOKEN), PARSE, "tokenizer.ggml.unknown_token_id is missing");
    REFUSE(d.kind = HDL_VOCAB_BYTES, UNSUPPORTED, "tokenizer.ggml.pre is missing");
    REFUSE((d.kind = HDL_VOCAB_BYTES, d.pre = "gpt-3"), UNSUPPORTED, "tokenizer.ggml.pre is gpt-3");
    assert_int_equal(hdl_tokenizer_create(NULL, NULL, NULL, NULL), HD_STATUS_NULL_POINTER);
    hdl_tokenizer_destroy(NULL);
    hdl_tokenizer *t = make(&good);
    hdl_id_list list = { 0 };
    assert_int_equal(hdl_tokenize(t, NULL, 3, 0, &list, NULL), HD_STATUS_NULL_POINTER);
    assert_int_equal(hdl_tokenize(t, "", (size_t)HDL_MAX_TEXT_BYTES + 1, 0, &list, NULL), HD_STATUS_LIMIT);
    hdl_tokenizer_destroy(t);
}

static void hostile_tokens(void **state) {
    (void)state;
    hdl_vocab_desc d;
    hdl_span tokens[10], *tenth = &tokens[9];
    small_desc(&d, tokens);
    static char long_text[70000];
    memset(long_text, 'a', sizeof long_text);
    int32_t types[10];
    float scores[10];
    memcpy(types, small_types, sizeof types);
    memcpy(scores, small_scores, sizeof scores);
    d.types = types;
    d.scores = scores;
    *tenth = (hdl_span){ (const uint8_t *)long_text, 65536 };
    refuse(&d, HD_STATUS_LIMIT, "tokenizer.ggml.tokens[9] has 65536 bytes");
    *tenth = (hdl_span){ (const uint8_t *)long_text, 257 };
    refuse(&d, HD_STATUS_LIMIT, "tokenizer.ggml.tokens[9] has 257 bytes");
    *tenth = (hdl_span){ NULL, 1 };
    refuse(&d, HD_STATUS_PARSE, "tokenizer.ggml.tokens[9]");
    *tenth = hdl_text("ab");
    refuse(&d, HD_STATUS_PARSE, "tokenizer.ggml.tokens[9] is the same as tokens[6]");
    *tenth = hdl_text("<0x0A>");
    types[9] = HDL_TOKEN_BYTE;
    refuse(&d, HD_STATUS_PARSE, "no token for the byte");
    const char *byte_tokens[] = { "<0x-1>", "<0x0>", "<0x0AA>", "<0xGG>", "", "<0x", "0x0A", "<0x0a>", "<0x0A}" };
    for (size_t i = 0; i < sizeof byte_tokens / sizeof byte_tokens[0]; i++) {
        *tenth = hdl_text(byte_tokens[i]);
        refuse(&d, HD_STATUS_PARSE, "tokenizer.ggml.tokens[9]: a byte token");
    }
    *tenth = tokens[8] = hdl_text("<0x0A>");
    types[8] = HDL_TOKEN_BYTE;
    refuse(&d, HD_STATUS_PARSE, "tokenizer.ggml.tokens[9]: a second token");
    const int32_t wrong[] = { 0, 7, -1, INT32_MAX, INT32_MIN };
    for (size_t i = 0; i < 5; i++) {
        types[9] = wrong[i];
        refuse(&d, HD_STATUS_PARSE, "tokenizer.ggml.token_type[9]");
    }
    types[8] = types[9] = HDL_TOKEN_NORMAL;
    tokens[8] = hdl_text("c");
    const float numbers[] = { NAN, INFINITY, -INFINITY };
    for (size_t i = 0; i < 3; i++) {
        scores[9] = numbers[i];
        refuse(&d, HD_STATUS_PARSE, "tokenizer.ggml.scores[9]");
    }
    /* Empty and equal-to-a-control tokens are odd, but can only be what they are. */
    scores[9] = 1;
    *tenth = hdl_text("");
    tokens[8] = hdl_text("");
    hdl_tokenizer_destroy(make(&d));
}

static void hostile_merges(void **state) {
    (void)state;
    fixture f = fixture_open("gpt2.tok");
    static char long_merge[140000];
    memset(long_merge, 'a', sizeof long_merge);
    long_merge[70000] = ' ';
    const struct { hdl_span merge; const char *words;
    } cases[] = {
        { hdl_text(""), "not two tokens" },
        { hdl_text(" "), "not two tokens" },
        { hdl_text("a"), "not two tokens" },
        { hdl_text("a "), "not two tokens" },
        { hdl_text(" a"), "not two tokens" },
        { hdl_text("xqzj a"), "first part" },
        { hdl_text("a xqzj"), "second part" },
        { hdl_text("x q"), "together" },
        { hdl_text("a b c"), "map of bytes" },
        { hdl_text("a \xFF"), "map of bytes" },
        { hdl_text("a \xE4\xB8\x80"), "map of bytes" },
        { { (const uint8_t *)long_merge, sizeof long_merge }, "longer" },
        { { NULL, 5 }, "longer" },
        { f.merges[0], "is the same as merges[0]" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hdl_span before = f.merges[70];
        f.merges[70] = cases[i].merge;
        refuse(&f.desc, HD_STATUS_PARSE, "tokenizer.ggml.merges[70]");
        refuse(&f.desc, HD_STATUS_PARSE, cases[i].words);
        f.merges[70] = before;
    }
    /* Without the token of a byte some text could not be said. */
    for (size_t i = 0; i < f.desc.token_count; i++)
        if (f.tokens[i].count == 1 && memcmp(f.tokens[i].bytes, "q", 1) == 0) f.types[i] = HDL_TOKEN_UNUSED;
    f.desc.merge_count = 0;
    refuse(&f.desc, HD_STATUS_PARSE, "no token for the byte 0x71");
    f.desc.unknown = 5;
    hdl_tokenizer *t = make(&f.desc);
    ASSERT_IDS(t, "qq", 0, 5);
    hdl_tokenizer_destroy(t);
    fixture_close(&f);
}

/* Texts that a slow tokenizer would never finish; the test's time limit is the check. */
static void long_words(void **state) {
    (void)state;
    const char *names[] = { "gpt2.tok", "llama3.tok", "spm_bpe.tok", "spm_bpe_across.tok", "unigram.tok", "wordpiece.tok" };
    const size_t bytes = 300000;
    char *text = malloc(bytes);
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        fixture f = fixture_open(names[n]);
        hdl_tokenizer *t = make(&f.desc);
        for (int form = 0; form < 5; form++) {
            for (size_t i = 0; i < bytes; i++) text[i] = "aa  \n \xFF\xFF<<"[form * 2 + (int)(i % 2)];
            hdl_id_list list = { 0 };
            assert_int_equal(hdl_tokenize(t, text, bytes, HDL_PARSE_SPECIAL, &list, NULL), HD_OK);
            if (f.desc.kind == HDL_VOCAB_BYTES) assert_text(t, &list, (hdl_span){ (const uint8_t *)text, bytes });
            hdl_id_list_free(&list);
        }
        hdl_tokenizer_destroy(t);
        fixture_close(&f);
    }
    free(text);
}

/* Grants so many calls for new memory, then none; counts what is held. */
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
    const char *names[] = { "gpt2.tok", "spm_bpe.tok", "unigram.tok", "wordpiece.tok" };
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        fixture f = fixture_open(names[n]);
        bool done = false;
        for (long grants = 0; !done; grants++) {
            assert_true(grants < 200);
            purse p = { grants, 0 };
            hd_allocator memory = { from_purse, &p };
            hd_error error = { 0 };
            hdl_tokenizer *t;
            hd_status status = hdl_tokenizer_create(&memory, &f.desc, &t, &error);
            hdl_id_list list = { .allocator = memory };
            if (!status) status = hdl_tokenize(t, "In the beginning \xF0\x9F\x98\x80 was the word, twice over", 47, 0, &list, &error);
            assert_true(status == HD_OK || (status == HD_STATUS_OUT_OF_HOST_MEMORY && error.text[0]));
            done = status == HD_OK;
            hdl_id_list_free(&list);
            hdl_tokenizer_destroy(t);
            assert_int_equal(p.held, 0);
        }
        fixture_close(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_gpt2),
        cmocka_unit_test(reference_smollm),
        cmocka_unit_test(reference_llama3),
        cmocka_unit_test(reference_qwen2),
        cmocka_unit_test(reference_spm_bpe),
        cmocka_unit_test(reference_spm_bpe_across),
        cmocka_unit_test(reference_unigram),
        cmocka_unit_test(reference_unigram_unknown),
        cmocka_unit_test(reference_wordpiece), cmocka_unit_test(reference_wordpiece_cased), cmocka_unit_test(reference_wordpiece_accents),
        cmocka_unit_test(reference_words), cmocka_unit_test(words),
        cmocka_unit_test(cutting_at_spaces_changes_nothing),
        cmocka_unit_test(special_tokens), cmocka_unit_test(pieces_of_words),
        cmocka_unit_test(hostile_lists),
        cmocka_unit_test(hostile_tokens),
        cmocka_unit_test(hostile_merges),
        cmocka_unit_test(long_words),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
