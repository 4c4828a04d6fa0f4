/* attention_gradient.c: lowers the gradient of attention: a pass over the queries, which also finds out what the
 * weights of each row are relative to, and then one over the keys. In exact mode the sizes of workgroups do not change
 * a bit. */
#include "kernels/rules/attention.h"

enum { STARTS = 5 }; /* operand of the request */

/* One request with its operands dense. */
typedef struct gradient {
    const hdi_request *request;
    hdi_tensor q, k, v, y, dy, starts, facts, out;
    uint32_t   B, T, S, Hkv, D, heads; /* heads: of queries, to a key head */
    uint64_t   pairs, row_count;       /* key heads of all sequences; query rows of one */
} gradient;

/* Pieces, weights, what is known of rows, and the two words of glsl/attention_starts.glsl. */
static uint64_t shared_bytes(hdi_attention_sizes s) {
    const uint64_t piece = HDI_MM_BLOCK / 4 + 1, weights = s.other / 4 + 1;
    return 16 * (s.own * piece + s.other * piece + s.own * weights + HDI_MAX(s.own, s.other)) + 8;
}

/* Two sums over wide slices leave no registers for many rows. */
hdi_attention_sizes hdi_attention_sizes_of(const hdi_request *request, uint64_t rows, uint64_t pairs, uint32_t D,
                                           bool two_sums) {
    const hdi_caps *caps = request->caps;
    const uint64_t room = hdi_attention_room(caps), units = hdi_attention_units(caps);
    hdi_attention_sizes s = { 32, HDI_ATTENTION_TILE, D > 64 ? 128 : 64 };
    if (caps->native_kernels) return s;
    const bool many = hdi_divide_up(rows, 64) * pairs >= 2 * units && !(two_sums && s.slice == 128);
    if (many && shared_bytes((hdi_attention_sizes){ 64, s.other, s.slice }) <= room) s.own = 64;
    if (request->math != HD_MATH_EXACT && shared_bytes((hdi_attention_sizes){ s.own, 64, s.slice }) <= room)
        s.other = 64;
    return s;
}

bool hdi_attention_tiles_fit(const hdi_caps *caps) {
    return hdi_rows_workgroup(caps) >= HDI_ATTENTION_TILES_INVOCATIONS &&
           shared_bytes((hdi_attention_sizes){ 32, HDI_ATTENTION_TILE, 64 }) <= hdi_attention_room(caps);
}

static bool is_wide(const gradient *g) {
    const hdi_tensor *const read[] = { &g->q, &g->k, &g->v, &g->y, &g->dy };
    bool wide = g->D % 4 == 0;
    for (size_t i = 0; i < HDI_COUNT(read); i++) wide = wide && read[i]->first % 4 == 0;
    return wide;
}

/* In the place of starts: q where there are none. */
static const hdi_tensor *starts_of(const gradient *g) {
    return hdi_rows_has(g->request, STARTS) ? &g->starts : &g->q;
}

static hd_status add_pass(const gradient *g, bool of_keys, hdi_lowering *lowering, hd_error *error) {
    const uint64_t rows = of_keys ? g->S : g->row_count, width = hdi_divide_up(g->D, 32) * 32;
    const uint64_t elements = g->row_count * g->pairs * g->D, of_q = 4 * elements, of_k = 4 * g->pairs * g->S * g->D;
    const uint64_t of_starts = hdi_rows_has(g->request, STARTS) ? UINT64_C(4) * g->B * g->T : 0;
    const bool native = g->request->caps->native_kernels != 0;
    const hdi_attention_sizes s = hdi_attention_sizes_of(g->request, rows, g->pairs, g->D, of_keys);
    const uint64_t slices = native ? 1 : hdi_divide_up(g->D, s.slice);
    const hdi_rows_launch launch = {
        .module = of_keys ? HDI_MODULE_ATTENTION_GRADIENT_KV : HDI_MODULE_ATTENTION_GRADIENT_Q,
        .workgroup = HDI_ATTENTION_TILES_INVOCATIONS,
        .inputs = { &g->q, &g->k, &g->v, &g->dy, starts_of(g), of_keys ? &g->facts : &g->y, &g->facts },
        .input_count = of_keys ? 6 : 7, .written = of_keys ? 0 : 1u << 6, .out = &g->out,
        .spec = { HD_F32, HD_F32, g->request->attrs->ints[0] == 0, g->heads, s.own, s.other, s.slice, is_wide(g),
                  hdi_rows_has(g->request, STARTS) },
        .spec_count = 9,
        .push = { g->B, g->T, g->S, g->Hkv, g->D, hdi_rows_float_bits(g->request->attrs->floats[0]) },
        .push_count = 6, .groups = g->pairs * hdi_divide_up(rows, s.own) * slices,
        .flops = (of_keys ? 8 : 6) * elements * g->S, .bytes = of_keys ? 2 * of_k : 4 * of_q + 2 * of_k + of_starts,
        .scratch_bytes = (uint32_t)(4 * (8 * s.own * width + 2 * s.own * s.own + 8 * s.own)),
        .because = of_keys ? "keys, each tile by itself, over all rows that see it"
                           : "query rows, over all keys that they see",
    };
    return hdi_rows_add(g->request, &launch, lowering, error);
}

/* ---- on matrix units, where what is multiplied may be rounded to bf16 ---- */

static uint32_t units_width(const gradient *g) { return (g->D + 15) / 16 * 16; }

/* Shared memory of the pass over the keys, which needs more: tiles, own rows where they stay, what passes, facts, and
 * the two words of glsl/attention_starts.glsl. */
static uint64_t units_shared_bytes(uint32_t width) {
    const bool is_short = width <= HDI_ATTENTION_UNITS_SHORT;
    const uint64_t own = HDI_ATTENTION_UNITS_ROWS, others = is_short ? own : HDI_ATTENTION_UNITS_OTHERS;
    return 2 * (is_short ? own : own + others) * (2 * width + 16) + 80 * own + 12 * others + 8;
}

static bool takes_units(const gradient *g) {
    const hdi_caps *caps = g->request->caps;
    const uint64_t of_f32 = UINT64_C(1) << HD_F32;
    if (g->request->math == HD_MATH_EXACT || g->request->attrs->ints[2] == 0 || caps->native_kernels) return false;
    if (!caps->matrix_bf16 || !caps->matrix_reduces || !hdi_attention_has_subgroups(caps)) return false;
    if (g->D % 8 != 0 || g->D > HDI_ATTENTION_UNITS_MOST_D || !(g->request->attrs->floats[0] > 0)) return false;
    if (hdi_variant_is_wrong(caps, (hdi_variant){ HDI_MODULE_ATTENTION_GRADIENT_UNITS_Q, false, of_f32 }) ||
        hdi_variant_is_wrong(caps, (hdi_variant){ HDI_MODULE_ATTENTION_GRADIENT_UNITS_KV, false, of_f32 }))
        return false;
    return g->row_count >= HDI_ATTENTION_UNITS_ROWS && units_shared_bytes(units_width(g)) <= hdi_attention_room(caps);
}

static hd_status add_units_pass(const gradient *g, bool of_keys, hdi_lowering *lowering, hd_error *error) {
    const uint64_t rows = of_keys ? g->S : g->row_count, elements = g->row_count * g->pairs * g->D;
    const hdi_rows_launch launch = {
        .module = of_keys ? HDI_MODULE_ATTENTION_GRADIENT_UNITS_KV : HDI_MODULE_ATTENTION_GRADIENT_UNITS_Q,
        .workgroup = 2 * HDI_ATTENTION_UNITS_ROWS, .subgroup = 32,
        .inputs = { &g->q, &g->k, &g->v, &g->dy, starts_of(g), of_keys ? &g->facts : &g->y, &g->facts },
        .input_count = of_keys ? 6 : 7, .written = of_keys ? 0 : 1u << 6, .out = &g->out,
        .spec = { (uint32_t)g->y.dtype, HD_F32, g->request->attrs->ints[0] == 0, g->heads, 0, 0, units_width(g), 0,
                  hdi_rows_has(g->request, STARTS) },
        .spec_count = 9,
        .push = { g->B, g->T, g->S, g->Hkv, g->D, hdi_rows_float_bits(g->request->attrs->floats[0]) }, .push_count = 6,
        .groups = g->pairs * hdi_divide_up(rows, HDI_ATTENTION_UNITS_ROWS),
        .flops = (of_keys ? 8 : 6) * elements * g->S,
        .because = of_keys ? "keys in bf16 on matrix units, each tile by itself, over all rows that see it"
                           : "query rows in bf16 on matrix units, over all keys that they see",
    };
    return hdi_rows_add(g->request, &launch, lowering, error);
}

static hd_status bring_to(const gradient *g, hd_dtype dtype, hdi_tensor *operand, hdi_lowering *lowering,
                          hd_error *error) {
    const hdi_tensor given = *operand;
    return hdi_rows_in(g->request, &given, dtype, lowering, operand, error);
}

static hd_status lower_units(gradient *g, hdi_lowering *lowering, hd_error *error) {
    hdi_tensor *const multiplied[] = { &g->q, &g->k, &g->v, &g->dy };
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < HDI_COUNT(multiplied) && !status; i++)
        status = bring_to(g, HD_BF16, multiplied[i], lowering, error);
    if (!status) status = add_units_pass(g, false, lowering, error);
    return status ? status : add_units_pass(g, true, lowering, error);
}

/* The kernels that every device has: all in f32. */
static hd_status lower_plain(gradient *g, hdi_lowering *lowering, hd_error *error) {
    hdi_tensor *const read[] = { &g->q, &g->k, &g->v, &g->y, &g->dy };
    const hdi_tensor *out = &g->request->out;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < HDI_COUNT(read) && !status; i++) status = bring_to(g, HD_F32, read[i], lowering, error);
    if (!status && out->dtype != HD_F32) status = hdi_rows_temporary(lowering, HD_F32, out->shape, &g->out, error);
    if (!status) status = add_pass(g, false, lowering, error);
    if (!status) status = add_pass(g, true, lowering, error);
    return status || out->dtype == HD_F32 ? status : hdi_rows_copy(g->request, &g->out, out, lowering, error);
}

hd_status hdi_lower_attention_gradient(const hdi_request *request, hdi_lowering *lowering, hd_error *error) {
    gradient g = { .request = request, .out = request->out };
    hdi_tensor *const operands[] = { &g.q, &g.k, &g.v, &g.y, &g.dy };
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < HDI_COUNT(operands) && !status; i++)
        status = hdi_rows_dense(request, &request->inputs[i], lowering, operands[i], error);
    if (!status && hdi_rows_has(request, STARTS))
        status = hdi_rows_dense(request, &request->inputs[STARTS], lowering, &g.starts, error);
    if (status) return status;
    const uint32_t batch_axis = g.q.shape.rank - 3;
    g.B = batch_axis ? hdi_rows_dim(&g.q, 0) : 1;
    g.T = hdi_rows_dim(&g.q, batch_axis);
    g.D = hdi_rows_dim(&g.q, batch_axis + 2);
    g.S = hdi_rows_dim(&g.k, batch_axis);
    g.Hkv = hdi_rows_dim(&g.k, batch_axis + 1);
    const uint32_t Hq = hdi_rows_dim(&g.q, batch_axis + 1);
    if (g.D > HDI_ATTENTION_MOST_D)
        return hdi_fail(error, HD_STATUS_LIMIT, "attention over heads of %u elements; at most %u", g.D,
                        HDI_ATTENTION_MOST_D);
    if (g.Hkv == 0 || Hq % g.Hkv != 0 || (uint64_t)g.T * (Hq / g.Hkv) > INT32_MAX / 2 || g.S > INT32_MAX / 2)
        return hdi_fail(error, HD_STATUS_SHAPE, "attention of %u heads over %u", Hq, g.Hkv);
    g.heads = Hq / g.Hkv;
    g.pairs = (uint64_t)g.B * g.Hkv;
    g.row_count = (uint64_t)g.T * g.heads;
    if (!request->caps->native_kernels && !hdi_attention_tiles_fit(request->caps))
        return hdi_fail(error, HD_STATUS_UNSUPPORTED,
                        "the gradient of attention needs workgroups of %u, and more shared memory than %llu bytes",
                        HDI_ATTENTION_TILES_INVOCATIONS, (unsigned long long)hdi_attention_room(request->caps));
    if (hdi_rows_has(request, STARTS) && hd_shape_elements(g.starts.shape) < (uint64_t)g.B * g.T)
        return hdi_fail(error, HD_STATUS_SHAPE, "attention's starts are not [%u,%u]", g.B, g.T);
    status = hdi_rows_temporary(lowering, HD_F32, HD_SHAPE((int64_t)(4 * g.pairs * g.row_count)), &g.facts, error);
    if (status) return status;
    return takes_units(&g) ? lower_units(&g, lowering, error) : lower_plain(&g, lowering, error);
}
