// heads.glsl: norm and turn of four elements of a head, in the orders of rope.comp, whose bits they have.
vec4 times(vec4 a, vec4 b) { precise vec4 product = a * b; return product; }
vec4 canonical(vec4 v) {
    return EXACT == 1u ? vec4(exact_canonical(v.x), exact_canonical(v.y), exact_canonical(v.z), exact_canonical(v.w)) : v;
}
// The factor of the head's rms_norm, of D elements whose squares' sums are given element by element of the fours.
float norm_factor(vec4 sums, uint D, float eps) {
    float sum = add_rounded(add_rounded(sums.x, sums.z), add_rounded(sums.y, sums.w));
    float spread = add_rounded(divided(sum, count_float(D)), eps);
    return EXACT == 1u ? exact_rsqrt(spread) : inversesqrt(spread);
}
// Four elements turned, where `other` are those that they are pairs with and `low` and `high` two pairs of sine and cosine
// each: of neighbours `low` alone. `first`: of pairs of halves these are in the first half.
vec4 turned(vec4 own, vec4 other, vec4 low, vec4 high, bool neighbours, bool first) {
    vec4 sines = neighbours ? vec4(-low.x, low.x, -low.z, low.z) : vec4(low.xz, high.xz);
    vec4 cosines = neighbours ? vec4(low.yy, low.ww) : vec4(low.yw, high.yw);
    if (!neighbours && first) sines = -sines;
    return canonical(add_rounded(times(own, cosines), times(other, sines)));
}
