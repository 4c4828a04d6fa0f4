/* stage.h: a part of a model on one device: its weights, its share of the cache, and one plan for each size that was run. A
 * session is one stage, or several in a row that hand "next" on as "hidden".
 *
 * A streamed stage is for layers that do not fit: each travels to one of two places on the device just before it runs, the next
 * one while this one computes. Layers whose weights have the same types share a plan. */
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
    uint32_t  layer;     /* of a streamed stage: the first layer that the plan was made for; else the part's first one */
    hd_plan  *plan;
} hdl_sized;

typedef struct hdl_stage {
    const hd_model *model;
    hd_device  *device;
    hdl_part    part;
    hd_math     math;
    const hdl_pages *pages;              /* the session's */
    bool        streamed;
    hdl_place  *places;                  /* of every weight of the model; of a streamed stage: within its slot */
    hd_buffer **buffers;                 /* all that places point into */
    uint32_t    buffer_count, buffer_capacity;
    hd_buffer  *cache;                   /* [layer][keys, values][page][256][Hkv][D], f16 */
    hd_buffer  *table;                   /* the pages of each row of a run */
    uint64_t    table_version;           /* of pages->shown that it holds; 0: nothing of use */
    hdl_sized  *plans;
    uint32_t    plan_count, plan_capacity;
    hd_buffer  *slots[2], *hidden[2];    /* of a streamed stage: weights of two layers; a layer's input and output in turn */
    uint32_t    held[2];                 /* the layer in each slot, or HDL_NO_LAYER */
    uint64_t    hidden_bytes;
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
/* What a run takes in, for all stages alike; arrays as graph.h's inputs. */
typedef struct hdl_run {
    hdl_size       size;
    const int32_t *tokens, *positions, *past, *last;
    float         *hidden;       /* between two stages: read at first, written at the end */
} hdl_run;
/* Runs a stage once. @param out_plan where the outputs are, if the part gives logits. */
hd_status hdl_stage_run(hdl_stage *stage, const hdl_run *run, hd_plan **out_plan, uint64_t *inout_recorded);
/* The plan for a size, made on first use. A streamed stage has a plan for `layer`, with neither weights nor cache bound. */
hd_status hdl_stage_plan(hdl_stage *stage, hdl_size size, uint32_t layer, hd_plan **out_plan);

/* ---- between stage.c and streamed.c ---- */

enum { HDL_ALIGN = 256 }; /* of what is bound to a plan */
static inline uint64_t hdl_aligned(uint64_t bytes) { return (bytes + HDL_ALIGN - 1) & ~(uint64_t)(HDL_ALIGN - 1); }
/* A buffer that ends with the stage. */
hd_status hdl_stage_buffer(hdl_stage *stage, const hd_buffer_desc *desc, hd_buffer **out);
/* Writes a weight into a buffer; `loading` may be NULL. */
hd_status hdl_stage_fill(hdl_stage *stage, const hdl_weight *w, hd_buffer *buffer, uint64_t offset, hdl_loading *loading);
hd_status hdl_stage_bind_cache(hdl_stage *stage, hd_plan *plan, uint32_t layer);
/* Writes positions, past, last, and the table of pages where it is another one than before. */
hd_status hdl_stage_write(hdl_stage *stage, const hdl_run *run, hd_plan *plan);
hd_status hdl_streamed_load(hdl_stage *stage);
hd_status hdl_streamed_run(hdl_stage *stage, const hdl_run *run, uint64_t *inout_recorded);

/* ---- bytes, before anything is loaded ---- */

/* Of the weights of a part on a device; weights that the CPU uses in place count too. */
uint64_t hdl_part_weight_bytes(const hd_model *model, hdl_part part);
/* Of the places that a streamed stage keeps on the device for a part's layers. */
uint64_t hdl_part_slot_bytes(const hd_model *model, hdl_part part);
/* Of the cache for `layers` layers; HDL_MOST_BYTES where it is more than any device could have. */
#define HDL_MOST_BYTES (UINT64_C(1) << 60)
uint64_t hdl_cache_bytes(const hd_model *model, uint32_t layers, uint32_t pages);
/* Of the table of pages for so many rows of a run, of which each may have `width`. */
uint64_t hdl_table_bytes(uint32_t rows, uint32_t width);

#endif
