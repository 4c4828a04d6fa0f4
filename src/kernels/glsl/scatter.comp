#version 450
// scatter.comp: base with updates added to, multiplied into or compared with the rows that indices name, in their order. A
// workgroup makes part of one row: it looks for the row's index 256 indices at a time, all invocations together, and takes
// what was found in order, so there is no race and no float atomic. Where there are many, they are sorted first.
#include "rows.glsl"
layout(constant_id = HDI_SCATTER_OP) const uint OP = HDI_SCATTER_ADD;
layout(constant_id = HDI_SCATTER_TYPE) const uint TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_SCATTER_STAGE) const uint STAGE = HDI_SCATTER_SEARCH;
layout(push_constant) uniform Push { uint rows, n, count; } push;
layout(std430, binding = 0) readonly buffer Base { uint base[]; };
layout(std430, binding = 1) readonly buffer Indices { uint indices[]; };
layout(std430, binding = 2) readonly buffer Updates { uint updates[]; };
layout(std430, binding = 3) buffer Y { uint y[]; };
shared uint found[LANES / 32u];

uint joined_i32(uint a, uint b) {
    if (OP == HDI_SCATTER_MAX) return uint(max(int(a), int(b)));
    if (OP == HDI_SCATTER_MIN) return uint(min(int(a), int(b)));
    return OP == HDI_SCATTER_MUL ? a * b : a + b;
}
uint joined_float(uint a, uint b) {
    int i = key_of(a), k = key_of(b);
    if (OP == HDI_SCATTER_MAX) return bits_of_key(max(i, k));
    if (OP == HDI_SCATTER_MIN) return bits_of_key(max(i, k) == KEY_NAN ? KEY_NAN : min(i, k));
    float x = uintBitsToFloat(a), y = uintBitsToFloat(b);
    return floatBitsToUint(OP == HDI_SCATTER_MUL ? mul_rounded(x, y) : add_rounded(x, y));
}

uint joined(uint bits, uint i, uint column) {
    uint update = LOAD(updates, TYPE, i * push.n + column);
    return TYPE == HDI_TYPE_I32 ? joined_i32(bits, update) : joined_float(bits, update);
}

// An update's place is behind those of smaller rows and behind earlier ones of its own: each is compared with all. Which are
// earlier is asked among the 256 around it alone: others stand before it as a whole, or behind.
void sort(uint me) {
    const uint own = me < push.count ? indices[me] : 0xFFFFFFFFu;
    uint smaller = 0u, equals = 0u, before = 0u;
    for (uint begin = 0u; begin < push.count; begin += LANES) {
        FOR_EACH_LANE(lane) lanes[lane] = begin + lane < push.count ? indices[begin + lane] : 0xFFFFFFFFu;
        barrier();
        const bool around = begin <= me && me < begin + LANES;
        uint same = 0u, earlier = 0u;
        for (uint k = 0u; k < LANES; k += 4u) {
            const uvec4 others = uvec4(lanes[k], lanes[k + 1u], lanes[k + 2u], lanes[k + 3u]);
            const uvec4 less = uvec4(lessThan(others, uvec4(own))), alike = uvec4(equal(others, uvec4(own)));
            smaller += less.x + less.y + less.z + less.w;
            same += alike.x + alike.y + alike.z + alike.w;
            if (around) {
                const uvec4 first = alike & uvec4(lessThan(begin + k + uvec4(0u, 1u, 2u, 3u), uvec4(me)));
                earlier += first.x + first.y + first.z + first.w;
            }
        }
        equals += same;
        before += around ? earlier : begin < me ? same : 0u;
        barrier();
    }
    if (me >= push.count) return;
    y[smaller + before] = me;
    if (own >= push.rows) return;
    if (before == 0u) y[push.count + 2u * own] = smaller;
    if (before + 1u == equals) y[push.count + 2u * own + 1u] = smaller + equals;
}

// All that is found of a row, 256 indices at a time.
uint search(uint row, uint column, bool inside, uint bits) {
    for (uint begin = 0u; begin < push.count; begin += LANES) {
        for (uint w = ME; w < LANES / 32u; w += WORKGROUP) found[w] = 0u;
        barrier();
        FOR_EACH_LANE(lane)
            if (begin + lane < push.count && indices[begin + lane] == row) atomicOr(found[lane >> 5], 1u << (lane & 31u));
        barrier();
        [[unroll]] for (uint w = 0u; w < LANES / 32u; w++) {
            for (uint left = found[w]; left != 0u; left &= left - 1u)
                if (inside) bits = joined(bits, begin + w * 32u + uint(findLSB(left)), column);
        }
        barrier();
    }
    return bits;
}

void main() {
    uint group = group_number(), me = group * WORKGROUP + ME;
    if (STAGE == HDI_SCATTER_CLEAR) {
        if (me < 2u * push.rows) y[push.count + me] = 0u;
        return;
    }
    if (STAGE == HDI_SCATTER_SORT) {
        sort(me);
        return;
    }
    uint parts = (push.n + WORKGROUP - 1u) / WORKGROUP, row = group / parts;
    if (row >= push.rows) return;
    uint column = (group - row * parts) * WORKGROUP + ME, bits = 0u;
    bool inside = column < push.n;
    if (inside) bits = LOAD(base, TYPE, row * push.n + column);
    if (STAGE == HDI_SCATTER_SEARCH) bits = search(row, column, inside, bits);
    else if (inside) {
        uint end = indices[push.count + 2u * row + 1u];
        for (uint at = indices[push.count + 2u * row]; at < end; at++) bits = joined(bits, indices[at], column);
    }
    if (TYPE != HDI_TYPE_I32) bits = canonical_bits(uintBitsToFloat(bits));
    if (inside) STORE(y, OUT_TYPE, row * push.n + column, bits)
}
