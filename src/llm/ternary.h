/* ternary.h: tensors of the ternary types of bitnet.cpp (i2_s, tl1, tl2), whose whole tensor has one scale, in a type
 * that the library computes with. Any thread. */
#ifndef HDL_TERNARY_H
#define HDL_TERNARY_H

#include "llm/gguf.h"

/* How a matrix of tl1 or tl2 is cut: into tiles, these into stripes of rows. bitnet.cpp calls them BM, BK and bm. */
typedef struct hdl_tiles { uint32_t rows, columns, stripe_rows; } hdl_tiles;

/* A tensor as it lies in a file; tiles are not those of i2_s. */
typedef struct hdl_ternary {
    uint32_t  type;
    hd_shape  shape;
    hdl_tiles tiles;
    hdl_span  data; /* as hdl_gguf_data gives it */
} hdl_ternary;

/* Is a type one of them? */
bool hdl_is_ternary(uint32_t type);
/* The type that a tensor of this shape is unpacked to: tq2_0, or q4_0 where rows are no multiple of its 256
 * elements. */
hd_dtype hdl_ternary_dtype(hd_shape shape);
/* Unpacks a tensor. Its values are scale * what the blocks hold, each -1, 0 or 1 (blocks with d = 1).
 * @param out_blocks hd_tensor_bytes(hdl_ternary_dtype(shape), shape) bytes, apart from the data. @param out_scale
 * multiply the product by it. Statuses: NULL_POINTER, SHAPE (not whole groups or tiles, or too large), INVALID_ARGUMENT
 * (bytes that are not what the shape needs), PARSE (a code that stands for nothing, or a scale that is no number). */
hd_status hdl_ternary_unpack(const hdl_ternary *from, void *out_blocks, uint64_t out_bytes, float *out_scale,
                             hd_error *error);
/* The same into memory of the allocator's, the caller's to free, after a failure too. Errors name the tensor.
 * Statuses: OUT_OF_HOST_MEMORY too. */
hd_status hdl_ternary_blocks(const hd_allocator *allocator, hdl_span name, const hdl_ternary *from,
                             hdl_span *out_blocks, float *out_scale, hd_error *error);

/* ---- tiles.c ---- */
/* Tiles by the shape of a matrix. */
typedef struct hdl_tile_list {
    struct { uint32_t rows, columns; hdl_tiles tiles; } items[64];
    uint32_t count;
    bool     is_read;
} hdl_tile_list;
/* The tiles of a ternary tensor: of i2_s none; of tl1 and tl2 as kernel_config.ini says, which bitnet.cpp makes its
 * kernels by, where one is in the model's folder; else as its scripts have it for the matrices of public models. `list`
 * keeps what was read; zeroed at first. Statuses: those of hdl_gguf_beside, PARSE, UNSUPPORTED (nobody knows them, or
 * no such tiles are possible). */
hd_status hdl_tiles_find(const hdl_gguf *gguf, const hdl_gguf_tensor *tensor, hdl_tile_list *list, hdl_tiles *out_tiles,
                         hd_error *error);

/* ---- what the files of unpacking share ---- */
enum { HDL_TQ2_0_CODES = 64, HDL_TQ2_0_BYTES = HDL_TQ2_0_CODES + 2, HDL_Q4_0_BYTES = 18 };
extern const uint8_t hdl_ternary_one[2]; /* 1 as f16 */
/* False where a code stands for no value. */
bool hdl_i2s_unpack(const hdl_ternary *from, uint8_t *out_blocks);
bool hdl_tl_unpack(const hdl_ternary *from, uint8_t *out_blocks);
/* Can a matrix be cut into these tiles, and do its codes then have room? */
bool hdl_tl_fits(uint32_t type, hd_shape shape, hdl_tiles tiles);

#endif
