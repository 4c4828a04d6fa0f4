#version 450
// hash.comp: SHA-256 of pieces of bytes, or of as many digests, an invocation for each.
#include "rows.glsl"
#include "../hash.h"
layout(push_constant) uniform Push { uint bytes, pieces, digests; } push;
layout(std430, binding = 0) readonly buffer X { uint x[]; };
layout(std430, binding = 1) buffer Y { uint y[]; };

const uint constants[64] = { HASH_CONSTANTS };

uint turned_round(uint word) {
    return word << 24 | (word & 0xFF00u) << 8 | (word >> 8 & 0xFF00u) | word >> 24;
}
// Word j of the message of `count` bytes from word `first` of x on.
uint message_word(uint first, uint count, uint j) {
    uint word = 0u, at = 4u * j;
    if (at < count) {
        word = x[first + j];
        if (push.digests == 0u) word = turned_round(word);
        word = HASH_FIRST(word, count - at);
    }
    return word | HASH_BEHIND(push.digests, count + 1u, j);
}

void main() {
    uint piece = group_number() * WORKGROUP + ME;
    if (piece >= push.pieces) return;
    uint first = piece * (HDI_HASH_PIECE / 4u), count = min(push.bytes - piece * HDI_HASH_PIECE, HDI_HASH_PIECE);
    uint state[8] = { HASH_BEGINNING }, w[16];
    uint blocks = HASH_BLOCKS(count + 1u);
    for (uint block = 0u; block < blocks; block++) {
        uint a = state[0], b = state[1], c = state[2], d = state[3];
        uint e = state[4], f = state[5], g = state[6], h = state[7];
        for (uint t = 0u; t < 64u; t++) {
            uint word;
            if (t < 16u) word = message_word(first, count, 16u * block + t);
            else word = w[t & 15u] + w[(t + 9u) & 15u] + HASH_WORD_A(w[(t + 1u) & 15u]) + HASH_WORD_B(w[(t + 14u) & 15u]);
            w[t & 15u] = word;
            uint one = h + HASH_STATE_E(e) + HASH_CHOICE(e, f, g) + constants[t] + word;
            uint two = HASH_STATE_A(a) + HASH_MOST(a, b, c);
            h = g; g = f; f = e; e = d + one; d = c; c = b; b = a; a = one + two;
        }
        state[0] += a; state[1] += b; state[2] += c; state[3] += d;
        state[4] += e; state[5] += f; state[6] += g; state[7] += h;
    }
    // a digest by itself is handed up
    bool alone = push.digests != 0u && count == 32u;
    for (uint i = 0u; i < 8u; i++) y[8u * piece + i] = alone ? x[first + i] : state[i];
}
