#version 450
// matmul_matrix: products on matrix units of f16, and of what becomes f16.
// target: vulkan1.3
#extension GL_GOOGLE_include_directive : require
#define FACTOR float16_t
#define STAYS false
#include "matmul_matrix.glsl"
