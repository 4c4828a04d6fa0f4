#version 450
// top_k.comp: the k largest of a row, a workgroup for a row or a part of one. Elements are ordered by their keys, and where
// these are equal by their positions. The cut that leaves the k best is found digit by digit: how many elements have each
// digit is counted, among those that share all digits of the cut so far, until few enough are at or above the cut for
// each to count who comes before it. All is whole numbers in an order without equals: the result does not depend on who
// is faster.
#include "rows.glsl"
layout(constant_id = HDI_TOP_K_TYPE) const uint TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_TOP_K_STAGE) const uint STAGE = 0u;
layout(push_constant) uniform Push { uint rows, n, k, parts, part, shift; } push;
layout(std430, binding = 0) readonly buffer X { uint x[]; };
layout(std430, binding = 1) writeonly buffer Y { uint y[]; };

const bool GIVES_PAIRS = (STAGE & 1u) != 0u, READS_PAIRS = (STAGE & 2u) != 0u;
const uint NOWHERE = 0xFFFFFFFFu;
const uint LANE_DIGITS = HDI_TOP_K_DIGITS / LANES, BLOCK_LANES = 16u, BLOCKS = LANES / BLOCK_LANES;
shared uint digits[HDI_TOP_K_DIGITS]; // how many have each
shared uint blocks[BLOCKS];           // sums of lanes, which are sums of digits
shared uint keys[HDI_TOP_K_KEPT], places[HDI_TOP_K_KEPT], found;

uint first, count; // the part's elements

uint key_at(uint i) {
    uint at = first + min(i, count - 1u);
    if (READS_PAIRS) return x[2u * at];
    uint bits = LOAD(x, TYPE, at);
    int key = TYPE == HDI_TYPE_I32 ? int(bits) : key_of(bits);
    if (TYPE != HDI_TYPE_I32 && key == -1) key = 0; // -0
    return uint(key) ^ 0x80000000u;
}
// Four keys are on their way at once.
#define FOR_EACH_KEY(VISIT) \
    for (uint i = ME; i < count; i += 4u * WORKGROUP) { \
        uint i1 = i + WORKGROUP, i2 = i1 + WORKGROUP, i3 = i2 + WORKGROUP; \
        uint key = key_at(i), key1 = key_at(i1), key2 = key_at(i2), key3 = key_at(i3); \
        VISIT(key, i); \
        if (i1 < count) VISIT(key1, i1); \
        if (i2 < count) VISIT(key2, i2); \
        if (i3 < count) VISIT(key3, i3); \
    }

// Digits 0, 1, 2 are the key's bits 31..21, 20..10, 9..0; digit 3 is the position's, turned round.
uint settled_bits(uint digit) { return digit == 0u ? 0u : digit == 1u ? 0xFFE00000u : digit == 2u ? 0xFFFFFC00u : 0xFFFFFFFFu; }
uint low_bit(uint digit) { return digit == 0u ? 21u : digit == 1u ? 10u : 0u; }
void count_digit(uint digit, uint cut, uint key, uint place) {
    if (((key ^ cut) & settled_bits(digit)) != 0u) return;
    uint value = digit == 3u ? HDI_TOP_K_DIGITS - 1u - (place >> push.shift) : (key >> low_bit(digit)) & (digit == 2u ? 1023u : 2047u);
    atomicAdd(digits[value], 1u);
}
void keep(uint cut, uint last, uint key, uint place) {
    if (key < cut || (key == cut && place > last)) return;
    uint at = atomicAdd(found, 1u);
    if (at < HDI_TOP_K_KEPT) { keys[at] = key; places[at] = place; }
}
// How many of the kept ones come before it.
uint rank_of(uint key, uint place, uint kept) {
    uint rank = 0u;
    for (uint i = 0u; i < kept; i++) rank += keys[i] > key || (keys[i] == key && places[i] < place) ? 1u : 0u;
    return rank;
}
void give(uint at, uint key, uint index) {
    if (GIVES_PAIRS) { y[2u * at] = key; y[2u * at + 1u] = index; }
    else y[at] = index;
}

void top_k(uint group) {
    uint row = group / push.parts, begin = (group - row * push.parts) * push.part;
    first = row * push.n + begin;
    count = min(push.part, push.n - begin);
    if (ME == 0u) found = 0u;

    // What every invocation knows: the cut, which key `cut` up to position `last` is, how many elements are above what shares
    // its digits, and how many share them.
    uint cut = 0u, last = NOWHERE, above = 0u, within = count, wanted = min(push.k, count);
    // Each that is kept is compared with all others: another digit takes less than comparing many more than are wanted.
    uint few = min(2u * wanted + 64u, HDI_TOP_K_KEPT);
    for (uint digit = 0u; digit < 4u; digit++) { // once it is not open any more there is nothing left to do but to wait
        bool is_open = above + within > few;
        if (is_open) for (uint i = ME; i < HDI_TOP_K_DIGITS; i += WORKGROUP) digits[i] = 0u;
        barrier();
        #define COUNT(key, place) count_digit(digit, cut, key, place)
        if (is_open) FOR_EACH_KEY(COUNT)
        barrier();
        if (is_open) FOR_EACH_LANE(lane) {
            uint sum = 0u;
            for (uint i = 0u; i < LANE_DIGITS; i++) sum += digits[lane * LANE_DIGITS + i];
            lanes[lane] = sum;
        }
        barrier();
        if (is_open) for (uint block = ME; block < BLOCKS; block += WORKGROUP) {
            uint sum = 0u;
            for (uint i = 0u; i < BLOCK_LANES; i++) sum += lanes[block * BLOCK_LANES + i];
            blocks[block] = sum;
        }
        barrier();
        if (is_open) {
            uint left = wanted - above, block = BLOCKS - 1u;
            while (blocks[block] < left) left -= blocks[block--];
            uint lane = block * BLOCK_LANES + BLOCK_LANES - 1u;
            while (lanes[lane] < left) left -= lanes[lane--];
            uint value = lane * LANE_DIGITS + LANE_DIGITS - 1u;
            while (digits[value] < left) left -= digits[value--];
            above = wanted - left;
            within = digits[value];
            if (digit == 3u) last = ((HDI_TOP_K_DIGITS - value) << push.shift) - 1u;
            else cut |= value << low_bit(digit);
        }
        barrier();
    }
    #define KEEP(key, place) keep(cut, last, key, place)
    FOR_EACH_KEY(KEEP)
    barrier();
    uint kept = min(found, HDI_TOP_K_KEPT);
    for (uint i = ME; i < kept; i += WORKGROUP) {
        uint place = places[i], rank = rank_of(keys[i], place, kept);
        if (rank < push.k) give(group * push.k + rank, keys[i], READS_PAIRS ? x[2u * (first + place) + 1u] : begin + place);
    }
    for (uint i = kept + ME; i < push.k; i += WORKGROUP) give(group * push.k + i, 0u, NOWHERE);
}

void main() {
    uint group = group_number();
    if (group < push.rows * push.parts) top_k(group);
}
