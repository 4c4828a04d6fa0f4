#version 450
// write_rows.comp: overwrites rows of a state from a row on that is read at run time, for each sequence its own. An
// invocation writes one word of the state; words at the edges keep what does not belong to the rows. Where a sequence's
// rows lie in pages, a word is counted from its first row, and then found in its page.
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

void main() {
    wait_for_earlier();
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
