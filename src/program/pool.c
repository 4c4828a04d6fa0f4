/* pool.c: pooling and resizing, made of operations that there are, one axis after the other. */
#include "program/build_help.h"
#include "program/conv.h"
#include <math.h>

/* ---- pooling ---- */

typedef struct pooling {
    const char *name;
    bool      largest, count_pad, ceil_mode;
    hd_dtype  dtype;
    hd_shape  shape; /* so far */
    hdi_sweep along[HDI_SWEEP_MOST];
    int64_t   over[HDI_SWEEP_MOST]; /* elements that ceil_mode's last window reaches over the padding */
} pooling;

/* The windows that ceil_mode adds: one that begins in x or the padding before it. */
static void reach_over(hdi_sweep *s, int64_t *out_over) {
    const int64_t span = (s->size - 1) * s->dilation + 1, next = s->count * s->stride,
                  padded = s->length + s->before + s->after;
    if ((s->count - 1) * s->stride + span >= padded || next >= s->length + s->before) return;
    s->count++;
    *out_over = next + span - padded;
}

static bool read_pooling(hd_program *p, hd_value x, const hd_pool_desc *desc, pooling *o) {
    static const hd_pool_desc global;
    const hd_pool_desc *d = desc ? desc : &global;
    const hdi_node *node = hdi_build_node(p, x);
    char text[HDI_SHAPE_TEXT];
    if (!node) hdi_build_refuse_operand(p, o->name, 1);
    else if (!hdi_dtype_is_float(node->dtype))
        hdi_build_refuse(p, o->name, HD_STATUS_TYPE, "operand 1 is %s, it must be f32, f16 or bf16",
                         hd_dtype_name(node->dtype));
    else if (node->shape.rank <= HDI_SWEEP_FIRST || node->shape.rank > HDI_SWEEP_FIRST + HDI_SWEEP_MOST)
        hdi_build_refuse(p, o->name, HD_STATUS_SHAPE, "operand 1 is %s, it must be [N,C,L] or [N,C,H,W]",
                         hdi_shape_text(node->shape, text));
    else {
        o->dtype = node->dtype;
        o->shape = node->shape;
        o->count_pad = d->count_pad != 0;
        for (uint32_t k = 0; k + HDI_SWEEP_FIRST < o->shape.rank; k++) {
            const int64_t length = o->shape.dims[HDI_SWEEP_FIRST + k], size = d->size[k] ? d->size[k] : length;
            o->along[k] = (hdi_sweep){ .length = length, .size = size, .stride = d->stride[k] ? d->stride[k] : size,
                                       .dilation = d->dilation[k] ? d->dilation[k] : 1, .before = d->pad_before[k],
                                       .after = d->pad_after[k] };
            if (!hdi_sweep_count(p, o->name, HDI_SWEEP_FIRST + k, &o->along[k])) return false;
            if (d->ceil_mode) reach_over(&o->along[k], &o->over[k]);
        }
        return true;
    }
    return false;
}

/* How many elements of each window count, as f32 along the axis; at least 1. */
static hd_value counts_of(hd_program *p, hd_value x, const pooling *o, uint32_t k) {
    const hdi_sweep *s = &o->along[k];
    const int64_t none = 0, padding = s->before + s->after;
    const hd_value nought = hdi_build_nought(p, x), one = hdi_build_fill(p, nought, HD_F32, HD_SHAPE(1), 1);
    hd_value ones = hdi_build_fill(p, nought, HD_F32, HD_SHAPE(s->length), 1);
    if (padding) ones = hd_pad(p, ones, &s->before, &s->after, 1, o->count_pad);
    if (o->over[k]) ones = hd_pad(p, ones, &none, &o->over[k], 1, 0);
    const hd_value counts = hd_sum(p, hd_windows(p, ones, 0, s->size, s->stride, s->dilation), 1);
    hd_shape shape = { o->shape.rank - HDI_SWEEP_FIRST - k, { s->count, 1 } };
    return hd_reshape(p, hd_maximum(p, counts, one), shape);
}

static hd_value reduce(hd_program *p, hd_value x, const pooling *o, int axis, bool uneven) {
    return o->largest ? hd_max(p, x, axis) : uneven ? hd_sum(p, x, axis) : hd_mean(p, x, axis);
}

/* Along one axis. A window's elements go to axis 1, where those of many windows lie side by side. */
static hd_value pool_axis(hd_program *p, hd_value x, pooling *o, uint32_t k) {
    const uint32_t axis = HDI_SWEEP_FIRST + k, rank = o->shape.rank;
    const hdi_sweep *s = &o->along[k];
    const bool uneven = o->over[k] > 0 || (!o->count_pad && s->before + s->after > 0);
    int64_t before[HD_MAX_RANK] = { 0 }, after[HD_MAX_RANK] = { 0 };
    before[axis] = s->before;
    after[axis] = s->after + o->over[k];
    o->shape.dims[axis] = s->count;
    if (s->size == 1 && s->stride == 1 && before[axis] + after[axis] == 0) return x;
    if (s->size == s->length && s->count == 1 && before[axis] + after[axis] == 0)
        return reduce(p, x, o, (int)axis, uneven);
    const hd_value counts = uneven && !o->largest ? counts_of(p, x, o, k) : 0;
    if (before[axis] + after[axis] > 0) x = hd_pad(p, x, before, after, rank, o->largest ? -INFINITY : 0);
    x = hd_windows(p, x, (int)axis, s->size, s->stride, s->dilation);
    uint32_t axes[HD_MAX_RANK] = { 0, rank };
    for (uint32_t i = 1; i < rank; i++) axes[i + 1] = i;
    x = reduce(p, hd_permute(p, x, axes, rank + 1), o, 1, uneven);
    x = hd_reshape(p, x, o->shape);
    return counts ? hd_div(p, x, counts) : x;
}

static hd_value pool(hd_program *p, hd_value x, const hd_pool_desc *desc, pooling *o) {
    if (!read_pooling(p, x, desc, o)) return 0;
    const bool widens = !o->largest && o->dtype != HD_F32;
    if (widens) x = hd_cast(p, x, HD_F32);
    for (uint32_t k = o->shape.rank - HDI_SWEEP_FIRST; k-- > 0;) x = pool_axis(p, x, o, k);
    return widens ? hd_cast(p, x, o->dtype) : x;
}

hd_value hd_max_pool(hd_program *p, hd_value x, const hd_pool_desc *desc) {
    return pool(p, x, desc, &(pooling){ .name = "max_pool", .largest = true });
}
hd_value hd_mean_pool(hd_program *p, hd_value x, const hd_pool_desc *desc) {
    return pool(p, x, desc, &(pooling){ .name = "mean_pool" });
}

/* ---- resizing ---- */

/* Element i is read at (i * factor + first) / divisor, held at 0. */
typedef struct placing { int64_t factor, first, divisor; } placing;

static int64_t common_factor(int64_t a, int64_t b) {
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static placing placing_of(int64_t from, int64_t to, hd_resize_mode mode) {
    const bool corners = mode == HD_RESIZE_LINEAR_CORNERS;
    if (corners && to == 1) return (placing){ 0, 0, 1 };
    int64_t up = corners ? from - 1 : from, down = corners ? to - 1 : to;
    const int64_t common = common_factor(up, down);
    up /= common;
    down /= common;
    if (corners || mode == HD_RESIZE_NEAREST) return (placing){ up, 0, down };
    return (placing){ 2 * up, mode == HD_RESIZE_LINEAR ? up - down : up, 2 * down };
}

/* Rows of x [from,n]: for each row of the result the one that is read, and for linear modes f32 of two. */
static hd_value read_rows(hd_program *p, hd_value x, int64_t from, int64_t to, hd_resize_mode mode) {
    const placing at = placing_of(from, to, mode);
    const hd_value nought = hdi_build_nought(p, x), none = hd_cast(p, nought, HD_I32);
    const hd_value factor = hdi_build_fill(p, nought, HD_I32, (hd_shape){ 0 }, (float)at.factor),
                   first = hdi_build_fill(p, nought, HD_I32, (hd_shape){ 0 }, (float)at.first),
                   divisor = hdi_build_fill(p, nought, HD_I32, (hd_shape){ 0 }, (float)at.divisor);
    hd_value place = hd_mul(p, hdi_build_count(p, nought, to), factor);
    place = hd_maximum(p, hd_add(p, place, first), none);
    const hd_value low = hd_div(p, place, divisor), read = hd_gather(p, x, low);
    if (mode == HD_RESIZE_NEAREST || mode == HD_RESIZE_NEAREST_CENTRES) return read;
    const hd_value rest = hd_sub(p, place, hd_mul(p, low, divisor));
    const hd_value last = hdi_build_fill(p, nought, HD_I32, (hd_shape){ 0 }, (float)(from - 1));
    const hd_value one = hdi_build_fill(p, nought, HD_I32, (hd_shape){ 0 }, 1),
                   high = hd_minimum(p, hd_add(p, low, one), last),
                   is_whole = hd_reshape(p, hd_equal(p, rest, none), HD_SHAPE(to, 1));
    hd_value w = hd_cast(p, rest, HD_F32);
    w = hd_div(p, w, hd_cast(p, divisor, HD_F32));
    w = hd_reshape(p, w, HD_SHAPE(to, 1));
    const hd_value above = hd_cast(p, hd_gather(p, x, high), HD_F32), below = hd_cast(p, read, HD_F32);
    const hd_value of_above = hd_mul(p, above, w), of_below = hd_mul(p, below, hd_scale(p, w, -1, 1));
    return hd_where(p, is_whole, below, hd_add(p, of_below, of_above)); /* beside an infinity, too */
}

/* The axis goes to the front, so that a place along it is a row. */
static hd_value resize_axis(hd_program *p, hd_value x, hd_shape *shape, uint32_t axis, int64_t to,
                            hd_resize_mode mode) {
    const int64_t from = shape->dims[axis], rest = (int64_t)hd_shape_elements(*shape) / from;
    uint32_t there[HD_MAX_RANK] = { axis }, back[HD_MAX_RANK] = { 0 };
    hd_shape moved = { shape->rank, { to } };
    for (uint32_t i = 0; i < shape->rank; i++) {
        back[i] = i < axis ? i + 1 : i == axis ? 0 : i;
        if (i != axis) there[back[i]] = i;
        if (i != axis) moved.dims[back[i]] = shape->dims[i];
    }
    x = hd_reshape(p, hd_permute(p, x, there, shape->rank), HD_SHAPE(from, rest));
    x = hd_reshape(p, read_rows(p, x, from, to, mode), moved);
    shape->dims[axis] = to;
    return hd_permute(p, x, back, shape->rank);
}

static bool can_resize(hd_program *p, const hdi_node *node, const int64_t *lengths, uint32_t count,
                       hd_resize_mode mode) {
    static const char name[] = "resize";
    char text[HDI_SHAPE_TEXT];
    if (!node) hdi_build_refuse_operand(p, name, 1);
    else if (count > 0 && !lengths) hdi_build_refuse(p, name, HD_STATUS_NULL_POINTER, "lengths is NULL");
    else if (!hdi_dtype_is_float(node->dtype))
        hdi_build_refuse(p, name, HD_STATUS_TYPE, "operand 1 is %s, it must be f32, f16 or bf16",
                         hd_dtype_name(node->dtype));
    else if (count > node->shape.rank)
        hdi_build_refuse(p, name, HD_STATUS_SHAPE, "%u lengths given for %s", count, hdi_shape_text(node->shape, text));
    else if ((unsigned)mode > HD_RESIZE_LINEAR_CORNERS)
        hdi_build_refuse(p, name, HD_STATUS_INVALID_ARGUMENT, "%d is none of hd_resize_mode", (int)mode);
    else {
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t axis = node->shape.rank - count + i;
            const int64_t from = node->shape.dims[axis], to = lengths[i], most = INT32_MAX, whole = 1 << 24;
            if (to < 1 || to > most || from > most) {
                hdi_build_refuse(p, name, to < 1 ? HD_STATUS_ZERO_SIZE : HD_STATUS_LIMIT,
                                 "axis %u of %lld elements cannot become %lld", axis, (long long)from, (long long)to);
                return false;
            }
            const placing at = placing_of(from, to, mode);
            const int64_t first = at.first < 0 ? -at.first : at.first;
            if (at.factor > whole || at.divisor > whole || first > whole || from > whole ||
                at.factor * to + first > most) {
                hdi_build_refuse(p, name, HD_STATUS_LIMIT,
                                 "axis %u: %lld elements to %lld: the places are no i32: take lengths with a larger "
                                 "common factor", axis, (long long)from, (long long)to);
                return false;
            }
        }
        return true;
    }
    return false;
}

hd_value hd_resize(hd_program *p, hd_value x, const int64_t *lengths, uint32_t count, hd_resize_mode mode) {
    const hdi_node *node = hdi_build_node(p, x);
    if (!can_resize(p, node, lengths, count, mode)) return 0;
    hd_shape shape = node->shape;
    const hd_dtype dtype = node->dtype;
    const bool linear = mode == HD_RESIZE_LINEAR || mode == HD_RESIZE_LINEAR_CORNERS;
    bool widened = false;
    for (uint32_t i = count; i-- > 0;) {
        const uint32_t axis = shape.rank - count + i;
        if (lengths[i] == shape.dims[axis]) continue;
        x = resize_axis(p, x, &shape, axis, lengths[i], mode);
        widened = linear && dtype != HD_F32;
    }
    return widened ? hd_cast(p, x, dtype) : x;
}
