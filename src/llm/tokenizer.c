/* tokenizer.c: text to ids. Control and user tokens are found first, the longest at each place; what lies between them
 * is cut into words (byte-level) or spelled as pieces are (SentencePiece) and handed to the vocabulary's own way. It
 * relies on the checks of tokenizer_vocab.c; any text is taken. The only failures are memory and the stated limit. */
#include "llm/tokenizer_inside.h"
#include "llm/utf8.h"

enum { UNIGRAM_PART_BYTES = 16384 };

static bool add_id(hdl_id_list *list, int32_t id) {
    if (!hdl_grow(&list->allocator, &list->ids, &list->capacity, list->count + 1, sizeof *list->ids)) return false;
    list->ids[list->count++] = id;
    return true;
}

void hdl_id_list_free(hdl_id_list *list) {
    if (list->ids) hdl_free(&list->allocator, list->ids, list->capacity * sizeof *list->ids);
    *list = (hdl_id_list){ .allocator = list->allocator };
}

hd_status hdl_id_list_copy(const hdl_id_list *list, int32_t *out_ids, size_t *inout_count, hd_error *error) {
    const size_t room = *inout_count, shown = list->count < room ? list->count : room;
    *inout_count = list->count;
    if (!out_ids) return HD_OK;
    if (shown) memcpy(out_ids, list->ids, shown * sizeof *out_ids);
    return shown == list->count ? HD_OK
                                : hdl_fail(error, HD_STATUS_LIMIT, "%zu tokens, room for %zu", list->count, room);
}

bool hdl_emit(hdl_tokenizing *run, int32_t id) {
    run->after_unknown = false;
    return add_id(run->list, id);
}

bool hdl_emit_unknown(hdl_tokenizing *run, const uint8_t *text, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        int32_t id = run->t->byte_ids[text[i]];
        if (id == HDL_NO_TOKEN && run->after_unknown) continue;
        run->after_unknown = id == HDL_NO_TOKEN;
        if (!add_id(run->list, id == HDL_NO_TOKEN ? run->t->unknown : id)) return false;
    }
    return true;
}

static bool plain_bytes(hdl_tokenizing *run, const uint8_t *text, size_t bytes) {
    hdl_words words = { .rule = &run->t->words, .text = text, .bytes = bytes };
    for (size_t begin = 0, end; hdl_words_next(&words, &end); begin = end) {
        int32_t whole = run->t->words.whole_words
                            ? hdl_text_table_find(run->t, &run->t->texts, text + begin, end - begin)
                            : HDL_NO_TOKEN;
        if (whole == HDL_NO_TOKEN ? !hdl_merge_word(run, text + begin, end - begin) : !hdl_emit(run, whole))
            return false;
    }
    return true;
}

/* Spells the text as pieces are spelled in the pool: U+2581 is a space, and what is not UTF-8 is U+FFFD. */
static bool spell(hdl_tokenizing *run, const uint8_t *text, size_t bytes, bool prefix, size_t *out_count) {
    if (!hdl_grow(run->allocator, &run->text, &run->text_capacity, bytes * 3 + 1, 1)) return false;
    uint8_t *out = run->text;
    size_t count = 0;
    if (prefix) out[count++] = ' ';
    for (size_t at = 0; at < bytes;) {
        uint32_t code, length = hdl_utf8_read(text + at, bytes - at, &code);
        if (code == 0x2581) {
            out[count++] = ' ';
        } else if (code == HDL_UTF8_INVALID) {
            memcpy(out + count, "\xEF\xBF\xBD", 3);
            count += 3;
        } else {
            memcpy(out + count, text + at, length);
            count += length;
        }
        at += length;
    }
    *out_count = count;
    return true;
}

/* Where no piece can reach over it, the begin of a word's spaces parts the work. A merge's ids stay the same; a
 * unigram's sums are kept short, since those of a long text would be rounded until close pieces cannot be told
 * apart. */
static bool plain_pieces(hdl_tokenizing *run, const uint8_t *text, size_t bytes, bool prefix) {
    bool unigram = run->t->kind == HDL_VOCAB_UNIGRAM;
    size_t count, least = unigram ? UNIGRAM_PART_BYTES : 1;
    if (!spell(run, text, bytes, prefix, &count)) return false;
    for (size_t begin = 0, end; begin < count; begin = end) {
        const uint8_t *part = run->text + begin;
        for (end = begin + 1; end < count; end++)
            if (end - begin >= least && run->t->cuts_at_spaces && run->text[end] == ' ' && run->text[end - 1] != ' ')
                break;
        if (unigram ? !hdl_unigram(run, part, end - begin) : !hdl_merge_word(run, part, end - begin)) return false;
    }
    return true;
}

static bool plain(hdl_tokenizing *run, const uint8_t *text, size_t bytes, bool prefix) {
    if (bytes == 0 && !prefix) return true;
    switch (run->t->kind) {
    case HDL_VOCAB_BYTES: return plain_bytes(run, text, bytes);
    case HDL_VOCAB_WORDPIECE: return hdl_wordpiece(run, text, bytes);
    default: return plain_pieces(run, text, bytes, prefix);
    }
}

/* The longest control or user token that begins at `at`; 0 bytes: none. */
static size_t seek(const hdl_tokenizer *t, const uint8_t *text, size_t bytes, size_t at, unsigned flags,
                   int32_t *out_id) {
    size_t longest = t->sought.longest[text[at]], found = 0;
    if (longest > bytes - at) longest = bytes - at;
    uint64_t hash = HDL_HASH_START;
    for (size_t count = 1; count <= longest; count++) {
        hash = hdl_hash(hash, text[at + count - 1]);
        int32_t id = hdl_text_table_probe(t, &t->sought, hash, text + at, count);
        if (id == HDL_NO_TOKEN || (t->types[id] != HDL_TOKEN_USER && !(flags & HDL_PARSE_SPECIAL))) continue;
        *out_id = id;
        found = count;
    }
    return found;
}

enum { GUARD_BYTES = sizeof HDL_GUARD - 1 };
static bool is_guard(const uint8_t *text, size_t bytes) {
    return bytes >= GUARD_BYTES && memcmp(text, HDL_GUARD, GUARD_BYTES) == 0;
}

/* Text between control tokens, as it was before it was guarded. */
static bool plain_guarded(hdl_tokenizing *run, const uint8_t *text, size_t bytes, bool prefix, unsigned flags) {
    if (!(flags & HDL_GUARDED) || bytes < GUARD_BYTES) return plain(run, text, bytes, prefix);
    if (!hdl_grow(run->allocator, &run->unguarded, &run->unguarded_capacity, bytes, 1)) return false;
    size_t count = 0;
    for (size_t at = 0; at < bytes; at++) {
        if (is_guard(text + at, bytes - at)) at += GUARD_BYTES - 1;
        else run->unguarded[count++] = text[at];
    }
    return plain(run, run->unguarded, count, prefix);
}

static bool tokenize(hdl_tokenizing *run, const uint8_t *text, size_t bytes, unsigned flags) {
    bool prefix = run->t->add_space_prefix;
    size_t begin = 0;
    for (size_t at = 0, count; at < bytes; at += count ? count : 1) {
        int32_t id = HDL_NO_TOKEN;
        count = seek(run->t, text, bytes, at, flags, &id);
        if (!count) continue;
        bool user = run->t->types[id] == HDL_TOKEN_USER;
        if (!plain_guarded(run, text + begin, at - begin, prefix && (user || at > begin), flags) || !hdl_emit(run, id))
            return false;
        begin = at + count;
        prefix = run->t->add_space_prefix && !user;
    }
    return begin == bytes || plain_guarded(run, text + begin, bytes - begin, prefix, flags);
}

hd_status hdl_guard_text(const hdl_tokenizer *t, const hd_allocator *allocator, hdl_span text, uint8_t **out_text,
                         uint64_t *out_bytes, hd_error *error) {
    if (text.count > HDL_MAX_TEXT_BYTES)
        return hdl_fail(error, HD_STATUS_LIMIT, "a text of %llu bytes; the limit is %u", (unsigned long long)text.count,
                        HDL_MAX_TEXT_BYTES);
    const size_t bytes = (size_t)text.count;
    uint8_t *out = NULL;
    for (int pass = 0; pass < 2; pass++) { /* the first one counts */
        size_t count = 0;
        for (size_t at = 0; at < bytes; at++) {
            int32_t id = HDL_NO_TOKEN;
            if (is_guard(text.bytes + at, bytes - at)) {
                at += GUARD_BYTES - 1;
                continue;
            }
            if (out) out[count] = text.bytes[at];
            count++;
            if (!seek(t, text.bytes, bytes, at, HDL_PARSE_SPECIAL, &id) || t->types[id] == HDL_TOKEN_USER) continue;
            if (out) memcpy(out + count, HDL_GUARD, GUARD_BYTES);
            count += GUARD_BYTES;
        }
        if (!out && !(out = hdl_alloc(allocator, count)))
            return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a text");
        *out_bytes = count;
    }
    *out_text = out;
    return HD_OK;
}

hd_status hdl_tokenize(const hdl_tokenizer *t, const void *text, size_t bytes, unsigned flags, hdl_id_list *list,
                       hd_error *error) {
    if (!t || !list || (bytes && !text))
        return hdl_fail(error, HD_STATUS_NULL_POINTER, "hdl_tokenize needs a tokenizer, a text and a list");
    if (bytes > HDL_MAX_TEXT_BYTES)
        return hdl_fail(error, HD_STATUS_LIMIT, "a text of %zu bytes; the limit is %u", bytes, HDL_MAX_TEXT_BYTES);
    if (!list->allocator.resize) list->allocator = hdl_default_allocator;
    size_t before = list->count;
    hdl_tokenizing run = { .t = t, .allocator = &list->allocator, .list = list };
    bool good = !(flags & HDL_ADD_SPECIAL) || !t->add_bos || add_id(list, t->bos);
    good = good && tokenize(&run, text, bytes, flags);
    good = good && (!(flags & HDL_ADD_SPECIAL) || !t->add_eos || add_id(list, t->eos));
    hdl_merge_free(&run);
    hdl_unigram_free(&run);
    hdl_free(run.allocator, run.text, run.text_capacity);
    hdl_free(run.allocator, run.unguarded, run.unguarded_capacity);
    if (good) return HD_OK;
    list->count = before;
    return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to tokenize %zu bytes", bytes);
}
