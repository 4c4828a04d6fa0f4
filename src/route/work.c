/* work.c: what each node of a program has to do: arithmetic, least bytes, and which nodes become one kernel. The counts are
 * those of the kernels' own launches (tests/unit/test_route_work.c compares them); which nodes are fused is told by the
 * simple part of the planner's rules: element-wise nodes join what makes their operand when they are its only reader. A value
 * that several of them read is counted for each. */
#include "route/route.h"

enum { FEW_ROWS = 8, CHAIN_STEPS = 8, COSTLY_FLOPS = 20 };

/* ---- one node ---- */

static bool is_costly(hdi_op op) {
    switch (op) {
    case HDI_OP_DIV: case HDI_OP_SQRT: case HDI_OP_EXP: case HDI_OP_LOG: case HDI_OP_SIN: case HDI_OP_COS: case HDI_OP_ELU:
    case HDI_OP_SIGMOID: case HDI_OP_TANH: case HDI_OP_SILU: case HDI_OP_GELU: case HDI_OP_GELU_TANH: return true;
    default: return false;
    }
}

static hdi_family family_of(const hdi_node *node) {
    switch (node->op) {
    case HDI_OP_MATMUL: return HDI_FAMILY_MATMUL;
    case HDI_OP_SUM: case HDI_OP_MEAN: case HDI_OP_MAX: case HDI_OP_MIN: case HDI_OP_ARGMAX: case HDI_OP_DOT: case HDI_OP_TOP_K:
        return HDI_FAMILY_REDUCE;
    case HDI_OP_SOFTMAX: case HDI_OP_LOG_SOFTMAX: case HDI_OP_CROSS_ENTROPY: return HDI_FAMILY_SOFTMAX;
    case HDI_OP_RMS_NORM: case HDI_OP_LAYER_NORM: return HDI_FAMILY_NORM;
    case HDI_OP_GATHER: case HDI_OP_TAKE_ALONG: case HDI_OP_SCATTER_ADD: case HDI_OP_WRITE_ROWS: return HDI_FAMILY_TABLE;
    case HDI_OP_ROPE: return HDI_FAMILY_ROPE;
    case HDI_OP_ATTENTION: return HDI_FAMILY_ATTENTION;
    case HDI_OP_COPY: case HDI_OP_CONCAT: case HDI_OP_PAD: return HDI_FAMILY_COPY;
    case HDI_OP_DISPATCH: return HDI_FAMILY_USER;
    case HDI_OP_NONE: case HDI_OP_INPUT: case HDI_OP_STATE: case HDI_OP_RESHAPE: case HDI_OP_PERMUTE: case HDI_OP_SLICE: return HDI_FAMILY_NONE;
    default: return is_costly(node->op) ? HDI_FAMILY_FUNCTION : HDI_FAMILY_ELEMENTWISE;
    }
}

static bool is_by_element(hdi_family family) { return family == HDI_FAMILY_ELEMENTWISE || family == HDI_FAMILY_FUNCTION; }
static bool is_view(hdi_op op) { return op == HDI_OP_RESHAPE || op == HDI_OP_PERMUTE || op == HDI_OP_SLICE; }

static const hdi_node *operand_of(const hd_program *program, const hdi_node *node, uint32_t i) {
    return i < node->operand_count && node->operands[i] ? &program->nodes[node->operands[i] - 1] : NULL;
}

static uint64_t elements_of(const hdi_node *node) { return node ? hd_shape_elements(node->shape) : 0; }
static uint64_t bytes_of(const hdi_node *node) { return node ? hd_tensor_bytes(node->dtype, node->shape) : 0; }

/* The axis of a tensor that ends with `back` further axes. */
static uint64_t axis_of(const hdi_node *node, uint32_t back) { return back < node->shape.rank ? (uint64_t)node->shape.dims[node->shape.rank - 1 - back] : 1; }

static hdi_width width_of(const hd_program *program, const hdi_node *node) {
    const hdi_node *weights = operand_of(program, node, node->op == HDI_OP_MATMUL || node->op == HDI_OP_ATTENTION ? 1 : 0);
    const hd_dtype dtype = weights ? weights->dtype : node->dtype;
    if (hdi_dtype_is_quantised(dtype)) return HDI_WIDTH_QUANTISED;
    return dtype == HD_F16 || dtype == HD_BF16 ? HDI_WIDTH_HALF : HDI_WIDTH_WORD;
}

/* Counts never overflow: a product of many axes is held at the most that 64 bits hold. */
static uint64_t times(uint64_t a, uint64_t b) {
    uint64_t product;
    return hdi_mul_u64(a, b, &product) ? product : UINT64_MAX;
}
static uint64_t plus(uint64_t a, uint64_t b) {
    uint64_t sum;
    return hdi_add_u64(a, b, &sum) ? sum : UINT64_MAX;
}

static void count_matmul(const hd_program *program, const hdi_node *node, hdi_work *work) {
    const hdi_node *a = operand_of(program, node, 0), *b = operand_of(program, node, 1);
    const uint64_t k = axis_of(a, (node->attrs.ints[0] & HD_TRANSPOSE_A) != 0 ? 1 : 0), columns = HDI_MAX(axis_of(node, 0), 1);
    const bool shared = elements_of(b) == times(k, columns); /* one B for all batches: their rows are rows of one product */
    const uint64_t rows = shared ? elements_of(node) / columns : axis_of(node, 1);
    work->family = rows <= FEW_ROWS ? HDI_FAMILY_MATVEC : HDI_FAMILY_MATMUL;
    work->flops = times(2, times(elements_of(node), k));
}

/* Each element of the result: all keys, twice. Of a pool of pages only those that are named are read. */
static void count_attention(const hd_program *program, const hdi_node *node, hdi_work *work) {
    const hdi_node *k = operand_of(program, node, 1), *pages = operand_of(program, node, 4);
    const uint64_t pool_bytes = plus(bytes_of(k), bytes_of(operand_of(program, node, 2)));
    const uint64_t keys = times(axis_of(k, 2), pages ? axis_of(pages, 0) : 1);
    work->flops = times(4, times(elements_of(node), keys));
    if (!pages) return;
    const uint64_t read = times(2, times(elements_of(pages), bytes_of(k) / HDI_MAX(axis_of(k, 3), 1)));
    work->bytes = work->bytes - HDI_MIN(pool_bytes, work->bytes) + HDI_MIN(pool_bytes, read);
}

/* Arithmetic and bytes of a node that computes something; by default all operands are read once and the result is written. */
static void count_node(const hd_program *program, const hdi_node *node, hdi_work *work) {
    const uint64_t elements = elements_of(node), read = elements_of(operand_of(program, node, 0));
    work->flops = elements;
    work->bytes = bytes_of(node);
    for (uint32_t i = 0; i < node->operand_count; i++) {
        bool seen = false;
        for (uint32_t k = 0; k < i; k++) seen = seen || node->operands[k] == node->operands[i];
        if (!seen) work->bytes = plus(work->bytes, bytes_of(operand_of(program, node, i)));
    }
    switch (work->family) {
    case HDI_FAMILY_FUNCTION: work->flops = times(elements, COSTLY_FLOPS); break;
    case HDI_FAMILY_MATMUL: count_matmul(program, node, work); break;
    case HDI_FAMILY_COPY: work->flops = 0; break;
    case HDI_FAMILY_REDUCE: work->flops = times(read, node->op == HDI_OP_DOT ? 2 : 1); break;
    case HDI_FAMILY_SOFTMAX: work->flops = times(read, 8); break;
    case HDI_FAMILY_NORM: work->flops = times(read, 6); break;
    case HDI_FAMILY_ROPE: work->flops = times(elements, 6); break;
    case HDI_FAMILY_ATTENTION: count_attention(program, node, work); break;
    case HDI_FAMILY_TABLE:
        if (node->op == HDI_OP_GATHER || node->op == HDI_OP_TAKE_ALONG) { /* of the table only what is asked for */
            const hdi_node *table = operand_of(program, node, 0);
            work->bytes = plus(bytes_of(operand_of(program, node, 1)), plus(bytes_of(node), hd_dtype_bytes(table->dtype, elements)));
        } else if (node->op == HDI_OP_WRITE_ROWS) { /* of the state only the rows that are written */
            const hdi_node *rows = operand_of(program, node, 1);
            work->flops = 0;
            work->bytes = plus(plus(bytes_of(operand_of(program, node, 2)), bytes_of(operand_of(program, node, 3))), plus(bytes_of(rows), hd_dtype_bytes(node->dtype, elements_of(rows))));
        }
        break;
    default: break;
    }
}

/* ---- which nodes live, who reads them, and what is one kernel ---- */

typedef struct reading {
    uint32_t uses;    /* by living nodes and outputs */
    bool     alive, output, dense; /* dense: some reader needs it without strides */
    uint32_t steps, costly; /* of the element-wise chain that ends here */
    hd_value payer;   /* the node that launches the kernel which computes this one */
} reading;

static void count_uses(const hd_program *program, reading *readings) {
    for (uint32_t i = 0; i < program->output_count; i++) {
        reading *r = &readings[program->outputs[i].value - 1];
        r->alive = r->output = r->dense = true;
        r->uses++;
    }
    for (uint32_t at = program->node_count; at-- > 0;) {
        const hdi_node *node = &program->nodes[at];
        if (node->op == HDI_OP_WRITE_ROWS) readings[at].alive = true;
        if (!readings[at].alive) continue;
        const hdi_family family = family_of(node);
        for (uint32_t i = 0; i < node->operand_count; i++) {
            if (node->operands[i] == 0) continue;
            reading *r = &readings[node->operands[i] - 1];
            r->alive = true;
            r->uses++;
            const bool takes_views = is_by_element(family) || family == HDI_FAMILY_MATMUL || family == HDI_FAMILY_COPY;
            r->dense = r->dense || (is_view(node->op) && node->op != HDI_OP_RESHAPE ? readings[at].dense : !takes_views);
        }
    }
}

/* A view takes no time, unless something needs its elements in a row. */
static void count_view(const hd_program *program, const hdi_node *node, const reading *r, hdi_work *work) {
    const hdi_node *from = operand_of(program, node, 0);
    const bool moves = node->op == HDI_OP_RESHAPE ? r->output : r->dense;
    if (!moves) return;
    work->family = HDI_FAMILY_COPY;
    work->flops = elements_of(node);
    work->bytes = plus(bytes_of(node), HDI_MIN(bytes_of(node), bytes_of(from)));
    work->launch = true;
}

static bool may_join(const hd_program *program, const hdi_node *node, hd_value operand, const reading *readings, const hdi_work *work) {
    const hdi_node *from = &program->nodes[operand - 1];
    const reading *r = &readings[operand - 1];
    const hdi_family family = work[operand - 1].family;
    if (!is_by_element(family) && family != HDI_FAMILY_MATMUL && family != HDI_FAMILY_MATVEC && from->op != HDI_OP_COPY) return false;
    return r->uses == 1 && !r->output && hdi_shape_equal(from->shape, node->shape);
}

/* What passes between them in registers is neither written nor read. */
static void join(hd_value id, hd_value operand, hdi_work *work, reading *readings, uint64_t between) {
    hdi_work *from = &work[operand - 1], *to = &work[id - 1];
    reading *r = &readings[id - 1];
    from->bytes -= HDI_MIN(from->bytes, between);
    to->bytes -= HDI_MIN(to->bytes, between);
    r->steps += readings[operand - 1].steps;
    r->costly += readings[operand - 1].costly;
    const hd_value payer = readings[operand - 1].payer;
    const bool product = work[payer - 1].family == HDI_FAMILY_MATMUL || work[payer - 1].family == HDI_FAMILY_MATVEC;
    const bool had = r->payer != id && (work[r->payer - 1].family == HDI_FAMILY_MATMUL || work[r->payer - 1].family == HDI_FAMILY_MATVEC);
    const hd_value stays = had && !product ? r->payer : payer;
    if (r->payer != stays) work[r->payer - 1].launch = false;
    if (payer != stays) work[payer - 1].launch = false;
    r->payer = stays;
    from->kernel = id;
}

static void fuse_node(const hd_program *program, hd_value id, hdi_work *work, reading *readings) {
    const hdi_node *node = &program->nodes[id - 1];
    for (uint32_t i = 0; i < node->operand_count && i < 3; i++) {
        const hd_value operand = node->operands[i];
        if (operand == 0 || (i > 0 && operand == node->operands[i - 1]) || !may_join(program, node, operand, readings, work)) continue;
        const reading *from = &readings[operand - 1], *to = &readings[id - 1];
        if (from->steps + to->steps > CHAIN_STEPS || from->costly + to->costly > 1) continue;
        const hdi_family payer = work[to->payer - 1].family, other = work[from->payer - 1].family;
        const bool two_products = to->payer != id && (payer == HDI_FAMILY_MATMUL || payer == HDI_FAMILY_MATVEC) &&
                                  (other == HDI_FAMILY_MATMUL || other == HDI_FAMILY_MATVEC);
        if (!two_products) join(id, operand, work, readings, bytes_of(&program->nodes[operand - 1]));
    }
}

/* The first node that reads an input, views passed over. */
static void find_readers(const hd_program *program, hdi_work *work) {
    for (uint32_t at = program->node_count; at-- > 0;) {
        const hdi_node *node = &program->nodes[at];
        const hd_value reader = work[at].family == HDI_FAMILY_NONE ? work[at].reader : at + 1;
        for (uint32_t i = 0; i < node->operand_count && work[at].alive && reader; i++)
            if (node->operands[i]) work[node->operands[i] - 1].reader = reader;
    }
}

hd_status hdi_work_of(const hd_program *program, bool fusion, hdi_work *out_work, hd_error *error) {
    const uint32_t count = program->node_count;
    reading *readings = hdi_alloc(program->allocator, count * sizeof *readings);
    if (!readings && count > 0) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to look at %u nodes", count);
    count_uses(program, readings);
    for (uint32_t at = 0; at < count; at++) {
        const hdi_node *node = &program->nodes[at];
        hdi_work *work = &out_work[at];
        reading *r = &readings[at];
        *work = (hdi_work){ .family = r->alive ? family_of(node) : HDI_FAMILY_NONE, .width = width_of(program, node), .alive = r->alive, .kernel = at + 1 };
        r->payer = at + 1;
        if (r->alive && is_view(node->op)) count_view(program, node, r, work);
        if (work->family == HDI_FAMILY_NONE || is_view(node->op)) continue;
        work->launch = true;
        count_node(program, node, work);
        if (is_by_element(work->family) || node->op == HDI_OP_COPY) {
            r->steps = 1;
            r->costly = is_costly(node->op);
            if (fusion) fuse_node(program, at + 1, out_work, readings);
        }
    }
    for (uint32_t at = count; at-- > 0;) /* readers come later: their kernel is final */
        out_work[at].kernel = out_work[out_work[at].kernel - 1].kernel;
    find_readers(program, out_work);
    hdi_free(program->allocator, readings, count * sizeof *readings);
    return HD_OK;
}
