/* form_twin.h: a small vocabulary, and a second opinion on grammars: which texts have a form, found by trying every place at which a
 * part could end. Slow, and nothing of it is shared with src/llm/form but the reading of the rules. */
#ifndef FORM_TWIN_H
#define FORM_TWIN_H

#include "llm/form/matcher.h"
#include "llm/utf8.h"
#include <stdio.h>
#include <stdlib.h>

enum { TWIN_TOKENS = 400, TWIN_BYTES = 63 }; /* most bytes of a text: places are bits of a word */

typedef struct twin_vocabulary {
    hdl_tokenizer *tokenizer;
    hdl_trie      *trie;
    uint32_t       count;
} twin_vocabulary;

/* GPT-2's letters for bytes. */
static inline size_t twin_letters(const char *bytes, size_t count, char *out) {
    size_t written = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t byte = (uint8_t)bytes[i];
        const bool same = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
        const uint32_t code = same ? byte : byte < 33 ? 256 + byte : byte < 161 ? 256 + 33 + byte - 127 : 323;
        if (code >= 128) out[written++] = (char)(0xC0 | code >> 6);
        out[written++] = (char)(code < 128 ? code : 0x80 | (code & 0x3F));
    }
    return written;
}

static inline twin_vocabulary twin_finish(twin_vocabulary v, const hdl_vocab_desc *desc) {
    hd_error error = { 0 };
    v.count = (uint32_t)desc->token_count;
    if (hdl_tokenizer_create(NULL, desc, &v.tokenizer, &error) ||
        hdl_trie_create(&hdl_default_allocator, v.tokenizer, v.count, NULL, 0, &v.trie, &error)) {
        fprintf(stderr, "%s\n", error.text);
        abort();
    }
    return v;
}

/* Byte-level: 256 bytes, which are their own ids, and words. */
static inline twin_vocabulary twin_vocabulary_make(const char *const *words, size_t word_count) {
    char letters[TWIN_TOKENS][64];
    hdl_span tokens[TWIN_TOKENS];
    for (uint32_t i = 0; i < 256 + word_count; i++) {
        const char byte = (char)i;
        const size_t count =
            i < 256 ? twin_letters(&byte, 1, letters[i]) : twin_letters(words[i - 256], strlen(words[i - 256]), letters[i]);
        tokens[i] = (hdl_span){ (const uint8_t *)letters[i], count };
    }
    return twin_finish((twin_vocabulary){ 0 }, &(hdl_vocab_desc){ .kind = HDL_VOCAB_BYTES,
                                                                  .pre = "gpt-2",
                                                                  .tokens = tokens,
                                                                  .token_count = 256 + word_count,
                                                                  .bos = HDL_NO_TOKEN,
                                                                  .eos = HDL_NO_TOKEN,
                                                                  .unknown = HDL_NO_TOKEN });
}

/* One that cannot spell all: a token for what is unknown, printing ASCII, two bytes of the three of U+20AC, and words. */
static inline twin_vocabulary twin_poor_vocabulary(const char *const *words, size_t word_count) {
    char letters[TWIN_TOKENS][64];
    hdl_span tokens[TWIN_TOKENS] = { hdl_text("<unk>") };
    int32_t types[TWIN_TOKENS] = { HDL_TOKEN_UNKNOWN };
    size_t count = 1;
    for (uint32_t i = 0; i < 256 + word_count; i++) {
        const char byte = (char)i;
        if (i < 256 && (i < 32 || i > 126) && i != 0xE2 && i != 0x82) continue;
        types[count] = HDL_TOKEN_NORMAL;
        tokens[count] = (hdl_span){ (const uint8_t *)letters[count],
                                    i < 256 ? twin_letters(&byte, 1, letters[count])
                                            : twin_letters(words[i - 256], strlen(words[i - 256]), letters[count]) };
        count++;
    }
    return twin_finish((twin_vocabulary){ 0 }, &(hdl_vocab_desc){ .kind = HDL_VOCAB_BYTES,
                                                                  .pre = "gpt-2",
                                                                  .tokens = tokens,
                                                                  .token_count = count,
                                                                  .types = types,
                                                                  .type_count = count,
                                                                  .bos = HDL_NO_TOKEN,
                                                                  .eos = HDL_NO_TOKEN,
                                                                  .unknown = 0 });
}

static inline void twin_vocabulary_free(twin_vocabulary *v) {
    hdl_trie_destroy(v->trie);
    hdl_tokenizer_destroy(v->tokenizer);
}

/* The tokens of a mask, in order; returns how many. */
static inline uint32_t twin_allowed(const uint32_t *bits, uint32_t count, uint32_t *out) {
    uint32_t set = 0;
    for (uint32_t i = 0; i < (count + 31) / 32; i++)
        for (uint32_t left = bits[i]; left; left &= left - 1) out[set++] = 32 * i + (uint32_t)__builtin_ctz(left);
    return set;
}

/* Where `node` can end that begins at any of `from`: bit i for the place before byte i. */
static inline uint64_t twin_ends(const hdl_grammar *g, uint32_t number, const char *text, size_t count, uint64_t from) {
    const hdl_node *node = &g->nodes[number];
    uint64_t out = 0, next = from;
    if (!from) return 0;
    switch (node->kind) {
    case HDL_NODE_CHARACTERS:
        for (size_t at = 0; at < count; at++) {
            uint32_t code;
            const uint32_t length = hdl_utf8_read((const uint8_t *)text + at, count - at, &code);
            if (!(from >> at & 1) || code == HDL_UTF8_INVALID) continue;
            for (uint32_t i = 0; i < node->count; i++)
                if (code >= g->ranges[node->first + i].low && code <= g->ranges[node->first + i].high)
                    out |= UINT64_C(1) << (at + length);
        }
        return out;
    case HDL_NODE_SEQUENCE:
        for (uint32_t i = node->first; i; i = g->nodes[i].next) next = twin_ends(g, i, text, count, next);
        return next;
    case HDL_NODE_CHOICE:
        for (uint32_t i = node->first; i; i = g->nodes[i].next) out |= twin_ends(g, i, text, count, from);
        return out;
    case HDL_NODE_RULE: return twin_ends(g, g->rules[node->first].node, text, count, from);
    case HDL_NODE_FRAME: return 0; /* no text has one */
    case HDL_NODE_REPEAT: break;
    }
    for (uint32_t i = 0; i < node->count; i++) next = twin_ends(g, node->first, text, count, next);
    out = next;
    for (uint32_t i = node->count; i < node->most; i++) {
        next = twin_ends(g, node->first, text, count, next);
        if ((out | next) == out) break; /* once more comes to nothing new */
        out |= next;
    }
    return out;
}

static inline bool twin_has_form(const hdl_grammar *g, const char *text, size_t count) {
    return twin_ends(g, g->rules[g->root].node, text, count, 1) >> count & 1;
}

#endif
