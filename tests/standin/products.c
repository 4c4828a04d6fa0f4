/* products.c: cuBLASLt's entries, as far as heddle calls them, over the stand-in's streams. It refuses what the library
 * refuses: shapes that do not go together, lines that overlap, types that it has no product for. */
#include "standin.h"
#include <stdlib.h>
#include <string.h>

#define ENTRY __attribute__((visibility("default")))
#define NEEDS(condition) do { if (!(condition)) return INVALID_VALUE; } while (0)
enum { SUCCESS = 0, ALLOC_FAILED = 3, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum { COMPUTE_F32 = 68, TRANSPOSE_A = 3, TRANSPOSE_B = 4, EPILOGUE = 7, BIAS_POINTER = 8, NOTHING = 1, BIAS = 4, BATCH = 5, BATCH_OFFSET = 6, MOST_BYTES = 1, SUMS = 3, ALIGN_A = 5, ALIGN_D = 8 };

typedef struct library { int opened; } library;
typedef struct desc { int32_t transposed[2]; uint32_t epilogue; const void *bias; } desc;
typedef struct layout { int type; uint64_t rows, columns; int64_t line, batch_offset; int32_t batch; } layout;
typedef struct search { size_t bytes; uint32_t sums, align[4]; } search;
typedef struct found { uint64_t algo[8]; size_t workspace_bytes; int state; float waves; int reserved[4]; } found;

static int make(void **out, size_t bytes, const void *value) {
    NEEDS(out);
    if (!(*out = malloc(bytes))) return ALLOC_FAILED;
    memcpy(*out, value, bytes);
    return SUCCESS;
}
static int end(void *object) {
    NEEDS(object);
    free(object);
    return SUCCESS;
}
static int set(void *to, size_t wanted, const void *value, size_t bytes) {
    NEEDS(value && bytes == wanted);
    memcpy(to, value, bytes);
    return SUCCESS;
}

ENTRY int cublasLtCreate(void **out) { return make(out, sizeof(library), &(library){ 1 }); }
ENTRY int cublasLtDestroy(void *l) { return end(l); }
ENTRY int cublasLtMatmulDescCreate(void **out, int compute, int scale) {
    NEEDS(compute == COMPUTE_F32 && scale == STANDIN_F32);
    return make(out, sizeof(desc), &(desc){ { 0, 0 }, NOTHING, NULL });
}
ENTRY int cublasLtMatmulDescSetAttribute(desc *d, int attribute, const void *value, size_t bytes) {
    NEEDS(d && (attribute == TRANSPOSE_A || attribute == TRANSPOSE_B || attribute == EPILOGUE || attribute == BIAS_POINTER));
    if (attribute == EPILOGUE) return set(&d->epilogue, sizeof d->epilogue, value, bytes);
    if (attribute == BIAS_POINTER) return set(&d->bias, sizeof d->bias, value, bytes);
    return set(&d->transposed[attribute - TRANSPOSE_A], sizeof d->transposed[0], value, bytes);
}
ENTRY int cublasLtMatmulDescDestroy(void *d) { return end(d); }
ENTRY int cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t columns, int64_t line) {
    NEEDS(type == STANDIN_F32 || type == STANDIN_F16 || type == STANDIN_BF16);
    NEEDS(rows && columns && line >= 0 && (uint64_t)line >= rows);
    return make(out, sizeof(layout), &(layout){ type, rows, columns, line, 0, 1 });
}
ENTRY int cublasLtMatrixLayoutSetAttribute(layout *l, int attribute, const void *value, size_t bytes) {
    NEEDS(l && (attribute == BATCH || attribute == BATCH_OFFSET));
    return attribute == BATCH ? set(&l->batch, sizeof l->batch, value, bytes) : set(&l->batch_offset, sizeof l->batch_offset, value, bytes);
}
ENTRY int cublasLtMatrixLayoutDestroy(void *l) { return end(l); }
ENTRY int cublasLtMatmulPreferenceCreate(void **out) { return make(out, sizeof(search), &(search){ 0, 7, { 256, 256, 256, 256 } }); }
ENTRY int cublasLtMatmulPreferenceSetAttribute(search *s, int attribute, const void *value, size_t bytes) {
    NEEDS(s && (attribute == MOST_BYTES || attribute == SUMS || (attribute >= ALIGN_A && attribute <= ALIGN_D)));
    if (attribute == MOST_BYTES) return set(&s->bytes, sizeof s->bytes, value, bytes);
    return set(attribute == SUMS ? &s->sums : &s->align[attribute - ALIGN_A], sizeof s->sums, value, bytes);
}
ENTRY int cublasLtMatmulPreferenceDestroy(void *s) { return end(s); }

static bool goes_together(const desc *d, const layout *a, const layout *b, const layout *c, const layout *out) {
    const uint64_t m = d->transposed[0] ? a->columns : a->rows, k = d->transposed[0] ? a->rows : a->columns;
    const uint64_t n = d->transposed[1] ? b->rows : b->columns, other = d->transposed[1] ? b->columns : b->rows;
    const bool types = a->type == b->type && (out->type == a->type || out->type == STANDIN_F32);
    return types && k == other && out->rows == m && out->columns == n && memcmp(c, out, sizeof *c) == 0 && a->batch == out->batch && b->batch == out->batch && out->batch > 0;
}

ENTRY int cublasLtMatmulAlgoGetHeuristic(library *l, desc *d, layout *a, layout *b, layout *c, layout *out, search *s, int wanted, found *results, int *count) {
    NEEDS(l && d && a && b && c && out && s && wanted > 0 && results && count);
    *count = 0;
    if (!goes_together(d, a, b, c, out) || (d->epilogue != NOTHING && (d->epilogue != BIAS || !d->bias))) return NOT_SUPPORTED;
    results[0] = (found){ .algo = { s->align[0] & s->align[1] & s->align[2] & s->align[3] }, .workspace_bytes = s->bytes };
    *count = 1;
    return SUCCESS;
}

static standin_matrix matrix_of(const layout *l, const void *data, bool transposed) {
    return (standin_matrix){ (void *)(uintptr_t)data, (standin_number)l->type, l->rows, l->columns, (uint64_t)l->line, (uint64_t)l->batch_offset, transposed };
}
static bool lies_in_memory(const layout *l, const void *data, uint64_t align) {
    const uint64_t bytes = l->type == STANDIN_F32 ? 4 : 2;
    const uint64_t elements = (uint64_t)(l->batch - 1) * (uint64_t)l->batch_offset + (l->columns - 1) * (uint64_t)l->line + l->rows;
    return (uintptr_t)data % align == 0 && standin_holds(data, elements * bytes);
}

ENTRY int cublasLtMatmul(library *l, desc *d, const float *alpha, const void *a, layout *a_layout, const void *b, layout *b_layout, const float *beta, const void *c,
                         layout *c_layout, void *out, layout *out_layout, const uint64_t *algo, void *workspace, size_t workspace_bytes, standin_stream *stream) {
    NEEDS(l && d && alpha && beta && *alpha == 1 && (*beta == 0 || *beta == 1) && algo && algo[0] && stream && goes_together(d, a_layout, b_layout, c_layout, out_layout));
    NEEDS((*beta == 1 || c == out) && lies_in_memory(c_layout, c, algo[0]) && lies_in_memory(a_layout, a, algo[0]) && lies_in_memory(b_layout, b, algo[0]) && lies_in_memory(out_layout, out, algo[0]));
    NEEDS(standin_holds(workspace, workspace_bytes));
    NEEDS(d->epilogue != BIAS || (out_layout->type != STANDIN_F16 && (uintptr_t)d->bias % algo[0] == 0 && standin_holds(d->bias, out_layout->rows * (out_layout->type == STANDIN_F32 ? 4 : 2))));
    standin_task task = { .kind = STANDIN_PRODUCT, .product = malloc(sizeof *task.product) };
    if (!task.product) return ALLOC_FAILED;
    *task.product = (standin_product){ matrix_of(a_layout, a, d->transposed[0]), matrix_of(b_layout, b, d->transposed[1]), matrix_of(out_layout, out, false), *beta == 1 ? c : NULL, d->epilogue == BIAS ? d->bias : NULL,
                                       d->transposed[0] ? a_layout->rows : a_layout->columns, (uint64_t)out_layout->batch, workspace, workspace_bytes };
    return standin_stream_push(stream, task) ? EXECUTION_FAILED : SUCCESS;
}
