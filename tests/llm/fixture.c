/* fixture.c: reads a model file, and writes it anew with some of its fields changed. */
#include "fixture.h"
#include <stdio.h>
#include <stdlib.h>

static void *must(void *pointer) {
    if (!pointer) abort();
    return pointer;
}

fixture fixture_read(const char *name) {
    char path[512];
    fixture f = { 0 };
    if (strchr(name, '/')) snprintf(path, sizeof path, "%s", name);
    else snprintf(path, sizeof path, "%s/llm/models/%s.gguf", HEDDLE_TESTS_DIR, name);
    FILE *file = must(fopen(path, "rb"));
    if (fseek(file, 0, SEEK_END)) abort();
    const long count = ftell(file);
    if (count < 0 || fseek(file, 0, SEEK_SET)) abort();
    f.count = f.room = (uint64_t)count;
    f.bytes = must(malloc(f.room ? f.room : 1));
    if (fread(f.bytes, 1, f.count, file) != f.count) abort();
    fclose(file);
    return f;
}

void fixture_free(fixture *f) {
    free(f->bytes);
    *f = (fixture){ 0 };
}

static bool take(void *user, const void *bytes, uint64_t count) {
    fixture *f = user;
    while (f->count + count > f->room) f->room = f->room ? 2 * f->room : 1 << 16;
    f->bytes = must(realloc(f->bytes, f->room));
    if (count) memcpy(f->bytes + f->count, bytes, count);
    f->count += count;
    return true;
}

/* ---- keys ---- */

static void put_numbers(hdl_gguf_writer *w, const edit *e) {
    const uint64_t width = e->kind == EDIT_I8S ? 1 : 4;
    uint8_t *values = must(calloc(e->count ? e->count : 1, width));
    for (uint64_t i = 0; i < e->count; i++) {
        const double number = e->number + (e->uneven && i + 1 == e->count ? 1 : 0);
        const uint32_t u32 = e->kind == EDIT_U32S ? (uint32_t)number : 0;
        const float f32 = (float)number;
        if (e->kind == EDIT_I8S) values[i] = (uint8_t)(int8_t)number;
        else memcpy(values + 4 * i, e->kind == EDIT_F32S ? (const void *)&f32 : &u32, 4);
    }
    hdl_gguf_put_numbers(w, e->name,
                         e->kind == EDIT_U32S   ? HDL_GGUF_U32
                         : e->kind == EDIT_F32S ? HDL_GGUF_F32
                                                : HDL_GGUF_I8,
                         values, e->count);
    free(values);
}

static void put_texts(hdl_gguf_writer *w, const edit *e) {
    hdl_span *texts = must(calloc(e->count ? e->count : 1, sizeof *texts));
    char *words = must(calloc(e->count ? e->count : 1, 24));
    for (uint64_t i = 0; i < e->count; i++) {
        if (e->uneven) snprintf(words + 24 * i, 24, "%.20s", e->text);
        else snprintf(words + 24 * i, 24, "%.12s%u", e->text, (unsigned)i);
        texts[i] = hdl_text(words + 24 * i);
    }
    hdl_gguf_put_texts(w, e->name, texts, e->count);
    free(texts);
    free(words);
}

static void put_key(hdl_gguf_writer *w, const edit *e) {
    const int64_t i64 = e->kind == EDIT_I64 ? (int64_t)e->number : 0;
    const uint8_t truth = e->kind == EDIT_BOOL && e->number > 0;
    char *letters;
    switch (e->kind) {
    case EDIT_U32: hdl_gguf_put_u32(w, e->name, (uint32_t)e->number); break;
    case EDIT_I64: hdl_gguf_put_number(w, e->name, HDL_GGUF_I64, &i64); break;
    case EDIT_F32: hdl_gguf_put_f32(w, e->name, (float)e->number); break;
    case EDIT_BOOL: hdl_gguf_put_number(w, e->name, HDL_GGUF_BOOL, &truth); break;
    case EDIT_TEXT:
        letters = must(malloc(e->count + 1));
        memset(letters, 'x', e->count);
        hdl_gguf_put_text(w, e->name, e->text ? hdl_text(e->text) : (hdl_span){ (const uint8_t *)letters, e->count });
        free(letters);
        break;
    case EDIT_U32S: case EDIT_F32S: case EDIT_I8S: put_numbers(w, e); break;
    case EDIT_TEXTS: put_texts(w, e); break;
    default: break;
    }
}

/* ---- tensors ---- */

enum { MOST_TENSORS = 4096 };
typedef struct kept { void *all[MOST_TENSORS]; uint32_t count; } kept; /* what the writer borrows until the end */
static void *keep(kept *k, uint64_t bytes) {
    if (k->count == MOST_TENSORS) abort();
    return k->all[k->count++] = must(calloc(1, bytes ? bytes : 1));
}

static void put_new_tensor(hdl_gguf_writer *w, const edit *e, kept *k) {
    const uint64_t bytes = hdl_gguf_tensor_bytes(e->type, e->shape);
    uint8_t *data = keep(k, bytes);
    for (uint64_t i = 0; e->type == HDL_GGUF_TYPE_F32 && i < bytes / 4; i++) {
        const float number = (float)(e->uneven ? (double)(1 + i % 7) * e->number : e->number);
        memcpy(data + 4 * i, &number, 4);
    }
    hdl_gguf_put_tensor(w, hdl_text(e->name), e->type, e->shape, data);
}

static void put_tensor(hdl_gguf_writer *w, const fixture *whole, const hdl_gguf_tensor *tensor, const edit *e, kept *k) {
    const uint8_t *data = whole->bytes + tensor->offset;
    if (e && e->kind == EDIT_DROP_TENSOR) return;
    if (e && e->kind == EDIT_TENSOR) {
        put_new_tensor(w, e, k);
        return;
    }
    if (e) {
        uint8_t *copy = keep(k, tensor->bytes);
        memcpy(copy, data, tensor->bytes);
        const float number = (float)e->number;
        const uint16_t bits = e->kind == EDIT_SET_F16 ? (uint16_t)e->number : 0;
        if (e->kind == EDIT_SET_F32) memcpy(copy + 4 * e->count, &number, 4);
        else memcpy(copy + e->count, &bits, 2);
        data = copy;
    }
    hdl_gguf_put_tensor(w, tensor->name, tensor->type, tensor->shape, data);
}

static bool is_key(const edit *e) { return e->kind > EDIT_DROP_KEY && e->kind < EDIT_DROP_TENSOR; }
static bool is_tensor(const edit *e) { return e->kind >= EDIT_DROP_TENSOR; }

fixture fixture_edited(const char *name, const edit *edits, uint32_t edit_count) {
    return fixture_changed(fixture_read(name), edits, edit_count);
}

fixture fixture_changed(fixture whole, const edit *edits, uint32_t edit_count) {
    fixture out = { 0 };
    memory_files memory = { .files = { { "fixture.gguf", whole.bytes, whole.count } }, .file_count = 1 };
    const hdl_files files = memory_table(&memory);
    hdl_gguf *g = NULL;
    hd_error error = { 0 };
    static kept k;
    bool done[16] = { 0 };
    k.count = 0;
    if (hdl_gguf_open("fixture.gguf", &(hdl_gguf_desc){ .files = &files }, &g, &error)) abort();
    hdl_gguf_writer *w = must(hdl_gguf_writer_create(NULL, 0));
    const hdl_gguf_info info = hdl_gguf_get_info(g);
    for (uint32_t i = 0; i < info.key_count; i++) {
        const hdl_gguf_value value = hdl_gguf_key(g, i);
        const edit *found = NULL;
        for (uint32_t e = 0; e < edit_count && !found; e++)
            if (!is_tensor(&edits[e]) && edits[e].kind && hdl_same(value.name, hdl_text(edits[e].name))) found = &edits[e], done[e] = true;
        if (found) put_key(w, found);
        else hdl_gguf_put_value(w, &value);
    }
    for (uint32_t e = 0; e < edit_count; e++)
        if (is_key(&edits[e]) && !done[e]) put_key(w, &edits[e]);
    for (uint32_t i = 0; i < info.tensor_count; i++) {
        const hdl_gguf_tensor tensor = hdl_gguf_tensor_at(g, i);
        const edit *found = NULL;
        for (uint32_t e = 0; e < edit_count && !found; e++)
            if (is_tensor(&edits[e]) && hdl_same(tensor.name, hdl_text(edits[e].name))) found = &edits[e], done[e] = true;
        put_tensor(w, &whole, &tensor, found, &k);
    }
    for (uint32_t e = 0; e < edit_count; e++)
        if (edits[e].kind == EDIT_TENSOR && !done[e]) put_new_tensor(w, &edits[e], &k);
    if (hdl_gguf_write(w, take, &out, &error)) {
        fprintf(stderr, "a changed file: %s\n", error.text);
        abort();
    }
    hdl_gguf_writer_destroy(w);
    hdl_gguf_close(g);
    for (uint32_t i = 0; i < k.count; i++) free(k.all[i]);
    fixture_free(&whole);
    return out;
}
