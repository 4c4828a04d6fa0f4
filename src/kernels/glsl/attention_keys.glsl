// attention_keys.glsl: softmax(scale * Q K^T) V for fast mode, made for few queries over many keys. A workgroup has
// ROWS query rows that share a key head and one part of the keys, so that each key and value is read once for all rows.
// KEY_LANES lanes share a key and 8 elements at a time of its head; each such group of lanes walks over keys of its own
// with running maxima and sums of its own, and nobody waits for anybody. A round's scores are dealt out among its lanes, so
// that each makes one weight or a few, and all get them. Then all are merged: by shuffles within a subgroup, in shared memory
// within the workgroup, and between parts by the workgroup that arrives last.
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
#ifdef HEADS
layout(constant_id = HDI_ATTENTION_PAIRING) const uint PAIRING = 0u;
layout(constant_id = HDI_ATTENTION_NORM) const uint NORM = 0u;
#define CACHE
#define RESULT 13
#define MORE , turns, eps
#else
#define CACHE readonly
#define RESULT 8
#define MORE
#endif
layout(push_constant) uniform Push { uint B, T, S, Hq, Hkv, D, scale, N, window, cap, inverse_cap, parts, part_keys MORE; } push;
layout(std430, binding = 0) readonly buffer Q { uint q[]; };
layout(std430, binding = 0) readonly buffer WideQ { uvec4 wide_q[]; };
layout(std430, binding = 1) CACHE buffer K { uint k[]; };
layout(std430, binding = 1) CACHE buffer WideK { uvec4 wide_k[]; };
layout(std430, binding = 2) CACHE buffer V { uint v[]; };
layout(std430, binding = 2) CACHE buffer WideV { uvec4 wide_v[]; };
layout(std430, binding = 3) readonly buffer Past { int past[]; };
layout(std430, binding = 4) readonly buffer Pages { int pages[]; };
layout(std430, binding = 5) readonly buffer Sinks { float sinks[]; };
layout(std430, binding = 6) coherent buffer Partial { vec4 partial[]; }; // ROWS * WIDTH sums and ROWS (maximum, sum, 0, 0) a part
layout(std430, binding = 7) coherent buffer Arrivals { uint arrivals[]; };
layout(std430, binding = RESULT) buffer Y { uint y[]; };
#ifdef HEADS
layout(std430, binding = 8) readonly buffer Turns { vec4 turns[]; }; // two pairs of sine and cosine
layout(std430, binding = 9) readonly buffer QueryWeight { vec4 query_weight[]; };
layout(std430, binding = 10) readonly buffer NewKeys { vec4 new_keys[]; };
layout(std430, binding = 11) readonly buffer KeyWeight { vec4 key_weight[]; };
layout(std430, binding = 12) readonly buffer NewValues { vec4 new_values[]; };
#include "heads.glsl"
// Does the key lie in a page of the pool?
bool has_page(uint batch, uint key) { return PAGE == 0u || uint(pages[batch * (push.S >> PAGE) + (key >> PAGE)]) < push.N; }
#endif
#include "pages.glsl"
#include "blocks.glsl"

const uint CHUNKS = WIDTH / 8u, OWN_CHUNKS = (CHUNKS + KEY_LANES - 1u) / KEY_LANES; // of a head, of a lane
const uint OWN = 2u * OWN_CHUNKS;                                                  // vectors of 4 elements
const uint SUBGROUPS = gl_WorkGroupSize.x / SUBGROUP, SLOTS = gl_WorkGroupSize.x / KEY_LANES;
#define IS_NARROW(type) (WIDE == 1u && type != HDI_TYPE_F32)                        // 16 bytes are 8 elements
#define WORDS_OF(type) (IS_NARROW(type) ? 1u : 2u)
const uint CHUNK_WORDS = HAS_BLOCKS(KV_TYPE) ? 1u : WORDS_OF(KV_TYPE);
const uint OWN_WORDS = OWN_CHUNKS * CHUNK_WORDS, ROW_VECTORS = WIDTH / 4u, VECTORS = ROWS * ROW_VECTORS;
const uint PARTS_AT_ONCE = 4u * KEYS, SHARES = VECTORS > gl_WorkGroupSize.x ? 1u : // when parts are merged
                                        gl_WorkGroupSize.x / VECTORS < SUBGROUPS ? gl_WorkGroupSize.x / VECTORS : SUBGROUPS;
const float LEAST = -3.40282347e38;
// Scores of a round, key by key of row after row, and up to the next power of two: so many of them are a lane's own.
const uint SCORES = ROWS * KEYS, PADDED = SCORES <= 1u ? 1u : SCORES <= 2u ? 2u : SCORES <= 4u ? 4u : SCORES <= 8u ? 8u : SCORES <= 16u ? 16u : 32u;
const uint OWN_SCORES = PADDED > KEY_LANES ? PADDED / KEY_LANES : 1u;
shared vec4 sums[SUBGROUPS * VECTORS]; // of each subgroup: values times weights
shared vec2 bests[SUBGROUPS * ROWS];   // maximum, and sum of the weights
shared uint arrived;
#ifdef HEADS
const uint TOKEN_WORDS = CHUNKS * CHUNK_WORDS;
shared vec4 turned_queries[VECTORS];
shared uvec4 token_words[2u * TOKEN_WORDS]; // the token's key and value, as they will lie in the cache
#endif

// 8 elements from `first + 8 * chunk` on, as they lie in memory, as codes and d, or as floats' bits; zeros beyond the head.
#define READ_CHUNK(words, wide, type, first, chunk, out_words, at) { \
    if (HAS_BLOCKS(type)) { \
        READ_CODES(words, type, (first) + 8u * (chunk), out_words[at]) \
    } else if (WIDE == 1u) { \
        [[unroll]] for (uint w = 0u; w < WORDS_OF(type); w++) out_words[at + w] = wide[((first) >> (IS_NARROW(type) ? 3 : 2)) + (chunk) * WORDS_OF(type) + w]; \
    } else { \
        for (uint e = 0u; e < 8u; e++) { \
            uint d = 8u * (chunk) + e; \
            out_words[at + e / 4u][e % 4u] = d < push.D ? LOAD(words, type, (first) + d) : 0u; \
        } \
    } }
vec4 unpacked(uvec2 halves, uint type) {
    if (type == HDI_TYPE_F16) return vec4(unpackHalf2x16(halves.x), unpackHalf2x16(halves.y));
    return uintBitsToFloat(uvec4(halves.x << 16, halves.x & 0xFFFF0000u, halves.y << 16, halves.y & 0xFFFF0000u));
}
#define FOUR(words, type, at, i) (HAS_BLOCKS(type) ? code_values(type, words[at + (i) / 2u][(i) % 2u], words[at + (i) / 2u].z) : IS_NARROW(type) ? unpacked((i) % 2u == 0u ? words[at + (i) / 2u].xy : words[at + (i) / 2u].zw, type) : uintBitsToFloat(words[at + (i)]))

// The lane's chunks of the slot's keys of the round from `base` on, where `page` is the one that they lie in. Beyond the last
// row of the cache that row is read, and not used. Rounds of more keys than a page has ask for each key's page.
const uint ROUND = SLOTS * KEYS;
const bool ONE_PAGE = ROUND <= (PAGE == 0u ? ROUND : 1u << PAGE);
// tanh, near enough for what is multiplied with a cap of scores.
float tanh_of(float x) { return 1.0 - 2.0 / (1.0 + exp2(2.88539008 * (x > 16.0 ? 16.0 : x))); }
const bool WINDOWED = (FORM & HDI_ATTENTION_WINDOWED) != 0u, CAPPED = (FORM & HDI_ATTENTION_CAPPED) != 0u;
#define IS_SEEN(key, from, to) ((key) < (to) && (!WINDOWED || (key) >= (from)))
#define SEES(r, key) IS_SEEN(key, seen_from[r], seen_to[r])
#define READ_ROUND(base, page) { \
    [[unroll]] for (uint u = 0u; u < KEYS; u++) { \
        uint key = min((base) + u * SLOTS + slot, push.S - 1u); \
        uint first = row_of(batch, ONE_PAGE ? page : page_of(batch, key), key) * kv_step + head * push.D; \
        next_first[u] = first; \
        [[unroll]] for (uint c = 0u; c < OWN_CHUNKS; c++) { \
            uint chunk = min(lane + c * KEY_LANES, CHUNKS - 1u), at = u * OWN_WORDS + c * CHUNK_WORDS; \
            READ_CHUNK(k, wide_k, KV_TYPE, first, chunk, next_key_words, at) \
            READ_CHUNK(v, wide_v, KV_TYPE, first, chunk, next_value_words, at) \
        } \
    } }

// Lanes halve what each of them adds up as long as there is something to halve. Which scores are a lane's own then: those from this
// one on. And the first of the lanes that have a score.
#define HALF_AT(other) (PADDED / (2u * (other)))
uint first_score(uint lane) {
    uint first = 0u;
    [[unroll]] for (uint other = 1u; other < KEY_LANES; other <<= 1) first += (lane & other) != 0u ? HALF_AT(other) : 0u;
    return first;
}
uint lane_of_score(uint score) {
    uint lane = 0u;
    [[unroll]] for (uint other = 1u; other < KEY_LANES; other <<= 1) lane += (score & HALF_AT(other)) != 0u ? other : 0u;
    return lane;
}
// What each lane has for its own scores becomes what the keys of their row have together.
#define OF_ALL_KEYS(x, together) \
    [[unroll]] for (uint apart = 1u; apart < KEYS; apart <<= 1) { \
        [[unroll]] for (uint i = 0u; i < OWN_SCORES; i++) { \
            if (apart >= OWN_SCORES) x[i] = together(x[i], subgroupShuffleXor(x[i], PADDED / (2u * apart))); \
            else if ((i & apart) == 0u) x[i] = x[i + apart] = together(x[i], x[i + apart]); \
        } \
    }
float sum_of(float x, float y) { return x + y; }
#define OF_SCORE(x, score) subgroupShuffle(x[(score) % OWN_SCORES], first_lane + lane_of_score(score))
#define OWN_SEES(i) IS_SEEN(base + own_key[i], own_from[i], own_to[i])

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

#ifdef HEADS
#define FOUR_AT(i) (2u * (lane + (i) / 2u * KEY_LANES) + (i) % 2u) // that the lane has of a head
// The lane's fours of a head, which its group of lanes has whole, normalised and turned. Fours that lie far apart are added up
// first, as in rope_subgroup.comp.
void turn_head(inout vec4 own[OWN], vec4 weight[OWN], vec4 low[OWN], vec4 high[OWN], uint lane) {
    if (NORM != 0u) {
        vec4 sums[OWN];
        [[unroll]] for (uint i = 0u; i < OWN; i++) sums[i] = mul_rounded(own[i], own[i]);
        [[unroll]] for (uint apart = OWN_CHUNKS; apart > 1u; apart >>= 1)
            [[unroll]] for (uint i = 0u; i < apart; i++) sums[i] = add_rounded(sums[i], sums[i + apart]);
        vec4 two[2];
        [[unroll]] for (uint i = 0u; i < 2u; i++) {
            two[i] = sums[i];
            for (uint apart = KEY_LANES / 2u; apart > 0u; apart >>= 1) two[i] = add_rounded(two[i], subgroupShuffleXor(two[i], apart));
        }
        float factor = norm_factor(add_rounded(two[0], two[1]), WIDTH, uintBitsToFloat(push.eps));
        [[unroll]] for (uint i = 0u; i < OWN; i++) {
            own[i] = mul_rounded(own[i], vec4(factor));
            if (NORM == 2u) own[i] = mul_rounded(own[i], weight[i]);
        }
    }
    vec4 other[OWN];
    [[unroll]] for (uint i = 0u; i < OWN; i++)
        other[i] = PAIRING == 1u ? own[i].yxwz : OWN_CHUNKS > 1u ? own[i ^ OWN_CHUNKS] : subgroupShuffleXor(own[i], KEY_LANES / 2u);
    [[unroll]] for (uint i = 0u; i < OWN; i++)
        own[i] = turned(own[i], other[i], low[i], high[i], PAIRING == 1u, lane + i / 2u * KEY_LANES < CHUNKS / 2u);
}
#endif

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
    uint kv_step = push.Hkv * push.D, begin = start + part * push.part_keys, page = page_of(batch, begin);
    uvec4 key_words[KEYS * OWN_WORDS], value_words[KEYS * OWN_WORDS], next_key_words[KEYS * OWN_WORDS], next_value_words[KEYS * OWN_WORDS];
    uint key_first[KEYS], next_first[KEYS]; // where the keys lie
    READ_ROUND(begin, page) // before it is known how many keys are seen: that takes as long to read
    page = page_of(batch, begin + ROUND); // each page's number is there a round before its keys are asked for

    uint seen_from[ROWS], seen_to[ROWS], row_at[ROWS], row_head[ROWS], most = 0u; // row_at: the row's first element in q and y
    [[unroll]] for (uint r = 0u; r < ROWS; r++) {
        uint row = min(row_first + r, row_count - 1u), token = row / heads;
        int next = before + int(token) + 1, to = CAUSAL == 1u ? next : before + int(push.T);
        seen_from[r] = WINDOWED ? uint(max(next - int(push.window), 0)) : 0u;
        seen_to[r] = uint(min(max(to, 0), int(push.S)));
        most = max(most, seen_to[r]);
        row_head[r] = head * heads + row - token * heads;
        row_at[r] = ((batch * push.T + token) * push.Hq + row_head[r]) * push.D;
    }
    vec4 query[ROWS * OWN];
#ifdef HEADS
    // Each group of lanes has one of the heads: a query's, the token's key, or its value, which does not turn.
    vec4 low[OWN], high[OWN];
    const uint token_first = (batch * push.Hkv + head) * ROW_VECTORS, turn_first = batch % push.turns * ROW_VECTORS;
    [[unroll]] for (uint i = 0u; i < OWN; i++) {
        uint turn = turn_first + (PAIRING == 1u ? FOUR_AT(i) : 2u * (FOUR_AT(i) % (ROW_VECTORS / 2u)));
        low[i] = turns[turn];
        high[i] = PAIRING == 1u ? low[i] : turns[turn + 1u];
    }
    for (uint r_first = 0u; r_first < ROWS + 2u; r_first += SLOTS) {
        uint r = r_first + slot, query_first = (batch * push.Hq + head * heads + min(row_first + r, row_count - 1u)) * ROW_VECTORS;
        vec4 own[OWN], weight[OWN], value[OWN];
        [[unroll]] for (uint i = 0u; i < OWN; i++) {
            uint four = FOUR_AT(i);
            own[i] = r < ROWS ? uintBitsToFloat(wide_q[query_first + four]) : new_keys[token_first + four];
            value[i] = new_values[token_first + four];
            weight[i] = NORM != 2u ? vec4(0.0) : r < ROWS ? query_weight[four] : key_weight[four];
        }
        turn_head(own, weight, low, high, lane);
        if (r < ROWS) {
            [[unroll]] for (uint i = 0u; i < OWN; i++) turned_queries[r * ROW_VECTORS + FOUR_AT(i)] = own[i];
        } else {
            [[unroll]] for (uint c = 0u; c < OWN_CHUNKS; c++) {
                uvec4 bits = floatBitsToUint(r == ROWS ? own[2u * c] : value[2u * c]), more = floatBitsToUint(r == ROWS ? own[2u * c + 1u] : value[2u * c + 1u]);
                uint at = (r == ROWS ? 0u : TOKEN_WORDS) + (lane + c * KEY_LANES) * CHUNK_WORDS;
                token_words[at] = IS_NARROW(KV_TYPE) ? uvec4(packed_four(bits, KV_TYPE), packed_four(more, KV_TYPE)) : bits;
                if (!IS_NARROW(KV_TYPE)) token_words[at + 1u] = more;
            }
        }
    }
#else
    [[unroll]] for (uint r = 0u; r < ROWS; r++)
        [[unroll]] for (uint c = 0u; c < OWN_CHUNKS; c++) {
            uvec4 query_words[2];
            READ_CHUNK(q, wide_q, TYPE, row_at[r], min(lane + c * KEY_LANES, CHUNKS - 1u), query_words, 0u)
            [[unroll]] for (uint i = 0u; i < 2u; i++) // lanes beyond the head have zeros
                query[r * OWN + 2u * c + i] = lane + c * KEY_LANES < CHUNKS ? FOUR(query_words, TYPE, 0u, i) : vec4(0.0);
        }
#endif
    uint end = min(begin + push.part_keys, most);
    uint active_parts = push.parts == 1u ? 1u : max((most - min(start, most) + push.part_keys - 1u) / push.part_keys, 1u);
    if (part >= active_parts) return;

    const float scale = uintBitsToFloat(push.scale) * (CAPPED ? uintBitsToFloat(push.inverse_cap) : 1.44269504); // powers of 2 from here on
    const float cap = uintBitsToFloat(push.cap) * 1.44269504;
#ifdef HEADS
    barrier();
    [[unroll]] for (uint r = 0u; r < ROWS; r++)
        [[unroll]] for (uint i = 0u; i < OWN; i++) query[r * OWN + i] = turned_queries[r * ROW_VECTORS + FOUR_AT(i)];
    const bool has_row = past[batch] >= 0 && past[batch] < int(push.S) && has_page(batch, uint(before));
    const uint new_row = has_row ? uint(before) : 0xFFFFFFFFu;
    const uint new_first = has_row ? row_of(batch, page_of(batch, new_row), new_row) * kv_step + head * WIDTH : 0xFFFFFFFFu;
    if (new_row - begin < push.part_keys && unit < pairs) {
        for (uint w = me; w < TOKEN_WORDS; w += WORKGROUP) {
            wide_k[(new_first >> (IS_NARROW(KV_TYPE) ? 3 : 2)) + w] = token_words[w];
            wide_v[(new_first >> (IS_NARROW(KV_TYPE) ? 3 : 2)) + w] = token_words[TOKEN_WORDS + w];
        }
    }
#endif
    vec4 values[ROWS * OWN];
    [[unroll]] for (uint r = 0u; r < ROWS; r++) {
        [[unroll]] for (uint i = 0u; i < OWN; i++) {
            query[r * OWN + i] *= scale;
            values[r * OWN + i] = vec4(0.0);
        }
        seen_to[r] = min(seen_to[r], end);
    }
    // Of the lane's own scores: their key in a round, the keys that their row sees, its running maximum, and their sum.
    uint own_key[OWN_SCORES], own_from[OWN_SCORES], own_to[OWN_SCORES];
    float own_largest[OWN_SCORES], own_total[OWN_SCORES];
    [[unroll]] for (uint i = 0u; i < OWN_SCORES; i++) {
        uint score = first_score(lane) + i, own_head = 0u;
        own_key[i] = score % KEYS * SLOTS + slot;
        own_from[i] = own_to[i] = 0u;
        [[unroll]] for (uint r = 0u; r < ROWS; r++) {
            bool own = score / KEYS == r;
            own_from[i] = own ? seen_from[r] : own_from[i];
            own_to[i] = own ? seen_to[r] : own_to[i];
            own_head = own ? row_head[r] : own_head;
        }
        own_largest[i] = LEAST;
        own_total[i] = 0.0;
        if ((FORM & HDI_ATTENTION_SINKS) != 0u && part == 0u && slot == 0u) { // one slot of all begins with the sink
            own_largest[i] = max(sinks[own_head] * 1.44269504, LEAST);
            own_total[i] = own_largest[i] == LEAST || score % KEYS != 0u ? 0.0 : 1.0;
        }
    }
    const uint first_lane = subgroup_lane - lane;

    for (uint base = begin; base < end; base += ROUND) {
        [[unroll]] for (uint w = 0u; w < KEYS * OWN_WORDS; w++) {
            key_words[w] = next_key_words[w];
            value_words[w] = next_value_words[w];
        }
        [[unroll]] for (uint u = 0u; u < KEYS; u++) key_first[u] = next_first[u];
        if (base + ROUND < end) {
            READ_ROUND(base + ROUND, page)
            page = page_of(batch, base + 2u * ROUND);
        }
        float scores[PADDED];
        [[unroll]] for (uint j = 0u; j < PADDED; j++) scores[j] = 0.0;
        [[unroll]] for (uint u = 0u; u < KEYS; u++) {
#ifdef HEADS
            if (key_first[u] == new_first) { // also where a page is named twice
                [[unroll]] for (uint w = 0u; w < OWN_WORDS; w++) {
                    uint at = (lane + w / CHUNK_WORDS * KEY_LANES) * CHUNK_WORDS + w % CHUNK_WORDS;
                    key_words[u * OWN_WORDS + w] = token_words[at];
                    value_words[u * OWN_WORDS + w] = token_words[TOKEN_WORDS + at];
                }
            }
#endif
            [[unroll]] for (uint i = 0u; i < OWN; i++) {
                vec4 four = FOUR(key_words, KV_TYPE, u * OWN_WORDS, i);
                if (CHUNKS % KEY_LANES != 0u && lane + i / 2u * KEY_LANES >= CHUNKS) four = vec4(0.0); // may be no number
                [[unroll]] for (uint r = 0u; r < ROWS; r++) scores[r * KEYS + u] += dot(query[r * OWN + i], four);
            }
        }
        [[unroll]] for (uint other = 1u; other < KEY_LANES; other <<= 1) {
            if (HALF_AT(other) == 0u) scores[0] += subgroupShuffleXor(scores[0], other);
            [[unroll]] for (uint j = 0u; j < HALF_AT(other); j++) {
                bool upper = (lane & other) != 0u;
                float low_one = scores[j], high_one = scores[j + HALF_AT(other)];
                scores[j] = (upper ? high_one : low_one) + subgroupShuffleXor(upper ? low_one : high_one, other);
            }
        }
        float best[OWN_SCORES], rescale[OWN_SCORES];
        [[unroll]] for (uint i = 0u; i < OWN_SCORES; i++) {
            if (CAPPED) scores[i] = cap * tanh_of(scores[i]);
            best[i] = OWN_SEES(i) ? max(own_largest[i], scores[i]) : own_largest[i];
        }
        OF_ALL_KEYS(best, max)
        [[unroll]] for (uint i = 0u; i < OWN_SCORES; i++) {
            rescale[i] = exp2(own_largest[i] - best[i]);
            own_largest[i] = best[i];
            own_total[i] *= rescale[i];
            scores[i] = exp2(scores[i] - best[i]);
            if (OWN_SEES(i)) own_total[i] += scores[i];
        }
        float factors[ROWS];
        bool grown = false;
        [[unroll]] for (uint r = 0u; r < ROWS; r++) {
            factors[r] = OF_SCORE(rescale, r * KEYS);
            grown = grown || factors[r] != 1.0;
        }
        if (grown) {
            [[unroll]] for (uint r = 0u; r < ROWS; r++)
                [[unroll]] for (uint i = 0u; i < OWN; i++) values[r * OWN + i] *= factors[r];
        }
        [[unroll]] for (uint u = 0u; u < KEYS; u++) {
            float weights[ROWS];
            [[unroll]] for (uint r = 0u; r < ROWS; r++) weights[r] = OF_SCORE(scores, r * KEYS + u);
            [[unroll]] for (uint i = 0u; i < OWN; i++) {
                vec4 four = FOUR(value_words, KV_TYPE, u * OWN_WORDS, i);
                [[unroll]] for (uint r = 0u; r < ROWS; r++)
                    if (SEES(r, base + u * SLOTS + slot)) values[r * OWN + i] += weights[r] * four;
            }
        }
    }
    OF_ALL_KEYS(own_total, sum_of)
    float largest[ROWS], total[ROWS];
    [[unroll]] for (uint r = 0u; r < ROWS; r++) {
        largest[r] = OF_SCORE(own_largest, r * KEYS);
        total[r] = OF_SCORE(own_total, r * KEYS);
    }

    // The subgroup's slots become one, then the subgroups do.
    [[unroll]] for (uint r = 0u; r < ROWS; r++) {
        for (uint other = KEY_LANES; other < SUBGROUP; other <<= 1) {
            float best = max(largest[r], subgroupShuffleXor(largest[r], other)), rescale = exp2(largest[r] - best);
            largest[r] = best;
            total[r] *= rescale;
            total[r] += subgroupShuffleXor(total[r], other);
            [[unroll]] for (uint i = 0u; i < OWN; i++) {
                values[r * OWN + i] *= rescale;
                values[r * OWN + i] += subgroupShuffleXor(values[r * OWN + i], other);
            }
        }
        if (subgroup_lane == 0u) bests[gl_SubgroupID * ROWS + r] = vec2(largest[r], total[r]);
        [[unroll]] for (uint i = 0u; i < OWN; i++) {
            uint chunk = lane + i / 2u * KEY_LANES;
            if (subgroup_lane < KEY_LANES && chunk < CHUNKS) sums[gl_SubgroupID * VECTORS + r * ROW_VECTORS + 2u * chunk + i % 2u] = values[r * OWN + i];
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
