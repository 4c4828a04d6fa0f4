/* grad_tables.c: rules of operations that read and write by index. What an index outside leaves out has no gradient. */
#include "program/grad.h"

static hd_shape operand_shape(const hdi_grad *g, uint32_t index) { return hdi_grad_shape(g, g->node.operands[index]); }
static hd_value zeros(hdi_grad *g, hd_dtype dtype, hd_shape shape) { return hdi_grad_fill(g, dtype, shape, 0); }
static hd_value number(hdi_grad *g, hd_dtype dtype, float value) {
    return hdi_grad_fill(g, dtype, (hd_shape){ 0 }, value);
}

/* As i32, whatever they are: those of several operations are joined, and beyond i32 there are no rows. */
static hd_value indices_of(hdi_grad *g) {
    const hd_value indices = hdi_grad_x(g, 1);
    return hdi_grad_type(g, indices) == HD_I32 ? indices : hd_cast(g->program, indices, HD_I32);
}

void hdi_grad_gather(hdi_grad *g) {
    const hd_value indices = indices_of(g);
    const int64_t count = (int64_t)hd_shape_elements(hdi_grad_shape(g, indices));
    hdi_grad_give_rows(g, 0, hd_reshape(g->program, indices, HD_SHAPE(count)),
                       hd_reshape(g->program, g->dy, HD_SHAPE(count, operand_shape(g, 0).dims[1])));
}

/* begin + index where 0 <= index < length, else -1. */
static hd_value inside(hdi_grad *g, hd_value index, hd_value length, hd_value begin) {
    hd_program *p = g->program;
    const hd_value outside = hdi_grad_whole(g, -1);
    const hd_value below = hd_where(p, hd_less(p, index, length), hd_add(p, begin, index), outside);
    return hd_where(p, hd_less(p, index, hdi_grad_whole(g, 0)), outside, below);
}

/* As gather's, of all rows as one table of single elements. */
void hdi_grad_take_along(hdi_grad *g) {
    hd_program *p = g->program;
    const hd_shape from = operand_shape(g, 0), to = g->node.shape;
    const int64_t n = from.dims[from.rank - 1], k = to.dims[to.rank - 1], count = (int64_t)hd_shape_elements(to),
                  rows = count / k;
    if (rows > INT32_MAX / n) {
        hdi_grad_refuse(g, HD_STATUS_LIMIT, "its gradient has more than 2^31 elements: take from fewer rows at once");
        return;
    }
    const hd_value begin = hd_mul(p, hdi_grad_count(g, 2, 0, rows), hdi_grad_whole(g, n));
    const hd_value at = inside(g, hd_reshape(p, indices_of(g), HD_SHAPE(rows, k)), hdi_grad_whole(g, n), begin);
    const hd_value sums = hd_scatter_add(p, zeros(g, hdi_grad_type(g, g->dy), HD_SHAPE(rows * n, 1)),
                                         hd_reshape(p, at, HD_SHAPE(count)), hd_reshape(p, g->dy, HD_SHAPE(count, 1)));
    hdi_grad_give(g, 0, hd_reshape(p, sums, from));
}

void hdi_grad_scatter_add(hdi_grad *g) {
    hdi_grad_give(g, 0, g->dy);
    if (hdi_grad_wants(g, 2)) hdi_grad_give(g, 2, hd_gather(g->program, g->dy, hdi_grad_x(g, 1)));
}

/* The product of the others, as prod's rule: u is the updates with 1 for 0, P base times the u of a row. */
void hdi_grad_scatter_mul(hdi_grad *g) {
    hd_program *p = g->program;
    const hd_shape table = g->node.shape;
    const hd_value indices = hdi_grad_x(g, 1), updates = hdi_grad_wide(g, hdi_grad_x(g, 2)),
                   dy = hdi_grad_wide(g, g->dy);
    if (hdi_grad_wants(g, 0))
        hdi_grad_give(g, 0, hd_mul(p, dy, hd_scatter_mul(p, hdi_grad_fill(g, HD_F32, table, 1), indices, updates)));
    if (!hdi_grad_wants(g, 2)) return;
    const hd_value none = number(g, HD_F32, 0), is_zero = hd_equal(p, updates, none), one = hd_cast(p, is_zero, HD_F32);
    const hd_value u = hd_where(p, is_zero, number(g, HD_F32, 1), updates);
    const hd_value zero_count = hd_scatter_add(p, zeros(g, HD_F32, table), indices, one);
    const hd_value others = hd_equal(p, hd_sub(p, hd_gather(p, zero_count, indices), one), none);
    const hd_value of_all = hd_mul(p, dy, hd_scatter_mul(p, hdi_grad_wide(g, hdi_grad_x(g, 0)), indices, u));
    hdi_grad_give(g, 2, hdi_grad_where(g, others, hd_div(p, hd_gather(p, of_all, indices), u)));
}

/* scatter_max and scatter_min: to the first of those that are equal to the result, base before all updates. */
void hdi_grad_scatter_pick(hdi_grad *g) {
    hd_program *p = g->program;
    const hd_value indices = hdi_grad_x(g, 1), base = hdi_grad_x(g, 0), updates = hdi_grad_x(g, 2), y = hdi_grad_y(g);
    const hd_value base_is = hd_equal(p, base, y);
    if (hdi_grad_wants(g, 0)) hdi_grad_give(g, 0, hdi_grad_where(g, base_is, g->dy));
    if (!hdi_grad_wants(g, 2)) return;
    const int64_t count = hdi_grad_shape(g, indices).dims[0];
    const hd_value last = hdi_grad_whole(g, INT32_MAX), number_of = hdi_grad_count(g, 2, 0, count);
    const hd_value matches = hd_where(p, hd_equal(p, updates, hd_gather(p, y, indices)), number_of, last);
    const hd_value first = hd_scatter_min(p, hd_where(p, base_is, hdi_grad_whole(g, -1), last), indices, matches);
    hdi_grad_give(g, 2,
                  hdi_grad_where(g, hd_equal(p, hd_gather(p, first, indices), number_of),
                                 hd_gather(p, g->dy, indices)));
}

/* Row of the state, all sequences or pages in one table, that each written row goes to; -1: it is left out. */
static hd_value rows_written(hdi_grad *g, hdi_rows_place place) {
    hd_program *p = g->program;
    const int64_t B = (int64_t)place.B, T = (int64_t)place.T, S = (int64_t)place.S, R = (int64_t)place.R;
    const hd_value position = hd_reshape(p, hdi_grad_x(g, 2), HD_SHAPE(B, 1));
    const hd_value row = hd_add(p, position, hdi_grad_count(g, 2, 1, T));
    const hd_value at =
        inside(g, row, hdi_grad_whole(g, S), hd_mul(p, hdi_grad_count(g, 2, 0, B), hdi_grad_whole(g, S)));
    if (R == 0) return hd_reshape(p, at, HD_SHAPE(B * T));
    int64_t bits = 0;
    while ((INT64_C(1) << bits) < R) bits++;
    /* -1 >> bits is -1: no page, 0, which then */
    const hd_value pages = hd_reshape(p, hdi_grad_x(g, 3), HD_SHAPE(B * S / R, 1));
    const hd_value page =
        hd_gather(p, pages, hd_shift_right_arithmetic(p, hd_reshape(p, at, HD_SHAPE(B * T)), hdi_grad_whole(g, bits)));
    const hd_value begin = hd_bit_and(p, at, hdi_grad_whole(g, R - 1)), flat = hd_reshape(p, page, HD_SHAPE(B, T));
    const hd_value in_page = inside(g, flat, hdi_grad_whole(g, (int64_t)place.N), hdi_grad_whole(g, 0));
    const hd_value to = hd_add(p, hd_mul(p, in_page, hdi_grad_whole(g, R)), begin);
    const hd_value none = hdi_grad_whole(g, 0), outside = hd_bit_or(p, hd_less(p, at, none), hd_less(p, in_page, none));
    return hd_reshape(p, hd_where(p, outside, hdi_grad_whole(g, -1), to), HD_SHAPE(B * T)); /* is left out here */
}

void hdi_grad_write_rows(hdi_grad *g) {
    hd_program *p = g->program;
    if (hdi_dtype_is_quantised(g->node.dtype)) {
        hdi_grad_refuse(g, HD_STATUS_UNSUPPORTED, "rows that are rounded to codes have no derivative");
        return;
    }
    const bool paged = g->node.operand_count > 3;
    const hd_shape pages = paged ? operand_shape(g, 3) : (hd_shape){ 0 }, state = g->node.shape;
    const hdi_rows_place place =
        hdi_write_rows_place(state, operand_shape(g, 1), operand_shape(g, 2), paged ? &pages : NULL);
    const int64_t n = (int64_t)place.n, all = (int64_t)hd_shape_elements(state) / n;
    if (all > INT32_MAX || (int64_t)(place.B * place.S) > INT32_MAX) {
        hdi_grad_refuse(g, HD_STATUS_LIMIT, "the state has more rows than i32 can number");
        return;
    }
    const hd_value at = rows_written(g, place), dy = hd_reshape(p, g->dy, HD_SHAPE(all, n));
    if (hdi_grad_wants(g, 1)) hdi_grad_give(g, 1, hd_reshape(p, hd_gather(p, dy, at), operand_shape(g, 1)));
    if (!hdi_grad_wants(g, 0)) return;
    const hd_value ones = hdi_grad_fill(g, HD_I32, HD_SHAPE((int64_t)(place.B * place.T), 1), 1);
    const hd_value written = hd_scatter_max(p, zeros(g, HD_I32, HD_SHAPE(all, 1)), at, ones);
    hdi_grad_give(g, 0, hd_reshape(p, hdi_grad_where(g, hd_equal(p, written, hdi_grad_whole(g, 0)), dy), state));
}

/* The state's old content is of no account. */
void hdi_grad_assign(hdi_grad *g) { hdi_grad_give(g, 1, g->dy); }
