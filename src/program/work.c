/* work.c: arithmetic and least bytes of a node. A row of op_table.inc names the function; by default all operands are
 * read once and the result is written (tests/unit/test_program_work.c compares that with the kernels' launches). */
#include "program/work.h"

enum { FEW_ROWS = 8, COSTLY_FLOPS = 20 };

const char *hdi_width_name(hdi_width width) {
    static const char *const names[HDI_WIDTH_COUNT] = { "word", "half", "quantised" };
    return (unsigned)width < HDI_WIDTH_COUNT ? names[width] : "?";
}

/* Of a node's value; 0 for NULL. */
static uint64_t elements_of(const hdi_node *node) { return node ? hd_shape_elements(node->shape) : 0; }
static uint64_t value_bytes(const hdi_node *node) { return node ? hd_tensor_bytes(node->dtype, node->shape) : 0; }

/* Counts never overflow: a product of many axes is held at the most that 64 bits hold. */
static uint64_t times(uint64_t a, uint64_t b) {
    uint64_t product;
    return hdi_mul_u64(a, b, &product) ? product : UINT64_MAX;
}
static uint64_t plus(uint64_t a, uint64_t b) {
    uint64_t sum;
    return hdi_add_u64(a, b, &sum) ? sum : UINT64_MAX;
}

typedef struct counting {
    const hd_program *program;
    const hdi_node   *node;
    hdi_node_work     work;
    uint64_t          elements, read; /* of the result and of operand 1 */
} counting;

static const hdi_node *operand_of(const counting *c, uint32_t i) {
    return i < c->node->operand_count ? hdi_program_node(c->program, c->node->operands[i]) : NULL;
}
static uint64_t bytes_of(const counting *c, uint32_t i) { return value_bytes(operand_of(c, i)); }

/* The axis of a tensor that ends with `back` further axes. */
static uint64_t axis_of(const hdi_node *node, uint32_t back) {
    return back < node->shape.rank ? (uint64_t)node->shape.dims[node->shape.rank - 1 - back] : 1;
}

static void work_nothing(counting *c) { c->work = (hdi_node_work){ .width = c->work.width }; }
/* For each element of the result. */
static void work_moved(counting *c) { c->work.flops = 0; }
static void work_each(counting *c) { c->work.flops = c->elements; }
static void work_costly(counting *c) { c->work.flops = times(c->elements, COSTLY_FLOPS); }
static void work_rope(counting *c) { c->work.flops = times(c->elements, 6); }
/* For each element of operand 1. */
static void work_terms(counting *c) { c->work.flops = c->read; }
static void work_hash(counting *c) { c->work.flops = times(bytes_of(c, 0), 25); }
static void work_products(counting *c) { c->work.flops = times(c->read, 2); }
static void work_norm(counting *c) { c->work.flops = times(c->read, 6); }
static void work_softmax(counting *c) { c->work.flops = times(c->read, 8); }

static void work_product(counting *c) {
    const hdi_node *a = operand_of(c, 0), *b = operand_of(c, 1);
    const uint64_t k = axis_of(a, (c->node->attrs.ints[0] & HD_TRANSPOSE_A) != 0 ? 1 : 0);
    const uint64_t columns = HDI_MAX(axis_of(c->node, 0), 1);
    /* With one B for all batches their rows are rows of one product. */
    const bool shared = elements_of(b) == times(k, columns);
    const uint64_t rows = shared ? c->elements / columns : axis_of(c->node, 1);
    c->work.kind = rows <= FEW_ROWS ? HDI_KIND_MATVEC : HDI_KIND_MATMUL;
    c->work.flops = times(2, times(c->elements, k));
}

/* Of the experts' weights only those of the chosen are read, each once. */
static void work_experts(counting *c) {
    const hdi_node *w = operand_of(c, 1);
    const uint64_t experts = axis_of(w, 2), all = value_bytes(w),
                   pairs = c->elements / HDI_MAX(axis_of(c->node, 0), 1);
    c->work.kind = HDI_KIND_MATVEC;
    c->work.flops = times(2, times(c->elements, axis_of(w, 0)));
    c->work.bytes = c->work.bytes - HDI_MIN(all, c->work.bytes) + all / HDI_MAX(experts, 1) * HDI_MIN(experts, pairs);
}

/* Each element of the result: all keys, twice. Of a pool of pages only those that are named are read. */
static void work_attention(counting *c) {
    const hdi_node *k = operand_of(c, 1), *pages = operand_of(c, 4);
    const uint64_t pool_bytes = plus(value_bytes(k), bytes_of(c, 2));
    uint64_t keys = times(axis_of(k, 2), pages ? axis_of(pages, 0) : 1);
    const uint64_t window = (uint64_t)c->node->attrs.ints[1];
    if (window != 0) keys = HDI_MIN(keys, plus(window, axis_of(c->node, 2)));
    c->work.flops = times(4, times(c->elements, keys));
    if (!pages) return;
    const uint64_t read = times(2, times(elements_of(pages), value_bytes(k) / HDI_MAX(axis_of(k, 3), 1)));
    c->work.bytes = c->work.bytes - HDI_MIN(pool_bytes, c->work.bytes) + HDI_MIN(pool_bytes, read);
}

/* Each query element: all keys, three times for dq and four times for dk and dv. */
static void work_attention_gradient(counting *c) {
    c->work.flops = times(14, times(c->read, axis_of(operand_of(c, 1), 2)));
}

/* Of the table only what is asked for. */
static void work_lookup(counting *c) {
    c->work.flops = c->elements;
    const uint64_t found = hd_dtype_bytes(operand_of(c, 0)->dtype, c->elements);
    c->work.bytes = plus(plus(bytes_of(c, 1), value_bytes(c->node)), found);
}

/* Of the state only what is written: as many elements as operand 2 has. */
static void work_written(counting *c) {
    c->work.kind = HDI_KIND_TABLE;
    c->work.flops = 0;
    c->work.bytes = plus(plus(bytes_of(c, 2), bytes_of(c, 3)),
                         plus(bytes_of(c, 1), hd_dtype_bytes(c->node->dtype, elements_of(operand_of(c, 1)))));
}

static void (*const rules[HDI_OP_COUNT])(counting *c) = {
    work_nothing,
#define HDI_OP(code, name, least, most, lack, kind, rows, work, ...) work_##work,
#include "program/op_table.inc"
#undef HDI_OP
};

static hdi_width width_of(const counting *c) {
    const bool second = c->work.kind == HDI_KIND_MATMUL || c->work.kind == HDI_KIND_ATTENTION;
    const hdi_node *weights = operand_of(c, second);
    const hd_dtype dtype = weights ? weights->dtype : c->node->dtype;
    if (hdi_dtype_is_quantised(dtype)) return HDI_WIDTH_QUANTISED;
    return dtype == HD_F16 || dtype == HD_BF16 ? HDI_WIDTH_HALF : HDI_WIDTH_WORD;
}

hdi_node_work hdi_work_of_node(const hd_program *program, const hdi_node *node) {
    counting c = { .program = program, .node = node, .elements = elements_of(node) };
    c.work = (hdi_node_work){ .kind = hdi_op_kind_of(node->op), .bytes = value_bytes(node) };
    c.work.width = width_of(&c);
    c.read = elements_of(operand_of(&c, 0));
    for (uint32_t i = 0; i < node->operand_count; i++) {
        bool seen = false;
        for (uint32_t k = 0; k < i; k++) seen = seen || node->operands[k] == node->operands[i];
        if (!seen) c.work.bytes = plus(c.work.bytes, bytes_of(&c, i));
    }
    rules[node->op](&c);
    return c.work;
}
