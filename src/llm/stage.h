/* stage.h: a part of a model on one device: its weights, its share of the cache, and one plan for each size that was run. A
 * session is one stage, or several in a row that hand "next" on as "hidden". */
#ifndef HDL_STAGE_H
#define HDL_STAGE_H

#include "llm/graph.h"

/* A weight in a device's memory. */
typedef struct hdl_place {
    hd_buffer *buffer;   /* NULL: not of this stage */
    uint64_t   offset;
} hdl_place;

/* A plan for one size. */
typedef struct hdl_sized {
    hdl_size  size;
    hd_plan  *plan;
    uint32_t  sequence;  /* whose cache is bound, where the size is for one of several sequences */
} hdl_sized;

enum { HDL_STAGE_PLANS = 32 };
typedef struct hdl_stage {
    const hd_model *model;
    hd_device  *device;
    hdl_part    part;
    hd_math     math;
    uint32_t    sequences, rows;         /* of the cache: sequences, and tokens of each, a multiple of 256 */
    hdl_place  *places;                  /* of every weight of the model */
    hd_buffer **buffers;                 /* all that places point into */
    uint32_t    buffer_count, buffer_capacity;
    hd_buffer  *cache;                   /* [layer][keys, values][sequence][rows][Hkv][D], f16 */
    hdl_sized   plans[HDL_STAGE_PLANS];
    uint32_t    plan_count;
} hdl_stage;

/* How far the weights are. */
typedef struct hdl_loading {
    hd_progress_fn progress;
    void          *user;
    uint64_t       done, total;
} hdl_loading;

/* Puts weights and cache onto stage->device; the fields before `places` are set. On failure the caller ends the stage. */
hd_status hdl_stage_load(hdl_stage *stage, hdl_loading *loading);
void hdl_stage_end(hdl_stage *stage);
/* The plan for a size, made on first use, with the cache of `sequence` bound (0 where the size is for all). */
hd_status hdl_stage_plan(hdl_stage *stage, hdl_size size, uint32_t sequence, hd_plan **out_plan);

/* ---- bytes, before anything is loaded ---- */

/* Of the weights of a part on a device; weights that the CPU uses in place count too. */
uint64_t hdl_part_weight_bytes(const hd_model *model, hdl_part part);
/* Of the cache for `layers` layers. */
uint64_t hdl_cache_bytes(const hd_model *model, uint32_t layers, uint32_t sequences, uint32_t rows);
/* Is the weight number `index` needed by the part? */
bool hdl_part_needs(const hd_model *model, hdl_part part, uint32_t index);

#endif
