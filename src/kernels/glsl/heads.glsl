// heads.glsl: norm and turn of four elements of a head, in the orders of rope.comp, whose bits they have.
vec4 canonical(vec4 v) {
    return EXACT == 1u ? vec4(exact_canonical(v.x), exact_canonical(v.y), exact_canonical(v.z), exact_canonical(v.w)) : v;
}
// The factor of the head's rms_norm, of D elements whose squares' sums are given element by element of the fours.
float norm_factor(vec4 sums, uint D, float eps) {
    return factor_of(add_rounded(divided(sum_of_four(sums), count_float(D)), eps));
}
// Four elements turned, where `other` are those that they are pairs with and `low` and `high` two pairs of sine and cosine
// each: of neighbours `low` alone. `first`: of pairs of halves these are in the first half.
vec4 turned(vec4 own, vec4 other, vec4 low, vec4 high, bool neighbours, bool first) {
    vec4 sines = neighbours ? vec4(-low.x, low.x, -low.z, low.z) : vec4(low.xz, high.xz);
    vec4 cosines = neighbours ? vec4(low.yy, low.ww) : vec4(low.yw, high.yw);
    if (!neighbours && first) sines = -sines;
    return canonical(add_rounded(mul_rounded(own, cosines), mul_rounded(other, sines)));
}
