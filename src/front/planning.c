/* planning.c: from a program and wishes to a loaded plan: the facts of the devices are asked, the plan room decides,
 * and what a plan would run that was never judged on its device is judged first. All of it happens when a plan is
 * created. */
#include "front/front.h"
#include <math.h>

hdi_plan_options hdi_plan_options_of(const hd_plan_desc *desc) {
    return (hdi_plan_options){ .math = desc->math == HD_MATH_EXACT ? HD_MATH_EXACT : HD_MATH_FAST,
                               .budget_bytes = desc->budget_bytes,
                               .no_fusion = desc->no_fusion != 0, .in_order = desc->in_order != 0,
                               .slice_us = desc->slice_us };
}

static bool is_auto(const hd_plan *plan) {
    return plan->device_count > 1 && plan->desc.route && strcmp(plan->desc.route, "auto") == 0;
}

hd_status hdi_planning_check(const hd_plan *plan, hd_error *error) {
    const hd_plan_desc *desc = &plan->desc;
    if ((unsigned)desc->math > HD_MATH_EXACT)
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "math %d does not exist", (int)desc->math);
    if (desc->beside_count >= HDI_MOST_DEVICES || (desc->beside_count && !desc->beside))
        return hdi_fail(error, HD_STATUS_LIMIT, "a plan has at most %d devices", HDI_MOST_DEVICES);
    for (uint32_t d = 1; d < plan->device_count; d++) {
        if (!plan->devices[d] || plan->devices[d]->context != plan->context)
            return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "device %u of the plan is %s", d,
                            plan->devices[d] ? "of another context" : "NULL or was closed");
        for (uint32_t e = 0; e < d; e++)
            if (plan->devices[d] == plan->devices[e])
                return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "devices %u and %u of the plan are the same one", e,
                                d);
    }
    if (desc->route && plan->device_count == 1 && strcmp(desc->route, "auto") != 0)
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT,
                        "a route needs a second device to go to: hd_plan_desc.beside");
    if (desc->follow && (desc->failover || !desc->route || strcmp(desc->route, "auto") != 0))
        return hdi_fail(error, HD_STATUS_UNSUPPORTED,
                        "a plan that follows the load has route \"auto\" and no fail-over");
    return HD_OK;
}

static hd_status no_memory(hd_error *error) {
    return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to plan");
}

/* What a plan is made from; the facts are those of its devices as they are now. */
typedef struct planning {
    hd_plan       *plan;
    hdi_caps       caps[HDI_MOST_DEVICES];
    const char    *ids[HDI_MOST_DEVICES];
    hdi_figures    figures[HDI_MOST_DEVICES];
    bool           software[HDI_MOST_DEVICES]; /* computes on the host's processor, beside others that do */
    hdi_placement  placement;                  /* by a route in words */
    hdi_device_choice choice;                  /* by route "auto" */
    hdi_candidates all;
} planning;

static planning *begin(hd_plan *plan, hd_error *error) {
    planning *p = hdi_alloc(&plan->context->allocator, sizeof *p);
    bool any_software = false;
    if (!p) no_memory(error);
    for (uint32_t d = 0; p && d < plan->device_count; d++) {
        hdi_store_caps(plan->devices[d]->facts, &p->caps[d]);
        hdi_store_figures(plan->devices[d]->facts, &p->figures[d]);
        p->ids[d] = plan->devices[d]->found.info.id;
        p->software[d] = plan->devices[d]->found.info.kind == HD_DEVICE_SOFTWARE;
        any_software = any_software || p->software[d];
    }
    for (uint32_t d = 0; p && d < plan->device_count; d++) p->software[d] |= any_software && p->caps[d].native_kernels;
    if (p) p->plan = plan;
    return p;
}

static void end(planning *p) {
    hdi_candidates_free(&p->all);
    hdi_placement_free(&p->placement);
    hdi_device_choice_free(&p->choice);
    hdi_free(&p->plan->context->allocator, p, sizeof *p);
}

static hdi_plan_wish wish_of(const planning *p, const hd_program *program, const hdi_placement *placement) {
    return (hdi_plan_wish){ program, placement, p->caps, p->ids, hdi_plan_options_of(&p->plan->desc) };
}

/* ---- where operations go ---- */

static hd_status choose(planning *p, const hd_program *program, hd_error *error) {
    const hd_plan *plan = p->plan;
    bool *resident = hdi_alloc(&plan->context->allocator, program->node_count * sizeof *resident);
    const hdi_choose_wish wish = { wish_of(p, program, NULL), plan->device_count, p->figures, p->software, resident };
    hd_status status = resident
                           ? hdi_inputs_mark(program, plan->desc.resident, plan->desc.resident_count, resident, error)
                           : no_memory(error);
    if (!status) status = hdi_choose(&wish, &p->choice, error);
    hdi_free(&plan->context->allocator, resident, program->node_count * sizeof *resident);
    return status;
}

/* By a route in words; without one all is on the first device. */
static hd_status place_by_words(planning *p, const hd_program *program, hd_error *error) {
    const hd_plan *plan = p->plan;
    if (!plan->desc.route || plan->device_count == 1)
        return hdi_placement_new(program, plan->device_count, &p->placement, error);
    return hdi_placement_parse(program, plan->desc.route, p->ids, plan->device_count, &p->placement, error);
}

/* ---- loaded plans ---- */

/* The program, the wishes and the devices: with a placement's hash it is what earlier plans left their times under. */
static uint64_t key_of(const hd_plan *plan) {
    const uint64_t wishes[] = { plan->desc.math == HD_MATH_EXACT, plan->desc.budget_bytes,
                                (uint64_t)(plan->desc.no_fusion != 0), (uint64_t)(plan->desc.in_order != 0),
                                plan->desc.slice_us };
    uint64_t key = hdi_hash(HDI_HASH_START, plan->program_text.bytes, plan->program_text.count);
    key = hdi_hash(key, wishes, sizeof wishes);
    for (uint32_t d = 0; d < plan->device_count; d++) key = hdi_hash(key, &plan->devices[d], sizeof plan->devices[d]);
    return key;
}

/* With the placement and what is known of the devices: plans of one key are the same plan. */
static uint64_t plan_key_of(const hd_plan *plan, const hdi_placement *placement) {
    uint64_t key = hdi_placement_hash(key_of(plan), placement);
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

/* One more finished plan of which one runs. Its run is known, or predicted, to take so long. */
static void add_alternative(hd_plan *plan, hdi_loaded *loaded, double run_ns) {
    loaded->timestamps = plan->desc.timestamps != 0;
    plan->follow.run_ns[plan->alternative_count] = run_ns;
    plan->alternatives[plan->alternative_count++] = loaded;
    hdi_plan_memory_add(&plan->memory, &loaded->plan->memory);
}

static hd_status make_loaded(planning *p, const hdi_plan_wish *wish, hd_plan_memory *out_memory, hdi_loaded **out,
                             hd_error *error) {
    hdi_plan *made = NULL;
    hd_status status = hdi_calibrate_plan(p->plan->devices, p->plan->device_count, wish, p->caps, &made, error);
    if (status) return status;
    *out_memory = made->memory;
    return hdi_loaded_make(made, p->plan->devices, &p->plan->context->allocator, out, error);
}

/* Where the one device has no room for the plan, it gets budgets with less and less between inputs and outputs. */
static hd_status make_smaller(planning *p, hdi_plan_wish wish, const hd_plan_memory *whole, hdi_loaded **out) {
    hd_status status = HD_STATUS_OUT_OF_DEVICE_MEMORY;
    for (uint64_t quarters = 3; quarters > 0 && status == HD_STATUS_OUT_OF_DEVICE_MEMORY; quarters--) {
        hd_error why = { 0 }; /* that there was no room for the whole is what counts */
        hd_plan_memory smaller;
        wish.options.budget_bytes = whole->total_bytes - whole->scratch_bytes + whole->scratch_bytes / 4 * quarters;
        status = make_loaded(p, &wish, &smaller, out, &why);
    }
    return status;
}

/* One that waits for reuse, or a new one. */
static hd_status load(planning *p, const hd_program *program, const hdi_placement *placement, double run_ns,
                      hd_error *error) {
    hd_plan *plan = p->plan;
    hdi_loaded *loaded = hdi_idle_take(&plan->context->idle, plan_key_of(plan, placement));
    count_request(plan, loaded != NULL);
    hd_status status = HD_OK;
    if (loaded) {
        status = hdi_loaded_reset(loaded, error);
        if (status) hdi_loaded_end(loaded);
    } else {
        const hdi_plan_wish wish = wish_of(p, program, placement);
        hd_plan_memory memory = { 0 };
        status = make_loaded(p, &wish, &memory, &loaded, error);
        if (status == HD_STATUS_OUT_OF_DEVICE_MEMORY && plan->device_count == 1 &&
            make_smaller(p, wish, &memory, &loaded) == HD_OK)
            status = HD_OK;
        if (!status) loaded->key = plan_key_of(plan, placement); /* judging may have taught something */
    }
    if (!status) add_alternative(plan, loaded, run_ns);
    return status;
}

static uint64_t whole_ns(double ns) { return ns < 1 ? 1 : ns > 1e18 ? UINT64_C(1000000000000000000) : (uint64_t)ns; }

/* What is told of the choice is the plan's. */
static hd_status take_choice(hd_plan *plan, hdi_device_choice *choice, hd_error *error) {
    double alone = HUGE_VAL;
    for (uint32_t d = 0; d < plan->device_count; d++) alone = HDI_MIN(alone, choice->alone[d].total_ns);
    plan->stats.predicted_ns = whole_ns(choice->time.total_ns);
    plan->stats.predicted_alone_ns = alone < HUGE_VAL ? whole_ns(alone) : 0;
    hdi_text_free(&plan->route_text);
    plan->route_text = choice->text;
    choice->text = (hdi_text){ .allocator = &plan->context->allocator };
    return plan->route_text.failed ? no_memory(error) : HD_OK;
}

static hd_status make_chosen(planning *p, const hd_program *program, hd_error *error) {
    hd_plan *plan = p->plan;
    p->all.runs = &plan->context->runs;
    p->all.key = key_of(plan);
    hd_status status = choose(p, program, error);
    if (!status) status = hdi_candidates_find(program, plan->device_count, &p->choice, &p->all, error);
    if (!status) status = take_choice(plan, &p->choice, error);
    for (uint32_t i = 0; i < p->all.count && !status && (i == 0 || plan->desc.follow); i++) {
        const hdi_candidate *one = &p->all.of[i];
        status = load(p, program, &one->placement, one->run_ns, error);
        plan->run_keys[i] = one->key;
    }
    return status;
}

static hd_status make_by_words(planning *p, const hd_program *program, hd_error *error) {
    const hd_status status = place_by_words(p, program, error);
    return status ? status : load(p, program, &p->placement, 0, error);
}

static hd_status make_once(hd_plan *plan, const hd_program *program, hd_error *error) {
    planning *p = begin(plan, error);
    if (!p) return HD_STATUS_OUT_OF_HOST_MEMORY;
    const hdi_loaded *const before = plan->loaded; /* after a loss: it is the caller's to end */
    plan->alternative_count = 0;
    plan->memory = (hd_plan_memory){ 0 };
    memset(plan->run_keys, 0, sizeof plan->run_keys);
    const hd_status status = is_auto(plan) ? make_chosen(p, program, error) : make_by_words(p, program, error);
    end(p);
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

static bool lacks_kernels(hd_status status) { return status == HD_STATUS_UNSUPPORTED || status == HD_STATUS_LIMIT; }

hd_status hdi_planning_make(hd_plan *plan, const hd_program *program, hd_error *error) {
    hd_error first = { 0 };
    hd_status status = make_once(plan, program, &first);
    if (lacks_kernels(status) && hdi_borrow_cpu(plan, program)) {
        status = make_once(plan, program, NULL);
        if (status) hdi_borrow_end(plan);
        else first = (hd_error){ 0 };
        if (status) status = first.status;
    }
    if (status && error && error->status == HD_OK) *error = first;
    return status;
}

hd_status hdi_planning_load(hd_plan *plan, const hd_program *program, const hdi_saved_plan *saved, hd_error *error) {
    planning *p = begin(plan, error);
    hdi_plan *made = NULL;
    bool wrong = false;
    if (!p) return HD_STATUS_OUT_OF_HOST_MEMORY;
    hd_status status = hdi_saved_plan_make(saved, program, p->caps, p->ids, &made, error);
    end(p);
    if (!status) status = hdi_calibrate_judge(plan->devices, made, &wrong, error);
    if (!status && wrong)
        status = hdi_fail(error, HD_STATUS_UNSUPPORTED,
                          "the saved plan has a kernel that is wrong on its device; plan anew");
    if (status) {
        hdi_plan_free(made);
        return status;
    }
    status = hdi_loaded_make(made, plan->devices, &plan->context->allocator, &plan->loaded, error);
    if (status) return status;
    add_alternative(plan, plan->loaded, 0);
    plan->follow.count = 1;
    return HD_OK;
}

static hd_status estimate_once(hd_plan *plan, const hd_program *program, hd_plan_memory *out_memory,
                               hd_plan_memory *out_each, hd_error *error) {
    planning *p = begin(plan, error);
    hdi_plan *made = NULL;
    if (!p) return HD_STATUS_OUT_OF_HOST_MEMORY;
    hd_status status = is_auto(plan) ? choose(p, program, error) : place_by_words(p, program, error);
    const hdi_plan_wish wish = wish_of(p, program, is_auto(plan) ? &p->choice.best : &p->placement);
    if (!status) status = hdi_plan_make(&plan->context->allocator, &wish, &made, error);
    if (!status && out_memory) *out_memory = made->memory;
    if (!status && out_each) memcpy(out_each, made->on, plan->device_count * sizeof *out_each);
    hdi_plan_free(made);
    end(p);
    return status;
}

hd_status hdi_planning_estimate(hd_plan *plan, const hd_program *program, hd_plan_memory *out_memory,
                                hd_plan_memory *out_each, hd_error *error) {
    hd_error first = { 0 };
    hd_status status = estimate_once(plan, program, out_memory, out_each, &first);
    if (lacks_kernels(status) && !out_each && hdi_borrow_cpu(plan, program)) {
        if (!estimate_once(plan, program, out_memory, NULL, NULL)) status = HD_OK;
        hdi_borrow_end(plan);
    }
    if (status && error && error->status == HD_OK) *error = first;
    return status;
}
