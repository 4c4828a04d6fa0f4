/* arch.h: what a family of models is. A family is one file in this folder and one row in HDL_ARCH_LIST: the tensors
 * that its files have, which elements its rotary embedding pairs, and what its gates are put through. Its layers are
 * those of decoder.c: a part that not all families have is computed where the family lists its tensor and the file has it.
 *
 * How a family says what it has:
 *   fused weights        "attn_qkv" in place of "attn_q", "attn_k" and "attn_v"; "ffn_up" of HDL_LEN_GATE_UP rows and
 *                        no "ffn_gate" (phi3.c)
 *   biases               HDL_LINEAR lists the bias that may stand beside each weight of a layer
 *   norms of each head   "attn_q_norm" and "attn_k_norm" (qwen3.c)
 *   norms before an output, or a down product    "attn_sub_norm", "ffn_sub_norm" (bitnet.c)
 * A tensor that no row lists is refused by its name, so what a family lacks here cannot be lost without a word. Keys
 * are alike for all families: figures.c, rope.c and keys.c. */
#ifndef HDL_ARCH_H
#define HDL_ARCH_H

#include "llm/graph.h"

/* ---- weights ---- */

/* Which part of the model needs a weight. */
typedef enum hdl_where { HDL_LAYER, HDL_EMBED, HDL_HEAD } hdl_where;
/* How long an axis of a tensor is. */
typedef enum hdl_length {
    HDL_LEN_NONE,       /* there is no such axis */
    HDL_LEN_HIDDEN,
    HDL_LEN_QUERIES,    /* of all query heads */
    HDL_LEN_KEYS,       /* of all key heads, or of all value heads */
    HDL_LEN_QKV,        /* queries, keys and values */
    HDL_LEN_HEAD,       /* of one head */
    HDL_LEN_FORWARD,
    HDL_LEN_GATE_UP,    /* twice that */
    HDL_LEN_VOCABULARY
} hdl_length;
/* A tensor of a family. */
struct hdl_tensor_row {
    const char *name;       /* in the file; of a layer what follows "blk.N." */
    hdl_length  rows, columns;
    bool        optional;
    hdl_where   where;
};

/* Rows of a layer: a norm; a weight that is multiplied with, and its bias. */
#define HDL_NORM(stem, length) { stem ".weight", HDL_LEN_##length, HDL_LEN_NONE, false, HDL_LAYER }
#define HDL_LINEAR(stem, rows, columns, optional_bias)                                                                 \
    { stem ".weight", HDL_LEN_##rows, HDL_LEN_##columns, false, HDL_LAYER },                                           \
    { stem ".bias", HDL_LEN_##rows, HDL_LEN_NONE, optional_bias, HDL_LAYER }
/* Rows that most families have. A family's list has the rows of a layer first, and ends with HDL_TENSORS_OUTSIDE. */
#define HDL_TENSORS_NORMS HDL_NORM("attn_norm", HIDDEN), HDL_NORM("ffn_norm", HIDDEN)
#define HDL_TENSORS_QKV(optional_bias)                                                                                 \
    HDL_LINEAR("attn_q", QUERIES, HIDDEN, optional_bias), HDL_LINEAR("attn_k", KEYS, HIDDEN, optional_bias),           \
    HDL_LINEAR("attn_v", KEYS, HIDDEN, optional_bias)
#define HDL_TENSORS_OUT HDL_LINEAR("attn_output", HIDDEN, QUERIES, true)
#define HDL_TENSORS_GATED                                                                                              \
    HDL_LINEAR("ffn_gate", FORWARD, HIDDEN, true), HDL_LINEAR("ffn_up", FORWARD, HIDDEN, true),                        \
    HDL_LINEAR("ffn_down", HIDDEN, FORWARD, true)
#define HDL_TENSORS_OUTSIDE                                                                                            \
    { "token_embd.weight", HDL_LEN_VOCABULARY, HDL_LEN_HIDDEN, false, HDL_EMBED },                                     \
    { "output_norm.weight", HDL_LEN_HIDDEN, HDL_LEN_NONE, false, HDL_HEAD },                                           \
    { "output.weight", HDL_LEN_VOCABULARY, HDL_LEN_HIDDEN, true, HDL_HEAD },                                           \
    { "output.bias", HDL_LEN_VOCABULARY, HDL_LEN_NONE, true, HDL_HEAD }, { 0 }

/* ---- families ---- */

struct hdl_arch {
    const hdl_tensor_row *tensors;
    hd_rope_pairing       pairing;
    hd_value (*activation)(hd_program *p, hd_value x); /* of the gates */
};

/* Every family: X(general.architecture, its hdl_arch). */
#define HDL_ARCH_LIST(X)                                                                                             \
    X("llama", llama)                                                                                                \
    X("qwen2", qwen2)                                                                                                \
    X("qwen3", qwen3)                                                                                                \
    X("bitnet", bitnet)                                                                                              \
    X("bitnet-b1.58", bitnet_relu)                                                                                   \
    X("bitnet-25", bitnet_relu)                                                                                      \
    X("phi3", phi3)
#define HDL_ARCH_DECLARE(name, arch) extern const hdl_arch hdl_arch_##arch;
HDL_ARCH_LIST(HDL_ARCH_DECLARE)
#undef HDL_ARCH_DECLARE

/* The family that runs `name`, a file's general.architecture; NULL: none. `out_name` is static. */
const hdl_arch *hdl_arch_find(hdl_span name, const char **out_name);
/* "llama, qwen2, ...": the names that hdl_arch_find knows. */
void hdl_arch_names(char *out, size_t room);

/* ---- the graph (decoder.c) ---- */

/* A program while it is built. Failures of the builders are sticky. */
typedef struct hdl_graph {
    const hd_model *model;
    hd_program     *program;
    hdl_size        size;
    uint32_t        layer;      /* the one that is built */
    hd_value        positions, past, pages, embedding; /* the last: the table of tokens */
} hdl_graph;

hd_value hdl_embed(hdl_graph *g, hd_value tokens);         /* i32 [rows] to f32 [rows,H] */
hd_value hdl_layer(const hdl_graph *g, hd_value x);        /* layer g->layer: [rows,H] to the same */
hd_value hdl_logits(const hdl_graph *g, hd_value x);       /* [n,H] to [n,V] */
/* The square of relu, as an activation. */
hd_value hdl_relu_squared(hd_program *p, hd_value x);

#endif
