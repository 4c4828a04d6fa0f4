/* lower_images.h: values in the functions that are made, for lower_images.c and all that makes such functions; and what
 * lower_texels.c and lower_samplers.c are to it. */
#ifndef HDI_SPIRV_LOWER_IMAGES_H
#define HDI_SPIRV_LOWER_IMAGES_H

#include "spirv/lower.h"

enum { GLSL_FABS = 4, GLSL_SABS = 5, GLSL_FLOOR = 8, GLSL_UMIN = 38, GLSL_SMIN = 39, GLSL_FMAX = 40, GLSL_UMAX = 41,
       GLSL_SMAX = 42, GLSL_SCLAMP = 45, GLSL_PACK_HALF = 58, GLSL_UNPACK_HALF = 62, GLSL_NMIN = 79, GLSL_NMAX = 80,
       GLSL_NCLAMP = 81 };
#define ONE 0x3F800000u /* bits of floats */
#define HALF 0x3F000000u
#define THIRD 0x3EAAAAABu
#define TWO 0x40000000u
#define MINUS_ONE 0xBF800000u
enum { MOST_AXES = 5, MOST_CHANNELS = 4 };
static inline uint32_t number(hdi_lowering *l, uint32_t value) { return hdi_lower_number(l, hdi_lower_uint(l), value); }
static inline uint32_t real(hdi_lowering *l, uint32_t bits) { return hdi_lower_number(l, hdi_lower_float(l), bits); }
static inline uint32_t signed_type(hdi_lowering *l) { return HDI_LOWER_ONCE(l, SpvOpTypeInt, 0, 32, 1); }
static inline uint32_t bool_type(hdi_lowering *l) { return hdi_lower_once(l, SpvOpTypeBool, 0, NULL, 0); }

/* + or * of floats, rounded by itself. */
static inline uint32_t exact(hdi_lowering *l, uint32_t opcode, uint32_t a, uint32_t b) {
    const uint32_t result = HDI_LOWER_MAKE(l, opcode, hdi_lower_float(l), a, b);
    HDI_LOWER_ADD(l, &l->decorations, SpvOpDecorate, result, SpvDecorationNoContraction);
    return result;
}

static inline uint32_t glsl(hdi_lowering *l, uint32_t instruction, uint32_t type, uint32_t a) {
    return HDI_LOWER_MAKE(l, SpvOpExtInst, type, l->glsl, instruction, a);
}

/* A 32-bit value as another type of 32 bits. */
static inline uint32_t as_type(hdi_lowering *l, uint32_t value, uint32_t from, uint32_t to) {
    return from == to ? value : HDI_LOWER_MAKE(l, SpvOpBitcast, to, value);
}

/* A number of a texel's components' type, which may have 64 bits. */
static inline uint32_t component_number(hdi_lowering *l, const hdi_lower_image *image, uint32_t bits) {
    return image->bits == 64 ? HDI_LOWER_ONCE(l, SpvOpConstant, image->component, bits, 0)
                             : hdi_lower_number(l, image->component, bits);
}

/* How many texels there are along an axis. */
static inline uint32_t length_along(hdi_lowering *l, const hdi_lower_image *image, uint32_t axis) {
    const uint32_t type = hdi_lower_uint(l), pointer = hdi_lower_pointer(l, SpvStorageClassPushConstant, type);
    const uint32_t member = number(l, l->push_members + image->length + axis);
    return HDI_LOWER_MAKE(l, SpvOpLoad, type, HDI_LOWER_MAKE(l, SpvOpAccessChain, pointer, l->push, member));
}

/* The id of a vector's component type and how many it has; of a scalar itself and 1; 0: it is neither. */
static inline uint32_t component_of(const hdi_lowering *l, uint32_t type, uint32_t *out_count) {
    const uint32_t *vector = hdi_lower_def(l, type, SpvOpTypeVector, 4);
    const bool scalar = hdi_lower_def(l, type, SpvOpTypeInt, 4) || hdi_lower_def(l, type, SpvOpTypeFloat, 3);
    *out_count = vector ? vector[3] : 1;
    return vector ? vector[2] : scalar ? type : 0;
}

static inline uint32_t component(hdi_lowering *l, uint32_t type, uint32_t count, uint32_t value, uint32_t i) {
    return count == 1 ? value : HDI_LOWER_MAKE(l, SpvOpCompositeExtract, type, value, i);
}

/* The type of a value; 0: not known. */
uint32_t hdi_image_type_of(const hdi_lowering *l, uint32_t id);
/* A component of a constant that steps on along an axis, as an unsigned number; 0 where there is none. */
uint32_t hdi_image_step(hdi_lowering *l, uint32_t offset, uint32_t axis);
/* Returns a value of the type from components, and ends the function. */
void hdi_image_give(hdi_lowering *l, uint32_t type, uint32_t count, const uint32_t *parts);

/* ---- lower_texels.c ---- */
/* Of what numbers the texels are: as the module says, or as the caller wishes (NULL: he wishes nothing), or four of 32
 * bits. False: it was refused. */
bool hdi_texel_choose(hdi_lowering *l, const uint32_t *type, const hd_image_desc *wish, hdi_lower_image *image);
/* Are texels single integers of 32 bits? */
bool hdi_texel_is_number(const hdi_lower_image *image);
/* The number of the texel at these coordinates; of an array of layers the last one counts them. */
uint32_t hdi_texel_index(hdi_lowering *l, const hdi_lower_image *image, const uint32_t *at, const uint32_t *lengths);
/* A pointer to an element of a texel. */
uint32_t hdi_texel_element(hdi_lowering *l, const hdi_lower_image *image, uint32_t texel, uint32_t i);
/* The four components of a texel, as the kernel sees them; what the image lacks is 0, 0 and 1. */
void hdi_texel_decode(hdi_lowering *l, const hdi_lower_image *image, uint32_t texel, uint32_t out[MOST_CHANNELS]);
/* Element `i` of a texel with these components. */
uint32_t hdi_texel_encode(hdi_lowering *l, const hdi_lower_image *image, const uint32_t *parts, uint32_t i);

/* ---- lower_samplers.c ---- */
uint32_t hdi_sample_make(hdi_lowering *l, const hdi_lower_image *image, const hd_image_desc *sampler,
                         const hdi_lower_made *key);
uint32_t hdi_gather_make(hdi_lowering *l, const hdi_lower_image *image, const hd_image_desc *sampler,
                         const hdi_lower_made *key);
#endif
