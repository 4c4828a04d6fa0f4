#version 450
// reduce.comp: sum, product, mean, max, min, argmax and dot along an axis; a workgroup for a row, an invocation for a column.
// Sums keep the order that abi.h states. What is picked is compared as integer keys, so its order does not matter.
#include "rows.glsl"
layout(constant_id = HDI_REDUCE_OP) const uint OP = HDI_REDUCE_SUM;
layout(constant_id = HDI_REDUCE_TYPE) const uint TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_REDUCE_FORM) const uint FORM = 0u;
layout(constant_id = HDI_REDUCE_STAGE) const uint STAGE = 0u;
layout(push_constant) uniform Push { uint outer, n, inner, parts, whole, part; } push;
#define IN_FRONT push.whole // argmax: elements of the row in front of these
layout(std430, binding = 0) readonly buffer X { uint x[]; };
layout(std430, binding = 1) readonly buffer Second { uint second[]; };
layout(std430, binding = 2) buffer Y { uint y[]; };

const bool PICKS = OP == HDI_REDUCE_MAX || OP == HDI_REDUCE_MIN || OP == HDI_REDUCE_ARGMAX;
const bool FACTORS = FORM == 2u; // of a dot: one for each place of the column
const uint NOWHERE = 0xFFFFFFFFu;
shared uint lanes_at[LANES];

const uint NOTHING = OP != HDI_REDUCE_PROD ? 0u : TYPE == HDI_TYPE_I32 ? 1u : 0x3F800000u; // what a sum, or a product, begins with

// What a sum, or a product, has after one more element.
uint plus_bits(uint a, uint b) {
    if (OP == HDI_REDUCE_PROD) return TYPE == HDI_TYPE_I32 ? a * b : floatBitsToUint(mul_rounded(uintBitsToFloat(a), uintBitsToFloat(b)));
    return TYPE == HDI_TYPE_I32 ? a + b : floatBitsToUint(add_rounded(uintBitsToFloat(a), uintBitsToFloat(b)));
}
// `other` is what a dot multiplies the element by.
uint plus_element(uint sum, uint bits, uint other) {
    if (OP != HDI_REDUCE_DOT) return plus_bits(sum, bits);
    return floatBitsToUint(add_product(uintBitsToFloat(sum), uintBitsToFloat(bits), uintBitsToFloat(other)));
}
#define LOAD_OTHER(index) (OP == HDI_REDUCE_DOT ? LOAD(second, TYPE, index) : 0u)
uint finished(uint sum) {
    if (TYPE == HDI_TYPE_I32) return sum;
    float value = uintBitsToFloat(sum);
    return canonical_bits(OP == HDI_REDUCE_MEAN ? divided(value, count_float(push.whole)) : value);
}

// The key by which an element is picked, and its value again. For argmax -0 equals 0.
int pick_key(uint bits) {
    int key = TYPE == HDI_TYPE_I32 ? int(bits) : key_of(bits);
    if (TYPE != HDI_TYPE_I32 && key == KEY_NAN) return key;
    if (TYPE != HDI_TYPE_I32 && OP == HDI_REDUCE_ARGMAX && key == -1) return 0;
    return OP == HDI_REDUCE_MIN ? ~key : key;
}
uint pick_bits(int key) {
    if (TYPE != HDI_TYPE_I32 && key == KEY_NAN) return EXACT_NAN;
    int plain = OP == HDI_REDUCE_MIN ? ~key : key;
    return TYPE == HDI_TYPE_I32 ? uint(plain) : bits_of_key(plain);
}
bool is_better(int key, uint at, int best, uint best_at) { return key > best || (key == best && at < best_at); }

void reduce_row(uint group) {
    uint begin = 0u, count = push.n, first = group * push.n;
    if (STAGE == 1u) {
        uint line = group / push.parts;
        begin = (group - line * push.parts) * push.part;
        count = min(push.part, push.n - begin);
        first = line * push.n + begin;
    }
    bool pairs = OP == HDI_REDUCE_ARGMAX && STAGE == 2u; // a value and an index for each part
    FOR_EACH_LANE(lane) {
        uint sum = NOTHING, best_at = NOWHERE;
        int best = KEY_LEAST;
        for (uint i = lane; i < count; i += LANES) {
            if (PICKS) {
                int key = pick_key(pairs ? x[2u * (first + i)] : LOAD(x, TYPE, first + i));
                uint at = pairs ? x[2u * (first + i) + 1u] : IN_FRONT + begin + i;
                if (is_better(key, at, best, best_at)) { best = key; best_at = at; }
            } else sum = plus_element(sum, LOAD(x, TYPE, first + i), LOAD_OTHER(first + i));
        }
        lanes[lane] = PICKS ? uint(best) : sum;
        if (OP == HDI_REDUCE_ARGMAX) lanes_at[lane] = best_at;
    }
    for (uint half_count = LANES / 2u; half_count > 0u; half_count >>= 1) {
        barrier();
        for (uint l = ME; l < half_count; l += WORKGROUP) {
            if (OP == HDI_REDUCE_ARGMAX) {
                if (is_better(int(lanes[l + half_count]), lanes_at[l + half_count], int(lanes[l]), lanes_at[l])) {
                    lanes[l] = lanes[l + half_count];
                    lanes_at[l] = lanes_at[l + half_count];
                }
            } else if (PICKS) lanes[l] = uint(max(int(lanes[l]), int(lanes[l + half_count])));
            else lanes[l] = plus_bits(lanes[l], lanes[l + half_count]);
        }
    }
    if (ME != 0u) return; // it made lane 0 itself
    if (OP == HDI_REDUCE_ARGMAX) {
        if (STAGE == 1u) { y[2u * group] = pick_bits(int(lanes[0])); y[2u * group + 1u] = lanes_at[0]; }
        else y[group] = lanes_at[0];
    } else {
        uint bits = PICKS ? pick_bits(int(lanes[0])) : finished(lanes[0]);
        STORE(y, OUT_TYPE, group, bits)
    }
}

// One element further down a column: the j-th one of the line.
void take(uint bits, uint other, uint j, inout uint block, inout int best, inout uint best_at) {
    if (PICKS) {
        int key = pick_key(bits);
        if (is_better(key, IN_FRONT + j, best, best_at)) { best = key; best_at = IN_FRONT + j; }
    } else block = plus_element(block, bits, other);
}
// Where columns are too long for one launch, y holds what they have come to.
void reduce_column(uint column) {
    const bool goes_on = (STAGE & HDI_REDUCE_GOES_ON) != 0u, is_part = (STAGE & HDI_REDUCE_IS_PART) != 0u;
    uint line = column / push.inner;
    uint first = line * push.n * push.inner + (column - line * push.inner), factors = line * push.n;
    uint sum = NOTHING, best_at = NOWHERE;
    int best = KEY_LEAST;
    if (goes_on) {
        uint before = OP == HDI_REDUCE_ARGMAX ? y[2u * column] : y[column];
        if (OP == HDI_REDUCE_ARGMAX) best_at = y[2u * column + 1u];
        if (PICKS) best = pick_key(before);
        else sum = before;
    }
    for (uint j = 0u; j < push.n; j += HDI_MM_BLOCK) {
        const uint AT_ONCE = 16u; // asked for before the first of them is added
        uint block = NOTHING, end = min(j + HDI_MM_BLOCK, push.n);
        for (uint k = j; k < end; k += AT_ONCE) {
            uint bits[AT_ONCE], others[AT_ONCE];
            [[unroll]] for (uint e = 0u; e < AT_ONCE; e++) {
                uint at = min(k + e, end - 1u), i = first + at * push.inner;
                bits[e] = LOAD(x, TYPE, i);
                others[e] = LOAD_OTHER(FACTORS ? factors + at : i);
            }
            /* Written out: a compiler that unrolls forgets which operations are precise. */
#define TAKE(e) if (k + e < end) take(bits[e], others[e], k + e, block, best, best_at);
            TAKE(0u) TAKE(1u) TAKE(2u) TAKE(3u) TAKE(4u) TAKE(5u) TAKE(6u) TAKE(7u)
            TAKE(8u) TAKE(9u) TAKE(10u) TAKE(11u) TAKE(12u) TAKE(13u) TAKE(14u) TAKE(15u)
        }
        sum = plus_bits(sum, block);
    }
    if (OP == HDI_REDUCE_ARGMAX && STAGE != 0u) {
        y[2u * column] = pick_bits(best);
        y[2u * column + 1u] = best_at;
        return;
    }
    uint bits = OP == HDI_REDUCE_ARGMAX ? best_at : PICKS ? pick_bits(best) : is_part ? sum : finished(sum);
    STORE(y, OUT_TYPE, column, bits)
}

void main() {
    uint group = group_number();
    if (FORM == 0u) {
        if (group < push.outer * (STAGE == 1u ? push.parts : 1u)) reduce_row(group);
    } else {
        uint column = group * WORKGROUP + ME;
        if (column < push.outer * push.inner) reduce_column(column);
    }
}
