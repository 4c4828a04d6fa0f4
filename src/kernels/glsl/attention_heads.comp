#version 450
// attention_heads: attention_subgroup for one query a sequence, which also turns the heads of queries and keys, as
// rope_subgroup does, and writes the token's own key and value to the cache.
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#define HEADS
#include "attention_keys.glsl"
