/* matmul_ahead.c: the launches that make a matrix product's operands ready for it, each in a temporary of its own, and
 * the words that all kernels of the family are told. Pure. */
#include "kernels/cpu/matmul_native.h"
#include "kernels/books.h"
#include "kernels/rules/matmul.h"
#include "kernels/rows.h"

uint64_t hdi_product_side_bytes(const product *p, const side *s, uint64_t lines) {
    uint64_t elements = lines * p->k;
    for (int i = 0; i < BATCH_AXES; i++)
        if (s->batch[i] != 0) elements *= p->lengths[i];
    const hdi_dtype_facts facts = hdi_dtype(s->tensor->dtype);
    return elements / facts.block_elements * facts.block_bytes;
}

uint32_t hdi_product_words(const product *p, hdi_launch *launch) {
    const uint64_t first[HDI_MM_PUSH_CHAIN] = {
        [HDI_MM_PUSH_M] = p->m, [HDI_MM_PUSH_N] = p->n, [HDI_MM_PUSH_K] = p->k,
        [HDI_MM_PUSH_A_ROW] = p->a.line, [HDI_MM_PUSH_A_COL] = p->a.depth, [HDI_MM_PUSH_A_FIRST] = p->a.first,
        [HDI_MM_PUSH_B_ROW] = p->b.depth, [HDI_MM_PUSH_B_COL] = p->b.line, [HDI_MM_PUSH_B_FIRST] = p->b.first,
        [HDI_MM_PUSH_BATCH] = p->lengths[1], [HDI_MM_PUSH_BATCH + 1] = p->lengths[2] };
    uint32_t *push = launch->push, words = 0;
    for (; words < HDI_MM_PUSH_CHAIN; words++) push[words] = (uint32_t)first[words];
    for (int i = 0; i < BATCH_AXES; i++) {
        push[HDI_MM_PUSH_A_BATCH + i] = (uint32_t)p->a.batch[i];
        push[HDI_MM_PUSH_B_BATCH + i] = (uint32_t)p->b.batch[i];
    }
    if (p->chosen) push[HDI_MM_PUSH_EXPERTS] = (uint32_t)p->experts;
    for (uint32_t i = 0; i < p->source_count; i++) {
        push[words++] = (uint32_t)p->sources[i].tensor->first;
        push[words++] = (uint32_t)p->sources[i].batch;
        push[words++] = (uint32_t)p->sources[i].m;
        push[words++] = (uint32_t)p->sources[i].n;
    }
    return words;
}

/* The push words of a kernel that reads A alone: products of the same A begin with equal launches, of which the plan
 * makes one. */
static void words_of_rows(const product *p, hdi_launch *launch) {
    static const uint32_t of_b[] = { HDI_MM_PUSH_N, HDI_MM_PUSH_B_ROW, HDI_MM_PUSH_B_COL, HDI_MM_PUSH_B_FIRST,
                                     HDI_MM_PUSH_B_BATCH, HDI_MM_PUSH_B_BATCH + 1, HDI_MM_PUSH_B_BATCH + 2 };
    hdi_product_words(p, launch);
    for (size_t i = 0; i < HDI_COUNT(of_b); i++) launch->push[of_b[i]] = 0;
}

/* Groups are nothing to a kernel that takes each row once: their A has no batches. */
static void of_no_groups(const product *p, hdi_launch *launch) {
    launch->push[HDI_MM_PUSH_M] = (uint32_t)hdi_product_rows(p);
    launch->push[HDI_MM_PUSH_BATCH] = launch->push[HDI_MM_PUSH_BATCH + 1] = 1;
    launch->push[HDI_MM_PUSH_EXPERTS] = 0;
}

/* A as a product of native tiles reads it: a group packs 16 rows. */
static hd_status pack_tiles(const product *p, uint32_t module, hdi_lowering *lowering, hdi_tensor *out_packed,
                            hd_error *error) {
    enum { LINES = 16 };
    const bool bf16 = module == HDI_MODULE_PACK_BF16, exact = p->request->math == HD_MATH_EXACT;
    const uint32_t m = (uint32_t)p->m, k = (uint32_t)p->k,
                   runs = exact ? 1 : hdcpu_int8_runs((uint32_t)p->b.tensor->dtype);
    const uint64_t parts = p->chosen ? 1 : p->batch;
    const uint32_t rows = p->chosen ? (uint32_t)p->packed : m;
    const uint64_t bytes = parts * (bf16 ? hdcpu_amx_packed_bytes(rows, k) : hdcpu_int8_packed_bytes(rows, k, runs));
    hd_status status = hdi_rows_temporary(lowering, HD_BF16, HD_SHAPE((int64_t)(bytes / 2)), out_packed, error);
    if (status) return status;
    hdi_launch *launch = hdi_lowering_add(lowering);
    if (!launch) return hdi_no_launch(lowering, error);
    hdi_kernel *kernel = &launch->kernel;
    *kernel = (hdi_kernel){ .module = module, .spec_count = HDI_MM_LAYOUT + 1 };
    kernel->spec[HDI_SPEC_WORKGROUP] = 1;
    kernel->spec[HDI_SPEC_EXACT] = exact;
    kernel->spec[HDI_SPEC_OUT_TYPE] = HDI_TYPE_BF16;
    kernel->spec[HDI_MM_A_TYPE] = (uint32_t)p->a.tensor->dtype;
    kernel->spec[HDI_MM_B_TYPE] = (uint32_t)(bf16 ? p->a.tensor->dtype : p->b.tensor->dtype); /* what it is judged by */
    kernel->spec[HDI_MM_LAYOUT] = p->chosen ? HDI_MM_GROUPED : 0;
    words_of_rows(p, launch);
    kernel->push_bytes = 4 * HDI_MM_PUSH_CHAIN;
    hdi_launch_bind(launch, p->a.tensor, HDI_READ);
    hdi_launch_bind(launch, out_packed, HDI_WRITE);
    if (p->chosen) {
        hdi_launch_bind(launch, p->a.tensor, HDI_READ);
        hdi_launch_bind(launch, &p->groups, HDI_READ);
    }
    launch->groups[0] = (uint32_t)hdi_divide_up(bf16 ? hdcpu_amx_rows(m) : m, LINES);
    launch->groups[1] = 1;
    launch->groups[2] = (uint32_t)p->batch;
    launch->bytes = hdi_product_side_bytes(p, &p->a, p->m) + bytes;
    launch->because = bf16 ? "rows of A as bf16 tiles" : "rows of A rounded to 8 bits, side by side in vectors";
    return HD_OK;
}

/* ROW_FACTS and COLUMN_FACTS of strands.glsl. */
static uint64_t row_facts(uint32_t b) { return !HDI_HAS_MIN(b) ? 1 : HDI_SCALED_BY_HALVES(b) ? 4 : 2; }
static uint64_t column_facts(uint32_t b) {
    return HDI_SCALED_BY_HALVES(b) ? HDI_HAS_MIN(b) ? 6 : 5 : HDI_HAS_MIN(b) ? 2 : 1;
}

/* Columns of B of all batches; of groups, those of all matrices. */
static uint64_t columns_of(const product *p) { return p->chosen ? p->experts * p->n : p->n; }

/* Runs of a line of codes in a form. */
static uint64_t steps_of(const product *p, uint32_t form) {
    const uint64_t runs = p->k / HDI_MM_RUN;
    return form == HDI_CODES_ROWS ? runs : hdi_divide_up(runs, HDI_MM_STEPS) * HDI_MM_STEPS;
}

uint64_t hdi_product_codes_bytes(const product *p, uint32_t form) {
    enum { ROW_FACTS = 4, WORDS = 2 }; /* of a row ahead; of a row */
    const bool columns = form == HDI_CODES_COLUMNS;
    const uint32_t b = (uint32_t)p->b.tensor->dtype;
    const uint64_t words = columns ? column_facts(b) : form == HDI_CODES_ROWS ? WORDS : ROW_FACTS;
    const uint64_t lines = columns ? columns_of(p) : hdi_product_rows(p);
    return lines * steps_of(p, form) * (HDI_MM_RUN + 4 * words);
}

uint64_t hdi_product_unit_bytes(const product *p, uint64_t tile_m, uint64_t tile_n) {
    const uint32_t b = (uint32_t)p->b.tensor->dtype;
    const uint64_t chunks = HDI_SCALED_BY_HALVES(b) ? 4 : 2; /* of a run of B */
    return 16 * (tile_m * (2 * HDI_MM_STEPS + 1) + tile_n * (chunks * HDI_MM_STEPS + 1)) +
           4 * HDI_MM_STEPS * (row_facts(b) * tile_m + column_facts(b) * tile_n);
}

/* Lines along K in 8 bits, in one of the forms that abi.h names. */
static hd_status write_codes(const product *p, uint32_t form, hdi_lowering *lowering, hdi_tensor *out_codes,
                             hd_error *error) {
    enum { INVOCATIONS = 64 };
    const bool columns = form == HDI_CODES_COLUMNS;
    const side *s = columns ? &p->b : &p->a;
    const uint64_t lines = columns ? columns_of(p) : hdi_product_rows(p), steps = steps_of(p, form),
                   bytes = hdi_product_codes_bytes(p, form);
    hdi_tensor books;
    hd_status status = hdi_rows_temporary(lowering, HD_U8, HD_SHAPE((int64_t)bytes), out_codes, error);
    if (!status)
        status = hdi_books_operand(p->request->caps, s->tensor->dtype, s->tensor, lowering, &books, error);
    if (status) return status;
    hdi_launch *launch = hdi_lowering_add(lowering);
    if (!launch) return hdi_no_launch(lowering, error);
    hdi_kernel *kernel = &launch->kernel;
    *kernel = (hdi_kernel){ .module = HDI_MODULE_CODES, .spec_count = HDI_CODES_FORM + 1 };
    kernel->spec[HDI_SPEC_WORKGROUP] = INVOCATIONS;
    kernel->spec[HDI_SPEC_EXACT] = 1;
    kernel->spec[HDI_MM_A_TYPE] = kernel->spec[HDI_MM_B_TYPE] = (uint32_t)s->tensor->dtype;
    kernel->spec[HDI_MM_LAYOUT] = (p->batch == 1 || p->chosen ? HDI_MM_ONE_BATCH : 0) |
                                  (!columns && s->along_k ? HDI_MM_A_ALONG_K : 0) |
                                  (!columns && s->wide ? HDI_MM_A_WIDE : 0);
    kernel->spec[HDI_CODES_FORM] = form;
    if (columns) hdi_product_words(p, launch);
    else words_of_rows(p, launch);
    if (p->chosen) of_no_groups(p, launch);
    launch->push[HDI_CODES_PUSH_LINES] = (uint32_t)lines;
    kernel->push_bytes = 4 * (HDI_CODES_PUSH_LINES + 1);
    hdi_launch_bind(launch, s->tensor, HDI_READ);
    hdi_launch_bind(launch, s->tensor, HDI_READ);
    hdi_launch_bind(launch, out_codes, HDI_WRITE);
    hdi_launch_bind(launch, &books, HDI_READ);
    hdi_launch_grid(launch, hdi_divide_up(lines * steps * (columns ? 2 : 1), INVOCATIONS)); /* of columns: of halves */
    launch->bytes = bytes + (p->chosen ? hd_tensor_bytes(s->tensor->dtype, s->tensor->shape)
                                       : hdi_product_side_bytes(p, s, columns ? p->n : p->m));
    launch->because = columns ? "columns of B as codes, once" : "rows of A in 8 bits, once";
    return HD_OK;
}

hd_status hdi_product_pack_columns(const product *p, hdi_lowering *lowering, hdi_tensor *out_codes, hd_error *error) {
    return write_codes(p, HDI_CODES_COLUMNS, lowering, out_codes, error);
}

hd_status hdi_product_pack_rows(const product *p, uint32_t module, bool in_strands, hdi_lowering *lowering,
                                hdi_tensor *out_packed, hd_error *error) {
    if (module == HDI_MODULE_CODES)
        return write_codes(p, in_strands ? HDI_CODES_ROWS_IN_STRANDS : HDI_CODES_ROWS, lowering, out_packed, error);
    return pack_tiles(p, module, lowering, out_packed, error);
}

/* A float tensor as f16, dense; finite numbers that f16 does not hold become its largest. */
hd_status hdi_product_floats_as_halves(const hdi_request *request, const hdi_tensor *from, hdi_lowering *lowering,
                                  hdi_tensor *out_halves, hd_error *error) {
    hdi_chain chain = { .inputs = { *from }, .input_count = 1 };
    hdi_chain_add_halves(&chain);
    const hd_status status = hdi_rows_temporary(lowering, HD_F16, from->shape, out_halves, error);
    if (status) return status;
    return hdi_rows_chain(request, &chain, out_halves, lowering, error);
}

/* A quantised tensor without gaps as f16 or bf16, in the order in which it lies. */
hd_status hdi_product_codes_as_halves(const hdi_caps *caps, const hdi_tensor *from, hd_dtype type,
                                      hdi_lowering *lowering, hdi_tensor *out_halves, hd_error *error) {
    enum { WORKGROUP = 128, EACH = 8 };
    const uint64_t elements = hd_shape_elements(from->shape);
    hdi_tensor books;
    hd_status status = hdi_rows_temporary(lowering, type, from->shape, out_halves, error);
    if (!status) status = hdi_books_operand(caps, from->dtype, from, lowering, &books, error);
    if (status) return status;
    memcpy(out_halves->strides, from->strides, sizeof from->strides);
    hdi_launch *launch = hdi_lowering_add(lowering);
    if (!launch) return hdi_no_launch(lowering, error);
    launch->kernel = (hdi_kernel){ .module = HDI_MODULE_HALVES, .spec_count = HDI_MM_B_TYPE + 1, .push_bytes = 8 };
    launch->kernel.spec[HDI_SPEC_WORKGROUP] = WORKGROUP;
    launch->kernel.spec[HDI_SPEC_OUT_TYPE] = (uint32_t)type;
    launch->kernel.spec[HDI_MM_B_TYPE] = (uint32_t)from->dtype;
    launch->push[HDI_HALVES_PUSH_COUNT] = (uint32_t)elements;
    launch->push[HDI_HALVES_PUSH_FIRST] = (uint32_t)from->first;
    hdi_launch_bind(launch, from, HDI_READ);
    hdi_launch_bind(launch, from, HDI_READ);
    hdi_launch_bind(launch, out_halves, HDI_WRITE);
    hdi_launch_bind(launch, &books, HDI_READ);
    hdi_launch_grid(launch, hdi_divide_up(elements, WORKGROUP * EACH));
    launch->flops = 2 * elements;
    launch->bytes = hd_tensor_bytes(from->dtype, from->shape) + 2 * elements;
    launch->because = type == HD_F16 ? "quantised weights that many tiles read: f16 once"
                                      : "quantised weights that many tiles read: bf16 once";
    return HD_OK;
}

/* Slices of K bound the memory of the parts, and how far sums of matrix units, which round towards zero, are off. */
uint64_t hdi_product_split_depth(const product *p) {
    enum { SHARE = 128 /* of the device's memory */, MOST = 4096, LEAST = 512, UNIT = 8, SLICE = 64 };
    const hdi_caps *caps = p->request->caps;
    const bool whole = p->k % UNIT == 0 && p->n % UNIT == 0 && (p->a.along_k || p->m % UNIT == 0);
    const uint64_t most = HDI_MIN(caps->max_binding_bytes, caps->memory_bytes / SHARE) / 2 / HDI_SPLIT_PARTS,
                   deepest = HDI_MIN(most / HDI_MAX(p->m, p->n), MOST),
                   depth = deepest ? hdi_divide_up(p->k, hdi_divide_up(p->k, deepest)) : 0;
    if (!whole || !p->a.wide || !p->b.wide || p->batch > 1 || depth < HDI_MIN(p->k, LEAST)) return 0;
    if (p->a.tensor->dtype != HD_F32 || p->b.tensor->dtype != HD_F32) return 0;
    if (hdi_variant_is_wrong(caps, (hdi_variant){ HDI_MODULE_SPLIT_FLOATS, false, UINT64_C(1) << HD_F32 })) return 0;
    return hdi_divide_up(depth, SLICE) * SLICE;
}

static hd_status split_side(const product *p, bool is_b, hdi_lowering *lowering, hdi_tensor *out_parts, side *out_side,
                            hd_error *error) {
    enum { WORKGROUP = 128, EACH = 8 };
    const side *s = is_b ? &p->b : &p->a;
    const uint64_t lines = is_b ? p->n : p->m, k = p->k;
    const uint64_t all = HDI_SPLIT_PARTS * k, along = s->along_k ? k : lines, across = s->along_k ? lines : k;
    const hd_shape shape = s->along_k ? HD_SHAPE((int64_t)lines, (int64_t)all) : HD_SHAPE((int64_t)all, (int64_t)lines);
    const hd_status status = hdi_rows_temporary(lowering, HD_BF16, shape, out_parts, error);
    if (status) return status;
    hdi_launch *launch = hdi_lowering_add(lowering);
    if (!launch) return hdi_no_launch(lowering, error);
    launch->kernel = (hdi_kernel){ .module = HDI_MODULE_SPLIT_FLOATS, .spec_count = 1,
                                   .push_bytes = 4 * HDI_SPLIT_PUSH_WORDS };
    launch->kernel.spec[HDI_SPEC_WORKGROUP] = WORKGROUP;
    launch->push[HDI_SPLIT_PUSH_COLUMNS] = (uint32_t)along;
    launch->push[HDI_SPLIT_PUSH_LINES] = (uint32_t)across;
    launch->push[HDI_SPLIT_PUSH_FIRST] = (uint32_t)s->first;
    launch->push[HDI_SPLIT_PUSH_FROM_LINE] = (uint32_t)(s->along_k ? s->line : s->depth);
    launch->push[HDI_SPLIT_PUSH_TO_LINE] = (uint32_t)(s->along_k ? all : lines);
    launch->push[HDI_SPLIT_PUSH_TO_PART] = (uint32_t)(s->along_k ? k : k * lines);
    launch->push[HDI_SPLIT_PUSH_ORDER] = is_b ? HDI_SPLIT_ORDER_B : HDI_SPLIT_ORDER_A;
    hdi_launch_bind(launch, s->tensor, HDI_READ);
    hdi_launch_bind(launch, out_parts, HDI_WRITE);
    hdi_launch_grid(launch, hdi_divide_up(along * across, WORKGROUP * EACH));
    launch->bytes = hd_dtype_bytes(HD_F32, k * lines) + hd_dtype_bytes(HD_BF16, all * lines);
    launch->because = "floats that matrix units multiply: each as three of bf16, once";
    *out_side = (side){ .tensor = out_parts, .line = s->along_k ? all : 1, .depth = s->along_k ? 1 : lines };
    hdi_product_finish_side(out_side, lines, all);
    return HD_OK;
}

hd_status hdi_product_split(const product *p, hdi_lowering *lowering, hdi_tensor out_parts[2], product *out_product,
                            hd_error *error) {
    product *split = out_product;
    *split = *p;
    split->k = HDI_SPLIT_PARTS * p->k;
    const hd_status status = split_side(p, false, lowering, &out_parts[0], &split->a, error);
    return status ? status : split_side(p, true, lowering, &out_parts[1], &split->b, error);
}
