#version 450
// matmul_matrix_bf16: products on matrix units of bf16, whose small numbers f16 does not hold.
// target: vulkan1.3
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_bfloat16 : require
#define FACTOR bfloat16_t
#define STAYS true
#include "matmul_matrix.glsl"
