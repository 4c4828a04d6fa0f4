/* stage.h: layers of a model that run as one plan for each size: on a device, the first of them on the CPU beside it where
 * the others alone fit. A session is one stage; where layers are streamed it is three in a row on one device, that hand
 * "next" on as "hidden".
 *
 * A streamed stage is for layers that do not fit: each travels to one of two places on the device just before it runs, the
 * next one while this one computes. Layers whose weights have the same types share a plan. */
#ifndef HDL_STAGE_H
#define HDL_STAGE_H

#include "llm/store.h"

/* A plan for one size. */
typedef struct hdl_sized {
    hdl_size  size;
    uint32_t  layer;     /* of a streamed stage: the first layer that the plan was made for; else the part's first one */
    hd_plan  *plan;
} hdl_sized;

typedef struct hdl_stage {
    const hd_model *model;
    hdl_part    part;
    hd_math     math;
    bool        streamed;
    hdl_store   here, cpu;               /* on the device; on the CPU, where part.cpu_layers is above 0 */
    hdl_sized  *plans;
    uint32_t    plan_count, plan_capacity;
    hd_buffer  *slots[2], *hidden[2];    /* of a streamed stage: weights of two layers; a layer's input and output in turn */
    uint32_t    held[2];                 /* the layer in each slot, or HDL_NO_LAYER */
    uint64_t    hidden_bytes;
} hdl_stage;

/* Puts weights and cache where their layers run; all fields before `plans` are set, of the stores those before `places`.
 * On failure the caller ends the stage. */
hd_status hdl_stage_load(hdl_stage *stage, hdl_loading *loading);
void hdl_stage_end(hdl_stage *stage);
/* What a run takes in, for all stages alike; arrays as graph.h's inputs. */
typedef struct hdl_run {
    hdl_size       size;
    const int32_t *tokens, *positions, *past, *last;
    float         *hidden;       /* between two stages: read at first, written at the end */
} hdl_run;
/* Runs a stage once, and counts what was submitted and recorded. @param out_plan where the outputs are, if the part gives
 * logits. */
hd_status hdl_stage_run(hdl_stage *stage, const hdl_run *run, hd_session_stats *inout_stats, hd_plan **out_plan);
/* The plan for a size, made on first use. A streamed stage has a plan for `layer`, with neither weights nor cache bound. */
hd_status hdl_stage_plan(hdl_stage *stage, hdl_size size, uint32_t layer, hd_plan **out_plan);

/* ---- between stage.c and streamed.c ---- */

/* Starts a run of a plan, whose weights and cache are bound: "tokens" or "hidden" is written by the caller. */
hd_status hdl_stage_write(hdl_stage *stage, const hdl_run *run, hd_plan *plan);
/* Adds what a run counted, from `before` on. */
hd_status hdl_stage_count(const hd_plan *plan, const hd_plan_stats *before, hd_session_stats *inout_stats);
hd_status hdl_streamed_load(hdl_stage *stage);
hd_status hdl_streamed_run(hdl_stage *stage, const hdl_run *run, hd_session_stats *inout_stats);

#endif
