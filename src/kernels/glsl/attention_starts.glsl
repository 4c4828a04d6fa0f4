// attention_starts.glsl: the first key that each query sees, of attention by tiles and of its gradient, where it is told: from 0 to S, in any
// order. Its includer has push, HEADS, CAUSAL, INVOCATIONS, batch and row_count.
#ifndef ATTENTION_STARTS_GLSL
#define ATTENTION_STARTS_GLSL
layout(constant_id = HDI_ATTENTION_TILES_STARTS) const uint STARTS = 0u;
layout(std430, binding = 4) readonly buffer Starts { int starts[]; };
shared uint seen_end, whole_end; // what the workgroup finds out

uint token_seen_from(uint token) { return uint(min(max(starts[batch * push.T + token], 0), int(push.S))); }
uint seen_from(uint row) { return STARTS == 1u && row < row_count ? token_seen_from(row / HEADS) : 0u; }
// Such a row has no gradient, and NaN for y.
bool sees_none(uint row) { return STARTS == 1u && seen_from(row) >= (CAUSAL == 1u ? row / HEADS + 1u : push.T); }
// The first key that any of the rows sees.
uint first_seen(uint row_first, uint rows_end) {
    uint first = 0u;
    if (STARTS == 1u) {
        if (ME == 0u) seen_end = push.S;
        barrier();
        for (uint row = row_first + ME; row < rows_end; row += INVOCATIONS) atomicMin(seen_end, seen_from(row));
        barrier();
        first = seen_end;
    }
    return first;
}
// Of rows from `row_first` on: where those end that see one of the keys, and where the first one is that does not see all of
// them for its start.
uvec2 rows_that_see(uint key_begin, uint key_end, uint row_first) {
    uvec2 ends = uvec2(row_count);
    if (STARTS == 1u) {
        if (ME == 0u) seen_end = 0u, whole_end = row_count;
        barrier();
        uint seen = 0u, whole = row_count;
        for (uint token = row_first / HEADS + ME; token < push.T; token += INVOCATIONS) {
            uint from = token_seen_from(token);
            if (from < key_end) seen = (token + 1u) * HEADS;
            if (from > key_begin) whole = min(whole, token * HEADS);
        }
        atomicMax(seen_end, seen);
        atomicMin(whole_end, whole);
        barrier();
        ends = uvec2(seen_end, whole_end);
    }
    return ends;
}
#endif
