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

/* x [size, ..,O,..] with axis + 1 as long as `reach`: its elements `stride` apart, and zeros between and behind. */
static hd_value spread(hd_program *p, hd_value x, hd_shape shape, uint32_t axis, int64_t stride, int64_t reach) {
    const int64_t none[HD_MAX_RANK] = { 0 };
    int64_t after[HD_MAX_RANK] = { 0 };
    hd_shape flat = { 4, { 1, shape.dims[axis], 1, 1 } };
    for (uint32_t i = 0; i < shape.rank; i++)
        if (i != axis) flat.dims[i < axis ? 0 : 3] *= shape.dims[i];
    if (stride > 1) {
        after[2] = stride - 1;
        x = hd_pad(p, hd_reshape(p, x, flat), none, after, 4, 0);
        shape.dims[axis] *= stride;
        x = hd_reshape(p, x, shape);
    }
    after[2] = 0;
    if (shape.dims[axis] > reach) {
        shape.dims[axis] = reach;
        return hd_slice(p, x, none, shape.dims, shape.rank);
    }
    after[axis] = reach - shape.dims[axis];
    return after[axis] ? hd_pad(p, x, none, after, shape.rank, 0) : x;
}

/* Number k of each window belongs k * dilation further on than where it lies in x [size, ..,reach,..], where reach is
 * `dilation` more than the length. Read as rows that are as much shorter, all that belongs together is a column. */
static hd_value sum_shifted(hd_program *p, hd_value x, hd_shape shape, uint32_t axis, int64_t dilation) {
    const int64_t none[HD_MAX_RANK] = { 0 }, size = shape.dims[0];
    int64_t behind = dilation, row = (int64_t)hd_shape_elements(shape) / size;
    hd_shape whole = { shape.rank - 1, { 0 } };
    for (uint32_t i = axis + 1; i < shape.rank; i++) behind *= shape.dims[i];
    for (uint32_t i = 1; i < shape.rank; i++) whole.dims[i - 1] = shape.dims[i];
    const int64_t kept = size * (row - behind), after[] = { 0, behind };
    x = hd_slice(p, hd_reshape(p, x, HD_SHAPE(size * row)), none, &kept, 1);
    x = hd_sum(p, hd_reshape(p, x, HD_SHAPE(size, row - behind)), 0);
    x = hd_reshape(p, hd_pad(p, x, none, after, 2, 0), whole);
    whole.dims[axis - 1] -= dilation;
    return hd_slice(p, x, none, whole.dims, whole.rank);
}

hd_value hd_windows_sum(hd_program *p, hd_value x, int axis, int64_t length, int64_t stride, int64_t dilation) {
    static const char name[] = "windows_sum";
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
    uint32_t axes[HD_MAX_RANK] = { (uint32_t)rank };
    hd_shape shape = { from.rank, { size } }, alone = { from.rank - 1, { 0 } };
    for (uint32_t i = 1; i < from.rank; i++) {
        axes[i] = i - 1;
        shape.dims[i] = alone.dims[i - 1] = from.dims[i - 1];
    }
    const int64_t reach = length + (size > 1 ? dilation : 0);
    x = spread(p, hd_permute(p, x, axes, from.rank), shape, at + 1, stride, reach);
    shape.dims[at + 1] = reach;
    alone.dims[at] = length;
    return size > 1 ? sum_shifted(p, x, shape, at + 1, dilation) : hd_reshape(p, x, alone);
}

/* ---- convolutions ---- */

typedef struct convolution {
    const char *name;
    hd_shape  x, w;
    int64_t   N, C, O, G;
    int64_t   taps;   /* of a window, along all axes */
    int64_t   places; /* of windows likewise */
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
    return true;
}

static hd_value with_bias(hd_program *p, hd_value y, hd_value bias, const convolution *c) {
    hd_shape shape = { c->x.rank - 1, { c->O, 1, 1 } };
    return bias ? hd_add(p, y, hd_reshape(p, bias, shape)) : y;
}

/* The windows as columns: [C * taps, N * places], or with groups [N, G, C / G * taps, places]. */
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
    x = hd_permute(p, x, c->G == 1 ? one[axes - 1] : many[axes - 1], 2 * axes + 2);
    return hd_reshape(p, x, c->G == 1 ? HD_SHAPE(c->C * c->taps, c->N * c->places)
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
    w = hd_reshape(p, w, c.G == 1 ? HD_SHAPE(c.O, depth) : HD_SHAPE(c.G, c.O / c.G, depth));
    hd_value y = hd_matmul(p, w, columns);
    hd_shape shape = { c.x.rank, { c.N, c.O, c.along[0].count, c.along[1].count } };
    if (c.G > 1) return with_bias(p, hd_reshape(p, y, shape), bias, &c);
    shape.dims[0] = c.O;
    shape.dims[1] = c.N;
    y = hd_reshape(p, y, shape);
    return with_bias(p, images_first(p, y, shape.rank), bias, &c);
}

/* What each window gives, as [N, O, places.., taps..] in f32. */
static hd_value given_by_windows(hd_program *p, hd_value x, hd_value w, const convolution *c) {
    const uint32_t axes = c->x.rank - HDI_SWEEP_FIRST;
    const int64_t rows = c->O / c->G * c->taps;
    const bool one = c->G == 1;
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
    return with_bias(p, y, bias, &c);
}
