/* lower_images.c: images as buffers. A texel is whole words: channels of one type, one behind the other; texels of a
 * row lie side by side, then rows, then layers. How many there are along each axis the kernel is told in push
 * constants behind its own. What a sampler does is arithmetic on them: all of it + and * that are rounded one by one,
 * so that every device gives the same bits. Images have one level and one sample.
 *   outside  a read gives zeros, a write does nothing; a sampler repeats the image or takes its edge
 *   linear   the coordinate times the length, less a half: its whole part names two texels, its fraction weighs them
 *   u8       0 to 1 in 255 steps where the kernel sees floats, else the numbers themselves */
#include "spirv/lower.h"

enum { GLSL_FLOOR = 8, GLSL_SCLAMP = 45, GLSL_PACK_HALF = 58, GLSL_UNPACK_HALF = 62, GLSL_NCLAMP = 81 };
enum { ONE = 0x3F800000, HALF = 0x3F000000, F255 = 0x437F0000, BY_255 = 0x3B808081 }; /* bits of floats */
enum { MOST_AXES = 3, MOST_CHANNELS = 4 };

const char *hdi_spirv_lowered_operands(uint32_t opcode) {
    switch (opcode) {
    case SpvOpTypeImage: return "rtnnnnnn?n";
    case SpvOpTypeSampler: return "r";
    case SpvOpTypeSampledImage: return "rt";
    case SpvOpSampledImage: return "trii";
    case SpvOpImageFetch:
    case SpvOpImageRead:
    case SpvOpImageSampleImplicitLod:
    case SpvOpImageSampleExplicitLod: return "trii?n*i";
    case SpvOpImageWrite: return "iii?n*i";
    case SpvOpImage:
    case SpvOpImageQuerySize:
    case SpvOpImageQueryLevels: return "tri";
    case SpvOpImageQuerySizeLod: return "trii";
    case SpvOpImageTexelPointer: return "triii";
    case SpvOpPtrAccessChain:
    case SpvOpInBoundsPtrAccessChain: return "trii*i";
    default: return NULL;
    }
}

/* ---- what images there are ---- */

/* What the module's format of a storage image is as numbers; 0 channels: it is not taken. */
static void format_of(uint32_t format, hd_dtype *out_dtype, uint32_t *out_channels) {
    static const struct {
        uint32_t format;
        hd_dtype dtype;
        uint32_t channels;
    } formats[] = {
        { SpvImageFormatRgba32f, HD_F32, 4 }, { SpvImageFormatRg32f, HD_F32, 2 },
        { SpvImageFormatR32f, HD_F32, 1 },    { SpvImageFormatRgba16f, HD_F16, 4 },
        { SpvImageFormatRg16f, HD_F16, 2 },   { SpvImageFormatRgba8, HD_U8, 4 },
        { SpvImageFormatRgba32i, HD_I32, 4 }, { SpvImageFormatRg32i, HD_I32, 2 },
        { SpvImageFormatR32i, HD_I32, 1 },    { SpvImageFormatRgba32ui, HD_I32, 4 },
        { SpvImageFormatRg32ui, HD_I32, 2 },  { SpvImageFormatR32ui, HD_I32, 1 },
        { SpvImageFormatRgba8ui, HD_U8, 4 },
    };
    *out_channels = 0;
    for (size_t i = 0; i < HDI_COUNT(formats); i++)
        if (formats[i].format == format) *out_dtype = formats[i].dtype, *out_channels = formats[i].channels;
}

static const hd_image_desc *wish_of(const hdi_lowering *l, uint32_t set, uint32_t binding) {
    for (uint32_t i = 0; i < l->wish_count; i++)
        if (l->wishes[i].set == set && l->wishes[i].binding == binding) return &l->wishes[i];
    return NULL;
}

/* Axes by the dimension; false: it is not taken. */
static bool measure(hdi_lowering *l, const uint32_t *type, hdi_lower_image *image) {
    const uint32_t dim = type[3], arrayed = type[5], many = type[6];
    const bool plain =
        dim == SpvDim1D || dim == SpvDim2D || (dim == SpvDim3D && !arrayed) || (dim == SpvDimBuffer && !arrayed);
    if (!plain) return hdi_lower_refuse(l, type, "an image of dimension %u; 1, 2 and 3 axes are taken", dim), false;
    if (many) return hdi_lower_refuse(l, type, "an image of several samples"), false;
    image->layers = arrayed != 0;
    image->axes = (dim == SpvDim2D ? 2 : dim == SpvDim3D ? 3 : 1) + image->layers;
    return true;
}

/* Of what numbers the texels are: as the module says, or as the caller wishes, or four of 32 bits. */
static bool choose_format(hdi_lowering *l, const uint32_t *type, hdi_lower_image *image) {
    const hd_image_desc *wish = wish_of(l, image->set, image->binding);
    const uint32_t *component = hdi_lower_def(l, type[2], SpvOpTypeFloat, 3);
    const bool floats = component != NULL;
    if (!component) component = hdi_lower_def(l, type[2], SpvOpTypeInt, 4);
    if (!component || component[2] != 32)
        return hdi_lower_refuse(l, type, "its components are not of 32 bits"), false;
    image->component = type[2];
    image->dtype = floats ? HD_F32 : HD_I32;
    image->channels = MOST_CHANNELS;
    if (type[8] != SpvImageFormatUnknown) format_of(type[8], &image->dtype, &image->channels);
    else if (wish && wish->dtype != HD_DTYPE_NONE) image->dtype = wish->dtype, image->channels = wish->channels;
    const hd_dtype dtype = image->dtype;
    const bool known =
        image->channels && (dtype == HD_U8 || (floats ? dtype == HD_F32 || dtype == HD_F16 : dtype == HD_I32));
    if (!known && type[8] != SpvImageFormatUnknown)
        return hdi_lower_refuse(l, type, "texels of format %u", type[8]), false;
    const uint64_t bytes = known && image->channels <= MOST_CHANNELS ? hd_dtype_bytes(dtype, image->channels) : 0;
    if (bytes == 0 || bytes % 4)
        return hdi_lower_refuse(l, type,
                                "texels of %u %s at set %u, binding %u; they are 1 to 4 numbers of f32, f16 or "
                                "u8, or i32 or u8 where the kernel sees integers, in whole words of 4 bytes",
                                image->channels, hd_dtype_name(dtype), image->set, image->binding),
               false;
    image->texel_words = (uint32_t)bytes / 4;
    image->element = dtype == HD_I32 ? image->component : hdi_lower_uint(l);
    return true;
}

void hdi_lower_find_image(hdi_lowering *l, const uint32_t *variable) {
    const uint32_t *pointer = hdi_lower_def(l, variable[1], SpvOpTypePointer, 4);
    const uint32_t pointee = pointer ? pointer[3] : 0, id = variable[2];
    const uint32_t *sampled = hdi_lower_def(l, pointee, SpvOpTypeSampledImage, 3);
    const uint32_t *type = hdi_lower_def(l, sampled ? sampled[2] : pointee, SpvOpTypeImage, 9);
    const uint32_t *array = hdi_lower_def(l, pointee, SpvOpTypeArray, 4);
    if (!array) array = hdi_lower_def(l, pointee, SpvOpTypeRuntimeArray, 3);
    const uint32_t set = hdi_lower_decorated(l, id, SpvDecorationDescriptorSet),
                   binding = hdi_lower_decorated(l, id, SpvDecorationBinding);
    if (array) hdi_lower_refuse(l, variable, "an array of images or samplers; give each its own binding");
    if (array || (!type && !hdi_lower_def(l, pointee, SpvOpTypeSampler, 2))) return;
    l->gone[id] = 1;
    if ((type ? l->image_count : l->sampler_count) == HDI_SPIRV_MAX_BINDINGS) {
        hdi_lower_refuse(l, variable, "more than %d images or samplers", HDI_SPIRV_MAX_BINDINGS);
    } else if (type) {
        l->images[l->image_count++] =
            (hdi_lower_image){ .variable = id, .type = type[1], .set = set, .binding = binding };
    } else {
        l->samplers[l->sampler_count++] = (hdi_lower_sampler){ id, set, binding };
    }
}

void hdi_lower_put_images(hdi_lowering *l) {
    for (uint32_t i = 0; i < l->image_count && !l->status; i++) {
        hdi_lower_image *image = &l->images[i];
        const uint32_t *type = l->words + l->at[image->type];
        if (!measure(l, type, image) || !choose_format(l, type, image)) return;
        image->length = l->length_words;
        l->length_words += image->axes;
        const uint32_t open = l->next++, block = l->next++;
        HDI_LOWER_ADD(l, &l->decorations, SpvOpDecorate, open, SpvDecorationArrayStride, 4);
        HDI_LOWER_ADD(l, &l->decorations, SpvOpDecorate, block, SpvDecorationBlock);
        HDI_LOWER_ADD(l, &l->decorations, SpvOpMemberDecorate, block, 0, SpvDecorationOffset, 0);
        HDI_LOWER_ADD(l, &l->globals, SpvOpTypeRuntimeArray, open, image->element);
        HDI_LOWER_ADD(l, &l->globals, SpvOpTypeStruct, block, open);
        const uint32_t pointer = hdi_lower_pointer(l, SpvStorageClassStorageBuffer, block);
        HDI_LOWER_ADD(l, &l->globals, SpvOpVariable, pointer, image->variable, SpvStorageClassStorageBuffer);
        l->gone[image->variable] = 2; /* it stands here now, with its name and place */
    }
}

/* ---- values in the functions that are made ---- */

static uint32_t number(hdi_lowering *l, uint32_t value) { return hdi_lower_number(l, hdi_lower_uint(l), value); }
static uint32_t real(hdi_lowering *l, uint32_t bits) { return hdi_lower_number(l, hdi_lower_float(l), bits); }
static uint32_t signed_type(hdi_lowering *l) { return HDI_LOWER_ONCE(l, SpvOpTypeInt, 0, 32, 1); }
static uint32_t bool_type(hdi_lowering *l) { return hdi_lower_once(l, SpvOpTypeBool, 0, NULL, 0); }

/* + or * of floats, rounded by itself. */
static uint32_t exact(hdi_lowering *l, uint32_t opcode, uint32_t a, uint32_t b) {
    const uint32_t result = HDI_LOWER_MAKE(l, opcode, hdi_lower_float(l), a, b);
    HDI_LOWER_ADD(l, &l->decorations, SpvOpDecorate, result, SpvDecorationNoContraction);
    return result;
}

static uint32_t glsl(hdi_lowering *l, uint32_t instruction, uint32_t type, uint32_t a) {
    return HDI_LOWER_MAKE(l, SpvOpExtInst, type, l->glsl, instruction, a);
}

/* A 32-bit value as another type of 32 bits. */
static uint32_t as_type(hdi_lowering *l, uint32_t value, uint32_t from, uint32_t to) {
    return from == to ? value : HDI_LOWER_MAKE(l, SpvOpBitcast, to, value);
}

/* How many texels there are along an axis. */
static uint32_t length_along(hdi_lowering *l, const hdi_lower_image *image, uint32_t axis) {
    const uint32_t type = hdi_lower_uint(l), pointer = hdi_lower_pointer(l, SpvStorageClassPushConstant, type);
    const uint32_t member = number(l, l->push_members + image->length + axis);
    return HDI_LOWER_MAKE(l, SpvOpLoad, type, HDI_LOWER_MAKE(l, SpvOpAccessChain, pointer, l->push, member));
}

/* The id of a vector's component type and how many it has; of a scalar itself and 1; 0: it is neither. */
static uint32_t component_of(const hdi_lowering *l, uint32_t type, uint32_t *out_count) {
    const uint32_t *vector = hdi_lower_def(l, type, SpvOpTypeVector, 4);
    const bool scalar = hdi_lower_def(l, type, SpvOpTypeInt, 4) || hdi_lower_def(l, type, SpvOpTypeFloat, 3);
    *out_count = vector ? vector[3] : 1;
    return vector ? vector[2] : scalar ? type : 0;
}

static uint32_t component(hdi_lowering *l, uint32_t type, uint32_t count, uint32_t value, uint32_t i) {
    return count == 1 ? value : HDI_LOWER_MAKE(l, SpvOpCompositeExtract, type, value, i);
}

/* The type of a value; 0: not known. */
static uint32_t type_of(const hdi_lowering *l, uint32_t id) {
    const uint32_t *words = id < l->bound && l->at[id] ? l->words + l->at[id] : NULL;
    const hdi_spirv_op *row = words ? hdi_spirv_op_row(hdi_lower_opcode(words)) : NULL;
    const bool typed = row ? row->operands[0] == 't' && row->operands[1] == 'r'
                           : words && hdi_spirv_lowered_operands(hdi_lower_opcode(words)) &&
                                 hdi_spirv_lowered_operands(hdi_lower_opcode(words))[0] == 't';
    return typed && hdi_lower_length(words) > 2 ? words[1] : 0;
}

/* A component of a constant that steps on along an axis, as an unsigned number; 0 where there is none. */
static uint32_t step_along(hdi_lowering *l, uint32_t offset, uint32_t axis) {
    uint32_t count;
    const uint32_t part = offset ? component_of(l, type_of(l, offset), &count) : 0;
    return part ? as_type(l, component(l, part, count, offset, axis), part, hdi_lower_uint(l)) : 0;
}

/* ---- texels ---- */

/* The number of the texel at these coordinates; of an array of layers the last one counts them. */
static uint32_t index_of(hdi_lowering *l, const hdi_lower_image *image, const uint32_t *at, const uint32_t *lengths) {
    const uint32_t type = hdi_lower_uint(l);
    uint32_t index = at[image->axes - 1];
    for (uint32_t axis = image->axes - 1; axis-- > 0;)
        index =
            HDI_LOWER_MAKE(l, SpvOpIAdd, type, HDI_LOWER_MAKE(l, SpvOpIMul, type, index, lengths[axis]), at[axis]);
    return index;
}

/* Coordinates that are integers, as unsigned ones, and whether they lie within. */
static uint32_t index_within(hdi_lowering *l, const hdi_lower_image *image, uint32_t coordinates, uint32_t type,
                             uint32_t offset, uint32_t *out_inside) {
    uint32_t at[MOST_AXES] = { 0 }, lengths[MOST_AXES], count, inside = 0;
    const uint32_t part = component_of(l, type, &count);
    for (uint32_t axis = 0; axis < image->axes; axis++) {
        at[axis] = as_type(l, component(l, part, count, coordinates, axis), part, hdi_lower_uint(l));
        const uint32_t step = axis < image->axes - image->layers ? step_along(l, offset, axis) : 0;
        if (step) at[axis] = HDI_LOWER_MAKE(l, SpvOpIAdd, hdi_lower_uint(l), at[axis], step);
        lengths[axis] = length_along(l, image, axis);
        const uint32_t below = HDI_LOWER_MAKE(l, SpvOpULessThan, bool_type(l), at[axis], lengths[axis]);
        inside = inside ? HDI_LOWER_MAKE(l, SpvOpLogicalAnd, bool_type(l), inside, below) : below;
    }
    *out_inside = inside;
    return index_of(l, image, at, lengths);
}

static uint32_t word_pointer(hdi_lowering *l, const hdi_lower_image *image, uint32_t texel, uint32_t word) {
    const uint32_t type = hdi_lower_uint(l),
                   pointer = hdi_lower_pointer(l, SpvStorageClassStorageBuffer, image->element);
    if (image->texel_words > 1) texel = HDI_LOWER_MAKE(l, SpvOpIMul, type, texel, number(l, image->texel_words));
    if (word) texel = HDI_LOWER_MAKE(l, SpvOpIAdd, type, texel, number(l, word));
    return HDI_LOWER_MAKE(l, SpvOpAccessChain, pointer, image->variable, number(l, 0), texel);
}

/* The four components of a texel, as the kernel sees them; what the image lacks is 0, 0 and 1. */
static void decode(hdi_lowering *l, const hdi_lower_image *image, uint32_t texel, uint32_t out[MOST_CHANNELS]) {
    const uint32_t uint = hdi_lower_uint(l), real_type = hdi_lower_float(l);
    const bool floats = image->component == real_type;
    const uint32_t pair = HDI_LOWER_ONCE(l, SpvOpTypeVector, 0, real_type, 2);
    uint32_t word = 0, halves = 0;
    for (uint32_t c = 0; c < MOST_CHANNELS; c++) {
        if (c >= image->channels) {
            out[c] = hdi_lower_number(l, image->component, c < MOST_CHANNELS - 1 ? 0 : floats ? ONE : 1);
            continue;
        }
        const uint32_t per_word = image->dtype == HD_U8 ? 4 : image->dtype == HD_F16 ? 2 : 1;
        if (c % per_word == 0)
            word = HDI_LOWER_MAKE(l, SpvOpLoad, image->element, word_pointer(l, image, texel, c / per_word));
        if (image->dtype == HD_F16) {
            if (c % 2 == 0) halves = glsl(l, GLSL_UNPACK_HALF, pair, word);
            out[c] = HDI_LOWER_MAKE(l, SpvOpCompositeExtract, real_type, halves, c % 2);
        } else if (image->dtype == HD_U8) {
            const uint32_t byte =
                HDI_LOWER_MAKE(l, SpvOpBitFieldUExtract, uint, word, number(l, 8 * c), number(l, 8));
            out[c] = !floats
                         ? as_type(l, byte, uint, image->component)
                         : exact(l, SpvOpFMul, HDI_LOWER_MAKE(l, SpvOpConvertUToF, real_type, byte), real(l, BY_255));
        } else {
            out[c] = as_type(l, word, image->element, image->component);
        }
    }
}

/* Word `i` of a texel with these components. */
static uint32_t encode(hdi_lowering *l, const hdi_lower_image *image, const uint32_t *parts, uint32_t i) {
    const uint32_t uint = hdi_lower_uint(l), real_type = hdi_lower_float(l);
    const bool floats = image->component == real_type;
    if (image->dtype == HD_F16) {
        const uint32_t pair = HDI_LOWER_ONCE(l, SpvOpTypeVector, 0, real_type, 2);
        return glsl(l, GLSL_PACK_HALF, uint,
                    HDI_LOWER_MAKE(l, SpvOpCompositeConstruct, pair, parts[2 * i], parts[2 * i + 1]));
    }
    if (image->dtype != HD_U8) return as_type(l, parts[i], image->component, image->element);
    uint32_t word = number(l, 0);
    for (uint32_t c = 0; c < image->channels; c++) {
        uint32_t byte = parts[c];
        if (floats) { /* to the nearest of 255 steps; a NaN is 0 */
            byte = HDI_LOWER_MAKE(l, SpvOpExtInst, real_type, l->glsl, GLSL_NCLAMP, byte, real(l, 0), real(l, ONE));
            byte = exact(l, SpvOpFAdd, exact(l, SpvOpFMul, byte, real(l, F255)), real(l, HALF));
            byte = HDI_LOWER_MAKE(l, SpvOpConvertFToU, uint, byte);
        } else {
            byte = as_type(l, byte, image->component, uint);
        }
        word = HDI_LOWER_MAKE(l, SpvOpBitFieldInsert, uint, word, byte, number(l, 8 * c), number(l, 8));
    }
    return word;
}

/* Returns a value of the type from components, and ends the function. */
static void give(hdi_lowering *l, uint32_t type, uint32_t count, const uint32_t *parts) {
    const uint32_t value =
        count == 1 ? parts[0]
                   : hdi_lower_make(l, SpvOpCompositeConstruct, type, parts, HDI_MIN(count, MOST_CHANNELS));
    HDI_LOWER_ADD(l, &l->made, SpvOpReturnValue, value);
    hdi_lower_add(l, &l->made, SpvOpFunctionEnd, NULL, 0);
}

/* ---- functions: what a read, a write, a texel's pointer, a size or a sampler is ---- */

static uint32_t make_read(hdi_lowering *l, const hdi_lower_image *image, uint32_t type, uint32_t offset,
                          uint32_t result, uint32_t count) {
    uint32_t coordinates, inside, parts[MOST_CHANNELS];
    const uint32_t function = hdi_lower_begin(l, result, &type, 1, &coordinates);
    const uint32_t index = index_within(l, image, coordinates, type, offset, &inside);
    const uint32_t texel = HDI_LOWER_MAKE(l, SpvOpSelect, hdi_lower_uint(l), inside, index, number(l, 0));
    decode(l, image, texel, parts);
    for (uint32_t c = 0; c < MOST_CHANNELS; c++)
        parts[c] = HDI_LOWER_MAKE(l, SpvOpSelect, image->component, inside, parts[c],
                                  hdi_lower_number(l, image->component, 0));
    give(l, result, count, parts);
    return function;
}

static uint32_t make_write(hdi_lowering *l, const hdi_lower_image *image, uint32_t type, uint32_t value_type,
                           uint32_t count) {
    const uint32_t nothing = hdi_lower_once(l, SpvOpTypeVoid, 0, NULL, 0), types[] = { type, value_type };
    uint32_t given[2], inside, parts[MOST_CHANNELS];
    const uint32_t function = hdi_lower_begin(l, nothing, types, 2, given);
    const uint32_t index = index_within(l, image, given[0], type, 0, &inside), within = l->next++, merge = l->next++;
    for (uint32_t c = 0; c < image->channels; c++) parts[c] = component(l, image->component, count, given[1], c);
    HDI_LOWER_ADD(l, &l->made, SpvOpSelectionMerge, merge, SpvSelectionControlMaskNone);
    HDI_LOWER_ADD(l, &l->made, SpvOpBranchConditional, inside, within, merge);
    HDI_LOWER_ADD(l, &l->made, SpvOpLabel, within);
    for (uint32_t i = 0; i < image->texel_words; i++) {
        const uint32_t word = encode(l, image, parts, i);
        HDI_LOWER_ADD(l, &l->made, SpvOpStore, word_pointer(l, image, index, i), word);
    }
    HDI_LOWER_ADD(l, &l->made, SpvOpBranch, merge);
    HDI_LOWER_ADD(l, &l->made, SpvOpLabel, merge);
    hdi_lower_add(l, &l->made, SpvOpReturn, NULL, 0);
    hdi_lower_add(l, &l->made, SpvOpFunctionEnd, NULL, 0);
    return function;
}

static uint32_t make_index(hdi_lowering *l, const hdi_lower_image *image, uint32_t type) {
    uint32_t coordinates, inside;
    const uint32_t function = hdi_lower_begin(l, hdi_lower_uint(l), &type, 1, &coordinates);
    const uint32_t index = index_within(l, image, coordinates, type, 0, &inside);
    const uint32_t texel = HDI_LOWER_MAKE(l, SpvOpSelect, hdi_lower_uint(l), inside, index, number(l, 0));
    give(l, hdi_lower_uint(l), 1, &texel);
    return function;
}

static uint32_t make_size(hdi_lowering *l, const hdi_lower_image *image, uint32_t result, uint32_t part,
                          uint32_t count) {
    uint32_t lengths[MOST_AXES] = { 0 };
    const uint32_t function = hdi_lower_begin(l, result, NULL, 0, NULL);
    for (uint32_t axis = 0; axis < image->axes; axis++)
        lengths[axis] = as_type(l, length_along(l, image, axis), hdi_lower_uint(l), part);
    give(l, result, count, lengths);
    return function;
}

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

static uint32_t make_sample(hdi_lowering *l, const hdi_lower_image *image, const hd_image_desc *sampler,
                            uint32_t type, uint32_t offset, uint32_t result) {
    const hd_image_desc layer = { .filter = HD_FILTER_NEAREST, .wrap = HD_WRAP_CLAMP };
    uint32_t coordinates, count, lengths[MOST_AXES] = { 0 }, texels[MOST_AXES][2] = { { 0 } },
                                 weights[MOST_AXES] = { 0 };
    uint32_t parts[1 << MOST_AXES][MOST_CHANNELS], corners = 1;
    const uint32_t function = hdi_lower_begin(l, result, &type, 1, &coordinates), real_type = hdi_lower_float(l);
    component_of(l, type, &count);
    for (uint32_t axis = 0; axis < image->axes; axis++) {
        const bool is_layer = axis >= image->axes - image->layers;
        const uint32_t at = component(l, real_type, count, coordinates, axis);
        lengths[axis] = length_along(l, image, axis);
        if (is_layer) { /* its number, to the nearest */
            const uint32_t whole = glsl(l, GLSL_FLOOR, real_type, exact(l, SpvOpFAdd, at, real(l, HALF)));
            texels[axis][0] =
                wrap(l, HDI_LOWER_MAKE(l, SpvOpConvertFToS, signed_type(l), whole), lengths[axis], layer.wrap);
        } else {
            place_along(l, at, lengths[axis], sampler, step_along(l, offset, axis), texels[axis], &weights[axis]);
            if (weights[axis]) corners *= 2;
        }
    }
    for (uint32_t corner = 0; corner < corners; corner++) {
        uint32_t at[MOST_AXES] = { 0 };
        for (uint32_t axis = 0; axis < image->axes; axis++)
            at[axis] = texels[axis][weights[axis] ? corner >> axis & 1 : 0];
        decode(l, image, index_of(l, image, at, lengths), parts[corner]);
    }
    for (uint32_t axis = 0; corners > 1; axis++, corners /= 2)
        for (uint32_t pair = 0; pair < corners / 2; pair++)
            for (uint32_t c = 0; c < MOST_CHANNELS; c++)
                parts[pair][c] = mix(l, parts[2 * pair][c], parts[2 * pair + 1][c], weights[axis]);
    give(l, result, MOST_CHANNELS, parts[0]);
    return function;
}

/* ---- instructions ---- */

typedef struct use {
    const hdi_lower_image *image;
    uint32_t sampler_set, sampler_binding;
    uint32_t offset; /* a constant by which it steps on; 0: none */
} use;

/* Follows a loaded image, or a pointer to one, back to its variable. */
static bool find_use(const hdi_lowering *l, uint32_t id, use *out) {
    enum { STEPS = 8 };
    *out = (use){ NULL, HDI_SPIRV_NONE, HDI_SPIRV_NONE, 0 };
    for (uint32_t step = 0; step < STEPS && id < l->bound; step++) {
        for (uint32_t i = 0; i < l->image_count; i++)
            if (l->images[i].variable == id) out->image = &l->images[i];
        if (out->image) {
            if (out->sampler_set == HDI_SPIRV_NONE)
                out->sampler_set = out->image->set, out->sampler_binding = out->image->binding;
            return true;
        }
        const uint32_t *words = l->at[id] ? l->words + l->at[id] : NULL;
        const uint32_t opcode = words ? hdi_lower_opcode(words) : 0,
                       length = words ? hdi_lower_length(words) : 0;
        if (length < 4 ||
            (opcode != SpvOpLoad && opcode != SpvOpImage && opcode != SpvOpCopyObject && opcode != SpvOpSampledImage))
            return false;
        const uint32_t *sampler =
            opcode == SpvOpSampledImage && length > 4 ? hdi_lower_def(l, words[4], SpvOpLoad, 4) : NULL;
        for (uint32_t i = 0; sampler && i < l->sampler_count; i++)
            if (l->samplers[i].variable == sampler[3])
                out->sampler_set = l->samplers[i].set, out->sampler_binding = l->samplers[i].binding;
        id = words[3];
    }
    return false;
}

/* What may be said of an access: level 0, which is the only one, gradients, texels to step on by, and who sees it
 * when. */
static bool operands_fit(const uint32_t *words, uint32_t at) {
    const uint32_t mask = hdi_lower_length(words) > at ? words[at] : 0;
    return (mask & ~(uint32_t)(SpvImageOperandsConstOffsetMask | SpvImageOperandsLodMask | SpvImageOperandsGradMask |
                               0x100 | 0x200 | 0x400 | 0x800 | 0x1000 | 0x2000)) == 0;
}

/* The constant by which a read or a sample steps on, texel by texel along each axis; 0: none. */
static uint32_t offset_of(const hdi_lowering *l, const uint32_t *words, uint32_t at) {
    const uint32_t length = hdi_lower_length(words), mask = length > at ? words[at] : 0;
    const uint32_t place =
        at + 1 + (mask & SpvImageOperandsLodMask ? 1 : 0) + (mask & SpvImageOperandsGradMask ? 2 : 0);
    const uint32_t id = mask & SpvImageOperandsConstOffsetMask && place < length ? words[place] : 0;
    return id < l->bound && l->at[id] < l->functions ? id : 0;
}

/* The function for the instruction; made where there is none of the kind yet. 0: it was refused. */
static uint32_t function_for(hdi_lowering *l, const uint32_t *words, const use *of, uint32_t coordinates,
                             uint32_t value) {
    const uint32_t opcode = hdi_lower_opcode(words);
    const bool samples = opcode == SpvOpImageSampleImplicitLod || opcode == SpvOpImageSampleExplicitLod;
    const hd_image_desc *wish = wish_of(l, of->sampler_set, of->sampler_binding), plain = { 0 };
    const hd_image_desc *sampler = wish ? wish : &plain;
    const hdi_lower_made key = { .opcode = samples                     ? SpvOpImageSampleExplicitLod
                                           : opcode == SpvOpImageFetch ? SpvOpImageRead
                                                                       : opcode,
                                 .image = of->image->variable,
                                 .coordinates = coordinates,
                                 .value = value,
                                 .offset = of->offset,
                                 .sampler = samples ? sampler->filter * 2u + sampler->wrap : 0 };
    for (uint32_t i = 0; i < l->made_count; i++) {
        const hdi_lower_made *made = &l->functions_made[i];
        if (made->opcode == key.opcode && made->image == key.image && made->coordinates == key.coordinates &&
            made->value == key.value && made->offset == key.offset && made->sampler == key.sampler)
            return made->function;
    }
    uint32_t count, parts, has = 0;
    const hdi_lower_image *image = of->image;
    const uint32_t component_type = component_of(l, value, &count),
                   axis = coordinates ? component_of(l, coordinates, &has) : 0;
    const bool sizes = opcode == SpvOpImageQuerySize || opcode == SpvOpImageQuerySizeLod;
    const bool points = opcode == SpvOpImageTexelPointer;
    parts = opcode == SpvOpImageWrite ? image->channels : sizes ? image->axes : points ? 1 : MOST_CHANNELS;
    const bool real_axis = hdi_lower_def(l, axis, SpvOpTypeFloat, 3) && axis == hdi_lower_float(l);
    const uint32_t *whole = hdi_lower_def(l, axis, SpvOpTypeInt, 4);
    const bool whole_axis = whole && whole[2] == 32;
    const bool axes_fit = sizes || ((samples ? real_axis : whole_axis) && has >= image->axes);
    const uint32_t *size = hdi_lower_def(l, component_type, SpvOpTypeInt, 4);
    const bool value_fits =
        sizes    ? size && size[2] == 32 && count == parts
        : points ? true
                 : component_type == image->component &&
                       (opcode == SpvOpImageWrite ? count >= parts : count == parts || (!samples && count == 1));
    uint32_t steps = 0;
    const uint32_t *step =
        of->offset ? hdi_lower_def(l, component_of(l, type_of(l, of->offset), &steps), SpvOpTypeInt, 4) : NULL;
    const bool steps_fit = !of->offset || (step && step[2] == 32 && steps >= image->axes - image->layers);
    if (!axes_fit || !value_fits || !steps_fit ||
        (samples && sampler->filter == HD_FILTER_LINEAR && component_type != hdi_lower_float(l)))
        return hdi_lower_refuse(l, words,
                                "its coordinates or components do not go with the image, or integers are "
                                "mixed"),
               0;
    if (l->made_count == HDI_LOWER_MAX_FUNCTIONS)
        return hdi_lower_refuse(l, words, "more than %d ways to look at images", HDI_LOWER_MAX_FUNCTIONS), 0;
    hdi_lower_made *made = &l->functions_made[l->made_count++];
    *made = key;
    made->function = sizes                       ? make_size(l, image, value, component_type, count)
                     : points                    ? make_index(l, image, coordinates)
                     : samples                   ? make_sample(l, image, sampler, coordinates, of->offset, value)
                     : opcode == SpvOpImageWrite ? make_write(l, image, coordinates, value, count)
                                                 : make_read(l, image, coordinates, of->offset, value, count);
    return made->function;
}

/* A pointer to a texel of one integer: what atomic operations are about. */
static bool point(hdi_lowering *l, const uint32_t *words, const use *of) {
    const uint32_t *pointer = hdi_lower_def(l, words[1], SpvOpTypePointer, 4);
    if (!pointer || pointer[3] != of->image->element || of->image->texel_words != 1 || of->image->dtype != HD_I32)
        return hdi_lower_refuse(l, words, "its texels are no single integers of 32 bits");
    const uint32_t function = function_for(l, words, of, type_of(l, words[4]), 0), index = l->next++;
    HDI_LOWER_ADD(l, &l->code, SpvOpFunctionCall, hdi_lower_uint(l), index, function, words[4]);
    HDI_LOWER_ADD(l, &l->code, SpvOpAccessChain, words[1], words[2], of->image->variable, number(l, 0), index);
    return true;
}

bool hdi_lower_image_use(hdi_lowering *l, const uint32_t *words) {
    const uint32_t opcode = hdi_lower_opcode(words), length = hdi_lower_length(words);
    const bool about =
        hdi_spirv_lowered_operands(opcode) && opcode != SpvOpPtrAccessChain && opcode != SpvOpInBoundsPtrAccessChain;
    const hdi_spirv_op *row = hdi_spirv_op_row(opcode);
    const bool typed = row && row->operands[0] == 't' && length > 2;
    const bool carried =
        typed && words[1] < l->bound && l->gone[words[1]] == 1; /* a loaded image: looked up when used */
    if (carried && opcode != SpvOpLoad && opcode != SpvOpCopyObject)
        return hdi_lower_refuse(l, words,
                                "an image or sampler that goes other ways than to where it is used; let the "
                                "compiler optimise (-O)");
    const bool some = l->image_count || l->sampler_count;
    if (carried || (some && (opcode == SpvOpImage || opcode == SpvOpSampledImage))) {
        if (length > 2 && words[2] < l->bound) l->gone[words[2]] = 1; /* with what is said of it */
        return true;
    }
    if (!about || !some) return false;
    const bool writes = opcode == SpvOpImageWrite;
    if (length < (writes || opcode == SpvOpImageQuerySize || opcode == SpvOpImageQueryLevels ? 4u : 5u)) return false;
    use of;
    if (!find_use(l, words[writes ? 1 : 3], &of)) return hdi_lower_refuse(l, words, "its image is no variable");
    if (opcode == SpvOpImageTexelPointer) return length < 6 ? false : point(l, words, &of);
    if (opcode == SpvOpImageQueryLevels) {
        HDI_LOWER_ADD(l, &l->code, SpvOpCopyObject, words[1], words[2], hdi_lower_number(l, words[1], 1));
        return true;
    }
    const bool sizes = opcode == SpvOpImageQuerySize || opcode == SpvOpImageQuerySizeLod;
    if (!sizes && !operands_fit(words, writes ? 4 : 5))
        return hdi_lower_refuse(l, words, "image operands 0x%x", words[writes ? 4 : 5]);
    if (!sizes && !writes) of.offset = offset_of(l, words, 5);
    const uint32_t at = sizes ? 0 : words[writes ? 2 : 4], value = writes ? type_of(l, words[3]) : words[1];
    const uint32_t function = function_for(l, words, &of, at ? type_of(l, at) : 0, value);
    if (writes)
        HDI_LOWER_ADD(l, &l->code, SpvOpFunctionCall, hdi_lower_once(l, SpvOpTypeVoid, 0, NULL, 0), l->next++,
                      function, at, words[3]);
    else if (sizes) HDI_LOWER_ADD(l, &l->code, SpvOpFunctionCall, words[1], words[2], function);
    else HDI_LOWER_ADD(l, &l->code, SpvOpFunctionCall, words[1], words[2], function, at);
    return true;
}
