/* prepare.c: from a program and wishes to loaded plans: the facts of the devices are asked, the plan room decides, and
 * what a plan would run that was never judged on its device is judged first. All of it happens when a plan is
 * created. */
#include "prepare/prepare.h"
#include <math.h>

static bool is_auto(const hd_plan_desc *desc) { return desc->route && strcmp(desc->route, "auto") == 0; }

hd_status hdi_prepare_check(const hd_plan *plan, hd_error *error) {
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
    if (desc->route && plan->device_count == 1 && !is_auto(desc))
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT,
                        "a route needs a second device to go to: hd_plan_desc.beside");
    if (desc->follow && (desc->failover || !is_auto(desc)))
        return hdi_fail(error, HD_STATUS_UNSUPPORTED,
                        "a plan that follows the load has route \"auto\" and no fail-over");
    return HD_OK;
}

static hd_status no_memory(hd_error *error) {
    return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to plan");
}

/* What a plan is made from; the facts are those of its devices as they are now. */
typedef struct preparation {
    hd_plan       *plan;
    const hd_program *program;
    const hd_allocator *allocator;
    hdi_caps       caps[HDI_MOST_DEVICES];
    const char    *ids[HDI_MOST_DEVICES];
    hdi_figures    figures[HDI_MOST_DEVICES];
    bool           software[HDI_MOST_DEVICES]; /* computes on the host's processor, beside others that do */
    hdi_placement  placement;                  /* by a route in words */
    hdi_device_choice choice;                  /* by route "auto" */
    hdi_candidates all;
} preparation;

static preparation *begin(hd_plan *plan, const hd_program *program, hd_error *error) {
    const hd_allocator *allocator = plan->devices[0]->host->allocator;
    preparation *p = hdi_alloc(allocator, sizeof *p);
    bool any_software = false;
    if (!p) {
        no_memory(error);
        return NULL;
    }
    p->plan = plan;
    p->program = program;
    p->allocator = allocator;
    for (uint32_t d = 0; d < plan->device_count; d++) {
        hdi_store_caps(plan->devices[d]->facts, &p->caps[d]);
        hdi_store_figures(plan->devices[d]->facts, &p->figures[d]);
        p->ids[d] = plan->devices[d]->found.info.id;
        p->software[d] = plan->devices[d]->found.info.kind == HD_DEVICE_SOFTWARE;
        any_software |= p->software[d];
    }
    for (uint32_t d = 0; d < plan->device_count; d++) p->software[d] |= any_software && p->caps[d].native_kernels;
    return p;
}

static void end(preparation *p) {
    hdi_candidates_free(&p->all);
    hdi_placement_free(&p->placement);
    hdi_device_choice_free(&p->choice);
    hdi_free(p->allocator, p, sizeof *p);
}

static hdi_plan_wish wish_of(const preparation *p, const hdi_placement *placement) {
    return (hdi_plan_wish){ p->program, placement, p->caps, p->ids, hdi_plan_options_of(&p->plan->desc) };
}

/* ---- loaded plans ---- */

/* The program, the wishes and the devices: with a placement's hash it is what earlier plans left their times under. */
static uint64_t key_of(const hd_plan *plan) {
    const uint64_t wishes[] = { plan->desc.math == HD_MATH_EXACT, plan->desc.budget_bytes,
                                (uint64_t)(plan->desc.no_fusion != 0), (uint64_t)(plan->desc.in_order != 0),
                                plan->desc.slice_us };
    uint64_t key = hdi_hash(HDI_HASH_START, plan->program_text.bytes, plan->program_text.count);
    key = hdi_hash(key, wishes, sizeof wishes);
    return hdi_hash(key, plan->devices, plan->device_count * sizeof *plan->devices);
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

static hd_status make_loaded(preparation *p, const hdi_plan_wish *wish, hd_plan_memory *out_memory,
                             hdi_loaded **out, hd_error *error) {
    hdi_plan *made = NULL;
    hd_status status = hdi_calibrate_plan(p->plan->devices, p->plan->device_count, wish, p->caps, &made, error);
    if (status) return status;
    *out_memory = made->memory;
    return hdi_loaded_make(made, p->plan->devices, p->allocator, out, error);
}

/* Where the one device has no room for the plan, it gets budgets with less and less between inputs and outputs. */
static hd_status make_smaller(preparation *p, hdi_plan_wish wish, const hd_plan_memory *whole, hdi_loaded **out) {
    hd_status status = HD_STATUS_OUT_OF_DEVICE_MEMORY;
    for (uint64_t quarters = 3; quarters > 0 && status == HD_STATUS_OUT_OF_DEVICE_MEMORY; quarters--) {
        hd_plan_memory smaller;
        wish.options.budget_bytes = whole->total_bytes - whole->scratch_bytes + whole->scratch_bytes / 4 * quarters;
        /* that there was no room for the whole is what counts */
        status = make_loaded(p, &wish, &smaller, out, &(hd_error){ 0 });
    }
    return status;
}

/* One that waits for reuse, or a new one. */
static hd_status load(preparation *p, const hdi_placement *placement, double run_ns, hd_error *error) {
    hd_plan *plan = p->plan;
    hdi_loaded *loaded = hdi_idle_take(&plan->shared->idle, plan_key_of(plan, placement));
    hd_status status = HD_OK;
    count_request(plan, loaded != NULL);
    if (loaded) {
        status = hdi_loaded_reset(loaded, error);
        if (status) hdi_loaded_end(loaded);
    } else {
        const hdi_plan_wish wish = wish_of(p, placement);
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

/* ---- where operations go ---- */

static hd_status choose(preparation *p, hd_error *error) {
    const hd_plan *plan = p->plan;
    const size_t bytes = p->program->node_count * sizeof(bool);
    bool *resident = hdi_alloc(p->allocator, bytes);
    const hdi_choose_wish wish = { wish_of(p, NULL), plan->device_count, p->figures, p->software, resident };
    hd_status status = resident ? hdi_inputs_mark(p->program, plan->desc.resident, plan->desc.resident_count, resident,
                                                  error)
                                : no_memory(error);
    if (!status) status = hdi_choose(&wish, &p->choice, error);
    hdi_free(p->allocator, resident, bytes);
    return status;
}

/* By a route in words; without one all is on the first device. */
static hd_status place_by_words(preparation *p, hd_error *error) {
    const hd_plan *plan = p->plan;
    if (!plan->desc.route || plan->device_count == 1)
        return hdi_placement_new(p->program, plan->device_count, &p->placement, error);
    return hdi_placement_parse(p->program, plan->desc.route, p->ids, plan->device_count, &p->placement, error);
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
    choice->text = (hdi_text){ .allocator = plan->route_text.allocator };
    return plan->route_text.failed ? no_memory(error) : HD_OK;
}

static hd_status load_chosen(preparation *p, hd_error *error) {
    hd_plan *plan = p->plan;
    p->all.runs = &plan->shared->runs;
    p->all.key = key_of(plan);
    hd_status status = hdi_candidates_find(p->program, plan->device_count, &p->choice, &p->all, error);
    if (!status) status = take_choice(plan, &p->choice, error);
    for (uint32_t i = 0; i < p->all.count && !status && (i == 0 || plan->desc.follow); i++) {
        const hdi_candidate *one = &p->all.of[i];
        status = load(p, &one->placement, one->run_ns, error);
        plan->run_keys[i] = one->key;
    }
    return status;
}

/* Loads what was placed; after a failure the plan is what it was. */
static hd_status load_all(preparation *p, bool chosen, hd_error *error) {
    hd_plan *plan = p->plan;
    const hdi_loaded *const before = plan->loaded; /* after a loss: it is the caller's to end */
    plan->alternative_count = 0;
    plan->memory = (hd_plan_memory){ 0 };
    memset(plan->run_keys, 0, sizeof plan->run_keys);
    const hd_status status = chosen ? load_chosen(p, error) : load(p, &p->placement, 0, error);
    if (status && before) {
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

static hd_status make_once(hd_plan *plan, const hd_program *program, hdi_plan **out_made, hd_error *error) {
    const bool chosen = plan->device_count > 1 && is_auto(&plan->desc);
    preparation *p = begin(plan, program, error);
    if (!p) return HD_STATUS_OUT_OF_HOST_MEMORY;
    hd_status status = chosen ? choose(p, error) : place_by_words(p, error);
    const hdi_plan_wish wish = wish_of(p, chosen ? &p->choice.best : &p->placement);
    if (!status) status = out_made ? hdi_plan_make(p->allocator, &wish, out_made, error) : load_all(p, chosen, error);
    end(p);
    return status;
}

/* ---- what a device has no kernel for runs on the CPU beside it ---- */

/* "v3=1,v7=1" for what the device cannot compute, and words about it, and counts it; false where it could all of it, or
 * on failure. */
static bool find_lacking(preparation *p, hdi_text *out_route, hdi_text *out_words) {
    const hd_program *program = p->program;
    const size_t bytes = program->node_count * sizeof(hdi_node_cost);
    const hdi_plan_wish wish = wish_of(p, NULL);
    hdi_node_cost *costs = hdi_alloc(p->allocator, bytes);
    bool good = costs && hdi_schedule_costs(&wish, 0, p->figures, costs, NULL) == HD_OK;
    for (uint32_t i = 0; i < program->node_count && good; i++) {
        if (!costs[i].cannot || hdi_op_is_source(program->nodes[i].op)) continue;
        if (program->nodes[i].op == HDI_OP_DISPATCH) good = false; /* a caller's kernel is run where he said */
        p->plan->stats.borrowed++;
        hdi_text_add(out_route, "%sv%u=1", out_route->count ? "," : "", i + 1);
        hdi_text_add(out_words, "%sv%u %s", out_words->count ? ", " : "", i + 1, hdi_op_get(program->nodes[i].op).name);
    }
    hdi_free(p->allocator, costs, bytes);
    return good && out_route->count > 0 && !out_route->failed && !out_words->failed;
}

static bool may_borrow(const hd_plan *plan) {
    const hd_device_kind kind = plan->devices[0]->found.info.kind;
    return !plan->shared->strict && !plan->desc.alone && plan->device_count == 1 && !plan->desc.route &&
           kind != HD_DEVICE_CPU && kind != HD_DEVICE_NULL;
}

static void give_back(hd_plan *plan) {
    hdi_text_free(&plan->route);
    hdi_text_free(&plan->route_text);
    plan->desc.route = NULL;
    plan->device_count = 1;
    plan->stats.borrowed = 0;
}

/* Puts the CPU beside the plan's device, with a route that names what that one cannot compute, as if the caller had.
 * False: it is not allowed, not possible, or would not help; the plan is as it was. */
static bool borrow(hd_plan *plan, const hd_program *program) {
    preparation *p = may_borrow(plan) ? begin(plan, program, NULL) : NULL;
    if (!p) return false;
    const char *id = plan->devices[0]->found.info.id;
    hdi_text words = { .allocator = p->allocator };
    plan->devices[1] = find_lacking(p, &plan->route, &words) ? plan->shared->open_cpu(plan->context) : NULL;
    if (plan->devices[1]) {
        plan->device_count = 2;
        plan->desc.route = plan->route.bytes;
        hdi_text_add(&plan->route_text, "on the CPU, since %s has no kernel for them: %s\n", id, words.bytes);
        hdi_log_line(plan->devices[0]->host->log, HD_LOG_WARNING, "plan",
                     "%s has no kernel for %.200s: the CPU computes that", id, words.bytes);
    } else give_back(plan);
    hdi_text_free(&words);
    end(p);
    return plan->device_count == 2;
}

static hd_status make_or_borrow(hd_plan *plan, const hd_program *program, hdi_plan **out_made, hd_error *error) {
    hd_error first = { 0 }; /* is told, whatever comes of borrowing */
    const hd_status status = make_once(plan, program, out_made, &first);
    if ((status == HD_STATUS_UNSUPPORTED || status == HD_STATUS_LIMIT) && borrow(plan, program)) {
        if (!make_once(plan, program, out_made, NULL)) return HD_OK;
        give_back(plan);
    }
    if (status) *error = first;
    return status;
}

hd_status hdi_prepare_make(hd_plan *plan, const hd_program *program, hdi_plan **out_made, hd_error *error) {
    hd_program *words;
    hd_status status = hdi_program_in_words(program, &words, error);
    if (!status) status = make_or_borrow(plan, words ? words : program, out_made, error);
    hdi_program_free(words);
    return status;
}

hd_status hdi_prepare_predict(hd_device *device, const hd_program *program, hdi_placement_time *out_time,
                              hd_error *error) {
    hdi_caps caps;
    hdi_figures figures;
    hd_program *words;
    hdi_store_caps(device->facts, &caps);
    hdi_store_figures(device->facts, &figures);
    hd_status status = hdi_program_in_words(program, &words, error);
    if (!status) status = hdi_timing_alone(words ? words : program, &caps, &figures, out_time, error);
    hdi_program_free(words);
    return status;
}

/* ---- saved plans ---- */

static hd_status load_saved(hd_plan *plan, const hd_program *program, const hdi_saved_plan *saved, hd_error *error) {
    preparation *p = begin(plan, program, error);
    hdi_plan *made = NULL;
    bool wrong = false;
    if (!p) return HD_STATUS_OUT_OF_HOST_MEMORY;
    hd_status status = hdi_saved_plan_make(saved, program, p->caps, p->ids, &made, error);
    if (!status) status = hdi_calibrate_judge(plan->devices, made, &wrong, error);
    if (!status && wrong)
        status = hdi_fail(error, HD_STATUS_UNSUPPORTED,
                          "the saved plan has a kernel that is wrong on its device; plan anew");
    if (status) hdi_plan_free(made);
    else status = hdi_loaded_make(made, plan->devices, p->allocator, &plan->loaded, error);
    end(p);
    if (status) return status;
    add_alternative(plan, plan->loaded, 0);
    plan->follow.count = 1;
    return HD_OK;
}

hd_status hdi_prepare_load(hd_plan *plan, const hd_program *program, const hdi_saved_plan *saved, hd_error *error) {
    hd_program *words;
    hd_status status = hdi_program_in_words(program, &words, error);
    if (!status) status = load_saved(plan, words ? words : program, saved, error);
    hdi_program_free(words);
    return status;
}

hd_status hdi_prepare_again(hd_plan *plan, hd_error *error) {
    hdi_loaded *const old = plan->loaded;
    plan->desc.route = plan->route.bytes;
    const hd_status status = hdi_prepare_make(plan, plan->program, NULL, error);
    plan->desc.route = NULL;
    if (status) return status;
    plan->stats.runs += old->runs;
    plan->stats.records += old->records;
    hdi_loaded_end(old);
    return HD_OK;
}
