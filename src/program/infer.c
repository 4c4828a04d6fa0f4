/* infer.c: for each operation, which types and shapes it takes and which it gives. One rule each, named in its row of
 * op_table.inc. A rule reads its operands, replaces relative attributes (negative axes and bounds, zeros for a default)
 * by absolute ones, and sets the result; or it fails with a sentence that names the types or shapes. Attributes may
 * come from a hostile text, so no number is trusted before it was compared. */
#include "program/attrs.h"
#include "program/types.h"
#include <math.h>
#include <stdio.h>

#define MAX_ROPE_DIMS 65536
#define TEXT(shape) hdi_shape_text(shape, (char[HDI_SHAPE_TEXT]){ 0 })

typedef struct inference {
    const hd_program *program;
    hdi_node   *node;
    const hdi_node *x[8]; /* the first operands; NULL where there is none */
    const char *name;
    hd_error   *error;
} inference;

static hd_status fail(const inference *in, hd_status status, const char *format, ...) HDI_PRINTF(3, 4);
static hd_status fail(const inference *in, hd_status status, const char *format, ...) {
    char text[sizeof in->error->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return hdi_fail(in->error, status, "%s: %s", in->name, text);
}

/* ---- what the rules share ---- */

static hd_status takes(const inference *in, uint32_t index, unsigned set) {
    hd_dtype dtype = in->x[index]->dtype;
    if (hdi_types_of(dtype) & set) return HD_OK;
    return fail(in, HD_STATUS_TYPE, "operand %u is %s, it must be %s", index + 1, hd_dtype_name(dtype),
                hdi_types_text(set, (char[HDI_TYPES_TEXT]){ 0 }));
}

static hd_status same_type(const inference *in, uint32_t a, uint32_t b) {
    if (in->x[a]->dtype == in->x[b]->dtype) return HD_OK;
    return fail(in, HD_STATUS_TYPE, "operands %u and %u are %s and %s: cast one of them", a + 1, b + 1,
                hd_dtype_name(in->x[a]->dtype), hd_dtype_name(in->x[b]->dtype));
}

static hd_status has_shape(const inference *in, uint32_t index, const char *what, hd_shape shape) {
    if (hdi_shape_equal(in->x[index]->shape, shape)) return HD_OK;
    return fail(in, HD_STATUS_SHAPE, "%s is %s, it must be %s to go with %s", what, TEXT(in->x[index]->shape),
                TEXT(shape), TEXT(in->x[0]->shape));
}

static hd_status has_rank(const inference *in, uint32_t index, uint32_t least, uint32_t most) {
    hd_shape shape = in->x[index]->shape;
    if (shape.rank >= least && shape.rank <= most) return HD_OK;
    if (most == HD_MAX_RANK)
        return fail(in, HD_STATUS_SHAPE, "operand %u is %s, it needs at least %u axes", index + 1, TEXT(shape), least);
    if (most > least)
        return fail(in, HD_STATUS_SHAPE, "operand %u is %s, it needs %u to %u axes", index + 1, TEXT(shape), least,
                    most);
    return fail(in, HD_STATUS_SHAPE, "operand %u is %s, the number of its axes must be %u", index + 1, TEXT(shape),
                least);
}

static hd_status give(inference *in, hd_dtype dtype, hd_shape shape) {
    in->node->dtype = dtype;
    in->node->shape = shape;
    return HD_OK;
}

static hd_status same_as_x(inference *in) { return give(in, in->x[0]->dtype, in->x[0]->shape); }

/* Widens *shape to hold `other` too, as NumPy broadcasts. */
static bool broadcast(hd_shape *shape, hd_shape other) {
    hd_shape wide = { HDI_MAX(shape->rank, other.rank), { 0 } };
    for (uint32_t i = 0; i < wide.rank; i++) { /* from the last axis */
        int64_t a = i < shape->rank ? shape->dims[shape->rank - 1 - i] : 1;
        int64_t b = i < other.rank ? other.dims[other.rank - 1 - i] : 1;
        if (a != b && a != 1 && b != 1) return false;
        wide.dims[wide.rank - 1 - i] = a == 1 ? b : a;
    }
    *shape = wide;
    return true;
}

static hd_status resolve_axis(inference *in) {
    int64_t *axis = &in->node->attrs.ints[0], rank = in->x[0]->shape.rank;
    if (rank == 0) return fail(in, HD_STATUS_SHAPE, "operand 1 has no axis, its shape is []");
    if (*axis < -rank || *axis >= rank)
        return fail(in, HD_STATUS_INVALID_ARGUMENT, "axis %lld is outside of %s", (long long)*axis,
                    TEXT(in->x[0]->shape));
    if (*axis < 0) *axis += rank;
    return HD_OK;
}

static hd_status list_fits(const inference *in, const char *what) {
    if (in->node->attrs.list_count == in->x[0]->shape.rank) return HD_OK;
    return fail(in, HD_STATUS_INVALID_ARGUMENT, "%u %s given for %s, which has %u axes", in->node->attrs.list_count,
                what, TEXT(in->x[0]->shape), in->x[0]->shape.rank);
}

/* ---- element by element ---- */

static hd_status given(inference *in) {
    hdi_node *node = in->node;
    if (hdi_types_of(node->dtype) == 0) return fail(in, HD_STATUS_TYPE, "%d is no data type", (int)node->dtype);
    if (node->op == HDI_OP_STATE && !(hdi_types_of(node->dtype) & ANY))
        return fail(in, HD_STATUS_TYPE, "a state cannot be %s; cast to i32, and keep that", hd_dtype_name(node->dtype));
    if (node->op == HDI_OP_INPUT || !hdi_dtype_is_quantised(node->dtype)) return HD_OK;
    if (node->op != HDI_OP_STATE)
        return fail(in, HD_STATUS_TYPE, "a result cannot be %s, only an input can", hd_dtype_name(node->dtype));
    if (hdi_dtype_is_rounded_to(node->dtype)) return HD_OK;
    return fail(in, HD_STATUS_TYPE, "a state cannot be %s; of the quantised types it can be q8_0 or q4_0",
                hd_dtype_name(node->dtype));
}

static hd_status give_broadcast(inference *in, hd_dtype dtype) {
    hd_shape shape = in->x[0]->shape;
    if (broadcast(&shape, in->x[1]->shape)) return give(in, dtype, shape);
    return fail(in, HD_STATUS_SHAPE, "shapes do not broadcast: %s and %s", TEXT(in->x[0]->shape),
                TEXT(in->x[1]->shape));
}

static hd_status binary(inference *in) {
    const hd_status status = same_type(in, 0, 1);
    return status ? status : give_broadcast(in, in->x[0]->dtype);
}

static hd_status compare(inference *in) {
    hd_status status = binary(in);
    in->node->dtype = HD_U8;
    return status;
}

static hd_status clip(inference *in) {
    const float *bounds = in->node->attrs.floats;
    if (bounds[0] <= bounds[1]) return same_as_x(in);
    return fail(in, HD_STATUS_INVALID_ARGUMENT, "low %g is not at or below high %g", (double)bounds[0],
                (double)bounds[1]);
}

static hd_status where(inference *in) {
    hd_shape shape = in->x[0]->shape;
    hd_status status = takes(in, 1, EVERY);
    if (!status) status = same_type(in, 1, 2);
    if (status) return status;
    if (!broadcast(&shape, in->x[1]->shape) || !broadcast(&shape, in->x[2]->shape))
        return fail(in, HD_STATUS_SHAPE, "shapes do not broadcast: %s, %s and %s", TEXT(in->x[0]->shape),
                    TEXT(in->x[1]->shape), TEXT(in->x[2]->shape));
    return give(in, in->x[1]->dtype, shape);
}

static hd_status cast(inference *in) {
    hd_status status = given(in);
    if (status) return status;
    if (hdi_dtype_is_quantised(in->x[0]->dtype) && in->node->dtype != HD_F32)
        return fail(in, HD_STATUS_TYPE, "%s can be cast to f32 only, not to %s", hd_dtype_name(in->x[0]->dtype),
                    hd_dtype_name(in->node->dtype));
    return give(in, in->node->dtype, in->x[0]->shape);
}

/* ---- form ---- */

static hd_status permute(inference *in) {
    hd_shape from = in->x[0]->shape, to = { from.rank, { 0 } };
    const int64_t *axes = in->node->attrs.ints;
    unsigned seen = 0;
    hd_status status = list_fits(in, "axes");
    if (status) return status;
    for (uint32_t i = 0; i < from.rank; i++) {
        if (axes[i] < 0 || axes[i] >= from.rank)
            return fail(in, HD_STATUS_INVALID_ARGUMENT, "axis %lld is outside of %s", (long long)axes[i], TEXT(from));
        if (seen >> axes[i] & 1)
            return fail(in, HD_STATUS_INVALID_ARGUMENT, "axis %lld is named twice for %s", (long long)axes[i],
                        TEXT(from));
        seen |= 1u << axes[i];
        to.dims[i] = from.dims[axes[i]];
    }
    return give(in, in->x[0]->dtype, to);
}

static hd_status reshape(inference *in) {
    uint64_t from = hd_shape_elements(in->x[0]->shape), to = hd_shape_elements(in->node->shape);
    if (from == to || to == 0) return give(in, in->x[0]->dtype, in->node->shape); /* 0: the check of sizes says why */
    return fail(in, HD_STATUS_SHAPE, "%s has %llu elements, %s has %llu", TEXT(in->x[0]->shape),
                (unsigned long long)from, TEXT(in->node->shape), (unsigned long long)to);
}

static hd_status concat(inference *in) {
    hd_shape shape = in->x[0]->shape;
    hd_status status = resolve_axis(in);
    if (status) return status;
    uint32_t axis = (uint32_t)in->node->attrs.ints[0];
    for (uint32_t i = 1; i < in->node->operand_count; i++) {
        const hdi_node *other = hdi_program_node(in->program, in->node->operands[i]);
        if (other->dtype != in->x[0]->dtype)
            return fail(in, HD_STATUS_TYPE, "operands 1 and %u are %s and %s: cast one of them", i + 1,
                        hd_dtype_name(in->x[0]->dtype), hd_dtype_name(other->dtype));
        hd_shape fitting = other->shape;
        if (axis < fitting.rank) fitting.dims[axis] = in->x[0]->shape.dims[axis];
        if (!hdi_shape_equal(fitting, in->x[0]->shape))
            return fail(in, HD_STATUS_SHAPE, "operand %u is %s, which differs from %s not only along axis %u", i + 1,
                        TEXT(other->shape), TEXT(in->x[0]->shape), axis);
        shape.dims[axis] += other->shape.dims[axis];
    }
    return give(in, in->x[0]->dtype, shape);
}

static hd_status slice(inference *in) {
    hd_shape from = in->x[0]->shape, to = from;
    hd_status status = list_fits(in, "bounds");
    if (status) return status;
    for (uint32_t i = 0; i < from.rank; i++) {
        int64_t *begin = &in->node->attrs.ints[i], *end = begin + HD_MAX_RANK, length = from.dims[i];
        int64_t first = *begin < 0 ? *begin + length : *begin, past = *end < 0 ? *end + length : *end;
        if (first < 0 || past > length || first > past)
            return fail(in, HD_STATUS_INVALID_ARGUMENT, "%lld to %lld along axis %u is outside of %s",
                        (long long)*begin, (long long)*end, i, TEXT(from));
        if (first == past)
            return fail(in, HD_STATUS_ZERO_SIZE, "%lld to %lld along axis %u of %s is empty", (long long)*begin,
                        (long long)*end, i, TEXT(from));
        *begin = first;
        *end = past;
        to.dims[i] = past - first;
    }
    return give(in, in->x[0]->dtype, to);
}

/* A stride and a dilation of 0 are 1. */
static hd_status windows(inference *in) {
    int64_t *size = &in->node->attrs.ints[1], *stride = &in->node->attrs.ints[2], *dilation = &in->node->attrs.ints[3];
    hd_shape shape = in->x[0]->shape;
    const hd_status status = resolve_axis(in);
    if (status) return status;
    int64_t *length = &shape.dims[in->node->attrs.ints[0]];
    if (*stride == 0) *stride = 1;
    if (*dilation == 0 || *size == 1) *dilation = 1;
    if (*size < 1 || *stride < 1 || *dilation < 1)
        return fail(in, HD_STATUS_INVALID_ARGUMENT, "size %lld, stride %lld and dilation %lld must be above 0",
                    (long long)*size, (long long)*stride, (long long)*dilation);
    if (*size - 1 > (*length - 1) / *dilation)
        return fail(in, HD_STATUS_SHAPE, "a window of %lld elements, %lld apart, is longer than axis %lld of %s",
                    (long long)*size, (long long)*dilation, (long long)in->node->attrs.ints[0], TEXT(shape));
    if (shape.rank == HD_MAX_RANK)
        return fail(in, HD_STATUS_LIMIT, "%s has no room for another axis: there are at most %d", TEXT(shape),
                    HD_MAX_RANK);
    *length = (*length - 1 - (*size - 1) * *dilation) / *stride + 1;
    shape.dims[shape.rank++] = *size;
    return give(in, in->x[0]->dtype, shape);
}

static hd_status pad(inference *in) {
    hd_shape shape = in->x[0]->shape;
    hd_status status = list_fits(in, "amounts");
    if (status) return status;
    for (uint32_t i = 0; i < shape.rank; i++) {
        int64_t before = in->node->attrs.ints[i], after = in->node->attrs.ints[HD_MAX_RANK + i];
        if (before < 0 || after < 0)
            return fail(in, HD_STATUS_INVALID_ARGUMENT,
                        "%lld before and %lld after along axis %u of %s: use slice to cut", (long long)before,
                        (long long)after, i, TEXT(shape));
        if ((uint64_t)HDI_MAX(before, after) > HDI_MAX_TENSOR_BYTES)
            return fail(in, HD_STATUS_LIMIT, "%lld before and %lld after along axis %u are more than a tensor can have",
                        (long long)before, (long long)after, i);
        shape.dims[i] += before + after;
    }
    return give(in, in->x[0]->dtype, shape);
}

/* ---- along an axis ---- */

static hd_status reduce(inference *in) {
    hd_shape shape = in->x[0]->shape;
    hd_status status = resolve_axis(in);
    if (status) return status;
    shape.dims[in->node->attrs.ints[0]] = 1;
    return give(in, in->x[0]->dtype, shape);
}

static hd_status argmax(inference *in) {
    hd_status status = reduce(in);
    if (status) return status;
    int64_t length = in->x[0]->shape.dims[in->node->attrs.ints[0]];
    if (length > INT32_MAX)
        return fail(in, HD_STATUS_LIMIT, "an axis of %lld elements has indices that i32 does not hold",
                    (long long)length);
    return give(in, HD_I32, in->node->shape);
}

static hd_status top_k(inference *in) {
    const int64_t k = in->node->attrs.ints[0];
    hd_shape shape = in->x[0]->shape;
    const hd_status status = has_rank(in, 0, 1, HD_MAX_RANK);
    if (status) return status;
    int64_t *length = &shape.dims[shape.rank - 1];
    if (*length > INT32_MAX)
        return fail(in, HD_STATUS_LIMIT, "an axis of %lld elements has indices that i32 does not hold",
                    (long long)*length);
    if (k < 1 || k > HD_MAX_TOP_K)
        return fail(in, HD_STATUS_INVALID_ARGUMENT, "k is %lld, it must be 1 to %d", (long long)k, HD_MAX_TOP_K);
    if (k > *length)
        return fail(in, HD_STATUS_INVALID_ARGUMENT, "k is %lld, but the last axis of %s has fewer elements",
                    (long long)k, TEXT(in->x[0]->shape));
    *length = k;
    return give(in, HD_I32, shape);
}

static hd_status hash(inference *in) {
    if (hd_tensor_bytes(in->x[0]->dtype, in->x[0]->shape) >= UINT32_MAX - 1024)
        return fail(in, HD_STATUS_LIMIT, "operand 1 is of 4 GiB or more: take a digest of each part");
    return give(in, HD_I32, HD_SHAPE(8));
}

static hd_status softmax(inference *in) {
    hd_status status = resolve_axis(in);
    return status ? status : same_as_x(in);
}

static hd_status cumsum(inference *in) {
    const int64_t flags = in->node->attrs.ints[1];
    if (flags < 0 || flags > (HD_CUMSUM_EXCLUSIVE | HD_CUMSUM_REVERSE))
        return fail(in, HD_STATUS_INVALID_ARGUMENT, "flags %lld are not of hd_cumsum_flags", (long long)flags);
    return softmax(in);
}

/* Operand 2 is like operand 1, or one factor for each place of the axis: it has length 1 behind it. */
static hd_status dot(inference *in) {
    hd_shape each = in->x[0]->shape;
    hd_status status = same_type(in, 0, 1);
    const int64_t axis = in->node->attrs.ints[0], first = axis < 0 ? axis + each.rank : axis;
    for (int64_t i = HDI_MAX(first, 0) + 1; i < each.rank; i++) each.dims[i] = 1;
    if (!status && !hdi_shape_equal(in->x[1]->shape, each))
        status = has_shape(in, 1, "operand 2", in->x[0]->shape);
    return status ? status : reduce(in);
}

static hd_status are_f32(inference *in, uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; i++)
        if (in->x[i] && in->x[i]->dtype != HD_F32)
            return fail(in, HD_STATUS_TYPE, "operand %u is %s, it must be f32", i + 1, hd_dtype_name(in->x[i]->dtype));
    return HD_OK;
}

static hd_status like_x_with_eps(inference *in) {
    const float eps = in->node->attrs.floats[0];
    if (eps >= 0 && !isinf(eps)) return same_as_x(in);
    return fail(in, HD_STATUS_INVALID_ARGUMENT, "eps %g is not zero or above", (double)eps);
}

static hd_status norm(inference *in) {
    hd_status status = has_rank(in, 0, 1, HD_MAX_RANK);
    if (status) return status;
    hd_shape row = { 1, { in->x[0]->shape.dims[in->x[0]->shape.rank - 1] } };
    for (uint32_t i = 1; i < 3; i++) {
        if (!in->x[i]) continue;
        status = same_type(in, 0, i);
        if (!status) status = has_shape(in, i, i == 1 ? "weight" : "bias", row);
        if (status) return status;
    }
    return like_x_with_eps(in);
}

/* Of x and dy, which are alike, and of a weight if there is one; all f32. */
static hd_status norm_gradient(inference *in) {
    const hd_shape x = in->x[0]->shape;
    hd_status status = are_f32(in, 0, 1);
    if (!status) status = are_f32(in, 2, 3);
    if (!status) status = takes(in, 1, FLOATS);
    if (!status) status = has_rank(in, 0, 1, HD_MAX_RANK);
    if (!status) status = has_shape(in, 1, "dy", x);
    if (!status && in->x[2]) status = has_shape(in, 2, "weight", HD_SHAPE(x.dims[x.rank - 1]));
    return status ? status : like_x_with_eps(in);
}

static hd_status norm_sums(inference *in) {
    const hd_status status = norm_gradient(in);
    const hd_shape x = in->x[0]->shape;
    return status ? status : give(in, HD_F32, HD_SHAPE(2, x.dims[x.rank - 1]));
}

/* ---- products, tables, states ---- */

static hd_status matmul(inference *in) {
    hd_shape a = in->x[0]->shape, b = in->x[1]->shape;
    int64_t flags = in->node->attrs.ints[0];
    hd_status status = takes(in, 1, FLOATS | QUANTISED);
    if (!status) status = has_rank(in, 0, 2, HD_MAX_RANK);
    if (!status) status = has_rank(in, 1, 2, HD_MAX_RANK);
    if (status) return status;
    if (flags < 0 || flags > (HD_TRANSPOSE_A | HD_TRANSPOSE_B | HD_RESULT_F32))
        return fail(in, HD_STATUS_INVALID_ARGUMENT, "flags %lld are not of hd_matmul_flags", (long long)flags);
    const int64_t *a_last = a.dims + a.rank - 2, *b_last = b.dims + b.rank - 2;
    bool swap_a = flags & HD_TRANSPOSE_A, swap_b = flags & HD_TRANSPOSE_B;
    int64_t rows = a_last[swap_a ? 1 : 0], columns = b_last[swap_b ? 0 : 1];
    if (a_last[swap_a ? 0 : 1] != b_last[swap_b ? 1 : 0])
        return fail(in, HD_STATUS_SHAPE, "inner lengths differ: %s%s x %s%s", TEXT(a), swap_a ? " transposed" : "",
                    TEXT(b), swap_b ? " transposed" : "");
    hd_shape batch = { a.rank - 2, { 0 } }, batch_b = { b.rank - 2, { 0 } };
    memcpy(batch.dims, a.dims, sizeof batch.dims);
    memcpy(batch_b.dims, b.dims, sizeof batch_b.dims);
    if (!broadcast(&batch, batch_b))
        return fail(in, HD_STATUS_SHAPE, "leading axes do not broadcast: %s x %s", TEXT(a), TEXT(b));
    batch.dims[batch.rank++] = rows;
    batch.dims[batch.rank++] = columns;
    return give(in, flags & HD_RESULT_F32 ? HD_F32 : in->x[0]->dtype, batch);
}

static hd_status experts(inference *in) {
    const hd_shape x = in->x[0]->shape, w = in->x[1]->shape, chosen = in->x[2]->shape;
    hd_status status = takes(in, 1, FLOATS | QUANTISED);
    if (!status) status = takes(in, 2, I32);
    if (!status) status = has_rank(in, 0, 2, 3);
    if (!status) status = has_rank(in, 1, 3, 3);
    if (!status) status = has_rank(in, 2, 2, 2);
    if (status) return status;
    if (x.dims[0] != chosen.dims[0] || (x.rank == 3 && x.dims[1] != chosen.dims[1]))
        return fail(in, HD_STATUS_SHAPE, "rows %s and the experts they chose, %s, do not go together", TEXT(x),
                    TEXT(chosen));
    if (x.dims[x.rank - 1] != w.dims[2])
        return fail(in, HD_STATUS_SHAPE, "inner lengths differ: %s and %s", TEXT(x), TEXT(w));
    return give(in, in->x[0]->dtype, HD_SHAPE(chosen.dims[0], chosen.dims[1], w.dims[1]));
}

static hd_status gather(inference *in) {
    hd_dtype table = in->x[0]->dtype;
    hd_shape shape = in->x[1]->shape;
    hd_status status = takes(in, 1, INDICES);
    if (!status) status = has_rank(in, 0, 2, 2);
    if (status) return status;
    if (shape.rank == HD_MAX_RANK)
        return fail(in, HD_STATUS_LIMIT, "indices %s leave no axis for the rows: at most %d axes", TEXT(shape),
                    HD_MAX_RANK - 1);
    shape.dims[shape.rank++] = in->x[0]->shape.dims[1];
    return give(in, hdi_dtype_is_quantised(table) ? HD_F32 : table, shape);
}

static hd_status take_along(inference *in) {
    hd_shape shape = in->x[0]->shape;
    hd_status status = takes(in, 1, INDICES);
    if (!status) status = has_rank(in, 0, 1, HD_MAX_RANK);
    if (!status) status = has_rank(in, 1, shape.rank, shape.rank);
    if (status) return status;
    shape.dims[shape.rank - 1] = in->x[1]->shape.dims[shape.rank - 1];
    status = has_shape(in, 1, "indices", shape);
    return status ? status : give(in, in->x[0]->dtype, shape);
}

static hd_status scatter(inference *in) {
    hd_status status = takes(in, 1, INDICES);
    if (!status) status = same_type(in, 0, 2);
    if (!status) status = has_rank(in, 0, 2, 2);
    if (!status) status = has_rank(in, 1, 1, 1);
    if (!status) status = has_shape(in, 2, "updates", HD_SHAPE(in->x[1]->shape.dims[0], in->x[0]->shape.dims[1]));
    return status ? status : same_as_x(in);
}

/* A pool of pages [N,R,...] and the table [P] or, batched, [B,P] that goes with it. */
static hd_status has_pages(const inference *in, uint32_t pool, uint32_t pages, int64_t batch) {
    const hd_shape shape = in->x[pool]->shape, table = in->x[pages]->shape;
    const hd_status status = takes(in, pages, I32);
    if (status) return status;
    if (shape.dims[1] < HDI_LEAST_PAGE_ROWS || (shape.dims[1] & (shape.dims[1] - 1)) != 0)
        return fail(in, HD_STATUS_SHAPE, "pages of %lld rows in %s: a page has a power of two of rows, at least %d",
                    (long long)shape.dims[1],
                    TEXT(shape), HDI_LEAST_PAGE_ROWS);
    if (table.rank != (batch > 0 ? 2 : 1) || (batch > 0 && table.dims[0] != batch))
        return batch > 0 ? fail(in, HD_STATUS_SHAPE, "pages is %s, it must be [%lld,P]", TEXT(table), (long long)batch)
                         : fail(in, HD_STATUS_SHAPE, "pages is %s, it must be [P]", TEXT(table));
    if (table.dims[batch > 0] > INT32_MAX / 2 / shape.dims[1])
        return fail(in, HD_STATUS_LIMIT, "%lld pages of %lld rows are more than a sequence can have",
                    (long long)table.dims[batch > 0], (long long)shape.dims[1]);
    return HD_OK;
}

/* Are the operands those of the batch form? */
static bool is_batched(hd_shape state, hd_shape rows, hd_shape position, const hd_shape *pages) {
    if (pages) return pages->rank == 2;
    if (state.rank < 2 || state.rank != rows.rank || position.rank != 1 || state.dims[0] != rows.dims[0]) return false;
    bool rests_equal = true;
    for (uint32_t i = 1; i < state.rank; i++) rests_equal &= state.dims[i] == rows.dims[i];
    return position.dims[0] > 1 || !rests_equal;
}

hdi_rows_place hdi_write_rows_place(hd_shape state, hd_shape rows, hd_shape position, const hd_shape *pages) {
    const bool batched = is_batched(state, rows, position, pages);
    if (pages) {
        hdi_rows_place paged = { batched ? (uint64_t)rows.dims[0] : 1, (uint64_t)rows.dims[batched], 0, 1,
                                 (uint64_t)state.dims[0], (uint64_t)state.dims[1] };
        paged.S = (uint64_t)pages->dims[pages->rank - 1] * paged.R;
        for (uint32_t i = 2; i < state.rank; i++) paged.n *= (uint64_t)state.dims[i];
        return paged;
    }
    hdi_rows_place place = {
        batched ? (uint64_t)state.dims[0] : 1, (uint64_t)rows.dims[batched], (uint64_t)state.dims[batched], 1, 0, 0
    };
    for (uint32_t i = batched + 1u; i < state.rank; i++) place.n *= (uint64_t)state.dims[i];
    return place;
}

/* The shapes of write_rows with pages: rows as those of the pool's pages. */
static hd_status write_pages(inference *in) {
    const hd_shape state = in->x[0]->shape, rows = in->x[1]->shape;
    const bool batched = in->x[3]->shape.rank == 2;
    hd_status status = has_rank(in, 0, 2, HD_MAX_RANK);
    if (!status) status = has_rank(in, 1, 1u + batched, HD_MAX_RANK);
    if (!status) status = has_pages(in, 0, 3, batched ? rows.dims[0] : 0);
    if (status) return status;
    hd_shape fitting = { state.rank - 1 + batched, { 0 } };
    for (uint32_t i = 0; i < fitting.rank && i < HD_MAX_RANK; i++)
        fitting.dims[i] = i <= batched ? rows.dims[i] : state.dims[i + 1 - batched];
    status = has_shape(in, 1, "rows", fitting);
    if (!status) status = has_shape(in, 2, "position", HD_SHAPE(batched ? rows.dims[0] : 1));
    return status ? status : same_as_x(in);
}

/* Operand 1 is a state that may be written, and nothing else that is read is the same value. */
static hd_status writes_state(const inference *in) {
    const hdi_node *state = in->x[0];
    const hd_value *operands = in->node->operands;
    if (!hdi_op_shows_state(state->op))
        return fail(in, HD_STATUS_INVALID_ARGUMENT, "operand 1 is the result of %s, it must be a state",
                    hdi_op_get(state->op).name);
    if (state->is_output)
        return fail(in, HD_STATUS_WRONG_STATE, "value %u is an output and may not be overwritten: copy it first",
                    operands[0]);
    for (uint32_t i = 1; i < in->node->operand_count; i++)
        if (operands[i] == operands[0])
            return fail(in, HD_STATUS_INVALID_ARGUMENT, "value %u would be read while it is overwritten: copy it first",
                        operands[0]);
    return HD_OK;
}

static hd_status write_rows(inference *in) {
    const hdi_node *state = in->x[0];
    const bool quantised = hdi_dtype_is_quantised(state->dtype);
    const bool rounds =
        in->x[1]->dtype == HD_F32 && (quantised || state->dtype == HD_F16 || state->dtype == HD_BF16);
    hd_status status = takes(in, 2, I32);
    if (!status && quantised && !rounds)
        status = fail(in, HD_STATUS_TYPE, "rows of %s for a state of %s: they must be f32",
                      hd_dtype_name(in->x[1]->dtype), hd_dtype_name(state->dtype));
    if (!status && !rounds) status = same_type(in, 0, 1);
    if (!status) status = writes_state(in);
    if (status) return status;
    if (in->x[3]) return write_pages(in);
    status = has_rank(in, 0, 1, HD_MAX_RANK);
    if (status) return status;
    hd_shape rows = in->x[1]->shape, fitting = state->shape;
    const bool batched = is_batched(state->shape, rows, in->x[2]->shape, NULL);
    if (rows.rank > batched) fitting.dims[batched] = rows.dims[batched];
    status = has_shape(in, 1, "rows", fitting);
    if (!status) status = has_shape(in, 2, "position", HD_SHAPE(batched ? state->shape.dims[0] : 1));
    return status ? status : same_as_x(in);
}

static hd_status assign(inference *in) {
    hd_status status = same_type(in, 0, 1);
    if (!status) status = writes_state(in);
    if (!status) status = has_shape(in, 1, "the value", in->x[0]->shape);
    return status ? status : same_as_x(in);
}

/* ---- attention and its company ---- */

static hd_status rope_attrs(const inference *in, int64_t length) {
    hdi_attrs *a = &in->node->attrs;
    float *theta = &a->floats[0], *frequency_scale = &a->floats[1], *magnitude = &a->floats[2];
    if (*theta == 0) *theta = 10000;
    if (*frequency_scale == 0) *frequency_scale = 1;
    if (*magnitude == 0) *magnitude = 1;
    if (a->ints[0] == 0) a->ints[0] = length;
    if (!(*theta > 0) || !isfinite(*theta) || !isfinite(*frequency_scale) || !isfinite(*magnitude))
        return fail(in, HD_STATUS_INVALID_ARGUMENT,
                    "theta %g, frequency_scale %g and magnitude %g must be numbers, theta above 0", (double)*theta,
                    (double)*frequency_scale, (double)*magnitude);
    if (a->ints[0] < 0 || a->ints[0] > length || a->ints[0] % 2 != 0)
        return fail(in, HD_STATUS_SHAPE, "%lld dims cannot turn in pairs: they must be even and at most D, %s",
                    (long long)a->ints[0], TEXT(in->x[0]->shape));
    if (a->ints[0] > MAX_ROPE_DIMS)
        return fail(in, HD_STATUS_LIMIT, "%lld dims are more than %d", (long long)a->ints[0], MAX_ROPE_DIMS);
    if (a->ints[1] != HD_ROPE_HALVES && a->ints[1] != HD_ROPE_NEIGHBOURS)
        return fail(in, HD_STATUS_INVALID_ARGUMENT, "pairing %lld is not of hd_rope_pairing", (long long)a->ints[1]);
    if (a->factor_count != 0 && a->factor_count != a->ints[0] / 2)
        return fail(in, HD_STATUS_SHAPE, "%u factors given for %lld dims, which need half as many", a->factor_count,
                    (long long)a->ints[0]);
    for (uint32_t i = 0; i < a->factor_count; i++)
        if (!isfinite(a->factors[i]) || a->factors[i] == 0)
            return fail(in, HD_STATUS_INVALID_ARGUMENT, "factor %u is %g and cannot be divided by", i,
                        (double)a->factors[i]);
    return HD_OK;
}

static hd_status rope(inference *in) {
    hd_shape x = in->x[0]->shape;
    hd_status status = takes(in, 1, I32);
    if (!status) status = has_rank(in, 0, 3, HD_MAX_RANK);
    if (!status) status = has_shape(in, 1, "positions", HD_SHAPE(x.dims[x.rank - 3]));
    if (!status) status = rope_attrs(in, x.dims[x.rank - 1]);
    return status ? status : same_as_x(in);
}

/* Do q [T,Hq,D], k [S,Hkv,D] and the operand of starts go together, a sequence having `pages` times as many keys? 0: it
 * has no pages. */
static hd_status attention_heads(const inference *in, int64_t pages, uint32_t starts) {
    const hd_shape q = in->x[0]->shape;
    hd_shape k = in->x[1]->shape;
    const bool batched = q.rank == 4, paged = pages > 0;
    if (!hdi_shape_equal(k, in->x[2]->shape))
        return fail(in, HD_STATUS_SHAPE, "k and v differ: %s and %s", TEXT(k), TEXT(in->x[2]->shape));
    if (paged) k.dims[1] *= pages;
    const int64_t *q_dims = q.dims + batched, *k_dims = k.dims + (batched || paged);
    if (paged ? q_dims[2] != k_dims[2]
              : q.rank != k.rank || (batched && q.dims[0] != k.dims[0]) || q_dims[2] != k_dims[2])
        return fail(in, HD_STATUS_SHAPE, "q [T,Hq,D] and k [S,Hkv,D] do not go together: %s and %s", TEXT(q), TEXT(k));
    if (q_dims[1] % k_dims[1] != 0)
        return fail(in, HD_STATUS_SHAPE, "%lld query heads are no multiple of %lld key heads: %s and %s",
                    (long long)q_dims[1], (long long)k_dims[1], TEXT(q), TEXT(k));
    if (q_dims[0] > k_dims[0])
        return fail(in, HD_STATUS_SHAPE, "%lld queries have only %lld keys to see: %s and %s", (long long)q_dims[0],
                    (long long)k_dims[0], TEXT(q), TEXT(k));
    if (!in->x[starts]) return HD_OK;
    if (paged) return fail(in, HD_STATUS_INVALID_ARGUMENT, "starts do not go with pages");
    return has_shape(in, starts, "starts", batched ? HD_SHAPE(q.dims[0], q_dims[0]) : HD_SHAPE(q_dims[0]));
}

/* The mask broadcasts to the scores [B,Hq,T,S], where a sequence has `pages` times as many keys as k has rows. */
static hd_status attention_mask(const inference *in, int64_t pages) {
    const hd_shape q = in->x[0]->shape, k = in->x[1]->shape, mask = in->x[6]->shape;
    const bool batched = q.rank == 4;
    const hd_shape scores = HD_SHAPE(batched ? q.dims[0] : 1, q.dims[batched + 1], q.dims[batched],
                                     k.dims[k.rank - 3] * pages);
    bool fits = mask.rank <= scores.rank;
    for (uint32_t i = 1; i <= mask.rank && fits; i++) {
        const int64_t length = mask.dims[mask.rank - i];
        fits = length == 1 || length == scores.dims[scores.rank - i];
    }
    if (fits) return HD_OK;
    return fail(in, HD_STATUS_SHAPE, "the mask is %s, it must broadcast to the scores %s", TEXT(mask), TEXT(scores));
}

/* Shapes of attention's operands. */
static hd_status attention_shapes(const inference *in) {
    const hd_shape q = in->x[0]->shape;
    const bool batched = q.rank == 4, paged = in->x[4] != NULL;
    hd_status status = has_rank(in, 0, 3, 4);
    if (!status && paged) status = has_rank(in, 1, 4, 4);
    if (!status && paged) status = has_pages(in, 1, 4, batched ? q.dims[0] : 0);
    const hd_shape pages = paged ? in->x[4]->shape : (hd_shape){ 0 };
    if (!status) status = attention_heads(in, paged ? pages.dims[pages.rank - 1] : 0, 7);
    if (status) return status;
    status = in->x[3] ? has_shape(in, 3, "past", batched ? HD_SHAPE(q.dims[0]) : HD_SHAPE(1)) : HD_OK;
    if (!status && in->x[5]) status = has_shape(in, 5, "sinks", HD_SHAPE(q.dims[batched + 1]));
    if (!status && in->x[6]) status = attention_mask(in, paged ? pages.dims[pages.rank - 1] : 1);
    return status;
}

static hd_status attention_attrs(const inference *in, int64_t D) {
    hdi_attrs *a = &in->node->attrs;
    if (a->floats[0] == 0) a->floats[0] = (float)(1.0 / sqrt((double)D));
    if (!isfinite(a->floats[0]))
        return fail(in, HD_STATUS_INVALID_ARGUMENT, "scale %g is no number", (double)a->floats[0]);
    if (!isfinite(a->floats[1]) || (a->floats[1] != 0 && a->floats[1] < 1e-3f))
        return fail(in, HD_STATUS_INVALID_ARGUMENT, "cap %g is neither 0, for none, nor a number from 0.001 on",
                    (double)a->floats[1]);
    if (a->ints[0] != 0 && a->ints[0] != 1)
        return fail(in, HD_STATUS_INVALID_ARGUMENT, "not_causal is %lld, it must be 0 or 1", (long long)a->ints[0]);
    if (a->ints[1] < 0 || a->ints[1] > UINT32_MAX)
        return fail(in, HD_STATUS_INVALID_ARGUMENT, "a window of %lld keys; 0 is none", (long long)a->ints[1]);
    if (a->ints[2] != 0 && a->ints[2] != 1)
        return fail(in, HD_STATUS_INVALID_ARGUMENT, "bf16 is %lld, it must be 0 or 1", (long long)a->ints[2]);
    return HD_OK;
}

static hd_status attention(inference *in) {
    const hd_dtype cached = in->x[1]->dtype;
    hd_status status = HD_OK;
    if (!hdi_dtype_is_quantised(cached)) status = takes(in, 1, FLOATS);
    else if (!hdi_dtype_is_rounded_to(cached))
        status = fail(in, HD_STATUS_TYPE, "operand 2 is %s; of the quantised types it can be q8_0 or q4_0",
                      hd_dtype_name(cached));
    if (!status) status = same_type(in, 1, 2);
    if (!status && in->x[3]) status = takes(in, 3, I32);
    if (!status) status = are_f32(in, 5, 7);
    if (!status && in->x[7]) status = takes(in, 7, I32);
    if (!status) status = attention_shapes(in);
    const hd_shape q = in->x[0]->shape;
    if (!status) status = attention_attrs(in, q.dims[q.rank - 1]);
    return status ? status : same_as_x(in);
}

static hd_status attention_gradient(inference *in) {
    const hd_shape q = in->x[0]->shape;
    hd_status status = HD_OK;
    for (uint32_t i = 1; i < 5 && !status; i++) status = same_type(in, 0, i);
    if (!status && in->x[0]->dtype == HD_F16)
        status = fail(in, HD_STATUS_TYPE, "operand 1 is f16, it must be f32 or bf16");
    if (!status && in->x[5]) status = takes(in, 5, I32);
    if (!status) status = has_rank(in, 0, 3, 4);
    if (!status) status = attention_heads(in, 0, 5);
    if (!status) status = has_shape(in, 3, "y", q);
    if (!status) status = has_shape(in, 4, "dy", q);
    if (!status) status = attention_attrs(in, q.dims[q.rank - 1]);
    if (status) return status;
    const uint64_t elements = hd_shape_elements(q) + 2 * hd_shape_elements(in->x[1]->shape);
    return give(in, in->x[0]->dtype, HD_SHAPE((int64_t)elements));
}

static hd_status cross_entropy(inference *in) {
    hd_status status = takes(in, 1, I32);
    if (!status) status = has_rank(in, 0, 1, HD_MAX_RANK);
    if (status) return status;
    hd_shape rows = in->x[0]->shape;
    rows.dims[--rows.rank] = 0;
    status = has_shape(in, 1, "targets", rows);
    return status ? status : give(in, HD_F32, rows);
}

static hd_status cross_entropy_gradient(inference *in) {
    hd_status status = cross_entropy(in);
    if (!status) status = are_f32(in, 2, 4);
    if (!status) status = has_shape(in, 2, "dy", in->node->shape);
    if (!status && in->x[3]) status = has_shape(in, 3, "losses", in->node->shape);
    return status ? status : give(in, HD_F32, in->x[0]->shape);
}

/* One of several buffers that a kernel wrote, as the type that it is of. */
static hd_status part(inference *in) {
    const int64_t offset = in->node->attrs.ints[0];
    const uint64_t bytes = hd_tensor_bytes(in->node->dtype, in->node->shape),
                   whole = hd_tensor_bytes(in->x[0]->dtype, in->x[0]->shape);
    if (in->x[0]->op != HDI_OP_DISPATCH || hdi_dtype_is_quantised(in->node->dtype))
        return fail(in, HD_STATUS_TYPE, "it is a part of what a dispatch gave, and not of blocks");
    if (offset < 0 || offset % HDI_PART_ALIGN || (uint64_t)offset > whole || bytes > whole - (uint64_t)offset)
        return fail(in, HD_STATUS_SHAPE, "%llu bytes at %lld are no part of %llu", (unsigned long long)bytes,
                    (long long)offset, (unsigned long long)whole);
    return given(in);
}

static hd_status round_random(inference *in) {
    hd_status status = are_f32(in, 0, 1);
    if (!status) status = takes(in, 1, I32);
    return status ? status : give_broadcast(in, HD_BF16);
}

static hd_status draw(inference *in) {
    const int64_t stream = in->node->attrs.ints[0];
    if (stream < 0 || stream > UINT32_MAX)
        return fail(in, HD_STATUS_INVALID_ARGUMENT, "stream %lld is outside of 0..2^32 - 1", (long long)stream);
    const hd_status status = has_shape(in, 0, "key", HD_SHAPE(4));
    return status ? status : give(in, HD_I32, in->node->shape);
}

/* What a user's kernel gives is named by its node. */
static hd_status dispatch(inference *in) {
    const hd_status status = hdi_dispatch_check(in->program, in->node, in->error);
    return status ? status : given(in);
}

/* ---- the table ---- */

static const struct {
    hd_status (*infer)(inference *in);
    unsigned takes; /* types of operand 1 */
} rules[HDI_OP_COUNT] = {
#define HDI_OP(code, name, least, most, lack, kind, rows, work, rule, takes, ...) [HDI_OP_##code] = { rule, takes },
#include "program/op_table.inc"
#undef HDI_OP
};

/* Every result is a tensor that can exist: lengths of at least 1, whole blocks, and a size within the limit. */
static hd_status check_size(const inference *in) {
    hd_shape shape = in->node->shape;
    hdi_dtype_facts facts = hdi_dtype(in->node->dtype);
    if (shape.rank > HD_MAX_RANK)
        return fail(in, HD_STATUS_LIMIT, "%u axes are more than %d", shape.rank, HD_MAX_RANK);
    for (uint32_t i = 0; i < shape.rank; i++)
        if (shape.dims[i] < 1)
            return fail(in, shape.dims[i] == 0 ? HD_STATUS_ZERO_SIZE : HD_STATUS_SHAPE,
                        "the length of axis %u is below 1: %s", i, TEXT(shape));
    if (facts.block_elements > 1 && (shape.rank == 0 || shape.dims[shape.rank - 1] % facts.block_elements != 0))
        return fail(in, HD_STATUS_SHAPE, "the last axis of %s is no multiple of %u, the block of %s", TEXT(shape),
                    facts.block_elements, facts.name);
    uint64_t bytes = hd_tensor_bytes(in->node->dtype, shape);
    if (bytes == 0 || bytes > HDI_MAX_TENSOR_BYTES)
        return fail(in, HD_STATUS_LIMIT, "a tensor %s of %s has more than 2^40 bytes", TEXT(shape), facts.name);
    return HD_OK;
}

hd_status hdi_program_infer(const hd_program *program, hdi_node *node, hd_error *error) {
    inference in = { program, node, { NULL }, hdi_op_get(node->op).name, error };
    if (!in.name) return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "%d is no operation", (int)node->op);
    if (error && error->status == HD_OK) snprintf(error->op, sizeof error->op, "%s", in.name);
    for (uint32_t i = 0; i < node->operand_count && i < HDI_COUNT(in.x); i++)
        in.x[i] = hdi_program_node(program, node->operands[i]);
    hd_status status = HD_OK;
    if (rules[node->op].takes) status = takes(&in, 0, rules[node->op].takes);
    if (!status) status = rules[node->op].infer(&in);
    return status ? status : check_size(&in);
}
