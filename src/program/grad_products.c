/* grad_products.c: rules of matrix products, rope, attention and the caller's own kernels. */
#include "program/grad.h"
#include <math.h>

static hd_shape operand_shape(const hdi_grad *g, uint32_t index) { return hdi_grad_shape(g, g->node.operands[index]); }

/* x as matrices in which its last two axes are swapped if `swap`. */
static hd_value turned(hdi_grad *g, hd_value x, bool swap) { return swap ? hd_transpose(g->program, x) : x; }

static bool has_batch(hd_shape shape) {
    for (uint32_t i = 0; i + 2 < shape.rank; i++) if (shape.dims[i] > 1) return true;
    return false;
}

/* dC as the products of gradients read it, and whether these give f32 too. Where bf16 met bf16 or quantised weights to
 * give f32, dC is rounded to bf16 once for both; nothing is added to the gradient of an A that nobody else reads, so it
 * is bf16 as A is. */
typedef struct of_product {
    hd_value dc;
    uint32_t result, result_a; /* HD_RESULT_F32 or 0 */
} of_product;
static of_product of_product_begin(hdi_grad *g) {
    const uint32_t result = (uint32_t)g->node.attrs.ints[0] & HD_RESULT_F32;
    const hd_dtype b = hdi_grad_type(g, g->node.operands[1]);
    const bool narrow = result && hdi_grad_type(g, g->node.operands[0]) == HD_BF16 &&
                        (b == HD_BF16 || !hdi_dtype_is_float(b));
    return (of_product){ narrow ? hdi_grad_rounded(g, g->dy) : g->dy, result,
                         narrow && hdi_grad_reads_alone(g, 0) ? 0u : result };
}

/* With A' and B' as they are multiplied, C = A' B': dA' = dC B'^T. A transposed A gets its own transposed, B' dC^T,
 * which a quantised B cannot begin. */
static hd_value of_a(hdi_grad *g, const of_product *o, bool swap_a, bool swap_b) {
    hd_program *p = g->program;
    const hd_value b = hdi_grad_x(g, 1);
    if (swap_a && hdi_dtype_is_float(hdi_grad_type(g, b))) /* the result has the first one's type */
        return hd_matmul_with(p, hdi_grad_to(g, b, hdi_grad_type(g, o->dc)), o->dc,
                              HD_TRANSPOSE_B | (swap_b ? HD_TRANSPOSE_A : 0u) | o->result_a);
    return turned(g, hd_matmul_with(p, o->dc, b, (swap_b ? 0u : HD_TRANSPOSE_B) | o->result_a), swap_a);
}

/* dB' = A'^T dC. Where B is one matrix, all rows of A and C, of all of a batch, are one sum. */
static void give_b(hdi_grad *g, const of_product *o, bool swap_a, bool swap_b) {
    hd_program *p = g->program;
    hd_value a = hdi_grad_x(g, 0);
    if (!has_batch(operand_shape(g, 1))) {
        a = hdi_grad_flat(g, turned(g, a, swap_a), operand_shape(g, 0).rank - 1);
        hdi_grad_give_product(g, 1, a, hdi_grad_flat(g, o->dc, g->node.shape.rank - 1), swap_b);
    } else if (swap_b) {
        hdi_grad_give(g, 1,
                      hd_matmul_with(p, o->dc, a, HD_TRANSPOSE_A | (swap_a ? HD_TRANSPOSE_B : 0u) | o->result));
    } else {
        hdi_grad_give(g, 1, hd_matmul_with(p, a, o->dc, (swap_a ? 0u : HD_TRANSPOSE_A) | o->result));
    }
}

void hdi_grad_matmul(hdi_grad *g) {
    const bool swap_a = g->node.attrs.ints[0] & HD_TRANSPOSE_A, swap_b = g->node.attrs.ints[0] & HD_TRANSPOSE_B;
    const of_product o = of_product_begin(g);
    if (hdi_grad_wants(g, 0)) hdi_grad_give(g, 0, of_a(g, &o, swap_a, swap_b));
    if (hdi_grad_wants(g, 1)) give_b(g, &o, swap_a, swap_b);
}

/* Of each pair of a row and an expert by itself: dx = dy W of the expert, added up where pairs share a row; dW of an
 * expert is the sum of dy^T x over the pairs that chose it, in their order. A number outside has no gradient. */
void hdi_grad_experts(hdi_grad *g) {
    hd_program *p = g->program;
    const hd_shape x = operand_shape(g, 0), w = operand_shape(g, 1), y = g->node.shape;
    const int64_t T = y.dims[0], U = y.dims[1], N = y.dims[2], K = w.dims[2], pairs = T * U;
    const hd_value numbers = hd_reshape(p, hdi_grad_x(g, 2), HD_SHAPE(pairs)), dy = hdi_grad_wide(g, g->dy);
    if (hdi_grad_wants(g, 0) && !hdi_dtype_is_float(hdi_grad_type(g, hdi_grad_x(g, 1)))) {
        hdi_grad_refuse(g, HD_STATUS_UNSUPPORTED,
                        "rows have no gradient through quantised experts: cast these to f16 first");
        return;
    }
    if (hdi_grad_wants(g, 0)) {
        const hd_value own = hd_gather(p, hd_reshape(p, hdi_grad_x(g, 1), HD_SHAPE(w.dims[0], N * K)), numbers);
        const hd_value weights = hd_reshape(p, hdi_grad_wide(g, own), HD_SHAPE(pairs, N, K));
        const hd_value dx =
            hd_reshape(p, hd_matmul(p, hd_reshape(p, dy, HD_SHAPE(pairs, 1, N)), weights), HD_SHAPE(T, U, K));
        hdi_grad_give(g, 0, x.rank == 3 ? dx : hd_reshape(p, hd_sum(p, dx, 1), x));
    }
    if (hdi_grad_wants(g, 1)) {
        const hd_value rows = hdi_grad_wide(g, hdi_grad_x(g, 0));
        const hd_value apart = x.rank == 3 ? rows : hd_reshape(p, rows, HD_SHAPE(T, 1, K));
        const hd_value each = hd_reshape(p, hdi_grad_expand(g, apart, HD_SHAPE(T, U, K)), HD_SHAPE(pairs, 1, K));
        const hd_value outer = hd_matmul(p, hd_reshape(p, dy, HD_SHAPE(pairs, N, 1)), each);
        const hd_value none = hdi_grad_fill(g, HD_F32, HD_SHAPE(w.dims[0], N * K), 0);
        hdi_grad_give(g, 1,
                      hd_reshape(p, hd_scatter_add(p, none, numbers, hd_reshape(p, outer, HD_SHAPE(pairs, N * K))), w));
    }
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

#define MOST_PLAIN 1024 /* elements of a head that kernels of attention_gradient take */

/* Its operands in f32 as matrices: q and dy [B,Hkv,G,T,D], k and v [B,Hkv,1,S,D], for G query heads to a key head. */
typedef struct attention {
    int64_t  B, T, Hkv, G, S, D;
    hd_value q, k, v, dy;
    hd_value along; /* sum of dy * y of each query and head, [B,Hkv,G,T,1]; 0 where y is too narrow for it */
} attention;

static hd_value to_heads(hdi_grad *g, const attention *a, hd_value x, int64_t rows, int64_t group) {
    const uint32_t axes[] = { 0, 2, 3, 1, 4 };
    const int64_t each = (int64_t)hd_shape_elements(hdi_grad_shape(g, x)) / (a->B * rows * a->Hkv * group);
    return hd_permute(g->program,
                      hd_reshape(g->program, hdi_grad_wide(g, x), HD_SHAPE(a->B, rows, a->Hkv, group, each)), axes, 5);
}
static hd_value from_heads(hdi_grad *g, hd_value x, hd_shape shape) {
    const uint32_t axes[] = { 0, 3, 1, 2, 4 };
    return hd_reshape(g->program, hd_permute(g->program, x, axes, 5), shape);
}

/* The pages that the sequences see, one after the other: [B*S,...] of the pool [N,R,...]. A page outside is the nearest
 * one. */
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
    const hd_value rows =
        hd_reshape(g->program, pool, HD_SHAPE(shape.dims[0], shape.dims[1] * shape.dims[2] * shape.dims[3]));
    return hd_gather(g->program, rows, numbers);
}
static hd_value to_pages(hdi_grad *g, hd_value dx, hd_shape pool) {
    int64_t count;
    const hd_value numbers = page_numbers(g, &count);
    const int64_t page = pool.dims[1] * pool.dims[2] * pool.dims[3];
    const hd_value none = hdi_grad_fill(g, HD_F32, HD_SHAPE(pool.dims[0], page), 0);
    return hd_reshape(g->program,
                      hd_scatter_add(g->program, none, numbers, hd_reshape(g->program, dx, HD_SHAPE(count, page))),
                      pool);
}

/* Does each query see a key, where none is in the past? Its own, if it has one; then what it does not see has a share
 * of 0 already. */
static bool sees_one(hdi_grad *g, const attention *a) {
    return !hdi_grad_x(g, 3) && !hdi_grad_x(g, 7) && (g->node.attrs.ints[1] == 0 || a->T <= a->S);
}

/* y, and 0 for the NaN of a query that sees no key. */
static hd_value finite_y(hdi_grad *g, const attention *a) {
    const hd_value y = hdi_grad_y(g);
    return sees_one(g, a) ? y : hdi_grad_where(g, hd_equal(g->program, y, y), y);
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
    const bool needed = hdi_grad_wants(g, 0) || hdi_grad_wants(g, 1) || hdi_grad_wants(g, 5);
    if (needed && g->node.dtype == HD_F32)
        a.along = to_heads(g, &a, hd_dot(g->program, hdi_grad_wide(g, g->dy), finite_y(g, &a), -1), a.T, a.G);
    return a;
}

/* Rows begin to end of matrices. */
static hd_value rows_of(hdi_grad *g, hd_value x, int64_t begin, int64_t end) {
    const hd_shape shape = hdi_grad_shape(g, x);
    const int64_t low[] = { 0, 0, 0, begin, 0 },
                  high[] = { shape.dims[0], shape.dims[1], shape.dims[2], end, shape.dims[4] };
    return begin == 0 && end == shape.dims[3] ? x : hd_slice(g->program, x, low, high, 5);
}

/* 1 where a query of begin to end sees a key of the first `keys`: [B,1,1,end - begin,keys]. */
static hd_value visible(hdi_grad *g, const attention *a, int64_t begin, int64_t end, int64_t keys) {
    hd_program *p = g->program;
    const bool causal = g->node.attrs.ints[0] == 0;
    const hd_value past = hdi_grad_x(g, 3), key = hdi_grad_count(g, 5, 4, keys);
    hd_value own = hd_add(p, hdi_grad_count(g, 5, 3, end - begin), hdi_grad_whole(g, begin));
    hd_value last = causal ? own : hd_reshape(p, hdi_grad_whole(g, a->T - 1), HD_SHAPE(1, 1, 1, 1, 1));
    if (past) {
        const hd_value before = hd_reshape(p, hd_minimum(p, past, hdi_grad_whole(g, a->S)), HD_SHAPE(a->B, 1, 1, 1, 1));
        own = hd_add(p, own, before);
        last = hd_add(p, last, before);
    }
    hd_value seen = hd_less(p, key, hd_add(p, last, hdi_grad_whole(g, 1)));
    const int64_t window = g->node.attrs.ints[1];
    if (window > 0 && window < a->S + a->T)
        seen = hd_bit_and(p, seen, hd_less(p, hd_sub(p, own, hdi_grad_whole(g, window)), key));
    const hd_value starts = hdi_grad_x(g, 7);
    if (!starts) return seen;
    const hd_value all = hd_reshape(p, starts, HD_SHAPE(a->B, 1, 1, a->T, 1));
    const hd_value before = hd_sub(p, rows_of(g, all, begin, end), hdi_grad_whole(g, 1));
    return hd_bit_and(p, seen, hd_less(p, before, key));
}

/* What the mask adds to scores of queries begin to end and of the first `keys`. */
static hd_value mask_of(hdi_grad *g, const attention *a, int64_t begin, int64_t end, int64_t keys) {
    const hd_shape mask = operand_shape(g, 6);
    int64_t dims[4] = { 1, 1, 1, 1 };
    for (uint32_t i = 0; i < mask.rank; i++) dims[4 - mask.rank + i] = mask.dims[i];
    const bool heads = dims[1] > 1, queries = dims[2] > 1, all_keys = dims[3] > 1;
    const hd_value wide = hd_reshape(g->program, hdi_grad_x(g, 6),
                                     HD_SHAPE(dims[0], heads ? a->Hkv : 1, heads ? a->G : 1, dims[2], dims[3]));
    const int64_t low[] = { 0, 0, 0, queries ? begin : 0, 0 },
                  high[] = { dims[0], heads ? a->Hkv : 1, heads ? a->G : 1, queries ? end : 1, all_keys ? keys : 1 };
    return hd_slice(g->program, wide, low, high, 5);
}

/* Shares of the keys [B,Hkv,G,rows,keys], and of the sinks [B,Hkv,G,rows,1], 0 where there are none. */
typedef struct shares { hd_value keys, sinks; } shares;
static shares shares_of(hdi_grad *g, const attention *a, hd_value scores) {
    hd_program *p = g->program;
    const hd_value sinks = hdi_grad_x(g, 5);
    if (!sinks) return (shares){ hd_softmax(p, scores, -1), 0 };
    const int64_t rows = hdi_grad_shape(g, scores).dims[3], keys = hdi_grad_shape(g, scores).dims[4];
    const hd_value heads = hd_reshape(p, sinks, HD_SHAPE(1, a->Hkv, a->G, 1, 1));
    const hd_value column = hdi_grad_expand(g, heads, HD_SHAPE(a->B, a->Hkv, a->G, rows, 1));
    const hd_value all = hd_softmax(p, hd_concat(p, (hd_value[]){ scores, column }, 2, 4), -1);
    const int64_t begin[] = { 0, 0, 0, 0, 0 }, last[] = { 0, 0, 0, 0, keys };
    const int64_t of_keys[] = { a->B, a->Hkv, a->G, rows, keys }, end[] = { a->B, a->Hkv, a->G, rows, keys + 1 };
    return (shares){ hd_slice(p, all, begin, of_keys, 5), hd_slice(p, all, last, end, 5) };
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

/* Of a block of queries: gradients of them and of the keys, values and sinks that they may see. With W = softmax(scale
 * * Q K^T): dV = W^T dY; dW = dY V^T; dS = W * (dW - sum of dW * W) * scale; dQ = dS K, dK = dS^T Q. The sum of dW * W
 * is that of dY * Y, which is shorter (Dao and others, 2022), and is taken so where Y is f32. Heads of a group are
 * added in their order. A query that sees no key has no gradient. With a cap c, where t = tanh(score / c), dS is also
 * times 1 - t^2. A sink is a score of a value 0: its gradient is -its share * sum of dW * W. */
typedef struct of_attention { hd_value q, k, v, sinks; } of_attention;
static of_attention of_block(hdi_grad *g, const attention *a, int64_t begin, int64_t end) {
    hd_program *p = g->program;
    const bool needs_q = hdi_grad_wants(g, 0), needs_k = hdi_grad_wants(g, 1),
               all = g->node.attrs.ints[0] || hdi_grad_x(g, 3);
    const int64_t keys = all ? a->S : HDI_MIN(end, a->S);
    const bool is_masked = hdi_grad_x(g, 6) != 0;
    const float scale = g->node.attrs.floats[0], cap = g->node.attrs.floats[1], far = is_masked ? -INFINITY : -3e38f;
    const hd_value q = rows_of(g, a->q, begin, end), dy = rows_of(g, a->dy, begin, end);
    const hd_value k = rows_of(g, a->k, 0, keys), v = rows_of(g, a->v, 0, keys);
    const hd_value seen = visible(g, a, begin, end, keys), products = hd_matmul_with(p, q, k, HD_TRANSPOSE_B);
    const hd_value capped = cap > 0 ? hd_tanh(p, hdi_grad_times(g, products, scale / cap)) : 0;
    const hd_value plain = cap > 0 ? hdi_grad_times(g, capped, cap) : hdi_grad_times(g, products, scale);
    const hd_value scores = is_masked ? hd_add(p, plain, mask_of(g, a, begin, end, keys)) : plain;
    const hd_value masked = hd_where(p, seen, scores, hdi_grad_fill(g, HD_F32, (hd_shape){ 0 }, far));
    const shares both = shares_of(g, a, masked);
    const hd_value weights = sees_one(g, a) ? both.keys : hdi_grad_where(g, seen, both.keys);
    const bool needs_sinks = both.sinks && hdi_grad_wants(g, 5);
    of_attention d = { 0 };
    if (hdi_grad_wants(g, 2)) d.v = hd_sum(p, hd_matmul_with(p, weights, dy, HD_TRANSPOSE_A), 2);
    if (!needs_q && !needs_k && !needs_sinks) return d;
    const hd_value dw = hd_matmul_with(p, dy, v, HD_TRANSPOSE_B);
    const hd_value mean = a->along ? rows_of(g, a->along, begin, end) : hd_dot(p, dw, weights, -1);
    hd_value ds = hdi_grad_times(g, hd_mul(p, weights, hd_sub(p, dw, mean)), scale);
    if (capped) ds = hd_mul(p, ds, hd_scale(p, hd_mul(p, capped, capped), -1, 1));
    if (needs_sinks)
        d.sinks = hdi_grad_sum_to(g, hd_neg(p, hd_mul(p, both.sinks, mean)), HD_SHAPE(1, a->Hkv, a->G, 1, 1));
    if (needs_q) d.q = hd_matmul(p, ds, k);
    if (needs_k) d.k = hd_sum(p, hd_matmul_with(p, ds, q, HD_TRANSPOSE_A), 2);
    return d;
}

/* Where all is f32 or bf16, and each query sees the keys up to its own or all of them, or those of them from its start
 * on, without a cap or sinks: one operation, which keeps no weights. Its result is cut into the gradients. */
static bool is_plain(hdi_grad *g) {
    const int64_t window = g->node.attrs.ints[1], keys = operand_shape(g, 1).dims[operand_shape(g, 1).rank - 3];
    const hd_shape q = g->node.shape;
    bool plain = (g->node.dtype == HD_F32 || g->node.dtype == HD_BF16) && g->node.attrs.floats[1] == 0 &&
                 q.dims[q.rank - 1] <= MOST_PLAIN && (window == 0 || window >= keys);
    for (uint32_t i = 0; i < 3; i++) plain = plain && hdi_grad_type(g, hdi_grad_x(g, i)) == g->node.dtype;
    for (uint32_t i = 3; i < g->node.operand_count; i++) plain = plain && (i == 7 || !g->node.operands[i]);
    return plain;
}
static void give_plain(hdi_grad *g) {
    const hd_value operands[] = { hdi_grad_x(g, 0), hdi_grad_x(g, 1), hdi_grad_x(g, 2), hdi_grad_y(g),
                                  hdi_grad_to(g, g->dy, g->node.dtype), hdi_grad_x(g, 7) };
    const int64_t *const ints = g->node.attrs.ints;
    const hdi_attrs attrs = { .ints = { ints[0], 0, ints[2] }, .floats = { g->node.attrs.floats[0] } };
    const hd_value all = hdi_program_put(g->program, &(hdi_node){ .op = HDI_OP_ATTENTION_GRADIENT,
                                                                  .operands = operands, .operand_count = 6,
                                                                  .attrs = attrs });
    int64_t begin = 0;
    for (uint32_t i = 0; i < 3; i++) {
        const hd_shape shape = operand_shape(g, i);
        const int64_t end = begin + (int64_t)hd_shape_elements(shape);
        if (hdi_grad_wants(g, i))
            hdi_grad_give(g, i, hd_reshape(g->program, hd_slice(g->program, all, &begin, &end, 1), shape));
        begin = end;
    }
}

/* Blocks of 256 queries (of more, where there would be more than 64), so that the weights of one block are all that is
 * there of them, and a causal one skips the keys behind it. The last block comes first: it sees the most keys. */
void hdi_grad_attention(hdi_grad *g) {
    enum { BLOCK = 256 };
    if (is_plain(g)) {
        give_plain(g);
        return;
    }
    if (hdi_grad_wants(g, 6)) {
        hdi_grad_refuse(g, HD_STATUS_UNSUPPORTED, "its mask has no gradient: leave it out of what is wanted");
        return;
    }
    const bool paged = g->node.operand_count > 4 && g->node.operands[4];
    const attention a = read_operands(g, paged);
    const hd_shape q = g->node.shape, pool = operand_shape(g, 1), kv = paged ? HD_SHAPE(a.B, a.S, a.Hkv, a.D) : pool;
    const int64_t length = BLOCK * ((a.T + BLOCK * HDI_MAX_OPERANDS - 1) / (BLOCK * HDI_MAX_OPERANDS)),
                  count = (a.T + length - 1) / length;
    hd_value of_q[HDI_MAX_OPERANDS], dk = 0, dv = 0, sinks = 0;
    for (int64_t i = count; i-- > 0;) {
        const of_attention d = of_block(g, &a, i * length, HDI_MIN((i + 1) * length, a.T));
        of_q[i] = d.q;
        dk = add_keys(g, dk, d.k);
        dv = add_keys(g, dv, d.v);
        sinks = sinks && d.sinks ? hd_add(g->program, sinks, d.sinks) : d.sinks;
    }
    if (hdi_grad_wants(g, 0))
        hdi_grad_give(g, 0, from_heads(g, count > 1 ? hd_concat(g->program, of_q, (uint32_t)count, 3) : of_q[0], q));
    if (dk) dk = from_heads(g, all_keys(g, &a, dk), kv);
    if (dv) dv = from_heads(g, all_keys(g, &a, dv), kv);
    hdi_grad_give(g, 1, dk && paged ? to_pages(g, dk, pool) : dk);
    hdi_grad_give(g, 2, dv && paged ? to_pages(g, dv, pool) : dv);
    if (sinks) hdi_grad_give(g, 5, hd_reshape(g->program, sinks, operand_shape(g, 5)));
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
    /* The caller's function is outside: it gets the handle, and values as callers see them. */
    hd_program *const handle = g->program->held.handle ? g->program->held.handle : g->program;
    const uint32_t tag = g->program->held.handle ? g->program->tag : 0;
    for (uint32_t i = 0; i < count; i++) inputs[i] = hdi_value_shown(tag, hdi_grad_x(g, i));
    const hd_value y = hdi_value_shown(tag, hdi_grad_y(g)), dy = hdi_value_shown(tag, g->dy);
    const hd_status status = kernel->build(kernel->user, handle, inputs, y, dy, gradients);
    if (status) hdi_grad_refuse(g, status, "the caller's function that builds its gradient failed");
    for (uint32_t i = 0; i < count && !status; i++)
        if (hdi_grad_wants(g, i)) hdi_grad_give(g, i, hdi_value_id(tag, gradients[i]));
}
