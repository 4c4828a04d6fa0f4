/* model_reference.h: what Hugging Face transformers computed with a model of tests/llm/models (tools/fixtures/models_fixture.py). */
#ifndef MODEL_REFERENCE_H
#define MODEL_REFERENCE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct model_reference {
    char     path[512];    /* of the GGUF file */
    uint8_t *bytes;        /* of the .ref file */
    uint32_t prompt_count, answer_count, vocabulary, text_bytes;
    const int32_t *prompt, *answer;
    const float   *logits; /* [prompt_count + 1][vocabulary]: after each token of the prompt, then before the answer's last one */
    const char    *text;   /* of the prompt */
} model_reference;

static inline int model_reference_read(const char *name, model_reference *r) {
    char path[520];
    memset(r, 0, sizeof *r);
    snprintf(r->path, sizeof r->path, "%s/llm/models/%s.gguf", HEDDLE_TESTS_DIR, name);
    snprintf(path, sizeof path, "%s/llm/models/%s.ref", HEDDLE_TESTS_DIR, name);
    FILE *file = fopen(path, "rb");
    if (!file) return -1;
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    r->bytes = malloc((size_t)size);
    const size_t got = r->bytes ? fread(r->bytes, 1, (size_t)size, file) : 0;
    fclose(file);
    if (got != (size_t)size) return -1;
    const uint8_t *at = r->bytes + 16;
    memcpy(&r->prompt_count, r->bytes, 4);
    memcpy(&r->answer_count, r->bytes + 4, 4);
    memcpy(&r->vocabulary, r->bytes + 8, 4);
    r->prompt = (const int32_t *)(const void *)at;
    r->answer = r->prompt + r->prompt_count;
    at += 4 * (r->prompt_count + r->answer_count);
    r->logits = (const float *)(const void *)at;
    at += 4 * (size_t)(r->prompt_count + 1) * r->vocabulary;
    memcpy(&r->text_bytes, at, 4);
    r->text = (const char *)at + 4;
    return 0;
}

static inline double model_cosine(const float *a, const float *b, uint32_t count) {
    double ab = 0, aa = 0, bb = 0;
    for (uint32_t i = 0; i < count; i++) {
        ab += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    return ab / sqrt(aa * bb);
}

#endif
