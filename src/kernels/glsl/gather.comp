#version 450
// gather.comp: rows of a table by index, elements of each row by index, or the whole table as floats. An invocation makes one word of the result;
// elements that keep their type are moved as they are.
#include "rows.glsl"
layout(constant_id = HDI_GATHER_TYPE) const uint TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_GATHER_FORM) const uint FORM = HDI_GATHER_ROWS;
layout(push_constant) uniform Push { uint rows, n, count; } push;
layout(std430, binding = 0) readonly buffer Table { uint table[]; };
layout(std430, binding = 1) readonly buffer Indices { uint indices[]; };
layout(std430, binding = 2) readonly buffer Books { uint books[]; };
layout(std430, binding = 3) buffer Y { uint y[]; };
#define QUANT_WORD(at) table[at]
#include "quant.glsl"

// Element i of the result in its own type.
uint value(uint i) {
    uint from = i;
    if (FORM == HDI_GATHER_ALONG) {
        uint column = indices[i];
        if (column >= push.n) return 0u;
        from = i / push.count * push.n + column;
    }
    if (FORM == HDI_GATHER_ROWS) {
        uint at = i / push.n, row = indices[at];
        if (row >= push.rows) return 0u;
        from = row * push.n + (i - at * push.n);
    }
    if (TYPE == OUT_TYPE) return raw_element(table[word_of(TYPE, from)], TYPE, from);
    return pack_element(canonical_bits(LOAD_ANY(table, TYPE, from)), OUT_TYPE);
}

void main() {
    uint per = 4u / type_bytes(OUT_TYPE), bits = 32u / per;
    uint word = group_number() * WORKGROUP + ME, count = (FORM == HDI_GATHER_ALL ? push.rows : push.count) * (FORM == HDI_GATHER_ALONG ? push.rows : push.n);
    uint packed = 0u, mask = 0u;
    for (uint k = 0u; k < per; k++) {
        uint i = word * per + k;
        if (i >= count) continue;
        packed |= value(i) << (k * bits);
        mask |= (0xFFFFFFFFu >> (32u - bits)) << (k * bits);
    }
    STORE_MASKED(y, word, packed, mask)
}
