/* fuse_heads.c: an rms_norm, a rope, a cast and a write_rows in a row become one kernel at the place of the last, and a
 * cast a part of the write_rows behind it. */
#include "plan/fusion.h"

/* What the value is made from, looking back through reshapes that nothing else reads. */
static hd_value behind_reshapes(const fusion *f, hd_value value) {
    while (node_of(f, value)->op == HDI_OP_RESHAPE && f->values[value].uses == 1)
        value = node_of(f, value)->operands[0];
    return value;
}
/* Can the node's operands be read later than the program says? Not where they may show a state. */
static bool can_wait(const fusion *f, hd_value id) {
    const hdi_node *node = node_of(f, id);
    for (uint32_t i = 0; i < node->operand_count; i++) {
        hd_value value = node->operands[i];
        if (value == 0) continue;
        while (hdi_op_is_view(node_of(f, value)->op)) value = node_of(f, value)->operands[0];
        if (hdi_op_shows_state(node_of(f, value)->op)) return false;
    }
    return true;
}
/* Marks what lies between two values of which the later is made from the earlier, with the earlier. */
static void absorb(fusion *f, hd_value from, hd_value until) {
    for (hd_value value = from; value != until; value = f->values[value].last_use) f->values[value].absorbed = true;
}

static void join_head(fusion *f, hd_value rope) {
    const hdi_node *node = node_of(f, rope);
    const uint32_t rank = node->shape.rank;
    const uint64_t row = (uint64_t)(node->shape.dims[rank - 1] * node->shape.dims[rank - 2]);
    hd_value first = rope, last = rope, read;
    const hd_value norm = behind_reshapes(f, node->operands[0]);
    const hdi_node *before = node_of(f, norm);
    if (before->op == HDI_OP_RMS_NORM && f->values[norm].uses == 1 && can_wait(f, norm) &&
        before->shape.dims[before->shape.rank - 1] == node->shape.dims[rank - 1]) first = norm;
    hd_value reader = can_wait(f, rope) ? hdi_fusion_only_reader(f, rope, &read) : 0;
    if (reader != 0 && node_of(f, reader)->op == HDI_OP_CAST && hdi_dtype_is_float(node_of(f, reader)->dtype)) {
        last = reader;
        reader = hdi_fusion_only_reader(f, last, &read);
    }
    if (reader != 0 && node_of(f, reader)->op == HDI_OP_WRITE_ROWS && node_of(f, reader)->operands[1] == read &&
        (last == rope || node_of(f, reader)->dtype == node_of(f, read)->dtype)) {
        const hdi_node *writer = node_of(f, reader);
        const hd_shape *pages = writer->operands[3] != 0 ? &node_of(f, writer->operands[3])->shape : NULL;
        if (hdi_write_rows_place(writer->shape, node_of(f, read)->shape, node_of(f, writer->operands[2])->shape, pages)
                .n == row)
            last = reader;
    }
    if (first == rope && last == rope) return;
    absorb(f, first, last);
    f->values[last].rope = rope;
    f->values[rope].norm = first == norm ? norm : 0;
}

/* A cast from f32 to the type of the state whose rows it becomes: write_rows rounds by itself. */
static void join_cast(fusion *f, hd_value writer) {
    const hd_value cast = behind_reshapes(f, node_of(f, writer)->operands[1]);
    const hdi_node *node = node_of(f, cast);
    if (node->op != HDI_OP_CAST || f->values[cast].uses != 1 || f->values[cast].absorbed || !can_wait(f, cast)) return;
    if (node_of(f, node->operands[0])->dtype != HD_F32 || (node->dtype != HD_F16 && node->dtype != HD_BF16)) return;
    absorb(f, cast, writer);
    f->values[writer].rows = node->operands[0];
}

void hdi_fusion_join_heads(fusion *f) {
    for (hd_value id = 1; id <= f->program->node_count && !f->schedule->options.no_fusion; id++)
        if (f->values[id].alive && node_of(f, id)->op == HDI_OP_ROPE) join_head(f, id);
    for (hd_value id = 1; id <= f->program->node_count && !f->schedule->options.no_fusion; id++)
        if (node_of(f, id)->op == HDI_OP_WRITE_ROWS && f->values[id].rope == 0) join_cast(f, id);
}

hd_status hdi_fuse_head(fusion *f, const hdi_node *node, hd_value id) {
    const hd_value rope = f->values[id].rope, norm = f->values[rope].norm;
    const hdi_node *turn = node_of(f, rope), *before = norm != 0 ? node_of(f, norm) : NULL;
    hdi_task task = {
        .op = HDI_OP_ROPE, .attrs = &turn->attrs, .input_count = 5, .norm = before ? &before->attrs : NULL
    };
    for (hd_value value = before ? norm : rope;; value = f->values[value].last_use) {
        if (node_of(f, value)->op != HDI_OP_RESHAPE) task.values[task.value_count++] = value;
        if (value == id) break;
    }
    task.inputs[2].storage = task.inputs[3].storage = task.inputs[4].storage = HDI_NO_INDEX;
    const hd_value rows = before ? before->operands[0] : turn->operands[0];
    hd_status status = hdi_fusion_shaped(f, rows, turn->shape, &task.inputs[0]);
    if (!status) status = hdi_fusion_dense(f, turn->operands[1], &task.inputs[1]);
    if (!status && before && before->operands[1] != 0)
        status = hdi_fusion_dense(f, before->operands[1], &task.inputs[2]);
    if (node->op != HDI_OP_WRITE_ROWS) {
        if (!status) status = hdi_fusion_tensor(f, node->dtype, node->shape, &task.out);
    } else {
        for (uint32_t i = 2; i < node->operand_count && !status; i++)
            status = hdi_fusion_dense(f, node->operands[i], &task.inputs[i + 1]);
        if (!status) status = hdi_fusion_save_old_rows(f, node->operands[0], id);
        task.out = f->values[node->operands[0]].view;
    }
    f->values[id].view = task.out;
    return status ? status : hdi_task_emit(f->schedule, f->program, &task, f->error);
}
