/* graph.h: a run of a model as a program, and where its layers are. */
#ifndef HDL_GRAPH_H
#define HDL_GRAPH_H

#include "llm/model.h"
#include "llm/pages.h"

/* Where layers are that are not on the device: the first ones run on the CPU, with the embedding, or their weights lie
 * in the host's memory and travel to the device in every run. One of the two is 0. Of the next ones only the experts
 * are on the CPU; where layers are streamed there are none such. */
typedef struct hdl_split {
    uint32_t cpu_layers, streamed_layers, cpu_experts;
} hdl_split;

/* Weights of a model. */
typedef struct hdl_layers { uint32_t first, count; } hdl_layers;
typedef struct hdl_part {
    hdl_layers layers;          /* those whose weights it has, but for their experts, */
    hdl_layers experts;         /* and those whose experts it has */
    bool       embeds, heads;   /* those of the embedding, and those of the logits */
    bool       vectors;         /* of these the last norm */
} hdl_part;
/* Weights that lie on the device, and those that lie on the CPU. */
static inline hdl_part hdl_part_on_device(const hd_model *model, hdl_split split) {
    const uint32_t layers = model->figures.layers, elsewhere = split.cpu_layers + split.streamed_layers,
                   apart = elsewhere + split.cpu_experts;
    return (hdl_part){ { elsewhere, layers - elsewhere }, { apart, layers - apart }, split.cpu_layers == 0, true,
                       true };
}
static inline hdl_part hdl_part_on_cpu(hdl_split split) {
    const uint32_t here = split.cpu_layers + split.streamed_layers;
    return (hdl_part){ { 0, here }, { 0, here + split.cpu_experts }, split.cpu_layers > 0, false, false };
}

/* How many tokens a program is for.
 *
 * Inputs   "tokens" i32 [rows], or, of an image, "image" f32 [rows,H]; "positions" i32 [rows]; "past" i32 [sequences]:
 *          tokens that each sequence holds already; "last" i32 [results], where results are fewer than rows: the rows
 *          whose logits are wanted; "pages" i32 [P], or [sequences,P] for more than one, with P = bucket / 256: where
 *          those tokens lie; and the weights, by their names in the file
 * States   "keys.<layer>", "values.<layer>": [pages,256,Hkv,D] in the cache's type, the same for every size
 * Outputs  "logits" f32 [results,V]; "best" i32 [results], the index of the largest; "peak" f32 [results], that
 *          largest, NaN where one is; where candidates are wanted, "candidates" i32 [results,candidates], the indices
 *          of so many largest, the largest first, and "scores" f32, what these are */
enum { HDL_CANDIDATES = 128 };
typedef struct hdl_size {
    uint32_t sequences, tokens; /* tokens of each sequence; rows = sequences * tokens */
    uint32_t bucket;            /* tokens that a sequence has room for in this program, in whole pages */
    uint32_t pages;             /* of the cache, for all sequences */
    uint32_t results;           /* rows whose logits are wanted */
    uint32_t candidates;        /* for the sampler, of each result; 0: none */
    uint32_t context;           /* tokens that a sequence of the session may come to hold */
    uint32_t halves;            /* 1: weights that have copies in f16 are read so */
    hd_dtype cache_type;
    uint32_t is_image;          /* 1: the rows are an image's, and see each other */
} hdl_size;
/* How many candidates a plan gives where they are wanted. */
static inline uint32_t hdl_candidates(const hd_model *model) {
    return model->figures.vocabulary < HDL_CANDIDATES ? model->figures.vocabulary : HDL_CANDIDATES;
}

/* Is the weight number `index` needed by the part? */
bool hdl_part_needs(const hd_model *model, hdl_part part, uint32_t index);

/* Is it a weight that rows of a layer are multiplied with, so that an adapter can be put beside it? */
bool hdl_is_product(const hdl_weight *weight);

/* A program and where it runs. */
typedef struct hdl_placed {
    hd_program *program;
    char       *route;       /* of hd_plan_desc, where the CPU is device 1; "" where all is on the device */
    size_t      route_bytes;
} hdl_placed;
/* Failures wait on the model's context. hdl_placed_end ends it. */
hd_status hdl_graph_build(const hd_model *model, hdl_split split, hdl_size size, hdl_placed *out);
void hdl_placed_end(const hd_model *model, hdl_placed *placed);
/* Wishes for its plan; `cpu` is read where the route names it. */
hd_plan_desc hdl_placed_wish(const hdl_placed *placed, hd_device *const *cpu, hd_math math);
/* The name of a layer's cache, such as "keys.3". */
enum { HDL_CACHE_NAME = 32 };
void hdl_cache_name(uint32_t layer, bool values, char out[HDL_CACHE_NAME]);
#endif
