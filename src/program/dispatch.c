/* dispatch.c: the launch of a user's kernel as a node of a program. */
#include "program/program.h"

/* A node's result is all outputs, one behind the other; of one output, that one as it is. */
typedef struct launch_node {
    hdi_custom custom;
    hd_value   operands[16];
    uint32_t   operand_count, output_count;
    hd_dtype   dtype;
    hd_shape   shape;
} launch_node;

void hdi_custom_take_kernel(hdi_custom *custom, const hdi_custom *from) {
    custom->kernel = from->kernel;
    custom->kernel_bindings = from->kernel_bindings;
    custom->kernel_push_bytes = from->kernel_push_bytes;
    memcpy(custom->kernel_images, from->kernel_images, sizeof custom->kernel_images);
}

bool hdi_dispatch_find(void *user, uint64_t hash, hdi_custom *out_custom) {
    const hd_program *program = user;
    for (uint32_t i = 0; i < program->node_count; i++) {
        const hdi_custom *custom = program->nodes[i].op == HDI_OP_DISPATCH ? program->nodes[i].attrs.custom : NULL;
        if (!custom || custom->kernel_hash != hash) continue;
        hdi_custom_take_kernel(out_custom, custom);
        return true;
    }
    return false;
}

/* All but operands and result. False: it is refused, and the program says why. */
static bool begin(hd_error *error, const hdi_custom *kernel, const hd_dispatch_desc *desc, launch_node *out) {
    hdi_custom *custom = &out->custom;
    *out = (launch_node){ .custom = *kernel, .dtype = HD_DTYPE_NONE };
    if (!desc || (desc->input_count && !desc->inputs) || (desc->push_bytes && !desc->push) ||
        (desc->binding_count && !desc->bindings)) {
        hdi_fail(error, HD_STATUS_NULL_POINTER, "dispatch: the desc, its inputs, bindings or push constants are NULL");
        return false;
    }
    if (desc->push_bytes > sizeof custom->push_words || desc->binding_count > HDI_COUNT(custom->bindings)) {
        hdi_fail(error, HD_STATUS_LIMIT, "dispatch: %u push bytes and %u bindings; the limits are %zu and %zu",
                 desc->push_bytes, desc->binding_count, sizeof custom->push_words, HDI_COUNT(custom->bindings));
        return false;
    }
    custom->push_bytes = desc->push_bytes;
    if (desc->push_bytes) memcpy(custom->push_words, desc->push, desc->push_bytes);
    memcpy(custom->groups, desc->groups, sizeof custom->groups);
    return true;
}

/* Every binding that the kernel uses holds something, and what it writes is an output. */
static bool check_bindings(hd_error *error, const hdi_custom *kernel, const hd_dispatch_desc *desc) {
    for (uint32_t i = 0; i < desc->binding_count && i < kernel->kernel_bindings; i++) {
        const bool output = desc->bindings[i].dtype != HD_DTYPE_NONE, held = output || desc->bindings[i].value;
        const bool used = kernel->kernel_uses >> i & 1, written = kernel->kernel_writes >> i & 1;
        if ((held || !used) && (output || !written)) continue;
        hdi_fail(error, HD_STATUS_ARGUMENT_COUNT,
                 held ? "dispatch: the kernel writes binding %u: it is an output"
                      : "dispatch: the kernel uses binding %u, and nothing is given for it",
                 i);
        return false;
    }
    return true;
}

static void add_bindings(const hd_dispatch_desc *desc, launch_node *node) {
    uint64_t end = 0;
    for (uint32_t i = 0; i < desc->binding_count; i++) {
        const hd_dispatch_binding *from = &desc->bindings[i];
        hdi_custom_binding *to = &node->custom.bindings[node->custom.binding_count++];
        if (from->value) {
            node->operands[node->operand_count++] = from->value;
            to->operand = node->operand_count;
        }
        if (from->dtype == HD_DTYPE_NONE) continue;
        to->offset = hdi_divide_up(end, HDI_PART_ALIGN) * HDI_PART_ALIGN;
        to->bytes = hd_tensor_bytes(from->dtype, from->shape);
        end = to->offset + to->bytes;
        node->dtype = node->output_count ? HD_U8 : from->dtype;
        node->shape = node->output_count ? HD_SHAPE((int64_t)end) : from->shape;
        node->output_count++;
    }
}

/* ---- images ---- */

/* The lengths of an image's axes go behind the kernel's own push constants. */
static bool tell_lengths(hd_error *error, hdi_custom *custom, uint32_t binding, hd_dtype dtype, hd_shape shape) {
    const hdi_custom_image *image = &custom->kernel_images[binding];
    const bool bare = image->channels == 1 && shape.rank == image->axes;
    const bool fits = bare || (shape.rank == image->axes + 1 && shape.dims[image->axes] == image->channels);
    if (dtype != image->dtype || !fits) {
        hdi_fail(error, dtype != image->dtype ? HD_STATUS_TYPE : HD_STATUS_SHAPE,
                 "dispatch: binding %u is an image: a tensor of %s with %u axes, the innermost first in memory, and %u "
                 "channel%s last",
                 binding, hd_dtype_name(image->dtype), image->axes, image->channels, image->channels == 1 ? "" : "s");
        return false;
    }
    for (uint32_t axis = 0; axis < image->axes; axis++)
        custom->push_words[image->push_word + axis] = (uint32_t)shape.dims[image->axes - 1 - axis];
    custom->push_bytes = custom->kernel_push_bytes;
    return true;
}

/* What each binding holds tells how long images are. Whether there is as much is the node's rule to say. */
static bool tell_images(hd_program *program, uint32_t tag, const hd_dispatch_desc *desc, launch_node *node) {
    hdi_custom *custom = &node->custom;
    const bool own = custom->push_bytes == custom->kernel_own_push_bytes;
    for (uint32_t i = 0; i < custom->kernel_bindings && own; i++) {
        if (custom->kernel_images[i].axes == 0) continue;
        const hd_dispatch_binding last = { 0, desc->out_dtype, desc->out_shape };
        const hd_dispatch_binding *held = i < desc->binding_count ? &desc->bindings[i]
                                        : !desc->binding_count && i == desc->input_count ? &last : NULL;
        const hd_value value = held ? held->value : i < desc->input_count ? desc->inputs[i] : 0;
        const hdi_node *from = hdi_program_node(program, hdi_value_id(tag, value));
        const bool output = held && held->dtype != HD_DTYPE_NONE;
        if (!output && !from) continue;
        if (!tell_lengths(&program->error, custom, i, output ? held->dtype : from->dtype,
                          output ? held->shape : from->shape))
            return false;
    }
    return true;
}

static hd_value put(hd_program *handle, const launch_node *node) {
    return hdi_program_put(handle, &(hdi_node){
        .op = HDI_OP_DISPATCH, .dtype = node->dtype, .shape = node->shape, .attrs = { .custom = &node->custom },
        .operands = node->operands, .operand_count = node->operand_count });
}

bool hdi_dispatch_all(hd_program *handle, const hdi_custom *kernel, const hd_dispatch_desc *desc,
                      hd_value *out_values) {
    launch_node node;
    hd_program *program = handle;
    uint32_t tag;
    if (!hdi_program_see(&program, &tag) || !begin(&program->error, kernel, desc, &node) ||
        !check_bindings(&program->error, kernel, desc) || !tell_images(program, tag, desc, &node)) return false;
    add_bindings(desc, &node);
    if (node.output_count == 0)
        hdi_fail(&program->error, HD_STATUS_ARGUMENT_COUNT, "dispatch: no binding is an output");
    const hd_value value = node.output_count ? put(handle, &node) : 0;
    for (uint32_t i = 0; i < desc->binding_count && value; i++) {
        const hd_dispatch_binding *binding = &desc->bindings[i];
        if (binding->dtype == HD_DTYPE_NONE) continue;
        out_values[i] = node.output_count == 1 ? value : hdi_program_put(handle, &(hdi_node){
            .op = HDI_OP_PART, .dtype = binding->dtype, .shape = binding->shape, .operands = &value, .operand_count = 1,
            .attrs = { .ints = { (int64_t)node.custom.bindings[i].offset } } });
    }
    return value != 0;
}

hd_value hdi_dispatch(hd_program *handle, const hdi_custom *kernel, const hd_dispatch_desc *desc) {
    launch_node node;
    hd_program *program = handle;
    uint32_t tag;
    if (!hdi_program_see(&program, &tag) || !begin(&program->error, kernel, desc, &node)) return 0;
    if (desc->binding_count > 0) {
        hd_value values[HDI_COUNT(node.custom.bindings)] = { 0 };
        if (!hdi_dispatch_all(handle, kernel, desc, values)) return 0;
        for (uint32_t i = 0; i < HDI_COUNT(values); i++)
            if (values[i]) return values[i];
    }
    if (desc->input_count > HDI_COUNT(node.operands)) {
        hdi_fail(&program->error, HD_STATUS_ARGUMENT_COUNT, "dispatch: %u inputs; a kernel has at most 16 bindings",
                 desc->input_count);
        return 0;
    }
    if (!tell_images(program, tag, desc, &node)) return 0;
    if (desc->input_count) memcpy(node.operands, desc->inputs, desc->input_count * sizeof *node.operands);
    node.operand_count = desc->input_count;
    node.dtype = desc->out_dtype;
    node.shape = desc->out_shape;
    return put(handle, &node);
}

/* ---- is a node legal? It may come from a text ---- */

/* Parts of the result stand in order and apart, and one that begins as an operand is as long. */
static hd_status bindings_fit(const hd_program *program, const hdi_node *node, hd_error *error) {
    const hdi_custom *custom = node->attrs.custom;
    const uint64_t whole = hd_tensor_bytes(node->dtype, node->shape);
    uint64_t end = 0;
    if (custom->binding_count != custom->kernel_bindings)
        return hdi_fail(error, HD_STATUS_ARGUMENT_COUNT, "dispatch: %u bindings given, the kernel has %u",
                        custom->binding_count, custom->kernel_bindings);
    for (uint32_t i = 0; i < custom->binding_count; i++) {
        const hdi_custom_binding *binding = &custom->bindings[i];
        const bool named = binding->operand && binding->operand <= node->operand_count;
        const hd_value operand = named ? node->operands[binding->operand - 1] : 0;
        const hdi_node *from = hdi_program_node(program, operand);
        if (binding->operand && !from)
            return hdi_fail(error, HD_STATUS_UNKNOWN_VALUE, "dispatch: binding %u: there is no operand %u", i,
                            binding->operand);
        if (binding->bytes == 0) continue;
        const uint64_t from_bytes = from ? hd_tensor_bytes(from->dtype, from->shape) : binding->bytes;
        if (binding->offset < end || binding->offset % HDI_PART_ALIGN || binding->offset > whole ||
            binding->bytes > whole - binding->offset)
            return hdi_fail(error, HD_STATUS_SHAPE,
                            "dispatch: binding %u: bytes %llu to %llu are no part of the result", i,
                            (unsigned long long)binding->offset,
                            (unsigned long long)(binding->offset + binding->bytes));
        if (from_bytes != binding->bytes || (from && from_bytes % 4))
            return hdi_fail(error, HD_STATUS_SHAPE,
                            "dispatch: binding %u holds %llu bytes and begins with %llu: both are the same, in words "
                            "of 4", i, (unsigned long long)binding->bytes, (unsigned long long)from_bytes);
        end = binding->offset + binding->bytes;
    }
    return end ? HD_OK : hdi_fail(error, HD_STATUS_ARGUMENT_COUNT, "dispatch: no binding is an output");
}

/* An image's lengths, which are told in push constants, give the bytes that its binding holds. */
static hd_status images_fit(const hd_program *program, const hdi_node *node, hd_error *error) {
    const hdi_custom *custom = node->attrs.custom;
    for (uint32_t i = 0; i < custom->kernel_bindings && i < HDI_COUNT(custom->kernel_images); i++) {
        const hdi_custom_image *image = &custom->kernel_images[i];
        const hdi_custom_binding *binding = &custom->bindings[i];
        const uint32_t operand = custom->binding_count == 0 ? i : binding->operand - 1;
        const bool result = custom->binding_count ? binding->bytes != 0 : i == node->operand_count;
        const hd_value value = !result && operand < node->operand_count ? node->operands[operand] : 0;
        const hdi_node *from = result ? node : hdi_program_node(program, value);
        if (image->axes == 0 || !from) continue;
        const uint64_t held =
            result && custom->binding_count ? binding->bytes : hd_tensor_bytes(from->dtype, from->shape);
        uint64_t texels = 1;
        bool fits = true;
        for (uint32_t axis = 0; axis < image->axes; axis++)
            fits &= hdi_mul_u64(texels, custom->push_words[image->push_word + axis], &texels) && texels <= UINT32_MAX;
        const uint64_t bytes = fits ? texels * hd_dtype_bytes(image->dtype, image->channels) : 0;
        if (!fits || bytes / 4 > UINT32_MAX)
            return hdi_fail(error, HD_STATUS_LIMIT, "dispatch: binding %u: an image of 2^32 words or more", i);
        if (bytes != held)
            return hdi_fail(error, HD_STATUS_SHAPE,
                            "dispatch: binding %u holds %llu bytes, and its image is told to have %llu", i,
                            (unsigned long long)held, (unsigned long long)bytes);
    }
    return HD_OK;
}

hd_status hdi_dispatch_check(const hd_program *program, const hdi_node *node, hd_error *error) {
    const hdi_custom *custom = node->attrs.custom;
    uint32_t inputs = node->operand_count;
    if (!custom || !custom->kernel) return hdi_fail(error, HD_STATUS_NULL_POINTER, "dispatch: there is no kernel");
    if (custom->binding_count > 0) {
        const hd_status status = bindings_fit(program, node, error);
        if (status) return status;
    } else if (inputs + 1 != custom->kernel_bindings)
        return hdi_fail(error, HD_STATUS_ARGUMENT_COUNT,
                        "dispatch: %u inputs and 1 output given, the kernel has %u bindings", inputs,
                        custom->kernel_bindings);
    if (custom->push_bytes > sizeof custom->push_words || custom->push_bytes % 4 != 0)
        return hdi_fail(error, HD_STATUS_LIMIT, "dispatch: %u bytes of push constants: at most %zu, in words of 4",
                        custom->push_bytes, sizeof custom->push_words);
    if (custom->push_bytes != custom->kernel_push_bytes)
        return hdi_fail(error, HD_STATUS_ARGUMENT_COUNT,
                        "dispatch: %u bytes of push constants given, the kernel has %u", custom->push_bytes,
                        custom->kernel_push_bytes);
    const hd_status images = images_fit(program, node, error);
    if (images) return images;
    for (uint32_t i = 0; i < 3; i++)
        if (custom->groups[i] == 0)
            return hdi_fail(error, HD_STATUS_ZERO_SIZE, "dispatch: groups are [%u,%u,%u]: each is at least 1",
                            custom->groups[0], custom->groups[1], custom->groups[2]);
    return HD_OK;
}
