/* lower_samplers.c: which texels a sample is made of, and how much each counts; and of a cube, on which face they lie.
 * All of it is + and * that are rounded one by one, so that every device gives the same bits. */
#include "spirv/lower_images.h"

/* A texel along an axis, by a number that may lie outside. Remainders of negative numbers are undefined in Vulkan: of
 * those, the images that lie before this one are counted backwards from its end. */
static uint32_t wrap(hdi_lowering *l, uint32_t at, uint32_t length, hd_wrap how) {
    const uint32_t type = signed_type(l), uint = hdi_lower_uint(l), zero = hdi_lower_number(l, type, 0);
    const uint32_t last = HDI_LOWER_MAKE(l, SpvOpISub, uint, length, number(l, 1));
    if (how == HD_WRAP_CLAMP)
        return as_type(
            l, HDI_LOWER_MAKE(l, SpvOpExtInst, type, l->glsl, GLSL_SCLAMP, at, zero, as_type(l, last, uint, type)),
            type, uint);
    const uint32_t before = HDI_LOWER_MAKE(l, SpvOpSLessThan, bool_type(l), at, zero),
                   plain = as_type(l, at, type, uint);
    const uint32_t steps =
        HDI_LOWER_MAKE(l, SpvOpSelect, uint, before, HDI_LOWER_MAKE(l, SpvOpNot, uint, plain), plain);
    const uint32_t rest = HDI_LOWER_MAKE(l, SpvOpUMod, uint, steps, length);
    return HDI_LOWER_MAKE(l, SpvOpSelect, uint, before, HDI_LOWER_MAKE(l, SpvOpISub, uint, last, rest), rest);
}

/* The texels on both sides of a coordinate, and how much of the second counts; of the nearest, one. */
static void place_along(hdi_lowering *l, uint32_t coordinate, uint32_t length, const hd_image_desc *sampler,
                        uint32_t step, uint32_t out_texels[2], uint32_t *out_weight) {
    const uint32_t real_type = hdi_lower_float(l), type = signed_type(l);
    uint32_t at = exact(l, SpvOpFMul, coordinate, HDI_LOWER_MAKE(l, SpvOpConvertUToF, real_type, length));
    if (sampler->filter == HD_FILTER_LINEAR) at = exact(l, SpvOpFSub, at, real(l, HALF));
    const uint32_t whole = glsl(l, GLSL_FLOOR, real_type, at);
    uint32_t first = HDI_LOWER_MAKE(l, SpvOpConvertFToS, type, whole);
    if (step) first = HDI_LOWER_MAKE(l, SpvOpIAdd, type, first, step);
    out_texels[0] = out_texels[1] = wrap(l, first, length, sampler->wrap);
    *out_weight = 0;
    if (sampler->filter != HD_FILTER_LINEAR) return;
    const uint32_t second = HDI_LOWER_MAKE(l, SpvOpIAdd, type, first, hdi_lower_number(l, type, 1));
    out_texels[1] = wrap(l, second, length, sampler->wrap);
    *out_weight = exact(l, SpvOpFSub, at, whole);
}

static uint32_t mix(hdi_lowering *l, uint32_t a, uint32_t b, uint32_t weight) {
    const uint32_t rest = exact(l, SpvOpFSub, real(l, ONE), weight);
    return exact(l, SpvOpFAdd, exact(l, SpvOpFMul, a, rest), exact(l, SpvOpFMul, b, weight));
}

/* The texels that a sample is made of: by the bits of a corner's number, the second along an axis or the first; and
 * how much the second ones count, axis by axis; 0: there is one along it. `missing`: where a cube's three faces meet
 * there is none; 0: there always is one. */
typedef struct taken {
    uint32_t index[1 << MOST_AXES], missing[1 << MOST_AXES], weights[MOST_AXES], corners;
} taken;

/* The number of a layer, to the nearest. */
static uint32_t layer_at(hdi_lowering *l, uint32_t at, uint32_t count) {
    const uint32_t whole = glsl(l, GLSL_FLOOR, hdi_lower_float(l), exact(l, SpvOpFAdd, at, real(l, HALF)));
    return wrap(l, HDI_LOWER_MAKE(l, SpvOpConvertFToS, signed_type(l), whole), count, HD_WRAP_CLAMP);
}

/* `steps`: by how many texels it goes on along each axis; 0: by none. */
static void take(hdi_lowering *l, const hdi_lower_image *image, const hd_image_desc *sampler,
                 const uint32_t *coordinates, const uint32_t *steps, taken *out) {
    uint32_t lengths[MOST_AXES] = { 0 }, texels[MOST_AXES][2] = { { 0 } };
    *out = (taken){ .corners = 1 };
    for (uint32_t axis = 0; axis < image->axes; axis++) {
        lengths[axis] = length_along(l, image, axis);
        if (axis >= image->axes - image->layers)
            texels[axis][0] = layer_at(l, coordinates[axis], lengths[axis]);
        else
            place_along(l, coordinates[axis], lengths[axis], sampler, steps[axis], texels[axis], &out->weights[axis]);
        if (out->weights[axis]) out->corners *= 2;
    }
    for (uint32_t corner = 0; corner < out->corners; corner++) {
        uint32_t at[MOST_AXES] = { 0 };
        for (uint32_t axis = 0; axis < image->axes; axis++)
            at[axis] = texels[axis][out->weights[axis] ? corner >> axis & 1 : 0];
        out->index[corner] = hdi_texel_index(l, image, at, lengths);
    }
}

/* ---- cubes ---- */

static uint32_t chosen(hdi_lowering *l, uint32_t type, uint32_t condition, uint32_t yes, uint32_t no) {
    return HDI_LOWER_MAKE(l, SpvOpSelect, type, condition, yes, no);
}

/* A direction as a face, the coordinates on it from -by to by, and by: of floats, or of integers. */
typedef struct on_face {
    uint32_t face, s, t, by;
} on_face;
static on_face face_of(hdi_lowering *l, bool floats, const uint32_t *v) {
    const uint32_t type = floats ? hdi_lower_float(l) : signed_type(l), uint = hdi_lower_uint(l), truth = bool_type(l);
    const uint32_t zero = hdi_lower_number(l, type, 0),
                   least = floats ? SpvOpFOrdGreaterThanEqual : SpvOpSGreaterThanEqual;
    uint32_t size[3], back[3], minus[3];
    for (uint32_t i = 0; i < 3; i++) {
        size[i] = glsl(l, floats ? GLSL_FABS : GLSL_SABS, type, v[i]);
        back[i] = HDI_LOWER_MAKE(l, floats ? SpvOpFOrdLessThan : SpvOpSLessThan, truth, v[i], zero);
        minus[i] = HDI_LOWER_MAKE(l, floats ? SpvOpFNegate : SpvOpSNegate, type, v[i]);
    }
    const uint32_t y_first = HDI_LOWER_MAKE(l, least, truth, size[1], size[0]);
    const uint32_t z_first =
        HDI_LOWER_MAKE(l, SpvOpLogicalAnd, truth, HDI_LOWER_MAKE(l, least, truth, size[2], size[0]),
                       HDI_LOWER_MAKE(l, least, truth, size[2], size[1]));
    uint32_t faces[3];
    for (uint32_t i = 0; i < 3; i++) faces[i] = chosen(l, uint, back[i], number(l, 2 * i + 1), number(l, 2 * i));
    const uint32_t s[] = { chosen(l, type, back[0], v[2], minus[2]), v[0], chosen(l, type, back[2], minus[0], v[0]) };
    const uint32_t t[] = { minus[1], chosen(l, type, back[1], minus[2], v[2]), minus[1] };
    return (on_face){
        chosen(l, uint, z_first, faces[2], chosen(l, uint, y_first, faces[1], faces[0])),
        chosen(l, type, z_first, s[2], chosen(l, type, y_first, s[1], s[0])),
        chosen(l, type, z_first, t[2], chosen(l, type, y_first, t[1], t[0])),
        chosen(l, type, z_first, size[2], chosen(l, type, y_first, size[1], size[0])),
    };
}

/* 1 by a float of some size, in Newton's steps from a guess by its bits: divisions differ from device to device. */
static uint32_t inverse(hdi_lowering *l, uint32_t x) {
    enum { STEPS = 4 };
    const uint32_t uint = hdi_lower_uint(l), type = hdi_lower_float(l), guess = number(l, 0x7EF311C7u);
    uint32_t y = HDI_LOWER_MAKE(l, SpvOpBitcast, type,
                                HDI_LOWER_MAKE(l, SpvOpISub, uint, guess, HDI_LOWER_MAKE(l, SpvOpBitcast, uint, x)));
    for (int step = 0; step < STEPS; step++)
        y = exact(l, SpvOpFMul, y, exact(l, SpvOpFSub, real(l, TWO), exact(l, SpvOpFMul, x, y)));
    return y;
}

/* The texel on a face, or beside it by one: then the one on the face that lies there. Twice the coordinates from a
 * face's middle are integers, of which that of the other face is the largest. Where both lie outside, at a corner,
 * three faces meet and there is no such texel: the second coordinate is taken from the edge. */
static uint32_t texel_on(hdi_lowering *l, const uint32_t *lengths, uint32_t n, uint32_t cube, uint32_t face,
                         uint32_t i, uint32_t j) {
    const uint32_t type = signed_type(l), uint = hdi_lower_uint(l), truth = bool_type(l);
    const uint32_t zero = hdi_lower_number(l, type, 0), one = hdi_lower_number(l, type, 1);
    const uint32_t last = HDI_LOWER_MAKE(l, SpvOpISub, type, n, one),
                   back = HDI_LOWER_MAKE(l, SpvOpSNegate, type, last);
    const uint32_t outside =
        HDI_LOWER_MAKE(l, SpvOpUGreaterThan, truth, as_type(l, i, type, uint), as_type(l, last, type, uint));
    const uint32_t edge = HDI_LOWER_MAKE(l, SpvOpExtInst, type, l->glsl, GLSL_SCLAMP, j, zero, last);
    j = chosen(l, type, outside, edge, j);
    const uint32_t s = HDI_LOWER_MAKE(l, SpvOpISub, type, HDI_LOWER_MAKE(l, SpvOpIAdd, type, i, i), last),
                   t = HDI_LOWER_MAKE(l, SpvOpISub, type, HDI_LOWER_MAKE(l, SpvOpIAdd, type, j, j), last);
    const uint32_t less_s = HDI_LOWER_MAKE(l, SpvOpSNegate, type, s),
                   less_t = HDI_LOWER_MAKE(l, SpvOpSNegate, type, t),
                   less_n = HDI_LOWER_MAKE(l, SpvOpSNegate, type, n);
    const uint32_t by_face[3][6] = { { n, less_n, s, s, s, less_s },
                                     { less_t, less_t, n, less_n, less_t, less_t },
                                     { less_s, s, t, less_t, n, less_n } };
    uint32_t v[3];
    for (uint32_t axis = 0; axis < 3; axis++) {
        v[axis] = by_face[axis][5];
        for (uint32_t f = 5; f-- > 0;)
            v[axis] =
                chosen(l, type, HDI_LOWER_MAKE(l, SpvOpIEqual, truth, face, number(l, f)), by_face[axis][f], v[axis]);
    }
    const on_face to = face_of(l, false, v);
    const uint32_t coordinates[] = { to.s, to.t };
    uint32_t at[MOST_AXES];
    for (uint32_t axis = 0; axis < 2; axis++) {
        const uint32_t within =
            HDI_LOWER_MAKE(l, SpvOpExtInst, type, l->glsl, GLSL_SCLAMP, coordinates[axis], back, last);
        at[axis] =
            HDI_LOWER_MAKE(l, SpvOpShiftRightLogical, uint,
                           as_type(l, HDI_LOWER_MAKE(l, SpvOpIAdd, type, within, last), type, uint), number(l, 1));
    }
    const uint32_t first = HDI_LOWER_MAKE(l, SpvOpIMul, uint, cube, number(l, 6));
    at[2] =
        HDI_LOWER_MAKE(l, SpvOpExtInst, uint, l->glsl, GLSL_UMIN, HDI_LOWER_MAKE(l, SpvOpIAdd, uint, first, to.face),
                       HDI_LOWER_MAKE(l, SpvOpISub, uint, lengths[2], number(l, 1)));
    return hdi_texel_index(l, &(hdi_lower_image){ .axes = 3 }, at, lengths);
}

/* Do both lie outside of a face, whose last texel along an axis is `last`? */
static uint32_t is_missing(hdi_lowering *l, uint32_t last, uint32_t i, uint32_t j) {
    const uint32_t type = signed_type(l), uint = hdi_lower_uint(l), truth = bool_type(l), at[] = { i, j };
    uint32_t outside[2];
    for (uint32_t axis = 0; axis < 2; axis++)
        outside[axis] =
            HDI_LOWER_MAKE(l, SpvOpUGreaterThan, truth, as_type(l, at[axis], type, uint), as_type(l, last, type, uint));
    return HDI_LOWER_MAKE(l, SpvOpLogicalAnd, truth, outside[0], outside[1]);
}

/* The texels around a direction; faces are squares of as many texels as fit into both lengths. */
static void take_cube(hdi_lowering *l, const hdi_lower_image *image, bool linear, const uint32_t *parts, taken *out) {
    const uint32_t real_type = hdi_lower_float(l), type = signed_type(l), uint = hdi_lower_uint(l);
    uint32_t lengths[MOST_AXES], texels[2], cube = number(l, 0);
    for (uint32_t axis = 0; axis < image->axes; axis++) lengths[axis] = length_along(l, image, axis);
    const uint32_t side = HDI_LOWER_MAKE(l, SpvOpExtInst, uint, l->glsl, GLSL_UMIN, lengths[0], lengths[1]);
    const uint32_t n = as_type(l, side, uint, type), n_real = HDI_LOWER_MAKE(l, SpvOpConvertUToF, real_type, side);
    if (image->cubes) cube = layer_at(l, parts[3], HDI_LOWER_MAKE(l, SpvOpUDiv, uint, lengths[2], number(l, 6)));
    const on_face from = face_of(l, true, parts);
    const uint32_t by = inverse(l, from.by), coordinates[] = { from.s, from.t };
    const uint32_t one = hdi_lower_number(l, type, 1), last = HDI_LOWER_MAKE(l, SpvOpISub, type, n, one);
    *out = (taken){ .corners = linear ? 4 : 1 };
    for (uint32_t axis = 0; axis < 2; axis++) {
        const uint32_t middle = exact(l, SpvOpFMul, exact(l, SpvOpFMul, coordinates[axis], by), real(l, HALF));
        uint32_t at = exact(l, SpvOpFMul, exact(l, SpvOpFAdd, middle, real(l, HALF)), n_real);
        if (linear) at = exact(l, SpvOpFSub, at, real(l, HALF));
        const uint32_t whole = glsl(l, GLSL_FLOOR, real_type, at);
        const uint32_t zero = hdi_lower_number(l, type, linear ? UINT32_MAX : 0); /* one beside the face at most */
        texels[axis] = HDI_LOWER_MAKE(l, SpvOpExtInst, type, l->glsl, GLSL_SCLAMP,
                                      HDI_LOWER_MAKE(l, SpvOpConvertFToS, type, whole), zero, last);
        if (linear) out->weights[axis] = exact(l, SpvOpFSub, at, whole);
    }
    for (uint32_t corner = 0; corner < out->corners; corner++) {
        const uint32_t i = corner & 1 ? HDI_LOWER_MAKE(l, SpvOpIAdd, type, texels[0], one) : texels[0],
                       j = corner & 2 ? HDI_LOWER_MAKE(l, SpvOpIAdd, type, texels[1], one) : texels[1];
        out->index[corner] = texel_on(l, lengths, n, cube, from.face, i, j);
        if (linear) out->missing[corner] = is_missing(l, last, i, j);
    }
}

/* ---- samples ---- */

/* The texels at these coordinates, which are one value; `moved`: its steps, where they are no constants. */
static void take_at(hdi_lowering *l, const hdi_lower_image *image, const hd_image_desc *sampler,
                    const hdi_lower_made *key, uint32_t coordinates, uint32_t moved, taken *out) {
    uint32_t count, moved_count, parts[MOST_AXES + 1] = { 0 }, steps[MOST_AXES] = { 0 };
    component_of(l, key->coordinates, &count);
    for (uint32_t i = 0; i < HDI_MIN(count, (uint32_t)MOST_AXES + 1); i++)
        parts[i] = component(l, hdi_lower_float(l), count, coordinates, i);
    const uint32_t part = moved ? component_of(l, key->moved, &moved_count) : 0;
    for (uint32_t axis = 0; axis < image->axes - image->layers && !image->cube; axis++)
        steps[axis] = part ? as_type(l, component(l, part, moved_count, moved, axis), part, hdi_lower_uint(l))
                           : hdi_image_step(l, key->offset, axis);
    if (!image->cube)
        take(l, image, sampler, parts, steps, out);
    else
        take_cube(l, image, sampler->filter == HD_FILTER_LINEAR, parts, out);
}

/* What texels are compared with: of images of steps from 0 to 1, within these. */
static uint32_t reference_for(hdi_lowering *l, const hdi_lower_image *image, uint32_t given) {
    const bool steps = image->dtype == HD_U8;
    return !steps ? given
                  : HDI_LOWER_MAKE(l, SpvOpExtInst, hdi_lower_float(l), l->glsl, GLSL_NCLAMP, given, real(l, 0),
                                   real(l, ONE));
}

/* 1 where the reference is so to the texel, else 0. */
static uint32_t compared(hdi_lowering *l, const hd_image_desc *sampler, uint32_t reference, uint32_t texel) {
    static const uint32_t how[] = { SpvOpFOrdLessThanEqual, SpvOpFOrdLessThan, SpvOpFOrdGreaterThanEqual,
                                    SpvOpFOrdGreaterThan, SpvOpFOrdEqual, SpvOpFUnordNotEqual };
    const uint32_t opcode = how[(uint32_t)sampler->compare < HDI_COUNT(how) ? sampler->compare : 0];
    return chosen(l, hdi_lower_float(l), HDI_LOWER_MAKE(l, opcode, bool_type(l), reference, texel), real(l, ONE),
                  real(l, 0));
}

/* Of the four texels of a linear sample the missing one is what the three others come to on average. */
static void fill_missing(hdi_lowering *l, const taken *from, uint32_t channels, uint32_t parts[][MOST_CHANNELS]) {
    for (uint32_t c = 0; c < channels; c++)
        for (uint32_t corner = 0; corner < from->corners && from->missing[corner]; corner++) {
            uint32_t sum = 0, *part = &parts[corner][c];
            for (uint32_t k = 0; k < from->corners; k++)
                if (k != corner) sum = sum ? exact(l, SpvOpFAdd, sum, parts[k][c]) : parts[k][c];
            sum = exact(l, SpvOpFMul, sum, real(l, THIRD));
            *part = chosen(l, hdi_lower_float(l), from->missing[corner], sum, *part);
        }
}

uint32_t hdi_sample_make(hdi_lowering *l, const hdi_lower_image *image, const hd_image_desc *sampler,
                         const hdi_lower_made *key) {
    const bool compares = key->opcode == SpvOpImageSampleDrefExplicitLod;
    const uint32_t channels = compares ? 1 : MOST_CHANNELS, types[] = { key->coordinates, hdi_lower_float(l) };
    uint32_t given[2] = { 0 }, parts[1 << MOST_AXES][MOST_CHANNELS];
    taken from = { .corners = 0 };
    const uint32_t function = hdi_lower_begin(l, key->value, types, compares ? 2 : 1, given);
    const uint32_t reference = compares ? reference_for(l, image, given[1]) : 0;
    take_at(l, image, sampler, key, given[0], 0, &from);
    for (uint32_t corner = 0; corner < from.corners; corner++) {
        hdi_texel_decode(l, image, from.index[corner], parts[corner]);
        if (compares) parts[corner][0] = compared(l, sampler, reference, parts[corner][0]);
    }
    fill_missing(l, &from, channels, parts);
    for (uint32_t axis = 0, corners = from.corners; corners > 1; axis++, corners /= 2)
        for (uint32_t pair = 0; pair < corners / 2; pair++)
            for (uint32_t c = 0; c < channels; c++)
                parts[pair][c] = mix(l, parts[2 * pair][c], parts[2 * pair + 1][c], from.weights[axis]);
    hdi_image_give(l, key->value, channels, parts[0]);
    return function;
}

/* One component of each of the four texels that a linear sample is made of, or how it compares, whatever the filter. */
uint32_t hdi_gather_make(hdi_lowering *l, const hdi_lower_image *image, const hd_image_desc *sampler,
                         const hdi_lower_made *key) {
    static const uint32_t order[MOST_CHANNELS] = { 2, 3, 1, 0 }; /* below left, below right, right, the first */
    const hd_image_desc linear = { .filter = HD_FILTER_LINEAR, .wrap = sampler->wrap };
    const bool compares = key->opcode == SpvOpImageDrefGather;
    uint32_t types[3] = { key->coordinates }, given[3] = { 0 }, parts[MOST_CHANNELS], count = 1;
    taken from = { .corners = 0 };
    if (key->moved) types[count++] = key->moved;
    if (compares) types[count++] = hdi_lower_float(l);
    const uint32_t function = hdi_lower_begin(l, key->value, types, count, given);
    const uint32_t reference = compares ? reference_for(l, image, given[count - 1]) : 0;
    take_at(l, image, &linear, key, given[0], key->moved ? given[1] : 0, &from);
    for (uint32_t i = 0; i < MOST_CHANNELS; i++) {
        uint32_t texel[MOST_CHANNELS];
        hdi_texel_decode(l, image, from.index[order[i]], texel);
        parts[i] = compares ? compared(l, sampler, reference, texel[0]) : texel[key->component];
    }
    hdi_image_give(l, key->value, MOST_CHANNELS, parts);
    return function;
}
