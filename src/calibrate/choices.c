/* choices.c: which option of a kernel is the fastest on a device. The caller's programs are planned with each option of
 * their class, over the same inputs; what an option computes has to agree with what the rules' own choice computes, and
 * its times are measured in turn with the other's. The best ones then have to be right on the known answers, and to win
 * a second time. */
#include "calibrate/calibrate.h"
#include "run/run.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PROGRAMS = 4, ROUNDS = 7, MOST_ROUNDS = 64, CONFIRMING = 3, CANDIDATES = 2, MOST_REPEATS = 32 };
#define SAMPLE_NS   UINT64_C(1000000) /* a sample is made of so many runs that it takes about as long */
#define LEAST_GAIN  1.03
#define HOPELESS    1.25              /* so much slower in the first round: not measured on */
#define ERROR_SHARE 0.03125f          /* of the largest element: so much may results differ, with A in 8 bits */

/* ---- the rule ---- */

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bool hdi_choice_pays(const uint64_t *standard_ns, const uint64_t *option_ns, uint32_t rounds, double *out_gain) {
    double ratios[MOST_ROUNDS * CONFIRMING];
    rounds = (uint32_t)HDI_MIN(rounds, HDI_COUNT(ratios));
    *out_gain = 0;
    if (rounds == 0) return false;
    for (uint32_t i = 0; i < rounds; i++)
        ratios[i] = (double)HDI_MAX(standard_ns[i], 1) / (double)HDI_MAX(option_ns[i], 1);
    qsort(ratios, rounds, sizeof *ratios, compare);
    *out_gain = rounds % 2 ? ratios[rounds / 2] : (ratios[rounds / 2 - 1] + ratios[rounds / 2]) / 2;
    return *out_gain > LEAST_GAIN && ratios[rounds / 4] > 1;
}

/* ---- the contest ---- */

typedef struct contest {
    hd_device *device;
    const hd_program *programs[PROGRAMS];
    uint32_t  program_count, rounds;
    hdi_caps  caps;                 /* without choices */
    hdi_class_options offered;      /* the options that all programs have */
    hdi_core *standard[PROGRAMS];   /* of the rules' own choice, with the inputs that all share */
    hdi_arena arena;                /* what it computed: */
    hdi_reference_tensor *results[PROGRAMS]; /* of each output */
    uint32_t  repeats[PROGRAMS];
} contest;

static hd_status no_memory(hd_error *error) {
    return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for measuring kernels");
}

/* Did the device fail, rather than the option? */
static bool is_of_device(hd_status status) {
    return status == HD_STATUS_OUT_OF_HOST_MEMORY || status == HD_STATUS_TIMEOUT || status == HD_STATUS_DEVICE_LOST;
}

/* None before it is known what is offered. */
static uint32_t id_of(const contest *c, uint32_t option) {
    return c->offered.count ? c->offered.options[option]->id : 0;
}
static char *option_text(const contest *c, uint32_t option, char out[HDI_KERNEL_OPTION_TEXT]) {
    return hdi_kernel_option_text(c->offered.options[option], out);
}

/* Plans a program with an option; the first one is the rules' own. */
static hd_status schedule_with(const contest *c, uint32_t program, uint32_t option, hdi_offer *offer,
                               hdi_schedule **out_schedule, hd_error *error) {
    const hdi_plan_options options = { .math = HD_MATH_FAST, .one_by_one = true, .offer = offer };
    hdi_caps caps = c->caps;
    const hdi_choice choice = { .of = c->offered.of, .option = id_of(c, option), .gain = 1 };
    if (option > 0) hdi_choices_put(&caps.choices, &choice);
    return hdi_schedule_make(c->device->host->allocator, c->programs[program], &caps, &options, out_schedule, error);
}

/* Has what the rules choose judged, as for any other plan, and learns what the device's library refuses. */
static hd_status learn_facts(contest *c, hd_error *error) {
    const hdi_plan_options options = { .math = HD_MATH_FAST, .one_by_one = true };
    hd_status status = HD_OK;
    for (uint32_t p = 0; p < c->program_count && !status; p++) {
        hdi_schedule *schedule = NULL;
        status = hdi_calibrate_schedule(c->device, c->programs[p], &options, &schedule, error);
        hdi_schedule_free(schedule);
    }
    hdi_store_caps(c->device->facts, &c->caps);
    c->caps.choices.count = 0;
    return status;
}

/* The options that all programs have; none where their kernels have no options at all. A program's first class is that
 * of its operations, later ones are those of parts of them. */
static hd_status read_options(contest *c, hd_error *error) {
    for (uint32_t p = 0; p < c->program_count; p++) {
        hdi_offer offer = { 0 };
        hdi_schedule *schedule = NULL;
        const hd_status status = schedule_with(c, p, 0, &offer, &schedule, error);
        hdi_schedule_free(schedule);
        if (status) return status;
        const hdi_class_options *own = &offer.items[0];
        if (p == 0) c->offered = *own;
        if (offer.count == 0) {
            c->offered.count = 0;
            return HD_OK;
        }
        if (!hdi_class_equal(own->of, c->offered.of))
            return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "programs of several classes of kernels at once");
        const hdi_kernel_option *standard = c->offered.options[0];
        uint32_t left = 0;
        for (uint32_t i = 0; i < c->offered.count; i++)
            for (uint32_t k = 0; k < own->count; k++)
                if (c->offered.options[i] == own->options[k]) c->offered.options[left++] = own->options[k];
        c->offered.count = left;
        if (left == 0 || c->offered.options[0] != standard)
            return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT,
                            "programs for which different kernels are the standard ones");
    }
    return HD_OK;
}

/* Compiles all options side by side. One that fails is found out when it is its turn. */
static hd_status compile(const contest *c, hd_error *error) {
    const hd_allocator *allocator = c->device->host->allocator;
    const uint32_t most = c->offered.count * c->program_count;
    hdi_schedule **schedules = hdi_alloc(allocator, most * sizeof(hdi_schedule *));
    uint32_t schedule_count = 0, count = 0, room = 0;
    hd_status status = schedules ? HD_OK : no_memory(error);
    for (uint32_t i = 0; i < most && !status; i++) {
        hd_error inside = { 0 };
        const hd_status planned =
            schedule_with(c, i % c->program_count, i / c->program_count, NULL, &schedules[schedule_count], &inside);
        if (!planned) room += schedules[schedule_count++]->cmds.kernel_count;
        if (!is_of_device(planned)) continue;
        status = planned;
        if (error) *error = inside;
    }
    hdi_wanted_kernel *wanted = status ? NULL : hdi_alloc(allocator, (room + 1) * sizeof *wanted);
    if (!status && !wanted) status = no_memory(error);
    for (uint32_t i = 0; i < schedule_count && !status; i++)
        for (uint32_t k = 0; k < schedules[i]->cmds.kernel_count; k++)
            wanted[count++] = (hdi_wanted_kernel){ .module = hdi_module_get(schedules[i]->cmds.kernels[k].module),
                                                   .kernel = &schedules[i]->cmds.kernels[k] };
    if (!status && count > 0) status = hdi_known_load(c->device, wanted, count, error);
    for (uint32_t i = 0; i < schedule_count; i++) hdi_schedule_free(schedules[i]);
    hdi_free(allocator, wanted, (room + 1) * sizeof *wanted);
    hdi_free(allocator, schedules, most * sizeof(hdi_schedule *));
    return is_of_device(status) ? status : HD_OK;
}

/* ---- running ---- */

/* Memory of the device's own for a named value, where what is small would else lie across the bus. */
static hd_status hold(hdi_core *core, uint32_t slot, hd_error *error) {
    hdi_core_slot *own = &core->slots[slot];
    const hdi_schedule_slot *planned = &core->schedule->slots[slot];
    if (own->memory || own->home) return HD_OK;
    const hdi_alloc_desc desc = { planned->bytes, HD_BUFFER_STORAGE, planned->name, NULL, HD_MEMORY_SCRATCH };
    const hd_status status = hdi_device_alloc(core->device, &desc, &own->memory, error);
    if (!status) own->memory_bytes = planned->bytes;
    return status;
}

static hd_status write_inputs(const contest *c, uint32_t program, hdi_core *core, hd_error *error) {
    const hd_program *from = c->programs[program];
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < from->node_count && !status; i++) {
        const hdi_node *node = &from->nodes[i];
        uint32_t slot;
        if (!node->name || !hdi_core_find(core, node->name, HDI_KIND(INPUT), &slot)) continue;
        const uint64_t bytes = core->schedule->slots[slot].tensor_bytes;
        void *data = hdi_alloc(c->device->host->allocator, (size_t)bytes);
        status = data ? hold(core, slot, error) : no_memory(error);
        if (!status) {
            hdi_known_input(node, i, data);
            status = hdi_device_write(c->device, core->slots[slot].memory, 0, data, bytes, &core->last_ticket, error);
        }
        core->slots[slot].written = !status;
        hdi_free(c->device->host->allocator, data, (size_t)bytes);
    }
    return status;
}

/* A program with an option, made real. Inputs are those of the rules' own choice, once that is there. */
static hd_status make_core(const contest *c, uint32_t program, uint32_t option, hdi_core **out_core, hd_error *error) {
    const hd_program *from = c->programs[program];
    hdi_schedule *schedule = NULL;
    hdi_core *core = NULL;
    uint32_t slot, home;
    hd_status status = schedule_with(c, program, option, NULL, &schedule, error);
    if (!status) status = hdi_core_make(c->device, schedule, &core, error);
    *out_core = core;
    for (uint32_t i = 0; i < from->node_count && !status && c->standard[program]; i++)
        if (from->nodes[i].name && hdi_core_find(core, from->nodes[i].name, HDI_KIND(INPUT), &slot) &&
            hdi_core_find(c->standard[program], from->nodes[i].name, HDI_KIND(INPUT), &home))
            core->slots[slot].home = &c->standard[program]->slots[home];
    if (!status && !c->standard[program]) status = write_inputs(c, program, core, error);
    for (uint32_t i = 0; i < from->output_count && !status; i++)
        if (hdi_core_find(core, from->outputs[i].name, HDI_KIND(OUTPUT), &slot)) status = hold(core, slot, error);
    return status;
}

/* So many runs, one after the other. */
static hd_status sample(hdi_core *core, uint32_t repeats, uint64_t *out_ns, hd_error *error) {
    const uint64_t began = hdi_now_ns();
    uint64_t records;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < repeats && !status; i++) {
        status = hdi_core_submit(core, &(hdi_core_run){ .timestamps = false }, &records, error);
        if (!status) status = hdi_device_wait(core->device, core->last_ticket, 0, error);
    }
    *out_ns = hdi_now_ns() - began;
    return status;
}

/* Reads an output of a core that ran. */
static hd_status read_output(contest *c, uint32_t program, uint32_t output, hdi_core *core, void *data,
                             hd_error *error) {
    const hdi_output *from = &c->programs[program]->outputs[output];
    uint32_t slot;
    if (!hdi_core_find(core, from->name, HDI_KIND(OUTPUT), &slot))
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "the output \"%s\" is no operation's result", from->name);
    return hdi_device_read(c->device, core->slots[slot].memory, 0, data, core->schedule->slots[slot].tensor_bytes,
                           core->last_ticket, error);
}

/* The rules' own choice: what it computes, and how often a sample runs it. */
static hd_status begin(contest *c, uint32_t program, hd_error *error) {
    const hd_program *from = c->programs[program];
    hdi_core *core = NULL;
    uint64_t ns = 0;
    hd_status status = make_core(c, program, 0, &core, error);
    c->standard[program] = core;
    /* the first one is not like the others */
    for (int i = 0; i < 2 && !status; i++) status = sample(core, 1, &ns, error);
    c->repeats[program] = (uint32_t)HDI_MIN(MOST_REPEATS, 1 + SAMPLE_NS / HDI_MAX(ns, 1));
    c->results[program] = status ? NULL : hdi_arena_alloc(&c->arena, from->output_count * sizeof **c->results);
    if (!status && !c->results[program]) return no_memory(error);
    for (uint32_t i = 0; i < from->output_count && !status; i++) {
        const hdi_node *node = hdi_program_node(from, from->outputs[i].value);
        const uint64_t bytes = hd_tensor_bytes(node->dtype, node->shape);
        c->results[program][i] =
            (hdi_reference_tensor){ node->dtype, node->shape, hdi_arena_alloc(&c->arena, (size_t)bytes + 4) };
        status = c->results[program][i].data ? read_output(c, program, i, core, c->results[program][i].data, error)
                                             : no_memory(error);
    }
    return status;
}

/* Does the option compute the same, but for rounding? Runs it for the first time. */
static hd_status agree(contest *c, uint32_t program, hdi_core *core, bool *out_agrees, hd_error *error) {
    const hd_allocator *allocator = c->device->host->allocator;
    uint64_t ns;
    hd_status status = sample(core, 1, &ns, error);
    *out_agrees = true;
    for (uint32_t i = 0; i < c->programs[program]->output_count && !status; i++) {
        const hdi_reference_tensor *right = &c->results[program][i];
        const size_t bytes = (size_t)hd_tensor_bytes(right->dtype, right->shape);
        void *given = hdi_alloc(allocator, bytes);
        status = given ? read_output(c, program, i, core, given, error) : no_memory(error);
        if (!status && !(hdi_known_error(right, given, ERROR_SHARE) <= 1)) *out_agrees = false;
        hdi_free(allocator, given, bytes);
    }
    return status;
}

/* Measures an option on one program in turn with the rules' own choice. */
static hd_status measure(contest *c, uint32_t program, uint32_t option, uint32_t rounds, bool *out_pays,
                         double *out_gain, hd_error *error) {
    uint64_t standard_ns[MOST_ROUNDS * CONFIRMING], option_ns[MOST_ROUNDS * CONFIRMING];
    hdi_core *core = NULL;
    bool agrees = false;
    hd_error inside = { 0 };
    uint32_t done = 0, wins = 0;
    char text[HDI_KERNEL_OPTION_TEXT], usual[HDI_KERNEL_OPTION_TEXT];
    hd_status status = make_core(c, program, option, &core, &inside);
    if (!status) status = agree(c, program, core, &agrees, &inside);
    if (!status && !agrees)
        hdi_log_line(c->device->host->log, HD_LOG_WARNING, "tune",
                     "%s: option %s gives other results than %s and is not taken",
                     c->device->found.info.id, option_text(c, option, text), option_text(c, 0, usual));
    while (!status && agrees && done < rounds) {
        hdi_core *first = done % 2 ? core : c->standard[program], *second = done % 2 ? c->standard[program] : core;
        uint64_t *const firsts = done % 2 ? option_ns : standard_ns, *const seconds =
                                                                         done % 2 ? standard_ns : option_ns;
        status = sample(first, c->repeats[program], &firsts[done], &inside);
        if (!status) status = sample(second, c->repeats[program], &seconds[done], &inside);
        wins += option_ns[done] < standard_ns[done];
        done++;
        if ((done == 1 && (double)option_ns[0] > HOPELESS * (double)standard_ns[0]) ||
            (done == rounds / 2 && wins == 0))
            break;
    }
    /* they share inputs */
    if (core) c->standard[program]->last_ticket = HDI_MAX(c->standard[program]->last_ticket, core->last_ticket);
    hdi_core_end(core);
    *out_pays = !status && hdi_choice_pays(standard_ns, option_ns, agrees ? done : 0, out_gain);
    if (!is_of_device(status)) return HD_OK; /* an option that the device does not take */
    if (error) *error = inside;
    return status;
}

/* The least gain over all programs. */
static hd_status contend(contest *c, uint32_t option, uint32_t rounds, bool *out_pays, double *out_gain,
                         hd_error *error) {
    hd_status status = HD_OK;
    *out_pays = true;
    *out_gain = INFINITY;
    for (uint32_t p = 0; p < c->program_count && *out_pays && !status; p++) {
        double gain = 0;
        status = measure(c, p, option, rounds, out_pays, &gain, error);
        *out_gain = HDI_MIN(*out_gain, gain);
    }
    return status;
}

/* ---- being right ---- */

/* Is the option right on all known answers for the kernels that it is made of? There it is taken whatever the size. */
static hd_status is_right(const contest *c, uint32_t option, bool *out_right, hd_error *error) {
    hdi_caps caps = c->caps;
    const hdi_choice everywhere = { .of = { c->offered.of.kind, HDI_CLASS_ANY, HDI_CLASS_ANY, HDI_CLASS_ANY },
                                    .option = id_of(c, option), .gain = 1 };
    char text[HDI_KERNEL_OPTION_TEXT];
    hdi_schedule *schedule = NULL;
    hdi_choices_put(&caps.choices, &everywhere);
    hd_status status = schedule_with(c, 0, option, NULL, &schedule, error);
    *out_right = true;
    for (uint32_t k = 0; !status && k < schedule->cmds.kernel_count; k++) {
        hdi_judgement forms[64];
        const hdi_variant variant = hdi_variant_of(&schedule->cmds.kernels[k]);
        status = hdi_known_kernels(c->device, &caps, &variant, 1, error);
        if (!status) status = hdi_known_answers(c->device, &caps, variant, forms, error);
        for (uint32_t form = 0; form < 64 && !status; form++)
            if (forms[form].worst > 1) *out_right = false;
    }
    hdi_schedule_free(schedule);
    if (!status && !*out_right)
        hdi_log_line(c->device->host->log, HD_LOG_WARNING, "tune",
                     "%s: option %s is wrong on a known answer and is not taken",
                     c->device->found.info.id, option_text(c, option, text));
    return status;
}

/* ---- the choice ---- */

static hd_status choose(contest *c, uint32_t *out_option, double *out_gain, hd_error *error) {
    double gains[HDI_COUNT(c->offered.options)] = { 0 };
    char text[HDI_KERNEL_OPTION_TEXT], usual[HDI_KERNEL_OPTION_TEXT];
    hd_status status = compile(c, error);
    for (uint32_t p = 0; p < c->program_count && !status; p++) status = begin(c, p, error);
    for (uint32_t i = 1; i < c->offered.count && !status; i++) {
        bool pays;
        status = contend(c, i, c->rounds, &pays, &gains[i], error);
        hdi_log_line(c->device->host->log, HD_LOG_DEBUG, "tune", "%s: %s takes %.3f times as long as %s",
                     c->device->found.info.id,
                     option_text(c, 0, usual), gains[i], option_text(c, i, text));
        if (!pays) gains[i] = 0;
    }
    for (int candidate = 0; candidate < CANDIDATES && !status; candidate++) {
        uint32_t best = 0;
        bool right = false, pays = false;
        for (uint32_t i = 1; i < c->offered.count; i++)
            if (gains[i] > gains[best]) best = i;
        if (best == 0) break;
        gains[best] = 0;
        status = is_right(c, best, &right, error);
        if (!status && right) status = contend(c, best, c->rounds * CONFIRMING, &pays, out_gain, error);
        if (status || !pays) continue;
        *out_option = best;
        return HD_OK;
    }
    *out_gain = 1;
    return status;
}

hd_status hdi_calibrate_choices(hd_device *device, const hd_calibrate_desc *desc, hd_kernel_choice *out_choice,
                                hd_error *error) {
    uint32_t option = 0;
    double gain = 1;
    if (!desc->programs) return hdi_fail(error, HD_STATUS_NULL_POINTER, "no programs to choose by");
    if (desc->program_count == 0 || desc->program_count > PROGRAMS)
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "%zu programs; 1 to %d", desc->program_count, PROGRAMS);
    const hd_program *programs[PROGRAMS];
    for (size_t i = 0; i < desc->program_count; i++) {
        programs[i] = desc->programs[i];
        if (!HDI_FIND(programs[i]))
            return hdi_fail(error, programs[i] ? HD_STATUS_STALE_HANDLE : HD_STATUS_NULL_POINTER,
                            "program %zu to choose by is %s", i, programs[i] ? "ended, or is none" : "NULL");
    }
    contest *c = hdi_alloc(device->host->allocator, sizeof *c);
    if (!c) return no_memory(error);
    c->device = device;
    for (size_t i = 0; i < desc->program_count; i++) c->programs[c->program_count++] = programs[i];
    c->rounds = desc->rounds == 0 ? ROUNDS : HDI_MIN(desc->rounds, MOST_ROUNDS);
    c->arena.allocator = device->host->allocator;
    hd_status status = learn_facts(c, error);
    if (!status) status = read_options(c, error);
    if (!status && c->offered.count > 1) status = choose(c, &option, &gain, error);
    *out_choice = (hd_kernel_choice){ .options = c->offered.count, .gain = gain };
    if (!status && c->offered.count > 0) {
        const hdi_choice choice = { .of = c->offered.of, .option = id_of(c, option), .gain = (float)gain };
        status = hdi_store_choose(device->facts, choice.of, option ? &choice : NULL, error);
        hdi_store_changed(device->facts); /* plans of before may hold another choice */
        hdi_class_text(choice.of, out_choice->work);
        option_text(c, 0, out_choice->standard);
        option_text(c, option, out_choice->chosen);
    }
    for (uint32_t p = 0; p < c->program_count; p++) hdi_core_end(c->standard[p]);
    hdi_arena_free(&c->arena);
    hdi_free(device->host->allocator, c, sizeof *c);
    return status;
}
