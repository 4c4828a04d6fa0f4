/* graph.h: a run of a model's layers as a program. */
#ifndef HDL_GRAPH_H
#define HDL_GRAPH_H

#include "llm/model.h"
#include "llm/pages.h"

/* Which part of the model, and for how many tokens. A part that does not begin with the embedding takes "hidden" f32
 * [rows,H]; one that does not end with the logits gives "next", of the same shape. A part of no layers is the embedding
 * alone.
 *
 * Inputs   "tokens" i32 [rows] (or "hidden"); "positions" i32 [rows]; "past" i32 [sequences]: tokens that each sequence
 *          holds already; "last" i32 [results], where results are fewer than rows: the rows whose logits are wanted;
 *          "pages" i32 [P], or [sequences,P] for more than one, with P = bucket / 256: where those tokens lie; and the
 *          weights, by their names in the file
 * States   "keys.<layer>", "values.<layer>": [pages,256,Hkv,D] in f16, the same for every size
 * Outputs  "logits" f32 [results,V]; "best" i32 [results], the index of the largest; "peak" f32 [results], that
 *          largest, NaN where one is; where candidates are wanted, "candidates" i32 [results,candidates], the indices of so many
 *          largest, the largest first, and "scores" f32, what these are (or "next") */
typedef struct hdl_part {
    uint32_t first_layer, layer_count;
    bool     embeds, heads;     /* the embedding before, the logits after */
    bool     nameless;          /* one layer that stands for all like it: its weights and cache have no number */
} hdl_part;
enum { HDL_CANDIDATES = 128 };
typedef struct hdl_size {
    uint32_t sequences, tokens; /* tokens of each sequence; rows = sequences * tokens */
    uint32_t bucket;            /* tokens that a sequence has room for in this program, in whole pages */
    uint32_t pages;             /* of the cache, for all sequences */
    uint32_t results;           /* rows whose logits are wanted */
    uint32_t candidates;        /* for the sampler, of each result; 0: none */
} hdl_size;
/* How many candidates a plan gives where they are wanted. */
static inline uint32_t hdl_candidates(const hd_model *model) {
    return model->figures.vocabulary < HDL_CANDIDATES ? model->figures.vocabulary : HDL_CANDIDATES;
}

/* May a plan that was made for one layer run another one? */
bool hdl_layers_alike(const hd_model *model, uint32_t a, uint32_t b);
/* Is the weight number `index` needed by the part? */
bool hdl_part_needs(const hd_model *model, hdl_part part, uint32_t index);

/* The program; failures wait on the model's context. Yours; hd_program_destroy. */
hd_status hdl_graph_build(const hd_model *model, hdl_part part, hdl_size size, hd_program **out_program);
/* The name of a layer's cache, "keys.3" or, without a number, "keys". */
enum { HDL_CACHE_NAME = 32 };
void hdl_cache_name(uint32_t layer, bool values, char out[HDL_CACHE_NAME]);
#endif
