/* model.h: a GGUF file as a model: its figures, its vocabulary, its weights. Read-only once opened. */
#ifndef HDL_MODEL_H
#define HDL_MODEL_H

#include "llm/form/trie.h"
#include "llm/ternary.h"
#include "llm/tokenizer.h"
#include <heddle_llm.h>
#include <stdatomic.h>

typedef struct hdl_arch hdl_arch;             /* what is known of a family: arch/arch.h */
typedef struct hdl_tensor_row hdl_tensor_row; /* a tensor that it lists */

/* Of a file that sees: images are squares of `image` pixels, cut into squares of `patch`; of so many patches in both
 * directions as `merged` says one row is made, `projected` long. Colours are made (c / 255 - mean) / deviation. */
typedef struct hdl_sight {
    uint32_t image, patch, merged, projected;
    float    mean[3], deviation[3];
} hdl_sight;

/* Figures of a model. */
typedef struct hdl_figures {
    uint32_t layers, hidden, heads, kv_heads, head_size, value_size, feed_forward, vocabulary, context;
    uint32_t experts, experts_used; /* of a layer, of a token; 0: there are none */
    uint32_t expert_forward, shared_forward; /* feed_forward of one of them, and of one that all tokens use */
    uint32_t dense_layers;       /* so many first layers have none */
    bool     whole_shares;       /* those of the chosen add up to 1 */
    bool     sigmoid_shares;     /* sigmoid of a score, not softmax of all */
    float    share_scale;        /* of shares; 1: none */
    /* What keys and values of all heads are made of, and queries (0: they are not): how long these vectors are, and
     * keys and values of a head before. head_size is then what attention reads, `latent` and what turns. 0: not so. */
    uint32_t latent, query_latent, own_key, own_value;
    uint32_t window;             /* the last tokens that a query sees in layers with a window; 0: all */
    bool     window_centred;     /* tokens up to half of it away are seen, on both sides */
    uint32_t window_period;      /* of so many layers the last has no window; 0: all have it */
    uint32_t still_period;       /* of so many layers the last does not turn; 0: all do */
    uint32_t token_types;        /* rows of the table of token types; 0: there is none */
    uint32_t pooling;            /* of rows to a vector, as the file's number says */
    bool     causal;             /* a token sees none behind it */
    bool     sees;               /* rows of images may stand in place of tokens */
    bool     parallel;           /* feed-forward beside attention, not behind it */
    bool     norm_between;       /* post_attention_norm is not behind attention, but before the feed-forward */
    float    epsilon;
    float    attention_scale;    /* of the scores; 0: 1 / sqrt(head_size) */
    float    attention_cap, logit_cap; /* x becomes cap * tanh(x / cap); 0: x */
    float    embedding_scale, residual_scale, logit_scale; /* 1: none */
    hd_value (*activation)(hd_program *p, hd_value x); /* NULL: the next one */
    hd_value (*gate)(hd_program *p, hd_value gate, hd_value up); /* in place of activation(gate) * up */
    float    rope_theta, rope_scale, rope_magnitude; /* as in hd_rope_desc */
    float    rope_local_theta;   /* of layers with a window, which have no other figures then; 0: as all */
    uint32_t rope_dims;
    uint32_t rope_context;       /* tokens that its angles were trained on */
    bool     yarn_truncates;     /* the bounds between which yarn mixes are whole pairs */
    float   *rope_factors;       /* rope_dims / 2 divisors; NULL: all 1 */
    float   *rope_far_factors;   /* those of contexts above rope_context; NULL: the same */
    hdl_sight sight;             /* of what sees, whose context is its patches; else 0 */
} hdl_figures;

/* A weight as programs use it. */
typedef struct hdl_weight {
    const hdl_tensor_row *row;
    bool            present;
    hdl_gguf_tensor tensor;
    const void     *data;    /* of an adapter's weight, which is not in the file; else NULL */
    hd_dtype        dtype;   /* on the device: the file's; ternary ones are unpacked to hdl_ternary_dtype */
    hdl_tiles       tiles;   /* of tl1 and tl2 */
    hd_shape        shape;
    float           scale;   /* the product's result is multiplied by it; 1 for none */
} hdl_weight;

/* Adapters that were put onto a model: two more weights for each of their weights' names, in every layer. */
#define HDL_LORA_A ".lora_a"
#define HDL_LORA_B ".lora_b"
typedef char hdl_names[64]; /* a weight's name, of HDL_WEIGHT_NAME bytes */
typedef struct hdl_adapted {
    hdl_tensor_row *rows;      /* of a layer, two for each weight */
    hdl_names      *names;     /* of these rows */
    uint32_t        row_count;
} hdl_adapted;

/* What is known of a weight by its bytes: its key (shared.h), and the first weight that is equal. */
typedef struct hdl_twin { uint64_t key; uint32_t first; } hdl_twin;

struct hd_model {
    hd_context    *context;
    _Atomic uint32_t holders;    /* the caller, and each session */
    void          *handle;       /* that the caller has; NULL for one of hdl_model_open */
    hd_allocator   allocator;
    hdl_gguf      *gguf;
    const hdl_arch *arch;
    const char    *arch_name;    /* general.architecture, and the prefix of its keys */
    hdl_figures    figures;
    hdl_weight    *weights;      /* [layers][layer_weights], then those outside of the layers */
    uint32_t       weight_count, layer_weights;
    hdl_adapted    adapted;      /* what its adapters added */
    _Atomic(hdl_twin *) twins;   /* of each weight (twins.c); NULL: nobody asked yet */
    uint64_t       number;       /* no other model of the process has it, nor will have; even, which no handle is */
    hdl_tokenizer *tokenizer;
    hdl_span       chat_template; /* of no bytes where there is none */
    hdl_span       tool_template; /* another one for conversations with tools, that few files have */
    int32_t        ends[16];      /* tokens that end an answer */
    uint32_t       end_count;
    int32_t        marks[24];     /* control tokens that are shown: around calls and the messages of one answer */
    uint32_t       mark_count;
    bool           channels;      /* an answer may be several messages */
    _Atomic(hdl_trie *) tries[2]; /* of the tokens, and with the marks; NULL before the first grammar of that kind */
};

/* Keeps a closed model's memory until its last session has ended. */
hd_model *hdl_model_hold(hd_model *model);
void hdl_model_release(hd_model *model);
/* Puts the model in the place of its handle, of which `model_at` is the address, if it and its context live. */
hd_status hdl_model_find(void *model_at);
/* hd_model_open out of `files`, without a handle; NULL: the system's. */
hd_status hdl_model_open(hd_context *context, const char *path, const hd_model_desc *desc, const hdl_files *files,
                         hd_model **out_model);
/* What sees, likewise. */
hd_status hdl_model_open_seeing(hd_context *context, const char *path, hd_model **out_model);
/* Gives it a handle, which is the caller's; closes it where that fails. */
hd_status hdl_model_hand_out(hd_model *model, hd_model **out_model);

/* ---- figures.c ---- */
/* Reads architecture and figures. Statuses: those of the getters, UNSUPPORTED. */
hd_status hdl_figures_read(hd_model *model, hd_error *error);
/* ---- sight.c ---- */
/* The same of a file that sees. */
hd_status hdl_sight_read(hd_model *model, hd_error *error);
/* ---- rope.c ---- */
/* Is it one of the tensors that the figures are made from? */
bool hdl_rope_takes(hdl_span tensor);
/* ---- weights.c ---- */
/* Finds and checks every weight. A tensor that nothing takes is UNSUPPORTED. */
hd_status hdl_weights_find(hd_model *model, hd_error *error);
/* The weight by its name in the family's list; `layer` counts for weights of layers only. One that is not there has
 * `present` false. */
const hdl_weight *hdl_weight_of(const hd_model *model, uint32_t layer, const char *name);
/* What a weight is called in the file, and as an input of a program. */
enum { HDL_WEIGHT_NAME = 64 };
void hdl_weight_name(uint32_t layer, const hdl_tensor_row *row, char out[HDL_WEIGHT_NAME]);
/* Its bytes on the host, as hdl_gguf_data gives them. */
hd_status hdl_weight_data(const hd_model *model, const hdl_weight *weight, hdl_span *out_data, hd_error *error);
/* Bytes that the weight takes on a device. */
uint64_t hdl_weight_bytes(const hdl_weight *weight);
/* Those of its copy in f16; 0: it has none. Quantised ones have that rows of a layer are multiplied with. */
uint64_t hdl_weight_half_bytes(const hdl_weight *weight);
/* ---- adapt.c ---- */
/* Frees the model's list of weights, and what adapters added to it. */
void hdl_weights_free(hd_model *model);
/* ---- grammar.c ---- */
/* What hd_generate asks of a grammar: whether a token may come next, and the mask of all, the ends of an answer among
 * them. Failures wait on the model's context. */
hd_status hdl_grammar_find(void *grammar_at);
const hd_model *hdl_grammar_model(const hd_grammar *grammar);
hd_status hdl_grammar_allows(hd_grammar *grammar, int32_t token, bool *out_allows);
/* *out_more tells whether any token but an end may come. With `goes_on` an end is allowed only where none may. */
hd_status hdl_grammar_mask(hd_grammar *grammar, bool goes_on, const uint32_t **out_bits, bool *out_more);
/* ---- chat_reader.c ---- */
/* Whether an answer to a prompt that ends with these tokens goes on a thought that it began. */
enum { HDL_THOUGHT_TOKENS = 8 }; /* so many count */
bool hdl_prompt_begins_thought(const hd_model *model, const int32_t *prompt, size_t count);
/* ---- model.c ---- */
/* Keeps a failure of the model's room on its context; returns `status`. */
hd_status hdl_model_fail(const hd_model *model, hd_status status, const char *format, ...) HDL_PRINTF(3, 4);
/* Whether the token ends an answer; whether it is for a reader. */
bool hdl_model_ends(const hd_model *model, int32_t token);
bool hdl_model_shows(const hd_model *model, int32_t token);
/* HD_OK, or UNSUPPORTED kept on the context: the file has no vocabulary. */
hd_status hdl_need_tokenizer(const hd_model *model);
/* The pooling that the file names. */
hd_pooling hdl_pooling_of(const hd_model *model);
/* HD_OK, or UNSUPPORTED kept on the context: of the file only the tokenizer was read. */
hd_status hdl_need_whole(const hd_model *model);
/* HD_OK, or UNSUPPORTED kept on the context: it does not. */
hd_status hdl_need_speech(const hd_model *model);
/* ---- vocabulary.c ---- */
/* Makes the tokenizer, and finds the tokens that end an answer. */
hd_status hdl_vocabulary_read(hd_model *model, hd_error *error);
/* The same where nothing else of the file is read: it has as many tokens as it lists. NAME_NOT_FOUND: none. */
hd_status hdl_vocabulary_read_alone(hd_model *model, hd_error *error);

/* "q4_0 253, f32 145": types and how many tensors have each, the one with the most bytes first. Uses `bytes` up. */
void hdl_describe_types(uint64_t bytes[HDL_GGUF_TYPE_COUNT], const uint32_t counts[HDL_GGUF_TYPE_COUNT], char *out,
                        size_t room);
/* A text of the file in a field of a struct: cut to fit, with what does not print as '?'. */
void hdl_copy_text(hdl_span text, char *out, size_t room);

#endif
