/* matmul_launch.c: what was chosen for a matrix product becomes launches: its constants and words, and what is made
 * ready ahead of it. Pure; relies on abi.h for what each word means. */
#include "kernels/books.h"
#include "kernels/rules/matmul.h"
#include "kernels/rows.h"

/* Constants and binding of the norm and the pair. */
static void add_merged(const product *p, const config *c, hdi_launch *launch) {
    const hdi_norm *norm = &p->request->a_norm;
    hdi_kernel *kernel = &launch->kernel;
    kernel->spec_count = (c->ahead ? HDI_MM_AHEAD : HDI_MM_PAIR) + 1;
    kernel->spec[HDI_MM_AHEAD] = c->ahead;
    kernel->spec[HDI_MM_NORM] = !norm->present   ? HDI_MM_NORM_NONE
                                : norm->weighted ? HDI_MM_NORM_WEIGHTED
                                                 : HDI_MM_NORM_PLAIN;
    memcpy(&kernel->spec[HDI_MM_NORM_EPS], &norm->eps, sizeof norm->eps);
    kernel->spec[HDI_MM_PAIR] = p->request->pair;
    hdi_launch_bind(launch, norm->weighted ? &norm->weight : p->a.tensor, HDI_READ);
}

/* Bindings that all workgroups read, or all that share a row or column of tiles, a bit each. */
enum { OPERANDS = 1 << 0 | 1 << 1, SECOND_B = 1 << 3, NORM_WEIGHT = 1 << 6 };

/* @param a, b the operands as they are read */
static hd_status launch_product(const product *p, const config *c, const hdi_tensor *a, const hdi_tensor *b,
                                hdi_lowering *lowering, hd_error *error) {
    const uint32_t module = c->option->module;
    uint64_t groups[3];
    if (!hdi_product_grid(p, c, groups))
        return hdi_fail(error, HD_STATUS_UNSUPPORTED, "a grid of %llu x %llu x %llu workgroups",
                        (unsigned long long)groups[0], (unsigned long long)groups[1], (unsigned long long)groups[2]);
    hdi_tensor books;
    const hd_status status = hdi_books_operand(p->request->caps, p->b.tensor->dtype, a, lowering, &books, error);
    if (status) return status;
    hdi_launch *launch = hdi_lowering_add(lowering);
    if (!launch) return hdi_no_launch(lowering, error);
    hdi_kernel *kernel = &launch->kernel;
    *kernel = (hdi_kernel){ .module = c->bf16 ? HDI_MODULE_MATMUL_MATRIX_BF16 : module,
                            .spec_count = HDI_MM_LAYOUT + 1, .subgroup = c->subgroup,
                            .scratch_bytes = c->scratch_bytes };
    kernel->spec[HDI_SPEC_WORKGROUP] = HDI_MAX(c->workgroup, 1);
    kernel->spec[HDI_SPEC_EXACT] = is_exact(p);
    kernel->spec[HDI_SPEC_CHAIN_TYPE] = (uint32_t)p->type;
    kernel->spec[HDI_SPEC_OUT_TYPE] = (uint32_t)p->request->out.dtype;
    kernel->spec[HDI_MM_A_TYPE] = (uint32_t)p->a.tensor->dtype;
    kernel->spec[HDI_MM_B_TYPE] = (uint32_t)p->b.tensor->dtype;
    kernel->spec[HDI_MM_TILE_M] = c->tile_m;
    kernel->spec[HDI_MM_TILE_N] = c->tile_n;
    kernel->spec[HDI_MM_PART_M] = c->part_m ? c->part_m : 2;
    kernel->spec[HDI_MM_PART_N] = c->part_n ? c->part_n : 2;
    kernel->spec[HDI_MM_LAYOUT] = (p->a.along_k ? HDI_MM_A_ALONG_K : 0) | (p->b.along_k ? HDI_MM_B_ALONG_K : 0) |
                                  (p->a.wide ? HDI_MM_A_WIDE : 0) | (p->b.wide ? HDI_MM_B_WIDE : 0) |
                                  (p->chosen ? HDI_MM_GROUPED : p->batch == 1 ? HDI_MM_ONE_BATCH : 0) |
                                  (p->single ? HDI_MM_SINGLE : 0) | (p->request->a_coded ? HDI_MM_A_CODED : 0) |
                                  (p->request->out_coded ? HDI_MM_C_CODED : 0);
    const bool matrix = module == HDI_MODULE_MATMUL_MATRIX, tensor = module == HDI_MODULE_MATMUL_TENSOR;
    if (c->staged || (p->k % HDI_MM_DEPTH == 0 && (matrix || tensor))) kernel->spec[HDI_MM_LAYOUT] |= HDI_MM_WHOLE;
    const bool ahead = module == HDI_MODULE_MATVEC_MATRIX || (module == HDI_MODULE_MATVEC_DOT && c->staged);
    if (ahead && p->request->b_given && !p->chosen) kernel->spec[HDI_MM_LAYOUT] |= HDI_MM_B_GIVEN;
    if (matrix || c->parts > 1) {
        kernel->spec_count = (c->ahead ? HDI_MM_AHEAD : HDI_MM_PARTS) + 1;
        kernel->spec[HDI_MM_PARTS] = HDI_MAX(c->parts, 1);
        kernel->spec[HDI_MM_AHEAD] = c->ahead;
    }
    if (c->packs == HDI_MODULE_CODES && (p->chosen || !c->in_strands)) {
        kernel->spec_count = HDI_MM_PARTS + 1;
        kernel->spec[HDI_MM_PARTS] = (uint32_t)hdi_product_rows(p);
    }
    uint32_t words = hdi_product_words(p, launch);
    if (p->request->chain) words += hdi_launch_chain(launch, p->request->chain, launch->push + words);
    kernel->push_bytes = 4 * words;
    hdi_launch_bind(launch, a, HDI_READ);
    hdi_launch_bind(launch, b, HDI_READ);
    /* words of narrow types are shared: read and written */
    hdi_launch_bind(launch, &p->request->out, HDI_READ | HDI_WRITE);
    const uint64_t products = p->request->pair ? 2 : 1;
    launch->bytes = hdi_product_side_bytes(p, &p->a, p->m) + products * hdi_product_side_bytes(p, &p->b, p->n) +
                    hd_tensor_bytes(p->request->out.dtype, p->request->out.shape);
    for (uint32_t i = 0; i < SOURCES; i++) {
        const hdi_tensor *read = i < p->source_count ? p->sources[i].tensor : p->chosen ? &p->groups : a;
        hdi_launch_bind(launch, i == 0 && p->request->pair ? &p->request->inputs[2] : read, HDI_READ);
    }
    if (c->merges) add_merged(p, c, launch);
    hdi_launch_bind(launch, &books, HDI_READ);
    for (int i = 0; i < 3; i++) launch->groups[i] = (uint32_t)groups[i];
    launch->everywhere =
        OPERANDS | (p->request->pair ? SECOND_B : 0) | (p->request->a_norm.weighted ? NORM_WEIGHT : 0);
    launch->flops = 2 * products * p->batch * p->m * p->n * p->k;
    launch->because = c->because;
    launch->option = c->measured ? c->option->id : 0;
    return HD_OK;
}

/* The product in parts of K, then their sum. */
static hd_status launch_parts(const product *p, const config *c, hdi_lowering *lowering, hd_error *error) {
    hdi_request request = *p->request;
    product bare = *p;
    hdi_tensor partial;
    const hd_shape shape = HD_SHAPE((int64_t)p->batch, c->parts, (int64_t)p->m, (int64_t)p->n);
    hd_status status = hdi_rows_temporary(lowering, HD_F32, shape, &partial, error);
    if (status) return status;
    request.out = partial;
    request.chain = NULL;
    bare.request = &request;
    bare.source_count = 0;
    bare.type = HD_F32;
    status = launch_product(&bare, c, bare.a.tensor, bare.b.tensor, lowering, error);
    return status ? status : hdi_product_launch_chain(p, c->parts, &partial, lowering, error);
}

/* The product of f32 as products of their parts in bf16, a slice of K after the other, each added to those before. */
static hd_status lower_split(const product *p, const config *c, hdi_lowering *lowering, hd_error *error) {
    const hd_shape shape = HD_SHAPE(1, (int64_t)p->m, (int64_t)p->n);
    const bool sliced = c->split < p->k, behind = sliced && p->request->chain;
    hdi_request request = *p->request;
    hd_status status = HD_OK;
    if (behind) status = hdi_rows_temporary(lowering, HD_F32, shape, &request.out, error);
    const hdi_tensor sum = hdi_tensor_dense(request.out.storage, HD_F32, shape);
    const hdi_chain adds = { .steps = { { HDI_STEP_ADD, 0, 1, HDI_SOURCE_NONE, HD_F32, 0 } }, .step_count = 1,
                             .inputs = { [1] = sum }, .input_count = 2 };
    for (uint64_t at = 0; at < p->k && !status; at += c->split) {
        product slice = *p, split;
        hdi_tensor parts[2];
        slice.k = HDI_MIN(c->split, p->k - at);
        slice.a.first += at * p->a.depth;
        slice.b.first += at * p->b.depth;
        if (sliced) {
            slice.request = &request;
            request.chain = at ? &adds : NULL;
            slice.source_count = at ? 1 : 0;
            slice.sources[0] = (source){ &adds.inputs[1], 0, p->n, 1 };
        }
        status = hdi_product_split(&slice, lowering, parts, &split, error);
        if (!status) status = hdi_product_lower(&split, c->measured ? c->option : NULL, lowering, error);
    }
    return status || !behind ? status : hdi_product_launch_chain(p, 1, &sum, lowering, error);
}

hd_status hdi_product_lower(const product *p, const hdi_kernel_option *option, hdi_lowering *lowering,
                            hd_error *error) {
    const hdi_request *request = p->request;
    config c;
    hd_status status = HD_OK;
    if (!hdi_product_choose(p, option, &c))
        return hdi_fail(error, HD_STATUS_UNSUPPORTED,
                        "no matrix product fits a device with %llu bytes of shared memory and workgroups of %llu",
                        (unsigned long long)request->caps->shared_bytes,
                        (unsigned long long)request->caps->max_workgroup);
    product grouped = *p;
    if (p->chosen && !p->single) {
        status = hdi_product_group(&grouped, c.tile_m, lowering, error);
        if (status) return status;
        p = &grouped;
    }
    if (c.packs != HDI_MODULE_COUNT) {
        hdi_tensor rows, columns = *p->b.tensor;
        status = hdi_product_pack_rows(p, c.packs, c.in_strands, lowering, &rows, error);
        if (!status && c.in_strands) status = hdi_product_pack_columns(p, lowering, &columns, error);
        return status ? status : launch_product(p, &c, &rows, &columns, lowering, error);
    }
    if (c.split) return lower_split(p, &c, lowering, error);
    if (!c.halves[0] && !c.halves[1]) {
        if (c.option->module == HDI_MODULE_MATMUL_LIBRARY)
            return hdi_product_launch_library(p, c.because, c.measured ? c.option->id : 0, lowering, error);
        if (c.parts > 1) return launch_parts(p, &c, lowering, error);
        return launch_product(p, &c, p->a.tensor, p->b.tensor, lowering, error);
    }
    hdi_tensor inputs[] = { request->inputs[0], request->inputs[1] };
    hdi_request request_of_halves = *request;
    product halves;
    request_of_halves.inputs = inputs;
    if (c.halves[0]) status = hdi_product_floats_as_halves(request, &request->inputs[0], lowering, &inputs[0], error);
    if (p->chosen && !status) {
        grouped.a.tensor = &inputs[0];
        grouped.a.first = inputs[0].first;
        hdi_product_finish_side(&grouped.a, p->pairs, p->k);
        return launch_product(&grouped, &c, &inputs[0], p->b.tensor, lowering, error);
    }
    const bool as_bf16 = c.bf16 || (c.option->module == HDI_MODULE_MATMUL_LIBRARY && inputs[0].dtype == HD_BF16);
    if (c.halves[1] && !status)
        status = hdi_product_codes_as_halves(request->caps, &request->inputs[1], as_bf16 ? HD_BF16 : HD_F16, lowering,
                                             &inputs[1], error);
    if (!status) status = hdi_product_read(&request_of_halves, &halves, error);
    halves.type = p->type;
    /* both are f16 now, or bf16 */
    return status ? status : hdi_product_lower(&halves, c.measured ? c.option : NULL, lowering, error);
}
