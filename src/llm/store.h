/* store.h: what a device holds of a model: weights, its layers' share of the cache, and the table of pages. Plans have
 * these bound to them by name. Layers that are streamed take turns in two slots on the device: while one computes, the
 * next one travels. */
#ifndef HDL_STORE_H
#define HDL_STORE_H

#include "llm/shared.h"

/* A weight in a device's memory. */
typedef struct hdl_place {
    hd_buffer *buffer;   /* NULL: not in this store */
    uint64_t   offset;
} hdl_place;

typedef struct hdl_store {
    const hd_model *model;
    hd_device  *device;
    hdl_part    part;                    /* the weights that lie here */
    uint32_t    first_layer, layer_count; /* that run here: those with their cache here */
    uint32_t    streamed_layers;         /* the first ones of them, whose weights arrive in slots */
    const hdl_pages *pages;              /* the session's */
    hd_dtype    cache_type;
    hdl_place  *places;                  /* of every weight of the model; of streamed layers: in their slot */
    hd_buffer **buffers;                 /* that are the store's alone */
    uint32_t    buffer_count;
    size_t      buffer_capacity;
    hdl_content **contents;              /* that others may have too: all other ones that places point into */
    uint32_t    content_count;
    size_t      content_capacity;
    uint64_t    shared_bytes;            /* of them: what lay on the device already */
    bool        alone;                   /* what is here is nobody else's: it may be written */
    hdl_place  *caches;                  /* [layer][keys, values (hdl_cache_parts)]: [page][256][Hkv][D] */
    hd_buffer  *table;                   /* the pages of each row of a run */
    hdl_place  *halves;                  /* of every weight: its copy in f16; NULL: there are none */
    uint64_t    table_version;           /* of pages->shown that it holds; 0: nothing of use */
} hdl_store;

/* How far the weights are. */
typedef struct hdl_loading {
    hd_progress_fn progress;
    void          *user;
    uint64_t       done, total;
} hdl_loading;

/* Makes cache, table and slots, and puts the weights there; the fields before `places` are set. On failure the caller
 * ends the store. */
hd_status hdl_store_load(hdl_store *store, hdl_loading *loading);
void hdl_store_end(hdl_store *store);

/* Binds table, weights and cache to a plan; with `halves` the weights that have copies in f16 as these. `embeds`: the
 * plan begins with the embedding. */
hd_status hdl_store_bind(hdl_store *store, hd_plan *plan, bool halves, bool embeds);
/* Buffers of the store for many weights each, taken one after the other: a device has few allocations to give. */
typedef struct hdl_slabs {
    const char *label;
    hdl_place  *places;     /* of every weight; has a buffer already: it is taken from what others have */
    uint64_t  (*bytes_of)(const hdl_store *store, uint32_t index); /* that weight `index` takes; 0: none */
    hdl_slab   *slab;       /* the last one; the next fields are of it */
    uint64_t    used, room;
} hdl_slabs;
/* Sets the place of weight `index` where it lies on the device already. */
hd_status hdl_store_find(hdl_store *store, hdl_slabs *slabs, uint32_t index, const hdl_sought *sought);
/* Makes room for the weight `index`, and sets its place; indices ascend. `as`: how others find it. */
hd_status hdl_store_take(hdl_store *store, hdl_slabs *slabs, uint32_t index, const hdl_sought *as);
/* Lets others find all contents from number `first` on, which are written now. */
void hdl_store_show(hdl_store *store, uint32_t first);
/* Finds those that lie on the device already. */
hd_status hdl_store_find_halves(hdl_store *store);
/* Copies of weights in f16 (halves.c). Without memory for them the store has none, and HD_OK. */
hd_status hdl_store_make_halves(hdl_store *store);
/* Of these copies, for a part. */
uint64_t hdl_part_half_bytes(const hd_model *model, hdl_part part);
/* Has the pages that a run reads in the table. */
hd_status hdl_store_write_table(hdl_store *store);

/* ---- bytes, before anything is loaded ---- */

enum { HDL_ALIGN = 256 }; /* of what is bound to a plan */
static inline uint64_t hdl_aligned(uint64_t bytes) { return (bytes + HDL_ALIGN - 1) & ~(uint64_t)(HDL_ALIGN - 1); }

/* Of the weights of a part where equal ones lie once; `in_place`: on the CPU, which uses them where the file is
 * mapped. */
uint64_t hdl_part_weight_bytes(const hd_model *model, hdl_part part, bool in_place);
/* Of these, and with `halves` of their copies in f16, what lies on the device already and would not be taken again. */
hd_status hdl_part_shared_bytes(const hd_model *model, hdl_part part, hd_device *device, bool halves,
                                uint64_t *out_bytes);
/* Of the two slots for so many first layers that are streamed. */
uint64_t hdl_slot_bytes(const hd_model *model, uint32_t layers);
/* Of the cache for `layers` layers; HDL_MOST_BYTES where it is more than any device could have. */
#define HDL_MOST_BYTES (UINT64_C(1) << 60)
uint64_t hdl_cache_bytes(const hd_model *model, hd_dtype type, uint32_t layers, uint32_t pages);
/* Tensors of a layer's cache: keys, and values where they are not the same. */
static inline uint32_t hdl_cache_parts(const hd_model *model) { return model->figures.latent ? 1 : 2; }
/* Of a token's keys in a layer, or of its values. */
static inline uint64_t hdl_cache_row_bytes(const hd_model *model, hd_dtype type) {
    return hd_dtype_bytes(type, (uint64_t)model->figures.kv_heads * model->figures.head_size);
}
/* Of the table of pages for so many rows of a run, of which each may have `width`. */
uint64_t hdl_table_bytes(uint32_t rows, uint32_t width);

#endif
