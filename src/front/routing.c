/* routing.c: route "auto": what is known of two devices becomes a place for each operation, and what runs took becomes known. */
#include "front/front.h"
#include <math.h>

typedef struct choice {
    hd_device *const *devices;
    hdi_tuning  tuning[2];
    hdi_learned learned[2];
    hdi_work   *work;
    uint8_t    *can;
    bool       *resident;
    hdi_routing routing;
    hdi_route   route;
    uint8_t    *places; /* that were chosen, by prediction or by what runs took */
    hdi_route_time time; /* predicted for them */
} choice;

static void end_choice(choice *c, const hd_program *program) {
    const hd_allocator *allocator = program->allocator;
    hdi_route_free(program, &c->route);
    hdi_free(allocator, c->work, program->node_count * sizeof *c->work);
    hdi_free(allocator, c->can, program->node_count);
    hdi_free(allocator, c->resident, program->node_count * sizeof *c->resident);
    hdi_free(allocator, c->places, program->node_count);
    hdi_free(allocator, c, sizeof *c);
}

static hd_status mark_resident(choice *c, const hd_program *program, const hd_plan_desc *desc, hd_error *error) {
    for (uint32_t i = 0; i < desc->resident_count; i++) {
        const char *name = desc->resident[i];
        bool found = false;
        for (uint32_t k = 0; k < program->node_count && name; k++)
            if (program->nodes[k].op == HDI_OP_INPUT && strcmp(program->nodes[k].name, name) == 0) found = c->resident[k] = true;
        if (!found) return hdi_fail(error, HD_STATUS_NAME_NOT_FOUND, "resident: no input is called \"%s\"", name ? name : "");
    }
    return HD_OK;
}

/* What is known of the devices and of the program's work. */
static hd_status prepare(choice *c, const hd_program *program, const hd_plan_desc *desc, const hdi_routed *earlier, hd_error *error) {
    bool runs[2];
    c->routing = (hdi_routing){ .program = program, .work = c->work, .can = c->can, .resident = c->resident, .overlap = true, .fusion = !desc->no_fusion, .now_ns = hdi_now_ns() };
    for (uint32_t d = 0; d < 2; d++) {
        hd_device *device = c->devices[d];
        hdi_tuned_get(device, &c->tuning[d], &c->learned[d]);
        c->routing.tuning[d] = &c->tuning[d];
        c->routing.learned[d] = &c->learned[d];
        c->routing.host[d] = device->found.caps.native_kernels;
        c->routing.overlap = c->routing.overlap && device->found.info.kind != HD_DEVICE_SOFTWARE; /* it computes on the same processor */
        runs[d] = !device->found.caps.native_kernels;
    }
    for (uint32_t i = 0; i < program->node_count; i++)
        c->can[i] = (uint8_t)(program->nodes[i].op == HDI_OP_DISPATCH && (runs[0] || runs[1]) ? runs[0] | runs[1] << 1 : 3);
    hd_status status = HD_OK;
    if (earlier) memcpy(c->resident, earlier->resident, program->node_count * sizeof *c->resident);
    else status = mark_resident(c, program, desc, error);
    return status ? status : hdi_work_of(program, !desc->no_fusion, c->work, error);
}

/* ---- candidates ---- */

#define CLEAR 0.9 /* of the time of places that were tried before: what other ones are predicted to take at most to replace them */

/* What the plan's inputs and states take to move to the device of a candidate; to both: on average half of them move. */
static double moving_ns(const choice *c, const hd_program *program, uint32_t candidate) {
    double ns = 0;
    for (uint32_t i = 0; i < program->node_count; i++) {
        const hdi_node *node = &program->nodes[i];
        if (!c->work[i].alive || (node->op != HDI_OP_INPUT && node->op != HDI_OP_STATE)) continue;
        const uint64_t bytes = hd_tensor_bytes(node->dtype, node->shape);
        for (uint32_t to = 0; to < 2; to++)
            if (candidate == HDI_CANDIDATE_SHARED || candidate == to)
                ns += (hdi_cost_transfer(&c->tuning[1 - to].download, bytes) + hdi_cost_transfer(&c->tuning[to].upload, bytes)) / (candidate == HDI_CANDIDATE_SHARED ? 2 : 1);
    }
    return ns;
}

/* Looks for the candidates, and predicts them; what was measured of them stays, but where other places for both devices are clearly better. */
static hd_status name_candidates(choice *c, const hd_program *program, hdi_routed *routed, hd_error *error) {
    hdi_trial *t = &routed->trial;
    hdi_route_time before = { .total_ns = HUGE_VAL };
    hd_status status = hdi_route_make(&c->routing, &c->route, error);
    if (!status && routed->shared) status = hdi_route_time_of(&c->routing, routed->shared, &before, error);
    if (status) return status;
    hdi_route_time shared = c->route.shared;
    hdi_candidate *both = &t->of[HDI_CANDIDATE_SHARED];
    const bool stays = routed->shared && (t->at == HDI_CANDIDATE_SHARED || t->home == HDI_CANDIDATE_SHARED || shared.total_ns >= CLEAR * before.total_ns);
    if (stays) shared = before;
    else if (shared.total_ns < HUGE_VAL) {
        if (!routed->shared) routed->shared = hdi_alloc(program->allocator, program->node_count);
        if (!routed->shared) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to choose devices");
        memcpy(routed->shared, c->route.shared_places, program->node_count);
        hdi_trial_replaced(t, HDI_CANDIDATE_SHARED, before.total_ns);
    }
    both->possible = routed->shared != NULL;
    both->predicted_ns = shared.total_ns;
    for (uint32_t d = 0; d < 2; d++) {
        t->of[d].possible = c->route.possible[d];
        t->of[d].predicted_ns = c->route.alone[d].total_ns;
    }
    for (uint32_t i = 0; i < HDI_CANDIDATES; i++) t->of[i].move_ns = moving_ns(c, program, i);
    routed->looked_ns = t->spent_ns;
    routed->looking_ns = (double)(hdi_now_ns() - c->routing.now_ns);
    return HD_OK;
}

/* By prediction, where no run tells better. */
static uint32_t first_candidate(const hdi_trial *t) {
    uint32_t best = HDI_CANDIDATES;
    for (uint32_t i = 0; i < HDI_CANDIDATES; i++)
        if (t->of[i].possible && (best == HDI_CANDIDATES || t->of[i].predicted_ns < t->of[best].predicted_ns)) best = i;
    return best;
}

static hd_status place_at(choice *c, const hd_program *program, hdi_routed *routed, uint32_t candidate, hd_error *error) {
    routed->candidate = candidate;
    if (candidate == HDI_CANDIDATE_SHARED) memcpy(c->places, routed->shared, program->node_count);
    else memset(c->places, (int)candidate, program->node_count);
    return hdi_route_time_of(&c->routing, c->places, &c->time, error);
}

/* ---- what is told ---- */

static void print_time(hdi_text *out, const char *name, double ns) { hdi_text_add(out, " %s %.1f us", name, ns / 1000); }

static const char *because(const hdi_trial *t, const hdi_split_routing *s, uint32_t i) {
    const uint32_t place = s->places[i];
    if (s->routing.can[i] != 3) return "only this device runs kernels of your own";
    const double here = hdi_route_node_ns(&s->routing, i, place), there = hdi_route_node_ns(&s->routing, i, 1 - place);
    if (s->routing.work[i].kernel != i + 1) return "it is a part of another operation's kernel";
    if (s->routing.program->nodes[i].origin.end > 0) return "both devices compute rows at the same time";
    if (here <= there) return "it is faster here";
    if (!t->of[1 - place].possible) return "the other device cannot compute all that belongs to it";
    return "moving its values, or one more submission, would take longer";
}

static bool is_assumed(const hdi_routing *r, uint32_t i, uint32_t device) {
    return hdi_tuning_figure(r->tuning[device], r->work[i].family, r->work[i].width)->samples == 0;
}

static void print_choice(const choice *c, const hdi_trial *t, const hdi_split_routing *s, hdi_text *out) {
    const hd_program *program = s->routing.program;
    const hdi_work *work = s->routing.work;
    const char *const ids[2] = { c->devices[0]->found.info.id, c->devices[1]->found.info.id };
    hdi_text_add(out, "predicted");
    print_time(out, "as placed", c->time.total_ns);
    for (uint32_t d = 0; d < 2; d++) {
        hdi_text_add(out, ", all on %s", ids[d]);
        if (t->of[d].possible) print_time(out, "", t->of[d].predicted_ns);
        else hdi_text_add(out, " not possible");
    }
    hdi_text_add(out, "; %u segments, transfers", c->time.segments);
    print_time(out, "", c->time.transfers_ns);
    hdi_text_add(out, "\n");
    for (uint32_t i = 0; i < program->node_count; i++) {
        if (work[i].family == HDI_KIND_NONE) continue;
        hdi_origin_print(program, i + 1, out);
        hdi_text_add(out, " %s (%s %s): on %s:", hdi_op_get(program->nodes[i].op).name, hdi_op_kind_name(work[i].family), hdi_width_name(work[i].width), ids[s->places[i]]);
        for (uint32_t d = 0; d < 2; d++) {
            print_time(out, ids[d], hdi_route_node_ns(&s->routing, i, d));
            hdi_text_add(out, "%s%s", is_assumed(&s->routing, i, d) ? " (assumed)" : "", d ? "" : ",");
        }
        hdi_text_add(out, "  because %s\n", because(t, s, i));
    }
}

static uint64_t whole_ns(double ns) { return ns < 1 ? 1 : ns > 1e18 ? UINT64_C(1000000000000000000) : (uint64_t)ns; }

/* The choice is kept: its arrays become those of `routed`. */
static hd_status tell(choice *c, hdi_routed *routed, hd_plan_stats *stats, hd_error *error) {
    const hdi_trial *t = &routed->trial;
    hdi_split_routing s;
    const hd_status status = hdi_route_split(&c->routing, c->places, &s, error);
    for (uint32_t i = 0; i < s.routing.program->node_count && !status; i++)
        routed->families_ns[s.places[i]][s.routing.work[i].family] += hdi_cost_node(&c->tuning[s.places[i]], &s.routing.work[i]);
    for (uint32_t d = 0; d < 2; d++)
        routed->families_ns[d][HDI_KIND_NONE] = c->time.submits_ns[d] / hdi_learned_factor(&c->learned[d], HDI_KIND_NONE, c->routing.now_ns);
    stats->predicted_ns = whole_ns(c->time.total_ns);
    stats->predicted_device_ns = t->of[0].possible ? whole_ns(t->of[0].predicted_ns) : 0;
    stats->predicted_beside_ns = t->of[1].possible ? whole_ns(t->of[1].predicted_ns) : 0;
    if (!status) print_choice(c, t, &s, &routed->text);
    hdi_route_split_end(&s);
    routed->places = c->places;
    routed->resident = c->resident;
    c->places = NULL;
    c->resident = NULL;
    return status;
}

static uint64_t key_of(hd_device *const devices[2], const hd_plan_desc *desc, const choice *c, const hd_program *program, uint64_t program_hash) {
    const char *beside = devices[1]->found.info.id;
    const int32_t wishes[] = { (int32_t)desc->math, desc->no_fusion, desc->timestamps };
    uint64_t key = hdi_hash(program_hash, beside, strlen(beside) + 1);
    key = hdi_hash(key, wishes, sizeof wishes);
    return hdi_hash(key, c->resident, program->node_count * sizeof *c->resident);
}

/* Does the plan go home, or to a candidate that was tried before? Then what they are predicted to take is of no matter. */
static bool goes_where_it_was(const hdi_routed *routed, uint64_t now_ns) {
    const uint32_t next = hdi_trial_next(&routed->trial, now_ns);
    return next != routed->trial.at && (next == routed->trial.home || routed->trial.of[next].tries > 0);
}

/* What is known of the program's candidates: from the plan itself, or from an earlier one of the same program. */
static hd_status take_trial(choice *c, const hd_program *program, const hdi_routed *earlier, hdi_routed *routed, hd_error *error) {
    routed->node_count = program->node_count;
    if (!earlier) {
        const bool known = hdi_tuned_find_trial(c->devices[0], routed->key, program->node_count, 0, &routed->trial, &routed->shared, program->allocator);
        hdi_trial *t = &routed->trial;
        hdi_trial_inherit(t);
        hd_status status = name_candidates(c, program, routed, error);
        if (status) return status;
        if (!known || !t->of[t->home].possible) {
            t->home = first_candidate(t);
            hdi_trial_inherit(t);
        }
        return place_at(c, program, routed, t->at, error);
    }
    routed->trial = earlier->trial;
    routed->looked_ns = earlier->looked_ns;
    routed->looking_ns = earlier->looking_ns;
    if (earlier->shared) {
        routed->shared = hdi_alloc(program->allocator, program->node_count);
        if (!routed->shared) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to choose devices");
        memcpy(routed->shared, earlier->shared, program->node_count);
    }
    const hd_status status = goes_where_it_was(earlier, c->routing.now_ns) ? HD_OK : name_candidates(c, program, routed, error);
    return status ? status : place_at(c, program, routed, hdi_trial_next(&routed->trial, c->routing.now_ns), error);
}

hd_status hdi_routing_places(hd_device *const devices[2], const hd_program *program, const hd_plan_desc *desc, uint64_t program_hash, const hdi_routed *earlier,
                             hdi_routed *out_routed, hd_plan_stats *out_stats, hd_error *error) {
    const hd_allocator *allocator = program->allocator;
    choice *c = hdi_alloc(allocator, sizeof *c);
    if (!c) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to choose devices");
    c->devices = devices;
    c->work = hdi_alloc(allocator, program->node_count * sizeof *c->work);
    c->can = hdi_alloc(allocator, program->node_count);
    c->resident = hdi_alloc(allocator, program->node_count * sizeof *c->resident);
    c->places = hdi_alloc(allocator, program->node_count);
    hd_status status = HD_OK;
    if (!c->work || !c->can || !c->resident || !c->places) status = hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to choose devices");
    if (!status) status = prepare(c, program, desc, earlier, error);
    if (!status) out_routed->key = earlier ? earlier->key : key_of(devices, desc, c, program, program_hash);
    if (!status) status = take_trial(c, program, earlier, out_routed, error);
    if (!status) status = tell(c, out_routed, out_stats, error);
    if (!status && out_routed->text.failed) status = hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to explain a route");
    end_choice(c, program);
    out_routed->kept = earlier ? earlier->kept : hdi_tuned_trials_kept(devices[0]);
    return status;
}

void hdi_routed_free(hdi_routed *routed, const hd_allocator *allocator) {
    hdi_free(allocator, routed->places, routed->node_count);
    hdi_free(allocator, routed->shared, routed->node_count);
    hdi_free(allocator, routed->resident, routed->node_count * sizeof *routed->resident);
    hdi_text_free(&routed->text);
    *routed = (hdi_routed){ .text = { .allocator = allocator } };
}

void hdi_routed_explain(const hd_plan *plan, hdi_text *out) {
    static const char *const names[HDI_CANDIDATES] = { "all on the device", "all beside it", "on both" };
    const hdi_trial *t = &plan->routed.trial;
    if (plan->routed.text.count == 0) return;
    hdi_text_add(out, "\nroute\n%s", plan->routed.text.bytes);
    hdi_text_add(out, "measured, of a run with its writes and reads:");
    for (uint32_t i = 0; i < HDI_CANDIDATES; i++) {
        const double ns = t->of[i].count > 0 ? hdi_candidate_ns(&t->of[i]) : t->of[i].best_ns;
        hdi_text_add(out, "%s %s", i ? "," : "", names[i]);
        if (!t->of[i].possible) hdi_text_add(out, " not possible");
        else if (ns > 0) print_time(out, "", ns);
        else hdi_text_add(out, " not tried");
    }
    hdi_text_add(out, "; %llu of %llu runs were tries\n", (unsigned long long)plan->stats.tried_runs, (unsigned long long)plan->stats.runs);
}

void hdi_routing_tell(const hd_plan *plan, hd_plan_stats *stats) {
    const hdi_trial *t = &plan->routed.trial;
    const double now_ns = plan->routed.places ? hdi_candidate_ns(&t->of[t->at]) : 0;
    if (!(now_ns > 0)) return;
    double least_ns = now_ns;
    for (uint32_t i = 0; i < HDI_CANDIDATES; i++)
        if (t->of[i].best_ns > 0) least_ns = HDI_MIN(least_ns, t->of[i].best_ns);
    stats->measured_ns = whole_ns(now_ns);
    stats->least_ns = whole_ns(least_ns);
}

/* ---- learning, and moving ---- */

bool hdi_routing_is_due(const hd_plan *plan) { return plan->routed.places && hdi_learn_due(plan->stats.runs - plan->routed.since); }

void hdi_routing_learn(hd_plan *plan, const uint64_t measured_ns[2]) {
    hd_device *const devices[2] = { plan->device, plan->desc.beside };
    for (uint32_t d = 0; d < 2; d++)
        if (measured_ns[d] > 0) hdi_tuned_learn(devices[d], plan->routed.families_ns[d], (double)measured_ns[d]);
    plan->stats.measured_runs++;
}

/* ---- rounds ---- */

/* What was found is for other plans of the same program. */
static void keep(hd_plan *plan) {
    plan->routed.kept = hdi_tuned_keep_trial(plan->device, plan->routed.key, plan->routed.node_count, &plan->routed.trial, plan->routed.shared);
}

/* What other plans of the same program have found since. Their places for both devices are tried in place of the plan's own, where
 * it is not there. */
static void follow(hd_plan *plan) {
    hdi_routed *routed = &plan->routed;
    hdi_trial *t = &routed->trial, other;
    uint8_t *shared = NULL;
    const hd_allocator *allocator = &plan->context->allocator;
    const uint64_t before = routed->kept, kept = hdi_tuned_trials_kept(plan->device);
    if (kept == before) return;
    routed->kept = kept;
    if (!hdi_tuned_find_trial(plan->device, routed->key, routed->node_count, before, &other, &shared, allocator)) return;
    bool same = !shared == !routed->shared && (!shared || memcmp(shared, routed->shared, routed->node_count) == 0);
    if (!same && shared && t->at != HDI_CANDIDATE_SHARED && t->home != HDI_CANDIDATE_SHARED) {
        uint8_t *const own = routed->shared;
        routed->shared = shared;
        shared = own;
        hdi_trial_replaced(t, HDI_CANDIDATE_SHARED, t->of[HDI_CANDIDATE_SHARED].predicted_ns); /* a try of its own places is not judged any more */
        t->of[HDI_CANDIDATE_SHARED] = other.of[HDI_CANDIDATE_SHARED];
        t->of[HDI_CANDIDATE_SHARED].at_round = t->rounds;
        same = true;
    }
    if (same) hdi_trial_adopt(t, &other);
    hdi_free(allocator, shared, routed->node_count);
}

static void close_round(hd_plan *plan) {
    const hdi_round round = plan->routed.round;
    hdi_trial *t = &plan->routed.trial;
    if (round.unwatched) hdi_trial_pass(t);
    else if (hdi_trial_note(t, (double)round.spent_ns, round.counts, hdi_now_ns())) keep(plan);
    plan->routed.round = (hdi_round){ .unwatched = !hdi_trial_watches(t) };
}

void hdi_routing_leave(hd_plan *plan, uint64_t entered_ns) {
    if (entered_ns > 0) plan->routed.round.spent_ns += hdi_now_ns() - entered_ns;
}

void hdi_routing_ran(hd_plan *plan, bool waited, bool counts) {
    if (!plan->routed.places) return;
    plan->routed.round.ran = true;
    plan->routed.round.waited = waited;
    plan->routed.round.counts = counts;
    plan->stats.tried_runs += plan->routed.trial.trying;
}

void hdi_routing_keep(hd_plan *plan) {
    if (!plan->routed.places) return;
    if (plan->routed.round.ran) close_round(plan);
    keep(plan);
}

/* ---- moving ---- */

static bool has_bound(const hd_plan *plan) {
    for (uint32_t p = 0; p < plan->part_count; p++)
        for (uint32_t i = 0; i < plan->parts[p].core->plan->slot_count; i++)
            if (plan->parts[p].core->slots[i].bound) return true;
    return false;
}

#define MOVING (HDI_KIND(INPUT) | HDI_KIND(STATE))

/* The slot of a part that has bytes of the port, not by way of another part's; NULL: it has none. */
static hdi_core_slot *own_slot(const hdi_part *part, const char *port, uint32_t *out_slot) {
    hdi_core_slot *slot = hdi_core_find(part->core, port, MOVING, out_slot);
    return slot && !slot->home ? slot : NULL;
}

/* The port's bytes where the plan has them whole in memory that the CPU computes in; NULL: it has not. Memory is made where none was yet, if asked for. */
static hd_status find_in_host(const hd_plan *plan, const char *port, bool make, char **out_bytes, hd_error *error) {
    uint32_t at;
    *out_bytes = NULL;
    for (uint32_t p = 0; p < plan->part_count; p++) {
        hdi_core *core = plan->parts[p].core;
        const hdi_core_slot *own = own_slot(&plan->parts[p], port, &at);
        if (!own || (!own->memory && !make) || own->elsewhere > 0 || !core->device->found.caps.native_kernels) continue;
        hd_status status = hdi_core_memory(core, at, error);
        if (!status) status = hdi_device_wait(core->device, core->last_ticket, 0, error); /* what ran there may still use them */
        if (!status) *out_bytes = hdi_device_map(core->device, own->memory);
        return status;
    }
    return HD_OK;
}

/* A port, in pieces or not. */
static hd_status read_port(const hd_plan *plan, const char *port, char *bytes, hd_error *error) {
    hd_status status = HD_OK;
    uint32_t at;
    for (uint32_t p = 0; p < plan->part_count && !status; p++) {
        const hdi_core *core = plan->parts[p].core;
        const hdi_core_slot *own = own_slot(&plan->parts[p], port, &at);
        if (own && own->memory) status = hdi_device_read(core->device, own->memory, 0, bytes + own->port_at, core->plan->slots[at].tensor_bytes, core->last_ticket, error);
    }
    return status;
}

/* What lies there already is not written. */
static hd_status write_port(hd_plan *plan, const char *port, const char *bytes, hd_error *error) {
    hd_status status = HD_OK;
    uint32_t at;
    for (uint32_t p = 0; p < plan->part_count && !status; p++) {
        hdi_core *core = plan->parts[p].core;
        hdi_core_slot *own = own_slot(&plan->parts[p], port, &at);
        if (!own) continue;
        status = hdi_core_memory(core, at, error);
        if (!status && hdi_device_map(core->device, own->memory) != bytes + own->port_at)
            status = hdi_device_write(core->device, own->memory, 0, bytes + own->port_at, core->plan->slots[at].tensor_bytes, &core->last_ticket, error);
        if (!status) own->written = true;
    }
    return status;
}

/* What the caller wrote, and what runs left in states, from one plan's memory to the other's: straight, where the CPU computes on either side. */
static hd_status move_slot(const hd_plan *from, const hdi_core *core, uint32_t at, hd_plan *to, hd_error *error) {
    const char *port = core->plan->slots[at].name;
    const uint64_t count = core->plan->slots[at].tensor_bytes + core->slots[at].elsewhere;
    char *there, *here = NULL, *between = NULL;
    hd_status status = find_in_host(from, port, false, &there, error);
    if (status) return status;
    if (there) return write_port(to, port, there, error);
    status = find_in_host(to, port, true, &here, error);
    if (!status && !here) {
        here = between = count <= SIZE_MAX ? hdi_alloc(&to->context->allocator, (size_t)count) : NULL;
        if (!between) status = hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to move \"%s\"", port);
    }
    if (!status) status = read_port(from, port, here, error);
    if (!status) status = write_port(to, port, here, error);
    hdi_free(&to->context->allocator, between, (size_t)count);
    return status;
}

/* Has a part before this one bytes of the port? Then they were moved with them. */
static bool was_met(const hd_plan *plan, uint32_t part, const char *port) {
    uint32_t at;
    for (uint32_t p = 0; p < part; p++)
        if (own_slot(&plan->parts[p], port, &at)) return true;
    return false;
}

/* Has the caller written or bound it since the plan moved? */
static bool is_there(const hd_plan *plan, const char *port) {
    uint32_t at;
    for (uint32_t p = 0; p < plan->part_count; p++) {
        const hdi_core_slot *own = own_slot(&plan->parts[p], port, &at);
        if (own) return own->written || own->bound;
    }
    return true; /* nobody reads it */
}

/* All states, or those inputs that have bytes in the one plan and none in the other. */
static hd_status move_all(const hd_plan *from, hdi_storage_kind kind, hd_plan *to, hd_error *error) {
    hd_status status = HD_OK;
    for (uint32_t p = 0; p < from->part_count; p++) {
        hdi_core *core = from->parts[p].core;
        for (uint32_t i = 0; i < core->plan->slot_count && !status; i++) {
            const hdi_plan_slot *slot = &core->plan->slots[i];
            const hdi_core_slot *own = &core->slots[i];
            if (slot->kind != kind || !own->memory || own->home || was_met(from, p, slot->name)) continue;
            if (kind == HDI_STORAGE_INPUT && (!own->written || own->inside || is_there(to, slot->name))) continue;
            status = move_slot(from, core, i, to, error);
        }
    }
    return status;
}

/* What hdi_parts_make fills in; not the plan's place in lists, which others may change. */
static void take_parts(hd_plan *to, const hd_plan *from) {
    to->parts = from->parts;
    to->part_count = from->part_count;
    to->crossings = from->crossings;
    to->crossing_count = from->crossing_count;
    to->crossing_capacity = from->crossing_capacity;
    to->begun = from->begun;
    to->crossed = from->crossed;
    to->memory = from->memory;
    to->segments_text = from->segments_text;
}

void hdi_routing_forget(hd_plan *plan) {
    if (!plan->left) return;
    hdi_parts_end(plan->left, true);
    hdi_free(&plan->context->allocator, plan->left, sizeof *plan->left);
    plan->left = NULL;
}

hd_status hdi_routing_bring(hd_plan *plan, hd_error *error) {
    const hd_status status = plan->left ? move_all(plan->left, HDI_STORAGE_INPUT, plan, error) : HD_OK;
    if (!status) hdi_routing_forget(plan);
    return status;
}

/* The plan with these places. What was made for the old ones is left there until the next run: the caller may read outputs before it, and
 * where he writes inputs anew their bytes need not move. */
static hd_status remake(hd_plan *plan, const hd_program *program, hdi_routed *routed, hd_error *error) {
    const hd_plan none = { .segments_text = { .allocator = &plan->context->allocator } };
    hd_plan *old = hdi_alloc(&plan->context->allocator, sizeof *old);
    if (!old) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to move a plan");
    old->context = plan->context;
    old->ran = plan->ran;
    take_parts(old, plan);
    take_parts(plan, &none);
    plan->stats.crossing_bytes = 0;
    const uint64_t hash = hdi_hash(HDI_HASH_START, plan->program_text.bytes, plan->program_text.count);
    hd_status status = hdi_parts_make_at(plan, program, routed->places, hash, error);
    if (!status) status = move_all(old, HDI_STORAGE_STATE, plan, error);
    if (status) {
        hdi_parts_end(plan, false);
        take_parts(plan, old);
        hdi_free(&plan->context->allocator, old, sizeof *old);
        return status;
    }
    plan->left = old;
    hdi_routed_free(&plan->routed, &plan->context->allocator);
    routed->since = plan->stats.runs;
    plan->routed = *routed;
    plan->ran = false;
    hdi_plan_fill_stats(plan);
    hdi_log_line(&plan->context->log, HD_LOG_INFO, "plan", "route auto: operations moved after %llu runs: %u segments, predicted %llu ns", (unsigned long long)plan->stats.runs,
                 plan->part_count, (unsigned long long)plan->stats.predicted_ns);
    return HD_OK;
}

/* Looks at the candidates again, and goes where they say. What that takes is charged to trying. */
static void renew(hd_plan *plan) {
    hd_device *const devices[2] = { plan->device, plan->desc.beside };
    hd_program *program = NULL;
    hd_error error = { 0 };
    hdi_routed routed = { .text = { .allocator = &plan->context->allocator } };
    hd_plan_stats stats = plan->stats;
    const uint64_t began_ns = hdi_now_ns();
    if (hdi_drive(plan, true, 0, &error)) return;
    if (hd_program_parse(plan->context, plan->program_text.bytes, plan->program_text.count, &program)) return;
    hd_status status = hdi_routing_places(devices, program, &plan->desc, 0, &plan->routed, &routed, &stats, &error);
    const bool moves = !status && memcmp(routed.places, plan->routed.places, routed.node_count) != 0;
    const hd_plan_stats before = plan->stats;
    const uint32_t next = routed.candidate;
    bool moved = false;
    if (moves) {
        plan->stats = stats;
        moved = remake(plan, program, &routed, &error) == HD_OK;
        if (!moved) plan->stats = before;
    }
    if (!status && !moved) { /* what was predicted anew counts */
        uint8_t *const shared = plan->routed.shared;
        plan->routed.trial = routed.trial;
        plan->routed.shared = routed.shared;
        plan->routed.looked_ns = routed.looked_ns;
        plan->routed.looking_ns = routed.looking_ns;
        routed.shared = shared;
    }
    const uint64_t now_ns = hdi_now_ns();
    if (moved) hdi_trial_moved(&plan->routed.trial, next, (double)(now_ns - began_ns), now_ns);
    else if (moves) hdi_trial_failed(&plan->routed.trial, next, now_ns);
    if (moved && plan->routed.trial.trying) keep(plan); /* others wait for what it finds */
    if (!moved) hdi_routed_free(&routed, &plan->context->allocator);
    hd_program_destroy(program);
}

/* Looking again takes one part in so many of the time that the plan's rounds take. */
enum { LOOKING_SHARE = 512 };

/* A round begins: where is it to be? */
static void step(hd_plan *plan) {
    hdi_routed *routed = &plan->routed;
    follow(plan);
    const bool due = hdi_routing_is_due(plan);
    if ((routed->round.unwatched && !due) || plan->left || has_bound(plan)) return;
    const bool old = due && routed->trial.spent_ns - routed->looked_ns > LOOKING_SHARE * routed->looking_ns;
    if (old || hdi_trial_next(&routed->trial, hdi_now_ns()) != routed->trial.at) renew(plan);
}

uint64_t hdi_routing_enter(hd_plan *plan, bool reads) {
    if (!plan->routed.places) return 0;
    if (plan->routed.round.ran && !reads) {
        const bool waited = plan->routed.round.waited;
        close_round(plan);
        if (waited) step(plan);
    }
    return plan->routed.round.unwatched ? 0 : hdi_now_ns();
}
