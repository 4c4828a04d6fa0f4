/* tokenizer_vocab.c: makes a tokenizer from its description. All checks of what a hostile file may hold are here, once:
 * whoever reads the vocabulary later relies on them. Every refusal names the field as GGUF does, with its place. What
 * is refused is never partly used; what is taken was copied, so nothing points into the description. */
#include "llm/tokenizer_inside.h"
#include "llm/utf8.h"
#include <math.h>

static hd_status bad(hd_error *error, const char *field, size_t at, const char *why) {
    return hdl_fail(error, HD_STATUS_PARSE, "tokenizer.ggml.%s[%zu]: %s", field, at, why);
}

static hd_status check_id(const hdl_vocab_desc *desc, int64_t id, const char *field, hd_error *error) {
    if (id == HDL_NO_TOKEN || (id >= 0 && (uint64_t)id < desc->token_count)) return HD_OK;
    return hdl_fail(error, HD_STATUS_PARSE, "tokenizer.ggml.%s is %lld, but there are %zu tokens", field, (long long)id,
                    desc->token_count);
}

static bool is_pieces(hdl_vocab_kind kind) { return kind == HDL_VOCAB_PIECES || kind == HDL_VOCAB_UNIGRAM; }

static hd_status check_lists(const hdl_vocab_desc *desc, hd_error *error) {
    bool pieces = is_pieces(desc->kind);
    if (!pieces && desc->kind != HDL_VOCAB_BYTES && desc->kind != HDL_VOCAB_WORDPIECE)
        return hdl_fail(error, HD_STATUS_PARSE, "tokenizer.ggml.model is none of the kinds that there are (%d)",
                        (int)desc->kind);
    if (desc->token_count == 0) return hdl_fail(error, HD_STATUS_PARSE, "tokenizer.ggml.tokens is empty");
    if (desc->token_count > HDL_MAX_TOKENS)
        return hdl_fail(error, HD_STATUS_LIMIT, "tokenizer.ggml.tokens has %zu tokens; the limit is %u",
                        desc->token_count, HDL_MAX_TOKENS);
    if (desc->merge_count > HDL_MAX_MERGES)
        return hdl_fail(error, HD_STATUS_LIMIT, "tokenizer.ggml.merges has %zu merges; the limit is %u",
                        desc->merge_count, HDL_MAX_MERGES);
    if (desc->type_count && desc->type_count != desc->token_count)
        return hdl_fail(error, HD_STATUS_PARSE, "tokenizer.ggml.token_type has %zu entries for %zu tokens",
                        desc->type_count, desc->token_count);
    if ((pieces || desc->score_count) && desc->score_count != desc->token_count)
        return hdl_fail(error, HD_STATUS_PARSE, "tokenizer.ggml.scores has %zu entries for %zu tokens",
                        desc->score_count, desc->token_count);
    if (!desc->tokens || (desc->type_count && !desc->types) || (pieces && !desc->scores) ||
        (desc->merge_count && !desc->merges))
        return hdl_fail(error, HD_STATUS_NULL_POINTER, "the vocabulary's description lacks a list that it counts");
    hd_status status = check_id(desc, desc->bos, "bos_token_id", error);
    if (!status) status = check_id(desc, desc->eos, "eos_token_id", error);
    if (!status) status = check_id(desc, desc->unknown, "unknown_token_id", error);
    if (status) return status;
    if (desc->kind == HDL_VOCAB_WORDPIECE && desc->unknown == HDL_NO_TOKEN)
        return hdl_fail(error, HD_STATUS_PARSE,
                        "tokenizer.ggml.unknown_token_id is missing: words that no pieces spell have no token");
    if (desc->add_bos && desc->bos == HDL_NO_TOKEN)
        return hdl_fail(error, HD_STATUS_PARSE,
                        "tokenizer.ggml.add_bos_token is set, but tokenizer.ggml.bos_token_id is missing");
    if (desc->add_eos && desc->eos == HDL_NO_TOKEN)
        return hdl_fail(error, HD_STATUS_PARSE,
                        "tokenizer.ggml.add_eos_token is set, but tokenizer.ggml.eos_token_id is missing");
    return HD_OK;
}

static hd_status check_tokens(const hdl_vocab_desc *desc, size_t *out_bytes, hd_error *error) {
    *out_bytes = 0;
    for (size_t i = 0; i < desc->token_count; i++) {
        size_t count = desc->tokens[i].count;
        if (count > HDL_MAX_TOKEN_BYTES)
            return hdl_fail(error, HD_STATUS_LIMIT, "tokenizer.ggml.tokens[%zu] has %zu bytes; the limit is %u", i,
                            count, HDL_MAX_TOKEN_BYTES);
        if (count && !desc->tokens[i].bytes) return bad(error, "tokens", i, "its bytes are missing");
        *out_bytes += count; /* cannot wrap: the number and the length of tokens have limits */
        if (*out_bytes > HDL_MAX_VOCAB_BYTES)
            return hdl_fail(error, HD_STATUS_LIMIT, "tokenizer.ggml.tokens[%zu]: more than %u bytes of tokens", i,
                            HDL_MAX_VOCAB_BYTES);
        if (desc->type_count && (desc->types[i] < HDL_TOKEN_NORMAL || desc->types[i] > HDL_TOKEN_BYTE))
            return bad(error, "token_type", i, "no such type of token");
        if (is_pieces(desc->kind) && !isfinite(desc->scores[i]))
            return bad(error, "scores", i, "not a finite number");
    }
    return HD_OK;
}

/* GPT-2's map: bytes that print stand for themselves, the 68 others for the codes from 256 on. -1: no byte. */
static int byte_of_code(uint32_t code) {
    if ((code >= 33 && code <= 126) || (code >= 161 && code <= 172) || (code >= 174 && code <= 255)) return (int)code;
    if (code < 256 || code > 256 + 67) return -1;
    uint32_t nth = code - 256;
    return nth <= 32 ? (int)nth : nth <= 66 ? (int)(127 + nth - 33) : 173;
}

/* Writes the bytes that a text in GPT-2's map stands for; false where it holds anything else. */
static bool decode_bytes(hdl_span text, uint8_t *out, size_t *out_count) {
    const uint8_t *bytes = text.bytes;
    *out_count = 0;
    for (size_t at = 0; at < text.count;) {
        uint32_t code;
        at += hdl_utf8_read(bytes + at, text.count - at, &code);
        int byte = byte_of_code(code);
        if (byte < 0) return false;
        out[(*out_count)++] = (uint8_t)byte;
    }
    return true;
}

/* Copies a piece with plain spaces in place of U+2581: of all, or of the one that begins a word. */
static size_t decode_piece(hdl_vocab_kind kind, hdl_span text, uint8_t *out) {
    const uint8_t *bytes = text.bytes;
    const bool all = is_pieces(kind), first = text.count > 3;
    size_t count = 0;
    for (size_t at = 0; at < text.count;) {
        bool space = (all || (first && at == 0)) && text.count - at >= 3 &&
                     memcmp(bytes + at, "\xE2\x96\x81", 3) == 0;
        out[count++] = space ? ' ' : bytes[at];
        at += space ? 3 : 1;
    }
    return count;
}

static int hex_digit(uint8_t c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; }

/* The byte that "<0x0A>" names, or -1. */
static int decode_byte_token(hdl_span text) {
    const uint8_t *c = text.bytes;
    if (text.count != 6 || memcmp(c, "<0x", 3) != 0 || c[5] != '>' || hex_digit(c[3]) < 0 || hex_digit(c[4]) < 0)
        return -1;
    return hex_digit(c[3]) * 16 + hex_digit(c[4]);
}

/* Copies the bytes that token `id` stands for into the pool. */
static hd_status take_token(hdl_tokenizer *t, const hdl_vocab_desc *desc, size_t id, hd_error *error) {
    hdl_span text = desc->tokens[id];
    uint8_t *out = t->pool + t->starts[id];
    size_t count = text.count;
    t->types[id] = (uint8_t)(desc->type_count ? desc->types[id] : HDL_TOKEN_NORMAL);
    if (t->types[id] == HDL_TOKEN_BYTE) {
        int byte = decode_byte_token(text);
        if (byte < 0) return bad(error, "tokens", id, "a byte token that is not of the form <0x0A>");
        if (t->byte_ids[byte] != HDL_NO_TOKEN) return bad(error, "tokens", id, "a second token for the same byte");
        t->byte_ids[byte] = (int32_t)id;
        *out = (uint8_t)byte;
        count = 1;
    } else if (t->kind != HDL_VOCAB_BYTES && (t->types[id] == HDL_TOKEN_NORMAL || t->types[id] == HDL_TOKEN_USER)) {
        count = decode_piece(t->kind, text, out);
    } else if (t->kind != HDL_VOCAB_BYTES || t->types[id] != HDL_TOKEN_NORMAL || !decode_bytes(text, out, &count)) {
        /* A normal token outside of the map of bytes cannot come from text: converters make such to fill up a table. */
        if (t->types[id] == HDL_TOKEN_NORMAL) t->types[id] = HDL_TOKEN_UNUSED;
        count = text.count;
        if (count) memcpy(out, text.bytes, count);
    }
    t->starts[id + 1] = t->starts[id] + (uint32_t)count;
    return HD_OK;
}

static hd_status index_token(hdl_tokenizer *t, int32_t id, hd_error *error) {
    size_t count = hdl_pool_text(t, id).count;
    hdl_token_type type = t->types[id];
    bool normal = type == HDL_TOKEN_NORMAL;
    if (count == 0 || type == HDL_TOKEN_UNUSED || type == HDL_TOKEN_BYTE) return HD_OK;
    if (count > HDL_MAX_SOUGHT_BYTES && !(normal && t->kind == HDL_VOCAB_BYTES))
        return hdl_fail(
            error, HD_STATUS_LIMIT,
            "tokenizer.ggml.tokens[%d] has %zu bytes; the limit of a token that texts are searched for is %u", id,
            count, HDL_MAX_SOUGHT_BYTES);
    int32_t earlier;
    hdl_added added = hdl_text_table_add(t, normal ? &t->texts : &t->sought, id, &earlier);
    if (added == HDL_ADDED_TWICE)
        return hdl_fail(error, HD_STATUS_PARSE, "tokenizer.ggml.tokens[%d] is the same as tokens[%d]", id, earlier);
    if (added == HDL_ADDED_CROWDED)
        return hdl_fail(error, HD_STATUS_LIMIT,
                        "tokenizer.ggml.tokens[%d]: too many tokens collide in the look-up table", id);
    return HD_OK;
}

static hd_status take_tokens(hdl_tokenizer *t, const hdl_vocab_desc *desc, hd_error *error) {
    size_t sought = 0;
    for (size_t i = 0; i < desc->token_count; i++) {
        hd_status status = take_token(t, desc, i, error);
        if (status) return status;
        sought += t->types[i] == HDL_TOKEN_CONTROL || t->types[i] == HDL_TOKEN_USER || t->types[i] == HDL_TOKEN_UNKNOWN;
    }
    if (!hdl_text_table_make(&t->allocator, desc->token_count - sought, &t->texts) ||
        !hdl_text_table_make(&t->allocator, sought, &t->sought))
        return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the look-up table of %zu tokens",
                        desc->token_count);
    for (size_t i = 0; i < desc->token_count; i++) {
        hd_status status = index_token(t, (int32_t)i, error);
        if (status) return status;
    }
    return HD_OK;
}

/* Every byte must have its token, or there must be one for what has none: no text is ever dropped. */
static hd_status take_byte_ids(hdl_tokenizer *t, hd_error *error) {
    size_t there = 0, missing = 0;
    for (size_t i = 0; i < 256; i++) {
        uint8_t byte = (uint8_t)i;
        if (t->kind == HDL_VOCAB_BYTES) t->byte_ids[i] = hdl_text_table_find(t, &t->texts, &byte, 1);
        if (t->byte_ids[i] != HDL_NO_TOKEN) there++;
        else missing = i;
    }
    if (there == 256 || (t->unknown != HDL_NO_TOKEN && (there == 0 || t->kind == HDL_VOCAB_BYTES))) return HD_OK;
    return hdl_fail(error, HD_STATUS_PARSE, "tokenizer.ggml.tokens: no token for the byte 0x%02X%s", (unsigned)missing,
                    there ? "" : ", and tokenizer.ggml.unknown_token_id is missing");
}

static void take_scores(hdl_tokenizer *t, const hdl_vocab_desc *desc) {
    float least = 0;
    bool any = false;
    t->cuts_at_spaces = true;
    for (size_t i = 0; i < t->token_count; i++) {
        t->scores[i] = desc->scores[i];
        if (t->types[i] != HDL_TOKEN_NORMAL) continue;
        if (!any || t->scores[i] < least) least = t->scores[i];
        any = true;
        for (uint32_t at = t->starts[i] + 1; at < t->starts[i + 1]; at++)
            if (t->pool[at] == ' ' && t->pool[at - 1] != ' ') t->cuts_at_spaces = false;
    }
    t->unknown_score = least - 10; /* as far below the least likely piece as SentencePiece puts it */
}

/* One merge: its two parts and what they make together must be tokens. `room` takes the bytes of both. */
static hd_status take_merge(hdl_tokenizer *t, hdl_span text, size_t rank, uint8_t *room, hd_error *error) {
    if (text.count > 2 * HDL_MAX_TOKEN_BYTES || (text.count && !text.bytes))
        return bad(error, "merges", rank, "longer than two tokens");
    const uint8_t *bytes = text.bytes, *space = text.count > 2 ? memchr(bytes + 1, ' ', text.count - 2) : NULL;
    if (!space) return bad(error, "merges", rank, "not two tokens with a space between them");
    size_t left_count, right_count, cut = (size_t)(space - bytes);
    if (!decode_bytes((hdl_span){ bytes, cut }, room, &left_count) ||
        !decode_bytes((hdl_span){ space + 1, text.count - cut - 1 }, room + left_count, &right_count))
        return bad(error, "merges", rank, "characters outside of the map of bytes");
    int32_t left = hdl_text_table_find(t, &t->texts, room, left_count);
    int32_t right = hdl_text_table_find(t, &t->texts, room + left_count, right_count);
    int32_t both = hdl_text_table_find(t, &t->texts, room, left_count + right_count);
    if (left == HDL_NO_TOKEN) return bad(error, "merges", rank, "its first part is no token");
    if (right == HDL_NO_TOKEN) return bad(error, "merges", rank, "its second part is no token");
    if (both == HDL_NO_TOKEN) return bad(error, "merges", rank, "its parts together are no token");
    uint32_t earlier;
    hdl_added added = hdl_pair_table_add(&t->pairs, left, right, (uint32_t)rank, both, &earlier);
    if (added == HDL_ADDED_TWICE)
        return hdl_fail(error, HD_STATUS_PARSE, "tokenizer.ggml.merges[%zu] is the same as merges[%u]", rank, earlier);
    if (added == HDL_ADDED_CROWDED)
        return hdl_fail(error, HD_STATUS_LIMIT,
                        "tokenizer.ggml.merges[%zu]: too many merges collide in the look-up table", rank);
    return HD_OK;
}

static hd_status take_merges(hdl_tokenizer *t, const hdl_vocab_desc *desc, hd_error *error) {
    size_t room_bytes = 2 * HDL_MAX_TOKEN_BYTES;
    uint8_t *room = hdl_alloc(&t->allocator, room_bytes);
    if (!room || !hdl_pair_table_make(&t->allocator, desc->merge_count, &t->pairs)) {
        hdl_free(&t->allocator, room, room_bytes);
        return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for %zu merges", desc->merge_count);
    }
    hd_status status = HD_OK;
    for (size_t i = 0; i < desc->merge_count && !status; i++) status = take_merge(t, desc->merges[i], i, room, error);
    hdl_free(&t->allocator, room, room_bytes);
    return status;
}

static hd_status fill(hdl_tokenizer *t, const hdl_vocab_desc *desc, hd_error *error) {
    t->kind = desc->kind;
    t->add_bos = desc->add_bos;
    t->add_eos = desc->add_eos;
    t->lowercase = desc->lowercase;
    t->strip_accents = desc->strip_accents;
    t->bos = (int32_t)desc->bos;
    t->eos = (int32_t)desc->eos;
    t->unknown = (int32_t)desc->unknown;
    t->token_count = desc->token_count;
    for (size_t i = 0; i < 256; i++) t->byte_ids[i] = HDL_NO_TOKEN;
    t->pool = hdl_alloc(&t->allocator, t->pool_bytes);
    t->starts = hdl_alloc(&t->allocator, (t->token_count + 1) * sizeof *t->starts);
    t->types = hdl_alloc(&t->allocator, t->token_count * sizeof *t->types);
    if (is_pieces(t->kind)) t->scores = hdl_alloc(&t->allocator, t->token_count * sizeof *t->scores);
    if (!t->pool || !t->starts || !t->types || (is_pieces(t->kind) && !t->scores))
        return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a vocabulary of %zu tokens",
                        t->token_count);
    if (t->kind == HDL_VOCAB_BYTES && (!desc->pre || !hdl_words_find(desc->pre, &t->words)))
        return hdl_fail(error, HD_STATUS_UNSUPPORTED, "tokenizer.ggml.pre is %.40s, whose pattern heddle does not know",
                        desc->pre ? desc->pre : "missing");
    hd_status status = take_tokens(t, desc, error);
    if (status || t->kind == HDL_VOCAB_WORDPIECE) return status;
    status = take_byte_ids(t, error);
    if (status) return status;
    if (t->kind == HDL_VOCAB_BYTES) return take_merges(t, desc, error);
    t->add_space_prefix = desc->add_space_prefix;
    take_scores(t, desc);
    return HD_OK;
}

hd_status hdl_tokenizer_create(const hd_allocator *allocator, const hdl_vocab_desc *desc, hdl_tokenizer **out_tokenizer,
                               hd_error *error) {
    if (!desc || !out_tokenizer)
        return hdl_fail(error, HD_STATUS_NULL_POINTER,
                        "hdl_tokenizer_create needs a description and a place for the tokenizer");
    *out_tokenizer = NULL;
    size_t pool_bytes;
    hd_status status = check_lists(desc, error);
    if (!status) status = check_tokens(desc, &pool_bytes, error);
    if (status) return status;
    hd_allocator memory = allocator && allocator->resize ? *allocator : hdl_default_allocator;
    hdl_tokenizer *t = hdl_alloc(&memory, sizeof *t);
    if (!t) return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a tokenizer");
    t->allocator = memory;
    t->pool_bytes = pool_bytes;
    status = fill(t, desc, error);
    if (status) hdl_tokenizer_destroy(t);
    else *out_tokenizer = t;
    return status;
}

void hdl_tokenizer_destroy(hdl_tokenizer *t) {
    if (!t) return;
    hd_allocator memory = t->allocator;
    hdl_free(&memory, t->pool, t->pool_bytes);
    hdl_free(&memory, t->starts, (t->token_count + 1) * sizeof *t->starts);
    hdl_free(&memory, t->types, t->token_count * sizeof *t->types);
    hdl_free(&memory, t->scores, t->token_count * sizeof *t->scores);
    hdl_text_table_free(&memory, &t->texts);
    hdl_text_table_free(&memory, &t->sought);
    hdl_pair_table_free(&memory, &t->pairs);
    hdl_free(&memory, t, sizeof *t);
}
