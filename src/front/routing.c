/* routing.c: route "auto": what is known of two devices becomes a place for each operation, when the plan is created. */
#include "front/front.h"

typedef struct choice {
    hd_device *const *devices;
    hdi_figures tuning[2];
    hdi_work   *work;
    uint8_t    *can;
    bool       *resident;
    hdi_routing routing;
    hdi_route   route;
} choice;

static void end_choice(choice *c, const hd_program *program) {
    const hd_allocator *allocator = program->allocator;
    hdi_route_free(program, &c->route);
    hdi_free(allocator, c->work, program->node_count * sizeof *c->work);
    hdi_free(allocator, c->can, program->node_count);
    hdi_free(allocator, c->resident, program->node_count * sizeof *c->resident);
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
static hd_status prepare(choice *c, const hd_program *program, const hd_plan_desc *desc, hd_error *error) {
    bool runs[2];
    c->routing = (hdi_routing){ .program = program, .work = c->work, .can = c->can, .resident = c->resident, .overlap = true,
                                .fusion = !desc->no_fusion };
    for (uint32_t d = 0; d < 2; d++) {
        hd_device *device = c->devices[d];
        hdi_store_figures(device->facts, &c->tuning[d]);
        c->routing.tuning[d] = &c->tuning[d];
        c->routing.host[d] = device->found.caps.native_kernels;
        c->routing.overlap = c->routing.overlap && device->found.info.kind != HD_DEVICE_SOFTWARE; /* it computes on the same processor */
        runs[d] = !device->found.caps.native_kernels;
    }
    for (uint32_t i = 0; i < program->node_count; i++)
        c->can[i] = (uint8_t)(program->nodes[i].op == HDI_OP_DISPATCH && (runs[0] || runs[1]) ? runs[0] | runs[1] << 1 : 3);
    const hd_status status = mark_resident(c, program, desc, error);
    return status ? status : hdi_work_of(program, !desc->no_fusion, c->work, error);
}

/* ---- what is told ---- */

static void print_time(hdi_text *out, const char *name, double ns) { hdi_text_add(out, " %s %.1f us", name, ns / 1000); }

static const char *because(const choice *c, const hdi_split_routing *s, uint32_t i) {
    const uint32_t place = s->places[i];
    if (s->routing.can[i] != 3) return "only this device runs kernels of your own";
    const double here = hdi_route_node_ns(&s->routing, i, place), there = hdi_route_node_ns(&s->routing, i, 1 - place);
    if (s->routing.work[i].kernel != i + 1) return "it is a part of another operation's kernel";
    if (s->routing.program->nodes[i].origin.end > 0) return "both devices compute rows at the same time";
    if (here <= there) return "it is faster here";
    if (!c->route.possible[1 - place]) return "the other device cannot compute all that belongs to it";
    return "moving its values, or one more submission, would take longer";
}

static bool is_assumed(const hdi_routing *r, uint32_t i, uint32_t device) {
    return hdi_figures_find(r->tuning[device], r->work[i].family, r->work[i].width)->samples == 0;
}

static void print_choice(const choice *c, const hdi_split_routing *s, hdi_text *out) {
    const hd_program *program = s->routing.program;
    const hdi_work *work = s->routing.work;
    const char *const ids[2] = { c->devices[0]->found.info.id, c->devices[1]->found.info.id };
    hdi_text_add(out, "predicted");
    print_time(out, "as placed", c->route.chosen.total_ns);
    for (uint32_t d = 0; d < 2; d++) {
        hdi_text_add(out, ", all on %s", ids[d]);
        if (c->route.possible[d]) print_time(out, "", c->route.alone[d].total_ns);
        else hdi_text_add(out, " not possible");
    }
    hdi_text_add(out, "; %u segments, transfers", c->route.chosen.segments);
    print_time(out, "", c->route.chosen.transfers_ns);
    hdi_text_add(out, "\n");
    for (uint32_t i = 0; i < program->node_count; i++) {
        if (work[i].family == HDI_FAMILY_NONE) continue;
        hdi_origin_print(program, i + 1, out);
        hdi_text_add(out, " %s (%s %s): on %s:", hdi_op_get(program->nodes[i].op).name, hdi_family_name(work[i].family), hdi_width_name(work[i].width), ids[s->places[i]]);
        for (uint32_t d = 0; d < 2; d++) {
            print_time(out, ids[d], hdi_route_node_ns(&s->routing, i, d));
            hdi_text_add(out, "%s%s", is_assumed(&s->routing, i, d) ? " (assumed)" : "", d ? "" : ",");
        }
        hdi_text_add(out, "  because %s\n", because(c, s, i));
    }
}

static uint64_t whole_ns(double ns) { return ns < 1 ? 1 : ns > 1e18 ? UINT64_C(1000000000000000000) : (uint64_t)ns; }

static hd_status tell(const choice *c, hdi_routed *routed, hd_plan_stats *stats, hd_error *error) {
    hdi_split_routing s;
    const hd_status status = hdi_route_split(&c->routing, c->route.places, &s, error);
    stats->predicted_ns = whole_ns(c->route.chosen.total_ns);
    stats->predicted_device_ns = c->route.possible[0] ? whole_ns(c->route.alone[0].total_ns) : 0;
    stats->predicted_beside_ns = c->route.possible[1] ? whole_ns(c->route.alone[1].total_ns) : 0;
    if (!status) print_choice(c, &s, &routed->text);
    hdi_route_split_end(&s);
    return status;
}

hd_status hdi_routing_places(hd_device *const devices[2], const hd_program *program, const hd_plan_desc *desc, hdi_routed *out_routed,
                             hd_plan_stats *out_stats, hd_error *error) {
    const hd_allocator *allocator = program->allocator;
    choice *c = hdi_alloc(allocator, sizeof *c);
    if (!c) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to choose devices");
    c->devices = devices;
    c->work = hdi_alloc(allocator, program->node_count * sizeof *c->work);
    c->can = hdi_alloc(allocator, program->node_count);
    c->resident = hdi_alloc(allocator, program->node_count * sizeof *c->resident);
    hd_status status = HD_OK;
    if (!c->work || !c->can || !c->resident) status = hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to choose devices");
    if (!status) status = prepare(c, program, desc, error);
    if (!status) status = hdi_route_make(&c->routing, &c->route, error);
    if (!status) status = tell(c, out_routed, out_stats, error);
    if (!status && out_routed->text.failed) status = hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to explain a route");
    out_routed->node_count = program->node_count;
    out_routed->places = c->route.places;
    c->route.places = NULL;
    end_choice(c, program);
    return status;
}

void hdi_routed_free(hdi_routed *routed, const hd_allocator *allocator) {
    hdi_free(allocator, routed->places, routed->node_count);
    hdi_text_free(&routed->text);
    *routed = (hdi_routed){ .text = { .allocator = allocator } };
}
