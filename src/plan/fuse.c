/* fuse.c: nodes become tasks. Reshape, permute, slice and part move no data: they are views. Element-wise nodes are
 * held back as pending chains and join the chain, the matrix product or, as casts, the norm that makes their operand,
 * when they are its only reader; two products of one operand that such a chain joins become one; what products do to
 * their rows is in fuse_products.c, what becomes of heads in fuse_heads.c; everything else is emitted in the program's
 * order. Relies on program checks; decides nothing about kernels. */
#include "plan/fusion.h"

static hd_status fail_memory(fusion *f) {
    return hdi_fail(f->error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to plan %u nodes", f->program->node_count);
}

/* ---- which nodes live: outputs and written states, and all they need ---- */

/* Nodes come in descending order. */
static bool add_reader(fusion *f, hd_value norm, hd_value node) {
    if (!hdi_grow(f->schedule->arena.allocator, &f->readers, &f->reader_capacity, (size_t)f->reader_count + 1,
                  sizeof *f->readers)) return false;
    f->readers[f->reader_count++] = (norm_reader){ node, f->values[norm].readers };
    f->values[norm].readers = f->reader_count;
    return true;
}

static bool count_uses(fusion *f) {
    for (uint32_t i = 0; i < f->program->output_count; i++) {
        value_state *v = &f->values[f->program->outputs[i].value];
        v->alive = true;
        v->uses++;
        v->last_use = UINT32_MAX;
    }
    for (uint32_t id = f->program->node_count; id >= 1; id--) {
        const hdi_node *node = node_of(f, id);
        /* What the caller can name is there, even where nothing reads it. */
        if (hdi_op_writes_state(node->op) || hdi_op_is_source(node->op)) f->values[id].alive = true;
        if (!f->values[id].alive) continue;
        for (uint32_t i = 0; i < node->operand_count; i++) {
            if (node->operands[i] == 0) continue;
            value_state *operand = &f->values[node->operands[i]];
            operand->alive = true;
            operand->uses++;
            operand->last_use = HDI_MAX(operand->last_use, id);
            const bool norm = hdi_op_kind_of(node_of(f, node->operands[i])->op) == HDI_KIND_NORM;
            if (norm && !add_reader(f, node->operands[i], id)) return false;
        }
    }
    return true;
}

hd_value hdi_fusion_only_reader(const fusion *f, hd_value value, hd_value *out_read) {
    for (;;) {
        *out_read = value;
        if (f->values[value].uses != 1 || f->values[value].last_use == UINT32_MAX) return 0;
        const hd_value reader = f->values[value].last_use;
        if (node_of(f, reader)->op != HDI_OP_RESHAPE) return reader;
        value = reader;
    }
}

/* ---- pending tasks ---- */

/* The value may show rows of the storage's state, if it is one. */
static bool add_witness(fusion *f, uint32_t storage, hd_value value) {
    if (storage == HDI_NO_INDEX || f->schedule->storages[storage].kind != HDI_STORAGE_STATE) return true;
    const hd_allocator *allocator = f->schedule->arena.allocator;
    if (!hdi_grow(allocator, &f->witnesses, &f->witnesses_capacity, (size_t)storage + 1, sizeof *f->witnesses))
        return false;
    witnesses *all = &f->witnesses[storage];
    if (all->count > 0 && all->values[all->count - 1] == value) return true;
    if (!hdi_grow(allocator, &all->values, &all->capacity, (size_t)all->count + 1, sizeof *all->values)) return false;
    all->values[all->count++] = value;
    return true;
}

/* Keeps the task as the value's, to be emitted later; false without memory. */
static bool hold(fusion *f, const hdi_task *task, hd_value value) {
    const hd_allocator *allocator = f->schedule->arena.allocator;
    const size_t count = (size_t)f->task_count + (f->unused_count == 0);
    if (!hdi_grow(allocator, &f->tasks, &f->task_capacity, count, sizeof *f->tasks) ||
        !hdi_grow(allocator, &f->unused, &f->unused_capacity, count, sizeof *f->unused)) return false;
    const uint32_t at = f->unused_count > 0 ? f->unused[--f->unused_count] : f->task_count++;
    f->tasks[at] = *task;
    f->values[value].pending = at;
    for (uint32_t i = 0; i < task->input_count; i++)
        if (!add_witness(f, task->inputs[i].storage, value)) return false;
    for (uint32_t i = 0; i < task->chain.input_count; i++)
        if (!add_witness(f, task->chain.inputs[i].storage, value)) return false;
    return true;
}

const hdi_task *hdi_fusion_let_go(fusion *f, hd_value value) {
    const uint32_t at = f->values[value].pending;
    f->values[value].pending = HDI_NO_TASK;
    f->unused[f->unused_count++] = at; /* there is room for every place */
    return &f->tasks[at];
}

/* Emits the value's pending task, if it has one: from here on its storage holds it. */
static hd_status settle(fusion *f, hd_value value) {
    if (f->values[value].pending == HDI_NO_TASK) return HD_OK;
    return hdi_task_emit(f->schedule, f->program, hdi_fusion_let_go(f, value), f->error);
}

/* In the program's order what waits long for its reader would keep all that it reads for as long. */
static bool is_near(const fusion *f, hd_value value) {
    enum { NEAR = 32 };
    return !f->schedule->options.in_order || f->values[value].last_use - value <= NEAR;
}

/* Finishes a task whose result is `value`: held back when a later element-wise node may still join it. */
static hd_status finish(fusion *f, hdi_task *task, hd_value value, bool may_wait) {
    f->values[value].view = task->out;
    if (!may_wait || f->schedule->options.no_fusion || f->values[value].uses != 1 || !is_near(f, value))
        return hdi_task_emit(f->schedule, f->program, task, f->error);
    return hold(f, task, value) ? HD_OK : fail_memory(f);
}

/* ---- tensors ---- */

hd_status hdi_fusion_tensor(fusion *f, hd_dtype dtype, hd_shape shape, hdi_tensor *out) {
    uint32_t storage = hdi_schedule_storage(f->schedule, HDI_STORAGE_SCRATCH, hd_tensor_bytes(dtype, shape), NULL);
    if (storage == HDI_NO_INDEX) return fail_memory(f);
    *out = hdi_tensor_dense(storage, dtype, shape);
    return HD_OK;
}

/* A task that copies `from` to `to`, either of which may be strided. */
static hdi_task copy_task(const hdi_tensor *from, const hdi_tensor *to, hd_value value) {
    hdi_task task = { .op = HDI_OP_COPY, .out = *to, .values = { value }, .value_count = 1 };
    task.chain.inputs[0] = *from;
    task.chain.input_count = 1;
    task.chain.steps[0] = (hdi_step){ HDI_STEP_COPY, 0, HDI_SOURCE_NONE, HDI_SOURCE_NONE, to->dtype, 0 };
    task.chain.step_count = 1;
    return task;
}

/* A dense copy of a view, in memory of its own. */
static hd_status copy_of(fusion *f, const hdi_tensor *view, hd_value value, hdi_tensor *out) {
    const hd_status status = hdi_fusion_tensor(f, view->dtype, view->shape, out);
    if (status) return status;
    const hdi_task task = copy_task(view, out, value);
    return hdi_task_emit(f->schedule, f->program, &task, f->error);
}

hd_status hdi_fusion_dense(fusion *f, hd_value value, hdi_tensor *out) {
    hd_status status = settle(f, value);
    hdi_tensor *view = &f->values[value].view;
    *out = *view;
    if (status || (hdi_tensor_is_dense(view) && view->first == 0)) return status;
    status = copy_of(f, view, value, out);
    *view = *out; /* later readers take the copy too */
    return status;
}

/* The view repeated to a larger shape. */
static hdi_tensor broadcast(hdi_tensor view, hd_shape shape) {
    hdi_tensor wide = view;
    wide.shape = shape;
    for (uint32_t i = 0; i < shape.rank; i++) {
        uint32_t missing = shape.rank - view.shape.rank;
        bool repeats = i < missing || view.shape.dims[i - missing] == 1;
        wide.strides[i] = repeats ? 0 : view.strides[i - missing];
    }
    return wide;
}

/* ---- chains ---- */

static bool tensors_equal(const hdi_tensor *a, const hdi_tensor *b) {
    return a->storage == b->storage && a->dtype == b->dtype && a->first == b->first &&
           hdi_shape_equal(a->shape, b->shape) &&
           memcmp(a->strides, b->strides, a->shape.rank * sizeof a->strides[0]) == 0;
}

/* Makes `tensor` a source of the chain; HDI_SOURCE_NONE where there is no room. An epilogue's source 0 is taken. */
static uint8_t chain_input(hdi_chain *chain, const hdi_tensor *tensor, bool epilogue) {
    for (uint32_t i = epilogue; i < chain->input_count; i++)
        if (tensors_equal(&chain->inputs[i], tensor)) return (uint8_t)i;
    if (chain->input_count == HDI_CHAIN_INPUTS) return HDI_SOURCE_NONE;
    chain->inputs[chain->input_count] = *tensor;
    return (uint8_t)chain->input_count++;
}

/* Appends all of `other` (an element-wise chain) to `chain`; returns the source of its result or HDI_SOURCE_NONE. */
static uint8_t chain_join(hdi_chain *chain, const hdi_chain *other, bool epilogue) {
    uint8_t sources[HDI_CHAIN_INPUTS + HDI_CHAIN_STEPS];
    if (chain->step_count + other->step_count > HDI_CHAIN_STEPS) return HDI_SOURCE_NONE;
    for (uint32_t i = 0; i < other->input_count; i++) {
        sources[i] = chain_input(chain, &other->inputs[i], epilogue);
        if (sources[i] == HDI_SOURCE_NONE) return HDI_SOURCE_NONE;
    }
    uint32_t attr_base = chain->attr_count;
    memcpy(chain->attrs + attr_base, other->attrs, other->attr_count * sizeof other->attrs[0]);
    chain->attr_count += other->attr_count;
    for (uint32_t i = 0; i < other->step_count; i++) {
        hdi_step step = other->steps[i];
        if (step.a != HDI_SOURCE_NONE) step.a = sources[step.a];
        if (step.b != HDI_SOURCE_NONE) step.b = sources[step.b];
        if (step.c != HDI_SOURCE_NONE) step.c = sources[step.c];
        step.attr_first += attr_base;
        sources[HDI_CHAIN_INPUTS + i] = (uint8_t)(HDI_CHAIN_INPUTS + chain->step_count);
        chain->steps[chain->step_count++] = step;
    }
    return (uint8_t)(HDI_CHAIN_INPUTS + chain->step_count - 1);
}

static uint32_t times_used_by(const hdi_node *node, hd_value value) {
    uint32_t times = 0;
    for (uint32_t i = 0; i < node->operand_count; i++) times += node->operands[i] == value;
    return times;
}

/* May the operand's pending task become part of `node`'s chain? */
static bool joinable(const fusion *f, const hdi_node *node, hd_value operand) {
    const value_state *v = &f->values[operand];
    return v->pending != HDI_NO_TASK && v->uses == times_used_by(node, operand) &&
           hdi_shape_equal(v->view.shape, node->shape);
}

/* Adds the node's own step; sources of its operands are in `sources`. False where there is no room. */
static bool append_step(hdi_chain *chain, const hdi_node *node, const uint8_t *sources) {
    hdi_step step = { 0 };
    float attrs[4];
    uint32_t attr_count = 0;
    if (chain->step_count == HDI_CHAIN_STEPS || !hdi_op_step(node->op, &node->attrs, &step, attrs, &attr_count))
        return false;
    step.a = sources[0];
    step.b = node->operand_count > 1 ? sources[1] : HDI_SOURCE_NONE;
    step.c = node->operand_count > 2 ? sources[2] : HDI_SOURCE_NONE;
    step.type = node->dtype;
    step.attr_first = chain->attr_count;
    memcpy(chain->attrs + chain->attr_count, attrs, attr_count * sizeof attrs[0]);
    chain->attr_count += attr_count;
    chain->steps[chain->step_count++] = step;
    return true;
}

static bool is_product(hdi_op op) { return op == HDI_OP_MATMUL || op == HDI_OP_MATMUL_EXPERTS; }

/* Are both products of one A, and their Bs alike, so that `other` may become chain source 1 of `task`? */
static bool pairs(const hdi_task *task, const hdi_task *other) {
    if (!is_product(task->op) || other->op != task->op || task->pair || other->pair) return false;
    if (task->op == HDI_OP_MATMUL_EXPERTS && !tensors_equal(&task->inputs[2], &other->inputs[2])) return false;
    if (task->chain.input_count > 1 || other->chain.step_count > 0 || task->attrs->ints[0] != other->attrs->ints[0])
        return false;
    const bool same_norm = task->a_norm.present == other->a_norm.present &&
                           task->a_norm.weighted == other->a_norm.weighted && task->a_norm.eps == other->a_norm.eps &&
                           (!task->a_norm.weighted || tensors_equal(&task->a_norm.weight, &other->a_norm.weight));
    return same_norm && tensors_equal(&task->inputs[0], &other->inputs[0]);
}

/* The operand whose pending task the node's chain grows on: a matrix product first, since only it saves a whole pass.
 * Of two the one with a chain, where the other one may join it; else the one without, which reads what the other has
 * made, so that of a long sum of products no more than two are there at once. */
static hd_value base_operand(const fusion *f, const hdi_node *node) {
    enum { ELEMENTS, BARE, CHAINED, KINDS };
    hd_value found[KINDS] = { 0 };
    for (uint32_t i = node->operand_count; i-- > 0;) {
        if (!joinable(f, node, node->operands[i])) continue;
        const hdi_task *task = &f->tasks[f->values[node->operands[i]].pending];
        found[task->op == HDI_OP_COPY ? ELEMENTS : task->chain.step_count == 0 ? BARE : CHAINED] = node->operands[i];
    }
    const bool both = found[BARE] && found[CHAINED];
    if (both && !pairs(&f->tasks[f->values[found[CHAINED]].pending], &f->tasks[f->values[found[BARE]].pending]))
        return found[BARE];
    return found[CHAINED] ? found[CHAINED] : found[BARE] ? found[BARE] : found[ELEMENTS];
}

static uint8_t join_pair(hdi_task *task, const hdi_task *other) {
    task->pair = true;
    task->inputs[task->input_count++] = other->inputs[1];
    return chain_input(&task->chain, &other->out, true);
}

/* Builds the node's task on top of `base` (0: on nothing). Operands that cannot join must be settled first by the
 * caller when `settled` is set. False where it does not fit; nothing was changed then. */
static bool grow_task(fusion *f, hd_value id, hd_value base, bool join_others, hdi_task *out, hd_value *joined,
                      uint32_t *out_joined_count) {
    const hdi_node *node = node_of(f, id);
    hdi_task task = { .op = HDI_OP_COPY };
    uint32_t joined_count = 0;
    if (base) {
        task = f->tasks[f->values[base].pending];
        joined[joined_count++] = base;
    }
    bool epilogue = task.op != HDI_OP_COPY;
    if (epilogue && task.chain.input_count == 0) { /* source 0 is the product itself */
        task.chain.inputs[0] = task.out;
        task.chain.input_count = 1;
    }
    uint8_t base_source = (uint8_t)(task.chain.step_count ? HDI_CHAIN_INPUTS + task.chain.step_count - 1 : 0);
    uint8_t sources[3] = { HDI_SOURCE_NONE, HDI_SOURCE_NONE, HDI_SOURCE_NONE };
    for (uint32_t i = 0; i < node->operand_count; i++) {
        hd_value operand = node->operands[i];
        const value_state *v = &f->values[operand];
        hdi_tensor wide = broadcast(v->view, node->shape);
        const hdi_task *other = v->pending != HDI_NO_TASK ? &f->tasks[v->pending] : NULL;
        if (operand == base) sources[i] = base_source;
        else if (i > 0 && operand == node->operands[i - 1]) sources[i] = sources[i - 1];
        else if (join_others && other && (other->op == HDI_OP_COPY || pairs(&task, other)) &&
                 joinable(f, node, operand) && task.value_count + other->value_count < HDI_TASK_VALUES) {
            const uint32_t shared = other->a_norm.present; /* the norm that both begin with */
            sources[i] =
                other->op == HDI_OP_COPY ? chain_join(&task.chain, &other->chain, epilogue) : join_pair(&task, other);
            joined[joined_count++] = operand;
            memcpy(task.values + task.value_count, other->values + shared,
                   (other->value_count - shared) * sizeof other->values[0]);
            task.value_count += other->value_count - shared;
        } else sources[i] = chain_input(&task.chain, &wide, epilogue);
        if (sources[i] == HDI_SOURCE_NONE) return false;
    }
    if (task.value_count == HDI_TASK_VALUES || !append_step(&task.chain, node, sources)) return false;
    task.values[task.value_count++] = id;
    task.out = hdi_tensor_dense(task.out.storage, node->dtype, node->shape);
    if (!hdi_task_fits(f->schedule, &task)) return false;
    *out = task;
    *out_joined_count = joined_count;
    return true;
}

static hd_status fuse_elementwise(fusion *f, const hdi_node *node, hd_value id) {
    hdi_task task;
    hd_value joined[4];
    uint32_t joined_count = 0;
    hd_value base = f->schedule->options.no_fusion ? 0 : base_operand(f, node);
    bool grown = base && grow_task(f, id, base, true, &task, joined, &joined_count);
    if (base && !grown) grown = grow_task(f, id, base, false, &task, joined, &joined_count);
    for (uint32_t i = 0; i < node->operand_count; i++) {
        bool inside = false;
        for (uint32_t k = 0; grown && k < joined_count; k++) inside |= joined[k] == node->operands[i];
        hd_status status = inside ? HD_OK : settle(f, node->operands[i]);
        if (status) return status;
    }
    if (!grown && !grow_task(f, id, 0, false, &task, joined, &joined_count))
        return hdi_fail(f->error, HD_STATUS_UNSUPPORTED,
                        "%s of shapes that need more push constants than the device has", hdi_op_get(node->op).name);
    for (uint32_t k = 0; k < joined_count; k++) hdi_fusion_let_go(f, joined[k]);
    hd_status status = hdi_fusion_tensor(f, node->dtype, node->shape, &task.out);
    return status ? status : finish(f, &task, id, true);
}

/* ---- views ---- */

/* A reshape needs its operand dense, but not from the storage's start, and not where it splits the axes of windows. */
static hd_status view_reshape(fusion *f, const hdi_node *node, hd_value id) {
    hd_status status = settle(f, node->operands[0]);
    hdi_tensor from = f->values[node->operands[0]].view;
    const bool splits = node_of(f, node->operands[0])->op == HDI_OP_WINDOWS;
    if (!status && splits && hdi_tensor_split(&from, node->shape, &f->values[id].view)) return HD_OK;
    if (!status && !hdi_tensor_is_dense(&from)) status = hdi_fusion_dense(f, node->operands[0], &from);
    uint64_t first = from.first;
    f->values[id].view = hdi_tensor_dense(from.storage, from.dtype, node->shape);
    f->values[id].view.first = first;
    return status;
}

static hd_status view_permute(fusion *f, const hdi_node *node, hd_value id) {
    hd_status status = settle(f, node->operands[0]);
    hdi_tensor from = f->values[node->operands[0]].view, view = from;
    view.shape = node->shape;
    for (uint32_t i = 0; i < node->shape.rank; i++) view.strides[i] = from.strides[node->attrs.ints[i]];
    f->values[id].view = view;
    return status;
}

static hd_status view_slice(fusion *f, const hdi_node *node, hd_value id) {
    hd_status status = settle(f, node->operands[0]);
    hdi_tensor view = f->values[node->operands[0]].view;
    for (uint32_t i = 0; i < node->shape.rank; i++) view.first += (uint64_t)(node->attrs.ints[i] * view.strides[i]);
    view.shape = node->shape;
    f->values[id].view = view;
    return status;
}

/* The window's elements lie along an axis of their own; windows may share elements. */
static hd_status view_windows(fusion *f, const hdi_node *node, hd_value id) {
    hd_status status = settle(f, node->operands[0]);
    hdi_tensor view = f->values[node->operands[0]].view;
    int64_t *stride = &view.strides[node->attrs.ints[0]];
    view.strides[node->shape.rank - 1] = *stride * node->attrs.ints[3];
    *stride *= node->attrs.ints[2];
    view.shape = node->shape;
    f->values[id].view = view;
    return status;
}

static hd_status view_part(fusion *f, const hdi_node *node, hd_value id) {
    hdi_tensor from;
    const hd_status status = hdi_fusion_dense(f, node->operands[0], &from);
    f->values[id].view = hdi_tensor_dense(from.storage, node->dtype, node->shape);
    f->values[id].view.first = (uint64_t)node->attrs.ints[0] / hdi_dtype(node->dtype).block_bytes;
    return status;
}

/* ---- joining and padding: copies into parts of one tensor ---- */

/* `whole` from index begin[] on, with `shape`; where it is one dense run at an aligned place, a storage of its own, so
 * that copies into neighbouring parts need no barrier between them. */
static hd_status part_of(fusion *f, const hdi_tensor *whole, const int64_t *begin, hd_shape shape, hdi_tensor *out) {
    *out = *whole;
    out->shape = shape;
    for (uint32_t i = 0; i < shape.rank; i++) out->first += (uint64_t)(begin[i] * whole->strides[i]);
    uint64_t offset = hd_dtype_bytes(out->dtype, out->first);
    uint64_t align = HDI_MAX(f->schedule->caps.binding_align, UINT64_C(4));
    if (!hdi_tensor_is_dense(out) || offset % align != 0 || hd_tensor_bytes(out->dtype, shape) % 4 != 0) return HD_OK;
    uint32_t storage = hdi_schedule_storage(f->schedule, HDI_STORAGE_SCRATCH, hd_tensor_bytes(out->dtype, shape), NULL);
    if (storage == HDI_NO_INDEX) return fail_memory(f);
    f->schedule->storages[storage].parent = whole->storage;
    f->schedule->storages[storage].parent_offset = offset;
    *out = hdi_tensor_dense(storage, out->dtype, shape);
    return HD_OK;
}

/* What the program computed in memory of its own is moved into `whole` before it is computed: its storage becomes the
 * part of that it would be copied to. */
static bool move_into(fusion *f, hd_value from, const hdi_tensor *whole, const int64_t *begin) {
    const hdi_tensor *view = &f->values[from].view;
    hdi_storage *storage = &f->schedule->storages[view->storage];
    hdi_tensor part = *whole;
    part.shape = view->shape;
    for (uint32_t i = 0; i < part.shape.rank; i++) part.first += (uint64_t)(begin[i] * whole->strides[i]);
    const uint64_t bytes = hd_tensor_bytes(view->dtype, view->shape),
                   offset = hd_dtype_bytes(part.dtype, part.first);
    const bool own = storage->kind == HDI_STORAGE_SCRATCH && storage->parent == HDI_NO_INDEX;
    if (!own || storage->bytes != bytes) return false;
    if (view->first != 0 || !hdi_tensor_is_dense(view) || !hdi_tensor_is_dense(&part)) return false;
    if (bytes % 4 != 0 || offset % hdi_schedule_alignment(f->schedule) != 0) return false;
    storage->parent = whole->storage;
    storage->parent_offset = offset;
    return true;
}

static hd_status copy_into(fusion *f, hd_value from, const hdi_tensor *whole, const int64_t *begin, hd_value id) {
    hd_status status = settle(f, from);
    hdi_tensor part;
    if (!status) status = part_of(f, whole, begin, f->values[from].view.shape, &part);
    if (status) return status;
    hdi_task task = copy_task(&f->values[from].view, &part, id);
    return hdi_task_emit(f->schedule, f->program, &task, f->error);
}

static hd_status fuse_concat(fusion *f, const hdi_node *node, hd_value id) {
    hdi_tensor out;
    hd_status status = hdi_fusion_tensor(f, node->dtype, node->shape, &out);
    int64_t begin[HD_MAX_RANK] = { 0 }, axis = node->attrs.ints[0];
    for (uint32_t i = 0; i < node->operand_count && !status; i++) {
        status = settle(f, node->operands[i]);
        if (!status && !move_into(f, node->operands[i], &out, begin))
            status = copy_into(f, node->operands[i], &out, begin, id);
        begin[axis] += node_of(f, node->operands[i])->shape.dims[axis];
    }
    f->values[id].view = out;
    return status;
}

static hd_status fuse_pad(fusion *f, const hdi_node *node, hd_value id) {
    hdi_tensor out;
    hd_status status = hdi_fusion_tensor(f, node->dtype, node->shape, &out);
    if (!status) status = hdi_task_fill(f->schedule, f->program, id, &out, node->attrs.floats[0], f->error);
    if (!status) status = copy_into(f, node->operands[0], &out, node->attrs.ints, id);
    f->values[id].view = out;
    return status;
}

/* ---- states ---- */

hd_status hdi_fusion_save_old_rows(fusion *f, hd_value state, hd_value writer) {
    const uint32_t storage = f->values[state].view.storage;
    hd_status status = HD_OK;
    if (storage >= f->witnesses_capacity) return HD_OK;
    witnesses *all = &f->witnesses[storage];
    for (uint32_t i = 0; i < all->count && !status; i++) {
        const hd_value v = all->values[i];
        const hdi_tensor view = f->values[v].view;
        status = settle(f, v);
        const bool is_view = hdi_op_is_view(node_of(f, v)->op);
        if (!status && is_view && view.storage == storage && f->values[v].last_use > writer)
            status = copy_of(f, &view, v, &f->values[v].view);
    }
    all->count = 0; /* nobody reads them later */
    return status;
}

hd_status hdi_fusion_shaped(fusion *f, hd_value value, hd_shape shape, hdi_tensor *out) {
    hd_status status = settle(f, value);
    *out = f->values[value].view;
    if (!status && !hdi_tensor_is_dense(out)) status = hdi_fusion_dense(f, value, out);
    const uint64_t first = out->first;
    *out = hdi_tensor_dense(out->storage, out->dtype, shape);
    out->first = first;
    return status;
}

static hd_status fuse_write_rows(fusion *f, const hdi_node *node, hd_value id) {
    const hd_value rows = f->values[id].rows != 0 ? f->values[id].rows : node->operands[1];
    hdi_task task = { .op = node->op, .attrs = &node->attrs, .input_count = node->operand_count - 1, .values = { id },
                      .value_count = 1 };
    hd_status status = hdi_fusion_shaped(f, rows, node_of(f, node->operands[1])->shape, &task.inputs[0]);
    for (uint32_t i = 2; i < node->operand_count && !status; i++)
        status = hdi_fusion_dense(f, node->operands[i], &task.inputs[i - 1]); /* position, pages */
    if (!status) status = hdi_fusion_save_old_rows(f, node->operands[0], id);
    task.out = f->values[node->operands[0]].view;
    f->values[id].view = task.out;
    return status ? status : hdi_task_emit(f->schedule, f->program, &task, f->error);
}

/* May a chain that was held back store into `to` at once? It is element-wise, and what it reads of the storage it reads
 * where it writes. */
static bool may_store_to(const hdi_task *task, const hdi_tensor *to) {
    if (task->op != HDI_OP_COPY) return false;
    for (uint32_t i = 0; i < task->chain.input_count; i++) {
        const hdi_tensor *input = &task->chain.inputs[i];
        if (input->storage != to->storage) continue;
        if (input->first != 0 || !hdi_tensor_is_dense(input) || !hdi_shape_equal(input->shape, to->shape)) return false;
    }
    return true;
}

/* The chain that makes the value stores into the state where it may; else a copy follows, by way of another one where
 * the value is a view of the state itself. */
static hd_status fuse_assign(fusion *f, const hdi_node *node, hd_value id) {
    const hdi_tensor to = f->values[node->operands[0]].view;
    value_state *value = &f->values[node->operands[1]];
    f->values[id].view = to;
    if (value->pending != HDI_NO_TASK && may_store_to(&f->tasks[value->pending], &to)) {
        hdi_task task = *hdi_fusion_let_go(f, node->operands[1]);
        const hd_status status = hdi_fusion_save_old_rows(f, node->operands[0], id);
        task.out = value->view = to;
        return status ? status : hdi_task_emit(f->schedule, f->program, &task, f->error);
    }
    hd_status status = settle(f, node->operands[1]);
    hdi_tensor from = value->view;
    if (!status && from.storage == to.storage) status = copy_of(f, &value->view, id, &from);
    if (!status) status = hdi_fusion_save_old_rows(f, node->operands[0], id);
    hdi_task task = copy_task(&from, &to, id);
    return status ? status : hdi_task_emit(f->schedule, f->program, &task, f->error);
}

/* ---- the rest ---- */

static hd_status fuse_other(fusion *f, const hdi_node *node, hd_value id) {
    hdi_task task = { .op = node->op, .attrs = &node->attrs, .values = { id }, .value_count = 1 };
    const uint32_t next = f->values[id].last_use;
    const hdi_op reader = next != UINT32_MAX ? node_of(f, next)->op : HDI_OP_NONE;
    /* as it stores, where only the cast, or the sum, reads it */
    const bool rounds = (hdi_kernels_round(node->op) && reader == HDI_OP_CAST) ||
                        (node->op == HDI_OP_NORM_GRADIENT && reader == HDI_OP_ADD);
    const bool product = is_product(node->op), dense = node->op == HDI_OP_MATMUL;
    hd_status status = dense ? hdi_fusion_round_rows(f, node) : HD_OK;
    for (uint32_t i = 0; i < node->operand_count && !status; i++) {
        hdi_tensor *input = &task.inputs[task.input_count++];
        if (node->operands[i] == 0) *input = (hdi_tensor){ .storage = HDI_NO_INDEX };
        else if (hdi_kernels_take_view(node->op, i)) {
            status = settle(f, node->operands[i]);
            *input = f->values[node->operands[i]].view;
            if (!status && hdi_tensor_overlaps(input)) status = hdi_fusion_dense(f, node->operands[i], input);
        } else status = hdi_fusion_dense(f, node->operands[i], input);
    }
    if (!status && node->op == HDI_OP_RMS_NORM && hdi_fusion_leave_norm(f, node, id, &task)) return HD_OK;
    if (!status && product && f->values[node->operands[0]].left_norm.present) {
        task.a_norm = f->values[node->operands[0]].left_norm;
        task.values[0] = node->operands[0];
        task.values[task.value_count++] = id;
    }
    task.a_coded = dense && f->values[node->operands[0]].coded;
    task.a_rounded = dense && task.inputs[0].dtype != node_of(f, node->operands[0])->dtype;
    const bool rounded = !status && hdi_fusion_is_rounded(f, node, id);
    if (!status) status = hdi_fusion_tensor(f, rounded ? HD_F16 : node->dtype, node->shape, &task.out);
    if (!status && rounded && hdi_op_kind_of(node->op) == HDI_KIND_NORM) {
        task.chain.inputs[0] = hdi_tensor_dense(task.out.storage, node->dtype, node->shape);
        task.chain.input_count = 1;
        hdi_chain_add_halves(&task.chain);
    }
    /* Of products with experts those of few rows take a chain. */
    const bool waits = dense || rounds || (product && !status && hdi_task_fits(f->schedule, &task));
    return status ? status : finish(f, &task, id, waits);
}

static hd_status fuse_source(fusion *f, const hdi_node *node, hd_value id) {
    hdi_storage_kind kind = node->op == HDI_OP_INPUT ? HDI_STORAGE_INPUT : HDI_STORAGE_STATE;
    const char *name = hdi_arena_text(&f->schedule->arena, node->name, strlen(node->name));
    const uint64_t bytes = hd_tensor_bytes(node->dtype, node->shape);
    const uint32_t storage = name ? hdi_schedule_storage(f->schedule, kind, bytes, name) : HDI_NO_INDEX;
    if (storage == HDI_NO_INDEX) return fail_memory(f);
    const hdi_tensor view = f->values[id].view = hdi_tensor_dense(storage, node->dtype, node->shape);
    const bool across = kind == HDI_STORAGE_INPUT && !f->schedule->caps.host_visible && bytes <= HDI_ACROSS_BYTES;
    return across && f->values[id].uses > HDI_ACROSS_USES ? copy_of(f, &view, id, &f->values[id].view) : HD_OK;
}

static hd_status fuse_view(fusion *f, const hdi_node *node, hd_value id) {
    hd_status status;
    switch (node->op) {
    case HDI_OP_RESHAPE: status = view_reshape(f, node, id); break;
    case HDI_OP_PERMUTE: status = view_permute(f, node, id); break;
    case HDI_OP_SLICE: status = view_slice(f, node, id); break;
    case HDI_OP_WINDOWS: status = view_windows(f, node, id); break;
    default: status = view_part(f, node, id); break;
    }
    return status || add_witness(f, f->values[id].view.storage, id) ? status : fail_memory(f);
}

static hd_status fuse_node(fusion *f, const hdi_node *node, hd_value id) {
    if (f->values[id].absorbed) return HD_OK;
    if (f->values[id].rope != 0)
        return node->op == HDI_OP_ATTENTION ? hdi_fuse_turning(f, node, id) : hdi_fuse_head(f, node, id);
    switch (node->op) {
    case HDI_OP_INPUT: case HDI_OP_STATE: return fuse_source(f, node, id);
    case HDI_OP_RESHAPE: case HDI_OP_PERMUTE: case HDI_OP_SLICE: case HDI_OP_WINDOWS: case HDI_OP_PART:
        return fuse_view(f, node, id);
    case HDI_OP_CONCAT: return fuse_concat(f, node, id);
    case HDI_OP_PAD: return fuse_pad(f, node, id);
    case HDI_OP_WRITE_ROWS: return fuse_write_rows(f, node, id);
    case HDI_OP_ASSIGN: return fuse_assign(f, node, id);
    default: break;
    }
    hdi_step step;
    float attrs[4];
    uint32_t attr_count;
    const bool quantised = node->operand_count > 0 && node->operands[0] &&
                           hdi_dtype_is_quantised(node_of(f, node->operands[0])->dtype);
    if (!quantised && hdi_op_step(node->op, &node->attrs, &step, attrs, &attr_count))
        return fuse_elementwise(f, node, id);
    return fuse_other(f, node, id);
}

/* An output takes over the storage that its value was made in, or gets a copy where that is shared or a view. */
static hd_status place_output(fusion *f, const hdi_output *output) {
    hd_status status = settle(f, output->value);
    hdi_tensor view = f->values[output->value].view;
    const char *name = hdi_arena_text(&f->schedule->arena, output->name, strlen(output->name));
    if (!name) return fail_memory(f);
    if (status) return status;
    hdi_storage *storage = &f->schedule->storages[view.storage];
    uint64_t bytes = hd_tensor_bytes(view.dtype, view.shape);
    if (storage->kind == HDI_STORAGE_SCRATCH && storage->parent == HDI_NO_INDEX && hdi_tensor_is_dense(&view) &&
        view.first == 0 && storage->bytes == bytes) {
        storage->kind = HDI_STORAGE_OUTPUT;
        storage->name = name;
        return HD_OK;
    }
    uint32_t copy = hdi_schedule_storage(f->schedule, HDI_STORAGE_OUTPUT, bytes, name);
    if (copy == HDI_NO_INDEX) return fail_memory(f);
    hdi_tensor to = hdi_tensor_dense(copy, view.dtype, view.shape);
    hdi_task task = copy_task(&view, &to, output->value);
    return hdi_task_emit(f->schedule, f->program, &task, f->error);
}

static void end(fusion *f) {
    const hd_allocator *allocator = f->schedule->arena.allocator;
    for (uint32_t i = 0; i < f->witnesses_capacity; i++)
        hdi_free(allocator, f->witnesses[i].values, f->witnesses[i].capacity * sizeof *f->witnesses[i].values);
    hdi_free(allocator, f->witnesses, f->witnesses_capacity * sizeof *f->witnesses);
    hdi_free(allocator, f->readers, f->reader_capacity * sizeof *f->readers);
    hdi_free(allocator, f->tasks, f->task_capacity * sizeof *f->tasks);
    hdi_free(allocator, f->unused, f->unused_capacity * sizeof *f->unused);
    hdi_free(allocator, f->values, ((size_t)f->program->node_count + 1) * sizeof *f->values);
}

hd_status hdi_schedule_fuse(hdi_schedule *schedule, const hd_program *program, hd_error *error) {
    const hd_allocator *allocator = schedule->arena.allocator;
    fusion f = { .schedule = schedule, .program = program, .error = error };
    f.values = hdi_alloc(allocator, ((size_t)program->node_count + 1) * sizeof *f.values);
    if (!f.values) return fail_memory(&f);
    for (uint32_t id = 0; id <= program->node_count; id++) f.values[id].pending = HDI_NO_TASK;
    hd_status status = count_uses(&f) ? HD_OK : fail_memory(&f);
    if (!status) hdi_fusion_join_heads(&f);
    for (hd_value id = 1; id <= program->node_count && !status; id++)
        if (f.values[id].alive) {
            status = fuse_node(&f, node_of(&f, id), id);
            if (status && error && error->op[0] == 0)
                memcpy(error->op, hdi_op_get(node_of(&f, id)->op).name,
                       strlen(hdi_op_get(node_of(&f, id)->op).name) + 1);
        }
    for (uint32_t i = 0; i < program->output_count && !status; i++) status = place_output(&f, &program->outputs[i]);
    end(&f);
    return status;
}
