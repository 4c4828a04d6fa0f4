/* step.c: one task becomes steps: asks the kernels room for launches and gives each its label. */
#include "kernels/exact.h"
#include "plan/task.h"

enum { MOST_LOOKED_AT = 32 }; /* launches of a task */

/* "v5 matmul + v6 relu", or of a piece "v5 rows 0-383 matmul", in the plan's arena; NULL without memory. Values are
 * those of the user's program. */
static const char *label_of(hdi_schedule *schedule, const hd_program *program, const hd_value *values, uint32_t count) {
    hdi_text text = { .allocator = schedule->arena.allocator };
    for (uint32_t i = 0; i < count; i++) {
        const hdi_node *node = hdi_program_node(program, values[i]);
        hdi_text_add(&text, "%s", i ? " + " : "");
        if (node) hdi_origin_print(program, values[i], &text);
        else hdi_text_add(&text, "v%u", values[i]);
        hdi_text_add(&text, " %s", node ? hdi_op_get(node->op).name : "copy");
    }
    const char *label = text.failed ? NULL : hdi_arena_text(&schedule->arena, text.bytes ? text.bytes : "", text.count);
    hdi_text_free(&text);
    return label;
}

static hdi_schedule_step *new_step(hdi_schedule *schedule) {
    if (schedule->step_count == HDI_MOST_LAUNCHES ||
        !hdi_grow(schedule->arena.allocator, &schedule->steps, &schedule->step_capacity,
                  (size_t)schedule->step_count + 1, sizeof *schedule->steps))
        return NULL;
    hdi_schedule_step *step = &schedule->steps[schedule->step_count++];
    memset(step, 0, sizeof *step);
    return step;
}

static hd_status no_memory(hd_error *error) {
    return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a step of the plan");
}

/* Why new_step gave none. */
static hd_status no_step(const hdi_schedule *schedule, hd_error *error) {
    if (schedule->step_count < HDI_MOST_LAUNCHES) return no_memory(error);
    return hdi_fail(error, HD_STATUS_LIMIT, "the plan has more than %u steps; make several of it", HDI_MOST_LAUNCHES);
}

/* ---- what the kernels room asks back ---- */

static uint32_t temporary(void *user, uint64_t bytes) {
    return hdi_schedule_storage(user, HDI_STORAGE_SCRATCH, bytes, NULL);
}

static uint32_t constant(void *user, const void *data, uint64_t bytes) {
    hdi_schedule *schedule = user;
    /* equal tables are shared: rope's is the same in every layer */
    const uint32_t known = hdi_names_find(&schedule->constants, data, (size_t)bytes);
    if (known) return known - 1;
    void *copy = hdi_arena_alloc(&schedule->arena, (size_t)bytes);
    uint32_t storage = copy ? hdi_schedule_storage(schedule, HDI_STORAGE_CONSTANT, bytes, NULL) : HDI_NO_INDEX;
    if (storage == HDI_NO_INDEX) return HDI_NO_INDEX;
    memcpy(copy, data, (size_t)bytes);
    schedule->storages[storage].data = copy;
    return hdi_names_add(&schedule->constants, copy, (size_t)bytes, storage + 1) ? storage : HDI_NO_INDEX;
}

/* One storage for all, as large as the largest asks for, filled before anything else: a run that was given up may have
 * left anything in it. */
static uint32_t zeros(void *user, uint64_t bytes) {
    hdi_schedule *schedule = user;
    if (schedule->zeros == 0) {
        const uint32_t storage = hdi_schedule_storage(schedule, HDI_STORAGE_SCRATCH, bytes, NULL);
        hdi_schedule_step *step = storage != HDI_NO_INDEX ? new_step(schedule) : NULL;
        if (!step) return HDI_NO_INDEX;
        step->kind = HDI_CMD_FILL;
        step->uses[0] = (hdi_use){ storage, 0, bytes, HDI_WRITE };
        step->use_count = 1;
        step->label = "counters";
        step->because = "kernels that count begin and end at zero";
        schedule->zeros = storage + 1;
        schedule->zeros_step = schedule->step_count - 1;
    }
    hdi_storage *storage = &schedule->storages[schedule->zeros - 1];
    hdi_schedule_step *step = &schedule->steps[schedule->zeros_step];
    step->bytes = step->uses[0].bytes = storage->bytes = HDI_MAX(storage->bytes, bytes);
    return schedule->zeros - 1;
}

static hd_status add_launch(hdi_schedule *schedule, const hdi_launch *launch, const char *label, hd_error *error) {
    hdi_schedule_step *step = new_step(schedule);
    if (!step) return no_step(schedule, error);
    step->kind = HDI_CMD_DISPATCH;
    step->kernel = launch->kernel;
    step->kernel.keep_subnormals = schedule->options.math == HD_MATH_EXACT && launch->kernel.module < HDI_USER_MODULE;
    step->use_count = launch->kernel.binding_count;
    step->everywhere = launch->everywhere;
    memcpy(step->uses, launch->uses, sizeof step->uses);
    memcpy(step->push, launch->push, sizeof step->push);
    memcpy(step->groups, launch->groups, sizeof step->groups);
    step->flops = launch->flops;
    step->bytes = launch->bytes;
    step->label = label;
    step->option = launch->option;
    step->because = launch->option ? "it was measured to be the fastest here" : launch->because ? launch->because : "";
    if (launch->groups[0] > schedule->caps.max_groups_x || launch->groups[1] > schedule->caps.max_groups_y ||
        launch->groups[2] > schedule->caps.max_groups_z)
        return hdi_fail(error, HD_STATUS_LIMIT, "%s: a grid of (%u,%u,%u) groups is more than the device takes", label,
                        launch->groups[0], launch->groups[1], launch->groups[2]);
    for (uint32_t u = 0; u < step->use_count; u++)
        if (schedule->caps.max_binding_bytes && step->uses[u].bytes > schedule->caps.max_binding_bytes)
            return hdi_fail(error, HD_STATUS_LIMIT,
                            "%s: a tensor of %llu bytes and a binding of this device sees at most %llu", label,
                            (unsigned long long)step->uses[u].bytes,
                            (unsigned long long)schedule->caps.max_binding_bytes);
    return HD_OK;
}

static hd_status add_copy(hdi_schedule *schedule, const hdi_use *from, const hdi_use *to, const char *label,
                          const char *because, hd_error *error) {
    hdi_schedule_step *step = new_step(schedule);
    if (!step) return no_step(schedule, error);
    step->kind = HDI_CMD_COPY;
    step->uses[0] = (hdi_use){ from->storage, from->offset, to->bytes, HDI_READ };
    step->uses[1] = (hdi_use){ to->storage, to->offset, to->bytes, HDI_WRITE };
    step->use_count = 2;
    step->bytes = 2 * to->bytes;
    step->label = label;
    step->because = because;
    return HD_OK;
}

/* ---- a user's kernel ---- */

static hd_status hold_kernel(hdi_schedule *schedule, hdi_user_kernel *kernel, uint32_t *out_index, hd_error *error) {
    for (uint32_t i = 0; i < schedule->kernel_count; i++)
        if (schedule->kernels[i] == kernel) {
            *out_index = i;
            return HD_OK;
        }
    if (!hdi_grow(schedule->arena.allocator, &schedule->kernels, &schedule->kernel_capacity,
                  (size_t)schedule->kernel_count + 1, sizeof *schedule->kernels))
        return no_memory(error);
    hdi_user_kernel_hold(kernel);
    schedule->kernels[schedule->kernel_count] = kernel;
    *out_index = schedule->kernel_count++;
    return HD_OK;
}

/* Operands and parts of the result, as the launch says. What the kernel does not use is shown something that is
 * there. */
static hd_status bind_custom(hdi_schedule *schedule, const hdi_task *task, hdi_launch *launch, const char *label,
                             hd_error *error) {
    const hdi_custom *custom = task->attrs->custom;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < custom->binding_count && !status; i++) {
        const hdi_custom_binding *binding = &custom->bindings[i];
        hdi_launch operand = { 0 };
        if (binding->operand) hdi_launch_bind(&operand, &task->inputs[binding->operand - 1], HDI_READ);
        hdi_use use = operand.uses[0];
        if (!binding->operand || binding->bytes)
            use = (hdi_use){ task->out.storage, binding->offset, (HDI_MAX(binding->bytes, 4u) + 3) & ~UINT64_C(3),
                             HDI_WRITE };
        if (binding->operand && binding->bytes) { /* the first bytes of the part are those of the operand */
            status = add_copy(schedule, &operand.uses[0], &use, label, "a buffer of the kernel begins so", error);
            use.access = HDI_READ | HDI_WRITE;
        }
        launch->uses[launch->kernel.binding_count++] = use;
    }
    return status;
}

static hd_status emit_custom(hdi_schedule *schedule, const hdi_task *task, const char *label, hd_error *error) {
    const hdi_custom *custom = task->attrs->custom;
    if (custom->push_bytes > schedule->caps.max_push_bytes || custom->kernel_bindings > schedule->caps.max_bindings)
        return hdi_fail(error, HD_STATUS_LIMIT, "%s: %u push bytes and %u bindings; the device takes %llu and %llu",
                        label, custom->push_bytes, custom->kernel_bindings,
                        (unsigned long long)schedule->caps.max_push_bytes,
                        (unsigned long long)schedule->caps.max_bindings);
    uint32_t index = 0;
    hd_status status = hold_kernel(schedule, custom->kernel, &index, error);
    if (status) return status;
    hdi_launch launch = { .kernel = { .module = HDI_USER_MODULE + index, .push_bytes = custom->push_bytes },
                          .because = "a kernel of your own" };
    if (custom->binding_count > 0) {
        if ((status = bind_custom(schedule, task, &launch, label, error))) return status;
    } else {
        for (uint32_t i = 0; i < task->input_count; i++) hdi_launch_bind(&launch, &task->inputs[i], HDI_READ);
        hdi_launch_bind(&launch, &task->out, HDI_WRITE);
    }
    memcpy(launch.push, custom->push_words, sizeof launch.push);
    memcpy(launch.groups, custom->groups, sizeof launch.groups);
    for (uint32_t u = 0; u < launch.kernel.binding_count; u++) launch.bytes += launch.uses[u].bytes;
    return add_launch(schedule, &launch, label, error);
}

/* ---- everything else ---- */

/* Is it there before the plan begins, whatever runs? */
static bool is_given(const hdi_schedule *schedule, const hdi_tensor *tensor) {
    const hdi_storage_kind kind = schedule->storages[hdi_schedule_root(schedule, tensor->storage, NULL)].kind;
    return kind == HDI_STORAGE_INPUT || kind == HDI_STORAGE_CONSTANT;
}

static hdi_request request_of(const hdi_schedule *schedule, const hdi_task *task) {
    const bool b_given = task->op == HDI_OP_MATMUL && is_given(schedule, &task->inputs[1]) &&
                         (!task->pair || is_given(schedule, &task->inputs[2]));
    return (hdi_request){
        .op = task->op, .attrs = task->attrs, .inputs = task->inputs, .input_count = task->input_count,
        .out = task->out, .chain = task->chain.step_count > 0 ? &task->chain : NULL, .norm = task->norm,
        .turn = task->turn, .a_norm = task->a_norm, .pair = task->pair, .a_rounded = task->a_rounded,
        .a_coded = task->a_coded, .out_coded = task->out_coded,
        .b_given = b_given, .caps = &schedule->caps, .math = schedule->options.math };
}

bool hdi_task_fits(const hdi_schedule *schedule, const hdi_task *task) {
    if (task->op == HDI_OP_COPY) return hdi_chain_fits(&task->chain, &task->out, &schedule->caps);
    if (task->chain.step_count > 0 && !hdi_kernels_take_epilogue(task->op, &task->chain)) return false;
    const hdi_request request = request_of(schedule, task);
    if (task->op == HDI_OP_MATMUL_EXPERTS) return hdi_groups_fit(&request);
    return (!task->a_norm.present && !task->pair) || hdi_matmul_fits(&request);
}

bool hdi_task_turns(const hdi_schedule *schedule, const hdi_task *task) {
    const hdi_request request = request_of(schedule, task);
    return hdi_attention_turns(&request);
}

bool hdi_task_rounds(const hdi_schedule *schedule, const hdi_task *task) {
    const hdi_request request = request_of(schedule, task);
    return hdi_matmul_rounds(&request);
}

bool hdi_task_takes_codes(const hdi_schedule *schedule, const hdi_task *task) {
    const hdi_request request = request_of(schedule, task);
    return hdi_matmul_takes_codes(&request);
}

/* A copy of one whole dense tensor to another needs no kernel. */
static bool is_plain_copy(const hdi_task *task) {
    const hdi_tensor *from = &task->chain.inputs[0];
    return task->op == HDI_OP_COPY && task->chain.step_count == 1 && task->chain.steps[0].code == HDI_STEP_COPY &&
           from->dtype == task->out.dtype && from->first == 0 && task->out.first == 0 && hdi_tensor_is_dense(from) &&
           hdi_tensor_is_dense(&task->out) && hd_tensor_bytes(from->dtype, from->shape) % 4 == 0;
}

static hd_status emit_copy(hdi_schedule *schedule, const hdi_task *task, const char *label, hd_error *error) {
    const hdi_use from = { .storage = task->chain.inputs[0].storage },
                  to = { .storage = task->out.storage, .bytes = hd_tensor_bytes(task->out.dtype, task->out.shape) };
    return add_copy(schedule, &from, &to, label, "whole dense tensors: a copy command, no kernel", error);
}

/* The same bytes as words: the element-wise kernel moves 16 of them at once. */
static hdi_task copy_of_words(const hdi_task *task) {
    hdi_task words = *task;
    const hd_shape shape = HD_SHAPE((int64_t)(hd_tensor_bytes(task->out.dtype, task->out.shape) / 4));
    words.chain.inputs[0] = hdi_tensor_dense(task->chain.inputs[0].storage, HD_I32, shape);
    words.out = hdi_tensor_dense(task->out.storage, HD_I32, shape);
    words.chain.steps[0].type = HD_I32;
    return words;
}

/* What the steps from `first` on do, for those who choose a device. What the device does not compute is no failure
 * then. */
static hd_status note_work(hdi_schedule *schedule, const hd_program *program, const hdi_task *task, uint32_t first,
                           hd_status status, hd_error *error) {
    hdi_schedule_work *works = schedule->options.works;
    const hd_value last = task->values[task->value_count - 1];
    hdi_work all = { .kind = HDI_KIND_ELEMENTWISE, .kernels = schedule->step_count - first };
    const bool cannot = status == HD_STATUS_UNSUPPORTED || status == HD_STATUS_LIMIT;
    if (status && !cannot) return status;
    for (uint32_t i = first; i < schedule->step_count; i++) all.bytes += schedule->steps[i].bytes;
    for (uint32_t i = 0; i < task->value_count; i++) {
        const hdi_node *node = hdi_program_node(program, task->values[i]);
        const hdi_node_work work = hdi_work_of_node(program, node);
        const bool leads = i == 0 || (node && node->op == task->op) ||
                           (work.kind != HDI_KIND_NONE && work.kind != HDI_KIND_ELEMENTWISE &&
                            (all.kind == HDI_KIND_ELEMENTWISE || all.kind == HDI_KIND_FUNCTION));
        if (leads) all.kind = work.kind ? work.kind : HDI_KIND_COPY; /* a view that is made dense */
        if (leads) all.width = work.width;
        all.flops = work.flops > UINT64_MAX - all.flops ? UINT64_MAX : all.flops + work.flops;
        works[task->values[i] - 1].kernel = last;
        works[task->values[i] - 1].cannot |= cannot;
    }
    hdi_work *of = &works[last - 1].work;
    if (of->kernels) { /* a value that takes several tasks, such as one that is joined */
        all.flops += of->flops;
        all.bytes += of->bytes;
        all.kernels += of->kernels;
    }
    *of = all;
    if (cannot && error) memset(error, 0, sizeof *error);
    return HD_OK;
}

static void replace_storage(hdi_lowering *lowering, uint32_t first, uint32_t storage, uint32_t instead) {
    for (uint32_t i = first; i < lowering->count; i++)
        for (uint32_t u = 0; u < lowering->launches[i].kernel.binding_count; u++)
            if (lowering->launches[i].uses[u].storage == storage) lowering->launches[i].uses[u].storage = instead;
}

/* Whether a launch makes its result whole, for those behind it alone: a value that is made in pieces has several. */
static bool makes_a_whole(const hdi_lowering *lowering, uint32_t at) {
    const hdi_launch *one = &lowering->launches[at];
    for (uint32_t i = at + 1; i < lowering->count; i++)
        for (uint32_t u = 0; u < lowering->launches[i].kernel.binding_count; u++)
            for (uint32_t k = 0; k < one->kernel.binding_count; k++)
                if (one->uses[k].access & lowering->launches[i].uses[u].access & HDI_WRITE &&
                    one->uses[k].storage == lowering->launches[i].uses[u].storage)
                    return false;
    return at + 1 < lowering->count;
}

/* The launches of a task. Where there are many, they are pieces, and looking for equal ones would take long. */
static hd_status add_launches(hdi_schedule *schedule, hdi_lowering *lowering, const char *label, hd_error *error) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < lowering->count && !status; i++) {
        status = add_launch(schedule, &lowering->launches[i], label, error);
        if (status || lowering->count > MOST_LOOKED_AT || !makes_a_whole(lowering, i)) continue;
        const uint32_t made = hdi_steps_leave_repeated(schedule);
        const hdi_use *uses = lowering->launches[i].uses;
        for (uint32_t u = 0; u < lowering->launches[i].kernel.binding_count && made != HDI_NO_INDEX; u++)
            if (uses[u].access == HDI_WRITE) replace_storage(lowering, i + 1, uses[u].storage, made);
    }
    return status;
}

static hd_status emit_task(hdi_schedule *schedule, const hd_program *program, const hdi_task *task, hd_error *error) {
    const char *label = label_of(schedule, program, task->values, task->value_count);
    if (!label) return no_memory(error);
    if (task->op == HDI_OP_DISPATCH) return emit_custom(schedule, task, label, error);
    const bool plain = is_plain_copy(task);
    if (plain && (schedule->caps.copy_kernel_bytes == 0 ||
                  hd_tensor_bytes(task->out.dtype, task->out.shape) < schedule->caps.copy_kernel_bytes))
        return emit_copy(schedule, task, label, error);
    hdi_task words;
    if (plain) {
        words = copy_of_words(task);
        task = &words;
    }
    hdi_lowering lowering = { .allocator = schedule->arena.allocator,
                              .temporary = temporary,
                              .constant = constant,
                              .zeros = zeros,
                              .user = schedule,
                              .offer = schedule->options.offer };
    const hdi_request request = request_of(schedule, task);
    hd_status status = hdi_kernels_lower(&request, &lowering, error);
    if (!status) status = add_launches(schedule, &lowering, label, error);
    hdi_free(lowering.allocator, lowering.launches, lowering.capacity * sizeof *lowering.launches);
    return status;
}

hd_status hdi_task_emit(hdi_schedule *schedule, const hd_program *program, const hdi_task *task, hd_error *error) {
    const uint32_t first = schedule->step_count;
    const hd_status status = emit_task(schedule, program, task, error);
    return schedule->options.works ? note_work(schedule, program, task, first, status, error) : status;
}

/* `value` as an element of `dtype`, repeated to fill a word. */
static uint32_t fill_pattern(hd_dtype dtype, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    switch (dtype) {
    case HD_F16: return exact_f32_to_f16(value) * 0x10001u;
    case HD_BF16: return exact_f32_to_bf16(value) * 0x10001u;
    case HD_I32: return (uint32_t)exact_f32_to_i32(value);
    case HD_U8: {
        int32_t whole = exact_f32_to_i32(value);
        return (uint32_t)HDI_MIN(HDI_MAX(whole, 0), 255) * 0x1010101u;
    }
    default: return bits;
    }
}

hd_status hdi_task_fill(hdi_schedule *schedule, const hd_program *program, hd_value value, const hdi_tensor *tensor,
                        float fill, hd_error *error) {
    hdi_schedule_step *step = new_step(schedule);
    const char *label = label_of(schedule, program, &value, 1);
    if (!step || !label) return no_memory(error);
    step->kind = HDI_CMD_FILL;
    step->uses[0] =
        (hdi_use){ tensor->storage, 0, (hd_tensor_bytes(tensor->dtype, tensor->shape) + 3) & ~UINT64_C(3), HDI_WRITE };
    step->use_count = 1;
    step->fill = fill_pattern(tensor->dtype, fill);
    step->bytes = step->uses[0].bytes;
    step->label = label;
    step->because = "one value everywhere: a fill command, no kernel";
    return HD_OK;
}
