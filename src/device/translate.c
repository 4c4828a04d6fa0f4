/* translate.c: a kernel's constants are those of its module, by their numbers; and what a launch gives it besides
 * buffers. */
#include "device/translate.h"

typedef struct constants {
    uint32_t ids[HDI_MAX_CONSTANTS], values[HDI_MAX_CONSTANTS], count;
} constants;

static hdi_spirv_input input_of(const hdi_translation *t, const constants *c) {
    const hdi_blob *blob = t->module->spirv;
    return (hdi_spirv_input){ .module = blob->words, .bytes = blob->word_count * 4, .entry = blob->entry,
                              .spec_ids = c->ids, .spec_values = c->values, .spec_count = c->count, .checked = true };
}

/* Says what was refused; and what was not uses the kernel's bindings only. */
static hd_status check(const hdi_translation *t, const hdi_spirv_printed *printed, hd_status status,
                       const hd_error *refused, hd_error *error) {
    const char *name = t->module->name;
    if (status) return hdi_fail_native(error, status, t->backend, 0, "kernel %s: %s", name, refused->text);
    for (uint32_t i = 0; i < printed->buffer_count; i++)
        if (printed->buffers[i] >= t->kernel->binding_count)
            return hdi_fail_native(error, HD_STATUS_MODULE, t->backend, 0, "kernel %s uses binding %u of %u", name,
                                   printed->buffers[i], t->kernel->binding_count);
    return HD_OK;
}

hd_status hdi_translate_to_text(const hdi_translation *t, hdi_text *out_text, hdi_spirv_printed *out_printed,
                                hd_error *error) {
    /* OpenCL's own halves may lose subnormals. */
    const bool own_halves = t->target->dialect == HDI_SPIRV_OPENCL_C && t->target->offers & HDI_SPIRV_OFFERS_FP16;
    constants c;
    c.count = hdi_kernel_constants(t->kernel, !own_halves, t->target->offers & HDI_SPIRV_OFFERS_EARLY_START, c.ids,
                                   c.values);
    const hdi_spirv_input input = input_of(t, &c);
    hd_error refused = { 0 };
    const hd_status status = hdi_spirv_print(t->host->allocator, &input, t->target, out_text, out_printed, &refused);
    return check(t, out_printed, status, &refused, error);
}

hd_status hdi_translate_to_module(const hdi_translation *t, hdi_text *out_module, hdi_spirv_printed *out_printed,
                                  hd_error *error) {
    constants c;
    c.count = hdi_kernel_constants(t->kernel, false, false, c.ids, c.values);
    const hdi_spirv_input input = input_of(t, &c);
    hd_error refused = { 0 };
    const hd_status status =
        hdi_spirv_kernel_module(t->host->allocator, &input, t->target, out_module, out_printed, &refused);
    return check(t, out_printed, status, &refused, error);
}

uint32_t hdi_launch_words(const hdi_cmds *cmds, const hdi_cmd *cmd, const hdi_spirv_printed *printed,
                          const uint64_t *offsets, uint32_t out_words[HDI_MOST_LAUNCH_WORDS]) {
    const hdi_binding *bindings = &cmds->bindings[cmd->as.dispatch.binding_first];
    const uint32_t given = HDI_MIN(cmds->kernels[cmd->as.dispatch.kernel].push_bytes / 4, printed->push_words);
    uint32_t at = 3 + printed->push_words;
    memset(out_words, 0, at * sizeof *out_words);
    memcpy(out_words, cmd->as.dispatch.first, 3 * sizeof *out_words);
    if (given) memcpy(out_words + 3, cmds->push + cmd->as.dispatch.push_first, given * sizeof *out_words);
    for (uint32_t i = 0; offsets && i < printed->buffer_count; i++) {
        out_words[at++] = (uint32_t)offsets[i];
        out_words[at++] = (uint32_t)(offsets[i] >> 32);
    }
    for (uint32_t i = 0; i < printed->length_count; i++) {
        const uint64_t bytes = (bindings[printed->lengths[i]].range.bytes + 3) & ~UINT64_C(3); /* kernels see words */
        out_words[at++] = (uint32_t)bytes;
        out_words[at++] = (uint32_t)(bytes >> 32);
    }
    return at;
}
