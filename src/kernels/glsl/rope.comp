#version 450
// rope.comp: rotary position embedding, a workgroup for a token. The angle is an integer fraction of a turn, so it is
// as right at position 10^9 as at 1; the same arithmetic serves fast and exact mode.
#include "rows.glsl"
layout(constant_id = HDI_ROPE_TYPE) const uint TYPE = HDI_TYPE_F32;
layout(constant_id = HDI_ROPE_PAIRING) const uint PAIRING = 0u;
layout(push_constant) uniform Push { uint outer, T, H, D, dims, magnitude; } push;
layout(std430, binding = 0) readonly buffer X { uint x[]; };
layout(std430, binding = 1) readonly buffer Positions { uint positions[]; };
layout(std430, binding = 2) readonly buffer Frequencies { uint frequencies[]; };
layout(std430, binding = 3) buffer Y { uint y[]; };

uint position;

// Bits 32..63 of position * frequency, modulo one turn.
uint phase_of(uint pair) {
    uint high = frequencies[2u * pair], low = frequencies[2u * pair + 1u];
    return exact_mulhi(position, low) + position * high - ((position & 0x80000000u) != 0u ? low : 0u);
}
uint value(uint i) {
    uint d = i % push.D, half_dims = push.dims / 2u;
    float own = LOAD_FLOAT(x, TYPE, i);
    if (d >= push.dims) return canonical_bits(own);
    bool second = PAIRING == 1u ? (d & 1u) == 1u : d >= half_dims;
    uint step = PAIRING == 1u ? 1u : half_dims;
    float other = LOAD_FLOAT(x, TYPE, second ? i - step : i + step);
    exact_pair turn = exact_sincos_turns(phase_of(PAIRING == 1u ? d >> 1 : second ? d - half_dims : d));
    float magnitude = uintBitsToFloat(push.magnitude);
    float s = mul_rounded(turn.x, magnitude), c = mul_rounded(turn.y, magnitude);
    return canonical_bits(add_rounded(mul_rounded(own, c), mul_rounded(other, second ? s : -s)));
}

void main() {
    uint token = group_number();
    if (token >= push.outer * push.T) return;
    position = positions[token % push.T];
    uint count = push.H * push.D;
    STORE_ROW(y, OUT_TYPE, token * count, count, value)
}
