/* grad.c: gradients, a program -> program step: operations that give the derivatives of one number, the loss, are added
 * behind those that are there. The walk goes over what the loss is made of, and nothing else of the program, from the
 * loss back, by descending number of the values, and visits each value on a way from a wanted one to the loss once,
 * when all of its consumers on such ways have given their parts. Parts are added in the order of the consumers'
 * numbers, and of operands of one consumer in theirs: the first two, then the third, and so on. */
#include "program/grad.h"
#include "program/attrs.h"
#include "program/build_help.h"
#include <stdio.h>
#include <stdlib.h>

/* A consumer's part of a value's gradient. Sums over rows are one for each chunk, made at once, so that what they are
 * made of need not be there any longer; where a value has one consumer they are added at once, too. */
typedef struct part {
    hd_value value;    /* or, of a slice, what is to be put in its place; or rows [I,n] of a table, */
    hd_value indices;  /* i32 [I], which are added one by one, chunk by chunk. Else 0 */
    int64_t  chunk;
    bool     added;    /* to what it goes on from: it is the whole sum */
    hd_value consumer;
    uint32_t next;     /* index + 1; 0: the last */
} part;

/* What is known of a value that the loss is made of, and of the loss. */
typedef struct origin {
    hd_value value;
    bool     leads;  /* it is on a way from a wanted one */
    bool     kept;
    uint32_t wanted; /* index + 1 of the first wish for it; 0: none */
    uint32_t first;  /* index + 1 of its first part */
    uint32_t uses;   /* how many operands on the way it is */
    hd_value again;  /* what computes it again; itself: it is kept */
} origin;

/* A value, and its bf16. */
typedef struct rounding { hd_value from, to; } rounding;

struct hdi_grad_walk {
    const hd_gradients_desc *desc;
    hdi_kernel_gradient_fn find_kernel;
    hd_value  loss;
    const hd_value *wanted;
    size_t    wanted_count;
    uint32_t *next_wish; /* for the same value: index + 1; 0: none */
    hd_value  nought;
    origin   *origins;  /* ascending */
    uint32_t  origin_count, origin_capacity;
    part     *parts;
    uint32_t  part_count, part_capacity;
    hdi_grad_constant *constants;
    uint32_t  constant_count, constant_capacity;
    rounding  roundings[2]; /* the last ones, the last first */
    hd_value *pending;  /* values to be computed again, and at first to be looked at */
    uint32_t  pending_count, pending_capacity;
};

typedef void (*rule)(hdi_grad *g);
/* What the gradient column may say besides the name of a rule: the way ends there, or there is no rule yet. */
static void ends(hdi_grad *g) { (void)g; }
#define hdi_grad_ends ends
#define hdi_grad_none NULL
static const rule rules[HDI_OP_COUNT] = {
#define HDI_OP(code, name, least, most, lack, kind, rows, work, rule, takes, builder, reference, lower, gradient, ...) \
    [HDI_OP_##code] = hdi_grad_##gradient,
#include "program/op_table.inc"
#undef HDI_OP
};

static bool failed(const hd_program *program) { return program->error.status != HD_OK; }

static void fail(hd_program *program, hd_status status, const char *format, ...) HDI_PRINTF(3, 4);
static void fail(hd_program *program, hd_status status, const char *format, ...) {
    char text[sizeof program->error.text];
    hd_error error = { 0 };
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hdi_fail(&error, status, "gradients: %s", text);
    snprintf(error.op, sizeof error.op, "gradients");
    hdi_program_fail(program, &error);
}

void hdi_grad_refuse(hdi_grad *g, hd_status status, const char *why) {
    fail(g->program, status, "value %u, %s: %s", g->value, hdi_op_get(g->node.op).name, why);
}

/* ---- what rules ask ---- */

static origin *origin_of(const hdi_grad_walk *walk, hd_value value) {
    uint32_t low = 0, high = walk->origin_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (walk->origins[middle].value < value) low = middle + 1;
        else high = middle;
    }
    return low < walk->origin_count && walk->origins[low].value == value ? &walk->origins[low] : NULL;
}

static bool leads(const hdi_grad_walk *walk, hd_value value) {
    const origin *of = value ? origin_of(walk, value) : NULL;
    return of && of->leads;
}

bool hdi_grad_wants(const hdi_grad *g, uint32_t index) {
    return index < g->node.operand_count && leads(g->walk, g->node.operands[index]);
}

bool hdi_grad_takes_chunks(const hdi_grad *g) { return g->walk->desc->chunk_rows != 0; }

/* May a value be computed again? Not what the caller gave or named, what lies in a state, and a caller's kernel's. */
static bool stays(const hdi_grad_walk *walk, const hd_program *program, const origin *of) {
    const hdi_node *node = hdi_program_node(program, of->value);
    if (!walk->desc->recompute || of->kept || node->is_output) return true;
    if (hdi_op_is_source(node->op) || hdi_op_shows_state(node->op) || node->op == HDI_OP_DISPATCH) return true;
    for (uint32_t i = 0; i < node->operand_count; i++) {
        const hdi_node *operand = hdi_program_node(program, node->operands[i]);
        if (operand && operand->overwritten) return true;
    }
    return false;
}

/* Writes a value's operation once more, over operands that are there. */
static hd_value write_again(hd_program *program, const hdi_grad_walk *walk, hd_value value) {
    hdi_node node = program->nodes[value - 1];
    hd_value operands[HDI_MAX_OPERANDS];
    for (uint32_t i = 0; i < node.operand_count; i++)
        operands[i] = node.operands[i] ? origin_of(walk, node.operands[i])->again : 0;
    node.operands = operands;
    return hdi_program_add(program, &node);
}

/* The forward value as it is there, or computed again from what is kept, once for all who need it. */
static hd_value forward(hdi_grad *g, hd_value wanted) {
    hdi_grad_walk *walk = g->walk;
    hd_program *p = g->program;
    if (wanted == 0 || wanted > walk->loss) return wanted;
    walk->pending_count = 0;
    for (hd_value at = wanted; !failed(p);) {
        hd_value missing = 0;
        origin *of = origin_of(walk, at);
        if (!of->again && stays(walk, p, of)) of->again = at;
        const hdi_node *node = hdi_program_node(p, at);
        for (uint32_t i = 0; !of->again && i < node->operand_count && !missing; i++)
            if (node->operands[i] && !origin_of(walk, node->operands[i])->again) missing = node->operands[i];
        if (missing) {
            if (!hdi_grow(p->allocator, &walk->pending, &walk->pending_capacity, walk->pending_count + 1, sizeof at)) {
                fail(p, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the walk");
                return 0;
            }
            walk->pending[walk->pending_count++] = at;
            at = missing;
            continue;
        }
        if (!of->again) of->again = write_again(p, walk, at);
        if (walk->pending_count == 0) break;
        at = walk->pending[--walk->pending_count];
    }
    return origin_of(walk, wanted)->again;
}

hd_value hdi_grad_x(hdi_grad *g, uint32_t index) {
    return index < g->node.operand_count ? forward(g, g->node.operands[index]) : 0;
}
hd_value hdi_grad_y(hdi_grad *g) { return forward(g, g->value); }

hd_value hdi_grad_nought(hdi_grad *g) {
    hdi_grad_walk *walk = g->walk;
    if (!walk->nought) walk->nought = hdi_build_nought(g->program, walk->loss);
    return walk->nought;
}

hd_value hdi_grad_find(const hdi_grad *g, const hdi_grad_constant *wanted) {
    for (uint32_t i = 0; i < g->walk->constant_count; i++) {
        const hdi_grad_constant *one = &g->walk->constants[i];
        if (one->dtype == wanted->dtype && one->counts == wanted->counts &&
            memcmp(&one->value, &wanted->value, sizeof one->value) == 0 && hdi_shape_equal(one->shape, wanted->shape))
            return one->made;
    }
    return 0;
}
hd_value hdi_grad_keep(hdi_grad *g, hdi_grad_constant made) {
    enum { MOST_ELEMENTS = 1 << 16 };
    hdi_grad_walk *walk = g->walk;
    if (hd_shape_elements(made.shape) > MOST_ELEMENTS) return made.made;
    if (!hdi_grow(g->program->allocator, &walk->constants, &walk->constant_capacity, walk->constant_count + 1,
                  sizeof made)) {
        fail(g->program, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a constant");
        return 0;
    }
    walk->constants[walk->constant_count++] = made;
    return made.made;
}

hd_value hdi_grad_rounded(hdi_grad *g, hd_value x) {
    rounding *last = g->walk->roundings;
    for (size_t i = 0; i < HDI_COUNT(g->walk->roundings); i++)
        if (last[i].from == x) return last[i].to;
    last[1] = last[0];
    last[0] = (rounding){ x, hdi_grad_to(g, x, HD_BF16) };
    return last[0].to;
}

const hd_kernel_gradient *hdi_grad_kernel(const hdi_grad *g) {
    return g->walk->find_kernel ? g->walk->find_kernel(g->walk->desc, g->node.attrs.custom->kernel) : NULL;
}

/* Operands ascending: behind the parts that this consumer gave before. Those of later consumers come after them. */
static void add_part(hdi_grad *g, hd_value to, part one) {
    hdi_grad_walk *walk = g->walk;
    hd_program *p = g->program;
    if (one.value == 0 || failed(p)) return;
    if (!hdi_grow(p->allocator, &walk->parts, &walk->part_capacity, walk->part_count + 1, sizeof one)) {
        fail(p, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for another part");
        return;
    }
    uint32_t *link = &origin_of(walk, to)->first;
    while (*link && walk->parts[*link - 1].consumer == g->value) link = &walk->parts[*link - 1].next;
    one.consumer = g->value;
    one.next = *link;
    walk->parts[walk->part_count] = one;
    *link = ++walk->part_count;
}

/* The gradient that a wanted value's goes on from; 0: none. */
static hd_value so_far(const hdi_grad_walk *walk, hd_value value) {
    for (uint32_t i = origin_of(walk, value)->wanted; i && walk->desc->continued; i = walk->next_wish[i - 1])
        if (walk->desc->continued[i - 1]) return walk->desc->continued[i - 1];
    return 0;
}

bool hdi_grad_reads_alone(const hdi_grad *g, uint32_t index) {
    return origin_of(g->walk, g->node.operands[index])->uses == 1;
}

/* Is there no other consumer, whose parts would come between these? */
static bool alone(const hdi_grad *g, uint32_t index) {
    return hdi_grad_reads_alone(g, index) && g->node.op != HDI_OP_SLICE;
}

/* Where the sums of a product's operand go: to what was cast to it, so that they go on from what there was of that.
 * *out_alone: nobody else's parts come between. */
static hd_value beyond_casts(const hdi_grad *g, uint32_t index, bool *out_alone) {
    hd_value to = g->node.operands[index];
    *out_alone = alone(g, index);
    for (;;) {
        const hdi_node *node = hdi_program_node(g->program, to);
        if (node->op != HDI_OP_CAST || origin_of(g->walk, to)->wanted) return to;
        to = node->operands[0];
        *out_alone &= origin_of(g->walk, to)->uses == 1;
    }
}

/* The sum with a term; of narrow types several are added in f32. */
static hd_value plus(hdi_grad *g, hd_value sum, hd_value term) {
    return sum ? hd_add(g->program, hdi_grad_wide(g, sum), hdi_grad_wide(g, term)) : term;
}

/* Rows begin to end of x. */
static hd_value rows_of(hdi_grad *g, hd_value x, int64_t begin, int64_t end) {
    const hd_shape shape = hdi_grad_shape(g, x);
    int64_t low[HD_MAX_RANK] = { 0 }, high[HD_MAX_RANK];
    if (begin == 0 && end == shape.dims[0]) return x;
    memcpy(high, shape.dims, sizeof high);
    low[0] = begin;
    high[0] = end;
    return hd_slice(g->program, x, low, high, shape.rank);
}

/* Indices of a leading axis to a chunk, each of which stands for so many rows. */
static int64_t chunk_of(const hdi_grad *g, int64_t length, int64_t rows_each) {
    const int64_t wish = g->walk->desc->chunk_rows;
    return wish == 0 ? length : wish % rows_each == 0 ? HDI_MIN(wish / rows_each, length) : 1;
}

/* Sums of x along its first axis, `step` at a time, those of all whole chunks in one operation. */
static void give_chunks(hdi_grad *g, uint32_t index, hd_value x, int64_t step) {
    hd_program *p = g->program;
    const hd_value to = g->node.operands[index];
    const hd_shape shape = hdi_grad_shape(g, to);
    const int64_t length = hdi_grad_shape(g, x).dims[0], n = (int64_t)hd_shape_elements(shape), whole = length / step;
    const hd_value chunks = hd_reshape(p, rows_of(g, x, 0, whole * step), HD_SHAPE(whole, step, n));
    const hd_value sums = hd_reshape(p, hd_sum(p, chunks, 1), HD_SHAPE(whole, n));
    const hd_value rest =
        whole * step < length ? hd_reshape(p, hd_sum(p, rows_of(g, x, whole * step, length), 0), HD_SHAPE(1, n)) : 0;
    if (alone(g, index) && whole > 1) { /* scatter_add adds rows in their order to what is there */
        const hd_value before = so_far(g->walk, to),
                       zero = hdi_grad_fill(g, HD_I32, HD_SHAPE(whole), 0);
        hd_value sum = before ? hdi_grad_wide(g, hd_reshape(p, before, HD_SHAPE(1, n)))
                              : hdi_grad_fill(g, HD_F32, HD_SHAPE(1, n), 0);
        sum = hd_scatter_add(p, sum, zero, hdi_grad_wide(g, sums));
        if (rest) sum = plus(g, sum, rest);
        add_part(g, to, (part){ .value = hd_reshape(p, sum, shape), .added = true });
        return;
    }
    for (int64_t k = 0; k < whole; k++)
        add_part(g, to, (part){ .value = hd_reshape(p, rows_of(g, sums, k, k + 1), shape), .chunk = k });
    if (rest) add_part(g, to, (part){ .value = hd_reshape(p, rest, shape), .chunk = whole });
}

void hdi_grad_give(hdi_grad *g, uint32_t index, hd_value dx) {
    if (!hdi_grad_wants(g, index) || dx == 0 || failed(g->program)) return;
    const hd_value to = g->node.operands[index];
    const hd_shape shape = hdi_grad_shape(g, to), from = hdi_grad_shape(g, dx);
    if (hdi_grad_type(g, dx) != HD_F32) dx = hdi_grad_to(g, dx, hdi_grad_type(g, to));
    uint32_t lead = 0, before = from.rank > shape.rank ? from.rank - shape.rank : 0;
    while (g->walk->desc->chunk_rows && lead < from.rank && (lead < before || shape.dims[lead - before] == 1)) lead++;
    if (g->node.op == HDI_OP_SLICE) {
        add_part(g, to, (part){ .value = dx });
    } else if (lead == 0) {
        add_part(g, to, (part){ .value = hdi_grad_sum_to(g, dx, shape) });
    } else { /* the other axes at once, the leading ones by chunks */
        hd_shape left = from;
        int64_t rows_each = 1;
        for (uint32_t i = lead; i < from.rank; i++) left.dims[i] = shape.dims[i - before];
        for (uint32_t i = lead; i + 1 < from.rank; i++) rows_each *= left.dims[i];
        dx = hdi_grad_flat(g, hdi_grad_sum_to(g, dx, left), lead);
        if (dx) give_chunks(g, index, dx, chunk_of(g, hdi_grad_shape(g, dx).dims[0], rows_each));
    }
}

void hdi_grad_give_product(hdi_grad *g, uint32_t index, hd_value x, hd_value dy, bool turned) {
    if (!hdi_grad_wants(g, index) || failed(g->program)) return;
    bool at_once;
    const hd_value to = beyond_casts(g, index, &at_once);
    const hd_shape shape = hdi_grad_shape(g, to);
    const int64_t length = hdi_grad_shape(g, x).dims[0], step = chunk_of(g, length, 1);
    const bool narrow = hdi_grad_type(g, x) == HD_BF16 && hdi_grad_type(g, dy) == HD_BF16;
    hd_value sum = at_once ? so_far(g->walk, to) : 0;
    for (int64_t k = 0; k * step < length && !failed(g->program); k++) {
        const int64_t begin = k * step, end = HDI_MIN(begin + step, length);
        const hd_value of_x = rows_of(g, x, begin, end), of_dy = rows_of(g, dy, begin, end);
        const hd_value first = turned ? of_dy : of_x;
        hd_value product = hd_matmul_with(g->program, narrow ? first : hdi_grad_wide(g, first), turned ? of_x : of_dy,
                                          HD_TRANSPOSE_A | (narrow ? HD_RESULT_F32 : 0u));
        /* What is added at once becomes a part of the product; what is added much later is not to wait for that, so a
         * reshape stays between. */
        if (!at_once || !hdi_shape_equal(hdi_grad_shape(g, product), shape))
            product = hd_reshape(g->program, product, shape);
        if (at_once) sum = plus(g, sum, product);
        else add_part(g, to, (part){ .value = product, .chunk = k });
    }
    if (at_once) add_part(g, to, (part){ .value = sum, .added = true });
}
void hdi_grad_give_rows(hdi_grad *g, uint32_t index, hd_value indices, hd_value rows) {
    if (hdi_grad_wants(g, index))
        add_part(g, g->node.operands[index], (part){ .value = rows, .indices = indices });
}

/* ---- adding parts ---- */

typedef struct cut { int64_t begin; hd_value value; } cut;
static int by_begin(const void *a, const void *b) {
    const cut *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Is the value's gradient to stay f32, as it is summed? */
static bool is_wide(const hdi_grad_walk *walk, hd_value value) {
    return walk->desc->wide && origin_of(walk, value)->wanted;
}

/* Slices of one value that lie side by side along one axis and leave nothing out: their parts joined. 0: they are not
 * so. */
static hd_value joined(hdi_grad *g, hd_value value) {
    const hdi_grad_walk *walk = g->walk;
    const hd_shape shape = hdi_grad_shape(g, value);
    const hd_dtype dtype = is_wide(walk, value) ? HD_F32 : hdi_grad_type(g, value);
    cut cuts[HDI_MAX_OPERANDS];
    hd_value values[HDI_MAX_OPERANDS];
    uint32_t count = 0, axis = HD_MAX_RANK;
    for (uint32_t at = origin_of(walk, value)->first; at; at = walk->parts[at - 1].next) {
        const part *one = &walk->parts[at - 1];
        const hdi_node *slice = hdi_program_node(g->program, one->consumer);
        if (slice->op != HDI_OP_SLICE || count == HDI_MAX_OPERANDS) return 0;
        for (uint32_t i = 0; i < shape.rank; i++) {
            if (slice->shape.dims[i] == shape.dims[i]) continue;
            if (axis != HD_MAX_RANK && axis != i) return 0;
            axis = i;
        }
        if (axis == HD_MAX_RANK) return 0;
        cuts[count++] = (cut){ slice->attrs.ints[axis], hdi_grad_to(g, one->value, dtype) };
    }
    if (count < 2) return 0;
    qsort(cuts, count, sizeof *cuts, by_begin);
    int64_t end = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (cuts[i].begin != end) return 0;
        values[i] = cuts[i].value;
        end += hdi_grad_shape(g, values[i]).dims[axis];
    }
    return end == shape.dims[axis] ? hd_concat(g->program, values, count, (int)axis) : 0;
}

/* A slice's part in its place, zeros around it. */
static hd_value in_place(hdi_grad *g, const part *one, hd_shape shape) {
    const hdi_node *slice = hdi_program_node(g->program, one->consumer);
    int64_t before[HD_MAX_RANK], after[HD_MAX_RANK];
    if (slice->op != HDI_OP_SLICE || hdi_shape_equal(slice->shape, shape)) return one->value;
    for (uint32_t i = 0; i < shape.rank; i++) {
        before[i] = slice->attrs.ints[i];
        after[i] = shape.dims[i] - slice->attrs.ints[HD_MAX_RANK + i];
    }
    return hd_pad(g->program, one->value, before, after, shape.rank, 0);
}

/* What a part of a value's gradient adds to the sum so far, 0 for none, in chunk `k`. Returns the new sum. */
static hd_value add_chunk(hdi_grad *g, hd_value value, const part *one, hd_value sum, int64_t k) {
    hd_program *p = g->program;
    const hd_shape shape = hdi_grad_shape(g, value);
    if (!one->indices) {
        if (one->chunk != k) return sum;
        return plus(g, sum, in_place(g, one, shape));
    }
    /* chunks or not, rows are added one by one */
    const bool only = g->walk->parts[origin_of(g->walk, value)->first - 1].next == 0;
    const int64_t length = hdi_grad_shape(g, one->value).dims[0], step = only ? length : chunk_of(g, length, 1),
                  begin = k * step;
    if (begin >= length) return sum;
    const hd_dtype dtype = is_wide(g->walk, value) ? HD_F32 : hdi_grad_type(g, sum ? sum : one->value);
    if (!sum) sum = hdi_grad_fill(g, dtype, shape, 0);
    const int64_t end = HDI_MIN(begin + step, length);
    return hd_scatter_add(p, sum, rows_of(g, one->indices, begin, end),
                          hdi_grad_to(g, rows_of(g, one->value, begin, end), dtype));
}

/* The gradient of a value, all parts of which are there; 0: there are none. Chunk by chunk, and in each part by part,
 * to what there was before. Of narrow types several are added in f32. */
static hd_value total(hdi_grad *g, hd_value value, hd_value sum, bool keep_wide) {
    const hdi_grad_walk *walk = g->walk;
    const hd_value whole = sum ? 0 : joined(g, value);
    if (whole) return whole;
    const uint32_t begin = origin_of(walk, value)->first;
    const part *first = begin ? &walk->parts[begin - 1] : NULL;
    if (first && first->added) return keep_wide ? first->value : hdi_grad_to(g, first->value, hdi_grad_type(g, value));
    bool more = true;
    for (int64_t k = 0; more && !failed(g->program); k++) {
        const hd_value before = sum; /* chunks have no gaps */
        for (uint32_t at = begin; at; at = walk->parts[at - 1].next) {
            const part one = walk->parts[at - 1];
            sum = add_chunk(g, value, &one, sum, k);
        }
        more = sum != before;
    }
    return sum && !keep_wide ? hdi_grad_to(g, sum, hdi_grad_type(g, value)) : sum;
}

/* ---- the walk ---- */

/* pending as a heap, the largest value first. */
static bool push(const hd_program *program, hdi_grad_walk *walk, hd_value value) {
    if (!hdi_grow(program->allocator, &walk->pending, &walk->pending_capacity, (size_t)walk->pending_count + 1,
                  sizeof value)) return false;
    uint32_t at = walk->pending_count++;
    for (; at > 0 && walk->pending[(at - 1) / 2] < value; at = (at - 1) / 2)
        walk->pending[at] = walk->pending[(at - 1) / 2];
    walk->pending[at] = value;
    return true;
}
static hd_value pop(hdi_grad_walk *walk) {
    hd_value *heap = walk->pending;
    const hd_value largest = heap[0], last = heap[--walk->pending_count];
    uint32_t at = 0;
    for (uint32_t child = 1; child < walk->pending_count; child = 2 * at + 1) {
        if (child + 1 < walk->pending_count && heap[child + 1] > heap[child]) child++;
        if (heap[child] <= last) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return largest;
}

/* The loss and what it is made of. A value comes out of the heap behind all that read it. */
static bool find_origins(const hd_program *program, hdi_grad_walk *walk) {
    bool grown = push(program, walk, walk->loss);
    while (walk->pending_count > 0 && grown) {
        const hd_value value = pop(walk);
        if (walk->origin_count > 0 && walk->origins[walk->origin_count - 1].value == value) continue;
        grown = hdi_grow(program->allocator, &walk->origins, &walk->origin_capacity, (size_t)walk->origin_count + 1,
                         sizeof *walk->origins);
        if (grown) walk->origins[walk->origin_count++] = (origin){ .value = value };
        const hdi_node *node = &program->nodes[value - 1];
        for (uint32_t i = 0; i < node->operand_count && grown; i++)
            if (node->operands[i]) grown = push(program, walk, node->operands[i]);
    }
    for (uint32_t i = 0, k = walk->origin_count; i + 1 < k--; i++) {
        const origin one = walk->origins[i];
        walk->origins[i] = walk->origins[k];
        walk->origins[k] = one;
    }
    return grown;
}

static void take_wishes(hdi_grad_walk *walk) {
    for (size_t i = walk->wanted_count; i-- > 0;) {
        origin *of = origin_of(walk, walk->wanted[i]);
        if (!of) continue;
        walk->next_wish[i] = of->wanted;
        of->wanted = (uint32_t)i + 1;
    }
    for (size_t i = 0; i < walk->desc->kept_count; i++) {
        origin *of = origin_of(walk, walk->desc->kept[i]);
        if (of) of->kept = true;
    }
}

/* Finds the values on a way from a wanted one to the loss. */
static void find_ways(const hd_program *program, const hdi_grad_walk *walk) {
    for (uint32_t k = 0; k < walk->origin_count; k++) {
        origin *of = &walk->origins[k];
        const hdi_node *node = &program->nodes[of->value - 1];
        const uint32_t operand_count = rules[node->op] != ends ? node->operand_count : 0;
        bool led = of->wanted;
        for (uint32_t i = 0; i < operand_count && !led; i++) led = leads(walk, node->operands[i]);
        if (!led || !hdi_dtype_is_float(node->dtype)) continue;
        of->leads = true;
        for (uint32_t i = 0; i < operand_count; i++)
            if (leads(walk, node->operands[i])) origin_of(walk, node->operands[i])->uses++;
    }
}

/* What a gradient goes on from is added before all else, which the gradients of what the value is made of would
 * lack. */
static void check_continued(hd_program *program, const hdi_grad_walk *walk) {
    for (size_t i = 0; i < walk->wanted_count && walk->desc->continued; i++) {
        const hdi_node *node = hdi_program_node(program, walk->wanted[i]);
        bool leads_on = false;
        for (uint32_t k = 0; k < node->operand_count && origin_of(walk, walk->wanted[i]); k++)
            leads_on |= leads(walk, node->operands[k]);
        if (leads_on && walk->desc->continued[i] && !failed(program))
            fail(program, HD_STATUS_INVALID_ARGUMENT,
                 "value %u is no input or state but made of another wanted value: its gradient cannot be continued",
                 walk->wanted[i]);
    }
}

static hd_value seed(hdi_grad *g) {
    const hd_value given = g->walk->desc->loss_gradient;
    return given ? given : hdi_grad_fill(g, HD_F32, hdi_grad_shape(g, g->walk->loss), 1);
}

static void walk_back(hd_program *program, hdi_grad_walk *walk, hd_value *out_gradients) {
    for (uint32_t k = walk->origin_count; k-- > 0 && !failed(program);) {
        const origin *of = &walk->origins[k];
        const hd_value v = of->value;
        if (!of->leads || (v != walk->loss && !of->first)) continue;
        hdi_grad g = { .program = program, .walk = walk, .node = program->nodes[v - 1], .value = v };
        const bool is_cast = g.node.op == HDI_OP_CAST || g.node.op == HDI_OP_ROUND_RANDOM;
        bool leads_on = false;
        for (uint32_t i = 0; i < g.node.operand_count; i++) leads_on |= hdi_grad_wants(&g, i);
        const bool wide = is_wide(walk, v);
        g.dy = v == walk->loss
                   ? seed(&g)
                   : total(&g, v, of->wanted ? so_far(walk, v) : 0, of->wanted ? wide : is_cast);
        if (wide && g.dy) g.dy = hdi_grad_wide(&g, g.dy);
        for (uint32_t i = of->wanted; i; i = walk->next_wish[i - 1]) out_gradients[i - 1] = g.dy;
        if (!leads_on || failed(program)) continue;
        if (wide && !is_cast) g.dy = hdi_grad_to(&g, g.dy, g.node.dtype);
        if (rules[g.node.op]) rules[g.node.op](&g);
        else hdi_grad_refuse(&g, HD_STATUS_UNSUPPORTED, "this operation has no gradient yet");
    }
}

static bool check(hd_program *program, hd_value loss, const hd_value *wanted, size_t wanted_count,
                  const hd_gradients_desc *desc) {
    const hdi_node *node = hdi_program_node(program, loss), *given = hdi_program_node(program, desc->loss_gradient);
    if (!node)
        fail(program, HD_STATUS_UNKNOWN_VALUE, "the loss is value %u, the program has 1 to %u", loss,
             program->node_count);
    else if (node->dtype != HD_F32 || (hd_shape_elements(node->shape) != 1 && !desc->loss_gradient))
        fail(program, HD_STATUS_SHAPE, "the loss is %s %s, it must be one f32: sum it, or give loss_gradient",
             hd_dtype_name(node->dtype), hdi_shape_text(node->shape, (char[HDI_SHAPE_TEXT]){ 0 }));
    else if (desc->loss_gradient && (!given || given->dtype != HD_F32 || !hdi_shape_equal(given->shape, node->shape)))
        fail(program, HD_STATUS_SHAPE, "loss_gradient must be a value of the loss's type and shape");
    for (size_t i = 0; i < wanted_count + desc->kept_count && !failed(program); i++) {
        const hd_value value = i < wanted_count ? wanted[i] : desc->kept[i - wanted_count];
        if (!hdi_program_node(program, value))
            fail(program, HD_STATUS_UNKNOWN_VALUE, "%s %u, the program has 1 to %u",
                 i < wanted_count ? "wanted is value" : "kept is value", value, program->node_count);
    }
    for (size_t i = 0; i < wanted_count && desc->continued && !failed(program); i++) {
        const hdi_node *before = hdi_program_node(program, desc->continued[i]),
                       *of = hdi_program_node(program, wanted[i]);
        if (desc->continued[i] != 0 &&
            (!before || before->dtype != (desc->wide ? HD_F32 : of->dtype) ||
             !hdi_shape_equal(before->shape, of->shape)))
            fail(program, HD_STATUS_SHAPE, "what the gradient of value %u goes on from must have its type and shape",
                 wanted[i]);
    }
    return !failed(program);
}

static bool begin(const hd_program *program, hdi_grad_walk *walk) {
    walk->next_wish = hdi_alloc(program->allocator, (walk->wanted_count + 1) * sizeof *walk->next_wish);
    if (!walk->next_wish || !find_origins(program, walk)) return false;
    take_wishes(walk);
    find_ways(program, walk);
    return true;
}

static void end(const hd_program *program, hdi_grad_walk *walk) {
    hdi_free(program->allocator, walk->next_wish, (walk->wanted_count + 1) * sizeof *walk->next_wish);
    hdi_free(program->allocator, walk->origins, walk->origin_capacity * sizeof *walk->origins);
    hdi_free(program->allocator, walk->parts, walk->part_capacity * sizeof *walk->parts);
    hdi_free(program->allocator, walk->constants, walk->constant_capacity * sizeof *walk->constants);
    hdi_free(program->allocator, walk->pending, walk->pending_capacity * sizeof *walk->pending);
}

hd_status hdi_program_gradients(hd_program *program, hd_value loss, const hd_value *wanted, size_t wanted_count,
                                const hd_gradients_desc *desc, hdi_kernel_gradient_fn find_kernel,
                                hd_value *out_gradients) {
    hdi_grad_walk walk = {
        .desc = desc, .find_kernel = find_kernel, .loss = loss, .wanted = wanted, .wanted_count = wanted_count
    };
    for (size_t i = 0; i < wanted_count; i++) out_gradients[i] = 0;
    if (failed(program) || !check(program, loss, wanted, wanted_count, desc)) return program->error.status;
    if (!begin(program, &walk)) fail(program, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the walk");
    else {
        check_continued(program, &walk);
        walk_back(program, &walk, out_gradients);
    }
    end(program, &walk);
    for (size_t i = 0; i < wanted_count; i++) {
        if (failed(program)) out_gradients[i] = 0;
        else if (!out_gradients[i] && desc->continued) out_gradients[i] = desc->continued[i];
    }
    return program->error.status;
}

hd_status hdi_gradients(hd_program *program, hd_value loss, const hd_value *wanted, size_t wanted_count,
                        const hd_gradients_desc *desc, hdi_kernel_gradient_fn find_kernel, hd_value *out_gradients) {
    hd_gradients_desc wishes = *desc;
    uint32_t tag;
    if (!hdi_program_see(&program, &tag)) return HDI_REFUSE(program);
    if (wanted_count > 0 && (!wanted || !out_gradients)) return HD_STATUS_NULL_POINTER;
    if ((wishes.kept_count > 0 && !wishes.kept) || (wishes.kernel_count > 0 && !wishes.kernels))
        return HD_STATUS_NULL_POINTER;
    const size_t kept_end = wanted_count + wishes.kept_count, count = kept_end + (wishes.continued ? wanted_count : 0);
    hd_value *ids = hdi_alloc(program->allocator, count * sizeof *ids);
    if (count > 0 && !ids) return HD_STATUS_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < wanted_count; i++) ids[i] = hdi_value_id(tag, wanted[i]);
    for (size_t i = wanted_count; i < kept_end; i++) ids[i] = hdi_value_id(tag, wishes.kept[i - wanted_count]);
    for (size_t i = kept_end; i < count; i++) ids[i] = hdi_value_id(tag, wishes.continued[i - kept_end]);
    wishes.loss_gradient = hdi_value_id(tag, wishes.loss_gradient);
    wishes.kept = ids ? ids + wanted_count : NULL;
    wishes.continued = ids && wishes.continued ? ids + kept_end : NULL;
    const hd_status status =
        hdi_program_gradients(program, hdi_value_id(tag, loss), ids, wanted_count, &wishes, find_kernel, out_gradients);
    for (size_t i = 0; i < wanted_count; i++) out_gradients[i] = hdi_value_shown(tag, out_gradients[i]);
    hdi_free(program->allocator, ids, count * sizeof *ids);
    return status;
}
