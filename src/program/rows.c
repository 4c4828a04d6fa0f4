/* rows.c: which operations compute the rows of their result each by itself, and from which rows. A row of op_table.inc
 * names the function. A row is an index of the first axis. */
#include "program/program.h"

typedef struct query {
    const hd_program *program;
    const hdi_node   *node;
    hd_shape          x; /* of operand 1 */
} query;

static uint64_t rows_none(const query *q) {
    (void)q;
    return 0;
}

/* Operands that have a row for each row of the result; the others broadcast. */
static uint64_t rows_like(const query *q) {
    uint64_t set = 0;
    for (uint32_t k = 0; k < q->node->operand_count; k++) {
        const hdi_node *x = hdi_program_node(q->program, q->node->operands[k]);
        const bool like = x && x->shape.rank == q->node->shape.rank && x->shape.dims[0] == q->node->shape.dims[0];
        set |= (uint64_t)like << k;
    }
    return set;
}

/* Along an axis: any but the first. */
static uint64_t rows_along(const query *q) { return q->node->attrs.ints[0] > 0 ? rows_like(q) : 0; }
/* Along the last axis, which is not to be the first. */
static uint64_t rows_last(const query *q) { return q->node->shape.rank > 1 ? rows_like(q) : 0; }
/* These operands have as many rows as the result, whatever their other axes are. */
static uint64_t rows_second(const query *q) {
    (void)q;
    return 2;
}
static uint64_t rows_both(const query *q) {
    (void)q;
    return 3;
}

/* All operands, where the result has more than one axis. */
static uint64_t rows_all(const query *q) {
    return q->node->shape.rank > 1 ? (UINT64_C(1) << q->node->operand_count) - 1 : 0;
}

/* Experts: rows, and which experts they chose; not the weights. */
static uint64_t rows_experts(const query *q) {
    (void)q;
    return 5;
}

static uint64_t rows_matmul(const query *q) {
    return q->node->shape.rank > 2 ? rows_like(q) : !(q->node->attrs.ints[0] & HD_TRANSPOSE_A);
}
/* Positions go along the first axis where there is no other one before it. */
static uint64_t rows_rope(const query *q) { return q->node->shape.rank > 3 ? 1 : 3; }
static uint64_t rows_permute(const query *q) { return q->node->attrs.ints[0] == 0; }
static uint64_t rows_windows(const query *q) { return q->node->attrs.ints[0] > 0; }
static uint64_t rows_reshape(const query *q) { return q->x.rank > 0 && q->x.dims[0] == q->node->shape.dims[0]; }
static uint64_t rows_slice(const query *q) {
    return q->node->attrs.ints[0] == 0 && q->node->attrs.ints[HD_MAX_RANK] == q->x.dims[0];
}
static uint64_t rows_pad(const query *q) {
    return q->node->attrs.ints[0] == 0 && q->node->attrs.ints[HD_MAX_RANK] == 0;
}

static uint64_t (*const rules[HDI_OP_COUNT])(const query *q) = {
    rows_none,
#define HDI_OP(code, name, least, most, lack, kind, rows, ...) rows_##rows,
#include "program/op_table.inc"
#undef HDI_OP
};

uint64_t hdi_op_row_operands(const hd_program *program, const hdi_node *node) {
    const hdi_node *x = node->operand_count > 0 ? hdi_program_node(program, node->operands[0]) : NULL;
    return rules[node->op](&(query){ program, node, x ? x->shape : (hd_shape){ 0 } });
}
