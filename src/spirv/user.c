/* user.c: a user's kernel: an owned copy of a module that was checked, with its facts, counted by its holders, as
 * programs and plans outlive the kernel that they were given. Relies on hdi_spirv_inspect for every check. */
#include "spirv/module.h"

/* The module without what the entry point does not need; where images or arrays of buffers have to go, another one
 * takes its words' place. */
static hd_status reduce(const hdi_spirv_input *input, hdi_user_kernel *kernel, hdi_spirv_lowered *lowered,
                        hd_error *error) {
    const hd_allocator *allocator = kernel->allocator;
    hd_status status = hdi_spirv_trim(allocator, kernel->words, kernel->bytes / 4, input->entry, error);
    hdi_spirv_input trimmed = *input;
    trimmed.module = kernel->words;
    if (!status) status = hdi_spirv_lower(allocator, &trimmed, lowered, error);
    if (status || !lowered->words) return status;
    hdi_free(allocator, kernel->words, kernel->bytes);
    kernel->words = lowered->words;
    kernel->bytes = lowered->bytes;
    return HD_OK;
}

/* What the module is made to be, checked and without what it does not need; its words are a copy of it. */
static hd_status make(const hdi_spirv_input *input, hdi_user_kernel *kernel, hd_error *error) {
    const hd_allocator *allocator = kernel->allocator;
    hdi_spirv_binding bindings[HDI_SPIRV_MAX_BINDINGS];
    hdi_spirv_lowered lowered = { 0 };
    hdi_spirv_input reduced = *input;
    hd_status status = input->bytes % 4 ? HD_OK : reduce(input, kernel, &lowered, error);
    const size_t count = kernel->bytes / 4;
    reduced.module = kernel->words;
    reduced.bytes = kernel->bytes;
    if (!status && input->bytes % 4 == 0) status = hdi_spirv_number(kernel->words, count, &lowered, bindings, error);
    if (!status) status = hdi_spirv_inspect(allocator, &reduced, &kernel->info, error);
    if (status) return status;
    if (!hdi_spirv_set_specs(allocator, kernel->words, count, input->spec_ids, input->spec_values, input->spec_count))
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no host memory for a kernel of %zu bytes", input->bytes);
    const bool told = kernel->info.push_bytes != 0; /* else it asks for no length */
    kernel->info.own_push_bytes = told ? kernel->info.push_bytes - 4 * lowered.length_words : 0;
    /* an image that is only asked how long it is: nothing reads its buffer, and its tensor tells the lengths */
    for (uint32_t i = 0; i < HDI_SPIRV_MAX_BINDINGS && told; i++)
        if (bindings[i].image.axes) kernel->info.binding_count = HDI_MAX(kernel->info.binding_count, i + 1);
    for (uint32_t i = 0; i < kernel->info.binding_count; i++) {
        kernel->info.bindings[i].place = bindings[i].place;
        if (told) kernel->info.bindings[i].image = bindings[i].image;
    }
    kernel->word_count = hdi_spirv_compact(kernel->words, count);
    kernel->hash = hdi_hash(HDI_HASH_START, kernel->words, kernel->word_count * 4);
    kernel->hash = hdi_hash(kernel->hash, kernel->info.entry, strlen(kernel->info.entry) + 1);
    return HD_OK;
}

hdi_user_kernel *hdi_user_kernel_new(const hd_allocator *allocator, const hdi_spirv_input *input, hd_error *error) {
    const size_t bytes = input->bytes;
    hdi_user_kernel *kernel = hdi_alloc(allocator, sizeof *kernel);
    const bool fits = bytes >= HDI_SPIRV_HEADER_WORDS * 4 && bytes <= HDI_SPIRV_MAX_BYTES;
    uint32_t *words = kernel && fits ? hdi_alloc(allocator, bytes) : NULL;
    hd_status status = HD_OK;
    if (!fits) status = hdi_spirv_inspect(allocator, input, &(hdi_spirv_info){ 0 }, error);
    else if (!words)
        status = hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no host memory for a kernel of %zu bytes", bytes);
    if (words) memcpy(words, input->module, bytes);
    if (kernel) *kernel = (hdi_user_kernel){ .allocator = allocator, .holders = 1, .words = words, .bytes = bytes };
    if (!status) status = make(input, kernel, error);
    if (!status) return kernel;
    if (kernel) hdi_free(allocator, kernel->words, kernel->bytes);
    hdi_free(allocator, kernel, sizeof *kernel);
    return NULL;
}

hdi_user_kernel *hdi_user_kernel_read(const hd_allocator *allocator, const hd_kernel_desc *desc, hd_error *error) {
    hdi_file file = { 0 };
    hdi_spirv_input input = { .module = desc->spirv, .bytes = desc->spirv_bytes, .entry = desc->entry,
                              .spec_ids = desc->spec_ids, .spec_values = desc->spec_values,
                              .spec_count = desc->spec_count, .images = desc->images,
                              .image_count = desc->images ? desc->image_count : 0 };
    hd_status status = HD_OK;
    if (hdi_glsl_is(desc)) status = hdi_glsl_compile(allocator, desc, &file, error);
    else if (!desc->spirv && !desc->path)
        status = hdi_fail(error, HD_STATUS_NULL_POINTER, "a kernel needs SPIR-V bytes, GLSL or a path");
    else if (!desc->spirv) {
        status = hdi_file_read(allocator, desc->path, HDI_SPIRV_MAX_BYTES, &file, error);
        if (!status && file.count == 0) status = hdi_fail(error, HD_STATUS_MODULE, "%s is empty", desc->path);
    }
    if (!desc->spirv) {
        input.module = file.data;
        input.bytes = file.count;
    }
    hdi_user_kernel *kernel = status ? NULL : hdi_user_kernel_new(allocator, &input, error);
    hdi_file_free(allocator, &file);
    return kernel;
}

hd_kernel_info hdi_user_kernel_describe(const hdi_user_kernel *kernel) {
    const hdi_spirv_info *from = &kernel->info;
    hd_kernel_info info = { .push_bytes = from->own_push_bytes, .binding_count = from->binding_count };
    memcpy(info.workgroup, from->workgroup, sizeof info.workgroup);
    for (uint32_t i = 0; i < HDI_COUNT(info.binding_written); i++) {
        info.binding_written[i] = from->bindings[i].written;
        info.binding_set[i] = from->bindings[i].place.set;
        info.binding_number[i] = from->bindings[i].place.binding;
        info.binding_element[i] = from->bindings[i].place.element;
        info.binding_axes[i] = from->bindings[i].image.axes;
        info.binding_dtype[i] = from->bindings[i].image.dtype;
        info.binding_channels[i] = from->bindings[i].image.channels;
    }
    return info;
}

void hdi_user_kernel_hold(hdi_user_kernel *kernel) { __atomic_fetch_add(&kernel->holders, 1, __ATOMIC_RELAXED); }

void hdi_user_kernel_release(hdi_user_kernel *kernel) {
    if (!kernel || __atomic_fetch_sub(&kernel->holders, 1, __ATOMIC_ACQ_REL) != 1) return;
    hdi_free(kernel->allocator, kernel->words, kernel->bytes);
    hdi_free(kernel->allocator, kernel, sizeof *kernel);
}
