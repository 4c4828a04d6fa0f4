/* print.c: a command list as stable text, one command a line, as `heddle explain` shows it. */
#include "cmds/cmds.h"
#include <inttypes.h>

static void print_kernel(const hdi_cmds *cmds, uint32_t at, const char *(*module_name)(void *, uint32_t), void *user,
                         hdi_text *out) {
    const hdi_kernel *kernel = &cmds->kernels[at];
    hdi_text_add(out, "kernel k%u ", at);
    if (module_name) hdi_text_add(out, "%s", module_name(user, kernel->module));
    else hdi_text_add(out, "module %u", kernel->module);
    for (uint32_t i = 0; i < kernel->spec_count; i++)
        if (kernel->spec[i] != 0) hdi_text_add(out, " %u=%#" PRIx32, i, kernel->spec[i]);
    hdi_text_add(out, " bindings=%u push=%u\n", kernel->binding_count, kernel->push_bytes);
}

static void print_range(hdi_range range, hdi_text *out) {
    hdi_text_add(out, " s%u+%" PRIu64 ":%" PRIu64, range.slot, range.offset, range.bytes);
}

static void print_dispatch(const hdi_cmds *cmds, const hdi_cmd *cmd, hdi_text *out) {
    const uint32_t *first = cmd->as.dispatch.first, *groups = cmd->as.dispatch.groups;
    hdi_text_add(out, "dispatch k%u (%u,%u,%u)", cmd->as.dispatch.kernel, groups[0], groups[1], groups[2]);
    if (first[0] | first[1] | first[2]) hdi_text_add(out, " from (%u,%u,%u)", first[0], first[1], first[2]);
    for (uint32_t i = 0; i < cmd->as.dispatch.binding_count; i++) {
        const hdi_binding *binding = &cmds->bindings[cmd->as.dispatch.binding_first + i];
        hdi_text_add(out, " %s", binding->access == HDI_READ ? "r" : binding->access == HDI_WRITE ? "w" : "rw");
        print_range(binding->range, out);
    }
    hdi_text_add(out, " push");
    uint64_t words = hdi_divide_up(cmds->kernels[cmd->as.dispatch.kernel].push_bytes, 4);
    for (uint32_t i = 0; i < words; i++) hdi_text_add(out, " %" PRIx32, cmds->push[cmd->as.dispatch.push_first + i]);
    hdi_text_add(out, "\n");
}

void hdi_cmds_print(const hdi_cmds *cmds, const char *(*module_name)(void *user, uint32_t module), void *user,
                    hdi_text *out) {
    for (uint32_t i = 0; i < cmds->slot_count; i++)
        hdi_text_add(out, "slot s%u %" PRIu64 " bytes\n", i, cmds->slot_bytes[i]);
    for (uint32_t i = 0; i < cmds->kernel_count; i++) print_kernel(cmds, i, module_name, user, out);
    for (uint32_t i = 0; i < cmds->cmd_count; i++) {
        const hdi_cmd *cmd = &cmds->cmds[i];
        hdi_text_add(out, "%u ", i);
        switch (cmd->kind) {
        case HDI_CMD_DISPATCH: print_dispatch(cmds, cmd, out); break;
        case HDI_CMD_COPY:
            hdi_text_add(out, "copy");
            print_range(cmd->as.copy.from, out);
            hdi_text_add(out, " ->");
            print_range(cmd->as.copy.to, out);
            hdi_text_add(out, "\n");
            break;
        case HDI_CMD_FILL:
            hdi_text_add(out, "fill");
            print_range(cmd->as.fill.to, out);
            hdi_text_add(out, " %" PRIx32 "\n", cmd->as.fill.value);
            break;
        case HDI_CMD_BARRIER: hdi_text_add(out, cmd->as.barrier.cut ? "barrier cut\n" : "barrier\n"); break;
        case HDI_CMD_MARK: hdi_text_add(out, "mark %s\n", cmds->labels[cmd->as.mark.label]); break;
        }
    }
}
