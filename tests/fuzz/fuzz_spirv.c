/* fuzz_spirv.c: any bytes as a SPIR-V module. What is taken must stay within the stated limits, hold what printers lean on, be
 * printed or refused in every dialect, and outlive the changes that back ends make to it; what a user's kernel is made to be
 * must be sound by itself, and runs here without touching what is not its own; every failure must say why.
 * options: -max_len=16384 */
#include "spirv/module.h"
#include <stdlib.h>
#include "../spirv/image_kernels.h"
#include "../spirv/foreign_kernels.h"
#include "../spirv/user_kernels.h"
#include "../unit/spirv_fixtures.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

static void must(int holds) {
    if (!holds) abort();
}

/* Facts that a printer would lean on. */
static void walk(const hdi_spirv_module *m) {
    for (uint32_t b = 0; b < m->block_count; b++) {
        const hdi_spirv_block *block = &m->blocks[b];
        must(block->inst_first < block->inst_end && block->nest <= HDI_SPIRV_MAX_NEST);
        must(block->merge == HDI_SPIRV_NONE || m->blocks[block->merge].function == block->function);
        for (uint32_t n = 0, to; (to = hdi_spirv_target(m, b, n)) != HDI_SPIRV_NONE; n++) must(to < m->block_count);
        if (m->structure.place[b] == HDI_SPIRV_NONE) continue;
        must(hdi_spirv_dominates(&m->structure, m->functions[block->function].block_first, b));
        if (block->construct != HDI_SPIRV_NONE) must(hdi_spirv_dominates(&m->structure, block->construct, b));
    }
    for (uint32_t def = 1; def < m->def_count; def++) {
        const hdi_spirv_type *type = hdi_spirv_type_of(m, def);
        must(hdi_spirv_find(m, m->defs[def].id) == def && type->depth <= HDI_SPIRV_MAX_TYPE_DEPTH);
        if (type->kind == 'p' && m->defs[def].type != def) {
            uint32_t root = hdi_spirv_def_opcode(m, hdi_spirv_root(m, def));
            must(root == SpvOpVariable || root == SpvOpFunctionParameter);
        }
    }
}

/* Constants from outside lead elsewhere: an odd last byte has some. */
static void read_specialised(const uint8_t *data, size_t size) {
    const uint32_t ids[] = { 0, 2 }, values[] = { 7, 3 };
    uint32_t spec_count = size && (data[size - 1] & 1) ? 2 : 0;
    hdi_spirv_module m;
    hd_error error = { 0 };
    const hdi_spirv_input input = { .module = data, .bytes = size, .spec_ids = ids, .spec_values = values, .spec_count = spec_count };
    hd_status status = hdi_spirv_module_read(&hdi_default_allocator, &input, &m, &error);
    must(status == error.status);
    if (status == HD_OK) walk(&m);
    hdi_spirv_module_free(&m);
}

static void print_everywhere(const uint8_t *data, size_t size) {
    static const hdi_spirv_print_target targets[] = {
        { HDI_SPIRV_OPENCL_C, 0, 0, true, true }, { HDI_SPIRV_OPENCL_C, 0xFF, 0, false, false },
        { HDI_SPIRV_CUDA, 0xFF, 0, false, false }, { HDI_SPIRV_HIP, 0, 0, false, false }, { HDI_SPIRV_WGSL, 0, 0, false, false },
    };
    const hdi_spirv_input input = { .module = data, .bytes = size }, checked = { .module = data, .bytes = size, .checked = true };
    for (size_t i = 0; i < HDI_COUNT(targets); i++) {
        hdi_text text = { .allocator = &hdi_default_allocator };
        hdi_spirv_printed printed;
        hd_error error = { 0 };
        hd_status status = hdi_spirv_print(&hdi_default_allocator, &input, &targets[i], &text, &printed, &error);
        must(status == error.status && (status != HD_OK) == (error.text[0] != 0));
        must(status == HD_OK || status == HD_STATUS_UNSUPPORTED || status == HD_STATUS_LIMIT || status == HD_STATUS_OUT_OF_HOST_MEMORY);
        must(status != HD_OK || (text.count > 100 && strlen(text.bytes) == text.count && text.bytes[text.count - 1] == '\n'));
        must(printed.buffer_count <= HDI_SPIRV_MAX_BINDINGS && printed.length_count <= printed.buffer_count);
        hdi_text_free(&text);
        if (status == HD_STATUS_OUT_OF_HOST_MEMORY) continue;
        hdi_text again = { .allocator = &hdi_default_allocator }; /* a checked module is not checked again, and comes to the same */
        must(hdi_spirv_print(&hdi_default_allocator, &checked, &targets[i], &again, &printed, &error) == status);
        hdi_text_free(&again);
    }
}

/* In OpenCL's flavour too: a module of whole words, or a reason. */
static void make_kernel_modules(const uint8_t *data, size_t size) {
    enum { EVERYTHING = HDI_SPIRV_OFFERS_FP64 | HDI_SPIRV_OFFERS_FP16 | HDI_SPIRV_OFFERS_INT64_ATOMICS | HDI_SPIRV_OFFERS_SUBGROUPS |
                        HDI_SPIRV_OFFERS_INTEGER_DOT };
    static const hdi_spirv_print_target targets[] = { { .subgroup = 16 }, { .offers = EVERYTHING, .subgroup = 16 } };
    const hdi_spirv_input input = { .module = data, .bytes = size }, checked = { .module = data, .bytes = size, .checked = true };
    for (size_t i = 0; i < HDI_COUNT(targets); i++) {
        hdi_text module = { .allocator = &hdi_default_allocator };
        hdi_spirv_printed printed;
        hd_error error = { 0 };
        hd_status status = hdi_spirv_kernel_module(&hdi_default_allocator, &input, &targets[i], &module, &printed, &error);
        must(status == error.status && (status != HD_OK) == (error.text[0] != 0));
        must(status == HD_OK || status == HD_STATUS_UNSUPPORTED || status == HD_STATUS_LIMIT || status == HD_STATUS_OUT_OF_HOST_MEMORY);
        must(status == HD_OK ? module.count > 100 && module.count % 4 == 0 : module.count == 0);
        hdi_text_free(&module);
        if (status == HD_STATUS_OUT_OF_HOST_MEMORY) continue;
        hdi_text again = { .allocator = &hdi_default_allocator };
        must(hdi_spirv_kernel_module(&hdi_default_allocator, &checked, &targets[i], &again, &printed, &error) == status);
        hdi_text_free(&again);
    }
}

/* One workgroup, on buffers that end where they end. */
static void run_here(const hdi_user_kernel *kernel) {
    enum { BYTES = 200, DEADLINE_NS = 20000000, LARGEST = 4096 };
    const hdi_spirv_input input = { .module = kernel->words, .bytes = kernel->word_count * 4, .entry = kernel->info.entry };
    void *buffers[HDI_SPIRV_MAX_BINDINGS];
    uint64_t bytes[HDI_SPIRV_MAX_BINDINGS];
    uint32_t push[32];
    hdi_spirv_machine *machine;
    hd_error error = { 0 };
    const hd_status made = hdi_spirv_machine_new(&hdi_default_allocator, &input, 8, &machine, &error);
    must(made == error.status && (made != HD_OK) == (error.text[0] != 0));
    const uint32_t *size = kernel->info.workgroup;
    if (made || size[0] * size[1] * size[2] > LARGEST) {
        hdi_spirv_machine_free(&hdi_default_allocator, machine);
        return;
    }
    for (uint32_t i = 0; i < HDI_SPIRV_MAX_BINDINGS; i++) {
        must((buffers[i] = malloc(BYTES)) != NULL);
        memset(buffers[i], (int)i * 37, BYTES);
        bytes[i] = BYTES - i;
    }
    memset(push, 3, sizeof push);
    const hdi_spirv_launch launch = { .bindings = buffers, .binding_bytes = bytes, .binding_count = kernel->info.binding_count, .push = push,
                                      .push_words = kernel->info.push_bytes / 4, .groups = { 2, 1, 1 },
                                      .deadline_ns = hdi_now_ns() + DEADLINE_NS };
    const hd_status status = hdi_spirv_interpret(&hdi_default_allocator, machine, &launch, (const uint32_t[]){ 1, 0, 0 }, &error);
    must(status == HD_OK || status == HD_STATUS_TIMEOUT || status == HD_STATUS_OUT_OF_HOST_MEMORY);
    hdi_spirv_machine_free(&hdi_default_allocator, machine);
    for (uint32_t i = 0; i < HDI_SPIRV_MAX_BINDINGS; i++) free(buffers[i]);
}

static void make_user_kernel(const uint8_t *data, size_t size) {
    static uint32_t changed[16384 / 4 + HDI_SPIRV_SUBNORMAL_WORDS];
    hd_error error = { 0 };
    hdi_spirv_info info, raw;
    const hd_image_desc images[] = { { 0, 0, HD_U8, 4, HD_FILTER_LINEAR, HD_WRAP_CLAMP, 0, HD_COMPARE_LESS },
                                     { 0, 1, HD_F16, 2, HD_FILTER_LINEAR, HD_WRAP_REPEAT, 2, HD_COMPARE_EQUAL } };
    const hdi_spirv_input input = { .module = data, .bytes = size, .images = images, .image_count = size && (data[size - 1] & 2) ? 2 : 0 };
    hdi_user_kernel *kernel = hdi_user_kernel_new(&hdi_default_allocator, &input, &error);
    must((kernel == NULL) == (error.text[0] != 0));
    if (!kernel) return;
    const hdi_spirv_input kept = { .module = kernel->words, .bytes = kernel->word_count * 4, .entry = kernel->info.entry };
    must(hdi_spirv_inspect(&hdi_default_allocator, &kept, &info, &error) == HD_OK);
    /* further ones are of images that are only asked for their lengths: the module reads no buffer of theirs */
    const uint32_t bindings = kernel->info.binding_count;
    must(info.binding_count == bindings || (info.binding_count < bindings && bindings <= HDI_SPIRV_MAX_BINDINGS && kernel->info.bindings[bindings - 1].image.axes > 0));
    must(info.push_bytes == kernel->info.push_bytes && kernel->info.own_push_bytes <= info.push_bytes);
    for (uint32_t i = 0; i < bindings; i++) {
        const hdi_spirv_image *image = &kernel->info.bindings[i].image;
        must(image->axes <= 4 && (image->axes == 0 || (image->push_word + image->axes) * 4 <= info.push_bytes));
        must(image->axes == 0 || hd_dtype_bytes(image->dtype, image->channels) > 0);
    }
    if (hdi_spirv_inspect(&hdi_default_allocator, &input, &raw, &error)) { /* it became another module, which is printed too */
        print_everywhere((const uint8_t *)kernel->words, kernel->word_count * 4);
        make_kernel_modules((const uint8_t *)kernel->words, kernel->word_count * 4);
    }
    run_here(kernel);
    for (uint32_t i = 0; i < info.spec_count; i++)
        must(hdi_spirv_set_specs(&hdi_default_allocator, kernel->words, kernel->word_count, &info.spec[i].id, &i, 1));
    size_t count = kernel->word_count <= 16384 / 4 ? hdi_spirv_keep_subnormals(kernel->words, kernel->word_count, changed) : 1;
    must(count && count <= sizeof changed / 4);
    hdi_user_kernel_release(kernel);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    read_specialised(data, size);
    make_user_kernel(data, size);
    hdi_spirv_info info;
    hd_error error = { 0 };
    const hdi_spirv_input input = { .module = data, .bytes = size };
    hd_status status = hdi_spirv_inspect(&hdi_default_allocator, &input, &info, &error);
    must(status == error.status && (status != HD_OK) == (error.text[0] != 0));
    if (status) return 0;
    print_everywhere(data, size);
    make_kernel_modules(data, size);
    must(info.binding_count <= HDI_SPIRV_MAX_BINDINGS && info.spec_count <= HDI_SPIRV_MAX_SPEC && info.capability_count <= 32);
    must(info.workgroup[0] && info.workgroup[1] && info.workgroup[2]);
    return 0;
}

static size_t begin_from(uint8_t *data, size_t size, size_t max_size, const uint32_t *words, size_t bytes) {
    if (bytes > max_size) return LLVMFuzzerMutate(data, size, max_size);
    memcpy(data, words, bytes);
    return bytes;
}
#define FROM(kernels, which) (kernels)[(which) % HDI_COUNT(kernels)].words, (kernels)[(which) % HDI_COUNT(kernels)].bytes

/* Whole words and ids are what a module is made of: half of the mutations stay that way, and some begin from a fixture. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed) {
    uint32_t word, other;
    size_t words = size / 4;
    if (words < 8 || seed % 64 == 0) {
        const size_t which = seed / 256;
        switch (seed / 64 % 4) {
        case 0: return begin_from(data, size, max_size, FROM(fixtures, which));
        case 1: return begin_from(data, size, max_size, FROM(user_kernels, which));
        case 2: return begin_from(data, size, max_size, FROM(image_kernels, which));
        default: return begin_from(data, size, max_size, FROM(foreign_kernels, which));
        }
    }
    if (seed % 2) return LLVMFuzzerMutate(data, size, max_size);
    size_t at = seed / 16 % words, from = seed / 7 % words;
    memcpy(&word, data + at * 4, 4);
    memcpy(&other, data + from * 4, 4);
    switch (seed / 2 % 5) {
    case 0: word = other; break;
    case 1: word += seed % 3 - 1; break;
    case 2: word ^= 1u << seed % 32; break;
    case 3: word = seed / 3 % 160; break;
    default: word = (word & 0xFFFF0000u) | (other & 0xFFFF); break;
    }
    memcpy(data + at * 4, &word, 4);
    return words * 4;
}
