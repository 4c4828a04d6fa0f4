/* layer.h: layers of a language model in the shapes of Qwen3-4B (width 2560, 32 heads of 128 over 8, feed-forward 9728; it has 36),
 * as the benchmarks of them build them. Of an attention and a feed-forward block each makes x + its own. */
#ifndef HEDDLE_BENCH_LAYER_H
#define HEDDLE_BENCH_LAYER_H
#include "random.h"
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 2560, HEADS = 32, KV_HEADS = 8, HEAD = 128, FORWARD = 9728, VOCABULARY = 151936 };

/* A model under way: its inputs "x", "positions" and "past", and the number of the layer that is built. */
typedef struct model {
    hd_context *context;
    hd_program *p;
    hd_dtype    type; /* of its matrices */
    int64_t     tokens, room; /* rows, and keys that its caches have room for */
    hd_value    x, positions, past;
    int         layer;
} model;

static inline void must(hd_context *context, hd_status status) {
    if (status == HD_OK) return;
    fprintf(stderr, "%s\n", hd_context_error(context));
    exit(1);
}

static inline model begin_model(hd_context *context, hd_dtype type, int64_t tokens, int64_t room) {
    model m = { .context = context, .p = hd_program_create(context), .type = type, .tokens = tokens, .room = room };
    m.x = hd_input(m.p, "x", HD_F32, HD_SHAPE(tokens, WIDTH));
    m.positions = hd_input(m.p, "positions", HD_I32, HD_SHAPE(tokens));
    m.past = hd_input(m.p, "past", HD_I32, HD_SHAPE(1));
    return m;
}

/* "NAME.3" in the fourth layer. */
typedef struct layer_name { char text[32]; } layer_name;
static inline layer_name name_in_layer(const model *m, const char *name) {
    layer_name out;
    snprintf(out.text, sizeof out.text, "%s.%d", name, m->layer);
    return out;
}
static inline hd_value weight_of(const model *m, const char *name, hd_dtype type, hd_shape shape) {
    return hd_input(m->p, name_in_layer(m, name).text, type, shape);
}
static inline hd_value product_of(const model *m, hd_value x, const char *name, int64_t rows, int64_t columns) {
    return hd_matmul_with(m->p, x, weight_of(m, name, m->type, HD_SHAPE(rows, columns)), HD_TRANSPOSE_B);
}
static inline hd_value norm_of(const model *m, hd_value x, const char *name) {
    return hd_rms_norm(m->p, x, weight_of(m, name, HD_F32, HD_SHAPE(WIDTH)), 1e-6f);
}
static inline hd_value heads_of(const model *m, hd_value x, const char *norm, int64_t heads) {
    const hd_value rows = hd_reshape(m->p, x, HD_SHAPE(m->tokens, heads, HEAD));
    return hd_rope(m->p, hd_rms_norm(m->p, rows, weight_of(m, norm, HD_F32, HD_SHAPE(HEAD)), 1e-6f), m->positions, NULL);
}
/* The cache `name` of the layer with `rows` [tokens, KV_HEADS, HEAD] written to it. */
static inline hd_value cache_with(const model *m, const char *name, hd_value rows) {
    const hd_value cache = hd_state(m->p, name_in_layer(m, name).text, HD_F16, HD_SHAPE(m->room, KV_HEADS, HEAD));
    return hd_write_rows(m->p, cache, hd_cast(m->p, rows, HD_F16), m->past);
}

static inline hd_value attention_block(const model *m, hd_value x) {
    const hd_value h = norm_of(m, x, "norm1"), q = heads_of(m, product_of(m, h, "wq", HEADS * HEAD, WIDTH), "qnorm", HEADS);
    const hd_value k = heads_of(m, product_of(m, h, "wk", KV_HEADS * HEAD, WIDTH), "knorm", KV_HEADS);
    const hd_value v = hd_reshape(m->p, product_of(m, h, "wv", KV_HEADS * HEAD, WIDTH), HD_SHAPE(m->tokens, KV_HEADS, HEAD));
    const hd_value seen = hd_attention(m->p, q, cache_with(m, "keys", k), cache_with(m, "values", v), m->past, NULL);
    const hd_value rows = hd_reshape(m->p, seen, HD_SHAPE(m->tokens, HEADS * HEAD));
    return hd_add(m->p, x, product_of(m, rows, "wo", WIDTH, HEADS * HEAD));
}
static inline hd_value forward_block(const model *m, hd_value x) {
    const hd_value g = norm_of(m, x, "norm2"), up = product_of(m, g, "wu", FORWARD, WIDTH);
    const hd_value gate = hd_silu(m->p, product_of(m, g, "wg", FORWARD, WIDTH));
    return hd_add(m->p, x, product_of(m, hd_mul(m->p, gate, up), "wd", WIDTH, FORWARD));
}

/* Writes the plan's inputs: random blocks with small scales, which as bf16 are smaller still; floats in [-0.5, 0.5); and
 * positions behind `before` tokens. */
static inline void fill_inputs(const model *m, hd_plan *plan, int before) {
    uint32_t seed = 1;
    for (size_t i = 0; i < hd_program_port_count(m->p); i++) {
        const hd_port port = hd_program_port(m->p, i);
        const uint64_t bytes = hd_tensor_bytes(port.dtype, port.shape);
        if (port.kind != HD_PORT_INPUT) continue;
        void *data = malloc(bytes);
        if (!data) exit(1);
        if (port.dtype == HD_I32)
            for (uint64_t e = 0; e < bytes / 4; e++) ((int32_t *)data)[e] = before + (int32_t)e;
        else if (port.dtype == HD_F32)
            for (uint64_t e = 0; e < bytes / 4; e++) ((float *)data)[e] = 0.5f * random_float(&seed);
        else
            random_blocks(&seed, data, bytes, SMALL_F16);
        must(m->context, hd_plan_write(plan, port.name, data, bytes));
        free(data);
    }
}
#endif
