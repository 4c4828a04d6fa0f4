/* rows.c: what the lowerings of the row families share. Their kernels index dense tensors from element 0 with 32 bits:
 * here operands are brought into that form, tensors that are more than a binding sees are cut into slices of rows, and
 * what cannot be is refused. */
#include "kernels/rows.h"

bool hdi_rows_has(const hdi_request *request, uint32_t operand) {
    return operand < request->input_count && request->inputs[operand].dtype != HD_DTYPE_NONE;
}

hd_status hdi_rows_chain(const hdi_request *request, const hdi_chain *chain, const hdi_tensor *to,
                         hdi_lowering *lowering, hd_error *error) {
    const hdi_request copy = { .op = HDI_OP_COPY, .attrs = request->attrs, .out = *to, .chain = chain,
                               .caps = request->caps, .math = request->math };
    return hdi_lower_elementwise(&copy, lowering, error);
}

hd_status hdi_rows_copy(const hdi_request *request, const hdi_tensor *from, const hdi_tensor *to,
                        hdi_lowering *lowering, hd_error *error) {
    hdi_chain chain = { .step_count = 1, .input_count = 1 };
    const uint8_t code = from->dtype == to->dtype ? HDI_STEP_COPY : HDI_STEP_CAST;
    chain.steps[0] = (hdi_step){ code, 0, HDI_SOURCE_NONE, HDI_SOURCE_NONE, to->dtype, 0 };
    chain.inputs[0] = *from;
    return hdi_rows_chain(request, &chain, to, lowering, error);
}

hd_status hdi_rows_temporary(hdi_lowering *lowering, hd_dtype dtype, hd_shape shape, hdi_tensor *out_tensor,
                             hd_error *error) {
    const uint32_t storage = lowering->temporary(lowering->user, hd_tensor_bytes(dtype, shape));
    if (storage == HDI_NO_INDEX)
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a temporary tensor");
    *out_tensor = hdi_tensor_dense(storage, dtype, shape);
    return HD_OK;
}

/* Where the tensor's first element lies; false where no binding can begin there. */
static bool bind_offset(const hdi_request *request, const hdi_tensor *tensor, uint64_t *out_offset) {
    *out_offset = tensor->first == 0 ? 0 : hd_dtype_bytes(tensor->dtype, tensor->first);
    if (tensor->first != 0 && *out_offset == 0) return false;
    return *out_offset % HDI_MAX(request->caps->binding_align, 4) == 0;
}

hd_status hdi_rows_dense(const hdi_request *request, const hdi_tensor *from, hdi_lowering *lowering,
                         hdi_tensor *out_tensor, hd_error *error) {
    uint64_t offset;
    *out_tensor = *from;
    if (hdi_tensor_is_dense(from) && bind_offset(request, from, &offset)) return HD_OK;
    const hd_status status = hdi_rows_temporary(lowering, from->dtype, from->shape, out_tensor, error);
    return status != HD_OK ? status : hdi_rows_copy(request, from, out_tensor, lowering, error);
}

hd_status hdi_rows_in(const hdi_request *request, const hdi_tensor *from, hd_dtype dtype, hdi_lowering *lowering,
                      hdi_tensor *out_tensor, hd_error *error) {
    if (from->dtype == dtype) return hdi_rows_dense(request, from, lowering, out_tensor, error);
    const hd_status status = hdi_rows_temporary(lowering, dtype, from->shape, out_tensor, error);
    return status ? status : hdi_rows_copy(request, from, out_tensor, lowering, error);
}

hdi_tensor hdi_rows_axis_last(const hdi_tensor *tensor, uint32_t axis) {
    hdi_tensor view = *tensor;
    const uint32_t last = tensor->shape.rank - 1;
    for (uint32_t i = axis; i < last; i++) {
        view.shape.dims[i] = tensor->shape.dims[i + 1];
        view.strides[i] = tensor->strides[i + 1];
    }
    view.shape.dims[last] = tensor->shape.dims[axis];
    view.strides[last] = tensor->strides[axis];
    return view;
}

hd_status hdi_rows_check_length(const hdi_request *request, uint64_t n, hd_error *error) {
    enum { MOST = 1 << 21 };
    if (request->caps->native_kernels || n <= MOST) return HD_OK;
    return hdi_fail(error, HD_STATUS_LIMIT, "a row of %llu elements, and a workgroup takes at most %d",
                    (unsigned long long)n, MOST);
}

uint32_t hdi_rows_workgroup_of(const hdi_caps *caps, uint32_t wanted) {
    uint64_t most = caps->max_workgroup == 0 ? 256 : caps->max_workgroup;
    if (caps->max_workgroup_x != 0) most = HDI_MIN(most, caps->max_workgroup_x);
    while (wanted > most) wanted /= 2;
    return wanted;
}
uint32_t hdi_rows_workgroup(const hdi_caps *caps) { return hdi_rows_workgroup_of(caps, 256); }

void hdi_rows_choose(const hdi_request *request, hdi_class_kind kind, const hdi_tensor *x, uint64_t rows, uint64_t n,
                     hdi_offer *offer, hdi_rows_launch *launch) {
    enum { ELEMENTS = 4, LEAST = 32 }; /* short rows do not pay for invocations that wait for each other */
    const uint32_t most = hdi_rows_workgroup(request->caps);
    uint32_t usual = most;
    while (usual > LEAST && (uint64_t)usual * ELEMENTS > n) usual /= 2;
    const hdi_class class = hdi_class_of(kind, x->dtype, rows, n);
    const hdi_kernel_option *option = hdi_kernel_width_choose(request, class, launch->module, usual, most, offer);
    launch->workgroup = option ? option->workgroup : usual;
    launch->option = option ? option->id : 0;
}

/* How many fours of its row an invocation holds, and the workgroup for it; 0: rows are others. */
static uint32_t held_fours(const hdi_request *request, hd_dtype type, uint64_t n, hdi_rows_launch *launch) {
    enum { MOST = 8, UNIT = 32 }; /* what registers hold beside as much of a gradient; of a workgroup */
    const hdi_caps *caps = request->caps;
    uint64_t all = n | launch->out->first;
    for (uint32_t i = 0; i < launch->input_count; i++) all |= launch->inputs[i]->first;
    if (caps->native_kernels || request->math == HD_MATH_EXACT || type != HD_F32 || all % 4) return 0;
    const uint64_t fours = n / 4, workgroup = HDI_MAX(hdi_divide_up(hdi_divide_up(fours, MOST), UNIT), 1) * UNIT;
    if (workgroup > hdi_rows_workgroup(caps)) return 0;
    launch->workgroup = (uint32_t)workgroup;
    return (uint32_t)hdi_divide_up(fours, workgroup);
}

void hdi_rows_choose_norm(const hdi_request *request, const hdi_tensor *x, uint64_t rows, uint64_t n, hdi_offer *offer,
                          hdi_rows_launch *launch) {
    enum { FOURS = HDI_ROW_FOURS - HDI_SPEC_FAMILY };
    launch->spec_count = FOURS + 1;
    launch->spec[FOURS] = held_fours(request, x->dtype, n, launch);
    if (!launch->spec[FOURS]) hdi_rows_choose(request, HDI_CLASS_NORM, x, rows, n, offer, launch);
}

static hd_status bind(const hdi_request *request, hdi_launch *launch, const hdi_tensor *tensor, uint32_t access,
                      hd_error *error) {
    uint64_t offset;
    if (hd_shape_elements(tensor->shape) > UINT32_MAX)
        return hdi_fail(error, HD_STATUS_LIMIT, "a tensor of more than 2^32 - 1 elements");
    if (!hdi_tensor_is_dense(tensor) || !bind_offset(request, tensor, &offset))
        return hdi_fail(error, HD_STATUS_INTERNAL, "a row kernel was given a view that it cannot bind");
    hdi_tensor whole = *tensor;
    whole.first = 0;
    const uint32_t at = launch->kernel.binding_count;
    hdi_launch_bind(launch, &whole, access);
    launch->uses[at].offset += offset;
    return HD_OK;
}

/* A kernel is shown one of the operands that it has in the place of one that it lacks: the input that this one is. */
static uint32_t input_of(const hdi_rows_launch *launch, uint32_t input) {
    const hdi_tensor *tensor = launch->inputs[input];
    uint32_t k = 0;
    while (launch->inputs[k]->storage != tensor->storage || launch->inputs[k]->first != tensor->first) k++;
    return k;
}

static uint64_t operand_bytes(const hdi_rows_launch *launch) {
    uint64_t bytes = hd_tensor_bytes(launch->out->dtype, launch->out->shape);
    for (uint32_t i = 0; i < launch->input_count; i++)
        if (input_of(launch, i) == i) bytes += hd_tensor_bytes(launch->inputs[i]->dtype, launch->inputs[i]->shape);
    return bytes;
}

static hd_status add_whole(const hdi_request *request, const hdi_rows_launch *from, hdi_lowering *lowering,
                           hd_error *error) {
    hdi_launch *launch = hdi_lowering_add(lowering);
    if (launch == NULL) return hdi_no_launch(lowering, error);
    if (from->groups > UINT32_MAX) return hdi_fail(error, HD_STATUS_LIMIT, "more than 2^32 - 1 workgroups");
    hdi_kernel *kernel = &launch->kernel;
    kernel->module = from->module;
    kernel->spec[HDI_SPEC_WORKGROUP] = from->workgroup != 0 ? from->workgroup : hdi_rows_workgroup(request->caps);
    kernel->spec[HDI_SPEC_EXACT] = request->math == HD_MATH_EXACT;
    kernel->spec[HDI_SPEC_OUT_TYPE] = (uint32_t)from->out->dtype;
    memcpy(kernel->spec + HDI_SPEC_FAMILY, from->spec, from->spec_count * sizeof *from->spec);
    kernel->spec_count = HDI_SPEC_FAMILY + from->spec_count;
    memcpy(launch->push, from->push, from->push_count * sizeof *from->push);
    kernel->push_bytes = from->push_count * (uint32_t)sizeof *from->push;
    kernel->scratch_bytes = from->scratch_bytes;
    kernel->subgroup = from->subgroup;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < from->input_count && status == HD_OK; i++) {
        const uint32_t access = from->written >> i & 1 ? HDI_READ | HDI_WRITE : HDI_READ;
        status = bind(request, launch, from->inputs[i], access, error);
    }
    if (status == HD_OK)
        status = bind(request, launch, from->out, from->out_access != 0 ? from->out_access : HDI_WRITE, error);
    hdi_launch_grid(launch, from->groups);
    launch->everywhere = from->shared;
    launch->flops = from->flops;
    launch->bytes = from->bytes > 0 ? from->bytes : operand_bytes(from);
    launch->because = from->because;
    launch->option = from->option;
    return status;
}

/* ---- slices of rows ---- */

uint64_t hdi_rows_most(const hdi_caps *caps, hd_dtype dtype) {
    const uint64_t bytes = hd_dtype_bytes(dtype, 1);
    if (caps->max_binding_bytes == 0 || bytes == 0) return UINT32_MAX;
    return HDI_MIN(caps->max_binding_bytes / bytes, UINT32_MAX);
}

uint64_t hdi_rows_at_once(const hdi_caps *caps, uint64_t row_bytes) {
    const uint64_t most = caps->max_binding_bytes ? caps->max_binding_bytes / row_bytes : UINT64_MAX;
    uint64_t step = 1;
    while (step < caps->binding_align && step * row_bytes % caps->binding_align != 0) step *= 2;
    return most - most % step;
}

/* How many of the launch's rows a binding sees of this operand, and how many there must be for the next ones to begin
 * where a binding may. */
static void limit_rows(const hdi_request *request, const hdi_rows_launch *launch, const hdi_tensor *tensor,
                       uint64_t *most, uint64_t *step) {
    const uint64_t each = hd_shape_elements(tensor->shape) / launch->rows, align = request->caps->binding_align;
    *most = HDI_MIN(*most, hdi_rows_most(request->caps, tensor->dtype) / each);
    while (*step < align && hd_dtype_bytes(tensor->dtype, *step * each) % align != 0) *step *= 2;
}

static hdi_tensor slice_of(const hdi_rows_launch *launch, const hdi_tensor *tensor, uint64_t at, uint64_t count) {
    const uint64_t each = hd_shape_elements(tensor->shape) / launch->rows;
    hdi_tensor slice = hdi_tensor_dense(tensor->storage, tensor->dtype, HD_SHAPE((int64_t)count, (int64_t)each));
    slice.first = tensor->first + at * each;
    return slice;
}

/* The slice of `count` rows from row `at` on. What no binding can begin at is copied. */
static hd_status add_slice(const hdi_request *request, const hdi_rows_launch *from, uint64_t at, uint64_t count,
                           hdi_lowering *lowering, hd_error *error) {
    hdi_rows_launch launch = *from;
    const hdi_tensor y = slice_of(from, from->out, at, count);
    hdi_tensor inputs[HDI_COUNT(launch.inputs)], out = y;
    uint64_t offset;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < from->input_count && status == HD_OK; i++) {
        if (from->shared >> i & 1) continue;
        const uint32_t as = input_of(from, i);
        const hdi_tensor slice = slice_of(from, from->inputs[i], at, count);
        if (as == i) status = hdi_rows_dense(request, &slice, lowering, &inputs[i], error);
        launch.inputs[i] = &inputs[as];
    }
    const bool apart = !bind_offset(request, &y, &offset);
    if (status == HD_OK && apart) status = hdi_rows_temporary(lowering, y.dtype, y.shape, &out, error);
    launch.out = &out;
    launch.push[0] = (uint32_t)count;
    launch.groups = hdi_divide_up(from->groups * count, from->rows);
    launch.flops = from->flops / from->rows * count;
    launch.because = "a slice of the rows: all of them are more than one binding sees";
    if (status == HD_OK) status = add_whole(request, &launch, lowering, error);
    return status != HD_OK || !apart ? status : hdi_rows_copy(request, &out, &y, lowering, error);
}

hd_status hdi_rows_add(const hdi_request *request, const hdi_rows_launch *from, hdi_lowering *lowering,
                       hd_error *error) {
    uint64_t most = from->rows, step = 1;
    for (uint32_t i = 0; i < from->input_count && from->rows > 1; i++)
        if (!(from->shared >> i & 1)) limit_rows(request, from, from->inputs[i], &most, &step);
    if (from->rows > 1) limit_rows(request, from, from->out, &most, &step);
    if (most == from->rows || most == 0) return add_whole(request, from, lowering, error);
    if (most >= step) most -= most % step;
    hd_status status = HD_OK;
    for (uint64_t at = 0; at < from->rows && status == HD_OK; at += most)
        status = add_slice(request, from, at, HDI_MIN(most, from->rows - at), lowering, error);
    return status;
}
