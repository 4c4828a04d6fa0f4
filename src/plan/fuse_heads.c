/* fuse_heads.c: an rms_norm, a rope, a cast and a write_rows in a row become one kernel at the place of the last, and a
 * cast a part of the write_rows behind it. Where there is one query a sequence, all of it may become a part of the
 * attention. */
#include "plan/fusion.h"

/* What the value is made from, looking back through reshapes that nothing else reads. */
static hd_value behind_reshapes(const fusion *f, hd_value value) {
    while (node_of(f, value)->op == HDI_OP_RESHAPE && f->values[value].uses == 1)
        value = node_of(f, value)->operands[0];
    return value;
}
/* Can the value be read later than the program says? Not where it may show a state. */
static bool stays(const fusion *f, hd_value value) {
    if (value == 0) return true;
    while (hdi_op_is_view(node_of(f, value)->op)) value = node_of(f, value)->operands[0];
    return !hdi_op_shows_state(node_of(f, value)->op);
}
/* Can the node's operands? */
static bool can_wait(const fusion *f, hd_value id) {
    const hdi_node *node = node_of(f, id);
    for (uint32_t i = 0; i < node->operand_count; i++)
        if (!stays(f, node->operands[i])) return false;
    return true;
}
/* Marks what lies between two values of which the later is made from the earlier, with the earlier. */
static void absorb(fusion *f, hd_value from, hd_value until) {
    for (hd_value value = from; value != until; value = f->values[value].last_use) f->values[value].absorbed = true;
}

/* Adds the nodes from the first on until the task's last one, as they are in the program. */
static void add_values(const fusion *f, hdi_task *task, hd_value first, hd_value id) {
    for (hd_value value = first; value != id; value = f->values[value].last_use)
        if (node_of(f, value)->op != HDI_OP_RESHAPE) task->values[task->value_count++] = value;
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

/* ---- attention that turns its heads, and writes the rows of its keys and values ---- */

/* What such an attention is made of: its operands' ropes and norms, and the nodes that write rows. */
typedef struct turning {
    hd_value rope, norm, key_rope, key_norm, keys, values; /* norms: 0 where there is none */
    hd_value of[HDI_TURN_INPUTS];                          /* its inputs, and their shapes: */
    hd_shape shapes[HDI_TURN_INPUTS];
} turning;

static bool same_turn(const hdi_node *a, const hdi_node *b) {
    const hdi_attrs *x = &a->attrs, *y = &b->attrs;
    return a->operands[1] == b->operands[1] && x->ints[0] == y->ints[0] && x->ints[1] == y->ints[1] &&
           memcmp(x->floats, y->floats, sizeof x->floats) == 0 && x->factor_count == y->factor_count &&
           (x->factor_count == 0 || memcmp(x->factors, y->factors, x->factor_count * sizeof *x->factors) == 0);
}

/* Does the node write the rows that the attention sees as its own tokens', for it alone? */
static bool writes_for(const fusion *f, hd_value writer, const hdi_node *attention) {
    const hdi_node *node = node_of(f, writer);
    if (node->op != HDI_OP_WRITE_ROWS || f->values[writer].uses != 1) return false;
    const hd_value position = node->operands[2], pages = node->operands[3];
    return position == attention->operands[3] && pages == attention->operands[4] && stays(f, position) &&
           stays(f, pages);
}

static void add_input(const fusion *f, turning *t, uint32_t at, hd_value value) {
    t->of[at] = value;
    if (value) t->shapes[at] = node_of(f, value)->shape;
}

static bool find_turning(const fusion *f, hd_value id, turning *out) {
    const hdi_node *node = node_of(f, id);
    if (node->operands[3] == 0) return false;
    turning t = { .rope = behind_reshapes(f, node->operands[0]), .keys = node->operands[1],
                  .values = node->operands[2] };
    const hdi_node *rope = node_of(f, t.rope);
    if (rope->op != HDI_OP_ROPE || f->values[t.rope].uses != 1 || !can_wait(f, t.rope)) return false;
    if (!writes_for(f, t.keys, node) || !writes_for(f, t.values, node) || f->values[t.values].rope) return false;
    t.key_rope = f->values[t.keys].rope;
    if (t.key_rope == 0 || !same_turn(rope, node_of(f, t.key_rope))) return false;
    t.norm = f->values[t.rope].norm;
    t.key_norm = f->values[t.key_rope].norm;
    if ((t.norm == 0) != (t.key_norm == 0)) return false;
    const hdi_node *norm = t.norm ? node_of(f, t.norm) : NULL, *key_norm = t.norm ? node_of(f, t.key_norm) : NULL;
    if (norm && (norm->attrs.floats[0] != key_norm->attrs.floats[0] ||
                 (norm->operands[1] == 0) != (key_norm->operands[1] == 0)))
        return false;
    for (uint32_t i = 0; i < node->operand_count; i++) add_input(f, &t, i, node->operands[i]);
    add_input(f, &t, 0, norm ? norm->operands[0] : rope->operands[0]);
    t.shapes[0] = node->shape;
    add_input(f, &t, 1, node_of(f, t.keys)->operands[0]);
    add_input(f, &t, 2, node_of(f, t.values)->operands[0]);
    add_input(f, &t, HDI_TURN_POSITIONS, rope->operands[1]);
    add_input(f, &t, HDI_TURN_QUERY_WEIGHT, norm ? norm->operands[1] : 0);
    add_input(f, &t, HDI_TURN_KEYS, key_norm ? key_norm->operands[0] : node_of(f, t.key_rope)->operands[0]);
    add_input(f, &t, HDI_TURN_KEY_WEIGHT, key_norm ? key_norm->operands[1] : 0);
    const hd_value rows = f->values[t.values].rows;
    add_input(f, &t, HDI_TURN_VALUES, rows ? rows : node_of(f, t.values)->operands[1]);
    *out = t;
    return stays(f, t.of[HDI_TURN_VALUES]);
}

/* The task, but for its tensors. */
static hdi_task turning_task(const fusion *f, const turning *t, hd_value id) {
    return (hdi_task){ .op = HDI_OP_ATTENTION, .attrs = &node_of(f, id)->attrs, .input_count = HDI_TURN_INPUTS,
                       .norm = t->norm ? &node_of(f, t->norm)->attrs : NULL, .turn = &node_of(f, t->rope)->attrs };
}

static void join_attention(fusion *f, hd_value id) {
    turning t;
    if (!find_turning(f, id, &t)) return;
    hdi_task task = turning_task(f, &t, id);
    for (uint32_t i = 0; i < HDI_TURN_INPUTS; i++)
        if (t.of[i]) task.inputs[i] = hdi_tensor_dense(0, node_of(f, t.of[i])->dtype, t.shapes[i]);
    task.out = hdi_tensor_dense(0, node_of(f, id)->dtype, node_of(f, id)->shape);
    if (!hdi_task_turns(f->schedule, &task)) return;
    absorb(f, t.norm ? t.norm : t.rope, id);
    absorb(f, t.keys, id);
    absorb(f, t.values, id);
    f->values[id].rope = t.rope;
}

hd_status hdi_fuse_turning(fusion *f, const hdi_node *node, hd_value id) {
    turning t;
    if (!find_turning(f, id, &t)) return hdi_fail(f->error, HD_STATUS_INTERNAL, "an attention lost its heads");
    hdi_task task = turning_task(f, &t, id);
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < HDI_TURN_INPUTS && !status; i++) {
        if (t.of[i]) status = hdi_fusion_shaped(f, t.of[i], t.shapes[i], &task.inputs[i]);
        else task.inputs[i].storage = HDI_NO_INDEX;
    }
    if (!status) status = hdi_fusion_save_old_rows(f, t.of[1], id);
    if (!status) status = hdi_fusion_save_old_rows(f, t.of[2], id);
    const bool rounded = !status && hdi_fusion_is_rounded(f, node, id);
    if (!status) status = hdi_fusion_tensor(f, rounded ? HD_F16 : node->dtype, node->shape, &task.out);
    f->values[id].view = task.out;
    add_values(f, &task, t.norm ? t.norm : t.rope, id);
    add_values(f, &task, t.key_norm ? t.key_norm : t.key_rope, id);
    add_values(f, &task, t.values, id);
    task.values[task.value_count++] = id;
    return status ? status : hdi_task_emit(f->schedule, f->program, &task, f->error);
}

void hdi_fusion_join_heads(fusion *f) {
    for (hd_value id = 1; id <= f->program->node_count && !f->schedule->options.no_fusion; id++)
        if (f->values[id].alive && node_of(f, id)->op == HDI_OP_ROPE) join_head(f, id);
    for (hd_value id = 1; id <= f->program->node_count && !f->schedule->options.no_fusion; id++)
        if (node_of(f, id)->op == HDI_OP_WRITE_ROWS && f->values[id].rope == 0) join_cast(f, id);
    for (hd_value id = 1; id <= f->program->node_count && !f->schedule->options.no_fusion; id++)
        if (f->values[id].alive && node_of(f, id)->op == HDI_OP_ATTENTION) join_attention(f, id);
}

hd_status hdi_fuse_head(fusion *f, const hdi_node *node, hd_value id) {
    const hd_value rope = f->values[id].rope, norm = f->values[rope].norm;
    const hdi_node *turn = node_of(f, rope), *before = norm != 0 ? node_of(f, norm) : NULL;
    hdi_task task = {
        .op = HDI_OP_ROPE, .attrs = &turn->attrs, .input_count = 5, .norm = before ? &before->attrs : NULL
    };
    add_values(f, &task, before ? norm : rope, id);
    task.values[task.value_count++] = id;
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
