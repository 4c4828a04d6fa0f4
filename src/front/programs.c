/* programs.c: programs and own kernels as objects of a context. Building itself is the program room's. */
#include "front/front.h"

/* ---- programs ---- */

hd_program *hd_program_create(hd_context *context) {
    if (!context) return NULL;
    hd_program *program = hdi_program_new(&context->allocator, context);
    if (program) hdi_context_add(context, &context->programs, &program->link);
    else hdi_context_fail(context, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a program");
    return program;
}

void hd_program_destroy(hd_program *program) {
    if (!program) return;
    for (uint32_t i = 0; program->foreign_kernels && i < program->node_count; i++)
        if (program->nodes[i].op == HDI_OP_DISPATCH) hdi_user_kernel_release(program->nodes[i].attrs.custom->kernel);
    hdi_context_remove(program->context, &program->link);
    hdi_program_free(program);
}

hd_status hd_program_check(hd_program *program) {
    if (!program) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    hd_status status = hdi_program_check(program, &error);
    return status ? hdi_context_keep(program->context, &error) : HD_OK;
}

hd_status hd_program_print(const hd_program *program, char *out_text, size_t room, size_t *out_needed) {
    if (!program) return HD_STATUS_NULL_POINTER;
    hdi_text text = { .allocator = &program->context->allocator };
    hdi_program_print(program, &text);
    hd_status status = hdi_text_out(&text, out_text, room, out_needed);
    hdi_text_free(&text);
    return status;
}

/* A living kernel of the context with this hash, for dispatch nodes in a program's text. */
static bool find_kernel(void *user, uint64_t hash, hdi_custom *out_custom) {
    hd_context *context = user;
    bool found = false;
    hdi_mutex_lock(&context->lock);
    for (hdi_link *at = context->kernels.next; at != &context->kernels && !found; at = at->next) {
        hd_kernel *kernel = HDI_OBJECT(at, hd_kernel, link);
        if (kernel->user->hash != hash) continue;
        out_custom->kernel = kernel->user;
        out_custom->kernel_bindings = kernel->info.binding_count;
        out_custom->kernel_push_bytes = kernel->info.push_bytes;
        found = true;
    }
    hdi_mutex_unlock(&context->lock);
    return found;
}

hd_status hd_program_parse(hd_context *context, const char *text, size_t bytes, hd_program **out_program) {
    if (!context || !text || !out_program) return HD_STATUS_NULL_POINTER;
    *out_program = NULL;
    hd_program *program = hd_program_create(context);
    if (!program) return HD_STATUS_OUT_OF_HOST_MEMORY;
    hd_error error = { 0 };
    hd_status status = hdi_program_parse(program, text, bytes, find_kernel, context, &error);
    for (uint32_t i = 0; i < program->node_count; i++)
        if (program->nodes[i].op == HDI_OP_DISPATCH) hdi_user_kernel_hold(program->nodes[i].attrs.custom->kernel);
    if (!status) {
        *out_program = program;
        return HD_OK;
    }
    hd_program_destroy(program);
    return hdi_context_keep(context, &error);
}

static const hd_kernel_gradient *find_gradient(const hd_gradients_desc *desc, const struct hdi_user_kernel *kernel) {
    for (size_t i = 0; i < desc->kernel_count; i++)
        if (desc->kernels[i].kernel && desc->kernels[i].kernel->user == kernel) return &desc->kernels[i];
    return NULL;
}

hd_status hd_gradients(hd_program *program, hd_value loss, const hd_value *wanted, size_t wanted_count, const hd_gradients_desc *desc,
                       hd_value *out_gradients) {
    const hd_gradients_desc wishes = desc ? *desc : (hd_gradients_desc){ 0 };
    if (!program || (wanted_count > 0 && (!wanted || !out_gradients))) return HD_STATUS_NULL_POINTER;
    if ((wishes.kept_count > 0 && !wishes.kept) || (wishes.kernel_count > 0 && !wishes.kernels)) return HD_STATUS_NULL_POINTER;
    const hd_status status = hdi_program_gradients(program, loss, wanted, wanted_count, &wishes, find_gradient, out_gradients);
    return status ? hdi_context_keep(program->context, &program->error) : HD_OK;
}

uint64_t hd_program_hash(const hd_program *program) { return program ? hdi_program_hash(program) : 0; }

/* ---- own kernels ---- */

static void describe(const hdi_spirv_info *from, hd_kernel_info *out) {
    memcpy(out->workgroup, from->workgroup, sizeof out->workgroup);
    out->push_bytes = from->push_bytes;
    out->binding_count = from->binding_count;
    for (uint32_t i = 0; i < HDI_COUNT(out->binding_written); i++) {
        out->binding_written[i] = from->bindings[i].written;
        out->binding_set[i] = from->bindings[i].place.set;
        out->binding_number[i] = from->bindings[i].place.binding;
    }
}

static hd_status new_kernel(hd_context *context, const hd_kernel_desc *desc, hd_kernel **out_kernel, hd_error *error) {
    enum { MOST_BYTES = 16 << 20 };
    hdi_file file = { 0 };
    hd_status status = HD_OK;
    if (!desc->spirv && !desc->path) return hdi_fail(error, HD_STATUS_NULL_POINTER, "a kernel needs SPIR-V bytes or a path");
    if (!desc->spirv) status = hdi_file_read(&context->allocator, desc->path, MOST_BYTES, &file, error);
    if (!desc->spirv && !status && file.count == 0) status = hdi_fail(error, HD_STATUS_MODULE, "%s is empty", desc->path);
    if (status) return status;
    hd_kernel *kernel = hdi_alloc(&context->allocator, sizeof *kernel);
    if (!kernel) status = hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a kernel");
    const hdi_spirv_input input = { .module = desc->spirv ? desc->spirv : file.data, .bytes = desc->spirv ? desc->spirv_bytes : file.count,
                                    .entry = desc->entry, .spec_ids = desc->spec_ids, .spec_values = desc->spec_values,
                                    .spec_count = desc->spec_count };
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

hd_status hd_kernel_create(hd_context *context, const hd_kernel_desc *desc, hd_kernel **out_kernel) {
    if (!context || !desc || !out_kernel) return HD_STATUS_NULL_POINTER;
    *out_kernel = NULL;
    hd_error error = { 0 };
    hd_status status = new_kernel(context, desc, out_kernel, &error);
    if (status) return hdi_context_keep(context, &error);
    hdi_context_add(context, &context->kernels, &(*out_kernel)->link);
    return HD_OK;
}

void hd_kernel_destroy(hd_kernel *kernel) {
    if (!kernel) return;
    hd_context *context = kernel->context;
    hdi_context_remove(context, &kernel->link);
    hdi_user_kernel_release(kernel->user);
    hdi_free(&context->allocator, kernel, sizeof *kernel);
}

const hd_kernel_info *hd_kernel_get_info(const hd_kernel *kernel) { return kernel ? &kernel->info : NULL; }

hd_value hd_dispatch(hd_program *program, hd_kernel *kernel, const hd_dispatch_desc *desc) {
    if (!program) return 0;
    if (!kernel || !desc || (desc->input_count && !desc->inputs) || (desc->push_bytes && !desc->push)) {
        hdi_fail(&program->error, HD_STATUS_NULL_POINTER, "dispatch: the kernel, its desc, inputs or push constants are NULL");
        return 0;
    }
    hdi_custom custom = { .kernel = kernel->user, .kernel_hash = kernel->user->hash, .kernel_bindings = kernel->info.binding_count,
                          .kernel_push_bytes = kernel->info.push_bytes, .push_bytes = desc->push_bytes };
    if (desc->push_bytes > sizeof custom.push_words) {
        hdi_fail(&program->error, HD_STATUS_LIMIT, "dispatch: %u push bytes and the limit is %zu", desc->push_bytes,
                 sizeof custom.push_words);
        return 0;
    }
    if (desc->push_bytes) memcpy(custom.push_words, desc->push, desc->push_bytes);
    memcpy(custom.groups, desc->groups, sizeof custom.groups);
    hdi_attrs attrs = { .custom = &custom };
    hd_value value = hdi_program_add(program, &(hdi_node){
        .op = HDI_OP_DISPATCH, .dtype = desc->out_dtype, .shape = desc->out_shape, .attrs = attrs, .operands = desc->inputs,
        .operand_count = desc->input_count });
    if (value) hdi_user_kernel_hold(kernel->user);
    return value;
}
