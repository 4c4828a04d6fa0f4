#version 450
// attention.comp: softmax(scale * Q K^T) V in one pass over the keys, in tiles of 32, with a running maximum and sum for
// each query row. A workgroup has ROWS query rows that share a key head: neighbours in (token, head of the group) order.
// Where that is a single one, it works at TILES tiles at once, whose sums are then put together one after the other. Neither
// number changes a bit of the result. Loops of a length that is known here are not marked for unrolling:
// spirv-opt's copies lose their NoContraction, and drivers unroll them anyway.
#include "rows.glsl"
layout(constant_id = HDI_ATTENTION_TYPE) const uint TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_ATTENTION_KV_TYPE) const uint KV_TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_ATTENTION_CAUSAL) const uint CAUSAL = 1u;
layout(constant_id = HDI_ATTENTION_PAST) const uint HAS_PAST = 0u;
layout(constant_id = HDI_ATTENTION_ROWS) const uint ROWS = 1u;
layout(constant_id = HDI_ATTENTION_WIDTH) const uint WIDTH = 256u;
layout(constant_id = HDI_ATTENTION_PAGE) const uint PAGE = 0u;
layout(constant_id = HDI_ATTENTION_FORM) const uint FORM = 0u;
layout(constant_id = HDI_ATTENTION_AT_ONCE) const uint TILES = 1u;
layout(push_constant) uniform Push { uint B, T, S, Hq, Hkv, D, scale, N, window, cap, inverse_cap; uint mask_sequence, mask_head, mask_query, mask_key; } push;
layout(std430, binding = 0) readonly buffer Q { uint q[]; };
layout(std430, binding = 1) readonly buffer K { uint k[]; };
layout(std430, binding = 1) readonly buffer WideK { uvec4 wide_k[]; };
layout(std430, binding = 2) readonly buffer V { uint v[]; };
layout(std430, binding = 3) readonly buffer Past { int past[]; };
layout(std430, binding = 4) readonly buffer Pages { int pages[]; };
layout(std430, binding = 5) readonly buffer Sinks { uint sinks[]; };
layout(std430, binding = 6) readonly buffer Mask { float mask[]; };
layout(std430, binding = 7) buffer Y { uint y[]; };
#include "pages.glsl"
#include "blocks.glsl"
#include "fast.glsl"

#define TILE HDI_ATTENTION_TILE
const uint BLOCKS = WIDTH / HDI_MM_BLOCK;
const bool WIDE = (FORM & HDI_ATTENTION_WIDE_K) != 0u; // keys, and values likewise
// q's rows, zeros beyond D; one vector more behind each block spreads blocks over the memory's banks.
const uint VECTORS = HDI_MM_BLOCK / 4u, BLOCK_STRIDE = VECTORS + 1u;
shared vec4 query[ROWS * BLOCKS * BLOCK_STRIDE];
shared float result[ROWS * WIDTH];  // running sums of weight * value
shared float block_sums[ROWS * TILES * TILE * BLOCKS];
shared vec4 weights[ROWS * TILES * TILE / 4u]; // of 4 keys, first their scores
shared float running_sum[ROWS], rescale[ROWS * TILES];
shared int largest[ROWS], next_largest[ROWS * TILES]; // maximum of the tiles before, as a key, and of each tile; of a single one with them
const uint READ_AT_ONCE = 16u, OF_WORD = WIDE ? 2u : 1u; // of several tiles: keys whose values an invocation has under way, and values of each
const bool AHEAD = TILES > 1u && WIDE; // a block of a key is asked for at once
const uint APART = uint(TILES > 1u); // 1: the tiles' own sums:
shared float tile_sums[1u + APART * TILES], tile_values[1u + APART * TILES * WIDTH];
shared uint seen_from[ROWS], seen_to[ROWS]; // the keys that a row sees
// Of a head, that an invocation adds up, for so many rows; in constants of their own: spirv-opt puts one before what it is made of.
const uint MORE_VALUES = uint(WIDE) & ~ROWS, OWN_VALUES = 1u + (MORE_VALUES & 1u), OWN_ROWS = ROWS / OWN_VALUES;
const bool WINDOWED = (FORM & HDI_ATTENTION_WINDOWED) != 0u;
const bool STARTS = (FORM & HDI_ATTENTION_STARTS) != 0u, MASKED = (FORM & HDI_ATTENTION_MASKED) != 0u, CUT = WINDOWED || STARTS;
bool sees(uint r, uint key) { return key < seen_to[r] && (!CUT || key >= seen_from[r]); }
bool sees_tile(uint r, uint begin) { return begin < seen_to[r] && (!CUT || begin + TILE > seen_from[r]); }
// The least and the largest first key of the workgroup's rows; starts are in any order.
uvec2 firsts_seen() {
    uvec2 ends = uvec2(seen_from[0], seen_from[ROWS - 1u]);
    if (STARTS)
        for (uint r = 0u; r < ROWS; r++) ends = uvec2(min(ends.x, seen_from[r]), max(ends.y, seen_from[r]));
    return ends;
}
float capped(float score) {
    if ((FORM & HDI_ATTENTION_CAPPED) == 0u) return score;
    float part = mul_rounded(score, uintBitsToFloat(push.inverse_cap));
    return mul_rounded(uintBitsToFloat(push.cap), EXACT == 1u ? exact_tanh(part) : fast_tanh(part));
}

void eight_halves(uvec4 wide, out vec4 low, out vec4 high) {
    low = vec4(half_values(wide.x), half_values(wide.y));
    high = vec4(half_values(wide.z), half_values(wide.w));
}
// Eight elements of a key from `first` on, which is element d of it; zeros past its end.
void read_keys(uint first, uint d, out vec4 low, out vec4 high) {
    low = high = vec4(0.0);
    if (HAS_BLOCKS(KV_TYPE)) { // heads are whole blocks
        if (d >= push.D) return;
        uvec4 codes;
        READ_CODES(k, KV_TYPE, first, codes)
        low = code_values(KV_TYPE, codes.x, codes.z);
        high = code_values(KV_TYPE, codes.y, codes.z);
    } else if (WIDE) {
        if (d >= push.D) return;
        eight_halves(wide_k[first / 8u], low, high);
    } else
        for (uint i = 0u; i < 4u; i++) {
            if (d + i < push.D) low[i] = LOAD_FLOAT(k, KV_TYPE, first + i);
            if (d + 4u + i < push.D) high[i] = LOAD_FLOAT(k, KV_TYPE, first + 4u + i);
        }
}
vec2 values_at(uint i) { // one, or OWN_VALUES
    float value;
    if (HAS_BLOCKS(KV_TYPE)) {
        READ_BLOCK_VALUE(v, KV_TYPE, i, value)
        return vec2(value);
    }
    if (KV_TYPE != HDI_TYPE_F16) return vec2(LOAD_FLOAT(v, KV_TYPE, i));
    vec2 two = half_values(v[i / 2u]);
    return OWN_VALUES == 2u ? two : vec2(two[i % 2u]);
}
// What scores are taken relative to; of nothing but -infinity yet, whose weights are all 0: 0.
float base_of(int largest_key) {
    uint bits = bits_of_key(largest_key);
    return uintBitsToFloat(bits == 0xFF800000u ? 0u : bits);
}

// The maximum once the tile is seen, of a row and tile r * TILES + g.
int largest_with(uint row_tile) {
    if (TILES == 1u) return next_largest[row_tile];
    int best = largest[row_tile / TILES];
    for (uint at = row_tile / TILES * TILES; at <= row_tile; at++) best = max(best, next_largest[at]);
    return best;
}

uint q_first[ROWS];
uint result_first, result_row;
uint value(uint i) { return canonical_bits(mul_rounded(result[result_row * WIDTH + i - result_first], running_sum[result_row])); }

void main() {
    uint heads = push.Hq / push.Hkv, row_count = push.T * heads, parts = (row_count + ROWS - 1u) / ROWS;
    uint group = group_number(), pairs = push.B * push.Hkv, part = group / pairs;
    if (part >= parts) return;
    uint batch_head = group - part * pairs, batch = batch_head / push.Hkv, head = batch_head - batch * push.Hkv;
    uint row_first = (parts - 1u - part) * ROWS, rows = min(ROWS, row_count - row_first); // those that see most keys begin first
    int before = HAS_PAST == 1u ? min(max(past[batch], -int(push.T)), int(push.S)) : 0;

    for (uint r = 0u; r < rows; r++) {
        uint token = (row_first + r) / heads, h = head * heads + (row_first + r) - token * heads;
        q_first[r] = ((batch * push.T + token) * push.Hq + h) * push.D;
    }
    for (uint at = ME; at < ROWS * WIDTH / 4u; at += WORKGROUP) {
        uint r = at / (WIDTH / 4u), vector = at - r * (WIDTH / 4u), d = 4u * vector;
        vec4 four = vec4(0.0);
        for (uint i = 0u; i < 4u && r < rows && d + i < push.D; i++) four[i] = LOAD_FLOAT(q, TYPE, q_first[r] + d + i);
        query[(r * BLOCKS + vector / VECTORS) * BLOCK_STRIDE + vector % VECTORS] = four;
    }
    for (uint at = ME; at < ROWS * WIDTH; at += WORKGROUP) result[at] = 0.0;
    for (uint r = ME; r < ROWS; r += WORKGROUP) {
        uint token = (row_first + r) / heads, sink = 0xFF800000u;
        int next = before + int(token) + 1, to = CAUSAL == 1u ? next : before + int(push.T);
        if ((FORM & HDI_ATTENTION_SINKS) != 0u && r < rows) sink = sinks[head * heads + row_first + r - token * heads];
        seen_from[r] = WINDOWED ? uint(max(next - int(push.window), 0)) : 0u;
        if (STARTS && r < rows) seen_from[r] = max(seen_from[r], uint(min(max(pages[batch * push.T + token], 0), int(push.S))));
        seen_to[r] = r < rows ? uint(min(max(to, 0), int(push.S))) : 0u;
        largest[r] = key_of(sink);
        for (uint g = 0u; g < TILES; g++) next_largest[r * TILES + g] = TILES == 1u ? key_of(sink) : KEY_LEAST;
        running_sum[r] = sink == 0xFF800000u ? 0.0 : 1.0;
    }
    barrier();
    uint most = seen_to[rows - 1u];
    uint kv_step = push.Hkv * push.D;
    uvec2 ends = firsts_seen();

#define FIRST_OF(tile) (row_of(batch, page_of(batch, tile), tile) * kv_step + head * push.D)
    // Most tiles are seen whole by all rows.
#define IS_WHOLE(tile) (rows == ROWS && (tile) + TILE <= seen_to[0] && (!CUT || (tile) >= ends.y))
    for (uint begin = ends.x / TILE * TILE; begin < most; begin += TILES * TILE) {
        uint count = min(TILES * TILE, most - begin), begin_first = FIRST_OF(begin);
        bool begin_whole = IS_WHOLE(begin);
        for (uint item = ME; item < count * BLOCKS; item += WORKGROUP) { // one key's block of D, for all rows
            uint key = item / BLOCKS, block = item - key * BLOCKS;
            uint k_first = TILES == 1u ? begin_first + key * kv_step : FIRST_OF(begin + key / TILE * TILE) + key % TILE * kv_step;
            float sums[ROWS];
            uvec4 ahead[VECTORS / 2u];
            [[unroll]] for (uint r = 0u; r < ROWS; r++) sums[r] = 0.0;
            if (AHEAD) {
                [[unroll]] for (uint i = 0u; i < VECTORS / 2u; i++) ahead[i] = wide_k[(k_first + min(block * HDI_MM_BLOCK + 8u * i, push.D - 8u)) / 8u];
            }
            for (uint vector = 0u; vector < VECTORS; vector += 2u) {
                uint d = block * HDI_MM_BLOCK + 4u * vector;
                vec4 low, high;
                if (AHEAD) eight_halves(ahead[vector / 2u], low, high);
                else read_keys(k_first + d, d, low, high);
                [[unroll]] for (uint r = 0u; r < ROWS; r++) {
                    uint at = (r * BLOCKS + block) * BLOCK_STRIDE + vector;
                    vec4 first = query[at], second = query[at + 1u];
                    for (uint i = 0u; i < 4u; i++) sums[r] = add_product(sums[r], first[i], low[i]);
                    for (uint i = 0u; i < 4u; i++) sums[r] = add_product(sums[r], second[i], high[i]);
                }
            }
            [[unroll]] for (uint r = 0u; r < ROWS; r++) block_sums[(r * TILES * TILE + key) * BLOCKS + block] = sums[r];
        }
        barrier();
        for (uint item = ME; item < ROWS * TILES * TILE / 4u; item += WORKGROUP) { // four keys of a row, and what they make of its maximum
            uint row_tile = item / (TILE / 4u), r = row_tile / TILES, tile = begin + row_tile % TILES * TILE, key = tile + 4u * item - row_tile * TILE;
            bool whole = TILES == 1u ? begin_whole : IS_WHOLE(tile);
            vec4 four;
            for (uint i = 0u; i < 4u; i++) {
                float sum = 0.0;
                [[unroll]] for (uint block = 0u; block < BLOCKS; block++) sum = add_rounded(sum, block_sums[(4u * item + i) * BLOCKS + block]);
                four[i] = capped(mul_rounded(sum, uintBitsToFloat(push.scale)));
            }
            if (MASKED && r < rows) {
                uint token = (row_first + r) / heads, h = head * heads + (row_first + r) - token * heads;
                uint first = batch * push.mask_sequence + h * push.mask_head + token * push.mask_query;
                for (uint i = 0u; i < 4u; i++)
                    if (sees(r, key + i)) four[i] = add_rounded(four[i], mask[first + (key + i) * push.mask_key]);
            }
            weights[item] = four;
            int best = KEY_LEAST;
            for (uint i = 0u; i < 4u; i++)
                if (whole || sees(r, key + i)) best = max(best, key_of(floatBitsToUint(four[i])));
            atomicMax(next_largest[row_tile], best);
        }
        barrier();
        for (uint item = ME; item < ROWS * TILES * TILE; item += WORKGROUP) {
            float score = weights[item / 4u][item % 4u];
            weights[item / 4u][item % 4u] = exponential(add_rounded(score, -base_of(largest_with(item / TILE))));
        }
        for (uint at = ME; at < rows * TILES; at += WORKGROUP) { // what becomes of the sums so far
            float old = uintBitsToFloat(bits_of_key(at % TILES == 0u ? largest[at / TILES] : largest_with(at - 1u)));
            rescale[at] = exponential(add_rounded(old, -base_of(largest_with(at))));
            if (TILES == 1u) largest[at] = next_largest[at];
        }
        barrier();
        for (uint at = ME; at < rows * TILES; at += WORKGROUP) {
            uint r = at / TILES, tile = begin + at % TILES * TILE;
            bool whole = TILES == 1u ? begin_whole : IS_WHOLE(tile);
            float sum = 0.0;
            for (uint key = 0u; key < TILE; key += 4u) {
                vec4 four = weights[(at * TILE + key) / 4u];
                for (uint i = 0u; i < 4u; i++)
                    if (whole || sees(r, tile + key + i)) sum = add_rounded(sum, four[i]);
            }
            if (TILES > 1u) tile_sums[at] = sum;
            else if (sees_tile(r, begin)) running_sum[r] = add_product(sum, running_sum[r], rescale[r]);
        }
        const uint lines = push.D / OWN_VALUES;
        for (uint item = ME; TILES == 1u && item < lines * OWN_VALUES; item += WORKGROUP) {
            uint first = item / lines * OWN_ROWS, d = item % lines * OWN_VALUES;
            float sums[ROWS];
            [[unroll]] for (uint r = 0u; r < ROWS; r++) sums[r] = 0.0;
#define ADD_VALUES(KEY_COUNT, KEY, SEEN) \
            for (uint key = 0u; key < KEY_COUNT; key += 4u) { \
                vec2 elements[4]; \
                for (uint i = 0u; i < 4u; i++) elements[i] = values_at(begin_first + (KEY) * kv_step + d); \
                [[unroll]] for (uint r = 0u; r < ROWS; r++) { \
                    vec4 four = weights[((first + r % OWN_ROWS) * TILE + key) / 4u]; \
                    for (uint i = 0u; i < 4u; i++) \
                        if (SEEN) sums[r] = add_product(sums[r], four[i], elements[i][r / OWN_ROWS]); \
                } \
            }
            if (begin_whole) ADD_VALUES(TILE, key + i, true)
            else ADD_VALUES(count, min(key + i, count - 1u), sees(first + r % OWN_ROWS, begin + key + i))
            [[unroll]] for (uint r = 0u; r < ROWS; r++) {
                uint row = first + r % OWN_ROWS, at = row * WIDTH + d + r / OWN_ROWS;
                if (sees_tile(row, begin)) result[at] = add_product(sums[r], result[at], rescale[row]);
            }
        }
        const uint words = push.D / OF_WORD;
        for (uint item = ME; TILES > 1u && item < (count + TILE - 1u) / TILE * words; item += WORKGROUP) {
            uint g = item / words, tile = begin + g * TILE, d = item % words * OF_WORD, keys = min(TILE, count - g * TILE), first = FIRST_OF(tile) + d;
            vec2 sum = vec2(0.0);
            for (uint key = 0u; key < keys; key += READ_AT_ONCE) {
                uint halves[READ_AT_ONCE];
                vec2 elements[READ_AT_ONCE];
                if (WIDE) {
                    [[unroll]] for (uint i = 0u; i < READ_AT_ONCE; i++) halves[i] = v[(first + min(key + i, keys - 1u) * kv_step) / 2u];
                    for (uint i = 0u; i < READ_AT_ONCE; i++) elements[i] = half_values(halves[i]);
                } else
                    for (uint i = 0u; i < READ_AT_ONCE; i++) elements[i] = values_at(first + min(key + i, keys - 1u) * kv_step);
                for (uint i = 0u; i < READ_AT_ONCE; i++) {
                    float weight = weights[(g * TILE + key + i) / 4u][i % 4u];
                    if (key + i >= keys || !sees(0u, tile + key + i)) continue;
                    sum.x = add_product(sum.x, weight, elements[i].x);
                    if (WIDE) sum.y = add_product(sum.y, weight, elements[i].y);
                }
            }
            tile_values[g * WIDTH + d] = sum.x;
            if (WIDE) tile_values[g * WIDTH + d + 1u] = sum.y;
        }
        barrier();
        if (TILES > 1u) {
            for (uint d = ME; d < push.D; d += WORKGROUP) {
                float sum = result[d];
                for (uint g = 0u; g * TILE < count; g++)
                    if (sees_tile(0u, begin + g * TILE)) sum = add_product(tile_values[g * WIDTH + d], sum, rescale[g]);
                result[d] = sum;
            }
            if (ME == 0u) {
                for (uint g = 0u; g * TILE < count; g++)
                    if (sees_tile(0u, begin + g * TILE)) running_sum[0] = add_product(tile_sums[g], running_sum[0], rescale[g]);
                largest[0] = largest_with(TILES - 1u);
                for (uint g = 0u; g < TILES; g++) next_largest[g] = KEY_LEAST;
            }
        }
    }
    for (uint r = ME; r < rows; r += WORKGROUP) running_sum[r] = divided(1.0, running_sum[r]);
    barrier();
    for (result_row = 0u; result_row < rows; result_row++) {
        result_first = q_first[result_row];
        STORE_ROW(y, OUT_TYPE, result_first, push.D, value)
    }
}
