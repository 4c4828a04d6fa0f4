/* arch.h: what a family of models is. A family is one file in this folder and one row in HDL_ARCH_LIST: its tensors,
 * what it reads beyond the figures that every decoder has (figures.c), and its graph, composed of the blocks of
 * decoder.c and of the operations of heddle.h.
 *
 * How a family says what the ones that are here do not have:
 *   fused weights        one row for the tensor, one hdl_linear, and hdl_columns of the result (phi3.c)
 *   biases               rows named "....bias": hdl_linear adds the bias that stands beside a weight
 *   layer norm           hd_layer_norm of hdl_vector(g, "....weight") and hdl_vector(g, "....bias")
 *   norms behind blocks  hdl_rms_norm of a block's result before it is added to x
 *   scaled embeddings    `embed`: hd_scale of hdl_embed
 *   learned positions    `embed`: hd_gather from a row of where HDL_EMBED, by g->positions; and no hdl_turned
 *   soft cap of logits   `logits`: hd_scale, hd_tanh, hd_scale of hdl_logits
 *   layers that differ   by g->layer, and by hdl_has(g, name) of optional rows
 *   window, soft cap of  fields of hd_attention_desc, once the operation has them. Until then `read` refuses the key
 *   scores, experts      by name: hdl_key_refuse */
#ifndef HDL_ARCH_H
#define HDL_ARCH_H

#include "llm/graph.h"

/* ---- weights ---- */

/* Which part of the model needs a weight. */
typedef enum hdl_where { HDL_LAYER, HDL_EMBED, HDL_HEAD } hdl_where;
/* A tensor of a family. Lengths are letters: H hidden, Q all query heads, K all key heads, A both and the values
 * (Q + 2 K), D one head, F feed-forward, G gate and up (2 F), V vocabulary. */
struct hdl_tensor_row {
    const char *name;       /* in the file; of a layer what follows "blk.N." */
    char        rows, columns; /* columns 0: it has one axis */
    bool        optional;
    hdl_where   where;
};

/* Rows that most families have. A family's list has the rows of a layer first, and ends with HDL_TENSORS_OUTSIDE. */
#define HDL_TENSORS_NORMS                                                                                              \
    { "attn_norm.weight", 'H', 0, false, HDL_LAYER }, { "ffn_norm.weight", 'H', 0, false, HDL_LAYER }
#define HDL_TENSORS_QKV                                                                                              \
    { "attn_q.weight", 'Q', 'H', false, HDL_LAYER }, { "attn_k.weight", 'K', 'H', false, HDL_LAYER },                \
    { "attn_v.weight", 'K', 'H', false, HDL_LAYER }
#define HDL_TENSORS_QKV_BIAS(optional)                                                                               \
    { "attn_q.bias", 'Q', 0, optional, HDL_LAYER }, { "attn_k.bias", 'K', 0, optional, HDL_LAYER },                  \
    { "attn_v.bias", 'K', 0, optional, HDL_LAYER }
#define HDL_TENSORS_OUT                                                                                                \
    { "attn_output.weight", 'H', 'Q', false, HDL_LAYER }, { "attn_output.bias", 'H', 0, true, HDL_LAYER }
#define HDL_TENSORS_GATED                                                                                            \
    { "ffn_gate.weight", 'F', 'H', false, HDL_LAYER }, { "ffn_up.weight", 'F', 'H', false, HDL_LAYER },              \
    { "ffn_down.weight", 'H', 'F', false, HDL_LAYER }
#define HDL_TENSORS_OUTSIDE                                                                                          \
    { "token_embd.weight", 'V', 'H', false, HDL_EMBED }, { "output_norm.weight", 'H', 0, false, HDL_HEAD },          \
    { "output.weight", 'V', 'H', true, HDL_HEAD }, { 0 }

/* ---- keys (figures.c) ---- */

/* The keys of a file while they are read. The first failure stays; what is read behind it is the fallback. */
typedef struct hdl_keys {
    hd_model *model;
    hd_error *error;
    hd_status status;
} hdl_keys;
/* The key "<architecture>.<rest>" must be there. */
void hdl_key_need(hdl_keys *k, const char *rest);
uint32_t hdl_key_u32(hdl_keys *k, const char *rest, uint32_t low, uint32_t high, uint32_t fallback);
float hdl_key_f32(hdl_keys *k, const char *rest, float low, float high, float fallback);
/* UNSUPPORTED where the key is there and not 0: `what` cannot be run yet. */
void hdl_key_refuse(hdl_keys *k, const char *rest, const char *what);

/* ---- families ---- */

/* A program while it is built. Failures of the builders are sticky. */
typedef struct hdl_graph {
    const hd_model *model;
    hd_program     *program;
    hdl_size        size;
    uint32_t        layer;      /* the one that is built */
    hd_value        positions, past, pages, embedding; /* the last: the table of tokens */
} hdl_graph;

struct hdl_arch {
    const hdl_tensor_row *tensors;
    hd_rope_pairing       pairing;
    void (*read)(hdl_keys *k);                            /* keys of its own; NULL: none */
    hd_value (*embed)(hdl_graph *g, hd_value tokens);     /* i32 [rows] to f32 [rows,H] */
    hd_value (*layer)(hdl_graph *g, hd_value x);          /* layer g->layer: [rows,H] to the same */
    hd_value (*logits)(hdl_graph *g, hd_value x);         /* [n,H] to [n,V] */
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

/* ---- blocks (decoder.c) ---- */

typedef struct hdl_qkv { hd_value q, k, v; } hdl_qkv; /* [rows,heads,D], keys and values [rows,kv_heads,D] */

bool hdl_has(const hdl_graph *g, const char *name);
/* A weight of one axis in f32; 0 where the file has none. */
hd_value hdl_vector(const hdl_graph *g, const char *name);
/* x times the transposed "<stem>.weight", with its factor, and "<stem>.bias" added where the file has it. */
hd_value hdl_linear(const hdl_graph *g, hd_value x, const char *stem);
/* Columns begin .. end-1 of [rows,n]: a part of what a fused weight gives. */
hd_value hdl_columns(const hdl_graph *g, hd_value x, int64_t begin, int64_t end);
hd_value hdl_rms_norm(const hdl_graph *g, hd_value x, const char *stem);
/* [rows,heads*D] as heads. */
hd_value hdl_heads(const hdl_graph *g, hd_value x, uint32_t heads);
/* Queries, keys and values by "attn_q", "attn_k" and "attn_v". */
hdl_qkv hdl_project(const hdl_graph *g, hd_value x);
/* Queries and keys turned by their positions. */
hdl_qkv hdl_turned(const hdl_graph *g, hdl_qkv s);
/* Writes keys and values into the layer's cache, and attends over it: [rows,heads*D]. */
hd_value hdl_attend(const hdl_graph *g, hdl_qkv s);
/* activation(gate) * up, by "ffn_gate" and "ffn_up". */
hd_value hdl_gated(const hdl_graph *g, hd_value x, hd_value (*activation)(hd_program *p, hd_value x));
/* Rows of "token_embd". */
hd_value hdl_embed(hdl_graph *g, hd_value tokens);
/* The product of normed x and "output", or "token_embd" where the file has no other. */
hd_value hdl_logits(hdl_graph *g, hd_value x);
/* A layer of llama: x + out(attention), then x + down(silu(gate) * up), each of the normed x. */
hd_value hdl_llama_layer(hdl_graph *g, hd_value x);

#endif
