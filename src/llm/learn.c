/* learn.c: a byte-level vocabulary learned from a text (byte pair encoding; Sennrich and others, 2016): within words
 * as GPT-2's pattern cuts them, the pair of neighbours that stands in the text most often becomes a token, again and
 * again. Of pairs that are as frequent that one comes first whose left token was made first, then whose right one was;
 * bytes come in the order of the letters that GPT-2's map writes them as. Words are counted once, and a merge visits
 * only where its pair stands. What ends a document cuts the text, and is one token, the last one. */
#include "llm/model.h"
#include "llm/tokenizer_words.h"
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 256, MOST_SYMBOLS = 1 << 25, MOST_TOKEN_BYTES = 1024, LEAST = 2, LEAST_SLOTS = 1024 };
#define NONE UINT32_MAX

/* A byte, or what pairs became, in one of the words; NONE: it is a part of the one before. */
typedef struct symbol {
    uint32_t token, before, next; /* neighbours within the word; NONE: there is none */
    uint32_t word;
} symbol;

/* A pair of tokens: how often it stands in the text, and where, the last place first; some of which may have gone. */
typedef struct pair {
    uint32_t left, right;
    uint64_t count;
    uint32_t places; /* in the list of places */
    bool     touched;
} pair;
typedef struct place { uint32_t symbol, next; } place;
/* An entry of the heap: what the pair's count was. */
typedef struct entry { uint64_t count; uint32_t pair; } entry;
typedef struct part { uint32_t at, bytes; } part; /* of the texts */
typedef struct merge { uint32_t left, right; } merge;

typedef struct learning {
    const hd_allocator *allocator;
    const uint8_t *text;
    hdl_span   end;        /* of a document; empty: there is no such token */
    uint32_t   letters[BYTES], orders[BYTES];
    hdl_index  index;      /* of words */
    hdl_span  *words;
    uint32_t  *counts;     /* of words */
    size_t     word_room, count_room;
    symbol    *symbols;
    size_t     symbol_count, symbol_room;
    pair      *pairs;
    size_t     pair_count, pair_room;
    uint32_t  *slots;      /* of pairs: a number + 1, open addressing, at most half full */
    size_t     slot_count;
    place     *places;
    size_t     place_count, place_room;
    entry     *heap;
    size_t     heap_count, heap_room;
    uint32_t  *touched;    /* pairs that became more frequent by a merge */
    size_t     touched_count, touched_room;
    uint32_t  *work;       /* places of a merge, in order */
    size_t     work_room;
    uint8_t   *texts;      /* of tokens, one behind the other */
    size_t     text_count, text_room;
    part      *tokens;
    size_t     token_count, token_room;
    hdl_index  token_index;
    merge     *merges;
    size_t     merge_count, merge_room;
} learning;

#define GROW(l, list, room, count) hdl_grow((l)->allocator, &(l)->list, &(l)->room, (count), sizeof *(l)->list)

/* ---- bytes as GPT-2's map writes them ---- */

static bool is_seen(uint32_t byte) { return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD); }

/* The letter of a byte: its own where it can be seen, else one from 256 on. And the bytes' order by their letters. */
static void begin_letters(learning *l) {
    uint32_t seen = 0, hidden = 0;
    for (uint32_t i = 0; i < BYTES; i++) l->letters[i] = is_seen(i) ? i : BYTES + hidden++;
    for (uint32_t i = 0; i < BYTES; i++)
        if (is_seen(i)) l->orders[i] = seen++;
    for (uint32_t i = 0; i < BYTES; i++)
        if (!is_seen(i)) l->orders[i] = seen + l->letters[i] - BYTES;
}

/* Which of two pairs that are as frequent comes first hangs on this. */
static uint32_t order_of(const learning *l, uint32_t token) { return token < BYTES ? l->orders[token] : token; }

/* ---- words ---- */

static hdl_span word_at(const void *owner, uint32_t number) { return ((const learning *)owner)->words[number]; }

static hd_status no_memory(hd_error *error) {
    return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to learn a vocabulary");
}

static bool count_word(learning *l, hdl_span word) {
    const int64_t found = hdl_index_find(&l->index, word, word_at, l);
    if (found >= 0) return ++l->counts[found] > 0;
    const uint32_t number = l->index.count;
    if (!GROW(l, words, word_room, number + (size_t)1) || !GROW(l, counts, count_room, number + (size_t)1))
        return false;
    l->words[number] = word;
    l->counts[number] = 1;
    return hdl_index_reserve(&l->index, l->allocator, number + 1, word_at, l) && hdl_index_add(&l->index, word_at, l);
}

/* Where the document that begins there ends. */
static size_t document_end(const learning *l, size_t at, size_t bytes) {
    return l->end.count ? at + (size_t)hdl_position((hdl_span){ l->text + at, bytes - at }, l->end) : bytes;
}

static bool count_document(learning *l, const hdl_word_rule *rule, hdl_span text) {
    hdl_words words = { .rule = rule, .text = text.bytes, .bytes = (size_t)text.count };
    bool good = true;
    for (size_t at = 0, end = 0; good && hdl_words_next(&words, &end); at = end)
        good = count_word(l, (hdl_span){ text.bytes + at, end - at });
    return good;
}

static hd_status count_words(learning *l, size_t bytes, hd_error *error) {
    hdl_word_rule *rule = hdl_alloc(l->allocator, sizeof *rule);
    if (!rule) return no_memory(error);
    bool good = hdl_words_find("gpt-2", rule);
    for (size_t at = 0; good && at < bytes;) {
        const size_t end = document_end(l, at, bytes);
        good = count_document(l, rule, (hdl_span){ l->text + at, end - at });
        at = end + (size_t)l->end.count;
    }
    hdl_free(l->allocator, rule, sizeof *rule);
    return good ? HD_OK : no_memory(error);
}

/* ---- pairs ---- */

static uint64_t slot_of(const learning *l, uint32_t left, uint32_t right) {
    const uint64_t mixed = ((uint64_t)left << 32 | right) * UINT64_C(0x9E3779B97F4A7C15);
    uint64_t at = (mixed ^ mixed >> 29) & (l->slot_count - 1);
    while (l->slots[at] && (l->pairs[l->slots[at] - 1].left != left || l->pairs[l->slots[at] - 1].right != right))
        at = (at + 1) & (l->slot_count - 1);
    return at;
}

static bool more_slots(learning *l) {
    const size_t count = l->slot_count ? 2 * l->slot_count : LEAST_SLOTS;
    uint32_t *slots = hdl_alloc(l->allocator, count * sizeof *slots);
    if (!slots) return false;
    hdl_free(l->allocator, l->slots, l->slot_count * sizeof *slots);
    l->slots = slots;
    l->slot_count = count;
    for (size_t i = 0; i < l->pair_count; i++) slots[slot_of(l, l->pairs[i].left, l->pairs[i].right)] = (uint32_t)i + 1;
    return true;
}

/* The pair that begins with the symbol stands there now; so often as the word does. */
static bool add_place(learning *l, uint32_t at) {
    const uint32_t left = l->symbols[at].token, right = l->symbols[l->symbols[at].next].token;
    if (2 * (l->pair_count + 1) > l->slot_count && !more_slots(l)) return false;
    if (!GROW(l, pairs, pair_room, l->pair_count + 1) || !GROW(l, places, place_room, l->place_count + 1) ||
        !GROW(l, touched, touched_room, l->touched_count + 1) || l->place_count >= NONE)
        return false;
    uint32_t *slot = &l->slots[slot_of(l, left, right)];
    if (*slot == 0) {
        l->pairs[l->pair_count++] = (pair){ .left = left, .right = right, .places = NONE };
        *slot = (uint32_t)l->pair_count;
    }
    pair *one = &l->pairs[*slot - 1];
    one->count += l->counts[l->symbols[at].word];
    l->places[l->place_count] = (place){ at, one->places };
    one->places = (uint32_t)l->place_count++;
    if (!one->touched) l->touched[l->touched_count++] = *slot - 1;
    one->touched = true;
    return true;
}

/* And stands there no more. */
static void remove_place(const learning *l, uint32_t at) {
    const symbol *first = &l->symbols[at];
    l->pairs[l->slots[slot_of(l, first->token, l->symbols[first->next].token)] - 1].count -= l->counts[first->word];
}

/* ---- the most frequent pair ---- */

static bool is_before(const learning *l, const entry *a, const entry *b) {
    const pair *p = &l->pairs[a->pair], *q = &l->pairs[b->pair];
    if (a->count != b->count) return a->count > b->count;
    if (p->left != q->left) return order_of(l, p->left) < order_of(l, q->left);
    return order_of(l, p->right) < order_of(l, q->right);
}

static bool push(learning *l, uint32_t number) {
    const entry new = { l->pairs[number].count, number };
    if (!GROW(l, heap, heap_room, l->heap_count + 1)) return false;
    size_t at = l->heap_count++;
    for (; at > 0 && is_before(l, &new, &l->heap[(at - 1) / 2]); at = (at - 1) / 2) l->heap[at] = l->heap[(at - 1) / 2];
    l->heap[at] = new;
    return true;
}

static entry pop(learning *l) {
    const entry top = l->heap[0], last = l->heap[--l->heap_count];
    size_t at = 0;
    for (size_t child = 1; child < l->heap_count; child = 2 * at + 1) {
        if (child + 1 < l->heap_count && is_before(l, &l->heap[child + 1], &l->heap[child])) child++;
        if (!is_before(l, &l->heap[child], &last)) break;
        l->heap[at] = l->heap[child];
        at = child;
    }
    if (l->heap_count > 0) l->heap[at] = last;
    return top;
}

/* All pairs that became more frequent wait for their turn. */
static bool push_touched(learning *l) {
    for (size_t i = 0; i < l->touched_count; i++) {
        l->pairs[l->touched[i]].touched = false;
        if (!push(l, l->touched[i])) return false;
    }
    l->touched_count = 0;
    return true;
}

/* ---- tokens ---- */

static hdl_span token_at(const void *owner, uint32_t number) {
    const learning *l = owner;
    return (hdl_span){ l->texts + l->tokens[number].at, l->tokens[number].bytes };
}

/* The token of two texts, which may be there already. */
static bool token_of(learning *l, hdl_span left, hdl_span right, uint32_t *out) {
    const size_t bytes = (size_t)(left.count + right.count);
    const size_t left_at = (size_t)(left.bytes - l->texts), right_at = (size_t)(right.bytes - l->texts);
    if (l->text_count + bytes > HDL_MAX_VOCAB_BYTES || !GROW(l, texts, text_room, l->text_count + bytes) ||
        !GROW(l, tokens, token_room, l->token_count + 1))
        return false;
    memcpy(l->texts + l->text_count, l->texts + left_at, (size_t)left.count);
    memcpy(l->texts + l->text_count + left.count, l->texts + right_at, (size_t)right.count);
    const int64_t found =
        hdl_index_find(&l->token_index, (hdl_span){ l->texts + l->text_count, bytes }, token_at, l);
    *out = found >= 0 ? (uint32_t)found : (uint32_t)l->token_count;
    if (found >= 0) return true;
    l->tokens[l->token_count++] = (part){ (uint32_t)l->text_count, (uint32_t)bytes };
    l->text_count += bytes;
    return hdl_index_reserve(&l->token_index, l->allocator, *out + 1, token_at, l) &&
           hdl_index_add(&l->token_index, token_at, l);
}

static bool begin_tokens(learning *l) {
    if (!GROW(l, texts, text_room, BYTES) || !GROW(l, tokens, token_room, BYTES) ||
        !hdl_index_reserve(&l->token_index, l->allocator, BYTES, token_at, l))
        return false;
    for (uint32_t i = 0; i < BYTES; i++) {
        l->texts[l->text_count++] = (uint8_t)i;
        l->tokens[l->token_count++] = (part){ i, 1 };
        hdl_index_add(&l->token_index, token_at, l);
    }
    return true;
}

static bool begin_symbols(learning *l) {
    for (uint32_t w = 0; w < l->index.count; w++) {
        const hdl_span word = l->words[w];
        const size_t begin = l->symbol_count;
        if (!GROW(l, symbols, symbol_room, begin + (size_t)word.count)) return false;
        for (size_t i = 0; i < word.count; i++) {
            const uint32_t at = (uint32_t)(begin + i);
            l->symbols[at] = (symbol){ word.bytes[i], i > 0 ? at - 1 : NONE, i + 1 < word.count ? at + 1 : NONE, w };
        }
        l->symbol_count += (size_t)word.count;
        for (size_t at = begin; at + 1 < l->symbol_count; at++)
            if (!add_place(l, (uint32_t)at)) return false;
    }
    return push_touched(l);
}

/* ---- merges ---- */

static int ascending(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static bool merge_at(learning *l, uint32_t at, merge what, uint32_t becomes) {
    symbol *first = &l->symbols[at];
    if (first->token != what.left || first->next == NONE || l->symbols[first->next].token != what.right) return true;
    symbol *second = &l->symbols[first->next];
    remove_place(l, at);
    if (first->before != NONE) remove_place(l, first->before);
    if (second->next != NONE) remove_place(l, first->next);
    first->token = becomes;
    first->next = second->next;
    second->token = NONE;
    if (first->next != NONE) l->symbols[first->next].before = at;
    return (first->before == NONE || add_place(l, first->before)) && (first->next == NONE || add_place(l, at));
}

/* Merges a pair wherever it stands, from the text's first word on. */
static bool take(learning *l, uint32_t number) {
    const merge what = { l->pairs[number].left, l->pairs[number].right };
    uint32_t becomes;
    size_t count = 0;
    if (!token_of(l, token_at(l, what.left), token_at(l, what.right), &becomes) ||
        !GROW(l, merges, merge_room, l->merge_count + 1))
        return false;
    l->merges[l->merge_count++] = what;
    for (uint32_t at = l->pairs[number].places; at != NONE; at = l->places[at].next) {
        if (!GROW(l, work, work_room, count + 1)) return false;
        l->work[count++] = l->places[at].symbol;
    }
    l->pairs[number].places = NONE;
    if (count > 0) qsort(l->work, count, sizeof *l->work, ascending);
    for (size_t i = 0; i < count; i++)
        if (!merge_at(l, l->work[i], what, becomes)) return false;
    return push_touched(l);
}

static hd_status learn(learning *l, uint32_t vocabulary, hd_error *error) {
    uint64_t bytes = 0;
    for (uint32_t w = 0; w < l->index.count; w++) bytes += l->words[w].count;
    if (bytes > MOST_SYMBOLS)
        return hdl_fail(error, HD_STATUS_LIMIT, "the text's words, each once, have %llu bytes: at most 32 MiB can be "
                        "learned from", (unsigned long long)bytes);
    begin_letters(l);
    if (!begin_tokens(l) || !begin_symbols(l)) return no_memory(error);
    const uint32_t most = vocabulary - (l->end.count > 0);
    while (l->token_count < most && l->merge_count < HDL_MAX_MERGES && l->heap_count > 0) {
        const entry top = pop(l);
        const pair *one = &l->pairs[top.pair];
        if (one->count < LEAST || l->tokens[one->left].bytes + l->tokens[one->right].bytes > MOST_TOKEN_BYTES) continue;
        if (one->count < top.count && !push(l, top.pair)) return no_memory(error); /* it has become rarer since */
        if (one->count == top.count && !take(l, top.pair)) return no_memory(error);
    }
    return HD_OK;
}

/* ---- as a tokenizer ---- */

/* Texts of GGUF that are put together one after the other, each with an ending zero. */
typedef struct spelling {
    const char **texts;
    char        *bytes;
    size_t       count, used, room;
} spelling;

static bool begin_spelling(const learning *l, spelling *s, size_t count, size_t room) {
    *s = (spelling){ .count = count, .room = room };
    s->texts = hdl_alloc(l->allocator, count * sizeof *s->texts);
    s->bytes = hdl_alloc(l->allocator, room);
    return s->texts && s->bytes;
}
static void end_spelling(const learning *l, spelling *s) {
    hdl_free(l->allocator, s->texts, s->count * sizeof *s->texts);
    hdl_free(l->allocator, s->bytes, s->room);
}

static void spell(const learning *l, spelling *s, hdl_span token, char behind) {
    for (uint64_t i = 0; i < token.count; i++) {
        const uint32_t letter = l->letters[token.bytes[i]];
        if (letter >= 0x80) s->bytes[s->used++] = (char)(0xC0 | letter >> 6);
        s->bytes[s->used++] = (char)(letter < 0x80 ? letter : 0x80 | (letter & 0x3F));
    }
    s->bytes[s->used++] = behind;
}

static bool put_tokens(const learning *l, hd_model_writer *writer, uint32_t vocabulary) {
    enum { UNUSED_ROOM = 16 };
    spelling s;
    int32_t *types = hdl_alloc(l->allocator, vocabulary * sizeof *types);
    const bool good = begin_spelling(l, &s, vocabulary, 2 * l->text_count + (size_t)vocabulary * UNUSED_ROOM) && types;
    for (uint32_t i = 0; i < vocabulary && good; i++) {
        const bool learned = i < l->token_count;
        if (l->end.count > 0 && i == vocabulary - 1) {
            s.texts[i] = (const char *)l->end.bytes;
            types[i] = HDL_TOKEN_CONTROL;
            break;
        }
        s.texts[i] = s.bytes + s.used;
        types[i] = learned ? HDL_TOKEN_NORMAL : HDL_TOKEN_UNUSED;
        if (learned) spell(l, &s, token_at(l, i), 0);
        else s.used += 1 + (size_t)snprintf(s.bytes + s.used, UNUSED_ROOM, "[PAD%u]", (unsigned)i);
    }
    if (good) hd_model_writer_texts(writer, "tokenizer.ggml.tokens", s.texts, vocabulary);
    if (good) hd_model_writer_i32s(writer, "tokenizer.ggml.token_type", types, vocabulary);
    end_spelling(l, &s);
    hdl_free(l->allocator, types, vocabulary * sizeof *types);
    return good;
}

static bool put_merges(const learning *l, hd_model_writer *writer) {
    spelling s;
    size_t room = 0;
    for (size_t i = 0; i < l->merge_count; i++)
        room += 2 * (l->tokens[l->merges[i].left].bytes + l->tokens[l->merges[i].right].bytes) + 2;
    const bool good = begin_spelling(l, &s, l->merge_count, room);
    for (size_t i = 0; i < l->merge_count && good; i++) {
        s.texts[i] = s.bytes + s.used;
        spell(l, &s, token_at(l, l->merges[i].left), ' ');
        spell(l, &s, token_at(l, l->merges[i].right), 0);
    }
    if (good) hd_model_writer_texts(writer, "tokenizer.ggml.merges", s.texts, l->merge_count);
    end_spelling(l, &s);
    return good;
}

static bool put_vocabulary(const learning *l, hd_model_writer *writer, uint32_t vocabulary) {
    hd_model_writer_text(writer, "tokenizer.ggml.model", "gpt2", strlen("gpt2"));
    hd_model_writer_text(writer, "tokenizer.ggml.pre", "gpt-2", strlen("gpt-2"));
    if (l->end.count > 0) {
        hd_model_writer_u32(writer, "tokenizer.ggml.bos_token_id", vocabulary - 1);
        hd_model_writer_u32(writer, "tokenizer.ggml.eos_token_id", vocabulary - 1);
        hd_model_writer_bool(writer, "tokenizer.ggml.add_bos_token", false);
    }
    return put_tokens(l, writer, vocabulary) && put_merges(l, writer);
}

static void end(learning *l) {
    const hd_allocator *a = l->allocator;
    hdl_index_free(&l->index, a);
    hdl_index_free(&l->token_index, a);
    hdl_free(a, l->words, l->word_room * sizeof *l->words);
    hdl_free(a, l->counts, l->count_room * sizeof *l->counts);
    hdl_free(a, l->symbols, l->symbol_room * sizeof *l->symbols);
    hdl_free(a, l->pairs, l->pair_room * sizeof *l->pairs);
    hdl_free(a, l->slots, l->slot_count * sizeof *l->slots);
    hdl_free(a, l->places, l->place_room * sizeof *l->places);
    hdl_free(a, l->heap, l->heap_room * sizeof *l->heap);
    hdl_free(a, l->touched, l->touched_room * sizeof *l->touched);
    hdl_free(a, l->work, l->work_room * sizeof *l->work);
    hdl_free(a, l->texts, l->text_room);
    hdl_free(a, l->tokens, l->token_room * sizeof *l->tokens);
    hdl_free(a, l->merges, l->merge_room * sizeof *l->merges);
}

hd_status hd_tokenizer_learn(hd_context *context, const char *text, size_t bytes, uint32_t vocabulary,
                             const char *end_text, hd_model **out_model) {
    if (out_model) *out_model = NULL;
    hd_status status = hdl_context_lives(context);
    if (status || !out_model || (!text && bytes)) return status ? status : HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    const hd_allocator allocator = hd_context_allocator(context);
    learning l = {
        .allocator = &allocator, .text = (const uint8_t *)text, .end = hdl_text(end_text ? end_text : "")
    };
    const uint32_t least = BYTES + (l.end.count > 0);
    hdl_random_key(l.index.key);
    hdl_random_key(l.token_index.key);
    hd_model_writer *writer = NULL;
    if (vocabulary < least || vocabulary > HDL_MAX_TOKENS || bytes > HDL_MAX_TEXT_BYTES)
        status = hdl_fail(&error, HD_STATUS_LIMIT, "a vocabulary of %u tokens from %zu bytes: %u to %u, from at most "
                          "256 MiB, can be learned", vocabulary, bytes, least, HDL_MAX_TOKENS);
    if (!status) status = count_words(&l, bytes, &error);
    if (!status) status = learn(&l, vocabulary, &error);
    if (status) hd_context_put_error(context, &error);
    if (!status) status = hd_model_writer_create(context, &writer);
    if (!status && !put_vocabulary(&l, writer, vocabulary)) {
        status = no_memory(&error);
        hd_context_put_error(context, &error);
    }
    end(&l);
    if (!status) status = hd_model_writer_sketch(writer, &(hd_model_desc){ .tokenizer_only = 1 }, out_model);
    hd_model_writer_destroy(writer);
    return status;
}
