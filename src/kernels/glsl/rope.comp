#version 450
// rope.comp: rotary position embedding, a workgroup for a head of a token; before it an rms_norm of the head, behind it a
// cast, or a place among the rows of a state, where the planner joins them. The angle is an integer fraction of a turn,
// so it is as right at position 10^9 as at 1; the same arithmetic serves fast and exact mode. A launch ahead may make the
// sines and cosines of all positions, for every head of every layer.
#include "rows.glsl"
#include "early.glsl"
layout(constant_id = HDI_ROPE_TYPE) const uint TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_ROPE_PAIRING) const uint PAIRING = 0u;
layout(constant_id = HDI_ROPE_NORM) const uint NORM = 0u;
layout(constant_id = HDI_ROPE_ROWS) const uint ROWS = 0u;
layout(constant_id = HDI_ROPE_PAGE) const uint PAGE = 0u;
layout(constant_id = HDI_ROPE_TURNS) const uint TURNS = HDI_ROPE_TURNS_OWN;
layout(push_constant) uniform Push { uint tokens, T, H, D, dims, magnitude, eps, rows_T, rows_S, rows_N; } push;
layout(std430, binding = 0) readonly buffer X { uint x[]; };
layout(std430, binding = 1) readonly buffer Positions { uint positions[]; };
layout(std430, binding = 1) readonly buffer Turns { vec2 turns[]; };
layout(std430, binding = 2) readonly buffer Frequencies { uint frequencies[]; };
layout(std430, binding = 3) readonly buffer Weight { uint weight[]; };
layout(std430, binding = 4) readonly buffer Place { int place[]; };
layout(std430, binding = 5) readonly buffer Pages { int pages[]; };
layout(std430, binding = 6) buffer Y { uint y[]; };

uint number, x_first, y_first; // of the position, of the head
float scale;

// Bits 32..63 of position * frequency, modulo one turn.
uint phase_of(uint position, uint pair) {
    uint high = frequencies[2u * pair], low = frequencies[2u * pair + 1u];
    return exact_mulhi(position, low) + position * high - ((position & 0x80000000u) != 0u ? low : 0u);
}
vec2 turn_of(uint pair) {
    if (TURNS == HDI_ROPE_TURNS_GIVEN) return turns[number * (push.dims / 2u) + pair];
    exact_pair turn = exact_sincos_turns(phase_of(positions[number], pair));
    float magnitude = uintBitsToFloat(push.magnitude);
    return vec2(mul_rounded(turn.x, magnitude), mul_rounded(turn.y, magnitude));
}
void make_turns() {
    uint pairs = push.dims / 2u, at = group_number() * WORKGROUP + ME;
    if (at >= push.T * pairs) return;
    number = at / pairs;
    vec2 turn = turn_of(at - number * pairs);
    y[2u * at] = floatBitsToUint(turn.x);
    y[2u * at + 1u] = floatBitsToUint(turn.y);
}
float head(uint d) {
    float own = LOAD_FLOAT(x, TYPE, x_first + d);
    if (NORM == 0u) return own;
    own = mul_rounded(own, scale);
    if (NORM == 2u) own = mul_rounded(own, LOAD_FLOAT(weight, TYPE, d));
    return uintBitsToFloat(round_element(canonical_bits(own), TYPE));
}
uint value(uint i) {
    uint d = i - y_first, half_dims = push.dims / 2u;
    float own = head(d);
    if (d >= push.dims) return canonical_bits(own);
    bool second = PAIRING == 1u ? (d & 1u) == 1u : d >= half_dims;
    uint step = PAIRING == 1u ? 1u : half_dims;
    float other = head(second ? d - step : d + step);
    vec2 turn = turn_of(PAIRING == 1u ? d >> 1 : second ? d - half_dims : d);
    return round_element(canonical_bits(add_rounded(mul_rounded(own, turn.y), mul_rounded(other, second ? turn.x : -turn.x))), TYPE);
}

// The factor of the head's rms_norm, in norm.comp's order: lanes that D does not reach would add zeros.
float norm_scale() {
    FOR_EACH_LANE(lane) {
        float sum = 0.0;
        for (uint d = lane; d < push.D; d += LANES) {
            float element = LOAD_FLOAT(x, TYPE, x_first + d);
            sum = add_product(sum, element, element);
        }
        lanes[lane] = floatBitsToUint(sum);
    }
    uint half_count = LANES / 2u;
    while (half_count > 1u && half_count >= push.D) half_count >>= 1;
    for (; half_count > 0u; half_count >>= 1) {
        barrier();
        for (uint l = ME; l < half_count; l += WORKGROUP)
            lanes[l] = floatBitsToUint(add_rounded(uintBitsToFloat(lanes[l]), uintBitsToFloat(lanes[l + half_count])));
    }
    barrier();
    float spread = add_rounded(divided(uintBitsToFloat(lanes[0]), count_float(push.D)), uintBitsToFloat(push.eps));
    return factor_of(spread);
}

void main() {
    wait_for_earlier();
    if (TURNS == HDI_ROPE_TURNS_MADE) {
        make_turns();
        return;
    }
    uint token = group_number() / push.H;
    if (token >= push.tokens) return;
    x_first = y_first = group_number() * push.D;
    if (ROWS == 1u) {
        uint batch = token / push.rows_T;
        int row = place[batch] + int(token - batch * push.rows_T);
        if (row < 0 || row >= int(push.rows_S)) return;
        uint to = batch * push.rows_S + uint(row);
        if (PAGE != 0u) {
            int page = pages[batch * (push.rows_S >> PAGE) + (uint(row) >> PAGE)];
            if (page < 0 || page >= int(push.rows_N)) return;
            to = (uint(page) << PAGE) + (uint(row) & ((1u << PAGE) - 1u));
        }
        y_first = (to * push.H + group_number() % push.H) * push.D;
    }
    number = token % push.T;
    if (NORM != 0u) scale = norm_scale();
    STORE_ROW(y, OUT_TYPE, y_first, push.D, value)
}
