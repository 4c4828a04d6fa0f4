/* planning.c: from a program and wishes to a loaded plan: the facts of the devices are asked, the plan room decides, and
 * what a plan would run that was never judged on its device is judged first. All of it happens when a plan is created. */
#include "front/front.h"
#include <math.h>

hdi_plan_options hdi_plan_options_of(const hd_plan_desc *desc) {
    return (hdi_plan_options){ .math = desc->math == HD_MATH_EXACT ? HD_MATH_EXACT : HD_MATH_FAST, .budget_bytes = desc->budget_bytes,
                               .no_fusion = desc->no_fusion != 0, .slice_us = desc->slice_us };
}

static bool is_auto(const hd_plan *plan) { return plan->device_count > 1 && plan->desc.route && strcmp(plan->desc.route, "auto") == 0; }

hd_status hdi_planning_check(const hd_plan *plan, hd_error *error) {
    const hd_plan_desc *desc = &plan->desc;
    if ((unsigned)desc->math > HD_MATH_EXACT) return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "math %d does not exist", (int)desc->math);
    if (desc->beside_count >= HDI_MOST_DEVICES || (desc->beside_count && !desc->beside))
        return hdi_fail(error, HD_STATUS_LIMIT, "a plan has at most %d devices", HDI_MOST_DEVICES);
    for (uint32_t d = 1; d < plan->device_count; d++) {
        if (!plan->devices[d] || plan->devices[d]->context != plan->context)
            return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "device %u of the plan is %s", d,
                            plan->devices[d] ? "of another context" : "NULL");
        for (uint32_t e = 0; e < d; e++)
            if (plan->devices[d] == plan->devices[e])
                return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "devices %u and %u of the plan are the same one", e, d);
    }
    if (desc->route && plan->device_count == 1 && strcmp(desc->route, "auto") != 0)
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "a route needs a second device to go to: hd_plan_desc.beside");
    if (desc->follow && (desc->failover || !desc->route || strcmp(desc->route, "auto") != 0))
        return hdi_fail(error, HD_STATUS_UNSUPPORTED, "a plan that follows the load has route \"auto\" and no fail-over");
    return HD_OK;
}

/* ---- what is known ---- */

/* The facts of a plan's devices, as they are now. */
typedef struct facts {
    hdi_caps    caps[HDI_MOST_DEVICES];
    const char *ids[HDI_MOST_DEVICES];
} facts;

static void look(const hd_plan *plan, facts *f) {
    for (uint32_t d = 0; d < plan->device_count; d++) {
        hdi_store_caps(plan->devices[d]->facts, &f->caps[d]);
        f->ids[d] = plan->devices[d]->found.info.id;
    }
}

static hd_status no_memory(hd_error *error) { return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to plan"); }

/* ---- where operations go ---- */

static hd_status mark_resident(const hd_plan *plan, const hd_program *program, bool *resident, hd_error *error) {
    for (uint32_t i = 0; i < plan->desc.resident_count; i++) {
        const char *name = plan->desc.resident ? plan->desc.resident[i] : NULL;
        bool found = false;
        for (uint32_t k = 0; k < program->node_count && name; k++)
            if (program->nodes[k].op == HDI_OP_INPUT && strcmp(program->nodes[k].name, name) == 0) found = resident[k] = true;
        if (!found) return hdi_fail(error, HD_STATUS_NAME_NOT_FOUND, "resident: no input is called \"%s\"", name ? name : "");
    }
    return HD_OK;
}

static hd_status choose(const hd_plan *plan, const hd_program *program, const facts *f, hdi_device_choice *out, hd_error *error) {
    const hd_allocator *allocator = &plan->context->allocator;
    bool software[HDI_MOST_DEVICES] = { false }, any_software = false;
    bool *resident = hdi_alloc(allocator, program->node_count * sizeof *resident);
    hdi_figures *figures = hdi_alloc(allocator, plan->device_count * sizeof *figures);
    hd_status status = resident && figures ? mark_resident(plan, program, resident, error) : no_memory(error);
    for (uint32_t d = 0; d < plan->device_count && !status; d++) {
        hdi_store_figures(plan->devices[d]->facts, &figures[d]);
        software[d] = plan->devices[d]->found.info.kind == HD_DEVICE_SOFTWARE;
        any_software = any_software || software[d];
    }
    for (uint32_t d = 0; d < plan->device_count; d++) software[d] = software[d] || (any_software && f->caps[d].native_kernels);
    const hdi_choose_wish wish = {
        .plan = { .program = program, .caps = f->caps, .ids = f->ids, .options = hdi_plan_options_of(&plan->desc) },
        .device_count = plan->device_count,
        .figures = figures,
        .software = software,
        .resident = resident
    };
    if (!status) status = hdi_choose(&wish, out, error);
    hdi_free(allocator, resident, program->node_count * sizeof *resident);
    hdi_free(allocator, figures, plan->device_count * sizeof *figures);
    return status;
}

/* ---- plans ---- */

static hd_status make_whole(const hd_plan *plan, const hd_program *program, const hdi_placement *placement, const facts *f,
                            hdi_plan **out, hd_error *error) {
    const hdi_plan_wish wish = { program, placement, f->caps, f->ids, hdi_plan_options_of(&plan->desc) };
    return hdi_plan_make(&plan->context->allocator, &wish, out, error);
}

/* A plan whose kernels are known to be right: each round but the last finds one that is wrong. */
static hd_status make_judged(const hd_plan *plan, const hd_program *program, const hdi_placement *placement, facts *f,
                             hdi_plan **out, hd_error *error) {
    for (;;) {
        bool again = false;
        look(plan, f);
        hd_status status = make_whole(plan, program, placement, f, out, error);
        for (uint32_t s = 0; !status && s < (*out)->segment_count && !again; s++)
            status = hdi_calibrate_judge(plan->devices[(*out)->segments[s].device], (*out)->segments[s].schedule, &again, error);
        if (!status && !again) return HD_OK;
        hdi_plan_free(*out);
        *out = NULL;
        if (status) return status;
    }
}

/* The program, the wishes, the devices and the placement. */
static uint64_t key_of(const hd_plan *plan, uint64_t placement_hash) {
    const uint64_t wishes[] = { placement_hash, plan->desc.math == HD_MATH_EXACT, plan->desc.budget_bytes,
                                (uint64_t)(plan->desc.no_fusion != 0), plan->desc.slice_us };
    uint64_t key = hdi_hash(HDI_HASH_START, plan->program_text.bytes, plan->program_text.count);
    key = hdi_hash(key, wishes, sizeof wishes);
    for (uint32_t d = 0; d < plan->device_count; d++) key = hdi_hash(key, &plan->devices[d], sizeof plan->devices[d]);
    return key;
}

/* With what is known of the devices: plans of one key are the same plan. */
static uint64_t plan_key_of(const hd_plan *plan, uint64_t placement_hash) {
    uint64_t key = key_of(plan, placement_hash);
    for (uint32_t d = 0; d < plan->device_count; d++) {
        const uint64_t version = hdi_store_version(plan->devices[d]->facts);
        key = hdi_hash(key, &version, sizeof version);
    }
    return key;
}

static void count_request(const hd_plan *plan, bool hit) {
    for (uint32_t d = 0; d < plan->device_count; d++) {
        hd_device *device = plan->devices[d];
        hdi_mutex_lock(&device->lock);
        device->stats.plan_requests++;
        device->stats.plan_hits += hit;
        hdi_mutex_unlock(&device->lock);
    }
}

/* The loaded plan for a placement: one that waits for reuse, or a new one. */
static hd_status load(hd_plan *plan, const hd_program *program, const hdi_placement *placement, facts *f, hdi_loaded **out,
                      hd_error *error) {
    hdi_plan *made = NULL;
    const uint64_t placed = hdi_placement_hash(HDI_HASH_START, placement);
    hdi_loaded *loaded = hdi_idle_take(&plan->context->idle, plan_key_of(plan, placed));
    count_request(plan, loaded != NULL);
    hd_status status = HD_OK;
    if (loaded) {
        status = hdi_loaded_reset(loaded, error);
        if (status) hdi_loaded_end(loaded);
    } else {
        status = make_judged(plan, program, placement, f, &made, error);
        if (!status) status = hdi_loaded_make(made, plan->devices, &plan->context->allocator, &loaded, error);
        if (!status) loaded->key = plan_key_of(plan, placed); /* judging may have taught something */
    }
    if (status) return status;
    loaded->timestamps = plan->desc.timestamps != 0;
    *out = loaded;
    return HD_OK;
}

static uint64_t whole_ns(double ns) { return ns < 1 ? 1 : ns > 1e18 ? UINT64_C(1000000000000000000) : (uint64_t)ns; }

/* One more finished plan of which one runs; its run is known, or predicted, to take so long. */
static hd_status add_alternative(hd_plan *plan, const hd_program *program, const hdi_placement *placement, double run_ns,
                                 facts *f, hd_error *error) {
    hdi_loaded *loaded = NULL;
    const hd_status status = load(plan, program, placement, f, &loaded, error);
    if (status) return status;
    plan->follow.run_ns[plan->alternative_count] = run_ns;
    plan->alternatives[plan->alternative_count++] = loaded;
    hdi_plan_memory_add(&plan->memory, &loaded->plan->memory);
    return HD_OK;
}

/* ---- route "auto" ---- */

/* A placement that may be chosen. */
typedef struct candidate {
    hdi_placement placement;
    uint64_t key;      /* under which earlier plans left what their runs took */
    double   run_ns;   /* known from them, or predicted */
    double   total_ns; /* with inputs written and outputs read */
} candidate;

typedef struct candidates {
    candidate of[HDI_MOST_ALTERNATIVES];
    uint32_t  count;
} candidates;

/* Once each; not those that cannot be. */
static hd_status add_candidate(const hd_plan *plan, candidates *all, const hdi_placement *placement,
                               const hdi_placement_time *time, hd_error *error) {
    const uint64_t key = key_of(plan, hdi_placement_hash(HDI_HASH_START, placement));
    bool there = time->total_ns == HUGE_VAL || all->count == HDI_MOST_ALTERNATIVES;
    for (uint32_t i = 0; i < all->count; i++) there = there || all->of[i].key == key;
    if (there) return HD_OK;
    const double known_ns = hdi_runs_known(&plan->context->runs, key), run_ns = known_ns > 0 ? known_ns : time->total_ns - time->ports_ns;
    candidate *one = &all->of[all->count++];
    *one = (candidate){ .key = key, .run_ns = run_ns, .total_ns = run_ns + time->ports_ns };
    return hdi_placement_copy(placement, &one->placement, error);
}

/* What was predicted to be best, the best of those in which several devices compute, and all on each device; the one that
 * is known or predicted to take the least time comes first. */
static hd_status find_candidates(const hd_plan *plan, const hd_program *program, const hdi_device_choice *choice,
                                 candidates *all, hd_error *error) {
    hdi_placement alone = { 0 };
    hd_status status = add_candidate(plan, all, &choice->best, &choice->time, error);
    if (!status) status = add_candidate(plan, all, &choice->mixed, &choice->mixed_time, error);
    if (!status) status = hdi_placement_new(program, plan->device_count, &alone, error);
    for (uint32_t d = 0; d < plan->device_count && !status; d++) {
        for (uint32_t i = 0; i < program->node_count; i++) alone.of[i] = (hdi_place){ .device = d };
        status = add_candidate(plan, all, &alone, &choice->alone[d], error);
    }
    hdi_placement_free(&alone);
    for (uint32_t i = 1; i < all->count && !status; i++)
        if (all->of[i].total_ns < all->of[0].total_ns) {
            const candidate first = all->of[0];
            all->of[0] = all->of[i];
            all->of[i] = first;
        }
    return status;
}

/* What is told of the choice is the plan's. */
static hd_status take_choice(hd_plan *plan, hdi_device_choice *choice, const candidates *all, hd_error *error) {
    double alone = HUGE_VAL;
    for (uint32_t d = 0; d < plan->device_count; d++) alone = HDI_MIN(alone, choice->alone[d].total_ns);
    plan->stats.predicted_ns = whole_ns(choice->time.total_ns);
    plan->stats.predicted_alone_ns = alone < HUGE_VAL ? whole_ns(alone) : 0;
    if (hdi_placement_hash(0, &all->of[0].placement) != hdi_placement_hash(0, &choice->best))
        hdi_text_add(&choice->text, "runs of earlier plans say otherwise: the placement below takes %.1f us\n", all->of[0].total_ns / 1000);
    hdi_text_free(&plan->route_text);
    plan->route_text = choice->text;
    choice->text = (hdi_text){ .allocator = &plan->context->allocator };
    return plan->route_text.failed ? no_memory(error) : HD_OK;
}

static hd_status make_chosen(hd_plan *plan, const hd_program *program, facts *f, hd_error *error) {
    hdi_device_choice choice = { 0 };
    candidates *all = hdi_alloc(&plan->context->allocator, sizeof *all);
    if (!all) return no_memory(error);
    look(plan, f);
    hd_status status = choose(plan, program, f, &choice, error);
    if (!status) status = find_candidates(plan, program, &choice, all, error);
    if (!status) status = take_choice(plan, &choice, all, error);
    for (uint32_t i = 0; i < all->count && !status && (i == 0 || plan->desc.follow); i++) {
        status = add_alternative(plan, program, &all->of[i].placement, all->of[i].run_ns, f, error);
        plan->run_keys[i] = all->of[i].key;
    }
    for (uint32_t i = 0; i < all->count; i++) hdi_placement_free(&all->of[i].placement);
    hdi_free(&plan->context->allocator, all, sizeof *all);
    hdi_device_choice_free(&choice);
    return status;
}

/* By a route in words; without one all is on the first device. */
static hd_status place_by_words(const hd_plan *plan, const hd_program *program, const facts *f, hdi_placement *out, hd_error *error) {
    if (!plan->desc.route || plan->device_count == 1) return hdi_placement_new(program, plan->device_count, out, error);
    return hdi_placement_parse(program, plan->desc.route, f->ids, plan->device_count, out, error);
}

static hd_status make_by_words(hd_plan *plan, const hd_program *program, facts *f, hd_error *error) {
    hdi_placement placement = { 0 };
    for (uint32_t d = 0; d < plan->device_count; d++) f->ids[d] = plan->devices[d]->found.info.id;
    hd_status status = place_by_words(plan, program, f, &placement, error);
    if (!status) status = add_alternative(plan, program, &placement, 0, f, error);
    hdi_placement_free(&placement);
    return status;
}

hd_status hdi_planning_make(hd_plan *plan, const hd_program *program, hd_error *error) {
    facts *f = hdi_alloc(&plan->context->allocator, sizeof *f);
    if (!f) return no_memory(error);
    const hdi_loaded *const before = plan->loaded; /* after a loss: it is the caller's to end */
    plan->alternative_count = 0;
    plan->memory = (hd_plan_memory){ 0 };
    memset(plan->run_keys, 0, sizeof plan->run_keys);
    const hd_status status = is_auto(plan) ? make_chosen(plan, program, f, error) : make_by_words(plan, program, f, error);
    hdi_free(&plan->context->allocator, f, sizeof *f);
    if (status && before) { /* it stays what it was */
        for (uint32_t i = 0; i < plan->alternative_count; i++) hdi_loaded_end(plan->alternatives[i]);
        plan->alternatives[0] = plan->loaded;
        plan->alternative_count = 1;
    }
    if (status) return status;
    plan->loaded = plan->alternatives[0];
    plan->outputs = NULL;
    plan->follow.count = plan->alternative_count;
    plan->follow.at = plan->follow.home = 0;
    return HD_OK;
}

hd_status hdi_planning_load(hd_plan *plan, const hd_program *program, const hdi_saved_plan *saved, hd_error *error) {
    facts *f = hdi_alloc(&plan->context->allocator, sizeof *f);
    hdi_plan *made = NULL;
    bool wrong = false;
    if (!f) return no_memory(error);
    look(plan, f);
    hd_status status = hdi_saved_plan_make(saved, program, f->caps, f->ids, &made, error);
    hdi_free(&plan->context->allocator, f, sizeof *f);
    for (uint32_t s = 0; !status && s < made->segment_count && !wrong; s++)
        status = hdi_calibrate_judge(plan->devices[made->segments[s].device], made->segments[s].schedule, &wrong, error);
    if (!status && wrong)
        status = hdi_fail(error, HD_STATUS_UNSUPPORTED, "the saved plan has a kernel that is wrong on its device; plan anew");
    if (status) {
        hdi_plan_free(made);
        return status;
    }
    status = hdi_loaded_make(made, plan->devices, &plan->context->allocator, &plan->loaded, error);
    if (status) return status;
    plan->loaded->timestamps = plan->desc.timestamps != 0;
    plan->alternatives[plan->alternative_count++] = plan->loaded;
    plan->memory = plan->loaded->plan->memory;
    plan->follow.count = 1;
    return HD_OK;
}

hd_status hdi_planning_estimate(hd_plan *plan, const hd_program *program, hd_plan_memory *out_memory, hd_plan_memory *out_each,
                                hd_error *error) {
    facts *f = hdi_alloc(&plan->context->allocator, sizeof *f);
    hdi_device_choice choice = { 0 };
    hdi_placement placement = { 0 };
    hdi_plan *made = NULL;
    if (!f) return no_memory(error);
    look(plan, f);
    hd_status status = is_auto(plan) ? choose(plan, program, f, &choice, error) : place_by_words(plan, program, f, &placement, error);
    if (!status) status = make_whole(plan, program, is_auto(plan) ? &choice.best : &placement, f, &made, error);
    if (!status && out_memory) *out_memory = made->memory;
    if (!status && out_each) memcpy(out_each, made->on, plan->device_count * sizeof *out_each);
    hdi_plan_free(made);
    hdi_placement_free(&placement);
    hdi_device_choice_free(&choice);
    hdi_free(&plan->context->allocator, f, sizeof *f);
    return status;
}
