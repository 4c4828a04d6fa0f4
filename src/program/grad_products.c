/* grad_products.c: rules of matrix products, rope, attention and the caller's own kernels. */
#include "program/grad.h"

static hd_shape operand_shape(const hdi_grad *g, uint32_t index) { return hdi_grad_shape(g, g->node.operands[index]); }

/* x as matrices in which its last two axes are swapped if `swap`. */
static hd_value turned(hdi_grad *g, hd_value x, bool swap) { return swap ? hd_transpose(g->program, x) : x; }

static bool has_batch(hd_shape shape) {
    for (uint32_t i = 0; i + 2 < shape.rank; i++) if (shape.dims[i] > 1) return true;
    return false;
}

/* With A' and B' as they are multiplied, C = A' B': dA' = dC B'^T. A transposed A gets its own transposed, B' dC^T, which a
 * quantised B cannot begin. */
static hd_value of_a(hdi_grad *g, bool swap_a, bool swap_b) {
    hd_program *p = g->program;
    const hd_value b = hdi_grad_x(g, 1);
    if (swap_a && hdi_dtype_is_float(hdi_grad_type(g, b))) /* the result has the first one's type */
        return hd_matmul_with(p, hdi_grad_to(g, b, hdi_grad_type(g, g->dy)), g->dy, HD_TRANSPOSE_B | (swap_b ? HD_TRANSPOSE_A : 0u));
    return turned(g, hd_matmul_with(p, g->dy, b, swap_b ? HD_MATMUL_PLAIN : HD_TRANSPOSE_B), swap_a);
}

/* dB' = A'^T dC. Where B is one matrix, all rows of A and C, of all of a batch, are one sum. */
static void give_b(hdi_grad *g, bool swap_a, bool swap_b) {
    hd_program *p = g->program;
    hd_value a = hdi_grad_x(g, 0);
    if (!has_batch(operand_shape(g, 1))) {
        a = hdi_grad_flat(g, turned(g, a, swap_a), operand_shape(g, 0).rank - 1);
        hdi_grad_give_product(g, 1, a, hdi_grad_flat(g, g->dy, g->node.shape.rank - 1), swap_b);
    } else if (swap_b) {
        hdi_grad_give(g, 1, hd_matmul_with(p, g->dy, a, HD_TRANSPOSE_A | (swap_a ? HD_TRANSPOSE_B : 0u)));
    } else {
        hdi_grad_give(g, 1, hd_matmul_with(p, a, g->dy, swap_a ? HD_MATMUL_PLAIN : HD_TRANSPOSE_A));
    }
}

void hdi_grad_matmul(hdi_grad *g) {
    const bool swap_a = g->node.attrs.ints[0] & HD_TRANSPOSE_A, swap_b = g->node.attrs.ints[0] & HD_TRANSPOSE_B;
    if (hdi_grad_wants(g, 0)) hdi_grad_give(g, 0, of_a(g, swap_a, swap_b));
    if (hdi_grad_wants(g, 1)) give_b(g, swap_a, swap_b);
}

/* Turned back by the same angles: positions negated. */
void hdi_grad_rope(hdi_grad *g) {
    const hdi_attrs *a = &g->node.attrs;
    const hd_rope_desc desc = { .theta = a->floats[0], .frequency_scale = a->floats[1], .magnitude = a->floats[2],
                                .dims = (uint32_t)a->ints[0], .pairing = (hd_rope_pairing)a->ints[1],
                                .factors = a->factor_count ? a->factors : NULL };
    hdi_grad_give(g, 0, hd_rope(g->program, g->dy, hd_neg(g->program, hdi_grad_x(g, 1)), &desc));
}

/* ---- attention ---- */

/* Its operands in f32 as matrices: q and dy [B,Hkv,G,T,D], k and v [B,Hkv,1,S,D], for G query heads to a key head. */
typedef struct attention {
    int64_t  B, T, Hkv, G, S, D;
    hd_value q, k, v, dy;
} attention;

static hd_value to_heads(hdi_grad *g, const attention *a, hd_value x, int64_t rows, int64_t group) {
    const uint32_t axes[] = { 0, 2, 3, 1, 4 };
    return hd_permute(g->program, hd_reshape(g->program, hdi_grad_wide(g, x), HD_SHAPE(a->B, rows, a->Hkv, group, a->D)), axes, 5);
}
static hd_value from_heads(hdi_grad *g, hd_value x, hd_shape shape) {
    const uint32_t axes[] = { 0, 3, 1, 2, 4 };
    return hd_reshape(g->program, hd_permute(g->program, x, axes, 5), shape);
}

/* The pages that the sequences see, one after the other: [B*S,...] of the pool [N,R,...]. A page outside is the nearest one. */
static hd_value page_numbers(hdi_grad *g, int64_t *out_count) {
    const hd_value pages = hdi_grad_x(g, 4);
    *out_count = (int64_t)hd_shape_elements(hdi_grad_shape(g, pages));
    const hd_value last = hdi_grad_whole(g, operand_shape(g, 1).dims[0] - 1);
    const hd_value least = hd_maximum(g->program, pages, hdi_grad_whole(g, 0));
    return hd_reshape(g->program, hd_minimum(g->program, least, last), HD_SHAPE(*out_count));
}
static hd_value of_pages(hdi_grad *g, hd_value pool) {
    const hd_shape shape = hdi_grad_shape(g, pool);
    int64_t count;
    const hd_value numbers = page_numbers(g, &count);
    const hd_value rows = hd_reshape(g->program, pool, HD_SHAPE(shape.dims[0], shape.dims[1] * shape.dims[2] * shape.dims[3]));
    return hd_gather(g->program, rows, numbers);
}
static hd_value to_pages(hdi_grad *g, hd_value dx, hd_shape pool) {
    int64_t count;
    const hd_value numbers = page_numbers(g, &count);
    const int64_t page = pool.dims[1] * pool.dims[2] * pool.dims[3];
    const hd_value none = hdi_grad_fill(g, HD_F32, HD_SHAPE(pool.dims[0], page), 0);
    return hd_reshape(g->program, hd_scatter_add(g->program, none, numbers, hd_reshape(g->program, dx, HD_SHAPE(count, page))), pool);
}

static attention read_operands(hdi_grad *g, bool paged) {
    const hd_shape q = g->node.shape, k = operand_shape(g, 1);
    const uint32_t first = q.rank - 3;
    attention a = { .B = first ? q.dims[0] : 1, .T = q.dims[first], .Hkv = k.dims[k.rank - 2], .D = q.dims[first + 2] };
    a.G = q.dims[first + 1] / a.Hkv;
    a.S = k.dims[k.rank - 3];
    if (paged) a.S *= (int64_t)hd_shape_elements(operand_shape(g, 4)) / a.B;
    const hd_value keys = hdi_grad_x(g, 1), values = hdi_grad_x(g, 2);
    a.q = to_heads(g, &a, hdi_grad_x(g, 0), a.T, a.G);
    a.k = to_heads(g, &a, paged ? of_pages(g, keys) : keys, a.S, 1);
    a.v = to_heads(g, &a, paged ? of_pages(g, values) : values, a.S, 1);
    a.dy = to_heads(g, &a, g->dy, a.T, a.G);
    return a;
}

/* Rows begin to end of matrices. */
static hd_value rows_of(hdi_grad *g, hd_value x, int64_t begin, int64_t end) {
    const hd_shape shape = hdi_grad_shape(g, x);
    const int64_t low[] = { 0, 0, 0, begin, 0 }, high[] = { shape.dims[0], shape.dims[1], shape.dims[2], end, shape.dims[4] };
    return begin == 0 && end == shape.dims[3] ? x : hd_slice(g->program, x, low, high, 5);
}

/* 1 where a query of begin to end sees a key of the first `keys`: [B,1,1,end - begin,keys]. */
static hd_value visible(hdi_grad *g, const attention *a, int64_t begin, int64_t end, int64_t keys) {
    hd_program *p = g->program;
    const bool causal = g->node.attrs.ints[0] == 0;
    const hd_value past = hdi_grad_x(g, 3), key = hdi_grad_count(g, 5, 4, keys);
    hd_value seen = hd_reshape(p, hdi_grad_whole(g, causal ? begin + 1 : a->T), HD_SHAPE(1, 1, 1, 1, 1)); /* by the first query */
    if (causal) seen = hd_add(p, seen, hdi_grad_count(g, 5, 3, end - begin));
    if (past) seen = hd_add(p, seen, hd_reshape(p, past, HD_SHAPE(a->B, 1, 1, 1, 1)));
    return hd_less(p, key, seen);
}

/* sums with those of the first keys added: of a block of queries that sees fewer keys than the blocks before. */
static hd_value add_keys(hdi_grad *g, hd_value sums, hd_value first) {
    if (!sums || !first) return sums ? sums : first;
    const int64_t all = hdi_grad_shape(g, sums).dims[3], keys = hdi_grad_shape(g, first).dims[3];
    const hd_value added = hd_add(g->program, rows_of(g, sums, 0, keys), first);
    return keys == all ? added : hd_concat(g->program, (hd_value[]){ added, rows_of(g, sums, keys, all) }, 2, 3);
}
/* As many as there are keys: those behind were not seen by any query. */
static hd_value all_keys(hdi_grad *g, const attention *a, hd_value sums) {
    const int64_t none[5] = { 0 }, behind[5] = { 0, 0, 0, a->S - hdi_grad_shape(g, sums).dims[3], 0 };
    return behind[3] ? hd_pad(g->program, sums, none, behind, 5, 0) : sums;
}

/* Of a block of queries: gradients of them and of the keys and values that they may see. With W = softmax(scale * Q K^T):
 * dV = W^T dY; dW = dY V^T; dS = W * (dW - sum of dW * W) * scale; dQ = dS K, dK = dS^T Q. Heads of a group are added in their
 * order. A query that sees no key has no gradient. */
typedef struct of_attention { hd_value q, k, v; } of_attention;
static of_attention of_block(hdi_grad *g, const attention *a, int64_t begin, int64_t end) {
    hd_program *p = g->program;
    const bool needs_k = hdi_grad_wants(g, 1), needs_q = hdi_grad_wants(g, 0), all = g->node.attrs.ints[0] || hdi_grad_x(g, 3);
    const int64_t keys = all ? a->S : HDI_MIN(end, a->S);
    const float scale = g->node.attrs.floats[0], far = -3e38f;
    const hd_value q = rows_of(g, a->q, begin, end), dy = rows_of(g, a->dy, begin, end);
    const hd_value k = rows_of(g, a->k, 0, keys), v = rows_of(g, a->v, 0, keys);
    const hd_value seen = visible(g, a, begin, end, keys), scores = hdi_grad_times(g, hd_matmul_with(p, q, k, HD_TRANSPOSE_B), scale);
    const hd_value masked = hd_where(p, seen, scores, hdi_grad_fill(g, HD_F32, (hd_shape){ 0 }, far));
    const hd_value weights = hdi_grad_where(g, seen, hd_softmax(p, masked, -1));
    of_attention d = { 0 };
    if (hdi_grad_wants(g, 2)) d.v = hd_sum(p, hd_matmul_with(p, weights, dy, HD_TRANSPOSE_A), 2);
    if (!needs_q && !needs_k) return d;
    const hd_value dw = hd_matmul_with(p, dy, v, HD_TRANSPOSE_B);
    const hd_value ds = hdi_grad_times(g, hd_mul(p, weights, hd_sub(p, dw, hd_dot(p, dw, weights, -1))), scale);
    if (needs_q) d.q = hd_matmul(p, ds, k);
    if (needs_k) d.k = hd_sum(p, hd_matmul_with(p, ds, q, HD_TRANSPOSE_A), 2);
    return d;
}

/* Blocks of 256 queries (of more, where there would be more than 64), so that the weights of one block are all that is there of
 * them, and a causal one skips the keys behind it. The last block comes first: it sees the most keys. */
void hdi_grad_attention(hdi_grad *g) {
    enum { BLOCK = 256 };
    const bool paged = g->node.operand_count > 4;
    const attention a = read_operands(g, paged);
    const hd_shape q = g->node.shape, pool = operand_shape(g, 1), kv = paged ? HD_SHAPE(a.B, a.S, a.Hkv, a.D) : pool;
    const int64_t length = BLOCK * ((a.T + BLOCK * HDI_MAX_OPERANDS - 1) / (BLOCK * HDI_MAX_OPERANDS)), count = (a.T + length - 1) / length;
    hd_value of_q[HDI_MAX_OPERANDS], dk = 0, dv = 0;
    for (int64_t i = count; i-- > 0;) {
        const of_attention d = of_block(g, &a, i * length, HDI_MIN((i + 1) * length, a.T));
        of_q[i] = d.q;
        dk = add_keys(g, dk, d.k);
        dv = add_keys(g, dv, d.v);
    }
    if (hdi_grad_wants(g, 0)) hdi_grad_give(g, 0, from_heads(g, count > 1 ? hd_concat(g->program, of_q, (uint32_t)count, 3) : of_q[0], q));
    if (dk) dk = from_heads(g, all_keys(g, &a, dk), kv);
    if (dv) dv = from_heads(g, all_keys(g, &a, dv), kv);
    hdi_grad_give(g, 1, dk && paged ? to_pages(g, dk, pool) : dk);
    hdi_grad_give(g, 2, dv && paged ? to_pages(g, dv, pool) : dv);
}

/* ---- the caller's own ---- */

void hdi_grad_dispatch(hdi_grad *g) {
    const hd_kernel_gradient *kernel = hdi_grad_kernel(g);
    hd_value inputs[HDI_MAX_OPERANDS], gradients[HDI_MAX_OPERANDS] = { 0 };
    const uint32_t count = g->node.operand_count;
    if (!kernel || !kernel->build) {
        hdi_grad_refuse(g, HD_STATUS_UNSUPPORTED, "this kernel has no gradient: name it in hd_gradients_desc.kernels");
        return;
    }
    for (uint32_t i = 0; i < count; i++) inputs[i] = hdi_grad_x(g, i);
    const hd_status status = kernel->build(kernel->user, g->program, inputs, hdi_grad_y(g), g->dy, gradients);
    if (status) hdi_grad_refuse(g, status, "the caller's function that builds its gradient failed");
    for (uint32_t i = 0; i < count && !status; i++)
        if (hdi_grad_wants(g, i)) hdi_grad_give(g, i, gradients[i]);
}
