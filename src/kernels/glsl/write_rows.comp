#version 450
// write_rows.comp: overwrites rows of a state from a row on that is read at run time, for each sequence its own. An
// invocation writes one word of the state; words at the edges keep what does not belong to the rows. Where a sequence's
// rows lie in pages, a word is counted from its first row, and then found in its page. Of a state of q8_0 or q4_0
// 8 invocations write a block.
#include "rows.glsl"
#include "early.glsl"
#include "round_blocks.glsl"
layout(constant_id = HDI_WRITE_TYPE) const uint TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_WRITE_ROWS_TYPE) const uint ROWS_TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_WRITE_PAGE) const uint PAGE = 0u;
layout(push_constant) uniform Push { uint B, T, S, n, N; } push;
layout(std430, binding = 0) readonly buffer Rows { uint rows[]; };
layout(std430, binding = 1) readonly buffer Position { int position[]; };
layout(std430, binding = 2) readonly buffer Pages { int pages[]; };
layout(std430, binding = 3) buffer State { uint state[]; };

// A block is written by 8 of a workgroup's 256 lanes.
const uint BLOCKS = HDI_WRITE_BLOCKS, BLOCK_HALVES = TYPE == HDI_TYPE_Q4_0 ? 9u : 17u;
shared uvec4 numbers[LANES];
shared uint codes[LANES], scales[BLOCKS];
// Half i of a block: d, and then its codes; of q4_0 a byte has two, that are 16 elements apart.
uint half_of_block(uint block, uint i) {
    if (i == 0u) return scales[block];
    uint at = block * 8u + (i - 1u) / 2u, word = TYPE == HDI_TYPE_Q4_0 ? codes[at] | (codes[at + 4u] << 4) : codes[at];
    return (word >> (16u * ((i - 1u) % 2u))) & 0xFFFFu;
}
// Where the block of the rows lies in the state, in blocks; false where it has no place.
bool find_block(uint batch, uint block, uint row_blocks, out uint to) {
    uint row = block / row_blocks;
    int at = position[batch];
    bool there = at >= -int(row) && at < int(push.S) - int(row);
    to = there ? uint(at + int(row)) : 0u;
    if (PAGE == 0u) to += batch * push.S;
    else {
        int page = pages[batch * (push.S >> PAGE) + (to >> PAGE)];
        there = there && page >= 0 && page < int(push.N);
        to = (uint(page) << PAGE) + (to & ((1u << PAGE) - 1u));
    }
    to = to * row_blocks + block % row_blocks;
    return there;
}
void write_blocks() {
    uint row_blocks = push.n / HDI_WRITE_BLOCK, blocks = push.T * row_blocks, groups = (blocks + BLOCKS - 1u) / BLOCKS;
    uint batch = group_number() / groups, first = (group_number() - batch * groups) * BLOCKS;
    if (batch >= push.B) return;
    FOR_EACH_LANE(lane) {
        uint from = (batch * blocks + min(first + lane / 8u, blocks - 1u)) * HDI_WRITE_BLOCK + 4u * (lane % 8u);
        numbers[lane] = uvec4(rows[from], rows[from + 1u], rows[from + 2u], rows[from + 3u]);
        lanes[lane] = largest_of(numbers[lane]);
    }
    barrier();
    FOR_EACH_LANE(lane) {
        uint largest = 0u;
        for (uint i = 0u; i < 8u; i++) largest = larger(largest, lanes[lane / 8u * 8u + i]);
        float d = d_of_largest(TYPE, largest);
        codes[lane] = codes_of(TYPE, numbers[lane], d);
        if (lane % 8u == 0u) scales[lane / 8u] = exact_f32_to_f16(d);
    }
    barrier();
    uint together = 2u - row_blocks % 2u, count = together * BLOCK_HALVES; // two neighbours are whole words of the state
    FOR_EACH_LANE(lane) {
        uint own = lane / 8u / together * together, to;
        bool there = find_block(batch, min(first + own, blocks - together), row_blocks, to) && first + own < blocks;
        to *= BLOCK_HALVES;
        const uint end = there ? (to + count - 1u) / 2u + 1u : 0u;
        for (uint word = to / 2u + lane % (8u * together); word < end; word += 8u * together) {
            uint low = 2u * word - to, high = low + 1u, packed = 0u, mask = 0u; // low is none where `to` is odd at first
            if (low < count) packed = half_of_block(own + low / BLOCK_HALVES, low % BLOCK_HALVES), mask = 0xFFFFu;
            if (high < count) packed |= half_of_block(own + high / BLOCK_HALVES, high % BLOCK_HALVES) << 16, mask |= 0xFFFF0000u;
            STORE_MASKED(state, word, packed, mask)
        }
    }
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
