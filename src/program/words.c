/* words.c: a program -> program step that makes integers which no kernel knows of those that kernels have, so that they
 * run, fuse and give equal bits wherever these do: i8 becomes u8, u32 becomes i32, and i64 two i32, its low and its
 * high word. What callers hold of inputs and outputs are the same bytes before and after. */
#include "program/program.h"
#include <math.h>

/* What stands for a value. Of an i64 `whole` is i32 [n,2], the bytes as they lie, and word[] its low and its high words
 * in the value's shape: each is made when it is first asked for. */
typedef struct part { hd_value whole, word[2]; } part;

typedef struct walk {
    const hd_program *from;
    hd_program *to;
    part       *parts; /* of each value of `from` */
} walk;

static bool is_new(hd_dtype dtype) { return dtype == HD_I8 || dtype == HD_U32 || dtype == HD_I64; }
static hd_dtype stored_as(hd_dtype dtype) {
    return dtype == HD_I8 ? HD_U8 : dtype == HD_U32 || dtype == HD_I64 ? HD_I32 : dtype;
}
static hd_shape pairs_of(hd_shape shape) { return HD_SHAPE((int64_t)hd_shape_elements(shape), 2); }
static hd_dtype type_of(const walk *w, hd_value value) {
    const hdi_node *node = hdi_program_node(w->from, value);
    return node ? node->dtype : HD_DTYPE_NONE;
}

static hd_value whole(const walk *w, hd_value value) {
    if (!value) return 0;
    part *of = &w->parts[value - 1];
    if (!of->whole) {
        const hd_shape column = HD_SHAPE(pairs_of(w->from->nodes[value - 1].shape).dims[0], 1);
        of->whole = hd_concat(w->to, (hd_value[]){ hd_reshape(w->to, of->word[0], column),
                                                   hd_reshape(w->to, of->word[1], column) }, 2, 1);
    }
    return of->whole;
}
static hd_value word(const walk *w, hd_value value, uint32_t which) {
    part *of = &w->parts[value - 1];
    const hd_shape shape = w->from->nodes[value - 1].shape;
    const int64_t begin[] = { 0, which }, end[] = { pairs_of(shape).dims[0], which + 1 };
    if (!of->word[which]) of->word[which] = hd_reshape(w->to, hd_slice(w->to, of->whole, begin, end, 2), shape);
    return of->word[which];
}

/* ---- of words: i32 whose bits are a number's; what is compared gives u8 ---- */

static hd_value fixed(hd_program *p, hd_value like, float number) { return hd_clip(p, like, number, number); }
static hd_value turned(hd_program *p, hd_value x) { return hd_bit_xor(p, x, fixed(p, x, -0x1p31f)); }
static hd_value below(hd_program *p, hd_value a, hd_value b) { return hd_less(p, turned(p, a), turned(p, b)); }
static hd_value is_negative(hd_program *p, hd_value x) { return hd_less(p, x, fixed(p, x, 0)); }
static hd_value is_zero(hd_program *p, hd_value x) { return hd_equal(p, x, fixed(p, x, 0)); }
static hd_value is_not(hd_program *p, hd_value holds) { return hd_equal(p, holds, hd_less(p, holds, holds)); }
static hd_value number(hd_program *p, hd_value condition) { return hd_cast(p, condition, HD_I32); }
static hd_value up(hd_program *p, hd_value x, float by) { return hd_shift_left(p, x, fixed(p, x, by)); }
static hd_value down(hd_program *p, hd_value x, float by) { return hd_shift_right_logical(p, x, fixed(p, x, by)); }
static hd_value low_half(hd_program *p, hd_value x) { return hd_bit_and(p, x, fixed(p, x, 65535)); }
/* The bits of an i32's sign, in every place. */
static hd_value sign_bits(hd_program *p, hd_value x) { return hd_shift_right_arithmetic(p, x, fixed(p, x, 31)); }

/* i8 as stored in u8, and back: the low eight bits. */
static hd_value widened(hd_program *p, hd_value x) {
    const hd_value byte = hd_cast(p, x, HD_I32), sign = fixed(p, byte, 128);
    return hd_sub(p, hd_bit_xor(p, byte, sign), sign);
}
static hd_value narrowed(hd_program *p, hd_value x) { return hd_cast(p, hd_bit_and(p, x, fixed(p, x, 255)), HD_U8); }

/* Without a sign, x / 0 is 0: half of a, divided and doubled, is the quotient or one less. Divisors of 2^31 and more go
 * once or not. */
static hd_value quotient(hd_program *p, hd_value a, hd_value b) {
    const hd_value half = up(p, hd_div(p, down(p, a, 1), b), 1), rest = hd_sub(p, a, hd_mul(p, half, b));
    const hd_value small = hd_add(p, half, number(p, is_not(p, below(p, rest, b))));
    const hd_value large = number(p, is_not(p, below(p, a, b)));
    return hd_where(p, is_zero(p, b), fixed(p, b, 0), hd_where(p, is_negative(p, b), large, small));
}

static part negated(hd_program *p, part x) {
    const hd_value zero = fixed(p, x.word[0], 0), borrow = number(p, is_not(p, is_zero(p, x.word[0])));
    return (part){ 0, { hd_sub(p, zero, x.word[0]), hd_sub(p, hd_sub(p, zero, x.word[1]), borrow) } };
}
static part added(hd_program *p, part a, part b) {
    const hd_value low = hd_add(p, a.word[0], b.word[0]), carry = number(p, below(p, low, a.word[0]));
    return (part){ 0, { low, hd_add(p, hd_add(p, a.word[1], b.word[1]), carry) } };
}
static part subtracted(hd_program *p, part a, part b) {
    const hd_value borrow = number(p, below(p, a.word[0], b.word[0]));
    return (part){ 0, { hd_sub(p, a.word[0], b.word[0]), hd_sub(p, hd_sub(p, a.word[1], b.word[1]), borrow) } };
}
/* As on paper, in digits of 16 bits: no product of two leaves 32. */
static part multiplied(hd_program *p, part a, part b) {
    const hd_value a0 = low_half(p, a.word[0]), a1 = down(p, a.word[0], 16);
    const hd_value b0 = low_half(p, b.word[0]), b1 = down(p, b.word[0], 16);
    const hd_value left = hd_mul(p, a1, b0), right = hd_mul(p, a0, b1);
    const hd_value middle = hd_add(p, hd_add(p, down(p, hd_mul(p, a0, b0), 16), low_half(p, left)), low_half(p, right));
    const hd_value carried = hd_add(p, hd_add(p, down(p, left, 16), down(p, right, 16)), down(p, middle, 16));
    const hd_value crossed = hd_add(p, hd_mul(p, a.word[0], b.word[1]), hd_mul(p, a.word[1], b.word[0]));
    return (part){ 0, { hd_mul(p, a.word[0], b.word[0]),
                        hd_add(p, hd_add(p, hd_mul(p, a1, b1), carried), crossed) } };
}
static hd_value is_less(hd_program *p, part a, part b) {
    return hd_bit_or(p, hd_less(p, a.word[1], b.word[1]),
                     hd_bit_and(p, hd_equal(p, a.word[1], b.word[1]), below(p, a.word[0], b.word[0])));
}
static part chosen(hd_program *p, hd_value condition, part a, part b) {
    return (part){ 0, { hd_where(p, condition, a.word[0], b.word[0]), hd_where(p, condition, a.word[1], b.word[1]) } };
}

/* ---- casts ---- */

/* A number without a sign as f32, rounded once: both terms are exact. */
static hd_value word_to_f32(hd_program *p, hd_value x) {
    const hd_value high = hd_cast(p, down(p, x, 16), HD_F32), low = hd_cast(p, low_half(p, x), HD_F32);
    return hd_add(p, hd_scale(p, high, 65536, 0), low);
}

/* The magnitude is moved up until its highest bit is set, and all that then lies below the high word becomes that one's
 * last bit, which f32 does not reach but for rounding. */
static hd_value pair_to_f32(hd_program *p, part x) {
    const hd_value below_zero = is_negative(p, x.word[1]);
    part size = chosen(p, below_zero, negated(p, x), x);
    const hd_value one = hd_cast(p, hd_equal(p, size.word[0], size.word[0]), HD_F32);
    hd_value scale = hd_scale(p, one, 0x1p32f, 0);
    for (int by = 32; by > 0; by /= 2) {
        const hd_value high = size.word[1], low = size.word[0];
        const hd_value small = by == 32 ? is_zero(p, high) : is_zero(p, down(p, high, (float)(32 - by)));
        const part moved = { 0, { up(p, low, (float)by),
            by == 32 ? low : hd_bit_or(p, up(p, high, (float)by), down(p, low, (float)(32 - by))) } };
        size = chosen(p, small, moved, size);
        scale = hd_where(p, small, hd_scale(p, scale, ldexpf(1, -by), 0), scale);
    }
    const hd_value sticky = number(p, is_not(p, is_zero(p, size.word[0])));
    const hd_value value = hd_mul(p, word_to_f32(p, hd_bit_or(p, size.word[1], sticky)), scale);
    return hd_where(p, below_zero, hd_neg(p, value), value);
}

/* A whole float of 0 to 2^32 as bits; 2^32 and above: the largest number. */
static hd_value f32_to_word(hd_program *p, hd_value x) {
    const hd_value upper = hd_floor(p, hd_scale(p, x, 0x1p-16f, 0));
    const hd_value lower = hd_cast(p, hd_sub(p, x, hd_scale(p, upper, 0x1p16f, 0)), HD_I32);
    const hd_value high = hd_cast(p, upper, HD_I32);
    const hd_value over = hd_less(p, fixed(p, high, 65535), high);
    return hd_where(p, over, fixed(p, high, -1), hd_bit_or(p, up(p, high, 16), lower));
}

static part f32_to_pair(hd_program *p, hd_value x) {
    const hd_value size = hd_abs(p, x), upper = hd_floor(p, hd_scale(p, size, 0x1p-32f, 0));
    const hd_value high = hd_cast(p, upper, HD_I32);
    const hd_value low = f32_to_word(p, hd_sub(p, size, hd_scale(p, upper, 0x1p32f, 0)));
    const hd_value below_zero = hd_less(p, x, hd_relu(p, x)), most = fixed(p, high, 0x1p31f);
    const hd_value over = hd_equal(p, high, most); /* 2^63 and more: the cast to i32 stops there */
    const part value = { 0, { low, high } };
    const part end = { 0, { hd_where(p, below_zero, fixed(p, high, 0), fixed(p, high, -1)),
                            hd_where(p, below_zero, fixed(p, high, -0x1p31f), most) } };
    return chosen(p, over, end, chosen(p, below_zero, negated(p, value), value));
}

/* Any value but of i64 as an i32, held at its ends. */
static hd_value as_i32(hd_program *p, hd_value x, hd_dtype from) {
    if (from == HD_I8) return widened(p, x);
    if (from == HD_U32) return hd_where(p, is_negative(p, x), fixed(p, x, 0x1p31f), x);
    return from == HD_I32 ? x : hd_cast(p, x, HD_I32);
}
static hd_value pair_to_i32(hd_program *p, part x) {
    const hd_value high = x.word[1];
    const hd_value end = hd_where(p, is_negative(p, high), fixed(p, high, -0x1p31f), fixed(p, high, 0x1p31f));
    return hd_where(p, hd_equal(p, high, sign_bits(p, x.word[0])), x.word[0], end);
}
static part words_of(const walk *w, hd_value value) { return (part){ 0, { word(w, value, 0), word(w, value, 1) } }; }
/* A value, as an i32: what indices are, too. */
static hd_value index_of(const walk *w, hd_value value) {
    const hd_dtype from = type_of(w, value);
    return from == HD_I64 ? pair_to_i32(w->to, words_of(w, value)) : as_i32(w->to, whole(w, value), from);
}

static part cast_to_i64(const walk *w, hd_value value, hd_dtype from) {
    hd_program *p = w->to;
    const hd_value x = whole(w, value);
    if (hdi_dtype_is_float(from)) return f32_to_pair(p, from == HD_F32 ? x : hd_cast(p, x, HD_F32));
    if (from == HD_U32) return (part){ 0, { x, fixed(p, x, 0) } };
    const hd_value low = as_i32(p, x, from);
    return (part){ 0, { low, sign_bits(p, low) } };
}
static hd_value cast_to_u32(const walk *w, hd_value value, hd_dtype from) {
    hd_program *p = w->to;
    if (from == HD_I64) {
        const part x = words_of(w, value);
        const hd_value above = hd_where(p, is_zero(p, x.word[1]), x.word[0], fixed(p, x.word[1], -1));
        return hd_where(p, is_negative(p, x.word[1]), fixed(p, x.word[1], 0), above);
    }
    const hd_value x = whole(w, value);
    if (!hdi_dtype_is_float(from)) return hd_relu(p, as_i32(p, x, from));
    return f32_to_word(p, hd_clip(p, from == HD_F32 ? x : hd_cast(p, x, HD_F32), 0, 0x1p32f));
}

static part cast(const walk *w, const hdi_node *node) {
    hd_program *p = w->to;
    const hd_value x = node->operands[0];
    const hd_dtype from = type_of(w, x), to = node->dtype;
    if (from == HD_I64 && to == HD_I64) return words_of(w, x);
    if (to == HD_I64) return cast_to_i64(w, x, from);
    if (from == to) return (part){ whole(w, x), { 0 } };
    if (to == HD_U32) return (part){ cast_to_u32(w, x, from), { 0 } };
    if (to == HD_I8) return (part){ narrowed(p, hd_clip(p, index_of(w, x), -128, 127)), { 0 } };
    hd_value value;
    if (!hdi_dtype_is_float(to) || from == HD_I8) value = index_of(w, x);
    else value = from == HD_U32 ? word_to_f32(p, whole(w, x)) : pair_to_f32(p, words_of(w, x));
    return (part){ hd_cast(p, value, to), { 0 } };
}

/* ---- operations ---- */

/* The node once more, with these operands; what it gives is of `dtype`. */
static hd_value again(const walk *w, const hdi_node *node, const hd_value *operands, hd_dtype dtype, hd_shape shape) {
    hdi_node copy = *node;
    copy.operands = operands;
    copy.dtype = dtype;
    copy.shape = shape;
    return hdi_program_add(w->to, &copy);
}

static bool takes_index(hdi_op op, uint32_t operand) {
    return operand == 1 && hdi_op_kind_of(op) == HDI_KIND_TABLE && op != HDI_OP_MATMUL_EXPERTS;
}

/* Elements are only moved, if they are of a new type: words of pairs each by themselves. */
static part moved(const walk *w, const hdi_node *node) {
    const bool given = node->op == HDI_OP_INPUT || node->op == HDI_OP_DISPATCH || node->op == HDI_OP_PART;
    const bool apart = node->dtype == HD_I64 && !given;
    hd_value operands[HDI_MAX_OPERANDS] = { 0 }, made[2];
    for (uint32_t k = 0; k < (apart ? 2 : 1); k++) {
        for (uint32_t i = 0; i < node->operand_count; i++) {
            const hd_value x = node->operands[i];
            if (takes_index(node->op, i)) operands[i] = index_of(w, x);
            else operands[i] = apart && type_of(w, x) == HD_I64 ? word(w, x, k) : whole(w, x);
        }
        const hd_shape shape = node->dtype == HD_I64 && given ? pairs_of(node->shape) : node->shape;
        made[k] = again(w, node, operands, stored_as(node->dtype), shape);
    }
    return apart ? (part){ 0, { made[0], made[1] } } : (part){ made[0], { 0 } };
}

static part of_pairs(const walk *w, const hdi_node *node) {
    hd_program *p = w->to;
    const part a = words_of(w, node->operands[0]), b = words_of(w, node->operands[1]);
    switch (node->op) {
    case HDI_OP_ADD:     return added(p, a, b);
    case HDI_OP_SUB:     return subtracted(p, a, b);
    case HDI_OP_MUL:     return multiplied(p, a, b);
    case HDI_OP_MAXIMUM: return chosen(p, is_less(p, a, b), b, a);
    case HDI_OP_MINIMUM: return chosen(p, is_less(p, b, a), b, a);
    case HDI_OP_LESS:    return (part){ is_less(p, a, b), { 0 } };
    case HDI_OP_EQUAL:
        return (part){ hd_bit_and(p, hd_equal(p, a.word[0], b.word[0]), hd_equal(p, a.word[1], b.word[1])), { 0 } };
    default: return moved(w, node); /* bits of words are those of the number */
    }
}

static part of_two(const walk *w, const hdi_node *node) {
    hd_program *p = w->to;
    const hd_dtype dtype = type_of(w, node->operands[0]);
    if (dtype == HD_I64) return of_pairs(w, node);
    const hd_value a = whole(w, node->operands[0]), b = whole(w, node->operands[1]);
    if (dtype == HD_I8 && node->op != HDI_OP_SHIFT_RIGHT_LOGICAL) {
        const hd_value made = again(w, node, (hd_value[]){ widened(p, a), widened(p, b) }, HD_I32, node->shape);
        return (part){ node->dtype == HD_I8 ? narrowed(p, made) : made, { 0 } };
    }
    if (dtype == HD_U32)
        switch (node->op) {
        case HDI_OP_DIV:     return (part){ quotient(p, a, b), { 0 } };
        case HDI_OP_LESS:    return (part){ below(p, a, b), { 0 } };
        case HDI_OP_MAXIMUM: return (part){ hd_where(p, below(p, a, b), b, a), { 0 } };
        case HDI_OP_MINIMUM: return (part){ hd_where(p, below(p, b, a), b, a), { 0 } };
        default: break; /* the same bits with a sign and without */
        }
    return moved(w, node);
}

static part step(const walk *w, const hdi_node *node) {
    bool any = is_new(node->dtype);
    for (uint32_t i = 0; i < node->operand_count; i++) any |= is_new(type_of(w, node->operands[i]));
    if (any && node->op == HDI_OP_CAST) return cast(w, node);
    const hdi_op_kind kind = hdi_op_kind_of(node->op);
    const bool computed = (kind == HDI_KIND_ELEMENTWISE || kind == HDI_KIND_FUNCTION) && node->operand_count == 2;
    return any && computed ? of_two(w, node) : moved(w, node);
}

hd_status hdi_program_in_words(const hd_program *program, hd_program **out_words, hd_error *error) {
    walk w = { .from = program };
    bool any = false;
    *out_words = NULL;
    for (uint32_t i = 0; i < program->node_count && !any; i++) any = is_new(program->nodes[i].dtype);
    if (!any) return HD_OK;
    const size_t bytes = program->node_count * sizeof *w.parts;
    w.to = hdi_program_new(program->allocator, program->context);
    w.parts = hdi_alloc(program->allocator, bytes);
    hd_status status = HD_OK;
    if (!w.to || !w.parts) status = hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for another program");
    for (uint32_t i = 0; i < program->node_count && !status && !w.to->error.status; i++)
        w.parts[i] = step(&w, &program->nodes[i]);
    for (uint32_t i = 0; i < program->output_count && !status && !w.to->error.status; i++)
        hdi_program_add_output(w.to, program->outputs[i].name, whole(&w, program->outputs[i].value));
    if (!status) status = hdi_program_check(w.to, error);
    hdi_free(program->allocator, w.parts, bytes);
    if (status) hdi_program_free(w.to);
    else *out_words = w.to;
    return status;
}
