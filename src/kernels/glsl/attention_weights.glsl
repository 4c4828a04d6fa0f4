// attention_weights.glsl: the running maximum and sum of each own query row, as attention.comp has them, for kernels that walk
// over the keys with attention_tiles.glsl. A row's scores, and then its weights, are in `weights`.
#ifndef ATTENTION_WEIGHTS_GLSL
#define ATTENTION_WEIGHTS_GLSL
shared float running_sum[OWN], rescale[OWN];
shared int largest[OWN]; // running maximum, as a key
// What scores are taken relative to; of nothing but -infinity yet, whose weights are all 0: 0.
float base_of(int largest_key) {
    uint bits = bits_of_key(largest_key);
    return uintBitsToFloat(bits == 0xFF800000u ? 0u : bits);
}
#define RESCALE(row) rescale[row]
#define INVERSE(row) running_sum[row]

void begin_weights() {
    if (ME >= OWN) return;
    running_sum[ME] = 0.0;
    largest[ME] = key_of(0xFF800000u);
}
// With the scores of a tile: the maximum, and what it makes of the sums so far.
void take_maximum() {
    if (ME >= OWN) return;
    int best = largest[ME];
    for (uint at = 0u; at < OTHER / 4u; at++) {
        vec4 four = weights[ME * WEIGHT_STRIDE + at];
        for (uint e = 0u; e < 4u; e++) best = max(best, key_of(floatBitsToUint(four[e])));
    }
    rescale[ME] = exponential(add_rounded(uintBitsToFloat(bits_of_key(largest[ME])), -base_of(best)));
    largest[ME] = best;
}
// With the weights of a tile, key by key.
void add_weights() {
    if (ME >= OWN) return;
    float sum = 0.0;
    for (uint at = 0u; at < OTHER / 4u; at++) {
        vec4 four = weights[ME * WEIGHT_STRIDE + at];
        for (uint e = 0u; e < 4u; e++) sum = add_rounded(sum, four[e]);
    }
    running_sum[ME] = add_product(sum, running_sum[ME], rescale[ME]);
}
// A tile's scores times `scale`, -infinity where a row does not see the key.
#define SET_SCORES(scores, row_first, begin) \
    [[unroll]] for (uint r = 0u; r < ROWS; r++) \
        [[unroll]] for (uint c = 0u; c < SCORES; c++) { \
            bool seen = sees((row_first) + OWN_ROW(r), (begin) + OTHER_ROW(c)); \
            scores[r * SCORES + c] = seen ? mul_rounded(scores[r * SCORES + c], uintBitsToFloat(push.scale)) : uintBitsToFloat(0xFF800000u); \
            SET_WEIGHT(r, c, scores[r * SCORES + c]); \
        }
// Scores become weights.
#define SET_WEIGHTS(scores) \
    [[unroll]] for (uint r = 0u; r < ROWS; r++) \
        [[unroll]] for (uint c = 0u; c < SCORES; c++) { \
            scores[r * SCORES + c] = exponential(add_rounded(scores[r * SCORES + c], -base_of(largest[OWN_ROW(r)]))); \
            SET_WEIGHT(r, c, scores[r * SCORES + c]); \
        }
#endif
