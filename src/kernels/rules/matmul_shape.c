/* matmul_shape.c: a matrix product's operands as lines along K and at most three batch axes, and how they lie in
 * memory. Pure. */
#include "kernels/rules/matmul.h"

/* A view's stride along an axis of the result, 0 where it repeats. */
static uint64_t stride_along(const hdi_tensor *tensor, uint32_t rank, uint32_t axis) {
    if (axis + tensor->shape.rank < rank) return 0;
    const uint32_t own = axis + tensor->shape.rank - rank;
    return tensor->shape.dims[own] == 1 ? 0 : (uint64_t)tensor->strides[own];
}

/* Takes an axis around the rows of C as more rows, where A and all sources go on evenly and B repeats. */
static bool join_rows(product *p, uint32_t axis, uint64_t length) {
    const uint32_t rank = p->request->out.shape.rank;
    const bool single = p->m == 1;
    const uint64_t a = stride_along(p->a.tensor, rank, axis);
    bool even = stride_along(p->b.tensor, rank, axis) == 0 && (single || a == p->m * p->a.line);
    for (uint32_t i = 0; i < p->source_count; i++)
        even = even && (single || stride_along(p->sources[i].tensor, rank, axis) == p->m * p->sources[i].m);
    if (!even) return false;
    if (single) p->a.line = a;
    for (uint32_t i = 0; i < p->source_count && single; i++)
        p->sources[i].m = stride_along(p->sources[i].tensor, rank, axis);
    p->m *= length;
    return true;
}

/* Takes it as a batch axis, joined to the one inside it where both operands go on evenly. */
static bool join_batch(product *p, uint32_t axis, uint64_t length) {
    const uint32_t rank = p->request->out.shape.rank, inner = p->free_axis;
    const uint64_t a = stride_along(p->a.tensor, rank, axis), b = stride_along(p->b.tensor, rank, axis);
    for (uint32_t i = 0; i < p->source_count; i++) {
        const uint64_t stride = stride_along(p->sources[i].tensor, rank, axis);
        if (p->batch == 1) p->sources[i].batch = stride;
        else if (stride != p->batch * p->sources[i].batch) return false;
    }
    p->batch *= length;
    if (inner < BATCH_AXES && a == p->lengths[inner] * p->a.batch[inner] &&
        b == p->lengths[inner] * p->b.batch[inner]) {
        p->lengths[inner] *= length;
        return true;
    }
    if (inner == 0) return false;
    p->free_axis = inner - 1;
    p->a.batch[inner - 1] = a;
    p->b.batch[inner - 1] = b;
    p->lengths[inner - 1] = length;
    return true;
}

bool hdi_matmul_takes_source(const hdi_tensor *view) {
    bool first = true;
    uint64_t next = 0; /* the stride that would go on evenly */
    for (uint32_t axis = view->shape.rank < 2 ? 0 : view->shape.rank - 2; axis-- > 0;) {
        if (view->shape.dims[axis] == 1) continue;
        if (!first && (uint64_t)view->strides[axis] != next) return false;
        next = (uint64_t)view->strides[axis] * (uint64_t)view->shape.dims[axis];
        first = false;
    }
    return true;
}

/* Do 16 bytes of every line of memory begin at a multiple of 16? */
static bool is_wide(const side *s, uint64_t lines, uint64_t depths) {
    if (s->tensor->dtype > HD_BF16) return true; /* blocks are read word by word */
    const uint64_t unit = 16 / hd_dtype_bytes(s->tensor->dtype, 1);
    uint64_t all = s->first | (s->along_k ? depths : lines) | s->batch[0] | s->batch[1] | s->batch[2];
    if ((s->along_k ? s->depth : s->line) != 1) return false;
    if ((s->along_k ? lines : depths) > 1) all |= s->along_k ? s->line : s->depth;
    return all % unit == 0;
}

void hdi_product_finish_side(side *s, uint64_t lines, uint64_t depths) {
    if (depths == 1) s->depth = 1;
    s->along_k = s->depth == 1 || s->line != 1;
    s->wide = is_wide(s, lines, depths);
}

/* Words and limits that no kernel of the family can do without. */
static hd_status check(const product *p, hd_error *error) {
    const hdi_request *request = p->request;
    const hdi_chain *chain = request->chain;
    const uint64_t c_elements = p->batch * p->m * p->n;
    const uint32_t words = HDI_MM_PUSH_CHAIN + 4 * p->source_count + (chain ? chain->attr_count : 0);
    if (request->out.first != 0)
        return hdi_fail(error, HD_STATUS_INTERNAL, "a matrix product writes from element 0 on");
    if (words > HDI_MAX_PUSH_WORDS || 4 * words > request->caps->max_push_bytes)
        return hdi_fail(error, HD_STATUS_UNSUPPORTED, "the product and its chain need %u push words", words);
    if (!request->caps->native_kernels && request->caps->max_bindings < BINDINGS)
        return hdi_fail(error, HD_STATUS_UNSUPPORTED, "a matrix product needs %d bindings", BINDINGS);
    if (c_elements > UINT32_MAX || p->k > UINT32_MAX - 64)
        return hdi_fail(error, HD_STATUS_UNSUPPORTED, "a matrix product of %llu elements",
                        (unsigned long long)c_elements);
    for (int i = 0; i < 2; i++) {
        const side *s = i ? &p->b : &p->a;
        uint64_t last = s->first;
        for (uint32_t axis = 0; axis < s->tensor->shape.rank; axis++) {
            const int64_t stride = s->tensor->strides[axis], steps = s->tensor->shape.dims[axis] - 1;
            if (stride < 0 || !hdi_add_u64(last, (uint64_t)steps * (uint64_t)stride, &last)) last = UINT64_MAX;
        }
        if (last > UINT32_MAX)
            return hdi_fail(error, HD_STATUS_UNSUPPORTED,
                            "operand %d of a matrix product reaches beyond element 2^32, or back", i);
        if (s->first % hdi_dtype(s->tensor->dtype).block_elements != 0)
            return hdi_fail(error, HD_STATUS_INTERNAL, "operand %d begins inside of a block", i);
    }
    return HD_OK;
}

hd_status hdi_product_read(const hdi_request *request, product *p, hd_error *error) {
    const hdi_tensor *a = &request->inputs[0], *b = &request->inputs[1];
    const hd_shape *shape = &request->out.shape;
    const uint64_t flags = request->attrs ? (uint64_t)request->attrs->ints[0] : 0;
    if (shape->rank < 2 || a->shape.rank < 2 || b->shape.rank < 2)
        return hdi_fail(error, HD_STATUS_INTERNAL, "a matrix product of tensors of ranks %u and %u", a->shape.rank,
                        b->shape.rank);
    const uint32_t a_row = a->shape.rank - (flags & HD_TRANSPOSE_A ? 1u : 2u), a_column = 2 * a->shape.rank - 3 - a_row;
    const uint32_t b_row = b->shape.rank - (flags & HD_TRANSPOSE_B ? 1u : 2u), b_column = 2 * b->shape.rank - 3 - b_row;
    *p = (product){
        .request = request, .type = flags & HD_RESULT_F32 || request->a_rounded ? HD_F32 : a->dtype,
            .m = (uint64_t)a->shape.dims[a_row], .n = (uint64_t)b->shape.dims[b_column],
        .k = (uint64_t)a->shape.dims[a_column], .batch = 1, .lengths = { 1, 1, 1 }, .free_axis = BATCH_AXES,
        .a = { .tensor = a, .first = a->first, .line = stride_along(a, a->shape.rank, a_row),
               .depth = stride_along(a, a->shape.rank, a_column) },
        .b = { .tensor = b, .first = b->first, .line = stride_along(b, b->shape.rank, b_column),
               .depth = stride_along(b, b->shape.rank, b_row) },
        .source_count = request->chain ? request->chain->input_count - 1 : 0,
    };
    for (uint32_t i = 0; i < p->source_count; i++) {
        const hdi_tensor *tensor = &request->chain->inputs[i + 1];
        p->sources[i] = (source){ tensor, 0, stride_along(tensor, shape->rank, shape->rank - 2),
                                  stride_along(tensor, shape->rank, shape->rank - 1) };
    }
    bool rows = true;
    for (uint32_t axis = shape->rank - 2; axis-- > 0;) {
        const uint64_t length = (uint64_t)shape->dims[axis];
        if (length == 1) continue;
        rows = rows && join_rows(p, axis, length);
        if (!rows && !join_batch(p, axis, length))
            return hdi_fail(error, HD_STATUS_UNSUPPORTED,
                            "the batch axes of a matrix product repeat in too many ways: more than %d", BATCH_AXES);
    }
    hdi_product_finish_side(&p->a, p->m, p->k);
    hdi_product_finish_side(&p->b, p->n, p->k);
    p->most = p->m;
    return check(p, error);
}

static bool norm_fits(const product *p) {
    const hdi_norm *norm = &p->request->a_norm;
    if (!norm->present) return true;
    if (p->a.tensor->dtype != HD_F32 || p->a.depth != 1 || (p->request->attrs->ints[0] & HD_TRANSPOSE_A)) return false;
    return !norm->weighted ||
           (norm->weight.dtype == HD_F32 && hdi_tensor_is_dense(&norm->weight) && norm->weight.first == 0);
}

static bool pair_fits(const product *p) {
    const hdi_tensor *first = p->b.tensor, *second = &p->request->inputs[2];
    return !p->request->pair ||
           (first->dtype == second->dtype && first->first == second->first &&
            hdi_shape_equal(first->shape, second->shape) &&
            memcmp(first->strides, second->strides, first->shape.rank * sizeof first->strides[0]) == 0);
}

bool hdi_product_merges(const product *p) { return norm_fits(p) && pair_fits(p); }

uint32_t hdi_product_dealt_columns(const product *p) {
    enum { GROUPS_A_UNIT = 2, LEAST = 8, MOST = 64 };
    const uint64_t groups = GROUPS_A_UNIT * HDI_MAX(p->request->caps->compute_units, 1);
    return (uint32_t)HDI_MIN(HDI_MAX((hdi_divide_up(p->n, groups) + 1) / 2 * 2, LEAST), MOST);
}

uint64_t hdi_product_dealt_bytes(const product *p, uint64_t part_n) {
    enum { A_RUN = 40, OCTET = 9 * 4, COLUMN = 4 * (HDI_MM_STRANDS + 1) };
    const uint64_t products = p->request->pair ? 2 : 1, runs = p->k / HDI_MM_RUN;
    return runs * A_RUN + 4 * (2 * runs + HDI_DEALT_LANES) + products * hdi_product_dealt_columns(p) * COLUMN +
           products * part_n * runs / 8 * (hd_dtype_bytes(p->b.tensor->dtype, HDI_MM_OCTET) + OCTET);
}

uint64_t hdi_product_few_unit_bytes(const product *p, uint64_t part_n) {
    enum { UNIT = 16, ROWS = 8, SIXTEEN = 16, FACT = 4, ROUND_OCTETS = HDI_MM_STRANDS / 8 };
    const hd_dtype b = p->b.tensor->dtype;
    const uint64_t runs = hdi_divide_up(p->k, HDI_MM_STRANDS * HDI_MM_RUN) * HDI_MM_STRANDS,
                   products = p->request->pair ? 2 : 1, lines = products * hdi_divide_up(part_n, UNIT) * UNIT,
                   min = b == HD_Q4_K ? 2 : 1, facts = b == HD_Q8_0 ? 1 : 2;
    const uint64_t a = 2 * SIXTEEN * (p->m * runs + ROWS) +
                       facts * FACT * (hdi_divide_up(p->m, 4) * 4 * runs + ROWS + SIXTEEN),
                   norms = p->request->a_norm.present ? FACT * p->m * (2 * runs + 1) : 0,
                   raw = 2 * products * part_n * (ROUND_OCTETS * hd_dtype_bytes(b, HDI_MM_OCTET) + SIXTEEN),
                   codes = 2 * SIXTEEN * lines * (2 * HDI_MM_STRANDS + UINT64_C(1));
    return a + norms + raw + codes + min * FACT * (2 * HDI_MM_STRANDS * lines + SIXTEEN) +
           FACT * HDI_MM_STRANDS * ROWS * lines;
}

bool hdi_product_has_octets(const product *p) {
    const hd_dtype b = p->b.tensor->dtype;
    bool whole = p->k % HDI_MM_OCTET == 0 && p->b.line == p->k && p->b.first % HDI_MM_OCTET == 0;
    for (int i = 0; i < BATCH_AXES; i++) whole = whole && p->b.batch[i] % HDI_MM_OCTET == 0;
    return whole && (b == HD_Q4_0 || b == HD_Q8_0 || b == HD_Q4_K);
}

bool hdi_product_dealt(const product *p) {
    const hdi_caps *caps = p->request->caps;
    const uint64_t octets = (p->request->pair ? 2 : 1) * p->k / HDI_MM_OCTET;
    return caps->early_start && p->m == 1 && hdi_product_has_octets(p) &&
           octets <= HDI_DEALT_LANES && hdi_product_dealt_bytes(p, 1) <= caps->shared_bytes;
}
