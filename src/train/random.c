/* random.c: numbers of a distribution, made of hd_random's words by operations whose exact forms are the same
 * everywhere. */
#include <heddle_train.h>

/* The number as an i32 [1]: there is no operation without an operand, so it comes from the key, times zero. */
static hd_value whole(hd_program *p, hd_value key, float number) {
    const hd_value first = hd_slice(p, key, (const int64_t[]){ 0 }, (const int64_t[]){ 1 }, 1);
    return hd_cast(p, hd_scale(p, hd_cast(p, first, HD_F32), 0, number), HD_I32);
}

hd_value hd_random_uniform(hd_program *p, hd_value key, uint32_t stream, hd_shape shape) {
    const hd_value upper = hd_shift_right_logical(p, hd_random(p, key, stream, shape), whole(p, key, 8));
    return hd_reshape(p, hd_scale(p, hd_cast(p, upper, HD_F32), 0x1p-24f, 0), shape);
}

hd_value hd_random_normal(hd_program *p, hd_value key, uint32_t stream, hd_shape shape) {
    const int64_t n = (int64_t)hd_shape_elements(shape);
    const hd_value both = hd_random_uniform(p, key, stream, HD_SHAPE(2, n));
    const hd_value u = hd_slice(p, both, (const int64_t[]){ 0, 0 }, (const int64_t[]){ 1, n }, 2);
    const hd_value w = hd_slice(p, both, (const int64_t[]){ 1, 0 }, (const int64_t[]){ 2, n }, 2);
    const hd_value radius = hd_sqrt(p, hd_scale(p, hd_log(p, hd_scale(p, u, -1, 1)), -2, 0));
    return hd_reshape(p, hd_mul(p, radius, hd_cos(p, hd_scale(p, w, 6.28318531f, 0))), shape);
}

hd_value hd_dropout(hd_program *p, hd_value x, hd_value key, uint32_t stream, float rate) {
    hd_shape shape = { 0 };
    hd_dtype dtype;
    if (rate <= 0 || x == 0 || hd_value_describe(p, x, &dtype, &shape) != HD_OK) return x;
    const hd_value u = hd_random_uniform(p, key, stream, shape);
    const hd_value zero = hd_scale(p, hd_cast(p, whole(p, key, 0), HD_F32), 1, 0);
    const hd_value lost = dtype == HD_F32 ? zero : hd_cast(p, zero, dtype);
    return hd_where(p, hd_less(p, u, hd_scale(p, zero, 1, rate)), lost, hd_scale(p, x, 1 / (1 - rate), 0));
}
