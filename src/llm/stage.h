/* stage.h: a model where it runs: on a device, and by its split on the CPU too; with one plan for each size. */
#ifndef HDL_STAGE_H
#define HDL_STAGE_H

#include "llm/store.h"

/* A plan for one size. */
typedef struct hdl_sized {
    hdl_size  size;
    hd_plan  *plan;
} hdl_sized;

typedef struct hdl_stage {
    const hd_model *model;
    hd_device  *device, *cpu;  /* the CPU is NULL where nothing of the model is there beside the device */
    hdl_split   split;
    hd_math     math;
    hd_dtype    cache_type;
    bool        halves;        /* weights may have copies in f16 */
    const hdl_pages *pages;    /* the session's */
    hdl_store   here, there;   /* what the device and the CPU hold */
    hdl_sized  *plans;
    uint32_t    plan_count;
    size_t      plan_capacity;
} hdl_stage;

/* Puts weights and cache where they belong; the fields before `here` are set. On failure the caller ends the stage. */
hd_status hdl_stage_load(hdl_stage *stage, hd_progress_fn progress, void *user);
void hdl_stage_end(hdl_stage *stage);
/* What a run takes in; arrays as graph.h's inputs. */
typedef struct hdl_run {
    hdl_size       size;
    const int32_t *tokens, *positions, *past, *last;
    const float   *image;
} hdl_run;
/* Runs once, and counts what was submitted and recorded. @param out_plan where the outputs are. */
hd_status hdl_stage_run(hdl_stage *stage, const hdl_run *run, hd_session_stats *inout_stats, hd_plan **out_plan);
/* The plan for a size, made on first use. */
hd_status hdl_stage_plan(hdl_stage *stage, hdl_size size, hd_plan **out_plan);

#endif
