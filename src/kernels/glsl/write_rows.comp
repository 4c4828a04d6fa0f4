#version 450
// write_rows.comp: overwrites rows of a state from a row on that is read at run time, for each sequence its own. An
// invocation writes one word of the state; words at the edges keep what does not belong to the rows. Where a sequence's
// rows lie in pages, a word is counted from its first row, and then found in its page. Of a state of q8_0 or q4_0 an
// invocation writes a block.
#include "rows.glsl"
#include "early.glsl"
layout(constant_id = HDI_WRITE_TYPE) const uint TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_WRITE_ROWS_TYPE) const uint ROWS_TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_WRITE_PAGE) const uint PAGE = 0u;
layout(push_constant) uniform Push { uint B, T, S, n, N; } push;
layout(std430, binding = 0) readonly buffer Rows { uint rows[]; };
layout(std430, binding = 1) readonly buffer Position { int position[]; };
layout(std430, binding = 2) readonly buffer Pages { int pages[]; };
layout(std430, binding = 3) buffer State { uint state[]; };

// The code of x in a block whose d is 1 / inverse, as hd_quantize chooses it in exact arithmetic; 0 where that is no number.
uint code_of(float x, float inverse) {
    precise float scaled = x * inverse;
    if (TYPE == HDI_TYPE_Q4_0) { // 8 more, nearest
        precise float moved = scaled + 8.5;
        return (floatBitsToUint(moved) & 0x7FFFFFFFu) < floatBitsToUint(1e6) ? min(uint(moved), 15u) : 0u;
    }
    uint bits = floatBitsToUint(scaled), size_bits = bits & 0x7FFFFFFFu;
    if (size_bits >= floatBitsToUint(127.5)) return 0u;
    uint whole = uint(uintBitsToFloat(size_bits));
    precise float rest = uintBitsToFloat(size_bits) - float(whole);
    if (rest >= 0.5) whole++; // halves go away from zero
    return (bits == size_bits ? whole : 0u - whole) & 0xFFu;
}
// Writes the 32 rows' elements from `from` on as the block that begins at half `to` of the state. Neighbours share words.
void write_block(uint from, uint to, uint halves_count) {
    uint x[HDI_WRITE_BLOCK], largest = 0u, halves[17];
    for (uint i = 0u; i < HDI_WRITE_BLOCK; i++) { // the first of the largest numbers; not NaN
        x[i] = rows[from + i];
        uint size = x[i] & 0x7FFFFFFFu;
        if (size > (largest & 0x7FFFFFFFu) && size <= 0x7F800000u) largest = x[i];
    }
    float most = uintBitsToFloat(largest);
    float d = TYPE == HDI_TYPE_Q4_0 ? exact_div(most, -8.0) : exact_div(uintBitsToFloat(largest & 0x7FFFFFFFu), 127.0);
    float inverse = (floatBitsToUint(d) & 0x7FFFFFFFu) == 0u ? 0.0 : exact_rcp(d);
    halves[0] = exact_f32_to_f16(d);
    for (uint i = 1u; i < halves_count; i++) {
        uint first = 2u * (i - 1u);
        halves[i] = code_of(uintBitsToFloat(x[first]), inverse) | (code_of(uintBitsToFloat(x[first + 1u]), inverse) << 8);
        if (TYPE == HDI_TYPE_Q4_0)
            halves[i] |= (code_of(uintBitsToFloat(x[first + 16u]), inverse) << 4) | (code_of(uintBitsToFloat(x[first + 17u]), inverse) << 12);
    }
    for (uint word = to / 2u; word <= (to + halves_count - 1u) / 2u; word++) {
        uint low = 2u * word - to, high = low + 1u, packed = 0u, mask = 0u; // low is none where `to` is odd at first
        if (low < halves_count) packed = halves[low], mask = 0xFFFFu;
        if (high < halves_count) packed |= halves[high] << 16, mask |= 0xFFFF0000u;
        STORE_MASKED(state, word, packed, mask)
    }
}
void write_blocks() {
    uint row_blocks = push.n / HDI_WRITE_BLOCK, blocks = push.T * row_blocks, groups = (blocks + WORKGROUP - 1u) / WORKGROUP;
    uint batch = group_number() / groups, block = (group_number() - batch * groups) * WORKGROUP + ME, row = block / row_blocks;
    if (batch >= push.B || block >= blocks) return;
    int at = position[batch];
    if (at < -int(row) || at >= int(push.S) - int(row)) return;
    uint to = uint(at + int(row));
    if (PAGE == 0u) to += batch * push.S;
    else {
        int page = pages[batch * (push.S >> PAGE) + (to >> PAGE)];
        if (page < 0 || page >= int(push.N)) return;
        to = (uint(page) << PAGE) + (to & ((1u << PAGE) - 1u));
    }
    const uint halves_count = TYPE == HDI_TYPE_Q4_0 ? 9u : 17u;
    write_block((batch * blocks + block) * HDI_WRITE_BLOCK, (to * row_blocks + block % row_blocks) * halves_count, halves_count);
}

void main() {
    wait_for_earlier();
    if (TYPE == HDI_TYPE_Q8_0 || TYPE == HDI_TYPE_Q4_0) {
        write_blocks();
        return;
    }
    uint per = 4u / type_bytes(TYPE), bits = 32u / per;
    uint words = (push.T * push.n + per - 1u) / per + 1u, groups = (words + WORKGROUP - 1u) / WORKGROUP;
    uint batch = group_number() / groups, part = group_number() - batch * groups;
    if (batch >= push.B) return;
    int at = position[batch];
    uint skip = at < 0 ? uint(-at) : 0u, begin = at < 0 ? 0u : uint(at);
    if (skip >= push.T || begin >= push.S) return;
    uint first = (PAGE == 0u ? batch * push.S + begin : begin) * push.n, count = min(push.T - skip, push.S - begin) * push.n;
    uint word = first / per + part * WORKGROUP + ME;
    uint packed = 0u, mask = 0u;
    for (uint k = 0u; k < per; k++) {
        uint i = word * per + k - first;
        if (word * per + k < first || i >= count) continue;
        uint from = (batch * push.T + skip) * push.n + i, element = rows[word_of(ROWS_TYPE, from)];
        packed |= (ROWS_TYPE == TYPE ? raw_element(element, TYPE, from) : pack_element(element, TYPE)) << (k * bits);
        mask |= (0xFFFFFFFFu >> (32u - bits)) << (k * bits);
    }
    if (PAGE != 0u && mask != 0u) { // a page has whole words
        uint page_words = (push.n << PAGE) / per, index = word / page_words;
        int page = pages[batch * (push.S >> PAGE) + index];
        if (page < 0 || page >= int(push.N)) return;
        word += (uint(page) - index) * page_words;
    }
    STORE_MASKED(state, word, packed, mask)
}
