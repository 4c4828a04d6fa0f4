#version 450
// matmul_codes: the exact product in 8 bits (codes.glsl) with nothing that a device might lack.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
int dot_four(uint x, uint y) {
    int sum = 0;
    for (int i = 0; i < 4; i++) sum += bitfieldExtract(int(x), 8 * i, 8) * bitfieldExtract(int(y), 8 * i, 8);
    return sum;
}
#include "codes.glsl"
