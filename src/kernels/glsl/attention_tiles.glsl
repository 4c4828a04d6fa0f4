// attention_tiles.glsl: what attention over f32 by tiles and both passes of its gradient share. A workgroup owns OWN rows of
// a key head, queries or keys, and walks over the others OTHER at a time: products of rows give OWN x OTHER scores, or their
// gradients, which stay in registers; what they come to goes through shared memory into sums of OWN rows. Everything else is read in
// pieces of 8 vectors a row, so that a workgroup needs little shared memory whatever D is. Query rows are those of all
// heads that share the key head, in (token, head) order. Of 128 invocations, 8 lines by 16 columns, each has every 8th row
// and every 16th other. Loops of a length that is known here are not marked for unrolling (attention.comp).
#ifndef ATTENTION_TILES_GLSL
#define ATTENTION_TILES_GLSL
layout(constant_id = HDI_ATTENTION_TILES_CAUSAL) const uint CAUSAL = 1u;
layout(constant_id = HDI_ATTENTION_TILES_HEADS) const uint HEADS = 1u;
layout(constant_id = HDI_ATTENTION_TILES_OWN) const uint OWN = 32u;
layout(constant_id = HDI_ATTENTION_TILES_OTHER) const uint OTHER = 32u;
layout(constant_id = HDI_ATTENTION_TILES_SLICE) const uint SLICE = 64u;
layout(constant_id = HDI_ATTENTION_TILES_WIDE) const uint WIDE = 0u;
layout(push_constant) uniform Push { uint B, T, S, Hkv, D, scale; } push;
layout(std430, binding = 0) readonly buffer Q { float q[]; };
layout(std430, binding = 0) readonly buffer WideQ { vec4 wide_q[]; };
layout(std430, binding = 1) readonly buffer K { float k[]; };
layout(std430, binding = 1) readonly buffer WideK { vec4 wide_k[]; };
layout(std430, binding = 2) readonly buffer V { float v[]; };
layout(std430, binding = 2) readonly buffer WideV { vec4 wide_v[]; };

const uint INVOCATIONS = 128u, LINES = 8u, COLUMNS = 16u, PIECE = HDI_MM_BLOCK / 4u;
const uint ROWS = OWN / LINES, SCORES = OTHER / COLUMNS, VECTORS = SLICE / 64u; // of an invocation
const uint PART = OTHER * PIECE * 4u / SLICE; // others whose slices are in shared memory together
// One vector more spreads rows over the memory's banks.
const uint STRIDE = PIECE + 1u, SLICE_STRIDE = SLICE / 4u + 1u, WEIGHT_STRIDE = OTHER / 4u + 1u;
shared vec4 own_piece[OWN * STRIDE];
shared vec4 other_piece[OTHER * STRIDE];
shared vec4 weights[OWN * WEIGHT_STRIDE]; // of 4 others

uint batch, head, row_count;
#define LINE (ME / COLUMNS)
#define COLUMN (ME % COLUMNS)
#define OWN_ROW(r) ((r) * LINES + LINE)
#define OTHER_ROW(c) ((c) * COLUMNS + COLUMN)
#define SET_WEIGHT(r, c, value) weights[OWN_ROW(r) * WEIGHT_STRIDE + OTHER_ROW(c) / 4u][OTHER_ROW(c) % 4u] = value
uint query_first(uint row) { // a row's first element
    uint token = row / HEADS;
    return (((batch * push.T + token) * push.Hkv + head) * HEADS + row - token * HEADS) * push.D;
}
uint key_first(uint key) { return ((batch * push.S + key) * push.Hkv + head) * push.D; }
#include "attention_starts.glsl"
bool sees(uint row, uint key) { return row < row_count && (CAUSAL == 1u ? key <= row / HEADS : key < push.T) && key >= seen_from(row); }

vec4 add_products(vec4 sum, float a, vec4 b) {
    if (EXACT != 1u) return fma(vec4(a), b, sum);
    precise vec4 product = a * b;
    precise vec4 next = sum + product;
    return next;
}
// The sum of 4 products, one after the other.
float add_four(float sum, vec4 a, vec4 b) {
    return add_product(add_product(add_product(add_product(sum, a.x, b.x), a.y, b.y), a.z, b.z), a.w, b.w);
}

// `vectors` of `count` rows from row `begin` on, zeros from row `end` and from element D on.
#define STAGE(to, stride, count, vectors, words, wide, first_of, begin, end, d0) \
    [[unroll]] for (uint i = 0u; i < (count) * (vectors) / INVOCATIONS; i++) { \
        uint item = ME + i * INVOCATIONS, r = item / (vectors), at = item - r * (vectors), d = (d0) + 4u * at; \
        vec4 four = vec4(0.0); \
        if ((begin) + r < (end) && d < push.D) { \
            uint from = first_of((begin) + r) + d; \
            if (WIDE == 1u) four = wide[from / 4u]; \
            else for (uint e = 0u; e < 4u; e++) if (d + e < push.D) four[e] = words[from + e]; \
        } \
        to[r * (stride) + at] = four; \
    }
// sums[r * SCORES + c] = own row times other row, in blocks of 32 from zero in exact mode.
#define MULTIPLY(sums, own, wide_own, own_first, own_begin, own_end, other, wide_other, other_first, other_begin, other_end) { \
    float block[ROWS * SCORES]; \
    [[unroll]] for (uint i = 0u; i < ROWS * SCORES; i++) sums[i] = block[i] = 0.0; \
    for (uint d0 = 0u; d0 < push.D; d0 += 4u * PIECE) { \
        barrier(); \
        STAGE(own_piece, STRIDE, OWN, PIECE, own, wide_own, own_first, own_begin, own_end, d0) \
        STAGE(other_piece, STRIDE, OTHER, PIECE, other, wide_other, other_first, other_begin, other_end, d0) \
        barrier(); \
        for (uint at = 0u; at < PIECE; at++) { \
            vec4 column[SCORES]; \
            [[unroll]] for (uint c = 0u; c < SCORES; c++) column[c] = other_piece[OTHER_ROW(c) * STRIDE + at]; \
            [[unroll]] for (uint r = 0u; r < ROWS; r++) { \
                vec4 four = own_piece[OWN_ROW(r) * STRIDE + at]; \
                [[unroll]] for (uint c = 0u; c < SCORES; c++) block[r * SCORES + c] = add_four(block[r * SCORES + c], four, column[c]); \
            } \
        } \
        [[unroll]] for (uint i = 0u; i < ROWS * SCORES && EXACT == 1u; i++) { \
            sums[i] = add_rounded(sums[i], block[i]); \
            block[i] = 0.0; \
        } \
    } \
    [[unroll]] for (uint i = 0u; i < ROWS * SCORES && EXACT != 1u; i++) sums[i] = block[i]; }
// The slices of the others times their weights, from zero in exact mode, added to sums * scale_of(own row).
#define ADD_OTHERS(sums, scale_of, other, wide_other, other_first, other_begin, other_end) { \
    vec4 tile[ROWS * VECTORS]; \
    [[unroll]] for (uint i = 0u; i < ROWS * VECTORS; i++) tile[i] = EXACT == 1u ? vec4(0.0) : sums[i] * scale_of(OWN_ROW(i / VECTORS)); \
    for (uint j0 = 0u; j0 < OTHER; j0 += PART) { \
        barrier(); \
        STAGE(other_piece, SLICE_STRIDE, PART, SLICE / 4u, other, wide_other, other_first, other_begin + j0, other_end, slice_first) \
        barrier(); \
        for (uint j = 0u; j < PART; j += 4u) { \
            [[unroll]] for (uint n = 0u; n < VECTORS; n++) { \
                uint from = j * SLICE_STRIDE + n * COLUMNS + COLUMN; \
                vec4 first = other_piece[from], second = other_piece[from + SLICE_STRIDE], \
                     third = other_piece[from + 2u * SLICE_STRIDE], fourth = other_piece[from + 3u * SLICE_STRIDE]; \
                [[unroll]] for (uint r = 0u; r < ROWS; r++) { \
                    vec4 four = weights[OWN_ROW(r) * WEIGHT_STRIDE + (j0 + j) / 4u]; \
                    vec4 sum = add_products(tile[r * VECTORS + n], four.x, first); \
                    sum = add_products(sum, four.y, second); \
                    sum = add_products(sum, four.z, third); \
                    tile[r * VECTORS + n] = add_products(sum, four.w, fourth); \
                } \
            } \
        } \
    } \
    [[unroll]] for (uint i = 0u; i < ROWS * VECTORS; i++) \
        sums[i] = EXACT == 1u ? add_products(tile[i], scale_of(OWN_ROW(i / VECTORS)), sums[i]) : tile[i]; }
#define ONE(row) 1.0

float result_of(float sum, float first, float second) {
    float value = mul_rounded(mul_rounded(sum, first), second);
    return EXACT == 1u ? exact_canonical(value) : value;
}
// sums * first_of(own row) * second, as they are stored from element `base` of the result on.
#define STORE_ROWS(sums, first_of_row, second, base, own_first, own_begin, own_end) \
    [[unroll]] for (uint i = 0u; i < ROWS * VECTORS; i++) { \
        uint r = OWN_ROW(i / VECTORS), row = (own_begin) + r, d = slice_first + 64u * (i % VECTORS) + 4u * COLUMN; \
        if (row < (own_end)) \
            for (uint e = 0u; e < 4u; e++) \
                if (d + e < push.D) out_words[(base) + own_first(row) + d + e] = result_of(sums[i][e], first_of_row(r), second); \
    }
#endif
