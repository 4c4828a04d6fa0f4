/* bench_grammar.c: what a grammar costs a token: the mask of a place where the answer has not been, of one where it has, and
 * one token alone, over an invented vocabulary. Figures are CPU time, so that others on the machine matter less.
 *   bench_grammar [TOKENS]      150,000 by default */
#define _POSIX_C_SOURCE 200809L
#include "clock.h"
#include "llm/form/matcher.h"
#include <stdio.h>
#include <stdlib.h>

static double cpu_us(void) { return clock_us(CLOCK_PROCESS_CPUTIME_ID); }

static uint64_t state = 1;
static uint32_t below(uint32_t limit) {
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(state >> 33) % limit;
}

/* Words as they are frequent in vocabularies: with a space before them or not, punctuation, numbers. `out` in GPT-2's letters. */
static size_t invent(char *out) {
    static const char vowels[] = "aeiou", others[] = "bcdfghklmnprstvw", marks[] = "\"{}[]:,.;()-_/\\'=<>!";
    size_t count = 0;
    const uint32_t form = below(20);
    if (form < 12) count += (size_t)sprintf(out, "\xC4\xA0"); /* a space */
    const uint32_t length = form == 19 ? 1 + below(4) : 2 + below(9);
    for (uint32_t i = 0; i < length; i++) {
        if (form == 19) out[count++] = marks[below(20)];
        else if (form == 18) out[count++] = (char)('0' + below(10));
        else out[count++] = i % 2 ? vowels[below(5)] : others[below(16)];
    }
    return count;
}

static int by_text(const void *left, const void *right) { return strcmp(*(char *const *)left, *(char *const *)right); }

static const char json[] =
    "root ::= value\nvalue ::= object | array | string | number | \"true\" | \"false\" | \"null\"\n"
    "object ::= \"{\" ws (string \":\" ws value (\",\" ws string \":\" ws value)*)? ws \"}\"\n"
    "array ::= \"[\" ws (value (\",\" ws value)*)? ws \"]\"\n"
    "string ::= \"\\\"\" ([^\"\\\\\\x00-\\x1f] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" [0-9a-fA-F]{4}))* \"\\\"\"\n"
    "number ::= \"-\"? (\"0\" | [1-9] [0-9]{0,15}) (\".\" [0-9]+)? ([eE] [-+]? [0-9]{1,2})?\nws ::= | \" \" | \"\\n\" [ "
    "\\t]{0,20}\n";

static hdl_tokenizer *invent_vocabulary(uint32_t tokens) {
    char (*letters)[32] = calloc(tokens, sizeof *letters);
    char **words = calloc(tokens, sizeof *words);
    hdl_span *spans = calloc(tokens, sizeof *spans);
    hdl_tokenizer *tokenizer = NULL;
    hd_error error = { 0 };
    uint32_t count = 256;
    if (!letters || !words || !spans) return NULL;
    for (uint32_t i = 0; i < 256; i++) {
        const bool same = (i >= 33 && i <= 126) || (i >= 161 && i != 173);
        const uint32_t code = same ? i : i < 33 ? 256 + i : i < 161 ? 289 + i - 127 : 323;
        if (code < 128) letters[i][0] = (char)code;
        else sprintf(letters[i], "%c%c", (char)(0xC0 | code >> 6), (char)(0x80 | (code & 0x3F)));
    }
    while (count < tokens) {
        const uint32_t from = count;
        for (uint32_t i = from; i < tokens; i++) letters[i][invent(letters[i])] = 0;
        for (uint32_t i = 0; i < tokens; i++) words[i] = letters[i];
        qsort(words + 256, tokens - 256, sizeof *words, by_text);
        char (*kept)[32] = calloc(tokens, sizeof *kept); /* each word once, none of one letter */
        if (!kept) return NULL;
        memcpy(kept, letters, 256 * sizeof *kept);
        count = 256;
        for (uint32_t i = 256; i < tokens; i++)
            if (strlen(words[i]) > 2 && (i == 256 || strcmp(words[i], words[i - 1]) != 0))
                memcpy(kept[count++], words[i], sizeof *kept);
        memcpy(letters, kept, tokens * sizeof *kept);
        free(kept);
    }
    for (uint32_t i = 0; i < tokens; i++) spans[i] = hdl_text(letters[i]);
    const hdl_vocab_desc desc = { .kind = HDL_VOCAB_BYTES, .pre = "gpt-2", .tokens = spans, .token_count = tokens,
                                  .bos = HDL_NO_TOKEN, .eos = HDL_NO_TOKEN, .unknown = HDL_NO_TOKEN };
    if (hdl_tokenizer_create(NULL, &desc, &tokenizer, &error)) fprintf(stderr, "%s\n", error.text);
    free(letters);
    free(words);
    free(spans);
    return tokenizer;
}

int main(int count, char **words) {
    static const char answer[] =
        "{\"name\": \"abcdefghij\", \"size\": [12, -3.5e2], \"inner\": {\"x\": true, \"text\": \"some words\"}}";
    const uint32_t tokens = count > 1 ? (uint32_t)strtoul(words[1], NULL, 10) : 150000;
    hdl_tokenizer *tokenizer = tokens > 256 && tokens < 1000000 ? invent_vocabulary(tokens) : NULL;
    hdl_trie *trie = NULL;
    hdl_grammar rules = { 0 };
    hdl_automaton automaton = { 0 };
    hdl_matcher *matcher = NULL;
    hd_error error = { 0 };
    double at = cpu_us();
    if (!tokenizer || hdl_trie_create(&hdl_default_allocator, tokenizer, tokens, NULL, 0, &trie, &error)) return 1;
    printf("trie     %9.1f us, %u nodes of %u tokens\n", cpu_us() - at, trie->count, tokens);
    at = cpu_us();
    if (hdl_gbnf_read(NULL, hdl_text(json), &rules, &error) || hdl_automaton_make(&rules, trie, &automaton, &error) ||
        hdl_matcher_create(&hdl_default_allocator, &automaton, trie, tokenizer, &matcher, &error)) return 1;
    printf("grammar  %9.1f us, %u states\n", cpu_us() - at, automaton.state_count);
    for (int round = 0; round < 2; round++) {
        double sum = 0, most = 0, single = 0;
        for (size_t i = 0; i < sizeof answer - 1; i++) {
            const uint32_t *bits;
            bool allowed;
            at = cpu_us();
            if (hdl_matcher_mask(matcher, &bits, &error)) return 1;
            const double took = cpu_us() - at;
            sum += took;
            if (took > most) most = took;
            at = cpu_us();
            for (int32_t k = 0; k < 128; k++) hdl_matcher_allows(matcher, (int32_t)below(tokens), &allowed, NULL);
            single += (cpu_us() - at) / 128;
            if (hdl_matcher_accept(matcher, (uint8_t)answer[i], &error)) return 1;
        }
        const double places = sizeof answer - 1;
        printf("%s masks: mean %.1f us, most %.1f us; one token %.3f us\n", round ? "again, " : "first, ", sum / places, most,
               single / places);
        hdl_matcher_restart(matcher);
    }
    hdl_matcher_destroy(matcher);
    hdl_automaton_free(&automaton);
    hdl_grammar_free(&rules);
    hdl_trie_destroy(trie);
    hdl_tokenizer_destroy(tokenizer);
    return 0;
}
