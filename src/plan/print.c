/* print.c: plans as stable text: memory, storages, and each step with what it reads and writes and its "because"; which
 * memory segments share, and what crosses between them. */
#include "plan/plan.h"
#include <inttypes.h>

static const char *kind_name(hdi_storage_kind kind) {
    switch (kind) {
    case HDI_STORAGE_INPUT: return "input";
    case HDI_STORAGE_STATE: return "state";
    case HDI_STORAGE_OUTPUT: return "output";
    case HDI_STORAGE_CONSTANT: return "constant";
    case HDI_STORAGE_SCRATCH: break;
    }
    return "scratch";
}

/* "x" for a named storage, "t7" for others. */
static void print_storage_name(const hdi_schedule *schedule, uint32_t storage, hdi_text *out) {
    if (schedule->storages[storage].name) hdi_text_add(out, "\"%s\"", schedule->storages[storage].name);
    else hdi_text_add(out, "t%u", storage);
}

static void print_storages(const hdi_schedule *schedule, hdi_text *out) {
    for (uint32_t i = 0; i < schedule->storage_count; i++) {
        const hdi_storage *storage = &schedule->storages[i];
        bool unused = storage->first_level > storage->last_level;
        if (storage->parent != HDI_NO_INDEX || (unused && !storage->name)) continue;
        hdi_text_add(out, "%s ", kind_name(storage->kind));
        print_storage_name(schedule, i, out);
        hdi_text_add(out, " %" PRIu64 " bytes in s%u at %" PRIu64, storage->bytes, storage->slot, storage->offset);
        if (unused) hdi_text_add(out, ", not read\n");
        else hdi_text_add(out, ", levels %u to %u\n", storage->first_level, storage->last_level);
    }
}

/* Kernels with fewer operands than bindings name one several times. */
static bool repeated(const hdi_schedule_step *step, uint32_t at) {
    for (uint32_t u = 0; u < at; u++)
        if (memcmp(&step->uses[u], &step->uses[at], sizeof step->uses[at]) == 0) return true;
    return false;
}

/* The operands that are only read, or those that are written. */
static void print_uses(const hdi_schedule *schedule, const hdi_schedule_step *step, const char *separator, bool written,
                       hdi_text *out) {
    for (uint32_t u = 0; u < step->use_count; u++) {
        if (repeated(step, u) || written != ((step->uses[u].access & HDI_WRITE) != 0)) continue;
        uint64_t offset = step->uses[u].offset;
        uint32_t root = hdi_schedule_root(schedule, step->uses[u].storage, &offset);
        hdi_text_add(out, "%s", separator);
        print_storage_name(schedule, root, out);
        if (offset) hdi_text_add(out, "+%" PRIu64, offset);
        separator = ", ";
    }
}

static void print_step(const hdi_schedule *schedule, uint32_t at, hdi_text *out) {
    const hdi_schedule_step *step = &schedule->steps[at];
    char option[HDI_KERNEL_OPTION_TEXT];
    hdi_text_add(out, "level %u  %s: ", step->level, step->label);
    if (step->kind != HDI_CMD_DISPATCH) hdi_text_add(out, "%s", step->kind == HDI_CMD_COPY ? "copy" : "fill");
    else hdi_text_add(out, "%s", hdi_schedule_module_name(NULL, step->kernel.module));
    if (step->option) hdi_text_add(out, " as %s,", hdi_kernel_option_text(hdi_kernel_option_get(step->option), option));
    print_uses(schedule, step, " ", false, out);
    print_uses(schedule, step, " -> ", true, out);
    hdi_text_add(out, "  because %s\n", step->because);
}

static const char *order_of(const hdi_schedule *schedule) {
    if (schedule->tight) return " (one step a level, to fit the budget)";
    return schedule->options.in_order ? " (in the program's order)" : "";
}

void hdi_schedule_print(const hdi_schedule *schedule, hdi_text *out) {
    hdi_text_add(out, "math %s, %u steps in %u levels%s, %u kernels, %u slices\n",
                 schedule->options.math == HD_MATH_EXACT ? "exact" : "fast", schedule->step_count,
                 schedule->level_count, order_of(schedule), schedule->cmds.kernel_count, schedule->slices);
    hdi_text_add(out,
                 "memory %" PRIu64 " bytes: inputs %" PRIu64 ", states %" PRIu64 ", outputs %" PRIu64
                 ", constants %" PRIu64 ", scratch %" PRIu64 " (%" PRIu64 " unshared)\n",
                 schedule->memory.total_bytes, schedule->memory.input_bytes, schedule->memory.state_bytes,
                 schedule->memory.output_bytes, schedule->memory.constant_bytes, schedule->memory.scratch_bytes,
                 schedule->memory.unshared_bytes);
    print_storages(schedule, out);
    for (uint32_t s = 0; s < schedule->step_count; s++) print_step(schedule, s, out);
}

/* And its commands behind it, each under a heading. */
static void print_all(const hdi_schedule *schedule, hdi_text *out) {
    hdi_text_add(out, "\nplan\n");
    hdi_schedule_print(schedule, out);
    hdi_text_add(out, "\ncmds\n");
    hdi_cmds_print(&schedule->cmds, hdi_schedule_module_name, NULL, out);
}

/* ---- segments ---- */

/* Slots of a segment that have no memory of their own. */
static void print_shared(const hdi_plan *plan, uint32_t segment, hdi_text *out) {
    const hdi_plan_segment *at = &plan->segments[segment];
    for (uint32_t i = 0; i < at->schedule->slot_count; i++) {
        const hdi_plan_slot *slot = &at->slots[i];
        if (slot->home_segment != segment || slot->home_slot != i)
            hdi_text_add(out, "s%u is s%u of segment %u\n", i, slot->home_slot, slot->home_segment);
        else if (slot->reuses)
            hdi_text_add(out, "s%u lies in s%u of segment %u, once segment %u is done\n", i, slot->reused_slot,
                         slot->reused_segment, slot->after);
    }
}

void hdi_plan_print_segments(const hdi_plan *plan, hdi_text *out) {
    for (uint32_t s = 0; s < plan->segment_count; s++) {
        if (plan->text[0]) hdi_text_add(out, "\nsegment %u on device %u\n", s, plan->segments[s].device);
        print_all(plan->segments[s].schedule, out);
        print_shared(plan, s, out);
    }
    if (plan->crossing_count) hdi_text_add(out, "\ncrossings\n");
    for (uint32_t c = 0; c < plan->crossing_count; c++) {
        const hdi_crossing *crossing = &plan->crossings[c];
        hdi_text_add(out, "s%u of segment %u into s%u of segment %u: %s, %" PRIu64 " bytes\n", crossing->from_slot,
                     crossing->from, crossing->to_slot, crossing->to,
                     plan->segments[crossing->to].schedule->slots[crossing->to_slot].name, crossing->bytes);
    }
}

void hdi_plan_print(const hdi_plan *plan, hdi_text *out) {
    if (plan->text[0]) hdi_text_add(out, "\nsegments\n%s", plan->text);
    hdi_plan_print_segments(plan, out);
}

void hdi_plan_print_device(const hdi_caps *caps, const char *id, const char *why, hdi_text *out) {
    uint32_t refused = 0;
    hdi_text_add(out, "\ndevice %s  %s\n", id, caps->name);
    if (why) hdi_text_add(out, "%s\n", why);
    while (refused < HDI_CAPS_REFUSED && caps->refused[refused]) refused++;
    if (refused > 0)
        hdi_text_add(out, "its library of matrix products refuses %u %s, made by the next best kernel%s\n", refused,
                     refused > 1 ? "shapes" : "shape", caps->product_library ? "" : "; it is asked no more");
}

hd_status hdi_schedule_explain(const hd_program *program, const char *caps_text, const hd_plan_desc *desc,
                               hdi_text *out, hd_error *error) {
    hdi_caps caps;
    hdi_schedule *schedule = NULL;
    hd_program *words = NULL;
    const hdi_plan_options options = hdi_plan_options_of(desc ? desc : &(hd_plan_desc){ 0 });
    if (desc && (desc->beside_count || desc->route))
        return hdi_fail(error, HD_STATUS_UNSUPPORTED,
                        "a described device runs a program alone; for a route take hd_plan_explain");
    hd_status status = hdi_caps_parse(caps_text, strlen(caps_text), &caps, error);
    if (!status) status = hdi_program_in_words(program, &words, error);
    if (!status)
        status = hdi_schedule_make(out->allocator, words ? words : program, &caps, &options, &schedule, error);
    if (!status) {
        hdi_text_add(out, "program\n");
        hdi_program_print(words ? words : program, out);
    }
    hdi_program_free(words);
    if (status) return status;
    print_all(schedule, out);
    hdi_plan_print_device(&schedule->caps, "described", NULL, out);
    hdi_schedule_free(schedule);
    return HD_OK;
}
