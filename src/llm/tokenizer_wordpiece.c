/* tokenizer_wordpiece.c: WordPiece as BERT has it (arXiv 1810.04805): words are cut at spaces, punctuation and
 * ideographs, written in small letters without accents where the vocabulary is so, and spelled with the longest pieces,
 * from left to right. A word that cannot be spelled, or is too long, is one unknown token. In the pool a piece that
 * begins a word has a space in front. */
#include "llm/tokenizer_inside.h"
#include "llm/utf8.h"
#include <stdlib.h>

typedef struct range { uint32_t low, high; } range;
/* Every step-th character of the range moves by as much. */
typedef struct move { range of; uint32_t step; int32_t by; } move;
/* What one character becomes, ended by 0. */
typedef struct parts { range of; uint32_t to[3]; } parts;
/* Unicode's canonical combining class. */
typedef struct mark_order { range of; uint32_t order; } mark_order;

#include "llm/unicode_wordpiece.inc"

/* Characters of a word, which the reference programs bound as well. */
enum { MOST_CHARS = 100, MOST_BYTES = 1 + 4 * MOST_CHARS };

typedef struct word {
    uint32_t codes[MOST_CHARS];
    uint32_t count; /* above MOST_CHARS: it is too long */
} word;

/* ---- characters ---- */

static int compare(const void *code_at, const void *range_at) {
    const uint32_t code = *(const uint32_t *)code_at;
    const range *r = range_at;
    return code < r->low ? -1 : code > r->high;
}
/* The row of a table that has the character, or NULL. */
#define FIND(table, code) bsearch(&(code), table, sizeof table / sizeof *table, sizeof *table, compare)

static uint32_t moved(const move *m, uint32_t code) {
    return m && (code - m->of.low) % m->step == 0 ? code + (uint32_t)m->by : code;
}
static uint32_t order_of(uint32_t code) {
    const mark_order *found = FIND(orders, code);
    return found ? found->order : 0;
}

/* What the character is made of, without its accents: up to three, and how many. */
static uint32_t without_accents(uint32_t code, uint32_t out[3]) {
    enum { HANGUL = 0xAC00, HANGUL_END = 0xD7A4, VOWELS = 21, TRAILS = 28 };
    if (code >= HANGUL && code < HANGUL_END) { /* syllables are made by arithmetic */
        const uint32_t nth = code - HANGUL, trail = nth % TRAILS;
        out[0] = 0x1100 + nth / (VOWELS * TRAILS);
        out[1] = 0x1161 + nth / TRAILS % VOWELS;
        out[2] = 0x11A7 + trail;
        return trail ? 3 : 2;
    }
    const parts *found = FIND(several, code);
    if (found) {
        memcpy(out, found->to, sizeof found->to);
        return out[2] ? 3 : 2;
    }
    out[0] = moved(FIND(bases, code), code);
    return FIND(marks, code) ? 0 : 1;
}

/* ---- words ---- */

/* Bytes of the longest piece that the text begins with; 0: there is none. */
static size_t longest_piece(const hdl_tokenizer *t, const uint8_t *text, size_t bytes, int32_t *out_id) {
    size_t longest = t->texts.longest[text[0]], found = 0;
    uint64_t hash = HDL_HASH_START;
    if (longest > bytes) longest = bytes;
    for (size_t count = 1; count <= longest; count++) {
        hash = hdl_hash(hash, text[count - 1]);
        const int32_t id = hdl_text_table_probe(t, &t->texts, hash, text, count);
        if (id == HDL_NO_TOKEN) continue;
        *out_id = id;
        found = count;
    }
    return found;
}

static size_t spell(const word *w, uint8_t out[MOST_BYTES]) {
    size_t bytes = 0;
    out[bytes++] = ' ';
    for (uint32_t i = 0; i < w->count; i++) bytes += hdl_utf8_write(w->codes[i], out + bytes);
    return bytes;
}

static bool end_word(hdl_tokenizing *run, word *w) {
    uint8_t text[MOST_BYTES];
    int32_t ids[MOST_BYTES];
    size_t found = 0, bytes = 0;
    if (w->count == 0) return true;
    bool known = w->count <= MOST_CHARS;
    if (known) bytes = spell(w, text);
    w->count = 0;
    for (size_t at = 0, count; at < bytes && known; at += count) {
        count = longest_piece(run->t, text + at, bytes - at, &ids[found++]);
        known = count > 0;
    }
    if (!known) return hdl_emit(run, run->t->unknown);
    for (size_t i = 0; i < found; i++)
        if (!hdl_emit(run, ids[i])) return false;
    return true;
}

/* Adds a character to the word; marks that are left stand in their canonical order. */
static void add(word *w, uint32_t code, bool ordered) {
    uint32_t at = w->count++;
    if (at >= MOST_CHARS) {
        w->count = MOST_CHARS + 1;
        return;
    }
    const uint32_t order = ordered ? order_of(code) : 0;
    for (; order && at > 0 && order_of(w->codes[at - 1]) > order; at--) w->codes[at] = w->codes[at - 1];
    w->codes[at] = code;
}

static bool take(hdl_tokenizing *run, word *w, uint32_t code) {
    enum { DOTTED_I = 0x130, DOT = 0x307 }; /* the only one that is two small ones */
    const bool ordered = run->t->strip_accents, dotted = run->t->lowercase && code == DOTTED_I;
    if (run->t->lowercase) code = moved(FIND(small, code), code);
    const bool alone = FIND(punctuation, code) != NULL;
    if (alone && !end_word(run, w)) return false;
    add(w, code, ordered);
    if (dotted) add(w, DOT, ordered);
    return !alone || end_word(run, w);
}

bool hdl_wordpiece(hdl_tokenizing *run, const uint8_t *text, size_t bytes) {
    word w = { .count = 0 };
    for (size_t at = 0; at < bytes;) {
        uint32_t code, of[3], count = 1;
        at += hdl_utf8_read(text + at, bytes - at, &code);
        if (code == HDL_UTF8_INVALID || FIND(dropped, code)) continue;
        const bool space = FIND(spaces, code) != NULL, alone = space || FIND(ideographs, code);
        if (alone && !end_word(run, &w)) return false;
        if (space) continue;
        if (run->t->strip_accents) count = without_accents(code, of);
        else of[0] = code;
        for (uint32_t i = 0; i < count; i++)
            if (!take(run, &w, of[i])) return false;
        if (alone && !end_word(run, &w)) return false;
    }
    return end_word(run, &w);
}
