/* quantize.c: a model file with its weights in another type. Weights go through in pieces, side by side on all threads,
 * so that memory is bounded whatever the model; the new file appears under its name only when it is whole. Keys and the
 * order of tensors are llama.cpp's. */
#include "llm/files.h"
#include "llm/gguf_write.h"
#include "llm/importance.h"
#include "llm/mix.h"
#include "llm/ternary.h"
#include <float.h>
#include <heddle_llm.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Elements of a piece, which one thread converts: whole blocks of every type. Pieces that are read together. */
enum { PIECE = 1 << 14, PIECES = 64, VALUE_BYTES = PIECE * sizeof(float), BYTES = PIECES * VALUE_BYTES };

typedef struct target {
    hdl_gguf_tensor tensor; /* as it is */
    int64_t         layer;  /* -1: of none */
    uint32_t        type;   /* as it is to be */
    hdl_tiles       tiles;  /* of tl1 and tl2 */
} target;

typedef struct work {
    hd_context      *context;
    const hd_quantize_desc *desc;
    hd_allocator     allocator;
    hdl_gguf        *gguf;
    hdl_gguf_writer *writer;
    target          *targets;
    uint32_t         count;
    float           *values, *back;   /* of the pieces: numbers, and what their new elements stand for */
    float           *weights;         /* of the pieces, where errors do not count alike */
    hdl_gguf        *importance;      /* NULL: all columns count alike */
    float           *means;           /* of the tensor that is being written, [experts,columns]; behind them counts */
    uint64_t         means_bytes;
    uint8_t         *from, *to;
} work;

static hd_status no_memory(hd_error *error) {
    return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to quantise a model");
}

static int64_t layer_of(hdl_span name) {
    int64_t layer = 0;
    uint64_t at = 4;
    if (name.count < 6 || memcmp(name.bytes, "blk.", 4) != 0) return -1;
    for (; at < name.count && at < 12 && name.bytes[at] >= '0' && name.bytes[at] <= '9'; at++)
        layer = layer * 10 + (name.bytes[at] - '0');
    return at > 4 && at < name.count && name.bytes[at] == '.' ? layer : -1;
}

/* What belongs to no layer first, then layer by layer; by name. */
static int compare(const void *one, const void *other) {
    const target *a = one, *b = other;
    if (a->layer != b->layer) return a->layer < b->layer ? -1 : 1;
    const uint64_t least = a->tensor.name.count < b->tensor.name.count ? a->tensor.name.count : b->tensor.name.count;
    const int order = memcmp(a->tensor.name.bytes, b->tensor.name.bytes, least);
    return order                                         ? order
           : a->tensor.name.count < b->tensor.name.count ? -1
                                                         : a->tensor.name.count > b->tensor.name.count;
}

static bool is_kept(const hd_quantize_desc *desc, hdl_span name) {
    for (size_t i = 0; i < desc->keep_count; i++) {
        const size_t count = desc->keep[i] ? strlen(desc->keep[i]) : 0;
        for (uint64_t at = 0; count > 0 && at + count <= name.count; at++)
            if (memcmp(name.bytes + at, desc->keep[i], count) == 0) return true;
    }
    return false;
}

/* May a tensor's new type be made from what it is? Blocks become floats, and no blocks of another type: they would lose
 * twice. Where a tensor lies in tiles, these are found. */
static hd_status check_source(const work *w, target *t, hdl_tile_list *tiles, hd_error *error) {
    char name[HDL_QUOTE];
    const uint32_t type = t->tensor.type;
    const hd_dtype from = hdl_gguf_dtype(type);
    if (hdl_is_ternary(type)) return hdl_tiles_find(w->gguf, &t->tensor, tiles, &t->tiles, error);
    if (hdl_is_float(from) || from == HD_Q8_0) return HD_OK;
    if (from != HD_DTYPE_NONE && hdl_is_float(hdl_gguf_dtype(t->type))) return HD_OK;
    return hdl_fail(error, HD_STATUS_UNSUPPORTED,
                    "tensor %s has type %s; weights are quantised from f32, f16, bf16, q8_0, i2_s, tl1 or tl2, and "
                    "others become f32, f16 or bf16",
                    hdl_quote(t->tensor.name, name), hdl_gguf_type_info(type).name);
}

static hd_status plan(work *w, const hdl_mix_row *row, hd_error *error) {
    hdl_mix mix;
    hdl_tile_list tiles = { 0 };
    char name[HDL_QUOTE];
    w->count = hdl_gguf_get_info(w->gguf).tensor_count;
    w->targets = hdl_alloc(&w->allocator, w->count * sizeof *w->targets);
    if (!w->targets) return no_memory(error);
    hd_status status = hdl_mix_begin(w->gguf, row, w->importance != NULL, &mix, error);
    if (status) return status;
    for (uint32_t i = 0; i < w->count; i++) {
        const hdl_gguf_tensor tensor = hdl_gguf_tensor_at(w->gguf, i);
        w->targets[i] = (target){ tensor, layer_of(tensor.name), tensor.type, { 0 } };
    }
    qsort(w->targets, w->count, sizeof *w->targets, compare);
    for (uint32_t i = 0; i < w->count && !status; i++) {
        target *t = &w->targets[i];
        const uint32_t type = hdl_mix_type(&mix, &t->tensor);
        if (is_kept(w->desc, t->tensor.name) || type == t->tensor.type) {
            if (t->type == HDL_GGUF_TYPE_TL2)
                status = hdl_fail(error, HD_STATUS_UNSUPPORTED,
                                  "tensor %s cannot keep the type tl2, which files of other types do not have",
                                  hdl_quote(t->tensor.name, name));
            continue;
        }
        t->type = type;
        status = check_source(w, t, &tiles, error);
    }
    return status;
}

/* ---- what the file says of itself ---- */

static hd_status check_sayings(const hd_quantize_desc *desc, hd_error *error) {
    static const char *const taken[] = { "general.architecture", "general.type", "general.alignment",
                                         "general.file_type", "general.quantization_version" };
    for (size_t i = 0; i < desc->saying_count; i++) {
        const hd_model_saying *saying = &desc->sayings[i];
        if (!saying->key || !saying->text) return HD_STATUS_NULL_POINTER;
        bool good = strncmp(saying->key, "general.", strlen("general.")) == 0;
        for (size_t k = 0; k < sizeof taken / sizeof *taken; k++) good = good && strcmp(saying->key, taken[k]) != 0;
        if (!good)
            return hdl_fail(error, HD_STATUS_INVALID_ARGUMENT,
                            "the key %.60s is none that a text can be put under: general.name, general.license, ...",
                            saying->key);
    }
    return HD_OK;
}

static bool is_said(const hd_quantize_desc *desc, hdl_span key) {
    for (size_t i = 0; i < desc->saying_count; i++)
        if (hdl_same(key, hdl_text(desc->sayings[i].key))) return true;
    return false;
}

static void put_saying(hdl_gguf_writer *writer, const hd_model_saying *saying) {
    enum { MOST = 64 };
    hdl_span items[MOST];
    size_t count = 0;
    if (strcmp(saying->key, "general.languages") != 0 && strcmp(saying->key, "general.tags") != 0) {
        hdl_gguf_put_text(writer, saying->key, hdl_text(saying->text));
        return;
    }
    for (const char *at = saying->text; count < MOST; at += strcspn(at, ",") + 1) {
        items[count++] = (hdl_span){ (const uint8_t *)at, strcspn(at, ",") };
        if (!strchr(at, ',')) break;
    }
    hdl_gguf_put_texts(writer, saying->key, items, count);
}

static void put_all(work *w, uint32_t file_type) {
    static const char *const dropped[] = { "general.quantization_version", "general.file_type", "split.no",
                                           "split.count", "split.tensors.count" };
    const uint32_t keys = hdl_gguf_get_info(w->gguf).key_count;
    for (uint32_t i = 0; i < keys; i++) {
        const hdl_gguf_value value = hdl_gguf_key(w->gguf, i);
        bool drops = is_said(w->desc, value.name);
        for (size_t k = 0; k < sizeof dropped / sizeof *dropped; k++)
            drops = drops || hdl_same(value.name, hdl_text(dropped[k]));
        if (!drops) hdl_gguf_put_value(w->writer, &value);
    }
    for (size_t i = 0; i < w->desc->saying_count; i++) put_saying(w->writer, &w->desc->sayings[i]);
    hdl_gguf_put_u32(w->writer, "general.quantization_version", 2);
    hdl_gguf_put_u32(w->writer, "general.file_type", file_type);
    for (uint32_t i = 0; i < w->count; i++)
        hdl_gguf_put_tensor(w->writer, w->targets[i].tensor.name, w->targets[i].type, w->targets[i].tensor.shape, NULL);
}

static void report(const work *w, const target *t, bool weighted, double error, double size) {
    const hdl_span name = t->tensor.name;
    hd_quantized_tensor told = { .elements = hd_shape_elements(t->tensor.shape), .from_bytes = t->tensor.bytes,
                                 .to_bytes = hdl_gguf_tensor_bytes(t->type, t->tensor.shape),
                                 .error = size > 0 ? sqrt(error / size) : 0, .weighted = weighted };
    snprintf(told.name, sizeof told.name, "%.*s", (int)name.count, (const char *)name.bytes);
    snprintf(told.from, sizeof told.from, "%s", hdl_gguf_type_info(t->tensor.type).name);
    snprintf(told.to, sizeof told.to, "%s", hdl_gguf_type_info(t->type).name);
    if (w->desc->report) w->desc->report(w->desc->report_user, &told);
}

/* Some elements of a tensor that become another type, piece by piece. */
typedef struct conversion {
    const work *w;
    hd_dtype    from, to;
    uint64_t    elements, first; /* of the tensor */
    uint64_t    columns, matrix; /* of a row, of an expert; columns 0: errors count alike */
    float       scale;           /* what the elements are multiplied by first */
    struct { hd_status status; bool finite; double error, size; } pieces[PIECES]; /* squares of what they are off */
} conversion;

/* What errors of `count` numbers count, from number `first` of the tensor on: the mean square of what its column is
 * multiplied with, and more the larger it is itself, beside its neighbours. */
static void weigh(const conversion *c, uint64_t first, uint64_t count, const float *values, float *out) {
    enum { NEIGHBOURS = 256 };
    for (uint64_t at = 0; at < count; at += NEIGHBOURS) {
        const uint64_t end = count - at < NEIGHBOURS ? count : at + NEIGHBOURS;
        float square = 0;
        for (uint64_t i = at; i < end; i++) square += values[i] * values[i];
        const float twice = 2 * square / (float)(end - at);
        for (uint64_t i = at; i < end; i++) {
            const uint64_t place = first + i, expert = place / c->matrix;
            const float weight = c->w->means[expert * c->columns + place % c->columns] *
                                 sqrtf(twice + values[i] * values[i]);
            out[i] = weight < FLT_MAX ? weight : FLT_MAX;
        }
    }
}

static void convert_piece(void *user, uint64_t piece) {
    conversion *c = user;
    const uint64_t first = piece * PIECE, count = c->elements - first < PIECE ? c->elements - first : PIECE;
    const uint8_t *from = c->w->from + hd_dtype_bytes(c->from, first);
    uint8_t *to = c->w->to + hd_dtype_bytes(c->to, first);
    float *values = c->w->values + first, *back = c->w->back + first, *weights = NULL;
    double error = 0, size = 0;
    hd_status status = hd_dequantize(c->from, from, count, values);
    for (uint64_t i = 0; i < count && c->scale != 1; i++) values[i] *= c->scale;
    if (!status && c->columns > 0) weigh(c, c->first + first, count, values, weights = c->w->weights + first);
    if (!status) status = hd_quantize_weighted(c->to, values, weights, count, to);
    if (!status) status = hd_dequantize(c->to, to, count, back);
    for (uint64_t i = 0; i < count && !status; i++) {
        const double value = (double)values[i], off = (double)back[i] - value;
        error += off * off;
        size += value * value;
    }
    c->pieces[piece].status = status;
    c->pieces[piece].finite = isfinite(error);
    c->pieces[piece].error = error;
    c->pieces[piece].size = size;
}

/* What lies in w->from in the tensor's new type, into w->to. */
static hd_status convert(conversion *c, const target *t, double *inout_error, double *inout_size, hd_error *error) {
    char name[HDL_QUOTE];
    const uint64_t pieces = (c->elements + PIECE - 1) / PIECE;
    hd_context_share(c->w->context, convert_piece, c, pieces);
    for (uint64_t i = 0; i < pieces; i++) {
        if (c->pieces[i].status)
            return hdl_fail(error, c->pieces[i].status, "tensor %s cannot be quantised",
                            hdl_quote(t->tensor.name, name));
        if (!c->pieces[i].finite)
            return hdl_fail(error, HD_STATUS_PARSE, "tensor %s holds NaN, infinity or numbers too large for %s",
                            hdl_quote(t->tensor.name, name), hdl_gguf_type_info(t->type).name);
        *inout_error += c->pieces[i].error;
        *inout_size += c->pieces[i].size;
    }
    return HD_OK;
}

/* Reads what the importance file says of a tensor; *out_has: whether it does. */
static hd_status read_importance(work *w, const target *t, bool *out_has, hd_error *error) {
    const uint64_t experts = hdl_importance_experts(&t->tensor),
                   columns = (uint64_t)t->tensor.shape.dims[t->tensor.shape.rank - 1],
                   bytes = experts * (columns + 1) * sizeof *w->means;
    *out_has = w->importance && hdl_importance_has(w->importance, &t->tensor);
    if (!*out_has) return HD_OK;
    hdl_free(&w->allocator, w->means, w->means_bytes);
    w->means_bytes = 0;
    w->means = hdl_alloc(&w->allocator, bytes);
    if (!w->means) return no_memory(error);
    w->means_bytes = bytes;
    float *counts = w->means + experts * columns;
    const hd_status status = hdl_importance_read(w->importance, &t->tensor, w->means, counts, error);
    *out_has = false; /* where no row came, the file says nothing */
    for (uint64_t i = 0; i < experts; i++) *out_has = *out_has || counts[i] > 0;
    return status;
}

/* A ternary tensor unpacked, which is much smaller than what it becomes. */
static hd_status unpack(const work *w, const target *t, hdl_span *out_blocks, float *out_scale, hd_error *error) {
    hdl_ternary from = { t->tensor.type, t->tensor.shape, t->tiles, { 0 } };
    const hd_status status = hdl_gguf_data(w->gguf, &t->tensor, &from.data, error);
    return status ? status : hdl_ternary_blocks(&w->allocator, t->tensor.name, &from, out_blocks, out_scale, error);
}

/* The tensor in its new type, or as it is; `blocks` are those of a ternary one that changes. */
static hd_status give(work *w, const target *t, hdl_span blocks, float scale, hdl_gguf_sink sink, void *to,
                      hd_error *error) {
    const bool changes = t->type != t->tensor.type;
    const uint32_t own = !blocks.bytes ? t->tensor.type
                         : hdl_ternary_dtype(t->tensor.shape) == HD_TQ2_0 ? HDL_GGUF_TYPE_TQ2_0 : HDL_GGUF_TYPE_Q4_0;
    const hdl_gguf_type_facts was = hdl_gguf_type_info(own), is = hdl_gguf_type_info(t->type);
    const uint64_t step = changes ? (uint64_t)PIECES * PIECE / was.block_elements * was.block_bytes : BYTES,
                   all = blocks.bytes ? blocks.count : t->tensor.bytes;
    conversion c = { .w = w, .from = hdl_gguf_dtype(own), .to = hdl_gguf_dtype(t->type), .scale = scale };
    double error_sum = 0, size_sum = 0;
    bool weighted = false;
    hd_status status = changes ? read_importance(w, t, &weighted, error) : HD_OK;
    if (weighted) {
        c.columns = (uint64_t)t->tensor.shape.dims[t->tensor.shape.rank - 1];
        c.matrix = hd_shape_elements(t->tensor.shape) / hdl_importance_experts(&t->tensor);
    }
    for (uint64_t at = 0; at < all && !status; at += step, c.first += c.elements) {
        const uint64_t bytes = all - at < step ? all - at : step;
        if (blocks.bytes) memcpy(w->from, blocks.bytes + at, bytes);
        else status = hdl_gguf_read(w->gguf, &t->tensor, at, bytes, w->from, error);
        c.elements = changes ? bytes / was.block_bytes * was.block_elements : 0;
        if (!status && changes) status = convert(&c, t, &error_sum, &size_sum, error);
        if (status) return status;
        if (!sink(to, changes ? w->to : w->from, changes ? c.elements / is.block_elements * is.block_bytes : bytes))
            return HD_OK;
    }
    if (!status) report(w, t, weighted, error_sum, size_sum);
    return status;
}

static hd_status fill(void *user, uint32_t number, hdl_gguf_sink sink, void *to, hd_error *error) {
    work *w = user;
    const target *t = &w->targets[number];
    hdl_span blocks = { 0 };
    float scale = 1;
    hd_status status = HD_OK;
    if (t->type != t->tensor.type && hdl_is_ternary(t->tensor.type)) status = unpack(w, t, &blocks, &scale, error);
    if (!status) status = give(w, t, blocks, scale, sink, to, error);
    hdl_free(&w->allocator, (void *)(uintptr_t)blocks.bytes, blocks.count);
    hdl_gguf_rest(w->gguf, &t->tensor);
    return status;
}

static hd_status run(work *w, const char *out_path, hd_error *error) {
    const hdl_mix_row *row = hdl_mix_find(w->desc->type);
    hd_status status = check_sayings(w->desc, error);
    if (status) return status;
    if (!row)
        return hdl_fail(error, HD_STATUS_NAME_NOT_FOUND, "no type is called %.40s; there are %s", w->desc->type,
                        hdl_mix_names());
    w->values = hdl_alloc(&w->allocator, BYTES);
    w->back = hdl_alloc(&w->allocator, BYTES);
    w->weights = hdl_alloc(&w->allocator, BYTES);
    w->from = hdl_alloc(&w->allocator, BYTES);
    w->to = hdl_alloc(&w->allocator, BYTES);
    w->writer = hdl_gguf_writer_create(&w->allocator, 0);
    if (!w->values || !w->back || !w->weights || !w->from || !w->to || !w->writer) return no_memory(error);
    if (w->desc->importance)
        status = hdl_importance_open(w->desc->importance, &w->allocator, &w->importance, error);
    if (!status) status = plan(w, row, error);
    if (status) return status;
    put_all(w, row->file_type);
    hdl_gguf_fill_by(w->writer, fill, w);
    return hdl_gguf_write_file(w->writer, out_path, error);
}

hd_status hd_model_quantize(hd_context *context, const char *path, const char *out_path, const hd_quantize_desc *desc) {
    if (!context || !path || !out_path || !desc || !desc->type || (desc->keep_count && !desc->keep) ||
        (desc->saying_count && !desc->sayings))
        return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    work w = { .context = context, .desc = desc, .allocator = hd_context_allocator(context) };
    hd_status status = hdl_gguf_open(path, &(hdl_gguf_desc){ .allocator = &w.allocator }, &w.gguf, &error);
    if (!status) status = run(&w, out_path, &error);
    hdl_gguf_writer_destroy(w.writer);
    hdl_free(&w.allocator, w.targets, w.count * sizeof *w.targets);
    hdl_free(&w.allocator, w.values, BYTES);
    hdl_free(&w.allocator, w.back, BYTES);
    hdl_free(&w.allocator, w.weights, BYTES);
    hdl_free(&w.allocator, w.means, w.means_bytes);
    hdl_free(&w.allocator, w.from, BYTES);
    hdl_free(&w.allocator, w.to, BYTES);
    hdl_gguf_close(w.importance);
    hdl_gguf_close(w.gguf);
    return status ? hd_context_put_error(context, &error) : HD_OK;
}
