/* lower_texels.c: texels as numbers in a buffer: of what kind they are, which bits of which element a component is, and
 * what these bits mean. Integers of 8 and 16 bits are widened and cut, steps from 0 or -1 to 1 are rounded to the
 * nearest one. */
#include "spirv/lower_images.h"

/* ---- formats ---- */

/* What a component is. PACKED: words of 10, 10, 10 and 2 bits; of floats 11, 11 and 10, which are halves without a sign
 * and their last bits. */
enum { FLOATS, INTEGERS, SIGNED, STEPS /* 0 to 1 */, SIGNED_STEPS /* -1 to 1 */, PACKED_INTEGERS, PACKED_STEPS,
       PACKED_FLOATS };
enum { R64UI = 40, R64I = 41 }; /* formats */
enum { DEPTHS = 1 }; /* what an image is said to hold */

/* How the module's format codes a texel; false: it is not taken. */
static bool format_of(uint32_t format, hdi_lower_image *image) {
    static const struct {
        uint32_t format, coding, bits, components;
    } formats[] = {
        { SpvImageFormatRgba32f, FLOATS, 32, 4 },        { SpvImageFormatRg32f, FLOATS, 32, 2 },
        { SpvImageFormatR32f, FLOATS, 32, 1 },           { SpvImageFormatRgba16f, FLOATS, 16, 4 },
        { SpvImageFormatRg16f, FLOATS, 16, 2 },          { SpvImageFormatR16f, FLOATS, 16, 1 },
        { SpvImageFormatRgba32i, SIGNED, 32, 4 },        { SpvImageFormatRg32i, SIGNED, 32, 2 },
        { SpvImageFormatR32i, SIGNED, 32, 1 },           { SpvImageFormatRgba16i, SIGNED, 16, 4 },
        { SpvImageFormatRg16i, SIGNED, 16, 2 },          { SpvImageFormatR16i, SIGNED, 16, 1 },
        { SpvImageFormatRgba8i, SIGNED, 8, 4 },          { SpvImageFormatRg8i, SIGNED, 8, 2 },
        { SpvImageFormatR8i, SIGNED, 8, 1 },             { SpvImageFormatRgba32ui, INTEGERS, 32, 4 },
        { SpvImageFormatRg32ui, INTEGERS, 32, 2 },       { SpvImageFormatR32ui, INTEGERS, 32, 1 },
        { SpvImageFormatRgba16ui, INTEGERS, 16, 4 },     { SpvImageFormatRg16ui, INTEGERS, 16, 2 },
        { SpvImageFormatR16ui, INTEGERS, 16, 1 },        { SpvImageFormatRgba8ui, INTEGERS, 8, 4 },
        { SpvImageFormatRg8ui, INTEGERS, 8, 2 },         { SpvImageFormatR8ui, INTEGERS, 8, 1 },
        { SpvImageFormatRgba16, STEPS, 16, 4 },          { SpvImageFormatRg16, STEPS, 16, 2 },
        { SpvImageFormatR16, STEPS, 16, 1 },             { SpvImageFormatRgba8, STEPS, 8, 4 },
        { SpvImageFormatRg8, STEPS, 8, 2 },              { SpvImageFormatR8, STEPS, 8, 1 },
        { SpvImageFormatRgba16Snorm, SIGNED_STEPS, 16, 4 }, { SpvImageFormatRg16Snorm, SIGNED_STEPS, 16, 2 },
        { SpvImageFormatR16Snorm, SIGNED_STEPS, 16, 1 }, { SpvImageFormatRgba8Snorm, SIGNED_STEPS, 8, 4 },
        { SpvImageFormatRg8Snorm, SIGNED_STEPS, 8, 2 },  { SpvImageFormatR8Snorm, SIGNED_STEPS, 8, 1 },
        { R64UI, INTEGERS, 64, 1 },                  { R64I, SIGNED, 64, 1 },
        { SpvImageFormatRgb10a2ui, PACKED_INTEGERS, 32, 4 }, { SpvImageFormatRgb10A2, PACKED_STEPS, 32, 4 },
        { SpvImageFormatR11fG11fB10f, PACKED_FLOATS, 32, 3 },
    };
    for (size_t i = 0; i < HDI_COUNT(formats); i++) {
        if (formats[i].format != format) continue;
        image->coding = formats[i].coding;
        image->bits = formats[i].bits;
        image->components = formats[i].components;
        return true;
    }
    return false;
}

static bool is_packed(const hdi_lower_image *image) {
    return image->coding == PACKED_INTEGERS || image->coding == PACKED_STEPS || image->coding == PACKED_FLOATS;
}

/* The tensor that such texels are: packed words are integers; an integer of 16 bits is two bytes and one of 64 bits two
 * of 32, as no tensor has their type. */
static void choose_tensor(hdi_lower_image *image) {
    const bool floats = image->coding == FLOATS;
    const bool bytes = !floats && image->bits == 16;
    image->dtype = floats ? image->bits == 16 ? HD_F16 : HD_F32 : image->bits >= 32 ? HD_I32 : HD_U8;
    image->channels = is_packed(image) ? 1 : image->components * (bytes || image->bits == 64 ? 2 : 1);
}

static uint32_t narrow_type(hdi_lowering *l, uint32_t bytes) {
    return HDI_LOWER_ONCE(l, SpvOpTypeInt, 0, 8 * bytes, 0);
}

bool hdi_texel_choose(hdi_lowering *l, const uint32_t *type, const hd_image_desc *wish, hdi_lower_image *image) {
    const uint32_t *component = hdi_lower_def(l, type[2], SpvOpTypeFloat, 3);
    const bool floats = component != NULL;
    if (!component) component = hdi_lower_def(l, type[2], SpvOpTypeInt, 4);
    const bool wide = component && !floats && component[2] == 64 && (type[8] == R64UI || type[8] == R64I);
    if (!component || (component[2] != 32 && !wide))
        return hdi_lower_refuse(l, type, "its components are not of 32 bits, nor in a format of 64"), false;
    image->component = type[2];
    image->coding = floats ? FLOATS : INTEGERS;
    image->bits = 32;
    image->components = type[4] == DEPTHS ? 1 : MOST_CHANNELS;
    bool known = true;
    if (type[8] != SpvImageFormatUnknown) known = format_of(type[8], image);
    else if (wish && wish->dtype != HD_DTYPE_NONE) {
        image->coding = wish->dtype == HD_U8 && floats ? STEPS : image->coding;
        image->bits = wish->dtype == HD_U8 ? 8 : wish->dtype == HD_F16 ? 16 : 32;
        image->components = wish->channels;
        known = wish->channels > 0 && wish->channels <= MOST_CHANNELS &&
                (wish->dtype == HD_U8 ||
                 (floats ? wish->dtype == HD_F32 || wish->dtype == HD_F16 : wish->dtype == HD_I32));
    }
    const bool whole = image->coding == INTEGERS || image->coding == SIGNED || image->coding == PACKED_INTEGERS;
    if (type[8] != SpvImageFormatUnknown && (!known || whole == floats || wide != (image->bits == 64)))
        return hdi_lower_refuse(l, type, "texels of format %u", type[8]), false;
    if (!known)
        return hdi_lower_refuse(l, type,
                                "texels of %u %s at set %u, binding %u; they are 1 to 4 numbers of f32, f16 or "
                                "u8, or i32 or u8 where the kernel sees integers",
                                wish ? wish->channels : 0, hd_dtype_name(wish ? wish->dtype : HD_DTYPE_NONE),
                                image->set, image->binding),
               false;
    choose_tensor(image);
    const uint32_t bytes = is_packed(image) ? 4 : image->components * image->bits / 8;
    image->element_bytes = wide ? 8 : bytes % 4 == 0 ? 4 : image->bits / 8;
    image->texel_elements = bytes / image->element_bytes;
    l->element_bytes |= image->element_bytes; /* 1 and 2 want capabilities */
    image->element = image->element_bytes < 4         ? narrow_type(l, image->element_bytes)
                     : image->bits >= 32 && whole && !is_packed(image) ? image->component
                                                                       : hdi_lower_uint(l);
    return true;
}

bool hdi_texel_is_number(const hdi_lower_image *image) {
    return image->texel_elements == 1 && image->bits >= 32 && image->coding != FLOATS && !is_packed(image);
}

/* ---- where they lie, and what they mean ---- */

uint32_t hdi_texel_index(hdi_lowering *l, const hdi_lower_image *image, const uint32_t *at, const uint32_t *lengths) {
    const uint32_t type = hdi_lower_uint(l);
    uint32_t index = at[image->axes - 1];
    for (uint32_t axis = image->axes - 1; axis-- > 0;)
        index =
            HDI_LOWER_MAKE(l, SpvOpIAdd, type, HDI_LOWER_MAKE(l, SpvOpIMul, type, index, lengths[axis]), at[axis]);
    return index;
}

uint32_t hdi_texel_element(hdi_lowering *l, const hdi_lower_image *image, uint32_t texel, uint32_t i) {
    const uint32_t type = hdi_lower_uint(l),
                   pointer = hdi_lower_pointer(l, SpvStorageClassStorageBuffer, image->element);
    if (image->texel_elements > 1)
        texel = HDI_LOWER_MAKE(l, SpvOpIMul, type, texel, number(l, image->texel_elements));
    if (i) texel = HDI_LOWER_MAKE(l, SpvOpIAdd, type, texel, number(l, i));
    return HDI_LOWER_MAKE(l, SpvOpAccessChain, pointer, image->variable, number(l, 0), texel);
}

/* Where a component lies: in which element, from which bit of it on, in how many. */
typedef struct field { uint32_t element, from, bits; } field;
static field field_of(const hdi_lower_image *image, uint32_t c) {
    if (image->coding == PACKED_FLOATS) return (field){ 0, 11 * c, c < 2 ? 11 : 10 };
    if (is_packed(image)) return (field){ 0, 10 * c, c < 3 ? 10 : 2 };
    const uint32_t together = image->element_bytes * 8 / image->bits;
    return (field){ c / together, c % together * image->bits, image->bits };
}

static bool is_signed(const hdi_lower_image *image) {
    return image->coding == SIGNED || image->coding == SIGNED_STEPS;
}

/* How many steps a component of so many bits has from 0 to 1, as a float's bits, and 1 by that. */
static uint32_t steps_of(const hdi_lower_image *image, uint32_t bits, bool inverse) {
    const uint32_t steps = (1u << (bits - is_signed(image))) - 1;
    const float value = inverse ? 1.0f / (float)steps : (float)steps;
    uint32_t out;
    memcpy(&out, &value, sizeof out);
    return out;
}

/* The component that these bits, in the lowest of an unsigned number, stand for. */
static uint32_t decoded(hdi_lowering *l, const hdi_lower_image *image, uint32_t raw, uint32_t bits) {
    const uint32_t uint = hdi_lower_uint(l), real_type = hdi_lower_float(l);
    if (image->coding == FLOATS || image->coding == PACKED_FLOATS) {
        const uint32_t pair = HDI_LOWER_ONCE(l, SpvOpTypeVector, 0, real_type, 2);
        if (bits < 15) raw = HDI_LOWER_MAKE(l, SpvOpShiftLeftLogical, uint, raw, number(l, 15 - bits));
        return HDI_LOWER_MAKE(l, SpvOpCompositeExtract, real_type, glsl(l, GLSL_UNPACK_HALF, pair, raw), 0);
    }
    if (image->coding == STEPS || image->coding == PACKED_STEPS)
        return exact(l, SpvOpFMul, HDI_LOWER_MAKE(l, SpvOpConvertUToF, real_type, raw),
                     real(l, steps_of(image, bits, true)));
    if (image->coding != SIGNED_STEPS) return as_type(l, raw, uint, image->component);
    const uint32_t whole = HDI_LOWER_MAKE(l, SpvOpConvertSToF, real_type, as_type(l, raw, uint, signed_type(l)));
    return HDI_LOWER_MAKE(l, SpvOpExtInst, real_type, l->glsl, GLSL_FMAX,
                          exact(l, SpvOpFMul, whole, real(l, steps_of(image, bits, true))), real(l, MINUS_ONE));
}

void hdi_texel_decode(hdi_lowering *l, const hdi_lower_image *image, uint32_t texel, uint32_t out[MOST_CHANNELS]) {
    const uint32_t uint = hdi_lower_uint(l);
    const bool floats = image->component == hdi_lower_float(l);
    uint32_t held = 0, at = HDI_SPIRV_NONE;
    for (uint32_t c = 0; c < MOST_CHANNELS; c++) {
        if (c >= image->components) {
            out[c] = component_number(l, image, c < MOST_CHANNELS - 1 ? 0 : floats ? ONE : 1);
            continue;
        }
        const field f = field_of(image, c);
        if (f.element != at) {
            held = HDI_LOWER_MAKE(l, SpvOpLoad, image->element, hdi_texel_element(l, image, texel, f.element));
            if (image->element_bytes < 4) held = HDI_LOWER_MAKE(l, SpvOpUConvert, uint, held);
            at = f.element;
        }
        if (f.bits >= 32) {
            out[c] = as_type(l, held, image->element, image->component);
        } else {
            const bool all = f.from == 0 && f.bits == 8 * image->element_bytes && !is_signed(image);
            const uint32_t raw = all ? held
                                     : HDI_LOWER_MAKE(l, is_signed(image) ? SpvOpBitFieldSExtract
                                                                          : SpvOpBitFieldUExtract,
                                                      uint, held, number(l, f.from), number(l, f.bits));
            out[c] = decoded(l, image, raw, f.bits);
        }
    }
}

/* What a float without a sign can hold of it: what is below 0 is 0, and what is too large the largest one; infinity and
 * NaN stay. */
static uint32_t unsigned_float(hdi_lowering *l, uint32_t value, uint32_t bits) {
    const uint32_t truth = bool_type(l), type = hdi_lower_float(l);
    const uint32_t most = real(l, bits == 11 ? 0x477E0000u : 0x477C0000u), zero = real(l, 0); /* 65024 and 64512 */
    const uint32_t large = HDI_LOWER_MAKE(l, SpvOpFOrdGreaterThan, truth, value, most),
                   whole = HDI_LOWER_MAKE(l, SpvOpLogicalNot, truth, HDI_LOWER_MAKE(l, SpvOpIsInf, truth, value));
    const uint32_t cut = HDI_LOWER_MAKE(l, SpvOpLogicalAnd, truth, large, whole),
                   below = HDI_LOWER_MAKE(l, SpvOpFOrdLessThan, truth, value, zero);
    return HDI_LOWER_MAKE(l, SpvOpSelect, type, below, zero, HDI_LOWER_MAKE(l, SpvOpSelect, type, cut, most, value));
}

/* The bits of a component, in the lowest of an unsigned number; those above them are anything. */
static uint32_t encoded(hdi_lowering *l, const hdi_lower_image *image, uint32_t value, uint32_t bits) {
    const uint32_t uint = hdi_lower_uint(l), real_type = hdi_lower_float(l), type = signed_type(l);
    if (image->coding == FLOATS || image->coding == PACKED_FLOATS) {
        const uint32_t pair = HDI_LOWER_ONCE(l, SpvOpTypeVector, 0, real_type, 2);
        if (bits < 15) value = unsigned_float(l, value, bits);
        const uint32_t half = glsl(l, GLSL_PACK_HALF, uint,
                                   HDI_LOWER_MAKE(l, SpvOpCompositeConstruct, pair, value, real(l, 0)));
        return bits == 16 ? half
                          : HDI_LOWER_MAKE(l, SpvOpBitFieldUExtract, uint, half, number(l, 15 - bits), number(l, bits));
    }
    const bool steps = image->coding == STEPS || image->coding == PACKED_STEPS || image->coding == SIGNED_STEPS;
    if (!steps) return as_type(l, value, image->component, uint);
    /* to the nearest of the steps; a NaN is the least */
    const uint32_t least = is_signed(image) ? MINUS_ONE : 0;
    value = HDI_LOWER_MAKE(l, SpvOpExtInst, real_type, l->glsl, GLSL_NCLAMP, value, real(l, least), real(l, ONE));
    value = exact(l, SpvOpFAdd, exact(l, SpvOpFMul, value, real(l, steps_of(image, bits, false))), real(l, HALF));
    if (!is_signed(image)) return HDI_LOWER_MAKE(l, SpvOpConvertFToU, uint, value);
    return as_type(l, HDI_LOWER_MAKE(l, SpvOpConvertFToS, type, glsl(l, GLSL_FLOOR, real_type, value)), type, uint);
}

uint32_t hdi_texel_encode(hdi_lowering *l, const hdi_lower_image *image, const uint32_t *parts, uint32_t i) {
    const uint32_t uint = hdi_lower_uint(l);
    uint32_t held = 0;
    for (uint32_t c = 0; c < image->components; c++) {
        const field f = field_of(image, c);
        if (f.element != i) continue;
        if (f.bits >= 32) return as_type(l, parts[c], image->component, image->element);
        const uint32_t raw = encoded(l, image, parts[c], f.bits);
        held = f.bits == 8 * image->element_bytes
                   ? raw
                   : HDI_LOWER_MAKE(l, SpvOpBitFieldInsert, uint, held ? held : number(l, 0), raw, number(l, f.from),
                                    number(l, f.bits));
    }
    return image->element_bytes < 4 ? HDI_LOWER_MAKE(l, SpvOpUConvert, image->element, held) : held;
}
