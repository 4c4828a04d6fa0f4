#version 450
// matmul_codes_dot: the exact product in 8 bits by integer dot products (codes.glsl).
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "packed_dot.glsl"
#include "codes.glsl"
