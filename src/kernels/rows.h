/* rows.h: what the lowerings of the row families share: operands made dense, launches with their common constants. */
#ifndef HDI_KERNELS_ROWS_H
#define HDI_KERNELS_ROWS_H

#include "kernels/kernel.h"

/* An optional operand that is there. */
bool hdi_rows_has(const hdi_request *request, uint32_t operand);
/* Appends an element-wise chain for the request: a launch of its own, or several. */
hd_status hdi_rows_chain(const hdi_request *request, const hdi_chain *chain, const hdi_tensor *to,
                         hdi_lowering *lowering, hd_error *error);
/* Appends a copy of `from` to `to`, of equal shape and any float type; both may have any strides. */
hd_status hdi_rows_copy(const hdi_request *request, const hdi_tensor *from, const hdi_tensor *to,
                        hdi_lowering *lowering, hd_error *error);
/* A dense tensor in a temporary storage of its own. */
hd_status hdi_rows_temporary(hdi_lowering *lowering, hd_dtype dtype, hd_shape shape, hdi_tensor *out_tensor,
                             hd_error *error);
/* `from` itself where a kernel can be given it as it is (dense, at an offset that the device can bind), else a copy. */
hd_status hdi_rows_dense(const hdi_request *request, const hdi_tensor *from, hdi_lowering *lowering,
                         hdi_tensor *out_tensor, hd_error *error);
/* The same in another type, if `from` is not of that. */
hd_status hdi_rows_in(const hdi_request *request, const hdi_tensor *from, hd_dtype dtype, hdi_lowering *lowering,
                      hdi_tensor *out_tensor, hd_error *error);
/* Appends what writes `rows`, dense ones, over those of the request's result, a state, from `position` of each sequence
 * on; pages NULL: it is none of pages. Rows of f32 are rounded to the state's type. */
hd_status hdi_rows_write(const hdi_request *request, const hdi_tensor *rows, const hdi_tensor *position,
                         const hdi_tensor *pages, const hdi_rows_place *place, hdi_lowering *lowering,
                         hd_error *error);

/* The tensor seen with `axis` moved to the end. */
hdi_tensor hdi_rows_axis_last(const hdi_tensor *tensor, uint32_t axis);

/* A launch of `module` over `groups` groups with workgroups of `workgroup`, 0 for the usual 256; operands are bound in
 * order: `inputs`, then `out`. The family's constants come from spec id HDI_SPEC_FAMILY on. */
typedef struct hdi_rows_launch {
    uint32_t          module, workgroup, subgroup; /* subgroup: as demanded, 0: any */
    uint32_t          option;                      /* that was chosen, or 0 */
    const hdi_tensor *inputs[13];
    uint32_t          input_count, written; /* a bit for each input that is written too */
    const hdi_tensor *out;
    uint32_t          out_access;
    uint32_t          spec[14], spec_count;
    uint32_t          push[15], push_count;
    uint64_t          rows;   /* of all operands but `shared` ones, told to the kernel by push[0]; 0: not for slicing */
    uint32_t          shared; /* a bit for each input that all rows read */
    uint64_t          groups, flops, bytes; /* bytes 0: those of all operands */
    uint32_t          scratch_bytes;
    const char       *because;
} hdi_rows_launch;
/* Appends the launch; where an operand is more than a binding sees and `rows` is given, several over slices of rows. */
hd_status hdi_rows_add(const hdi_request *request, const hdi_rows_launch *launch, hdi_lowering *lowering,
                       hd_error *error);
/* Elements of a type that a binding of the device sees, and a kernel counts. */
uint64_t hdi_rows_most(const hdi_caps *caps, hd_dtype dtype);
/* Rows of so many bytes that a binding sees, as many as another binding may begin behind; 0: not one. */
uint64_t hdi_rows_at_once(const hdi_caps *caps, uint64_t row_bytes);
/* May a workgroup go over rows of `n` elements, some times? A GPU's loops have an end: some stop at 65,536 rounds. */
hd_status hdi_rows_check_length(const hdi_request *request, uint64_t n, hd_error *error);
/* `wanted` invocations, a power of two, or as many as the device has in a workgroup. */
uint32_t hdi_rows_workgroup_of(const hdi_caps *caps, uint32_t wanted);
/* The workgroup that hdi_rows_add takes for 0: 256 of them. */
uint32_t hdi_rows_workgroup(const hdi_caps *caps);
/* Chooses among the widths of a workgroup of a GPU's row kernel, none of which changes a bit of the result: sets the
 * launch's workgroup, and its option where one was chosen by what was measured. */
void hdi_rows_choose(const hdi_request *request, hdi_class_kind kind, const hdi_tensor *x, uint64_t rows, uint64_t n,
                     hdi_offer *offer, hdi_rows_launch *launch);
/* Likewise of a norm of rows of x, or its gradient; in fast mode a GPU's invocations hold rows of f32 whole. */
void hdi_rows_choose_norm(const hdi_request *request, const hdi_tensor *x, uint64_t rows, uint64_t n, hdi_offer *offer,
                          hdi_rows_launch *launch);

/* The PAGE constant (abi.h) of a pool [N,R,...]; R is a power of two. */
static inline uint32_t hdi_rows_page(const hdi_tensor *pool) {
    uint32_t page = 0;
    while (pool->shape.dims[1] >> page > 1) page++;
    return page;
}
static inline uint32_t hdi_rows_dim(const hdi_tensor *tensor, uint32_t axis) {
    return (uint32_t)tensor->shape.dims[axis];
}
static inline uint32_t hdi_rows_float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
#endif
