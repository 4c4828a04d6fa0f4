/* reference.c: every operation in plain C, one node at a time, on dense tensors: slow, right and short. It says what
 * the bits of exact mode are; all kernels are judged by it. Here: unpacking and rounding, the choice of the operation,
 * element-wise operations and those that only move elements; sums are in rows.c and products.c.
 * It relies on exact.h, on the program's checks (shapes and types fit) and on being built without contraction. */
#include "kernels/reference/reference.h"
#include "kernels/cpu/quant.h"
#include <math.h>
#include <stdlib.h>

/* ---- elements in and out ---- */

/* NaN keeps its sign and, where the type allows, its bits: what is not computed with is not changed. */
static float f16_to_f32(uint32_t h) {
    const bool is_nan = (h & 0x7fffu) > 0x7c00u;
    return is_nan ? exact_from_bits((h & 0x8000u) << 16 | EXACT_INF | (h & 0x3ffu) << 13) : exact_f16_to_f32(h);
}
static void unpack(const hdi_reference_tensor *tensor, uint64_t count, float *out) {
    const uint16_t *half = tensor->data;
    const uint32_t size = hdi_dtype(tensor->dtype).block_elements, bytes = hdi_dtype(tensor->dtype).block_bytes;
    if (tensor->dtype == HD_F32) memcpy(out, tensor->data, count * sizeof *out);
    else if (tensor->dtype == HD_F16) for (uint64_t i = 0; i < count; i++) out[i] = f16_to_f32(half[i]);
    else if (tensor->dtype == HD_BF16)
        for (uint64_t i = 0; i < count; i++) out[i] = exact_from_bits((uint32_t)half[i] << 16);
    else {
        for (uint64_t i = 0; i < count; i += size)
            hdcpu_dequantise_block((uint32_t)tensor->dtype, (const uint8_t *)tensor->data + i / size * bytes, out + i);
        for (uint64_t i = 0; i < count; i++) out[i] = exact_canonical(out[i]); /* computed, so NaN is the one NaN */
    }
}
static void pack(const float *values, uint64_t count, hdi_reference_tensor *out) {
    uint16_t *half = out->data;
    if (out->dtype == HD_F32) memcpy(out->data, values, count * sizeof *values);
    for (uint64_t i = 0; i < count && out->dtype != HD_F32; i++) {
        const uint32_t bits = exact_bits(values[i]);
        if (out->dtype == HD_F16) half[i] = (uint16_t)(exact_f32_to_f16(values[i]) | (bits >> 16 & 0x8000u));
        else half[i] = (uint16_t)(exact_is_nan(values[i]) ? bits >> 16 | 0x40u : exact_f32_to_bf16(values[i]));
    }
}

/* The element of an operand of shape `from`, broadcast to shape `to`, that goes with element `index` of the result. */
static uint64_t broadcast(hd_shape from, hd_shape to, uint64_t index) {
    uint64_t at = 0, step = 1;
    for (uint32_t i = 0; i < from.rank; i++) {
        const uint64_t length = (uint64_t)from.dims[from.rank - 1 - i], whole = (uint64_t)to.dims[to.rank - 1 - i];
        if (length != 1) at += index % whole * step;
        step *= length;
        index /= whole;
    }
    return at;
}

/* ---- element by element ---- */

/* Floats as integers of the same order, both zeros alike; not for NaN. */
static int32_t order_of(float x) {
    const int32_t magnitude = (int32_t)(exact_bits(x) & ~EXACT_SIGN);
    return exact_is_below(x) ? -magnitude : magnitude;
}
static float clip(float x, float low, float high) {
    if (exact_is_nan(x)) return x;
    const float y = order_of(x) < order_of(low) ? low : x;
    return order_of(y) > order_of(high) ? high : y;
}

/* The whole number next to |x| below 2^52 as float64 has it. */
static float rounded(float x) {
    const double size = fabs((double)x);
    if (!(size < 0x1p23)) return x;
    const double whole = (double)(int64_t)size, rest = size - whole;
    const bool up = rest > 0.5 || (rest == 0.5 && (int64_t)whole % 2 != 0);
    return exact_from_bits(exact_bits((float)(whole + up)) | (exact_bits(x) & EXACT_SIGN));
}
static float floored(float x) {
    if (!(fabs((double)x) < 0x1p23)) return x;
    const double whole = (double)(int64_t)x; /* towards zero */
    return exact_from_bits(exact_bits((float)(whole - (whole > (double)x))) | (exact_bits(x) & EXACT_SIGN));
}
/* The larger, or the smaller, of both; of equal ones the first. */
static float chosen(float x, float y, bool larger) {
    if (exact_is_nan(x) || exact_is_nan(y)) return exact_is_nan(x) ? x : y;
    return (larger ? order_of(x) < order_of(y) : order_of(y) < order_of(x)) ? y : x;
}

static float of_floats(hdi_op op, float x, float y, const float *k) {
    switch (op) {
    case HDI_OP_ADD:        return exact_canonical(x + y);
    case HDI_OP_SUB:        return exact_canonical(x - y);
    case HDI_OP_MUL:        return exact_canonical(x * y);
    case HDI_OP_DIV:        return exact_div(x, y);
    case HDI_OP_SCALE:      return exact_canonical(x * k[0] + k[1]);
    case HDI_OP_NEG:        return exact_from_bits(exact_bits(x) ^ EXACT_SIGN);
    case HDI_OP_ABS:        return exact_from_bits(exact_bits(x) & ~EXACT_SIGN);
    case HDI_OP_SIGN:       return exact_is_nan(x) ? x : (float)((order_of(x) > 0) - (order_of(x) < 0));
    case HDI_OP_ROUND:      return rounded(x);
    case HDI_OP_FLOOR:      return floored(x);
    case HDI_OP_MAXIMUM:    return chosen(x, y, true);
    case HDI_OP_MINIMUM:    return chosen(x, y, false);
    case HDI_OP_SQRT:       return exact_sqrt(x);
    case HDI_OP_EXP:        return exact_exp(x);
    case HDI_OP_LOG:        return exact_log(x);
    case HDI_OP_SIN:        return exact_sin(x);
    case HDI_OP_COS:        return exact_cos(x);
    case HDI_OP_RELU:       return exact_is_below(x) && !exact_is_nan(x) ? 0.0f : x;
    case HDI_OP_LEAKY_RELU: return exact_canonical(exact_is_below(x) ? k[0] * x : x);
    case HDI_OP_ELU:        return exact_canonical(exact_is_below(x) ? k[0] * exact_expm1(x) : x);
    case HDI_OP_SIGMOID:    return exact_sigmoid(x);
    case HDI_OP_TANH:       return exact_tanh(x);
    case HDI_OP_SILU:       return exact_silu(x);
    case HDI_OP_GELU:       return exact_gelu(x);
    case HDI_OP_GELU_TANH:  return exact_gelu_tanh(x);
    case HDI_OP_GELU_TANH_GRADIENT: return exact_canonical(exact_gelu_tanh_gradient(x, y));
    case HDI_OP_ERF:        return exact_erf(x);
    case HDI_OP_CLIP:       return clip(x, k[0], k[1]);
    default:                return x; /* copy, and cast between floats */
    }
}
static int32_t of_integers(hdi_op op, int32_t x, int32_t y, const float *k) {
    const uint32_t a = (uint32_t)x, b = (uint32_t)y; /* sums wrap */
    const int32_t low = exact_f32_to_i32(k[0]), high = exact_f32_to_i32(k[1]);
    switch (op) {
    case HDI_OP_ADD:  return (int32_t)(a + b);
    case HDI_OP_SUB:  return (int32_t)(a - b);
    case HDI_OP_MUL:  return (int32_t)(a * b);
    case HDI_OP_DIV:  return y == 0 ? 0 : y == -1 ? (int32_t)(0u - a) : x / y;
    case HDI_OP_NEG:  return (int32_t)(0u - a);
    case HDI_OP_ABS:  return x < 0 ? (int32_t)(0u - a) : x;
    case HDI_OP_RELU: return x < 0 ? 0 : x;
    case HDI_OP_SIGN: return (x > 0) - (x < 0);
    case HDI_OP_MAXIMUM: return HDI_MAX(x, y);
    case HDI_OP_MINIMUM: return HDI_MIN(x, y);
    case HDI_OP_BIT_AND: return x & y;
    case HDI_OP_BIT_OR:  return x | y;
    case HDI_OP_BIT_XOR: return x ^ y;
    case HDI_OP_SHIFT_LEFT: return b < 32 ? (int32_t)(a << b) : 0;
    case HDI_OP_SHIFT_RIGHT_LOGICAL: return b < 32 ? (int32_t)(a >> b) : 0;
    case HDI_OP_SHIFT_RIGHT_ARITHMETIC: return x < 0 ? ~(~x >> HDI_MIN(b, 31u)) : x >> HDI_MIN(b, 31u);
    case HDI_OP_CLIP: return HDI_MIN(HDI_MAX(x, low), high);
    default:          return x;
    }
}

/* An element of i32 or u8. */
static int32_t integer_at(hd_dtype dtype, const void *data, uint64_t i) {
    return dtype == HD_U8 ? ((const uint8_t *)data)[i] : ((const int32_t *)data)[i];
}
static void store_integer(const hdi_reference_tensor *to, uint64_t i, int32_t value) {
    if (to->dtype == HD_U8) ((uint8_t *)to->data)[i] = (uint8_t)value;
    else ((int32_t *)to->data)[i] = value;
}

void reference_elementwise(const reference *r) {
    const hd_shape shape = r->node->shape;
    const bool two = r->node->operand_count > 1;
    const uint64_t count = hd_shape_elements(shape);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t a = broadcast(r->operands[0].shape, shape, i),
                       b = two ? broadcast(r->operands[1].shape, shape, i) : 0;
        if (r->y) r->y[i] = of_floats(r->node->op, r->x[0][a], two ? r->x[1][b] : 0, r->node->attrs.floats);
        else
            store_integer(r->out, i,
                          of_integers(r->node->op, integer_at(r->out->dtype, r->data[0], a),
                                      two ? integer_at(r->out->dtype, r->data[1], b) : 0, r->node->attrs.floats));
    }
}

void reference_compare(const reference *r) {
    const hd_shape shape = r->node->shape;
    const bool less = r->node->op == HDI_OP_LESS;
    const uint64_t count = hd_shape_elements(shape);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t a = broadcast(r->operands[0].shape, shape, i), b = broadcast(r->operands[1].shape, shape, i);
        bool holds;
        if (r->x[0]) {
            const float x = r->x[0][a], y = r->x[1][b];
            holds =
                !exact_is_nan(x) && !exact_is_nan(y) && (less ? order_of(x) < order_of(y) : order_of(x) == order_of(y));
        } else {
            const int32_t x = integer_at(r->operands[0].dtype, r->data[0], a),
                          y = integer_at(r->operands[1].dtype, r->data[1], b);
            holds = less ? x < y : x == y;
        }
        ((uint8_t *)r->out->data)[i] = holds;
    }
}

/* To an integer, or from one; between floats it is a copy that is rounded. */
void reference_cast(const reference *r) {
    const hd_dtype from = r->operands[0].dtype, to = r->out->dtype;
    const uint64_t count = hd_shape_elements(r->node->shape);
    for (uint64_t i = 0; i < count; i++) {
        if (r->y && r->x[0]) {
            r->y[i] = r->x[0][i];
        } else if (r->y) {
            const int32_t value = integer_at(from, r->data[0], i);
            const uint32_t size = value < 0 ? 0u - (uint32_t)value : (uint32_t)value;
            /* For the narrow types f32 is not to round before they do: bits below the 16 highest become one sticky
             * bit. */
            const uint32_t sticky = (size & 0xffu) != 0 ? 0x80u : 0;
            const uint32_t kept = to == HD_F32 || size < 1u << 24 ? size : (size & ~0xffu) | sticky;
            r->y[i] = value < 0 ? -(float)kept : (float)kept;
        } else {
            int32_t value = r->x[0] ? exact_f32_to_i32(r->x[0][i]) : integer_at(from, r->data[0], i);
            if (to == HD_U8) ((uint8_t *)r->out->data)[i] = (uint8_t)HDI_MIN(HDI_MAX(value, 0), 255);
            else ((int32_t *)r->out->data)[i] = value;
        }
    }
}

/* Numbers of bf16 next to x: the one towards 0, and, as often as x lies nearer to it, the one away from it. */
void reference_round_random(const reference *r) {
    const hd_shape shape = r->node->shape;
    const uint64_t count = hd_shape_elements(shape);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t word = broadcast(r->operands[1].shape, shape, i);
        const uint32_t x = exact_bits(r->x[0][broadcast(r->operands[0].shape, shape, i)]), rest = x & 0xffffu,
                       drawn = ((const uint32_t *)r->data[1])[word] >> 16;
        const bool is_number = (x & ~EXACT_SIGN) <= EXACT_INF;
        r->y[i] = exact_from_bits(is_number ? x - rest + (rest + drawn > 0xffffu ? 0x10000u : 0) : x);
    }
}

/* ---- moving elements: bytes as they are ---- */

static void move(const reference *r, uint64_t to, uint32_t operand, uint64_t from) {
    const size_t bytes = hdi_dtype(r->out->dtype).block_bytes;
    memcpy((uint8_t *)r->out->data + to * bytes, (const uint8_t *)r->operands[operand].data + from * bytes, bytes);
}
/* The element at index[] of a tensor. */
static uint64_t element_at(hd_shape shape, const int64_t *index) {
    uint64_t at = 0;
    for (uint32_t i = 0; i < shape.rank; i++) at = at * (uint64_t)shape.dims[i] + (uint64_t)index[i];
    return at;
}
static void index_of(hd_shape shape, uint64_t at, int64_t *out_index) {
    for (uint32_t i = shape.rank; i-- > 0; at /= (uint64_t)shape.dims[i])
        out_index[i] = (int64_t)(at % (uint64_t)shape.dims[i]);
}

void reference_where(const reference *r) {
    const hd_shape shape = r->node->shape;
    const uint64_t count = hd_shape_elements(shape);
    for (uint64_t i = 0; i < count; i++) {
        const bool holds = ((const uint8_t *)r->operands[0].data)[broadcast(r->operands[0].shape, shape, i)] != 0;
        const uint32_t chosen = holds ? 1 : 2;
        move(r, i, chosen, broadcast(r->operands[chosen].shape, shape, i));
    }
}

/* permute, slice and windows take each element of the result from somewhere; reshape from its own place. */
void reference_rearrange(const reference *r) {
    const hd_shape shape = r->node->shape;
    const int64_t *ints = r->node->attrs.ints;
    const uint64_t count = hd_shape_elements(shape);
    for (uint64_t i = 0; i < count; i++) {
        int64_t to[HD_MAX_RANK], from[HD_MAX_RANK] = { 0 };
        index_of(shape, i, to);
        for (uint32_t axis = 0; axis < shape.rank; axis++) {
            if (r->node->op == HDI_OP_PERMUTE) from[ints[axis]] = to[axis];
            else from[axis] = to[axis] + (r->node->op == HDI_OP_SLICE ? ints[axis] : 0);
        }
        if (r->node->op == HDI_OP_WINDOWS) from[ints[0]] = to[ints[0]] * ints[2] + to[shape.rank - 1] * ints[3];
        move(r, i, 0, r->node->op == HDI_OP_RESHAPE ? i : element_at(r->operands[0].shape, from));
    }
}

/* concat and pad put each element of their operands somewhere. */
static void place(const reference *r, uint32_t operand, const int64_t *begin) {
    const hd_shape from = r->operands[operand].shape;
    const uint64_t count = hd_shape_elements(from);
    for (uint64_t i = 0; i < count; i++) {
        int64_t index[HD_MAX_RANK];
        index_of(from, i, index);
        for (uint32_t axis = 0; axis < from.rank; axis++) index[axis] += begin[axis];
        move(r, element_at(r->node->shape, index), operand, i);
    }
}
void reference_concat(const reference *r) {
    int64_t begin[HD_MAX_RANK] = { 0 };
    const int64_t axis = r->node->attrs.ints[0];
    for (uint32_t i = 0; i < r->node->operand_count; i++) {
        place(r, i, begin);
        begin[axis] += r->operands[i].shape.dims[axis];
    }
}
void reference_pad(const reference *r) {
    const float value = r->node->attrs.floats[0];
    const uint64_t count = hd_shape_elements(r->node->shape);
    for (uint64_t i = 0; i < count; i++) {
        const int32_t whole = exact_f32_to_i32(value);
        hdi_reference_tensor element = { r->out->dtype, r->out->shape,
                                         (uint8_t *)r->out->data + i * hdi_dtype(r->out->dtype).block_bytes };
        if (element.dtype == HD_I32) *(int32_t *)element.data = whole;
        else if (element.dtype == HD_U8) *(uint8_t *)element.data = (uint8_t)HDI_MIN(HDI_MAX(whole, 0), 255);
        else pack(&value, 1, &element);
    }
    place(r, 0, r->node->attrs.ints);
}

void reference_write_rows(const reference *r) {
    const bool paged = r->node->operand_count > 3;
    const hdi_rows_place place = hdi_write_rows_place(r->node->shape, r->operands[1].shape, r->operands[2].shape,
                                                      paged ? &r->operands[3].shape : NULL);
    const uint32_t size = hdi_dtype(r->out->dtype).block_bytes;
    memcpy(r->out->data, r->operands[0].data, hd_tensor_bytes(r->out->dtype, r->node->shape));
    for (uint64_t row = 0; row < place.B * place.T; row++) {
        const uint64_t batch = row / place.T;
        const int64_t at = ((const int32_t *)r->operands[2].data)[batch] + (int64_t)(row % place.T);
        if (at < 0 || at >= (int64_t)place.S) continue;
        uint64_t row_to = batch * place.S + (uint64_t)at;
        if (paged) {
            const int32_t page = ((const int32_t *)r->operands[3].data)[row_to / place.R];
            if (page < 0 || page >= (int64_t)place.N) continue;
            row_to = (uint64_t)page * place.R + (uint64_t)at % place.R;
        }
        if (hdi_dtype_is_quantised(r->out->dtype)) {
            uint8_t *to = (uint8_t *)r->out->data + hd_dtype_bytes(r->out->dtype, row_to * place.n);
            (void)hd_quantize(r->out->dtype, (const float *)r->operands[1].data + row * place.n, place.n, to);
            continue;
        }
        for (uint64_t i = 0; i < place.n; i++) {
            const uint64_t to = row_to * place.n + i;
            hdi_reference_tensor element = { r->out->dtype, r->out->shape, (uint8_t *)r->out->data + to * size };
            if (r->operands[1].dtype == r->out->dtype) move(r, to, 1, row * place.n + i);
            else pack((const float *)r->operands[1].data + row * place.n + i, 1, &element);
        }
    }
}

/* The last operand as it is. */
void reference_copy(const reference *r) {
    memcpy(r->out->data, r->operands[r->node->operand_count - 1].data, hd_tensor_bytes(r->out->dtype, r->out->shape));
}

void reference_take_along(const reference *r) {
    const hd_shape from = r->operands[0].shape, to = r->node->shape;
    const uint64_t n = (uint64_t)from.dims[from.rank - 1], k = (uint64_t)to.dims[to.rank - 1],
                   count = hd_shape_elements(to);
    memset(r->out->data, 0, hd_tensor_bytes(r->out->dtype, to));
    for (uint64_t i = 0; i < count; i++) {
        const int32_t at = ((const int32_t *)r->operands[1].data)[i];
        if (at >= 0 && (uint64_t)at < n) move(r, i, 0, i / k * n + (uint64_t)at);
    }
}

/* ---- the choice ---- */

void reference_none(const reference *r) {
    const char *name = hdi_op_get(r->node->op).name;
    hdi_fail(r->error, HD_STATUS_UNSUPPORTED, "the reference does not compute `%s`", name ? name : "?");
}

static void (*const rules[HDI_OP_COUNT])(const reference *r) = {
    reference_none,
#define HDI_OP(code, name, least, most, lack, kind, rows, work, rule, takes, builder, plain, ...) reference_##plain,
#include "program/op_table.inc"
#undef HDI_OP
};

/* Operations whose float results are written as they are, not rounded from f32. */
static bool moves_bytes(hdi_op op) {
    const hdi_op_kind kind = hdi_op_kind_of(op);
    return kind == HDI_KIND_VIEW || kind == HDI_KIND_COPY || kind == HDI_KIND_STATE || op == HDI_OP_WHERE ||
           op == HDI_OP_TAKE_ALONG;
}

hd_status hdi_reference(const hdi_node *node, const hdi_reference_tensor *operands, hdi_reference_tensor *out,
                        hd_error *error) {
    const hd_allocator *allocator = &hdi_default_allocator;
    hd_error failure = { 0 };
    reference r = { .node = node, .operands = operands, .out = out, .error = &failure };
    enum { Y = REFERENCE_OPERANDS, ROOM, ROOMS };
    float *rooms[ROOMS] = { NULL }; /* x, y, room */
    size_t room_bytes[ROOMS] = { 0 };
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < ROOMS && !moves_bytes(node->op); i++) {
        const hdi_reference_tensor *tensor = i == Y ? out : i == ROOM ? operands : &operands[i];
        if (i < Y && (i >= node->operand_count || !tensor->data)) continue;
        if (i < Y) r.data[i] = tensor->data;
        if (i < ROOM && (tensor->dtype == HD_I32 || tensor->dtype == HD_U8)) continue;
        room_bytes[i] = hd_shape_elements(tensor->shape) * sizeof(float);
        rooms[i] = hdi_alloc(allocator, room_bytes[i]);
        if (!rooms[i]) status = hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the reference");
        else if (i < Y) unpack(tensor, hd_shape_elements(tensor->shape), rooms[i]);
    }
    for (uint32_t i = 0; i < Y; i++) r.x[i] = rooms[i];
    r.y = rooms[Y];
    r.room = rooms[ROOM];
    if (!status) rules[(unsigned)node->op < HDI_OP_COUNT ? node->op : HDI_OP_NONE](&r);
    if (failure.status) status = hdi_fail(error, failure.status, "%s", failure.text);
    if (!status && r.y) pack(r.y, hd_shape_elements(out->shape), out);
    for (uint32_t i = 0; i < ROOMS; i++) hdi_free(allocator, rooms[i], room_bytes[i]);
    return status;
}
