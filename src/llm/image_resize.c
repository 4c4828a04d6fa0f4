/* image_resize.c: see image.h. First along the rows, then along the columns, each time rounded to 8 bits; weights are
 * whole numbers of 22 bits, so that all machines give the same pixels. */
#include "llm/image.h"
#include <math.h>

enum { BITS = 22 };

/* Which pixels of a line each pixel of the result is a mean of. */
typedef struct line {
    uint32_t *first, *count; /* of each pixel of the result */
    int32_t  *weights;       /* [side][most] */
    uint32_t  most;
    void     *room;
    uint64_t  bytes;
} line;

/* A pixel's share, which falls to 0 where it is `reach` away. */
static double share(uint32_t pixel, double centre, double reach) {
    const double apart = fabs((pixel - centre + 0.5) * (1 / reach));
    return apart < 1 ? 1 - apart : 0;
}

static bool make_line(const hd_allocator *allocator, uint32_t from, uint32_t side, line *out) {
    const double scale = (double)from / side, reach = scale > 1 ? scale : 1;
    const uint32_t most = 2 * (uint32_t)ceil(reach) + 1;
    *out = (line){ .most = most, .bytes = (uint64_t)side * (2 + most) * sizeof(int32_t) };
    out->room = hdl_alloc(allocator, out->bytes);
    if (!out->room) return false;
    out->first = out->room;
    out->count = out->first + side;
    out->weights = (int32_t *)(void *)(out->count + side);
    for (uint32_t i = 0; i < side; i++) {
        const double centre = (i + 0.5) * scale, low = centre - reach + 0.5, high = centre + reach + 0.5;
        const uint32_t first = low > 0 ? (uint32_t)low : 0, last = high < from ? (uint32_t)high : from;
        double sum = 0;
        for (uint32_t k = first; k < last; k++) sum += share(k, centre, reach);
        for (uint32_t k = first; k < last; k++)
            out->weights[(uint64_t)i * most + k - first] =
                (int32_t)(0.5 + share(k, centre, reach) / sum * (1 << BITS));
        out->first[i] = first;
        out->count[i] = last - first;
    }
    return true;
}

/* One colour of pixel i of the result, from pixels that are `step` bytes apart. */
static uint8_t mean_of(const line *l, uint32_t i, const uint8_t *pixels, uint64_t step) {
    const int32_t *weights = l->weights + (uint64_t)i * l->most;
    int64_t sum = 1 << (BITS - 1);
    pixels += l->first[i] * step;
    for (uint32_t k = 0; k < l->count[i]; k++) sum += (int64_t)pixels[k * step] * weights[k];
    sum >>= BITS;
    return (uint8_t)(sum < 255 ? sum : 255);
}

static void resize(const hd_image *image, const line *across, const line *down, uint32_t side, uint8_t *narrow,
                   uint8_t *out) {
    const uint64_t row = UINT64_C(3) * side;
    for (uint64_t y = 0; y < image->height; y++)
        for (uint32_t i = 0; i < row; i++)
            narrow[y * row + i] = mean_of(across, i / 3, image->pixels + y * image->width * 3 + i % 3, 3);
    for (uint32_t y = 0; y < side; y++)
        for (uint64_t i = 0; i < row; i++) out[y * row + i] = mean_of(down, y, narrow + i, row);
}

hd_status hdl_image_resize(const hd_allocator *allocator, const hd_image *image, uint32_t side, uint8_t *out_pixels,
                           hd_error *error) {
    const uint32_t width = image->width, height = image->height;
    if (width == 0 || height == 0) return hdl_fail(error, HD_STATUS_ZERO_SIZE, "the image has no pixels");
    if (width > HDL_MOST_IMAGE_SIDE || height > HDL_MOST_IMAGE_SIDE)
        return hdl_fail(error, HD_STATUS_LIMIT, "the image has %u x %u pixels; at most %d in each direction are taken",
                        width, height, HDL_MOST_IMAGE_SIDE);
    const uint64_t bytes = UINT64_C(3) * side * height;
    uint8_t *narrow = hdl_alloc(allocator, bytes);
    line across = { 0 }, down = { 0 };
    const bool made = narrow && make_line(allocator, width, side, &across) && make_line(allocator, height, side, &down);
    if (made) resize(image, &across, &down, side, narrow, out_pixels);
    hdl_free(allocator, narrow, bytes);
    hdl_free(allocator, across.room, across.bytes);
    hdl_free(allocator, down.room, down.bytes);
    return made ? HD_OK : hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to resize an image");
}
