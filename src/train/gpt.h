/* gpt.h: a model as a program of heddle.h. Its weights lie in flat states: of a model that learns whole matrices and
 * embeddings, which decay, and vectors; of adapters all A, and all B. With Muon the matrices of layers have a third
 * one. */
#ifndef HDT_GPT_H
#define HDT_GPT_H

#include "train/support.h"

#define HDT_EPS 1e-5f /* of layer norms */
enum { HDT_MATRICES, HDT_VECTORS, HDT_HIDDEN, HDT_GROUPS, HDT_ALL_A = HDT_MATRICES, HDT_ALL_B = HDT_VECTORS,
       HDT_NAME = 80, HDT_ALIGN = 64 /* elements: where any device can bind a weight */, HDT_WIDER = 8 };

typedef struct hdt_parameter {
    char     name[HDT_NAME];      /* in checkpoints: Hugging Face's; of adapters GGUF's */
    char     file_name[HDT_NAME]; /* in GGUF files; none of adapters */
    hd_shape shape;
    bool     transposed; /* GGUF files hold [out, in], and the state [in, out] */
    bool     ternary;    /* what computes is -1, 0 or 1 times a scale */
    uint32_t heads;      /* whose rows lie as in GGUF files, and in another order in checkpoints; 0: in the same */
    int      group;
    uint64_t first;     /* its first element in the group's state, a multiple of HDT_ALIGN */
    float    deviation; /* of the normal distribution it is drawn from; 0: it is `begin` everywhere */
    float    spread;    /* with no deviation: it is `begin` to begin + spread, all of them as likely */
    float    begin;
} hdt_parameter;

typedef struct hdt_layout {
    hd_context    *context;
    hd_gpt         model;
    const hd_model *base;      /* whose adapters learn; NULL: a model learns whole */
    bool           ternary;    /* the matrices of layers are */
    bool           narrow;     /* weights are bf16 but for vectors */
    hd_model      *sketch;     /* of a llama or qwen3: whose graph it is; NULL: GPT-2's is in gpt.c */
    uint32_t       head;       /* the parameter that is the head's matrix; 0: the embedding, which is the first */
    float          scale;      /* of adapters */
    hdt_parameter *parameters; /* in their order in the model, which is their order in the states */
    uint32_t       count, room;
    /* with the gaps between weights, which stay 0; 0: there is no such group */
    uint64_t       group_elements[HDT_GROUPS];
    uint64_t       elements;                   /* without them */
} hdt_layout;
hd_status hdt_layout_make(hd_context *context, const hd_trainer_desc *desc, hdt_layout *out_layout);
void hdt_layout_free(hdt_layout *layout);
/* What the weights of a group are kept as. */
hd_dtype hdt_weight_type(const hdt_layout *layout, int group);
/* Puts another parameter behind those that are there, for which there is room. */
void hdt_layout_add(hdt_layout *layout, const hdt_parameter *parameter);
/* The same of adapters (lora.c), and of a llama or qwen3 (decoder.c). Statuses: NAME_NOT_FOUND (a target). */
hd_status hdt_layout_make_lora(hd_context *context, const hd_trainer_desc *desc, hdt_layout *out_layout);
hd_status hdt_layout_make_decoder(hd_context *context, const hd_trainer_desc *desc, hdt_layout *out_layout);
/* "gpt2", "llama" or "qwen3". */
const char *hdt_family_name(hd_family family);
/* What a GGUF file says of a model, but for its tokenizer (export.c). */
void hdt_put_figures(const hd_gpt *model, hd_model_writer *writer);

/* A graph under way. */
typedef struct hdt_graph {
    const hdt_layout *layout;
    hd_program *program;
    uint32_t    batch, length;
    uint32_t    sequences; /* of all batches of the program */
    bool        packed;    /* and they hold several samples each */
    float       dropout;  /* 0: none, and there are no keys */
    /* i32 [.., 4]: a key of random numbers for each sequence, the first of which is that of number */
    hd_value    keys;
    uint32_t    first;
    hd_value    states[HDT_GROUPS];
    /* of each parameter: a view of its state, or what that is rounded to; of positions, those that a sequence has */
    hd_value   *weights;
    hd_value    head;     /* the head's matrix, once more: its gradient is added up by itself */
    /* Of each weight, and of the head's matrix behind them, what products read, made with the first of these; and the
     * last x that was cast for one. NULL: they read f32. */
    hd_value   *casts;
    hd_value    cast_from, cast_to;
    uint32_t    head_rows; /* scores of a row, where they are more than tokens; else 0 */
    hd_value    wide_head; /* which gives so many; 0: not yet */
    hd_value   *room;     /* for a value of each sequence */
    hd_value   *layers;   /* what goes into the first one, then what each gives: one more than there are; may be NULL */
    uint32_t    drawn;    /* streams of random numbers that a sequence took */
    struct hdt_pieces *pieces; /* of adapters: losses of some rows at a time (lora.c) */
} hdt_graph;
/* Declares the states "weights.0", ... and sets the weights, for which there is room of layout->count. */
void hdt_graph_weights(hdt_graph *graph, hd_value *weights);
/* Scores [batch * length, vocabulary] of what follows each of the tokens i32 [batch * length]; without the head: its
 * input. With head_rows there are as many scores, and those behind the last token's are so low that none counts. */
hd_value hdt_graph_hidden(hdt_graph *graph, hd_value tokens);
hd_value hdt_graph_scores(hdt_graph *graph, hd_value hidden);
/* Of mixed precision: x in bf16, cast once for all products that read it one after the other. */
hd_value hdt_graph_rounded(hdt_graph *graph, hd_value x);
/* x times a weight or the head's matrix, as precise as products are. */
hd_value hdt_graph_product(hdt_graph *graph, hd_value x, hd_value weight, uint32_t flags);
/* What hdt_graph_hidden is of a llama or qwen3 (decoder.c). */
hd_value hdt_graph_decoder(hdt_graph *graph, hd_value tokens);
/* Inputs "positions" and "starts", as i32 [batch * length]: 0, 1, 2, ... of each sequence, where it is packed of each
 * sample; and where in its sequence that begins, 0 where it is not packed. */
hd_value hdt_graph_positions(hdt_graph *graph);
hd_value hdt_graph_starts(hdt_graph *graph);
/* The same scores of a base with its adapters (lora.c), and the losses [batch * length] of targets; 0: none. With a
 * `share`, one number, also the gradient of their sum times it by what the last layer gives. */
hd_value hdt_graph_lora_scores(hdt_graph *graph, hd_value tokens);
hd_value hdt_graph_lora_losses(hdt_graph *graph, hd_value tokens, hd_value targets, hd_value share,
                               hd_value *out_gradient);
/* x, or what dropout leaves of it. */
hd_value hdt_graph_dropped(hdt_graph *graph, hd_value x);
/* An input, once for all parts of a program that read it. */
hd_value hdt_graph_input(hdt_graph *graph, const char *name, hd_dtype dtype, hd_shape shape);
/* One flat value for each group that there is, of `values` of each parameter, behind which zeros stand where it has
 * fewer elements. */
hd_status hdt_graph_join(const hdt_graph *graph, const hd_value *values, hd_value out_joined[HDT_GROUPS]);
/* First weights, drawn with a key: assigned to the states. */
hd_status hdt_graph_draw(hdt_graph *graph, hd_value key, hd_value *values);
/* The rows of the values one below the other; the values are not kept. */
hd_value hdt_concat(hd_program *program, hd_value *values, uint32_t count);
/* Rows first to first + count of x [rows, ..] or [rows]; those of so many sequences. */
hd_value hdt_graph_rows(const hdt_graph *graph, hd_value x, int64_t first, int64_t count);
hd_value hdt_graph_sequences(const hdt_graph *graph, hd_value x, uint32_t first, uint32_t count);

#endif
