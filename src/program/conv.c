/* conv.c: hd_windows_sum and convolutions, made of operations that there are. A convolution is one product, of the
 * weights and the windows as columns; transposed it is a product whose columns are summed where windows lie. */
#include "program/build_help.h"
#include "program/conv.h"

static int64_t at_least_one(uint32_t value) { return value ? value : 1; }

bool hdi_sweep_count(hd_program *p, const char *name, uint32_t axis, hdi_sweep *s) {
    const int64_t padded = s->length + s->before + s->after;
    if (s->size - 1 > (padded - 1) / s->dilation) {
        hdi_build_refuse(p, name, HD_STATUS_SHAPE,
                         "a window of %lld elements, %lld apart, is longer than axis %u, %lld elements with padding",
                         (long long)s->size, (long long)s->dilation, axis, (long long)padded);
        return false;
    }
    s->count = (padded - 1 - (s->size - 1) * s->dilation) / s->stride + 1;
    return true;
}

hd_value hdi_sweep_pad(hd_program *p, hd_value x, uint32_t rank, const hdi_sweep *sweeps, float value) {
    int64_t before[HD_MAX_RANK] = { 0 }, after[HD_MAX_RANK] = { 0 };
    bool pads = false;
    for (uint32_t i = HDI_SWEEP_FIRST; i < rank; i++) {
        before[i] = sweeps[i - HDI_SWEEP_FIRST].before;
        after[i] = sweeps[i - HDI_SWEEP_FIRST].after;
        pads |= before[i] || after[i];
    }
    return pads ? hd_pad(p, x, before, after, rank, value) : x;
}

/* ---- sums of windows ---- */

static const char windows_sum[] = "windows_sum";

/* Windows to be summed: x [..,count,..,size], as values of this order: size, the axes in front, `count` and what is
 * behind. */
typedef struct overlap {
    hd_shape shape;            /* in this order */
    uint32_t place;            /* of `count` in it */
    int64_t  length, stride, dilation;
    int64_t  row;              /* elements that the axis is given, zeros among them */
    uint32_t back[HD_MAX_RANK]; /* axes of the result in their own order, once `size` is gone */
} overlap;

/* Elements of the axes in front of `place`, without the first one, or behind it. */
static int64_t elements(const overlap *o, bool behind) {
    int64_t count = 1;
    for (uint32_t i = 1; i < o->shape.rank; i++)
        if (i != o->place && (i > o->place) == behind) count *= o->shape.dims[i];
    return count;
}

/* Elements `stride` apart, with zeros between and behind them: rows of o->row. */
static hd_value spread(hd_program *p, hd_value x, const overlap *o) {
    const int64_t none[HD_MAX_RANK] = { 0 }, count = o->shape.dims[o->place];
    int64_t after[HD_MAX_RANK] = { 0 };
    hd_shape shape = o->shape;
    if (o->stride == 1) {
        after[o->place] = o->row - count;
        return o->row > count ? hd_pad(p, x, none, after, shape.rank, 0) : x;
    }
    const hd_shape flat = { 4, { shape.dims[0] * elements(o, false), count, 1, elements(o, true) } };
    after[1] = o->row / o->stride - count;
    after[2] = o->stride - 1;
    shape.dims[o->place] = o->row;
    return hd_reshape(p, hd_pad(p, hd_reshape(p, x, flat), none, after, 4, 0), shape);
}

/* Number k of each window belongs k * dilation further on than where it lies in the rows. Read as if all in front of
 * `place` were a line that is dilation shorter than it is, what belongs together is a column. */
static hd_value sum_shifted(hd_program *p, hd_value x, const overlap *o) {
    const int64_t none = 0, size = o->shape.dims[0], behind = elements(o, true),
                  line = (elements(o, false) * o->row - o->dilation) * behind, kept = size * line;
    x = hd_reshape(p, x, HD_SHAPE(size * (line + o->dilation * behind)));
    x = hd_sum(p, hd_reshape(p, hd_slice(p, x, &none, &kept, 1), HD_SHAPE(size, line)), 0);
    return hd_windows(p, hd_reshape(p, x, HD_SHAPE(line)), 0, o->length * behind, o->row * behind, 1);
}

/* Windows side by side, maybe with gaps between. */
static hd_value join_apart(hd_program *p, hd_value x, hd_shape from, uint32_t axis, const overlap *o) {
    const int64_t none[HD_MAX_RANK] = { 0 };
    int64_t after[HD_MAX_RANK] = { 0 };
    uint32_t axes[HD_MAX_RANK];
    hd_shape shape = { from.rank - 1, { 0 } };
    for (uint32_t i = 0; i < from.rank; i++) axes[i] = i <= axis ? i : i == axis + 1 ? from.rank - 1 : i - 1;
    for (uint32_t i = 0; i < shape.rank; i++) shape.dims[i] = i == axis ? from.dims[i] * o->stride : from.dims[i];
    after[axis + 1] = o->stride - from.dims[from.rank - 1];
    x = hd_permute(p, x, axes, from.rank);
    if (after[axis + 1]) x = hd_pad(p, x, none, after, from.rank, 0);
    x = hd_reshape(p, x, shape);
    after[axis + 1] = 0;
    after[axis] = o->length - shape.dims[axis];
    if (after[axis] > 0) return hd_pad(p, x, none, after, shape.rank, 0);
    shape.dims[axis] = o->length;
    return after[axis] ? hd_slice(p, x, none, shape.dims, shape.rank) : x;
}

/* Fills in the order. Short axes behind `axis` go in front of it, so that many elements are moved at a time. */
static void order_axes(hd_shape from, uint32_t axis, uint32_t *out_axes, overlap *o) {
    enum { SHORT = 16 };
    const uint32_t last = from.rank - 1;
    int64_t behind = 1;
    uint32_t n = 1;
    for (uint32_t i = axis + 1; i < last; i++) behind *= from.dims[i];
    out_axes[0] = last;
    for (uint32_t i = 0; i < last; i++)
        if (i < axis || (i > axis && behind < SHORT)) out_axes[n++] = i;
    o->place = n;
    out_axes[n++] = axis;
    for (uint32_t i = axis + 1; i < last && n < from.rank; i++) out_axes[n++] = i;
    o->shape.rank = from.rank;
    for (uint32_t i = 0; i < from.rank; i++) {
        o->shape.dims[i] = from.dims[out_axes[i]];
        if (i > 0) o->back[out_axes[i]] = i - 1;
    }
}

static hd_value sum_of_windows(hd_program *p, hd_value x, hd_shape from, uint32_t axis, overlap *o) {
    uint32_t axes[HD_MAX_RANK] = { 0 };
    const int64_t size = from.dims[from.rank - 1], count = from.dims[axis];
    if (o->dilation == 1 && size <= o->stride) return join_apart(p, x, from, axis, o);
    order_axes(from, axis, axes, o);
    const int64_t reach = o->length + o->dilation;
    o->row = HDI_MAX(count, (reach + o->stride - 1) / o->stride) * o->stride;
    hd_shape rows = o->shape;
    rows.dims[o->place] = o->row;
    if (!hdi_build_fits(rows))
        return hdi_build_refuse(p, windows_sum, HD_STATUS_LIMIT, "%lld elements of each window, as rows of %lld, are "
                                "more than a tensor can have", (long long)size, (long long)o->row);
    x = sum_shifted(p, spread(p, hd_permute(p, x, axes, from.rank), o), o);
    hd_shape shape = { from.rank - 1, { 0 } };
    for (uint32_t i = 0; i < shape.rank; i++) shape.dims[i] = i + 1 == o->place ? o->length : o->shape.dims[i + 1];
    return hd_permute(p, hd_reshape(p, x, shape), o->back, shape.rank);
}

hd_value hd_windows_sum(hd_program *p, hd_value x, int axis, int64_t length, int64_t stride, int64_t dilation) {
    const char *name = windows_sum;
    const hdi_node *node = hdi_build_node(p, x);
    if (!node) return hdi_build_refuse_operand(p, name, 1);
    const hd_shape from = node->shape;
    const int rank = (int)from.rank - 1;
    char text[HDI_SHAPE_TEXT];
    if (hdi_dtype_is_quantised(node->dtype) || node->dtype == HD_U8)
        return hdi_build_refuse(p, name, HD_STATUS_TYPE, "operand 1 is %s, it must be f32, f16, bf16 or i32",
                                hd_dtype_name(node->dtype));
    if (axis < -rank || axis >= rank)
        return hdi_build_refuse(p, name, HD_STATUS_INVALID_ARGUMENT, "axis %d is outside of %s without its last axis",
                                axis, hdi_shape_text(from, text));
    const uint32_t at = (uint32_t)(axis < 0 ? axis + rank : axis);
    const int64_t count = from.dims[at], size = from.dims[rank];
    if (stride == 0) stride = 1;
    if (dilation == 0 || size == 1) dilation = 1;
    if (stride < 1 || dilation < 1)
        return hdi_build_refuse(p, name, HD_STATUS_INVALID_ARGUMENT, "stride %lld and dilation %lld must be above 0",
                                (long long)stride, (long long)dilation);
    if (length < 1 || size - 1 > (length - 1) / dilation || count - 1 > (length - 1 - (size - 1) * dilation) / stride)
        return hdi_build_refuse(p, name, HD_STATUS_SHAPE, "%s reaches beyond %lld elements along axis %u",
                                hdi_shape_text(from, text), (long long)length, at);
    hd_shape whole = { from.rank - 1, { 0 } };
    for (uint32_t i = 0; i < whole.rank; i++) whole.dims[i] = i == at ? length : from.dims[i];
    if (!hdi_build_fits(whole))
        return hdi_build_refuse(p, name, HD_STATUS_LIMIT, "%s is more than a tensor can have",
                                hdi_shape_text(whole, text));
    if (count == 1) stride = size;
    return sum_of_windows(p, x, from, at, &(overlap){ .length = length, .stride = stride, .dilation = dilation });
}

/* ---- convolutions ---- */

/* Images with fewer places than that are too small for products of their own. With more, what is computed of an image
 * needs no other one, so that images may be computed apart. */
enum { FEW_PLACES = 256 };

typedef struct convolution {
    const char *name;
    hd_shape  x, w;
    int64_t   N, C, O, G;
    int64_t   taps;   /* of a window, along all axes */
    int64_t   places; /* of windows likewise */
    bool      joined; /* all images are one product; else each image and group is one */
    hdi_sweep along[HDI_SWEEP_MOST];
} convolution;

static bool refuse_channels(hd_program *p, const convolution *c) {
    char x[HDI_SHAPE_TEXT], w[HDI_SHAPE_TEXT];
    hdi_build_refuse(p, c->name, HD_STATUS_SHAPE, "%s with weights %s and %lld groups: the channels do not go together",
                     hdi_shape_text(c->x, x), hdi_shape_text(c->w, w), (long long)c->G);
    return false;
}

/* Types and ranks. */
static bool read_operands(hd_program *p, const hd_value operands[3], convolution *c) {
    const hdi_node *nodes[3];
    char text[HDI_SHAPE_TEXT];
    for (uint32_t i = 0; i < 3; i++) {
        nodes[i] = hdi_build_node(p, operands[i]);
        if (!nodes[i] && i == 2 && operands[i] == 0) continue;
        const char *type = nodes[i] ? hd_dtype_name(nodes[i]->dtype) : "";
        if (!nodes[i]) hdi_build_refuse_operand(p, c->name, i + 1);
        else if (!hdi_dtype_is_float(nodes[i]->dtype))
            hdi_build_refuse(p, c->name, HD_STATUS_TYPE, "operand %u is %s, it must be f32, f16 or bf16", i + 1, type);
        else if (nodes[i]->dtype != nodes[0]->dtype)
            hdi_build_refuse(p, c->name, HD_STATUS_TYPE, "operands 1 and %u are %s and %s: cast one of them", i + 1,
                             hd_dtype_name(nodes[0]->dtype), type);
        else continue;
        return false;
    }
    c->x = nodes[0]->shape;
    c->w = nodes[1]->shape;
    if (c->x.rank != HDI_SWEEP_FIRST + 1 && c->x.rank != HDI_SWEEP_FIRST + HDI_SWEEP_MOST)
        hdi_build_refuse(p, c->name, HD_STATUS_SHAPE, "operand 1 is %s, it must be [N,C,L] or [N,C,H,W]",
                         hdi_shape_text(c->x, text));
    else if (c->w.rank != c->x.rank)
        hdi_build_refuse(p, c->name, HD_STATUS_SHAPE, "the weights are %s, they need as many axes as operand 1, %u",
                         hdi_shape_text(c->w, text), c->x.rank);
    else return true;
    return false;
}

static bool read_convolution(hd_program *p, const hd_value operands[3], const hd_conv_desc *desc, bool transposed,
                             convolution *c) {
    static const hd_conv_desc plain;
    const hd_conv_desc *d = desc ? desc : &plain;
    char text[HDI_SHAPE_TEXT];
    if (!read_operands(p, operands, c)) return false;
    c->G = at_least_one(d->groups);
    c->N = c->x.dims[0];
    c->C = c->x.dims[1];
    c->O = c->w.dims[transposed];
    if (c->C % c->G != 0 || c->w.dims[!transposed] != (transposed ? c->C : c->C / c->G)) return refuse_channels(p, c);
    if (transposed) c->O *= c->G;
    if (c->O % c->G != 0) return refuse_channels(p, c);
    const hdi_node *bias = hdi_build_node(p, operands[2]);
    if (bias && !hdi_shape_equal(bias->shape, HD_SHAPE(c->O))) {
        hdi_build_refuse(p, c->name, HD_STATUS_SHAPE, "the bias is %s, it must be [%lld]",
                         hdi_shape_text(bias->shape, text), (long long)c->O);
        return false;
    }
    hd_shape padded = c->x;
    for (uint32_t k = 0; k + HDI_SWEEP_FIRST < c->x.rank && !transposed; k++)
        padded.dims[HDI_SWEEP_FIRST + k] += (int64_t)d->pad_before[k] + d->pad_after[k];
    if (!hdi_build_fits(padded)) {
        hdi_build_refuse(p, c->name, HD_STATUS_LIMIT, "%s, as padding makes it, is more than a tensor can have",
                         hdi_shape_text(padded, text));
        return false;
    }
    c->taps = c->places = 1;
    for (uint32_t i = HDI_SWEEP_FIRST; i < c->x.rank; i++) {
        hdi_sweep *s = &c->along[i - HDI_SWEEP_FIRST];
        const uint32_t k = i - HDI_SWEEP_FIRST;
        *s = (hdi_sweep){ .length = c->x.dims[i], .size = c->w.dims[i], .stride = at_least_one(d->stride[k]),
                          .dilation = at_least_one(d->dilation[k]), .before = d->pad_before[k],
                          .after = d->pad_after[k], .count = c->x.dims[i] };
        if (!transposed && !hdi_sweep_count(p, c->name, i, s)) return false;
        if (transposed && d->output_pad[k] && d->output_pad[k] >= HDI_MAX(s->stride, s->dilation)) {
            hdi_build_refuse(p, c->name, HD_STATUS_INVALID_ARGUMENT,
                             "output_pad %u must be below the stride, %lld, or the dilation, %lld", d->output_pad[k],
                             (long long)s->stride, (long long)s->dilation);
            return false;
        }
        c->taps *= s->size;
        c->places *= s->count;
    }
    c->joined = c->G == 1 && (c->N == 1 || c->places < FEW_PLACES);
    return true;
}

/* The windows as columns: [C * taps, N * places] where images are joined, else [N, G, C / G * taps, places]. */
static hd_value columns_of(hd_program *p, hd_value x, const convolution *c) {
    const uint32_t axes = c->x.rank - HDI_SWEEP_FIRST;
    hd_shape shape = { c->x.rank, { c->N * c->G, c->C / c->G } };
    for (uint32_t i = 0; i < axes; i++)
        shape.dims[HDI_SWEEP_FIRST + i] = c->along[i].length + c->along[i].before + c->along[i].after;
    x = hd_reshape(p, x, shape);
    for (uint32_t i = 0; i < axes; i++)
        x = hd_windows(p, x, (int)(HDI_SWEEP_FIRST + i), c->along[i].size, c->along[i].stride, c->along[i].dilation);
    static const uint32_t one[2][2 * HDI_SWEEP_MOST + 2] = { { 1, 3, 0, 2 }, { 1, 4, 5, 0, 2, 3 } },
                          many[2][2 * HDI_SWEEP_MOST + 2] = { { 0, 1, 3, 2 }, { 0, 1, 4, 5, 2, 3 } };
    x = hd_permute(p, x, c->joined ? one[axes - 1] : many[axes - 1], 2 * axes + 2);
    return hd_reshape(p, x, c->joined ? HD_SHAPE(c->C * c->taps, c->N * c->places)
                                      : HD_SHAPE(c->N, c->G, c->C / c->G * c->taps, c->places));
}

/* [O, N, ..] as [N, O, ..]: the way of images. */
static hd_value images_first(hd_program *p, hd_value y, uint32_t rank) {
    static const uint32_t swapped[HD_MAX_RANK] = { 1, 0, 2, 3, 4, 5 };
    return hd_permute(p, y, swapped, rank);
}

hd_value hd_conv(hd_program *p, hd_value x, hd_value w, hd_value bias, const hd_conv_desc *desc) {
    convolution c = { .name = "conv" };
    if (!read_convolution(p, (const hd_value[]){ x, w, bias }, desc, false, &c)) return 0;
    const hd_value columns = columns_of(p, hdi_sweep_pad(p, x, c.x.rank, c.along, 0), &c);
    const int64_t depth = c.C / c.G * c.taps;
    w = hd_reshape(p, w, c.joined ? HD_SHAPE(c.O, depth) : HD_SHAPE(c.G, c.O / c.G, depth));
    hd_value y = hd_matmul(p, w, columns);
    if (bias) /* a number for each row of the product, with which it is one kernel */
        y = hd_add(p, y, hd_reshape(p, bias, c.joined ? HD_SHAPE(c.O, 1) : HD_SHAPE(c.G, c.O / c.G, 1)));
    hd_shape shape = { c.x.rank, { c.N, c.O, c.along[0].count, c.along[1].count } };
    if (!c.joined) return hd_reshape(p, y, shape);
    shape.dims[0] = c.O;
    shape.dims[1] = c.N;
    return images_first(p, hd_reshape(p, y, shape), shape.rank);
}

/* What each window gives, as [N, O, places.., taps..] in f32. */
static hd_value given_by_windows(hd_program *p, hd_value x, hd_value w, const convolution *c) {
    const uint32_t axes = c->x.rank - HDI_SWEEP_FIRST;
    const int64_t rows = c->O / c->G * c->taps;
    const bool one = c->joined;
    if (one) x = images_first(p, x, c->x.rank);
    x = hd_reshape(p, x, one ? HD_SHAPE(c->C, c->N * c->places) : HD_SHAPE(c->N, c->G, c->C / c->G, c->places));
    w = hd_reshape(p, w, one ? HD_SHAPE(c->C, rows) : HD_SHAPE(c->G, c->C / c->G, rows));
    hd_value y = hd_matmul_with(p, w, x, HD_TRANSPOSE_A | HD_RESULT_F32);
    hd_shape shape = { 2 * axes + 2, { 0 } };
    uint32_t at = 0;
    if (!one) shape.dims[at++] = c->N;
    shape.dims[at++] = c->O;
    for (uint32_t i = 0; i < axes; i++) shape.dims[at++] = c->along[i].size;
    if (one) shape.dims[at++] = c->N;
    for (uint32_t i = 0; i < axes; i++) shape.dims[at++] = c->along[i].count;
    static const uint32_t from_one[2][2 * HDI_SWEEP_MOST + 2] = { { 2, 0, 3, 1 }, { 3, 0, 4, 5, 1, 2 } },
                          from_many[2][2 * HDI_SWEEP_MOST + 2] = { { 0, 1, 3, 2 }, { 0, 1, 4, 5, 2, 3 } };
    return hd_permute(p, hd_reshape(p, y, shape), one ? from_one[axes - 1] : from_many[axes - 1], shape.rank);
}

hd_value hd_conv_transpose(hd_program *p, hd_value x, hd_value w, hd_value bias, const hd_conv_desc *desc) {
    convolution c = { .name = "conv_transpose" };
    const hdi_node *node = hdi_build_node(p, x);
    const hd_dtype dtype = node ? node->dtype : HD_F32;
    if (!read_convolution(p, (const hd_value[]){ x, w, bias }, desc, true, &c)) return 0;
    int64_t begin[HD_MAX_RANK] = { 0 }, end[HD_MAX_RANK] = { c.N, c.O }, lengths[HDI_SWEEP_MOST] = { 0 };
    const uint32_t axes = c.x.rank - HDI_SWEEP_FIRST;
    for (uint32_t i = 0; i < axes; i++) {
        const hdi_sweep *s = &c.along[i];
        const int64_t most = INT64_C(1) << 40;
        if (s->length - 1 > most / s->stride || s->size - 1 > most / s->dilation)
            return hdi_build_refuse(p, c.name, HD_STATUS_LIMIT, "axis %u is more than a tensor can have",
                                    HDI_SWEEP_FIRST + i);
        lengths[i] = (s->length - 1) * s->stride + (s->size - 1) * s->dilation + 1;
        if (desc) lengths[i] += desc->output_pad[i];
        if (s->before + s->after >= lengths[i])
            return hdi_build_refuse(p, c.name, HD_STATUS_ZERO_SIZE, "padding of %lld leaves nothing of axis %u, %lld",
                                    (long long)(s->before + s->after), HDI_SWEEP_FIRST + i, (long long)lengths[i]);
        begin[HDI_SWEEP_FIRST + i] = s->before;
        end[HDI_SWEEP_FIRST + i] = lengths[i] - s->after;
    }
    hd_value y = given_by_windows(p, x, w, &c);
    for (uint32_t i = axes; i-- > 0;)
        y = hd_windows_sum(p, y, (int)(HDI_SWEEP_FIRST + i), lengths[i], c.along[i].stride, c.along[i].dilation);
    y = hd_slice(p, y, begin, end, c.x.rank);
    if (dtype != HD_F32) y = hd_cast(p, y, dtype);
    const hd_shape each = { axes + 1, { c.O, 1, 1 } };
    return bias ? hd_add(p, y, hd_reshape(p, bias, each)) : y;
}
