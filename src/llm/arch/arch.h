/* arch.h: what a family of models is. A family is one file in this folder and one row in HDL_ARCH_LIST: the tensors
 * that its files have, which elements its rotary embedding pairs, what its gates are put through, and the figures that
 * it alone has. Its layers are those of decoder.c: a part that not all families have is computed where the family lists
 * its tensor and the file has it.
 *
 * How a family says what it has:
 *   fused weights        "attn_qkv" in place of "attn_q", "attn_k" and "attn_v"; "ffn_up" of HDL_LEN_GATE_UP rows and
 *                        no "ffn_gate" (phi3.c)
 *   no gates             "ffn_up" of HDL_LEN_FORWARD rows and no "ffn_gate" (gpt2.c)
 *   biases               HDL_LINEAR lists the bias that may stand beside each weight of a layer
 *   layer norms          HDL_LAYER_NORM; with `layer_norm` all of the family's norms are such, with a bias or without
 *   norms of queries and keys    "attn_q_norm" and "attn_k_norm", of each head (qwen3.c) or of all at once (olmo2.c)
 *   norms before an output, or a down product    "attn_sub_norm", "ffn_sub_norm" (bitnet.c)
 *   norms behind a block "post_attention_norm", "post_ffw_norm" (gemma2.c)
 *   sinks of the scores  "attn_sinks" (gpt_oss.c)
 *   norms of the sums behind the blocks    "attn_output_norm", "layer_output_norm" (bert.c)
 *   a norm of the embedding    "token_embd_norm" (bert.c)
 *   learned positions    "position_embd" (gpt2.c)
 *   experts              a second list, with HDL_TENSORS_EXPERTS in place of the feed-forward's (llama.c), or beside
 *                        them where first layers have none (deepseek2.c)
 *   keys and values that are made of one short vector    HDL_TENSORS_LATENT (latent.c)
 * A tensor that no row lists is refused by its name, so what a family lacks here cannot be lost without a word. Keys
 * that all families have are read in figures.c and rope.c, those of few by the family's `read`; the rest is
 * keys.c's. */
#ifndef HDL_ARCH_H
#define HDL_ARCH_H

#include "llm/graph.h"
#include "llm/keys.h"

/* ---- weights ---- */

/* Which part of the model needs a weight. */
typedef enum hdl_where { HDL_LAYER, HDL_EMBED, HDL_HEAD } hdl_where;
/* How long an axis of a tensor is. A layer has no tensor of which an axis has the length 0. */
typedef enum hdl_length {
    HDL_LEN_NONE,       /* there is no such axis */
    HDL_LEN_HIDDEN,
    HDL_LEN_QUERIES,    /* of all query heads */
    HDL_LEN_KEYS,       /* of all key heads, or of all value heads */
    HDL_LEN_QKV,        /* queries, keys and values */
    HDL_LEN_HEAD,       /* of one head */
    HDL_LEN_HEADS,      /* a number for each query head */
    HDL_LEN_FORWARD,
    HDL_LEN_GATE_UP,    /* twice that */
    HDL_LEN_CONTEXT,    /* of the model */
    HDL_LEN_EXPERTS,
    HDL_LEN_EXPERT,     /* of the feed-forward of one expert */
    HDL_LEN_SHARED,     /* of that of the expert of all tokens */
    HDL_LEN_LATENT,     /* of what keys and values are made of */
    HDL_LEN_QUERY_LATENT, /* and queries, if they are */
    HDL_LEN_OWN_KEYS,   /* of all query heads' keys, as they are before they are made so short */
    HDL_LEN_DIRECT_QUERIES, /* the same where queries are made of a row at once; else 0 */
    HDL_LEN_STILL,      /* of such a key, what does not turn */
    HDL_LEN_OWN_VALUE, HDL_LEN_OWN_VALUES, /* of a query head's value; of all */
    HDL_LEN_TYPES,      /* of tokens: which of two texts they belong to */
    HDL_LEN_PATCH,      /* of an image: the colours of its pixels */
    HDL_LEN_PROJECTED,  /* of a row that a model takes in place of a token's */
    HDL_LEN_VOCABULARY
} hdl_length;
/* A tensor of a family. */
struct hdl_tensor_row {
    const char *name;       /* in the file; of a layer what follows "blk.N." */
    hdl_length  rows, columns;
    bool        optional;
    hdl_where   where;
    hdl_length  each;       /* there is one for each of so many, experts or heads, in one tensor with an axis more */
    const char *seeing;     /* its name in files that see; of a layer what follows "v.blk.N."; NULL: as `name` */
};

/* Rows of a layer: a norm; a weight that is multiplied with; the same and its bias. */
#define HDL_NORM(stem, length) { stem ".weight", HDL_LEN_##length, HDL_LEN_NONE, false, HDL_LAYER, HDL_LEN_NONE, NULL }
#define HDL_WEIGHT(stem, rows, columns, each)                                                                          \
    { stem ".weight", HDL_LEN_##rows, HDL_LEN_##columns, false, HDL_LAYER, HDL_LEN_##each, NULL }
#define HDL_LINEAR(stem, rows, columns, optional_bias)                                                                 \
    { stem ".weight", HDL_LEN_##rows, HDL_LEN_##columns, false, HDL_LAYER, HDL_LEN_NONE, NULL },                       \
    { stem ".bias", HDL_LEN_##rows, HDL_LEN_NONE, optional_bias, HDL_LAYER, HDL_LEN_NONE, NULL }
#define HDL_LAYER_NORM(stem, length)                                                                                   \
    HDL_NORM(stem, length), { stem ".bias", HDL_LEN_##length, HDL_LEN_NONE, false, HDL_LAYER, HDL_LEN_NONE, NULL }
#define HDL_OPTIONAL_LAYER_NORM(stem, length)                                                                          \
    { stem ".weight", HDL_LEN_##length, HDL_LEN_NONE, true, HDL_LAYER, HDL_LEN_NONE, NULL },                           \
    { stem ".bias", HDL_LEN_##length, HDL_LEN_NONE, true, HDL_LAYER, HDL_LEN_NONE, NULL }
/* Rows that most families have. A family's list has the rows of a layer first, and ends with HDL_TENSORS_OUTSIDE. */
#define HDL_TENSORS_NORMS HDL_NORM("attn_norm", HIDDEN), HDL_NORM("ffn_norm", HIDDEN)
#define HDL_TENSORS_QKV(optional_bias)                                                                                 \
    HDL_LINEAR("attn_q", QUERIES, HIDDEN, optional_bias), HDL_LINEAR("attn_k", KEYS, HIDDEN, optional_bias),           \
    HDL_LINEAR("attn_v", KEYS, HIDDEN, optional_bias)
#define HDL_TENSORS_OUT HDL_LINEAR("attn_output", HIDDEN, QUERIES, true)
#define HDL_TENSORS_GATED                                                                                              \
    HDL_LINEAR("ffn_gate", FORWARD, HIDDEN, true), HDL_LINEAR("ffn_up", FORWARD, HIDDEN, true),                        \
    HDL_LINEAR("ffn_down", HIDDEN, FORWARD, true)
/* A mixture of experts in place of ffn_gate, ffn_up and ffn_down. */
#define HDL_EXPERTS(stem, rows, columns) HDL_WEIGHT(stem, rows, columns, EXPERTS)
#define HDL_TENSORS_EXPERTS                                                                                            \
    HDL_WEIGHT("ffn_gate_inp", EXPERTS, HIDDEN, NONE),                                                                 \
    HDL_EXPERTS("ffn_gate_exps", EXPERT, HIDDEN), HDL_EXPERTS("ffn_up_exps", EXPERT, HIDDEN),                          \
    HDL_EXPERTS("ffn_down_exps", HIDDEN, EXPERT)
/* An expert that all tokens use. */
#define HDL_TENSORS_SHARED                                                                                             \
    HDL_WEIGHT("ffn_gate_shexp", SHARED, HIDDEN, NONE), HDL_WEIGHT("ffn_up_shexp", SHARED, HIDDEN, NONE),              \
    HDL_WEIGHT("ffn_down_shexp", HIDDEN, SHARED, NONE)
/* Attention whose keys and values are made of one short vector a token, in place of HDL_TENSORS_QKV and _OUT. */
#define HDL_TENSORS_LATENT                                                                                             \
    HDL_WEIGHT("attn_q", DIRECT_QUERIES, HIDDEN, NONE), HDL_WEIGHT("attn_q_a", QUERY_LATENT, HIDDEN, NONE),            \
    HDL_NORM("attn_q_a_norm", QUERY_LATENT), HDL_WEIGHT("attn_q_b", OWN_KEYS, QUERY_LATENT, NONE),                     \
    HDL_WEIGHT("attn_kv_a_mqa", HEAD, HIDDEN, NONE), HDL_NORM("attn_kv_a_norm", LATENT),                               \
    HDL_WEIGHT("attn_k_b", LATENT, STILL, HEADS), HDL_WEIGHT("attn_v_b", OWN_VALUE, LATENT, HEADS),                    \
    HDL_WEIGHT("attn_output", HIDDEN, OWN_VALUES, NONE)
#define HDL_TENSORS_POST_NORMS HDL_NORM("post_attention_norm", HIDDEN), HDL_NORM("post_ffw_norm", HIDDEN)
#define HDL_TENSORS_LAYER_NORMS HDL_LAYER_NORM("attn_norm", HIDDEN), HDL_LAYER_NORM("ffn_norm", HIDDEN)
#define HDL_TENSORS_UNGATED HDL_LINEAR("ffn_up", FORWARD, HIDDEN, true), HDL_LINEAR("ffn_down", HIDDEN, FORWARD, true)
/* Of layer norms: the bias of the last one, which is outside of the layers. */
#define HDL_BIAS_OUTSIDE { "output_norm.bias", HDL_LEN_HIDDEN, HDL_LEN_NONE, false, HDL_HEAD, HDL_LEN_NONE, NULL }
#define HDL_TENSORS_OUTSIDE                                                                                            \
    { "token_embd.weight", HDL_LEN_VOCABULARY, HDL_LEN_HIDDEN, false, HDL_EMBED, HDL_LEN_NONE, NULL },                 \
    { "output_norm.weight", HDL_LEN_HIDDEN, HDL_LEN_NONE, false, HDL_HEAD, HDL_LEN_NONE, NULL },                       \
    { "output.weight", HDL_LEN_VOCABULARY, HDL_LEN_HIDDEN, true, HDL_HEAD, HDL_LEN_NONE, NULL },                       \
    { "output.bias", HDL_LEN_VOCABULARY, HDL_LEN_NONE, true, HDL_HEAD, HDL_LEN_NONE, NULL }, { 0 }
/* Of encoders: norms behind each block, and what goes into the first layer; nothing makes logits. */
#define HDL_TENSORS_SUM_NORMS                                                                                          \
    HDL_LAYER_NORM("attn_output_norm", HIDDEN), HDL_LAYER_NORM("layer_output_norm", HIDDEN)
#define HDL_TENSORS_EMBEDDED                                                                                           \
    { "token_embd.weight", HDL_LEN_VOCABULARY, HDL_LEN_HIDDEN, false, HDL_EMBED, HDL_LEN_NONE, NULL },                 \
    { "token_types.weight", HDL_LEN_TYPES, HDL_LEN_HIDDEN, true, HDL_EMBED, HDL_LEN_NONE, NULL },                      \
    { "token_embd_norm.weight", HDL_LEN_HIDDEN, HDL_LEN_NONE, false, HDL_EMBED, HDL_LEN_NONE, NULL },                  \
    { "token_embd_norm.bias", HDL_LEN_HIDDEN, HDL_LEN_NONE, false, HDL_EMBED, HDL_LEN_NONE, NULL }, { 0 }

/* ---- families ---- */

struct hdl_arch {
    const hdl_tensor_row *tensors;      /* NULL: all its models have experts */
    hd_rope_pairing       pairing;
    /* of the gates, or of what is up where there are none; NULL: `read` gives figures.gate */
    hd_value (*activation)(hd_program *p, hd_value x);
    void (*read)(hdl_keys *k); /* figures that are not every family's; NULL: none */
    bool     layer_norm;
    bool     still;            /* nothing turns: there is no rotary embedding */
    const hdl_tensor_row *with_experts; /* of models with experts; NULL: there are none */
    bool     whole_shares;     /* the shares of the chosen experts add up to 1; `read` may say otherwise */
};

/* Every family: X(general.architecture, its hdl_arch). */
#define HDL_ARCH_LIST(X)                                                                                               \
    X("llama", llama)                                                                                                  \
    X("qwen2", qwen2)                                                                                                  \
    X("qwen3", qwen3)                                                                                                  \
    X("bitnet", bitnet)                                                                                                \
    X("bitnet-b1.58", bitnet_relu)                                                                                     \
    X("bitnet-25", bitnet_relu)                                                                                        \
    X("phi3", phi3)                                                                                                    \
    X("gemma", gemma)                                                                                                  \
    X("gemma2", gemma2)                                                                                                \
    X("gemma3", gemma3)                                                                                                \
    X("gpt2", gpt2)                                                                                                    \
    X("gptneox", gptneox)                                                                                              \
    X("starcoder2", starcoder2)                                                                                        \
    X("falcon", falcon)                                                                                                \
    X("stablelm", stablelm)                                                                                            \
    X("olmo2", olmo2)                                                                                                  \
    X("granite", granite)                                                                                              \
    X("smollm3", smollm3)                                                                                              \
    X("command-r", command_r)                                                                                          \
    X("glm4", glm4)                                                                                                    \
    X("qwen2moe", qwen2moe)                                                                                            \
    X("qwen3moe", qwen3moe)                                                                                            \
    X("olmoe", olmoe)                                                                                                  \
    X("granitemoe", granitemoe)                                                                                        \
    X("bert", bert)                                                                                                    \
    X("nomic-bert", nomic_bert)                                                                                        \
    X("gemma-embedding", gemma_embedding)                                                                              \
    X("deepseek2", deepseek2)                                                                                          \
    X("gpt-oss", gpt_oss)
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
    uint32_t        layer;      /* the one that is built, */
    hd_value        first_expert, last_expert; /* and the values that its experts compute; 0: it has none */
    hd_value        positions, past, pages, embedding; /* the last: the table of tokens, where it was
                                                            read. No pages: there is no cache */
    size_t          ports;      /* that the program had before */
    const hd_model_graph_desc *desc; /* of a graph that a caller asked for, else NULL */
} hdl_graph;

int64_t  hdl_rows(const hdl_graph *g);                     /* of a step: its sequences times their tokens */
hd_value hdl_embed(hdl_graph *g, hd_value tokens);         /* i32 [rows] to f32 [rows,H] */
hd_value hdl_layer(hdl_graph *g, hd_value x);              /* layer g->layer: [rows,H] to the same */
hd_value hdl_hidden(const hdl_graph *g, hd_value x);       /* behind the last norm: [n,H] to the same */
hd_value hdl_logits(const hdl_graph *g, hd_value x);       /* [n,H] to [n,V] */
hd_value hdl_linear(const hdl_graph *g, hd_value x, const char *stem); /* x times a weight, and its bias */
hd_value hdl_normed(const hdl_graph *g, hd_value x, const char *stem); /* x normed, where the family has that norm */
hd_value hdl_input(const hdl_graph *g, const char *name);  /* a weight, as an input that is there once */
/* What sees (siglip.c): f32 [patches,3*P*P], colours of pixels, to what its first layer gets; and what its last one
 * gave to rows that a model takes in place of tokens. */
extern const hdl_arch hdl_arch_siglip, hdl_arch_siglip_old; /* whose files have ffn_up and ffn_down the other way */
hd_value hdl_patches(const hdl_graph *g, hd_value patches);
hd_value hdl_project(const hdl_graph *g, hd_value x);
/* Queries, keys and values: [rows,heads,D], and [rows,kv_heads,D]. */
typedef struct hdl_qkv { hd_value q, k, v; } hdl_qkv;
/* Keys and values that are made of one short vector a token (latent.c): what attention reads of rows, and the values
 * [rows,heads*V] of what it gave. */
hdl_qkv  hdl_latent_qkv(const hdl_graph *g, hd_value x);
hd_value hdl_latent_values(const hdl_graph *g, hd_value attended);
/* Attention of an encoder whose windows are centred (centred.c), where a text is longer than one reaches: q, k and v
 * are [rows,heads,D], the result is [B,T,Hkv,heads/Hkv,D]. */
bool hdl_sees_centred(const hdl_graph *g);
hd_value hdl_attend_centred(const hdl_graph *g, hd_value q, hd_value k, hd_value v);
/* What all of Gemma reads, and Gemma 3 and its encoder; what encoders do; what all of Granite does. */
void hdl_gemma_read(hdl_keys *k);
void hdl_gemma3_read(hdl_keys *k);
extern const hdl_tensor_row hdl_gemma3_tensors[];
void hdl_encoder_read(hdl_keys *k);
void hdl_granite_read(hdl_keys *k);
/* The square of relu, as an activation. */
hd_value hdl_relu_squared(hd_program *p, hd_value x);

#endif
