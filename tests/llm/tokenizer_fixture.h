/* tokenizer_fixture.h: reads the vocabularies, strings and ids that tools/fixtures/tokenizers_fixture.py wrote. The files
 * are the project's own, so this checks nothing; it exits where one is missing. */
#ifndef TOKENIZER_FIXTURE_H
#define TOKENIZER_FIXTURE_H

#include "llm/tokenizer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader { const uint8_t *at; } reader;

static inline size_t read_number(reader *r) {
    size_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        value |= (size_t)(*r->at & 127) << shift;
        if (*r->at++ < 128) return value;
    }
}

static inline hdl_span read_bytes(reader *r) {
    hdl_span slice = { NULL, read_number(r) };
    slice.bytes = r->at;
    r->at += slice.count;
    return slice;
}

static inline uint8_t *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "no %s\n", path);
        exit(1);
    }
    fseek(file, 0, SEEK_END);
    const size_t count = (size_t)ftell(file);
    uint8_t *bytes = calloc(1, count + 1);
    rewind(file);
    if (fread(bytes, 1, count, file) != count) exit(1);
    fclose(file);
    return bytes;
}
static inline uint8_t *read_fixture(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/llm/fixtures/%s", HEDDLE_TESTS_DIR, name);
    return read_file(path);
}

typedef struct fixture {
    uint8_t       *file;
    hdl_vocab_desc desc;
    unsigned       flags;
    hdl_span     *tokens, *merges;
    int32_t       *types;
    float         *scores;
    reader         ids; /* for each string the number of ids and the ids */
} fixture;

static inline fixture fixture_open(const char *name) {
    fixture f = { .file = read_fixture(name) };
    reader r = { f.file };
    f.desc.kind = (hdl_vocab_kind)*r.at++;
    f.desc.lowercase = f.desc.kind == HDL_VOCAB_WORDPIECE && *r.at++;
    f.desc.strip_accents = f.desc.kind == HDL_VOCAB_WORDPIECE && *r.at++;
    f.desc.add_bos = *r.at++;
    f.desc.add_eos = *r.at++;
    f.desc.add_space_prefix = *r.at++;
    f.flags = *r.at++ ? HDL_PARSE_SPECIAL : 0;
    f.desc.bos = (int64_t)read_number(&r) - 1;
    f.desc.eos = (int64_t)read_number(&r) - 1;
    f.desc.unknown = (int64_t)read_number(&r) - 1;
    hdl_span pre = read_bytes(&r);
    char *pre_text = calloc(1, pre.count + 1);
    memcpy(pre_text, pre.bytes, pre.count);
    f.desc.pre = pre_text;
    f.desc.token_count = f.desc.type_count = read_number(&r);
    f.desc.tokens = f.tokens = calloc(f.desc.token_count, sizeof *f.tokens);
    f.desc.types = f.types = calloc(f.desc.token_count, sizeof *f.types);
    for (size_t i = 0; i < f.desc.token_count; i++) {
        f.types[i] = *r.at++;
        f.tokens[i] = read_bytes(&r);
    }
    f.desc.score_count = read_number(&r);
    f.desc.scores = f.scores = calloc(f.desc.score_count + 1, sizeof *f.scores);
    memcpy(f.scores, r.at, f.desc.score_count * sizeof *f.scores);
    r.at += f.desc.score_count * sizeof *f.scores;
    f.desc.merge_count = read_number(&r);
    f.desc.merges = f.merges = calloc(f.desc.merge_count + 1, sizeof *f.merges);
    for (size_t i = 0; i < f.desc.merge_count; i++) f.merges[i] = read_bytes(&r);
    f.ids = r;
    return f;
}

static inline void fixture_close(fixture *f) {
    char *pre;
    memcpy(&pre, &f->desc.pre, sizeof pre);
    free(pre);
    free(f->file);
    free(f->tokens);
    free(f->types);
    free(f->scores);
    free(f->merges);
}

#endif
