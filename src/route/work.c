/* work.c: which nodes of a program live, who reads them, and which become one kernel; what each has to do is program/work.h's.
 * Which nodes are fused is told by the simple part of the planner's rules: element-wise nodes join what makes their operand
 * when they are its only reader. A value that several of them read is counted for each. */
#include "route/route.h"

enum { CHAIN_STEPS = 8 };

static bool is_by_element(hdi_op_kind kind) { return kind == HDI_KIND_ELEMENTWISE || kind == HDI_KIND_FUNCTION; }
static bool is_product(hdi_op_kind kind) { return kind == HDI_KIND_MATMUL || kind == HDI_KIND_MATVEC; }

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
        if (hdi_op_writes_state(node->op)) readings[at].alive = true;
        if (!readings[at].alive) continue;
        const hdi_op_kind kind = hdi_op_kind_of(node->op);
        for (uint32_t i = 0; i < node->operand_count; i++) {
            if (node->operands[i] == 0) continue;
            reading *r = &readings[node->operands[i] - 1];
            r->alive = true;
            r->uses++;
            const bool takes_views = is_by_element(kind) || kind == HDI_KIND_MATMUL || kind == HDI_KIND_COPY;
            r->dense = r->dense || (kind == HDI_KIND_VIEW && node->op != HDI_OP_RESHAPE ? readings[at].dense : !takes_views);
        }
    }
}

/* A view takes no time, unless something needs its elements in a row. */
static void count_view(const hdi_node *node, const reading *r, hdi_work *work) {
    const bool moves = node->op == HDI_OP_RESHAPE ? r->output : r->dense;
    if (!moves) return;
    work->family = HDI_KIND_COPY;
    work->flops = hdi_node_elements(node);
    work->bytes = 2 * hdi_node_bytes(node);
    work->launch = true;
}

static bool may_join(const hd_program *program, const hdi_node *node, hd_value operand, const reading *readings, const hdi_work *work) {
    const hdi_node *from = &program->nodes[operand - 1];
    const reading *r = &readings[operand - 1];
    const hdi_op_kind kind = work[operand - 1].family;
    if (!is_by_element(kind) && !is_product(kind) && from->op != HDI_OP_COPY) return false;
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
    const bool had = r->payer != id && is_product(work[r->payer - 1].family);
    const hd_value stays = had && !is_product(work[payer - 1].family) ? r->payer : payer;
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
        const bool two_products = to->payer != id && is_product(work[to->payer - 1].family) && is_product(work[from->payer - 1].family);
        if (!two_products) join(id, operand, work, readings, hdi_node_bytes(&program->nodes[operand - 1]));
    }
}

/* The first node that reads an input, views passed over. */
static void find_readers(const hd_program *program, hdi_work *work) {
    for (uint32_t at = program->node_count; at-- > 0;) {
        const hdi_node *node = &program->nodes[at];
        const hd_value reader = work[at].family == HDI_KIND_NONE ? work[at].reader : at + 1;
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
        const hdi_node_work own = hdi_work_of_node(program, node);
        *work = (hdi_work){ .width = own.width, .alive = r->alive, .kernel = at + 1 };
        r->payer = at + 1;
        if (r->alive && hdi_op_is_view(node->op)) count_view(node, r, work);
        if (!r->alive || own.kind == HDI_KIND_NONE) continue;
        work->family = own.kind;
        work->flops = own.flops;
        work->bytes = own.bytes;
        work->launch = true;
        if (is_by_element(work->family) || node->op == HDI_OP_COPY) {
            r->steps = 1;
            r->costly = work->family == HDI_KIND_FUNCTION;
            if (fusion) fuse_node(program, at + 1, out_work, readings);
        }
    }
    for (uint32_t at = count; at-- > 0;) /* readers come later: their kernel is final */
        out_work[at].kernel = out_work[out_work[at].kernel - 1].kernel;
    find_readers(program, out_work);
    hdi_free(program->allocator, readings, count * sizeof *readings);
    return HD_OK;
}
