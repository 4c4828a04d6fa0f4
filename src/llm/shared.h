/* shared.h: weights by what they hold, so that equal ones lie once: of one model (twins.c), and of all that use a
 * device (shared.c). Everything here is thread-safe. */
#ifndef HDL_SHARED_H
#define HDL_SHARED_H

#include "llm/graph.h"

/* ---- twins.c: on the host ---- */

enum {
    HDL_HEAD_BYTES = 4096, /* of a weight that are looked at before it is compared with another one */
    HDL_MOST_LOOKS = 4     /* at others that begin alike, so that no file makes it slow */
};
/* A hash of a weight's first bytes, of its length and its type: equal weights have the same. Where twins were looked
 * for it is there; else the bytes are read. */
hd_status hdl_weight_key(const hd_model *model, const hdl_weight *weight, uint64_t *out_key, hd_error *error);
/* Finds out, once, which weights of the model are equal to an earlier one. A page of each is read, and the whole of
 * those that begin alike. Before stores on the device; nothing where that is the CPU, which uses the file in place.
 * Failures wait on the context. */
hd_status hdl_twins_find(hd_model *model, hd_device *device);
void hdl_twins_forget(hd_model *model);
/* The first weight of the part that is equal to `index`, a weight of the part: itself where none in front of it is. */
uint32_t hdl_twin_of(const hd_model *model, hdl_part part, uint32_t index);

/* ---- shared.c: on devices ---- */

/* A buffer of many contents; it ends with the last of them. */
typedef struct hdl_slab hdl_slab;
/* Bytes that lie on a device and change no more. */
typedef struct hdl_content hdl_content;
/* What two contents that are the same thing agree in: a weight's model and address, or the memory of the weight that it
 * is a copy of. */
typedef struct hdl_origin { uint64_t owner, at; } hdl_origin;
/* A content as it is looked for. */
typedef struct hdl_sought {
    hd_device   *device;
    hdl_origin   origin;
    uint64_t     key, bytes; /* of an equal one; no bytes: only the same thing will do */
    const void  *data;       /* its bytes; NULL: as `bytes` */
} hdl_sought;
/* The content that is sought, for one more user, or NULL. What is only equal is known by its bytes, which are read from
 * the device. */
hd_status hdl_shared_find(const hd_allocator *allocator, const hdl_sought *sought, hdl_content **out_content);
/* A slab without contents. */
hd_status hdl_slab_create(const hd_allocator *allocator, hd_device *device, const hd_buffer_desc *desc,
                          hdl_slab **out_slab);
/* A content in it, of one user; nobody finds it before it is told to be whole. NULL: no memory, and a slab without
 * contents is gone. */
hdl_content *hdl_content_create(hdl_slab *slab, uint64_t offset, const hdl_sought *as);
void hdl_content_whole(hdl_content *content);
/* One user less. */
void hdl_content_release(hdl_content *content);
hd_buffer *hdl_content_buffer(const hdl_content *content, uint64_t *out_offset);

#endif
