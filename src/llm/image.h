/* image.h: images as squares of the size that a model sees. */
#ifndef HDL_IMAGE_H
#define HDL_IMAGE_H

#include "llm/support.h"
#include <heddle_llm.h>

enum { HDL_MOST_IMAGE_SIDE = 1 << 14 }; /* pixels in each direction */

/* Resizes to side * side pixels, to the bit as Pillow does with BILINEAR, which Gemma 3 was trained with: each pixel is
 * a mean of all those that it covers. Statuses: ZERO_SIZE, LIMIT, OUT_OF_HOST_MEMORY. */
hd_status hdl_image_resize(const hd_allocator *allocator, const hd_image *image, uint32_t side, uint8_t *out_pixels,
                           hd_error *error);
#endif
