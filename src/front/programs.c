/* programs.c: programs and own kernels as objects of a context. Building itself is the program room's. */
#include "front/front.h"

/* ---- programs ---- */

/* The object itself; NULL, and the error kept, without memory. */
static hd_program *new_program(hd_context *context) {
    hd_error error = { 0 };
    hd_program *program = hdi_program_new(&context->allocator, context);
    if (!program) hdi_fail(&error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a program");
    else if (HDI_ADD(context, &context->programs, program, &error)) {
        hdi_program_free(program);
        program = NULL;
    }
    if (program) program->tag = hdi_program_new_tag();
    else hdi_context_keep(context, &error);
    return program;
}

hd_program *hd_program_create(hd_context *context) {
    if (!HDI_FIND(context)) return HDI_REFUSE(context), NULL;
    const hd_program *program = new_program(context);
    return program ? program->held.handle : NULL;
}

void hd_program_destroy(hd_program *program) {
    if (!HDI_FIND(program) || !hdi_context_remove(program->context, &program->held)) return;
    for (uint32_t i = 0; program->foreign_kernels && i < program->node_count; i++)
        if (program->nodes[i].op == HDI_OP_DISPATCH) hdi_user_kernel_release(program->nodes[i].attrs.custom->kernel);
    hdi_program_free(program);
}

hd_status hd_program_check(hd_program *program) {
    if (!HDI_FIND(program)) return HDI_REFUSE(program);
    hd_error error = { 0 };
    hd_status status = hdi_program_check(program, &error);
    return status ? hdi_context_keep(program->context, &error) : HD_OK;
}

hd_status hd_program_print(const hd_program *program, char *out_text, size_t room, size_t *out_needed) {
    if (!HDI_FIND(program)) return HDI_REFUSE(program);
    hdi_text text = { .allocator = &program->context->allocator };
    hdi_program_print(program, &text);
    hd_status status = hdi_text_out(&text, out_text, room, out_needed);
    hdi_text_free(&text);
    return status;
}

/* What a program knows of a kernel. */
static void tell_kernel(const hd_kernel *kernel, hdi_custom *out) {
    out->kernel = kernel->user;
    out->kernel_hash = kernel->user->hash;
    out->kernel_bindings = kernel->info.binding_count;
    out->kernel_push_bytes = kernel->user->info.push_bytes;
    out->kernel_own_push_bytes = kernel->user->info.own_push_bytes;
    for (uint32_t i = 0; i < kernel->info.binding_count; i++) {
        const hdi_spirv_image *image = &kernel->user->info.bindings[i].image;
        out->kernel_images[i] =
            (hdi_custom_image){ image->axes, image->channels, image->push_word, image->dtype };
        out->kernel_uses |= (uint32_t)kernel->user->info.bindings[i].used << i;
        out->kernel_writes |= (uint32_t)kernel->user->info.bindings[i].written << i;
    }
}

/* A living kernel of the context with this hash, for dispatch nodes in a program's text. */
static bool find_kernel(void *user, uint64_t hash, hdi_custom *out_custom) {
    hd_context *context = user;
    bool found = false;
    hdi_mutex_lock(&context->lock);
    for (hdi_link *at = context->kernels.next; at != &context->kernels && !found; at = at->next) {
        hd_kernel *kernel = HDI_OBJECT(at, hd_kernel, held.link);
        if (kernel->user->hash != hash) continue;
        tell_kernel(kernel, out_custom);
        found = true;
    }
    hdi_mutex_unlock(&context->lock);
    return found;
}

static hd_status read(hd_context *context, const char *text, size_t bytes, hdi_find_kernel find, void *user,
                      hd_program **out_program) {
    hd_program *program = new_program(context);
    if (!program) return HD_STATUS_OUT_OF_HOST_MEMORY;
    hd_error error = { 0 };
    hd_status status = hdi_program_parse(program, text, bytes, find, user, &error);
    for (uint32_t i = 0; i < program->node_count; i++)
        if (program->nodes[i].op == HDI_OP_DISPATCH) hdi_user_kernel_hold(program->nodes[i].attrs.custom->kernel);
    if (!status) {
        *out_program = program;
        return HD_OK;
    }
    hd_program_destroy(program);
    return hdi_context_keep(context, &error);
}

hd_status hdi_program_read(hd_context *context, const char *text, size_t bytes, hd_program **out_program) {
    return read(context, text, bytes, find_kernel, context, out_program);
}

/* The kernel of another program's launch: its maker may have ended it already. */
static bool find_launched(void *user, uint64_t hash, hdi_custom *out_custom) {
    const hd_program *program = user;
    for (uint32_t i = 0; i < program->node_count; i++) {
        const hdi_custom *custom = program->nodes[i].op == HDI_OP_DISPATCH ? program->nodes[i].attrs.custom : NULL;
        if (!custom || custom->kernel_hash != hash) continue;
        out_custom->kernel = custom->kernel;
        out_custom->kernel_bindings = custom->kernel_bindings;
        out_custom->kernel_push_bytes = custom->kernel_push_bytes;
        memcpy(out_custom->kernel_images, custom->kernel_images, sizeof out_custom->kernel_images);
        return true;
    }
    return false;
}

hd_status hdi_program_copy(hd_context *context, const hd_program *program, hd_program **out_copy) {
    hdi_text text = { .allocator = &context->allocator };
    hdi_program_print(program, &text);
    const hd_status status =
        text.failed ? hdi_context_fail(context, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to copy a program")
                    : read(context, text.bytes, text.count, find_launched, (void *)(uintptr_t)program, out_copy);
    hdi_text_free(&text);
    return status;
}

hd_status hd_program_parse(hd_context *context, const char *text, size_t bytes, hd_program **out_program) {
    if (!HDI_FIND(context)) return HDI_REFUSE(context);
    if (!text || !out_program) return HD_STATUS_NULL_POINTER;
    *out_program = NULL;
    hd_program *program = NULL;
    const hd_status status = hdi_program_read(context, text, bytes, &program);
    if (!status) *out_program = program->held.handle;
    return status;
}

static const hd_kernel_gradient *find_gradient(const hd_gradients_desc *desc, const struct hdi_user_kernel *kernel) {
    for (size_t i = 0; i < desc->kernel_count; i++) {
        const hd_kernel *one = desc->kernels[i].kernel;
        if (HDI_FIND(one) && one->user == kernel) return &desc->kernels[i];
    }
    return NULL;
}

hd_status hd_gradients(hd_program *program, hd_value loss, const hd_value *wanted, size_t wanted_count,
                       const hd_gradients_desc *desc, hd_value *out_gradients) {
    const hd_gradients_desc defaults = { 0 };
    hd_program *const handle = program;
    if (!HDI_FIND(program)) return HDI_REFUSE(program);
    const hd_status status =
        hdi_gradients(handle, loss, wanted, wanted_count, desc ? desc : &defaults, find_gradient, out_gradients);
    return status && program->error.status ? hdi_context_keep(program->context, &program->error) : status;
}

uint64_t hd_program_hash(const hd_program *program) { return HDI_FIND(program) ? hdi_program_hash(program) : 0; }

/* ---- own kernels ---- */

static void describe(const hdi_spirv_info *from, hd_kernel_info *out) {
    memcpy(out->workgroup, from->workgroup, sizeof out->workgroup);
    out->push_bytes = from->own_push_bytes;
    out->binding_count = from->binding_count;
    for (uint32_t i = 0; i < HDI_COUNT(out->binding_written); i++) {
        out->binding_written[i] = from->bindings[i].written;
        out->binding_set[i] = from->bindings[i].place.set;
        out->binding_number[i] = from->bindings[i].place.binding;
        out->binding_element[i] = from->bindings[i].place.element;
        out->binding_axes[i] = from->bindings[i].image.axes;
        out->binding_dtype[i] = from->bindings[i].image.dtype;
        out->binding_channels[i] = from->bindings[i].image.channels;
    }
}

static hd_status new_kernel(hd_context *context, const hd_kernel_desc *desc, hd_kernel **out_kernel, hd_error *error) {
    enum { MOST_BYTES = 16 << 20 };
    hdi_file file = { 0 };
    hd_status status = HD_OK;
    if (!desc->spirv && !desc->path)
        return hdi_fail(error, HD_STATUS_NULL_POINTER, "a kernel needs SPIR-V bytes or a path");
    if (!desc->spirv) status = hdi_file_read(&context->allocator, desc->path, MOST_BYTES, &file, error);
    if (!desc->spirv && !status && file.count == 0)
        status = hdi_fail(error, HD_STATUS_MODULE, "%s is empty", desc->path);
    if (status) return status;
    hd_kernel *kernel = hdi_alloc(&context->allocator, sizeof *kernel);
    if (!kernel) status = hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a kernel");
    const hdi_spirv_input input = { .module = desc->spirv ? desc->spirv : file.data,
                                    .bytes = desc->spirv ? desc->spirv_bytes : file.count,
                                    .entry = desc->entry, .spec_ids = desc->spec_ids, .spec_values = desc->spec_values,
                                    .spec_count = desc->spec_count, .images = desc->images,
                                    .image_count = desc->images ? desc->image_count : 0 };
    if (kernel) kernel->user = hdi_user_kernel_new(&context->allocator, &input, error);
    hdi_file_free(&context->allocator, &file);
    if (kernel && !kernel->user) {
        hdi_free(&context->allocator, kernel, sizeof *kernel);
        status = error->status ? error->status : HD_STATUS_MODULE;
    }
    if (status) return status;
    kernel->context = context;
    describe(&kernel->user->info, &kernel->info);
    *out_kernel = kernel;
    return HD_OK;
}

static void end_kernel(hd_kernel *kernel) {
    hdi_user_kernel_release(kernel->user);
    hdi_free(&kernel->context->allocator, kernel, sizeof *kernel);
}

hd_status hd_kernel_create(hd_context *context, const hd_kernel_desc *desc, hd_kernel **out_kernel) {
    if (!HDI_FIND(context)) return HDI_REFUSE(context);
    if (!desc || !out_kernel) return HD_STATUS_NULL_POINTER;
    *out_kernel = NULL;
    hd_error error = { 0 };
    hd_kernel *kernel = NULL;
    hd_status status = new_kernel(context, desc, &kernel, &error);
    if (!status && (status = HDI_ADD(context, &context->kernels, kernel, &error))) end_kernel(kernel);
    if (status) return hdi_context_keep(context, &error);
    *out_kernel = kernel->held.handle;
    return HD_OK;
}

void hd_kernel_destroy(hd_kernel *kernel) {
    if (HDI_FIND(kernel) && hdi_context_remove(kernel->context, &kernel->held)) end_kernel(kernel);
}

const hd_kernel_info *hd_kernel_get_info(const hd_kernel *kernel) { return HDI_FIND(kernel) ? &kernel->info : NULL; }

/* ---- launches of own kernels ---- */


/* False: program and kernel do not belong together, or one is none. */
static bool find_launch(hd_program *program, hd_kernel *kernel, hdi_custom *out_custom) {
    if (!HDI_FIND(program)) return HDI_REFUSE(program), false;
    hd_error *error = &program->error;
    if (!kernel) hdi_fail(error, HD_STATUS_NULL_POINTER, "dispatch: the kernel is NULL");
    else if (!HDI_FIND(kernel))
        hdi_fail(error, HD_STATUS_STALE_HANDLE, "dispatch: the kernel was destroyed, or is none");
    else if (program->context && kernel->context != program->context)
        hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "dispatch: the kernel is of another context than the program");
    else {
        tell_kernel(kernel, out_custom);
        return true;
    }
    return false;
}

void hd_dispatch_all(hd_program *program, hd_kernel *kernel, const hd_dispatch_desc *desc, hd_value *out_values) {
    hdi_custom custom = { 0 };
    if (!out_values) return;
    for (uint32_t i = 0; desc && i < desc->binding_count; i++) out_values[i] = 0;
    if (find_launch(program, kernel, &custom) && hdi_dispatch_all(program, &custom, desc, out_values))
        hdi_user_kernel_hold(custom.kernel);
}

hd_value hd_dispatch(hd_program *program, hd_kernel *kernel, const hd_dispatch_desc *desc) {
    hdi_custom custom = { 0 };
    const hd_value value = find_launch(program, kernel, &custom) ? hdi_dispatch(program, &custom, desc) : 0;
    if (value) hdi_user_kernel_hold(custom.kernel);
    return value;
}
