// attention_units.glsl: what attention on matrix units shares: a workgroup has ROWS query rows of a key head, 16 for each
// subgroup of 32, where two lanes have a row, and walks over the keys KEYS at a time, by tiles in shared memory. An includer
// defines the three, and INVOCATIONS.
#ifndef ATTENTION_UNITS_GLSL
#define ATTENTION_UNITS_GLSL
layout(constant_id = HDI_ATTENTION_TYPE) const uint TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_ATTENTION_KV_TYPE) const uint KV_TYPE = HDI_TYPE_F16;
layout(constant_id = HDI_ATTENTION_CAUSAL) const uint CAUSAL = 1u;
layout(constant_id = HDI_ATTENTION_PAST) const uint HAS_PAST = 0u;
layout(constant_id = HDI_ATTENTION_WIDTH) const uint WIDTH = 128u;
layout(constant_id = HDI_ATTENTION_WIDE) const uint WIDE = 1u;
layout(constant_id = HDI_ATTENTION_PAGE) const uint PAGE = 0u;
layout(constant_id = HDI_ATTENTION_FORM) const uint FORM = 0u;
layout(push_constant) uniform Push { uint B, T, S, Hq, Hkv, D, scale, N, window, cap, inverse_cap; } push;
layout(std430, binding = 0) readonly buffer Q { uint q[]; };
layout(std430, binding = 1) readonly buffer K { uint k[]; };
layout(std430, binding = 1) readonly buffer WideK { uvec4 wide_k[]; };
layout(std430, binding = 2) readonly buffer V { uint v[]; };
layout(std430, binding = 2) readonly buffer WideV { uvec4 wide_v[]; };
layout(std430, binding = 3) readonly buffer Past { int past[]; };
layout(std430, binding = 4) readonly buffer Pages { int pages[]; }; // or starts, [B,T]
layout(std430, binding = 5) readonly buffer Sinks { float sinks[]; };
layout(std430, binding = 6) buffer Y { uint y[]; };
#include "pages.glsl"
#include "blocks.glsl"

// A row of a tile is WIDTH halves in chunks of 8; one chunk more spreads rows over the memory's banks.
const uint UNIT = 16u, UNITS = WIDTH / UNIT, CHUNKS = WIDTH / 8u, STRIDE = CHUNKS + 1u;
const uint READS = (KEYS * CHUNKS + INVOCATIONS - 1u) / INVOCATIONS; // of an invocation, for a tile
const float LEAST = -3.40282347e38;
shared uvec4 tiles[2u * KEYS * STRIDE]; // keys, then values; at first the queries

#define SUMS coopmat<float, gl_ScopeSubgroup, UNIT, UNIT, gl_MatrixUseAccumulator>
#define FACTORS(use) coopmat<float16_t, gl_ScopeSubgroup, UNIT, UNIT, gl_MatrixUse##use>

// tanh, near enough for what is multiplied with a cap of scores.
float tanh_of(float x) { return 1.0 - 2.0 / (1.0 + exp2(2.88539008 * (x > 16.0 ? 16.0 : x))); }
const bool WINDOWED = (FORM & HDI_ATTENTION_WINDOWED) != 0u, CAPPED = (FORM & HDI_ATTENTION_CAPPED) != 0u;
const bool STARTS = (FORM & HDI_ATTENTION_STARTS) != 0u, CUT = WINDOWED || STARTS; // are there keys in front that a row does not see?
#define SEES(key) ((key) < seen_to && (!CUT || (key) >= seen_from))
uint batch, head, row_first, rows, heads;
uint own_row, side, row, own, own_token;     // the lane's row: in its subgroup's unit, in the workgroup, of the key head
uint seen_from, seen_to, start, most; // keys of the lane's row, and of the workgroup
float scale, cap;
uint first_of_row(uint r) {
    uint token = (row_first + r) / heads;
    return ((batch * push.T + token) * push.Hq + head * heads + row_first + r - token * heads) * push.D;
}
uint half_of(float x) { return f32_bits_to_f16(floatBitsToUint(x > 65504.0 ? 65504.0 : x < -65504.0 ? -65504.0 : x)); }

// A chunk of the head that begins at `first`, as it is read: 8 halves, zeros beyond the head, or a piece of a block; rows have
// even numbers of blocks.
#define READ_HALVES(words, wide, first, chunk, out_words) { \
    out_words = uvec4(0u); \
    if (HAS_BLOCKS(KV_TYPE)) { \
        if (8u * (chunk) < push.D) READ_PIECE(words, KV_TYPE, ((first) / 32u + (chunk) / 4u) * BLOCK_HALVES(KV_TYPE), (chunk) % 4u, out_words) \
    } else if (WIDE == 1u) { \
        if (8u * (chunk) < push.D) out_words = wide[((first) >> 3) + (chunk)]; \
    } else { \
        for (uint e = 0u; e < 8u; e++) { \
            uint d = 8u * (chunk) + e, index = (first) + d; \
            if (d < push.D) out_words[e >> 1] |= ((words[index >> 1] >> (16u * (index & 1u))) & 0xFFFFu) << (16u * (e & 1u)); \
        } \
    } }
// And as halves in a tile, in the order of pieces.
uvec4 halves_of(uvec4 read, uint chunk) {
    return HAS_BLOCKS(KV_TYPE) ? piece_halves(KV_TYPE, read, (head * push.D / 32u + chunk / 4u) & 1u) : read;
}

void read_queries(float sign) {
    for (uint item = gl_LocalInvocationIndex; item < ROWS * CHUNKS; item += INVOCATIONS) {
        uint r = item / CHUNKS, chunk = item - r * CHUNKS, first = first_of_row(r);
        uvec4 halves = uvec4(0u);
        [[unroll]] for (uint e = 0u; e < 8u; e++) {
            uint d = element_of_piece(KV_TYPE, 8u * chunk + e);
            if (r < rows && d < push.D) halves[e >> 1] |= half_of(LOAD_FLOAT(q, TYPE, first + d) * sign) << (16u * (e & 1u));
        }
        tiles[r * STRIDE + chunk] = halves;
    }
}

// The first key that the query sees.
uint first_seen(int before, uint token) {
    int first = WINDOWED ? before + int(token) + 1 - int(push.window) : 0;
    if (STARTS) first = max(first, pages[batch * push.T + token]);
    return uint(min(max(first, 0), int(push.S)));
}
// The least one of the workgroup's rows, in every lane; starts are in any order.
uint first_seen_of_all(int before) {
    const uint token = row_first / heads, last = (row_first + rows - 1u) / heads;
    if (!STARTS) return first_seen(before, token);
    uint least = push.S;
    for (uint t = token + gl_SubgroupInvocationID; t <= last; t += 32u) least = min(least, first_seen(before, t));
    return subgroupMin(least);
}
// Finds the rows of the workgroup; has it some?
bool begin_rows() {
    heads = push.Hq / push.Hkv;
    const uint row_count = push.T * heads, blocks = (row_count + ROWS - 1u) / ROWS, pairs = push.B * push.Hkv;
    if (group_number() >= pairs * blocks) return false;
    const uint block = blocks - 1u - group_number() / pairs, pair = group_number() % pairs; // those that see most come first
    batch = pair / push.Hkv;
    head = pair - batch * push.Hkv;
    row_first = block * ROWS;
    rows = min(ROWS, row_count - row_first);
    const int before = HAS_PAST == 1u ? min(max(past[batch], -int(push.T)), int(push.S)) : 0;
    own_row = gl_SubgroupInvocationID / 2u;
    side = gl_SubgroupInvocationID % 2u;
    row = gl_SubgroupID * UNIT + own_row;
    own = row_first + min(row, rows - 1u);
    own_token = own / heads;
    const int next = before + int(own_token) + 1, to = CAUSAL == 1u ? next : before + int(push.T);
    const int most_seen = before + int(CAUSAL == 1u ? (row_first + rows - 1u) / heads + 1u : push.T);
    seen_to = row < rows ? uint(min(max(to, 0), int(push.S))) : 0u;
    most = uint(min(max(most_seen, 0), int(push.S)));
    seen_from = first_seen(before, own_token);
    start = first_seen_of_all(before) / KEYS * KEYS;
    scale = uintBitsToFloat(push.scale) * (CAPPED ? uintBitsToFloat(push.inverse_cap) : 1.44269504); // powers of 2 from here on
    cap = uintBitsToFloat(push.cap) * 1.44269504;
    return true;
}
// The score of the sink of the lane's row.
float sink_of_row() { return max(sinks[head * heads + own - own_token * heads] * 1.44269504, LEAST); }
// 8 elements of the lane's row from d on, four and four.
void store_eight(uint d0, vec4 low_four, vec4 high_four, float inverse) {
    const uint first = first_of_row(min(row, rows - 1u));
    for (uint e = 0u; e < 8u && row < rows; e += 2u) {
        uint d = element_of_piece(KV_TYPE, d0 + e), at = first + d;
        vec4 four = e < 4u ? low_four : high_four;
        uint low = canonical_bits((e % 4u == 0u ? four.x : four.z) * inverse), high = canonical_bits((e % 4u == 0u ? four.y : four.w) * inverse);
        if (type_bytes(OUT_TYPE) == 2u && push.D % 2u == 0u) {
            if (d < push.D) y[at >> 1] = pack_element(low, OUT_TYPE) | pack_element(high, OUT_TYPE) << 16;
        } else {
            if (d < push.D) STORE(y, OUT_TYPE, at, low)
            if (d + 1u < push.D) STORE(y, OUT_TYPE, at + 1u, high)
        }
    }
}
#endif
