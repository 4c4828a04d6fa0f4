#version 450
// write_rows.comp: overwrites rows of a state from a row on that is read at run time. An invocation writes one word of
// the state; the two edge words keep what does not belong to the rows.
#include "rows.glsl"
layout(constant_id = HDI_WRITE_TYPE) const uint TYPE = HDI_TYPE_F32;
layout(push_constant) uniform Push { uint T, S, n; } push;
layout(std430, binding = 0) readonly buffer Rows { uint rows[]; };
layout(std430, binding = 1) readonly buffer Position { int position[]; };
layout(std430, binding = 2) buffer State { uint state[]; };

void main() {
    uint per = 4u / type_bytes(TYPE), bits = 32u / per;
    int at = position[0];
    uint skip = at < 0 ? uint(-at) : 0u, begin = at < 0 ? 0u : uint(at);
    if (skip >= push.T || begin >= push.S) return;
    uint first = begin * push.n, count = min(push.T - skip, push.S - begin) * push.n;
    uint word = first / per + group_number() * WORKGROUP + ME;
    uint packed = 0u, mask = 0u;
    for (uint k = 0u; k < per; k++) {
        uint i = word * per + k - first;
        if (word * per + k < first || i >= count) continue;
        uint from = skip * push.n + i;
        packed |= raw_element(rows[word_of(TYPE, from)], TYPE, from) << (k * bits);
        mask |= (0xFFFFFFFFu >> (32u - bits)) << (k * bits);
    }
    if (mask == 0xFFFFFFFFu) state[word] = packed;
    else if (mask != 0u) state[word] = (state[word] & ~mask) | packed; // no other invocation has this word
}
