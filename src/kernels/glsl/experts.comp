#version 450
// experts.comp: rows by the experts that they chose, ahead of a product whose batches are groups of them (abi.h). A workgroup
// for each expert, and one for nobody, counts the rows that come before its own and puts its own behind those. Its groups
// are from (rows before) / ROWS + expert on: that many are enough, whatever was chosen, and of what is left none has rows. So
// nobody needs to know how many groups other experts have.
#include "rows.glsl"
layout(push_constant) uniform Push { uint pairs, E, rows, groups; } push;
layout(std430, binding = 0) readonly buffer Chosen { uint chosen[]; };
layout(std430, binding = 1) buffer Groups { uint groups[]; };

shared uint owns[gl_WorkGroupSize.x], lesses[gl_WorkGroupSize.x]; // of the lanes up to this one: rows of the expert, and of those before it

void main() {
    const uint expert = group_number(), each = (push.pairs + WORKGROUP - 1u) / WORKGROUP;
    const uint from = min(ME * each, push.pairs), to = min(from + each, push.pairs);
    if (expert > push.E) return;
    uint own = 0u, less = 0u;
    for (uint pair = from; pair < to; pair++) {
        uint number = min(chosen[pair], push.E);
        own += uint(number == expert);
        less += uint(number < expert);
    }
    owns[ME] = own;
    lesses[ME] = less;
    for (uint d = 1u; d < WORKGROUP; d *= 2u) {
        barrier();
        uint more_own = ME >= d ? owns[ME - d] : 0u, more_less = ME >= d ? lesses[ME - d] : 0u;
        barrier();
        owns[ME] += more_own;
        lesses[ME] += more_less;
    }
    barrier();
    const uint first = lesses[WORKGROUP - 1u], last = first + owns[WORKGROUP - 1u];
    uint next = push.groups * HDI_GROUP_WORDS + first + owns[ME] - own;
    for (uint pair = from; pair < to; pair++)
        if (min(chosen[pair], push.E) == expert) groups[next++] = pair;
    const uint first_group = first / push.rows + expert, last_group = last / push.rows + expert;
    for (uint group = first_group + ME; group <= last_group; group += WORKGROUP) {
        uint begin = min(first + (group - first_group) * push.rows, last), at = group * HDI_GROUP_WORDS;
        groups[at + HDI_GROUP_EXPERT] = expert;
        groups[at + HDI_GROUP_FIRST] = begin;
        groups[at + HDI_GROUP_ROWS] = min(last - begin, push.rows);
        groups[at + HDI_GROUP_PACKED] = 0u;
    }
}
