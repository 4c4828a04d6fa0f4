/* fuzz_tokenizer.c: any bytes as a vocabulary and a text. The first bytes choose kind, pattern and flags; then come tokens,
 * scores, types and merges as hostile as they like, or on top of all single bytes; the rest is the text. What is taken must
 * give ids of the vocabulary; a byte-level one must give back the very bytes; a stream cuts no character; every refusal has
 * a text. */
#include "llm/tokenizer.h"
#include "llm/utf8.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_TOKENS = 400, MOST_MERGES = 64 };

typedef struct input { const uint8_t *at, *end; } input;

static uint8_t take(input *in) { return in->at < in->end ? *in->at++ : 0; }

/* A length and so many bytes, or fewer where the input ends. */
static hdl_span take_slice(input *in) {
    size_t count = take(in) % 16, left = (size_t)(in->end - in->at);
    if (count > left) count = left;
    hdl_span slice = { in->at, count };
    in->at += count;
    return slice;
}

typedef struct vocab {
    hdl_vocab_desc desc;
    hdl_span      tokens[MOST_TOKENS], merges[MOST_MERGES];
    int32_t        types[MOST_TOKENS];
    float          scores[MOST_TOKENS];
    char           bytes[256][8];
} vocab;

/* All single bytes, as a byte-level vocabulary maps them or as byte tokens. */
static void take_all_bytes(vocab *v) {
    uint32_t other = 256;
    for (uint32_t i = 0; i < 256; i++) {
        char *out = v->bytes[i];
        size_t count = 6;
        if (v->desc.kind == HDL_VOCAB_BYTES) {
            uint32_t code = (i >= 33 && i <= 126) || (i >= 161 && i != 173) ? i : other++;
            count = code < 128 ? 1 : 2;
            out[0] = (char)(count == 1 ? code : 0xC0 | code >> 6);
            out[1] = (char)(0x80 | (code & 0x3F));
        } else {
            memcpy(out, "<0x", 3);
            out[3] = "0123456789ABCDEF"[i / 16];
            out[4] = "0123456789ABCDEF"[i % 16];
            out[5] = '>';
        }
        v->tokens[i] = (hdl_span){ (const uint8_t *)out, count };
        v->types[i] = v->desc.kind == HDL_VOCAB_BYTES ? HDL_TOKEN_NORMAL : HDL_TOKEN_BYTE;
    }
    v->desc.token_count = 256;
}

static void take_vocab(vocab *v, input *in) {
    static const char *const patterns[] = { "gpt-2", "default", "llama-bpe", "deepseek-llm", "deepseek-v3", "gpt-4o", NULL, "?" };
    uint8_t form = take(in), flags = take(in);
    hdl_vocab_desc *d = &v->desc;
    d->kind = (hdl_vocab_kind)(form % 5);
    d->pre = patterns[form / 5 % 8];
    d->lowercase = form & 64;
    d->strip_accents = form & 128;
    if (flags & 1) take_all_bytes(v);
    for (unsigned more = take(in) % 140; more; more--) {
        size_t i = d->token_count++;
        uint8_t type = take(in);
        v->types[i] = type % 7 == 0 ? (flags & 2 ? (int8_t)type : HDL_TOKEN_NORMAL) : type % 7;
        v->scores[i] = (float)(type / 7) - 20;
        if (flags & 2 && type == 255) v->scores[i] = (float)(1e308 * 10);
        v->tokens[i] = take_slice(in);
    }
    d->tokens = v->tokens;
    d->types = v->types;
    d->scores = v->scores;
    d->merges = v->merges;
    d->type_count = flags & 4 && !(flags & 1) ? 0 : d->token_count;
    d->score_count = d->token_count - (flags & 8 && flags & 2 ? 1 : 0);
    for (unsigned more = take(in) % MOST_MERGES; more; more--) v->merges[d->merge_count++] = take_slice(in);
    d->bos = (int8_t)take(in);
    d->eos = (int8_t)take(in);
    d->unknown = (int8_t)take(in);
    d->add_bos = flags & 16;
    d->add_eos = flags & 32;
    d->add_space_prefix = flags & 64;
}

/* The texts of the tokens, one behind the other, are the text. */
static void check_text(const hdl_tokenizer *t, const hdl_id_list *list, const uint8_t *text, size_t bytes) {
    size_t done = 0;
    for (size_t i = 0; i < list->count; i++) {
        const hdl_span part = hdl_token_text(t, list->ids[i]);
        if (part.count > bytes - done || memcmp(part.bytes, text + done, part.count) != 0) abort();
        done += part.count;
    }
    if (done != bytes) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in = { data, data + size };
    vocab *v = calloc(1, sizeof *v);
    if (!v) return 0;
    take_vocab(v, &in);
    unsigned flags = take(&in) % 4;
    hdl_tokenizer *t = NULL;
    hd_error error = { 0 };
    hd_status status = hdl_tokenizer_create(NULL, &v->desc, &t, &error);
    if (status != error.status || !t != (status != HD_OK) || (status && !error.text[0])) abort();
    if (t) {
        hdl_id_list list = { 0 };
        size_t bytes = (size_t)(in.end - in.at);
        if (hdl_tokenize(t, in.at, bytes, flags, &list, &error)) abort();
        bool whole = v->desc.kind == HDL_VOCAB_BYTES && !(flags & HDL_ADD_SPECIAL);
        for (size_t i = 0; i < list.count; i++) {
            if (list.ids[i] < 0 || (size_t)list.ids[i] >= v->desc.token_count) abort();
            if (list.ids[i] == v->desc.unknown) whole = false;
        }
        if (whole) check_text(t, &list, in.at, bytes);
        hdl_id_list_free(&list);
    }
    hdl_tokenizer_destroy(t);
    free(v);
    return 0;
}
