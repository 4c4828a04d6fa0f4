/* programs.c: programs and own kernels as objects of a context. Building itself is the program room's. */
#include "front/front.h"

/* ---- programs ---- */

/* Gives a new program to the caller, or ends it. */
static hd_status give(hd_context *context, hd_program *program, hd_program **out_program, hd_error *error) {
    const hd_status status = HDI_ADD(context, &context->programs, program, error);
    program->tag = hdi_program_new_tag();
    if (status) hdi_program_end(program);
    else *out_program = program->held.handle;
    return status;
}

hd_program *hd_program_create(hd_context *context) {
    if (!HDI_FIND(context)) return HDI_REFUSE(context), NULL;
    hd_error error = { 0 };
    hd_program *program = hdi_program_new(&context->allocator, context), *handle = NULL;
    if (!program) hdi_fail(&error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a program");
    else give(context, program, &handle, &error);
    hdi_context_keep(context, &error);
    return handle;
}

void hdi_program_end(hd_program *program) {
    for (uint32_t i = 0; program->foreign_kernels && i < program->node_count; i++)
        if (program->nodes[i].op == HDI_OP_DISPATCH) hdi_user_kernel_release(program->nodes[i].attrs.custom->kernel);
    hdi_program_free(program);
}

void hd_program_destroy(hd_program *program) {
    if (HDI_FIND(program) && hdi_held_remove(&program->context->holder, &program->held)) hdi_program_end(program);
}

hd_status hd_program_check(hd_program *program) {
    if (!HDI_FIND(program)) return HDI_REFUSE(program);
    hd_error error = { 0 };
    return hdi_context_done(program->context, hdi_program_check(program, &error), &error);
}

hd_status hd_program_print(const hd_program *program, char *out_text, size_t room, size_t *out_needed) {
    if (!HDI_FIND(program)) return HDI_REFUSE(program);
    hdi_text text = { .allocator = &program->context->allocator };
    hdi_program_print(program, &text);
    return hdi_text_out(&text, out_text, room, out_needed);
}

/* A living kernel of the context with this hash, for dispatch nodes in a program's text. */
static bool find_kernel(void *user, uint64_t hash, hdi_custom *out_custom) {
    hd_context *context = user;
    bool found = false;
    hdi_mutex_lock(&context->holder.lock);
    for (hdi_link *at = context->kernels.next; at != &context->kernels && !found; at = at->next) {
        const hd_kernel *kernel = HDI_OBJECT(at, hd_kernel, held.link);
        found = kernel->known.kernel_hash == hash;
        if (found) hdi_custom_take_kernel(out_custom, &kernel->known);
    }
    hdi_mutex_unlock(&context->holder.lock);
    return found;
}

/* In no list yet. */
static hd_status read(hd_context *context, const char *text, size_t bytes, hdi_find_kernel find, void *user,
                      hd_program **out_program, hd_error *error) {
    hd_program *program = hdi_program_new(&context->allocator, context);
    if (!program) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a program");
    const hd_status status = hdi_program_parse(program, text, bytes, find, user, error);
    for (uint32_t i = 0; i < program->node_count; i++)
        if (program->nodes[i].op == HDI_OP_DISPATCH) hdi_user_kernel_hold(program->nodes[i].attrs.custom->kernel);
    if (status) hdi_program_end(program);
    else *out_program = program;
    return status;
}

hd_status hdi_program_read(hd_context *context, const char *text, size_t bytes, hd_program **out_program,
                           hd_error *error) {
    return read(context, text, bytes, find_kernel, context, out_program, error);
}

hd_status hdi_program_copy(hd_context *context, const hd_program *program, hd_program **out_copy, hd_error *error) {
    hdi_text text = { .allocator = &context->allocator };
    hdi_program_print(program, &text);
    const hd_status status = text.failed ? hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to copy a program")
                                         : read(context, text.bytes, text.count, hdi_dispatch_find,
                                                (void *)(uintptr_t)program, out_copy, error);
    hdi_text_free(&text);
    return status;
}

hd_status hd_program_parse(hd_context *context, const char *text, size_t bytes, hd_program **out_program) {
    if (!HDI_FIND(context)) return HDI_REFUSE(context);
    if (!text || !out_program) return HD_STATUS_NULL_POINTER;
    *out_program = NULL;
    hd_error error = { 0 };
    hd_program *program = NULL;
    hd_status status = hdi_program_read(context, text, bytes, &program, &error);
    if (!status) status = give(context, program, out_program, &error);
    return hdi_context_done(context, status, &error);
}

static const hd_kernel_gradient *find_gradient(const hd_gradients_desc *desc, const struct hdi_user_kernel *kernel) {
    for (size_t i = 0; i < desc->kernel_count; i++) {
        const hd_kernel *one = desc->kernels[i].kernel;
        if (HDI_FIND(one) && one->known.kernel == kernel) return &desc->kernels[i];
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

/* What a program knows of a kernel. */
static hdi_custom tell_kernel(hdi_user_kernel *user) {
    hdi_custom known = { .kernel = user, .kernel_hash = user->hash, .kernel_bindings = user->info.binding_count,
                         .kernel_push_bytes = user->info.push_bytes,
                         .kernel_own_push_bytes = user->info.own_push_bytes };
    for (uint32_t i = 0; i < user->info.binding_count; i++) {
        const hdi_spirv_binding *binding = &user->info.bindings[i];
        known.kernel_images[i] = (hdi_custom_image){ binding->image.axes, binding->image.channels,
                                                     binding->image.push_word, binding->image.dtype };
        known.kernel_uses |= (uint32_t)binding->used << i;
        known.kernel_writes |= (uint32_t)binding->written << i;
    }
    return known;
}

hd_status hd_kernel_create(hd_context *context, const hd_kernel_desc *desc, hd_kernel **out_kernel) {
    if (!HDI_FIND(context)) return HDI_REFUSE(context);
    if (!desc || !out_kernel) return HD_STATUS_NULL_POINTER;
    *out_kernel = NULL;
    hd_error error = { 0 };
    hdi_user_kernel *user = hdi_user_kernel_read(&context->allocator, desc, &error);
    hd_kernel *kernel = user ? hdi_alloc(&context->allocator, sizeof *kernel) : NULL;
    if (user && !kernel) hdi_fail(&error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a kernel");
    if (kernel) *kernel = (hd_kernel){ context, .known = tell_kernel(user), .info = hdi_user_kernel_describe(user) };
    if (kernel && !HDI_ADD(context, &context->kernels, kernel, &error)) {
        *out_kernel = kernel->held.handle;
        return HD_OK;
    }
    hdi_free(&context->allocator, kernel, sizeof *kernel);
    hdi_user_kernel_release(user);
    return hdi_context_keep(context, &error);
}

void hd_kernel_destroy(hd_kernel *kernel) {
    if (!HDI_FIND(kernel) || !hdi_held_remove(&kernel->context->holder, &kernel->held)) return;
    hdi_user_kernel_release(kernel->known.kernel);
    hdi_free(&kernel->context->allocator, kernel, sizeof *kernel);
}

const hd_kernel_info *hd_kernel_get_info(const hd_kernel *kernel) { return HDI_FIND(kernel) ? &kernel->info : NULL; }

/* ---- launches of own kernels ---- */

/* What a program knows of the kernel; NULL: they do not belong together, or one is none. */
static const hdi_custom *find_launch(hd_program *program, hd_kernel *kernel) {
    if (!HDI_FIND(program)) return HDI_REFUSE(program), NULL;
    hd_error *error = &program->error;
    if (!kernel) hdi_fail(error, HD_STATUS_NULL_POINTER, "dispatch: the kernel is NULL");
    else if (!HDI_FIND(kernel))
        hdi_fail(error, HD_STATUS_STALE_HANDLE, "dispatch: the kernel was destroyed, or is none");
    else if (program->context && kernel->context != program->context)
        hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "dispatch: the kernel is of another context than the program");
    else return &kernel->known;
    return NULL;
}

void hd_dispatch_all(hd_program *program, hd_kernel *kernel, const hd_dispatch_desc *desc, hd_value *out_values) {
    if (!out_values) return;
    for (uint32_t i = 0; desc && i < desc->binding_count; i++) out_values[i] = 0;
    const hdi_custom *known = find_launch(program, kernel);
    if (known && hdi_dispatch_all(program, known, desc, out_values)) hdi_user_kernel_hold(known->kernel);
}

hd_value hd_dispatch(hd_program *program, hd_kernel *kernel, const hd_dispatch_desc *desc) {
    const hdi_custom *known = find_launch(program, kernel);
    const hd_value value = known ? hdi_dispatch(program, known, desc) : 0;
    if (value) hdi_user_kernel_hold(known->kernel);
    return value;
}
