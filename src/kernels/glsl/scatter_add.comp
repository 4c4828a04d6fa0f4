#version 450
// scatter_add.comp: base plus updates added to the rows that indices name, in their order. A workgroup makes part of one
// row: it looks for the row's index 256 indices at a time, all invocations together, and adds what was found in order,
// so there is no race and no float atomic.
#include "rows.glsl"
layout(constant_id = HDI_SCATTER_TYPE) const uint TYPE = HDI_TYPE_F32;
layout(push_constant) uniform Push { uint rows, n, count; } push;
layout(std430, binding = 0) readonly buffer Base { uint base[]; };
layout(std430, binding = 1) readonly buffer Indices { uint indices[]; };
layout(std430, binding = 2) readonly buffer Updates { uint updates[]; };
layout(std430, binding = 3) buffer Y { uint y[]; };
shared uint found[LANES / 32u];

void main() {
    uint parts = (push.n + WORKGROUP - 1u) / WORKGROUP, group = group_number(), row = group / parts;
    if (row >= push.rows) return;
    uint column = (group - row * parts) * WORKGROUP + ME;
    bool inside = column < push.n;
    float sum = inside ? LOAD_FLOAT(base, TYPE, row * push.n + column) : 0.0;
    for (uint begin = 0u; begin < push.count; begin += LANES) {
        for (uint w = ME; w < LANES / 32u; w += WORKGROUP) found[w] = 0u;
        barrier();
        FOR_EACH_LANE(lane)
            if (begin + lane < push.count && indices[begin + lane] == row) atomicOr(found[lane >> 5], 1u << (lane & 31u));
        barrier();
        [[unroll]] for (uint w = 0u; w < LANES / 32u; w++) {
            for (uint bits = found[w]; bits != 0u; bits &= bits - 1u) {
                uint i = begin + w * 32u + uint(findLSB(bits));
                if (inside) sum = add_rounded(sum, LOAD_FLOAT(updates, TYPE, i * push.n + column));
            }
        }
        barrier();
    }
    uint bits = canonical_bits(sum);
    if (inside) STORE(y, OUT_TYPE, row * push.n + column, bits)
}
