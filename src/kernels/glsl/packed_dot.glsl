// packed_dot.glsl: integer dot products of 4 x 8 bits, where a device has them.
#ifndef PACKED_DOT_GLSL
#define PACKED_DOT_GLSL
#extension GL_EXT_spirv_intrinsics : require
// OpSDotKHR of the packed vectors of 4 x 8 bits that format 0 names; glslang has no name of its own for it.
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019], id = 4450)
int packed_dot(uint x, uint y, spirv_literal int format);
int dot_four(uint x, uint y) { return packed_dot(x, y, 0); }
#endif
