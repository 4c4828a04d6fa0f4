#version 450
// rope_subgroup: rope.comp for heads of f32 that turn whole, of 16, 32, 64, ... elements: as many invocations side by side as
// the head has fours hold it in registers, and talk by shuffles, in the order of rope.comp's sums, so with its bits. The
// sines and cosines are given. Rows of a state of q8_0 or q4_0 are rounded to its blocks, of which a head has an even number.
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "rows.glsl"
#include "early.glsl"
#include "round_blocks.glsl"
#include "heads.glsl"
layout(constant_id = HDI_ROPE_PAIRING) const uint PAIRING = 0u;
layout(constant_id = HDI_ROPE_NORM) const uint NORM = 0u;
layout(constant_id = HDI_ROPE_ROWS) const uint ROWS = 0u;
layout(constant_id = HDI_ROPE_PAGE) const uint PAGE = 0u;
layout(constant_id = HDI_ROPE_WIDTH) const uint D = 128u;
layout(push_constant) uniform Push { uint tokens, T, H, unused, dims, magnitude, eps, rows_T, rows_S, rows_N; } push;
layout(std430, binding = 0) readonly buffer X { uvec4 x[]; };
layout(std430, binding = 1) readonly buffer Turns { vec4 turns[]; }; // two pairs of sine and cosine
layout(std430, binding = 3) readonly buffer Weight { vec4 weight[]; };
layout(std430, binding = 4) readonly buffer Place { int place[]; };
layout(std430, binding = 5) readonly buffer Pages { int pages[]; };
layout(std430, binding = 6) writeonly buffer Y { uvec4 y[]; };
layout(std430, binding = 6) writeonly buffer Pairs { uvec2 y_pairs[]; };
layout(std430, binding = 6) writeonly buffer Words { uint y_words[]; };

const uint FOURS = D / 4u; // of a head

// The factor of the head's rms_norm: element by element the tree of norm.comp's lanes.
float norm_scale(vec4 own) {
    vec4 sums = mul_rounded(own, own);
    for (uint apart = FOURS / 2u; apart > 0u; apart >>= 1) sums = add_rounded(sums, subgroupShuffleXor(sums, apart));
    return norm_factor(sums, D, uintBitsToFloat(push.eps));
}

// Where the head's row of the state begins, in heads; false where it has none.
bool find_row(uint head, uint token, out uint to) {
    to = head;
    if (ROWS == 0u) return true;
    uint batch = token / push.rows_T;
    int row = place[batch] + int(token - batch * push.rows_T);
    if (row < 0 || row >= int(push.rows_S)) return false;
    uint at = batch * push.rows_S + uint(row);
    if (PAGE != 0u) {
        int page = pages[batch * (push.rows_S >> PAGE) + (uint(row) >> PAGE)];
        if (page < 0 || page >= int(push.rows_N)) return false;
        at = (uint(page) << PAGE) + (uint(row) & ((1u << PAGE) - 1u));
    }
    to = at * push.H + head % push.H;
    return true;
}

// A block of the head lies with 8 lanes, which have its codes, of q4_0 the first 4: `word`. Two neighbours are whole words of the
// state: d and codes that begin in the midst of the first, d again, and codes that begin with a word.
const bool BLOCKS = OUT_TYPE == HDI_TYPE_Q8_0 || OUT_TYPE == HDI_TYPE_Q4_0;
const uint CODE_WORDS = OUT_TYPE == HDI_TYPE_Q4_0 ? 4u : 8u, PAIR_WORDS = 2u * CODE_WORDS + 1u;
void round_block(vec4 own, uint four, out uint word, out uint before, out uint d_half) {
    uvec4 bits = floatBitsToUint(own);
    uint largest = largest_of(bits);
    for (uint apart = 1u; apart < 8u; apart <<= 1) {
        uint other = subgroupShuffleXor(largest, apart);
        largest = (four & apart) == 0u ? larger(largest, other) : larger(other, largest);
    }
    float d = d_of_largest(OUT_TYPE, largest);
    d_half = exact_f32_to_f16(d);
    word = codes_of(OUT_TYPE, bits, d);
    if (OUT_TYPE == HDI_TYPE_Q4_0) word |= subgroupShuffleXor(word, 4u) << 4;
    uint back = four % 8u != 0u ? 1u : 9u - CODE_WORDS; // to the codes before, of an odd block's first lane those of the other one
    before = subgroupShuffle(word, gl_SubgroupInvocationID - min(gl_SubgroupInvocationID, back));
}
void store_block(uint head_first, uint four, uint word, uint before, uint d_half) {
    uint own = four % 8u, first = (head_first * (D / 64u) + four / 16u) * PAIR_WORDS;
    if (own >= CODE_WORDS) return;
    if (four % 16u < 8u) y_words[first + own] = (own == 0u ? d_half : before >> 16) | (word << 16);
    else {
        if (own == 0u) y_words[first + CODE_WORDS] = (before >> 16) | (d_half << 16);
        y_words[first + CODE_WORDS + 1u + own] = word;
    }
}

void main() {
    const uint lane = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID, four = lane % FOURS;
    const uint heads = push.tokens * push.H, wanted = group_number() * (WORKGROUP / FOURS) + lane / FOURS;
    const uint head = min(wanted, heads - 1u), token = head / push.H; // all of a subgroup come along
    const uint pair = PAIRING == 1u ? 2u * four : 4u * (four % (FOURS / 2u));
    wait_for_earlier();
    const vec4 read = uintBitsToFloat(x[head * FOURS + four]);
    const uint turn = (token % push.T * (D / 2u) + pair) / 2u;
    const vec4 low = turns[turn], high = PAIRING == 1u ? low : turns[turn + 1u];
    vec4 own = read;
    if (NORM != 0u) {
        own = mul_rounded(read, vec4(norm_scale(read)));
        if (NORM == 2u) own = mul_rounded(own, weight[four]);
        own = canonical(own);
    }
    vec4 other = PAIRING == 1u ? own.yxwz : subgroupShuffleXor(own, FOURS / 2u);
    own = turned(own, other, low, high, PAIRING == 1u, four < FOURS / 2u);
    uint to, word = 0u, before = 0u, d_half = 0u;
    if (BLOCKS) round_block(own, four, word, before, d_half);
    if (wanted >= heads || !find_row(head, token, to)) return;
    if (BLOCKS) {
        store_block(to, four, word, before, d_half);
        return;
    }
    uvec4 bits = floatBitsToUint(own);
    if (type_bytes(OUT_TYPE) == 4u) y[to * FOURS + four] = bits;
    else y_pairs[to * FOURS + four] = packed_four(bits, OUT_TYPE);
}
