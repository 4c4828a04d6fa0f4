#version 450
// attention_subgroup.comp: softmax(scale * Q K^T) V for fast mode, made for few queries over many keys. A workgroup has
// ROWS query rows that share a key head and one part of the keys, so that each key and value is read once for all rows.
// KEY_LANES lanes share a key and 8 elements at a time of its head; each such group of lanes walks over keys of its own
// with running maxima and sums of its own, and nobody waits for anybody. Then all are merged: by shuffles within a
// subgroup, in shared memory within the workgroup, and between parts by the workgroup that arrives last.
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "rows.glsl"
#include "early.glsl"
layout(constant_id = HDI_ATTENTION_TYPE) const uint TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_ATTENTION_KV_TYPE) const uint KV_TYPE = HDI_TYPE_F16;
layout(constant_id = HDI_ATTENTION_CAUSAL) const uint CAUSAL = 1u;
layout(constant_id = HDI_ATTENTION_PAST) const uint HAS_PAST = 0u;
layout(constant_id = HDI_ATTENTION_ROWS) const uint ROWS = 1u;
layout(constant_id = HDI_ATTENTION_WIDTH) const uint WIDTH = 128u;
layout(constant_id = HDI_ATTENTION_SUBGROUP) const uint SUBGROUP = 32u;
layout(constant_id = HDI_ATTENTION_KEY_LANES) const uint KEY_LANES = 8u;
layout(constant_id = HDI_ATTENTION_WIDE) const uint WIDE = 0u;
layout(constant_id = HDI_ATTENTION_KEYS) const uint KEYS = 4u;
layout(constant_id = HDI_ATTENTION_PAGE) const uint PAGE = 0u;
layout(constant_id = HDI_ATTENTION_FORM) const uint FORM = 0u;
layout(push_constant) uniform Push { uint B, T, S, Hq, Hkv, D, scale, N, window, cap, inverse_cap, parts, part_keys; } push;
layout(std430, binding = 0) readonly buffer Q { uint q[]; };
layout(std430, binding = 0) readonly buffer WideQ { uvec4 wide_q[]; };
layout(std430, binding = 1) readonly buffer K { uint k[]; };
layout(std430, binding = 1) readonly buffer WideK { uvec4 wide_k[]; };
layout(std430, binding = 2) readonly buffer V { uint v[]; };
layout(std430, binding = 2) readonly buffer WideV { uvec4 wide_v[]; };
layout(std430, binding = 3) readonly buffer Past { int past[]; };
layout(std430, binding = 4) readonly buffer Pages { int pages[]; };
layout(std430, binding = 5) readonly buffer Sinks { float sinks[]; };
layout(std430, binding = 6) coherent buffer Partial { vec4 partial[]; }; // ROWS * WIDTH sums and ROWS (maximum, sum, 0, 0) a part
layout(std430, binding = 7) coherent buffer Arrivals { uint arrivals[]; };
layout(std430, binding = 8) buffer Y { uint y[]; };
#include "pages.glsl"
#include "blocks.glsl"

const uint CHUNKS = WIDTH / 8u, OWN_CHUNKS = (CHUNKS + KEY_LANES - 1u) / KEY_LANES; // of a head, of a lane
const uint OWN = 2u * OWN_CHUNKS;                                                  // vectors of 4 elements
const uint SUBGROUPS = gl_WorkGroupSize.x / SUBGROUP, SLOTS = gl_WorkGroupSize.x / KEY_LANES;
#define BLOCKS HAS_BLOCKS(KV_TYPE)
#define IS_NARROW(type) (WIDE == 1u && type != HDI_TYPE_F32)                        // 16 bytes are 8 elements
#define WORDS_OF(type) (IS_NARROW(type) ? 1u : 2u)
const uint CHUNK_WORDS = BLOCKS ? 1u : WORDS_OF(KV_TYPE);
const uint OWN_WORDS = OWN_CHUNKS * CHUNK_WORDS, ROW_VECTORS = WIDTH / 4u, VECTORS = ROWS * ROW_VECTORS;
// Scores of a round are summed over a slot's lanes so that each lane is left with one of them, or some with the same.
const uint ALL_ROWS = ROWS == 3u ? 4u : ROWS, SCORES = ALL_ROWS * KEYS, SHARE = KEY_LANES / SCORES;
const uint PARTS_AT_ONCE = 4u * KEYS, SHARES = VECTORS > gl_WorkGroupSize.x ? 1u : // when parts are merged
                                        gl_WorkGroupSize.x / VECTORS < SUBGROUPS ? gl_WorkGroupSize.x / VECTORS : SUBGROUPS;
const float LEAST = -3.40282347e38;
shared vec4 sums[SUBGROUPS * VECTORS]; // of each subgroup: values times weights
shared vec2 bests[SUBGROUPS * ROWS];   // maximum, and sum of the weights
shared uint arrived;

// The block of a chunk, counted from an even one: the row's first, or where rows have odd numbers of blocks the one before.
#define BLOCK_IN_ROW(chunk, row) (((FORM & HDI_ATTENTION_EVEN) != 0u ? 0u : ((row) * row_blocks) & 1u) + head * push.D / 32u + (chunk) / 4u)
// A chunk is 8 elements in two vectors: neighbours, but of q4_0 a word of codes: 4, and the 4 that are 16 elements behind them.
uint vector_of(uint chunk, uint i) { return KV_TYPE == HDI_TYPE_Q4_0 ? chunk / 4u * 8u + chunk % 4u + 4u * i : 2u * chunk + i; }
// A chunk of row `row` of k or v, as it lies in memory: words with codes and the one with d (blocks.glsl), or floats' bits; zeros
// beyond the head.
#define READ_CHUNK(words, wide, row, chunk, out_words, at) { \
    if (BLOCKS) { \
        uint even_word = (row) * row_blocks / 2u * BLOCK_HALVES(KV_TYPE), rest = BLOCK_IN_ROW(chunk, row) * BLOCK_HALVES(KV_TYPE); \
        READ_PIECE(words, KV_TYPE, even_word, rest, (chunk) % 4u, out_words[at]) \
    } else if (WIDE == 1u) { \
        uint first = ((row) * kv_step + head * push.D) / (4u * (3u - CHUNK_WORDS)) + (chunk) * CHUNK_WORDS; \
        [[unroll]] for (uint w = 0u; w < CHUNK_WORDS; w++) out_words[at + w] = wide[first + w]; \
    } else { \
        for (uint e = 0u; e < 8u; e++) { \
            uint d = 8u * (chunk) + e; \
            out_words[at + e / 4u][e % 4u] = d < push.D ? LOAD(words, KV_TYPE, (row) * kv_step + head * push.D + d) : 0u; \
        } \
    } }
vec4 unpacked(uvec2 halves, uint type) {
    if (type == HDI_TYPE_F16) return vec4(unpackHalf2x16(halves.x), unpackHalf2x16(halves.y));
    return uintBitsToFloat(uvec4(halves.x << 16, halves.x & 0xFFFF0000u, halves.y << 16, halves.y & 0xFFFF0000u));
}
// Vector i of a lane's chunks; of blocks its codes, at least 0, times CODE_UNIT.
#define FOUR(words, at, i, odd) \
    (BLOCKS ? code_units(KV_TYPE, words[at + (i) / 2u], odd, (i) % 2u) \
     : IS_NARROW(KV_TYPE) ? unpacked((i) % 2u == 0u ? words[at + (i) / 2u].xy : words[at + (i) / 2u].zw, KV_TYPE) \
     : uintBitsToFloat(words[at + (i)]))
// The lane's chunks of the slot's keys of the round from `base` on, where `page` is the one that they lie in. Beyond the last
// row of the cache that row is read, and not used. Rounds of more keys than a page has ask for each key's page.
const uint ROUND = SLOTS * KEYS;
const bool ONE_PAGE = ROUND <= (PAGE == 0u ? ROUND : 1u << PAGE);
float add_four(float sum, vec4 a, vec4 b) { return fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, fma(a.x, b.x, sum)))); }
// Vector `at` of a query; zeros beyond the head.
#define READ_QUERY(first, at, out_four) { \
    uint query_first = (first) + 4u * (at); \
    if (WIDE == 1u && TYPE == HDI_TYPE_F32) out_four = uintBitsToFloat(wide_q[query_first / 4u]); \
    else if (WIDE == 1u) out_four = unpacked((query_first & 4u) == 0u ? wide_q[query_first / 8u].xy : wide_q[query_first / 8u].zw, TYPE); \
    else for (uint e = 0u; e < 4u; e++) if (4u * (at) + e < push.D) out_four[e] = LOAD_FLOAT(q, TYPE, query_first + e); }
// tanh, near enough for what is multiplied with a cap of scores.
float tanh_of(float x) { return 1.0 - 2.0 / (1.0 + exp2(2.88539008 * (x > 16.0 ? 16.0 : x))); }
const bool WINDOWED = (FORM & HDI_ATTENTION_WINDOWED) != 0u, CAPPED = (FORM & HDI_ATTENTION_CAPPED) != 0u;
#define SEES(key) ((key) < seen_to && (!WINDOWED || (key) >= seen_from))
#define OWN_CHUNK(c) min(lane + (c) * KEY_LANES, CHUNKS - 1u)
#define READ_ROUND(words, wide, base, page, out_words) { \
    [[unroll]] for (uint u = 0u; u < KEYS; u++) { \
        uint key = min((base) + u * SLOTS + slot, push.S - 1u); \
        uint row = row_of(batch, ONE_PAGE ? page : page_of(batch, key), key); \
        [[unroll]] for (uint c = 0u; c < OWN_CHUNKS; c++) \
            READ_CHUNK(words, wide, row, OWN_CHUNK(c), out_words, u * OWN_WORDS + c * CHUNK_WORDS) \
    } }
// Of a round's key u, and chunk c: is it in an odd block? Pages have even numbers of rows.
#define IS_ODD(base, u, c) (BLOCK_IN_ROW(OWN_CHUNK(c), (PAGE == 0u ? batch * push.S : 0u) + (base) + u * SLOTS + slot) & 1u)

// Vector `item` of `count` results in shared memory together, and their maximum and sum.
vec4 merged(uint item, uint count, out vec2 best_and_sum) {
    uint r = item / ROW_VECTORS;
    vec4 result = vec4(0.0);
    best_and_sum = vec2(LEAST, 0.0);
    [[unroll]] for (uint s = 0u; s < count; s++) best_and_sum.x = max(best_and_sum.x, bests[s * ROWS + r].x);
    [[unroll]] for (uint s = 0u; s < count; s++) {
        float weight = exp2(bests[s * ROWS + r].x - best_and_sum.x);
        best_and_sum.y += weight * bests[s * ROWS + r].y;
        result += weight * sums[s * VECTORS + item];
    }
    return result;
}
float inverse(float sum) { return sum == 0.0 ? uintBitsToFloat(EXACT_NAN) : 1.0 / sum; }

// What the unit's parts have left becomes SHARES results in shared memory, each of every SHARES-th part.
void gather_parts(uint unit_first, uint parts, uint me) {
    const uint stride = VECTORS + ROWS;
    for (uint at = me; at < SHARES * VECTORS; at += WORKGROUP) {
        uint share = at / VECTORS, item = at - share * VECTORS, r = item / ROW_VECTORS;
        vec2 best_and_sum = vec2(LEAST, 0.0);
        vec4 result = vec4(0.0);
        for (uint first = share; first < parts; first += SHARES * PARTS_AT_ONCE) {
            vec4 values[PARTS_AT_ONCE];
            vec2 theirs[PARTS_AT_ONCE];
            [[unroll]] for (uint u = 0u; u < PARTS_AT_ONCE; u++) { // all under way at once
                uint from = unit_first + min(first + u * SHARES, parts - 1u) * stride;
                values[u] = partial[from + item];
                theirs[u] = partial[from + VECTORS + r].xy;
            }
            float best = best_and_sum.x;
            [[unroll]] for (uint u = 0u; u < PARTS_AT_ONCE; u++) best = max(best, theirs[u].x);
            float rescale = exp2(best_and_sum.x - best);
            result *= rescale;
            best_and_sum = vec2(best, best_and_sum.y * rescale);
            [[unroll]] for (uint u = 0u; u < PARTS_AT_ONCE; u++) {
                if (first + u * SHARES >= parts) continue;
                float weight = exp2(theirs[u].x - best);
                best_and_sum.y += weight * theirs[u].y;
                result += weight * values[u];
            }
        }
        sums[at] = result;
        if (item == r * ROW_VECTORS) bests[share * ROWS + r] = best_and_sum;
    }
}

uint result_first, result_row;
uint value(uint i) {
    uint d = i - result_first;
    return canonical_bits(sums[result_row * ROW_VECTORS + d / 4u][d % 4u]);
}

void main() {
    wait_for_earlier();
    const uint subgroup_lane = gl_SubgroupInvocationID, me = gl_SubgroupID * SUBGROUP + subgroup_lane;
    const uint slot = me / KEY_LANES, lane = me % KEY_LANES;
    uint heads = push.Hq / push.Hkv, row_count = push.T * heads, blocks = (row_count + ROWS - 1u) / ROWS;
    uint pairs = push.B * push.Hkv, units = pairs * blocks, part = group_number() / units, unit = group_number() - part * units;
    if (part >= push.parts) return;
    uint batch = unit % pairs / push.Hkv, head = unit % pairs - batch * push.Hkv, row_first = unit / pairs * ROWS, rows = min(ROWS, row_count - row_first);
    int before = HAS_PAST == 1u ? min(max(past[batch], -int(push.T)), int(push.S)) : 0;
    uint start = WINDOWED ? uint(max(before + int(row_first / heads) + 1 - int(push.window), 0)) / ROUND * ROUND : 0u;
    uint kv_step = push.Hkv * push.D, row_blocks = kv_step / 32u, begin = start + part * push.part_keys, page = page_of(batch, begin);
    uvec4 key_words[KEYS * OWN_WORDS], value_words[KEYS * OWN_WORDS], next_key_words[KEYS * OWN_WORDS], next_value_words[KEYS * OWN_WORDS];
    READ_ROUND(k, wide_k, begin, page, next_key_words) // before it is known how many keys are seen: that takes as long to read
    READ_ROUND(v, wide_v, begin, page, next_value_words)
    page = page_of(batch, begin + ROUND); // each page's number is there a round before its keys are asked for

    // A lane's own score of a round is that of row own_row and of the slot's key own_key.
    const uint own_score = lane / SHARE, own_row = min(own_score % ALL_ROWS, ROWS - 1u), own_key = own_score / ALL_ROWS;
    uint row_at[ROWS], own_head = head, seen_from = 0u, seen_to = 0u, most = 0u; // row_at: the row's first element in q and y
    [[unroll]] for (uint r = 0u; r < ROWS; r++) {
        uint row = min(row_first + r, row_count - 1u), token = row / heads, row_head = head * heads + row - token * heads;
        int next = before + int(token) + 1, to = CAUSAL == 1u ? next : before + int(push.T);
        uint row_to = uint(min(max(to, 0), int(push.S)));
        most = max(most, row_to);
        if (r == own_row) {
            seen_from = WINDOWED ? uint(max(next - int(push.window), 0)) : 0u;
            seen_to = row_to;
            own_head = row_head;
        }
        row_at[r] = ((batch * push.T + token) * push.Hq + row_head) * push.D;
    }
    uint end = min(begin + push.part_keys, most);
    uint active_parts = push.parts == 1u ? 1u : max((most - min(start, most) + push.part_keys - 1u) / push.part_keys, 1u);
    if (part >= active_parts) return;
    seen_to = min(seen_to, end);

    // Of blocks, codes are taken as numbers from 0 on; what that is too much leaves by `excess` and the weights' sums.
    vec4 query[ROWS * OWN], values[ROWS * OWN];
    float excess[ROWS * OWN_CHUNKS], weight_sums[ROWS * OWN_CHUNKS];
    const float scale = uintBitsToFloat(push.scale) * (CAPPED ? uintBitsToFloat(push.inverse_cap) : 1.44269504) * (BLOCKS ? CODE_UNITS : 1.0); // powers of 2 from here on
    const float cap = uintBitsToFloat(push.cap) * 1.44269504;
    [[unroll]] for (uint r = 0u; r < ROWS; r++)
        [[unroll]] for (uint c = 0u; c < OWN_CHUNKS; c++) {
            float sum = 0.0;
            [[unroll]] for (uint i = 0u; i < 2u; i++) { // lanes beyond the head have zeros
                vec4 four = vec4(0.0);
                if (lane + c * KEY_LANES < CHUNKS) READ_QUERY(row_at[r], vector_of(lane + c * KEY_LANES, i), four)
                sum += (four.x + four.y) + (four.z + four.w);
                query[r * OWN + 2u * c + i] = four * scale;
                values[r * OWN + 2u * c + i] = vec4(0.0);
            }
            excess[r * OWN_CHUNKS + c] = BLOCKS ? sum * scale * -code_excess(KV_TYPE) : 0.0;
            weight_sums[r * OWN_CHUNKS + c] = 0.0;
        }
    float largest = LEAST, total = 0.0; // of the row, and of what the lane adds up of it
    if ((FORM & HDI_ATTENTION_SINKS) != 0u && part == 0u && slot == 0u) { // one slot of all begins with the sink
        largest = max(sinks[own_head] * 1.44269504, LEAST);
        total = largest == LEAST || own_key != 0u ? 0.0 : 1.0;
    }
    const uint slot_lane = subgroup_lane - lane; // the slot's first lane

    for (uint base = begin; base < end; base += ROUND) {
        [[unroll]] for (uint w = 0u; w < KEYS * OWN_WORDS; w++) {
            key_words[w] = next_key_words[w];
            value_words[w] = next_value_words[w];
        }
        if (base + ROUND < end) {
            READ_ROUND(k, wide_k, base + ROUND, page, next_key_words)
            READ_ROUND(v, wide_v, base + ROUND, page, next_value_words)
            page = page_of(batch, base + 2u * ROUND);
        }
        float scores[SCORES];
        [[unroll]] for (uint s = 0u; s < SCORES; s++) scores[s] = 0.0;
        [[unroll]] for (uint u = 0u; u < KEYS; u++) {
            [[unroll]] for (uint c = 0u; c < OWN_CHUNKS; c++) {
                const uint odd = BLOCKS ? IS_ODD(base, u, c) : 0u, at = u * OWN_WORDS + c * CHUNK_WORDS;
                const float d = BLOCKS ? d_of(key_words[at], odd) : 1.0;
                vec4 first = FOUR(key_words, at, 0u, odd), second = FOUR(key_words, at, 1u, odd);
                if (CHUNKS % KEY_LANES != 0u && lane + c * KEY_LANES >= CHUNKS) first = second = vec4(0.0); // may be no number
                [[unroll]] for (uint r = 0u; r < ROWS; r++) {
                    float sum = add_four(BLOCKS ? excess[r * OWN_CHUNKS + c] : scores[u * ALL_ROWS + r], query[r * OWN + 2u * c], first);
                    sum = add_four(sum, query[r * OWN + 2u * c + 1u], second);
                    scores[u * ALL_ROWS + r] = BLOCKS ? fma(sum, d, scores[u * ALL_ROWS + r]) : sum;
                }
            }
        }
        [[unroll]] for (uint other = KEY_LANES / 2u; other > 0u; other >>= 1) {
            const bool upper = (lane & other) != 0u;
            if (other < SHARE) scores[0] += subgroupShuffleXor(scores[0], other);
            else
                [[unroll]] for (uint s = 0u; s < (SCORES + 1u) / 2u; s++) { // half of those that are left to a lane stay there
                    if (s >= other / SHARE) continue;
                    const float low = scores[s], high = scores[s + other / SHARE];
                    scores[s] = (upper ? high : low) + subgroupShuffleXor(upper ? low : high, other);
                }
        }
        const float score = CAPPED ? cap * tanh_of(scores[0]) : scores[0];
        const bool seen = SEES(base + own_key * SLOTS + slot);
        float best = seen ? max(largest, score) : largest;
        [[unroll]] for (uint other = KEY_LANES / 2u; other >= SHARE * ALL_ROWS; other >>= 1) best = max(best, subgroupShuffleXor(best, other));
        const float rescale = exp2(largest - best), weight = seen ? exp2(score - best) : -1.0;
        largest = best;
        total = total * rescale + (seen ? weight : 0.0);
        float rescales[ROWS];
        bool rescaled = false;
        [[unroll]] for (uint r = 0u; r < ROWS; r++) {
            rescales[r] = subgroupShuffle(rescale, slot_lane + r * SHARE);
            rescaled = rescaled || rescales[r] != 1.0;
        }
        if (rescaled)
            [[unroll]] for (uint r = 0u; r < ROWS; r++) {
                [[unroll]] for (uint i = 0u; i < OWN; i++) values[r * OWN + i] *= rescales[r];
                [[unroll]] for (uint c = 0u; c < OWN_CHUNKS; c++) weight_sums[r * OWN_CHUNKS + c] *= rescales[r];
            }
        [[unroll]] for (uint u = 0u; u < KEYS; u++) {
            float weights[ROWS];
            [[unroll]] for (uint r = 0u; r < ROWS; r++) weights[r] = subgroupShuffle(weight, slot_lane + (u * ALL_ROWS + r) * SHARE);
            [[unroll]] for (uint c = 0u; c < OWN_CHUNKS; c++) {
                const uint odd = BLOCKS ? IS_ODD(base, u, c) : 0u, at = u * OWN_WORDS + c * CHUNK_WORDS;
                const float d = BLOCKS ? d_of(value_words[at], odd) : 1.0;
                const vec4 first = FOUR(value_words, at, 0u, odd), second = FOUR(value_words, at, 1u, odd);
                [[unroll]] for (uint r = 0u; r < ROWS; r++) {
                    const bool hidden = weights[r] < 0.0; // what is there may be no number: of blocks, d
                    const float factor = BLOCKS ? hidden ? 0.0 : weights[r] * d : weights[r];
                    if (!BLOCKS && hidden) continue;
                    values[r * OWN + 2u * c] = fma(vec4(factor), first, values[r * OWN + 2u * c]);
                    values[r * OWN + 2u * c + 1u] = fma(vec4(factor), second, values[r * OWN + 2u * c + 1u]);
                    if (BLOCKS) weight_sums[r * OWN_CHUNKS + c] += factor;
                }
            }
        }
    }
    float row_largest[ROWS], row_total[ROWS];
    [[unroll]] for (uint r = 0u; r < ROWS; r++) {
        row_largest[r] = subgroupShuffle(largest, slot_lane + r * SHARE);
        row_total[r] = 0.0;
        [[unroll]] for (uint u = 0u; u < KEYS; u++) row_total[r] += subgroupShuffle(total, slot_lane + (u * ALL_ROWS + r) * SHARE);
        [[unroll]] for (uint i = 0u; i < OWN && BLOCKS; i++)
            values[r * OWN + i] = (values[r * OWN + i] - weight_sums[r * OWN_CHUNKS + i / 2u] * code_excess(KV_TYPE)) * CODE_UNITS;
    }

    // The subgroup's slots become one, then the subgroups do.
    [[unroll]] for (uint r = 0u; r < ROWS; r++) {
        for (uint other = KEY_LANES; other < SUBGROUP; other <<= 1) {
            float best = max(row_largest[r], subgroupShuffleXor(row_largest[r], other)), rescale = exp2(row_largest[r] - best);
            row_largest[r] = best;
            row_total[r] *= rescale;
            row_total[r] += subgroupShuffleXor(row_total[r], other);
            [[unroll]] for (uint i = 0u; i < OWN; i++) {
                values[r * OWN + i] *= rescale;
                values[r * OWN + i] += subgroupShuffleXor(values[r * OWN + i], other);
            }
        }
        if (subgroup_lane == 0u) bests[gl_SubgroupID * ROWS + r] = vec2(row_largest[r], row_total[r]);
        [[unroll]] for (uint i = 0u; i < OWN; i++) {
            uint chunk = lane + i / 2u * KEY_LANES;
            if (subgroup_lane < KEY_LANES && chunk < CHUNKS) sums[gl_SubgroupID * VECTORS + r * ROW_VECTORS + vector_of(chunk, i % 2u)] = values[r * OWN + i];
        }
    }
    barrier();
    const uint stride = VECTORS + ROWS, unit_first = unit * push.parts * stride, partial_first = unit_first + part * stride;
    uint count = SUBGROUPS;
    if (active_parts > 1u) {
        for (uint item = me; item < VECTORS; item += WORKGROUP) {
            vec2 best_and_sum;
            partial[partial_first + item] = merged(item, SUBGROUPS, best_and_sum);
            if (item % ROW_VECTORS == 0u) partial[partial_first + VECTORS + item / ROW_VECTORS] = vec4(best_and_sum, 0.0, 0.0);
        }
        memoryBarrierBuffer();
        barrier();
        if (me == 0u) arrived = atomicAdd(arrivals[unit], 1u);
        barrier();
        if (arrived != active_parts - 1u) return;
        memoryBarrierBuffer();
        if (me == 0u) arrivals[unit] = 0u; // as the next kernel wants to find it
        gather_parts(unit_first, active_parts, me);
        barrier();
        count = SHARES;
    }
    for (uint item = me; item < VECTORS; item += WORKGROUP) {
        vec2 best_and_sum;
        vec4 result = merged(item, count, best_and_sum);
        sums[item] = result * inverse(best_and_sum.y); // no other invocation reads this one
    }
    barrier();
    for (result_row = 0u; result_row < rows; result_row++) {
        result_first = row_at[result_row];
        STORE_ROW(y, OUT_TYPE, result_first, push.D, value)
    }
}
