/* fuse_products.c: what products do to the rows that they read, and what they have done by the step that makes them. An
 * rms_norm that only products read becomes a part of each; rows that a product would make f16 first are stored so. */
#include "plan/fusion.h"

/* Is the living node a product of `x`, which holds the value `id`, and a B of which the layout is known: a source or
 * what came before? `out` is its task. */
static bool is_product_of(const fusion *f, hd_value node, hd_value id, const hdi_tensor *x, hdi_task *out) {
    const hdi_node *reader = node_of(f, node);
    const bool experts = reader->op == HDI_OP_MATMUL_EXPERTS;
    if (reader->op != HDI_OP_MATMUL && !experts) return false;
    if (reader->operands[0] != id || reader->operands[1] == id) return false;
    const hdi_node *b = node_of(f, reader->operands[1]);
    const bool source = hdi_op_is_source(b->op);
    if (!source && reader->operands[1] > id) return false;
    *out = (hdi_task){ .op = reader->op, .attrs = &reader->attrs, .input_count = experts ? 3 : 2 };
    if (experts) out->inputs[2] = hdi_tensor_dense(0, HD_I32, node_of(f, reader->operands[2])->shape);
    out->inputs[0] = *x;
    out->inputs[1] = source ? hdi_tensor_dense(0, b->dtype, b->shape) : f->values[reader->operands[1]].view;
    out->out = hdi_tensor_dense(0, reader->dtype, reader->shape);
    return true;
}

bool hdi_fusion_leave_norm(fusion *f, const hdi_node *node, hd_value id, const hdi_task *task) {
    value_state *value = &f->values[id];
    const hdi_tensor *x = &task->inputs[0];
    hdi_norm norm = { .present = true, .weighted = node->operands[1] != 0, .eps = node->attrs.floats[0] };
    if (norm.weighted) norm.weight = task->inputs[1];
    if (f->schedule->options.no_fusion || value->last_use == UINT32_MAX ||
        f->schedule->storages[x->storage].kind == HDI_STORAGE_STATE ||
        (norm.weighted && f->schedule->storages[norm.weight.storage].kind == HDI_STORAGE_STATE))
        return false;
    for (uint32_t at = value->readers; at; at = f->readers[at - 1].next)
        {
        hdi_task reader;
        if (!is_product_of(f, f->readers[at - 1].node, id, x, &reader)) return false;
        reader.a_norm = norm;
        if (!hdi_task_fits(f->schedule, &reader)) return false;
    }
    value->view = *x;
    value->left_norm = norm;
    return true;
}

static bool rounds(const fusion *f, hd_value reader, hd_value id) {
    const hdi_node *node = node_of(f, id);
    const hdi_tensor x = hdi_tensor_dense(0, node->dtype, node->shape);
    hdi_task task;
    if (node->dtype != HD_F32 || node_of(f, reader)->op != HDI_OP_MATMUL) return false;
    return is_product_of(f, reader, id, &x, &task) && hdi_task_rounds(f->schedule, &task);
}

bool hdi_fusion_is_rounded(const fusion *f, const hdi_node *node, hd_value id) {
    const value_state *value = &f->values[id];
    hd_value read;
    if (f->schedule->options.no_fusion || value->last_use == UINT32_MAX) return false;
    if (node->op == HDI_OP_ATTENTION) { /* between its values, which are f16 then */
        const hd_value reader = hdi_fusion_only_reader(f, id, &read);
        return reader && node_of(f, node->operands[2])->dtype == HD_F16 && rounds(f, reader, read);
    }
    for (uint32_t at = value->readers; at; at = f->readers[at - 1].next)
        if (!rounds(f, f->readers[at - 1].node, id)) return false;
    return value->readers != 0;
}

/* Do both products take codes: the one that is made, and the one that reads it? */
static bool may_be_coded(const fusion *f, hd_value reader, hd_value id, const hdi_task *made) {
    const hdi_tensor x = hdi_tensor_dense(0, HD_F32, node_of(f, id)->shape);
    hdi_task task, coded = *made;
    if (made->op != HDI_OP_MATMUL || made->out.dtype != HD_F32) return false;
    if (!is_product_of(f, reader, id, &x, &task)) return false;
    task.a_coded = coded.out_coded = true;
    return task.op == HDI_OP_MATMUL && hdi_task_takes_codes(f->schedule, &task) &&
           hdi_task_takes_codes(f->schedule, &coded);
}

hd_status hdi_fusion_round_rows(fusion *f, const hdi_node *node) {
    const hd_value a = node->operands[0];
    value_state *value = &f->values[a];
    if (value->pending == HDI_NO_TASK || value->uses != 1) return HD_OK;
    if (may_be_coded(f, value->last_use, a, &f->tasks[value->pending])) {
        hdi_task coded = *hdi_fusion_let_go(f, a);
        coded.out_coded = value->coded = true;
        return hdi_task_emit(f->schedule, f->program, &coded, f->error);
    }
    if (!rounds(f, value->last_use, a)) return HD_OK;
    hdi_task task = f->tasks[value->pending];
    if (task.op != HDI_OP_COPY && task.op != HDI_OP_MATMUL) return HD_OK;
    if (task.chain.input_count == 0) { /* the product itself */
        task.chain.inputs[0] = task.out;
        task.chain.input_count = 1;
    }
    task.out.dtype = HD_F16;
    if (!hdi_chain_add_halves(&task.chain) || !hdi_task_fits(f->schedule, &task)) return HD_OK;
    hdi_fusion_let_go(f, a);
    const hd_status status = hdi_fusion_tensor(f, HD_F16, task.out.shape, &task.out);
    value->view = task.out;
    return status ? status : hdi_task_emit(f->schedule, f->program, &task, f->error);
}
