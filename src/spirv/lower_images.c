/* lower_images.c: images as buffers. A texel is channels of one type, one behind the other; texels of a
 * row lie side by side, then rows, then layers. How many there are along each axis the kernel is told in push
 * constants behind its own. What a sampler does is arithmetic on them: all of it + and * that are rounded one by one,
 * so that every device gives the same bits. Images have one level; samples are an axis more, in front of the others.
 *   outside  a read gives zeros, a write does nothing; a sampler repeats the image or takes its edge
 *   linear   the coordinate times the length, less a half: its whole part names two texels, its fraction weighs them
 *   u8       0 to 1 in 255 steps where the kernel sees floats, else the numbers themselves; other formats likewise
 *   narrow   texels of less than four bytes are read and written as bytes or as numbers of 16 bits */
#include "spirv/lower_images.h"

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
    case SpvOpImageSampleDrefImplicitLod:
    case SpvOpImageSampleDrefExplicitLod:
    case SpvOpImageDrefGather:
    case SpvOpImageGather: return "triii?n*i";
    case SpvOpImageWrite: return "iii?n*i";
    case SpvOpImage:
    case SpvOpImageQuerySize:
    case SpvOpImageQuerySamples:
    case SpvOpImageQueryLevels:
    case SpvOpConvertUToPtr:
    case SpvOpConvertPtrToU: return "tri";
    case SpvOpImageQuerySizeLod:
    case SpvOpPtrEqual:
    case SpvOpPtrNotEqual:
    case SpvOpPtrDiff: return "trii";
    case SpvOpImageTexelPointer: return "triii";
    case SpvOpPtrAccessChain:
    case SpvOpInBoundsPtrAccessChain: return "trii*i";
    default: break;
    }
    const char *form = hdi_lower_group_operands(opcode);
    return form ? form : hdi_lower_spelled_operands(opcode);
}

/* ---- what images there are ---- */

/* Axes by the dimension; false: it is not taken. */
static bool measure(hdi_lowering *l, const uint32_t *type, hdi_lower_image *image) {
    const uint32_t dim = type[3], arrayed = type[5], many = type[6];
    const bool sampled = many && dim == SpvDim2D;
    const bool plain = dim == SpvDim1D || dim == SpvDim2D || dim == SpvDimCube ||
                       ((dim == SpvDim3D || dim == SpvDimBuffer) && !arrayed);
    if (!plain) return hdi_lower_refuse(l, type, "an image of dimension %u; 1, 2 and 3 axes are taken", dim), false;
    if (many && !sampled) return hdi_lower_refuse(l, type, "an image of several samples and not of 2 axes"), false;
    image->samples = sampled;
    image->cube = dim == SpvDimCube; /* whose faces are layers */
    image->cubes = image->cube && arrayed;
    image->layers = arrayed != 0 || image->cube;
    image->axes = (dim == SpvDim2D || image->cube ? 2 : dim == SpvDim3D ? 3 : 1) + image->layers + image->samples;
    return true;
}

void hdi_lower_find_image(hdi_lowering *l, const uint32_t *variable) {
    const uint32_t *pointer = hdi_lower_def(l, variable[1], SpvOpTypePointer, 4);
    uint32_t pointee = pointer ? pointer[3] : 0;
    const uint32_t id = variable[2];
    const uint32_t *array = hdi_lower_def(l, pointee, SpvOpTypeArray, 4);
    if (!array) array = hdi_lower_def(l, pointee, SpvOpTypeRuntimeArray, 3);
    if (array) pointee = array[2];
    const uint32_t *sampled = hdi_lower_def(l, pointee, SpvOpTypeSampledImage, 3);
    const uint32_t *type = hdi_lower_def(l, sampled ? sampled[2] : pointee, SpvOpTypeImage, 9);
    const uint32_t set = hdi_lower_decorated(l, id, SpvDecorationDescriptorSet),
                   binding = hdi_lower_decorated(l, id, SpvDecorationBinding);
    if (!type && !hdi_lower_def(l, pointee, SpvOpTypeSampler, 2)) return;
    const uint32_t count = array ? hdi_lower_elements(l, variable, array) : 1;
    if (count == 0) return;
    l->gone[id] = 1;
    if ((type ? l->image_count + count - 1 : l->sampler_count) >= HDI_SPIRV_MAX_BINDINGS) {
        hdi_lower_refuse(l, variable, "more than %d images or samplers", HDI_SPIRV_MAX_BINDINGS);
    } else if (!type) { /* those of an array are all of one kind, as the caller says it of their binding */
        l->samplers[l->sampler_count++] = (hdi_lower_sampler){ id, set, binding };
    } else {
        if (array)
            l->image_arrays[l->image_array_count++] = (hdi_lower_image_array){ id, l->image_count, count };
        for (uint32_t i = 0; i < count; i++)
            l->images[l->image_count++] = (hdi_lower_image){ .variable = array ? l->next++ : id,
                                                             .type = type[1],
                                                             .set = set,
                                                             .binding = binding,
                                                             .number = i };
    }
}

static bool is_aliased(const hdi_lowering *l, uint32_t id) {
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->functions; at += hdi_lower_length(l->words + at))
        if (l->words[at] == (3u << SpvWordCountShift | SpvOpDecorate) && l->words[at + 1] == id &&
            l->words[at + 2] == SpvDecorationAliased)
            return true;
    return false;
}

/* An image in front of it that is the same tensor: bound at the same place, with texels of the same bytes. */
static hdi_lower_image *same_tensor(hdi_lowering *l, const hdi_lower_image *image) {
    for (hdi_lower_image *other = l->images; other < image; other++)
        if (other->set == image->set && other->binding == image->binding && other->number == image->number &&
            other->axes == image->axes && other->dtype == image->dtype && other->channels == image->channels)
            return other;
    return NULL;
}

void hdi_lower_put_images(hdi_lowering *l) {
    for (uint32_t i = 0; i < l->image_count && !l->status; i++) {
        hdi_lower_image *image = &l->images[i];
        const uint32_t *type = l->words + l->at[image->type];
        const hd_image_desc *wish = hdi_lower_wish(l, image->set, image->binding);
        if (!measure(l, type, image) || !hdi_texel_choose(l, type, wish, image)) return;
        hdi_lower_image *same = same_tensor(l, image);
        if (same) same->aliased = image->aliased = true;
        image->length = same ? same->length : l->length_words;
        l->length_words += same ? 0 : image->axes;
        const uint32_t open = l->next++, block = l->next++;
        HDI_LOWER_ADD(l, &l->decorations, SpvOpDecorate, open, SpvDecorationArrayStride, image->element_bytes);
        HDI_LOWER_ADD(l, &l->decorations, SpvOpDecorate, block, SpvDecorationBlock);
        HDI_LOWER_ADD(l, &l->decorations, SpvOpMemberDecorate, block, 0, SpvDecorationOffset, 0);
        HDI_LOWER_ADD(l, &l->globals, SpvOpTypeRuntimeArray, open, image->element);
        HDI_LOWER_ADD(l, &l->globals, SpvOpTypeStruct, block, open);
        const uint32_t pointer = hdi_lower_pointer(l, SpvStorageClassStorageBuffer, block);
        HDI_LOWER_ADD(l, &l->globals, SpvOpVariable, pointer, image->variable, SpvStorageClassStorageBuffer);
        if (image->variable < l->bound) {
            l->gone[image->variable] = 2; /* it stands here now, with its name and place */
        } else {
            HDI_LOWER_ADD(l, &l->decorations, SpvOpDecorate, image->variable, SpvDecorationDescriptorSet, image->set);
            HDI_LOWER_ADD(l, &l->decorations, SpvOpDecorate, image->variable, SpvDecorationBinding, image->binding);
        }
    }
    for (uint32_t i = 0; i < l->image_count; i++)
        if (l->images[i].aliased && !is_aliased(l, l->images[i].variable))
            HDI_LOWER_ADD(l, &l->decorations, SpvOpDecorate, l->images[i].variable, SpvDecorationAliased);
}

/* The type of a value; 0: not known. */
uint32_t hdi_image_type_of(const hdi_lowering *l, uint32_t id) {
    const uint32_t *words = id < l->bound && l->at[id] ? l->words + l->at[id] : NULL;
    const hdi_spirv_op *row = words ? hdi_spirv_op_row(hdi_lower_opcode(words)) : NULL;
    const bool typed = row ? row->operands[0] == 't' && row->operands[1] == 'r'
                           : words && hdi_spirv_lowered_operands(hdi_lower_opcode(words)) &&
                                 hdi_spirv_lowered_operands(hdi_lower_opcode(words))[0] == 't';
    return typed && hdi_lower_length(words) > 2 ? words[1] : 0;
}

/* A component of a constant that steps on along an axis, as an unsigned number; 0 where there is none. */
uint32_t hdi_image_step(hdi_lowering *l, uint32_t offset, uint32_t axis) {
    uint32_t count;
    const uint32_t part = offset ? component_of(l, hdi_image_type_of(l, offset), &count) : 0;
    return part ? as_type(l, component(l, part, count, offset, axis), part, hdi_lower_uint(l)) : 0;
}

/* ---- reads and writes ---- */

/* Coordinates that are integers, as unsigned ones, and whether they lie within. `sample`: the number of one, where the
 * image has several, and its type. */
static uint32_t index_within(hdi_lowering *l, const hdi_lower_image *image, uint32_t coordinates, uint32_t type,
                             uint32_t offset, const uint32_t *sample, uint32_t *out_inside) {
    uint32_t at[MOST_AXES] = { 0 }, lengths[MOST_AXES], count, inside = 0;
    const uint32_t part = component_of(l, type, &count);
    for (uint32_t axis = 0; axis < image->axes; axis++) {
        const bool samples = axis < image->samples;
        at[axis] = samples ? as_type(l, sample[0], sample[1], hdi_lower_uint(l))
                           : as_type(l, component(l, part, count, coordinates, axis - image->samples), part,
                                     hdi_lower_uint(l));
        const bool steps = !samples && axis < image->axes - image->layers;
        const uint32_t step = steps ? hdi_image_step(l, offset, axis - image->samples) : 0;
        if (step) at[axis] = HDI_LOWER_MAKE(l, SpvOpIAdd, hdi_lower_uint(l), at[axis], step);
        lengths[axis] = length_along(l, image, axis);
        const uint32_t below = HDI_LOWER_MAKE(l, SpvOpULessThan, bool_type(l), at[axis], lengths[axis]);
        inside = inside ? HDI_LOWER_MAKE(l, SpvOpLogicalAnd, bool_type(l), inside, below) : below;
    }
    *out_inside = inside;
    return hdi_texel_index(l, image, at, lengths);
}

/* Returns a value of the type from components, and ends the function. */
void hdi_image_give(hdi_lowering *l, uint32_t type, uint32_t count, const uint32_t *parts) {
    const uint32_t value =
        count == 1 ? parts[0]
                   : hdi_lower_make(l, SpvOpCompositeConstruct, type, parts, HDI_MIN(count, MOST_CHANNELS));
    HDI_LOWER_ADD(l, &l->made, SpvOpReturnValue, value);
    hdi_lower_add(l, &l->made, SpvOpFunctionEnd, NULL, 0);
}

/* ---- functions: what a read, a write, a texel's pointer, a size or a sampler is ---- */

static uint32_t make_read(hdi_lowering *l, const hdi_lower_image *image, const hdi_lower_made *key, uint32_t count) {
    const uint32_t types[] = { key->coordinates, key->sample };
    uint32_t given[2], inside, parts[MOST_CHANNELS];
    const uint32_t function = hdi_lower_begin(l, key->value, types, 1 + image->samples, given);
    const uint32_t index = index_within(l, image, given[0], types[0], key->offset, (uint32_t[]){ given[1], types[1] },
                                        &inside);
    const uint32_t texel = HDI_LOWER_MAKE(l, SpvOpSelect, hdi_lower_uint(l), inside, index, number(l, 0));
    hdi_texel_decode(l, image, texel, parts);
    for (uint32_t c = 0; c < MOST_CHANNELS; c++)
        parts[c] = HDI_LOWER_MAKE(l, SpvOpSelect, image->component, inside, parts[c],
                                  component_number(l, image, 0));
    hdi_image_give(l, key->value, count, parts);
    return function;
}

static uint32_t make_write(hdi_lowering *l, const hdi_lower_image *image, const hdi_lower_made *key, uint32_t count) {
    const uint32_t nothing = hdi_lower_once(l, SpvOpTypeVoid, 0, NULL, 0),
                   types[] = { key->coordinates, key->value, key->sample };
    uint32_t given[3], inside, parts[MOST_CHANNELS];
    const uint32_t function = hdi_lower_begin(l, nothing, types, 2 + image->samples, given);
    const uint32_t index = index_within(l, image, given[0], types[0], 0, (uint32_t[]){ given[2], types[2] }, &inside),
                   within = l->next++, merge = l->next++;
    for (uint32_t c = 0; c < image->components; c++) parts[c] = component(l, image->component, count, given[1], c);
    HDI_LOWER_ADD(l, &l->made, SpvOpSelectionMerge, merge, SpvSelectionControlMaskNone);
    HDI_LOWER_ADD(l, &l->made, SpvOpBranchConditional, inside, within, merge);
    HDI_LOWER_ADD(l, &l->made, SpvOpLabel, within);
    for (uint32_t i = 0; i < image->texel_elements; i++) {
        const uint32_t element = hdi_texel_encode(l, image, parts, i);
        HDI_LOWER_ADD(l, &l->made, SpvOpStore, hdi_texel_element(l, image, index, i), element);
    }
    HDI_LOWER_ADD(l, &l->made, SpvOpBranch, merge);
    HDI_LOWER_ADD(l, &l->made, SpvOpLabel, merge);
    hdi_lower_add(l, &l->made, SpvOpReturn, NULL, 0);
    hdi_lower_add(l, &l->made, SpvOpFunctionEnd, NULL, 0);
    return function;
}

static uint32_t make_index(hdi_lowering *l, const hdi_lower_image *image, const hdi_lower_made *key) {
    const uint32_t types[] = { key->coordinates, key->sample };
    uint32_t given[2], inside;
    const uint32_t function = hdi_lower_begin(l, hdi_lower_uint(l), types, 1 + image->samples, given);
    const uint32_t index = index_within(l, image, given[0], types[0], 0, (uint32_t[]){ given[1], types[1] }, &inside);
    const uint32_t texel = HDI_LOWER_MAKE(l, SpvOpSelect, hdi_lower_uint(l), inside, index, number(l, 0));
    hdi_image_give(l, hdi_lower_uint(l), 1, &texel);
    return function;
}

static uint32_t make_size(hdi_lowering *l, const hdi_lower_image *image, uint32_t result, uint32_t part,
                          uint32_t count) {
    uint32_t lengths[MOST_AXES] = { 0 };
    const uint32_t function = hdi_lower_begin(l, result, NULL, 0, NULL);
    for (uint32_t axis = 0; axis < image->axes - image->samples; axis++)
        lengths[axis] = as_type(l, length_along(l, image, axis + image->samples), hdi_lower_uint(l), part);
    if (image->cube && count > 2) /* how many cubes there are */
        lengths[2] =
            as_type(l, HDI_LOWER_MAKE(l, SpvOpUDiv, hdi_lower_uint(l), length_along(l, image, 2), number(l, 6)),
                    hdi_lower_uint(l), part);
    hdi_image_give(l, result, count, lengths);
    return function;
}

static uint32_t make_samples(hdi_lowering *l, const hdi_lower_image *image, uint32_t result) {
    const uint32_t function = hdi_lower_begin(l, result, NULL, 0, NULL);
    const uint32_t count = image->samples ? length_along(l, image, 0) : number(l, 1);
    const uint32_t value = as_type(l, count, hdi_lower_uint(l), result);
    hdi_image_give(l, result, 1, &value);
    return function;
}

/* ---- instructions ---- */

/* What an access is given: which image of an array, where, a value or steps, a sample's number, what is compared. */
enum { MOST_GIVEN = 5 };
typedef struct use {
    const hdi_lower_image *image;
    uint32_t sampler_set, sampler_binding;
    uint32_t offset; /* a constant by which it steps on; 0: none */
    uint32_t moved;  /* or a value; 0: none */
    uint32_t sample; /* the number of one, where the image has several; 0: it has not */
    uint32_t gathered; /* which component is gathered */
    uint32_t reference; /* the value that texels are compared with; 0: they are not */
    uint32_t index, count; /* the value that chooses among so many images, of which this is the first; 0: none does */
} use;

/* A pointer that goes on from another by indices; NULL: it is none. */
static const uint32_t *chain_at(const hdi_lowering *l, uint32_t id) {
    const uint32_t *chain = hdi_lower_def(l, id, SpvOpAccessChain, 5);
    return chain ? chain : hdi_lower_def(l, id, SpvOpInBoundsAccessChain, 5);
}

/* The sampler of a variable, or of an array of them. */
static const hdi_lower_sampler *sampler_of(const hdi_lowering *l, const uint32_t *load) {
    const uint32_t *chain = load ? chain_at(l, load[3]) : NULL;
    const uint32_t variable = chain ? chain[3] : load ? load[3] : 0;
    for (uint32_t i = 0; i < l->sampler_count; i++)
        if (l->samplers[i].variable == variable) return &l->samplers[i];
    return NULL;
}

/* The image that a pointer into an array of images leads to. */
static bool find_element(const hdi_lowering *l, const uint32_t *chain, use *out) {
    const uint32_t *index = hdi_lower_def(l, chain[4], SpvOpConstant, 4);
    for (uint32_t i = 0; i < l->image_array_count; i++) {
        const hdi_lower_image_array *array = &l->image_arrays[i];
        if (array->variable != chain[3] || hdi_lower_length(chain) != 5) continue;
        out->image = &l->images[array->first + (index ? HDI_MIN(index[3], array->count - 1) : 0)];
        if (!index) out->index = chain[4], out->count = array->count;
    }
    return out->image != NULL;
}

/* Follows a loaded image, or a pointer to one, back to its variable. */
static bool find_use(const hdi_lowering *l, uint32_t id, use *out) {
    enum { MOST_STEPS = 8 };
    *out = (use){ .sampler_set = HDI_SPIRV_NONE, .sampler_binding = HDI_SPIRV_NONE };
    for (uint32_t step = 0; step < MOST_STEPS && id < l->bound; step++) {
        for (uint32_t i = 0; i < l->image_count; i++)
            if (l->images[i].variable == id) out->image = &l->images[i];
        const uint32_t *chain = chain_at(l, id);
        if (out->image || (chain && find_element(l, chain, out))) {
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
        const hdi_lower_sampler *by = sampler_of(l, sampler);
        if (by) out->sampler_set = by->set, out->sampler_binding = by->binding;
        id = words[3];
    }
    return false;
}

/* What may be said of an access: levels, of which there is one, and gradients, texels to step on by, and who sees it
 * when. */
static bool operands_fit(const uint32_t *words, uint32_t at, bool gathers) {
    const uint32_t mask = hdi_lower_length(words) > at ? words[at] : 0;
    return (mask & ~(uint32_t)(SpvImageOperandsBiasMask | SpvImageOperandsConstOffsetMask | SpvImageOperandsLodMask |
                               SpvImageOperandsGradMask | SpvImageOperandsMinLodMask | SpvImageOperandsSampleMask |
                               (gathers ? SpvImageOperandsOffsetMask : 0) | 0x100 | 0x200 | 0x400 | 0x800 | 0x1000 |
                               0x2000)) == 0;
}

/* By what a read or a sample steps on, texel by texel along each axis: a constant, or a value. */
static void find_offset(const hdi_lowering *l, const uint32_t *words, uint32_t at, use *of) {
    const uint32_t length = hdi_lower_length(words), mask = length > at ? words[at] : 0;
    const uint32_t place = at + 1 + (mask & SpvImageOperandsBiasMask ? 1 : 0) +
                           (mask & SpvImageOperandsLodMask ? 1 : 0) + (mask & SpvImageOperandsGradMask ? 2 : 0);
    const bool some = mask & (SpvImageOperandsConstOffsetMask | SpvImageOperandsOffsetMask);
    const uint32_t id = some && place < length && words[place] < l->bound ? words[place] : 0;
    if (id && l->at[id] < l->functions) of->offset = id;
    else of->moved = id;
}

/* The number of the sample that it is about; false: it has one and the image has no samples, or the other way round. */
static bool find_sample(const hdi_lowering *l, const uint32_t *words, uint32_t at, use *of) {
    const uint32_t length = hdi_lower_length(words), mask = length > at ? words[at] : 0;
    uint32_t place = at + 1;
    for (uint32_t bit = 1; bit < SpvImageOperandsSampleMask; bit *= 2)
        place += mask & bit ? 1u + (bit == SpvImageOperandsGradMask) : 0;
    if (mask & SpvImageOperandsSampleMask && place < length) of->sample = words[place];
    const uint32_t *type = of->sample ? hdi_lower_def(l, hdi_image_type_of(l, of->sample), SpvOpTypeInt, 4) : NULL;
    return of->image->samples ? type && type[2] == 32 : of->sample == 0;
}

static bool is_size(uint32_t opcode) {
    return opcode == SpvOpImageQuerySize || opcode == SpvOpImageQuerySizeLod || opcode == SpvOpImageQuerySamples;
}

static bool is_gather(uint32_t opcode) { return opcode == SpvOpImageGather || opcode == SpvOpImageDrefGather; }

static bool is_comparison(uint32_t opcode) {
    return opcode == SpvOpImageSampleDrefImplicitLod || opcode == SpvOpImageSampleDrefExplicitLod ||
           opcode == SpvOpImageDrefGather;
}

/* Levels say nothing, so a sample with one is the same as without. */
static uint32_t without_level(uint32_t opcode) {
    switch (opcode) {
    case SpvOpImageSampleImplicitLod: return SpvOpImageSampleExplicitLod;
    case SpvOpImageSampleDrefImplicitLod: return SpvOpImageSampleDrefExplicitLod;
    case SpvOpImageFetch: return SpvOpImageRead;
    default: return opcode;
    }
}

static bool is_sample(uint32_t opcode) {
    return without_level(opcode) == SpvOpImageSampleExplicitLod ||
           without_level(opcode) == SpvOpImageSampleDrefExplicitLod;
}

/* Do the types of coordinates, value and steps go with the image? */
static bool types_fit(hdi_lowering *l, const hdi_lower_made *key, const use *of, uint32_t parts) {
    uint32_t count, has = 0, steps = 0;
    const hdi_lower_image *image = of->image;
    const uint32_t value = component_of(l, key->value, &count),
                   axis = key->coordinates ? component_of(l, key->coordinates, &has) : 0;
    const bool sizes = is_size(key->opcode);
    const bool samples = is_sample(key->opcode) || is_gather(key->opcode);
    const uint32_t *whole = hdi_lower_def(l, axis, SpvOpTypeInt, 4),
                   *real_axis = hdi_lower_def(l, axis, SpvOpTypeFloat, 3);
    const bool axis_fits = samples ? real_axis && real_axis[2] == 32 : whole && whole[2] == 32;
    if (!sizes && (!axis_fits || has < image->axes - image->samples + (samples && image->cubes))) return false;
    if (samples && image->samples) return false;
    if (of->reference && (image->component != hdi_lower_float(l) ||
                          hdi_image_type_of(l, of->reference) != hdi_lower_float(l)))
        return false;
    const uint32_t given = of->offset ? of->offset : of->moved;
    const uint32_t step_part = given ? component_of(l, hdi_image_type_of(l, given), &steps) : 0;
    const uint32_t *step = hdi_lower_def(l, step_part, SpvOpTypeInt, 4);
    const uint32_t flat = image->axes - image->layers - image->samples;
    if (given && (!step || step[2] != 32 || steps < flat || image->cube)) return false;
    if (key->opcode == SpvOpImageTexelPointer) return true;
    const uint32_t *size = hdi_lower_def(l, value, SpvOpTypeInt, 4);
    if (sizes) return size && size[2] == 32 && count == parts;
    const bool enough = key->opcode == SpvOpImageWrite ? count >= parts : count == parts || (!samples && count == 1);
    return value == image->component && enough;
}

static uint32_t make_function(hdi_lowering *l, const hdi_lower_made *key, const use *of, const hd_image_desc *sampler) {
    const hdi_lower_image *image = of->image;
    uint32_t count;
    const uint32_t part = component_of(l, key->value, &count);
    switch (key->opcode) {
    case SpvOpImageQuerySamples: return make_samples(l, image, key->value);
    case SpvOpImageQuerySize: case SpvOpImageQuerySizeLod: return make_size(l, image, key->value, part, count);
    case SpvOpImageTexelPointer: return make_index(l, image, key);
    case SpvOpImageGather:
    case SpvOpImageDrefGather: return hdi_gather_make(l, image, sampler, key);
    case SpvOpImageSampleExplicitLod:
    case SpvOpImageSampleDrefExplicitLod: return hdi_sample_make(l, image, sampler, key);
    case SpvOpImageWrite: return make_write(l, image, key, count);
    default: return make_read(l, image, key, count);
    }
}

/* The function for the instruction; made where there is none of the kind yet. 0: it was refused. */
static uint32_t function_for(hdi_lowering *l, const uint32_t *words, const use *of, uint32_t coordinates,
                             uint32_t value) {
    const uint32_t opcode = hdi_lower_opcode(words);
    const bool gathers = is_gather(opcode), samples = is_sample(opcode);
    const hd_image_desc *wish = hdi_lower_wish(l, of->sampler_set, of->sampler_binding), plain = { 0 };
    const hd_image_desc *sampler = wish ? wish : &plain;
    const uint32_t compare = of->reference ? 4u * sampler->compare : 0;
    const hdi_lower_made key = { .opcode = without_level(opcode),
                                 .image = of->image->variable,
                                 .coordinates = coordinates,
                                 .value = value,
                                 .offset = of->offset,
                                 .moved = of->moved ? hdi_image_type_of(l, of->moved) : 0,
                                 .component = of->gathered,
                                 .sample = of->sample ? hdi_image_type_of(l, of->sample) : 0,
                                 .sampler = samples || gathers ? compare + sampler->filter * 2u + sampler->wrap : 0 };
    const uint32_t before = hdi_lower_made_before(l, &key);
    if (before) return before;
    const hdi_lower_image *image = of->image;
    const bool sizes = is_size(opcode);
    const uint32_t own = image->axes - image->samples - (image->cube && !image->cubes);
    const uint32_t parts = opcode == SpvOpImageQuerySamples ? 1
                           : sizes                          ? own
                           : opcode == SpvOpImageWrite      ? image->components
                           : samples && of->reference       ? 1
                                                            : MOST_CHANNELS;
    const bool real_value = image->component == hdi_lower_float(l);
    if (!types_fit(l, &key, of, parts) || (samples && sampler->filter == HD_FILTER_LINEAR && !real_value))
        return hdi_lower_refuse(l, words,
                                "its coordinates or components do not go with the image, or integers are mixed"),
               0;
    if (l->made_count == HDI_LOWER_MAX_FUNCTIONS)
        return hdi_lower_refuse(l, words, "more than %d ways to look at images", HDI_LOWER_MAX_FUNCTIONS), 0;
    hdi_lower_made *made = &l->functions_made[l->made_count++];
    *made = key;
    return made->function = make_function(l, &key, of, sampler);
}

/* A function that is given an index and what else an access of an image takes, and has a case for each image of the
 * array: the last one also for an index that is too large. 0: it was refused. */
static uint32_t choose(hdi_lowering *l, const uint32_t *words, const use *of, const uint32_t given[MOST_GIVEN],
                       uint32_t value) {
    const bool writes = hdi_lower_opcode(words) == SpvOpImageWrite;
    uint32_t functions[HDI_SPIRV_MAX_BINDINGS], labels[HDI_SPIRV_MAX_BINDINGS];
    uint32_t types[MOST_GIVEN], ids[MOST_GIVEN], given_count = 0;
    const uint32_t *number_type = hdi_lower_def(l, hdi_image_type_of(l, of->index), SpvOpTypeInt, 4);
    if (!number_type || number_type[2] != 32)
        return hdi_lower_refuse(l, words, "an image of an array is chosen by what is no number of 32 bits"), 0;
    for (uint32_t k = 0; k < of->count && !l->status; k++) {
        use one = *of;
        one.image += k;
        functions[k] = function_for(l, words, &one, given[1] ? hdi_image_type_of(l, given[1]) : 0, value);
    }
    if (l->status) return 0;
    if (l->made_count == HDI_LOWER_MAX_FUNCTIONS)
        return hdi_lower_refuse(l, words, "more than %d ways to look at images", HDI_LOWER_MAX_FUNCTIONS), 0;
    l->functions_made[l->made_count++] = (hdi_lower_made){ 0 };
    for (uint32_t i = 0; i < MOST_GIVEN; i++)
        if (given[i]) types[given_count++] = hdi_image_type_of(l, given[i]);
    const bool points = hdi_lower_opcode(words) == SpvOpImageTexelPointer;
    const uint32_t result = writes ? hdi_lower_once(l, SpvOpTypeVoid, 0, NULL, 0)
                            : points ? hdi_lower_uint(l) : words[1];
    const uint32_t function = hdi_lower_begin(l, result, types, given_count, ids), merge = l->next++;
    hdi_lower_begin_switch(l, merge, ids[0], NULL, of->count, labels);
    for (uint32_t k = 0; k < of->count; k++) {
        HDI_LOWER_ADD(l, &l->made, SpvOpLabel, labels[k]);
        uint32_t all[3 + MOST_GIVEN] = { result, l->next++, functions[k] }, words_count = 3;
        for (uint32_t i = 1; i < given_count; i++) all[words_count++] = ids[i];
        hdi_lower_add(l, &l->made, SpvOpFunctionCall, all, words_count);
        if (writes) hdi_lower_add(l, &l->made, SpvOpReturn, NULL, 0);
        else HDI_LOWER_ADD(l, &l->made, SpvOpReturnValue, all[1]);
    }
    hdi_lower_end_switch(l, merge);
    hdi_lower_add(l, &l->made, SpvOpFunctionEnd, NULL, 0);
    return function;
}

/* A pointer to a texel of one integer: what atomic operations are about. */
static bool point(hdi_lowering *l, const uint32_t *words, const use *of) {
    const uint32_t *pointer = hdi_lower_def(l, words[1], SpvOpTypePointer, 4);
    if (!pointer || pointer[3] != of->image->element || !hdi_texel_is_number(of->image))
        return hdi_lower_refuse(l, words, "its texels are no single integers of 32 bits");
    use at = *of;
    at.sample = of->image->samples ? words[5] : 0;
    const uint32_t *sample = at.sample ? hdi_lower_def(l, hdi_image_type_of(l, at.sample), SpvOpTypeInt, 4) : NULL;
    if (of->image->samples && (!sample || sample[2] != 32))
        return hdi_lower_refuse(l, words, "its sample is no number of 32 bits");
    const uint32_t index = l->next++;
    if (of->count) {
        const uint32_t given[MOST_GIVEN] = { of->index, words[4], 0, at.sample };
        uint32_t all[3 + MOST_GIVEN] = { hdi_lower_uint(l), index, choose(l, words, &at, given, 0) }, count = 3;
        for (size_t i = 0; i < HDI_COUNT(given); i++)
            if (given[i]) all[count++] = given[i];
        hdi_lower_add(l, &l->code, SpvOpFunctionCall, all, count);
        return hdi_lower_choose_texel(l, words, of->image, of->count, of->index, index);
    }
    const uint32_t function = function_for(l, words, &at, hdi_image_type_of(l, words[4]), 0);
    const uint32_t call[] = { hdi_lower_uint(l), index, function, words[4], at.sample };
    hdi_lower_add(l, &l->code, SpvOpFunctionCall, call, 4 + of->image->samples);
    HDI_LOWER_ADD(l, &l->code, SpvOpAccessChain, words[1], words[2], of->image->variable, number(l, 0), index);
    return true;
}

bool hdi_lower_image_use(hdi_lowering *l, const uint32_t *words) {
    const uint32_t opcode = hdi_lower_opcode(words), length = hdi_lower_length(words);
    const bool pointers = opcode == SpvOpPtrAccessChain || opcode == SpvOpInBoundsPtrAccessChain ||
                          opcode == SpvOpConvertUToPtr || opcode == SpvOpConvertPtrToU;
    const bool about = hdi_spirv_lowered_operands(opcode) && !pointers;
    const hdi_spirv_op *row = hdi_spirv_op_row(opcode);
    const bool typed = row && row->operands[0] == 't' && length > 2;
    const bool carried =
        typed && words[1] < l->bound && l->gone[words[1]] == 1; /* a loaded image: looked up when used */
    if (carried && opcode != SpvOpLoad && opcode != SpvOpCopyObject && opcode != SpvOpAccessChain &&
        opcode != SpvOpInBoundsAccessChain)
        return hdi_lower_refuse(l, words,
                                "an image or sampler that goes other ways than to where it is used; let the "
                                "compiler optimise (-O)");
    const bool some = l->image_count || l->sampler_count;
    if (carried || (some && (opcode == SpvOpImage || opcode == SpvOpSampledImage))) {
        if (length > 2 && words[2] < l->bound) l->gone[words[2]] = 1; /* with what is said of it */
        return true;
    }
    if (!about || !some) return false;
    const bool writes = opcode == SpvOpImageWrite, gathers = is_gather(opcode), compares = is_comparison(opcode);
    if (length < (writes || opcode == SpvOpImageQuerySize || opcode == SpvOpImageQueryLevels ||
                          opcode == SpvOpImageQuerySamples ? 4u : gathers || compares ? 6u : 5u))
        return false;
    use of;
    if (!find_use(l, words[writes ? 1 : 3], &of)) return hdi_lower_refuse(l, words, "its image is no variable");
    if (opcode == SpvOpImageTexelPointer) return length < 6 ? false : point(l, words, &of);
    if (opcode == SpvOpImageQueryLevels) {
        HDI_LOWER_ADD(l, &l->code, SpvOpCopyObject, words[1], words[2], hdi_lower_number(l, words[1], 1));
        return true;
    }
    const bool sizes = is_size(opcode);
    const uint32_t said = writes ? 4 : gathers || compares ? 6 : 5; /* where the operands begin */
    if (!sizes && !operands_fit(words, said, gathers))
        return hdi_lower_refuse(l, words, "image operands 0x%x", words[said]);
    if (!sizes && !writes) find_offset(l, words, said, &of);
    if (!sizes && !find_sample(l, words, said, &of))
        return hdi_lower_refuse(l, words, "it says which sample, or the image has several: one of both");
    const bool picks = gathers && !compares;
    const uint32_t *component = picks ? hdi_lower_def(l, words[5], SpvOpConstant, 4) : NULL;
    if (picks && (!component || component[3] >= MOST_CHANNELS))
        return hdi_lower_refuse(l, words, "its component is no constant from 0 to 3");
    of.gathered = component ? component[3] : 0;
    of.reference = compares ? words[5] : 0;
    const uint32_t at = sizes ? 0 : words[writes ? 2 : 4], value = writes ? hdi_image_type_of(l, words[3]) : words[1];
    const uint32_t given[MOST_GIVEN] = { of.index, at, writes ? words[3] : of.moved, of.sample, of.reference };
    const uint32_t function = of.count ? choose(l, words, &of, given, value)
                                       : function_for(l, words, &of, at ? hdi_image_type_of(l, at) : 0, value);
    uint32_t call[3 + HDI_COUNT(given)] = { writes ? hdi_lower_once(l, SpvOpTypeVoid, 0, NULL, 0) : words[1],
                                            writes ? l->next++ : words[2], function }, count = 3;
    for (size_t i = 0; i < HDI_COUNT(given); i++)
        if (given[i]) call[count++] = given[i];
    hdi_lower_add(l, &l->code, SpvOpFunctionCall, call, count);
    return true;
}
