#version 450
// attention_subgroup: attention in fast mode of few queries over many keys.
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "attention_keys.glsl"
