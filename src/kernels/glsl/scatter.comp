#version 450
// scatter.comp: base with updates added to, multiplied into or compared with the rows that indices name, in their order. A
// workgroup makes part of one row: it looks for the row's index 256 indices at a time, all invocations together, and takes
// what was found in order, so there is no race and no float atomic.
#include "rows.glsl"
layout(constant_id = HDI_SCATTER_OP) const uint OP = HDI_SCATTER_ADD;
layout(constant_id = HDI_SCATTER_TYPE) const uint TYPE = HDI_TYPE_F32;
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

void main() {
    uint parts = (push.n + WORKGROUP - 1u) / WORKGROUP, group = group_number(), row = group / parts;
    if (row >= push.rows) return;
    uint column = (group - row * parts) * WORKGROUP + ME;
    bool inside = column < push.n;
    uint bits = 0u;
    if (inside) bits = LOAD(base, TYPE, row * push.n + column);
    for (uint begin = 0u; begin < push.count; begin += LANES) {
        for (uint w = ME; w < LANES / 32u; w += WORKGROUP) found[w] = 0u;
        barrier();
        FOR_EACH_LANE(lane)
            if (begin + lane < push.count && indices[begin + lane] == row) atomicOr(found[lane >> 5], 1u << (lane & 31u));
        barrier();
        [[unroll]] for (uint w = 0u; w < LANES / 32u; w++) {
            for (uint left = found[w]; left != 0u; left &= left - 1u) {
                uint i = begin + w * 32u + uint(findLSB(left));
                if (!inside) continue;
                uint update = LOAD(updates, TYPE, i * push.n + column);
                bits = TYPE == HDI_TYPE_I32 ? joined_i32(bits, update) : joined_float(bits, update);
            }
        }
        barrier();
    }
    if (TYPE != HDI_TYPE_I32) bits = canonical_bits(uintBitsToFloat(bits));
    if (inside) STORE(y, OUT_TYPE, row * push.n + column, bits)
}
