/* launch.c: the small parts that every family's lowering is built from: dense tensors, launches, their bindings and
 * grids. Pure; allocates only through the lowering's allocator. */
#include "kernels/kernel.h"

hdi_tensor hdi_tensor_dense(uint32_t storage, hd_dtype dtype, hd_shape shape) {
    hdi_tensor tensor = { .storage = storage, .dtype = dtype, .shape = shape };
    int64_t stride = 1;
    for (uint32_t axis = shape.rank; axis-- > 0;) {
        tensor.strides[axis] = stride;
        stride *= shape.dims[axis];
    }
    return tensor;
}

bool hdi_tensor_is_dense(const hdi_tensor *tensor) {
    int64_t stride = 1;
    for (uint32_t axis = tensor->shape.rank; axis-- > 0;) {
        if (tensor->shape.dims[axis] != 1 && tensor->strides[axis] != stride) return false;
        stride *= tensor->shape.dims[axis];
    }
    return true;
}

/* Not where each axis steps over all that the axes of smaller steps reach. */
bool hdi_tensor_overlaps(const hdi_tensor *tensor) {
    for (uint32_t axis = 0; axis < tensor->shape.rank; axis++) {
        const int64_t step = tensor->strides[axis];
        int64_t reach = 0;
        for (uint32_t other = 0; other < tensor->shape.rank; other++)
            if (tensor->strides[other] < step || (tensor->strides[other] == step && other > axis))
                reach += (tensor->shape.dims[other] - 1) * tensor->strides[other];
        if (tensor->shape.dims[axis] > 1 && step <= reach) return true;
    }
    return false;
}

bool hdi_tensor_split(const hdi_tensor *tensor, hd_shape shape, hdi_tensor *out) {
    uint32_t at = shape.rank;
    *out = *tensor;
    out->shape = shape;
    for (uint32_t axis = tensor->shape.rank; axis-- > 0;) {
        int64_t left = tensor->shape.dims[axis], step = tensor->strides[axis];
        while (left > 1 && at > 0 && left % shape.dims[at - 1] == 0) {
            out->strides[--at] = step;
            step *= shape.dims[at];
            left /= shape.dims[at];
        }
        if (left > 1) return false;
    }
    while (at > 0 && shape.dims[at - 1] == 1) out->strides[--at] = 1;
    return at == 0;
}

bool hdi_tensor_is_gapless(const hdi_tensor *tensor) {
    uint64_t span = 1;
    for (uint32_t axis = 0; axis < tensor->shape.rank; axis++)
        span += (uint64_t)(tensor->shape.dims[axis] - 1) * (uint64_t)tensor->strides[axis];
    return span == hd_shape_elements(tensor->shape);
}

hdi_launch *hdi_lowering_add(hdi_lowering *lowering) {
    if (lowering->count == HDI_MOST_LAUNCHES ||
        !hdi_grow(lowering->allocator, &lowering->launches, &lowering->capacity, (size_t)lowering->count + 1,
                  sizeof *lowering->launches))
        return NULL;
    hdi_launch *launch = &lowering->launches[lowering->count++];
    memset(launch, 0, sizeof *launch);
    return launch;
}

hd_status hdi_no_launch(const hdi_lowering *lowering, hd_error *error) {
    if (lowering->count < HDI_MOST_LAUNCHES)
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a launch");
    return hdi_fail(error, HD_STATUS_LIMIT,
                    "one operation takes more than %u launches: its tensors are too large for what a binding of the "
                    "device sees", HDI_MOST_LAUNCHES);
}

void hdi_launch_bind(hdi_launch *launch, const hdi_tensor *tensor, uint32_t access) {
    const hdi_dtype_facts facts = hdi_dtype(tensor->dtype);
    uint64_t last = tensor->first; /* the element furthest on */
    for (uint32_t axis = 0; axis < tensor->shape.rank; axis++)
        if (tensor->strides[axis] > 0)
            last += (uint64_t)(tensor->shape.dims[axis] - 1) * (uint64_t)tensor->strides[axis];
    const uint64_t bytes = (last / facts.block_elements + 1) * facts.block_bytes;
    launch->uses[launch->kernel.binding_count++] = (hdi_use){ tensor->storage, 0, (bytes + 3) & ~UINT64_C(3), access };
}

void hdi_launch_grid(hdi_launch *launch, uint64_t groups) {
    launch->groups[0] = (uint32_t)HDI_MIN(groups, HDI_GRID_WIDTH);
    launch->groups[1] = (uint32_t)hdi_divide_up(groups, HDI_GRID_WIDTH);
    launch->groups[2] = 1;
}
