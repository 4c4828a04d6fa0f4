#version 450
// random.comp: random words, four neighbours an invocation, each a function of its place, the stream, the step and the seed.
#include "rows.glsl"
#include "../random.h"
layout(push_constant) uniform Push { uint count, stream; } push;
layout(std430, binding = 0) readonly buffer Key { uint key[]; };
layout(std430, binding = 1) buffer Y { uint y[]; };

void main() {
    uint four = group_number() * WORKGROUP + ME;
    if (four >= (push.count + 3u) / 4u) return;
    random_words drawn = random_draw(RANDOM_WORDS(four, push.stream, key[2], key[3]), key[0], key[1]);
    y[4u * four] = drawn.a;
    if (4u * four + 1u < push.count) y[4u * four + 1u] = drawn.b;
    if (4u * four + 2u < push.count) y[4u * four + 2u] = drawn.c;
    if (4u * four + 3u < push.count) y[4u * four + 3u] = drawn.d;
}
