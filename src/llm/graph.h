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
    uint32_t cpu_layers;        /* the first ones that run on the CPU beside the device, and the embedding with them */
} hdl_part;
/* What of it is on the CPU, and what is on the device. */
static inline hdl_part hdl_part_on_cpu(hdl_part part) {
    return (hdl_part){ .first_layer = part.first_layer, .layer_count = part.cpu_layers, .embeds = part.embeds };
}
static inline hdl_part hdl_part_on_device(hdl_part part) {
    return (hdl_part){ part.first_layer + part.cpu_layers, part.layer_count - part.cpu_layers, part.embeds && part.cpu_layers == 0,
                       part.heads, part.nameless, 0 };
}
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

/* A program and where it runs: on its device, or by `route` on the CPU too. */
typedef struct hdl_placed {
    hd_program *program; /* yours; hd_program_destroy */
    char        route[32]; /* of hd_plan_desc, where the CPU is device 1; "" where no layer is on the CPU */
} hdl_placed;
/* Failures wait on the model's context. */
hd_status hdl_graph_build(const hd_model *model, hdl_part part, hdl_size size, hdl_placed *out);
/* Wishes for its plan; `cpu` is read where a layer is on it. */
hd_plan_desc hdl_placed_wish(const hdl_placed *placed, hd_device *const *cpu, hd_math math);
/* The name of a layer's cache, "keys.3" or, without a number, "keys". */
enum { HDL_CACHE_NAME = 32 };
void hdl_cache_name(uint32_t layer, bool values, char out[HDL_CACHE_NAME]);
#endif
